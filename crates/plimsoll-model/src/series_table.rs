//! Every series that a probe reads, as one table ([`SERIES`]): its name, how its values are to be
//! read, their unit, and what it is of ([`SeriesSubject`]). What comes from another machine is
//! compared with it.
//!
//! A reading that was not made is no value: a series without samples near a moment says nothing of
//! it, and never zero. Not here: how anything is read (`plimsoll-probe`), and what it means
//! (`plimsoll-analysis`).

use crate::probes::SeriesKind;

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesSubject {
    /// The server's processes together.
    Server,
    /// One of its threads, or several that are called alike.
    Thread,
    /// What it has connections to.
    Dependency,
    /// The machine.
    Host,
    /// The control group that limits it.
    ControlGroup,
    /// The sockets at which it takes connections.
    Socket,
    /// Network interfaces and TCP of its network namespace.
    Network,
    /// Plimsoll's own processes on the machine.
    Client,
    /// What it tells of itself, wherever it is asked.
    Metrics,
}

/// A series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesRow {
    /// Its name; `*` stands for any text that is not empty.
    pub name: &'static str,
    /// How to read its values.
    pub kind: SeriesKind,
    /// Their unit.
    pub unit: &'static str,
    /// What it is of.
    pub subject: SeriesSubject,
}

impl SeriesRow {
    /// The name with a text in place of its `*`.
    pub fn name_with(&self, label: &str) -> String {
        self.name.replace('*', label)
    }

    /// The text in place of the `*`; `None`: the series is none of these.
    pub fn label<'n>(&self, name: &'n str) -> Option<&'n str> {
        labels(self.name, name)?.first().copied()
    }

    /// The same where there are two.
    pub fn labels<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        match labels(self.name, name)?.as_slice() {
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

        /// All of them.
        pub const SERIES: &[SeriesRow] = &[$( $constant ),+];
    };
}

