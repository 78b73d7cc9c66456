//! Servers with known behaviour or capacity, for the end-to-end tests and the benchmark scripts of
//! Plimsoll.
//!
//! Special servers are needed because nobody knows the exact capacity of nginx, and no production
//! server resets every third connection on request. Each server in this crate has one behaviour and
//! counts its actions. Tests can therefore compare the client's counts with the server's counts.
//!
//! Not here: the reference server of `plimsoll baseline` (it belongs to the binary), and simulated
//! servers, which need no sockets (`plimsoll-simulator`).

mod event_loop;
mod faults;
pub mod servers;

pub use faults::{Fault, Outcome};
