//! Tests of whole connections, plain and over TLS: the reported events of responses, for any split
//! of the bytes.

use crate::driver::{Random, ReportedEvents, record_event, request, same_events_in_all_splits};
use crate::tls::{tls_client_spec, tls_test_server};
use plimsoll_model::{TlsFailure, TlsSpec};
use plimsoll_wire::tls::Client;
use plimsoll_wire::{Conn, ConnectionEvent, EarlyCloseError, EncodedRequest, ExchangeError, ProtocolError};
use rustls::ServerConnection;
use std::io::{Read, Write};
use std::sync::Arc;

#[test]
fn responses_become_the_expected_events() {
    let protocol = |error: ProtocolError| Err(ExchangeError::Protocol(error));
    let end = |error: EarlyCloseError| Err(ExchangeError::End(error));
    for (method, bytes, answer, content, surplus) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Ok((200, 5)), "hello", 0),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloworld", Ok((200, 5)), "hello", 5),
        ("GET", "HTTP/1.1 204 No\r\n\r\n", Ok((204, 0)), "", 0),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Ok((200, 0)), "", 0),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x\r\n world\r\n0\r\nA: b\r\n\r\n",
            Ok((200, 11)),
            "hello world",
            0,
        ),
        ("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 \r\n\r\nuntil close", Ok((500, 11)), "until close", 0),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", end(EarlyCloseError::Truncated), "hel", 0),
        ("GET", "", end(EarlyCloseError::NothingReceived), "", 0),
        ("GET", "SSH-2.0-OpenSSH\r\n", protocol(ProtocolError::BadStatusLine), "", 0),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", protocol(ProtocolError::BadChunk), "", 0),
    ] {
        let heard = same_events_in_all_splits(method, bytes.as_bytes(), &mut Random(1)).expect(bytes);
        assert_eq!((heard.answer, heard.surplus), (Some(answer), surplus), "{bytes}");
        assert_eq!(String::from_utf8_lossy(&heard.content), content, "{bytes}");
    }
}

fn send_whole_request(conn: &mut Conn, request: &EncodedRequest) {
    let mut scratch = Vec::new();
    let count = conn.bytes_to_send(|_| request, &mut scratch).len();
    assert!(conn.record_sent(count, &scratch));
    assert!(conn.bytes_to_send(|_| request, &mut scratch).is_empty());
}

#[test]
fn a_connection_is_reused_while_both_sides_allow() {
    let asked = request("GET", b"", false);
    let (mut conn, mut plain) = (Conn::new(), Vec::new());
    for number in 1..4 {
        assert!(conn.exchanges_available() == 1 && !conn.is_busy());
        conn.start(number, &asked);
        assert!(conn.exchanges_available() == 0 && conn.is_busy());
        send_whole_request(&mut conn, &asked);
        let mut received = conn.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &mut plain);
        assert!(
            matches!(conn.next(&mut received), Some(ConnectionEvent::Answered { exchange, .. }) if exchange == number)
        );
        assert!(received.is_empty() && !conn.is_over());
    }
    // The response came before the request was sent completely. If the client sent the rest of the
    // request, the server would take the rest for the next request.
    conn.start(4, &asked);
    let mut received = conn.receive(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", &mut plain);
    assert!(matches!(conn.next(&mut received), Some(ConnectionEvent::Answered { exchange: 4, status: 413, .. })));
    assert!(conn.is_over() && conn.exchanges_available() == 0);
    // A cancelled exchange may still get a response, so no further exchange can follow.
    let mut conn = Conn::new();
    conn.start(5, &asked);
    conn.cancel(5);
    assert!(conn.is_over() && conn.exchanges_available() == 0 && conn.abandon_next_exchange().is_none());
    // No exchange can follow bytes that arrive without a request.
    let mut conn = Conn::new();
    let mut received = conn.receive(b"HTTP/1.1 408 Timeout\r\n\r\n", &mut plain);
    assert_eq!(conn.next(&mut received), Some(ConnectionEvent::Surplus(b"HTTP/1.1 408 Timeout\r\n\r\n")));
    assert!(conn.is_over() && received.is_empty());
}

/// The way in which the server ends a response over TLS.
#[derive(Clone, Copy, PartialEq)]
enum TlsStreamEnd {
    Open,
    Notified,
    Cut,
}

