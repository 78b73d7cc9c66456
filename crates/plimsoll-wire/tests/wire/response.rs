//! Tests of single responses: the rules of RFC 9112 that the parser applies, and the invalid
//! responses that the parser tolerates or refuses.
//!
//! The parser gets the bytes of every case in one piece, byte by byte, and in random splits. The
//! bytes of short cases are also split into two pieces at every position.

use crate::driver::{Outcome, Random, parse_pieces_then_close, same_in_all_splits};
use plimsoll_wire::EarlyCloseError::{NothingReceived, Truncated};
use plimsoll_wire::ProtocolError;
use plimsoll_wire::ProtocolError::{
    BadChunk, BadContentLength, BadHeader, BadStatusLine, HeadTooLarge, Surplus, TooManyInterim, UnexpectedUpgrade,
};
use plimsoll_wire::h1::{
    BLANK_LINES_MAX, CHUNK_LINE_BYTES_MAX, FeedResult, HEAD_BYTES_MAX, HEAD_LINES_MAX, INTERIM_RESPONSES_MAX,
    ResponseExpectation, ResponseParser, ResponseSummary,
};

/// The maximum length, in bytes, of inputs that are tested in every split into two pieces.
const TWO_PIECE_INPUT_BYTES_MAX: usize = 400;

#[track_caller]
fn check_outcome_in_all_splits(input: &[u8], head_request: bool, expect: Outcome) {
    let mut parser = ResponseParser::new();
    let context = input[..input.len().min(TWO_PIECE_INPUT_BYTES_MAX)].escape_ascii();
    let found = same_in_all_splits(&mut parser, head_request, input, &mut Random(1));
    assert_eq!(found, Ok(expect), "{context}");
    for at in 0..input.len().min(TWO_PIECE_INPUT_BYTES_MAX) {
        let (first, second) = input.split_at(at);
        assert_eq!(
            parse_pieces_then_close(&mut parser, head_request, [first, second]),
            Ok(expect),
            "split at {at}: {context}"
        );
    }
}

fn expected_reply(status: u16, keep_alive: bool, body_bytes: u64) -> ResponseSummary {
    ResponseSummary { status, keep_alive, body_bytes }
}

/// Checks that the whole input is one response.
#[track_caller]
fn check(input: impl AsRef<[u8]>, expect: ResponseSummary) {
    let input = input.as_ref();
    check_outcome_in_all_splits(input, false, Outcome::Reply(expect, input.len()));
    // Bytes after the response are not consumed.
    check_outcome_in_all_splits(
        &[input, b"HTTP/1.1 200 OK\r\n\r\n"].concat(),
        false,
        Outcome::Reply(expect, input.len()),
    );
}

#[track_caller]
fn check_head_request_response(input: &str, expect: ResponseSummary) {
    check_outcome_in_all_splits(input.as_bytes(), true, Outcome::Reply(expect, input.len()));
}

#[track_caller]
fn check_until_close(input: &str, expect: ResponseSummary) {
    check_outcome_in_all_splits(input.as_bytes(), false, Outcome::ReplyAtClose(expect));
}

#[track_caller]
fn check_refused(input: impl AsRef<[u8]>, expect: ProtocolError) {
    check_outcome_in_all_splits(input.as_ref(), false, Outcome::Refused(expect));
}

#[track_caller]
fn check_truncated(input: &str) {
    check_outcome_in_all_splits(input.as_bytes(), false, Outcome::Cut(Truncated));
}

/// Returns a response that has the header lines `lines` and no content.
fn response_with_headers(lines: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n")
}

