//! The result of a ladder. A ladder measures several endpoints ("rungs"), each of which does one
//! thing more than the rung before. For example, the first endpoint is empty, the second looks up a
//! cache, and the third runs a query. The result contains the throughput of each rung as a share of
//! the rung before, and the cost that each rung adds to a request.
//!
//! A ladder has no verdict, and is not evaluated early. The budget determines the number of blocks;
//! a block is one load on each rung (endpoint). The confidence level of the intervals applies to
//! all rungs (endpoints) together.

use super::comparison_blocks::{self, ComparisonBlock};
use super::evaluations::INTERVAL_ERROR_PROBABILITY;
use crate::doubts::{DoubtKind, Doubts};
use plimsoll_statistics::basics::ConfidenceInterval;
use plimsoll_statistics::resample::{BlockRatio, EffectEstimate};

/// The result of one rung (endpoint) of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Goodput of the rung (endpoint) over all blocks, 1/s.
    pub goodput_rps: f64,
    /// Goodput divided by the goodput of the rung (endpoint) before; `None` for the first rung.
    pub goodput_ratio: Option<f64>,
    /// Interval of `goodput_ratio`, the goodput relative to the rung (endpoint) before; `None` for
    /// the first rung, or with too few blocks.
    pub goodput_ratio_interval: Option<ConfidenceInterval>,
    /// The time that this rung (endpoint) adds to a request, in us: the increase of 1/goodput
    /// compared with the rung before. `None` for the first rung.
    pub cost_us: Option<f64>,
    /// Interval of `cost_us`, the added cost of a request; `None` for the first rung (endpoint), or
    /// with too few blocks.
    pub cost_us_interval: Option<ConfidenceInterval>,
}

/// The results of all rungs (endpoints) of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The rungs (endpoints) in the order of the command line.
    pub rungs: Vec<Rung>,
    /// Number of valid blocks; a block is one load on each rung (endpoint).
    pub blocks: usize,
    /// Number of blocks that do not count, because a load was void or a rung (endpoint) had no
    /// success.
    pub blocks_void: usize,
    /// The evidence against the figures of the ladder.
    pub doubts: Doubts,
}

/// Computes the ladder from these blocks (a block is one load on each rung). `broken` is the reason
/// why the measurement ended early, if it did.
pub fn compute_ladder(blocks: &[ComparisonBlock], rungs: usize, broken: Option<&str>) -> Ladder {
    // A block (one load on each rung) without a success on some rung does not count, because that
    // rung's cost per request is unknown.
    let known = |block: &&ComparisonBlock| {
        block.arm_loads.iter().all(|reading| reading.goodput_rps().is_finite() && reading.goodput_rps() > 0.0)
    };
    let counted: Vec<&ComparisonBlock> =
        blocks.iter().filter(|block| block.void_reason().is_none()).filter(known).collect();
    let column = |rung: usize| -> Vec<BlockRatio> {
        counted.iter().filter_map(|block| Some(block.arm_loads.get(rung)?.goodput)).collect()
    };
    let rate = |amounts: &[BlockRatio]| {
        let sum = |of: fn(&BlockRatio) -> f64| amounts.iter().map(of).sum::<f64>();
        let per = sum(|amount| amount.divisor);
        if per > 0.0 { sum(|amount| amount.numerator) / per } else { 0.0 }
    };
    let alpha = INTERVAL_ERROR_PROBABILITY / rungs.saturating_sub(1).max(1) as f64;
    let weights = vec![1.0; counted.len()];
    let mut out: Vec<Rung> = Vec::with_capacity(rungs);
    for rung in 0..rungs {
        let here = column(rung);
        let mut one = Rung {
            goodput_rps: rate(&here),
            goodput_ratio: None,
            goodput_ratio_interval: None,
            cost_us: None,
            cost_us_interval: None,
        };
        if let Some(before) = rung.checked_sub(1).map(column) {
            let pairs: Vec<[BlockRatio; 2]> = before.iter().zip(&here).map(|(before, here)| [*before, *here]).collect();
            if let Some(effect) = EffectEstimate::ratio_of_counts(&pairs, &weights) {
                one.goodput_ratio = Some(effect.estimate.exp());
                one.goodput_ratio_interval = effect.interval(alpha).map(|interval| interval.map(f64::exp));
            }
            if let Some(effect) = EffectEstimate::added_cost_us(&pairs) {
                one.cost_us = Some(effect.estimate);
                one.cost_us_interval = effect.interval(alpha);
            }
        }
        out.push(one);
    }
    let blocks_void = blocks.len() - counted.len();
    let mut doubts: Doubts = comparison_blocks::void_blocks_doubt(blocks).into_iter().collect();
    if let Some(reason) = broken {
        doubts.add(DoubtKind::Ended, format!("the measurement ended early: {reason}"));
    }
    Ladder { rungs: out, blocks: counted.len(), blocks_void, doubts }
}
