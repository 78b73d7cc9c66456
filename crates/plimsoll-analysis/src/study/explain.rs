//! The study of what limits the load line, the highest rate that meets the SLO. First, a search for
//! the load line uses a part of the budget. Steady loads follow at 15 %, 50 % and 95 % of the load
//! line, and just above the load line. The differences between the figures of the steady loads show
//! what limits the load line. All steady loads are equally long, so that they are comparable.
//!
//! After the steady loads, experiments distinguish between the causes that are still possible. An
//! experiment is a load with one change, between two control loads without a change. The last loads
//! test other values of one of the server's settings (`--vary`).
//!
//! Not here: the diagnosis from these loads (`explain`).

use super::search::LoadLineSearch;
use super::step::{CONNECT_AND_TRANSFER_NS, History, Step, StopRule, closed_loop_plan};
use crate::explain::{
    ExperimentLoads, LoadSignals, Loads, ServerConcurrency, Signal, intervention_results, interventions,
    killed_processes, probabilities_from_loads, reference_rate,
};
use crate::find::{self, Findings, LoadLine, StopReason};
use crate::interference::Interference;
use crate::judge::{Verdict, judge};
use crate::slo::Slo;
use plimsoll_model::intervention::{DEPENDENCY_PAUSE_NS, setting_value_index, setting_value_tag};
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{
    ArrivalSpacing, EarlyStopReason, ExperimentEvent, ExplainSpec, Intervention, Load, LoadCurve, LoadEnd, LoadPurpose,
    LoadShape, LoadStage, LoadTag, Plan, PlanRecord, Trial,
};

/// The level of a steady load, relative to the load line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteadyLoadLevel {
    /// A steady load at 15 % of the load line, where no request queues.
    Low,
    /// A steady load at half the load line.
    Half,
    /// A steady load at 95 % of the load line.
    Line,
    /// A steady load just above the load line. The rate is 10 % above the upper end of the load
    /// line's interval, but at most 10 % above the peak throughput.
    AboveLine,
}

impl SteadyLoadLevel {
    /// All levels in the order of the loads: the load above the load line comes last.
    pub const ALL: [SteadyLoadLevel; 4] =
        [SteadyLoadLevel::Low, SteadyLoadLevel::Half, SteadyLoadLevel::Line, SteadyLoadLevel::AboveLine];

    /// Returns the tag of a load at this level.
    pub fn tag(self) -> LoadTag {
        LoadTag { turn: self as u32, ..LoadTag::for_purpose(LoadPurpose::SteadyLoad) }
    }

    /// Returns the level of the load with this tag.
    pub fn from_tag(tag: &LoadTag) -> Option<SteadyLoadLevel> {
        SteadyLoadLevel::ALL.into_iter().find(|level| level.tag() == *tag)
    }

    /// Returns the name of the level in texts.
    pub fn level_name(self) -> &'static str {
        match self {
            SteadyLoadLevel::Low => "a low load",
            SteadyLoadLevel::Half => "half the line",
            SteadyLoadLevel::Line => "the line",
            SteadyLoadLevel::AboveLine => "a load just above the load line",
        }
    }

    /// Returns the rate of a steady load at this level, 1/s, from the findings of the search.
    /// `None` means that a load at this level would have no information, or that its rate would
    /// exceed the maximum rate.
    fn steady_load_rate_rps(self, findings: &Findings, rate_max: Option<f64>) -> Option<f64> {
        let level = reference_rate(findings);
        let share = match self {
            SteadyLoadLevel::Low => 0.15,
            SteadyLoadLevel::Half => 0.5,
            SteadyLoadLevel::Line => 0.95,
            SteadyLoadLevel::AboveLine => {
                // If plimsoll or the maximum rate ended the search, the server was not the limit.
                // If the server was not the limit of the search, no rate is known to be above the
                // load line.
                if matches!(findings.stopped_by, StopReason::GeneratorLimited | StopReason::MaxRate) {
                    return None;
                }
                let upper = findings.load_line.upper.filter(|_| findings.load_line.rps > 0.0);
                let most = findings.peak.map_or(level, |peak| peak.rps.max(level));
                // If the load line is known only roughly, the highest throughput so far limits the
                // rate of the load above the load line.
                let rate = upper.unwrap_or(level).min(most).max(level) * ABOVE_LINE_FACTOR;
                return rate_max.is_none_or(|most| rate <= most).then_some(rate);
            }
        };
        Some(level * share)
    }
}

