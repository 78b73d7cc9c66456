//! What a trial showed ([`TrialOutcome`]): a run held against an SLO ([`judge`]).
//!
//! An open trial **passes** when every bound of the SLO holds over all requests scheduled in its judged window (failed,
//! unsent and unanswered ones are slower than any bound) and its backlog does not grow. It is **void** when the generator
//! was the limit, whatever the SLO says. It **fails** otherwise. A closed trial has no SLO: it passes unless void.
//!
//! The backlog grows when the mean number in flight in the last quarter exceeds that in the second quarter by more than
//! 1 % of the arrivals between the middles of the two, and by more than chance would do: one request, plus two standard
//! deviations of the difference of two such means for requests that come and go independently (sqrt(4 n W / T), n in
//! flight, W their mean stay, T the quarter). At 100/s and more that guard is below the 1 % and changes nothing.
//!
//! Not here: which plan to try next.

use crate::condition::format_duration;
use crate::slo::Slo;
use crate::summary::{Summary, round3};
use crate::watch::{Seen, Watch, broken, judged_window_ns, percent};
use plimsoll_model::units::SECOND;
use plimsoll_model::{Ending, Failure, Histogram, Interval, Ledger, LoadShape, Purpose, Run};
use std::fmt;
use std::ops::ControlFlow;

/// The backlog may grow by this share of the arrivals.
pub const GROWTH_MAX: f64 = 0.01;

/// How much was asked of the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Requests a second.
    Rate(f64),
    /// Users who each wait for their answer.
    Users(u64),
}

/// What a trial says about its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The server held it.
    Pass,
    /// The server did not hold it.
    Fail,
    /// The generator was the limit; nothing is said about the server.
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

/// What a trial showed.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialOutcome {
    /// What it was for.
    pub purpose: Purpose,
    /// What was asked, in the judged window.
    pub load: Load,
    /// When it began, in ns since the start of the search.
    pub start_ns: u64,
    /// Length of the judged window as it came to be.
    pub duration_ns: u64,
    /// Length of the judged window as planned.
    pub planned_ns: u64,
    /// Whether it was ended before its schedule's end.
    pub stopped: bool,
    /// Successes a second in the judged window.
    pub achieved_rps: f64,
    /// Share of the scheduled requests that succeeded, 0..=1.
    pub success_rate: f64,
    /// Response time p50 in ns.
    pub p50_ns: u64,
    /// Response time p99 in ns.
    pub p99_ns: u64,
    /// Lag p99 in ns.
    pub lag_p99_ns: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence for it; empty for a pass without remark.
    pub reason: String,
    /// What the search reads beyond the verdict.
    pub evidence: Evidence,
}

/// What the search reads of a trial beyond its verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Requests scheduled in the judged window.
    pub scheduled: u64,
    /// Bad requests over those allowed, for the bound that is nearest to broken; above 1 is broken.
    pub excess: f64,
    /// Bad requests for that bound.
    pub bad: u64,
    /// Failures by kind, in the order of [`Failure::ALL`].
    pub failed: [u64; 6],
    /// Requests never sent.
    pub unsent: u64,
    /// Requests without an answer at the end.
    pub unanswered: u64,
    /// Mean number in flight in each quarter of the judged window.
    pub in_flight: [f64; 4],
    /// Growth of the backlog as a share of the arrivals.
    pub growth: f64,
    /// Requests in flight at the end of the judged window.
    pub backlog_end: u64,
    /// Successes a second while the server was saturated (falling behind, or rejecting): what it can do.
    pub saturated_rps: Option<f64>,
    /// Relative standard error of that.
    pub saturated_error: f64,
    /// The server rejects what is too much, and does so without falling behind.
    pub rejecting: bool,
    /// Requests were rejected before the judged window began: saved-up tokens of a limiter were gone.
    pub primed: bool,
    /// Relative gap between the number in flight and rate x stay (Little's law), where it can be told.
    pub little_gap: Option<f64>,
    /// Mean service time in ns.
    pub service_mean_ns: f64,
    /// Whether the generator was the limit.
    pub generator_limited: bool,
    /// Share of the fullest worker's time spent working.
    pub work_share: f64,
}

impl TrialOutcome {
    /// Requests a second asked for, of an open trial.
    pub fn offered_rps(&self) -> Option<f64> {
        match self.load {
            Load::Rate(rate) => Some(rate),
            Load::Users(_) => None,
        }
    }

    /// Users of a closed trial.
    pub fn concurrency(&self) -> Option<u64> {
        match self.load {
            Load::Rate(_) => None,
            Load::Users(users) => Some(users),
        }
    }
}

