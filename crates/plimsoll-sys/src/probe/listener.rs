//! Finds the processes that listen on an address, through the listening sockets of that address.
//! This module also finds the dependencies of a server, and separate servers among its descendants.

use super::process::{Stat, file_table_tids, files_folder, numbered_entries, read_process_stat};
use super::sockets::{
    IpVersion, SocketDiagnostics, SocketFilter, SocketRow, network_namespace_of, run_in_network_of, states,
};
use super::unix_diag::{UnixSocket, shown_name};
use crate::tcp::is_local;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

/// Returns the sockets that listen on `address`: sockets bound to this address, or, if there are
/// none, sockets bound to every address.
pub fn tcp_listeners_on(asker: &mut SocketDiagnostics, address: SocketAddr) -> io::Result<Vec<SocketRow>> {
    let mut found = Vec::new();
    asker.for_each_socket(
        IpVersion::BOTH,
        states::LISTEN,
        SocketFilter::LocalPort(address.port()),
        false,
        &mut |socket| found.push(*socket),
    )?;
    let exact = found.iter().any(|socket| socket.local.ip() == address.ip());
    found.retain(|socket| if exact { socket.local.ip() == address.ip() } else { socket.local.ip().is_unspecified() });
    Ok(found)
}

/// The processes that have given sockets open, and how many processes this user could not search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketHolders {
    /// Process ids, ascending.
    pub pids: Vec<u32>,
    /// The number of processes whose open files this user may not see.
    pub unreadable_process_count: usize,
}

/// Parses the inode in a link of `/proc/PID/fd` such as `socket:[12345]`.
pub fn socket_inode(link: &[u8]) -> Option<u32> {
    std::str::from_utf8(link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?).ok()?.parse().ok()
}

/// Returns the inodes of the sockets in a table of open files (see [`file_table_tids`]).
fn socket_inodes_in_table(pid: u32, table: u32) -> io::Result<impl Iterator<Item = u32>> {
    use std::os::unix::ffi::OsStrExt;
    let links = std::fs::read_dir(files_folder(pid, table))?.flatten().flat_map(|e| std::fs::read_link(e.path()));
    Ok(links.filter_map(|link| socket_inode(link.as_os_str().as_bytes())))
}

/// Whether a table of open files (see [`file_table_tids`]) contains one of the sockets `inodes`.
fn has_socket_in_table(pid: u32, table: u32, inodes: &BTreeSet<u32>) -> io::Result<bool> {
    Ok(socket_inodes_in_table(pid, table)?.any(|inode| inodes.contains(&inode)))
}

/// Whether a thread of the process has its own table of open files that contains one of the sockets
/// `inodes`.
fn has_socket_in_thread_table(pid: u32, inodes: &BTreeSet<u32>) -> io::Result<bool> {
    let tables = file_table_tids(pid, numbered_entries(format!("/proc/{pid}/task"))?.into_iter());
    Ok(tables.iter().skip(1).any(|table| has_socket_in_table(pid, *table, inodes).unwrap_or(false)))
}

/// Returns the processes that have one of the sockets open.
pub fn socket_holders(inodes: &BTreeSet<u32>) -> io::Result<SocketHolders> {
    let mut found = SocketHolders::default();
    for pid in numbered_entries("/proc")? {
        match has_socket_in_table(pid, pid, inodes) {
            Ok(true) => found.pids.push(pid),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.unreadable_process_count += 1,
            // Other errors are ignored, because they mean that the process has ended meanwhile.
            Err(_) => {}
        }
    }
    if found.pids.is_empty() {
        // Threads with their own table of open files are rare and slow to search, so they are
        // searched last.
        found.pids = numbered_entries("/proc")?;
        found.pids.retain(|pid| has_socket_in_thread_table(*pid, inodes).unwrap_or(false));
    }
    found.pids.sort_unstable();
    Ok(found)
}

