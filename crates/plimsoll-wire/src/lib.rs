//! Implements the protocols HTTP/1.1, HTTP/2 and TLS: encodes requests as bytes, and parses
//! responses from bytes.
//!
//! Every connection is a pure state machine: it receives bytes and returns events. [`Conn`] is a
//! connection of any protocol. Each protocol is a separate module ([`h1`], [`h2`]) and a variant of
//! `Conn`. [`tls`] is a layer below the protocol.
//!
//! This crate has no sockets, clocks, threads, schedules or histograms. The crate reads no file and
//! never blocks. So the same bytes always give the same result, however the bytes are split. (Only
//! TLS draws random numbers, and its library reads the date to verify a certificate.)

#![forbid(unsafe_code)]

mod author;
mod conn;
mod connection_event;
mod error;
pub mod h1;
pub mod h2;
pub mod redirect;
mod request;
pub mod tls;

pub use author::{
    Author, AuthorFactory, AuthorResponse, AuthorStopReason, Batch, LostResponse, ResponseTimes, WorkerAuthor,
};
pub use conn::{Conn, ReceivedBytes};
pub use connection_event::{ConnectionEvent, ExchangeNumber, ResponsePiece};
pub use error::{EarlyCloseError, ExchangeError, ProtocolError};
pub use request::EncodedRequest;
