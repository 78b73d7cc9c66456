//! Estimates the number of blocks (paired loads) and the budget that an inconclusive comparison
//! needs for a verdict.

use super::reading::Block;
use super::rules::{EffectUnavailable, Rules, effect, requests_needed, valid_blocks};
use super::stats;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Purpose, Trial};

/// The margin of a comparison must be this number of standard errors of the estimate. Half the
/// interval that must exclude 0 at the last evaluation is 2.51 standard errors. In four of five
/// cases the estimate is at most 0.84 below the truth. Then a difference as large as the margin is
/// found. Identical builds need half of the equivalence interval (1.66) plus 1.28, which is less.
const MARGIN_STANDARD_ERRORS: f64 = 3.35;
/// A comparison of a quantile needs this multiple of the requests with which the quantile may be
/// shown.
const QUANTILE_REQUESTS_FACTOR: f64 = 1.2;
/// Smallest number of blocks for a verdict.
const VERDICT_BLOCKS_MIN: usize = 10;

/// Estimates how many more blocks would decide in four of five cases. The total number is n = (3.35
/// s / margin)^2, and at least 1.5 times the present number. For a quantile, the total number is
/// the number of blocks that have enough requests.
pub(super) fn blocks_more(settings: &Rules, counted: &[Block]) -> usize {
    let n = counted.len();
    let effect = match effect(counted, settings.primary) {
        Ok(effect) => effect,
        Err(EffectUnavailable::TooFew { q, requests }) if requests > 0.0 => {
            let needed = (QUANTILE_REQUESTS_FACTOR * requests_needed(q) * n as f64 / requests).ceil() as usize;
            return needed.max(VERDICT_BLOCKS_MIN).saturating_sub(n).max(1);
        }
        Err(_) => return VERDICT_BLOCKS_MIN.saturating_sub(n).max(1),
    };
    // The standard deviation s follows from the interval, whose half-width is z s / sqrt(n).
    let interval = effect.interval(0.05).filter(|interval| interval.half_width().is_finite());
    let Some(interval) = interval else { return VERDICT_BLOCKS_MIN.saturating_sub(n).max(1) };
    let spread = interval.half_width() * (n as f64).sqrt() / stats::normal_quantile(0.975);
    // If a difference is likely, its estimate is used. Otherwise the difference is assumed to equal
    // the margin.
    let likely = if interval.contains(0.0) { 0.0 } else { effect.estimate.abs() };
    let needed = (MARGIN_STANDARD_ERRORS * spread / (1.0 + settings.margin).ln().max(likely)).powi(2).ceil() as usize;
    needed.max(VERDICT_BLOCKS_MIN).saturating_sub(n).max(n / 2).max(1)
}

/// Estimates the budget with which the comparison would probably decide, in ns, rounded up; `None`
/// before the first block.
pub fn budget_enough_ns(settings: &Rules, blocks: &[Block], trials: &[Trial]) -> Option<u64> {
    let counted = valid_blocks(blocks, settings.primary);
    let of_blocks = || trials.iter().filter(|trial| trial.tag.purpose == Purpose::Block);
    let began_ns = of_blocks().map(|trial| trial.start_ns).min()?;
    let ended_ns = of_blocks().map(|trial| trial.start_ns + trial.run.window_ns.1).max()?;
    let block_ns = ended_ns.saturating_sub(began_ns) as f64 / blocks.len().max(1) as f64;
    // The share of void blocks is assumed to stay constant.
    let share_void = blocks.len() as f64 / counted.len().max(1) as f64;
    let needed = (counted.len() + blocks_more(settings, &counted)) as f64 * share_void;
    // One block is added, because no block begins that would end after the budget.
    Some(round_up_budget(began_ns as f64 + block_ns * (needed + 1.0)))
}

/// Rounds a time in ns up to a value that users write on a command line.
fn round_up_budget(ns: f64) -> u64 {
    let s = (ns / SECOND as f64).ceil() as u64;
    let step = match s {
        0..=60 => 5,
        61..=120 => 30,
        121..=600 => 60,
        601..=7200 => 300,
        _ => 3600,
    };
    s.next_multiple_of(step).saturating_mul(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_budgets_are_rounded_up() {
        for (s, expect) in
            [(0.2, 5), (31.0, 35), (60.0, 60), (61.0, 90), (121.0, 180), (599.0, 600), (601.0, 900), (7201.0, 10_800)]
        {
            assert_eq!(round_up_budget(s * 1e9), expect * SECOND, "{s}");
        }
    }
}
