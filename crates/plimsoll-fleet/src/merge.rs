//! The parts of a load that agents make become one run ([`Merge`]): their ticks add up as those of
//! the workers of one machine do. A part whose agent is lost either ends the load, or goes on as
//! what was scheduled and not sent.
//!
//! Not here: how ticks come here, and who is told to stop.

use crate::message::Seal;
use plimsoll_engine::{ArrivalRoutes, Collector, PartReport, TickListener};
use plimsoll_model::bounds::INTERVALS_MAX;
use plimsoll_model::{
    AgentAccount, Histogram, Injector, Interval, Ledger, Plan, RouteNumber, Run, Schedule, Stop, Stripe,
};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A load that is made in parts.
pub struct Merge {
    collector: Collector,
    plan: Plan,
    schedule: Arc<Schedule>,
    parts: Vec<LoadPart>,
}

/// One of them, and who makes it.
struct LoadPart {
    stripe: Stripe,
    account: AgentAccount,
    /// How many ticks of it were handed on.
    ticks: u64,
    ledgers: BTreeMap<RouteNumber, Ledger>,
    lag: Histogram,
    /// Work and wall time of each worker inside the measured window.
    workers: BTreeMap<u32, (u64, u64)>,
    state: MergedPart,
}

enum MergedPart {
    /// Its agent makes it.
    Made,
    /// Its agent has made it: where its part of the window ended.
    Done(u64),
    /// Its agent is lost, and what it had not sent yet is counted.
    Counted(Box<UnsentArrivals>),
}

/// What nobody sends any more of a part.
struct UnsentArrivals {
    arrivals: Peekable<Box<dyn Iterator<Item = (u64, u64)>>>,
    routes: Option<ArrivalRoutes>,
    /// What the part owes in its next tick besides.
    owed: Option<Interval>,
}

impl Merge {
    /// Of a load whose parts these agents make, in their order, each with the stripe of its part.
    pub fn new(plan: &Plan, agents: &[(String, Injector)], stripes: &[Stripe], origin_ns: u64) -> Merge {
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let injectors = agents.iter().map(|(_, injector)| injector.clone()).collect();
        let mut collector = Collector::new(plan.record(), injectors, agents.len(), &schedule);
        collector.begin(origin_ns);
        let part = |((name, injector), stripe): (&(String, Injector), &Stripe)| LoadPart {
            stripe: *stripe,
            account: AgentAccount::new(name, injector.workers),
            ticks: 0,
            ledgers: BTreeMap::new(),
            lag: Histogram::new(),
            workers: BTreeMap::new(),
            state: MergedPart::Made,
        };
        let parts = agents.iter().zip(stripes).map(part).collect();
        Merge { collector, plan: plan.clone(), schedule, parts }
    }

    /// The account of a part, to be completed with what is known elsewhere.
    pub fn account_mut(&mut self, part: usize) -> &mut AgentAccount {
        &mut self.parts[part].account
    }

    /// Takes the next tick of a part. `Break`: all agents are to be told to stop. The error says
    /// that no agent says that.
    pub fn tick(
        &mut self,
        part: usize,
        index: u32,
        interval: Interval,
        on_tick: &mut TickListener,
    ) -> Result<ControlFlow<()>, String> {
        let made = &self.parts[part];
        if u64::from(index) < made.ticks || u64::from(index) > INTERVALS_MAX || !matches!(made.state, MergedPart::Made)
        {
            return Err("it sent an interval of an unknown load".to_owned());
        }
        let flow = self.hand_on(part, u64::from(index), interval, on_tick);
        let counted = self.count_unsent(self.ticks_complete(), on_tick);
        Ok(if flow.is_break() { flow } else { counted })
    }

    fn hand_on(&mut self, part: usize, index: u64, interval: Interval, on_tick: &mut TickListener) -> ControlFlow<()> {
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
        self.collector.take(PartReport::Tick { part, index, interval }, on_tick)
    }

