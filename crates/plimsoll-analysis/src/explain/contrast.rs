//! The facts about one server ([`Contrast`]): the signals of steady loads at a low rate, at half
//! the line, at the line and just above. The facts also contain the result of the search, and
//! figures that follow by laws of queues.
//!
//! Not here: the meaning of the facts (`features`).

use super::demands::{ServiceDemand, UsedResource, demands, used_of_allowed};
use super::signals::{LoadSignals, Signal};
use super::thresholds::{
    AS_FAST, CLEARLY_MORE, FAILS, FELT, FEW, FULL, FULL_IDLE, KEPT_UP, MOST, NEARLY_FULL, ONE_CORE, PART, RISEN,
    SEVERAL, SLOWER, SPARE_IDLE, THROTTLED, USED_UP, WAKING_NS,
};
use crate::find::{Findings, SloBreakKind, StopReason};
use crate::judge::{TrialOutcome, Verdict};
use crate::slo::Slo;
use plimsoll_model::series_table as table;
use plimsoll_model::{Purpose, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The loads that an explanation compares; `None` for a load that was not made.
#[derive(Debug, Clone, Default)]
pub struct Loads<'a> {
    /// A load at about 15 % of the line.
    pub low: Option<&'a Run>,
    /// A load at about half the line.
    pub half: Option<&'a Run>,
    /// A load at the line, or just below.
    pub line: Option<&'a Run>,
    /// A load just above the line.
    pub past: Option<&'a Run>,
    /// The highest load above the line that met the SLO, if any.
    pub held_past: Option<&'a Run>,
    /// All closed loops with enough users to saturate the server.
    pub closed: Vec<&'a Run>,
    /// Number of processes of the server's control group that the kernel killed because memory was
    /// short. The count covers these loads or those of the search; `None` if it is not known.
    pub killed: Option<f64>,
}

/// Returns the number of killed processes in these loads, which are in order of time. A restarted
/// server has a new control group, whose counter begins again at 0.
pub fn killed_in<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<f64> {
    let series = runs.filter_map(|run| run.probes.series.get(table::CGROUP_OOM_KILLS.name));
    let counts: Vec<f64> =
        series.flat_map(|series| series.between(i64::MIN, i64::MAX)).map(|sample| sample.value).collect();
    (!counts.is_empty()).then(|| counts.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).sum())
}

/// From this share of the line on, a load is at the line. Up to the second share, a load is low.
const AT_LINE: f64 = 0.88;
const LOW: f64 = 0.4;

