//! The server's own connections to other processes (databases, caches, other services), by peer,
//! over TCP and unix sockets. This module also reads unsent bytes on connections that clients
//! opened to other ports of the server.
//!
//! The kernel's list of connections does not name the process that owns a connection. A process's
//! open files show its connections, but a server may have many thousands of open files. This module
//! therefore searches open files only if a connection could be the server's own, and only a few
//! files at a time.

use super::downstream::DependencyAddresses;
use super::server::SharedFileTables;
use super::sink::{ReadingExtent, ReadingSchedule, Sink};
use plimsoll_sys::probe::listener::{
    UnixConnection, ipv4_if_mapped, pids_in_other_networks, socket_inode, unix_connections,
};
use plimsoll_sys::probe::process::files_folder;
use plimsoll_sys::probe::sockets::{IpVersion, SocketDiagnostics, SocketFilter, SocketRow, states};
use plimsoll_sys::probe::unix_diag::UnixSocket;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::ReadDir;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;

/// The largest number of peers that get their own time series: the peers with the most connections.
const PEERS_MAX: usize = 8;
/// The number of open files that one sample searches at the lowest effort (`ProbeEffort::Little`).
/// A higher effort, which allows the probes more CPU time, multiplies this number.
const FILES_PER_SAMPLE: u64 = 64;
/// The number of open files that one sample searches without CPU budget, if the search has already
/// waited long for budget.
const FILES_PER_SAMPLE_MIN: u64 = 32;
/// The time since the start of a search after which the search continues even without CPU budget,
/// ns.
const SEARCH_BUDGET_WAIT_NS_MAX: u64 = 1_000_000_000;
/// The shortest time between two snapshots, ns. For a snapshot, the kernel reads its whole table of
/// connections, which takes milliseconds on a machine with much memory.
const SNAPSHOT_PERIOD_NS: u64 = 1_000_000_000;
/// The shortest time between two readings of open calls, ns. A reading looks up only the server's
/// known connections. A load of a few seconds then has enough readings for the mean number of
/// calls.
const OPEN_CALLS_PERIOD_NS: u64 = 100_000_000;
/// The largest number of connections that a reading of open calls looks up. Such a reading takes
/// less than a millisecond. A server with more connections has only the snapshots.
const LOOKED_UP_CONNECTIONS_MAX: usize = 64;
/// The longest duration of a search through open files, ns. A longer search is reported to the
/// user, because connections were not read during the search.
const SEARCH_NS_MAX: u64 = 5_000_000_000;

/// The time after received data within which more of the same response may follow, ms. The kernel
/// counts the age of received data in ticks of up to 10 ms, so 40 ms cover several ticks.
const RECENT_DATA_MS: u32 = 40;

const CONNECTIONS_DENIED_TEXT: &str = "the server's own connections cannot be read: the process belongs to another user (run plimsoll \
    as that user or as root)";

pub struct PeerProbe {
    tables: SharedFileTables,
    /// Addresses on this machine to which the server is known to send requests. This probe and the
    /// probe of dependencies (`downstream`) share the list of addresses.
    dependency_addresses: DependencyAddresses,
    snapshot_schedule: ReadingSchedule,
    open_calls_schedule: ReadingSchedule,
    /// The server's own TCP connections in the last snapshot.
    own_connections: BTreeSet<TcpConnection>,
    /// Whether the last two snapshots had the same TCP connections of the server.
    are_connections_stable: bool,
    /// Access to other network namespaces, which contain peers of connections that the server may
    /// have opened.
    foreign_namespaces: Vec<SocketDiagnostics>,
    foreign_schedule: ReadingSchedule,
    /// The owner of each socket, by inode.
    owners: BTreeMap<u32, SocketOwner>,
    /// The last snapshot of connections, kept until their owners are known.
    snapshot: Option<ConnectionSnapshot>,
    search: Option<OpenFileSearch>,
    known: BTreeSet<PeerAddress>,
    /// The traffic of each connection since the connection was opened, at the last snapshot, by
    /// inode.
    lifetime_traffic: BTreeMap<u32, LifetimeTraffic>,
    /// The traffic of the server's connections so far, by peer: data segments that the server sent,
    /// and bytes that the server received.
    traffic_by_peer: BTreeMap<PeerAddress, (u64, u64)>,
}

/// The traffic of a connection since the connection was opened.
#[derive(Debug, Clone, Copy, Default)]
struct LifetimeTraffic {
    /// The number of data segments sent, modulo 2^32.
    segments_sent: u32,
    bytes_received: u64,
}

