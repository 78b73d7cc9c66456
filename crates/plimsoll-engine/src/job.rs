//! The job of one worker: its share of a plan's load. The job is prepared once, so that sending a
//! request needs no lookup in the plan.

use crate::addresses::{AddressSequence, ResolvedAddresses};
use crate::source::RequestSource;
use plimsoll_model::{HttpChoice, Injector, Load, Plan, RedactionLevel, Schedule, Spin, Stripe};
use plimsoll_wire::tls;
use std::sync::Arc;

/// The maximum number of connections that all workers together open in a second during the
/// preparation. A server that shares two cores with plimsoll accepts about 20 000 connections in a
/// second.
const CONNECTS_PER_S_MAX: u64 = 20_000;

/// The resources that all workers of a load share, prepared before the load.
#[derive(Debug)]
pub struct SharedWorkerResources {
    /// The source of requests, from which each worker's source is derived.
    pub source: RequestSource,
    /// The resolved addresses that all workers share; `None`: host names are not resolved during
    /// the load.
    pub resolved: Option<Arc<ResolvedAddresses>>,
    /// The TLS client, if connections use TLS.
    pub tls: Option<tls::Client>,
}

/// The job of one worker: its share of the load, and all data that the worker needs for it.
pub struct WorkerJob {
    /// The index of the worker within this process.
    pub index: usize,
    /// The number of the worker among the workers of all machines.
    pub number: u32,
    /// The source of this worker's requests.
    pub source: RequestSource,
    /// The addresses of this worker's connections.
    pub addresses: AddressSequence,
    /// The TLS client, if connections use TLS.
    pub tls: Option<tls::Client>,
    /// Whether connections without TLS use HTTP/2.
    pub plain_h2: bool,
    /// The maximum number of concurrent exchanges on a connection. In a closed loop, this number of
    /// users share one connection.
    pub streams_max: u32,
    pub schedule: Arc<Schedule>,
    /// The share of the arrivals, users and connections that this worker has.
    pub stripe: Stripe,
    /// Whether the open loop ends because its maximum number of requests is reached before its
    /// duration has passed.
    pub ends_at_request_limit: bool,
    pub grace_ns: u64,
    pub connections_max: usize,
    pub connections_ready: u32,
    /// The maximum number of connections that this worker opens in a second during the preparation.
    pub connects_per_s_max: u64,
    /// The number of workers in this process.
    pub workers: u64,
    pub spin: Spin,
    /// Whether this process may use more cores than it has workers.
    pub spare_core: bool,
    /// How much of stored failed responses is redacted.
    pub redact: RedactionLevel,
}

impl WorkerJob {
    /// Creates the job of worker `index`. `whole` is this machine's share of the load.
    pub fn new(
        plan: &Plan,
        injector: &Injector,
        schedule: &Arc<Schedule>,
        resources: &SharedWorkerResources,
        whole: Stripe,
        index: u64,
        spare_core: bool,
    ) -> WorkerJob {
        let workers = u64::from(injector.workers.max(1));
        // The worker's share of arrivals, users and connections.
        let stripe = whole.split(index, workers);
        let users = (!schedule.is_open()).then(|| schedule.users_max());
        let (ready, shared) =
            (u64::from(plan.load.connections_ready), u64::from(plan.connection_plan.streams_max.max(1)));
        // In a closed loop, users are divided among workers, and each worker opens the connections
        // of its users.
        let connections_ready = match users {
            // Without keep-alive, each request opens a new connection, so no connection is opened
            // before the load.
            _ if !plan.connection_plan.keep_alive => 0,
            Some(users) => {
                stripe.count_items_below(ready * shared).min(stripe.count_items_below(users)).div_ceil(shared)
            }
            None => stripe.count_items_below(ready.div_ceil(shared)),
        };
        WorkerJob {
            redact: plan.traffic.redact,
            index: index as usize,
            number: stripe.unique_number() as u32,
            source: resources.source.for_worker(stripe, users),
            addresses: AddressSequence::new(
                &plan.connection_plan,
                &injector.sources,
                whole.unique_number() * workers + index,
                resources.resolved.clone(),
            ),
            tls: resources.tls.as_ref().map(tls::Client::for_thread),
            plain_h2: plan.connection_plan.http == HttpChoice::H2,
            streams_max: plan.connection_plan.streams_max.max(1),
            connects_per_s_max: (CONNECTS_PER_S_MAX / workers).max(1),
            workers,
            schedule: Arc::clone(schedule),
            stripe,
            ends_at_request_limit: ends_at_request_limit(&plan.load, schedule),
            grace_ns: plan.load.grace_ns,
            connections_max: stripe.count_items_below(u64::from(plan.connection_plan.connections_max)) as usize,
            connections_ready: connections_ready as u32,
            spin: injector.spin,
            spare_core,
        }
    }
}

/// Returns whether an open loop ends because its maximum number of requests is reached before its
/// duration has passed.
fn ends_at_request_limit(load: &Load, schedule: &Schedule) -> bool {
    if load.requests_max.is_none() || schedule.end_ns().is_none() {
        return load.requests_max.is_some();
    }
    let by_time = Schedule::compile(&Load { requests_max: None, ..load.clone() });
    schedule.arrivals_total() < by_time.arrivals_total()
}
