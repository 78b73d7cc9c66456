//! Implements the protocols HTTP/1.1, HTTP/2 and TLS: encodes requests as bytes, and parses
//! responses from bytes.
//!
//! Every connection is a pure state machine: it receives bytes and returns events (facts). [`Conn`]
//! is a connection of any protocol. Each protocol is a separate module ([`h1`], [`h2`]) and a
//! variant of `Conn`. [`tls`] is a layer below the protocol.
//!
//! This crate has no sockets, clocks, threads, schedules or histograms. The crate reads no file and
//! never blocks. So the same bytes always give the same result, however the bytes are split. (Only
//! TLS draws random numbers, and its library reads the date to verify a certificate.)

#![forbid(unsafe_code)]

mod author;
mod conn;
mod error;
mod fact;
pub mod h1;
pub mod h2;
pub mod redirect;
mod request;
pub mod tls;

pub use author::{
    AnswerTimes, Author, AuthorAnswer, AuthorFactory, AuthorStopReason, Batch, LostResponse, WorkerAuthor,
};
pub use conn::{Conn, ReceivedBytes};
pub use error::{EarlyCloseError, ExchangeError, ProtocolError};
pub use fact::{ConnectionEvent, ExchangeNumber, ResponsePiece};
pub use request::EncodedRequest;
