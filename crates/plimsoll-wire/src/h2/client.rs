//! The client's side of a connection that speaks HTTP/2: several exchanges at a time, each a stream.
//!
//! The server is told to compress without a table of its own, so that the head of an answer means the same whatever came before
//! it: one that is byte for byte the last one is not read again. Windows are as large as no answer needs, and topped up when half
//! is used: the client is not to be what a server waits for. Requests are written once and copied from there, with the number of
//! their stream.
//!
//! A server that breaks a rule of a stream costs that exchange, one that breaks a rule of the connection all of them; what it can
//! make this side keep or do without sending answers is bounded.
//!
//! Not here: sockets, deadlines, where a request that the server has not taken is sent again.

use super::frame::{self, FrameReader, H2Frame, H2Settings, PAYLOAD_BYTES_MAX, PREFACE, WINDOW_MAX};
use super::head::{AnswerHead, FIELDS_BYTES_MAX};
use super::hpack::{HpackDecoder, HpackError, TABLE_BYTES};
use super::request::H2Request;
use crate::error::{EndError, ExchangeError, ProtocolError};
use crate::fact::{ExchangeNumber, Fact, Piece};
use crate::h1::{Expect, INTERIM_REPLIES_MAX};
use plimsoll_model::H2Error;
use std::collections::VecDeque;

/// The window of each stream and of the connection: more than the network holds.
const WINDOW_BYTES: u32 = 1 << 30;
/// What a window is until something else is said (6.9.2).
const WINDOW_FIRST: u32 = 65_535;
/// Streams that a server can be expected to take before it has said how many it does (6.5.2).
const STREAMS_FIRST: u32 = 100;
/// The last stream that a client can open.
const STREAM_LAST: u32 = (1 << 31) - 1;
/// Written in one go.
const OUT_BYTES: usize = 64 << 10;
/// Frames in a row that bring no answer forward: a server that keeps a connection alive sends one now and then.
const IDLE_FRAMES_MAX: u32 = 10_000;
/// What may be owed to a server that does not read: acknowledgements, mostly.
const OWED_BYTES_MAX: usize = 256 << 10;
/// A head longer than this is not compared with the next.
const HEAD_KEPT_BYTES: usize = 1024;

/// One exchange whose request is on its way, or sent.
#[derive(Debug)]
struct H2Stream {
    id: u32,
    exchange: ExchangeNumber,
    expect: Expect,
    interims: u8,
    /// 0 until the head of the answer is there.
    status: u16,
    /// Bytes of the request's content that are still to be written.
    body_left: usize,
    /// How much the server takes of it.
    window: i64,
    /// How much of our window is used and not topped up.
    used: u32,
    /// Length of the answer's content, if it is said, and what has come of it.
    length: Option<u64>,
    body_bytes: u64,
}

/// What is known once the server goes away.
#[derive(Clone, Copy, Debug)]
struct Leaving {
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
    /// What was written and the network did not take, and how much of it is sent by now.
    unsent: Vec<u8>,
    unsent_from: usize,
    next_stream: u32,
    /// Streams at once: as many as are wanted, and as the server takes.
    wanted: u32,
    allowed: u32,
    /// How much content the server takes, of a new stream and of all together.
    window_first: i64,
    window: i64,
    payload_bytes_max: usize,
    /// How much of our window is used and not topped up.
    used: u32,
    idle_frames: u32,
    leaving: Option<Leaving>,
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
    /// The last head that was read, and what it says.
    head_block: Vec<u8>,
    head: AnswerHead,
    /// The fields of the head that was read last, a line each, if any exchange of the connection has asked for content.
    fields: Vec<u8>,
    keeps_fields: bool,
}

