//! Estimates from counts, as pure arithmetic. The counts of trials give the capacity of a server
//! and its load line. The counts of blocks give the ratio of two builds (a block is one load on
//! each build).
//!
//! The functions of this crate evaluate likelihoods and resample blocks many thousand times while a
//! study runs. So the functions are in a separate crate, which the compiler optimises for speed in
//! releases and tests.
//!
//! Not here: the choice of the trials that count, the next trial, verdicts, and any text
//! (plimsoll-analysis).

#![forbid(unsafe_code)]

pub mod basics;
pub mod capacity;
mod capacity_model;
mod direct_model;
pub mod line_distribution;
pub mod line_models;
pub mod normal;
mod rejection_model;
pub mod resample;

pub use capacity::{Capacity, INTERVAL_90_STANDARD_ERRORS, SaturatedTrial, Saturation};
pub use line_distribution::LoadLineDistribution;
pub use line_models::{ALLOWED_BAD_SHARE_MIN, BoundEvidence, OpenTrial, ServerModelInputs};
