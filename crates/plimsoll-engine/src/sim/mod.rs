//! Simulates the environment of the engine for tests. The real worker and the real collector run on
//! one thread and on simulated time, against a simulated server. The seed determines every event of
//! a simulation.
//!
//! [`net`] is the simulated clock and network, and [`server`] the simulated server. [`simulate`]
//! executes a plan, and [`verify`] compares the run with the counts of the simulation. Not here:
//! threads, sleeping, the real network.

mod net;
mod server;
mod streams;
mod tests;

use crate::collect::{Collector, PartReport, Tick};
use crate::job::{SharedWorkerResources, WorkerJob};
use crate::source::RequestSource;
use crate::worker::Worker;
use net::{SimCounts, SimMachine, SimNet, SimWorld};
use plimsoll_model::{EarlyStopReason, Injector, Plan, RequestFailure, Run, Schedule, Stripe};
use server::SimServer;
use std::cell::RefCell;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of a simulated run: the run as the engine recorded it, and the simulation's own
/// counts.
#[derive(Debug)]
pub struct SimulatedRun {
    pub run: Run,
    pub schedule: Arc<Schedule>,
    /// The counts of the simulation, summed over all workers.
    pub account: SimCounts,
    /// The longest time that a worker took to prepare for the load, ns.
    pub prepared_ns: u64,
    /// The schedule time at which the last worker ended, ns.
    pub finish_ns: u64,
}

/// A plan for a simulation, and the simulated machine that executes the plan.
#[derive(Debug, Clone)]
pub struct SimulatedPlan {
    pub plan: Plan,
    pub injector: Injector,
}

impl SimulatedPlan {
    /// Returns the plan with `change` applied.
    pub fn with_change(mut self, change: impl FnOnce(&mut SimulatedPlan)) -> SimulatedPlan {
        change(&mut self);
        self
    }
}

impl Deref for SimulatedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl DerefMut for SimulatedPlan {
    fn deref_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }
}

/// The parameters of a simulation.
pub struct Simulation<'a> {
    pub plan: &'a SimulatedPlan,
    pub stripe: Stripe,
    pub server: &'a SimServer,
    pub machine: SimMachine,
    pub seed: u64,
}

/// Executes `plan` on an ideal machine against `server`, with random numbers from `seed`.
pub fn simulate(plan: &SimulatedPlan, server: &SimServer, seed: u64) -> SimulatedRun {
    Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server, machine: SimMachine::default(), seed }
        .run(&mut |_| ControlFlow::Continue(()))
}

impl Simulation<'_> {
    /// Executes this simulation's stripe (share) of the plan. Each worker runs in a separate
    /// simulated world, one worker after another. Because workers run one after another, `on_tick`
    /// can stop a run only if there is a single worker. `on_tick` is also called once before the
    /// preparation.
    pub fn run(&self, on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<EarlyStopReason>) -> SimulatedRun {
        self.run_with_modified_sources(&mut |_| (), on_tick)
    }

    /// Like [`Simulation::run`], but `sourced` first modifies each worker's source of requests.
    pub fn run_with_modified_sources(
        &self,
        sourced: &mut dyn FnMut(&mut RequestSource),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<EarlyStopReason>,
    ) -> SimulatedRun {
        let SimulatedPlan { plan, injector } = self.plan;
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let source = RequestSource::compile(plan).expect("requests that can be written");
        // The simulated server compares all received bytes with a single request, so the routes of
        // a plan may differ only in their expectations of responses.
        let request = source.route(0).request.clone();
        let resources = SharedWorkerResources { source, resolved: None, tls: None };
        let workers = u64::from(injector.workers);
        let mut collector = Collector::new(plan.record(), vec![injector.clone()], workers as usize, &schedule);
        let stop = Arc::new(AtomicBool::new(false));
        let heed = |flow: ControlFlow<()>| {
            if flow.is_break() {
                stop.store(true, Ordering::Relaxed);
            }
        };
        heed(collector.notify_during_preparation(on_tick));
        let mut account = SimCounts::default();
        let (mut prepared_ns, mut finish_ns) = (0, 0);
        let mut kept = Vec::new();
        for index in 0..workers {
            let seed = plimsoll_model::rng::mix_bits(self.seed ^ plimsoll_model::rng::mix_bits(index + 1));
            let world = Rc::new(RefCell::new(SimWorld::new(self.server, self.machine, request.h1(), seed)));
            let mut job = WorkerJob::new(plan, injector, &schedule, &resources, self.stripe, index, true);
            sourced(&mut job.source);
            let mut worker = Worker::new(SimNet(Rc::clone(&world)), job, Arc::clone(&stop));
            let began_ns = world.borrow().now_ns();
            worker.open_ready_connections();
            prepared_ns = prepared_ns.max(world.borrow().now_ns() - began_ns);
            let origin_ns = world.borrow().now_ns() + 1_000_000;
            world.borrow_mut().set_origin(origin_ns);
            worker.run(origin_ns, &mut |reported| match workers {
                1 => heed(collector.add_report(reported, on_tick)),
                _ => kept.push(reported),
            });
            account.add(&world.borrow().account);
            finish_ns = finish_ns.max(world.borrow().now_ns() - origin_ns);
        }
        // The reports are sorted as if the workers had run concurrently.
        kept.sort_by_key(|reported| match reported {
            PartReport::Tick { index, .. } => *index,
            PartReport::Done { .. } | PartReport::Lost { .. } => u64::MAX,
        });
        kept.into_iter().for_each(|reported| heed(collector.add_report(reported, on_tick)));
        SimulatedRun { run: collector.finish(), schedule, account, prepared_ns, finish_ns }
    }
}