impl<'a> Loads<'a> {
    /// Selects the trials of a search that are nearest to the loads of an explanation.
    pub fn of_search(findings: &Findings, runs: &[&'a Run]) -> Loads<'a> {
        let line = level_of(findings);
        let open = || {
            let whole = findings.trials.iter().zip(runs).filter(|(trial, _)| {
                !matches!(trial.purpose, Purpose::Settle | Purpose::Profile) && trial.verdict != Verdict::Void
            });
            whole.filter_map(|(trial, run)| Some((trial.offered_rps()?, trial, *run)))
        };
        let nearest = |share: f64, from: f64, to: f64| {
            let within = open().filter(|(rate, ..)| *rate >= from * line && *rate <= to * line);
            let far = |rate: f64| (rate / (share * line)).ln().abs();
            // Among loads of one kind, the longest counts; of equal lengths, the last.
            let by = |a: &(f64, &TrialOutcome, &Run), b: &(f64, &TrialOutcome, &Run)| {
                far(a.0).total_cmp(&far(b.0)).then(b.1.duration_ns.cmp(&a.1.duration_ns))
            };
            within.min_by(by)
        };
        let past = nearest(1.1, 1.005, 2.0);
        Loads {
            low: nearest(0.15, 0.0, LOW).map(|found| found.2),
            half: nearest(0.5, LOW, AT_LINE).map(|found| found.2),
            line: nearest(1.0, AT_LINE, 1.0001).map(|found| found.2),
            past: past.map(|found| found.2),
            held_past: past.filter(|found| found.1.verdict == Verdict::Pass).map(|found| found.2),
            closed: Vec::new(),
            killed: killed_in(runs.iter().copied()),
        }
    }
}

/// Returns the rate to which loads are related, 1/s: the line, or without a line the highest
/// throughput of the server.
pub fn level_of(findings: &Findings) -> f64 {
    let line = findings.load_line_rps.rps;
    if line > 0.0 {
        return line;
    }
    let peak = findings.peak.map_or(0.0, |peak| peak.rps);
    // The search tries no more users if a single user waits too long. The throughput of one user is
    // no capacity.
    let climbed = findings.peak.is_some_and(|peak| peak.concurrency > 1);
    let measured = findings.trials.iter().filter(|trial| !climbed && trial.purpose != Purpose::Settle);
    measured.map(|trial| trial.achieved_rps).fold(peak, f64::max)
}

/// Returns the part of the peak `best_rps` that the server sustains, 1/s. Steady loads completed at
/// most `steady_rps`.
pub(super) fn sustained_rps(has_line: bool, best_rps: f64, steady_rps: Option<f64>, past: &LoadSignals) -> f64 {
    let pushed = past
        .get(Signal::Goodput)
        .zip(past.get(Signal::Offered))
        .is_some_and(|(goodput_rps, offered_rps)| goodput_rps < KEPT_UP * offered_rps);
    steady_rps.filter(|rps| !has_line && pushed && *rps > 0.0).unwrap_or(best_rps)
}

/// The share of requests that fail at every load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstantFailureShare {
    /// The share of failed requests, 0..=1.
    pub share: f64,
    /// The sentence about the share.
    pub text: String,
}

/// The facts that features are computed from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Contrast {
    /// The signals of the load in [`Loads::low`].
    pub low: LoadSignals,
    /// The signals of the load in [`Loads::half`].
    pub half: LoadSignals,
    /// The signals of the load in [`Loads::line`].
    pub line: LoadSignals,
    /// The signals of the load in [`Loads::past`].
    pub past: LoadSignals,
    /// The signals of the best load in [`Loads::closed`].
    pub closed: LoadSignals,
    /// The number of killed processes, as in [`Loads::killed`].
    pub killed: Option<f64>,
    /// The highest rate above the line that met the SLO, in requests a second, if any.
    pub held_past_rps: Option<f64>,
    /// The lower end of the line, in requests a second: the highest rate that any load sustained.
    pub lower_rps: f64,
    /// The upper end of the line, in requests a second: the lowest rate that no load sustained.
    pub upper_rps: Option<f64>,
    /// The reason why the search ended.
    pub stopped_by: StopReason,
    /// The SLO of the search.
    #[serde(with = "slo_text")]
    pub slo: Slo,
    /// The highest throughput of any load, 1/s.
    pub best_rps: f64,
    /// The highest throughput that lasts, 1/s. For a server without a line, it is the throughput of
    /// steady loads at a higher rate. Short trials may fall between the stalls of a server, or use
    /// the rest of a quota.
    pub sustained_rps: f64,
    /// The highest throughput during the search at an offered rate above capacity, 1/s.
    pub saturated_rps: Option<f64>,
    /// The unit of the offered rate: `requests`, or `sessions` of several requests.
    pub counted: String,
    /// Mean number of requests of a session; 1 without sessions.
    pub requests_each: f64,
    /// Mean service time of a request without other requests in flight, ns.
    pub alone_ns: Option<f64>,
    /// Mean service time of a single request in the first load of the search, ns.
    pub alone_first_ns: Option<f64>,
    /// How long the rest of a short response waits for a delayed acknowledgement, ns; `None`: it
    /// does not wait.
    pub held_back_ns: Option<f64>,
    /// The share of requests that failed at every load of the search, if it breaks the SLO.
    #[serde(rename = "failing")]
    pub constant_failure: Option<ConstantFailureShare>,
    /// The time since when the server has accepted no connection, in words.
    #[serde(rename = "gone")]
    pub target_loss: Option<String>,
    /// The demand of a request on each resource; computed from the loads.
    #[serde(skip)]
    pub demands: Vec<ServiceDemand>,
}

