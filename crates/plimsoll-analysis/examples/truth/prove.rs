//! Comparisons of simulated builds, request by request, on machines with drift, jitter and
//! disturbances. [`write_truth_tables`] measures how often a verdict is wrong, and how often an
//! interval contains the truth. The tests of this crate run a small part of the simulated
//! comparisons, with fixed seeds.
//!
//! A load is a closed loop of [`USERS`] users, or an open loop at [`RATE`]. Each request takes a
//! random service time. The service time is multiplied by three factors: the effect of the machine
//! during the load, of the build, and of the build's process.
//!
//! [`BENCHMARK_MACHINE`] has the noise of the machine in docs/reference/benchmarks.md: the median
//! of eight real comparisons. Blocks had one load of 400 ms on each build. The goodput ratios B/A
//! of the blocks had a standard deviation of 3.9 %, computed from the median absolute deviation. In
//! 11 % of the blocks, the ratio differed from the median ratio by more than four standard
//! deviations. Goodput drifted by 15 %, with an autocorrelation of 0.7 from block to block.

#![allow(dead_code)]

use plimsoll_analysis::Interference;
use plimsoll_analysis::prove::{
    ArmLoadFigures, BlockRatio, ComparisonBlock, ComparisonEnd, ComparisonResult, ComparisonRules, Criterion,
    LoadResponseTimes, ProveVerdict, compute_comparison_result, shuffled_arm_order, stop_reason,
};
use plimsoll_model::CountsByKey;
use plimsoll_model::histogram::bucket_index;
use plimsoll_model::rng::Rng;
use std::collections::BTreeMap;
use std::io::Write;

/// Number of users of a closed load.
pub const USERS: usize = 4;
/// Requests a second of an open load.
pub const RATE: f64 = 200.0;
/// Length of a load, s.
const LOAD_S: f64 = 0.7;
/// Time from the start of one load to the start of the next load, s.
const LOAD_START_INTERVAL_S: f64 = 0.75;
/// Mean service time of a request, s.
const MEAN_SERVICE_TIME_S: f64 = 0.02;
/// Number of blocks (one load on each build) in a comparison: as many as fit into one minute.
pub const BLOCKS: usize = 40;

/// The effects of a machine on the speed of loads.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Standard deviation of the independent noise of each load, as a natural logarithm of the
    /// speed.
    pub white: f64,
    /// Standard deviation of the drift of the speed, as a natural logarithm. The drift of each load
    /// is correlated with the drift of the previous load.
    pub drift: f64,
    /// Correlation between the drift of a load and the drift of the previous load, 0..=1.
    pub drift_correlation: f64,
    /// Share of the loads with a disturbance that probes do not notice. A disturbed load reaches 60
    /// to 95 % of the throughput.
    pub disturbed: f64,
    /// Share of the loads during which other processes use exactly half of the machine's cores, as
    /// the probes report. A load with interference reaches 40 to 95 % of the throughput.
    pub interference_share: f64,
    /// Scale of the heavy-tailed noise, a Student distribution with 2 degrees of freedom. The
    /// heavy-tailed noise makes a few loads much faster or slower than all other loads. If the
    /// scale is 0, the machine has no heavy-tailed noise.
    pub heavy_tail_scale: f64,
    /// Fall of the goodput of both builds over one minute, as a share.
    pub goodput_fall_share: f64,
}

pub const QUIET: Machine = Machine {
    white: 0.005,
    drift: 0.0,
    drift_correlation: 0.0,
    disturbed: 0.0,
    interference_share: 0.0,
    heavy_tail_scale: 0.0,
    goodput_fall_share: 0.0,
};
pub const BENCHMARK_MACHINE: Machine =
    Machine { white: 0.026, drift: 0.1, drift_correlation: 0.99, disturbed: 0.055, ..QUIET };
/// A machine on which other programs run, such as a laptop in use.
pub const BUSY: Machine = Machine { white: 0.05, interference_share: 0.5, ..BENCHMARK_MACHINE };

