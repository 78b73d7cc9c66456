//! Checks before a load whether this machine can open the plan's connections: open files, local
//! ports, memory, accept queues. Where possible, the checks adapt the settings and report each
//! change. If no adaptation is possible, the checks refuse the plan and say what the user must
//! change.
//!
//! Not here: the number of connections that a plan needs (the plan), and opening connections.

use plimsoll_model::{AddressRange, ConnectionPlan, Injector, LoadShape, Plan};
use plimsoll_sys::process;
use std::net::Ipv4Addr;

/// The number of file descriptors that a thread needs in addition to connections, for standard
/// streams, epoll and the run file.
const RESERVED_FILE_DESCRIPTORS: u64 = 32;
/// The largest number of worker threads. More threads would only compete for the cores.
const THREADS_MAX: u64 = 1024;
/// The largest number of connections from one loopback address if several addresses are in use.
/// With few free ports left, the kernel's search for a free port is slow.
const CONNECTIONS_PER_SOURCE_ADDRESS_MAX: u64 = 10_000;
/// The smallest number of loopback source addresses that a load without keep-alive uses. With 254
/// source addresses, closed connections (TIME-WAIT) never occupy all ports.
const SOURCE_ADDRESSES_WITHOUT_KEEP_ALIVE: u64 = 254;
/// The memory of a connection with both ends on this machine, bytes. On Linux 6.18 with 50 000
/// connections we measured 8.0 kB per connection: 0.3 kB in this process and 7.7 kB in kernel
/// sockets.
const CONNECTION_BYTES: u64 = 8 << 10;
/// The additional memory of a TLS connection in this process, bytes. With 5 000 TLS connections we
/// measured 7.5 kB per connection.
const TLS_BYTES: u64 = 8 << 10;

/// The limits of a machine that bound the number of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// The limit of open files for a process, or for a thread with its own file table.
    pub files_max: u64,
    /// Whether a thread can have its own file table.
    pub has_own_file_tables: bool,
    /// The number of local ports that one source address can use for connections to one target
    /// address.
    pub ports: u64,
    /// The longest accept queue of a listener on this machine (net.core.somaxconn).
    pub backlog: u64,
    /// Memory available on this machine, bytes; 0 if unknown.
    pub memory_available_bytes: u64,
}

impl ConnectionLimits {
    /// Reads the limits of this machine.
    pub fn limits_of_machine() -> ConnectionLimits {
        let trial = std::thread::Builder::new().spawn(|| process::unshare_file_table(None).is_ok());
        ConnectionLimits {
            files_max: process::raise_open_files_limit(),
            has_own_file_tables: trial.ok().and_then(|thread| thread.join().ok()).unwrap_or(false),
            ports: process::local_port_count(),
            backlog: process::backlog_max(),
            memory_available_bytes: process::memory_available_bytes(),
        }
    }

    /// Returns the largest number of connections of one thread: the limit of open files minus
    /// descriptors for other uses.
    fn connections_per_thread_max(&self) -> u64 {
        self.files_max.saturating_sub(RESERVED_FILE_DESCRIPTORS)
    }

    /// Returns the number of threads, each with its own file table, that `connections` need; 1 if
    /// threads cannot have their own tables.
    pub fn thread_count_for_connections(&self, connections: u64) -> u64 {
        match self.has_own_file_tables {
            true => connections.div_ceil(self.connections_per_thread_max().max(1)).min(THREADS_MAX),
            false => 1,
        }
    }
}

/// The settings that the user fixed with flags. [`fit_to_machine`] does not change a fixed setting.
#[derive(Debug, Clone, Copy, Default)]
pub struct FixedSettings {
    /// Whether the user fixed the number of threads (-t).
    pub is_thread_count_fixed: bool,
    /// Whether the user fixed the number of connections of an open load (--max-connections).
    pub is_connection_count_fixed: bool,
}