/// Returns the arguments of a command line that are not options; `words` are NUL-terminated.
/// Options are left out, because a worker may have other options than its server, such as a
/// debugger's port.
fn non_option_arguments(words: &[u8]) -> Vec<Vec<u8>> {
    let behind = words.split(|byte| *byte == 0).skip(1);
    behind.filter(|word| !word.is_empty() && !word.starts_with(b"-")).map(<[u8]>::to_vec).collect()
}

/// Whether `pid`, a descendant of the server's first process `root`, is a separate server and not a
/// worker. A separate server runs another program, or the same interpreter with other arguments. A
/// separate server also listens only on its own sockets, at other ports than the server's `port`.
/// An example of a separate server is a database that the server's start script also starts.
///
/// `askers` look up sockets. Several `askers` are needed, because an inherited socket stays in the
/// network namespace where it was opened.
pub fn is_separate_server(
    askers: &mut [SocketDiagnostics],
    pid: u32,
    root: u32,
    port: Option<u16>,
) -> io::Result<bool> {
    let program = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((std::fs::read_link(format!("/proc/{pid}/exe")).ok()?, non_option_arguments(&words)))
    };
    match (program(pid), program(root)) {
        (Some(own), Some(roots)) if own != roots => {}
        _ => return Ok(false),
    }
    let open = |pid: u32| Ok::<BTreeSet<u32>, io::Error>(socket_inodes_in_table(pid, pid)?.collect());
    let (own, roots) = (open(pid)?, open(root)?);
    let (mut serves, mut works) = (false, false);
    let mut look = |inode: u32, is_servers: bool| {
        if own.contains(&inode) {
            // A process with the server's socket, or with its own socket at the same port, accepts
            // the server's requests.
            let taken = is_servers || roots.contains(&inode);
            (serves, works) = (serves || !taken, works || taken);
        }
    };
    for asker in askers {
        asker.for_each_socket(IpVersion::BOTH, states::LISTEN, SocketFilter::Any, false, &mut |socket| {
            look(socket.inode, Some(socket.local.port()) == port);
        })?;
        asker.unix_sockets(states::LISTEN)?.iter().for_each(|socket| look(socket.inode, false));
    }
    Ok(serves && !works)
}

/// The largest number of network namespaces that are searched in addition to the server's own.
const NETWORKS_MAX: usize = 16;

/// Returns the network namespaces of this machine, such as namespaces of containers, except the
/// namespace of `pid`. Each namespace is given as the id of one of its processes that this user may
/// see.
pub fn pids_in_other_networks(pid: u32) -> Vec<u32> {
    let mut seen: BTreeSet<(u64, u64)> = network_namespace_of(pid).into_iter().collect();
    let all = numbered_entries("/proc").unwrap_or_default().into_iter();
    all.filter(|pid| network_namespace_of(*pid).is_ok_and(|it| seen.insert(it))).take(NETWORKS_MAX).collect()
}

/// Opens access to the network namespace of the listener on `address`. If plimsoll's own namespace
/// has the address, plimsoll's namespace is opened. If plimsoll's own namespace lacks the address,
/// the namespace of a container that has the address and a listener on it is opened. Returns `None`
/// if no network namespace with the address is visible.
pub fn open_listener_namespace(address: SocketAddr) -> io::Result<Option<SocketDiagnostics>> {
    if is_local(&address.ip()) { SocketDiagnostics::open().map(Some) } else { Ok(open_foreign_namespace(address)) }
}

/// Whether `address` belongs to this machine, or to a container on this machine that listens on
/// `address`.
pub fn is_address_of_this_machine(address: SocketAddr) -> bool {
    is_local(&address.ip()) || open_foreign_namespace(address).is_some()
}

/// Opens access to another network namespace that has `address` and a listener on it. Network
/// namespaces that this user may not enter are not found.
fn open_foreign_namespace(address: SocketAddr) -> Option<SocketDiagnostics> {
    let there = move || {
        let mut asker = SocketDiagnostics::open()?;
        let listens = is_local(&address.ip()) && asker.listener_at(address)?.is_some();
        Ok(listens.then_some(asker))
    };
    pids_in_other_networks(std::process::id()).into_iter().find_map(|pid| run_in_network_of(pid, there).ok().flatten())
}

