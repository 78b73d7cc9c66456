//! How requests become bytes, and bytes become replies.
//!
//! Everything here is a pure state machine: bytes go in, facts come out. A protocol is a module of its own (today
//! [`h1`], under it [`tls`] where it is asked for); what a connection speaks is an enum in the engine, so that a new protocol is a new module here and a
//! new arm there.
//!
//! What this crate must never know: sockets, clocks, threads, schedules, histograms. It reads no file, asks for no
//! time and never blocks, so the same bytes always give the same answer however they are split. (TLS draws random numbers,
//! and its library asks for the date when it looks at a certificate.)

#![forbid(unsafe_code)]

pub mod h1;
pub mod tls;
