//! One connection of the reference server: reads requests, and sends responses as far as the socket
//! accepts them.

use super::answer::{BODY_FILLER, burn_cpu_time, write_answer, write_refusal};
use super::h2::H2ServerConnection;
use super::request::{ReaderStep, RequestReader, Resource, ServedRequest};
use plimsoll_sys::clock;
use plimsoll_sys::epoll::Event;
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::h2::CONNECTION_PREFACE;
use plimsoll_wire::tls::ServerSession;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// The size of the receive buffer, bytes.
pub(super) const INPUT_BYTES: usize = 64 * 1024;
/// The number of response bytes that are collected before they are sent, if a client pipelines
/// requests.
pub(super) const OUTPUT_BYTES: usize = 32 * 1024;
/// The largest number of steps (such as one read or one send) of one connection before other
/// connections get their turn. An event loop also accepts at most this number of connections at
/// once.
pub(super) const STEPS_PER_TURN_MAX: usize = 64;
/// The longest time in ns to read the client's remaining bytes after the server refused a request.
/// If the server closed the connection without reading, the client would get a reset instead of the
/// response.
pub(super) const DRAIN_NS: u64 = 1_000_000_000;
/// The buffers and timers that all connections of a thread share.
pub(super) struct ThreadBuffers {
    pub(super) input: Box<[u8]>,
    pub(super) output: Vec<u8>,
    /// Buffer for the decrypted input of a TLS connection.
    pub(super) plain: Vec<u8>,
    pub(super) timers: Timers,
}

/// The timers of all connections, the earliest first. Each timer has a due time in ns and the slot
/// (table index) of its connection. A timer is ignored if the connection in the slot no longer
/// waits for the timer's due time.
pub(super) type Timers = BinaryHeap<Reverse<(u64, u32)>>;

/// The phase of a connection: serving requests, waiting with a delayed response, or closing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServingPhase {
    /// The connection accepts requests.
    Open,
    /// The connection sends the response to this request at the time `ServedConnection::due_ns`. A
    /// connection with a delayed response reads no further request.
    Delayed(ServedRequest),
    /// The connection closes once all bytes are sent.
    Closing,
    /// The request was refused. Once all bytes are sent, the server stops sending, reads the
    /// client's remaining bytes, and then closes the connection. Closing with unread bytes would
    /// reset the connection, and the client could lose the response.
    Refusing,
    /// The server has sent its refusal. It reads and discards the client's remaining bytes until
    /// the time `ServedConnection::due_ns`.
    Draining,
}

/// The action that a connection needs after its turn in the event loop: to wait, to get another
/// turn, or to be closed.
#[derive(PartialEq, Eq)]
pub(super) enum ConnectionNeed {
    /// The connection waits for its next event or timer.
    Wait,
    /// The connection has more work, but other connections get their turn first.
    Again,
    /// The connection is over and must be closed.
    Close,
}

pub(super) struct ServedConnection {
    pub(super) socket: Socket,
    /// The TLS session; `None` for a plain connection.
    tls: Option<Box<ServerSession>>,
    /// Bytes received and not yet parsed: an incomplete head, or requests queued behind a delayed
    /// request. The buffer is usually empty.
    pub(super) unparsed_input: Vec<u8>,
    /// Response bytes that the socket has not accepted, already encrypted if TLS is used. The
    /// buffer is usually empty.
    pub(super) unsent: Vec<u8>,
    /// The number of body bytes (from `BODY_FILLER`) to send after `unsent`.
    pub(super) unsent_filler_bytes: u64,
    pub(super) reader: RequestReader,
    /// Whether no byte was read yet, so that the protocol (HTTP/1.1 or HTTP/2) is unknown.
    is_new: bool,
    /// The HTTP/2 state; `None` over HTTP/1.1.
    streams: Option<Box<H2ServerConnection>>,
    pub(super) phase: ServingPhase,
    pub(super) due_ns: u64,
    pub(super) slot: u32,
    /// Whether the socket may have bytes to read. Epoll is edge-triggered, so `readable` stays true
    /// until a read returns fewer bytes than the buffer can take.
    pub(super) readable: bool,
    /// Whether epoll announced that the peer has closed the connection. The server still reads all
    /// bytes that the peer sent before closing.
    pub(super) is_closed_by_peer: bool,
    /// Whether the bytes in `unparsed_input` cannot be parsed further until more bytes arrive.
    pub(super) needs_more_input: bool,
    /// Whether the connection is in the list of connections with more work.
    pub(super) is_in_work_list: bool,
}

impl ServedConnection {
    pub(super) fn new(socket: Socket, tls: Option<Box<ServerSession>>, slot: u32) -> ServedConnection {
        ServedConnection {
            socket,
            tls,
            unparsed_input: Vec::new(),
            unsent: Vec::new(),
            unsent_filler_bytes: 0,
            reader: RequestReader::new(),
            is_new: true,
            streams: None,
            phase: ServingPhase::Open,
            due_ns: 0,
            slot,
            readable: false,
            is_closed_by_peer: false,
            needs_more_input: false,
            is_in_work_list: false,
        }
    }