/// The rate of the load above the load line, as a multiple of the upper end of the load line's
/// interval. If the peak throughput is lower than this upper end, the factor multiplies the peak
/// throughput.
const ABOVE_LINE_FACTOR: f64 = 1.1;
/// A load whose throughput reaches this share of its offered rate was not above the load line, so
/// another load with a higher rate follows.
const SUSTAINED_THROUGHPUT_SHARE_MIN: f64 = 0.97;
/// The rate of each further load above the load line, as a multiple of the previous load's rate.
const FURTHER_LOAD_RATE_FACTOR: f64 = 1.4;
/// Largest number of further loads above the load line.
const FURTHER_LOADS_MAX: usize = 3;
/// If no rate is known to break the SLO, the rate of a further load is at most this multiple of the
/// load line. If no load line is known, the limit is this multiple of the highest earlier
/// throughput.
const FURTHER_RATE_FACTOR_MAX: f64 = 3.0;
/// Shortest and longest steady load, ns.
const STEADY_LOAD_NS_RANGE: std::ops::RangeInclusive<u64> = SECOND..=12 * SECOND;
/// Warm-up before a steady load, ns, in which the server works off the backlog of the previous
/// load.
const WARMUP_NS: u64 = 500 * MS;
/// Maximum number of attempts to make a load: the load is repeated if other processes disturbed it,
/// or if plimsoll was late in an experiment.
const TRIES_MAX: usize = 2;
/// Maximum number of connections that are opened before a load starts.
const READY_CONNECTIONS_MAX: f64 = 2048.0;
/// Measured length of an experiment's load, ns.
const INTERVENTION_LOAD_NS: u64 = 2 * SECOND;
/// The budget divided by this number is the time for the experiments.
const EXPERIMENTS_BUDGET_DIVISOR: u64 = 4;
/// Maximum time for the experiments, ns, however large the budget is.
const EXPERIMENTS_NS_MAX: u64 = 30 * SECOND;
/// Smallest number of loads in an experiment: one load with the change, between two control loads
/// without the change.
const EXPERIMENT_LOADS_MIN: u64 = 3;
/// Steady loads keep at least this measured length, ns, when time is reserved for experiments.
const RESERVED_STEADY_LOAD_NS: u64 = 1200 * MS;
/// Number of users of an experiment's load, as a multiple of the number of users at the server's
/// highest goodput. Twice as many users certainly saturate the server.
const INTERVENTION_USERS_FACTOR: u64 = 2;
/// Smallest and largest number of users of an experiment's load.
const EXPERIMENT_USERS_RANGE: std::ops::RangeInclusive<u64> = 16..=512;
/// An experiment's load has at most as many users as the server completes requests in this time, s.
/// More users would only wait for the server. If twice the service time of a request is longer than
/// this constant, twice the service time replaces the constant.
const INTERVENTION_WAIT_MAX_S: f64 = 0.25;
/// Maximum number of users of the experiment that pauses a dependency.
const USERS_DURING_PAUSE_MAX: u64 = 1024;
/// Length of a burst, ns, in the experiment in which all requests arrive in bursts with pauses
/// between them.
const BURST_NS: u64 = 100 * MS;
/// The rate within a burst, as a multiple of the mean rate. The pause after a burst is
/// (this number - 1) times as long as the burst.
const BURST_RATE_FACTOR: u64 = 4;
/// In the experiment with simultaneous requests, all requests of one group are sent within this
/// time, ns.
const SIMULTANEOUS_WINDOW_NS: u64 = MS;
/// Pause between groups of simultaneous requests, as a multiple of the service time of one request.
/// The pause is so long that all requests of a group complete, even if the server processes the
/// requests one after another. The token bucket of a rate limiter also refills in the pause.
const SIMULTANEOUS_PAUSE_FACTOR: f64 = 6.0;
/// The length of the load with few simultaneous requests, as a multiple of the other experiments'
/// length. The load with few simultaneous requests is longer because each mean that is computed
/// from it needs enough requests.
const SIMULTANEOUS_LENGTH_FACTOR: u64 = 2;
/// Shortest pause between groups of simultaneous requests, ns.
const SIMULTANEOUS_PAUSE_NS_MIN: u64 = 10 * MS;

/// Returns the length of the experiment's load with this tag, as a multiple of
/// [`INTERVENTION_LOAD_NS`].
fn experiment_length_factor(tag: LoadTag) -> u64 {
    if tag == Intervention::BurstsAtConcurrency.tag() { SIMULTANEOUS_LENGTH_FACTOR } else { 1 }
}

/// The state of a running study of what limits the load line.
#[derive(Debug)]
pub struct ExplainStudy {
    /// The search for the load line.
    pub search: LoadLineSearch,
    /// The maximum length of the whole study, ns.
    pub budget_ns: u64,
    /// The experiments that are possible with this target.
    pub interventions: Vec<Intervention>,
    /// The experiments that the user requested by a flag.
    pub requested_interventions: Vec<Intervention>,
    /// Values of one of the server's settings (`--vary`) that are tested after the experiments.
    pub setting_values: Vec<f64>,
}

