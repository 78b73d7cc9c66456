//! A reply out of bytes: its status, its end, and whether the connection lives on.
//!
//! One [`ResponseParser`] belongs to one connection and is used for each reply on it. It is split-invariant: however
//! the bytes are cut into pieces, the reply or the error is the same. In the common case (the head comes in
//! one read) nothing is allocated and each byte of the head is looked at once.
//!
//! Where the rules leave a choice it is as lenient as servers make necessary, but never guesses where a body ends:
//!
//! - lines may end with a bare LF; up to [`BLANK_LINES_MAX`](super::BLANK_LINES_MAX) blank lines may come first;
//! - a folded header line (obs-fold) is accepted, except after the status line or after `Content-Length`,
//!   `Transfer-Encoding` and `Connection`, whose meaning it would change;
//! - control characters in header values are accepted, except NUL and a CR without its LF;
//! - a header name must be a token that touches its colon.
//!
//! Not here: what the bytes after a reply are (without pipelining, a protocol error of the server), retries,
//! time-outs, the content of bodies.

use super::chunked::Chunked;
use super::head::{Body, Head, Line};
use memchr::memchr;
use thiserror::Error;

/// How many interim replies (1xx) may precede a reply.
pub const INTERIM_REPLIES_MAX: u8 = 64;

/// An unfinished line longer than this is not worth keeping its buffer for.
const CARRY_BYTES_KEPT: usize = 1024;

/// What feeding bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// How many of the bytes belong to the reply: all of them while there is no reply yet.
    pub consumed: usize,
    /// The reply, if it is complete.
    pub reply: Option<Reply>,
}

/// What a load generator wants to know of a complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code, 200 to 599.
    pub status: u16,
    /// Whether the server lets the connection be used again.
    pub keep_alive: bool,
    /// Bytes of content, without chunk framing.
    pub body_bytes: u64,
}

/// What the server sent is not HTTP/1.x, or not what was asked for. Always the fault of the server (or of something
/// in between), and the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// No `HTTP/1.0` or `HTTP/1.1` status line with a status of 100 to 599
    /// ([RFC 9112, 4](https://www.rfc-editor.org/rfc/rfc9112#section-4)).
    #[error("the answer does not start with an HTTP/1.0 or HTTP/1.1 status line")]
    BadStatusLine,
    /// A header line without a valid name, with a NUL or a lone CR, or folded where that would change the framing
    /// ([RFC 9112, 5](https://www.rfc-editor.org/rfc/rfc9112#section-5)).
    #[error("a header line of the answer is malformed")]
    BadHeader,
    /// Head or trailers beyond [`HEAD_BYTES_MAX`](super::HEAD_BYTES_MAX) or
    /// [`HEAD_LINES_MAX`](super::HEAD_LINES_MAX).
    #[error("the head or the trailers of the answer are larger than 64 KiB or 256 lines")]
    HeadTooLarge,
    /// A `Content-Length` that is no number, is too large or contradicts another
    /// ([RFC 9112, 6.3](https://www.rfc-editor.org/rfc/rfc9112#section-6.3)).
    #[error("the Content-Length of the answer is not a number or contradicts itself")]
    BadContentLength,
    /// Broken chunk framing, or a size line beyond [`CHUNK_LINE_BYTES_MAX`](super::CHUNK_LINE_BYTES_MAX).
    #[error("the chunked framing of the answer is broken")]
    BadChunk,
    /// `101 Switching Protocols`, which nobody asked for.
    #[error("the server switched protocols without being asked")]
    UnexpectedUpgrade,
    /// More than [`INTERIM_REPLIES_MAX`] interim replies.
    #[error("the server sent more than 64 interim (1xx) answers before one reply")]
    TooManyInterim,
    /// Bytes after the end of a reply, before the next request.
    #[error("the server sent bytes that no request asked for")]
    Surplus,
}

/// The connection was closed, and that did not end a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EndError {
    /// Before the first byte of a reply: what happens when a kept-alive connection is closed as idle.
    #[error("the server closed the connection without an answer")]
    NothingReceived,
    /// In the midst of a reply.
    #[error("the server closed the connection in the middle of an answer")]
    Truncated,
}

/// Finds the replies in the bytes of one connection.
#[derive(Clone, Debug)]
pub struct ResponseParser {
    phase: Phase,
    body_bytes: u64,
    /// The unfinished line of the head, if a read ended within one. Allocated only then.
    carry: Vec<u8>,
    /// Known once the head is read.
    status: u16,
    keep_alive: bool,
    head_request: bool,
    started: bool,
    interims: u8,
}

// There is one for each connection, and there may be very many connections: it is to fit a cache line.
const _: () = assert!(size_of::<ResponseParser>() <= 64);

#[derive(Clone, Copy, Debug)]
enum Phase {
    Head(Head),
    /// A body of known length, of which this much is left (never 0).
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// The reply was handed out.
    Done,
    Failed(ProtocolError),
}

impl Default for ResponseParser {
    fn default() -> Self {
        ResponseParser::new()
    }
}

impl ResponseParser {
    /// A parser that is ready for the reply to a request other than HEAD.
    pub const fn new() -> Self {
        ResponseParser {
            phase: Phase::Head(Head::new()),
            body_bytes: 0,
            carry: Vec::new(),
            status: 0,
            keep_alive: false,
            head_request: false,
            started: false,
            interims: 0,
        }
    }

