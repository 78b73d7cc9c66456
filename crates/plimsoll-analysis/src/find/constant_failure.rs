//! Requests that fail or are late at any load ([`ConstantFailure`]). Examples: a server that never
//! answers one request in two hundred, or a server that first calls a dead dependency for one
//! request in sixteen. If the SLO allows fewer failed or late requests, no rate meets the SLO, and
//! load is not the reason.
//!
//! Not here: servers whose share of failed or late requests grows with the load, such as limiters
//! and queues.

use crate::format;
use crate::judge::{BACKLOG_GROWTH_SHARE_MAX, TrialOutcome, Verdict};
use crate::slo::{LatencyBound, Slo};
use plimsoll_model::LoadPurpose;

/// The minimum number of failures in the lowest loads together. Fewer failures give no estimate of
/// the share of requests that fail.
const FAILED_MIN: f64 = 5.0;
/// The maximum share of failures. A server with a larger share of failures does not work at all. A
/// limiter that rejects at most this share of a load rejects at least three times the share at
/// twice the load.
const CONSTANT_FAILURE_SHARE_MAX: f64 = 0.2;
/// A failure counts as constant only if it occurs at different loads. The highest rate with the
/// failure must be at least this multiple of the lowest rate with the failure.
const DIFFERENT_RATE_FACTOR: f64 = 2.0;
/// A load has the constant failure if its share of failures is at most this multiple of the share
/// at low loads.
const SAME_SHARE_FACTOR_MAX: f64 = 2.0;
/// The failures depend on the load if at least this number of failures was expected at the lowest
/// loads, but no request failed.
const MISSING_FAILURES_MAX: f64 = 4.0;
/// Failures may exceed their expected number by this number of standard deviations and still count
/// as chance (one-sided 1 %).
const CHANCE_DEVIATIONS: f64 = 2.33;

/// Requests that fail or are late at low loads as often as at high loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstantFailure {
    /// How the constant failure breaks the SLO: requests fail, or requests are late.
    pub kind: SloBreakKind,
    /// The share of the requests that fail or are late, 0..1.
    pub share: f64,
    /// The lowest rate at which requests failed or were late, 1/s.
    pub from_rps: f64,
    /// The highest rate at which about an equal share of the requests failed or was late, 1/s.
    pub to_rps: f64,
}

/// The way in which requests break an SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SloBreakKind {
    /// The requests get no response, or no successful response.
    Failed,
    /// The responses exceed this latency bound.
    Late(LatencyBound),
}

impl ConstantFailure {
    /// Finds the constant failure in the open-loop trials of a search. Returns `None` if too few
    /// requests fail or are late, or if the share of such requests grows with the load.
    pub fn detect(slo: &Slo, history: &[TrialOutcome]) -> Option<ConstantFailure> {
        let of = |how, allowed: f64| {
            ConstantFailure::from_loads(
                how,
                allowed,
                history.iter().filter_map(|trial| LoadFailures::from_trial(trial, how)).collect(),
            )
        };
        let late = |bound: &LatencyBound| of(SloBreakKind::Late(*bound), 1.0 - bound.quantile);
        of(SloBreakKind::Failed, 1.0 - slo.success_min).or_else(|| slo.response_bounds().find_map(late))
    }

    /// Formats the failure in a few words:
    /// `0.5 % of the requests fail at any load (both at 250 a second and at 4 000 a second)`.
    pub fn failure_text(&self) -> String {
        let (lower_rate, higher_rate) = (format::rate(self.from_rps), format::rate(self.to_rps));
        let share = format::short_percent(format::round_to_digits(self.share, 2));
        let fail_or_are_late = match self.kind {
            SloBreakKind::Failed => "fail".to_owned(),
            SloBreakKind::Late(bound) => format!("take longer than {}", format::duration(bound.bound_ns as f64)),
        };
        format!(
            "{share} of the requests {fail_or_are_late} at any load (both at {lower_rate} a second and at \
             {higher_rate} a second)"
        )
    }