/// The hidden defect of build B. Build A has no defect, except in `FailsFast`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HiddenDefect {
    Nothing,
    /// The server refuses this share of the requests immediately.
    Sheds(f64),
    /// The connection closes in the middle of this share of the responses.
    ClosesEarly(f64),
    /// This share of the requests is difficult for both builds: build A takes ten times as long for
    /// them, and build B refuses them immediately.
    FailsFast(f64),
    /// The server stalls in every period: no response arrives for a time. The values are the length
    /// of the stall and of the period, s.
    Stalls(f64, f64),
    /// The first value is the share of slow requests. The second value is the factor by which slow
    /// requests take longer than normal requests.
    Tail(f64, f64),
    /// This share of the responses has a shorter body than normal, and takes half of the normal
    /// service time.
    WrongBody(f64),
    /// Service times grow continuously, by this share within one minute.
    Leaks(f64),
    /// After its start, a process is slower for a time. The first value is how long the process
    /// stays slow after the warm-up, s. The second value is the factor of the service time while
    /// the process is slow.
    SlowStart(f64, f64),
    /// Some starts of the build give a process that is slow all the time. The values are the share
    /// of starts with a slow process, and the factor of the slow process's service time.
    Bimodal(f64, f64),
}

/// A simulated comparison: a machine, and two builds A and B on it.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedComparison {
    pub machine: Machine,
    /// B's goodput divided by A's goodput, without the hidden defect.
    pub ratio: f64,
    pub hidden_defect: HiddenDefect,
    /// Standard deviation of the speed between starts of a build, as a natural logarithm. A build
    /// starts once for each load, or only once in a comparison without restarts.
    pub start_deviation: f64,
    pub restarts_builds: bool,
    pub primary: Criterion,
}

pub const EQUAL_BUILDS: SimulatedComparison = SimulatedComparison {
    machine: BENCHMARK_MACHINE,
    ratio: 1.0,
    hidden_defect: HiddenDefect::Nothing,
    start_deviation: 0.0,
    restarts_builds: true,
    primary: Criterion::Goodput,
};

fn standard_normal_sample(rng: &mut Rng) -> f64 {
    (-2.0 * rng.next_f64_above_zero().ln()).sqrt() * (std::f64::consts::TAU * rng.next_f64()).cos()
}

/// The counts of a simulated load.
#[derive(Default)]
struct Counts {
    scheduled: u64,
    succeeded: u64,
    in_window: u64,
    bytes: f64,
    statuses: CountsByKey,
    times: BTreeMap<usize, u64>,
}

impl Counts {
    fn add(&mut self, ended: SimulatedRequest, in_window: bool) {
        self.scheduled += 1;
        self.statuses.add(ended.status, u64::from(ended.status != 0));
        self.bytes += if ended.status == 0 { 0.0 } else { ended.bytes };
        if ended.succeeded {
            self.succeeded += 1;
            self.in_window += u64::from(in_window);
            *self.times.entry(bucket_index((ended.took_s * 1e9) as u64)).or_default() += 1;
        }
    }
}

struct SimulatedRequest {
    took_s: f64,
    succeeded: bool,
    status: u16,
    bytes: f64,
}

impl SimulatedComparison {
    fn simulate_request(&self, b: bool, start_s: f64, into_s: f64, scale: f64, rng: &mut Rng) -> SimulatedRequest {
        // The random factor of the service time has a lognormal distribution with mean 1 and
        // coefficient of variation 0.3.
        let mut took_s = MEAN_SERVICE_TIME_S * scale * (0.2936 * standard_normal_sample(rng) - 0.0431).exp();
        let mut ended = SimulatedRequest { took_s: 0.0, succeeded: true, status: 200, bytes: 320.0 };
        let refused = SimulatedRequest { took_s: 0.001, succeeded: false, status: 503, bytes: 90.0 };
        let chance = rng.next_f64();
        match self.hidden_defect {
            HiddenDefect::Nothing => {}
            HiddenDefect::FailsFast(share) if chance < share => match b {
                true => return refused,
                false => took_s *= 10.0,
            },
            _ if !b => {}
            HiddenDefect::Sheds(share) if chance < share => return refused,
            HiddenDefect::ClosesEarly(share) if chance < share => {
                return SimulatedRequest { took_s: took_s / 2.0, succeeded: false, status: 0, bytes: 0.0 };
            }
            HiddenDefect::Stalls(length_s, every_s) => {
                let from_s = (start_s / every_s).floor() * every_s;
                for from_s in [from_s, from_s + every_s] {
                    let to_s = from_s + length_s;
                    if start_s < to_s && start_s + took_s > from_s {
                        took_s += to_s - start_s.max(from_s);
                    }
                }
            }
            HiddenDefect::Tail(share, times) if chance < share => took_s *= times,
            HiddenDefect::WrongBody(share) if chance < share => (took_s, ended.bytes) = (took_s / 2.0, 120.0),
            HiddenDefect::Leaks(share) => took_s *= 1.0 + share * start_s / 60.0,
            HiddenDefect::SlowStart(length_s, times) if into_s < length_s => took_s *= times,
            _ => {}
        }
        ended.took_s = took_s;
        ended
    }

