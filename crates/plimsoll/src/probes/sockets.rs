//! The server's sockets: its accept queue against the backlog, the connections it took, and its own connections to
//! others (databases, caches, further services), by peer.

use super::Probe;
use super::server::Pids;
use super::sink::{Seldom, Sink};
use crate::target::system_text;
use plimsoll_model::SeriesKind;
use plimsoll_sys::probe::listener::sockets_of;
use plimsoll_sys::probe::sockets::{Asker, Filter, states};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::PoisonError;

/// Peers of the server that get a series of their own: those with the most connections.
const PEERS_MAX: usize = 8;

pub struct Sockets {
    port: u16,
    pids: Pids,
    asker: Result<Asker, String>,
    /// The server's open sockets, as far as they may be seen.
    inodes: BTreeSet<u32>,
    peers_known: BTreeSet<SocketAddr>,
    denied: bool,
    look_queues: Seldom,
    look_inodes: Seldom,
    look_accepted: Seldom,
    look_peers: Seldom,
}

impl Sockets {
    pub fn new(port: u16, pids: Pids) -> Sockets {
        Sockets {
            port,
            pids,
            asker: Asker::open().map_err(|error| format!("netlink: {}", system_text(&error))),
            inodes: BTreeSet::new(),
            peers_known: BTreeSet::new(),
            denied: false,
            // At every sample, unless this kernel has so large a table of listeners that it takes more than a 500th of a core.
            look_queues: Seldom::with_part(0, 500),
            look_inodes: Seldom::new(2_000_000_000),
            look_accepted: Seldom::new(1_000_000_000),
            look_peers: Seldom::new(1_000_000_000),
        }
    }

    fn queues(&mut self, sink: &mut Sink) {
        let (mut listeners, mut waiting, mut backlog) = (0, 0u64, 0u64);
        let Sockets { asker, look_queues, port, .. } = self;
        let asked = look_queues.read(|| match asker {
            Ok(asker) => asker
                .each(states::LISTEN, Filter::LocalPort(*port), false, &mut |socket| {
                    listeners += 1;
                    waiting += u64::from(socket.receive_queue);
                    backlog += u64::from(socket.send_queue);
                })
                .map_err(|error| system_text(&error)),
            Err(reason) => Err(reason.clone()),
        });
        let Some(asked) = asked else { return };
        match asked {
            Ok(()) if listeners > 0 => {
                sink.gauge("listen.queue", "", waiting as f64);
                sink.gauge("listen.backlog", "", backlog as f64);
            }
            Ok(()) => sink.gap("listen.queue", SeriesKind::Gauge, "", "nobody listens"),
            Err(reason) => sink.gap("listen.queue", SeriesKind::Gauge, "", &reason),
        }
    }

    fn accepted(&mut self, sink: &mut Sink) {
        let Sockets { asker: Ok(asker), look_accepted, port, .. } = self else { return };
        let (mut count, mut receive, mut send) = (0u64, 0u64, 0u64);
        let (mut busy, mut window, mut buffer, mut timed) = (0u64, 0u64, 0u64, false);
        let asked = look_accepted.read(|| {
            asker.each(states::ESTABLISHED, Filter::LocalPort(*port), true, &mut |socket| {
                count += 1;
                receive += u64::from(socket.receive_queue);
                send += u64::from(socket.send_queue);
                if let Some(time) = socket.send_time {
                    timed = true;
                    busy += time.busy_us;
                    window += time.window_limited_us;
                    buffer += time.buffer_limited_us;
                }
            })
        });
        match asked {
            Some(Ok(())) => {
                sink.gauge("accepted.connections", "", count as f64);
                sink.gauge("accepted.receive_queue", "bytes", receive as f64);
                sink.gauge("accepted.send_queue", "bytes", send as f64);
                if timed {
                    // Over the life of the connections that are open now.
                    let share = |us: u64| if busy == 0 { 0.0 } else { us as f64 / busy as f64 };
                    sink.gauge("accepted.window_limited", "share", share(window));
                    sink.gauge("accepted.buffer_limited", "share", share(buffer));
                }
            }
            Some(Err(error)) => sink.gap("accepted.connections", SeriesKind::Gauge, "", &system_text(&error)),
            None => {}
        }
    }

    fn peers(&mut self, sink: &mut Sink) {
        let pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((inodes, denied)) = self.look_inodes.read(|| {
            let mut denied = false;
            let mut inodes = BTreeSet::new();
            for pid in &pids {
                match sockets_of(*pid) {
                    Ok(open) => inodes.extend(open),
                    Err(error) => denied |= error.kind() == std::io::ErrorKind::PermissionDenied,
                }
            }
            (inodes, denied)
        }) {
            (self.inodes, self.denied) = (inodes, denied);
        }
        if self.denied {
            sink.unseen_part(
                "the server's own connections: its process is another user's (run plimsoll as that user or as root)",
            );
        }
        let Sockets { asker: Ok(asker), look_peers, port, inodes, peers_known, .. } = self else { return };
        let mut found: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        let asked = look_peers.read(|| {
            // What came in on another port of the server's, such as one for metrics, is no downstream connection.
            let mut incoming = BTreeSet::new();
            asker.each(states::LISTEN, Filter::Any, false, &mut |socket| {
                incoming.insert(socket.local.port());
            })?;
            asker.each(states::ESTABLISHED, Filter::NeitherPort(*port), false, &mut |socket| {
                if inodes.contains(&socket.inode) && !incoming.contains(&socket.local.port()) {
                    *found.entry(socket.remote).or_default() += 1;
                }
            })
        });
        let Some(Ok(())) = asked else { return };
        let mut most: Vec<(SocketAddr, u64)> = found.iter().map(|(peer, count)| (*peer, *count)).collect();
        most.sort_by_key(|(peer, count)| (std::cmp::Reverse(*count), *peer));
        for (peer, _) in most {
            if peers_known.len() < PEERS_MAX {
                peers_known.insert(peer);
            }
        }
        for peer in peers_known.iter() {
            let count = found.remove(peer).unwrap_or(0);
            sink.gauge(&format!("peer.{peer}.connections"), "", count as f64);
        }
        if !found.is_empty() {
            sink.gauge("peer.others.connections", "", found.values().sum::<u64>() as f64);
        }
    }
}

impl Probe for Sockets {
    fn sample(&mut self, sink: &mut Sink) {
        self.queues(sink);
        self.accepted(sink);
        if !self.pids.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            self.peers(sink);
        }
    }
}
