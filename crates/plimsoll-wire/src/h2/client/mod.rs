//! The client's side of an HTTP/2 connection, with several concurrent exchanges. Each exchange (a
//! request with its response) is a stream.
//!
//! The client asks the server to compress without a dynamic table, so that the head of a response
//! does not depend on earlier heads. A response head is not parsed again if its bytes equal the
//! bytes of the last head.
//!
//! The client's flow-control windows are larger than responses need. Each window is refilled when
//! half of it is used, so that the server never waits for the client. If the server has to wait for
//! a window update nevertheless, the client reports the wait as an event. Requests are encoded once
//! and copied with the number of their stream.
//!
//! If a server breaks a rule of a stream, the exchange on the stream fails. If a server breaks a
//! rule of the connection, all exchanges on the connection fail. The memory and work that a server
//! can cause without sending responses is bounded.
//!
//! This file starts and encodes exchanges; `reading.rs` handles the server's frames. Not here:
//! sockets, deadlines, and repeating a request that the server did not process.

mod reading;

use super::frame::{self, CONNECTION_PREFACE, FrameReader, PAYLOAD_BYTES_MAX};
use super::head::{FIELDS_BYTES_MAX, MessageEncoding, ResponseHead};
use super::hpack::{HpackDecoder, TABLE_BYTES};
use super::request::H2Request;
use super::window::{INITIAL_WINDOW_BYTES, OwnReceiveWindow, SendWindow};
use crate::connection_event::{ConnectionEvent, ExchangeNumber, ResponsePiece};
use crate::error::{EarlyCloseError, ExchangeError, ProtocolError};
use crate::h1::{GrpcCallFlags, ResponseExpectation};
use plimsoll_model::grpc_message::GrpcMessageCounter;
use plimsoll_model::{CallFault, H2Error};
use std::collections::VecDeque;

/// The receive window of each stream and of the connection, in bytes. The window is larger than the
/// data in transit on a network path, so that the server never waits for a window update.
const WINDOW_BYTES: u32 = 1 << 30;
/// The number of concurrent streams that a server is assumed to accept before it announces its
/// limit (RFC 9113, 6.5.2).
const ASSUMED_STREAMS_MAX: u32 = 100;
/// The largest stream number that a client can use.
const STREAM_LAST: u32 = (1 << 31) - 1;
/// The maximum number of bytes that one call of `H2::write` encodes.
const BYTES_PER_WRITE_MAX: usize = 64 << 10;

/// The stream of an exchange whose request is being sent or was sent.
#[derive(Debug)]
struct H2Stream {
    id: u32,
    exchange: ExchangeNumber,
    expect: ResponseExpectation,
    interims: u8,
    /// The HTTP status of the response; 0 before its head arrives.
    status: u16,
    /// The gRPC status of the response; `None` before it arrives.
    grpc_status: Option<u16>,
    /// The number of bytes of the request's content that are not encoded yet.
    body_left: usize,
    /// The number of bytes that the server's receive window for this stream still accepts.
    window: SendWindow,
    /// The part of the client's receive window for this stream that the server has used.
    own_receive_window: OwnReceiveWindow,
    /// The declared length of the response's content in bytes; `None`: not declared.
    length: Option<u64>,
    /// The number of content bytes that were received.
    body_bytes: u64,
    /// Counts the messages in the response to a gRPC call.
    messages: GrpcMessageCounter,
    encoding: MessageEncoding,
    has_other_content_type: bool,
    /// The number of content bytes of the request that may be sent before another response message
    /// arrives, in addition to the messages that `sendable_messages` counts. The number is
    /// `usize::MAX` if request messages need not wait for response messages.
    turn_bytes: usize,
    /// The number of request messages that may be sent before another response message arrives, in
    /// addition to the content that `turn_bytes` counts.
    sendable_messages: u32,
}

impl H2Stream {
    /// Converts the number of messages that may be sent (`sendable_messages`) to the number of
    /// bytes that may be sent (`turn_bytes`). `rest` is the unsent content of the request.
    fn convert_turns_to_bytes(&mut self, rest: &[u8]) {
        while self.sendable_messages > 0
            && let Some([_, a, b, c, d]) = rest.get(self.turn_bytes..).and_then(|rest| rest.first_chunk())
        {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            self.turn_bytes = (self.turn_bytes + 5 + length).min(rest.len());
            self.sendable_messages -= 1;
        }
        self.sendable_messages = 0;
    }

