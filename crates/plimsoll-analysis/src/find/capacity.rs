//! The capacity of a server ([`Capacity`]): its throughput while requests always wait. The capacity
//! comes from trials in which the server's queue was never empty.
//!
//! Completions of a saturated server resemble a renewal process. The number of completions in time
//! T has mean C T and variance I C T, where C is the capacity. I is the index of dispersion of the
//! completions: 1 for exponential service times, 0 for constant service times. So N completions
//! give the capacity C with a relative error of sqrt(I / N). If the process or machine changes, the
//! rates of trials differ by more than the error sqrt(I / N). The variation between trials is added
//! to the error of the capacity.
//!
//! Sources: Whitt, "Planning queueing simulations", 1989 (asymptotic variance of counts);
//! DerSimonian and Laird, 1986 (variance between trials by moments).
//!
//! Not here: the latency below capacity (see [`super::line_distribution`]).

use super::normal::upper_tail;
use super::terms::is_void_by_generator;
use crate::judge::TrialOutcome;
use crate::saturation::Saturation;
use plimsoll_model::Purpose;

/// Prior probability that a trial is disturbed although no probe observed interference. A disturbed
/// trial may have any rate from zero to the capacity, all equally probable. If disturbed trials had
/// a positive minimum rate, a trial below the minimum would pull the estimate of the capacity down.
const DISTURBED_PRIOR: f64 = 0.1;
/// Prior probability that a trial is disturbed if probes observed interference.
const DISTURBED_PRIOR_WITH_INTERFERENCE: f64 = 0.5;
/// The share of disturbed trials whose rate is above the capacity, because the server had another
/// capacity during the trial. The speed-up factor has no upper bound (Pareto distribution, exponent
/// 1).
const FASTER_SHARE: f64 = 0.2;
/// If a larger share of the trials than this is set aside as disturbed, the server itself varies.
/// For a server that varies, the estimate of the capacity and its error come from all trials.
const SET_ASIDE_MAX: f64 = 0.34;
/// Trials differ by more than chance if Cochran's Q exceeds its mean by this number of standard
/// deviations (one-sided 0.1 %).
const COCHRAN_Q_DEVIATIONS: f64 = 3.1;
/// If trials were set aside as disturbed, other trials were probably disturbed too little to be
/// detected. The relative increase of the capacity's error is this multiple of the share of trials
/// set aside.
const UNDETECTED_DISTURBANCE_FACTOR: f64 = 0.5;
/// With fewer trials of the saturated server than this, the variation of the server between trials
/// is not known.
const FEW_TRIALS: usize = 4;
/// The relative variation between trials that is assumed with fewer than [`FEW_TRIALS`] trials.
/// Usual servers vary this much (docs/explanation/how-find-searches.md).
const USUAL_VARIATION: f64 = 0.01;
/// The minimum standard error of a capacity, as a share of the capacity. In each trial, plimsoll
/// sees the last completion of a window up to 1 ms late, so more trials do not reduce this error.
const ERROR_SHARE_MIN: f64 = 0.0005;
/// A closed-loop load counts as an overload of a rejecting server if the server rejects at least
/// this share of all requests. If the server rejects a smaller share, the load may be below the
/// capacity, because random arrivals come in bursts.
const OVERLOAD_REJECTED_SHARE_MIN: f64 = 0.3;
/// Number of grid points over possible capacities.
const CAPACITY_GRID_POINTS: usize = 801;
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
    pub trials: usize,
    /// Number of trials that were set aside as disturbed.
    pub set_aside: usize,
    /// Total length of all trials in which the server was saturated, s.
    pub seconds: f64,
    /// Whether the server rejects surplus requests, so that some completions are failures.
    pub rejects: bool,
}

/// One trial in which the server was saturated: its rate, the standard error of the rate (both
/// 1/s), and the prior probability of a disturbance.
#[derive(Clone, Copy)]
struct SaturatedTrial {
    found: Saturation,
    rps: f64,
    error_rps: f64,
    disturbed: f64,
}

impl SaturatedTrial {
    /// Returns two likelihoods of the trial's rate if the capacity is `rps`: for an undisturbed
    /// trial, and for a disturbed trial. Each likelihood is multiplied by its prior probability.
    /// `extra` is the variance between trials.
    fn prior_weighted_likelihoods(&self, rps: f64, extra: f64) -> (f64, f64) {
        let error = (self.error_rps.powi(2) + extra).sqrt();
        let z = |at: f64| (self.rps - at) / error;
        let quiet = (-z(rps).powi(2) / 2.0).exp() / (error * std::f64::consts::TAU.sqrt());
        // Probability that the true rate of the trial is above the capacity, given the error.
        let above = upper_tail(-z(rps));
        let slower = (upper_tail(z(rps)) - upper_tail(z(0.0))).max(0.0) / rps.max(1e-12);
        let faster = above * rps / self.rps.max(rps / 2.0).powi(2).max(1e-12);
        let disturbed = (1.0 - FASTER_SHARE) * slower + FASTER_SHARE * faster;
        ((1.0 - self.disturbed) * quiet, self.disturbed * disturbed)
    }
}

