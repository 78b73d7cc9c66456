//! The stalls of all trials of a search together ([`Stalls`]). A stall is a period without any
//! response although requests wait. A stall affects every load equally, so the frequency of stalls
//! is computed from the measured time of all trials, at any load.
//!
//! Not here: the stalls of one trial ([`crate::stalls`]).

use super::search_settings::SearchSettings;
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use crate::stalls::Stall;
use plimsoll_model::LoadPurpose;
use plimsoll_model::traffic::RouteChoice;
use plimsoll_model::units::{MS, SECOND};

/// A period without any response is a stall of the server if the period exceeds this multiple of
/// the usual response time.
const STALL_RESPONSE_TIMES_MIN: u64 = 3;
/// Length of a trial that confirms the load line of a server that stalls, as a multiple of the
/// longest gap between stalls.
const CONFIRMING_STALL_INTERVALS: u64 = 3;
/// A trial that confirms the load line takes at most the budget divided by this number.
const CONFIRMING_BUDGET_DIVISOR: u64 = 3;
/// Minimum length of a trial near the load line for a server that stalls, as a multiple of the
/// longest gap between stalls.
const LINE_TRIAL_STALL_INTERVALS: u64 = 2;
/// The minimum length of a trial near the load line, for a server that stalls, is at most the
/// budget divided by this number.
const LINE_TRIAL_BUDGET_DIVISOR: u64 = 8;
/// The minimum number of trials with stalls longer than a latency bound of the SLO, before the
/// search concludes that no rate meets the bound.
const NO_RATE_STALL_TRIALS_MIN: usize = 3;
/// In a small budget: the minimum number of trials with stalls before the search concludes that no
/// rate meets a latency bound of the SLO.
const SMALL_BUDGET_STALL_TRIALS_MIN: usize = 2;
/// The share of trials in which other processes may cause a stall. If stalls occur in a clearly
/// larger share of the trials, the server itself stalls.
const STALL_DISTURBANCE_SHARE: f64 = 0.06;
/// Probability of error of the conclusion that the server itself stalls.
const STALL_ERROR_PROBABILITY: f64 = 0.05;
/// Probability of error of the conclusion that no rate meets the SLO because of stalls. The
/// conclusion ends the search and is tested after every trial, so the probability must be small.
const NO_LINE_ERROR_PROBABILITY: f64 = 0.01;
/// A search with a budget below this, ns, has too few trials to treat any of its trials as
/// disturbed by other processes.
pub const SMALL_BUDGET_NS: u64 = 25 * SECOND;
/// In a small budget, stalls that take at most this share of the time are ignored. Stalls that take
/// so small a share of the time change the load line by at most the same share.
const SMALL_BUDGET_STALL_SHARE: f64 = 0.02;
/// Minimum length of the server's own stalls in a trial that other processes disturbed, ns. Other
/// processes on a busy machine take a core from the server for a shorter time, unless a virtual
/// machine's host took the cores away.
const OWN_STALL_NS_MIN: u64 = 250 * MS;
/// A stolen share of CPU time up to this value counts as no steal: the host of the virtual machine
/// took no core away.
const NEGLIGIBLE_STEAL_SHARE: f64 = 0.01;
/// In a small budget, stalls may delay at most this share of the late requests that the SLO allows.
/// Stalls are rare, so one more or one less stall changes the observed share of delayed requests
/// much.
const SMALL_BUDGET_STALL_SHARE_OF_ALLOWED_LATE_REQUESTS: f64 = 0.5;

/// The stalls in all trials of a search: periods without any response although requests waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Stalls {
    /// Number of stalls.
    pub count: usize,
    /// Length of the longest stall, ns.
    pub longest_ns: u64,
    /// Measured time divided by the number of stalls, ns.
    pub mean_interval_ns: u64,
    /// The longest measured time without a stall, ns.
    pub gap_ns_max: u64,
    /// The first bound of the SLO, such as `p99 <= 500 ms`, that no rate meets because of the
    /// stalls.
    pub impossible_bound: Option<String>,
    /// Whether stalls alone delay more requests than the SLO allows, and more trials have stalls
    /// than other processes explain. In a search with a small budget, this field is already true if
    /// stalls delay half as many requests as the SLO allows.
    pub has_slo_breaking_stalls: bool,
    /// Whether stalls recur: more trials have stalls than disturbances by other processes would
    /// explain.
    pub is_recurring: bool,
}

