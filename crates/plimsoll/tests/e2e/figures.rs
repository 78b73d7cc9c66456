//! Tests that each figure has one name and one value in all outputs. The live result, `show` and
//! `report` must agree, CSV columns must match their headings, and every help example must work.

use crate::test_support::{
    CommandOutcome, copy_recorded_run_file, create_new_folder, number_at_path, path_in_new_folder, plimsoll,
    slow_server, start_baseline, start_server_process,
};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run_plimsoll(arguments: &[&str]) -> CommandOutcome {
    let done = plimsoll(arguments);
    // A load without any successful request ends with code 1 and still has figures.
    assert!(done.code <= 1, "{arguments:?}: {}", done.stderr);
    done
}

/// Starts a slow Python server with one thread for each connection. The server handles one request
/// at a time, in at least 2 ms.
fn start_slow_threaded_server() -> crate::test_support::Server {
    const SOURCE: &str = r#"
import http.server, socketserver, sys, threading, time
slots = threading.Semaphore(1)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with slots: time.sleep(0.002)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args): pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 512
server = Server(("127.0.0.1", 0), Handler)
print("http://127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()
"#;
    start_server_process(Command::new("python3").args(["-c", SOURCE]), "python3")
}

/// Asserts that every output of a run file has the given text, document and warnings.
fn assert_equal_outputs(text: &str, document: &Value, file: &Path) {
    let path = file.to_str().expect("text");
    assert_eq!(&run_plimsoll(&["show", "--json", path]).json(), document);
    assert_eq!(&run_plimsoll(&["report", "--format", "json", path]).json(), document);
    assert_eq!(run_plimsoll(&["show", "-v", path]).stdout, text);
    let markdown = run_plimsoll(&["report", "--format", "md", path]).stdout;
    let warned: Vec<String> = document["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|warning| warning.as_str().expect("a sentence").to_owned())
        .collect();
    let shown = |text: &str, lead: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(lead));
        lines.map(|line| line.replace("\\", "").replace("&lt;", "<").replace("&amp;", "&")).collect()
    };
    let mut in_markdown = shown(&markdown, "> **Warning:** ");
    let mut in_text = shown(text, "warning: ");
    for warnings in [&mut in_markdown, &mut in_text] {
        for warning in &warned {
            let head: String = warning.chars().take(60).collect();
            assert!(warnings.iter().any(|shown| shown.starts_with(&head)), "'{warning}' is missing: {warnings:?}");
        }
        warnings.sort();
    }
    assert_eq!(in_markdown, in_text);
}

#[test]
fn a_search_report_is_equal_from_its_file() {
    let server = start_slow_threaded_server();
    let file = create_new_folder("alike").join("find.plimsoll");
    let path = file.to_str().expect("text");
    let search = |slo: &str, more: &[&str]| {
        run_plimsoll(&[&["find", "--budget", "5s", "--slo", slo, "-o", path, "-q", &server.url][..], more].concat())
    };
    let live = search("p99<=20ms", &["-v"]);
    assert_equal_outputs(&live.stdout, &run_plimsoll(&["show", "--json", path]).json(), &file);
    let live = search("p99<=5ms", &["--json"]).json();
    assert_eq!(run_plimsoll(&["show", "--json", path]).json(), live);
    assert!(live["trials"].as_array().is_some_and(|trials| trials.len() > 2));
}

