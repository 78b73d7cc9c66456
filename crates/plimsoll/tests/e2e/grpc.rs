//! Tests gRPC against servers that send hand-written HTTP/2 frames: the outcomes of calls, and
//! errors about invalid bodies, methods and descriptions.

use crate::h2::{ReceivedFrame, frame, start_h2_frame_server, start_h2_request_server};
use crate::test_support::{
    assert_ledger_closes, create_new_folder, number_at_path, plimsoll, run_to_json, run_until_generator_is_not_limit,
};
use plimsoll_wire::h2::{HpackDecoder, Secrecy, write_field};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PROTO: &str = r#"syntax = "proto3";
package shop;
import "money.proto";
message Query { int64 id = 1; Money most = 2; }
message Item { string name = 1; }
service Items {
  rpc Get(Query) returns (Item); rpc Put(stream Item) returns (Query); rpc Same(Query) returns (Query);
  rpc Watch(Query) returns (stream Item); rpc Chat(stream Query) returns (stream Query);
}
"#;
const MONEY_PROTO: &str = "syntax = \"proto3\"; package shop; message Money { int64 cents = 1; }\n";

/// Creates a folder with the description (.proto files) of the test's gRPC service.
fn create_proto_folder() -> PathBuf {
    let folder = create_new_folder("protos");
    std::fs::write(folder.join("items.proto"), PROTO).expect("written");
    std::fs::write(folder.join("money.proto"), MONEY_PROTO).expect("written");
    folder
}

fn headers_frame(flags: u8, stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields.iter().for_each(|(name, value)| write_field(&mut block, name.as_bytes(), value.as_bytes(), Secrecy::Plain));
    frame(1, flags | 4, stream, &block)
}

/// Returns the frames of a response with an empty message and this gRPC status.
fn empty_response_frames(stream: u32, status: &str) -> Vec<u8> {
    [
        headers_frame(0, stream, &[(":status", "200"), ("content-type", "application/grpc")]),
        frame(0, 0, stream, &[0; 5]),
        headers_frame(1, stream, &[("grpc-status", status), ("grpc-message", "so it is")]),
    ]
    .concat()
}

/// Starts a server that sends the frames from `answer` for each call. Returns the server's gRPC
/// URL.
fn start_grpc_server(answer: impl Fn(usize, u32) -> Vec<u8> + Send + Sync + Clone + 'static) -> String {
    start_h2_request_server(answer).replace("http://", "grpc://")
}

#[test]
fn calls_succeed_by_the_grpc_status_in_trailers() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    // Every fourth call of a connection gets NOT_FOUND (status 5). Stream ids of clients are odd,
    // so `stream % 8` is 7 for every fourth call.
    let url = start_grpc_server(|_, stream| empty_response_frames(stream, if stream % 8 == 7 { "5" } else { "0" }));
    let load = ["-t", "1", "-c", "4", "--streams", "4", "-n", "400", "-b", "{\"id\": 7}", "--no-preflight"];
    let call = format!("{url}shop.Items/Get");
    let document = run_to_json(&[&["run", &call, "--proto", &proto], &load[..]].concat());
    assert_ledger_closes(&document, "calls");
    assert_eq!(number_at_path(&document, "statuses.200"), 400.0);
    assert_eq!(number_at_path(&document, "grpc_statuses.NOT_FOUND"), 100.0, "{:#}", document["grpc_statuses"]);
    assert_eq!(number_at_path(&document, "grpc_statuses.OK"), 300.0);
    assert_eq!(number_at_path(&document, "ledger.failed.status"), 100.0, "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "grpc_messages"), 400.0);
    let failed = &document["failed_answers"][0];
    assert_eq!((&failed["status_line"], &failed["body"]), (&"HTTP/2 200, NOT_FOUND".into(), &"so it is".into()));
    assert_eq!(number_at_path(failed, "requests"), 100.0);
    let document = run_to_json(&[&["run", &call, "--proto", &proto, "--ok-grpc", "OK,NOT_FOUND"], &load[..]].concat());
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{:#}", document["ledger"]);
}

#[test]
fn a_response_without_grpc_status_maps_its_http_status() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    for (fields, name) in [
        (&[(":status", "200")][..], "UNKNOWN"),
        (&[(":status", "503")], "UNAVAILABLE"),
        (&[(":status", "404")], "UNIMPLEMENTED"),
        // A gRPC response without messages carries its status in the header fields instead of
        // trailers.
        (&[(":status", "200"), ("grpc-status", "8")], "RESOURCE_EXHAUSTED"),
        (&[(":status", "200"), ("grpc-status", "99")], "UNKNOWN"),
    ] {
        let url = start_grpc_server(move |_, stream| headers_frame(1, stream, fields));
        let call = format!("{url}shop.Items/Get");
        let document = run_to_json(&["run", &call, "--proto", &proto, "-c", "2", "-n", "10", "--no-preflight"]);
        assert_eq!(
            number_at_path(&document, &format!("grpc_statuses.{name}")),
            10.0,
            "{:#}",
            document["grpc_statuses"]
        );
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 0.0, "{name}");
        let is_stated = fields.iter().any(|(field, _)| *field == "grpc-status");
        for flags in [&["--no-preflight"][..], &[]] {
            let done = plimsoll(&[&["run", &call, "--proto", &proto, "-c", "2", "-n", "10"], flags].concat());
            let shown = format!("{}{}", done.stdout, done.stderr);
            assert_eq!(!shown.contains("the response has no grpc-status"), is_stated, "{fields:?} {shown}");
        }
    }
}

