//! HTTP/2 frames ([RFC 9113, 4 and 6](https://www.rfc-editor.org/rfc/rfc9113#section-6)) of both
//! sides: decodes frames from bytes in any split, and encodes frames.
//!
//! The content of DATA frames is passed on as it arrives. Frames of other types are parsed only
//! when they are complete, so that the result does not depend on how bytes are split. The maximum
//! frame length bounds the memory of an incomplete frame, and [`BLOCK_BYTES_MAX`] bounds the memory
//! of a head.
//!
//! Not here: the effect of a frame on its stream or connection, windows, and header compression.

use crate::error::ProtocolError;

/// The connection preface: the first bytes that every HTTP/2 client sends (RFC 9113, 3.4).
pub const CONNECTION_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The maximum payload of a frame in bytes: the default limit of HTTP/2 (RFC 9113, 4.2).
pub(super) const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The maximum length in bytes of the compressed header block of a head.
pub const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of frames into which one head may be split.
const FRAGMENTS_MAX: u32 = 1024;
/// The largest flow-control window that HTTP/2 permits, in bytes (RFC 9113, 6.9.1).
pub(super) const WINDOW_MAX: i64 = (1 << 31) - 1;
const HEADER_BYTES: usize = 9;

/// The type number of DATA frames. The constants after `DATA` are the type numbers of the other
/// frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// The flag of DATA and HEADERS frames that ends the stream. In SETTINGS and PING frames, the bit
/// of `END_STREAM` is the flag ACK.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

/// The values of the settings that plimsoll parses (RFC 9113, 6.5.2); `None`: the frame does not
/// contain the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct H2Settings {
    pub(super) table_bytes: Option<u32>,
    pub(super) push: Option<u32>,
    pub(super) streams_max: Option<u32>,
    pub(super) window: Option<u32>,
    pub(super) payload_bytes_max: Option<u32>,
    pub(super) head_bytes_max: Option<u32>,
}

/// A frame, or a piece of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H2Frame<'a> {
    Data {
        stream: u32,
        content: &'a [u8],
        /// The number of bytes by which the frame reduces the flow-control windows, including
        /// padding. Only the first piece of a frame contains the number of bytes; later pieces
        /// contain 0.
        window_bytes: u32,
        /// Whether this is the last piece of the frame.
        is_last: bool,
        /// Whether the stream ends with this piece.
        ends: bool,
    },
    /// A complete head, or trailers. If the block is `None`, the head arrived in pieces and is in
    /// [`FrameReader::header_block`].
    Head {
        stream: u32,
        block: Option<&'a [u8]>,
        ends: bool,
    },
    Reset {
        stream: u32,
        code: u32,
    },
    Settings(H2Settings),
    SettingsAck,
    Ping([u8; 8]),
    PingAck,
    Push,
    GoAway {
        last_stream: u32,
        code: u32,
    },
    Window {
        stream: u32,
        bytes: u32,
    },
    /// A frame that is an error of its stream only: a priority frame with a wrong length.
    WrongPriorityLength {
        stream: u32,
    },
    /// A frame without effect: a priority frame, or a frame of unknown type.
    Other {
        /// The number of the stream; 0 for a frame of the connection.
        stream: u32,
    },
}

/// The header of a frame, which is its first nine bytes.
#[derive(Clone, Copy, Debug)]
struct FrameHeader {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl FrameHeader {
    fn parse(bytes: &[u8]) -> FrameHeader {
        let first = bytes.first_chunk::<HEADER_BYTES>().copied().unwrap_or_default();
        let [a, b, c, kind, flags, w, x, y, z] = first;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        // The highest bit of the stream number is reserved and ignored.
        FrameHeader { length, kind, flags, stream: u32::from_be_bytes([w, x, y, z]) & 0x7fff_ffff }
    }

    fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the number of bytes, including the header, that must arrive before the frame is
    /// handled.
    fn required_bytes(&self) -> usize {
        match self.kind {
            DATA if self.has_flag(PADDED) && self.length > 0 => HEADER_BYTES + 1,
            DATA => HEADER_BYTES,
            _ => HEADER_BYTES + self.length,
        }
    }
}

/// A DATA frame whose content is still arriving.
#[derive(Clone, Copy, Debug)]
struct IncompleteDataFrame {
    stream: u32,
    content_left: u32,
    padding_left: u32,
    ends: bool,
}

/// A head whose header block continues in further frames.
#[derive(Clone, Copy, Debug)]
struct IncompleteHead {
    stream: u32,
    ends: bool,
    fragments: u32,
}

/// Parses the frames in the bytes of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameReader {
    /// The received part of an incomplete frame.
    incomplete_frame: Vec<u8>,
    /// The header block of a head that arrived in pieces.
    block: Vec<u8>,
    open: Option<IncompleteHead>,
    data: Option<IncompleteDataFrame>,
}

/// A complete frame, in which the block of a head is a range of the payload.
enum CompleteFrame<'a> {
    Other(H2Frame<'a>),
    Block {
        stream: u32,
        ends: bool,
        from: usize,
        to: usize,
    },
    /// A piece of a head, after which more pieces follow.
    More,
}

impl FrameReader {
    pub(super) const fn new() -> FrameReader {
        FrameReader { incomplete_frame: Vec::new(), block: Vec::new(), open: None, data: None }
    }

    /// Returns the header block of a head that arrived in pieces.
    pub(super) fn header_block(&self) -> &[u8] {
        &self.block
    }

    /// Returns the next frame or piece of a frame in `bytes`, and advances `bytes` past its end;
    /// `None`: more bytes are needed. After an error nothing more can be parsed.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<H2Frame<'a>>, ProtocolError> {
        loop {
            if let Some(data) = self.data {
                return Ok(self.next_data_piece(data, bytes));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            if !self.incomplete_frame.is_empty() || bytes.len() < HEADER_BYTES {
                match self.complete_stored_frame(bytes)? {
                    Some(frame) => return Ok(Some(frame)),
                    // Some bytes are not parsed yet: content of a DATA frame, or the frame after a
                    // piece of a head.
                    None if !bytes.is_empty() => continue,
                    None => return Ok(None),
                }
            }
            let header = self.parse_frame_header(bytes)?;
            if bytes.len() < header.required_bytes() {
                // The beginning of an incomplete frame is stored until the next bytes arrive.
                self.incomplete_frame.extend_from_slice(bytes);
                *bytes = &[];
                return Ok(None);
            }
            let (frame, rest) = bytes.split_at(header.required_bytes());
            *bytes = rest;
            let payload = &frame[HEADER_BYTES..];
            if header.kind == DATA {
                return self.begin_data(header, payload, bytes).map(Some);
            }
            match self.parse_complete_frame(header, payload)? {
                CompleteFrame::Other(frame) => return Ok(Some(frame)),
                CompleteFrame::Block { stream, ends, from, to } => {
                    return Ok(Some(H2Frame::Head { stream, block: Some(&payload[from..to]), ends }));
                }
                CompleteFrame::More => {}
            }
        }
    }

    /// Parses the frame header at the start of `bytes`. Returns an error if a frame with this
    /// header is too long, or not permitted at this point of the connection.
    fn parse_frame_header(&self, bytes: &[u8]) -> Result<FrameHeader, ProtocolError> {
        let header = FrameHeader::parse(bytes);
        if header.length > PAYLOAD_BYTES_MAX {
            return Err(ProtocolError::FrameSize);
        }
        // No other frame may come between the pieces of a head (RFC 9113, 6.2).
        if self.open.is_some_and(|open| header.kind != CONTINUATION || header.stream != open.stream) {
            return Err(ProtocolError::FrameOrder);
        }
        Ok(header)
    }