impl ExplainStudy {
    /// Creates the study before its first load.
    pub fn new(spec: &ExplainSpec, slo: Slo) -> ExplainStudy {
        ExplainStudy {
            search: LoadLineSearch::new(&spec.search, slo),
            budget_ns: spec.budget_ns,
            interventions: spec.interventions.clone(),
            requested_interventions: spec.requested_interventions.clone(),
            setting_values: spec.setting_values.clone(),
        }
    }

    pub(super) fn next(&self, history: &History) -> Step {
        let began = history.trials.iter().find(|trial| trial.tag.purpose == LoadPurpose::SteadyLoad);
        if began.is_none() {
            match self.search.next(history) {
                Step::Stop => {}
                step => return step,
            }
        }
        let searched_ns = began.map_or(history.elapsed_ns, |first| first.start_ns);
        let findings = find::conclude(&self.search.settings, &self.search.outcomes, searched_ns);
        if reference_rate(&findings) <= 0.0 || findings.stopped_by == StopReason::ServerLost {
            return Step::Stop;
        }
        let wanted = SteadyLoadLevel::ALL
            .into_iter()
            .filter_map(|level| Some((level, level.steady_load_rate_rps(&findings, self.search.settings.max_rate)?)));
        let left_ns = self.budget_ns.saturating_sub(history.elapsed_ns);
        let mut missing: Vec<(SteadyLoadLevel, f64)> =
            wanted.clone().filter(|(level, _)| trials_at_level(history.trials, *level).next().is_none()).collect();
        if trials_at_level(history.trials, SteadyLoadLevel::AboveLine).next().is_some() {
            // The load above the load line was made already. The load above the load line comes
            // last, so no lower load follows.
            missing.clear();
        }
        let is_wide = is_load_line_uncertain(&findings);
        let length_ns = |loads: usize| self.steady_load_length_ns(left_ns, loads as u64, is_wide, overhead_ns(history));
        // If there is not enough time for all loads, the load at half the load line is dropped
        // first, because it is the least informative. If the time is still too short, the load at
        // the load line is dropped, because the search has measured this rate.
        for least in [SteadyLoadLevel::Half, SteadyLoadLevel::Line] {
            if length_ns(missing.len().max(1)).is_none() {
                missing.retain(|(level, _)| *level != least);
            }
        }
        let is_repeatable = |level: SteadyLoadLevel| {
            let tries: Vec<&Trial> = trials_at_level(history.trials, level).collect();
            let is_disturbed = |trial: &&Trial| {
                let signals = LoadSignals::from_run(&trial.run);
                intervention_results::disturbance_reason(&signals, self.service_ns_of_single_user()).is_some()
            };
            tries.len() < TRIES_MAX && tries.iter().all(is_disturbed)
        };
        if let Some((level, rate)) = missing.first() {
            // If other processes disturbed the low load, the low load is repeated before the loads
            // with higher rates. If the low load came after loads with higher rates, it would start
            // with the backlog and the connections of those loads.
            let low = wanted.clone().find(|(at, _)| *at == SteadyLoadLevel::Low && at != level && is_repeatable(*at));
            if let (Some((level, rate)), Some(length_ns)) = (low, length_ns(missing.len() + 1)) {
                return self.steady_load_step(level, rate, length_ns, &findings);
            }
            return match length_ns(missing.len()) {
                Some(length_ns) => self.steady_load_step(*level, *rate, length_ns, &findings),
                None => self.next_setting_load(history, &findings, left_ns),
            };
        }
        if let Some(step) = self.further_load_above_line(history, &findings, left_ns) {
            return step;
        }
        // A load is repeated if other processes can explain an effect on the load, and there is
        // time.
        let again = wanted.clone().find(|(level, _)| is_repeatable(*level));
        let held_again = again.zip(
            self.longest_load_length_ns(left_ns.saturating_sub(self.experiments_reserve_ns()), overhead_ns(history)),
        );
        match held_again {
            Some(((level, rate), length_ns)) if !has_experiment_load(history.trials) => {
                self.steady_load_step(level, rate, length_ns, &findings)
            }
            _ => match self.next_experiment_load(history, &findings, left_ns) {
                Step::Stop => self.next_setting_load(history, &findings, left_ns),
                step => step,
            },
        }
    }

    /// Returns the mean service time of a single user's requests in the search, ns.
    fn service_ns_of_single_user(&self) -> Option<f64> {
        self.search.outcomes.first().map(|first| first.evidence.service_mean_ns).filter(|ns| *ns > 0.0)
    }

