//! Runs over time. A list shows the entry of each run ([`HistoryRun`]). [`incomparability`] decides
//! which runs are comparable, and [`lanes`] groups these. [`change_points`] finds changes of a
//! lane, and [`gate`] compares a new run with earlier runs.
//!
//! Not here: where runs are stored (`plimsoll-history`), and how runs look (`plimsoll-report`).

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
