//! Parses HTTP/1.1 responses: finds the status, the end, and whether the connection can be used
//! again.
//!
//! Each connection has one [`ResponseParser`] for all of its responses. The parser gives the same
//! response or error however the bytes are split into pieces. If the head arrives in one read, as
//! is usual, no memory is allocated, and each byte of the head is read once.
//!
//! Where the rules of HTTP leave a choice, the parser is as lenient as real servers require. The
//! parser never guesses where a body ends:
//!
//! - lines may end with a bare LF; up to [`BLANK_LINES_MAX`](super::BLANK_LINES_MAX) blank lines
//!   may come before the status line;
//! - a folded header line (obs-fold) is accepted, except after the status line or after
//!   `Content-Length`, `Transfer-Encoding` and `Connection`, whose meaning it would change;
//! - control characters in header values are accepted, except NUL and a CR without its LF;
//! - a header name must be a token, and the colon must follow directly after the name.
//!
//! Not here: the meaning of bytes after a response (without pipelining, a protocol error of the
//! server), retries, timeouts, the content of bodies.

use super::chunked::ChunkDecoder;
use super::head::{BodyFraming, Head, HeadLine};
use crate::error::{EarlyCloseError, ProtocolError};
use memchr::memchr;

/// The maximum number of interim responses (1xx) before a response.
pub const INTERIM_RESPONSES_MAX: u8 = 64;

/// The maximum size in bytes of the buffer for unfinished lines that is kept for reuse; a larger
/// buffer is freed.
const LINE_BYTES_KEPT: usize = 1024;

/// The properties of a response that its request determines: whether a body exists, whether its
/// content is wanted, and whether it is a gRPC response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseExpectation {
    /// Whether the request is a HEAD request. The response to a HEAD request has no body, whatever
    /// its header fields say.
    pub head_request: bool,
    /// Whether the caller wants the content; see [`FeedResult::content`].
    pub wants_content: bool,
    /// Whether the request is a gRPC call. For a gRPC call, the messages in the content of the
    /// response are counted.
    pub call: GrpcCallFlags,
}

/// A set of flags about a request: whether it is a gRPC call, and the rules for its messages. The
/// set takes only one byte, because every connection stores such a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrpcCallFlags(u8);

impl GrpcCallFlags {
    /// The request is not a gRPC call.
    pub const NOT_GRPC: GrpcCallFlags = GrpcCallFlags(0);
    /// The request is a gRPC call.
    pub const GRPC_CALL: GrpcCallFlags = GrpcCallFlags(1);
    /// Over HTTP/2, each further message of a gRPC request is sent only after another message of
    /// the response has arrived. Without the flag `MESSAGES_IN_TURN`, all messages of the request
    /// are sent at once.
    pub const MESSAGES_IN_TURN: GrpcCallFlags = GrpcCallFlags(1 | 1 << 1);
    /// The response must have exactly one message.
    pub const ONE_MESSAGE: GrpcCallFlags = GrpcCallFlags(1 | 1 << 2);
    /// Messages of the response may have any compression.
    pub const ANY_ENCODING: GrpcCallFlags = GrpcCallFlags(1 | 1 << 3);

    /// Returns the union of two sets of flags.
    pub const fn union(self, other: GrpcCallFlags) -> GrpcCallFlags {
        GrpcCallFlags(self.0 | other.0)
    }

    /// Returns whether the request is a gRPC call.
    #[inline]
    pub const fn is_call(self) -> bool {
        self.0 != 0
    }

    /// Returns whether all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: GrpcCallFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The result of parsing received bytes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedResult {
    /// The number of parsed bytes that belong to the response. While the response is incomplete,
    /// all passed bytes belong to the response. If the caller wants the content, parsing may stop
    /// before the framing of a chunk. In the next call, the caller must pass the unconsumed bytes
    /// again.
    pub consumed: usize,
    /// The number of content bytes, which are at the end of the consumed bytes. For a chunked body,
    /// the number of content bytes is 0 unless the caller wants the content.
    pub content_bytes: usize,
    /// The properties of the complete response; `None`: the response is incomplete.
    pub response: Option<ResponseSummary>,
}

/// The status, connection reuse and content length of a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSummary {
    /// The status code, 200 to 999. Codes above 599 count as a failure like 5xx (RFC 9110, 15).
    pub status: u16,
    /// Whether the server permits further requests on the connection.
    pub keep_alive: bool,
    /// The length of the content in bytes, without chunk framing.
    pub body_bytes: u64,
}

