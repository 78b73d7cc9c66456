//! Parses and validates HTTP/2 heads ([RFC 9113,
//! 8](https://www.rfc-editor.org/rfc/rfc9113#section-8)): heads of responses and trailers for a
//! client, and heads of requests for a server.
//!
//! An invalid head makes the message malformed, which ends the message's stream but not the
//! connection. Not here: the order of heads and content, compression.

use crate::error::ProtocolError;
use crate::h1::{IS_TOKEN_BYTE, content_length};

/// The maximum length of the fields of a head, in bytes. Each field counts as the length of its
/// name and value plus 32 bytes (RFC 9113, 6.5.2).
pub(super) const FIELDS_BYTES_MAX: usize = 64 * 1024;

/// The compression of gRPC messages that the head of a response declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum MessageEncoding {
    /// The head declares no compression.
    #[default]
    Identity,
    /// The head declares gzip, which every client supports.
    Gzip,
    /// The head declares another compression.
    Other,
}

/// A head that the server sent: the head of a response, or trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct ResponseHead {
    /// The HTTP status; 0 in trailers.
    pub(super) status: u16,
    /// The declared length of the content; `None`: not declared.
    pub(super) length: Option<u64>,
    /// The gRPC status; `None`: the head has no valid gRPC status.
    pub(super) grpc_status: Option<u16>,
    /// Whether the head has a `grpc-status` field, valid or not.
    has_status_field: bool,
    /// The declared compression of gRPC messages.
    pub(super) encoding: MessageEncoding,
    /// Whether the head declares a content type that does not begin with `application/grpc`.
    pub(super) has_other_content_type: bool,
    /// The error by which the head is malformed; `None`: no error.
    pub(super) fault: Option<ProtocolError>,
    /// Whether a regular field has been parsed. Pseudo-header fields after a regular field are an
    /// error.
    has_regular_field: bool,
}

impl ResponseHead {
    /// Parses the next header field of the head.
    pub(super) fn parse_field(&mut self, name: &[u8], value: &[u8]) {
        if let Err(fault) = self.check_and_store_field(name, value) {
            self.fault = self.fault.or(Some(fault));
        }
    }

    fn check_and_store_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
        if let [b':', pseudo @ ..] = name {
            if pseudo != b"status" || self.has_regular_field || self.status != 0 {
                return Err(ProtocolError::PseudoHeader);
            }
            let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else {
                return Err(ProtocolError::BadStatus);
            };
            let digit = |b: &u8| u16::from(b - b'0');
            self.status = digit(a) * 100 + digit(b) * 10 + digit(c);
            return Ok(());
        }
        self.has_regular_field = true;
        check_field(name, value)?;
        if name == b"content-length" {
            let length = content_length(value).ok_or(ProtocolError::BadContentLength)?;
            if self.length.is_some_and(|other| other != length) {
                return Err(ProtocolError::BadContentLength);
            }
            self.length = Some(length);
        }
        if name == b"grpc-status" {
            // An invalid `grpc-status` number is ignored, because such a number is not an error of
            // HTTP. If there are two different `grpc-status` values, the head has no gRPC status.
            let status = call_status(value);
            self.grpc_status = if self.has_status_field && self.grpc_status != status { None } else { status };
            self.has_status_field = true;
        }
        if name == b"content-type" {
            self.has_other_content_type =
                !value.get(..16).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc"));
        }
        if name == b"grpc-encoding" {
            self.encoding = match value {
                b"" | b"identity" => MessageEncoding::Identity,
                b"gzip" => MessageEncoding::Gzip,
                _ => MessageEncoding::Other,
            };
        }
        Ok(())
    }
}

/// Parses a gRPC status: only digits, as the protocol demands (`1*DIGIT`), without sign or blank.
fn call_status(value: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct H2RequestHead {
    pub(super) method: Vec<u8>,
    pub(super) path: Vec<u8>,
    length: Option<u64>,
    has_scheme: bool,
    has_regular_field: bool,
    is_malformed: bool,
}

impl H2RequestHead {
    /// Removes all fields before the next request, and keeps the memory for reuse.
    pub(super) fn clear(&mut self) {
        let (mut method, mut path) = (std::mem::take(&mut self.method), std::mem::take(&mut self.path));
        method.clear();
        path.clear();
        *self = H2RequestHead { method, path, ..H2RequestHead::default() };
    }

    pub(super) fn parse_field(&mut self, name: &[u8], value: &[u8]) {
        self.is_malformed |= self.check_and_store_field(name, value).is_err();
    }

    fn check_and_store_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
        let bad = ProtocolError::PseudoHeader;
        if name.starts_with(b":") {
            let keep = |kept: &mut Vec<u8>| {
                let again = !kept.is_empty();
                kept.extend_from_slice(value);
                again
            };
            let again = match name {
                b":method" => keep(&mut self.method),
                b":path" => keep(&mut self.path),
                b":scheme" => std::mem::replace(&mut self.has_scheme, true),
                b":authority" => false,
                _ => true,
            };
            let text = value.iter().all(|b| b.is_ascii_graphic());
            return if again || self.has_regular_field || value.is_empty() || !text { Err(bad) } else { Ok(()) };
        }
        self.has_regular_field = true;
        check_field(name, value)?;
        if name == b"te" && value != b"trailers" {
            return Err(ProtocolError::ConnectionHeader);
        }
        if name == b"content-length" {
            let length = content_length(value).ok_or(ProtocolError::BadContentLength)?;
            if self.length.replace(length).is_some_and(|other| other != length) {
                return Err(ProtocolError::BadContentLength);
            }
        }
        Ok(())
    }

    /// Returns whether the head is valid and has all mandatory fields of a request.
    pub(super) fn is_valid(&self) -> bool {
        !self.is_malformed && self.has_scheme && !self.method.is_empty() && !self.path.is_empty()
    }
}

/// Checks that HTTP/2 permits this header field (RFC 9113, 8.2.1 and 8.2.2).
fn check_field(name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
    let named = !name.is_empty() && name.iter().all(|b| IS_TOKEN_BYTE[usize::from(*b)] && !b.is_ascii_uppercase());
    let blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    let told = !value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')) && !blank(value.first()) && !blank(value.last());
    if !named || !told {
        return Err(ProtocolError::BadHeader);
    }
    match is_connection_level(name) {
        true => Err(ProtocolError::ConnectionHeader),
        false => Ok(()),
    }
}

/// Returns whether the field `name`, in lower case, describes the connection in HTTP/1.1. Fields
/// that describe the connection are forbidden in HTTP/2 (RFC 9113, 8.2.2).
pub(super) fn is_connection_level(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}
