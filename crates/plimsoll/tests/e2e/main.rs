//! End-to-end tests: the real binary against real servers on free loopback ports. Loads are short
//! and bounded.
//!
//! No test judges speed, because machines differ. The tests assert properties that are true on any
//! machine: sums of request outcomes are exact, errors are one sentence, and run files stay
//! readable.

#![forbid(unsafe_code)]

mod action;
mod addresses;
mod another_machine;
mod attack;
#[cfg(feature = "web")]
mod browser;
mod builds;
mod capture;
mod curl;
#[cfg(feature = "png")]
mod diff;
mod doctor;
mod experiments;
mod explain;
mod extremes;
mod faults;
mod figures;
mod files;
mod find;
mod fleet;
mod fleet_nats;
mod floods;
mod follow;
mod gates;
#[cfg(feature = "grpc")]
mod grpc;
mod h2;
mod history;
mod hostile;
mod import;
mod install;
mod interference;
mod live;
mod mix;
mod model;
mod other_tools;
mod output;
mod overload;
mod probes;
mod profile;
mod prove;
mod prove_profiles;
mod prove_revisions;
mod public;
mod replay;
mod report;
mod rerun;
mod run;
mod scale;
mod scenario;
mod screens;
mod secrets;
#[cfg(feature = "web")]
mod serve;
#[cfg(feature = "web")]
mod serve_pages;
mod setup_teardown;
mod sweep;
mod test_support;
mod tls;
mod traffic;
mod usage;
mod vegeta;
#[cfg(feature = "lua")]
mod wrk;
