//! Encodes requests as HTTP/1.1 bytes. A fixed request is encoded once before the run, and then
//! sent unchanged. A request from a template is encoded each time the template is filled in.
//!
//! All errors in a request are found by the code in this file, before the first connection opens.
//! So no request is checked during the load. Not here: parsing URLs and arguments, reading body
//! files.

use super::token::{is_token, list_elements};
use thiserror::Error;

/// The parts of a request from which its bytes are encoded.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The method, which must be a token. Its letters are sent unchanged, because methods are
    /// case-sensitive.
    pub method: &'a str,
    /// The request target in origin form: path and query, already percent-encoded.
    pub target: &'a str,
    /// The value of the `Host` field: the host name or address, with the port unless the port is
    /// the scheme's default.
    pub host: &'a str,
    /// The user's header fields, in the order in which they are sent. Each header field of the user
    /// replaces the default field of the same name.
    pub headers: &'a [(String, String)],
    /// The content of the request, which is sent unchanged and may be empty.
    pub body: &'a [u8],
    /// Whether the connection is used again. If the connection is not used again, the request has
    /// the field `Connection: close`.
    pub keep_alive: bool,
}

/// The reason why a request cannot be encoded. The reason is always an error in the user's input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The method is not a token ([RFC 9110,
    /// 9.1](https://www.rfc-editor.org/rfc/rfc9110#section-9.1)).
    #[error("the method '{0}' is not a word of letters, digits and !#$%&'*+-.^_`|~")]
    Method(String),
    /// `CONNECT` asks for a tunnel, which returns no measurable response.
    #[error("the method CONNECT opens a tunnel and cannot be used for load")]
    ConnectMethod,
    /// The target is empty or has a space, a control character or a byte beyond ASCII.
    #[error("the request target {0:?} is empty or has spaces, control or non-ASCII characters: percent-encode them")]
    Target(String),
    /// The host is empty or has a space or control character.
    #[error("the host {0:?} is empty or has spaces or control characters")]
    Host(String),
    /// The name of a header field is not a token.
    #[error("the header name '{0}' is not a word of letters, digits and !#$%&'*+-.^_`|~")]
    HeaderName(String),
    /// The value of the header field of this name has a carriage return, a line feed or a NUL.
    #[error("the value of the header {0:?} has a line break or a NUL in it")]
    HeaderValue(String),
    /// The transfer coding is not supported ([RFC 9112,
    /// 6.1](https://www.rfc-editor.org/rfc/rfc9112#section-6.1)).
    #[error("the header Transfer-Encoding can only be 'chunked', which sends the body in chunks: leave the header out")]
    Coding,
    /// Both a transfer coding and a length are given, although only one may mark the end of the
    /// content.
    #[error("the headers Transfer-Encoding and Content-Length exclude each other: leave one out")]
    CodingAndLength,
    /// A header field that may occur only once occurs twice ([RFC 9112,
    /// 3.2](https://www.rfc-editor.org/rfc/rfc9112#section-3.2)).
    #[error("the header {0} is given several times, and only one is allowed: leave the others out")]
    Repeated(&'static str),
    /// The given `Content-Length` differs from the length of the content.
    #[error("the header Content-Length is not the length of the body, {0} bytes: leave the header out")]
    Length(usize),
}

/// Encodes a request as HTTP/1.1 bytes ([RFC 9112,
/// 3](https://www.rfc-editor.org/rfc/rfc9112#section-3)).
///
/// The fields `Host`, `User-Agent` and `Accept` are added unless `headers` has a field of the same
/// name. For a connection that is used once, `Connection: close` is added unless `headers` contains
/// it.
///
/// `Content-Length` is added if there is a body, or if the method normally has one (POST, PUT,
/// PATCH: [RFC 9110, 8.6](https://www.rfc-editor.org/rfc/rfc9110#section-8.6)). A `User-Agent` or
/// `Accept` field that the user gives without a value is not sent. With `Transfer-Encoding:
/// chunked`, the body is sent as one chunk. A given content length or transfer coding that does not
/// fit the body is refused.
pub fn encode(parts: &RequestParts) -> Result<Vec<u8>, RequestError> {
    check(parts)?;
    let mut bytes = Vec::new();
    write(parts, &mut bytes);
    Ok(bytes)
}

