//! Servers that reject surplus requests, such as servers with a rate limiter
//! ([`trials_with_rejections`]), and the rate of the limiter ([`limiter_rate_rps`]).
//!
//! Not here: requests that fail at any rate ([`super::constant_failure`]).

use super::capacity::is_rejecting_overload;
use crate::judge::{BACKLOG_GROWTH_SHARE_MAX, TrialOutcome, Verdict};
use plimsoll_model::LoadPurpose;

/// The minimum share of failed requests that shows rejection. A smaller share of failed requests
/// may have another reason, such as idle connections that the server closed.
const REJECTED_SHARE_MIN: f64 = 0.05;
/// A limiter that rejects requests at one rate certainly rejects requests at this multiple of the
/// rate.
const HIGHER_RATE_FACTOR: f64 = 1.05;
/// If more than this share of a load's requests is unanswered, the server queues requests and does
/// not reject them. This limit is applied to the loads that exhaust a rate limiter's saved tokens.
const UNANSWERED_SHARE_MAX: f64 = 0.05;

/// Returns the open trials in which the server rejected surplus requests. A trial with few failures
/// does not count if the server queued requests at a higher rate without any failure.
pub fn trials_with_rejections(history: &[TrialOutcome]) -> impl Iterator<Item = &TrialOutcome> {
    let lets_wait = |t: &TrialOutcome, rate: f64| {
        let waits = match t.purpose {
            LoadPurpose::Settle => t.evidence.unanswered as f64 > UNANSWERED_SHARE_MAX * t.evidence.scheduled as f64,
            _ => t.evidence.backlog_growth_share > BACKLOG_GROWTH_SHARE_MAX,
        };
        let higher = t.offered_rps().is_some_and(|it| it >= HIGHER_RATE_FACTOR * rate);
        higher && t.verdict == Verdict::Fail && waits && t.evidence.failed_count() == 0
    };
    history.iter().filter(move |t| {
        let Some(rate) = t.offered_rps().filter(|_| t.evidence.is_rejecting_surplus) else { return false };
        let many = t.evidence.failed_count() as f64 >= REJECTED_SHARE_MIN * t.evidence.scheduled as f64;
        many || !history.iter().any(|other| lets_wait(other, rate))
    })
}

/// Returns the rate of the server's limiter, 1/s: the median of successes a second over the failed
/// trials with rejections. If no open trial failed with rejections, the closed trials in which the
/// server rejected most requests give the rate. Returns `None` if no trial had rejections.
pub fn limiter_rate_rps(history: &[TrialOutcome]) -> Option<f64> {
    let rejected = trials_with_rejections(history).filter(|t| t.verdict == Verdict::Fail);
    let open: Vec<f64> = rejected.filter_map(|t| t.evidence.saturated_rps).collect();
    let closed = history.iter().filter(|t| is_rejecting_overload(t)).filter_map(|t| t.evidence.saturated_rps);
    let mut rates = if open.is_empty() { closed.collect() } else { open };
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Evidence, OfferedLoad};
    use plimsoll_model::RequestFailure;

    /// Each trial has a purpose, a rate, the numbers of failed and of unanswered requests of 1000,
    /// the backlog's growth, and whether the server rejects.
    type TrialCase = (LoadPurpose, f64, u64, u64, f64, bool);

    #[test]
    fn queueing_at_a_higher_rate_is_not_a_rejection() {
        const MANY_FAILED_TRIAL: TrialCase = (LoadPurpose::Line, 1000.0, 80, 0, 0.0, true);
        const FEW_FAILED_TRIAL: TrialCase = (LoadPurpose::Line, 1000.0, 3, 0, 0.0, true);
        let cases: [(&str, &[TrialCase], usize); 7] = [
            ("a limiter", &[MANY_FAILED_TRIAL, (LoadPurpose::Climb, 2000.0, 500, 0, 0.0, true)], 2),
            ("many, whatever waits above", &[MANY_FAILED_TRIAL, (LoadPurpose::Line, 1100.0, 0, 90, 0.1, false)], 1),
            ("a few above its limit", &[FEW_FAILED_TRIAL], 1),
            (
                "and none at a higher rate, where more wait",
                &[FEW_FAILED_TRIAL, (LoadPurpose::Line, 1100.0, 0, 90, 0.1, false)],
                0,
            ),
            ("and a higher rate that was held", &[FEW_FAILED_TRIAL, (LoadPurpose::Climb, 1100.0, 0, 0, 0.0, false)], 1),
            ("and more wait at the same rate", &[FEW_FAILED_TRIAL, (LoadPurpose::Line, 1000.0, 0, 90, 0.1, false)], 1),
            (
                "and none where a bucket was to be emptied",
                &[FEW_FAILED_TRIAL, (LoadPurpose::Settle, 3000.0, 0, 600, 0.0, false)],
                0,
            ),
        ];
        for (name, trials, expect) in cases {
            let history: Vec<TrialOutcome> = trials.iter().map(trial_outcome).collect();
            assert_eq!(trials_with_rejections(&history).count(), expect, "{name}");
        }
    }

    fn trial_outcome((purpose, rate, failed, unanswered, growth, rejecting): &TrialCase) -> TrialOutcome {
        let mut evidence = Evidence {
            scheduled: 1000,
            unanswered: *unanswered,
            backlog_growth_share: *growth,
            is_rejecting_surplus: *rejecting,
            ..Evidence::default()
        };
        evidence.failed[RequestFailure::Reset as usize] = *failed;
        let verdict = if failed + unanswered > 0 { Verdict::Fail } else { Verdict::Pass };
        TrialOutcome { evidence, ..TrialOutcome::one_second_trial(*purpose, OfferedLoad::Rate(*rate), verdict) }
    }
}
