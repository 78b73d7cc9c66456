//! Watches a running trial and decides when to end it early, for example when it has certainly
//! broken the SLO ([`TrialWatch`]).
//!
//! [`crate::judge()`] also passes each finished run through a watch, and uses the watch's counts.
//! Because the judgement uses the watch's counts, a trial that was stopped early can be judged
//! again from its record alone.
//!
//! Not here: whether the server or the generator caused a failure.

use crate::delayed_acks;
use crate::format;
use crate::request_names;
use crate::slo::{BadRequestAllowance, Slo};
use plimsoll_model::units::MS;
use plimsoll_model::{
    ArrivalSpacing, Interval, Ledger, LoadPurpose, LoadShape, PlanRecord, RequestFailure, RouteFigures, RouteNumber,
    SparseHistogram, TimeMeasure, WorkerTime,
};
use std::ops::ControlFlow;

/// Length, in ns, of the first part of the judged window, in which no trial is stopped, so that
/// each trial measures a throughput.
const DECISION_NS_MIN: u64 = 1_500 * MS;
/// Minimum number of ticks (100 ms) between the first bad request of a trial and the end of the
/// trial, if the trial ends early because it is certain to fail.
const TICKS_AFTER_FIRST_BAD: usize = 5;
/// Smallest growth of the backlog in one tick that shows overload, as a share of the arrivals in
/// the tick. The backlog must grow by this share in each of the last [`OVERLOAD_TICKS`] ticks.
const OVERLOAD_BACKLOG_GROWTH_SHARE: f64 = 0.05;
/// Number of consecutive ticks with a growing backlog after which the server counts as overloaded.
const OVERLOAD_TICKS: usize = 10;
/// At the start of a trial, growth of the backlog is ignored for this multiple of the response
/// time. In this time the number of requests in flight rises to its steady level.
const IGNORED_GROWTH_RESPONSE_TIMES: f64 = 3.0;
/// Number of consecutive ticks that show that a backlog has drained, or that the server rejects
/// requests.
const SETTLED_TICKS: usize = 2;
/// Smallest number of requests that must complete in [`SETTLED_TICKS`] ticks to show that a backlog
/// has drained, or that the server rejects requests.
const SETTLED_RESPONSES_MIN: u64 = 3;
/// Smallest number of completed requests after which the first load of a search may be stopped.
const FIRST_LOAD_RESPONSES_MIN: u64 = 3;

/// Returns the judged window of a plan (the part of the load that the SLO judges), as start and end
/// in ns of schedule time. The judged window is the last stage of the load's curve. The warm-up and
/// earlier stages bring the server into the state in which it is judged.
pub fn judged_window_ns(plan: &PlanRecord) -> (u64, u64) {
    let stages = &plan.load.shape.curve().stages;
    let before: u64 = stages.iter().rev().skip(1).filter_map(|s| s.duration_ns).sum();
    let last = stages.last().and_then(|s| s.duration_ns);
    let end = match (plan.load.duration_ns, last) {
        (Some(duration), Some(last)) => duration.min(before + last),
        (Some(duration), None) => duration,
        (None, Some(last)) => before + last,
        (None, None) => u64::MAX / 2,
    };
    (plan.load.warmup_ns + before.min(end), plan.load.warmup_ns + end)
}

/// The event at which a watch ends a load early.
#[derive(Debug, Clone, PartialEq)]
enum EarlyStop {
    /// The load ends when it has certainly broken the SLO, whatever follows.
    CertainFailure,
    /// The load ends when every response again takes at most this time, in ns.
    Drained(u64),
    /// The load ends when the server rejects requests.
    Rejecting,
    /// The load ends when the server completes a request successfully.
    FirstSuccess,
    /// The load ends when some requests are completed and the load has run for this time, in ns.
    EnoughResponses(u64),
    /// No event ends the load early.
    Never,
}

