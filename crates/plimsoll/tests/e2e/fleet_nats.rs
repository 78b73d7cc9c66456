//! Tests loads of agents on a real NATS bus. The tests kill agents, coordinators and the bus during
//! loads. Each interval (the measurements of 100 ms) that an agent finished must count exactly once
//! in the result. The tests need the program `nats-server`, which scripts/needs installs.

use crate::test_support::{
    CommandOutcome, assert_ledger_closes, command, create_new_folder, number_at_path, plimsoll, signal, start_baseline,
    wait_for_exit,
};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The NATS keys (nkeys) of a coordinator and of two agents. Each key pair is a seed and a public
/// key.
const COORDINATOR_NKEY_PAIR: [&str; 2] = [
    "SUAICXSMW2BMDXE3F2W2XEIVZBRIED7JCLNCAGOJZAAN7ZUEI32VPBOAXU",
    "UD4W2XQKGNOWJ3INHOIWH4VIDXT4PDR3XPCS5JQ7IDZ5COGWGGSFOI2P",
];
const AGENT_NKEY_PAIRS: [[&str; 2]; 2] = [
    [
        "SUAEZJPOFQ57VIAB37EECN5IOMZ4N37CTJN4J7T4755LRJUAB7YZINML6M",
        "UDP32HCHMKAJ2KQLQO3KPMCYF7WL4U25SPTW24PIQDZZIYRQMUF4ZENN",
    ],
    [
        "SUAFZ2WUDCFWZLY7W7IHIRPKSNRXTELB5ZQNHE2Z4C53I6JX755CYI52PA",
        "UDGX7JHJIRIR7KXZL2WRBEELAIGPZGRASMR2H5LDFKUIBZXGJWUY2NZB",
    ],
];

/// A `nats-server` on a free port. Dropping this value ends the server.
struct NatsServer {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl NatsServer {
    /// Starts the server with the further configuration lines `more`. Returns `None` and prints a
    /// message if there is no `nats-server`.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn start(more: &str) -> Option<NatsServer> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!(
                "SKIPPED: no nats-server on this machine: fleets on a bus are not tested (scripts/needs nats-server)"
            );
            return None;
        }
        let folder = create_new_folder("nats");
        let child = NatsServer::spawn(&folder, "127.0.0.1:-1", more);
        let mut nats = NatsServer { child, folder, url: String::new() };
        nats.url = nats.wait_for_nats_url();
        Some(nats)
    }

    /// Starts a NATS server with JetStream, which stores the agents' measurements.
    fn start_with_jetstream() -> Option<NatsServer> {
        NatsServer::start("jetstream { store_dir: \"store\", sync_interval: always }")
    }

    fn spawn(folder: &Path, listen: &str, more: &str) -> Child {
        let config = format!("listen: \"{listen}\"\nports_file_dir: \"{}\"\n{more}\n", folder.display());
        fs::write(folder.join("nats.conf"), config).expect("written");
        let mut command = Command::new("nats-server");
        command.args(["-c", "nats.conf"]).current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nats-server starts")
    }

    fn wait_for_nats_url(&self) -> String {
        let ports = self.folder.join(format!("nats-server_{}.ports", self.child.id()));
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let document = fs::read_to_string(&ports).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
            if let Some(url) = document.and_then(|document| document["nats"][0].as_str().map(str::to_owned)) {
                return url;
            }
            assert!(Instant::now() < deadline, "nats-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server and starts it again on the same port after the time `away`.
    fn restart_nats_server(&mut self, away: Duration) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ends");
        std::thread::sleep(away);
        let listen = self.url.trim_start_matches("nats://").to_owned();
        let more = "jetstream { store_dir: \"store\", sync_interval: always }";
        self.child = NatsServer::spawn(&self.folder, &listen, more);
        assert_eq!(self.wait_for_nats_url(), self.url);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent in its own process. Dropping this value ends the agent.
struct JoinedAgent {
    child: Child,
    spool: PathBuf,
}

impl JoinedAgent {
    /// Starts an agent that is permitted to send load to this machine, and waits until the agent
    /// has joined the bus.
    fn start_and_join_bus(url: &str, name: &str, more: &[&str]) -> JoinedAgent {
        JoinedAgent::start_with_spool_folder(url, name, create_new_folder("spool"), more)
    }

    fn start_with_spool_folder(url: &str, name: &str, spool: PathBuf, more: &[&str]) -> JoinedAgent {
        let place = spool.to_str().expect("text").to_owned();
        let words = ["agent", "--join", url, "--name", name, "--spool", &place];
        let allow: &[&str] = if more.contains(&"--allow") { &[] } else { &["--allow", "127.0.0.1"] };
        JoinedAgent::start(command(&[&words[..], allow, more].concat()), name, spool)
    }

    /// Starts an agent whose folder of stored measurements (spool) is a small file system. Returns
    /// `None` if this user may not mount a file system.
    fn join_on_small_disk(url: &str, name: &str) -> Option<JoinedAgent> {
        let mut can = Command::new("unshare");
        can.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs \"$0\""]).arg(create_new_folder("mounted"));
        if !can.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return None;
        }
        let spool = create_new_folder("small-spool");
        let place = spool.to_str().expect("text").to_owned();
        let mounted = "mount -t tmpfs -o size=64k tmpfs \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", mounted, &place, env!("CARGO_BIN_EXE_plimsoll"), "agent", "--join", url]);
        command.args(["--name", name, "--spool", &place, "--allow", "127.0.0.1"]);
        command.current_dir(create_new_folder("work")).stdin(Stdio::null()).stdout(Stdio::null());
        let mut agent = JoinedAgent::start(command, name, spool);
        // The test process reads the agent's mounted file system through /proc.
        agent.spool = PathBuf::from(format!("/proc/{}/root{place}", agent.child.id()));
        Some(agent)
    }

    fn start(mut command: Command, name: &str, spool: PathBuf) -> JoinedAgent {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("text");
        assert!(line.contains(&format!("agent {name} has joined the bus")), "{line}");
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        JoinedAgent { child, spool }
    }

    /// Returns the number of files with intervals (measurements of 100 ms each) that no coordinator
    /// has recorded yet.
    fn spool_file_count(&self) -> usize {
        let is_spool = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "spool");
        fs::read_dir(&self.spool).expect("a folder").flatten().filter(is_spool).count()
    }
}

