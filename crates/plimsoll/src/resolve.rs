//! What was asked, resolved: flags become a resolved request and plans. All validation of the command line is here, before
//! anything is started.

use crate::args::{GeneratorArgs, RequestArgs, RunArgs};
use crate::capacity::Fixed;
use crate::connecting;
use crate::failure::Failure;
use crate::files::{self, Use};
use crate::quantity::{flag, positive, positive_time};
use crate::target::{Elsewhere, Target};
use crate::traffic_file;
use plimsoll_model::units::parse_duration_ns;
use plimsoll_model::{
    Arrivals, Curve, Injector, Load, LoadShape, Origin, Plan, Request, Route, Schedule, StatusSet, Traffic,
};
use plimsoll_traffic::file::RequestDefaults;
use std::sync::OnceLock;

/// A request on a resolved target, and how the generator works.
#[derive(Debug, Clone)]
pub struct Base {
    /// A plan of one user; commands put their load in.
    pub plan: Plan,
    /// The URL of the target as it was given, on the command line or in a file.
    pub address: String,
    /// How this machine makes loads.
    pub injector: Injector,
    pub local: bool,
    /// Whether addresses may be asked that are neither loopback nor private.
    pub allow_public: bool,
    pub arrivals: Arrivals,
    /// What of the load's fit to the machine is the user's own word.
    pub fixed: Fixed,
}