    /// An agent has made its part. The error says that its totals are not those of its ticks, or
    /// why it ended before its time: the agent is lost then.
    pub fn seal(&mut self, part: usize, seal: Seal, on_tick: &mut TickListener) -> Result<ControlFlow<()>, String> {
        let made = &mut self.parts[part];
        if !matches!(made.state, MergedPart::Made) {
            return Ok(ControlFlow::Continue(()));
        }
        if seal.ledger != made.account.ledger {
            return Err("its final totals differ from the sums of its intervals".to_owned());
        }
        if let Some(why) = seal.died {
            return Err(why);
        }
        made.state = MergedPart::Done(seal.window_end_ns);
        let Seal { window_end_ns, failed_answers, used_up, .. } = seal;
        let flow = self.collector.take(PartReport::Done { part, window_end_ns, failed_answers, used_up }, on_tick);
        let counted = self.count_unsent(self.ticks_complete(), on_tick);
        Ok(if flow.is_break() { flow } else { counted })
    }

    /// The agent of a part is lost: a sentence about "it". What it had under way is in flight, what
    /// it had not sent yet is unsent; the load goes on, or ends.
    pub fn lose(&mut self, part: usize, why: &str, goes_on: bool, on_tick: &mut TickListener) -> ControlFlow<()> {
        if !matches!(self.parts[part].state, MergedPart::Made) {
            return ControlFlow::Continue(());
        }
        let name = &self.parts[part].account.name;
        let stop = Stop::Died(format!("agent {name} was lost: {why}"));
        self.parts[part].account.loss_reason = Some(why.to_owned());
        if !(goes_on && self.parts.iter().any(|part| part.account.loss_reason.is_none())) {
            let made = &mut self.parts[part];
            let in_flight: u64 = made.ledgers.values().map(Ledger::without_end).sum();
            made.account.ledger.in_flight += in_flight;
            made.state = MergedPart::Done(made.ticks * Plan::TICK_NS);
            return self.collector.take(PartReport::Lost { part, why: stop }, on_tick);
        }
        self.parts[part].state = MergedPart::Counted(Box::new(self.unsent(part)));
        self.count_unsent(self.ticks_complete(), on_tick)
    }

    /// What nobody sends any more of a part.
    fn unsent(&self, part: usize) -> UnsentArrivals {
        let made = &self.parts[part];
        let mut owed = Interval::default();
        for (route, ledger) in &made.ledgers {
            owed.routes.of_mut(*route).ledger.in_flight += ledger.without_end();
        }
        let (from_ns, next_ns) = (self.schedule.measured_from_ns(), made.ticks * Plan::TICK_NS);
        let drawn = self.plan.drawn();
        let plan = drawn.as_deref().unwrap_or(&self.plan);
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let mut routes = ArrivalRoutes::new(plan, made.stripe).ok();
        let mut due: BTreeMap<RouteNumber, u64> = BTreeMap::new();
        let mut arrivals = schedule.arrivals(made.stripe).peekable();
        while let Some((number, start_ns)) = arrivals.next_if(|(_, start_ns)| *start_ns < next_ns) {
            let route = first_route(&mut routes, number);
            if let Some(route) = route.filter(|_| start_ns >= from_ns) {
                *due.entry(route).or_default() += 1;
            }
        }
        // Those that were due, and that it had not begun.
        for (route, due) in due {
            let begun = made.ledgers.get(&route).map_or(0, |ledger| ledger.scheduled);
            let ledger = &mut owed.routes.of_mut(route).ledger;
            ledger.scheduled += due.saturating_sub(begun);
            ledger.unsent += due.saturating_sub(begun);
        }
        let arrivals: Box<dyn Iterator<Item = (u64, u64)>> = Box::new(arrivals);
        UnsentArrivals { arrivals: arrivals.peekable(), routes, owed: Some(owed) }
    }

    /// How many ticks all agents have told of that still make their parts; where none does, those
    /// that one of them has.
    fn ticks_complete(&self) -> u64 {
        let making = self.parts.iter().filter(|part| matches!(part.state, MergedPart::Made));
        let told = self.parts.iter().filter(|part| !matches!(part.state, MergedPart::Counted(_)));
        making.map(|part| part.ticks).min().or_else(|| told.map(|part| part.ticks).max()).unwrap_or(0)
    }

