//! The direct model of a server: the share of bad requests grows as some power of the rate. The
//! load line and the power are unknown, and the counts of bad requests at the tried rates determine
//! both.
//!
//! The model uses the capacity only to judge the backlog: a rate with a growing backlog is above
//! the load line.
//!
//! Not here: which model is more probable ([`crate::line_distribution`]).

use crate::capacity::Capacity;
use crate::line_models::{
    ALLOWED_BAD_SHARE_MIN, ModelFit, OpenTrial, ServerModelInputs, bad_share_ln_likelihood,
    with_disturbance_probability,
};

/// The grid of the direct model of the server: number of candidate load lines, and number of
/// candidate powers (see [`POWER_RANGE`]).
const MODEL_GRID_SIZE: (usize, usize) = (64, 24);
/// How often the grid of the direct model of the server is refined to the region with most of the
/// likelihood.
const GRID_REFINEMENTS_MAX: usize = 4;
/// The range of powers in the direct model of the server: the share of bad requests grows as this
/// power of the rate. At the lowest power, latency hardly depends on the rate. At the highest
/// power, latency jumps at one rate.
const POWER_RANGE: (f64, f64) = (1.5, 400.0);
/// Each refinement of the grid keeps the points whose log likelihood is at most this much below the
/// maximum.
const LN_LIKELIHOOD_MARGIN: f64 = 9.0;
/// If the backlog of an open-loop trial grows by more than this share of the arrivals of half the
/// trial, the rate exceeds the capacity.
pub(crate) const BACKLOG_GROWTH_SHARE_MIN: f64 = 0.03;
/// The lowest load line on the grid is the lowest known rate (of a trial, or the capacity) divided
/// by this value.
const LOWEST_LINE_DIVISOR: f64 = 30.0;
/// The highest possible load line, if the capacity is unknown, is the highest rate of a trial
/// multiplied by this value.
const HIGHEST_LINE_FACTOR: f64 = 1.6;
/// The largest share of bad requests that the model predicts.
const BAD_SHARE_MAX: f64 = 0.999;

/// A part of the grid of candidates: ranges of the logarithms of the load line and of the power.
#[derive(Clone, Copy, PartialEq)]
struct GridArea {
    ln_line: (f64, f64),
    ln_power: (f64, f64),
}

impl GridArea {
    fn log_area(&self) -> f64 {
        (self.ln_line.1 - self.ln_line.0) * (self.ln_power.1 - self.ln_power.0)
    }

    /// Returns the distance between neighbouring points of the grid: of load lines, and of powers.
    fn grid_steps(&self) -> (f64, f64) {
        let (line, power) = (self.ln_line, self.ln_power);
        ((line.1 - line.0) / MODEL_GRID_SIZE.0 as f64, (power.1 - power.0) / MODEL_GRID_SIZE.1 as f64)
    }

    /// Returns all points of the grid in this area.
    fn grid_points(self) -> impl Iterator<Item = (f64, f64)> {
        let steps = self.grid_steps();
        let line = move |x: usize| self.ln_line.0 + (x as f64 + 0.5) * steps.0;
        let power = move |y: usize| self.ln_power.0 + (y as f64 + 0.5) * steps.1;
        (0..MODEL_GRID_SIZE.0).flat_map(move |x| (0..MODEL_GRID_SIZE.1).map(move |y| (line(x), power(y))))
    }

    /// Returns the part of this area that contains the given points, with a margin of one grid step
    /// around the points.
    fn subarea_around(&self, points: impl Iterator<Item = (f64, f64)>) -> GridArea {
        let steps = self.grid_steps();
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let extend = |range: (f64, f64), value: f64| (range.0.min(value), range.1.max(value));
        let (line, power) = points.fold((none, none), |found, at| (extend(found.0, at.0), extend(found.1, at.1)));
        let limited = |range: (f64, f64), step: f64, limits: (f64, f64)| {
            ((range.0 - step).max(limits.0), (range.1 + step).min(limits.1))
        };
        GridArea { ln_line: limited(line, steps.0, self.ln_line), ln_power: limited(power, steps.1, self.ln_power) }
    }
}

/// Returns whether the backlog of a trial hardly grew, so that the server kept up with the
/// arrivals.
fn server_keeps_up(trial: &OpenTrial) -> bool {
    trial.backlog_growth <= BACKLOG_GROWTH_SHARE_MIN * trial.rate_rps * trial.duration_s / 2.0
}

/// The direct model, with the values that the model computes from all trials together.
struct DirectModel<'a> {
    inputs: &'a ServerModelInputs<'a>,
    /// Measured capacity, 1/s, if known.
    capacity_rps: Option<f64>,
    /// Index of dispersion of the completions.
    dispersion: f64,
    /// Index of the SLO bound that the trials violated most. The model ignores all other bounds.
    bound: usize,
    /// The number of bad requests that make one independent observation.
    bunch: f64,
}