/// The owner of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketOwner {
    Server,
    /// Another process owns the socket: the socket exists, but is not among the server's open
    /// files.
    Other,
    /// The owner is unknown. The socket is not among the server's open files, but the search took
    /// so long that the server may have closed the socket meanwhile.
    NotFound,
}

/// A snapshot of connections that could be the server's own.
struct ConnectionSnapshot {
    at_ns: u64,
    connections: Vec<CandidateConnection>,
    /// The port and inode of listening sockets that could be the server's, except on the target's
    /// port.
    listeners: Vec<(u16, u32)>,
    /// The number of unsent bytes on connections accepted on the ports of `listeners`, by port.
    unsent: BTreeMap<u16, u64>,
    /// The accept queue lengths of listeners on this machine to which the server may have
    /// connections.
    queued: BTreeMap<PeerAddress, u64>,
    /// The accept queue lengths of listeners in other network namespaces, by the address in the
    /// listener's namespace.
    foreign_accept_queues: BTreeMap<SocketAddr, u64>,
    /// Connections from the server's network namespace to peers that no searched network namespace
    /// contains.
    outside: OutsidePeers,
}

/// Connections whose peer is outside the searched network namespaces, on another machine or in a
/// container. Each connection has only one of its two ends in the searched namespaces.
#[derive(Debug, Default)]
struct OutsidePeers {
    /// TCP connections, each as two addresses: the end in a searched namespace, then the peer.
    ends: BTreeSet<(SocketAddr, SocketAddr)>,
    /// Connections over unix sockets to a path without a listener in the client's namespace.
    unix_connections: Vec<UnixConnection>,
}

impl OutsidePeers {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.unix_connections.is_empty()
    }

    /// Whether the network namespace of `asker` contains one of the outside peers or the listener
    /// of an outside peer.
    fn exist_in_namespace(&self, asker: &mut SocketDiagnostics) -> bool {
        let listening = asker.unix_sockets(states::LISTEN).unwrap_or_default();
        let of_unix = self.unix_connections.iter().any(|link| listening.iter().any(|it| link.leads_to(it, false)));
        of_unix || !read_foreign_peers(asker, &self.ends).queued.is_empty()
    }
}

impl ConnectionSnapshot {
    /// Returns the inodes of all sockets that could be the server's own.
    fn candidate_inodes(&self) -> impl Iterator<Item = u32> {
        let listeners = self.listeners.iter().map(|(_, inode)| *inode);
        self.connections.iter().map(|connection| connection.inode).chain(listeners)
    }
}

/// The peer of a connection that the server opened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PeerAddress {
    Address(SocketAddr),
    /// The path of a unix socket, or its name after `@`.
    Unix(String),
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAddress::Address(address) => address.fmt(f),
            PeerAddress::Unix(name) => f.write_str(name),
        }
    }
}

/// A connection that could be the server's own.
struct CandidateConnection {
    inode: u32,
    /// The server's end of a TCP connection; `None` over unix sockets.
    local: Option<SocketAddr>,
    peer: PeerAddress,
    /// The traffic of the connection; `None` over unix sockets.
    traffic: Option<PeerTraffic>,
    /// The traffic of the connection since the connection was opened, if the kernel reports the
    /// traffic.
    lifetime_traffic: Option<LifetimeTraffic>,
}

impl CandidateConnection {
    fn tcp_connection(&self) -> Option<TcpConnection> {
        match (self.local, &self.peer) {
            (Some(local), PeerAddress::Address(peer)) => Some(TcpConnection { inode: self.inode, local, peer: *peer }),
            _ => None,
        }
    }
}

/// A TCP connection of the server to a dependency.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TcpConnection {
    inode: u32,
    local: SocketAddr,
    peer: SocketAddr,
}

/// The state of the connections to a peer.
#[derive(Debug, Clone, Copy, Default)]
struct PeerTraffic {
    /// The number of connections that wait for a response.
    waiting: u64,
    /// The number of connections on which a response probably still arrives: data came recently,
    /// and the server sent nothing since.
    responses_arriving: u64,
    /// The number of bytes from the peer that the server has not read.
    unread: u64,
    /// The number of bytes that the server has written and the peer has not acknowledged.
    unsent: u64,
    /// The number of bytes that a peer on this machine has written and the server has not received.
    bytes_in_transit: u64,
}

impl PeerTraffic {
    /// Returns the state of one connection, without the bytes in transit, which only the peer's
    /// socket shows.
    fn of_socket(socket: &SocketRow) -> PeerTraffic {
        PeerTraffic {
            waiting: u64::from(socket.awaits_answer.unwrap_or(false)),
            responses_arriving: u64::from(socket.ms_since_data.is_some_and(|ms| ms < RECENT_DATA_MS)),
            unread: u64::from(socket.receive_queue),
            unsent: u64::from(socket.send_queue),
            bytes_in_transit: 0,
        }
    }

