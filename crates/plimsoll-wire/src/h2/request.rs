//! Encodes requests for HTTP/2, with the head in frames. This encoder validates nothing: every
//! request is first encoded for HTTP/1.1, and that encoder validates the request.

use super::frame::{FrameReader, H2Frame, begin_head, end_head, set_stream};
use super::head::{FIELDS_BYTES_MAX, is_connection_level};
use super::hpack::{HpackDecoder, Secrecy, TABLE_BYTES, write_field};
use crate::h1::{RequestParts, ResponseExpectation, format_decimal, trim};

/// A request in the form in which HTTP/2 connections send it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct H2Request<'a> {
    /// The frames of the request's head, all with stream 0.
    pub(crate) head: &'a [u8],
    /// The content of the request.
    pub(crate) body: &'a [u8],
    /// The expected properties of the response.
    pub(crate) expect: ResponseExpectation,
}

/// The maximum length in bytes of a field name that is converted to lower case without a memory
/// allocation.
const NAME_BYTES: usize = 128;

/// The names of the header fields that a gRPC call has before the user's other fields, in the order
/// of the [protocol](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests).
const CALL_FIELDS: [&str; 6] =
    ["te", "grpc-timeout", "content-type", "grpc-encoding", "grpc-accept-encoding", "user-agent"];

/// Appends the frames of the request's head to `out`, all with stream number 0. A request from a
/// filled-in template is encoded each time it is sent. Encoding allocates memory only if `out`
/// grows, for a very long field name, or for a head that exceeds a frame.
///
/// A gRPC call has the fields that gRPC clients send, in the order of the protocol. A gRPC call has
/// neither `accept` nor `content-length`, unless the user gives these fields.
pub(crate) fn write(parts: &RequestParts, is_https: bool, out: &mut Vec<u8>) {
    let given = |name: &str| parts.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
    let is_call = is_call(parts.headers);
    let from = begin_head(out);
    let mut field = |name: &[u8], value: &[u8]| {
        let secrecy = match name {
            b"authorization" | b"proxy-authorization" | b"cookie" => Secrecy::NeverIndexed,
            _ => Secrecy::Plain,
        };
        write_field(out, name, value, secrecy);
    };
    let authority = given("host").unwrap_or(parts.host).as_bytes();
    field(b":method", parts.method.as_bytes());
    field(b":scheme", (if is_https { "https" } else { "http" }).as_bytes());
    if is_call {
        field(b":path", parts.target.as_bytes());
        field(b":authority", authority);
        for of in CALL_FIELDS {
            let fields = parts.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(of));
            fields.for_each(|(name, value)| pass_allowed_field(name, value, &mut field));
            if of == "user-agent" && given(of).is_none() {
                field(b"user-agent", USER_AGENT);
            }
        }
    } else {
        field(b":authority", authority);
        field(b":path", parts.target.as_bytes());
        if given("user-agent").is_none() {
            field(b"user-agent", USER_AGENT);
        }
        if given("accept").is_none() {
            field(b"accept", b"*/*");
        }
    }
    let is_written = |name: &str| is_call && CALL_FIELDS.iter().any(|of| name.eq_ignore_ascii_case(of));
    for (name, value) in parts.headers.iter().filter(|(name, _)| !is_written(name)) {
        pass_allowed_field(name, value, &mut field);
    }
    let expects_body = !parts.body.is_empty() || matches!(parts.method, "POST" | "PUT" | "PATCH");
    if expects_body && !is_call && given("content-length").is_none() {
        field(b"content-length", format_decimal(parts.body.len(), &mut [0; 20]).as_bytes());
    }
    end_head(out, from, parts.body.is_empty());
}

/// The value of the field `user-agent`, unless the user gives another value.
const USER_AGENT: &[u8] = concat!("plimsoll/", env!("CARGO_PKG_VERSION")).as_bytes();

/// Passes a header field of the user to the function `field` in its HTTP/2 form; a header field
/// that HTTP/2 forbids is dropped.
fn pass_allowed_field(name: &str, value: &str, field: &mut impl FnMut(&[u8], &[u8])) {
    let mut room = [0; NAME_BYTES];
    let long;
    let name = match room.get_mut(..name.len()) {
        Some(small) => {
            small.copy_from_slice(name.as_bytes());
            small.make_ascii_lowercase();
            &*small
        }
        None => {
            long = name.to_ascii_lowercase();
            long.as_bytes()
        }
    };
    let value = trim(value.as_bytes());
    // Fields that describe the connection are forbidden (RFC 9113, 8.2.2). A `host` field is
    // dropped, too, because the field `:authority` already contains its value.
    let dropped = is_connection_level(name)
        || name == b"host"
        || (name == b"te" && value != b"trailers")
        || (value.is_empty() && [&b"user-agent"[..], b"accept"].contains(&name));
    if !dropped {
        field(name, value);
    }
}

/// Returns whether the header fields make the request a gRPC call. A request with the content type
/// `application/grpc-web` (gRPC for browsers) uses another protocol and is not a gRPC call.
pub(crate) fn is_call(headers: &[(String, String)]) -> bool {
    let mut types = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    types.any(|(_, value)| {
        let after = value.trim().strip_prefix("application/grpc");
        after.is_some_and(|after| after.trim_start().is_empty() || after.trim_start().starts_with(['+', ';']))
    })
}

/// Decodes a head that [`write()`] encoded, and passes its fields to `each` in order. If the head
/// exceeds a size limit, `read` passes only the fields before the limit, or no field.
pub(crate) fn read(head: &[u8], each: impl FnMut(&[u8], &[u8])) {
    let mut frames = head.to_vec();
    set_stream(&mut frames, 1);
    let (mut reader, mut bytes) = (FrameReader::new(), &frames[..]);
    if let Ok(Some(H2Frame::Head { block, .. })) = reader.next(&mut bytes) {
        let block = block.unwrap_or(reader.header_block());
        let _ = HpackDecoder::new(TABLE_BYTES).decode(block, FIELDS_BYTES_MAX, each);
    }
}
