//! Handles exchanges (a request and its response): sends the request on a connection, and handles
//! the response until the exchange ends. A connection parses its received bytes and reports events,
//! for example a complete response. This file records the times, checks the responses, and counts
//! the outcomes.

use super::state::{RequestStarts, Worker};
use super::turns::{SLICE_BYTES, SLICE_NS};
use crate::answers::StoredResponse;
use crate::connection::{ConnectionState, Readiness};
use crate::encoded_route::ResponseRetention;
use crate::exchanges::{Exchange, ExchangeQueue};
use crate::failed::{FailedResponseKind, TimedResponsePiece, status_in_partial_head};
use crate::net::{Net, ReceiveOutcome, SendOutcome};
use crate::recorder::FinishedRequest;
use crate::session_source::ResponseCheckInput;
use crate::users::LastRequest;
use plimsoll_model::failed_response::FailedRouteCheck;
use plimsoll_model::{GrpcStatus, Outcome, RequestFailure, RouteNumber, TlsFailure, grpc};
use plimsoll_wire::redirect::is_redirect;
use plimsoll_wire::{ConnectionEvent, ExchangeError, ProtocolError, ResponsePiece, ResponseTimes};

/// The maximum number of times that a request is sent again because a server did not process it. A
/// request that the server has not processed after the last repetition fails.
const RESENDS_MAX: u8 = 8;

impl<N: Net> Worker<N> {
    /// Starts a request of `user` for `route` now. The request uses the connection of `slot`, which
    /// is opened if necessary.
    pub(super) fn start_request(&mut self, slot: u32, user: u64, route: RouteNumber, intended_ns: u64, measured: bool) {
        self.recorder.count_started_request(route, intended_ns, measured);
        self.measured_in_flight += u64::from(measured);
        let exchange = Exchange::new(slot, user, route, intended_ns, measured);
        let number = self.exchanges.begin(exchange, self.now_ns);
        if self.job.source.prepare_request(number, user, route, self.now_ns) {
            // The time for filling in the request must not count as the server's time, so the clock
            // is read again.
            self.now_ns = self.net.now_ns();
            self.count_additional_messages(number);
        }
        self.send_or_queue_request(slot, number);
    }

    /// If an exchange contains several messages (requests of a batch), counts each message after
    /// the first as a separate request.
    fn count_additional_messages(&mut self, number: u32) {
        let further = self.job.source.message_count(number) - 1;
        let exchange = &mut self.exchanges[number];
        exchange.later_responses = further;
        let (route, intended_ns, measured) = (exchange.route, exchange.intended_ns, exchange.measured);
        for _ in 0..further {
            self.recorder.count_started_request(route, intended_ns, measured);
            self.measured_in_flight += u64::from(measured);
        }
    }

    /// Sends the request of an exchange on the slot's connection, at once or as soon as the
    /// connection can take another request.
    #[inline]
    fn send_or_queue_request(&mut self, slot: u32, number: u32) {
        if self.connections[slot as usize].can_send_request() {
            self.send_request(slot, number);
        } else {
            self.queue_request(slot, number);
        }
    }

    /// Makes a request wait until the slot's connection can take another request. In a closed loop,
    /// if the server sent GOAWAY on the connection, the request moves to another connection slot.
    #[inline(never)]
    fn queue_request(&mut self, slot: u32, number: u32) {
        if self.must_use_other_slot(slot) {
            let other = self.ensure_replacement_slot(slot);
            self.exchanges[number].slot = other;
            return self.send_or_queue_request(other, number);
        }
        let connection = &mut self.connections[slot as usize];
        self.exchanges.append_to_queue(&mut connection.waiting, number);
        match connection.state {
            ConnectionState::Open => self.recorder.count_stream_wait(),
            ConnectionState::Free => self.open_or_send_queued(slot),
            ConnectionState::Connecting | ConnectionState::Handshaking => {}
        }
    }

    /// Returns whether new requests of a closed loop must use another slot, because the server sent
    /// GOAWAY on the open connection of `slot`.
    fn must_use_other_slot(&self, slot: u32) -> bool {
        let connection = &self.connections[slot as usize];
        connection.state == ConnectionState::Open
            && connection.conn.has_received_goaway()
            && matches!(self.starts, RequestStarts::Closed(_))
    }

