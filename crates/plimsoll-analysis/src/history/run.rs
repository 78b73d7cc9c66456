//! The entry of one run in a list of runs ([`HistoryRun`]). The entry comes from the head of the
//! run file, and from the summary at the end of the file.
//!
//! Not here: the rule that decides which runs are comparable (`lanes`).

use plimsoll_model::codec::{RunFileEnd, RunFileHeader};
use plimsoll_model::{LineSummary, SourceRevision, StudySummary};
use serde::{Deserialize, Serialize};

/// Largest ratio of the upper end to the lower end of a load line's 90 % interval. A load line with
/// a wider interval is excluded from series of runs, because it would not show a change of a few
/// percent.
const LINE_INTERVAL_FACTOR_MAX: f64 = 1.5;

/// Whether the run of an entry is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The run is complete.
    Whole,
    /// The run is being recorded.
    UnderWay,
    /// The run was aborted, or its recording was cut off.
    BrokenOff,
}

/// One run in a list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// The name of the run file in the store.
    pub file: String,
    /// When the run began, in ms since 1970.
    pub started_unix_ms: u64,
    /// The kind of study: `find`, `explain`, `run`, ...
    pub study: String,
    /// The service under load, without secrets. The service's name is the value of the tag
    /// `service`, if the run has this tag. Without the tag `service`, the name is a URL, or an
    /// address and its requests.
    pub service: String,
    /// Scheme, host and port of the target.
    pub origin: String,
    /// A digest of the traffic: requests, order, connections, protocol and arrivals. The digest
    /// does not include the address of the server.
    pub traffic: String,
    /// The SLO as text; `None` for a study without a load line.
    pub slo: Option<String>,
    /// The machine that generated the load: processor, cores, limits of its container, and whether
    /// the target runs on the same machine.
    pub machine: String,
    /// The commit that was checked out in the working directory; `None` if it is not known.
    pub revision: Option<SourceRevision>,
    /// The tags of the run.
    pub tags: Vec<(String, String)>,
    /// Whether the run is pinned, so that `clean` never removes its file.
    #[serde(default)]
    pub is_pinned: bool,
    /// Whether the run is complete.
    pub state: RunState,
    /// Length of the study, ns; `None` means that the length is not known.
    pub elapsed_ns: Option<u64>,
    /// The summary of the study's finding; `None` if the run file has no summary.
    pub summary: Option<StudySummary>,
}

impl HistoryRun {
    /// Creates the entry of the run in `file`. `end` is the end of the run file, which only a
    /// complete run has.
    pub fn new(file: &str, head: &RunFileHeader, end: Option<RunFileEnd>, state: RunState) -> HistoryRun {
        let plan = head.spec.base_plan();
        let tags = head.settings.as_ref().map(|settings| settings.output.tags.clone()).unwrap_or_default();
        let named = tags.iter().find(|(key, _)| key == "service").map(|(_, value)| value.clone());
        let place = plan.map(|plan| plan.traffic.target_label()).unwrap_or_default();
        let elapsed_ns = end.as_ref().map(|end| end.elapsed_ns);
        HistoryRun {
            file: file.to_owned(),
            started_unix_ms: head.started_unix_ms,
            study: head.spec.study_word().to_owned(),
            service: named.unwrap_or(place),
            origin: plan.map(|plan| plan.traffic.origin.to_string()).unwrap_or_default(),
            traffic: head.spec.traffic_digest(),
            slo: head.spec.search_spec().map(|search| search.slo.clone()),
            machine: describe_machine(head),
            revision: head.environment.revision.clone(),
            tags,
            is_pinned: false,
            state,
            elapsed_ns,
            summary: end.and_then(|end| end.summary).map(|summary| *summary),
        }
    }

    /// Applies a pin and tags that the user added later. A tag replaces an earlier tag with the
    /// same key.
    pub fn with_pin_and_tags(mut self, is_pinned: bool, tags: Vec<(String, String)>) -> HistoryRun {
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

    /// Returns the load line of the run; `None` for a void run (without information about the
    /// server) or a run without a load line.
    pub fn valid_load_line(&self) -> Option<LineSummary> {
        let summary = self.summary.as_ref().filter(|summary| summary.void_reason.is_none())?;
        summary.load_line.filter(|line| line.rps > 0.0)
    }

    /// Returns the run's value in a series, 1/s: the load line, or the throughput of a single load.
    /// If the search stated only an interval of the load line, the value is the geometric mean of
    /// the interval's ends. The lower end of the interval is not used alone, because it depends on
    /// how much the search could prove. Returns `None` for a void run, and for a load line whose
    /// interval is too wide ([`LINE_INTERVAL_FACTOR_MAX`]).
    pub fn series_value_rps(&self) -> Option<f64> {
        let goodput = || {
            let summary = self.summary.as_ref().filter(|summary| summary.void_reason.is_none())?;
            summary.goodput_rps.map(|goodput| goodput.value).filter(|rps| *rps > 0.0)
        };
        match self.valid_load_line() {
            Some(line) if is_line_interval_too_wide(line) => None,
            Some(line @ LineSummary { lower, upper: Some(upper), .. }) if !line.has_estimate() => {
                Some((lower * upper).sqrt())
            }
            Some(line) => Some(line.rps),
            None => goodput(),
        }
    }

    /// Returns the reason why the run is void; `None` for a valid run.
    pub fn void_reason(&self) -> Option<&str> {
        match (self.state, &self.summary) {
            (RunState::UnderWay, _) => Some("the run is in progress"),
            (RunState::BrokenOff, _) => Some("the run ended early"),
            (RunState::Whole, Some(summary)) => summary.void_reason.as_deref(),
            (RunState::Whole, None) => Some("the run file contains no summary"),
        }
    }

    /// Returns whether the run is complete but its file has no summary. Older versions of plimsoll
    /// wrote run files without a summary.
    pub fn is_without_summary(&self) -> bool {
        self.state == RunState::Whole && self.summary.is_none()
    }

    /// Returns the abbreviated commit, with `+` if files of the source directory differed from the
    /// commit.
    pub fn commit_short(&self) -> Option<String> {
        let revision = self.revision.as_ref()?;
        let name: String = revision.commit.chars().take(9).collect();
        Some(if revision.dirty == Some(true) { format!("{name}+") } else { name })
    }

    /// Returns the reason why the run has no value in a series.
    pub fn reason_without_value(&self) -> &str {
        let nothing = match (self.valid_load_line(), self.slo.is_some()) {
            (Some(_), _) => "the load line (the highest sustained rate) is known only within too wide an interval",
            (None, true) => "no load met the SLO",
            (None, false) => "no request succeeded",
        };
        self.void_reason().unwrap_or(nothing)
    }

    /// Returns the name of the measure that is compared over several runs of this kind of study,
    /// such as `load line`.
    pub fn measure_name(&self) -> &'static str {
        match self.study.as_str() {
            "find" | "explain" => "load line",
            "run" => "goodput",
            "prove" | "ladder" => "verdict",
            _ => "levels",
        }
    }
}

/// Returns whether the interval of a load line is too wide for a value in a series.
fn is_line_interval_too_wide(line: LineSummary) -> bool {
    line.upper.is_some_and(|upper| upper > LINE_INTERVAL_FACTOR_MAX * line.lower)
}

/// Describes the machine of a run. Runs with different descriptions belong to different lanes
/// (groups of comparable runs).
fn describe_machine(head: &RunFileHeader) -> String {
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
