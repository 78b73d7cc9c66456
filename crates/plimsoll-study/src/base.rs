//! A target as reached from this machine: resolves addresses, certificates and worker threads for a
//! plan, so that a load never starts with an invalid one. After that, the request of the user can
//! no longer fail.
//!
//! Not here: the request itself (the command line, or a record), and whether the machine can make
//! the load (`capacity`).

use crate::capacity::FixedSettings;
use crate::connecting;
use crate::grpc;
use crate::target::{addresses, resolve_plain};
use crate::traffic_file;
use plimsoll_model::failure::Failure;
use plimsoll_model::{Injector, Load, LoadShape, Plan, Terms};
use plimsoll_probe::WatchTarget;
use plimsoll_probe::fetch::FetchTarget;

/// A resolved target, and how this machine makes its loads.
#[derive(Debug, Clone)]
pub struct Base {
    /// A plan with one user; commands insert their load.
    pub plan: Plan,
    /// How this machine makes loads.
    pub injector: Injector,
    /// Whether the target is on this machine.
    pub local: bool,
    /// Whether addresses may be loaded that are neither loopback nor private.
    pub allow_public: bool,
    /// The settings that the user fixed, so that they are not adapted.
    pub fixed: FixedSettings,
}

impl Base {
    /// Resolves everything that a plan needs from this machine and from name servers.
    pub fn reach(plan: &Plan, terms: &Terms<String>) -> Result<Base, Failure> {
        let mut plan = plan.clone();
        let origin = &plan.traffic.origin;
        let local = match &plan.carriage.unix {
            Some(_) => true,
            None => {
                let (host, port) = terms.connect_to.clone().unwrap_or_else(|| (origin.host.clone(), origin.port));
                let (addresses, local) = addresses(&host, port, terms.public)?;
                plan.carriage.addresses = addresses;
                local
            }
        };
        if let Some(tls) = &mut plan.carriage.tls {
            connecting::find_certificates(tls, terms)?;
        }
        let sources = terms.injector.sources.clone();
        connecting::refuse_foreign(&sources)?;
        connecting::keep_reachable(&mut plan.carriage.addresses, &sources)?;
        // Leave a core to a server on the same machine for each of ours. With a connection for each
        // request, half of the cost is the kernel's work on our side, and a single thread would be
        // the limit.
        let cores = plimsoll_sys::probe::cgroup::usable_cores();
        let usual = if local && plan.carriage.keep_alive { (cores / 2).max(1) } else { cores };
        let workers = terms.injector.workers.unwrap_or(usual);
        let injector = Injector { workers, spin: terms.injector.spin, sources, sources_so_far: None };
        plimsoll_engine::tls_client(&plan).map_err(|e| connecting::tls_refused(&e))?;
        grpc::make_messages(&mut plan, terms)?;
        match (&terms.mix, plan.traffic.routes.as_slice()) {
            (Some(_), _) => traffic_file::encodes(&plan)?,
            (None, [only, ..]) => {
                plimsoll_engine::encode_request(&plan, &only.on_wire()).map_err(|e| Failure::usage(e.to_string()))?;
            }
            (None, []) => return Err(Failure::usage("there is no request to send")),
        }
        let fixed =
            FixedSettings { threads: terms.injector.workers.is_some(), connections: terms.connections_max.is_some() };
        Ok(Base { plan, injector, local, allow_public: terms.public, fixed })
    }

    /// A resolver of further addresses to fetch from.
    pub fn resolver(&self) -> impl Fn(&str) -> Result<FetchTarget, Failure> + use<> {
        let allow_public = self.allow_public;
        move |url| resolve_plain(url, allow_public)
    }

    /// The target for probes.
    pub fn watched<'a>(&'a self, resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>) -> WatchTarget<'a> {
        WatchTarget { plan: &self.plan, local: self.local, resolve }
    }

    /// The injector of a load: no more workers than users or requests.
    pub fn injector_for(&self, load: &Load) -> Injector {
        let users = match &load.shape {
            LoadShape::Closed { users } => users.max() as u64,
            LoadShape::Open { .. } | LoadShape::Given { .. } => u64::MAX,
        };
        self.injector.at_most(users.min(load.requests_max.unwrap_or(u64::MAX)))
    }
}

/// The `Authorization` value for a target's URL, if it has a user.
pub fn user_info(plan: &Plan, terms: &Terms<String>, target: usize) -> Option<String> {
    let is_user = terms.targets.get(target).is_some_and(|target| target.user_info);
    // Added fields come last; a request of a traffic file may have one of its own.
    let mut last = plan.traffic.routes.iter().filter_map(|route| route.request.headers.last());
    let value = last.find(|(name, _)| name == "Authorization");
    value.filter(|_| is_user).map(|(_, value)| value.clone())
}
