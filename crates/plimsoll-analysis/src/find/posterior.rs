//! Where the line probably is: a posterior over its place, given every open trial. It only chooses what to try next.
//!
//! Two kinds of server are weighed against each other. One is limited by *capacity*: it holds every load up to the line,
//! falls behind above it, and a failing trial shows the line itself. The other is limited by *latency*: the logarithm of
//! its bad share grows linearly with that of the load (for M/M/1 nearly exactly), and a trial says by its bad share how
//! far the line is. Either is disturbed now and then, to a place below its line that says little.
//!
//! Not here: any decision. Verdicts decide.

/// Resolution in the logarithm of the rate.
const STEP: f64 = 0.004;
/// Slopes of ln(bad share) over ln(rate) that are weighed.
const SLOPES: [f64; 7] = [6.0, 10.0, 16.0, 28.0, 50.0, 100.0, 200.0];
/// How much each is believed beforehand: a bound of many service times, the usual case, makes a steep slope.
const SLOPE_PRIOR: [f64; 7] = [0.08, 0.1, 0.12, 0.16, 0.18, 0.18, 0.18];
/// Share of trials taken to be disturbed.
const DISTURBED: f64 = 0.12;
/// Spread of a server's capacity from trial to trial, as a logarithm.
const CAPACITY_SD: f64 = 0.008;
/// How sharply a server that is limited by capacity turns from holding to failing.
const TURN: f64 = 0.004;
/// A server passes a little above its capacity: the backlog may grow by 1 %.
const SLACK: f64 = 0.006;

/// Where a server that is limited by capacity is taken to be before any open trial: near the closed-loop peak...
const PEAK_SHARE: f64 = 0.6;
const PEAK_SD: f64 = 0.03;
/// ... or, with this density, anywhere.
const ANYWHERE: f64 = 0.2;
/// One that is limited by latency lies within this (as a logarithm) below the peak.
const BELOW_PEAK: f64 = 1.2;

/// The point of the posterior that is tried: above the median, as a trial that fails is shorter than one that passes.
const QUANTILE: f64 = 0.6;

/// What one trial shows of the line's place; rates as logarithms.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// Rate offered.
    pub x: f64,
    /// Whether it passed.
    pub pass: bool,
    /// Length judged.
    pub seconds: f64,
    /// The capacity shown.
    pub capacity: Option<f64>,
    /// Its relative standard error.
    pub capacity_error: f64,
    /// Too few bad requests to measure their share: it is at most exp(y).
    pub few: bool,
    /// Logarithm of bad requests over allowed ones.
    pub y: f64,
    /// The same if all requests were bad.
    pub most: f64,
}

/// Point and spread of the line's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Requests a second.
    pub rps: f64,
    /// Half the distance between the 16 % and 84 % points, as a logarithm.
    pub spread: f64,
}

/// Where the line is after some trials.
pub struct Posterior {
    low: f64,
    /// Weight of each kind of server (capacity first, then by slope) at each point.
    weights: Vec<[f64; KINDS]>,
    total: f64,
}

const KINDS: usize = 1 + SLOPES.len();

impl Posterior {
    /// After these trials, and a closed-loop peak in requests a second; `None` without a trial.
    pub fn new(sights: &[Sight], peak_rps: Option<f64>) -> Option<Posterior> {
        let low = sights.iter().map(|s| s.x).min_by(f64::total_cmp)? - 1.5;
        let high = sights.iter().map(|s| s.x).max_by(f64::total_cmp)? + 0.7;
        let points = ((high - low) / STEP) as usize + 1;
        let mut weights: Vec<[f64; KINDS]> = Vec::with_capacity(points);
        let mut best = f64::NEG_INFINITY;
        for point in 0..points {
            let x0 = low + point as f64 * STEP;
            let log = std::array::from_fn(|kind| {
                let seen: f64 = sights.iter().map(|s| mix(good(s, x0, kind), disturbed(s, x0)).ln()).sum();
                seen + prior(x0, peak_rps, kind).ln()
            });
            best = log.iter().copied().fold(best, f64::max);
            weights.push(log);
        }
        weights.iter_mut().flatten().for_each(|w| *w = (*w - best).exp());
        let total = weights.iter().flatten().sum();
        Some(Posterior { low, weights, total })
    }

    fn x_of(&self, point: usize) -> f64 {
        self.low + point as f64 * STEP
    }

    /// Point and spread.
    pub fn place(&self) -> Place {
        self.place_within(f64::NEG_INFINITY, f64::INFINITY).unwrap_or(Place { rps: self.low.exp(), spread: 1.0 })
    }

