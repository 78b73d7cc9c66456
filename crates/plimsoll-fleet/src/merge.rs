//! Merges the parts of a load from several agents into one run ([`LoadMerger`]). The measurements
//! of the parts are summed like the measurements of worker threads on one machine.
//!
//! A part is the share of the load that one agent sends. After the loss of an agent, the load ends
//! or continues with the other agents. If the load continues, requests that the lost agent did not
//! send count as scheduled and unsent.
//!
//! Not here: the transport of ticks (the measurements of 100 ms each), and stopping agents.

use crate::message::PartTotals;
use plimsoll_engine::{ArrivalRoutes, Collector, PartReport, TickListener};
use plimsoll_model::bounds::INTERVALS_MAX;
use plimsoll_model::{
    AgentAccount, EarlyStopReason, Histogram, Injector, Interval, Ledger, Plan, RouteNumber, Run, Schedule, Stripe,
};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Merges the results of several agents, while their load is in progress, into one run.
pub struct LoadMerger {
    collector: Collector,
    plan: Plan,
    schedule: Arc<Schedule>,
    parts: Vec<LoadPart>,
}

/// One agent's share of the load, with the agent's account (its summary for the run file).
struct LoadPart {
    stripe: Stripe,
    account: AgentAccount,
    /// The number of ticks (100 ms each) whose measurements the collector has received.
    ticks: u64,
    ledgers: BTreeMap<RouteNumber, Ledger>,
    lag: Histogram,
    /// For each worker thread, the busy time and the wall time inside the measured window, ns.
    workers: BTreeMap<u32, (u64, u64)>,
    state: LoadPartState,
}

enum LoadPartState {
    /// The agent is still running its share of the load.
    Running,
    /// The agent has ended its share, or the agent is lost and the load ends. The value is the end
    /// of the share's measured window, ns since the start of the schedule.
    Done(u64),
    /// The agent is lost, and the load continues with the other agents. The requests that the lost
    /// agent did not send are counted as unsent.
    Lost(Box<UnsentArrivals>),
}

/// The requests that a lost agent did not send.
struct UnsentArrivals {
    arrivals: Peekable<Box<dyn Iterator<Item = (u64, u64)>>>,
    routes: Option<ArrivalRoutes>,
    /// The counts to add to the lost agent's next tick (100 ms): requests in flight at the loss,
    /// and requests due earlier but never sent. `None` once these counts are added.
    carried_counts: Option<Interval>,
}

impl LoadMerger {
    /// Creates a merger, without results yet, of a load that starts at `origin_ns`. `agents` and
    /// `stripes` (shares of the schedule) have the same order.
    pub fn new(plan: &Plan, agents: &[(String, Injector)], stripes: &[Stripe], origin_ns: u64) -> LoadMerger {
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let injectors = agents.iter().map(|(_, injector)| injector.clone()).collect();
        let mut collector = Collector::new(plan.record(), injectors, agents.len(), &schedule);
        collector.set_schedule_start(origin_ns);
        let part = |((name, injector), stripe): (&(String, Injector), &Stripe)| LoadPart {
            stripe: *stripe,
            account: AgentAccount::new(name, injector.workers),
            ticks: 0,
            ledgers: BTreeMap::new(),
            lag: Histogram::new(),
            workers: BTreeMap::new(),
            state: LoadPartState::Running,
        };
        let parts = agents.iter().zip(stripes).map(part).collect();
        LoadMerger { collector, plan: plan.clone(), schedule, parts }
    }

    /// Returns the account (the summary in the run file) of the agent with the share number `part`,
    /// so that the caller can complete the account.
    pub fn account_mut(&mut self, part: usize) -> &mut AgentAccount {
        &mut self.parts[part].account
    }

    /// Adds the measurements of an agent's next tick (100 ms). Returns `Break` if all agents must
    /// stop. An error means that the measurements cannot belong to the agent's share of this load,
    /// so the caller must mark the agent as lost.
    pub fn add_tick(
        &mut self,
        part: usize,
        index: u32,
        interval: Interval,
        on_tick: &mut TickListener,
    ) -> Result<ControlFlow<()>, String> {
        let made = &self.parts[part];
        if u64::from(index) < made.ticks
            || u64::from(index) > INTERVALS_MAX
            || !matches!(made.state, LoadPartState::Running)
        {
            return Err("the agent sent measurements of an unknown load".to_owned());
        }
        let flow = self.send_to_collector(part, u64::from(index), interval, on_tick);
        let counted = self.count_unsent(self.complete_tick_count(), on_tick);
        Ok(if flow.is_break() { flow } else { counted })
    }

