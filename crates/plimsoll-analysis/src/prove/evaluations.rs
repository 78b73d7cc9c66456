//! The evaluations of a comparison: when they are planned, and their error probabilities.
//!
//! A comparison that is evaluated after every block and stops at the first p < 0.05 has an error
//! rate far above 5 %. So the evaluations that may stop a comparison are planned: after 10, 14, 20,
//! 28, 40, ... blocks. Each evaluation gets a part of the error probability, and the parts sum up
//! to the whole. So the error probability holds over all evaluations together, however they
//! correlate.

use plimsoll_statistics::basics::ConfidenceInterval;
use plimsoll_statistics::resample::EffectEstimate;

/// Probability that an interval misses the true value, over all evaluations of a comparison
/// together.
pub const INTERVAL_ERROR_PROBABILITY: f64 = 0.05;
/// Probability that the test of the mean finds a false difference in the primary measure, over all
/// evaluations together. This probability is smaller than [`INTERVAL_ERROR_PROBABILITY`], the error
/// probability of the stated interval, because a false alarm costs more than some additional
/// blocks.
pub const MEAN_FALSE_ALARM_PROBABILITY: f64 = 0.01;
/// Probability that the test of the ranks finds a false difference in the primary measure, over all
/// evaluations together.
pub const RANKS_FALSE_ALARM_PROBABILITY: f64 = 0.005;
/// Probability that the comparison finds a fall of the success rate although there is none, over
/// all evaluations together. The sum of this probability, [`MEAN_FALSE_ALARM_PROBABILITY`] and
/// [`RANKS_FALSE_ALARM_PROBABILITY`] is 2 %, the probability of a false verdict.
pub const SUCCESS_FALSE_ALARM_PROBABILITY: f64 = 0.005;
/// The part of each error probability that is reserved for the last evaluation.
const LAST_EVALUATION_PART: f64 = 0.6;
/// The last evaluation's part of the error probability of the equivalence claim. The equivalence
/// claim is "B is the same". The last evaluation gets nearly the whole error probability, because
/// earlier evaluations almost never prove the equivalence claim.
const LAST_EVALUATION_EQUIVALENCE_PART: f64 = 0.96;
/// Number of blocks (paired loads of A and B) after which the first evaluation is planned.
const FIRST_EVALUATION_BLOCKS: f64 = 10.0;

/// Which evaluation of a comparison: an interim evaluation with its number, or the last evaluation.
/// The number determines the evaluation's part of the error probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EvaluationNumber {
    /// The n-th evaluation that may stop the comparison, counted from 1.
    Interim(u32),
    /// The evaluation after the last block (paired loads), or at the end of the budget.
    Last,
}

impl EvaluationNumber {
    /// Returns the part of the comparison's error probability that this evaluation may use. The
    /// last evaluation gets `LAST_EVALUATION_PART`. The interim evaluations get 1/2, 1/6, 1/12, ...
    /// of the remaining error probability.
    pub fn error_part(self) -> f64 {
        match self {
            EvaluationNumber::Interim(n) => (1.0 - LAST_EVALUATION_PART) / (f64::from(n) * f64::from(n + 1)),
            EvaluationNumber::Last => LAST_EVALUATION_PART,
        }
    }

    /// Returns this evaluation's part of the error probability of the equivalence claim ("B is the
    /// same").
    fn equivalence_error_part(self) -> f64 {
        match self {
            EvaluationNumber::Interim(_) => {
                self.error_part() * (1.0 - LAST_EVALUATION_EQUIVALENCE_PART) / (1.0 - LAST_EVALUATION_PART)
            }
            EvaluationNumber::Last => LAST_EVALUATION_EQUIVALENCE_PART,
        }
    }
}

/// Returns the evaluation that is planned after exactly `blocks` blocks; `None` if no evaluation is
/// planned after this number of blocks.
pub fn planned_evaluation(blocks: usize) -> Option<EvaluationNumber> {
    for index in 0..64 {
        // Each planned number of blocks is even, and about sqrt(2) times the previous planned
        // number.
        let planned =
            (FIRST_EVALUATION_BLOCKS / 2.0 * std::f64::consts::SQRT_2.powi(index as i32)).round() as usize * 2;
        if planned >= blocks {
            return (planned == blocks).then_some(EvaluationNumber::Interim(index + 1));
        }
    }
    None
}

/// The effect of B compared with A in one measure at one evaluation, in logarithms of B/A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvaluationResult {
    /// Which evaluation of the comparison gave these figures.
    pub number: EvaluationNumber,
    /// The estimate of ln(B/A), from all valid blocks.
    pub estimate: f64,
    /// Interval of the estimate, at this evaluation's part of [`INTERVAL_ERROR_PROBABILITY`];
    /// `None` with too few blocks (paired loads).
    pub interval: Option<ConfidenceInterval>,
    /// Interval of the estimate, at this evaluation's part of [`MEAN_FALSE_ALARM_PROBABILITY`];
    /// `None` with too few blocks (paired loads).
    pub alarm_interval: Option<ConfidenceInterval>,
    /// Interval for the equivalence claim ("B is the same"). The interval combines two one-sided
    /// tests, each with this evaluation's part of [`INTERVAL_ERROR_PROBABILITY`]. So the error
    /// probability of the interval is twice the error probability of one test.
    pub equivalence: Option<ConfidenceInterval>,
    /// Two-sided p-value of the hypothesis "no difference", for this evaluation alone.
    pub p: f64,
    /// Whether the estimate exceeds the resolution of the measure, and so can be a real difference.
    pub is_resolved: bool,
}

impl EvaluationResult {
    /// Computes the result of one evaluation of `effect`. The evaluation's part of
    /// [`INTERVAL_ERROR_PROBABILITY`] is divided among `family` measures.
    pub fn from_effect(effect: &EffectEstimate, number: EvaluationNumber, family: usize) -> EvaluationResult {
        let family = family.max(1) as f64;
        let share = INTERVAL_ERROR_PROBABILITY / family;
        EvaluationResult {
            number,
            estimate: effect.estimate,
            interval: effect.interval(share * number.error_part()),
            alarm_interval: effect.interval(MEAN_FALSE_ALARM_PROBABILITY / family * number.error_part()),
            equivalence: effect.interval(2.0 * share * number.equivalence_error_part()),
            p: effect.p_two_sided(),
            is_resolved: effect.is_resolved(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_probabilities_of_evaluations_sum_up() {
        let evaluations: Vec<(usize, f64)> = (0..4000)
            .filter_map(|blocks| planned_evaluation(blocks).map(|evaluation| (blocks, evaluation.error_part())))
            .collect();
        let first: Vec<usize> = evaluations.iter().map(|evaluation| evaluation.0).take(8).collect();
        assert_eq!(first, [10, 14, 20, 28, 40, 56, 80, 114]);
        let spent: f64 =
            evaluations.iter().map(|evaluation| evaluation.1).sum::<f64>() + EvaluationNumber::Last.error_part();
        assert!((0.9..=1.0).contains(&spent), "{spent}");
        // Each interim evaluation has enough blocks to reject the hypothesis "no difference" at its
        // own error probability. If all n blocks favour one side, the p-value is 2^(1-n).
        for (blocks, part) in evaluations {
            let least = 0.5f64.powi(blocks.min(1000) as i32 - 1);
            let is_enough =
                least <= part * MEAN_FALSE_ALARM_PROBABILITY && least / 2.0 <= part * SUCCESS_FALSE_ALARM_PROBABILITY;
            assert!(is_enough, "{blocks}");
        }
    }
}