/// Whether the server has periods without any response, and under which loads.
#[derive(Debug, Clone, PartialEq)]
pub enum NoResponsePeriods {
    /// The response time explains every period without responses.
    None,
    /// Periods without responses occur only at rates above the capacity: the server admits requests
    /// only at intervals, or works in batches.
    OnlyAboveCapacity,
    /// Periods without responses occur at any load, so the server stalls.
    Stalls(Stalls),
}

/// Loads below the capacity without a stall count as evidence only if at least this number of
/// stalls was expected during these loads. If so many stalls were expected and none occurred,
/// chance hardly explains their absence.
const EXPECTED_STALLS_MIN: f64 = 6.0;
/// A limiter that admits requests periodically has at least this number of periods without
/// responses a second.
const PERIODIC_STALLS_PER_S_MIN: f64 = 1.0;
/// A stall is visible only if at least this number of responses is missing during the stall.
const DELAYED_RESPONSES_MIN: f64 = 8.0;

/// Returns whether stalls occur only above a certain rate, although the loads below this rate were
/// long enough to show stalls. `stalls` contains the start of each stall in measured time (ns), the
/// stall, and the index of its trial.
fn occur_only_above_capacity(history: &[TrialOutcome], stalls: &[(u64, Stall, usize)]) -> bool {
    let stalled_rps = stalls.iter().filter_map(|(_, _, trial)| history[*trial].offered_rps()).reduce(f64::min);
    let Some(stalled_rps) = stalled_rps else { return false };
    let mut lengths: Vec<u64> = stalls.iter().map(|(_, stall, _)| stall.length_ns).collect();
    lengths.sort_unstable();
    let usual_s = lengths[lengths.len() / 2] as f64 / 1e9;
    let (mut below_s, mut other_s) = (0.0, 0.0);
    // A load that drains a backlog ends as soon as the server responds quickly, so its length
    // carries no information about how often stalls occur.
    for trial in history.iter().filter(|trial| trial.purpose != LoadPurpose::Settle) {
        let seconds = trial.duration_ns as f64 / 1e9;
        match trial.offered_rps() {
            Some(rate) if rate >= stalled_rps => other_s += seconds,
            // At a lower rate, too few responses are missing during a stall to make the stall
            // visible.
            Some(rate) if rate * usual_s >= DELAYED_RESPONSES_MIN && trial.verdict == Verdict::Pass => {
                below_s += seconds
            }
            Some(_) => {}
            None => other_s += seconds,
        }
    }
    let often_rps = stalls.len() as f64 / other_s.max(1e-9);
    often_rps >= PERIODIC_STALLS_PER_S_MIN && often_rps * below_s >= EXPECTED_STALLS_MIN
}