    /// Returns the fault in the messages of the complete response; `None`: no fault.
    fn grpc_message_fault(&self) -> Option<CallFault> {
        let (messages, call) = (self.messages, self.expect.call);
        let is_read = self.encoding != MessageEncoding::Other || call.contains(GrpcCallFlags::ANY_ENCODING);
        match messages.complete_messages() {
            _ if self.has_other_content_type => Some(CallFault::WrongContentType),
            _ if messages.has_invalid_prefix() => Some(CallFault::InvalidPrefix),
            _ if messages.ends_within_message() => Some(CallFault::Cut),
            _ if messages.has_compressed_message() && self.encoding == MessageEncoding::Identity => {
                Some(CallFault::Compressed)
            }
            _ if messages.has_compressed_message() && !is_read => Some(CallFault::Encoding),
            0 if call.contains(GrpcCallFlags::ONE_MESSAGE) => Some(CallFault::NoMessage),
            2.. if call.contains(GrpcCallFlags::ONE_MESSAGE) => Some(CallFault::SeveralMessages),
            _ => None,
        }
    }

    /// Returns whether the request's next message must wait for a message of the response.
    fn waits_for_response_message(&self) -> bool {
        self.turn_bytes == 0 && self.sendable_messages == 0
    }
}

/// The content of the server's GOAWAY frame.
#[derive(Clone, Copy, Debug)]
struct GoAwayState {
    last_stream: u32,
    error: H2Error,
}

/// The client's side of an HTTP/2 connection.
#[derive(Debug)]
pub struct H2 {
    reader: FrameReader,
    decoder: HpackDecoder,
    /// The open streams, ascending by number.
    streams: VecDeque<H2Stream>,
    /// The exchanges whose requests have not been encoded yet, not even in part.
    queued: VecDeque<ExchangeNumber>,
    /// The streams whose request has unsent content, in the order in which they may send.
    sending: VecDeque<u32>,
    /// Encoded frames to send that belong to no request, such as acknowledgements.
    control_frames: Vec<u8>,
    /// Encoded bytes that the network did not accept at the first attempt.
    unsent: Vec<u8>,
    /// The number of bytes at the start of `unsent` that the network has accepted since then.
    unsent_from: usize,
    next_stream: u32,
    /// The maximum number of concurrent streams that the caller wants.
    own_streams_max: u32,
    /// The maximum number of concurrent streams that the server permits.
    server_streams_max: u32,
    /// The initial size in bytes of the server's receive window for a new stream.
    initial_send_window_bytes: u32,
    window: SendWindow,
    payload_bytes_max: usize,
    /// The part of the client's receive window for the connection that the server has used.
    own_receive_window: OwnReceiveWindow,
    /// The streams that need a window update, without duplicates. The stream number 0 stands for
    /// the connection.
    windows_to_update: Vec<u32>,
    /// Whether the server has exhausted a flow-control window that no
    /// [`ConnectionEvent::WindowNearlyEmpty`] has reported yet.
    window_empty_unreported: bool,
    idle_frames: u32,
    goaway: Option<GoAwayState>,
    /// The protocol error of the server that ended the connection; `None`: no such error so far.
    protocol_error: Option<ProtocolError>,
    /// Whether the connection preface is encoded.
    is_preface_encoded: bool,
    /// Whether the server's settings have arrived, which shows that the server uses HTTP/2.
    has_server_settings: bool,
    /// Whether the connection accepts no further exchange.
    is_closed_to_new_exchanges: bool,
    /// Whether the caller is taking the events in received bytes. The request of an exchange that
    /// is started while the caller takes events is sent after the last event.
    reading: bool,
    /// The last parsed head, and the last parsed trailers.
    cached_heads: [ParsedHead; 2],
    /// Whether the header fields of responses are stored, because an exchange on the connection
    /// wants the content of its response.
    keeps_fields: bool,
    /// The index in `cached_heads` of the head that ended the last response: 0 for a response head,
    /// 1 for trailers.
    final_head_index: usize,
    /// The fault in the messages of the last gRPC response; `None`: no fault.
    call_fault: Option<CallFault>,
    /// Whether the last complete gRPC response has a message larger than the default size limit of
    /// gRPC clients.
    call_large: bool,
}