impl Capacity {
    /// Computes the capacity from the saturated trials of a search; `None` without a valid
    /// saturated trial. If probes observed interference in at least half of the trials, the result
    /// is the capacity of the disturbed machine. `service_s` is the mean service time of a single
    /// user, s.
    pub(super) fn new(history: &[TrialOutcome], service_s: f64) -> Option<Capacity> {
        let found: Vec<(Saturation, bool)> = history.iter().filter_map(saturated_block).collect();
        let mut capacity = Capacity::from_trials(&found)?;
        // Constant service times may synchronise all workers. With synchronised workers, the
        // measured window contains up to one completion per worker too many or too few, equally in
        // each trial.
        let in_step = (1.0 - capacity.dispersion).clamp(0.0, 1.0);
        let each_s = capacity.seconds / found.len() as f64;
        let edge_rps = in_step * capacity.rps * service_s / each_s / 3f64.sqrt();
        capacity.error_rps = capacity.error_rps.hypot(edge_rps).hypot(ERROR_SHARE_MIN * capacity.rps);
        capacity.rejects = history.iter().any(|trial| {
            is_rejecting_overload(trial) || trial.purpose == Purpose::Saturate && trial.evidence.rejecting
        });
        Some(capacity)
    }

    /// Computes the capacity from all trials together. `found` contains the completions of each
    /// trial while the server was saturated, and whether probes observed interference.
    fn from_trials(found: &[(Saturation, bool)]) -> Option<Capacity> {
        let seen = found.iter().filter(|it| it.1).count();
        let usual = seen * 2 >= found.len();
        let (completed, seconds) =
            found.iter().fold((0.0, 0.0), |sum, (it, _)| (sum.0 + it.completed, sum.1 + it.seconds));
        if seconds <= 0.0 || completed <= 0.0 {
            return None;
        }
        let blocks = |dispersion: f64| -> Vec<SaturatedTrial> {
            let block = |(it, interfered): &(Saturation, bool)| SaturatedTrial {
                found: *it,
                rps: it.completed / it.seconds,
                // A count of completions is a whole number, so its error is at least half a
                // completion.
                error_rps: (dispersion * completed / seconds * it.seconds).sqrt().max(0.5) / it.seconds,
                disturbed: if *interfered && !usual { DISTURBED_PRIOR_WITH_INTERFERENCE } else { DISTURBED_PRIOR },
            };
            found.iter().map(block).collect()
        };
        // The first estimate of the dispersion is the median over trials, because completions in
        // disturbed trials are slower and come in larger bunches.
        let mut dispersions: Vec<f64> =
            found.iter().filter(|(it, _)| it.completed >= COMPLETED_MIN).map(|(it, _)| it.dispersion).collect();
        dispersions.sort_by(f64::total_cmp);
        let first = dispersions.get(dispersions.len() / 2).copied().unwrap_or(1.0);
        let (rps, _) = capacity_posterior(&blocks(first), 0.0)?;
        let quiet = |blocks: &[SaturatedTrial], rps: f64| -> Vec<SaturatedTrial> {
            let is_quiet = |block: &&SaturatedTrial| {
                let (quiet, disturbed) = block.prior_weighted_likelihoods(rps, 0.0);
                quiet >= disturbed
            };
            blocks.iter().filter(is_quiet).copied().collect()
        };
        let kept = quiet(&blocks(first), rps);
        let told =
            || kept.iter().map(|block| block.found).filter(|it| it.completed >= COMPLETED_MIN && it.pieces >= 2.0);
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
        if blocks.len() > 2 && (blocks.len() - kept.len()) as f64 > SET_ASIDE_MAX * blocks.len() as f64 {
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
            trials: kept.len(),
            set_aside: blocks.len() - kept.len(),
            seconds,
            rejects: false,
        })
    }
}

/// Returns the completions of a trial in which the server was saturated, and whether probes
/// observed interference. Returns `None` if the server was not saturated, or if the generator was
/// the limit.
fn saturated_block(trial: &TrialOutcome) -> Option<(Saturation, bool)> {
    let found = match trial.purpose {
        _ if is_rejecting_overload(trial) => {
            let (rps, seconds) = (trial.evidence.saturated_rps?, trial.duration_ns as f64 / 1e9);
            let completed = rps * seconds;
            let unknown = Saturation { completed, seconds, dispersion: 1.0, pieces: 1.0 };
            (completed > 0.0).then_some(trial.evidence.saturation.unwrap_or(unknown))
        }
        Purpose::Saturate if !is_generator_limited(trial) => trial.evidence.saturation,
        _ => None,
    };
    Some((found?, trial.interference.disturbed))
}

/// Returns the throughput of each saturated trial, 1/s, and the length of the trial, s.
pub(super) fn saturated_rates(history: &[TrialOutcome]) -> impl Iterator<Item = (f64, f64)> {
    history.iter().filter_map(saturated_block).map(|(found, _)| (found.completed / found.seconds, found.seconds))
}

