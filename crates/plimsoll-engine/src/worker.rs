//! One worker: a loop that starts requests when they are due, carries them over its connections, and counts.
//!
//! Everything it touches is its own. Closed and open loads differ in two places only: who starts the next request
//! (`next_of_user`, `release_arrivals`), and what happens to a connection that has done its work.

mod prepare;
mod secure;

use crate::collect::Message;
use crate::connection::{Connection, Pending, State, of_token, token};
use crate::deadlines::Deadlines;
use crate::job::Job;
use crate::net::{Net, Ready, Received, Sent, Wait};
use crate::recorder::{Recorder, Sample};
use crate::spin::Spinner;
use plimsoll_model::schedule::ArrivalCursor;
use plimsoll_model::{Failure, Outcome, Plan, TlsFailure};
use plimsoll_sys::tcp;
use plimsoll_wire::h1::EndError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Received at a time; a reply that is longer is read in pieces.
const BUFFER_BYTES: usize = 64 << 10;
/// A user whose connection could not be opened tries again after this: a closed port would else be asked 100 000 times
/// a second.
const RECONNECT_PAUSE_NS: u64 = 10_000_000;
/// Arrivals started in one turn before replies are looked at again.
const ARRIVALS_PER_TURN: u32 = 64;
/// Arrivals that are late at the schedule's end are still started for this long; the rest is unsent.
const LATE_NS_MAX: u64 = 50_000_000;

/// A closed load's part in a worker.
struct Users {
    /// Slots 0..active make requests.
    active: u64,
    /// When `active` changes next (absolute).
    change_ns: u64,
    /// Measured requests left to start; `None`: no limit.
    left: Option<u64>,
    /// Users that wait before they try again: (when, slot), ascending.
    paused: VecDeque<(u64, u32)>,
}

enum Load {
    Closed(Users),
    Open {
        arrivals: ArrivalCursor,
        /// Intended start of the next arrival (absolute).
        next_ns: Option<u64>,
    },
}

/// A worker on its part of the world.
pub struct Worker<N: Net> {
    net: N,
    job: Job,
    stop: Arc<AtomicBool>,
    connections: Vec<Connection<N::Socket>>,
    /// Open connections without work: (slot, generation), the most recently used last. Entries may be stale.
    idle: Vec<(u32, u32)>,
    /// Slots without a socket.
    free: Vec<u32>,
    connections_open: u64,
    opening: u32,
    /// Connections that broke while a request was sent: (slot, generation). What they may still hold is read when the
    /// reading or starting under way is done, so that neither runs within itself.
    broken: Vec<(u32, u32)>,
    deadlines: Deadlines,
    recorder: Recorder,
    spinner: Spinner,
    load: Load,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    /// Plain text and cipher text of the connection at hand (TLS).
    plain: Vec<u8>,
    cipher: Vec<u8>,
    /// Schedule time 0 (absolute); everything before is preparation.
    origin_ns: u64,
    measured_from_ns: u64,
    end_ns: u64,
    measured_in_flight: u64,
    last_done_ns: u64,
    /// When the wish to stop was seen.
    stopped_ns: Option<u64>,
    /// The time as of the latest look at the clock.
    now_ns: u64,
}

impl<N: Net> Worker<N> {
    pub fn new(net: N, job: Job, stop: Arc<AtomicBool>) -> Self {
        let load = if job.schedule.is_open() {
            Load::Open { arrivals: job.schedule.arrivals(job.stripe), next_ns: None }
        } else {
            Load::Closed(Users {
                active: 0,
                change_ns: 0,
                left: job.schedule.requests_of(job.stripe),
                paused: VecDeque::new(),
            })
        };
        let mut worker = Worker {
            recorder: Recorder::new(job.number, job.timeout_ns),
            spinner: Spinner::new(job.spin, job.spare_core),
            net,
            stop,
            connections: Vec::new(),
            idle: Vec::new(),
            free: Vec::new(),
            connections_open: 0,
            opening: 0,
            broken: Vec::new(),
            deadlines: Deadlines::default(),
            load,
            ready: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            plain: Vec::new(),
            cipher: Vec::new(),
            origin_ns: u64::MAX,
            measured_from_ns: u64::MAX,
            end_ns: u64::MAX,
            measured_in_flight: 0,
            last_done_ns: 0,
            stopped_ns: None,
            now_ns: 0,
            job,
        };
        if matches!(worker.load, Load::Closed(_)) {
            let users = worker.job.stripe.count_of(worker.job.schedule.users_max());
            for _ in 0..users {
                worker.add_slot();
            }
        }
        worker
    }

