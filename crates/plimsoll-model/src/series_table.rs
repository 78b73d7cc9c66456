//! The table of all series that probes read ([`ALL_SERIES`]): name, kind of the values (level or
//! growing sum), unit, and subject ([`SeriesSubject`]). Series from other machines are checked
//! against this table.
//!
//! A missing reading is not a value. If a series has no samples near a time, its value at that time
//! is unknown, never zero.
//!
//! Not here: how series are read (`plimsoll-probe`), and what series mean (`plimsoll-analysis`).

use crate::probes::SeriesKind;

/// The subject of a series: the object that it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesSubject {
    /// The server's processes together.
    Server,
    /// One thread of the server, or several threads with similar names.
    Thread,
    /// A downstream dependency of the server.
    Dependency,
    /// The server's machine, or the load generator's machine.
    Host,
    /// The server's control group.
    ControlGroup,
    /// The server's listening and accepted sockets.
    Socket,
    /// The network interfaces, and the TCP counters of the interfaces' network namespace.
    Network,
    /// Plimsoll's own processes on the machine.
    Client,
    /// Metrics that the server exposes.
    Metrics,
}

/// A row of the table: one series, or a pattern that several series names match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesRow {
    /// The name; `*` stands for any non-empty text.
    pub name: &'static str,
    /// Whether the values are levels or growing sums.
    pub kind: SeriesKind,
    /// The unit of the values.
    pub unit: &'static str,
    /// The object that the series measures.
    pub subject: SeriesSubject,
}

impl SeriesRow {
    /// Returns the name with `label` in place of its `*`.
    pub fn name_with_label(&self, label: &str) -> String {
        self.name.replace('*', label)
    }

    /// Returns the text of `name` that stands for the first `*` of this row. `None` means that
    /// `name` does not match, or that the row has no `*`.
    pub fn matched_label<'n>(&self, name: &'n str) -> Option<&'n str> {
        pattern_labels(self.name, name)?.first().copied()
    }

    /// Returns the two texts of `name` that stand for the two `*` in the name of this row. `None`
    /// means that the row has no two `*`, or that `name` does not match.
    pub fn matched_label_pair<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        match pattern_labels(self.name, name)?.as_slice() {
            [first, second] => Some((first, second)),
            _ => None,
        }
    }
}

