//! The types that the parts of a search share: the settings, a trial to make, why the search ended,
//! and the trials as the search reads them.

use crate::judge::{OfferedLoad, TrialOutcome, Verdict};
use crate::slo::Slo;
use crate::watch::Watch;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Arrivals, PlanRecord, Purpose};
use serde::{Deserialize, Serialize};

/// The settings of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The request and everything else that all trials share; its load is not used.
    pub base: PlanRecord,
    /// The SLO.
    pub slo: Slo,
    /// The search ends within this time.
    pub budget_ns: u64,
    /// No rate above this is tried.
    pub max_rate: Option<f64>,
    /// Spacing of arrivals.
    pub arrivals: Arrivals,
    /// The time of the first response before the search; 0 without a test request. Trials are long
    /// enough for such responses until they have shown the response time.
    pub first_answer_ns: u64,
}

/// A trial to carry out now.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The purpose of the trial.
    pub purpose: Purpose,
    /// The plan of the trial.
    pub plan: PlanRecord,
    /// The watch that reads every tick, and may end the run early.
    pub watch: Watch,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The bracket is 1 % wide.
    Width,
    /// No further trial fits the budget.
    Budget,
    /// The generator was the limit.
    Client,
    /// Other processes disturbed all trials, or most of them.
    Disturbed,
    /// The highest rate allowed still passes.
    MaxRate,
    /// The lowest rate tried still fails.
    LowestFails,
    /// The server stalls so often that no rate holds.
    Stalls,
    /// Not a single request succeeded.
    NothingSucceeds,
    /// Not a single request was answered in the time that the first load had.
    NothingAnswered,
    /// The server takes no connection any more.
    Gone,
    /// It was interrupted.
    Interrupted,
}

/// No figure of a trial is larger than this, no time longer, and no rate smaller.
pub(super) const FIGURE_MAX: f64 = 1e12;
pub(super) const TIME_MAX_NS: u64 = 3600 * SECOND;
pub(super) const RATE_MIN: f64 = 1e-6;

/// The trials as the search reads them. Figures that are no numbers are dropped, and a trial
/// without completions has no capacity, so that ratios of capacities are safe.
pub(super) fn sound(history: &[TrialOutcome]) -> Vec<TrialOutcome> {
    let meant = |x: f64| (0.0..=FIGURE_MAX).contains(&x);
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
            // No plan has none, and twice none is none.
            OfferedLoad::Users(users) => *users = (*users).max(1),
        }
        for time_ns in [&mut trial.p50_ns, &mut trial.p99_ns, &mut trial.duration_ns, &mut trial.planned_ns] {
            *time_ns = (*time_ns).min(TIME_MAX_NS);
        }
        let TrialOutcome { achieved_rps, success_rate, evidence, .. } = &mut trial;
        evidence.saturated_rps = evidence.saturated_rps.filter(|rps| meant(*rps) && *rps > 0.0);
        evidence.little_gap = evidence.little_gap.filter(|gap| meant(*gap));
        if !meant(evidence.saturated_error) {
            // Not known at all.
            evidence.saturated_error = 1.0;
        }
        let evidence = [&mut evidence.excess, &mut evidence.service_mean_ns, &mut evidence.work_share];
        evidence.into_iter().chain([achieved_rps, success_rate]).for_each(number);
        trial
    };
    history.iter().map(clean).collect()
}

/// Whether other processes made a trial void.
pub(super) fn disturbed(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.interference.disturbed
}

/// Whether a trial was more than plimsoll could carry out.
pub(super) fn limited(trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Void && trial.evidence.generator_limited
}

/// Whether a trial was near the line, and not on the way there.
pub(super) fn near_line(trial: &TrialOutcome) -> bool {
    matches!(trial.purpose, Purpose::Line | Purpose::Confirm)
}
