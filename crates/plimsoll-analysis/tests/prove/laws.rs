//! Tests of properties of comparisons that hold for any measured values.

use super::truth::{EQUAL_BUILDS, QUIET, SimulatedComparison};
use plimsoll_analysis::prove::{
    BlockRatio, ComparisonBlock, ComparisonEnd, ConfidenceInterval, EffectEstimate, ProveVerdict,
    compute_comparison_result, shuffled_arm_order,
};
use proptest::prelude::*;

/// Generates the goodput of both sides for each block. In some cases, many values are equal.
fn block_goodput_pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop_oneof![
        proptest::collection::vec((1.0..9.0f64, 1.0..9.0f64), 1..30),
        proptest::collection::vec(((1..5i32).prop_map(f64::from), (1..5i32).prop_map(f64::from)), 1..30),
    ]
}

fn goodput_ratio_effect(values: &[(f64, f64)]) -> EffectEstimate {
    let amount = |of: f64| BlockRatio { numerator: of, divisor: 1.0 };
    let amounts: Vec<[BlockRatio; 2]> = values.iter().map(|(a, b)| [amount(*a), amount(*b)]).collect();
    EffectEstimate::ratio_of_amounts(&amounts, &vec![1.0; values.len()]).expect("blocks")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_estimated_ratio_scales_with_the_goodput(values in block_goodput_pairs(), factor in 0.1..10.0f64) {
        let faster: Vec<(f64, f64)> = values.iter().map(|(a, b)| (*a, b * factor)).collect();
        let turned: Vec<(f64, f64)> = values.iter().map(|(a, b)| (*b, *a)).collect();
        let of = goodput_ratio_effect(&values);
        prop_assert!((goodput_ratio_effect(&faster).estimate - of.estimate - factor.ln()).abs() < 1e-9);
        prop_assert!((goodput_ratio_effect(&turned).estimate + of.estimate).abs() < 1e-9);
        prop_assert!((goodput_ratio_effect(&turned).p_two_sided() - of.p_two_sided()).abs() < 1e-6);
    }

    #[test]
    fn p_is_at_least_the_smallest_possible_value(values in block_goodput_pairs()) {
        let p = goodput_ratio_effect(&values).p_two_sided();
        prop_assert!(p > 0.0 && p <= 1.0, "{p}");
        prop_assert!(p >= 2f64.powi(1 - values.len() as i32) * 0.999, "{p}: less than one in all sign changes");
    }

    #[test]
    fn the_interval_contains_the_estimate_and_widens_with_confidence(values in block_goodput_pairs()) {
        let effect = goodput_ratio_effect(&values);
        let mut wider: Option<ConfidenceInterval> = None;
        for alpha in [0.001, 0.01, 0.05, 0.2] {
            let Some(this) = effect.interval(alpha) else { continue };
            if let Some(wider) = wider {
                prop_assert!(wider.lower <= this.lower + 1e-9 && this.upper <= wider.upper + 1e-9);
            }
            wider = Some(this);
        }
    }

    /// Checks that the interval excludes exactly those values that the sign-flip test rejects.
    #[test]
    fn the_interval_excludes_what_the_test_rejects(values in proptest::collection::vec((1.0..9.0f64, 1.0..9.0f64), 8..30)) {
        for alpha in [0.2, 0.05, 0.02] {
            let effect = goodput_ratio_effect(&values);
            let excluded = effect.interval(alpha).is_some_and(|interval| !interval.contains(0.0));
            let near = (effect.p_two_sided() / alpha - 1.0).abs() < 0.02;
            prop_assert!(near || excluded == (effect.p_two_sided() <= alpha), "{alpha}: p {}", effect.p_two_sided());
        }
    }

    #[test]
    fn every_arm_occurs_in_every_block(seed: u64, block in 0..1000usize, arms in 2..9usize) {
        let mut places = shuffled_arm_order(seed, block, arms);
        prop_assert_eq!(&places, &shuffled_arm_order(seed, block, arms));
        places.sort_unstable();
        prop_assert_eq!(places, (0..arms as u8).collect::<Vec<_>>());
    }
}

/// Checks that swapping the builds swaps the verdict: if B is better than A, A is worse than B, by
/// the inverse ratio.
#[test]
fn swapping_the_builds_swaps_the_verdict() {
    for (seed, ratio) in (0..12).zip([0.7, 0.9, 0.97, 1.0, 1.03, 1.1, 1.4].into_iter().cycle()) {
        let world = SimulatedComparison { ratio, machine: QUIET, ..EQUAL_BUILDS };
        let blocks = world.blocks(seed, 24);
        let swapped: Vec<ComparisonBlock> =
            blocks.iter().map(|b| ComparisonBlock { arm_loads: b.arm_loads.iter().rev().cloned().collect() }).collect();
        let [one, other] = [&blocks, &swapped]
            .map(|blocks| compute_comparison_result(&world.rules(24), blocks, ComparisonEnd::BlocksMaxReached));
        for side in [ProveVerdict::Better, ProveVerdict::Worse] {
            assert!((one.verdict, other.verdict) != (side, side), "{one:?} and {other:?}");
        }
        assert!((one.measures[0].ratio * other.measures[0].ratio - 1.0).abs() < 1e-9);
    }
}

/// Checks that A comes first in a block as often as B. The order in a block does not depend on the
/// order in the previous block.
#[test]
fn block_orders_are_drawn_uniformly() {
    let first: Vec<bool> = (0..4000).map(|block| shuffled_arm_order(7, block, 2)[0] == 0).collect();
    let a_first = first.iter().filter(|first| **first).count();
    let changes = first.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((1850..2150).contains(&a_first) && (1850..2150).contains(&changes), "{a_first} {changes}");
}
