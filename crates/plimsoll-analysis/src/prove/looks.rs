//! The planned looks of a comparison, and the error of each: the total error is divided among them.
//!
//! Stopping at the first p < 0.05 after any block would be wrong far more often than one time in
//! twenty. So the looks are planned (after 10, 14, 20, 28, 40, ... blocks), and each has a part of
//! the error. The parts sum to the whole, so the guarantee holds over all looks together, whatever
//! their dependence.

use super::resample::ProvedEffect;
use super::stats::ConfidenceInterval;

/// The chance of an interval that misses the truth, over all looks of a comparison.
pub const ERROR: f64 = 0.05;
/// The chance of calling a difference of the declared measure real that is none, over all looks, by
/// the test of the mean: less than [`ERROR`], which the interval that is shown has, because a false
/// alarm costs more than some blocks.
pub const MEAN_ALARM_ERROR: f64 = 0.01;
/// The same by the test of ranks.
pub const RANKS_ALARM_ERROR: f64 = 0.005;
/// The chance of calling a fall in success real that is none, over all looks. All three make 2 %:
/// that of a false verdict.
pub const SUCCESS_ERROR: f64 = 0.005;
/// The part of the error reserved for the last look.
const LAST_PART: f64 = 0.6;
/// The same for the claim that any difference lies inside the margin: hardly ever certain before
/// the last look.
const LAST_EQUIVALENCE_PART: f64 = 0.96;
/// Fewer blocks than these are never looked at.
const FIRST_BLOCKS: f64 = 10.0;

/// The look of a comparison, which determines its part of the error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LookNumber {
    /// The n-th that may stop the comparison, from 1.
    Interim(u32),
    /// When the blocks or the budget are used up.
    Last,
}

impl LookNumber {
    /// Its part of the error: 1/2, 1/6, 1/12, ... of the rest, which add up to 1.
    pub fn part(self) -> f64 {
        match self {
            LookNumber::Interim(n) => (1.0 - LAST_PART) / (f64::from(n) * f64::from(n + 1)),
            LookNumber::Last => LAST_PART,
        }
    }

    /// Its part of the error of the claim that any difference lies inside the margin.
    fn equivalence_part(self) -> f64 {
        match self {
            LookNumber::Interim(_) => self.part() * (1.0 - LAST_EQUIVALENCE_PART) / (1.0 - LAST_PART),
            LookNumber::Last => LAST_EQUIVALENCE_PART,
        }
    }
}

/// The look that is planned after `blocks` blocks.
pub fn interim(blocks: usize) -> Option<LookNumber> {
    for look in 0..64 {
        // Even numbers: the control compares blocks two by two.
        let planned = (FIRST_BLOCKS / 2.0 * std::f64::consts::SQRT_2.powi(look as i32)).round() as usize * 2;
        if planned >= blocks {
            return (planned == blocks).then_some(LookNumber::Interim(look + 1));
        }
    }
    None
}

/// The differences of one measure at one look, in logarithms of B/A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Which look it is.
    pub number: LookNumber,
    /// The estimate.
    pub estimate: f64,
    /// Interval at the look's part of [`ERROR`]; `None` with too few blocks for it.
    pub interval: Option<ConfidenceInterval>,
    /// Interval at the look's part of [`MEAN_ALARM_ERROR`].
    pub wide: Option<ConfidenceInterval>,
    /// Interval for the claim that the difference lies inside the margin: two one-sided tests, each
    /// at its part of [`ERROR`], are an interval at twice that.
    pub equivalence: Option<ConfidenceInterval>,
    /// Two-sided p of no difference, of this look alone.
    pub p: f64,
}

impl Look {
    /// At an effect, where so many measures share the look's part of [`ERROR`].
    pub fn from_effect(effect: &ProvedEffect, number: LookNumber, family: usize) -> Look {
        let family = family.max(1) as f64;
        let share = ERROR / family;
        Look {
            number,
            estimate: effect.estimate,
            interval: effect.interval(share * number.part()),
            wide: effect.interval(MEAN_ALARM_ERROR / family * number.part()),
            equivalence: effect.interval(2.0 * share * number.equivalence_part()),
            p: effect.p(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_sum_up_to_the_whole() {
        let looks: Vec<(usize, f64)> =
            (0..4000).filter_map(|blocks| interim(blocks).map(|look| (blocks, look.part()))).collect();
        let first: Vec<usize> = looks.iter().map(|look| look.0).take(8).collect();
        assert_eq!(first, [10, 14, 20, 28, 40, 56, 80, 114]);
        let spent: f64 = looks.iter().map(|look| look.1).sum::<f64>() + LookNumber::Last.part();
        assert!((0.9..=1.0).contains(&spent), "{spent}");
        // Each early look has enough blocks to reject anything at its error: one value on one side
        // by chance, 2^(1-n).
        for (blocks, part) in looks {
            let least = 0.5f64.powi(blocks.min(1000) as i32 - 1);
            let is_enough = least <= part * MEAN_ALARM_ERROR && least / 2.0 <= part * SUCCESS_ERROR;
            assert!(is_enough, "{blocks}");
        }
    }
}
