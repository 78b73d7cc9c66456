//! Collects readings as time series, with times of the monotonic clock ([`Sink`]). The sink also
//! manages the CPU time budget of readings, so that even readings of a large server exceed the
//! budget only briefly.

use plimsoll_model::series_table::{SeriesRow, SeriesSubject, find_series_row};
use plimsoll_model::{Gap, Probes, SampleInterval, Series, SeriesKind, SeriesSample, WatchedServer};
use plimsoll_sys::clock::{monotonic_ns, thread_cpu_ns};

/// Collects the readings of all probes until [`Sink::take`] returns and removes them.
pub struct Sink {
    readings: Probes,
    /// The start of the current sample, ns.
    now_ns: u64,
    /// The start of the previous sample, ns.
    before_ns: u64,
    /// The measured server. Each result of [`Sink::take`] contains the server and the list of
    /// unobserved parts.
    server: Option<WatchedServer>,
    unmeasured_reason: Option<String>,
    sampling_refused: Option<String>,
    budget: CpuBudget,
    /// CPU time of the thread at the start of the current sample, ns.
    began_cpu_ns: u64,
    /// The number of the current sample.
    round: u64,
    extent: ReadingExtent,
    effort: ProbeEffort,
}

/// The amount of CPU time that readings may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeEffort {
    /// Readings use so little CPU time that they affect no figure of a load.
    Little,
    /// Readings use more CPU time, for a study whose question needs detailed readings.
    Thorough,
}

impl ProbeEffort {
    /// Returns the factor by which an effort multiplies the CPU budget of the lowest effort
    /// (`ProbeEffort::Little`).
    pub fn cpu_budget_factor(self) -> u64 {
        match self {
            ProbeEffort::Little => 1,
            ProbeEffort::Thorough => 4,
        }
    }
}

/// How many values the probes read in one round of readings (a sample).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingExtent {
    /// The sample reads only cheap, quickly changing values, because no CPU budget is left.
    Least,
    /// The sample reads quickly changing values, some other values in turn, and expensive values
    /// within the CPU budget.
    Usual,
    /// A sample at the start or end of a load reads every counter whose increase over the load is
    /// needed. It reads no slow value, which would delay the load.
    Edge,
}

impl Sink {
    pub fn new(now_ns: u64, effort: ProbeEffort) -> Sink {
        let readings = Probes::default();
        let (budget, extent) = (CpuBudget::new(now_ns, thread_cpu_ns(), effort), ReadingExtent::Usual);
        let (server, unmeasured_reason, sampling_refused) = (None, None, None);
        let (before_ns, began_cpu_ns, round) = (now_ns, thread_cpu_ns(), 0);
        Sink {
            readings,
            now_ns,
            before_ns,
            server,
            unmeasured_reason,
            sampling_refused,
            budget,
            began_cpu_ns,
            round,
            extent,
            effort,
        }
    }

    /// Begins a sample, that is, one round of readings. `edge` says whether the sample is at the
    /// start or end of a load.
    pub fn begin_sample(&mut self, now_ns: u64, edge: bool) {
        if self.extent == ReadingExtent::Edge {
            // A sample at the start or end of a load costs no budget, because no load runs then.
            self.budget.refund_cpu_ns(thread_cpu_ns().saturating_sub(self.began_cpu_ns));
        }
        self.began_cpu_ns = thread_cpu_ns();
        (self.before_ns, self.now_ns) = (self.now_ns, now_ns);
        self.round += 1;
        self.budget.grant_until(now_ns);
        self.budget.cap_unused_budget(thread_cpu_ns());
        self.extent = match self.budget.left_ns(thread_cpu_ns()) {
            _ if edge => ReadingExtent::Edge,
            0 => ReadingExtent::Least,
            _ => ReadingExtent::Usual,
        };
    }

    /// Returns the set of values that the current sample reads.
    pub fn extent(&self) -> ReadingExtent {
        self.extent
    }

