//! The rules of a comparison ([`ComparisonRules`]), and the selection of valid blocks. This file
//! also selects, for each measure, the quantity from which the effect (B compared with A) is
//! computed.

use super::comparison_blocks::{ArmLoadFigures, ComparisonBlock, REQUESTS_BEYOND_QUANTILE_MIN, quantile_of_measure};
use plimsoll_model::{Criterion, ExperimentSpec, ProveSpec};
use plimsoll_statistics::basics;
use plimsoll_statistics::resample::{BlockRatio, EffectEstimate, LoadResponseTimes};

/// The rules of a comparison of two builds.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonRules {
    /// The primary measure, which decides the comparison.
    pub primary: Criterion,
    /// The margin, as a share: smaller differences do not matter (0.02 means 2 %).
    pub margin: f64,
    /// Maximum number of blocks (paired loads); `None` means no limit.
    pub blocks_max: Option<usize>,
    /// Whether the builds of both sides are started anew for each load.
    pub restarts_builds: bool,
    /// Whether the responses of both sides may differ without consequences for the verdict.
    pub answers_may_differ: bool,
}

impl ComparisonRules {
    /// Reads the rules from the spec of a study; `None` for a study that is no comparison.
    pub fn from_spec(spec: &ExperimentSpec) -> Option<ComparisonRules> {
        let ExperimentSpec::Prove(ProveSpec { blocks, criterion, margin, .. }) = spec else { return None };
        Some(ComparisonRules {
            primary: *criterion,
            margin: *margin,
            blocks_max: blocks.blocks_max.map(|blocks| blocks as usize),
            restarts_builds: blocks.arms.iter().all(|arm| arm.is_started_per_load),
            answers_may_differ: blocks.answers_may_differ,
        })
    }
}

/// The quantity from which the effect of a measure is computed.
pub(super) enum EffectQuantity<'a> {
    /// For each block (paired loads) and both sides, the number of successes and the length of the
    /// measured window.
    Counts(Vec<[BlockRatio; 2]>),
    /// For each block (paired loads) and both sides, an amount such as CPU time, and its divisor
    /// such as the number of responses.
    Amounts(Vec<[BlockRatio; 2]>),
    /// A quantile of each side, computed from the side's requests in all blocks (paired loads)
    /// together. The first value is the quantile, such as 0.99. The second value contains, for each
    /// block, the response times of side A and of side B.
    Quantile(f64, Vec<[&'a LoadResponseTimes; 2]>),
}

/// Why an effect cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EffectUnavailable {
    /// The measure is missing in some block (paired loads), or there are no blocks.
    MissingMeasure,
    /// One side has too few requests for the quantile of the measure.
    TooFewRequests {
        /// The quantile, such as 0.99 for p99.
        q: f64,
        /// Number of scheduled requests on the side with fewer requests.
        requests: f64,
    },
}

/// Returns the number of scheduled requests that a quantile needs on each side.
pub fn quantile_requests_needed(q: f64) -> f64 {
    (REQUESTS_BEYOND_QUANTILE_MIN / (1.0 - q)).round()
}

/// Applies `of` to both sides of each block (paired loads). Returns `None` if `of` returns `None`
/// for any load.
pub(super) fn side_values<'a, T>(
    blocks: &'a [ComparisonBlock],
    of: impl Fn(&'a ArmLoadFigures) -> Option<T>,
) -> Option<Vec<[T; 2]>> {
    let sides = |block: &'a ComparisonBlock| match block.arm_loads.as_slice() {
        [a, b] => Some([of(a)?, of(b)?]),
        _ => None,
    };
    blocks.iter().map(sides).collect()
}

/// Returns the quantity from which the effect of a measure is computed; `None` if the measure is
/// missing in some block (paired loads).
pub(super) fn quantity_of_measure(blocks: &[ComparisonBlock], measure: Criterion) -> Option<EffectQuantity<'_>> {
    if let Some(q) = quantile_of_measure(measure) {
        return Some(EffectQuantity::Quantile(q, side_values(blocks, |reading| Some(&reading.response_times))?));
    }
    Some(match measure {
        Criterion::Cpu => EffectQuantity::Amounts(side_values(blocks, |reading| reading.cpu_ns_per_response)?),
        _ => EffectQuantity::Counts(side_values(blocks, |reading| Some(reading.goodput))?),
    })
}

/// The minimum weight of a block (paired loads) that other processes disturbed, relative to the
/// weight of an undisturbed block.
const BLOCK_WEIGHT_MIN: f64 = 0.1;
/// Smallest number of disturbed blocks, and of undisturbed blocks, from which their scatter is
/// estimated. If there are fewer disturbed or fewer undisturbed blocks (paired loads), all blocks
/// have equal weight.
const WEIGHTED_BLOCKS_MIN: usize = 5;

