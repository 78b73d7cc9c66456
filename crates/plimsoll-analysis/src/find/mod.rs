//! The search for the load line: the highest open-loop rate that a server holds under an SLO for as long as one cares to
//! look. [`next`] is a pure function of what was measured so far; who calls it carries the plans out.
//!
//! The search goes through four parts. *Peak*: a closed-loop climb (1, 2, 4, ... users) finds the peak goodput and the
//! knee. *Climb*: open trials of 1 s double the rate until the SLO breaks, twice, and close in on the line. *Line*:
//! trials of 5 s at neighbouring loads of a 1 % grid, interleaved, are classified as MLRsearch does (a load is a lower
//! bound once enough time passed there or above, an upper bound once enough failed there or below; one bad trial in
//! between decides nothing). *Confirm*: a last trial at the line. What a failing trial shows of the server's capacity
//! only chooses the next load; the verdicts alone decide.
//!
//! Servers with a memory are brought into a known state first: one that fell behind is let drain, one that rejects (a
//! limiter with saved-up tokens) is pushed until it rejects again right before each trial.
//!
//! Not here: carrying plans out, and any account of *why* a server has its limit.

mod at_line;
mod belief;
mod capacity;
mod choice;
mod failing;
mod findings;
mod gate;
mod gone;
mod log_rate;
mod normal;
mod pace;
mod peak;
mod plans;
mod quota;
mod rejecting;
mod so_far;
mod stalls;
mod terms;

pub use at_line::AtLine;
pub use capacity::Capacity;
pub use failing::{Failing, FailingHow};
pub use findings::{Findings, Forecast, LoadLine, forecast};
pub use gate::{Demand, DemandError};
pub use gone::Gone;
pub use log_rate::LogRate;
pub use peak::{Knee, Peak, best};
pub use stalls::Stalls;
pub use terms::{Measure, Settings, StoppedBy};

use crate::judge::TrialOutcome;
use choice::LoadChoice;
use so_far::TrialsSoFar;
use terms::sound;

/// What to do next.
#[derive(Debug, Clone)]
pub enum SearchStep {
    /// Carry this out, judge it, and ask again.
    Measure(Box<Measure>),
    /// The search is over.
    Stop(Box<Findings>),
}

/// What to do after the trials in `history`, `elapsed_ns` after the search began. The same arguments always give the
/// same step.
pub fn next(settings: &Settings, history: &[TrialOutcome], elapsed_ns: u64) -> SearchStep {
    let sound = sound(history);
    match LoadChoice::new(&TrialsSoFar::of(settings, &sound), elapsed_ns).step() {
        Ok(measure) => SearchStep::Measure(Box::new(measure)),
        Err(stopped_by) => SearchStep::Stop(Box::new(findings::of(settings, history, elapsed_ns, stopped_by))),
    }
}

/// Whether `later`, a steady load at the stated line or below it, broke the SLO by more than chance: then no such line holds.
pub fn refutes(settings: &Settings, history: &[TrialOutcome], later: &TrialOutcome, line: LoadLine) -> bool {
    let sound = sound(history);
    line.lower > 0.0 && choice::refutes(&TrialsSoFar::of(settings, &sound), later, line.lower)
}

/// What the trials say when no further one will be made: of a recorded search, or one that was interrupted.
pub fn conclude(settings: &Settings, history: &[TrialOutcome], elapsed_ns: u64) -> Findings {
    match next(settings, history, elapsed_ns) {
        SearchStep::Stop(findings) => *findings,
        SearchStep::Measure(_) => findings::of(settings, history, elapsed_ns, StoppedBy::Interrupted),
    }
}
