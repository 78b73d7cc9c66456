//! One load from many machines, merged as if one machine had made it.
//!
//! A coordinator ([`FleetLoad`]) gives each agent a stripe of a plan, and has all begin at one
//! moment. It adds up the intervals that they send back. An agent ([`serve`]) makes its stripe with
//! the engine of this program. Both are state machines without I/O ([`coordinator`], [`agent`]);
//! messages travel over a [`Bus`](bus::Bus), of which pipes through `ssh` are the carrier.
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
pub mod pieces;
pub mod pipe_bus;
pub mod place;
pub mod service;
#[cfg(test)]
mod sim_bus;
#[cfg(test)]
mod sim_tests;
pub mod ssh;

pub use allow::AllowList;
pub use fleet_load::{AgentStatus, FleetLoad};
pub use place::Place;
pub use service::serve;
pub use ssh::{reach, refuse, status};
