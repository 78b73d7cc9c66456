//! One connection of the reference server: the received part of a request, and the unsent part of a
//! response.

use super::answer::{FILLER, burn, write_answer, write_refusal};
use super::h2::ServedStreams;
use super::request::{ReaderStep, RequestReader, Resource, ServedRequest};
use plimsoll_sys::clock;
use plimsoll_sys::epoll::Event;
use plimsoll_sys::tcp::Socket;
use plimsoll_wire::h2::PREFACE;
use plimsoll_wire::tls::ServedSession;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// Size of a receive, bytes.
pub(super) const INPUT_BYTES: usize = 64 * 1024;
/// Size up to which responses to pipelined requests are collected before a send, bytes.
pub(super) const OUTPUT_BYTES: usize = 32 * 1024;
/// Most turns of one connection, or accepted connections, before others are served.
pub(super) const TURNS_MAX: usize = 64;
/// Longest time to read the client's remaining bytes after a refusal, ns, so that the client sees
/// the response and no reset.
pub(super) const DRAIN_NS: u64 = 1_000_000_000;
/// The buffers that a thread shares among its connections.
pub(super) struct Tools {
    pub(super) input: Box<[u8]>,
    pub(super) output: Vec<u8>,
    /// Decrypted input.
    pub(super) plain: Vec<u8>,
    pub(super) timers: Timers,
}

/// Timers as (time, slot), the earliest first. An entry counts only if the slot's connection still
/// waits for that time.
pub(super) type Timers = BinaryHeap<Reverse<(u64, u32)>>;

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServingPhase {
    /// Open for requests.
    Open,
    /// A response is due at `due_ns`; no request is read meanwhile.
    Delayed(ServedRequest),
    /// Closes once all bytes are sent.
    Closing,
    /// Once all bytes are sent, our side ends, and the client's remaining bytes are read before the
    /// socket is closed. Closing with unread bytes would reset the connection, and could drop the
    /// response.
    Refusing,
    /// Our side has ended; reads until `due_ns`.
    Draining,
}

/// The next step of a connection after its turn.
#[derive(PartialEq, Eq)]
pub(super) enum Turn {
    /// Wait for the next event or timer.
    Wait,
    /// More work remains, after a turn of the others.
    Again,
    /// The end.
    Close,
}

pub(super) struct ServedConnection {
    pub(super) socket: Socket,
    /// The TLS session, if any.
    tls: Option<Box<ServedSession>>,
    /// Received and unparsed bytes: a partial head, or requests behind a slow one. Usually empty.
    pub(super) held: Vec<u8>,
    /// Responses that the socket did not accept, encrypted with TLS. Usually empty.
    pub(super) unsent: Vec<u8>,
    /// Filler bytes to send after them.
    pub(super) filler_left: u64,
    pub(super) reader: RequestReader,
    /// Whether nothing was read yet, so that the protocol is unknown.
    is_new: bool,
    /// The state of HTTP/2.
    streams: Option<Box<ServedStreams>>,
    pub(super) phase: ServingPhase,
    pub(super) due_ns: u64,
    pub(super) slot: u32,
    /// Whether the socket may have bytes (edge-triggered: until a short read).
    pub(super) readable: bool,
    /// Whether the peer's end was announced, so that reads continue until it shows.
    pub(super) hangup: bool,
    /// Whether `held` needs further bytes before it is parsed again.
    pub(super) starved: bool,
    /// Whether the connection is in the list of those with more work.
    pub(super) queued: bool,
}

impl ServedConnection {
    pub(super) fn new(socket: Socket, tls: Option<Box<ServedSession>>, slot: u32) -> ServedConnection {
        ServedConnection {
            socket,
            tls,
            held: Vec::new(),
            unsent: Vec::new(),
            filler_left: 0,
            reader: RequestReader::new(),
            is_new: true,
            streams: None,
            phase: ServingPhase::Open,
            due_ns: 0,
            slot,
            readable: false,
            hangup: false,
            starved: false,
            queued: false,
        }
    }

