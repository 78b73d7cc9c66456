//! Readings of the target and its host during a load, as time series on the load's clock
//! ([`Probes`]).
//!
//! With `--watch` (the server is watched on its own machine), series of the server's machine have
//! their usual names. With `--watch`, the names of series of the load generator's machine begin
//! with [`GENERATOR_SERIES_PREFIX`].
//!
//! This file has plain data, and arithmetic on the data. Not here: how readings are taken, and what
//! the readings mean.

use crate::sampled::SampledFunctions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether the values of a series are levels or growing sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// A level at one time, such as resident memory.
    Gauge,
    /// A growing sum, such as CPU time; only differences have a meaning.
    Counter,
}

/// One reading of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesSample {
    /// Schedule time in ns: 0 is the start of the load, negative during the preparation of
    /// connections.
    pub at_ns: i64,
    /// The value of the reading, in the unit of the series.
    pub value: f64,
}

/// A period in which a series has no readings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    /// Schedule time of the last reading before the gap, ns.
    pub from_ns: i64,
    /// Schedule time of the last reading that failed, ns.
    pub to_ns: i64,
    /// Why the readings failed.
    pub reason: String,
}

/// One quantity over time, such as the server's CPU time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Whether the values are levels or growing sums.
    pub kind: SeriesKind,
    /// Unit of the values: `ns` of CPU time, `ns waiting`, `bytes`, `cores`, `share`, `hz`, or
    /// empty for a plain count.
    pub unit: String,
    /// Readings, ascending by time.
    pub samples: Vec<SeriesSample>,
    /// Periods without readings, ascending by time. Adjacent periods with the same reason form one
    /// gap.
    pub gaps: Vec<Gap>,
}

/// A watched process of the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WatchedServer {
    /// Schedule time at which plimsoll began to watch the process, ns.
    pub from_ns: i64,
    /// Process id of the watched process; for a server of several processes, the id of the first
    /// topmost (parent) process.
    pub pid: u32,
    /// Name of the watched process.
    pub name: String,
    /// How the process was found, such as `it listens on 127.0.0.1:8080`.
    pub found_by: String,
}

/// All readings of one load, and the CPU time for taking them. Merging of readings is associative
/// and commutative, so that parts written one after another add up to the whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probes {
    /// The name of the server's machine, if an agent on that machine watched the server
    /// (`--watch`). `None` means that the server was watched from the load generator's machine.
    pub host: Option<String>,
    /// Series by name, such as `server.cpu`.
    pub series: BTreeMap<String, Series>,
    /// Watched processes, ascending by time. The list has several processes if the server was
    /// restarted.
    pub servers: Vec<WatchedServer>,
    /// Sorted sentences that say why no server process was watched, or which readings are missing.
    pub missing: Vec<String>,
    /// Sampled functions of the server's processes.
    pub sampled: SampledFunctions,
    /// CPU time that plimsoll used to take the readings, ns.
    pub cpu_ns: u64,
    /// Wall-clock time covered by `cpu_ns`, ns.
    pub wall_ns: u64,
}

impl Series {
    /// Creates a series without readings.
    pub fn new(kind: SeriesKind, unit: &str) -> Series {
        Series { kind, unit: unit.to_owned(), samples: Vec::new(), gaps: Vec::new() }
    }

    /// Adds a reading. Readings usually arrive in order of time; an earlier reading is inserted at
    /// its position.
    pub fn push(&mut self, sample: SeriesSample) {
        self.samples.push(sample);
        if self.samples.len() > 1 && sample_order_key(&self.samples[self.samples.len() - 2]) > sample_order_key(&sample)
        {
            self.samples.sort_by_key(sample_order_key);
        }
    }

