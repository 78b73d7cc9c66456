//! Measures the CPU time for each parsed reply, in ns: `cargo run --release -p plimsoll-wire
//! --example parse_ns [replies]`.
//!
//! This program measures the parser alone, on replies in the CPU cache. Interference by other
//! processes can only slow a round of parsing, so the fastest of several rounds is the result. Not
//! here: the cost of receiving a reply, which arises in the kernel and is many times larger.

#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

use plimsoll_wire::h1::{RequestParts, ResponseExpectation, ResponseParser, encode};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 9;

/// A response as nginx writes it, with header fields and a small body.
const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.24.0 (Ubuntu)\r\nDate: Tue, 02 Jan 2024 15:04:05 GMT\r\n\
    Content-Type: application/json\r\nContent-Length: 15\r\nConnection: keep-alive\r\nX-Request-Id: 4f1c2d3e\r\n\r\n\
    {\"status\":\"ok\"}";

/// A chunked reply, as written by a Go server that does not know the length of the body.
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Date: Tue, 02 Jan 2024 15:04:05 GMT\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nhello, \r\n6\r\nworld!\r\n0\r\n\r\n";

fn main() {
    let replies = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    print_parse_time("6 headers, 15 bytes, one read", NGINX, NGINX.len(), replies);
    print_parse_time("the same, split in the head", NGINX, 100, replies);
    print_parse_time("the same, byte by byte", NGINX, 1, replies / 10);
    print_parse_time("chunked, one read", CHUNKED, CHUNKED.len(), replies);

    let headers = [("Authorization".to_owned(), "Bearer 0123456789".to_owned())];
    let parts = RequestParts {
        method: "GET",
        target: "/healthz",
        host: "127.0.0.1:8080",
        headers: &headers,
        body: b"",
        keep_alive: true,
    };
    print_ns("encode (once a run)", replies / 10, || {
        black_box(encode(black_box(&parts))).expect("the request is valid");
    });
}

fn print_parse_time(name: &str, reply: &[u8], piece: usize, replies: u32) {
    let mut parser = ResponseParser::new();
    print_ns(name, replies, || {
        parser.begin(black_box(ResponseExpectation::default()));
        let mut last = None;
        for bytes in black_box(reply).chunks(piece) {
            last = parser.feed(bytes).expect("the reply is valid").response;
        }
        black_box(last.expect("the reply is complete"));
    });
}

fn print_ns(name: &str, times: u32, mut work: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                work();
            }
            start.elapsed()
        })
        .min()
        .expect("there is a round");
    println!("{name:<32} {:>8.1} ns", best.as_nanos() as f64 / f64::from(times.max(1)));
}