/// Parses the HTTP/1.1 responses on one connection.
#[derive(Clone, Debug)]
pub struct ResponseParser {
    phase: ResponsePhase,
    body_bytes: u64,
    /// The received part of an unfinished line of the response head. Memory is allocated only if a
    /// read ends within a line of the head.
    line: Vec<u8>,
    /// The status of the response; valid once the head is parsed.
    status: u16,
    keep_alive: bool,
    expect: ResponseExpectation,
    started: bool,
    interims: u8,
}

// Each connection has a parser, and there may be very many connections. So a parser must fit into
// one cache line (64 bytes).
const _: () = assert!(size_of::<ResponseParser>() <= 64);

#[derive(Clone, Copy, Debug)]
enum ResponsePhase {
    Head(Head),
    /// A body of known length, of which this number of bytes has not arrived yet (never 0).
    Length(u64),
    Chunked(ChunkDecoder),
    UntilClose,
    /// The response is complete and was returned.
    Done,
    Failed(ProtocolError),
}

impl Default for ResponseParser {
    fn default() -> Self {
        ResponseParser::new()
    }
}

impl ResponseParser {
    /// Creates a parser that is ready for the response to a request other than HEAD.
    pub const fn new() -> Self {
        ResponseParser {
            phase: ResponsePhase::Head(Head::new()),
            body_bytes: 0,
            line: Vec::new(),
            status: 0,
            keep_alive: false,
            expect: ResponseExpectation { head_request: false, wants_content: false, call: GrpcCallFlags::NOT_GRPC },
            started: false,
            interims: 0,
        }
    }

    /// Returns the properties of the current response that its request determines.
    pub fn expect(&self) -> ResponseExpectation {
        self.expect
    }

    /// Prepares the parser for the next response on this connection, or for the first response on a
    /// new connection. All data about earlier responses are dropped.
    #[inline]
    pub fn begin(&mut self, expect: ResponseExpectation) {
        self.phase = ResponsePhase::Head(Head::new());
        self.body_bytes = 0;
        self.line.clear();
        self.status = 0;
        self.keep_alive = false;
        self.expect = expect;
        self.started = false;
        self.interims = 0;
    }

    /// Returns whether any byte of the current response, or of an interim response before it, has
    /// arrived.
    pub fn has_received_bytes(&self) -> bool {
        self.started
    }

    /// Returns the status of the current response; `None` before its head is parsed.
    pub fn status(&self) -> Option<u16> {
        (self.status != 0).then_some(self.status)
    }

