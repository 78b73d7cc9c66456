//! One connection slot: its socket, how far it is, and what it is ready for. What travels over it
//! is `plimsoll_wire`'s to say.

use crate::exchanges::WaitingLine;
use crate::net::Ready;
use plimsoll_wire::Conn;

/// How far a slot's connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket.
    Free,
    /// Opening; a request may wait for it.
    Connecting,
    /// Open; TLS is being agreed on, and a request may wait for it.
    Handshaking,
    /// Open, and ready for requests.
    Standing,
}

/// What a connection is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// See [`Ready::readable`].
    pub readable: bool,
    /// See [`Ready::writable`].
    pub writable: bool,
    /// See [`Ready::hangup`].
    pub hangup: bool,
    /// Sending has found it broken. What it may still hold is read first: an answer that came
    /// before the whole request was taken (such as 413) counts.
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

    /// Adds what else it is ready for.
    pub fn join(&mut self, other: Readiness) {
        self.readable |= other.readable;
        self.writable |= other.writable;
        self.hangup |= other.hangup;
        self.broken |= other.broken;
    }
}

/// A connection slot.
#[derive(Debug)]
pub struct Connection<S> {
    pub socket: Option<S>,
    pub state: State,
    /// Grows with every socket, so that late events of an earlier one are known as such.
    pub generation: u32,
    /// What it speaks, and the exchanges that it carries.
    pub conn: Conn,
    /// Exchanges that wait for the connection to stand, or for room on it.
    pub waiting: WaitingLine,
    /// The socket took not all that is to be sent: the next writable event goes on with it.
    pub sending: bool,
    /// What was left over for the next turn.
    pub deferred: Readiness,
    /// Its slot is in the list of idle ones, or of free ones (open loads).
    pub listed: bool,
    /// It is one user's for as long as its session lasts (open loads): no other looks for it.
    pub owned: bool,
    /// The slot that carries what would wait for this one's connection while the server leaves it
    /// (closed loads).
    pub stand_in: Option<u32>,
    /// Some other slot's stand-in is this one.
    pub stands_in: bool,
    /// When opening it began, or its handshake, once it is connected.
    pub began_ns: u64,
    /// Number of the address that it goes to.
    pub address: u16,
    /// Addresses tried for it, this one included.
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

    /// Whether an exchange is under way on it, or waits for it.
    #[inline]
    pub fn is_at_work(&self) -> bool {
        !self.waiting.is_empty() || self.conn.is_busy()
    }

    /// Whether it is on its way to standing.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting | State::Handshaking)
    }

    /// Whether an exchange can be started on it at once.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.state == State::Standing && self.conn.room() > 0
    }
}

/// The token of a slot's present socket, and back.
#[inline]
pub fn token(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

/// (slot, generation) of a token.
#[inline]
pub fn of_token(token: u64) -> (u32, u32) {
    (token as u32, (token >> 32) as u32)
}