impl Drop for JoinedAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_plimsoll_with_environment(words: &[&str], environment: &[(&str, &str)]) -> Child {
    let mut command = command(words);
    command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

fn result_agents(document: &Value) -> &Vec<Value> {
    document["agents"].as_array().unwrap_or_else(|| panic!("no agents in {document:#}"))
}

/// Returns the name of the run that a coordinator stored on the bus.
fn name_of_stored_run(done: &CommandOutcome) -> String {
    let said = done.stderr.replace("\n  ", " ");
    let run = said.split("plimsoll fleet fetch ").nth(1).and_then(|rest| rest.split_whitespace().nth(1));
    run.unwrap_or_else(|| panic!("no run is stored: {said}")).to_owned()
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_load_over_a_bus_is_fetched_as_one_load() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let server = start_baseline(1);
    let url = format!("{}/delay/20", server.url);
    let joined = ["a1", "a2", "a3"].map(|name| JoinedAgent::start_and_join_bus(&nats.url, name, &[]));
    let folder = create_new_folder("bus-run");
    let path = folder.join("run.plimsoll").to_str().expect("text").to_owned();
    for (load, choice) in [(&["--rate", "600"][..], "3"), (&["-c", "9"], "a3,a1,a2")] {
        let words =
            ["run", &url, "--fleet", &nats.url, "--agents", choice, "-d", "2s", "--spin=off", "-o", &path, "--json"];
        let done = wait_for_exit(start_plimsoll_with_environment(&[&words[..], load].concat(), &[]));
        assert_eq!(done.code, 0, "{}", done.stderr);
        let document = done.json();
        assert_ledger_closes(&document, choice);
        let names: Vec<&str> = result_agents(&document).iter().filter_map(|agent| agent["name"].as_str()).collect();
        assert_eq!(names, ["a1", "a2", "a3"]);
        for agent in result_agents(&document) {
            assert!(agent["lost"].is_null() && number_at_path(agent, "scheduled") > 100.0, "{agent:#}");
            assert!(
                number_at_path(agent, "clock_error_ns_max") < 20e6 && number_at_path(agent, "intervals") >= 20.0,
                "{agent:#}"
            );
        }
        if load[0] == "--rate" {
            assert!(
                result_agents(&document).iter().all(|agent| number_at_path(agent, "scheduled") == 400.0),
                "{document:#}"
            );
        }
        // Any machine can fetch the run file from the bus, byte for byte as the coordinator wrote
        // it.
        let fetched = folder.join("fetched.plimsoll").to_str().expect("text").to_owned();
        let done = plimsoll(&["fleet", "fetch", &nats.url, &name_of_stored_run(&done), "-o", &fetched]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{}", done.stdout);
        assert!(fs::read(&fetched).expect("fetched") == fs::read(&path).expect("written"), "other bytes");
    }
    wait_for("intervals stay in a spool", || joined.iter().all(|agent| agent.spool_file_count() == 0));
    let done = plimsoll(&["fleet", "status", &nats.url]);
    assert!(done.code == 0 && done.stdout.matches(env!("CARGO_PKG_VERSION")).count() == 3, "{}", done.stdout);
}

#[test]
fn a_bus_that_is_killed_and_restarted_loses_no_interval() {
    let Some(mut nats) = NatsServer::start_with_jetstream() else { return };
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let joined = ["a1", "a2"].map(|name| JoinedAgent::start_and_join_bus(&nats.url, name, &[]));
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "2", "--rate", "400", "-d", "8s", "--json", "--quiet"];
    let child = start_plimsoll_with_environment(&words, &[]);
    std::thread::sleep(Duration::from_secs(4));
    nats.restart_nats_server(Duration::from_millis(300));
    std::thread::sleep(Duration::from_secs(2));
    nats.restart_nats_server(Duration::from_millis(1_500));
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    assert_ledger_closes(&document, "a bus was killed");
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 3_200.0, "{document:#}");
    for agent in result_agents(&document) {
        assert!(agent["lost"].is_null() && number_at_path(agent, "unsent") == 0.0, "{agent:#}");
        assert_eq!(number_at_path(agent, "scheduled"), 1_600.0, "{agent:#}");
    }
    wait_for("intervals stay in a spool", || joined.iter().all(|agent| agent.spool_file_count() == 0));
}

