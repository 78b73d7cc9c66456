//! The facts about one server ([`ServerFacts`]): signals (measured figures) of steady loads. The
//! steady loads run at a low rate, at half the load line, at the line and just above. The facts
//! also contain the result of the search, and figures that follow from queueing laws such as
//! Little's law.
//!
//! Not here: the conclusions from the facts (`features`).

use super::demands::{ServiceDemand, UsedResource, busy_allowed_cores, estimate_demands};
use super::signals::{LoadSignals, Signal};
use super::thresholds::{
    AVAILABLE_IDLE_SHARE_MIN, CLEARLY_MORE_FACTOR_MIN, CONSIDERABLE_SHARE_MIN, COUNT_ABOVE_CHANCE_MIN,
    INTERRUPTED_THREAD_SHARE_MIN, KEEPS_UP_SHARE_MIN, MANY_FAILURES_SHARE_MIN, MOST_SHARE_MIN, NOTICEABLE_SHARE_MIN,
    ONE_CORE_RANGE, RISEN_FACTOR_MIN, SATURATED_IDLE_SHARE_MAX, SATURATED_THREAD_SHARE_MIN, SLOWER_FACTOR_MIN,
    SMALL_SHARE_MAX, THROTTLED_PERIODS_SHARE_MIN, TWOFOLD_FACTOR, WAKE_UP_TIME_MAX_NS,
};
use crate::find::{Findings, SloBreakKind, StopReason};
use crate::judge::{TrialOutcome, Verdict};
use crate::slo::Slo;
use plimsoll_model::series_table as table;
use plimsoll_model::{LoadPurpose, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The runs of the loads that an explanation compares; `None` for a load that was not made.
#[derive(Debug, Clone, Default)]
pub struct Loads<'a> {
    /// The low load: a steady load at about 15 % of the load line.
    pub low: Option<&'a Run>,
    /// A steady load at about half the load line.
    pub half: Option<&'a Run>,
    /// A steady load at the load line, or just below.
    pub line: Option<&'a Run>,
    /// A steady load just above the load line.
    pub past: Option<&'a Run>,
    /// The highest load above the load line that met the SLO; `None` without such a load.
    pub sustained_above_line: Option<&'a Run>,
    /// The closed-loop loads with enough users to saturate the server.
    pub closed: Vec<&'a Run>,
    /// Number of processes of the server's control group that the kernel killed because memory was
    /// short, during the steady loads or during the search. `None`: the number is not known.
    pub killed_processes: Option<f64>,
}

/// Returns how many processes the kernel killed during these runs because memory was short. The
/// loads in `runs` are in order of time. A restarted server has a new control group, so the counter
/// of killed processes may begin again at 0. Returns `None` if the counter was not observed.
pub fn killed_processes<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<f64> {
    let series = runs.filter_map(|run| run.probes.series.get(table::CGROUP_OOM_KILLS.name));
    let counts: Vec<f64> =
        series.flat_map(|series| series.samples_between(i64::MIN, i64::MAX)).map(|sample| sample.value).collect();
    (!counts.is_empty()).then(|| counts.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).sum())
}

/// A load of at least this share of the load line counts as the load at the line.
const LINE_LOAD_SHARE_MIN: f64 = 0.88;
/// A load of at most this share of the load line counts as the low load.
const LOW_LOAD_SHARE_MAX: f64 = 0.4;

