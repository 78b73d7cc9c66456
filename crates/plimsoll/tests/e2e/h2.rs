//! Tests HTTP/2: real servers, protocol negotiation over TLS, and servers that refuse or reset
//! streams, or announce the end of a connection (GOAWAY).

use crate::test_support::{
    assert_ledger_closes, baseline_tls, create_new_folder, go_server, go_server_tls, nginx, nginx_h2, nginx_tls,
    number_at_path, plimsoll, run_to_json, run_until_generator_is_not_limit, start_baseline,
};
use crate::tls::self_signed;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;

#[test]
fn http2_loads_of_every_shape_work_on_common_servers() {
    let servers = [nginx_h2(), go_server(), start_baseline(1)];
    for (number_of, server) in servers.iter().enumerate() {
        let path = if number_of == 2 { "/healthz" } else { "/" };
        let url = format!("{}{path}", server.url);
        for (load, scheduled, connections) in [
            (&["-c", "4", "-d", "100ms"][..], None, None),
            (&["-c", "16", "--streams", "8", "-n", "800"], Some(800.0), Some(2.0)),
            (&["-c", "20", "--streams", "8", "-n", "800", "-t", "2"], Some(800.0), Some(4.0)),
            (&["-c", "1@100ms,5@100ms", "--streams", "3"], None, None),
            (&["--rate", "1k", "-n", "300", "--streams", "50"], Some(300.0), None),
            (&["--rate", "1k", "-n", "200"], Some(200.0), None),
            (&["-c", "4", "-n", "100", "--no-keepalive"], Some(100.0), None),
            (&["-c", "4", "-n", "50", "-X", "HEAD"], Some(50.0), None),
        ] {
            let what = format!("{load:?} on {url}");
            let document = run_to_json(&[&["run", &url, "--http", "2"], load].concat());
            assert_ledger_closes(&document, &what);
            assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{what}: {:#}", document["ledger"]);
            assert_eq!(
                (document["protocol"].as_str(), document["http"].as_str()),
                (Some("HTTP/2"), Some("2")),
                "{what}"
            );
            if let Some(scheduled) = scheduled {
                assert_eq!(number_at_path(&document, "ledger.scheduled"), scheduled, "{what}");
            }
            // nginx closes a connection after a thousand requests, so only shorter loads have a
            // known number of connections.
            if let Some(connections) = connections {
                assert_eq!(number_at_path(&document, "connections_opened"), connections, "{what}");
            }
            for quantile in ["min", "mean", "max"] {
                let [response, service, ttfb] = ["response_time_ns", "service_time_ns", "ttfb_ns"]
                    .map(|clock| number_at_path(&document, &format!("{clock}.{quantile}")));
                assert!(response >= service && service >= ttfb && ttfb > 0.0, "{what}: {quantile}");
            }
        }
    }
}

#[test]
fn bodies_of_any_size_are_sent_and_received() {
    let (go, baseline) = (go_server(), start_baseline(1));
    let body = create_new_folder("h2-body").join("body");
    std::fs::write(&body, vec![b'x'; 3_000_000]).expect("written");
    let url = format!("{}/echo-length?want=3000000", go.url);
    let sent = format!("@{}", body.display());
    let flags = ["--http", "2", "-X", "PUT", "-b", &sent, "-c", "6", "--streams", "3", "-n", "12"];
    let document = run_to_json(&[&["run", &url][..], &flags].concat());
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 12.0, "{:#}", document["ledger"]);
    let url = format!("{}/bytes/20000000", baseline.url);
    let document = run_to_json(&["run", &url, "--http", "2", "-c", "4", "--streams", "2", "-n", "12"]);
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 12.0, "{:#}", document["ledger"]);
    assert!(number_at_path(&document, "bytes_in") > 12.0 * 20e6);
    // A delayed response does not delay other responses on the same connection.
    let url = format!("{}/delay/100", baseline.url);
    let document =
        run_until_generator_is_not_limit(&["run", &url, "--http", "2", "-c", "30", "--streams", "30", "-n", "60"]);
    assert_eq!(number_at_path(&document, "connections_opened"), 1.0);
    let p50_ns = number_at_path(&document, "service_time_ns.p50");
    assert!((100e6..180e6).contains(&p50_ns), "{p50_ns}");
}

