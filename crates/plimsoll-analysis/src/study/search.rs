//! The search for the load line as a study. Each load is judged by the SLO once, when its record is
//! read.

use super::profiling;
use super::step::{CONNECT_AND_TRANSFER_NS, History, Step, StopRule};
use crate::find::{self, Findings, LoadLine, SearchSettings, Soak, soak_segments};
use crate::judge::{TrialOutcome, judge};
use crate::slo::Slo;
use crate::watch::TrialWatch;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{
    EarlyStopReason, FindSpec, Load, LoadCurve, LoadEnd, LoadPurpose, LoadShape, LoadTag, Plan, PlanRecord, Planning,
    ProfilesSpec, Trial,
};

/// The state of a running search for the load line.
#[derive(Debug)]
pub struct LoadLineSearch {
    /// The settings of the search.
    pub settings: SearchSettings,
    /// The outcomes of the loads of the search, in order.
    pub outcomes: Vec<TrialOutcome>,
    /// The profiles that the user requested. The study takes the profiles after the search.
    pub profiles: Option<ProfilesSpec>,
    /// The loads that the user requested in addition to the search: a load with headroom below the
    /// load line, and a soak (a long load at the load line).
    planning: Planning,
    /// Measured length of the load with headroom, ns; 0 if the user did not request this load.
    headroom_load_ns: u64,
    /// The outcomes of the measured segments of the soak, the long load at the load line, in order.
    soak_outcomes: Vec<TrialOutcome>,
    /// The number of recorded trials that this search has already read.
    trials_read: usize,
}

/// The load with headroom (a load below the load line) takes the budget divided by this number,
/// within the limits of [`HEADROOM_LOAD_NS`].
const HEADROOM_BUDGET_DIVISOR: u64 = 6;
/// Shortest and longest measured length of the load with headroom (a load below the load line), ns.
const HEADROOM_LOAD_NS: std::ops::RangeInclusive<u64> = SECOND..=10 * SECOND;
/// Warm-up before the load with headroom (a load below the load line), ns.
const HEADROOM_WARMUP_NS: u64 = 500 * MS;

/// The part of the budget that the search may use if the study continues after the search, as a
/// fraction.
pub(super) const SEARCH_PART: (u64, u64) = (2, 5);
/// The longest time that the search may use if the study continues after the search, ns.
const SEARCH_NS_MAX: u64 = 60 * SECOND;

/// Returns the part of a study's budget that the search may use, ns.
pub fn search_part_ns(budget_ns: u64) -> u64 {
    (budget_ns / SEARCH_PART.1 * SEARCH_PART.0).min(SEARCH_NS_MAX)
}

/// Returns the measured length of the load with headroom (`--headroom`), a load below the load
/// line, in ns. Returns 0 without the flag.
fn headroom_load_length_ns(spec: &FindSpec) -> u64 {
    let whole_ns = (spec.budget_ns / HEADROOM_BUDGET_DIVISOR).clamp(*HEADROOM_LOAD_NS.start(), *HEADROOM_LOAD_NS.end());
    if spec.planning.headroom.is_some() { whole_ns / Plan::TICK_NS * Plan::TICK_NS } else { 0 }
}

/// Returns the total time that a load with headroom of the measured length `length_ns` takes, ns.
fn headroom_load_total_ns(length_ns: u64) -> u64 {
    if length_ns == 0 { 0 } else { length_ns + HEADROOM_WARMUP_NS + CONNECT_AND_TRANSFER_NS }
}

/// Returns the tag of the load with headroom (`--headroom`), a load below the load line.
pub fn headroom_load_tag() -> LoadTag {
    LoadTag::for_purpose(LoadPurpose::SteadyLoad)
}

/// Judges a segment of the soak, the long load at the load line. Returns `None` for loads that are
/// not part of the soak, and for a load that the user interrupted or whose recording was cut off.
pub fn soak_outcome(trial: &Trial, slo: &Slo) -> Option<TrialOutcome> {
    judge_if_purpose(trial, slo, |purpose| purpose == LoadPurpose::Soak)
}

