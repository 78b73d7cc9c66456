//! Servers with known behaviour or capacity, for the end-to-end tests and the benchmark scripts of
//! Plimsoll.
//!
//! Why special servers: nobody knows the exact capacity of nginx, and no production server resets
//! every third connection on request. Each server here does one thing and counts what it did. So
//! the client's counts can be compared with the server's counts.
//!
//! Not here: the reference server of `plimsoll baseline` (it belongs to the binary), and simulated
//! servers (they belong to the analysis, and need no sockets).

mod event_loop;
mod faults;
pub mod servers;

pub use faults::{Fault, Outcome};