    /// Adds a period without readings.
    pub fn push_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
        join_adjacent_gaps(&mut self.gaps);
    }

    /// Returns the value at `at_ns`, by linear interpolation between the previous and the next
    /// reading. Before the first and after the last reading, the result is the nearest reading.
    /// Outside the readings, the result is `None` if the nearest reading is more than `reach_ns`
    /// away.
    pub fn value_at(&self, at_ns: i64, reach_ns: i64) -> Option<f64> {
        let next = self.samples.partition_point(|sample| sample.at_ns < at_ns);
        let near = |sample: &SeriesSample| (sample.at_ns - at_ns).abs() <= reach_ns;
        match (next.checked_sub(1).map(|before| self.samples[before]), self.samples.get(next)) {
            (Some(a), Some(b)) => {
                let share = (at_ns - a.at_ns) as f64 / (b.at_ns - a.at_ns).max(1) as f64;
                Some(a.value + (b.value - a.value) * share)
            }
            (Some(only), None) => near(&only).then_some(only.value),
            (None, Some(only)) => near(only).then_some(only.value),
            (None, None) => None,
        }
    }

    /// Returns the readings from `from_ns` to `to_ns`.
    pub fn samples_between(&self, from_ns: i64, to_ns: i64) -> &[SeriesSample] {
        let first = self.samples.partition_point(|sample| sample.at_ns < from_ns);
        let end = self.samples.partition_point(|sample| sample.at_ns <= to_ns);
        &self.samples[first.min(end)..end]
    }

    /// Returns the samples of the series for a chart. A gauge stays unchanged; a counter becomes a
    /// rate: one value for each step between two readings, at the end of the step. CPU time in ns
    /// becomes cores, and waiting time becomes the mean number of waiting threads. A step shorter
    /// than half the median step joins the next step, because the rate of a short step is
    /// imprecise. Short steps occur at the beginning and the end of a load.
    pub fn chart_samples(&self) -> Vec<SeriesSample> {
        match self.kind {
            SeriesKind::Gauge => self.samples.clone(),
            SeriesKind::Counter => {
                let per_second = if self.unit.starts_with("ns") { 1.0 } else { 1e9 };
                let step_ns_min = self.median_step_ns() / 2;
                let mut from = self.samples.first().copied();
                let mut drawn = Vec::new();
                for sample in &self.samples {
                    let Some(start) = from.filter(|start| sample.at_ns > start.at_ns) else { continue };
                    if sample.at_ns - start.at_ns >= step_ns_min {
                        let change = (sample.value - start.value).max(0.0);
                        let value = change * per_second / (sample.at_ns - start.at_ns) as f64;
                        drawn.push(SeriesSample { at_ns: sample.at_ns, value });
                        from = Some(*sample);
                    }
                }
                drawn
            }
        }
    }

    /// Returns the median time between two readings, ns.
    fn median_step_ns(&self) -> i64 {
        let mut steps: Vec<i64> = self.samples.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().unwrap_or(0)
    }

    /// Returns the unit of the values that [`Series::chart_samples`] returns.
    pub fn chart_unit(&self) -> String {
        match (self.kind, self.unit.as_str()) {
            (SeriesKind::Gauge, unit) => unit.to_owned(),
            (SeriesKind::Counter, "ns") => "cores".to_owned(),
            (SeriesKind::Counter, "ns waiting") => "waiting".to_owned(),
            (SeriesKind::Counter, "") => "1/s".to_owned(),
            (SeriesKind::Counter, unit) => format!("{unit}/s"),
        }
    }

    fn merge(&mut self, other: &Series) {
        // If two observers disagree about a series' kind or unit, the pair that sorts first wins,
        // so that the order of merging does not matter.
        if (other.kind, &other.unit) < (self.kind, &self.unit) {
            (self.kind, self.unit) = (other.kind, other.unit.clone());
        }
        let ordered = match (self.samples.last(), other.samples.first()) {
            (Some(last), Some(first)) => sample_order_key(last) < sample_order_key(first),
            _ => true,
        };
        self.samples.extend_from_slice(&other.samples);
        if !ordered {
            self.samples.sort_by_key(sample_order_key);
            self.samples.dedup_by_key(|sample| sample_order_key(sample));
        }
        if !other.gaps.is_empty() {
            self.gaps.extend_from_slice(&other.gaps);
            join_adjacent_gaps(&mut self.gaps);
        }
    }
}

/// Prefix for names of series from the load generator's machine. The prefix is used if the server
/// is watched on another machine.
pub const GENERATOR_SERIES_PREFIX: &str = "generator.";
/// Prefix for names of metrics that a server exposes. A metric that the server exposes describes
/// the server, whichever machine reads the metric.
const METRICS_SERIES_PREFIX: &str = "metrics.";
/// Name of the series that tells whether load generator and server share a machine: 1 or 0.
const TARGET_LOCAL_SERIES: &str = "target.local";

/// Returns a key that orders readings totally: by time, then by value.
fn sample_order_key(sample: &SeriesSample) -> (i64, u64) {
    (sample.at_ns, sample.value.to_bits())
}