    /// Returns a load with a higher rate if the server sustained the last load, which was meant to
    /// be above the load line. If the load line is known only roughly or not at all, the server may
    /// sustain a load that was meant to exceed it. If no load exceeded the server's capacity, the
    /// steady loads would look alike, and would not show what limits the server.
    fn further_load_above_line(&self, history: &History, findings: &Findings, left_ns: u64) -> Option<Step> {
        let past: Vec<&Trial> = trials_at_level(history.trials, SteadyLoadLevel::AboveLine).collect();
        let last = *past.last()?;
        let sight = LoadSignals::from_run(&last.run);
        let alone_ns = self.service_ns_of_single_user();
        let (offered, got) = (sight.throughput_without_waits_rps(alone_ns)?, sight.get(Signal::Goodput)?);
        // If other processes disturbed a further load above the load line, that load is repeated at
        // the same rate.
        let again = past.len() > 1 && intervention_results::disturbance_reason(&sight, alone_ns).is_some();
        let answered = got >= SUSTAINED_THROUGHPUT_SHARE_MIN * offered && sight.limited.is_none();
        if has_experiment_load(history.trials) || past.len() > FURTHER_LOADS_MAX || !(answered || again) {
            return None;
        }
        let LoadShape::Open { rate, .. } = &last.run.plan.load.shape else { return None };
        let made = rate.max();
        let upper = findings.load_line.upper.filter(|_| findings.load_line.rps > 0.0);
        // If the server now sustains a rate that failed in the search, the search's upper bound of
        // the load line no longer counts.
        let upper = upper.filter(|upper| made < upper * 0.98);
        let most = upper.map_or(FURTHER_RATE_FACTOR_MAX * reference_rate(findings), |upper| upper * ABOVE_LINE_FACTOR);
        let most = self.search.settings.max_rate.map_or(most, |allowed| allowed.min(most));
        let (next, least) =
            if again { (made, made) } else { ((made * FURTHER_LOAD_RATE_FACTOR).min(most), made * ABOVE_LINE_FACTOR) };
        // A further load above the load line is shorter than the previous load if the shorter
        // length leaves time for experiments.
        let (made_ns, beside_changes_ns) =
            (last.run.plan.load.duration_ns?, left_ns.saturating_sub(self.experiments_reserve_ns()));
        let short_ns = self
            .longest_load_length_ns(beside_changes_ns, overhead_ns(history))
            .filter(|ns| *ns >= RESERVED_STEADY_LOAD_NS);
        let length_ns = short_ns.map_or(made_ns, |ns| ns.min(made_ns));
        let takes_ns = WARMUP_NS + length_ns + overhead_ns(history) + self.grace_ns();
        // Time is always reserved for an experiment that a flag requests.
        let kept_ns = if !self.requested_interventions.is_empty() {
            self.experiments_reserve_ns()
        } else {
            self.setting_loads_reserve_ns()
        };
        let fits = takes_ns <= left_ns.saturating_sub(kept_ns);
        (fits && next >= least).then(|| self.steady_load_step(SteadyLoadLevel::AboveLine, next, length_ns, findings))
    }

    /// Returns the next load with another value of the server's setting (`--vary`). A value whose
    /// load was recorded as skipped is not tried again.
    fn next_setting_load(&self, history: &History, findings: &Findings, left_ns: u64) -> Step {
        let made =
            |tag: LoadTag| history.trials.iter().any(|trial| trial.tag == tag) || is_skipped(history.events, tag);
        let next = (0..self.setting_values.len()).map(setting_value_tag).find(|tag| !made(*tag));
        match next {
            // A load with another value of the server's setting has twice the usual users, so that
            // the number of users is not the limit.
            Some(tag) if left_ns >= self.experiment_load_total_ns() => {
                self.experiment_load_step(tag, self.saturating_closed_loop_plan(Intervention::MoreUsers, findings))
            }
            _ => Step::Stop,
        }
    }

    /// Returns the total time that an experiment's load takes, ns, including its warm-up.
    fn experiment_load_total_ns(&self) -> u64 {
        WARMUP_NS + INTERVENTION_LOAD_NS + CONNECT_AND_TRANSFER_NS + self.grace_ns()
    }

