//! The schedule of a trial in which profiles are taken, the figures of its intervals, and the cost
//! of profiling.
//!
//! The trial has a fixed rate. After a warm-up the trial runs without profiling, then while the CPU
//! profile is taken, then without profiling again. Because the CPU profile lies between two
//! intervals without profiling, drift affects the intervals with and without profiling equally.
//! Profiles of kinds other than CPU follow in an interval of their own, because a simultaneous CPU
//! profile would include their cost.
//!
//! Not here: fetching and parsing of profiles.

use crate::Summary;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Histogram, LoadShape, Run};

/// Length of the warm-up before the first interval, in ns. The warm-up is not measured.
const WARMUP_NS: u64 = 2 * SECOND;
/// Pause after a profile, in ns, in which the server stops the profile and writes it.
const PAUSE_AFTER_PROFILE_NS: u64 = SECOND / 2;
/// Longest time between the two snapshots of each profile of a kind other than CPU, in s.
const OTHER_KINDS_SECONDS_MAX: u32 = 5;
/// Smallest throughput at which the server counts as sustaining the offered rate, as a share of the
/// rate.
const SUSTAINED_SHARE_MIN: f64 = 0.98;
/// A rate at which queues stay short, as a share of the server's throughput.
const SHORT_QUEUE_SHARE: f64 = 0.85;
/// The low rate of profiling, as a share of the rate under investigation.
const LOW_RATE_SHARE: f64 = 0.15;

/// The schedule of a trial in which profiles are taken. Each interval has a start and an end, in ns
/// since the start of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfilingSchedule {
    /// End of the warm-up, in ns since the start of the schedule. The warm-up is not measured.
    pub warmup_ns: u64,
    /// The intervals without profiling, before and after the CPU profile, as start and end in ns
    /// since the start of the schedule.
    pub unprofiled_intervals_ns: [(u64, u64); 2],
    /// The interval in which the CPU profile is taken, as start and end in ns since the start of
    /// the schedule.
    pub cpu_interval_ns: (u64, u64),
    /// The interval in which profiles of kinds other than CPU are taken, as start and end in ns
    /// since the start of the schedule.
    pub other_kinds_interval_ns: (u64, u64),
    /// The end of the trial, in ns since the start of the schedule.
    pub end_ns: u64,
}

impl ProfilingSchedule {
    /// Plans a trial with a CPU profile of `cpu_seconds` seconds.
    pub fn new(cpu_seconds: u32) -> ProfilingSchedule {
        let cpu_ns = u64::from(cpu_seconds) * SECOND;
        let tenths = |ns: u64| ns.div_ceil(SECOND / 10) * (SECOND / 10);
        let mut at = WARMUP_NS;
        let mut next = |length_ns: u64, gap_ns: u64| {
            let start = at;
            at = start + length_ns + gap_ns;
            (start, start + length_ns)
        };
        let before = next(tenths(cpu_ns / 2), 0);
        let cpu_interval_ns = next(cpu_ns, PAUSE_AFTER_PROFILE_NS);
        let after = next(tenths(cpu_ns / 2), 0);
        let other_kinds_interval_ns =
            next(u64::from(Self::other_kinds_seconds(cpu_seconds)) * SECOND, PAUSE_AFTER_PROFILE_NS);
        ProfilingSchedule {
            warmup_ns: WARMUP_NS,
            unprofiled_intervals_ns: [before, after],
            cpu_interval_ns,
            other_kinds_interval_ns,
            end_ns: other_kinds_interval_ns.1 + PAUSE_AFTER_PROFILE_NS,
        }
    }

    /// Returns the length of the profiles of kinds other than CPU, in s, for a CPU profile of
    /// `cpu_seconds` seconds.
    pub fn other_kinds_seconds(cpu_seconds: u32) -> u32 {
        cpu_seconds.min(OTHER_KINDS_SECONDS_MAX)
    }
}

/// Returns the two rates at which profiles are taken, in 1/s: a low rate, and `level_rps` itself.
/// The low rate is rounded to three significant digits.
pub fn profiling_rates_rps(level_rps: f64) -> [f64; 2] {
    let low = (level_rps * LOW_RATE_SHARE).max(level_rps.min(1.0));
    let unit = 10_f64.powf(low.max(1e-9).log10().floor() - 2.0);
    [(low / unit).round() * unit, level_rps]
}

/// Returns the rate at which a server is profiled in steady state, 1/s. The rate is the final
/// offered rate if the server sustained that offered rate. If the server did not sustain the final
/// offered rate, the rate for profiling is well below the server's throughput.
pub fn steady_profiling_rps(summary: &Summary, load: &LoadShape) -> f64 {
    let offered = load.rate().and_then(|rate| rate.stages.last()).map(|stage| stage.to);
    match offered {
        Some(offered) if summary.offered_unit_rps() >= offered * SUSTAINED_SHARE_MIN => offered,
        _ => summary.offered_unit_rps() * SHORT_QUEUE_SHARE,
    }
}

/// Throughput and response times of the requests in some intervals of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PeriodFigures {
    /// Total length of the intervals, in s.
    pub seconds: f64,
    /// Completed requests a second, successful or not. The server's cost per request is computed
    /// from this number.
    pub completed_rps: f64,
    /// Successful requests a second.
    pub goodput_rps: f64,
    /// Median response time, in ns.
    pub p50_ns: u64,
    /// Response time p99, in ns.
    pub p99_ns: u64,
}

