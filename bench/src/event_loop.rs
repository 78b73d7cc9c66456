//! The event loop of all servers in this crate: one thread with one epoll.
//!
//! A server is a [`Service`]. For each request the service returns steps (send these bytes, pause,
//! reset ...), and the loop executes the steps for thousands of connections at once. A slow, a
//! hanging and a misbehaving server therefore share the same code, with different steps.
//!
//! Not here: maximal speed (see the reference server), chunked request bodies, HTTP/2, TLS.

use plimsoll_sys::clock;
use plimsoll_sys::epoll::Epoll;
use plimsoll_sys::process;
use plimsoll_sys::tcp::{Listener, Socket};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, PipeReader, PipeWriter};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The longest accepted request in bytes, including its body.
const REQUEST_BYTES_MAX: usize = 16 << 20;
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];
const ACCEPT_BACKLOG: i32 = 65_535;
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// One action on a connection. The next action begins when this action is done.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send these bytes.
    Send(Cow<'static, [u8]>),
    /// Send this number of filler bytes.
    SendFiller(u64),
    /// Wait for this time, ns, before the next action.
    Pause(u64),
    /// Wait until this time of the monotonic clock, ns, before the next action.
    PauseUntil(u64),
    /// Close the connection normally.
    Close,
    /// Close the connection with a reset.
    Reset,
    /// Stop reading and writing until the client closes the connection.
    WaitForHangup,
}

pub(crate) type Steps = VecDeque<Step>;

/// The parsed request that a server responds to.
pub(crate) struct Request<'a> {
    pub(crate) target: &'a str,
    pub(crate) is_head: bool,
    /// Whether the client asks the server to close the connection after the response.
    pub(crate) close: bool,
}

/// The behaviour of one server.
pub(crate) trait Service: Send + 'static {
    /// Called in each turn of the loop, before new events are handled. An implementation may block
    /// the thread in this function, for example to simulate a stall.
    fn before_loop_turn(&mut self) {}
    /// Whether the thread polls for events without ever sleeping.
    fn polls_without_sleep(&self) -> bool {
        false
    }
    /// Called after a connection is accepted, before any byte is read.
    fn append_connect_steps(&mut self, _steps: &mut Steps, _counts: &mut Counts) {}
    /// Called after a request is read; appends the steps of its response.
    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, counts: &mut Counts);
}

/// The counts of a server since its start, written only by the thread of the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    /// The number of requests or connections with special treatment: rejected by a limiter, or
    /// affected by a fault.
    pub(crate) special: u64,
    cpu_ns: u64,
    busy_ns: u64,
}

/// A copy of [`Counts`] that other threads may read.
#[derive(Default)]
struct SharedServerCounts {
    requests: AtomicU64,
    connections: AtomicU64,
    special: AtomicU64,
    cpu_ns: AtomicU64,
    busy_ns: AtomicU64,
}

/// The counts and times of a server since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The number of requests read, except requests to `/stats`.
    pub requests: u64,
    /// The number of accepted connections.
    pub connections: u64,
    /// The number of requests with special treatment: rejected by the limiter, or affected by the
    /// fault. For a fault that affects connections, this field counts connections.
    pub special: u64,
    /// CPU time of the server's thread in seconds, including system calls and idle wake-ups.
    pub cpu_s: f64,
    /// The wall-clock time during which the thread had work, in seconds. `busy_s` minus `cpu_s` is
    /// the time for which the thread waited for a core, or slept in a simulated stall.
    pub busy_s: f64,
}

impl Stats {
    /// Returns the capacity in requests a second: the requests served, divided by their CPU time.
    pub fn capacity_rps(&self) -> f64 {
        self.requests as f64 / self.cpu_s.max(1e-9)
    }

    /// Returns the difference between these counts and the `earlier` counts.
    pub fn difference_from_earlier(&self, earlier: &Stats) -> Stats {
        Stats {
            requests: self.requests - earlier.requests,
            connections: self.connections - earlier.connections,
            special: self.special - earlier.special,
            cpu_s: self.cpu_s - earlier.cpu_s,
            busy_s: self.busy_s - earlier.busy_s,
        }
    }