    fn add_slot(&mut self) -> u32 {
        let slot = self.connections.len() as u32;
        self.connections.push(Connection::new());
        self.deadlines.add_slot();
        slot
    }

    /// Carries the schedule out from `origin_ns` (absolute) on, and tells `tell` every tick.
    pub fn run(&mut self, origin_ns: u64, tell: &mut dyn FnMut(Message)) {
        let schedule = Arc::clone(&self.job.schedule);
        let absolute = |ns: u64| origin_ns.saturating_add(ns);
        self.origin_ns = origin_ns;
        self.measured_from_ns = absolute(schedule.measured_from_ns());
        self.end_ns = schedule.end_ns().map_or(u64::MAX, absolute);
        self.recorder.begin(origin_ns, self.end_ns, self.net.cpu_ns());
        if let Load::Open { arrivals, next_ns } = &mut self.load {
            *next_ns = arrivals.next().map(|(_, start_ns)| absolute(start_ns));
        }
        self.now_ns = self.net.now_ns();
        while self.now_ns < origin_ns {
            self.net.wait(Wait::Until(origin_ns), &mut self.ready);
            self.handle_ready();
            self.now_ns = self.net.now_ns();
        }
        if let Load::Closed(users) = &mut self.load {
            users.change_ns = origin_ns;
        }
        let worker = self.job.index;
        let mut tick = 0;
        while !self.turn() {
            while self.now_ns >= origin_ns + (tick + 1) * Plan::TICK_NS {
                let interval = self.flush(origin_ns + (tick + 1) * Plan::TICK_NS);
                tell(Message::Tick { worker, index: tick, interval });
                tick += 1;
            }
        }
        let window_end_ns = self.window_end_ns();
        self.abandon();
        let interval = self.flush(self.now_ns);
        tell(Message::Done { worker, index: tick, interval, window_end_ns });
    }

    fn flush(&mut self, at_ns: u64) -> plimsoll_model::Interval {
        self.job.routes.refresh();
        let cpu_ns = self.net.cpu_ns();
        self.recorder.flush(at_ns, cpu_ns, self.connections_open)
    }

    /// One turn of the loop: wait, handle what is ready, start what is due. Returns whether the run is over.
    fn turn(&mut self) -> bool {
        let began_ns = self.now_ns;
        let due_ns = self.next_due_ns();
        let wait = self.spinner.decide(began_ns, due_ns, self.recorder.in_flight() > 0);
        self.net.wait(wait, &mut self.ready);
        let woke_ns = self.net.now_ns();
        self.now_ns = woke_ns;
        let events = !self.ready.is_empty();
        self.spinner.observe(wait, began_ns, woke_ns, events);
        if events {
            self.handle_ready();
        }
        if self.stopped_ns.is_none() && self.stop.load(Ordering::Relaxed) {
            self.stopped_ns = Some(self.now_ns);
        }
        let started = self.start_due();
        if events || started {
            self.now_ns = self.net.now_ns();
            // A look that brings work is part of it; a sleep is not.
            self.recorder.work_ns += self.now_ns - if wait == Wait::Poll && events { began_ns } else { woke_ns };
        }
        self.over()
    }

