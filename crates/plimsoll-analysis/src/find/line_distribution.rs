//! The estimate of the load line from all measurements ([`LoadLineDistribution`]): a distribution
//! of the highest rate that meets the SLO in steady state.
//!
//! Three models of the server, called accounts in the code, explain the same trials. Each model is
//! weighted by its likelihood. Two of them are capacity models: one with the capacity from
//! saturated trials, and one with the capacity from open trials with a growing backlog.
//!
//! *Capacity model.* A queue whose arrival rate is below its capacity C has response times with an
//! exponential tail. A request takes longer than t with probability exp(-theta t), where theta = 2
//! (C - rate) / (I_a + I_s). I_a is the dispersion of the arrivals: 1 for random arrivals, 0 for
//! evenly spaced arrivals. I_s is the dispersion of the completions. So a share a of the requests
//! is later than t at the rate C - ln(1 / a) (I_a + I_s) / (2 t). This formula of Kingman (1962) is
//! exact for M/M/1.
//!
//! C and I_s are measured while the server is saturated ([`Capacity`]). This measurement takes
//! seconds; a direct count of late requests would take hours. The formula holds for heavy traffic.
//! Its error grows as t approaches a single service time.
//!
//! *Direct model.* The share of bad requests grows as some power of the rate. The load line and the
//! power are unknown, and the counts of bad requests at the tried rates determine both. This model
//! uses the capacity in one respect only: a rate with a growing backlog is above the load line.
//!
//! Late requests come in bunches, and one bunch counts as one observation
//! ([`BoundEvidence::bunch_size`]). Each trial may be disturbed with a small probability, so no
//! single trial decides.
//!
//! Not here: which trial to make next.

use super::capacity::{Capacity, is_rejecting_overload};
use super::normal::{density, normal_quantile, upper_tail};
use crate::judge::{BoundEvidence, TrialOutcome, Verdict};
use crate::slo::Slo;
use plimsoll_model::Purpose;

/// The probability that the load line lies below the lower end of its 90 % interval. A search stops
/// when the interval is short. With this stopping rule, tails of 5 % would contain the load line in
/// 6 to 7 % of the searches. With tails of 3.75 % the figure is 5 % (`truth -- find`,
/// docs/explanation/coverage.md).
pub(super) const LOW: f64 = 0.0375;
/// The probability that the load line lies below the upper end of its 90 % interval.
pub(super) const HIGH: f64 = 1.0 - LOW;
/// Prior probability of the model of the server whose capacity comes from saturated trials.
const PRIOR_CAPACITY: f64 = 0.7;
/// Prior probability of the model of the server whose capacity comes from open trials with a
/// growing backlog.
const PRIOR_OPEN_TRIALS: f64 = 0.15;
/// Prior probability of the direct model of the server: bad requests grow as a power of the rate.
const PRIOR_DIRECT: f64 = 0.15;
/// Prior probability that a trial is disturbed by something that no probe observed.
const DISTURBED_PRIOR: f64 = 0.1;
/// The likelihood of a disturbed trial, relative to the likelihood under the model of the server
/// that explains the trial best.
const DISTURBED_LIKELIHOOD: f64 = 0.02;
/// Number of random draws of the parameters of a capacity model.
const DRAWS: usize = 1024;
/// The grid of the direct model of the server: number of candidate load lines, and number of
/// candidate powers (see [`POWER_RANGE`]).
const GRID: (usize, usize) = (64, 24);
/// How often the grid of the direct model of the server is refined to the region with most of the
/// likelihood.
const ZOOMS: usize = 4;
/// The minimum capacity that the capacity model assumes, as a share of the measured capacity.
const CAPACITY_SHARE_MIN: f64 = 0.01;
/// The range of powers in the direct model of the server: the share of bad requests grows as this
/// power of the rate. At the lowest power, latency hardly depends on the rate. At the highest
/// power, latency jumps at one rate.
const POWER_RANGE: (f64, f64) = (1.5, 400.0);
/// Each refinement of the grid keeps the points whose log likelihood is at most this much below the
/// maximum.
const LN_LIKELIHOOD_MARGIN: f64 = 9.0;
/// The backlog of an open trial shows that the rate exceeds the capacity if it grows by at least
/// this share of the arrivals.
const BACKLOG_GROWTH_SHARE_MIN: f64 = 0.03;
/// The backlog of an open trial counts as growing only if its growth exceeds this number of
/// standard deviations.
const BACKLOG_GROWTH_DEVIATIONS_MIN: f64 = 4.0;
/// The rise of the mean length of a queue that starts empty, from 3/8 to 7/8 of a trial, in units
/// of sqrt(variance). The value is E|B(7/8)| - E|B(3/8)| = sqrt(2 / pi) (sqrt(7/8) - sqrt(3/8)) for
/// a Brownian motion B.
const EMPTY_START_RISE: f64 = 0.258;
/// Prior probability that the server has no floor. A floor is a constant share of late (or failed)
/// requests at every rate.
const NO_FLOOR_PRIOR: f64 = 0.8;
/// The range of the floor: the share of requests that is bad at every rate, as a multiple of the
/// share that the SLO allows.
const FLOOR_RANGE: (f64, f64) = (0.03, 0.95);
/// The largest share of requests that may fail at any rate without a floor.
const RARE_FAILURES_SHARE_MAX: f64 = 1e-5;
/// The largest burst that a server with a rate limiter may accept at once: its capacity multiplied
/// by this time, s. The smallest burst is one request. The logarithm of the burst is the square of
/// a uniform variable, so that half of the prior probability lies at small bursts. A search at a
/// low rate sees too few requests to rule them out.
const BURST_S_MAX: f64 = 10.0;
/// The relative error of the number of requests that may wait at a rejecting server (see
/// [`rejected_share`]). This value of 10 % holds between the load line and the capacity. It comes
/// from comparisons with simulated token buckets of 2 to 40 tokens.
const FORMULA_ERROR_ROOM: f64 = 0.1;
/// At low loads, the number of requests that may wait counts less than near the capacity. The
/// reduction is this share for each unit of the logarithm of the headroom. The value comes from
/// simulated token buckets of 2 to 40 tokens with random arrivals.
const ROOM_LOW_LOAD: f64 = 0.12;
/// The number of rejections that occur together at a rejecting server in steady state.
const REJECTION_GROUP_SIZE: f64 = 2.0;
/// The largest headroom (capacity divided by the arrival rate) in the model of a rejecting server.
const HEADROOM_MAX: f64 = 1e3;
/// The lowest allowed share of bad requests. A bound without allowed violations counts as one in a
/// million, because no test proves a share of 0.
const SHARE_MIN: f64 = 1e-6;
/// The expected number of late requests in one excursion of the queue (one period with a long
/// queue) is multiplied by this. Excursions of exponential length double the number, and excursions
/// that return soon double it again.
const LATE_GROUP_SIZE_FACTOR: f64 = 4.0;
/// A model of the server with a smaller share of the weight than this counts as refuted.
const REFUTED_WEIGHT: f64 = 0.03;
/// The constant part of the relative error of the heavy-traffic formula (standard deviation of its
/// logarithm). The value comes from comparisons with the exact formulas of M/D/1 and M/M/8.
const FORMULA_ERROR: f64 = 0.03;
/// The part of the heavy-traffic formula's relative error that grows with the ratio of the service
/// time to 1 / theta.
const FORMULA_ERROR_NEAR: f64 = 0.25;

