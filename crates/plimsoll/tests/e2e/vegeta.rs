//! `plimsoll vegeta`: what the real vegeta has written is read to the same figures, and shown in the shape of its own reports.

use crate::rig::{command, finish, folder, plimsoll};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

fn fixture(name: &str) -> String {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "plimsoll-traffic", "tests", "vegeta", name].iter().collect();
    path.to_str().expect("a name in UTF-8").to_owned()
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).expect("a fixture")
}

/// Standard output of a command that is given this to read.
fn piped(arguments: &[&str], input: Vec<u8>) -> String {
    let mut child = command(arguments);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let done = finish(child);
    writing.join().expect("written");
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
    done.stdout
}

#[test]
fn reports_of_vegetas_results_are_vegetas() {
    let hist = "hist[0,100us,200us,500us,1ms]";
    for (shape, report) in
        [("text", "report.txt"), ("json", "report.json"), (hist, "report-hist.txt"), ("hdrplot", "report-hdrplot.txt")]
    {
        for results in ["results.json", "results.csv", "results.gob"] {
            let done = plimsoll(&["vegeta", "report", "-type", shape, &fixture(results)]);
            assert_eq!(done.code, 0, "{}", done.stderr);
            assert_eq!(done.stdout.trim_end(), text_of(report).trim_end(), "{shape} of {results}");
        }
    }
}

#[test]
fn results_go_through_pipes_and_encodings() {
    let gob = std::fs::read(fixture("results.gob")).expect("a fixture");
    let csv = piped(&["vegeta", "encode", "-to", "csv"], gob);
    assert_eq!(csv, text_of("results.csv"));
    let json = piped(&["vegeta", "encode"], csv.into_bytes());
    assert_eq!(piped(&["vegeta", "report"], json.into_bytes()), text_of("report.txt"));
    let place = folder("vegeta").join("report.json");
    let place = place.to_str().expect("a name in UTF-8");
    let twice = plimsoll(&[
        "vegeta",
        "report",
        "-type=json",
        "-output",
        place,
        &fixture("results.csv"),
        &fixture("results.json"),
    ]);
    let written = std::fs::read_to_string(place).expect("written");
    assert!(twice.stdout.is_empty() && written.contains("\"requests\":240,"), "{} {written}", twice.stdout);
}

#[test]
fn an_attack_asks_its_targets_in_turn_and_its_results_are_vegetas() {
    let server = crate::rig::baseline(1);
    let url = &server.url;
    let targets = format!("GET {url}/healthz\nX-Case: one\n\nPOST {url}/bytes/300\n\nGET {url}/status/503\n");
    let attack = ["vegeta", "attack", "-rate", "40/1s", "-duration", "1500ms", "-name", "fixture"];
    let results = piped(&attack, targets.clone().into_bytes());
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
    let report = piped(&["vegeta", "report"], results.into_bytes());
    assert!(report.contains("Success       [ratio]                           66.67%\n"), "{report}");
    assert!(report.contains("200:40  503:20") && report.contains("60, 40."), "{report}");
    // Read as they are needed, they end the attack.
    let lazy = piped(&["vegeta", "attack", "-lazy", "-rate", "100", "-max-body", "0"], targets.clone().into_bytes());
    assert_eq!(lazy.lines().count(), 3, "{lazy}");
    let none = "GET http://127.0.0.1:1/\n".to_owned();
    let none = piped(&["vegeta", "attack", "-rate", "20", "-duration", "200ms"], none.into_bytes());
    assert!(none.lines().count() == 4 && none.lines().all(|line| line.contains("connection refused")), "{none}");
    let closed = piped(&["vegeta", "attack", "-rate=0", "-max-workers=2", "-duration=200ms"], targets.into_bytes());
    assert!(closed.lines().count() > 20, "{closed}");
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let bad = folder("vegeta").join("bad.json");
    std::fs::write(&bad, "{}\n{\"code\":\"x\"}\n").expect("written");
    let bad = bad.to_str().expect("a name in UTF-8");
    for (words, said) in [
        (&["report", "/no/such"][..], "'/no/such' cannot be read"),
        (&["report", bad], "result 2 is none of vegeta's"),
        (&["report", "-type", "pie"], "'pie'"),
        (&["report", "-every", "1s"], "-every"),
        (&["encode", "-to", "gob"], "gob is read only"),
        (&["plot"], "plimsoll report"),
        (&["attack", "-targets", "/no/such"], "-targets: '/no/such'"),
        (&["attack", "-targets", bad], "line 1: a target is METHOD URL"),
    ] {
        let done = plimsoll(&[&["vegeta"], words].concat());
        assert!(done.code == 2 && done.stderr.contains(said), "{words:?}: {} {}", done.code, done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}
