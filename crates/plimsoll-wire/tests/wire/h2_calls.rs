//! Tests of gRPC calls over HTTP/2 against frames written by hand. The tests check the header
//! fields of calls, the ends of calls, and request messages that wait for response messages.

use crate::driver::request;
use crate::h2_frames::{
    DATA, END_HEADERS, END_STREAM, HEADERS, STATUS_200_FIELD, frame, headers_frame, parse_frames, post_request,
    server_preface_frames, take_bytes_to_send,
};
use plimsoll_model::CallFault;
use plimsoll_wire::h2::CONNECTION_PREFACE;
use plimsoll_wire::{Conn, ConnectionEvent, EncodedRequest};

#[test]
fn the_call_status_is_reported_with_the_response() {
    let check = |pieces: &[Vec<u8>], grpc_status: Option<u16>| {
        let asked = request("GET", b"", false);
        // Each connection gets the response twice, because the client does not parse a head again
        // that equals the previous head.
        for _ in 0..2 {
            let (mut conn, mut scratch, mut plain) = (Conn::h2(1), Vec::new(), Vec::new());
            for (number, id) in [(0, 1u8), (1, 3)] {
                conn.start(number, &asked);
                let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
                conn.record_sent(count, &scratch);
                let mut bytes = if number == 0 { server_preface_frames() } else { Vec::new() };
                for piece in pieces {
                    let mut piece = piece.clone();
                    piece[8] = id;
                    bytes.extend(piece);
                }
                let mut received = conn.receive(&bytes, &mut plain);
                let mut told = None;
                while let Some(event) = conn.next(&mut received) {
                    match event {
                        ConnectionEvent::Answered { grpc_status, status: 200, .. } => told = Some(grpc_status),
                        ConnectionEvent::Piece { .. } | ConnectionEvent::HasBytesToSend => {}
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(told, Some(grpc_status), "{pieces:?}");
                let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
                conn.record_sent(count, &scratch);
            }
        }
    };
    let trailers = |status: &str| headers_frame(1, END_STREAM, &[("grpc-status", status), ("grpc-message", "x")]);
    let message = frame(DATA, 0, 1, &[0, 0, 0, 0, 1, 8]);
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), trailers("0")], Some(0));
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), trailers("14")], Some(14));
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), trailers("70000")], None);
    for status in ["", "+0", "-0", "0x0", "0,0", "OK"] {
        check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), trailers(status)], None);
    }
    let twice =
        |first: &str, second: &str| headers_frame(1, END_STREAM, &[("grpc-status", first), ("grpc-status", second)]);
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), twice("13", "0")], None);
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), message.clone(), twice("0", "0")], Some(0));
    // If a response has no content, its head contains the gRPC status.
    check(&[headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("grpc-status", "5")])], Some(5));
    check(&[headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, END_STREAM, 1, b"no gRPC")], None);
}

/// The header field that makes a request a gRPC call.
const GRPC_CONTENT_TYPE: (&str, &str) = ("content-type", "application/grpc");

/// Returns a gRPC message of `bytes` bytes, with the prefix that contains its length.
fn grpc_message(bytes: usize) -> Vec<u8> {
    [&[0][..], &(bytes as u32).to_be_bytes(), &vec![b'm'; bytes]].concat()
}

/// Returns a gRPC call with these request messages.
fn grpc_call(messages: &[Vec<u8>]) -> EncodedRequest {
    post_request("h", "/shop.Items/Chat", &[GRPC_CONTENT_TYPE], &messages.concat(), false)
}