#[test]
fn finished_agent_work_survives_a_killed_coordinator() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let joined = ["a1", "a2"].map(|name| JoinedAgent::start_and_join_bus(&nats.url, name, &[]));
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "2", "--rate", "200", "-d", "5s", "--json", "--quiet"];
    let mut child = start_plimsoll_with_environment(&words, &[]);
    wait_for("no load begins", || joined.iter().all(|agent| agent.spool_file_count() == 1));
    std::thread::sleep(Duration::from_secs(1));
    signal(child.id(), "KILL");
    let _ = child.wait();
    // After the coordinator was killed, the agents finish their shares of the load without a
    // coordinator.
    let run = |agent: &JoinedAgent| {
        let entries = fs::read_dir(&agent.spool).expect("a folder").flatten().map(|entry| entry.path());
        let spool = entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "spool"));
        spool.and_then(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned()))
    };
    let run = run(&joined[0]).expect("a spool");
    std::thread::sleep(Duration::from_secs(8));
    let fetched = create_new_folder("recovered").join("run.plimsoll").to_str().expect("text").to_owned();
    let done = plimsoll(&["fleet", "fetch", &nats.url, &run, "-o", &fetched]);
    assert!(done.code == 0 && done.stdout.contains("started the run was lost"), "{} {}", done.stdout, done.stderr);
    assert!(!done.stdout.contains("The bus has no record"), "{}", done.stdout);
    let shown = plimsoll(&["show", "--json", &fetched]);
    let document = shown.json();
    assert_ledger_closes(&document, "recovered");
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 1_000.0, "{document:#}");
    assert!(result_agents(&document).iter().all(|agent| agent["lost"].is_null()), "{document:#}");
    // The agents delete recorded intervals (measurements of 100 ms each) from their disks, and
    // accept the next run.
    wait_for("intervals stay in a spool", || joined.iter().all(|agent| agent.spool_file_count() == 0));
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "2", "--rate", "200", "-d", "1s", "--json", "--quiet"];
    let done = wait_for_exit(start_plimsoll_with_environment(&words, &[]));
    assert!(done.code == 0 && number_at_path(&done.json(), "ledger.scheduled") == 200.0, "{}", done.stderr);
}

