//! The estimate of the load line from all measurements ([`LoadLineDistribution`]): a distribution
//! of the highest rate that meets the SLO in steady state.
//!
//! Three models of the server explain the same trials, and each model is weighted by its
//! likelihood. Two of the models are capacity models (`capacity_model`). One capacity model takes
//! the capacity from saturated trials, the other capacity model from open-loop trials with a
//! growing backlog. The third model of the server is the direct model (`direct_model`).
//!
//! Late requests come in bunches, and one bunch counts as one observation
//! ([`crate::BoundEvidence::bunch_size`]). Each trial may be disturbed with a small
//! probability, so no single trial decides the load line.
//!
//! Not here: the choice of the next trial.

use crate::capacity::Capacity;
use crate::capacity_model::fit_capacity_model;
use crate::direct_model::{BACKLOG_GROWTH_SHARE_MIN, fit_direct_model};
use crate::line_models::{ModelFit, OpenTrial, ServerModelInputs};

/// The probability that the load line lies below the lower end of its 90 % interval. Each tail
/// outside the interval should contain the load line in 5 % of the searches. A search stops when
/// the interval is short, so tails of 5 % would contain the load line in 6 to 7 % of the searches.
/// Tails of 3.75 % contain the load line in 5 % of the searches (`truth -- find`,
/// docs/explanation/coverage.md).
pub const LINE_QUANTILE_LOW: f64 = 0.0375;
/// The probability that the load line lies below the upper end of its 90 % interval.
pub const LINE_QUANTILE_HIGH: f64 = 1.0 - LINE_QUANTILE_LOW;
/// Prior probability of the model of the server whose capacity comes from saturated trials.
const SATURATED_MODEL_PRIOR: f64 = 0.7;
/// Prior probability of the model of the server whose capacity comes from open-loop trials with a
/// growing backlog.
const OPEN_TRIALS_MODEL_PRIOR: f64 = 0.15;
/// Prior probability of the direct model of the server: bad requests grow as a power of the rate.
const DIRECT_MODEL_PRIOR: f64 = 0.15;
/// A model of the server counts as refuted if its share of the weight of all models is smaller than
/// this value.
const REFUTED_WEIGHT: f64 = 0.03;
/// The backlog of an open-loop trial counts as growing only if its growth exceeds this number of
/// standard deviations.
const BACKLOG_GROWTH_DEVIATIONS_MIN: f64 = 4.0;
/// The smallest relative error of a capacity from an open-loop trial with a growing backlog.
const OPEN_CAPACITY_ERROR_MIN: f64 = 0.003;
/// The standard error of the prior distribution of the capacity from open-loop trials, as a share
/// of the capacity.
const OPEN_CAPACITY_ERROR_PRIOR: f64 = 0.1;

/// A probability distribution of the load line.
#[derive(Debug, Clone, Default)]
pub struct LoadLineDistribution {
    /// Possible rates of the load line, 1/s, with their weights, in ascending order of the rate.
    draws: Vec<(f64, f64)>,
    /// The rate of a trial that would decide between the models of the server, 1/s. `None` unless
    /// several models have a large weight and their load lines differ.
    pub decisive_rate_rps: Option<f64>,
    /// Share of the variance of the load line that comes from the error of the capacity, 0..=1.
    pub capacity_variance_share: f64,
}

