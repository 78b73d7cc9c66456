//! Everything that one load did ([`Run`]), and an experiment made of such loads ([`Experiment`]).

use crate::agent_account::AgentAccount;
use crate::failed_answer::{FailedAnswer, merge_first};
use crate::histogram::Histogram;
use crate::injector::Injector;
use crate::interval::{Interval, RouteNumber};
use crate::ledger::Ledger;
use crate::measures::{LoadFigures, RouteFigures};
use crate::plan::Tag;
use crate::probes::Probes;
use crate::record::PlanRecord;
use crate::spec::ExperimentSpec;
use crate::terms::{RedactedText, Terms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// How a load came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// The schedule was carried out.
    Finished,
    /// Ended from outside before the schedule's end, and why.
    Stopped(Stop),
}

/// Why a load was ended before its schedule's end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The user ended it.
    Interrupted,
    /// What was under load ended by itself: in words.
    Died(String),
    /// A condition became true: which, and with which figure.
    Condition(String),
    /// It had shown what it was to show: what, in words.
    Shown(String),
    /// All rows were used that are used once each.
    UsedUp,
}

/// Everything that one load did: its plan and its intervals, by number. Merging is associative and
/// commutative.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What was to happen.
    pub plan: PlanRecord,
    /// The machines that did it, each with its part, in no order that means anything.
    pub injectors: Vec<Injector>,
    /// What happened: interval k covers [k, k+1) x `plan.load.interval_ns` of schedule time; the
    /// grace period follows on.
    pub intervals: BTreeMap<u32, Interval>,
    /// How it ended; `None` while under way or cut off.
    pub ending: Option<LoadEnd>,
    /// Start and end of the measured window in schedule time, ns. The end is the schedule's, or the
    /// moment the run was stopped; with a number of requests only, the last answer.
    pub window_ns: (u64, u64),
    /// What was seen of the target meanwhile.
    pub probes: Probes,
    /// The first failed answer of each kind, ascending by status.
    pub failed_answers: Vec<FailedAnswer>,
    /// What each agent of a fleet did, by name; none of a load that this machine made.
    pub agents: Vec<AgentAccount>,
}

/// The sums over all intervals of a run; of gauges, the most.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// What is counted for the load.
    pub load: LoadFigures<Histogram>,
    /// What is counted for each route, over all routes.
    pub whole: RouteFigures<Histogram>,
}

impl Run {
    /// A run in which nothing has happened yet.
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

    /// Adds what happened in the tick that starts at `start_ns` of schedule time, as the next in
    /// time.
    pub fn push(&mut self, start_ns: u64, interval: Interval) {
        let index = (start_ns / self.plan.load.interval_ns.max(1)) as u32;
        match self.intervals.entry(index) {
            Entry::Vacant(first) => _ = first.insert(interval),
            Entry::Occupied(mut mine) => mine.get_mut().merge_after(&interval),
        }
    }

    /// Adds what other workers or machines did under the same plan at the same time.
    pub fn merge(&mut self, other: &Run) {
        for (index, theirs) in &other.intervals {
            self.intervals.entry(*index).and_modify(|mine| mine.merge_beside(theirs)).or_insert_with(|| theirs.clone());
        }
        self.ending = match (self.ending.take(), other.ending.clone()) {
            (None, _) | (_, None) => None,
            // The graver reason, so that the order of merging leaves no trace.
            (Some(LoadEnd::Stopped(a)), Some(LoadEnd::Stopped(b))) => Some(LoadEnd::Stopped(a.min(b))),
            (Some(LoadEnd::Finished), theirs) => theirs,
            (mine, Some(LoadEnd::Finished)) => mine,
        };
        let (mine, theirs) = (&mut self.window_ns, other.window_ns);
        *mine = (mine.0.min(theirs.0), mine.1.max(theirs.1));
        self.injectors.extend(other.injectors.iter().cloned());
        // So that the order of merging leaves no trace.
        self.injectors.sort_unstable();
        self.probes.merge(&other.probes);
        merge_first(&mut self.failed_answers, &other.failed_answers);
        for theirs in &other.agents {
            match self.agents.binary_search_by(|mine| mine.name.cmp(&theirs.name)) {
                Ok(at) => self.agents[at].merge(theirs),
                Err(at) => self.agents.insert(at, theirs.clone()),
            }
        }
    }

