//! Tests `plimsoll traffic` end to end: plain, compressed, piped and merged logs, the page, and
//! invalid input.

use crate::test_support::{command, create_new_folder, number_at_path, plimsoll, wait_for_exit};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

/// Returns a log in the combined format with response times: ten requests a second from five
/// clients. Three of four requests are for an item.
fn access_log_lines(from_s: u64, seconds: u64) -> String {
    let mut text = String::new();
    for n in 0..seconds * 10 {
        let (at, tenth) = (from_s + n / 10, n % 10);
        let (minute, second) = (at / 60 % 60, at % 60);
        let item = n % 60 / (1 + n % 7);
        let target = if n % 4 == 3 { "/search?q=a".to_owned() } else { format!("/items/{item}") };
        text += &format!(
            "10.0.0.{} - - [22/Nov/2026:10:{minute:02}:{second:02} +0000] \"GET {target} HTTP/1.1\" {} {} \"-\" \"agent\" {}.{tenth}50 0.200\n",
            n % 5,
            if n % 50 == 0 { 404 } else { 200 },
            1000 + n % 7,
            1_795_341_600 + at,
        );
    }
    text
}

const FORMAT: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $msec $request_time"#;

fn write_log_file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = create_new_folder("logs").join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn path_as_text(path: &std::path::Path) -> &str {
    path.to_str().expect("text")
}

fn traffic_json_document(arguments: &[&str]) -> Value {
    let done = plimsoll(&[&["traffic", "--json"], arguments].concat());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{arguments:?}");
    done.json()
}

#[test]
fn traffic_of_a_log_is_described() {
    let log = write_log_file("access.log", access_log_lines(0, 120).as_bytes());
    let document = traffic_json_document(&[path_as_text(&log), "--log-format", FORMAT]);
    assert_eq!(document["schema"], "plimsoll.traffic/1");
    for (path, expect) in [
        ("lines.read", 1200.0),
        ("lines.unparsed", 0.0),
        ("requests", 1200.0),
        ("resolution_ns", 1e7),
        ("rate_rps.mean", 10.0),
        ("rate_rps.peak_1s", 10.0),
        ("rate_rps.peak_1min", 10.0),
        ("methods.GET", 1200.0),
        ("statuses.404", 24.0),
        ("clients_seen", 5.0),
        ("sessions.count", 5.0),
        ("sessions.requests.mean", 240.0),
        // Each client sends two requests a second, and each response takes 0.2 s, so the think time
        // is 0.3 s.
        ("sessions.think_time_ns.p50", 3e8),
        ("concurrency.mean", 2.0),
        ("concurrency.max", 2.0),
        ("dispersion.1", 0.0),
        ("dispersion.10", 0.0),
        ("sizes.min", 1000.0),
    ] {
        let value = number_at_path(&document, path);
        assert!((value - expect).abs() <= expect.abs() * 0.01 + 1e-9, "{path}: {value}, expected {expect}");
    }
    assert!(document["dispersion"]["100"].is_null());
    let first = &document["endpoints"][0];
    assert_eq!(
        (&first["template"], &first["method"], &first["requests"]),
        (&"/items/{id}".into(), &"GET".into(), &900.into())
    );
    assert_eq!(document["endpoints"][1]["template"], "/search");
    assert_eq!(document["popularity"]["template"], "/items/{id}");
}

