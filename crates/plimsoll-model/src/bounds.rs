//! Upper bounds for the numbers of a run file. A damaged or forged frame can have a valid checksum,
//! and claim a load of 292 years (2^63 ns). The intervals of a load of 292 years would need more
//! memory than any machine has. A number that plimsoll never writes counts as damage of the file,
//! so that later code needs no checks.
//!
//! Not here: whether the numbers agree with each other.

use crate::curve::LoadCurve;
use crate::experiment_settings::{ExperimentSettings, RedactedText};
use crate::histogram::{HIGHEST_NS, SparseHistogram};
use crate::injector::Injector;
use crate::interval::Interval;
use crate::intervention::{Intervention, SETTING_VALUES_MAX};
use crate::load::{ArrivalSpacing, Load, LoadShape};
use crate::measures::{Figure, FigureRef, FigureUnit};
use crate::plan::Plan;
use crate::probes::{Probes, SeriesSample};
use crate::record::PlanRecord;
use crate::retry::RETRIES_MAX;
use crate::run::Run;
use crate::session::REPETITIONS_MAX;
use crate::spec::{BlocksSpec, ExperimentSpec, FindSpec, LevelDurations};
use crate::traffic::{OneOffRoute, RouteChoice, SetupTeardown, Traffic};
use crate::units::TIME_NS_MAX;

/// The maximum number of intervals of one load. The limit corresponds to 11 days of 100 ms
/// intervals, or 115 days of 1 s intervals.
pub const INTERVALS_MAX: u64 = 10_000_000;
/// Shortest and longest interval of a recorded load, ns.
const INTERVAL_NS_RANGE: std::ops::RangeInclusive<u64> = 1_000_000..=HIGHEST_NS;
/// The maximum number of routes of one plan: a route number has 16 bits.
const ROUTES_MAX: usize = 1 << 16;
/// The maximum number of machines that may generate one load.
pub const INJECTORS_MAX: usize = 1 << 11;
/// Longest text that names other machines (such as the URL of a fleet), in bytes.
const MACHINE_TEXT_BYTES_MAX: usize = 1 << 16;
/// The maximum number of workers of one machine; the sum over all machines fits a u32.
const WORKERS_MAX: u32 = 1 << 20;
/// The maximum number of workers that a user may request for one machine.
pub const WORKERS_REQUESTED_MAX: u32 = 1 << 10;
/// Largest level of a load: users, or requests a second.
const LEVEL_MAX: f64 = 1e9;
/// Upper bound for a count in one interval. With this upper bound, sums over all intervals and all
/// kinds of counts fit a u64.
const COUNT_MAX: u64 = 1 << 36;
/// Upper bound for an amount in one interval: bytes, or requests multiplied by ns.
const AMOUNT_MAX: u64 = 1 << 60;
/// Largest absolute value of a reading (a measurement of the server or host).
const READING_MAX: f64 = 1e21;

fn is_valid_time_ns(ns: u64) -> bool {
    ns <= TIME_NS_MAX
}

/// Returns whether a time in ns can be a schedule time of a load.
pub(crate) fn is_valid_schedule_time(ns: i64) -> bool {
    is_valid_time_ns(ns.unsigned_abs())
}

impl LoadCurve {
    fn is_within_limits(&self) -> bool {
        let level = |level: f64| (0.0..=LEVEL_MAX).contains(&level);
        let mut length_ns = 0u64;
        let stages = self.stages.iter().all(|stage| {
            length_ns = length_ns.saturating_add(stage.duration_ns.unwrap_or(0));
            level(stage.from) && level(stage.to)
        });
        stages && !self.stages.is_empty() && is_valid_time_ns(length_ns)
    }
}

impl Load {
    /// Returns whether every number of the load is in its valid range; see [`crate::bounds`].
    pub fn is_within_limits(&self) -> bool {
        let times = [self.duration_ns.unwrap_or(0), self.warmup_ns, self.grace_ns];
        self.shape.curve().is_within_limits()
            && times.into_iter().all(is_valid_time_ns)
            && INTERVAL_NS_RANGE.contains(&self.interval_ns)
            && self.requests_max.is_none_or(|requests| requests <= 1 << 53)
    }

