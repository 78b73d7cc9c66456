//! What is compared and how ([`Rules`]), and which blocks and figures of them count.

use super::reading::{Block, Reading};
use plimsoll_model::{Asked, Criterion, ProveAsked};

/// What is compared, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The measure that decides.
    pub primary: Criterion,
    /// Differences up to this share do not matter (0.02: 2 %).
    pub margin: f64,
    /// At most so many blocks.
    pub blocks_max: Option<usize>,
    /// The order of the arms, and the control's labels, follow from it.
    pub seed: u64,
}

impl Rules {
    /// The rules of what was asked; `None` where it was no comparison.
    pub fn of(asked: &Asked) -> Option<Rules> {
        let Asked::Prove(ProveAsked { blocks, criterion, margin, .. }) = asked else { return None };
        let blocks_max = blocks.blocks_max.map(|blocks| blocks as usize);
        Some(Rules { primary: *criterion, margin: *margin, blocks_max, seed: blocks.seed() })
    }
}

/// The logarithms of B/A of a measure, block by block, where both have it.
pub fn log_ratios(blocks: &[Block], measure: Criterion) -> Vec<f64> {
    log_ratios_by(blocks, |reading| reading.value(measure))
}

/// The same of any value of a load.
pub(super) fn log_ratios_by(blocks: &[Block], value: impl Fn(&Reading) -> Option<f64>) -> Vec<f64> {
    let of = |block: &Block| match block.readings.as_slice() {
        [a, b] => Some((value(b)? / value(a)?).ln()),
        _ => None,
    };
    blocks.iter().filter_map(of).collect()
}

/// The blocks that count.
pub(super) fn counting(blocks: &[Block], primary: Criterion) -> Vec<Block> {
    let whole = |block: &&Block| block.readings.iter().all(|reading| reading.value(primary).is_some());
    blocks.iter().filter(|block| block.void().is_none()).filter(whole).cloned().collect()
}
