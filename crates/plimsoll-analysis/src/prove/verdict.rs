//! Decides the verdict at one evaluation of the blocks measured so far ([`decide_verdict`]). The
//! primary measure gives the verdict, unless other evidence contradicts the primary measure.
//! Contradicting evidence is failed requests, different responses, outliers among the blocks
//! (paired loads), or a difference that changes with time.
//!
//! Not here: the times of the evaluations (`evaluations`), and the judgement of one measure
//! (`measure_comparison`).

use super::comparison_blocks::{ArmLoadFigures, ComparisonBlock};
use super::evaluations::{EvaluationNumber, EvaluationResult, SUCCESS_FALSE_ALARM_PROBABILITY};
use super::measure_comparison::{JudgementSettings, MeasureComparison, ProveVerdict, compare_measure};
use super::rules::{ComparisonRules, EffectUnavailable, effect_of_measure, ratios_by_block, side_values};
use crate::format;
use plimsoll_model::Criterion;
use plimsoll_statistics::basics::{self, ConfidenceInterval};
use plimsoll_statistics::resample::{BlockRatio, EffectEstimate};
use std::collections::BTreeSet;

/// The success rates of builds A and B, compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuccessRateComparison {
    /// Success rate of A and of B, 0..=1.
    pub rates: [f64; 2],
    /// B's success rate divided by A's success rate.
    pub ratio: f64,
    /// 95 % interval of `ratio`, which holds over all evaluations together; `None` with too few
    /// blocks (paired loads).
    pub ratio_interval: Option<ConfidenceInterval>,
    /// Whether a larger share of requests fails in B than in A, by more than chance explains.
    pub is_b_worse: bool,
}

/// The reason for a verdict that does not come from the primary measure alone.
#[derive(Debug, Clone, PartialEq)]
pub enum VerdictReason {
    /// More requests of B fail, so B is worse whatever the primary measure shows.
    MoreFailures,
    /// The primary measure is missing, or has too few requests.
    PrimaryUnavailable(EffectUnavailable),
    /// Evidence contradicts the verdict of the primary measure. The first value is the verdict of
    /// the primary measure. The second value is the evidence in words.
    Contradicted(ProveVerdict, String),
    /// The measurement itself prevents a verdict, for example because it was aborted or hardly any
    /// block was valid. The text is the reason why no verdict is possible.
    NoValidMeasurement(String),
}

/// The decision at one evaluation of the blocks (paired loads) measured so far.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub(super) verdict: ProveVerdict,
    pub(super) primary: Option<MeasureComparison>,
    pub(super) secondary: Vec<MeasureComparison>,
    pub(super) success: Option<SuccessRateComparison>,
    pub(super) reason: Option<VerdictReason>,
}

/// Error probability of each test whose result can contradict a verdict.
const CONTRADICTION_TEST_ERROR: f64 = 0.01;
/// Distance from the median of all blocks (paired loads) beyond which a block is an outlier, in
/// standard deviations. The standard deviation comes from the median absolute deviation.
const OUTLIER_BLOCK_DEVIATIONS: f64 = 4.0;
/// Largest tolerated relative difference between the mean response sizes of A and B. If the mean
/// response sizes differ more, the builds A and B may do different work.
const SIZE_TOLERANCE: f64 = 0.01;
/// Largest tolerated difference between A and B in the share of a status among the responses. If
/// the shares differ more, the responses of A and B count as different.
const STATUS_TOLERANCE: f64 = 0.001;