/// Adapts the plan and the generator settings to the limits of the machine. Returns one sentence
/// for each adaptation. The error says what is impossible and what the user can change.
pub fn fit_to_machine(
    plan: &mut Plan,
    injector: &mut Injector,
    fixed: FixedSettings,
    local: bool,
    limits: &ConnectionLimits,
) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    let closed = match &plan.load.shape {
        LoadShape::Closed { users } => Some(users.max() as u64),
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => None,
    };
    if closed.is_none() && !fixed.is_connection_count_fixed {
        let tables = if limits.has_own_file_tables { u64::from(injector.workers) } else { 1 };
        let room = u32::try_from((limits.connections_per_thread_max() * tables).max(1)).unwrap_or(u32::MAX);
        if plan.connection_plan.connections_max > room {
            plan.connection_plan.connections_max = room;
            said.push(format!(
                "plimsoll opens at most {room} connections: the limit of open files is {files_max} (ulimit -n)",
                files_max = limits.files_max
            ));
        }
    }
    // Several users share one HTTP/2 connection, so fewer connections than users are needed.
    let closed = closed.map(|users| users.div_ceil(u64::from(plan.connection_plan.streams_max.max(1))));
    let connections = closed.unwrap_or(u64::from(plan.connection_plan.connections_max));
    said.extend(adapt_to_open_files_limit(injector, fixed, connections, limits)?);
    if plan.connection_plan.unix.is_none() {
        said.extend(adapt_to_local_ports(&plan.connection_plan, injector, connections, limits)?);
        if let (true, Some(users), false) = (local, closed, plan.connection_plan.keep_alive)
            && users > limits.backlog
            && limits.backlog > 0
        {
            said.push(format!(
                "{users} users open connections at once, but an accept queue of this machine has at most \
                 {entries_max} entries (net.core.somaxconn)",
                entries_max = limits.backlog
            ));
        }
    }
    // The memory check needs the number of connections. An open loop opens more connections when
    // responses are late, so the number is known only for a closed loop.
    if let Some(users) = closed {
        let bytes = users * (CONNECTION_BYTES + if plan.connection_plan.tls.is_some() { TLS_BYTES } else { 0 });
        if limits.memory_available_bytes > 0 && bytes > limits.memory_available_bytes {
            return Err(format!(
                "{users} connections need about {needed_mb} MB of memory, and only {free_mb} MB are free",
                needed_mb = bytes >> 20,
                free_mb = limits.memory_available_bytes >> 20
            ));
        }
    }
    Ok(said)
}

fn adapt_to_open_files_limit(
    injector: &mut Injector,
    fixed: FixedSettings,
    connections: u64,
    limits: &ConnectionLimits,
) -> Result<Option<String>, String> {
    let (room, files) = (limits.connections_per_thread_max(), limits.files_max);
    let tables = if limits.has_own_file_tables { u64::from(injector.workers.max(1)) } else { 1 };
    if connections.div_ceil(tables) <= room {
        return Ok(None);
    }
    let threads = limits.thread_count_for_connections(connections);
    if threads * room < connections {
        let most = if limits.has_own_file_tables { THREADS_MAX * room } else { room };
        return Err(format!(
            "{connections} connections need more open files than the limit of {files} allows: use at most {most} \
             connections, or raise the limit (ulimit -n)"
        ));
    }
    if fixed.is_thread_count_fixed {
        return Err(format!(
            "{connections} connections need {threads} threads with up to {files} open files each: give -t \
            {threads}, or leave -t out"
        ));
    }
    injector.workers = threads as u32;
    Ok(Some(format!(
        "plimsoll uses {threads} threads for {connections} connections, with up to {files} open files each \
         (ulimit -n)"
    )))
}

