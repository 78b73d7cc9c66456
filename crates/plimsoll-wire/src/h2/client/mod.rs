//! The client's side of a connection that speaks HTTP/2: several exchanges at a time, each a
//! stream.
//!
//! The server is told to compress without a table of its own, so that the head of an answer means
//! the same whatever came before it: one that is byte for byte the last one is not read again.
//! Windows are as large as no answer needs, and topped up when half is used: the client is not to
//! be what a server waits for, and says so where it was. Requests are written once and copied from
//! there, with the number of their stream.
//!
//! A server that breaks a rule of a stream costs that exchange, one that breaks a rule of the
//! connection all of them; what it can make this side keep or do without sending answers is
//! bounded.
//!
//! Here is what is started and written; what the server's frames mean is in `reading.rs`. Not here:
//! sockets, deadlines, where a request that the server has not taken is sent again.

mod reading;

use super::frame::{self, FrameReader, PAYLOAD_BYTES_MAX, PREFACE};
use super::head::{AnswerHead, FIELDS_BYTES_MAX, MessageEncoding};
use super::hpack::{HpackDecoder, TABLE_BYTES};
use super::request::H2Request;
use super::window::{OurWindow, PeerWindow, WINDOW_FIRST};
use crate::error::{EndError, ExchangeError, ProtocolError};
use crate::fact::{ExchangeNumber, Fact, Piece};
use crate::h1::{CallState, Expect};
use plimsoll_model::grpc_message::MessageCount;
use plimsoll_model::{CallFault, H2Error};
use std::collections::VecDeque;

/// The window of each stream and of the connection: more than the network holds.
const WINDOW_BYTES: u32 = 1 << 30;
/// Streams that a server can be expected to take before it has said how many it does (6.5.2).
const STREAMS_FIRST: u32 = 100;
/// The last stream that a client can open.
const STREAM_LAST: u32 = (1 << 31) - 1;
/// Written in one go.
const OUT_BYTES: usize = 64 << 10;

/// One exchange whose request is on its way, or sent.
#[derive(Debug)]
struct H2Stream {
    id: u32,
    exchange: ExchangeNumber,
    expect: Expect,
    interims: u8,
    /// 0 until the head of the answer is there.
    status: u16,
    /// gRPC's, once it is said.
    grpc_status: Option<u16>,
    /// Bytes of the request's content that are still to be written.
    body_left: usize,
    /// How much the server takes of it.
    window: PeerWindow,
    /// What the server has used of our window.
    our_window: OurWindow,
    /// Declared length of the response's content, and the length received.
    length: Option<u64>,
    body_bytes: u64,
    /// Of an answer to a call.
    messages: MessageCount,
    encoding: MessageEncoding,
    is_of_other_type: bool,
    /// How much of the content may be sent before more of the answer comes, as far as that is
    /// worked out, and how many messages more.
    turn_bytes: usize,
    turns: u32,
}

impl H2Stream {
    /// Works out how much of `rest`, what is left of its content, may be sent now.
    fn take_turns(&mut self, rest: &[u8]) {
        while self.turns > 0
            && let Some([_, a, b, c, d]) = rest.get(self.turn_bytes..).and_then(|rest| rest.first_chunk())
        {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            self.turn_bytes = (self.turn_bytes + 5 + length).min(rest.len());
            self.turns -= 1;
        }
        self.turns = 0;
    }

    /// The fault in the messages of the complete response.
    fn call_fault(&self) -> Option<CallFault> {
        let (messages, call) = (self.messages, self.expect.call);
        let is_read = self.encoding != MessageEncoding::Other || call.has(CallState::ANY_ENCODING);
        match messages.whole() {
            _ if self.is_of_other_type => Some(CallFault::Content),
            _ if messages.is_odd() => Some(CallFault::Prefix),
            _ if messages.is_cut() => Some(CallFault::Cut),
            _ if messages.is_compressed() && self.encoding == MessageEncoding::Identity => Some(CallFault::Compressed),
            _ if messages.is_compressed() && !is_read => Some(CallFault::Encoding),
            0 if call.has(CallState::ONE_MESSAGE) => Some(CallFault::NoMessage),
            2.. if call.has(CallState::ONE_MESSAGE) => Some(CallFault::SeveralMessages),
            _ => None,
        }
    }

