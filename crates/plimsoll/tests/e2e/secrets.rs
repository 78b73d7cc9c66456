//! Tests that secrets in any place of a command line appear in no output, message, run file, page
//! or chart. `every_flag` tests all spellings of flags; this file tests everything that plimsoll
//! writes.

use crate::test_support::{command, create_new_folder, plimsoll, start_baseline, wait_for_exit};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fake token, which the tests use as the secret in each place of a command line.
const CANARY: &str = "Zq7xK2mW9vLp4TnR8sYd";

/// Starts a server that sends one response to every request, and counts the requests. The server
/// ends with the test's process.
fn start_fixed_response_server(answer: String) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (address, asked)
}

fn assert_no_canary(what: &str, bytes: &[u8]) {
    if let Some(at) = bytes.windows(CANARY.len()).position(|window| window == CANARY.as_bytes()) {
        let around = &bytes[at.saturating_sub(200)..(at + 60).min(bytes.len())];
        panic!("{what} holds a secret: ...{}", String::from_utf8_lossy(around));
    }
}

/// Asserts that no file of a folder contains the secret. Returns the number of files.
fn assert_no_canary_in_folder(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files += assert_no_canary_in_folder(&path);
            continue;
        }
        files += 1;
        assert_no_canary(&path.display().to_string(), &std::fs::read(&path).expect("a file"));
    }
    files
}

#[test]
fn no_secret_reaches_any_output() {
    let server = start_baseline(1);
    let metrics = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\ngo_goroutines 7\ngo_memstats_alloc_bytes 5\n";
    let (metrics, asked) = start_fixed_response_server(metrics.to_owned());
    let folder = create_new_folder("canary");
    let with_secrets = server.url.replace("http://", &format!("http://me:{CANARY}@"));
    let url = format!("{with_secrets}/delay/2?token={CANARY}&q={CANARY}&id=5");
    let header = format!("-qHX-Any: {CANARY}");
    let cookie = format!("-H=Cookie:a={CANARY}");
    let body = format!("-qb{CANARY}");
    let metrics = format!("--metrics=http://u:{CANARY}@{metrics}/{CANARY}/metrics?token={CANARY}");
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    let build = |name: &str| format!("KEY={CANARY} NAME='{name} {CANARY}' {binary} baseline --threads 1 --listen");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let (a, b) = (format!("{} 127.0.0.1:{port}", build("a")), format!("{} 127.0.0.1:{port}", build("b")));
    let before = format!("echo {CANARY} > /dev/null");
    let failing = format!("test -z {CANARY}");
    let built = format!("http://127.0.0.1:{port}/delay/2?sig={CANARY}");
    let (url_b, path) = (url.replace("id=5", "id=6"), format!("{with_secrets}/{CANARY}/items;jsessionid={CANARY}"));
    let pprof = format!("--pprof={with_secrets}/{CANARY}/debug/pprof?x={CANARY}");
    let secrets = [header.as_str(), &cookie[..], &body[2..]];
    let secrets = ["-H", &secrets[0][3..], "-H", &cookie[3..], &body];
    let dir = folder.to_str().expect("text").to_owned();
    let file = |name: &str| format!("-o{dir}/{name}.plimsoll");
    let (run, lost, prove, builds, find) = (file("run"), file("lost"), file("prove"), file("builds"), file("find"));
    let short = ["--spin=off", "--for", "100ms", "--warmup", "20ms", "--blocks", "2", "-c", "2", "--budget", "10s"];
    let lines: Vec<(Vec<&str>, &[i32])> = vec![
        ([&["run", &url, &metrics, "-n", "50", "--spin=off", &run][..], &secrets].concat(), &[0]),
        (vec!["run", &path, "-n", "20", &lost], &[0, 1]),
        ([&["find", &url, "--budget", "2s", "--max-rate", "500", "--spin=off", &find][..], &secrets].concat(), &[0, 1]),
        ([&["sweep", &url, "-c1,2", "--for", "100ms", "--spin=off", "--dir", &dir][..], &secrets].concat(), &[0]),
        ([&["prove", &url, &url_b, &prove][..], &secrets, &short].concat(), &[3]),
        ([&["prove", "--a", &a, "--b", &b, "--before-block", &before, &built, &builds][..], &short].concat(), &[2, 3]),
        // The following command lines end with an error message (exit code 2), which must not
        // contain the secret.
        ([&["prove", "--a", &a, "--b", &b, "--before-block", &failing, &built][..], &short].concat(), &[2]),
        (vec!["run", &url, &pprof, "-n", "5"], &[2]),
        (vec!["run", &url, "--unix", CANARY], &[2]),
        (vec!["run", &url.as_str()[..url.len() - 5], "--cacert", CANARY], &[2]),
        (vec!["run", &url, "-b", "@Zq7xK2mW9vLp4TnR8sYd"], &[2]),
        (vec!["run", &url, "-H", CANARY], &[2]),
        (vec!["prove", "-H", "Authorization:", CANARY, &url, &url], &[2]),
    ];
    for (line, codes) in lines {
        for format in [&[][..], &["--json"]] {
            let mut child = command(&[&line[..], format].concat());
            let child = child.env("OPENAI_KEY", CANARY).stdout(Stdio::piped()).stderr(Stdio::piped());
            let done = wait_for_exit(child.spawn().expect("starts"));
            let what = line.join(" ");
            assert!(codes.contains(&done.code), "{what}: {}{}", done.stdout, done.stderr);
            assert_no_canary(&format!("standard output of {what}"), done.stdout.as_bytes());
            assert_no_canary(&format!("standard error of {what}"), done.stderr.as_bytes());
        }
    }
    assert!(asked.load(Ordering::SeqCst) > 0);
    for name in ["run", "lost", "find", "sweep", "prove"] {
        let file = format!("{dir}/{name}.plimsoll");
        for show in [
            &["show"][..],
            &["show", "--verbose"],
            &["show", "--json"],
            &["show", "--csv"],
            &["show", "--probes"],
            &["report", "--format", "md"],
            &["report", "--format", "junit"],
            &["report", "--format", "json"],
            &["report", "--format", "svg"],
            &["report", "--format", "html"],
            &["rerun", "--print"],
            &["rerun"],
        ] {
            let done = plimsoll(&[show, &[&file]].concat());
            assert_no_canary(&format!("{show:?} of {name}"), format!("{}{}", done.stdout, done.stderr).as_bytes());
        }
    }
    let files = assert_no_canary_in_folder(&folder);
    assert!(files >= 12, "{files}");
    // Values that are obviously no secrets stay visible, so that users can distinguish the sides of
    // a comparison.
    let shown = plimsoll(&["show", "--json", &format!("{dir}/prove.plimsoll")]).json();
    let sides: Vec<&str> = shown["sides"].as_array().expect("sides").iter().filter_map(|side| side.as_str()).collect();
    assert!(sides[0].contains("id=5") && sides[1].contains("id=6"), "{sides:?}");
    let all = plimsoll(&["run", "--redact", "all", "--json", "-qn5", &format!("{}/healthz?id=5", server.url)]);
    assert!(!all.stdout.contains("id=5"), "{}", all.stdout);
}

