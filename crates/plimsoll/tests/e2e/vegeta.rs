//! Tests `plimsoll vegeta`: results that vegeta wrote must give the same figures, in the form of
//! vegeta's reports.

use crate::test_support::{command, create_new_folder, plimsoll, wait_for_exit};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

fn fixture_path(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "plimsoll-logs", "tests", "vegeta", name].iter().collect();
    path.to_str().expect("a name in UTF-8").to_owned()
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(fixture_path(name)).expect("a fixture")
}

/// Runs a command with this standard input, and returns its standard output as text.
fn run_with_standard_input(arguments: &[&str], input: Vec<u8>) -> String {
    let mut child = command(arguments);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let done = wait_for_exit(child);
    writing.join().expect("written");
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
    done.stdout
}

#[test]
fn reports_of_vegeta_results_match_vegeta() {
    let hist = "hist[0,100us,200us,500us,1ms]";
    for (shape, report) in
        [("text", "report.txt"), ("json", "report.json"), (hist, "report-hist.txt"), ("hdrplot", "report-hdrplot.txt")]
    {
        for results in ["results.json", "results.csv", "results.gob"] {
            let done = plimsoll(&["vegeta", "report", "-type", shape, &fixture_path(results)]);
            assert_eq!(done.code, 0, "{}", done.stderr);
            assert_eq!(done.stdout.trim_end(), text_of(report).trim_end(), "{shape} of {results}");
        }
    }
}

#[test]
fn results_convert_through_pipes_and_encodings() {
    let gob = std::fs::read(fixture_path("results.gob")).expect("a fixture");
    let csv = run_with_standard_input(&["vegeta", "encode", "-to", "csv"], gob);
    assert_eq!(csv, text_of("results.csv"));
    let json = run_with_standard_input(&["vegeta", "encode"], csv.into_bytes());
    assert_eq!(run_with_standard_input(&["vegeta", "report"], json.into_bytes()), text_of("report.txt"));
    // The gob file that plimsoll writes equals vegeta's, byte for byte.
    let dir = create_new_folder("vegeta-encodings");
    let again = dir.join("again.gob");
    let again = again.to_str().expect("a name in UTF-8");
    run_with_standard_input(
        &["vegeta", "encode", "-to", "gob", "-output", again, &fixture_path("results.gob")],
        Vec::new(),
    );
    assert!(std::fs::read(again).expect("written") == std::fs::read(fixture_path("results.gob")).expect("a fixture"));
    let place = create_new_folder("vegeta").join("report.json");
    let place = place.to_str().expect("a name in UTF-8");
    let twice = plimsoll(&[
        "vegeta",
        "report",
        "-type=json",
        "-output",
        place,
        &fixture_path("results.csv"),
        &fixture_path("results.json"),
    ]);
    let written = std::fs::read_to_string(place).expect("written");
    assert!(twice.stdout.is_empty() && written.contains("\"requests\":240,"), "{} {written}", twice.stdout);
}

#[test]
fn an_attack_writes_the_requested_encoding() {
    let server = crate::test_support::start_baseline(1);
    let targets = || format!("GET {}/healthz\n", server.url).into_bytes();
    let attack = |words: &[&str]| {
        let always = ["vegeta", "attack", "-rate", "50", "-duration", "200ms"];
        run_with_standard_input(&[&always, words].concat(), targets())
    };
    let csv = attack(&["-to", "csv"]);
    assert!(csv.lines().count() == 10 && csv.lines().all(|line| line.split(',').nth(1) == Some("200")), "{csv}");
    let dir = create_new_folder("vegeta-encodings");
    for (name, first) in
        [("r.bin", &b"\xff\x96\x7f"[..]), ("r.gob", b"\xff\x96\x7f"), ("r.json", b"{\"attack\""), ("r", b"{\"attack\"")]
    {
        let path = dir.join(name);
        let path = path.to_str().expect("a name in UTF-8");
        assert_eq!(attack(&["-output", path]), "");
        assert!(std::fs::read(path).expect("written").starts_with(first), "{name}");
        let report = plimsoll(&["vegeta", "report", path]);
        assert!(report.stdout.contains("200:10  \n"), "{name}: {}", report.stdout);
    }
}

#[test]
fn results_without_an_output_are_an_error() {
    for line in
        ["attack -rate=10 -duration=100ms -targets /dev/stdin", "encode RESULTS", "report RESULTS", "plot RESULTS"]
    {
        let line = line.replace("RESULTS", &fixture_path("results.json"));
        for place in [">&-", ">/dev/full"] {
            let mut shell = std::process::Command::new("sh");
            let text =
                format!("echo GET http://127.0.0.1:1/ | {} vegeta {line} {place}", env!("CARGO_BIN_EXE_plimsoll"));
            let shell = shell.args(["-c", &text]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let done = wait_for_exit(shell.spawn().expect("a shell"));
            assert!(done.code == 2 && done.stderr.lines().count() == 1, "{text}: {} {}", done.code, done.stderr);
        }
    }
}

#[test]
fn a_plot_page_accepts_any_results() {
    let dir = create_new_folder("vegeta-plot");
    let path = dir.join("plot.html");
    let path = path.to_str().expect("a name in UTF-8");
    let page =
        run_with_standard_input(&["vegeta", "plot"], std::fs::read(fixture_path("results.gob")).expect("a fixture"));
    let parts = [
        "<!doctype html>",
        "<h1>Fixture: 120 requests at 40.3/s for 2.98 s; 66.7 % succeeded; half of the responses arrived within ",
        "503 Service Unavailable",
    ];
    parts.iter().for_each(|part| assert!(page.contains(part), "{part} is not in the page"));
    let both = [&fixture_path("results.csv")[..], &fixture_path("results.json")];
    let words = [&["vegeta", "plot", "-title", "Before & <after>", "--output", path][..], &both].concat();
    assert_eq!(run_with_standard_input(&words, Vec::new()), "");
    let page = std::fs::read_to_string(path).expect("written");
    for part in ["<title>Before &amp; &lt;after&gt;</title>", "<h1>Before &amp; &lt;after&gt;</h1>", "240 requests"] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    let own = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!own.contains("http://") && !own.contains("src="), "the page reaches out");
}

