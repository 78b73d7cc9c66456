//! The simulated network for tests: a virtual clock, a queue of future events, and connections
//! between a worker's [`Net`] and a [`SimServer`].
//!
//! Readiness events behave as in Linux's edge-triggered epoll on TCP. Each arrival (bytes, an end,
//! a reset, room after a blocked send) queues an event for the connection. An event reports the
//! state of the connection at the time when the worker fetches the event. Bytes that arrived before
//! a reset stay readable. All randomness comes from the seed.

mod serving;

use super::server::{ENDLESS_BODY_CHUNK, ENDLESS_BODY_READ_NS, Fault, SimServer, SimStall};
use super::streams::SimH2Connection;
use crate::net::{ConnectErrno, Net, Peer, ReadyEvent, ReceiveOutcome, SendOutcome, WaitMode};
use plimsoll_model::rng::Rng;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// The simulated duration of a poll without events, ns.
const POLL_NS: u64 = 500;
/// The maximum number of events that one wait returns.
const EVENTS_PER_WAIT_MAX: usize = 256;
/// The maximum number of reads and sends between two waits. A worker that exceeds this number
/// neglects its other connections, so the test fails.
const CALLS_BETWEEN_WAITS_MAX: u32 = 10_000;
/// The maximum number of consecutive waits without events or progress. A worker that exceeds this
/// number is stuck, so the test fails.
const WAITS_WITHOUT_PROGRESS_MAX: u32 = 100_000;
const ECONNREFUSED: ConnectErrno = 111;
const ECONNRESET: ConnectErrno = 104;
const NO_PORT: ConnectErrno = 99;

/// The simulated machine of the client: the CPU time of each operation, and the latency of a
/// wake-up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimMachine {
    pub wait_ns: u64,
    pub connect_ns: u64,
    pub send_ns: u64,
    pub receive_ns: u64,
    /// The time between the end of a sleep and the first instruction of the worker, ns.
    pub wake_ns: u64,
    /// Whether a connect succeeds at once, as within one machine.
    pub connects_at_once: bool,
    /// Periods in which the worker gets no core.
    pub pause: Option<SimStall>,
    /// The machine loses every n-th event. A machine that loses events proves that the tests detect
    /// lost events.
    pub lose_event: Option<u64>,
}

/// The counts that the simulation itself makes, which tests compare with the counts of the worker.
#[derive(Debug, Clone, Default)]
pub struct SimCounts {
    pub connects: u64,
    /// The number of connects that began after the start of the schedule.
    pub connects_under_load: u64,
    /// The number of connects that began during the load while an idle connection existed.
    pub connects_despite_idle: u64,
    /// The maximum number of concurrent connections, including those that were opening.
    pub connections_max: u64,
    /// The number of connections whose opening the worker noticed.
    pub connected: u64,
    /// The number of requests that the server received completely.
    pub requests: u64,
    /// The number of requests and connections that a fault affected.
    pub faults: u64,
    /// The number of bytes that the server received and that differ from the expected request.
    pub bytes_wrong: u64,
    /// The number of bytes that the client's sockets accepted for sending.
    pub bytes_sent: u64,
    /// The number of bytes that the client read.
    pub bytes_read: u64,
    /// The number of sends that were blocked because the send buffer was full.
    pub blocked: u64,
    /// The number of sends on a broken connection.
    pub broken: u64,
    /// The number of HTTP/2 streams that the server refused, or ignored after its GOAWAY frame.
    pub unprocessed_streams: u64,
    /// The number of streams that the client opened although it knew that the server's limit was
    /// reached.
    pub streams_over: u64,
    /// The numbers of the connections, in the order of their first requests.
    pub connections_by_first_request: Vec<usize>,
}

impl SimCounts {
    pub fn add(&mut self, other: &SimCounts) {
        self.connects += other.connects;
        self.connects_under_load += other.connects_under_load;
        self.connects_despite_idle += other.connects_despite_idle;
        self.connections_max += other.connections_max;
        self.connected += other.connected;
        self.requests += other.requests;
        self.faults += other.faults;
        self.bytes_wrong += other.bytes_wrong;
        self.bytes_sent += other.bytes_sent;
        self.bytes_read += other.bytes_read;
        self.blocked += other.blocked;
        self.broken += other.broken;
        self.unprocessed_streams += other.unprocessed_streams;
        self.streams_over += other.streams_over;
        self.connections_by_first_request.extend(&other.connections_by_first_request);
    }
}