    fn simulate_reading(
        &self,
        arm: u8,
        start_s: f64,
        scale: f64,
        others: Interference,
        rng: &mut Rng,
    ) -> ArmLoadFigures {
        let b = arm == 1;
        let mut counts = Counts::default();
        if self.primary.needs_fixed_rate() {
            let mut into_s = rng.exponential() / RATE;
            while into_s < LOAD_S {
                let ended = self.simulate_request(b, start_s + into_s, into_s, scale, rng);
                let in_window = into_s + ended.took_s <= LOAD_S;
                counts.add(ended, in_window);
                into_s += rng.exponential() / RATE;
            }
        } else {
            for _ in 0..USERS {
                // At the start of the measured window, each user already has a request in flight,
                // which began at a random earlier time.
                let mut into_s = -MEAN_SERVICE_TIME_S * scale * rng.next_f64();
                while into_s < LOAD_S {
                    let ended = self.simulate_request(b, start_s + into_s, into_s.max(0.0), scale, rng);
                    let (begins_s, took_s) = (into_s, ended.took_s);
                    into_s += took_s;
                    let in_window = (0.0..=LOAD_S).contains(&into_s);
                    if begins_s >= 0.0 {
                        counts.add(ended, in_window);
                    } else if in_window && ended.succeeded {
                        counts.in_window += 1;
                    }
                }
            }
        }
        ArmLoadFigures {
            goodput: BlockRatio { numerator: counts.in_window as f64, divisor: LOAD_S },
            response_times: LoadResponseTimes::new(counts.scheduled, counts.succeeded, counts.times.into_iter()),
            cpu_ns_per_response: None,
            bytes_per_response: BlockRatio { numerator: counts.bytes, divisor: counts.statuses.total() as f64 },
            statuses: counts.statuses,
            routes: Vec::new(),
            client_wait_share: 0.0,
            interference: others,
            void_reason: None,
            missing_response_reason: None,
        }
    }

    /// Simulates `count` blocks in order of time.
    pub fn blocks(&self, seed: u64, count: usize) -> Vec<ComparisonBlock> {
        let Machine {
            white,
            drift: deep,
            drift_correlation: memory,
            disturbed,
            interference_share: others,
            heavy_tail_scale: heavy,
            goodput_fall_share: falling,
        } = self.machine;
        let mut rng = Rng::for_stream(seed, 0x51D);
        let mut drift = standard_normal_sample(&mut rng) * deep;
        let step = deep * (1.0 - memory * memory).sqrt();
        // If builds are not restarted for each load, each of the two processes keeps its speed.
        let of_process = [0, 1].map(|_| standard_normal_sample(&mut rng) * self.start_deviation);
        let mut start_s = 0.0;
        let mut one = |arm: u8, rng: &mut Rng| {
            drift = drift * memory + standard_normal_sample(rng) * step;
            let mut ln = drift + standard_normal_sample(rng) * white - falling * start_s / 60.0;
            if rng.next_f64() < disturbed {
                ln += (0.6 + 0.35 * rng.next_f64()).ln();
            }
            let mut seen =
                Interference { cores: Some(0.02), machine_cores: 2.0, span_ns: 700_000_000, ..Interference::default() };
            if rng.next_f64() < others {
                ln += (0.4 + 0.55 * rng.next_f64()).ln();
                seen = Interference {
                    cores: Some(1.0),
                    is_disturbed: true,
                    reason: Some("other processes used 1.0 of 2 cores".into()),
                    ..seen
                };
            }
            if heavy > 0.0 {
                let (a, b) = (standard_normal_sample(rng), standard_normal_sample(rng));
                ln += (heavy * standard_normal_sample(rng) / ((a * a + b * b) / 2.0).sqrt()).clamp(-3.0, 3.0);
            }
            ln += match self.restarts_builds {
                true => standard_normal_sample(rng) * self.start_deviation,
                false => of_process[usize::from(arm)],
            };
            if arm == 1 {
                ln += self.ratio.ln();
                if let HiddenDefect::Bimodal(share, times) = self.hidden_defect
                    && rng.next_f64() < share
                {
                    ln -= times.ln();
                }
            }
            let reading = self.simulate_reading(arm, start_s, (-ln).exp(), seen, rng);
            start_s += LOAD_START_INTERVAL_S;
            reading
        };
        let mut block = |number: usize| {
            let order = shuffled_arm_order(seed, number, 2);
            let mut readings: Vec<(u8, ArmLoadFigures)> =
                order.into_iter().map(|arm| (arm, one(arm, &mut rng))).collect();
            readings.sort_by_key(|(arm, _)| *arm);
            ComparisonBlock { arm_loads: readings.into_iter().map(|(_, reading)| reading).collect() }
        };
        (0..count).map(&mut block).collect()
    }

