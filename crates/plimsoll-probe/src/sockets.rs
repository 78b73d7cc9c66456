//! The server's sockets: its accept queue and backlog, the connections that the server accepted,
//! and the connections that the server opened.

use super::downstream::DependencyAddresses;
use super::own_ports;
use super::peers::PeerProbe;
use super::probe::Probe;
use super::server::SharedFileTables;
use super::sink::{ReadingSchedule, Sink};
use plimsoll_model::SeriesKind;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::sockets::{IpVersion, SendLimitTimes, SocketDiagnostics, SocketFilter, SocketRow, states};
use plimsoll_sys::system_text;
use std::collections::HashMap;
use std::io;

pub struct SocketProbe {
    /// The target's port; connections to the target's port are the connections of the load.
    target: u16,
    /// The ports that are measured: the ports on which the server listens, or the target's port if
    /// the server's ports are unknown.
    ports: Vec<u16>,
    /// Whether the server listens on other ports than the target's port, as behind a proxy.
    ports_differ: bool,
    asker: Result<SocketDiagnostics, String>,
    /// The server's listening sockets, as of the last reading.
    listeners: Vec<SocketRow>,
    listeners_schedule: ReadingSchedule,
    queues_schedule: ReadingSchedule,
    accepted_schedule: ReadingSchedule,
    /// For each accepted connection, by inode: how long sending was limited since the connection
    /// was opened, as of the last reading.
    sending: HashMap<u32, SendLimitTimes>,
    looked_ns: u64,
    peers: PeerProbe,
}

impl SocketProbe {
    /// Creates the probe of the server whose topmost process is `root`, if known. The load reaches
    /// the server at the port `target`.
    pub fn new(
        target: u16,
        root: Option<u32>,
        tables: SharedFileTables,
        dependency_addresses: DependencyAddresses,
    ) -> SocketProbe {
        let asker = root.map_or_else(SocketDiagnostics::open, SocketDiagnostics::open_process_or_own_namespace);
        let mut asker = asker.map_err(|error| format!("netlink: {}", system_text(&error)));
        let (ports, ports_differ) = match &mut asker {
            Ok(asker) => own_ports::server_listening_ports(asker, &tables, target),
            Err(_) => (vec![target], false),
        };
        SocketProbe {
            target,
            ports,
            ports_differ,
            asker,
            listeners: Vec::new(),
            listeners_schedule: ReadingSchedule::new(5_000_000_000),
            // Queues are read at every sample, unless the readings cost more than a 700th of a
            // core, as with many listeners.
            queues_schedule: ReadingSchedule::with_core_divisor(0, 700),
            accepted_schedule: ReadingSchedule::new(1_000_000_000),
            sending: HashMap::new(),
            looked_ns: 0,
            peers: PeerProbe::new(tables, dependency_addresses),
        }
    }

    fn report_listen_queues(&mut self, sink: &mut Sink) {
        let SocketProbe { asker, listeners, listeners_schedule, queues_schedule, ports, .. } = self;
        let asked = match asker {
            Ok(asker) => read_listeners_if_due(asker, ports, listeners, listeners_schedule, queues_schedule, sink),
            Err(reason) => {
                sink.add_gap("listen.queue", SeriesKind::Gauge, "", reason);
                return;
            }
        };
        match asked {
            None => {}
            Some(Ok(())) if listeners.is_empty() => {
                sink.add_gap("listen.queue", SeriesKind::Gauge, "", "no socket listens");
            }
            Some(Ok(())) => {
                let sum = |of: fn(&SocketRow) -> u32| listeners.iter().map(|socket| f64::from(of(socket))).sum();
                sink.gauge("listen.queue", "", sum(|socket| socket.receive_queue));
                sink.gauge("listen.backlog", "", sum(|socket| socket.send_queue));
            }
            Some(Err(error)) => sink.add_gap("listen.queue", SeriesKind::Gauge, "", &system_text(&error)),
        }
    }

