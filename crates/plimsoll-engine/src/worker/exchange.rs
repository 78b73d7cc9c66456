//! One request and its answer on a connection that stands, and how each ends.

use super::Worker;
use super::turns::{SLICE_BYTES, SLICE_NS};
use crate::connection::{Pending, Readiness, State};
use crate::net::{Net, Received, Sent};
use crate::recorder::Sample;
use plimsoll_model::{Failure, Outcome, TlsFailure};
use plimsoll_wire::h1::EndError;

impl<N: Net> Worker<N> {
    /// Starts a request on `slot` at the present time, over its connection or a new one.
    pub(super) fn start(&mut self, slot: u32, intended_ns: u64, measured: bool) {
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

    /// Writes the slot's request, or the rest of it.
    #[inline]
    pub(super) fn send(&mut self, slot: u32) {
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
        let mut room = SLICE_BYTES;
        loop {
            let rest = &request[pending.written as usize..];
            match self.net.send(socket, &rest[..rest.len().min(room)]) {
                Sent::Bytes(sent) => {
                    pending.written += sent as u32;
                    self.recorder.bytes_out += sent as u64;
                    if sent == rest.len() {
                        connection.state = State::Receiving;
                        return;
                    }
                    room -= sent;
                    if room == 0 {
                        connection.state = State::Sending;
                        self.defer(slot, Readiness::WRITABLE);
                        return;
                    }
                }
                Sent::Blocked => {
                    connection.state = State::Sending;
                    return;
                }
                Sent::Broken => {
                    connection.state = State::Sending;
                    self.defer(slot, Readiness::BROKEN);
                    return;
                }
            }
        }
    }

    /// Bytes, an end or an error can be read from the slot's connection.
    pub(super) fn on_readable(&mut self, slot: u32, hangup: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let generation = self.connections[slot as usize].generation;
        let (began_ns, mut taken) = (self.now_ns, 0);
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
                    taken += count;
                    if taken >= SLICE_BYTES || self.now_ns - began_ns >= SLICE_NS {
                        if self.connections[slot as usize].generation == generation {
                            self.defer(slot, Readiness { readable: true, hangup, ..Readiness::NONE });
                        }
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
    pub(super) fn on_bytes(&mut self, slot: u32, bytes: &[u8], hangup: bool) {
        let connection = &mut self.connections[slot as usize];
        let Some(pending) = &mut connection.pending else {
            // Bytes that nobody asked for: the connection cannot be trusted any more.
            self.recorder.surplus(bytes.len());
            self.lose(slot);
            return;
        };
        if pending.sent_ns == 0 {
            self.recorder.surplus(bytes.len());
            self.fail(slot, Failure::Protocol);
            return;
        }
        if pending.first_byte_ns == 0 {
            pending.first_byte_ns = self.now_ns;
        }
        match connection.parser.feed(bytes) {
            Ok(fed) => {
                if let Some(reply) = fed.reply {
                    let surplus = bytes.len() - fed.consumed;
                    if surplus > 0 {
                        self.recorder.surplus(surplus);
                    }
                    // An answer to a request that was not sent whole, more bytes than the answer has, or the news that
                    // the peer has closed: answered, but this connection ends here.
                    let reusable = reply.keep_alive
                        && self.job.keep_alive
                        && !hangup
                        && surplus == 0
                        && connection.state == State::Receiving;
                    self.answered(slot, reply.status, reusable);
                }
            }
            Err(_) => self.fail(slot, Failure::Protocol),
        }
    }

    /// The peer has ended (or broken) the connection.
    pub(super) fn on_end(&mut self, slot: u32, broken: bool) {
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
    pub(super) fn fail(&mut self, slot: u32, failure: Failure) {
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

    /// Ends the request whose sending found the connection broken, when all that it held has been read without an answer.
    #[cold]
    pub(super) fn settle_broken(&mut self, slot: u32, generation: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.generation != generation || connection.pending.is_none() {
            return;
        }
        if connection.deferred == Readiness::NONE {
            self.fail(slot, Failure::Reset);
        } else {
            connection.deferred.broken = true;
        }
    }
}