/// The figures of an open-loop trial that the models of the server must explain.
#[derive(Debug, Clone)]
struct OpenTrial {
    rate: f64,
    seconds: f64,
    growth: f64,
    in_flight: f64,
    bounds: Vec<BoundEvidence>,
    /// Whether the server already rejected requests when the trial began.
    primed: bool,
}

/// A probability distribution of the load line.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadLineDistribution {
    /// Possible rates of the load line, 1/s, with their weights, in ascending order of the rate.
    draws: Vec<(f64, f64)>,
    /// The rate of a trial that would decide between the models of the server, 1/s. The value is
    /// `None` unless several models have a large weight and their load lines differ.
    pub decisive_rate_rps: Option<f64>,
    /// Share of the variance of the load line that comes from the error of the capacity, 0..=1.
    pub capacity_variance_share: f64,
}

/// The data that a model of the server needs to compute its distribution of the load line.
struct AccountTerms<'a> {
    sights: &'a [OpenTrial],
    arrivals_dispersion: f64,
    /// Mean service time of a request of a single user, s.
    service_s: f64,
    rejects: bool,
    /// Latency bounds of the SLO: time in s, and the share of requests that may exceed the time.
    bounds: Vec<(f64, f64)>,
    /// The share of requests that may fail under the SLO, 0..=1.
    failed_share: f64,
}

