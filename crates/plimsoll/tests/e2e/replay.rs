//! Tests `plimsoll replay` end to end: the requests of a log are sent with their recorded timing,
//! statuses are compared, and unusable logs are refused.

use crate::test_support::{
    assert_ledger_closes, create_new_folder, number_at_path, plimsoll, plimsoll_without_turn, run_to_json,
    start_baseline,
};
use plimsoll_bench::servers::start_slots_server;
use serde_json::Value;
use std::path::{Path, PathBuf};

const FORMAT: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $msec $request_time"#;

/// Writes a log of two seconds with a hundred requests a second from twenty visitors. Every tenth
/// request was unsuccessful, and every twentieth request is not a GET.
fn write_access_log() -> PathBuf {
    let mut text = String::new();
    for n in 0..200u64 {
        let (second, milli) = (n / 100, n % 100 * 10);
        let request = match n % 20 {
            3 | 13 => "GET /status/404".to_owned(),
            7 => "POST /bytes/5".to_owned(),
            _ => format!("GET /bytes/{}?n={n}", 10 + n % 5),
        };
        let status = if n % 10 == 3 { 404 } else { 200 };
        text += &format!(
            "10.0.0.{} - - [22/Nov/2026:10:00:{second:02} +0000] \"{request} HTTP/1.1\" {status} 20 \"-\" \"agent\" {}.{milli:03} 0.000\n",
            n % 20,
            1_795_341_600 + second,
        );
    }
    let path = create_new_folder("replay").join("access.log");
    std::fs::write(&path, text).expect("written");
    path
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn run_replay(log: &Path, url: &str, more: &[&str]) -> Value {
    run_to_json(
        &[&["replay", path_text(log), "--log-format", FORMAT, "--target", url, "--seed", "3"][..], more].concat(),
    )
}

#[test]
fn a_log_is_replayed_unchanged() {
    let (server, log) = (start_baseline(1), write_access_log());
    let document = run_replay(&log, &server.url, &[]);
    assert_ledger_closes(&document, "a replay");
    for (path, expect) in [
        ("ledger.scheduled", 190.0),
        ("statuses.404", 20.0),
        ("statuses.200", 170.0),
        // A response with the status that the log records, such as 404, counts as a success.
        ("success_rate", 1.0),
        ("replay.speed", 1.0),
        ("replay.scale", 1.0),
        ("replay.requests", 190.0),
        ("replay.lines", 200.0),
        ("replay.left_out.POST", 10.0),
        ("replay.status_changed", 0.0),
    ] {
        assert_eq!(number_at_path(&document, path), expect, "{path}: {document:#}");
    }
    assert_eq!(document["replay"]["seconds_spread"], false);
    let routes = document["routes"].as_array().expect("routes");
    let names: Vec<(&str, f64)> = routes
        .iter()
        .map(|route| (route["name"].as_str().expect("a name"), number_at_path(route, "requests")))
        .collect();
    assert_eq!(names, [("GET /bytes/{id}", 170.0), ("GET /status/{id}", 20.0)]);
    let length_s = number_at_path(&document, "duration_s");
    assert!((1.9..=2.1).contains(&length_s), "{length_s}");
}

#[test]
fn speed_scale_and_duration_change_the_replay() {
    let (server, log) = (start_baseline(1), write_access_log());
    for (more, scheduled, length_s) in [
        (&["--speed", "2x"][..], 190.0, 1.0),
        (&["--scale", "2x"], 380.0, 2.0),
        (&["--allow-unsafe", "-d", "1s"], 100.0, 1.0),
        (&["--only", "^GET /status", "--speed", "4"], 20.0, 0.5),
        (&["--skip", "/bytes/1[0-3]", "--speed", "4"], 60.0, 0.5),
    ] {
        let document = run_replay(&log, &server.url, more);
        assert_eq!(number_at_path(&document, "ledger.scheduled"), scheduled, "{more:?}");
        let got_s = number_at_path(&document, "duration_s");
        assert!((got_s - length_s).abs() < 0.1 * length_s, "{more:?}: {got_s}");
        assert_ledger_closes(&document, "a replay");
    }
}

#[test]
fn responses_with_a_status_unlike_the_log_are_counted() {
    let (server, log) = (start_baseline(1), write_access_log());
    let changed = std::fs::read_to_string(&log).expect("text").replace("/status/404", "/bytes/1");
    std::fs::write(&log, changed).expect("written");
    let document = run_replay(&log, &server.url, &["--speed", "4"]);
    assert_eq!(number_at_path(&document, "replay.status_changed"), 20.0);
    let said =
        plimsoll(&["replay", path_text(&log), "--log-format", FORMAT, "--target", &server.url, "--speed", "4", "-v"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    for part in ["20 responses", "have another status than in the log", "POST 10"] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    assert!(said.stderr.contains("replays 190 requests to 1 endpoint in"), "{}", said.stderr);
}

#[test]
fn a_replay_is_repeated_from_its_record() {
    let (server, log) = (start_baseline(1), write_access_log());
    let file = create_new_folder("replayed").join("a.plimsoll");
    run_replay(&log, &server.url, &["--speed", "4", "-o", path_text(&file)]);
    let shown = plimsoll(&["show", "--json", path_text(&file)]).json();
    assert_eq!(number_at_path(&shown, "replay.speed"), 4.0);
    let again = plimsoll(&["rerun", path_text(&file), "--yes"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    // A changed log is a different load, which `rerun` refuses.
    let other = std::fs::read_to_string(&log).expect("text").replacen("n=1 ", "n=2 ", 1);
    std::fs::write(&log, other).expect("written");
    let refused = plimsoll(&["rerun", path_text(&file), "--yes"]);
    assert_eq!((refused.code, refused.stderr.contains("--log")), (2, true), "{}", refused.stderr);
}

/// Checks the multiple of a log that a server sustains. The true multiple follows from the server's
/// known capacity and the log's rate (190 requests in about 2 s).
#[test]
fn the_sustained_multiple_of_a_log_is_found() {
    let (server, log) = (start_slots_server(4, 10.0).expect("starts"), write_access_log());
    let file = create_new_folder("drawn").join("a.plimsoll");
    let words = [
        "find",
        "--replay",
        path_text(&log),
        "--log-format",
        FORMAT,
        "--ok-status",
        "100-499",
        "--budget",
        "15s",
        "--seed",
        "3",
    ];
    let document =
        run_to_json(&[&words[..], &["-o", path_text(&file), "--fail-if", "scale<1", &server.url("/")]].concat());
    assert_eq!(document["schema"], "plimsoll.find/1");
    let mean = number_at_path(&document, "replay.rate_rps.mean");
    assert!((94.0..=96.0).contains(&mean), "{mean}");
    for (path, expect) in [("replay.requests", 190.0), ("replay.sessions", 19.0), ("replay.rate_rps.peak_1s", 95.0)] {
        assert_eq!(number_at_path(&document, path), expect, "{path}: {:#}", document["replay"]);
    }
    let (lower, scale) =
        (number_at_path(&document, "load_line_rps.lower"), number_at_path(&document, "replay.scale.lower"));
    assert!((0.85..1.1).contains(&(lower / 400.0)), "{lower}: {document:#}");
    assert!((scale / (lower / mean) - 1.0).abs() < 0.01, "{scale} of {lower}");
    // The record gives the same result in each format, and a rerun sends the same requests.
    let shown = plimsoll(&["show", "--json", path_text(&file)]).json();
    assert_eq!(shown["replay"], document["replay"]);
    let said = plimsoll(&["show", path_text(&file)]);
    for part in ["times the log", "190 requests of 19 sessions", "its busiest second"] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let page = file.with_extension("html");
    let reported = plimsoll(&["report", path_text(&file), "-o", path_text(&page)]);
    assert_eq!(reported.code, 0, "{}", reported.stderr);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("times the log"));
    let printed = plimsoll(&["rerun", "--print", path_text(&file)]);
    assert!(printed.stdout.contains("--replay=") && printed.stdout.contains("--budget=15s"), "{}", printed.stdout);
    let other = std::fs::read_to_string(&log).expect("text").replacen("n=1 ", "n=2 ", 1);
    std::fs::write(&log, other).expect("written");
    let refused = plimsoll(&["rerun", path_text(&file), "--yes"]);
    assert_eq!((refused.code, refused.stderr.contains("--log")), (2, true), "{}", refused.stderr);
}

#[test]
fn unusable_replay_flags_of_a_search_are_refused() {
    let (log, url) = (write_access_log(), "http://127.0.0.1:9/");
    let empty = create_new_folder("replay").join("nothing.log");
    std::fs::write(&empty, "").expect("written");
    for (words, said) in [
        (vec!["--replay", "/nowhere/a.log", url], "/nowhere/a.log"),
        (vec!["--replay", path_text(&empty), url], "nothing.log"),
        (vec!["--replay", path_text(&log), "--log-format", FORMAT, "--only", "^PUT", url], "--only"),
        (vec!["--replay", path_text(&log)], "URL"),
        (vec!["--replay", path_text(&log), "-b", "x", url], "--body"),
        (vec!["--replay", path_text(&log), "-f", "a.toml"], "--file"),
        (vec!["--replay", path_text(&log), "--arrivals", "poisson", url], "--arrivals"),
        (vec!["--replay", path_text(&log), "grpc://127.0.0.1:9/a.B/C"], "gRPC"),
        (vec!["--replay", path_text(&log), "--log-format", FORMAT, "--slo", "order.p99<=5ms", url], "--slo"),
        (vec!["--only", "^PUT", url], "--replay"),
        (vec!["--fold", "x", url], "--replay"),
        (vec!["--fail-if", "scale<2", url], "--replay"),
    ] {
        let done = plimsoll_without_turn(&[&["find"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn unreplayable_logs_are_refused() {
    let log = write_access_log();
    let empty = create_new_folder("replay").join("empty.log");
    std::fs::write(&empty, "").expect("written");
    let junk = create_new_folder("replay").join("junk.log");
    std::fs::write(&junk, "hello\nworld\n").expect("written");
    let url = "http://127.0.0.1:9/";
    for (words, said) in [
        (vec!["/nowhere/a.log", "--target", url], "/nowhere/a.log"),
        (vec![path_text(&empty), "--target", url], "empty.log"),
        (vec![path_text(&junk), "--target", url], "--log-format"),
        (vec![path_text(&log)], "--target"),
        (vec![path_text(&log), "--target", url, "--log-format", FORMAT, "--only", "^PUT"], "--only"),
        (vec![path_text(&log), "--target", url, "--log-format", FORMAT, "--only", "("], "--only"),
        (vec![path_text(&log), "--target", url, "--speed", "0"], "--speed"),
        (vec![path_text(&log), "--target", url, "--speed", "2", "--scale", "2"], "--scale"),
        (vec![path_text(&log), "--target", url, "--arrivals", "poisson"], "--arrivals"),
        (vec![path_text(&log), "--target", "http://h h/"], "is not a URL"),
    ] {
        let done = plimsoll(&[&["replay"][..], &words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