/// The TCP sockets of one network namespace, by port and by addresses.
struct NetworkSockets {
    /// Inodes of the listening sockets, by port.
    listening: BTreeMap<u16, Vec<u32>>,
    /// Inodes of connections, by local and remote address.
    ends: BTreeMap<(SocketAddr, SocketAddr), u32>,
}

impl NetworkSockets {
    fn query_kernel(asker: &mut SocketDiagnostics, filter: SocketFilter) -> io::Result<NetworkSockets> {
        let (mut listening, mut ends) = (BTreeMap::<u16, Vec<u32>>::new(), BTreeMap::new());
        asker.for_each_socket(IpVersion::BOTH, states::LISTEN, SocketFilter::Any, false, &mut |socket| {
            listening.entry(socket.local.port()).or_default().push(socket.inode);
        })?;
        asker.for_each_socket(IpVersion::BOTH, states::ESTABLISHED, filter, false, &mut |socket| {
            ends.insert((ipv4_if_mapped(socket.local), ipv4_if_mapped(socket.remote)), socket.inode);
        })?;
        Ok(NetworkSockets { listening, ends })
    }

    /// Finds the accepting end of a connection whose opening end has the addresses `local` and
    /// `remote`. Returns the inodes of the accepted connection and of the listeners.
    fn accepting_inodes(&self, (local, remote): &(SocketAddr, SocketAddr)) -> Option<Vec<u32>> {
        let to = self.ends.get(&(*remote, *local))?;
        let listeners = self.listening.get(&remote.port())?;
        Some([to].into_iter().chain(listeners).copied().filter(|inode| *inode != 0).collect())
    }

    /// Returns the connections that were opened in this namespace: their addresses, and their
    /// inodes.
    fn opened_connections(&self) -> impl Iterator<Item = (&(SocketAddr, SocketAddr), &u32)> {
        self.ends.iter().filter(|((local, _), _)| !self.listening.contains_key(&local.port()))
    }
}

/// The dependencies of a server on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DependencyProcesses {
    /// Process ids of the dependencies.
    pub pids: BTreeSet<u32>,
    /// The processes that accept the connections of the server itself: process id by address. The
    /// address is `IP:PORT`, or the name of a unix socket.
    pub accepting_pids: BTreeMap<String, u32>,
}

