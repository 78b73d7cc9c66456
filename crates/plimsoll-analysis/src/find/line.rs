//! Near the line: which of the grid's loads to try next, and when to stop.

use super::evidence::{Evidences, LoadClass, Regimes, index_near, rate_of};
use super::grid::index_below;
use super::pace::Pace;
use super::plans::{Planner, cost_ns, round_rate};
use super::so_far::TrialsSoFar;
use super::stalls::FEW_NS;
use super::terms::{Measure, RATE_MIN, StoppedBy, limited, near_line};
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::Purpose;
use plimsoll_model::units::{MS, SECOND};

/// How many loads below the one that verdicts name are looked at.
const BELOW_MAX: i32 = 60;
/// A line that can be confirmed is stated rather than one that cannot for lack of time, if they are this near.
const NEAR: f64 = 1.03;
/// At most so many confirming trials; each one that fails sends the search back.
const CONFIRMS_MAX: usize = 4;

/// The highest rate that can be tried, and what forbids a higher one.
#[derive(Debug, Clone, Copy)]
pub struct Ceiling {
    /// Requests a second; infinite if there is none.
    pub rps: f64,
    /// Why a search that holds it ends.
    pub stopped_by: StoppedBy,
}

/// After a trial near its own limit that plimsoll could not carry out, this share of its rate is the next.
const CEILING_STEP: f64 = 0.93;

impl Ceiling {
    /// What was asked for, or where no load fails and a higher one is more than plimsoll can make, the highest that it
    /// could.
    pub(super) fn of(known: &TrialsSoFar, evidence: &Evidences) -> Ceiling {
        let (settings, history) = (known.settings, known.history);
        let asked = Ceiling { rps: settings.max_rate.unwrap_or(f64::INFINITY), stopped_by: StoppedBy::MaxRate };
        let limited = |near: bool| {
            let void = history.iter().filter(move |t| limited(t) && near_line(t) == near);
            void.filter_map(TrialOutcome::offered_rps)
        };
        let climbed = evidence.climb_lower().filter(|_| evidence.climb_upper().is_none());
        match climbed {
            Some(climbed) if limited(false).next().is_some() => {
                let rps =
                    limited(true).map(|rate| round_rate(rate * CEILING_STEP)).fold(climbed, f64::min).max(RATE_MIN);
                if rps < asked.rps { Ceiling { rps, stopped_by: StoppedBy::Client } } else { asked }
            }
            _ => asked,
        }
    }
}

/// The next trial near the line, or why there is none.
pub fn step(evidence: &Evidences, pace: &Pace, plans: &Planner) -> Result<Measure, StoppedBy> {
    let decide_s = pace.decide_s();
    let Ceiling { rps: rate_max, stopped_by: topped_by } = Ceiling::of(plans.known, evidence);
    let (lower, upper) = (evidence.lower(decide_s), evidence.upper(decide_s));
    let at_rate_max = |k: i32| rate_of(k + 1, f64::INFINITY) > rate_max;
    let regimes_open = evidence.regimes.filter(Regimes::open);

    let narrow = matches!((lower, upper), (Some(lower), Some(upper)) if upper - lower <= 1);
    let topped = matches!((lower, upper), (Some(lower), None) if at_rate_max(lower));
    let last = LastTrials { pace, plans, rate_max };
    if (narrow || topped) && regimes_open.is_none() {
        return last.step(evidence, if narrow { StoppedBy::Width } else { topped_by });
    }

    // A second regime that may be there shows at the line as well as anywhere.
    let index = match lower {
        Some(lower) if narrow || topped => lower,
        _ => choose(evidence, decide_s, plans, rate_max),
    };
    let measure = plans.open(Purpose::Line, rate_of(index, rate_max), pace.line_ns);
    let concluding = Evidences::concluding(plans.known);
    match last.cost_ns(&concluding) {
        Some(last_ns) if plans.left_ns() < cost_ns(&measure.plan).saturating_add(last_ns) => {
            last.step(&concluding, StoppedBy::Budget)
        }
        _ if plans.affords(&measure) => Ok(measure),
        _ => Err(StoppedBy::Budget),
    }
}

