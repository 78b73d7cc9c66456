//! The server's own connections to others (databases, caches, further services), by peer, over TCP
//! and unix sockets; and what lies unsent in those that others have opened to further ports of its
//! own.
//!
//! The kernel tells of connections without saying whose they are; a process's open files tell
//! whose, but there may be many thousands, most of them connections that were taken. So nothing is
//! looked for unless there is a connection that could be the server's own; then its open files are
//! gone through a few at a time.

use super::downstream::DependencyAddresses;
use super::server::Tables;
use super::sink::{Extent, Seldom, Sink};
use plimsoll_sys::probe::listener::{UnixLink, other_networks, plain, socket_inode, unix_links};
use plimsoll_sys::probe::process::files_folder;
use plimsoll_sys::probe::sockets::{Asker, Filter, Version, states};
use plimsoll_sys::probe::unix_diag::UnixSocket;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::ReadDir;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;

/// Peers of the server that get a series of their own: those with the most connections.
const PEERS_MAX: usize = 8;
/// Open files that are looked at in one sample, by the least effort.
const FILES_AT_ONCE: u64 = 64;
/// Files searched at once when the readings' budget is used up and the search has taken long.
const FILES_AT_ONCE_LEAST: u64 = 32;
const SEARCH_WAIT_NS: u64 = 1_000_000_000;
/// A search among open files that takes longer is told of.
const SEARCH_NS_MAX: u64 = 5_000_000_000;

/// An answer that came so recently may not have ended, ms: some ticks of the kernel's.
const JUST_CAME_MS: u32 = 40;

const DENIED: &str =
    "the server's own connections: the process belongs to another user (run plimsoll as that user or as root)";

pub struct Peers {
    tables: Tables,
    /// Addresses on this machine to which the server is known to send requests, for other probes.
    asked: DependencyAddresses,
    look: Seldom,
    /// Other network namespaces with peers of connections that may be the server's.
    elsewhere: Vec<Asker>,
    look_elsewhere: Seldom,
    /// Whose sockets are, by their inodes.
    owners: BTreeMap<u32, Owner>,
    /// The last snapshot, until its owners are known.
    seen: Option<OwnConnections>,
    search: Option<FileWalk>,
    known: BTreeSet<PeerAddress>,
    /// Lifetime traffic of the last snapshot, by inode, and for all connections by peer.
    carried: BTreeMap<u32, LifetimeTraffic>,
    carried_by: BTreeMap<PeerAddress, (u64, u64)>,
}

/// The lifetime traffic of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct LifetimeTraffic {
    /// Segments with data that were sent, modulo 2^32.
    segments_sent: u32,
    bytes_received: u64,
}

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Server,
    /// Another process's: it is not among the server's open files, and still exists.
    Other,
    /// Not among the server's open files, whose search took so long that it may have been closed
    /// meanwhile.
    NotFound,
}

/// Connections that could be the server's own, and when they were seen.
struct OwnConnections {
    at_ns: u64,
    connections: Vec<OwnConnection>,
    /// Listening sockets of further ports that could be its own.
    listeners: Vec<(u16, u32)>,
    /// Bytes that lie unsent in connections to such a port.
    unsent: BTreeMap<u16, u64>,
    /// Lengths of accept queues, by listeners on this machine with connections that may be the
    /// server's.
    queued: BTreeMap<PeerAddress, u64>,
    /// The same in other network namespaces, by address there.
    queued_elsewhere: BTreeMap<SocketAddr, u64>,
    /// Connections out of the server's network namespace with an unknown peer.
    led_away: OutsideEnds,
}

/// Peers outside the searched network namespaces: on another machine, or in a container.
#[derive(Debug, Default)]
struct OutsideEnds {
    /// Over TCP, from the known end: its own address, and the peer's.
    ends: BTreeSet<(SocketAddr, SocketAddr)>,
    /// Connections over unix sockets to a path without a listener in the client's namespace.
    files: Vec<UnixLink>,
}

impl OutsideEnds {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.files.is_empty()
    }

    /// Whether one of these peers, or their listener, is in the namespace of `asker`.
    fn leads_to(&self, asker: &mut Asker) -> bool {
        let listening = asker.unix_sockets(states::LISTEN).unwrap_or_default();
        let of_unix = self.files.iter().any(|link| listening.iter().any(|it| link.leads_to(it, false)));
        of_unix || !far_ends(asker, &self.ends).queued.is_empty()
    }
}