series! {
    /// CPU time of the server's processes.
    SERVER_CPU: "server.cpu", Counter, "ns", Server;
    /// The same outside the kernel.
    SERVER_CPU_USER: "server.cpu_user", Counter, "ns", Server;
    /// The same in the kernel.
    SERVER_CPU_SYSTEM: "server.cpu_system", Counter, "ns", Server;
    /// Pages that had to be read from storage.
    SERVER_MAJOR_FAULTS: "server.major_faults", Counter, "", Server;
    /// Times that its threads gave up a core to wait.
    SERVER_SWITCHES_VOLUNTARY: "server.switches_voluntary", Counter, "", Server;
    /// Times that a core was taken from its threads.
    SERVER_SWITCHES_INVOLUNTARY: "server.switches_involuntary", Counter, "", Server;
    /// Time that its threads waited for a core.
    SERVER_RUN_QUEUE_WAIT: "server.run_queue_wait", Counter, "ns waiting", Server;
    /// Resident memory.
    SERVER_RSS: "server.rss", Gauge, "bytes", Server;
    /// Threads.
    SERVER_THREADS: "server.threads", Gauge, "", Server;
    /// Processes.
    SERVER_PROCESSES: "server.processes", Gauge, "", Server;
    /// Cores on which any of its processes may run.
    SERVER_CORES_ALLOWED: "server.cores_allowed", Gauge, "cores", Server;
    /// What its busiest thread used.
    SERVER_FULLEST_THREAD: "server.fullest_thread", Gauge, "cores", Server;
    /// Threads that run or wait for a core.
    SERVER_THREADS_RUNNABLE: "server.threads_runnable", Gauge, "", Server;
    /// Threads that wait in the kernel and cannot be interrupted.
    SERVER_THREADS_BLOCKED: "server.threads_blocked", Gauge, "", Server;
    /// Threads that wait for another.
    SERVER_IN_LOCK: "server.in_lock", Gauge, "", Server;
    /// Threads that sleep for a time.
    SERVER_IN_SLEEP: "server.in_sleep", Gauge, "", Server;
    /// Threads that wait for data.
    SERVER_IN_READ: "server.in_read", Gauge, "", Server;
    /// Threads that wait until somebody reads what they write.
    SERVER_IN_WRITE: "server.in_write", Gauge, "", Server;
    /// Threads that wait for storage.
    SERVER_IN_DISK: "server.in_disk", Gauge, "", Server;
    /// Threads that wait at the same place in memory; the most at one place.
    SERVER_IN_SAME_LOCK: "server.in_same_lock", Gauge, "", Server;
    /// Open files of the process that is nearest to its limit.
    SERVER_FILES_OPEN: "server.files_open", Gauge, "", Server;
    /// Its limit of open files.
    SERVER_FILES_MAX: "server.files_max", Gauge, "", Server;
    /// CPU time of a busy thread, by its name and number.
    THREAD: "thread.*", Counter, "ns", Thread;
    /// Threads that are called alike, by what they have in common.
    THREADS: "threads.*", Gauge, "", Thread;
    /// Time of all cores: in programs.
    HOST_CPU_USER: "host.cpu_user", Counter, "ns", Host;
    /// Time of all cores: in the kernel.
    HOST_CPU_SYSTEM: "host.cpu_system", Counter, "ns", Host;
    /// Time of all cores: in interrupts.
    HOST_CPU_INTERRUPTS: "host.cpu_interrupts", Counter, "ns", Host;
    /// Time of all cores: idle while storage is waited for.
    HOST_CPU_IOWAIT: "host.cpu_iowait", Counter, "ns", Host;
    /// Time of all cores: taken by the host of a virtual machine.
    HOST_CPU_STEAL: "host.cpu_steal", Counter, "ns", Host;
    /// Time of all cores: idle.
    HOST_CPU_IDLE: "host.cpu_idle", Counter, "ns", Host;
    /// Switches from one thread to another.
    HOST_SWITCHES: "host.switches", Counter, "", Host;
    /// Threads that run or wait for a core.
    HOST_THREADS_RUNNABLE: "host.threads_runnable", Gauge, "", Host;
    /// Threads that wait in the kernel and cannot be interrupted.
    HOST_THREADS_BLOCKED: "host.threads_blocked", Gauge, "", Host;
    /// Cores.
    HOST_CORES: "host.cores", Gauge, "", Host;
    /// Whether the server is on the same machine: 1 or 0.
    TARGET_LOCAL: "target.local", Gauge, "", Host;
    /// Time in which some threads waited for a core.
    HOST_PRESSURE_CPU_SOME: "host.pressure_cpu_some", Counter, "ns waiting", Host;
    /// Time in which all threads waited for a core.
    HOST_PRESSURE_CPU_FULL: "host.pressure_cpu_full", Counter, "ns waiting", Host;
    /// Time in which some threads waited for memory.
    HOST_PRESSURE_MEMORY_SOME: "host.pressure_memory_some", Counter, "ns waiting", Host;
    /// Time in which all threads waited for memory.
    HOST_PRESSURE_MEMORY_FULL: "host.pressure_memory_full", Counter, "ns waiting", Host;
    /// Time in which some threads waited for storage.
    HOST_PRESSURE_IO_SOME: "host.pressure_io_some", Counter, "ns waiting", Host;
    /// Time in which all threads waited for storage.
    HOST_PRESSURE_IO_FULL: "host.pressure_io_full", Counter, "ns waiting", Host;
    /// Memory that programs may still take.
    HOST_MEMORY_AVAILABLE: "host.memory_available", Gauge, "bytes", Host;
    /// Load average of a minute.
    HOST_LOAD_1M: "host.load_1m", Gauge, "", Host;
    /// Clock rate of the cores on average.
    HOST_FREQUENCY: "host.frequency", Gauge, "hz", Host;
    /// CPU time of the kernel's own threads.
    KERNEL_CPU: "kernel.cpu", Counter, "ns", Host;
    /// CPU time of plimsoll's processes.
    CLIENT_CPU: "client.cpu", Counter, "ns", Client;
    /// Time that plimsoll's threads waited for a core.
    CLIENT_RUN_QUEUE_WAIT: "client.run_queue_wait", Counter, "ns waiting", Client;
    /// Traffic of a network interface: bytes in.
    NET_BYTES_IN: "net.*.bytes_in", Counter, "bytes", Network;
    /// Traffic of a network interface: bytes out.
    NET_BYTES_OUT: "net.*.bytes_out", Counter, "bytes", Network;
    /// Traffic of a network interface: packets in.
    NET_PACKETS_IN: "net.*.packets_in", Counter, "", Network;
    /// Traffic of a network interface: packets out.
    NET_PACKETS_OUT: "net.*.packets_out", Counter, "", Network;
    /// Traffic of a network interface: dropped in.
    NET_DROPPED_IN: "net.*.dropped_in", Counter, "", Network;
    /// Traffic of a network interface: dropped out.
    NET_DROPPED_OUT: "net.*.dropped_out", Counter, "", Network;
    /// Segments sent again.
    TCP_RETRANSMITS: "tcp.retransmits", Counter, "", Network;
    /// Segments sent.
    TCP_SEGMENTS_OUT: "tcp.segments_out", Counter, "", Network;
    /// Connections for which an accept queue had no room.
    TCP_LISTEN_OVERFLOWS: "tcp.listen_overflows", Counter, "", Network;
    /// Connections that a listening socket dropped.
    TCP_LISTEN_DROPS: "tcp.listen_drops", Counter, "", Network;
    /// SYN segments sent again.
    TCP_SYN_RETRANSMITS: "tcp.syn_retransmits", Counter, "", Network;
    /// Retransmission timeouts.
    TCP_TIMEOUTS: "tcp.timeouts", Counter, "", Network;
    /// Connection requests dropped from a full SYN queue.
    TCP_SYN_QUEUE_DROPS: "tcp.syn_queue_drops", Counter, "", Network;
    /// Connection requests answered by a cookie.
    TCP_SYN_QUEUE_COOKIES: "tcp.syn_queue_cookies", Counter, "", Network;
    /// Segments dropped from a socket's backlog.
    TCP_BACKLOG_DROPS: "tcp.backlog_drops", Counter, "", Network;
    /// Segments dropped from a receive queue.
    TCP_RECEIVE_QUEUE_DROPS: "tcp.receive_queue_drops", Counter, "", Network;
    /// Segments dropped since the window was closed.
    TCP_ZERO_WINDOW_DROPS: "tcp.zero_window_drops", Counter, "", Network;
    /// Times that TCP ran short of memory.
    TCP_MEMORY_PRESSURES: "tcp.memory_pressures", Counter, "", Network;
    /// Connections that are over and still hold a port.
    TCP_TIME_WAIT: "tcp.time_wait", Gauge, "", Network;
    /// Local ports that connections to one peer may have.
    TCP_LOCAL_PORTS: "tcp.local_ports", Gauge, "", Network;
    /// Ports held by connections that are over, of the pair of addresses nearest to its end.
    TCP_TIME_WAIT_PAIR: "tcp.time_wait_pair", Gauge, "", Network;
    /// Whether that pair is of another network namespace than the server's: 1 or 0.
    TCP_TIME_WAIT_BEHIND: "tcp.time_wait_behind", Gauge, "", Network;
    /// CPU time of the control group.
    CGROUP_CPU: "cgroup.cpu", Counter, "ns", ControlGroup;
    /// Periods of its quota.
    CGROUP_PERIODS: "cgroup.periods", Counter, "", ControlGroup;
    /// Periods in which the quota was used up.
    CGROUP_PERIODS_THROTTLED: "cgroup.periods_throttled", Counter, "", ControlGroup;
    /// Time that it was held back.
    CGROUP_THROTTLED: "cgroup.throttled", Counter, "ns waiting", ControlGroup;
    /// Its quota.
    CGROUP_QUOTA: "cgroup.quota", Gauge, "cores", ControlGroup;
    /// Processes that were ended for want of memory.
    CGROUP_OOM_KILLS: "cgroup.oom_kills", Counter, "", ControlGroup;
    /// Its memory.
    CGROUP_MEMORY: "cgroup.memory", Gauge, "bytes", ControlGroup;
    /// Its limit of memory.
    CGROUP_MEMORY_MAX: "cgroup.memory_max", Gauge, "bytes", ControlGroup;
    /// Connections that wait to be accepted.
    LISTEN_QUEUE: "listen.queue", Gauge, "", Socket;
    /// How many may wait.
    LISTEN_BACKLOG: "listen.backlog", Gauge, "", Socket;
    /// Connections that were accepted.
    ACCEPTED_CONNECTIONS: "accepted.connections", Gauge, "", Socket;
    /// Bytes received that the server has not read.
    ACCEPTED_RECEIVE_QUEUE: "accepted.receive_queue", Gauge, "bytes", Socket;
    /// Bytes that the server has written and nobody has acknowledged.
    ACCEPTED_SEND_QUEUE: "accepted.send_queue", Gauge, "bytes", Socket;
    /// Whether the connections are others' than the load's: 1 or 0.
    ACCEPTED_BY_OTHERS: "accepted.by_others", Gauge, "", Socket;
    /// Of the time with something to send, that in which the receiver's window was closed.
    ACCEPTED_WINDOW_LIMITED: "accepted.window_limited", Gauge, "share", Socket;
    /// The same in which the send buffer was too small.
    ACCEPTED_BUFFER_LIMITED: "accepted.buffer_limited", Gauge, "share", Socket;
    /// Connections that waited for the receiver's window on average.
    ACCEPTED_WINDOW_WAITING: "accepted.window_waiting", Gauge, "", Socket;
    /// CPU time of the server's dependencies on its machine.
    DOWNSTREAM_CPU: "downstream.cpu", Counter, "ns", Dependency;
    /// The same of those that may run on the server's cores only.
    DOWNSTREAM_CPU_ON_ITS_CORES: "downstream.cpu_on_its_cores", Counter, "ns", Dependency;
    /// Their processes.
    DOWNSTREAM_PROCESSES: "downstream.processes", Gauge, "", Dependency;
    /// Sessions of a database that wait for a lock.
    DOWNSTREAM_IN_LOCK: "downstream.in_lock", Gauge, "", Dependency;
    /// Threads of a database that wait.
    DOWNSTREAM_THREADS_WAITING: "downstream.threads_waiting", Gauge, "", Dependency;
    /// Quota of a dependency's control group.
    DOWNSTREAM_QUOTA: "downstream.quota.*", Gauge, "cores", Dependency;
    /// Periods of that quota.
    DOWNSTREAM_PERIODS: "downstream.periods.*", Counter, "", Dependency;
    /// Periods in which it was used up.
    DOWNSTREAM_PERIODS_THROTTLED: "downstream.periods_throttled.*", Counter, "", Dependency;
    /// Connections to a dependency.
    PEER_CONNECTIONS: "peer.*.connections", Gauge, "", Dependency;
    /// Connections that wait to be accepted by it.
    PEER_QUEUED: "peer.*.queued", Gauge, "", Dependency;
    /// Connections on which an answer of it is waited for.
    PEER_WAITING: "peer.*.waiting", Gauge, "", Dependency;
    /// Connections on which data of it came lately.
    PEER_COMING: "peer.*.coming", Gauge, "", Dependency;
    /// Bytes of it that the server has not read.
    PEER_UNREAD: "peer.*.unread", Gauge, "bytes", Dependency;
    /// Bytes to it that are not sent.
    PEER_UNSENT: "peer.*.unsent", Gauge, "bytes", Dependency;
    /// Bytes to it that it has not read.
    PEER_ON_THE_WAY: "peer.*.on_the_way", Gauge, "bytes", Dependency;
    /// Segments with data sent to it.
    PEER_SEGMENTS_SENT: "peer.*.segments_sent", Counter, "", Dependency;
    /// Bytes received of it.
    PEER_RECEIVED: "peer.*.received", Counter, "bytes", Dependency;
    /// Number of the process that takes connections to a dependency.
    PEER_PROCESS: "peer.*.process.*", Gauge, "", Dependency;
    /// What the server tells of itself; a counter where it says so.
    METRICS: "metrics.*", Gauge, "", Metrics;
}

