//! A reply out of bytes: its status, its end, and whether the connection lives on.
//!
//! One [`ResponseParser`] belongs to one connection and is used for each reply on it. It is
//! split-invariant: however the bytes are cut into pieces, the reply or the error is the same. In
//! the common case (the head comes in one read) nothing is allocated and each byte of the head is
//! looked at once.
//!
//! Where the rules leave a choice it is as lenient as servers make necessary, but never guesses
//! where a body ends:
//!
//! - lines may end with a bare LF; up to [`BLANK_LINES_MAX`](super::BLANK_LINES_MAX) blank lines
//!   may come first;
//! - a folded header line (obs-fold) is accepted, except after the status line or after
//!   `Content-Length`, `Transfer-Encoding` and `Connection`, whose meaning it would change;
//! - control characters in header values are accepted, except NUL and a CR without its LF;
//! - a header name must be a token that touches its colon.
//!
//! Not here: what the bytes after a reply are (without pipelining, a protocol error of the server),
//! retries, time-outs, the content of bodies.

use super::chunked::ChunkDecoder;
use super::head::{Body, Head, HeadLine};
use crate::error::{EndError, ProtocolError};
use memchr::memchr;

/// How many interim replies (1xx) may precede a reply.
pub const INTERIM_REPLIES_MAX: u8 = 64;

/// An unfinished line longer than this is not worth keeping its buffer for.
const LINE_BYTES_KEPT: usize = 1024;

/// What a request lets one expect of its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The request was a HEAD, whose reply has no body whatever it says.
    pub head_request: bool,
    /// The content is asked for: see [`FeedResult::content`].
    pub content: bool,
    /// The request is a call of gRPC's: messages are counted in the content of its answer.
    pub call: CallState,
}

/// Whether a request is a call of gRPC's, and what is known of its messages: a set, in one byte
/// since there is one of it for each connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallState(u8);

impl CallState {
    /// It is none.
    pub const NO: CallState = CallState(0);
    /// It is one.
    pub const CALL: CallState = CallState(1);
    /// Over HTTP/2, each message waits for a part of the response; otherwise all are sent at once.
    pub const IN_TURN: CallState = CallState(1 | 1 << 1);
    /// Its answer has one message, no more and no less.
    pub const ONE_MESSAGE: CallState = CallState(1 | 1 << 2);
    /// Messages of its answer may be compressed in whatever way.
    pub const ANY_ENCODING: CallState = CallState(1 | 1 << 3);

    /// Both.
    pub const fn and(self, other: CallState) -> CallState {
        CallState(self.0 | other.0)
    }

    /// Whether it is a call at all.
    #[inline]
    pub const fn is_call(self) -> bool {
        self.0 != 0
    }

    /// Whether all of this is in it.
    #[inline]
    pub const fn has(self, other: CallState) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What feeding bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedResult {
    /// Number of bytes that belong to the response: all while it is incomplete. If content is
    /// wanted, fewer when it ends before a chunk's framing: the rest must be passed again.
    pub consumed: usize,
    /// How many of the consumed bytes, the last of them, are content. Of a chunked body 0 unless
    /// content is asked for.
    pub content: usize,
    /// The reply, if it is complete.
    pub reply: Option<Reply>,
}

/// What a load generator wants to know of a complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code, 200 to 999: above 599 a failure like 5xx (RFC 9110, 15).
    pub status: u16,
    /// Whether the server lets the connection be used again.
    pub keep_alive: bool,
    /// Bytes of content, without chunk framing.
    pub body_bytes: u64,
}

/// Finds the replies in the bytes of one connection.
#[derive(Clone, Debug)]
pub struct ResponseParser {
    phase: ReplyPhase,
    body_bytes: u64,
    /// The unfinished line of the head, if a read ended within one. Allocated only then.
    line: Vec<u8>,
    /// Known once the head is read.
    status: u16,
    keep_alive: bool,
    expect: Expect,
    started: bool,
    interims: u8,
}

// There is one for each connection, and there may be very many connections: it is to fit a cache
// line.
const _: () = assert!(size_of::<ResponseParser>() <= 64);