impl OwnConnections {
    /// All sockets that could be the server's own.
    fn inodes(&self) -> impl Iterator<Item = u32> {
        let listeners = self.listeners.iter().map(|(_, inode)| *inode);
        self.connections.iter().map(|connection| connection.inode).chain(listeners)
    }
}

/// Whom a connection leads to.
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

/// A connection of the server's.
struct OwnConnection {
    inode: u32,
    peer: PeerAddress,
    /// Its traffic; not over unix sockets.
    traffic: Option<PeerTraffic>,
    /// Its lifetime traffic, if the kernel reports it.
    carried: Option<LifetimeTraffic>,
}

/// The state of the connections to a peer.
#[derive(Debug, Clone, Copy, Default)]
struct PeerTraffic {
    /// Connections that wait for a response.
    waiting: u64,
    /// Connections on which data came lately, and nothing was sent since.
    coming: u64,
    /// Bytes from there that the server has not read.
    unread: u64,
    /// Bytes that the server has written and the other end has not acknowledged.
    unsent: u64,
    /// Bytes that the peer, if on this machine, has written and the server's end has not received.
    on_the_way: u64,
}

impl PeerTraffic {
    fn add(&mut self, other: &PeerTraffic) {
        self.waiting += other.waiting;
        self.coming += other.coming;
        self.unread += other.unread;
        self.unsent += other.unsent;
        self.on_the_way += other.on_the_way;
    }
}

/// Going through open files.
struct FileWalk {
    since_ns: u64,
    left: Vec<(u32, u32)>,
    folder: Option<(String, ReadDir)>,
    denied: bool,
}

impl Peers {
    pub fn new(tables: Tables, asked: DependencyAddresses) -> Peers {
        Peers {
            tables,
            asked,
            look: Seldom::new(1_000_000_000),
            elsewhere: Vec::new(),
            look_elsewhere: Seldom::new(10_000_000_000),
            owners: BTreeMap::new(),
            seen: None,
            search: None,
            known: BTreeSet::new(),
            carried: BTreeMap::new(),
            carried_by: BTreeMap::new(),
        }
    }

    /// Searches connections that neither begin nor end at `port`, and continues the search for
    /// their owners.
    pub fn sample(&mut self, asker: &mut Asker, port: u16, now_ns: u64, sink: &mut Sink) {
        if self.tables.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        if self.seen.is_none() {
            let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Peers { look, elsewhere, .. } = self;
            let found = look.read(sink, || match tables.iter().all(|(pid, table)| is_denied(*pid, *table)) {
                true => None,
                false => Some(candidates(asker, elsewhere, port)),
            });
            let seen = match found {
                Some(Some(Ok(seen))) => OwnConnections { at_ns: now_ns, ..seen },
                Some(None) => {
                    sink.unseen_part(DENIED);
                    return;
                }
                // If the kernel refuses this, the listener's queue suffices.
                Some(Some(Err(_))) | None => return,
            };
            if !seen.led_away.is_empty()
                && let Some((pid, _)) = tables.first()
            {
                let found = self.look_elsewhere.read(sink, || {
                    let mut askers: Vec<Asker> =
                        other_networks(*pid).into_iter().filter_map(|pid| Asker::open_in(pid).ok()).collect();
                    askers.retain_mut(|asker| seen.led_away.leads_to(asker));
                    askers
                });
                self.elsewhere.extend(found.into_iter().flatten());
            }
            let inodes: BTreeSet<u32> = seen.inodes().collect();
            let unknown = inodes.iter().any(|inode| !self.owners.contains_key(inode));
            // An inode's number is given again: what is gone is forgotten.
            self.owners.retain(|known, _| inodes.contains(known));
            for owner in self.owners.values_mut().filter(|owner| **owner == Owner::NotFound) {
                *owner = Owner::Other;
            }
            self.seen = Some(seen);
            if unknown {
                self.search = Some(FileWalk { since_ns: now_ns, left: tables, folder: None, denied: false });
            }
        }
        let since_ns = self.search.as_ref().map_or(now_ns, |search| search.since_ns);
        match sink.extent() {
            Extent::Usual => self.go_on(now_ns, FILES_AT_ONCE * sink.effort().factor(), sink),
            // Otherwise owners would never be found beside a server that uses up the budget.
            Extent::Least if now_ns.saturating_sub(since_ns) >= SEARCH_WAIT_NS => {
                self.go_on(now_ns, FILES_AT_ONCE_LEAST, sink);
            }
            Extent::Least | Extent::Edge => {}
        }
        if self.search.is_none()
            && let Some(seen) = self.seen.take()
        {
            self.tell(&seen, sink);
        }
    }

