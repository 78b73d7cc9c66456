//! Tests of the reference server: its parser with bytes split at any place, and its responses over
//! real sockets.

use super::answer::{STATUS_OK_JSON, burn_cpu_time, write};
use super::request::{ReaderStep, RequestReader, Resource, ServedRequest};
use super::*;
use plimsoll_wire::h1::{CHUNK_LINE_BYTES_MAX, REQUEST_HEAD_BYTES_MAX as HEAD_BYTES_MAX};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

// Tests of the request reader, without sockets.

/// Parses bytes that arrive in these pieces, and returns the results of the parser.
fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<ReaderStep> {
    let (mut reader, mut held, mut found) = (RequestReader::new(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        while !held.is_empty() {
            let (used, step) = reader.read(&held);
            assert!(used <= held.len());
            held.drain(..used);
            match step {
                ReaderStep::More if used == 0 => break,
                ReaderStep::More => {}
                ReaderStep::Request(_) => found.push(step),
                // `Continue` asks for a body that did not arrive with its head. Whether `Continue`
                // occurs depends on where the bytes are split, so the tests ignore `Continue`.
                ReaderStep::Continue => {}
                ReaderStep::Refuse(_) => {
                    found.push(step);
                    return found;
                }
            }
        }
        assert!(held.len() <= HEAD_BYTES_MAX + piece.len(), "the reader holds {} bytes", held.len());
    }
    found
}

fn expected_get_request(resource: Resource) -> ReaderStep {
    ReaderStep::Request(ServedRequest { resource, head: false, keep: true, is_http_1_0: false })
}

fn request_without_keep_alive(resource: Resource) -> ReaderStep {
    ReaderStep::Request(ServedRequest { resource, head: false, keep: false, is_http_1_0: false })
}

fn check(bytes: &[u8], expect: &[ReaderStep]) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    assert_eq!(read_pieces([bytes].into_iter()), expect, "all at once: {shown:?}");
    assert_eq!(read_pieces(bytes.chunks(1)), expect, "byte by byte: {shown:?}");
    for at in 1..bytes.len().min(300) {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read_pieces([left, right].into_iter()), expect, "cut at {at}: {shown:?}");
    }
}

#[test]
fn requests_parse_from_any_split() {
    use Resource::{BadNumber, Burn, Bytes, Delay, Health, Status, Unknown};
    let one = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    let routes = [
        ("/healthz", Health),
        ("/healthz?x=/bytes/1", Health),
        ("http://host:1/healthz", Health),
        ("http://host", Unknown),
        ("/", Unknown),
        ("*", Unknown),
        ("/healthz/", Unknown),
        ("/bytes/0", Bytes(0)),
        ("/bytes/1073741824", Bytes(1 << 30)),
        ("/bytes/1073741825", BadNumber),
        ("/bytes/", BadNumber),
        ("/bytes/-1", BadNumber),
        ("/bytes/99999999999999999999999", BadNumber),
        ("/delay/15?q", Delay(15)),
        ("/delay/3600001", BadNumber),
        ("/status/200", Status(200)),
        ("/status/599", Status(599)),
        ("/status/100", BadNumber),
        ("/status/600", BadNumber),
        ("/burn/100", Burn(100)),
        ("/burn/1e3", BadNumber),
    ];
    for (target, expect) in routes {
        check(&one(target), &[expected_get_request(expect)]);
    }
    // The parser tolerates the deviations in pipelined requests that HTTP requires servers to
    // tolerate: empty lines between requests, and bare line feeds.
    let pipelined = [one("/healthz"), b"\r\n\r\n".to_vec(), one("/bytes/5"), one("/burn/7")].concat();
    check(&pipelined, &[expected_get_request(Health), expected_get_request(Bytes(5)), expected_get_request(Burn(7))]);
    check(
        b"GET /healthz HTTP/1.1\n\nGET /delay/1 HTTP/1.1\nHost:b\n\n",
        &[expected_get_request(Health), expected_get_request(Delay(1))],
    );
    // Each parsed request says whether the client wants to keep the connection open.
    check(b"GET /healthz HTTP/1.1\r\nConnection: x, Close\r\n\r\n", &[request_without_keep_alive(Health)]);
    let old = |keep| ReaderStep::Request(ServedRequest { resource: Health, head: false, keep, is_http_1_0: true });
    check(b"GET /healthz HTTP/1.0\r\n\r\n", &[old(false)]);
    check(b"GET /healthz HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", &[old(true)]);
    let head = ReaderStep::Request(ServedRequest { resource: Health, head: true, keep: true, is_http_1_0: false });
    check(b"HEAD /healthz HTTP/1.1\r\n\r\n", &[head]);
}

