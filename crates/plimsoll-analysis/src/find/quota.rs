//! Allowances by the clock ([`Quota`]), such as 3 000 requests a minute: once they are used up every request is refused until the
//! clock gives new ones, however low the load is. What such a server carries is an allowance over its window, and no single trial
//! that is shorter than the window shows it.
//!
//! Not here: limiters that give all the time ([`super::rejecting`]); servers that refuse all of an overload and serve the next low
//! load at once.

use super::normal::{density, upper_tail};
use super::plans::Planner;
use super::terms::{Measure, StoppedBy};
use crate::judge::TrialOutcome;
use crate::slo::Slo;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Arrivals, Purpose, RequestFailure};

/// A trial in which so large a share was refused, and nothing succeeded, found the server shut.
const SHUT_SHARE: f64 = 0.9;
/// A server that refuses a low load for so long was not only overloaded before.
const SHUT_NS_MIN: u64 = SECOND;
/// Users that use an allowance up, and for how long at once.
const SPENDING_USERS: u64 = 8;
const SPENDING_NS: u64 = SECOND;
/// Who gives so many times as much as before it refused for a while has no allowance: it was away.
const GIVEN_MAX: f64 = 3.0;
/// An opening is seen with the first request of the low load that waits for it, and with the tick that has it: each comes 0.1 s later
/// at the most, and as much again is for the edges of trials.
const OPENING_ERROR_S: f64 = 0.3;

/// An allowance that is given by the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quota {
    /// Successes from one opening to the next, or until all was refused.
    pub granted: f64,
    /// For so long a low load was refused, in seconds.
    pub refused_s: f64,
    /// From one opening to the next, in seconds; `None`: no whole window was seen.
    pub window_s: Option<f64>,
}

/// What the trials so far tell of an allowance.
#[derive(Debug, Clone, Default)]
pub(super) struct QuotaSoFar {
    /// Successes since it opened last.
    served: f64,
    /// Nothing but refusals lately.
    is_shut: bool,
    /// How long a low load has waited for it to open.
    waited_ns: u64,
    /// The longest such wait.
    refused_ns: u64,
    /// When it opened, and what had been granted until then.
    openings: Vec<(u64, f64)>,
}

impl QuotaSoFar {
    pub(super) fn of(history: &[TrialOutcome]) -> QuotaSoFar {
        let mut so_far = QuotaSoFar::default();
        for trial in history {
            so_far.push(trial);
        }
        so_far
    }

    fn push(&mut self, trial: &TrialOutcome) {
        let good = trial.achieved_rps * trial.duration_ns as f64 / 1e9;
        if self.is_shut {
            self.waited_ns += if trial.purpose == Purpose::Settle { trial.duration_ns } else { 0 };
            self.refused_ns = self.refused_ns.max(self.waited_ns);
            if trial.success_rate > 0.0 {
                if self.waited_ns >= SHUT_NS_MIN {
                    self.openings.push((trial.start_ns + trial.duration_ns, self.served));
                    self.served = 0.0;
                }
                (self.is_shut, self.waited_ns) = (false, 0);
                self.served += good;
            }
            return;
        }
        self.served += good;
        let refused = trial.evidence.failed[RequestFailure::Status as usize] as f64;
        let all = trial.success_rate == 0.0
            && refused > 0.0
            && refused >= SHUT_SHARE * trial.evidence.scheduled.saturating_sub(trial.evidence.unanswered) as f64;
        self.is_shut = self.served > 0.0 && (all || !self.openings.is_empty() && refused > 0.0);
        if let [(_, before)] = self.openings[..]
            && !self.is_shut
            && self.served > GIVEN_MAX * before
        {
            *self = QuotaSoFar { served: self.served, ..QuotaSoFar::default() };
        }
    }

    /// The next load that tells more of an allowance; `None` where there seems to be none.
    pub(super) fn next(&self, plans: &Planner) -> Option<Result<Measure, StoppedBy>> {
        if self.is_shut {
            return Some(plans.until_served().ok_or(StoppedBy::Budget));
        }
        match self.openings.len() {
            0 => None,
            1 => {
                let spend = plans.closed(Purpose::Peak, SPENDING_USERS, SPENDING_NS);
                Some(if plans.affords(&spend) { Ok(spend) } else { Err(StoppedBy::Budget) })
            }
            _ => Some(Err(StoppedBy::Width)),
        }
    }

    /// The allowance, where it is certain that there is one.
    pub(super) fn quota(&self) -> Option<Quota> {
        let refused_s = self.refused_ns as f64 / 1e9;
        match self.openings[..] {
            [.., (from_ns, _), (to_ns, granted)] => {
                Some(Quota { granted, refused_s, window_s: Some((to_ns - from_ns) as f64 / 1e9) })
            }
            [(_, granted)] => Some(Quota { granted, refused_s, window_s: None }),
            [] if self.is_shut && self.refused_ns >= SHUT_NS_MIN => {
                Some(Quota { granted: self.served, refused_s, window_s: None })
            }
            [] => None,
        }
    }
}