impl Stalls {
    /// Classifies the periods without any response in these trials.
    pub fn detect(settings: &SearchSettings, history: &[TrialOutcome]) -> NoResponsePeriods {
        let traffic = &settings.base.traffic;
        let quickest_ns = queueless_response_ns(history, traffic.routes.len() > 1);
        let least_ns = quickest_ns.saturating_mul(STALL_RESPONSE_TIMES_MIN).max(service_silence_ns_max(history));
        // Users whose sessions start together send equal requests at the same time. Users with
        // synchronised sessions wait at the same time because of the load, not because of a stall.
        let in_step =
            |outcome: &TrialOutcome| traffic.choice == RouteChoice::Scenarios && outcome.purpose == LoadPurpose::Peak;
        // Each item contains a stall's start in measured time, the stall, and the index of its
        // trial.
        let mut stalls: Vec<(u64, Stall, usize)> = Vec::new();
        let (mut time_ns, mut trials) = (0u64, 0);
        for (trial, outcome) in history.iter().enumerate() {
            let left_ns = trial.checked_sub(1).map_or(0, |before| drain_time_ns(&history[before]));
            let is_stall = |s: &&Stall| {
                s.length_ns > least_ns && s.at_ns >= left_ns && comes_from_server(outcome, s) && !in_step(outcome)
            };
            let long = outcome.evidence.stalls.iter().filter(is_stall);
            stalls.extend(long.map(|s| (time_ns.saturating_add(s.at_ns), *s, trial)));
            time_ns = time_ns.saturating_add(outcome.duration_ns);
            trials += usize::from(outcome.purpose != LoadPurpose::Settle);
        }
        let Some(longest_ns) = stalls.iter().map(|s| s.1.length_ns).max() else { return NoResponsePeriods::None };
        if occur_only_above_capacity(history, &stalls) {
            return NoResponsePeriods::OnlyAboveCapacity;
        }
        let hit = |bound_ns: u64| {
            let mut trials: Vec<usize> =
                stalls.iter().filter(|s| s.1.time_beyond_bound_ns(bound_ns) > 0).map(|s| s.2).collect();
            trials.dedup();
            trials.len()
        };
        let few = settings.budget_ns < SMALL_BUDGET_NS;
        let own = |hits: usize| {
            hits >= 2 && (few || exceeds_disturbances(hits, trials, STALL_DISTURBANCE_SHARE, STALL_ERROR_PROBABILITY))
        };
        let stalled_ns: u64 = stalls.iter().map(|s| s.1.length_ns).sum();
        let is_recurring = own(hit(0)) && (!few || stalled_ns as f64 > SMALL_BUDGET_STALL_SHARE * time_ns as f64);
        // The time before the first stall and the time after the last stall also count as gaps
        // between stalls.
        let ends = stalls.iter().map(|s| s.0.saturating_add(s.1.length_ns));
        let starts = stalls.iter().map(|s| s.0).chain([time_ns]);
        let gaps = starts.zip([0].into_iter().chain(ends)).map(|(start, end)| start.saturating_sub(end));
        let (mut break_slo, mut impossible_bound) = (false, None);
        for bound in settings.slo.response_bounds() {
            let share = 1.0 - bound.quantile;
            let beyond_ns: f64 = stalls.iter().map(|s| s.1.time_beyond_bound_ns(bound.bound_ns) as f64).sum();
            let seen = beyond_ns / time_ns.max(1) as f64;
            let hits = hit(bound.bound_ns);
            break_slo |= if few {
                seen > share * SMALL_BUDGET_STALL_SHARE_OF_ALLOWED_LATE_REQUESTS
            } else {
                is_recurring && seen > share
            };
            let enough = hits >= if few { SMALL_BUDGET_STALL_TRIALS_MIN } else { NO_RATE_STALL_TRIALS_MIN };
            let own = few || exceeds_disturbances(hits, trials, STALL_DISTURBANCE_SHARE, NO_LINE_ERROR_PROBABILITY);
            if enough && own && seen * certain_stall_frequency_share(hits) > share && impossible_bound.is_none() {
                let bound_text = format::duration(bound.bound_ns as f64);
                impossible_bound = Some(format!("p{} <= {bound_text}", (bound.quantile * 1e6).round() / 1e4));
            }
        }
        NoResponsePeriods::Stalls(Stalls {
            count: stalls.len(),
            longest_ns,
            mean_interval_ns: time_ns / stalls.len() as u64,
            gap_ns_max: gaps.max().unwrap_or(time_ns),
            impossible_bound,
            has_slo_breaking_stalls: break_slo,
            is_recurring,
        })
    }

    /// Returns the minimum length of a trial near the load line, ns; 0 if the server does not stall
    /// repeatedly.
    pub fn line_trial_ns_min(&self, budget_ns: u64) -> u64 {
        if self.is_recurring {
            self.gap_ns_max.saturating_mul(LINE_TRIAL_STALL_INTERVALS).min(budget_ns / LINE_TRIAL_BUDGET_DIVISOR)
        } else {
            0
        }
    }

    /// Returns the length of a trial that can confirm the load line of a server that stalls, ns. If
    /// the length exceeds the search budget, the search cannot confirm a load line. Returns 0 if
    /// the server does not stall repeatedly.
    pub fn confirming_trial_ns(&self) -> u64 {
        if self.is_recurring { self.gap_ns_max.saturating_mul(CONFIRMING_STALL_INTERVALS) } else { 0 }
    }

    /// Returns the length of the trial that confirms the load line, limited to a share of this
    /// budget, ns.
    pub fn limited_confirming_trial_ns(&self, budget_ns: u64) -> u64 {
        self.confirming_trial_ns().min(budget_ns / CONFIRMING_BUDGET_DIVISOR)
    }

