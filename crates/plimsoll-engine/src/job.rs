//! What one worker is to do: its share of a plan, taken apart once, so that nothing is looked up for a request.

use crate::addresses::{Addresses, Resolved};
use crate::source::Source;
use plimsoll_model::{Plan, Schedule, Spin, Stripe};
use plimsoll_wire::tls;
use std::sync::Arc;

/// Connections opened a second by all workers while making ready: what a server on the same two cores can accept.
const OPENED_PER_S_MAX: u64 = 20_000;

/// What the workers of a load start from, beside its plan.
#[derive(Debug, Default)]
pub struct Resources {
    /// Set when names are resolved again during the load.
    pub resolved: Option<Arc<Resolved>>,
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
}

impl Job {
    /// Worker `index` of the plan's workers, on stripe `stripe` of the whole.
    pub fn new(
        plan: &Plan,
        schedule: &Arc<Schedule>,
        request: &Arc<[u8]>,
        resources: &Resources,
        stripe: Stripe,
        index: u64,
        spare_core: bool,
    ) -> Job {
        let workers = u64::from(plan.workers.max(1));
        let share = Stripe { index, of: workers };
        Job {
            index: index as usize,
            number: (stripe.index * workers + index) as u32,
            source: Source::new(plan, request),
            addresses: Addresses::new(plan, stripe.index * workers + index, resources.resolved.clone()),
            tls: resources.tls.as_ref().map(tls::Client::for_thread),
            ramp_per_s: (OPENED_PER_S_MAX / workers).max(1),
            workers,
            schedule: Arc::clone(schedule),
            stripe: stripe.split(index, workers),
            ends_by_number: ends_by_number(plan, schedule),
            grace_ns: plan.grace_ns,
            connections_max: share.count_of(u64::from(plan.connections_max)) as usize,
            connections_ready: share.count_of(u64::from(plan.connections_ready)) as u32,
            spin: plan.spin,
            spare_core,
        }
    }
}

/// Whether the number of requests ends the open load of `plan` before its duration does.
fn ends_by_number(plan: &Plan, schedule: &Schedule) -> bool {
    if plan.requests_max.is_none() || schedule.end_ns().is_none() {
        return plan.requests_max.is_some();
    }
    let by_time = Schedule::compile(&Plan { requests_max: None, ..plan.clone() });
    schedule.arrivals_total() < by_time.arrivals_total()
}
