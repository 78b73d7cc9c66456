//! Tests servers that never stop sending: the load must end on time, requests must time out on
//! time, and ^C must work. Also tests warnings about bytes that belong to no response.

use crate::test_support::{
    assert_ledger_closes, command, number_at_path, plimsoll, run_to_json, signal, wait_for_exit,
};
use plimsoll_bench::Fault;
use plimsoll_bench::servers::start_faulty_server;
use rustls::pki_types::PrivateKeyDer;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The extra time that each test allows on a busy machine. A real failure exceeds this allowance:
/// if a flood blocks an event loop, the loop is late by tens of seconds.
const BUSY_MACHINE_ALLOWANCE: Duration = Duration::from_secs(3);

/// Data that a server sends endlessly.
#[derive(Clone, Copy)]
struct Flood {
    name: &'static str,
    tls: bool,
    head: &'static str,
    unit: &'static str,
    /// The outcome that requests must have, as a path in the JSON document.
    outcome_path: &'static str,
}

const CHUNKED_RESPONSE_HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ENDLESS_BODY_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\n";
const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FLOODS: [Flood; 6] = [
    Flood {
        name: "tiny chunks",
        tls: false,
        head: CHUNKED_RESPONSE_HEAD,
        unit: "1\r\nx\r\n",
        outcome_path: "ledger.failed.timeout",
    },
    Flood {
        name: "tiny chunks, TLS",
        tls: true,
        head: CHUNKED_RESPONSE_HEAD,
        unit: "1\r\nx\r\n",
        outcome_path: "ledger.failed.timeout",
    },
    Flood {
        name: "a body",
        tls: false,
        head: ENDLESS_BODY_HEAD,
        unit: "0123456789abcdef",
        outcome_path: "ledger.failed.timeout",
    },
    Flood {
        name: "fields",
        tls: false,
        head: "HTTP/1.1 200 OK\r\n",
        unit: "a: b\r\n",
        outcome_path: "ledger.failed.protocol",
    },
    Flood {
        name: "interim answers",
        tls: false,
        head: "",
        unit: "HTTP/1.1 103 Early Hints\r\n\r\n",
        outcome_path: "ledger.failed.protocol",
    },
    Flood { name: "answers", tls: false, head: "", unit: REPLY, outcome_path: "ledger.succeeded" },
];

/// Starts a server that sends the data of `flood` endlessly. Each thread of the server ends with
/// its connection, at the latest with the test's process.
fn start_flood_server(flood: Flood) -> String {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a certificate of its own");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                // Errors of sending are ignored, because the client ends the connection.
                let _ = match flood.tls {
                    false => send_flood(flood, socket),
                    true => rustls::ServerConnection::new(config)
                        .map_err(std::io::Error::other)
                        .and_then(|session| send_flood(flood, rustls::StreamOwned::new(session, socket))),
                };
            });
        }
    });
    format!("http{}://{address}/", if flood.tls { "s" } else { "" })
}

fn send_flood(flood: Flood, mut stream: impl Read + Write) -> std::io::Result<()> {
    if stream.read(&mut [0; 4096])? == 0 {
        return Ok(());
    }
    stream.write_all(flood.head.as_bytes())?;
    let bytes = flood.unit.repeat(100_000 / flood.unit.len());
    loop {
        stream.write_all(bytes.as_bytes())?;
    }
}

#[test]
fn a_flood_ends_with_its_load() {
    for flood in FLOODS {
        let url = start_flood_server(flood);
        let began = Instant::now();
        let load = ["-c", "4", "-d", "300ms", "--timeout", "200ms", "--no-preflight", "--no-probes", "--insecure"];
        let document = run_to_json(&[&["run", &url], &load[..if flood.tls { 9 } else { 8 }]].concat());
        let took = began.elapsed();
        assert!(took < Duration::from_millis(500) + BUSY_MACHINE_ALLOWANCE, "{}: {took:?}", flood.name);
        assert_ledger_closes(&document, flood.name);
        assert!(number_at_path(&document, "requests") > 0.0, "{}: {:#}", flood.name, document["ledger"]);
        let (ended, timeouts) =
            (number_at_path(&document, flood.outcome_path), number_at_path(&document, "ledger.failed.timeout"));
        assert!(
            ended > 0.0 && ended.max(timeouts) <= number_at_path(&document, "requests"),
            "{}: {document:#}",
            flood.name
        );
        let longest = number_at_path(&document, "response_time_ns.max");
        assert!(longest < 200e6 + BUSY_MACHINE_ALLOWANCE.as_nanos() as f64, "{}: {longest} ns", flood.name);
        if flood.unit == REPLY {
            let told = document["warnings"].to_string();
            assert!(told.contains("beyond the end of its responses"), "{told}");
            assert!(number_at_path(&document, "surplus_bytes") > 1000.0, "{document:#}");
        }
    }
}

