//! The head of a response, line by line: status line, header fields, blank line, and the kind of
//! body.
//!
//! A line is parsed only when its line feed has arrived, by one function that sees the whole line.
//! So the splits of the network cannot change the result. No byte is scanned twice, and only an
//! unfinished line must be stored (by the caller).
//!
//! Not here: storing that unfinished line, counting interim responses, the body itself.

use super::field::{ValueEnd, content_length, is_name, token_len, value_end};
use super::token::{list, trim};
use crate::error::ProtocolError;
use memchr::memchr;

/// Longest head of a response in bytes, including status line and blank line; also the limit of a
/// trailer section. It is far above what servers send (most limit themselves to 8 or 16 KiB).
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most header lines of a head (a folded line counts as one more); also the limit of a trailer
/// section.
pub const HEAD_LINES_MAX: u16 = 256;

/// Most blank lines before a status line. RFC 9112, 2.2 demands this tolerance of servers; clients
/// need it, because some servers send a stray CRLF after a body.
pub const BLANK_LINES_MAX: u8 = 2;

/// The parsed part of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The declared length of the body; valid if `has_length`.
    length: u64,
    /// Number of bytes of the complete lines so far.
    bytes: u32,
    lines: u16,
    status: u16,
    stage: HeadStage,
    coding: Coding,
    blanks: u8,
    has_length: bool,
    is_1_1: bool,
    close: bool,
    keep_alive: bool,
}

/// What the next line of the head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadStage {
    /// The status line, or a blank line before it.
    Status,
    /// The first field, or the end. A line that starts with a space would continue the status line,
    /// so it is refused.
    First,
    /// A field, the end, or a continuation of a field whose value is not used.
    Field,
    /// A field or the end. A continuation would change the value of a field that was already
    /// parsed, so it is refused.
    FieldRead,
}

/// The kind of transfer coding, from `Transfer-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Absent,
    /// The last coding is chunked, so the body marks its own end.
    Chunked,
    /// The last coding is another one, so the body ends with the connection.
    Other,
}

/// The result of parsing one line.
pub(super) enum HeadLine {
    /// The line feed has not arrived yet.
    Unfinished,
    /// A line of this length was parsed; the head continues.
    Read(usize),
    /// A blank line of this many bytes ended the head.
    End(usize),
}

/// The facts of a complete head.
pub(super) struct HeadFacts {
    pub(super) status: u16,
    /// Whether the head permits further exchanges. A body until close ends the connection anyway.
    pub(super) keep_alive: bool,
    pub(super) body: Body,
}