/// Checks the invariants of every run. The ledger accounts for every request, and all other figures
/// agree with the ledger. The counts of the worker equal the counts of the simulation. The error
/// text names the violated invariant.
pub fn verify(sim: &SimulatedRun, server: &SimServer) -> Result<(), String> {
    let (run, account) = (&sim.run, &sim.account);
    let plan = &run.plan;
    let totals = run.totals();
    let ledger = &totals.routes_sum.ledger;
    let timeouts = ledger.failed[RequestFailure::Timeout as usize];
    let statuses: u64 = totals.routes_sum.statuses.iter().map(|(_, count)| count).sum();
    let claim = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what}: {ledger:?}, {totals:?}, {account:?}")),
    };
    claim(ledger.counts_add_up(), "the ledger closes")?;
    claim(
        totals.routes_sum.response.count() == ledger.succeeded + timeouts,
        "response times are of successes and timeouts",
    )?;
    claim(
        totals.routes_sum.failed.count() == ledger.failed_total() - timeouts,
        "other failures have their own histogram",
    )?;
    claim(totals.routes_sum.ttfb.count() == ledger.succeeded, "every success has a first byte")?;
    let unsent_timeouts = totals.routes_sum.response.count().checked_sub(totals.routes_sum.service.count());
    claim(unsent_timeouts.is_some_and(|count| count <= timeouts), "only a timeout lacks a service time")?;
    let answers = ledger.response_count();
    claim(statuses == answers, "every answer has a status, and nothing else has")?;
    if plan.load.warmup_ns == 0 {
        claim(totals.routes_sum.succeeded_in_window <= ledger.succeeded, "successes in the window are successes")?;
    }
    claim(totals.load.connections_opened == account.connected, "connections opened are those that stood")?;
    claim(totals.load.bytes_out == account.bytes_sent, "bytes sent are those that were taken")?;
    claim(totals.load.bytes_in == account.bytes_read, "bytes received are those that were read")?;
    let of_answers = totals.routes_sum.answers_bytes + totals.load.surplus_bytes;
    claim(of_answers <= totals.load.bytes_in, "what is counted by route was received")?;
    claim(account.streams_over == 0, "no more streams are opened than the server takes")?;
    claim(
        totals.load.resent >= account.unprocessed_streams || timeouts > 0,
        "what the server has not taken is sent again",
    )?;
    // Over HTTP/2 only bytes of content are counted by route.
    if ledger.failed_total() == 0 && plan.load.warmup_ns == 0 && server.h2.is_none() {
        claim(of_answers == totals.load.bytes_in, "all that was received is of an answer, or surplus")?;
    }
    claim(account.bytes_wrong == 0, "every byte sent is the request's")?;
    if sim.schedule.is_open() {
        claim(
            account.connections_max <= u64::from(plan.connection_plan.connections_max),
            "connections stay below their maximum",
        )?;
    } else {
        claim(account.connections_max <= sim.schedule.users_max(), "a user has one connection")?;
    }
    // No response is faster than the round trip of the network. A response that the server sends
    // before the end of its request needs no service time, so only the round trip is certain.
    let way_ns = 2 * server.latency_ns;
    claim(
        totals.routes_sum.ttfb.count() == 0 || totals.routes_sum.ttfb.min_ns() >= way_ns,
        "no answer comes before its question",
    )?;
    for q in [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let [response, service, ttfb] =
            [&totals.routes_sum.response, &totals.routes_sum.service, &totals.routes_sum.ttfb];
        let (what, bounds) =
            (format!("one clock contains the other at {q}"), (service.quantile_ns(q), ttfb.quantile_ns(q)));
        // A response time is at least the service time, and a service time at least the time to
        // first byte. Above any bound lie at least as many response times as service times, and at
        // least as many service times as times to first byte.
        claim(response.count_above(bounds.0) >= service.count_above(bounds.0), &what)?;
        claim(service.count_above(bounds.1) >= ttfb.count_above(bounds.1), &what)?;
        if unsent_timeouts == Some(0) {
            claim(response.quantile_ns(q) >= service.quantile_ns(q), &what)?;
        }
        if timeouts == 0 {
            claim(service.quantile_ns(q) >= ttfb.quantile_ns(q), &what)?;
        }
    }
    let (from_ns, to_ns) = run.window_ns;
    claim(from_ns <= to_ns && to_ns <= sim.finish_ns, "the window ends before the run does")?;
    claim(from_ns == sim.schedule.measured_from_ns().min(to_ns), "the window begins with what is measured")?;
    let (mut work_ns, mut wall_ns) = (0, 0);
    for worker in &totals.load.workers {
        (work_ns, wall_ns) = (work_ns + worker.work_ns, wall_ns + worker.wall_ns);
        claim(worker.work_ns <= worker.wall_ns, "work takes no longer than there was time")?;
        claim(worker.wall_ns <= sim.finish_ns, "workers' time ends with the run")?;
    }
    let looked_ns: u64 = run.intervals.values().map(|i| i.load.looked_ns).sum();
    claim(looked_ns <= wall_ns - work_ns, "who works does not look around in vain")?;
    // The integral of requests in flight over time equals the sum of the response times of all
    // requests.
    let in_flight_ns: u64 = run.intervals.values().map(|i| i.load.in_flight_ns).sum();
    if plan.load.warmup_ns == 0 && ledger.in_flight == 0 && timeouts == 0 {
        let took_ns: u128 =
            run.intervals.values().map(|i| i.all_routes().response.sum_ns() + i.all_routes().failed.sum_ns()).sum();
        claim(u128::from(in_flight_ns) == took_ns, &format!("{in_flight_ns} in flight is {took_ns} taken"))?;
    }
    Ok(())
}
