//! What a step of the search knows before it looks for anything ([`Known`]): what is asked, the trials so far, and what all of them
//! together say of stalls and of the pace. It is worked out once a step, since it reads every trial.

use super::pace::Pace;
use super::stalls::Stalls;
use super::terms::Settings;
use crate::judge::TrialOutcome;

/// What is known after some trials.
pub(super) struct Known<'a> {
    /// What is searched for.
    pub(super) settings: &'a Settings,
    /// The trials, in order.
    pub(super) history: &'a [TrialOutcome],
    /// The stalls that they met.
    pub(super) stalls: Option<Stalls>,
    /// How the budget is spent.
    pub(super) pace: Pace,
}

impl<'a> Known<'a> {
    pub(super) fn of(settings: &'a Settings, history: &'a [TrialOutcome]) -> Known<'a> {
        let stalls = Stalls::seen(settings, history);
        let pace = Pace::after(settings, history, stalls.as_ref());
        Known { settings, history, stalls, pace }
    }
}