    /// The next time at which something is to be done, replies aside.
    fn next_due_ns(&self) -> u64 {
        let tick_ns = Plan::TICK_NS;
        let next_tick_ns = self.origin_ns + ((self.now_ns - self.origin_ns) / tick_ns + 1) * tick_ns;
        // The schedule's end, then that of the grace period.
        let grace_end_ns = self.end_ns.saturating_add(self.job.grace_ns);
        let mut due_ns = next_tick_ns.min(if self.now_ns < self.end_ns { self.end_ns } else { grace_end_ns });
        if let Some((at_ns, _)) = self.deadlines.first() {
            due_ns = due_ns.min(at_ns);
        }
        match &self.load {
            Load::Open { next_ns: Some(at_ns), .. } => due_ns = due_ns.min(*at_ns),
            Load::Open { next_ns: None, .. } => {}
            Load::Closed(users) => {
                due_ns = due_ns.min(users.change_ns);
                if let Some((at_ns, _)) = users.paused.front() {
                    due_ns = due_ns.min(*at_ns);
                }
            }
        }
        due_ns
    }

    /// Starts and ends what the time asks for. Returns whether there was anything.
    fn start_due(&mut self) -> bool {
        let mut worked = false;
        while let Some((at_ns, slot)) = self.deadlines.first()
            && at_ns <= self.now_ns
        {
            worked = true;
            self.fail(slot, Failure::Timeout);
        }
        match &self.load {
            Load::Open { .. } => worked |= self.release_arrivals(),
            Load::Closed(users) => {
                if users.change_ns <= self.now_ns {
                    worked = true;
                    self.change_users();
                }
                while let Load::Closed(users) = &mut self.load
                    && let Some((at_ns, slot)) = users.paused.front().copied()
                    && at_ns <= self.now_ns
                {
                    worked = true;
                    users.paused.pop_front();
                    self.now_ns = self.net.now_ns();
                    self.next_of_user(slot, at_ns);
                }
            }
        }
        self.settle_broken();
        worked
    }

    /// Open loads: starts every arrival that is due.
    fn release_arrivals(&mut self) -> bool {
        let mut released = 0;
        while let Load::Open { arrivals, next_ns } = &mut self.load
            && let Some(intended_ns) = *next_ns
            && intended_ns <= self.stopped_ns.unwrap_or(self.now_ns)
            && released < ARRIVALS_PER_TURN
        {
            let origin_ns = self.origin_ns;
            *next_ns = arrivals.next().map(|(_, start_ns)| origin_ns + start_ns);
            let measured = intended_ns >= self.measured_from_ns;
            // Of those that are too late to start, the ones that count are counted.
            if self.stopped_ns.is_some() || self.now_ns > self.end_ns.saturating_add(LATE_NS_MAX) {
                if measured {
                    self.recorder.unsent();
                }
                continue;
            }
            released += 1;
            match self.slot_for_arrival() {
                Some(slot) => {
                    self.now_ns = self.net.now_ns();
                    if measured {
                        self.recorder.lagged(self.now_ns - intended_ns);
                    }
                    self.start(slot, intended_ns, measured);
                }
                None if measured => self.recorder.unsent(),
                None => {}
            }
        }
        released > 0
    }

    /// An idle connection, else a slot for a new one, else nothing.
    fn slot_for_arrival(&mut self) -> Option<u32> {
        while let Some((slot, generation)) = self.idle.pop() {
            let connection = &self.connections[slot as usize];
            if connection.state == State::Idle && connection.generation == generation {
                return Some(slot);
            }
        }
        self.free.pop().or_else(|| (self.connections.len() < self.job.connections_max).then(|| self.add_slot()))
    }