#[test]
fn a_killed_agent_is_named_and_its_successor_delivers_its_results() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let first = JoinedAgent::start_and_join_bus(&nats.url, "a1", &[]);
    let mut second = JoinedAgent::start_and_join_bus(&nats.url, "a2", &[]);
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "2", "--rate", "400", "-d", "6s", "--json", "--quiet"];
    let child = start_plimsoll_with_environment(&words, &[]);
    wait_for("no load begins", || first.spool_file_count() == 1 && second.spool_file_count() == 1);
    std::thread::sleep(Duration::from_secs(2));
    let spool = second.spool.clone();
    second.child.kill().expect("killed");
    second.child.wait().expect("ends");
    let successor = JoinedAgent::start_with_spool_folder(&nats.url, "a2", spool, &[]);
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    assert_ledger_closes(&document, "an agent was killed");
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 2_400.0, "{document:#}");
    let [kept, lost] = result_agents(&document).as_slice() else { panic!("{document:#}") };
    assert!(kept["lost"].is_null() && number_at_path(kept, "unsent") == 0.0, "{document:#}");
    assert_eq!(lost["lost"], "the agent sent nothing for 4 s", "{document:#}");
    let (unsent, succeeded) = (number_at_path(lost, "unsent"), number_at_path(lost, "succeeded"));
    assert!(unsent > 200.0 && succeeded > 200.0 && unsent + succeeded <= 1_200.0, "{lost:#}");
    // A new agent that replaces the killed agent works like any other agent.
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "a2", "--rate", "100", "-d", "1s", "--json", "--quiet"];
    let done = wait_for_exit(start_plimsoll_with_environment(&words, &[]));
    assert!(done.code == 0 && number_at_path(&done.json(), "ledger.scheduled") == 100.0, "{}", done.stderr);
    drop(successor);
}

