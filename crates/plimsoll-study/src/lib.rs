//! Executes studies: the loop over loads, the runners, recordings, setup and teardown, and builds
//! under test. A study answers a question, such as a search for the load line, with several loads.
//! The crate also checks the addresses, certificates, files and threads that a load needs on this
//! machine.
//!
//! This crate must not depend on the command line's parser or on the presentation
//! (`plimsoll-report`). `plimsoll-analysis` chooses the loads and interprets their results.

#![forbid(unsafe_code)]

pub mod base;
pub mod baseline;
mod bounded_log;
pub mod build_keeper;
pub mod capacity;
pub mod connection_inputs;
pub mod curl_body;
pub mod curl_line;
pub mod demo_server;
pub mod fields;
pub mod file_traffic;
pub mod gate;
pub mod git_builds;
pub mod hints;
pub mod import_source;
pub mod interventions;
pub mod load_profiles;
pub mod log_replay;
pub mod logs;
pub mod message;
pub mod model_check;
pub mod output;
pub mod part;
pub mod pauser;
pub mod pprof;
pub mod preflight;
pub mod profile_capture;
pub mod profile_input;
pub mod prove_targets;
pub mod quantity;
pub mod recording;
pub mod rerun;
pub mod result_store;
pub mod runner;
pub mod script_run;
pub mod self_measurement;
mod self_process;
pub mod setup_teardown;
pub mod side_profiles;
mod source_revision;
pub mod study_loop;
pub mod subject;
pub mod target;
pub mod traffic_file;
pub mod value_class;

// The files `grpc.rs` and `grpc_off.rs` have the same public items. `grpc.rs` is for builds with
// gRPC, and `grpc_off.rs` is for builds without gRPC.
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_off.rs"]
pub mod grpc;
