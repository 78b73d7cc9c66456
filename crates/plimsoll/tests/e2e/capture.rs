//! Tests `run --pprof` and `find --pprof`: profiles of a real Go server at two loads, stored next
//! to the run file.

use crate::profile::{encode_http_response, start_single_response_server};
use crate::test_support::{create_new_folder, go_server, number_at_path, plimsoll};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn path_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Checks the profiles of a document at low load and at `level`, and the profile files that the
/// document names.
fn check(document: &Value, level: &str) {
    let profiles = &document["profiles"];
    assert_eq!(profiles["missing"], serde_json::json!([]), "{profiles:#}");
    for name in ["low", level] {
        let one = &profiles["levels"][name];
        // Unit tests check the exact values, because a busy machine changes the values in this
        // end-to-end test.
        for path in ["offered_rps", "goodput_rps.with", "goodput_rps.without", "p99_ns.with", "requests"] {
            assert!(number_at_path(one, path) > 0.0, "{name} {path}: {one:#}");
        }
        for kind in ["cpu", "allocs", "heap", "block", "mutex", "goroutine"] {
            let file = one["files"][kind].as_str().unwrap_or_else(|| panic!("no {kind}: {one:#}"));
            assert_eq!(plimsoll(&["profile", file, "--json"]).json()["schema"], "plimsoll.profile/1");
        }
    }
    let ratio = number_at_path(profiles, "levels.low.offered_rps")
        / number_at_path(&profiles["levels"], &format!("{level}.offered_rps"));
    assert!((0.1..=0.2).contains(&ratio), "{ratio}");
    let allocs = profiles["kinds"].as_array().expect("kinds").iter().find(|kind| kind["kind"] == "allocs");
    assert!(number_at_path(&allocs.expect("allocs")[level], "requests") > 0.0, "{profiles:#}");
}