    /// Returns the next load of the experiments: a load with a change, or a control load without a
    /// change. The first and the last load of the experiments are control loads.
    fn next_experiment_load(&self, history: &History, findings: &Findings, left_ns: u64) -> Step {
        let needs_ns = self.experiment_load_total_ns();
        let left_ns = left_ns.saturating_sub(self.setting_loads_reserve_ns());
        if self.interventions.is_empty() || left_ns < needs_ns {
            return Step::Stop;
        }
        let times = |intervention: Intervention| intervention_trials(history.trials, intervention).count();
        let controls = times(Intervention::Control);
        let chosen = self.chosen_experiments(history.trials, findings);
        let can_be = |it: &Intervention| !is_skipped(history.events, it.tag());
        let missing = |it: &Intervention| times(*it) == 0 && can_be(it);
        let low = trials_at_level(history.trials, SteadyLoadLevel::Low).last().map(|trial| &trial.run);
        let again = |it: &Intervention| {
            let mut tries = intervention_trials(history.trials, *it);
            times(*it) < TRIES_MAX
                && tries.all(|trial| intervention_results::is_load_worth_repeating(*it, &trial.run, low))
                && can_be(it)
        };
        let wanted = chosen.iter().copied().find(missing).or_else(|| chosen.iter().copied().find(again));
        let any = chosen.iter().any(|intervention| times(*intervention) > 0);
        // After the experiments a control load without a change is needed, so the time for that
        // load is reserved.
        let next = match (controls, wanted) {
            (_, None) if !any => return Step::Stop,
            (0, Some(_)) if left_ns >= EXPERIMENT_LOADS_MIN * needs_ns => Intervention::Control,
            (0, _) => return Step::Stop,
            (_, Some(wanted))
                if left_ns >= 2 * needs_ns + (experiment_length_factor(wanted.tag()) - 1) * INTERVENTION_LOAD_NS =>
            {
                wanted
            }
            (1, _) if any => Intervention::Control,
            _ => return Step::Stop,
        };
        self.intervention_step(next, history.trials, findings)
    }

    /// Returns the experiments that distinguish the causes remaining after the steady loads.
    pub fn chosen_experiments(&self, trials: &[Trial], findings: &Findings) -> Vec<Intervention> {
        let loads = steady_loads(trials, &self.search.settings.slo);
        let at_a_time = [Intervention::BurstsAtTwiceConcurrency, Intervention::BurstsAtConcurrency];
        let can_be = |it: &&Intervention| {
            !at_a_time.contains(*it) || ServerConcurrency::from_findings(findings, &loads).is_some()
        };
        let possible: Vec<Intervention> = self.interventions.iter().filter(can_be).copied().collect();
        interventions::informative_interventions(
            &probabilities_from_loads(findings, &loads),
            &possible,
            &self.requested_interventions,
        )
    }

    /// Returns what each remaining cause predicts for an experiment, in words. The predictions are
    /// recorded before the experiment.
    pub fn experiment_predictions(
        &self,
        trials: &[Trial],
        intervention: Intervention,
    ) -> Vec<(crate::explain::Cause, String)> {
        let searched_ns =
            trials.iter().find(|trial| trial.tag.purpose == LoadPurpose::SteadyLoad).map_or(0, |it| it.start_ns);
        let findings = find::conclude(&self.search.settings, &self.search.outcomes, searched_ns);
        let weighed = probabilities_from_loads(&findings, &steady_loads(trials, &self.search.settings.slo));
        interventions::prediction_texts(&weighed, intervention)
    }

    fn intervention_step(&self, intervention: Intervention, trials: &[Trial], findings: &Findings) -> Step {
        let tag = intervention.tag();
        match intervention {
            Intervention::Bursts => {
                self.experiment_load_step(tag, self.burst_load_plan(reference_rate(findings) * 0.95, findings))
            }
            Intervention::BurstsAtTwiceConcurrency | Intervention::BurstsAtConcurrency => {
                let together =
                    ServerConcurrency::from_findings(findings, &steady_loads(trials, &self.search.settings.slo));
                match together.and_then(|it| Some((it.simultaneous_requests(intervention)?, it.alone_ns))) {
                    Some((count, alone_ns)) => {
                        self.experiment_load_step(tag, self.simultaneous_requests_plan(count, alone_ns))
                    }
                    None => Step::Stop,
                }
            }
            _ => self.experiment_load_step(tag, self.saturating_closed_loop_plan(intervention, findings)),
        }
    }

    /// Creates the step that makes an experiment's load. All experiments have the same warm-up, and
    /// the length that the tag of the load determines.
    fn experiment_load_step(&self, tag: LoadTag, plan: PlanRecord) -> Step {
        let load = Load {
            seed: plimsoll_model::rng::mix_bits(self.search.settings.base.load.seed ^ u64::from(tag.turn)),
            requests_max: None,
            duration_ns: Some(experiment_length_factor(tag) * INTERVENTION_LOAD_NS),
            warmup_ns: WARMUP_NS,
            grace_ns: self.grace_ns(),
            interval_ns: Plan::TICK_NS,
            ..plan.load
        };
        Step::measure_trial(tag, PlanRecord { load, ..plan }, StopRule::EndOfSchedule)
    }