/// The row of a series; `None`: no probe reads such a series.
pub fn series_row(name: &str) -> Option<&'static SeriesRow> {
    let named = |row: &&SeriesRow| labels(row.name, name).is_some();
    // A name as it stands goes before one with any text in it.
    SERIES.iter().find(|row| row.name == name).or_else(|| SERIES.iter().find(named))
}

/// The texts that stand in a name where `*` stands in a pattern; `None`: it is no such name.
fn labels<'n>(pattern: &str, name: &'n str) -> Option<Vec<&'n str>> {
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
    fn series_are_found_by_their_names() {
        for (name, expect) in [
            ("server.cpu", Some(SERVER_CPU)),
            ("thread.worker-1.77", Some(THREAD)),
            ("threads.worker-", Some(THREADS)),
            ("peer.10.0.0.1:5432.connections", Some(PEER_CONNECTIONS)),
            ("peer.[::1]:5432.process.postgres", Some(PEER_PROCESS)),
            ("peer.:8080.unsent", Some(PEER_UNSENT)),
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
            assert_eq!(series_row(name).copied(), expect, "{name}");
        }
    }

    #[test]
    fn labels_are_put_in_and_read_back() {
        let peer = "10.0.0.1:5432";
        let name = PEER_COMING.name_with(peer);
        assert_eq!((name.as_str(), PEER_COMING.label(&name)), ("peer.10.0.0.1:5432.coming", Some(peer)));
        assert_eq!((PEER_WAITING.label(&name), SERVER_CPU.label("server.cpu")), (None, None));
        assert_eq!(PEER_PROCESS.labels("peer.10.0.0.1:5432.process.db.x"), Some((peer, "db.x")));
        assert_eq!(PEER_PROCESS.labels("peer.10.0.0.1:5432.coming"), None);
    }

    #[test]
    fn no_series_has_two_rows() {
        for (number, row) in SERIES.iter().enumerate() {
            assert!(SERIES[..number].iter().all(|before| before.name != row.name), "{}", row.name);
            let read = row.name.replace('*', "x");
            assert_eq!(series_row(&read), Some(row), "{read}");
        }
    }
}
