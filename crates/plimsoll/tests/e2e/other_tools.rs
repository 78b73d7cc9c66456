//! Tests `plimsoll ab`, `hey` and `vegeta`: requests and output must equal the requests and output
//! of the original tools. A test server records every byte that it receives.

use crate::test_support::{CommandOutcome, baseline_tls, command, create_new_folder, plimsoll, signal, wait_for_exit};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that handles HTTP/1.0 as ab expects: it closes each connection unless the client asks
/// for keep-alive.
struct Http10RecordingServer {
    url: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Http10RecordingServer {
    fn start() -> Http10RecordingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let writing = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&writing);
                std::thread::spawn(move || serve_connection(&stream, &log));
            }
        });
        Http10RecordingServer { url, log }
    }

    fn host_and_port(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Returns the requests received since the last call of this function, each with its content.
    fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().expect("no panic"))
    }
}

fn serve_connection(stream: &TcpStream, log: &Mutex<Vec<String>>) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        while !request.ends_with("\r\n\r\n") {
            let from = request.len();
            if !reader.read_line(&mut request).is_ok_and(|bytes| bytes > 0) {
                return;
            }
            if let Some(value) = request[from..].to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut content = vec![0; length];
        if reader.read_exact(&mut content).is_err() {
            return;
        }
        let lower = request.to_ascii_lowercase();
        let stays = match lower.contains(" http/1.0\r\n") {
            true => lower.contains("connection: keep-alive\r\n"),
            false => !lower.contains("connection: close\r\n"),
        };
        let target = request.split(' ').nth(1).unwrap_or_default();
        // Responses on this path take 50 ms, so that a closed loop needs little CPU time.
        if target == "/waits" {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let status = if request.contains("/missing") { "404 Not Found" } else { "200 OK" };
        // `/leads/302/to` redirects to `/to` with status 302.
        let leads = target.strip_prefix("/leads/").and_then(|rest| rest.split_once('/'));
        let (status, location) = leads.map_or((status.to_owned(), String::new()), |(status, to)| {
            (format!("{status} Elsewhere"), format!("Location: /{to}\r\n"))
        });
        let text =
            if request.contains("/grows") { "x".repeat(3 + log.lock().expect("no panic").len()) } else { "abc".into() };
        log.lock().expect("no panic").push(request + &String::from_utf8_lossy(&content));
        let kept = if stays { "Connection: keep-alive\r\n" } else { "" };
        let length = text.len();
        let head = format!("HTTP/1.1 {status}\r\nServer: plain/1\r\n{kept}{location}Content-Length: {length}\r\n\r\n");
        if (&*stream).write_all((head + &text).as_bytes()).is_err() || !stays {
            return;
        }
    }
}

/// Returns the word after a label, as awk scripts extract it from a line.
fn word_after_label(text: &str, label: &str) -> String {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no '{label}' in {text}")).split_whitespace().next().unwrap_or_default().to_owned()
}

