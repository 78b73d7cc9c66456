//! Which trial a search makes next, in its four parts: the peak, the climb, the line and its confirmation.

use super::evidence::Evidences;
use super::gone::Gone;
use super::pace::{ANSWERS_IN_TURN, Pace};
use super::plans::{Planner, round_rate};
use super::so_far::TrialsSoFar;
use super::terms::{Measure, StoppedBy, disturbed, limited, near_line};
use super::{line, peak};
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::units::SECOND;
use plimsoll_model::{Plan, Purpose};

/// A first load in which nobody answered is repeated so often, so many times as long.
const FIRST_LOADS_MAX: u32 = 3;
const FIRST_LOAD_FACTOR: u64 = 4;
/// Most voids in a row before the generator is taken for the limit.
const VOIDS_MAX: usize = 3;
/// A rate of the climb at which others disturbed is tried so often before another one is: only once while nothing has held,
/// since a lower rate is likelier to hold in spite of them.
const DISTURBED_TRIES: usize = 6;
const DISTURBED_TRIES_FIRST: usize = 1;

/// The choice of the next trial, from what the trials so far say.
pub(super) struct LoadChoice<'a> {
    known: &'a TrialsSoFar<'a>,
    history: &'a [TrialOutcome],
    plans: Planner<'a>,
}

/// Where the open climb stands.
enum Climb {
    /// Try this rate next.
    Try(f64),
    /// The line lies between these.
    Between,
    /// The search cannot go on.
    Over(StoppedBy),
}