    fn to_json(self) -> String {
        let Stats { requests, connections, special, cpu_s, busy_s } = self;
        format!(
            "{{\"requests\":{requests},\"connections\":{connections},\"special\":{special},\"cpu_s\":{cpu_s:.9},\
             \"busy_s\":{busy_s:.9}}}"
        )
    }
}

impl SharedServerCounts {
    /// Publishes the counts. The loop calls this function before it sends a response, so that every
    /// response that a client has received is counted.
    fn store_counts(&self, counts: &Counts) {
        self.requests.store(counts.requests, Ordering::Relaxed);
        self.connections.store(counts.connections, Ordering::Relaxed);
        self.special.store(counts.special, Ordering::Relaxed);
    }

    /// Publishes the CPU time and the busy time, once in each turn of the loop.
    fn store_times(&self, counts: &Counts) {
        self.cpu_ns.store(counts.cpu_ns, Ordering::Relaxed);
        self.busy_ns.store(counts.busy_ns, Ordering::Relaxed);
    }
}

/// An event loop on its own thread. Dropping this value stops the loop.
pub(crate) struct LoopThread {
    pub(crate) address: SocketAddr,
    published: Arc<SharedServerCounts>,
    thread: Option<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

impl LoopThread {
    /// Starts `service` on a free port of the loopback.
    pub(crate) fn start(service: impl Service) -> io::Result<LoopThread> {
        process::raise_open_files_limit();
        let listener = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)), ACCEPT_BACKLOG, false)?;
        let address = listener.local_address()?;
        let (stopped, stop) = io::pipe()?;
        let epoll = Epoll::new(512)?;
        epoll.add_level(stopped.as_raw_fd(), TOKEN_STOP)?;
        epoll.add(listener.as_raw_fd(), TOKEN_LISTENER)?;
        let published = Arc::new(SharedServerCounts::default());
        let mut each = Loop {
            service,
            epoll,
            listener,
            accept_due_ns: None,
            slots: Vec::new(),
            free_slots: Vec::new(),
            timers: BinaryHeap::new(),
            buffer: vec![0; 64 * 1024],
            counts: Counts::default(),
            published: Arc::clone(&published),
            _stopped: stopped,
        };
        let thread = std::thread::Builder::new().name("bench-server".into()).spawn(move || {
            // A failed epoll is a bug of this crate. After the panic, clients see a server that
            // does not respond.
            each.run().expect("epoll works");
        })?;
        Ok(LoopThread { address, published, thread: Some(thread), stop: Some(stop) })
    }

    pub(crate) fn stats(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let p = &self.published;
        stats_from_ns(load(&p.requests), load(&p.connections), load(&p.special), load(&p.cpu_ns), load(&p.busy_ns))
    }
}

fn stats_from_ns(requests: u64, connections: u64, special: u64, cpu_ns: u64, busy_ns: u64) -> Stats {
    Stats { requests, connections, special, cpu_s: cpu_ns as f64 / 1e9, busy_s: busy_ns as f64 / 1e9 }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // If the server's thread panicked, the thread has already printed its panic, so the
            // error of `join` is ignored.
            let _ = thread.join();
        }
    }
}

const TOKEN_STOP: u64 = u64::MAX;
const TOKEN_LISTENER: u64 = u64::MAX - 1;

struct Loop<S> {
    service: S,
    epoll: Epoll,
    listener: Listener,
    accept_due_ns: Option<u64>,
    slots: Vec<Option<Connection>>,
    free_slots: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    buffer: Vec<u8>,
    counts: Counts,
    published: Arc<SharedServerCounts>,
    _stopped: PipeReader,
}

struct Connection {
    socket: Socket,
    input: Vec<u8>,
    steps: Steps,
    /// The number of bytes of the first step that are already sent.
    sent_bytes: usize,
    readable: bool,
    hangup: bool,
}