    pub fn rules(&self, blocks_max: usize) -> ComparisonRules {
        ComparisonRules {
            primary: self.primary,
            margin: 0.02,
            blocks_max: Some(blocks_max),
            restarts_builds: self.restarts_builds,
            answers_may_differ: false,
        }
    }

    /// Simulates a comparison of at most `blocks_max` blocks. As in a real comparison, the stopping
    /// rule may end the comparison earlier.
    pub fn prove(&self, seed: u64, blocks_max: usize) -> ComparisonResult {
        let rules = self.rules(blocks_max);
        let blocks = self.blocks(seed, blocks_max);
        for count in 1..=blocks.len() {
            if let Some(stopped_by) = stop_reason(&rules, &blocks[..count]) {
                return compute_comparison_result(&rules, &blocks[..count], stopped_by);
            }
        }
        compute_comparison_result(&rules, &blocks, ComparisonEnd::BlocksMaxReached)
    }

    /// Runs one comparison per seed, and returns the outcomes.
    pub fn outcomes(&self, seeds: impl Iterator<Item = u64>, blocks: usize) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for seed in seeds {
            outcomes.add(&self.prove(seed, blocks), self.ratio);
        }
        outcomes
    }
}

/// The outcomes of several comparisons.
#[derive(Debug, Default, Clone)]
pub struct Outcomes {
    pub count: usize,
    pub better: usize,
    pub worse: usize,
    pub same: usize,
    pub small: usize,
    /// Number of confidence intervals of the primary measure.
    pub intervals: usize,
    /// Number of these confidence intervals that contain the true ratio.
    pub covered: usize,
    /// Sum of the relative errors of the estimated ratios, such as 0.01 for 1 %.
    pub error: f64,
    /// Sum of the half widths of the confidence intervals, each divided by the true ratio.
    pub width: f64,
}

impl Outcomes {
    fn add(&mut self, proof: &ComparisonResult, truth: f64) {
        self.count += 1;
        self.better += usize::from(proof.verdict == ProveVerdict::Better);
        self.worse += usize::from(proof.verdict == ProveVerdict::Worse);
        self.same += usize::from(proof.verdict == ProveVerdict::Same);
        self.small += usize::from(proof.verdict == ProveVerdict::SmallDifference);
        let Some(one) = proof.measures.first() else { return };
        if let Some(interval) = one.ratio_interval {
            self.intervals += 1;
            self.covered += usize::from(interval.contains(truth));
            self.error += one.ratio / truth - 1.0;
            self.width += interval.half_width() / truth;
        }
    }

    /// Returns the number of verdicts "better" or "worse", which are false alarms if both builds
    /// are equal.
    pub fn better_or_worse_count(&self) -> usize {
        self.better + self.worse
    }
}

/// Returns the simulated machines with their names.
pub fn machines() -> Vec<(&'static str, Machine)> {
    vec![
        ("quiet", QUIET),
        ("independent", Machine { white: 0.05, ..QUIET }),
        ("this machine", BENCHMARK_MACHINE),
        ("wild drift", Machine { drift: 0.2, drift_correlation: 0.8, ..BENCHMARK_MACHINE }),
        ("falling by 20 %", Machine { goodput_fall_share: 0.2, ..BENCHMARK_MACHINE }),
        ("heavy tails", Machine { heavy_tail_scale: 0.05, ..QUIET }),
        ("half used by others", BUSY),
    ]
}

/// Returns the names of hidden defects, each with builds that have this defect.
pub fn worse_builds() -> Vec<(&'static str, Vec<HiddenDefect>)> {
    use HiddenDefect::*;
    vec![
        ("sheds", [0.005, 0.01, 0.02, 0.05, 0.1].map(Sheds).into()),
        ("closes early", [0.005, 0.01, 0.02, 0.05, 0.1].map(ClosesEarly).into()),
        ("fails fast", [0.005, 0.01, 0.02, 0.05, 0.1].map(FailsFast).into()),
        ("stalls", [(0.5, 8.3), (0.3, 5.0), (0.2, 3.0), (1.0, 15.0), (0.05, 1.0)].map(|(l, e)| Stalls(l, e)).into()),
        ("tail", [(0.01, 10.0), (0.02, 4.0), (0.05, 2.0), (0.005, 20.0), (0.1, 1.5)].map(|(s, t)| Tail(s, t)).into()),
        ("wrong body", [0.02, 0.05, 0.1, 0.3, 1.0].map(WrongBody).into()),
        ("leaks", [0.06, 0.1, 0.2, 0.5, 1.0].map(Leaks).into()),
        (
            "slow start",
            [(0.1, 1.5), (0.2, 1.3), (0.3, 1.2), (0.1, 2.0), (0.5, 1.5)].map(|(l, t)| SlowStart(l, t)).into(),
        ),
        ("bimodal", [(0.1, 1.5), (0.3, 1.2), (0.5, 1.1), (0.2, 2.0), (0.05, 3.0)].map(|(s, t)| Bimodal(s, t)).into()),
    ]
}

