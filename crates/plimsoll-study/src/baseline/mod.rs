//! The reference server (`plimsoll baseline`, and the target of `plimsoll demo`). The server speaks
//! HTTP/1.1 and HTTP/2, either with prior knowledge (h2c) or by ALPN over TLS. The server is
//! minimal and fast, so a load test of this server shows the cost of client and kernel.
//!
//! Each thread has one edge-triggered event loop and its own listener. A request that arrives whole
//! is parsed in place, and its response is sent at once. Such a whole request takes one `recv` and
//! one `send`, no `epoll_ctl`, and no allocation. Only partial requests and unsent responses need
//! memory; an idle plain connection takes at most 192 bytes in this process. A large body of
//! `/bytes/N` is sent in pieces, all from one constant array.
//!
//! Routes: `/healthz`, `/bytes/N`, `/delay/MS`, `/status/N`, `/burn/US`. All other paths
//! return 404. Any method is accepted, and request bodies are discarded.
//!
//! Not here: files, timeouts of idle connections, logs. The server is not meant for the open
//! internet.

mod answer;
mod connection;
mod h2;
pub mod pooled;
mod request;
#[cfg(test)]
mod tests;

use connection::{
    ConnectionNeed, INPUT_BYTES, OUTPUT_BYTES, STEPS_PER_TURN_MAX, ServedConnection, ThreadBuffers, Timers,
};
use plimsoll_sys::clock;
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::process;
use plimsoll_sys::tcp::{Listener, Socket};
use plimsoll_wire::tls::ServerTls;
use std::cmp::Reverse;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// The pause in ns before the server accepts connections again, after file descriptors or memory
/// ran out.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
/// The requested length of the accept queue, in connections. The system limits the length
/// (`net.core.somaxconn`).
const LISTEN_BACKLOG: i32 = 65_535;

/// Options of the reference server.
#[derive(Clone, Debug)]
pub struct ReferenceServerOptions {
    /// The address to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The number of event loops, each in its own thread; at least 1.
    pub threads: usize,
    /// TLS options. If TLS options are given, the server accepts only TLS connections.
    pub tls: Option<ServerTls>,
}

/// A running reference server, until it is stopped or dropped.
pub struct ReferenceServer {
    address: SocketAddr,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// The write end of the stop pipe. The stop signal is one byte that no event loop reads, so the
    /// byte stays in the pipe and every event loop sees it.
    stop: Option<PipeWriter>,
    /// The read end of the stop pipe. The file table of each event loop's thread has a copy of the
    /// read end. The copy in this field belongs to the file table of the thread that started the
    /// server, and is closed last.
    #[allow(dead_code, reason = "it only has to be there")]
    stopped: Arc<PipeReader>,
}

/// Starts the reference server, which accepts connections when this function returns.
pub fn start(options: ReferenceServerOptions) -> io::Result<ReferenceServer> {
    if options.threads == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the baseline server needs at least one thread"));
    }
    process::raise_open_files_limit();
    let (stopped, stop) = io::pipe()?;
    let stopped = Arc::new(stopped);
    let mut server = ReferenceServer {
        address: options.listen,
        threads: Vec::new(),
        stop: Some(stop),
        stopped: Arc::clone(&stopped),
    };
    for index in 0..options.threads {
        let (address, shared) = (server.address, options.threads > 1);
        let (told, began) = mpsc::channel();
        let (stopped, tls) = (Arc::clone(&stopped), options.tls.clone());
        let thread = std::thread::Builder::new().name(format!("baseline-{index}"));
        server.threads.push(thread.spawn(move || {
            // With its own file table, each thread can have as many connections as a process may
            // open files.
            let _ = process::unshare_file_table(Some(stopped.as_fd()));
            let begun = Listener::bind(&address, LISTEN_BACKLOG, shared)
                .and_then(|listener| Ok((listener.local_address()?, EventLoop::new(listener, stopped, tls)?)));
            let (begun, each) = match begun {
                Ok((address, each)) => (Ok(address), Some(each)),
                Err(error) => (Err(error), None),
            };
            // The error of the send is ignored: a dropped receiver means that the server is being
            // stopped.
            let _ = told.send(begun);
            each.map_or(Ok(()), EventLoop::run)
        })?);
        server.address =
            began.recv().unwrap_or_else(|_| Err(io::Error::other("a thread of the baseline server panicked")))?;
    }
    Ok(server)
}

impl ReferenceServer {
    /// Returns the address that the server listens on, with the actual port.
    pub fn listen_address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections and waits for the threads. Returns the first error that ended an
    /// event loop early.
    pub fn stop(mut self) -> io::Result<()> {
        self.stop_threads()
    }

    fn stop_threads(&mut self) -> io::Result<()> {
        if let Some(mut stop) = self.stop.take() {
            // Writing to the pipe fails only if all event loops have ended.
            let _ = stop.write_all(b"x");
        }
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let ended =
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the baseline server panicked")));
            result = result.and(ended);
        }
        result
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        // A destructor cannot return errors; the method `stop` returns them.
        let _ = self.stop_threads();
    }
}

const TOKEN_STOP: u64 = u64::MAX;
const TOKEN_LISTENER: u64 = u64::MAX - 1;