impl LoadLineDistribution {
    /// Computes the distribution of the load line from these trials. `arrivals_dispersion` is 1 for
    /// random arrivals, 0 for evenly spaced arrivals. `service_s` is the mean service time of a
    /// single user, s.
    pub(super) fn new(
        history: &[TrialOutcome],
        capacity: Option<&Capacity>,
        slo: &Slo,
        arrivals_dispersion: f64,
        service_s: f64,
    ) -> LoadLineDistribution {
        let sights = open_trials(history);
        let mut bounds: Vec<(f64, f64)> = Vec::new();
        for allowance in slo.allowances() {
            let bound = allowance.request_bound_ns().map(|ns| (ns as f64 / 1e9, allowance.share.max(SHARE_MIN)));
            bounds.extend(bound.filter(|bound| !bounds.contains(bound)));
        }
        let rejects = capacity.is_some_and(|capacity| capacity.rejects);
        // A server that rejects requests keeps its queue short. The trials in which it rejected
        // requests show which latency bounds the queue can exceed.
        let overloads = history.iter().filter(|trial| is_rejecting_overload(trial));
        let slowest_s = overloads.map(|trial| trial.p99_ns as f64 / 1e9).fold(0.0, f64::max);
        bounds.retain(|(bound_s, _)| slowest_s <= 0.0 || *bound_s < slowest_s);
        let failed = slo.allowances().into_iter().filter(|allowance| allowance.bound_ns.is_none());
        let failed_share = failed.map(|allowance| allowance.share.max(SHARE_MIN)).fold(1.0, f64::min);
        let terms = AccountTerms { sights: &sights, arrivals_dispersion, service_s, rejects, bounds, failed_share };
        let mut accounts: Vec<(f64, Vec<(f64, f64)>)> = Vec::new();
        let mut from_capacity = 0.0;
        if let Some(capacity) = capacity {
            let (evidence, draws) = terms.capacity_account(capacity);
            from_capacity = variance_share(&draws, capacity.error_rps);
            accounts.push((PRIOR_CAPACITY.ln() + evidence, draws));
        }
        if let Some((rps, error_rps)) = open_capacity(&sights, capacity, arrivals_dispersion) {
            // Only the mean comes from these trials; the dispersion of the completions does not.
            let own = Capacity { rps, error_rps, ..capacity.copied().unwrap_or(Capacity::NONE) };
            let (evidence, draws) = terms.capacity_account(&own);
            // The centre of this prior comes from the same trials that the model explains. The
            // penalty for that choice is the ratio of the error to 10 % of the rate.
            let occam = (error_rps / (0.1 * rps)).ln().min(0.0);
            accounts.push((PRIOR_OPEN_TRIALS.ln() + evidence + occam, draws));
        }
        // Trials with an exhausted burst reject more than in steady state. Only the capacity model
        // of a rejecting server describes this effect.
        let direct = !rejects || accounts.is_empty();
        if direct {
            let (evidence, draws) = terms.direct(capacity);
            accounts.push((PRIOR_DIRECT.ln() + evidence, draws));
        }
        let best = accounts.iter().map(|account| account.0).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = accounts.iter().map(|account| (account.0 - best).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let direct = if direct { weights.last().copied().unwrap_or(0.0) / sum } else { 0.0 };
        let disputed_rate = disputed_rate(&weights, &accounts);
        let mut draws: Vec<(f64, f64)> = Vec::new();
        for (weight, (_, account)) in weights.iter().zip(&accounts) {
            draws.extend(account.iter().map(|(rate, own)| (*rate, own * weight / sum)));
        }
        draws.retain(|draw| draw.0.is_finite() && draw.1 > 0.0);
        draws.sort_by(|a, b| a.0.total_cmp(&b.0));
        LoadLineDistribution {
            draws,
            decisive_rate_rps: disputed_rate,
            capacity_variance_share: from_capacity * (1.0 - direct),
        }
    }

    /// Returns the rate, 1/s, that the load line is below with probability `p`. Returns 0 if
    /// nothing is known, or if no rate meets the SLO.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        let total: f64 = self.draws.iter().map(|draw| draw.1).sum();
        let mut sum = 0.0;
        for (at, (rate, weight)) in self.draws.iter().enumerate() {
            let before = sum;
            sum += weight / total;
            if sum >= p {
                // Interpolates between two draws, so that the steps between draws do not change the
                // width of the interval.
                let last = at.checked_sub(1).map_or(*rate, |at| self.draws[at].0);
                let part = if sum > before { (p - before) / (sum - before) } else { 1.0 };
                return (last + (rate - last) * part).max(0.0);
            }
        }
        self.draws.last().map_or(0.0, |draw| draw.0.max(0.0))
    }
}

impl Capacity {
    const NONE: Capacity = Capacity {
        rps: 0.0,
        error_rps: 0.0,
        dispersion: 1.0,
        // Then the dispersion is between 0.4 and 7 with a probability of 95 %.
        pieces: 6.0,
        trials: 0,
        set_aside: 0,
        seconds: 0.0,
        rejects: false,
    };
}

