//! Profiles under load: the intervals of a trial in which they are taken, the load at the time, and
//! the cost of profiling.
//!
//! A trial has a fixed rate. After a warm-up it runs without profiling, then with the CPU profile,
//! then without again, so that drift affects both equally. Other kinds of profiles follow in an
//! interval of their own, since their cost would show in the CPU profile.
//!
//! Not here: fetching and parsing profiles.

use crate::Summary;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Histogram, LoadShape, Run};

/// Load before anything is measured, ns.
const WARMUP_NS: u64 = 2 * SECOND;
/// A server needs some time to stop a profile and to write it.
const GAP_NS: u64 = SECOND / 2;
/// Longest time between the two snapshots of other kinds, s.
const OTHERS_SECONDS_MAX: u32 = 5;
/// Least share of an offered rate that a server must reach to sustain it.
const HOLDS_SHARE: f64 = 0.98;
/// Below a throughput that was the server's limit, a queue stays short.
const BELOW_LIMIT: f64 = 0.85;
/// The low load as a share of the load in question.
const LOW_SHARE: f64 = 0.15;

/// When what happens in a trial, in ns of schedule time; each stretch from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretches {
    /// Load that is not measured.
    pub warmup_ns: u64,
    /// Load without profiling, before and after the CPU profile.
    pub without: [(u64, u64); 2],
    /// The CPU profile.
    pub cpu: (u64, u64),
    /// The other kinds.
    pub others: (u64, u64),
    /// The end of the trial.
    pub end_ns: u64,
}

impl Stretches {
    /// The intervals of a trial with a CPU profile of so many seconds.
    pub fn new(cpu_seconds: u32) -> Stretches {
        let cpu_ns = u64::from(cpu_seconds) * SECOND;
        let tenths = |ns: u64| ns.div_ceil(SECOND / 10) * (SECOND / 10);
        let mut at = WARMUP_NS;
        let mut next = |length_ns: u64, gap_ns: u64| {
            let start = at;
            at = start + length_ns + gap_ns;
            (start, start + length_ns)
        };
        let before = next(tenths(cpu_ns / 2), 0);
        let cpu = next(cpu_ns, GAP_NS);
        let after = next(tenths(cpu_ns / 2), 0);
        let others = next(u64::from(Self::others_seconds(cpu_seconds)) * SECOND, GAP_NS);
        Stretches { warmup_ns: WARMUP_NS, without: [before, after], cpu, others, end_ns: others.1 + GAP_NS }
    }

    /// Length of the profiles of other kinds, s, for a CPU profile of this length.
    pub fn others_seconds(cpu_seconds: u32) -> u32 {
        cpu_seconds.min(OTHERS_SECONDS_MAX)
    }
}

/// The rates at which profiles are taken, in 1/s: a low one, and the one in question. Three digits
/// of the low one are enough.
pub fn rates(level_rps: f64) -> [f64; 2] {
    let low = (level_rps * LOW_SHARE).max(level_rps.min(1.0));
    let unit = 10_f64.powf(low.max(1e-9).log10().floor() - 2.0);
    [(low / unit).round() * unit, level_rps]
}

/// The rate for profiling a server in steady state, 1/s: the final offered rate if it was
/// sustained, otherwise well below the throughput.
pub fn steady_rps(summary: &Summary, load: &LoadShape) -> f64 {
    let offered = load.rate().and_then(|rate| rate.stages.last()).map(|stage| stage.to);
    match offered {
        Some(offered) if summary.offered_unit_rps() >= offered * HOLDS_SHARE => offered,
        _ => summary.offered_unit_rps() * BELOW_LIMIT,
    }
}

/// What happened to requests in some stretches of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PeriodFigures {
    /// Length of the intervals together, in s.
    pub seconds: f64,
    /// Completed requests a second, the divisor of a server's costs.
    pub completed_rps: f64,
    /// Successes a second.
    pub goodput_rps: f64,
    /// Response time of the median, ns.
    pub p50_ns: u64,
    /// Response time that 99 % of requests stay below, ns.
    pub p99_ns: u64,
}

impl PeriodFigures {
    /// Sums up the intervals that lie in the stretches; each of these is a start and an end in ns
    /// of schedule time.
    pub fn from_run(run: &Run, stretches: &[(u64, u64)]) -> PeriodFigures {
        let length_ns = run.plan.load.interval_ns.max(1);
        let mut response = Histogram::new();
        let (mut intervals, mut completed, mut succeeded) = (0_u64, 0, 0);
        for (start, end) in stretches {
            let (first, last) = (start.div_ceil(length_ns) as u32, (end / length_ns) as u32);
            if first >= last {
                continue;
            }
            for (_, interval) in run.intervals.range(first..last) {
                intervals += 1;
                let whole = interval.whole();
                completed += whole.ledger.requests();
                succeeded += whole.ledger.succeeded;
                response.merge_sparse(&whole.response);
            }
        }
        let seconds = intervals as f64 * length_ns as f64 / 1e9;
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        PeriodFigures {
            seconds,
            completed_rps: per_second(completed),
            goodput_rps: per_second(succeeded),
            p50_ns: response.quantile_ns(0.5),
            p99_ns: response.quantile_ns(0.99),
        }
    }
}