/// Makes the decision at one evaluation of the comparison, from all valid blocks (paired loads).
pub(super) fn decide_verdict(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    evaluation: EvaluationNumber,
) -> Decision {
    let judged = |measure: Criterion, is_primary, family| JudgementSettings {
        margin: settings.margin,
        evaluation,
        family,
        is_primary,
        more_is_better: measure.more_is_better(),
    };
    let success = compare_success_rates(blocks, evaluation);
    let secondary = compare_secondary_measures(settings, blocks, judged, evaluation);
    let effect = match effect_of_measure(blocks, settings.primary) {
        Ok(effect) => effect,
        Err(why) => {
            let fallen = success.is_some_and(|success| success.is_b_worse);
            let (verdict, reason) = match fallen {
                true => (ProveVerdict::Worse, VerdictReason::MoreFailures),
                false => (ProveVerdict::Inconclusive, VerdictReason::PrimaryUnavailable(why)),
            };
            return Decision { verdict, primary: None, secondary, success, reason: Some(reason) };
        }
    };
    let values = ratios_by_block(blocks, settings.primary);
    let mut is_primary = compare_measure(&effect, settings.primary, judged(settings.primary, true, 1), &values);
    is_primary.p = (is_primary.p / evaluation.error_part()).min(1.0);
    let (said, more_is_better) = (is_primary.verdict, settings.primary.more_is_better());
    let against = match said {
        // Outlier blocks in which B is much worse contradict the verdict "better". Outlier blocks
        // in which A is much worse are a part of B's advantage.
        ProveVerdict::Better => disqualifying_response_difference(settings, blocks).or_else(|| {
            side_with_bad_outliers(&values, more_is_better).filter(|(side, _)| *side == 'B').map(|(_, text)| text)
        }),
        ProveVerdict::Same | ProveVerdict::SmallDifference => disqualifying_response_difference(settings, blocks)
            .or_else(|| worse_secondary_measure(&secondary))
            .or_else(|| side_with_bad_outliers(&values, more_is_better).map(|(_, text)| text))
            .or_else(|| describe_trend(blocks, settings.primary)),
        ProveVerdict::Worse | ProveVerdict::Inconclusive => None,
    };
    let (verdict, reason) = match (said, against) {
        (ProveVerdict::Worse, _) => (said, None),
        _ if success.is_some_and(|success| success.is_b_worse) => {
            (ProveVerdict::Worse, Some(VerdictReason::MoreFailures))
        }
        (_, Some(why)) => (ProveVerdict::Inconclusive, Some(VerdictReason::Contradicted(said, why))),
        _ => (said, None),
    };
    // If evidence contradicts the verdict of the primary measure, the primary measure also becomes
    // inconclusive. If only the failed requests of B decide the comparison, the primary measure
    // keeps its own verdict.
    if matches!(reason, Some(VerdictReason::Contradicted(..))) {
        is_primary.verdict = verdict;
    }
    Decision { verdict, primary: Some(is_primary), secondary, success, reason }
}

/// Returns whether this evaluation of the comparison may give a certain verdict. The function uses
/// only the primary measure and the success rate, because they are quick to compute.
pub(super) fn may_be_certain(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    evaluation: EvaluationNumber,
) -> bool {
    let more_is_better = settings.primary.more_is_better();
    let judged = JudgementSettings { margin: settings.margin, evaluation, family: 1, is_primary: true, more_is_better };
    let verdict = effect_of_measure(blocks, settings.primary).map(|effect| {
        compare_measure(&effect, settings.primary, judged, &ratios_by_block(blocks, settings.primary)).verdict
    });
    verdict.is_ok_and(|verdict| verdict != ProveVerdict::Inconclusive)
        || compare_success_rates(blocks, evaluation).is_some_and(|success| success.is_b_worse)
}