#[test]
fn ab_sends_and_prints_like_the_original() {
    let server = Http10RecordingServer::start();
    let dir = create_new_folder("ab");
    let (csv, tsv) = (dir.join("e.csv"), dir.join("g.tsv"));
    let (csv, tsv) = (csv.to_str().expect("UTF-8"), tsv.to_str().expect("UTF-8"));
    let url = format!("{}/a?b=c", server.url);
    let done = plimsoll(&["ab", "-n", "20", "-c4", "-e", csv, "-g", tsv, &url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let asked = server.take_requests();
    let expect = format!(
        "GET /a?b=c HTTP/1.0\r\nHost: {}\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n",
        server.host_and_port()
    );
    assert_eq!(asked, vec![expect; 20]);
    let labels = [
        "",
        "",
        "",
        "",
        "Benchmarking 127.0.0.1 (be patient).....done",
        "",
        "",
        "Server Software:        plain/1",
        "Server Hostname:        127.0.0.1",
        "Server Port:            ",
        "",
        "Document Path:          /a?b=c",
        "Document Length:        3 bytes",
        "",
        "Concurrency Level:      4",
        "Time taken for tests:   ",
        "Complete requests:      20",
        "Failed requests:        0",
        "Total transferred:      1160 bytes",
        "HTML transferred:       60 bytes",
        "Requests per second:    ",
        "Time per request:       ",
        "Time per request:       ",
        "Transfer rate:          ",
        "",
        "Connection Times (ms)",
        "              min  mean[+/-sd] median   max",
        "Connect:     ",
        "Processing:  ",
        "Waiting:     ",
        "Total:       ",
    ];
    let lines: Vec<&str> = done.stdout.lines().collect();
    for (line, start) in lines.iter().zip(labels) {
        assert!(line.starts_with(start), "{line:?} is not {start:?}: {}", done.stdout);
    }
    // Users' scripts extract the time taken and the request rate from the output.
    let seconds: f64 = word_after_label(&done.stdout, "Time taken for tests:").parse().expect("a number");
    let rate: f64 = word_after_label(&done.stdout, "Requests per second:").parse().expect("a number");
    assert!(
        seconds < 5.0 && rate > 0.0 && word_after_label(&done.stdout, "50%").parse::<u64>().is_ok(),
        "{}",
        done.stdout
    );
    assert!(done.stdout.ends_with(" (longest request)\n"), "{}", done.stdout);
    let written = std::fs::read_to_string(csv).expect("written");
    assert!(written.starts_with("Percentage served,Time in ms\n0,") && written.lines().count() == 101, "{written}");
    let written = std::fs::read_to_string(tsv).expect("written");
    let rows: Vec<Vec<&str>> = written.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]);
    assert!(
        rows.len() == 21 && rows[1..].iter().all(|row| row.len() == 6 && row[1].parse::<u64>().is_ok()),
        "{written}"
    );
}