impl<'a> Loads<'a> {
    /// Selects the trials of a search that are nearest to the loads of an explanation. `runs`: the
    /// runs of the trials, in order.
    pub fn from_search(findings: &Findings, runs: &[&'a Run]) -> Loads<'a> {
        let line = reference_rate(findings);
        let open = || {
            let whole = findings.trials.iter().zip(runs).filter(|(trial, _)| {
                !matches!(trial.purpose, LoadPurpose::Settle | LoadPurpose::Profile) && trial.verdict != Verdict::Void
            });
            whole.filter_map(|(trial, run)| Some((trial.offered_rps()?, trial, *run)))
        };
        let nearest = |share: f64, from: f64, to: f64| {
            let within = open().filter(|(rate, ..)| *rate >= from * line && *rate <= to * line);
            let far = |rate: f64| (rate / (share * line)).ln().abs();
            // Among loads of equal rate, the longest load is selected; among loads of equal rate
            // and length, the first.
            let by = |a: &(f64, &TrialOutcome, &Run), b: &(f64, &TrialOutcome, &Run)| {
                far(a.0).total_cmp(&far(b.0)).then(b.1.duration_ns.cmp(&a.1.duration_ns))
            };
            within.min_by(by)
        };
        let past = nearest(1.1, 1.005, 2.0);
        let is_strict_pass =
            |trial: &TrialOutcome| trial.verdict == Verdict::Pass && !trial.evidence.has_failed_by_chance;
        Loads {
            low: nearest(0.15, 0.0, LOW_LOAD_SHARE_MAX).map(|found| found.2),
            half: nearest(0.5, LOW_LOAD_SHARE_MAX, LINE_LOAD_SHARE_MIN).map(|found| found.2),
            line: nearest(1.0, LINE_LOAD_SHARE_MIN, 1.0001).map(|found| found.2),
            past: past.map(|found| found.2),
            sustained_above_line: past.filter(|found| is_strict_pass(found.1)).map(|found| found.2),
            closed: Vec::new(),
            killed_processes: killed_processes(runs.iter().copied()),
        }
    }
}

/// Returns the reference rate of an explanation, 1/s: the rate of each load is given as a share of
/// this rate. The reference rate is the load line or, without a load line, the server's highest
/// throughput.
pub fn reference_rate(findings: &Findings) -> f64 {
    let line = findings.load_line.rps;
    if line > 0.0 {
        return line;
    }
    let peak = findings.peak.map_or(0.0, |peak| peak.rps);
    // If a single user waits too long for a response, the search tries no more users. Then the peak
    // is the throughput of one user, not the capacity of the server. So the throughput of all other
    // trials counts, too.
    let climbed = findings.peak.is_some_and(|peak| peak.users > 1);
    let measured = findings.trials.iter().filter(|trial| !climbed && trial.purpose != LoadPurpose::Settle);
    measured.map(|trial| trial.goodput_rps).fold(peak, f64::max)
}

/// Returns the throughput that the server sustains, 1/s: usually `best_rps`, the highest throughput
/// of any load. Without a load line, the result is `steady_rps` if the server did not keep up with
/// `past`. `steady_rps` is the highest throughput of the steady loads, and `past` is the steady
/// load above the line.
pub(super) fn sustained_rps(has_line: bool, best_rps: f64, steady_rps: Option<f64>, past: &LoadSignals) -> f64 {
    let pushed = past
        .get(Signal::Goodput)
        .zip(past.get(Signal::Offered))
        .is_some_and(|(goodput_rps, offered_rps)| goodput_rps < KEEPS_UP_SHARE_MIN * offered_rps);
    steady_rps.filter(|rps| !has_line && pushed && *rps > 0.0).unwrap_or(best_rps)
}

/// The share of requests that fail at every load, with a sentence about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstantFailureShare {
    /// The share of failed requests, 0..=1.
    pub share: f64,
    /// A clause about the share, such as `0.5 % of the requests fail at any load`.
    pub text: String,
}

/// The facts about one server, from which the answers to the features (questions about the server)
/// are computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The signals of the low load, at about 15 % of the load line.
    pub low: LoadSignals,
    /// The signals of the load at half the load line.
    pub half: LoadSignals,
    /// The signals of the load at the load line.
    pub line: LoadSignals,
    /// The signals of the load just above the load line.
    pub past: LoadSignals,
    /// The signals of the closed-loop load with the highest goodput.
    pub closed: LoadSignals,
    /// Number of processes that the kernel killed because memory was short; `None`: not known.
    pub killed: Option<f64>,
    /// The highest rate above the load line that met the SLO, in requests a second; `None` without
    /// such a rate.
    pub held_past_rps: Option<f64>,
    /// The load line, in requests a second: its estimate or, if its interval is too wide for an
    /// estimate, the lower end of the interval. The value is 0 without a load line.
    pub lower_rps: f64,
    /// The lower end of the load line's interval, in requests a second. `None`: the facts were
    /// recorded without this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_lower_rps: Option<f64>,
    /// The upper end of the load line's interval, in requests a second. `None`: no tried rate was
    /// too high.
    pub upper_rps: Option<f64>,
    /// The reason why the search ended.
    pub stopped_by: StopReason,
    /// The SLO of the search.
    #[serde(with = "slo_text")]
    pub slo: Slo,
    /// The highest throughput of any load, requests a second.
    pub best_rps: f64,
    /// The highest throughput that lasts, requests a second. For a server without a load line, the
    /// throughput that lasts is the throughput of overloaded steady loads. In a short trial, the
    /// throughput may be too high, because the trial falls between two stalls or uses up the rest
    /// of a quota.
    pub sustained_rps: f64,
    /// The server's throughput while it was saturated during the search, in requests a second: the
    /// maximum over the failed trials. `None`: no failed trial saturated the server.
    pub saturated_rps: Option<f64>,
    /// Whether other programs disturbed the search.
    #[serde(default)]
    pub is_search_disturbed: bool,
    /// The unit of the offered rate: `requests`, or `sessions` of several requests.
    pub counted: String,
    /// Mean number of requests of a session; 1 if the load has no sessions.
    pub requests_each: f64,
    /// Mean service time of a request while no other request is in flight, ns.
    pub alone_ns: Option<f64>,
    /// Mean service time of a request of a single user, in the first load of the search, ns.
    pub alone_first_ns: Option<f64>,
    /// How long the last part of a short response waits for a delayed TCP acknowledgement, ns.
    /// `None`: responses do not wait for acknowledgements.
    pub held_back_ns: Option<f64>,
    /// The share of requests that failed at every load of the search; `None` if the SLO allows this
    /// share.
    #[serde(rename = "failing")]
    pub constant_failure: Option<ConstantFailureShare>,
    /// The text about a server that stopped during the search. The text names the load since which
    /// the server accepted no connection. `None`: the server did not stop.
    #[serde(rename = "gone")]
    pub target_loss: Option<String>,
    /// The demand of a request on each resource: the time of the resource that one request uses.
    /// The demands are computed from the signals of the loads, and are not recorded.
    #[serde(skip)]
    pub demands: Vec<ServiceDemand>,
}

