//! Parses traffic descriptions from text into values.
//!
//! A traffic file becomes a [`plimsoll_model::Traffic`]. Files of other tools become a traffic
//! file.
//!
//! This crate reads no files, environment or clock, starts no threads and connects to no server.
//! The execution of a load and the display of results are in other crates, and so are access logs
//! (`plimsoll_logs`).

#![forbid(unsafe_code)]

pub mod file;
pub mod import;
pub mod target_url;

// The modules for builds with and without gRPC define the same names, so callers compile in both
// builds.
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_off.rs"]
pub mod grpc;