/// How the body is delimited ([RFC 9112, 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)).
pub(super) enum Body {
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
            close: false,
            keep_alive: false,
        }
    }

    /// Number of bytes that the head may still have.
    pub(super) fn room(&self) -> usize {
        HEAD_BYTES_MAX - self.bytes as usize
    }

    /// Parses the line at the start of `bytes`, if it is complete; later bytes are ignored.
    #[inline(always)]
    pub(super) fn line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        match self.stage {
            HeadStage::Status => self.status_line(bytes),
            _ => self.header_line(bytes),
        }
    }

    /// Checks the unfinished line `bytes`. A response that cannot become HTTP is refused at once.
    /// Otherwise a server of another protocol, which greets without a line feed, would make both
    /// sides wait.
    pub(super) fn check_unfinished(&self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.stage == HeadStage::Status && !may_become_status_line(bytes) {
            return Err(ProtocolError::BadStatusLine);
        }
        Ok(())
    }

    #[inline]
    fn status_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let Some(end) = memchr(b'\n', bytes) else {
            return Ok(HeadLine::Unfinished);
        };
        let line = match &bytes[..end] {
            [line @ .., b'\r'] => line,
            line => line,
        };
        if end + 1 > self.room() {
            // The checks have the same order as for a line that arrives in pieces.
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
        // Some servers leave out the space before an empty reason.
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

    // Always inlined, because the call would be a tenth of the cost of a line.
    #[inline(always)]
    fn header_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let name_len = token_len(bytes);
        if name_len == bytes.len() {
            return Ok(HeadLine::Unfinished);
        }
        let value_start = match (name_len, bytes[name_len]) {
            (1.., b':') => name_len + 1,
            (0, b'\r' | b'\n') => return self.blank_line(bytes),
            (0, b' ' | b'\t') if self.stage == HeadStage::Field => 1,
            _ => return self.refuse(bytes),
        };
        let (value_end, end) = match value_end(bytes, value_start) {
            ValueEnd::At(value_end, end) => (value_end, end),
            ValueEnd::NotYet => return Ok(HeadLine::Unfinished),
            ValueEnd::Bad => return self.refuse(bytes),
        };
        if end > self.room() || self.lines == HEAD_LINES_MAX {
            return Err(ProtocolError::HeadTooLarge);
        }
        self.bytes += end as u32;
        self.lines += 1;

        self.stage = HeadStage::Field;
        // Check the length first: it excludes nearly every other field.
        if matches!(name_len, 10 | 14 | 17) {
            self.read_field(&bytes[..name_len], &bytes[value_start..value_end])?;
        }
        Ok(HeadLine::Read(end))
    }

    /// Reads a field if it is one of the three that are used.
    #[inline]
    fn read_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
        if is_name(name, b"content-length") {
            self.read_content_length(trim(value))?;
        } else if is_name(name, b"transfer-encoding") {
            self.read_transfer_encoding(trim(value));
        } else if is_name(name, b"connection") {
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
        match list(value).filter(|coding| !coding.is_empty()).last() {
            Some(last) if last.eq_ignore_ascii_case(b"chunked") => self.coding = Coding::Chunked,
            // An empty list of codings adds nothing.
            None if self.coding == Coding::Chunked => {}
            _ => self.coding = Coding::Other,
        }
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= is_name(option, b"keep-alive");
        }
    }

    fn blank_line(&mut self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        let end = match bytes {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return self.refuse(bytes),
        };
        if end > self.room() {
            return Err(ProtocolError::HeadTooLarge);
        }
        Ok(HeadLine::End(end))
    }

    /// Refuses the line at the start of `bytes`, which is invalid or ends with a CR. It is an error
    /// only if the end of the line has arrived, so that any split gives the same result.
    #[cold]
    fn refuse(&self, bytes: &[u8]) -> Result<HeadLine, ProtocolError> {
        match memchr(b'\n', bytes) {
            None => Ok(HeadLine::Unfinished),
            Some(end) if end + 1 > self.room() => Err(ProtocolError::HeadTooLarge),
            Some(_) => Err(ProtocolError::BadHeader),
        }
    }

    /// The facts of the complete head; `None` for an interim response (1xx), which another head
    /// follows.
    pub(super) fn meaning(&self, head_request: bool) -> Option<HeadFacts> {
        if self.status < 200 {
            return None;
        }
        let has_coding = self.coding != Coding::Absent;
        // A response with `Transfer-Encoding` and `Content-Length`, or with `Transfer-Encoding` in
        // HTTP/1.0, may be smuggled or garbled. It is read by its coding, and the connection is not
        // used again (RFC 9112, 6.1, 6.3).
        let suspicious = has_coding && (self.has_length || !self.is_1_1);
        let body = if head_request || matches!(self.status, 204 | 304) {
            Body::Length(0)
        } else {
            match self.coding {
                Coding::Chunked => Body::Chunked,
                Coding::Absent if self.has_length => Body::Length(self.length),
                Coding::Absent | Coding::Other => Body::UntilClose,
            }
        };
        Some(HeadFacts {
            status: self.status,
            keep_alive: !self.close && (self.is_1_1 || self.keep_alive) && !suspicious,
            body,
        })
    }
}

/// Whether `bytes` can be the beginning of a valid status line. It may return true too often, but
/// false only if they cannot.
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
