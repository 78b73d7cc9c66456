//! Counts local ports that closed connections still occupy (TIME-WAIT, RFC 9293, 3.6.1): in total,
//! and for the pair of addresses nearest to its limit. A pair consists of a local IP address, and
//! of the IP address and port of a peer. Each pair has its own range of local ports, so the total
//! over several pairs says little about a single pair.
//!
//! Not here: the ports on which the server listens (`own_ports`), and connections that found no
//! free port (the engine counts them).

use super::optional_file::OptionalFile;
use super::sink::{ReadingSchedule, Sink};
use plimsoll_sys::probe::host::parse_time_wait;
use plimsoll_sys::probe::listener::pids_in_other_networks;
use plimsoll_sys::probe::sockets::{IpVersion, SocketDiagnostics, SocketFilter, SocketRow, states};
use plimsoll_sys::process::local_port_count;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// The number of connections in TIME-WAIT up to which pairs of addresses are not counted, because
/// no pair can be near its limit.
const UNCOUNTED_CONNECTIONS_MAX: u64 = 64;
/// A pair's port range counts as narrow if at least this share (0 to 1) of the ports between its
/// lowest and highest is used. A client with a narrow port range can use no ports outside the
/// range. A client that uses the system's whole range leaves gaps, because the kernel chooses ports
/// in steps of at least two.
const DENSE_PORT_SHARE_MIN: f64 = 0.9;
/// The share (0 to 1) of a pair's used ports that is ignored at each end of its range. Other
/// clients of the same peer may use ports outside the range of the measured client.
const FOREIGN_PORT_SHARE_MAX: f64 = 0.05;

/// Ports of connections in TIME-WAIT, by pair of addresses.
#[derive(Default)]
struct TimeWaitPorts {
    held: HashMap<(IpAddr, SocketAddr), Vec<u16>>,
}

/// Estimates the number of ports available to a pair of addresses that already uses the ports
/// `held`. `usual` is the number of ports in the system's range.
fn available_ports_of_pair(held: &mut [u16], usual: u64) -> u64 {
    if held.len() as u64 <= UNCOUNTED_CONNECTIONS_MAX {
        return usual;
    }
    held.sort_unstable();
    let aside = (held.len() as f64 * FOREIGN_PORT_SHARE_MAX) as usize;
    let inner = &held[aside..held.len() - aside];
    let span = f64::from(inner[inner.len() - 1] - inner[0]) + 1.0;
    let is_dense = inner.len() as f64 >= DENSE_PORT_SHARE_MIN * span;
    if is_dense { ((span * held.len() as f64 / inner.len() as f64) as u64).min(usual) } else { usual }
}

/// Compares two pairs of addresses by their share of used ports. Each pair is given as (used ports,
/// available ports).
fn compare_used_shares(a: (u64, u64), b: (u64, u64)) -> Ordering {
    (a.0 * b.1).cmp(&(b.0 * a.1))
}

impl TimeWaitPorts {
    fn add(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.held.entry((local.ip(), remote)).or_default().push(local.port());
    }

    /// Returns the used and available ports of the pair with the largest share of used ports. Pairs
    /// with a peer in `except` (the load's targets) do not count. `usual` is the number of ports in
    /// the system's range.
    fn busiest_pair_ports(&mut self, except: &[SocketAddr], usual: u64) -> (u64, u64) {
        let others = self.held.iter_mut().filter(|((_, remote), _)| !except.contains(remote));
        let shares = others.map(|(_, held)| (held.len() as u64, available_ports_of_pair(held, usual)));
        shares.max_by(|a, b| compare_used_shares(*a, *b)).unwrap_or((0, usual))
    }
}

pub struct TimeWaitProbe {
    /// The server's network namespace is the first element; the namespaces of possible dependencies
    /// follow.
    networks: Vec<PortsOfNetwork>,
    targets: Vec<SocketAddr>,
    look: ReadingSchedule,
}

struct PortsOfNetwork {
    sockstat: OptionalFile,
    asker: Option<SocketDiagnostics>,
}

impl TimeWaitProbe {
    /// Creates the probe, which reads the file `sockstat` and the network namespace of the process
    /// `server`, if that process is known. `targets` are the load's target addresses.
    pub fn new(sockstat: OptionalFile, server: Option<u32>, targets: &[SocketAddr]) -> TimeWaitProbe {
        let own = PortsOfNetwork {
            sockstat,
            asker: server.map_or_else(SocketDiagnostics::open, SocketDiagnostics::open_process_or_own_namespace).ok(),
        };
        let others = server.map(pids_in_other_networks).unwrap_or_default().into_iter().map(|pid| PortsOfNetwork {
            sockstat: OptionalFile::open(&format!("/proc/{pid}/net/sockstat")),
            asker: SocketDiagnostics::open_namespace_of_process(pid).ok(),
        });
        TimeWaitProbe {
            networks: [own].into_iter().chain(others).collect(),
            targets: targets.to_vec(),
            look: ReadingSchedule::new(1_000_000_000),
        }
    }

