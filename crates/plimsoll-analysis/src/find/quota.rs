//! Allowances by the clock ([`Quota`]), such as 3 000 requests a minute. A used-up allowance means
//! that every request is refused until the clock gives a new one, at any load. The capacity of such
//! a server is an allowance over its window, and no trial shorter than the window shows it.
//!
//! Not here: limiters that refill all the time ([`super::rejecting`]); servers that refuse all of
//! an overload and serve the next low load at once.

use super::normal::{density, upper_tail};
use super::plans::{Planner, cost_ns};
use super::terms::{Measure, StopReason};
use crate::format;
use crate::judge::TrialOutcome;
use crate::sentence::{Remedy, Sentence};
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
/// After an opening a trial shows that an allowance is used up where this share of it was refused:
/// a few may fail by themselves.
const SPENT_SHARE: f64 = 0.2;
/// An SLO without any failure counts as one in a million, since chance exceeds any allowance at
/// times.
const EXCEEDING_MIN: f64 = 1e-6;
/// Largest factor of throughput after a refusal for which an allowance is plausible; above it the
/// server was unavailable.
const GIVEN_MAX: f64 = 3.0;
/// Error of a window's opening time, s: the low load and the tick detect it up to 0.1 s late each,
/// and 0.1 s are for the edges of trials.
const OPENING_ERROR_S: f64 = 0.3;
/// The search ends where the length of a window is known to this share.
const KNOWN: f64 = 0.01;

/// An allowance that is given by the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quota {
    /// Successes from one opening to the next, or until all was refused.
    pub granted: f64,
    /// For so long a low load was refused, in seconds.
    pub refused_s: f64,
    /// From one opening to the next, in seconds; `None`: no whole window was seen.
    pub window_s: Option<f64>,
    /// Whole windows that were seen.
    pub windows: usize,
    /// An upper bound of the allowance a second. `None`: no window has opened yet, and the first
    /// allowance may have been used in part before the search.
    pub rps_max: Option<f64>,
}

/// The allowance that the trials so far show.
#[derive(Debug, Clone, Default)]
pub(super) struct QuotaEstimate {
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

impl QuotaEstimate {
    pub(super) fn from_history(history: &[TrialOutcome]) -> QuotaEstimate {
        let mut so_far = QuotaEstimate::default();
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
                    self.openings.push((trial.start_ns.saturating_add(trial.duration_ns), self.served));
                    self.served = 0.0;
                }
                (self.is_shut, self.waited_ns) = (false, 0);
                self.served += good;
            }
            return;
        }
        self.served += good;
        let refused = trial.evidence.failed[RequestFailure::Status as usize] as f64;
        let answered = trial.evidence.scheduled.saturating_sub(trial.evidence.unanswered) as f64;
        let all = trial.success_rate == 0.0 && refused > 0.0 && refused >= SHUT_SHARE * answered;
        self.is_shut = self.served > 0.0 && (all || !self.openings.is_empty() && refused > SPENT_SHARE * answered);
        if let [(_, before)] = self.openings[..]
            && !self.is_shut
            && self.served > GIVEN_MAX * before
        {
            *self = QuotaEstimate { served: self.served, ..QuotaEstimate::default() };
        }
    }

    /// The next load that tells more of an allowance; `None` where there seems to be none.
    pub(super) fn next(&self, plans: &Planner) -> Option<Result<Measure, StopReason>> {
        if self.is_shut {
            return Some(plans.until_served().ok_or(StopReason::Budget));
        }
        match self.openings.len() {
            0 => None,
            1 => {
                let spend = plans.closed(Purpose::Peak, SPENDING_USERS, SPENDING_NS);
                Some(if plans.affords(&spend) { Ok(spend) } else { Err(StopReason::Budget) })
            }
            _ if self.is_known() => Some(Err(StopReason::Width)),
            _ => {
                // Another window tells the length of all of them more closely.
                let spend = plans.closed(Purpose::Peak, SPENDING_USERS, SPENDING_NS);
                let window_ns = (self.window_s().unwrap_or(0.0) * 1e9) as u64;
                let takes_ns = cost_ns(&spend.plan).saturating_add(window_ns);
                Some(if plans.left_ns() > takes_ns { Ok(spend) } else { Err(StopReason::Budget) })
            }
        }
    }

    /// Mean time from one opening to the next, s; `None` before the second.
    fn window_s(&self) -> Option<f64> {
        let ((first_ns, _), (last_ns, _)) = (self.openings.first()?, self.openings.last()?);
        (last_ns > first_ns).then(|| (last_ns - first_ns) as f64 / 1e9 / (self.openings.len() - 1) as f64)
    }

    /// Whether the length of a window is known closely enough.
    fn is_known(&self) -> bool {
        let windows = self.openings.len().saturating_sub(1) as f64;
        self.window_s().is_some_and(|window_s| OPENING_ERROR_S <= KNOWN * window_s * windows)
    }

    /// The allowance that the trials show; the length of its window is known after two openings.
    pub(super) fn quota(&self) -> Option<Quota> {
        let refused_s = self.refused_ns as f64 / 1e9;
        let unseen = |granted, rps_max| Some(Quota { granted, refused_s, window_s: None, windows: 0, rps_max });
        let whole = self.openings.get(1..).unwrap_or_default();
        if let Some(window_s) = self.window_s() {
            let windows = whole.len();
            let granted = whole.iter().map(|it| it.1).sum::<f64>() / windows as f64;
            let rps_max = Some(granted / window_s);
            return Some(Quota { granted, refused_s, window_s: Some(window_s), windows, rps_max });
        }
        match self.openings[..] {
            // This allowance was used up, and no new one came for as long as the search waited.
            [_] if self.is_shut && self.waited_ns >= SHUT_NS_MIN => {
                unseen(self.served, Some(self.served / (self.waited_ns as f64 / 1e9)))
            }
            [.., (_, granted)] => unseen(granted, None),
            [] if self.is_shut && self.refused_ns >= SHUT_NS_MIN => unseen(self.served, None),
            [] => None,
        }
    }
}

