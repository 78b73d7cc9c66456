//! Tests wrong use: the error is one sentence that names the flag or file and says what to change.
//! The exit code is 2, and plimsoll never panics.

use crate::test_support::{CommandOutcome, command, create_new_folder, plimsoll, start_baseline, wait_for_exit};
use std::net::TcpListener;
use std::process::Stdio;

/// Runs the binary to its end, with exactly these arguments.
fn run_as_written(arguments: &[&str]) -> CommandOutcome {
    wait_for_exit(command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts"))
}

fn check(arguments: &[&str], expected: &str) {
    let done = run_as_written(arguments);
    assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "{arguments:?}");
    assert_eq!(done.stderr.lines().count(), 1, "{arguments:?} is not one sentence: {}", done.stderr);
    assert!(done.stderr.starts_with("plimsoll: ") && done.stderr.contains(expected), "{arguments:?}: {}", done.stderr);
}

#[test]
fn a_usage_error_is_one_sentence() {
    let url = "http://127.0.0.1:9/";
    for (arguments, said) in [
        (&["run", "--rte", "5", url][..], "--rte"),
        (&["rum", url], "rum"),
        (&["run"], "<URL>"),
        (&["run", "http://"], "not a URL"),
        (&["run", "ftp://127.0.0.1/"], "https://"),
        (&["run", "http://127.0.0.1:99999/"], "port"),
        (&["run", "-c", "0", url], "--concurrency"),
        (&["run", "-c", "-5", url], "-5"),
        (&["run", "-c", "1.5", url], "1.5"),
        (&["run", "-c", "ten", url], "--concurrency"),
        (&["run", "-n", "0", url], "--requests"),
        (&["run", "-d", "0s", url], "--duration"),
        (&["run", "-d", "5 apples", url], "--duration"),
        (&["run", "-t", "0", url], "--threads"),
        (&["run", "--rate", "0", url], "--rate"),
        (&["run", "--rate", "-1", url], "-1"),
        (&["run", "--rate", "10,20@5s", url], "LEVEL@TIME"),
        (&["run", "--rate", "5", "-c", "5", url], "--max-connections"),
        (&["run", "-c", "5@5s", "-d", "5s", url], "--duration"),
        (&["run", "--arrivals", "poisson", url], "--rate"),
        (&["run", "--rate", "5", "--arrivals", "bursty", url], "bursty"),
        (&["run", "--http", "3", url], "auto, 1.1 or 2"),
        (&["run", "--streams", "8", url], "add --http 2"),
        (&["run", "--http", "1.1", "--streams", "8", url], "add --http 2"),
        (&["run", "--http", "2", "--streams", "0", url], "--streams"),
        (&["run", "--http", "2", "--streams", "2M", url], "--streams"),
        (&["run", "--http", "2", "--streams", "2", "--no-keepalive", url], "--streams and --no-keepalive"),
        (&["run", "--timeout", "0", url], "--timeout"),
        (&["run", "--spin", "maybe", url], "auto, on or off"),
        (&["run", "--ok-status", "7xx", url], "--ok-status"),
        (&["run", "-H", "no colon", url], "--header"),
        (&["run", "-H", "bad name: x", url], "bad name"),
        (&["run", "-X", "GE T", url], "GE T"),
        (&["run", "-b", "@/no/such/file", url], "/no/such/file"),
        (&["run", "--fail-if", "p99!200ms", url], "--fail-if"),
        (&["run", "--fail-if", "speed>5", url], "speed"),
        (&["run", "--stop-if", "errors>5x", url], "--stop-if"),
        (&["run", "-c", "2M", url], "--concurrency"),
        (&["run", "http://192.0.2.1/"], "--allow-public"),
        (&["run", "--connect-to", "192.0.2.1:80", url], "--allow-public"),
        (&["run", "--connect-to", "nowhere", url], "HOST:PORT"),
        (&["run", "--unix", "/run/x", "--connect-to", "127.0.0.1:9", url], "--unix and --connect-to"),
        (&["run", "--unix", "/run/x", "--source-ip", "127.0.0.1", url], "--unix and --source-ip"),
        (&["run", "--unix", "/no/such.sock", url], "/no/such.sock"),
        (&["run", "--source-ip", "10.0.0.9-10.0.0.5", url], "not a range"),
        (&["run", "--source-ip", "10.0.0.0/33", url], "not a range"),
        (&["run", "--source-ip", "192.0.2.1", url], "not an address of this machine"),
        (&["run", "--source-ip", "127.0.0.1-127.0.0.5,192.0.2.0/30", url], "192.0.2.1"),
        (&["run", "--source-ip", "::1", url], "needs an IPv4 address"),
        (&["run", "--resolve-every", "0s", url], "--resolve-every"),
        (&["run", "--close", "gently", url], "fin or reset"),
        (&["run", "--insecure", url], "https://"),
        (&["run", "--cacert", "/no/such.pem", url], "https://"),
        (&["run", "--cacert", "/no/such.pem", "https://127.0.0.1:9/"], "/no/such.pem"),
        (&["run", "--insecure", "--cacert", "x", "https://127.0.0.1:9/"], "leave one out"),
        (&["run", "--key", "x", "https://127.0.0.1:9/"], "--cert"),
        (&["run", "-t", "1", "-c", "1M", url], "-t "),
        (&["run", "http://no-such-host.invalid/"], "no-such-host.invalid"),
        (&["find", "--slo", "p99<=fast", url], "--slo"),
        (&["find", "--slo", "", url], "--slo"),
        (&["find", "--budget", "0s", url], "--budget"),
        (&["find", "--max-rate", "0", url], "--max-rate"),
        (&["find", "--fail-if", "p99>5ms", url], "line<5000"),
        (&["sweep", "-c", "1,0", url], "--concurrency"),
        (&["sweep", "--name", "a/b", url], "--name"),
        (&["baseline", "--listen", "nowhere"], "--listen"),
        (&["baseline", "--threads", "0"], "--threads"),
        (&["baseline", "--cert", "/no/such.pem"], "/no/such.pem"),
        (&["baseline", "--key", "/no/such.key"], "--cert"),
        (&["baseline", "--cert", "/proc/self/status"], "--cert"),
        (&["demo", "--budget", "x"], "--budget"),
        (&["show", "/no/such/file"], "/no/such/file"),
    ] {
        check(arguments, said);
    }
}

