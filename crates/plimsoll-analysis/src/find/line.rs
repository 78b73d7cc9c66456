//! Near the line: which of the grid's loads to try next, and when to stop.

use super::evidence::{Class, Evidences, Regimes, index_near, rate_of};
use super::findings::StoppedBy;
use super::plans::{Planner, cost_ns};
use super::{Measure, Pace, index_below};
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::Purpose;
use plimsoll_model::units::{MS, SECOND};

/// At most so many confirming trials; each one that fails sends the search back.
const CONFIRMS_MAX: usize = 4;

/// The next trial near the line, or why there is none.
pub fn step(evidence: &Evidences, pace: &Pace, plans: &Planner) -> Result<Measure, StoppedBy> {
    let decide_s = pace.repeats * pace.line_ns as f64 / 1e9;
    let rate_max = plans.settings.max_rate.unwrap_or(f64::INFINITY);
    let (lower, upper) = (evidence.lower(decide_s), evidence.upper(decide_s));
    let at_rate_max = |k: i32| rate_of(k + 1, f64::INFINITY) > rate_max;
    let regimes_open = evidence.regimes.filter(Regimes::open);

    let narrow = matches!((lower, upper), (Some(lower), Some(upper)) if upper - lower <= 1);
    let topped = matches!((lower, upper), (Some(lower), None) if at_rate_max(lower));
    if (narrow || topped) && regimes_open.is_none() {
        let reason = if narrow { StoppedBy::Width } else { StoppedBy::MaxRate };
        return match lower {
            Some(lower) if !confirmed(plans.history, rate_of(lower, rate_max)) => {
                confirm(pace, plans, rate_of(lower, rate_max)).ok_or(reason)
            }
            _ => Err(reason),
        };
    }

    // A second regime that may be there shows at the line as well as anywhere.
    let index = match lower {
        Some(lower) if narrow || topped => lower,
        _ => choose(evidence, decide_s, plans, rate_max),
    };
    let rate = rate_of(index, rate_max);
    let measure = plans.open(Purpose::Line, rate, pace.line_ns);
    // The last trial that the budget allows is one at the line as it would be reported.
    let line = lower.max(evidence.leans_lower()).map(|k| rate_of(k, rate_max));
    let room_for_two = plans.left_ns() >= 2 * cost_ns(&measure.plan);
    match line {
        Some(line) if !room_for_two && !confirmed(plans.history, line) => {
            confirm(pace, plans, line).ok_or(StoppedBy::Budget)
        }
        _ if plans.affords(&measure) => Ok(measure),
        _ => Err(StoppedBy::Budget),
    }
}

/// A trial at the line, as long as the budget allows up to twice the usual length.
fn confirm(pace: &Pace, plans: &Planner, rate: f64) -> Option<Measure> {
    let done = plans.history.iter().filter(|t| t.purpose == Purpose::Confirm && t.verdict == Verdict::Fail).count();
    if done >= CONFIRMS_MAX {
        return None;
    }
    let usual = plans.open(Purpose::Confirm, rate, pace.line_ns);
    if usual.purpose == Purpose::Settle {
        return plans.affords(&usual).then_some(usual);
    }
    let spare_ns = plans.left_ns().checked_sub(cost_ns(&usual.plan))?;
    let longer_ns = (spare_ns.min(pace.line_ns) / SECOND) * SECOND;
    Some(plans.open(Purpose::Confirm, rate, pace.line_ns / (100 * MS) * (100 * MS) + longer_ns))
}

/// Whether a confirming trial passed at `rate` (or was void: a second one would say no more).
fn confirmed(history: &[TrialOutcome], rate: f64) -> bool {
    let at = |t: &&TrialOutcome| t.offered_rps().is_some_and(|r| (r / rate - 1.0).abs() < 1e-6);
    let trials = history.iter().filter(|t| t.purpose == Purpose::Confirm).filter(at);
    trials.filter(|t| t.verdict != Verdict::Fail).count() > 0
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
    (below, above) = (below.min(top), above.min(top));
    let open = |k: i32| evidence.class(k, decide_s) == Class::Open;
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
