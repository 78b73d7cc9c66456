//! One connection slot: its socket, what it is doing, and how far it is with what it carries.

use crate::net::Ready;
use plimsoll_wire::h1::ResponseParser;
use plimsoll_wire::tls::Session;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket.
    Free,
    /// Opening; a request may wait for it.
    Connecting,
    /// Open; TLS is being agreed on, and a request may wait for it.
    Handshaking,
    /// Open, nothing under way.
    Idle,
    /// A request is being written.
    Sending,
    /// A request is written; the answer is awaited or arriving.
    Receiving,
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
    /// Sending has found it broken. What it may still hold is read first: an answer that came before the whole request
    /// was taken (such as 413) counts.
    pub broken: bool,
}

impl Readiness {
    pub const NONE: Readiness = Readiness { readable: false, writable: false, hangup: false, broken: false };
    pub const WRITABLE: Readiness = Readiness { writable: true, ..Readiness::NONE };
    pub const BROKEN: Readiness = Readiness { readable: true, writable: false, hangup: true, broken: true };

    #[inline]
    pub fn of(event: &Ready) -> Readiness {
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

/// The TLS of a connection.
#[derive(Debug)]
pub struct Secure {
    pub session: Session,
    /// Cipher text that the socket did not take, and how much of it is sent by now.
    pub unsent: Vec<u8>,
    pub unsent_from: usize,
    pub began_ns: u64,
    /// The peer has ended its stream properly.
    pub ended: bool,
}

/// A connection slot.
#[derive(Debug)]
pub struct Connection<S> {
    pub socket: Option<S>,
    pub state: State,
    /// Grows with every socket, so that late events of an earlier one are known as such.
    pub generation: u32,
    pub parser: ResponseParser,
    /// The number of the exchange that it carries.
    pub exchange: Option<u32>,
    /// Bytes of its request that are written.
    pub written: usize,
    /// What was left over for the next turn.
    pub deferred: Readiness,
    /// Its user waits before trying again (closed loads).
    pub paused: bool,
    pub connect_began_ns: u64,
    /// Number of the address that it goes to.
    pub address: u16,
    /// Addresses tried for it, this one included.
    pub tried: u16,
    /// Set while there is a socket that speaks TLS.
    pub secure: Option<Box<Secure>>,
}

impl<S> Connection<S> {
    pub fn new() -> Self {
        Connection {
            socket: None,
            state: State::Free,
            generation: 0,
            parser: ResponseParser::new(),
            exchange: None,
            written: 0,
            deferred: Readiness::NONE,
            paused: false,
            connect_began_ns: 0,
            address: 0,
            tried: 0,
            secure: None,
        }
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