    /// Returns the plan of a closed loop with enough users to saturate the server.
    fn saturating_closed_loop_plan(&self, intervention: Intervention, findings: &Findings) -> PlanRecord {
        let base = &self.search.settings.base;
        let most = u64::from(base.connection_plan.connections_max).max(1);
        let peak = findings.peak.map_or(0, |peak| peak.users);
        let alone_s = self.service_ns_of_single_user().unwrap_or(0.0) / 1e9;
        let answered = (reference_rate(findings) * INTERVENTION_WAIT_MAX_S.max(2.0 * alone_s)).ceil() as u64;
        let users = (INTERVENTION_USERS_FACTOR * peak)
            .min(answered)
            .clamp(*EXPERIMENT_USERS_RANGE.start(), *EXPERIMENT_USERS_RANGE.end())
            .min(most);
        // While the experiment pauses a dependency of the server, enough users must remain to keep
        // the server busy.
        let bridging = (reference_rate(findings) * 2.0 * DEPENDENCY_PAUSE_NS as f64 / 1e9).ceil() as u64;
        let users = match intervention {
            Intervention::MoreUsers => (2 * users).min(most),
            Intervention::DependencyPauses => users.max(bridging.min(USERS_DURING_PAUSE_MAX).min(most)),
            _ => users,
        };
        closed_loop_plan(base, users)
    }