impl<S: Service> Loop<S> {
    fn run(&mut self) -> io::Result<()> {
        clock::set_timer_slack_ns(1_000);
        let mut ready = Vec::new();
        let start_cpu_ns = clock::thread_cpu_ns();
        loop {
            let timeout_ns = if self.service.polls_without_sleep() { Some(0) } else { self.timeout_ns() };
            ready.clear();
            ready.extend_from_slice(self.epoll.wait(timeout_ns)?);
            if ready.is_empty() && timeout_ns == Some(0) && self.timers.is_empty() && self.accept_due_ns.is_none() {
                continue;
            }
            let start_ns = clock::monotonic_ns();
            self.service.before_loop_turn();
            for event in &ready {
                match event.token() {
                    TOKEN_STOP => return Ok(()),
                    TOKEN_LISTENER => self.accept_due_ns = Some(0),
                    slot => {
                        if let Some(Some(connection)) = self.slots.get_mut(slot as usize) {
                            connection.readable |= event.readable();
                            connection.hangup |= event.is_hung_up();
                            self.run_connection_steps(slot as usize);
                        }
                    }
                }
            }
            let now_ns = clock::monotonic_ns();
            while let Some(Reverse((_, slot))) = self.timers.peek().copied().filter(|t| t.0.0 <= now_ns) {
                self.timers.pop();
                self.run_connection_steps(slot);
            }
            self.accept();
            self.counts.busy_ns += clock::monotonic_ns() - start_ns;
            self.counts.cpu_ns = clock::thread_cpu_ns() - start_cpu_ns;
            self.published.store_times(&self.counts);
        }
    }

    fn timeout_ns(&self) -> Option<u64> {
        let timer_ns = self.timers.peek().map(|t| t.0.0);
        let due_ns = [timer_ns, self.accept_due_ns].into_iter().flatten().min()?;
        Some(due_ns.saturating_sub(clock::monotonic_ns()))
    }

    fn accept(&mut self) {
        if self.accept_due_ns.is_none_or(|due_ns| due_ns > clock::monotonic_ns()) {
            return;
        }
        for _ in 0..64 {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept_due_ns = None;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.accept_due_ns = Some(clock::monotonic_ns() + ACCEPT_PAUSE_NS);
                    return;
                }
            };
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            let mut steps = Steps::new();
            self.counts.connections += 1;
            self.service.append_connect_steps(&mut steps, &mut self.counts);
            self.published.store_counts(&self.counts);
            if self.epoll.add(socket.as_raw_fd(), slot as u64).is_err() {
                self.free_slots.push(slot);
                continue;
            }
            self.slots[slot] =
                Some(Connection { socket, input: Vec::new(), steps, sent_bytes: 0, readable: false, hangup: false });
            self.run_connection_steps(slot);
        }
    }

    /// Executes the steps of the connection in `slot` until a step would block. A connection that
    /// has ended is dropped.
    fn run_connection_steps(&mut self, slot: usize) {
        let Some(mut connection) = self.slots[slot].take() else { return };
        if self.serve_until_blocked(&mut connection, slot) {
            self.slots[slot] = Some(connection);
        } else {
            self.free_slots.push(slot);
        }
    }

    fn serve_until_blocked(&mut self, connection: &mut Connection, slot: usize) -> bool {
        loop {
            match connection.execute_steps(slot, &mut self.timers) {
                Progress::Done => {}
                Progress::Wait => return true,
                Progress::End => return false,
            }
            match self.take_request(connection) {
                Some(true) => continue,
                Some(false) => return false,
                None => {}
            }
            if !connection.readable {
                return true;
            }
            match connection.socket.recv(&mut self.buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    connection.readable = count == self.buffer.len() || connection.hangup;
                    connection.input.extend_from_slice(&self.buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.readable = false,
                Err(_) => return false,
            }
        }
    }

    /// Removes one complete request from the received bytes and appends the steps of its response.
    /// Returns `None` if the request is incomplete, and false if the request is too long.
    fn take_request(&mut self, connection: &mut Connection) -> Option<bool> {
        if connection.input.is_empty() {
            return None;
        }
        let Some((request, used)) = parse(&connection.input) else {
            return (connection.input.len() > REQUEST_BYTES_MAX).then_some(false);
        };
        if request.target == "/stats" {
            let Counts { requests, connections, special, cpu_ns, busy_ns } = self.counts;
            let body = stats_from_ns(requests, connections, special, cpu_ns, busy_ns).to_json();
            connection.steps.extend(reply(&request, "200 OK", &body));
        } else {
            self.counts.requests += 1;
            self.service.answer(&request, &mut connection.steps, &mut self.counts);
            self.published.store_counts(&self.counts);
        }
        connection.input.drain(..used);
        Some(true)
    }
}

