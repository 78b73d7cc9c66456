//! Checks over a real socket that each server does what its description says.

use plimsoll_bench::servers::{self, RunningServer};
use plimsoll_bench::{Fault, Outcome};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// The way in which the server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionEnd {
    Refused,
    Closed,
    Reset,
    /// The connection did not end: no byte arrived for a while.
    Quiet,
}

const READ_TIMEOUT: Duration = Duration::from_millis(250);

/// The lock of the tests that measure time or CPU use, so that these tests run one after the other.
static MEASURING: Mutex<()> = Mutex::new(());

fn lock_measuring_tests() -> impl Drop {
    MEASURING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn connect(server: &RunningServer) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    Ok(stream)
}

/// Sends one request. Returns the received bytes, up to 8 MiB, and how the connection ends.
fn send_and_read_until_end(server: &RunningServer, request: &str) -> (Vec<u8>, ConnectionEnd) {
    let mut stream = match connect(server) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return (Vec::new(), ConnectionEnd::Refused),
        Err(error) => panic!("{error}"),
    };
    match stream.write_all(request.as_bytes()) {
        // A write that reports a reset consumes the error, so a later read would not report it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return (Vec::new(), ConnectionEnd::Reset),
        _ => {}
    }
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while bytes.len() < 8 << 20 {
        match stream.read(&mut buffer) {
            Ok(0) => return (bytes, ConnectionEnd::Closed),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                return (bytes, ConnectionEnd::Reset);
            }
            Err(error) => panic!("{error}"),
        }
    }
    (bytes, ConnectionEnd::Quiet)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends `count` requests on one connection and returns the statuses in order.
fn statuses(stream: &mut TcpStream, count: usize) -> Vec<u16> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let mut reader = BufReader::new(stream.try_clone().expect("cloned"));
    (0..count)
        .map(|_| {
            stream.write_all(GET.as_bytes()).expect("written");
            receive(&mut reader).0
        })
        .collect()
}

/// Reads one reply with a Content-Length and returns its status and body.
fn receive(reader: &mut impl BufRead) -> (u16, String) {
    let (mut status, mut length) = (0, 0);
    for index in 0.. {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "the server closed");
        let line = line.trim_end();
        if index == 0 {
            status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        } else if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().expect("a length");
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (status, String::from_utf8(body).expect("text"))
}

#[test]
fn every_fault_behaves_as_documented() {
    // The faults run in parallel, because most of the time is spent waiting for bytes that never
    // come.
    thread::scope(|scope| Fault::all().for_each(|fault| drop(scope.spawn(move || check_fault(fault)))));
}