impl PeriodFigures {
    /// Sums up the recorded ticks that lie in the intervals `periods_ns`. Each interval is a start
    /// and an end, in ns since the start of the schedule.
    pub fn from_run(run: &Run, periods_ns: &[(u64, u64)]) -> PeriodFigures {
        let length_ns = run.plan.load.interval_ns.max(1);
        let mut response = Histogram::new();
        let (mut intervals, mut completed, mut succeeded) = (0_u64, 0, 0);
        for (start, end) in periods_ns {
            let (first, last) = (start.div_ceil(length_ns) as u32, (end / length_ns) as u32);
            if first >= last {
                continue;
            }
            for (_, interval) in run.intervals.range(first..last) {
                intervals += 1;
                let whole = interval.all_routes();
                completed += whole.ledger.finished_requests();
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

/// The figures of a trial in which profiles were taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfiledTrial {
    /// The fixed rate of the trial, in 1/s: requests, or sessions if the traffic has sessions.
    pub offered_rps: f64,
    /// Mean number of requests per session; 1 without sessions.
    pub requests_per_session: f64,
    /// The figures of both intervals without profiling together.
    pub without_profiling: PeriodFigures,
    /// The figures of the interval in which the CPU profile was taken.
    pub with_cpu_profile: PeriodFigures,
    /// The figures of the interval in which profiles of kinds other than CPU were taken.
    pub other_kinds: PeriodFigures,
}

impl ProfiledTrial {
    /// Computes the figures of a trial that ran with the schedule `schedule`.
    pub fn from_run(run: &Run, schedule: &ProfilingSchedule) -> ProfiledTrial {
        ProfiledTrial {
            offered_rps: run.plan.load.shape.curve().max(),
            requests_per_session: Summary::from_run(run).requests_per_session,
            without_profiling: PeriodFigures::from_run(run, &schedule.unprofiled_intervals_ns),
            with_cpu_profile: PeriodFigures::from_run(run, &[schedule.cpu_interval_ns]),
            other_kinds: PeriodFigures::from_run(run, &[schedule.other_kinds_interval_ns]),
        }
    }

    /// Returns whether the server sustained the offered rate. If the server sustained the rate, the
    /// cost of a request does not depend on when the profile was taken.
    pub fn is_steady(&self) -> bool {
        self.without_profiling.goodput_rps / self.requests_per_session >= self.offered_rps * SUSTAINED_SHARE_MIN
    }

    /// Returns the number of requests that completed while a profile was taken, from the throughput
    /// `meanwhile` and the length `duration_ns` of the profile. `duration_ns` is the measured
    /// length, because a profile takes a little longer than requested.
    pub fn requests_during_profile(meanwhile: &PeriodFigures, duration_ns: i64) -> f64 {
        meanwhile.completed_rps * duration_ns.max(0) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, LoadCurve, LoadShape, Plan};

    #[test]
    fn profiling_intervals_are_consecutive() {
        for seconds in [1, 3, 10, 60] {
            let ProfilingSchedule {
                warmup_ns,
                unprofiled_intervals_ns: [before, after],
                cpu_interval_ns,
                other_kinds_interval_ns,
                end_ns,
            } = ProfilingSchedule::new(seconds);
            assert_eq!((warmup_ns, before.1), (before.0, cpu_interval_ns.0));
            assert!(
                cpu_interval_ns.1 < after.0
                    && after.1 <= other_kinds_interval_ns.0
                    && other_kinds_interval_ns.1 < end_ns
            );
            assert_eq!(cpu_interval_ns.1 - cpu_interval_ns.0, u64::from(seconds) * SECOND);
            // Both intervals without profiling together are as long as the CPU profile, to a fifth
            // of a second.
            assert!(before.1 - before.0 + after.1 - after.0 - (cpu_interval_ns.1 - cpu_interval_ns.0) <= SECOND / 5);
            assert!(
                [before, after, cpu_interval_ns, other_kinds_interval_ns]
                    .iter()
                    .all(|(a, b)| a % (SECOND / 10) == 0 && b % (SECOND / 10) == 0)
            );
        }
    }

    #[test]
    fn the_low_rate_is_well_below_the_line() {
        for (level, low) in [(10_000.0, 1500.0), (1234.5, 185.0), (5.0, 1.0), (0.5, 0.5)] {
            assert_eq!(profiling_rates_rps(level), [low, level]);
        }
    }

    #[test]
    fn figures_cover_only_the_profiled_interval() {
        let rate = LoadCurve::constant_for_duration(20.0, 3 * SECOND);
        let plan = Plan::for_get_request(
            "h",
            80,
            vec![],
            LoadShape::Open { rate, arrivals: plimsoll_model::ArrivalSpacing::Constant },
        );
        let mut run = Run::new(plan);
        for tick in 0..30_u64 {
            let mut interval = Interval::default();
            let mut response = Histogram::new();
            // From 1 s to 2 s, responses are slower and half of the requests fail.
            let inside = (10..20).contains(&tick);
            let figures = interval.routes.figures_mut(0);
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
        assert_eq!(ProfiledTrial::requests_during_profile(&inside, 1_500_000_000), 30.0);
        let level = |offered_rps, requests_each| ProfiledTrial {
            offered_rps,
            requests_per_session: requests_each,
            without_profiling: outside,
            with_cpu_profile: inside,
            other_kinds: inside,
        };
        assert!(level(20.0, 1.0).is_steady() && level(20.4, 1.0).is_steady() && !level(20.5, 1.0).is_steady());
        assert!(level(5.0, 4.0).is_steady() && !level(6.0, 4.0).is_steady());
    }
}