    /// Completes the stored beginning of a frame with bytes from `bytes`. Returns the frame once it
    /// is complete.
    #[cold]
    fn complete_stored_frame<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<H2Frame<'a>>, ProtocolError> {
        loop {
            let wanted = if self.incomplete_frame.len() < HEADER_BYTES {
                HEADER_BYTES
            } else {
                FrameHeader::parse(&self.incomplete_frame).required_bytes()
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted - self.incomplete_frame.len()));
            self.incomplete_frame.extend_from_slice(taken);
            *bytes = rest;
            if self.incomplete_frame.len() < wanted {
                return Ok(None);
            }
            let header = self.parse_frame_header(&self.incomplete_frame)?;
            if self.incomplete_frame.len() < header.required_bytes() {
                continue;
            }
            let held = std::mem::take(&mut self.incomplete_frame);
            let payload = &held[HEADER_BYTES..];
            if header.kind == DATA {
                return self.begin_data(header, payload, bytes).map(Some);
            }
            return Ok(match self.parse_complete_frame(header, payload)? {
                CompleteFrame::Other(frame) => Some(frame),
                CompleteFrame::More => None,
                CompleteFrame::Block { stream, ends, from, to } => {
                    self.block.clear();
                    self.block.extend_from_slice(&payload[from..to]);
                    Some(H2Frame::Head { stream, block: None, ends })
                }
            });
        }
    }

    /// Begins to parse a DATA frame. `start` contains the first byte of the payload (the length of
    /// the padding) if the frame has padding.
    fn begin_data<'a>(
        &mut self,
        header: FrameHeader,
        start: &[u8],
        bytes: &mut &'a [u8],
    ) -> Result<H2Frame<'a>, ProtocolError> {
        if header.stream == 0 {
            return Err(ProtocolError::FrameOrder);
        }
        let padding = match (header.has_flag(PADDED), start) {
            (false, _) => 0,
            (true, [padding]) if usize::from(*padding) < header.length => u32::from(*padding),
            (true, []) => return Err(ProtocolError::FrameSize),
            (true, _) => return Err(ProtocolError::Padding),
        };
        let content_left = header.length as u32 - start.len() as u32 - padding;
        let data = IncompleteDataFrame {
            stream: header.stream,
            content_left,
            padding_left: padding,
            ends: header.has_flag(END_STREAM),
        };
        self.data = Some(data);
        let window_bytes = header.length as u32;
        Ok(match self.next_data_piece(data, bytes) {
            Some(H2Frame::Data { stream, content, is_last, ends, .. }) => {
                H2Frame::Data { stream, content, window_bytes, is_last, ends }
            }
            // No content has arrived yet, but the number of bytes by which the frame reduces the
            // flow-control windows is known.
            _ => H2Frame::Data { stream: header.stream, content: &[], window_bytes, is_last: false, ends: false },
        })
    }

    /// Returns the next piece of the current DATA frame.
    #[inline]
    fn next_data_piece<'a>(&mut self, data: IncompleteDataFrame, bytes: &mut &'a [u8]) -> Option<H2Frame<'a>> {
        let (content, rest) = bytes.split_at(bytes.len().min(data.content_left as usize));
        let padding = rest.len().min(data.padding_left as usize);
        *bytes = &rest[padding..];
        let content_left = data.content_left - content.len() as u32;
        let padding_left = data.padding_left - padding as u32;
        let is_last = content_left == 0 && padding_left == 0;
        self.data = (!is_last).then_some(IncompleteDataFrame { content_left, padding_left, ..data });
        let told = is_last || !content.is_empty();
        told.then_some(H2Frame::Data {
            stream: data.stream,
            content,
            window_bytes: 0,
            is_last,
            ends: is_last && data.ends,
        })
    }

    /// Parses a complete frame of any type but DATA.
    fn parse_complete_frame<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<CompleteFrame<'a>, ProtocolError> {
        let (stream, length) = (header.stream, payload.len());
        let of_stream = stream != 0;
        let sized = |right: bool| if right { Ok(()) } else { Err(ProtocolError::FrameSize) };
        let placed = |right: bool| if right { Ok(()) } else { Err(ProtocolError::FrameOrder) };
        Ok(CompleteFrame::Other(match header.kind {
            HEADERS => {
                placed(of_stream)?;
                let (from, to) = header_block_range(header, payload)?;
                return self.begin_block(header, payload, from, to);
            }
            CONTINUATION => return self.continue_block(header, payload),
            PRIORITY => {
                placed(of_stream)?;
                // Priority frames are obsolete, so they are ignored.
                if length == 5 { H2Frame::Other { stream } } else { H2Frame::WrongPriorityLength { stream } }
            }
            RST_STREAM => {
                placed(of_stream)?;
                sized(length == 4)?;
                H2Frame::Reset { stream, code: parse_u32(payload) }
            }
            SETTINGS => {
                placed(!of_stream)?;
                if header.has_flag(ACK) {
                    sized(length == 0)?;
                    H2Frame::SettingsAck
                } else {
                    sized(length.is_multiple_of(6))?;
                    H2Frame::Settings(parse_settings(payload)?)
                }
            }
            PUSH_PROMISE => {
                placed(of_stream)?;
                H2Frame::Push
            }
            PING => {
                placed(!of_stream)?;
                let data = payload.try_into().map_err(|_| ProtocolError::FrameSize)?;
                if header.has_flag(ACK) { H2Frame::PingAck } else { H2Frame::Ping(data) }
            }
            GOAWAY => {
                placed(!of_stream)?;
                sized(length >= 8)?;
                H2Frame::GoAway { last_stream: parse_u32(payload) & 0x7fff_ffff, code: parse_u32(&payload[4..]) }
            }
            WINDOW_UPDATE => {
                sized(length == 4)?;
                H2Frame::Window { stream, bytes: parse_u32(payload) & 0x7fff_ffff }
            }
            _ => H2Frame::Other { stream },
        }))
    }

    /// Handles the first piece of a head, which usually is the whole head.
    fn begin_block<'a>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        from: usize,
        to: usize,
    ) -> Result<CompleteFrame<'a>, ProtocolError> {
        let (stream, ends) = (header.stream, header.has_flag(END_STREAM));
        if header.has_flag(END_HEADERS) {
            return Ok(CompleteFrame::Block { stream, ends, from, to });
        }
        self.block.clear();
        self.block.extend_from_slice(&payload[from..to]);
        self.open = Some(IncompleteHead { stream, ends, fragments: 1 });
        Ok(CompleteFrame::More)
    }

    #[cold]
    fn continue_block<'a>(&mut self, header: FrameHeader, payload: &[u8]) -> Result<CompleteFrame<'a>, ProtocolError> {
        let Some(open) = &mut self.open else { return Err(ProtocolError::FrameOrder) };
        open.fragments += 1;
        if self.block.len() + payload.len() > BLOCK_BYTES_MAX || open.fragments > FRAGMENTS_MAX {
            return Err(ProtocolError::HeadTooLarge);
        }
        self.block.extend_from_slice(payload);
        if !header.has_flag(END_HEADERS) {
            return Ok(CompleteFrame::More);
        }
        let IncompleteHead { stream, ends, .. } = *open;
        self.open = None;
        Ok(CompleteFrame::Other(H2Frame::Head { stream, block: None, ends }))
    }
}