    fn send_to_collector(
        &mut self,
        part: usize,
        index: u64,
        interval: Interval,
        on_tick: &mut TickListener,
    ) -> ControlFlow<()> {
        let start_ns = index * Plan::TICK_NS;
        let end_ns = self.schedule.end_ns().unwrap_or(u64::MAX);
        let is_measured = (self.schedule.measured_from_ns()..end_ns).contains(&start_ns);
        let made = &mut self.parts[part];
        made.ticks = index + 1;
        for (route, figures) in interval.routes.iter() {
            made.ledgers.entry(route).or_default().merge(&figures.ledger);
            made.account.ledger.merge(&figures.ledger);
        }
        made.lag.merge_sparse(&interval.load.lag);
        for worker in interval.load.workers.iter().filter(|_| is_measured) {
            let sum = made.workers.entry(worker.worker).or_default();
            *sum = (sum.0.saturating_add(worker.work_ns), sum.1.saturating_add(worker.wall_ns));
        }
        self.collector.add_report(PartReport::Tick { part, index, interval }, on_tick)
    }

    /// Ends the share of one agent with the totals that the agent sent. The error says that the
    /// totals differ from the sums of the agent's ticks, or why the agent ended early. After an
    /// error, the caller must mark the agent as lost.
    pub fn finish_part(
        &mut self,
        part: usize,
        seal: PartTotals,
        on_tick: &mut TickListener,
    ) -> Result<ControlFlow<()>, String> {
        let made = &mut self.parts[part];
        if !matches!(made.state, LoadPartState::Running) {
            return Ok(ControlFlow::Continue(()));
        }
        if seal.ledger != made.account.ledger {
            return Err("the agent's final totals differ from the sums of its intervals".to_owned());
        }
        if let Some(why) = seal.failure_reason {
            return Err(why);
        }
        made.state = LoadPartState::Done(seal.window_end_ns);
        let PartTotals { window_end_ns, failed_answers, has_no_more_requests, .. } = seal;
        let flow = self
            .collector
            .add_report(PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests }, on_tick);
        let counted = self.count_unsent(self.complete_tick_count(), on_tick);
        Ok(if flow.is_break() { flow } else { counted })
    }

    /// Marks the agent with the share number `part` as lost; `why` is a sentence without the
    /// agent's name. The agent's requests without an outcome count as in flight. If the load
    /// continues, the agent's remaining requests count as unsent.
    ///
    /// `may_continue` says whether the load may continue without the agent. Returns `Break` if all
    /// agents must stop.
    pub fn mark_part_lost(
        &mut self,
        part: usize,
        why: &str,
        may_continue: bool,
        on_tick: &mut TickListener,
    ) -> ControlFlow<()> {
        if !matches!(self.parts[part].state, LoadPartState::Running) {
            return ControlFlow::Continue(());
        }
        let name = &self.parts[part].account.name;
        let stop = EarlyStopReason::CannotContinue(format!("agent {name} was lost: {why}"));
        self.parts[part].account.loss_reason = Some(why.to_owned());
        if !(may_continue && self.parts.iter().any(|part| part.account.loss_reason.is_none())) {
            let made = &mut self.parts[part];
            let in_flight: u64 = made.ledgers.values().map(Ledger::requests_without_outcome).sum();
            made.account.ledger.in_flight += in_flight;
            made.state = LoadPartState::Done(made.ticks * Plan::TICK_NS);
            return self.collector.add_report(PartReport::Lost { part, why: stop }, on_tick);
        }
        self.parts[part].state = LoadPartState::Lost(Box::new(self.unsent_arrivals(part)));
        self.count_unsent(self.complete_tick_count(), on_tick)
    }

    /// Computes the requests that a lost agent did not send.
    fn unsent_arrivals(&self, part: usize) -> UnsentArrivals {
        let made = &self.parts[part];
        let mut owed = Interval::default();
        for (route, ledger) in &made.ledgers {
            owed.routes.figures_mut(*route).ledger.in_flight += ledger.requests_without_outcome();
        }
        let (from_ns, next_ns) = (self.schedule.measured_from_ns(), made.ticks * Plan::TICK_NS);
        let drawn = self.plan.with_drawn_arrivals();
        let plan = drawn.as_deref().unwrap_or(&self.plan);
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let mut routes = ArrivalRoutes::new(plan, made.stripe).ok();
        let mut due: BTreeMap<RouteNumber, u64> = BTreeMap::new();
        let mut arrivals = schedule.arrivals_of_stripe(made.stripe).peekable();
        while let Some((number, start_ns)) = arrivals.next_if(|(_, start_ns)| *start_ns < next_ns) {
            let route = first_route(&mut routes, number);
            if let Some(route) = route.filter(|_| start_ns >= from_ns) {
                *due.entry(route).or_default() += 1;
            }
        }
        // Requests that were due before the agent was lost, but that the agent had not started,
        // count as unsent.
        for (route, due) in due {
            let begun = made.ledgers.get(&route).map_or(0, |ledger| ledger.scheduled);
            let ledger = &mut owed.routes.figures_mut(route).ledger;
            ledger.scheduled += due.saturating_sub(begun);
            ledger.unsent += due.saturating_sub(begun);
        }
        let arrivals: Box<dyn Iterator<Item = (u64, u64)>> = Box::new(arrivals);
        UnsentArrivals { arrivals: arrivals.peekable(), routes, carried_counts: Some(owed) }
    }

    /// Returns the number of ticks (100 ms each) whose measurements every active agent has
    /// delivered. Without active agents, returns the largest number of ticks of any agent that was
    /// not lost.
    fn complete_tick_count(&self) -> u64 {
        let making = self.parts.iter().filter(|part| matches!(part.state, LoadPartState::Running));
        let told = self.parts.iter().filter(|part| !matches!(part.state, LoadPartState::Lost(_)));
        making.map(|part| part.ticks).min().or_else(|| told.map(|part| part.ticks).max()).unwrap_or(0)
    }

    /// Counts the requests that lost agents did not send in the first `ticks` ticks (100 ms each)
    /// of the schedule.
    fn count_unsent(&mut self, ticks: u64, on_tick: &mut TickListener) -> ControlFlow<()> {
        let (mut flow, from_ns) = (ControlFlow::Continue(()), self.schedule.measured_from_ns());
        for part in 0..self.parts.len() {
            while self.parts[part].ticks < ticks {
                let LoadPart { ticks: index, state: LoadPartState::Lost(unsent), .. } = &mut self.parts[part] else {
                    break;
                };
                let index = *index;
                let interval = unsent.unsent_in_tick((index + 1) * Plan::TICK_NS, from_ns);
                if self.send_to_collector(part, index, interval, on_tick).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
        }
        flow
    }

    /// Whether the agent with the share number `part` still runs its share of the load.
    pub fn is_active(&self, part: usize) -> bool {
        matches!(self.parts[part].state, LoadPartState::Running)
    }

    /// Whether every agent has ended its share of the load or is lost.
    pub fn all_parts_ended(&self) -> bool {
        self.parts.iter().all(|part| !matches!(part.state, LoadPartState::Running))
    }

    /// Builds the merged run after all agents have ended their shares or are lost.
    pub fn into_run(mut self, on_tick: &mut TickListener) -> Run {
        let ended = |part: &LoadPart| if let LoadPartState::Done(end_ns) = part.state { Some(end_ns) } else { None };
        let window_end_ns = self.parts.iter().filter_map(ended).max().unwrap_or(0);
        // The unsent requests of lost agents count up to the time at which the last remaining agent
        // ended. If the schedule was completed, all unsent requests count.
        let end_ns = self.schedule.end_ns().filter(|end_ns| *end_ns <= window_end_ns);
        let ticks = self.complete_tick_count().max(end_ns.map_or(0, |end_ns| end_ns.div_ceil(Plan::TICK_NS)));
        let _ = self.count_unsent(ticks, on_tick);
        for part in 0..self.parts.len() {
            if let LoadPart { ticks, state: LoadPartState::Lost(unsent), .. } = &mut self.parts[part] {
                // The remaining agents ended before the lost agent's next tick (100 ms), so the
                // counts that belong to this tick (`owed`) are added now.
                if let (index, Some(owed)) = (*ticks, unsent.carried_counts.take()) {
                    let _ = self.send_to_collector(part, index, owed, on_tick);
                }
                let (failed_answers, has_no_more_requests) = (Vec::new(), false);
                let done = PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests };
                let _ = self.collector.add_report(done, on_tick);
            }
        }
        let mut run = self.collector.finish();
        run.agents = self.parts.into_iter().map(|part| part.into_account(self.schedule.is_open())).collect();
        run.agents.sort_by(|a, b| a.name.cmp(&b.name));
        run
    }
}

