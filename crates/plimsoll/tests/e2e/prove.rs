//! Tests `plimsoll prove`: verdicts on servers whose difference is clear on any machine, builds
//! that plimsoll starts and stops, and failures.

use crate::report::assert_works_in_a_browser;
use crate::test_support::{
    Server, command, create_new_folder, number_at_path, path_in_new_folder, plimsoll, plimsoll_without_turn,
    run_to_json, signal, start_baseline, wait_for_exit,
};
use plimsoll_bench::Fault;
use plimsoll_bench::servers::{start_faulty_server, start_slots_server};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn assert_valid_prove_document(document: &Value) {
    assert_eq!(document["schema"], "plimsoll.prove/1");
    let verdicts = ["better", "worse", "same", "small", "inconclusive"];
    assert!(verdicts.contains(&document["verdict"].as_str().expect("a verdict")), "{document:#}");
    let measures = document["measures"].as_array().expect("measures");
    assert_eq!(measures.iter().filter(|measure| measure["primary"] == true).count(), 1, "{document:#}");
    let blocks = number_at_path(document, "blocks") + number_at_path(document, "blocks_void");
    assert_eq!(document["readings"].as_array().expect("blocks").len() as f64, blocks, "{document:#}");
}

/// Checks that the first analysis of a comparison gives a verdict if the capacities of two servers
/// differ by a factor of two. The servers need almost no CPU time.
#[test]
fn a_large_difference_is_proven_early() {
    let (slow, fast) = (start_slots_server(4, 10.0).expect("starts"), start_slots_server(8, 10.0).expect("starts"));
    let path = create_new_folder("prove").join("prove.plimsoll");
    let file = path.to_str().expect("text");
    let (a, b) = (slow.url("/"), fast.url("/"));
    let common = ["--for", "200ms", "--warmup", "50ms", "-c", "16", "--budget", "60s"];
    let document = run_to_json(&[&["prove", &a, &b, "-o", file], &common[..]].concat());
    assert_valid_prove_document(&document);
    assert_eq!((&document["verdict"], &document["stopped_by"]), (&"better".into(), &"verdict".into()), "{document:#}");
    let ratio = number_at_path(&document["measures"][0], "ratio");
    assert!((1.5..2.6).contains(&ratio), "{document:#}");
    // With A and B exchanged, B is worse, which makes `--fail-if worse` fail a pipeline.
    let done = plimsoll(&[&["prove", &b, &a, "--fail-if", "worse", "--json"], &common[..]].concat());
    assert_eq!((done.code, done.json()["verdict"].as_str()), (1, Some("worse")), "{}", done.stderr);
    let tenth = done.stderr.lines().any(|line| line.split_whitespace().nth(2) == Some("10"));
    assert!(tenth && done.stderr.contains("--fail-if worse"), "{}", done.stderr);
    // `show` computes the result of the comparison again from the run file.
    let shown = plimsoll(&["show", "--json", file]).json();
    assert_eq!((&shown["measures"], &shown["spread"]), (&document["measures"], &document["spread"]));
    assert!(plimsoll(&["show", file]).stdout.contains("B is better than A"));
    assert_works_in_a_browser(&path.with_extension("html"), 1);
    if cfg!(feature = "png") {
        let picture = path.with_extension("png");
        assert_eq!(plimsoll(&["report", file, "-o", picture.to_str().expect("text")]).code, 0);
        assert!(std::fs::read(&picture).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG")));
    }
    let junit = plimsoll(&["report", file, "--format", "junit"]);
    assert!(junit.stdout.contains("B is not worse than A"), "{}{}", junit.stdout, junit.stderr);
}

#[test]
fn a_fixed_rate_compares_percentiles() {
    let server = start_baseline(1);
    let (a, b) = (format!("{}/delay/40", server.url), format!("{}/delay/160", server.url));
    let document = run_to_json(&[
        "prove",
        &a,
        &b,
        "--measure",
        "p50",
        "--rate",
        "100",
        "--budget",
        "60s",
        "--blocks",
        "10",
        "--for",
        "500ms",
    ]);
    assert_eq!(document["schema"], "plimsoll.prove/1");
    if document["stopped_by"] == "void" {
        // On a very busy machine, plimsoll may send requests late by a tenth of the response times;
        // the comparison must then give no verdict.
        assert_eq!((&document["verdict"], number_at_path(&document, "blocks") < 10.0), (&"inconclusive".into(), true));
        return;
    }
    assert_eq!(
        (&document["verdict"], &document["measures"][0]["name"]),
        (&"worse".into(), &"p50_ns".into()),
        "{document:#}"
    );
    assert!(document["load"].as_str().is_some_and(|load| load.starts_with("100 requests/s")), "{document:#}");
    let names: Vec<&str> =
        document["measures"].as_array().expect("measures").iter().filter_map(|m| m["name"].as_str()).collect();
    assert!(!names.contains(&"goodput_rps"), "at a fixed rate goodput says nothing: {names:?}");
}

#[test]
fn few_blocks_give_no_verdict_and_say_so() {
    let server = start_baseline(1);
    let url = format!("{}/delay/2", server.url);
    let document = run_to_json(&["prove", &url, &url, "--blocks", "3", "--for", "100ms", "-c", "4"]);
    assert_valid_prove_document(&document);
    assert_eq!((&document["verdict"], &document["stopped_by"]), (&"inconclusive".into(), &"blocks".into()));
    assert!(
        number_at_path(&document, "blocks_more") >= 7.0 && document["measures"][0]["ci95"].is_null(),
        "{document:#}"
    );
}

/// Checks that truncated responses count as failures, which make B worse by every measure, however
/// fast its responses are.
#[test]
fn a_build_with_more_failures_is_worse_for_any_measure() {
    let good = start_faulty_server(Fault::CloseInBody, u64::MAX).expect("starts");
    let bad = start_faulty_server(Fault::CloseInBody, 10).expect("starts");
    let (a, b) = (good.url("/"), bad.url("/"));
    let common = ["--for", "100ms", "--warmup", "20ms", "--blocks", "12", "--budget", "60s", "--json", "--quiet"];
    for measure in [&["-c", "4"][..], &["--measure", "p50", "--rate", "200"]] {
        // The preflight request is left out, because the server may close the connection of the
        // preflight request.
        let words = ["prove", &a, &b, "--fail-if", "worse", "--no-preflight"];
        let done = plimsoll(&[&words, measure, &common[..]].concat());
        let document = done.json();
        // On a very busy machine the verdict may be inconclusive, but never better or same.
        let verdict = document["verdict"].as_str().expect("a verdict");
        assert!([(1, "worse"), (3, "inconclusive")].contains(&(done.code, verdict)), "{document:#}");
        if verdict == "inconclusive" {
            continue;
        }
        assert_eq!(document["success"]["fallen"], true, "{document:#}");
        assert!((0.8..0.98).contains(&number_at_path(&document, "success.b")), "{document:#}");
    }
}

/// Checks that an undecided comparison has exit code 3 and says how to reach a decision. For two
/// URLs, the output says that running processes were compared, not builds.
#[test]
fn an_inconclusive_verdict_names_a_remedy() {
    let server = start_baseline(1);
    let url = format!("{}/delay/20", server.url);
    let p99 = ["--measure", "p99", "--rate", "20", "--blocks", "2", "--for", "300ms", "--budget", "20s"];
    let done = plimsoll(&[&["prove", "--verbose", &url, &url], &p99[..]].concat());
    assert_eq!(done.code, 3, "{}{}", done.stdout, done.stderr);
    let answer = done.stdout.lines().find(|line| line.contains("not provable")).unwrap_or_default();
    // On a very busy machine, too few blocks may be valid, and the output says so instead.
    assert!(
        done.stdout.contains("too few blocks were valid")
            || answer.contains("p99 needs 1 000 requests to each server") && done.stdout.contains("--budget"),
        "{}",
        done.stdout
    );
    let slower = format!("{}/delay/60", server.url);
    let done = plimsoll(&["prove", &url, &slower, "-c", "2", "--for", "200ms", "--blocks", "10", "-qv"]);
    let whole = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let verdict = "B is worse than A, valid only for these two running processes";
    assert!(done.code == 0 && whole.contains(verdict), "{whole}");
}

#[test]
fn a_ladder_states_shares_and_costs() {
    let server = start_baseline(1);
    let rungs: Vec<String> = ["delay/1", "delay/5", "delay/20"].map(|path| format!("{}/{path}", server.url)).into();
    let path = create_new_folder("ladder").join("ladder.plimsoll");
    let file = path.to_str().expect("text");
    let document = run_to_json(&[
        "prove", "--ladder", &rungs[0], &rungs[1], &rungs[2], "-c", "4", "--for", "100ms", "--blocks", "8", "-o", file,
    ]);
    assert_eq!(document["schema"], "plimsoll.ladder/1");
    let rung = |at: usize| &document["rungs"][at];
    assert!(rung(0)["share"].is_null() && number_at_path(rung(1), "share") < 0.5, "{document:#}");
    // With 4 users, a request of the three rungs costs about 250, 1 250 and 5 000 us. So compared
    // with the first rung, the second costs 1 000 us more, and the third 4 750 us more.
    assert!(number_at_path(rung(2), "cost_us") > 2000.0 && rung(2)["cost_us_ci95"].is_array(), "{document:#}");
    assert_eq!(plimsoll(&["show", "--json", file]).json()["rungs"], document["rungs"]);
    let picture = plimsoll(&["report", file, "--format", "svg"]);
    assert!(picture.stdout.contains("of A; cost of a request compared with A: +"), "{}", picture.stderr);
    assert_works_in_a_browser(&path.with_extension("html"), 1);
}

/// Checks that each target (step) of a comparison with `--ladder` gets the load that saturates it.
/// One target may be a thousand times slower than the previous target.
#[test]
fn each_ladder_target_gets_a_saturating_load() {
    let (fast, slow) = (start_slots_server(4, 1.0).expect("starts"), start_slots_server(1, 60.0).expect("starts"));
    let (fast, slow) = (fast.url("/"), slow.url("/"));
    let document = run_to_json(&["prove", "--ladder", &fast, &slow, "--blocks", "2", "--budget", "60s"]);
    let rung = |at: usize| &document["rungs"][at];
    assert!(number_at_path(&document, "blocks") + number_at_path(&document, "blocks_void") >= 2.0, "{document:#}");
    assert!(number_at_path(rung(1), "load_s") > number_at_path(rung(0), "load_s"), "{document:#}");
    // The slow server handles one request at a time, and two users keep it busy. With more than
    // four users, most users would wait.
    assert!(["1 user", "2 users", "4 users"].contains(&rung(1)["load"].as_str().expect("a load")), "{document:#}");
    assert!(
        number_at_path(&document, "blocks") == 0.0 || number_at_path(rung(1), "cost_us") > 40_000.0,
        "{document:#}"
    );
}

/// Checks that plimsoll extends loads beyond `--for` if responses are slow, because a load that
/// ends before its first response gives no result.
#[test]
fn slow_responses_lengthen_blocks() {
    let server = start_baseline(1);
    let url = format!("{}/delay/300", server.url);
    let document = run_to_json(&["prove", &url, &url, "-c", "2", "--for", "100ms", "--warmup", "0s", "--budget", "8s"]);
    assert!(number_at_path(&document, "blocks") > 0.0, "{document:#}");
    assert!(!["better", "worse"].contains(&document["verdict"].as_str().expect("a verdict")), "{document:#}");
}

/// Returns a free port, for a server that cannot choose one itself. The test fails if another
/// process takes the port first.
pub fn free_port() -> u16 {
    plimsoll_sys::tcp::unused_loopback_address().expect("a free port").port()
}

/// Returns a shell command that runs `plimsoll baseline` on `port`. The build has a child process,
/// which survives if plimsoll ends the build incompletely.
pub fn shell_command_of_build(port: u16, mark: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    format!("echo {mark}; sleep 10{port} & exec {binary} baseline --threads 1 --listen 127.0.0.1:{port}")
}

/// Whether the child process of a build on `port` still runs: the time of its `sleep` contains the
/// port.
pub fn is_build_running(port: u16) -> bool {
    let mark = format!("sleep\0{}\0", format_args!("10{port}"));
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| line == mark.as_bytes())
}

