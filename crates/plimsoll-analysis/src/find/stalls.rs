//! The stalls of all trials together ([`Stalls`]): a stall affects every load alike, so all
//! measured time counts, at any load.
//!
//! Not here: the stalls of one trial ([`crate::stalls`]).

use super::terms::Settings;
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use crate::stalls::Stall;
use plimsoll_model::Purpose;
use plimsoll_model::traffic::Choice;
use plimsoll_model::units::{MS, SECOND};

/// A stall is that of a server, and not the time that answers take anyhow, from so many times this
/// on.
const BEYOND_ANSWERS: u64 = 3;
/// A trial that confirms the line of a server that stalls is as long as so many of the longest gaps
/// between stalls, but takes no more than this part of the budget; and so for a trial near the
/// line.
const CONFIRM_GAPS: u64 = 3;
const CONFIRM_PART: u64 = 3;
const LINE_GAPS: u64 = 2;
const LINE_PART: u64 = 8;
/// No rate is called impossible because of stalls in fewer trials; in a small budget that holds few
/// of them, these.
const FORBID_TRIALS: usize = 3;
const FORBID_TRIALS_FEW: usize = 2;
/// This share of trials may break the SLO by stalls that are a disturbance; more is the server's
/// own, at this chance of an error.
const DISTURBED_BY_STALLS: f64 = 0.06;
const ERROR: f64 = 0.05;
/// A result "no rate meets the SLO" ends the search. It is tested after every trial, so its error
/// must be small.
const ERROR_FORBIDS: f64 = 0.01;
/// In a budget below this there are too few trials to take any for a disturbance.
pub const FEW_NS: u64 = 25 * SECOND;
/// There, stalls that take no more than this share of the time move the line by no more than that.
const FEW_SHARE: f64 = 0.02;
/// Other processes on a busy machine do not keep a server from its core for so long, unless the
/// host took the cores away.
const BUSY_NS_MIN: u64 = 250 * MS;
const STEAL_NONE: f64 = 0.01;
/// For a server with rare stalls, one trial more or less changes much: only this part of the
/// allowance may be used up.
const STALLING_PART: f64 = 0.5;

/// Stalls that were seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Stalls {
    /// How many there were.
    pub count: usize,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// Time measured for each of them, in ns.
    pub every_ns: u64,
    /// The longest measured time without a stall, in ns.
    pub gap_ns_max: u64,
    /// The bound that no rate holds because of them, as in `p99 <= 500 ms`.
    pub forbids: Option<String>,
    /// Whether the stalls alone delay more requests than the SLO allows, and recur. In a budget too
    /// small for that, half as many suffice.
    pub too_many: bool,
    /// They are in more trials than a disturbance would be.
    pub recur: bool,
}

/// The silences of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Silences {
    /// The server responds all the time.
    None,
    /// Silences only above capacity: the server lets a number of requests through at times, or
    /// works in batches.
    WhenFull,
    /// It stalls.
    Stalls(Stalls),
}

/// The expected number of stalls in the loads without one, if these had the rate of the others:
/// none by chance is very unlikely.
const EXPECTED_MIN: f64 = 6.0;
/// A limiter that lets requests through at times does so at least this often, 1/s.
const OFTEN_RPS: f64 = 1.0;
/// Fewest missing responses of a stall.
const MISSED_MIN: f64 = 8.0;