#[test]
fn stream_messages_are_counted_and_a_truncated_one_fails() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    let messages = |lengths: &[u8]| -> Vec<u8> {
        lengths.iter().flat_map(|length| [&[0, 0, 0, 0, *length][..], &vec![7; (*length).into()]].concat()).collect()
    };
    let whole = messages(&[0, 3, 200]);
    for (content, name, count) in [(whole.clone(), "OK", 3.0), (whole[..whole.len() - 1].to_vec(), "INTERNAL", 2.0)] {
        // The server splits the content into two DATA frames in the middle of a message.
        let url = start_grpc_server(move |_, stream| {
            let head_of = headers_frame(0, stream, &[(":status", "200"), ("content-type", "application/grpc")]);
            let (one, other) = content.split_at(7);
            let trailers = headers_frame(1, stream, &[("grpc-status", "0")]);
            [head_of, frame(0, 0, stream, one), frame(0, 0, stream, other), trailers].concat()
        });
        let call = format!("{url}shop.Items/Watch");
        let document = run_to_json(&["run", &call, "--proto", &proto, "-c", "2", "-n", "20", "--no-preflight"]);
        assert_eq!(
            number_at_path(&document, &format!("grpc_statuses.{name}")),
            20.0,
            "{:#}",
            document["grpc_statuses"]
        );
        assert_eq!(number_at_path(&document, "grpc_messages"), 20.0 * count);
    }
}

