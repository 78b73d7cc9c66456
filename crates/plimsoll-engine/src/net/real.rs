//! The environment of a worker on the real network of this machine: epoll, TCP and unix sockets.

use super::{ConnectErrno, Net, Peer, ReadyEvent, ReceiveOutcome, SendOutcome, WaitMode};
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::{clock, tcp};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;

/// The maximum number of events that one call of `epoll_wait` returns. With 256 events, a busy
/// event loop rarely needs a second call. Handling 256 events does not delay arrivals noticeably.
const EVENTS_PER_FETCH_MAX: usize = 256;

/// The network of this machine, for one worker.
pub struct RealNet {
    epoll: Epoll,
    close_reset: bool,
}

impl RealNet {
    /// Creates the network of one worker. If `close_reset` is true, connections are closed with a
    /// TCP reset.
    pub fn new(close_reset: bool) -> io::Result<RealNet> {
        Ok(RealNet { epoll: Epoll::new(EVENTS_PER_FETCH_MAX)?, close_reset })
    }
}

fn os_error_number(error: &io::Error) -> ConnectErrno {
    error.raw_os_error().unwrap_or(0) as ConnectErrno
}

impl Net for RealNet {
    type Socket = tcp::Socket;

    #[inline]
    fn now_ns(&mut self) -> u64 {
        clock::monotonic_ns()
    }

    fn cpu_ns(&mut self) -> u64 {
        clock::thread_cpu_ns()
    }

    fn connect(&mut self, peer: Peer, token: u64) -> Result<(tcp::Socket, bool), ConnectErrno> {
        let connecting = match peer {
            Peer::Tcp(address, source) => tcp::Socket::connect_from(source, address).and_then(|socket| {
                // A connect within this machine may have succeeded already. Waiting for the event
                // of the connect would cost an iteration of the event loop, and another wake-up of
                // the server.
                let stands = address.ip().is_loopback() && socket.is_connected(address)?;
                Ok((socket, stands))
            }),
            Peer::Unix(path) => tcp::Socket::connect_unix(path).map(|socket| (socket, true)),
        };
        let (socket, stands) = connecting.map_err(|e| os_error_number(&e))?;
        if self.close_reset {
            socket.set_reset_on_close().map_err(|e| os_error_number(&e))?;
        }
        self.epoll.add(socket.as_raw_fd(), token).map_err(|e| os_error_number(&e))?;
        Ok((socket, stands))
    }

    fn connect_result(&mut self, socket: &tcp::Socket) -> Result<(), ConnectErrno> {
        socket.take_error().map_err(|e| os_error_number(&e))
    }

    #[inline]
    fn send(&mut self, socket: &tcp::Socket, bytes: &[u8]) -> SendOutcome {
        loop {
            match socket.send(bytes) {
                Ok(sent) => return SendOutcome::Bytes(sent),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return SendOutcome::Blocked,
                    ErrorKind::Interrupted => {}
                    _ => return SendOutcome::Broken,
                },
            }
        }
    }

    #[inline]
    fn receive(&mut self, socket: &tcp::Socket, buffer: &mut [u8]) -> ReceiveOutcome {
        loop {
            match socket.recv(buffer) {
                Ok(0) => return ReceiveOutcome::End,
                Ok(received) => return ReceiveOutcome::Bytes(received),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return ReceiveOutcome::Blocked,
                    ErrorKind::Interrupted => {}
                    _ => return ReceiveOutcome::Broken,
                },
            }
        }
    }

    #[inline]
    fn wait(&mut self, wait: WaitMode, ready: &mut Vec<ReadyEvent>) {
        let timeout_ns = match wait {
            WaitMode::Poll => 0,
            WaitMode::Until(at_ns) => at_ns.saturating_sub(clock::monotonic_ns()),
        };
        // `epoll_wait` fails only if its arguments are wrong (EBADF, EFAULT, EINVAL), so an error
        // is a bug of plimsoll.
        let events = self.epoll.wait(Some(timeout_ns)).unwrap_or_else(|error| panic!("epoll_wait: {error}"));
        let idle = events.is_empty() && wait == WaitMode::Poll;
        ready.extend(events.iter().map(|event| ReadyEvent {
            token: event.token(),
            readable: event.readable(),
            writable: event.writable(),
            hangup: event.is_hung_up(),
        }));
        if idle {
            clock::yield_core();
        }
    }
}
