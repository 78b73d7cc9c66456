//! How a search spends its budget: how long its trials are, and how many of them decide.

use super::peak;
use super::stalls::Stalls;
use super::terms::{Settings, TIME_MAX_NS};
use crate::judge::TrialOutcome;
use plimsoll_model::Plan;
use plimsoll_model::units::{MS, SECOND};

/// How a budget is spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Length of a closed-loop trial.
    pub(super) peak_ns: u64,
    /// The climb to the peak ends at this time.
    pub(super) peak_until_ns: u64,
    /// Factor from one closed-loop trial to the next.
    pub(super) users_factor: u64,
    /// The first open trial, as a share of the peak.
    pub(super) first_share: f64,
    /// Length of an open trial while climbing.
    pub(super) climb_ns: u64,
    /// Length of an open trial near the line.
    pub(super) line_ns: u64,
    /// A load is decided by the majority of so many trials of that length; by fewer once they cannot be outvoted.
    pub(super) repeats: f64,
}

/// Every trial is as long as so many answers in turn take.
pub(super) const ANSWERS_IN_TURN: u64 = 3;
/// Trials near the line take this share of the budget at most, if both ends are decided by repeats.
pub(super) const LINE_SHARE: f64 = 0.6;

impl Pace {
    /// For this budget, and a server that takes `answer_ns` for an answer while it has nothing else to do.
    pub(super) fn of(budget_ns: u64, answer_ns: u64) -> Pace {
        let least_ns = (answer_ns.min(TIME_MAX_NS) * ANSWERS_IN_TURN).next_multiple_of(Plan::TICK_NS);
        let small = budget_ns < 25 * SECOND || least_ns > budget_ns / 30;
        let line_ns = match budget_ns {
            b if b >= 600 * SECOND => 10 * SECOND,
            b => (b / 12 / (100 * MS) * (100 * MS)).clamp(SECOND, 5 * SECOND),
        };
        let line_ns = line_ns.max(least_ns);
        let repeats: f64 = match budget_ns {
            b if b >= 300 * SECOND => 7.0,
            b if b >= 150 * SECOND => 5.0,
            b if b >= 25 * SECOND => 3.0,
            _ => 1.0,
        };
        let affordable = (LINE_SHARE / 2.0 * budget_ns as f64 / line_ns as f64).floor();
        Pace {
            peak_ns: if budget_ns < 25 * SECOND { 300 * MS } else { 500 * MS }.max(least_ns),
            peak_until_ns: budget_ns / 6,
            users_factor: if small { 4 } else { 2 },
            first_share: if small { 0.5 } else { 0.125 },
            climb_ns: SECOND.max(least_ns),
            line_ns,
            repeats: repeats.min(affordable).max(1.0),
        }
    }

    /// A load is decided by so many seconds of trials.
    pub(super) fn decide_s(&self) -> f64 {
        self.repeats * self.line_ns as f64 / 1e9
    }

    /// The same after some trials: how long an answer takes is known from the first load, beforehand from the first answer.
    pub(super) fn after(settings: &Settings, history: &[TrialOutcome], stalls: Option<&Stalls>) -> Pace {
        let mut pace = Pace::of(settings.budget_ns, peak::answer_ns(history).unwrap_or(settings.first_answer_ns));
        if let Some(stalls) = stalls {
            pace.line_ns = pace.line_ns.max(stalls.line_ns(settings.budget_ns) / Plan::TICK_NS * Plan::TICK_NS);
        }
        pace
    }
}
