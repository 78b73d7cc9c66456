//! Combines the figures from all parts of a load into one run. A part of a load is a worker thread,
//! or another process that sums the figures of its own workers. The figures of all parts in one
//! tick (100 ms of the load) are summed, passed to the caller and stored.
//!
//! Not here: how parts start, how their reports arrive, and how they are stopped.

use plimsoll_model::failed_response::merge_first_failures;
use plimsoll_model::{
    EarlyStopReason, FailedResponse, Injector, Interval, Ledger, LoadEnd, Plan, PlanRecord, RouteNumber, Run, Schedule,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The connections are being opened, and the schedule has not begun.
    Preparing,
    /// The load is in the warm-up, which is not measured.
    Warmup,
    /// The load is in the measured window, whose requests count.
    Measured,
    /// The schedule has ended; responses in flight may still arrive.
    Grace,
}

/// One tick (100 ms) of a running load, as the listener of the load receives it.
#[derive(Debug)]
pub struct Tick<'a> {
    /// The phase of the run that the tick belongs to.
    pub phase: Phase,
    /// The start of the tick, ns after the start of the schedule.
    pub start_ns: u64,
    /// The end of the tick, ns after the start of the schedule.
    pub end_ns: u64,
    /// The start of the schedule on the monotonic clock, ns; 0 while the start is unknown.
    pub origin_ns: u64,
    /// The figures of the tick, summed over all worker threads and processes of the load.
    pub interval: &'a Interval,
}

/// A function of the caller that receives every tick (100 ms of the load). If the function returns
/// `Break`, the run ends.
pub type TickListener<'a> = dyn FnMut(&Tick) -> ControlFlow<EarlyStopReason> + 'a;

/// A report of one part (a worker thread or a process) of a load. In every variant `part` is the
/// number of the part, from 0.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "all but one of what a part reports are ticks")]
pub enum PartReport {
    /// A worker thread or process reports its figures for one tick (100 ms of the load).
    Tick {
        /// The number of the part (worker thread or process) that reports the tick.
        part: usize,
        /// The number of the tick, counted from 0 at the start of the schedule. A part reports its
        /// ticks in order.
        index: u64,
        /// The figures that the reporting worker thread or process counted in the tick.
        interval: Interval,
    },
    /// The worker thread or process has reported all of its ticks.
    Done {
        /// The number of the part (worker thread or process) that has ended.
        part: usize,
        /// The end of the measured window, as the ended worker thread or process saw it, ns of
        /// schedule time.
        window_end_ns: u64,
        /// The first failed response of each kind that the ended worker thread or process received.
        failed_answers: Vec<FailedResponse>,
        /// Whether the worker thread or process ended early because its requests ran out.
        has_no_more_requests: bool,
    },
    /// The part (worker thread or process) is lost and sends no more reports. The loss of a part
    /// ends the load, because the remaining parts would send fewer requests than planned. A part
    /// that has already reported its end (`Done`) does not count as lost.
    Lost {
        /// The number of the part (worker thread or process) that is lost.
        part: usize,
        /// The reason why the worker thread or process is lost.
        why: EarlyStopReason,
    },
}

impl PartReport {
    /// Returns the number of the worker thread or process that made the report.
    pub fn part(&self) -> usize {
        match self {
            PartReport::Tick { part, .. } | PartReport::Done { part, .. } | PartReport::Lost { part, .. } => *part,
        }
    }
}

/// Sums the figures of all parts of a load, tick by tick, into one run.
#[derive(Debug)]
pub struct Collector {
    run: Run,
    measured_from_ns: u64,
    schedule_end_ns: u64,
    /// The number of ticks that each part has reported; `u64::MAX` for a part that is done or lost.
    ticks_reported: Vec<u64>,
    /// For each part, the ledger (counts of request outcomes) so far, by route.
    ledgers: Vec<BTreeMap<RouteNumber, Ledger>>,
    /// The sums of the ticks for which the reports of some parts are still missing, by tick number.
    incomplete_ticks: BTreeMap<u64, Interval>,
    stop_reason: Option<EarlyStopReason>,
    has_no_more_requests: bool,
    window_end_ns: u64,
    origin_ns: u64,
}

