//! Decodes the chunked transfer coding ([RFC 9112,
//! 7.1](https://www.rfc-editor.org/rfc/rfc9112#section-7.1)): finds the end of a body and counts
//! its content.
//!
//! Chunk extensions and trailer fields are skipped, up to a limit. The syntax of extensions and
//! trailer fields is not checked, because they are not used. Not here: storing the content.

use super::head::{HEAD_BYTES_MAX, HEAD_LINES_MAX};
use crate::error::ProtocolError;
use memchr::memchr;

/// The maximum length in bytes of the line with a chunk's size, including extensions and the line
/// end.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;

/// A decoder of one chunked body: the position in the body, and the values parsed so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkDecoder {
    /// The chunk's size parsed so far (within the line with the size), or the number of content
    /// bytes left (within the content).
    left: u64,
    /// The length in bytes, so far, of the current size line or of the trailer section.
    bytes: u32,
    /// The number of complete lines of the trailer section.
    lines: u16,
    at: ChunkPart,
}

/// The part of a chunked body to which the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkPart {
    /// The first digit of a chunk's size.
    Size,
    /// Another digit of a chunk's size, or the byte after the digits.
    SizeMore,
    /// White space after the digits of the size, which some servers add.
    Padding,
    /// A chunk extension, which is skipped up to the line feed.
    Extension,
    /// The line feed at the end of the line with a chunk's size.
    SizeLf,
    /// The content of the chunk.
    Data,
    /// The line end after the content of a chunk.
    DataCr,
    DataLf,
    /// The start of a trailer line. A blank line is the end of the body.
    Trailer,
    TrailerMore,
    /// The line feed of the blank line that ends the body.
    LastLf,
}

/// The result of parsing some bytes of a chunked body.
pub(super) struct ChunkProgress {
    pub(super) consumed: usize,
    /// The number of content bytes among the consumed bytes.
    pub(super) content: u64,
    pub(super) done: bool,
}

impl ChunkDecoder {
    pub(super) const fn new() -> Self {
        ChunkDecoder { left: 0, bytes: 0, lines: 0, at: ChunkPart::Size }
    }

    /// Parses the next bytes of the body. If `by_run` is true, parsing stops at the end of the
    /// first contiguous piece of content.
    pub(super) fn decode_bytes(&mut self, bytes: &[u8], by_run: bool) -> Result<ChunkProgress, ProtocolError> {
        let mut content = 0;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let byte = rest[0];
            let mut taken = 1;
            match self.at {
                ChunkPart::Size | ChunkPart::SizeMore | ChunkPart::Padding | ChunkPart::SizeLf => {
                    self.count_line(1)?;
                    self.parse_size_line_byte(byte)?;
                }
                ChunkPart::Extension => {
                    let lf = memchr(b'\n', rest);
                    taken = lf.map_or(rest.len(), |lf| lf + 1);
                    self.count_line(taken)?;
                    if lf.is_some() {
                        self.end_size_line();
                    }
                }
                ChunkPart::Data => {
                    taken = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
                    self.left -= taken as u64;
                    content += taken as u64;
                    if self.left == 0 {
                        self.at = ChunkPart::DataCr;
                    }
                    if by_run {
                        return Ok(ChunkProgress { consumed: at + taken, content, done: false });
                    }
                }
                ChunkPart::DataCr | ChunkPart::DataLf => match (self.at, byte) {
                    (ChunkPart::DataCr, b'\r') => self.at = ChunkPart::DataLf,
                    (_, b'\n') => *self = ChunkDecoder::new(),
                    _ => return Err(ProtocolError::BadChunk),
                },
                ChunkPart::Trailer if byte == b'\r' => {
                    self.count_trailer(1)?;
                    self.at = ChunkPart::LastLf;
                }
                ChunkPart::Trailer | ChunkPart::LastLf if byte == b'\n' => {
                    self.count_trailer(1)?;
                    return Ok(ChunkProgress { consumed: at + 1, content, done: true });
                }
                ChunkPart::LastLf => return Err(ProtocolError::BadChunk),
                ChunkPart::Trailer | ChunkPart::TrailerMore => {
                    let lf = memchr(b'\n', rest);
                    taken = lf.map_or(rest.len(), |lf| lf + 1);
                    self.count_trailer(taken)?;
                    self.at = ChunkPart::TrailerMore;
                    if lf.is_some() {
                        self.lines += 1;
                        self.at = ChunkPart::Trailer;
                    }
                    if self.lines > HEAD_LINES_MAX {
                        return Err(ProtocolError::HeadTooLarge);
                    }
                }
            }
            at += taken;
        }
        Ok(ChunkProgress { consumed: at, content, done: false })
    }

    /// Parses one byte of the line with a chunk's size, up to the start of a chunk extension.
    fn parse_size_line_byte(&mut self, byte: u8) -> Result<(), ProtocolError> {
        match (self.at, byte) {
            (ChunkPart::Size | ChunkPart::SizeMore, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.left >> 60 != 0 {
                    return Err(ProtocolError::BadChunk);
                }
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    _ => (byte | 0x20) - b'a' + 10,
                };
                self.left = self.left << 4 | u64::from(digit);
                self.at = ChunkPart::SizeMore;
            }
            (ChunkPart::SizeMore | ChunkPart::Padding, b' ' | b'\t') => self.at = ChunkPart::Padding,
            (ChunkPart::SizeMore | ChunkPart::Padding, b';') => self.at = ChunkPart::Extension,
            (ChunkPart::SizeMore | ChunkPart::Padding, b'\r') => self.at = ChunkPart::SizeLf,
            (ChunkPart::SizeMore | ChunkPart::Padding | ChunkPart::SizeLf, b'\n') => self.end_size_line(),
            _ => return Err(ProtocolError::BadChunk),
        }
        Ok(())
    }

    /// Handles the end of the line with a chunk's size. If the size is 0, the trailer section
    /// follows the line. For any other size, the chunk's content follows the line.
    fn end_size_line(&mut self) {
        self.bytes = 0;
        self.at = if self.left == 0 { ChunkPart::Trailer } else { ChunkPart::Data };
    }

    fn count_line(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        self.add_bytes_within_limit(bytes, CHUNK_LINE_BYTES_MAX, ProtocolError::BadChunk)
    }

    fn count_trailer(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        self.add_bytes_within_limit(bytes, HEAD_BYTES_MAX, ProtocolError::HeadTooLarge)
    }

    fn add_bytes_within_limit(
        &mut self,
        bytes: usize,
        bytes_max: usize,
        error: ProtocolError,
    ) -> Result<(), ProtocolError> {
        let sum = self.bytes as usize + bytes;
        if sum > bytes_max {
            return Err(error);
        }
        self.bytes = sum as u32;
        Ok(())
    }
}
