//! The environment of a worker: a clock, connections, and readiness events. [`real`] implements it
//! with this machine's clock and network. Tests implement it by a simulation, so that the whole
//! engine runs on simulated time.

use std::net::{IpAddr, SocketAddr};

pub mod real;

/// How a worker waits for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Poll without waiting, and yield the core to other threads if there is no event.
    Poll,
    /// Sleep until an event or this absolute time, ns.
    Until(u64),
}

/// A readiness event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The token given when the connection was opened.
    pub token: u64,
    /// Bytes, an end or an error are readable.
    pub readable: bool,
    /// Writable; for a new connection, the result of the connect is known.
    pub writable: bool,
    /// The peer closed or broke the connection; a read returns the details.
    pub hangup: bool,
}

/// The result of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// This number of bytes was sent.
    Bytes(usize),
    /// Nothing was sent; a writable event follows.
    Blocked,
    /// The connection is broken.
    Broken,
}

/// The result of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// This number of bytes was received, at least one.
    Bytes(usize),
    /// Nothing was received; a readable event follows.
    Blocked,
    /// The peer has ended its stream.
    End,
    /// The connection is broken.
    Broken,
}

/// The peer of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// TCP to an address, from a given or system-chosen local address.
    Tcp(&'a SocketAddr, Option<IpAddr>),
    /// The unix socket with this path.
    Unix(&'a str),
}

/// The error number of a failed connect.
pub type ConnectError = u16;

/// The environment of a worker: clock, connections and readiness events.
pub trait Net {
    /// An open (or opening) connection. Dropping it closes it.
    type Socket;

    /// Monotonic time in ns.
    fn now_ns(&mut self) -> u64;
    /// CPU time of the calling thread in ns.
    fn cpu_ns(&mut self) -> u64;
    /// Starts a connect; a writable event with `token` follows. True: the connection is open
    /// already, as is usual on one machine.
    fn connect(&mut self, peer: Peer, token: u64) -> Result<(Self::Socket, bool), ConnectError>;
    /// Returns the result of a connect, after its writable event.
    fn connected(&mut self, socket: &Self::Socket) -> Result<(), ConnectError>;
    /// Sends bytes, possibly a part of them.
    fn send(&mut self, socket: &Self::Socket, bytes: &[u8]) -> SendOutcome;
    /// Receives bytes of a connection into `buffer`.
    fn receive(&mut self, socket: &Self::Socket, buffer: &mut [u8]) -> ReceiveOutcome;
    /// Waits for events and appends them to `ready`.
    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>);
}