fn check_fault(fault: Fault) {
    let (end, holds): (ConnectionEnd, fn(&str) -> bool) = match fault {
        Fault::Refuses => (ConnectionEnd::Refused, str::is_empty),
        Fault::ResetOnConnect | Fault::ResetOnRequest => (ConnectionEnd::Reset, str::is_empty),
        // If the client sends its request after the server closed the connection, the client sees a
        // reset (`crossed`).
        Fault::CloseOnConnect => (ConnectionEnd::Closed, str::is_empty),
        Fault::CloseOnRequest => (ConnectionEnd::Closed, str::is_empty),
        Fault::NeverReads | Fault::NeverAnswers => (ConnectionEnd::Quiet, str::is_empty),
        Fault::CloseInHead => {
            (ConnectionEnd::Closed, |s| s.starts_with("HTTP/1.1 200 OK\r\n") && !s.contains("\r\n\r\n"))
        }
        Fault::CloseInBody => (ConnectionEnd::Closed, |s| s.ends_with("Content-Length: 10\r\n\r\nhello")),
        Fault::ResetInBody => (ConnectionEnd::Reset, |s| s.ends_with("Content-Length: 10\r\n\r\nhello")),
        Fault::StopsInBody => (ConnectionEnd::Quiet, |s| s.ends_with("Content-Length: 10\r\n\r\nhello")),
        Fault::CloseInChunk => (ConnectionEnd::Closed, |s| s.ends_with("ff\r\nhel")),
        Fault::Garbage => (ConnectionEnd::Quiet, |s| s.starts_with('\0')),
        Fault::GarbageAfterReply => (ConnectionEnd::Quiet, |s| s.contains("\r\n\r\nok\0garbage")),
        Fault::LongBody => (ConnectionEnd::Quiet, |s| s.contains("Content-Length: 2\r\n\r\nok and more")),
        Fault::BadStatus => (ConnectionEnd::Quiet, |s| s.starts_with("HTTP/1.1 abc ")),
        Fault::BadLength => (ConnectionEnd::Quiet, |s| s.contains("Content-Length: two\r\n")),
        Fault::TwoLengths => (ConnectionEnd::Quiet, |s| s.matches("Content-Length").count() == 2),
        Fault::BadChunk => (ConnectionEnd::Quiet, |s| s.contains("\r\nxyz\r\n")),
        Fault::HugeHead => (ConnectionEnd::Quiet, |s| s.len() > 4 << 20 && s.ends_with("\r\n\r\nok")),
        Fault::ManyHeaders => (ConnectionEnd::Quiet, |s| s.lines().count() > 20_000 && s.ends_with("\r\n\r\nok")),
        Fault::EndlessInterim => (ConnectionEnd::Quiet, |s| s.matches("HTTP/1.1 103 ").count() == 20_000),
        Fault::Drip(ms) if ms < 100 => (ConnectionEnd::Quiet, |s| s.ends_with("Content-Length: 5\r\n\r\nhello")),
        Fault::Drip(_) => (ConnectionEnd::Quiet, |s| s.len() <= 1),
        Fault::ByteByByte => (ConnectionEnd::Quiet, |s| s.ends_with("Content-Length: 5\r\n\r\nhello")),
        Fault::Chunked => {
            (ConnectionEnd::Quiet, |s| s.contains("chunked\r\n\r\n5\r\nhello\r\n") && s.ends_with("\r\n0\r\n\r\n"))
        }
        Fault::ChunkedTrailers => (ConnectionEnd::Quiet, |s| s.ends_with("0\r\nDigest: abc\r\nX-Time: 1\r\n\r\n")),
        Fault::BodyUntilClose => {
            (ConnectionEnd::Closed, |s| !s.contains("Length") && s.ends_with("hello and good bye"))
        }
        Fault::Http10Reply => (ConnectionEnd::Closed, |s| s == "HTTP/1.0 200 OK\r\n\r\nhello"),
        Fault::Interim => (ConnectionEnd::Quiet, |s| s.matches("HTTP/1.1 1").count() == 2 && s.ends_with("\r\n\r\nok")),
        Fault::NoContent => (ConnectionEnd::Quiet, |s| s.contains(" 204 ") && s.ends_with("Content-Length: 5\r\n\r\n")),
        Fault::NotModified => (ConnectionEnd::Quiet, |s| s.contains(" 304 ") && s.ends_with("\r\n\r\n")),
        Fault::CloseEach => (ConnectionEnd::Closed, |s| s.contains("Connection: close\r\n") && s.ends_with("ok")),
        Fault::CloseSilently => (ConnectionEnd::Closed, |s| !s.contains("Connection") && s.ends_with("ok")),
        Fault::HugeBody => {
            (ConnectionEnd::Quiet, |s| s.contains("Content-Length: 100000000\r\n\r\nxxx") && s.len() >= 8 << 20)
        }
        Fault::WithStatus(302) => {
            (ConnectionEnd::Quiet, |s| s.starts_with("HTTP/1.1 302 ") && s.contains("Location: "))
        }
        Fault::WithStatus(_) => {
            (ConnectionEnd::Quiet, |s| s.split(' ').nth(1).is_some_and(|n| ["429", "500", "503"].contains(&n)))
        }
    };
    let server = servers::start_faulty_server(fault, 1).expect("starts");
    let (bytes, ended) = send_and_read_until_end(&server, GET);
    let text = String::from_utf8_lossy(&bytes);
    let shown: String = text.chars().take(200).collect();
    // If the request arrives after the server's close, the client sees a reset.
    let crossed = fault == Fault::CloseOnConnect && ended == ConnectionEnd::Reset;
    assert!(ended == end || crossed, "{}: {ended:?} after {shown:?}", fault.name());
    assert!(holds(&text), "{}: {shown:?}", fault.name());
    if fault != Fault::Refuses {
        assert_eq!(server.stats().special, 1, "{}", fault.name());
    }
}

