//! The search for the load line: the highest mean arrival rate at which a server in steady state
//! meets an SLO. [`next`] is a pure function of the measured trials; the caller executes the plans.
//!
//! The search has four parts. *Peak*: closed loads with 1, 2, 4, ... users find the peak goodput
//! and the knee (fewest users with 95 % of the peak). *Saturate*: closed loads with more users than
//! the server can handle at once show its capacity ([`Capacity`]), because its queue is never
//! empty.
//!
//! *Line*: open trials try rates near the probable load line. All trials together give a
//! distribution of the load line ([`line_distribution`]). The next trial tries the middle or an end
//! of this distribution, or makes the capacity more exact ([`choice`]). *Confirm*: a longer trial
//! runs at the lower end of the load line's interval. After the search, the study may run a soak, a
//! long load at the load line ([`soak`]).
//!
//! Before each trial, a server that keeps state between trials is brought into a known state. A
//! server that fell behind first drains its backlog. A server with a rate limiter may have saved
//! tokens, and a load before each trial exhausts these tokens.
//!
//! Not here: executing plans, and the reason *why* a server has its limit.

mod at_line;
mod budget_division;
mod capacity;
mod chance;
mod choice;
mod constant_failure;
mod findings;
mod gate;
mod line_distribution;
mod line_estimate;
mod log_rate;
mod peak;
mod plans;
mod present_capacity;
mod quota;
mod rejection;
mod search_settings;
mod search_state;
mod soak;
mod stalls;
mod target_loss;

pub use at_line::ServerUseAtLine;
pub use constant_failure::{ConstantFailure, SloBreakKind};
pub use findings::{Findings, Forecast, LoadLine, forecast};
pub use gate::{FailCondition, FailConditionError, UndecidedFailCondition};
pub use log_rate::AccessLogRate;
pub use peak::{Knee, Peak, highest_goodput};
pub use plimsoll_statistics::Capacity;
pub use present_capacity::LastCapacityChange;
pub use search_settings::{PlannedTrial, SearchSettings, StopReason};
pub use soak::{Soak, SoakViolation, SoakViolationKind, soak_segments};
pub use stalls::Stalls;
pub use target_loss::ServerLoss;

use crate::judge::TrialOutcome;
use choice::TrialChooser;
use search_settings::replace_invalid_figures;
use search_state::SearchState;

/// The next step of a search: another trial, or the result.
#[derive(Debug, Clone)]
pub enum SearchStep {
    /// The caller executes this trial, judges it, and calls [`next`] again.
    Measure(Box<PlannedTrial>),
    /// The search is finished.
    Stop(Box<Findings>),
}

/// Returns the next step of a search after the trials in `history`, `elapsed_ns` after its start.
/// Equal arguments always give an equal step.
pub fn next(settings: &SearchSettings, history: &[TrialOutcome], elapsed_ns: u64) -> SearchStep {
    let all = replace_invalid_figures(history);
    let present = LastCapacityChange::trials_at_present_capacity(&all, LastCapacityChange::detect(&all));
    match TrialChooser::new(&SearchState::new(settings, &present), &all, elapsed_ns).next_trial() {
        Ok(measure) => SearchStep::Measure(Box::new(measure)),
        Err(stopped_by) => {
            SearchStep::Stop(Box::new(findings::findings_from_trials(settings, history, elapsed_ns, stopped_by)))
        }
    }
}

/// Returns whether `later`, a steady load at the lower end of the load line or below, broke the SLO
/// by more than chance. If `later` broke the SLO by more than chance, the load line in `line` is
/// too high.
pub fn contradicts_load_line(
    settings: &SearchSettings,
    history: &[TrialOutcome],
    later: &TrialOutcome,
    line: LoadLine,
) -> bool {
    let all = replace_invalid_figures(history);
    let present = LastCapacityChange::trials_at_present_capacity(&all, LastCapacityChange::detect(&all));
    let known = SearchState::new(settings, &present);
    let at_most = later.offered_rps().is_some_and(|rate| rate <= line.lower);
    let dispersion = chance::backlog_dispersion(&known, known.estimate_capacity().as_ref());
    line.lower > 0.0 && at_most && chance::breaks_slo_even_if_disturbed(later, dispersion)
}

/// Computes the result of a recorded or interrupted search from its trials, without a further
/// trial.
pub fn conclude(settings: &SearchSettings, history: &[TrialOutcome], elapsed_ns: u64) -> Findings {
    match next(settings, history, elapsed_ns) {
        SearchStep::Stop(findings) => *findings,
        SearchStep::Measure(_) => {
            findings::findings_from_trials(settings, history, elapsed_ns, StopReason::Interrupted)
        }
    }
}