/// Whether all `stalls` (each with its trial) are in loads above any that met none, which would
/// have met some.
fn only_when_full(history: &[TrialOutcome], stalls: &[(u64, Stall, usize)]) -> bool {
    let stalled_rps = stalls.iter().filter_map(|(_, _, trial)| history[*trial].offered_rps()).reduce(f64::min);
    let Some(stalled_rps) = stalled_rps else { return false };
    let mut lengths: Vec<u64> = stalls.iter().map(|(_, stall, _)| stall.length_ns).collect();
    lengths.sort_unstable();
    let usual_s = lengths[lengths.len() / 2] as f64 / 1e9;
    let (mut below_s, mut other_s) = (0.0, 0.0);
    // A load that waits for the server to come to rest ends when it is calm.
    for trial in history.iter().filter(|trial| trial.purpose != Purpose::Settle) {
        let seconds = trial.duration_ns as f64 / 1e9;
        match trial.offered_rps() {
            Some(rate) if rate >= stalled_rps => other_s += seconds,
            // With fewer requests a stall is not visible.
            Some(rate) if rate * usual_s >= MISSED_MIN && trial.verdict == Verdict::Pass => below_s += seconds,
            Some(_) => {}
            None => other_s += seconds,
        }
    }
    let often_rps = stalls.len() as f64 / other_s.max(1e-9);
    often_rps >= OFTEN_RPS && often_rps * below_s >= EXPECTED_MIN
}

impl Stalls {
    /// The silences in these trials.
    pub fn detect(settings: &Settings, history: &[TrialOutcome]) -> Silences {
        let traffic = &settings.base.traffic;
        let quickest_ns = quickest_ns(history, traffic.routes.len() > 1);
        let least_ns = quickest_ns.saturating_mul(BEYOND_ANSWERS).max(natural_ns(history));
        // Users whose sessions start together send the same requests together: a common wait is due
        // to the load itself.
        let in_step = |outcome: &TrialOutcome| traffic.choice == Choice::Scenarios && outcome.purpose == Purpose::Peak;
        // (when, in time measured; the stall; in which trial)
        let mut stalls: Vec<(u64, Stall, usize)> = Vec::new();
        let (mut time_ns, mut trials) = (0u64, 0);
        for (trial, outcome) in history.iter().enumerate() {
            let left_ns = trial.checked_sub(1).map_or(0, |before| drained_ns(&history[before]));
            let is_stall =
                |s: &&Stall| s.length_ns > least_ns && s.at_ns >= left_ns && of_server(outcome, s) && !in_step(outcome);
            let long = outcome.evidence.stalls.iter().filter(is_stall);
            stalls.extend(long.map(|s| (time_ns.saturating_add(s.at_ns), *s, trial)));
            time_ns = time_ns.saturating_add(outcome.duration_ns);
            trials += usize::from(outcome.purpose != Purpose::Settle);
        }
        let Some(longest_ns) = stalls.iter().map(|s| s.1.length_ns).max() else { return Silences::None };
        if only_when_full(history, &stalls) {
            return Silences::WhenFull;
        }
        let hit = |bound_ns: u64| {
            let mut trials: Vec<usize> = stalls.iter().filter(|s| s.1.beyond_ns(bound_ns) > 0).map(|s| s.2).collect();
            trials.dedup();
            trials.len()
        };
        let few = settings.budget_ns < FEW_NS;
        let own = |hits: usize| hits >= 2 && (few || no_disturbance(hits, trials, DISTURBED_BY_STALLS, ERROR));
        let stalled_ns: u64 = stalls.iter().map(|s| s.1.length_ns).sum();
        let recur = own(hit(0)) && (!few || stalled_ns as f64 > FEW_SHARE * time_ns as f64);
        // The time before the first and since the last is part of a gap, too.
        let ends = stalls.iter().map(|s| s.0.saturating_add(s.1.length_ns));
        let starts = stalls.iter().map(|s| s.0).chain([time_ns]);
        let gaps = starts.zip([0].into_iter().chain(ends)).map(|(start, end)| start.saturating_sub(end));
        let (mut too_many, mut forbids) = (false, None);
        for bound in settings.slo.response_bounds() {
            let share = 1.0 - bound.quantile;
            let beyond_ns: f64 = stalls.iter().map(|s| s.1.beyond_ns(bound.bound_ns) as f64).sum();
            let seen = beyond_ns / time_ns.max(1) as f64;
            let hits = hit(bound.bound_ns);
            too_many |= if few { seen > share * STALLING_PART } else { recur && seen > share };
            let enough = hits >= if few { FORBID_TRIALS_FEW } else { FORBID_TRIALS };
            let own = few || no_disturbance(hits, trials, DISTURBED_BY_STALLS, ERROR_FORBIDS);
            if enough && own && seen * sure(hits) > share && forbids.is_none() {
                let bound_text = format::duration(bound.bound_ns as f64);
                forbids = Some(format!("p{} <= {bound_text}", (bound.quantile * 1e6).round() / 1e4));
            }
        }
        Silences::Stalls(Stalls {
            count: stalls.len(),
            longest_ns,
            every_ns: time_ns / stalls.len() as u64,
            gap_ns_max: gaps.max().unwrap_or(time_ns),
            forbids,
            too_many,
            recur,
        })
    }