/// Checks that for any invalid input the exit code is 2 and the error is one short sentence. The
/// sentence repeats little of the input and has no control characters.
#[test]
fn no_error_sentence_is_long_or_repeated() {
    let url = "http://127.0.0.1:9/";
    let long = "x1".repeat(2_500);
    let steering = "\u{1b}[31m\u{7}\u{9b}2J\u{202e}a\r\n\tb";
    for given in [long.as_str(), steering, "' or '", "", " "] {
        let flags = "-X -c -n -d -t -b@ --rate --timeout --ok-status --max-connections --connect-to --unix --source-ip \
                     --resolve-every --close --http --streams --spin --seed --arrivals --pprof --pprof-seconds --pid --process --metrics \
                     --cgroup --warmup --stop-if --fail-if --on-inconclusive --redact --no-such --insecure --cert -H";
        let mut lines: Vec<Vec<String>> = Vec::new();
        for flag in flags.split_whitespace() {
            let glued = if flag.starts_with("--") { format!("{flag}={given}") } else { format!("{flag}{given}") };
            lines.push(["run", &glued, url].map(str::to_owned).to_vec());
            lines.push(["run", "-n1", &flag.replace('@', ""), given, url].map(str::to_owned).to_vec());
        }
        for command in ["run", "find", "sweep", "prove", "show", "report", "diff", "profile", "rerun", ""] {
            lines.push([command, given].map(str::to_owned).to_vec());
        }
        for (command, flag) in [
            ("find", "--slo"),
            ("find", "--budget"),
            ("find", "--max-rate"),
            ("find", "--fail-if"),
            ("sweep", "-c"),
            ("sweep", "--for"),
            ("prove", "--measure"),
            ("prove", "--margin"),
            ("prove", "--blocks"),
            ("baseline", "--listen"),
            ("demo", "--budget"),
            ("report", "--format"),
        ] {
            lines.push([command, flag, given, url].map(str::to_owned).to_vec());
        }
        for line in lines {
            let words: Vec<&str> = line.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
            if words.is_empty() {
                continue;
            }
            let done = run_as_written(&words);
            if done.code == 2 && done.stdout.is_empty() {
                let said = done.stderr.lines().last().unwrap_or_default();
                let ways_out = said.matches("--help").count();
                assert!(said.starts_with("plimsoll: ") && ways_out <= 1, "{words:?}: {said}");
                assert!(done.stderr.matches("x1").count() <= 150, "{words:?}: {said}");
                assert!(said.chars().count() < 700, "{words:?}: {said}");
                assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{words:?}: {said:?}");
                assert!(!said.contains("(see") || !said.contains("; try"), "{words:?}: {said}");
            } else {
                // Command lines with empty words are exempt, because they may be valid, or ask for
                // help.
                let harmless = given.trim().is_empty() || done.stderr.contains("Usage:");
                assert!(harmless, "{words:?}: {} {}{}", done.code, done.stdout, done.stderr);
            }
        }
    }
}