    /// Returns whether the interval at this schedule time has a number of at most
    /// [`INTERVALS_MAX`].
    fn has_interval_number(&self, at_ns: u64) -> bool {
        is_valid_time_ns(at_ns) && at_ns / self.interval_ns.max(1) <= INTERVALS_MAX
    }
}

/// The maximum number of load levels that a sweep tries.
const LEVELS_MAX: usize = 1 << 16;
/// Possible numbers of arms (compared targets) of a comparison or of a ladder (a sequence of
/// targets). The maximum is 26, because a letter identifies each arm.
pub const ARM_COUNT_RANGE: std::ops::RangeInclusive<usize> = 2..=26;
/// Longest CPU profile, s.
const PROFILE_S_MAX: u32 = 600;

impl BlocksSpec {
    fn is_within_limits(&self) -> bool {
        let times = [self.budget_ns, self.load_ns.unwrap_or(0), self.warmup_ns.unwrap_or(0)];
        ARM_COUNT_RANGE.contains(&self.arms.len())
            && self.arms.iter().all(|arm| arm.plan.is_within_limits())
            && times.into_iter().all(is_valid_time_ns)
            && self.users.is_none_or(|users| users as f64 <= LEVEL_MAX)
            && self.rate.is_none_or(|rate| (0.0..=LEVEL_MAX).contains(&rate))
    }
}

impl FindSpec {
    fn is_within_limits(&self) -> bool {
        self.base.is_within_limits()
            && is_valid_time_ns(self.budget_ns.max(self.preflight_ns))
            && self.max_rate.is_none_or(|rate| (0.0..=LEVEL_MAX).contains(&rate))
            && self.planning.headroom.is_none_or(|share| (0.0..1.0).contains(&share))
            && self.planning.soak_ns.is_none_or(is_valid_time_ns)
            && self.planning.need_rps.is_none_or(|rate| (0.0..=LEVEL_MAX).contains(&rate))
    }
}

impl ExperimentSpec {
    /// Returns whether every number of the experiment is in its valid range; see [`crate::bounds`].
    pub fn is_within_limits(&self) -> bool {
        let study = match self {
            ExperimentSpec::Run(run) => run.plan.is_within_limits(),
            ExperimentSpec::Sweep(sweep) => {
                let (LevelDurations::Fixed(length_ns) | LevelDurations::Budget(length_ns)) = sweep.lengths;
                sweep.base.is_within_limits()
                    && is_valid_time_ns(length_ns.max(sweep.warmup_ns))
                    && sweep.levels.len() <= LEVELS_MAX
                    && sweep.levels.iter().all(|users| *users as f64 <= LEVEL_MAX)
            }
            ExperimentSpec::Find(find) => find.is_within_limits(),
            ExperimentSpec::Explain(explain) => {
                explain.search.is_within_limits()
                    && is_valid_time_ns(explain.budget_ns)
                    && explain.interventions.len().max(explain.requested_interventions.len()) <= Intervention::ALL.len()
                    && explain.setting_values.len() <= SETTING_VALUES_MAX
                    && explain.setting_values.iter().all(|value| *value > 0.0 && *value <= LEVEL_MAX)
            }
            ExperimentSpec::Overload(overload) => {
                overload.search.is_within_limits()
                    && is_valid_time_ns(overload.budget_ns)
                    && overload.retries <= RETRIES_MAX
                    && overload.second_target.as_ref().is_none_or(PlanRecord::is_within_limits)
                    && overload.line_rps.is_none_or(|rate| (0.0..=LEVEL_MAX).contains(&rate))
            }
            ExperimentSpec::Prove(prove) => {
                let sides = prove.blocks.arms.len() == 2;
                sides && prove.blocks.is_within_limits() && (0.0..1.0).contains(&prove.margin)
            }
            ExperimentSpec::Ladder(ladder) => ladder.blocks.is_within_limits(),
        };
        study && self.profiles_spec().is_none_or(|profiles| profiles.seconds <= PROFILE_S_MAX)
    }
}