/// The last parsed response head or trailers, with the bytes for comparison with the next head.
#[derive(Debug, Default)]
struct ParsedHead {
    /// The bytes of the head; empty if the head must not be compared with the next head.
    block: Vec<u8>,
    head: ResponseHead,
    /// The header fields of the head as text lines, if header fields are stored.
    fields: Vec<u8>,
    /// The value of the `grpc-message` field, if the head has this field; a long value is cut.
    grpc_error_message: Vec<u8>,
}

impl H2 {
    /// Creates a connection with at most `wanted` concurrent exchanges.
    pub fn new(wanted: u32) -> H2 {
        H2 {
            reader: FrameReader::new(),
            decoder: HpackDecoder::new(TABLE_BYTES),
            streams: VecDeque::new(),
            queued: VecDeque::new(),
            sending: VecDeque::new(),
            control_frames: Vec::new(),
            unsent: Vec::new(),
            unsent_from: 0,
            next_stream: 1,
            own_streams_max: wanted.max(1),
            server_streams_max: ASSUMED_STREAMS_MAX,
            initial_send_window_bytes: INITIAL_WINDOW_BYTES,
            window: SendWindow::new(INITIAL_WINDOW_BYTES),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            own_receive_window: OwnReceiveWindow::default(),
            windows_to_update: Vec::new(),
            window_empty_unreported: false,
            idle_frames: 0,
            goaway: None,
            protocol_error: None,
            is_preface_encoded: false,
            has_server_settings: false,
            is_closed_to_new_exchanges: false,
            reading: false,
            cached_heads: Default::default(),
            keeps_fields: false,
            final_head_index: 0,
            call_fault: None,
            call_large: false,
        }
    }

    /// Returns the header fields of the last response head as lines, without trailers. The result
    /// is empty if no request on the connection wants the content of its response.
    pub fn fields(&self) -> &[u8] {
        &self.cached_heads[0].fields
    }

    /// Returns the number of exchanges that can be started now.
    #[inline]
    pub fn exchanges_available(&self) -> u32 {
        if self.is_closing() {
            return 0;
        }
        self.own_streams_max
            .min(self.server_streams_max)
            .saturating_sub((self.streams.len() + self.queued.len()) as u32)
    }

    /// Returns the latest limit of concurrent streams that the server announced, or the assumed
    /// limit before the first announcement; `None`: no limit.
    pub fn streams_allowed(&self) -> Option<u32> {
        Some(self.server_streams_max).filter(|allowed| *allowed < u32::MAX)
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.is_closed_to_new_exchanges || self.goaway.is_some() || self.protocol_error.is_some()
    }

    /// Returns whether the server has sent GOAWAY.
    pub fn has_received_goaway(&self) -> bool {
        self.goaway.is_some()
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.streams.is_empty() || !self.queued.is_empty()
    }