    /// Counts what was not sent of the parts whose agents are lost, up to this many ticks.
    fn count_unsent(&mut self, ticks: u64, on_tick: &mut TickListener) -> ControlFlow<()> {
        let (mut flow, from_ns) = (ControlFlow::Continue(()), self.schedule.measured_from_ns());
        for part in 0..self.parts.len() {
            while self.parts[part].ticks < ticks {
                let LoadPart { ticks: index, state: MergedPart::Counted(unsent), .. } = &mut self.parts[part] else {
                    break;
                };
                let index = *index;
                let interval = unsent.tick((index + 1) * Plan::TICK_NS, from_ns);
                if self.hand_on(part, index, interval, on_tick).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
        }
        flow
    }

    /// Whether the agent of a part still makes it.
    pub fn is_made(&self, part: usize) -> bool {
        matches!(self.parts[part].state, MergedPart::Made)
    }

    /// Whether no agent makes its part any more.
    pub fn is_over(&self) -> bool {
        self.parts.iter().all(|part| !matches!(part.state, MergedPart::Made))
    }

    /// The whole run, when that is over.
    pub fn finish(mut self, on_tick: &mut TickListener) -> Run {
        let ended = |part: &LoadPart| if let MergedPart::Done(end_ns) = part.state { Some(end_ns) } else { None };
        let window_end_ns = self.parts.iter().filter_map(ended).max().unwrap_or(0);
        // What would have been sent until the others ended is counted, and all of it where they
        // came to the schedule's end.
        let end_ns = self.schedule.end_ns().filter(|end_ns| *end_ns <= window_end_ns);
        let ticks = self.ticks_complete().max(end_ns.map_or(0, |end_ns| end_ns.div_ceil(Plan::TICK_NS)));
        let _ = self.count_unsent(ticks, on_tick);
        for part in 0..self.parts.len() {
            if let LoadPart { ticks, state: MergedPart::Counted(unsent), .. } = &mut self.parts[part] {
                // The others ended before its next tick.
                if let (index, Some(owed)) = (*ticks, unsent.owed.take()) {
                    let _ = self.hand_on(part, index, owed, on_tick);
                }
                let (failed_answers, used_up) = (Vec::new(), false);
                let done = PartReport::Done { part, window_end_ns, failed_answers, used_up };
                let _ = self.collector.take(done, on_tick);
            }
        }
        let mut run = self.collector.finish();
        run.agents = self.parts.into_iter().map(|part| part.account(self.schedule.is_open())).collect();
        run.agents.sort_by(|a, b| a.name.cmp(&b.name));
        run
    }
}

impl LoadPart {
    fn account(self, is_open: bool) -> AgentAccount {
        let shares = self.workers.values().filter(|sum| sum.1 > 0).map(|sum| sum.0 as f64 / sum.1 as f64);
        let lag_p99_ns = (is_open && self.lag.count() > 0).then(|| self.lag.quantile_ns(0.99));
        // Few digits come back from a record as they were.
        let work_share = (shares.fold(0.0, f64::max) * 1e4).round() / 1e4;
        AgentAccount { lag_p99_ns, work_share, ..self.account }
    }
}

impl UnsentArrivals {
    /// What was to be sent before `end_ns`, and what the part owes besides.
    fn tick(&mut self, end_ns: u64, from_ns: u64) -> Interval {
        let mut interval = self.owed.take().unwrap_or_default();
        while let Some((number, start_ns)) = self.arrivals.next_if(|(_, start_ns)| *start_ns < end_ns) {
            let route = first_route(&mut self.routes, number);
            if let Some(route) = route.filter(|_| start_ns >= from_ns) {
                let ledger = &mut interval.routes.of_mut(route).ledger;
                ledger.scheduled += 1;
                ledger.unsent += 1;
            }
        }
        interval
    }
}

/// Which route an arrival asks first; the first of all where that cannot be told.
fn first_route(routes: &mut Option<ArrivalRoutes>, arrival: u64) -> Option<RouteNumber> {
    routes.as_mut().map_or(Some(0), |routes| routes.first(arrival))
}
