//! A connection slot: a numbered place that holds one connection at a time, with its socket, state
//! and readiness. After a connection ends, the slot is reused for the next one. Not here: the
//! protocol (`plimsoll_wire`).

use crate::exchanges::ExchangeQueue;
use crate::net::ReadyEvent;
use plimsoll_wire::Conn;

/// The state of the connection in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The slot has no connection.
    Free,
    /// The connection is being opened; requests may wait for it.
    Connecting,
    /// The connection is open, and its TLS handshake is in progress; requests may wait for the end
    /// of the handshake.
    Handshaking,
    /// The connection is open and ready for requests.
    Open,
}

/// Whether a connection can be read or written, and whether the connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Whether a read returns at once with bytes, the end of the stream or an error, as in
    /// [`ReadyEvent::readable`].
    pub readable: bool,
    /// Whether bytes can be written, as in [`ReadyEvent::writable`].
    pub writable: bool,
    /// Whether the peer closed or broke the connection, as in [`ReadyEvent::hangup`].
    pub hangup: bool,
    /// Whether a send found the connection broken. Bytes that arrived before the break are still
    /// read first. A response (such as 413) that arrived before the request was sent completely
    /// still counts as the request's response.
    pub broken: bool,
}

impl Readiness {
    pub const NONE: Readiness = Readiness { readable: false, writable: false, hangup: false, broken: false };
    pub const WRITABLE: Readiness = Readiness { writable: true, ..Readiness::NONE };
    pub const BROKEN: Readiness = Readiness { readable: true, writable: false, hangup: true, broken: true };

    #[inline]
    pub fn from_event(event: &ReadyEvent) -> Readiness {
        Readiness { readable: event.readable, writable: event.writable, hangup: event.hangup, broken: false }
    }

    /// Sets each flag that is set in `other`. Flags that are already set stay set.
    pub fn merge_flags(&mut self, other: Readiness) {
        self.readable |= other.readable;
        self.writable |= other.writable;
        self.hangup |= other.hangup;
        self.broken |= other.broken;
    }
}

/// A connection slot with its current connection, if any.
#[derive(Debug)]
pub struct ConnectionSlot<S> {
    pub socket: Option<S>,
    pub state: ConnectionState,
    /// The number of attempts to connect that the slot has made so far. Events with an earlier
    /// generation belong to a closed socket and are ignored.
    pub generation: u32,
    /// The protocol state of the connection, with its exchanges.
    pub conn: Conn,
    /// The exchanges that wait for the connection to open, or for a free stream.
    pub waiting: ExchangeQueue,
    /// Whether the last send was partial. After a partial send, the next writable event sends the
    /// remaining bytes.
    pub has_partial_send: bool,
    /// The readiness that was not handled yet, and that the next iteration of the event loop must
    /// handle.
    pub deferred: Readiness,
    /// Whether the slot is in the worker's list of idle or free slots (open loops only).
    pub is_in_slot_list: bool,
    /// Whether the connection belongs to the session of one user, so that other users cannot use it
    /// (open loops only).
    pub is_session_owned: bool,
    /// The slot that replaces this slot for new exchanges after the server sent GOAWAY (closed
    /// loops only).
    pub goaway_replacement: Option<u32>,
    /// Whether this slot replaces another slot, on whose connection the server sent GOAWAY.
    pub is_goaway_replacement: bool,
    /// The time at which the connect began, ns. After the connection opens, the field contains the
    /// time at which the TLS handshake began.
    pub began_ns: u64,
    /// The number of the target address that the connection uses.
    pub address: u16,
    /// The number of addresses tried so far for this connection, including the current one.
    pub addresses_tried: u16,
}

impl<S> ConnectionSlot<S> {
    pub fn new() -> Self {
        ConnectionSlot {
            socket: None,
            state: ConnectionState::Free,
            generation: 0,
            conn: Conn::new(),
            waiting: ExchangeQueue::EMPTY,
            has_partial_send: false,
            deferred: Readiness::NONE,
            is_in_slot_list: false,
            is_session_owned: false,
            goaway_replacement: None,
            is_goaway_replacement: false,
            began_ns: 0,
            address: 0,
            addresses_tried: 0,
        }
    }

    /// Returns whether an exchange is in flight on the connection or waits for it.
    #[inline]
    pub fn has_exchanges(&self) -> bool {
        !self.waiting.is_empty() || self.conn.is_busy()
    }

    /// Returns whether the connection is connecting or in its TLS handshake.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, ConnectionState::Connecting | ConnectionState::Handshaking)
    }

    /// Returns whether the connection is open and can send another request at once.
    #[inline]
    pub fn can_send_request(&self) -> bool {
        self.state == ConnectionState::Open && self.conn.exchanges_available() > 0
    }
}

/// Returns the token that identifies the slot's current socket in readiness events.
#[inline]
pub fn token(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

/// Returns the slot number and the generation that an event token contains.
#[inline]
pub fn slot_and_generation(token: u64) -> (u32, u32) {
    (token as u32, (token >> 32) as u32)
}
