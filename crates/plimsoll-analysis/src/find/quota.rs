//! Quotas per time window ([`Quota`]), such as 3 000 requests a minute. Once the quota is
//! exhausted, the server rejects every request until the next window, at any load. The capacity of
//! a server with a quota is the quota divided by the window. A trial shorter than the window does
//! not show the capacity of a server with a quota.
//!
//! Not here: limiters that refill continually ([`super::rejection`]), and servers that reject all
//! requests of an overload but serve the next low load at once.

use super::plans::{Planner, trial_time_max_ns};
use super::search_settings::{PlannedTrial, StopReason};
use crate::format;
use crate::judge::TrialOutcome;
use crate::sentence::{Remedy, Sentence};
use crate::slo::Slo;
use plimsoll_model::units::SECOND;
use plimsoll_model::{ArrivalSpacing, LoadPurpose, RequestFailure};
use plimsoll_statistics::normal::{normal_density, upper_tail};

/// A trial without any success shows an exhausted quota if at least this share of its responses are
/// rejections.
const EXHAUSTED_REJECTED_SHARE_MIN: f64 = 0.9;
/// Minimum time, ns, for which a low load is rejected when a quota is exhausted. A server that was
/// only overloaded serves a low load sooner.
const EXHAUSTED_NS_MIN: u64 = SECOND;
/// Number of users of the load that exhausts a quota.
const QUOTA_EXHAUSTION_USERS: u64 = 8;
/// Maximum length of the load that exhausts a quota, ns.
const QUOTA_EXHAUSTION_NS: u64 = SECOND;
/// Once the search has observed the opening of a window, a trial with more than this share of
/// rejections shows an exhausted quota. A smaller share of requests may fail for other reasons.
const EXHAUSTED_AGAIN_SHARE_MIN: f64 = 0.2;
/// The smallest share of requests that may exceed a quota. An SLO that allows no failure is treated
/// as if it allowed one failure in a million requests, because random arrivals sometimes exceed any
/// quota.
const EXCEEDING_SHARE_MIN: f64 = 1e-6;
/// A server that later serves more than this multiple of the first supposed quota has no quota: the
/// server was only unavailable for a time.
const FIRST_QUOTA_FACTOR_MAX: f64 = 3.0;
/// Maximum error of the time at which a window opens, s. The load that waits for the opening sends
/// a request every 0.1 s, its tick is 0.1 s, and edges of trials add 0.1 s.
const WINDOW_OPENING_ERROR_S: f64 = 0.3;
/// The search stops once the length of the quota's window is known to within this relative error.
const WINDOW_ERROR_MAX: f64 = 0.01;

/// A quota: the number of requests that a server grants in each time window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quota {
    /// Mean number of successful requests in a window. If no complete window was observed, the
    /// number of successes until the server rejected all requests.
    pub granted_requests: f64,
    /// The longest time for which the server rejected a low load before the next window opened, s.
    pub rejected_s: f64,
    /// Length of a window: time from one opening to the next, s. `None` means that no complete
    /// window was observed.
    pub window_s: Option<f64>,
    /// Number of complete windows that the search observed.
    pub windows: usize,
    /// An upper bound of the granted rate, 1/s. `None` means that only the first quota was
    /// observed: requests before the search may have used part of this quota.
    pub rps_max: Option<f64>,
}