    /// Returns the amount of CPU time that readings may use.
    pub fn effort(&self) -> ProbeEffort {
        self.effort
    }

    /// Whether a value that is read in one of `every` samples is due now. The number `place` (less
    /// than `every`) determines in which samples the value is due. At the start and end of a load
    /// every value is due.
    pub fn is_due_in_this_sample(&self, every: u64, place: u64) -> bool {
        match self.extent {
            ReadingExtent::Least => false,
            ReadingExtent::Usual => self.round % every == place,
            ReadingExtent::Edge => true,
        }
    }

    /// Returns the CPU time left in the budget now, ns.
    fn budget_left_ns(&self) -> u64 {
        self.budget.left_ns(thread_cpu_ns())
    }

    fn find_or_add_series(&mut self, name: &str, kind: SeriesKind, unit: &str) -> &mut Series {
        // Look the series up first, so that the series name is copied only for a new series.
        if !self.readings.series.contains_key(name) {
            debug_assert!(
                is_in_table(name, kind, unit),
                "the series {name} ({kind:?}, unit '{unit}') is not in the table of series"
            );
            self.readings.series.insert(name.to_owned(), Series::new(kind, unit));
        }
        self.readings.series.get_mut(name).unwrap_or_else(|| unreachable!("put in above"))
    }

    fn push(&mut self, name: &str, kind: SeriesKind, unit: &str, at_ns: u64, value: f64) {
        self.find_or_add_series(name, kind, unit).push(SeriesSample { at_ns: at_ns as i64, value });
    }

    /// Adds a gauge value, read in this sample.
    pub fn gauge(&mut self, name: &str, unit: &str, value: f64) {
        self.push(name, SeriesKind::Gauge, unit, self.now_ns, value);
    }

    /// Adds a gauge value, read at `at_ns`.
    pub fn gauge_at(&mut self, name: &str, unit: &str, at_ns: u64, value: f64) {
        self.push(name, SeriesKind::Gauge, unit, at_ns, value);
    }

    /// Adds a counter value (a growing sum), read in this sample.
    pub fn counter(&mut self, name: &str, unit: &str, value: f64) {
        self.push(name, SeriesKind::Counter, unit, self.now_ns, value);
    }

    /// Adds a counter value (a growing sum), read at `at_ns`.
    pub fn counter_at(&mut self, name: &str, unit: &str, at_ns: u64, value: f64) {
        self.push(name, SeriesKind::Counter, unit, at_ns, value);
    }

    /// Adds a gap to a series, because a reading failed in this sample for the given `reason`.
    pub fn add_gap(&mut self, name: &str, kind: SeriesKind, unit: &str, reason: &str) {
        let gap = Gap { from_ns: self.before_ns as i64, to_ns: self.now_ns as i64, reason: reason.to_owned() };
        self.find_or_add_series(name, kind, unit).push_gap(gap);
    }

    /// Reports that a server process was found and is measured from now on.
    pub fn report_found_server(&mut self, pid: u32, name: &str, found_by: &str) {
        // The previously measured server also stays in the record of the run.
        self.readings.servers.extend(self.server.take());
        let (name, found_by) = (name.to_owned(), found_by.to_owned());
        self.server = Some(WatchedServer { from_ns: self.now_ns as i64, pid, name, found_by });
    }

    /// Sets the reason why no server process is measured; `None` if a process is measured.
    pub fn set_unmeasured_reason(&mut self, reason: Option<&str>) {
        if self.unmeasured_reason.as_deref() != reason {
            self.unmeasured_reason = reason.map(str::to_owned);
        }
    }

    /// Reports that a part of the target cannot be observed; `reason` is a sentence for the user.
    pub fn report_unobserved_part(&mut self, reason: &str) {
        if !self.readings.missing.iter().any(|known| known == reason) {
            self.readings.missing.push(reason.to_owned());
        }
    }