    /// Returns the slot that takes new requests after the server sent GOAWAY on the connection of
    /// `slot`. Until the connection with GOAWAY ends, the result is always the same slot.
    fn ensure_replacement_slot(&mut self, slot: u32) -> u32 {
        if let Some(other) = self.connections[slot as usize].goaway_replacement {
            return other;
        }
        // The first connection slots belong to the users of the closed loop. Later slots were added
        // to replace connections with GOAWAY. A replacement slot that is no longer needed is used
        // again for another connection with GOAWAY.
        let of_users = self.is_user_running.len().div_ceil(self.job.streams_max as usize);
        let is_spare = |slot: &u32| {
            let connection = &self.connections[*slot as usize];
            !connection.is_goaway_replacement && !connection.has_exchanges() && !connection.conn.has_received_goaway()
        };
        let spare = (of_users as u32..self.connections.len() as u32).find(is_spare);
        let other = spare.unwrap_or_else(|| self.add_slot());
        self.connections[other as usize].is_goaway_replacement = true;
        self.connections[slot as usize].goaway_replacement = Some(other);
        other
    }

    /// Sends an exchange's request on the slot's connection, which must have room for the request.
    ///
    /// Always inlined, because this function runs once per request and a call would cost as much as
    /// its body.
    #[inline(always)]
    pub(super) fn send_request(&mut self, slot: u32, number: u32) {
        let exchange = &mut self.exchanges[number];
        // A request that follows a redirect keeps the intended start and the send time of the first
        // request.
        if exchange.sent_ns == 0 {
            exchange.sent_ns = self.now_ns;
        }
        let request = self.job.source.request(number, exchange.route);
        if self.connections[slot as usize].conn.start(number, request) {
            self.send(slot);
        }
    }

