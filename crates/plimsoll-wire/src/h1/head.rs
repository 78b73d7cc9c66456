//! Parses the head of a response line by line: the status line, the header fields and the blank
//! line. The result of parsing a head includes the framing of the body: a length, chunks, or the
//! end of the connection.
//!
//! A line is parsed as a whole, once its line feed has arrived. So the result of parsing a head
//! does not depend on how the network splits the bytes. No byte is scanned twice, and the caller
//! must store only the last line if it is unfinished.
//!
//! Not here: storing the unfinished line, counting interim responses, parsing the body.

use super::field::{ValueEnd, content_length, equals_ignoring_case, token_len, value_end};
use super::token::{list_elements, trim};
use crate::error::ProtocolError;
use memchr::memchr;

/// The maximum length in bytes of a response head, including status line and blank line, and of a
/// trailer section. Servers send far shorter heads (most servers limit heads to 8 or 16 KiB).
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of header lines in a head or in a trailer section. Each continuation line of
/// a folded header line also counts as a header line.
pub const HEAD_LINES_MAX: u16 = 256;

/// The maximum number of blank lines that are accepted before a status line. Blank lines are
/// accepted because some servers send a stray CRLF after a body. (RFC 9112, 2.2 demands this
/// tolerance only from servers.)
pub const BLANK_LINES_MAX: u8 = 2;

/// The parsed part of a response head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The declared length of the body; valid if `has_length`.
    length: u64,
    /// The number of bytes in all complete lines of the head that were parsed so far.
    bytes: u32,
    lines: u16,
    status: u16,
    stage: HeadStage,
    coding: Coding,
    blanks: u8,
    has_length: bool,
    is_1_1: bool,
    has_close_option: bool,
    has_keep_alive_option: bool,
}

/// The kinds of lines that may come next in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadStage {
    /// The next line is the status line, or a blank line before it.
    Status,
    /// The next line is the first header field or the blank line that ends the head. A line that
    /// starts with a space would continue the status line, so it is refused.
    First,
    /// The next line is a header field, the end of the head, or the continuation of a header field
    /// whose value is not used.
    Field,
    /// The next line is a header field or the end of the head. A continuation line would change the
    /// value of a header field that was already parsed, so a continuation line is refused.
    FieldRead,
}

/// The kind of the last transfer coding that `Transfer-Encoding` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Absent,
    /// The last coding is chunked, so the chunks mark the end of the body.
    Chunked,
    /// The last coding is not chunked, so the body ends when the connection is closed.
    Other,
}

/// The result of parsing one line.
pub(super) enum HeadLine {
    /// The line feed at the end of the line has not arrived yet.
    Unfinished,
    /// A line of this many bytes was parsed, and the head continues.
    Read(usize),
    /// A blank line of this many bytes ended the head.
    End(usize),
}

/// The values from a complete head that the parser of the response needs.
pub(super) struct FinalHead {
    pub(super) status: u16,
    /// Whether the response head permits further exchanges on the connection. A body that ends when
    /// the connection is closed prevents further exchanges anyway.
    pub(super) keep_alive: bool,
    pub(super) body: BodyFraming,
}

/// The way in which the body is delimited ([RFC 9112,
/// 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)).
pub(super) enum BodyFraming {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Head {
    pub(super) const fn new() -> Self {
        Head {
            length: 0,
            bytes: 0,
            lines: 0,
            status: 0,
            stage: HeadStage::Status,
            coding: Coding::Absent,
            blanks: 0,
            has_length: false,
            is_1_1: false,
            has_close_option: false,
            has_keep_alive_option: false,
        }
    }

    /// Returns the number of bytes by which the head may still grow.
    pub(super) fn remaining_bytes(&self) -> usize {
        HEAD_BYTES_MAX - self.bytes as usize
    }

    /// Parses the line at the start of `bytes`, if it is complete; later bytes are ignored.
    #[inline(always)]
    pub(super) fn parse_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        match self.stage {
            HeadStage::Status => self.parse_status_line(bytes),
            _ => self.parse_header_line(bytes),
        }
    }