fn format_percent(count: usize, of: usize) -> String {
    format!("{:.1} %", 100.0 * count as f64 / of.max(1) as f64)
}

/// Writes all tables, each row as soon as its figures are computed. Each row summarizes `count`
/// comparisons.
pub fn write_truth_tables(count: u64, text: &mut impl Write) {
    let _ =
        writeln!(text, "Two copies, {count} comparisons each: alarms (better or worse), the same; {BLOCKS} blocks\n");
    for (name, machine) in machines() {
        let world = SimulatedComparison { machine, ..EQUAL_BUILDS };
        let of = |world: &SimulatedComparison| world.outcomes(0..count, BLOCKS);
        let mut row = |what: &str, outcomes: &Outcomes| {
            let _ = writeln!(
                text,
                "{name:22} {what:22} alarms {:>6}  same {:>6}  small {:>6}",
                format_percent(outcomes.better_or_worse_count(), outcomes.count),
                format_percent(outcomes.same, outcomes.count),
                format_percent(outcomes.small, outcomes.count)
            );
        };
        row("", &of(&world));
        row("starts differ by 1 %", &of(&SimulatedComparison { start_deviation: 0.01, ..world }));
        row("starts differ by 2 %", &of(&SimulatedComparison { start_deviation: 0.02, ..world }));
        row("by p99", &of(&SimulatedComparison { primary: Criterion::P99, ..world }));
        row("two processes, 1 %", &of(&SimulatedComparison { start_deviation: 0.01, restarts_builds: false, ..world }));
    }
    let _ = writeln!(text, "\nPlanted ratios: intervals of 95 % that hold them, mean error, half width\n");
    for (name, machine) in machines() {
        for (ratio, primary) in
            [(2.0, Criterion::Goodput), (1.05, Criterion::Goodput), (0.95, Criterion::Goodput), (1.0, Criterion::P50)]
        {
            let outcomes = SimulatedComparison { machine, ratio, primary, ..EQUAL_BUILDS }.outcomes(0..count, BLOCKS);
            let known = outcomes.intervals.max(1) as f64;
            let _ = writeln!(
                text,
                "{name:22} {:8} {ratio:4} covered {:>6}  error {:+.2} %  half width {:.2} %  better {:>6}  worse {:>6}",
                primary.flag_word(),
                format_percent(outcomes.covered, outcomes.intervals),
                100.0 * outcomes.error / known,
                100.0 * outcomes.width / known,
                format_percent(outcomes.better, outcomes.count),
                format_percent(outcomes.worse, outcomes.count),
            );
        }
    }
    let _ = writeln!(text, "\nBuilds that are worse in one hidden way: better, same, small, worse\n");
    let mut all = Outcomes::default();
    for (name, builds) in worse_builds() {
        for hidden in builds {
            for primary in [Criterion::Goodput, Criterion::P99] {
                let fresh = !matches!(hidden, HiddenDefect::Leaks(_));
                let world =
                    SimulatedComparison { hidden_defect: hidden, restarts_builds: fresh, primary, ..EQUAL_BUILDS };
                let outcomes = world.outcomes(0..count, BLOCKS);
                let _ = writeln!(
                    text,
                    "{name:13} {:26} {:8} better {:>6}  same {:>6}  small {:>6}  worse {:>6}",
                    format!("{hidden:?}"),
                    primary.flag_word(),
                    format_percent(outcomes.better, outcomes.count),
                    format_percent(outcomes.same, outcomes.count),
                    format_percent(outcomes.small, outcomes.count),
                    format_percent(outcomes.worse, outcomes.count)
                );
                all.count += outcomes.count;
                all.better += outcomes.better;
                all.same += outcomes.same;
            }
        }
    }
    let _ =
        writeln!(text, "\nof all {}: better {}, same {}", all.count, all.better, format_percent(all.same, all.count));
}
