//! When a comparison may be looked at, and at which error: the chance of being wrong somewhere is spent in parts.
//!
//! Who looks after every block and stops at the first p < 0.05 is wrong far more often than one time in twenty. So the
//! looks that may stop a comparison are planned (after 10, 14, 20, 28, 40, ... blocks), and each has a part of the error
//! of its own; the parts sum up to the whole, so that it holds over all looks together, however they hang together.

use super::stats::{self, Interval};

/// The chance of an interval that misses the truth, over all looks of a comparison.
pub const ERROR: f64 = 0.05;
/// The chance of calling a difference real that is none, over all looks: less than [`ERROR`], which the interval that is
/// shown has, because a false alarm costs more than some blocks.
pub const ALARM_ERROR: f64 = 0.02;
/// The chance that the A/A control refuses a verdict although nothing is wrong, over all looks.
pub const CONTROL_ERROR: f64 = 0.01;
/// The part of the error kept for the last look: when the blocks or the budget are used up.
pub const LAST: f64 = 0.6;
/// The same for the claim that any difference lies inside the margin: hardly ever certain before the last look.
const LAST_EQUIVALENCE: f64 = 0.96;
/// Fewer blocks than these are never looked at.
const FIRST_BLOCKS: f64 = 10.0;

/// The part of the error spent by the look after `blocks` blocks; `None` when no look is planned there.
pub fn interim_part(blocks: usize) -> Option<f64> {
    for look in 0..64 {
        // Even numbers: the control compares blocks two by two.
        let planned = (FIRST_BLOCKS / 2.0 * std::f64::consts::SQRT_2.powi(look)).round() as usize * 2;
        if planned >= blocks {
            let (n, after) = (f64::from(look + 1), f64::from(look + 2));
            return (planned == blocks).then_some((1.0 - LAST) / (n * after));
        }
    }
    None
}

/// What the differences of one measure say at one look, in logarithms of B/A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Hodges-Lehmann estimate.
    pub estimate: f64,
    /// Interval at the look's part of [`ERROR`]; `None` with too few blocks for it.
    pub interval: Option<Interval>,
    /// Interval at the look's part of [`ALARM_ERROR`].
    pub wide: Option<Interval>,
    /// Interval for the claim that the difference lies inside the margin: two one-sided tests, each at its part of
    /// [`ERROR`], are an interval at twice that.
    pub equivalence: Option<Interval>,
    /// Two-sided p of no difference, of this look alone.
    pub p: f64,
}

impl Look {
    /// Of `values` at a look that spends `part` of [`ERROR`], shared by `family` measures; `None` without values.
    pub fn of(values: &[f64], part: f64, family: usize) -> Option<Look> {
        let family = family.max(1) as f64;
        let share = ERROR / family;
        let equivalence = match part {
            LAST => LAST_EQUIVALENCE,
            part => part * (1.0 - LAST_EQUIVALENCE) / (1.0 - LAST),
        };
        Some(Look {
            estimate: stats::hodges_lehmann(values)?,
            interval: stats::interval(values, share * part),
            wide: stats::interval(values, ALARM_ERROR / family * part),
            equivalence: stats::interval(values, 2.0 * share * equivalence),
            p: stats::sign_flip_p(values),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_sum_up_to_the_whole() {
        let looks: Vec<(usize, f64)> =
            (0..4000).filter_map(|blocks| interim_part(blocks).map(|part| (blocks, part))).collect();
        let first: Vec<usize> = looks.iter().map(|look| look.0).take(8).collect();
        assert_eq!(first, [10, 14, 20, 28, 40, 56, 80, 114]);
        let spent: f64 = looks.iter().map(|look| look.1).sum::<f64>() + LAST;
        assert!((0.9..=1.0).contains(&spent), "{spent}");
        // Each early look has enough blocks to reject anything at its error.
        for (blocks, part) in looks {
            assert!(stats::interval(&vec![1.0; blocks.min(60)], part * CONTROL_ERROR).is_some() || blocks < 14);
            assert!(stats::interval(&vec![1.0; blocks.min(60)], part * ALARM_ERROR).is_some(), "{blocks}");
        }
    }
}