    pub fn sample(&mut self, sink: &mut Sink, buffer: &mut Vec<u8>) {
        let counts: Vec<Option<u64>> =
            self.networks.iter_mut().map(|it| it.sockstat.read(buffer, parse_time_wait).ok()).collect();
        let Some(Some(own)) = counts.first().copied() else {
            return;
        };
        let ports = local_port_count();
        sink.gauge("tcp.time_wait", "", own as f64);
        if counts.iter().flatten().all(|count| *count <= UNCOUNTED_CONNECTIONS_MAX) {
            sink.gauge("tcp.local_ports", "", ports as f64);
            sink.gauge("tcp.time_wait_pair", "", own as f64);
            return;
        }
        let TimeWaitProbe { networks, targets, look } = self;
        let asked = look.read_if_due(sink, || {
            let many = networks.iter_mut().zip(&counts).enumerate();
            let many = many.filter(|(_, (_, count))| count.is_some_and(|count| count > UNCOUNTED_CONNECTIONS_MAX));
            let of_one = |(number, (network, _)): (usize, (&mut PortsOfNetwork, _))| {
                let mut pairs = TimeWaitPorts::default();
                let mut tell = |socket: &SocketRow| pairs.add(socket.local, socket.remote);
                let asker = network.asker.as_mut()?;
                asker.for_each_socket(IpVersion::BOTH, states::TIME_WAIT, SocketFilter::Any, false, &mut tell).ok()?;
                Some((pairs.busiest_pair_ports(targets, ports), number > 0))
            };
            let all: Vec<((u64, u64), bool)> = many.filter_map(of_one).collect();
            all.into_iter().max_by(|(a, _), (b, _)| compare_used_shares(*a, *b))
        });
        if let Some(Some(((held, of), is_behind))) = asked {
            sink.gauge("tcp.local_ports", "", of as f64);
            sink.gauge("tcp.time_wait_pair", "", held as f64);
            sink.gauge("tcp.time_wait_behind", "", f64::from(u8::from(is_behind)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_busiest_address_pair_besides_the_target_is_reported() {
        let at = |text: &str| text.parse::<SocketAddr>().expect(text);
        let (store, target) = (at("127.0.0.1:6379"), at("127.0.0.1:80"));
        let mut pairs = TimeWaitPorts::default();
        assert_eq!(pairs.busiest_pair_ports(&[target], 1000), (0, 1000), "there are none");
        for (local, remote, times) in [
            ("127.0.0.2", target, 9),
            ("127.0.0.1", store, 3),
            ("127.0.0.3", store, 4),
            ("127.0.0.1", at("127.0.0.1:5432"), 2),
        ] {
            let local = |port| SocketAddr::new(local.parse().expect(local), port);
            (0..times).for_each(|n| pairs.add(local(40_000 + 2 * n), remote));
        }
        assert_eq!(pairs.busiest_pair_ports(&[target], 1000), (4, 1000));
        assert_eq!(pairs.busiest_pair_ports(&[], 1000), (9, 1000));
    }

    #[test]
    fn a_densely_used_port_range_counts_as_the_whole_range() {
        // Each row has the number and step of the used ports, and the number of another process's
        // ports in a different range. The last column is the expected number of ports available to
        // the pair.
        for (count, step, others, expect) in [
            (300, 1, 0, 300),
            (300, 1, 4, 304),
            (50, 1, 0, 28_232),
            (300, 2, 0, 28_232),
            (300, 1, 60, 28_232),
            (4000, 7, 0, 28_232),
        ] {
            let mut pairs = TimeWaitPorts::default();
            let to = SocketAddr::from(([127, 0, 0, 1], 80));
            let ports = (0..count).map(|n| 32_768 + n * step).chain((0..others).map(|n| 50_000 + 97 * n));
            ports.for_each(|port| pairs.add(SocketAddr::from(([127, 0, 0, 1], port)), to));
            let (held, of) = pairs.busiest_pair_ports(&[], 28_232);
            assert_eq!(held, u64::from(count + others));
            assert!(of.abs_diff(expect) <= 2, "{count} in steps of {step} and {others}: {of}");
        }
    }

    #[test]
    fn ports_of_closed_connections_are_found_in_time_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let to = listener.local_addr().expect("an address");
        let mut own_ports = Vec::new();
        // The end that closes a connection first has its port in TIME-WAIT, so the client closes
        // first.
        for _ in 0..5 {
            let client = TcpStream::connect(to).expect("connected");
            own_ports.push(client.local_addr().expect("an address").port());
            let (mut server, _) = listener.accept().expect("accepted");
            drop(client);
            assert_eq!(server.read(&mut [0; 1]).expect("the end"), 0);
        }
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let mut pairs = TimeWaitPorts::default();
        let mut tell = |socket: &SocketRow| pairs.add(socket.local, socket.remote);
        asker.for_each_socket(IpVersion::BOTH, states::TIME_WAIT, SocketFilter::Any, false, &mut tell).expect("told");
        // Another process may have used the listener's port within the last minute.
        let held = pairs.held.get(&(to.ip(), to)).expect("the address of the peer");
        assert!(own_ports.iter().all(|port| held.contains(port)), "{own_ports:?} in {held:?}");
    }
}