struct EventLoop {
    epoll: Epoll,
    connections: Connections,
    tools: ThreadBuffers,
    listener: Listener,
    tls: Option<ServerTls>,
    /// The time (monotonic clock, ns) at which the event loop next accepts connections; `None` if
    /// no connection is pending.
    accept_due_ns: Option<u64>,
    /// Keeps the read end of the stop pipe open while the loop runs.
    _stopped: Arc<PipeReader>,
}

/// The connections of one event loop by slot (table index), and the slots whose connections have
/// more work.
#[derive(Default)]
struct Connections {
    slots: Vec<Option<ServedConnection>>,
    free: Vec<u32>,
    again: Vec<u32>,
}

impl Connections {
    /// Calls `turn` with the connection in `slot`, if the slot has a connection. Closes the
    /// connection if `turn` returns [`ConnectionNeed::Close`].
    fn run_turn(&mut self, slot: u32, turn: impl FnOnce(&mut ServedConnection) -> ConnectionNeed) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        let Some(connection) = place else { return };
        match turn(connection) {
            ConnectionNeed::Wait => {}
            ConnectionNeed::Again if connection.is_in_work_list => {}
            ConnectionNeed::Again => {
                connection.is_in_work_list = true;
                self.again.push(slot);
            }
            ConnectionNeed::Close => {
                *place = None;
                self.free.push(slot);
            }
        }
    }

    fn add_connection(&mut self, socket: Socket, tls: Option<&ServerTls>, epoll: &Epoll) -> io::Result<()> {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        epoll.add(socket.as_raw_fd(), u64::from(slot))?;
        // Creating a TLS session fails if the system has no random numbers.
        let session = |tls: &ServerTls| tls.session().map(Box::new).map_err(|why| io::Error::other(why.description()));
        let connection = Some(ServedConnection::new(socket, tls.map(session).transpose()?, slot));
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize] = connection,
            None => self.slots.push(connection),
        }
        Ok(())
    }
}

impl EventLoop {
    fn new(listener: Listener, stopped: Arc<PipeReader>, tls: Option<ServerTls>) -> io::Result<EventLoop> {
        let epoll = Epoll::new(512)?;
        epoll.add_level(stopped.as_raw_fd(), TOKEN_STOP)?;
        epoll.add(listener.as_raw_fd(), TOKEN_LISTENER)?;
        let tools = ThreadBuffers {
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            output: Vec::with_capacity(2 * OUTPUT_BYTES),
            plain: Vec::new(),
            timers: Timers::new(),
        };
        let connections = Connections::default();
        Ok(EventLoop { epoll, connections, tools, listener, tls, accept_due_ns: None, _stopped: stopped })
    }

    fn run(mut self) -> io::Result<()> {
        clock::set_timer_slack_ns(1_000);
        loop {
            let timeout_ns = self.timeout_ns();
            for event in self.epoll.wait(timeout_ns)? {
                match event.token() {
                    TOKEN_STOP => return Ok(()),
                    TOKEN_LISTENER => self.accept_due_ns = Some(0),
                    slot => self.connections.run_turn(slot as u32, |c| c.on_event(*event, &mut self.tools)),
                }
            }
            for slot in std::mem::take(&mut self.connections.again) {
                self.connections.run_turn(slot, |c| {
                    c.is_in_work_list = false;
                    c.advance_until_blocked(&mut self.tools)
                });
            }
            self.fire_timers();
            self.accept_connections();
        }
    }

    /// Returns the time in ns until the next timer; 0 if a connection has more work; `None` without
    /// timers.
    fn timeout_ns(&self) -> Option<u64> {
        if !self.connections.again.is_empty() {
            return Some(0);
        }
        let timer_ns = self.tools.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        let due_ns = [timer_ns, self.accept_due_ns].into_iter().flatten().min()?;
        Some(due_ns.saturating_sub(clock::monotonic_ns()))
    }

    fn fire_timers(&mut self) {
        if self.tools.timers.is_empty() {
            return;
        }
        let now_ns = clock::monotonic_ns();
        while let Some(Reverse((due_ns, slot))) = self.tools.timers.peek().copied().filter(|t| t.0.0 <= now_ns) {
            self.tools.timers.pop();
            self.connections.run_turn(slot, |c| c.on_timer(due_ns, &mut self.tools));
        }
    }

    fn accept_connections(&mut self) {
        if self.accept_due_ns.is_none_or(|due_ns| due_ns > 0 && due_ns > clock::monotonic_ns()) {
            return;
        }
        self.accept_due_ns = Some(0);
        for _ in 0..STEPS_PER_TURN_MAX {
            match self
                .listener
                .accept()
                .and_then(|socket| self.connections.add_connection(socket, self.tls.as_ref(), &self.epoll))
            {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        self.accept_due_ns = None;
                        return;
                    }
                    // The client left while its connection waited in the accept queue.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    // No file descriptor or memory is left for a new connection. The new connection
                    // stays in the accept queue. Another `accept` at once would only waste CPU
                    // time.
                    _ => {
                        self.accept_due_ns = Some(clock::monotonic_ns() + ACCEPT_PAUSE_NS);
                        return;
                    }
                },
            }
        }
    }
}
