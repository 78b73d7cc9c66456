//! One request and its answer on a connection that stands, and how each ends.

use super::Worker;
use super::turns::{SLICE_BYTES, SLICE_NS};
use crate::connection::{Readiness, State};
use crate::exchanges::Exchange;
use crate::failed::{Kind, Piece, status_of};
use crate::net::{Net, Received, Sent};
use crate::recorder::Sample;
use crate::source::{Last, RouteNumber};
use plimsoll_model::{Failure, Outcome, TlsFailure};
use plimsoll_wire::h1::{EndError, ProtocolError};

impl<N: Net> Worker<N> {
    /// Starts the request of `user` for `route` on `slot` at the present time, over its connection or a new one.
    pub(super) fn start(&mut self, slot: u32, user: u64, route: RouteNumber, intended_ns: u64, measured: bool) {
        self.recorder.started(intended_ns, measured);
        self.measured_in_flight += u64::from(measured);
        let exchange = Exchange::new(slot, user, route, intended_ns, measured);
        let number = self.exchanges.begin(exchange, self.now_ns);
        let connection = &mut self.connections[slot as usize];
        debug_assert!(connection.exchange.is_none());
        connection.exchange = Some(number);
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
        let (Some(socket), Some(number)) = (&connection.socket, connection.exchange) else { return };
        let exchange = &mut self.exchanges[number];
        let route = self.job.source.route(exchange.route);
        if exchange.sent_ns == 0 {
            exchange.sent_ns = self.now_ns;
            connection.written = 0;
            connection.parser.begin(route.head_request);
        }
        if connection.secure.is_some() {
            self.send_secure(slot);
            return;
        }
        let mut room = SLICE_BYTES;
        loop {
            let rest = &route.request[connection.written..];
            match self.net.send(socket, &rest[..rest.len().min(room)]) {
                Sent::Bytes(sent) => {
                    connection.written += sent;
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
        let Some(number) = connection.exchange else {
            // Bytes that nobody asked for: the connection cannot be trusted any more.
            self.recorder.surplus(bytes.len());
            self.lose(slot);
            return;
        };
        let exchange = &mut self.exchanges[number];
        if exchange.sent_ns == 0 {
            self.recorder.surplus(bytes.len());
            self.broke_protocol(slot, number, ProtocolError::Surplus, true, bytes);
            return;
        }
        let first = exchange.first_byte_ns == 0;
        if first {
            exchange.first_byte_ns = self.now_ns;
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
                    let reusable = reply.keep_alive && !hangup && surplus == 0 && connection.state == State::Receiving;
                    self.answered(slot, number, reply.status, reusable, (first, bytes));
                } else {
                    self.unfinished(slot, number, (first, bytes));
                }
            }
            Err(error) => self.broke_protocol(slot, number, error, first, bytes),
        }
    }

    /// The peer has ended (or broken) the connection.
    pub(super) fn on_end(&mut self, slot: u32, broken: bool) {
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Handshaking {
            self.tls_failed(slot, if broken { TlsFailure::Reset } else { TlsFailure::Closed });
            return;
        }
        let Some(number) = connection.exchange else {
            self.lose(slot);
            return;
        };
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
            Ok(reply) => self.answered(slot, number, reply.status, false, (false, &[])),
            Err(EndError::NothingReceived | EndError::Truncated) => self.fail(slot, Failure::ClosedEarly),
        }
    }

    /// A piece of an answer has come that does not end it: of one that fails it is kept.
    fn unfinished(&mut self, slot: u32, number: u32, (first, bytes): (bool, &[u8])) {
        let exchange = &self.exchanges[number];
        let parser = &self.connections[slot as usize].parser;
        let status = parser.status().or_else(|| if first { status_of(bytes) } else { None });
        let fails = |status| !self.job.source.route(exchange.route).ok_status.contains(status);
        if exchange.measured && status.is_none_or(fails) {
            let kind = status.map_or(Kind::Unknown, Kind::Status);
            self.failed_answers.begun(kind, Piece { slot, first, bytes, at_ns: self.now_ns - self.origin_ns });
        }
    }