impl EffectQuantity<'_> {
    /// Returns ln(B/A) of each single block (one load of A and one load of B).
    fn ratios_by_block(&self) -> Vec<f64> {
        match self {
            EffectQuantity::Counts(blocks) | EffectQuantity::Amounts(blocks) => {
                blocks.iter().map(|[a, b]| ((b.numerator / b.divisor) / (a.numerator / a.divisor)).ln()).collect()
            }
            EffectQuantity::Quantile(q, blocks) => {
                blocks.iter().map(|[a, b]| (b.quantile_ns(*q) / a.quantile_ns(*q)).ln()).collect()
            }
        }
    }

    /// Returns the weight of each block (paired loads) in the effect. If disturbed blocks scatter
    /// more, their weight is the variance of undisturbed blocks divided by the variance of
    /// disturbed blocks. CPU times of the machine show whether a block is disturbed, and the
    /// scatter does not show which side is better. So the weight of a block does not depend on
    /// which side is better, and the sign-flip test keeps its error probability.
    fn block_weights(&self, blocks: &[ComparisonBlock]) -> Vec<f64> {
        let values = self.ratios_by_block();
        let middle = basics::median(&values).unwrap_or(0.0);
        let variance = |disturbed: bool| {
            let of = blocks.iter().zip(&values).filter(|(block, _)| block.is_disturbed() == disturbed);
            let squares: Vec<f64> = of.map(|(_, value)| (value - middle).powi(2)).collect();
            (squares.len() >= WEIGHTED_BLOCKS_MIN).then(|| squares.iter().sum::<f64>() / squares.len() as f64)
        };
        let weight = match (variance(false), variance(true)) {
            (Some(quiet), Some(disturbed)) if quiet < disturbed => (quiet / disturbed).max(BLOCK_WEIGHT_MIN),
            _ => 1.0,
        };
        blocks.iter().map(|block| if block.is_disturbed() { weight } else { 1.0 }).collect()
    }

    /// Computes the effect of B compared with A. For a quantile, each side needs enough requests
    /// beyond the quantile.
    pub(super) fn compute_effect(&self, blocks: &[ComparisonBlock]) -> Result<EffectEstimate, EffectUnavailable> {
        let weights = self.block_weights(blocks);
        match self {
            EffectQuantity::Counts(amounts) => {
                EffectEstimate::ratio_of_counts(amounts, &weights).ok_or(EffectUnavailable::MissingMeasure)
            }
            EffectQuantity::Amounts(amounts) => {
                EffectEstimate::ratio_of_amounts(amounts, &weights).ok_or(EffectUnavailable::MissingMeasure)
            }
            EffectQuantity::Quantile(q, times) => {
                let requests = |side: usize| times.iter().map(|block| block[side].scheduled as f64).sum::<f64>();
                let requests = requests(0).min(requests(1));
                match requests + 0.5 < quantile_requests_needed(*q) {
                    true => Err(EffectUnavailable::TooFewRequests { q: *q, requests }),
                    false => {
                        EffectEstimate::ratio_of_quantiles(times, *q, &weights).ok_or(EffectUnavailable::MissingMeasure)
                    }
                }
            }
        }
    }
}

/// Computes the effect of B compared with A for one measure, from these blocks (paired loads).
pub(super) fn effect_of_measure(
    blocks: &[ComparisonBlock],
    measure: Criterion,
) -> Result<EffectEstimate, EffectUnavailable> {
    quantity_of_measure(blocks, measure).ok_or(EffectUnavailable::MissingMeasure)?.compute_effect(blocks)
}

/// Returns ln(B/A) of each single block (one load of A and one load of B) for a measure. The list
/// is empty if the measure is missing in some block.
pub(super) fn ratios_by_block(blocks: &[ComparisonBlock], measure: Criterion) -> Vec<f64> {
    quantity_of_measure(blocks, measure).map_or_else(Vec::new, |quantity| quantity.ratios_by_block())
}

/// Returns the blocks that are not void and have a value of the primary measure on every arm
/// (side).
pub(super) fn valid_blocks(blocks: &[ComparisonBlock], primary: Criterion) -> Vec<ComparisonBlock> {
    let whole =
        |block: &&ComparisonBlock| block.arm_loads.iter().all(|reading| reading.measure_value(primary).is_some());
    blocks.iter().filter(|block| block.void_reason().is_none()).filter(whole).cloned().collect()
}
