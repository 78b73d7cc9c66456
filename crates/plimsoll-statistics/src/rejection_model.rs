//! The model of a server that rejects surplus requests, such as a rate limiter or a server with a
//! bounded queue.
//!
//! Not here: whether a server rejects requests ([`crate::capacity`]).

use crate::line_models::OpenTrial;
use crate::normal::{normal_density, upper_tail};

/// At low loads, the size of the queue has less effect than near the capacity. For each unit of the
/// headroom's logarithm, [`rejected_share`] reduces the size of the queue by this share. Simulated
/// token buckets of 2 to 40 tokens with random arrivals gave this share.
const LOW_LOAD_QUEUE_SIZE_REDUCTION: f64 = 0.12;
/// Smallest size of a group of rejections that count as one observation, because rejections in
/// steady state occur together.
const REJECTION_GROUP_SIZE: f64 = 2.0;
/// The largest headroom (capacity divided by the arrival rate) in the model of a rejecting server.
const HEADROOM_MAX: f64 = 1e3;

/// Returns the share of requests that a server rejects, 0..1. `headroom` is the capacity divided by
/// the arrival rate. `queue_size` is the size of the queue.
///
/// The queue M/M/1/K rejects the share (1 - rho) rho^K / (1 - rho^(K+1)), with rho = 1 / headroom.
/// Here `queue_size` is K + 1, so the share is (headroom - 1) / (headroom^queue_size - 1). For
/// other arrivals and services, the caller computes `queue_size` as 2 B / (I_a + I_s), as in heavy
/// traffic (Kingman, 1962). B is the number of requests that may wait, or of tokens of a rate
/// limiter. I_a and I_s are the indices of dispersion of the arrivals and of the services.
fn rejected_share(headroom: f64, queue_size: f64) -> f64 {
    let ln = headroom.max(1e-9).ln();
    let (spare, power) = (headroom - 1.0, queue_size * ln * (1.0 - LOW_LOAD_QUEUE_SIZE_REDUCTION * ln).max(0.5));
    if spare.abs() < 1e-6 { 1.0 / queue_size.max(1.0) } else { (spare / power.exp_m1()).clamp(0.0, 1.0) }
}

/// The assumed parameters of a server that rejects surplus requests.
pub(crate) struct RejectionModel {
    /// Capacity of the server, 1/s.
    pub capacity_rps: f64,
    /// Sum of the dispersions of arrivals and completions.
    pub dispersion_sum: f64,
    /// The size of the queue, as in [`rejected_share`].
    pub queue_size: f64,
    /// The number of requests that a server accepts at once after a pause.
    pub burst: f64,
}

impl RejectionModel {
    /// Returns the expected share of rejected requests in a trial, and how many rejected requests
    /// make one independent observation.
    ///
    /// If the burst is exhausted when the trial begins, the number of rejections is at first the
    /// highest excess of arrivals over the capacity. The highest excess is the maximum of a
    /// Brownian motion with drift (Borodin and Salminen, "Handbook of Brownian Motion", 2002).
    /// Later in the trial, the share of rejections is that of the steady state.
    pub(crate) fn rejected_share_and_group_size(&self, trial: &OpenTrial) -> (f64, f64) {
        let requests = (trial.rate_rps * trial.duration_s).max(1.0);
        let steady = rejected_share(self.capacity_rps / trial.rate_rps, self.queue_size);
        let drift = (trial.rate_rps - self.capacity_rps) * trial.duration_s;
        let deviation = (self.dispersion_sum * requests).sqrt();
        let first = brownian_maximum_mean(drift, deviation);
        let rejected = if trial.is_burst_exhausted {
            first.max(steady * requests)
        } else {
            // At the start of the trial, the server could still accept a whole burst. The burst is
            // exhausted when the random deviation of the number of arrivals has grown to the size
            // of the burst.
            let used_up = (deviation / self.burst).powi(2).min(1.0);
            (first - self.burst).max(steady * requests * used_up)
        };
        let bunch = first.min(deviation * deviation / first.max(1.0)).max(REJECTION_GROUP_SIZE);
        ((rejected / requests).clamp(1e-5, 1.0 - 1e-9), bunch)
    }
}

/// Returns the mean of the maximum of a Brownian motion that starts at 0. `drift` is the mean of
/// the motion at the end, and `deviation` its standard deviation.
fn brownian_maximum_mean(drift: f64, deviation: f64) -> f64 {
    let m = drift / deviation;
    if m.abs() < 1e-6 {
        return 2.0 * normal_density(0.0) * deviation;
    }
    let below = 1.0 - upper_tail(m);
    (drift * below + deviation * normal_density(m) + deviation / (2.0 * m) * (2.0 * below - 1.0)).max(0.0)
}

/// Returns the headroom (capacity divided by the arrival rate, at least 1) at which a server
/// rejects the share `share` of the requests. `queue_size` is the size of the queue, as in
/// [`rejected_share`].
pub(crate) fn rejection_headroom(share: f64, queue_size: f64) -> f64 {
    let (mut low, mut high) = (1.0, HEADROOM_MAX);
    for _ in 0..40 {
        let middle: f64 = (low * high).sqrt();
        if rejected_share(middle, queue_size) > share { low = middle } else { high = middle }
    }
    high
}