fn body(text: &str) -> Result<Vec<u8>, Failure> {
    if text == "-" {
        return files::read_stdin(Use::Body).map_err(|why| Failure::start(format!("--body -: standard input {why}")));
    }
    match text.strip_prefix('@') {
        Some(path) => files::read(path.as_ref(), Use::Body)
            .map_err(|why| Failure::start(format!("--body: the file '{path}' {why}"))),
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn header(text: &str) -> Result<(String, String), Failure> {
    // The text may hold a secret: only the name is ever repeated.
    let (name, value) =
        text.split_once(':').ok_or_else(|| Failure::usage("--header: write it as 'Name: value', with a colon"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Base {
    pub fn new(request: &RequestArgs, generator: &GeneratorArgs) -> Result<Base, Failure> {
        let timeout_ns = positive_time("--timeout", &request.timeout)?;
        let ok_status = flag("--ok-status", StatusSet::parse(&request.ok_status))?;
        let connections_max = match &request.max_connections {
            Some(text) => positive("--max-connections", text)?,
            None => 10_000,
        };
        let cores = plimsoll_sys::process::cores();
        let threads = generator.threads.as_deref().map(|text| positive("--threads", text)).transpose()?;
        if threads.is_some_and(|threads| threads > 1024) {
            return Err(Failure::usage("--threads: at most 1024"));
        }
        let arrivals = match generator.arrivals.as_deref() {
            None | Some("constant") => Arrivals::Constant,
            Some("poisson") => Arrivals::Poisson,
            Some(other) => return Err(Failure::usage(format!("--arrivals: '{other}' is not constant or poisson"))),
        };
        let mut headers = request.headers.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
        let body = request.body.as_deref().map(body).transpose()?.unwrap_or_default();
        let said = &request.connection;
        connecting::refuse_contradictions(said)?;
        let elsewhere = Elsewhere { connect_to: said.connect_to.as_deref(), unix: said.unix.as_deref() };
        let file = request.file.as_deref().map(traffic_file::read).transpose()?;
        let in_file = file.as_ref().and_then(|file| file.base().map(str::to_owned));
        let address = request.target.clone().or_else(|| request.url.clone()).or(in_file).ok_or_else(|| {
            Failure::usage(
                "-f: the file does not say where to ask: add base = \"http://HOST:PORT\" to it, or --target URL",
            )
        })?;
        let target = Target::resolve(&address, elsewhere, request.allow_public)?;
        let mut carriage = connecting::carriage(said, &target, request.allow_public)?;
        let sources = connecting::sources(said)?;
        connecting::keep_reachable(&mut carriage.addresses, &sources)?;
        carriage.keep_alive = !request.no_keepalive;
        carriage.connections_max = u32::try_from(connections_max)
            .map_err(|_| Failure::usage("--max-connections: at most 4 billion connections"))?;
        if let Some(authorization) = target.authorization
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            headers.push(("Authorization".into(), authorization));
        }
        let method = match (&request.method, request.body.is_some()) {
            (Some(method), _) => method.clone(),
            (None, true) => "POST".into(),
            (None, false) => "GET".into(),
        };
        let origin = Origin { scheme: target.scheme, host: target.host, port: target.port };
        let traffic = match file {
            Some(file) => {
                file.traffic(origin, &target.path, &RequestDefaults { headers, ok_status, timeout_ns }, request.redact)
            }
            None => {
                let asked = Request { method, target: target.path, headers, body };
                let route = Route { ok_status, timeout_ns, ..Route::new(asked) };
                Traffic { redact: request.redact, ..Traffic::one(origin, route) }
            }
        };
        let mut load = Load::new(LoadShape::Closed { users: Curve::constant(1.0) });
        load.seed = generator.seed.unwrap_or_else(fresh_seed);
        load.grace_ns = traffic.timeout_ns_max().min(load.grace_ns);
        let plan = Plan { traffic, load, carriage };
        // A server on the same machine is left a core for each of ours, unless each request opens a connection: half of what
        // that costs is the kernel's work on our side, and one thread would be the limit.
        let default_threads = if target.local && !request.no_keepalive { (cores / 2).max(1) } else { cores };
        let workers = threads.map_or(default_threads, |threads| threads as u32);
        let injector = Injector { workers, spin: generator.spin, sources };
        plimsoll_engine::tls_client(&plan).map_err(|e| connecting::tls_refused(&e))?;
        match request.file {
            Some(_) => traffic_file::encodes(&plan)?,
            None => {
                let [only, ..] = plan.traffic.routes.as_slice() else { return Err(Failure::usage("nothing is asked")) };
                plimsoll_engine::encode_request(&plan, &only.request).map_err(|e| Failure::usage(e.to_string()))?;
            }
        }
        let fixed = Fixed { threads: threads.is_some(), connections: request.max_connections.is_some() };
        Ok(Base { plan, address, injector, local: target.local, allow_public: request.allow_public, arrivals, fixed })
    }

    /// The base with a closed load of `users`.
    pub fn closed(&self, users: Curve) -> Plan {
        let mut plan = self.plan.clone();
        plan.load.shape = LoadShape::Closed { users };
        plan
    }

    /// Who makes a load of its own: no more workers than it has users, or requests.
    pub fn injector_for(&self, load: &Load) -> Injector {
        let users = match &load.shape {
            LoadShape::Closed { users } => users.max() as u64,
            LoadShape::Open { .. } => u64::MAX,
        };
        self.injector.at_most(users.min(load.requests_max.unwrap_or(u64::MAX)))
    }
}

/// A seed that differs from run to run; it is shown, so that a run can be repeated.
/// There is one for a process, so that the record of its command line can say it.
pub fn fresh_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        plimsoll_model::rng::mix(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32) >> 16
    })
}

/// The one load of `plimsoll run`.
pub fn run_plan(args: &RunArgs) -> Result<(Base, Plan), Failure> {
    if args.rate.is_some() && args.concurrency.is_some() {
        return Err(Failure::usage(
            "--rate and -c exclude each other: a rate takes the connections it needs; limit those with --max-connections",
        ));
    }
    if args.generator.arrivals.is_some() && args.rate.is_none() {
        return Err(Failure::usage("--arrivals: only an open load has arrivals to space; add --rate"));
    }
    if args.request.max_connections.is_some() && args.rate.is_none() {
        return Err(Failure::usage("--max-connections: a closed load has one connection for each user; set -c"));
    }
    let duration_ns = args.duration.as_deref().map(|text| positive_time("--duration", text)).transpose()?;
    let requests_max = args.requests.as_deref().map(|text| positive("--requests", text)).transpose()?;
    let warmup_ns = flag("--warmup", parse_duration_ns(&args.warmup))?;
    let (name, text) = match &args.rate {
        Some(rate) => ("--rate", rate.as_str()),
        None => ("--concurrency", args.concurrency.as_deref().unwrap_or("10")),
    };
    let curve = flag(name, Curve::parse(text))?;
    if args.rate.is_none() {
        if let Some(level) = curve.stages.iter().flat_map(|s| [s.from, s.to]).find(|level| level.fract() != 0.0) {
            return Err(Failure::usage(format!("--concurrency: {level} is not a whole number of users")));
        }
        if curve.max() > 1e6 {
            return Err(Failure::usage("--concurrency: at most 1M users"));
        }
    } else if curve.max() > 1e8 {
        return Err(Failure::usage("--rate: at most 100M requests a second"));
    }
    if let (Some(stages_ns), Some(_)) = (curve.duration_ns(), duration_ns) {
        let seconds = stages_ns as f64 / 1e9;
        return Err(Failure::usage(format!("--duration: the stages of {name} last {seconds} s already; leave it out")));
    }
    let base = Base::new(&args.request, &args.generator)?;
    let mut plan = match args.rate {
        None => base.closed(curve.clone()),
        Some(_) => {
            let mut plan = base.plan.clone();
            plan.load.shape = LoadShape::Open { rate: curve.clone(), arrivals: base.arrivals };
            plan
        }
    };
    if args.rate.is_none() && plan.carriage.keep_alive {
        // Opening them is no part of what is asked; a load without keep-alive opens them as it goes.
        plan.load.connections_ready = curve.stages.first().map_or(0, |stage| stage.from as u32);
    }
    plan.load.requests_max = requests_max;
    plan.load.warmup_ns = warmup_ns;
    plan.load.duration_ns = match (curve.duration_ns(), duration_ns, requests_max) {
        (Some(ns), _, _) | (None, Some(ns), _) => Some(ns),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(10_000_000_000),
    };
    // Long runs keep whole seconds: an hour in ticks of 100 ms would fill memory with little to see.
    if plan.load.duration_ns.is_none_or(|ns| ns > 120_000_000_000) {
        plan.load.interval_ns = 1_000_000_000;
    }
    let needed = match &plan.load.shape {
        LoadShape::Open { .. } => Schedule::compile(&plan.load).arrivals_total(),
        LoadShape::Closed { .. } => plan.load.requests_max,
    };
    traffic_file::rows_suffice(&plan, needed)?;
    Ok((base, plan))
}
