//! The intended start of every request, computed from the load's shape by arithmetic alone.
//!
//! The intended start of arrival n is a function of (shape, seed, n) alone. A [`Stripe`] is a part
//! of the schedule. Stripes partition the schedule exactly, so workers and machines share the
//! schedule without communication.
//!
//! Let r(t) be the rate and L(t) the integral of r(t). Arrival n of an evenly spaced load starts
//! when L(t) reaches n. Arrival times that are given as a list are looked up in the list.
//!
//! A Poisson load is built in blocks of [`BLOCK_ARRIVALS_EXPECTED`] expected arrivals. The number
//! of arrivals in a block has a Poisson distribution. The arrivals of a block are uniform in L(t),
//! and generated in ascending order (order statistics; Devroye 1986, V.3). To compute the start of
//! an arrival, only the arrivals of one block are generated.
//!
//! Not here: waiting, clocks, connections.

use crate::load::{ArrivalSpacing, Load, LoadShape};
use crate::rng::Rng;
use crate::stripe::Stripe;
use std::sync::Arc;

/// Expected number of arrivals in a block of a Poisson schedule. To find one arrival, the generator
/// draws only the arrivals of one block.
const BLOCK_ARRIVALS_EXPECTED: f64 = 1024.0;

/// A stage of the load in schedule time. The level of a stage (`from`, `to`) is a rate in requests
/// per second, or a number of users.
#[derive(Debug, Clone, Copy)]
struct ScheduleStage {
    start_ns: f64,
    /// Length of the stage, ns; infinite for an open-ended stage.
    length_ns: f64,
    from: f64,
    to: f64,
    /// Integral of the level over all earlier stages: a number of arrivals (for a closed loop,
    /// users x s).
    area_before: f64,
}

impl ScheduleStage {
    fn end_ns(&self) -> f64 {
        self.start_ns + self.length_ns
    }

    /// Returns the slope of the level in 1/s per second.
    fn level_slope_per_s(&self) -> f64 {
        if self.length_ns.is_finite() { (self.to - self.from) / (self.length_ns * 1e-9) } else { 0.0 }
    }

    fn level_at(&self, t_ns: f64) -> f64 {
        self.from + self.level_slope_per_s() * (t_ns - self.start_ns) * 1e-9
    }

    fn level_integral_until(&self, t_ns: f64) -> f64 {
        let s = (t_ns - self.start_ns).clamp(0.0, self.length_ns) * 1e-9;
        self.from * s + self.level_slope_per_s() * s * s / 2.0
    }

    /// Returns the schedule time, ns, at which the integral of the level over this stage reaches
    /// `area`.
    fn time_at_level_integral(&self, area: f64) -> f64 {
        // `s` is the positive root of slope/2 s^2 + from s = area, in the form that avoids
        // cancellation.
        let root = (self.from * self.from + 2.0 * self.level_slope_per_s() * area).max(0.0).sqrt();
        let s = if area <= 0.0 { 0.0 } else { 2.0 * area / (self.from + root) };
        (self.start_ns + s * 1e9).min(self.end_ns())
    }
}

/// How arrivals of an open loop are computed.
#[derive(Debug, Clone)]
enum ScheduleSpacing {
    /// Even spacing: arrival n starts when the integral of the rate reaches n.
    Even,
    /// Poisson arrivals in blocks: the list has the number of arrivals before each block. The last
    /// entry of the list is the total number of arrivals.
    Poisson(Arc<[u64]>),
    /// A list of arrival times, ns.
    ArrivalTimes(Arc<[u64]>),
}

/// A compiled load: the intended start of every arrival of an open loop, or the number of users of
/// a closed loop at any time.
#[derive(Debug, Clone)]
pub struct Schedule {
    stages: Vec<ScheduleStage>,
    spacing: Option<ScheduleSpacing>,
    seed: u64,
    measured_from_ns: u64,
    end_ns: Option<u64>,
    requests_max: Option<u64>,
    /// Number of arrivals of an open loop; `None` for an unlimited load.
    arrivals: Option<u64>,
}