    /// Sends pending bytes of the slot's connection, at most [`SLICE_BYTES`] at a time.
    #[inline]
    pub(super) fn send(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return };
        let (exchanges, source) = (&self.exchanges, &self.job.source);
        let mut room = SLICE_BYTES;
        loop {
            let bytes = connection
                .conn
                .bytes_to_send(|number| source.request(number, exchanges[number].route), &mut self.scratch);
            if bytes.is_empty() {
                break;
            }
            match self.net.send(socket, &bytes[..bytes.len().min(room)]) {
                SendOutcome::Bytes(sent) => {
                    self.recorder.load.bytes_out += sent as u64;
                    if connection.conn.record_sent(sent, &self.scratch) {
                        break;
                    }
                    room -= sent;
                    if room == 0 {
                        connection.has_partial_send = true;
                        self.defer_readiness(slot, Readiness::WRITABLE);
                        return;
                    }
                }
                SendOutcome::Blocked => {
                    connection.conn.record_sent(0, &self.scratch);
                    connection.has_partial_send = true;
                    return;
                }
                SendOutcome::Broken => {
                    connection.has_partial_send = true;
                    self.defer_readiness(slot, Readiness::BROKEN);
                    return;
                }
            }
        }
        connection.has_partial_send = false;
    }

    /// Reads from the slot's connection and handles the received bytes, for at most [`SLICE_BYTES`]
    /// bytes or [`SLICE_NS`] ns.
    pub(super) fn on_readable(&mut self, slot: u32, hangup: bool) {
        let Some(mut buffers) = self.buffers.take() else { return };
        let generation = self.connections[slot as usize].generation;
        let (began_ns, mut taken) = (self.now_ns, 0);
        loop {
            let connection = &self.connections[slot as usize];
            // The handling of received bytes may have closed the connection, or opened a new
            // connection in the same slot.
            if connection.generation != generation {
                break;
            }
            let Some(socket) = &connection.socket else { break };
            let received = self.net.receive(socket, &mut buffers.input);
            match received {
                ReceiveOutcome::Bytes(count) => {
                    self.now_ns = self.net.now_ns();
                    if taken == 0 && self.readable_ns != 0 {
                        self.recorder.count_read_wait(self.now_ns, self.now_ns.saturating_sub(self.readable_ns));
                    }
                    self.recorder.load.bytes_in += count as u64;
                    self.on_bytes(slot, &buffers.input[..count], &mut buffers.plain, hangup);
                    // A read that did not fill the buffer has emptied the socket, and later bytes
                    // cause a new readiness event. But if the current event announced the end of
                    // the stream (`hangup`), no new event follows, so the loop reads on.
                    if count < buffers.input.len() && !hangup {
                        break;
                    }
                    taken += count;
                    if taken >= SLICE_BYTES || self.now_ns - began_ns >= SLICE_NS {
                        if self.connections[slot as usize].generation == generation {
                            self.defer_readiness(slot, Readiness { readable: true, hangup, ..Readiness::NONE });
                        }
                        break;
                    }
                }
                ReceiveOutcome::Blocked => break,
                ReceiveOutcome::End | ReceiveOutcome::Broken => {
                    self.now_ns = self.net.now_ns();
                    self.handle_stream_end(slot, received == ReceiveOutcome::Broken);
                    break;
                }
            }
        }
        self.buffers = Some(buffers);
    }

    /// Handles bytes that the slot's connection received. `plain` is the buffer for decrypted
    /// bytes.
    #[inline]
    fn on_bytes(&mut self, slot: u32, bytes: &[u8], plain: &mut Vec<u8>, hangup: bool) {
        let connection = &mut self.connections[slot as usize];
        let generation = connection.generation;
        let mut received = connection.conn.receive(bytes, plain);
        while let Some(event) = self.connections[slot as usize].conn.next(&mut received) {
            match event {
                // A complete response is the most frequent event, so this loop handles a complete
                // response directly, without a call of `handle_event`.
                ConnectionEvent::Answered { exchange, status, grpc_status, piece, surplus, .. } => {
                    if self.job.source.wants_responses()
                        && self.report_response_to_author(exchange, status, piece, true)
                    {
                        self.follow_author_redirect(slot, exchange, (piece, surplus), hangup);
                    } else {
                        self.handle_complete_response(slot, exchange, (status, grpc_status), (piece, surplus), hangup);
                    }
                }
                other => self.handle_event(slot, other, hangup),
            }
            if received.is_empty() || !self.has_generation(slot, generation) {
                break;
            }
        }
    }

    /// Returns whether the slot still has the connection with the number `generation`. Each new
    /// connection in a slot gets a new generation number.
    #[inline]
    fn has_generation(&self, slot: u32, generation: u32) -> bool {
        let connection = &self.connections[slot as usize];
        connection.generation == generation && connection.socket.is_some()
    }

    /// Handles an event that the slot's connection reports about received bytes, for example a
    /// piece of a response.
    #[inline(never)]
    fn handle_event(&mut self, slot: u32, event: ConnectionEvent, hangup: bool) {
        match event {
            ConnectionEvent::Answered { exchange, status, grpc_status, piece, surplus, .. } => {
                if self.job.source.wants_responses() && self.report_response_to_author(exchange, status, piece, true) {
                    self.follow_author_redirect(slot, exchange, (piece, surplus), hangup);
                } else {
                    self.handle_complete_response(slot, exchange, (status, grpc_status), (piece, surplus), hangup);
                }
            }
            ConnectionEvent::AnsweredWithMore { exchange, status, piece } => {
                if self.job.source.wants_responses() {
                    self.report_response_to_author(exchange, status, piece, false);
                }
                self.finish_one_message(exchange, status, piece);
            }
            ConnectionEvent::Piece { exchange, status, piece } => {
                if self.job.source.wants_responses() {
                    self.job.source.add_response_piece(exchange, piece);
                }
                let first = self.count_response_bytes(exchange, piece.bytes.len());
                let route = self.job.source.route(self.exchanges[exchange].route);
                let is_kept = route.retention != ResponseRetention::Nothing;
                if route.ok_grpc.is_some() {
                    self.count_grpc_messages(exchange, first, piece.messages);
                }
                if is_kept {
                    self.store_response_piece(exchange, first, piece);
                }
                self.store_unfinished_piece(exchange, status, first, piece.bytes);
            }
            ConnectionEvent::Failed { exchange, error: ExchangeError::Protocol(error), piece } => {
                let first = self.count_response_bytes(exchange, piece.bytes.len());
                self.fail_with_protocol_error(exchange, error, first, piece.bytes);
            }
            ConnectionEvent::Failed { exchange, error: ExchangeError::End(_), .. } => {
                self.fail_exchange(exchange, RequestFailure::ClosedEarly)
            }
            ConnectionEvent::Failed { exchange, error: ExchangeError::Reset, .. } => {
                self.fail_exchange(exchange, RequestFailure::Reset)
            }
            ConnectionEvent::Failed { exchange, error: ExchangeError::StreamReset(error), .. } => {
                self.recorder.count_stream_reset(error);
                self.fail_exchange(exchange, RequestFailure::StreamReset);
            }
            ConnectionEvent::Failed { exchange, error: ExchangeError::GoAway(_), .. } => {
                self.fail_exchange(exchange, RequestFailure::Goaway);
            }
            ConnectionEvent::Refused { exchange, error } => self.send_again(slot, exchange, error),
            ConnectionEvent::GoAway { error } => {
                self.recorder.count_goaway(error);
                if self.connections[slot as usize].conn.is_over() {
                    self.handle_lost_connection(slot);
                } else if self.must_use_other_slot(slot) {
                    // After the server sent GOAWAY on a connection, the requests that wait for this
                    // connection move to other connections. On the connection with GOAWAY, the
                    // requests would wait until the slowest response has ended.
                    let mut waiting =
                        std::mem::replace(&mut self.connections[slot as usize].waiting, ExchangeQueue::EMPTY);
                    while let Some(number) = self.exchanges.take_first(&mut waiting) {
                        self.queue_request(slot, number);
                    }
                }
            }
            // The server broke a protocol rule on an idle connection, so no request fails.
            ConnectionEvent::ProtocolViolation(_) => self.handle_lost_connection(slot),
            ConnectionEvent::WindowNearlyEmpty => self.recorder.count_exhausted_flow_window(),
            ConnectionEvent::Surplus(bytes) => self.on_surplus_bytes(slot, bytes),
            ConnectionEvent::HandshakeDone { resumed } => self.complete_handshake(slot, resumed),
            ConnectionEvent::HasBytesToSend => {
                // After the received bytes, the connection may be able to take a waiting request.
                if !self.connections[slot as usize].waiting.is_empty() {
                    self.send_queued_requests(slot);
                }
                // If the socket's send buffer is full (`has_partial_send`), the next writable event
                // sends the pending bytes.
                if !self.connections[slot as usize].has_partial_send {
                    self.send(slot);
                }
            }
            ConnectionEvent::TlsStreamEnded => self.handle_stream_end(slot, false),
            ConnectionEvent::TlsFailed(reason) => {
                // The pending bytes contain a TLS alert, which tells the server the reason of the
                // TLS failure.
                self.send(slot);
                self.handle_tls_failure(slot, reason);
            }
        }
    }

    /// Counts received bytes of an exchange's response. Returns whether the received bytes are the
    /// first bytes of the response. The arrival time of the first bytes is recorded.
    #[inline]
    fn count_response_bytes(&mut self, number: u32, bytes: usize) -> bool {
        let exchange = &mut self.exchanges[number];
        self.recorder.count_received_bytes(exchange.route, bytes, self.now_ns, exchange.measured);
        let first = exchange.first_byte_ns == 0;
        if first {
            exchange.first_byte_ns = self.now_ns;
        }
        first
    }

    /// Counts complete messages of a gRPC response, and for streamed responses records the arrival
    /// times of the messages. `first` is true if the messages arrived with the first bytes of the
    /// response.
    fn count_grpc_messages(&mut self, number: u32, first: bool, count: u32) {
        let exchange = &self.exchanges[number];
        let route = exchange.route;
        if exchange.measured && count > 0 {
            self.recorder.count_grpc_messages(route, count);
        }
        if !self.job.source.route(route).has_message_times {
            return;
        }
        if self.last_messages_ns.len() <= number as usize {
            self.last_messages_ns.resize(number as usize + 1, 0);
        }
        let last_ns = &mut self.last_messages_ns[number as usize];
        if first {
            *last_ns = 0;
        }
        if count > 0 {
            let is_first = *last_ns == 0;
            let after_ns = self.now_ns - if is_first { exchange.sent_ns } else { *last_ns };
            *last_ns = self.now_ns;
            if exchange.measured {
                self.recorder.count_stream_messages(route, count, after_ns, is_first);
            }
        }
    }

    /// Handles received bytes that belong to no response: closes the connection, because it can no
    /// longer be trusted.
    #[cold]
    fn on_surplus_bytes(&mut self, slot: u32, bytes: &[u8]) {
        self.recorder.count_surplus_bytes(bytes.len());
        let waiting = &mut self.connections[slot as usize].waiting;
        match self.exchanges.take_first(waiting) {
            Some(number) => self.fail_with_protocol_error(number, ProtocolError::Surplus, true, bytes),
            None => self.handle_lost_connection(slot),
        }
    }

    /// Handles a connection that the peer has closed or broken.
    fn handle_stream_end(&mut self, slot: u32, broken: bool) {
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            ConnectionState::Handshaking => {
                self.handle_tls_failure(slot, if broken { TlsFailure::Reset } else { TlsFailure::Closed })
            }
            // The end of a connection that is still being opened needs no action, because its
            // writable event reports the result of the connect.
            ConnectionState::Connecting if !connection.waiting.is_empty() => {}
            _ if broken => self.fail_connection(slot, RequestFailure::Reset),
            _ => {
                let generation = connection.generation;
                let mut idle = true;
                while self.has_generation(slot, generation)
                    && let Some(event) = self.connections[slot as usize].conn.end_by_peer()
                {
                    idle = false;
                    self.handle_event(slot, event, true);
                }
                if idle {
                    self.handle_lost_connection(slot);
                }
            }
        }
    }

    /// Stores a piece of an unfinished response, if the response has failed or may still fail.
    fn store_unfinished_piece(&mut self, number: u32, status: Option<u16>, first: bool, bytes: &[u8]) {
        let exchange = &self.exchanges[number];
        let bare = self.connections[exchange.slot as usize].conn.is_h2();
        let status = status.or_else(|| if first { status_in_partial_head(bytes) } else { None });
        let fails = |status| !self.job.source.is_success_status(exchange.route, exchange.user, status);
        if exchange.measured && status.is_none_or(fails) {
            let kind = status.map_or(FailedResponseKind::StatusPending, FailedResponseKind::Status);
            let at_ns = self.now_ns - self.origin_ns;
            self.failed_answers.add_unfinished_piece(
                kind,
                TimedResponsePiece { exchange: number, first, has_separate_head: bare, bytes, at_ns },
            );
        }
    }

    /// Fails an exchange whose received bytes are not a valid response to its request.
    #[cold]
    fn fail_with_protocol_error(&mut self, number: u32, error: ProtocolError, first: bool, last: &[u8]) {
        self.store_failed_response(number, FailedResponseKind::Protocol(error), first, last);
        self.fail_exchange(number, RequestFailure::Protocol);
    }

    /// Stores the last piece of a failed response.
    #[cold]
    fn store_failed_response(&mut self, number: u32, kind: FailedResponseKind, first: bool, bytes: &[u8]) {
        let exchange = &self.exchanges[number];
        if exchange.measured {
            let bare = self.connections[exchange.slot as usize].conn.is_h2();
            let at_ns = self.now_ns - self.origin_ns;
            self.failed_answers.store_last_piece(
                kind,
                TimedResponsePiece { exchange: number, first, has_separate_head: bare, bytes, at_ns },
            );
        }
    }

    /// Stores a response that failed because of its status. If the response has a `grpc-status`
    /// field (`is_stated`), its `grpc-message` field is stored, because this field may explain the
    /// error better than the content.
    #[cold]
    fn store_response_failed_by_status(
        &mut self,
        number: u32,
        kind: FailedResponseKind,
        is_stated: bool,
        (first, last): (bool, &[u8]),
    ) {
        if is_stated {
            let message = self.connections[self.exchanges[number].slot as usize].conn.grpc_error_message();
            let message = grpc::decode_percent_encoded_message(message);
            self.store_failed_response(number, kind, true, &message);
        } else {
            self.store_failed_response(number, kind, first, last);
        }
    }

    /// Counts received bytes that follow a response and belong to no response.
    #[inline]
    fn count_surplus_bytes(&mut self, bytes: usize) {
        if bytes > 0 {
            self.recorder.count_surplus_bytes(bytes);
        }
    }

    /// Stores a piece of a response for the checks of its route.
    #[inline(never)]
    fn store_response_piece(&mut self, number: u32, first: bool, piece: ResponsePiece) {
        while self.answers.len() <= number as usize {
            self.answers.push(StoredResponse::default());
        }
        let answer = &mut self.answers[number as usize];
        if first {
            let conn = &self.connections[self.exchanges[number].slot as usize].conn;
            let route = self.job.source.route(self.exchanges[number].route);
            answer.begin_response(conn.is_h2().then(|| conn.fields()), route.retention == ResponseRetention::Head);
        }
        answer.add_piece(piece);
    }

    /// Stores the last piece of a response, checks the response, and returns its outcome.
    #[inline(never)]
    fn store_and_check_response(&mut self, number: u32, status: u16, first: bool, last: ResponsePiece) -> Outcome {
        self.store_response_piece(number, first, last);
        let outcome = self.check_response(number, status);
        self.answers[number as usize].clear_response();
        outcome
    }

    /// Checks a complete stored response and returns its outcome. If the response is a redirect
    /// that the route follows, prepares the next request instead.
    fn check_response(&mut self, number: u32, status: u16) -> Outcome {
        let exchange = &self.exchanges[number];
        let (user, route) = (exchange.user, exchange.route);
        let (took_ns, now_ns) = (self.now_ns - exchange.intended_ns, self.now_ns);
        let answer = &self.answers[number as usize];
        let has_ok_status = self.job.source.route(route).ok_status.contains(status);
        let of = ResponseCheckInput { user, route, exchange: number, has_ok_status, took_ns, now_ns };
        if self.job.source.route(route).redirects_max > 0
            && is_redirect(status)
            && answer.field_values("location").next().is_some()
        {
            return self.follow_redirect(of, status);
        }
        let miss = self.job.source.check_response(of, answer);
        if !has_ok_status {
            return Outcome::Failed(RequestFailure::Status);
        }
        let Some(miss) = miss else { return Outcome::Success };
        if exchange.measured {
            let reason = self.job.source.failed_check_message(route, miss);
            let missed = FailedRouteCheck { route, failure: miss.failure };
            let content = self.job.source.converted_content(route).unwrap_or(answer.content());
            self.failed_answers.add_failed_check(missed, status, answer, content, self.now_ns - self.origin_ns, reason);
        }
        Outcome::Failed(miss.failure)
    }

    /// Prepares the request that follows the redirect in a stored response, and sets
    /// `follows_redirect`, so that the exchange sends this request. If the redirect cannot be
    /// followed, the returned outcome is a failure.
    #[cold]
    fn follow_redirect(&mut self, input: ResponseCheckInput, status: u16) -> Outcome {
        let ResponseCheckInput { user, route, exchange: number, now_ns, .. } = input;
        let answer = &self.answers[number as usize];
        // The cookies of a redirect response are stored, as for every response.
        self.job.source.check_response(ResponseCheckInput { has_ok_status: false, ..input }, answer);
        let location = String::from_utf8_lossy(answer.field_values("location").next().unwrap_or_default());
        let exchange = &self.exchanges[number];
        match self.job.source.prepare_redirect((number, user), route, (status, &location), now_ns) {
            Ok(()) => {
                self.recorder.count_redirect(exchange.measured);
                self.follows_redirect = true;
                Outcome::Success
            }
            Err(why) => {
                let failure = RequestFailure::Expectation;
                if exchange.measured {
                    let missed = FailedRouteCheck { route, failure };
                    let at_ns = now_ns - self.origin_ns;
                    self.failed_answers.add_failed_check(missed, status, answer, answer.content(), at_ns, why.reason());
                }
                Outcome::Failed(failure)
            }
        }
    }

    /// Sends the exchange's next request after a redirect, over the same connection if possible.
    #[cold]
    fn send_redirected_request(&mut self, slot: u32, number: u32, hangup: bool) {
        self.failed_answers.discard_unfinished_response(number);
        self.exchanges[number].first_byte_ns = 0;
        let connection = &self.connections[slot as usize];
        if connection.conn.is_over() || (hangup && !connection.conn.is_busy()) {
            self.close(slot);
        }
        self.send_or_queue_request(slot, number);
    }

    /// Reports a response to the author (the script that writes the requests). The author (script)
    /// may follow a redirect only before the deadline, and only if the exchange has a single
    /// response (`is_only`). Returns whether the author (script) follows a redirect.
    fn report_response_to_author(&mut self, number: u32, status: u16, piece: ResponsePiece, is_only: bool) -> bool {
        let (times, is_last) = self.response_times_now(number);
        let exchange = &self.exchanges[number];
        let may_ask_on = is_only && is_last && self.job.source.message_count(number) == 1;
        let may_ask_on = may_ask_on && exchange.deadline_ns > self.now_ns;
        self.job.source.report_response(number, status, piece, times, (is_last, may_ask_on))
    }

    /// Sends the next request of an exchange after a redirect. `last`: the last piece of the
    /// redirect response. `surplus`: the number of bytes at the end of the last piece that do not
    /// belong to the response.
    #[cold]
    fn follow_author_redirect(
        &mut self,
        slot: u32,
        number: u32,
        (last, surplus): (ResponsePiece, usize),
        hangup: bool,
    ) {
        self.count_surplus_bytes(surplus);
        self.count_response_bytes(number, last.bytes.len().saturating_sub(surplus));
        self.recorder.count_redirect(self.exchanges[number].measured);
        self.send_redirected_request(slot, number, hangup);
    }

    /// Handles the complete response of an exchange on the slot's connection. `statuses`: the HTTP
    /// status of the response, and its gRPC status, if any. `last`: the last piece of the response,
    /// whose last `surplus` bytes do not belong to the response. `hangup` is true if the peer has
    /// closed its end of the connection.
    #[inline]
    fn handle_complete_response(
        &mut self,
        slot: u32,
        number: u32,
        statuses: (u16, Option<u16>),
        (last, surplus): (ResponsePiece, usize),
        hangup: bool,
    ) {
        self.count_surplus_bytes(surplus);
        let (status, outcome) = self.evaluate_response(number, statuses, last, surplus);
        if std::mem::take(&mut self.follows_redirect) {
            return self.send_redirected_request(slot, number, hangup);
        }
        let (user, last) = self.finish_exchange(number, status, outcome);
        let connection = &self.connections[slot as usize];
        if connection.conn.is_over() || (hangup && !connection.conn.is_busy()) {
            self.close(slot);
        }
        if !self.connections[slot as usize].waiting.is_empty() {
            self.open_or_send_queued(slot);
        }
        self.continue_user(slot, user, last);
    }

    /// Returns the HTTP status that is counted and the outcome of a response. The returned status
    /// is 0 if the response is later than its deadline. `statuses`: the HTTP status of the
    /// response, and its gRPC status, if any. `last`: the last piece of the response, whose last
    /// `surplus` bytes do not belong to the response.
    #[inline]
    fn evaluate_response(
        &mut self,
        number: u32,
        statuses: (u16, Option<u16>),
        last: ResponsePiece,
        surplus: usize,
    ) -> (u16, Outcome) {
        let first = self.count_response_bytes(number, last.bytes.len().saturating_sub(surplus));
        let exchange = &self.exchanges[number];
        let (asked, asker, is_measured) = (exchange.route, exchange.user, exchange.measured);
        let route = self.job.source.route(asked);
        let (status, grpc_status) = statuses;
        let mut kind = FailedResponseKind::Status(status);
        // A response after the deadline counts as a timeout, even if it is only slightly late,
        // because a real client would have given up.
        let (status, outcome) = if exchange.deadline_ns <= self.now_ns {
            (0, Outcome::Failed(RequestFailure::Timeout))
        } else {
            let mut succeeds = self.job.source.is_success_status(asked, asker, status);
            if let Some(ok) = route.ok_grpc {
                let ended =
                    grpc_status.map_or(GrpcStatus::from_http_status(status), |code| GrpcStatus::from_code(code.into()));
                succeeds &= ok.contains(ended);
                let conn = &self.connections[exchange.slot as usize].conn;
                let fault = conn.grpc_message_fault();
                kind = FailedResponseKind::Call { status, grpc_status: ended, is_stated: grpc_status.is_some(), fault };
                if is_measured {
                    self.recorder.count_grpc_call(asked, ended, fault, conn.has_large_grpc_message());
                }
                if last.messages > 0 {
                    self.count_grpc_messages(number, first, last.messages);
                }
            }
            let route = self.job.source.route(asked);
            let outcome = if !succeeds && route.ok_grpc.is_some() {
                Outcome::Failed(RequestFailure::Status)
            } else if route.retention != ResponseRetention::Nothing {
                self.store_and_check_response(number, status, first, last)
            } else if succeeds {
                Outcome::Success
            } else {
                Outcome::Failed(RequestFailure::Status)
            };
            (status, outcome)
        };
        if is_measured && status != 0 && self.job.source.differs_from_logged_status(asker, status) {
            self.recorder.count_changed_status(asked);
        }
        if outcome == Outcome::Failed(RequestFailure::Status) {
            self.store_response_failed_by_status(number, kind, grpc_status.is_some(), (first, last.bytes));
        }
        (status, outcome)
    }

    /// For an exchange with several messages (requests of a batch), handles the response to one
    /// message while other responses are still missing.
    fn finish_one_message(&mut self, number: u32, status: u16, last: ResponsePiece) {
        let (status, outcome) = self.evaluate_response(number, (status, None), last, 0);
        self.exchanges[number].later_responses -= 1;
        self.count_message_outcome(number, status, outcome);
        // The time to first byte is measured for each response, so it is reset before the next
        // response of the exchange.
        self.exchanges[number].first_byte_ns = 0;
    }

    /// Sends a request again, because the server did not process the request. In an open loop the
    /// repeated request may use another connection. After [`RESENDS_MAX`] repetitions the request
    /// fails.
    #[cold]
    fn send_again(&mut self, slot: u32, number: u32, error: ExchangeError) {
        let exchange = &mut self.exchanges[number];
        exchange.resent += 1;
        (exchange.sent_ns, exchange.first_byte_ns) = (0, 0);
        let is_enough = exchange.resent > RESENDS_MAX || self.stopped_ns.is_some();
        self.recorder.count_resent_request();
        let other = match (is_enough, &self.starts) {
            (true, _) => None,
            (false, RequestStarts::Closed(_)) => Some(slot),
            (false, RequestStarts::Open { .. }) => self.acquire_slot_for_user(self.exchanges[number].user),
        };
        let Some(other) = other else {
            let failure = match error {
                ExchangeError::StreamReset(error) => {
                    self.recorder.count_stream_reset(error);
                    RequestFailure::StreamReset
                }
                ExchangeError::GoAway(_) => RequestFailure::Goaway,
                _ => RequestFailure::ClosedEarly,
            };
            return self.fail_exchange(number, failure);
        };
        self.exchanges[number].slot = other;
        self.send_or_queue_request(other, number);
        // The connection of the first attempt may be unusable now.
        let connection = &self.connections[slot as usize];
        if connection.state == ConnectionState::Open && connection.conn.is_over() {
            self.handle_lost_connection(slot);
        } else {
            self.make_slot_available(slot);
        }
    }

    /// Ends an exchange that has reached its deadline, and counts a timeout.
    #[cold]
    pub(super) fn time_out(&mut self, number: u32) {
        let slot = self.exchanges[number].slot;
        let connection = &mut self.connections[slot as usize];
        if !self.exchanges.remove_from_queue(&mut connection.waiting, number) {
            connection.conn.cancel(number);
            // If the connection stays open, plimsoll tells the server that the request is
            // cancelled.
            if !connection.has_partial_send && connection.conn.wants_to_send() {
                self.send(slot);
            }
        }
        self.fail_exchange(number, RequestFailure::Timeout);
    }

    /// Closes the slot's connection. The requests in flight on the connection fail, and so do the
    /// requests that wait for the connection to open.
    #[cold]
    pub(super) fn fail_connection(&mut self, slot: u32, failure: RequestFailure) {
        let connection = &mut self.connections[slot as usize];
        let mut fallen = std::mem::take(&mut self.failed_exchanges);
        if connection.state == ConnectionState::Open {
            // Requests that waited until an open connection could take them do not fail, but
            // continue on the slot's next connection.
            while let Some(number) = connection.conn.abandon_next_exchange() {
                fallen.push(number);
            }
        } else {
            while let Some(number) = self.exchanges.take_first(&mut connection.waiting) {
                fallen.push(number);
            }
        }
        if fallen.is_empty() {
            self.handle_lost_connection(slot);
        } else {
            self.close(slot);
            for number in fallen.drain(..) {
                self.fail_exchange(number, failure);
            }
        }
        self.failed_exchanges = fallen;
    }

    /// Ends an exchange (a request and its response) with a failure, and continues the simulated
    /// user that sent the request. Closes the exchange's connection if the connection is unusable
    /// now.
    #[cold]
    fn fail_exchange(&mut self, number: u32, failure: RequestFailure) {
        self.failed_answers.discard_unfinished_response(number);
        let slot = self.exchanges[number].slot;
        let (user, last) = self.finish_exchange(number, 0, Outcome::Failed(failure));
        let connection = &self.connections[slot as usize];
        let is_of_use = match connection.state {
            ConnectionState::Open => !connection.conn.is_over(),
            _ => !connection.waiting.is_empty(),
        };
        if !is_of_use {
            self.close(slot);
        }
        if !self.connections[slot as usize].waiting.is_empty() {
            self.open_or_send_queued(slot);
        }
        self.continue_user(slot, user, last);
    }

    /// Ends an exchange (a request and its response) and counts its outcome. Returns the user that
    /// sent the request, and the result of the request.
    #[inline]
    fn finish_exchange(&mut self, number: u32, status: u16, outcome: Outcome) -> (u64, LastRequest) {
        // Messages (requests of a batch) of the exchange that have no response yet get the outcome
        // of the exchange.
        for _ in 0..self.exchanges[number].later_responses {
            self.count_message_outcome(number, status, outcome);
        }
        self.exchanges.end(number);
        if let Outcome::Failed(failure) = outcome {
            // Pieces of a response that will not be checked would keep their share of the memory
            // budget until the exchange's number is used again.
            if let Some(stored) = self.answers.get_mut(number as usize) {
                stored.clear_response();
            }
            if self.job.source.wants_responses() {
                let times = self.exchange_times(number);
                self.job.source.report_missing_response(number, failure, times);
            }
        }
        self.count_message_outcome(number, status, outcome);
        let exchange = &self.exchanges[number];
        (exchange.user, LastRequest { route: exchange.route, status, outcome })
    }

    /// Returns the times of a response that is complete now, and whether the response is the last
    /// response of its exchange.
    fn response_times_now(&self, number: u32) -> (ResponseTimes, bool) {
        let times = self.exchange_times(number);
        // If the whole response arrived at once, its first byte arrived now.
        let first_byte_ns = if times.first_byte_ns == 0 { self.now_ns } else { times.first_byte_ns };
        (ResponseTimes { first_byte_ns, ..times }, self.exchanges[number].later_responses == 0)
    }

    /// Returns the times of an exchange for the report to the author (the script that writes the
    /// requests).
    fn exchange_times(&self, number: u32) -> ResponseTimes {
        let exchange = &self.exchanges[number];
        let Exchange { intended_ns, sent_ns, first_byte_ns, .. } = *exchange;
        ResponseTimes { intended_ns, sent_ns, first_byte_ns, done_ns: self.now_ns }
    }

    /// Counts the outcome of one message of an exchange. Each message (one request of a batch)
    /// counts as a request.
    #[inline]
    fn count_message_outcome(&mut self, number: u32, status: u16, outcome: Outcome) {
        let exchange = &self.exchanges[number];
        let timeout_ns = match outcome {
            Outcome::Failed(RequestFailure::Timeout) => self.job.source.route(exchange.route).timeout_ns,
            _ => 0,
        };
        let sample = FinishedRequest {
            route: exchange.route,
            intended_ns: exchange.intended_ns,
            sent_ns: exchange.sent_ns,
            first_byte_ns: exchange.first_byte_ns,
            done_ns: self.now_ns,
            status,
            outcome,
            timeout_ns,
        };
        let measured = exchange.measured;
        self.recorder.count_finished_request(&sample, measured);
        if measured {
            self.measured_in_flight -= 1;
            self.last_done_ns = self.now_ns;
        }
    }

    /// Fails the requests of a connection on which a send failed, as soon as all bytes that the
    /// connection received are read.
    #[cold]
    pub(super) fn end_exchanges_after_broken_send(&mut self, slot: u32, generation: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.generation != generation || !connection.has_exchanges() {
            return;
        }
        if connection.deferred == Readiness::NONE {
            self.fail_connection(slot, RequestFailure::Reset);
        } else {
            connection.deferred.broken = true;
        }
    }
}
