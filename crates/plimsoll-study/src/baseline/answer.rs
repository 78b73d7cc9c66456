//! Builds the responses of the reference server as bytes. This module does no I/O.

use super::request::{Resource, ServedRequest};
use plimsoll_sys::clock;
use plimsoll_wire::h2::Content;
use std::io::Write;

/// A piece of the response body of `/bytes/N`. The server sends this piece repeatedly until the
/// body has N bytes.
pub(super) static BODY_FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];
/// The complete response to `GET /healthz` over HTTP/1.1 with keep-alive, which the server sends
/// without formatting.
pub(super) const HEALTHZ_RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}";
pub(super) const STATUS_OK_JSON: &[u8] = b"{\"status\":\"ok\"}";

pub(super) fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        // The reason phrase of an HTTP status is only informative (RFC 9112, section 4).
        _ => ["Success", "Redirection", "Client Error", "Server Error"][(status / 100).clamp(2, 5) as usize - 2],
    }
}

pub(super) fn write(output: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = output.write_fmt(text);
}

/// Appends status line and header fields, including the final empty line.
pub(super) fn write_head(output: &mut Vec<u8>, request: &ServedRequest, status: u16, kind: &str, length: u64) {
    write(output, format_args!("HTTP/1.1 {status} {}\r\n", reason_phrase(status)));
    // Responses with status 204 or 304 have no body, and a `Content-Length` of 0 would be wrong for
    // status 304.
    if !matches!(status, 204 | 304) {
        write(output, format_args!("Content-Type: {kind}\r\nContent-Length: {length}\r\n"));
    }
    output.extend_from_slice(match (request.keep, request.is_http_1_0) {
        (false, _) => b"Connection: close\r\n\r\n".as_slice(),
        (true, true) => b"Connection: keep-alive\r\n\r\n",
        (true, false) => b"\r\n",
    });
}

/// A response before encoding: HTTP status, content type and content.
pub(super) struct UnencodedResponse {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) content: Content,
}

/// Returns the response to a request for `resource`.
pub(super) fn resource_response(resource: Resource) -> UnencodedResponse {
    let json = |status: u16, body: &[u8]| {
        let body = if matches!(status, 204 | 205 | 304) { b"" } else { body };
        UnencodedResponse { status, kind: "application/json", content: Content::Bytes(body.to_vec()) }
    };
    match resource {
        Resource::Health | Resource::Delay(_) | Resource::Burn(_) => json(200, STATUS_OK_JSON),
        Resource::Bytes(length) => {
            UnencodedResponse { status: 200, kind: "application/octet-stream", content: Content::Filling(length) }
        }
        Resource::Status(status) => json(status, &status_body(status)),
        Resource::BadNumber => json(400, BAD_NUMBER),
        Resource::Unknown => json(404, NOT_FOUND_JSON),
    }
}

const BAD_NUMBER: &[u8] = b"{\"error\":\"not a number within bounds\"}";
const NOT_FOUND_JSON: &[u8] =
    b"{\"error\":\"not found\",\"routes\":[\"/healthz\",\"/bytes/N\",\"/delay/MS\",\"/status/N\",\"/burn/US\"]}";

fn status_body(status: u16) -> [u8; 14] {
    let mut body = *b"{\"status\":000}";
    let at = body.len() - 4;
    for (place, ten) in [100, 10, 1].into_iter().enumerate() {
        body[at + place] = b'0' + (status / ten % 10) as u8;
    }
    body
}

pub(super) fn write_json(output: &mut Vec<u8>, request: &ServedRequest, status: u16, body: &[u8]) {
    let body = if matches!(status, 204 | 205 | 304) { b"" } else { body };
    write_head(output, request, status, "application/json", body.len() as u64);
    if !request.head {
        output.extend_from_slice(body);
    }
}

/// Appends a response that needs no delay to `output`. Returns the number of body bytes (from
/// `BODY_FILLER`) that the caller must send after `output`.
pub(super) fn write_answer(output: &mut Vec<u8>, request: &ServedRequest) -> u64 {
    match request.resource {
        Resource::Health | Resource::Delay(_) | Resource::Burn(_)
            if request.keep && !request.is_http_1_0 && !request.head =>
        {
            output.extend_from_slice(HEALTHZ_RESPONSE);
        }
        resource => {
            let UnencodedResponse { status, kind, content } = resource_response(resource);
            match content {
                Content::Bytes(body) => {
                    write_head(output, request, status, kind, body.len() as u64);
                    if !request.head {
                        output.extend_from_slice(&body);
                    }
                }
                Content::Filling(length) => {
                    write_head(output, request, status, kind, length);
                    let length = if request.head { 0 } else { length };
                    let now = length.min(BODY_FILLER.len() as u64 / 4);
                    output.extend_from_slice(&BODY_FILLER[..now as usize]);
                    return length - now;
                }
            }
        }
    }
    0
}

pub(super) fn write_refusal(output: &mut Vec<u8>, status: u16) {
    let closing = ServedRequest { resource: Resource::Unknown, head: false, keep: false, is_http_1_0: false };
    let body: &[u8] = match status {
        431 => b"{\"error\":\"the header is larger than 16 KiB\"}",
        _ => b"{\"error\":\"not an HTTP/1 request\"}",
    };
    write_json(output, &closing, status, body);
}

/// Uses `us` microseconds of this thread's CPU time. Unlike elapsed time, CPU time does not grow
/// while the thread is preempted.
pub(super) fn burn_cpu_time(us: u64) {
    let end_ns = clock::thread_cpu_ns() + us * 1000;
    while clock::thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}