#[derive(Clone, Copy, Debug)]
enum ReplyPhase {
    Head(Head),
    /// A body of known length, of which this much is left (never 0).
    Length(u64),
    Chunked(ChunkDecoder),
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
            phase: ReplyPhase::Head(Head::new()),
            body_bytes: 0,
            line: Vec::new(),
            status: 0,
            keep_alive: false,
            expect: Expect { head_request: false, content: false, call: CallState::NO },
            started: false,
            interims: 0,
        }
    }

    /// The expectation of the current response.
    pub fn expect(&self) -> Expect {
        self.expect
    }

    /// Make ready for the next reply on this connection, or for the first on a new one; forgets
    /// what was there.
    #[inline]
    pub fn begin(&mut self, expect: Expect) {
        self.phase = ReplyPhase::Head(Head::new());
        self.body_bytes = 0;
        self.line.clear();
        self.status = 0;
        self.keep_alive = false;
        self.expect = expect;
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

    /// Feed received bytes. Takes as many as belong to the current reply: all of them, or up to the
    /// reply's end.
    ///
    /// After an error the connection is of no use; feeding it again repeats the error until
    /// [`begin`](Self::begin). Bytes that come after a reply and before `begin` are
    /// [`ProtocolError::Surplus`].
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        self.started |= !bytes.is_empty();
        let result = self.advance(bytes);
        if let Err(error) = result {
            self.phase = ReplyPhase::Failed(error);
        }
        result
    }

    /// The peer closed its side. That ends a body until close; everything else it cuts off.
    pub fn finish(&mut self) -> Result<Reply, EndError> {
        match self.phase {
            ReplyPhase::UntilClose => Ok(self.done()),
            ReplyPhase::Head(_) if !self.started => Err(EndError::NothingReceived),
            ReplyPhase::Done => Err(EndError::NothingReceived),
            ReplyPhase::Head(_) | ReplyPhase::Length(_) | ReplyPhase::Chunked(_) | ReplyPhase::Failed(_) => {
                Err(EndError::Truncated)
            }
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        let mut at = 0;
        if matches!(self.phase, ReplyPhase::Head(_)) {
            at = self.feed_head(bytes)?;
        }
        let rest = &bytes[at..];
        let mut content = 0;
        match &mut self.phase {
            ReplyPhase::Head(_) => {}
            ReplyPhase::Length(left) => {
                content = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                *left -= content as u64;
                self.body_bytes += content as u64;
                at += content;
                if *left == 0 {
                    return Ok(FeedResult { consumed: at, content, reply: Some(self.done()) });
                }
            }
            ReplyPhase::Chunked(chunked) => {
                let read = chunked.feed(rest, self.expect.content)?;
                self.body_bytes += read.content;
                at += read.consumed;
                if read.done {
                    return Ok(FeedResult { consumed: at, content, reply: Some(self.done()) });
                }
                if self.expect.content {
                    // A run of content ends what was read.
                    content = read.content as usize;
                }
            }
            ReplyPhase::UntilClose => {
                content = rest.len();
                self.body_bytes += content as u64;
                at = bytes.len();
            }
            // The head ended this reply only now; or else the bytes come after one that was handed
            // out.
            ReplyPhase::Done if at > 0 => {
                return Ok(FeedResult { consumed: at, content, reply: Some(self.reply()) });
            }
            ReplyPhase::Done if bytes.is_empty() => {}
            ReplyPhase::Done => return Err(ProtocolError::Surplus),
            ReplyPhase::Failed(error) => return Err(*error),
        }
        Ok(FeedResult { consumed: at, content, reply: None })
    }

    /// Read lines of the head until it ends or the bytes do.
    #[inline]
    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < bytes.len()
            && let ReplyPhase::Head(head) = &mut self.phase
        {
            let rest = &bytes[at..];
            let line = if self.line.is_empty() { head.line(rest)? } else { HeadLine::Unfinished };
            match line {
                HeadLine::Read(taken) => at += taken,
                HeadLine::End(taken) => {
                    at += taken;
                    self.end_head()?;
                }
                HeadLine::Unfinished => at += self.keep_line(rest)?,
            }
        }
        Ok(at)
    }

    /// Stores an unfinished line, and parses it when complete.
    #[cold]
    fn keep_line(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let ReplyPhase::Head(head) = &mut self.phase else {
            return Ok(0);
        };
        let lf = memchr(b'\n', bytes);
        let taken = lf.map_or(bytes.len(), |lf| lf + 1);
        let room = head.room() - self.line.len();
        self.line.extend_from_slice(&bytes[..taken.min(room)]);
        if lf.is_none() || taken > room {
            head.check_unfinished(&self.line)?;
        }
        if taken > room {
            return Err(ProtocolError::HeadTooLarge);
        }
        if lf.is_some() {
            let ended = matches!(head.line(&self.line)?, HeadLine::End(_));
            self.line.clear();
            self.line.shrink_to(LINE_BYTES_KEPT);
            if ended {
                self.end_head()?;
            }
        }
        Ok(taken)
    }

    /// The head is complete: on to the body, to the end of the reply, or to the next head after an
    /// interim one.
    #[inline]
    fn end_head(&mut self) -> Result<(), ProtocolError> {
        let ReplyPhase::Head(head) = &self.phase else {
            return Ok(());
        };
        let Some(meaning) = head.meaning(self.expect.head_request) else {
            self.interims += 1;
            if self.interims > INTERIM_REPLIES_MAX {
                return Err(ProtocolError::TooManyInterim);
            }
            self.phase = ReplyPhase::Head(Head::new());
            return Ok(());
        };
        self.status = meaning.status;
        self.keep_alive = meaning.keep_alive;
        self.phase = match meaning.body {
            Body::Length(0) => ReplyPhase::Done,
            Body::Length(length) => ReplyPhase::Length(length),
            Body::Chunked => ReplyPhase::Chunked(ChunkDecoder::new()),
            Body::UntilClose => {
                self.keep_alive = false;
                ReplyPhase::UntilClose
            }
        };
        Ok(())
    }

    fn done(&mut self) -> Reply {
        self.phase = ReplyPhase::Done;
        self.reply()
    }

    fn reply(&self) -> Reply {
        Reply { status: self.status, keep_alive: self.keep_alive, body_bytes: self.body_bytes }
    }
}