/// Compares the secondary measures. Each measure gets an equal part of this evaluation's error
/// probability, and the p-values are adjusted for the number of measures.
fn compare_secondary_measures(
    settings: &ComparisonRules,
    blocks: &[ComparisonBlock],
    judged: impl Fn(Criterion, bool, usize) -> JudgementSettings,
    evaluation: EvaluationNumber,
) -> Vec<MeasureComparison> {
    // At a fixed rate the goodput equals the rate, so a comparison of the goodput would be
    // meaningless.
    let beside = |measure: &Criterion| {
        *measure != settings.primary && (*measure != Criterion::Goodput || !settings.primary.needs_fixed_rate())
    };
    let taken = |measure| Some((measure, effect_of_measure(blocks, measure).ok()?));
    let effects: Vec<(Criterion, EffectEstimate)> =
        Criterion::ALL.into_iter().filter(beside).filter_map(taken).collect();
    let mut compared: Vec<MeasureComparison> = effects
        .iter()
        .map(|(measure, effect)| compare_measure(effect, *measure, judged(*measure, false, effects.len()), &[]))
        .collect();
    let p: Vec<f64> = compared.iter().map(|one| (one.p / evaluation.error_part()).min(1.0)).collect();
    for (one, p) in compared.iter_mut().zip(basics::holm_adjusted_p(&p)) {
        one.p = p;
    }
    compared
}

/// Compares the success rates of A and B; `None` without a block (paired loads).
fn compare_success_rates(blocks: &[ComparisonBlock], evaluation: EvaluationNumber) -> Option<SuccessRateComparison> {
    let amounts = side_values(blocks, |reading| {
        let (of, per) = (reading.response_times.succeeded() as f64, reading.response_times.scheduled as f64);
        Some(BlockRatio { numerator: of, divisor: per })
    })?;
    let effect = EffectEstimate::ratio_of_amounts(&amounts, &vec![1.0; amounts.len()])?;
    let is_b_worse =
        effect.estimate < 0.0 && effect.one_sided_p(true) <= SUCCESS_FALSE_ALARM_PROBABILITY * evaluation.error_part();
    let seen = EvaluationResult::from_effect(&effect, evaluation, 1);
    Some(SuccessRateComparison {
        rates: effect.levels,
        ratio: effect.estimate.exp(),
        ratio_interval: seen.interval.map(|interval| interval.map(f64::exp)),
        is_b_worse,
    })
}

fn disqualifying_response_difference(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> Option<String> {
    describe_response_difference(blocks)
        .filter(|differing| differing.is_large && !settings.answers_may_differ)
        .map(|it| it.text)
}

/// A difference between the responses of the two sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResponseDifference {
    /// The difference in words, without a full stop.
    pub(super) text: String,
    /// Whether the difference is so large that the two sides may do different work.
    pub(super) is_large: bool,
}

/// Returns whether an effect is more than chance. If there are too few blocks (paired loads) for
/// the usual error probability, the differences of all blocks must have the same sign.
fn is_effect_beyond_chance(effect: &EffectEstimate) -> bool {
    effect.p_two_sided() <= CONTRADICTION_TEST_ERROR.max(0.5f64.powi(effect.blocks.min(1000) as i32 - 1) * 1.0001)
}

/// Describes how the responses of both sides differ, in status or in size.
pub(super) fn describe_response_difference(blocks: &[ComparisonBlock]) -> Option<ResponseDifference> {
    let weights = vec![1.0; blocks.len()];
    let compared = |of: &dyn Fn(&ArmLoadFigures) -> BlockRatio| {
        let amounts = side_values(blocks, |reading| Some(of(reading)))?;
        let sum = |side: usize, of: fn(&BlockRatio) -> f64| amounts.iter().map(|block| of(&block[side])).sum::<f64>();
        let shares = [0, 1].map(|side| sum(side, |it| it.numerator) / sum(side, |it| it.divisor));
        Some((EffectEstimate::ratio_of_amounts(&amounts, &weights)?, shares))
    };
    let statuses: BTreeSet<u16> = blocks
        .iter()
        .flat_map(|block| &block.arm_loads)
        .flat_map(|reading| reading.statuses.iter().map(|(status, _)| status))
        .collect();
    for status in statuses {
        let share = |reading: &ArmLoadFigures| BlockRatio {
            numerator: reading.statuses.get(status) as f64,
            divisor: reading.statuses.total() as f64,
        };
        let Some((effect, shares)) = compared(&share) else { continue };
        if (shares[0] - shares[1]).abs() > STATUS_TOLERANCE && is_effect_beyond_chance(&effect) {
            let [share_a, share_b] = shares.map(format::share);
            let text = format!(
                "the sides respond differently: {share_b} of B's responses have status {status}, but {share_a} of A's \
                 responses"
            );
            return Some(ResponseDifference { text, is_large: true });
        }
    }
    let (effect, sizes) = compared(&|reading| reading.bytes_per_response)?;
    if !is_effect_beyond_chance(&effect) || effect.estimate == 0.0 {
        return None;
    }
    let much = (sizes[1] / sizes[0] - 1.0).abs() > SIZE_TOLERANCE;
    let digits = usize::from((sizes[1] - sizes[0]).abs() < 10.0);
    let text = format!(
        "the sides respond differently: on average, a response of A has {bytes_of_a:.digits$} bytes, and a response \
         of B has {bytes_of_b:.digits$} bytes",
        bytes_of_a = sizes[0],
        bytes_of_b = sizes[1]
    );
    Some(ResponseDifference { text, is_large: much })
}