#[test]
fn the_negotiated_tls_protocol_is_reported() {
    let pair = crate::tls::self_signed();
    let (both, old) = (go_server_tls(&pair.0, &pair.1), nginx_tls(&pair.0, &pair.1));
    for (url, flags, protocol) in [
        (&both.url, &[][..], "HTTP/2"),
        (&both.url, &["--http", "2", "--streams", "4"], "HTTP/2"),
        (&both.url, &["--streams", "4", "--no-preflight"], "HTTP/2"),
        (&both.url, &["--http", "1.1"], "HTTP/1.1"),
        (&both.url, &["--no-keepalive"], "HTTP/2"),
        (&old.url, &[], "HTTP/1.1"),
        (&old.url, &["--no-preflight"], "HTTP/1.1"),
    ] {
        let what = format!("{flags:?} on {url}");
        let document = run_to_json(&[&["run", url, "--insecure", "-c", "8", "-n", "80"], flags].concat());
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 80.0, "{what}: {:#}", document["ledger"]);
        assert_eq!(document["protocol"].as_str(), Some(protocol), "{what}");
    }
    for (flags, said) in
        [(&["--http", "2"][..], "--http"), (&["--streams", "4"], "--streams 4: the server speaks only HTTP/1.1")]
    {
        let done = plimsoll(&[&["run", &old.url, "--insecure", "-n", "1"], flags].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{flags:?}: {}", done.stderr);
    }
    let document = run_to_json(&["run", &old.url, "--insecure", "--http", "2", "--no-preflight", "-c", "1", "-n", "3"]);
    assert_eq!(number_at_path(&document, "ledger.failed.tls"), 3.0, "{:#}", document["ledger"]);
}