impl Contrast {
    /// Computes the facts from the result of a search and the later steady loads. `findings`
    /// exclude calming loads.
    pub fn from_loads(findings: &Findings, loads: &Loads) -> Contrast {
        let under = |run: &Run| LoadSignals::under(run, findings.slo.bound_min_ns());
        let sight = |run: Option<&Run>| run.map(under).unwrap_or_default();
        let [low, half, line, past] = [loads.low, loads.half, loads.line, loads.past].map(sight);
        // Among several closed loads, the one with the highest goodput counts.
        let goodput = |sight: &LoadSignals| sight.get(Signal::Goodput).unwrap_or(0.0);
        let closed = loads.closed.iter().map(|run| under(run)).max_by(|a, b| goodput(a).total_cmp(&goodput(b)));
        let closed = closed.unwrap_or_default();
        let each = [&line, &low, &half, &past].into_iter().map(|sight| sight.requests_each).find(|each| *each > 0.0);
        let requests_each = each.unwrap_or(1.0);
        let peak = findings.peak.map_or(0.0, |peak| peak.rps) * requests_each;
        let goodput = [&low, &half, &line, &past].into_iter().filter_map(|sight| sight.get(Signal::Goodput));
        let steady_rps = goodput.reduce(f64::max);
        let best_rps = steady_rps.unwrap_or(0.0).max(peak);
        let has_line = findings.load_line_rps.rps > 0.0;
        let sustained_rps = sustained_rps(has_line, best_rps, steady_rps, &past);
        // A single user meets no queue. At a low load only the few overlapping requests wait.
        let single = findings.trials.iter().filter(|trial| trial.concurrency() == Some(1));
        let mut single = single.map(|trial| trial.evidence.service_mean_ns).filter(|ns| *ns > 0.0).peekable();
        let alone_first_ns = single.peek().copied();
        // The mean decides, by Little's law: a rare long request occupies its worker for its whole
        // time. A request is never slower alone than among other requests. But a low load may have
        // to wake sleeping threads.
        let means = [&low, &half, &line].map(|sight| sight.service_mean_ns);
        let alone_ns = means.into_iter().flatten().chain(single).reduce(f64::min);
        let held_back_ns = low.held_back_ns;
        let overloads = findings.trials.iter().filter(|trial| trial.verdict == Verdict::Fail);
        let saturated_rps = overloads.filter_map(|trial| trial.evidence.saturated_rps).reduce(f64::max);
        let demands = demands(&[&low, &half, &line, &past]);
        let failing = findings.constant_failure.filter(|failing| failing.how == SloBreakKind::Failed);
        Contrast {
            held_past_rps: loads.held_past.and_then(|run| under(run).get(Signal::Offered)),
            lower_rps: findings.load_line_rps.rps * requests_each,
            upper_rps: findings.load_line_rps.upper.map(|upper| upper * requests_each),
            stopped_by: findings.stopped_by,
            slo: findings.slo.clone(),
            best_rps,
            sustained_rps,
            saturated_rps: saturated_rps.map(|rps| rps * requests_each),
            counted: findings.counted.to_owned(),
            requests_each,
            alone_ns,
            alone_first_ns,
            held_back_ns,
            constant_failure: failing
                .map(|failing| ConstantFailureShare { share: failing.share, text: failing.text() }),
            target_loss: findings.target_loss.map(|gone| gone.text()),
            killed: loads.killed,
            demands,
            low,
            half,
            line,
            past,
            closed,
        }
    }

    /// Returns whether there is any steady load.
    pub fn is_seen(&self) -> bool {
        [&self.low, &self.line, &self.past].iter().any(|sight| sight.is_seen())
    }

    /// Formats a rate of requests in the unit of the offered load: `1 000 requests/s`, or sessions.
    pub fn offered_text(&self, requests_rps: f64) -> String {
        format!("{} {}/s", crate::format::rate(requests_rps / self.requests_each), self.counted)
    }