#[test]
fn every_third_request_gets_a_fault() {
    let server = servers::start_faulty_server(Fault::WithStatus(500), 3).expect("starts");
    let mut stream = connect(&server).expect("connects");
    assert_eq!(statuses(&mut stream, 7), [200, 200, 500, 200, 200, 500, 200]);
    assert_eq!((server.stats().requests, server.stats().special), (7, 2));

    let server = servers::start_faulty_server(Fault::ResetOnConnect, 2).expect("starts");
    let ends: Vec<ConnectionEnd> = (0..4).map(|_| send_and_read_until_end(&server, GET).1).collect();
    assert_eq!(ends, [ConnectionEnd::Quiet, ConnectionEnd::Reset, ConnectionEnd::Quiet, ConnectionEnd::Reset]);
    assert_eq!(server.stats().connections, 4);
}

#[test]
fn correct_replies_match_the_request() {
    let server = servers::start_token_bucket_server(1e9, 1e9).expect("starts");
    let (bytes, end) = send_and_read_until_end(&server, "HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!((bytes.as_slice(), end), (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"[..], ConnectionEnd::Quiet));
    let (bytes, end) =
        send_and_read_until_end(&server, "POST / HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
    assert_eq!(String::from_utf8_lossy(&bytes), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(end, ConnectionEnd::Closed);
    let (bytes, _) = send_and_read_until_end(&server, &GET.replace("/ ", "/stats "));
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains(r#"{"requests":2,"connections":3,"special":0,"cpu_s":0."#), "{text}");
}

#[test]
fn an_instant_server_never_sleeps() {
    let _guard = lock_measuring_tests();
    let server = servers::start_instant_server().expect("starts");
    let mut stream = connect(&server).expect("connects");
    assert_eq!(statuses(&mut stream, 100), [200; 100]);
    assert_eq!(server.stats().requests, 100);
    assert_eq!(send_and_read_until_end(&server, "GET / HTTP/1.0\r\n\r\n").1, ConnectionEnd::Closed);
    let (bytes, _) = send_and_read_until_end(&server, "GET /json HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    let text = String::from_utf8(bytes).expect("text");
    let body = text.split("\r\n\r\n").nth(1).and_then(|body| body.split("HTTP/1.1").next()).expect("a body");
    assert!(body.len() == servers::JSON_BYTES && body.ends_with("\"token\":\"t0k-4f1c9e7a\"}"), "{text}");
}

#[test]
fn dropping_a_server_stops_it() {
    let server = servers::start_deep_queue_server(10).expect("starts");
    let mut stream = connect(&server).expect("connects");
    assert_eq!(statuses(&mut stream, 3), [200; 3]);
    let address = server.address;
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn cpu_cost_per_request_is_exact() {
    let _guard = lock_measuring_tests();
    for us in [50, 400] {
        let server = servers::start_exact_cpu_server(us).expect("starts");
        let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(&server).expect("connects")).collect();
        // Other work on the machine can only make a request cost more CPU time, because caches are
        // colder. So the best of up to 40 batches counts, and a rate may be 5 % too low, but only
        // 2 % too high.
        let (expect_rps, mut best_rps) = (1e6 / us as f64, 0.0f64);
        for _ in 0..40 {
            let earlier = server.stats();
            thread::scope(|scope| {
                for stream in &mut streams {
                    scope.spawn(|| assert_eq!(statuses(stream, 100), [200; 100]));
                }
            });
            // The server publishes its times at the end of a loop turn, which may be after the last
            // reply.
            thread::sleep(Duration::from_millis(5));
            best_rps = best_rps.max(server.stats().difference_from_earlier(&earlier).capacity_rps());
            if best_rps > 0.98 * expect_rps {
                break;
            }
        }
        assert!((0.95..1.02).contains(&(best_rps / expect_rps)), "{us} us: {best_rps} a second");
    }
}

#[test]
fn a_token_bucket_allows_its_burst_and_its_rate() {
    let _guard = lock_measuring_tests();
    let server = servers::start_token_bucket_server(200.0, 20.0).expect("starts");
    let mut stream = connect(&server).expect("connects");
    let start = Instant::now();
    let first = statuses(&mut stream, 40);
    let passed = first.iter().filter(|status| **status == 200).count() as f64;
    let most = 20.0 + start.elapsed().as_secs_f64() * 200.0 + 1.0;
    assert!((20.0..=most).contains(&passed), "{passed} of at most {most}");
    assert!(first.iter().all(|status| [200, 429].contains(status)));
    let mut given = passed;
    while start.elapsed() < Duration::from_millis(500) {
        given += statuses(&mut stream, 10).iter().filter(|status| **status == 200).count() as f64;
    }
    let expect = 20.0 + 200.0 * start.elapsed().as_secs_f64();
    // The server sends at most as many 200 responses as the bucket has tokens. The server sends
    // fewer 200 responses if this client was delayed for so long that the full bucket lost tokens.
    assert!(given <= expect + 1.0 && given >= 0.8 * expect, "{given} of {expect}");
    assert!(server.stats().special > 0);
}

#[test]
fn requests_beyond_the_slots_wait() {
    let _guard = lock_measuring_tests();
    let server = servers::start_slots_server(4, 20.0).expect("starts");
    let start = Instant::now();
    let mut streams: Vec<TcpStream> = (0..12).map(|_| connect(&server).expect("connects")).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(GET.as_bytes()).expect("written"));
    let mut took: Vec<Duration> = Vec::new();
    for stream in streams {
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        assert_eq!(receive(&mut BufReader::new(stream)).0, 200);
        took.push(start.elapsed());
    }
    // The server handles 12 requests of 20 ms each, 4 at a time, so in three rounds.
    assert!(took[0] >= Duration::from_millis(20), "{took:?}");
    assert!((60..1000).contains(&took[11].as_millis()), "{took:?}");
}

#[test]
fn a_deep_queue_serves_in_order_at_a_constant_pace() {
    let _guard = lock_measuring_tests();
    let server = servers::start_deep_queue_server(500).expect("starts");
    let mut stream = connect(&server).expect("connects");
    let start = Instant::now();
    assert_eq!(statuses(&mut stream, 100), [200; 100]);
    let took = start.elapsed();
    // The responses come no earlier than the service times allow. A busy machine may delay the
    // responses.
    assert!(took >= Duration::from_millis(50) && took < Duration::from_secs(1), "{took:?}");
    assert!(server.stats().cpu_s < 0.03, "{:?}", server.stats());
}

#[test]
fn a_stall_stops_all_connections() {
    let _guard = lock_measuring_tests();
    let server = servers::start_periodic_stall_server(100, 400).expect("starts");
    let mut stream = connect(&server).expect("connects");
    let start = Instant::now();
    let mut longest: Vec<Duration> = Vec::new();
    while start.elapsed() < Duration::from_millis(1000) {
        let one = Instant::now();
        assert_eq!(statuses(&mut stream, 1), [200]);
        if one.elapsed() > Duration::from_millis(70) {
            longest.push(one.elapsed());
        }
        thread::sleep(Duration::from_millis(1));
    }
    // Each period that began has one stall. A busy machine may add one long response.
    assert!((2..=4).contains(&longest.len()), "{longest:?}");
}

#[test]
fn fast_and_slow_regimes_alternate() {
    let _guard = lock_measuring_tests();
    let count_for = |stream: &mut TcpStream, time: Duration| {
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < time {
            statuses(stream, 1);
            count += 1;
        }
        count
    };
    // On a busy machine, the fast regime may be slow, too, so one of ten tries must show both.
    for _ in 0..10 {
        let server = servers::start_alternating_cost_server(50, 2000, Duration::from_millis(200)).expect("starts");
        let mut stream = connect(&server).expect("connects");
        let fast = count_for(&mut stream, Duration::from_millis(150));
        thread::sleep(Duration::from_millis(80));
        let slow = count_for(&mut stream, Duration::from_millis(120));
        assert!(slow <= 61, "{slow} slow");
        if fast > 3 * slow {
            return;
        }
    }
    panic!("the regimes are equally fast");
}

#[test]
fn a_thousand_connections_are_served() {
    let server = servers::start_token_bucket_server(1e9, 1e9).expect("starts");
    let mut streams: Vec<TcpStream> = (0..1000).map(|_| connect(&server).expect("connects")).collect();
    for _ in 0..2 {
        streams.iter_mut().for_each(|stream| stream.write_all(GET.as_bytes()).expect("written"));
        for stream in &mut streams {
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            assert_eq!(receive(&mut BufReader::with_capacity(256, stream)).0, 200);
        }
    }
    assert_eq!((server.stats().requests, server.stats().connections), (2000, 1000));
}

#[test]
fn each_fault_has_a_distinct_outcome() {
    for outcome in [
        Outcome::Success,
        Outcome::Status,
        Outcome::Connect,
        Outcome::Reset,
        Outcome::Closed,
        Outcome::Protocol,
        Outcome::Timeout,
    ] {
        let named = Fault::all().find(|fault| fault.outcomes().first() == Some(&outcome));
        assert!(named.is_some(), "no fault leads to {outcome:?}");
    }
}

#[test]
fn the_minimal_client_loads_the_server_process() {
    let _guard = lock_measuring_tests();
    let mut server = Command::new(env!("CARGO_BIN_EXE_bench-server"))
        .args(["exact-cpu", "20"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut address = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
    for spin in ["on", "off"] {
        let url = format!("http://{}/", address.trim());
        let run = Command::new(env!("CARGO_BIN_EXE_bare-loop"))
            .args([url.as_str(), "-c", "8", "-d", "0.2", "--spin", spin])
            .output()
            .expect("runs");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
        for field in ["\"requests\":", "\"throughput_rps\":", "\"cpu_us_per_request\":", "\"p50_us\":"] {
            assert!(text.contains(field), "{text}");
        }
    }
    drop(server.stdin.take());
    assert!(server.wait().expect("ended").success());
}

#[test]
fn bad_arguments_are_refused_at_once() {
    for arguments in [&[][..], &["slots", "x", "1"], &["misbehave", "kindness"], &["exact-cpu"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_bench-server")).args(arguments).output().expect("runs");
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&run.stderr).contains("misbehave FAULT"), "{arguments:?}");
    }
    for arguments in [&[][..], &["https://a/"], &["http://127.0.0.1:1/", "-c", "0"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_bare-loop")).args(arguments).output().expect("runs");
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_closed_client_frees_its_connection() {
    let server = servers::start_faulty_server(Fault::NeverAnswers, 1).expect("starts");
    for _ in 0..3 {
        let mut stream = connect(&server).expect("connects");
        stream.write_all(GET.as_bytes()).expect("written");
        stream.shutdown(Shutdown::Write).expect("ended");
        // A connection without a response ends when the client closes its side.
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert_eq!(server.stats().requests, 3);
}