    /// Whether the next message waits for one of the answer.
    fn waits_for_turn(&self) -> bool {
        self.turn_bytes == 0 && self.turns == 0
    }
}

/// The state after GOAWAY.
#[derive(Clone, Copy, Debug)]
struct GoAwayState {
    last_stream: u32,
    error: H2Error,
}

/// The client's side of a connection that speaks HTTP/2.
#[derive(Debug)]
pub struct H2 {
    reader: FrameReader,
    decoder: HpackDecoder,
    /// By number of the stream, ascending.
    streams: VecDeque<H2Stream>,
    /// Exchanges of which nothing is written yet.
    queued: VecDeque<ExchangeNumber>,
    /// Streams whose request has content that is still to be written, in turn.
    sending: VecDeque<u32>,
    /// Frames that no request asked for.
    owed: Vec<u8>,
    /// Encoded bytes that the network did not accept, and how many are sent by now.
    unsent: Vec<u8>,
    unsent_from: usize,
    next_stream: u32,
    /// Streams at once: as many as are wanted, and as the server takes.
    wanted: u32,
    allowed: u32,
    /// How much content the server takes, of a new stream and of all together.
    window_first: u32,
    window: PeerWindow,
    payload_bytes_max: usize,
    /// What the server has used of our window for all of the connection.
    our_window: OurWindow,
    /// Of which streams it is to be told that our window is full again; 0: of the connection. None
    /// twice.
    to_fill: Vec<u32>,
    /// The server has used a window up since facts were asked for last.
    starved: bool,
    idle_frames: u32,
    leaving: Option<GoAwayState>,
    /// What the server has done wrong.
    broken: Option<ProtocolError>,
    /// The preface is written.
    begun: bool,
    /// The server's settings have come: it speaks HTTP/2.
    settled: bool,
    /// No exchange can be started any more.
    closing: bool,
    /// Facts are being asked for: what is started meanwhile is sent after them.
    reading: bool,
    /// The last head that was read, and the last trailers.
    kept_heads: [ParsedHead; 2],
    /// Fields are kept: an exchange of the connection has asked for content.
    keeps_fields: bool,
    /// The stream that ended the last response, and the fault in its messages, for a gRPC call.
    ended_by: usize,
    call_fault: Option<CallFault>,
    /// Whether that has a message that usual clients refuse for its length.
    call_large: bool,
}

/// A head that was read, and what it says.
#[derive(Debug, Default)]
struct ParsedHead {
    /// Empty where it is not to be compared.
    block: Vec<u8>,
    head: AnswerHead,
    /// Its fields, a line each, if they are kept.
    fields: Vec<u8>,
    /// gRPC's message, if it has one, as far as it is kept.
    call_message: Vec<u8>,
}

impl H2 {
    /// A connection on which up to so many exchanges are wanted at a time.
    pub fn new(wanted: u32) -> H2 {
        H2 {
            reader: FrameReader::new(),
            decoder: HpackDecoder::new(TABLE_BYTES),
            streams: VecDeque::new(),
            queued: VecDeque::new(),
            sending: VecDeque::new(),
            owed: Vec::new(),
            unsent: Vec::new(),
            unsent_from: 0,
            next_stream: 1,
            wanted: wanted.max(1),
            allowed: STREAMS_FIRST,
            window_first: WINDOW_FIRST,
            window: PeerWindow::new(WINDOW_FIRST),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            our_window: OurWindow::default(),
            to_fill: Vec::new(),
            starved: false,
            idle_frames: 0,
            leaving: None,
            broken: None,
            begun: false,
            settled: false,
            closing: false,
            reading: false,
            kept_heads: Default::default(),
            keeps_fields: false,
            ended_by: 0,
            call_fault: None,
            call_large: false,
        }
    }

    /// The fields of the head of an answer that was read last, a line each, where content is asked
    /// for.
    pub fn fields(&self) -> &[u8] {
        &self.kept_heads[0].fields
    }

    /// How many exchanges can be started now.
    #[inline]
    pub fn room(&self) -> u32 {
        if self.is_closing() {
            return 0;
        }
        self.wanted.min(self.allowed).saturating_sub((self.streams.len() + self.queued.len()) as u32)
    }

    /// The server's limit of concurrent streams so far; `None`: no limit.
    pub fn streams_allowed(&self) -> Option<u32> {
        Some(self.allowed).filter(|allowed| *allowed < u32::MAX)
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.closing || self.leaving.is_some() || self.broken.is_some()
    }