impl ExperimentSettings<RedactedText> {
    /// Returns whether every number of these settings is in its valid range, and the settings
    /// belong to this experiment.
    pub fn is_within_limits(&self, spec: &ExperimentSpec) -> bool {
        self.targets.len() == spec.plans().len()
            && self.profiles.as_ref().is_none_or(|profiles| profiles.seconds <= PROFILE_S_MAX)
            && self.injector.workers.is_none_or(|workers| workers <= WORKERS_REQUESTED_MAX)
            && is_valid_time_ns(self.builds.start_ns_max)
            && self.fleet.as_ref().is_none_or(|fleet| {
                let is_text = |text: &str| text.len() <= MACHINE_TEXT_BYTES_MAX;
                is_valid_time_ns(fleet.skew_ns_max)
                    && fleet.wait_ns.is_none_or(is_valid_time_ns)
                    && is_text(&fleet.url)
                    && fleet.agents.as_deref().is_none_or(is_text)
            })
            && self.probes.watch.as_ref().is_none_or(|watch| watch.url.len() <= MACHINE_TEXT_BYTES_MAX)
    }
}

/// Returns whether routes with these weights and timeouts (ns) are valid. The number of routes and
/// every timeout must be in range, and a route must have a weight above 0.
fn are_valid_routes(routes: impl Iterator<Item = (u32, u64)> + Clone) -> bool {
    (1..=ROUTES_MAX).contains(&routes.clone().count())
        && routes.clone().all(|(_, timeout_ns)| is_valid_time_ns(timeout_ns))
        && routes.clone().any(|(weight, _)| weight > 0)
}

impl Plan {
    /// Returns whether every number of the plan is in its valid range, and the plan sends at least
    /// one request; see [`crate::bounds`].
    pub fn is_within_limits(&self) -> bool {
        let routes = self.traffic.routes.iter();
        self.load.is_within_limits()
            && are_valid_routes(routes.map(|route| (route.weight, route.timeout_ns)))
            && has_valid_scenarios(&self.traffic)
            && has_valid_request_list(self)
            && is_setup_teardown_within_limits(&self.traffic.setup_teardown)
    }
}

/// Returns whether the plan has a valid request list. The plan must have a list if its rule for
/// choosing requests needs a list, and no list otherwise. The list must have one entry for each
/// given arrival time.
fn has_valid_request_list(plan: &Plan) -> bool {
    let moments = match &plan.load.shape {
        LoadShape::ArrivalTimes { arrivals } if !arrivals.has_starts() => return false,
        LoadShape::ArrivalTimes { arrivals } => Some(arrivals.count()),
        LoadShape::Open { arrivals: ArrivalSpacing::Replayed, .. }
            if plan.traffic.request_list.as_ref().is_none_or(|listed| listed.sessions.is_none()) =>
        {
            return false;
        }
        LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
    };
    match (&plan.traffic.request_list, plan.traffic.choice) {
        (Some(listed), RouteChoice::RequestList) => {
            let count = listed.entries.len() as u64;
            count > 0
                && moments.is_none_or(|moments| moments == count)
                && listed.is_consistent(plan.traffic.routes.len())
        }
        (listed, choice) => listed.is_none() && choice != RouteChoice::RequestList,
    }
}

/// Returns whether the scenarios of the traffic are valid. The traffic must have scenarios if its
/// rule for choosing requests needs scenarios, and no scenarios otherwise.
fn has_valid_scenarios(traffic: &Traffic) -> bool {
    let scenarios = &traffic.scenarios;
    match traffic.choice {
        RouteChoice::Weighted | RouteChoice::RequestList => scenarios.is_empty(),
        RouteChoice::Scenarios => {
            (1..=ROUTES_MAX).contains(&scenarios.len())
                && scenarios.iter().all(|scenario| scenario.is_sound(traffic.routes.len()))
                && scenarios.iter().any(|scenario| scenario.weight > 0)
        }
    }
}

/// Returns whether the numbers and the timeouts of setup and teardown requests are in their valid
/// ranges.
fn is_setup_teardown_within_limits(setup_teardown: &SetupTeardown) -> bool {
    let can_be =
        |asked: &OneOffRoute| (1..=REPETITIONS_MAX).contains(&asked.times) && is_valid_time_ns(asked.route.timeout_ns);
    setup_teardown.setup.len().max(setup_teardown.teardown.len()) <= ROUTES_MAX && setup_teardown.requests().all(can_be)
}