#[test]
fn status_lines_parse_or_fail() {
    for line in ["HTTP/1.1 200 OK", "HTTP/1.1 200 ", "HTTP/1.1 200", "HTTP/1.1 200 Très bien", "HTTP/1.1 200 a\tb: c"]
    {
        check(format!("{line}\r\nContent-Length: 0\r\n\r\n"), expected_reply(200, true, 0));
        check(format!("{line}\nContent-Length: 0\n\n"), expected_reply(200, true, 0));
    }
    for status in [200, 201, 204, 299, 304, 404, 500, 599, 600, 999] {
        check(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"), expected_reply(status, true, 0));
    }
    for line in [
        "HTTP/2.0 200 OK",
        "HTTP/1.2 200 OK",
        "HTTP/0.9 200 OK",
        "HTTP/1.10 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 2x0 OK",
        "HTTP/1.1 -20 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 ",
        " HTTP/1.1 200 OK",
        "GET / HTTP/1.1",
        "ICY 200 OK",
        "<html>",
        "\0",
    ] {
        check_refused(format!("{line}\r\nContent-Length: 0\r\n\r\n"), BadStatusLine);
    }
}

#[test]
fn another_protocol_is_refused_before_its_first_line_ends() {
    for (greeting, refused) in
        [("S", true), ("SSH-2.0", true), ("HTTP/2", true), ("\x15\x03\x01", true), ("HTTP/1.1 1", false), ("H", false)]
    {
        let fed = ResponseParser::new().feed(greeting.as_bytes());
        let expect = FeedResult { consumed: greeting.len(), content_bytes: 0, response: None };
        assert_eq!(fed, if refused { Err(BadStatusLine) } else { Ok(expect) }, "{greeting}");
    }
}

#[test]
fn leading_blank_lines_are_limited() {
    let rest = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    for blanks in ["\r\n", "\n", "\r\n\r\n", "\n\r\n"] {
        check(format!("{blanks}{rest}"), expected_reply(200, true, 1));
    }
    let too_many = "\r\n".repeat(usize::from(BLANK_LINES_MAX) + 1);
    check_refused(format!("{too_many}{rest}"), BadStatusLine);
    check_refused(format!("\r{rest}"), BadStatusLine);
    check_refused(format!("\r\r\n{rest}"), BadStatusLine);
    check_truncated("\r\n");
    check_truncated("\r");
}

#[test]
fn content_lengths_parse_or_fail() {
    check(response_with_headers("Content-Length: 5\r\n") + "hello", expected_reply(200, true, 5));
    check(response_with_headers("cOnTeNt-LeNgTh:\t5 \t\r\n") + "hello", expected_reply(200, true, 5));
    check(response_with_headers("Content-Length:5\r\n") + "hello", expected_reply(200, true, 5));
    check(response_with_headers("Content-Length: 005\r\n") + "hello", expected_reply(200, true, 5));
    check(response_with_headers("Content-Length: 5, 5\r\n") + "hello", expected_reply(200, true, 5));
    check(
        response_with_headers("Content-Length: 5\r\nX: y\r\nContent-Length: 5 ,5\r\n") + "hello",
        expected_reply(200, true, 5),
    );
    check_truncated(&(response_with_headers("Content-Length: 5\r\n") + "hell"));
    check_truncated(&response_with_headers("Content-Length: 18446744073709551615\r\n"));
    for value in [
        "",
        " ",
        "-1",
        "+5",
        "5x",
        "0x5",
        "5 5",
        "5.0",
        "5,",
        ",5",
        "5,,5",
        "5, 6",
        "five",
        "18446744073709551616",
        "5;q",
        "99999999999999999999999",
    ] {
        check_refused(response_with_headers(&format!("Content-Length: {value}\r\n")), BadContentLength);
    }
    check_refused(response_with_headers("Content-Length: 5\r\nContent-Length: 6\r\n"), BadContentLength);
    // The parser ignores header names that only resemble `Content-Length`.
    for name in ["Content-Lengtn", "XContent-Length", "Content_Length", "Content\u{2d}Lengths", "Content.Length"] {
        check_until_close(&response_with_headers(&format!("{name}: x\r\n")), expected_reply(200, false, 0));
    }
}

#[test]
fn bodies_without_a_length_end_at_close() {
    check_until_close(&response_with_headers(""), expected_reply(200, false, 0));
    check_until_close(&(response_with_headers("Connection: keep-alive\r\n") + "hello"), expected_reply(200, false, 5));
    check_until_close("HTTP/1.0 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", expected_reply(200, false, 19));
    check_until_close(
        &(response_with_headers("Transfer-Encoding: gzip\r\nContent-Length: 2\r\n") + "hello"),
        expected_reply(200, false, 5),
    );
    check_until_close(
        &(response_with_headers("Transfer-Encoding: chunked, gzip\r\n") + "0\r\n\r\n"),
        expected_reply(200, false, 5),
    );
    check_until_close(&(response_with_headers("Transfer-Encoding:\r\n") + "hello"), expected_reply(200, false, 5));
}

#[test]
fn bodyless_responses_are_recognised() {
    for status in [204, 304] {
        check(format!("HTTP/1.1 {status} X\r\nContent-Length: 7\r\n\r\n"), expected_reply(status, true, 0));
        check(format!("HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n"), expected_reply(status, true, 0));
        check(format!("HTTP/1.1 {status} X\r\n\r\n"), expected_reply(status, true, 0));
        check(format!("HTTP/1.0 {status} X\r\n\r\n"), expected_reply(status, false, 0));
    }
    check_head_request_response(&response_with_headers("Content-Length: 7\r\n"), expected_reply(200, true, 0));
    check_head_request_response(&response_with_headers("Transfer-Encoding: chunked\r\n"), expected_reply(200, true, 0));
    check_head_request_response(&response_with_headers(""), expected_reply(200, true, 0));
    check_head_request_response(&response_with_headers("Connection: close\r\n"), expected_reply(200, false, 0));
    check_head_request_response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 X\r\n\r\n", expected_reply(404, true, 0));
}

#[test]
fn connection_header_decides_reuse() {
    for (version, lines, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "connection: CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: Upgrade, \tclose ,\r\n", false),
        ("1.1", "Connection: X\r\nConnection: close\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection: not close\r\n", true),
        ("1.1", "Connection:\r\n", true),
        ("1.1", "Proxy-Connection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: X,keep-alive\r\n", true),
        ("1.0", "Connection: close, keep-alive\r\n", false),
        ("1.0", "Connection: keep-alives\r\n", false),
    ] {
        check(format!("HTTP/{version} 200 OK\r\n{lines}Content-Length: 0\r\n\r\n"), expected_reply(200, keep_alive, 0));
    }
}

