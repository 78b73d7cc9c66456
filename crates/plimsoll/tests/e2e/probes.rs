//! Tests the probes (measurements) of real servers. There are servers in three runtimes, a forking
//! server, a restarting server, a server of another user, and a server on another machine.

use crate::test_support::{
    Server, command, create_new_folder, go_server, nginx_with_workers, number_at_path, path_in_new_folder, plimsoll,
    run_to_json, signal, start_baseline, start_server_process, wait_for_exit,
};
use plimsoll_sys::probe::process::CpuClock;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The source of a Python server that responds with `hello` on every path except /metrics.
const PYTHON_SERVER_SOURCE: &str = "
import http.server, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        # On this path, a short wait limits the CPU time that a closed loop costs.
        if self.path == '/waits': time.sleep(0.005)
        body = b'hello'
        if self.path == '/metrics':
            body = ('# TYPE go_goroutines gauge\\ngo_goroutines 7\\n# TYPE pool_waits_total counter\\npool_waits_total %d\\n' % (time.time() * 10)).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print('http://127.0.0.1:%d' % s.server_address[1], flush=True)
s.serve_forever()
";

/// The source of a Node.js server that responds with `hello`.
const NODE_SERVER_SOURCE: &str = "
const s = require('http').createServer((q, r) => r.end('hello'));
s.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + s.address().port));
";

/// Python source, put before a server's source, that opens three connections to a downstream server
/// at the port in its argument.
const DOWNSTREAM_CONNECTIONS_SOURCE: &str = "
import socket, sys
own = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(3)]
";

/// The source of a proxy that forwards connections to the port in its argument.
const PROXY_SOURCE: &str = "
import socket, sys, threading
def pump(a, b):
    while data := a.recv(65536): b.sendall(data)
    b.shutdown(socket.SHUT_WR)
door = socket.create_server(('127.0.0.1', 0))
print('http://127.0.0.1:%d' % door.getsockname()[1], flush=True)
while True:
    client = door.accept()[0]
    server = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    for a, b in [(client, server), (server, client)]:
        threading.Thread(target=pump, args=(a, b), daemon=True).start()
";

fn start_python_server() -> Server {
    start_server_process(Command::new("python3").args(["-c", PYTHON_SERVER_SOURCE]), "python3")
}

fn find_probe_series<'a>(document: &'a Value, name: &str) -> &'a Value {
    let probes = document["server"]["probes"].as_array().expect("probes");
    let found = probes.iter().find(|probe| probe["name"] == name);
    found.unwrap_or_else(|| panic!("no series {name} in {:?}", probes.iter().map(|p| &p["name"]).collect::<Vec<_>>()))
}

/// Asserts that the figures about a server agree with each other and with the kernel's CPU time of
/// the processes `pids`. `before_ns` is this CPU time before the load, in ns.
fn assert_server_figures_agree_with_kernel(what: &str, document: &Value, before_ns: u64, pids: &[u32]) {
    let server = &document["server"];
    assert!(server["reason"].is_null(), "{what}: {}", server["reason"]);
    let answered = number_at_path(document, "ledger.succeeded");
    assert!(answered > 20.0, "{what}: only {answered} answers");
    let cost_us = number_at_path(document, "server.cpu_us_per_request");
    let ours_s = cost_us * answered / 1e6;
    let theirs_s = (cpu_time_of_processes_ns(pids) - before_ns) as f64 / 1e9;
    // The CPU time from the kernel also contains the preflight request and the server's work before
    // and after the load.
    let error_s = (ours_s - theirs_s).abs();
    assert!(error_s <= 0.02 * theirs_s + 0.06, "{what}: {ours_s:.3} s of CPU, by the kernel {theirs_s:.3} s");
    let per_core = number_at_path(document, "server.rps_per_core");
    assert!((per_core * cost_us / 1e6 - 1.0).abs() < 1e-6, "{what}: {per_core} a core at {cost_us} us");
    assert!(number_at_path(document, "server.cores_used") > 0.0, "{what}");
    assert!(number_at_path(document, "server.rss_bytes_max") > 1e6, "{what}");
    assert!(number_at_path(document, "server.threads_max") >= 1.0, "{what}");
    let cpu = find_probe_series(document, "server.cpu");
    let expected = number_at_path(document, "duration_s") * 10.0;
    assert!(cpu["samples"].as_f64().is_some_and(|n| n >= expected * 0.3), "{what}: {cpu}, about {expected} samples");
    for name in ["host.cpu_user", "listen.queue", "tcp.listen_overflows", "net.lo.bytes_in", "server.run_queue_wait"] {
        find_probe_series(document, name);
    }
}

