//! Where the line probably is: a posterior over its place, given every open trial. It only chooses what to try next.
//!
//! Two kinds of server are weighed against each other. One is limited by *capacity*: it holds every load up to the line,
//! falls behind above it, and a failing trial shows the line itself. The other is limited by *latency*: the logarithm of
//! its bad share grows linearly with that of the load (for M/M/1 nearly exactly), and a trial says by its bad share how
//! far the line is. Either is disturbed now and then, to a place below its line that says little.
//!
//! Not here: any decision. Verdicts decide.

use super::evidence::Sight;

/// Resolution in the logarithm of the rate.
const STEP: f64 = 0.004;
/// Slopes of ln(bad share) over ln(rate) that are weighed.
const SLOPES: [f64; 5] = [6.0, 10.0, 16.0, 28.0, 50.0];
/// Share of trials taken to be disturbed.
const DISTURBED: f64 = 0.12;
/// Spread of the capacity that a failing trial of 2 s or more shows, as a logarithm.
const CAPACITY_SD: f64 = 0.008;
/// How sharply a server that is limited by capacity turns from holding to failing.
const TURN: f64 = 0.004;
/// A server passes a little above its capacity: the backlog may grow by 1 %.
const SLACK: f64 = 0.006;

/// Median and spread of the line's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Requests a second.
    pub rps: f64,
    /// Half the distance between the 16 % and 84 % points, as a logarithm.
    pub spread: f64,
}

/// Where the line is after these trials; `None` without a trial.
pub fn place(sights: &[Sight]) -> Option<Place> {
    let low = sights.iter().map(|s| s.x).min_by(f64::total_cmp)? - 1.5;
    let high = sights.iter().map(|s| s.x).max_by(f64::total_cmp)? + 0.7;
    let points = ((high - low) / STEP) as usize + 1;
    let mut logs: Vec<Vec<f64>> = Vec::with_capacity(points);
    let mut best = f64::NEG_INFINITY;
    for k in 0..points {
        let x0 = low + k as f64 * STEP;
        // Half of the belief is in either kind.
        let capacity: f64 = sights.iter().map(|s| mix(by_capacity(s, x0), disturbed(s, x0))).sum();
        let mut at = vec![capacity];
        for slope in SLOPES {
            let latency: f64 = sights.iter().map(|s| mix(by_latency(s, x0, slope), disturbed(s, x0))).sum();
            at.push(latency - (SLOPES.len() as f64).ln());
        }
        best = at.iter().copied().fold(best, f64::max);
        logs.push(at);
    }
    let weights: Vec<f64> = logs.iter().map(|at| at.iter().map(|l| (l - best).exp()).sum()).collect();
    let total: f64 = weights.iter().sum();
    let quantile = |q: f64| {
        let mut seen = 0.0;
        let at = weights.iter().position(|w| {
            seen += w;
            seen >= q * total
        });
        low + at.unwrap_or(points - 1) as f64 * STEP
    };
    Some(Place { rps: quantile(0.5).exp(), spread: (quantile(0.84) - quantile(0.16)) / 2.0 })
}

fn mix(good: f64, disturbed: f64) -> f64 {
    ((1.0 - DISTURBED) * good + DISTURBED * disturbed).max(1e-12).ln()
}

/// A shorter trial shows less.
fn widen(sight: &Sight) -> f64 {
    (2.0 / sight.seconds.max(0.1)).max(1.0)
}

fn by_capacity(sight: &Sight, x0: f64) -> f64 {
    match sight.capacity {
        Some(z) => normal(z - x0, CAPACITY_SD * widen(sight)),
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
        return if z > x0 - 0.01 && sight.x > x0 - 0.02 { 2.0 } else { 0.05 };
    }
    let mean = (slope * (sight.x - x0)).clamp(-9.0, sight.most);
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
