//! The result of one load ([`Run`]), and an experiment of several loads ([`Experiment`]).

use crate::agent_account::AgentAccount;
use crate::experiment_settings::{ExperimentSettings, RedactedText};
use crate::failed_response::{FailedResponse, merge_first_failures};
use crate::histogram::Histogram;
use crate::injector::Injector;
use crate::interval::{Interval, RouteNumber};
use crate::ledger::Ledger;
use crate::measures::{LoadFigures, RouteFigures};
use crate::plan::LoadTag;
use crate::probes::Probes;
use crate::record::PlanRecord;
use crate::spec::ExperimentSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// How a load ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// The load ran to the end of its schedule.
    Finished,
    /// The load was stopped before the end of its schedule.
    Stopped(EarlyStopReason),
}

/// Why a load was stopped early.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyStopReason {
    /// The user ended the load.
    Interrupted,
    /// The load could not continue, for example because the server, a worker thread or an agent
    /// ended. The text is the reason.
    #[serde(rename = "died")]
    CannotContinue(String),
    /// The user's stop condition became true; the text states the condition and the measured
    /// figure.
    Condition(String),
    /// The result of the load was certain before the end of the schedule; the text is the reason.
    #[serde(rename = "shown")]
    ResultCertain(String),
    /// The requests ran out: a table whose rows are used at most once has no row left, or the
    /// script stopped.
    #[serde(rename = "used_up")]
    RequestsExhausted,
}

/// The result of one load: the plan, and the figures in numbered intervals. The results of several
/// machines can be merged in any order, because merging is associative and commutative.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The plan of the load.
    pub plan: PlanRecord,
    /// The machines that generated the load; their order has no meaning.
    pub injectors: Vec<Injector>,
    /// The figures: interval k covers [k, k+1) x `plan.load.interval_ns` of schedule time. The last
    /// intervals belong to the grace period, the wait for responses after the schedule.
    pub intervals: BTreeMap<u32, Interval>,
    /// How the load ended; `None` while the load runs, or if the recording was cut off.
    pub ending: Option<LoadEnd>,
    /// Start and end of the measured window in schedule time, ns. The window ends at the end of the
    /// schedule or at an early stop. With a fixed number of requests, the window ends at the last
    /// response.
    pub window_ns: (u64, u64),
    /// Readings of the server and its host during the load.
    pub probes: Probes,
    /// The first failed response of each kind, ascending by status.
    pub failed_answers: Vec<FailedResponse>,
    /// The account of each agent (load generator machine) of a fleet, sorted by name; empty without
    /// a fleet.
    pub agents: Vec<AgentAccount>,
}

/// The sums of a run's figures over all intervals; a gauge, such as open connections, has its
/// largest value in place of a sum.
#[derive(Debug, Clone, Default)]
pub struct RunTotals {
    /// Figures of the load.
    pub load: LoadFigures<Histogram>,
    /// Figures of all routes together.
    pub routes_sum: RouteFigures<Histogram>,
}