fn cpu_time_of_processes_ns(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| CpuClock::for_process(*pid).expect("a clock").read_ns().expect("reads")).sum()
}

#[test]
fn servers_of_three_runtimes_are_observed() {
    let servers = [
        ("go", go_server()),
        ("python", start_python_server()),
        ("node", start_server_process(Command::new("node").args(["-e", NODE_SERVER_SOURCE]), "Node.js")),
    ];
    for (what, server) in servers {
        let before_ns = cpu_time_of_processes_ns(&[server.pid()]);
        let document = run_to_json(&["run", &format!("{}/", server.url), "-c", "4", "-d", "800ms"]);
        assert_eq!(document["server"]["pid"], server.pid(), "{what}");
        assert_server_figures_agree_with_kernel(what, &document, before_ns, &[server.pid()]);
    }
}

#[test]
fn connections_of_the_server_are_counted_by_peer() {
    let database = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = database.local_addr().expect("an address");
    let script = format!("{DOWNSTREAM_CONNECTIONS_SOURCE}{PYTHON_SERVER_SOURCE}");
    let server =
        start_server_process(Command::new("python3").args(["-c", &script, &address.port().to_string()]), "python3");
    // Readings have a budget of CPU time, so they take long if the machine has thousands of other
    // connections.
    let name = format!("peer.{address}.connections");
    let mut document = Value::Null;
    for length in ["2s", "6s", "15s"] {
        document = run_to_json(&["run", "-c", "5", "-d", length, &format!("{}/waits", server.url)]);
        let probes = document["server"]["probes"].as_array().expect("probes");
        let seen = |name: &str| probes.iter().any(|probe| probe["name"] == name && number_at_path(probe, "max") > 0.0);
        if seen(&name) && seen("accepted.connections") {
            break;
        }
    }
    let peer = find_probe_series(&document, &name);
    assert_eq!((number_at_path(peer, "min"), number_at_path(peer, "max")), (3.0, 3.0), "{peer:#}");
    // The load's connections and other processes' connections do not count as the server's own.
    let probes = document["server"]["probes"].as_array().expect("probes");
    let names = probes.iter().filter_map(|probe| probe["name"].as_str());
    // Once plimsoll has found the process that accepts the server's connections, a series names the
    // process.
    let taker = format!("peer.{address}.process.");
    let peers: Vec<&str> = names.filter(|name| name.starts_with("peer.") && !name.starts_with(&taker)).collect();
    let whats =
        ["coming", "connections", "on_the_way", "queued", "received", "segments_sent", "unread", "unsent", "waiting"];
    assert_eq!(peers, whats.map(|what| format!("peer.{address}.{what}")), "{document:#}");
    // While the connection of the preflight request closes, the server has one more connection than
    // the load. If there is only one reading, the reading may come from before the load.
    let accepted = find_probe_series(&document, "accepted.connections");
    let most = number_at_path(accepted, "max");
    assert!((5.0..=6.0).contains(&most) || number_at_path(accepted, "samples") < 2.0 && most <= 1.0, "{document:#}");
}

/// Checks that a server behind a proxy is measured at the port where the server accepts
/// connections. The process named by `--pid` has another port than the target, and another name.
#[test]
fn a_server_behind_a_proxy_is_observed_at_its_listener() {
    let named = create_new_folder("behind").join("shop");
    let told = Command::new("python3").args(["-c", "import sys; print(sys.executable, sys.base_prefix)"]).output();
    let told = String::from_utf8(told.expect("python3").stdout).expect("text");
    let (python, home) = told.trim().split_once(' ').expect("two places");
    let _ = std::fs::remove_file(&named);
    std::os::unix::fs::symlink(python, &named).expect("linked");
    // If Python is started under another name, it needs PYTHONHOME to find its files.
    let server = start_server_process(
        Command::new(&named).env("PYTHONHOME", home).args(["-c", PYTHON_SERVER_SOURCE]),
        "python3",
    );
    let port = server.url.rsplit(':').next().expect("a port");
    let relay = start_server_process(Command::new("python3").args(["-c", PROXY_SOURCE, port]), "python3");
    let pid = server.pid().to_string();
    let mut document = Value::Null;
    for length in ["2s", "6s", "15s"] {
        document = run_to_json(&["run", "-c", "4", "-d", length, "--pid", &pid, &format!("{}/waits", relay.url)]);
        let probes = document["server"]["probes"].as_array().expect("probes");
        if probes.iter().any(|probe| probe["name"] == "accepted.connections" && number_at_path(probe, "max") >= 4.0) {
            break;
        }
    }
    assert!(number_at_path(find_probe_series(&document, "accepted.connections"), "max") >= 4.0, "{document:#}");
    assert_eq!(number_at_path(find_probe_series(&document, "accepted.by_others"), "min"), 1.0, "{document:#}");
    assert!(number_at_path(find_probe_series(&document, "listen.backlog"), "max") > 0.0, "{document:#}");
    let name = document["server"]["name"].as_str().expect("a name");
    assert!(name.starts_with("shop (python3"), "{name}");
    let asked = run_to_json(&["run", "-c", "4", "-d", "1s", &server.url]);
    assert_eq!(number_at_path(find_probe_series(&asked, "accepted.by_others"), "max"), 0.0, "{asked:#}");
}

