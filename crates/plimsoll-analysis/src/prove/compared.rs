//! The comparison of one measure, build B with build A ([`MeasureComparison`]): the ratio over all
//! blocks, its certainty, and the verdict on B.
//!
//! Not here: evidence that forbids a verdict (`verdict`), and the times of the evaluations
//! (`interim_looks`). The list of measures, and how many of them share an error probability, are in
//! `mod` and `by_route`.

use super::interim_looks::{InterimLook, Look, RANKS_ALARM_ERROR};
use super::resample::ProvedEffect;
use super::stats::{self, ConfidenceInterval};
use plimsoll_model::Criterion;
use std::fmt;

/// The verdict on build B of a comparison with build A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProveVerdict {
    /// B is better: the difference is real and exceeds the margin.
    Better,
    /// B is worse: the difference is real and exceeds the margin.
    Worse,
    /// B is the same as A: no difference is proved, and any difference is inside the margin.
    Same,
    /// The difference is real, but inside the margin.
    Small,
    /// The blocks prove none of the other verdicts.
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

/// The comparison of one measure, build B with build A.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureComparison<M = Criterion> {
    /// The compared measure.
    pub measure: M,
    /// Whether this is the primary measure, which decides the comparison.
    pub primary: bool,
    /// B divided by A, over all blocks together. The values of A and B are sums over the blocks, or
    /// quantiles of all their requests.
    pub ratio: f64,
    /// Interval of `ratio`. The interval holds for all evaluations together, and for all measures
    /// that share its error probability. `None` with too few blocks.
    pub ratio_interval: Option<ConfidenceInterval>,
    /// The interval of `ratio` that decides whether B is the same as A. The interval combines two
    /// one-sided tests at 5 % over all evaluations, so its confidence level is 90 %. `None` with
    /// too few blocks.
    pub equivalence_interval: Option<ConfidenceInterval>,
    /// The p-value of the hypothesis "no difference". For the primary measure it covers all
    /// evaluations (Bonferroni). For other measures it is adjusted by Holm's method within their
    /// family.
    pub p: f64,
    /// The margin, as a share: smaller differences do not matter.
    pub margin: f64,
    /// The verdict on this measure.
    pub verdict: ProveVerdict,
    /// The value of the measure on each side, in the measure's unit. The value is infinite if too
    /// many requests failed.
    pub levels: [f64; 2],
}

impl<M> MeasureComparison<M> {
    /// Returns the largest difference that the interval still contains, as a share; `None` with too
    /// few blocks.
    pub fn at_most(&self) -> Option<f64> {
        self.ratio_interval.map(|interval| (interval.upper - 1.0).abs().max((interval.lower - 1.0).abs()))
    }
}

/// Returns whether the difference of the primary measure is real. The test of the mean is enough
/// for this. The test of the ranks is also enough, because single disturbed blocks can spoil the
/// mean. For the test of the ranks, mean and median must have the same sign. Each of the two
/// sign-flip tests has its own error probability.
fn is_real(seen: &Look, ratios_by_block: &[f64]) -> bool {
    let error = RANKS_ALARM_ERROR * seen.number.part();
    let middle = stats::median(ratios_by_block).unwrap_or(0.0);
    let by_ranks = middle * seen.estimate > 0.0 && seen.is_resolved && stats::sign_flip_p(ratios_by_block) <= error;
    by_ranks || seen.wide.is_some_and(|wide| !wide.contains(0.0))
}

/// Gives the verdict on a difference at one evaluation. All values are logarithms.
///
/// At an interim evaluation, a real difference exceeds the margin if its whole interval is outside
/// the margin. At the last evaluation, the estimate alone decides this. A difference is inside the
/// margin if its whole equivalence interval is inside the margin.
fn difference_verdict(seen: &Look, real: bool, margin: f64, more_is_better: bool) -> ProveVerdict {
    let last = seen.number == InterimLook::Last;
    let Some(interval) = seen.interval else { return ProveVerdict::Inconclusive };
    let inside = seen.equivalence.is_some_and(|interval| interval.is_within_ratio(margin));
    let beyond = if last { seen.estimate.abs() > margin } else { interval.lower > margin || interval.upper < -margin };
    match (real, beyond, inside) {
        (true, true, _) if (seen.estimate > 0.0) == more_is_better => ProveVerdict::Better,
        (true, true, _) => ProveVerdict::Worse,
        (false, _, true) => ProveVerdict::Same,
        (true, false, true) => ProveVerdict::Small,
        // At the last evaluation the estimate is inside the margin, although the equivalence
        // interval is not.
        (true, false, false) if last => ProveVerdict::Small,
        _ => ProveVerdict::Inconclusive,
    }
}

/// The terms by which one measure is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgementTerms {
    /// The margin, as a share: smaller differences do not matter.
    pub(super) margin: f64,
    /// The evaluation at which the measure is judged.
    pub(super) look: InterimLook,
    /// Number of measures among which this evaluation's part of the error probability is divided.
    pub(super) family: usize,
    /// Whether this is the primary measure, which decides the comparison.
    pub(super) primary: bool,
    /// Whether a higher value of the measure is better.
    pub(super) more_is_better: bool,
}

/// Compares one measure at one evaluation, by its effect. The resulting p-value applies to this
/// evaluation alone. `ratios_by_block` contains ln(B/A) of each block. Only the primary measure
/// needs these ratios.
pub(super) fn compare_measure<M>(
    effect: &ProvedEffect,
    measure: M,
    judged: JudgementTerms,
    ratios_by_block: &[f64],
) -> MeasureComparison<M> {
    let JudgementTerms { margin, look, family, primary, more_is_better } = judged;
    let seen = Look::from_effect(effect, look, family);
    // Secondary measures never decide, so for them it is enough that the interval excludes 0.
    let shown = || seen.interval.is_some_and(|interval| !interval.contains(0.0));
    let real = if primary { is_real(&seen, ratios_by_block) } else { shown() };
    MeasureComparison {
        measure,
        primary,
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        equivalence_interval: seen.equivalence.map(|interval| interval.map(f64::exp)),
        p: seen.p,
        margin,
        verdict: difference_verdict(&seen, real, (1.0 + margin).ln(), more_is_better),
        levels: effect.levels,
    }
}
