//! Runs a complete fleet on this machine ([`run_local_fleet`]), for tests and first steps. The
//! fleet has a NATS server and agents, and runs until ^C. If the system permits, each agent has its
//! own network namespace and address.
//!
//! When the fleet ends, its processes, namespaces and files are removed. Not here: running the
//! agents' loads (`service`).

use crate::task_key::{random_bytes, to_hex};
use plimsoll_model::failure::Failure;
use plimsoll_sys::{output_file, signal, system_text};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The largest number of agents of a local fleet.
const AGENTS_MAX: u32 = 64;
/// The environment variable with the path of the NATS server program. If the variable is not set,
/// `nats-server` from the PATH is used.
const NATS_SERVER_VARIABLE: &str = "PLIMSOLL_NATS_SERVER";
const START_TIMEOUT: Duration = Duration::from_secs(10);
const END_TIMEOUT: Duration = Duration::from_secs(2);
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `count` agents until ^C. `print_message` receives messages for the user, line by line.
pub fn run_local_fleet(count: u32, allow: Option<&str>, print_message: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    if !(1..=AGENTS_MAX).contains(&count) {
        return Err(Failure::usage(format!(
            "--local: a fleet on this machine has 1 to {AGENTS_MAX} agents, not {count}: give another number"
        )));
    }
    let mut fleet = LocalFleet::new()?;
    let separated = fleet.make_namespaces(count);
    let host = match &separated {
        Ok(()) => fleet.network().host_address(1),
        Err(reason) => {
            print_message(&format!("Agents run as plain processes, not in network namespaces of their own: {reason}."));
            "127.0.0.1".to_owned()
        }
    };
    let url = fleet.start_server(&host)?;
    let allow = allow.unwrap_or(&host);
    for number in 1..=count {
        fleet.start_agent(number, &url, allow, separated.is_ok())?;
    }
    if separated.is_ok() {
        print_message(&format!("Each agent is in a network namespace of its own, and reaches this machine as {host}."));
    }
    print_message(&format!(
        "{count} agents are on the bus at {url}. The agents send load only to {allow}. ^C ends the agents."
    ));
    // The address of a namespace is neither loopback nor private (RFC 1918), so a load on this
    // address needs the option `--allow-public`.
    let allow_public = if separated.is_ok() { " --allow-public" } else { "" };
    print_message(&format!("Try: plimsoll run{allow_public} --fleet {url} http://{host}:8080/"));
    while !signal::is_stop_requested() {
        if let Some(name) = fleet.ended_process_name() {
            return Err(Failure::cannot_start(format!("{name} ended unexpectedly: see the output of {name} above")));
        }
        std::thread::sleep(PROCESS_CHECK_INTERVAL);
    }
    Ok(())
}

/// The processes, namespaces and files of a local fleet. Dropping a `LocalFleet` ends its processes
/// and removes its namespaces and files.
struct LocalFleet {
    folder: PathBuf,
    network: LocalNetwork,
    children: Vec<(String, Child)>,
}

/// The names and addresses of the network namespaces.
struct LocalNetwork {
    /// The third byte of all IP addresses of the local fleet. The names of the bridge and the
    /// namespaces also contain this byte.
    number: u8,
    namespaces: u32,
    has_bridge: bool,
}

impl LocalNetwork {
    /// Returns the address of host number `host`. The address is in 198.18.0.0/15, which is
    /// reserved for load tests between machines (RFC 2544).
    fn host_address(&self, host: u32) -> String {
        format!("198.18.{}.{host}", self.number)
    }

    fn bridge_name(&self) -> String {
        format!("plim{}", self.number)
    }

    fn namespace_name(&self, number: u32) -> String {
        format!("plim{}-{number}", self.number)
    }
}

/// Runs the program `ip` with these arguments. An error names the command and contains the first
/// line of the program's standard error.
fn run_ip_command(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        format!("the program 'ip' of iproute2 cannot be run ({reason})", reason = system_text(&error))
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it sends nothing").trim().trim_end_matches('.').to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {said}", words.join(" "))) }
}

impl LocalFleet {
    fn new() -> Result<LocalFleet, Failure> {
        let [number, rest @ ..] = random_bytes::<8>()?;
        let folder = std::env::temp_dir().join(format!("plimsoll-fleet-{}", to_hex(&rest)));
        std::fs::create_dir(&folder).map_err(|error| {
            Failure::cannot_start(format!("'{}' cannot be made: {}", folder.display(), system_text(&error)))
        })?;
        let network = LocalNetwork { number, namespaces: 0, has_bridge: false };
        Ok(LocalFleet { folder, network, children: Vec::new() })
    }

    fn network(&self) -> &LocalNetwork {
        &self.network
    }

    /// Creates a network namespace for each agent, and a bridge between the namespaces. An error
    /// says why the namespaces cannot be created.
    fn make_namespaces(&mut self, count: u32) -> Result<(), String> {
        let made = self.make_network(count);
        if made.is_err() {
            self.remove_network();
        }
        made
    }