/// Bytes in transit to the client.
struct BytesInTransit {
    bytes: Rc<[u8]>,
    from: usize,
    to: usize,
}

enum SimEventKind {
    // The events from `Opens` to `Breaks` happen at the client's end of a connection.
    Opens,
    Refuses,
    Brings(BytesInTransit),
    Ends,
    Breaks,
    // The events from `Reaches` on happen at the server's end. `Reaches`: this number of bytes
    // arrives. `Takes`: the server reads again after the pause of `SimServer::intake`.
    Reaches(usize),
    Takes,
    Answers,
    /// The server sends a part of a response over HTTP/2. The values are the stream number and the
    /// number of remaining messages.
    AnswersStream(u32, u32),
    Closes,
    AnswersAgain,
    /// The idle timeout expires. The server closes the connection if the counter `activity` of the
    /// connection has not changed since the event was scheduled.
    IdleSince(u64),
    /// The server sends unsolicited bytes if the counter `activity` of the connection has not
    /// changed since the event was scheduled.
    BlurtsSince(u64),
}

struct SimEvent {
    at_ns: u64,
    serial: u64,
    link: usize,
    what: SimEventKind,
}

impl PartialEq for SimEvent {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.serial) == (other.at_ns, other.serial)
    }
}
impl Eq for SimEvent {}
impl PartialOrd for SimEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SimEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.serial).cmp(&(other.at_ns, other.serial))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketState {
    Opening,
    Open,
    Refused,
    /// The server has reset the connection.
    Dead,
}

/// A simulated connection: the state of the client's end and of the server's end.
struct SimConnection {
    token: u64,
    standing: SocketState,
    inbox: VecDeque<BytesInTransit>,
    /// Whether the end of the server's stream has arrived at the client.
    ended: bool,
    /// Whether a reset has arrived that no call has reported to the client yet.
    error: bool,
    queued: bool,
    /// Whether a send of the client was blocked, so that the client waits for a writable event.
    blocked: bool,
    client_closed: bool,
    /// Whether the connection is open and idle, as far as the client knows.
    idle: bool,
    /// The number of bytes of the current response that the client has not read.
    reply_left: usize,
    /// For an endless chunked response, the position in [`ENDLESS_BODY_CHUNK`]; `None` for other
    /// responses.
    flood_at: Option<usize>,
    /// The number of bytes that the client sent and the server has not read yet.
    in_pipe: usize,
    /// The position within the request of the next byte that the client sends.
    sent_at: usize,

    server_closed: bool,
    /// The number of bytes that arrived at the server and are not read yet.
    arrived: usize,
    /// The number of bytes of the current request that the server has read.
    taken: usize,
    fault: Option<Fault>,
    /// Whether the server is processing the current request of the connection.
    serving: bool,
    taking: bool,
    /// Whether the server has stopped reading.
    has_stopped_reading: bool,
    /// A counter of the server's receives and sends, which shows whether the connection was idle
    /// since a given event.
    activity: u64,
    /// The time of the latest arrival at the client, ns. Data that the server sends later cannot
    /// arrive before earlier data.
    last_ns: u64,
    /// The server's state of the HTTP/2 connection; `None` for HTTP/1.1.
    streams: Option<Box<SimH2Connection>>,
}

/// The simulated world of one worker: its clock, its network and the server.
pub struct SimWorld {
    now_ns: u64,
    cpu_ns: u64,
    machine: SimMachine,
    server: SimServer,
    request: Rc<[u8]>,
    head_request: bool,
    rng: Rng,
    heap: BinaryHeap<Reverse<SimEvent>>,
    serial: u64,
    links: Vec<SimConnection>,
    ready: VecDeque<usize>,
    /// For each service slot of the server, the time at which the slot becomes free. The heap is
    /// empty if the number of slots is unlimited.
    slots: BinaryHeap<Reverse<u64>>,
    /// The start of the schedule (absolute, ns); `u64::MAX` before it is set.
    origin_ns: u64,
    links_open: u64,
    links_idle: u64,
    events: u64,
    stuck: u32,
    /// The number of reads and sends since the last wait; see [`CALLS_BETWEEN_WAITS_MAX`].
    calls_since_wait: u32,
    pub account: SimCounts,
}