/// The quota of a server, as far as the trials show it.
#[derive(Debug, Clone, Default)]
pub(super) struct QuotaEstimate {
    /// Number of requests that succeeded since the last opening of a time window.
    served: f64,
    /// Whether the server rejected most requests of the last trial, because the quota was used.
    is_exhausted: bool,
    /// How long a low load has waited for the next window to open, ns.
    waited_ns: u64,
    /// The longest wait for a window to open, ns.
    longest_wait_ns: u64,
    /// Each opening of a window: its time in ns since the start of the search, and the number of
    /// successes since the previous opening.
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
        let good = trial.goodput_rps * trial.duration_ns as f64 / 1e9;
        if self.is_exhausted {
            self.waited_ns += if trial.purpose == LoadPurpose::Settle { trial.duration_ns } else { 0 };
            self.longest_wait_ns = self.longest_wait_ns.max(self.waited_ns);
            if trial.success_rate > 0.0 {
                if self.waited_ns >= EXHAUSTED_NS_MIN {
                    self.openings.push((trial.start_ns.saturating_add(trial.duration_ns), self.served));
                    self.served = 0.0;
                }
                (self.is_exhausted, self.waited_ns) = (false, 0);
                self.served += good;
            }
            return;
        }
        self.served += good;
        let refused = trial.evidence.failed[RequestFailure::Status as usize] as f64;
        let answered = trial.evidence.scheduled.saturating_sub(trial.evidence.unanswered) as f64;
        let all = trial.success_rate == 0.0 && refused > 0.0 && refused >= EXHAUSTED_REJECTED_SHARE_MIN * answered;
        self.is_exhausted =
            self.served > 0.0 && (all || !self.openings.is_empty() && refused > EXHAUSTED_AGAIN_SHARE_MIN * answered);
        if let [(_, before)] = self.openings[..]
            && !self.is_exhausted
            && self.served > FIRST_QUOTA_FACTOR_MAX * before
        {
            *self = QuotaEstimate { served: self.served, ..QuotaEstimate::default() };
        }
    }

    /// Returns the next trial that measures the server's quota, or the reason to stop. Returns
    /// `None` if the trials show no quota.
    pub(super) fn next_trial(&self, plans: &Planner) -> Option<Result<PlannedTrial, StopReason>> {
        if self.is_exhausted {
            return Some(plans.low_load_until_success().ok_or(StopReason::Budget));
        }
        match self.openings.len() {
            0 => None,
            1 => {
                let spend = plans.closed_loop_trial(LoadPurpose::Peak, QUOTA_EXHAUSTION_USERS, QUOTA_EXHAUSTION_NS);
                Some(if plans.fits_in_budget(&spend) { Ok(spend) } else { Err(StopReason::Budget) })
            }
            _ if self.is_window_length_known() => Some(Err(StopReason::PrecisionReached)),
            _ => {
                // The next load exhausts the quota again, because another observed window makes the
                // mean length of a window more exact.
                let spend = plans.closed_loop_trial(LoadPurpose::Peak, QUOTA_EXHAUSTION_USERS, QUOTA_EXHAUSTION_NS);
                let window_ns = (self.window_s().unwrap_or(0.0) * 1e9) as u64;
                let takes_ns = trial_time_max_ns(&spend.plan).saturating_add(window_ns);
                Some(if plans.budget_left_ns() > takes_ns { Ok(spend) } else { Err(StopReason::Budget) })
            }
        }
    }

    /// Returns the mean time from one opening to the next, s; `None` before the second opening.
    fn window_s(&self) -> Option<f64> {
        let ((first_ns, _), (last_ns, _)) = (self.openings.first()?, self.openings.last()?);
        (last_ns > first_ns).then(|| (last_ns - first_ns) as f64 / 1e9 / (self.openings.len() - 1) as f64)
    }

    /// Returns whether the relative error of the window's length is at most 1 %.
    fn is_window_length_known(&self) -> bool {
        let windows = self.openings.len().saturating_sub(1) as f64;
        self.window_s().is_some_and(|window_s| WINDOW_OPENING_ERROR_S <= WINDOW_ERROR_MAX * window_s * windows)
    }

    /// Returns the quota that the trials show; `None` without a quota. The length of the quota's
    /// window is known after two openings.
    pub(super) fn observed_quota(&self) -> Option<Quota> {
        let rejected_s = self.longest_wait_ns as f64 / 1e9;
        let unseen = |granted_requests, rps_max| {
            Some(Quota { granted_requests, rejected_s, window_s: None, windows: 0, rps_max })
        };
        let whole = self.openings.get(1..).unwrap_or_default();
        if let Some(window_s) = self.window_s() {
            let windows = whole.len();
            let granted_requests = whole.iter().map(|it| it.1).sum::<f64>() / windows as f64;
            let rps_max = Some(granted_requests / window_s);
            return Some(Quota { granted_requests, rejected_s, window_s: Some(window_s), windows, rps_max });
        }
        match self.openings[..] {
            // The quota was exhausted, and no window opened while the search waited.
            [_] if self.is_exhausted && self.waited_ns >= EXHAUSTED_NS_MIN => {
                unseen(self.served, Some(self.served / (self.waited_ns as f64 / 1e9)))
            }
            [.., (_, granted)] => unseen(granted, None),
            [] if self.is_exhausted && self.longest_wait_ns >= EXHAUSTED_NS_MIN => unseen(self.served, None),
            [] => None,
        }
    }
}

impl Quota {
    /// Returns a sentence about the quota and its consequence for the load line.
    pub(super) fn consequence_sentence(&self) -> Sentence {
        let granted = format::count(self.granted_requests.round() as u64);
        match self.window_s {
            Some(window_s) => Sentence::from(format!(
                "The server allows {granted} requests in each time window of {window} and refuses all further \
                 requests: the load line equals this quota.",
                window = format::duration((window_s * 10.0).round() * 1e8)
            )),
            None => Sentence::from(format!(
                "The server refused all requests for {refused_time} after {granted} requests. A quota per time \
                 window may be the reason, but the search observed no whole window. Give the search more \
                 time to observe a whole window (",
                refused_time = format::duration(self.rejected_s * 1e9)
            ))
            .remedy(Remedy::Budget)
            .words(")."),
        }
    }