#[test]
fn interim_responses_are_skipped() {
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    check(format!("HTTP/1.1 100 Continue\r\n\r\n{last}"), expected_reply(200, true, 1));
    // The header fields of an interim response do not affect the final response.
    check(
        format!(
            "HTTP/1.0 102\r\nContent-Length: 9\r\nConnection: close\r\n\r\n\r\nHTTP/1.1 103 Early Hints\r\n\
             Transfer-Encoding: chunked\r\n\r\n{last}"
        ),
        expected_reply(200, true, 1),
    );
    let interim = "HTTP/1.1 199 X\r\n\r\n";
    let most = usize::from(INTERIM_RESPONSES_MAX);
    check(interim.repeat(most) + last, expected_reply(200, true, 1));
    check_refused(interim.repeat(most + 1) + last, TooManyInterim);
    check_refused(format!("HTTP/1.1 101 Switching Protocols\r\n\r\n{last}"), UnexpectedUpgrade);
    check_refused(format!("{interim}HTTP/1.1 101 Switching Protocols\r\n\r\n{last}"), UnexpectedUpgrade);
    check_truncated(interim);
}

#[test]
fn header_lines_parse_or_fail() {
    check(
        response_with_headers("A:\r\nB: \r\n!#$%&'*+-.^_`|~09azAZ: x\r\nContent-Length: 0\r\n"),
        expected_reply(200, true, 0),
    );
    check(
        response_with_headers("A: grüß \u{1} \u{7f} : \t\"x\"\r\nContent-Length: 0\r\n"),
        expected_reply(200, true, 0),
    );
    check("HTTP/1.1 200 OK\nA: b\r\nContent-Length: 1\n\nx", expected_reply(200, true, 1));
    for line in [
        ": x",
        "A",
        "A b: x",
        "A : x",
        "A\t: x",
        "Ä: x",
        "(A): x",
        "A: \0",
        "A: x\ry",
        "A: \r\r",
        "\0",
        "\rA: x",
        "\r",
        "A\0: x",
        "Content-Length : 0",
        "averylongheadername\u{e9}: x",
        "HTTP/1.1 200 OK",
    ] {
        check_refused(response_with_headers(&format!("{line}\r\nContent-Length: 0\r\n")), BadHeader);
    }
}

