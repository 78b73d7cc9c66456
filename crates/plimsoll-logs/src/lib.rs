//! Parses records of traffic that was sent before. An access log becomes statistics, a replay, or a
//! traffic file that models the log. Results of the load tester vegeta become statistics.
//!
//! This crate reads no files, environment or clock, starts no threads and connects to no server.
//! Not here: traffic files, and imports from other tools (`plimsoll_traffic`).

#![forbid(unsafe_code)]

pub mod access_log;
pub mod modelling;
pub mod replay;
pub mod survey;
pub mod vegeta;