/// Sorts gaps, and joins adjacent gaps with the same reason.
fn join_adjacent_gaps(gaps: &mut Vec<Gap>) {
    gaps.sort_unstable_by(|a, b| (&a.reason, a.from_ns, a.to_ns).cmp(&(&b.reason, b.from_ns, b.to_ns)));
    gaps.dedup_by(|next, gap| {
        let joined = next.reason == gap.reason && next.from_ns <= gap.to_ns;
        if joined {
            gap.to_ns = gap.to_ns.max(next.to_ns);
        }
        joined
    });
    gaps.sort_unstable();
}

impl Probes {
    /// Returns whether there are neither readings nor reasons for missing readings.
    pub fn is_empty(&self) -> bool {
        *self == Probes::default()
    }

    /// Renames the series to the names for the load generator's machine, for a server that is
    /// watched on another machine. Facts about the server are dropped, since the server's machine
    /// reports these facts.
    pub fn into_generator_series(self) -> Probes {
        let renamed = |(name, series): (String, Series)| match name.starts_with(METRICS_SERIES_PREFIX) {
            true => (name, series),
            false => (format!("{GENERATOR_SERIES_PREFIX}{name}"), series),
        };
        let series = self.series.into_iter().map(renamed).collect();
        Probes { series, cpu_ns: self.cpu_ns, wall_ns: self.wall_ns, ..Probes::default() }
    }

    /// Returns a series of the load generator's machine.
    pub fn generator_series(&self, name: &str) -> Option<&Series> {
        match self.host {
            None => self.series.get(name),
            Some(_) => self.series.get(&format!("{GENERATOR_SERIES_PREFIX}{name}")),
        }
    }

    /// Returns whether the load generator runs on the machine that these readings describe. Without
    /// `--watch` the result is always true, because plimsoll then reads only its own machine.
    pub fn shares_machine(&self) -> bool {
        let is_one = |series: &Series| series.samples.last().is_some_and(|sample| sample.value > 0.0);
        self.host.is_none() || self.generator_series(TARGET_LOCAL_SERIES).is_some_and(is_one)
    }