#[test]
fn compressed_piped_and_split_logs_give_equal_reports() {
    let whole = access_log_lines(0, 100);
    let (first, second) = whole.split_at(access_log_lines(0, 40).len());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(first.as_bytes()).expect("packed");
    let gz = write_log_file("access.log.1.gz", &packed.finish().expect("packed"));
    let zst = write_log_file(
        "access.log.zst",
        &ruzstd::encoding::compress_to_vec(second.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest),
    );
    // Two compressed frames in a row are one log.
    let both = [fs::read(&zst).expect("read"), fs::read(&zst).expect("read")].concat();
    let plain = write_log_file("whole.log", whole.as_bytes());
    let expect = traffic_json_document(&[path_as_text(&plain), "--log-format", FORMAT]);
    // The newest log comes first, as a shell lists the files.
    let parted = traffic_json_document(&[path_as_text(&zst), path_as_text(&gz), "--log-format", FORMAT]);
    for key in ["requests", "rate_rps", "endpoints", "sessions", "dispersion", "concurrency", "sizes", "lines"] {
        assert_eq!(parted[key], expect[key], "{key}");
    }
    let twice = traffic_json_document(&[path_as_text(&write_log_file("twice.log", &both)), "--log-format", FORMAT]);
    assert_eq!(twice["requests"], 1200);
    let mut child = command(&["traffic", "-", "--json", "--log-format", FORMAT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("piped").write_all(whole.as_bytes()).expect("taken");
    assert_eq!(wait_for_exit(child).json()["endpoints"], expect["endpoints"]);
}

#[test]
fn known_figures_are_reported_and_unknown_ones_are_null() {
    let log = write_log_file("found.log", access_log_lines(0, 30).as_bytes());
    let found = traffic_json_document(&[path_as_text(&log)]);
    assert_eq!(found["logs"][0]["format"], "combined log format");
    assert_eq!(found["resolution_ns"], 1_000_000_000u64);
    assert!(found["dispersion"]["0.1"].is_null() && found["concurrency"].is_null(), "{found:#}");
    assert!(found["duration_ns"].is_null() && found["sizes"]["count"] == 300, "{found:#}");
    assert_eq!(found["notes"].as_array().map(Vec::len), Some(2), "{found:#}");
    let done = plimsoll(&["traffic", path_as_text(&log), "--fold", "^/se[a-z]+", "--top", "1"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    for part in ["300 requests in 30.0 s: 10.0/s", "GET /items/{id}", "1 of 2 endpoints", "combined log format"] {
        assert!(done.stdout.contains(part), "{part} is missing in {}", done.stdout);
    }
    let folded = traffic_json_document(&[path_as_text(&log), "--fold", "^/se[a-z]+"]);
    assert_eq!(folded["endpoints"][1]["template"], "{}");
    let json = write_log_file("app.log", b"{\"at\":1795341600.5,\"q\":{\"url\":\"/a/1\"},\"took\":20}\n{\"at\":1795341601.5,\"q\":{\"url\":\"/a/2\"},\"took\":20}\n");
    let mapped = traffic_json_document(&[path_as_text(&json), "--field", "time=.at,path=.q.url,duration_ms=.took"]);
    assert_eq!((&mapped["endpoints"][0]["template"], &mapped["requests"]), (&"/a/{id}".into(), &2.into()));
}

#[test]
fn the_page_has_charts() {
    let log = write_log_file("page.log", access_log_lines(0, 60).as_bytes());
    let page = create_new_folder("logs").join("new/traffic.html");
    let done = plimsoll(&["traffic", path_as_text(&log), "--log-format", FORMAT, "-o", path_as_text(&page)]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.starts_with("wrote "), "{}", done.stderr);
    let html = fs::read_to_string(&page).expect("written");
    for part in ["<h2>Burstiness</h2>", "<h2>Popularity</h2>", "<h2>Endpoints</h2>", "requests in flight"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn bad_input_is_one_sentence() {
    let log = write_log_file("bad.log", format!("{}what is this\n", access_log_lines(0, 3)).as_bytes());
    let backwards: String = access_log_lines(0, 3000).lines().rev().map(|line| format!("{line}\n")).collect();
    for (arguments, said) in [
        (vec!["nowhere.log"], "'nowhere.log' cannot be read: no such file"),
        (vec![path_as_text(&write_log_file("empty.log", b"\n\n"))], "holds no line"),
        (vec![path_as_text(&write_log_file("other.log", b"hello\nworld\n"))], "the first line begins with \"hello\""),
        (vec![path_as_text(&write_log_file("x.log.xz", b"\xfd7zXZ\0..."))], "compressed with xz"),
        (vec![path_as_text(&write_log_file("cut.log.gz", b"\x1f\x8b\x08\0\0\0"))], "cannot be read"),
        (vec![path_as_text(&create_new_folder("logs"))], "is a folder"),
        (vec![path_as_text(&log), "--strict"], ":31 cannot be parsed: \"what is this\""),
        (vec![path_as_text(&write_log_file("back.log", backwards.as_bytes()))], "the log is not in order"),
        (vec![path_as_text(&log), "--log-format", "$nothing"], "--log-format '$nothing' has no time field"),
        (vec![path_as_text(&log), "--log-format", "$msec $request"], "none of the 31 log lines can be parsed"),
        (vec![path_as_text(&log), "--field", "time=.t"], "--field 'time=.t' has no path"),
        (
            vec![path_as_text(&log), "--field", "time=.t,path=.p", "--log-format", "x"],
            "--log-format (for text logs) and --field (for JSON logs) exclude each other",
        ),
        (vec![path_as_text(&log), "--session", ".user"], "--session '.user' is not a field of the detected format"),
        (vec![path_as_text(&log), "--fold", "("], "--fold '(' is no regular expression"),
        (vec![path_as_text(&log), "-o", "a.pdf"], "the name must end with .html"),
        (vec!["-", "-"], "only once"),
    ] {
        let done = plimsoll(&[&["traffic"], arguments.as_slice()].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.starts_with("plimsoll: ") && done.stderr.contains(said), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    // Without --strict, invalid lines of a log are counted. The first invalid line is shown without
    // control characters.
    let odd = write_log_file("odd.log", format!("{}\x1b[31mred\n", access_log_lines(0, 3)).as_bytes());
    let done = plimsoll(&["traffic", path_as_text(&odd)]);
    assert!(done.code == 0 && done.stdout.contains("1 of 31 log lines could not be parsed"), "{}", done.stdout);
    assert!(!done.stdout.contains('\x1b'));
}
