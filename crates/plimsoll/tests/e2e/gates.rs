//! Tests the exit codes of gates (`--fail-if`, `--stop-if`): a gate must not pass if no load was
//! measured or no request succeeded.

use crate::test_support::{copy_recorded_run_file, create_new_folder, path_in_new_folder, plimsoll, start_baseline};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn total_failure_is_not_a_success() {
    let server = start_baseline(1);
    let failing = format!("{}/status/500", server.url);
    let missing = format!("{}/status/404", server.url);
    let fine = format!("{}/healthz", server.url);
    let run = ["-c", "2", "-d", "200ms"];
    for (command, url, flags, expect) in [
        ("run", &failing, &run[..], 1),
        ("run", &failing, &["-c", "2", "-d", "200ms", "--fail-if", "p99>200ms"], 1),
        ("run", &failing, &["-c", "2", "-d", "200ms", "--fail-if", "service.p50<1h,unsent>5"], 1),
        ("run", &failing, &["--rate", "100", "-d", "200ms", "--fail-if", "mean>1h"], 1),
        ("run", &fine, &["-c", "2", "-d", "200ms", "--fail-if", "p99>30s,errors>1%,mean>30s,rps<1"], 0),
        // On a busy machine the load may be void (without information about the server), so that
        // conditions about response times cannot be decided.
        ("run", &fine, &["-c", "2", "-d", "200ms", "--fail-if", "p50>0ns", "--on-inconclusive", "fail"], 1),
        ("run", &missing, &run[..], 1),
        ("run", &missing, &["-c", "2", "-d", "200ms", "--ok-status", "404", "--fail-if", "p99>30s"], 0),
        ("find", &missing, &["--budget", "2s", "--fail-if", "line>1000000"], 1),
        ("sweep", &failing, &["-c", "1,2", "--for", "100ms"], 1),
        ("sweep", &fine, &["-c", "1,2", "--for", "100ms"], 0),
        ("prove", &failing, &[&failing, "--budget", "3s", "--fail-if", "worse"], 1),
    ] {
        let done = plimsoll(&[&[command, url.as_str(), "-q"], flags].concat());
        assert_eq!(done.code, expect, "{command} {url} {flags:?}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_server_exit_violates_every_bound() {
    for (gate, found) in [
        ("p99>200ms", "more than 1 % of the requests failed or had no response in time"),
        ("mean>20s", "some requests failed"),
        ("errors>5%", "it was "),
    ] {
        // On a busy machine, plimsoll (the load generator) may be the limit instead of the server.
        // If plimsoll is the limit, the server was not measured, and the gate fails with exit code
        // 3.
        let mut server = start_baseline(1);
        let url = format!("{}/healthz", server.url);
        let ender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            server.end();
        });
        let done = plimsoll(&["run", &url, "--rate", "200", "-d", "1200ms", "-q", "--fail-if", gate]);
        ender.join().expect("ends");
        let unmeasured = format!("--fail-if {gate}: nothing was measured");
        let is_void = done.stderr.contains("; not decided: ") || done.stderr.contains(&unmeasured);
        assert!(done.code == 1 || is_void && done.code == 3, "{gate}: {}{}", done.stdout, done.stderr);
        assert!(is_void || done.stderr.contains(&format!("--fail-if {gate}: {found}")), "{}", done.stderr);
    }
}

