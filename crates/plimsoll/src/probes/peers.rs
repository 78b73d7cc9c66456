//! The server's own connections to others (databases, caches, further services), by peer.
//!
//! The kernel tells of connections without saying whose they are; a process's open files tell whose, but there may be
//! many thousands, most of them connections that were taken. So nothing is looked for unless there is a connection that
//! could be the server's own; then its open files are gone through a few at a time.

use super::server::Tables;
use super::sink::{Extent, Seldom, Sink};
use plimsoll_sys::probe::listener::socket_inode;
use plimsoll_sys::probe::process::files_folder;
use plimsoll_sys::probe::sockets::{Asker, Filter, Version, states};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::ReadDir;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;

/// Peers of the server that get a series of their own: those with the most connections.
pub const PEERS_MAX: usize = 8;
/// Open files that are looked at in one sample.
const FILES_AT_ONCE: usize = 24;
/// A search among open files that takes longer is told of.
const SEARCH_NS_MAX: u64 = 5_000_000_000;

const DENIED: &str =
    "the server's own connections: its process is another user's (run plimsoll as that user or as root)";

pub struct Peers {
    tables: Tables,
    look: Seldom,
    /// Connections that are known to be the server's own, or not, by their inodes.
    ours: BTreeMap<u32, bool>,
    /// What was seen last, until it is known whose it is.
    seen: Option<OwnConnections>,
    search: Option<FileWalk>,
    known: BTreeSet<SocketAddr>,
    /// Segments that its connections had sent when they were seen last, by their inodes, and all of them to a peer.
    sent: BTreeMap<u32, u32>,
    sent_to: BTreeMap<SocketAddr, u64>,
}

/// Connections that could be the server's own, and when they were seen.
struct OwnConnections {
    at_ns: u64,
    connections: Vec<OwnConnection>,
}

/// One of them: its inode, whom it leads to, whether an answer of theirs is waited for, bytes from there that the server has not
/// read, and the segments that it has sent, where the kernel tells.
struct OwnConnection {
    inode: u32,
    peer: SocketAddr,
    awaits_answer: bool,
    unread: u32,
    sent: Option<u32>,
}

/// Going through open files.
struct FileWalk {
    since_ns: u64,
    left: Vec<(u32, u32)>,
    folder: Option<(String, ReadDir)>,
    denied: bool,
}

impl Peers {
    pub fn new(tables: Tables) -> Peers {
        Peers {
            tables,
            look: Seldom::new(1_000_000_000),
            ours: BTreeMap::new(),
            seen: None,
            search: None,
            known: BTreeSet::new(),
            sent: BTreeMap::new(),
            sent_to: BTreeMap::new(),
        }
    }

    /// Looks for connections that neither begin nor end at `port`, and goes on with finding out whose they are.
    pub fn sample(&mut self, asker: &mut Asker, port: u16, now_ns: u64, sink: &mut Sink) {
        if self.tables.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        if self.seen.is_none() {
            let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let found = self.look.read(sink, || match tables.iter().all(|(pid, table)| is_denied(*pid, *table)) {
                true => None,
                false => Some(candidates(asker, port)),
            });
            let connections = match found {
                Some(Some(Ok(connections))) => connections,
                Some(None) => {
                    sink.unseen_part(DENIED);
                    return;
                }
                // Of a kernel that refuses this, the queue of the listener tells.
                Some(Some(Err(_))) | None => return,
            };
            let unknown = connections.iter().any(|it| !self.ours.contains_key(&it.inode));
            // An inode's number is given again: what is gone is forgotten.
            self.ours.retain(|known, _| connections.iter().any(|it| it.inode == *known));
            self.seen = Some(OwnConnections { at_ns: now_ns, connections });
            if unknown {
                self.search = Some(FileWalk { since_ns: now_ns, left: tables, folder: None, denied: false });
            }
        }
        if sink.extent() == Extent::Usual && self.search.is_some() {
            self.go_on(now_ns, sink);
        }
        if self.search.is_none()
            && let Some(seen) = self.seen.take()
        {
            self.tell(&seen, sink);
        }
    }

