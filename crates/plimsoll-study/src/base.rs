//! Resolves a plan's target from this machine: addresses, certificates and worker threads. Because
//! the target is resolved first, a load never starts with an invalid target. All errors in the
//! user's arguments are therefore reported before the first load.
//!
//! Not here: building the request (from the command line or a run file), and whether this machine
//! can send the load (`capacity`).

use crate::capacity::FixedSettings;
use crate::connection_inputs;
use crate::grpc;
use crate::target::{resolve_addresses, resolve_plain_http_url};
use crate::traffic_file;
use plimsoll_model::failure::Failure;
use plimsoll_model::{ExperimentSettings, Injector, Load, LoadShape, Plan};
use plimsoll_probe::WatchTarget;
use plimsoll_probe::fetch::FetchTarget;

/// A resolved target, and the settings with which this machine sends load to that target.
#[derive(Debug, Clone)]
pub struct ResolvedTarget {
    /// The resolved plan, with a placeholder load of one user. Each command replaces the
    /// placeholder load with its own load.
    pub plan: Plan,
    /// The settings of the load generator on this machine: worker threads, spinning (busy-waiting),
    /// local addresses.
    pub injector: Injector,
    /// Whether the target is on this machine.
    pub local: bool,
    /// Whether load may be sent to public addresses, which are neither loopback nor private.
    pub allow_public: bool,
    /// The settings that the user fixed on the command line. `capacity::fit_to_machine` does not
    /// change a fixed setting.
    pub fixed: FixedSettings,
}

impl ResolvedTarget {
    /// Resolves everything that a plan needs from this machine and from name servers: addresses,
    /// certificates, worker threads, gRPC messages. Fails if, for example, an address, a
    /// certificate or a gRPC message is invalid.
    pub fn resolve_target(plan: &Plan, settings: &ExperimentSettings<String>) -> Result<ResolvedTarget, Failure> {
        let mut plan = plan.clone();
        let origin = &plan.traffic.origin;
        let local = match &plan.connection_plan.unix {
            Some(_) => true,
            None => {
                let (host, port) = settings.connect_to.clone().unwrap_or_else(|| (origin.host.clone(), origin.port));
                let (addresses, local) = resolve_addresses(&host, port, settings.public)?;
                plan.connection_plan.addresses = addresses;
                local
            }
        };
        if let Some(tls) = &mut plan.connection_plan.tls {
            connection_inputs::read_certificates(tls, settings)?;
        }
        let sources = settings.injector.sources.clone();
        connection_inputs::check_sources(&sources)?;
        connection_inputs::retain_reachable_addresses(&mut plan.connection_plan.addresses, &sources)?;
        // If the user fixes no number of workers, there is one worker for each usable core. If the
        // target is on the same machine, half of the cores are left to the server. Without
        // keep-alive, half of the CPU cost is kernel work of the client, so the workers use all
        // cores.
        let cores = plimsoll_sys::probe::cgroup::usable_cores();
        let usual = if local && plan.connection_plan.keep_alive { (cores / 2).max(1) } else { cores };
        let workers = settings.injector.workers.unwrap_or(usual);
        let injector = Injector { workers, spin: settings.injector.spin, sources, sources_so_far: None };
        plimsoll_engine::tls_client(&plan).map_err(|e| connection_inputs::tls_failure(&e))?;
        grpc::encode_grpc_bodies(&mut plan, settings)?;
        match (&settings.mix, plan.traffic.routes.as_slice()) {
            (Some(_), _) => traffic_file::check_encodable(&plan)?,
            (None, [only, ..]) => {
                plimsoll_engine::encode_request(&plan, &only.request_to_send())
                    .map_err(|e| Failure::usage(e.to_string()))?;
            }
            (None, []) => return Err(Failure::usage("the traffic has no request to send")),
        }
        let fixed = FixedSettings {
            is_thread_count_fixed: settings.injector.workers.is_some(),
            is_connection_count_fixed: settings.connections_max.is_some(),
        };
        Ok(ResolvedTarget { plan, injector, local, allow_public: settings.public, fixed })
    }

    /// Returns a function that resolves further URLs, for example metrics endpoints.
    pub fn url_resolver(&self) -> impl Fn(&str) -> Result<FetchTarget, Failure> + use<> {
        let allow_public = self.allow_public;
        move |url| resolve_plain_http_url(url, allow_public)
    }

    /// Returns the target in the form that the probes (measurements of the server) need: the plan,
    /// whether the target is local, and a URL resolver.
    pub fn watch_target<'a>(&'a self, resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>) -> WatchTarget<'a> {
        WatchTarget { plan: &self.plan, local: self.local, resolve }
    }

    /// Returns the generator settings for one load. The number of workers is at most the number of
    /// users or requests.
    pub fn generator_settings_for_load(&self, load: &Load) -> Injector {
        let users = match &load.shape {
            LoadShape::Closed { users } => users.max() as u64,
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => u64::MAX,
        };
        self.injector.with_workers_at_most(users.min(load.requests_max.unwrap_or(u64::MAX)))
    }
}

/// Returns the `Authorization` value from the user part of a target's URL; `None` if the URL has no
/// user.
pub fn authorization_from_url(plan: &Plan, settings: &ExperimentSettings<String>, target: usize) -> Option<String> {
    let is_user = settings.targets.get(target).is_some_and(|target| target.user_info);
    // The `Authorization` field from the URL is the last header field of a request. A request with
    // its own `Authorization` field in the traffic file lacks the field from the URL, so all
    // requests are searched.
    let mut last = plan.traffic.routes.iter().filter_map(|route| route.request.headers.last());
    let value = last.find(|(name, _)| name == "Authorization");
    value.filter(|_| is_user).map(|(_, value)| value.clone())
}