    /// Returns whether the connection is finished: no exchange is in flight, and no further
    /// exchange can start.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_closing() && !self.is_busy()
    }

    /// Starts an exchange. Returns whether the caller must send bytes now. If `start` returns
    /// false, the caller need not act, because the request is part of the next bytes to send.
    #[inline]
    pub fn start(&mut self, exchange: ExchangeNumber, keep_alive: bool) -> bool {
        debug_assert!(self.exchanges_available() > 0, "a connection has no more exchanges than it has room for");
        self.idle_frames = 0;
        self.queued.push_back(exchange);
        // A connection whose stream numbers are exhausted accepts no further exchange.
        self.is_closed_to_new_exchanges |=
            !keep_alive || self.next_stream + 2 * self.queued.len() as u32 >= STREAM_LAST;
        !self.reading && self.unsent.is_empty()
    }

    /// Returns whether another stream may be opened. A limit of streams that the server lowered
    /// applies once the client has acknowledged the limit (RFC 9113, 5.1.2). The acknowledgement is
    /// encoded before the requests that wait for a stream.
    #[inline]
    fn may_open(&self) -> bool {
        (self.streams.len() as u64) < u64::from(self.server_streams_max)
    }

    /// Returns whether there are bytes that can be sent now.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        !self.unsent.is_empty()
            || !self.is_preface_encoded
            || !self.control_frames.is_empty()
            || !self.windows_to_update.is_empty()
            || (!self.queued.is_empty() && self.may_open())
            || (self.window.sendable_bytes() > 0 && self.sending.iter().any(|id| self.window_of_stream(*id) > 0))
    }

    fn window_of_stream(&self, id: u32) -> i64 {
        self.find(id).map_or(0, |at| self.streams[at].window.sendable_bytes())
    }

    /// Returns the encoded bytes that the network has not accepted yet.
    #[inline]
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.unsent_from..]
    }

    /// Encodes the next bytes to send into `out`, which must be empty. Call `write` only if there
    /// are no [`unsent`](Self::unsent) bytes.
    pub fn write<'r>(&mut self, request: impl Fn(ExchangeNumber) -> H2Request<'r>, out: &mut Vec<u8>) {
        if !self.is_preface_encoded {
            self.is_preface_encoded = true;
            out.extend_from_slice(CONNECTION_PREFACE);
            // The client's settings: no dynamic table for the server's header compression, no
            // pushed streams, large flow-control windows, and the maximum length of a head.
            let settings = [(1, 0), (2, 0), (4, WINDOW_BYTES), (6, FIELDS_BYTES_MAX as u32)];
            frame::write_settings(out, &settings);
            frame::write_window(out, 0, WINDOW_BYTES - INITIAL_WINDOW_BYTES);
        }
        out.append(&mut self.control_frames);
        if self.protocol_error.is_some() {
            return;
        }
        if !self.windows_to_update.is_empty() {
            self.write_window_updates(out);
        }
        while out.len() < BYTES_PER_WRITE_MAX
            && self.may_open()
            && let Some(exchange) = self.queued.pop_front()
        {
            let request = request(exchange);
            if request.expect.wants_content && !self.keeps_fields {
                self.keeps_fields = true;
                // The header fields of the last head were not stored, so the next equal head must
                // be parsed again.
                self.cached_heads[0].block.clear();
            }
            let id = self.next_stream;
            self.next_stream += 2;
            let at = out.len();
            out.extend_from_slice(request.head);
            frame::set_stream(&mut out[at..], id);
            let body_left = request.body.len();
            if body_left > 0 {
                self.sending.push_back(id);
            }
            self.streams.push_back(H2Stream {
                id,
                exchange,
                expect: request.expect,
                interims: 0,
                status: 0,
                grpc_status: None,
                body_left,
                window: SendWindow::new(self.initial_send_window_bytes),
                own_receive_window: OwnReceiveWindow::default(),
                length: None,
                body_bytes: 0,
                messages: GrpcMessageCounter::default(),
                encoding: MessageEncoding::Identity,
                has_other_content_type: false,
                turn_bytes: if request.expect.call.contains(GrpcCallFlags::MESSAGES_IN_TURN) { 0 } else { usize::MAX },
                sendable_messages: u32::from(request.expect.call.contains(GrpcCallFlags::MESSAGES_IN_TURN)),
            });
        }
        if !self.sending.is_empty() {
            self.write_bodies(request, out);
        }
    }

    /// Writes the window updates that are due into `out`. A window is refilled only when its window
    /// update is written. If the network accepts no bytes, the server may exhaust a window, which
    /// [`ConnectionEvent::WindowNearlyEmpty`] reports.
    fn write_window_updates(&mut self, out: &mut Vec<u8>) {
        let mut windows_to_update = std::mem::take(&mut self.windows_to_update);
        for id in windows_to_update.drain(..) {
            if id == 0 {
                frame::write_window(out, 0, self.own_receive_window.take_update_increment());
            } else if let Some(at) = self.find(id) {
                frame::write_window(out, id, self.streams[at].own_receive_window.take_update_increment());
            }
        }
        self.windows_to_update = windows_to_update;
    }

    /// Encodes content of requests as far as the flow-control windows permit, one frame of each
    /// stream in turn.
    fn write_bodies<'r>(&mut self, request: impl Fn(ExchangeNumber) -> H2Request<'r>, out: &mut Vec<u8>) {
        let mut stuck = 0;
        while out.len() < BYTES_PER_WRITE_MAX
            && self.window.sendable_bytes() > 0
            && stuck < self.sending.len()
            && let Some(id) = self.sending.pop_front()
        {
            let Some(at) = self.find(id) else { continue };
            let stream = &mut self.streams[at];
            let body = request(stream.exchange).body;
            let from = body.len() - stream.body_left;
            if stream.sendable_messages > 0 {
                stream.convert_turns_to_bytes(&body[from..]);
            }
            let room = stream
                .window
                .sendable_bytes()
                .min(self.window.sendable_bytes())
                .clamp(0, self.payload_bytes_max as i64) as usize;
            let count = stream.body_left.min(stream.turn_bytes).min(room);
            if count == 0 {
                stuck += 1;
                self.sending.push_back(id);
                continue;
            }
            stuck = 0;
            // Sending content is progress, so the server's window updates that permit the content
            // do not count as idle frames.
            self.idle_frames = 0;
            stream.body_left -= count;
            if stream.expect.call.contains(GrpcCallFlags::MESSAGES_IN_TURN) {
                stream.turn_bytes -= count;
            }
            let waits = stream.waits_for_response_message();
            stream.window.subtract_sent(count);
            self.window.subtract_sent(count);
            let ends = stream.body_left == 0;
            frame::write_data(out, id, &body[from..from + count], ends);
            if !ends && !waits {
                self.sending.push_back(id);
            }
        }
    }

    /// Records that `count` more of the unsent bytes were sent.
    pub fn record_sent_bytes(&mut self, count: usize) {
        self.unsent_from += count;
        if self.unsent_from == self.unsent.len() {
            (self.unsent, self.unsent_from) = (Vec::new(), 0);
        }
    }

    /// Stores the encoded bytes that the network did not accept.
    pub fn keep_unsent(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Records that bytes arrived, and that the caller will now take the events in the bytes.
    #[inline]
    pub fn begin_reading(&mut self) {
        self.reading = true;
    }

    /// Returns the `grpc-message` field of the last gRPC call, as received.
    pub fn grpc_error_message(&self) -> &[u8] {
        &self.cached_heads[self.final_head_index].grpc_error_message
    }

    /// Returns the fault in the response messages of the last gRPC call, if the server sent the
    /// status `OK` despite the fault.
    #[inline]
    pub fn grpc_message_fault(&self) -> Option<CallFault> {
        self.call_fault
    }

    /// Returns whether the last gRPC response has a message larger than the default size limit of
    /// gRPC clients.
    #[inline]
    pub fn has_large_grpc_message(&self) -> bool {
        self.call_large
    }

    /// Removes one exchange from the connection and returns its number; `None`: the connection has
    /// no exchanges.
    fn remove_next_exchange(&mut self) -> Option<ExchangeNumber> {
        self.streams.pop_front().map(|stream| stream.exchange).or_else(|| self.queued.pop_front())
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        match self.streams.front() {
            Some(first) if first.id == id => Some(0),
            _ => self.streams.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    /// Handles the end of the connection by the peer. Each call returns the event that the end
    /// causes for one exchange in flight.
    pub fn end_by_peer(&mut self) -> Option<ConnectionEvent<'static>> {
        self.is_closed_to_new_exchanges = true;
        // An exchange whose request was never written can use another connection.
        if let Some(exchange) = self.queued.pop_front() {
            return Some(ConnectionEvent::Refused { exchange, error: EarlyCloseError::NothingReceived.into() });
        }
        let stream = self.streams.pop_front()?;
        let error = match self.goaway {
            Some(GoAwayState { error, .. }) if error != H2Error::NoError => ExchangeError::GoAway(error),
            _ if stream.status == 0 => ExchangeError::End(EarlyCloseError::NothingReceived),
            _ => ExchangeError::End(EarlyCloseError::Truncated),
        };
        Some(ConnectionEvent::Failed { exchange: stream.exchange, error, piece: ResponsePiece::default() })
    }

    /// Prevents further exchanges on the connection. Exchanges in flight continue.
    pub fn end_after_open_exchanges(&mut self) {
        self.is_closed_to_new_exchanges = true;
    }

    /// Cancels an exchange, whose response is no longer wanted.
    pub fn cancel(&mut self, exchange: ExchangeNumber) {
        if let Some(at) = self.queued.iter().position(|queued| *queued == exchange) {
            self.queued.remove(at);
        } else if let Some(at) = self.streams.iter().position(|stream| stream.exchange == exchange) {
            frame::write_reset(&mut self.control_frames, self.streams[at].id, H2Error::Cancel as u32);
            self.streams.remove(at);
        }
    }

    /// Handles a broken connection. Each call removes and returns one exchange that was in flight.
    pub fn abandon_next_exchange(&mut self) -> Option<ExchangeNumber> {
        self.is_closed_to_new_exchanges = true;
        self.remove_next_exchange()
    }
}