/// The figures of one tick (100 ms) of the judged window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TickFigures {
    pub scheduled: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub unsent: u64,
    pub in_flight_end: u64,
    /// Mean number of requests in flight whose response is delayed only by a delayed
    /// acknowledgement ([`crate::delayed_acks`]).
    pub ack_delayed: f64,
    /// The longest response time in the tick, in ns.
    pub slowest_ns: u64,
    /// The mean response time in the tick, in ns; 0 without any response.
    pub mean_ns: f64,
    /// The longest service time in the tick, in ns. The service time starts when the request is
    /// sent.
    pub slowest_service_ns: u64,
    /// Longest time in the tick for which one worker thread of plimsoll was runnable but had no
    /// core, in ns.
    pub worker_core_wait_ns_max: u64,
}

impl TickFigures {
    pub fn from_interval(tick: &Interval, tick_ns: u64) -> TickFigures {
        let without_core = |worker: &WorkerTime| worker.work_ns.saturating_sub(worker.cpu_ns);
        let whole = tick.all_routes();
        TickFigures {
            scheduled: whole.ledger.scheduled,
            succeeded: whole.ledger.succeeded,
            failed: whole.ledger.failed_total(),
            unsent: whole.ledger.unsent,
            in_flight_end: whole.in_flight_end,
            ack_delayed: delayed_acks::ack_wait_sum_ns(tick) / tick_ns as f64,
            slowest_ns: whole.response.max_ns(),
            mean_ns: whole.response.sum_ns() as f64 / whole.response.count().max(1) as f64,
            slowest_service_ns: whole.service.max_ns(),
            worker_core_wait_ns_max: tick.load.workers.iter().map(without_core).max().unwrap_or(0),
        }
    }
}

/// A bound of the SLO, and the counts of the requests that broke the bound in this trial.
#[derive(Debug, Clone)]
struct WatchedBound {
    allowance: BadRequestAllowance,
    /// The index of the named request that the bound applies to; `None` means all requests.
    route: Option<RouteNumber>,
    /// Number of requests that broke the bound and have ended.
    ended_bad: u64,
    /// The outcomes of the requests that the bound applies to, in the judged window. Only bounds of
    /// named requests and of connections use this ledger.
    ledger: Ledger,
    /// The dispersion of the requests that broke the bound: how many of them occur together.
    bunches: BadRequestDispersion,
}

/// The dispersion of bad requests, from their counts in consecutive intervals that are as long as
/// the latency bound. Late requests come in bunches, one bunch for each period with a long queue.
/// Each bunch counts as one observation, however many requests it contains.
#[derive(Debug, Clone, Default)]
struct BadRequestDispersion {
    ticks_per_period: usize,
    ticks_in_period: usize,
    bad_requests_in_period: u64,
    period_count: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl BadRequestDispersion {
    fn new(bound_ns: u64, tick_ns: u64) -> BadRequestDispersion {
        BadRequestDispersion {
            ticks_per_period: bound_ns.div_ceil(tick_ns.max(1)).clamp(1, 1000) as usize,
            ..BadRequestDispersion::default()
        }
    }

    fn push(&mut self, count: u64) {
        self.bad_requests_in_period += count;
        self.ticks_in_period += 1;
        if self.ticks_in_period >= self.ticks_per_period {
            let piece = self.bad_requests_in_period as f64;
            (self.sum, self.sum_of_squares) = (self.sum + piece, self.sum_of_squares + piece * piece);
            self.period_count += 1;
            (self.ticks_in_period, self.bad_requests_in_period) = (0, 0);
        }
    }

    /// Returns the index of dispersion of the counts (variance divided by mean), at least 1. As
    /// many bad requests as this index count as one independent observation.
    fn dispersion_index(&self) -> f64 {
        if self.period_count < 2 || self.sum <= 0.0 {
            return 1.0;
        }
        let n = self.period_count as f64;
        let mean = self.sum / n;
        let variance = (self.sum_of_squares - n * mean * mean) / (n - 1.0);
        (variance / mean).max(1.0)
    }
}

/// A watch over a running trial. The caller passes every tick (100 ms) of the trial to the watch.
#[derive(Debug, Clone)]
pub struct TrialWatch {
    early_stop: EarlyStop,
    from_ns: u64,
    to_ns: u64,
    tick_ns: u64,
    timeout_ns: u64,
    /// The largest number of requests that the trial can schedule in its judged window.
    scheduled_max: u64,
    bounds: Vec<WatchedBound>,
    /// The ticks since the start of the judged window, in order.
    ticks: Vec<TickFigures>,
    /// Number of requests that ended since the start of the judged window.
    ended: u64,
    first_bad: Option<usize>,
    /// The smallest mean response time of any tick, in ns.
    tick_mean_response_ns_min: f64,
    /// Progress of a load that ends when a backlog has drained or the server rejects requests. The
    /// values are the number of consecutive ticks without a backlog or with rejections, and the
    /// number of requests completed in those ticks.
    settled: (usize, u64),
}

impl WatchedBound {
    /// Returns whether the bound has a ledger of its own, because it applies to one named request
    /// or to connections.
    fn has_own_ledger(&self) -> bool {
        self.route.is_some() || !self.allowance.measure.is_per_route()
    }