    pub(super) fn on_event(&mut self, event: Event, tools: &mut Tools) -> Turn {
        self.readable |= event.readable();
        self.hangup |= event.hangup();
        if self.hangup && matches!(self.phase, ServingPhase::Delayed(_)) && self.socket.take_error().is_err() {
            return Turn::Close;
        }
        self.advance(tools)
    }

    pub(super) fn on_timer(&mut self, due_ns: u64, tools: &mut Tools) -> Turn {
        if let Some(streams) = &mut self.streams {
            let next_ns = streams.on_timer(clock::monotonic_ns());
            if let Some(next_ns) = next_ns {
                tools.timers.push(Reverse((next_ns, self.slot)));
            }
            return self.advance(tools);
        }
        if due_ns != self.due_ns {
            return Turn::Wait;
        }
        match self.phase {
            ServingPhase::Delayed(request) => {
                self.phase = if request.keep { ServingPhase::Open } else { ServingPhase::Closing };
                write_answer(&mut tools.output, &request);
                self.send(&mut tools.output);
                self.advance(tools)
            }
            ServingPhase::Draining => Turn::Close,
            ServingPhase::Open | ServingPhase::Closing | ServingPhase::Refusing => Turn::Wait,
        }
    }

    /// Does all work that needs no waiting, within bounds.
    pub(super) fn advance(&mut self, tools: &mut Tools) -> Turn {
        for _ in 0..TURNS_MAX {
            match self.flush() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Wait,
                Err(_) => return Turn::Close,
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
                ServingPhase::Delayed(_) => return Turn::Wait,
                ServingPhase::Closing if self.say_end(tools) => continue,
                ServingPhase::Closing => return Turn::Close,
                ServingPhase::Refusing if self.say_end(tools) => continue,
                ServingPhase::Refusing => {
                    if self.socket.shutdown_send().is_err() {
                        return Turn::Close;
                    }
                    self.phase = ServingPhase::Draining;
                    self.wait_ns(DRAIN_NS, &mut tools.timers);
                }
            }
            if !self.held.is_empty() && !self.starved {
                let held = std::mem::take(&mut self.held);
                let used = self.serve(&held, &mut tools.output, &mut tools.timers);
                self.hold(held, used);
                continue;
            }
            if !self.readable {
                return Turn::Wait;
            }
            let received = match self.socket.recv(&mut tools.input) {
                Ok(0) => return Turn::Close,
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Turn::Wait;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Turn::Close,
            };
            // A short read: the socket is empty, and the next byte causes an event.
            self.readable = received == tools.input.len() || self.hangup;
            if self.phase == ServingPhase::Draining {
                continue;
            }
            let input = match self.tls {
                None => &tools.input[..received],
                Some(_) => {
                    self.decrypt(received, tools);
                    &tools.plain[..]
                }
            };
            if input.is_empty() {
                continue;
            }
            if self.held.is_empty() {
                let used = self.serve(input, &mut tools.output, &mut tools.timers);
                self.held.extend_from_slice(&input[used..]);
            } else {
                self.held.extend_from_slice(input);
                self.starved = false;
            }
        }
        Turn::Again
    }

    /// Decrypts received bytes into `plain`. Continues a handshake; a TLS error ends the
    /// connection.
    fn decrypt(&mut self, received: usize, tools: &mut Tools) {
        let Some(tls) = &mut self.tls else { return };
        tools.plain.clear();
        let news = tls.receive(&tools.input[..received], &mut tools.plain);
        tls.take_cipher(&mut tools.output);
        self.send_bytes(&mut tools.output);
        if news.is_err() {
            // The last bytes, the alert, have the reason: nothing further is encrypted.
            self.tls = None;
            tools.plain.clear();
            self.phase = ServingPhase::Refusing;
        }
    }

    /// Sends the TLS close notification, if it is due.
    fn say_end(&mut self, tools: &mut Tools) -> bool {
        // Once: there is no TLS after it.
        let Some(mut tls) = self.tls.take() else { return false };
        tls.end();
        tls.take_cipher(&mut tools.output);
        self.send_bytes(&mut tools.output);
        true
    }

    /// Keeps the unparsed rest of held bytes, or frees their memory.
    pub(super) fn hold(&mut self, mut held: Vec<u8>, used: usize) {
        if used < held.len() {
            held.drain(..used);
            self.held = held;
        }
    }

    /// Parses requests from `input` and sends responses; returns the number of parsed bytes.
    pub(super) fn serve(&mut self, input: &[u8], output: &mut Vec<u8>, timers: &mut Timers) -> usize {
        let mut at = 0;
        self.starved = false;
        if self.is_new {
            if input.len() < PREFACE.len() && PREFACE.starts_with(input) {
                self.starved = true;
                return 0;
            }
            self.is_new = false;
            if input.starts_with(PREFACE) {
                self.streams = Some(Box::new(ServedStreams::new()));
                at = PREFACE.len();
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
            && self.filler_left == 0
            && output.len() < OUTPUT_BYTES
        {
            let (used, step) = self.reader.read(&input[at..]);
            at += used;
            match step {
                ReaderStep::More if used == 0 => {
                    self.starved = true;
                    break;
                }
                ReaderStep::More => {}
                ReaderStep::Continue => output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                ReaderStep::Request(request) => self.answer(request, output, timers),
                ReaderStep::Refuse(status) => {
                    write_refusal(output, status);
                    self.phase = ServingPhase::Refusing;
                }
            }
        }
        self.send(output);
        at
    }

    pub(super) fn answer(&mut self, request: ServedRequest, output: &mut Vec<u8>, timers: &mut Timers) {
        match request.resource {
            Resource::Delay(ms) if ms > 0 => {
                self.phase = ServingPhase::Delayed(request);
                self.wait_ns(ms * 1_000_000, timers);
                return;
            }
            Resource::Burn(us) => {
                // Earlier responses must not wait for this one.
                self.send(output);
                burn(us);
            }
            _ => {}
        }
        self.filler_left = write_answer(output, &request);
        if !request.keep {
            self.phase = ServingPhase::Closing;
        }
    }

    pub(super) fn wait_ns(&mut self, ns: u64, timers: &mut Timers) {
        self.due_ns = clock::monotonic_ns() + ns;
        timers.push(Reverse((self.due_ns, self.slot)));
    }

    /// Sends `output`, encrypted with TLS, after unsent bytes, and empties it.
    pub(super) fn send(&mut self, output: &mut Vec<u8>) {
        if let Some(tls) = &mut self.tls {
            tls.send(output);
            output.clear();
            tls.take_cipher(output);
        }
        self.send_bytes(output);
    }

    /// Sends bytes unchanged.
    fn send_bytes(&mut self, output: &mut Vec<u8>) {
        let mut sent = 0;
        if self.unsent.is_empty() && !output.is_empty() {
            match self.socket.send(output) {
                Ok(count) => sent = count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => {
                    // The client is gone.
                    sent = output.len();
                    self.filler_left = 0;
                    self.phase = ServingPhase::Closing;
                }
            }
        }
        self.unsent.extend_from_slice(&output[sent..]);
        output.clear();
    }

    /// Sends one piece of the unsent bytes. True: all is sent.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let sent = self.socket.send(&self.unsent)?;
            self.unsent.drain(..sent);
            if self.unsent.is_empty() {
                self.unsent = Vec::new();
            }
        } else if self.filler_left > 0 {
            let piece = self.filler_left.min(FILLER.len() as u64) as usize;
            match &mut self.tls {
                None => self.filler_left -= self.socket.send(&FILLER[..piece])? as u64,
                Some(tls) => {
                    tls.send(&FILLER[..piece]);
                    tls.take_cipher(&mut self.unsent);
                    self.filler_left -= piece as u64;
                }
            }
        }
        Ok(self.unsent.is_empty() && self.filler_left == 0)
    }
}
