//! What Plimsoll is held against: real servers whose behaviour or capacity is known, for the
//! end-to-end tests and the benchmark scripts.
//!
//! Why servers of our own: nginx has no capacity that anybody knows exactly, and no server in use
//! resets every third connection on request. Each server here does one thing, says what, and counts
//! what it did, so that a client's account can be checked against the other side's.
//!
//! Not here: the reference server of `plimsoll baseline` (it belongs to the binary), and simulated
//! servers (they belong to the analysis, and need no sockets).

mod event_loop;
mod faults;
pub mod servers;

pub use faults::{Fault, Outcome};