#[test]
fn ab_counts_like_the_original() {
    let server = Http10RecordingServer::start();
    let dir = create_new_folder("ab");
    let body = dir.join("body");
    std::fs::write(&body, "a={{b}}").expect("written");
    let body = body.to_str().expect("UTF-8");
    let missing = format!("{}/missing", server.url);
    let done =
        plimsoll(&["ab", "-q", "-kn200", "-c", "2", "-p", body, "-T", "a/b", "-A", "u:p", "-C", "c=d", &missing]);
    let expect = format!(
        "POST /missing HTTP/1.0\r\nConnection: Keep-Alive\r\nCookie: c=d\r\nAuthorization: Basic dTpw\r\nContent-length: 7\r\n\
         Content-type: a/b\r\nHost: {}\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\na={{{{b}}}}",
        server.host_and_port()
    );
    let (asked, bytes) = (server.take_requests(), 200 * expect.len());
    assert_eq!(asked, vec![expect; 200], "{} {}", done.stdout, done.stderr);
    for line in [
        "Non-2xx responses:      200\n",
        "Keep-Alive requests:    200\n",
        &format!("Total body sent:        {bytes}\n"),
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    assert!(done.code == 0 && done.stderr.is_empty(), "{}", done.stderr);
    // ab counts a response as failed if its length differs from the length of the first response,
    // as with `/grows`.
    let grows = format!("{}/grows", server.url);
    let done = plimsoll(&["ab", "-n", "200", &grows]);
    assert!(
        done.stdout.contains("Failed requests:        199\n   (Connect: 0, Receive: 0, Length: 199, Exceptions: 0)\n")
    );
    assert!(
        done.stderr.contains("Completed 100 requests\nCompleted 200 requests\nFinished 200 requests\n"),
        "{}",
        done.stderr
    );
    let done = plimsoll(&["ab", "-l", "-n", "10", "-v2", "--http11", &grows]);
    assert!(done.stdout.contains("Failed requests:        0\n") && done.stdout.contains("Length:        Variable\n"));
    assert_eq!(done.stdout.matches("LOG: header received:\nHTTP/1.1 200 OK\n").count(), 10, "{}", done.stdout);
    assert!(
        server
            .take_requests()
            .last()
            .is_some_and(|asked| asked.starts_with("GET /grows HTTP/1.1\r\nConnection: close\r\n"))
    );
    // No server listens on port 1.
    let done = plimsoll(&["ab", "-n", "50", "http://127.0.0.1:1/"]);
    assert!(
        done.code == 1 && done.stderr.contains("Connection refused (111)\nTotal of 0 requests completed\n"),
        "{}",
        done.stderr
    );
    let done = plimsoll(&["ab", "-r", "-n", "5", "http://127.0.0.1:1/"]);
    assert!(done.code == 0 && done.stdout.contains("   (Connect: 5, Receive: 0,"), "{}", done.stdout);
}

#[test]
fn hey_sends_and_prints_like_the_original() {
    let server = Http10RecordingServer::start();
    let missing = format!("{}/missing", server.url);
    let done =
        plimsoll(&["hey", "-n", "22", "-c", "4", "-m", "post", "-d", "{{x}}", "-a", "u:p", "-H", "x-y: z", &missing]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let expect = format!(
        "POST /missing HTTP/1.1\r\nHost: {}\r\nUser-Agent: hey/0.0.1\r\nContent-Length: 5\r\nAuthorization: Basic dTpw\r\n\
         Content-Type: text/html\r\nX-Y: z\r\nAccept-Encoding: gzip\r\n\r\n{{{{x}}}}",
        server.host_and_port()
    );
    // All 22 requests are sent, although 4 workers cannot share them evenly.
    assert_eq!(server.take_requests(), vec![expect; 22]);
    let text = &done.stdout;
    for label in ["Total:", "Slowest:", "Fastest:", "Average:", "Requests/sec:", "DNS+dialup:", "resp wait:", "99% in"]
    {
        assert!(word_after_label(text, label).trim_end_matches(',').parse::<f64>().is_ok(), "{label}: {text}");
    }
    for part in [
        "\n  Total data:\t66 bytes\n  Size/request:\t3 bytes\n",
        "\nStatus code distribution:\n  [404]\t22 responses\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.starts_with("\nSummary:\n  Total:\t") && !text.contains("Error distribution"), "{text}");
    let done = plimsoll(&["hey", "-n", "9", "-c", "3", "-o", "csv", "-disable-keepalive", &server.url]);
    let rows: Vec<Vec<&str>> = done.stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0].join(","),
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
    );
    assert!(rows.len() == 10 && rows[1..].iter().all(|row| row.len() == 8 && row[6] == "200"), "{}", done.stdout);
    assert!(
        server
            .take_requests()
            .iter()
            .all(|asked| asked.ends_with("Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"))
    );
    let done = plimsoll(&["hey", "-z", "300ms", "-c", "2", "-q", "20", &server.url]);
    assert!(done.stdout.contains("  [200]\t12 responses\n"), "{}", done.stdout);
    let done = plimsoll(&["hey", "-n", "3", "-c", "1", "http://127.0.0.1:1/"]);
    let refused =
        "Error distribution:\n  [3]\tGet \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused\n";
    assert!(done.code == 0 && done.stdout.contains(refused), "{}", done.stdout);
}

#[test]
fn vegeta_sends_like_the_original() {
    let server = Http10RecordingServer::start();
    let targets = create_new_folder("vegeta-asks").join("targets");
    let text = format!(
        "{{\"method\":\"POST\",\"url\":\"{0}/x?y\",\"header\":{{\"Host\":[\"svc\"],\"X-Z\":[\"1\",\"2\"]}},\"body\":\"YWI=\"}}\n\
         {{\"method\":\"GET\",\"url\":\"{0}\"}}\n",
        server.url
    );
    std::fs::write(&targets, text).expect("written");
    let targets = targets.to_str().expect("UTF-8");
    let words = ["vegeta", "attack", "-format=json", "-targets", targets, "-rate=20", "-duration=100ms", "-name", "n"];
    let done = plimsoll(&[&words[..], &["-header", "accept-encoding: br"]].concat());
    assert_eq!((done.code, done.stdout.lines().count()), (0, 2), "{}{}", done.stdout, done.stderr);
    let expect = [
        "POST /x?y HTTP/1.1\r\nHost: svc\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 2\r\nAccept-Encoding: br\r\n\
         X-Vegeta-Attack: n\r\nX-Vegeta-Seq: 0\r\nX-Z: 1\r\nX-Z: 2\r\n\r\nab"
            .to_owned(),
        format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: br\r\nX-Vegeta-Attack: n\r\n\
             X-Vegeta-Seq: 1\r\n\r\n",
            server.host_and_port()
        ),
    ];
    assert_eq!(server.take_requests(), expect);
    let done = plimsoll(&[
        "vegeta",
        "attack",
        "-format=json",
        "-targets",
        targets,
        "-rate=20",
        "-duration=50ms",
        "-keepalive=false",
    ]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(server.take_requests()[0].contains("X-Z: 2\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\nab"));
}

#[test]
fn ab_reports_the_tls_parameters() {
    let folder = create_new_folder("ab-tls");
    let key = rcgen::KeyPair::generate().expect("a key");
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let (certificate_path, key_path) = (folder.join("own.pem"), folder.join("own.key"));
    std::fs::write(&certificate_path, parameters.self_signed(&key).expect("signed").pem()).expect("written");
    std::fs::write(&key_path, key.serialize_pem()).expect("written");
    let server = baseline_tls(&certificate_path, &key_path);
    let done = plimsoll(&["ab", "-n", "4", "-c", "2", &format!("{}/healthz", server.url)]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let head = done.stdout.split("\nDocument Path").next().expect("a head");
    for line in ["SSL/TLS Protocol:       TLSv1.3,TLS_", ",256,256\n", "Server Temp Key:        X25519 253 bits\n"] {
        assert!(head.contains(line), "{line}: {head}");
    }
    // An IP address is not a TLS server name, so no server name is printed.
    assert!(
        done.stdout.contains("Complete requests:      4\n") && !head.contains("TLS Server Name"),
        "{}",
        done.stdout
    );
    let named = plimsoll(&["ab", &format!("{}/healthz", server.url.replace("127.0.0.1", "localhost"))]);
    assert!(named.stdout.contains("\nTLS Server Name:        localhost\n"), "{}{}", named.stdout, named.stderr);
}

#[test]
fn a_link_name_selects_the_tool() {
    let server = Http10RecordingServer::start();
    let folder = create_new_folder("links");
    let called = |name: &str, words: &[&str]| {
        let path = folder.join(name);
        if !path.is_symlink() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), &path).expect("a link");
        }
        let mut named = Command::new(path);
        let named = named.args(words).current_dir(&folder);
        let named = named.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        wait_for_exit(named.spawn().expect("the binary starts"))
    };
    let targets = folder.join("targets");
    std::fs::write(&targets, format!("GET {}/\n", server.url)).expect("written");
    let targets = targets.to_str().expect("UTF-8");
    // Without Lua, plimsoll refuses the command lines of wrk and wrk2.
    let is_built_in = |name: &str| cfg!(feature = "lua") || !name.starts_with("wrk");
    let calls = [
        ("wrk", &["-t1", "-c1", "-d300ms", &server.url][..], 0, "\nRequests/sec: "),
        ("wrk2", &["-t1", "-c1", "-d300ms", "-R10", "-L", &server.url], 0, "Recorded Latency"),
        ("ab", &["-n", "3", &format!("{}/", server.url)], 0, "Complete requests:      3\n"),
        ("hey", &["-n", "3", "-c", "1", &server.url], 0, "[200]\t3 responses"),
        ("vegeta", &["attack", "-rate=10", "-duration=300ms", "-targets", targets], 0, "\"seq\":2"),
    ];
    for (name, words, code, said) in calls.into_iter().filter(|call| is_built_in(call.0)) {
        let done = called(name, words);
        assert!(done.code == code && done.stdout.contains(said), "{name}: {}{}", done.stdout, done.stderr);
    }
    // Without arguments, each tool prints its usage. The tool is chosen by the name under which
    // plimsoll was called.
    let usages =
        [("wrk", 1, "Usage: wrk "), ("ab", 2, "ab: the URL is missing"), ("hey", 2, "hey: the URL is missing")];
    for (name, code, said) in usages {
        let done = called(name, &[]);
        assert!(done.code == code && (done.stdout + &done.stderr).contains(said), "{name}");
    }
}