    /// Returns the plan of a load that sends `count` simultaneous requests again and again. Each
    /// group of simultaneous requests starts after all requests of the previous group had time to
    /// complete.
    fn simultaneous_requests_plan(&self, count: u64, alone_ns: f64) -> PlanRecord {
        let base = &self.search.settings.base;
        let level = |rate: f64, duration_ns: u64| LoadStage { from: rate, to: rate, duration_ns: Some(duration_ns) };
        let apart_ns = ((SIMULTANEOUS_PAUSE_FACTOR * alone_ns) as u64).max(SIMULTANEOUS_PAUSE_NS_MIN);
        let rate = count as f64 * SECOND as f64 / SIMULTANEOUS_WINDOW_NS as f64;
        // The warm-up runs at the first rate of the cycle, so the cycle begins with the pause,
        // whose rate is 0.
        let cycle = [level(0.0, apart_ns), level(rate, SIMULTANEOUS_WINDOW_NS)];
        let cycles =
            (WARMUP_NS + SIMULTANEOUS_LENGTH_FACTOR * INTERVENTION_LOAD_NS) / (SIMULTANEOUS_WINDOW_NS + apart_ns) + 1;
        let rate = LoadCurve { stages: (0..cycles).flat_map(|_| cycle).collect() };
        let connections_ready = u32::try_from(2 * count).unwrap_or(u32::MAX).min(base.connection_plan.connections_max);
        let shape = LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant };
        PlanRecord { load: Load { shape, connections_ready, ..base.load.clone() }, ..base.clone() }
    }

    fn burst_load_plan(&self, rate: f64, findings: &Findings) -> PlanRecord {
        let base = &self.search.settings.base;
        let level = |times: u64, length: u64| {
            let level = rate * times as f64;
            LoadStage { from: level, to: level, duration_ns: Some(BURST_NS * length) }
        };
        // The warm-up runs at the first rate of the cycle, so the cycle begins with the pause,
        // whose rate is 0.
        let cycle = [level(0, BURST_RATE_FACTOR - 1), level(BURST_RATE_FACTOR, 1)];
        let cycles = INTERVENTION_LOAD_NS / (BURST_NS * BURST_RATE_FACTOR);
        let rate = LoadCurve { stages: (0..cycles).flat_map(|_| cycle).collect() };
        let peak = findings.peak.map_or(0, |peak| peak.users);
        let ready = (2 * peak + 8).min(READY_CONNECTIONS_MAX as u64) as u32;
        let shape = LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant };
        let connections_ready = ready.min(base.connection_plan.connections_max);
        PlanRecord { load: Load { shape, connections_ready, ..base.load.clone() }, ..base.clone() }
    }

    /// Returns the time that the study reserves for experiments and for other values of the
    /// server's setting (`--vary`), ns.
    fn experiments_reserve_ns(&self) -> u64 {
        // The reserved time is enough for at least one experiment with its control loads. If less
        // time were reserved, no experiment would fit.
        let kept_ns = (self.budget_ns / EXPERIMENTS_BUDGET_DIVISOR)
            .min(EXPERIMENTS_NS_MAX)
            .max(EXPERIMENT_LOADS_MIN * self.experiment_load_total_ns());
        let changed_ns = if self.interventions.is_empty() { 0 } else { kept_ns };
        changed_ns + self.setting_loads_reserve_ns()
    }

    /// Returns the time reserved for loads with other values of the server's setting, ns. The
    /// reserved time includes the time of the command that changes the setting.
    fn setting_loads_reserve_ns(&self) -> u64 {
        (self.setting_values.len() as u64 * (self.experiment_load_total_ns() + SECOND)).min(self.budget_ns / 2)
    }

    /// Returns the measured length of each of `loads` steady loads, ns; `None` if the time is too
    /// short.
    ///
    /// Time for experiments is reserved only if the steady loads do not become too short. Time for
    /// loads with other values of the server's setting (`--vary`) is always reserved. If the load
    /// line is known only roughly (`is_wide`), a load with a higher rate may follow. If possible,
    /// the division of the time therefore leaves time for one more load with a higher rate.
    fn steady_load_length_ns(&self, left_ns: u64, loads: u64, is_wide: bool, overhead_ns: u64) -> Option<u64> {
        let without = |kept_ns: u64, loads: u64| {
            self.longest_load_length_ns(left_ns.saturating_sub(kept_ns) / loads, overhead_ns)
        };
        let kept = |loads: u64| {
            without(self.experiments_reserve_ns(), loads)
                .filter(|it| !self.requested_interventions.is_empty() || *it >= RESERVED_STEADY_LOAD_NS)
        };
        let all = loads + u64::from(is_wide);
        let kept = kept(all).or_else(|| kept(loads));
        kept.or_else(|| without(self.setting_loads_reserve_ns(), all))
            .or_else(|| without(self.setting_loads_reserve_ns(), loads))
    }

    /// Returns the measured length of the longest load that takes at most `all_ns` in total, ns.
    /// Returns `None` if a load of this length would be too short to have information.
    fn longest_load_length_ns(&self, all_ns: u64, overhead_ns: u64) -> Option<u64> {
        let length_ns = all_ns.checked_sub(WARMUP_NS + overhead_ns + self.grace_ns())?;
        let length_ns = length_ns.min(*STEADY_LOAD_NS_RANGE.end()) / Plan::TICK_NS * Plan::TICK_NS;
        STEADY_LOAD_NS_RANGE.contains(&length_ns).then_some(length_ns)
    }

    /// Returns the grace period, ns: the wait for late responses. The grace period is at most the
    /// longest latency bound, because a request that waits longer breaks the SLO in any case.
    fn grace_ns(&self) -> u64 {
        let grace_ns = self.search.settings.base.load.grace_ns;
        grace_ns.min(self.search.settings.slo.bound_max_ns().unwrap_or(grace_ns)).min(SECOND)
    }

    fn steady_load_step(&self, level: SteadyLoadLevel, rate: f64, length_ns: u64, findings: &Findings) -> Step {
        let settings = &self.search.settings;
        let base = &settings.base;
        let peak = findings.peak.filter(|_| !matches!(level, SteadyLoadLevel::Low)).map_or(0, |peak| peak.users);
        let alone_s = self.service_ns_of_single_user().unwrap_or(0.0) / 1e9;
        let ready = (2.0 * (rate * alone_s).max(peak as f64) + 8.0).min(READY_CONNECTIONS_MAX) as u32;
        let load = Load {
            seed: plimsoll_model::rng::mix_bits(base.load.seed ^ rate.to_bits()),
            shape: LoadShape::Open {
                rate: LoadCurve::constant_for_duration(rate, length_ns),
                arrivals: settings.arrivals,
            },
            requests_max: None,
            duration_ns: Some(length_ns),
            warmup_ns: WARMUP_NS,
            grace_ns: self.grace_ns(),
            connections_ready: ready.min(base.connection_plan.connections_max),
            interval_ns: Plan::TICK_NS,
            new_users: false,
        };
        Step::measure_trial(level.tag(), PlanRecord { load, ..base.clone() }, StopRule::EndOfSchedule)
    }
}

/// Returns the time that the last load took in addition to its schedule, ns, before its start and
/// after its end.
fn overhead_ns(history: &History) -> u64 {
    let end_ns = |trial: &Trial| trial.start_ns + trial.run.window_ns.1 + trial.run.plan.load.grace_ns;
    let (before, last) = match history.trials {
        [.., before, last] => (end_ns(before), last),
        [last] => (0, last),
        [] => return CONNECT_AND_TRANSFER_NS,
    };
    let beside_ns = last.start_ns.saturating_sub(before) + history.elapsed_ns.saturating_sub(end_ns(last));
    beside_ns.max(CONNECT_AND_TRANSFER_NS)
}

