//! The distribution of the load line after the trials of a search: which trials count, and what the
//! SLO allows.
//!
//! Not here: the computation of the distribution from the trials
//! ([`plimsoll_statistics::line_distribution`]).

use super::capacity::is_rejecting_overload;
use crate::judge::{TrialOutcome, Verdict};
use crate::slo::Slo;
use plimsoll_model::LoadPurpose;
use plimsoll_statistics::{ALLOWED_BAD_SHARE_MIN, Capacity, LoadLineDistribution, OpenTrial, ServerModelInputs};

/// With at least this number of undisturbed trials, a disturbed trial (other processes took CPU
/// time) is evidence only if it met the SLO.
const UNDISTURBED_TRIALS_MIN: usize = 3;

/// Estimates the load line from the trials of a search. `arrivals_dispersion` is 1 for random
/// arrivals, 0 for evenly spaced arrivals. `service_s` is the mean service time of a single user,
/// s.
pub(super) fn estimate_load_line(
    history: &[TrialOutcome],
    capacity: Option<&Capacity>,
    slo: &Slo,
    arrivals_dispersion: f64,
    service_s: f64,
) -> LoadLineDistribution {
    let trials = open_trials(history);
    let mut bounds: Vec<(f64, f64)> = Vec::new();
    for allowance in slo.allowances() {
        let bound =
            allowance.request_bound_ns().map(|ns| (ns as f64 / 1e9, allowance.share.max(ALLOWED_BAD_SHARE_MIN)));
        bounds.extend(bound.filter(|bound| !bounds.contains(bound)));
    }
    // A server that rejects requests keeps its queue short. The trials in which the server
    // rejected requests show which latency bounds the queue can exceed.
    let overloads = history.iter().filter(|trial| is_rejecting_overload(trial));
    let slowest_s = overloads.map(|trial| trial.p99_ns as f64 / 1e9).fold(0.0, f64::max);
    bounds.retain(|(bound_s, _)| slowest_s <= 0.0 || *bound_s < slowest_s);
    let failed = slo.allowances().into_iter().filter(|allowance| allowance.bound_ns.is_none());
    let failed_share = failed.map(|allowance| allowance.share.max(ALLOWED_BAD_SHARE_MIN)).fold(1.0, f64::min);
    let rejects = capacity.is_some_and(|capacity| capacity.rejects);
    let inputs = ServerModelInputs {
        trials: &trials,
        arrivals_dispersion,
        service_s,
        rejects,
        bounds,
        failed_share_max: failed_share,
    };
    LoadLineDistribution::new(&inputs, capacity)
}

/// Returns the open-loop trials that count as evidence. With enough undisturbed trials, a disturbed
/// trial (other processes took CPU time) counts only if it met the SLO.
fn open_trials(history: &[TrialOutcome]) -> Vec<OpenTrial> {
    let open = || {
        history.iter().filter(|trial| {
            matches!(trial.purpose, LoadPurpose::Climb | LoadPurpose::Line | LoadPurpose::Confirm)
                && trial.evidence.scheduled > 0
                && !(trial.verdict == Verdict::Void && trial.evidence.is_generator_limited)
        })
    };
    let quiet = open().filter(|trial| !trial.interference.is_disturbed).count();
    open()
        .filter(|trial| {
            quiet < UNDISTURBED_TRIALS_MIN || !trial.interference.is_disturbed || trial.verdict == Verdict::Pass
        })
        .filter_map(|trial| {
            Some(OpenTrial {
                rate_rps: trial.offered_rps().filter(|rate| *rate > 0.0)?,
                duration_s: trial.duration_ns as f64 / 1e9,
                backlog_growth: trial.evidence.backlog_growth_requests,
                in_flight: trial.evidence.in_flight[1].max(0.0),
                bounds: trial.evidence.bounds.clone(),
                is_burst_exhausted: trial.evidence.has_failures_before_window,
            })
        })
        .collect()
}