/// Returns the range of the header block, without padding, in the payload of a HEADERS frame.
fn header_block_range(header: FrameHeader, payload: &[u8]) -> Result<(usize, usize), ProtocolError> {
    let (mut from, mut to) = (0, payload.len());
    if header.has_flag(PADDED) {
        let padding = usize::from(*payload.first().ok_or(ProtocolError::FrameSize)?);
        from = 1;
        to = to.checked_sub(padding).filter(|to| *to >= from).ok_or(ProtocolError::Padding)?;
    }
    if header.has_flag(WITH_PRIORITY) {
        from += 5;
        if from > to {
            return Err(ProtocolError::FrameSize);
        }
    }
    Ok((from, to))
}

fn parse_settings(payload: &[u8]) -> Result<H2Settings, ProtocolError> {
    let mut found = H2Settings::default();
    for pair in payload.chunks_exact(6) {
        let value = parse_u32(&pair[2..]);
        let bad = |bad: bool| if bad { Err(ProtocolError::Setting) } else { Ok(()) };
        match u16::from_be_bytes([pair[0], pair[1]]) {
            1 => found.table_bytes = Some(value),
            2 => {
                bad(value > 1)?;
                found.push = Some(value);
            }
            3 => found.streams_max = Some(value),
            4 => {
                if i64::from(value) > WINDOW_MAX {
                    return Err(ProtocolError::Window);
                }
                found.window = Some(value);
            }
            5 => {
                bad(!(1 << 14..1 << 24).contains(&value))?;
                found.payload_bytes_max = Some(value);
            }
            6 => found.head_bytes_max = Some(value),
            // Unknown settings are ignored (RFC 9113, 6.5.2).
            _ => {}
        }
    }
    Ok(found)
}

