//! Exit codes: a gate does not pass where nothing was measured or nothing succeeded.

use crate::rig::{baseline, folder, plimsoll};
use std::time::Duration;

#[test]
fn total_failure_is_no_success() {
    let server = baseline(1);
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
        ("run", &fine, &["-c", "2", "-d", "200ms", "--fail-if", "p50>0ns"], 1),
        ("run", &missing, &run[..], 1),
        ("run", &missing, &["-c", "2", "-d", "200ms", "--ok-status", "404", "--fail-if", "p99>30s"], 0),
        ("find", &missing, &["--budget", "4s"], 1),
        ("find", &missing, &["--budget", "4s", "--fail-if", "line>1000000"], 1),
        ("sweep", &failing, &["-c", "1,2", "--for", "100ms"], 1),
        ("sweep", &fine, &["-c", "1,2", "--for", "100ms"], 0),
        ("prove", &failing, &[&failing, "--budget", "4s"], 1),
        ("prove", &failing, &[&failing, "--budget", "4s", "--fail-if", "worse"], 1),
    ] {
        let done = plimsoll(&[&[command, url.as_str(), "-q"], flags].concat());
        assert_eq!(done.code, expect, "{command} {url} {flags:?}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_server_that_dies_crosses_every_bound() {
    for (gate, found) in [
        ("p99>200ms", "more than 1 % of the requests failed or had no answer in time"),
        ("mean>20s", "some requests failed"),
        ("errors>5%", "it was "),
    ] {
        let mut server = baseline(1);
        let url = format!("{}/healthz", server.url);
        let ender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            server.end();
        });
        let done = plimsoll(&["run", &url, "--rate", "200", "-d", "1200ms", "-q", "--fail-if", gate]);
        ender.join().expect("ends");
        assert_eq!(done.code, 1, "{gate}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(&format!("--fail-if {gate}: {found}")), "{}", done.stderr);
    }
}

#[test]
fn a_run_that_only_fails_is_stopped() {
    let server = baseline(1);
    let url = format!("{}/status/500", server.url);
    let done = plimsoll(&["run", &url, "-c", "2", "-d", "20s", "--json", "-q", "--stop-if", "p99>200ms"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let ended = done.json()["ended"].as_str().expect("text").to_owned();
    assert!(ended.contains("--stop-if p99>200ms: more than 1 % of the requests failed"), "{ended}");
}

#[test]
fn a_report_for_ci_fails_where_nothing_was_measured() {
    let server = baseline(1);
    let file = folder("junit").join("run.plimsoll");
    let file = file.to_str().expect("text");
    plimsoll(&["run", &format!("{}/status/500", server.url), "-n", "20", "-q", "-o", file]);
    let shown = plimsoll(&["report", file, "--format", "junit", "--slo", "p99<=500ms"]);
    assert!(shown.stdout.contains("<failure message=\"nothing was measured\"/>"), "{}", shown.stdout);
}

#[test]
fn what_a_failed_first_answer_says_is_shown() {
    let server = baseline(1);
    let file = folder("answers").join("run.plimsoll");
    let file = file.to_str().expect("text");
    let done = plimsoll(&["run", &format!("{}/status/404", server.url), "-n", "20", "-q", "-o", file]);
    let whole = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "does not count as success (--ok-status): HTTP/1.1 404";
    assert!(whole(&done.stdout).contains(said), "{}", done.stdout);
    let shown = plimsoll(&["show", "--json", file]);
    assert!(shown.json()["warnings"].to_string().contains(said), "{}", shown.stdout);
}
