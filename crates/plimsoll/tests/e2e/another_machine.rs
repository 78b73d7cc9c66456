//! Tests `--watch` with a server on another machine, simulated by another network and process
//! namespace. The plimsoll that generates the load cannot see the server's processes. plimsoll logs
//! in to the server's machine with a real `ssh`.
//!
//! Without root, `unshare`, `ip` and `sshd`, the tests are skipped with a message.

use crate::test_support::{command, create_new_folder, number_at_path, signal, start_baseline, wait_for_exit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The private addresses of the two simulated machines.
const LOAD_MACHINE_ADDRESS: &str = "10.77.7.1";
const SERVER_MACHINE_ADDRESS: &str = "10.77.7.2";
const SSH_PORT: u16 = 2222;

/// A simulated machine: its own network and process namespace. Dropping this value ends all
/// processes of the machine.
struct Machine {
    holder: Child,
    pid: u32,
}

impl Machine {
    fn start() -> Option<Machine> {
        let words = ["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sleep", "600"];
        let holder = Command::new("unshare").args(words).stderr(Stdio::null()).spawn().ok()?;
        let mut machine = Machine { pid: 0, holder };
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if let Some(pid) = find_child_process(machine.holder.id()) {
                machine.pid = pid;
                return Some(machine);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Returns a command that runs `program` on the simulated machine.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--pid", "--mount", "--target", &self.pid.to_string(), program]);
        command
    }

    /// Returns the id of the process on the simulated machine that has `word` among its arguments.
    fn find_process_id(&self, word: &str) -> Option<u32> {
        let own = fs::read_link(format!("/proc/{}/ns/pid", self.pid)).ok()?;
        let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_it = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let has_word = words.split(|byte| *byte == 0).any(|it| it == word.as_bytes());
            has_word && fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|it| it == own)
        };
        pids.into_iter().find(is_it)
    }

    fn run(&self, line: &str) {
        let status = self.command("sh").args(["-c", line]).status();
        assert!(status.is_ok_and(|status| status.success()), "{line}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Returns the first child process of `parent` that runs `sleep` in the network namespace of
/// `parent`.
fn find_child_process(parent: u32) -> Option<u32> {
    let own = fs::read_link(format!("/proc/{parent}/ns/net")).ok()?;
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent_of = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        let is_ready =
            stat.contains("(sleep)") && fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|it| it == own);
        parent_of == Some(parent) && is_ready
    })
}

/// Two simulated machines. One machine generates the load; the other has the servers and allows
/// logins.
struct MachinePair {
    load: Machine,
    server: Machine,
    folder: PathBuf,
    sshd: Child,
}