fn adapt_to_local_ports(
    connection_plan: &ConnectionPlan,
    injector: &mut Injector,
    connections: u64,
    limits: &ConnectionLimits,
) -> Result<Option<String>, String> {
    let addresses = &connection_plan.addresses;
    let each = connections.div_ceil(addresses.len().max(1) as u64);
    let loopback = !addresses.is_empty() && addresses.iter().all(|a| a.ip().is_loopback());
    let wanted = match (connection_plan.keep_alive || connection_plan.close_reset, each > limits.ports / 2) {
        (true, false) => 1,
        (true, true) => each.div_ceil(CONNECTIONS_PER_SOURCE_ADDRESS_MAX.min(limits.ports.max(1))),
        (false, _) => SOURCE_ADDRESSES_WITHOUT_KEEP_ALIVE.max(each.div_ceil(CONNECTIONS_PER_SOURCE_ADDRESS_MAX)),
    };
    let mut said = None;
    if injector.sources.is_empty() && loopback && wanted > 1 && addresses.iter().any(|a| a.is_ipv4()) {
        let first = u32::from(Ipv4Addr::LOCALHOST);
        let last = Ipv4Addr::from(first + (wanted.min(1 << 20) - 1) as u32);
        let v4 = AddressRange::new(Ipv4Addr::LOCALHOST.into(), last.into());
        injector.sources.extend(v4);
        said = Some(format!(
            "connections come from 127.0.0.1 to {last}: one local address has {} ports (--source-ip)",
            limits.ports
        ));
    }
    for address in addresses {
        let sources = injector.sources.iter().filter(|range| range.is_ipv4() == address.is_ipv4());
        let sources = sources.fold(0u64, |sum, range| sum.saturating_add(range.count())).max(1);
        let ports = sources.saturating_mul(limits.ports);
        if each > ports {
            return Err(format!(
                "{connections} connections need more local ports than the {ports} that there are to {}: give more local \
                 addresses (--source-ip)",
                address.ip()
            ));
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, TlsSpec};

    const TEST_LIMITS: ConnectionLimits = ConnectionLimits {
        files_max: 20_000,
        has_own_file_tables: true,
        ports: 28_232,
        backlog: 4096,
        memory_available_bytes: 8 << 30,
    };

    fn closed_plan(users: f64, addresses: &[&str]) -> Plan {
        let addresses = addresses.iter().map(|a| a.parse().expect("an address")).collect();
        Plan::for_get_request("h", 80, addresses, LoadShape::Closed { users: LoadCurve::constant(users) })
    }

    fn check(
        name: &str,
        mut plan: Plan,
        fixed: FixedSettings,
        limits: ConnectionLimits,
        expect: Result<(u32, u64, &str), &str>,
    ) {
        let mut injector = Injector::default();
        match (fit_to_machine(&mut plan, &mut injector, fixed, true, &limits), expect) {
            (Ok(said), Ok((workers, sources, part))) => {
                let count: u64 = injector.sources.iter().map(AddressRange::count).sum();
                assert_eq!((injector.workers, count), (workers, sources), "{name}: {said:?}");
                assert!(said.join("; ").contains(part) && said.is_empty() == part.is_empty(), "{name}: {said:?}");
            }
            (Err(said), Err(part)) => assert!(said.contains(part), "{name}: {said}"),
            (got, expect) => panic!("{name}: {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn plans_are_adapted_to_the_machine_or_refused() {
        let (v4, v6, far) = (&["127.0.0.1:80"][..], &["[::1]:80"][..], &["10.0.0.1:80"][..]);
        let free = FixedSettings { is_thread_count_fixed: false, is_connection_count_fixed: true };
        let fixed = FixedSettings { is_thread_count_fixed: true, ..free };
        let few = ConnectionLimits { files_max: 64, ..TEST_LIMITS };
        let old = ConnectionLimits { has_own_file_tables: false, ..TEST_LIMITS };
        let close = |mut plan: Plan| {
            plan.connection_plan.keep_alive = false;
            plan
        };
        let unix = |mut plan: Plan| {
            plan.connection_plan.unix = Some("/run/x".into());
            plan.connection_plan.addresses.clear();
            plan
        };
        let tls = |mut plan: Plan| {
            plan.connection_plan.tls = Some(TlsSpec::default());
            plan
        };
        check("few", closed_plan(200.0, v4), free, TEST_LIMITS, Ok((1, 0, "")));
        check("many", closed_plan(50_000.0, v4), free, TEST_LIMITS, Ok((3, 5, "3 threads for 50000")));
        check("ports only", closed_plan(15_000.0, v4), free, TEST_LIMITS, Ok((1, 2, "127.0.0.1 to 127.0.0.2")));
        check("as told", closed_plan(50_000.0, v4), fixed, TEST_LIMITS, Err("-t 3"));
        check("a small limit", closed_plan(300.0, v4), free, few, Ok((10, 0, "10 threads")));
        check("too small a limit", closed_plan(40_000.0, v4), free, few, Err("at most 32768 connections"));
        check(
            "no file at all",
            closed_plan(1.0, v4),
            free,
            ConnectionLimits { files_max: 32, ..TEST_LIMITS },
            Err("ulimit -n"),
        );
        check("one table", closed_plan(50_000.0, v4), free, old, Err("at most 19968"));
        check("no ports", closed_plan(50_000.0, v6), free, TEST_LIMITS, Err("--source-ip"));
        check(
            "two addresses",
            closed_plan(50_000.0, &["[::1]:80", "[::1]:81"]),
            free,
            TEST_LIMITS,
            Ok((3, 0, "3 threads")),
        );
        check("far", closed_plan(50_000.0, far), free, TEST_LIMITS, Err("--source-ip"));
        check("unix", unix(closed_plan(50_000.0, far)), free, TEST_LIMITS, Ok((3, 0, "3 threads")));
        check("short-lived", close(closed_plan(10.0, v4)), free, TEST_LIMITS, Ok((1, 254, "127.0.0.254")));
        check("short-lived far", close(closed_plan(10.0, far)), free, TEST_LIMITS, Ok((1, 0, "")));
        check("all at once", close(closed_plan(5000.0, far)), free, TEST_LIMITS, Ok((1, 0, "somaxconn")));
        let small = ConnectionLimits { memory_available_bytes: 64 << 20, ..TEST_LIMITS };
        check("memory", closed_plan(5_000.0, v4), free, small, Ok((1, 0, "")));
        check("memory for TLS", tls(closed_plan(5_000.0, v4)), free, small, Err("memory"));
    }

    #[test]
    fn open_loops_use_the_available_connections() {
        let mut plan = closed_plan(1.0, &["127.0.0.1:80"]);
        plan.load.shape =
            LoadShape::Open { rate: LoadCurve::constant(100.0), arrivals: plimsoll_model::ArrivalSpacing::Constant };
        let few = ConnectionLimits { files_max: 64, ..TEST_LIMITS };
        let mut injector = Injector::default();
        let said = fit_to_machine(&mut plan, &mut injector, FixedSettings::default(), true, &few).expect("fits");
        assert!(plan.connection_plan.connections_max == 32 && said.len() == 1, "{said:?}");
        plan.connection_plan.connections_max = 100;
        fit_to_machine(
            &mut plan,
            &mut injector,
            FixedSettings { is_connection_count_fixed: true, is_thread_count_fixed: false },
            true,
            &few,
        )
        .expect("fits");
        assert_eq!((plan.connection_plan.connections_max, injector.workers), (100, 4));
    }
}
