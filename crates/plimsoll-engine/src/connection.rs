//! A connection slot: one place for a connection, with its socket, state and readiness. A slot is
//! reused for one connection after another. Not here: the protocol (`plimsoll_wire`).

use crate::exchanges::WaitingLine;
use crate::net::Ready;
use plimsoll_wire::Conn;

/// The state of the connection in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The slot has no socket.
    Free,
    /// The connection is being opened; requests may wait for it.
    Connecting,
    /// The TLS handshake of the open connection runs; requests may wait for the connection.
    Handshaking,
    /// Open and ready for requests.
    Standing,
}

/// The readiness of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Whether bytes, an end or an error can be read; see [`Ready::readable`].
    pub readable: bool,
    /// Whether bytes can be written; see [`Ready::writable`].
    pub writable: bool,
    /// Whether the peer closed or broke the connection; see [`Ready::hangup`].
    pub hangup: bool,
    /// Whether a send found the connection broken. Received bytes are still read first: a response
    /// that arrived before the end of the request (such as 413) counts.
    pub broken: bool,
}

impl Readiness {
    pub const NONE: Readiness = Readiness { readable: false, writable: false, hangup: false, broken: false };
    pub const WRITABLE: Readiness = Readiness { writable: true, ..Readiness::NONE };
    pub const BROKEN: Readiness = Readiness { readable: true, writable: false, hangup: true, broken: true };

    #[inline]
    pub fn from_event(event: &Ready) -> Readiness {
        Readiness { readable: event.readable, writable: event.writable, hangup: event.hangup, broken: false }
    }

    /// Adds the flags of another readiness to this one.
    pub fn join(&mut self, other: Readiness) {
        self.readable |= other.readable;
        self.writable |= other.writable;
        self.hangup |= other.hangup;
        self.broken |= other.broken;
    }
}

/// A connection slot with its current connection, if any.
#[derive(Debug)]
pub struct Connection<S> {
    pub socket: Option<S>,
    pub state: State,
    /// Number of sockets that the slot has had, so that late events of an earlier socket are
    /// ignored.
    pub generation: u32,
    /// The protocol state of the connection, with its exchanges.
    pub conn: Conn,
    /// Exchanges that wait for the connection to open, or for a free stream.
    pub waiting: WaitingLine,
    /// Whether a send was partial: the next writable event continues it.
    pub sending: bool,
    /// Readiness that the next turn of the event loop handles.
    pub deferred: Readiness,
    /// Whether the slot is in the worker's list of idle or free slots (open loops only).
    pub listed: bool,
    /// Whether the connection belongs to one user's session (open loops), so that other users
    /// cannot use it.
    pub owned: bool,
    /// The slot that takes new exchanges of this connection after the server's GOAWAY (closed
    /// loops).
    pub stand_in: Option<u32>,
    /// Whether this slot is the stand-in of another one.
    pub stands_in: bool,
    /// Time of the start of the connect; once connected, of the TLS handshake; ns.
    pub began_ns: u64,
    /// Number of the target address that the connection uses.
    pub address: u16,
    /// Number of addresses tried so far for this connection, including the current one.
    pub tried: u16,
}

impl<S> Connection<S> {
    pub fn new() -> Self {
        Connection {
            socket: None,
            state: State::Free,
            generation: 0,
            conn: Conn::new(),
            waiting: WaitingLine::EMPTY,
            sending: false,
            deferred: Readiness::NONE,
            listed: false,
            owned: false,
            stand_in: None,
            stands_in: false,
            began_ns: 0,
            address: 0,
            tried: 0,
        }
    }

    /// Whether an exchange is in flight on the connection or waits for it.
    #[inline]
    pub fn has_exchanges(&self) -> bool {
        !self.waiting.is_empty() || self.conn.is_busy()
    }

    /// Whether the connection is connecting or in its TLS handshake.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting | State::Handshaking)
    }

    /// Whether an exchange can start on the connection at once.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.state == State::Standing && self.conn.room() > 0
    }
}

/// The event token of the slot's current socket.
#[inline]
pub fn token(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

/// The slot number and generation in an event token.
#[inline]
pub fn slot_and_generation(token: u64) -> (u32, u32) {
    (token as u32, (token >> 32) as u32)
}