    fn add(&mut self, other: &PeerTraffic) {
        self.waiting += other.waiting;
        self.responses_arriving += other.responses_arriving;
        self.unread += other.unread;
        self.unsent += other.unsent;
        self.bytes_in_transit += other.bytes_in_transit;
    }
}

/// A search through the open files of the server's processes.
struct OpenFileSearch {
    since_ns: u64,
    left: Vec<(u32, u32)>,
    folder: Option<(String, ReadDir)>,
    denied: bool,
}

impl PeerProbe {
    pub fn new(tables: SharedFileTables, dependency_addresses: DependencyAddresses) -> PeerProbe {
        PeerProbe {
            tables,
            dependency_addresses,
            snapshot_schedule: ReadingSchedule::new(SNAPSHOT_PERIOD_NS),
            open_calls_schedule: ReadingSchedule::new(OPEN_CALLS_PERIOD_NS),
            own_connections: BTreeSet::new(),
            are_connections_stable: false,
            foreign_namespaces: Vec::new(),
            foreign_schedule: ReadingSchedule::new(10_000_000_000),
            owners: BTreeMap::new(),
            snapshot: None,
            search: None,
            known: BTreeSet::new(),
            lifetime_traffic: BTreeMap::new(),
            traffic_by_peer: BTreeMap::new(),
        }
    }

    /// Takes a snapshot of the connections that do not use `port`, and continues the search for
    /// their owners. Reports the readings of a snapshot once the search is complete.
    pub fn sample(&mut self, asker: &mut SocketDiagnostics, port: u16, now_ns: u64, sink: &mut Sink) {
        if self.tables.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        if self.snapshot.is_none() {
            self.read_open_calls(asker, now_ns, sink);
            let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let PeerProbe { snapshot_schedule, foreign_namespaces, .. } = self;
            let found = snapshot_schedule.read_if_due(sink, || {
                let is_denied = tables.iter().all(|(pid, table)| is_file_table_denied(*pid, *table));
                (!is_denied).then(|| snapshot_candidate_connections(asker, foreign_namespaces, port))
            });
            let seen = match found {
                Some(Some(Ok(seen))) => ConnectionSnapshot { at_ns: now_ns, ..seen },
                Some(None) => {
                    sink.report_unobserved_part(CONNECTIONS_DENIED_TEXT);
                    return;
                }
                // No reading is due, or the kernel refuses the list of connections. The accept
                // queue of the target's port is read elsewhere (`sockets`).
                Some(Some(Err(_))) | None => return,
            };
            if !seen.outside.is_empty()
                && let Some((pid, _)) = tables.first()
            {
                let found = self.foreign_schedule.read_if_due(sink, || {
                    let mut askers: Vec<SocketDiagnostics> = pids_in_other_networks(*pid)
                        .into_iter()
                        .filter_map(|pid| SocketDiagnostics::open_namespace_of_process(pid).ok())
                        .collect();
                    askers.retain_mut(|asker| seen.outside.exist_in_namespace(asker));
                    askers
                });
                self.foreign_namespaces.extend(found.into_iter().flatten());
            }
            let inodes: BTreeSet<u32> = seen.candidate_inodes().collect();
            let unknown = inodes.iter().any(|inode| !self.owners.contains_key(inode));
            // The kernel reuses inode numbers, so owners of closed sockets are forgotten.
            self.owners.retain(|known, _| inodes.contains(known));
            for owner in self.owners.values_mut().filter(|owner| **owner == SocketOwner::NotFound) {
                *owner = SocketOwner::Other;
            }
            self.snapshot = Some(seen);
            if unknown {
                self.search = Some(OpenFileSearch { since_ns: now_ns, left: tables, folder: None, denied: false });
            }
        }
        let since_ns = self.search.as_ref().map_or(now_ns, |search| search.since_ns);
        match sink.extent() {
            ReadingExtent::Usual => {
                self.continue_file_search(now_ns, FILES_PER_SAMPLE * sink.effort().cpu_budget_factor(), sink)
            }
            // A search that has waited long continues even without budget, because a server whose
            // readings always exhaust the budget would prevent the search for ever.
            ReadingExtent::Least if now_ns.saturating_sub(since_ns) >= SEARCH_BUDGET_WAIT_NS_MAX => {
                self.continue_file_search(now_ns, FILES_PER_SAMPLE_MIN, sink);
            }
            ReadingExtent::Least | ReadingExtent::Edge => {}
        }
        if self.search.is_none()
            && let Some(seen) = self.snapshot.take()
        {
            self.report_peer_readings(&seen, sink);
        }
    }