    /// Returns the maximum of a signal at the line and above.
    pub fn top(&self, signal: Signal) -> Option<f64> {
        // A thread may be interrupted for the work of waiting connections as long as it would work.
        let threads = matches!(signal, Signal::FullestThread | Signal::FullThreads);
        let closed = self.answers_most().filter(|_| threads).and_then(|sight| sight.get(signal));
        self.line.get(signal).into_iter().chain(self.past.get(signal)).chain(closed).reduce(f64::max)
    }

    /// Returns the closed load, if its throughput is at least that of the load above the line.
    /// Above the line, part of the resource use goes into thousands of waiting requests and their
    /// connections.
    pub fn answers_most(&self) -> Option<&LoadSignals> {
        let answered = |sight: &LoadSignals| sight.get(Signal::Goodput);
        // A rejected user sends its next request immediately.
        let refuses = self.closed.get(Signal::Failed).is_some_and(|share| share >= FAILS);
        (!refuses && answered(&self.closed)? >= answered(&self.past)?).then_some(&self.closed)
    }

    /// Returns the minimum of a signal at the line and above.
    pub fn bottom(&self, signal: Signal) -> Option<f64> {
        self.line.get(signal).into_iter().chain(self.past.get(signal)).reduce(f64::min)
    }

    /// Returns whether the maximum of a signal at the line and above is at least `least`.
    pub fn reaches(&self, signal: Signal, least: f64) -> Option<bool> {
        self.top(signal).map(|top| top >= least)
    }

    /// Returns whether the maximum of a signal at the line and above is at least `times` its value
    /// at the low load. A value that is zero at the low load and positive later has risen.
    pub fn rises(&self, signal: Signal, times: f64) -> Option<bool> {
        let (low, top) = (self.low.get(signal)?, self.top(signal)?);
        Some(top > 0.0 && top >= low * times)
    }

    /// Returns the number of requests in service at the server's peak: its highest throughput times
    /// the service time of a single request (Little's law). A resource that serves k requests at
    /// once gives k. Below 1, no part is always busy. Without a load above the line the peak is not
    /// known.
    pub fn at_a_time(&self) -> Option<f64> {
        self.past.get(Signal::Goodput)?;
        (self.best_rps > 0.0).then_some(self.best_rps * self.taken_ns()? / 1e9)
    }

    /// Returns the time that a single request occupies its worker, ns.
    pub fn taken_ns(&self) -> Option<f64> {
        // A worker that has written the rest of a response does not wait until the kernel sends the
        // rest.
        let written_ns = self.held_back_ns.and_then(|_| self.low.get(Signal::FirstByte)).unwrap_or(f64::INFINITY);
        Some(written_ns.min(self.alone_ns?))
    }

    /// Returns the present throughput at rates that the search did not sustain, divided by the
    /// lowest of those rates. 1 or more (or nearly) means that the server sustains this rate now.
    pub fn holds_upper(&self) -> Option<f64> {
        Some(self.held_past_rps? / self.upper_rps?).filter(|share| *share >= USED_UP)
    }

    /// Returns the present throughput of a closed loop without refusals, as a share of the
    /// throughput under overload in the search. Fewer requests compete in a closed loop, so a
    /// slightly higher throughput means nothing.
    pub fn answers_more(&self) -> Option<f64> {
        Some(self.answers_most()?.get(Signal::Goodput)? / self.saturated_rps?)
    }

    /// Returns whether a higher offered rate above the line gave no higher throughput. A load that
    /// fails at any rate does not count as too high.
    pub fn plateau(&self) -> Option<bool> {
        let (offered_rps, goodput_rps) = (self.past.answerable_rps(self.alone_ns)?, self.past.get(Signal::Goodput)?);
        let offered_rps = offered_rps * (1.0 - self.fails_anyhow().unwrap_or(0.0));
        let line = self.line.get(Signal::Goodput).unwrap_or(self.lower_rps);
        // The rate may exceed the line, or the rates tried above it, only slightly. Without a line,
        // or if some queues fill long before other queues, any rate will do.
        let known = self.held_past_rps.into_iter().chain(self.upper_rps).fold(line, f64::max);
        // The present line may be anywhere between the highest rate sustained above the line and
        // the next step.
        let next_step = self.held_past_rps.is_some_and(|held| offered_rps <= SLOWER * held);
        let anywhere = self.lower_rps <= 0.0 || self.queues_unevenly() || next_step;
        let most = if anywhere { f64::INFINITY } else { known * (1.0 + FEW) };
        Some(goodput_rps < offered_rps * KEPT_UP && goodput_rps <= most)
    }