/// Returns whether the load line is known only roughly: no load line or no upper end is known, or
/// the upper end exceeds the load line by more than 40 %.
fn is_load_line_uncertain(findings: &Findings) -> bool {
    let LoadLine { rps, upper, .. } = findings.load_line;
    rps <= 0.0 || upper.is_none_or(|upper| upper > FURTHER_LOAD_RATE_FACTOR * rps)
}

/// Returns the complete loads: the user did not interrupt the load, and its recording was not cut
/// off.
fn completed_trials(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    let whole =
        |trial: &&Trial| !matches!(trial.run.ending, Some(LoadEnd::Stopped(EarlyStopReason::Interrupted)) | None);
    trials.iter().filter(whole)
}

/// Returns the complete loads of a level.
fn trials_at_level(trials: &[Trial], level: SteadyLoadLevel) -> impl Iterator<Item = &Trial> {
    completed_trials(trials).filter(move |trial| trial.tag == level.tag())
}

/// Returns the complete loads of this experiment.
fn intervention_trials(trials: &[Trial], intervention: Intervention) -> impl Iterator<Item = &Trial> {
    completed_trials(trials).filter(move |trial| trial.tag == intervention.tag())
}

/// Returns whether the record says that the load with this tag was skipped.
pub(crate) fn is_skipped(events: &[ExperimentEvent], tag: LoadTag) -> bool {
    events.iter().filter_map(ExperimentEvent::skipped_load).any(|(other, _)| other == tag)
}

fn has_experiment_load(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| Intervention::from_tag(&trial.tag).is_some() || setting_value_index(&trial.tag).is_some())
}

/// Returns the recorded loads of the experiments. `varied` contains the planned values of the
/// server's setting.
pub fn experiment_loads<'a>(trials: &'a [Trial], varied: &[f64]) -> ExperimentLoads<'a> {
    let changes = Intervention::ALL.into_iter().filter(|intervention| *intervention != Intervention::Control);
    let last = |intervention: Intervention| intervention_trials(trials, intervention).last();
    // Experiments are sorted by their start time.
    let mut changed: Vec<(Intervention, &Trial)> = changes.filter_map(|it| Some((it, last(it)?))).collect();
    changed.sort_by_key(|(_, trial)| trial.start_ns);
    ExperimentLoads {
        controls: intervention_trials(trials, Intervention::Control).map(|trial| &trial.run).collect(),
        low: trials_at_level(trials, SteadyLoadLevel::Low).last().map(|trial| &trial.run),
        line: trials_at_level(trials, SteadyLoadLevel::Line).last().map(|trial| &trial.run),
        intervention_loads: changed.into_iter().map(|(intervention, trial)| (intervention, &trial.run)).collect(),
        setting_loads: completed_trials(trials)
            .filter_map(|trial| Some((*varied.get(setting_value_index(&trial.tag)?)?, &trial.run)))
            .collect(),
    }
}

/// Returns the recorded steady loads, one per level.
pub fn steady_loads<'a>(trials: &'a [Trial], slo: &Slo) -> Loads<'a> {
    // For each level, the first load that other processes did not disturb counts. If other
    // processes disturbed all loads of a level, the first load of the level counts. A later load of
    // the level may start with the backlog of the load above the load line.
    let chosen = |level: SteadyLoadLevel| {
        let calm = trials_at_level(trials, level).find(|trial| !Interference::from_run(&trial.run).is_disturbed);
        calm.or_else(|| trials_at_level(trials, level).next()).map(|trial| &trial.run)
    };
    // Loads above the load line have rising rates, so the last load that other processes did not
    // disturb counts.
    let calm = trials_at_level(trials, SteadyLoadLevel::AboveLine)
        .filter(|trial| !Interference::from_run(&trial.run).is_disturbed)
        .last();
    let past = calm.or_else(|| trials_at_level(trials, SteadyLoadLevel::AboveLine).last()).map(|trial| &trial.run);
    let held = |trial: &&Trial| judge(LoadPurpose::Line, 0, &trial.run, slo).verdict == Verdict::Pass;
    let sustained_above_line =
        trials_at_level(trials, SteadyLoadLevel::AboveLine).filter(held).last().map(|trial| &trial.run);
    let closed = intervention_trials(trials, Intervention::Control).map(|trial| &trial.run).collect();
    Loads {
        low: chosen(SteadyLoadLevel::Low),
        half: chosen(SteadyLoadLevel::Half),
        line: chosen(SteadyLoadLevel::Line),
        past,
        sustained_above_line,
        closed,
        killed_processes: killed_processes(trials.iter().map(|trial| &trial.run)),
    }
}
