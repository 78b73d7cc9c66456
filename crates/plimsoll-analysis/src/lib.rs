//! What runs mean, and which plan to try next: plain functions on values.
//!
//! [`condition`] and [`slo`] read what a user asks of a run; [`summary`] computes a run's figures;
//! [`judge`](judge()) says whether a trial held the SLO, [`Watch`] as soon as that is certain;
//! [`find`] searches for the load line; [`prove`] compares builds; [`explain`] says what holds the
//! line; [`server`] says what the server used, [`interference`] whether other programs disturbed;
//! [`study`] is what each command does next, [`finding`] what it found in the end; [`doubts`] is
//! what speaks against that, in [`sentence`]s; [`profile`] reads profiles, sums them up and
//! compares them; [`stages`] are the figures of a staged load by stage, [`quantile`] says which
//! quantiles may be stated, [`fitness`] whether a machine is fit to measure; [`live_meter`] has the
//! figures of a load under way. [`format`](mod@format) writes every figure, wherever it is said.
//!
//! This crate knows no sockets, files, threads, no current time, and no layout: sentences are its
//! only text. How a run was made and how a finding looks are the affair of others.

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