/// The end of a search, for which the last of the budget is kept: a whole trial at the line as it would be stated, and one
/// that confirms it.
struct LastTrials<'a> {
    pace: &'a Pace,
    plans: &'a Planner<'a>,
    rate_max: f64,
}

impl LastTrials<'_> {
    /// What is still missing, or that nothing is.
    fn step(&self, evidence: &Evidences, reason: StoppedBy) -> Result<Measure, StoppedBy> {
        let rate = self.rate(evidence).ok_or(reason)?;
        if confirmed(self.plans.known, rate) {
            return Err(reason);
        }
        if !passed_at(self.plans.history, rate) {
            let whole = self.plans.open(Purpose::Line, rate, self.pace.line_ns);
            let both_ns = cost_ns(&whole.plan).saturating_add(self.confirm_cost_ns(rate));
            if self.plans.left_ns() >= both_ns {
                return Ok(whole);
            }
        }
        // Without the time for both, one near it that passed a whole trial already; else the trial alone.
        let Some(rate) = self.held(evidence).filter(|held| rate / held < NEAR || passed_at(self.plans.history, rate))
        else {
            let whole = self.plans.open(Purpose::Line, rate, self.pace.line_ns);
            let again = passed_at(self.plans.history, rate) || !self.plans.affords(&whole);
            return if again { Err(reason) } else { Ok(whole) };
        };
        match confirmed(self.plans.known, rate) {
            true => Err(reason),
            false => self.confirm(rate).ok_or(reason),
        }
    }

    /// The line as it would be stated: the highest load for which the trials speak and that all time measured does not
    /// contradict. A confirming trial that failed thus leads to the next load below.
    fn rate(&self, evidence: &Evidences) -> Option<f64> {
        let target = evidence.target(self.pace.decide_s())?;
        let target = evidence.not_confirmed().map_or(target, |k| target.min(k - 1));
        let loads = (target - BELOW_MAX..=target).rev().filter(|k| evidence.speaks_for(*k));
        loads.map(|k| rate_of(k, self.rate_max)).find(|rate| !evidence.contradicted(*rate))
    }

    fn held(&self, evidence: &Evidences) -> Option<f64> {
        evidence.held(self.pace.decide_s(), |rate| confirmed(self.plans.known, rate))
    }

    /// What it takes at most; `None` while there is no line, or once it is confirmed.
    fn cost_ns(&self, evidence: &Evidences) -> Option<u64> {
        let rate = self.rate(evidence)?;
        if confirmed(self.plans.known, rate) {
            return None;
        }
        let whole = self.plans.open(Purpose::Line, rate, self.pace.line_ns);
        let whole_ns = if passed_at(self.plans.history, rate) { 0 } else { cost_ns(&whole.plan) };
        Some(whole_ns.saturating_add(self.confirm_cost_ns(rate)))
    }

    fn confirm_cost_ns(&self, rate: f64) -> u64 {
        cost_ns(&self.plans.open(Purpose::Confirm, rate, self.confirm_ns()).plan)
    }

    /// How long a confirming trial is at least: of a server that stalls, long against the time between.
    fn confirm_ns(&self) -> u64 {
        let stalls = self.plans.known.stalls.as_ref();
        let long_ns = stalls.map_or(0, |stalls| stalls.confirm_ns(self.plans.settings.budget_ns));
        self.pace.line_ns.max(long_ns) / (100 * MS) * (100 * MS)
    }

    /// A trial at the line, as long as the budget allows up to twice the usual length; in a small
    /// one, of a server that stalled, all that is left.
    fn confirm(&self, rate: f64) -> Option<Measure> {
        let failed = |t: &&TrialOutcome| t.purpose == Purpose::Confirm && t.verdict == Verdict::Fail;
        if self.plans.history.iter().filter(failed).count() >= CONFIRMS_MAX {
            return None;
        }
        let least = self.plans.open(Purpose::Confirm, rate, self.confirm_ns());
        if least.purpose == Purpose::Settle {
            return self.plans.affords(&least).then_some(least);
        }
        let spare_ns = self.plans.left_ns().checked_sub(cost_ns(&least.plan))?;
        // In a small budget a stall that was seen once may recur: the longer nothing more is seen of it the better.
        let TrialsSoFar { settings, stalls, .. } = self.plans.known;
        let stalled = settings.budget_ns < FEW_NS && stalls.is_some();
        let most_ns = if stalled { settings.budget_ns } else { self.pace.line_ns };
        let longer_ns = (spare_ns.min(most_ns) / SECOND) * SECOND;
        Some(self.plans.open(Purpose::Confirm, rate, self.confirm_ns() + longer_ns))
    }
}