impl Run {
    /// Creates a run without intervals.
    pub fn new(plan: impl Into<PlanRecord>) -> Run {
        Run {
            plan: plan.into(),
            injectors: Vec::new(),
            intervals: BTreeMap::new(),
            ending: None,
            window_ns: (0, 0),
            probes: Probes::default(),
            failed_answers: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// Adds the figures of the tick (one reporting period of a load) that starts at `start_ns` of
    /// schedule time. Callers add the ticks (reporting periods) of a load in order of time.
    pub fn push(&mut self, start_ns: u64, interval: Interval) {
        let index = (start_ns / self.plan.load.interval_ns.max(1)) as u32;
        match self.intervals.entry(index) {
            Entry::Vacant(first) => _ = first.insert(interval),
            Entry::Occupied(mut mine) => mine.get_mut().merge_after(&interval),
        }
    }

    /// Adds the results of another worker or machine that ran the same plan at the same time.
    pub fn merge(&mut self, other: &Run) {
        for (index, theirs) in &other.intervals {
            self.intervals
                .entry(*index)
                .and_modify(|mine| mine.merge_parallel(theirs))
                .or_insert_with(|| theirs.clone());
        }
        self.ending = match (self.ending.take(), other.ending.clone()) {
            (None, _) | (_, None) => None,
            // Keep the stop reason that sorts first ([`EarlyStopReason`]), so that the order of
            // merging does not matter.
            (Some(LoadEnd::Stopped(a)), Some(LoadEnd::Stopped(b))) => Some(LoadEnd::Stopped(a.min(b))),
            (Some(LoadEnd::Finished), theirs) => theirs,
            (mine, Some(LoadEnd::Finished)) => mine,
        };
        let (mine, theirs) = (&mut self.window_ns, other.window_ns);
        *mine = (mine.0.min(theirs.0), mine.1.max(theirs.1));
        self.injectors.extend(other.injectors.iter().cloned());
        // Sort the injectors, so that the order of merging does not matter.
        self.injectors.sort_unstable();
        self.probes.merge(&other.probes);
        merge_first_failures(&mut self.failed_answers, &other.failed_answers);
        for theirs in &other.agents {
            match self.agents.binary_search_by(|mine| mine.name.cmp(&theirs.name)) {
                Ok(at) => self.agents[at].merge(theirs),
                Err(at) => self.agents.insert(at, theirs.clone()),
            }
        }
    }

    /// Joins several loads of one plan to one run: all warm-ups, then all measured windows, then
    /// all grace periods. `runs` are the loads, in the order of joining. Readings of the target
    /// are dropped, because the clock of a reading starts with its load. Returns `None` if `runs`
    /// is empty.
    pub fn join_loads(runs: &[&Run]) -> Option<Run> {
        let first = runs.first()?;
        let length_ns = first.plan.load.interval_ns.max(1);
        let ticks = |run: &Run| {
            let from = (run.window_ns.0 / length_ns) as u32;
            (from, (run.window_ns.1.div_ceil(length_ns) as u32).max(from))
        };
        let warm_ups: u32 = runs.iter().map(|run| ticks(run).0).sum();
        let windows: u32 = runs.iter().map(|run| ticks(run).1 - ticks(run).0).sum();
        let mut joined = Run { injectors: first.injectors.clone(), ..Run::new(first.plan.clone()) };
        let (mut warm_up, mut window) = (0, warm_ups);
        for run in runs {
            let (from, to) = ticks(run);
            for (index, interval) in &run.intervals {
                let place = match *index {
                    index if index < from => warm_up + index,
                    index if index < to => window + index - from,
                    index => warm_ups + windows + index - to,
                };
                joined.push(u64::from(place) * length_ns, interval.clone());
            }
            (warm_up, window) = (warm_up + from, window + to - from);
            merge_first_failures(&mut joined.failed_answers, &run.failed_answers);
        }
        let from_ns = u64::from(warm_ups) * length_ns;
        let duration_ns = runs.iter().map(|run| run.duration_ns()).sum::<u64>();
        joined.window_ns = (from_ns, from_ns + duration_ns);
        (joined.plan.load.warmup_ns, joined.plan.load.duration_ns) = (from_ns, Some(duration_ns));
        let cut = runs.iter().find(|run| run.ending != Some(LoadEnd::Finished));
        joined.ending = cut.unwrap_or(first).ending.clone();
        Some(joined)
    }

    /// Returns the number of worker threads on all machines.
    pub fn worker_count(&self) -> u32 {
        self.injectors.iter().map(|injector| injector.workers).sum()
    }

    /// Returns the length of the measured window in ns.
    pub fn duration_ns(&self) -> u64 {
        self.window_ns.1.saturating_sub(self.window_ns.0)
    }

    /// Returns the mean number of requests in flight over the measured window. A request is in
    /// flight from its intended start. Returns `None` without a measured window.
    pub fn in_flight_mean(&self) -> Option<f64> {
        (self.duration_ns() > 0).then(|| self.rate_in_window(|load| load.in_flight_ns) / 1e9)
    }

    /// Returns a rate in the measured window, 1/s: the sum of the count that `count` selects,
    /// divided by the length of the window. An interval that is partly inside the window counts in
    /// proportion. Returns 0 without a measured window.
    pub fn rate_in_window(&self, count: impl Fn(&LoadFigures) -> u64) -> f64 {
        let (from_ns, to_ns) = self.window_ns;
        let length_ns = self.plan.load.interval_ns.max(1);
        let inside = |index: u32| {
            let start_ns = u64::from(index) * length_ns;
            let inside_ns = to_ns.min(start_ns + length_ns).saturating_sub(from_ns.max(start_ns));
            inside_ns as f64 / length_ns as f64
        };
        let counted = self.intervals.iter().map(|(index, interval)| inside(*index) * count(&interval.load) as f64);
        if to_ns > from_ns { counted.sum::<f64>() * 1e9 / (to_ns - from_ns) as f64 } else { 0.0 }
    }

    /// Returns the number of requests that succeeded inside the measured window and were scheduled
    /// before the window. Throughput includes requests that were scheduled before the window and
    /// succeeded inside it, but the ledger does not.
    pub fn successes_scheduled_before_window(&self) -> u64 {
        let of = |interval: &Interval| {
            let whole = interval.all_routes();
            whole.succeeded_in_window.saturating_sub(whole.ledger.succeeded)
        };
        self.intervals.values().map(of).sum()
    }

    /// Sums the figures over all intervals.
    pub fn totals(&self) -> RunTotals {
        let mut sum = RunTotals::default();
        for interval in self.intervals.values() {
            sum.load.add_interval_figures(&interval.load);
            sum.routes_sum.add_interval_figures(interval.all_routes());
        }
        sum
    }

    /// Returns the ledger summed over all intervals. Summing ledgers alone costs less than
    /// [`Run::totals`], which also sums the histograms.
    pub fn ledger(&self) -> Ledger {
        let mut sum = Ledger::default();
        let figures = self.intervals.values().flat_map(|interval| interval.routes.iter());
        figures.for_each(|(_, figures)| sum.merge(&figures.ledger));
        sum
    }

    /// Returns the sums over all intervals for each route of the plan, in order. The iterator
    /// computes the sums of one route at a time, because hundreds of routes at once would need
    /// megabytes of memory.
    pub fn route_totals(&self) -> impl Iterator<Item = RouteFigures<Histogram>> {
        (0..self.plan.traffic.routes.len()).map(|number| self.totals_of_route(number as RouteNumber))
    }

    /// Sums the figures of one route over all intervals.
    pub fn totals_of_route(&self, route: RouteNumber) -> RouteFigures<Histogram> {
        let mut sum = RouteFigures::default();
        self.intervals
            .values()
            .filter_map(|interval| interval.routes.get(route))
            .for_each(|figures| sum.add_interval_figures(figures));
        sum
    }
}

/// The machine of an experiment, and the versions of its software.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// The model of the processor.
    pub cpu: String,
    /// Number of cores that plimsoll may use.
    pub cores: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Limit of open files for a process.
    pub files_max: u64,
    /// Whether the target is on plimsoll's machine.
    pub target_local: bool,
    /// The machines that generate the loads; a single load may use only a part of each machine.
    pub injectors: Vec<Injector>,
    /// CPU and memory limits of plimsoll's container.
    #[serde(default, skip_serializing_if = "MachineLimits::is_none")]
    pub limits: MachineLimits,
    /// The checked-out commit in the working directory of plimsoll; `None` outside a repository
    /// with commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<SourceRevision>,
}

/// Limits of plimsoll's control group; `None` means that no limit is set or readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MachineLimits {
    /// CPU quota in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_milli: Option<u64>,
    /// Memory limit in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl MachineLimits {
    /// Returns whether no limit of the control group is known.
    pub fn is_none(&self) -> bool {
        *self == MachineLimits::default()
    }
}