#[test]
fn the_reference_server_supports_both_protocols_over_tls() {
    let (certificate, key) = self_signed();
    let server = baseline_tls(&certificate, &key);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    for (path, flags, protocol) in [
        ("/healthz", &["-c", "4", "-n", "200"][..], "HTTP/2"),
        ("/healthz", &["-c", "16", "--streams", "8", "-n", "400"], "HTTP/2"),
        ("/bytes/300000", &["-c", "4", "--streams", "2", "-n", "40"], "HTTP/2"),
        ("/bytes/300000", &["-c", "2", "-n", "20", "--http", "1.1"], "HTTP/1.1"),
        ("/delay/5", &["-c", "4", "-n", "40", "--http", "1.1"], "HTTP/1.1"),
        ("/healthz", &["-c", "4", "-n", "100", "--no-keepalive"], "HTTP/2"),
        ("/healthz", &["-c", "4", "-n", "100", "--no-keepalive", "--http", "1.1"], "HTTP/1.1"),
    ] {
        let (url, what) = (format!("{}{path}", server.url), format!("{flags:?} of {path}"));
        let document = run_to_json(&[&["run", &url, "--insecure"], flags].concat());
        assert_ledger_closes(&document, &what);
        assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{what}: {:#}", document["ledger"]);
        assert_eq!(document["protocol"].as_str(), Some(protocol), "{what}");
        if flags.contains(&"--no-keepalive") {
            assert!(number_at_path(&document, "handshakes_resumed") > 50.0, "{what}");
        }
    }
    // A client without TLS gets no response and does not stop the server.
    let plain = server.url.replace("https", "http");
    let done = plimsoll(&["run", &plain, "-n", "1"]);
    assert!(done.code == 2 && !done.stderr.is_empty(), "{}", done.stderr);
    assert_eq!(
        number_at_path(
            &run_to_json(&["run", &format!("{}/healthz", server.url), "--insecure", "-n", "3"]),
            "success_rate"
        ),
        1.0
    );
}

#[test]
fn both_sides_of_a_comparison_use_the_protocol_of_the_first() {
    let (certificate, key) = self_signed();
    let (new, old) = (baseline_tls(&certificate, &key), nginx_tls(&certificate, &key));
    let (new, old) = (format!("{}/healthz", new.url), format!("{}/", old.url));
    let flags = ["prove", "--insecure", "--budget", "4s", "--blocks", "1", "--for", "100ms", "-c", "2"];
    // The server `new` speaks HTTP/2; the server `old` speaks only HTTP/1.1.
    let done = plimsoll(&[&flags[..], &[&new, &old]].concat());
    assert!(done.code == 2 && done.stderr.contains("A speaks HTTP/2"), "{}", done.stderr);
    let document = run_to_json(&[&flags[..], &[&old, &new]].concat());
    assert!(document.to_string().contains("\"http\":\"1.1\""), "{document:#}");
}

#[test]
fn a_server_with_only_http11_is_reported() {
    let server = nginx();
    let done = plimsoll(&["run", &server.url, "--http", "2", "-n", "1"]);
    assert!(done.code == 2 && done.stderr.contains("does not speak HTTP/2"), "{}", done.stderr);
    let document = run_to_json(&["run", &server.url, "--http", "2", "--no-preflight", "-c", "2", "-n", "20"]);
    assert_ledger_closes(&document, "no HTTP/2");
    assert_eq!(number_at_path(&document, "ledger.failed.protocol"), 20.0, "{:#}", document["ledger"]);
}

#[test]
fn a_server_with_only_http2_is_reported() {
    let done = plimsoll(&["run", &nginx_h2().url, "-n", "1"]);
    assert!(done.code == 2 && done.stderr.contains("not HTTP/1.1 (add --http 2)"), "{}", done.stderr);
}

#[test]
fn closed_connections_fail_no_request() {
    // nginx closes each connection after a thousand requests.
    let server = nginx_h2();
    for load in [&["-c", "2"][..], &["-c", "32", "--streams", "16"], &["--rate", "8k", "--streams", "16"]] {
        let document =
            run_until_generator_is_not_limit(&[&["run", &server.url, "--http", "2", "-n", "3000"], load].concat());
        assert_ledger_closes(&document, "GOAWAY");
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 3000.0, "{load:?}: {:#}", document["ledger"]);
        // The number of connections of a closed load is fixed. If the machine is slow for a short
        // time, an open load opens many connections, and perhaps no connection reaches a thousand
        // requests.
        let is_closed = load.contains(&"-c");
        let closed =
            number_at_path(&document, "connections_opened") - number_at_path(&document, "connections_open_max");
        let goaways = document["goaways"]["no_error"].as_f64().unwrap_or(0.0);
        assert!(goaways >= closed.max(if is_closed { 2.0 } else { 0.0 }), "{load:?}: {document:#}");
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A frame that a test server received.
pub struct ReceivedFrame<'a> {
    /// The number of the connection, from 0.
    pub connection: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: &'a [u8],
    /// The connection's socket, to send more data later.
    pub out: &'a std::net::TcpStream,
}

/// Starts a server that answers each request head. `answer` gets the connection's number, from 0,
/// and the stream id.
pub fn start_h2_request_server(answer: impl Fn(usize, u32) -> Vec<u8> + Send + Sync + Clone + 'static) -> String {
    start_h2_frame_server(move |heard| (heard.kind == 1).then(|| answer(heard.connection, heard.stream)))
}

/// Starts a server that sends the result of `answer` for each frame. `None` sends nothing, and an
/// empty result closes the connection. The server's threads end with the process.
pub fn start_h2_frame_server(
    answer: impl Fn(ReceivedFrame) -> Option<Vec<u8>> + Send + Sync + Clone + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut preface = [0; 24];
                if stream.read_exact(&mut preface).is_err() || stream.write_all(&frame(4, 0, 0, &[])).is_err() {
                    return;
                }
                let mut header = [0; 9];
                while stream.read_exact(&mut header).is_ok() {
                    let length = usize::from(header[1]) << 8 | usize::from(header[2]);
                    let id = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
                    let mut payload = vec![0; length];
                    if stream.read_exact(&mut payload).is_err() {
                        return;
                    }
                    let (kind, flags) = (header[3], header[4]);
                    let heard =
                        ReceivedFrame { connection: number, kind, flags, stream: id, payload: &payload, out: &stream };
                    let said = match (kind, flags) {
                        (4, 0) => frame(4, 1, 0, &[]),
                        _ => match answer(heard) {
                            Some(said) => said,
                            None => continue,
                        },
                    };
                    if said.is_empty() || stream.write_all(&said).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn ok_response_frame(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, &[0x88])
}

fn reset_stream_frame(stream: u32, code: u8) -> Vec<u8> {
    frame(3, 0, stream, &[0, 0, 0, code])
}

fn goaway_frame(last_stream: u32) -> Vec<u8> {
    frame(7, 0, 0, &[&last_stream.to_be_bytes()[..], &[0; 4]].concat())
}

#[test]
fn unaccepted_requests_are_resent_and_counted() {
    for load in [&["-c", "6", "--streams", "3"][..], &["--rate", "500", "--streams", "3"]] {
        // The server refuses every fifth stream. plimsoll resends a refused request, which soon
        // gets a stream that the server accepts.
        let url = start_h2_request_server(|_, stream| {
            if stream % 10 == 5 { reset_stream_frame(stream, 7) } else { ok_response_frame(stream) }
        });
        let document = run_to_json(&[&["run", &url, "--http", "2", "-n", "90"], load].concat());
        assert_ledger_closes(&document, "refused");
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 90.0, "{load:?}: {:#}", document["ledger"]);
        assert!(number_at_path(&document, "resent") > 15.0, "{load:?}");
        // Each connection accepts four requests, and announces its end (GOAWAY) at the fifth.
        let url =
            start_h2_request_server(|_, stream| if stream > 8 { goaway_frame(7) } else { ok_response_frame(stream) });
        let document = run_to_json(&[&["run", &url, "--http", "2", "-n", "90"], load].concat());
        assert_ledger_closes(&document, "left");
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 90.0, "{load:?}: {:#}", document["ledger"]);
        assert!(
            number_at_path(&document, "resent") > 5.0 && number_at_path(&document, "goaways.no_error") > 5.0,
            "{load:?}"
        );
    }
    // A request to a server that refuses every stream is not repeated endlessly.
    let url = start_h2_request_server(|_, stream| reset_stream_frame(stream, 7));
    let document = run_to_json(&["run", &url, "--http", "2", "--no-preflight", "-c", "2", "-n", "4"]);
    assert_eq!(number_at_path(&document, "ledger.failed.stream_reset"), 4.0, "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "stream_resets.refused_stream"), 4.0);
    let url = start_h2_request_server(|_, _| goaway_frame(0));
    let document = run_to_json(&["run", &url, "--http", "2", "--no-preflight", "-c", "2", "-n", "4"]);
    assert_eq!(number_at_path(&document, "ledger.failed.goaway"), 4.0, "{:#}", document["ledger"]);
}

#[test]
fn stream_failures_are_distinguished_and_isolated() {
    // Four streams have different ends: a response, a reset, a malformed response, and no response.
    let url = start_h2_request_server(|_, stream| match stream % 8 {
        1 => ok_response_frame(stream),
        3 => reset_stream_frame(stream, 2),
        5 => frame(1, 5, stream, &[0x85]),
        _ => frame(6, 0, 0, &[0; 8]),
    });
    let load = ["--rate", "200", "-n", "80", "--streams", "4", "--timeout", "300ms", "--no-preflight"];
    let document = run_to_json(&[&["run", &url, "--http", "2"][..], &load].concat());
    assert_ledger_closes(&document, "streams");
    let failed =
        ["stream_reset", "protocol", "timeout"].map(|kind| number_at_path(&document, &format!("ledger.failed.{kind}")));
    assert_eq!(
        number_at_path(&document, "ledger.succeeded") + failed.iter().sum::<f64>(),
        80.0,
        "{:#}",
        document["ledger"]
    );
    assert!(failed.iter().all(|count| *count >= 15.0), "{failed:?}");
    assert_eq!(number_at_path(&document, "stream_resets.internal_error"), failed[0]);
    let text = plimsoll(&[&["run", "-v", &url, "--http", "2"][..], &load].concat()).stdout;
    for said in ["over HTTP/2", "HTTP/2 with up to 4 requests at a time", "streams reset", "internal_error"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn waits_for_scarce_streams_are_reported() {
    // The server allows two streams at a time, and announces this limit with its first response.
    let url =
        start_h2_request_server(|_, stream| [frame(4, 0, 0, &[0, 3, 0, 0, 0, 2]), ok_response_frame(stream)].concat());
    let document = run_to_json(&["run", &url, "--http", "2", "-c", "8", "--streams", "8", "-n", "400"]);
    assert_ledger_closes(&document, "few streams");
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 400.0, "{:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "connections_opened"), 1.0);
    assert!(number_at_path(&document, "stream_waits") > 100.0, "{}", number_at_path(&document, "stream_waits"));
    for (streams, warned) in [("8", true), ("2", false)] {
        let done = plimsoll(&["run", &url, "--http", "2", "-c", "8", "--streams", streams, "-n", "40"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let shown = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(shown.contains("the server allows 2 streams on a connection"), warned, "{shown}");
    }
}

#[test]
fn a_search_reports_its_protocol() {
    let server = start_baseline(1);
    let url = format!("{}/delay/20", server.url);
    let found = create_new_folder("h2-find").join("found.plimsoll");
    let found: PathBuf = found;
    let path = found.to_str().expect("text");
    let document = run_to_json(&[
        "find",
        &url,
        "--http",
        "2",
        "--streams",
        "8",
        "--budget",
        "4s",
        "--max-rate",
        "400",
        "-o",
        path,
    ]);
    assert_eq!((document["http"].as_str(), document["streams_max"].as_u64()), (Some("2"), Some(8)));
    let text = plimsoll(&["show", path]).stdout;
    assert!(text.contains("over HTTP/2"), "{text}");
}
