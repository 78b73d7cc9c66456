//! Finds the server's processes: the processes that listen on the target's address, or that
//! `--pid` or `--process` names.

use crate::watch_target::WatchTarget;
use plimsoll_model::Failure;
use plimsoll_model::experiment_settings::ProbesSettings;
use plimsoll_sys::probe::listener::{self, SocketHolders};
use plimsoll_sys::probe::process::read_process_stat;
use plimsoll_sys::probe::sockets::{IpVersion, SocketDiagnostics, SocketFilter, SocketRow, states};
use plimsoll_sys::probe::unix;
use plimsoll_sys::system_text;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

/// The topmost processes of the server that a search found. Child processes of the topmost
/// processes are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// Process ids of the server's topmost processes, ascending; never empty.
    pub roots: Vec<u32>,
    /// The name of the first process in `roots`.
    pub name: String,
    /// The way in which the server was found, as text for the user.
    pub found_by: String,
}

#[derive(Debug, Clone)]
enum ServerSelector {
    Listener,
    Pid(u32),
    Name(String),
}

impl ServerSelector {
    fn from_settings(settings: &ProbesSettings<String>) -> ServerSelector {
        match (settings.pid, &settings.process) {
            (Some(pid), _) => ServerSelector::Pid(pid),
            (None, Some(name)) => ServerSelector::Name(name.clone()),
            (None, None) => ServerSelector::Listener,
        }
    }
}

/// Finds the server's processes, also after a restart of the server.
#[derive(Debug, Clone)]
pub struct ServerFinder {
    wanted: ServerSelector,
    addresses: Vec<SocketAddr>,
    /// The path of the target's unix socket; `None` for a TCP target.
    unix: Option<String>,
    local: bool,
    /// Whether a listening socket matches the target by its port alone. Clients on another machine
    /// may reach the server at an address that this machine does not have.
    by_port: bool,
    /// The server found at the start, or the reason why no server was found.
    initial_result: Result<FoundServer, String>,
}

impl ServerFinder {
    /// Creates the finder and searches for the server. Fails if the user named a process that does
    /// not exist. A target without a listening process is no error.
    pub fn new(settings: &ProbesSettings<String>, watched: &WatchTarget) -> Result<ServerFinder, Failure> {
        ServerFinder::create_for_selector(ServerSelector::from_settings(settings), watched).search_at_start()
    }

    /// Creates a finder for a server on this machine that clients on another machine reach at
    /// `addresses`.
    pub fn for_server_at_port(
        settings: &ProbesSettings<String>,
        addresses: &[SocketAddr],
    ) -> Result<ServerFinder, Failure> {
        let (wanted, addresses) = (ServerSelector::from_settings(settings), addresses.to_vec());
        ServerFinder { wanted, addresses, unix: None, local: true, by_port: true, initial_result: Err(String::new()) }
            .search_at_start()
    }

    fn search_at_start(mut self) -> Result<ServerFinder, Failure> {
        self.initial_result = self.find_server();
        match (&self.wanted, &self.initial_result) {
            (ServerSelector::Listener, _) | (_, Ok(_)) => {}
            (_, Err(reason)) => return Err(Failure::cannot_start(reason.clone())),
        }
        Ok(self)
    }

    /// Creates a finder for the process that listens on the target's address, even if `--pid` or
    /// `--process` names another process.
    pub fn for_listener_process(watched: &WatchTarget) -> ServerFinder {
        let mut finder = ServerFinder::create_for_selector(ServerSelector::Listener, watched);
        finder.initial_result = finder.find_server();
        finder
    }

    fn create_for_selector(selector: ServerSelector, watched: &WatchTarget) -> ServerFinder {
        let (addresses, unix) =
            (watched.plan.connection_plan.addresses.clone(), watched.plan.connection_plan.unix.clone());
        // A unix socket always belongs to this machine.
        let local = watched.local || unix.is_some();
        ServerFinder { wanted: selector, addresses, unix, local, by_port: false, initial_result: Err(String::new()) }
    }

    /// Returns the server found at the start, or the reason why no server was found.
    pub fn initial_result(&self) -> &Result<FoundServer, String> {
        &self.initial_result
    }