    /// Formats the stalls in a few words: `stalls of up to 1 s about every 1.2 s`.
    pub fn stalls_text(&self) -> String {
        let longest = format::duration(round_to_two_digits(self.longest_ns));
        match self.count {
            1 => format!(
                "a stall of {longest} in {duration} of measured time",
                duration = format::duration(round_to_two_digits(self.mean_interval_ns))
            ),
            _ => format!(
                "stalls of up to {longest} about every {interval}",
                interval = format::duration(round_to_two_digits(self.mean_interval_ns))
            ),
        }
    }
}

/// Returns whether the server itself caused a stall. The stall is certain if it ended within the
/// trial, and if an already sent request waited during the stall.
///
/// A stall of a void trial (plimsoll or other processes were the limit) must be certain. If other
/// processes disturbed the trial, the stall must also be longer than other processes usually keep a
/// core. In addition, the host must not have taken CPU time from the virtual machine. In a trial of
/// the climb, all users may wait for something else than the server, such as the lost first packet
/// of a connection. So a stall of such a trial must be certain, too.
fn comes_from_server(trial: &TrialOutcome, stall: &Stall) -> bool {
    let certain = stall.has_ended_within_load && stall.has_waiting_sent_request;
    let stolen = trial.interference.steal_share.is_none_or(|share| share > NEGLIGIBLE_STEAL_SHARE);
    match trial.verdict {
        Verdict::Pass | Verdict::Fail => trial.purpose != LoadPurpose::Peak || certain,
        // A stall at the start of a trial that other processes disturbed may come from the backlog
        // of the trial before.
        Verdict::Void if trial.interference.is_disturbed => {
            certain && stall.at_ns > 0 && stall.length_ns >= OWN_STALL_NS_MIN && !stolen
        }
        Verdict::Void => certain,
    }
}

/// Returns how long a server with one queue needs to process the backlog that a trial left, ns.
/// Until the backlog is processed, no request of the next trial gets a response. Returns 0 if no
/// request of the trial succeeded.
fn drain_time_ns(trial: &TrialOutcome) -> u64 {
    let answered_rps = trial.evidence.saturated_rps.unwrap_or(trial.goodput_rps);
    let left = trial.evidence.unanswered as f64 * SECOND as f64;
    if answered_rps > 0.0 { (left / answered_rps) as u64 } else { 0 }
}

/// Returns the response time without a queue, ns. The response time is the minimum median of all
/// trials, because a stall may have delayed the responses of the first trial. For several routes
/// (`several`) the response time is the minimum p99, because slow requests delay other requests.
fn queueless_response_ns(history: &[TrialOutcome], several: bool) -> u64 {
    let of = |trial: &TrialOutcome| if several { trial.p99_ns } else { trial.p50_ns };
    history.iter().map(of).filter(|ns| *ns > 0).min().unwrap_or(0)
}

/// Returns the longest time without responses that the variation of service times explains, ns. If
/// the p99 of a single user is at most twice the mean, the returned time is three times the p99.
/// For a larger p99, the returned time follows from the tail of an exponential distribution. The
/// mean of the distribution is the single user's mean service time, or a longer mean that matches
/// the single user's p99. A server without stalls exceeds the returned time in one of a hundred
/// searches. If the single user got fewer than fifty responses, the p99 is too uncertain and does
/// not count.
fn service_silence_ns_max(history: &[TrialOutcome]) -> u64 {
    const LIGHT_TAIL_FACTOR_MAX: f64 = 2.0;
    const P99_RESPONSES_MIN: f64 = 50.0;
    let answered = |trial: &TrialOutcome| trial.goodput_rps * trial.duration_ns as f64 / 1e9;
    let single = history.iter().find(|trial| trial.user_count() == Some(1) && trial.evidence.service_mean_ns > 0.0);
    let Some(single) = single else { return 0 };
    let (mean_ns, p99_ns) = (single.evidence.service_mean_ns, single.p99_ns as f64);
    if answered(single) >= P99_RESPONSES_MIN && p99_ns <= LIGHT_TAIL_FACTOR_MAX * mean_ns {
        return (3.0 * p99_ns) as u64;
    }
    let all: f64 = history.iter().map(answered).sum();
    let tail_ns = if answered(single) >= P99_RESPONSES_MIN { mean_ns.max(p99_ns / 100f64.ln()) } else { mean_ns };
    (tail_ns * (100.0 * all.max(1.0)).ln()) as u64
}

