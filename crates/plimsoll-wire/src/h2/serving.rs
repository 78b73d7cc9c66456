//! The server's side of HTTP/2, as far as plimsoll's reference server needs it. This code decodes
//! requests and encodes responses, without I/O.
//!
//! A request is reported when its head arrives, and again at its end. The content of a request is
//! ignored, and receive windows are always refilled. The content of a response consists of given
//! bytes or of filler bytes. The content of responses is sent within the client's flow-control
//! windows, each stream in turn. A client that breaks a rule of the connection gets a GOAWAY frame.
//!
//! Not here: sockets, resources, response times.

use super::frame::{self, FrameReader, H2Frame, PAYLOAD_BYTES_MAX};
use super::head::{FIELDS_BYTES_MAX, H2RequestHead};
use super::hpack::{HpackDecoder, HpackError, Secrecy, TABLE_BYTES, write_field};
use super::window::{INITIAL_WINDOW_BYTES, OwnReceiveWindow, SendWindow, WindowUse, resize_windows};
use crate::error::ProtocolError;
use plimsoll_model::H2Error;
use std::collections::VecDeque;

/// The maximum number of concurrent streams of a client.
const STREAMS_MAX: u32 = 1_000;
/// The size in bytes of the receive windows for the content of requests.
const WINDOW_BYTES: u32 = 1 << 24;
/// The maximum number of consecutive frames that do not advance any request.
const IDLE_FRAMES_MAX: u32 = 10_000;
/// The maximum number of bytes of unsent replies to a client that does not read.
const UNSENT_REPLY_BYTES_MAX: usize = 1 << 20;

/// An event in the bytes that the server received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The head of a request arrived: see [`H2Server::method`] and [`H2Server::path`].
    Head {
        /// The number of the stream that the request uses.
        stream: u32,
        /// Whether the request has no content, so that it is complete.
        ends: bool,
    },
    /// A request is complete.
    End {
        /// The number of the stream that the request uses.
        stream: u32,
    },
    /// The client no longer wants a response.
    Reset {
        /// The stream of the cancelled request.
        stream: u32,
    },
    /// The connection is over, and the bytes to send now are the last ones.
    Over,
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The content is these bytes.
    Bytes(Vec<u8>),
    /// The content is filler bytes, whose number is the field.
    Filling(u64),
}

/// A stream whose request or response is not complete.
#[derive(Debug)]
struct ServedStream {
    id: u32,
    /// Whether the request is complete.
    is_request_complete: bool,
    /// The unsent content of the response; `None` before the response.
    left: Option<Content>,
    window: SendWindow,
    own_receive_window: OwnReceiveWindow,
}

/// The server's side of one connection, after the client's preface.
#[derive(Debug)]
pub struct H2Server {
    reader: FrameReader,
    decoder: HpackDecoder,
    head: H2RequestHead,
    /// The open streams, ascending by number.
    streams: VecDeque<ServedStream>,
    /// The streams with unsent content, in the order in which they may send.
    sending: VecDeque<u32>,
    pending_frames: Vec<u8>,
    last_stream: u32,
    initial_send_window_bytes: u32,
    window: SendWindow,
    payload_bytes_max: usize,
    own_receive_window: OwnReceiveWindow,
    idle_frames: u32,
    has_client_settings: bool,
    over: bool,
    /// The header block of the last encoded response head, kept for reuse by an equal response.
    block: Vec<u8>,
    /// The response that `block` belongs to: its status, content type and length in bytes.
    block_response: (u16, &'static str, u64),
}

impl Default for H2Server {
    fn default() -> H2Server {
        H2Server::new()
    }
}

impl H2Server {
    /// Creates a connection whose client has sent its preface.
    pub fn new() -> H2Server {
        let mut pending_frames = Vec::new();
        let settings = [(3, STREAMS_MAX), (4, WINDOW_BYTES), (6, FIELDS_BYTES_MAX as u32)];
        frame::write_settings(&mut pending_frames, &settings);
        frame::write_window(&mut pending_frames, 0, WINDOW_BYTES - INITIAL_WINDOW_BYTES);
        H2Server {
            reader: FrameReader::new(),
            decoder: HpackDecoder::new(TABLE_BYTES),
            head: H2RequestHead::default(),
            streams: VecDeque::new(),
            sending: VecDeque::new(),
            pending_frames,
            last_stream: 0,
            initial_send_window_bytes: INITIAL_WINDOW_BYTES,
            window: SendWindow::new(INITIAL_WINDOW_BYTES),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            own_receive_window: OwnReceiveWindow::default(),
            idle_frames: 0,
            has_client_settings: false,
            over: false,
            block: Vec::new(),
            block_response: (0, "", 0),
        }
    }

    /// Returns the method in the last reported head.
    pub fn method(&self) -> &[u8] {
        &self.head.method
    }

    /// Returns the path and query in the last reported head.
    pub fn path(&self) -> &[u8] {
        &self.head.path
    }