    /// Looks at some more open files.
    fn go_on(&mut self, now_ns: u64, sink: &mut Sink) {
        let (Some(search), Some(seen)) = (&mut self.search, &self.seen) else { return };
        for _ in 0..FILES_AT_ONCE {
            let Some(inode) = search.next() else {
                for connection in &seen.connections {
                    self.ours.entry(connection.inode).or_insert(false);
                }
                if search.denied {
                    sink.unseen_part(DENIED);
                }
                self.search = None;
                return;
            };
            if let Some(inode) = inode
                && seen.connections.iter().any(|candidate| candidate.inode == inode)
            {
                self.ours.insert(inode, true);
                if seen.connections.iter().all(|candidate| self.ours.contains_key(&candidate.inode)) {
                    self.search = None;
                    return;
                }
            }
        }
        if now_ns.saturating_sub(search.since_ns) > SEARCH_NS_MAX {
            sink.unseen_part(
                "the server's own connections, for a while: finding them among its many open files takes long",
            );
        }
    }

    fn tell(&mut self, seen: &OwnConnections, sink: &mut Sink) {
        // Connections, those of them that wait for an answer, and bytes of answers that are not read.
        let mut found: BTreeMap<SocketAddr, (u64, u64, u64)> = BTreeMap::new();
        let mut now = BTreeMap::new();
        for connection in seen.connections.iter().filter(|it| self.ours.get(&it.inode) == Some(&true)) {
            let (all, waiting, unread) = found.entry(connection.peer).or_default();
            (*all, *waiting) = (*all + 1, *waiting + u64::from(connection.awaits_answer));
            *unread += u64::from(connection.unread);
            if let Some(sent) = connection.sent {
                // What a new one has sent was sent since the last look.
                let before = self.sent.get(&connection.inode).copied().unwrap_or(0);
                now.insert(connection.inode, sent);
                *self.sent_to.entry(connection.peer).or_default() += u64::from(sent.wrapping_sub(before));
            }
        }
        self.sent = now;
        let mut most: Vec<(SocketAddr, u64)> = found.iter().map(|(peer, (count, ..))| (*peer, *count)).collect();
        most.sort_by_key(|(peer, count)| (std::cmp::Reverse(*count), *peer));
        for (peer, _) in most {
            if self.known.len() < PEERS_MAX {
                self.known.insert(peer);
            }
        }
        for peer in &self.known {
            let (count, waiting, unread) = found.remove(peer).unwrap_or_default();
            sink.gauge_at(&format!("peer.{peer}.connections"), "", seen.at_ns, count as f64);
            sink.gauge_at(&format!("peer.{peer}.waiting"), "", seen.at_ns, waiting as f64);
            sink.gauge_at(&format!("peer.{peer}.unread"), "bytes", seen.at_ns, unread as f64);
            if let Some(sent) = self.sent_to.get(peer) {
                sink.counter_at(&format!("peer.{peer}.segments_sent"), "", seen.at_ns, *sent as f64);
            }
        }
        if !found.is_empty() {
            sink.gauge_at(
                "peer.others.connections",
                "",
                seen.at_ns,
                found.values().map(|(count, ..)| count).sum::<u64>() as f64,
            );
        }
    }
}

fn is_denied(pid: u32, table: u32) -> bool {
    std::fs::read_dir(files_folder(pid, table)).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Connections that could be the server's own to others.
fn candidates(asker: &mut Asker, port: u16) -> std::io::Result<Vec<OwnConnection>> {
    // What came in on another port of the server's, such as one for metrics, is no downstream connection.
    let mut incoming = BTreeSet::new();
    asker.each(Version::BOTH, states::LISTEN, Filter::Any, false, &mut |socket| {
        incoming.insert(socket.local.port());
    })?;
    let mut found = Vec::new();
    asker.each(Version::BOTH, states::ESTABLISHED, Filter::NeitherPort(port), true, &mut |socket| {
        if !incoming.contains(&socket.local.port()) && socket.inode != 0 {
            let awaits_answer = socket.awaits_answer.unwrap_or(false);
            let unread = socket.receive_queue;
            let (inode, peer, sent) = (socket.inode, socket.remote, socket.segments_sent);
            found.push(OwnConnection { inode, peer, awaits_answer, unread, sent });
        }
    })?;
    Ok(found)
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
                    // Another error: it has ended meanwhile.
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