    /// Returns the lower end, the middle and the upper end of the load line, 1/s. Arrivals beyond
    /// the quota of a window fail. At the load line, the share of arrivals beyond the quota equals
    /// the share of requests that may fail under the SLO. Returns `None` if no complete window was
    /// observed.
    pub(super) fn load_line_interval(&self, slo: &Slo, arrivals: ArrivalSpacing) -> Option<(f64, f64, f64)> {
        let arrivals_max = match arrivals {
            ArrivalSpacing::Poisson => {
                arrivals_mean_within_quota(self.granted_requests, (1.0 - slo.success_min).max(EXCEEDING_SHARE_MIN))
            }
            ArrivalSpacing::Constant | ArrivalSpacing::Replayed => self.granted_requests,
        };
        let window_s = self.window_s?;
        // Every observed window takes at least [`EXHAUSTED_NS_MIN`], so the minimum of the divisor
        // only prevents a division by zero.
        let error_s = WINDOW_OPENING_ERROR_S / self.windows.max(1) as f64;
        let at = |error_s: f64| arrivals_max / (window_s + error_s).max(WINDOW_OPENING_ERROR_S);
        Some((at(error_s), at(0.0), at(-error_s)))
    }
}

/// Returns the mean number of Poisson arrivals in a window for which the share `allowed` of the
/// arrivals is beyond the quota `granted`. The mean follows from the loss function of the normal
/// distribution, and is at most `granted`.
fn arrivals_mean_within_quota(granted: f64, allowed: f64) -> f64 {
    let exceeding = |mean: f64| {
        let spread = mean.sqrt().max(1e-9);
        let z = (granted - mean) / spread;
        spread * (normal_density(z) - z * upper_tail(z)) / mean
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

    /// Each trial has a purpose, start in ms, length in ms, successes a second, and success rate.
    type TrialRow = (LoadPurpose, u64, u64, f64, f64);

    fn check(rows: &[TrialRow], expect: Option<(f64, Option<f64>)>) {
        let trials: Vec<TrialOutcome> = rows
            .iter()
            .map(|&(purpose, start_ms, ms, goodput_rps, success_rate)| {
                let mut evidence = Evidence { scheduled: 1000, ..Evidence::default() };
                evidence.failed[RequestFailure::Status as usize] = (1000.0 * (1.0 - success_rate)) as u64;
                TrialOutcome {
                    evidence,
                    start_ns: start_ms * MS,
                    duration_ns: ms * MS,
                    goodput_rps,
                    success_rate,
                    ..TrialOutcome::one_second_trial(purpose, OfferedLoad::Rate(100.0), Verdict::Fail)
                }
            })
            .collect();
        let quota = QuotaEstimate::from_history(&trials).observed_quota();
        assert_eq!(quota.map(|it| (it.granted_requests.round(), it.window_s)), expect, "{rows:?}");
    }

    #[test]
    fn quota_is_distinct_from_overload() {
        const QUOTA_SPENT: TrialRow = (LoadPurpose::Peak, 0, 500, 6000.0, 0.2);
        const QUOTA_STILL_SPENT: TrialRow = (LoadPurpose::Peak, 500, 500, 0.0, 0.0);
        const QUOTA_REOPENS: TrialRow = (LoadPurpose::Settle, 1000, 9000, 0.2, 0.02);
        const SPENT_AGAIN: TrialRow = (LoadPurpose::Peak, 10_000, 1000, 2998.0, 0.3);
        const OPENS_AGAIN: TrialRow = (LoadPurpose::Settle, 11_000, 9000, 0.0, 0.02);
        check(&[], None);
        check(&[QUOTA_SPENT], None);
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT], None);
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT, QUOTA_REOPENS], Some((3000.0, None)));
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT, (LoadPurpose::Settle, 1000, 9000, 0.0, 0.0)], Some((3000.0, None)));
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT, QUOTA_REOPENS, SPENT_AGAIN, OPENS_AGAIN], Some((3000.0, Some(10.0))));
        // No quota is reported, because the server was only overloaded, and served the next low
        // load at once.
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT, (LoadPurpose::Settle, 1000, 200, 5.0, 1.0)], None);
        // No quota is reported, because the server was only unavailable for a time, and later
        // served every request.
        check(&[QUOTA_SPENT, QUOTA_STILL_SPENT, QUOTA_REOPENS, (LoadPurpose::Peak, 10_000, 2000, 6000.0, 1.0)], None);
        // No quota is reported, because no request ever succeeded.
        check(&[QUOTA_STILL_SPENT, (LoadPurpose::Settle, 1000, 9000, 0.0, 0.0)], None);
    }

    #[test]
    fn random_arrivals_stay_below_quota() {
        // With a mean of 1 000, the number of Poisson arrivals is 1 000 +- 32. On average 0.4 x 32
        // of 1 000 arrivals are beyond a quota of 1 000.
        assert!((arrivals_mean_within_quota(1000.0, 0.0126) / 1000.0 - 1.0).abs() < 0.002);
        assert!((0.93..0.97).contains(&(arrivals_mean_within_quota(1000.0, 0.001) / 1000.0)));
        assert!(arrivals_mean_within_quota(1e6, 0.001) > 0.998e6);
    }
}
