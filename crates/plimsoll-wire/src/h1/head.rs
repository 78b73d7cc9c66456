//! The head of a response, line by line: status line, header fields, blank line, and the kind of
//! body.
//!
//! A line is parsed only when its line feed has arrived, by one function that sees the whole line,
//! in one piece or in forty. So the splits of the network cannot change the result, nothing is
//! scanned twice, and only an unfinished line must be stored (by the caller).
//!
//! Not here: storing that unfinished line, counting interim responses, the body itself.

use super::field::{ValueEnd, content_length, is_name, token_len, value_end};
use super::token::{list, trim};
use crate::error::ProtocolError;
use memchr::memchr;

/// The most bytes the head of a reply may have, status line and blank line included; also the bound
/// of a trailer section. Far above what servers send (most limit themselves to 8 or 16 KiB).
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The most header lines a head may have (a folded line counts as one more); also the bound of a
/// trailer section.
pub const HEAD_LINES_MAX: u16 = 256;

/// Most blank lines before a status line. RFC 9112, 2.2 demands this tolerance of servers; clients
/// need it, because some servers send a stray CRLF after a body.
pub const BLANK_LINES_MAX: u8 = 2;

/// The head parsed so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Meaningful if `has_length`.
    length: u64,
    /// Bytes of the lines finished so far.
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

/// What the next line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadStage {
    /// The status line, or a blank line before it.
    Status,
    /// The first field, or the end. A line that starts with a space would continue the status line:
    /// refused.
    First,
    /// A field, the end, or a continuation of a field that was not read.
    Field,
    /// A continuation of a field that was already parsed. It would change the value, so it is
    /// refused.
    FieldRead,
}

/// The value of `Transfer-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Absent,
    /// The last coding is chunked: the body tells its own end.
    Chunked,
    /// It is not: the body ends with the connection.
    Other,
}

/// What one line did.
pub(super) enum HeadLine {
    /// There is no line feed yet.
    Unfinished,
    /// A line of this many bytes was read; the head goes on.
    Read(usize),
    /// A blank line of this many bytes ended the head.
    End(usize),
}

/// The facts of a complete head.
pub(super) struct HeadFacts {
    pub(super) status: u16,
    /// Keep-alive by the head; a body until close ends it all the same.
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

    /// How many bytes more the head may have.
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

    /// Judge the unfinished line `bytes`: an answer that cannot become HTTP is refused at once, not
    /// when it ends, because a server of another protocol may greet without a line feed and then
    /// wait for us.
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
            // The same order of judgements as when the line comes in pieces.
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

    // Always, because the call is a tenth of what a line costs.
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
        // Lengths first: they alone rule out nearly every field.
        if matches!(name_len, 10 | 14 | 17) {
            self.read_field(&bytes[..name_len], &bytes[value_start..value_end])?;
        }
        Ok(HeadLine::Read(end))
    }

    /// Read a field if it is one of the three that matter.
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
            // A list of nothing adds nothing.
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

    /// The line at the start of `bytes` is bad, or ends with a CR whose LF is still to come: an
    /// error only if its end is there, so that the same bytes in pieces come to the same end.
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
        // "Transfer-Encoding with Content-Length" and "Transfer-Encoding in HTTP/1.0" are what
        // smuggled or garbled replies look like: read this one by its coding, and trust the
        // connection no further (RFC 9112, 6.1, 6.3).
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

/// Whether more bytes can make an acceptable line of `bytes`. May say yes too often, never no.
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
