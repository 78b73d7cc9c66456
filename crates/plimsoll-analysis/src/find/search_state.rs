//! The state of a search before its next step ([`SearchState`]): the settings and the trials. The
//! stalls and the division of the budget follow from the trials. The state is computed once for
//! each step of the search, because the computation reads every trial.

use super::budget_division::BudgetDivision;
use super::capacity::estimate_capacity;
use super::search_settings::SearchSettings;
use super::stalls::{NoResponsePeriods, Stalls};
use crate::judge::TrialOutcome;
use plimsoll_statistics::Capacity;

/// The state of a search after some trials.
pub(super) struct SearchState<'a> {
    /// The settings of the search.
    pub(super) settings: &'a SearchSettings,
    /// The trials that show the present capacity of the server, in order.
    pub(super) history: &'a [TrialOutcome],
    /// The stalls in the trials of `history`: periods in which the server answered no request.
    /// `None` if the server did not stall.
    pub(super) stalls: Option<Stalls>,
    /// The division of the budget into trials.
    pub(super) budget_division: BudgetDivision,
}

impl<'a> SearchState<'a> {
    pub(super) fn new(settings: &'a SearchSettings, history: &'a [TrialOutcome]) -> SearchState<'a> {
        let stalls = match Stalls::detect(settings, history) {
            NoResponsePeriods::Stalls(stalls) => Some(stalls),
            NoResponsePeriods::None | NoResponsePeriods::OnlyAboveCapacity => None,
        };
        let pace = BudgetDivision::from_history(settings, history, stalls.as_ref());
        SearchState { settings, history, stalls, budget_division: pace }
    }

    /// Returns the mean service time of a request of a single user, s; 0 before the first load.
    pub(super) fn single_user_service_s(&self) -> f64 {
        let first = self.history.iter().find(|trial| trial.user_count() == Some(1));
        first.map_or(0.0, |trial| trial.evidence.service_mean_ns / 1e9)
    }

    /// Returns the throughput of the server while its queue is never empty, with the error of the
    /// throughput. Returns `None` without a saturated trial.
    pub(super) fn estimate_capacity(&self) -> Option<Capacity> {
        estimate_capacity(self.history, self.single_user_service_s())
    }
}