/// Judges the run of a trial that began `start_ns` after the search did.
pub fn judge(purpose: Purpose, start_ns: u64, run: &Run, slo: &Slo) -> TrialOutcome {
    let plan = &run.plan;
    let (from_ns, planned_end_ns) = judged_window_ns(plan);
    let to_ns = planned_end_ns.min(run.window_ns.1).max(from_ns);
    let window = Window { from_ns, to_ns, tick_ns: plan.interval_ns.max(1) };
    let mut watch = Watch::new(purpose, plan, slo);
    let mut certain = None;
    let (mut ledger, mut response) = (Ledger::default(), Histogram::new());
    let mut succeeded_in_window = 0;
    let mut rejected_before = false;
    for (index, interval) in &run.intervals {
        let at_ns = u64::from(*index) * window.tick_ns;
        if let ControlFlow::Break(reason) = watch.push(at_ns, interval) {
            certain.get_or_insert(reason);
        }
        if at_ns + window.tick_ns <= from_ns {
            rejected_before |= interval.ledger.failed_total() > 0;
            continue;
        }
        ledger.merge(&interval.ledger);
        response.merge_sparse(&interval.response);
        succeeded_in_window += interval.succeeded_in_window;
    }
    let stopped = matches!(run.ending, Some(Ending::Stopped(_)) | None);
    let summary = Summary::with_bound(run, slo.bound_min_ns());
    let seconds = window.length_ns() as f64 / 1e9;
    let mut outcome = TrialOutcome {
        purpose,
        load: match &plan.load {
            LoadShape::Open { rate, .. } => Load::Rate(rate.stages.last().map_or(0.0, |s| s.to)),
            LoadShape::Closed { users } => Load::Users(users.max() as u64),
        },
        start_ns,
        duration_ns: window.length_ns(),
        planned_ns: planned_end_ns - from_ns,
        stopped,
        achieved_rps: if seconds > 0.0 { succeeded_in_window as f64 / seconds } else { 0.0 },
        success_rate: ledger.success_rate().min(1.0),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        lag_p99_ns: summary.generator.lag.p99_ns,
        verdict: Verdict::Pass,
        reason: String::new(),
        evidence: Evidence {
            scheduled: ledger.scheduled,
            failed: ledger.failed,
            unsent: ledger.unsent,
            unanswered: ledger.in_flight,
            in_flight: window.quarters(run),
            primed: rejected_before,
            little_gap: little_gap(run),
            service_mean_ns: summary.service.mean_ns,
            generator_limited: summary.generator.limited,
            work_share: summary.generator.work_share,
            ..Evidence::default()
        },
    };
    match outcome.load {
        Load::Rate(_) if purpose != Purpose::Settle => {
            open_verdict(&mut outcome, &watch, &ledger, &summary, certain, &window)
        }
        Load::Rate(_) => {
            // The watch ends a settling load as soon as it has done its work.
            let (verdict, reason) = match &run.ending {
                Some(Ending::Stopped(reason)) => (Verdict::Pass, reason.clone()),
                _ => (Verdict::Fail, "the server did not come to rest in this time".to_owned()),
            };
            (outcome.verdict, outcome.reason) = (verdict, reason);
        }
        Load::Users(_) => {
            if summary.generator.limited {
                outcome.verdict = Verdict::Void;
                outcome.reason = summary.generator.reason.clone().unwrap_or_default();
            }
            let failures: u64 = ledger.failed_total();
            outcome.evidence.rejecting = failures > 0;
            outcome.evidence.saturated_rps = saturated(window_series(run, &window), &window, failures > 0).map(|s| s.0);
        }
    }
    outcome
}

fn open_verdict(
    outcome: &mut TrialOutcome,
    watch: &Watch,
    ledger: &Ledger,
    summary: &Summary,
    certain: Option<String>,
    window: &Window,
) {
    let evidence = &mut outcome.evidence;
    let series = &watch.seen()[..watch.seen().len().min(window.ticks())];
    evidence.backlog_end = series.last().map_or(0, |s| s.in_flight_end);

    // The bounds. At the end of a whole trial what is unanswered is bad; of a trial cut short only what is overdue.
    let whole = !outcome.stopped;
    let mut worst: Option<(f64, u64, String)> = None;
    let mut bounds_hold = true;
    for (at, allowance) in watch.allowances().enumerate() {
        let bad = if whole { watch.ended_bad(at) + ledger.in_flight } else { watch.bad(at) };
        let excess = bad as f64 / (allowance.share * ledger.scheduled as f64).max(1.0);
        bounds_hold &= bad <= allowance.count_of(ledger.scheduled);
        if worst.as_ref().is_none_or(|w| excess > w.0) {
            worst = Some((excess, bad, broken(allowance, bad, ledger.scheduled)));
        }
    }
    let (excess, bad, sentence) = worst.unwrap_or_default();
    (evidence.excess, evidence.bad) = (excess, bad);

    // The backlog.
    let [_, second, _, last] = evidence.in_flight;
    let quarter_s = window.length_ns() as f64 / 4e9;
    let arrivals = ledger.scheduled as f64 / 2.0;
    let stay_s = if outcome.achieved_rps > 0.0 { second / outcome.achieved_rps } else { 0.0 };
    let guard = 1.0 + 2.0 * (4.0 * second * (stay_s / quarter_s.max(1e-9)).min(1.0)).sqrt();
    let growth = last - second;
    evidence.growth = if arrivals > 0.0 { growth / arrivals } else { 0.0 };
    let grows = growth > GROWTH_MAX * arrivals && growth > guard;

    let rejections = ledger.failed_total() - ledger.failed[Failure::Timeout as usize];
    let falling_behind = evidence.growth > GROWTH_MAX;
    evidence.rejecting = rejections > 0 && !bounds_hold && !falling_behind;
    if (grows || certain.is_some() || !bounds_hold) && (falling_behind || evidence.rejecting) {
        if let Some((rps, error)) = saturated(series.to_vec(), window, evidence.rejecting) {
            (evidence.saturated_rps, evidence.saturated_error) = (Some(rps), error);
        }
    }

    let generator = &summary.generator;
    (outcome.verdict, outcome.reason) = if generator.limited {
        (Verdict::Void, generator.reason.clone().unwrap_or_default())
    } else if let Some(reason) = certain {
        (Verdict::Fail, reason)
    } else if outcome.stopped {
        (Verdict::Void, "it was ended before its verdict was certain".to_owned())
    } else if !bounds_hold {
        let reason = generator.reason.clone().unwrap_or(sentence);
        (Verdict::Fail, reason)
    } else if grows {
        (Verdict::Fail, format!("the backlog grew by {} of the arrivals", percent(evidence.growth)))
    } else if ledger.scheduled == 0 {
        (Verdict::Void, "nothing was scheduled".to_owned())
    } else {
        let p99 = format_duration(round3(outcome.p99_ns));
        (Verdict::Pass, format!("p99 was {p99}"))
    };
}