/// Finds the dependencies of the processes `server` on this machine. A dependency is a process to
/// which the server opened connections over TCP or unix sockets. The dependencies of a dependency
/// count too. The result also includes the descendants of each dependency, and the processes that
/// hold the listening socket on which a dependency accepted the connection.
///
/// `addresses` are addresses in the server's network namespace to which the server is known to send
/// requests, over connections too short to be found here. The result does not include `server`
/// itself, `without` and its descendants, or connections through the server's own `port`. `askers`
/// give access to network namespaces, the server's namespace first.
///
/// A dependency may be an ancestor of the server, such as a supervisor that collects the server's
/// output. If a dependency is an ancestor of the server, its other descendants do not count,
/// because they are unrelated to the server.
fn collect_dependencies(
    askers: &mut [SocketDiagnostics],
    server: &BTreeSet<u32>,
    addresses: &BTreeSet<SocketAddr>,
    port: u16,
    without: u32,
) -> io::Result<DependencyProcesses> {
    let mut networks = Vec::new();
    for (number, asker) in askers.iter_mut().enumerate() {
        // The load may have many connections, so the kernel is asked to leave out all connections
        // with the server's port.
        let filter = if number == 0 { SocketFilter::NeitherPort(port) } else { SocketFilter::Any };
        match NetworkSockets::query_kernel(asker, filter) {
            Ok(sockets) => networks.push(sockets),
            Err(error) if number == 0 => return Err(error),
            Err(_) => {}
        }
    }
    // Connections with both ends on this machine. Each entry of `pairs` has the inode of the
    // opening end, the inodes of the accepting end and its listeners, and the target's name. `None`
    // in place of the first inode means that the server opened the connection.
    let mut pairs: Vec<(Option<u32>, Vec<u32>, String)> = Vec::new();
    for (number, network) in networks.iter().enumerate() {
        for (ends, from) in network.opened_connections() {
            // Each network namespace has its own loopback addresses, so loopback connections never
            // lead to another namespace.
            let elsewhere =
                networks.iter().enumerate().filter(|(other, _)| *other != number && !ends.1.ip().is_loopback());
            let to = network
                .accepting_inodes(ends)
                .or_else(|| elsewhere.into_iter().find_map(|(_, other)| other.accepting_inodes(ends)));
            pairs.extend(to.map(|to| (Some(*from), to, ends.1.to_string())));
        }
    }
    pairs.extend(unix_connection_inodes(askers).into_iter().map(|(from, to, name)| (Some(from), to, name)));
    if let Some(own) = networks.first() {
        let listens = |at: &SocketAddr| Some((None, own.listening.get(&at.port())?.clone(), at.to_string()));
        pairs.extend(addresses.iter().filter_map(listens));
    }
    if pairs.is_empty() || server.is_empty() {
        return Ok(DependencyProcesses::default());
    }
    let wanted: BTreeSet<u32> = pairs.iter().flat_map(|(from, to, _)| to.iter().chain(from)).copied().collect();
    let held = socket_holders_by_inode(&wanted)?;
    let parents: BTreeMap<u32, u32> = processes()?.iter().map(|(pid, (stat, _))| (*pid, stat.parent)).collect();
    let holders_of = |inodes: &[u32]| -> Vec<u32> {
        // Process 1 is left out, because a service manager (process 1) keeps copies of the sockets
        // that it hands over. Also, the descendants of a dependency count as dependencies, and all
        // processes are descendants of process 1.
        inodes.iter().filter_map(|inode| held.get(inode)).flatten().copied().filter(|pid| *pid != 1).collect()
    };
    let ours: BTreeSet<u32> =
        processes_with_descendants(&[without], 0, &parents).into_iter().filter(|pid| !server.contains(pid)).collect();
    let above = ancestor_pids(server, &parents);
    let mut found = server.clone();
    loop {
        let before = found.len();
        for (from, to, _) in &pairs {
            if from.is_none_or(|from| holders_of(&[from]).iter().any(|pid| found.contains(pid))) {
                let (above, beside): (Vec<u32>, Vec<u32>) =
                    holders_of(to).into_iter().partition(|pid| above.contains(pid));
                let pids = processes_with_descendants(&beside, without, &parents).into_iter().chain(above);
                found.extend(pids.filter(|pid| !ours.contains(pid) && *pid != without));
            }
        }
        if found.len() == before {
            break;
        }
    }
    let pids: BTreeSet<u32> = found.difference(server).copied().collect();
    let mut takers = BTreeMap::new();
    for (from, to, leads_to) in &pairs {
        if !takers.contains_key(leads_to)
            && from.is_none_or(|from| holders_of(&[from]).iter().any(|pid| server.contains(pid)))
            && let Some(pid) = holders_of(to).into_iter().find(|pid| pids.contains(pid))
        {
            takers.insert(leads_to.clone(), pid);
        }
    }
    Ok(DependencyProcesses { pids, accepting_pids: takers })
}

/// Finds the dependencies of the processes `server` in all network namespaces of this machine that
/// this user may see. The parameters have the same meaning as in `collect_dependencies`.
pub fn find_dependencies(
    server: &BTreeSet<u32>,
    addresses: &BTreeSet<SocketAddr>,
    port: u16,
    without: u32,
) -> io::Result<DependencyProcesses> {
    let Some(first) = server.first() else { return Ok(DependencyProcesses::default()) };
    let mut askers = vec![SocketDiagnostics::open_process_or_own_namespace(*first)?];
    askers.extend(
        pids_in_other_networks(*first)
            .into_iter()
            .filter_map(|pid| SocketDiagnostics::open_namespace_of_process(pid).ok()),
    );
    collect_dependencies(&mut askers, server, addresses, port, without)
}

