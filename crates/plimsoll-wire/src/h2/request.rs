//! A request as HTTP/2 has it: its head in frames, written once. What may be in a request is checked where HTTP/1.1 has it
//! written, since a connection may turn out to speak either.

use super::frame::write_head;
use super::head::is_of_connection;
use super::hpack::{Secrecy, write_field};
use crate::h1::{Expect, RequestParts, trim};

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

/// Appends the frames of the request's head, all of stream 0.
pub(crate) fn write(parts: &RequestParts, is_https: bool, out: &mut Vec<u8>) {
    let given = |name: &str| parts.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
    let mut block = Vec::new();
    let mut field = |name: &str, value: &str| {
        let secrecy = match name {
            "authorization" | "proxy-authorization" | "cookie" => Secrecy::NeverIndexed,
            _ => Secrecy::Plain,
        };
        write_field(&mut block, name.as_bytes(), value.as_bytes(), secrecy);
    };
    field(":method", parts.method);
    field(":scheme", if is_https { "https" } else { "http" });
    field(":authority", given("host").unwrap_or(parts.host));
    field(":path", parts.target);
    if given("user-agent").is_none() {
        field("user-agent", concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
    }
    if given("accept").is_none() {
        field("accept", "*/*");
    }
    for (name, value) in parts.headers {
        let name = name.to_ascii_lowercase();
        let value = String::from_utf8_lossy(trim(value.as_bytes()));
        // What is of the connection has no place here (RFC 9113, 8.2.2), nor has a second name of the host.
        let dropped = is_of_connection(name.as_bytes()) || name == "host" || (name == "te" && value != "trailers");
        if !dropped {
            field(&name, &value);
        }
    }
    let expects_body = !parts.body.is_empty() || matches!(parts.method, "POST" | "PUT" | "PATCH");
    if expects_body && given("content-length").is_none() {
        field("content-length", &parts.body.len().to_string());
    }
    write_head(out, &block, parts.body.is_empty());
}