    /// How long a trial near the line must be at least, in ns.
    pub fn line_ns(&self, budget_ns: u64) -> u64 {
        if self.recur { self.gap_ns_max.saturating_mul(LINE_GAPS).min(budget_ns / LINE_PART) } else { 0 }
    }

    /// How long a trial must be that confirms a line in spite of them, in ns. A budget may be too
    /// small for it, and then no line can be shown.
    pub fn confirming_ns(&self) -> u64 {
        if self.recur { self.gap_ns_max.saturating_mul(CONFIRM_GAPS) } else { 0 }
    }

    /// How long the confirming trial is that this budget affords, in ns.
    pub fn confirm_ns(&self, budget_ns: u64) -> u64 {
        self.confirming_ns().min(budget_ns / CONFIRM_PART)
    }

    /// In a few words: `stalls of up to 1 s about every 1.2 s`.
    pub fn text(&self) -> String {
        let longest = format::duration(two_digits(self.longest_ns));
        match self.count {
            1 => format!("a stall of {longest} in {} measured", format::duration(two_digits(self.every_ns))),
            _ => format!("stalls of up to {longest} about every {}", format::duration(two_digits(self.every_ns))),
        }
    }
}

/// Whether a stall is the server's own. A void trial can still show that: if the generator was the
/// limit, by sent requests without a response; on a busy machine, by a stall longer than other
/// processes occupy a core. A handful of users may all wait for something else, as for a lost SYN
/// at a full accept queue: then the stall is the server's only if a sent request was answered late.
fn of_server(trial: &TrialOutcome, stall: &Stall) -> bool {
    let certain = stall.ended && stall.had_left;
    let stolen = trial.interference.steal_share.is_none_or(|share| share > STEAL_NONE);
    match trial.verdict {
        Verdict::Pass | Verdict::Fail => trial.purpose != Purpose::Peak || certain,
        // The silence that a disturbed trial begins with may be the backlog of the one before.
        Verdict::Void if trial.interference.disturbed => {
            certain && stall.at_ns > 0 && stall.length_ns >= BUSY_NS_MIN && !stolen
        }
        Verdict::Void => certain,
    }
}

/// The time for which a server with one queue works on the backlog of a trial, ns: no request of
/// the next trial is answered until then. `0` where the trial had no response at all.
fn drained_ns(trial: &TrialOutcome) -> u64 {
    let answered_rps = trial.evidence.saturated_rps.unwrap_or(trial.achieved_rps);
    let left = trial.evidence.unanswered as f64 * SECOND as f64;
    if answered_rps > 0.0 { (left / answered_rps) as u64 } else { 0 }
}

/// The response time without a queue: the least median of all trials, since the first trial may
/// have met a stall. With several routes, slow requests keep others waiting and are far from the
/// median: there it is the least p99.
fn quickest_ns(history: &[TrialOutcome], several: bool) -> u64 {
    let of = |trial: &TrialOutcome| if several { trial.p99_ns } else { trial.p50_ns };
    history.iter().map(of).filter(|ns| *ns > 0).min().unwrap_or(0)
}