#[test]
fn a_run_with_only_failures_is_stopped() {
    let server = start_baseline(1);
    let url = format!("{}/status/500", server.url);
    let done = plimsoll(&["run", &url, "--rate", "200", "-d", "20s", "--json", "-q", "--stop-if", "p99>200ms"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let ended = done.json()["ended"].as_str().expect("text").to_owned();
    assert!(ended.contains("--stop-if p99>200ms: more than 1 % of the requests failed"), "{ended}");
}

#[test]
fn a_ci_report_without_measurements_fails() {
    let file = &copy_recorded_run_file("failed");
    let shown = plimsoll(&["report", file, "--format", "junit", "--slo", "p99<=500ms"]);
    assert!(shown.stdout.contains("<failure message=\"nothing was measured\"/>"), "{}", shown.stdout);
}

#[test]
fn a_failed_first_response_is_shown() {
    let server = start_baseline(1);
    let file = &path_in_new_folder("answers", "run.plimsoll");
    let done = plimsoll(&["run", &format!("{}/status/404", server.url), "-n", "20", "-q", "-o", file]);
    let whole = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "does not count as success (--ok-status lists the successful statuses): HTTP/1.1 404";
    assert!(whole(&done.stdout).contains(said), "{}", done.stdout);
    let shown = plimsoll(&["show", "--json", file]);
    assert!(shown.json()["warnings"].to_string().contains(said), "{}", shown.stdout);
}

/// Starts a server that answers two of three requests with success. Every third request gets the
/// response `failing`, sent in two pieces.
fn start_server_failing_every_third(failing: [&'static [u8]; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (asked, turn) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(())));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (asked, turn) = (Arc::clone(&asked), Arc::clone(&turn));
            std::thread::spawn(move || -> std::io::Result<()> {
                socket.set_nodelay(true)?;
                // Each request is small enough to arrive in one piece. The loop ends when the
                // client closes the connection.
                while socket.read(&mut [0; 4096])? > 0 {
                    // At most 500 responses a second, so that a load needs little CPU time.
                    {
                        let _turn = turn.lock().expect("no poison");
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    if asked.fetch_add(1, Ordering::Relaxed) % 3 < 2 {
                        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
                        continue;
                    }
                    socket.write_all(failing[0])?;
                    std::thread::sleep(Duration::from_millis(2));
                    socket.write_all(failing[1])?;
                }
                Ok(())
            });
        }
    });
    format!("http://{address}/")
}

#[test]
fn failed_responses_are_shown_once_for_each_kind() {
    let busy: [&[u8]; 2] =
        [b"HTTP/1.1 503 Busy\r\nContent-Length: 41\r\n\r\n", b"the pool is full \x1b[31m; token=s3cretvalue .."];
    let garbage: [&[u8]; 2] = [b"SSH-2.0-plain\r\n", b"more"];
    let said_busy = "HTTP/1.1 503 Busy, \"the pool is full [[redacted]; token=[redacted] ..\" (41 bytes)";
    // On a busy machine, the message may quote both pieces of a response instead of only the first,
    // so the test compares its beginning.
    let said_garbage = "the response does not start with an HTTP/1.0";
    let whole = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (failing, said, status) in [(busy, said_busy, json!(503)), (garbage, said_garbage, Value::Null)] {
        let url = start_server_failing_every_third(failing);
        // The quoted example of a failed response does not depend on the command, so for invalid
        // responses only `run` is tested.
        let commands = if status.is_null() { 1 } else { 4 };
        for (command, flags) in [
            ("run", &["-c", "2", "-n", "60"][..]),
            ("sweep", &["-c", "1,2", "--for", "100ms"]),
            ("find", &["--budget", "2s"]),
            ("prove", &[&url, "--budget", "3s"]),
        ]
        .into_iter()
        .take(commands)
        {
            let folder = create_new_folder("failed");
            let (file, page) = (folder.join("it.plimsoll"), folder.join("it.html"));
            let (path, page, dir) =
                (file.to_str().expect("text"), page.to_str().expect("text"), folder.to_str().expect("text"));
            let output = if command == "sweep" { &["--name", "it", "--dir", dir][..] } else { &["-o", path] };
            let start = [&[command, &url, "-q", "--no-preflight"], output].concat();
            let done = plimsoll(&[&start[..], flags].concat());
            let what = format!("{command}: {}{}", done.stdout, done.stderr);
            assert!(done.code < 2 || done.code == 3, "{what}");
            assert_eq!(whole(&done.stdout).matches(said).count(), 1, "{what}");
            assert_eq!(plimsoll(&["report", path, "-o", page]).code, 0, "{what}");
            let page = whole(&std::fs::read_to_string(page).expect("a page")).replace("&quot;", "\"");
            assert_eq!(page.matches(said).count(), 1, "{command}: {page}");
            let shown = plimsoll(&["show", "--json", path]).json();
            let list = shown["failed_answers"].as_array().expect("a list");
            assert_eq!((list.len(), &list[0]["status"]), (1, &status), "{command}: {shown:#}");
            assert!(list[0]["requests"].as_u64().is_some_and(|requests| requests > 0), "{shown:#}");
            assert!(!std::fs::read(path).expect("a file").windows(7).any(|part| part == b"s3cretv"), "{command}");
        }
    }
}