    pub(super) fn on_event(&mut self, event: Event, tools: &mut ThreadBuffers) -> ConnectionNeed {
        self.readable |= event.readable();
        self.is_closed_by_peer |= event.is_hung_up();
        if self.is_closed_by_peer && matches!(self.phase, ServingPhase::Delayed(_)) && self.socket.take_error().is_err()
        {
            return ConnectionNeed::Close;
        }
        self.advance_until_blocked(tools)
    }

    pub(super) fn on_timer(&mut self, due_ns: u64, tools: &mut ThreadBuffers) -> ConnectionNeed {
        if let Some(streams) = &mut self.streams {
            let next_ns = streams.on_timer(clock::monotonic_ns());
            if let Some(next_ns) = next_ns {
                tools.timers.push(Reverse((next_ns, self.slot)));
            }
            return self.advance_until_blocked(tools);
        }
        if due_ns != self.due_ns {
            return ConnectionNeed::Wait;
        }
        match self.phase {
            ServingPhase::Delayed(request) => {
                self.phase = if request.keep { ServingPhase::Open } else { ServingPhase::Closing };
                write_answer(&mut tools.output, &request);
                self.send(&mut tools.output);
                self.advance_until_blocked(tools)
            }
            ServingPhase::Draining => ConnectionNeed::Close,
            ServingPhase::Open | ServingPhase::Closing | ServingPhase::Refusing => ConnectionNeed::Wait,
        }
    }