    /// Adds the stack samples of one interval, which show the functions that use CPU time.
    pub fn add_stack_samples(&mut self, stretch: SampleInterval) {
        self.readings.sampled.intervals.push(stretch);
    }

    /// Reports why no functions are sampled from now on.
    pub fn set_sampling_refusal(&mut self, reason: &str) {
        self.sampling_refused = Some(reason.to_owned());
    }

    /// Adds a gap to every series whose name begins with `beginning`.
    pub fn add_gaps_to_series(&mut self, beginning: &str, reason: &str) {
        let gap = Gap { from_ns: self.before_ns as i64, to_ns: self.now_ns as i64, reason: reason.to_owned() };
        let series = self.readings.series.iter_mut().filter(|(name, _)| name.starts_with(beginning));
        series.for_each(|(_, series)| series.push_gap(gap.clone()));
    }

    /// Returns and removes the readings since the last call of `take`. The sink keeps the name of
    /// each series, so that it can report a gap in a series without new readings.
    pub fn take(&mut self) -> Probes {
        let empty = |(name, series): (&String, &Series)| (name.clone(), Series::new(series.kind, &series.unit));
        let next = Probes { series: self.readings.series.iter().map(empty).collect(), ..Probes::default() };
        let mut seen = std::mem::replace(&mut self.readings, next);
        seen.series.retain(|_, series| !series.samples.is_empty() || !series.gaps.is_empty());
        seen.servers.extend(self.server.clone());
        seen.missing.extend(self.unmeasured_reason.clone());
        seen.sampled.missing_reason.clone_from(&self.sampling_refused);
        seen.missing.sort_unstable();
        seen
    }
}

/// Whether name, kind and unit of a series agree with the table of series.
fn is_in_table(name: &str, kind: SeriesKind, unit: &str) -> bool {
    let is_such = |row: &SeriesRow| row.subject == SeriesSubject::Metrics || (row.kind, row.unit) == (kind, unit);
    find_series_row(name).is_some_and(is_such)
}

/// A budget of CPU time for readings: a share of a core. Unused budget accumulates up to a limit.
pub struct CpuBudget {
    effort: ProbeEffort,
    last_grant_ns: u64,
    granted_ns: u64,
    start_cpu_ns: u64,
}

impl CpuBudget {
    /// At the lowest effort (`ProbeEffort::Little`), the budget is the time of one core divided by
    /// this number (0.7 % of a core).
    const CORE_SHARE_DIVISOR: u64 = 150;
    /// The largest unused CPU time that the budget saves, ns. A reading that costs much CPU time
    /// runs only with saved budget. In a short load, readings may use this saved CPU time beyond
    /// their share of a core.
    const SAVED_BUDGET_NS_MAX: u64 = 10_000_000;

    pub fn new(now_ns: u64, cpu_ns: u64, effort: ProbeEffort) -> CpuBudget {
        CpuBudget { effort, last_grant_ns: now_ns, granted_ns: Self::SAVED_BUDGET_NS_MAX, start_cpu_ns: cpu_ns }
    }

    /// Adds the share of a core that the budget grants for the time since the last call.
    pub fn grant_until(&mut self, now_ns: u64) {
        self.granted_ns +=
            now_ns.saturating_sub(self.last_grant_ns) * self.effort.cpu_budget_factor() / Self::CORE_SHARE_DIVISOR;
        self.last_grant_ns = now_ns;
    }

    /// Adds `cpu_ns` to the budget, for readings whose CPU time does not count against the budget.
    pub fn refund_cpu_ns(&mut self, cpu_ns: u64) {
        self.granted_ns += cpu_ns;
    }

    /// Returns the remaining budget, ns, when the thread has used the CPU time `cpu_ns`; 0 if the
    /// budget is exceeded.
    pub fn left_ns(&self, cpu_ns: u64) -> u64 {
        self.granted_ns.saturating_sub(cpu_ns.saturating_sub(self.start_cpu_ns))
    }

