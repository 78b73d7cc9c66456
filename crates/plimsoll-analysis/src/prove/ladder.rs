//! One variable at a time: rungs that each do one thing more than the one before (an empty endpoint, one with a cache
//! look-up, one with a query), as shares of one another and as cost a request.
//!
//! No verdict and no looks: the blocks are as many as the budget holds, and the intervals hold together over all rungs.

use super::looks::ERROR;
use super::reading::{self, Block};
use super::stats::{self, ConfidenceInterval};
use crate::doubts::{DoubtKind, Doubts};
use plimsoll_model::Criterion;

/// One rung.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Median goodput over the blocks.
    pub goodput_rps: f64,
    /// Goodput as a share of the rung before; `None` for the first.
    pub share: Option<f64>,
    /// Its interval; `None` for the first, or with too few blocks.
    pub share_interval: Option<ConfidenceInterval>,
    /// What a request costs more than on the rung before, in us of the whole server: 1/goodput of this one less 1/goodput
    /// of that one. `None` for the first.
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
    /// What speaks against these figures.
    pub doubts: Doubts,
}

/// What the blocks say of each rung. `broken`: why the measuring broke off, if it did.
pub fn ladder(blocks: &[Block], rungs: usize, broken: Option<&str>) -> Ladder {
    let counted: Vec<&Block> = blocks.iter().filter(|block| block.void().is_none()).collect();
    let column = |rung: usize| -> Vec<f64> {
        counted.iter().filter_map(|block| block.readings.get(rung)?.value(Criterion::Goodput)).collect()
    };
    let alpha = ERROR / rungs.saturating_sub(1).max(1) as f64;
    let mut out: Vec<Rung> = Vec::with_capacity(rungs);
    for rung in 0..rungs {
        let here = column(rung);
        let mut one = Rung {
            goodput_rps: stats::median(&here).unwrap_or(0.0),
            share: None,
            share_interval: None,
            cost_us: None,
            cost_us_interval: None,
        };
        if let Some(before) = rung.checked_sub(1).map(column) {
            let pairs = || here.iter().zip(&before);
            let shares: Vec<f64> = pairs().map(|(here, before)| (here / before).ln()).collect();
            let costs: Vec<f64> = pairs().map(|(here, before)| 1e6 / here - 1e6 / before).collect();
            one.share = stats::hodges_lehmann(&shares).map(f64::exp);
            one.share_interval = stats::interval(&shares, alpha).map(|interval| interval.map(f64::exp));
            one.cost_us = stats::hodges_lehmann(&costs);
            one.cost_us_interval = stats::interval(&costs, alpha);
        }
        out.push(one);
    }
    let blocks_void = blocks.len() - counted.len();
    let mut doubts = reading::void_blocks(blocks, counted.len());
    if let Some(reason) = broken {
        doubts.add(DoubtKind::Ended, format!("the measuring broke off: {reason}"));
    }
    Ladder { rungs: out, blocks: counted.len(), blocks_void, doubts }
}