/// Returns the median of the model of the server with the highest load line, if the models
/// disagree. Models disagree if the 90 % interval of another model with a large weight lies wholly
/// below this interval.
fn disputed_rate(weights: &[f64], accounts: &[(f64, Vec<(f64, f64)>)]) -> Option<f64> {
    let sum: f64 = weights.iter().sum();
    let of = |draws: &Vec<(f64, f64)>| {
        let mut draws = draws.clone();
        draws.sort_by(|a, b| a.0.total_cmp(&b.0));
        let belief = LoadLineDistribution { draws, ..LoadLineDistribution::default() };
        [LOW, 0.5, HIGH].map(|p| belief.quantile(p))
    };
    let strong = weights.iter().zip(accounts).filter(|(weight, _)| **weight > REFUTED_WEIGHT * sum);
    let found: Vec<[f64; 3]> = strong.map(|(_, account)| of(&account.1)).collect();
    let highest = found.iter().copied().reduce(|a, b| if a[1] >= b[1] { a } else { b })?;
    let apart = found.iter().any(|other| other[2] < highest[0]);
    apart.then_some(highest[1])
}

/// Returns the share of the variance of `draws` that the capacity's standard error `error_rps`
/// causes, 0..=1.
fn variance_share(draws: &[(f64, f64)], error_rps: f64) -> f64 {
    let total: f64 = draws.iter().map(|draw| draw.1).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let mean = draws.iter().map(|draw| draw.0 * draw.1).sum::<f64>() / total;
    let variance = draws.iter().map(|draw| (draw.0 - mean).powi(2) * draw.1).sum::<f64>() / total;
    if variance > 0.0 { (error_rps * error_rps / variance).min(1.0) } else { 0.0 }
}

/// Returns the open-loop trials that count as evidence. With at least three undisturbed trials, a
/// disturbed trial counts only if it met the SLO.
fn open_trials(history: &[TrialOutcome]) -> Vec<OpenTrial> {
    let open = || {
        history.iter().filter(|trial| {
            matches!(trial.purpose, Purpose::Climb | Purpose::Line | Purpose::Confirm)
                && trial.evidence.scheduled > 0
                && !(trial.verdict == Verdict::Void && trial.evidence.generator_limited)
        })
    };
    let quiet = open().filter(|trial| !trial.interference.disturbed).count();
    open()
        .filter(|trial| quiet < 3 || !trial.interference.disturbed || trial.verdict == Verdict::Pass)
        .filter_map(|trial| {
            Some(OpenTrial {
                rate: trial.offered_rps().filter(|rate| *rate > 0.0)?,
                seconds: trial.duration_ns as f64 / 1e9,
                growth: trial.evidence.growth_requests,
                in_flight: trial.evidence.in_flight[1].max(0.0),
                bounds: trial.evidence.bounds.clone(),
                primed: trial.evidence.primed,
            })
        })
        .collect()
}

/// Returns the capacity and its standard error, 1/s, from open trials whose backlog grew. The
/// capacity is the arrival rate minus the growth rate of the backlog.
fn open_capacity(sights: &[OpenTrial], capacity: Option<&Capacity>, arrivals_dispersion: f64) -> Option<(f64, f64)> {
    let dispersion = capacity.map_or(1.0, |capacity| capacity.dispersion);
    let shown = |sight: &OpenTrial| {
        let half_s = sight.seconds / 2.0;
        let walk = ((arrivals_dispersion + dispersion) * sight.rate * half_s + sight.in_flight + 1.0).sqrt();
        let behind = sight.growth > BACKLOG_GROWTH_SHARE_MIN * sight.rate * half_s
            && sight.growth > BACKLOG_GROWTH_DEVIATIONS_MIN * walk;
        let rps = sight.rate - sight.growth / half_s;
        (behind && rps > 0.0).then(|| (rps, (walk / half_s).max(0.003 * rps)))
    };
    let found: Vec<(f64, f64)> = sights.iter().filter_map(shown).collect();
    let weights: f64 = found.iter().map(|it| it.1.powi(-2)).sum();
    if found.is_empty() {
        return None;
    }
    let mean = found.iter().map(|it| it.0 * it.1.powi(-2)).sum::<f64>() / weights;
    let spread = found.iter().map(|it| (it.0 - mean).powi(2)).sum::<f64>() / found.len() as f64;
    Some((mean, (1.0 / weights + spread / found.len() as f64).sqrt()))
}

/// Returns the share of requests that a server rejects, 0..1. `headroom` is the capacity divided by
/// the arrival rate. `room` is the number of requests that may wait, or tokens of a rate limiter.
///
/// The formula is that of the queue M/M/1/K: with rho = 1 / headroom, the share is (1 - rho) rho^K
/// / (1 - rho^(K+1)). For other arrivals and services K is 2 `room` / (I_a + I_s), as in heavy
/// traffic (Kingman, 1962).
fn rejected_share(headroom: f64, room: f64) -> f64 {
    let ln = headroom.max(1e-9).ln();
    let (spare, power) = (headroom - 1.0, room * ln * (1.0 - ROOM_LOW_LOAD * ln).max(0.5));
    if spare.abs() < 1e-6 { 1.0 / room.max(1.0) } else { (spare / power.exp_m1()).clamp(0.0, 1.0) }
}