    /// Whether the server has said that it goes away.
    pub fn is_left(&self) -> bool {
        self.leaving.is_some()
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.streams.is_empty() || !self.queued.is_empty()
    }

    /// Whether nothing is under way, nor can be any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_closing() && !self.is_busy()
    }

    /// Whether an exchange for which this is true is under way.
    pub fn carries(&self, mut is_wanted: impl FnMut(ExchangeNumber) -> bool) -> bool {
        self.streams.iter().map(|stream| stream.exchange).chain(self.queued.iter().copied()).any(&mut is_wanted)
    }

    /// Begins an exchange. Returns whether bytes are to be sent now; otherwise it goes with the
    /// next bytes sent.
    #[inline]
    pub fn start(&mut self, exchange: ExchangeNumber, keep_alive: bool) -> bool {
        debug_assert!(self.room() > 0, "no more exchanges than there is room for");
        self.idle_frames = 0;
        self.queued.push_back(exchange);
        // Numbers of streams are used up: the next connection begins anew.
        self.closing |= !keep_alive || self.next_stream + 2 * self.queued.len() as u32 >= STREAM_LAST;
        !self.reading && self.unsent.is_empty()
    }

    /// Whether a stream may be opened: a limit that the server has lowered counts from its
    /// acknowledgement on (RFC 9113, 5.1.2), which is written before any stream that waits.
    #[inline]
    fn may_open(&self) -> bool {
        (self.streams.len() as u64) < u64::from(self.allowed)
    }

    /// Whether anything can be sent at this moment.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        !self.unsent.is_empty()
            || !self.begun
            || !self.owed.is_empty()
            || !self.to_fill.is_empty()
            || (!self.queued.is_empty() && self.may_open())
            || (self.window.left() > 0 && self.sending.iter().any(|id| self.window_of(*id) > 0))
    }

    fn window_of(&self, id: u32) -> i64 {
        self.find(id).map_or(0, |at| self.streams[at].window.left())
    }

    /// What was written and not taken yet.
    #[inline]
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.unsent_from..]
    }

    /// Writes what is to be sent next to the empty `out`; nothing may be [`unsent`](Self::unsent).
    pub fn write<'r>(&mut self, request: impl Fn(ExchangeNumber) -> H2Request<'r>, out: &mut Vec<u8>) {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(PREFACE);
            // No table of the server's, no pushed streams, large windows; how large a head may be.
            let settings = [(1, 0), (2, 0), (4, WINDOW_BYTES), (6, FIELDS_BYTES_MAX as u32)];
            frame::write_settings(out, &settings);
            frame::write_window(out, 0, WINDOW_BYTES - WINDOW_FIRST);
        }
        out.append(&mut self.owed);
        if self.broken.is_some() {
            return;
        }
        if !self.to_fill.is_empty() {
            self.fill_windows(out);
        }
        while out.len() < OUT_BYTES
            && self.may_open()
            && let Some(exchange) = self.queued.pop_front()
        {
            let request = request(exchange);
            if request.expect.content && !self.keeps_fields {
                self.keeps_fields = true;
                // Of that one they were not kept.
                self.kept_heads[0].block.clear();
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
                window: PeerWindow::new(self.window_first),
                our_window: OurWindow::default(),
                length: None,
                body_bytes: 0,
                messages: MessageCount::default(),
                encoding: MessageEncoding::Identity,
                is_of_other_type: false,
                turn_bytes: if request.expect.call.has(CallState::IN_TURN) { 0 } else { usize::MAX },
                turns: u32::from(request.expect.call.has(CallState::IN_TURN)),
            });
        }
        if !self.sending.is_empty() {
            self.write_bodies(request, out);
        }
    }

    /// Sends window updates to the server. Only written updates count: while the network accepts
    /// nothing, a window may run empty, which is reported.
    fn fill_windows(&mut self, out: &mut Vec<u8>) {
        let mut to_fill = std::mem::take(&mut self.to_fill);
        for id in to_fill.drain(..) {
            if id == 0 {
                frame::write_window(out, 0, self.our_window.fill());
            } else if let Some(at) = self.find(id) {
                frame::write_window(out, id, self.streams[at].our_window.fill());
            }
        }
        self.to_fill = to_fill;
    }

    /// Writes content of requests, a frame of each in turn, as far as the windows reach.
    fn write_bodies<'r>(&mut self, request: impl Fn(ExchangeNumber) -> H2Request<'r>, out: &mut Vec<u8>) {
        let mut stuck = 0;
        while out.len() < OUT_BYTES
            && self.window.left() > 0
            && stuck < self.sending.len()
            && let Some(id) = self.sending.pop_front()
        {
            let Some(at) = self.find(id) else { continue };
            let stream = &mut self.streams[at];
            let body = request(stream.exchange).body;
            let from = body.len() - stream.body_left;
            if stream.turns > 0 {
                stream.take_turns(&body[from..]);
            }
            let room = stream.window.left().min(self.window.left()).clamp(0, self.payload_bytes_max as i64) as usize;
            let count = stream.body_left.min(stream.turn_bytes).min(room);
            if count == 0 {
                stuck += 1;
                self.sending.push_back(id);
                continue;
            }
            stuck = 0;
            // A window update is no idle frame, however small.
            self.idle_frames = 0;
            stream.body_left -= count;
            if stream.expect.call.has(CallState::IN_TURN) {
                stream.turn_bytes -= count;
            }
            let waits = stream.waits_for_turn();
            stream.window.spend(count);
            self.window.spend(count);
            let ends = stream.body_left == 0;
            frame::write_data(out, id, &body[from..from + count], ends);
            if !ends && !waits {
                self.sending.push_back(id);
            }
        }
    }

    /// Records that `count` more of the unsent bytes are sent.
    pub fn sent_more(&mut self, count: usize) {
        self.unsent_from += count;
        if self.unsent_from == self.unsent.len() {
            (self.unsent, self.unsent_from) = (Vec::new(), 0);
        }
    }

    /// This is what was not taken of what was written.
    pub fn keep_unsent(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Bytes have come: facts are asked for from now on.
    #[inline]
    pub fn received(&mut self) {
        self.reading = true;
    }

    /// The `grpc-message` of the last call, as on the wire.
    pub fn call_message(&self) -> &[u8] {
        &self.kept_heads[self.ended_by].call_message
    }

    /// The fault in the messages of the last call, although its server sent `OK`.
    #[inline]
    pub fn call_fault(&self) -> Option<CallFault> {
        self.call_fault
    }

    /// Whether the call that was answered last has a message that usual clients refuse for its
    /// length.
    #[inline]
    pub fn call_is_large(&self) -> bool {
        self.call_large
    }

    /// Takes an exchange away, any.
    fn next_exchange(&mut self) -> Option<ExchangeNumber> {
        self.streams.pop_front().map(|stream| stream.exchange).or_else(|| self.queued.pop_front())
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        match self.streams.front() {
            Some(first) if first.id == id => Some(0),
            _ => self.streams.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    /// The effect of the peer's end on an exchange in flight.
    pub fn end(&mut self) -> Option<Fact<'static>> {
        self.closing = true;
        // An exchange that was never written can use another connection.
        if let Some(exchange) = self.queued.pop_front() {
            return Some(Fact::Refused { exchange, error: EndError::NothingReceived.into() });
        }
        let stream = self.streams.pop_front()?;
        let error = match self.leaving {
            Some(GoAwayState { error, .. }) if error != H2Error::NoError => ExchangeError::Left(error),
            _ if stream.status == 0 => ExchangeError::End(EndError::NothingReceived),
            _ => ExchangeError::End(EndError::Truncated),
        };
        Some(Fact::Failed { exchange: stream.exchange, error, piece: Piece::default() })
    }

    /// The exchanges in flight are the last ones.
    pub fn end_after(&mut self) {
        self.closing = true;
    }

    /// The exchange is no longer wanted.
    pub fn cancel(&mut self, exchange: ExchangeNumber) {
        if let Some(at) = self.queued.iter().position(|queued| *queued == exchange) {
            self.queued.remove(at);
        } else if let Some(at) = self.streams.iter().position(|stream| stream.exchange == exchange) {
            frame::write_reset(&mut self.owed, self.streams[at].id, H2Error::Cancel as u32);
            self.streams.remove(at);
        }
    }

    /// The connection is broken: an exchange that was under way.
    pub fn give_up(&mut self) -> Option<ExchangeNumber> {
        self.closing = true;
        self.next_exchange()
    }
}
