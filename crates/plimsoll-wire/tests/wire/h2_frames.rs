//! Functions that encode and decode hand-written HTTP/2 frames, and create requests, for tests.

use plimsoll_wire::h1::RequestParts;
use plimsoll_wire::h2::{Secrecy, write_field};
use plimsoll_wire::{Conn, EncodedRequest};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITY: u8 = 0x20;
pub const END_STREAM_AND_HEADERS: u8 = END_STREAM | END_HEADERS;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub fn settings_frame(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        pairs.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

pub fn encode_header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(name, value)| write_field(&mut out, name.as_bytes(), value.as_bytes(), Secrecy::Plain));
    out
}

pub fn headers_frame(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &encode_header_block(fields))
}

pub fn ok_response_frame(stream: u32) -> Vec<u8> {
    headers_frame(stream, END_STREAM, &[(":status", "200")])
}

/// Returns the first bytes that every correct server sends: settings, and the acknowledgement of
/// the client's settings.
pub fn server_preface_frames() -> Vec<u8> {
    [settings_frame(&[]), frame(SETTINGS, 1, 0, &[])].concat()
}

/// The first header field of most responses in the tests.
pub const STATUS_200_FIELD: (&str, &str) = (":status", "200");

/// Parses the frames in `bytes`: type, flags, stream, payload.
pub fn parse_frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut found = Vec::new();
    while let [a, b, c, kind, flags, w, x, y, z, rest @ ..] = bytes {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        found.push((*kind, *flags, u32::from_be_bytes([*w, *x, *y, *z]), rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    found
}

/// Returns all bytes that the connection has to send now.
pub fn take_bytes_to_send(conn: &mut Conn, asked: &EncodedRequest) -> Vec<u8> {
    let (mut scratch, mut all) = (Vec::new(), Vec::new());
    loop {
        let bytes = conn.bytes_to_send(|_| asked, &mut scratch);
        if bytes.is_empty() {
            return all;
        }
        let count = bytes.len();
        all.extend_from_slice(bytes);
        conn.record_sent(count, &scratch);
    }
}

/// Returns a POST request with these additional header fields; `is_https` says whether the request
/// is sent over TLS.
pub fn post_request(host: &str, target: &str, fields: &[(&str, &str)], body: &[u8], is_https: bool) -> EncodedRequest {
    let headers: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let parts = RequestParts { method: "POST", target, host, headers: &headers, body, keep_alive: true };
    EncodedRequest::new(&parts).expect("a request").with_h2(&parts, is_https)
}
