//! The capacity model of a server: a queue whose response times have an exponential tail below the
//! capacity C ([`Capacity`]).
//!
//! A request takes longer than t with probability exp(-theta t). The decay theta is 2 (C - rate) /
//! (I_a + I_s), where C is the capacity. I_a is the index of dispersion of the arrivals: 1 for
//! random arrivals, 0 for evenly spaced arrivals. I_s is the index of dispersion of the
//! completions. So the share p of the requests takes longer than t at the rate C - ln(1 / p) (I_a +
//! I_s) / (2 t). The formula for theta is Kingman's (1962), and is exact for the queue M/M/1.
//!
//! The capacity C and the dispersion I_s are measured while the server is saturated. A measurement
//! of the saturated server takes seconds; a direct count of late requests would take hours.
//! Kingman's formula holds for heavy traffic. The error of Kingman's formula grows as the latency
//! bound t approaches a single service time.
//!
//! Not here: the measurement of the capacity, and servers that reject surplus requests
//! (`rejection_model`).

use crate::capacity::Capacity;
use crate::line_models::{
    ALLOWED_BAD_SHARE_MIN, BoundEvidence, ModelFit, OpenTrial, ServerModelInputs, bad_share_ln_likelihood,
    with_disturbance_probability,
};
use crate::normal::{normal_quantile, upper_tail};
use crate::rejection_model::{RejectionModel, rejection_headroom};
use std::sync::LazyLock;

/// Number of random draws of the unknown parameters of a server. The capacity model computes a load
/// line for each draw.
const PARAMETER_DRAW_COUNT: usize = 1024;
/// The smallest capacity of a random draw, as a share of the measured capacity.
const CAPACITY_SHARE_MIN: f64 = 0.01;
/// Prior probability that the server has no floor. A floor is a constant share of late (or failed)
/// requests at every rate.
const NO_FLOOR_PRIOR: f64 = 0.8;
/// The range of the floor: the share of requests that is bad at every rate, as a multiple of the
/// share that the SLO allows.
const BAD_SHARE_FLOOR_RANGE: (f64, f64) = (0.03, 0.95);
/// Failures of at most this share of requests do not count as a floor (a constant share of failed
/// requests at every rate).
const RARE_FAILURES_SHARE_MAX: f64 = 1e-5;
/// The largest burst that a server with a rate limiter may accept at once: the server's capacity
/// multiplied by this time, s. The smallest burst is one request. The logarithm of the burst is
/// proportional to the square of a uniform random variable. So half of the random draws lie below
/// the fourth root of the largest burst. Small bursts get a high probability, because a search at a
/// low rate sends too few requests to rule out small bursts.
const BURST_S_MAX: f64 = 10.0;
/// The relative error of the queue size of a rejecting server, as computed in `rejected_share`
/// (`rejection_model`). Simulated token buckets of 2 to 40 tokens showed an error of 10 % at rates
/// between the load line and the capacity.
const QUEUE_SIZE_FORMULA_ERROR: f64 = 0.1;
/// The factor by which the expected number of late requests in one excursion of the queue (one
/// period with a long queue) is multiplied. Excursions of exponential length double the number of
/// late requests. Excursions that follow each other closely double the number of late requests
/// again.
const LATE_GROUP_SIZE_FACTOR: f64 = 4.0;
/// The constant part of the relative error of the heavy-traffic formula (standard deviation of its
/// logarithm). Comparisons with the exact formulas of the queues M/D/1 and M/M/8 gave this error.
const FORMULA_ERROR: f64 = 0.03;
/// The growing part of the relative error of the heavy-traffic formula. The growing part is this
/// constant, multiplied by theta (the decay of the tail, 1/s) and by the service time, s.
const FORMULA_ERROR_PER_SERVICE_TIME: f64 = 0.25;

/// Computes the possible load lines under the capacity model from a measured capacity, each
/// weighted by its likelihood.
pub(crate) fn fit_capacity_model(inputs: &ServerModelInputs, capacity: &Capacity) -> ModelFit {
    let draws = (0..PARAMETER_DRAW_COUNT).map(|at| ServerParameterDraw::new(inputs, capacity, at));
    ModelFit::new(draws.map(|draw| (draw.load_line_rps(), draw.ln_likelihood())).collect())
}