#[test]
fn load_reports_are_equal_from_their_files() {
    let server = start_baseline(1);
    let folder = create_new_folder("loads-alike");
    let file = folder.join("run.plimsoll");
    let (dir, path) = (folder.to_str().expect("text"), file.to_str().expect("text"));
    let url = format!("{}/delay/20", server.url);
    for load in [
        &["-c", "4", "-d", "500ms"][..],
        // The load with `--stop-if` ends while requests are in flight. The outcomes of the requests
        // in flight belong to the record, too.
        &["-c", "8", "-d", "20s", "--stop-if", "mean>1ms"],
        &["--rate", "0..200@300ms,200@700ms"],
        &["--rate", "100", "-d", "300ms", "--ok-status", "404"],
    ] {
        let arguments = [&["run", &url, "-q", "-o", path][..], load].concat();
        let live = run_plimsoll(&[&arguments[..], &["-v"]].concat());
        let document = run_plimsoll(&["show", "--json", path]).json();
        assert_equal_outputs(&live.stdout, &document, &file);
        let live = run_plimsoll(&[&arguments[..], &["--json"]].concat()).json();
        assert_eq!(run_plimsoll(&["show", "--json", path]).json(), live, "{load:?}");
    }
    let sweep = ["sweep", &url, "-c", "1,4,4", "--budget", "4s", "-q", "--dir", dir];
    let live = run_plimsoll(&[&sweep[..], &["-v"]].concat());
    let file = folder.join("sweep.plimsoll");
    let document = run_plimsoll(&["show", "--json", file.to_str().expect("text")]).json();
    assert_equal_outputs(&live.stdout, &document, &file);
    let live = run_plimsoll(&[&sweep[..], &["--json"]].concat()).json();
    assert_eq!(run_plimsoll(&["show", "--json", file.to_str().expect("text")]).json(), live);
}