#[test]
fn server_metrics_are_fetched_only_with_permission() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let (elsewhere, asked) = start_fixed_response_server("HTTP/1.0 200 OK\r\n\r\ngo_goroutines 7\n".to_owned());
    let moved = format!("HTTP/1.0 302 Found\r\nLocation: http://{elsewhere}/metrics\r\n\r\n");
    let (moved, _) = start_fixed_response_server(moved);
    for (flag, place, said) in [
        ("--metrics", "http://192.0.2.1/metrics", "--allow-public"),
        ("--metrics", "http://169.254.169.254/latest/", "--allow-public"),
        ("--metrics", "http://[::ffff:169.254.169.254]/", "--allow-public"),
        ("--metrics", "http://2852039166/", "--allow-public"),
        ("--pprof", "http://169.254.169.254/", "--allow-public"),
        ("--connect-to", "169.254.169.254:80", "--allow-public"),
        ("--metrics", &format!("http://{moved}/metrics"), "302"),
    ] {
        let done = plimsoll(&["run", "-n", "1", &format!("{flag}={place}"), &url]);
        assert!(done.code == 2 && done.stderr.contains(said), "{flag}={place}: {}{}", done.stdout, done.stderr);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "a redirect was followed");
    let anywhere = server.url.replace("127.0.0.1", "0.0.0.0");
    assert_eq!(plimsoll(&["run", "-qn", "5", &format!("{anywhere}/healthz")]).code, 0);
}