/// A trial in which profiles were taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfiledTrial {
    /// The fixed rate, 1/s: of requests, or of sessions.
    pub offered_rps: f64,
    /// Requests of a session on average; 1 without sessions.
    pub requests_each: f64,
    /// Without profiling.
    pub without: PeriodFigures,
    /// While the CPU profile was taken.
    pub with: PeriodFigures,
    /// While the other kinds were taken.
    pub others: PeriodFigures,
}

impl ProfiledTrial {
    /// The figures of a trial with these `stretches`.
    pub fn from_run(run: &Run, stretches: &Stretches) -> ProfiledTrial {
        ProfiledTrial {
            offered_rps: run.plan.load.shape.curve().max(),
            requests_each: Summary::from_run(run).requests_each,
            without: PeriodFigures::from_run(run, &stretches.without),
            with: PeriodFigures::from_run(run, &[stretches.cpu]),
            others: PeriodFigures::from_run(run, &[stretches.others]),
        }
    }

    /// Whether the server sustained the rate, so that the cost of a request does not depend on the
    /// time of the profile.
    pub fn is_steady(&self) -> bool {
        self.without.goodput_rps / self.requests_each >= self.offered_rps * HOLDS_SHARE
    }

    /// Requests completed during a profile of `duration_ns`, at the rate of its interval: profiles
    /// take a little longer than requested.
    pub fn requests(meanwhile: &PeriodFigures, duration_ns: i64) -> f64 {
        meanwhile.completed_rps * duration_ns.max(0) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Curve, Interval, LoadShape, Plan};

    #[test]
    fn stretches_follow_each_other() {
        for seconds in [1, 3, 10, 60] {
            let Stretches { warmup_ns, without: [before, after], cpu, others, end_ns } = Stretches::new(seconds);
            assert_eq!((warmup_ns, before.1), (before.0, cpu.0));
            assert!(cpu.1 < after.0 && after.1 <= others.0 && others.1 < end_ns);
            assert_eq!(cpu.1 - cpu.0, u64::from(seconds) * SECOND);
            // As long without as with, to the tenth of a second.
            assert!(before.1 - before.0 + after.1 - after.0 - (cpu.1 - cpu.0) <= SECOND / 5);
            assert!([before, after, cpu, others].iter().all(|(a, b)| a % (SECOND / 10) == 0 && b % (SECOND / 10) == 0));
        }
    }

    #[test]
    fn the_low_rate_is_well_below() {
        for (level, low) in [(10_000.0, 1500.0), (1234.5, 185.0), (5.0, 1.0), (0.5, 0.5)] {
            assert_eq!(rates(level), [low, level]);
        }
    }

    #[test]
    fn only_the_stretch_counts() {
        let rate = Curve::constant_for(20.0, 3 * SECOND);
        let plan = Plan::get("h", 80, vec![], LoadShape::Open { rate, arrivals: plimsoll_model::Arrivals::Constant });
        let mut run = Run::new(plan);
        for tick in 0..30_u64 {
            let mut interval = Interval::default();
            let mut response = Histogram::new();
            // Slower, and half of them failed, in the second second.
            let inside = (10..20).contains(&tick);
            let figures = interval.routes.of_mut(0);
            figures.ledger.succeeded = if inside { 1 } else { 2 };
            figures.ledger.failed[0] = u64::from(inside);
            response.record_n(if inside { 5_000_000 } else { 1_000_000 }, 2);
            figures.response = response.drain();
            run.push(tick * SECOND / 10, interval);
        }
        let inside = PeriodFigures::from_run(&run, &[(SECOND, 2 * SECOND)]);
        assert_eq!((inside.seconds, inside.completed_rps, inside.goodput_rps), (1.0, 20.0, 10.0));
        assert!((inside.p50_ns as f64 / 5e6 - 1.0).abs() < 0.002, "{inside:?}");
        let outside = PeriodFigures::from_run(&run, &[(0, SECOND), (2 * SECOND, 3 * SECOND)]);
        assert_eq!((outside.seconds, outside.goodput_rps), (2.0, 20.0));
        assert!(outside.p99_ns < 1_010_000, "{outside:?}");
        assert_eq!(PeriodFigures::from_run(&run, &[(9 * SECOND, 10 * SECOND)]), PeriodFigures::default());
        assert_eq!(ProfiledTrial::requests(&inside, 1_500_000_000), 30.0);
        let level = |offered_rps, requests_each| ProfiledTrial {
            offered_rps,
            requests_each,
            without: outside,
            with: inside,
            others: inside,
        };
        assert!(level(20.0, 1.0).is_steady() && level(20.4, 1.0).is_steady() && !level(20.5, 1.0).is_steady());
        assert!(level(5.0, 4.0).is_steady() && !level(6.0, 4.0).is_steady());
    }
}
