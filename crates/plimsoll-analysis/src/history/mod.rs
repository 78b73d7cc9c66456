//! Runs over time: the list entry of each ([`HistoryRun`]), which runs are comparable
//! ([`incomparability`]), lanes of comparable runs ([`lanes`]), change points of a lane
//! ([`change_points`]), and whether a new run is worse than the earlier ones ([`gate`]).
//!
//! Not here: where runs are stored (`plimsoll-history`), and their presentation
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
