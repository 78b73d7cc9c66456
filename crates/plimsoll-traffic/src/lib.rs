//! Parses traffic descriptions from text into values.
//!
//! A traffic file becomes a [`plimsoll_model::Traffic`]. An access log becomes statistics, a
//! replay, or a traffic file that models the log. Results of the load tester vegeta become
//! statistics.
//!
//! This crate reads no files, environment or clock, starts no threads and connects to no server.
//! The execution of a load and the display of results are in other crates.

#![forbid(unsafe_code)]

pub mod file;
pub mod import;
pub mod logs;
pub mod modelling;
pub mod replay;
pub mod survey;
pub mod target_url;
pub mod vegeta;

// The modules for builds with and without gRPC define the same names, so callers compile in both
// builds.
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_off.rs"]
pub mod grpc;
