//! How findings look: figures become a [`Report`] of blocks, blocks become text; the same figures become JSON and CSV.
//!
//! This crate does not know how numbers were computed, and nothing of the engine. It writes to no stream: it returns
//! text, and the binary says where that goes.

#![forbid(unsafe_code)]

pub mod block;
pub mod csv;
pub mod flame;
pub mod format;
pub mod json;
pub mod levels;
pub mod profile;
pub mod text;

mod find;
mod run;
mod sweep;

pub use block::{Block, Report, Tone};
pub use find::{find_report, trial_line};
pub use run::{RunContext, load_text, progress_line, run_report};
pub use sweep::{SweepLevel, dat_line, sweep_header, sweep_row};