#[test]
fn children_of_a_forking_server_are_summed() {
    let server = nginx_with_workers(2);
    let children = || {
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &server.pid().to_string()]).output();
        let text = String::from_utf8(children.expect("ps").stdout).expect("text");
        text.split_whitespace().map(|pid| pid.parse().expect("a pid")).collect::<Vec<u32>>()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while children().len() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut pids = children();
    pids.push(server.pid());
    let before_ns = cpu_time_of_processes_ns(&pids);
    let document = run_to_json(&["run", &format!("{}/", server.url), "-c", "8", "-d", "800ms"]);
    assert_eq!(document["server"]["pid"], server.pid(), "the parent stands for all");
    assert_server_figures_agree_with_kernel("nginx", &document, before_ns, &pids);
    assert_eq!(find_probe_series(&document, "server.processes")["max"], 3.0);
    let by_name = run_to_json(&["run", &format!("{}/", server.url), "-n", "50", "--pid", &server.pid().to_string()]);
    assert_eq!(by_name["server"]["pid"], server.pid());
}

#[test]
fn a_restarted_server_is_followed_and_reported() {
    let mut server = start_baseline(1);
    let (first, url) = (server.pid(), server.url.clone());
    let listen = url.trim_start_matches("http://").to_owned();
    let path = &path_in_new_folder("restart", "run.plimsoll");
    let child = command(&["run", &format!("{url}/delay/5"), "-c", "2", "-d", "4s", "--spin=off", "-v", "-o", path])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    std::thread::sleep(Duration::from_millis(1500));
    server.end();
    let again = start_server_process(&mut command(&["baseline", "--listen", &listen, "--threads", "1"]), "plimsoll");
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("the server restarted once under load"), "{}", done.stdout);
    let document = plimsoll(&["show", "--json", path]).json();
    let pids: Vec<&Value> =
        document["server"]["servers"].as_array().expect("servers").iter().map(|s| &s["pid"]).collect();
    assert_eq!(pids, [&Value::from(first), &Value::from(again.pid())]);
    assert_eq!(document["server"]["pid"], again.pid());
    assert!(number_at_path(&document, "server.cpu_us_per_request") > 0.0);
}

#[test]
fn a_target_on_another_machine_is_reported() {
    // The address leads to another machine, whether or not a server responds there.
    let document =
        run_to_json(&["run", "http://10.255.255.1:81/", "--no-preflight", "--timeout", "300ms", "-n", "1", "-c", "1"]);
    let server = &document["server"];
    assert!(server["pid"].is_null() && server["cpu_us_per_request"].is_null(), "{server}");
    assert!(
        server["reason"].as_str().is_some_and(|r| r.contains("does not seem to be on this machine")),
        "{}",
        server["reason"]
    );
    assert!(find_probe_series(&document, "host.cpu_user")["samples"].as_u64().is_some_and(|n| n >= 2));
}