    /// Reduces unused budget to at most `SAVED_BUDGET_NS_MAX`.
    pub fn cap_unused_budget(&mut self, cpu_ns: u64) {
        self.granted_ns = self.granted_ns.min(cpu_ns.saturating_sub(self.start_cpu_ns) + Self::SAVED_BUDGET_NS_MAX);
    }
}

/// Schedules an expensive reading, so that the reading uses at most a given share of a core within
/// the common budget. A slow reading does not run at the start or end of a load. If no budget
/// becomes free, the reading runs anyway at half the frequency, because a busy server must not
/// prevent the reading for ever.
pub struct ReadingSchedule {
    period_ns: u64,
    /// At the lowest effort (`ProbeEffort::Little`), the reading uses at most the time of one core
    /// divided by this number.
    core_divisor: u64,
    due_ns: u64,
    /// The time since which the reading has waited for budget, ns; `None` if the reading does not
    /// wait.
    waits_since_ns: Option<u64>,
    /// CPU time of the reading's last run, ns.
    cost_ns: u64,
}

/// The largest CPU time of a reading that may run at the start or end of a load, ns.
const LOAD_EDGE_COST_NS_MAX: u64 = 500_000;
/// The shortest wait for CPU budget after which a reading runs without budget, ns.
const BUDGET_WAIT_NS_MIN: u64 = 1_000_000_000;

impl ReadingSchedule {
    /// Creates a schedule: at most one run in `period_ns`, and at most a two-thousandth of a core.
    pub fn new(period_ns: u64) -> ReadingSchedule {
        ReadingSchedule::with_core_divisor(period_ns, 2000)
    }

    /// Creates a schedule: at most one run in `period_ns`, and at most the time of one core divided
    /// by `core_divisor`.
    pub fn with_core_divisor(period_ns: u64, core_divisor: u64) -> ReadingSchedule {
        ReadingSchedule { period_ns, core_divisor, due_ns: 0, waits_since_ns: None, cost_ns: 0 }
    }

    /// Makes the reading due now.
    pub fn make_due_now(&mut self) {
        self.due_ns = 0;
    }

    /// Runs `read` if the reading is due, and returns the result of `read`.
    pub fn read_if_due<T>(&mut self, sink: &Sink, read: impl FnOnce() -> T) -> Option<T> {
        let now_ns = monotonic_ns();
        if now_ns < self.due_ns {
            return None;
        }
        let room = match sink.extent {
            ReadingExtent::Least => false,
            // The CPU time of the last run is the best estimate of the next cost. A reading that
            // costs more than half of the largest budget runs once more than half of the largest
            // budget is left.
            ReadingExtent::Usual => sink.budget_left_ns() > self.cost_ns.min(CpuBudget::SAVED_BUDGET_NS_MAX / 2),
            ReadingExtent::Edge => self.cost_ns <= LOAD_EDGE_COST_NS_MAX,
        };
        let waits_since_ns = *self.waits_since_ns.get_or_insert(now_ns);
        let is_overdue = now_ns - waits_since_ns >= self.pause_ns(sink.effort).max(BUDGET_WAIT_NS_MIN);
        if !room && (sink.extent == ReadingExtent::Edge || !is_overdue) {
            return None;
        }
        let before_ns = thread_cpu_ns();
        let result = read();
        self.cost_ns = thread_cpu_ns().saturating_sub(before_ns);
        self.waits_since_ns = None;
        self.due_ns = monotonic_ns() + self.pause_ns(sink.effort);
        Some(result)
    }

    /// Returns the time from one run to the next, ns.
    fn pause_ns(&self, effort: ProbeEffort) -> u64 {
        self.period_ns.max(self.cost_ns * self.core_divisor / effort.cpu_budget_factor())
    }
}
