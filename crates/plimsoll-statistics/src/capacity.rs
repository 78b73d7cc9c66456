//! The capacity of a server ([`Capacity`]): its throughput while requests always wait. The capacity
//! comes from trials in which the server's queue was never empty.
//!
//! Completions of a saturated server resemble a renewal process. The number of completions in time
//! T has mean C T and variance I C T, where C is the capacity. In the variance I C T, I is the
//! index of dispersion of the completions: 1 for exponential service times, 0 for constant service
//! times. So N completions give the capacity with a relative error of sqrt(I / N), where I is the
//! index of dispersion. If the process or machine changes, the rates of trials differ by more than
//! their statistical errors. The variation between trials is added to the error of the capacity.
//!
//! Sources: Whitt, "Planning queueing simulations", 1989 (asymptotic variance of counts);
//! DerSimonian and Laird, 1986 (variance between trials by moments).
//!
//! Not here: the latency below capacity ([`crate::line_distribution`]).

use crate::normal::{normal_density_and_upper_tail, upper_tail};

/// The completions of a server in a period in which its queue was never empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// Number of successful completions, in the unit of the offered load.
    pub completed: f64,
    /// The length of the period, in seconds.
    pub seconds: f64,
    /// Index of dispersion of the completions: the variance of their counts in pieces (intervals)
    /// of equal length, divided by the mean count. The index is 1 for exponential service times,
    /// and 0 for constant service times.
    pub dispersion: f64,
    /// The number of pieces (intervals) from which `dispersion` is computed.
    pub pieces: f64,
}

/// One trial in which the server was saturated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturatedTrial {
    /// The completions of the trial.
    pub saturation: Saturation,
    /// Whether probes observed that other processes disturbed the trial.
    pub is_disturbed: bool,
}

/// Prior probability that a trial is disturbed although no probe observed interference. A disturbed
/// trial may have any rate from zero to the capacity, all equally probable. If disturbed trials had
/// a positive minimum rate, a trial below the minimum would pull the estimate of the capacity down.
const DISTURBED_PRIOR: f64 = 0.1;
/// Prior probability that a trial is disturbed if probes observed interference.
const DISTURBED_PRIOR_WITH_INTERFERENCE: f64 = 0.5;
/// The share of disturbed trials whose rate is above the capacity, because the server had another
/// capacity during the trial. The speed-up factor has no upper bound (Pareto distribution, exponent
/// 1).
const SPED_UP_SHARE_OF_DISTURBED: f64 = 0.2;
/// If a larger share of the trials than this value looks disturbed, the capacity of the server
/// itself is assumed to vary. For a server that varies, the estimate of the capacity and its error
/// come from all trials.
const DISTURBED_TRIALS_SHARE_MAX: f64 = 0.34;
/// Trials differ by more than chance if Cochran's Q exceeds its mean by this number of standard
/// deviations (one-sided 0.1 %).
const COCHRAN_Q_DEVIATIONS: f64 = 3.1;
/// If some trials are ignored as disturbed, other trials are probably disturbed, too, but too
/// little to be detected. So the relative error of the capacity grows by this multiple of the share
/// of ignored trials.
const UNDETECTED_DISTURBANCE_FACTOR: f64 = 0.5;
/// Fewer saturated trials than this number do not show how much the capacity varies between trials.
const FEW_TRIALS: usize = 4;
/// The relative variation of the capacity between trials that is assumed, without a measurement, if
/// there are fewer than [`FEW_TRIALS`] trials.
const USUAL_VARIATION: f64 = 0.01;
/// The minimum standard error of a capacity, as a share of the capacity. In each trial, plimsoll
/// sees the last completion of a window up to 1 ms late, so more trials do not reduce this error.
const ERROR_SHARE_MIN: f64 = 0.0005;
/// Number of grid points over possible capacities, for each pass. The first pass covers the whole
/// range of capacities, and each later pass covers the probable part of the range. A pass is left
/// out if its points would be further apart than the points of the pass before. Points that are far
/// apart would miss the narrow peaks of trials that contradict each other.
const CAPACITY_GRID_POINTS: [usize; 3] = [801, 201, 201];
/// The grid of capacities extends beyond the trials' rates by this number of standard errors of
/// the least exact trial.
const GRID_ERRORS: f64 = 6.0;
/// The minimum number of completions of a trial that gives an estimate of the dispersion.
const COMPLETED_MIN: f64 = 8.0;