impl Schedule {
    /// Compiles the load's shape: first the warm-up, then the measured part. The level of the
    /// warm-up is the shape's first level. If the first level is 0, the warm-up has the level at
    /// the end of the first stage.
    pub fn compile(load: &Load) -> Schedule {
        let mut stages = Vec::new();
        let (mut at_ns, mut area) = (0.0, 0.0);
        let mut add = |from: f64, to: f64, length_ns: f64| {
            if length_ns > 0.0 {
                let stage = ScheduleStage { start_ns: at_ns, length_ns, from, to, area_before: area };
                at_ns += length_ns;
                area += if length_ns.is_finite() { stage.level_integral_until(at_ns) } else { 0.0 };
                stages.push(stage);
            }
        };
        let load_stages = &load.shape.curve().stages;
        if let Some(first) = load_stages.first() {
            let level = if first.from > 0.0 { first.from } else { first.to };
            add(level, level, load.warmup_ns as f64);
        }
        for stage in load_stages {
            let length_ns = stage.duration_ns.or(load.duration_ns).map_or(f64::INFINITY, |ns| ns as f64);
            add(stage.from, stage.to, length_ns);
        }
        let spacing = match &load.shape {
            // A replayed load needs only the number of arrivals in each stage from the schedule,
            // because `session_draws` draws the arrival times.
            LoadShape::Open { arrivals: ArrivalSpacing::Constant | ArrivalSpacing::Replayed, .. } => {
                Some(ScheduleSpacing::Even)
            }
            LoadShape::Open { arrivals: ArrivalSpacing::Poisson, .. } => Some(ScheduleSpacing::Poisson(Arc::from([]))),
            LoadShape::ArrivalTimes { arrivals } => {
                Some(ScheduleSpacing::ArrivalTimes(Arc::clone(arrivals.starts_ns())))
            }
            LoadShape::Closed { .. } => None,
        };
        let shape_end_ns = at_ns.is_finite().then_some(at_ns as u64);
        let load_end_ns = load.duration_ns.map(|ns| ns + load.warmup_ns);
        let mut schedule = Schedule {
            stages,
            spacing,
            seed: load.seed,
            measured_from_ns: load.warmup_ns,
            end_ns: match (shape_end_ns, load_end_ns) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            requests_max: load.requests_max,
            arrivals: None,
        };
        schedule.count_arrivals();
        schedule
    }