/// A connection over a unix socket. Both ends of a connection over a unix socket are in the network
/// namespace of the opening process. A unix socket that listens at a path may be in another
/// namespace than its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixConnection {
    /// The inode of the end that opened the connection.
    pub opening_inode: u32,
    /// The inode of the end that accepted the connection.
    pub accepting_inode: u32,
    /// The listener's name; never empty.
    pub listener_name: Vec<u8>,
    /// The inode of the listener's file, if it has one and the kernel reports it.
    pub file_inode: Option<u32>,
}

impl UnixConnection {
    /// Returns the listener's name as text for the user.
    pub fn name(&self) -> String {
        shown_name(&self.listener_name)
    }

    /// Whether the connection was made to `listener`. `is_near` says whether the listener is in the
    /// network namespace of the connection. Other namespaces may have sockets of the same name, and
    /// an abstract name is valid only within one namespace.
    pub fn leads_to(&self, listener: &UnixSocket, is_near: bool) -> bool {
        self.listener_name == listener.name
            && (is_near || self.file_inode.is_some() && self.file_inode == listener.file_inode)
    }
}

/// Lists the connections over unix sockets. The opening end of a connection has no name, and the
/// accepting end has its listener's name. The list is empty if the kernel does not report peers.
/// Socket pairs are left out, because they have no names and connect only related processes.
pub fn unix_connections(asker: &mut SocketDiagnostics) -> Vec<UnixConnection> {
    pair_unix_sockets(&asker.unix_sockets(states::ESTABLISHED).unwrap_or_default())
}

fn pair_unix_sockets(connected: &[UnixSocket]) -> Vec<UnixConnection> {
    let by_inode: BTreeMap<u32, &UnixSocket> = connected.iter().map(|socket| (socket.inode, socket)).collect();
    let opened = connected.iter().filter(|socket| socket.name.is_empty());
    opened
        .filter_map(|socket| {
            let taken = by_inode.get(&socket.peer_inode?).filter(|taken| !taken.name.is_empty())?;
            let (opening_inode, taker, bytes) = (socket.inode, taken.inode, taken.name.clone());
            Some(UnixConnection {
                opening_inode,
                accepting_inode: taker,
                listener_name: bytes,
                file_inode: taken.file_inode,
            })
        })
        .collect()
}

/// Lists the connections over unix sockets: the inode of the opening end, the inodes of the
/// accepting end and its listeners, and the listener's name.
fn unix_connection_inodes(askers: &mut [SocketDiagnostics]) -> Vec<(u32, Vec<u32>, String)> {
    let listening: Vec<Vec<UnixSocket>> =
        askers.iter_mut().map(|asker| asker.unix_sockets(states::LISTEN).unwrap_or_default()).collect();
    let all = || listening.iter().enumerate().flat_map(|(at, sockets)| sockets.iter().map(move |socket| (at, socket)));
    let mut pairs = Vec::new();
    for (number, asker) in askers.iter_mut().enumerate() {
        pairs.extend(unix_connections(asker).into_iter().map(|link| {
            let listeners = all().filter(|(at, listener)| link.leads_to(listener, *at == number));
            let to = listeners.map(|(_, listener)| listener.inode).chain([link.accepting_inode]).collect();
            (link.opening_inode, to, link.name())
        }));
    }
    pairs
}

/// Returns all ancestors of the processes `pids`.
fn ancestor_pids(pids: &BTreeSet<u32>, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for pid in pids {
        let mut next = parents.get(pid);
        while let Some(parent) = next.filter(|parent| found.insert(**parent)) {
            next = parents.get(parent);
        }
    }
    found.difference(pids).copied().collect()
}