fn round_to_two_digits(ns: u64) -> f64 {
    let unit = 10f64.powf((ns.max(1) as f64).log10().floor() - 1.0);
    (ns as f64 / unit).round() * unit
}

/// Returns the share of the observed frequency of `count` stalls that is certain with 80 %
/// probability. The share is the 20 % quantile of a gamma distribution with shape `count`, divided
/// by the mean of the distribution.
fn certain_stall_frequency_share(count: usize) -> f64 {
    const SMALL_COUNT_SHARES: [f64; 8] = [0.0, 0.22, 0.41, 0.51, 0.57, 0.62, 0.65, 0.67];
    SMALL_COUNT_SHARES.get(count).copied().unwrap_or_else(|| 1.0 - 0.84 / (count as f64).sqrt())
}

/// Returns whether stalls in `hits` of `trials` trials are more than chance disturbances by other
/// processes explain. `share` is the share of trials that a disturbance may hit, and `error` the
/// probability of error. The test uses the upper tail of a binomial distribution.
fn exceeds_disturbances(hits: usize, trials: usize, share: f64, error: f64) -> bool {
    let (mut term, mut below) = ((1.0 - share).powi(trials.min(10_000) as i32), 0.0);
    for k in 0..hits.min(trials) {
        below += term;
        term *= (trials - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
    }
    1.0 - below < error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slo;
    use crate::interference::Interference;
    use crate::judge::OfferedLoad;
    use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadShape, Plan, PlanRecord};

    fn search_settings(base: PlanRecord, budget_ns: u64) -> SearchSettings {
        let (slo, arrivals) = (Slo::default(), ArrivalSpacing::Constant);
        SearchSettings { base, slo, budget_ns, max_rate: None, arrivals, preflight_ns: 0 }
    }

    fn base_plan() -> PlanRecord {
        Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record()
    }

    fn trial_outcome(purpose: LoadPurpose, verdict: Verdict, disturbed: bool) -> TrialOutcome {
        TrialOutcome {
            p99_ns: 60 * MS,
            interference: Interference { is_disturbed: disturbed, steal_share: Some(0.0), ..Interference::default() },
            ..TrialOutcome::one_second_trial(purpose, OfferedLoad::Users(16), verdict)
        }
    }

    /// Checks that sessions that begin together, and slow requests among fast requests, do not
    /// count as stalls.
    #[test]
    fn a_common_wait_of_sessions_is_not_a_stall() {
        let mut base = base_plan();
        base.traffic.routes.push(base.traffic.routes[0].clone());
        let silent = |purpose, ms: u64| {
            let mut trial = trial_outcome(purpose, Verdict::Pass, false);
            trial.evidence.stalls = vec![Stall {
                at_ns: 100 * MS,
                length_ns: ms * MS,
                has_ended_within_load: true,
                has_waiting_sent_request: true,
            }];
            trial
        };
        for (choice, trial, expect) in [
            (RouteChoice::Weighted, silent(LoadPurpose::Peak, 400), true),
            (RouteChoice::Scenarios, silent(LoadPurpose::Peak, 400), false),
            (RouteChoice::Scenarios, silent(LoadPurpose::Climb, 400), true),
            (RouteChoice::Scenarios, silent(LoadPurpose::Climb, 150), false),
        ] {
            base.traffic.choice = choice;
            let stalls = matches!(
                Stalls::detect(&search_settings(base.clone(), SECOND), &[trial]),
                NoResponsePeriods::Stalls(_)
            );
            assert_eq!(stalls, expect, "{choice:?}");
        }
    }

    /// Checks that a wait for the backlog of an earlier load does not count as a stall. A server
    /// that serves requests in order first answers the requests that the earlier load left waiting.
    #[test]
    fn backlog_of_an_earlier_load_is_not_a_stall() {
        let settings = search_settings(base_plan(), SECOND);
        // Each row contains the number of unanswered requests and the goodput (1/s) of the first
        // load. The third value is the start of the time without responses in the next load, ms.
        for (left, rps, at_ms, expect) in [
            (100, 100.0, 0, false),
            (100, 100.0, 900, false),
            (100, 100.0, 1100, true),
            (2, 1000.0, 100, true),
            (0, 1000.0, 0, true),
            (100, 0.0, 0, true),
        ] {
            let [mut over, mut next] = [(); 2].map(|()| trial_outcome(LoadPurpose::Climb, Verdict::Fail, false));
            (over.evidence.unanswered, over.goodput_rps) = (left, rps);
            let stall = Stall {
                at_ns: at_ms * MS,
                length_ns: 400 * MS,
                has_ended_within_load: true,
                has_waiting_sent_request: true,
            };
            next.evidence.stalls = vec![stall];
            let stalls = matches!(Stalls::detect(&settings, &[over, next]), NoResponsePeriods::Stalls(_));
            assert_eq!(stalls, expect, "{left} {rps} {at_ms}");
        }
    }

    /// Checks that periods without responses that occur only above the capacity do not count as
    /// stalls. A limiter that admits requests periodically pauses its responses only while the
    /// offered rate exceeds the limit.
    #[test]
    fn no_responses_only_above_capacity_is_not_a_stall() {
        let settings = search_settings(base_plan(), 60 * SECOND);
        // Each load of one second has a rate, whether the load met the SLO, and its number of
        // stalls.
        type Loads = &'static [(f64, bool, usize)];
        const STALLS_ABOVE_CAPACITY: Loads = &[
            (157.0, true, 0),
            (313.0, false, 2),
            (224.0, true, 0),
            (257.0, false, 2),
            (240.0, true, 0),
            (253.0, false, 2),
        ];
        for (name, loads, when_full) in [
            ("only above what holds", STALLS_ABOVE_CAPACITY, true),
            (
                "seldom, as stalls are",
                &[(157.0, true, 0), (224.0, true, 0), (313.0, false, 1), (240.0, true, 0)],
                false,
            ),
            ("below, too", &[(157.0, true, 0), (313.0, false, 2), (224.0, false, 1), (240.0, true, 0)], false),
            ("too little was held to tell", &[(157.0, true, 0), (313.0, false, 2)], false),
            ("too few requests to see", &[(5.0, true, 0), (5.0, true, 0), (6.0, true, 0), (313.0, false, 2)], false),
        ] {
            let of = |(rate, passed, stalls): &(f64, bool, usize)| {
                let verdict = if *passed { Verdict::Pass } else { Verdict::Fail };
                let mut trial = trial_outcome(LoadPurpose::Climb, verdict, false);
                trial.load = OfferedLoad::Rate(*rate);
                let starts = (0..*stalls as u64).map(|n| n * 400 * MS);
                let stall = |at_ns| Stall {
                    at_ns,
                    length_ns: 250 * MS,
                    has_ended_within_load: true,
                    has_waiting_sent_request: true,
                };
                trial.evidence.stalls = starts.map(stall).collect();
                trial
            };
            let trials: Vec<TrialOutcome> = loads.iter().map(of).collect();
            assert_eq!(Stalls::detect(&settings, &trials) == NoResponsePeriods::OnlyAboveCapacity, when_full, "{name}");
        }
    }

    /// Checks that a period without responses counts as a stall of the server only if the server
    /// caused the period.
    #[test]
    fn pauses_are_attributed_to_server_or_generator() {
        use LoadPurpose::{Climb, Peak};
        use Verdict::{Fail, Pass, Void};
        // Each row contains (purpose, verdict, disturbed), the stall (whether it ended, whether a
        // sent request waited, length in ms), and the expected result.
        for (trial, silence, expect) in [
            ((Climb, Pass, false), (false, false, 600), true),
            ((Climb, Fail, false), (true, false, 600), true),
            // All users may wait for their connections, so the stall does not count: no sent
            // request is known to have waited through the whole stall.
            ((Peak, Pass, false), (false, false, 600), false),
            ((Peak, Pass, false), (true, false, 600), false),
            ((Peak, Pass, false), (true, true, 600), true),
            ((Climb, Void, false), (true, false, 600), false),
            ((Climb, Void, false), (true, true, 600), true),
            ((Climb, Void, true), (true, true, 200), false),
            ((Climb, Void, true), (true, true, 600), true),
        ] {
            let ((purpose, verdict, disturbed), (ended, had_left, ms)) = (trial, silence);
            let stall = Stall {
                at_ns: 100 * MS,
                length_ns: ms * MS,
                has_ended_within_load: ended,
                has_waiting_sent_request: had_left,
            };
            let seen = comes_from_server(&trial_outcome(purpose, verdict, disturbed), &stall);
            assert_eq!(seen, expect, "{purpose:?} {verdict:?} {silence:?}");
        }
    }
}