fn at(rate: f64) -> impl Fn(&&TrialOutcome) -> bool {
    move |t| t.offered_rps().is_some_and(|r| (r / rate - 1.0).abs() < 1e-6)
}

/// Whether a whole trial near the line passed at `rate`.
fn passed_at(history: &[TrialOutcome], rate: f64) -> bool {
    let whole = history.iter().filter(|t| near_line(t));
    whole.filter(at(rate)).any(|t| t.verdict == Verdict::Pass)
}

/// Whether a confirming trial passed at `rate`; where the server stalls, one that was long enough.
pub(super) fn confirmed(known: &TrialsSoFar, rate: f64) -> bool {
    let long_ns = known.stalls.as_ref().map_or(0, |stalls| stalls.confirming_ns());
    let trials = known.history.iter().filter(|t| t.purpose == Purpose::Confirm).filter(at(rate));
    trials.filter(|t| t.planned_ns >= long_ns / 5 * 4).any(|t| t.verdict == Verdict::Pass)
}

/// The load to try: of the two neighbours between which the line is taken to be, one that is not classified yet, and
/// not the one just measured if there is a choice.
fn choose(evidence: &Evidences, decide_s: f64, plans: &Planner, rate_max: f64) -> i32 {
    let leans = evidence.room();
    let estimate = match evidence.estimate_within(leans.0, leans.1).or_else(|| evidence.estimate()) {
        Some(place) => index_near(place.rps),
        None => {
            let middle = match (evidence.climb_lower(), evidence.climb_upper()) {
                (Some(lower), Some(upper)) => (lower * upper).sqrt(),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => 1.0,
            };
            index_below(middle)
        }
    };
    // The verdicts bound the estimate; where it contradicts them all, go past them in growing steps.
    let mut below = estimate;
    if let Some(lower) = leans.0
        && below < lower
    {
        below = lower;
    }
    if let Some(upper) = leans.1
        && below >= upper
    {
        below = upper - 1;
    }
    let top = index_below(rate_max.min(1e12));
    let mut above = below + 1;
    match leans {
        (Some(lower), None) if above <= lower + 1 && below == lower && estimate <= lower => {
            above = lower + reach(evidence, true);
        }
        (None, Some(upper)) if below == upper - 1 && estimate >= upper => below = upper - reach(evidence, false),
        (Some(lower), Some(upper)) if estimate < lower || estimate >= upper => {
            // Halve what the verdicts leave.
            below = (lower + upper) / 2;
            above = (below + 1).min(upper);
        }
        _ => {}
    }
    if let Some(lost) = evidence.lost() {
        below = below.min(lost - reach(evidence, false));
    }
    (below, above) = (below.min(top), above.min(top));
    let open = |k: i32| evidence.class(k, decide_s) == LoadClass::Open;
    let last = plans.history.iter().rev().find(|t| t.purpose == Purpose::Line).and_then(TrialOutcome::offered_rps);
    let just_measured = |k: i32| last == Some(rate_of(k, rate_max));
    match (open(below), open(above)) {
        (true, true) if just_measured(below) => above,
        (true, _) => below,
        (false, true) => above,
        // Both neighbours are classified: any load that is not.
        (false, false) => {
            (below - 40..=above + 40).filter(|k| open(*k)).min_by_key(|k| (k - below).abs()).unwrap_or(below)
        }
    }
}

/// How far to go past the verdicts when all of them are alike: 1, 2, 4, ... steps.
fn reach(evidence: &Evidences, pass: bool) -> i32 {
    let alike = evidence.near.iter().rev().take_while(|n| n.pass == pass).count() as u32;
    1 << alike.saturating_sub(1).min(5)
}