/// Checks the errors about arguments that are not UTF-8, for each kind of option.
#[test]
fn arguments_that_are_not_utf8_are_reported() {
    use std::os::unix::ffi::OsStrExt;
    let not_text = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for before in [
        &[][..],
        &["run"],
        &["run", "-c"],
        &["run", "-H"],
        &["run", "-b"],
        &["run", "--unix"],
        &["run", "--seed"],
        &["run", "--spin"],
        &["run", "--cacert"],
        &["run", "-n1", "-o"],
        &["find"],
        &["prove", "--a"],
        &["sweep", "--dir"],
        &["baseline", "--listen"],
        &["demo", "--budget"],
        &["show"],
        &["report"],
        &["report", "-o"],
        &["diff", "x"],
        &["profile"],
        &["rerun"],
        &["rerun", "x", "-o"],
    ] {
        let mut child = command(before);
        child.arg(not_text).stdout(Stdio::piped()).stderr(Stdio::piped());
        if before.first() == Some(&"run") && before.len() > 1 {
            child.arg("http://127.0.0.1:9/");
        }
        let done = child.output().expect("ends");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{before:?}: {said}");
        assert!(said.starts_with("plimsoll: ") && !said.contains("panicked"), "{before:?}: {said}");
    }
}

#[test]
fn files_that_are_not_run_files_are_reported() {
    let folder = create_new_folder("bad");
    for (name, bytes, said) in [
        ("empty", &b""[..], "not a plimsoll run file"),
        ("text", b"hello, world", "not a plimsoll run file"),
        ("newer", b"PLIMSOL\x09........", "version 9"),
        ("cut", b"PLIMSOL\x02\x05", "cut off or damaged"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        check(&["show", path.to_str().expect("text")], said);
    }
    check(&["show", folder.to_str().expect("text")], "is a folder");
}

#[test]
fn a_target_that_does_not_answer_in_http_is_not_loaded() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    check(&["run", "--timeout", "300ms", &url], "no complete response");
    for (fault, said) in [
        (plimsoll_bench::Fault::Refuses, "refused"),
        (plimsoll_bench::Fault::Garbage, "sent a response that is not HTTP"),
        (plimsoll_bench::Fault::CloseOnRequest, "closed the connection"),
        (plimsoll_bench::Fault::ResetOnRequest, "reset"),
    ] {
        let server = plimsoll_bench::servers::start_faulty_server(fault, 1).expect("starts");
        check(&["run", &server.url("/")], said);
        check(&["find", &server.url("/")], said);
        check(&["sweep", &server.url("/")], said);
    }
    let alert = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = alert.local_addr().expect("an address");
    let refuses_plain_http = std::thread::spawn(move || {
        let (mut line, _) = alert.accept().expect("accepted");
        let mut head = [0; 16];
        std::io::Read::read_exact(&mut line, &mut head).expect("a request");
        std::io::Write::write_all(&mut line, &[0x15, 3, 1, 0, 2, 2, 70]).expect("written");
    });
    check(&["run", &format!("http://{address}/")], "speaks TLS on this port (write https://)");
    refuses_plain_http.join().expect("ends");
}

#[test]
fn unwritable_outputs_are_reported_before_the_load() {
    let server = start_baseline(1);
    check(&["run", "-n", "1", "--quiet", "-o", "/proc/no/such", &format!("{}/healthz", server.url)], "/proc/no/such");
    check(&["sweep", "--quiet", "--dir", "/proc/no", &format!("{}/healthz", server.url)], "/proc/no");
}

#[test]
fn an_occupied_port_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    check(&["baseline", "--listen", &taken.local_addr().expect("an address").to_string()], "in use");
}

#[test]
fn every_command_help_has_an_example() {
    for name in ["find", "prove", "run", "sweep", "baseline", "demo", "show", "grpc"] {
        let done = plimsoll(&[name, "--help"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stdout.contains("Example") && done.stdout.contains(&format!("plimsoll {name}")),
            "{}",
            done.stdout
        );
    }
}

#[test]
fn a_closed_output_pipe_is_not_a_crash() {
    let mut child = command(&["run", "--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[cfg(not(feature = "grpc"))]
#[test]
fn a_build_without_grpc_refuses_it() {
    let call = "grpc://127.0.0.1:9/a.B/C";
    for arguments in [&["run", call][..], &["find", call], &["grpc", "list", "grpc://127.0.0.1:9/"]] {
        check(arguments, "built without gRPC: build plimsoll with --features grpc");
    }
}
