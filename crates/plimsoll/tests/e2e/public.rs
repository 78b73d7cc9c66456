//! Tests small examples of public files and command lines that plimsoll once handled wrongly. The
//! server must receive the requests that the original tool would send. Messages must name parts
//! that plimsoll does not send, such as the body of a GET.
//!
//! Not here: cases that the tests of one crate cover (`plimsoll-wire`, `plimsoll-traffic`).

use crate::test_support::{CommandOutcome, ReceivedRequest, create_new_folder, plimsoll};
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A server that records the requests that it receives.
struct RecordingServer {
    port: u16,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl RecordingServer {
    fn new(body: &'static str) -> RecordingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heard: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let all = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || record_and_answer_requests(stream, body, &all));
            }
        });
        RecordingServer { port, received: heard }
    }

    fn take_received_requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut *self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn record_and_answer_requests(stream: TcpStream, body: &str, all: &Mutex<Vec<ReceivedRequest>>) {
    let mut lines = BufReader::new(stream);
    while let Ok(Some(heard)) = ReceivedRequest::next(&mut lines) {
        let content = if heard.head[0].starts_with("HEAD") { "" } else { body };
        all.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if lines.get_mut().write_all((head + content).as_bytes()).is_err() {
            return;
        }
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Copies a file of the folder `public` and inserts a server's port. Returns the path of the copy,
/// and a path for the imported file.
fn copy_public_case(file: &str, port: u16) -> (PathBuf, PathBuf) {
    let folder = create_new_folder("public").join(file.split('.').next().unwrap_or_default());
    std::fs::create_dir_all(&folder).expect("a folder");
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/public").join(file);
    let content = std::fs::read_to_string(original).expect("a case").replace("PORT", &port.to_string());
    let path = folder.join(file);
    std::fs::write(&path, content).expect("written");
    for (name, content) in [("a.txt", "A"), ("b.txt", "B"), ("up.dat", "a,b")] {
        std::fs::write(folder.join(name), content).expect("written");
    }
    (path, folder.join("o.toml"))
}

const SINGLE_REQUEST_FLAGS: [&str; 6] = ["-n1", "-c1", "--no-preflight", "--no-probes", "-q", "--json"];

/// Imports a file and sends its requests once. Returns the received requests, and the messages of
/// the import.
fn import_and_send(kind: &str, file: &str, body: &'static str) -> (Vec<ReceivedRequest>, String) {
    let echo = RecordingServer::new(body);
    let (path, toml) = copy_public_case(file, echo.port);
    let done = plimsoll(&["import", kind, path_text(&path), "-o", path_text(&toml)]);
    assert_eq!(done.code, 0, "{file}: {}", done.stderr);
    let checked = plimsoll(&["check", "-f", path_text(&toml)]);
    assert_eq!(checked.code, 0, "{file}: {}", checked.stderr);
    let run = plimsoll(&[&["run", "-f", path_text(&toml)][..], &SINGLE_REQUEST_FLAGS].concat());
    assert_eq!(run.code, 0, "{file}: {} {}", run.stderr, run.stdout);
    (echo.take_received_requests(), done.stderr)
}

fn request_lines(requests: &[ReceivedRequest]) -> Vec<String> {
    let line = |heard: &ReceivedRequest| heard.head[0].trim_end_matches(" HTTP/1.1").to_owned();
    let mut all: Vec<String> = requests.iter().map(line).collect();
    if all.iter().all(|line| line.starts_with("GET /")) && all.len() > 20 {
        all.truncate(20);
    }
    all
}

fn body_text(request: &ReceivedRequest) -> String {
    String::from_utf8_lossy(&request.body).into_owned()
}

fn header_values(request: &ReceivedRequest, name: &str) -> Vec<String> {
    let fields = request.head.iter().filter_map(|line| line.split_once(": "));
    fields.filter(|field| field.0.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).collect()
}

#[test]
fn postman_collections_are_sent_as_newman_sends_them() {
    let (heard, _) = import_and_send("postman", "form-part-type.json", "{}");
    assert!(
        body_text(&heard[0]).contains("name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{}\r\n"),
        "{}",
        body_text(&heard[0])
    );
    let (heard, _) = import_and_send("postman", "postman-duplicate-header.json", "{}");
    assert_eq!(header_values(&heard[0], "x-forwarded-for"), ["192.0.2.1", "192.0.2.2"]);
    let (heard, _) = import_and_send("postman", "postman-empty-form.json", "{}");
    assert_eq!((body_text(&heard[0]).as_str(), header_values(&heard[0], "content-type").len()), ("", 0));
    let (heard, _) = import_and_send("postman", "postman-file-list.json", "{}");
    for part in ["name=\"f\"; filename=\"a.txt\"", "\r\n\r\nA\r\n", "name=\"f\"; filename=\"b.txt\"", "\r\n\r\nB\r\n"] {
        assert!(body_text(&heard[0]).contains(part), "{part}: {}", body_text(&heard[0]));
    }
    let (heard, said) = import_and_send("postman", "postman-get-body.json", "{}");
    assert_eq!((body_text(&heard[0]).as_str(), heard[0].field("content-length")), ("", ""));
    assert!(said.contains("its body is not sent, because Postman sends no body with GET"), "{said}");
}

#[test]
fn test_plans_are_sent_as_jmeter_sends_them() {
    let (heard, _) = import_and_send("jmx", "jmx-auth-scope.jmx", "{}");
    assert_eq!(request_lines(&heard), ["GET /", "GET /admin/x"]);
    assert_eq!([heard[0].field("authorization"), heard[1].field("authorization")], ["", "Basic cm9vdDpwdw=="]);
    let (heard, said) = import_and_send("jmx", "jmx-cookie-scope.jmx", "{}");
    assert_eq!(header_values(&heard[0], "cookie"), ["a=1"]);
    assert!(said.contains("the cookie 'secure'"), "{said}");
    let (heard, _) = import_and_send("jmx", "jmx-delete-params.jmx", "{}");
    assert_eq!((request_lines(&heard), body_text(&heard[0])), (vec!["DELETE /thing?id=7".to_owned()], String::new()));
    let (heard, _) = import_and_send("jmx", "jmx-extractor-default.jmx", "{}");
    assert_eq!(request_lines(&heard), ["GET /a", "GET /b?t=NF"]);
    let (heard, _) = import_and_send("jmx", "jmx-file-on-get.jmx", "{}");
    assert_eq!((request_lines(&heard), heard[0].field("content-length")), (vec!["GET /t?x=1".to_owned()], ""));
    let (heard, _) = import_and_send("jmx", "jmx-file-type.jmx", "{}");
    assert_eq!((heard[0].field("content-type"), body_text(&heard[0]).as_str()), ("text/csv", "a,b"));
    assert!(
        body_text(&heard[1]).contains("filename=\"up.dat\"\r\nContent-Type: text/csv\r\n\r\na,b"),
        "{}",
        body_text(&heard[1])
    );
    let (heard, _) = import_and_send("jmx", "jmx-path-variable.jmx", "<a href=\"/item/7\">");
    assert_eq!(request_lines(&heard), ["GET /list", "GET /item/7"]);
}

#[test]
fn recordings_and_descriptions_are_sent_as_their_formats_define() {
    let (heard, said) = import_and_send("har", "har-order.har", "{}");
    assert_eq!(request_lines(&heard), ["GET /first", "GET /second"]);
    assert!(said.contains("not in order of time"), "{said}");
    let made = |file: &str| {
        let (path, _) = copy_public_case(file, 8001);
        let done = plimsoll(&["import", "openapi", path_text(&path)]);
        assert_eq!(done.code, 0, "{file}: {}", done.stderr);
        done.stdout
    };
    let styles = made("openapi-param-styles.yaml");
    for part in ["/list?id=1&id=2&f[k]=v&s=x,y", "/p/.L"] {
        assert!(styles.contains(part), "{part}: {styles}");
    }
    let values = made("openapi-values.yaml");
    for part in [
        "m={{ pick(10,15,20)",
        "two={{ int(1,100) | url }}&two={{ int(1,100) | url }}",
        r#"{"kind":"cat"}"#,
        "body = \"hello\"",
    ] {
        assert!(values.replace(" | url }}", " }}").contains(&part.replace(" | url }}", " }}")), "{part}: {values}");
    }
    assert!(made("yaml-nested-flow.yaml").contains("get = \"/a\""));
}

/// Runs a command line, with the server's port in place of `PORT`. Returns the requests that the
/// server received, and the outcome.
fn run_against_server(words: &[&str], echo: &RecordingServer) -> (Vec<ReceivedRequest>, CommandOutcome) {
    let port = echo.port.to_string();
    let words: Vec<String> = words.iter().map(|word| word.replace("PORT", &port)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = plimsoll(&words);
    (echo.take_received_requests(), done)
}

#[test]
fn curl_lines_are_sent_as_curl_sends_them() {
    let echo = RecordingServer::new("{}");
    let file = create_new_folder("public").join("quoted.txt");
    std::fs::write(&file, "x\n").expect("written");
    let form = format!(
        "curl --location 'http://127.0.0.1:PORT/' --form 'f=@\"{}\"' --form 'j=\"{{\\\"a\\\":1}}\"'",
        path_text(&file)
    );
    let (heard, done) = run_against_server(&[&["run", "--curl", &form][..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for part in
        ["filename=\"quoted.txt\"\r\nContent-Type: text/plain\r\n\r\nx\n\r\n", "name=\"j\"\r\n\r\n{\"a\":1}\r\n"]
    {
        assert!(body_text(&heard[0]).contains(part), "{part}: {}", body_text(&heard[0]));
    }
    let line = "curl 'http://127.0.0.1:PORT/' -H 'Accept:' -H 'Cookie: a=1' -b 'b=2'";
    let (heard, _) = run_against_server(&[&["run", "--curl", line][..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert_eq!(
        (header_values(&heard[0], "accept").len(), header_values(&heard[0], "cookie")),
        (0, vec!["a=1".to_owned()])
    );
    let line = "curl 'http://127.0.0.1:PORT/' --compressed -H 'Accept-Encoding: gzip, br'";
    let (heard, _) = run_against_server(&[&["run", "--curl", line][..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert_eq!(header_values(&heard[0], "accept-encoding"), ["gzip, br"]);
    let line = "curl 'http://127.0.0.1:PORT/' -H 'Content-Type: multipart/form-data' -F a=1";
    let (heard, _) = run_against_server(&[&["run", "--curl", line][..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert!(header_values(&heard[0], "content-type")[0].starts_with("multipart/form-data; boundary="));
}

#[test]
fn non_ascii_urls_are_encoded() {
    let echo = RecordingServer::new("{}");
    let targets = create_new_folder("public").join("beyond.txt");
    let target = format!("GET http://127.0.0.1:{}/\u{fc}\n\nGET http://127.0.0.1:{}/a b\n", echo.port, echo.port);
    std::fs::write(&targets, target).expect("written");
    let results = create_new_folder("public").join("beyond.json");
    let attack = [
        "vegeta",
        "attack",
        "-targets",
        path_text(&targets),
        "-rate",
        "20",
        "-duration",
        "100ms",
        "-output",
        path_text(&results),
    ];
    let (heard, done) = run_against_server(&attack, &echo);
    assert_eq!(
        (done.code, request_lines(&heard)),
        (0, vec!["GET /%C3%BC".to_owned(), "GET /a%20b".to_owned()]),
        "{}",
        done.stderr
    );
    let (heard, done) = run_against_server(&["hey", "-n", "1", "-c", "1", "http://127.0.0.1:PORT/\u{fc}"], &echo);
    assert_eq!(request_lines(&heard), ["GET /%C3%BC"], "{}", done.stderr);
    let (heard, done) = run_against_server(
        &[&["run", "--curl", "curl 'http://127.0.0.1:PORT/s?q=\u{fc}'"][..], &SINGLE_REQUEST_FLAGS].concat(),
        &echo,
    );
    assert_eq!(request_lines(&heard), ["GET /s?q=%C3%BC"], "{}", done.stderr);
    let words = ["run", "http://b\u{fc}cher.example:PORT/", "--connect-to", "127.0.0.1:PORT"];
    let (heard, done) = run_against_server(&[&words[..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert_eq!(heard[0].field("host"), format!("xn--bcher-kva.example:{}", echo.port), "{}", done.stderr);
    let (heard, done) =
        run_against_server(&[&["run", "http://key7@127.0.0.1:PORT/"][..], &SINGLE_REQUEST_FLAGS].concat(), &echo);
    assert_eq!(heard[0].field("authorization"), "Basic a2V5Nzo=", "{}", done.stderr);
}

#[test]
fn targets_are_read_on_demand_until_the_end() {
    let echo = RecordingServer::new("{}");
    let targets = create_new_folder("public").join("lazy.txt");
    let target = format!("GET http://127.0.0.1:{0}/a\n\nGET http://127.0.0.1:{0}/b\n", echo.port);
    std::fs::write(&targets, target).expect("written");
    let results = create_new_folder("public").join("lazy.json");
    let attack = [
        "vegeta",
        "attack",
        "-lazy",
        "-targets",
        path_text(&targets),
        "-rate",
        "20",
        "-duration",
        "1s",
        "-output",
        path_text(&results),
    ];
    let (heard, done) = run_against_server(&attack, &echo);
    assert_eq!(
        (done.code, request_lines(&heard)),
        (0, vec!["GET /a".to_owned(), "GET /b".to_owned()]),
        "{}",
        done.stderr
    );
}

#[test]
fn a_transfer_encoding_header_makes_the_body_chunked() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let (mut heard, mut bytes) = (Vec::new(), [0; 4096]);
        while !heard.ends_with(b"0\r\n\r\n") {
            let length = stream.read(&mut bytes).expect("a request");
            assert!(length > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&bytes[..length]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("answered");
        String::from_utf8(heard).expect("text")
    });
    let words = ["run", "-X", "POST", "-H", "Transfer-Encoding: chunked", "-b", "hello", &url];
    let done = plimsoll(&[&words[..], &SINGLE_REQUEST_FLAGS].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let heard = server.join().expect("a request");
    assert!(
        heard.contains("Transfer-Encoding: chunked\r\n") && heard.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        "{heard}"
    );
    let done =
        plimsoll(&[&["run", "-H", "Content-Length: 9", "-b", "hello", &url][..], &SINGLE_REQUEST_FLAGS].concat());
    assert!(done.code == 2 && done.stderr.contains("Content-Length"), "{}", done.stderr);
}

#[test]
fn a_status_above_599_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream);
            while let Ok(Some(_)) = ReceivedRequest::next(&mut lines) {
                let answer = b"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n";
                lines.get_mut().write_all(answer).expect("answered");
            }
        }
    });
    let done = plimsoll(&[&["run", &url][..], &SINGLE_REQUEST_FLAGS].concat());
    let document = done.json();
    assert_eq!(
        (document["ledger"]["failed"]["status"].as_u64(), document["statuses"]["999"].as_u64()),
        (Some(1), Some(1))
    );
}

const VISITOR_ADDRESSES: [&str; 4] = ["203.0.113.0", "203.0.113.1", "203.0.113.2", "203.0.113.3"];

/// Returns four lines in the combined log format, each from a different visitor, with `before` and
/// `after` around each line.
fn four_visitor_log(before: &str, after: &str) -> String {
    let line = |(number, client): (usize, &&str)| {
        format!("{before}{client} - - [10/Oct/2025:13:55:3{number} +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"{after}")
    };
    VISITOR_ADDRESSES.iter().enumerate().map(line).collect()
}

#[test]
fn logs_are_parsed_correctly_or_refused() {
    let read = |name: &str, content: &str, words: &[&str]| {
        let path = create_new_folder("public").join(name);
        std::fs::write(&path, content).expect("written");
        plimsoll(&[&["traffic", path_text(&path), "--json"], words].concat())
    };
    for (name, before, after) in [
        ("syslog.log", "Oct 10 13:55:30 web nginx[123]: ", "\n"),
        ("cri.log", "2025-10-10T13:55:30.123456789Z stdout F ", "\n"),
        ("vhost.log", "default ", "\n"),
        ("cr.log", "", "\r"),
    ] {
        let document = read(name, &four_visitor_log(before, after), &[]).json();
        assert_eq!(document["requests"].as_u64(), Some(4), "{name}: {document:#}");
        let clients = document["clients"].to_string();
        assert!(VISITOR_ADDRESSES.iter().all(|client| clients.contains(client)), "{name}: {clients}");
    }
    let line = "203.0.113.1 [10/Oct/2025:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 10.0.0.1:80, 10.0.0.2:80 0.010, 0.020 0.900\n";
    let format = "$remote_addr [$time_local] \"$request\" $status $upstream_addr $upstream_response_time $request_time";
    let document = read("upstream.log", line, &["--log-format", format]).json();
    assert!(document["duration_ns"].to_string().contains("900"), "{document:#}");
    let done = read("uvicorn.log", "INFO:     127.0.0.1:52155 - \"GET / HTTP/1.1\" 200 OK\n", &[]);
    assert!(done.code == 2 && done.stderr.contains("the access log has no times"), "{}", done.stderr);
    let done = read("none.log", "hello\nworld\n", &[]);
    assert!(done.code == 2 && done.stderr.contains("HAProxy"), "{}", done.stderr);
}

#[test]
fn model_verification_does_not_fail_at_random() {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let word = |number: u64| -> String {
        let letters = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su"];
        [number / 100, number / 10 % 10, number % 10].iter().map(|digit| letters[*digit as usize]).collect()
    };
    // A model may have fewer routes than the log has endpoints.
    for endpoints in [500, 900] {
        let (mut log, mut at_ms) = (String::new(), 0u64);
        for number in 0..10_000u64 {
            // Arrivals are random, on average 5 a second.
            let share = (draw() as f64 + 0.5) / (1u64 << 31) as f64;
            at_ms += (-share.ln() * 200.0) as u64;
            let (s, client) = (at_ms / 1_000, format!("203.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255));
            let time = format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60);
            let path = word(draw() % endpoints);
            log += &format!("{client} - - [10/Oct/2025:{time} +0000] \"GET /{path} HTTP/1.1\" 200 5 \"-\" \"x\"\n");
        }
        let folder = create_new_folder("public");
        let (path, model) = (folder.join("mix.log"), folder.join("mix.toml"));
        std::fs::write(&path, log).expect("written");
        let done = plimsoll(&["model", path_text(&path), "-o", path_text(&model), "--verify"]);
        assert_eq!(done.code, 0, "{endpoints}: {} {}", done.stdout, done.stderr);
    }
}

#[test]
fn errors_name_a_file_as_typed() {
    let path = create_new_folder("public").join("www.shop.example_Archive [25-11-20 10-12-13].har");
    std::fs::write(&path, "{\"log\":{}}").expect("written");
    let done = plimsoll(&["import", "har", path_text(&path)]);
    assert!(done.stderr.contains("www.shop.example_Archive [25-11-20 10-12-13].har:1:8"), "{}", done.stderr);
}

#[cfg(feature = "grpc")]
#[test]
fn an_empty_any_message_is_accepted() {
    let folder = create_new_folder("public");
    let (proto, toml) = (folder.join("a.proto"), folder.join("any.toml"));
    let described = "syntax = \"proto3\";\npackage p;\nimport \"google/protobuf/any.proto\";\n\
        message Q { google.protobuf.Any detail = 1; }\nservice S { rpc Call(Q) returns (Q); }\n";
    std::fs::write(&proto, described).expect("written");
    let asks = "base = \"grpc://127.0.0.1:1\"\n[[request]]\npost = \"/p.S/Call\"\njson = { detail = {} }\n";
    std::fs::write(&toml, asks).expect("written");
    let done = plimsoll(&["check", "-f", path_text(&toml), "--proto", path_text(&proto)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn a_tls_1_2_server_that_requires_a_certificate_is_reported() {
    let folder = create_new_folder("public");
    let (key, certificate) = (folder.join("k.pem"), folder.join("c.pem"));
    let openssl = |words: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(words).current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let made =
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "k.pem", "-out"];
    let made =
        [&made[..], &["c.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]]
            .concat();
    assert!(openssl(&made).status().is_ok_and(|status| status.success()), "openssl is needed");
    assert!(key.exists());
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let accept = format!("127.0.0.1:{free}");
    let serves = [
        "s_server", "-accept", &accept, "-cert", "c.pem", "-key", "k.pem", "-CAfile", "c.pem", "-Verify", "1",
        "-tls1_2", "-quiet",
    ];
    let mut server = openssl(&serves).spawn().expect("openssl is needed");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while TcpStream::connect(&accept).is_err() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let url = format!("https://localhost:{free}/");
    let done = plimsoll(&[
        "run",
        &url,
        "--connect-to",
        &accept,
        "--cacert",
        path_text(&certificate),
        "-n",
        "1",
        "--no-probes",
    ]);
    let _ = server.kill();
    let _ = server.wait();
    assert!(done.code == 2 && done.stderr.contains("requires a client certificate"), "{}", done.stderr);
}