/// Appends the HTTP/1.1 bytes of a request to `out`. The caller must have checked the request
/// before.
pub(crate) fn write(parts: &RequestParts, out: &mut Vec<u8>) {
    let given = |name: &str| parts.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let says_close = parts
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
        .any(|(_, value)| list_elements(value.as_bytes()).any(|token| token.eq_ignore_ascii_case(b"close")));

    for piece in [parts.method, " ", parts.target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
    let mut field = |name: &str, value: &str| {
        for piece in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
    };
    // `Host` comes first, because "a user agent SHOULD generate Host as the first field" (RFC 9110,
    // 7.2).
    if !given("host") {
        field("Host", parts.host);
    }
    if !given("user-agent") {
        field("User-Agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
    }
    if !given("accept") {
        field("Accept", "*/*");
    }
    for (name, value) in parts.headers {
        match name {
            name if is_default_header_suppressed(name, value) => {}
            // Bodies from a filled-in template differ in length, so the given `Content-Length` is
            // replaced by the actual length.
            name if name.eq_ignore_ascii_case("content-length") => {
                field(name, format_decimal(parts.body.len(), &mut [0; 20]));
            }
            name => field(name, value),
        }
    }
    let in_chunks = given("transfer-encoding");
    let expects_body = !parts.body.is_empty() || matches!(parts.method, "POST" | "PUT" | "PATCH");
    if expects_body && !given("content-length") && !in_chunks {
        field("Content-Length", format_decimal(parts.body.len(), &mut [0; 20]));
    }
    if !parts.keep_alive && !says_close {
        field("Connection", "close");
    }
    out.extend_from_slice(b"\r\n");
    match (in_chunks, parts.body.is_empty()) {
        (false, _) => out.extend_from_slice(parts.body),
        (true, true) => out.extend_from_slice(b"0\r\n\r\n"),
        (true, false) => {
            out.extend_from_slice(format!("{:x}\r\n", parts.body.len()).as_bytes());
            out.extend_from_slice(parts.body);
            out.extend_from_slice(CHUNKS_END);
        }
    }
}

/// The bytes after the only chunk of a body.
const CHUNKS_END: &[u8] = b"\r\n0\r\n\r\n";

/// Returns the number of bytes that [`write()`] appends after the content.
pub(crate) fn bytes_after_body(parts: &RequestParts) -> usize {
    let in_chunks = parts.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
    if in_chunks && !parts.body.is_empty() { CHUNKS_END.len() } else { 0 }
}

/// Returns whether the user gave `User-Agent` or `Accept` without a value, which means that the
/// field must not be sent.
fn is_default_header_suppressed(name: &str, value: &str) -> bool {
    value.is_empty() && ["user-agent", "accept"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Writes a number as text without a memory allocation, because requests from templates are encoded
/// again each time they are sent.
pub(crate) fn format_decimal(mut number: usize, digits: &mut [u8; 20]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[at..]).unwrap_or_default()
}

fn check(parts: &RequestParts) -> Result<(), RequestError> {
    if !is_token(parts.method.as_bytes()) {
        return Err(RequestError::Method(parts.method.to_owned()));
    }
    if parts.method == "CONNECT" {
        return Err(RequestError::ConnectMethod);
    }
    if parts.target.is_empty() || !parts.target.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(RequestError::Target(parts.target.to_owned()));
    }
    if parts.host.is_empty() || parts.host.bytes().any(|b| b == b' ' || b.is_ascii_control()) {
        return Err(RequestError::Host(parts.host.to_owned()));
    }
    for (name, value) in parts.headers {
        if !is_token(name.as_bytes()) {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(RequestError::HeaderValue(name.clone()));
        }
    }
    let values = |of: &'static str| parts.headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(of));
    for once in ["Host", "Content-Length"] {
        if values(once).count() > 1 {
            return Err(RequestError::Repeated(once));
        }
    }
    let mut codings = values("transfer-encoding");
    let mut lengths = values("content-length").peekable();
    if let Some((_, coding)) = codings.next() {
        if lengths.peek().is_some() {
            return Err(RequestError::CodingAndLength);
        }
        if !coding.trim().eq_ignore_ascii_case("chunked") || codings.next().is_some() {
            return Err(RequestError::Coding);
        }
    }
    match lengths.all(|(_, length)| length.trim().parse() == Ok(parts.body.len())) {
        true => Ok(()),
        false => Err(RequestError::Length(parts.body.len())),
    }
}