    /// Checks the unfinished line `bytes`, and refuses bytes that cannot become an HTTP response.
    /// Without `check_unfinished`, plimsoll would wait for a line feed that a server of another
    /// protocol never sends.
    pub(super) fn check_unfinished(&self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.stage == HeadStage::Status && !may_become_status_line(bytes) {
            return Err(ProtocolError::BadStatusLine);
        }
        Ok(())
    }

    #[inline]
    fn parse_status_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let Some(end) = memchr(b'\n', bytes) else {
            return Ok(HeadLine::Unfinished);
        };
        let line = match &bytes[..end] {
            [line @ .., b'\r'] => line,
            line => line,
        };
        if end + 1 > self.remaining_bytes() {
            // A whole line is checked in the same order as a line in pieces, so that the error does
            // not depend on the split.
            self.check_unfinished(bytes)?;
            return Err(ProtocolError::HeadTooLarge);
        }
        if line.is_empty() && self.blanks < BLANK_LINES_MAX {
            self.blanks += 1;
            return Ok(HeadLine::Read(end + 1));
        }
        let [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            minor @ (b'0' | b'1'),
            b' ',
            a @ b'1'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            reason @ ..,
        ] = line
        else {
            return Err(ProtocolError::BadStatusLine);
        };
        // Some servers omit the space before an empty reason phrase.
        if !matches!(reason, [] | [b' ', ..]) || reason.iter().any(|b| matches!(b, 0 | b'\r')) {
            return Err(ProtocolError::BadStatusLine);
        }
        let digit = |b: &u8| u16::from(b - b'0');
        self.status = digit(a) * 100 + digit(b) * 10 + digit(c);
        if self.status == 101 {
            return Err(ProtocolError::UnexpectedUpgrade);
        }
        self.is_1_1 = *minor == b'1';
        self.bytes += end as u32 + 1;
        self.stage = HeadStage::First;
        Ok(HeadLine::Read(end + 1))
    }

    // The function is always inlined, because a call would cost a tenth of the time for parsing a
    // line.
    #[inline(always)]
    fn parse_header_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let name_len = token_len(bytes);
        if name_len == bytes.len() {
            return Ok(HeadLine::Unfinished);
        }
        let value_start = match (name_len, bytes[name_len]) {
            (1.., b':') => name_len + 1,
            (0, b'\r' | b'\n') => return self.parse_blank_line(bytes),
            (0, b' ' | b'\t') if self.stage == HeadStage::Field => 1,
            _ => return self.reject_invalid_line(bytes),
        };
        let (value_end, end) = match value_end(bytes, value_start) {
            ValueEnd::At(value_end, end) => (value_end, end),
            ValueEnd::NotYet => return Ok(HeadLine::Unfinished),
            ValueEnd::InvalidByte => return self.reject_invalid_line(bytes),
        };
        if end > self.remaining_bytes() || self.lines == HEAD_LINES_MAX {
            return Err(ProtocolError::HeadTooLarge);
        }
        self.bytes += end as u32;
        self.lines += 1;

        self.stage = HeadStage::Field;
        // The names of the used header fields have 10, 14 and 17 bytes. The length is checked
        // first, because this check excludes nearly every other header field.
        if matches!(name_len, 10 | 14 | 17) {
            self.read_field(&bytes[..name_len], &bytes[value_start..value_end])?;
        }
        Ok(HeadLine::Read(end))
    }

    /// Parses the value of a header field that is used: `Content-Length`, `Transfer-Encoding` or
    /// `Connection`. Any other header field is ignored.
    #[inline]
    fn read_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
        if equals_ignoring_case(name, b"content-length") {
            self.read_content_length(trim(value))?;
        } else if equals_ignoring_case(name, b"transfer-encoding") {
            self.read_transfer_encoding(trim(value));
        } else if equals_ignoring_case(name, b"connection") {
            self.read_connection(trim(value));
        } else {
            return Ok(());
        }
        self.stage = HeadStage::FieldRead;
        Ok(())
    }

    fn read_content_length(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        let length = content_length(value).ok_or(ProtocolError::BadContentLength)?;
        if self.has_length && length != self.length {
            return Err(ProtocolError::BadContentLength);
        }
        self.has_length = true;
        self.length = length;
        Ok(())
    }

    fn read_transfer_encoding(&mut self, value: &[u8]) {
        match list_elements(value).filter(|coding| !coding.is_empty()).last() {
            Some(last) if last.eq_ignore_ascii_case(b"chunked") => self.coding = Coding::Chunked,
            // An empty `Transfer-Encoding` field does not change the coding that an earlier field
            // named.
            None if self.coding == Coding::Chunked => {}
            _ => self.coding = Coding::Other,
        }
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in list_elements(value) {
            self.has_close_option |= option.eq_ignore_ascii_case(b"close");
            self.has_keep_alive_option |= equals_ignoring_case(option, b"keep-alive");
        }
    }

    fn parse_blank_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let end = match bytes {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return self.reject_invalid_line(bytes),
        };
        if end > self.remaining_bytes() {
            return Err(ProtocolError::HeadTooLarge);
        }
        Ok(HeadLine::End(end))
    }

    /// Refuses the line at the start of `bytes`. The line is invalid, or it ends with a CR whose
    /// line feed has not arrived yet. The error is returned only when the end of the line has
    /// arrived, so that any split of the bytes gives the same result.
    #[cold]
    fn reject_invalid_line(&self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        match memchr(b'\n', bytes) {
            None => Ok(HeadLine::Unfinished),
            Some(end) if end + 1 > self.remaining_bytes() => Err(ProtocolError::HeadTooLarge),
            Some(_) => Err(ProtocolError::BadHeader),
        }
    }

    /// Returns the values from the complete head; `None` for an interim response (1xx), after which
    /// another head follows.
    pub(super) fn final_head(&self, head_request: bool) -> Option<FinalHead> {
        if self.status < 200 {
            return None;
        }
        let has_coding = self.coding != Coding::Absent;
        // A response with `Transfer-Encoding` and `Content-Length`, or with `Transfer-Encoding` in
        // HTTP/1.0, may be smuggled or garbled. In such a response, the transfer coding decides
        // where the body ends, and the connection is not used again (RFC 9112, 6.1, 6.3).
        let suspicious = has_coding && (self.has_length || !self.is_1_1);
        let body = if head_request || matches!(self.status, 204 | 304) {
            BodyFraming::Length(0)
        } else {
            match self.coding {
                Coding::Chunked => BodyFraming::Chunked,
                Coding::Absent if self.has_length => BodyFraming::Length(self.length),
                Coding::Absent | Coding::Other => BodyFraming::UntilClose,
            }
        };
        Some(FinalHead {
            status: self.status,
            keep_alive: !self.has_close_option && (self.is_1_1 || self.has_keep_alive_option) && !suspicious,
            body,
        })
    }
}

/// Returns whether `bytes` may be the beginning of a valid status line. If the function returns
/// false, the line is certainly invalid. If the function returns true, the line may still be
/// invalid.
fn may_become_status_line(bytes: &[u8]) -> bool {
    if let [b'\r', rest @ ..] = bytes {
        return matches!(rest, [] | [b'\n', ..]);
    }
    let fits = |(at, &b): (usize, &u8)| match at {
        0..=6 => b == b"HTTP/1."[at],
        7 => matches!(b, b'0' | b'1'),
        8 => b == b' ',
        9 => matches!(b, b'1'..=b'9'),
        10 | 11 => b.is_ascii_digit(),
        _ => matches!(b, b' ' | b'\r' | b'\n'),
    };
    bytes.iter().take(13).enumerate().all(fits)
}
