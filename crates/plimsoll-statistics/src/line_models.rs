//! The common parts of the models of a server: the trials that the models explain, and the
//! likelihood of a trial. [`crate::line_distribution`] combines the models.
//!
//! Not here: the models (`capacity_model`, `direct_model`).

/// Prior probability that a trial is disturbed by something that no probe observed.
const DISTURBED_PRIOR: f64 = 0.1;
/// The likelihood of a disturbed trial, relative to the likelihood under a model that predicts the
/// counts of the trial exactly.
const DISTURBED_LIKELIHOOD: f64 = 0.02;
/// The rise of the mean length of a queue that starts empty, from 3/8 to 7/8 of a trial. The times
/// 3/8 and 7/8 are the middles of the second and the last quarter of the trial. The unit is the
/// standard deviation of arrivals minus completions over the whole trial. The value is E|B(7/8)| -
/// E|B(3/8)| = sqrt(2 / pi) (sqrt(7/8) - sqrt(3/8)) for a Brownian motion B.
const EMPTY_START_RISE: f64 = 0.258;
/// The lowest allowed share of bad requests. A bound that allows no bad request counts as a bound
/// that allows one bad request in a million: no test proves a share of 0.
pub const ALLOWED_BAD_SHARE_MIN: f64 = 1e-6;

/// The counts of requests in a trial for one bound of the SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundEvidence {
    /// The latency limit, in ns: a slower response is bad. `None` if only failures are bad, or if
    /// the bound applies to connections.
    pub bound_ns: Option<u64>,
    /// Share of the scheduled requests that may be bad, 0..=1.
    pub allowed_share: f64,
    /// Scheduled requests that the bound applies to.
    pub scheduled: u64,
    /// Requests that broke the bound.
    pub bad_requests: u64,
    /// Mean number of bad requests that occur together; at least 1. Bad requests that occur
    /// together count as one independent observation.
    pub bunch_size: f64,
}

/// The figures of an open-loop trial that the models of the server must explain.
#[derive(Debug, Clone)]
pub struct OpenTrial {
    /// Arrival rate, 1/s.
    pub rate_rps: f64,
    /// Length of the trial, s.
    pub duration_s: f64,
    /// Growth of the mean backlog from the second quarter of the trial to the last quarter,
    /// requests.
    pub backlog_growth: f64,
    /// Mean number of requests in flight in the second quarter of the trial.
    pub in_flight: f64,
    /// The bad requests for each bound of the SLO.
    pub bounds: Vec<BoundEvidence>,
    /// Whether the server already rejected requests when the trial began.
    pub is_burst_exhausted: bool,
}

/// The data that a model of the server needs to compute its distribution of the load line.
pub struct ServerModelInputs<'a> {
    /// The open-loop trials that the model of the server must explain.
    pub trials: &'a [OpenTrial],
    /// Dispersion of the arrivals: 1 for random arrivals, 0 for evenly spaced arrivals.
    pub arrivals_dispersion: f64,
    /// Mean service time of a request of a single user, s.
    pub service_s: f64,
    /// Whether the server rejects surplus requests.
    pub rejects: bool,
    /// Latency bounds of the SLO: time in s, and the share of requests that may exceed the time.
    pub bounds: Vec<(f64, f64)>,
    /// The share of requests that may fail under the SLO, 0..=1.
    pub failed_share_max: f64,
}

impl ServerModelInputs<'_> {
    /// Returns the log likelihood of the observed growth of a trial's backlog. `capacity_rps` is
    /// the assumed capacity of the server, and `dispersion` the index of dispersion of its
    /// completions.
    pub(crate) fn backlog_growth_ln_likelihood(&self, trial: &OpenTrial, capacity_rps: f64, dispersion: f64) -> f64 {
        let half_s = trial.duration_s / 2.0;
        let dispersion_sum = (self.arrivals_dispersion + dispersion).max(0.01);
        let served_rps = trial.rate_rps.min(capacity_rps);
        let drift = (trial.rate_rps - capacity_rps).max(0.0) * half_s;
        let mut variance = dispersion_sum * served_rps * half_s;
        // The mean length of a queue that starts empty grows, because the length cannot be
        // negative.
        let mut rise = EMPTY_START_RISE * (dispersion_sum * served_rps * trial.duration_s).sqrt();
        if trial.rate_rps < capacity_rps {
            // In steady state the length of the queue varies by no more than its own mean length.
            let length = dispersion_sum / (2.0 * (1.0 - trial.rate_rps / capacity_rps));
            variance = variance.min(2.0 * length * length);
            rise = rise.min(length / 2.0);
        }
        rise *= (1.0 - drift / variance.sqrt().max(1.0)).max(0.0);
        // The number of requests in service also varies, which adds to the variance of the
        // backlog's growth.
        let deviation = (variance + served_rps * self.service_s + 1.0).sqrt();
        student_t_ln_density((trial.backlog_growth - drift - rise) / deviation)
    }
}

/// How well a model of the server explains the trials, and the load lines that the model allows.
pub(crate) struct ModelFit {
    /// Logarithm of the mean likelihood of the trials, over all parameters of the model.
    pub ln_likelihood: f64,
    /// Possible rates of the load line, 1/s, with weights that sum to 1.
    pub lines: Vec<(f64, f64)>,
}

impl ModelFit {
    /// Creates the fit from possible load lines with their log likelihoods. The prior gives equal
    /// probability to all given load lines.
    pub(crate) fn new(lines: Vec<(f64, f64)>) -> ModelFit {
        let count = lines.len() as f64;
        let best = lines.iter().map(|it| it.1).fold(f64::NEG_INFINITY, f64::max);
        let weighted: Vec<(f64, f64)> = lines.into_iter().map(|(rate, ln)| (rate, (ln - best).exp())).collect();
        let sum: f64 = weighted.iter().map(|it| it.1).sum();
        let lines = weighted.into_iter().map(|(rate, weight)| (rate, weight / sum.max(1e-300))).collect();
        ModelFit { ln_likelihood: best + (sum / count.max(1.0)).max(1e-300).ln(), lines }
    }
}

/// Returns the log density of Student's t distribution with 4 degrees of freedom, without its
/// constant. The heavy tails of Student's t distribution give outliers less weight.
fn student_t_ln_density(z: f64) -> f64 {
    -2.5 * (1.0 + z * z / 4.0).ln()
}

/// Returns the log likelihood of a share `q` of bad requests, minus the log likelihood of the
/// observed share. `bunch` is the number of bad requests that make one independent observation.
pub(crate) fn bad_share_ln_likelihood(q: f64, scheduled: f64, bad: f64, bunch: f64) -> f64 {
    let (n, b) = (scheduled / bunch, (bad / bunch).min(scheduled / bunch));
    let ln = |q: f64| {
        let q = q.clamp(1e-12, 1.0 - 1e-9);
        b * q.ln() + (n - b) * (1.0 - q).ln()
    };
    ln(q) - ln(b / n.max(1e-12))
}

/// Returns a trial's log likelihood if the trial may have been disturbed with the probability
/// [`DISTURBED_PRIOR`].
pub(crate) fn with_disturbance_probability(ln_likelihood: f64) -> f64 {
    ((1.0 - DISTURBED_PRIOR) * ln_likelihood.exp() + DISTURBED_PRIOR * DISTURBED_LIKELIHOOD).ln()
}
