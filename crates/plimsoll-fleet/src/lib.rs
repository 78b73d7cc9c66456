//! Runs one load from many machines, and merges the results as if one machine had run the load.
//!
//! A coordinator ([`FleetLoad`]) gives each agent a stripe of a plan, that is, a share of its
//! schedule. The coordinator starts all agents at the same time and sums the agents' intervals (the
//! measurements of 100 ms each). An agent ([`serve_over_stdio`]) runs its stripe (share of the
//! schedule) with this program's load engine.
//!
//! Coordinator and agent are state machines without I/O ([`coordinator`], [`agent`]). A
//! [`Bus`](bus::Bus) transports the messages between coordinator and agents: pipes through `ssh`,
//! or NATS.
//!
//! Instead of sending load, an agent may measure the server on its machine
//! ([`run_measuring_agent`]). The readings (measurements) of a measuring agent are used like the
//! readings of local probes ([`start_reading_source`]).
//!
//! This crate must not depend on the command-line parser, the presentation, the analysis of runs,
//! or the choice of loads.

#![forbid(unsafe_code)]

pub mod agent;
pub mod allow;
pub mod bus;
pub mod calibration_store;
pub mod clock_offset;
pub mod connect_agents;
pub mod coordinator;
pub mod delivery;
pub mod fetch;
pub mod fleet_load;
pub mod fleet_location;
pub mod frame;
pub mod load_record;
pub mod local_fleet;
mod merge;
pub mod message;
pub mod message_pieces;
pub mod message_stream;
pub mod nats_agent;
pub mod nats_bus;
pub mod nats_client;
pub mod pipe_bus;
pub mod presence;
mod remote_readings;
pub mod remote_watch;
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

pub use allow::AllowList;
pub use connect_agents::{
    calibrate_fleet, check_fleet_options, connect_fleet, query_agent_status, refuse_local_only_options,
};
pub use fetch::{FetchedRun, fetch_run_file};
pub use fleet_load::{AgentStatus, FleetLoad};
pub use fleet_location::FleetLocation;
pub use local_fleet::run_local_fleet;
pub use nats_agent::{BusJoinOptions, join_bus};
pub use nats_client::BusAccess;
pub use remote_watch::{parse_watch_host, remote_reading_sources, start_reading_source};
pub use service::{Permissions, serve_over_stdio};
pub use task_key::{TaskKey, TaskVerifier};
pub use watch_service::run_measuring_agent;