    /// Creates the bound with empty counts; `None` if the plan does not contain the named request.
    fn for_plan(allowance: BadRequestAllowance, plan: &PlanRecord) -> Option<WatchedBound> {
        let route = match &allowance.route {
            None => None,
            Some(name) => Some(request_names::request_index(&plan.traffic, name)? as RouteNumber),
        };
        let bunches = BadRequestDispersion::new(allowance.bound_ns.unwrap_or(0), plan.load.interval_ns);
        Some(WatchedBound { allowance, route, ended_bad: 0, ledger: Ledger::default(), bunches })
    }
}

impl TrialWatch {
    /// Creates a watch over a trial of this purpose under this SLO.
    pub fn new(purpose: LoadPurpose, plan: &PlanRecord, slo: &Slo) -> TrialWatch {
        let (from_ns, to_ns) = judged_window_ns(plan);
        let judged =
            matches!(purpose, LoadPurpose::Climb | LoadPurpose::Line | LoadPurpose::Confirm | LoadPurpose::Soak);
        let scheduled_max = match &plan.load.shape {
            LoadShape::Open { rate, arrivals } => {
                let expected = rate.max() * (to_ns - from_ns) as f64 / 1e9;
                let spread = if *arrivals == ArrivalSpacing::Poisson { 6.0 * expected.sqrt() } else { 0.0 };
                let arrivals = ((expected + spread).ceil() as u64).saturating_add(1);
                arrivals.saturating_mul(plan.traffic.requests_per_arrival_max())
            }
            LoadShape::ArrivalTimes { arrivals } => arrivals.count(),
            LoadShape::Closed { .. } => u64::MAX,
        };
        let open = plan.load.shape.is_open();
        TrialWatch {
            early_stop: if judged && open { EarlyStop::CertainFailure } else { EarlyStop::Never },
            from_ns,
            to_ns,
            tick_ns: plan.load.interval_ns.max(1),
            timeout_ns: plan.traffic.timeout_ns_max(),
            scheduled_max,
            bounds: slo.allowances().into_iter().filter_map(|it| WatchedBound::for_plan(it, plan)).collect(),
            ticks: Vec::new(),
            ended: 0,
            first_bad: None,
            tick_mean_response_ns_min: f64::INFINITY,
            settled: (0, 0),
        }
    }

    /// Creates a watch over a load in which the backlog of the previous load drains. The watch ends
    /// the load after `SETTLED_TICKS` consecutive ticks without a backlog. In a tick without a
    /// backlog, no request fails, and every response takes at most `calm_ns`.
    pub fn end_when_drained(plan: &PlanRecord, slo: &Slo, calm_ns: u64) -> TrialWatch {
        TrialWatch { early_stop: EarlyStop::Drained(calm_ns), ..TrialWatch::new(LoadPurpose::Settle, plan, slo) }
    }

    /// Creates a watch over a load that exhausts the tokens of a rate limiter. The watch ends the
    /// load after `SETTLED_TICKS` consecutive ticks with rejections.
    pub fn end_when_rejecting(plan: &PlanRecord, slo: &Slo) -> TrialWatch {
        TrialWatch { early_stop: EarlyStop::Rejecting, ..TrialWatch::new(LoadPurpose::Settle, plan, slo) }
    }

    /// Creates a watch that ends a load as soon as one request has succeeded.
    pub fn end_after_first_success(plan: &PlanRecord, slo: &Slo) -> TrialWatch {
        TrialWatch { early_stop: EarlyStop::FirstSuccess, ..TrialWatch::new(LoadPurpose::Settle, plan, slo) }
    }

