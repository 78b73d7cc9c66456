//! What a worker needs of the world: a clock, connections, and to be told when one is ready.
//! [`real`] is this machine; the simulated twin stands in the tests, so that the whole engine runs
//! on simulated time.

use std::net::{IpAddr, SocketAddr};

pub mod real;

/// How a worker waits for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Only look; offer the core to others if nothing is there.
    Poll,
    /// Sleep until an event or this time (absolute, ns).
    Until(u64),
}

/// What became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The token that the connection was opened with.
    pub token: u64,
    /// Bytes, an end or an error can be read.
    pub readable: bool,
    /// There is room to write; for a new connection: the outcome is known.
    pub writable: bool,
    /// The peer has closed or broken the connection: read until that shows.
    pub hangup: bool,
}

/// Outcome of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// So many bytes were taken.
    Bytes(usize),
    /// Nothing now; a writable event follows.
    Blocked,
    /// The connection is broken.
    Broken,
}

/// Outcome of receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// So many bytes came (at least one).
    Bytes(usize),
    /// Nothing now; a readable event follows.
    Blocked,
    /// The peer has ended its stream.
    End,
    /// The connection is broken.
    Broken,
}

/// The other end of a connection to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// TCP to an address, from a local address or from whichever the system takes.
    Tcp(&'a SocketAddr, Option<IpAddr>),
    /// The unix socket with this path.
    Unix(&'a str),
}

/// The error number of a connection that could not be opened.
pub type ConnectError = u16;

/// The world as a worker sees it.
pub trait Net {
    /// An open (or opening) connection. Dropping it closes it.
    type Socket;

    /// Monotonic time in ns.
    fn now_ns(&mut self) -> u64;
    /// CPU time of the calling thread in ns.
    fn cpu_ns(&mut self) -> u64;
    /// Begins to open a connection; a writable event with `token` follows. True: it stands already,
    /// as connections on one machine do when they are accepted into a queue.
    fn connect(&mut self, peer: Peer, token: u64) -> Result<(Self::Socket, bool), ConnectError>;
    /// Whether an opening connection stands, after its writable event.
    fn connected(&mut self, socket: &Self::Socket) -> Result<(), ConnectError>;
    /// Sends what is taken.
    fn send(&mut self, socket: &Self::Socket, bytes: &[u8]) -> SendOutcome;
    /// Receives into `buffer`.
    fn receive(&mut self, socket: &Self::Socket, buffer: &mut [u8]) -> ReceiveOutcome;
    /// Waits for events and appends them to `ready`.
    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>);
}
