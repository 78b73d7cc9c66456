//! The observations of the server over the loads of an experiment ([`ServerView`]): its CPU and
//! memory, its processes, and the readings themselves, each series over all loads.
//!
//! Not here: its CPU in one load ([`crate::server`]), the probes, and the report.

use crate::doubts::{Doubt, DoubtKind};
use crate::server::ServerUse;
use plimsoll_model::{Probes, Run, WatchedServer};
use std::collections::{BTreeMap, BTreeSet};

/// The observations of the server.
#[derive(Debug, Clone)]
pub struct ServerView<'a> {
    /// Its CPU and memory, or why they are not known.
    pub usage: Result<ServerUse, String>,
    /// Which loads the figures come from, where an experiment had several.
    pub from: Option<String>,
    /// All loads during which it was watched.
    pub runs: Vec<&'a Run>,
}

/// One series over all loads.
#[derive(Debug, Clone, Default)]
pub struct SeriesReadings<'a> {
    /// The unit of the values.
    pub unit: String,
    /// How many readings there are.
    pub samples: usize,
    /// The number of times without a reading.
    pub gaps: usize,
    /// Why there was none.
    pub reasons: BTreeSet<&'a str>,
    /// The values; of counters, the change a second.
    pub values: Vec<f64>,
}

impl<'a> ServerView<'a> {
    /// The view of one load.
    pub fn from_run(run: &'a Run) -> ServerView<'a> {
        ServerView { usage: ServerUse::from_run(run), from: None, runs: vec![run] }
    }

    /// Whether anything was read at all.
    pub fn watched(&self) -> bool {
        self.runs.iter().any(|run| !run.probes.is_empty())
    }

    /// The machine that it was watched on, where that is another than the one that makes the load.
    pub fn host(&self) -> Option<&'a str> {
        self.runs.iter().find_map(|run| run.probes.host.as_deref())
    }

    /// The notes beside the series, of all loads: the cost of the readings, and the parts that
    /// could not be observed.
    pub fn around(&self) -> Probes {
        let mut sum = Probes::default();
        for run in &self.runs {
            let Probes { missing: unseen, cpu_ns, wall_ns, .. } = run.probes.clone();
            sum.merge(&Probes { missing: unseen, cpu_ns, wall_ns, ..Probes::default() });
        }
        sum
    }

    /// The processes watched, each once, in the order in which they were met.
    pub fn servers(&self) -> Vec<&'a WatchedServer> {
        let mut met: Vec<&'a WatchedServer> = Vec::new();
        for server in self.runs.iter().flat_map(|run| &run.probes.servers) {
            if met.iter().all(|known| known.pid != server.pid) {
                met.push(server);
            }
        }
        met
    }

    /// The readings of each series over all loads. Times of one load mean nothing in another, so
    /// that only what does not hang on them is joined.
    pub fn readings(&self) -> BTreeMap<&'a str, SeriesReadings<'a>> {
        let mut all: BTreeMap<&str, SeriesReadings> = BTreeMap::new();
        for (name, series) in self.runs.iter().flat_map(|run| &run.probes.series) {
            let readings = all.entry(name).or_default();
            readings.unit = series.drawn_unit();
            readings.samples += series.samples.len();
            readings.gaps += series.gaps.len();
            readings.reasons.extend(series.gaps.iter().map(|gap| gap.reason.as_str()));
            readings.values.extend(series.drawn().iter().map(|sample| sample.value));
        }
        all
    }

    /// The doubt of a server that was started anew under load.
    pub fn doubt(&self) -> Option<Doubt> {
        let servers = self.servers();
        let times = servers.len().checked_sub(1).filter(|times| *times > 0)?;
        let shown: Vec<String> = servers.iter().map(|server| server.pid.to_string()).collect();
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let text = format!("the server was restarted {times} under load (process {})", shown.join(", then "));
        Some(Doubt { kind: DoubtKind::Restarted, text: text.into() })
    }
}