/// Judges a load of the search by the SLO. Returns `None` for loads after the search, and for a
/// load that the user interrupted or whose recording was cut off.
pub fn search_trial_outcome(trial: &Trial, slo: &Slo) -> Option<TrialOutcome> {
    judge_if_purpose(trial, slo, |purpose| !is_after_search(purpose))
}

/// Judges a load by the SLO if `is_meant` is true for the load's purpose. Returns `None` for a load
/// with another purpose, and for a load that the user interrupted or whose recording was cut off.
fn judge_if_purpose(trial: &Trial, slo: &Slo, is_meant: fn(LoadPurpose) -> bool) -> Option<TrialOutcome> {
    let whole = match &trial.run.ending {
        Some(LoadEnd::Stopped(stop)) => *stop != EarlyStopReason::Interrupted,
        Some(LoadEnd::Finished) => true,
        None => false,
    };
    (whole && is_meant(trial.tag.purpose)).then(|| judge(trial.tag.purpose, trial.start_ns, &trial.run, slo))
}

/// Returns whether loads of this purpose come after the search, and are not part of it.
pub(crate) fn is_after_search(purpose: LoadPurpose) -> bool {
    matches!(purpose, LoadPurpose::Profile | LoadPurpose::SteadyLoad | LoadPurpose::Overload | LoadPurpose::Soak)
}

/// Returns the settings of a search for this spec and SLO.
pub fn settings(spec: &FindSpec, slo: Slo) -> SearchSettings {
    let FindSpec { base, budget_ns, max_rate, arrivals, preflight_ns, .. } = spec.clone();
    // The requested budget includes the load with headroom (a load below the load line), so the
    // search gets the remaining time.
    let budget_ns = budget_ns.saturating_sub(headroom_load_total_ns(headroom_load_length_ns(spec))).max(budget_ns / 2);
    SearchSettings { base, slo, budget_ns, max_rate, arrivals, preflight_ns }
}

impl LoadLineSearch {
    /// Creates the search before its first load.
    pub fn new(spec: &FindSpec, slo: Slo) -> LoadLineSearch {
        let (settings, planned_ns, profiles) =
            (settings(spec, slo), headroom_load_length_ns(spec), spec.profiles.clone());
        let planning = spec.planning;
        LoadLineSearch {
            settings,
            outcomes: Vec::new(),
            profiles,
            planning,
            headroom_load_ns: planned_ns,
            soak_outcomes: Vec::new(),
            trials_read: 0,
        }
    }

    /// Returns the time for the whole study, ns: the search, the load with headroom, and the soak.
    pub fn study_time_ns(&self) -> u64 {
        self.settings.budget_ns + headroom_load_total_ns(self.headroom_load_ns) + self.planning.soak_ns.unwrap_or(0)
    }

    /// Adds the loads that were recorded since the last call.
    pub(super) fn add_new_trials(&mut self, trials: &[Trial]) {
        let new = trials.get(self.trials_read..).unwrap_or_default();
        self.outcomes.extend(new.iter().filter_map(|trial| search_trial_outcome(trial, &self.settings.slo)));
        self.soak_outcomes.extend(new.iter().filter_map(|trial| soak_outcome(trial, &self.settings.slo)));
        self.trials_read = trials.len();
    }

    pub(super) fn next(&self, history: &History) -> Step {
        match find::next(&self.settings, &self.outcomes, history.elapsed_ns) {
            find::SearchStep::Measure(measure) => {
                let find::PlannedTrial { purpose, plan, watch } = *measure;
                Step::measure_trial(LoadTag::for_purpose(purpose), plan, StopRule::TrialWatch(Box::new(watch)))
            }
            find::SearchStep::Stop(_) => match self.next_headroom_step(history) {
                Step::Stop => self.next_soak_step(history),
                planned => planned,
            },
        }
    }