    /// Reports the open calls on the server's known connections, between two snapshots. Reports
    /// nothing if the server opens and closes connections, because a connection that was opened
    /// since the snapshot may have a call.
    fn read_open_calls(&mut self, asker: &mut SocketDiagnostics, now_ns: u64, sink: &mut Sink) {
        let connections = &self.own_connections;
        if !self.are_connections_stable || connections.is_empty() || connections.len() > LOOKED_UP_CONNECTIONS_MAX {
            return;
        }
        let read = self.open_calls_schedule.read_if_due(sink, || {
            let mut by_peer: BTreeMap<SocketAddr, PeerTraffic> = BTreeMap::new();
            for TcpConnection { inode, local, peer } in connections {
                let socket = asker.connection_at(*local, *peer).ok()??;
                let traffic = (socket.inode == *inode).then(|| PeerTraffic::of_socket(&socket))?;
                by_peer.entry(*peer).or_default().add(&traffic);
            }
            Some(by_peer)
        });
        match read {
            Some(Some(by_peer)) => {
                for (peer, traffic) in by_peer {
                    if self.known.contains(&PeerAddress::Address(peer)) {
                        sink.gauge_at(&format!("peer.{peer}.waiting"), "", now_ns, traffic.waiting as f64);
                        sink.gauge_at(&format!("peer.{peer}.coming"), "", now_ns, traffic.responses_arriving as f64);
                    }
                }
            }
            Some(None) => self.are_connections_stable = false,
            None => {}
        }
    }

    /// Searches the next `files` open files for sockets of the snapshot.
    fn continue_file_search(&mut self, now_ns: u64, files: u64, sink: &mut Sink) {
        let (Some(search), Some(seen)) = (&mut self.search, &self.snapshot) else { return };
        for _ in 0..files {
            let Some(inode) = search.next() else {
                for inode in seen.candidate_inodes() {
                    self.owners.entry(inode).or_insert(SocketOwner::NotFound);
                }
                if search.denied {
                    sink.report_unobserved_part(CONNECTIONS_DENIED_TEXT);
                }
                self.search = None;
                return;
            };
            if let Some(inode) = inode
                && seen.candidate_inodes().any(|candidate| candidate == inode)
            {
                self.owners.insert(inode, SocketOwner::Server);
                if seen.candidate_inodes().all(|candidate| self.owners.contains_key(&candidate)) {
                    self.search = None;
                    return;
                }
            }
        }
        if now_ns.saturating_sub(search.since_ns) > SEARCH_NS_MAX {
            sink.report_unobserved_part(
                "the server's own connections were not read during a part of the load: the server has too many open \
                 files to search",
            );
        }
    }

