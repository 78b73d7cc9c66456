//! When a comparison may be evaluated, and with which error probability.
//!
//! A comparison that is evaluated after every block, and stops at the first p < 0.05, is wrong far
//! more often than one time in twenty. So the evaluations ("looks") that may stop a comparison are
//! planned: after 10, 14, 20, 28, 40, ... blocks. Each look gets its own part of the error
//! probability. The parts sum up to the whole error probability, so that it holds over all looks
//! together, however they correlate.

use super::resample::ProvedEffect;
use super::stats::ConfidenceInterval;

/// Probability that an interval misses the truth, over all looks of a comparison.
pub const ERROR: f64 = 0.05;
/// Probability of a false difference of the primary measure, over all looks, by the test of the
/// mean. This probability is smaller than [`ERROR`], which applies to the shown interval, because a
/// false alarm costs more than some blocks.
pub const MEAN_ALARM_ERROR: f64 = 0.01;
/// Probability of a false difference of the primary measure, over all looks, by the test of ranks.
pub const RANKS_ALARM_ERROR: f64 = 0.005;
/// Probability of a false fall in success, over all looks. The three probabilities sum up to 2 %,
/// the probability of a false verdict.
pub const SUCCESS_ERROR: f64 = 0.005;
/// The part of the error probability that is reserved for the last look.
const LAST_PART: f64 = 0.6;
/// The part of the error probability of the equivalence claim ("B is the same") that is reserved
/// for the last look. Earlier looks can hardly ever prove equivalence.
const LAST_EQUIVALENCE_PART: f64 = 0.96;
/// Number of blocks before the first look.
const FIRST_BLOCKS: f64 = 10.0;

/// The number of a look of a comparison, which determines its part of the error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LookNumber {
    /// The n-th look that may stop the comparison, from 1.
    Interim(u32),
    /// The look after the last block, or at the end of the budget.
    Last,
}

impl LookNumber {
    /// Returns the look's part of the error probability. The last look has a fixed part. The
    /// interim looks get 1/2, 1/6, 1/12, ... of the rest.
    pub fn part(self) -> f64 {
        match self {
            LookNumber::Interim(n) => (1.0 - LAST_PART) / (f64::from(n) * f64::from(n + 1)),
            LookNumber::Last => LAST_PART,
        }
    }

    /// Returns the look's part of the error probability of the equivalence claim.
    fn equivalence_part(self) -> f64 {
        match self {
            LookNumber::Interim(_) => self.part() * (1.0 - LAST_EQUIVALENCE_PART) / (1.0 - LAST_PART),
            LookNumber::Last => LAST_EQUIVALENCE_PART,
        }
    }
}

/// Returns the look that is planned after exactly `blocks` blocks; `None` if no look is planned
/// then.
pub fn interim(blocks: usize) -> Option<LookNumber> {
    for look in 0..64 {
        // The number of blocks is even, because the control compares blocks in pairs.
        let planned = (FIRST_BLOCKS / 2.0 * std::f64::consts::SQRT_2.powi(look as i32)).round() as usize * 2;
        if planned >= blocks {
            return (planned == blocks).then_some(LookNumber::Interim(look + 1));
        }
    }
    None
}

/// The difference of one measure at one look, in logarithms of B/A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The number of the look.
    pub number: LookNumber,
    /// The estimate of ln(B/A), from all valid blocks.
    pub estimate: f64,
    /// Interval of the estimate at the look's part of [`ERROR`]; `None` with too few blocks.
    pub interval: Option<ConfidenceInterval>,
    /// Interval of the estimate at the look's part of [`MEAN_ALARM_ERROR`].
    pub wide: Option<ConfidenceInterval>,
    /// Interval for the equivalence claim ("B is the same"). The interval combines two one-sided
    /// tests, each at the look's part of [`ERROR`], so its own error is twice that part.
    pub equivalence: Option<ConfidenceInterval>,
    /// Two-sided p-value of the hypothesis "no difference", for this look alone.
    pub p: f64,
}

impl Look {
    /// Evaluates an effect at a look; `family` measures share the look's part of [`ERROR`].
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
        // Each early look has enough blocks to reject at its error probability. If all blocks
        // favour one side, p is 2^(1-n).
        for (blocks, part) in looks {
            let least = 0.5f64.powi(blocks.min(1000) as i32 - 1);
            let is_enough = least <= part * MEAN_ALARM_ERROR && least / 2.0 <= part * SUCCESS_ERROR;
            assert!(is_enough, "{blocks}");
        }
    }
}
