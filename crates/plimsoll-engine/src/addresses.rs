//! The target and local addresses that a worker's connections use. Each new connection uses the
//! next target address. When every target address was used once with a local address, the next
//! connections use the next local address.
//!
//! With [`ResolvedAddresses`] a thread resolves the host name again during the load, and workers
//! look for new addresses once a tick (100 ms). An address keeps its number for the whole run,
//! because failures are counted by the number of the address.

use crate::net::Peer;
use plimsoll_model::addresses::is_private;
use plimsoll_model::{AddressRange, ConnectionPlan, ResolveSpec};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// The maximum number of addresses of one host name. Within this limit, the number of an address
/// fits into 16 bits.
const ADDRESSES_MAX: usize = 4096;

/// The sequence of target and local addresses that one worker's connections use.
#[derive(Debug)]
pub struct AddressSequence {
    unix: Option<String>,
    /// All known target addresses; the index is the number of the address.
    addresses: Vec<SocketAddr>,
    /// The numbers of the target addresses that new connections use.
    active_numbers: Vec<u16>,
    sources_v4: Vec<AddressRange>,
    sources_v6: Vec<AddressRange>,
    next: u64,
    first_source: u64,
    resolved: Option<Arc<ResolvedAddresses>>,
    known_version: u64,
}

impl AddressSequence {
    /// Creates the address sequence of worker `number`. `connection_plan` contains the target
    /// addresses, and `sources` the local addresses. Each worker starts at a different address.
    pub fn new(
        connection_plan: &ConnectionPlan,
        sources: &[AddressRange],
        number: u64,
        resolved: Option<Arc<ResolvedAddresses>>,
    ) -> AddressSequence {
        let (sources_v4, sources_v6) = sources.iter().partition(|range| range.is_ipv4());
        let addresses = connection_plan.addresses.clone();
        AddressSequence {
            unix: connection_plan.unix.clone(),
            active_numbers: (0..addresses.len().min(ADDRESSES_MAX) as u16).collect(),
            addresses,
            sources_v4,
            sources_v6,
            next: number,
            first_source: number,
            resolved,
            known_version: 0,
        }
    }

    /// Returns the target of the next connection, and the number of its address.
    pub fn next(&mut self) -> (Peer<'_>, u16) {
        if let Some(path) = &self.unix {
            return (Peer::Unix(path), 0);
        }
        // Each local address is used with every target address before the next local address
        // follows. A sequence of connections therefore uses every pair of a local address and a
        // target address.
        let (at, round) = (self.next % self.active_count(), self.next / self.active_count());
        self.next = self.next.wrapping_add(1);
        self.peer_at(at, round)
    }

    /// Returns the target address after address `number` in the list, to try after a connect to
    /// address `number` failed.
    pub fn peer_after(&self, number: u16) -> (Peer<'_>, u16) {
        let at = self.active_numbers.iter().position(|active| *active == number).map_or(0, |at| at as u64 + 1);
        self.peer_at(at % self.active_count(), self.next / self.active_count())
    }

    fn peer_at(&self, at: u64, round: u64) -> (Peer<'_>, u16) {
        let number = self.active_numbers[at as usize];
        let address = &self.addresses[usize::from(number)];
        let sources = if address.is_ipv4() { &self.sources_v4 } else { &self.sources_v6 };
        (Peer::Tcp(address, AddressRange::nth_address(sources, self.first_source.wrapping_add(round))), number)
    }

    /// Returns the number of target addresses that new connections use.
    pub fn active_count(&self) -> u64 {
        self.active_numbers.len().max(1) as u64
    }

    /// Switches to the newly resolved addresses, if the host name has new ones.
    pub fn refresh(&mut self) {
        let Some(resolved) = &self.resolved else { return };
        let version = resolved.version.load(Ordering::Acquire);
        if version != self.known_version {
            self.known_version = version;
            let table = resolved.lock_table();
            self.addresses.clone_from(&table.addresses);
            self.active_numbers.clone_from(&table.active_numbers);
        }
    }
}

/// The resolved addresses of the target's host name, which all workers share.
#[derive(Debug)]
pub struct ResolvedAddresses {
    /// A number that increases with every change of the addresses, so that workers notice the
    /// change.
    version: AtomicU64,
    table: Mutex<AddressTable>,
}

#[derive(Debug)]
struct AddressTable {
    addresses: Vec<SocketAddr>,
    active_numbers: Vec<u16>,
}

