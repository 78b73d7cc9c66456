//! One measure of B against A ([`MeasureComparison`]): the ratio over all blocks, its certainty,
//! and whether B is better, worse or the same.
//!
//! Not here: rules that forbid a verdict (`verdict`); the measures, and how many share an error
//! (`mod`, `by_route`); the times of the looks (`looks`).

use super::looks::{Look, LookNumber, RANKS_ALARM_ERROR};
use super::resample::ProvedEffect;
use super::stats::{self, ConfidenceInterval};
use plimsoll_model::Criterion;
use std::fmt;

/// The verdict of a comparison on B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProveVerdict {
    /// A real difference beyond the margin, for the better.
    Better,
    /// A real difference beyond the margin, for the worse.
    Worse,
    /// Any difference lies inside the margin, and none was seen.
    Same,
    /// A real difference inside the margin.
    Small,
    /// No decision.
    Inconclusive,
}

impl fmt::Display for ProveVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProveVerdict::Better => "better",
            ProveVerdict::Worse => "worse",
            ProveVerdict::Same => "same",
            ProveVerdict::Small => "small",
            ProveVerdict::Inconclusive => "inconclusive",
        })
    }
}

/// One measure of B against A.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureComparison<M = Criterion> {
    /// Which.
    pub measure: M,
    /// Whether it decides.
    pub primary: bool,
    /// B/A of all blocks together: of sums, or of the quantile of all requests.
    pub ratio: f64,
    /// Interval of B/A that holds over all looks, and over all measures of its family together;
    /// `None`: too few blocks.
    pub ratio_interval: Option<ConfidenceInterval>,
    /// The interval of B/A by which it is the same, or not: two one-sided tests at 5 % over all
    /// looks are an interval at 90 %.
    pub equivalence_interval: Option<ConfidenceInterval>,
    /// p of no difference: for the primary measure over all looks (Bonferroni), for other measures
    /// by Holm within their family.
    pub p: f64,
    /// The margin, a share.
    pub margin: f64,
    /// The verdict.
    pub verdict: ProveVerdict,
    /// The level of each side in the measure's unit; infinite where too many requests failed for it
    /// to have a bound.
    pub levels: [f64; 2],
}

impl<M> MeasureComparison<M> {
    /// The largest difference that the interval leaves, as a share; `None` with too few blocks.
    pub fn at_most(&self) -> Option<f64> {
        self.ratio_interval.map(|interval| (interval.upper - 1.0).abs().max((interval.lower - 1.0).abs()))
    }
}

/// Whether a difference of the deciding measure is real: by the mean, or if some blocks are too
/// disturbed for a mean, by ranks, if both point to the same side. Each is a sign-flip test with
/// its own error.
fn is_real(seen: &Look, by_block: &[f64]) -> bool {
    let error = RANKS_ALARM_ERROR * seen.number.part();
    let middle = stats::median(by_block).unwrap_or(0.0);
    let by_ranks = middle * seen.estimate > 0.0 && stats::sign_flip_p(by_block) <= error;
    by_ranks || seen.wide.is_some_and(|wide| !wide.contains(0.0))
}

/// The verdict of one look, in logarithms. A real difference is beyond the margin at a planned look
/// if the whole interval is, and at the last look if the best estimate is. It is inside the margin
/// if the whole equivalence interval is.
fn judge(seen: &Look, real: bool, margin: f64, more_is_better: bool) -> ProveVerdict {
    let last = seen.number == LookNumber::Last;
    let Some(interval) = seen.interval else { return ProveVerdict::Inconclusive };
    let inside = seen.equivalence.is_some_and(|interval| interval.within_ratio(margin));
    let beyond = if last { seen.estimate.abs() > margin } else { interval.lower > margin || interval.upper < -margin };
    match (real, beyond, inside) {
        (true, true, _) if (seen.estimate > 0.0) == more_is_better => ProveVerdict::Better,
        (true, true, _) => ProveVerdict::Worse,
        (false, _, true) => ProveVerdict::Same,
        (true, false, true) => ProveVerdict::Small,
        // Inside to the best of our knowledge, not for certain.
        (true, false, false) if last => ProveVerdict::Small,
        _ => ProveVerdict::Inconclusive,
    }
}

/// The rules for judging a measure among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgementTerms {
    /// The margin, a share.
    pub(super) margin: f64,
    /// The look.
    pub(super) look: LookNumber,
    /// So many measures share the look's part of the error.
    pub(super) family: usize,
    /// Whether it decides.
    pub(super) primary: bool,
    /// Whether more of it is better.
    pub(super) more_is_better: bool,
}

/// One measure at one look, by its effect; its p is that of this look alone. `by_block`: ln(B/A) of
/// each block, for the measure that decides.
pub(super) fn compare<M>(
    effect: &ProvedEffect,
    measure: M,
    judged: JudgementTerms,
    by_block: &[f64],
) -> MeasureComparison<M> {
    let JudgementTerms { margin, look, family, primary, more_is_better } = judged;
    let seen = Look::from_effect(effect, look, family);
    // Other measures decide nothing: their interval is enough.
    let shown = || seen.interval.is_some_and(|interval| !interval.contains(0.0));
    let real = if primary { is_real(&seen, by_block) } else { shown() };
    MeasureComparison {
        measure,
        primary,
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        equivalence_interval: seen.equivalence.map(|interval| interval.map(f64::exp)),
        p: seen.p,
        margin,
        verdict: judge(&seen, real, (1.0 + margin).ln(), more_is_better),
        levels: effect.levels,
    }
}