pub fn wait_for(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn recorded_build_output(file: &Path, side: &str) -> String {
    std::fs::read_to_string(file.with_extension(format!("{side}.log"))).expect("kept output")
}

#[test]
fn builds_start_fresh_run_separately_and_are_ended() {
    let port = free_port();
    let path = create_new_folder("builds").join("builds.plimsoll");
    let url = format!("http://127.0.0.1:{port}/delay/2");
    let before = format!("echo reset >> {}", path.with_extension("resets").display());
    // The command of build A starts a process that leaves its session and group and loses its
    // parent. The command of build A also contains a secret.
    let astray =
        format!("TOKEN=s3cret sh -c '(setsid sleep 10{port} &)'; {}", shell_command_of_build(port, "this-is-a"));
    let document = run_to_json(&[
        "prove",
        "--a",
        &astray,
        "--b",
        &shell_command_of_build(port, "this-is-b"),
        &url,
        "--blocks",
        "3",
        "-c",
        "4",
        "--for",
        "100ms",
        "--warmup",
        "50ms",
        "--before-block",
        &before,
        "-o",
        path.to_str().expect("text"),
    ]);
    assert_valid_prove_document(&document);
    assert_eq!(number_at_path(&document, "blocks"), 3.0, "{document:#}");
    // Each side is started once to find the load and once for each block, by its own command.
    for (side, other) in [("a", "b"), ("b", "a")] {
        let output = recorded_build_output(&path, side);
        assert_eq!(output.matches(&format!("this-is-{side}")).count(), 4, "{output}");
        assert!(!output.contains(&format!("this-is-{other}")), "{output}");
    }
    assert_eq!(std::fs::read_to_string(path.with_extension("resets")).expect("resets").lines().count(), 3);
    assert!(!is_build_running(port), "whole groups are ended, and what left them");
    assert!(document["sides"][0].as_str().is_some_and(|side| side.starts_with("sh (sha256 ")), "{document:#}");
    for kept in [path.clone(), path.with_extension("html")] {
        let bytes = std::fs::read(&kept).expect("written");
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"), "{} holds a secret", kept.display());
    }
}

/// Checks that the CPU time of all processes of a build counts. Both builds have the same server; B
/// also has a process that only uses CPU time.
#[test]
fn the_cpu_time_of_builds_is_compared() {
    let port = free_port();
    let path = create_new_folder("cpu").join("cpu.plimsoll");
    let plain = shell_command_of_build(port, "a");
    let wasteful = format!("(while :; do :; done) & {plain}");
    let url = format!("http://127.0.0.1:{port}/delay/2");
    let document = run_to_json(&[
        "prove",
        "--a",
        &plain,
        "--b",
        &wasteful,
        &url,
        "--measure",
        "cpu",
        "--blocks",
        "10",
        "-c",
        "2",
        "--for",
        "200ms",
        "--warmup",
        "50ms",
        "-o",
        path.to_str().expect("text"),
    ]);
    assert_valid_prove_document(&document);
    let cpu = &document["measures"][0];
    assert_eq!((&document["verdict"], &cpu["name"]), (&"worse".into(), &"cpu_ns_per_request".into()), "{document:#}");
    assert!(number_at_path(cpu, "b") > 2.0 * number_at_path(cpu, "a"), "{document:#}");
    let shown = plimsoll(&["show", "--json", path.to_str().expect("text")]).json();
    assert_eq!(shown["measures"], document["measures"]);
    assert!(!is_build_running(port), "whole groups are ended");
}

/// Checks that the listening processes of two running servers are found, and that their CPU times
/// for each request are compared.
#[test]
fn the_cpu_time_of_running_servers_is_compared() {
    let (a, b) = (start_baseline(1), start_baseline(1));
    let file = &path_in_new_folder("cpu-urls", "cpu.plimsoll");
    let (a, b) = (format!("{}/burn/200", a.url), format!("{}/burn/800", b.url));
    let document =
        run_to_json(&["prove", &a, &b, "--measure", "cpu", "--blocks", "12", "-c", "2", "--for", "200ms", "-o", file]);
    assert_valid_prove_document(&document);
    let cpu = &document["measures"][0];
    assert_eq!((&document["verdict"], &cpu["name"]), (&"worse".into(), &"cpu_ns_per_request".into()), "{document:#}");
    // A request costs some tens of microseconds besides the CPU time that it burns.
    assert!((1.8..4.2).contains(&number_at_path(cpu, "ratio")) && number_at_path(cpu, "a") > 170e3, "{document:#}");
    let picture = plimsoll(&["report", file, "--format", "svg"]);
    assert!(picture.stdout.contains("CPU time a request") && picture.stdout.contains("margin"), "{}", picture.stderr);
}

#[test]
fn an_interrupt_ends_the_build_and_gives_no_verdict() {
    let port = free_port();
    let path = create_new_folder("interrupted").join("interrupted.plimsoll");
    let url = format!("http://127.0.0.1:{port}/delay/20");
    let child = command(&[
        "prove",
        "--a",
        &shell_command_of_build(port, "a"),
        "--b",
        &shell_command_of_build(port, "b"),
        &url,
        "-c",
        "4",
        "--for",
        "100ms",
        "--warmup",
        "0s",
        "--json",
        "-o",
        path.to_str().expect("text"),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("starts");
    // After three starts of A, blocks are being measured.
    let starts = || {
        std::fs::read_to_string(path.with_extension("a.log")).unwrap_or_default().lines().filter(|l| *l == "a").count()
    };
    wait_for("blocks are measured", || starts() >= 3);
    signal(child.id(), "INT");
    let done = wait_for_exit(child);
    assert_eq!(done.code, 130, "{}", done.stderr);
    assert!(!is_build_running(port), "whole groups are ended");
    let document = done.json();
    assert_eq!(
        (&document["verdict"], &document["stopped_by"]),
        (&"inconclusive".into(), &"broken".into()),
        "{document:#}"
    );
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("interrupted"), "{warnings}");
}

/// Checks that plimsoll reports a build that dies during a measurement, and keeps the earlier
/// measurements.
#[test]
fn a_build_that_exits_is_reported_and_other_blocks_are_kept() {
    let port = free_port();
    let path = create_new_folder("dies").join("dies.plimsoll");
    let url = format!("http://127.0.0.1:{port}/delay/20");
    // Build B survives the search for the load and one block, and dies in the next block.
    let count = path.with_extension("count");
    let dying = format!(
        "echo x >> {count}; if [ $(wc -l < {count}) -gt 2 ]; then (sleep 1; kill -9 $$) & echo 'out of luck'; fi; {build}",
        count = count.display(),
        build = shell_command_of_build(port, "b").replace("echo b; ", "").replace(&format!("sleep 10{port} & "), ""),
    );
    let done = plimsoll(&[
        "prove",
        "--a",
        &shell_command_of_build(port, "a"),
        "--b",
        &dying,
        &url,
        "-c",
        "4",
        "--for",
        "2s",
        "--warmup",
        "0s",
        "--json",
        "--quiet",
        "-o",
        path.to_str().expect("text"),
    ]);
    assert_eq!(done.code, 2, "{}{}", done.stdout, done.stderr);
    let document = done.json();
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("B ended unexpectedly") && warnings.contains("signal 9"), "{warnings}");
    assert_eq!(
        (&document["verdict"], number_at_path(&document, "blocks")),
        (&"inconclusive".into(), 1.0),
        "{document:#}"
    );
    assert!(!is_build_running(port), "whole groups are ended");
    let shown = plimsoll(&["show", "--json", path.to_str().expect("text")]);
    assert!(shown.stderr.contains("the run ended early: B ended unexpectedly"), "{}", shown.stderr);
    let shown = shown.json();
    assert_eq!((&shown["verdict"], &shown["readings"]), (&document["verdict"], &document["readings"]));
    assert!(shown["warnings"].to_string().contains("signal 9"), "{shown:#}");
}

fn assert_prove_refuses(arguments: &[&str], expected: &str) {
    let done = plimsoll_without_turn(&[&["prove", "--quiet"], arguments].concat());
    assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{arguments:?} is not one sentence: {}", done.stderr);
    assert!(done.stderr.starts_with("plimsoll: ") && done.stderr.contains(expected), "{arguments:?}: {}", done.stderr);
}

#[test]
fn unmeasurable_builds_are_reported() {
    let Server { url: taken, .. } = &start_baseline(1);
    assert_prove_refuses(&["--a", "true", "--b", "true", taken], "responds at");
    let free = format!("http://127.0.0.1:{}/", free_port());
    assert_prove_refuses(
        &["--a", "echo no luck; exit 3", "--b", "true", &free],
        "exit code 3; its last output: no luck",
    );
    assert_prove_refuses(&["--a", "no-such-program", "--b", "true", &free], "exit code 127");
    assert_prove_refuses(&["--a", "sleep 60", "--b", "true", &free, "--start-timeout", "300ms"], "--start-timeout");
    // A build that never responds with success is a result of the comparison (exit code 1), not a
    // usage error (exit code 2).
    let done = plimsoll(&["prove", "--quiet", &format!("{taken}/status/500"), taken, "--blocks", "1"]);
    assert!(done.code == 1 && done.stderr.contains("status 500"), "{}: {}", done.code, done.stderr);
}

#[test]
fn targets_with_different_responses_are_reported() {
    let server = start_baseline(1);
    let (a, b) = (format!("{}/bytes/100", server.url), format!("{}/bytes/5000", server.url));
    let load = ["--measure", "p50", "--rate", "200", "--blocks", "2", "--for", "500ms"];
    let document = run_to_json(&[&["prove", &a, &b][..], &load].concat());
    let warnings = document["warnings"].to_string();
    // If other tests delayed plimsoll, no block (pair of loads) is valid, so plimsoll compares no
    // responses.
    assert!(warnings.contains("respond differently") || warnings.contains("too few blocks were valid"), "{document:#}");
    let document = run_to_json(&[&["prove", &a, &a][..], &load].concat());
    assert!(!document["warnings"].to_string().contains("respond differently"), "{document:#}");
}

#[test]
fn a_usage_error_is_one_sentence() {
    let (one, two) = ("http://127.0.0.1:9/", "http://127.0.0.1:10/");
    for (arguments, said) in [
        (&[one][..], "second URL"),
        (&[one, two, one], "--ladder"),
        (&["--ladder", one], "--ladder"),
        (&["--a", "x", one], "--b"),
        (&["--a", "x", "--b", "y", one, two], "one URL"),
        (&["--a", "x", "--b", "y", "--ladder", one], "--ladder"),
        (&["--measure", "speed", one, two], "speed"),
        (&["--measure", "cpu", one, two], "--measure cpu: of A, no socket"),
        (&["--measure", "cpu", "http://10.255.255.1/", two], "does not seem to be on this machine"),
        (&["--ladder", "--measure", "p50", one, two], "--measure"),
        (&["--margin", "2", one, two], "2%"),
        (&["--margin", "0%", one, two], "--margin"),
        (&["--budget", "0s", one, two], "--budget"),
        (&["--blocks", "0", one, two], "--blocks"),
        (&["--for", "soon", one, two], "--for"),
        (
            &["--budget", "3s", "--for", "8s", one, two],
            "--for 8s: one block, a load on each of 2 sides, does not fit into --budget 3s",
        ),
        (&["--budget", "3s", "--for", "2s", "--a", "x", "--b", "y", one], "increase --budget to 7s"),
        (&["--budget", "10s", "--for", "3s", "--ladder", one, two, one], "each of 3 sides"),
        (&["--rate", "5", one, two], "-c"),
        (&["--measure", "p99", "-c", "5", one, two], "--rate"),
        (&["--measure", "p99", "--rate", "0", one, two], "--rate"),
        (&["--fail-if", "better", one, two], "better"),
        (&["--start-timeout", "x", one, two], "--start-timeout"),
        (&[one, two], "accepts no connection"),
    ] {
        assert_prove_refuses(arguments, said);
    }
}