#[test]
fn bodies_are_discarded_from_any_split() {
    let then = |head: &str, body: &str| {
        format!("POST /healthz HTTP/1.1\r\n{head}\r\n\r\n{body}GET /bytes/1 HTTP/1.1\r\n\r\n").into_bytes()
    };
    let both = [expected_get_request(Resource::Health), expected_get_request(Resource::Bytes(1))];
    check(&then("Content-Length: 0", ""), &both);
    check(&then("Content-Length: 5", "GET /"), &both);
    check(&then("Content-Length: 5\r\ncontent-length: 5", "12345"), &both);
    check(&then("Content-Length: 5\r\nExpect: 100-continue", "12345"), &both);
    check(&then("Transfer-Encoding: chunked", "0\r\n\r\n"), &both);
    check(&then("Transfer-Encoding: Chunked", "5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n000\r\n\r\n"), &both);
    check(&then("Transfer-Encoding: chunked", "1 \r\nx\r\n0\r\nDigest: a\r\nOther: b\r\n\r\n"), &both);
    check(&then("Transfer-Encoding: chunked", "1\nx\n0\n\n"), &both);
}

#[test]
fn invalid_http_is_refused_from_any_split() {
    let bad: [&[u8]; 19] = [
        b"\x16\x03\x01\x02\x00\x01\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1 \r\n\r\n",
        b"GET / http/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"G(T / HTTP/1.1\r\n\r\n",
        b"GET /a\x00b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n: empty\r\n\r\n",
        b"GET / HTTP/1.1\r\nspace : before\r\n\r\n",
        b"GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\na: \x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ];
    for bytes in bad {
        check(bytes, &[ReaderStep::Refuse(400)]);
    }
    for body in ["\r\n", "x\r\n", "-1\r\n", "1\r\nab", "1\r\na\r\r\n", "11111111111111111\r\n"] {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(format!("{head}{body}").as_bytes(), &[ReaderStep::Refuse(400)]);
    }
    let line = format!("1;{}\r\n", "x".repeat(CHUNK_LINE_BYTES_MAX + 1));
    check(
        format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{line}").as_bytes(),
        &[ReaderStep::Refuse(400)],
    );
    // A request head is refused as soon as it exceeds the length limit, whether or not the end of
    // the head arrives.
    let long = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(HEAD_BYTES_MAX));
    assert_eq!(read_pieces(long.as_bytes().chunks(1)), [ReaderStep::Refuse(431)]);
    assert_eq!(read_pieces(format!("{long}\r\n\r\n").as_bytes().chunks(4096)), [ReaderStep::Refuse(431)]);
}

/// A small random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn random_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[test]
fn any_bytes_parse_equally_from_any_split() {
    let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
    });
    let words: [&[u8]; 24] = [
        b"GET ",
        b"POST ",
        b"HEAD ",
        b"/healthz",
        b"/bytes/12",
        b"/",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b"\r\n",
        b"\n",
        b"\r",
        b"Host: a\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"\r\n\r\n",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"abc",
        b"\x00",
        b"\xff\xfe",
        b";",
        b":",
    ];
    for round in 0..3_000 {
        let mut random = Random(seed.wrapping_add(round));
        let mut bytes = Vec::new();
        for _ in 0..random.random_below(40) {
            match random.random_below(8) {
                0 => bytes.push(random.random_below(256) as u8),
                1 => bytes.extend_from_slice(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
                _ => bytes.extend_from_slice(words[random.random_below(words.len())]),
            }
        }
        let at_once = read_pieces([bytes.as_slice()].into_iter());
        let by_byte = read_pieces(bytes.chunks(1));
        let size = 1 + random.random_below(9);
        let by_size = read_pieces(bytes.chunks(size));
        let again = format!("PLIMSOLL_SEED={seed}, round {round}, {:?}", String::from_utf8_lossy(&bytes));
        assert_eq!(at_once, by_byte, "{again}");
        assert_eq!(at_once, by_size, "{again}");
    }
}

