//! Pure functions that compute the figures and findings of recorded runs, and that choose the next
//! plan to try.
//!
//! [`condition`] and [`slo`] parse the user's requirements. [`summary`] computes the figures of a
//! run. [`judge`](judge()) decides whether a trial met the SLO. [`TrialWatch`] decides when a
//! running trial ends early, for example when it has certainly broken the SLO.
//!
//! [`find`] searches for the load line, [`prove`] compares builds, and [`explain`] diagnoses the
//! bottleneck. [`server`] computes the server's use of CPU and memory. [`interference`] decides
//! whether other processes disturbed a load.
//!
//! [`study`] computes the next step of each kind of study, and [`finding`] computes the result of
//! the study. [`doubts`] collects the evidence against a result, in [`sentence`]s. [`profile`]
//! parses, sums up and compares profiles.
//!
//! [`stages`] computes the figures of each stage of a load, and [`quantile`] decides which
//! quantiles have enough requests to be stated. [`fitness`] decides whether a machine is fit for
//! measurements. [`live_meter`] has the figures of a running load. [`format`](mod@format) formats
//! every figure of every output.
//!
//! This crate uses no sockets, files, threads or clock, and does not arrange reports. The only text
//! that this crate creates is sentences. Other crates execute the runs and render the findings.

#![forbid(unsafe_code)]

pub mod by_route;
pub mod condition;
mod condition_watch;
mod delayed_acks;
pub mod doubts;
pub mod explain;
pub mod failed;
pub mod find;
pub mod finding;
pub mod fitness;
pub mod fleet;
pub mod format;
pub mod history;
pub mod interference;
pub mod judge;
pub mod levels;
pub mod live_meter;
pub mod overload;
pub mod profile;
pub mod profile_findings;
pub mod prove;
pub mod quantile;
mod request_names;
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
pub mod watch;

pub use by_route::RouteSummary;
pub use condition::{Condition, Conditions, CrossedCondition};
pub use condition_watch::ConditionWatch;
pub use doubts::{Assessment, Doubt, DoubtKind, Doubts};
pub use failed::FailedResponseGroup;
pub use find::{Findings, PlannedTrial, SearchSettings, SearchStep, ServerUseAtLine, StopReason};
pub use finding::{Finding, NoFinding, compute_finding};
pub use interference::Interference;
pub use judge::{OfferedLoad, TrialOutcome, Verdict, judge};
pub use quantile::{Quantile, Quantiles};
pub use sentence::{Remedy, Sentence, SentencePart};
pub use server::ServerUse;
pub use server_view::ServerView;
pub use slo::Slo;
pub use study::Study;
pub use summary::Summary;
pub use watch::TrialWatch;