impl LoadPart {
    fn into_account(self, is_open: bool) -> AgentAccount {
        let shares = self.workers.values().filter(|sum| sum.1 > 0).map(|sum| sum.0 as f64 / sum.1 as f64);
        let lag_p99_ns = (is_open && self.lag.count() > 0).then(|| self.lag.quantile_ns(0.99));
        // The share of time in which the busiest worker thread worked is rounded to four decimal
        // places, so that run files store few digits.
        let work_share = (shares.fold(0.0, f64::max) * 1e4).round() / 1e4;
        AgentAccount { lag_p99_ns, work_share, ..self.account }
    }
}

impl UnsentArrivals {
    /// Counts the lost agent's requests in the tick that ends at `end_ns` as unsent, and adds the
    /// counts from its loss (`carried_counts`). Requests before `from_ns` (the warm-up) do not
    /// count.
    fn unsent_in_tick(&mut self, end_ns: u64, from_ns: u64) -> Interval {
        let mut interval = self.carried_counts.take().unwrap_or_default();
        while let Some((number, start_ns)) = self.arrivals.next_if(|(_, start_ns)| *start_ns < end_ns) {
            let route = first_route(&mut self.routes, number);
            if let Some(route) = route.filter(|_| start_ns >= from_ns) {
                let ledger = &mut interval.routes.figures_mut(route).ledger;
                ledger.scheduled += 1;
                ledger.unsent += 1;
            }
        }
        interval
    }
}

/// Returns the route of the first request of an arrival, and route 0 if the routes are unknown.
fn first_route(routes: &mut Option<ArrivalRoutes>, arrival: u64) -> Option<RouteNumber> {
    routes.as_mut().map_or(Some(0), |routes| routes.first_route(arrival))
}