#[test]
fn an_idle_connection_uses_little_memory() {
    assert!(size_of::<Option<ServedConnection>>() <= 192, "{} bytes", size_of::<Option<ServedConnection>>());
}

// Tests of the server over real sockets.

fn start_reference_server(threads: usize) -> ReferenceServer {
    start(ReferenceServerOptions { listen: "127.0.0.1:0".parse().expect("an address"), threads, tls: None })
        .expect("starts")
}

fn connect(server: &ReferenceServer) -> TcpStream {
    let stream = TcpStream::connect(server.listen_address()).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    stream.set_nodelay(true).expect("set");
    stream
}

/// Sends `bytes`, stops sending, and returns the server's whole output.
fn send_and_read_output(server: &ReferenceServer, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    stream.write_all(bytes).expect("written");
    stream.shutdown(Shutdown::Write).expect("ended");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("read");
    String::from_utf8(answer).expect("text")
}

/// Reads one response that has a Content-Length; returns its head and body.
fn receive(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).map_or(0, |l| l.parse().expect("n"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    (head, body)
}

#[test]
fn every_baseline_route_responds() {
    let server = start_reference_server(1);
    let json = |status: &str, body: &str| {
        let kind = "Content-Type: application/json\r\nContent-Length";
        format!("HTTP/1.1 {status}\r\n{kind}: {}\r\n\r\n{body}", body.len())
    };
    let get =
        |target: &str| send_and_read_output(&server, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    assert_eq!(get("/healthz"), json("200 OK", r#"{"status":"ok"}"#));
    assert_eq!(get("/delay/1"), json("200 OK", r#"{"status":"ok"}"#));
    assert_eq!(get("/burn/10"), json("200 OK", r#"{"status":"ok"}"#));
    assert_eq!(get("/status/503"), json("503 Service Unavailable", r#"{"status":503}"#));
    assert_eq!(get("/status/299"), json("299 Success", r#"{"status":299}"#));
    assert_eq!(get("/status/204"), "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(get("/status/304"), "HTTP/1.1 304 Not Modified\r\n\r\n");
    assert!(get("/status/205").ends_with("Content-Length: 0\r\n\r\n"));
    assert!(get("/status/99").starts_with("HTTP/1.1 400 "));
    assert!(get("/nowhere").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let bytes = get("/bytes/3");
    assert!(bytes.ends_with("Content-Length: 3\r\n\r\nxxx") && bytes.contains("octet-stream"), "{bytes}");
}

#[test]
fn connections_are_kept_or_closed_as_requested() {
    let server = start_reference_server(2);
    let mut stream = connect(&server);
    for _ in 0..3 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
        assert_eq!(receive(&mut stream).1, STATUS_OK_JSON);
    }
    stream.write_all(b"GET /bytes/70000 HTTP/1.1\r\nConnection: close\r\n\r\n").expect("written");
    let (head, body) = receive(&mut stream);
    assert!(head.contains("Connection: close\r\n"), "{head}");
    assert_eq!(body.len(), 70_000);
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);

    let old = send_and_read_output(&server, b"GET /healthz HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(old.matches("HTTP/1.1 200 OK").count(), 1, "{old}");
    let kept = send_and_read_output(&server, &b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2));
    assert_eq!(kept.matches("Connection: keep-alive").count(), 2, "{kept}");
    let head = send_and_read_output(&server, &b"HEAD /bytes/100000 HTTP/1.1\r\n\r\n".repeat(2));
    assert_eq!(head.matches("Content-Length: 100000\r\n\r\n").count(), 2, "{head}");
    assert!(!head.contains('x'), "{head}");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start_reference_server(1);
    let mut stream = connect(&server);
    let lengths: Vec<usize> = (0..500).map(|n| n * 37 % 5000).collect();
    let mut requests = Vec::new();
    for (index, length) in lengths.iter().enumerate() {
        let slow = if index % 100 == 99 { "GET /delay/5 HTTP/1.1\r\n\r\nGET /burn/50 HTTP/1.1\r\n\r\n" } else { "" };
        write(&mut requests, format_args!("{slow}POST /bytes/{length} HTTP/1.1\r\nContent-Length: 9\r\n\r\n"));
        requests.extend_from_slice(b"GET /123\n");
    }
    let mut writer = stream.try_clone().expect("cloned");
    let writing = std::thread::spawn(move || writer.write_all(&requests).expect("written"));
    for (index, length) in lengths.iter().enumerate() {
        if index % 100 == 99 {
            assert_eq!(receive(&mut stream).1, STATUS_OK_JSON);
            assert_eq!(receive(&mut stream).1, STATUS_OK_JSON);
        }
        assert_eq!(receive(&mut stream).1.len(), *length);
    }
    writing.join().expect("joined");
}

#[test]
fn a_delay_blocks_no_other_request() {
    let server = start_reference_server(1);
    let mut slow = connect(&server);
    let start = Instant::now();
    slow.write_all(b"GET /delay/300 HTTP/1.1\r\n\r\n").expect("written");
    let mut quick = connect(&server);
    for _ in 0..20 {
        quick.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
        receive(&mut quick);
    }
    assert!(start.elapsed() < Duration::from_millis(300), "{:?}", start.elapsed());
    receive(&mut slow);
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    // A client that leaves early affects no other client, even if a new connection reuses its slot
    // in the connection table.
    let mut gone = connect(&server);
    gone.write_all(b"GET /delay/50 HTTP/1.1\r\n\r\n").expect("written");
    drop(gone);
    let mut next = connect(&server);
    next.write_all(b"GET /delay/100 HTTP/1.1\r\n\r\n").expect("written");
    assert_eq!(receive(&mut next).1, STATUS_OK_JSON);
}

#[test]
fn a_burn_request_uses_the_stated_cpu_time() {
    let start_ns = clock::thread_cpu_ns();
    burn_cpu_time(20_000);
    let used_ns = clock::thread_cpu_ns() - start_ns;
    assert!((20_000_000..25_000_000).contains(&used_ns), "{used_ns} ns");
}

#[test]
fn a_large_body_is_streamed_to_a_slow_client() {
    let server = start_reference_server(1);
    let before = process::resident_bytes();
    let mut stream = connect(&server);
    stream.write_all(b"GET /bytes/1073741824 HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n").expect("written");
    std::thread::sleep(Duration::from_millis(50));
    let mut quick = connect(&server);
    quick.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
    receive(&mut quick);
    let mut buffer = vec![0; 1 << 20];
    let mut left = (1 << 30) + "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n".len();
    left += "Content-Length: 1073741824\r\n\r\n".len();
    while left > 0 {
        let take = left.min(buffer.len());
        left -= stream.read(&mut buffer[..take]).expect("read");
    }
    assert_eq!(receive(&mut stream).1, STATUS_OK_JSON);
    let grown = process::resident_bytes().saturating_sub(before);
    assert!(grown < 256 << 20, "grown by {grown} bytes");
}

#[test]
fn refusals_arrive_while_the_client_still_sends() {
    let server = start_reference_server(1);
    for (bytes, status) in [
        (format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(300_000)), "431"),
        (format!("nonsense\r\n\r\n{}", "x".repeat(300_000)), "400"),
    ] {
        let answer = send_and_read_output(&server, bytes.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("Connection: close\r\n"), "{answer}");
    }
    let mut stream = connect(&server);
    stream.write_all(b"POST /healthz HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").expect("written");
    assert_eq!(receive(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").expect("written");
    assert_eq!(receive(&mut stream).1, STATUS_OK_JSON);
}

#[test]
fn requests_parse_one_byte_at_a_time() {
    let server = start_reference_server(1);
    let mut stream = connect(&server);
    for byte in b"POST /bytes/4 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" {
        stream.write_all(&[*byte]).expect("written");
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(receive(&mut stream).1, b"xxxx");
}

#[test]
fn two_threads_serve_many_connections() {
    let server = start_reference_server(2);
    let mut streams: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    for _ in 0..3 {
        for stream in &mut streams {
            stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("written");
        }
        for stream in &mut streams {
            assert_eq!(receive(stream).1, STATUS_OK_JSON);
        }
    }
    let address = server.listen_address();
    server.stop().expect("no loop had failed");
    assert!(TcpStream::connect(address).is_err());
    assert!(matches!(streams[0].read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_server_without_threads_is_refused() {
    let options = ReferenceServerOptions { listen: "127.0.0.1:0".parse().expect("an address"), threads: 0, tls: None };
    assert_eq!(start(options).err().expect("an error").kind(), io::ErrorKind::InvalidInput);
}
