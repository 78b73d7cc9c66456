//! Runs over time: what a list shows of each ([`HistoryRun`]), which of them may be compared
//! ([`incomparability`]), the lanes of runs that may ([`lanes`]), where a lane changed
//! ([`change_points`]), and whether a new run is worse than the runs before it ([`gate`]).
//!
//! Not here: where runs are kept and found (`plimsoll-history`), and how they look
//! (`plimsoll-report`).

pub mod change_points;
pub mod gate;
pub mod lanes;
pub mod run;
mod summary;

pub use change_points::{ChangePoint, change_points};
pub use gate::{GateFinding, GateVerdict, gate};
pub use lanes::{ConcurrentChanges, HistoryLane, LaneChange, LaneOrder, SeriesPoint, incomparability, lanes};
pub use run::{HistoryRun, RunState};
pub use summary::study_summary;