impl ServerFacts {
    /// Computes the facts from the result of a search and the steady loads after it. `findings`
    /// contains no loads that only drain queues or warm up the server.
    pub fn from_loads(findings: &Findings, loads: &Loads) -> ServerFacts {
        let under = |run: &Run| LoadSignals::from_run_with_latency_bound(run, findings.slo.bound_min_ns());
        let sight = |run: Option<&Run>| run.map(under).unwrap_or_default();
        let [low, half, line, past] = [loads.low, loads.half, loads.line, loads.past].map(sight);
        // Among several closed-loop loads, the one with the highest goodput counts.
        let goodput = |sight: &LoadSignals| sight.get(Signal::Goodput).unwrap_or(0.0);
        let closed = loads.closed.iter().map(|run| under(run)).max_by(|a, b| goodput(a).total_cmp(&goodput(b)));
        let closed = closed.unwrap_or_default();
        let each = [&line, &low, &half, &past].into_iter().map(|sight| sight.requests_each).find(|each| *each > 0.0);
        let requests_each = each.unwrap_or(1.0);
        let peak = findings.peak.map_or(0.0, |peak| peak.rps) * requests_each;
        let goodput = [&low, &half, &line, &past].into_iter().filter_map(|sight| sight.get(Signal::Goodput));
        let steady_rps = goodput.reduce(f64::max);
        let best_rps = steady_rps.unwrap_or(0.0).max(peak);
        let has_line = findings.load_line.rps > 0.0;
        let sustained_rps = sustained_rps(has_line, best_rps, steady_rps, &past);
        // A request of a single user meets no queue. Even at a low load, some requests overlap and
        // wait.
        let single = findings.trials.iter().filter(|trial| trial.user_count() == Some(1));
        let mut single = single.map(|trial| trial.evidence.service_mean_ns).filter(|ns| *ns > 0.0).peekable();
        let alone_first_ns = single.peek().copied();
        // The service time is the mean, not the median: by Little's law, a rare long request
        // occupies its worker for its whole time. Of the mean service times of several loads, the
        // minimum counts, because a low load may have to wake sleeping threads. A request alone is
        // never slower than a request among other requests.
        let means = [&low, &half, &line].map(|sight| sight.service_mean_ns);
        let alone_ns = means.into_iter().flatten().chain(single).reduce(f64::min);
        let held_back_ns = low.held_back_ns;
        let overloads = findings
            .trials
            .iter()
            .filter(|trial| trial.verdict == Verdict::Fail || trial.evidence.has_failed_by_chance);
        let saturated_rps = overloads.filter_map(|trial| trial.evidence.saturated_rps).reduce(f64::max);
        let demands = estimate_demands(&[&low, &half, &line, &past]);
        let failing = findings.constant_failure.filter(|failing| failing.kind == SloBreakKind::Failed);
        ServerFacts {
            held_past_rps: loads.sustained_above_line.and_then(|run| under(run).get(Signal::Offered)),
            lower_rps: findings.load_line.rps * requests_each,
            interval_lower_rps: Some(findings.load_line.lower * requests_each),
            upper_rps: findings.load_line.upper.map(|upper| upper * requests_each),
            stopped_by: findings.stopped_by,
            slo: findings.slo.clone(),
            best_rps,
            sustained_rps,
            saturated_rps: saturated_rps.map(|rps| rps * requests_each),
            is_search_disturbed: findings.interference.is_disturbed,
            counted: findings.rate_unit.to_owned(),
            requests_each,
            alone_ns,
            alone_first_ns,
            held_back_ns,
            constant_failure: failing
                .map(|failing| ConstantFailureShare { share: failing.share, text: failing.failure_text() }),
            target_loss: findings.target_loss.map(|gone| gone.server_loss_text()),
            killed: loads.killed_processes,
            demands,
            low,
            half,
            line,
            past,
            closed,
        }
    }

    /// Returns whether at least one of three steady loads was made: the low load, the load at the
    /// load line, or the load above the load line.
    pub fn has_steady_loads(&self) -> bool {
        [&self.low, &self.line, &self.past].iter().any(|sight| sight.has_signals())
    }

    /// Formats a rate of requests in the unit of the offered load, such as `1 000 requests/s` or
    /// `100 sessions/s`.
    pub fn rate_text(&self, requests_rps: f64) -> String {
        format!("{} {}/s", crate::format::rate(requests_rps / self.requests_each), self.counted)
    }

    /// Returns whether the interval of the load line is so wide that its lower end does not stand
    /// for the load line.
    pub fn is_load_line_uncertain(&self) -> bool {
        self.upper_rps.is_some_and(|upper_rps| upper_rps > CLEARLY_MORE_FACTOR_MIN * self.lower_rps)
    }

    /// Formats the load line for a sentence: one rate, or both ends of a wide interval. Without an
    /// upper end, the text is `at least` and the lower end.
    pub fn load_line_text(&self) -> String {
        let lower_end_rps = self.interval_lower_rps.unwrap_or(self.lower_rps);
        match self.upper_rps {
            None => format!("at least {lower_rate}", lower_rate = self.rate_text(lower_end_rps)),
            Some(upper_rps) if self.is_load_line_uncertain() => format!(
                "between {} and {upper_rate}",
                crate::format::rate(lower_end_rps / self.requests_each),
                upper_rate = self.rate_text(upper_rps)
            ),
            Some(_) => self.rate_text(self.lower_rps),
        }
    }

