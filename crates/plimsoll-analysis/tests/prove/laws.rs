//! What must hold for any values.

use plimsoll_analysis::prove::stats::{ConfidenceInterval, hodges_lehmann, interval, sign_flip_p};
use plimsoll_analysis::prove::{Block, ComparisonEnd, Criterion, ProveVerdict, Rules, conclude, order};
use proptest::prelude::*;

fn values() -> impl Strategy<Value = Vec<f64>> {
    // On a coarse grid now and then, so that ties and zeros occur.
    prop_oneof![
        proptest::collection::vec(-0.5..0.5f64, 1..40),
        proptest::collection::vec((-4..5i32).prop_map(|v| f64::from(v) / 8.0), 1..40),
    ]
}

proptest! {
    #[test]
    fn the_estimate_moves_with_the_values(values in values(), shift in -1.0..1.0f64) {
        let moved: Vec<f64> = values.iter().map(|v| v + shift).collect();
        let turned: Vec<f64> = values.iter().map(|v| -v).collect();
        let estimate = hodges_lehmann(&values).expect("values");
        prop_assert!((hodges_lehmann(&moved).expect("values") - estimate - shift).abs() < 1e-12);
        prop_assert!((hodges_lehmann(&turned).expect("values") + estimate).abs() < 1e-12);
        prop_assert!((sign_flip_p(&turned) - sign_flip_p(&values)).abs() < 1e-9);
    }

    #[test]
    fn p_is_a_probability_that_order_does_not_change(mut values in values()) {
        let p = sign_flip_p(&values);
        prop_assert!(p > 0.0 && p <= 1.0, "{p}");
        prop_assert!(p >= 2f64.powi(1 - values.len() as i32) * 0.999, "{p}: less than one in all sign changes");
        values.reverse();
        prop_assert!((sign_flip_p(&values) - p).abs() < 1e-12);
    }

    #[test]
    fn the_interval_holds_the_estimate_and_widens_with_certainty(values in values()) {
        let estimate = hodges_lehmann(&values).expect("values");
        let mut wider: Option<ConfidenceInterval> = None;
        for alpha in [0.001, 0.01, 0.05, 0.2] {
            let Some(this) = interval(&values, alpha) else { continue };
            prop_assert!(this.lower <= estimate && estimate <= this.upper);
            if let Some(wider) = wider {
                prop_assert!(wider.lower <= this.lower && this.upper <= wider.upper);
            }
            wider = Some(this);
        }
    }

    /// Without ties, what the interval leaves out is what the test rejects.
    #[test]
    fn the_interval_inverts_the_test(values in proptest::collection::vec(-0.5..0.5f64, 6..30), at in 0.0..1.0f64) {
        let alpha = 0.05;
        let interval = interval(&values, alpha).expect("six and more");
        let centre = interval.lower - 0.2 + at * (interval.upper - interval.lower + 0.4);
        let near = (centre - interval.lower).abs().min((centre - interval.upper).abs()) < 1e-9;
        let p = sign_flip_p(&values.iter().map(|v| v - centre).collect::<Vec<_>>());
        prop_assert!(near || (p > alpha) == interval.contains(centre), "{centre} in {interval:?}: p {p}");
    }

    #[test]
    fn every_arm_has_its_place_in_every_block(seed: u64, block in 0..1000usize, arms in 2..9usize) {
        let mut places = order(seed, block, arms);
        prop_assert_eq!(&places, &order(seed, block, arms));
        places.sort_unstable();
        prop_assert_eq!(places, (0..arms as u8).collect::<Vec<_>>());
    }

    /// What is better of B against A is worse of A against B, by the inverse ratio.
    #[test]
    fn swapping_the_builds_swaps_the_verdict(seed in 0..500u64, effect in -0.3..0.3f64) {
        let world = crate::simulator::World { effect, ..crate::simulator::HERE };
        let blocks = world.blocks(seed, 24);
        let swapped: Vec<Block> =
            blocks.iter().map(|b| Block { readings: b.readings.iter().rev().cloned().collect() }).collect();
        let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(24), seed };
        let (one, other) = (
            conclude(&settings, &blocks, ComparisonEnd::Blocks),
            conclude(&settings, &swapped, ComparisonEnd::Blocks),
        );
        // The control's labels are drawn anew, so the margin may differ a little: only the sides must not be mixed up.
        for side in [ProveVerdict::Better, ProveVerdict::Worse] {
            prop_assert!((one.verdict, other.verdict) != (side, side), "{one:?} and {other:?}");
        }
        prop_assert!((one.measures[0].ratio * other.measures[0].ratio - 1.0).abs() < 1e-9);
    }
}

/// The order is as often A first as B first, and blocks do not follow one another.
#[test]
fn the_order_is_drawn_evenly() {
    let first: Vec<bool> = (0..4000).map(|block| order(7, block, 2)[0] == 0).collect();
    let a_first = first.iter().filter(|first| **first).count();
    let changes = first.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((1850..2150).contains(&a_first) && (1850..2150).contains(&changes), "{a_first} {changes}");
}
