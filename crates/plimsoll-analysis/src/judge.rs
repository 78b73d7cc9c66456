//! Judges a trial: compares its run with an SLO ([`judge`]). [`TrialOutcome`] contains the verdict
//! and the figures of the trial.
//!
//! An open trial (open loop) **passes** if the run meets every bound of the SLO and the backlog
//! does not grow. The bounds of the SLO apply to all requests scheduled in the judged window (the
//! part of a trial that counts). Failed, unsent and unanswered requests count as slower than any
//! bound.
//!
//! A trial is **void** (without information about the server) if the generator was the limit,
//! whatever the SLO says. Exception: a trial limited by the generator **fails** if a stall of the
//! server alone broke a bound of the SLO. In a stall of the server, sent requests wait without any
//! response. A trial is also void if it was stopped before its verdict was certain, or if no
//! request was scheduled. An open trial that neither passes nor is void **fails**. A closed trial
//! (closed loop) has no SLO: it passes unless it is void.
//!
//! Other processes of the machine ([`Interference`]) can only take capacity from the server. So a
//! load that met the SLO in spite of a disturbance counts as passed. If a load was disturbed and
//! broke the SLO, the load does not show whether the server or the disturbance broke the SLO.
//! Therefore a disturbed open trial is void unless it passes, and a disturbed closed trial is void.
//! Exception: a disturbed trial fails if refusals (statuses 400 to 499) that interference does not
//! explain broke the SLO.
//!
//! The backlog consists of the requests in flight, and of the requests that were not sent because
//! all connections waited for the server. The growth of the backlog is its mean in the last quarter
//! of the judged window minus its mean in the second quarter. The backlog counts as growing if its
//! growth exceeds two limits. The first limit of the backlog's growth is 1 % of the arrivals
//! between the middles of the second and the last quarter. The second limit of the backlog's growth
//! is what chance explains: one request, plus two standard deviations of the difference of the two
//! quarters' means. For independent requests, the standard deviation of the difference of the two
//! quarters' means is sqrt(4 n W / T). In sqrt(4 n W / T), n is the number of requests in flight, W
//! the mean time in flight, and T the length of a quarter. At high rates with short response times,
//! the first limit (1 % of the arrivals) is larger than the second limit.
//!
//! A request does not count as backlog while the rest of its response waits for a delayed
//! acknowledgement ([`crate::delayed_acks`]).
//!
//! Not here: the choice of the next plan.

use crate::delayed_acks;
use crate::format;
use crate::interference::Interference;
use crate::quantile::is_stated;
use crate::saturation::{Saturation, closed_trial_saturation, saturated_throughput};
use crate::sentence::Sentence;
use crate::slo::Slo;
use crate::stalls::{self, Stall};
use crate::summary::Summary;
use crate::watch::{TickFigures, TrialWatch, broken_bound_text, judged_window_ns};
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    EarlyStopReason, Histogram, Interval, Ledger, LoadEnd, LoadPurpose, LoadShape, RequestFailure, Run, TimeMeasure,
};
pub use plimsoll_statistics::BoundEvidence;
use std::fmt;
use std::ops::ControlFlow;

/// Smallest number of failures, other than timeouts, that shows that the server rejects surplus
/// requests of a closed-loop trial. A single failed request may have other reasons.
const REJECTIONS_MIN: u64 = 2;
/// Largest growth of the backlog in a trial that passes, as a share of the arrivals: the requests
/// scheduled in half of the judged window.
pub const BACKLOG_GROWTH_SHARE_MAX: f64 = 0.01;

/// The load that a trial offers to the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OfferedLoad {
    /// The rate of an open loop: requests a second, or sessions a second.
    Rate(f64),
    /// The number of users of a closed loop. Each user waits for a response before the next
    /// request.
    Users(u64),
}

/// The verdict on a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The load met the SLO.
    Pass,
    /// The load broke the SLO, and neither the generator nor other processes caused the violation.
    Fail,
    /// The generator was the limit, so the trial contains no information about the server. Or other
    /// processes disturbed the load, so the trial shows only the server's performance beside other
    /// processes ([`TrialOutcome::verdict_name`]).
    Void,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Void => "void",
        })
    }
}