    /// Several visits of one load as one run: all their warm-ups, then all windows, then what came
    /// after these. What was seen of the target is left out, since its times are each visit's own.
    /// `None` of no visit.
    pub fn joined(visits: &[&Run]) -> Option<Run> {
        let first = visits.first()?;
        let length_ns = first.plan.load.interval_ns.max(1);
        let ticks = |run: &Run| {
            let from = (run.window_ns.0 / length_ns) as u32;
            (from, (run.window_ns.1.div_ceil(length_ns) as u32).max(from))
        };
        let warm_ups: u32 = visits.iter().map(|run| ticks(run).0).sum();
        let windows: u32 = visits.iter().map(|run| ticks(run).1 - ticks(run).0).sum();
        let mut joined = Run { injectors: first.injectors.clone(), ..Run::new(first.plan.clone()) };
        let (mut warm_up, mut window) = (0, warm_ups);
        for run in visits {
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
            merge_first(&mut joined.failed_answers, &run.failed_answers);
        }
        let from_ns = u64::from(warm_ups) * length_ns;
        let duration_ns = visits.iter().map(|run| run.duration_ns()).sum::<u64>();
        joined.window_ns = (from_ns, from_ns + duration_ns);
        (joined.plan.load.warmup_ns, joined.plan.load.duration_ns) = (from_ns, Some(duration_ns));
        let cut = visits.iter().find(|run| run.ending != Some(LoadEnd::Finished));
        joined.ending = cut.unwrap_or(first).ending.clone();
        Some(joined)
    }

    /// Worker threads of all machines.
    pub fn workers(&self) -> u32 {
        self.injectors.iter().map(|injector| injector.workers).sum()
    }

    /// Length of the measured window in ns.
    pub fn duration_ns(&self) -> u64 {
        self.window_ns.1.saturating_sub(self.window_ns.0)
    }

    /// Requests in flight on average over the measured window, from their intended starts on.
    /// `None` without a window.
    pub fn in_flight_mean(&self) -> Option<f64> {
        (self.duration_ns() > 0).then(|| self.rate_in_window(|load| load.in_flight_ns) / 1e9)
    }

    /// What is counted for the load, a second of the measured window; of an interval that lies in
    /// it in part, that part counts. 0 without a window.
    pub fn rate_in_window(&self, of: impl Fn(&LoadFigures) -> u64) -> f64 {
        let (from_ns, to_ns) = self.window_ns;
        let length_ns = self.plan.load.interval_ns.max(1);
        let inside = |index: u32| {
            let start_ns = u64::from(index) * length_ns;
            let inside_ns = to_ns.min(start_ns + length_ns).saturating_sub(from_ns.max(start_ns));
            inside_ns as f64 / length_ns as f64
        };
        let counted = self.intervals.iter().map(|(index, interval)| inside(*index) * of(&interval.load) as f64);
        if to_ns > from_ns { counted.sum::<f64>() * 1e9 / (to_ns - from_ns) as f64 } else { 0.0 }
    }

    /// Successes of the measured window whose requests were scheduled before it: throughput that is
    /// not in the ledger.
    pub fn carried_in(&self) -> u64 {
        let of = |interval: &Interval| {
            let whole = interval.whole();
            whole.succeeded_in_window.saturating_sub(whole.ledger.succeeded)
        };
        self.intervals.values().map(of).sum()
    }

    /// The sums over all intervals.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for interval in self.intervals.values() {
            sum.load.sum_up(&interval.load);
            sum.whole.sum_up(interval.whole());
        }
        sum
    }

    /// Where the requests of all intervals ended: [`Run::totals`] without the times, which are most
    /// of what summing costs.
    pub fn ledger(&self) -> Ledger {
        let mut sum = Ledger::default();
        let figures = self.intervals.values().flat_map(|interval| interval.routes.iter());
        figures.for_each(|(_, figures)| sum.merge(&figures.ledger));
        sum
    }

    /// The sums over all intervals of each route of the plan, in its order. They are made as they
    /// are asked for, one after the other: those of hundreds at once would be megabytes in which
    /// each time is added somewhere else.
    pub fn route_totals(&self) -> impl Iterator<Item = RouteFigures<Histogram>> {
        (0..self.plan.traffic.routes.len()).map(|number| self.totals_of(number as RouteNumber))
    }

    /// The sums over all intervals of one route.
    pub fn totals_of(&self, route: RouteNumber) -> RouteFigures<Histogram> {
        let mut sum = RouteFigures::default();
        self.intervals
            .values()
            .filter_map(|interval| interval.routes.get(route))
            .for_each(|figures| sum.sum_up(figures));
        sum
    }
}