/// The throughput of a server while requests always wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The capacity, completions a second.
    pub rps: f64,
    /// Standard error of `rps`, 1/s.
    pub error_rps: f64,
    /// Index of dispersion of the completions (variance divided by mean of their counts). The index
    /// includes the variation between trials.
    pub dispersion: f64,
    /// Number of time intervals from which `dispersion` is computed.
    pub pieces: f64,
    /// Number of trials that count as undisturbed.
    pub undisturbed_trials: usize,
    /// Number of trials that count as disturbed.
    pub disturbed_trials: usize,
    /// Total length of all trials in which the server was saturated, s.
    pub seconds: f64,
    /// Whether the server rejects surplus requests, so that some completions are failures.
    pub rejects: bool,
}

/// Half the width of the 90 % confidence interval of a normally distributed estimate, in standard
/// errors.
pub const INTERVAL_90_STANDARD_ERRORS: f64 = 1.645;

impl Capacity {
    /// Returns the ends of the capacity's 90 % confidence interval, 1/s, the lower end first.
    pub fn interval_90_rps(&self) -> (f64, f64) {
        let half_rps = INTERVAL_90_STANDARD_ERRORS * self.error_rps;
        (self.rps - half_rps, self.rps + half_rps)
    }
}

/// The rate of a trial in which the server was saturated, and the standard error of the rate, both
/// 1/s. `disturbed` is the prior probability that the trial was disturbed.
#[derive(Clone, Copy)]
struct SaturatedRate {
    saturation: Saturation,
    rps: f64,
    error_rps: f64,
    disturbed: f64,
}

/// The likelihood of a trial's rate, as a function of the capacity.
struct RateLikelihood {
    trial: SaturatedRate,
    /// The standard error of the trial's rate as a measurement of the capacity, 1/s.
    error_rps: f64,
    /// Probability that the random error of the rate is larger than the rate itself.
    tail_beyond_rate: f64,
}

impl RateLikelihood {
    /// `between` is the variance between trials, (1/s)^2.
    fn new(trial: SaturatedRate, between: f64) -> RateLikelihood {
        let error_rps = (trial.error_rps.powi(2) + between).sqrt();
        RateLikelihood { trial, error_rps, tail_beyond_rate: upper_tail(trial.rps / error_rps) }
    }

    /// Returns two likelihoods of the trial's rate if the capacity is `rps`: for an undisturbed
    /// trial, and for a disturbed trial. Each likelihood is multiplied by its prior probability.
    fn prior_weighted(&self, rps: f64) -> (f64, f64) {
        let z = (self.trial.rps - rps) / self.error_rps;
        let (density, below) = normal_density_and_upper_tail(z);
        let quiet = density / self.error_rps;
        // Probability that the true rate of the trial is above the capacity, given the error.
        let above = 1.0 - below;
        let slower = (below - self.tail_beyond_rate).max(0.0) / rps.max(1e-12);
        let faster = above * rps / self.trial.rps.max(rps / 2.0).powi(2).max(1e-12);
        let disturbed = (1.0 - SPED_UP_SHARE_OF_DISTURBED) * slower + SPED_UP_SHARE_OF_DISTURBED * faster;
        ((1.0 - self.trial.disturbed) * quiet, self.trial.disturbed * disturbed)
    }
}