/// The outcome of a trial, one load of a search: its verdict and figures.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialOutcome {
    /// Why the search made the trial: for example, to confirm the load line.
    pub purpose: LoadPurpose,
    /// The offered load in the judged window (the part of the trial that counts).
    pub load: OfferedLoad,
    /// When the trial began, in ns since the start of the search.
    pub start_ns: u64,
    /// Real length of the judged window (the part of the trial that counts), ns.
    pub duration_ns: u64,
    /// Planned length of the judged window (the part of the trial that counts), ns.
    pub planned_ns: u64,
    /// Whether the trial was stopped before the end of its schedule.
    pub is_stopped_early: bool,
    /// Successes a second in the judged window (the part of the trial that counts). For a load of
    /// sessions, the unit is sessions a second.
    pub goodput_rps: f64,
    /// Share of the scheduled requests that succeeded, 0..=1. Requests that were still in flight
    /// when a closed-loop trial or a stopped trial ended do not count.
    pub success_rate: f64,
    /// Response time p50 of successes and timeouts, ns.
    pub p50_ns: u64,
    /// Response time p99 of successes and timeouts, ns.
    pub p99_ns: u64,
    /// Lag p99, ns: 99 % of the requests were started at most this late.
    pub lag_p99_ns: u64,
    /// The verdict on the trial.
    pub verdict: Verdict,
    /// The reason for the verdict, as one sentence; empty for a pass without a note.
    pub reason: Sentence,
    /// Further figures that the search uses in addition to the verdict.
    pub evidence: Evidence,
    /// The CPU used by other processes, and whether this CPU use disturbed the trial.
    pub interference: Interference,
}

/// The figures of a trial that the search uses in addition to the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Number of requests scheduled in the judged window (the part of the trial that counts).
    pub scheduled: u64,
    /// For the most violated bound of the SLO: the number of bad requests divided by the number of
    /// allowed bad requests. A quotient above 1 means that the bound is broken.
    pub bad_to_allowed_ratio: f64,
    /// Number of bad requests (failed or too slow) for the most violated bound of the SLO.
    pub worst_bound_bad_requests: u64,
    /// The latency limit, in ns, of the most violated bound of the SLO: a slower response is bad.
    /// `None` if this bound has no latency limit, applies to one named request, or limits another
    /// time than the response time.
    pub worst_bound_ns: Option<u64>,
    /// Failures by kind, in the order of [`RequestFailure::ALL`].
    pub failed: [u64; RequestFailure::KIND_COUNT],
    /// Requests that were never sent.
    pub unsent: u64,
    /// Requests without a response at the end of the trial.
    pub unanswered: u64,
    /// Mean number of requests in flight in each quarter of the judged window.
    pub in_flight: [f64; 4],
    /// Mean number of requests in flight whose response is delayed only by a delayed
    /// acknowledgement, in each quarter of the judged window.
    pub ack_delayed: [f64; 4],
    /// Growth of the backlog (see the head of this file) as a share of the arrivals.
    pub backlog_growth_share: f64,
    /// Requests in flight at the end of the judged window.
    pub in_flight_end: u64,
    /// The capacity of the server: successes a second while the server was saturated. The server is
    /// saturated while its backlog grows, or while it rejects requests. `None` if the server was
    /// not saturated.
    pub saturated_rps: Option<f64>,
    /// Relative standard error of `saturated_rps`, the measured capacity; 0 for a closed-loop
    /// trial.
    pub saturated_error: f64,
    /// Whether the server rejects surplus requests. In an open-loop trial, requests failed other
    /// than by timeout, a bound of the SLO is broken, and the backlog does not grow. In a
    /// closed-loop trial, more requests failed than the SLO allows.
    pub is_rejecting_surplus: bool,
    /// Whether the trial broke the SLO by no more than chance explains. The result of a search
    /// counts such a trial near the load line as a pass.
    pub has_failed_by_chance: bool,
    /// Whether requests failed before the judged window began. If requests failed so early, the
    /// saved tokens of a rate limiter are already exhausted.
    pub has_failures_before_window: bool,
    /// Relative difference between the time integral of the requests in flight and the sum of all
    /// response times. By Little's law the integral equals the sum. `None` if the difference cannot
    /// be computed.
    pub littles_law_gap: Option<f64>,
    /// Mean service time in ns.
    pub service_mean_ns: f64,
    /// Whether the generator was the limit.
    pub is_generator_limited: bool,
    /// Share of its time that the busiest worker thread of the generator worked, 0..=1.
    pub work_share: f64,
    /// Stalls: times without any response although requests waited.
    pub stalls: Vec<Stall>,
    /// For each bound of the SLO in an open trial: the numbers of scheduled and bad requests. The
    /// order is that of [`Slo::allowances`].
    pub bounds: Vec<BoundEvidence>,
    /// Growth of the backlog from the second to the last quarter of the judged window, in requests.
    /// The backlog contains unsent requests.
    pub backlog_growth_requests: f64,
    /// The completions of the server while its queue was never empty; only for a closed trial.
    pub saturation: Option<Saturation>,
}