    /// Parses received bytes. Consumes the bytes that belong to the current response: all passed
    /// bytes, or the bytes up to the end of the response.
    ///
    /// After an error the connection is unusable, and each further call returns the error again
    /// until [`begin`](Self::begin). Bytes that are passed after the end of a response and before
    /// `begin` cause the error [`ProtocolError::Surplus`].
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        self.started |= !bytes.is_empty();
        let result = self.feed_current_phase(bytes);
        if let Err(error) = result {
            self.phase = ResponsePhase::Failed(error);
        }
        result
    }

    /// Handles the close of the connection by the peer. The close completes a response whose body
    /// ends with the connection. For any other response, the close is an error, because the
    /// response is incomplete.
    pub fn finish(&mut self) -> Result<ResponseSummary, EarlyCloseError> {
        match self.phase {
            ResponsePhase::UntilClose => Ok(self.complete_response()),
            ResponsePhase::Head(_) if !self.started => Err(EarlyCloseError::NothingReceived),
            ResponsePhase::Done => Err(EarlyCloseError::NothingReceived),
            ResponsePhase::Head(_)
            | ResponsePhase::Length(_)
            | ResponsePhase::Chunked(_)
            | ResponsePhase::Failed(_) => Err(EarlyCloseError::Truncated),
        }
    }

    fn feed_current_phase(&mut self, bytes: &[u8]) -> Result<FeedResult, ProtocolError> {
        let mut at = 0;
        if matches!(self.phase, ResponsePhase::Head(_)) {
            at = self.feed_head(bytes)?;
        }
        let rest = &bytes[at..];
        let mut content_bytes = 0;
        match &mut self.phase {
            ResponsePhase::Head(_) => {}
            ResponsePhase::Length(left) => {
                content_bytes = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                *left -= content_bytes as u64;
                self.body_bytes += content_bytes as u64;
                at += content_bytes;
                if *left == 0 {
                    return Ok(FeedResult { consumed: at, content_bytes, response: Some(self.complete_response()) });
                }
            }
            ResponsePhase::Chunked(chunked) => {
                let read = chunked.decode_bytes(rest, self.expect.wants_content)?;
                self.body_bytes += read.content;
                at += read.consumed;
                if read.done {
                    return Ok(FeedResult { consumed: at, content_bytes, response: Some(self.complete_response()) });
                }
                if self.expect.wants_content {
                    // If the caller wants the content, this call stops at the end of a contiguous
                    // piece of content.
                    content_bytes = read.content as usize;
                }
            }
            ResponsePhase::UntilClose => {
                content_bytes = rest.len();
                self.body_bytes += content_bytes as u64;
                at = bytes.len();
            }
            // If `at` is above 0, the head in `bytes` has just completed the response, which has no
            // body. If `at` is 0, the bytes follow a response that was returned before.
            ResponsePhase::Done if at > 0 => {
                return Ok(FeedResult { consumed: at, content_bytes, response: Some(self.response_summary()) });
            }
            ResponsePhase::Done if bytes.is_empty() => {}
            ResponsePhase::Done => return Err(ProtocolError::Surplus),
            ResponsePhase::Failed(error) => return Err(*error),
        }
        Ok(FeedResult { consumed: at, content_bytes, response: None })
    }

    /// Parses lines of the head until the head or the bytes end.
    #[inline]
    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let mut at = 0;
        while at < bytes.len()
            && let ResponsePhase::Head(head) = &mut self.phase
        {
            let rest = &bytes[at..];
            let line = if self.line.is_empty() { head.parse_line(rest)? } else { HeadLine::Unfinished };
            match line {
                HeadLine::Read(taken) => at += taken,
                HeadLine::End(taken) => {
                    at += taken;
                    self.end_head()?;
                }
                HeadLine::Unfinished => at += self.store_unfinished_line(rest)?,
            }
        }
        Ok(at)
    }

    /// Stores an unfinished line, and parses the line when it is complete.
    #[cold]
    fn store_unfinished_line(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let ResponsePhase::Head(head) = &mut self.phase else {
            return Ok(0);
        };
        let lf = memchr(b'\n', bytes);
        let taken = lf.map_or(bytes.len(), |lf| lf + 1);
        let room = head.remaining_bytes() - self.line.len();
        self.line.extend_from_slice(&bytes[..taken.min(room)]);
        if lf.is_none() || taken > room {
            head.check_unfinished(&self.line)?;
        }
        if taken > room {
            return Err(ProtocolError::HeadTooLarge);
        }
        if lf.is_some() {
            let ended = matches!(head.parse_line(&self.line)?, HeadLine::End(_));
            self.line.clear();
            self.line.shrink_to(LINE_BYTES_KEPT);
            if ended {
                self.end_head()?;
            }
        }
        Ok(taken)
    }

    /// Handles a complete response head. After the head, the body follows, or the response is
    /// complete. After the head of an interim response (1xx), the next head follows.
    #[inline]
    fn end_head(&mut self) -> Result<(), ProtocolError> {
        let ResponsePhase::Head(head) = &self.phase else {
            return Ok(());
        };
        let Some(meaning) = head.final_head(self.expect.head_request) else {
            self.interims += 1;
            if self.interims > INTERIM_RESPONSES_MAX {
                return Err(ProtocolError::TooManyInterim);
            }
            self.phase = ResponsePhase::Head(Head::new());
            return Ok(());
        };
        self.status = meaning.status;
        self.keep_alive = meaning.keep_alive;
        self.phase = match meaning.body {
            BodyFraming::Length(0) => ResponsePhase::Done,
            BodyFraming::Length(length) => ResponsePhase::Length(length),
            BodyFraming::Chunked => ResponsePhase::Chunked(ChunkDecoder::new()),
            BodyFraming::UntilClose => {
                self.keep_alive = false;
                ResponsePhase::UntilClose
            }
        };
        Ok(())
    }

    fn complete_response(&mut self) -> ResponseSummary {
        self.phase = ResponsePhase::Done;
        self.response_summary()
    }

    fn response_summary(&self) -> ResponseSummary {
        ResponseSummary { status: self.status, keep_alive: self.keep_alive, body_bytes: self.body_bytes }
    }
}