    /// Returns whether some requests wait long above the line while most are as fast as at a low
    /// load. Each process has its own queue, since kept-alive connections stay with their process,
    /// and some queues fill first.
    fn queues_unevenly(&self) -> bool {
        let p50 = |sight: &LoadSignals| sight.get(Signal::P50);
        let soon = p50(&self.past).zip(p50(&self.low)).is_some_and(|(past_ns, low_ns)| past_ns <= SLOWER * low_ns);
        let wait = self.past.get(Signal::P99).zip(p50(&self.past)).is_some_and(|(p99, p50)| p99 >= SEVERAL * p50);
        soon && wait && self.held_past_rps.is_none() && self.worker_processes().is_some_and(|count| count >= AS_FAST)
    }

    /// Returns whether all cores are in use at the line or above. At most a small part of a core is
    /// idle, and at least as many threads of the server wait for a core. The kernel does not move
    /// waiting threads immediately.
    pub fn cores_full(&self) -> Option<bool> {
        let (idle, cores) = (self.bottom(Signal::Idle)?, self.top(Signal::Cores)?);
        let wanted = |sight: &LoadSignals| {
            let (idle, waiting) = (sight.get(Signal::Idle)?, self.waiting_for_cores(sight)?);
            Some(idle < SPARE_IDLE * cores && waiting >= idle.max(MOST))
        };
        let wanted = wanted(&self.line) == Some(true) || wanted(&self.past) == Some(true);
        Some(idle <= FULL_IDLE * cores || wanted)
    }

    /// Returns the mean number of server threads that wait for a core, beyond the time to wake a
    /// thread. That time is taken from a low load, where cores are free. `None`: more of the
    /// threads wait for each other.
    fn waiting_for_cores(&self, sight: &LoadSignals) -> Option<f64> {
        let woken_rps = |sight: &LoadSignals| Some(sight.get(Signal::Switches)? * sight.get(Signal::Goodput)?);
        let woken = woken_rps(&self.low).filter(|rps| *rps > 0.0);
        let wake_s = woken.zip(self.low.get(Signal::RunQueue)).map_or(0.0, |(rps, waiting)| waiting / rps);
        let waiting = sight.get(Signal::RunQueue)? - woken_rps(sight)? * wake_s;
        let for_each_other = |sight: &LoadSignals| sight.get(Signal::InLock).unwrap_or(0.0);
        (for_each_other(sight) - for_each_other(&self.low) < waiting).then_some(waiting)
    }

    /// Returns whether the server may use only some cores, and the server and its dependencies
    /// saturate these cores at the line or above.
    pub fn allowed_full(&self) -> Option<bool> {
        let allowed = self.top(Signal::CoresAllowed)?;
        let used = [&self.line, &self.past].into_iter().filter_map(used_of_allowed).reduce(f64::max)?;
        Some(allowed < self.top(Signal::Cores)? && used >= (1.0 - FEW) * allowed)
    }

    /// Returns whether the server may use only one core of a machine with more cores. Then one
    /// saturated thread is no evidence: a second thread would have no core.
    pub fn bound_to_one(&self) -> bool {
        self.top(Signal::CoresAllowed).zip(self.top(Signal::Cores)).is_some_and(|(own, all)| own <= 1.0 && all > 1.0)
    }