impl SimWorld {
    pub fn new(server: &SimServer, machine: SimMachine, request: &[u8], seed: u64) -> SimWorld {
        SimWorld {
            // The clock does not start at 0, since a real machine has run for a while.
            now_ns: 1_000_000_000,
            cpu_ns: 0,
            machine,
            server: server.clone(),
            request: request.into(),
            head_request: request.starts_with(b"HEAD "),
            rng: Rng::new(seed),
            heap: BinaryHeap::new(),
            serial: 0,
            links: Vec::new(),
            ready: VecDeque::new(),
            slots: (0..server.slots.unwrap_or(0)).map(|_| Reverse(0)).collect(),
            origin_ns: u64::MAX,
            links_open: 0,
            links_idle: 0,
            events: 0,
            stuck: 0,
            calls_since_wait: 0,
            account: SimCounts::default(),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Sets the start of the schedule to `origin_ns` (absolute).
    pub fn set_origin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    fn spend_cpu_time(&mut self, cost_ns: u64) {
        self.now_ns += cost_ns;
        self.cpu_ns += cost_ns;
        self.run_due_events();
    }

    /// Executes all events that are due at the current simulated time.
    fn run_due_events(&mut self) {
        while let Some(Reverse(first)) = self.heap.peek()
            && first.at_ns <= self.now_ns
            && let Some(Reverse(happening)) = self.heap.pop()
        {
            self.execute_event(happening.at_ns, happening.link, happening.what);
        }
    }

    fn schedule_event(&mut self, at_ns: u64, link: usize, what: SimEventKind) {
        self.serial += 1;
        self.heap.push(Reverse(SimEvent { at_ns, serial: self.serial, link, what }));
    }

    /// Schedules an event that the server causes at `at_ns` and that reaches the client after the
    /// latency. Events of one connection keep their order.
    fn schedule_client_event(&mut self, at_ns: u64, link: usize, what: SimEventKind) {
        let arrives_ns = (at_ns + self.server.latency_ns).max(self.links[link].last_ns);
        self.links[link].last_ns = arrives_ns;
        self.schedule_event(arrives_ns, link, what);
    }

    fn execute_event(&mut self, at_ns: u64, link: usize, what: SimEventKind) {
        let it = &mut self.links[link];
        match what {
            SimEventKind::Opens => {
                it.standing = SocketState::Open;
                self.queue_ready_event(link);
                self.start_idle_timeout(at_ns, link);
                if let Some(streams) = &mut self.links[link].streams {
                    let said = streams.begin();
                    self.send_to_client(at_ns, link, said);
                }
            }
            SimEventKind::Refuses => {
                it.standing = SocketState::Refused;
                self.queue_ready_event(link);
            }
            SimEventKind::Brings(piece) => {
                if it.standing != SocketState::Dead {
                    it.inbox.push_back(piece);
                    self.queue_ready_event(link);
                }
            }
            SimEventKind::Ends => {
                if it.standing != SocketState::Dead {
                    it.ended = true;
                    self.queue_ready_event(link);
                }
            }
            SimEventKind::Breaks => {
                if it.standing != SocketState::Dead {
                    it.standing = SocketState::Dead;
                    it.error = true;
                    self.queue_ready_event(link);
                }
            }
            SimEventKind::Reaches(count) => {
                if it.server_closed {
                    self.schedule_client_event(at_ns, link, SimEventKind::Breaks);
                } else if it.streams.is_some() {
                    it.in_pipe -= count;
                    self.handle_h2_bytes(at_ns, link, count);
                } else {
                    it.arrived += count;
                    it.activity += 1;
                    self.read_on_server(at_ns, link);
                }
            }
            SimEventKind::Takes => {
                it.taking = false;
                self.read_on_server(at_ns, link);
            }
            SimEventKind::Answers => self.answer_request(at_ns, link),
            SimEventKind::AnswersStream(stream, left) => self.send_stream_part(at_ns, link, stream, left),
            SimEventKind::AnswersAgain => {
                if !it.server_closed {
                    self.send_response(at_ns, link, None, 0);
                }
            }
            SimEventKind::Closes => self.close(at_ns, link),
            SimEventKind::IdleSince(activity) => {
                if it.activity == activity {
                    self.close(at_ns, link);
                }
            }
            SimEventKind::BlurtsSince(activity) => {
                if it.activity == activity && !it.server_closed {
                    let bytes: Rc<[u8]> = b"\0who is there?"[..].into();
                    let to = bytes.len();
                    self.schedule_client_event(
                        at_ns,
                        link,
                        SimEventKind::Brings(BytesInTransit { bytes, from: 0, to }),
                    );
                }
            }
        }
    }

    /// Queues a connection, so that the next wait of the worker returns an event for it.
    fn queue_ready_event(&mut self, link: usize) {
        let it = &mut self.links[link];
        if !it.queued && !it.client_closed {
            it.queued = true;
            self.ready.push_back(link);
        }
    }

    /// Draws at random whether a fault affects a connection or request. Returns the fault; `None`
    /// for no fault.
    fn draw_fault(&mut self, at_ns: u64, of_connection: bool) -> Option<Fault> {
        let over = self.origin_ns != u64::MAX && at_ns.saturating_sub(self.origin_ns) >= self.server.faults_until_ns;
        if over || self.server.faults.is_empty() {
            return None;
        }
        let mut at = self.rng.next_f64();
        for (fault, share) in &self.server.faults {
            if at < *share {
                let applies = fault.is_connection_level() == of_connection;
                self.account.faults += u64::from(applies);
                return applies.then_some(*fault);
            }
            at -= share;
        }
        None
    }

    /// Converts an absolute time to schedule time, ns; 0 before the schedule starts.
    fn schedule_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.origin_ns)
    }

