//! Load lines that queueing theory gives ([`queueing_load_line_rps`]), and how often searches find
//! these load lines ([`SearchCoverage`]).
//!
//! For M/M/k, the load line comes from Erlang's formula. For M/G/1, the load line comes from the
//! poles of the Pollaczek-Khinchine transform. For hyperexponential service times, the load line is
//! exact. For constant service times, the load line is exact to many digits if the latency bound
//! exceeds two service times.

#![allow(dead_code)]

use plimsoll_model::units::SECOND;
use plimsoll_simulator::{self as simulator, ServerKind, ServerModel, ServiceTimeDistribution};
use std::fmt;
use std::ops::Range;

/// Share of the requests that may take longer than [`BOUND_S`] under the default SLO.
const LATE_SHARE: f64 = 0.01;
/// The latency bound of the default SLO, s.
const BOUND_S: f64 = 0.5;

/// Returns the highest rate of random arrivals at which 99 % of the response times are at most 500
/// ms. Returns 0 if more than 1 % of the response times exceed 500 ms at every rate.
pub fn queueing_load_line_rps(kind: ServerKind, capacity: f64) -> f64 {
    let late = |rate: f64| match kind {
        ServerKind::Queue(ServiceTimeDistribution::Exponential, servers) => late_share_mmk(rate, capacity, servers),
        ServerKind::Queue(ServiceTimeDistribution::Constant, 1) => late_share_md1(rate, capacity),
        ServerKind::Queue(ServiceTimeDistribution::Hyperexponential(cv2), 1) => {
            late_share_hyperexponential(rate, capacity, cv2)
        }
        other => unreachable!("no formula for {other:?}"),
    };
    let (mut low, mut high) = (0.0, capacity);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if late(middle) <= LATE_SHARE { low = middle } else { high = middle }
    }
    if low < capacity * 1e-6 { 0.0 } else { low }
}

fn late_share_mmk(rate: f64, capacity: f64, servers: usize) -> f64 {
    let k = servers as f64;
    let mu = capacity / k;
    let a = rate / mu;
    // Erlang's B formula is computed by recursion, and the C formula follows from it.
    let blocked = (1..=servers).fold(1.0, |b, n| a * b / (n as f64 + a * b));
    let waits = blocked / (1.0 - a / k * (1.0 - blocked));
    let room = k - 1.0 - a;
    // The product of two exponentials is computed as one exponential of the summed exponents,
    // because a single factor can overflow.
    let alone = (-mu * BOUND_S).exp();
    let queued =
        if room.abs() < 1e-9 { mu * BOUND_S * alone } else { (alone - (-mu * BOUND_S * (k - a)).exp()) / room };
    alone + waits * queued
}