    /// Returns whether idle cores are available to the server at the line and above.
    pub fn cores_spare(&self) -> Option<bool> {
        let closed = self.answers_most().and_then(|sight| sight.get(Signal::Idle)).unwrap_or(0.0);
        let (idle, cores) = (self.bottom(Signal::Idle)?.max(closed), self.top(Signal::Cores)?);
        Some(idle >= (SPARE_IDLE * cores).min(MOST) && !self.allowed_full().unwrap_or(false) && !self.cores_full()?)
    }

    /// Returns whether a thread of the server is saturated. The thread works all the time, or all
    /// the time that it is not stopped for its helpers. Helpers are collectors and compilers of its
    /// runtime; with them the thread uses one core.
    pub fn thread_full(&self) -> Option<bool> {
        let fullest = self.top(Signal::FullestThread)?;
        let one_core = || self.top(Signal::ServerCores).is_some_and(|used| ONE_CORE.contains(&used));
        let alone = || self.top(Signal::FullThreads).is_some_and(|count| count <= 1.0);
        // A server that rejects requests, and responds as fast as before, is not saturated;
        // requests must wait.
        let waits = || {
            let (low, past) = (self.low.get(Signal::Service)?, self.past.get(Signal::Service)?);
            Some(past >= RISEN * low && self.plateau()? && self.cores_spare()?)
        };
        Some(fullest >= FULL || fullest >= NEARLY_FULL && one_core() && alone() && waits()?)
    }

    /// Returns the share of the server's CPU time that garbage collection uses. A concurrent
    /// collector is measured above the line: below, it may use idle cores at no cost to requests
    /// (Go's idle workers do).
    pub fn collected(&self) -> Option<f64> {
        let past = self.past.get(Signal::Gc).filter(|_| self.past.collects_beside);
        past.or(self.top(Signal::Gc))
    }

    /// Returns whether garbage collection uses a larger share than at a low load, or so much that
    /// even a low load fails.
    pub fn collects_more(&self) -> bool {
        let work = |sight: &LoadSignals| Some(sight.get(Signal::Gc)? * sight.get(Signal::ServerCores)?);
        let low = work(&self.low).unwrap_or(0.0);
        let top = [&self.line, &self.past].into_iter().filter_map(work).fold(0.0, f64::max);
        let pauses = self.rises(Signal::GcPauses, SLOWER).unwrap_or(false);
        let unanswered = self.low.get(Signal::Goodput) < self.low.get(Signal::Offered).map(|rps| MOST * rps);
        // CPU time of a collector at a low load was otherwise idle. With saturated cores, most of
        // its CPU time is taken from requests.
        let from_requests = self.cores_full() == Some(true) && self.reaches(Signal::Gc, MOST) == Some(true);
        top > 0.0 && top >= (1.0 + FELT) * low || pauses || from_requests || unanswered && self.collects_alone()
    }

    /// Returns whether collectors that stop all requests use half a core or more.
    pub fn collects_alone(&self) -> bool {
        let alone = !self.past.collects_beside && !self.line.collects_beside;
        let of = |sight: &LoadSignals| Some(sight.get(Signal::Gc)? * sight.get(Signal::ServerCores)?);
        alone && of(&self.past).or(of(&self.line)).is_some_and(|cores| cores >= MOST)
    }

    /// Returns whether a number of waiting threads reaches `least` and is clearly larger than at a
    /// low load. A number of at least one at the low load need not double.
    pub fn waits_more(&self, signal: Signal, least: f64) -> Option<bool> {
        let (top, low) = (self.top(signal)?, self.low.get(signal).unwrap_or(0.0));
        let one = top >= 1.0 - PART && low <= 1.0 - PART && top >= (1.0 + PART) * low;
        Some(top >= least && (top >= AS_FAST * low || one))
    }

    /// Returns whether more requests are in service than the server uses cores, so that its workers
    /// wait for something.
    pub fn served_and_not_worked_on(&self) -> Option<bool> {
        let served_ns = self.taken_ns()? - WAKING_NS;
        Some(self.best_rps * served_ns / 1e9 >= CLEARLY_MORE * self.top(Signal::ServerCores)?)
    }