#[test]
fn hey_and_vegeta_follow_redirects_like_the_originals() {
    let server = Http10RecordingServer::start();
    let (url, host) = (&server.url, server.host_and_port().to_owned());
    let follows = format!("{url}/leads/302/leads/307/end?x=1");
    let done = plimsoll(&["hey", "-n", "2", "-c", "1", "-m", "POST", "-d", "ab", "-H", "x-y: z", &follows]);
    assert!(done.code == 0 && done.stdout.contains("  [200]\t2 responses\n"), "{}{}", done.stdout, done.stderr);
    let asked = server.take_requests();
    let head = |target: &str, before: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: hey/0.0.1\r\nReferer: {url}{before}\r\nX-Y: z\r\nAccept-Encoding: gzip\r\n\r\n"
        )
    };
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(asked[0].starts_with("POST /leads/302/leads/307/end?x=1 HTTP/1.1\r\n"), "{}", asked[0]);
    assert_eq!(asked[1], head("/leads/307/end?x=1", "/leads/302/leads/307/end?x=1"));
    assert_eq!(asked[2], head("/end?x=1", "/leads/307/end?x=1"));
    // hey does not follow a 307 redirect of a request with a body, and no redirect at all with
    // `-disable-redirects`.
    for words in [&["-d", "ab"][..], &["-disable-redirects"]] {
        let status = if words.len() == 2 { "307" } else { "302" };
        let done = plimsoll(&[&["hey", "-n", "1", "-c", "1"], words, &[&format!("{url}/leads/{status}/end")]].concat());
        assert!(done.stdout.contains(&format!("  [{status}]\t1 responses\n")), "{words:?}: {}", done.stdout);
        assert!(done.stderr.is_empty() && server.take_requests().len() == 1, "{words:?}: {}", done.stderr);
    }
    let round = format!("{url}/leads/302/{}end", "leads/302/".repeat(11));
    let done = plimsoll(&["hey", "-n", "1", "-c", "1", &round]);
    let said = "Error distribution:\n  [1]\tGet \"/leads/302/leads/302/end\": stopped after 10 redirects\n";
    assert!(done.stdout.contains(said) && server.take_requests().len() == 10, "{}", done.stdout);
    let targets = create_new_folder("redirects").join("targets");
    std::fs::write(&targets, format!("GET {url}/leads/301/leads/308/end\nX-Y: z\n")).expect("written");
    let targets = targets.to_str().expect("UTF-8");
    for (redirects, code, error, count) in [
        ("10", 200, "", 3),
        ("2", 200, "", 3),
        ("1", 0, "Get \"/end\": stopped after 1 redirects", 2),
        ("0", 0, "Get \"/leads/308/end\": stopped after 0 redirects", 1),
        ("-1", 301, "", 1),
    ] {
        let redirects = format!("-redirects={redirects}");
        let words = ["vegeta", "attack", "-rate=10", "-duration=100ms", "-targets", targets, &redirects];
        let done = plimsoll(&words);
        let result: serde_json::Value = serde_json::from_str(done.stdout.trim()).expect("one result");
        assert_eq!((&result["code"], &result["error"]), (&code.into(), &error.into()), "{redirects}: {}", done.stderr);
        // As in vegeta, the body and the headers of a request without a response are null.
        assert_eq!((result["body"].is_null(), result["headers"].is_null()), (code == 0, code == 0), "{}", done.stdout);
        let asked = server.take_requests();
        assert_eq!(asked.len(), count, "{redirects}: {asked:?}");
        if count == 3 {
            let expect = format!(
                "GET /end HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Go-http-client/1.1\r\nReferer: {url}/leads/308/end\r\nX-Vegeta-Seq: 0\r\nX-Y: z\r\nAccept-Encoding: gzip\r\n\r\n"
            );
            assert_eq!(asked[2], expect);
        }
    }
}