impl Collector {
    /// Creates a collector for a load of `parts` parts. The parts are the workers of one machine,
    /// or one part for each of several `injectors` (machines).
    pub fn new(plan: PlanRecord, injectors: Vec<Injector>, parts: usize, schedule: &Schedule) -> Collector {
        Collector {
            run: Run { injectors, ..Run::new(plan) },
            measured_from_ns: schedule.measured_from_ns(),
            schedule_end_ns: schedule.end_ns().unwrap_or(u64::MAX),
            ticks_reported: vec![0; parts.max(1)],
            ledgers: vec![BTreeMap::new(); parts.max(1)],
            incomplete_ticks: BTreeMap::new(),
            stop_reason: None,
            has_no_more_requests: false,
            window_end_ns: 0,
            origin_ns: 0,
        }
    }

    /// Sets the start of the schedule to `origin_ns` of the monotonic clock.
    pub fn set_schedule_start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    /// Calls the caller's listener while connections are being opened, before the schedule begins.
    /// Returns `Break` if all parts must stop.
    pub fn notify_during_preparation(&mut self, on_tick: &mut TickListener) -> ControlFlow<()> {
        let interval = Interval::default();
        let tick = Tick { phase: Phase::Preparing, start_ns: 0, end_ns: 0, origin_ns: 0, interval: &interval };
        self.notify_listener(&tick, on_tick)
    }