    fn report_accepted_connections(&mut self, sink: &mut Sink) {
        let SocketProbe {
            asker: Ok(asker), accepted_schedule, ports, listeners, sending, looked_ns, ports_differ, ..
        } = self
        else {
            return;
        };
        let (mut count, mut receive, mut send) = (0u64, 0u64, 0u64);
        let mut held = SendLimitTimes::default();
        let mut now: HashMap<u32, SendLimitTimes> = HashMap::new();
        // Only the kernel's tables for the listening sockets' IP versions are read, because an
        // accepted connection has the IP version of its listening socket.
        let mut versions: Vec<IpVersion> = listeners.iter().map(|socket| socket.version).collect();
        versions.sort_unstable();
        versions.dedup();
        // If no listening socket is known, no table is read. The series then gets a gap, because a
        // count of 0 would be wrong.
        if versions.is_empty() {
            let reason = "the server's listening socket is not known";
            return sink.add_gap("accepted.connections", SeriesKind::Gauge, "", reason);
        }
        let asked = accepted_schedule.read_if_due(sink, || {
            ports.iter().try_for_each(|port| {
                asker.for_each_socket(
                    &versions,
                    states::ESTABLISHED,
                    SocketFilter::LocalPort(*port),
                    true,
                    &mut |socket| {
                        count += 1;
                        receive += u64::from(socket.receive_queue);
                        send += u64::from(socket.send_queue);
                        if let Some(time) = socket.send_limit_times {
                            let before = sending.get(&socket.inode).copied().unwrap_or_default();
                            held.add_since(&time, &before);
                            // A connection that is not accepted yet has no inode.
                            if socket.inode != 0 {
                                now.insert(socket.inode, time);
                            }
                        }
                    },
                )
            })
        });
        match asked {
            Some(Ok(())) => {
                sink.gauge("accepted.connections", "", count as f64);
                sink.gauge("accepted.receive_queue", "bytes", receive as f64);
                sink.gauge("accepted.send_queue", "bytes", send as f64);
                sink.gauge("accepted.by_others", "", f64::from(u8::from(*ports_differ)));
                let at_ns = monotonic_ns();
                if !now.is_empty() && *looked_ns > 0 {
                    // The gauges `window_limited` and `buffer_limited` are shares of the sending
                    // time since the last reading. The gauge `window_waiting` is the mean number of
                    // connections that waited for the receiver's window.
                    let share = |us: u64| if held.busy_us == 0 { 0.0 } else { us as f64 / held.busy_us as f64 };
                    sink.gauge("accepted.window_limited", "share", share(held.window_limited_us));
                    sink.gauge("accepted.buffer_limited", "share", share(held.buffer_limited_us));
                    let since_us = (at_ns - *looked_ns).max(1) as f64 / 1e3;
                    sink.gauge("accepted.window_waiting", "", held.window_limited_us as f64 / since_us);
                }
                (*sending, *looked_ns) = (now, at_ns);
            }
            Some(Err(error)) => sink.add_gap("accepted.connections", SeriesKind::Gauge, "", &system_text(&error)),
            None => {}
        }
    }
}

/// Reads the queues of listeners on `ports`, if a reading is due. A single listener is looked up by
/// its address. Several or unknown listeners (such as one listener for each thread) need a list
/// from the kernel, which is much slower.
fn read_listeners_if_due(
    asker: &mut SocketDiagnostics,
    ports: &[u16],
    listeners: &mut Vec<SocketRow>,
    listeners_schedule: &mut ReadingSchedule,
    queues_schedule: &mut ReadingSchedule,
    sink: &Sink,
) -> Option<io::Result<()>> {
    let list = |asker: &mut SocketDiagnostics, listeners: &mut Vec<SocketRow>, versions: &[IpVersion]| {
        // If this reading fails, `listeners` keeps the listening sockets of the previous reading.
        let mut found = Vec::new();
        ports.iter().try_for_each(|port| {
            asker.for_each_socket(versions, states::LISTEN, SocketFilter::LocalPort(*port), false, &mut |socket| {
                found.push(*socket)
            })
        })?;
        *listeners = found;
        Ok(())
    };
    let listed = listeners_schedule.read_if_due(sink, || list(asker, listeners, IpVersion::BOTH));
    match (listed, &listeners[..]) {
        (Some(done), _) => Some(done),
        (None, [only]) => match asker.listener_at(only.local) {
            Ok(Some(found)) => {
                listeners[0] = found;
                Some(Ok(()))
            }
            Ok(None) => {
                listeners.clear();
                Some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        },
        (None, [first, ..]) => {
            let version = first.version;
            let one = listeners.iter().all(|socket| socket.version == version);
            let versions = if one { vec![version] } else { IpVersion::BOTH.to_vec() };
            queues_schedule.read_if_due(sink, || list(asker, listeners, &versions))
        }
        (None, []) => queues_schedule.read_if_due(sink, || list(asker, listeners, IpVersion::BOTH)),
    }
}

impl Probe for SocketProbe {
    fn sample(&mut self, sink: &mut Sink) {
        self.report_listen_queues(sink);
        self.report_accepted_connections(sink);
        if let Ok(asker) = &mut self.asker {
            self.peers.sample(asker, self.target, monotonic_ns(), sink);
        }
    }
}