    /// Returns whether the server's control group has exhausted its quota in a significant share of
    /// its periods.
    pub fn quota_full(&self) -> Option<bool> {
        self.reaches(Signal::Throttled, THROTTLED)
    }

    /// Adds the demands of requests, which a record of the facts leaves out.
    pub fn completed(mut self) -> Contrast {
        self.demands = demands(&[&self.low, &self.half, &self.line, &self.past]);
        self
    }

    /// Returns whether no working resource is saturated at the line or above: no thread, not all
    /// cores, no quota, and no collector that stops all requests.
    pub fn nothing_full(&self) -> Option<bool> {
        let throttled = self.quota_full().unwrap_or(false);
        let collecting = self.collects_alone();
        Some(!throttled && !collecting && !self.thread_full()? && self.cores_spare()?)
    }

    /// Returns the main peer: the dependency with the most connections at the line and above, as
    /// its address and that number. A dependency with hardly any request does not count if another
    /// one is in use. Among several fixed pools, the main one has about as many connections as
    /// requests are in service.
    pub fn peer(&self) -> Option<(&str, f64)> {
        let in_use = |peer: &&String| self.asks(peer) != Some(false);
        let in_use: BTreeSet<&String> = self.line.peers.keys().chain(self.past.peers.keys()).filter(in_use).collect();
        let counts = |(peer, _): &(&String, &f64)| in_use.is_empty() || in_use.contains(peer);
        let served = self.at_a_time().unwrap_or(0.0);
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

    /// Returns whether the server sends requests to that peer. A connection that is idle while
    /// thousands of requests complete limits nothing.
    pub fn asks(&self, peer: &str) -> Option<bool> {
        let sent = self.past.sent_to_peers.get(peer).or(self.line.sent_to_peers.get(peer))?;
        Some(*sent >= THROTTLED * self.top(Signal::Goodput)?)
    }

    /// Returns the dependency with the most open calls above the line: its address, and the mean
    /// number of calls.
    pub fn asked_most(&self) -> Option<(&str, f64)> {
        let most = self.past.calls_to_peers.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most.1 > 0.0).then_some((most.0.as_str(), *most.1))
    }

    /// Returns the address of the dependency that accepts connections most slowly: most connections
    /// above the line wait for its accept. Only dependencies that the server calls count.
    pub fn queued_most(&self) -> Option<&str> {
        let most = self.past.queued_at_peers.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(most.0.as_str())
    }

    /// Returns the name of the process that listens at an address, if the process is on this
    /// machine.
    pub fn name_of_peer(&self, address: &str) -> Option<&str> {
        let sights = [&self.past, &self.line, &self.half, &self.low];
        sights.into_iter().find_map(|sight| sight.peer_names.get(address)).map(String::as_str)
    }

    /// Returns the name of the throttled process: of all dependencies' control groups, the one that
    /// its quota throttled most.
    pub fn held_back_behind(&self) -> Option<&str> {
        [&self.past, &self.line].into_iter().find_map(|sight| sight.held_back_behind.as_deref())
    }

    /// Returns the numbers of connections to that peer at the line and above.
    pub fn peer_counts(&self) -> Option<(f64, f64)> {
        let (peer, _) = self.peer()?;
        Some((self.line.peers.get(peer).copied()?, self.past.peers.get(peer).copied()?))
    }

    /// Returns a signal at the low load, at the line and above. For connections to dependencies, it
    /// is the number of connections to the main peer.
    pub fn over_loads(&self, signal: Signal) -> [Option<f64>; 3] {
        let peer = self.peer().filter(|_| signal == Signal::PeerConnections);
        let of = |sight: &LoadSignals| match peer {
            Some((peer, _)) => sight.peers.get(peer).copied(),
            None => sight.get(signal),
        };
        [&self.low, &self.line, &self.past].map(of)
    }

    /// Returns the demand of a request on a resource.
    pub fn demand(&self, resource: UsedResource) -> Option<&ServiceDemand> {
        self.demands.iter().find(|demand| demand.resource == resource)
    }