#[test]
fn header_names_and_values_accept_only_valid_bytes() {
    // The header names and values are so long that the parser reads them eight bytes at a time as
    // well as byte by byte.
    for byte in 0..=255u8 {
        let line = |before: &[u8], after: &[u8]| [b"HTTP/1.1 204 X\r\n", before, &[byte], after, b"\r\n\r\n"].concat();
        for (before, after) in [("", "X-A-Long-Name: x"), ("X-A", "Long-Name: x"), ("X-A-Long-Name-", "x: x")] {
            let input = line(before.as_bytes(), after.as_bytes());
            match byte {
                // A colon after the first byte ends the header name. A colon as the first byte
                // starts a line without a name, which is refused.
                b':' if !before.is_empty() => check(input, expected_reply(204, true, 0)),
                b'\n' if before.is_empty() => {
                    check_outcome_in_all_splits(&input, false, Outcome::Reply(expected_reply(204, true, 0), 17))
                }
                b if b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b) => {
                    check(input, expected_reply(204, true, 0))
                }
                _ => check_refused(input, BadHeader),
            }
        }
        for (before, after) in [("A: ", "a long value"), ("A: a lo", "ng value"), ("A: a long value", "")] {
            let input = line(before.as_bytes(), after.as_bytes());
            match byte {
                0 | b'\r' => check_refused(input, BadHeader),
                // The bytes after a line feed form a separate line: an invalid header line, or the
                // empty line that ends the head.
                b'\n' if after.is_empty() => check_outcome_in_all_splits(
                    &input,
                    false,
                    Outcome::Reply(expected_reply(204, true, 0), input.len() - 2),
                ),
                b'\n' => check_refused(input, BadHeader),
                _ => check(input, expected_reply(204, true, 0)),
            }
        }
    }
}

#[test]
fn folded_header_lines_parse_or_fail() {
    check(response_with_headers("A: x\r\n y\r\n\t: z\r\n \r\nContent-Length: 0\r\n"), expected_reply(200, true, 0));
    check(response_with_headers("A: x\r\n Content-Length: 7\r\nContent-Length: 0\r\n"), expected_reply(200, true, 0));
    check_refused(response_with_headers(" x\r\nContent-Length: 0\r\n"), BadHeader);
    check_refused(response_with_headers("A: x\r\n y\0\r\nContent-Length: 0\r\n"), BadHeader);
    for field in ["Content-Length: 1", "Transfer-Encoding: chunked", "Connection: x"] {
        check_refused(response_with_headers(&format!("{field}\r\n 0\r\n")), BadHeader);
    }
}

#[test]
fn chunked_bodies_parse_or_fail() {
    let chunked = response_with_headers("Transfer-Encoding: chunked\r\n");
    for (body, bytes) in [
        ("0\r\n\r\n", 0),
        ("5\r\nhello\r\n0\r\n\r\n", 5),
        ("5\nhello\n0\n\n", 5),
        ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 5),
        ("a\r\n0123456789\r\n00\r\n\r\n", 10),
        ("A;name=value;x=\"y z\"\r\n0123456789\r\n0;last\r\n\r\n", 10),
        ("0001  \r\nx\r\n0 \t;e\r\n\r\n", 1),
        ("2\r\n\r\n\r\n0\r\n\r\n", 2),
        ("1\r\nx\r\n0\r\nA: b\r\nContent-Length: 9\r\n\r\n", 1),
        ("0\r\nnot checked\n\n", 0),
    ] {
        check(format!("{chunked}{body}"), expected_reply(200, true, bytes));
    }
    for lines in [
        "Transfer-Encoding: gzip, Chunked\r\n",
        "transfer-encoding:chunked ,\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        check(response_with_headers(lines) + "1\r\nx\r\n0\r\n\r\n", expected_reply(200, true, 1));
    }
    // A response with both lengths, or with chunks in HTTP/1.0, may be smuggled or garbled. After
    // such a response, the connection is not used again.
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
    check(response_with_headers(both) + "1\r\nx\r\n0\r\n\r\n", expected_reply(200, false, 1));
    check(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        expected_reply(200, false, 1),
    );
    for body in [
        "\r\n\r\n",
        ";\r\n",
        " 1\r\nx\r\n",
        "-1\r\n",
        "+1\r\nx\r\n",
        "0x1\r\nx\r\n",
        "g\r\n",
        "1 1\r\nx\r\n",
        "1\r\nxy\r\n",
        "1\r\nx\r\r\n",
        "1\rx",
        "1\r\nx0\r\n\r\n",
        "10000000000000000\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
        "0\r\n\rx",
        "1\r\nx\r\n\r\n",
    ] {
        check_refused(format!("{chunked}{body}"), BadChunk);
    }
    for body in
        ["", "5", "5\r", "5\r\n", "5\r\nhell", "5\r\nhello", "5\r\nhello\r\n", "0\r\n", "0\r\nA: b\r\n", "0\r\n\r"]
    {
        check_truncated(&format!("{chunked}{body}"));
    }
    check_truncated(&format!("{chunked}FFFFFFFFFFFFFFFF\r\nx"));
}