    /// Finds the constant failure in these loads. `allowed` is the share of the requests that may
    /// fail or be late under the SLO, 0..=1.
    fn from_loads(how: SloBreakKind, allowed: f64, mut loads: Vec<LoadFailures>) -> Option<ConstantFailure> {
        loads.sort_by(|a, b| a.rps.total_cmp(&b.rps));
        let first = loads.iter().position(|load| load.failed > 0.0)?;
        let (spared, loads) = loads.split_at(first);
        let from_rps = loads[0].rps;
        // Collects the lowest loads that together have enough failures.
        let (mut low, mut failed) = (0.0, 0.0);
        let sure =
            |low: f64, failed: f64| failed >= FAILED_MIN && failed - CHANCE_DEVIATIONS * failed.sqrt() > allowed * low;
        for (at, load) in loads.iter().enumerate() {
            if sure(low, failed) && load.rps > loads[at - 1].rps {
                break;
            }
            (low, failed) = (low + load.requests, failed + load.failed);
        }
        let share = failed / low;
        // The failure counts as constant only if the lowest loads, in which no request failed, had
        // too few requests to expect failures.
        let any = spared.iter().map(|load| load.requests * share).sum::<f64>() < MISSING_FAILURES_MAX;
        if !sure(low, failed) || share > CONSTANT_FAILURE_SHARE_MAX || !any {
            return None;
        }
        let alike = |load: &&LoadFailures| {
            let at_most = SAME_SHARE_FACTOR_MAX * share * load.requests;
            load.failed > 0.0 && load.failed <= at_most + CHANCE_DEVIATIONS * at_most.sqrt()
        };
        let to_rps = loads.iter().filter(alike).map(|load| load.rps).fold(0.0, f64::max);
        (to_rps >= DIFFERENT_RATE_FACTOR * from_rps).then_some(ConstantFailure { kind: how, share, from_rps, to_rps })
    }
}

/// The rate of a load, its requests, and its failed or late requests.
#[derive(Debug, Clone, Copy)]
struct LoadFailures {
    rps: f64,
    requests: f64,
    failed: f64,
}