/// One assumption about the parameters of a server that rejects surplus requests.
struct Rejecting {
    /// Capacity of the server, 1/s.
    capacity: f64,
    /// Sum of the dispersions of arrivals and completions.
    both: f64,
    /// The number of requests that may wait, or tokens of a rate limiter, as in [`rejected_share`].
    room: f64,
    /// The number of requests that a server accepts at once after a pause.
    burst: f64,
}

impl Rejecting {
    /// Returns the expected share of rejected requests in a trial, and how many of these requests
    /// make one independent observation.
    ///
    /// If the burst is exhausted when the trial begins, the number of rejections is at first the
    /// highest excess of arrivals over the capacity. This excess is the maximum of a Brownian
    /// motion with drift (Borodin and Salminen, "Handbook of Brownian Motion", 2002). Later the
    /// share of rejections is that of the steady state.
    fn share_and_bunch(&self, sight: &OpenTrial) -> (f64, f64) {
        let requests = (sight.rate * sight.seconds).max(1.0);
        let steady = rejected_share(self.capacity / sight.rate, self.room);
        let drift = (sight.rate - self.capacity) * sight.seconds;
        let deviation = (self.both * requests).sqrt();
        let first = maximum_mean(drift, deviation);
        let rejected = if sight.primed {
            first.max(steady * requests)
        } else {
            // The burst was whole at the beginning. The arrivals use up the burst within the time
            // in which they deviate from their mean by the burst.
            let used_up = (deviation / self.burst).powi(2).min(1.0);
            (first - self.burst).max(steady * requests * used_up)
        };
        let bunch = first.min(deviation * deviation / first.max(1.0)).max(REJECTION_GROUP_SIZE);
        ((rejected / requests).clamp(1e-5, 1.0 - 1e-9), bunch)
    }
}

/// Returns the mean of the maximum of a Brownian motion that starts at 0. `drift` is the mean of
/// the motion at the end, and `deviation` its standard deviation.
fn maximum_mean(drift: f64, deviation: f64) -> f64 {
    let m = drift / deviation;
    if m.abs() < 1e-6 {
        return 2.0 * density(0.0) * deviation;
    }
    let below = 1.0 - upper_tail(m);
    (drift * below + deviation * density(m) + deviation / (2.0 * m) * (2.0 * below - 1.0)).max(0.0)
}

/// Returns the headroom (capacity divided by the arrival rate, at least 1) at which a server
/// rejects the share `share` of the requests. `room` is the number of requests that may wait, as in
/// [`rejected_share`].
fn rejection_headroom(share: f64, room: f64) -> f64 {
    let (mut low, mut high) = (1.0, HEADROOM_MAX);
    for _ in 0..40 {
        let middle: f64 = (low * high).sqrt();
        if rejected_share(middle, room) > share { low = middle } else { high = middle }
    }
    high
}

/// Returns the log density of Student's t distribution with 4 degrees of freedom, without its
/// constant. Its heavy tails give outliers less weight.
fn ln_t(z: f64) -> f64 {
    -2.5 * (1.0 + z * z / 4.0).ln()
}

/// Returns the log likelihood of a share `q` of bad requests, minus the log likelihood of the
/// observed share. `bunch` is the number of bad requests that make one independent observation.
fn ln_share(q: f64, scheduled: f64, bad: f64, bunch: f64) -> f64 {
    let (n, b) = (scheduled / bunch, (bad / bunch).min(scheduled / bunch));
    let ln = |q: f64| {
        let q = q.clamp(1e-12, 1.0 - 1e-9);
        b * q.ln() + (n - b) * (1.0 - q).ln()
    };
    ln(q) - ln(b / n.max(1e-12))
}

/// Returns the expected share of bad requests for a constant share `floor`, 0..=1. Rare failures
/// may come in addition. If there were none, none were expected: 500 000 requests without any
/// failure do not contradict a server that keeps up.
fn share_or_rare(bound: &BoundEvidence, floor: f64) -> f64 {
    (bound.bad as f64 / bound.scheduled.max(1) as f64).clamp(floor, floor.max(RARE_FAILURES_SHARE_MAX))
}

/// Returns a trial's log likelihood with the possibility included that the trial was disturbed.
fn with_disturbance_probability(ln_likelihood: f64) -> f64 {
    ((1.0 - DISTURBED_PRIOR) * ln_likelihood.exp() + DISTURBED_PRIOR * DISTURBED_LIKELIHOOD).ln()
}

