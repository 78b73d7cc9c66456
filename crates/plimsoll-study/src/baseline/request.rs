//! Decides which resource of the reference server a parsed HTTP request asks for. This module does
//! no I/O; `plimsoll_wire` parses HTTP.

use plimsoll_wire::h1::{InvalidRequest, RequestParser, RequestStep};

/// The longest body of `/bytes/N`, bytes.
pub(super) const BODY_BYTES_MAX: u64 = 1 << 30;
/// The longest delay of `/delay/MS`, in ms (one hour).
pub(super) const DELAY_MS_MAX: u64 = 3_600_000;
/// The longest CPU time of a `/burn/US` request, in microseconds (one minute).
pub(super) const BURN_US_MAX: u64 = 60_000_000;
/// The resource of the reference server that a request's path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Health,
    Bytes(u64),
    Delay(u64),
    Status(u16),
    Burn(u64),
    /// A known path with an invalid number, or a number that is too large.
    BadNumber,
    Unknown,
}

/// The properties of a request that determine its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServedRequest {
    pub(super) resource: Resource,
    /// Whether the method is HEAD, so that the response has no body.
    pub(super) head: bool,
    /// Whether the client wants to keep the connection open.
    pub(super) keep: bool,
    /// Whether the request is HTTP/1.0, so that the response must announce keep-alive.
    pub(super) is_http_1_0: bool,
}

/// The outcome of one parsing step of a request, which says what the server must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderStep {
    /// The request is incomplete. The caller must pass the unparsed bytes again, together with more
    /// received bytes.
    More,
    /// A request is complete, including its body.
    Request(ServedRequest),
    /// The client waits for `100 Continue` before it sends its body.
    Continue,
    /// The bytes are not valid HTTP. The server must respond with the HTTP status in the value, and
    /// close the connection.
    Refuse(u16),
}

/// Reads the requests of one connection one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestReader {
    parser: RequestParser,
    /// The request whose body is being read.
    request: Option<ServedRequest>,
}

impl RequestReader {
    pub(super) const fn new() -> RequestReader {
        RequestReader { parser: RequestParser::new(), request: None }
    }

    /// Parses the next step of a request from `input`. Returns the number of bytes parsed, and what
    /// the caller must do next.
    pub(super) fn read(&mut self, input: &[u8]) -> (usize, ReaderStep) {
        let (used, step) = self.parser.read(input);
        match step {
            RequestStep::More => (used, ReaderStep::More),
            RequestStep::End => (used, self.request.take().map_or(ReaderStep::More, ReaderStep::Request)),
            RequestStep::Refused(InvalidRequest::Malformed) => (used, ReaderStep::Refuse(400)),
            RequestStep::Refused(InvalidRequest::TooLarge) => (used, ReaderStep::Refuse(431)),
            RequestStep::Head(head) => {
                self.request = Some(ServedRequest {
                    resource: parse_resource(head.target),
                    head: head.method == b"HEAD",
                    keep: head.keep_alive,
                    is_http_1_0: head.is_1_0,
                });
                // Most requests have no body, so they are complete at the end of their head.
                let (body, step) = self.read(&input[used..]);
                let waits = head.awaits_continue && step == ReaderStep::More && used == input.len();
                (used + body, if waits { ReaderStep::Continue } else { step })
            }
        }
    }
}

pub(super) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

pub(super) fn parse_resource(target: &[u8]) -> Resource {
    let path = match target.strip_prefix(b"http://") {
        Some(rest) => rest.iter().position(|b| *b == b'/').map_or(&rest[..0], |slash| &rest[slash..]),
        None => target,
    };
    let path = path.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default();
    if path == b"/healthz" {
        return Resource::Health;
    }
    let bounded = |digits, max: u64, resource: fn(u64) -> Resource| match parse_decimal(digits) {
        Some(value) if value <= max => resource(value),
        _ => Resource::BadNumber,
    };
    if let Some(digits) = path.strip_prefix(b"/bytes/") {
        bounded(digits, BODY_BYTES_MAX, Resource::Bytes)
    } else if let Some(digits) = path.strip_prefix(b"/delay/") {
        bounded(digits, DELAY_MS_MAX, Resource::Delay)
    } else if let Some(digits) = path.strip_prefix(b"/burn/") {
        bounded(digits, BURN_US_MAX, Resource::Burn)
    } else if let Some(digits) = path.strip_prefix(b"/status/") {
        // Statuses 1xx are interim and not final responses, so `/status/1xx` is refused.
        match parse_decimal(digits) {
            Some(status @ 200..=599) => Resource::Status(status as u16),
            _ => Resource::BadNumber,
        }
    } else {
        Resource::Unknown
    }
}