/// The Git commit that was checked out when an experiment started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SourceRevision {
    /// The full hash of the commit.
    pub commit: String,
    /// The branch of the commit. `None` with a detached HEAD if no variable of a CI service names
    /// the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether tracked files differed from the commit; `None` means that git did not respond in
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// Time of the commit, s since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_unix_s: Option<u64>,
}

/// Notes that plimsoll made before the first load of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartNotes {
    /// Warnings, to be shown above the figures.
    pub warnings: Vec<String>,
    /// Options that were adapted to the machine.
    #[serde(rename = "fitted")]
    pub adjustments: Vec<String>,
}

/// One load of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The purpose of the load, and its position in the experiment.
    pub tag: LoadTag,
    /// Start of the load (schedule time 0), ns since the start of the experiment.
    pub start_ns: u64,
    /// The plan of the load, and its result.
    pub run: Run,
}

/// An event of an experiment that is recorded apart from the loads: an abort, a skipped load, or a
/// profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentEvent {
    /// The experiment was aborted.
    #[serde(rename = "broken")]
    Aborted {
        /// Why the experiment was aborted, in words.
        reason: String,
    },
    /// A planned load was not executed.
    #[serde(rename = "unheld")]
    LoadSkipped {
        /// The purpose of the planned load.
        tag: LoadTag,
        /// Why the load was not executed.
        reason: LoadSkipReason,
    },
    /// A planned profile of the target, whether the profile was taken or not.
    Profile(ProfileRecord),
}