#[test]
fn invalid_grpc_responses_fail_for_any_status() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    let one = |flag: u8| [flag, 0, 0, 0, 2, 10, 0];
    let encoding = |name: &'static str| Some(("grpc-encoding", name));
    for (method, content, field, flags, fault) in [
        ("Get", vec![], None, &[][..], "no_message"),
        ("Get", [one(0), one(0)].concat(), None, &[], "several_messages"),
        ("Put", [one(0), one(0), one(0)].concat(), None, &[], "several_messages"),
        ("Get", one(0)[..6].to_vec(), None, &[], "cut"),
        ("Watch", b"<html>not found</html>".to_vec(), None, &[], "prefix"),
        ("Get", one(1).to_vec(), None, &[], "compressed"),
        ("Watch", [one(0), one(1)].concat(), encoding("identity"), &[], "compressed"),
        ("Get", one(1).to_vec(), encoding("snappy"), &[], "encoding"),
        // The responses in the rows without a fault name are valid.
        ("Get", one(0).to_vec(), encoding("snappy"), &[], ""),
        ("Get", one(1).to_vec(), encoding("gzip"), &[], ""),
        ("Get", one(1).to_vec(), encoding("snappy"), &["-H", "grpc-accept-encoding: snappy, gzip"], ""),
        ("Watch", vec![], None, &[], ""),
        ("Chat", [one(0), one(0)].concat(), None, &["--in-turn"], ""),
    ] {
        let said = content.clone();
        let url = start_grpc_server(move |_, stream| {
            let mut fields = vec![(":status", "200"), ("content-type", "application/grpc")];
            fields.extend(field);
            [
                headers_frame(0, stream, &fields),
                frame(0, 0, stream, &said),
                headers_frame(1, stream, &[("grpc-status", "0")]),
            ]
            .concat()
        });
        let call = format!("{url}shop.Items/{method}");
        let load = ["run", &call, "--proto", &proto, "-c", "2", "--streams", "2", "-n", "12", "--no-preflight"];
        let document = run_to_json(&[&load[..], flags].concat());
        let name = if fault.is_empty() { "OK" } else { "INTERNAL" };
        assert_eq!(number_at_path(&document, &format!("grpc_statuses.{name}")), 12.0, "{method} {fault}: {document:#}");
        if fault.is_empty() {
            assert_eq!(number_at_path(&document, "ledger.succeeded"), 12.0, "{method}");
            continue;
        }
        assert_eq!(number_at_path(&document, &format!("grpc_faults.{fault}")), 12.0, "{:#}", document["grpc_faults"]);
        let failed = &document["failed_answers"][0];
        assert_eq!(
            (&failed["status_line"], number_at_path(failed, "requests")),
            (&"HTTP/2 200, INTERNAL".into(), 12.0)
        );
        let reason = failed["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("the gRPC status is OK, but "), "{fault}: {failed:#}");
        let done = plimsoll(&[&load[..10], flags, &["-v"]].concat());
        // The reason of the failure appears twice: once for the preflight call, which is not
        // counted, and once for the load.
        assert_eq!(done.stdout.matches(reason).count(), 2, "{fault}: {} {}", done.stdout, done.stderr);
    }
}

/// Starts a server that sends a stream of `count` messages at the interval `apart`, and then ends
/// the stream successfully.
fn start_periodic_message_server(count: u32, apart: Duration) -> String {
    let url = start_h2_frame_server(move |heard| match heard.kind {
        1 => Some(headers_frame(0, heard.stream, &[(":status", "200"), ("content-type", "application/grpc")])),
        0 => {
            let (stream, mut out) = (heard.stream, heard.out.try_clone().expect("a socket"));
            std::thread::spawn(move || {
                for _ in 0..count {
                    std::thread::sleep(apart);
                    let _ = out.write_all(&frame(0, 0, stream, &[0, 0, 0, 0, 2, 8, 2]));
                }
                let _ = out.write_all(&headers_frame(1, stream, &[("grpc-status", "0")]));
            });
            None
        }
        _ => None,
    });
    url.replace("http://", "grpc://")
}

#[test]
fn stream_messages_have_their_own_times() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    let url = start_periodic_message_server(4, Duration::from_millis(20));
    let load = ["--proto", &proto, "-t", "1", "-c", "2", "-n", "6", "--no-preflight"];
    let call = format!("{url}shop.Items/Watch");
    let document = run_until_generator_is_not_limit(&[&["run", &call], &load[..]].concat());
    assert_eq!(number_at_path(&document, "grpc_statuses.OK"), 6.0, "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "grpc_messages"), 24.0);
    assert_eq!(number_at_path(&document, "first_message_ns.count"), 6.0);
    assert_eq!(number_at_path(&document, "message_gap_ns.count"), 18.0);
    // The last of 4 messages comes at least 80 ms (4 times 20 ms) after the call, whenever the
    // client reads the earlier messages.
    let [first_ns, gap_ns] =
        ["first_message_ns", "message_gap_ns"].map(|it| number_at_path(&document, &format!("{it}.mean")));
    assert!(first_ns >= 20e6 && gap_ns > 10e6 && first_ns + 3.0 * gap_ns >= 80e6, "{first_ns} {gap_ns}");
    assert!(number_at_path(&document, "response_time_ns.mean") >= 80e6);
    let text = plimsoll(&[&["run", "-v", &call], &load[..]].concat()).stdout;
    assert!(text.contains("first message") && text.contains("between messages"), "{text}");
    // A single message is the whole response, so no separate times of messages are reported.
    let url = start_grpc_server(|_, stream| empty_response_frames(stream, "0"));
    let document = run_to_json(&[&["run", &format!("{url}shop.Items/Get")], &load[..]].concat());
    assert_eq!(
        (number_at_path(&document, "first_message_ns.count"), number_at_path(&document, "grpc_messages")),
        (0.0, 6.0)
    );
}

/// Starts a server that echoes each message of a call immediately. `frames` counts the frames in
/// which messages arrived.
fn start_streaming_echo_server(frames: Arc<AtomicU64>) -> String {
    let url = start_h2_frame_server(move |heard| match heard.kind {
        1 => Some(headers_frame(0, heard.stream, &[(":status", "200"), ("content-type", "application/grpc")])),
        0 => {
            frames.fetch_add(1, Ordering::Relaxed);
            let end = headers_frame(1, heard.stream, &[("grpc-status", "0")]);
            let end = if heard.flags & 1 != 0 { end } else { Vec::new() };
            Some([frame(0, 0, heard.stream, heard.payload), end].concat())
        }
        _ => None,
    });
    url.replace("http://", "grpc://")
}

#[test]
fn messages_are_sent_together_or_in_turn() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    for (flags, frames_each) in [(&[][..], 1), (&["--in-turn"], 3)] {
        let frames = Arc::new(AtomicU64::new(0));
        let url = start_streaming_echo_server(Arc::clone(&frames));
        let call = format!("{url}shop.Items/Chat");
        let body = "[{\"id\": 1}, {\"id\": 2}, {}]";
        let load = ["run", &call, "--proto", &proto, "-b", body, "-c", "2", "-n", "20", "--no-preflight"];
        let document = run_to_json(&[&load[..], flags].concat());
        assert_ledger_closes(&document, "in turn");
        assert_eq!(number_at_path(&document, "grpc_statuses.OK"), 20.0, "{flags:?}: {:#}", document["ledger"]);
        assert_eq!(number_at_path(&document, "grpc_messages"), 60.0, "{flags:?}");
        assert_eq!(frames.load(Ordering::Relaxed), 20 * frames_each, "{flags:?}");
        assert_eq!(number_at_path(&document, "message_gap_ns.count"), 40.0);
    }
    // `--in-turn` is refused if no called method has streams in both directions, as with `Get`.
    let url = start_grpc_server(|_, stream| empty_response_frames(stream, "0"));
    let call = format!("{url}shop.Items/Get");
    let done = plimsoll(&["run", &call, "--proto", &proto, "-n", "1", "--in-turn", "--no-preflight"]);
    assert!(done.code == 2 && done.stderr.contains("--in-turn: no called method"), "{}", done.stderr);
    let file = create_proto_folder().join("chat.toml");
    let text = format!(
        "base = \"{}\"\n[[request]]\npost = \"/shop.Items/Chat\"\nbody = '[{{}}, {{}}]'\n",
        start_streaming_echo_server(Arc::default())
    );
    std::fs::write(&file, text).expect("written");
    let record = file.with_file_name("chat.plimsoll").display().to_string();
    let file = file.display().to_string();
    let document =
        run_to_json(&["run", "-f", &file, "--proto", &proto, "-n", "4", "--in-turn", "--no-preflight", "-o", &record]);
    assert_eq!(number_at_path(&document, "grpc_messages"), 8.0, "{:#}", document["ledger"]);
    let other = record.replace("chat.plimsoll", "again.plimsoll");
    assert_eq!(plimsoll(&["rerun", "--yes", &record, "-o", &other]).code, 0);
    let again = plimsoll(&["show", "--json", &other]).json();
    assert_eq!(number_at_path(&again, "message_gap_ns.count"), 4.0, "{:#}", again["ledger"]);
}

