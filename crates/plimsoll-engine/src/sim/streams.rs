//! The server's side of HTTP/2 in the simulation. Frames are encoded and parsed by separate code
//! here, so that the client code is not tested against itself. All requests of a simulation are
//! equal, and have no content or one gRPC message.
//!
//! Not here: the timing of responses and bytes.

use super::server::SimH2;

const CONNECTION_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const REFUSED_STREAM: u8 = 7;
/// The encoded response head `:status: 200`, as an index into HPACK's static table.
const ENCODED_STATUS_200: &[u8] = &[0x88];
/// The encoded trailers `grpc-status: 0`, as an HPACK literal.
const GRPC_STATUS_TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";
/// The bytes of an empty gRPC message.
const EMPTY_GRPC_MESSAGE: &[u8] = &[0; 5];

/// The server's reaction to received bytes.
#[derive(Debug)]
pub enum ServerReaction {
    /// The server sends the given bytes immediately.
    SendBytes(Vec<u8>),
    /// The request on the stream with this number is complete and accepted.
    AcceptRequest(u32),
    /// The server does not process a stream. The bytes are the refusal that the server sends; empty
    /// if the server ignores the stream after its GOAWAY frame. The flag is true if the client
    /// exceeded a limit of streams that the client knew.
    RejectStream(Vec<u8>, bool),
    /// The client sent invalid bytes.
    Wrong,
}

/// The state of one HTTP/2 connection in the simulated server.
#[derive(Debug)]
pub struct SimH2Connection {
    how: SimH2,
    /// The bytes that the client sent and the server has not parsed yet.
    bytes: Vec<u8>,
    /// The number of bytes in `bytes` that have arrived at the server.
    arrived: usize,
    begun: bool,
    /// Whether the client has acknowledged the server's limit of streams.
    acknowledged: bool,
    /// The numbers of accepted streams whose response is not complete.
    active: Vec<u32>,
    /// The number of streams that the client has opened.
    opened: u64,
    last_stream: u32,
    leaves: bool,
    /// The encoded header fields of the first request. All further requests must have the same
    /// header fields.
    head: Vec<u8>,
}

fn encode_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl SimH2Connection {
    pub fn new(how: SimH2) -> SimH2Connection {
        SimH2Connection {
            how,
            bytes: Vec::new(),
            arrived: 0,
            begun: false,
            acknowledged: false,
            active: Vec::new(),
            opened: 0,
            last_stream: 0,
            leaves: false,
            head: Vec::new(),
        }
    }

    /// Returns the first bytes that the server sends on a connection.
    pub fn begin(&mut self) -> Vec<u8> {
        encode_frame(SETTINGS, 0, 0, &[&[0, 3][..], &self.how.streams_max.to_be_bytes()].concat())
    }

    /// Adds bytes that the client sent and that are still in transit.
    pub fn add_bytes_in_transit(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the server's next reaction, after `arrived` more bytes arrived.
    pub fn next(&mut self, arrived: usize) -> Option<ServerReaction> {
        self.arrived += arrived;
        if !self.begun {
            if self.arrived < CONNECTION_PREFACE.len() {
                return None;
            }
            self.begun = true;
            if self.take(CONNECTION_PREFACE.len()) != CONNECTION_PREFACE {
                return Some(ServerReaction::Wrong);
            }
        }
        loop {
            let [a, b, c, kind, flags, ids @ ..] = self.bytes.get(..self.arrived.min(9))? else { return None };
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            let stream = u32::from_be_bytes(ids.try_into().ok()?);
            let (kind, flags) = (*kind, *flags);
            if self.arrived < 9 + length {
                return None;
            }
            let payload = self.take(9 + length).split_off(9);
            match kind {
                SETTINGS if flags & ACK != 0 => self.acknowledged = true,
                SETTINGS => return Some(ServerReaction::SendBytes(encode_frame(SETTINGS, ACK, 0, &[]))),
                PING if flags & ACK == 0 => {
                    return Some(ServerReaction::SendBytes(encode_frame(PING, ACK, 0, &payload)));
                }
                HEADERS => return Some(self.open_stream(stream, flags & END_STREAM != 0, payload)),
                // Data of a refused request may still arrive, so only data of an active stream
                // completes a request.
                DATA if self.active.contains(&stream) && flags & END_STREAM != 0 => {
                    return Some(ServerReaction::AcceptRequest(stream));
                }
                RST_STREAM => self.active.retain(|active| *active != stream),
                _ => {}
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.arrived -= count;
        self.bytes.drain(..count).collect()
    }

    fn open_stream(&mut self, stream: u32, is_whole: bool, head: Vec<u8>) -> ServerReaction {
        self.opened += 1;
        if self.head.is_empty() {
            self.head.clone_from(&head);
        }
        // Stream numbers must be odd and ascending, and all requests must be equal.
        if stream <= self.last_stream || stream.is_multiple_of(2) || head != self.head {
            return ServerReaction::Wrong;
        }
        if self.leaves {
            return ServerReaction::RejectStream(Vec::new(), false);
        }
        let is_over = self.active.len() >= self.how.streams_max as usize;
        let is_refused = self.how.refuses_every.is_some_and(|every| self.opened.is_multiple_of(every));
        self.last_stream = stream;
        if is_over || is_refused {
            return ServerReaction::RejectStream(
                encode_frame(RST_STREAM, 0, stream, &[0, 0, 0, REFUSED_STREAM]),
                is_over && self.acknowledged,
            );
        }
        self.active.push(stream);
        // A request with content is complete only when its content has arrived.
        if is_whole { ServerReaction::AcceptRequest(stream) } else { ServerReaction::SendBytes(Vec::new()) }
    }

    /// Returns the next bytes of a response with `messages_left` remaining messages, and whether
    /// the connection ends after these bytes. `None`: the client cancelled the stream.
    pub fn next_response_bytes(&mut self, stream: u32, messages_left: u32) -> Option<(Vec<u8>, bool)> {
        let at = self.active.iter().position(|active| *active == stream)?;
        let (messages, _) = self.how.messages;
        let mut said = match messages_left {
            _ if messages == 0 => [
                encode_frame(HEADERS, END_HEADERS, stream, ENCODED_STATUS_200),
                encode_frame(DATA, END_STREAM, stream, b"hello"),
            ]
            .concat(),
            0 => encode_frame(HEADERS, END_HEADERS | END_STREAM, stream, GRPC_STATUS_TRAILERS),
            _ if messages_left == messages => [
                encode_frame(HEADERS, END_HEADERS, stream, ENCODED_STATUS_200),
                encode_frame(DATA, 0, stream, EMPTY_GRPC_MESSAGE),
            ]
            .concat(),
            _ => encode_frame(DATA, 0, stream, EMPTY_GRPC_MESSAGE),
        };
        if messages_left == 0 {
            self.active.remove(at);
        }
        if !self.leaves && self.how.goaway_after.is_some_and(|most| self.opened >= most) {
            self.leaves = true;
            said.extend(encode_frame(GOAWAY, 0, 0, &[&self.last_stream.to_be_bytes()[..], &[0; 4]].concat()));
        }
        Some((said, self.leaves && self.active.is_empty()))
    }
}
