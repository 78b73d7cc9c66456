//! What one worker is to do: its share of a plan, taken apart once, so that nothing is looked up
//! for a request.

use crate::addresses::{Addresses, ResolvedAddresses};
use crate::source::Source;
use plimsoll_model::{HttpChoice, Injector, Load, Plan, Redact, Schedule, Spin, Stripe};
use plimsoll_wire::tls;
use std::sync::Arc;

/// Connections opened a second by all workers while making ready: what a server on the same two
/// cores can accept.
const OPENED_PER_S_MAX: u64 = 20_000;

/// What the workers of a load start from, beside its plan.
#[derive(Debug)]
pub struct Resources {
    /// What is asked.
    pub source: Source,
    /// Set when names are resolved again during the load.
    pub resolved: Option<Arc<ResolvedAddresses>>,
    /// Set when connections speak TLS.
    pub tls: Option<tls::Client>,
}

/// What one worker is to do.
pub struct Job {
    /// Number of the worker in this process, and among all machines.
    pub index: usize,
    pub number: u32,
    /// What is asked.
    pub source: Source,
    /// Where connections go.
    pub addresses: Addresses,
    /// Set when connections speak TLS.
    pub tls: Option<tls::Client>,
    /// Whether connections without TLS speak HTTP/2.
    pub plain_h2: bool,
    /// Exchanges at a time on a connection that can have several; of a closed load so many users
    /// share one.
    pub streams_max: u32,
    pub schedule: Arc<Schedule>,
    pub stripe: Stripe,
    /// Whether the number of requests ends an open load, and not its duration.
    pub ends_by_number: bool,
    pub grace_ns: u64,
    pub connections_max: usize,
    pub connections_ready: u32,
    /// Connections opened a second while making ready, at most.
    pub ramp_per_s: u64,
    /// Workers in this process.
    pub workers: u64,
    pub spin: Spin,
    pub spare_core: bool,
    /// What of failed answers is left out.
    pub redact: Redact,
}

impl Job {
    /// Worker `index` of the machine's, on the machine's part `whole` of the plan.
    pub fn new(
        plan: &Plan,
        injector: &Injector,
        schedule: &Arc<Schedule>,
        resources: &Resources,
        whole: Stripe,
        index: u64,
        spare_core: bool,
    ) -> Job {
        let workers = u64::from(injector.workers.max(1));
        // Its part of arrivals, users and connections alike.
        let stripe = whole.split(index, workers);
        let users = (!schedule.is_open()).then(|| schedule.users_max());
        let (ready, shared) = (u64::from(plan.load.connections_ready), u64::from(plan.carriage.streams_max.max(1)));
        // Users are divided, not their connections.
        let connections_ready = match users {
            // Opening its connection is a part of each request.
            _ if !plan.carriage.keep_alive => 0,
            Some(users) => stripe.count_of(ready * shared).min(stripe.count_of(users)).div_ceil(shared),
            None => stripe.count_of(ready.div_ceil(shared)),
        };
        Job {
            redact: plan.traffic.redact,
            index: index as usize,
            number: stripe.number() as u32,
            source: resources.source.for_worker(stripe, users),
            addresses: Addresses::new(
                &plan.carriage,
                &injector.sources,
                whole.number() * workers + index,
                resources.resolved.clone(),
            ),
            tls: resources.tls.as_ref().map(tls::Client::for_thread),
            plain_h2: plan.carriage.http == HttpChoice::H2,
            streams_max: plan.carriage.streams_max.max(1),
            ramp_per_s: (OPENED_PER_S_MAX / workers).max(1),
            workers,
            schedule: Arc::clone(schedule),
            stripe,
            ends_by_number: ends_by_number(&plan.load, schedule),
            grace_ns: plan.load.grace_ns,
            connections_max: stripe.count_of(u64::from(plan.carriage.connections_max)) as usize,
            connections_ready: connections_ready as u32,
            spin: injector.spin,
            spare_core,
        }
    }
}

/// Whether the number of requests ends the open `load` before its duration does.
fn ends_by_number(load: &Load, schedule: &Schedule) -> bool {
    if load.requests_max.is_none() || schedule.end_ns().is_none() {
        return load.requests_max.is_some();
    }
    let by_time = Schedule::compile(&Load { requests_max: None, ..load.clone() });
    schedule.arrivals_total() < by_time.arrivals_total()
}
