//! Emulates the command lines and the output of wrk, wrk2, vegeta, ab and hey.
//!
//! A tool's command line becomes arguments of `run` ([`RunVerb`]), so there is one parser and one
//! record. Some tools report more about each response than a run records; `response_log` counts
//! these figures. The run's figures are then formatted as the tool's text.
//!
//! This crate must not depend on how a load is executed, what a run means, or how plimsoll formats
//! its own results. The crate knows only the spelling of the flags of `run`. The program that
//! implements [`RunVerb`] does the rest.

#![forbid(unsafe_code)]

pub mod ab;
mod go_flags;
mod go_redirect;
mod go_request;
pub mod hey;
#[cfg(test)]
mod mangled_words;
mod output;
mod response_log;
mod run_verb;
pub mod vegeta;
pub mod wrk;

pub use run_verb::{FinishedLoad, PrintResults, RunVerb, WrkScript};