/// Starts a server that counts its responses, with one thread for each connection.
fn counting_server() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, count) = (listener.local_addr().expect("bound"), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (mut stream, counted) = (stream, Arc::clone(&counted));
            std::thread::spawn(move || {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
                while let Ok(read @ 1..) = stream.read(&mut piece) {
                    bytes.extend_from_slice(&piece[..read]);
                    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                        bytes.drain(..end + 4);
                        counted.fetch_add(1, Ordering::Relaxed);
                        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (format!("http://{address}/"), count)
}

#[test]
fn a_full_spool_disk_ends_the_agent_load_without_losing_intervals() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let (url, responses) = counting_server();
    let first = JoinedAgent::start_and_join_bus(&nats.url, "a1", &[]);
    let Some(full) = JoinedAgent::join_on_small_disk(&nats.url, "a2") else {
        eprintln!("SKIPPED: no mount namespace of one's own (unshare --mount, as root): full disks are not tested");
        return;
    };
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "2", "--rate", "400", "-d", "10s", "--no-preflight"];
    let child = start_plimsoll_with_environment(&[&words[..], &["--json", "--quiet"]].concat(), &[]);
    wait_for("no load begins", || first.spool_file_count() == 1 && full.spool_file_count() == 1);
    std::thread::sleep(Duration::from_secs(1));
    // The coordinator is paused (SIGSTOP), so the agents' stored measurements (the spool) grow
    // while another file fills the disk.
    signal(child.id(), "STOP");
    let ballast = fs::File::create(full.spool.join("ballast")).and_then(|mut file| {
        while file.write(&[7; 1_024])? > 0 {}
        Ok(())
    });
    assert!(ballast.is_err_and(|error| error.kind() == ErrorKind::StorageFull), "the disk has no end");
    std::thread::sleep(Duration::from_millis(2_500));
    signal(child.id(), "CONT");
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    assert_ledger_closes(&document, "a disk was full");
    assert_eq!(number_at_path(&document, "ledger.scheduled"), 4_000.0, "{document:#}");
    let [kept, lost] = result_agents(&document).as_slice() else { panic!("{document:#}") };
    assert!(kept["lost"].is_null() && number_at_path(kept, "unsent") == 0.0, "{document:#}");
    let why = "the agent's spool (its stored measurements) cannot be written: no space left on device";
    assert!(lost["lost"].as_str().is_some_and(|said| said.to_lowercase() == why), "{document:#}");
    assert!(number_at_path(lost, "unsent") > 200.0 && number_at_path(lost, "succeeded") > 100.0, "{document:#}");
    let said = done.stderr.replace("\n  ", " ").to_lowercase();
    assert!(said.contains(&format!("agent a2 was lost: {why}")), "{}", done.stderr);
    // The result contains all of the server's responses, except responses in flight at the end and
    // responses to preflight requests.
    let (succeeded, in_flight) =
        (number_at_path(&document, "ledger.succeeded"), number_at_path(&document, "ledger.in_flight"));
    let beyond = responses.load(Ordering::Relaxed) as f64 - succeeded;
    assert!((0.0..=in_flight + 2.0).contains(&beyond), "{beyond} more than the result has: {document:#}");
    // With free space again, the agent accepts the next run.
    fs::remove_file(full.spool.join("ballast")).expect("removed");
    let words = ["run", &url, "--fleet", &nats.url, "--agents", "a1,a2", "--weights", "1,3", "--rate", "200"];
    let done =
        wait_for_exit(start_plimsoll_with_environment(&[&words[..], &["-d", "1s", "--json", "--quiet"]].concat(), &[]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let scheduled: Vec<f64> =
        result_agents(&done.json()).iter().map(|agent| number_at_path(agent, "scheduled")).collect();
    assert_eq!(scheduled, [50.0, 150.0], "{}", done.stderr);
}

#[test]
fn agents_of_a_bus_are_calibrated() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let agent = JoinedAgent::start_and_join_bus(&nats.url, "a1", &[]);
    let done = plimsoll(&["fleet", "calibrate", &nats.url, "--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    let [only] = result_agents(&document).as_slice() else { panic!("{document:#}") };
    assert!(
        only["name"] == "a1" && number_at_path(only, "highest_rps") > 100.0 && number_at_path(only, "share") == 1.0,
        "{only:#}"
    );
    // After a calibration, the agent accepts the next coordinator.
    let done = plimsoll(&["fleet", "status", &nats.url]);
    assert!(done.code == 0 && done.stdout.contains("a1"), "{} {}", done.stdout, done.stderr);
    drop(agent);
}

#[test]
fn bus_errors_are_one_sentence_with_a_remedy() {
    let Some(nats) = NatsServer::start_with_jetstream() else { return };
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let run = |words: &[&str]| {
        wait_for_exit(start_plimsoll_with_environment(&[&["run", &url, "-d", "1s"], words].concat(), &[]))
    };
    let bus = nats.url.as_str();
    let refused = |done: CommandOutcome, part: &str| {
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{part}: {}", done.stderr);
        assert!(done.stderr.replace("\n  ", " ").contains(part), "{part}: {}", done.stderr);
    };
    refused(run(&["--fleet", bus, "--wait", "300ms"]), "no agent has joined the bus at nats://127.0.0.1:");
    let _first = JoinedAgent::start_and_join_bus(bus, "a1", &[]);
    let _shy = JoinedAgent::start_and_join_bus(bus, "shy", &["--allow", "10.0.0.0/8"]);
    for (words, part) in [
        (&["--fleet", "nats://127.0.0.1:1"][..], "no bus responds at nats://127.0.0.1:1 (connection refused)"),
        (&["--fleet", "nats://ann:secret@127.0.0.1:1"], "$PLIMSOLL_CREDS"),
        (&["--fleet", bus, "--agents", "3", "--wait", "500ms"], "2 of 3 agents were free"),
        (&["--fleet", bus, "--agents", "a7", "--wait", "500ms"], "agent a7 has not joined the bus"),
        (&["--fleet", bus, "--agents", "a1,a1"], "--agents: a1 is named twice"),
        (&["--fleet", bus, "--fleet-copy"], "--fleet-copy: plimsoll cannot be copied over a bus"),
        (&["--fleet", "ssh://load1", "--agents", "2"], "--agents works only with a bus (--fleet nats://"),
        (&["--fleet", bus, "--agents", "shy"], "agent shy: the agent does not permit load on 127.0.0.1:"),
    ] {
        refused(run(words), part);
    }
    // A second agent with the same name ends with an error. An agent that cannot reach its bus also
    // ends with an error.
    let place = create_new_folder("spool").to_str().expect("text").to_owned();
    let second = ["agent", "--join", bus, "--name", "a1", "--spool", &place];
    refused(plimsoll(&second), "another agent with the name a1 is already on the bus");
    refused(
        plimsoll(&["agent", "--join", "nats://127.0.0.1:1", "--wait", "1ms", "--spool", &place]),
        "no bus responds",
    );
    refused(plimsoll(&["agent", "--join", bus, "--name", "a.b"]), "'a.b' is not a valid name of an agent");
    refused(plimsoll(&["fleet", "fetch", bus, "x"]), "'x' is not the name of a run");
    refused(plimsoll(&["fleet", "fetch", bus, &"0".repeat(32)]), "has no run 0000");
    // The coordinator refuses an agent that works for another coordinator.
    let child = start_plimsoll_with_environment(
        &["run", &url, "--fleet", bus, "--agents", "a1", "-c", "1", "-d", "60s", "--spin=off", "--json"],
        &[],
    );
    std::thread::sleep(Duration::from_secs(3));
    refused(run(&["--fleet", bus, "--agents", "a1", "--wait", "500ms"]), "agent a1 works for another coordinator");
    signal(child.id(), "INT");
    assert_eq!(wait_for_exit(child).code, 130);
    let bare = NatsServer::start("").expect("a server");
    refused(run(&["--fleet", &bare.url]), "cannot store messages: start nats-server with --jetstream");
}

#[test]
fn only_valid_credentials_and_keys_start_a_load() {
    let permissions = |name: &str| {
        format!(
            "publish: {{ allow: [\"pl.here.{name}\", \"pl.*.from.{name}\", \"pl.*.f.{name}\", \"pl.who\"] }}, \
             subscribe: {{ allow: [\"pl.who\", \"pl.here.{name}\", \"pl.claim.{name}\", \"pl.*.to.{name}\", \"_I.{name}.>\"] }}"
        )
    };
    let [first, second] = AGENT_NKEY_PAIRS;
    let users = format!(
        "{{ nkey: {} }}, {{ nkey: {}, permissions: {{ {} }} }}, {{ nkey: {}, permissions: {{ {} }} }}",
        COORDINATOR_NKEY_PAIR[1],
        first[1],
        permissions("a1"),
        second[1],
        permissions("a2"),
    );
    let config = format!(
        "jetstream {{ store_dir: \"store\", sync_interval: always }}\naccounts {{ FLEET {{ jetstream: enabled, users: [ {users} ] }} }}"
    );
    let Some(nats) = NatsServer::start(&config) else { return };
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let folder = create_new_folder("keys");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    };
    let (coordinator, a1, a2) =
        (file("coord.seed", COORDINATOR_NKEY_PAIR[0]), file("a1.seed", first[0]), file("a2.seed", second[0]));
    let key = folder.join("fleet.key").to_str().expect("text").to_owned();
    let made = plimsoll(&["fleet", "key", &key]);
    let public = made.stdout.trim().to_owned();
    assert!(made.code == 0 && public.starts_with("ed25519:"), "{} {}", made.stdout, made.stderr);
    let again = plimsoll(&["fleet", "key", &key]);
    assert!(again.code == 2 && again.stderr.contains("exists"), "{}", again.stderr);

    let words = ["run", &url, "--fleet", &nats.url, "--rate", "200", "-d", "1s", "--json", "--quiet", "--wait", "3s"];
    let run = |environment: &[(&str, &str)]| wait_for_exit(start_plimsoll_with_environment(&words, environment));
    let refused = |done: CommandOutcome, part: &str| {
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{part}: {}", done.stderr);
        assert!(done.stderr.replace("\n  ", " ").contains(part), "{part}: {}", done.stderr);
    };
    refused(run(&[]), "requires credentials: set $PLIMSOLL_CREDS to the path of the credentials file");
    let stranger = file("stranger.seed", "SUAB-no-seed");
    refused(run(&[("PLIMSOLL_CREDS", &stranger)]), "the bus at");
    refused(run(&[("PLIMSOLL_CREDS", "/nowhere")]), "cannot be read");
    refused(run(&[("PLIMSOLL_CREDS", &key)]), "neither an nkey seed");
    let place = folder.join("spool").to_str().expect("text").to_owned();
    let foreign = ["agent", "--join", &nats.url, "--name", "a2", "--creds", &a1, "--spool", &place];
    refused(plimsoll(&foreign), "refused an operation of plimsoll");

    let _first = JoinedAgent::start_and_join_bus(&nats.url, "a1", &["--creds", &a1, "--trust", &public]);
    let _second = JoinedAgent::start_and_join_bus(&nats.url, "a2", &["--creds", &a2, "--trust", &public]);
    // The credentials of an agent do not allow starting a load.
    refused(run(&[("PLIMSOLL_CREDS", &a1)]), "the bus at");
    // A coordinator with access to the bus, but without a signing key, cannot start a load.
    refused(run(&[("PLIMSOLL_CREDS", &coordinator)]), "the agent accepts only signed plans");
    let other = folder.join("other.key").to_str().expect("text").to_owned();
    assert_eq!(plimsoll(&["fleet", "key", &other]).code, 0);
    let with_key = |key: &str| run(&[("PLIMSOLL_CREDS", coordinator.as_str()), ("PLIMSOLL_FLEET_KEY", key)]);
    refused(with_key(&other), "the agent does not trust the key that signed");
    let done = with_key(&key);
    assert!(done.code == 0, "{}", done.stderr);
    let document = done.json();
    assert!(
        result_agents(&document).len() == 2 && number_at_path(&document, "ledger.scheduled") == 200.0,
        "{document:#}"
    );
}

#[test]
fn a_local_fleet_starts_and_leaves_nothing_behind() {
    if NatsServer::start("").is_none() {
        return;
    }
    let server = start_baseline(1);
    // Without the program `ip` in `PATH`, the agents run as plain processes, not in network
    // namespaces of their own.
    let bin = create_new_folder("bin");
    for program in ["env", "nats-server"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().expect("a shell");
        let found = String::from_utf8(found.stdout).expect("text");
        symlink(found.trim(), bin.join(program)).expect("a link");
    }
    let path = bin.to_str().expect("text");
    let mut child =
        start_plimsoll_with_environment(&["fleet", "up", "--local", "2", "--allow", "127.0.0.1"], &[("PATH", path)]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let first = lines.next().expect("a line");
    assert!(first.starts_with("Agents run as plain processes"), "{first}");
    let second = lines.next().expect("a line");
    let bus = second.split_whitespace().find(|word| word.starts_with("nats://")).expect("a bus");
    let bus = bus.trim_end_matches('.').to_owned();
    let url = format!("{}/healthz", server.url);
    let words = ["run", &url, "--fleet", &bus, "--agents", "2", "--rate", "100", "-d", "1s", "--json", "--quiet"];
    let done = wait_for_exit(start_plimsoll_with_environment(&words, &[]));
    assert!(done.code == 0 && result_agents(&done.json()).len() == 2, "{}", done.stderr);
    signal(child.id(), "INT");
    assert!(child.wait().is_ok_and(|status| status.success()));
    let done = plimsoll(&["fleet", "status", &bus]);
    assert!(done.code == 2 && done.stderr.contains("no bus responds"), "{}", done.stderr);
    for (words, part) in [
        (&["fleet", "up"][..], "--local 3"),
        (&["fleet", "up", "--local", "0"], "--local: a fleet on this machine has 1 to 64 agents, not 0"),
        (&["fleet", "status"], "give the address of the agents"),
        (&["fleet", "status", "nats://b", "--local", "1"], "--local: only plimsoll fleet up"),
    ] {
        let done = plimsoll(words);
        assert!(done.code == 2 && done.stderr.replace("\n  ", " ").contains(part), "{words:?}: {}", done.stderr);
    }
}