impl MachinePair {
    /// Creates the two simulated machines. Returns `None` and prints a message if the machines
    /// cannot be created.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn start() -> Option<MachinePair> {
        let skipped = |why: &str| eprintln!("SKIPPED: {why}: servers on other machines are not watched in this run");
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].into_iter().find(|path| Path::new(path).exists());
        let Some(sshd) = sshd else {
            skipped("no sshd on this machine (scripts/needs sshd)");
            return None;
        };
        let (Some(load), Some(server)) = (Machine::start(), Machine::start()) else {
            skipped("no namespaces of one's own (unshare, as root)");
            return None;
        };
        let wired = Command::new("ip")
            .args(["link", "add", "eth0", "netns", &load.pid.to_string(), "type", "veth", "peer", "name", "eth0"])
            .args(["netns", &server.pid.to_string()])
            .stderr(Stdio::null())
            .status();
        if !wired.is_ok_and(|status| status.success()) {
            skipped("no pair of network interfaces (ip link add, as root)");
            return None;
        }
        for (machine, address) in [(&load, LOAD_MACHINE_ADDRESS), (&server, SERVER_MACHINE_ADDRESS)] {
            machine.run(&format!("ip link set lo up; ip addr add {address}/24 dev eth0; ip link set eth0 up"));
        }
        let folder = create_new_folder("pair");
        let at = |name: &str| folder.join(name).display().to_string();
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]).status();
            assert!(made.is_ok_and(|status| status.success()), "ssh-keygen");
        }
        fs::copy(at("user.pub"), at("authorized")).expect("copied");
        let bin = folder.join("bin");
        fs::create_dir(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_plimsoll"), bin.join("plimsoll")).expect("a link");
        let config = format!(
            "Port {SSH_PORT}\nListenAddress {SERVER_MACHINE_ADDRESS}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPasswordAuthentication no\nSetEnv PATH={}:/usr/bin:/bin\n",
            at("host"),
            at("authorized"),
            bin.display()
        );
        fs::write(at("config"), config).expect("written");
        // An `sshd` with privilege separation needs the folder /run/sshd.
        let _ = fs::create_dir_all("/run/sshd");
        let log = fs::File::create(at("sshd.log")).expect("a log");
        let started = server.command(sshd).args(["-D", "-e", "-f", &at("config")]).stderr(log).spawn();
        let pair = MachinePair { load, server, folder: folder.clone(), sshd: started.expect("sshd starts") };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !pair.run_over_ssh("true").is_ok_and(|status| status.success()) {
            assert!(Instant::now() < deadline, "{}", fs::read_to_string(at("sshd.log")).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(pair)
    }

    /// Returns the `ssh` command with the test's keys.
    fn ssh_command_line(&self) -> String {
        let at = |name: &str| self.folder.join(name).display().to_string();
        format!(
            "ssh -F none -oBatchMode=yes -oStrictHostKeyChecking=accept-new -oLogLevel=ERROR -oUserKnownHostsFile={} -i {} -T",
            at("known"),
            at("user")
        )
    }

    fn run_over_ssh(&self, line: &str) -> std::io::Result<std::process::ExitStatus> {
        let whole = format!("{} -p {SSH_PORT} {SERVER_MACHINE_ADDRESS} {line}", self.ssh_command_line());
        self.load.command("sh").args(["-c", &whole]).stderr(Stdio::null()).status()
    }

    /// Starts a Python server on the server's machine that prints its port.
    fn start_python_server(&self, source: &str) -> RemotePythonServer {
        let mut child = self
            .server
            .command("python3")
            .args(["-c", source])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 is needed for the end-to-end tests");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a port");
        RemotePythonServer { child, url: format!("http://{SERVER_MACHINE_ADDRESS}:{}/items", line.trim()) }
    }

    /// Returns the flag that makes plimsoll measure the server's machine.
    fn watch_flag() -> String {
        format!("--watch=ssh://{SERVER_MACHINE_ADDRESS}:{SSH_PORT}")
    }

    /// Starts plimsoll on the machine that generates the load.
    fn start_plimsoll(&self, words: &[&str]) -> Child {
        let mut command = self.load.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.env("PLIMSOLL_SSH", self.ssh_command_line()).current_dir(&self.folder).stdin(Stdio::null());
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }

    fn run_plimsoll(&self, words: &[&str]) -> crate::test_support::CommandOutcome {
        wait_for_exit(self.start_plimsoll(words))
    }
}

