//! Tests interference: busy processes must be named, and the CPU accounting must agree with the
//! kernel's, whatever else runs.
//!
//! Test machines may be busy, so all assertions must be true whatever other processes run.

use crate::test_support::{
    Server, number_at_path, path_in_new_folder, plimsoll, run_to_json, start_baseline, start_server_process,
};
use plimsoll_sys::probe::host::parse_stat;
use plimsoll_sys::probe::process::{CpuClock, ticks_per_second};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// Starts a process that uses a core as much as it can.
fn start_cpu_burner() -> Child {
    let loop_ = "import time\nend = time.time() + 60\nwhile time.time() < end: pass";
    Command::new("python3").args(["-c", loop_]).stdin(Stdio::null()).spawn().expect("python3")
}

/// Processes that keep all CPU cores busy. Dropping this value ends the processes.
struct CpuBurners(Vec<Child>);

impl CpuBurners {
    /// Starts two CPU-bound processes for each core.
    fn start() -> CpuBurners {
        CpuBurners((0..2 * plimsoll_sys::process::allowed_core_count()).map(|_| start_cpu_burner()).collect())
    }
}

impl Drop for CpuBurners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the CPU time of all cores of the machine so far, in seconds.
fn machine_cpu_time_s() -> f64 {
    let stat = parse_stat(&std::fs::read("/proc/stat").expect("reads")).expect("parses").cpu;
    (stat.user + stat.nice + stat.system + stat.irq + stat.softirq) as f64 / ticks_per_second() as f64
}

fn warning_texts(document: &Value) -> Vec<&str> {
    document["warnings"].as_array().expect("warnings").iter().filter_map(Value::as_str).collect()
}

#[test]
fn cpu_burners_are_named_above_the_figures() {
    let server = start_baseline(1);
    let file = &path_in_new_folder("burnt", "run.plimsoll");
    let burners = CpuBurners::start();
    let document = run_to_json(&["run", &format!("{}/healthz", server.url), "-c", "2", "-d", "1500ms", "-o", file]);
    drop(burners);
    assert_eq!(document["disturbed"], true, "{:#}", document["others"]);
    assert!(number_at_path(&document, "others.cores") > 0.5, "{:#}", document["others"]);
    assert!(document["others"]["reason"].as_str().is_some_and(|reason| reason.starts_with("other processes used ")));
    let first = warning_texts(&document)[0];
    assert!(first.contains("the machine was disturbed: other processes used "), "{first}");
    // The run file gives the same result in every format.
    let shown: Value = plimsoll(&["show", "--json", file]).json();
    for field in ["disturbed", "others", "warnings"] {
        assert_eq!(shown[field], document[field], "{field}");
    }
    let text = plimsoll(&["show", "-v", file]).stdout;
    assert!(text.starts_with("warning: the machine was disturbed: other processes used "), "{text}");
    let markdown = plimsoll(&["report", file, "--format", "md"]).stdout;
    assert!(markdown.contains("the machine was disturbed: other processes used "), "{markdown}");
}

/// Checks that the CPU time attributed to other processes is at most the CPU time that the kernel's
/// accounts leave for them. On a quiet machine, plimsoll must report no process as interference.
#[test]
fn cpu_use_of_server_and_plimsoll_is_no_interference() {
    let server = start_baseline(2);
    let clock = CpuClock::for_process(server.pid()).expect("a clock");
    let before = (machine_cpu_time_s(), clock.read_ns().expect("reads"));
    let document = run_to_json(&["run", &format!("{}/healthz", server.url), "-c", "8", "-d", "4s"]);
    let whole_s = machine_cpu_time_s() - before.0;
    let server_s = (clock.read_ns().expect("reads") - before.1) as f64 / 1e9;
    let others_s = number_at_path(&document, "others.cores") * 4.0;
    // The CPU time beyond the server's belongs to plimsoll, to other processes, and to the test
    // itself.
    let left_s = whole_s - server_s - number_at_path(&document, "generator.cpu_s");
    assert!(server_s > 0.2, "the server worked for {server_s} s");
    assert!(others_s <= left_s + 0.1, "others are said to have used {others_s:.2} s, but {left_s:.2} s are left");
    if left_s < 0.2 {
        assert_eq!(document["disturbed"], false, "{:#}, {left_s:.2} s left", document["others"]);
        assert!(document["others"]["reason"].is_null());
    }
}

#[test]
fn unobserved_processes_are_not_blamed() {
    let server = start_baseline(1);
    let document = run_to_json(&["run", &format!("{}/healthz", server.url), "-c", "1", "-d", "300ms", "--no-probes"]);
    assert_eq!((&document["disturbed"], &document["others"]["cores"]), (&false.into(), &Value::Null));
    let reason = document["others"]["reason"].as_str().expect("a reason");
    assert_eq!(reason, "the CPU use of other processes is not known: no probe ran");
}