impl Capacity {
    /// Computes the capacity from trials in which the server was saturated; `None` without a
    /// completion. If probes observed interference in at least half of the trials, the result is
    /// the capacity of the disturbed machine. `service_s` is the mean service time of a request, in
    /// s, measured with a single user. `rejects` says whether the server rejects surplus requests.
    pub fn from_trials(trials: &[SaturatedTrial], service_s: f64, rejects: bool) -> Option<Capacity> {
        let mut capacity = Capacity::from_trials_without_common_errors(trials)?;
        // Constant service times may synchronise all workers. If workers are synchronised, the
        // measured window of each trial contains up to one completion per worker too many or too
        // few.
        let in_step = (1.0 - capacity.dispersion).clamp(0.0, 1.0);
        let each_s = capacity.seconds / trials.len() as f64;
        let edge_rps = in_step * capacity.rps * service_s / each_s / 3f64.sqrt();
        capacity.error_rps = capacity.error_rps.hypot(edge_rps).hypot(ERROR_SHARE_MIN * capacity.rps);
        capacity.rejects = rejects;
        Some(capacity)
    }

    /// Computes the capacity from all trials together. [`Capacity::from_trials`] adds the errors
    /// that are equal in all trials.
    fn from_trials_without_common_errors(trials: &[SaturatedTrial]) -> Option<Capacity> {
        let disturbed = trials.iter().filter(|trial| trial.is_disturbed).count();
        let usual = disturbed * 2 >= trials.len();
        let saturations = || trials.iter().map(|trial| trial.saturation);
        let (completed, seconds) = saturations().fold((0.0, 0.0), |sum, it| (sum.0 + it.completed, sum.1 + it.seconds));
        if seconds <= 0.0 || completed <= 0.0 {
            return None;
        }
        let blocks = |dispersion: f64| -> Vec<SaturatedRate> {
            let block = |SaturatedTrial { saturation: it, is_disturbed }: &SaturatedTrial| SaturatedRate {
                saturation: *it,
                rps: it.completed / it.seconds,
                // A count of completions is a whole number, so its error is at least half a
                // completion.
                error_rps: (dispersion * completed / seconds * it.seconds).sqrt().max(0.5) / it.seconds,
                disturbed: if *is_disturbed && !usual { DISTURBED_PRIOR_WITH_INTERFERENCE } else { DISTURBED_PRIOR },
            };
            trials.iter().map(block).collect()
        };
        // The first estimate of the dispersion is the median over trials, because completions in
        // disturbed trials are slower and come in larger groups.
        let mut dispersions: Vec<f64> =
            saturations().filter(|it| it.completed >= COMPLETED_MIN).map(|it| it.dispersion).collect();
        dispersions.sort_by(f64::total_cmp);
        let first = dispersions.get(dispersions.len() / 2).copied().unwrap_or(1.0);
        let (rps, _) = capacity_posterior(&blocks(first), 0.0)?;
        let quiet = |blocks: &[SaturatedRate], rps: f64| -> Vec<SaturatedRate> {
            let is_quiet = |block: &&SaturatedRate| {
                let (quiet, disturbed) = RateLikelihood::new(**block, 0.0).prior_weighted(rps);
                quiet >= disturbed
            };
            blocks.iter().filter(is_quiet).copied().collect()
        };
        let kept = quiet(&blocks(first), rps);
        let told =
            || kept.iter().map(|block| block.saturation).filter(|it| it.completed >= COMPLETED_MIN && it.pieces >= 2.0);
        let freedom: f64 = told().map(|it| it.pieces - 1.0).sum();
        let (dispersion, pieces) = match freedom {
            freedom if freedom > 0.0 => {
                (told().map(|it| it.dispersion * (it.pieces - 1.0)).sum::<f64>() / freedom, freedom + 1.0)
            }
            _ => (first, 2.0),
        };
        let blocks = blocks(dispersion);
        let kept = quiet(&blocks, rps);
        let between = variance_between_trials(&kept);
        let (mut rps, mut error_rps) = capacity_posterior(&blocks, between)?;
        if blocks.len() > 2 && (blocks.len() - kept.len()) as f64 > DISTURBED_TRIALS_SHARE_MAX * blocks.len() as f64 {
            let n = blocks.len() as f64;
            rps = blocks.iter().map(|block| block.rps).sum::<f64>() / n;
            error_rps = (blocks.iter().map(|block| (block.rps - rps).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        }
        if blocks.len() < FEW_TRIALS {
            error_rps = error_rps.hypot(USUAL_VARIATION * rps / (blocks.len() as f64).sqrt());
        }
        error_rps *= 1.0 + UNDETECTED_DISTURBANCE_FACTOR * (blocks.len() - kept.len()) as f64 / blocks.len() as f64;
        let each_s = seconds / blocks.len() as f64;
        Some(Capacity {
            rps,
            error_rps,
            // Adds the variance of the number of completions between trials, divided by the mean
            // number of completions of a trial.
            dispersion: dispersion + between * each_s / rps.max(1e-9),
            pieces,
            undisturbed_trials: kept.len(),
            disturbed_trials: blocks.len() - kept.len(),
            seconds,
            rejects: false,
        })
    }
}

/// Returns the variance of the rates between trials beyond chance, (1/s)^2 (DerSimonian and Laird).
/// Returns 0 if chance explains the differences between the trials.
fn variance_between_trials(trial_rates: &[SaturatedRate]) -> f64 {
    let freedom = trial_rates.len() as f64 - 1.0;
    let weights: Vec<f64> = trial_rates.iter().map(|block| block.error_rps.powi(-2)).collect();
    let sum: f64 = weights.iter().sum();
    let mean = trial_rates.iter().zip(&weights).map(|(block, weight)| weight * block.rps).sum::<f64>() / sum;
    let q: f64 = trial_rates.iter().map(|block| ((block.rps - mean) / block.error_rps).powi(2)).sum();
    if freedom < 1.0 || q <= freedom + COCHRAN_Q_DEVIATIONS * (2.0 * freedom).sqrt() {
        return 0.0;
    }
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    (q - freedom) / (sum - squares / sum)
}

/// Returns the mean and the standard deviation of the capacity, 1/s, given these trials. The mean
/// and the deviation allow for the possibility that any trial was disturbed. `between` is the
/// variance between trials.
fn capacity_posterior(trial_rates: &[SaturatedRate], between: f64) -> Option<(f64, f64)> {
    let rates = || trial_rates.iter().map(|block| block.rps);
    let likelihoods: Vec<RateLikelihood> =
        trial_rates.iter().map(|trial| RateLikelihood::new(*trial, between)).collect();
    let error = likelihoods.iter().map(|it| it.error_rps).fold(0.0, f64::max);
    let low = (rates().fold(f64::INFINITY, f64::min) - GRID_ERRORS * error).max(1e-9);
    let high = rates().fold(0.0, f64::max) + GRID_ERRORS * error;
    let mut area = (low, high);
    let mut found = None;
    let mut last_step = f64::INFINITY;
    for points in CAPACITY_GRID_POINTS {
        let step = (area.1 - area.0) / (points - 1) as f64;
        if step >= last_step {
            break;
        }
        last_step = step;
        let at = |point: usize| area.0 + step * point as f64;
        let ln = |rps: f64| -> f64 {
            // Likelihoods are multiplied, and one logarithm is taken of the product, because this
            // is faster than a logarithm of each likelihood. The logarithm is added to the sum
            // before the product becomes too small or too large for a number.
            let (mut sum, mut product) = (0.0, 1.0);
            for likelihood in &likelihoods {
                let (quiet, disturbed) = likelihood.prior_weighted(rps);
                product *= (quiet + disturbed).clamp(1e-100, 1e100);
                if !(1e-150..1e150).contains(&product) {
                    sum += product.ln();
                    product = 1.0;
                }
            }
            sum + product.ln()
        };
        let logs: Vec<f64> = (0..points).map(|point| ln(at(point))).collect();
        let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|ln| (ln - best).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mean = (0..points).map(|point| at(point) * weights[point]).sum::<f64>() / sum;
        let variance = (0..points).map(|point| (at(point) - mean).powi(2) * weights[point]).sum::<f64>() / sum;
        found = Some((mean, variance.sqrt()));
        let reach = (GRID_ERRORS * variance.sqrt()).max(2.0 * step);
        area = ((mean - reach).max(1e-9), mean + reach);
    }
    found.filter(|it| it.0.is_finite() && it.1.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saturated_trial(rps: f64, seconds: f64, dispersion: f64) -> SaturatedTrial {
        let saturation = Saturation { completed: rps * seconds, seconds, dispersion, pieces: 20.0 };
        SaturatedTrial { saturation, is_disturbed: false }
    }

    #[test]
    fn capacity_and_error_are_estimated_from_completions() {
        let check = |rates: &[f64], dispersion: f64, expect: (f64, f64, usize)| {
            let trials: Vec<SaturatedTrial> = rates.iter().map(|rps| saturated_trial(*rps, 2.0, dispersion)).collect();
            let got = Capacity::from_trials_without_common_errors(&trials).expect("some");
            let (rps, error, set_aside) = expect;
            assert!((got.rps / rps - 1.0).abs() < 0.005, "{rates:?}: {got:?}");
            assert!((got.error_rps / error - 1.0).abs() < 0.2, "{rates:?}: {got:?}");
            assert_eq!(got.disturbed_trials, set_aside, "{rates:?}: {got:?}");
        };
        // The error of the capacity C is sqrt(I C / T), with the index of dispersion I and the
        // total length T of the trials.
        check(&[1000.0; 4], 1.0, (1000.0, (1000.0f64 / 8.0).sqrt(), 0));
        check(&[1000.0, 1010.0, 990.0, 1000.0], 1.0, (1000.0, (1000.0f64 / 8.0).sqrt(), 0));
        // One disturbed trial does not change the estimated capacity, however much the trial's rate
        // differs.
        for other in [700.0, 400.0, 20.0, 2000.0] {
            let error = (1000.0f64 / 6.0).sqrt() * (1.0 + UNDETECTED_DISTURBANCE_FACTOR / 4.0);
            check(&[1000.0, 1000.0, 1000.0, other], 1.0, (1000.0, error, 1));
        }
        assert_eq!(Capacity::from_trials_without_common_errors(&[]), None);
    }

    /// Checks that the grid finds the posterior of trials that contradict each other. The posterior
    /// of such trials has several narrow peaks, which a coarse grid misses.
    #[test]
    fn the_grid_finds_the_peaks_of_contradicting_trials() {
        let check = |rates: &[f64], seconds: f64, dispersion: f64| {
            let trials: Vec<SaturatedRate> = rates
                .iter()
                .map(|rps| SaturatedRate {
                    saturation: saturated_trial(*rps, seconds, dispersion).saturation,
                    rps: *rps,
                    error_rps: (dispersion * rps / seconds).sqrt(),
                    disturbed: DISTURBED_PRIOR,
                })
                .collect();
            let (rps, error_rps) = capacity_posterior(&trials, 0.0).expect("trials");
            let likelihoods: Vec<RateLikelihood> =
                trials.iter().map(|trial| RateLikelihood::new(*trial, 0.0)).collect();
            let highest = 1.2 * rates.iter().copied().fold(0.0, f64::max);
            let (mut sums, points) = ([0.0; 3], 1_000_000);
            for point in 1..=points {
                let at = highest * f64::from(point) / f64::from(points);
                let weight: f64 = likelihoods
                    .iter()
                    .map(|likelihood| likelihood.prior_weighted(at))
                    .map(|(quiet, disturbed)| quiet + disturbed)
                    .product();
                sums = [sums[0] + weight, sums[1] + weight * at, sums[2] + weight * at * at];
            }
            let mean = sums[1] / sums[0];
            let deviation = (sums[2] / sums[0] - mean * mean).sqrt();
            assert!((rps - mean).abs() < 0.2 * deviation, "{rates:?}: {rps} instead of {mean} +- {deviation}");
            assert!((error_rps / deviation - 1.0).abs() < 0.2, "{rates:?}: {error_rps} instead of {deviation}");
        };
        check(&[30_300.0, 50_000.0], 4.0, 0.3);
        check(&[40_000.0, 50_000.0], 4.0, 0.05);
        check(&[3_800.0, 5_000.0], 4.0, 0.01);
        check(&[1_000.0, 1_010.0, 400.0], 2.0, 1.0);
    }
}