    /// Returns the maximum of a signal at the load line and above; `None` if it was not observed.
    pub fn max_at_high_load(&self, signal: Signal) -> Option<f64> {
        // Above the line, the kernel may interrupt a thread to serve waiting connections, so the
        // thread's measured share of a core is too low. The closed-loop load has fewer waiting
        // connections than the load above the line.
        let threads = matches!(signal, Signal::FullestThread | Signal::FullThreads);
        let closed = self.best_closed_load().filter(|_| threads).and_then(|sight| sight.get(signal));
        self.line.get(signal).into_iter().chain(self.past.get(signal)).chain(closed).reduce(f64::max)
    }

    /// Returns the signals of the closed-loop load if its goodput is at least the goodput of the
    /// load above the line. Above the line, thousands of waiting requests and their connections use
    /// part of the resources. Returns `None` if the closed-loop load has less goodput, if at least
    /// 1 % of its requests failed, or if a load is missing.
    pub fn best_closed_load(&self) -> Option<&LoadSignals> {
        let answered = |sight: &LoadSignals| sight.get(Signal::Goodput);
        // In a closed loop, a user whose request is rejected sends the next request immediately, so
        // rejections increase the load.
        let refuses = self.closed.get(Signal::Failed).is_some_and(|share| share >= MANY_FAILURES_SHARE_MIN);
        (!refuses && answered(&self.closed)? >= answered(&self.past)?).then_some(&self.closed)
    }

    /// Returns the minimum of a signal at the load line and above; `None` if it was not observed.
    pub fn min_at_high_load(&self, signal: Signal) -> Option<f64> {
        self.line.get(signal).into_iter().chain(self.past.get(signal)).reduce(f64::min)
    }

    /// Returns whether the maximum of a signal at the load line and above is at least `least`.
    pub fn signal_reaches(&self, signal: Signal, least: f64) -> Option<bool> {
        self.max_at_high_load(signal).map(|top| top >= least)
    }

    /// Returns whether the maximum of a signal at the load line and above is at least `times` its
    /// value at the low load. A signal that is 0 at the low load and positive at the load line or
    /// above has risen.
    pub fn signal_rises(&self, signal: Signal, times: f64) -> Option<bool> {
        let (low, top) = (self.low.get(signal)?, self.max_at_high_load(signal)?);
        Some(top > 0.0 && top >= low * times)
    }

    /// Returns how many requests are in service at once at the server's peak. By Little's law, the
    /// number of requests in service is the highest throughput times the service time of a single
    /// request. If the limiting resource serves k requests at once, k requests are in service. A
    /// result below 1 means that no resource of the server is always busy. `None`: there is no load
    /// above the line, so the peak is not known.
    pub fn requests_in_service(&self) -> Option<f64> {
        self.past.get(Signal::Goodput)?;
        (self.best_rps > 0.0).then_some(self.best_rps * self.worker_time_ns()? / 1e9)
    }

    /// Returns the time for which a single request occupies its worker, ns.
    pub fn worker_time_ns(&self) -> Option<f64> {
        // A worker is free once it has written a response. The worker does not wait until the
        // kernel has sent the whole response.
        let written_ns = self.held_back_ns.and_then(|_| self.low.get(Signal::FirstByte)).unwrap_or(f64::INFINITY);
        Some(written_ns.min(self.alone_ns?))
    }

    /// Returns the goodput of the closed-loop load, divided by the goodput under overload in the
    /// search. In a closed loop fewer requests compete, so a ratio slightly above 1 is no evidence
    /// of a gain. Returns `None` if [`Self::best_closed_load`] returns `None`, or if no failed
    /// trial saturated the server.
    pub fn goodput_gain_of_closed_loop(&self) -> Option<f64> {
        Some(self.best_closed_load()?.get(Signal::Goodput)? / self.saturated_rps?)
    }

    /// Returns whether the load above the line gave no higher throughput than the server reached
    /// before: at the line, at a tried rate above the line, or under an overload in the search.
    /// Failures that occur at every load do not count as missing throughput.
    pub fn has_throughput_plateau(&self) -> Option<bool> {
        let (offered_rps, goodput_rps) =
            (self.past.throughput_without_waits_rps(self.alone_ns)?, self.past.get(Signal::Goodput)?);
        let offered_rps = offered_rps * (1.0 - self.constant_failure_share().unwrap_or(0.0));
        let line = self.line.get(Signal::Goodput).unwrap_or(self.lower_rps);
        // On a plateau, the throughput is at most slightly above the highest of these rates: the
        // load line, the highest rate tried above the line, and the throughput under an overload in
        // the search. Without a load line, or if some queues fill long before other queues, a
        // plateau may have any throughput.
        let higher = [self.held_past_rps, self.upper_rps, self.saturated_rps];
        let known = higher.into_iter().flatten().fold(line, f64::max);
        // If the server sustained a rate above the load line, its limit may be anywhere between
        // this rate and the next higher load.
        let next_step = self.held_past_rps.is_some_and(|held| offered_rps <= SLOWER_FACTOR_MIN * held);
        let anywhere = self.lower_rps <= 0.0 || self.has_uneven_queues() || next_step;
        let most = if anywhere { f64::INFINITY } else { known * (1.0 + SMALL_SHARE_MAX) };
        Some(goodput_rps < offered_rps * KEEPS_UP_SHARE_MIN && goodput_rps <= most)
    }