/// The Python source of a server that calls another process, its database, for each request.
const SERVER_WITH_DATABASE_SOURCE: &str = "
import ctypes, http.server, os, socket, sys, tempfile, threading, time
over, folder = sys.argv[1], tempfile.mkdtemp()
path = folder + '/s'
if over == 'elsewhere':
    # What is opened now belongs to a network of its own; the server's own sockets do not.
    here = os.open('/proc/self/ns/net', os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000): sys.exit('no network of its own')
listener = socket.socket(socket.AF_INET if over in ('tcp', 'quota') else socket.AF_UNIX)
# A port, a name of the kernel's own choice, or a path, which leads into other networks too.
port = ('127.0.0.1', 0)
listener.bind({'tcp': port, 'quota': port, 'unix': '', 'elsewhere': path}[over])
listener.listen()
if os.fork() == 0:
    # In a family of its own, as a database is.
    os.setsid()
    if os.fork() > 0: os._exit(0)
    def write(file, text):
        with open(file, 'w') as it: it.write(text)
    leave = lambda: None
    if over == 'quota':
        root, file, limit = sys.argv[2:]
        group = tempfile.mkdtemp(dir=root)
        def leave():
            write(root + '/cgroup.procs', str(os.getpid()))
            os.rmdir(group)
        write(group + '/' + file, limit)
        write(group + '/cgroup.procs', str(os.getpid()))
    listener.settimeout(30)
    try:
        taken, _ = listener.accept()
        taken.settimeout(30)
    except OSError:
        leave()
        os._exit(1)
    while True:
        try: more = taken.recv(1)
        except OSError: more = b''
        if not more:
            leave()
            os._exit(0)
        end = time.process_time() + 0.02
        while time.process_time() < end: pass
        taken.sendall(b'x')
if over == 'elsewhere' and libc.setns(here, 0x40000000): sys.exit('no way back')
name = listener.getsockname()
database, lock = socket.socket(listener.family), threading.Lock()
database.connect(name)
listener.close()
if over == 'elsewhere': os.unlink(path)
os.rmdir(folder)
os.wait()
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        with lock:
            database.sendall(b'x')
            database.recv(1)
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print('http://127.0.0.1:%d' % s.server_address[1], flush=True)
s.serve_forever()
";

#[test]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn the_database_of_the_server_is_a_dependency() {
    let is_root = std::fs::read_dir("/proc/1/fd").is_ok();
    if !is_root {
        eprintln!("not root: a database in a network of its own is not tried");
    }
    for over in ["tcp", "unix", "elsewhere"].into_iter().filter(|over| is_root || *over != "elsewhere") {
        let server: Server =
            start_server_process(Command::new("python3").args(["-c", SERVER_WITH_DATABASE_SOURCE, over]), "python3");
        let is_queue = |name: &str| name.starts_with("peer.") && name.ends_with(".queued");
        let tells_queues = |document: &Value| {
            let probes = document["server"]["probes"].as_array().expect("probes");
            probes.iter().any(|probe| probe["name"].as_str().is_some_and(is_queue))
        };
        // Ten requests a second keep the database busy for a fifth of the time.
        let mut document = run_to_json(&["run", &server.url, "--rate", "10", "-d", "3s"]);
        // Readings of connections may use only 1/2000 of a core, so on a slow machine the second
        // reading comes after about ten seconds. plimsoll finds connections in other network
        // namespaces only after the first reading, so a short run may miss them.
        for _ in 0..2 {
            if !tells_queues(&document) {
                document = run_to_json(&["run", &server.url, "--rate", "10", "-d", "15s"]);
            }
        }
        let probes = document["server"]["probes"].as_array().expect("probes");
        let downstream = probes.iter().find(|probe| probe["name"] == "downstream.cpu");
        assert!(downstream.is_some(), "{over}: {:?}", probes.iter().map(|p| &p["name"]).collect::<Vec<_>>());
        // Each response takes 20 ms of the database's CPU time.
        let cores = number_at_path(&document, "ledger.succeeded") * 0.02 / number_at_path(&document, "duration_s");
        let seen = number_at_path(downstream.expect("there"), "mean");
        assert!(cores > 0.05 && seen > 0.5 * cores, "{over}: {seen:.2} cores seen, of {cores:.2}");
        // plimsoll reads the accept queue in the network namespace in which the database listens.
        // If the database is in another network namespace, the readings of the accept queue begin
        // with the third reading of the connections. On a slow machine, a run may have fewer than
        // three readings of the connections; the test then accepts a missing accept queue.
        let is_look = |name: &str| name.starts_with("peer.") && name.ends_with(".connections");
        let looks = probes.iter().find(|probe| probe["name"].as_str().is_some_and(is_look));
        let few = over == "elsewhere" && looks.is_none_or(|looks| number_at_path(looks, "samples") < 3.0);
        assert!(tells_queues(&document) || few, "{over}: {probes:#?}");
    }
}