#[test]
fn invalid_messages_turn_status_ok_into_internal() {
    let one = |flag: u8| [&[flag][..], &grpc_message(3)[1..]].concat();
    let call = || grpc_call(&[grpc_message(1)]);
    let takes = |coding: &str| {
        post_request("h", "/s/m", &[GRPC_CONTENT_TYPE, ("grpc-accept-encoding", coding)], &grpc_message(1), false)
    };
    let encoding = |name: &'static str| vec![STATUS_200_FIELD, ("grpc-encoding", name)];
    let (none, two) = (Vec::new(), [one(0), one(0)].concat());
    for (asked, fields, content, fault) in [
        (call(), vec![STATUS_200_FIELD], none.clone(), None),
        (call(), vec![STATUS_200_FIELD], two.clone(), None),
        (call().with_messages_in_turn(), vec![STATUS_200_FIELD], two.clone(), None),
        (call().requiring_one_response_message(), vec![STATUS_200_FIELD], one(0), None),
        (call().requiring_one_response_message(), vec![STATUS_200_FIELD], none, Some(CallFault::NoMessage)),
        (
            call().requiring_one_response_message(),
            vec![STATUS_200_FIELD],
            two.clone(),
            Some(CallFault::SeveralMessages),
        ),
        (call().requiring_one_response_message(), vec![STATUS_200_FIELD], two[..15].to_vec(), Some(CallFault::Cut)),
        (call(), vec![STATUS_200_FIELD], two[..9].to_vec(), Some(CallFault::Cut)),
        (call(), vec![STATUS_200_FIELD], [one(0), one(2)].concat(), Some(CallFault::InvalidPrefix)),
        (call(), vec![STATUS_200_FIELD], one(1), Some(CallFault::Compressed)),
        (call(), encoding("identity"), one(1), Some(CallFault::Compressed)),
        (call(), encoding("gzip"), [one(0), one(1)].concat(), None),
        (call(), encoding("zstd"), one(0), None),
        (call(), encoding("zstd"), one(1), Some(CallFault::Encoding)),
        (takes("gzip,identity"), encoding("zstd"), one(1), Some(CallFault::Encoding)),
        (takes("zstd , gzip"), encoding("zstd"), one(1), None),
        (call(), vec![STATUS_200_FIELD, ("content-type", "text/html")], one(0), Some(CallFault::WrongContentType)),
        (call(), vec![STATUS_200_FIELD, ("content-type", "Application/grpc+proto")], one(0), None),
    ] {
        // A fault in the response messages turns only the status 0 (OK) of a gRPC call into 13
        // (INTERNAL). Any other status stays unchanged, and so does the status of a request that is
        // no gRPC call.
        for (asked, status, fault) in
            [(&asked, "0", fault), (&asked, "5", None), (&request("GET", b"", false), "0", None)]
        {
            let answer = [
                server_preface_frames(),
                headers_frame(1, 0, &fields),
                frame(DATA, 0, 1, &content),
                headers_frame(1, END_STREAM, &[("grpc-status", status)]),
            ];
            let answer = answer.concat();
            for step in [answer.len(), 1] {
                let (mut conn, mut plain, mut told) = (Conn::h2(1), Vec::new(), None);
                conn.start(0, asked);
                take_bytes_to_send(&mut conn, asked);
                for bytes in answer.chunks(step) {
                    let mut received = conn.receive(bytes, &mut plain);
                    while let Some(event) = conn.next(&mut received) {
                        if let ConnectionEvent::Answered { grpc_status, .. } = event {
                            told = Some((grpc_status, conn.grpc_message_fault()));
                        }
                    }
                }
                let ended = if fault.is_some() { Some(CallFault::REPORTED_STATUS as u16) } else { status.parse().ok() };
                assert_eq!(told, Some((ended, fault)), "{fields:?} {content:?}");
            }
        }
    }
}

#[test]
fn messages_in_turn_are_sent_after_each_response_message() {
    let messages = [grpc_message(3), grpc_message(0), grpc_message(40_000), grpc_message(1)];
    let asked = grpc_call(&messages).with_messages_in_turn();
    let (mut conn, mut plain) = (Conn::h2(1), Vec::new());
    let begun = server_preface_frames();
    let mut received = conn.receive(&begun, &mut plain);
    while conn.next(&mut received).is_some() {}
    conn.start(0, &asked);
    let mut answer = headers_frame(1, 0, &[STATUS_200_FIELD]);
    for (number, message) in messages.iter().enumerate() {
        let mut sent = take_bytes_to_send(&mut conn, &asked);
        if number == 0 {
            sent.drain(..CONNECTION_PREFACE.len());
        }
        let data: Vec<_> = parse_frames(&sent).into_iter().filter(|frame| frame.0 == DATA).collect();
        let content: Vec<u8> = data.iter().flat_map(|frame| frame.3.clone()).collect();
        assert_eq!(content, *message, "{number}");
        assert_eq!(data.iter().any(|frame| frame.1 & END_STREAM != 0), number + 1 == messages.len());
        assert!(!conn.wants_to_send(), "{number}: what waits for an answer does not want to be sent");
        // After only a part of a response message, the client may not send a further request
        // message.
        for piece in [&[0, 0, 0, 0, 2, 7][..], &[7]] {
            answer.extend(frame(DATA, 0, 1, piece));
            let mut received = conn.receive(&answer, &mut plain);
            let told: u32 = std::iter::from_fn(|| conn.next(&mut received))
                .map(|event| if let ConnectionEvent::Piece { piece, .. } = event { piece.messages } else { 0 })
                .sum();
            answer.clear();
            let is_whole = piece.len() == 1;
            assert_eq!((told, conn.wants_to_send()), (u32::from(is_whole), is_whole && number < 3), "{number}");
        }
    }
}

