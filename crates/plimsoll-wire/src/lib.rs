//! How requests become bytes, and bytes become replies.
//!
//! Everything here is a pure state machine: bytes go in, facts come out. A connection is a
//! [`Conn`], whatever it speaks; a protocol is a module of its own ([`h1`], [`h2`]; under it
//! [`tls`] where it is asked for) and an arm of `Conn`.
//!
//! What this crate must never know: sockets, clocks, threads, schedules, histograms. It reads no
//! file, asks for no time and never blocks, so the same bytes always give the same answer however
//! they are split. (TLS draws random numbers, and its library asks for the date when it looks at a
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