/// Describes the first secondary measure in which B is worse; `None` if there is no such measure.
fn worse_secondary_measure(secondary: &[MeasureComparison]) -> Option<String> {
    let worse = secondary.iter().find(|one| one.verdict == ProveVerdict::Worse)?;
    Some(format!("{} of B is worse ({:+.1} %)", worse.measure.flag_word(), (worse.ratio - 1.0) * 100.0))
}

/// Returns the side ('A' or 'B') that is much worse in more outlier blocks (unusual pairs of loads)
/// than chance explains, and a description. Returns `None` if chance explains the outlier blocks.
fn side_with_bad_outliers(ratios_by_block: &[f64], more_is_better: bool) -> Option<(char, String)> {
    let middle = basics::median(ratios_by_block)?;
    let sizes: Vec<f64> = ratios_by_block.iter().map(|value| (value - middle).abs()).collect();
    let far = OUTLIER_BLOCK_DEVIATIONS * basics::DEVIATION_PER_MAD * basics::median(&sizes)?;
    let count = |low: bool| {
        ratios_by_block.iter().filter(|value| if low { **value < middle - far } else { **value > middle + far }).count()
    };
    let (low, high) = (count(true), count(false));
    let (most, least) = (low.max(high), low.min(high));
    if basics::fair_coin_tail(low + high, most) > OUTLIER_SIDE_TEST_ERROR {
        return None;
    }
    let side = if (low > high) == more_is_better { 'B' } else { 'A' };
    let text = format!(
        "side {side} is sometimes much worse: {worse_pairs} of {all_pairs} pairs of loads are outliers where {side} is \
         worse, and only {better_pairs} where {side} is better",
        worse_pairs = most,
        better_pairs = least,
        all_pairs = ratios_by_block.len()
    );
    Some((side, text))
}

/// The error probability of the one-sided test whether one side is worse in outlier blocks (unusual
/// pairs of loads): one side is by chance worse in five of five.
const OUTLIER_SIDE_TEST_ERROR: f64 = 1.0 / 32.0;

/// Describes how the difference between A and B changes during the measurement; `None` if the
/// difference does not change.
fn describe_trend(counted: &[ComparisonBlock], measure: Criterion) -> Option<String> {
    if basics::trend_p_value(&ratios_by_block(counted, measure)) > CONTRADICTION_TEST_ERROR {
        return None;
    }
    let (first, second) = counted.split_at(counted.len() / 2);
    let half = |blocks: &[ComparisonBlock]| {
        effect_of_measure(blocks, measure).ok().map(|effect| (effect.estimate.exp() - 1.0) * 100.0)
    };
    let (first, second) = (half(first)?, half(second)?);
    Some(format!(
        "the difference between A and B changes with time: {first:+.1} % in the first half of the blocks, {second:+.1} \
         % in the second half"
    ))
}