impl ExperimentEvent {
    /// Returns the tag of the load that was not executed and the reason; `None` for every event
    /// other than [`ExperimentEvent::LoadSkipped`].
    pub fn skipped_load(&self) -> Option<(LoadTag, &LoadSkipReason)> {
        match self {
            ExperimentEvent::LoadSkipped { tag, reason } => Some((*tag, reason)),
            ExperimentEvent::Aborted { .. } | ExperimentEvent::Profile(_) => None,
        }
    }
}

/// Why a planned load was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadSkipReason {
    /// The time budget was exhausted.
    NoTime,
    /// The machine cannot generate the load, with the reason in words.
    Machine(String),
}

/// One planned profile of the target under load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Identifies the profile: the load or the side (A or B) of the profile, and the number of the
    /// profile ([`crate::ExperimentSpec::profile_name`]).
    pub tag: LoadTag,
    /// The kind of profile, such as `cpu` or `heap`.
    pub kind: String,
    /// The index of the load during which the profile was taken; `None` means that the load was not
    /// executed.
    pub trial: Option<u32>,
    /// The name of the profile's file, which is next to the run file, or why there is no file.
    pub file: Result<String, String>,
}

/// An experiment: all loads of one command. A run file contains one experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The question of the experiment, with the plans of its loads.
    pub spec: ExperimentSpec,
    /// Start of the experiment, in ms since 1970 (UTC).
    pub started_unix_ms: u64,
    /// The settings of the experiment; `None` for a run file of an older version, whose
    /// experiment cannot be repeated.
    pub settings: Option<Box<ExperimentSettings<RedactedText>>>,
    /// The command line that repeats the experiment, without secrets.
    pub command: Vec<String>,
    /// The machine of the experiment, and the versions of its software.
    pub environment: Environment,
    /// Notes that plimsoll made before the first load.
    pub start_notes: StartNotes,
    /// The loads, in order.
    pub trials: Vec<Trial>,
    /// Events that are recorded apart from the loads, in order.
    pub events: Vec<ExperimentEvent>,
    /// Length of the experiment in ns; `None` if the recording of the experiment was cut off.
    pub elapsed_ns: Option<u64>,
}

impl Experiment {
    /// Returns the recorded reason why the experiment was aborted; `None` means that no abort was
    /// recorded.
    pub fn abort_reason(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            ExperimentEvent::Aborted { reason } => Some(reason.as_str()),
            ExperimentEvent::LoadSkipped { .. } | ExperimentEvent::Profile(_) => None,
        })
    }

    /// Returns the planned profiles, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileRecord> {
        self.events.iter().filter_map(|event| match event {
            ExperimentEvent::Profile(taken) => Some(taken),
            ExperimentEvent::Aborted { .. } | ExperimentEvent::LoadSkipped { .. } => None,
        })
    }
}
