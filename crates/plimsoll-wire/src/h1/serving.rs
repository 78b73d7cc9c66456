//! Parses HTTP/1.1 requests in a server: the head as a whole, then the body.
//!
//! The rules for requests are stricter than the rules for responses, because a server must not
//! guess. Requests with folded lines, control characters in fields, a content length next to a
//! transfer coding, or any coding but chunked are refused.
//!
//! Not here: storing an incomplete head (the caller passes it again with more bytes), and the
//! requested resource.

use super::chunked::ChunkDecoder;
use super::field::{ValueEnd, content_length, equals_ignoring_case, token_len, value_end};
use super::token::{is_token, list_elements, trim};
use memchr::memchr;

/// The maximum length of a request head in bytes: the request line and all header fields.
pub const REQUEST_HEAD_BYTES_MAX: usize = 16 * 1024;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method, which is a token.
    pub method: &'a [u8],
    /// The request target as received. The target contains no control characters.
    pub target: &'a [u8],
    /// Whether the request uses HTTP/1.0.
    pub is_1_0: bool,
    /// Whether the client wants to use the connection again.
    pub keep_alive: bool,
    /// Whether the client waits for permission to send its body (`Expect: 100-continue`).
    pub awaits_continue: bool,
}

/// The reason why received bytes are not a valid request. After an invalid request, the connection
/// is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidRequest {
    /// The bytes are not an HTTP/1.x request, or the request is invalid.
    Malformed,
    /// The head is longer than [`REQUEST_HEAD_BYTES_MAX`].
    TooLarge,
}

/// The result of parsing some bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStep<'a> {
    /// The parser needs more bytes. In the next call, the caller must pass the unconsumed bytes
    /// again, followed by newly received bytes.
    More,
    /// The head of the request is complete. The next bytes are the body. For a request without
    /// body, the next result is [`End`](RequestStep::End).
    Head(RequestHead<'a>),
    /// The request is complete.
    End,
    /// The bytes are not a valid request.
    Refused(InvalidRequest),
}

/// Parses the requests on one connection.
#[derive(Clone, Copy, Debug)]
pub struct RequestParser {
    at: RequestPart,
}

#[derive(Clone, Copy, Debug)]
enum RequestPart {
    /// The parser is before or within a request head. The end of the head does not begin in the
    /// first `scanned` bytes, which need no second search.
    Head {
        scanned: u32,
    },
    /// The parser is within a body, of which this number of bytes has not arrived yet.
    Length(u64),
    Chunked(ChunkDecoder),
}

impl Default for RequestParser {
    fn default() -> RequestParser {
        RequestParser::new()
    }
}

impl RequestParser {
    /// Creates a parser that is ready for the first request on a connection.
    pub const fn new() -> RequestParser {
        RequestParser { at: RequestPart::Head { scanned: 0 } }
    }

    /// Parses `input`. Returns the number of consumed bytes, and the parsed part of the request.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> (usize, RequestStep<'a>) {
        match &mut self.at {
            RequestPart::Head { scanned } => {
                let scanned = *scanned as usize;
                self.read_head(input, scanned)
            }
            RequestPart::Length(left) => {
                let taken = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                if *left > 0 {
                    return (taken, RequestStep::More);
                }
                *self = RequestParser::new();
                (taken, RequestStep::End)
            }
            RequestPart::Chunked(chunked) => match chunked.decode_bytes(input, false) {
                Ok(read) if read.done => {
                    *self = RequestParser::new();
                    (read.consumed, RequestStep::End)
                }
                Ok(read) => (read.consumed, RequestStep::More),
                Err(_) => (input.len(), RequestStep::Refused(InvalidRequest::Malformed)),
            },
        }
    }

    fn read_head<'a>(&mut self, input: &'a [u8], scanned: usize) -> (usize, RequestStep<'a>) {
        // Empty lines before a request are allowed (RFC 9112, 2.2).
        let blank = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        if blank > 0 {
            *self = RequestParser::new();
            return (blank, RequestStep::More);
        }
        let Some(end) = head_end(input, scanned).filter(|end| *end <= REQUEST_HEAD_BYTES_MAX) else {
            if input.len() > REQUEST_HEAD_BYTES_MAX {
                return (input.len(), RequestStep::Refused(InvalidRequest::TooLarge));
            }
            // The end of the head is at most three bytes long (LF CR LF), of which two may have
            // arrived already.
            self.at = RequestPart::Head { scanned: input.len().saturating_sub(2) as u32 };
            return (0, RequestStep::More);
        };
        let Some((head, body)) = parse(&input[..end]) else {
            return (input.len(), RequestStep::Refused(InvalidRequest::Malformed));
        };
        self.at = body;
        (end, RequestStep::Head(head))
    }
}

/// Returns the index after the empty line that ends the head. The first `scanned` bytes do not
/// contain the line feed before the empty line.
fn head_end(input: &[u8], scanned: usize) -> Option<usize> {
    let mut at = scanned;
    loop {
        at += memchr(b'\n', &input[at..])? + 1;
        match &input[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// Parses a complete request head. Returns the head and the kind of body that follows the head;
/// `None`: the head is invalid.
fn parse(head: &[u8]) -> Option<(RequestHead<'_>, RequestPart)> {
    let line_end = memchr(b'\n', head)?;
    let line = head[..line_end].strip_suffix(b"\r").unwrap_or(&head[..line_end]);
    let mut words = line.split(|b| *b == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !is_token(method) || target.is_empty() || !is_text(target) || words.next().is_some() {
        return None;
    }
    let is_1_0 = match version {
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => false,
        _ => return None,
    };
    let (mut length, mut chunked, mut close, mut keep_alive, mut awaits_continue) = (None, false, false, false, false);
    let mut rest = &head[line_end + 1..];
    while !matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]) {
        let name_len = token_len(rest);
        if name_len == 0 || rest.get(name_len) != Some(&b':') {
            return None;
        }
        let ValueEnd::At(value_end, end) = value_end(rest, name_len + 1) else { return None };
        let (name, value) = (&rest[..name_len], trim(&rest[name_len + 1..value_end]));
        if !is_text(value) {
            return None;
        }
        if equals_ignoring_case(name, b"content-length") {
            let said = content_length(value)?;
            if length.is_some_and(|other| other != said) {
                return None;
            }
            length = Some(said);
        } else if equals_ignoring_case(name, b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            chunked = true;
        } else if equals_ignoring_case(name, b"connection") {
            for option in list_elements(value) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if equals_ignoring_case(name, b"expect") {
            awaits_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
        rest = &rest[end..];
    }
    let body = match (length, chunked) {
        // A request with `Content-Length` and `Transfer-Encoding` is refused, because attackers use
        // both fields together to smuggle requests past proxies.
        (Some(_), true) => return None,
        (None, true) => RequestPart::Chunked(ChunkDecoder::new()),
        (length, false) => RequestPart::Length(length.unwrap_or(0)),
    };
    let keep_alive = !close && (!is_1_0 || keep_alive);
    Some((RequestHead { method, target, is_1_0, keep_alive, awaits_continue: awaits_continue && !is_1_0 }, body))
}

/// Returns whether the bytes contain no control characters except the tab.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|b| (*b < b' ' && *b != b'\t') || *b == 0x7f)
}