    /// Looks at some more open files.
    fn go_on(&mut self, now_ns: u64, files: u64, sink: &mut Sink) {
        let (Some(search), Some(seen)) = (&mut self.search, &self.seen) else { return };
        for _ in 0..files {
            let Some(inode) = search.next() else {
                for inode in seen.inodes() {
                    self.owners.entry(inode).or_insert(Owner::NotFound);
                }
                if search.denied {
                    sink.unseen_part(DENIED);
                }
                self.search = None;
                return;
            };
            if let Some(inode) = inode
                && seen.inodes().any(|candidate| candidate == inode)
            {
                self.owners.insert(inode, Owner::Server);
                if seen.inodes().all(|candidate| self.owners.contains_key(&candidate)) {
                    self.search = None;
                    return;
                }
            }
        }
        if now_ns.saturating_sub(search.since_ns) > SEARCH_NS_MAX {
            sink.unseen_part(
                "the server's own connections during a part of the load: its many open files take long to search",
            );
        }
    }

    /// The server's connections. One that closes after each call is gone before it is found among
    /// open files: it counts as the server's if the server, and no other process, is known to call
    /// its peer.
    fn own<'a>(&self, seen: &'a OwnConnections) -> Vec<&'a OwnConnection> {
        let of = |owner: Owner| seen.connections.iter().filter(move |it| self.owners.get(&it.inode) == Some(&owner));
        let others: BTreeSet<&PeerAddress> = of(Owner::Other).map(|connection| &connection.peer).collect();
        let known: BTreeSet<&PeerAddress> =
            of(Owner::Server).map(|connection| &connection.peer).chain(&self.known).collect();
        let short = of(Owner::NotFound).filter(|it| known.contains(&it.peer) && !others.contains(&it.peer));
        of(Owner::Server).chain(short).collect()
    }

    fn tell(&mut self, seen: &OwnConnections, sink: &mut Sink) {
        // Number of connections by peer, and their state.
        let mut found: BTreeMap<&PeerAddress, (u64, Option<PeerTraffic>)> = BTreeMap::new();
        let mut now = BTreeMap::new();
        for connection in self.own(seen) {
            let (all, traffic) = found.entry(&connection.peer).or_default();
            *all += 1;
            if let Some(more) = &connection.traffic {
                traffic.get_or_insert_default().add(more);
            }
            if let Some(carried) = connection.carried {
                // All traffic of a new connection belongs to this interval.
                let before = self.carried.get(&connection.inode).copied().unwrap_or_default();
                now.insert(connection.inode, carried);
                let (segments, bytes) = self.carried_by.entry(connection.peer.clone()).or_default();
                *segments += u64::from(carried.segments_sent.wrapping_sub(before.segments_sent));
                *bytes += carried.bytes_received.saturating_sub(before.bytes_received);
            }
        }
        self.carried = now;
        let mut most: Vec<(&PeerAddress, u64)> = found.iter().map(|(peer, (count, _))| (*peer, *count)).collect();
        most.sort_by_key(|(peer, count)| (std::cmp::Reverse(*count), *peer));
        for (peer, _) in most {
            if self.known.len() < PEERS_MAX && !self.known.contains(peer) {
                self.known.insert(peer.clone());
                if let PeerAddress::Address(address) = peer
                    && seen.queued.contains_key(peer)
                {
                    self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(*address);
                }
            }
        }
        for peer in &self.known {
            let (count, traffic) = found.remove(peer).unwrap_or_default();
            let traffic = traffic.or_else(|| (!matches!(peer, PeerAddress::Unix(_))).then(PeerTraffic::default));
            let mut tell = |what: &str, unit: &str, value: u64| {
                sink.gauge_at(&format!("peer.{peer}.{what}"), unit, seen.at_ns, value as f64);
            };
            tell("connections", "", count);
            let elsewhere = || match peer {
                PeerAddress::Address(address) => seen.queued_elsewhere.get(&plain(*address)),
                PeerAddress::Unix(_) => None,
            };
            if let Some(queued) = seen.queued.get(peer).or_else(elsewhere) {
                tell("queued", "", *queued);
            }
            if let Some(traffic) = traffic {
                tell("waiting", "", traffic.waiting);
                tell("coming", "", traffic.coming);
                tell("unread", "bytes", traffic.unread);
                tell("unsent", "bytes", traffic.unsent);
                tell("on_the_way", "bytes", traffic.on_the_way);
            }
            if let Some((segments, bytes)) = self.carried_by.get(peer) {
                sink.counter_at(&format!("peer.{peer}.segments_sent"), "", seen.at_ns, *segments as f64);
                sink.counter_at(&format!("peer.{peer}.received"), "bytes", seen.at_ns, *bytes as f64);
            }
        }
        let own = seen.listeners.iter().filter(|(_, inode)| self.owners.get(inode) == Some(&Owner::Server));
        for port in own.map(|(port, _)| *port).collect::<BTreeSet<u16>>() {
            let unsent = seen.unsent.get(&port).copied().unwrap_or(0);
            sink.gauge_at(&format!("peer.:{port}.unsent"), "bytes", seen.at_ns, unsent as f64);
        }
        if !found.is_empty() {
            sink.gauge_at(
                "peer.others.connections",
                "",
                seen.at_ns,
                found.values().map(|(count, _)| count).sum::<u64>() as f64,
            );
        }
    }
}

