//! The division of a search's budget ([`BudgetDivision`]): the lengths of trials, and the growth of
//! the number of users from trial to trial.

use super::peak;
use super::search_settings::{SearchSettings, TIME_MAX_NS};
use super::stalls::Stalls;
use crate::judge::TrialOutcome;
use plimsoll_model::Plan;
use plimsoll_model::units::{MS, SECOND};

/// The division of a search's budget into trials.
#[derive(Debug, Clone, Copy)]
pub(super) struct BudgetDivision {
    /// Length of a closed-loop trial of the climb (trials with more and more users), ns.
    pub(super) climb_trial_ns: u64,
    /// Latest end of the climb (trials with more and more users), ns since the start of the search.
    pub(super) climb_end_ns_max: u64,
    /// Factor between the numbers of users of two successive closed-loop trials.
    pub(super) users_factor: u64,
    /// Minimum length of a closed-loop trial that saturates the server, ns.
    pub(super) saturated_trial_ns_min: u64,
    /// Length of an open-loop trial near the load line, ns.
    pub(super) line_trial_ns: u64,
    /// Whether the budget allows only few trials. With a small budget, some parts of the search
    /// have fewer trials.
    pub(super) has_few_trials: bool,
}

/// Minimum length of every trial, as a multiple of the response time of a single user.
pub(super) const TRIAL_RESPONSE_TIMES_MIN: u64 = 3;
impl BudgetDivision {
    /// Computes how a search divides this budget into trials, for a server whose response takes
    /// `answer_ns` without load.
    pub(super) fn for_budget(budget_ns: u64, answer_ns: u64) -> BudgetDivision {
        let least_ns = (answer_ns.min(TIME_MAX_NS) * TRIAL_RESPONSE_TIMES_MIN).next_multiple_of(Plan::TICK_NS);
        let has_few_trials = budget_ns < 25 * SECOND || least_ns > budget_ns / 30;
        let line_ns = match budget_ns {
            b if b >= 600 * SECOND => 10 * SECOND,
            b => (b / 12 / (100 * MS) * (100 * MS)).clamp(SECOND.min((b / 6).next_multiple_of(100 * MS)), 5 * SECOND),
        };
        let line_trial_ns = line_ns.max(least_ns);
        BudgetDivision {
            climb_trial_ns: if budget_ns < 25 * SECOND { 300 * MS } else { 500 * MS }.max(least_ns),
            climb_end_ns_max: budget_ns / 6,
            users_factor: if has_few_trials { 4 } else { 2 },
            saturated_trial_ns_min: (budget_ns / 50 / (100 * MS) * (100 * MS)).clamp(500 * MS, 1200 * MS).max(least_ns),
            line_trial_ns,
            has_few_trials,
        }
    }

    /// Computes how the search divides its budget into trials, from the trials in `history`. The
    /// lengths of trials depend on the response time of a single user in the first load. Before the
    /// first load is made, the lengths depend on the response time of the test request.
    pub(super) fn from_history(
        settings: &SearchSettings,
        history: &[TrialOutcome],
        stalls: Option<&Stalls>,
    ) -> BudgetDivision {
        let mut pace = BudgetDivision::for_budget(
            settings.budget_ns,
            peak::single_user_response_ns(history).unwrap_or(settings.preflight_ns),
        );
        if let Some(stalls) = stalls {
            pace.line_trial_ns =
                pace.line_trial_ns.max(stalls.line_trial_ns_min(settings.budget_ns) / Plan::TICK_NS * Plan::TICK_NS);
        }
        pace
    }
}