    /// Creates a connection. Returns the number of the connection, and whether the connection is
    /// already open.
    fn connect(&mut self, peer: Peer, token: u64) -> Result<(usize, bool), ConnectErrno> {
        self.spend_cpu_time(self.machine.connect_ns);
        self.account.connects += 1;
        if self.origin_ns != u64::MAX {
            self.account.connects_under_load += 1;
            self.account.connects_despite_idle += u64::from(self.links_idle > 0);
        }
        let fault = match peer {
            Peer::Tcp(address, _) if self.server.dead.contains(address) => Some(Fault::Refuses),
            _ => self.draw_fault(self.now_ns, true),
        };
        if fault == Some(Fault::NoPort) {
            return Err(NO_PORT);
        }
        let link = self.links.len();
        self.links.push(SimConnection {
            token,
            standing: SocketState::Opening,
            inbox: VecDeque::new(),
            ended: false,
            error: false,
            queued: false,
            blocked: false,
            client_closed: false,
            idle: false,
            reply_left: 0,
            flood_at: None,
            in_pipe: 0,
            sent_at: 0,
            server_closed: false,
            arrived: 0,
            taken: 0,
            fault: None,
            serving: false,
            taking: false,
            has_stopped_reading: false,
            activity: 0,
            last_ns: 0,
            streams: self.server.h2.map(|how| Box::new(SimH2Connection::new(how))),
        });
        self.links_open += 1;
        self.account.connections_max = self.account.connections_max.max(self.links_open);
        let mut heard_ns = self.now_ns + self.server.latency_ns;
        if let Some(stall) = self.server.stall.filter(|_| !self.server.accepts_in_stall && heard_ns >= self.origin_ns) {
            heard_ns = self.origin_ns + stall.end_of_stall(self.schedule_ns(heard_ns));
        }
        match fault {
            None if self.machine.connects_at_once => {
                self.account.connected += 1;
                self.set_idle(link, true);
                self.execute_event(self.now_ns, link, SimEventKind::Opens);
                return Ok((link, true));
            }
            Some(Fault::NeverAccepts) => {}
            Some(Fault::Refuses) => self.schedule_client_event(heard_ns, link, SimEventKind::Refuses),
            Some(Fault::ResetsOnAccept) => {
                self.schedule_client_event(heard_ns, link, SimEventKind::Opens);
                self.links[link].server_closed = true;
                let later_ns = self.rng.uniform_below(4) * self.server.latency_ns / 2;
                self.schedule_client_event(heard_ns + later_ns, link, SimEventKind::Breaks);
            }
            _ => self.schedule_client_event(heard_ns, link, SimEventKind::Opens),
        }
        Ok((link, false))
    }

