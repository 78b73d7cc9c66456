//! The meaning of runs, and the next plan to try: plain functions on values.
//!
//! [`condition`] and [`slo`] parse a user's conditions; [`summary`] computes a run's figures.
//! [`judge`](judge()) compares a trial with the SLO, and [`Watch`] does so as soon as the result is
//! certain. [`find`] searches for the load line; [`prove`] compares builds; [`explain`] finds the
//! cause that limits the line. [`server`] has the server's CPU use, and [`interference`] that of
//! other programs. [`study`] chooses the next load of each command, [`finding`] has its result,
//! [`doubts`] the evidence against it, in [`sentence`]s. [`profile`] parses, sums and compares
//! profiles; [`stages`] are the figures of a staged load by stage. [`quantile`] decides which
//! quantiles may be stated, [`fitness`] whether a machine is fit to measure; [`live_meter`] has the
//! figures of a running load. [`format`](mod@format) formats every figure.
//!
//! This crate has no sockets, files, threads, current time or layout: sentences are its only text.
//! Other crates make runs and show findings.

#![forbid(unsafe_code)]

pub mod by_route;
pub mod condition;
mod condition_watch;
pub mod doubts;
pub mod explain;
pub mod failed;
pub mod find;
pub mod finding;
pub mod fitness;
pub mod fleet;
pub mod format;
mod held_back;
pub mod history;
pub mod interference;
pub mod judge;
pub mod levels;
pub mod live_meter;
mod named;
pub mod overload;
pub mod profile;
pub mod prove;
pub mod quantile;
pub mod saturation;
pub mod sentence;
pub mod series;
pub mod server;
pub mod server_view;
pub mod slo;
pub mod stages;
pub mod stalls;
pub mod study;
pub mod summary;
pub mod taken_profiles;
pub mod watch;

pub use by_route::RouteSummary;
pub use condition::{Condition, Conditions, Crossing};
pub use condition_watch::ConditionWatch;
pub use doubts::{Assessment, Doubt, DoubtKind, Doubts};
pub use failed::FailedKind;
pub use find::{Findings, Measure, SearchStep, ServerUseAtLine, Settings, StopReason};
pub use finding::{Finding, NoFinding, conclude};
pub use interference::Interference;
pub use judge::{OfferedLoad, TrialOutcome, Verdict, judge};
pub use quantile::{Quantile, Quantiles};
pub use sentence::{Remedy, Sentence, SentencePart};
pub use server::ServerUse;
pub use server_view::ServerView;
pub use slo::Slo;
pub use study::Study;
pub use summary::Summary;
pub use watch::Watch;
