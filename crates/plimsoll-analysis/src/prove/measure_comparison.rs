//! The comparison of one measure of build B with build A ([`MeasureComparison`]): the ratio B/A
//! over all blocks, its interval, and the verdict on B.
//!
//! Not here: evidence that forbids a verdict (`verdict`), and the times of the evaluations
//! (`evaluations`). Also not here: which measures are compared, and how many measures share an
//! error probability (`verdict`, `by_route`).

use super::evaluations::{EvaluationNumber, EvaluationResult, RANKS_FALSE_ALARM_PROBABILITY};
use plimsoll_model::Criterion;
use plimsoll_statistics::basics::{self, ConfidenceInterval};
use plimsoll_statistics::resample::EffectEstimate;
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
    SmallDifference,
    /// The blocks (paired loads of A and B) prove no other verdict.
    Inconclusive,
}

impl fmt::Display for ProveVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProveVerdict::Better => "better",
            ProveVerdict::Worse => "worse",
            ProveVerdict::Same => "same",
            ProveVerdict::SmallDifference => "small",
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
    pub is_primary: bool,
    /// The measure of B divided by the measure of A, over all blocks (paired loads) together. The
    /// measures of A and B are sums over the blocks (paired loads), or quantiles over the requests
    /// of all blocks.
    pub ratio: f64,
    /// Confidence interval of `ratio`. The confidence level applies to all evaluations together,
    /// and to all measures that share the interval's error probability. `None` with too few blocks
    /// (paired loads).
    pub ratio_interval: Option<ConfidenceInterval>,
    /// The interval of `ratio` that decides whether B is the same as A. The interval combines two
    /// one-sided tests at 5 % over all evaluations, so its confidence level is 90 %. `None` with
    /// too few blocks (paired loads).
    pub equivalence_interval: Option<ConfidenceInterval>,
    /// The p-value of the hypothesis "no difference". For the primary measure, the p-value is
    /// corrected for all evaluations (Bonferroni). For other measures, the p-value is adjusted by
    /// Holm's method within the measures' family of tests.
    pub p: f64,
    /// The margin, as a share: smaller differences do not matter.
    pub margin: f64,
    /// The verdict on this measure.
    pub verdict: ProveVerdict,
    /// The value of the measure for A and for B, in the measure's unit. The value of a quantile is
    /// infinite if too many requests failed.
    pub side_values: [f64; 2],
}

impl<M> MeasureComparison<M> {
    /// Returns the largest difference between A and B that the confidence interval contains, as a
    /// share; `None` with too few blocks (paired loads).
    pub fn difference_max(&self) -> Option<f64> {
        self.ratio_interval.map(|interval| (interval.upper - 1.0).abs().max((interval.lower - 1.0).abs()))
    }
}

/// Returns whether the difference of the primary measure is real. One of two sign-flip tests must
/// show the difference: the test of the mean, or the test of the ranks. The ranks are also tested,
/// because a few blocks (paired loads) that other processes disturbed can distort the mean. The
/// test of the ranks counts only if the mean and the median have the same sign. Each of the two
/// sign-flip tests has its own error probability.
fn is_difference_real(result: &EvaluationResult, ratios_by_block: &[f64]) -> bool {
    let error = RANKS_FALSE_ALARM_PROBABILITY * result.number.error_part();
    let middle = basics::median(ratios_by_block).unwrap_or(0.0);
    let by_ranks =
        middle * result.estimate > 0.0 && result.is_resolved && basics::sign_flip_p_value(ratios_by_block) <= error;
    by_ranks || result.alarm_interval.is_some_and(|wide| !wide.contains(0.0))
}

/// Gives the verdict on a difference between A and B at one evaluation of the comparison. All
/// values are logarithms of B/A.
///
/// At an interim evaluation (before the last block), a real difference exceeds the margin if its
/// whole interval is outside the margin. At the last evaluation, a real difference exceeds the
/// margin if its estimate is outside the margin. A difference is inside the margin if its whole
/// equivalence interval is inside the margin.
fn difference_verdict(result: &EvaluationResult, real: bool, margin: f64, more_is_better: bool) -> ProveVerdict {
    let last = result.number == EvaluationNumber::Last;
    let Some(interval) = result.interval else { return ProveVerdict::Inconclusive };
    let inside = result.equivalence.is_some_and(|interval| interval.is_within_ratio(margin));
    let beyond =
        if last { result.estimate.abs() > margin } else { interval.lower > margin || interval.upper < -margin };
    match (real, beyond, inside) {
        (true, true, _) if (result.estimate > 0.0) == more_is_better => ProveVerdict::Better,
        (true, true, _) => ProveVerdict::Worse,
        (false, _, true) => ProveVerdict::Same,
        (true, false, true) => ProveVerdict::SmallDifference,
        // At the last evaluation, a real difference counts as small if its estimate is inside the
        // margin, even if the equivalence interval is not.
        (true, false, false) if last => ProveVerdict::SmallDifference,
        _ => ProveVerdict::Inconclusive,
    }
}

/// The conditions by which one measure is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgementSettings {
    /// The margin, as a share: smaller differences do not matter.
    pub(super) margin: f64,
    /// The evaluation of the comparison (after a planned number of blocks) at which the measure is
    /// judged.
    pub(super) evaluation: EvaluationNumber,
    /// Number of measures among which this evaluation's part of the error probability is divided.
    pub(super) family: usize,
    /// Whether this is the primary measure, which decides the comparison.
    pub(super) is_primary: bool,
    /// Whether a higher value of the measure is better.
    pub(super) more_is_better: bool,
}

/// Compares one measure, by its effect, at one evaluation of the comparison. The p-value in the
/// result applies to this one evaluation alone. `ratios_by_block` contains ln(B/A) of each block,
/// which only the primary measure needs.
pub(super) fn compare_measure<M>(
    effect: &EffectEstimate,
    measure: M,
    judged: JudgementSettings,
    ratios_by_block: &[f64],
) -> MeasureComparison<M> {
    let JudgementSettings { margin, evaluation, family, is_primary, more_is_better } = judged;
    let seen = EvaluationResult::from_effect(effect, evaluation, family);
    // Secondary measures never decide a comparison, so a secondary difference already counts as
    // real if its interval excludes 0.
    let shown = || seen.interval.is_some_and(|interval| !interval.contains(0.0));
    let real = if is_primary { is_difference_real(&seen, ratios_by_block) } else { shown() };
    MeasureComparison {
        measure,
        is_primary,
        ratio: seen.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        equivalence_interval: seen.equivalence.map(|interval| interval.map(f64::exp)),
        p: seen.p,
        margin,
        verdict: difference_verdict(&seen, real, (1.0 + margin).ln(), more_is_better),
        side_values: effect.levels,
    }
}