/// The source of a script that runs a server in its own network namespace, as in a container.
/// Requests reach the server through a pair of interfaces, at an address that is not this
/// machine's. The pair of interfaces ends with the network namespace, and the network namespace
/// ends with the server.
const NAMESPACED_SERVER: &str = "
import ctypes, http.server, os, subprocess, time
us, libc = os.getppid(), ctypes.CDLL(None)
if libc.unshare(0x40000000): raise SystemExit('no network of its own')
name, number = 'plim%d' % os.getpid(), os.getpid() % 16384 * 4
here, there = ('10.83.%d.%d' % ((number + which) // 256, (number + which) % 256) for which in (1, 2))
def ip(words): subprocess.run(['ip'] + words.split(), check=True)
ip('link add %s type veth peer name %s netns %d' % (name, name, us))
ip('addr add %s/30 dev %s' % (there, name))
ip('link set %s up' % name)
def back():
    if libc.setns(os.open('/proc/%d/ns/net' % us, os.O_RDONLY), 0x40000000): raise OSError('no way back')
for words in ('addr add %s/30 dev %s' % (here, name), 'link set %s up' % name):
    subprocess.run(['ip'] + words.split(), check=True, preexec_fn=back)
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        end = time.process_time() + 0.01
        while time.process_time() < end: pass
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer((there, 0), H)
print('http://%s:%d' % s.server_address, flush=True)
s.serve_forever()
";

#[test]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn a_server_in_its_own_network_namespace_is_observed() {
    if std::fs::read_dir("/proc/1/fd").is_err() {
        eprintln!("not root: a server in a network of its own is not tried");
        return;
    }
    let server: Server = start_server_process(Command::new("python3").args(["-c", NAMESPACED_SERVER]), "python3");
    let document = run_to_json(&["run", &server.url, "-c", "1", "-d", "2s"]);
    assert_eq!(document["server"]["pid"], server.pid(), "{}", document["server"]);
    let cost_us = number_at_path(&document, "server.cpu_us_per_request");
    assert!((9_900.0..20_000.0).contains(&cost_us), "{cost_us} us");
    // The server's CPU time counts as the server's own, and not as another process's.
    assert!(number_at_path(&document, "others.cores") >= 0.0, "{}", document["others"]);
    assert!(number_at_path(find_probe_series(&document, "listen.backlog"), "mean") > 0.0);
    assert!(
        number_at_path(find_probe_series(&document, &format!("net.plim{}.packets_in", server.pid())), "mean") > 0.0
    );
}

/// Copies the binary to a place where every user can run it.
fn copy_binary_for_all_users() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-e2e-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let binary = folder.join("plimsoll");
    std::fs::copy(env!("CARGO_BIN_EXE_plimsoll"), &binary).expect("copied");
    binary
}

#[test]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn a_process_of_another_user_is_observed_as_permitted() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    if cpu_time_of_processes_ns(&[1]) == 0 || std::fs::read_dir("/proc/1/fd").is_err() {
        // Without root, the test cannot start a server of another user, and observes process 1
        // instead.
        eprintln!("not root: only --pid of a foreign process is tested");
        let document = run_to_json(&["run", &url, "-n", "50", "--pid", "1"]);
        assert!(document["server"]["reason"].is_null(), "{}", document["server"]["reason"]);
        return;
    }
    let binary = copy_binary_for_all_users();
    let run = |more: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(["run", &url, "-n", "200", "--json", "--quiet"]).args(more).current_dir("/");
        command.uid(65534).gid(65534).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = wait_for_exit(command.spawn().expect("starts"));
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.json()
    };
    let unseen = run(&[]);
    let reason = unseen["server"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("(user 0)") && reason.contains("--pid"), "{reason}");
    let named = run(&["--pid", &server.pid().to_string()]);
    assert!(number_at_path(&named, "server.cpu_us_per_request") > 0.0, "CPU time is open to everybody");
    let files = find_probe_series(&named, "server.files_open");
    // Since Linux 6.2 every user can read the number of open files. On older kernels the series has
    // a gap with a reason.
    let denied = files["gap_reasons"][0].as_str().is_some_and(|r| r.contains("another user"));
    assert!(denied || files["samples"].as_u64().is_some_and(|n| n >= 1), "{files}");
    let unseen = named["server"]["unseen"][0].as_str().expect("what is not seen");
    assert!(unseen.contains("the server's own connections"), "{unseen}");
    std::fs::remove_dir_all(binary.parent().expect("a folder")).expect("removed");
}

#[test]
fn a_kernel_without_pressure_data_leaves_a_gap() {
    let server = start_baseline(1);
    let script = "mount -t tmpfs none /proc/pressure && exec \"$@\"";
    let mut command = Command::new("unshare");
    // In a user namespace, mounting does not need root.
    let flags = if std::fs::read_dir("/proc/1/fd").is_ok() { "-m" } else { "-rm" };
    command.args([flags, "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_plimsoll")]);
    command.args(["run", &format!("{}/healthz", server.url), "-n", "50", "--json", "--quiet"]);
    let done = wait_for_exit(
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts"),
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    let pressure = find_probe_series(&document, "host.pressure_cpu_some");
    assert_eq!(
        (&pressure["samples"], &pressure["gap_reasons"][0]),
        (&0.into(), &"/proc/pressure/cpu is not there".into())
    );
    assert!(number_at_path(&document, "server.cpu_us_per_request") > 0.0);
}

