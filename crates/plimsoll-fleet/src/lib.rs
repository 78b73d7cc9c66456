//! One load from many machines, merged as if one machine had made it.
//!
//! A coordinator ([`FleetLoad`]) gives each agent a stripe of a plan, and has all begin at one
//! moment. It adds up the intervals that they send back. An agent ([`serve`]) makes its stripe with
//! the engine of this program. Both are state machines without I/O ([`coordinator`], [`agent`]);
//! messages travel over a [`Bus`](bus::Bus), of which pipes through `ssh` are the carrier.
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
pub mod clock_offset;
pub mod coordinator;
pub mod delivery;
pub mod fleet_load;
pub mod frame;
mod merge;
pub mod message;
pub mod message_stream;
pub mod pipe_bus;
pub mod place;
mod remote_readings;
pub mod service;
#[cfg(test)]
mod sim_bus;
#[cfg(test)]
mod sim_tests;
pub mod ssh;
mod ssh_login;
pub mod watch_agent;
mod watch_link;
mod watch_service;
pub mod watching;

pub use allow::AllowList;
pub use fleet_load::{AgentStatus, FleetLoad};
pub use place::Place;
pub use service::serve;
pub use ssh::{reach, refuse, status};
pub use watch_service::serve_watch;
pub use watching::{reading_source, remote_sources, watched_host};