/// Sends a request over TLS. The simulated network accepts and delivers pieces of up to `longest`
/// bytes. Returns everything that the connection reported about the response.
fn over_tls(
    client: &Client,
    asked: &EncodedRequest,
    answer: &[u8],
    end: TlsStreamEnd,
    random: &mut Random,
    longest: usize,
) -> ReportedEvents {
    let mut conn = Conn::over_tls(client, 1).expect("a connection");
    let mut server = ServerConnection::new(Arc::clone(&tls_test_server().config)).expect("a server");
    server.set_buffer_limit(None);
    let (mut scratch, mut plain, mut heard_there) = (Vec::new(), Vec::new(), Vec::new());
    let (mut heard, mut stands, mut answered, mut owed) = (ReportedEvents::default(), false, false, 0);
    assert_eq!(conn.exchanges_available(), 0);
    for _ in 0..100_000 {
        let bytes = conn.bytes_to_send(|_| asked, &mut scratch);
        let count = bytes.len().min(1 + random.below(longest));
        let mut taken = &bytes[..count];
        while !taken.is_empty() {
            server.read_tls(&mut taken).expect("memory");
            server.process_new_packets().expect("TLS");
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = server.reader().read(&mut buffer) {
                heard_there.extend_from_slice(&buffer[..count]);
            }
        }
        conn.record_sent(count, &scratch);
        if heard_there == asked.h1() && !answered {
            answered = true;
            server.writer().write_all(answer).expect("memory");
            if end == TlsStreamEnd::Notified {
                server.send_close_notify();
            }
        }
        let mut back = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut back).expect("memory");
        }
        let mut rest = &back[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + random.below(longest)));
            rest = after;
            let mut received = conn.receive(piece, &mut plain);
            while let Some(event) = conn.next(&mut received) {
                match event {
                    ConnectionEvent::HandshakeDone { resumed: false } => {
                        assert!(!std::mem::replace(&mut stands, true) && conn.exchanges_available() == 1);
                        conn.start(7, asked);
                    }
                    // The loop sends the bytes that `HasBytesToSend` announces together with the
                    // bytes of the request.
                    ConnectionEvent::HasBytesToSend => owed += 1,
                    ConnectionEvent::TlsStreamEnded => {
                        if let Some(event) = conn.end_by_peer() {
                            record_event(&mut heard, event).expect("an end");
                        }
                        assert!(conn.is_over());
                        return heard;
                    }
                    other => assert!(record_event(&mut heard, other).expect("an order")),
                }
            }
        }
        if answered && end == TlsStreamEnd::Cut {
            record_event(&mut heard, conn.end_by_peer().expect("something was under way")).expect("an end");
            return heard;
        }
        if heard.answer.is_some() && end == TlsStreamEnd::Open {
            assert!(conn.exchanges_available() == 1 && owed > 0, "the end of the handshake is owed");
            return heard;
        }
    }
    panic!("no end: {heard:?}");
}

#[test]
fn events_over_tls_do_not_depend_on_splits() {
    let seed = crate::seed();
    let mut random = Random(seed);
    let client = Client::new(&TlsSpec { resume: false, ..tls_client_spec() }).expect("a client");
    let body: String = (0..20_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let chunks =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let close = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    let asked = request("POST", &vec![b'q'; 150_000], true);
    let whole = Ok((200, body.len() as u64));
    for longest in [1 << 20, 20_000, 700] {
        for (answer, end, expect) in [
            (&length, TlsStreamEnd::Open, whole),
            (&chunks, TlsStreamEnd::Open, whole),
            (&length, TlsStreamEnd::Notified, whole),
            (&close, TlsStreamEnd::Notified, whole),
            // The end of the TLS stream is not authenticated, so an attacker could have cut the
            // response.
            (&close, TlsStreamEnd::Cut, Err(EarlyCloseError::Truncated.into())),
        ] {
            let heard = over_tls(&client, &asked, answer.as_bytes(), end, &mut random, longest);
            assert_eq!(heard.answer, Some(expect), "PLIMSOLL_SEED={seed}, pieces of {longest}");
            assert!(heard.content == body.as_bytes(), "PLIMSOLL_SEED={seed}, pieces of {longest}");
        }
    }
}

#[test]
fn a_tls_failure_is_reported_and_alerts_the_peer() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let (mut conn, mut scratch, mut plain) =
        (Conn::over_tls(&client, 1).expect("a connection"), Vec::new(), Vec::new());
    let asked = request("GET", b"", false);
    let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
    conn.record_sent(count, &scratch);
    let mut received = conn.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut plain);
    assert_eq!(conn.next(&mut received), Some(ConnectionEvent::TlsFailed(TlsFailure::NotTls)));
    assert!(received.is_empty() && conn.next(&mut received).is_none());
    assert!(!conn.bytes_to_send(|_| &asked, &mut scratch).is_empty());
}