enum Progress {
    Done,
    Wait,
    End,
}

impl Connection {
    fn execute_steps(&mut self, slot: usize, timers: &mut BinaryHeap<Reverse<(u64, usize)>>) -> Progress {
        while let Some(step) = self.steps.front_mut() {
            match step {
                Step::Send(bytes) => match self.socket.send(&bytes[self.sent_bytes..]) {
                    Ok(count) if self.sent_bytes + count < bytes.len() => {
                        self.sent_bytes += count;
                        continue;
                    }
                    Ok(_) => self.sent_bytes = 0,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Wait,
                    Err(_) => return Progress::End,
                },
                Step::SendFiller(0) => {}
                Step::SendFiller(left) => {
                    match self.socket.send(&FILLER[..(*left).min(FILLER.len() as u64) as usize]) {
                        Ok(count) => {
                            *left -= count as u64;
                            continue;
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Wait,
                        Err(_) => return Progress::End,
                    }
                }
                Step::Pause(ns) => {
                    *step = Step::PauseUntil(clock::monotonic_ns() + *ns);
                    continue;
                }
                Step::PauseUntil(due_ns) => {
                    if clock::monotonic_ns() < *due_ns {
                        timers.push(Reverse((*due_ns, slot)));
                        return if self.hangup && self.socket.take_error().is_err() {
                            Progress::End
                        } else {
                            Progress::Wait
                        };
                    }
                }
                Step::Close => return Progress::End,
                Step::Reset => {
                    // The error is ignored: if the socket cannot be set to reset, the connection is
                    // already broken.
                    let _ = self.socket.set_reset_on_close();
                    return Progress::End;
                }
                Step::WaitForHangup => return if self.hangup { Progress::End } else { Progress::Wait },
            }
            self.steps.pop_front();
        }
        Progress::Done
    }
}

/// Returns the request at the start of `input` and its length; `None` if the request is incomplete.
fn parse(input: &[u8]) -> Option<(Request<'_>, usize)> {
    let end = input.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&input[..end]).unwrap_or_default();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (mut length, mut close) = (0, version == Some("HTTP/1.0"));
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        } else if name.eq_ignore_ascii_case("connection") {
            close |= value.trim().eq_ignore_ascii_case("close");
        }
    }
    let used = end.checked_add(length).filter(|used| *used <= input.len())?;
    Some((Request { target: target.unwrap_or("/"), is_head: method == Some("HEAD"), close }, used))
}

/// Returns the steps of a correct response.
pub(crate) fn reply(request: &Request<'_>, status: &str, body: &str) -> [Step; 2] {
    let close = if request.close { "Connection: close\r\n" } else { "" };
    let sent = if request.is_head { "" } else { body };
    let text = format!("HTTP/1.1 {status}\r\n{close}Content-Length: {}\r\n\r\n{sent}", body.len());
    [Step::Send(text.into_bytes().into()), if request.close { Step::Close } else { Step::SendFiller(0) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_parsed_once_complete() {
        let text = b"POST /a HTTP/1.1\r\ncontent-LENGTH: 3\r\nConnection: Close\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
        for cut in 0..text.len() - 18 {
            assert!(parse(&text[..cut]).is_none(), "{cut}");
        }
        let (request, used) = parse(text).expect("whole");
        assert_eq!((request.target, request.close, request.is_head, used), ("/a", true, false, text.len() - 18));
        let (request, _) = parse(b"HEAD / HTTP/1.1\r\n\r\n").expect("whole");
        assert!(request.is_head && !request.close);
    }
}