    fn finish_connect(&mut self, link: usize) -> Result<(), ConnectErrno> {
        let it = &mut self.links[link];
        match it.standing {
            SocketState::Refused => Err(ECONNREFUSED),
            SocketState::Dead if std::mem::take(&mut it.error) => Err(ECONNRESET),
            _ => {
                self.account.connected += 1;
                self.set_idle(link, true);
                Ok(())
            }
        }
    }

    fn set_idle(&mut self, link: usize, idle: bool) {
        let before = std::mem::replace(&mut self.links[link].idle, idle);
        self.links_idle = self.links_idle + u64::from(idle) - u64::from(before);
    }

    fn send(&mut self, link: usize, bytes: &[u8]) -> SendOutcome {
        self.count_unwaited_call();
        self.spend_cpu_time(self.machine.send_ns);
        let it = &mut self.links[link];
        match it.standing {
            SocketState::Dead | SocketState::Refused => {
                self.account.broken += 1;
                return SendOutcome::Broken;
            }
            SocketState::Opening | SocketState::Open => {}
        }
        let count = match it.standing {
            SocketState::Open => bytes.len().min(self.server.buffer_bytes - it.in_pipe),
            _ => 0,
        };
        if count == 0 {
            it.blocked = true;
            self.account.blocked += 1;
            return SendOutcome::Blocked;
        }
        if let Some(streams) = &mut it.streams {
            streams.add_bytes_in_transit(&bytes[..count]);
        } else {
            // One send never contains bytes of two requests.
            let expected = self.request.get(it.sent_at..it.sent_at + count);
            self.account.bytes_wrong += if expected == Some(&bytes[..count]) { 0 } else { count as u64 };
            it.sent_at = (it.sent_at + count) % self.request.len();
        }
        self.account.bytes_sent += count as u64;
        if it.activity == 0 && it.in_pipe == 0 {
            self.account.connections_by_first_request.push(link);
        }
        it.in_pipe += count;
        self.set_idle(link, false);
        self.schedule_event(self.now_ns + self.server.latency_ns, link, SimEventKind::Reaches(count));
        SendOutcome::Bytes(count)
    }

    fn receive(&mut self, link: usize, buffer: &mut [u8]) -> ReceiveOutcome {
        assert!(!buffer.is_empty(), "a read into no buffer cannot be told from an end");
        self.count_unwaited_call();
        self.spend_cpu_time(self.machine.receive_ns);
        if self.links[link].flood_at.is_some() && self.links[link].inbox.is_empty() {
            self.spend_cpu_time(ENDLESS_BODY_READ_NS);
        }
        let it = &mut self.links[link];
        let mut count = 0;
        while let Some(piece) = it.inbox.front_mut()
            && count < buffer.len()
        {
            let taken = (piece.to - piece.from).min(buffer.len() - count);
            buffer[count..count + taken].copy_from_slice(&piece.bytes[piece.from..piece.from + taken]);
            piece.from += taken;
            count += taken;
            if piece.from == piece.to {
                it.inbox.pop_front();
            }
        }
        if let Some(at) = it.flood_at.as_mut().filter(|_| count == 0) {
            for byte in &mut buffer[..] {
                *byte = ENDLESS_BODY_CHUNK[*at];
                *at = (*at + 1) % ENDLESS_BODY_CHUNK.len();
            }
            count = buffer.len();
        }
        if count > 0 {
            self.account.bytes_read += count as u64;
            let floods = it.flood_at.is_some();
            let before = it.reply_left;
            it.reply_left = before.saturating_sub(count);
            if before > 0 && it.reply_left == 0 {
                self.set_idle(link, true);
            }
            if floods {
                // The next bytes of an endless response, which are still unread, cause a separate
                // event.
                self.queue_ready_event(link);
            }
            return ReceiveOutcome::Bytes(count);
        }
        match it.standing {
            _ if std::mem::take(&mut it.error) => ReceiveOutcome::Broken,
            SocketState::Dead | SocketState::Refused => ReceiveOutcome::End,
            _ if it.ended => ReceiveOutcome::End,
            SocketState::Opening | SocketState::Open => ReceiveOutcome::Blocked,
        }
    }

    /// Counts a read or send of the worker. Fails the test if the worker makes too many reads and
    /// sends between two waits.
    fn count_unwaited_call(&mut self) {
        self.calls_since_wait += 1;
        assert!(
            self.calls_since_wait < CALLS_BETWEEN_WAITS_MAX,
            "the worker has looked at nothing else until {} ns",
            self.now_ns
        );
    }

