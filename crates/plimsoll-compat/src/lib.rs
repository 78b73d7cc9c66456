//! Emulates the command lines and the output of wrk, wrk2, vegeta, ab and hey.
//!
//! The command line of an emulated tool becomes arguments of `plimsoll run` ([`RunCommand`]), so
//! plimsoll parses and records the load as any other load. Some tools report more about each
//! response than a run file (plimsoll's record of a load) contains. `response_log` counts these
//! additional figures. The figures of the load are formatted as the emulated tool prints them.
//!
//! This crate must not depend on how a load is executed, what a run means, or how plimsoll formats
//! its own results. The crate knows only the flags of `run`. The program that implements
//! [`RunCommand`] executes the load and formats plimsoll's own results.

#![forbid(unsafe_code)]

pub mod ab;
mod go_flags;
mod go_redirect;
mod go_request;
pub mod hey;
mod output;
#[cfg(test)]
mod random_command_lines;
mod response_log;
mod run_command;
pub mod vegeta;
pub mod wrk;

pub use run_command::{FinishedLoad, PrintResults, RunCommand, WrkScript};
