//! Emulates the command lines and the output of wrk, wrk2, vegeta, ab and hey.
//!
//! The command line of such a tool becomes arguments of `plimsoll run` ([`RunVerb`]), so the load
//! is parsed and recorded as any other. Some tools report more about each response than a run file
//! contains; `response_log` counts these figures. The figures of the load are then formatted as the
//! tool prints them.
//!
//! This crate must not depend on how a load is executed, what a run means, or how plimsoll formats
//! its own results. The crate knows only the flags of `run`. The program that implements
//! [`RunVerb`] does the rest.

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