    fn drop_link(&mut self, link: usize) {
        self.set_idle(link, false);
        self.links[link].client_closed = true;
        self.links_open -= 1;
    }

    fn wait(&mut self, wait: WaitMode, ready: &mut Vec<ReadyEvent>) {
        let (began_ns, had) = (self.now_ns, ready.len());
        self.calls_since_wait = 0;
        self.spend_cpu_time(self.machine.wait_ns);
        match wait {
            WaitMode::Poll => {}
            WaitMode::Until(until_ns) => {
                let sleeps = self.ready.is_empty() && self.now_ns < until_ns;
                while self.ready.is_empty() && self.now_ns < until_ns {
                    let next_ns = self.heap.peek().map_or(u64::MAX, |Reverse(next)| next.at_ns);
                    self.now_ns = next_ns.min(until_ns);
                    self.run_due_events();
                }
                if sleeps {
                    self.now_ns += self.machine.wake_ns;
                    self.run_due_events();
                }
            }
        }
        if self.ready.is_empty() && self.now_ns == began_ns {
            self.spend_cpu_time(POLL_NS);
        }
        if let Some(pause) = self.machine.pause.filter(|_| self.now_ns >= self.origin_ns) {
            self.now_ns = self.origin_ns + pause.end_of_stall(self.now_ns - self.origin_ns);
            self.run_due_events();
        }
        self.take_ready_events(ready);
        self.stuck = if ready.len() > had || self.now_ns > began_ns { 0 } else { self.stuck + 1 };
        assert!(self.stuck < WAITS_WITHOUT_PROGRESS_MAX, "the worker goes round and round at {} ns", self.now_ns);
    }

    fn take_ready_events(&mut self, ready: &mut Vec<ReadyEvent>) {
        let mut fetched = 0;
        while fetched < EVENTS_PER_WAIT_MAX
            && let Some(link) = self.ready.pop_front()
        {
            let it = &mut self.links[link];
            it.queued = false;
            if it.client_closed {
                continue;
            }
            let broken = matches!(it.standing, SocketState::Dead | SocketState::Refused);
            let roomy = (self.server.buffer_bytes - it.in_pipe) * 3 >= self.server.buffer_bytes;
            let event = ReadyEvent {
                token: it.token,
                readable: !it.inbox.is_empty() || it.flood_at.is_some() || it.ended || broken,
                writable: broken || (it.standing == SocketState::Open && roomy),
                hangup: it.ended || broken,
            };
            self.events += 1;
            if self.machine.lose_event.is_some_and(|every| self.events.is_multiple_of(every)) {
                continue;
            }
            if event.readable || event.writable {
                fetched += 1;
                ready.push(event);
            }
        }
    }
}

/// The simulated network as a worker uses it: a handle to its [`SimWorld`].
pub struct SimNet(pub Rc<RefCell<SimWorld>>);

/// The client's end of a connection.
pub struct SimSocket {
    world: Rc<RefCell<SimWorld>>,
    link: usize,
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.world.borrow_mut().drop_link(self.link);
    }
}

impl Net for SimNet {
    type Socket = SimSocket;

    fn now_ns(&mut self) -> u64 {
        self.0.borrow().now_ns
    }

    fn cpu_ns(&mut self) -> u64 {
        self.0.borrow().cpu_ns
    }

    fn connect(&mut self, peer: Peer, token: u64) -> Result<(SimSocket, bool), ConnectErrno> {
        let (link, stands) = self.0.borrow_mut().connect(peer, token)?;
        Ok((SimSocket { world: Rc::clone(&self.0), link }, stands))
    }

    fn connect_result(&mut self, socket: &SimSocket) -> Result<(), ConnectErrno> {
        self.0.borrow_mut().finish_connect(socket.link)
    }

    fn send(&mut self, socket: &SimSocket, bytes: &[u8]) -> SendOutcome {
        self.0.borrow_mut().send(socket.link, bytes)
    }

    fn receive(&mut self, socket: &SimSocket, buffer: &mut [u8]) -> ReceiveOutcome {
        self.0.borrow_mut().receive(socket.link, buffer)
    }

    fn wait(&mut self, wait: WaitMode, ready: &mut Vec<ReadyEvent>) {
        self.0.borrow_mut().wait(wait, ready);
    }
}