impl<'a> LoadChoice<'a> {
    pub(super) fn new(known: &'a TrialsSoFar<'a>, elapsed_ns: u64) -> LoadChoice<'a> {
        LoadChoice { known, history: known.history, plans: Planner::new(known, elapsed_ns) }
    }

    /// The next trial, or why there is none.
    pub(super) fn step(&self) -> Result<Measure, StoppedBy> {
        if Gone::seen(self.history).is_some() {
            return Err(StoppedBy::Gone);
        }
        if let Some(measure) = self.peak() {
            return measure;
        }
        if let Some(measure) = self.plans.drain() {
            return Ok(measure);
        }
        if self.known.stalls.as_ref().is_some_and(|stalls| stalls.forbids.is_some()) {
            return Err(StoppedBy::Stalls);
        }
        let evidence = Evidences::new(self.known);
        let climb_over = self.history.iter().any(near_line);
        if !climb_over {
            match self.climb(&evidence) {
                Climb::Try(rate) => {
                    return self.affordable(self.plans.open(Purpose::Climb, rate, self.known.pace.climb_ns));
                }
                Climb::Over(stopped_by) => return Err(stopped_by),
                Climb::Between => {}
            }
        } else if self.voids_in_a_row() >= VOIDS_MAX {
            return Err(StoppedBy::Client);
        }
        line::step(&evidence, &self.known.pace, &self.plans)
    }

    /// The next closed-loop trial; `None` once that part is over.
    fn peak(&self) -> Option<Result<Measure, StoppedBy>> {
        if self.history.iter().any(|t| t.offered_rps().is_some() && t.purpose != Purpose::Settle) {
            return None;
        }
        if peak::nothing_succeeds(self.history) {
            return Some(Err(StoppedBy::NothingSucceeds));
        }
        let users_max = u64::from(self.known.settings.base.carriage.connections_max).min(16_384);
        if peak::answer_ns(self.history).is_none() {
            return Some(self.first_load());
        }
        let users = peak::next(self.history, self.known.pace.users_factor, users_max)?;
        let (p50_ns, planned_ns) = self.history.last().map_or((0, 0), |t| (t.p50_ns, t.planned_ns));
        // Answers of a crowd take longer than those of a single user.
        let least_ns = p50_ns.saturating_mul(ANSWERS_IN_TURN).min(planned_ns.saturating_mul(2));
        let shown_ns = p50_ns.saturating_mul(8).min(SECOND);
        let length_ns = shown_ns.max(least_ns).max(self.known.pace.peak_ns) / Plan::TICK_NS * Plan::TICK_NS;
        if self.plans.elapsed_ns.saturating_add(length_ns) > self.known.pace.peak_until_ns {
            return None;
        }
        Some(self.affordable(self.plans.closed(users, length_ns)))
    }

    /// The first load: a single user, for as long as some answers take. The first answer of all may have been a slow one,
    /// so it ends as soon as enough are there; and nobody may have asked before, so it is repeated for longer.
    fn first_load(&self) -> Result<Measure, StoppedBy> {
        let silent = self.history.iter().filter(|t| t.purpose == Purpose::Peak).count() as u32;
        if silent > FIRST_LOADS_MAX {
            return Err(StoppedBy::NothingAnswered);
        }
        let wanted_ns =
            self.known.pace.peak_ns.saturating_mul(2).saturating_mul(FIRST_LOAD_FACTOR.saturating_pow(silent));
        let shown_ns = Pace::of(self.known.settings.budget_ns, 0).peak_ns;
        let no_room = if silent > 0 { StoppedBy::NothingAnswered } else { StoppedBy::Budget };
        let measure = self.plans.first(wanted_ns, shown_ns).ok_or(no_room)?;
        let longer = self.history.last().is_none_or(|t| measure.plan.load.duration_ns > Some(t.planned_ns));
        if longer { Ok(measure) } else { Err(StoppedBy::NothingAnswered) }
    }

    fn affordable(&self, measure: Measure) -> Result<Measure, StoppedBy> {
        if self.plans.affords(&measure) { Ok(measure) } else { Err(StoppedBy::Budget) }
    }

    /// Of the trials near the line.
    fn voids_in_a_row(&self) -> usize {
        self.history.iter().rev().filter(|t| near_line(t)).take_while(|t| limited(t)).count()
    }

    fn climb(&self, evidence: &Evidences) -> Climb {
        let climb = || self.history.iter().filter(|t| t.purpose == Purpose::Climb);
        let trials: Vec<(f64, Verdict)> = climb()
            .filter_map(|t| t.offered_rps().map(|rate| (rate, t.verdict)))
            .filter(|(rate, _)| *rate > 0.0)
            .collect();
        let peak = peak::of(self.history).map_or(100.0, |p| p.rps);
        let rate_max = self.known.settings.max_rate.unwrap_or(f64::INFINITY);
        let Some(&(rate, verdict)) = trials.last() else {
            return Climb::Try(round_rate((peak * self.known.pace.first_share).max(1.0)).min(rate_max));
        };
        let highest_pass = evidence.climb_lower();
        let lowest_fail = evidence.climb_upper();
        let times = trials.iter().filter(|t| t.0 == rate).count();
        // Others come and go: what they spoilt is tried again for a while.
        let disturbed = climb().next_back().is_some_and(disturbed);
        let tries = if highest_pass.is_some() { DISTURBED_TRIES } else { DISTURBED_TRIES_FIRST };
        if disturbed && times < tries {
            return Climb::Try(rate);
        }
        let by_client = climb().next_back().is_some_and(limited);
        // Far below the peak a fail is looked at once more again.
        let times_max = if rate < 0.6 * peak && !by_client { 3 } else { 2 };
        match verdict {
            Verdict::Fail | Verdict::Void if !disturbed && times < times_max && !self.narrowing(&trials) => {
                return Climb::Try(rate);
            }
            _ => {}
        }
        match (highest_pass, lowest_fail) {
            (Some(lower), None) if lower >= rate_max => Climb::Between,
            (Some(lower), None) => {
                let void_above =
                    climb().filter(|t| limited(t)).filter_map(TrialOutcome::offered_rps).filter(|r| *r > lower);
                let void = void_above.min_by(f64::total_cmp).or((verdict == Verdict::Void).then_some(rate));
                match void {
                    // The generator is the limit somewhere above the highest pass: close in on it a little.
                    Some(void) if void / lower > 1.2 => Climb::Try(round_rate((lower * void).sqrt())),
                    // Near the line trials are longer: what is stated holds for longer than a second, wherever the limit is.
                    Some(_) => Climb::Between,
                    None => Climb::Try(round_rate(lower * 2.0).min(rate_max)),
                }
            }
            (None, None) if rate > 1.0 => Climb::Try(round_rate((rate / 4.0).max(1.0))),
            (None, None) if disturbed => Climb::Over(StoppedBy::Disturbed),
            (None, None) => Climb::Over(StoppedBy::Client),
            (None, Some(upper)) => {
                let floor = (peak / 2000.0).max(1.0);
                if upper <= floor * 1.001 {
                    Climb::Over(StoppedBy::LowestFails)
                } else {
                    Climb::Try(round_rate((upper / 4.0).max(floor)))
                }
            }
            (Some(lower), Some(upper)) => {
                let narrow = trials.len() > 12 || upper / lower <= 1.12;
                match evidence.estimate() {
                    _ if narrow => Climb::Between,
                    Some(estimate) if estimate.spread < 0.03 => Climb::Between,
                    Some(estimate) if estimate.rps > lower * 1.02 && estimate.rps < upper * 0.98 => {
                        Climb::Try(round_rate(estimate.rps))
                    }
                    _ => Climb::Try(round_rate((lower * upper).sqrt())),
                }
            }
        }
    }

    /// Whether the climb has seen both a pass and a second fail: from there on no trial is repeated as such.
    fn narrowing(&self, trials: &[(f64, Verdict)]) -> bool {
        let failed_twice = trials
            .iter()
            .enumerate()
            .any(|(at, t)| t.1 == Verdict::Fail && trials[at + 1..].iter().any(|u| u.1 == Verdict::Fail && u.0 == t.0));
        failed_twice && trials.iter().any(|t| t.1 == Verdict::Pass)
    }
}