/// The longest service time that the server's own variance explains; such a silence is no stall. If
/// a single user's p99 is close to the mean, three times that. Otherwise the value that an
/// exponential tail with that mean (or through that p99) exceeds once in a hundred such searches.
/// Fewer than fifty service times do not define a tail.
fn natural_ns(history: &[TrialOutcome]) -> u64 {
    const LIGHT: f64 = 2.0;
    const TELLING: f64 = 50.0;
    let answered = |trial: &TrialOutcome| trial.achieved_rps * trial.duration_ns as f64 / 1e9;
    let single = history.iter().find(|trial| trial.concurrency() == Some(1) && trial.evidence.service_mean_ns > 0.0);
    let Some(single) = single else { return 0 };
    let (mean_ns, p99_ns) = (single.evidence.service_mean_ns, single.p99_ns as f64);
    if answered(single) >= TELLING && p99_ns <= LIGHT * mean_ns {
        return (3.0 * p99_ns) as u64;
    }
    let all: f64 = history.iter().map(answered).sum();
    let tail_ns = if answered(single) >= TELLING { mean_ns.max(p99_ns / 100f64.ln()) } else { mean_ns };
    (tail_ns * (100.0 * all.max(1.0)).ln()) as u64
}

fn two_digits(ns: u64) -> f64 {
    let unit = 10f64.powf((ns.max(1) as f64).log10().floor() - 1.0);
    (ns as f64 / unit).round() * unit
}

/// The share of the observation in `count` trials that holds with a probability of 4 in 5: the 20 %
/// point of a gamma distribution of that shape over its mean.
fn sure(count: usize) -> f64 {
    const FEW: [f64; 8] = [0.0, 0.22, 0.41, 0.51, 0.57, 0.62, 0.65, 0.67];
    FEW.get(count).copied().unwrap_or_else(|| 1.0 - 0.84 / (count as f64).sqrt())
}