impl ResolvedAddresses {
    pub fn new(addresses: &[SocketAddr]) -> ResolvedAddresses {
        let active = (0..addresses.len().min(ADDRESSES_MAX) as u16).collect();
        ResolvedAddresses {
            version: AtomicU64::new(0),
            table: Mutex::new(AddressTable { addresses: addresses.to_vec(), active_numbers: active }),
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, AddressTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all addresses that the run has used so far; the index is the number of the address.
    pub fn all_addresses(&self) -> Vec<SocketAddr> {
        self.lock_table().addresses.clone()
    }

    /// Replaces the addresses that new connections use by `found`, unless `found` is empty.
    pub fn update(&self, found: impl IntoIterator<Item = SocketAddr>) {
        let mut table = self.lock_table();
        let mut active = Vec::new();
        for address in found {
            let number = match table.addresses.iter().position(|known| *known == address) {
                Some(number) => number,
                None if table.addresses.len() < ADDRESSES_MAX => {
                    table.addresses.push(address);
                    table.addresses.len() - 1
                }
                None => continue,
            };
            if !active.contains(&(number as u16)) {
                active.push(number as u16);
            }
        }
        if !active.is_empty() && active != table.active_numbers {
            table.active_numbers = active;
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Starts a thread that resolves the host name repeatedly, until the caller drops the returned
    /// sender. The thread is never joined, because name resolution may block for long. Returns the
    /// error of the operating system if the thread cannot start.
    pub fn start_resolver(self: Arc<ResolvedAddresses>, spec: ResolveSpec) -> std::io::Result<mpsc::Sender<()>> {
        let (done, wait) = mpsc::channel();
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            let every = Duration::from_nanos(spec.every_ns);
            while wait.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                // After a failed name lookup the earlier addresses stay in use.
                if let Ok(found) = (spec.host.as_str(), spec.port).to_socket_addrs() {
                    self.update(found.filter(|address| spec.public || is_private(&address.ip())));
                }
            }
        })?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn connection_plan(addresses: &[&str]) -> ConnectionPlan {
        ConnectionPlan::tcp(addresses.iter().map(|a| a.parse().expect("an address")).collect())
    }

    /// Returns the address sequence of a worker that has no configured local addresses.
    fn worker_addresses(addresses: &[&str], worker: u64) -> AddressSequence {
        AddressSequence::new(&connection_plan(addresses), &[], worker, None)
    }

    fn peer_text(peer: Peer) -> String {
        match peer {
            Peer::Tcp(address, source) => format!("{address} {source:?}"),
            Peer::Unix(path) => path.to_owned(),
        }
    }

    #[test]
    fn address_pairs_are_used_round_robin() {
        for (addresses, sources, pairs) in [
            (&["127.0.0.1:80"][..], "", 1),
            (&["127.0.0.1:80", "[::1]:80"], "", 2),
            (&["127.0.0.1:80", "127.0.0.2:80"], "127.0.0.1-127.0.0.4", 8),
            (&["127.0.0.1:80", "[::1]:80"], "127.0.0.1-127.0.0.3,::1", 4),
        ] {
            let sources = match sources {
                "" => Vec::new(),
                text => AddressRange::parse_list(text).expect("ranges"),
            };
            for worker in 0..3 {
                let mut routes = AddressSequence::new(&connection_plan(addresses), &sources, worker, None);
                let mut by_address = vec![0; addresses.len()];
                let mut seen = BTreeSet::new();
                for _ in 0..24 {
                    let (peer, number) = routes.next();
                    by_address[usize::from(number)] += 1;
                    seen.insert(peer_text(peer));
                }
                assert_eq!(seen.len(), pairs, "{addresses:?} {sources:?}: {seen:?}");
                assert!(by_address.iter().all(|count| *count == 24 / addresses.len()), "{by_address:?}");
            }
        }
        let unix = ConnectionPlan { unix: Some("/run/api.sock".into()), ..connection_plan(&[]) };
        assert_eq!(peer_text(AddressSequence::new(&unix, &[], 0, None).next().0), "/run/api.sock");
        // A connection tries each address once, even if other connections take addresses between
        // its attempts.
        let mut routes = worker_addresses(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"], 1);
        let first = routes.next().1;
        routes.next();
        let second = routes.peer_after(first).1;
        routes.next();
        assert_eq!((first, second, routes.peer_after(second).1), (1, 2, 0));
    }

    #[test]
    fn new_addresses_reach_workers_and_keep_numbers() {
        let connection_plan = connection_plan(&["10.0.0.1:80", "10.0.0.2:80"]);
        let resolved = Arc::new(ResolvedAddresses::new(&connection_plan.addresses));
        let mut routes = AddressSequence::new(&connection_plan, &[], 0, Some(Arc::clone(&resolved)));
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        resolved.update([]);
        resolved.update([address("10.0.0.3:80"), address("10.0.0.2:80"), address("10.0.0.3:80")]);
        routes.refresh();
        let next: Vec<u16> = (0..4).map(|_| routes.next().1).collect();
        assert_eq!(next, [2, 1, 2, 1]);
        assert_eq!(resolved.all_addresses().len(), 3, "an address that is gone keeps its number");
    }
}