impl LoadLineDistribution {
    /// Computes the distribution of the load line from the trials in `inputs`.
    pub fn new(inputs: &ServerModelInputs, capacity: Option<&Capacity>) -> LoadLineDistribution {
        let mut models: Vec<(f64, ModelFit)> = Vec::new();
        let mut from_capacity = 0.0;
        if let Some(capacity) = capacity {
            let fit = fit_capacity_model(inputs, capacity);
            from_capacity = variance_share_from_capacity_error(&fit.lines, capacity.error_rps);
            models.push((SATURATED_MODEL_PRIOR.ln() + fit.ln_likelihood, fit));
        }
        if let Some((rps, error_rps)) = capacity_from_open_trials(inputs, capacity) {
            // The open-loop trials give only the capacity and its error. The dispersion of the
            // completions comes from saturated trials. If there are no saturated trials, a
            // dispersion of 1 is assumed.
            let own = Capacity { rps, error_rps, ..capacity.copied().unwrap_or(Capacity::UNMEASURED_CAPACITY) };
            let fit = fit_capacity_model(inputs, &own);
            // The centre of the capacity's prior comes from the same trials that the model
            // explains. For this double use of the trials, the likelihood is multiplied by the
            // ratio of the capacity's error to the error of the prior.
            let penalty = (error_rps / (OPEN_CAPACITY_ERROR_PRIOR * rps)).ln().min(0.0);
            models.push((OPEN_TRIALS_MODEL_PRIOR.ln() + fit.ln_likelihood + penalty, fit));
        }
        // A server whose burst allowance is exhausted when a trial begins rejects more requests
        // than in steady state. Only the capacity model of a rejecting server describes the effect
        // of an exhausted burst allowance.
        let is_direct = !inputs.rejects || models.is_empty();
        if is_direct {
            let fit = fit_direct_model(inputs, capacity);
            models.push((DIRECT_MODEL_PRIOR.ln() + fit.ln_likelihood, fit));
        }
        let best = models.iter().map(|model| model.0).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = models.iter().map(|model| (model.0 - best).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let direct_weight = if is_direct { weights.last().copied().unwrap_or(0.0) / sum } else { 0.0 };
        let decisive_rate_rps = decisive_rate_rps(&weights, &models);
        let mut draws: Vec<(f64, f64)> = Vec::new();
        for (weight, (_, fit)) in weights.iter().zip(&models) {
            draws.extend(fit.lines.iter().map(|(rate, own)| (*rate, own * weight / sum)));
        }
        draws.retain(|draw| draw.0.is_finite() && draw.1 > 0.0);
        draws.sort_by(|a, b| a.0.total_cmp(&b.0));
        let capacity_variance_share = from_capacity * (1.0 - direct_weight);
        LoadLineDistribution { draws, decisive_rate_rps, capacity_variance_share }
    }

    /// Returns the `p` quantile of the load line, 1/s: the load line is below this rate with
    /// probability `p`. Returns 0 if no trial gives information, or if no rate meets the SLO.
    pub fn quantile(&self, p: f64) -> f64 {
        let total: f64 = self.draws.iter().map(|draw| draw.1).sum();
        let mut sum = 0.0;
        for (at, (rate, weight)) in self.draws.iter().enumerate() {
            let before = sum;
            sum += weight / total;
            if sum >= p {
                // Interpolates between two draws (possible load lines), so that the steps between
                // draws do not change the width of the interval.
                let last = at.checked_sub(1).map_or(*rate, |at| self.draws[at].0);
                let part = if sum > before { (p - before) / (sum - before) } else { 1.0 };
                return (last + (rate - last) * part).max(0.0);
            }
        }
        self.draws.last().map_or(0.0, |draw| draw.0.max(0.0))
    }
}

impl Capacity {
    const UNMEASURED_CAPACITY: Capacity = Capacity {
        rps: 0.0,
        error_rps: 0.0,
        dispersion: 1.0,
        // With six time intervals, random draws of the index of dispersion of the completions lie
        // between 0.4 and 7 with a probability of 95 %.
        pieces: 6.0,
        undisturbed_trials: 0,
        disturbed_trials: 0,
        seconds: 0.0,
        rejects: false,
    };
}

/// Returns the highest median load line of the models of the server that are not refuted
/// ([`REFUTED_WEIGHT`]), if these models disagree. Models disagree if the 90 % interval of one
/// model lies wholly below the interval of the model with the highest median.
fn decisive_rate_rps(weights: &[f64], models: &[(f64, ModelFit)]) -> Option<f64> {
    let sum: f64 = weights.iter().sum();
    let interval = |fit: &ModelFit| {
        let mut draws = fit.lines.clone();
        draws.sort_by(|a, b| a.0.total_cmp(&b.0));
        let distribution = LoadLineDistribution { draws, ..LoadLineDistribution::default() };
        [LINE_QUANTILE_LOW, 0.5, LINE_QUANTILE_HIGH].map(|p| distribution.quantile(p))
    };
    let strong = weights.iter().zip(models).filter(|(weight, _)| **weight > REFUTED_WEIGHT * sum);
    let found: Vec<[f64; 3]> = strong.map(|(_, model)| interval(&model.1)).collect();
    let highest = found.iter().copied().reduce(|a, b| if a[1] >= b[1] { a } else { b })?;
    let are_apart = found.iter().any(|other| other[2] < highest[0]);
    are_apart.then_some(highest[1])
}

/// Returns the share of the variance of `draws` that the capacity's standard error `error_rps`
/// causes, 0..=1.
fn variance_share_from_capacity_error(draws: &[(f64, f64)], error_rps: f64) -> f64 {
    let total: f64 = draws.iter().map(|draw| draw.1).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let mean = draws.iter().map(|draw| draw.0 * draw.1).sum::<f64>() / total;
    let variance = draws.iter().map(|draw| (draw.0 - mean).powi(2) * draw.1).sum::<f64>() / total;
    if variance > 0.0 { (error_rps * error_rps / variance).min(1.0) } else { 0.0 }
}

/// Returns the capacity and its standard error, 1/s, from open-loop trials whose backlog grew. The
/// capacity is the arrival rate minus the growth rate of the backlog.
fn capacity_from_open_trials(inputs: &ServerModelInputs, capacity: Option<&Capacity>) -> Option<(f64, f64)> {
    let dispersion = capacity.map_or(1.0, |capacity| capacity.dispersion);
    let of_trial = |trial: &OpenTrial| {
        let half_s = trial.duration_s / 2.0;
        let deviation =
            ((inputs.arrivals_dispersion + dispersion) * trial.rate_rps * half_s + trial.in_flight + 1.0).sqrt();
        let falls_behind = trial.backlog_growth > BACKLOG_GROWTH_SHARE_MIN * trial.rate_rps * half_s
            && trial.backlog_growth > BACKLOG_GROWTH_DEVIATIONS_MIN * deviation;
        let rps = trial.rate_rps - trial.backlog_growth / half_s;
        (falls_behind && rps > 0.0).then(|| (rps, (deviation / half_s).max(OPEN_CAPACITY_ERROR_MIN * rps)))
    };
    let found: Vec<(f64, f64)> = inputs.trials.iter().filter_map(of_trial).collect();
    let weights: f64 = found.iter().map(|it| it.1.powi(-2)).sum();
    if found.is_empty() {
        return None;
    }
    let mean = found.iter().map(|it| it.0 * it.1.powi(-2)).sum::<f64>() / weights;
    let spread = found.iter().map(|it| (it.0 - mean).powi(2)).sum::<f64>() / found.len() as f64;
    Some((mean, (1.0 / weights + spread / found.len() as f64).sqrt()))
}