    fn make_network(&mut self, count: u32) -> Result<(), String> {
        let bridge = self.network.bridge_name();
        run_ip_command(&["link", "add", &bridge, "type", "bridge"])?;
        self.network.has_bridge = true;
        run_ip_command(&["addr", "add", &format!("{}/24", self.network.host_address(1)), "dev", &bridge])?;
        run_ip_command(&["link", "set", &bridge, "up"])?;
        for number in 1..=count {
            let (namespace, port) = (self.network.namespace_name(number), format!("{bridge}p{number}"));
            run_ip_command(&["netns", "add", &namespace])?;
            self.network.namespaces = number;
            run_ip_command(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &namespace])?;
            run_ip_command(&["link", "set", &port, "master", &bridge, "up"])?;
            let address = format!("{}/24", self.network.host_address(10 + number));
            run_ip_command(&["-n", &namespace, "addr", "add", &address, "dev", "eth0"])?;
            run_ip_command(&["-n", &namespace, "link", "set", "eth0", "up"])?;
            run_ip_command(&["-n", &namespace, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn remove_network(&mut self) {
        for number in 1..=std::mem::take(&mut self.network.namespaces) {
            let _ = run_ip_command(&["netns", "del", &self.network.namespace_name(number)]);
        }
        if std::mem::take(&mut self.network.has_bridge) {
            let _ = run_ip_command(&["link", "del", &self.network.bridge_name()]);
        }
    }

    /// Starts a NATS server on a free port and returns its URL.
    fn start_server(&mut self, host: &str) -> Result<String, Failure> {
        let program = std::env::var_os(NATS_SERVER_VARIABLE).unwrap_or_else(|| "nats-server".into());
        let store = self.folder.join("store");
        let config = format!(
            "listen: \"{host}:-1\"\nports_file_dir: \"{0}\"\njetstream {{ store_dir: \"{1}\", sync_interval: always }}\n",
            self.folder.display(),
            store.display()
        );
        let path = self.folder.join("nats.conf");
        let written = output_file::write(&path, config.as_bytes());
        written.map_err(|error| {
            Failure::cannot_start(format!("'{}' cannot be written: {}", path.display(), system_text(&error)))
        })?;
        let mut command = Command::new(&program);
        command.arg("-c").arg(&path).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = command.spawn();
        let child = child.map_err(|error| {
            Failure::cannot_start(format!(
                "{program} cannot be started ({reason}): install nats-server, or give its path in ${NATS_SERVER_VARIABLE}",
                program = Path::new(&program).display(),
                reason = system_text(&error)
            ))
        })?;
        let ports = self.folder.join(format!("{}_{}.ports", program_file_name(Path::new(&program)), child.id()));
        self.children.push(("nats-server".to_owned(), child));
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline && !signal::is_stop_requested() {
            if let Some(url) = std::fs::read(&ports).ok().and_then(|bytes| first_nats_url(&bytes)) {
                return Ok(url);
            }
            std::thread::sleep(PROCESS_CHECK_INTERVAL);
        }
        Err(Failure::cannot_start(format!(
            "nats-server did not start within {seconds} s",
            seconds = START_TIMEOUT.as_secs()
        )))
    }

    fn start_agent(&mut self, number: u32, url: &str, allow: &str, is_separated: bool) -> Result<(), Failure> {
        let (name, own) = (format!("local{number}"), std::env::current_exe());
        let own = own.map_err(|error| {
            Failure::cannot_start(format!(
                "the path of the plimsoll program is unknown: {reason}",
                reason = system_text(&error)
            ))
        })?;
        let mut command = match is_separated {
            true => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &self.network.namespace_name(number)]).arg(own);
                command
            }
            false => Command::new(own),
        };
        command.args(["agent", "--join", url, "--name", &name, "--allow", allow, "--spool"]);
        command.arg(self.folder.join(&name)).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn();
        let child = child.map_err(|error| {
            Failure::cannot_start(format!("agent {name} cannot be started: {reason}", reason = system_text(&error)))
        })?;
        self.children.push((format!("agent {name}"), child));
        Ok(())
    }

    /// Returns the name of a process that has ended unexpectedly, if any.
    fn ended_process_name(&mut self) -> Option<String> {
        self.children.iter_mut().find_map(|(name, child)| match child.try_wait() {
            Ok(Some(_)) => Some(name.clone()),
            _ => None,
        })
    }
}

fn program_file_name(program: &Path) -> String {
    program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the first URL in the ports file that a NATS server writes.
fn first_nats_url(bytes: &[u8]) -> Option<String> {
    let ports: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    ports["nats"][0].as_str().map(str::to_owned)
}

impl Drop for LocalFleet {
    fn drop(&mut self) {
        // Agents are killed before the NATS server, so that they do not report a lost server.
        for (_, child) in self.children.iter_mut().rev() {
            let _ = child.kill();
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for (_, child) in &mut self.children {
            while !matches!(child.try_wait(), Ok(Some(_))) && Instant::now() < deadline {
                std::thread::sleep(PROCESS_CHECK_INTERVAL);
            }
        }
        self.remove_network();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