#[test]
fn stages_have_their_own_figures() {
    let server = start_baseline(1);
    let path = &path_in_new_folder("stages", "run.plimsoll");
    let url = format!("{}/healthz", server.url);
    let live =
        run_plimsoll(&["run", &url, "--rate", "0..400@1s,400@1s,100@500ms", "--quiet", "-o", path, "--json"]).json();
    let stages = live["stages"].as_array().expect("stages");
    let of = |key: &str| -> Vec<f64> { stages.iter().map(|stage| number_at_path(stage, key)).collect() };
    assert_eq!(of("from_rps"), [0.0, 400.0, 100.0]);
    assert_eq!(of("to_rps"), [400.0, 400.0, 100.0]);
    assert_eq!(of("start_s"), [0.0, 1.0, 2.0]);
    assert_eq!(of("duration_s"), [1.0, 1.0, 0.5]);
    // Figures are counted in ticks. On a busy machine a tick may end some ms late, so that a few
    // arrivals count in the previous stage.
    assert!(
        of("scheduled").iter().zip([200.0, 400.0, 50.0]).all(|(got, want)| (got - want).abs() <= 4.0),
        "{stages:?}"
    );
    assert_eq!(of("scheduled").iter().sum::<f64>(), number_at_path(&live, "ledger.scheduled"));
    assert_eq!(of("succeeded").iter().sum::<f64>(), number_at_path(&live, "ledger.succeeded"));
    assert!(of("p50_ns").iter().zip(of("max_ns")).all(|(p50, max)| *p50 > 0.0 && *p50 <= max));
    // Each stage has fewer than ten requests beyond its p99, so no p99 is reported.
    assert!(stages.iter().all(|stage| stage["p99_ns"].is_null()), "{stages:?}");
    let text = run_plimsoll(&["show", path]).stdout;
    assert!(text.contains("stage") && text.contains("0 to 400"), "{text}");
    let table: Vec<&str> = text.lines().skip_while(|line| !line.contains("offered/s")).take(4).collect();
    assert!(table.len() == 4 && table.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(run_plimsoll(&["report", "--format", "md", path]).stdout.contains("| 0 to 400 |"));
    let page = create_new_folder("stages").join("page.html");
    run_plimsoll(&["report", path, "-o", page.to_str().expect("text")]);
    assert!(std::fs::read_to_string(page).expect("a page").contains("0 to 400"));
    let users = run_plimsoll(&["run", &url, "-c", "2@300ms,4@300ms", "--quiet", "--json"]).json();
    assert_eq!(users["stages"][1]["from_users"], 4.0);
    let same = run_plimsoll(&["run", &url, "-c", "2", "-n", "50", "--quiet", "--json"]).json();
    assert_eq!(same["stages"], Value::Array(Vec::new()));
}

#[test]
fn csv_rows_have_as_many_cells_as_headings() {
    let server = start_baseline(1);
    let path = &path_in_new_folder("csv", "run.plimsoll");
    run_plimsoll(&["run", &format!("{}/bytes/1000", server.url), "-n", "200", "--quiet", "-o", path]);
    // A short load may end before the first reading of the server, so a recorded run is used.
    let watched = copy_recorded_run_file("run");
    for (what, file) in [("--csv", path), ("--probes", &watched)] {
        let csv = run_plimsoll(&["show", what, file]).stdout;
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert!(rows.len() > 1, "{csv}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    }
    let csv = run_plimsoll(&["show", "--csv", path]).stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|heading| *heading == name).expect("a column");
    let sum = |name: &str| rows[1..].iter().map(|row| row[column(name)].parse::<u64>().expect("a count")).sum::<u64>();
    assert_eq!((sum("succeeded"), sum("failed_timeout"), sum("failed_tls"), sum("unsent")), (200, 0, 0, 0));
    assert!(sum("bytes_in") > 200_000, "{csv}");
}

#[test]
fn figures_have_one_spelling() {
    let server = slow_server();
    let folder = create_new_folder("spelling");
    let file = folder.join("run.plimsoll");
    let (dir, path) = (folder.to_str().expect("text"), file.to_str().expect("text"));
    let url = server.url("/");
    let mut said = Vec::new();
    let mut take = |done: CommandOutcome| said.push(format!("{}{}", done.stdout, done.stderr));
    take(plimsoll(&["run", &url, "-d", "400ms", "--fail-if", "p99>1ms, goodput<1G, errors<5%", "-o", path]));
    take(plimsoll(&["run", &url, "--rate", "0..333@300ms,333.3@500ms", "--json"]));
    take(plimsoll(&["run", &url, "-d", "5s", "--stop-if", "p50>1ms"]));
    take(plimsoll(&["sweep", &url, "-c", "1,3", "--for", "300ms", "--fail-if", "p99>1ms", "--dir", dir]));
    take(plimsoll(&["sweep", &url, "-c", "1,3", "--for", "300ms", "--json", "--dir", dir]));
    let found = folder.join("find.plimsoll");
    let found = found.to_str().expect("text");
    take(plimsoll(&["find", &url, "--budget", "5s", "--slo", "p99<=8ms", "--fail-if", "line<1M", "-o", found]));
    take(plimsoll(&["prove", &url, &url, "--budget", "6s", "--json", "-o", path]));
    for file in [path, found] {
        for how in [&["show"][..], &["show", "--json"], &["report", "--format", "md"], &["report", "--format", "junit"]]
        {
            take(plimsoll(&[how, &[file]].concat()));
        }
    }
    for text in &said {
        for line in text.lines() {
            assert!(!too_many_digits(line), "more digits than are known: {line}");
            assert!(!has_unit_without_space(line), "a unit without a space: {line}");
        }
    }
}

/// Whether a line has a number with too many digits after the decimal point. The limit is 8 digits,
/// or 12 digits if the digit before the point is 0.
fn too_many_digits(line: &str) -> bool {
    let bytes = line.as_bytes();
    let fraction = |at: usize| bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
    (1..bytes.len()).any(|at| {
        // Numbers below 1 may have leading zeros after the point.
        let whole = bytes[at - 1].is_ascii_digit() && bytes[at - 1] != b'0';
        bytes[at] == b'.' && (fraction(at) > 12 || whole && fraction(at) > 8)
    })
}

/// Whether a line has a time such as `1.5ms` without a blank, outside conditions, flags and SLOs.
fn has_unit_without_space(line: &str) -> bool {
    // A line that repeats words of the user's command line does not count, because plimsoll repeats
    // the user's text unchanged.
    let listed = line.trim_start().starts_with('"') && !line.contains("\": ");
    if listed || line.contains("--") && !line.contains("it was") {
        return false;
    }
    line.split([' ', ',', ';', '(', ')', '"']).any(|word| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &word[digits.len()..];
        ["ns", "us", "ms", "s", "%"].contains(&unit)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
    }) || line.split_whitespace().any(|word| word.ends_with('%') && word.len() > 1 && !word.contains('='))
}

/// The help examples that need an unavailable file or server, each with a part of the error about
/// the missing file or server. An example in this list must parse, and may fail only with the
/// listed error.
const EXAMPLES_THAT_MAY_FAIL: [(&str, &str); 4] = [
    ("https://api.test/", "api.test"),
    ("/run/api.sock", "/run/api.sock"),
    ("--pprof", "--pprof"),
    ("--metrics", "--metrics"),
];

#[cfg(all(feature = "lua", feature = "png"))]
#[test]
fn every_example_of_the_help_of_run_works() {
    check_help_examples(&["run"], 14);
}

#[cfg(all(feature = "lua", feature = "png"))]
#[test]
fn every_example_of_the_help_of_find_works() {
    check_help_examples(&["find"], 7);
}

#[cfg(all(feature = "lua", feature = "png"))]
#[test]
fn every_example_of_the_help_of_sweep_works() {
    check_help_examples(&["sweep"], 4);
}

#[cfg(all(feature = "lua", feature = "png"))]
#[test]
fn every_example_of_the_help_of_reports_works() {
    check_help_examples(&["show", "diff", "report"], 10);
}

/// Runs all examples of the help texts of these commands. The commands have at least
/// `examples_min` examples.
#[cfg(all(feature = "lua", feature = "png"))]
fn check_help_examples(commands: &[&str], examples_min: usize) {
    let server = start_baseline(1);
    let folder = create_new_folder("examples");
    let at = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    std::fs::write(at("order.json"), "{}").expect("written");
    // A response takes 20 ms, so that a load needs little CPU time.
    let mix = format!("base = \"{}\"\n[[request]]\nget = \"/delay/20\"\n[[request]]\nget = \"/bytes/9\"\n", server.url);
    std::fs::write(at("mix.toml"), mix).expect("written");
    std::fs::write(at("post.lua"), "function init(words) end\n").expect("written");
    let asked = "127.0.0.1 - - [22/Nov/2026:10:00:00 +0000] \"GET /bytes/5 HTTP/1.1\" 200 5 \"-\" \"-\"\n";
    std::fs::write(at("access.log"), asked.repeat(9)).expect("written");
    // Some examples read the latest runs of the folder's store.
    std::fs::create_dir_all(at("_output/plimsoll")).expect("a folder");
    for (kept, name) in [
        ("run", "run"),
        ("find", "find"),
        ("find-a", "find-before"),
        ("find-b", "find-after"),
        ("find-a", "_output/plimsoll/find-1"),
        ("find-b", "_output/plimsoll/find-2"),
        ("sweep-a", "sweep"),
    ] {
        std::fs::copy(copy_recorded_run_file(kept), at(&format!("{name}.plimsoll"))).expect("copied");
    }
    for (kept, name) in [("sweep-a", "before"), ("sweep-b", "after")] {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{kept}.dat"));
        std::fs::copy(kept, at(&format!("{name}.dat"))).expect("copied");
    }
    let mut run = 0;
    for command in commands {
        let help = run_plimsoll(&[command, "--help"]).stdout;
        for line in help.lines().filter(|line| line.starts_with("  plimsoll ")) {
            let example = line.trim().split("   ").next().expect("a command");
            run += 1;
            check_example(example, &server.url, &folder);
        }
    }
    assert!(run >= examples_min, "{run} examples");
}

/// Runs one example with a small server and shortened times.
fn check_example(example: &str, server: &str, folder: &Path) {
    let mut line = example.replace("http://localhost:8080/orders", &format!("{server}/delay/20"));
    line = line.replace("http://localhost:8080/", &format!("{server}/delay/20"));
    if line.contains("--replay") {
        // In an example that replays a log, the log supplies the path of each request, so the URL
        // has no path.
        line = line.replace(&format!("{server}/delay/20"), &format!("{server}/"));
    }
    line = line.replace("http://localhost:9090/", &format!("{server}/")).replace("--process api ", "");
    for (long, short) in [
        ("-d 30s", "-d 300ms"),
        ("@30s", "@300ms"),
        ("@60s", "@300ms"),
        ("--budget 2m", "--budget 3s"),
        ("--soak 30m", "--soak 10s"),
    ] {
        line = line.replace(long, short);
    }
    line = line.replace("--for 5s", "--for 200ms").replace("--full", "--full --for 20ms");
    line = line.replace("'goodput<5000'", "'goodput<1'").replace("'p99>200ms'", "'p99>20s'").replace("-X POST ", "");
    let words: Vec<&str> = line.split_whitespace().collect();
    let more = match words[1] {
        "run" if !line.contains('@') || line.contains("@order") => &["-d 300ms --spin=off --quiet"][..],
        "run" => &["--spin=off --quiet"],
        // The budget is longer for `--headroom`, because the load for the headroom takes some
        // seconds of the search's budget.
        "find" if line.contains("--headroom") => &["--budget 10s --max-rate 300 --spin=off --quiet"],
        "find" if !line.contains("--budget") => &["--budget 3s --max-rate 300 --spin=off --quiet"],
        "find" => &["--max-rate 300 --spin=off --quiet"],
        "sweep" if !line.contains("-c") && !line.contains("--full") => &["--budget 6s --spin=off --quiet"],
        "sweep" => &["--spin=off --quiet"],
        _ => &[],
    };
    // If the example sets the duration of its load (`-d`) itself, the test adds no duration.
    let more = if line.contains("-d ") { more.join(" ").replace("-d 300ms ", "") } else { more.join(" ") };
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let line = line.replacen("plimsoll", program, 1);
    // The flags that the test adds go before `--` or before the redirection.
    let line =
        match line.split_once(" > ").map(|parts| (parts, ">")).or(line.split_once(" -- ").map(|parts| (parts, "--"))) {
            Some(((before, after), mark)) => format!("{before} {more} {mark} {after}"),
            None => format!("{line} {more}"),
        };
    // `--full` measures up to 50 000 users. With a limit of 2500 open files, most of these loads
    // cannot begin. With slow responses, the remaining loads need little CPU time.
    let line = match line.contains("--full") {
        true => format!("ulimit -n 2500 && {}", line.replace("/delay/20", "/delay/300")),
        // A sweep has up to 512 users, so a longer delay saves CPU time.
        false if words[1] == "sweep" => line.replace("/delay/20", "/delay/100"),
        false => line,
    };
    let output = Command::new("bash").args(["-c", &line]).current_dir(folder).output().expect("bash");
    let (code, stderr) = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
    match EXAMPLES_THAT_MAY_FAIL.iter().find(|(part, _)| example.contains(part)) {
        Some((_, said)) => assert!(code == Some(2) && stderr.contains(said) || code == Some(0), "{line}: {stderr}"),
        // A short search may find no load line, and a short comparison no verdict.
        None => assert!(matches!(code, Some(0 | 1 | 3)), "{line}: {code:?} {stderr}"),
    }
}

#[test]
#[cfg(feature = "png")]
fn two_searches_are_compared_with_a_caveat() {
    let folder = create_new_folder("searches");
    let at = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    for (kept, name) in [("find-a", "a"), ("find-b", "b"), ("find-other", "other"), ("sweep-a", "sweep")] {
        std::fs::copy(copy_recorded_run_file(kept), at(&format!("{name}.plimsoll"))).expect("copied");
    }
    let (a, b, dir) = (at("a.plimsoll"), at("b.plimsoll"), at("out"));
    let text = run_plimsoll(&["diff", &a, &b, "--dir", &dir]).stdout;
    for part in [
        "cannot prove a difference",
        "plimsoll prove --a",
        "load line, requests/s",
        "p99 at the load line",
        "peak, requests/s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(folder.join("out/a_b.line.diff.png").exists());
    let document = run_plimsoll(&["diff", &a, &b, "--dir", &dir, "--json"]).json();
    assert_eq!((&document["schema"], &document["over"]), (&"plimsoll.diff/1".into(), &"search".into()));
    let found = run_plimsoll(&["show", "--json", &a]).json();
    let line = &found["load_line_rps"];
    let line = if line["estimate"].is_null() { &line["lower"] } else { &line["estimate"] };
    assert_eq!(document["figures"]["line_rps"]["a"].as_f64().unwrap_or(0.0), line.as_f64().unwrap_or(0.0));
    assert_eq!(document["figures"]["peak_rps"]["a"], found["peak"]["rps"]);
    assert_eq!(document["figures"]["cpu_us_per_request"]["a"], found["server"]["cpu_us_per_request"]);
    // On a busy machine, a search as short as the recorded searches finds no load line.
    let line_of = |side: &str| document["figures"]["line_rps"][side].as_f64();
    if let (Some(line_a), Some(line_b)) = (line_of("a"), line_of("b")) {
        assert!(
            (number_at_path(&document, "figures.line_rps.change") - (line_b / line_a - 1.0)).abs() < 1e-6,
            "{document:#}"
        );
    }
    let text = run_plimsoll(&["diff", &a, &at("other.plimsoll"), "--dir", &dir]).stdout;
    assert!(text.contains("the SLOs differ"), "{text}");
    let mixed = plimsoll(&["diff", &a, &at("sweep.plimsoll"), "--dir", &dir]);
    assert!(mixed.code == 2 && mixed.stderr.lines().count() == 1, "{}", mixed.stderr);
    assert!(
        mixed.stderr.contains("a search for the load line, the other contains loads of concurrent users"),
        "{}",
        mixed.stderr
    );
}

#[test]
fn conditions_use_the_names_of_the_figures() {
    let server = slow_server();
    let folder = create_new_folder("conditions");
    let (dir, url) = (folder.to_str().expect("text"), server.url("/healthz"));
    let out = folder.join("x.plimsoll");
    let out = out.to_str().expect("text");
    let run = &["run", &url, "-d", "1200ms", "--spin=off", "--quiet"][..];
    let sweep = &["sweep", &url, "-c", "2", "--for", "1200ms", "--spin=off", "--quiet", "--dir", dir];
    let find = &["find", &url, "--budget", "3s", "--spin=off", "--quiet", "-o", out];
    for (command, condition, code) in [
        (run, "rate<1", 0),
        (run, "rate<1G", 1),
        (run, "goodput<1G", 1),
        (run, "cpu>1ns", 1),
        (run, "cpu>1s", 0),
        (sweep, "goodput<1G", 1),
        (sweep, "rate<1, cpu>1s", 0),
        (find, "rate<1G", 1),
        (find, "goodput<1, cpu>1s", 0),
    ] {
        // On a busy machine, loads may be void (without information about the server). A condition
        // that void loads cannot decide counts as true (`--on-inconclusive=fail`).
        let done = plimsoll(&[command, &["--fail-if", condition, "--on-inconclusive=fail"]].concat());
        // On a busy machine, a search of 3 s may have no trial with CPU readings. A search without
        // CPU readings reports that nothing was measured.
        let unmeasured =
            command[0] == "find" && code == 0 && done.stderr.contains("cpu>1s: not decided: nothing was measured");
        // A search of 3 s may also find no load line, which gives code 1 for any condition.
        let is_without_line = ["no load line was found", "load line: below"].iter().any(|it| done.stdout.contains(it));
        let code = if unmeasured || is_without_line { 1 } else { code };
        assert_eq!(done.code, code, "{command:?} {condition}: {}", done.stderr);
    }
    for (command, condition, said) in [
        (run, "line<5", "goodput (or rate, rps), cpu"),
        (sweep, "knee<5", "goodput (or rate, rps), cpu"),
        (find, "p99>5ms", "Choose line (or rate), peak (or goodput), knee, scale or cpu"),
        (&["prove", &url, &url], "goodput<5", "worse"),
    ] {
        let done = plimsoll(&[command, &["--fail-if", condition]].concat());
        assert_eq!(done.code, 2, "{command:?} {condition}: {}", done.stderr);
        assert!(done.stderr.lines().count() == 1 && done.stderr.contains(said), "{condition}: {}", done.stderr);
    }
    let refused = plimsoll(&[run, &["--stop-if", "cpu>1s"]].concat());
    assert!(refused.code == 2 && refused.stderr.contains("--fail-if"), "{}", refused.stderr);
}