#[test]
fn check_shows_grpc_calls() {
    let folder = create_proto_folder();
    let (proto, file) = (folder.join("items.proto").display().to_string(), folder.join("checked.toml"));
    let path = file.display().to_string();
    let asks = |body: &str| {
        let request =
            format!("[[request]]\npost = \"/shop.Items/Get\"\nbody = '{body}'\nheaders = {{ Tenant = \"a\" }}\n");
        std::fs::write(&file, format!("base = \"grpc://h:1\"\n{request}")).expect("written");
    };
    for (body, shown) in [("{\"id\": 7}", "{\"id\": 7}"), ("{\"id\": {{ int(5,5) }}}", "{\"id\": 5}")] {
        asks(body);
        for flags in [&[][..], &["--proto", &proto], &["--http", "2"]] {
            let done = plimsoll(&[&["check", "-f", &path], flags].concat());
            assert_eq!(done.code, 0, "{}", done.stderr);
            let parts =
                [":method: POST", ":path: /shop.Items/Get", "content-type: application/grpc", "tenant: a", shown];
            for part in parts.iter().chain(&["the calls use HTTP/2", "grpc-timeout: 30000000u"]) {
                assert!(done.stdout.contains(part), "{flags:?} {part}: {}", done.stdout);
            }
            assert!(!done.stdout.contains("HTTP/1.1") && !done.stdout.contains("content-length"), "{}", done.stdout);
        }
    }
    for (body, flags, said) in [
        ("{\"id\": \"x\"}", &["--proto", &proto][..], "does not fit"),
        ("{\"id\": \"{{ uuid() }}\"}", &["--proto", &proto], "does not fit"),
        ("{}", &["--http", "1.1"], "--http 1.1"),
        ("{}", &["--target", "http://h:1", "--proto", &proto], "these flags need gRPC"),
    ] {
        asks(body);
        let done = plimsoll(&[&["check", "-f", &path], flags].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{body} {flags:?}: {}", done.stderr);
    }
}

#[test]
fn a_file_can_define_several_calls() {
    let folder = create_proto_folder();
    let (proto, file) = (folder.join("items.proto").display().to_string(), folder.join("calls.toml"));
    let url = start_grpc_server(|_, stream| empty_response_frames(stream, "0"));
    let calls = |body: &str| {
        let requests = format!(
            "[[request]]\npost = \"/shop.Items/Get\"\nbody = '{body}'\n[[request]]\npost = \"/shop.Items/Put\"\nbody = '[{{}}]'\n"
        );
        std::fs::write(&file, format!("base = \"{url}\"\n{requests}")).expect("written");
        file.display().to_string()
    };
    let document = run_to_json(&["run", "-f", &calls("{\"id\": 7}"), "--proto", &proto, "-c", "2", "-n", "100"]);
    assert_eq!(number_at_path(&document, "grpc_statuses.OK"), 100.0, "{:#}", document["ledger"]);
    for (body, said) in
        [("{\"id\": \"x\"}", "/shop.Items/Get"), ("{\"id\": \"{{ uuid() }}\"}", "does not fit the message")]
    {
        let done = plimsoll(&["run", "-f", &calls(body), "--proto", &proto, "-n", "1"]);
        assert!(done.code == 2 && done.stderr.contains(said), "{body}: {}", done.stderr);
    }
}

/// Starts a server that echoes the messages of each call. A call with JSON content gets no
/// response: the server closes the connection.
fn start_protobuf_echo_server() -> String {
    let url = start_h2_frame_server(|heard| {
        let mut is_json = false;
        if heard.kind == 1 {
            let json = |_: &[u8], value: &[u8]| is_json |= value == b"application/json";
            HpackDecoder::new(0).decode(heard.payload, 1 << 14, json).expect("a head");
        }
        if is_json {
            return Some(Vec::new());
        }
        let is_whole = heard.kind == 0 && heard.flags & 1 != 0;
        is_whole.then(|| {
            let begin = headers_frame(0, heard.stream, &[(":status", "200"), ("content-type", "application/grpc")]);
            let end = headers_frame(1, heard.stream, &[("grpc-status", "0")]);
            [begin, frame(0, 0, heard.stream, heard.payload), end].concat()
        })
    });
    url.replace("http://", "grpc://")
}

#[test]
fn call_responses_are_checked_and_captured() {
    let folder = create_proto_folder();
    let (proto, file) = (folder.join("items.proto").display().to_string(), folder.join("session.toml"));
    let url = start_protobuf_echo_server();
    let asked = |requests: &str| {
        std::fs::write(&file, format!("base = \"{url}\"\n{requests}")).expect("written");
        run_to_json(&[
            "run",
            "-f",
            &file.display().to_string(),
            "--proto",
            &proto,
            "-c",
            "2",
            "-n",
            "50",
            "--no-preflight",
        ])
    };
    // A body with templates is encoded anew for each call.
    let same = |id: &str, expect: &str| {
        format!("[[request]]\npost = \"/shop.Items/Same\"\nbody = '{{\"id\": {id}}}'\nexpect = {{ {expect} }}\n")
    };
    for (id, expect, missed) in [
        ("7", "json = { \"$.id\" = 7 }", 0.0),
        ("7", "json = { \"$.id\" = 8 }", 50.0),
        ("{{ int(100,999) }}", "body = 'regex:\"id\":\\d{3}[^0-9]'", 0.0),
        ("{{ int(100,999) }}", "body = 'regex:\"id\":\\d{4}'", 50.0),
    ] {
        let document = asked(&same(id, expect));
        assert_eq!(
            number_at_path(&document, "ledger.failed.expectation"),
            missed,
            "{id} {expect}: {:#}",
            document["ledger"]
        );
        assert_eq!(number_at_path(&document, "grpc_statuses.OK"), 50.0);
        if missed > 0.0 {
            let shown = document["failed_answers"][0]["body"].as_str();
            assert!(shown.is_some_and(|body| body.starts_with("{\"id\":")), "{:#}", document["failed_answers"]);
        }
    }
    let step = |body: &str, more: &str| format!("[[scenario.step]]\npost = \"/shop.Items/Same\"\n{body}\n{more}\n");
    let steps = [
        step("body = '{\"id\": {{ int(1000,9999) }}}'", "name = \"first\"\ncapture = { id = \"$.id\" }"),
        step("json = { id = \"{{ id }}5\" }", "name = \"then\"\nexpect = { body = 'regex:\"id\":\\d{4}5[^0-9]' }"),
    ];
    let document = asked(&format!("[[scenario]]\nname = \"s\"\n{}", steps.concat()));
    assert_ledger_closes(&document, "sessions of calls");
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{:#}", document["ledger"]);
}

#[test]
fn a_grpc_service_that_is_not_serving_is_not_loaded() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    let url = start_grpc_server(|_, stream| {
        [
            headers_frame(0, stream, &[(":status", "200"), ("content-type", "application/grpc")]),
            frame(0, 0, stream, &[0, 0, 0, 0, 2, 8, 2]),
            headers_frame(1, stream, &[("grpc-status", "0")]),
        ]
        .concat()
    });
    let call = format!("{url}shop.Items/Get");
    let done = plimsoll(&["run", &call, "--proto", &proto, "-n", "1"]);
    assert!(done.code == 2 && done.stderr.contains("shop.Items is not serving"), "{}", done.stderr);
    let document = run_to_json(&["run", &call, "--proto", &proto, "-n", "1", "--no-preflight"]);
    assert_eq!(number_at_path(&document, "success_rate"), 1.0);
}

#[test]
fn invalid_grpc_calls_are_reported() {
    let folder = create_proto_folder();
    let proto = folder.join("items.proto").display().to_string();
    std::fs::write(folder.join("lacks.proto"), "syntax = \"proto3\"; import \"gone.proto\";").expect("written");
    let lacks = folder.join("lacks.proto").display().to_string();
    // The server does not support reflection.
    let url = start_grpc_server(|_, stream| headers_frame(1, stream, &[(":status", "200"), ("grpc-status", "12")]));
    let web = url.replace("grpc://", "http://");
    for (path, flags, said) in [
        ("shop.Items/Get", &["--proto", &proto, "-b", "{\"id\": \"x\"}"][..], "shop.Query"),
        ("shop.Items/Get", &["--proto", &proto, "-b", "{\"most\": {\"cents\": []}}"], "most.cents"),
        ("shop.Items/Get", &["--proto", &proto, "-b", "[{}, {}]"], "takes one message"),
        ("shop.Items/Gat", &["--proto", &proto], "the known service methods are Get"),
        ("shop.Item/Get", &["--proto", &proto], "the known gRPC services are shop.Items"),
        ("", &["--proto", &proto], "/package.Service/Method"),
        ("shop.Items/Get", &["--proto", &lacks], "gone.proto"),
        ("shop.Items/Get", &["--proto", "/no/such.proto"], "/no/such.proto"),
        ("shop.Items/Get", &["--descriptor-set", "/no/such.bin"], "/no/such.bin"),
        ("shop.Items/Get", &["--descriptor-set", &proto], "descriptors"),
        ("shop.Items/Get", &[], "--proto FILE"),
        ("shop.Items/Get", &["--http", "1.1", "--proto", &proto], "--http 1.1"),
        ("shop.Items/Get", &["-X", "PUT", "--proto", &proto], "--method"),
        ("shop.Items/Get", &["--ok-grpc", "FINE", "--proto", &proto], "--ok-grpc"),
        ("shop.Items/Get", &["-H", "grpc-encoding: br", "--proto", &proto], "grpc-encoding: gzip"),
        ("shop.Items/Get", &["-H", "Trace: caf\u{e9}", "--proto", &proto], "send the value as Trace-bin"),
        (
            "shop.Items/Get",
            &["-b", "{\"id\": \"x\"}", "--proto", &proto],
            "at id: invalid digit found in string at line 1 column 10 (int64 is expected)",
        ),
        (
            "shop.Items/Get",
            &["-b", "{\"idd\": 1}", "--proto", &proto],
            "(the known message fields are id, most); an example body",
        ),
        ("shop.Items/Get", &["-b", "{\"id\":", "--proto", &proto], "--body: the body is no JSON: EOF"),
    ] {
        let call = format!("{url}{path}");
        let done = plimsoll(&[&["run", &call, "-n", "1"], flags].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{path} {flags:?}: {}", done.stderr);
    }
    for flags in [&["--ok-grpc", "OK"][..], &["--proto", &proto], &["--descriptor-set", &proto]] {
        let done = plimsoll(&[&["run", &web, "-n", "1"], flags].concat());
        assert!(done.code == 2 && done.stderr.contains(flags[0]), "{flags:?}: {}", done.stderr);
    }
}

#[test]
fn a_server_without_grpc_is_reported() {
    let url = start_grpc_server(|_, stream| headers_frame(1, stream, &[(":status", "200")]));
    for words in [&["grpc", "list", &url][..], &["run", &format!("{url}shop.Items/Get"), "-n", "1"]] {
        let done = plimsoll(words);
        assert!(done.code == 2 && done.stderr.contains("(HTTP 200), so it does not speak gRPC"), "{}", done.stderr);
    }
}

#[test]
fn a_grpc_description_includes_an_example_body() {
    let proto = create_proto_folder().join("items.proto").display().to_string();
    let url = start_grpc_server(|_, stream| empty_response_frames(stream, "0"));
    let list = plimsoll(&["grpc", "list", &url, "--proto", &proto]);
    assert!(list.stdout.contains("shop.Items\n  Get(shop.Query) -> shop.Item"), "{} {}", list.stdout, list.stderr);
    let shown = plimsoll(&["grpc", "describe", &format!("{url}shop.Items/Get"), "--proto", &proto]);
    assert!(shown.stdout.contains("int64 id = 1;") && shown.stdout.contains("{\"id\": 0, \"most\": {\"cents\": 0}}"));
    assert!(!shown.stdout.contains("Put("), "{}", shown.stdout);
}

/// Encodes a protobuf field that has a length.
fn encode_length_delimited_field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length % 0x80 + 0x80) as u8);
        length /= 0x80;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// Returns the frames of a response with one message and status OK.
