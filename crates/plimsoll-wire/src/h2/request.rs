//! A request as HTTP/2 has it: its head in frames, written once. What may be in a request is checked where HTTP/1.1 has it
//! written, since a connection may turn out to speak either.

use super::frame::{FrameReader, H2Frame, begin_head, end_head, set_stream};
use super::head::{FIELDS_BYTES_MAX, is_of_connection};
use super::hpack::{HpackDecoder, Secrecy, TABLE_BYTES, write_field};
use crate::h1::{Expect, RequestParts, decimal, trim};

/// A request as connections send it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct H2Request<'a> {
    /// The frames of its head, all of stream 0.
    pub(crate) head: &'a [u8],
    /// Its content.
    pub(crate) body: &'a [u8],
    /// What may be expected of its answer.
    pub(crate) expect: Expect,
}

/// The longest name of a field that is put into small letters without room of its own.
const NAME_BYTES: usize = 128;

/// Appends the frames of the request's head, all of stream 0. Requests that are filled in are written anew each time: nothing is
/// allocated but for what is in `out`, unless a name is absurdly long or the head larger than a frame.
pub(crate) fn write(parts: &RequestParts, is_https: bool, out: &mut Vec<u8>) {
    let given = |name: &str| parts.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
    let from = begin_head(out);
    let mut field = |name: &[u8], value: &[u8]| {
        let secrecy = match name {
            b"authorization" | b"proxy-authorization" | b"cookie" => Secrecy::NeverIndexed,
            _ => Secrecy::Plain,
        };
        write_field(out, name, value, secrecy);
    };
    field(b":method", parts.method.as_bytes());
    field(b":scheme", (if is_https { "https" } else { "http" }).as_bytes());
    field(b":authority", given("host").unwrap_or(parts.host).as_bytes());
    field(b":path", parts.target.as_bytes());
    if given("user-agent").is_none() {
        field(b"user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION")).as_bytes());
    }
    if given("accept").is_none() {
        field(b"accept", b"*/*");
    }
    let mut room = [0; NAME_BYTES];
    for (name, value) in parts.headers {
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
        // What is of the connection has no place here (RFC 9113, 8.2.2), nor has a second name of the host.
        let dropped = is_of_connection(name) || name == b"host" || (name == b"te" && value != b"trailers");
        if !dropped {
            field(name, value);
        }
    }
    let expects_body = !parts.body.is_empty() || matches!(parts.method, "POST" | "PUT" | "PATCH");
    if expects_body && given("content-length").is_none() {
        field(b"content-length", decimal(parts.body.len(), &mut [0; 20]).as_bytes());
    }
    end_head(out, from, parts.body.is_empty());
}

/// The fields of a head that [`write`] wrote, in order; of one that no server would take none.
pub(crate) fn read(head: &[u8], each: impl FnMut(&[u8], &[u8])) {
    let mut frames = head.to_vec();
    set_stream(&mut frames, 1);
    let (mut reader, mut bytes) = (FrameReader::new(), &frames[..]);
    if let Ok(Some(H2Frame::Head { block, .. })) = reader.next(&mut bytes) {
        let block = block.unwrap_or(reader.block());
        let _ = HpackDecoder::new(TABLE_BYTES).decode(block, FIELDS_BYTES_MAX, each);
    }
}