    /// Returns whether some requests wait long above the line while most are as fast as at a low
    /// load. The reason is that each process of the server has its own queue: kept-alive
    /// connections stay with their process, so some queues fill first.
    fn has_uneven_queues(&self) -> bool {
        let p50 = |sight: &LoadSignals| sight.get(Signal::P50);
        let soon =
            p50(&self.past).zip(p50(&self.low)).is_some_and(|(past_ns, low_ns)| past_ns <= SLOWER_FACTOR_MIN * low_ns);
        let wait = self
            .past
            .get(Signal::P99)
            .zip(p50(&self.past))
            .is_some_and(|(p99, p50)| p99 >= COUNT_ABOVE_CHANCE_MIN * p50);
        soon && wait
            && self.held_past_rps.is_none()
            && self.worker_processes().is_some_and(|count| count >= TWOFOLD_FACTOR)
    }

    /// Returns whether all cores of the machine are in use at the load line or above. Either hardly
    /// any core is idle, or few cores are idle and at least as many server threads wait for a core.
    /// Idle cores and waiting threads coincide because the kernel does not move waiting threads to
    /// idle cores immediately.
    pub fn are_cores_saturated(&self) -> Option<bool> {
        let (idle, cores) = (self.min_at_high_load(Signal::Idle)?, self.max_at_high_load(Signal::Cores)?);
        let wanted = |sight: &LoadSignals| {
            let (idle, waiting) = (sight.get(Signal::Idle)?, self.threads_waiting_for_cores(sight)?);
            Some(idle < AVAILABLE_IDLE_SHARE_MIN * cores && waiting >= idle.max(MOST_SHARE_MIN))
        };
        let wanted = wanted(&self.line) == Some(true) || wanted(&self.past) == Some(true);
        Some(idle <= SATURATED_IDLE_SHARE_MAX * cores || wanted)
    }

    /// Returns the mean number of server threads that wait for a core, without threads that are
    /// just being woken. The time to wake a thread comes from the low load, where cores are idle.
    /// Returns `None` if at least as many threads wait for each other as for a core. Threads that
    /// already wait for each other at the low load do not count.
    fn threads_waiting_for_cores(&self, signals: &LoadSignals) -> Option<f64> {
        let woken_rps = |sight: &LoadSignals| Some(sight.get(Signal::Switches)? * sight.get(Signal::Goodput)?);
        let woken = woken_rps(&self.low).filter(|rps| *rps > 0.0);
        let wake_s = woken.zip(self.low.get(Signal::RunQueue)).map_or(0.0, |(rps, waiting)| waiting / rps);
        let waiting = signals.get(Signal::RunQueue)? - woken_rps(signals)? * wake_s;
        let for_each_other = |sight: &LoadSignals| sight.get(Signal::InLock).unwrap_or(0.0);
        (for_each_other(signals) - for_each_other(&self.low) < waiting).then_some(waiting)
    }

    /// Returns whether the server is bound to some cores, and all these cores are in use at the
    /// load line or above. The cores may be in use by the server, or by dependencies that are bound
    /// to the same cores.
    pub fn are_bound_cores_saturated(&self) -> Option<bool> {
        let allowed = self.max_at_high_load(Signal::CoresAllowed)?;
        let used = [&self.line, &self.past].into_iter().filter_map(busy_allowed_cores).reduce(f64::max)?;
        Some(allowed < self.max_at_high_load(Signal::Cores)? && used >= (1.0 - SMALL_SHARE_MAX) * allowed)
    }

    /// Returns whether the server may use only one core of a machine with more cores. On one core,
    /// a saturated thread does not show that one thread is the limit, because a second thread would
    /// have no core.
    pub fn is_bound_to_one_core(&self) -> bool {
        self.max_at_high_load(Signal::CoresAllowed)
            .zip(self.max_at_high_load(Signal::Cores))
            .is_some_and(|(own, all)| own <= 1.0 && all > 1.0)
    }

    /// Returns whether the server has idle cores that it may use, at the load line and above.
    pub fn has_idle_cores(&self) -> Option<bool> {
        let closed = self.best_closed_load().and_then(|sight| sight.get(Signal::Idle)).unwrap_or(0.0);
        let (idle, cores) = (self.min_at_high_load(Signal::Idle)?.max(closed), self.max_at_high_load(Signal::Cores)?);
        Some(
            idle >= (AVAILABLE_IDLE_SHARE_MIN * cores).min(MOST_SHARE_MIN)
                && !self.are_bound_cores_saturated().unwrap_or(false)
                && !self.are_cores_saturated()?,
        )
    }