impl Drop for MachinePair {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

struct RemotePythonServer {
    child: Child,
    url: String,
}

impl Drop for RemotePythonServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The source of a server with one thread that works 2 ms for each request.
const BUSY_SERVER_SOURCE: &str = r#"
import asyncio, time
class Busy(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        for _ in range(data.count(b"\r\n\r\n")):
            end = time.thread_time() + 0.002
            while time.thread_time() < end:
                pass
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
async def main():
    server = await asyncio.get_running_loop().create_server(Busy, "0.0.0.0", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"#;

/// The source of a server with a pool of four connections to a backend process. The backend process
/// answers each call after 30 ms.
const POOLED_SERVER_SOURCE: &str = r#"
import asyncio, os, sys
async def main(port):
    pool = asyncio.Queue()
    for _ in range(4):
        pool.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    async def serve(reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            link = await pool.get()
            link[1].write(b"get\n")
            await link[0].readline()
            pool.put_nowait(link)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [sys.executable, "-c", """
import asyncio, os
async def store(reader, writer):
    while await reader.readline():
        await asyncio.sleep(0.03)
        writer.write(b"ok\\n")
async def main():
    server = await asyncio.start_server(store, "127.0.0.1", 0)
    os.write(%d, b"%%d\\n" %% server.sockets[0].getsockname()[1])
    await server.serve_forever()
asyncio.run(main())
""" % os.dup2(write, 9, inheritable=True)])
asyncio.run(main(int(os.read(read, 20))))
"#;

fn server_section(document: &Value) -> &Value {
    &document["server"]
}

fn find_series<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    server_section(document)["probes"].as_array()?.iter().find(|series| series["name"] == name)
}

#[test]
fn a_remote_server_is_read_like_a_local_server() {
    let Some(pair) = MachinePair::start() else { return };
    let server = pair.start_python_server(BUSY_SERVER_SOURCE);
    let url = server.url.as_str();
    let load = ["run", url, "--rate", "100", "--json", "--quiet", "-d"];
    // Without --watch, plimsoll has no figures of the server.
    let blind = pair.run_plimsoll(&[&load[..], &["2s"]].concat());
    assert_eq!(blind.code, 0, "{}", blind.stderr);
    let document = blind.json();
    assert!(server_section(&document)["cpu_us_per_request"].is_null(), "{:#}", server_section(&document));
    let reason = server_section(&document)["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("--watch ssh://HOST"), "{reason}");
    // With --watch, plimsoll has all figures of the server.
    let watch = MachinePair::watch_flag();
    let done = pair.run_plimsoll(&[&load[..], &["6s", &watch, "-o", "seen.plimsoll"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    let seen = server_section(&document);
    assert_eq!(seen["host"], format!("{SERVER_MACHINE_ADDRESS}:{SSH_PORT}"), "{seen:#}");
    let cpu_us = number_at_path(seen, "cpu_us_per_request");
    assert!((1_900.0..6_000.0).contains(&cpu_us), "2 ms a request and what Python adds: {cpu_us}");
    assert!(number_at_path(seen, "cores_used") > 0.1, "{seen:#}");
    for name in ["server.cpu", "listen.backlog", "host.cpu_idle", "client.cpu", "generator.client.cpu"] {
        let series = find_series(&document, name).unwrap_or_else(|| panic!("no {name} in {seen:#}"));
        assert!(number_at_path(series, "samples") >= 5.0, "{series:#}");
    }
    // The server's readings are converted to the clock of the machine that generates the load, so
    // the times of the readings lie within the load.
    let rows = pair.run_plimsoll(&["show", "--probes", "seen.plimsoll"]).stdout;
    let times = rows.lines().filter(|row| row.contains("\"server.cpu\"")).filter_map(|row| row.split(',').nth(3));
    let times: Vec<f64> = times.filter_map(|time| time.parse().ok()).collect();
    assert!(times.len() > 15 && times.iter().all(|at_s| (-2.0..40.0).contains(at_s)), "{times:?}");
    let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step >= 0.0), "{steps:?}");
    let shown = pair.run_plimsoll(&["show", "--verbose", "seen.plimsoll"]).stdout;
    assert!(shown.contains(&format!("on {SERVER_MACHINE_ADDRESS}:{SSH_PORT}")), "{shown}");
    // plimsoll finds the same server if `--watch-copy` copies plimsoll to the server's machine.
    fs::remove_file(pair.folder.join("bin/plimsoll")).expect("removed");
    let bare = pair.run_plimsoll(&[&load[..], &["1s", &watch]].concat());
    assert!(bare.code == 2 && bare.stderr.contains("--watch-copy"), "{}", bare.stderr);
    let copied = pair.run_plimsoll(&[&load[..], &["2s", &watch, "--watch-copy"]].concat());
    assert_eq!(copied.json()["server"]["name"], seen["name"], "{}", copied.stderr);
}

/// Returns the names of a server's series (measured values over time), without the digits in the
/// names. The series of threads, of network devices and of the load generator are excluded.
fn series_kinds(document: &Value) -> BTreeSet<String> {
    let series = server_section(document)["probes"].as_array().unwrap_or_else(|| panic!("{document:#}"));
    let names = series.iter().filter_map(|series| series["name"].as_str());
    let elsewhere = ["generator.", "net.", "thread."];
    let own = names.filter(|name| !elsewhere.iter().any(|prefix| name.starts_with(prefix)));
    own.map(|name| name.chars().filter(|c| !c.is_ascii_digit()).collect()).collect()
}

#[test]
fn a_watched_server_has_the_same_series_as_a_local_server() {
    let Some(pair) = MachinePair::start() else { return };
    let server = pair.start_python_server(POOLED_SERVER_SOURCE);
    let words = ["--rate", "40", "-d", "10s", "--json", "--quiet"];
    let watched = pair.run_plimsoll(&[&["run", &server.url, &MachinePair::watch_flag()][..], &words].concat());
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    let mut command = pair.server.command(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(&pair.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let local = wait_for_exit(command.args(["run", &server.url]).args(words).spawn().expect("the binary starts"));
    assert_eq!(local.code, 0, "{}", local.stderr);
    let (watched, local) = (series_kinds(&watched.json()), series_kinds(&local.json()));
    assert!(local.iter().any(|name| name.starts_with("peer.") && name.ends_with(".connections")), "{local:?}");
    let differ: Vec<&String> = watched.symmetric_difference(&local).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn lost_server_readings_are_a_gap() {
    let Some(pair) = MachinePair::start() else { return };
    // The server sleeps for each request, because the test needs readings of the server, but no CPU
    // time.
    let source = BUSY_SERVER_SOURCE.replace("end = time.thread_time() + 0.002", "time.sleep(0.005); end = 0.0");
    let server = pair.start_python_server(&source);
    let watch = MachinePair::watch_flag();
    let words = [
        "sweep",
        "--spin=off",
        &server.url,
        "-c",
        "1,2",
        "--for",
        "4s",
        "--json",
        &watch,
        "--name",
        "lost",
        "--dir",
        ".",
    ];
    let child = pair.start_plimsoll(&words);
    std::thread::sleep(Duration::from_secs(6));
    signal(pair.server.find_process_id("--watch-only").expect("an agent"), "KILL");
    let done = wait_for_exit(child);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let document = done.json();
    let levels = document["levels"].as_array().expect("levels");
    assert_eq!(levels.len(), 2, "the study goes on");
    for level in levels {
        assert!(number_at_path(level, "throughput_rps") > 20.0, "{level:#}");
        // The loads of each concurrency ran both before and after the death of the agent, the
        // process that observes the server.
        assert!(level["server"]["cores_used"].is_null(), "not observed is no zero: {level:#}");
        assert!(level["server"]["unseen"].to_string().contains("was observed only for the first"), "{level:#}");
    }
    let cpu = find_series(&levels[0], "server.cpu").expect("read before the loss");
    assert!(number_at_path(cpu, "samples") > 3.0 && number_at_path(cpu, "gaps") > 0.0, "{cpu:#}");
    assert!(done.stderr.contains("was observed only for the first"), "{}", done.stderr);
}

#[test]
fn two_urls_of_another_machine_are_compared_by_their_cpu_time() {
    let Some(pair) = MachinePair::start() else { return };
    // The servers also sleep, so that the loads need less CPU time in all.
    let idle = BUSY_SERVER_SOURCE.replace("end = ", "time.sleep(0.008); end = ");
    let (a, b) = (pair.start_python_server(&idle), pair.start_python_server(&idle.replace("0.002", "0.003")));
    let words = ["prove", "--spin=off", &a.url, &b.url, "--measure", "cpu", "--budget", "20s", "--json", "--quiet"];
    let done = pair.run_plimsoll(&[&words[..], &[&MachinePair::watch_flag()]].concat());
    let document = done.json();
    // The true difference in CPU time between the two servers is 50 %. On a noisy machine the
    // measured difference may be smaller, but never reversed.
    assert!(
        ["worse", "inconclusive"].iter().any(|word| document["verdict"] == *word),
        "{}{}",
        done.stdout,
        done.stderr
    );
    let builds = pair.run_plimsoll(&["prove", "--a", "./a", "--b", "./b", &a.url, &MachinePair::watch_flag()]);
    assert!(builds.code == 2 && builds.stderr.contains("are started on this machine"), "{}", builds.stderr);
}

/// Returns the cause that `plimsoll explain` names, and whether the machine was too busy to name a
/// cause.
fn explained_cause(done: &crate::test_support::CommandOutcome) -> (String, bool) {
    let document = done.json();
    let warnings = document["warnings"].to_string();
    let hindered = warnings.contains("disturbed") || document["cause"] == "client";
    (document["cause"].as_str().expect("a word").to_owned(), hindered)
}

#[test]
fn explain_names_the_same_cause_for_a_remote_server() {
    let Some(pair) = MachinePair::start() else { return };
    let server = pair.start_python_server(POOLED_SERVER_SOURCE);
    let mut told = Vec::new();
    let named = (0..3).any(|_| {
        let words = ["explain", &server.url, "--budget", "20s", "--json", "--quiet", &MachinePair::watch_flag()];
        let (named, hindered) = explained_cause(&pair.run_plimsoll(&words));
        // If other programs keep the cores busy, the cores can be the bottleneck, and a warning
        // reports the interference.
        let is_cores = hindered && named == "cpu";
        assert!(is_cores || ["pool", "neighbour", "client", "unknown"].contains(&named.as_str()), "{named}");
        told.push((named.clone(), hindered));
        named == "pool"
    });
    let always_hindered = told.iter().all(|(_, hindered)| *hindered);
    assert!(named || always_hindered, "{told:?}");
}

#[test]
fn unwatchable_servers_are_reported_before_the_load() {
    let server = start_baseline(1);
    let url = format!("{}/healthz", server.url);
    let folder = create_new_folder("fake-watch");
    let script = format!(
        r#"#!/bin/sh
host= line=
for word; do host=$line line=$word; done
case $host in
nowhere) echo "ssh: connect to host nowhere port 22: Connection refused" >&2; exit 255 ;;
older) echo "plimsoll 0.0.1" >&2; echo "error: unexpected argument '--watch-only' found" >&2; exit 2 ;;
loads) exec '{0}' agent --stdio ;;
esac
exec '{0}' agent --stdio --watch-only
"#,
        env!("CARGO_BIN_EXE_plimsoll")
    );
    let path = folder.join("ssh");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("executable");
    let run = |words: &[&str]| {
        let words = [&["run", "-d", "1s", "--json", "--quiet"], words].concat();
        let mut command = command(&words);
        command.env("PLIMSOLL_SSH", &path).stdout(Stdio::piped()).stderr(Stdio::piped());
        wait_for_exit(command.spawn().expect("the binary starts"))
    };
    let own = format!("that plimsoll {} needs", env!("CARGO_PKG_VERSION"));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let silent = format!("http://127.0.0.1:{closed}/");
    for (words, parts) in [
        (
            &["--watch", "ssh://nowhere", &url][..],
            &["--watch: nowhere:", "Connection refused", "log in once by hand"][..],
        ),
        (&["--watch", "ssh://older", &url], &["the machine has plimsoll 0.0.1", &own, "--watch-copy"]),
        (&["--watch", "ssh://loads", &url], &["this agent only generates load, and cannot watch a server"]),
        (&["--watch", "ssh://a", "--no-preflight", &silent], &["no process listens on port", "--pid"]),
        (&["--watch", "ssh://a", "--pid", "999999", &url], &["--pid 999999: there is no such process"]),
        (&["--watch", "ssh://a,b", &url], &["--watch: 'ssh://a,b' names 2 machines"]),
        (&["--watch", "server1", &url], &["--watch:", "write ssh://server1"]),
        (&["--watch", "ssh://a", "--no-probes", &url], &["--no-probes"]),
        (
            &["--watch", "ssh://a", "--no-preflight", "--unix", "/run/x", &url],
            &["--watch: the server of a unix socket"],
        ),
    ] {
        let done = run(words);
        assert_eq!(done.code, 2, "{words:?}: {}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "{words:?}: {}", done.stderr);
        }
    }
    // The server's machine is this machine under another name, so server and load share one
    // machine.
    let done = run(&["--watch", "ssh://a", "-c", "2", &url]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(number_at_path(&done.json(), "server.cores_used") > 0.0, "{}", done.stdout);
}