#[test]
fn server_metrics_are_recorded() {
    let server = start_python_server();
    let path = &path_in_new_folder("metrics", "run.plimsoll");
    let url = format!("{}/", server.url);
    let document = run_to_json(&["run", &url, "--rate", "20", "-d", "2500ms", "--metrics", &url, "-o", path]);
    let goroutines = find_probe_series(&document, "metrics.go_goroutines");
    assert_eq!((&goroutines["max"], &goroutines["unit"]), (&7.0.into(), &"".into()));
    assert!(goroutines["samples"].as_u64().is_some_and(|n| (2..=4).contains(&n)), "once a second: {goroutines}");
    let waits = find_probe_series(&document, "metrics.pool_waits_total");
    assert!(waits["mean"].as_f64().is_some_and(|rate| (5.0..15.0).contains(&rate)), "10 a second: {waits}");
    let csv = plimsoll(&["show", "--probes", path]);
    let rows: Vec<&str> = csv.stdout.lines().collect();
    assert_eq!(rows[0], "trial,series,unit,at_s,value");
    assert!(rows.iter().any(|row| row.starts_with("0,\"server.cpu\",ns,")), "{}", csv.stdout);
}

#[test]
fn find_reports_the_request_cost_at_the_line() {
    let server = start_baseline(1);
    let path = &path_in_new_folder("find", "find.plimsoll");
    let document =
        run_to_json(&["find", &format!("{}/burn/2000", server.url), "--budget", "8s", "--max-rate", "100", "-o", path]);
    let cost_us = number_at_path(&document, "server.cpu_us_per_request");
    // A request burns 2 ms of CPU time; HTTP and a shared machine add little.
    assert!((1990.0..3000.0).contains(&cost_us), "{cost_us} us");
    assert!(document["server"]["from"].as_str().is_some_and(|from| from.contains("trial")), "{}", document["server"]);
    assert_eq!(document["server"]["pid"], server.pid());
    let text = plimsoll(&["show", path]).stdout;
    assert!(text.contains("CPU a request = ") && text.contains("requests/s a core"), "{text}");
    assert_eq!(plimsoll(&["show", "--json", path]).json()["server"], document["server"]);
}

#[test]
fn an_unobservable_server_is_one_sentence() {
    let server = start_baseline(1);
    for (arguments, expect) in [
        (&["--pid", "4194304"][..], "there is no such process"),
        (&["--process", "no-such-server"], "no process has this name"),
        (&["--pid", "1", "--process", "x"], "exclude each other"),
        (&["--cgroup", "/no/such/group"], "there is no folder"),
        (&["--metrics", "http://127.0.0.1:1/metrics"], "accepts no connection"),
        (&["--metrics", &format!("{}/healthz", server.url)], "neither Prometheus text"),
        (&["--metrics", &format!("{}/status/404", server.url)], "has status 404"),
        (&["--no-probes", "--pid", "1"], "--no-probes"),
    ] {
        let done = plimsoll(&[&["run", &server.url, "-n", "5"], arguments].concat());
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.stdout, done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(expect), "{arguments:?}: {}", done.stderr);
    }
    let unwatched = run_to_json(&["run", &server.url, "-n", "20", "--no-probes"]);
    let watched = &unwatched["server"];
    assert_eq!((&watched["pid"], &watched["reason"]), (&Value::Null, &"no probe ran".into()));
    assert_eq!(watched["probes"], Value::Array(vec![]));
}

#[test]
fn a_server_exit_leaves_gaps_and_no_failure() {
    let mut server = start_baseline(1);
    let pid = server.pid().to_string();
    let child = command(&["run", &format!("{}/healthz", server.url), "--rate", "50", "-d", "2500ms", "--pid", &pid])
        .args(["--json", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    std::thread::sleep(Duration::from_millis(1000));
    signal(server.pid(), "KILL");
    server.end();
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    let cpu = find_probe_series(&document, "server.cpu");
    assert!(cpu["gaps"].as_u64().is_some_and(|n| n >= 1), "{cpu}");
    assert!(cpu["gap_reasons"][0].as_str().is_some_and(|r| r.contains("has ended")), "{cpu}");
}