    /// Searches for the server by the listening address, `--pid` or `--process`.
    fn find_server(&self) -> Result<FoundServer, String> {
        match &self.wanted {
            ServerSelector::Listener => self.find_by_listener(),
            ServerSelector::Pid(pid) => match read_process_stat(*pid, &mut Vec::new()) {
                Ok((stat, name)) if stat.state != b'Z' => {
                    let name = name_with_interpreter(*pid, name);
                    Ok(FoundServer { roots: vec![*pid], name, found_by: format!("--pid {pid}") })
                }
                Ok(_) => Err(format!(
                    "--pid {pid}: that process has ended; leave --pid out to watch the process that listens \
                    on the target's address"
                )),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!(
                    "--pid {pid}: there is no such process; leave --pid out to watch the process that \
                    listens on the target's address"
                )),
                Err(error) => {
                    Err(format!("--pid {pid}: the process cannot be read: {reason}", reason = system_text(&error)))
                }
            },
            ServerSelector::Name(name) => self.find_by_name(name),
        }
    }

    /// Searches for the process that took over after the server's processes ended, such as a
    /// restarted server.
    pub fn find_successor(&self) -> Result<FoundServer, String> {
        match &self.wanted {
            // The given process id is free or reused, so the successor is the process that now
            // listens on the target's address. A process with the name of the ended process could
            // be another program.
            ServerSelector::Pid(pid) => self.find_by_listener().map_err(|_| format!("process {pid} has ended")),
            ServerSelector::Listener => self.find_by_listener(),
            ServerSelector::Name(name) => self.find_by_name(name).map_err(|_| format!("the process {name} has ended")),
        }
    }

    fn find_by_listener(&self) -> Result<FoundServer, String> {
        let address = match &self.unix {
            Some(path) => format!("the unix socket {path}"),
            None if self.by_port => {
                format!("port {}", self.distinct_ports().map(|port| port.to_string()).collect::<Vec<_>>().join(" or "))
            }
            None => self.addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or "),
        };
        if !self.local {
            return Err(
                "the target does not seem to be on this machine. --watch ssh://HOST watches the server on HOST, and \
                 --metrics URL reads the server's own metrics. For a container, give --pid or run plimsoll as root"
                    .into(),
            );
        }
        let blocked = |error: std::io::Error| {
            format!("the process that listens on {address} cannot be found: {reason}", reason = system_text(&error))
        };
        // The kernel reports the owner of a TCP socket. The owner of a unix socket is the owner of
        // the socket's file.
        let (inodes, user) = match &self.unix {
            Some(path) => {
                let found = unix::unix_listeners_at(path).map_err(blocked)?;
                let owner = std::fs::metadata(path).ok().map(|metadata| metadata.uid());
                (found.iter().map(|socket| socket.inode).collect(), owner)
            }
            None => {
                let mut sockets = Vec::new();
                for address in &self.addresses {
                    if let Some(mut asker) = listener::open_listener_namespace(*address).map_err(blocked)? {
                        sockets.extend(listener::tcp_listeners_on(&mut asker, *address).map_err(blocked)?);
                    }
                }
                if sockets.is_empty() && self.by_port {
                    sockets = self.listeners_at_ports().map_err(blocked)?;
                }
                let user = sockets.first().map(|socket| socket.user);
                (sockets.iter().map(|socket| socket.inode).collect::<BTreeSet<u32>>(), user)
            }
        };
        if inodes.is_empty() && self.by_port {
            return Err(format!(
                "no process listens on {address}: start the server on this address, or name the server's process with \
                 --pid or --process"
            ));
        }
        if inodes.is_empty() {
            return Err(format!(
                "no socket of this network namespace listens on {address}: for a server in a container, give --pid"
            ));
        }
        let SocketHolders { mut pids, unreadable_process_count } =
            listener::socket_holders(&inodes).map_err(blocked)?;
        let me = std::process::id();
        if pids == [me] {
            return Err("this process of plimsoll is itself the server: server and load share one process".into());
        }
        pids.retain(|pid| *pid != me);
        if pids.len() > 1 {
            // A service manager (process 1) keeps copies of the sockets that it passed to servers,
            // so process 1 is not the server.
            pids.retain(|pid| *pid != 1);
        }
        if pids.is_empty() {
            return Err(if unreadable_process_count > 0 {
                let owner = user.map_or_else(String::new, |user| format!(" (user {user})"));
                format!(
                    "the files of the process{owner} that listens on {address} cannot be read: run plimsoll as this \
                     user or as root, or give --pid"
                )
            } else {
                format!(
                    "no visible process owns the socket that listens on {address}: for a server in a \
                    container, give --pid"
                )
            });
        }
        let all = listener::processes().map_err(blocked)?;
        let roots = listener::topmost_processes(&pids, |pid| all.get(&pid).map(|(stat, _)| stat.parent));
        let root = roots.first().copied().unwrap_or(pids[0]);
        let name = all.get(&root).map(|(_, name)| name.clone()).unwrap_or_default();
        if name == "docker-proxy" {
            return Err(format!(
                "docker-proxy, not the server, listens on {address}: give --pid of the container's process \
                (docker inspect -f '{{{{.State.Pid}}}}' CONTAINER)"
            ));
        }
        let name = name_with_interpreter(root, name);
        Ok(FoundServer { roots, name, found_by: format!("it listens on {address}") })
    }

    /// Returns the ports of the addresses, without duplicates.
    fn distinct_ports(&self) -> impl Iterator<Item = u16> {
        self.addresses.iter().map(SocketAddr::port).collect::<BTreeSet<u16>>().into_iter()
    }

    /// Returns the sockets that listen on the ports of the addresses, bound to any local address.
    fn listeners_at_ports(&self) -> std::io::Result<Vec<SocketRow>> {
        let (mut asker, mut found) = (SocketDiagnostics::open()?, Vec::new());
        for port in self.distinct_ports() {
            let filter = SocketFilter::LocalPort(port);
            asker.for_each_socket(IpVersion::BOTH, states::LISTEN, filter, false, &mut |socket| found.push(*socket))?;
        }
        Ok(found)
    }

    fn find_by_name(&self, wanted: &str) -> Result<FoundServer, String> {
        let all = listener::processes().map_err(|e| format!("--process {wanted}: {}", system_text(&e)))?;
        let me = std::process::id();
        let pids: Vec<u32> = all
            .iter()
            .filter(|(pid, (stat, name))| **pid != me && stat.state != b'Z' && has_process_name(**pid, name, wanted))
            .map(|(pid, _)| *pid)
            .collect();
        let mut roots = listener::topmost_processes(&pids, |pid| all.get(&pid).map(|(stat, _)| stat.parent));
        if roots.len() > 1
            && let Ok(listening) = self.find_by_listener()
        {
            let ours: Vec<u32> = roots.iter().copied().filter(|pid| listening.roots.contains(pid)).collect();
            if !ours.is_empty() {
                roots = ours;
            }
        }
        match roots[..] {
            [] => Err(format!("--process {wanted}: no process has this name; see ps -e, or give --pid")),
            [root] => {
                let name = all.get(&root).map(|(_, name)| name.clone()).unwrap_or_default();
                let name = name_with_interpreter(root, name);
                Ok(FoundServer { roots, name, found_by: format!("--process {wanted}") })
            }
            _ => {
                let shown: Vec<String> = roots.iter().take(5).map(u32::to_string).collect();
                let more = if roots.len() > 5 { ", ..." } else { "" };
                Err(format!(
                    "--process {wanted}: {count} processes have this name ({pids}{more}): choose one with --pid",
                    count = roots.len(),
                    pids = shown.join(", ")
                ))
            }
        }
    }
}

/// Returns the name of a process, with its interpreter if the names differ: `flask (python3.12)`. A
/// script that was started by its own name gives its name to the process, although an interpreter
/// runs the script.
fn name_with_interpreter(pid: u32, name: String) -> String {
    const INTERPRETER_NAMES: [&str; 7] = ["python", "pypy", "ruby", "node", "perl", "php", "bun"];
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = program.as_deref().and_then(std::path::Path::file_name).and_then(std::ffi::OsStr::to_str);
    let known =
        |program: &&str| INTERPRETER_NAMES.iter().any(|known| program.starts_with(known) && !name.starts_with(known));
    // If the program file was replaced or deleted, the target of the link `/proc/PID/exe` ends with
    // ` (deleted)`.
    let program = program.map(|program| program.trim_end_matches(" (deleted)")).filter(known);
    program.map_or_else(|| name.clone(), |program| format!("{name} ({program})"))
}

/// Whether the kernel's name of a process, or the file name of its program, equals `wanted`.
pub fn has_process_name(pid: u32, name: &str, wanted: &str) -> bool {
    if name == wanted {
        return true;
    }
    // The kernel stores only 15 bytes of a process name; the command line has the whole name.
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    !program.is_empty() && program.rsplit('/').next() == Some(wanted)
}