/// The ticks of a closed trial's window.
fn window_series(run: &Run, window: &Window) -> Vec<Seen> {
    let inside = run.intervals.iter().filter(|(index, _)| {
        let at = u64::from(**index) * window.tick_ns;
        at >= window.from_ns && at + window.tick_ns <= window.to_ns
    });
    let seen = |interval: &Interval| Seen {
        scheduled: interval.ledger.scheduled,
        succeeded: interval.ledger.succeeded,
        failed: interval.ledger.failed_total(),
        in_flight_end: interval.in_flight_end,
    };
    inside.map(|(_, interval)| seen(interval)).collect()
}

/// Successes a second while the server did all it could: after its queue had filled, or after it had begun to reject.
/// With its relative standard error. The highest and lowest tenth of the ticks are left out, so that a single stall does
/// not count as capacity.
fn saturated(series: Vec<Seen>, window: &Window, rejecting: bool) -> Option<(f64, f64)> {
    let skip = match rejecting {
        true => series.iter().position(|s| s.failed > 0)? + 1,
        false => series.len() / 4,
    };
    let mut ticks: Vec<u64> = series.get(skip..)?.iter().map(|s| s.succeeded).collect();
    if ticks.len() < 2 {
        return None;
    }
    // Few answers in a tick come in lumps; then every tick counts.
    ticks.sort_unstable();
    let trim = if ticks[ticks.len() / 2] >= 50 { ticks.len() / 10 } else { 0 };
    let kept = &ticks[trim..ticks.len() - trim];
    let per_tick = kept.iter().sum::<u64>() as f64 / kept.len() as f64;
    let variance = kept.iter().map(|c| (*c as f64 - per_tick).powi(2)).sum::<f64>() / kept.len() as f64;
    let error = (variance / kept.len() as f64).sqrt() / per_tick.max(1e-9);
    Some((per_tick * SECOND as f64 / window.tick_ns as f64, error))
}

/// Little's law over a whole run: the integral of the number in flight against the sum of all stays. `None` where stays
/// are missing: warm-up, unanswered requests, or too few of them.
fn little_gap(run: &Run) -> Option<f64> {
    let (mut in_flight, mut stays, mut ledger) = (0.0, 0.0, Ledger::default());
    for interval in run.intervals.values() {
        in_flight += interval.in_flight_ns as f64;
        stays += interval.response.sum_ns() as f64 + interval.failed.sum_ns() as f64;
        ledger.merge(&interval.ledger);
    }
    let whole = run.plan.warmup_ns == 0 && ledger.in_flight == 0 && ledger.unsent == 0 && ledger.requests() >= 100;
    (whole && stays > 0.0).then(|| (in_flight - stays).abs() / stays)
}

/// The judged part of a run, in schedule time.
struct Window {
    from_ns: u64,
    to_ns: u64,
    tick_ns: u64,
}

impl Window {
    fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Whole ticks in the window.
    fn ticks(&self) -> usize {
        (self.length_ns() / self.tick_ns) as usize
    }

    /// Mean number in flight in each quarter; an interval counts by the part of it that lies inside.
    fn quarters(&self, run: &Run) -> [f64; 4] {
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
                    *mean += interval.in_flight_ns as f64 * inside / self.tick_ns as f64 / length;
                }
            }
        }
        means
    }
}
