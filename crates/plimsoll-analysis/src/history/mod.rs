//! Runs over time. [`HistoryRun`] is the entry of a run in a list. [`incomparability_reasons`]
//! decides whether two runs are comparable, and [`lanes`] groups comparable runs. [`change_points`]
//! finds the changes within a group, and [`gate`] compares a new commit with earlier runs.
//!
//! Not here: the storage of runs (`plimsoll-history`), and the display of runs (`plimsoll-report`).

pub mod change_points;
pub mod gate;
pub mod lanes;
pub mod run;
mod summary;

pub use change_points::{ChangePoint, change_points};
pub use gate::{GateFinding, GateVerdict, compare_commit_with_branch};
pub use lanes::{
    ComparableRunSeries, ConcurrentChanges, SeriesChange, SeriesOrder, SeriesPoint, group_comparable_runs,
    incomparability_reasons,
};
pub use run::{HistoryRun, RunState};
pub use summary::study_summary;