/// Parses the first four bytes as a big-endian number.
fn parse_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |four| u32::from_be_bytes(*four))
}

fn write_frame_header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [w, x, y, z] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, w, x, y, z]);
}

/// Appends a head in as many frames as needed. Each frame has stream number 0 until [`set_stream`]
/// sets the number.
pub(super) fn write_head(out: &mut Vec<u8>, block: &[u8], ends: bool) {
    let end_stream = if ends { END_STREAM } else { 0 };
    let (mut kind, mut flags) = (HEADERS, end_stream);
    let mut rest = block;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        rest = after;
        flags |= if rest.is_empty() { END_HEADERS } else { 0 };
        write_frame_header(out, piece.len(), kind, flags, 0);
        out.extend_from_slice(piece);
        if rest.is_empty() {
            return;
        }
        (kind, flags) = (CONTINUATION, 0);
    }
}

/// Begins a head at the end of `out`. The caller then appends the header block to `out`, and calls
/// [`end_head`] with the returned index. A header block that is appended to `out` directly needs no
/// separate buffer.
pub(super) fn begin_head(out: &mut Vec<u8>) -> usize {
    let from = out.len();
    write_frame_header(out, 0, HEADERS, 0, 0);
    from
}

/// Completes a head that [`begin_head`] began at `from`: converts its bytes into frames, all with
/// stream number 0.
pub(super) fn end_head(out: &mut Vec<u8>, from: usize, ends: bool) {
    let length = out.len() - from - HEADER_BYTES;
    if length > PAYLOAD_BYTES_MAX {
        // A block that is longer than a frame is rare, so its buffer is not kept for reuse.
        let block = out.split_off(from + HEADER_BYTES);
        out.truncate(from);
        return write_head(out, &block, ends);
    }
    out[from..from + 3].copy_from_slice(&(length as u32).to_be_bytes()[1..]);
    out[from + 4] = END_HEADERS | if ends { END_STREAM } else { 0 };
}

/// Sets the stream number of all frames in `frames`.
#[inline]
pub(super) fn set_stream(frames: &mut [u8], stream: u32) {
    let mut at = 0;
    while at < frames.len() {
        let length = usize::from(frames[at]) << 16 | usize::from(frames[at + 1]) << 8 | usize::from(frames[at + 2]);
        frames[at + 5..at + 9].copy_from_slice(&stream.to_be_bytes());
        at += HEADER_BYTES + length;
    }
}

pub(super) fn write_data(out: &mut Vec<u8>, stream: u32, content: &[u8], ends: bool) {
    write_frame_header(out, content.len(), DATA, if ends { END_STREAM } else { 0 }, stream);
    out.extend_from_slice(content);
}

pub(super) fn write_reset(out: &mut Vec<u8>, stream: u32, code: u32) {
    write_frame_header(out, 4, RST_STREAM, 0, stream);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Appends a SETTINGS frame with these settings, each as (number, value).
pub(super) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    write_frame_header(out, 6 * settings.len(), SETTINGS, 0, 0);
    for (number, value) in settings {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn write_settings_ack(out: &mut Vec<u8>) {
    write_frame_header(out, 0, SETTINGS, ACK, 0);
}

pub(super) fn write_ping_ack(out: &mut Vec<u8>, data: &[u8; 8]) {
    write_frame_header(out, 8, PING, ACK, 0);
    out.extend_from_slice(data);
}

pub(super) fn write_go_away(out: &mut Vec<u8>, last_stream: u32, code: u32) {
    write_frame_header(out, 8, GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
}

pub(super) fn write_window(out: &mut Vec<u8>, stream: u32, bytes: u32) {
    write_frame_header(out, 4, WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&bytes.to_be_bytes());
}