/// Returns whether the server rejected a large share of a closed-loop load. The goodput of a load
/// with many rejections is the server's capacity, although no request waits. Even if the generator
/// is at its limit, the goodput of a rejecting server is the capacity, because a rejection takes no
/// time.
pub(super) fn is_rejecting_overload(trial: &TrialOutcome) -> bool {
    let closed = matches!(trial.purpose, Purpose::Peak | Purpose::Saturate);
    closed && trial.evidence.rejecting && trial.success_rate < 1.0 - OVERLOAD_REJECTED_SHARE_MIN
}

/// Returns whether the limit of the generator hides the server's capacity. If the server rejects a
/// large share of the requests, the generator's limit does not hide the capacity.
pub(super) fn is_generator_limited(trial: &TrialOutcome) -> bool {
    is_void_by_generator(trial) && !is_rejecting_overload(trial)
}

/// Returns the variance of the rates between trials beyond chance, (1/s)^2 (DerSimonian and Laird).
/// Returns 0 if chance explains the differences.
fn variance_between_trials(blocks: &[SaturatedTrial]) -> f64 {
    let freedom = blocks.len() as f64 - 1.0;
    let weights: Vec<f64> = blocks.iter().map(|block| block.error_rps.powi(-2)).collect();
    let sum: f64 = weights.iter().sum();
    let mean = blocks.iter().zip(&weights).map(|(block, weight)| weight * block.rps).sum::<f64>() / sum;
    let q: f64 = blocks.iter().map(|block| ((block.rps - mean) / block.error_rps).powi(2)).sum();
    if freedom < 1.0 || q <= freedom + COCHRAN_Q_DEVIATIONS * (2.0 * freedom).sqrt() {
        return 0.0;
    }
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    (q - freedom) / (sum - squares / sum)
}

/// Returns the mean and the standard deviation of the capacity, 1/s, given these trials. Each trial
/// may be disturbed. `between` is the variance between trials.
fn capacity_posterior(blocks: &[SaturatedTrial], between: f64) -> Option<(f64, f64)> {
    let rates = || blocks.iter().map(|block| block.rps);
    let error = blocks.iter().map(|block| (block.error_rps.powi(2) + between).sqrt()).fold(0.0, f64::max);
    let low = (rates().fold(f64::INFINITY, f64::min) - GRID_ERRORS * error).max(1e-9);
    let high = rates().fold(0.0, f64::max) + GRID_ERRORS * error;
    let mut area = (low, high);
    let mut found = None;
    // The first pass covers the whole range of capacities; later passes cover the probable part.
    for _ in 0..3 {
        let at = |point: usize| area.0 + (area.1 - area.0) * point as f64 / (CAPACITY_GRID_POINTS - 1) as f64;
        let ln = |rps: f64| -> f64 {
            let one = |block: &SaturatedTrial| {
                let (quiet, disturbed) = block.prior_weighted_likelihoods(rps, between);
                (quiet + disturbed).max(1e-300).ln()
            };
            blocks.iter().map(one).sum()
        };
        let logs: Vec<f64> = (0..CAPACITY_GRID_POINTS).map(|point| ln(at(point))).collect();
        let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|ln| (ln - best).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mean = (0..CAPACITY_GRID_POINTS).map(|point| at(point) * weights[point]).sum::<f64>() / sum;
        let variance =
            (0..CAPACITY_GRID_POINTS).map(|point| (at(point) - mean).powi(2) * weights[point]).sum::<f64>() / sum;
        let step = (area.1 - area.0) / (CAPACITY_GRID_POINTS - 1) as f64;
        found = Some((mean, variance.sqrt()));
        let reach = (GRID_ERRORS * variance.sqrt()).max(2.0 * step);
        area = ((mean - reach).max(1e-9), mean + reach);
    }
    found.filter(|it| it.0.is_finite() && it.1.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saturation_at_rate(rps: f64, seconds: f64, dispersion: f64) -> Saturation {
        Saturation { completed: rps * seconds, seconds, dispersion, pieces: 20.0 }
    }

    #[test]
    fn capacity_and_error_are_estimated_from_completions() {
        let check = |rates: &[f64], dispersion: f64, expect: (f64, f64, usize)| {
            let found: Vec<(Saturation, bool)> =
                rates.iter().map(|rps| (saturation_at_rate(*rps, 2.0, dispersion), false)).collect();
            let got = Capacity::from_trials(&found).expect("some");
            let (rps, error, set_aside) = expect;
            assert!((got.rps / rps - 1.0).abs() < 0.005, "{rates:?}: {got:?}");
            assert!((got.error_rps / error - 1.0).abs() < 0.2, "{rates:?}: {got:?}");
            assert_eq!(got.set_aside, set_aside, "{rates:?}: {got:?}");
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
        assert_eq!(Capacity::from_trials(&[]), None);
    }
}