macro_rules! series {
    ($( $(#[doc = $doc:literal])+ $constant:ident: $name:literal, $kind:ident, $unit:literal, $subject:ident; )+) => {
        $(
            $(#[doc = $doc])+
            pub const $constant: SeriesRow = SeriesRow {
                name: $name,
                kind: SeriesKind::$kind,
                unit: $unit,
                subject: SeriesSubject::$subject,
            };
        )+

        /// The rows of all series that probes can read.
        pub const ALL_SERIES: &[SeriesRow] = &[$( $constant ),+];
    };
}

series! {
    /// CPU time of the server's processes.
    SERVER_CPU: "server.cpu", Counter, "ns", Server;
    /// CPU time of the server's processes in user mode.
    SERVER_CPU_USER: "server.cpu_user", Counter, "ns", Server;
    /// CPU time of the server's processes in the kernel.
    SERVER_CPU_SYSTEM: "server.cpu_system", Counter, "ns", Server;
    /// Number of major page faults of the server: pages read from storage.
    SERVER_MAJOR_FAULTS: "server.major_faults", Counter, "", Server;
    /// Number of voluntary context switches, in which a server thread waited.
    SERVER_SWITCHES_VOLUNTARY: "server.switches_voluntary", Counter, "", Server;
    /// Number of involuntary context switches, in which a server thread lost its core.
    SERVER_SWITCHES_INVOLUNTARY: "server.switches_involuntary", Counter, "", Server;
    /// Time that the server's threads waited for a core.
    SERVER_RUN_QUEUE_WAIT: "server.run_queue_wait", Counter, "ns waiting", Server;
    /// Resident memory of the server's processes.
    SERVER_RSS: "server.rss", Gauge, "bytes", Server;
    /// Number of threads of the server.
    SERVER_THREADS: "server.threads", Gauge, "", Server;
    /// Number of processes of the server.
    SERVER_PROCESSES: "server.processes", Gauge, "", Server;
    /// Number of cores on which any server process may run.
    SERVER_CORES_ALLOWED: "server.cores_allowed", Gauge, "cores", Server;
    /// Number of cores that the busiest thread of the server uses, from 0 to 1.
    SERVER_BUSIEST_THREAD: "server.fullest_thread", Gauge, "cores", Server;
    /// Number of server threads that run or wait for a core.
    SERVER_THREADS_RUNNABLE: "server.threads_runnable", Gauge, "", Server;
    /// Number of server threads in uninterruptible sleep.
    SERVER_THREADS_BLOCKED: "server.threads_blocked", Gauge, "", Server;
    /// Number of server threads that wait for another thread (in a futex).
    SERVER_IN_LOCK: "server.in_lock", Gauge, "", Server;
    /// Number of server threads in a timed sleep.
    SERVER_IN_SLEEP: "server.in_sleep", Gauge, "", Server;
    /// Number of server threads that wait for data to read.
    SERVER_IN_READ: "server.in_read", Gauge, "", Server;
    /// Number of server threads that wait because the reader of their output is slow.
    SERVER_IN_WRITE: "server.in_write", Gauge, "", Server;
    /// Number of server threads that wait for storage.
    SERVER_IN_DISK: "server.in_disk", Gauge, "", Server;
    /// Number of server threads that wait on the most contended futex.
    SERVER_IN_BUSIEST_LOCK: "server.in_same_lock", Gauge, "", Server;
    /// Number of open files of the server process that is nearest to its limit of open files.
    SERVER_FILES_OPEN: "server.files_open", Gauge, "", Server;
    /// The limit of open files of the server process that is nearest to this limit.
    SERVER_FILES_MAX: "server.files_max", Gauge, "", Server;
    /// CPU time of a busy thread; `*` is its name and number.
    THREAD: "thread.*", Counter, "ns", Thread;
    /// Number of threads with similar names; `*` is the common part of the names.
    THREADS: "threads.*", Gauge, "", Thread;
    /// Time that all cores together spent in programs (user mode).
    HOST_CPU_USER: "host.cpu_user", Counter, "ns", Host;
    /// Time that all cores together spent in the kernel.
    HOST_CPU_SYSTEM: "host.cpu_system", Counter, "ns", Host;
    /// Time that all cores together spent in interrupts.
    HOST_CPU_INTERRUPTS: "host.cpu_interrupts", Counter, "ns", Host;
    /// Idle time of all cores together while storage requests were pending.
    HOST_CPU_IOWAIT: "host.cpu_iowait", Counter, "ns", Host;
    /// Time, summed over all cores, in which the hypervisor withheld the core from this machine
    /// (steal).
    HOST_CPU_STEAL: "host.cpu_steal", Counter, "ns", Host;
    /// Idle time of all cores together.
    HOST_CPU_IDLE: "host.cpu_idle", Counter, "ns", Host;
    /// Number of context switches of the whole machine.
    HOST_SWITCHES: "host.switches", Counter, "", Host;
    /// Number of threads of the machine that run or wait for a core.
    HOST_THREADS_RUNNABLE: "host.threads_runnable", Gauge, "", Host;
    /// Number of threads of the machine in uninterruptible sleep.
    HOST_THREADS_BLOCKED: "host.threads_blocked", Gauge, "", Host;
    /// Number of cores of the machine.
    HOST_CORES: "host.cores", Gauge, "", Host;
    /// Whether server and load generator share a machine: 1 or 0.
    TARGET_LOCAL: "target.local", Gauge, "", Host;
    /// Time in which at least one thread of the machine waited for a core.
    HOST_PRESSURE_CPU_SOME: "host.pressure_cpu_some", Counter, "ns waiting", Host;
    /// Time in which all threads of the machine that were not idle waited for a core.
    HOST_PRESSURE_CPU_FULL: "host.pressure_cpu_full", Counter, "ns waiting", Host;
    /// Time in which at least one thread of the machine waited for memory.
    HOST_PRESSURE_MEMORY_SOME: "host.pressure_memory_some", Counter, "ns waiting", Host;
    /// Time in which all threads of the machine that were not idle waited for memory.
    HOST_PRESSURE_MEMORY_FULL: "host.pressure_memory_full", Counter, "ns waiting", Host;
    /// Time in which at least one thread of the machine waited for storage.
    HOST_PRESSURE_IO_SOME: "host.pressure_io_some", Counter, "ns waiting", Host;
    /// Time in which all threads of the machine that were not idle waited for storage.
    HOST_PRESSURE_IO_FULL: "host.pressure_io_full", Counter, "ns waiting", Host;
    /// Memory of the machine that is available to programs.
    HOST_MEMORY_AVAILABLE: "host.memory_available", Gauge, "bytes", Host;
    /// Load average over one minute.
    HOST_LOAD_1M: "host.load_1m", Gauge, "", Host;
    /// Mean clock rate of the machine's cores.
    HOST_FREQUENCY: "host.frequency", Gauge, "hz", Host;
    /// CPU time of the kernel's own threads.
    KERNEL_CPU: "kernel.cpu", Counter, "ns", Host;
    /// CPU time of plimsoll's processes.
    CLIENT_CPU: "client.cpu", Counter, "ns", Client;
    /// Time that plimsoll's threads waited for a core.
    CLIENT_RUN_QUEUE_WAIT: "client.run_queue_wait", Counter, "ns waiting", Client;
    /// Bytes received by a network interface; `*` is its name.
    NET_BYTES_IN: "net.*.bytes_in", Counter, "bytes", Network;
    /// Bytes sent by a network interface; `*` is its name.
    NET_BYTES_OUT: "net.*.bytes_out", Counter, "bytes", Network;
    /// Packets received by a network interface; `*` is its name.
    NET_PACKETS_IN: "net.*.packets_in", Counter, "", Network;
    /// Packets sent by a network interface; `*` is its name.
    NET_PACKETS_OUT: "net.*.packets_out", Counter, "", Network;
    /// Received packets that a network interface dropped; `*` is its name.
    NET_DROPPED_IN: "net.*.dropped_in", Counter, "", Network;
    /// Outgoing packets that a network interface dropped; `*` is the interface's name.
    NET_DROPPED_OUT: "net.*.dropped_out", Counter, "", Network;
    /// Number of TCP segments that were retransmitted.
    TCP_RETRANSMITS: "tcp.retransmits", Counter, "", Network;
    /// Number of TCP segments that were sent.
    TCP_SEGMENTS_OUT: "tcp.segments_out", Counter, "", Network;
    /// Number of connections that a full accept queue refused.
    TCP_LISTEN_OVERFLOWS: "tcp.listen_overflows", Counter, "", Network;
    /// Number of connections that a listening socket dropped.
    TCP_LISTEN_DROPS: "tcp.listen_drops", Counter, "", Network;
    /// Number of SYN segments that were retransmitted.
    TCP_SYN_RETRANSMITS: "tcp.syn_retransmits", Counter, "", Network;
    /// Number of retransmission timeouts of TCP.
    TCP_TIMEOUTS: "tcp.timeouts", Counter, "", Network;
    /// Number of connection requests dropped from a full SYN queue.
    TCP_SYN_QUEUE_DROPS: "tcp.syn_queue_drops", Counter, "", Network;
    /// Number of connection requests served with a SYN cookie.
    TCP_SYN_QUEUE_COOKIES: "tcp.syn_queue_cookies", Counter, "", Network;
    /// Number of segments dropped from a socket's backlog.
    TCP_BACKLOG_DROPS: "tcp.backlog_drops", Counter, "", Network;
    /// Number of segments dropped from a receive queue.
    TCP_RECEIVE_QUEUE_DROPS: "tcp.receive_queue_drops", Counter, "", Network;
    /// Number of segments dropped because the receive window was closed.
    TCP_ZERO_WINDOW_DROPS: "tcp.zero_window_drops", Counter, "", Network;
    /// Number of times that TCP was short of memory.
    TCP_MEMORY_PRESSURES: "tcp.memory_pressures", Counter, "", Network;
    /// Number of connections in TIME-WAIT.
    TCP_TIME_WAIT: "tcp.time_wait", Gauge, "", Network;
    /// Number of local ports that are available for connections to one peer.
    TCP_LOCAL_PORTS: "tcp.local_ports", Gauge, "", Network;
    /// Number of ports in TIME-WAIT for the address pair (local and remote) whose ports are nearest
    /// to exhaustion.
    TCP_TIME_WAIT_PAIR: "tcp.time_wait_pair", Gauge, "", Network;
    /// Whether the address pair of [`TCP_TIME_WAIT_PAIR`] belongs to a network namespace other than
    /// the server's: 1 for yes, 0 for no.
    TCP_TIME_WAIT_OTHER_NAMESPACE: "tcp.time_wait_behind", Gauge, "", Network;
    /// CPU time of the control group.
    CGROUP_CPU: "cgroup.cpu", Counter, "ns", ControlGroup;
    /// Number of elapsed periods of the control group's CPU quota; the kernel grants the quota anew
    /// in each period.
    CGROUP_PERIODS: "cgroup.periods", Counter, "", ControlGroup;
    /// Number of periods in which the control group's CPU quota was exhausted.
    CGROUP_PERIODS_THROTTLED: "cgroup.periods_throttled", Counter, "", ControlGroup;
    /// Time that the control group was throttled.
    CGROUP_THROTTLED: "cgroup.throttled", Counter, "ns waiting", ControlGroup;
    /// CPU quota of the control group.
    CGROUP_QUOTA: "cgroup.quota", Gauge, "cores", ControlGroup;
    /// Number of processes killed because the control group had no memory left.
    CGROUP_OOM_KILLS: "cgroup.oom_kills", Counter, "", ControlGroup;
    /// Memory that the control group uses.
    CGROUP_MEMORY: "cgroup.memory", Gauge, "bytes", ControlGroup;
    /// Memory limit of the control group.
    CGROUP_MEMORY_MAX: "cgroup.memory_max", Gauge, "bytes", ControlGroup;
    /// Number of connections in the accept queue of the server's listening socket.
    LISTEN_QUEUE: "listen.queue", Gauge, "", Socket;
    /// Longest allowed accept queue of the server's listening socket, in connections.
    LISTEN_BACKLOG: "listen.backlog", Gauge, "", Socket;
    /// Number of open connections that the server has accepted.
    ACCEPTED_CONNECTIONS: "accepted.connections", Gauge, "", Socket;
    /// Bytes on accepted connections that arrived and that the server has not read.
    ACCEPTED_RECEIVE_QUEUE: "accepted.receive_queue", Gauge, "bytes", Socket;
    /// Bytes on accepted connections that the server has written and the client has not
    /// acknowledged.
    ACCEPTED_SEND_QUEUE: "accepted.send_queue", Gauge, "bytes", Socket;
    /// Whether the accepted connections come from clients other than the load generator: 1 or 0.
    ACCEPTED_FROM_OTHER_CLIENTS: "accepted.by_others", Gauge, "", Socket;
    /// Share of the server's sending time in which the client's receive window was closed.
    ACCEPTED_WINDOW_LIMITED: "accepted.window_limited", Gauge, "share", Socket;
    /// Share of the server's sending time in which the server's send buffer was too small.
    ACCEPTED_BUFFER_LIMITED: "accepted.buffer_limited", Gauge, "share", Socket;
    /// Mean number of connections on which the server waited because the client's receive window
    /// was closed.
    ACCEPTED_WINDOW_WAITING: "accepted.window_waiting", Gauge, "", Socket;
    /// CPU time of downstream dependencies on the server's machine.
    DOWNSTREAM_CPU: "downstream.cpu", Counter, "ns", Dependency;
    /// CPU time of downstream dependencies that may run only on the server's cores.
    DOWNSTREAM_CPU_ON_SERVER_CORES: "downstream.cpu_on_its_cores", Counter, "ns", Dependency;
    /// Number of processes of downstream dependencies.
    DOWNSTREAM_PROCESSES: "downstream.processes", Gauge, "", Dependency;
    /// Number of database sessions that wait for a lock.
    DOWNSTREAM_IN_LOCK: "downstream.in_lock", Gauge, "", Dependency;
    /// Number of threads of a database that wait in a futex or in a timed sleep, such as during a
    /// lock wait.
    DOWNSTREAM_THREADS_WAITING: "downstream.threads_waiting", Gauge, "", Dependency;
    /// CPU quota of a dependency's control group.
    DOWNSTREAM_QUOTA: "downstream.quota.*", Gauge, "cores", Dependency;
    /// Number of elapsed periods of the CPU quota of a dependency's control group.
    DOWNSTREAM_PERIODS: "downstream.periods.*", Counter, "", Dependency;
    /// Number of periods in which the CPU quota of a dependency's control group was exhausted.
    DOWNSTREAM_PERIODS_THROTTLED: "downstream.periods_throttled.*", Counter, "", Dependency;
    /// Number of connections to a dependency; `*` names the dependency.
    PEER_CONNECTIONS: "peer.*.connections", Gauge, "", Dependency;
    /// Number of connections in a dependency's accept queue.
    PEER_QUEUED: "peer.*.queued", Gauge, "", Dependency;
    /// Number of connections that wait for a response from a dependency.
    PEER_WAITING: "peer.*.waiting", Gauge, "", Dependency;
    /// Number of connections with recently received data from a dependency.
    PEER_RECEIVING: "peer.*.coming", Gauge, "", Dependency;
    /// Bytes from a dependency that the server has not read.
    PEER_UNREAD: "peer.*.unread", Gauge, "bytes", Dependency;
    /// Bytes that the server has written to a dependency and that the dependency has not
    /// acknowledged.
    PEER_UNACKNOWLEDGED: "peer.*.unsent", Gauge, "bytes", Dependency;
    /// Bytes that a dependency has sent and that have not arrived at the server.
    PEER_IN_TRANSIT: "peer.*.on_the_way", Gauge, "bytes", Dependency;
    /// Number of segments with data that were sent to a dependency.
    PEER_SEGMENTS_SENT: "peer.*.segments_sent", Counter, "", Dependency;
    /// Bytes received from a dependency.
    PEER_RECEIVED: "peer.*.received", Counter, "bytes", Dependency;
    /// Process id of a dependency's listening process; the two `*` name the dependency and the
    /// process.
    PEER_PROCESS: "peer.*.process.*", Gauge, "", Dependency;
    /// A metric that the server exposes; the series is a counter if the server declares the metric
    /// as a counter.
    METRICS: "metrics.*", Gauge, "", Metrics;
}

/// Returns the row of the table for the series `name`; `None` means that no probe reads such a
/// series.
pub fn find_series_row(name: &str) -> Option<&'static SeriesRow> {
    let named = |row: &&SeriesRow| pattern_labels(row.name, name).is_some();
    // An exact name takes precedence over a pattern.
    ALL_SERIES.iter().find(|row| row.name == name).or_else(|| ALL_SERIES.iter().find(named))
}

/// Returns the texts of `name` that stand for each `*` of a pattern; `None` means that the name
/// does not match.
fn pattern_labels<'n>(pattern: &str, name: &'n str) -> Option<Vec<&'n str>> {
    let mut parts = pattern.split('*');
    let mut left = name.strip_prefix(parts.next()?)?;
    let parts: Vec<&str> = parts.collect();
    let mut found = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let at = if is_last { left.len().checked_sub(part.len())? } else { left.find(part)? };
        let (label, rest) =
            left.split_at_checked(at).filter(|(label, rest)| !label.is_empty() && rest.starts_with(part))?;
        found.push(label);
        left = &rest[part.len()..];
    }
    left.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_found_by_name() {
        for (name, expect) in [
            ("server.cpu", Some(SERVER_CPU)),
            ("thread.worker-1.77", Some(THREAD)),
            ("threads.worker-", Some(THREADS)),
            ("peer.10.0.0.1:5432.connections", Some(PEER_CONNECTIONS)),
            ("peer.[::1]:5432.process.postgres", Some(PEER_PROCESS)),
            ("peer.:8080.unsent", Some(PEER_UNACKNOWLEDGED)),
            ("net.eth0.bytes_in", Some(NET_BYTES_IN)),
            ("downstream.periods.db", Some(DOWNSTREAM_PERIODS)),
            ("downstream.periods_throttled.db", Some(DOWNSTREAM_PERIODS_THROTTLED)),
            ("metrics.up", Some(METRICS)),
            ("peer..connections", None),
            ("peer.connections", None),
            ("peer..process.x", None),
            ("thread.", None),
            ("server.soul", None),
            ("generator.client.cpu", None),
            ("", None),
        ] {
            assert_eq!(find_series_row(name).copied(), expect, "{name}");
        }
    }

    #[test]
    fn series_labels_round_trip() {
        let peer = "10.0.0.1:5432";
        let name = PEER_RECEIVING.name_with_label(peer);
        assert_eq!((name.as_str(), PEER_RECEIVING.matched_label(&name)), ("peer.10.0.0.1:5432.coming", Some(peer)));
        assert_eq!((PEER_WAITING.matched_label(&name), SERVER_CPU.matched_label("server.cpu")), (None, None));
        assert_eq!(PEER_PROCESS.matched_label_pair("peer.10.0.0.1:5432.process.db.x"), Some((peer, "db.x")));
        assert_eq!(PEER_PROCESS.matched_label_pair("peer.10.0.0.1:5432.coming"), None);
    }

    #[test]
    fn each_series_has_one_row() {
        for (number, row) in ALL_SERIES.iter().enumerate() {
            assert!(ALL_SERIES[..number].iter().all(|before| before.name != row.name), "{}", row.name);
            let read = row.name.replace('*', "x");
            assert_eq!(find_series_row(&read), Some(row), "{read}");
        }
    }
}