    /// Adds the report of a part, and passes every tick that is now complete to the listener.
    /// Returns `Break` if the caller must stop all parts; their remaining reports are still
    /// accepted.
    pub fn add_report(&mut self, reported: PartReport, on_tick: &mut TickListener) -> ControlFlow<()> {
        match reported {
            PartReport::Tick { part, index, interval } => {
                self.ticks_reported[part] = index + 1;
                for (route, figures) in interval.routes.iter() {
                    self.ledgers[part].entry(route).or_default().merge(&figures.ledger);
                }
                match self.incomplete_ticks.entry(index) {
                    Entry::Vacant(first) => _ = first.insert(interval),
                    Entry::Occupied(mut sum) => sum.get_mut().merge_parallel(&interval),
                }
            }
            PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests } => {
                self.has_no_more_requests |= has_no_more_requests;
                merge_first_failures(&mut self.run.failed_answers, &failed_answers);
                self.ticks_reported[part] = u64::MAX;
                self.window_end_ns = self.window_end_ns.max(window_end_ns);
            }
            PartReport::Lost { part, why } => self.mark_part_lost(part, why),
        }
        let complete = self.ticks_reported.iter().copied().min().unwrap_or(0);
        while let Some(first) = self.incomplete_ticks.first_entry()
            && *first.key() < complete
        {
            let (index, interval) = first.remove_entry();
            let start_ns = index * Plan::TICK_NS;
            let phase = match start_ns {
                t if t >= self.schedule_end_ns => Phase::Grace,
                t if t < self.measured_from_ns => Phase::Warmup,
                _ => Phase::Measured,
            };
            let (end_ns, origin_ns) = (start_ns + Plan::TICK_NS, self.origin_ns);
            // The listener's result is ignored here, because `add_report` checks at its end whether
            // the run must stop.
            let _ = self.notify_listener(&Tick { phase, start_ns, end_ns, origin_ns, interval: &interval }, on_tick);
            // The listener gets the interval before the run stores it, so that sums which the
            // listener's calls cache in the interval are stored, too.
            self.run.push(start_ns, interval);
        }
        self.break_if_stopped()
    }

    /// Marks a part as lost. Requests whose outcome the part never reported count as in flight, in
    /// the tick after its last reported tick.
    fn mark_part_lost(&mut self, part: usize, why: EarlyStopReason) {
        let index = std::mem::replace(&mut self.ticks_reported[part], u64::MAX);
        if index == u64::MAX {
            return;
        }
        let tick = self.incomplete_ticks.entry(index).or_default();
        for (route, ledger) in &self.ledgers[part] {
            tick.routes.figures_mut(*route).ledger.in_flight += ledger.requests_without_outcome();
        }
        self.window_end_ns = self.window_end_ns.max((index * Plan::TICK_NS).min(self.schedule_end_ns));
        self.stop_reason.get_or_insert(why);
    }

    /// Passes a tick to the listener, even after the run was stopped, because the tick belongs to
    /// the record. If there are several reasons to stop, the first one counts.
    fn notify_listener(&mut self, tick: &Tick, on_tick: &mut TickListener) -> ControlFlow<()> {
        if let ControlFlow::Break(reason) = on_tick(tick)
            && self.stop_reason.is_none()
        {
            self.stop_reason = Some(reason);
        }
        self.break_if_stopped()
    }

    fn break_if_stopped(&self) -> ControlFlow<()> {
        if self.stop_reason.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the whole run. The caller must wait until every worker thread or process is done or
    /// lost.
    pub fn finish(mut self) -> Run {
        debug_assert!(self.incomplete_ticks.is_empty(), "every worker has reported its end");
        self.run.window_ns = (self.measured_from_ns.min(self.window_end_ns), self.window_end_ns);
        self.run.ending = Some(match self.stop_reason {
            Some(reason) => LoadEnd::Stopped(reason),
            None if self.has_no_more_requests => LoadEnd::Stopped(EarlyStopReason::RequestsExhausted),
            None => LoadEnd::Finished,
        });
        self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape};

    /// Returns the report of a tick in which `scheduled` requests were scheduled and `succeeded`
    /// requests succeeded.
    fn tick_report(part: usize, index: u64, scheduled: u64, succeeded: u64) -> PartReport {
        let mut interval = Interval::default();
        let ledger = &mut interval.routes.figures_mut(0).ledger;
        (ledger.scheduled, ledger.succeeded) = (scheduled, succeeded);
        PartReport::Tick { part, index, interval }
    }

    /// Checks that a lost part of a load does not block the other parts. The load ends with the
    /// reason of the loss, the listener gets every tick, and the ledger accounts for every request.
    #[test]
    fn a_lost_part_ends_the_load() {
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(2.0) });
        plan.load.duration_ns = Some(10 * Plan::TICK_NS);
        let injectors = vec![Injector::default(); 2];
        let why = || EarlyStopReason::CannotContinue("part 2 is gone".to_owned());
        let done = |part: usize, ticks: u64| PartReport::Done {
            part,
            window_end_ns: ticks * Plan::TICK_NS,
            failed_answers: Vec::new(),
            has_no_more_requests: false,
        };
        // Each case has the reports after the loss of a part, the end of the measured window in
        // ticks, and how the run ends.
        for (after, window_ticks, ending) in [
            (vec![tick_report(0, 2, 0, 1), done(0, 3)], 3, LoadEnd::Stopped(why())),
            // If both parts of the load are lost, the reason of the first loss counts.
            (
                vec![PartReport::Lost { part: 0, why: EarlyStopReason::CannotContinue("so is part 1".to_owned()) }],
                2,
                LoadEnd::Stopped(why()),
            ),
            // A part that is lost after it has reported its end does not count as lost.
            (
                vec![tick_report(0, 2, 0, 1), done(0, 10), PartReport::Lost { part: 0, why: why() }],
                10,
                LoadEnd::Stopped(why()),
            ),
        ] {
            let mut collector = Collector::new(plan.record(), injectors.clone(), 2, &Schedule::compile(&plan.load));
            let mut shown = Vec::new();
            let mut on_tick = |tick: &Tick| {
                shown.push((tick.end_ns / Plan::TICK_NS, tick.interval.all_routes().ledger.scheduled));
                ControlFlow::Continue(())
            };
            for reported in [tick_report(0, 0, 10, 9), tick_report(0, 1, 0, 0), tick_report(1, 0, 10, 8)] {
                assert!(collector.add_report(reported, &mut on_tick).is_continue());
            }
            assert!(collector.add_report(PartReport::Lost { part: 1, why: why() }, &mut on_tick).is_break());
            let lost_all = matches!(after[0], PartReport::Lost { .. });
            for reported in after {
                assert!(collector.add_report(reported, &mut on_tick).is_break());
            }
            let run = collector.finish();
            assert_eq!(shown[0], (1, 20));
            assert_eq!(shown.len(), 3, "every tick: {shown:?}");
            let ledger = run.totals().routes_sum.ledger;
            let (succeeded, in_flight) = if lost_all { (17, 3) } else { (18, 2) };
            assert_eq!((ledger.scheduled, ledger.succeeded, ledger.in_flight), (20, succeeded, in_flight));
            assert!(ledger.counts_add_up());
            assert_eq!((run.window_ns.1 / Plan::TICK_NS, run.ending), (window_ticks, Some(ending)));
        }
    }
}