    /// Marks a gap from `from_ns` to `to_ns` in each series of the list `series` (name, kind,
    /// unit).
    pub fn push_gaps<'a>(
        &mut self,
        series: impl Iterator<Item = (&'a str, SeriesKind, &'a str)>,
        (from_ns, to_ns): (i64, i64),
        reason: &str,
    ) {
        for (name, kind, unit) in series {
            let series = self.series.entry(name.to_owned()).or_insert_with(|| Series::new(kind, unit));
            series.push_gap(Gap { from_ns, to_ns, reason: reason.to_owned() });
        }
    }

    /// Returns the CPU time for taking the readings as a share of one core, 0 or more; 0 without
    /// readings.
    pub fn probing_cpu_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { self.cpu_ns as f64 / self.wall_ns as f64 }
    }

    /// Returns the readings with every time shifted by `by_ns`, to convert between clocks.
    pub fn shift_times(mut self, by_ns: i64) -> Probes {
        for series in self.series.values_mut() {
            series.samples.iter_mut().for_each(|sample| sample.at_ns += by_ns);
            series.gaps.iter_mut().for_each(|gap| (gap.from_ns, gap.to_ns) = (gap.from_ns + by_ns, gap.to_ns + by_ns));
        }
        self.servers.iter_mut().for_each(|server| server.from_ns += by_ns);
        self.sampled.shift_times(by_ns);
        self
    }

    /// Adds readings of another time or another machine.
    pub fn merge(&mut self, other: &Probes) {
        // A study watches one machine, so readings normally have one machine name. If two machine
        // names occur, the name that sorts first is used, whatever the order of merging.
        self.host = [self.host.take(), other.host.clone()].into_iter().flatten().min();
        for (name, theirs) in &other.series {
            match self.series.get_mut(name) {
                Some(mine) => mine.merge(theirs),
                None => {
                    self.series.insert(name.clone(), theirs.clone());
                }
            }
        }
        self.servers.extend_from_slice(&other.servers);
        self.servers.sort_unstable();
        self.servers.dedup();
        self.missing.extend_from_slice(&other.missing);
        self.missing.sort_unstable();
        self.missing.dedup();
        self.sampled.merge(&other.sampled);
        self.cpu_ns += other.cpu_ns;
        self.wall_ns += other.wall_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series_with_samples(kind: SeriesKind, unit: &str, samples: &[(i64, f64)]) -> Series {
        let mut series = Series::new(kind, unit);
        samples.iter().for_each(|(at_ns, value)| series.push(SeriesSample { at_ns: *at_ns, value: *value }));
        series
    }

    #[test]
    fn values_between_readings_are_interpolated() {
        let cpu = series_with_samples(SeriesKind::Counter, "ns", &[(100, 10.0), (200, 30.0), (300, 30.0)]);
        for (at_ns, expect) in [
            (100, Some(10.0)),
            (150, Some(20.0)),
            (200, Some(30.0)),
            (250, Some(30.0)),
            (95, Some(10.0)),
            (50, None),
            (310, Some(30.0)),
            (400, None),
        ] {
            assert_eq!(cpu.value_at(at_ns, 20), expect, "{at_ns}");
        }
        assert_eq!(series_with_samples(SeriesKind::Gauge, "", &[]).value_at(0, 9), None);
        assert_eq!(cpu.samples_between(150, 300).len(), 2);
        assert_eq!(cpu.samples_between(300, 100).len(), 0);
    }

    #[test]
    fn counters_are_plotted_as_rates() {
        let cpu = series_with_samples(SeriesKind::Counter, "ns", &[(0, 0.0), (100, 50.0), (200, 50.0), (300, 20.0)]);
        let values: Vec<f64> = cpu.chart_samples().iter().map(|sample| sample.value).collect();
        assert_eq!((values, cpu.chart_unit().as_str()), (vec![0.5, 0.0, 0.0], "cores"));
        // At the beginning, a short step between two readings joins the next step. At the end, a
        // short step is dropped, because there is no next step.
        let edges = [(0, 0.0), (2, 2.0), (100, 50.0), (200, 50.0), (300, 80.0), (301, 81.0)];
        let edges = series_with_samples(SeriesKind::Counter, "ns", &edges).chart_samples();
        assert_eq!(
            edges.iter().map(|sample| (sample.at_ns, sample.value)).collect::<Vec<_>>(),
            [(100, 0.5), (200, 0.0), (300, 0.3)]
        );
        let faults = series_with_samples(SeriesKind::Counter, "", &[(0, 0.0), (500_000_000, 5.0)]);
        assert_eq!((faults.chart_samples()[0].value, faults.chart_unit().as_str()), (10.0, "1/s"));
        let rss = series_with_samples(SeriesKind::Gauge, "bytes", &[(0, 7.0)]);
        assert_eq!((rss.chart_samples(), rss.chart_unit().as_str()), (rss.samples.clone(), "bytes"));
    }

    #[test]
    fn readings_of_two_machines_are_separate() {
        let cpu = series_with_samples(SeriesKind::Counter, "ns", &[(0, 1.0)]);
        let local = |value| series_with_samples(SeriesKind::Gauge, "", &[(0, value)]);
        let read = |names: &[(&str, &Series)]| Probes {
            series: names.iter().map(|(name, series)| ((*name).to_owned(), (*series).clone())).collect(),
            missing: vec!["nobody listens".into()],
            cpu_ns: 5,
            ..Probes::default()
        };
        let here = read(&[("client.cpu", &cpu), ("target.local", &local(0.0)), ("metrics.up", &local(1.0))]);
        assert!(here.shares_machine() && here.generator_series("client.cpu").is_some());
        let mut both = Probes { host: Some("server1".into()), ..read(&[("client.cpu", &cpu), ("host.load_1m", &cpu)]) };
        assert!(!both.shares_machine() && both.generator_series("client.cpu").is_none());
        both.merge(&here.into_generator_series());
        let names: Vec<&str> = both.series.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["client.cpu", "generator.client.cpu", "generator.target.local", "host.load_1m", "metrics.up"]
        );
        assert_eq!((both.host.as_deref(), both.cpu_ns, both.missing.len()), (Some("server1"), 10, 1));
        assert!(!both.shares_machine());
        let one = read(&[("target.local", &local(1.0))]).into_generator_series();
        assert!(Probes { host: Some("box".into()), ..one }.shares_machine());
    }

    #[test]
    fn adjacent_gaps_of_one_reason_merge() {
        let mut series = Series::new(SeriesKind::Gauge, "");
        for (from_ns, to_ns, reason) in [(0, 10, "gone"), (20, 30, "gone"), (10, 20, "gone"), (10, 20, "denied")] {
            series.push_gap(Gap { from_ns, to_ns, reason: reason.into() });
        }
        let gaps: Vec<_> = series.gaps.iter().map(|gap| (gap.from_ns, gap.to_ns, gap.reason.as_str())).collect();
        assert_eq!(gaps, [(0, 30, "gone"), (10, 20, "denied")]);
    }
}