/// Returns coordinate `dimension` of point `at` of a quasirandom sequence, which fills the unit
/// cube evenly (Roberts, "The unreasonable effectiveness of quasirandom sequences").
fn quasirandom_coordinate(at: usize, dimension: usize) -> f64 {
    const STEP: [f64; 6] = [
        0.898_653_712_628_699_2,
        0.807_578_495_213_944_8,
        0.725_733_412_888_213_1,
        0.652_182_825_799_428_8,
        0.586_086_516_785_479_3,
        0.526_688_728_670_519_6,
    ];
    (0.5 + (at as f64 + 1.0) * STEP[dimension]).fract()
}

impl AccountTerms<'_> {
    /// Returns the log likelihood of the observed growth of a trial's backlog, if the server's
    /// capacity is `capacity_rps`.
    fn ln_growth(&self, sight: &OpenTrial, capacity_rps: f64, dispersion: f64) -> f64 {
        let half_s = sight.seconds / 2.0;
        let both = (self.arrivals_dispersion + dispersion).max(0.01);
        let served = sight.rate.min(capacity_rps);
        let drift = (sight.rate - capacity_rps).max(0.0) * half_s;
        let mut walk = both * served * half_s;
        // The mean length of a queue that starts empty grows, because the length cannot be
        // negative.
        let mut rise = EMPTY_START_RISE * (both * served * sight.seconds).sqrt();
        if sight.rate < capacity_rps {
            // In steady state the length of the queue varies by no more than its own mean length.
            let length = both / (2.0 * (1.0 - sight.rate / capacity_rps));
            walk = walk.min(2.0 * length * length);
            rise = rise.min(length / 2.0);
        }
        rise *= (1.0 - drift / walk.sqrt().max(1.0)).max(0.0);
        // The number of requests in service also varies.
        let deviation = (walk + served * self.service_s + 1.0).sqrt();
        ln_t((sight.growth - drift - rise) / deviation)
    }

    /// Evaluates the capacity model of the server: the log of its mean likelihood, and the load
    /// lines of its draws with their weights.
    fn capacity_account(&self, of: &Capacity) -> (f64, Vec<(f64, f64)>) {
        let Capacity { rps, error_rps, .. } = *of;
        let freedom = (of.pieces - 1.0).max(1.0);
        let mut logs: Vec<(f64, f64)> = Vec::with_capacity(DRAWS);
        for at in 0..DRAWS {
            // A capacity with a large error has draws below zero, which no server has.
            let capacity =
                (rps + error_rps * normal_quantile(quasirandom_coordinate(at, 0))).max(CAPACITY_SHARE_MIN * rps);
            // The variance of a sample has a chi-squared distribution (approximation: Wilson and
            // Hilferty's cube).
            let cube = 1.0 - 2.0 / (9.0 * freedom)
                + normal_quantile(quasirandom_coordinate(at, 1)) * (2.0 / (9.0 * freedom)).sqrt();
            let dispersion = of.dispersion / cube.max(0.2).powi(3);
            let both = (self.arrivals_dispersion + dispersion).max(1e-3);
            let (error, place) = (normal_quantile(quasirandom_coordinate(at, 2)), quasirandom_coordinate(at, 3));
            // The first value is theta / (C - rate): the decay of waiting times for each request/s
            // of headroom. The second value is the part of the bound `t` that is left for waiting.
            let kappa = |t: f64, a: f64| {
                let near = (1.0 / a).ln() / t * self.service_s;
                let off = (error * (FORMULA_ERROR + FORMULA_ERROR_NEAR * near)).exp();
                // A response time is a waiting time plus a service time. So the code subtracts
                // between zero and one service time from the bound.
                let left = (t - place * self.service_s.min(t / 2.0)).max(t / 4.0);
                (2.0 / both / off, left)
            };
            let [late_floor, failed_floor] =
                [quasirandom_coordinate(at, 4), quasirandom_coordinate(at, 5)].map(|u| match u {
                    u if u < NO_FLOOR_PRIOR => 0.0,
                    u => {
                        FLOOR_RANGE.0
                            * (FLOOR_RANGE.1 / FLOOR_RANGE.0).powf((u - NO_FLOOR_PRIOR) / (1.0 - NO_FLOOR_PRIOR))
                    }
                });
            // A server that rejects requests has room for a burst of unknown size: one request, or
            // many. The share of rejected requests follows from the size of the burst, and is not
            // constant.
            let burst = (BURST_S_MAX * capacity.max(1.0)).powf(quasirandom_coordinate(at, 5).powi(2));
            let room_for = 2.0 * burst / both * (error * FORMULA_ERROR_ROOM).exp();
            let failed_floor = if self.rejects { 0.0 } else { failed_floor };
            let mut line = capacity;
            if self.rejects {
                line = line.min(capacity / rejection_headroom(self.failed_share, room_for));
            }
            for (t, a) in &self.bounds {
                let floor = late_floor * *a;
                let (kappa, left) = kappa(*t, *a);
                let room = if floor < *a { (1.0 / (a - floor)).ln() / (kappa * left) } else { f64::INFINITY };
                line = line.min(capacity - room);
            }
            let mut ln = 0.0;
            for sight in self.sights {
                let growth = self.ln_growth(sight, capacity, dispersion);
                let mut worst: f64 = 0.0;
                for bound in &sight.bounds {
                    let floor = bound.share * if bound.bound_ns.is_some() { late_floor } else { failed_floor };
                    let beyond = (sight.rate / capacity - 1.0).max(0.0);
                    let (q, bunch) = match bound.bound_ns {
                        None if self.rejects => {
                            let terms = Rejecting { capacity, both, room: room_for, burst };
                            terms.share_and_bunch(sight)
                        }
                        // Above the capacity, requests also fail because plimsoll or the server
                        // runs out of connections, or because they time out.
                        None if beyond > 0.0 => continue,
                        None => (share_or_rare(bound, floor), 1.0),
                        Some(bound_ns) if !self.bounds.iter().any(|(t, _)| *t == bound_ns as f64 / 1e9) => {
                            (share_or_rare(bound, floor), 1.0)
                        }
                        Some(bound_ns) => {
                            let t = bound_ns as f64 / 1e9;
                            let (kappa, left) = kappa(t, bound.share.max(SHARE_MIN));
                            let room = (capacity - sight.rate).max(0.0);
                            let stationary = (-kappa * room * left).exp();
                            // A short trial starts with an empty queue: a random walk reflected at
                            // zero.
                            let half_s = sight.seconds / 2.0;
                            let drift = (sight.rate - capacity) * half_s;
                            let far = (capacity * left - drift) / (both * capacity * half_s).sqrt();
                            let reached = (2.0 * upper_tail(far)).min(1.0);
                            // Above the capacity, requests are late as soon as the backlog is long
                            // enough.
                            let late_from_s = if beyond > 0.0 { left / beyond } else { f64::INFINITY };
                            let late = (1.0 - late_from_s / sight.seconds).max(0.0);
                            let queued = if room > 0.0 { stationary.min(reached) } else { reached.min(0.5).max(late) };
                            // The mean number of late requests in one excursion of the queue beyond
                            // the bound is rate / (theta (1 - rho)). Excursions vary in length and
                            // come in groups, hence the factor LATE_GROUP_SIZE_FACTOR.
                            let bunch =
                                LATE_GROUP_SIZE_FACTOR * sight.rate * capacity / (kappa * room * room).max(1e-9);
                            (floor + (1.0 - floor) * queued, bunch.max(bound.bunch_size))
                        }
                    };
                    let scheduled = bound.scheduled as f64;
                    let bunch = bunch.clamp(1.0, scheduled.max(1.0));
                    worst = worst.min(ln_share(q, scheduled, bound.bad as f64, bunch));
                }
                ln += with_disturbance_probability(growth + worst);
            }
            logs.push((line, ln));
        }
        normalise_weights(logs, DRAWS as f64)
    }

    /// Returns the index of the SLO bound that the trials violated most. The direct model of the
    /// server uses only this bound.
    fn most_violated_bound(&self) -> usize {
        let bounds = self.sights.iter().map(|sight| sight.bounds.len()).max().unwrap_or(0);
        let excess = |at: usize| -> f64 {
            let of = |sight: &OpenTrial| {
                let bound = sight.bounds.get(at)?;
                Some(bound.bad as f64 / (bound.share * bound.scheduled as f64).max(1.0))
            };
            self.sights.iter().filter_map(of).sum()
        };
        // Among equal bounds, `max_by` returns the last one: a latency bound rather than the
        // success bound.
        (0..bounds).max_by(|a, b| excess(*a).total_cmp(&excess(*b))).unwrap_or(0)
    }

    /// Evaluates the direct model of the server: the log of its mean likelihood over all load lines
    /// and powers. Also returns the load lines of the grid with their weights.
    fn direct(&self, capacity: Option<&Capacity>) -> (f64, Vec<(f64, f64)>) {
        let rates = || self.sights.iter().map(|sight| sight.rate);
        let known = capacity.map(|it| it.rps);
        // The load line is not above the measured capacity, unless the server kept up in trials
        // above this capacity.
        let keeps_up = |sight: &&OpenTrial| sight.growth <= BACKLOG_GROWTH_SHARE_MIN * sight.rate * sight.seconds / 2.0;
        let met = self.sights.iter().filter(keeps_up).map(|sight| sight.rate).fold(0.0, f64::max);
        let high = match capacity {
            Some(it) => (it.rps + 3.0 * it.error_rps).max(met * 1.05),
            None => rates().fold(0.0, f64::max) * 1.6,
        };
        let low = rates().chain(known).fold(f64::INFINITY, f64::min) / 30.0;
        if !low.is_finite() || high <= 0.0 {
            return (0.0, Vec::new());
        }
        let at = self.most_violated_bound();
        // The size of bunches is a property of the server, so the size from one trial also holds
        // for trials without late requests. A trial above the capacity has a single bunch, which
        // says nothing about other trials.
        let steady = self.sights.iter().filter(keeps_up);
        let bunch = steady.filter_map(|sight| Some(sight.bounds.get(at)?.bunch_size)).fold(1.0, f64::max);
        let dispersion = capacity.map_or(1.0, |it| it.dispersion);
        let ln_likelihood = |line: f64, power: f64| {
            let mut ln = 0.0;
            for sight in self.sights {
                // If the assumed load line is above the measured capacity, this load line also
                // counts as the capacity.
                let growth = self.ln_growth(sight, known.map_or(line, |rps| rps.max(line)), dispersion);
                let Some(bound) = sight.bounds.get(at) else {
                    ln += with_disturbance_probability(growth);
                    continue;
                };
                let q = (bound.share.max(SHARE_MIN) * (sight.rate / line).powf(power)).min(0.999);
                let scheduled = bound.scheduled as f64;
                let bunch = bunch.max(bound.bunch_size).clamp(1.0, scheduled.max(1.0));
                ln += with_disturbance_probability(growth + ln_share(q, scheduled, bound.bad as f64, bunch));
            }
            ln
        };
        let mut area = ((low.ln(), high.ln()), (POWER_RANGE.0.ln(), POWER_RANGE.1.ln()));
        let whole = (area.0.1 - area.0.0) * (area.1.1 - area.1.0);
        let mut logs = Vec::new();
        for zoom in 0..=ZOOMS {
            let step = ((area.0.1 - area.0.0) / GRID.0 as f64, (area.1.1 - area.1.0) / GRID.1 as f64);
            logs.clear();
            let (mut best, mut found) = (f64::NEG_INFINITY, Vec::new());
            for x in 0..GRID.0 {
                let line = area.0.0 + (x as f64 + 0.5) * step.0;
                for y in 0..GRID.1 {
                    let power = area.1.0 + (y as f64 + 0.5) * step.1;
                    let ln = ln_likelihood(line.exp(), power.exp());
                    best = f64::max(best, ln);
                    found.push((line, power, ln));
                }
            }
            logs.extend(found.iter().map(|(line, _, ln)| (line.exp(), *ln)));
            if zoom == ZOOMS {
                break;
            }
            let near = || found.iter().filter(|it| it.2 > best - LN_LIKELIHOOD_MARGIN);
            let range = |of: &dyn Fn(&(f64, f64, f64)) -> f64, step: f64, limits: (f64, f64)| {
                let (from, to) =
                    near().fold((f64::INFINITY, f64::NEG_INFINITY), |r, it| (r.0.min(of(it)), r.1.max(of(it))));
                ((from - step).max(limits.0), (to + step).min(limits.1))
            };
            let next = (range(&|it| it.0, step.0, area.0), range(&|it| it.1, step.1, area.1));
            if next == area {
                break;
            }
            area = next;
        }
        let share = (area.0.1 - area.0.0) * (area.1.1 - area.1.0) / whole;
        let count = logs.len() as f64;
        let (evidence, draws) = normalise_weights(logs, count);
        (evidence + share.ln(), draws)
    }
}

/// Returns the logarithm of the mean likelihood, and each value with a weight; the weights sum to
/// 1.
fn normalise_weights(logs: Vec<(f64, f64)>, count: f64) -> (f64, Vec<(f64, f64)>) {
    let best = logs.iter().map(|it| it.1).fold(f64::NEG_INFINITY, f64::max);
    let weighed: Vec<(f64, f64)> = logs.into_iter().map(|(value, ln)| (value, (ln - best).exp())).collect();
    let sum: f64 = weighed.iter().map(|it| it.1).sum();
    let draws = weighed.into_iter().map(|(value, weight)| (value, weight / sum.max(1e-300))).collect();
    (best + (sum / count.max(1.0)).max(1e-300).ln(), draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_requests_without_a_failure_expect_no_failure() {
        for (scheduled, bad, floor, expect) in
            [(500_000, 0, 0.0, 0.0), (500_000, 2, 0.0, 4e-6), (1_000, 9, 0.0, 1e-5), (1_000, 0, 0.01, 0.01)]
        {
            let bound = BoundEvidence { bound_ns: None, share: 0.001, scheduled, bad, bunch_size: 1.0 };
            assert_eq!(share_or_rare(&bound, floor), expect, "{scheduled} {bad} {floor}");
        }
    }
}
