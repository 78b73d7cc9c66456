//! Tests that no build of `prove` and no demo server keeps running, however plimsoll ends. Further
//! tests check that a build is not blamed for a port that the previous build still uses.

use crate::prove::{free_port, is_build_running, shell_command_of_build, wait_for};
use crate::test_support::{command, create_new_folder, number_at_path, plimsoll, signal, wait_for_exit};
use std::process::{Child, Stdio};

/// Whether any process has this text in its arguments.
fn has_process_with_argument(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).split('\0').any(|word| word.contains(mark)))
}

fn is_port_listening(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Starts a comparison of builds whose processes leave their session and ignore SIGTERM.
fn start_build_comparison(port: u16) -> Child {
    let astray = format!(
        "(setsid sleep 10{port} &); (trap '' TERM HUP; sleep 10{port}) & {}",
        shell_command_of_build(port, "a")
    );
    let url = format!("http://127.0.0.1:{port}/delay/2");
    command(&["prove", "--a", &astray, "--b", &astray, &url, "-c", "2", "--for", "2s", "--warmup", "0s", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// Whether this test process ignores SIGHUP, as under `nohup`. Its child processes then ignore
/// SIGHUP, too, because plimsoll does not change that setting.
fn ignores_hup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("SigIgn");
    u64::from_str_radix(ignored.trim(), 16).expect("hexadecimal") & 1 == 1
}

/// Checks that no build outlives plimsoll after any signal: signals that ask to end, unexpected
/// signals, and SIGKILL.
#[test]
fn no_build_outlives_plimsoll() {
    let names = ["KILL", "HUP", "QUIT", "TERM", "USR1", "USR2"];
    for name in names.into_iter().filter(|name| *name != "HUP" || !ignores_hup()) {
        let port = free_port();
        let child = start_build_comparison(port);
        wait_for("a build answers", || is_port_listening(port));
        signal(child.id(), name);
        let done = wait_for_exit(child);
        let asks = ["HUP", "QUIT", "TERM"].contains(&name);
        let code = if name == "HUP" { 129 } else { 130 };
        assert_eq!(done.code, if asks { code } else { -1 }, "{name}: {}", done.stderr);
        wait_for(&format!("{name}: nothing of the build is left"), || {
            !is_build_running(port) && !is_port_listening(port)
        });
        // A command that was interrupted before any measurement reports the interrupt and gives no
        // verdict.
        assert!(
            !asks || done.stderr.contains("interrupted") || done.stdout.contains("interrupted"),
            "{name}: {}",
            done.stderr
        );
    }
}

/// Checks that the demo's server ends together with the demo.
#[test]
fn the_demo_server_ends_with_the_demo() {
    for name in ["KILL", "HUP", "USR1"].into_iter().filter(|name| *name != "HUP" || !ignores_hup()) {
        let child = command(&["demo", "--budget", "30s"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("starts");
        let below = || {
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            let keeper = std::fs::read_to_string(children).ok()?.split_whitespace().next()?.to_owned();
            let server = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
            Some([keeper, server.split_whitespace().next()?.to_owned()])
        };
        wait_for("the server runs", || below().is_some());
        let pids = below().expect("a keeper and the server");
        let lives = |pid: &String| std::path::Path::new("/proc").join(pid).join("exe").read_link().is_ok();
        assert!(pids.iter().all(lives));
        signal(child.id(), name);
        wait_for_exit(child);
        wait_for(&format!("{name}: keeper and server end"), || !pids.iter().any(lives));
    }
}

/// Checks that plimsoll itself ends all builds if its keeper process, which usually ends the
/// builds, is killed.
#[test]
fn a_killed_keeper_leaves_no_process() {
    let port = free_port();
    let child = start_build_comparison(port);
    wait_for("a build answers", || is_port_listening(port));
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).expect("children");
    for keeper in children.split_whitespace() {
        signal(keeper.parse().expect("a number"), "KILL");
    }
    let done = wait_for_exit(child);
    assert!(done.code > 0 && (done.stdout + &done.stderr).contains("signal 9"));
    assert!(!is_build_running(port) && !is_port_listening(port));
}

/// Checks that a port is free before the next build begins. The test uses three kinds of servers
/// that keep their port although they seem to have ended. In the first kind of server, only the
/// first thread has ended, and another thread keeps the port. The second kind of server leaves
/// children in other sessions, and the third kind shares its port.
#[test]
fn a_port_is_free_before_the_next_build_starts() {
    let folder = create_new_folder("silent");
    let program = folder.join("server.py");
    std::fs::write(&program, include_str!("slow-server.py")).expect("written");
    let (program, file) = (program.display(), folder.join("silent.plimsoll"));
    let port = free_port();
    for (a, b) in [("headless", "slow"), ("fork", "fork reuseport")] {
        let (a, b) = (format!("exec python3 {program} {port} {a}"), format!("python3 {program} {port} {b} & wait"));
        let url = format!("http://127.0.0.1:{port}/");
        let load = ["--blocks", "2", "-c", "2", "--for", "100ms", "--warmup", "0s", "--json", "-q"];
        let sides = ["prove", "--a", &a, "--b", &b, &url, "-o", file.to_str().expect("text")];
        let done = plimsoll(&[&sides[..], &load[..]].concat());
        assert_eq!(done.code, 3, "{a}, {b}: {}", done.stderr);
        assert_eq!(number_at_path(&done.json(), "blocks"), 2.0, "{a}, {b}: {}", done.stdout);
        assert!(
            !has_process_with_argument(&program.to_string()) && !is_port_listening(port),
            "{a}, {b}: something is left"
        );
    }
}

/// Checks that builds start on a free port if the target is only a path. The commands of the builds
/// get the port as `{port}` and as the variable `PORT`.
#[test]
fn builds_of_a_path_get_a_free_port() {
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let build = |port: &str| format!("exec {program} baseline --listen 127.0.0.1:{port}");
    let load = ["--blocks", "1", "-c", "1", "--for", "100ms", "--warmup", "0s", "--json", "-q"];
    let done = plimsoll(&[&["prove", "--a", &build("{port}"), "--b", &build("$PORT"), "/delay/2"], &load[..]].concat());
    assert_eq!(done.code, 3, "one block tells nothing: {}", done.stderr);
    assert_eq!(number_at_path(&done.json(), "blocks"), 1.0, "{}", done.stdout);
}

/// Checks that the error names another process that still uses the port after a while.
#[test]
fn the_process_that_uses_the_port_is_named() {
    let other = crate::test_support::start_baseline(1);
    let done = plimsoll(&["prove", "--quiet", "--a", "true", "--b", "true", &other.url]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains(&format!("process {} (plimsoll) already responds", other.pid())), "{}", done.stderr);
    // A foreign listener on the port does not prevent the comparison if the listener ends in time.
    let port = free_port();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("bound");
    let url = format!("http://127.0.0.1:{port}/delay/2");
    let build = shell_command_of_build(port, "a");
    let child = command(&["prove", "--a", &build, "--b", &build, &url, "--blocks", "1", "-c", "1", "--for", "100ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(listener);
    let done = wait_for_exit(child);
    assert_eq!(done.code, 3, "one block tells nothing: {}", done.stderr);
}