    /// The same if the line lies between two rates (as logarithms); `None` if nothing speaks for that.
    pub fn place_within(&self, from: f64, to: f64) -> Option<Place> {
        let inside = |point: usize| (from..=to).contains(&self.x_of(point));
        let weight = |point: usize| if inside(point) { self.weights[point].iter().sum::<f64>() } else { 0.0 };
        let total: f64 = (0..self.weights.len()).map(weight).sum();
        if total < self.total * 1e-9 {
            return None;
        }
        let quantile = |q: f64| {
            let mut seen = 0.0;
            let at = (0..self.weights.len()).find(|point| {
                seen += weight(*point);
                seen >= q * total
            });
            self.x_of(at.unwrap_or(self.weights.len() - 1))
        };
        Some(Place { rps: quantile(QUANTILE).exp(), spread: (quantile(0.84) - quantile(0.16)) / 2.0 })
    }

    /// The probability that one of the trials was disturbed.
    pub fn disturbed(&self, sight: &Sight) -> f64 {
        let mut sum = 0.0;
        for (point, kinds) in self.weights.iter().enumerate() {
            let x0 = self.x_of(point);
            for (kind, weight) in kinds.iter().enumerate().filter(|(_, w)| **w > 1e-9) {
                let share = DISTURBED * disturbed(sight, x0) / mix(good(sight, x0, kind), disturbed(sight, x0));
                sum += weight * share;
            }
        }
        sum / self.total
    }
}

/// Density of the line's place before any open trial; half of the belief is in either kind of server.
fn prior(x0: f64, peak_rps: Option<f64>, kind: usize) -> f64 {
    let Some(peak) = peak_rps.map(f64::ln) else {
        return if kind == 0 { 1.0 } else { SLOPE_PRIOR[kind - 1] };
    };
    if kind == 0 {
        return PEAK_SHARE * normal(x0 - peak, PEAK_SD) + (1.0 - PEAK_SHARE) * ANYWHERE;
    }
    let below = if x0 <= peak && x0 > peak - BELOW_PEAK { 0.8 / BELOW_PEAK } else { 0.0 };
    (below + 0.2 * ANYWHERE) * SLOPE_PRIOR[kind - 1]
}

/// Density of what a trial shows if nothing disturbs it.
fn good(sight: &Sight, x0: f64, kind: usize) -> f64 {
    if kind == 0 { by_capacity(sight, x0) } else { by_latency(sight, x0, SLOPES[kind - 1]) }
}

fn mix(good: f64, disturbed: f64) -> f64 {
    ((1.0 - DISTURBED) * good + DISTURBED * disturbed).max(1e-12)
}

/// A shorter trial shows less.
fn widen(sight: &Sight) -> f64 {
    (2.0 / sight.seconds.max(0.1)).max(1.0)
}

fn by_capacity(sight: &Sight, x0: f64) -> f64 {
    match sight.capacity {
        Some(z) => normal(z - x0, CAPACITY_SD.hypot(sight.capacity_error)),
        None => {
            let holds = logistic((x0 + SLACK - sight.x) / (TURN * widen(sight)));
            match (sight.pass, sight.few) {
                (true, true) => holds,
                (true, false) => 0.1 * holds,
                (false, _) => 0.1 * (1.0 - holds),
            }
        }
    }
}

fn by_latency(sight: &Sight, x0: f64, slope: f64) -> f64 {
    if let Some(z) = sight.capacity {
        // The capacity is somewhere above the line, and so is the load.
        return if z > x0 - 0.01 && sight.x > x0 - 0.02 { 2.0 } else { 0.0 };
    }
    let mean = (slope * (sight.x - x0)).min(sight.most).max(-9.0);
    let sd = (0.35 + 0.1 * mean.abs()) * widen(sight).sqrt();
    if sight.few { cumulative((sight.y - mean) / sd) } else { normal(sight.y - mean, sd) }
}

/// What a disturbed trial shows.
fn disturbed(sight: &Sight, x0: f64) -> f64 {
    match sight.capacity {
        Some(z) if z < x0 + 0.01 && z > x0 - 0.7 => 2.0,
        Some(_) => 0.05,
        None if sight.pass && sight.few => 0.3,
        None => 0.09,
    }
}

fn normal(distance: f64, sd: f64) -> f64 {
    (-0.5 * (distance / sd).powi(2)).exp() / (sd * 2.5066)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The normal distribution function, by its logistic approximation (within 1 %).
fn cumulative(x: f64) -> f64 {
    logistic(1.702 * x)
}