#[test]
fn head_limits_are_enforced() {
    let start = "HTTP/1.1 204 X\r\n";
    let sized = |bytes: usize| {
        let rest = bytes - start.len() - "A: \r\n\r\n".len();
        format!("{start}A: {}\r\n\r\n", "x".repeat(rest))
    };
    check(sized(HEAD_BYTES_MAX), expected_reply(204, true, 0));
    check_refused(sized(HEAD_BYTES_MAX + 1), HeadTooLarge);
    check_refused(sized(HEAD_BYTES_MAX + 2), HeadTooLarge);
    check_refused(sized(HEAD_BYTES_MAX * 2), HeadTooLarge);
    // A header line or status line without an end is refused as soon as the head exceeds its size
    // limit.
    check_refused(format!("{start}A: {}", "x".repeat(HEAD_BYTES_MAX)), HeadTooLarge);
    check_refused(format!("{start}{}", "x".repeat(HEAD_BYTES_MAX)), HeadTooLarge);
    check_refused(format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX)), HeadTooLarge);
    check_refused(format!("HTTP/1.1 099 {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX)), BadStatusLine);
    // The head is malformed (a NUL byte) and also too large. Every split of the bytes reports
    // `HeadTooLarge`.
    check_refused(format!("{start}A: \0{}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX)), HeadTooLarge);

    let most = usize::from(HEAD_LINES_MAX);
    check(format!("{start}{}\r\n", "A: b\r\n".repeat(most)), expected_reply(204, true, 0));
    check_refused(format!("{start}{}\r\n", "A: b\r\n".repeat(most + 1)), HeadTooLarge);
    check_refused(format!("{start}A: b\r\n{}\r\n", " c\r\n".repeat(most)), HeadTooLarge);
    // Each head, interim or final, has its own limit.
    let interim = format!("HTTP/1.1 103 X\r\n{}\r\n", "A: b\r\n".repeat(most));
    check(format!("{interim}{interim}{}", sized(HEAD_BYTES_MAX)), expected_reply(204, true, 0));
}

#[test]
fn chunk_framing_limits_are_enforced() {
    let chunked = response_with_headers("Transfer-Encoding: chunked\r\n");
    let line = |bytes: usize| format!("{chunked}1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(bytes - "1;\r\n".len()));
    check(line(CHUNK_LINE_BYTES_MAX), expected_reply(200, true, 1));
    check_refused(line(CHUNK_LINE_BYTES_MAX + 1), BadChunk);
    let zeros = |bytes: usize| format!("{chunked}{}1\r\nx\r\n0\r\n\r\n", "0".repeat(bytes - "1\r\n".len()));
    check(zeros(CHUNK_LINE_BYTES_MAX), expected_reply(200, true, 1));
    check_refused(zeros(CHUNK_LINE_BYTES_MAX + 1), BadChunk);
    let trailers = |bytes: usize| format!("{chunked}0\r\n{}\r\n\r\n", "t".repeat(bytes - "\r\n\r\n".len()));
    check(trailers(HEAD_BYTES_MAX), expected_reply(200, true, 0));
    check_refused(trailers(HEAD_BYTES_MAX + 1), HeadTooLarge);
    let most = usize::from(HEAD_LINES_MAX);
    check(format!("{chunked}0\r\n{}\r\n", "A: b\r\n".repeat(most)), expected_reply(200, true, 0));
    check_refused(format!("{chunked}0\r\n{}\r\n", "A: b\r\n".repeat(most + 1)), HeadTooLarge);
}

#[test]
fn truncated_responses_are_detected() {
    check_outcome_in_all_splits(b"", false, Outcome::Cut(NothingReceived));
    for input in ["H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "HTTP/1.1 204 X\r\n\r"] {
        check_truncated(input);
    }
}

#[test]
fn one_parser_reads_all_responses_of_a_connection() {
    let mut parser = ResponseParser::default();
    assert!(!parser.has_received_bytes());
    assert_eq!(parser.feed(b""), Ok(FeedResult { consumed: 0, content_bytes: 0, response: None }));
    assert!(!parser.has_received_bytes());
    for body in ["", "x", "longer"] {
        parser.begin(ResponseExpectation::default());
        assert!(!parser.has_received_bytes());
        assert_eq!(parser.clone().finish(), Err(NothingReceived));
        let input = response_with_headers(&format!("Content-Length: {}\r\n", body.len())) + body;
        assert_eq!(
            parser.feed(&input.as_bytes()[..9]),
            Ok(FeedResult { consumed: 9, content_bytes: 0, response: None })
        );
        assert!(parser.has_received_bytes());
        let expect = FeedResult {
            consumed: input.len() - 9,
            content_bytes: body.len(),
            response: Some(expected_reply(200, true, body.len() as u64)),
        };
        assert_eq!(parser.feed(&input.as_bytes()[9..]), Ok(expect));
        // Between two responses, a close of the connection belongs to no response, and any received
        // bytes are unsolicited.
        assert_eq!(parser.clone().finish(), Err(NothingReceived));
        assert_eq!(parser.clone().feed(b""), Ok(FeedResult { consumed: 0, content_bytes: 0, response: None }));
        assert_eq!(parser.clone().feed(b"x"), Err(Surplus));
    }
    // The parser is used again after a response that is abandoned within a line, within a body, or
    // after an error.
    for left_behind in ["HTTP/1.1 200 OK\r\nConte", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "garbage"] {
        parser.begin(ResponseExpectation { head_request: true, ..ResponseExpectation::default() });
        let _ = parser.feed(left_behind.as_bytes());
        parser.begin(ResponseExpectation::default());
        let input = response_with_headers("Content-Length: 1\r\n") + "x";
        assert_eq!(
            parser.feed(input.as_bytes()),
            Ok(FeedResult { consumed: input.len(), content_bytes: 1, response: Some(expected_reply(200, true, 1)) }),
            "{left_behind}"
        );
    }
}

#[test]
fn a_large_body_is_counted_and_discarded() {
    let mut parser = ResponseParser::new();
    let megabyte = vec![b'x'; 1 << 20];
    let count = 256;
    let head = response_with_headers(&format!("Content-Length: {}\r\n", count << 20));
    assert_eq!(parser.feed(head.as_bytes()), Ok(FeedResult { consumed: head.len(), content_bytes: 0, response: None }));
    let mut last = None;
    for _ in 0..count {
        let fed = parser.feed(&megabyte).expect("the body is valid");
        assert_eq!(fed.consumed, megabyte.len());
        assert_eq!(last.replace(fed.response).flatten(), None);
    }
    assert_eq!(last.flatten(), Some(expected_reply(200, true, count << 20)));
}

#[test]
fn response_errors_are_sentences() {
    assert_eq!(BadStatusLine.to_string(), "the response does not start with an HTTP/1.0 or HTTP/1.1 status line");
    // The error texts state the limits of heads and of interim responses as numbers.
    assert_eq!((HEAD_BYTES_MAX, HEAD_LINES_MAX, INTERIM_RESPONSES_MAX), (64 << 10, 256, 64));
    assert!(HeadTooLarge.to_string().contains("64 KiB or 256 lines"));
    assert!(TooManyInterim.to_string().contains("64 interim"));
    assert_eq!(Truncated.to_string(), "the server closed the connection in the middle of a response");
}