/// Computes the possible load lines under the direct model: the share of bad requests grows as a
/// power of the rate.
pub(crate) fn fit_direct_model(inputs: &ServerModelInputs, capacity: Option<&Capacity>) -> ModelFit {
    let Some(whole) = whole_area(inputs, capacity) else { return ModelFit { ln_likelihood: 0.0, lines: Vec::new() } };
    let bound = most_violated_bound(inputs.trials);
    // The size of bunches (groups) of late requests is a property of the server. So the bunch size
    // of one trial also applies to trials without late requests. In a trial above the capacity, all
    // bad requests form a single bunch, which has no information about other trials.
    let steady = inputs.trials.iter().filter(|trial| server_keeps_up(trial));
    let bunch = steady.filter_map(|trial| Some(trial.bounds.get(bound)?.bunch_size)).fold(1.0, f64::max);
    let capacity_rps = capacity.map(|it| it.rps);
    let dispersion = capacity.map_or(1.0, |it| it.dispersion);
    DirectModel { inputs, capacity_rps, dispersion, bound, bunch }.fit_on_grid(whole)
}

/// Returns the area of all possible load lines and powers; `None` if neither a trial nor the
/// capacity gives a rate.
fn whole_area(inputs: &ServerModelInputs, capacity: Option<&Capacity>) -> Option<GridArea> {
    let rates = || inputs.trials.iter().map(|trial| trial.rate_rps);
    // The load line is not above the measured capacity, unless the server kept up in trials above
    // this capacity.
    let met =
        inputs.trials.iter().filter(|trial| server_keeps_up(trial)).map(|trial| trial.rate_rps).fold(0.0, f64::max);
    let high = match capacity {
        Some(it) => (it.rps + 3.0 * it.error_rps).max(met * 1.05),
        None => rates().fold(0.0, f64::max) * HIGHEST_LINE_FACTOR,
    };
    let low = rates().chain(capacity.map(|it| it.rps)).fold(f64::INFINITY, f64::min) / LOWEST_LINE_DIVISOR;
    let ln_power = (POWER_RANGE.0.ln(), POWER_RANGE.1.ln());
    (low.is_finite() && high > 0.0).then(|| GridArea { ln_line: (low.ln(), high.ln()), ln_power })
}

/// Returns the index of the SLO bound that the trials violated most.
fn most_violated_bound(trials: &[OpenTrial]) -> usize {
    let bounds = trials.iter().map(|trial| trial.bounds.len()).max().unwrap_or(0);
    let excess = |at: usize| -> f64 {
        let of = |trial: &OpenTrial| {
            let bound = trial.bounds.get(at)?;
            Some(bound.bad_requests as f64 / (bound.allowed_share * bound.scheduled as f64).max(1.0))
        };
        trials.iter().filter_map(of).sum()
    };
    // If several bounds are equally violated, `max_by` returns the last of them. So a latency bound
    // is preferred to the success bound, which comes first.
    (0..bounds).max_by(|a, b| excess(*a).total_cmp(&excess(*b))).unwrap_or(0)
}

impl DirectModel<'_> {
    /// Returns the log likelihood of all trials for a load line and a power.
    fn ln_likelihood(&self, line_rps: f64, power: f64) -> f64 {
        let of_trial = |trial: &OpenTrial| {
            // The load line cannot exceed the capacity, so an assumed load line above the measured
            // capacity also counts as the capacity.
            let capacity_rps = self.capacity_rps.map_or(line_rps, |rps| rps.max(line_rps));
            let growth = self.inputs.backlog_growth_ln_likelihood(trial, capacity_rps, self.dispersion);
            let Some(bound) = trial.bounds.get(self.bound) else { return with_disturbance_probability(growth) };
            let bad_share = (bound.allowed_share.max(ALLOWED_BAD_SHARE_MIN) * (trial.rate_rps / line_rps).powf(power))
                .min(BAD_SHARE_MAX);
            let scheduled = bound.scheduled as f64;
            let bunch = self.bunch.max(bound.bunch_size).clamp(1.0, scheduled.max(1.0));
            with_disturbance_probability(
                growth + bad_share_ln_likelihood(bad_share, scheduled, bound.bad_requests as f64, bunch),
            )
        };
        self.inputs.trials.iter().map(of_trial).sum()
    }

    /// Computes the likelihood at each point of the grid, and refines the grid to the part with
    /// most of the likelihood.
    fn fit_on_grid(&self, whole: GridArea) -> ModelFit {
        let (mut area, mut zooms) = (whole, 0);
        loop {
            let points =
                area.grid_points().map(|(line, power)| (line, power, self.ln_likelihood(line.exp(), power.exp())));
            let points: Vec<(f64, f64, f64)> = points.collect();
            let best = points.iter().map(|point| point.2).fold(f64::NEG_INFINITY, f64::max);
            let near = points.iter().filter(|point| point.2 > best - LN_LIKELIHOOD_MARGIN);
            let next = area.subarea_around(near.map(|point| (point.0, point.1)));
            if zooms == GRID_REFINEMENTS_MAX || next == area {
                let fit = ModelFit::new(points.iter().map(|(line, _, ln)| (line.exp(), *ln)).collect());
                // Outside the last refined area of the grid, the likelihood is practically zero.
                let ln_likelihood = fit.ln_likelihood + (area.log_area() / whole.log_area()).ln();
                return ModelFit { ln_likelihood, ..fit };
            }
            (area, zooms) = (next, zooms + 1);
        }
    }
}
