//! One load from many machines, merged as if one machine had made it.
//!
//! A coordinator ([`FleetLoad`]) gives each agent a stripe of a plan, and has all begin at one
//! moment. It adds up the intervals that they send back. An agent ([`serve`]) makes its stripe with
//! the engine of this program. Both are state machines without I/O ([`coordinator`], [`agent`]).
//! Their messages travel over a [`Bus`](bus::Bus): pipes through `ssh`, or NATS.
//!
//! An agent may also watch the server on its machine, and make no load ([`serve_watch`]). Its
//! readings are then a source like the probes of the machine that makes the load
//! ([`reading_source`]).
//!
//! What must never be known here: the command line's parser, how anything looks, what runs mean,
//! and which load is next.

#![forbid(unsafe_code)]

pub mod agent;
pub mod allow;
pub mod bus;
pub mod calibration_store;
pub mod clock_offset;
pub mod coordinator;
pub mod delivery;
pub mod fetch;
pub mod fleet_load;
pub mod frame;
pub mod load_record;
pub mod local_fleet;
mod merge;
pub mod message;
pub mod message_stream;
pub mod nats_agent;
pub mod nats_bus;
pub mod nats_client;
pub mod pieces;
pub mod pipe_bus;
pub mod place;
pub mod presence;
pub mod reach;
mod remote_readings;
pub mod roster;
pub mod service;
pub mod shares;
#[cfg(test)]
mod sim_bus;
#[cfg(test)]
mod sim_tests;
pub mod spool;
pub mod ssh;
mod ssh_login;
mod stdio_link;
pub mod task_key;
pub mod watch_agent;
mod watch_link;
mod watch_service;
pub mod watching;

pub use allow::AllowList;
pub use fetch::{FetchedRun, fetch};
pub use fleet_load::{AgentStatus, FleetLoad};
pub use local_fleet::up;
pub use nats_agent::{JoinTerms, join};
pub use nats_client::BusAccess;
pub use place::Place;
pub use reach::{calibrate, check, reach, refuse, status};
pub use service::{Permissions, serve};
pub use task_key::{TaskKey, TaskVerifier};
pub use watch_service::serve_watch;
pub use watching::{reading_source, remote_sources, watched_host};