    /// Returns the step that makes the next segment of the soak, the long load at the load line.
    fn next_soak_step(&self, history: &History) -> Step {
        let Some(soak_ns) = self.planning.soak_ns else { return Step::Stop };
        let began_ns = history.trials.iter().find(|trial| is_after_search(trial.tag.purpose)).map(|it| it.start_ns);
        let line = self.interim_load_line(began_ns.unwrap_or(history.elapsed_ns));
        if line.lower <= 0.0 || line.rps <= 0.0 {
            return Step::Stop;
        }
        if Soak::new(&self.settings, &self.outcomes, &self.soak_outcomes, soak_ns).is_some_and(|soak| soak.is_over) {
            return Step::Stop;
        }
        let piece_ns = soak_segments(soak_ns).0;
        let number = self.soak_outcomes.len() as u64;
        // The first segment of the soak (the long load at the load line) starts with a warm-up and
        // without a queue. Each later segment of the soak continues without a warm-up.
        let warmup_ns = if number == 0 { HEADROOM_WARMUP_NS } else { 0 };
        let plan = self.steady_load_plan(line.lower, piece_ns, warmup_ns, number);
        let watch = TrialWatch::new(LoadPurpose::Soak, &plan, &self.settings.slo);
        Step::measure_trial(LoadTag::for_purpose(LoadPurpose::Soak), plan, StopRule::TrialWatch(Box::new(watch)))
    }

    /// Returns the plan of a steady load at `rate`, 1/s. `number` makes the seed of each steady
    /// load different.
    fn steady_load_plan(&self, rate: f64, length_ns: u64, warmup_ns: u64, number: u64) -> PlanRecord {
        let base = &self.settings.base;
        let alone_s = self.outcomes.first().map_or(0.0, |first| first.evidence.service_mean_ns / 1e9);
        let connections_ready =
            (4.0 * rate * alone_s + 8.0).min(f64::from(base.connection_plan.connections_max)) as u32;
        let load = Load {
            seed: plimsoll_model::rng::mix_bits(base.load.seed ^ rate.to_bits() ^ number),
            shape: LoadShape::Open {
                rate: LoadCurve::constant_for_duration(rate, length_ns),
                arrivals: self.settings.arrivals,
            },
            requests_max: None,
            duration_ns: Some(length_ns),
            warmup_ns,
            grace_ns: base.load.grace_ns.min(SECOND),
            connections_ready,
            interval_ns: Plan::TICK_NS,
            new_users: false,
        };
        PlanRecord { load, ..base.clone() }
    }

    /// Returns the step that makes the load with headroom below the load line, if the user
    /// requested it and it was not made yet.
    fn next_headroom_step(&self, history: &History) -> Step {
        let line_rps = self.interim_load_line(history.elapsed_ns).rps;
        let made = history.trials.iter().any(|trial| trial.tag == headroom_load_tag());
        let Some(headroom) = self.planning.headroom.filter(|_| line_rps > 0.0 && !made) else { return Step::Stop };
        let plan = self.steady_load_plan(line_rps * (1.0 - headroom), self.headroom_load_ns, HEADROOM_WARMUP_NS, 0);
        Step::measure_trial(headroom_load_tag(), plan, StopRule::EndOfSchedule)
    }

    /// Returns the next step of taking the requested profiles at the load line.
    pub(super) fn next_profile_step(&self, history: &History) -> Step {
        let Some(profiles) = &self.profiles else { return Step::Stop };
        let searched_ns = profiling::profiling_start_ns(history).unwrap_or(history.elapsed_ns);
        let line_rps = self.interim_load_line(searched_ns).rps;
        profiling::next_single_target_step(profiles, &self.settings.base, line_rps, history)
    }

    /// Returns the load line that the search would report after `elapsed_ns` of the study.
    pub fn interim_load_line(&self, elapsed_ns: u64) -> LoadLine {
        self.findings(elapsed_ns).load_line
    }

    /// Returns the findings of the search after `elapsed_ns` of the study.
    pub fn findings(&self, elapsed_ns: u64) -> Findings {
        find::conclude(&self.settings, &self.outcomes, elapsed_ns)
    }
}