    /// Sends and reads for this connection as long as no step has to wait, up to
    /// [`STEPS_PER_TURN_MAX`] steps.
    pub(super) fn advance_until_blocked(&mut self, tools: &mut ThreadBuffers) -> ConnectionNeed {
        for _ in 0..STEPS_PER_TURN_MAX {
            match self.send_next_piece() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ConnectionNeed::Wait,
                Err(_) => return ConnectionNeed::Close,
            }
            if let Some(streams) = &mut self.streams
                && streams.wants_to_send()
            {
                streams.write(&mut tools.output);
                self.send(&mut tools.output);
                continue;
            }
            let phase = self.phase;
            match phase {
                ServingPhase::Open | ServingPhase::Draining => {}
                ServingPhase::Delayed(_) => return ConnectionNeed::Wait,
                ServingPhase::Closing if self.send_close_notify(tools) => continue,
                ServingPhase::Closing => return ConnectionNeed::Close,
                ServingPhase::Refusing if self.send_close_notify(tools) => continue,
                ServingPhase::Refusing => {
                    if self.socket.shutdown_send().is_err() {
                        return ConnectionNeed::Close;
                    }
                    self.phase = ServingPhase::Draining;
                    self.start_timer(DRAIN_NS, &mut tools.timers);
                }
            }
            if !self.unparsed_input.is_empty() && !self.needs_more_input {
                let held = std::mem::take(&mut self.unparsed_input);
                let used = self.serve_requests(&held, &mut tools.output, &mut tools.timers);
                self.keep_unparsed(held, used);
                continue;
            }
            if !self.readable {
                return ConnectionNeed::Wait;
            }
            let received = match self.socket.recv(&mut tools.input) {
                Ok(0) => return ConnectionNeed::Close,
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return ConnectionNeed::Wait;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return ConnectionNeed::Close,
            };
            // After a read that does not fill the buffer, the socket is empty, and the next
            // received byte causes an epoll event.
            self.readable = received == tools.input.len() || self.is_closed_by_peer;
            if self.phase == ServingPhase::Draining {
                continue;
            }
            let input = match self.tls {
                None => &tools.input[..received],
                Some(_) => {
                    self.decrypt_received(received, tools);
                    &tools.plain[..]
                }
            };
            if input.is_empty() {
                continue;
            }
            if self.unparsed_input.is_empty() {
                let used = self.serve_requests(input, &mut tools.output, &mut tools.timers);
                self.unparsed_input.extend_from_slice(&input[used..]);
            } else {
                self.unparsed_input.extend_from_slice(input);
                self.needs_more_input = false;
            }
        }
        ConnectionNeed::Again
    }

    /// Decrypts received bytes into `plain`, and continues a handshake if there is one. A TLS error
    /// ends the connection.
    fn decrypt_received(&mut self, received: usize, tools: &mut ThreadBuffers) {
        let Some(tls) = &mut self.tls else { return };
        tools.plain.clear();
        let news = tls.receive(&tools.input[..received], &mut tools.plain);
        tls.take_bytes_to_send(&mut tools.output);
        self.send_bytes(&mut tools.output);
        if news.is_err() {
            // The output already contains the TLS alert with the reason of the error. After the TLS
            // alert, no more bytes are encrypted.
            self.tls = None;
            tools.plain.clear();
            self.phase = ServingPhase::Refusing;
        }
    }

    /// Sends the TLS close notification, once. Returns whether this call sent the notification.
    fn send_close_notify(&mut self, tools: &mut ThreadBuffers) -> bool {
        // The TLS session is taken out of the connection, so the close notification is sent only
        // once.
        let Some(mut tls) = self.tls.take() else { return false };
        tls.queue_close_notify();
        tls.take_bytes_to_send(&mut tools.output);
        self.send_bytes(&mut tools.output);
        true
    }

    /// Keeps the bytes of `unparsed_input` that were not parsed, or frees the memory if all bytes
    /// were parsed.
    pub(super) fn keep_unparsed(&mut self, mut held: Vec<u8>, used: usize) {
        if used < held.len() {
            held.drain(..used);
            self.unparsed_input = held;
        }
    }

    /// Parses requests from `input` and sends their responses. Returns the number of bytes parsed.
    pub(super) fn serve_requests(&mut self, input: &[u8], output: &mut Vec<u8>, timers: &mut Timers) -> usize {
        let mut at = 0;
        self.needs_more_input = false;
        if self.is_new {
            if input.len() < CONNECTION_PREFACE.len() && CONNECTION_PREFACE.starts_with(input) {
                self.needs_more_input = true;
                return 0;
            }
            self.is_new = false;
            if input.starts_with(CONNECTION_PREFACE) {
                self.streams = Some(Box::new(H2ServerConnection::new()));
                at = CONNECTION_PREFACE.len();
            }
        }
        if let Some(streams) = &mut self.streams {
            if let Some(due_ns) = streams.read(&input[at..]) {
                timers.push(Reverse((due_ns, self.slot)));
            }
            streams.write(output);
            if streams.is_over() {
                self.phase = ServingPhase::Closing;
            }
            self.send(output);
            return input.len();
        }
        while at < input.len()
            && self.phase == ServingPhase::Open
            && self.unsent_filler_bytes == 0
            && output.len() < OUTPUT_BYTES
        {
            let (used, step) = self.reader.read(&input[at..]);
            at += used;
            match step {
                ReaderStep::More if used == 0 => {
                    self.needs_more_input = true;
                    break;
                }
                ReaderStep::More => {}
                ReaderStep::Continue => output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                ReaderStep::Request(request) => self.answer_request(request, output, timers),
                ReaderStep::Refuse(status) => {
                    write_refusal(output, status);
                    self.phase = ServingPhase::Refusing;
                }
            }
        }
        self.send(output);
        at
    }

    pub(super) fn answer_request(&mut self, request: ServedRequest, output: &mut Vec<u8>, timers: &mut Timers) {
        match request.resource {
            Resource::Delay(ms) if ms > 0 => {
                self.phase = ServingPhase::Delayed(request);
                self.start_timer(ms * 1_000_000, timers);
                return;
            }
            Resource::Burn(us) => {
                // Earlier responses are sent first, so that the CPU work of `/burn/US` does not
                // delay the earlier responses.
                self.send(output);
                burn_cpu_time(us);
            }
            _ => {}
        }
        self.unsent_filler_bytes = write_answer(output, &request);
        if !request.keep {
            self.phase = ServingPhase::Closing;
        }
    }

    pub(super) fn start_timer(&mut self, ns: u64, timers: &mut Timers) {
        self.due_ns = clock::monotonic_ns() + ns;
        timers.push(Reverse((self.due_ns, self.slot)));
    }

    /// Sends `output` after the earlier unsent bytes, through TLS if the connection uses TLS.
    /// Clears `output` after sending.
    pub(super) fn send(&mut self, output: &mut Vec<u8>) {
        if self.tls.as_mut().is_some_and(|tls| !tls.encrypt(output)) {
            self.phase = ServingPhase::Closing;
        }
        self.send_bytes(output);
    }

    /// Sends bytes without encrypting them, after the earlier unsent bytes. Bytes that the socket
    /// does not accept are stored.
    fn send_bytes(&mut self, output: &mut Vec<u8>) {
        let mut sent = 0;
        if self.unsent.is_empty() && !output.is_empty() {
            match self.socket.send(output) {
                Ok(count) => sent = count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => {
                    // The client has closed the connection.
                    sent = output.len();
                    self.unsent_filler_bytes = 0;
                    self.phase = ServingPhase::Closing;
                }
            }
        }
        self.unsent.extend_from_slice(&output[sent..]);
        output.clear();
    }

    /// Sends one piece of the unsent bytes. Returns true if nothing was left to send.
    pub(super) fn send_next_piece(&mut self) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let sent = self.socket.send(&self.unsent)?;
            self.unsent.drain(..sent);
            if self.unsent.is_empty() {
                self.unsent = Vec::new();
            }
        } else if self.unsent_filler_bytes > 0 {
            let piece = self.unsent_filler_bytes.min(BODY_FILLER.len() as u64) as usize;
            match &mut self.tls {
                None => self.unsent_filler_bytes -= self.socket.send(&BODY_FILLER[..piece])? as u64,
                Some(tls) => {
                    let is_sent = tls.append_encrypted(&BODY_FILLER[..piece], &mut self.unsent);
                    self.unsent_filler_bytes = if is_sent { self.unsent_filler_bytes - piece as u64 } else { 0 };
                    if !is_sent {
                        self.phase = ServingPhase::Closing;
                    }
                }
            }
        }
        Ok(self.unsent.is_empty() && self.unsent_filler_bytes == 0)
    }
}
