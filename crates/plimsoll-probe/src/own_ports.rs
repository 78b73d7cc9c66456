//! Finds the ports on which the server listens. Usually the server listens on the target's port. If
//! the target is a proxy, and the user names the server process behind the proxy (`--pid`), that
//! process listens on other ports.
//!
//! Not here: readings of the connections (`sockets`).

use super::server::SharedFileTables;
use plimsoll_sys::probe::listener::socket_inode;
use plimsoll_sys::probe::process::files_folder;
use plimsoll_sys::probe::sockets::{IpVersion, SocketDiagnostics, SocketFilter, states};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;

/// The largest number of measured ports. If the server has more ports, the ports with the lowest
/// numbers are measured.
const MEASURED_PORTS_MAX: usize = 8;
/// The largest number of open files that are searched for listening sockets before the load.
/// Servers open their listening sockets first, so the search finds them early.
const SEARCHED_FILES_MAX: usize = 20_000;

/// Returns the ports to measure, ascending, and whether they differ from the target's port. If the
/// server's ports cannot be read, only the target's port is returned.
pub fn server_listening_ports(
    asker: &mut SocketDiagnostics,
    tables: &SharedFileTables,
    target: u16,
) -> (Vec<u16>, bool) {
    let tables = tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut listening: BTreeMap<u32, u16> = BTreeMap::new();
    let listed = asker.for_each_socket(IpVersion::BOTH, states::LISTEN, SocketFilter::Any, false, &mut |socket| {
        listening.insert(socket.inode, socket.local.port());
    });
    let mut own = BTreeSet::new();
    if listed.is_ok() {
        let folders = tables.iter().filter_map(|(pid, table)| std::fs::read_dir(files_folder(*pid, *table)).ok());
        let links =
            folders.flatten().flatten().take(SEARCHED_FILES_MAX).flat_map(|entry| std::fs::read_link(entry.path()));
        let inodes = links.filter_map(|link| socket_inode(link.as_os_str().as_bytes()));
        own.extend(inodes.filter_map(|inode| listening.get(&inode).copied()));
    }
    // If no listening socket of the server was found, a service manager may own the target's
    // listening socket, so the target's port is measured.
    if own.is_empty() || own.contains(&target) {
        return (vec![target], false);
    }
    (own.into_iter().take(MEASURED_PORTS_MAX).collect(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_ports_of_the_named_process_are_found() {
        let me = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let own = listener.local_addr().expect("an address").port();
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let mut watched =
            |tables: Vec<(u32, u32)>, target| server_listening_ports(&mut asker, &Arc::new(Mutex::new(tables)), target);
        assert_eq!(watched(vec![(me, me)], own), (vec![own], false), "it takes the target's connections itself");
        let (ports, others) = watched(vec![(me, me)], 1);
        assert!(others && ports.contains(&own), "{ports:?}");
        assert_eq!(watched(vec![], 1), (vec![1], false), "nobody is seen");
        assert_eq!(watched(vec![(u32::MAX, u32::MAX)], 1), (vec![1], false), "it has ended");
    }
}