#[test]
fn a_run_stores_profiles_beside_its_file() {
    let go = go_server();
    let file = create_new_folder("capture").join("api.plimsoll");
    let url = format!("{}/?key=s3cret", go.url);
    let arguments =
        ["run", "--rate", "400", "-d", "1s", "--pprof", "auto", "--pprof-seconds", "1", "-o", path_text(&file)];
    let done = plimsoll(&[&arguments[..], &["--json", &url]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    check(&document, "load");
    assert!(done.stderr.contains("profile --diff"), "{}", done.stderr);
    assert!(!(done.stdout + &done.stderr).contains("s3cret"));
    // Profiles do not change the figures of the run itself.
    assert!((number_at_path(&document, "requests") - 400.0).abs() < 40.0, "{document:#}");
    // `show` computes the same profile results from the files.
    let shown = plimsoll(&["show", "--json", path_text(&file)]).json();
    assert_eq!(shown["profiles"], document["profiles"]);
    let shown = plimsoll(&["show", "-v", path_text(&file)]).stdout;
    assert!(shown.contains("cost of profiling") && shown.contains("CPU per request, with callees"), "{shown}");
    // The page draws the profile of the load, and the difference between the profiles of the load
    // and of the low load.
    let page = file.with_extension("html");
    assert_eq!(plimsoll(&["report", path_text(&file), "-o", path_text(&page)]).code, 0);
    let page = std::fs::read_to_string(page).expect("written");
    assert!(
        page.contains(">CPU by function (load)<")
            && page.contains(">CPU time per request: low load compared with the load<")
    );
    assert_eq!(page.matches("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plimsoll-flame\"").count(), 2);
    // `go tool pprof` reads the profiles, too.
    let cpu = document["profiles"]["levels"]["load"]["files"]["cpu"].as_str().expect("a file");
    let pprof = Command::new("go").args(["tool", "pprof", "-top", cpu]).output().expect("go");
    assert!(pprof.status.success(), "{}", String::from_utf8_lossy(&pprof.stderr));
    // A profile file that is missing is reported.
    std::fs::remove_file(cpu).expect("removed");
    let shown = plimsoll(&["show", "-v", path_text(&file)]).stdout;
    assert!(shown.contains("warning: load: no cpu profile: ") && shown.contains("cannot be read"), "{shown}");
}

#[test]
fn a_search_takes_profiles_at_its_load_line() {
    let go = go_server();
    let file = create_new_folder("capture").join("line.plimsoll");
    let arguments = [
        "find",
        "--max-rate",
        "300",
        "--budget",
        "10s",
        "--pprof",
        &go.url,
        "--pprof-seconds",
        "1",
        "-o",
        path_text(&file),
    ];
    let done = plimsoll(&[&arguments[..], &["--json", "--slo", "success>=90%, p99<=1s", &go.url]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    check(&document, "line");
    let line = number_at_path(&document, "load_line_rps.lower");
    assert_eq!(number_at_path(&document, "profiles.levels.line.offered_rps"), line);
    // The search ended before the profiles were taken, and the search's findings do not include the
    // loads for profiles.
    assert!(number_at_path(&document, "elapsed_s") < 14.0, "{document:#}");
    assert!(document["trials"].as_array().expect("trials").iter().all(|trial| trial["kind"] != "profile"));
    let shown = plimsoll(&["show", "--json", path_text(&file)]).json();
    for member in ["profiles", "load_line_rps", "stopped_by"] {
        assert_eq!(shown[member], document[member], "{member}");
    }
    // The elapsed times may differ, because a run file records when a trial was prepared, not when
    // its connections were open.
    assert!((number_at_path(&shown, "elapsed_s") - number_at_path(&document, "elapsed_s")).abs() < 1.0);
}

#[test]
fn a_server_without_pprof_is_reported_before_the_load() {
    let go = go_server();
    for (status, body, said) in [
        ("404 Not Found", "404 page not found\n", "net/http/pprof"),
        ("500 Oops", "Could not enable CPU profiling: cpu profiling already in use\n", "wait until it ends"),
        ("400 Bad", "profile duration exceeds server's WriteTimeout\n", "fewer seconds"),
        ("200 OK", "<html>hello</html>", "HTML"),
    ] {
        let (base, asked) = start_single_response_server(encode_http_response(status, body.as_bytes()));
        let done = plimsoll(&["run", "-d", "1s", "--pprof", &base, &go.url]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{}", done.stderr);
        assert!(done.stderr.starts_with("plimsoll: --pprof: ") && done.stderr.contains(said), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        let asked = asked.join().expect("no panic");
        assert!(asked.starts_with("GET /debug/pprof/profile?seconds=10 "), "{asked}");
    }
    let nowhere = plimsoll(&["find", "--pprof", "ftp://x", &go.url]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.contains("--pprof: 'ftp://x'"), "{}", nowhere.stderr);
}

/// Starts an endpoint that accepts requests and never responds. With `floods`, the endpoint sends
/// endless data from the second request on.
fn start_unresponsive_endpoint(floods: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                if floods && number > 0 {
                    let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
                    while stream.write_all(&[0; 1 << 16]).is_ok() {}
                }
                let _ = stream.read(&mut [0; 1]);
            });
        }
    });
    format!("http://{address}")
}

/// Checks that profiles of an earlier run with the same file name are not used. A profile endpoint
/// that never responds may lengthen the run by eight seconds at most.
#[test]
fn profiles_of_another_run_are_not_used() {
    let go = go_server();
    let file = create_new_folder("stale").join("api.plimsoll");
    let (url, path) = (format!("{}/", go.url), path_text(&file));
    let run = |base: &str| {
        let began = Instant::now();
        let done = plimsoll(&[
            "run",
            "--rate",
            "100",
            "-d",
            "1s",
            "--pprof",
            base,
            "--pprof-seconds",
            "1",
            "--json",
            "-o",
            path,
            &url,
        ]);
        (done, began.elapsed())
    };
    let (first, usual) = run("auto");
    let files =
        |document: &Value| document["profiles"]["levels"]["load"]["files"].as_object().cloned().unwrap_or_default();
    assert_eq!(files(&first.json()).len(), 6, "{}", first.stderr);
    for floods in [false, true] {
        let (done, took) = run(&start_unresponsive_endpoint(floods));
        let document = done.json();
        assert!(files(&document).values().all(Value::is_null), "{document:#}");
        let missing = document["profiles"]["missing"].to_string();
        let why = if floods { "sent more data than plimsoll accepts" } else { "no complete response in time" };
        assert!(missing.contains("low: no cpu profile: ") && missing.contains(why), "{missing}");
        assert!(missing.contains("load: no heap profile: "), "{missing}");
        assert!(took < usual + Duration::from_secs(8), "{took:?}, {usual:?} without");
        // The outputs of `show` and `report` do not use the profiles of the earlier run either.
        assert_eq!(plimsoll(&["show", "--json", path]).json()["profiles"], document["profiles"]);
        let page = file.with_extension("html");
        assert_eq!(plimsoll(&["report", path, "-o", path_text(&page)]).code, 0);
        let page = std::fs::read_to_string(page).expect("a page");
        for shown in [plimsoll(&["show", "-v", path]).stdout, page] {
            assert!(shown.contains("low: no cpu profile: ") && !shown.contains(".cpu.pb.gz"), "{shown}");
        }
    }
}