/// One random draw of the unknown parameters of a server.
struct ServerParameterDraw<'a> {
    inputs: &'a ServerModelInputs<'a>,
    /// Capacity, 1/s.
    capacity_rps: f64,
    /// Index of dispersion of the completions.
    dispersion: f64,
    /// Sum of the dispersions of arrivals and completions.
    dispersion_sum: f64,
    /// Error of the heavy-traffic formula, in standard deviations.
    formula_error: f64,
    /// The part of the service time that is subtracted from a latency bound, 0..1. A request may
    /// wait in the queue for the rest of the latency bound.
    service_share: f64,
    /// The share of requests that are late at every rate, as a multiple of the share that the SLO
    /// allows.
    late_floor: f64,
    /// The share of requests that fail at every rate, as a multiple of the share that the SLO
    /// allows.
    failed_floor: f64,
    /// The number of requests that a server with a rate limiter accepts at once after a pause.
    burst: f64,
    /// The size of the queue of a server that rejects requests, as in `rejected_share` of
    /// `rejection_model`: the burst, divided by half of `dispersion_sum`.
    queue_size: f64,
}

/// The tail of the waiting times for one random draw of the server's parameters. A wait exceeds
/// `wait_s` with the probability exp(-decay (capacity - rate) wait_s).
struct WaitTail {
    /// Decay of the tail for each 1/s of headroom (capacity minus arrival rate).
    decay: f64,
    /// The time for which a request may wait in the queue without exceeding the latency bound, s.
    wait_s: f64,
}