/// Whether so many of `trials` are more than are disturbed by chance: the upper tail of a binomial
/// distribution.
fn no_disturbance(hits: usize, trials: usize, share: f64, error: f64) -> bool {
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
    use plimsoll_model::{Arrivals, Curve, LoadShape, Plan, PlanRecord};

    fn settings(base: PlanRecord, budget_ns: u64) -> Settings {
        let (slo, arrivals) = (Slo::default(), Arrivals::Constant);
        Settings { base, slo, budget_ns, max_rate: None, arrivals, first_answer_ns: 0 }
    }

    fn base() -> PlanRecord {
        Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) }).record()
    }

    fn outcome(purpose: Purpose, verdict: Verdict, disturbed: bool) -> TrialOutcome {
        TrialOutcome {
            p99_ns: 60 * MS,
            interference: Interference { disturbed, steal_share: Some(0.0), ..Interference::default() },
            ..TrialOutcome::of_a_second(purpose, OfferedLoad::Users(16), verdict)
        }
    }

    /// Sessions that begin together, and dear requests among cheap ones, are no stalls.
    #[test]
    fn what_scenarios_wait_for_is_no_stall() {
        let mut base = base();
        base.traffic.routes.push(base.traffic.routes[0].clone());
        let silent = |purpose, ms: u64| {
            let mut trial = outcome(purpose, Verdict::Pass, false);
            trial.evidence.stalls = vec![Stall { at_ns: 100 * MS, length_ns: ms * MS, ended: true, had_left: true }];
            trial
        };
        for (choice, trial, expect) in [
            (Choice::Weighted, silent(Purpose::Peak, 400), true),
            (Choice::Scenarios, silent(Purpose::Peak, 400), false),
            (Choice::Scenarios, silent(Purpose::Climb, 400), true),
            (Choice::Scenarios, silent(Purpose::Climb, 150), false),
        ] {
            base.traffic.choice = choice;
            let stalls = matches!(Stalls::detect(&settings(base.clone(), SECOND), &[trial]), Silences::Stalls(_));
            assert_eq!(stalls, expect, "{choice:?}");
        }
    }

    /// A server that serves in order first serves the requests that an earlier load left.
    #[test]
    fn what_a_load_left_behind_is_no_stall_of_the_next() {
        let settings = settings(base(), SECOND);
        // Left unanswered at so many a second, and when the silence of the next began, ms.
        for (left, rps, at_ms, expect) in [
            (100, 100.0, 0, false),
            (100, 100.0, 900, false),
            (100, 100.0, 1100, true),
            (2, 1000.0, 100, true),
            (0, 1000.0, 0, true),
            (100, 0.0, 0, true),
        ] {
            let [mut over, mut next] = [(); 2].map(|()| outcome(Purpose::Climb, Verdict::Fail, false));
            (over.evidence.unanswered, over.achieved_rps) = (left, rps);
            let stall = Stall { at_ns: at_ms * MS, length_ns: 400 * MS, ended: true, had_left: true };
            next.evidence.stalls = vec![stall];
            let stalls = matches!(Stalls::detect(&settings, &[over, next]), Silences::Stalls(_));
            assert_eq!(stalls, expect, "{left} {rps} {at_ms}");
        }
    }

    /// A limiter that admits requests in intervals is silent in between only under overload.
    #[test]
    fn who_is_silent_only_when_full_does_not_stall() {
        let settings = settings(base(), 60 * SECOND);
        // Rates, whether each passed, and how many stalls it met, in a second.
        type Loads = &'static [(f64, bool, usize)];
        const FULL: Loads = &[
            (157.0, true, 0),
            (313.0, false, 2),
            (224.0, true, 0),
            (257.0, false, 2),
            (240.0, true, 0),
            (253.0, false, 2),
        ];
        for (name, loads, when_full) in [
            ("only above what holds", FULL, true),
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
                let mut trial = outcome(Purpose::Climb, verdict, false);
                trial.load = OfferedLoad::Rate(*rate);
                let starts = (0..*stalls as u64).map(|n| n * 400 * MS);
                let stall = |at_ns| Stall { at_ns, length_ns: 250 * MS, ended: true, had_left: true };
                trial.evidence.stalls = starts.map(stall).collect();
                trial
            };
            let trials: Vec<TrialOutcome> = loads.iter().map(of).collect();
            assert_eq!(Stalls::detect(&settings, &trials) == Silences::WhenFull, when_full, "{name}");
        }
    }

    /// Which silences of which trials are the server's own.
    #[test]
    fn silences_are_the_servers_or_not() {
        use Purpose::{Climb, Peak};
        use Verdict::{Fail, Pass, Void};
        // (purpose, verdict, disturbed), of a silence that was (ended, of requests that had left),
        // lasted (ms); expected.
        for (trial, silence, expect) in [
            ((Climb, Pass, false), (false, false, 600), true),
            ((Climb, Fail, false), (true, false, 600), true),
            // All users wait for their connections: nothing had left, or nobody knows.
            ((Peak, Pass, false), (false, false, 600), false),
            ((Peak, Pass, false), (true, false, 600), false),
            ((Peak, Pass, false), (true, true, 600), true),
            ((Climb, Void, false), (true, false, 600), false),
            ((Climb, Void, false), (true, true, 600), true),
            ((Climb, Void, true), (true, true, 200), false),
            ((Climb, Void, true), (true, true, 600), true),
        ] {
            let ((purpose, verdict, disturbed), (ended, had_left, ms)) = (trial, silence);
            let stall = Stall { at_ns: 100 * MS, length_ns: ms * MS, ended, had_left };
            let seen = of_server(&outcome(purpose, verdict, disturbed), &stall);
            assert_eq!(seen, expect, "{purpose:?} {verdict:?} {silence:?}");
        }
    }
}