fn is_denied(pid: u32, table: u32) -> bool {
    std::fs::read_dir(files_folder(pid, table)).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Connections that may be the server's own, in the network namespace of `asker`; peers may be in
/// those of `elsewhere`.
fn candidates(asker: &mut Asker, elsewhere: &mut [Asker], port: u16) -> std::io::Result<OwnConnections> {
    // An accepted connection on another port of the server, such as for metrics, is no downstream
    // connection.
    let mut listeners = Vec::new();
    let mut queues = AcceptQueues::default();
    asker.each(Version::BOTH, states::LISTEN, Filter::Any, false, &mut |socket| {
        if socket.local.port() != port && socket.inode != 0 {
            listeners.push((socket.local.port(), socket.inode));
            queues.add(socket.local, u64::from(socket.receive_queue));
        }
    })?;
    let incoming: BTreeSet<u16> = listeners.iter().map(|(port, _)| *port).collect();
    let (mut found, mut taken) = (Vec::new(), BTreeMap::new());
    asker.each(Version::BOTH, states::ESTABLISHED, Filter::NeitherPort(port), true, &mut |socket| {
        if incoming.contains(&socket.local.port()) {
            // An end at rest says nothing.
            if socket.send_queue > 0 {
                taken.insert((plain(socket.local), plain(socket.remote)), u64::from(socket.send_queue));
            }
        } else if socket.inode != 0 {
            let traffic = PeerTraffic {
                waiting: u64::from(socket.awaits_answer.unwrap_or(false)),
                coming: u64::from(socket.came_ago_ms.is_some_and(|ms| ms < JUST_CAME_MS)),
                unread: u64::from(socket.receive_queue),
                unsent: u64::from(socket.send_queue),
                on_the_way: 0,
            };
            let carried = socket.segments_sent.zip(socket.bytes_received);
            let carried =
                carried.map(|(segments_sent, bytes_received)| LifetimeTraffic { segments_sent, bytes_received });
            let (inode, peer) = (socket.inode, PeerAddress::Address(socket.remote));
            found.push((socket.local, OwnConnection { inode, peer, traffic: Some(traffic), carried }));
        }
    })?;
    let (mut queued, mut led_away) = (BTreeMap::new(), OutsideEnds::default());
    for (local, connection) in &mut found {
        if let (PeerAddress::Address(peer), Some(traffic)) = (&connection.peer, &mut connection.traffic) {
            traffic.on_the_way = taken.get(&(plain(*peer), plain(*local))).copied().unwrap_or(0);
            match queues.queue_length(*local, *peer) {
                Some(count) => {
                    queued.insert(connection.peer.clone(), count);
                }
                // An address of the machine itself is another one in each namespace.
                None if peer.ip().to_canonical().is_loopback() => {}
                None => {
                    led_away.ends.insert((plain(*local), plain(*peer)));
                }
            }
        }
    }
    let links = unix_links(asker);
    let mut listening = asker.unix_sockets(states::LISTEN).unwrap_or_default();
    led_away.files = links.iter().filter(|link| !listening.iter().any(|it| link.leads_to(it, true))).cloned().collect();
    for asker in elsewhere.iter_mut() {
        let far = asker.unix_sockets(states::LISTEN).unwrap_or_default();
        let wanted = |it: &UnixSocket| led_away.files.iter().any(|link| link.leads_to(it, false));
        listening.extend(far.into_iter().filter(wanted));
    }
    led_away.files.retain(|link| !listening.iter().any(|it| link.leads_to(it, false)));
    let mut queued_elsewhere = BTreeMap::new();
    for asker in elsewhere {
        let far = far_ends(asker, &led_away.ends);
        queued_elsewhere.extend(far.queued);
        for (local, connection) in &mut found {
            if let (PeerAddress::Address(peer), Some(traffic)) = (&connection.peer, &mut connection.traffic) {
                traffic.on_the_way += far.unsent.get(&(plain(*peer), plain(*local))).copied().unwrap_or(0);
            }
        }
    }
    led_away.ends.retain(|(_, peer)| !queued_elsewhere.contains_key(peer));
    let mut connections: Vec<OwnConnection> = found.into_iter().map(|(_, connection)| connection).collect();
    connections.extend(links.into_iter().map(|link| {
        let peer = PeerAddress::Unix(link.name());
        OwnConnection { inode: link.opener, peer, traffic: None, carried: None }
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
    Ok(OwnConnections { at_ns: 0, connections, listeners, unsent, queued, queued_elsewhere, led_away })
}

/// Peers found in another network namespace.
#[derive(Default)]
struct FarEnds {
    /// Connections that wait to be accepted there, by addresses that they lead to.
    queued: BTreeMap<SocketAddr, u64>,
    /// Bytes that were written there and have not come, by the end there and the other.
    unsent: BTreeMap<(SocketAddr, SocketAddr), u64>,
}

/// The peers of `ends` visible in the namespace of `asker`: for each its own address there, and the
/// other end's.
fn far_ends(asker: &mut Asker, ends: &BTreeSet<(SocketAddr, SocketAddr)>) -> FarEnds {
    if ends.is_empty() {
        return FarEnds::default();
    }
    let mut queues = AcceptQueues::default();
    let listening = asker.each(Version::BOTH, states::LISTEN, Filter::Any, false, &mut |socket| {
        queues.add(socket.local, u64::from(socket.receive_queue));
    });
    let mut found = FarEnds::default();
    let taken = asker.each(Version::BOTH, states::ESTABLISHED, Filter::Any, false, &mut |socket| {
        let (local, remote) = (plain(socket.local), plain(socket.remote));
        if ends.contains(&(remote, local)) {
            found.queued.extend(queues.queue_length(local, local).map(|count| (local, count)));
            if socket.send_queue > 0 {
                found.unsent.insert((local, remote), u64::from(socket.send_queue));
            }
        }
    });
    if listening.and(taken).is_ok() { found } else { FarEnds::default() }
}

/// Connections that wait to be accepted, by the address of who listens.
#[derive(Default)]
struct AcceptQueues {
    bound: BTreeMap<SocketAddr, u64>,
    /// Queues of wildcard listeners, by port.
    anywhere: BTreeMap<u16, u64>,
}

impl AcceptQueues {
    fn add(&mut self, listener: SocketAddr, count: u64) {
        let queue = match listener.ip().is_unspecified() {
            true => self.anywhere.entry(listener.port()).or_default(),
            false => self.bound.entry(plain(listener)).or_default(),
        };
        *queue += count;
    }

    /// The accept queue of a connection from `local` to `peer`; `None`: `peer` listens on another
    /// machine.
    fn queue_length(&self, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
        let (local, peer) = (plain(local), plain(peer));
        let is_here = peer.ip().is_loopback() || peer.ip() == local.ip();
        let anywhere = || self.anywhere.get(&peer.port()).filter(|_| is_here);
        self.bound.get(&peer).or_else(anywhere).copied()
    }
}

impl FileWalk {
    /// The next open file: its inode if it is a socket. `None`: that was the last.
    fn next(&mut self) -> Option<Option<u32>> {
        loop {
            if self.folder.is_none() {
                let (pid, table) = self.left.pop()?;
                let path = files_folder(pid, table);
                match std::fs::read_dir(&path) {
                    Ok(entries) => self.folder = Some((path, entries)),
                    // Other errors mean that the process has ended.
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
    fn connections_wait_where_somebody_listens_on_this_machine() {
        let at = |text: &str| text.parse::<SocketAddr>().expect(text);
        let mut queues = AcceptQueues::default();
        for (listener, count) in [("127.0.0.1:9000", 3), ("0.0.0.0:3306", 5), ("[::]:6379", 7), ("10.0.0.1:80", 2)] {
            queues.add(at(listener), count);
        }
        // Two that share a port.
        queues.add(at("127.0.0.1:9000"), 1);
        for (local, peer, expect) in [
            ("127.0.0.1:40000", "127.0.0.1:9000", Some(4)),
            ("127.0.0.1:40000", "127.0.0.1:3306", Some(5)),
            ("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:3306", Some(5)),
            ("10.0.0.1:40000", "10.0.0.1:6379", Some(7)),
            ("10.0.0.2:40000", "10.0.0.1:80", Some(2)),
            // Another machine's port has the number of one here.
            ("10.0.0.1:40000", "10.0.0.9:3306", None),
            ("127.0.0.1:40000", "127.0.0.1:9001", None),
        ] {
            assert_eq!(queues.queue_length(at(local), at(peer)), expect, "{local} {peer}");
        }
    }

    /// Owners are found even beside a server that uses up the whole budget.
    #[test]
    fn own_connections_are_told_although_the_budget_is_used_up() {
        use crate::sink::{Effort, Extent};
        let store = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = store.local_addr().expect("bound");
        let _link = std::net::TcpStream::connect(address).expect("connected");
        let me = std::process::id();
        let tables = Tables::default();
        tables.lock().expect("no panic").push((me, me));
        let mut peers = Peers::new(tables, DependencyAddresses::default());
        let mut asker = Asker::open().expect("netlink");
        let mut sink = Sink::new(monotonic_ns(), Effort::Little);
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() < start_ns + 100_000_000 {}
        let name = format!("peer.{address}.connections");
        let is_told = (0..80).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            sink.begin(monotonic_ns(), false);
            assert_eq!(sink.extent(), Extent::Least);
            peers.sample(&mut asker, 1, monotonic_ns(), &mut sink);
            sink.take().series.contains_key(&name)
        });
        assert!(is_told, "{name}");
    }

    #[test]
    fn short_connections_are_whose_the_others_to_their_peer_are() {
        use Owner::{NotFound, Other, Server};
        let leads = |peer: u16| PeerAddress::Address(SocketAddr::from(([127, 0, 0, 1], peer)));
        let check = |known: &[u16], sockets: &[(u32, u16, Owner)], expect: &[u32]| {
            let mut peers = Peers::new(Tables::default(), DependencyAddresses::default());
            peers.known = known.iter().map(|peer| leads(*peer)).collect();
            peers.owners = sockets.iter().map(|(inode, _, owner)| (*inode, *owner)).collect();
            let connection =
                |inode: u32, peer: u16| OwnConnection { inode, peer: leads(peer), traffic: None, carried: None };
            let seen = OwnConnections {
                at_ns: 0,
                connections: sockets.iter().map(|(inode, peer, _)| connection(*inode, *peer)).collect(),
                listeners: Vec::new(),
                unsent: BTreeMap::new(),
                queued: BTreeMap::new(),
                queued_elsewhere: BTreeMap::new(),
                led_away: OutsideEnds::default(),
            };
            let own: BTreeSet<u32> = peers.own(&seen).iter().map(|connection| connection.inode).collect();
            assert_eq!(own, expect.iter().copied().collect(), "{known:?} {sockets:?}");
        };
        check(&[], &[(1, 5432, Server), (2, 5432, Other)], &[1]);
        // Gone before it was found: by one that was found now, or earlier.
        check(&[], &[(1, 6379, Server), (2, 6379, NotFound), (3, 80, NotFound)], &[1, 2]);
        check(&[6379], &[(2, 6379, NotFound), (3, 80, NotFound)], &[2]);
        check(&[6379], &[(2, 6379, NotFound), (3, 6379, Other)], &[]);
    }
}