impl<'a> ServerParameterDraw<'a> {
    /// Returns the random draw with the number `at`, which is less than [`PARAMETER_DRAW_COUNT`].
    fn new(inputs: &'a ServerModelInputs<'a>, capacity: &Capacity, at: usize) -> ServerParameterDraw<'a> {
        let uniform = |dimension| quasirandom_coordinate(at, dimension);
        let normal = |dimension: usize| QUASIRANDOM_NORMALS[at][dimension];
        // If the error of the capacity is large, some random draws are below zero, but a server's
        // capacity is positive.
        let capacity_rps = (capacity.rps + capacity.error_rps * normal(0)).max(CAPACITY_SHARE_MIN * capacity.rps);
        // The variance of a sample has a chi-squared distribution (approximation: Wilson and
        // Hilferty's cube).
        let freedom = (capacity.pieces - 1.0).max(1.0);
        let cube = 1.0 - 2.0 / (9.0 * freedom) + normal(1) * (2.0 / (9.0 * freedom)).sqrt();
        let dispersion = capacity.dispersion / cube.max(0.2).powi(3);
        let dispersion_sum = (inputs.arrivals_dispersion + dispersion).max(1e-3);
        let formula_error = normal(2);
        let floor = |u: f64| match u < NO_FLOOR_PRIOR {
            true => 0.0,
            false => {
                let place = (u - NO_FLOOR_PRIOR) / (1.0 - NO_FLOOR_PRIOR);
                BAD_SHARE_FLOOR_RANGE.0 * (BAD_SHARE_FLOOR_RANGE.1 / BAD_SHARE_FLOOR_RANGE.0).powf(place)
            }
        };
        // A server that rejects requests has room for a burst of unknown size: one request, or
        // many. The share of rejected requests follows from the size of the burst, and is not
        // constant.
        let burst = (BURST_S_MAX * capacity_rps.max(1.0)).powf(uniform(5).powi(2));
        ServerParameterDraw {
            inputs,
            capacity_rps,
            dispersion,
            dispersion_sum,
            formula_error,
            service_share: uniform(3),
            late_floor: floor(uniform(4)),
            failed_floor: if inputs.rejects { 0.0 } else { floor(uniform(5)) },
            burst,
            queue_size: 2.0 * burst / dispersion_sum * (formula_error * QUEUE_SIZE_FORMULA_ERROR).exp(),
        }
    }

    /// Returns the tail of the waiting times at a latency bound that the share `share` of the
    /// requests may exceed.
    fn wait_tail(&self, bound_s: f64, share: f64) -> WaitTail {
        let service_s = self.inputs.service_s;
        let near = (1.0 / share).ln() / bound_s * service_s;
        let off = (self.formula_error * (FORMULA_ERROR + FORMULA_ERROR_PER_SERVICE_TIME * near)).exp();
        // A response time is a waiting time plus a service time. So a request may wait for the
        // latency bound minus a part (0 to 1) of the service time.
        let wait_s = (bound_s - self.service_share * service_s.min(bound_s / 2.0)).max(bound_s / 4.0);
        WaitTail { decay: 2.0 / self.dispersion_sum / off, wait_s }
    }

    /// Returns the load line, in 1/s, of a server with the parameters of this draw.
    fn load_line_rps(&self) -> f64 {
        let mut line_rps = self.capacity_rps;
        if self.inputs.rejects {
            line_rps =
                line_rps.min(self.capacity_rps / rejection_headroom(self.inputs.failed_share_max, self.queue_size));
        }
        for (bound_s, share) in &self.inputs.bounds {
            let floor = self.late_floor * *share;
            let WaitTail { decay, wait_s } = self.wait_tail(*bound_s, *share);
            let headroom = if floor < *share { (1.0 / (share - floor)).ln() / (decay * wait_s) } else { f64::INFINITY };
            line_rps = line_rps.min(self.capacity_rps - headroom);
        }
        line_rps
    }

    /// Returns the log likelihood of all trials. In each trial, only the SLO bound that fits the
    /// model worst counts.
    fn ln_likelihood(&self) -> f64 {
        let of_trial = |trial: &OpenTrial| {
            let mut worst: f64 = 0.0;
            for bound in &trial.bounds {
                let Some((bad_share, bunch)) = self.bad_share_and_group_size(trial, bound) else { continue };
                let scheduled = bound.scheduled as f64;
                let bunch = bunch.clamp(1.0, scheduled.max(1.0));
                worst = worst.min(bad_share_ln_likelihood(bad_share, scheduled, bound.bad_requests as f64, bunch));
            }
            let growth = self.inputs.backlog_growth_ln_likelihood(trial, self.capacity_rps, self.dispersion);
            with_disturbance_probability(growth + worst)
        };
        self.inputs.trials.iter().map(of_trial).sum()
    }

    /// Returns the expected share of bad requests in a trial, and how many of these requests make
    /// one independent observation. Returns `None` if this model makes no prediction about the
    /// bound.
    fn bad_share_and_group_size(&self, trial: &OpenTrial, bound: &BoundEvidence) -> Option<(f64, f64)> {
        let Some(bound_ns) = bound.bound_ns else {
            return match self.inputs.rejects {
                true => Some(self.build_rejection_model().rejected_share_and_group_size(trial)),
                // Above the capacity, timeouts and missing connections (of plimsoll or the server)
                // also make requests fail, so the model predicts no share of failures.
                false if trial.rate_rps > self.capacity_rps => None,
                false => Some((share_with_rare_failures(bound, bound.allowed_share * self.failed_floor), 1.0)),
            };
        };
        let bound_s = bound_ns as f64 / 1e9;
        let floor = bound.allowed_share * self.late_floor;
        match self.inputs.bounds.iter().any(|(of_slo_s, _)| *of_slo_s == bound_s) {
            true => {
                let (queued, bunch) = self.late_share_and_group_size(trial, bound_s, bound.allowed_share);
                Some((floor + (1.0 - floor) * queued, bunch.max(bound.bunch_size)))
            }
            false => Some((share_with_rare_failures(bound, floor), 1.0)),
        }
    }

    fn build_rejection_model(&self) -> RejectionModel {
        let ServerParameterDraw { capacity_rps, dispersion_sum, queue_size: room, burst, .. } = *self;
        RejectionModel { capacity_rps, dispersion_sum, queue_size: room, burst }
    }

    /// Returns the expected share of requests that the queue makes late in a trial, and how many of
    /// these requests make one independent observation.
    fn late_share_and_group_size(&self, trial: &OpenTrial, bound_s: f64, share: f64) -> (f64, f64) {
        let (capacity_rps, rate_rps) = (self.capacity_rps, trial.rate_rps);
        let WaitTail { decay, wait_s } = self.wait_tail(bound_s, share.max(ALLOWED_BAD_SHARE_MIN));
        let headroom_rps = (capacity_rps - rate_rps).max(0.0);
        let stationary = (-decay * headroom_rps * wait_s).exp();
        // In a short trial, the queue starts empty and its length is a random walk reflected at
        // zero.
        let half_s = trial.duration_s / 2.0;
        let drift = (rate_rps - capacity_rps) * half_s;
        let far = (capacity_rps * wait_s - drift) / (self.dispersion_sum * capacity_rps * half_s).sqrt();
        let reached = (2.0 * upper_tail(far)).min(1.0);
        // Above the capacity, requests are late as soon as the backlog is long enough.
        let beyond = (rate_rps / capacity_rps - 1.0).max(0.0);
        let late_from_s = if beyond > 0.0 { wait_s / beyond } else { f64::INFINITY };
        let late = (1.0 - late_from_s / trial.duration_s).max(0.0);
        let queued = if headroom_rps > 0.0 { stationary.min(reached) } else { reached.min(0.5).max(late) };
        // One excursion of the queue beyond the bound has rate / (theta (1 - rho)) late requests on
        // average. Here theta is the decay of the tail, and rho is the utilisation. Excursions vary
        // in length and come in groups, so [`LATE_GROUP_SIZE_FACTOR`] multiplies the mean number of
        // late requests.
        let per_excursion = rate_rps * capacity_rps / (decay * headroom_rps * headroom_rps).max(1e-9);
        (queued, LATE_GROUP_SIZE_FACTOR * per_excursion)
    }
}