/// Returns the root theta of rate (M(theta) - 1) = theta in an interval. `m` is the moment
/// generating function M of the service time.
fn root_of_queue_equation(rate: f64, m: impl Fn(f64) -> f64, (mut low, mut high): (f64, f64)) -> f64 {
    let f = |theta: f64| rate * (m(theta) - 1.0) - theta;
    let rises = f(high) > f(low);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if (f(middle) > 0.0) == rises { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

fn late_share_md1(rate: f64, capacity: f64) -> f64 {
    let s = 1.0 / capacity;
    if BOUND_S <= s {
        return 1.0;
    }
    let rho = rate * s;
    // The interval excludes the trivial root theta = 0, so that the search for a root finds the
    // other root of the equation.
    let theta = root_of_queue_equation(rate, |theta| (theta * s).exp(), (2.0 * (1.0 - rho) / s * 0.3, 50.0 * capacity));
    let a = (1.0 - rho) / (rho * (theta * s).exp() - 1.0);
    a * (-theta * (BOUND_S - s)).exp()
}

fn late_share_hyperexponential(rate: f64, capacity: f64, cv2: f64) -> f64 {
    let p = ServiceTimeDistribution::first_phase_probability(cv2);
    let phases = [(p, 2.0 * p * capacity), (1.0 - p, 2.0 * (1.0 - p) * capacity)];
    let m = |theta: f64| phases.iter().map(|(p, r)| p * r / (r - theta)).sum::<f64>();
    let slope = |theta: f64| phases.iter().map(|(p, r)| p * r / (r - theta).powi(2)).sum::<f64>();
    let rho = rate / capacity;
    let (slow, fast) = (phases[1].1, phases[0].1);
    let first = root_of_queue_equation(rate, m, (slow * 1e-9 + (1.0 - rho) * capacity * 0.05, slow * (1.0 - 1e-12)));
    let second = root_of_queue_equation(rate, m, (slow * (1.0 + 1e-12), fast * (1.0 - 1e-12)));
    let term = |theta: f64| (1.0 - rho) / (rate * slope(theta) - 1.0) * m(theta) * (-theta * BOUND_S).exp();
    term(first) + term(second)
}

/// The results of many searches on one simulated server.
#[derive(Debug, Clone)]
pub struct SearchCoverage {
    /// Number of searches.
    pub searches: usize,
    /// Share of the searches whose 90 % interval contains the true load line.
    pub covers: f64,
    /// Share of the searches that stated an estimate of the load line.
    pub stated: f64,
    /// Share of the searches whose stated estimate is more than 3 % above the true load line.
    pub above_share: f64,
    /// Share of the searches whose load line was confirmed by a separate trial.
    pub confirmed: f64,
    /// Median width of the 90 % interval, as a share of the true load line.
    pub width: f64,
    /// Median of the estimated load line divided by the true load line.
    pub estimate_ratio_median: f64,
    /// Share of the searches whose 90 % interval is below the true load line, and share of the
    /// searches whose interval is above it.
    pub misses: (f64, f64),
    /// Mean length of a search, s.
    pub elapsed_s: f64,
}

impl SearchCoverage {
    /// Runs one search per seed, and computes the coverage.
    pub fn from_searches(model: ServerModel, seeds: Range<u64>, budget_s: u64) -> SearchCoverage {
        let count = seeds.clone().count();
        let mut sums = [0.0; 7];
        let (mut widths, mut ratios) = (Vec::new(), Vec::new());
        for seed in seeds {
            let model = model.with_seeded_capacity(seed);
            let truth = queueing_load_line_rps(model.kind, model.capacity);
            let findings = simulator::simulate_search(model, seed, budget_s * SECOND, None);
            let line = findings.load_line;
            let upper = line.upper.unwrap_or(if truth > 0.0 && line.lower > 0.0 { f64::INFINITY } else { 0.0 });
            let above_truth = line.lower > truth * (1.0 + 1e-9);
            let below_truth = upper < truth && !(truth == 0.0 && line.rps == 0.0);
            let stated = line.has_estimate && line.rps > 0.0;
            for (sum, is) in sums.iter_mut().zip([
                !above_truth && !below_truth,
                stated,
                stated && line.rps > 1.03 * truth,
                line.is_confirmed,
                below_truth,
                above_truth,
            ]) {
                *sum += f64::from(u8::from(is)) / count as f64;
            }
            sums[6] += findings.elapsed_s / count as f64;
            if truth > 0.0 {
                widths.push((upper - line.lower) / truth);
                ratios.push(line.rps / truth);
            }
        }
        let median = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let [covers, stated, above, confirmed, below_truth, above_truth, elapsed_s] = sums;
        SearchCoverage {
            searches: count,
            covers,
            stated,
            above_share: above,
            confirmed,
            width: median(&mut widths),
            estimate_ratio_median: median(&mut ratios),
            misses: (below_truth, above_truth),
            elapsed_s,
        }
    }
}

impl fmt::Display for SearchCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        write!(
            f,
            "{:>7} {:>7} {:>6} {:>6} {:>7} {:>7.3} {:>7} {:>6} {:>5.1}s",
            percent(self.covers),
            percent(self.stated),
            percent(self.above_share),
            percent(self.confirmed),
            percent(self.width),
            self.estimate_ratio_median,
            percent(self.misses.0),
            percent(self.misses.1),
            self.elapsed_s
        )
    }
}

/// Checks that the computed load lines equal values that were computed by hand. For M/M/1 with the
/// capacity C, the load line is C - ln(100) / 0.5 s.
#[test]
fn load_lines_match_queueing_formulas() {
    let check = |kind: ServerKind, capacity: f64, expect: f64, within: f64| {
        let line = queueing_load_line_rps(kind, capacity);
        assert!((line - expect).abs() <= within, "{kind:?} {capacity}: {line}, expected {expect}");
    };
    check(ServerKind::Queue(ServiceTimeDistribution::Exponential, 1), 1000.0, 1000.0 - 9.2103, 1e-3);
    check(ServerKind::Queue(ServiceTimeDistribution::Exponential, 1), 10.0, 0.7897, 1e-3);
    check(ServerKind::Queue(ServiceTimeDistribution::Exponential, 8), 10.0, 0.0, 1e-3);
    check(ServerKind::Queue(ServiceTimeDistribution::Constant, 1), 1000.0, 995.39, 0.05);
    check(ServerKind::Queue(ServiceTimeDistribution::Hyperexponential(4.0), 1), 10.0, 0.0, 1e-3);
    // The load line is lower than the capacity by ln(100) (1 + 4) / (2 t), where t is the latency
    // bound of the SLO.
    check(ServerKind::Queue(ServiceTimeDistribution::Hyperexponential(4.0), 1), 10_000.0, 10_000.0 - 23.03, 0.1);
}