    /// What came on the slot is no answer to its request.
    #[cold]
    fn broke_protocol(&mut self, slot: u32, number: u32, error: ProtocolError, first: bool, bytes: &[u8]) {
        if self.exchanges[number].measured {
            let piece = Piece { slot, first, bytes, at_ns: self.now_ns - self.origin_ns };
            self.failed_answers.ended(Kind::Protocol(error), piece);
        }
        self.fail(slot, Failure::Protocol);
    }

    /// The slot's exchange was answered with a status that is a failure.
    #[cold]
    fn answered_badly(&mut self, slot: u32, number: u32, status: u16, (first, bytes): (bool, &[u8])) {
        if self.exchanges[number].measured {
            let piece = Piece { slot, first, bytes, at_ns: self.now_ns - self.origin_ns };
            self.failed_answers.ended(Kind::Status(status), piece);
        }
    }

    /// The slot's exchange was answered. `reusable`: as far as the answer goes, the connection can be used again. `last`: the
    /// bytes that ended it, and whether they are its first, too.
    #[inline]
    fn answered(&mut self, slot: u32, number: u32, status: u16, reusable: bool, last: (bool, &[u8])) {
        let exchange = &self.exchanges[number];
        let route = self.job.source.route(exchange.route);
        let (status, outcome) = match status {
            // An answer after the deadline is a timeout and no answer, however close: the caller had given up.
            _ if exchange.deadline_ns <= self.now_ns => (0, Outcome::Failed(Failure::Timeout)),
            status if route.ok_status.contains(status) => (status, Outcome::Success),
            _ => (status, Outcome::Failed(Failure::Status)),
        };
        let reusable = reusable && route.keep_alive;
        if outcome == Outcome::Failed(Failure::Status) {
            self.answered_badly(slot, number, status, last);
        }
        let (user, last) = self.finish(slot, number, status, outcome);
        if reusable {
            self.connections[slot as usize].state = State::Idle;
        } else {
            self.close(slot);
        }
        self.go_on(slot, user, last);
    }

    /// The slot's exchange has failed; its connection is not used again.
    #[cold]
    pub(super) fn fail(&mut self, slot: u32, failure: Failure) {
        let Some(number) = self.connections[slot as usize].exchange else { return };
        self.failed_answers.given_up(slot);
        let (user, last) = self.finish(slot, number, 0, Outcome::Failed(failure));
        self.close(slot);
        self.go_on(slot, user, last);
    }

    /// Counts the slot's exchange, which has ended. Returns whose it was, and what that user may want to know.
    #[inline]
    fn finish(&mut self, slot: u32, number: u32, status: u16, outcome: Outcome) -> (u64, Last) {
        self.connections[slot as usize].exchange = None;
        self.exchanges.end(number);
        let exchange = &self.exchanges[number];
        let timeout_ns = match outcome {
            Outcome::Failed(Failure::Timeout) => self.job.source.route(exchange.route).timeout_ns,
            _ => 0,
        };
        let sample = Sample {
            intended_ns: exchange.intended_ns,
            sent_ns: exchange.sent_ns,
            first_byte_ns: exchange.first_byte_ns,
            done_ns: self.now_ns,
            status,
            outcome,
            timeout_ns,
        };
        let (user, route, measured) = (exchange.user, exchange.route, exchange.measured);
        self.recorder.finished(&sample, measured);
        if measured {
            self.measured_in_flight -= 1;
            self.last_done_ns = self.now_ns;
        }
        (user, Last { route, status, outcome })
    }

    /// Ends the request whose sending found the connection broken, when all that it held has been read without an answer.
    #[cold]
    pub(super) fn settle_broken(&mut self, slot: u32, generation: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.generation != generation || connection.exchange.is_none() {
            return;
        }
        if connection.deferred == Readiness::NONE {
            self.fail(slot, Failure::Reset);
        } else {
            connection.deferred.broken = true;
        }
    }
}