    /// Returns the next event in `bytes`, such as a complete request, and advances `bytes` past the
    /// event; `None`: more bytes are needed.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<ServerEvent> {
        while !self.over {
            let taken = match self.reader.next(bytes) {
                Ok(None) => return None,
                Ok(Some(frame)) => self.handle_frame(frame),
                Err(error) => Err(error),
            };
            match taken {
                Ok(None) => {}
                Ok(event) => return event,
                Err(error) => {
                    self.over = true;
                    frame::write_go_away(&mut self.pending_frames, self.last_stream, error.h2_error() as u32);
                    *bytes = &[];
                    return Some(ServerEvent::Over);
                }
            }
        }
        *bytes = &[];
        None
    }

    fn handle_frame(&mut self, frame: H2Frame) -> Result<Option<ServerEvent>, ProtocolError> {
        if !self.has_client_settings {
            let H2Frame::Settings(_) = frame else { return Err(ProtocolError::NotHttp2) };
            self.has_client_settings = true;
        }
        if !matches!(frame, H2Frame::Head { .. }) {
            self.idle_frames += 1;
            if self.idle_frames > IDLE_FRAMES_MAX || self.pending_frames.len() > UNSENT_REPLY_BYTES_MAX {
                return Err(ProtocolError::Flood);
            }
        }
        match frame {
            H2Frame::Head { stream, block, ends } => return self.on_head(stream, block, ends),
            H2Frame::Data { stream, content, window_bytes, ends, .. } => {
                if !content.is_empty() {
                    self.idle_frames = 0;
                }
                return self.on_data(stream, window_bytes, ends);
            }
            H2Frame::Reset { stream, .. } => {
                self.check_stream_was_opened(stream)?;
                if let Some(at) = self.find(stream) {
                    self.streams.remove(at);
                    return Ok(Some(ServerEvent::Reset { stream }));
                }
            }
            H2Frame::Settings(settings) => {
                if let Some(window) = settings.window {
                    resize_windows(
                        &mut self.initial_send_window_bytes,
                        window,
                        self.streams.iter_mut().map(|stream| &mut stream.window),
                    )?;
                }
                if let Some(bytes) = settings.payload_bytes_max {
                    self.payload_bytes_max = (bytes as usize).min(PAYLOAD_BYTES_MAX);
                }
                frame::write_settings_ack(&mut self.pending_frames);
            }
            H2Frame::Ping(data) => frame::write_ping_ack(&mut self.pending_frames, &data),
            H2Frame::Window { stream: 0, bytes } => self.window.add_increment(bytes)?,
            H2Frame::Window { stream, bytes } => {
                self.check_stream_was_opened(stream)?;
                if let Some(at) = self.find(stream)
                    && let Err(error) = self.streams[at].window.add_increment(bytes)
                {
                    self.streams.remove(at);
                    frame::write_reset(&mut self.pending_frames, stream, error.h2_error() as u32);
                    return Ok(Some(ServerEvent::Reset { stream }));
                }
            }
            H2Frame::Push => return Err(ProtocolError::Pushed),
            // A client that sends GOAWAY ends the connection itself, so the server does nothing.
            H2Frame::GoAway { .. } | H2Frame::SettingsAck | H2Frame::PingAck | H2Frame::Other { .. } => {}
            H2Frame::WrongPriorityLength { stream } => {
                if let Some(at) = self.find(stream) {
                    self.streams.remove(at);
                    frame::write_reset(&mut self.pending_frames, stream, ProtocolError::FrameSize.h2_error() as u32);
                    return Ok(Some(ServerEvent::Reset { stream }));
                }
            }
        }
        Ok(None)
    }

    /// Refuses a frame of a stream that the client never opened.
    fn check_stream_was_opened(&self, stream: u32) -> Result<(), ProtocolError> {
        if stream.is_multiple_of(2) || stream > self.last_stream {
            return Err(ProtocolError::FrameOrder);
        }
        Ok(())
    }