#[test]
fn an_interrupted_load_ends_like_the_original() {
    let server = Http10RecordingServer::start();
    let targets = create_new_folder("interrupted").join("targets");
    std::fs::write(&targets, format!("GET {}/\n", server.url)).expect("written");
    let (url, targets) = (&format!("{}/waits", server.url), targets.to_str().expect("UTF-8"));
    let rows = [
        (&["wrk", "-t1", "-c1", "-d60s", url][..], 0, "\nRequests/sec: "),
        (&["ab", "-t", "60", "-c1", url], 1, "\nRequests per second: "),
        (&["hey", "-z", "60s", "-c", "1", url], 0, "[200]\t"),
        (&["vegeta", "attack", "-rate=50", "-duration=60s", "-targets", targets], 0, "\"seq\":9,"),
    ];
    // wrk, hey and vegeta do not catch SIGTERM, so a shell sees exit code 143 (128 plus signal 15).
    let terminated = rows.map(|(words, code, said)| (words, if code == 0 { 143 } else { code }, said));
    let signals = rows.map(|row| (row, "INT")).into_iter().chain(terminated.map(|row| (row, "TERM")));
    // Without Lua, plimsoll refuses the command lines of wrk.
    let signals = signals.filter(|((words, ..), _)| cfg!(feature = "lua") || words[0] != "wrk");
    std::thread::scope(|scope| {
        for ((words, code, said), name) in signals {
            scope.spawn(move || {
                let child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
                let child = child.expect("the binary starts");
                std::thread::sleep(Duration::from_secs(2));
                signal(child.id(), name);
                let began = Instant::now();
                let done = wait_for_exit(child);
                assert!(began.elapsed() < Duration::from_secs(30), "{words:?}: it went on");
                let CommandOutcome { code: ended, stdout, stderr } = done;
                assert!(ended == code && stdout.contains(said), "{name} {words:?}: {ended} {stderr}");
            });
        }
    });
}

#[test]
fn an_argument_error_is_one_sentence() {
    for (words, said) in [
        (&["ab", "-n", "1", "-c", "2", "http://h/"][..], "-c: the concurrency exceeds"),
        (&["ab", "-p", "/no/such", "http://127.0.0.1:1/"], "-p, -u: the file '/no/such'"),
        (&["ab", "-X", "proxy:1", "http://h/"], "-X is not supported"),
        (&["ab", "-n", "1", "http://8.8.8.8/"], "--allow-public"),
        (&["hey", "-x", "http://proxy:1", "http://h/"], "-x is not supported"),
        (&["hey", "-n", "1", "http://h/"], "-n: the number of requests is less than"),
        (&["hey", "-D", "/no/such", "http://127.0.0.1:1/"], "-D: the file '/no/such'"),
        (&["hey", "-a", "secret", "http://h/"], "-a: write the user as name:password"),
    ] {
        let done = plimsoll(words);
        assert!(done.code == 2 && done.stderr.contains(said), "{words:?}: {} {}", done.code, done.stderr);
        assert!(done.stderr.lines().count() == 1 && !done.stderr.contains("secret"), "{}", done.stderr);
    }
}
