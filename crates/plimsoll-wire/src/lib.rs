//! Protocols: requests become bytes, and bytes become responses.
//!
//! Everything here is a pure state machine: bytes go in, facts come out. A connection is a
//! [`Conn`], whatever its protocol. A protocol is a separate module ([`h1`], [`h2`]; below it
//! [`tls`] if wanted) and a variant of `Conn`.
//!
//! This crate has no sockets, clocks, threads, schedules or histograms. It reads no file, never
//! asks for the time and never blocks. So the same bytes always give the same result, however they
//! are split. (TLS draws random numbers, and its library asks for the date when it verifies a
//! certificate.)

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

pub use author::{AnswerTimes, Author, AuthorAnswer, AuthorFactory, Batch, Halt, LostAnswer, WorkerAuthor};
pub use conn::{Conn, ReceivedBytes};
pub use error::{EndError, ExchangeError, ProtocolError};
pub use fact::{ExchangeNumber, Fact, Piece};
pub use request::EncodedRequest;