/// Reads the block of a head; its fields are put down as lines where they are to be kept.
fn read_fields(
    decoder: &mut HpackDecoder,
    block: &[u8],
    head: &mut AnswerHead,
    mut fields: Option<&mut Vec<u8>>,
) -> Result<(), ProtocolError> {
    if let Some(fields) = &mut fields {
        fields.clear();
    }
    let read = decoder.decode(block, FIELDS_BYTES_MAX, |name, value| {
        head.field(name, value);
        if let Some(fields) = &mut fields
            && !name.starts_with(b":")
        {
            for part in [name, b": ", value, b"\r\n"] {
                fields.extend_from_slice(part);
            }
        }
    });
    read.map_err(|error| match error {
        HpackError::Malformed => ProtocolError::Compression,
        HpackError::TooLarge => ProtocolError::HeadTooLarge,
    })
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
            window_first: i64::from(WINDOW_FIRST),
            window: i64::from(WINDOW_FIRST),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            used: 0,
            idle_frames: 0,
            leaving: None,
            broken: None,
            begun: false,
            settled: false,
            closing: false,
            reading: false,
            head_block: Vec::new(),
            head: AnswerHead::default(),
            fields: Vec::new(),
            keeps_fields: false,
        }
    }

    /// The fields of the head that was read last, a line each, where content is asked for.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// How many exchanges can be started now.
    #[inline]
    pub fn room(&self) -> u32 {
        if self.is_closing() {
            return 0;
        }
        self.wanted.min(self.allowed).saturating_sub((self.streams.len() + self.queued.len()) as u32)
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.closing || self.leaving.is_some() || self.broken.is_some()
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

    /// Begins an exchange. Returns whether something is to be sent now; else it goes with what is sent next.
    #[inline]
    pub fn start(&mut self, exchange: ExchangeNumber, keep_alive: bool) -> bool {
        debug_assert!(self.room() > 0, "no more exchanges than there is room for");
        self.idle_frames = 0;
        self.queued.push_back(exchange);
        // Numbers of streams are used up: the next connection begins anew.
        self.closing |= !keep_alive || self.next_stream + 2 * self.queued.len() as u32 >= STREAM_LAST;
        !self.reading && self.unsent.is_empty()
    }

    /// Whether anything can be sent at this moment.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        !self.unsent.is_empty()
            || !self.begun
            || !self.owed.is_empty()
            || !self.queued.is_empty()
            || (self.window > 0 && self.sending.iter().any(|id| self.window_of(*id) > 0))
    }

    fn window_of(&self, id: u32) -> i64 {
        self.find(id).map_or(0, |at| self.streams[at].window)
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
        while out.len() < OUT_BYTES
            && let Some(exchange) = self.queued.pop_front()
        {
            let request = request(exchange);
            if request.expect.content && !self.keeps_fields {
                self.keeps_fields = true;
                // Of that one they were not kept.
                self.head_block.clear();
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
                body_left,
                window: self.window_first,
                used: 0,
                length: None,
                body_bytes: 0,
            });
        }
        if !self.sending.is_empty() {
            self.write_bodies(request, out);
        }
    }

    /// Writes content of requests, a frame of each in turn, as far as the windows reach.
    fn write_bodies<'r>(&mut self, request: impl Fn(ExchangeNumber) -> H2Request<'r>, out: &mut Vec<u8>) {
        let mut stuck = 0;
        while out.len() < OUT_BYTES
            && self.window > 0
            && stuck < self.sending.len()
            && let Some(id) = self.sending.pop_front()
        {
            let Some(at) = self.find(id) else { continue };
            let stream = &mut self.streams[at];
            let room = stream.window.min(self.window).clamp(0, self.payload_bytes_max as i64) as usize;
            let count = stream.body_left.min(room);
            if count == 0 {
                stuck += 1;
                self.sending.push_back(id);
                continue;
            }
            stuck = 0;
            let body = request(stream.exchange).body;
            let from = body.len() - stream.body_left;
            stream.body_left -= count;
            stream.window -= count as i64;
            self.window -= count as i64;
            let ends = stream.body_left == 0;
            frame::write_data(out, id, &body[from..from + count], ends);
            if !ends {
                self.sending.push_back(id);
            }
        }
    }

    /// So much of what was unsent is sent by now.
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

    /// The next fact in `bytes`, which move on behind it.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Fact<'a>> {
        loop {
            if let Some(error) = self.broken {
                *bytes = &[];
                return self
                    .owes()
                    .or_else(|| self.next_failed())
                    .or_else(|| (!std::mem::replace(&mut self.closing, true)).then_some(Fact::Broke(error)));
            }
            if let Some(fact) = self.next_refused() {
                return Some(fact);
            }
            let all = *bytes;
            match self.reader.next(bytes) {
                Ok(None) => return self.owes(),
                Ok(Some(frame)) => match self.take(frame) {
                    Ok(None) => {}
                    Ok(Some(fact)) => return Some(fact),
                    Err(error) => self.break_off(error),
                },
                Err(error) => self.break_off(error),
            }
            if self.broken == Some(ProtocolError::NotHttp2)
                && let Some(exchange) = self.next_exchange()
            {
                // What came in place of an answer is of interest.
                let error = ProtocolError::NotHttp2.into();
                return Some(Fact::Failed { exchange, error, piece: Piece { bytes: all, ..Piece::default() } });
            }
        }
    }

    /// Says once after each piece that came that something is to be sent, if so.
    fn owes(&mut self) -> Option<Fact<'static>> {
        (std::mem::take(&mut self.reading) && self.wants_to_send()).then_some(Fact::Owes)
    }

    /// The server has broken a rule of the connection: that is its end, and the server is told why.
    #[cold]
    fn break_off(&mut self, error: ProtocolError) {
        let error = if self.settled { error } else { ProtocolError::NotHttp2 };
        self.broken = Some(error);
        frame::write_go_away(&mut self.owed, 0, error.h2_error() as u32);
    }

    fn next_failed(&mut self) -> Option<Fact<'static>> {
        let error = self.broken?;
        let exchange = self.next_exchange()?;
        Some(Fact::Failed { exchange, error: error.into(), piece: Piece::default() })
    }

    /// Takes an exchange away, any.
    fn next_exchange(&mut self) -> Option<ExchangeNumber> {
        self.streams.pop_front().map(|stream| stream.exchange).or_else(|| self.queued.pop_front())
    }

    /// Takes an exchange away that the server has not taken, and will not.
    fn next_refused(&mut self) -> Option<Fact<'static>> {
        let Leaving { last_stream, error } = self.leaving?;
        let exchange = match self.streams.back() {
            Some(stream) if stream.id > last_stream => self.streams.pop_back()?.exchange,
            _ => self.queued.pop_front()?,
        };
        Some(Fact::Refused { exchange, error: ExchangeError::Left(error) })
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        match self.streams.front() {
            Some(first) if first.id == id => Some(0),
            _ => self.streams.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    /// What a frame means.
    #[inline]
    fn take<'a>(&mut self, frame: H2Frame<'a>) -> Result<Option<Fact<'a>>, ProtocolError> {
        match frame {
            H2Frame::Head { stream, block, ends } if self.settled => self.on_head(stream, block, ends),
            H2Frame::Data { stream, content, window_bytes, is_last, ends } if self.settled => {
                self.on_data(stream, content, window_bytes, is_last, ends)
            }
            other => self.take_control(other),
        }
    }

    /// What is to be done with a frame of a stream that is not, or no longer, under way.
    #[cold]
    fn on_other_stream(&mut self, id: u32) -> Result<(), ProtocolError> {
        // Of a stream that was never opened: no server's to speak of.
        if id.is_multiple_of(2) || id >= self.next_stream {
            return Err(ProtocolError::FrameOrder);
        }
        self.count_idle()
    }

    #[inline]
    fn count_idle(&mut self) -> Result<(), ProtocolError> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX || self.owed.len() > OWED_BYTES_MAX {
            return Err(ProtocolError::Flood);
        }
        Ok(())
    }

    fn on_head<'a>(&mut self, id: u32, block: Option<&'a [u8]>, ends: bool) -> Result<Option<Fact<'a>>, ProtocolError> {
        let head = self.read_head(block)?;
        let Some(at) = self.find(id) else {
            self.on_other_stream(id)?;
            return Ok(None);
        };
        let stream = &mut self.streams[at];
        let exchange = stream.exchange;
        let fault = match (stream.status, head.status) {
            _ if head.fault.is_some() => head.fault,
            // Trailers: at the end, and without a status.
            (200.., 0) if ends => None,
            (200.., _) | (_, 0) => Some(ProtocolError::PseudoHeader),
            (_, 101) => Some(ProtocolError::UnexpectedUpgrade),
            (_, 100..200) if ends => Some(ProtocolError::BadStatus),
            (_, 100..200) => {
                stream.interims += 1;
                (stream.interims > INTERIM_REPLIES_MAX).then_some(ProtocolError::TooManyInterim)
            }
            (_, status) => {
                stream.status = status;
                let is_empty = stream.expect.head_request || matches!(status, 204 | 304);
                stream.length = if is_empty { None } else { head.length };
                None
            }
        };
        if let Some(fault) = fault {
            return Ok(Some(self.fail(at, fault)));
        }
        if (100..200).contains(&head.status) {
            self.count_idle()?;
            return Ok(None);
        }
        self.idle_frames = 0;
        if ends {
            return Ok(Some(self.finish(at, Piece::default())));
        }
        Ok(Some(Fact::Piece { exchange, status: Some(head.status), piece: Piece::default() }))
    }

    /// What a head says; `None`: the one that came in pieces.
    #[inline]
    fn read_head(&mut self, block: Option<&[u8]>) -> Result<AnswerHead, ProtocolError> {
        let block = block.unwrap_or(self.reader.block());
        let is_stateless = self.decoder.is_stateless();
        if is_stateless && !block.is_empty() && *block == *self.head_block {
            return Ok(self.head);
        }
        let mut head = AnswerHead::default();
        let fields = self.keeps_fields.then_some(&mut self.fields);
        let read = read_fields(&mut self.decoder, block, &mut head, fields);
        // What is kept of fields is not of that one any more.
        self.head_block.clear();
        read?;
        if is_stateless && block.len() <= HEAD_KEPT_BYTES {
            self.head_block.extend_from_slice(block);
            self.head = head;
        }
        Ok(head)
    }

    #[inline]
    fn on_data<'a>(
        &mut self,
        id: u32,
        content: &'a [u8],
        window_bytes: u32,
        is_last: bool,
        ends: bool,
    ) -> Result<Option<Fact<'a>>, ProtocolError> {
        // Whoever it is for, it has taken of the connection's window.
        self.used += window_bytes;
        if self.used > WINDOW_BYTES {
            return Err(ProtocolError::Window);
        }
        if self.used >= WINDOW_BYTES / 2 {
            frame::write_window(&mut self.owed, 0, self.used);
            self.used = 0;
        }
        let Some(at) = self.find(id) else {
            // Each frame once, in whatever pieces it comes.
            if is_last {
                self.on_other_stream(id)?;
            } else if id.is_multiple_of(2) || id >= self.next_stream {
                return Err(ProtocolError::FrameOrder);
            }
            return Ok(None);
        };
        let stream = &mut self.streams[at];
        stream.used += window_bytes;
        if stream.used > WINDOW_BYTES {
            return Ok(Some(self.fail(at, ProtocolError::Window)));
        }
        if stream.used >= WINDOW_BYTES / 2 && !ends {
            frame::write_window(&mut self.owed, id, stream.used);
            stream.used = 0;
        }
        stream.body_bytes += content.len() as u64;
        let fault = match stream.status {
            0 => Some(ProtocolError::FrameOrder),
            _ if content.is_empty() => None,
            _ if stream.expect.head_request || matches!(stream.status, 204 | 304) => {
                Some(ProtocolError::UnexpectedContent)
            }
            _ if stream.length.is_some_and(|length| stream.body_bytes > length) => Some(ProtocolError::WrongLength),
            _ => None,
        };
        if let Some(fault) = fault {
            return Ok(Some(self.fail(at, fault)));
        }
        let piece = Piece { bytes: content, content_bytes: content.len(), content_end: content.len() };
        if ends {
            self.idle_frames = 0;
            return Ok(Some(self.finish(at, piece)));
        }
        if content.is_empty() {
            if is_last {
                self.count_idle()?;
            }
            return Ok(None);
        }
        self.idle_frames = 0;
        let (exchange, status) = (stream.exchange, Some(stream.status));
        Ok(Some(Fact::Piece { exchange, status, piece }))
    }

    /// The server has said all of an answer.
    #[inline]
    fn finish<'a>(&mut self, at: usize, piece: Piece<'a>) -> Fact<'a> {
        let stream = &self.streams[at];
        if stream.length.is_some_and(|length| stream.body_bytes != length) {
            return self.fail(at, ProtocolError::WrongLength);
        }
        let (exchange, status, body_bytes) = (stream.exchange, stream.status, stream.body_bytes);
        if stream.body_left > 0 {
            // Answered before all of the request was sent: the rest is not wanted.
            frame::write_reset(&mut self.owed, stream.id, H2Error::NoError as u32);
        }
        self.streams.remove(at);
        Fact::Answered { exchange, status, body_bytes, piece, surplus: 0 }
    }

    /// The server has broken a rule of the stream: that is its end.
    #[cold]
    fn fail(&mut self, at: usize, error: ProtocolError) -> Fact<'static> {
        let (id, exchange) = (self.streams[at].id, self.streams[at].exchange);
        self.streams.remove(at);
        frame::write_reset(&mut self.owed, id, error.h2_error() as u32);
        Fact::Failed { exchange, error: error.into(), piece: Piece::default() }
    }

    fn take_control<'a>(&mut self, frame: H2Frame<'a>) -> Result<Option<Fact<'a>>, ProtocolError> {
        if !self.settled {
            // The first frame of a server is its settings (3.4).
            let H2Frame::Settings(_) = frame else { return Err(ProtocolError::NotHttp2) };
            self.settled = true;
            self.allowed = u32::MAX;
        }
        self.count_idle()?;
        match frame {
            H2Frame::Settings(settings) => self.on_settings(settings)?,
            // Ours hold from now on: blocks need no table.
            H2Frame::SettingsAck => self.decoder.set_limit(0),
            H2Frame::Ping(data) => frame::write_ping_ack(&mut self.owed, &data),
            H2Frame::Push => return Err(ProtocolError::Pushed),
            H2Frame::Window { stream, bytes } => return self.on_window(stream, bytes),
            H2Frame::Reset { stream, code } => return self.on_reset(stream, code),
            H2Frame::GoAway { last_stream, code } => {
                let error = H2Error::of_code(code);
                let before = self.leaving.map_or(u32::MAX, |leaving| leaving.last_stream);
                self.leaving = Some(Leaving { last_stream: last_stream.min(before), error });
                return Ok(Some(Fact::Leaves { error }));
            }
            H2Frame::PingAck | H2Frame::Other { .. } => {}
            H2Frame::Head { .. } | H2Frame::Data { .. } => return Err(ProtocolError::FrameOrder),
        }
        Ok(None)
    }

    fn on_settings(&mut self, settings: H2Settings) -> Result<(), ProtocolError> {
        // A server that offers to be pushed to (6.5.2).
        if settings.push.is_some_and(|push| push != 0) {
            return Err(ProtocolError::Setting);
        }
        if let Some(window) = settings.window {
            let grown = i64::from(window) - self.window_first;
            self.window_first = i64::from(window);
            for stream in &mut self.streams {
                stream.window += grown;
                if stream.window > WINDOW_MAX {
                    return Err(ProtocolError::Window);
                }
            }
        }
        if let Some(bytes) = settings.payload_bytes_max {
            self.payload_bytes_max = (bytes as usize).min(OUT_BYTES);
        }
        if let Some(streams) = settings.streams_max {
            self.allowed = streams;
        }
        frame::write_settings_ack(&mut self.owed);
        Ok(())
    }

    fn on_window<'a>(&mut self, id: u32, bytes: u32) -> Result<Option<Fact<'a>>, ProtocolError> {
        if id == 0 {
            self.window += i64::from(bytes);
            return match bytes {
                0 => Err(ProtocolError::ZeroWindow),
                _ if self.window > WINDOW_MAX => Err(ProtocolError::Window),
                _ => Ok(None),
            };
        }
        let Some(at) = self.find(id) else {
            self.on_other_stream(id)?;
            return Ok(None);
        };
        let stream = &mut self.streams[at];
        stream.window += i64::from(bytes);
        Ok(match bytes {
            0 => Some(self.fail(at, ProtocolError::ZeroWindow)),
            _ if stream.window > WINDOW_MAX => Some(self.fail(at, ProtocolError::Window)),
            _ => None,
        })
    }

    fn on_reset<'a>(&mut self, id: u32, code: u32) -> Result<Option<Fact<'a>>, ProtocolError> {
        let Some(at) = self.find(id) else {
            self.on_other_stream(id)?;
            return Ok(None);
        };
        let exchange = self.streams[at].exchange;
        self.streams.remove(at);
        Ok(Some(match H2Error::of_code(code) {
            error @ H2Error::RefusedStream => Fact::Refused { exchange, error: ExchangeError::StreamReset(error) },
            error => Fact::Failed { exchange, error: ExchangeError::StreamReset(error), piece: Piece::default() },
        }))
    }

    /// What the end of the peer's bytes means for an exchange under way.
    pub fn end(&mut self) -> Option<Fact<'static>> {
        self.closing = true;
        // What was never written can be asked of another connection.
        if let Some(exchange) = self.queued.pop_front() {
            return Some(Fact::Refused { exchange, error: EndError::NothingReceived.into() });
        }
        let stream = self.streams.pop_front()?;
        let error = match self.leaving {
            Some(Leaving { error, .. }) if error != H2Error::NoError => ExchangeError::Left(error),
            _ if stream.status == 0 => ExchangeError::End(EndError::NothingReceived),
            _ => ExchangeError::End(EndError::Truncated),
        };
        Some(Fact::Failed { exchange: stream.exchange, error, piece: Piece::default() })
    }

    /// Those under way are the last.
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