impl LoadFailures {
    /// Counts the failures of a trial. Returns `None` for a load without information: a
    /// request was not sent, other processes disturbed the load, or the backlog grew.
    fn from_trial(trial: &TrialOutcome, how: SloBreakKind) -> Option<LoadFailures> {
        let (rps, evidence) = (trial.offered_rps()?, &trial.evidence);
        let counts = trial.purpose != LoadPurpose::Settle && trial.verdict != Verdict::Void && evidence.scheduled > 0;
        let scheduled = evidence.scheduled as f64;
        let (requests, failed) = match how {
            SloBreakKind::Failed => {
                // In a load that was stopped early, unanswered requests may still be in time, so
                // they do not count as failed.
                let unanswered = if trial.is_stopped_early { 0 } else { evidence.unanswered };
                (scheduled, evidence.failed_count() as f64 + unanswered as f64)
            }
            SloBreakKind::Late(bound) => {
                // Requests at the end of a load that was stopped early cannot be late yet, so they
                // do not count.
                let to_come =
                    if trial.is_stopped_early { bound.bound_ns as f64 / trial.duration_ns.max(1) as f64 } else { 0.0 };
                let of_bound = evidence.worst_bound_ns == Some(bound.bound_ns);
                (scheduled * (1.0 - to_come), if of_bound { evidence.worst_bound_bad_requests as f64 } else { 0.0 })
            }
        };
        // Unanswered and late requests are part of the backlog, so the allowed growth of the
        // backlog increases with the number of these requests.
        let keeps_up =
            evidence.backlog_growth_share <= BACKLOG_GROWTH_SHARE_MAX + SAME_SHARE_FACTOR_MAX * failed / requests;
        (counts && requests > 0.0 && keeps_up && evidence.unsent == 0).then_some(LoadFailures { rps, requests, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::OfferedLoad;
    use plimsoll_model::TimeMeasure;

    #[test]
    fn constant_failure_is_distinct_from_a_limiter() {
        // Each load contains (rate, requests, failed requests).
        type Loads = &'static [(f64, f64, f64)];
        const CONSTANT_SHARE_FAILED: Loads =
            &[(250.0, 500.0, 0.0), (500.0, 2000.0, 11.0), (1000.0, 4000.0, 19.0), (4000.0, 9e3, 50.0)];
        const LOW_LOAD_SPARED: Loads =
            &[(250.0, 9000.0, 0.0), (500.0, 2000.0, 11.0), (1000.0, 4000.0, 19.0), (4000.0, 9e3, 50.0)];
        const EXCESS_OVER_LIMIT_FAILED: Loads =
            &[(500.0, 2000.0, 0.0), (1010.0, 5050.0, 50.0), (1100.0, 5500.0, 500.0), (2000.0, 2000.0, 1000.0)];
        const LOWEST_REFUSED: Loads = &[(110.0, 550.0, 50.0), (220.0, 1100.0, 600.0), (440.0, 2200.0, 1700.0)];
        const ONE_LOAD: Loads = &[(500.0, 2000.0, 11.0), (510.0, 2000.0, 9.0)];
        const FEW_FAILED: Loads = &[(500.0, 2000.0, 2.0), (4000.0, 2000.0, 2.0)];
        const NEARLY_ALL_FAILED: Loads = &[(500.0, 2000.0, 1900.0), (4000.0, 2000.0, 1900.0)];
        for (name, allowed, loads, expect) in [
            ("one in two hundred", 0.001, CONSTANT_SHARE_FAILED, Some((500.0, 4000.0))),
            ("as many as may", 0.01, CONSTANT_SHARE_FAILED, None),
            ("not at a low load", 0.001, LOW_LOAD_SPARED, None),
            ("a limiter", 0.001, EXCESS_OVER_LIMIT_FAILED, None),
            ("a limiter, whose rate was never tried", 0.001, LOWEST_REFUSED, None),
            ("one load", 0.001, ONE_LOAD, None),
            ("too few to tell", 0.0, FEW_FAILED, None),
            ("nearly all", 0.001, NEARLY_ALL_FAILED, None),
            ("nothing was tried", 0.001, &[], None),
        ] {
            let loads = loads.iter().map(|&(rps, requests, failed)| LoadFailures { rps, requests, failed }).collect();
            let seen = ConstantFailure::from_loads(SloBreakKind::Failed, allowed, loads)
                .map(|failing| (failing.from_rps, failing.to_rps));
            assert_eq!(seen, expect, "{name}");
        }
    }

    #[test]
    fn constant_lateness_ignores_unfinished_requests() {
        let bound = LatencyBound { measure: TimeMeasure::response_time(), quantile: 0.99, bound_ns: 500_000_000 };
        let slo = Slo { success_min: 0.999, latency: vec![bound], by_route: Vec::new() };
        // Each load contains (rate, seconds, whether it was stopped early, late requests, growth).
        type Loads = &'static [(f64, f64, bool, u64, f64)];
        const ONE_OF_16: Loads = &[
            (24.0, 1.0, false, 0, 0.0),
            (48.0, 2.0, false, 6, 0.02),
            (90.0, 1.0, true, 3, 0.06),
            (370.0, 1.0, true, 12, 0.06),
        ];
        const ALMOST_NONE: Loads =
            &[(48.0, 2.0, false, 0, 0.0), (370.0, 1.0, false, 3, 0.0), (800.0, 1.0, false, 8, 0.0)];
        const LOW_LOAD_SPARED: Loads =
            &[(24.0, 4.0, false, 0, 0.0), (48.0, 2.0, false, 6, 0.02), (370.0, 1.0, true, 12, 0.06)];
        const GROWING_QUEUE_LOADS: Loads =
            &[(50.0, 4.0, false, 8, 0.0), (75.0, 1.0, true, 4, 0.3), (100.0, 1.0, true, 5, 0.5)];
        for (name, loads, expect) in [
            ("one of 16, of which a load of 24 had none", ONE_OF_16, Some((48.0, 370.0))),
            ("as many as may", ALMOST_NONE, None),
            ("none where there should have been", LOW_LOAD_SPARED, None),
            ("a queue that grows", GROWING_QUEUE_LOADS, None),
        ] {
            let history: Vec<TrialOutcome> = loads
                .iter()
                .map(|&(rps, seconds, stopped, bad, growth)| {
                    let mut trial =
                        TrialOutcome::one_second_trial(LoadPurpose::Climb, OfferedLoad::Rate(rps), Verdict::Fail);
                    (trial.is_stopped_early, trial.duration_ns) = (stopped, (seconds * 1e9) as u64);
                    trial.evidence.scheduled = (rps * seconds) as u64;
                    (trial.evidence.worst_bound_bad_requests, trial.evidence.worst_bound_ns) =
                        (bad, Some(bound.bound_ns));
                    trial.evidence.backlog_growth_share = growth;
                    trial
                })
                .collect();
            let seen = ConstantFailure::detect(&slo, &history);
            assert_eq!(seen.map(|failing| (failing.from_rps, failing.to_rps)), expect, "{name}");
            assert!(
                seen.is_none_or(|failing| failing.failure_text().contains("take longer than 500 ms at any load")),
                "{name}"
            );
        }
    }
}
