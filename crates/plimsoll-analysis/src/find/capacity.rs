//! The trials of a search in which the server was saturated, and the capacity that they show.
//!
//! Not here: how the capacity is estimated ([`plimsoll_statistics::Capacity`]).

use super::search_settings::is_void_by_generator;
use crate::judge::TrialOutcome;
use plimsoll_model::LoadPurpose;
use plimsoll_statistics::{Capacity, SaturatedTrial, Saturation};

/// A closed-loop load counts as an overload of a rejecting server if the server rejects at least
/// this share of all requests. If the server rejects a smaller share, the load may be below the
/// capacity, because random arrivals come in bursts.
const OVERLOAD_REJECTED_SHARE_MIN: f64 = 0.3;

/// Estimates the capacity from the saturated trials of a search; `None` without a valid saturated
/// trial. `service_s` is the mean service time of a single user, s.
pub(super) fn estimate_capacity(history: &[TrialOutcome], service_s: f64) -> Option<Capacity> {
    let trials: Vec<SaturatedTrial> = history.iter().filter_map(saturated_trial).collect();
    let rejects = history.iter().any(|trial| {
        is_rejecting_overload(trial) || trial.purpose == LoadPurpose::Saturate && trial.evidence.is_rejecting_surplus
    });
    Capacity::from_trials(&trials, service_s, rejects)
}

/// Returns the completions and the length of a trial in which the server was saturated. Returns
/// `None` if the server was not saturated, or if the generator was the limit and the server
/// rejected few requests.
fn saturated_trial(trial: &TrialOutcome) -> Option<SaturatedTrial> {
    let saturation = match trial.purpose {
        _ if is_rejecting_overload(trial) => {
            let (rps, seconds) = (trial.evidence.saturated_rps?, trial.duration_ns as f64 / 1e9);
            let completed = rps * seconds;
            let unknown = Saturation { completed, seconds, dispersion: 1.0, pieces: 1.0 };
            (completed > 0.0).then_some(trial.evidence.saturation.unwrap_or(unknown))
        }
        LoadPurpose::Saturate if !is_capacity_hidden_by_generator(trial) => trial.evidence.saturation,
        _ => None,
    };
    Some(SaturatedTrial { saturation: saturation?, is_disturbed: trial.interference.is_disturbed })
}

/// Returns the throughput of each saturated trial, 1/s, and the length of the trial, s.
pub(super) fn saturated_rates(history: &[TrialOutcome]) -> impl Iterator<Item = (f64, f64)> {
    history
        .iter()
        .filter_map(saturated_trial)
        .map(|it| (it.saturation.completed / it.saturation.seconds, it.saturation.seconds))
}

/// Returns whether the server rejected a large share of a closed-loop load. The goodput of a load
/// with many rejections is the server's capacity, although no request waits. Even if the generator
/// is at its limit, the goodput of a rejecting server is the capacity, because a rejection takes no
/// time.
pub(super) fn is_rejecting_overload(trial: &TrialOutcome) -> bool {
    let closed = matches!(trial.purpose, LoadPurpose::Peak | LoadPurpose::Saturate);
    closed && trial.evidence.is_rejecting_surplus && trial.success_rate < 1.0 - OVERLOAD_REJECTED_SHARE_MIN
}

/// Returns whether the limit of the generator hides the server's capacity. If the server rejects a
/// large share of the requests, the generator's limit does not hide the capacity.
pub(super) fn is_capacity_hidden_by_generator(trial: &TrialOutcome) -> bool {
    is_void_by_generator(trial) && !is_rejecting_overload(trial)
}
