//! The list entry of one run ([`HistoryRun`]): the head of its run file, and the summary at its
//! end.
//!
//! Not here: which runs are comparable (`lanes`).

use plimsoll_model::codec::{FileEnd, Header};
use plimsoll_model::{LineSummary, SourceRevision, StudySummary};
use serde::{Deserialize, Serialize};

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It came to its end.
    Whole,
    /// It is being recorded.
    UnderWay,
    /// It broke off, or its recording was cut off.
    BrokenOff,
}

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// The name of its file in the store.
    pub file: String,
    /// When it began, in ms since 1970.
    pub started_unix_ms: u64,
    /// `find`, `explain`, `run`, ...
    pub study: String,
    /// The service under load, without secrets: a URL, or an address and its requests; the value of
    /// the tag `service`, where there is one.
    pub service: String,
    /// The address of the target.
    pub origin: String,
    /// A digest of the traffic: requests, order, connections, protocol, arrivals. It does not
    /// contain the address.
    pub traffic: String,
    /// The SLO, of a study that searches a line.
    pub slo: Option<String>,
    /// The machine of the load: processor, cores, limits of the container, and whether the target
    /// is on it.
    pub machine: String,
    /// The commit that was checked out.
    pub revision: Option<SourceRevision>,
    /// Its tags.
    pub tags: Vec<(String, String)>,
    /// Whether the run is pinned: `clean` never removes it.
    #[serde(default)]
    pub is_pinned: bool,
    /// How far it came.
    pub state: RunState,
    /// How long it took, ns.
    pub elapsed_ns: Option<u64>,
    /// The finding in short; `None` where the file has no summary.
    pub summary: Option<StudySummary>,
}

impl HistoryRun {
    /// The list entry of the run in `file`. `end`: of a complete run.
    pub fn new(file: &str, head: &Header, end: Option<FileEnd>, state: RunState) -> HistoryRun {
        let plan = head.spec.base();
        let tags = head.terms.as_ref().map(|terms| terms.output.tags.clone()).unwrap_or_default();
        let named = tags.iter().find(|(key, _)| key == "service").map(|(_, value)| value.clone());
        let place = plan.map(|plan| plan.traffic.place()).unwrap_or_default();
        let elapsed_ns = end.as_ref().map(|end| end.elapsed_ns);
        HistoryRun {
            file: file.to_owned(),
            started_unix_ms: head.started_unix_ms,
            study: head.spec.word().to_owned(),
            service: named.unwrap_or(place),
            origin: plan.map(|plan| plan.traffic.origin.to_string()).unwrap_or_default(),
            traffic: head.spec.traffic_digest(),
            slo: head.spec.search().map(|search| search.slo.clone()),
            machine: machine(head),
            revision: head.environment.revision.clone(),
            tags,
            is_pinned: false,
            state,
            elapsed_ns,
            summary: end.and_then(|end| end.summary).map(|summary| *summary),
        }
    }

    /// The same with marks that were given to it later: a tag takes the place of one with its key.
    pub fn marked(mut self, is_pinned: bool, tags: Vec<(String, String)>) -> HistoryRun {
        self.is_pinned = is_pinned;
        for (key, value) in tags {
            if key == "service" {
                self.service.clone_from(&value);
            }
            self.tags.retain(|(known, _)| *known != key);
            self.tags.push((key, value));
        }
        self
    }

    /// The load line of a valid run, where it has one.
    pub fn line(&self) -> Option<LineSummary> {
        let summary = self.summary.as_ref().filter(|summary| summary.void.is_none())?;
        summary.line.filter(|line| line.rps > 0.0)
    }

    /// The value for a series: the load line, or the successes a second of one load.
    pub fn followed_rps(&self) -> Option<f64> {
        let goodput = || {
            let summary = self.summary.as_ref().filter(|summary| summary.void.is_none())?;
            summary.goodput_rps.map(|goodput| goodput.value).filter(|rps| *rps > 0.0)
        };
        self.line().map(|line| line.rps).or_else(goodput)
    }

    /// Why the run is void, where it is.
    pub fn void(&self) -> Option<&str> {
        match (self.state, &self.summary) {
            (RunState::UnderWay, _) => Some("the run is in progress"),
            (RunState::BrokenOff, _) => Some("the run broke off before its end"),
            (RunState::Whole, Some(summary)) => summary.void.as_deref(),
            (RunState::Whole, None) => Some("its file contains no summary"),
        }
    }

    /// Whether the run is complete but its file has no summary, as in older files.
    pub fn is_without_summary(&self) -> bool {
        self.state == RunState::Whole && self.summary.is_none()
    }

    /// The beginning of the commit's name; with `+` where files differed from it.
    pub fn commit_short(&self) -> Option<String> {
        let revision = self.revision.as_ref()?;
        let name: String = revision.commit.chars().take(9).collect();
        Some(if revision.dirty == Some(true) { format!("{name}+") } else { name })
    }

    /// Why a series does not follow it, where it states no figure.
    pub fn why_without_figure(&self) -> &str {
        let nothing = if self.slo.is_some() { "no load met the SLO" } else { "no request succeeded" };
        self.void().unwrap_or(nothing)
    }

    /// The measure of a series, in words.
    pub fn measure(&self) -> &'static str {
        match self.study.as_str() {
            "find" | "explain" => "load line",
            "run" => "goodput",
            "prove" | "ladder" => "verdict",
            _ => "levels",
        }
    }
}

/// The description of a machine that separates lanes.
fn machine(head: &Header) -> String {
    let environment = &head.environment;
    let model = if environment.cpu.is_empty() { "unknown processor" } else { &environment.cpu };
    let mut parts = vec![format!("{} cores", environment.cores), model.to_owned()];
    if let Some(milli) = environment.limits.cores_milli {
        parts.push(format!("quota of {} cores", milli as f64 / 1e3));
    }
    if let Some(bytes) = environment.limits.memory_bytes {
        parts.push(format!("at most {} MiB", bytes >> 20));
    }
    parts.push(if environment.target_local { "target on it" } else { "target elsewhere" }.to_owned());
    parts.join(", ")
}