    /// Returns the number of worker processes of a server with several processes: all except the
    /// first parent.
    pub fn worker_processes(&self) -> Option<f64> {
        self.top(Signal::Processes).map(|count| if count > 1.0 { count - 1.0 } else { 1.0 })
    }

    /// Returns the share of requests that fail at any load, if this share alone breaks the SLO. No
    /// request queues at a low load, so no limit causes the failures.
    pub fn fails_anyhow(&self) -> Option<f64> {
        let failed: u64 = self.low.failures.iter().map(|(_, times)| times).sum();
        let share = failed as f64 / (self.low.get(Signal::Offered)? * self.low.seconds).max(1.0);
        // Very few failures may be chance.
        let now = (failed >= 3 && share > 1.0 - self.slo.success_min).then_some(share);
        now.or(self.constant_failure.as_ref().map(|failing| failing.share))
    }

    /// Returns the throughput at a low load, 1/s, if it is below half the offered rate although the
    /// search sustained more. Then an overload has broken the server. Later loads show no limit of
    /// a working server.
    pub fn broken_since(&self) -> Option<f64> {
        let (offered_rps, goodput_rps) = (self.low.get(Signal::Offered)?, self.low.get(Signal::Goodput)?);
        (offered_rps * self.low.seconds >= 10.0 && goodput_rps < MOST * offered_rps && self.lower_rps >= offered_rps)
            .then_some(goodput_rps)
    }

    /// Returns whether the low load breaks the latency bound of the SLO. Half the line must break
    /// the bound, too: otherwise the low load met a stall. Without requests in the low load, a
    /// single user decides. A low load of a few requests may miss late responses.
    pub fn slow_when_low(&self) -> Option<bool> {
        let broken = self.slo.response_bounds().filter_map(|bound| {
            let bound_ns = bound.bound_ns as f64;
            // A bound on a lower quantile than p99 is compared with the median, which is at most
            // that quantile.
            let signal = if bound.quantile < 0.99 { Signal::P50 } else { Signal::P99 };
            let late = |sight: &LoadSignals| Some(sight.get(signal)? > bound_ns);
            let alone = || self.alone_ns.map(|alone_ns| alone_ns > bound_ns);
            let low = late(&self.low).or_else(alone)? && late(&self.half).unwrap_or(true);
            Some(low || signal == Signal::P99 && self.late_alike(bound_ns).unwrap_or(false))
        });
        broken.reduce(|a, b| a || b)
    }

    /// Returns the load that shows the latency without a queue. It is half the line if the low load
    /// has few requests and earlier responses.
    pub fn late_low(&self) -> &LoadSignals {
        let later = self.half.get(Signal::P99) > self.low.get(Signal::P99);
        if self.few_when_low() && later { &self.half } else { &self.low }
    }

    /// Returns whether some responses exceed `bound_ns` by an equal time at half the line and above
    /// the line. The other responses must be as fast as before, and not in batches as after a
    /// stall. Requests in a queue would wait longer with more load.
    fn late_alike(&self, bound_ns: f64) -> Option<bool> {
        let late_ns = [&self.half, &self.line, &self.past].map(|sight| sight.get(Signal::P99));
        let [half_ns, line_ns, past_ns] = [late_ns[0]?, late_ns[1]?, late_ns[2]?];
        let late = half_ns.min(line_ns).min(past_ns) > bound_ns;
        let alike = past_ns <= (1.0 + FELT) * half_ns && half_ns <= (1.0 + FELT) * past_ns;
        let more = self.past.get(Signal::Goodput)? >= AS_FAST * self.half.get(Signal::Goodput)?;
        let soon = self.past.get(Signal::P50)? <= AS_FAST * self.half.get(Signal::P50)?;
        Some(self.few_when_low() && late && alike && more && soon && self.past.get(Signal::Dispersion)? <= AS_FAST)
    }

    /// Returns whether the low load has too few responses for a p99.
    fn few_when_low(&self) -> bool {
        self.low.get(Signal::Goodput).is_some_and(|rps| rps * self.low.seconds < 100.0)
    }
}

/// Serialises an SLO in the syntax of users.
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