    /// Returns the server's connections in a snapshot. A connection that is closed after each
    /// request is gone before the search finds its owner. A connection with an unknown owner counts
    /// as the server's own if only the server is known to connect to the same peer.
    fn server_connections<'a>(&self, seen: &'a ConnectionSnapshot) -> Vec<&'a CandidateConnection> {
        let of =
            |owner: SocketOwner| seen.connections.iter().filter(move |it| self.owners.get(&it.inode) == Some(&owner));
        let others: BTreeSet<&PeerAddress> = of(SocketOwner::Other).map(|connection| &connection.peer).collect();
        let known: BTreeSet<&PeerAddress> =
            of(SocketOwner::Server).map(|connection| &connection.peer).chain(&self.known).collect();
        let short = of(SocketOwner::NotFound).filter(|it| known.contains(&it.peer) && !others.contains(&it.peer));
        of(SocketOwner::Server).chain(short).collect()
    }

    fn report_peer_readings(&mut self, snapshot: &ConnectionSnapshot, sink: &mut Sink) {
        // For each peer, `found` has the number of connections to the peer, and the sum of the
        // connections' traffic.
        let mut found: BTreeMap<&PeerAddress, (u64, Option<PeerTraffic>)> = BTreeMap::new();
        let mut now = BTreeMap::new();
        let mut own_connections = BTreeSet::new();
        for connection in self.server_connections(snapshot) {
            own_connections.extend(connection.tcp_connection());
            let (all, traffic) = found.entry(&connection.peer).or_default();
            *all += 1;
            if let Some(more) = &connection.traffic {
                traffic.get_or_insert_default().add(more);
            }
            if let Some(carried) = connection.lifetime_traffic {
                // A connection that the last snapshot does not contain is new, so all of its
                // traffic belongs to the time since that snapshot.
                let before = self.lifetime_traffic.get(&connection.inode).copied().unwrap_or_default();
                now.insert(connection.inode, carried);
                let (segments, bytes) = self.traffic_by_peer.entry(connection.peer.clone()).or_default();
                *segments += u64::from(carried.segments_sent.wrapping_sub(before.segments_sent));
                *bytes += carried.bytes_received.saturating_sub(before.bytes_received);
            }
        }
        self.lifetime_traffic = now;
        self.are_connections_stable = own_connections == self.own_connections;
        self.own_connections = own_connections;
        let mut most: Vec<(&PeerAddress, u64)> = found.iter().map(|(peer, (count, _))| (*peer, *count)).collect();
        most.sort_by_key(|(peer, count)| (std::cmp::Reverse(*count), *peer));
        for (peer, _) in most {
            if self.known.len() < PEERS_MAX && !self.known.contains(peer) {
                self.known.insert(peer.clone());
                if let PeerAddress::Address(address) = peer
                    && snapshot.queued.contains_key(peer)
                {
                    self.dependency_addresses.lock().unwrap_or_else(PoisonError::into_inner).insert(*address);
                }
            }
        }
        for peer in &self.known {
            let (count, traffic) = found.remove(peer).unwrap_or_default();
            let traffic = traffic.or_else(|| (!matches!(peer, PeerAddress::Unix(_))).then(PeerTraffic::default));
            let mut tell = |what: &str, unit: &str, value: u64| {
                sink.gauge_at(&format!("peer.{peer}.{what}"), unit, snapshot.at_ns, value as f64);
            };
            tell("connections", "", count);
            let elsewhere = || match peer {
                PeerAddress::Address(address) => snapshot.foreign_accept_queues.get(&ipv4_if_mapped(*address)),
                PeerAddress::Unix(_) => None,
            };
            if let Some(queued) = snapshot.queued.get(peer).or_else(elsewhere) {
                tell("queued", "", *queued);
            }
            if let Some(traffic) = traffic {
                tell("waiting", "", traffic.waiting);
                tell("coming", "", traffic.responses_arriving);
                tell("unread", "bytes", traffic.unread);
                tell("unsent", "bytes", traffic.unsent);
                tell("on_the_way", "bytes", traffic.bytes_in_transit);
            }
            if let Some((segments, bytes)) = self.traffic_by_peer.get(peer) {
                sink.counter_at(&format!("peer.{peer}.segments_sent"), "", snapshot.at_ns, *segments as f64);
                sink.counter_at(&format!("peer.{peer}.received"), "bytes", snapshot.at_ns, *bytes as f64);
            }
        }
        let own = snapshot.listeners.iter().filter(|(_, inode)| self.owners.get(inode) == Some(&SocketOwner::Server));
        for port in own.map(|(port, _)| *port).collect::<BTreeSet<u16>>() {
            let unsent = snapshot.unsent.get(&port).copied().unwrap_or(0);
            sink.gauge_at(&format!("peer.:{port}.unsent"), "bytes", snapshot.at_ns, unsent as f64);
        }
        if !found.is_empty() {
            sink.gauge_at(
                "peer.others.connections",
                "",
                snapshot.at_ns,
                found.values().map(|(count, _)| count).sum::<u64>() as f64,
            );
        }
    }
}