fn single_message_response_frames(stream: u32, message: &[u8]) -> Vec<u8> {
    let content = [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
    let mut out = headers_frame(0, stream, &[(":status", "200"), ("content-type", "application/grpc")]);
    content.chunks(16_384).for_each(|piece| out.extend(frame(0, 0, stream, piece)));
    out.extend(headers_frame(1, stream, &[("grpc-status", "0")]));
    out
}

/// Encodes a protobuf file description as a gRPC reflection response.
fn encode_reflection_response(file: &[u8]) -> Vec<u8> {
    encode_length_delimited_field(4, &encode_length_delimited_field(1, file))
}

/// Checks that reflection with malicious servers ends within its limits of time and memory.
#[test]
fn reflection_ends_within_its_limits_for_any_response() {
    /// The time that one case may take, including allowance for a busy machine.
    const CASE_DURATION_MAX: Duration = Duration::from_secs(45);
    let number = Arc::new(AtomicU64::new(0));
    let of_questions = |answer: fn(&ReceivedFrame, &AtomicU64) -> Vec<u8>| {
        let number = Arc::clone(&number);
        start_h2_frame_server(move |heard| {
            (heard.kind == 0 && !heard.payload.is_empty()).then(|| answer(&heard, &number))
        })
    };
    let asked: Vec<(String, &str)> = vec![
        // The response has two million messages in four megabytes.
        (
            of_questions(|heard, _| {
                single_message_response_frames(
                    heard.stream,
                    &encode_reflection_response(
                        &[encode_length_delimited_field(1, b"a"), b"\x22\0".repeat(2 << 20)].concat(),
                    ),
                )
            }),
            "give --proto FILE",
        ),
        // The server's list has 300 000 services, but not the requested service.
        (
            of_questions(|heard, _| {
                let is_list = !heard.payload.windows(4).any(|word| word == b"shop");
                let services: Vec<u8> = (0..300_000)
                    .flat_map(|n| {
                        encode_length_delimited_field(
                            1,
                            &encode_length_delimited_field(1, format!("s.S{n}").as_bytes()),
                        )
                    })
                    .collect();
                let error = encode_length_delimited_field(
                    7,
                    &[&[8, 5][..], &encode_length_delimited_field(2, b"no such symbol")].concat(),
                );
                single_message_response_frames(
                    heard.stream,
                    &if is_list { encode_length_delimited_field(6, &services) } else { error },
                )
            }),
            "give --proto FILE",
        ),
        // The response never ends and arrives byte by byte.
        (
            of_questions(|heard, _| {
                let mut out = heard.out;
                let mut piece =
                    headers_frame(0, heard.stream, &[(":status", "200"), ("content-type", "application/grpc")]);
                while out.write_all(&piece).is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                    piece = frame(0, 0, heard.stream, &[0]);
                }
                Vec::new()
            }),
            "10 s",
        ),
        // Each file description imports one more file, endlessly, and arrives after a delay of 1.5
        // s.
        (
            of_questions(|heard, number| {
                std::thread::sleep(Duration::from_millis(1_500));
                let n = number.fetch_add(1, Ordering::Relaxed);
                let names = [
                    encode_length_delimited_field(1, format!("f{n}").as_bytes()),
                    encode_length_delimited_field(3, format!("f{}", n + 1).as_bytes()),
                ]
                .concat();
                single_message_response_frames(heard.stream, &encode_reflection_response(&names))
            }),
            "within 30 s",
        ),
    ];
    std::thread::scope(|threads| {
        for (url, said) in &asked {
            threads.spawn(move || {
                let began = std::time::Instant::now();
                let call = format!("{}shop.Items/Get", url.replace("http://", "grpc://"));
                let done = plimsoll(&["run", &call, "-n", "1"]);
                let took = began.elapsed();
                assert!(took < CASE_DURATION_MAX, "{said}: {took:?}");
                assert!(done.code == 2 && done.stderr.contains(said), "{}: {}", done.code, done.stderr);
                assert!(done.stderr.len() < 1_000 && !done.stderr.contains("panicked"), "{}", done.stderr);
            });
        }
    });
}
