//! Local ports: how many of them connections that are over still hold (TIME-WAIT, RFC 9293, 3.6.1), of all and of the one pair of
//! addresses that is nearest to its end. A port is held from one local address to one address and port of a peer, so that the sum
//! says little where there are several pairs.
//!
//! Not here: the ports on which the server takes connections (`own_ports`), and connections that found none (the engine tells).

use super::optional_file::OptionalFile;
use super::sink::{Seldom, Sink};
use plimsoll_sys::probe::host::parse_time_wait;
use plimsoll_sys::probe::sockets::{Asker, Filter, SocketRow, Version, states};
use plimsoll_sys::process::local_ports;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Up to one in so many ports at rest no pair is near its end, and who holds them is not asked.
const FEW: u64 = 10;

/// Connections at rest, by pair.
#[derive(Default)]
struct RestingPairs {
    count: HashMap<(IpAddr, SocketAddr), u64>,
}

impl RestingPairs {
    fn add(&mut self, local: IpAddr, remote: SocketAddr) {
        *self.count.entry((local, remote)).or_default() += 1;
    }

    /// Those of the pair that has most, without those to one of `except`, which are the load's own.
    fn most(&self, except: &[SocketAddr]) -> u64 {
        let others = self.count.iter().filter(|((_, remote), _)| !except.contains(remote));
        others.map(|(_, count)| *count).max().unwrap_or(0)
    }
}

pub struct Ports {
    sockstat: OptionalFile,
    asker: Option<Asker>,
    targets: Vec<SocketAddr>,
    look: Seldom,
}

impl Ports {
    /// Of the network that `sockstat` tells of, which is that of the process `server`, where one is known; `targets`: where the load
    /// goes.
    pub fn new(sockstat: OptionalFile, server: Option<u32>, targets: &[SocketAddr]) -> Ports {
        let asker = server.map_or_else(Asker::open, Asker::open_beside).ok();
        Ports { sockstat, asker, targets: targets.to_vec(), look: Seldom::new(1_000_000_000) }
    }

    pub fn sample(&mut self, sink: &mut Sink, buffer: &mut Vec<u8>) {
        let Ok(count) = self.sockstat.read(buffer, parse_time_wait) else {
            return;
        };
        let ports = local_ports();
        sink.gauge("tcp.time_wait", "", count as f64);
        sink.gauge("tcp.local_ports", "", ports as f64);
        if count * FEW < ports {
            sink.gauge("tcp.time_wait_pair", "", count as f64);
            return;
        }
        let Ports { asker: Some(asker), targets, look, .. } = self else {
            return;
        };
        let mut pairs = RestingPairs::default();
        let mut tell = |socket: &SocketRow| pairs.add(socket.local.ip(), socket.remote);
        let asked = look.read(sink, || asker.each(Version::BOTH, states::TIME_WAIT, Filter::Any, false, &mut tell));
        if let Some(Ok(())) = asked {
            sink.gauge("tcp.time_wait_pair", "", pairs.most(targets) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn of_pairs_the_fullest_that_is_not_the_loads_own_is_told() {
        let at = |text: &str| text.parse::<SocketAddr>().expect(text);
        let (store, target) = (at("127.0.0.1:6379"), at("127.0.0.1:80"));
        let mut pairs = RestingPairs::default();
        assert_eq!(pairs.most(&[target]), 0, "there are none");
        for (local, remote, times) in [
            ("127.0.0.2", target, 9),
            ("127.0.0.1", store, 3),
            ("127.0.0.3", store, 4),
            ("127.0.0.1", at("127.0.0.1:5432"), 2),
        ] {
            (0..times).for_each(|_| pairs.add(local.parse().expect(local), remote));
        }
        assert_eq!(pairs.most(&[target]), 4);
        assert_eq!(pairs.most(&[]), 9);
    }

    #[test]
    fn the_kernel_tells_whose_connections_are_at_rest() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let to = listener.local_addr().expect("an address");
        // Who closes first keeps the port.
        for _ in 0..5 {
            let client = TcpStream::connect(to).expect("connected");
            let (mut server, _) = listener.accept().expect("accepted");
            drop(client);
            assert_eq!(server.read(&mut [0; 1]).expect("the end"), 0);
        }
        let mut asker = Asker::open().expect("netlink");
        let mut pairs = RestingPairs::default();
        let mut tell = |socket: &SocketRow| pairs.add(socket.local.ip(), socket.remote);
        asker.each(Version::BOTH, states::TIME_WAIT, Filter::Any, false, &mut tell).expect("told");
        assert_eq!(pairs.count.get(&(to.ip(), to)), Some(&5), "all five, under the address of the peer");
    }
}