fn is_file_table_denied(pid: u32, table: u32) -> bool {
    std::fs::read_dir(files_folder(pid, table)).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Takes a snapshot of connections that may be the server's own, in the network namespace of
/// `asker`. The peers of the connections may be in the namespaces of `elsewhere`.
fn snapshot_candidate_connections(
    asker: &mut SocketDiagnostics,
    elsewhere: &mut [SocketDiagnostics],
    port: u16,
) -> std::io::Result<ConnectionSnapshot> {
    // A connection that the server accepted on another of its ports, such as for metrics, does not
    // lead to a dependency.
    let mut listeners = Vec::new();
    let mut queues = AcceptQueues::default();
    asker.for_each_socket(IpVersion::BOTH, states::LISTEN, SocketFilter::Any, false, &mut |socket| {
        if socket.local.port() != port && socket.inode != 0 {
            listeners.push((socket.local.port(), socket.inode));
            queues.add(socket.local, u64::from(socket.receive_queue));
        }
    })?;
    let incoming: BTreeSet<u16> = listeners.iter().map(|(port, _)| *port).collect();
    let (mut found, mut taken) = (Vec::new(), BTreeMap::new());
    asker.for_each_socket(
        IpVersion::BOTH,
        states::ESTABLISHED,
        SocketFilter::NeitherPort(port),
        true,
        &mut |socket| {
            if incoming.contains(&socket.local.port()) {
                // An accepted connection is recorded only if it has unsent bytes, because other
                // accepted connections add nothing to the sums.
                if socket.send_queue > 0 {
                    taken.insert(
                        (ipv4_if_mapped(socket.local), ipv4_if_mapped(socket.remote)),
                        u64::from(socket.send_queue),
                    );
                }
            } else if socket.inode != 0 {
                let traffic = PeerTraffic::of_socket(socket);
                let carried = socket.segments_sent.zip(socket.bytes_received);
                let carried =
                    carried.map(|(segments_sent, bytes_received)| LifetimeTraffic { segments_sent, bytes_received });
                let (inode, peer) = (socket.inode, PeerAddress::Address(socket.remote));
                found.push(CandidateConnection {
                    inode,
                    local: Some(socket.local),
                    peer,
                    traffic: Some(traffic),
                    lifetime_traffic: carried,
                });
            }
        },
    )?;
    let (mut queued, mut outside) = (BTreeMap::new(), OutsidePeers::default());
    for connection in &mut found {
        if let (Some(TcpConnection { local, peer, .. }), Some(traffic)) =
            (connection.tcp_connection(), &mut connection.traffic)
        {
            traffic.bytes_in_transit = taken.get(&(ipv4_if_mapped(peer), ipv4_if_mapped(local))).copied().unwrap_or(0);
            match queues.queue_length(local, peer) {
                Some(count) => {
                    queued.insert(connection.peer.clone(), count);
                }
                // Each network namespace has its own loopback addresses, so a peer with a loopback
                // address cannot be in another namespace.
                None if peer.ip().to_canonical().is_loopback() => {}
                None => {
                    outside.ends.insert((ipv4_if_mapped(local), ipv4_if_mapped(peer)));
                }
            }
        }
    }
    let links = unix_connections(asker);
    let mut listening = asker.unix_sockets(states::LISTEN).unwrap_or_default();
    outside.unix_connections =
        links.iter().filter(|link| !listening.iter().any(|it| link.leads_to(it, true))).cloned().collect();
    for asker in elsewhere.iter_mut() {
        let far = asker.unix_sockets(states::LISTEN).unwrap_or_default();
        let wanted = |it: &UnixSocket| outside.unix_connections.iter().any(|link| link.leads_to(it, false));
        listening.extend(far.into_iter().filter(wanted));
    }
    outside.unix_connections.retain(|link| !listening.iter().any(|it| link.leads_to(it, false)));
    let mut foreign_accept_queues = BTreeMap::new();
    for asker in elsewhere {
        let far = read_foreign_peers(asker, &outside.ends);
        foreign_accept_queues.extend(far.queued);
        for connection in &mut found {
            if let (Some(TcpConnection { local, peer, .. }), Some(traffic)) =
                (connection.tcp_connection(), &mut connection.traffic)
            {
                traffic.bytes_in_transit +=
                    far.unsent.get(&(ipv4_if_mapped(peer), ipv4_if_mapped(local))).copied().unwrap_or(0);
            }
        }
    }
    outside.ends.retain(|(_, peer)| !foreign_accept_queues.contains_key(peer));
    let mut connections = found;
    connections.extend(links.into_iter().map(|link| {
        let peer = PeerAddress::Unix(link.name());
        CandidateConnection { inode: link.opening_inode, local: None, peer, traffic: None, lifetime_traffic: None }
    }));
    for listener in listening {
        if let Some(count) = listener.receive_queue {
            *queued.entry(PeerAddress::Unix(listener.shown_name())).or_default() += u64::from(count);
        }
    }
    let mut unsent: BTreeMap<u16, u64> = BTreeMap::new();
    for ((local, _), bytes) in taken {
        *unsent.entry(local.port()).or_default() += bytes;
    }
    Ok(ConnectionSnapshot { at_ns: 0, connections, listeners, unsent, queued, foreign_accept_queues, outside })
}

/// Facts about peers that were found in another network namespace.
#[derive(Default)]
struct ForeignPeers {
    /// Lengths of accept queues in the other namespace, by the address of the listener's end of a
    /// connection.
    queued: BTreeMap<SocketAddr, u64>,
    /// The number of bytes that a peer in the other namespace has written and the server has not
    /// received, by peer and server address.
    unsent: BTreeMap<(SocketAddr, SocketAddr), u64>,
}

/// Reads the accept queues and unsent bytes of the peers of `ends` in the namespace of `asker`.
fn read_foreign_peers(asker: &mut SocketDiagnostics, ends: &BTreeSet<(SocketAddr, SocketAddr)>) -> ForeignPeers {
    if ends.is_empty() {
        return ForeignPeers::default();
    }
    let mut queues = AcceptQueues::default();
    let listening = asker.for_each_socket(IpVersion::BOTH, states::LISTEN, SocketFilter::Any, false, &mut |socket| {
        queues.add(socket.local, u64::from(socket.receive_queue));
    });
    let mut found = ForeignPeers::default();
    let taken = asker.for_each_socket(IpVersion::BOTH, states::ESTABLISHED, SocketFilter::Any, false, &mut |socket| {
        let (local, remote) = (ipv4_if_mapped(socket.local), ipv4_if_mapped(socket.remote));
        if ends.contains(&(remote, local)) {
            found.queued.extend(queues.queue_length(local, local).map(|count| (local, count)));
            if socket.send_queue > 0 {
                found.unsent.insert((local, remote), u64::from(socket.send_queue));
            }
        }
    });
    if listening.and(taken).is_ok() { found } else { ForeignPeers::default() }
}

/// Lengths of accept queues, by the address of the listener.
#[derive(Default)]
struct AcceptQueues {
    bound: BTreeMap<SocketAddr, u64>,
    /// Lengths of the queues of wildcard listeners, by port.
    anywhere: BTreeMap<u16, u64>,
}

impl AcceptQueues {
    fn add(&mut self, listener: SocketAddr, count: u64) {
        let queue = match listener.ip().is_unspecified() {
            true => self.anywhere.entry(listener.port()).or_default(),
            false => self.bound.entry(ipv4_if_mapped(listener)).or_default(),
        };
        *queue += count;
    }

    /// Returns the length of the accept queue for a connection from `local` to `peer`; `None` if no
    /// listener of this network namespace accepts the connection.
    fn queue_length(&self, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
        let (local, peer) = (ipv4_if_mapped(local), ipv4_if_mapped(peer));
        let is_here = peer.ip().is_loopback() || peer.ip() == local.ip();
        let anywhere = || self.anywhere.get(&peer.port()).filter(|_| is_here);
        self.bound.get(&peer).or_else(anywhere).copied()
    }
}

impl OpenFileSearch {
    /// Returns the next open file: `Some(Some(inode))` for a socket, `Some(None)` for another file;
    /// `None` if there are no more files.
    fn next(&mut self) -> Option<Option<u32>> {
        loop {
            if self.folder.is_none() {
                let (pid, table) = self.left.pop()?;
                let path = files_folder(pid, table);
                match std::fs::read_dir(&path) {
                    Ok(entries) => self.folder = Some((path, entries)),
                    // Any error but "permission denied" means that the process has ended.
                    Err(error) => self.denied |= error.kind() == ErrorKind::PermissionDenied,
                }
            }
            if let Some((path, entries)) = &mut self.folder {
                match entries.next() {
                    Some(Ok(entry)) => {
                        path.push('/');
                        let folder_length = path.len();
                        path.push_str(&entry.file_name().to_string_lossy());
                        let link = std::fs::read_link(&path);
                        path.truncate(folder_length - 1);
                        return Some(link.ok().and_then(|link| socket_inode(link.as_os_str().as_bytes())));
                    }
                    Some(Err(_)) | None => self.folder = None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sys::clock::{monotonic_ns, thread_cpu_ns};

    #[test]
    fn queued_connections_belong_to_their_local_listener() {
        let at = |text: &str| text.parse::<SocketAddr>().expect(text);
        let mut queues = AcceptQueues::default();
        for (listener, count) in [("127.0.0.1:9000", 3), ("0.0.0.0:3306", 5), ("[::]:6379", 7), ("10.0.0.1:80", 2)] {
            queues.add(at(listener), count);
        }
        // Two listeners share an address and port, so the lengths of their accept queues are added.
        queues.add(at("127.0.0.1:9000"), 1);
        for (local, peer, expect) in [
            ("127.0.0.1:40000", "127.0.0.1:9000", Some(4)),
            ("127.0.0.1:40000", "127.0.0.1:3306", Some(5)),
            ("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:3306", Some(5)),
            ("10.0.0.1:40000", "10.0.0.1:6379", Some(7)),
            ("10.0.0.2:40000", "10.0.0.1:80", Some(2)),
            // The peer is on another machine and has the port number of a listener on this machine.
            ("10.0.0.1:40000", "10.0.0.9:3306", None),
            ("127.0.0.1:40000", "127.0.0.1:9001", None),
        ] {
            assert_eq!(queues.queue_length(at(local), at(peer)), expect, "{local} {peer}");
        }
    }

    /// Checks that the search finds the owners of connections even if other readings of the server
    /// exhaust the CPU budget of the probes.
    #[test]
    fn own_connections_are_found_despite_an_exhausted_budget() {
        use crate::sink::{ProbeEffort, ReadingExtent};
        let store = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = store.local_addr().expect("bound");
        let _link = std::net::TcpStream::connect(address).expect("connected");
        let me = std::process::id();
        let tables = SharedFileTables::default();
        tables.lock().expect("no panic").push((me, me));
        let mut peers = PeerProbe::new(tables, DependencyAddresses::default());
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Little);
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() < start_ns + 100_000_000 {}
        let name = format!("peer.{address}.connections");
        let is_told = (0..80).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            sink.begin_sample(monotonic_ns(), false);
            assert_eq!(sink.extent(), ReadingExtent::Least);
            peers.sample(&mut asker, 1, monotonic_ns(), &mut sink);
            sink.take().series.contains_key(&name)
        });
        assert!(is_told, "{name}");
    }

    #[test]
    fn open_calls_are_read_between_snapshots() {
        use crate::sink::ProbeEffort;
        use std::io::Write;
        let store = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = store.local_addr().expect("bound");
        let mut call = std::net::TcpStream::connect(address).expect("connected");
        let me = std::process::id();
        let tables = SharedFileTables::default();
        tables.lock().expect("no panic").push((me, me));
        let mut peers = PeerProbe::new(tables, DependencyAddresses::default());
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Thorough);
        call.write_all(b"?").expect("written");
        let mut found = BTreeMap::new();
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            sink.begin_sample(monotonic_ns(), false);
            peers.sample(&mut asker, 1, monotonic_ns(), &mut sink);
            for (name, series) in sink.take().series {
                let values = series.samples_between(i64::MIN, i64::MAX).iter().map(|sample| sample.value);
                found.entry(name).or_insert_with(Vec::new).extend(values);
            }
            let readings = |what: &str| found.get(&format!("peer.{address}.{what}")).map_or(0, Vec::len);
            if readings("waiting") > readings("connections") {
                break;
            }
        }
        // Each snapshot counts the connections, so further readings of calls are lookups.
        let (calls, connections) =
            (&found[&format!("peer.{address}.waiting")], &found[&format!("peer.{address}.connections")]);
        assert!(calls.len() > connections.len(), "{found:?}");
        assert!(calls.iter().all(|count| *count == 1.0), "{calls:?}");
    }

    #[test]
    fn short_lived_connections_belong_to_the_known_client_of_their_peer() {
        use SocketOwner::{NotFound, Other, Server};
        let leads = |peer: u16| PeerAddress::Address(SocketAddr::from(([127, 0, 0, 1], peer)));
        let check = |known: &[u16], sockets: &[(u32, u16, SocketOwner)], expect: &[u32]| {
            let mut peers = PeerProbe::new(SharedFileTables::default(), DependencyAddresses::default());
            peers.known = known.iter().map(|peer| leads(*peer)).collect();
            peers.owners = sockets.iter().map(|(inode, _, owner)| (*inode, *owner)).collect();
            let connection = |inode: u32, peer: u16| CandidateConnection {
                inode,
                local: None,
                peer: leads(peer),
                traffic: None,
                lifetime_traffic: None,
            };
            let seen = ConnectionSnapshot {
                at_ns: 0,
                connections: sockets.iter().map(|(inode, peer, _)| connection(*inode, *peer)).collect(),
                listeners: Vec::new(),
                unsent: BTreeMap::new(),
                queued: BTreeMap::new(),
                foreign_accept_queues: BTreeMap::new(),
                outside: OutsidePeers::default(),
            };
            let own: BTreeSet<u32> =
                peers.server_connections(&seen).iter().map(|connection| connection.inode).collect();
            assert_eq!(own, expect.iter().copied().collect(), "{known:?} {sockets:?}");
        };
        check(&[], &[(1, 5432, Server), (2, 5432, Other)], &[1]);
        // Connections with the owner `NotFound` were closed before the search found them. The owner
        // of a closed connection follows from another connection to the same peer, found now or
        // earlier.
        check(&[], &[(1, 6379, Server), (2, 6379, NotFound), (3, 80, NotFound)], &[1, 2]);
        check(&[6379], &[(2, 6379, NotFound), (3, 80, NotFound)], &[2]);
        check(&[6379], &[(2, 6379, NotFound), (3, 6379, Other)], &[]);
    }
}