    /// Returns whether a thread of the server is saturated at the load line or above. A saturated
    /// thread works all the time, except while helper threads stop it. Helper threads collect
    /// garbage or compile code for the server's runtime. A saturated thread and its helper threads
    /// together use one core.
    pub fn is_thread_saturated(&self) -> Option<bool> {
        let fullest = self.max_at_high_load(Signal::FullestThread)?;
        let one_core = || self.max_at_high_load(Signal::ServerCores).is_some_and(|used| ONE_CORE_RANGE.contains(&used));
        let alone = || self.max_at_high_load(Signal::FullThreads).is_some_and(|count| count <= 1.0);
        // If a server rejects requests but responds as fast as before, no request waits, and no
        // thread is saturated.
        let waits = || {
            let (low, past) = (self.low.get(Signal::Service)?, self.past.get(Signal::Service)?);
            Some(past >= RISEN_FACTOR_MIN * low && self.has_throughput_plateau()? && self.has_idle_cores()?)
        };
        let is_full = fullest >= SATURATED_THREAD_SHARE_MIN
            || fullest >= INTERRUPTED_THREAD_SHARE_MIN && one_core() && alone() && waits()?;
        // A thread that is equally busy at a low load polls, or does work that no request needs.
        let by_requests = self.low.get(Signal::FullestThread).is_none_or(|low| low < (1.0 - SMALL_SHARE_MAX) * fullest);
        Some(is_full && by_requests && !self.several_threads_saturate_cores().unwrap_or(false))
    }

    /// Returns whether no core is idle because several threads of the server are busy. If several
    /// busy threads leave no core idle, the cores are the limit, even if one of the threads uses a
    /// whole core. Cores that other programs or the machine's host used do not count.
    fn several_threads_saturate_cores(&self) -> Option<bool> {
        let other_threads =
            self.max_at_high_load(Signal::ServerCores)? - self.max_at_high_load(Signal::FullestThread)?;
        let uses_the_rest = |sight: &LoadSignals| {
            let left = sight.get(Signal::Cores)? - sight.cores_taken_by_others().unwrap_or(0.0);
            Some(sight.get(Signal::ServerCores)? >= (1.0 - SMALL_SHARE_MAX) * left)
        };
        let own = uses_the_rest(&self.line) == Some(true) || uses_the_rest(&self.past) == Some(true);
        Some(self.are_cores_saturated()? && own && other_threads >= MOST_SHARE_MIN)
    }

    /// Returns the share of the server's CPU time that garbage collection uses. For a collector
    /// that runs in parallel to requests, the result is the share above the line. At a lower load,
    /// a parallel collector may use idle cores at no cost to requests. Go's collector, for example,
    /// runs idle workers on idle cores.
    pub fn gc_share(&self) -> Option<f64> {
        let past = self.past.get(Signal::Gc).filter(|_| self.past.collects_beside);
        past.or(self.max_at_high_load(Signal::Gc))
    }

    /// Returns whether garbage collection takes more CPU time from requests, or stops requests for
    /// longer, than at a low load. The function also returns true if garbage collection is so
    /// costly that even a low load fails.
    pub fn gc_costs_more_under_load(&self) -> bool {
        let work = |sight: &LoadSignals| Some(sight.get(Signal::Gc)? * sight.get(Signal::ServerCores)?);
        let low = work(&self.low).unwrap_or(0.0);
        let top = [&self.line, &self.past].into_iter().filter_map(work).fold(0.0, f64::max);
        let pauses = self.signal_rises(Signal::GcPauses, SLOWER_FACTOR_MIN).unwrap_or(false);
        let unanswered = self.low.get(Signal::Goodput) < self.low.get(Signal::Offered).map(|rps| MOST_SHARE_MIN * rps);
        // At a low load, a collector may use CPU time that nothing else needs. Once all cores are
        // in use, most of the collector's CPU time is missing for requests.
        let from_requests =
            self.are_cores_saturated() == Some(true) && self.signal_reaches(Signal::Gc, MOST_SHARE_MIN) == Some(true);
        top > 0.0 && top >= (1.0 + NOTICEABLE_SHARE_MIN) * low
            || pauses
            || from_requests
            || unanswered && self.gc_stops_all_requests()
    }

    /// Returns whether garbage collection that stops all requests uses half a core or more.
    pub fn gc_stops_all_requests(&self) -> bool {
        let alone = !self.past.collects_beside && !self.line.collects_beside;
        let of = |sight: &LoadSignals| Some(sight.get(Signal::Gc)? * sight.get(Signal::ServerCores)?);
        alone && of(&self.past).or(of(&self.line)).is_some_and(|cores| cores >= MOST_SHARE_MIN)
    }

    /// Returns whether the number of threads in a waiting state (`signal`) reaches `least`, and is
    /// clearly larger than at a low load. The number of waiting threads must double, unless the
    /// number rises from below one to about one.
    pub fn more_threads_wait(&self, signal: Signal, least: f64) -> Option<bool> {
        let (top, low) = (self.max_at_high_load(signal)?, self.low.get(signal).unwrap_or(0.0));
        let one = top >= 1.0 - CONSIDERABLE_SHARE_MIN
            && low <= 1.0 - CONSIDERABLE_SHARE_MIN
            && top >= (1.0 + CONSIDERABLE_SHARE_MIN) * low;
        Some(top >= least && (top >= TWOFOLD_FACTOR * low || one))
    }

    /// Returns whether more requests are in service than the server uses cores. If more requests
    /// are in service than cores are used, the server's workers wait for something other than a
    /// core.
    pub fn requests_in_service_exceed_cores(&self) -> Option<bool> {
        let served_ns = self.worker_time_ns()? - WAKE_UP_TIME_MAX_NS;
        Some(self.best_rps * served_ns / 1e9 >= CLEARLY_MORE_FACTOR_MIN * self.max_at_high_load(Signal::ServerCores)?)
    }

