//! Estimates the number of blocks (paired loads) and the budget with which an inconclusive
//! comparison would give a verdict.

use super::comparison_blocks::ComparisonBlock;
use super::rules::{ComparisonRules, EffectUnavailable, effect_of_measure, quantile_requests_needed, valid_blocks};
use plimsoll_model::units::SECOND;
use plimsoll_model::{LoadPurpose, Trial};
use plimsoll_statistics::basics;

/// Number of standard errors of the estimate that must fit into the margin: 2.51 + 0.84. At the
/// last evaluation, the interval that must exclude 0 extends 2.51 standard errors to each side. In
/// four of five cases, the estimate is at most 0.84 standard errors below the true difference. So
/// in four of five cases, the comparison finds a difference as large as the margin. For identical
/// builds, 1.66 (half of the equivalence interval) plus 1.28 standard errors would be enough.
const MARGIN_STANDARD_ERRORS: f64 = 3.35;
/// Number of requests that the comparison of a quantile needs, as a multiple of the requests that
/// the quantile itself needs.
const QUANTILE_REQUESTS_FACTOR: f64 = 1.2;
/// Smallest number of blocks (paired loads) with which a verdict is possible.
const VERDICT_BLOCKS_MIN: usize = 10;

/// Estimates how many more blocks (paired loads) would give a verdict in four of five cases. The
/// total number of blocks is n = (3.35 s / margin)^2, where s is the standard deviation of a block.
/// The total number is at least 1.5 times the present number of blocks. If a quantile has too few
/// requests so far, the total is the number of blocks with enough requests.
pub(super) fn further_blocks_needed(settings: &ComparisonRules, blocks: &[ComparisonBlock]) -> usize {
    let n = blocks.len();
    let effect = match effect_of_measure(blocks, settings.primary) {
        Ok(effect) => effect,
        Err(EffectUnavailable::TooFewRequests { q, requests }) if requests > 0.0 => {
            let needed = (QUANTILE_REQUESTS_FACTOR * quantile_requests_needed(q) * n as f64 / requests).ceil() as usize;
            return needed.max(VERDICT_BLOCKS_MIN).saturating_sub(n).max(1);
        }
        Err(_) => return VERDICT_BLOCKS_MIN.saturating_sub(n).max(1),
    };
    // The standard deviation s of a block follows from the interval over n blocks, whose half-width
    // is z s / sqrt(n).
    let interval = effect.interval(0.05).filter(|interval| interval.half_width().is_finite());
    let Some(interval) = interval else { return VERDICT_BLOCKS_MIN.saturating_sub(n).max(1) };
    let spread = interval.half_width() * (n as f64).sqrt() / basics::upper_normal_quantile(0.975);
    // The assumed difference is the margin, or the estimate if the interval excludes 0 and the
    // estimate is larger than the margin.
    let likely = if interval.contains(0.0) { 0.0 } else { effect.estimate.abs() };
    let needed = (MARGIN_STANDARD_ERRORS * spread / (1.0 + settings.margin).ln().max(likely)).powi(2).ceil() as usize;
    needed.max(VERDICT_BLOCKS_MIN).saturating_sub(n).max(n / 2).max(1)
}

/// Estimates the budget with which the comparison would probably give a verdict, in ns, rounded up.
/// Returns `None` before the first load of a block (paired loads).
pub fn sufficient_budget_ns(settings: &ComparisonRules, blocks: &[ComparisonBlock], trials: &[Trial]) -> Option<u64> {
    let counted = valid_blocks(blocks, settings.primary);
    let of_blocks = || trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::Block);
    let began_ns = of_blocks().map(|trial| trial.start_ns).min()?;
    let ended_ns = of_blocks().map(|trial| trial.start_ns + trial.run.window_ns.1).max()?;
    let block_ns = ended_ns.saturating_sub(began_ns) as f64 / blocks.len().max(1) as f64;
    // The estimate assumes that the share of void blocks (blocks that do not count) stays constant.
    let share_void = blocks.len() as f64 / counted.len().max(1) as f64;
    let needed = (counted.len() + further_blocks_needed(settings, &counted)) as f64 * share_void;
    // The estimate includes one more block (paired loads), because a block begins only if it can
    // end within the budget.
    Some(round_up_budget(began_ns as f64 + block_ns * (needed + 1.0)))
}

/// Rounds a time in ns up to a round value that users write on a command line.
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