#[test]
fn an_attack_uses_its_targets_in_turn_and_writes_vegeta_results() {
    let server = crate::test_support::start_baseline(1);
    let url = &server.url;
    let targets = format!("GET {url}/healthz\nX-Case: one\n\nPOST {url}/bytes/300\n\nGET {url}/status/503\n");
    let attack = ["vegeta", "attack", "-rate", "40/1s", "-duration", "1500ms", "-name", "fixture"];
    let results = run_with_standard_input(&attack, targets.clone().into_bytes());
    let parsed: Vec<serde_json::Value> =
        results.lines().map(|line| serde_json::from_str(line).expect("a result")).collect();
    assert_eq!(parsed.len(), 60, "{results}");
    let fields =
        |line: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).expect("an object");
    let theirs = fields(text_of("results.json").lines().next().expect("a line"));
    let ours = fields(results.lines().next().expect("a line"));
    for ((name, theirs), (our_name, ours)) in theirs.iter().zip(&ours) {
        assert_eq!(name, our_name);
        assert_eq!(std::mem::discriminant(theirs), std::mem::discriminant(ours), "{name}");
    }
    for result in &parsed {
        let target = [("GET", 200, "/healthz"), ("POST", 200, "/bytes/300"), ("GET", 503, "/status/503")]
            [result["seq"].as_u64().expect("a number") as usize % 3];
        let found = (result["method"].as_str(), result["code"].as_u64(), result["url"].as_str());
        assert_eq!(found, (Some(target.0), Some(target.1), Some(format!("{url}{}", target.2).as_str())));
        assert!(result["attack"] == "fixture" && result["latency"].as_u64() > Some(0), "{result}");
        if target.2 == "/bytes/300" {
            assert_eq!(result["bytes_in"], 300, "{result}");
        }
        let error = if target.1 == 503 { "503 Service Unavailable" } else { "" };
        assert_eq!(result["error"], error);
    }
    let report = run_with_standard_input(&["vegeta", "report"], results.into_bytes());
    assert!(report.contains("Success       [ratio]                           66.67%\n"), "{report}");
    assert!(report.contains("200:40  503:20") && report.contains("60, 40."), "{report}");
    // Flags about TLS have no effect on a plain connection.
    let plain = run_with_standard_input(
        &["vegeta", "-cpus=1", "attack", "-insecure", "-rate=20", "-duration=100ms"],
        targets.clone().into_bytes(),
    );
    assert_eq!(plain.lines().count(), 2, "{plain}");
    // With `-lazy`, targets are read as needed, and the attack ends after the last target.
    let lazy = run_with_standard_input(
        &["vegeta", "attack", "-lazy", "-rate", "100", "-max-body", "0"],
        targets.clone().into_bytes(),
    );
    assert_eq!(lazy.lines().count(), 3, "{lazy}");
    let none = "GET http://127.0.0.1:1/\n".to_owned();
    let none = run_with_standard_input(&["vegeta", "attack", "-rate", "20", "-duration", "200ms"], none.into_bytes());
    assert!(none.lines().count() == 4 && none.lines().all(|line| line.contains("connection refused")), "{none}");
    let closed = run_with_standard_input(
        &["vegeta", "attack", "-rate=0", "-max-workers=2", "-duration=200ms"],
        targets.into_bytes(),
    );
    assert!(closed.lines().count() > 20, "{closed}");
}

#[test]
fn an_argument_error_is_one_sentence() {
    let bad = create_new_folder("vegeta").join("bad.json");
    std::fs::write(&bad, "{}\n{\"code\":\"x\"}\n").expect("written");
    let bad = bad.to_str().expect("a name in UTF-8");
    for (words, said) in [
        (&["report", "/no/such"][..], "'/no/such' cannot be read"),
        (&["report", bad], "result 2 is not a result of vegeta"),
        (&["report"], "'stdin': the input contains no result"),
        (&["plot", "/dev/null"], "'/dev/null': the input contains no result"),
        (&["report", "-type", "pie"], "'pie'"),
        (&["report", "-every", "1s"], "-every"),
        (&["encode", "-to", "xml"], "'xml' is not json, csv or gob"),
        (&["plot", "-threshold", "none"], "-threshold: 'none'"),
        (&["plot", "/no/such"], "'/no/such' cannot be read"),
        (&["attack", "-targets", "/no/such"], "-targets: '/no/such'"),
        (&["attack", "-targets", bad], "line 1: a target must be written as METHOD URL"),
    ] {
        let done = plimsoll(&[&["vegeta"], words].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{words:?}: {} {}", done.code, done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}
