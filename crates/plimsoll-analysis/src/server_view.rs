//! The probes' observations of the server over all loads of an experiment ([`ServerView`]). A view
//! covers the use of CPU and memory, the processes, and the readings of each series.
//!
//! Not here: the server's use of CPU in one load ([`crate::server`]), the probes, and the report.

use crate::doubts::{Doubt, DoubtKind};
use crate::server::ServerUse;
use plimsoll_model::{Probes, Run, WatchedServer};
use std::collections::{BTreeMap, BTreeSet};

/// The probes' observations of the server over all loads of an experiment.
#[derive(Debug, Clone)]
pub struct ServerView<'a> {
    /// The server's use of CPU and memory. The error is the reason why the server's use of CPU and
    /// memory is not known.
    pub usage: Result<ServerUse, String>,
    /// The loads from which `usage` comes, in words; `None` if the experiment had one load.
    pub source: Option<String>,
    /// All loads during which the server was watched.
    pub runs: Vec<&'a Run>,
}

/// The readings of one series over all loads.
#[derive(Debug, Clone, Default)]
pub struct SeriesReadings<'a> {
    /// The unit of the values.
    pub unit: String,
    /// The number of readings.
    pub samples: usize,
    /// The number of gaps: periods in which readings are missing.
    pub gaps: usize,
    /// The reasons for the gaps.
    pub reasons: BTreeSet<&'a str>,
    /// The values of the readings. For a counter, the values are its increase per second.
    pub values: Vec<f64>,
}

impl<'a> ServerView<'a> {
    /// Creates the view of one load.
    pub fn from_run(run: &'a Run) -> ServerView<'a> {
        ServerView { usage: ServerUse::from_run(run), source: None, runs: vec![run] }
    }

    /// Returns whether the probes recorded any reading.
    pub fn has_probe_readings(&self) -> bool {
        self.runs.iter().any(|run| !run.probes.is_empty())
    }

    /// Returns the machine on which the server was watched, if another machine makes the load.
    pub fn host(&self) -> Option<&'a str> {
        self.runs.iter().find_map(|run| run.probes.host.as_deref())
    }

    /// Returns the notes about the probes, summed over all loads: the cost of the readings, and
    /// what the probes could not observe. The returned notes contain no readings.
    pub fn probe_notes(&self) -> Probes {
        let mut sum = Probes::default();
        for run in &self.runs {
            let Probes { missing: unseen, cpu_ns, wall_ns, .. } = run.probes.clone();
            sum.merge(&Probes { missing: unseen, cpu_ns, wall_ns, ..Probes::default() });
        }
        sum
    }

    /// Returns the watched processes of the server, each once, in the order in which they were
    /// first observed.
    pub fn servers(&self) -> Vec<&'a WatchedServer> {
        let mut met: Vec<&'a WatchedServer> = Vec::new();
        for server in self.runs.iter().flat_map(|run| &run.probes.servers) {
            if met.iter().all(|known| known.pid != server.pid) {
                met.push(server);
            }
        }
        met
    }

    /// Returns the readings of each series over all loads. The returned readings have values, but
    /// no times.
    pub fn readings(&self) -> BTreeMap<&'a str, SeriesReadings<'a>> {
        let mut all: BTreeMap<&str, SeriesReadings> = BTreeMap::new();
        for (name, series) in self.runs.iter().flat_map(|run| &run.probes.series) {
            let readings = all.entry(name).or_default();
            readings.unit = series.chart_unit();
            readings.samples += series.samples.len();
            readings.gaps += series.gaps.len();
            readings.reasons.extend(series.gaps.iter().map(|gap| gap.reason.as_str()));
            readings.values.extend(series.chart_samples().iter().map(|sample| sample.value));
        }
        all
    }

    /// Returns a warning if the server restarted during a load; `None` without a restart.
    pub fn restart_doubt(&self) -> Option<Doubt> {
        let servers = self.servers();
        let times = servers.len().checked_sub(1).filter(|times| *times > 0)?;
        let shown: Vec<String> = servers.iter().map(|server| server.pid.to_string()).collect();
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let text = format!(
            "the server restarted {times} under load (process ids: {process_ids})",
            process_ids = shown.join(", then ")
        );
        Some(Doubt { kind: DoubtKind::Restarted, text: text.into() })
    }
}