    /// Creates a watch that ends a load as soon as `FIRST_LOAD_RESPONSES_MIN` requests have
    /// completed with any status, but not before `shown_ns`.
    pub fn end_after_responses(plan: &PlanRecord, slo: &Slo, shown_ns: u64) -> TrialWatch {
        TrialWatch { early_stop: EarlyStop::EnoughResponses(shown_ns), ..TrialWatch::new(LoadPurpose::Peak, plan, slo) }
    }

    /// Adds the next tick, which starts at `start_ns` of schedule time. Returns `Break` with the
    /// reason if the run must stop now.
    pub fn push(&mut self, start_ns: u64, tick: &Interval) -> ControlFlow<String> {
        match self.early_stop {
            EarlyStop::Never => return ControlFlow::Continue(()),
            EarlyStop::FirstSuccess => {
                return match tick.all_routes().ledger.succeeded > 0 {
                    true => ControlFlow::Break("the server accepts requests again".to_owned()),
                    false => ControlFlow::Continue(()),
                };
            }
            EarlyStop::Drained(_) | EarlyStop::Rejecting => return self.stop_if_settled(tick),
            EarlyStop::EnoughResponses(shown_ns) => {
                self.ended += tick.all_routes().ledger.finished_requests();
                let shown = (start_ns + self.tick_ns).saturating_sub(self.from_ns) >= shown_ns;
                return match shown && self.ended >= FIRST_LOAD_RESPONSES_MIN {
                    true => ControlFlow::Break("enough requests completed".to_owned()),
                    false => ControlFlow::Continue(()),
                };
            }
            EarlyStop::CertainFailure => {}
        }
        if start_ns + self.tick_ns <= self.from_ns {
            return ControlFlow::Continue(());
        }
        let whole = tick.all_routes();
        let ledger = &whole.ledger;
        let mut any_bad = false;
        for bound in &mut self.bounds {
            let figures = match bound.route {
                None => Some(whole),
                Some(number) => tick.routes.get(number),
            };
            let Some(figures) = figures else { continue };
            let measure = bound.allowance.measure;
            let times = measure.histogram(figures, &tick.load);
            let bad = match bound.allowance.bound_ns {
                Some(bound_ns) if !measure.is_per_route() => {
                    bound.ledger.scheduled += times.count();
                    times.count_above(bound_ns)
                }
                bound_ns => {
                    let slower = bound_ns.map_or(0, |ns| count_slow_successes(times, figures, ns, self.timeout_ns));
                    figures.ledger.failed_total() + figures.ledger.unsent + slower
                }
            };
            any_bad |= bad > 0;
            bound.ended_bad += bad;
            bound.bunches.push(bad);
            if bound.route.is_some() {
                bound.ledger.merge(&figures.ledger);
            }
        }
        self.ended += ledger.finished_requests() + ledger.unsent;
        let seen = TickFigures::from_interval(tick, self.tick_ns);
        if whole.response.count() > 0 {
            self.tick_mean_response_ns_min = self.tick_mean_response_ns_min.min(seen.mean_ns);
        }
        self.ticks.push(seen);
        if any_bad || self.has_overdue_requests() {
            self.first_bad.get_or_insert(self.ticks.len());
        }
        let end_ns = start_ns + self.tick_ns;
        let shown_ns = end_ns.min(self.to_ns).saturating_sub(self.from_ns);
        if end_ns < self.to_ns && shown_ns < DECISION_NS_MIN.min(self.to_ns - self.from_ns) {
            return ControlFlow::Continue(());
        }
        let shown_after = self.first_bad.is_none_or(|first| self.ticks.len() >= first + TICKS_AFTER_FIRST_BAD);
        match self.certain_failure() {
            Some(reason) if shown_after || end_ns >= self.to_ns => ControlFlow::Break(reason),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Returns why the trial has certainly failed; `None` if its failure is not certain.
    pub fn certain_failure(&self) -> Option<String> {
        for (at, bound) in self.bounds.iter().enumerate() {
            let bad = self.bound_violations(at);
            // The watch does not know how many of the scheduled requests have the name to which the
            // bound applies. The allowance therefore assumes that all scheduled requests have this
            // name.
            let allowed = bound.allowance.allowed_bad_requests(self.scheduled_max);
            if bad > allowed {
                let scheduled = match bound.has_own_ledger() {
                    true => bound.ledger.scheduled,
                    false => self.ticks.iter().map(|s| s.scheduled).sum(),
                };
                return Some(broken_bound_text(&bound.allowance, bad, scheduled));
            }
        }
        self.detect_overload()
    }

    /// Returns the number of requests that are known to have broken the bound with index `at`. The
    /// count includes bad requests that have ended, and requests that have been in flight for
    /// longer than the latency bound.
    pub(crate) fn bound_violations(&self, at: usize) -> u64 {
        let bound = &self.bounds[at];
        // The watch does not know the name of a request in flight, so overdue requests count only
        // for bounds of all requests.
        let overdue = || bound.allowance.bound_ns.map_or(0, |ns| self.overdue_requests_min(ns));
        bound.ended_bad
            + if bound.has_own_ledger() || bound.allowance.measure != TimeMeasure::response_time() {
                0
            } else {
                overdue()
            }
    }

    /// Returns the number of requests that broke the bound with index `at` and have ended.
    pub(crate) fn ended_bad_requests(&self, at: usize) -> u64 {
        self.bounds[at].ended_bad
    }

    /// Returns how many bad requests of this bound count as one independent observation, at least
    /// 1.
    pub(crate) fn bad_request_bunch_size(&self, bound_index: usize) -> f64 {
        self.bounds[bound_index].bunches.dispersion_index()
    }

    /// Returns the ledger of the requests that the bound with index `at` applies to. `whole` is the
    /// ledger of all requests.
    pub(crate) fn ledger_of_bound<'a>(&'a self, at: usize, whole: &'a Ledger) -> &'a Ledger {
        if self.bounds[at].has_own_ledger() { &self.bounds[at].ledger } else { whole }
    }

    /// Returns the bounds of the SLO in the order of [`Slo::allowances`]. Bounds of named requests
    /// that the plan does not contain are left out.
    pub(crate) fn watched_allowances(&self) -> impl Iterator<Item = &BadRequestAllowance> {
        self.bounds.iter().map(|bound| &bound.allowance)
    }

    /// Returns the ticks since the start of the judged window.
    pub(crate) fn ticks(&self) -> &[TickFigures] {
        &self.ticks
    }

    /// Returns a lower limit for the number of requests in flight for longer than `bound_ns`. The
    /// limit is the number of requests scheduled at least `bound_ns` ago, minus all ended requests.
    fn overdue_requests_min(&self, bound_ns: u64) -> u64 {
        let ticks = bound_ns.div_ceil(self.tick_ns) as usize;
        let old: u64 = self.ticks.iter().rev().skip(ticks).map(|s| s.scheduled).sum();
        old.saturating_sub(self.ended)
    }

    fn has_overdue_requests(&self) -> bool {
        let late = |it: &WatchedBound| it.allowance.bound_ns.is_some_and(|bound| self.overdue_requests_min(bound) > 0);
        self.bounds.iter().any(|it| it.allowance.measure == TimeMeasure::response_time() && late(it))
    }

    /// Returns a sentence if the backlog grew clearly in every one of the last ticks; otherwise
    /// `None`. Because the backlog must grow in every tick, a single stall, however long, is no
    /// overload. Slight growth of the backlog near the load line can be judged only after the whole
    /// judged window.
    fn detect_overload(&self) -> Option<String> {
        let inside = self.ticks.len().min((self.to_ns.saturating_sub(self.from_ns) / self.tick_ns) as usize);
        // On any server the number of requests in flight takes some response times to reach its
        // steady level.
        let filling = (IGNORED_GROWTH_RESPONSE_TIMES * self.tick_mean_response_ns_min / self.tick_ns as f64) as usize;
        if inside <= OVERLOAD_TICKS.saturating_add(filling) || self.ticks.len() > inside {
            return None;
        }
        let last = &self.ticks[inside - OVERLOAD_TICKS - 1..inside];
        // A period without responses counts as a stall, not as overload. The trial continues until
        // the stall breaks a bound, so that the length of the stall becomes known.
        if last[1..].iter().filter(|seen| seen.succeeded + seen.failed > 0).count() * 2 < OVERLOAD_TICKS {
            return None;
        }
        let backlog = |seen: &TickFigures| seen.in_flight_end as f64 - seen.ack_delayed;
        let grows = last.windows(2).all(|pair| {
            let growth = backlog(&pair[1]) - backlog(&pair[0]);
            pair[1].scheduled > 0 && growth >= 1.0 && growth >= OVERLOAD_BACKLOG_GROWTH_SHARE * pair[1].scheduled as f64
        });
        grows.then(|| {
            let growth = backlog(&last[OVERLOAD_TICKS]) - backlog(&last[0]);
            let arrivals: u64 = last[1..].iter().map(|s| s.scheduled).sum();
            format!(
                "the server fell behind by {requests_share} of the scheduled requests",
                requests_share = format::short_percent(growth / arrivals as f64)
            )
        })
    }

    fn stop_if_settled(&mut self, tick: &Interval) -> ControlFlow<String> {
        let whole = tick.all_routes();
        let ledger = &whole.ledger;
        let (good, done) = match self.early_stop {
            EarlyStop::Drained(calm_ns) => {
                // The number of ticks for which a request may stay in flight if the backlog has
                // drained.
                let stay_ticks = (calm_ns as f64 / self.tick_ns as f64).max(0.5);
                let window_ticks = (self.to_ns - self.from_ns) as f64 / self.tick_ns as f64;
                let arriving = self.scheduled_max as f64 / window_ticks.max(1.0);
                let waiting = whole.in_flight_end as f64 > 1.0 + arriving * stay_ticks;
                let slow = whole.response.max_ns() > calm_ns;
                if ledger.finished_requests() == 0 && !waiting {
                    // A tick between two responses of a slow server does not show whether the
                    // server's backlog has drained.
                    return ControlFlow::Continue(());
                }
                (!slow && !waiting && ledger.failed_total() == 0, "the server's backlog has drained")
            }
            _ => (ledger.failed_total() > 0, "the server rejects requests"),
        };
        self.settled = if good { (self.settled.0 + 1, self.settled.1 + ledger.finished_requests()) } else { (0, 0) };
        if self.settled.0 >= SETTLED_TICKS && self.settled.1 >= SETTLED_RESPONSES_MIN {
            return ControlFlow::Break(done.to_owned());
        }
        ControlFlow::Continue(())
    }
}

/// Counts the successes in a tick that took longer than `bound_ns`. The histograms of response time
/// and service time also contain timeouts, which are subtracted because they count as failures
/// already.
fn count_slow_successes(times: &SparseHistogram, whole: &RouteFigures, bound_ns: u64, timeout_ns: u64) -> u64 {
    let holds_timeouts = std::ptr::eq(times, &whole.response) || std::ptr::eq(times, &whole.service);
    let timeouts = match holds_timeouts && timeout_ns > bound_ns {
        true => whole.ledger.failed[RequestFailure::Timeout as usize],
        false => 0,
    };
    times.count_above(bound_ns).saturating_sub(timeouts)
}

/// Formats a sentence about a bound that `bad` of `scheduled` requests broke.
pub(crate) fn broken_bound_text(allowance: &BadRequestAllowance, bad: u64, scheduled: u64) -> String {
    let share = format::short_percent(bad as f64 / scheduled.max(1) as f64);
    let allowed = format::short_percent(allowance.share);
    let requests = match &allowance.route {
        None if !allowance.measure.is_per_route() => "connections".to_owned(),
        None => "requests".to_owned(),
        Some(name) => format!("requests '{name}'"),
    };
    match allowance.bound_ns {
        Some(bound) => {
            let bound = format::duration(bound as f64);
            let time_name = match allowance.measure {
                measure if measure == TimeMeasure::response_time() => String::new(),
                measure => format!(" ({})", measure.name()),
            };
            format!("{share} of the {requests} failed or took longer than {bound}{time_name}; the SLO allows {allowed}")
        }
        None => format!("{share} of the {requests} failed; the SLO allows {allowed}"),
    }
}
