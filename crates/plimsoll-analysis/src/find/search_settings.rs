//! The types that the parts of a search share: settings, the next trial, the reason to stop, and
//! trial outcomes without invalid figures.

use crate::judge::{OfferedLoad, TrialOutcome, Verdict};
use crate::slo::Slo;
use crate::watch::TrialWatch;
use plimsoll_model::units::SECOND;
use plimsoll_model::{ArrivalSpacing, LoadPurpose, PlanRecord};
use serde::{Deserialize, Serialize};

/// The settings of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSettings {
    /// The traffic and the connection options that all trials share; each trial has its own load.
    pub base: PlanRecord,
    /// The SLO that defines the load line.
    pub slo: Slo,
    /// The maximum length of the search, ns (its budget).
    pub budget_ns: u64,
    /// The maximum rate of a trial, 1/s; `None` means no limit.
    pub max_rate: Option<f64>,
    /// Spacing of arrivals in the open trials.
    pub arrivals: ArrivalSpacing,
    /// Response time of the test request before the search, ns; 0 without a test request. Until the
    /// first load shows the response time, trials are long enough for the response time of the test
    /// request.
    pub preflight_ns: u64,
}

/// A trial that the caller of the search executes next.
#[derive(Debug, Clone)]
pub struct PlannedTrial {
    /// The purpose of the trial in the search.
    pub purpose: LoadPurpose,
    /// The plan of the trial.
    pub plan: PlanRecord,
    /// The watch that reads each tick of the trial and may end the trial early.
    pub watch: TrialWatch,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The load line is known to within 1 %: the ends of its 90 % interval differ by at most 2 %.
    #[serde(rename = "width")]
    PrecisionReached,
    /// No further trial fits into the time budget of the search.
    Budget,
    /// plimsoll itself was the limit: it could not generate a higher rate.
    #[serde(rename = "client")]
    GeneratorLimited,
    /// Other processes disturbed most trials.
    Disturbed,
    /// The highest allowed rate meets the SLO.
    MaxRate,
    /// Even the lowest rate that the search tried breaks the SLO.
    LowestFails,
    /// The server stalls so often that no rate meets the SLO.
    Stalls,
    /// No request succeeded.
    NothingSucceeds,
    /// No request of the first load got a response in time.
    NothingAnswered,
    /// The server accepts no more connections.
    #[serde(rename = "gone")]
    ServerLost,
    /// The user interrupted the search.
    Interrupted,
}

/// The maximum of any figure of a trial; a larger figure is invalid.
pub(super) const TRIAL_FIGURE_MAX: f64 = 1e12;
/// The maximum of any time of a trial, ns; a longer time is cut to this maximum.
pub(super) const TIME_MAX_NS: u64 = 3600 * SECOND;
/// The minimum rate of a trial, 1/s; a lower rate counts as 0.
pub(super) const RATE_MIN: f64 = 1e-6;

/// Returns copies of the trials with valid figures: an invalid figure becomes 0 or unknown. A trial
/// without completions gets no capacity, so that no ratio of capacities divides by zero.
pub(super) fn replace_invalid_figures(history: &[TrialOutcome]) -> Vec<TrialOutcome> {
    let meant = |x: f64| (0.0..=TRIAL_FIGURE_MAX).contains(&x);
    let number = |x: &mut f64| {
        if !meant(*x) {
            *x = 0.0;
        }
    };
    let clean = |trial: &TrialOutcome| {
        let mut trial = trial.clone();
        match &mut trial.load {
            OfferedLoad::Rate(rate) => {
                number(rate);
                if *rate < RATE_MIN {
                    *rate = 0.0;
                }
            }
            // A plan has at least one user. A count of 0 would stay 0 when the search doubles the
            // number of users.
            OfferedLoad::Users(users) => *users = (*users).max(1),
        }
        for time_ns in [&mut trial.p50_ns, &mut trial.p99_ns, &mut trial.duration_ns, &mut trial.planned_ns] {
            *time_ns = (*time_ns).min(TIME_MAX_NS);
        }
        let TrialOutcome { goodput_rps, success_rate, evidence, .. } = &mut trial;
        evidence.saturated_rps = evidence.saturated_rps.filter(|rps| meant(*rps) && *rps > 0.0);
        evidence.littles_law_gap = evidence.littles_law_gap.filter(|gap| meant(*gap));
        if !meant(evidence.saturated_error) {
            // If the error of a saturated trial's rate is invalid, the precision of the rate is
            // unknown. The relative error then becomes 1 (100 %).
            evidence.saturated_error = 1.0;
        }
        let evidence = [&mut evidence.bad_to_allowed_ratio, &mut evidence.service_mean_ns, &mut evidence.work_share];
        evidence.into_iter().chain([goodput_rps, success_rate]).for_each(number);
        trial
    };
    history.iter().map(clean).collect()
}

/// Returns whether a trial is void because its load exceeded plimsoll's capacity.
pub(super) fn is_void_by_generator(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.evidence.is_generator_limited
}

/// Returns whether a trial is an open trial near the load line. Earlier trials, whose rates still
/// rise towards the load line, do not count.
pub(super) fn is_line_or_confirming_trial(trial: &TrialOutcome) -> bool {
    matches!(trial.purpose, LoadPurpose::Line | LoadPurpose::Confirm)
}