#[test]
fn early_response_messages_release_as_many_request_messages() {
    let messages = [grpc_message(1), grpc_message(2), grpc_message(3), grpc_message(4)];
    let check = |asked: &EncodedRequest, at_first: &[&Vec<u8>], then: &[&Vec<u8>]| {
        let (mut conn, mut plain) = (Conn::h2(1), Vec::new());
        let content = |bytes: &[u8]| -> Vec<u8> {
            parse_frames(bytes).into_iter().filter(|frame| frame.0 == DATA).flat_map(|frame| frame.3).collect()
        };
        conn.start(0, asked);
        let sent = take_bytes_to_send(&mut conn, asked);
        let expect = |messages: &[&Vec<u8>]| messages.iter().flat_map(|message| message.to_vec()).collect::<Vec<u8>>();
        assert_eq!(content(&sent[CONNECTION_PREFACE.len()..]), expect(at_first));
        let two = [
            server_preface_frames(),
            headers_frame(1, 0, &[STATUS_200_FIELD]),
            frame(DATA, 0, 1, &[grpc_message(5), grpc_message(0)].concat()),
        ]
        .concat();
        let mut received = conn.receive(&two, &mut plain);
        while conn.next(&mut received).is_some() {}
        assert_eq!(content(&take_bytes_to_send(&mut conn, asked)), expect(then));
        // A response that ends before all request messages are sent ends the gRPC call.
        let end = headers_frame(1, END_STREAM, &[("grpc-status", "0")]);
        let mut received = conn.receive(&end, &mut plain);
        assert!(matches!(conn.next(&mut received), Some(ConnectionEvent::Answered { grpc_status: Some(0), .. })));
        while conn.next(&mut received).is_some() {}
        take_bytes_to_send(&mut conn, asked);
        assert!(conn.exchanges_available() == 1 && !conn.wants_to_send());
    };
    let [a, b, c, d] = &messages;
    check(&grpc_call(&messages).with_messages_in_turn(), &[a], &[b, c]);
    check(&grpc_call(&messages), &[a, b, c, d], &[]);
}

#[test]
fn call_headers_match_grpc_clients_in_order() {
    let user_agent = concat!("user-agent=plimsoll/", env!("CARGO_PKG_VERSION"));
    let pseudo = [":method=POST", ":scheme=http", ":path=/shop.Items/Get", ":authority=h:81"];
    let timeout = ("grpc-timeout", "1S");
    type GivenFields<'a> = &'a [(&'a str, &'a str)];
    let cases: [(GivenFields, &[&str]); 7] = [
        (
            &[GRPC_CONTENT_TYPE, ("te", "trailers"), timeout],
            &["te=trailers", "grpc-timeout=1S", "content-type=application/grpc", user_agent],
        ),
        // The user's gRPC fields appear once, in the order of the protocol, and the user's other
        // fields (metadata) follow in the given order.
        (
            &[
                ("X-B", "1"),
                ("User-Agent", "me"),
                ("GRPC-Encoding", "gzip"),
                ("grpc-accept-encoding", "gzip"),
                ("x-a", "2"),
                GRPC_CONTENT_TYPE,
                timeout,
            ],
            &[
                "grpc-timeout=1S",
                "content-type=application/grpc",
                "grpc-encoding=gzip",
                "grpc-accept-encoding=gzip",
                "user-agent=me",
                "x-b=1",
                "x-a=2",
            ],
        ),
        (
            &[GRPC_CONTENT_TYPE, ("Accept", "a/b"), ("Content-Length", "6")],
            &["content-type=application/grpc", user_agent, "accept=a/b", "content-length=6"],
        ),
        (&[("Content-Type", " application/grpc+proto")], &["content-type=application/grpc+proto", user_agent]),
        (&[("content-type", "application/grpc;x=y")], &["content-type=application/grpc;x=y", user_agent]),
        // Requests of other protocols, such as gRPC-Web, do not count as gRPC calls.
        (
            &[("content-type", "application/grpc-web")],
            &[user_agent, "accept=*/*", "content-type=application/grpc-web", "content-length=6"],
        ),
        (&[], &[user_agent, "accept=*/*", "content-length=6"]),
    ];
    for (given, expect) in cases {
        let asked = post_request("h:81", "/shop.Items/Get", given, &grpc_message(1), false);
        let lines = String::from_utf8(asked.h2_form_text()).expect("text");
        let head = lines.split("\r\n\r\n").next().expect("a head");
        let fields: Vec<String> = head.lines().map(|line| line.replacen(": ", "=", 1)).collect();
        let mut pseudo = pseudo;
        if !expect.iter().any(|field| field.starts_with("content-type=application/grpc") && !field.contains("-web")) {
            pseudo.swap(2, 3);
        }
        assert_eq!(fields, [&pseudo[..], expect].concat());
    }
}

/// Checks that the head of a gRPC call has exactly the expected bytes, which do not depend on
/// earlier heads.
#[test]
fn the_call_head_has_the_expected_bytes() {
    let asked = post_request(
        "h",
        "/s/m",
        &[GRPC_CONTENT_TYPE, ("te", "trailers"), ("user-agent", "u")],
        &grpc_message(1),
        false,
    );
    let mut conn = Conn::h2(1);
    conn.start(0, &asked);
    let sent = parse_frames(&take_bytes_to_send(&mut conn, &asked)[CONNECTION_PREFACE.len()..]);
    assert_eq!((sent[2].0, sent[2].1), (HEADERS, END_HEADERS));
    let hex: String = sent[2].3.iter().map(|byte| format!("{byte:02x}")).collect();
    let expect = [
        "83",                           // :method: POST
        "86",                           // :scheme: http
        "0483610c53",                   // :path: /s/m
        "010168",                       // :authority: h
        "00027465864d833505b11f",       // te: trailers
        "0f108b1d75d0620d263d4c4d6564", // content-type: application/grpc
        "0f2b0175",                     // user-agent: u
    ];
    assert_eq!(hex, expect.concat());
}