impl PlanRecord {
    /// Returns whether every number of the record is in its valid range, as for a [`Plan`].
    pub fn is_within_limits(&self) -> bool {
        let routes = self.traffic.routes.iter();
        self.load.is_within_limits() && are_valid_routes(routes.map(|route| (route.weight, route.timeout_ns)))
    }
}

impl Injector {
    /// Returns whether `injectors` can be the injectors (load-generating machines) of one load. The
    /// number of machines and the number of workers of each machine must be in their valid ranges.
    pub fn are_within_limits(injectors: &[Injector]) -> bool {
        injectors.len() <= INJECTORS_MAX && injectors.iter().all(|injector| injector.workers <= WORKERS_MAX)
    }
}

impl Run {
    pub(crate) fn accepts_interval(&self, index: u32) -> bool {
        (u64::from(index) + 1)
            .checked_mul(self.plan.load.interval_ns)
            .is_some_and(|end_ns| self.plan.load.has_interval_number(end_ns))
    }

    pub(crate) fn accepts_window(&self, window_ns: (u64, u64)) -> bool {
        self.plan.load.has_interval_number(window_ns.0) && self.plan.load.has_interval_number(window_ns.1)
    }
}

fn is_histogram_bounded(histogram: &SparseHistogram) -> bool {
    histogram.count() <= COUNT_MAX
        && (histogram.count() == 0 || is_valid_time_ns(histogram.max_ns()))
        && histogram.sum_ns() <= u128::from(TIME_NS_MAX) * u128::from(COUNT_MAX)
}

impl FigureUnit {
    /// Returns the upper bound for a value of this unit in one interval.
    fn upper_bound(self) -> u64 {
        match self {
            FigureUnit::Requests | FigureUnit::Sessions | FigureUnit::Connections | FigureUnit::Handshakes => COUNT_MAX,
            FigureUnit::Bytes | FigureUnit::Messages | FigureUnit::RequestNs => AMOUNT_MAX,
            FigureUnit::Ns => TIME_NS_MAX,
        }
    }
}

fn is_figure_within_limits(figure: &Figure, value: FigureRef<SparseHistogram>) -> bool {
    match value {
        FigureRef::Count(count) => count <= figure.unit.upper_bound(),
        FigureRef::Times(times) => is_histogram_bounded(times),
        FigureRef::Tally(tally) => tally.iter().all(|(_, count)| count <= COUNT_MAX),
        FigureRef::Ledger(ledger) => {
            let counts = [ledger.scheduled, ledger.succeeded, ledger.unsent, ledger.in_flight];
            counts.into_iter().chain(ledger.failed).all(|count| count <= COUNT_MAX)
        }
        FigureRef::Workers(workers) => workers.iter().all(|time| {
            is_valid_time_ns(time.work_ns) && is_valid_time_ns(time.cpu_ns) && is_valid_time_ns(time.wall_ns)
        }),
    }
}

impl Interval {
    pub(crate) fn is_within_limits(&self) -> bool {
        self.load.figure_values().all(|(figure, held)| is_figure_within_limits(figure, held))
            && self
                .routes
                .iter()
                .flat_map(|(_, route)| route.figure_values())
                .all(|(figure, held)| is_figure_within_limits(figure, held))
    }
}

/// Returns whether a chart can show this sample of a measurement. Samples that a chart cannot show
/// are dropped.
pub(crate) fn is_chartable_sample(sample: &SeriesSample) -> bool {
    is_valid_time_ns(sample.at_ns.unsigned_abs()) && sample.value.abs() <= READING_MAX
}

impl Probes {
    pub(crate) fn is_within_limits(&self) -> bool {
        let gaps = self.series.values().flat_map(|series| &series.gaps);
        is_valid_time_ns(self.cpu_ns)
            && is_valid_time_ns(self.wall_ns)
            && self.servers.iter().all(|seen| is_valid_schedule_time(seen.from_ns))
            && gaps.into_iter().all(|gap| is_valid_schedule_time(gap.from_ns) && is_valid_schedule_time(gap.to_ns))
    }
}