    fn find(&self, id: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    fn on_head(&mut self, id: u32, block: Option<&[u8]>, ends: bool) -> Result<Option<ServerEvent>, ProtocolError> {
        let block = block.unwrap_or(self.reader.header_block());
        let head = &mut self.head;
        head.clear();
        self.decoder.decode(block, FIELDS_BYTES_MAX, |name, value| head.parse_field(name, value)).map_err(|error| {
            match error {
                HpackError::Malformed => ProtocolError::Compression,
                HpackError::TooLarge => ProtocolError::HeadTooLarge,
            }
        })?;
        self.idle_frames = 0;
        if id <= self.last_stream {
            self.check_stream_was_opened(id)?;
            // A head on a known stream contains trailers, which are ignored if the stream has
            // ended.
            let Some(at) = self.find(id) else { return Ok(None) };
            let stream = &mut self.streams[at];
            if stream.is_request_complete || !ends {
                return Err(ProtocolError::FrameOrder);
            }
            stream.is_request_complete = true;
            return Ok(Some(ServerEvent::End { stream: id }));
        }
        if id.is_multiple_of(2) {
            return Err(ProtocolError::FrameOrder);
        }
        self.last_stream = id;
        let error = match self.head.is_valid() {
            false => Some(H2Error::ProtocolError),
            true if self.streams.len() >= STREAMS_MAX as usize => Some(H2Error::RefusedStream),
            true => None,
        };
        if let Some(error) = error {
            frame::write_reset(&mut self.pending_frames, id, error as u32);
            return Ok(None);
        }
        let (window, own_receive_window) =
            (SendWindow::new(self.initial_send_window_bytes), OwnReceiveWindow::default());
        self.streams.push_back(ServedStream { id, is_request_complete: ends, left: None, window, own_receive_window });
        Ok(Some(ServerEvent::Head { stream: id, ends }))
    }

    fn on_data(&mut self, id: u32, window_bytes: u32, ends: bool) -> Result<Option<ServerEvent>, ProtocolError> {
        self.check_stream_was_opened(id)?;
        match self.own_receive_window.record_use(window_bytes, WINDOW_BYTES) {
            WindowUse::WindowExceeded => return Err(ProtocolError::Window),
            WindowUse::BelowHalf | WindowUse::BelowFrameSize => {
                frame::write_window(&mut self.pending_frames, 0, self.own_receive_window.take_update_increment())
            }
            WindowUse::NoThresholdCrossed => {}
        }
        let Some(at) = self.find(id) else { return Ok(None) };
        let stream = &mut self.streams[at];
        match stream.own_receive_window.record_use(window_bytes, WINDOW_BYTES) {
            _ if stream.is_request_complete => return Err(ProtocolError::FrameOrder),
            WindowUse::WindowExceeded => return Err(ProtocolError::Window),
            WindowUse::BelowHalf | WindowUse::BelowFrameSize if !ends => {
                frame::write_window(&mut self.pending_frames, id, stream.own_receive_window.take_update_increment());
            }
            WindowUse::BelowHalf | WindowUse::BelowFrameSize | WindowUse::NoThresholdCrossed => {}
        }
        stream.is_request_complete |= ends;
        Ok(ends.then_some(ServerEvent::End { stream: id }))
    }

    /// Starts the response of a stream, unless the client has cancelled the stream. If `head_only`
    /// is true, the response has no content.
    pub fn answer(&mut self, stream: u32, status: u16, kind: &'static str, content: Content, head_only: bool) {
        let Some(at) = self.find(stream) else { return };
        let length = match &content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Filling(length) => *length,
        };
        if self.block_response != (status, kind, length) {
            self.block.clear();
            let mut field = |name: &str, value: &str| {
                write_field(&mut self.block, name.as_bytes(), value.as_bytes(), Secrecy::Plain);
            };
            field(":status", &status.to_string());
            if !matches!(status, 204 | 304) {
                field("content-type", kind);
                field("content-length", &length.to_string());
            }
            self.block_response = (status, kind, length);
        }
        let ends = head_only || length == 0 || matches!(status, 204 | 304);
        let from = self.pending_frames.len();
        frame::write_head(&mut self.pending_frames, &self.block, ends);
        frame::set_stream(&mut self.pending_frames[from..], stream);
        if ends {
            self.streams.remove(at);
        } else {
            self.streams[at].left = Some(content);
            self.sending.push_back(stream);
        }
    }

    /// Returns whether there are bytes that can be sent now.
    pub fn wants_to_send(&self) -> bool {
        let sendable = |id: &u32| self.find(*id).is_none_or(|at| self.streams[at].window.sendable_bytes() > 0);
        !self.pending_frames.is_empty() || (self.window.sendable_bytes() > 0 && self.sending.iter().any(sendable))
    }

    /// Returns whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Appends bytes to send to `out`, until `out` has at least `bytes_max` bytes or the client's
    /// flow-control windows are exhausted. `filling` is filler content, at least as long as a
    /// frame.
    pub fn write(&mut self, out: &mut Vec<u8>, bytes_max: usize, filling: &[u8]) {
        out.append(&mut self.pending_frames);
        let mut stuck = 0;
        while out.len() < bytes_max
            && self.window.sendable_bytes() > 0
            && !self.over
            && stuck < self.sending.len()
            && let Some(id) = self.sending.pop_front()
        {
            let Some(at) = self.find(id) else { continue };
            let stream = &mut self.streams[at];
            let room = stream
                .window
                .sendable_bytes()
                .min(self.window.sendable_bytes())
                .clamp(0, self.payload_bytes_max.min(filling.len()) as i64) as usize;
            if room == 0 {
                stuck += 1;
                self.sending.push_back(id);
                continue;
            }
            stuck = 0;
            let (count, ends) = match &mut stream.left {
                Some(Content::Bytes(bytes)) => {
                    let count = bytes.len().min(room);
                    let ends = count == bytes.len();
                    frame::write_data(out, id, &bytes[..count], ends);
                    bytes.drain(..count);
                    (count, ends)
                }
                Some(Content::Filling(left)) => {
                    let count = usize::try_from(*left).map_or(room, |left| left.min(room));
                    *left -= count as u64;
                    frame::write_data(out, id, &filling[..count], *left == 0);
                    (count, *left == 0)
                }
                None => continue,
            };
            stream.window.subtract_sent(count);
            self.window.subtract_sent(count);
            if ends {
                self.streams.remove(at);
            } else {
                self.sending.push_back(id);
            }
        }
    }
}