impl Evidence {
    /// Returns the number of failed requests of all kinds.
    pub fn failed_count(&self) -> u64 {
        // Counts read from a file may have any value, so the sum must not overflow.
        self.failed.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl TrialOutcome {
    /// Whether other processes disturbed a trial that did not pass.
    pub fn is_void_by_interference(&self) -> bool {
        self.verdict == Verdict::Void && self.interference.is_disturbed
    }

    /// Whether a trial is void for a reason other than a disturbance by other processes. Usually,
    /// plimsoll was too slow.
    pub fn is_void_undisturbed(&self) -> bool {
        self.verdict == Verdict::Void && !self.interference.is_disturbed
    }

    /// Returns the verdict as outputs show it: `disturbed` instead of `void` if other processes
    /// disturbed the trial.
    pub fn verdict_name(&self) -> String {
        if self.is_void_by_interference() { "disturbed".to_owned() } else { self.verdict.to_string() }
    }

    /// Returns the response time p50, ns; `None` if too few requests were slower to state it.
    pub fn stated_p50_ns(&self) -> Option<u64> {
        is_stated(0.5, self.succeeded_count()).then_some(self.p50_ns)
    }

    /// Returns the response time p99, ns; `None` if too few requests were slower to state it.
    pub fn stated_p99_ns(&self) -> Option<u64> {
        is_stated(0.99, self.succeeded_count()).then_some(self.p99_ns)
    }

    /// Returns the number of scheduled requests that succeeded. Failed requests other than timeouts
    /// have no response time, so they do not count for a quantile.
    fn succeeded_count(&self) -> u64 {
        (self.success_rate * self.evidence.scheduled as f64).round() as u64
    }

    /// Returns the offered requests a second of an open trial; `None` for a closed trial.
    pub fn offered_rps(&self) -> Option<f64> {
        match self.load {
            OfferedLoad::Rate(rate) => Some(rate),
            OfferedLoad::Users(_) => None,
        }
    }

    /// Returns the users of a closed trial; `None` for an open trial.
    pub fn user_count(&self) -> Option<u64> {
        match self.load {
            OfferedLoad::Rate(_) => None,
            OfferedLoad::Users(users) => Some(users),
        }
    }

    /// Creates the outcome of a trial of one second in which all requests succeeded immediately. A
    /// test overwrites the fields that it needs.
    #[cfg(test)]
    pub(crate) fn one_second_trial(purpose: LoadPurpose, load: OfferedLoad, verdict: Verdict) -> TrialOutcome {
        let goodput_rps = match load {
            OfferedLoad::Rate(rate) => rate,
            OfferedLoad::Users(_) => 1000.0,
        };
        TrialOutcome {
            purpose,
            load,
            start_ns: 0,
            duration_ns: SECOND,
            planned_ns: SECOND,
            is_stopped_early: false,
            goodput_rps,
            success_rate: 1.0,
            p50_ns: SECOND / 1000,
            p99_ns: SECOND / 1000,
            lag_p99_ns: 0,
            verdict,
            reason: Sentence::default(),
            evidence: Evidence::default(),
            interference: Interference::default(),
        }
    }
}

/// Judges the run of a trial that began `start_ns` ns after the start of the search.
pub fn judge(purpose: LoadPurpose, start_ns: u64, run: &Run, slo: &Slo) -> TrialOutcome {
    let plan = &run.plan;
    let (from_ns, planned_end_ns) = judged_window_ns(plan);
    let to_ns = planned_end_ns.min(run.window_ns.1).max(from_ns);
    let window = JudgedWindow { from_ns, to_ns, tick_ns: plan.load.interval_ns.max(1) };
    let mut watch = TrialWatch::new(purpose, plan, slo);
    let mut certain = None;
    let (mut ledger, mut response) = (Ledger::default(), Histogram::new());
    let mut succeeded_in_window = 0;
    let mut has_failures_before_window = false;
    for (index, interval) in &run.intervals {
        let at_ns = u64::from(*index) * window.tick_ns;
        if let ControlFlow::Break(reason) = watch.push(at_ns, interval) {
            certain.get_or_insert(reason);
        }
        let whole = interval.all_routes();
        if at_ns + window.tick_ns <= from_ns {
            has_failures_before_window |= whole.ledger.failed_total() > 0;
            continue;
        }
        ledger.merge(&whole.ledger);
        response.merge_sparse(&whole.response);
        succeeded_in_window += whole.succeeded_in_window;
    }
    let stopped = matches!(run.ending, Some(LoadEnd::Stopped(_)) | None);
    let summary = Summary::with_bound(run, slo.bound_min_ns());
    let seconds = window.length_ns() as f64 / 1e9;
    let mut outcome = TrialOutcome {
        purpose,
        load: match &plan.load.shape {
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => {
                OfferedLoad::Rate(plan.load.shape.curve().stages.last().map_or(0.0, |s| s.to))
            }
            LoadShape::Closed { users } => OfferedLoad::Users(users.max() as u64),
        },
        start_ns,
        duration_ns: window.length_ns(),
        planned_ns: planned_end_ns - from_ns,
        is_stopped_early: stopped,
        goodput_rps: if seconds > 0.0 {
            succeeded_in_window as f64 / seconds / summary.requests_per_session
        } else {
            0.0
        },
        success_rate: success_rate(&ledger, run),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        lag_p99_ns: summary.generator.lag.p99_ns,
        verdict: Verdict::Pass,
        reason: Sentence::default(),
        evidence: Evidence {
            scheduled: ledger.scheduled,
            failed: ledger.failed,
            unsent: ledger.unsent,
            unanswered: ledger.in_flight,
            in_flight: window.quarter_means(run, |interval| interval.load.in_flight_ns as f64),
            ack_delayed: delayed_acks::ack_delay_ns(&summary)
                .map(|_| window.quarter_means(run, delayed_acks::ack_wait_sum_ns))
                .unwrap_or_default(),
            has_failures_before_window,
            littles_law_gap: littles_law_gap(run),
            service_mean_ns: summary.routes_sum.service.mean_ns,
            is_generator_limited: summary.generator.is_limit,
            work_share: summary.generator.work_share,
            ..Evidence::default()
        },
        interference: summary.interference.clone(),
    };
    match outcome.load {
        OfferedLoad::Rate(_) if purpose != LoadPurpose::Settle => {
            judge_open_trial(&mut outcome, &watch, &ledger, &summary, certain, &window)
        }
        OfferedLoad::Rate(_) => {
            // A load that lets the server's backlog drain ends as soon as the backlog has drained.
            // Any other early end, such as the end of the server's process, does not show whether
            // the backlog has drained.
            let (verdict, reason) = match &run.ending {
                Some(LoadEnd::Stopped(stop)) => {
                    let has_drained = matches!(stop, EarlyStopReason::ResultCertain(_));
                    (if has_drained { Verdict::Pass } else { Verdict::Void }, format::stop_reason(stop).to_owned())
                }
                _ => (Verdict::Fail, "the server's backlog did not drain before this load ended".to_owned()),
            };
            (outcome.verdict, outcome.reason) = (verdict, reason.into());
        }
        OfferedLoad::Users(_) => {
            if summary.generator.is_limit {
                outcome.verdict = Verdict::Void;
                outcome.reason = summary.generator.reason.clone().unwrap_or_default();
            }
            let (series, inside) = ticks_from_window_start(run, &window);
            let rejecting =
                failures_except_timeouts(&ledger) >= REJECTIONS_MIN && rejects_surplus(&series[..inside], slo);
            outcome.evidence.is_rejecting_surplus = rejecting;
            // A stall at the end of the window lasts until the last responses, which arrive after
            // the window.
            outcome.evidence.stalls = stalls::detect_stalls(complete_ticks(&series), window.tick_ns);
            outcome.evidence.saturated_rps = saturated_throughput(&series[..inside], window.tick_ns, rejecting)
                .map(|s| s.0 / summary.requests_per_session);
            if purpose == LoadPurpose::Saturate {
                let piece_ns = slo.bound_min_ns().unwrap_or(SECOND);
                outcome.evidence.saturation = closed_trial_saturation(
                    &series[..inside],
                    window.tick_ns,
                    summary.routes_sum.service.mean_ns,
                    piece_ns,
                    summary.requests_per_session,
                );
            }
        }
    }
    if purpose != LoadPurpose::Settle && !breaks_success_by_refusals(&outcome, run, slo) {
        void_if_disturbed(&mut outcome);
    }
    outcome
}

/// Returns the number of requests that the server rejected: failures other than timeouts.
fn failures_except_timeouts(ledger: &Ledger) -> u64 {
    ledger.failed_total() - ledger.failed[RequestFailure::Timeout as usize]
}

/// Returns whether more requests fail than the SLO allows, counted from the first tick with a
/// failure. Ticks before the first failure do not count, because a rate limiter first accepts as
/// many requests as it has tokens.
fn rejects_surplus(series: &[TickFigures], slo: &Slo) -> bool {
    let from_first = series.iter().skip_while(|tick| tick.failed == 0);
    let (failed, ended) =
        from_first.fold((0, 0), |sum, tick| (sum.0 + tick.failed, sum.1 + tick.failed + tick.succeeded));
    failed as f64 > (1.0 - slo.success_min) * ended as f64
}

/// Returns the success rate of a run. Requests in flight at the end count neither as successes nor
/// as failures if plimsoll itself ended them. For example, plimsoll ends requests in flight when it
/// stops a trial whose verdict is certain, and at the end of a closed loop.
fn success_rate(ledger: &Ledger, run: &Run) -> f64 {
    let ended = Ledger { scheduled: ledger.scheduled.saturating_sub(ledger.in_flight), in_flight: 0, ..*ledger };
    let is_shown = matches!(&run.ending, Some(LoadEnd::Stopped(EarlyStopReason::ResultCertain(_))));
    let is_closed = matches!(run.plan.load.shape, LoadShape::Closed { .. });
    match ended.finished_requests() > 0 && (is_shown || is_closed) {
        true => ended.success_rate().min(1.0),
        false => ledger.success_rate().min(1.0),
    }
}

/// Returns whether a failed trial breaks the success rate of the SLO by refusals that interference
/// does not explain. A refusal has a status of 400..=499, except 408, 425 and 429: the server
/// rejects the request itself, whatever the load.
fn breaks_success_by_refusals(outcome: &TrialOutcome, run: &Run, slo: &Slo) -> bool {
    let totals = run.totals();
    let of_load = [408, 425, 429];
    let refused = totals.routes_sum.statuses.iter().filter(|(status, _)| {
        (400..=499).contains(status) && !of_load.contains(status) && !run.plan.traffic.counts_as_success(*status)
    });
    let refused: u64 = refused.map(|(_, times)| times).sum();
    let allowed = (1.0 - slo.success_min) * totals.routes_sum.ledger.scheduled as f64;
    outcome.verdict == Verdict::Fail && refused as f64 > allowed
}

/// Makes a trial that other processes disturbed void, unless it is an open trial that passed. The
/// disturbance becomes the reason of the verdict, even if the generator was the limit too.
fn void_if_disturbed(outcome: &mut TrialOutcome) {
    let Some(reason) = outcome.interference.reason.clone().filter(|_| outcome.interference.is_disturbed) else {
        return;
    };
    match (outcome.load, outcome.verdict) {
        (OfferedLoad::Rate(_), Verdict::Pass) => {
            outcome.reason = std::mem::take(&mut outcome.reason).words(format!(", although {reason}"));
        }
        _ => {
            (outcome.verdict, outcome.reason) = (Verdict::Void, reason.into());
            outcome.evidence.is_generator_limited = false;
        }
    }
}

fn judge_open_trial(
    outcome: &mut TrialOutcome,
    watch: &TrialWatch,
    ledger: &Ledger,
    summary: &Summary,
    certain: Option<String>,
    window: &JudgedWindow,
) {
    let evidence = &mut outcome.evidence;
    let series = &watch.ticks()[..watch.ticks().len().min(window.whole_ticks())];
    evidence.in_flight_end = series.last().map_or(0, |s| s.in_flight_end);
    // A stall at the end of the window may last longer than the window.
    evidence.stalls = stalls::detect_stalls(complete_ticks(watch.ticks()), window.tick_ns);

    // Evaluate the bounds of the SLO. At the end of a complete trial every unanswered request is
    // bad. In a trial that was stopped early only overdue requests are bad.
    let whole = !outcome.is_stopped_early;
    let mut worst: Option<(f64, u64, Option<u64>, String)> = None;
    let mut bounds_hold = true;
    for (at, allowance) in watch.watched_allowances().enumerate() {
        let route_ledger = watch.ledger_of_bound(at, ledger);
        let bad =
            if whole { watch.ended_bad_requests(at) + route_ledger.in_flight } else { watch.bound_violations(at) };
        let excess = bad as f64 / (allowance.share * route_ledger.scheduled as f64).max(1.0);
        bounds_hold &= bad <= allowance.allowed_bad_requests(route_ledger.scheduled);
        if worst.as_ref().is_none_or(|w| excess > w.0) {
            let is_of_all = allowance.route.is_none() && allowance.measure == TimeMeasure::response_time();
            let bound_ns = allowance.bound_ns.filter(|_| is_of_all);
            worst = Some((excess, bad, bound_ns, broken_bound_text(allowance, bad, route_ledger.scheduled)));
        }
    }
    let (excess, bad, bound_ns, sentence) = worst.unwrap_or_default();
    (evidence.bad_to_allowed_ratio, evidence.worst_bound_bad_requests, evidence.worst_bound_ns) =
        (excess, bad, bound_ns);
    let counted = |(at, allowance): (usize, &crate::slo::BadRequestAllowance)| {
        let route_ledger = watch.ledger_of_bound(at, ledger);
        BoundEvidence {
            bound_ns: allowance.request_bound_ns(),
            allowed_share: allowance.share,
            scheduled: route_ledger.scheduled,
            bad_requests: if whole {
                watch.ended_bad_requests(at) + route_ledger.in_flight
            } else {
                watch.bound_violations(at)
            },
            bunch_size: watch.bad_request_bunch_size(at),
        }
    };
    evidence.bounds = watch.watched_allowances().enumerate().map(counted).collect();

    // Evaluate the growth of the backlog.
    let [_, second, _, last] = evidence.in_flight;
    let quarter_s = window.length_ns() as f64 / 4e9;
    let arrivals = ledger.scheduled as f64 / 2.0;
    let requests_rps = outcome.goodput_rps * summary.requests_per_session;
    let stay_s = if requests_rps > 0.0 { second / requests_rps } else { 0.0 };
    let guard = 1.0 + 2.0 * (4.0 * second * (stay_s / quarter_s.max(1e-9)).min(1.0)).sqrt();
    // Requests that wait only for a delayed acknowledgement are not part of the backlog.
    let [_, second_held, _, last_held] = evidence.ack_delayed;
    // The connections limit the number of requests in flight. A request is unsent if all
    // connections already wait for the server. A client without a limit of connections would see an
    // unsent request as part of the backlog. So the growth of the backlog includes the unsent
    // requests. The running total of unsent requests contributes its mean in the last quarter minus
    // its mean in the second quarter.
    let weight = |tick: usize| {
        let place = (tick as f64 + 0.5) / series.len() as f64;
        (4.0 * place - 1.0).min(4.0 - 4.0 * place).clamp(0.0, 1.0)
    };
    let unsent: f64 = series.iter().enumerate().map(|(at, tick)| weight(at) * tick.unsent as f64).sum();
    let growth = (last - last_held) - (second - second_held) + unsent;
    evidence.backlog_growth_share = if arrivals > 0.0 { growth / arrivals } else { 0.0 };
    evidence.backlog_growth_requests = growth;
    let grows = growth > BACKLOG_GROWTH_SHARE_MAX * arrivals && growth > guard;

    let falling_behind = evidence.backlog_growth_share > BACKLOG_GROWTH_SHARE_MAX;
    evidence.is_rejecting_surplus = failures_except_timeouts(ledger) > 0 && !bounds_hold && !falling_behind;
    if (grows || certain.is_some() || !bounds_hold)
        && (falling_behind || evidence.is_rejecting_surplus)
        && let Some((rps, error)) = saturated_throughput(series, window.tick_ns, evidence.is_rejecting_surplus)
    {
        (evidence.saturated_rps, evidence.saturated_error) = (Some(rps / summary.requests_per_session), error);
    }

    let generator = &summary.generator;
    let silent_ns = longest_breaking_stall_ns(&evidence.stalls, watch, window);
    (outcome.verdict, outcome.reason) = if let Some(ns) = silent_ns.filter(|_| generator.is_limit) {
        (Verdict::Fail, format!("no response arrived for {time}", time = format::duration(ns as f64)).into())
    } else if generator.is_limit {
        (Verdict::Void, generator.reason.clone().unwrap_or_default())
    } else if let Some(reason) = certain {
        // The reason why requests were not sent is more informative than the number of unsent
        // requests.
        (Verdict::Fail, generator.reason.clone().unwrap_or_else(|| reason.into()))
    } else if outcome.is_stopped_early {
        (Verdict::Void, "the trial ended before its verdict was certain".into())
    } else if !bounds_hold {
        let reason = generator.reason.clone().unwrap_or_else(|| sentence.into());
        (Verdict::Fail, reason)
    } else if grows {
        (
            Verdict::Fail,
            format!(
                "the server's backlog grew by {share} of the scheduled requests",
                share = format::short_percent(evidence.backlog_growth_share)
            )
            .into(),
        )
    } else if ledger.scheduled == 0 {
        (Verdict::Void, "nothing was scheduled".into())
    } else {
        let p99 = format::duration(outcome.p99_ns as f64);
        (Verdict::Pass, format!("p99 was {p99}").into())
    };
}

/// Returns the length of the server's longest stall, ns, if stalls alone break a bound of the SLO;
/// otherwise `None`. Requests scheduled early in a stall are late even if the generator is fast
/// enough.
fn longest_breaking_stall_ns(stalls: &[Stall], watch: &TrialWatch, window: &JudgedWindow) -> Option<u64> {
    let of_server = || stalls.iter().filter(|stall| stall.has_ended_within_load && stall.has_waiting_sent_request);
    let length_ns = window.length_ns() as f64;
    let broken = watch.watched_allowances().any(|allowance| {
        let beyond_ns = |bound_ns| of_server().map(|stall| stall.time_beyond_bound_ns(bound_ns)).sum::<u64>() as f64;
        allowance.request_bound_ns().is_some_and(|bound_ns| beyond_ns(bound_ns) > allowance.share * length_ns)
    });
    of_server().map(|stall| stall.length_ns).max().filter(|_| broken)
}

/// Returns the ticks in which a stall can be detected. The last tick of a load is incomplete, so a
/// last tick without a response is dropped.
fn complete_ticks(series: &[TickFigures]) -> &[TickFigures] {
    match series.split_last() {
        Some((piece, whole)) if piece.succeeded + piece.failed == 0 => whole,
        _ => series,
    }
}

/// Returns the ticks of a closed trial from the start of the window on, and how many of them are
/// inside the window.
fn ticks_from_window_start(run: &Run, window: &JudgedWindow) -> (Vec<TickFigures>, usize) {
    let ticks = run.intervals.iter().map(|(index, tick)| (u64::from(*index) * window.tick_ns, tick));
    let series: Vec<(bool, TickFigures)> = ticks
        .filter(|(at_ns, _)| *at_ns >= window.from_ns)
        .map(|(at_ns, tick)| (at_ns + window.tick_ns <= window.to_ns, TickFigures::from_interval(tick, window.tick_ns)))
        .collect();
    let inside = series.iter().take_while(|(inside, _)| *inside).count();
    (series.into_iter().map(|(_, seen)| seen).collect(), inside)
}

/// Returns the relative deviation of a whole run from Little's law. By Little's law, the time
/// integral of the requests in flight equals the sum of all response times. Returns `None` if
/// response times are missing (warm-up, unanswered or unsent requests), with fewer than 100
/// requests, or for a load that was stopped.
fn littles_law_gap(run: &Run) -> Option<f64> {
    let (mut in_flight, mut stays, mut ledger) = (0.0, 0.0, Ledger::default());
    for interval in run.intervals.values() {
        in_flight += interval.load.in_flight_ns as f64;
        let whole = interval.all_routes();
        stays += whole.response.sum_ns() as f64 + whole.failed.sum_ns() as f64;
        ledger.merge(&whole.ledger);
    }
    let whole = run.ending == Some(LoadEnd::Finished)
        && run.plan.load.warmup_ns == 0
        && ledger.in_flight == 0
        && ledger.unsent == 0
        && ledger.finished_requests() >= 100;
    (whole && stays > 0.0).then(|| (in_flight - stays).abs() / stays)
}

/// The judged part of a run: its start, end and tick length, in ns since the start of the schedule.
struct JudgedWindow {
    from_ns: u64,
    to_ns: u64,
    tick_ns: u64,
}

impl JudgedWindow {
    fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Returns the number of whole ticks in the window.
    fn whole_ticks(&self) -> usize {
        (self.length_ns() / self.tick_ns) as usize
    }

    /// Returns the mean of a quantity in each quarter of the window. `integral_ns` returns the time
    /// integral of the quantity over one interval. If an interval lies only partly in a quarter,
    /// its integral counts in proportion.
    fn quarter_means(&self, run: &Run, integral_ns: impl Fn(&Interval) -> f64) -> [f64; 4] {
        let length = self.length_ns() as f64 / 4.0;
        let mut means = [0.0; 4];
        if length < 1.0 {
            return means;
        }
        for (quarter, mean) in means.iter_mut().enumerate() {
            let from = self.from_ns as f64 + length * quarter as f64;
            let to = from + length;
            for (index, interval) in &run.intervals {
                let start = (u64::from(*index) * self.tick_ns) as f64;
                let inside = (start + self.tick_ns as f64).min(to) - start.max(from);
                if inside > 0.0 {
                    *mean += integral_ns(interval) * inside / self.tick_ns as f64 / length;
                }
            }
        }
        means
    }
}

#[cfg(test)]
mod tests;