/// Returns the expected share of bad requests, 0..=1. The expected share equals the observed share,
/// but is at least `floor` and at most the larger of `floor` and [`RARE_FAILURES_SHARE_MAX`]. So a
/// few failures in 500 000 requests do not contradict a server without a floor.
fn share_with_rare_failures(bound: &BoundEvidence, floor: f64) -> f64 {
    (bound.bad_requests as f64 / bound.scheduled.max(1) as f64).clamp(floor, floor.max(RARE_FAILURES_SHARE_MAX))
}

/// The coordinates of the first three dimensions of each random draw, with a normal distribution.
/// The coordinates are computed once, because every fit uses the same draws.
static QUASIRANDOM_NORMALS: LazyLock<Vec<[f64; 3]>> = LazyLock::new(|| {
    let draw = |at| [0, 1, 2].map(|dimension| normal_quantile(quasirandom_coordinate(at, dimension)));
    (0..PARAMETER_DRAW_COUNT).map(draw).collect()
});

/// Returns coordinate `dimension` of point `at` of a quasirandom sequence, which fills the unit
/// cube evenly (Roberts, "The unreasonable effectiveness of quasirandom sequences").
fn quasirandom_coordinate(at: usize, dimension: usize) -> f64 {
    const QUASIRANDOM_STEPS: [f64; 6] = [
        0.898_653_712_628_699_2,
        0.807_578_495_213_944_8,
        0.725_733_412_888_213_1,
        0.652_182_825_799_428_8,
        0.586_086_516_785_479_3,
        0.526_688_728_670_519_6,
    ];
    (0.5 + (at as f64 + 1.0) * QUASIRANDOM_STEPS[dimension]).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_requests_without_a_failure_expect_no_failure() {
        for (scheduled, bad, floor, expect) in
            [(500_000, 0, 0.0, 0.0), (500_000, 2, 0.0, 4e-6), (1_000, 9, 0.0, 1e-5), (1_000, 0, 0.01, 0.01)]
        {
            let bound =
                BoundEvidence { bound_ns: None, allowed_share: 0.001, scheduled, bad_requests: bad, bunch_size: 1.0 };
            assert_eq!(share_with_rare_failures(&bound, floor), expect, "{scheduled} {bad} {floor}");
        }
    }
}