/// Converts an IPv4 address that is written as an IPv6 address to IPv4.
pub fn ipv4_if_mapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the processes that have each of the given sockets open, by the socket's inode. Only
/// processes whose open files this user may see are found.
fn socket_holders_by_inode(inodes: &BTreeSet<u32>) -> io::Result<BTreeMap<u32, Vec<u32>>> {
    let mut held: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbered_entries("/proc")? {
        let Ok(open) = socket_inodes_in_table(pid, pid) else { continue };
        for inode in open.filter(|inode| inodes.contains(inode)) {
            held.entry(inode).or_default().push(pid);
        }
    }
    Ok(held)
}

/// Returns all processes of this machine, with their stat and name.
pub fn processes() -> io::Result<BTreeMap<u32, (Stat, String)>> {
    let mut buffer = Vec::new();
    let all = numbered_entries("/proc")?.into_iter();
    Ok(all.filter_map(|pid| Some((pid, read_process_stat(pid, &mut buffer).ok()?))).collect())
}

/// Returns the topmost processes among `pids`: those whose parent is not among `pids`.
pub fn topmost_processes(pids: &[u32], parent_of: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    pids.iter().copied().filter(|pid| parent_of(*pid).is_none_or(|parent| !pids.contains(&parent))).collect()
}

/// Returns the processes `roots` and all their descendants, ascending. The result does not include
/// the process `without` and its descendants.
pub fn processes_with_descendants(roots: &[u32], without: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    parents.iter().for_each(|(pid, parent)| children.entry(*parent).or_default().push(*pid));
    let mut found = BTreeSet::new();
    let mut open: Vec<u32> = roots.to_vec();
    while let Some(pid) = open.pop() {
        if pid != without && found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn socket_links_are_parsed() {
        for (link, expect) in
            [("socket:[123]", Some(123)), ("socket:[]", None), ("pipe:[5]", None), ("socket:[x]", None), ("", None)]
        {
            assert_eq!(socket_inode(link.as_bytes()), expect, "{link}");
        }
    }

    #[test]
    fn different_options_do_not_make_a_different_program() {
        for (one, other, is_same) in [
            ("node\0--inspect\0app.js\0", "node\0--inspect-port=9230\0app.js\0", true),
            ("python3\0app.py\0", "python3\0store.py\0", false),
            ("python3\0-c\0serve()\0", "python3\0-c\0store()\0", false),
            ("./api\0", "./api\0", true),
            ("", "", true),
        ] {
            assert_eq!(
                non_option_arguments(one.as_bytes()) == non_option_arguments(other.as_bytes()),
                is_same,
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn a_connection_belongs_to_the_listener_at_its_other_end() {
        let at = |text: &str| text.parse::<SocketAddr>().expect(text);
        let network = NetworkSockets {
            listening: BTreeMap::from([(80, vec![7, 8]), (443, vec![0])]),
            ends: BTreeMap::from([
                ((at("10.0.0.1:80"), at("10.0.0.2:5000")), 9),
                ((at("10.0.0.1:443"), at("10.0.0.2:5000")), 0),
                ((at("10.0.0.1:6000"), at("10.0.0.2:80")), 10),
            ]),
        };
        for (local, remote, expect) in [
            ("10.0.0.2:5000", "10.0.0.1:80", Some(&[9, 7, 8][..])),
            // This connection is not accepted yet, so its accepting end has no inode.
            ("10.0.0.2:5000", "10.0.0.1:443", Some(&[])),
            ("10.0.0.2:5001", "10.0.0.1:80", None),
            // This connection leads to another machine, at the port of the listener.
            ("10.0.0.2:5000", "10.0.0.3:80", None),
            // This connection was opened in the network namespace and not accepted there, so no
            // accepting end is found.
            ("10.0.0.2:80", "10.0.0.1:6000", None),
        ] {
            let taken = network.accepting_inodes(&(at(local), at(remote)));
            assert_eq!(taken.as_deref(), expect, "{local} to {remote}");
        }
        let opened: Vec<u32> = network.opened_connections().map(|(_, inode)| *inode).collect();
        assert_eq!(opened, [10]);
    }

    #[test]
    fn unix_connections_lead_to_the_listening_process() {
        let socket = |inode: u32, peer_inode: Option<u32>, name: &str, file_inode: Option<u32>| UnixSocket {
            inode,
            name: name.into(),
            file_inode,
            peer_inode,
            receive_queue: None,
        };
        let connected = [
            socket(1, Some(2), "", None),
            socket(2, Some(1), "/run/store", Some(70)),
            socket(3, Some(4), "", None),
            socket(4, Some(3), "@store", None),
            // The next four unix sockets are a socket pair, a connection that is not accepted yet,
            // and a connection whose peer is gone.
            socket(5, Some(6), "", None),
            socket(6, Some(5), "", None),
            socket(7, None, "", None),
            socket(8, Some(9), "", None),
        ];
        let links = pair_unix_sockets(&connected);
        let ends: Vec<_> = links.iter().map(|link| (link.opening_inode, link.accepting_inode, link.name())).collect();
        assert_eq!(ends, [(1, 2, "/run/store".to_owned()), (3, 4, "@store".to_owned())]);
        for (link, name, file_inode, near, elsewhere) in [
            (&links[0], "/run/store", Some(70), true, true),
            // The listener's file has the same name but another inode, so in another network
            // namespace the file is a different file.
            (&links[0], "/run/store", Some(71), true, false),
            (&links[0], "/run/other", Some(70), false, false),
            // The abstract name of a unix socket has no file, so the name is valid in one network
            // namespace only.
            (&links[1], "@store", None, true, false),
        ] {
            let listener = socket(10, None, name, file_inode);
            assert_eq!(
                (link.leads_to(&listener, true), link.leads_to(&listener, false)),
                (near, elsewhere),
                "{name} {file_inode:?}"
            );
        }
    }

    #[test]
    fn process_families_include_descendants() {
        let parents = BTreeMap::from([(10, 1), (11, 10), (12, 10), (13, 12), (20, 1), (21, 20), (30, 99), (7, 7)]);
        for (roots, without, expect) in [
            (&[10][..], 0, &[10, 11, 12, 13][..]),
            (&[10], 12, &[10, 11]),
            (&[20, 30], 0, &[20, 21, 30]),
            (&[10], 10, &[]),
            (&[7], 0, &[7]),
        ] {
            assert_eq!(processes_with_descendants(roots, without, &parents), expect, "{roots:?} without {without}");
        }
        let parent_of = |pid| parents.get(&pid).copied();
        assert_eq!(topmost_processes(&[10, 11, 12, 20], parent_of), [10, 20]);
        assert_eq!(topmost_processes(&[11, 12], parent_of), [11, 12]);
        assert_eq!(topmost_processes(&[55], parent_of), [55]);
    }

    #[test]
    fn the_process_behind_a_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let sockets = tcp_listeners_on(&mut asker, address).expect("asked");
        assert_eq!(sockets.len(), 1);
        let found = socket_holders(&sockets.iter().map(|s| s.inode).collect()).expect("looked");
        assert!(found.pids.contains(&std::process::id()), "{found:?}");
        let wildcard = TcpListener::bind("0.0.0.0:0").expect("bound");
        let port = wildcard.local_addr().expect("an address").port();
        let sockets = tcp_listeners_on(&mut asker, SocketAddr::from(([127, 0, 0, 1], port))).expect("asked");
        assert_eq!(sockets.len(), 1, "a wildcard takes connections to the loopback");
        drop((listener, wildcard));
        assert_eq!(tcp_listeners_on(&mut asker, address).expect("asked"), []);
        let all = processes().expect("looked");
        assert!(all.contains_key(&std::process::id()));
    }
}
