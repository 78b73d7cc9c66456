//! Tests setup and cleanup requests (`[[setup]]`, `[[cleanup]]`), and the load that a traffic file
//! contains (`[load]`).

use crate::test_support::{
    ReceivedRequest, command, create_new_folder, number_at_path, plimsoll, run_to_json, signal, wait_for_exit,
};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server whose items exist between `POST /seed` and `DELETE /seed`. The server records all
/// requests except requests for items.
struct SeededItemServer {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl SeededItemServer {
    fn start() -> SeededItemServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // The threads end with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(socket, &log));
            }
        });
        SeededItemServer { url, requests: asked }
    }

    fn take_recorded_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().expect("a log"))
    }
}

fn serve(socket: TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut out = socket.try_clone()?;
    let mut lines = BufReader::new(socket);
    loop {
        let Some(ReceivedRequest { head, .. }) = ReceivedRequest::next(&mut lines)? else { return Ok(()) };
        let first = head[0].trim_end_matches(" HTTP/1.1").to_owned();
        let token = head.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer t-1"));
        let (status, content) = match first.as_str() {
            "POST /login" => ("201 Created", "{\"token\": \"t-1\"}"),
            "GET /items" if token => ("200 OK", "[]"),
            other if other.starts_with("POST /seed/") && token => ("201 Created", ""),
            "DELETE /seed" if token => ("200 OK", ""),
            _ => ("403 Forbidden", "{\"error\": \"not you\"}"),
        };
        if first != "GET /items" {
            log.lock().expect("a log").push(first);
        }
        write!(out, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{content}", content.len())?;
    }
}

const ITEMS_TRAFFIC_FILE: &str = r#"
[load]
users = 2
sessions = 40
[[setup]]
post = "/login"
capture = { token = "$.token" }
[[setup]]
name = "seed"
post = "/seed/{{ seq() }}"
headers = { authorization = "Bearer {{ token }}" }
repeat = 2
[[request]]
name = "items"
get = "/items"
headers = { authorization = "Bearer {{ token }}" }
[[cleanup]]
delete = "/seed"
headers = { authorization = "Bearer {{ token }}" }
"#;

fn write_test_file(name: &str, text: &str) -> PathBuf {
    let path = create_new_folder("around").join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

const REQUESTS_AROUND_ONE_LOAD: [&str; 4] = ["POST /login", "POST /seed/1", "POST /seed/2", "DELETE /seed"];

#[test]
fn setup_and_cleanup_do_not_count_in_figures() {
    let store = SeededItemServer::start();
    let path = write_test_file("items.toml", ITEMS_TRAFFIC_FILE);
    let record = create_new_folder("around-run").join("run.plimsoll");
    let document = run_to_json(&["run", "-f", path_text(&path), "--target", &store.url, "-o", path_text(&record)]);
    assert_eq!(store.take_recorded_requests(), REQUESTS_AROUND_ONE_LOAD);
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 40.0, "the file says how many: {:#}", document["ledger"]);
    assert_eq!(number_at_path(&document, "success_rate"), 1.0, "{:#}", document["failed_answers"]);
    assert_eq!(document["load"].as_str().map(|load| load.starts_with("2 users")), Some(true), "{}", document["load"]);
    let bytes = std::fs::read(&record).expect("a record");
    assert!(!bytes.windows(3).any(|part| part == b"t-1"), "what was captured is not kept");
    // Flags override the load that the traffic file contains. A rerun sends the setup and cleanup
    // requests again.
    let by_rate = run_to_json(&["run", "-f", path_text(&path), "--target", &store.url, "--rate", "100", "-d", "300ms"]);
    assert_eq!(number_at_path(&by_rate, "ledger.scheduled"), 30.0, "{by_rate:#}");
    store.take_recorded_requests();
    let again = plimsoll(&["rerun", path_text(&record), "--yes"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(store.take_recorded_requests(), REQUESTS_AROUND_ONE_LOAD);
    std::fs::write(&path, ITEMS_TRAFFIC_FILE.replace("repeat = 2", "repeat = 3")).expect("written");
    let other = plimsoll(&["rerun", path_text(&record), "--yes"]);
    assert!(other.code == 2 && other.stderr.contains("the value differs from the record"), "{}", other.stderr);
    assert_eq!(store.take_recorded_requests(), [""; 0]);
}

#[test]
fn each_load_of_a_search_has_its_own_setup() {
    let store = SeededItemServer::start();
    let path = write_test_file("search.toml", ITEMS_TRAFFIC_FILE);
    let done = plimsoll(&[
        "sweep",
        "-c",
        "1,2",
        "--for",
        "300ms",
        "--warmup",
        "0s",
        "-f",
        path_text(&path),
        "--target",
        &store.url,
    ]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(store.take_recorded_requests(), REQUESTS_AROUND_ONE_LOAD.repeat(2));
}

#[test]
fn a_setup_that_fails_refuses_the_load() {
    let store = SeededItemServer::start();
    let stop = "name = \"stop\"\npost = \"/none\"\n";
    for (changed, parts) in [
        (
            format!("{ITEMS_TRAFFIC_FILE}[[setup]]\n{stop}"),
            vec!["the load was not started", "the setup request 'stop' got a response with status 403", "not you"],
        ),
        (
            ITEMS_TRAFFIC_FILE.replace("\"$.token\"", "\"$.tokn\""),
            vec![
                "the setup request 'POST /login' got a response",
                "but the response has no $.tokn to capture 'token' from",
            ],
        ),
        (format!("{ITEMS_TRAFFIC_FILE}[[setup]]\n{stop}on_fail = \"continue\"\n"), vec![]),
    ] {
        let path = write_test_file("fails.toml", &changed);
        let done = plimsoll(&["run", "-n", "4", "-f", path_text(&path), "--target", &store.url]);
        let expect = if parts.is_empty() { 0 } else { 2 };
        assert_eq!(done.code, expect, "{}{}", done.stdout, done.stderr);
        assert!(parts.iter().all(|part| done.stderr.contains(part)), "{parts:?}: {}", done.stderr);
        let asked = store.take_recorded_requests();
        assert_eq!(asked.last().map(String::as_str), Some("DELETE /seed"), "what was made is taken away: {asked:?}");
    }
    let path =
        write_test_file("cleanup.toml", &ITEMS_TRAFFIC_FILE.replace("delete = \"/seed\"", "delete = \"/other\""));
    let done = plimsoll(&["run", "-n", "4", "-f", path_text(&path), "--target", &store.url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let warning = "warning: the cleanup request 'DELETE /other' got a response with status 403";
    assert!(done.stderr.contains(warning), "{}", done.stderr);
    let path = write_test_file("nobody.toml", ITEMS_TRAFFIC_FILE);
    let done = plimsoll(&["run", "--no-preflight", "-f", path_text(&path), "--target", "http://127.0.0.1:1"]);
    let error = "the setup request 'POST /login' got no response";
    assert!(done.code == 2 && done.stderr.contains(error), "{}", done.stderr);
}

#[test]
fn cleanup_runs_after_an_interrupt() {
    let store = SeededItemServer::start();
    let path = write_test_file("long.toml", ITEMS_TRAFFIC_FILE);
    let run = command(&["run", "-c", "1", "-d", "20s", "-f", path_text(&path), "--target", &store.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let until = Instant::now() + Duration::from_secs(10);
    while store.requests.lock().expect("a log").len() < 3 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    signal(run.id(), "INT");
    let done = wait_for_exit(run);
    assert_eq!(done.code, 130, "{}", done.stderr);
    assert_eq!(store.take_recorded_requests(), REQUESTS_AROUND_ONE_LOAD);
}

#[test]
fn check_reports_setup_and_teardown() {
    let path = write_test_file("check.toml", ITEMS_TRAFFIC_FILE);
    let done = plimsoll(&["check", "-f", path_text(&path)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for part in ["before each load: POST /login, seed (2 times)\nafter it: DELETE /seed\n", "Bearer {{ token }}"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
}