    /// Closed loads: brings the number of active users to what the schedule says.
    fn change_users(&mut self) {
        let Load::Closed(users) = &mut self.load else { return };
        let (schedule, stripe) = (&self.job.schedule, self.job.stripe);
        // The change was to happen when it was announced; the first one at the schedule's start.
        let intended_ns = users.change_ns.min(self.now_ns);
        let at_ns = intended_ns - self.origin_ns;
        let (before, active) = (users.active, stripe.count_of(schedule.users_at(at_ns)));
        users.active = active;
        users.change_ns = schedule.next_users_change_ns(at_ns).map_or(u64::MAX, |ns| self.origin_ns.saturating_add(ns));
        for slot in before..active {
            // Users that were sent away earlier may still be under way, or wait to try again; they carry on by themselves.
            let slot = slot as u32;
            let waits = matches!(&self.load, Load::Closed(users) if users.paused.iter().any(|(_, s)| *s == slot));
            if self.connections[slot as usize].pending.is_none() && !waits {
                self.now_ns = self.net.now_ns();
                let lag_ns = self.now_ns - intended_ns;
                if self.next_of_user(slot, intended_ns) {
                    self.recorder.lagged(lag_ns);
                }
            }
        }
    }

    /// Closed loads: the user's next request, to start at `intended_ns`, if there is to be one. Returns whether there was
    /// one that counts.
    fn next_of_user(&mut self, slot: u32, intended_ns: u64) -> bool {
        let measured = intended_ns >= self.measured_from_ns;
        let over = self.stopped_ns.is_some() || intended_ns >= self.end_ns;
        let Load::Closed(users) = &mut self.load else { return false };
        if over || u64::from(slot) >= users.active {
            return false;
        }
        if measured && let Some(left) = &mut users.left {
            if *left == 0 {
                return false;
            }
            *left -= 1;
        }
        self.start(slot, intended_ns, measured);
        measured
    }

    /// Starts a request on `slot` at the present time, over its connection or a new one.
    fn start(&mut self, slot: u32, intended_ns: u64, measured: bool) {
        self.recorder.started(intended_ns, measured);
        self.measured_in_flight += u64::from(measured);
        self.deadlines.push(slot, self.now_ns + self.job.timeout_ns);
        let connection = &mut self.connections[slot as usize];
        debug_assert!(connection.pending.is_none());
        connection.pending = Some(Pending { intended_ns, sent_ns: 0, first_byte_ns: 0, written: 0, measured });
        match connection.state {
            State::Idle => self.send(slot),
            State::Free => {
                if self.open(slot).is_err() {
                    self.fail(slot, Failure::Connect);
                }
            }
            State::Connecting | State::Handshaking | State::Sending | State::Receiving => {
                unreachable!("a slot carries one request at a time")
            }
        }
    }

    /// Begins to open the slot's connection. Refusals are recorded; of a name's addresses every one is tried, as clients do
    /// (RFC 6724, section 2), and the last one's error returned.
    fn open(&mut self, slot: u32) -> Result<(), u16> {
        self.connections[slot as usize].tried = 0;
        self.open_next(slot)
    }

