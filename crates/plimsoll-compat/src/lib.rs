//! The command lines of wrk, wrk2, vegeta, ab and hey, and how these tools print.
//!
//! A tool's command line becomes a line of `run` ([`RunVerb`]), so there is one interpretation and
//! one record. What a tool counts of each response beside a run's own figures is an author's to
//! hear (`response_log`), and the run's figures become the tool's text.
//!
//! What must never be known here: how a load is carried out, what a run means, the flags of `run`
//! beyond their spelling, and how plimsoll's own results look. The program behind [`RunVerb`] knows
//! those.

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
