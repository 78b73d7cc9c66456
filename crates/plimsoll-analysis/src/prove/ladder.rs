//! A ladder, one variable at a time: each rung does one thing more than the one before (an empty
//! endpoint, one with a cache lookup, one with a query). Results are shares of one another, and
//! costs of a request.
//!
//! There are no verdict and no looks: the budget decides the number of blocks, and the intervals
//! hold simultaneously over all rungs.

use super::looks::ERROR;
use super::reading::{self, Block};
use super::resample::{BlockAmount, ProvedEffect};
use super::stats::ConfidenceInterval;
use crate::doubts::{DoubtKind, Doubts};

/// One rung.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Goodput over all blocks.
    pub goodput_rps: f64,
    /// Goodput as a share of the rung before; `None` for the first.
    pub share: Option<f64>,
    /// Its interval; `None` for the first, or with too few blocks.
    pub share_interval: Option<ConfidenceInterval>,
    /// The added cost of a request over the rung before, in us of the whole server: the difference
    /// of 1/goodput. `None` for the first.
    pub cost_us: Option<f64>,
    /// Its interval.
    pub cost_us_interval: Option<ConfidenceInterval>,
}

/// All rungs.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// In the order given.
    pub rungs: Vec<Rung>,
    /// Blocks that count.
    pub blocks: usize,
    /// Blocks that say nothing: the generator was the limit, or nothing was answered in the time.
    pub blocks_void: usize,
    /// The evidence against these figures.
    pub doubts: Doubts,
}

/// The ladder of these blocks. `broken`: why the measurement ended early, if it did.
pub fn ladder(blocks: &[Block], rungs: usize, broken: Option<&str>) -> Ladder {
    // Without any response there is no cost.
    let known = |block: &&Block| {
        block.readings.iter().all(|reading| reading.goodput_rps().is_finite() && reading.goodput_rps() > 0.0)
    };
    let counted: Vec<&Block> = blocks.iter().filter(|block| block.void().is_none()).filter(known).collect();
    let column = |rung: usize| -> Vec<BlockAmount> {
        counted.iter().filter_map(|block| Some(block.readings.get(rung)?.goodput)).collect()
    };
    let rate = |amounts: &[BlockAmount]| {
        let sum = |of: fn(&BlockAmount) -> f64| amounts.iter().map(of).sum::<f64>();
        let per = sum(|amount| amount.per);
        if per > 0.0 { sum(|amount| amount.of) / per } else { 0.0 }
    };
    let alpha = ERROR / rungs.saturating_sub(1).max(1) as f64;
    let weights = vec![1.0; counted.len()];
    let mut out: Vec<Rung> = Vec::with_capacity(rungs);
    for rung in 0..rungs {
        let here = column(rung);
        let mut one =
            Rung { goodput_rps: rate(&here), share: None, share_interval: None, cost_us: None, cost_us_interval: None };
        if let Some(before) = rung.checked_sub(1).map(column) {
            let pairs: Vec<[BlockAmount; 2]> =
                before.iter().zip(&here).map(|(before, here)| [*before, *here]).collect();
            if let Some(effect) = ProvedEffect::of_amounts(&pairs, &weights) {
                one.share = Some(effect.estimate.exp());
                one.share_interval = effect.interval(alpha).map(|interval| interval.map(f64::exp));
            }
            if let Some(effect) = ProvedEffect::of_costs(&pairs) {
                one.cost_us = Some(effect.estimate);
                one.cost_us_interval = effect.interval(alpha);
            }
        }
        out.push(one);
    }
    let blocks_void = blocks.len() - counted.len();
    let mut doubts: Doubts = reading::void_blocks(blocks).into_iter().collect();
    if let Some(reason) = broken {
        doubts.add(DoubtKind::Ended, format!("the measurement broke off: {reason}"));
    }
    Ladder { rungs: out, blocks: counted.len(), blocks_void, doubts }
}