    /// Returns whether the server's control group exhausted its CPU quota in at least 5 % of the
    /// quota's periods.
    pub fn is_quota_exhausted(&self) -> Option<bool> {
        self.signal_reaches(Signal::Throttled, THROTTLED_PERIODS_SHARE_MIN)
    }

    /// Returns the facts with the demands on resources added. A recorded file of the facts does not
    /// contain the demands.
    pub fn with_demands(mut self) -> ServerFacts {
        self.demands = estimate_demands(&[&self.low, &self.half, &self.line, &self.past]);
        self
    }

    /// Returns whether no processing resource is saturated at the load line or above. The resources
    /// are threads, cores, CPU quotas and collectors that stop all requests.
    pub fn has_no_saturated_resource(&self) -> Option<bool> {
        let throttled = self.is_quota_exhausted().unwrap_or(false);
        let collecting = self.gc_stops_all_requests();
        Some(!throttled && !collecting && !self.is_thread_saturated()? && self.has_idle_cores()?)
    }

    /// Returns the main dependency of the server: the dependency with the most connections at the
    /// load line and above. Returns the address of the dependency with the most connections, and
    /// the number of these connections. If some dependencies get requests from the server,
    /// dependencies that get hardly any requests are ignored. A dependency has priority if its
    /// number of connections is fixed, and about equals the number of requests in service.
    pub fn main_dependency(&self) -> Option<(&str, f64)> {
        let in_use = |peer: &&String| self.calls_dependency(peer) != Some(false);
        let in_use: BTreeSet<&String> = self.line.peers.keys().chain(self.past.peers.keys()).filter(in_use).collect();
        let counts = |(peer, _): &(&String, &f64)| in_use.is_empty() || in_use.contains(peer);
        let served = self.requests_in_service().unwrap_or(0.0);
        let is_fixed = |(peer, past): &(&String, &f64)| self.line.peers.get(*peer).is_some_and(|line| line == *past);
        let as_many = |(_, count): &(&String, &f64)| **count >= 1.5 && (0.75..=1.33).contains(&(served / **count));
        let alike = self.past.peers.iter().filter(counts).filter(is_fixed).filter(as_many);
        if let Some((peer, count)) = alike.max_by(|a, b| a.1.total_cmp(b.1)) {
            return Some((peer, *count));
        }
        let all = self.line.peers.iter().chain(&self.past.peers).filter(counts);
        let most = all.max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most.1 > 0.0).then_some((most.0.as_str(), *most.1))
    }

    /// Returns whether the server sends requests to the dependency at this address: at least one
    /// data segment for every twenty requests. Connections that stay idle while thousands of
    /// requests complete cannot limit the server.
    pub fn calls_dependency(&self, peer: &str) -> Option<bool> {
        let sent = self.past.sent_to_peers.get(peer).or(self.line.sent_to_peers.get(peer))?;
        Some(*sent >= THROTTLED_PERIODS_SHARE_MIN * self.max_at_high_load(Signal::Goodput)?)
    }

    /// Returns the dependency with the most open calls above the line: its address, and the mean
    /// number of open calls.
    pub fn most_called_dependency(&self) -> Option<(&str, f64)> {
        let most = self.past.calls_to_peers.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most.1 > 0.0).then_some((most.0.as_str(), *most.1))
    }

    /// Returns the address of the dependency that accepts connections most slowly: above the line,
    /// more connections wait to be accepted by this dependency than by any other. Returns `None` if
    /// no accept queue of a dependency was observed.
    pub fn slowest_accepting_dependency(&self) -> Option<&str> {
        let most = self.past.queued_at_peers.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(most.0.as_str())
    }

    /// Returns the name of the process that listens at an address; `None` if the process is not on
    /// this machine.
    pub fn dependency_process_name(&self, address: &str) -> Option<&str> {
        let sights = [&self.past, &self.line, &self.half, &self.low];
        sights.into_iter().find_map(|sight| sight.peer_names.get(address)).map(String::as_str)
    }

    /// Returns the dependency whose CPU quota throttled it most, named by the process in its
    /// control group.
    pub fn throttled_dependency(&self) -> Option<&str> {
        [&self.past, &self.line].into_iter().find_map(|sight| sight.held_back_behind.as_deref())
    }

    /// Returns the numbers of connections to the main dependency at the load line and above. The
    /// main peer is the dependency that [`Self::main_dependency`] returns. If the connections were
    /// not observed at the load line, the number at half of the load line counts.
    pub fn main_dependency_connections(&self) -> Option<(f64, f64)> {
        let (peer, _) = self.main_dependency()?;
        let line = self.line.peers.get(peer).or(self.half.peers.get(peer)).copied()?;
        Some((line, self.past.peers.get(peer).copied()?))
    }

    /// Returns a signal at the low load, at the load line and above. For
    /// [`Signal::PeerConnections`], only connections to the main dependency count.
    pub fn values_at_each_load(&self, signal: Signal) -> [Option<f64>; 3] {
        let peer = self.main_dependency().filter(|_| signal == Signal::PeerConnections);
        let of = |sight: &LoadSignals| match peer {
            Some((peer, _)) => sight.peers.get(peer).copied(),
            None => sight.get(signal),
        };
        [&self.low, &self.line, &self.past].map(of)
    }

    /// Returns the demand of a request on a resource; `None` if it was not measured.
    pub fn demand(&self, resource: UsedResource) -> Option<&ServiceDemand> {
        self.demands.iter().find(|demand| demand.resource == resource)
    }

    /// Returns the number of worker processes of the server: all processes except the parent
    /// process, or 1 for a server with a single process.
    pub fn worker_processes(&self) -> Option<f64> {
        self.max_at_high_load(Signal::Processes).map(|count| if count > 1.0 { count - 1.0 } else { 1.0 })
    }

    /// Returns the share of requests that fail at any load, 0..=1, if this share alone breaks the
    /// SLO. Requests do not queue at a low load, so no saturated resource causes these failures.
    pub fn constant_failure_share(&self) -> Option<f64> {
        let failed: u64 = self.low.failures.iter().map(|(_, times)| times).sum();
        let share = failed as f64 / (self.low.get(Signal::Offered)? * self.low.seconds).max(1.0);
        // Fewer than three failures may be chance.
        let now = (failed >= 3 && share > 1.0 - self.slo.success_min).then_some(share);
        now.or(self.constant_failure.as_ref().map(|failing| failing.share))
    }

    /// Returns the goodput at the low load, 1/s, if an overload has broken the server. The sign of
    /// a broken server is a goodput below half of the offered rate, although the server sustained
    /// that rate in the search. If the server is broken, the loads after the search have no
    /// information about a working server.
    pub fn goodput_of_broken_server_rps(&self) -> Option<f64> {
        let (offered_rps, goodput_rps) = (self.low.get(Signal::Offered)?, self.low.get(Signal::Goodput)?);
        (offered_rps * self.low.seconds >= 10.0
            && goodput_rps < MOST_SHARE_MIN * offered_rps
            && self.lower_rps >= offered_rps)
            .then_some(goodput_rps)
    }

    /// Returns whether the low load breaks a latency bound of the SLO. The load at half the line
    /// must break the bound, too: a single late load may be due to a stall. If the low load had no
    /// response, the response time of a single user is compared with the bound. Equally late
    /// responses at all higher loads also count, because a low load with few requests may contain
    /// no late response by chance.
    pub fn breaks_slo_at_low_load(&self) -> Option<bool> {
        let broken = self.slo.response_bounds().filter_map(|bound| {
            let bound_ns = bound.bound_ns as f64;
            // For a quantile from p50 to below p99, the median is compared with the bound: a median
            // above the bound proves that the bound is broken. Below p50, the median proves
            // nothing.
            if bound.quantile < 0.5 {
                return None;
            }
            let signal = if bound.quantile < 0.99 { Signal::P50 } else { Signal::P99 };
            let late = |sight: &LoadSignals| Some(sight.get(signal)? > bound_ns);
            let alone = || self.alone_ns.map(|alone_ns| alone_ns > bound_ns);
            let low = late(&self.low).or_else(alone)? && late(&self.half).unwrap_or(true);
            Some(low || signal == Signal::P99 && self.has_equal_lateness(bound_ns).unwrap_or(false))
        });
        broken.reduce(|a, b| a || b)
    }

    /// Returns the load that shows the latency without a queue: usually the low load. If the low
    /// load has few responses, and the load at half the line has a higher p99, the load at half the
    /// line is returned.
    pub fn unloaded_latency_load(&self) -> &LoadSignals {
        let later = self.half.get(Signal::P99) > self.low.get(Signal::P99);
        if self.low_load_is_small() && later { &self.half } else { &self.low }
    }

    /// Returns whether some responses are late by an equal time at half the line and above the
    /// line. Responses that are not late must be about as fast as at half the line, and evenly
    /// spread, not in batches as after a stall. If the late requests waited in a queue, their
    /// waiting times would grow with the load.
    fn has_equal_lateness(&self, bound_ns: f64) -> Option<bool> {
        let late_ns = [&self.half, &self.line, &self.past].map(|sight| sight.get(Signal::P99));
        let [half_ns, line_ns, past_ns] = [late_ns[0]?, late_ns[1]?, late_ns[2]?];
        let late = half_ns.min(line_ns).min(past_ns) > bound_ns;
        let alike =
            past_ns <= (1.0 + NOTICEABLE_SHARE_MIN) * half_ns && half_ns <= (1.0 + NOTICEABLE_SHARE_MIN) * past_ns;
        let more = self.past.get(Signal::Goodput)? >= TWOFOLD_FACTOR * self.half.get(Signal::Goodput)?;
        let soon = self.past.get(Signal::P50)? <= TWOFOLD_FACTOR * self.half.get(Signal::P50)?;
        Some(
            self.low_load_is_small()
                && late
                && alike
                && more
                && soon
                && self.past.get(Signal::Dispersion)? <= TWOFOLD_FACTOR,
        )
    }

    /// Returns whether the low load has fewer than 100 responses, too few for a p99.
    fn low_load_is_small(&self) -> bool {
        self.low.get(Signal::Goodput).is_some_and(|rps| rps * self.low.seconds < 100.0)
    }
}

/// Serialises an SLO as text in the syntax of users, such as `p99<=500ms`.
mod slo_text {
    use crate::slo::Slo;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(slo: &Slo, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(slo)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slo, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