/// Returns the folder where control groups with a CPU quota can be created. Also returns the file
/// name and the text that set a quota of a fifth of a core.
fn cgroup_folder_with_quota() -> Option<[&'static str; 3]> {
    [["/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"], ["/sys/fs/cgroup", "cpu.max", "20000 100000"]]
        .into_iter()
        .find(|[root, file, _]| {
            let tried = format!("{root}/tried-{}", std::process::id());
            let made = std::fs::create_dir(&tried).is_ok();
            let has_quota = std::fs::exists(format!("{tried}/{file}")).unwrap_or(false);
            made && std::fs::remove_dir(&tried).is_ok() && has_quota
        })
}

#[test]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn the_cpu_quota_of_a_server_database_is_read() {
    let Some(room) = cgroup_folder_with_quota() else {
        eprintln!("no control group can be made here: a database with a quota is not tried");
        return;
    };
    let server: Server = start_server_process(
        Command::new("python3").args(["-c", SERVER_WITH_DATABASE_SOURCE, "quota"]).args(room),
        "python3",
    );
    let document = run_to_json(&["run", &server.url, "-c", "1", "-d", "3s"]);
    let probes = document["server"]["probes"].as_array().expect("probes");
    let of = |start: &str| {
        let is_it = |probe: &&Value| probe["name"].as_str().is_some_and(|name| name.starts_with(start));
        probes.iter().find(is_it).unwrap_or_else(|| panic!("no {start}: {probes:#?}"))
    };
    assert!((number_at_path(of("downstream.quota."), "mean") - 0.2).abs() < 1e-9);
    // The database would use a whole core, so it is throttled in each period in which it gets its
    // fifth of a core. On a busy machine, the database often gets less than its quota, and is then
    // not throttled.
    let per_second = |start: &str| number_at_path(of(start), "mean");
    let (periods, held_back) = (per_second("downstream.periods."), per_second("downstream.periods_throttled."));
    assert!(periods > 5.0 && held_back > 0.1 * periods, "{held_back} of {periods}");
}

/// The Python source of a server that starts its data store as its own child process. The server
/// connects to the store before it listens for clients.
const SERVER_WITH_CHILD_STORE_SOURCE: &str = "
import http.server, socket, subprocess, sys, threading
STORE = '''
import os, socket, time
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
listener.settimeout(30)
print(listener.getsockname()[1], flush=True)
taken, _ = listener.accept()
taken.settimeout(30)
while taken.recv(1):
    end = time.process_time() + 0.02
    while time.process_time() < end: pass
    taken.sendall(b'x')
'''
store = subprocess.Popen([sys.executable, '-c', STORE], stdout=subprocess.PIPE)
database, lock = socket.create_connection(('127.0.0.1', int(store.stdout.readline()))), threading.Lock()
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        with lock:
            database.sendall(b'x')
            database.recv(1)
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print('http://127.0.0.1:%d' % s.server_address[1], flush=True)
s.serve_forever()
";

#[test]
fn a_store_started_by_the_server_is_its_dependency() {
    let server: Server =
        start_server_process(Command::new("python3").args(["-c", SERVER_WITH_CHILD_STORE_SOURCE]), "python3");
    let document = run_to_json(&["run", &server.url, "--rate", "10", "-d", "2s"]);
    let probes = document["server"]["probes"].as_array().expect("probes");
    let probe = |name: &str| probes.iter().find(|probe| probe["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let cores = number_at_path(&document, "ledger.succeeded") * 0.02 / number_at_path(&document, "duration_s");
    let (behind, own) = (number_at_path(probe("downstream.cpu"), "mean"), number_at_path(probe("server.cpu"), "mean"));
    assert!(cores > 0.05 && behind > 0.5 * cores, "{behind:.2} cores seen, of {cores:.2}");
    assert!(own < 0.5 * behind, "the server's own: {own:.2} cores, the store's: {behind:.2}");
}

#[test]
fn a_disturbed_comparison_says_so_and_raises_no_alarm() {
    let server = start_baseline(1);
    let file = &path_in_new_folder("spoilt", "prove.plimsoll");
    let url = format!("{}/healthz", server.url);
    let burners = CpuBurners::start();
    let common = ["prove", &url, &url, "-c", "2", "--for", "400ms", "--budget", "4s"];
    let document = run_to_json(&[&common[..], &["-o", file]].concat());
    drop(burners);
    // Two copies of one build are never better or worse, however busy the machine is.
    assert_eq!(document["disturbed"], true, "{document:#}");
    assert!(!["better", "worse"].contains(&document["verdict"].as_str().expect("a verdict")), "{document:#}");
    assert!(document["others"]["reason"].to_string().contains("other processes used "), "{document:#}");
    let shown = plimsoll(&["show", "--json", file]).json();
    for field in ["disturbed", "others", "verdict", "blocks_void"] {
        assert_eq!(shown[field], document[field], "{field}");
    }
}