    /// Make ready for the next reply on this connection, or for the first on a new one; forgets what was there.
    /// `head_request`: the request was a HEAD, whose reply has no body whatever it says.
    #[inline]
    pub fn begin(&mut self, head_request: bool) {
        self.phase = Phase::Head(Head::new());
        self.body_bytes = 0;
        self.carry.clear();
        self.status = 0;
        self.keep_alive = false;
        self.head_request = head_request;
        self.started = false;
        self.interims = 0;
    }

    /// Whether any byte of the current reply (an interim one included) was seen.
    pub fn started(&self) -> bool {
        self.started
    }

    /// The status of the reply under way, once its head is read; `None` before that.
    pub fn status(&self) -> Option<u16> {
        (self.status != 0).then_some(self.status)
    }

    /// Feed received bytes. Takes as many as belong to the current reply: all of them, or up to the reply's end.
    ///
    /// After an error the connection is of no use; feeding it again repeats the error until [`begin`](Self::begin).
    /// Bytes that come after a reply and before `begin` are [`ProtocolError::Surplus`].
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed, ProtocolError> {
        self.started |= !bytes.is_empty();
        let result = self.advance(bytes);
        if let Err(error) = result {
            self.phase = Phase::Failed(error);
        }
        result
    }

    /// The peer closed its side. That ends a body until close; everything else it cuts off.
    pub fn finish(&mut self) -> Result<Reply, EndError> {
        match self.phase {
            Phase::UntilClose => Ok(self.done()),
            Phase::Head(_) if !self.started => Err(EndError::NothingReceived),
            Phase::Done => Err(EndError::NothingReceived),
            Phase::Head(_) | Phase::Length(_) | Phase::Chunked(_) | Phase::Failed(_) => Err(EndError::Truncated),
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<Fed, ProtocolError> {
        let mut at = 0;
        if matches!(self.phase, Phase::Head(_)) {
            at = self.feed_head(bytes)?;
        }
        let rest = &bytes[at..];
        match &mut self.phase {
            Phase::Head(_) => {}
            Phase::Length(left) => {
                let taken = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                *left -= taken as u64;
                self.body_bytes += taken as u64;
                at += taken;
                if *left == 0 {
                    return Ok(Fed { consumed: at, reply: Some(self.done()) });
                }
            }
            Phase::Chunked(chunked) => {
                let progress = chunked.feed(rest)?;
                self.body_bytes += progress.content;
                at += progress.consumed;
                if progress.done {
                    return Ok(Fed { consumed: at, reply: Some(self.done()) });
                }
            }
            Phase::UntilClose => {
                self.body_bytes += rest.len() as u64;
                at = bytes.len();
            }
            // The head ended this reply only now; or else the bytes come after one that was handed out.
            Phase::Done if at > 0 => {
                return Ok(Fed { consumed: at, reply: Some(self.reply()) });
            }
            Phase::Done if bytes.is_empty() => {}
            Phase::Done => return Err(ProtocolError::Surplus),
            Phase::Failed(error) => return Err(*error),
        }
        Ok(Fed { consumed: at, reply: None })
    }

    /// Read lines of the head until it ends or the bytes do.
    #[inline]
    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < bytes.len()
            && let Phase::Head(head) = &mut self.phase
        {
            let rest = &bytes[at..];
            let line = if self.carry.is_empty() { head.line(rest)? } else { Line::Unfinished };
            match line {
                Line::Read(taken) => at += taken,
                Line::End(taken) => {
                    at += taken;
                    self.end_head()?;
                }
                Line::Unfinished => at += self.carry_line(rest)?,
            }
        }
        Ok(at)
    }

    /// Keep what there is of an unfinished line; read it if this finishes it.
    #[cold]
    fn carry_line(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let Phase::Head(head) = &mut self.phase else {
            return Ok(0);
        };
        let lf = memchr(b'\n', bytes);
        let taken = lf.map_or(bytes.len(), |lf| lf + 1);
        let room = head.room() - self.carry.len();
        self.carry.extend_from_slice(&bytes[..taken.min(room)]);
        if lf.is_none() || taken > room {
            head.check_unfinished(&self.carry)?;
        }
        if taken > room {
            return Err(ProtocolError::HeadTooLarge);
        }
        if lf.is_some() {
            let ended = matches!(head.line(&self.carry)?, Line::End(_));
            self.carry.clear();
            self.carry.shrink_to(CARRY_BYTES_KEPT);
            if ended {
                self.end_head()?;
            }
        }
        Ok(taken)
    }

    /// The head is complete: on to the body, to the end of the reply, or to the next head after an interim one.
    #[inline]
    fn end_head(&mut self) -> Result<(), ProtocolError> {
        let Phase::Head(head) = &self.phase else {
            return Ok(());
        };
        let Some(verdict) = head.verdict(self.head_request) else {
            self.interims += 1;
            if self.interims > INTERIM_REPLIES_MAX {
                return Err(ProtocolError::TooManyInterim);
            }
            self.phase = Phase::Head(Head::new());
            return Ok(());
        };
        self.status = verdict.status;
        self.keep_alive = verdict.keep_alive;
        self.phase = match verdict.body {
            Body::Length(0) => Phase::Done,
            Body::Length(length) => Phase::Length(length),
            Body::Chunked => Phase::Chunked(Chunked::new()),
            Body::UntilClose => {
                self.keep_alive = false;
                Phase::UntilClose
            }
        };
        Ok(())
    }

    fn done(&mut self) -> Reply {
        self.phase = Phase::Done;
        self.reply()
    }

    fn reply(&self) -> Reply {
        Reply { status: self.status, keep_alive: self.keep_alive, body_bytes: self.body_bytes }
    }
}
