//! Whether a trial broke the SLO by more than chance at a rate that meets the SLO: the evidence
//! that confirms a line ([`confirmed`]), and the evidence that contradicts one ([`breaks`]).
//!
//! Not here: the estimate of the line ([`super::belief`]).

use super::capacity::Capacity;
use super::so_far::SearchState;
use super::terms::limited;
use crate::judge::{BoundEvidence, TrialOutcome, Verdict};
use plimsoll_model::Purpose;

/// Standard deviations (one-sided 1 %) by which a confirming trial may exceed what the SLO allows
/// by chance.
const BY_CHANCE: f64 = 2.33;
/// A confirming trial supports a lower end that is at most this much higher.
const CONFIRMS_NEAR: f64 = 0.98;

/// Whether a confirming trial at `low`, close to it or above showed no more bad requests, and no
/// more backlog, than chance makes of a rate that meets the SLO, and more of them did than did not
/// at a rate that is not above; where the server stalls, those that were long enough.
pub(super) fn confirmed(known: &SearchState, capacity: Option<&Capacity>, low: f64) -> bool {
    let dispersion = walk_dispersion(known, capacity);
    let long_ns = known.stalls.as_ref().map_or(0, |stalls| stalls.confirming_ns());
    let confirms = known.history.iter().filter(|trial| trial.purpose == Purpose::Confirm);
    let near = confirms.filter(|trial| trial.offered_rps().is_some_and(|rate| rate >= CONFIRMS_NEAR * low));
    let whole = near.filter(|trial| trial.planned_ns >= long_ns / 5 * 4 && !limited(trial));
    let meets = |trial: &&TrialOutcome| trial.verdict == Verdict::Pass || by_chance(trial, dispersion);
    let broke = whole.clone().filter(|trial| is_at_most(trial, low) && !meets(trial)).count();
    whole.filter(meets).count() > broke
}

/// Whether a confirming trial was at `low`, close to it or below: then it may contradict the line.
pub(super) fn is_at_most(trial: &TrialOutcome, low: f64) -> bool {
    trial.offered_rps().is_some_and(|rate| rate * CONFIRMS_NEAR <= low)
}

/// Dispersion of arrivals and completions together: by how much a backlog wanders.
pub(super) fn walk_dispersion(known: &SearchState, capacity: Option<&Capacity>) -> f64 {
    known.settings.arrivals.dispersion() + capacity.map_or(1.0, |capacity| capacity.dispersion)
}

/// Whether a load after the search broke the SLO by more than chance. A disturbed load counts, too:
/// the reason was not the server, but the rate was not sustained. `dispersion`: by
/// [`walk_dispersion`] of the search.
pub(super) fn breaks(trial: &TrialOutcome, dispersion: f64) -> bool {
    trial.verdict != Verdict::Pass && !limited(trial) && !within_chance(trial, dispersion)
}

/// Whether what a trial showed may be chance at a rate that meets the SLO.
pub(super) fn by_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    !trial.stopped && trial.verdict != Verdict::Void && within_chance(trial, dispersion)
}

/// Whether its late and failed requests, and its backlog, are no more than chance makes of a rate
/// that meets the SLO.
fn within_chance(trial: &TrialOutcome, dispersion: f64) -> bool {
    let walk = (dispersion * trial.evidence.scheduled as f64 / 2.0).sqrt();
    trial.evidence.bounds.iter().all(is_allowed) && trial.evidence.growth_requests <= BY_CHANCE * walk + 1.0
}

/// Whether so many bad requests may be chance where as many are allowed.
fn is_allowed(bound: &BoundEvidence) -> bool {
    let mean = bound.share * bound.scheduled as f64;
    bound.bad as f64 <= mean + BY_CHANCE * (mean * bound.bunch_size).sqrt() + bound.bunch_size
}

/// The same of the late and failed requests of several trials together.
pub(super) fn all_within_chance(trials: &[&TrialOutcome]) -> bool {
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