impl Quota {
    /// Lower end, middle and upper end of the rate that meets the success bound, a second: arrivals of a window are no more than its
    /// allowance but for the share that may fail. Of a window whose end was not seen only the upper end is known.
    pub(super) fn line(&self, slo: &Slo, arrivals: Arrivals) -> (f64, f64, f64) {
        let arrivals_max = match arrivals {
            Arrivals::Poisson => arrivals_of(self.granted, 1.0 - slo.success_min),
            Arrivals::Constant | Arrivals::Replayed => self.granted,
        };
        match self.window_s {
            Some(window_s) => {
                let at = |error_s: f64| arrivals_max / (window_s + error_s).max(1e-3);
                (at(OPENING_ERROR_S), at(0.0), at(-OPENING_ERROR_S).min(2.0 * at(0.0)))
            }
            None => (0.0, 0.0, self.granted / self.refused_s),
        }
    }
}

/// The mean of Poisson arrivals of which the share `allowed` exceeds `granted`, by the normal loss function; at most `granted`.
fn arrivals_of(granted: f64, allowed: f64) -> f64 {
    let exceeding = |mean: f64| {
        let spread = mean.sqrt().max(1e-9);
        let z = (granted - mean) / spread;
        spread * (density(z) - z * upper_tail(z)) / mean
    };
    let (mut low, mut high) = (granted * 1e-3, granted);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if exceeding(middle) <= allowed { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Evidence, Offered, Verdict};
    use plimsoll_model::units::MS;

    /// Purpose, start and length in ms, successes a second, share of successes.
    type Shown = (Purpose, u64, u64, f64, f64);

    fn check(shown: &[Shown], expect: Option<(f64, Option<f64>)>) {
        let trials: Vec<TrialOutcome> = shown
            .iter()
            .map(|&(purpose, start_ms, ms, rps, success_rate)| {
                let mut evidence = Evidence { scheduled: 1000, ..Evidence::default() };
                evidence.failed[RequestFailure::Status as usize] = (1000.0 * (1.0 - success_rate)) as u64;
                TrialOutcome {
                    evidence,
                    start_ns: start_ms * MS,
                    duration_ns: ms * MS,
                    achieved_rps: rps,
                    success_rate,
                    ..TrialOutcome::of_a_second(purpose, Offered::Rate(100.0), Verdict::Fail)
                }
            })
            .collect();
        let quota = QuotaSoFar::of(&trials).quota();
        assert_eq!(quota.map(|it| (it.granted.round(), it.window_s)), expect, "{shown:?}");
    }

    #[test]
    fn an_allowance_is_told_from_an_overload() {
        const SPENT: Shown = (Purpose::Peak, 0, 500, 6000.0, 0.2);
        const SHUT: Shown = (Purpose::Peak, 500, 500, 0.0, 0.0);
        const OPENS: Shown = (Purpose::Settle, 1000, 9000, 0.2, 0.02);
        const SPENT_AGAIN: Shown = (Purpose::Peak, 10_000, 1000, 2998.0, 0.3);
        const OPENS_AGAIN: Shown = (Purpose::Settle, 11_000, 9000, 0.0, 0.02);
        check(&[], None);
        check(&[SPENT], None);
        check(&[SPENT, SHUT], None);
        check(&[SPENT, SHUT, OPENS], Some((3000.0, None)));
        check(&[SPENT, SHUT, (Purpose::Settle, 1000, 9000, 0.0, 0.0)], Some((3000.0, None)));
        check(&[SPENT, SHUT, OPENS, SPENT_AGAIN, OPENS_AGAIN], Some((3000.0, Some(10.0))));
        // It served the next low load at once.
        check(&[SPENT, SHUT, (Purpose::Settle, 1000, 200, 5.0, 1.0)], None);
        // It was away, and then gave whatever was asked.
        check(&[SPENT, SHUT, OPENS, (Purpose::Peak, 10_000, 2000, 6000.0, 1.0)], None);
        // Nothing ever succeeded.
        check(&[SHUT, (Purpose::Settle, 1000, 9000, 0.0, 0.0)], None);
    }

    #[test]
    fn arrivals_leave_room_for_chance() {
        // Of 1 000 on average 1 000 +- 32 come: the share that exceeds 1 000 is 0.4 x 32 / 1 000.
        assert!((arrivals_of(1000.0, 0.0126) / 1000.0 - 1.0).abs() < 0.002);
        assert!((0.93..0.97).contains(&(arrivals_of(1000.0, 0.001) / 1000.0)));
        assert!(arrivals_of(1e6, 0.001) > 0.998e6);
    }
}