impl Quota {
    /// The allowance in words, and its consequence.
    pub(super) fn sentence(&self) -> Sentence {
        let granted = format::count(self.granted.round() as u64);
        match self.window_s {
            Some(window_s) => Sentence::from(format!(
                "The server allows {granted} requests in {} and refuses the rest: the line is this quota.",
                format::duration((window_s * 10.0).round() * 1e8)
            )),
            None => Sentence::from(format!(
                "The server refused all requests for {} after {granted} requests, as with a quota per time \
                 window. The search saw no whole window. A larger ",
                format::duration(self.refused_s * 1e9)
            ))
            .remedy(Remedy::Budget)
            .words(" shows one."),
        }
    }

    /// Lower end, middle and upper end of the rate that meets the success bound, a second: arrivals
    /// of a window are no more than its allowance but for the share that may fail. `None` of a
    /// window whose end was not seen.
    pub(super) fn line(&self, slo: &Slo, arrivals: Arrivals) -> Option<(f64, f64, f64)> {
        let arrivals_max = match arrivals {
            Arrivals::Poisson => arrivals_of(self.granted, (1.0 - slo.success_min).max(EXCEEDING_MIN)),
            Arrivals::Constant | Arrivals::Replayed => self.granted,
        };
        let window_s = self.window_s?;
        // A window is at least as long as a wait that counts.
        let error_s = OPENING_ERROR_S / self.windows.max(1) as f64;
        let at = |error_s: f64| arrivals_max / (window_s + error_s).max(OPENING_ERROR_S);
        Some((at(error_s), at(0.0), at(-error_s)))
    }
}

/// The mean of Poisson arrivals of which the share `allowed` exceeds `granted`, by the normal loss
/// function; at most `granted`.
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
    use crate::judge::{Evidence, OfferedLoad, Verdict};
    use plimsoll_model::units::MS;

    /// Purpose, start and length in ms, successes a second, share of successes.
    type TrialRow = (Purpose, u64, u64, f64, f64);

    fn check(rows: &[TrialRow], expect: Option<(f64, Option<f64>)>) {
        let trials: Vec<TrialOutcome> = rows
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
                    ..TrialOutcome::of_a_second(purpose, OfferedLoad::Rate(100.0), Verdict::Fail)
                }
            })
            .collect();
        let quota = QuotaEstimate::from_history(&trials).quota();
        assert_eq!(quota.map(|it| (it.granted.round(), it.window_s)), expect, "{rows:?}");
    }

    #[test]
    fn an_allowance_is_told_from_an_overload() {
        const SPENT: TrialRow = (Purpose::Peak, 0, 500, 6000.0, 0.2);
        const SHUT: TrialRow = (Purpose::Peak, 500, 500, 0.0, 0.0);
        const OPENS: TrialRow = (Purpose::Settle, 1000, 9000, 0.2, 0.02);
        const SPENT_AGAIN: TrialRow = (Purpose::Peak, 10_000, 1000, 2998.0, 0.3);
        const OPENS_AGAIN: TrialRow = (Purpose::Settle, 11_000, 9000, 0.0, 0.02);
        check(&[], None);
        check(&[SPENT], None);
        check(&[SPENT, SHUT], None);
        check(&[SPENT, SHUT, OPENS], Some((3000.0, None)));
        check(&[SPENT, SHUT, (Purpose::Settle, 1000, 9000, 0.0, 0.0)], Some((3000.0, None)));
        check(&[SPENT, SHUT, OPENS, SPENT_AGAIN, OPENS_AGAIN], Some((3000.0, Some(10.0))));
        // It served the next low load at once.
        check(&[SPENT, SHUT, (Purpose::Settle, 1000, 200, 5.0, 1.0)], None);
        // The server was unavailable, and then served every request.
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
