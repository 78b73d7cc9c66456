//! The rules of a comparison ([`Rules`]), the selection of valid blocks, and the quantity from
//! which each measure's effect (B over A) is computed.

use super::reading::{Block, REQUESTS_BEYOND_QUANTILE_MIN, Reading, quantile};
use super::resample::{BlockAmount, LedgerTimes, ProvedEffect};
use super::stats;
use plimsoll_model::{Criterion, ExperimentSpec, ProveSpec};

/// The rules of a comparison of two builds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The primary measure, which decides.
    pub primary: Criterion,
    /// The margin: differences up to this share do not matter (0.02 means 2 %).
    pub margin: f64,
    /// Maximum number of blocks; `None` means no limit.
    pub blocks_max: Option<usize>,
    /// Whether both sides are started anew for each load.
    pub fresh: bool,
    /// Whether the responses of both sides may differ.
    pub answers_may_differ: bool,
}

impl Rules {
    /// Reads the rules from a spec; `None` for a spec that is no comparison.
    pub fn from_spec(spec: &ExperimentSpec) -> Option<Rules> {
        let ExperimentSpec::Prove(ProveSpec { blocks, criterion, margin, .. }) = spec else { return None };
        Some(Rules {
            primary: *criterion,
            margin: *margin,
            blocks_max: blocks.blocks_max.map(|blocks| blocks as usize),
            fresh: blocks.arms.iter().all(|arm| arm.started),
            answers_may_differ: blocks.answers_may_differ,
        })
    }
}

/// The quantity from which the effect of a measure is computed.
pub(super) enum Quantity<'a> {
    /// The number of successes and its window for both sides, by block.
    Counts(Vec<[BlockAmount; 2]>),
    /// An amount and its divisor for both sides, by block.
    Amounts(Vec<[BlockAmount; 2]>),
    /// A quantile of all requests of each side, and the times of the requests, by block.
    Quantile(f64, Vec<[&'a LedgerTimes; 2]>),
}

/// Why an effect cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EffectUnavailable {
    /// The measure is missing in some block, or there is no block.
    NotTaken,
    /// One side has too few requests for this quantile.
    TooFew {
        /// The quantile.
        q: f64,
        /// Number of scheduled requests on the side with fewer requests.
        requests: f64,
    },
}

/// Returns the number of requests that a quantile needs on each side.
pub fn requests_needed(q: f64) -> f64 {
    (REQUESTS_BEYOND_QUANTILE_MIN / (1.0 - q)).round()
}

/// Applies `of` to both sides of each block; `None` if a value is missing in any block.
pub(super) fn side_values<'a, T>(blocks: &'a [Block], of: impl Fn(&'a Reading) -> Option<T>) -> Option<Vec<[T; 2]>> {
    let sides = |block: &'a Block| match block.readings.as_slice() {
        [a, b] => Some([of(a)?, of(b)?]),
        _ => None,
    };
    blocks.iter().map(sides).collect()
}

/// Returns the quantity of a measure; `None` if a block does not have the measure.
pub(super) fn quantity(blocks: &[Block], measure: Criterion) -> Option<Quantity<'_>> {
    if let Some(q) = quantile(measure) {
        return Some(Quantity::Quantile(q, side_values(blocks, |reading| Some(&reading.ledger))?));
    }
    Some(match measure {
        Criterion::Cpu => Quantity::Amounts(side_values(blocks, |reading| reading.cpu_ns)?),
        _ => Quantity::Counts(side_values(blocks, |reading| Some(reading.goodput))?),
    })
}

/// The minimum weight of a disturbed block, relative to the weight of an undisturbed block.
const BLOCK_WEIGHT_MIN: f64 = 0.1;
/// The smallest number of disturbed blocks, and of undisturbed blocks, for an estimate of their
/// scatter.
const WEIGHTED_BLOCKS_MIN: usize = 5;

impl Quantity<'_> {
    /// Returns ln(B/A) of each single block, where it is known.
    fn ratios_by_block(&self) -> Vec<f64> {
        match self {
            Quantity::Counts(blocks) | Quantity::Amounts(blocks) => {
                blocks.iter().map(|[a, b]| ((b.of / b.per) / (a.of / a.per)).ln()).collect()
            }
            Quantity::Quantile(q, blocks) => {
                blocks.iter().map(|[a, b]| (b.quantile_ns(*q) / a.quantile_ns(*q)).ln()).collect()
            }
        }
    }

    /// Returns the weight of each block. Disturbed blocks get less weight if they scatter more: the
    /// inverse ratio of the variances. Whether a block is disturbed comes from the machine's CPU
    /// times, and the scatter uses sizes without signs. So the direction of a block's result does
    /// not affect its weight, and the test keeps its error probability.
    fn weights(&self, blocks: &[Block]) -> Vec<f64> {
        let values = self.ratios_by_block();
        let middle = stats::median(&values).unwrap_or(0.0);
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

    /// Computes the effect of the quantity. A quantile needs enough requests beyond it on each
    /// side.
    pub(super) fn effect(&self, blocks: &[Block]) -> Result<ProvedEffect, EffectUnavailable> {
        let weights = self.weights(blocks);
        match self {
            Quantity::Counts(amounts) => {
                ProvedEffect::ratio_of_counts(amounts, &weights).ok_or(EffectUnavailable::NotTaken)
            }
            Quantity::Amounts(amounts) => {
                ProvedEffect::ratio_of_amounts(amounts, &weights).ok_or(EffectUnavailable::NotTaken)
            }
            Quantity::Quantile(q, times) => {
                let requests = |side: usize| times.iter().map(|block| block[side].scheduled as f64).sum::<f64>();
                let requests = requests(0).min(requests(1));
                match requests + 0.5 < requests_needed(*q) {
                    true => Err(EffectUnavailable::TooFew { q: *q, requests }),
                    false => ProvedEffect::ratio_of_quantiles(times, *q, &weights).ok_or(EffectUnavailable::NotTaken),
                }
            }
        }
    }
}

/// Computes the effect of B over A in one measure, from all given blocks.
pub(super) fn effect(blocks: &[Block], measure: Criterion) -> Result<ProvedEffect, EffectUnavailable> {
    quantity(blocks, measure).ok_or(EffectUnavailable::NotTaken)?.effect(blocks)
}

/// Returns ln(B/A) of each single block for a measure; empty if a block does not have the measure.
pub(super) fn ratios_by_block(blocks: &[Block], measure: Criterion) -> Vec<f64> {
    quantity(blocks, measure).map_or_else(Vec::new, |quantity| quantity.ratios_by_block())
}

/// Returns the blocks that are not void and have a value of the primary measure.
pub(super) fn valid_blocks(blocks: &[Block], primary: Criterion) -> Vec<Block> {
    let whole = |block: &&Block| block.readings.iter().all(|reading| reading.value(primary).is_some());
    blocks.iter().filter(|block| block.void().is_none()).filter(whole).cloned().collect()
}