/// Where and by what an experiment was made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// Processor.
    pub cpu: String,
    /// Cores that plimsoll may use.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Limit of open files.
    pub files_max: u64,
    /// Whether the target is on the same machine.
    pub target_local: bool,
    /// The machines that make its loads; for a load one may use less of itself.
    pub injectors: Vec<Injector>,
    /// What a container leaves of the machine.
    #[serde(default, skip_serializing_if = "MachineLimits::is_none")]
    pub limits: MachineLimits,
    /// The commit that was checked out where plimsoll was started; `None` outside a repository with
    /// commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<SourceRevision>,
}

/// What the control group of plimsoll leaves of the machine; `None`: no limit is set, or none is
/// readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MachineLimits {
    /// CPU quota in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_milli: Option<u64>,
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl MachineLimits {
    /// Whether no limit is known.
    pub fn is_none(&self) -> bool {
        *self == MachineLimits::default()
    }
}

/// The commit that an experiment was made at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SourceRevision {
    /// Its full name.
    pub commit: String,
    /// The branch; `None` with a detached HEAD that no variable of a CI service names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether tracked files differed from the commit; `None`: git did not answer in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// When it was committed, in s since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_unix_s: Option<u64>,
}

/// What was said before the first load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartNotes {
    /// Warnings to stand above the figures.
    pub warnings: Vec<String>,
    /// What of the load was fitted to the machine.
    pub fitted: Vec<String>,
}

/// One load of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was for, and its place among the others.
    pub tag: Tag,
    /// When it began (schedule time 0), in ns since the experiment's start.
    pub start_ns: u64,
    /// Plan and outcome.
    pub run: Run,
}

/// Something about an experiment that none of its loads tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// It broke off before its end, and why.
    Broken {
        /// In words.
        reason: String,
    },
    /// A load that was asked for could not be made.
    Unheld {
        /// What it was for.
        tag: Tag,
        /// Why not.
        reason: LoadSkipReason,
    },
    /// A profile was to be taken.
    Profile(ProfileRecord),
}

impl Remark {
    /// Which load could not be made, and why, where that is what it says.
    pub fn unheld(&self) -> Option<(Tag, &LoadSkipReason)> {
        match self {
            Remark::Unheld { tag, reason } => Some((*tag, reason)),
            Remark::Broken { .. } | Remark::Profile(_) => None,
        }
    }
}

/// Why a load could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadSkipReason {
    /// The time for all was used up before.
    NoTime,
    /// The machine cannot hold it: why, in words.
    Machine(String),
}

/// One profile of the target that was to be taken under a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// Of which load or side, and which of several ([`crate::ExperimentSpec::profile_name`]).
    pub tag: Tag,
    /// `cpu`, `heap`, ...
    pub kind: String,
    /// The load under which it was taken, by its place among all loads of the experiment; `None`:
    /// there was none.
    pub trial: Option<u32>,
    /// The name of its file, beside the run file; or why there is none.
    pub file: Result<String, String>,
}

/// An experiment: all loads that one command made. This is what a run file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What was to be found out.
    pub asked: ExperimentSpec,
    /// Start, in ms since 1970 (UTC).
    pub started_unix_ms: u64,
    /// On what terms; `None` in a file of before, which cannot be repeated.
    pub terms: Option<Box<Terms<RedactedText>>>,
    /// The command line that asks so, without secrets, for people.
    pub command: Vec<String>,
    /// Machine and versions.
    pub environment: Environment,
    /// What was said before the first load.
    pub noted: StartNotes,
    /// The loads, in order.
    pub trials: Vec<Trial>,
    /// What they do not tell, in order.
    pub remarks: Vec<Remark>,
    /// How long the experiment took in ns; `None` when it was cut off.
    pub elapsed_ns: Option<u64>,
}

impl Experiment {
    /// Why it broke off, where it did and somebody was left to say so.
    pub fn broken(&self) -> Option<&str> {
        self.remarks.iter().find_map(|remark| match remark {
            Remark::Broken { reason } => Some(reason.as_str()),
            Remark::Unheld { .. } | Remark::Profile(_) => None,
        })
    }

    /// The profiles that were to be taken, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileRecord> {
        self.remarks.iter().filter_map(|remark| match remark {
            Remark::Profile(taken) => Some(taken),
            Remark::Broken { .. } | Remark::Unheld { .. } => None,
        })
    }
}
