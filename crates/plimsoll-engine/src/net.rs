//! The environment of a worker: a clock, connections, and readiness events. [`real`] implements the
//! environment with this machine's clock and network. Tests implement the environment by a
//! simulation, so that the whole engine runs on simulated time.

use std::net::{IpAddr, SocketAddr};

pub mod real;

/// How a worker waits for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// The wait returns at once. If there is no event, the worker yields the core to other threads.
    Poll,
    /// The worker sleeps until an event or until this absolute time, ns.
    Until(u64),
}

/// An event that states what a connection is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyEvent {
    /// The token that the worker passed to `connect`, which identifies the connection.
    pub token: u64,
    /// Whether a read returns at once with bytes, the end of the stream or an error.
    pub readable: bool,
    /// Whether the connection accepts bytes. For a new connection, whether the result of the
    /// connect is known.
    pub writable: bool,
    /// Whether the peer closed or broke the connection. After a hangup, a read returns the end of
    /// the stream (closed) or an error (broken).
    pub hangup: bool,
}

/// The outcome of an attempt to send bytes on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// The connection accepted this number of bytes for sending.
    Bytes(usize),
    /// No byte was sent, because the send buffer is full. A writable event follows as soon as the
    /// send buffer has room.
    Blocked,
    /// The connection is broken.
    Broken,
}

/// The outcome of an attempt to receive bytes on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// The worker received this number of bytes, at least one.
    Bytes(usize),
    /// No byte is available yet. A readable event follows as soon as bytes arrive.
    Blocked,
    /// The peer has ended its stream.
    End,
    /// The connection is broken.
    Broken,
}

/// The peer of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// A TCP address. The second value is the local address to connect from; `None`: the operating
    /// system chooses the local address.
    Tcp(&'a SocketAddr, Option<IpAddr>),
    /// The unix socket with this path.
    Unix(&'a str),
}

/// The operating system's error number (errno) of a failed connect; 0 if the number is unknown.
pub type ConnectErrno = u16;

/// The environment of a worker: clock, connections and readiness events.
pub trait Net {
    /// An open (or opening) connection. Dropping the value closes the connection.
    type Socket;

    /// Returns the current time of the monotonic clock, ns.
    fn now_ns(&mut self) -> u64;
    /// Returns the CPU time that the calling thread has used, ns.
    fn cpu_ns(&mut self) -> u64;
    /// Starts to open a connection. As soon as the result of the connect is known, a writable event
    /// with `token` follows. The returned flag is true if the connection is already open, as is
    /// usual for a server on the same machine.
    fn connect(&mut self, peer: Peer, token: u64) -> Result<(Self::Socket, bool), ConnectErrno>;
    /// Returns the error of a connect, if the connect failed. The caller must wait for the
    /// connection's writable event before the call.
    fn connect_result(&mut self, socket: &Self::Socket) -> Result<(), ConnectErrno>;
    /// Sends as many of `bytes` as the connection accepts now.
    fn send(&mut self, socket: &Self::Socket, bytes: &[u8]) -> SendOutcome;
    /// Receives bytes of a connection into `buffer`.
    fn receive(&mut self, socket: &Self::Socket, buffer: &mut [u8]) -> ReceiveOutcome;
    /// Waits for events as `wait` says, and appends the events to `ready`.
    fn wait(&mut self, wait: WaitMode, ready: &mut Vec<ReadyEvent>);
}
