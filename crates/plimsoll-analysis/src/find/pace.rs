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
    /// Length of a saturated trial, at the least.
    pub(super) block_ns: u64,
    /// Length of an open trial near the line.
    pub(super) line_ns: u64,
    /// The budget has room for few trials.
    pub(super) few: bool,
}

/// Every trial is as long as so many answers in turn take.
pub(super) const ANSWERS_IN_TURN: u64 = 3;
impl Pace {
    /// The pace for this budget and a server with a response time of `answer_ns` when idle.
    pub(super) fn for_budget(budget_ns: u64, answer_ns: u64) -> Pace {
        let least_ns = (answer_ns.min(TIME_MAX_NS) * ANSWERS_IN_TURN).next_multiple_of(Plan::TICK_NS);
        let small = budget_ns < 25 * SECOND || least_ns > budget_ns / 30;
        let line_ns = match budget_ns {
            b if b >= 600 * SECOND => 10 * SECOND,
            b => (b / 12 / (100 * MS) * (100 * MS)).clamp(SECOND.min((b / 6).next_multiple_of(100 * MS)), 5 * SECOND),
        };
        let line_ns = line_ns.max(least_ns);
        Pace {
            peak_ns: if budget_ns < 25 * SECOND { 300 * MS } else { 500 * MS }.max(least_ns),
            peak_until_ns: budget_ns / 6,
            users_factor: if small { 4 } else { 2 },
            block_ns: (budget_ns / 50 / (100 * MS) * (100 * MS)).clamp(500 * MS, 1200 * MS).max(least_ns),
            line_ns,
            few: small,
        }
    }

    /// The pace after some trials: the response time comes from the first load, before that from
    /// the preflight request.
    pub(super) fn after(settings: &Settings, history: &[TrialOutcome], stalls: Option<&Stalls>) -> Pace {
        let mut pace =
            Pace::for_budget(settings.budget_ns, peak::answer_ns(history).unwrap_or(settings.first_answer_ns));
        if let Some(stalls) = stalls {
            pace.line_ns = pace.line_ns.max(stalls.line_ns(settings.budget_ns) / Plan::TICK_NS * Plan::TICK_NS);
        }
        pace
    }
}
