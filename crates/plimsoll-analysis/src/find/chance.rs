//! Decides whether a trial broke the SLO by more than chance would, at a rate that meets the SLO.
//! The answer is evidence that confirms a load line ([`is_line_supported`]) or contradicts a load
//! line ([`breaks_slo_beyond_noise`]).
//!
//! Not here: the estimate of the load line ([`super::line_distribution`]).

use super::capacity::Capacity;
use super::search_state::SearchState;
use super::terms::{limited, near_line};
use crate::judge::{BoundEvidence, TrialOutcome, Verdict};
use plimsoll_model::Purpose;

/// Number of standard deviations (one-sided 1 %) by which a trial may exceed the SLO's allowance
/// and still count as chance.
const CHANCE_DEVIATIONS: f64 = 2.33;
/// A confirming trial supports the lower end of the load line's interval if its rate is at least
/// this share of that end.
const CONFIRMING_RATE_SHARE_MIN: f64 = 0.98;
/// A rate that met the SLO contradicts the upper end of the load line's interval if it is at least
/// this share of that end. The load line of a machine that others use is rarely just above a rate
/// that a trial met.
const CONTRADICTING_RATE_SHARE_MIN: f64 = 0.97;

/// Returns whether confirming trials support `low` as the lower end of the load line's interval. A
/// trial at `low` or above (or at most 2 % below) supports `low` if chance explains its bad
/// requests and backlog. More trials must support `low` than contradict it. For a server that
/// stalls, only trials of sufficient length count.
pub(super) fn is_line_supported(known: &SearchState, capacity: Option<&Capacity>, low: f64) -> bool {
    let dispersion = backlog_dispersion(known, capacity);
    let long_ns = known.stalls.as_ref().map_or(0, |stalls| stalls.confirming_trial_ns());
    let confirms = known.history.iter().filter(|trial| trial.purpose == Purpose::Confirm);
    let near = confirms.filter(|trial| trial.offered_rps().is_some_and(|rate| rate >= CONFIRMING_RATE_SHARE_MIN * low));
    let whole = near.filter(|trial| trial.planned_ns >= long_ns / 5 * 4 && !limited(trial));
    let meets = |trial: &&TrialOutcome| trial.verdict == Verdict::Pass || is_within_chance(trial, dispersion);
    let broke = whole.clone().filter(|trial| is_at_most(trial, low) && !meets(trial)).count();
    whole.filter(meets).count() > broke
}

/// Returns whether the rate of a confirming trial is at most 2 % above `low`. Only such a trial can
/// contradict the load line.
pub(super) fn is_at_most(trial: &TrialOutcome, low: f64) -> bool {
    trial.offered_rps().is_some_and(|rate| rate * CONFIRMING_RATE_SHARE_MIN <= low)
}

/// Returns whether a trial broke the SLO by more than chance explains. `dispersion` is the result
/// of [`backlog_dispersion`].
pub(super) fn fails_beyond_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    trial.verdict == Verdict::Fail && !is_within_chance(trial, dispersion)
}

/// Returns the sum of the dispersions of arrivals and completions, with which a backlog varies.
pub(super) fn backlog_dispersion(known: &SearchState, capacity: Option<&Capacity>) -> f64 {
    known.settings.arrivals.dispersion() + capacity.map_or(1.0, |capacity| capacity.dispersion)
}

/// Returns whether a load after the search broke the SLO by more than chance. A disturbed load also
/// counts: the rate was not sustained, even if the server was not the reason. `dispersion` comes
/// from [`backlog_dispersion`] of the search.
pub(super) fn breaks_slo_beyond_noise(trial: &TrialOutcome, dispersion: f64) -> bool {
    trial.verdict != Verdict::Pass && !limited(trial) && !is_explained_by_chance(trial, dispersion)
}

/// Returns whether other programs disturbed most of the trials that show the load line.
pub(super) fn is_machine_shared(history: &[TrialOutcome]) -> bool {
    let telling = || history.iter().filter(|trial| trial.purpose == Purpose::Saturate || near_line(trial));
    let disturbed = telling().filter(|trial| trial.interference.disturbed).count();
    2 * disturbed > telling().count()
}

/// Returns the highest rate of a trial near the load line that met the SLO or broke it by no more
/// than chance, 1/s. Also returns the lowest higher rate that broke the SLO beyond chance.
/// Disturbed trials count, because the load line is that of the disturbed machine.
pub(super) fn tried_range(history: &[TrialOutcome], dispersion: f64) -> (Option<f64>, Option<f64>) {
    let near = || history.iter().filter(|trial| near_line(trial) && !trial.stopped && !limited(trial));
    let broke = |trial: &&TrialOutcome| breaks_slo_beyond_noise(trial, dispersion);
    let met = near().filter(|trial| !broke(trial)).filter_map(TrialOutcome::offered_rps).reduce(f64::max);
    let failed = near().filter(broke).filter_map(TrialOutcome::offered_rps);
    (met, failed.filter(|rate| Some(*rate) > met).reduce(f64::min))
}

/// Returns whether a trial that met the SLO contradicts `upper`, an upper end of the load line's
/// interval.
pub(super) fn contradicts_upper_end(met_rps: f64, upper: f64) -> bool {
    met_rps >= CONTRADICTING_RATE_SHARE_MIN * upper
}

/// Returns whether a trial near `low` or above met the SLO, or broke it by no more than chance. A
/// disturbed trial also counts, because the load line is that of the disturbed machine.
pub(super) fn is_supported_on_shared_machine(trial: &TrialOutcome, dispersion: f64, low: f64) -> bool {
    let is_at_line = trial.offered_rps().is_some_and(|rate| rate >= CONFIRMING_RATE_SHARE_MIN * low);
    is_at_line && !trial.stopped && !breaks_slo_beyond_noise(trial, dispersion) && !limited(trial)
}

/// Returns whether chance explains that a valid trial broke the SLO, at a rate that meets the SLO.
pub(super) fn is_within_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    !trial.stopped && trial.verdict != Verdict::Void && is_explained_by_chance(trial, dispersion)
}

/// Returns whether chance explains the bad requests and the backlog of a trial, if the trial's rate
/// meets the SLO. Late and failed requests are bad.
fn is_explained_by_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    let walk = (dispersion * trial.evidence.scheduled as f64 / 2.0).sqrt();
    trial.evidence.bounds.iter().all(is_allowed) && trial.evidence.growth_requests <= CHANCE_DEVIATIONS * walk + 1.0
}

/// Returns whether the number of bad requests exceeds the allowed number by no more than chance.
fn is_allowed(bound: &BoundEvidence) -> bool {
    let mean = bound.share * bound.scheduled as f64;
    bound.bad as f64 <= mean + CHANCE_DEVIATIONS * (mean * bound.bunch_size).sqrt() + bound.bunch_size
}

/// Returns whether chance explains the bad requests of several trials together.
pub(super) fn are_explained_by_chance(trials: &[&TrialOutcome]) -> bool {
    let bounds = trials.iter().map(|trial| trial.evidence.bounds.len()).min().unwrap_or(0);
    (0..bounds).all(|at| {
        let each = || trials.iter().map(|trial| &trial.evidence.bounds[at]);
        let Some(first) = each().next() else { return true };
        is_allowed(&BoundEvidence {
            scheduled: each().map(|bound| bound.scheduled).sum(),
            bad: each().map(|bound| bound.bad).sum(),
            bunch_size: each().map(|bound| bound.bunch_size).fold(1.0, f64::max),
            ..*first
        })
    })
}