#[test]
fn control_c_works_under_a_flood() {
    for flood in &FLOODS[..3] {
        let url = start_flood_server(*flood);
        let arguments = ["run", &url, "-c", "4", "-d", "100s", "--timeout", "100s", "--no-preflight", "--insecure"];
        let child = command(&arguments[..if flood.tls { 10 } else { 9 }])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        std::thread::sleep(Duration::from_millis(1200));
        signal(child.id(), "INT");
        let began = Instant::now();
        let done = wait_for_exit(child);
        let took = began.elapsed();
        assert!(took < BUSY_MACHINE_ALLOWANCE, "{}: {took:?}\n{}", flood.name, done.stderr);
        assert!(done.stdout.contains("4 in flight at the end"), "{}: {}\n{}", flood.name, done.stdout, done.stderr);
    }
}

/// Starts a server that reads requests and never responds.
fn start_silent_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while TcpStream::read(&mut socket, &mut buffer).is_ok_and(|count| count > 0) {}
            });
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_long_request_ends_with_its_deadline() {
    let (url, body) = (start_silent_server(), crate::test_support::create_new_folder("body").join("body"));
    std::fs::write(&body, vec![b'x'; 16 << 20]).expect("written");
    let body = format!("@{}", body.display());
    let document = run_to_json(&[
        "run",
        &url,
        "-X",
        "POST",
        "--body",
        &body,
        "-c",
        "4",
        "-d",
        "600ms",
        "--timeout",
        "300ms",
        "--no-preflight",
        "--no-probes",
    ]);
    let longest = number_at_path(&document, "response_time_ns.max");
    assert!(longest < 300e6 + BUSY_MACHINE_ALLOWANCE.as_nanos() as f64, "{longest} ns");
    assert_ledger_closes(&document, "long requests");
    assert!(number_at_path(&document, "ledger.failed.timeout") >= 4.0, "{document:#}");
}

#[test]
fn bytes_after_a_response_are_a_warning() {
    for (fault, bytes) in [(Fault::LongBody, 9.0), (Fault::GarbageAfterReply, 12.0)] {
        let server = start_faulty_server(fault, 1).expect("starts");
        let url = server.url("/");
        // Requests are sent one at a time and slowly, so surplus bytes arrive together with the
        // response.
        let document = run_to_json(&["run", &url, "--no-preflight", "--rate", "20", "-n", "10"]);
        let what = format!("{}: {document:#}", fault.name());
        assert_eq!(number_at_path(&document, "surplus_bytes"), 10.0 * bytes, "{what}");
        assert_eq!(number_at_path(&document, "surplus_connections"), 10.0, "{what}");
        assert!(document["warnings"].to_string().contains("beyond the end of its responses"), "{what}");
        let done = plimsoll(&["run", &url, "--no-preflight", "--rate", "20", "-n", "10", "--verbose"]);
        let expect = format!("sent {} bytes beyond the end of its responses", 10.0 * bytes);
        assert!(done.stdout.contains(&expect), "{}", done.stdout);
    }
    // A correct response causes no warning.
    let server = start_faulty_server(Fault::Chunked, 1).expect("starts");
    let document = run_to_json(&["run", &server.url("/"), "--no-preflight", "--rate", "20", "-n", "5"]);
    assert_eq!(number_at_path(&document, "surplus_connections"), 0.0, "{document:#}");
    assert!(!document["warnings"].to_string().contains("beyond"), "{document:#}");
}