    /// Begins to open the slot's connection at the next address, or the one after it.
    fn open_next(&mut self, slot: u32) -> Result<(), u16> {
        loop {
            let connection = &mut self.connections[slot as usize];
            let (peer, address) = match connection.tried {
                0 => self.job.routes.next(),
                _ => self.job.routes.after(connection.address),
            };
            connection.generation = connection.generation.wrapping_add(1);
            connection.connect_began_ns = self.now_ns;
            connection.tried += 1;
            connection.address = address;
            match self.net.connect(peer, token(slot, connection.generation)) {
                Ok((socket, stands)) => {
                    connection.socket = Some(socket);
                    connection.state = State::Connecting;
                    self.opening += 1;
                    if stands {
                        self.connected(slot);
                    }
                    return Ok(());
                }
                Err(error) => {
                    self.recorder.connect_failed(error, address);
                    if !self.another_may_do(slot, error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Whether an address is left to be tried for the slot after this error.
    fn another_may_do(&self, slot: u32, error: u16) -> bool {
        tcp::is_of_address(error) && u64::from(self.connections[slot as usize].tried) < self.job.routes.choices()
    }

    /// The slot's connection reaches the server.
    fn connected(&mut self, slot: u32) {
        self.now_ns = self.net.now_ns();
        self.recorder.connected(self.now_ns - self.connections[slot as usize].connect_began_ns);
        match self.job.tls {
            None => self.stands(slot),
            Some(_) => self.begin_handshake(slot),
        }
    }

    fn close(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            State::Free => return,
            State::Connecting | State::Handshaking => self.opening -= 1,
            State::Idle | State::Sending | State::Receiving => self.connections_open -= 1,
        }
        connection.socket = None;
        connection.secure = None;
        connection.state = State::Free;
    }

    fn handle_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for event in ready.drain(..) {
            let (slot, generation) = of_token(event.token);
            if self.connections[slot as usize].generation != generation {
                continue;
            }
            if event.writable {
                self.on_writable(slot);
            }
            if event.readable && self.connections[slot as usize].generation == generation {
                self.on_readable(slot, event.hangup);
            }
        }
        self.ready = ready;
        self.settle_broken();
    }

    fn on_writable(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return };
        match connection.state {
            State::Connecting => match self.net.connected(socket) {
                Ok(()) => self.connected(slot),
                Err(error) => {
                    self.now_ns = self.net.now_ns();
                    self.recorder.connect_failed(error, connection.address);
                    if self.another_may_do(slot, error) {
                        self.close(slot);
                        if self.open_next(slot).is_ok() {
                            return;
                        }
                    }
                    if self.connections[slot as usize].pending.is_some() {
                        self.fail(slot, Failure::Connect);
                    } else {
                        self.lose(slot);
                    }
                }
            },
            State::Sending => self.send(slot),
            State::Handshaking => {
                self.flush_cipher(slot);
            }
            State::Free | State::Idle | State::Receiving => {}
        }
    }

    /// The slot's connection can carry requests from now on.
    fn stands(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Idle;
        self.opening -= 1;
        self.connections_open += 1;
        if connection.pending.is_some() {
            self.send(slot);
        } else {
            self.rest(slot);
        }
    }

    /// Writes the slot's request, or the rest of it.
    #[inline]
    fn send(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let (Some(socket), Some(pending)) = (&connection.socket, &mut connection.pending) else { return };
        if pending.sent_ns == 0 {
            pending.sent_ns = self.now_ns;
            connection.parser.begin(self.job.head_request);
        }
        if connection.secure.is_some() {
            self.send_secure(slot);
            return;
        }
        let request = &self.job.request;
        loop {
            match self.net.send(socket, &request[pending.written as usize..]) {
                Sent::Bytes(sent) => {
                    pending.written += sent as u32;
                    self.recorder.bytes_out += sent as u64;
                    if pending.written as usize == request.len() {
                        connection.state = State::Receiving;
                        return;
                    }
                }
                Sent::Blocked => {
                    connection.state = State::Sending;
                    return;
                }
                Sent::Broken => {
                    connection.state = State::Sending;
                    self.broken.push((slot, connection.generation));
                    return;
                }
            }
        }
    }

    /// Ends the requests whose sending failed. What broke the connection may still stand to be read: an answer that came
    /// before the whole request was taken (such as 413) counts. Only if there is none was it a reset.
    fn settle_broken(&mut self) {
        while let Some((slot, generation)) = self.broken.pop() {
            if self.connections[slot as usize].generation == generation {
                self.on_readable(slot, true);
            }
            let connection = &self.connections[slot as usize];
            if connection.generation == generation && connection.pending.is_some() {
                self.fail(slot, Failure::Reset);
            }
        }
    }

    fn on_readable(&mut self, slot: u32, hangup: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let generation = self.connections[slot as usize].generation;
        loop {
            let connection = &self.connections[slot as usize];
            // The slot may have been closed, or reopened for the next request, by what was just read.
            if connection.generation != generation {
                break;
            }
            let Some(socket) = &connection.socket else { break };
            let received = self.net.receive(socket, &mut buffer);
            match received {
                Received::Bytes(count) => {
                    self.now_ns = self.net.now_ns();
                    self.recorder.bytes_in += count as u64;
                    match connection.secure {
                        None => self.on_bytes(slot, &buffer[..count], hangup),
                        Some(_) => self.on_cipher(slot, &buffer[..count], hangup),
                    }
                    // A short read has emptied the socket: the next bytes bring an event of their own. The end does not,
                    // if it was announced along with these bytes.
                    if count < buffer.len() && !hangup {
                        break;
                    }
                }
                Received::Blocked => break,
                Received::End | Received::Broken => {
                    self.now_ns = self.net.now_ns();
                    self.on_end(slot, received == Received::Broken);
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    #[inline]
    fn on_bytes(&mut self, slot: u32, bytes: &[u8], hangup: bool) {
        let connection = &mut self.connections[slot as usize];
        let Some(pending) = &mut connection.pending else {
            // Bytes that nobody asked for: the connection cannot be trusted any more.
            self.lose(slot);
            return;
        };
        if pending.sent_ns == 0 {
            self.fail(slot, Failure::Protocol);
            return;
        }
        if pending.first_byte_ns == 0 {
            pending.first_byte_ns = self.now_ns;
        }
        match connection.parser.feed(bytes) {
            Ok(fed) => {
                if let Some(reply) = fed.reply {
                    // An answer to a request that was not sent whole, more bytes than the answer has, or the news that
                    // the peer has closed: answered, but this connection ends here.
                    let reusable = reply.keep_alive
                        && self.job.keep_alive
                        && !hangup
                        && fed.consumed == bytes.len()
                        && connection.state == State::Receiving;
                    self.answered(slot, reply.status, reusable);
                }
            }
            Err(_) => self.fail(slot, Failure::Protocol),
        }
    }

    /// The peer has ended (or broken) the connection.
    fn on_end(&mut self, slot: u32, broken: bool) {
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Handshaking {
            self.tls_failed(slot, if broken { TlsFailure::Reset } else { TlsFailure::Closed });
            return;
        }
        if connection.pending.is_none() {
            self.lose(slot);
            return;
        }
        if connection.state == State::Connecting {
            // The outcome of connecting is told by the writable event.
            return;
        }
        if broken {
            self.fail(slot, Failure::Reset);
            return;
        }
        if connection.secure.as_ref().is_some_and(|secure| !secure.ended) {
            // Anybody could have cut it there: an end that TLS does not vouch for ends no answer.
            self.fail(slot, Failure::ClosedEarly);
            return;
        }
        match connection.parser.finish() {
            Ok(reply) => self.answered(slot, reply.status, false),
            Err(EndError::NothingReceived | EndError::Truncated) => self.fail(slot, Failure::ClosedEarly),
        }
    }

    /// The slot's request was answered.
    #[inline]
    fn answered(&mut self, slot: u32, status: u16, reusable: bool) {
        let pending = self.connections[slot as usize].pending.unwrap_or_default();
        let (status, outcome) = match status {
            // An answer after the deadline is a timeout and no answer, however close: the caller had given up.
            _ if self.deadline_passed(slot) => (0, Outcome::Failed(Failure::Timeout)),
            status if self.job.ok_status.contains(status) => (status, Outcome::Success),
            _ => (status, Outcome::Failed(Failure::Status)),
        };
        self.finish(slot, &pending, status, outcome);
        if reusable {
            self.connections[slot as usize].state = State::Idle;
        } else {
            self.close(slot);
        }
        self.go_on(slot, false);
    }

    fn deadline_passed(&self, slot: u32) -> bool {
        // Only the first in the queue can be due, and a due one is always among the first.
        self.deadlines.first().is_some_and(|(at_ns, _)| at_ns <= self.now_ns)
            && self.deadlines.of(slot).is_some_and(|at_ns| at_ns <= self.now_ns)
    }

    /// The slot's request has failed; its connection is not used again.
    #[cold]
    fn fail(&mut self, slot: u32, failure: Failure) {
        let pending = self.connections[slot as usize].pending.unwrap_or_default();
        self.finish(slot, &pending, 0, Outcome::Failed(failure));
        self.close(slot);
        self.go_on(slot, matches!(failure, Failure::Connect | Failure::Tls));
    }

    #[inline]
    fn finish(&mut self, slot: u32, pending: &Pending, status: u16, outcome: Outcome) {
        self.connections[slot as usize].pending = None;
        self.deadlines.remove(slot);
        let sample = Sample {
            intended_ns: pending.intended_ns,
            sent_ns: pending.sent_ns,
            first_byte_ns: pending.first_byte_ns,
            done_ns: self.now_ns,
            status,
            outcome,
        };
        self.recorder.finished(&sample, pending.measured);
        if pending.measured {
            self.measured_in_flight -= 1;
            self.last_done_ns = self.now_ns;
        }
    }

    /// What a slot does after its request: the user's next one, or back to the pool.
    #[inline]
    fn go_on(&mut self, slot: u32, pause: bool) {
        match &mut self.load {
            Load::Closed(users) if pause => users.paused.push_back((self.now_ns + RECONNECT_PAUSE_NS, slot)),
            Load::Closed(_) => {
                self.next_of_user(slot, self.now_ns);
            }
            Load::Open { .. } => self.rest(slot),
        }
    }

    /// Puts a slot without a request back to where the next arrival looks (open loads).
    #[inline]
    fn rest(&mut self, slot: u32) {
        if matches!(self.load, Load::Open { .. }) {
            let connection = &self.connections[slot as usize];
            match connection.state {
                State::Idle => self.idle.push((slot, connection.generation)),
                _ => self.free.push(slot),
            }
        }
    }

    /// A connection without a request is gone.
    fn lose(&mut self, slot: u32) {
        self.close(slot);
        self.rest(slot);
    }

    /// Whether nothing is left to do.
    fn over(&self) -> bool {
        if let Some(stopped_ns) = self.stopped_ns {
            // Arrivals that were due by then are accounted for first.
            return match &self.load {
                Load::Open { next_ns, .. } => next_ns.is_none_or(|at_ns| at_ns > stopped_ns),
                Load::Closed(_) => true,
            };
        }
        let time_up = self.now_ns >= self.end_ns;
        let started_all = self.ended_by_count() || (time_up && self.nothing_due());
        if !started_all {
            return false;
        }
        self.measured_in_flight == 0 || self.now_ns >= self.end_ns.saturating_add(self.job.grace_ns)
    }

    /// Whether every request of a limited number was started.
    fn ended_by_count(&self) -> bool {
        match &self.load {
            Load::Open { next_ns, .. } => next_ns.is_none() && self.job.ends_by_number,
            Load::Closed(users) => users.left == Some(0) && self.now_ns >= self.measured_from_ns,
        }
    }

    /// Whether no arrival is left over from before the schedule's end.
    fn nothing_due(&self) -> bool {
        matches!(&self.load, Load::Closed(_) | Load::Open { next_ns: None, .. })
    }

    /// Schedule time at which this worker's part of the measured window ended.
    fn window_end_ns(&self) -> u64 {
        let end_ns = match self.stopped_ns {
            Some(stopped_ns) => stopped_ns.min(self.end_ns),
            None if self.ended_by_count() => self.last_done_ns.max(self.measured_from_ns).min(self.end_ns),
            None => self.end_ns,
        };
        end_ns.saturating_sub(self.origin_ns)
    }

    /// Gives up what is still under way.
    fn abandon(&mut self) {
        let measured = self.connections.iter().filter(|c| c.pending.is_some_and(|p| p.measured)).count();
        (0..measured).for_each(|_| self.recorder.abandoned());
    }
}
