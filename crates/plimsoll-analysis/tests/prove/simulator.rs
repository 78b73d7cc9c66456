//! Two builds on a machine that drifts, jitters and is disturbed: blocks without a server.
//!
//! The logarithm of a load's goodput is the build's own, plus a drift that remembers itself from load to load (AR(1)),
//! plus white noise; some loads are disturbed and reach 60 to 95 % only. [`HERE`] has the noise seen on the machine of
//! docs/benchmarks.md, as the middle of eight real comparisons of `bench-server exact-cpu` (loads of 400 ms): the ratios of
//! a block had a standard deviation of 3.9 % (by the median absolute deviation), 11 % of the blocks were out by more than
//! four of these, and goodput wandered by 15 %, remembering itself from block to block (autocorrelation 0.7).

use plimsoll_analysis::Others;
use plimsoll_analysis::prove::{Block, ComparisonEnd, Criterion, Proof, Reading, Rules, conclude, order, stop};
use plimsoll_model::rng::Rng;

/// A machine, and B's effect on it.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// ln of B's goodput against A's.
    pub effect: f64,
    /// Standard deviation of the white noise of a load, in logarithms.
    pub white: f64,
    /// Standard deviation of the drift, in logarithms.
    pub drift: f64,
    /// How much of the drift is left from load to load.
    pub memory: f64,
    /// Share of the loads that are disturbed.
    pub disturbed: f64,
}

/// The machine of docs/benchmarks.md.
pub const HERE: World = World { effect: 0.0, white: 0.026, drift: 0.1, memory: 0.99, disturbed: 0.055 };

/// The same machine while others keep it busy: blocks differ by 20 %.
pub const NOISY: World = World { white: 0.15, disturbed: 0.3, ..HERE };

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * rng.next_f64_open().ln()).sqrt() * (std::f64::consts::TAU * rng.next_f64()).cos()
}

impl World {
    /// So many blocks, in time.
    pub fn blocks(&self, seed: u64, count: usize) -> Vec<Block> {
        let mut rng = Rng::stream(seed, 0x51D);
        let mut drift = normal(&mut rng) * self.drift;
        let step = self.drift * (1.0 - self.memory * self.memory).sqrt();
        let mut one = |arm: u8| {
            drift = drift * self.memory + normal(&mut rng) * step;
            let disturbance = if rng.next_f64() < self.disturbed { (0.6 + 0.35 * rng.next_f64()).ln() } else { 0.0 };
            let ln = drift + normal(&mut rng) * self.white + disturbance + f64::from(arm) * self.effect;
            let goodput_rps = 10_000.0 * ln.exp();
            let tail = (normal(&mut rng) * 0.1).exp();
            Reading {
                goodput_rps,
                p50_ns: 8e9 / goodput_rps,
                p99_ns: 12e9 / goodput_rps * tail,
                cpu_ns_per_request: None,
                success_rate: 1.0,
                status: 200,
                answer_bytes: 120.0,
                routes: Vec::new(),
                others: Others::default(),
                void: None,
            }
        };
        let block = |number: usize| {
            let mut readings: Vec<(u8, Reading)> =
                order(seed, number, 2).into_iter().map(|arm| (arm, one(arm))).collect();
            readings.sort_by_key(|(arm, _)| *arm);
            Block { readings: readings.into_iter().map(|(_, reading)| reading).collect() }
        };
        (0..count).map(block).collect()
    }

    /// A whole comparison of at most so many blocks, with its looks.
    pub fn prove(&self, seed: u64, blocks_max: usize) -> Proof {
        let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(blocks_max), seed };
        let blocks = self.blocks(seed, blocks_max);
        for count in 1..=blocks.len() {
            if let Some(stopped_by) = stop(&settings, &blocks[..count]) {
                return conclude(&settings, &blocks[..count], stopped_by);
            }
        }
        conclude(&settings, &blocks, ComparisonEnd::Blocks)
    }
}