    fn count_arrivals(&mut self) {
        let area_end = self.end_ns.map(|ns| self.level_integral_at(ns as f64));
        let area_warmup = self.level_integral_at(self.measured_from_ns as f64);
        match &self.spacing {
            None => {}
            Some(ScheduleSpacing::ArrivalTimes(starts)) => {
                let before = |ns: u64| starts.partition_point(|start| *start < ns) as u64;
                let by_time = self.end_ns.map_or(starts.len() as u64, before);
                let by_count =
                    self.requests_max.map_or(u64::MAX, |max| before(self.measured_from_ns).saturating_add(max));
                self.arrivals = Some(by_time.min(by_count));
            }
            Some(ScheduleSpacing::Poisson(_)) => {
                let mut first = vec![0u64];
                let mut total = 0u64;
                let mut block = 0u64;
                // Add blocks of arrivals until the load's shape ends, or until the schedule has the
                // requested number of arrivals.
                loop {
                    let from = block as f64 * BLOCK_ARRIVALS_EXPECTED;
                    if area_end.is_some_and(|end| from >= end) {
                        break;
                    }
                    if from > area_warmup + BLOCK_ARRIVALS_EXPECTED
                        && let Some(max) = self.requests_max
                        && total >= self.poisson_arrivals_before(area_warmup, &first) + max
                    {
                        break;
                    }
                    total += self.poisson_block_arrivals(block);
                    first.push(total);
                    block += 1;
                }
                let before_end = |area: f64| self.poisson_arrivals_before(area, &first);
                let by_time = area_end.map_or(total, before_end);
                let by_count = self.requests_max.map_or(u64::MAX, |max| before_end(area_warmup) + max);
                self.arrivals = Some(by_time.min(by_count));
                self.spacing = Some(ScheduleSpacing::Poisson(first.into()));
            }
            Some(ScheduleSpacing::Even) => {
                let before = even_arrivals_before;
                let by_count = self.requests_max.map(|max| before(area_warmup) + max);
                let by_time = area_end.map(before);
                self.arrivals = match (by_count, by_time) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }

    fn poisson_block_arrivals(&self, block: u64) -> u64 {
        Rng::for_stream(self.seed, block * 2).poisson(BLOCK_ARRIVALS_EXPECTED)
    }

    /// Returns the number of Poisson arrivals before the integral of the rate reaches `area`.
    fn poisson_arrivals_before(&self, area: f64, block_first: &[u64]) -> u64 {
        let block = (area / BLOCK_ARRIVALS_EXPECTED) as usize;
        if block + 1 >= block_first.len() {
            return block_first.last().copied().unwrap_or(0);
        }
        let points = PoissonBlockArrivals::new(self.seed, block as u64, block_first[block + 1] - block_first[block]);
        block_first[block] + points.take_while(|a| *a < area).count() as u64
    }

    /// Returns the integral of the level from 0 to `t_ns`, in arrivals.
    fn level_integral_at(&self, t_ns: f64) -> f64 {
        match self.stages.iter().rev().find(|s| s.start_ns <= t_ns) {
            Some(segment) => segment.area_before + segment.level_integral_until(t_ns),
            None => 0.0,
        }
    }

    fn time_at_level_integral(&self, area: f64) -> u64 {
        let at = self.stages.partition_point(|s| s.area_before <= area).saturating_sub(1);
        self.stages[at].time_at_level_integral(area - self.stages[at].area_before) as u64
    }

    /// Returns the intended start of arrival `n` of an open load in ns of schedule time; `None`
    /// after the last arrival.
    pub fn start_ns(&self, n: u64) -> Option<u64> {
        if self.arrivals.is_some_and(|count| n >= count) {
            return None;
        }
        match self.spacing.as_ref()? {
            ScheduleSpacing::Even => Some(self.time_at_level_integral(n as f64)),
            ScheduleSpacing::Poisson(block_first) => {
                let block = block_first.partition_point(|first| *first <= n) - 1;
                let count = block_first[block + 1] - block_first[block];
                let mut points = PoissonBlockArrivals::new(self.seed, block as u64, count);
                points.nth((n - block_first[block]) as usize).map(|area| self.time_at_level_integral(area))
            }
            ScheduleSpacing::ArrivalTimes(starts) => starts.get(n as usize).copied(),
        }
    }

    /// Returns an iterator over the arrivals of a stripe (part of the schedule) in order. The
    /// iterator gives the same times as [`Schedule::start_ns`], but at constant cost for each
    /// arrival.
    pub fn arrivals_of_stripe(self: &Arc<Self>, stripe: Stripe) -> ArrivalCursor {
        ArrivalCursor { schedule: Arc::clone(self), stripe, next: stripe.nth_item(0), block: None }
    }

    /// Returns the number of arrivals of an open loop before `t_ns`.
    pub fn arrivals_before(&self, t_ns: u64) -> u64 {
        let area = self.level_integral_at(t_ns as f64);
        let before = match &self.spacing {
            None => 0,
            Some(ScheduleSpacing::Even) => even_arrivals_before(area),
            Some(ScheduleSpacing::Poisson(first)) => self.poisson_arrivals_before(area, first),
            Some(ScheduleSpacing::ArrivalTimes(starts)) => starts.partition_point(|start| *start < t_ns) as u64,
        };
        before.min(self.arrivals.unwrap_or(u64::MAX))
    }

    /// Returns the number of arrivals of an open loop, including the warm-up; `None` for closed
    /// loops and unlimited loads.
    pub fn arrivals_total(&self) -> Option<u64> {
        self.arrivals
    }

    /// Returns whether the load is an open loop.
    pub fn is_open(&self) -> bool {
        self.spacing.is_some()
    }

    /// Returns the start of the measured part in schedule time, ns.
    pub fn measured_from_ns(&self) -> u64 {
        self.measured_from_ns
    }

    /// Returns the end of the schedule, ns; `None` means that the load ends after a number of
    /// requests and has no end time.
    pub fn end_ns(&self) -> Option<u64> {
        self.end_ns
    }

    /// Returns the number of users of a closed loop at `t_ns`. The number is rounded down, but is
    /// at least one while the level is above 0.
    pub fn users_at(&self, t_ns: u64) -> u64 {
        let t_ns = t_ns as f64;
        match self.stages.iter().find(|s| t_ns < s.end_ns()) {
            Some(segment) => whole_users(segment.level_at(t_ns)),
            None => 0,
        }
    }

    /// Returns the largest number of users.
    pub fn users_max(&self) -> u64 {
        whole_users(self.stages.iter().fold(0.0, |max: f64, s| max.max(s.from).max(s.to)))
    }

    /// Returns the next time after `t_ns` at which the number of users changes, ns; `None` means
    /// that the number does not change any more.
    pub fn next_users_change_ns(&self, t_ns: u64) -> Option<u64> {
        let t = t_ns as f64;
        let segment = self.stages.iter().find(|s| t < s.end_ns())?;
        let end = segment.end_ns();
        let slope = segment.level_slope_per_s();
        let next = if slope == 0.0 {
            end
        } else {
            let users = segment.level_at(t).floor();
            let level = if slope > 0.0 { users + 1.0 } else { users };
            // Add a nanosecond to the time at which the level reaches a whole number of users, so
            // that rounding cannot give an earlier time.
            (segment.start_ns + ((level - segment.from) / slope * 1e9).ceil() + 1.0).min(end)
        };
        next.is_finite().then_some((next as u64).max(t_ns + 1))
    }

    /// Returns the number of measured requests of a stripe (part of the schedule) in a closed loop
    /// with a limited number of requests. Request k belongs to user (k modulo the number of users).
    /// `None` means that the number of requests is not limited.
    pub fn requests_of_stripe(&self, stripe: Stripe) -> Option<u64> {
        let users = self.users_max().max(1);
        self.requests_max
            .map(|max| stripe.count_items_below(users) * (max / users) + stripe.count_items_below(max % users))
    }
}

/// Returns the number of evenly spaced arrivals before the integral of the rate reaches `area`.
/// Arrival n starts when the integral reaches n.
fn even_arrivals_before(area: f64) -> u64 {
    (area - 1e-9).ceil().max(0.0) as u64
}

fn whole_users(level: f64) -> u64 {
    if level <= 0.0 { 0 } else { ((level + 1e-9).floor() as u64).max(1) }
}

/// The arrivals of one block of a Poisson schedule, in ascending order. The time of each arrival is
/// expressed as the integral of the rate until that time.
#[derive(Debug, Clone)]
struct PoissonBlockArrivals {
    rng: Rng,
    base: f64,
    left: u64,
    /// Position of the last drawn arrival within the block, 0..1.
    position: f64,
}

impl PoissonBlockArrivals {
    fn new(seed: u64, block: u64, arrivals_count: u64) -> Self {
        let rng = Rng::for_stream(seed, block * 2 + 1);
        let base = block as f64 * BLOCK_ARRIVALS_EXPECTED;
        PoissonBlockArrivals { rng, base, left: arrivals_count, position: 0.0 }
    }
}

impl Iterator for PoissonBlockArrivals {
    type Item = f64;

    #[inline]
    fn next(&mut self) -> Option<f64> {
        if self.left == 0 {
            return None;
        }
        // Draw the smallest of `left` uniform points between `position` and the end of the block.
        let share = 1.0 - (self.rng.next_f64_above_zero().ln() / self.left as f64).exp();
        self.position += (1.0 - self.position) * share;
        self.left -= 1;
        Some(self.base + self.position * BLOCK_ARRIVALS_EXPECTED)
    }
}

/// Iterates over the arrivals of one stripe (part of the schedule).
#[derive(Debug, Clone)]
pub struct ArrivalCursor {
    schedule: Arc<Schedule>,
    stripe: Stripe,
    next: u64,
    /// For Poisson arrivals: the number of the current block, the block's arrivals, and the number
    /// of the next arrival.
    block: Option<(usize, PoissonBlockArrivals, u64)>,
}

impl Iterator for ArrivalCursor {
    /// The number of an arrival, and its intended start in ns.
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let n = self.next;
        let schedule = &self.schedule;
        if schedule.arrivals.is_some_and(|count| n >= count) {
            return None;
        }
        let area = match schedule.spacing.as_ref()? {
            ScheduleSpacing::Even => n as f64,
            ScheduleSpacing::ArrivalTimes(starts) => {
                let start_ns = *starts.get(n as usize)?;
                self.next = self.stripe.next_item_after(n);
                return Some((n, start_ns));
            }
            ScheduleSpacing::Poisson(first) => {
                let at = match &self.block {
                    Some((at, ..)) if n < first[at + 1] => *at,
                    _ => {
                        let at = first.partition_point(|f| *f <= n) - 1;
                        let points = PoissonBlockArrivals::new(schedule.seed, at as u64, first[at + 1] - first[at]);
                        self.block = Some((at, points, first[at]));
                        at
                    }
                };
                debug_assert!(n < first[at + 1]);
                let (_, points, number) = self.block.as_mut()?;
                let skip = n - *number;
                *number = n + 1;
                points.nth(skip as usize)?
            }
        };
        self.next = self.stripe.next_item_after(n);
        Some((n, schedule.time_at_level_integral(area)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival_times::ArrivalTimes;
    use crate::curve::LoadCurve;
    use crate::units::SECOND;
    use proptest::prelude::*;

    fn open_load(curve: &str, arrivals: ArrivalSpacing) -> Load {
        Load::new(LoadShape::Open { rate: LoadCurve::parse(curve).expect(curve), arrivals })
    }

    fn closed_load(curve: &str) -> Load {
        Load::new(LoadShape::Closed { users: LoadCurve::parse(curve).expect(curve) })
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced() {
        let schedule = Schedule::compile(&open_load("1000@2s", ArrivalSpacing::Constant));
        assert_eq!(schedule.arrivals_total(), Some(2000));
        for n in [0, 1, 999, 1999] {
            assert_eq!(schedule.start_ns(n), Some(n * 1_000_000));
        }
        assert_eq!(schedule.start_ns(2000), None);
    }

    #[test]
    fn ramp_arrivals_follow_the_rate_integral() {
        // With a rate of 0..1000/s over 10 s, arrival n starts at sqrt(n / 50) seconds. The ramp
        // has 5 000 arrivals, and the constant stage of 1000/s after the ramp has 1 000 arrivals.
        let schedule = Schedule::compile(&open_load("0..1000@10s,1000@1s", ArrivalSpacing::Constant));
        assert_eq!(schedule.arrivals_total(), Some(6000));
        for n in [0u64, 50, 200, 4999, 5000, 5500] {
            let expect = if n < 5000 { (n as f64 / 50.0).sqrt() } else { 10.0 + (n - 5000) as f64 / 1000.0 };
            let got = schedule.start_ns(n).expect("in range") as f64 / 1e9;
            assert!((got - expect).abs() < 1e-6, "arrival {n}: {got}, expected {expect}");
        }
    }

    #[test]
    fn request_limits_and_warm_up_bound_the_schedule() {
        for (requests, duration_s, warmup_s, expect) in [
            (Some(100), None, 0, Some(100)),
            (Some(100), Some(1), 0, Some(100)),
            (Some(5000), Some(1), 0, Some(1000)),
            (Some(100), None, 2, Some(2100)),
            (None, Some(1), 2, Some(3000)),
            (None, None, 0, None),
        ] {
            let mut load = open_load("1000", ArrivalSpacing::Constant);
            load.requests_max = requests;
            load.duration_ns = duration_s.map(|s| s * SECOND);
            load.warmup_ns = warmup_s * SECOND;
            let schedule = Schedule::compile(&load);
            assert_eq!(schedule.arrivals_total(), expect, "{requests:?} {duration_s:?} {warmup_s}");
            assert_eq!(schedule.measured_from_ns(), warmup_s * SECOND);
            load.shape = LoadShape::Open { rate: LoadCurve::constant(1000.0), arrivals: ArrivalSpacing::Poisson };
            if let Some(requests) = requests.filter(|_| duration_s.is_none()) {
                let schedule = Arc::new(Schedule::compile(&load));
                let measured = schedule
                    .arrivals_of_stripe(Stripe::WHOLE_SCHEDULE)
                    .filter(|(_, t)| *t >= warmup_s * SECOND)
                    .count();
                assert_eq!(measured as u64, requests);
            }
        }
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps() {
        let schedule = Arc::new(Schedule::compile(&open_load("10000@20s", ArrivalSpacing::Poisson)));
        let starts: Vec<u64> = schedule.arrivals_of_stripe(Stripe::WHOLE_SCHEDULE).map(|(_, t)| t).collect();
        let n = starts.len() as f64;
        assert!((n - 200_000.0).abs() < 4.0 * 200_000f64.sqrt(), "{n} arrivals");
        let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e5).collect();
        // The limit of the Kolmogorov-Smirnov distance to Exp(1) at the 1 % level is 1.63 /
        // sqrt(n).
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let distance = sorted.iter().enumerate().fold(0.0f64, |d, (i, g)| {
            let f = 1.0 - (-g).exp();
            d.max((f - i as f64 / n).abs()).max(((i + 1) as f64 / n - f).abs())
        });
        assert!(distance < 1.63 / n.sqrt(), "KS distance {distance}");
        // Counts of arrivals in 100 ms windows vary like the counts of a Poisson process: the index
        // of dispersion is 1.
        let mut counts = vec![0f64; 200];
        starts.iter().for_each(|t| counts[(t / 100_000_000) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 200.0;
        let dispersion = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 199.0 / mean;
        assert!((0.7..1.3).contains(&dispersion), "index of dispersion {dispersion}");
    }

    #[test]
    fn given_arrival_times_become_the_schedule() {
        let starts_ns = vec![0, 5, 5, 900, 1_500, 2_000];
        let arrivals = ArrivalTimes::new(starts_ns.clone(), 100, 2_000).expect("moments");
        for (requests_max, duration_ns, expect) in
            [(None, 1_900, 5), (Some(1), 1_900, 4), (None, 1_000, 4), (None, 9_999, 5)]
        {
            let load = Load {
                requests_max,
                duration_ns: Some(duration_ns),
                warmup_ns: 100,
                ..open_load("1", ArrivalSpacing::Constant)
            };
            let load = Load { shape: LoadShape::ArrivalTimes { arrivals: arrivals.clone() }, ..load };
            let schedule = Arc::new(Schedule::compile(&load));
            assert!(schedule.is_open());
            assert_eq!(schedule.arrivals_total(), Some(expect), "{requests_max:?} {duration_ns}");
            let all: Vec<_> = schedule.arrivals_of_stripe(Stripe::WHOLE_SCHEDULE).collect();
            assert!(
                all.iter().all(|(n, start)| starts_ns[*n as usize] == *start && schedule.start_ns(*n) == Some(*start))
            );
            let mut parts: Vec<_> =
                (0..3).flat_map(|index| schedule.arrivals_of_stripe(Stripe::new(index, 3))).collect();
            parts.sort_unstable();
            assert_eq!((parts.len() as u64, &parts), (expect, &all));
        }
    }

    #[test]
    fn users_follow_the_stages() {
        let schedule = Schedule::compile(&closed_load("10@10s,100@30s"));
        for (at_s, users) in [(0, 10), (9, 10), (10, 100), (39, 100), (40, 0)] {
            assert_eq!(schedule.users_at(at_s * SECOND), users, "{at_s} s");
        }
        assert_eq!(schedule.users_max(), 100);
        assert_eq!(schedule.next_users_change_ns(0), Some(10 * SECOND));
        let ramp = Schedule::compile(&closed_load("1..11@10s"));
        let mut at = 0;
        let mut seen = vec![ramp.users_at(0)];
        while let Some(next) = ramp.next_users_change_ns(at) {
            assert!(next > at);
            at = next;
            seen.push(ramp.users_at(at));
        }
        assert_eq!(seen, vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
        let endless = Schedule::compile(&Load { duration_ns: None, requests_max: Some(5), ..closed_load("3") });
        assert_eq!(endless.next_users_change_ns(0), None);
        assert_eq!(endless.users_at(u64::MAX), 3);
    }

    proptest! {
        #[test]
        fn stripes_partition_the_schedule(seed in any::<u64>(), of in 1u64..7, poisson in any::<bool>(),
                                          from in 0.0..3000f64, to in 1.0..3000f64) {
            let arrivals = if poisson { ArrivalSpacing::Poisson } else { ArrivalSpacing::Constant };
            let mut load = open_load(&format!("{from}..{to}@1s,{to}@500ms"), arrivals);
            load.seed = seed;
            let schedule = Arc::new(Schedule::compile(&load));
            let all: Vec<_> = schedule.arrivals_of_stripe(Stripe::WHOLE_SCHEDULE).collect();
            prop_assert_eq!(Some(all.len() as u64), schedule.arrivals_total());
            prop_assert!(all.windows(2).all(|w| w[0].1 <= w[1].1 && w[0].0 + 1 == w[1].0));
            prop_assert!(all.iter().all(|(_, t)| *t <= 1_500_000_000));
            let mut parts: Vec<_> = (0..of).flat_map(|index| schedule.arrivals_of_stripe(Stripe::new(index, of))).collect();
            parts.sort_unstable();
            prop_assert_eq!(&parts, &all);
            let weighted = |index| Stripe::weighted(index, &[of as u32, 3, 2]).expect("a part");
            let mut parts: Vec<_> = (0..3).flat_map(|index| schedule.arrivals_of_stripe(weighted(index))).collect();
            parts.sort_unstable();
            prop_assert_eq!(&parts, &all);
            for (n, start) in all.iter().step_by(97) {
                prop_assert_eq!(schedule.start_ns(*n), Some(*start));
            }
            let again = Arc::new(Schedule::compile(&load));
            prop_assert_eq!(again.arrivals_of_stripe(Stripe::WHOLE_SCHEDULE).collect::<Vec<_>>(), all);
        }

        #[test]
        fn stripes_of_a_closed_loop_send_all_requests(max in 0u64..5000, users in 1u64..50, of in 1u64..8) {
            let mut load = closed_load(&users.to_string());
            load.requests_max = Some(max);
            let schedule = Schedule::compile(&load);
            let sum: u64 = (0..of).filter_map(|index| schedule.requests_of_stripe(Stripe::new(index, of))).sum();
            prop_assert_eq!(sum, max);
            let parts = (0..3).map(|index| Stripe::weighted(index, &[4, 2, 1]).expect("a part"));
            prop_assert_eq!(parts.filter_map(|part| schedule.requests_of_stripe(part)).sum::<u64>(), max);
        }
    }
}
