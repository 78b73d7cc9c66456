//! Measures the server's downstream dependencies on this machine. A dependency is a process, such
//! as a database, to which the server has connections over TCP or unix sockets. A dependency of a
//! dependency also counts as a dependency of the server.
//!
//! The CPU time of dependencies belongs to the server's work, so it does not count as interference.
//! The probe also reads the CPU quotas of the dependencies' control groups. For databases, the
//! probe counts the sessions that wait, by process title or by thread state.

use super::cgroup::{CpuLimit, SAMPLES_PER_SLOW_READING};
use super::sink::{ReadingExtent, ReadingSchedule, Sink};
use super::threads::{ThreadReadSchedule, Threads, thread_scale_factor};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::listener;
use plimsoll_sys::probe::process::{CpuClock, WaitReason, numbered_entries, read_process_stat};
use plimsoll_sys::process::{cores_of_processes, cores_online, permitted_cores};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of processes on a machine for which every CPU time is read before a load.
/// Reading more processes would delay the load.
const CPU_TIMES_READ_MAX: usize = 2000;
/// The largest number of dependencies that are reported by name.
const NAMED_DEPENDENCIES_MAX: usize = 8;
/// The largest number of dependencies whose control groups are read.
const CONTROL_GROUPS_MAX: usize = 16;
/// The process name of PostgreSQL, whose processes show their state in the process title. While a
/// statement waits for a lock, the title ends with [`LOCK_WAIT_TITLE_SUFFIX`] (setting
/// `update_process_title`, which is on by default).
const DATABASE_WITH_STATE_IN_TITLE: &str = "postgres";
const LOCK_WAIT_TITLE_SUFFIX: &str = " waiting";
/// The process names of databases that run each session in a thread. The thread of a session waits
/// on a futex with a timeout during a lock wait, and waits for data while the session is idle.
const THREAD_PER_SESSION_DATABASES: [&str; 2] = ["mariadbd", "mysqld"];

/// Addresses on this machine to which the server is known to send requests. A server may open a new
/// connection to a dependency for each request. A connection for one request often closes before
/// plimsoll finds its owner, so plimsoll remembers every address of a dependency that it found
/// once.
pub type DependencyAddresses = Arc<Mutex<BTreeSet<SocketAddr>>>;

pub struct DownstreamProbe {
    port: u16,
    dependency_addresses: DependencyAddresses,
    look: ReadingSchedule,
    titles: ReadingSchedule,
    /// CPU time of every process at the latest start or end of a load, ns, by process id. The CPU
    /// time of a dependency that is found later counts from the process's entry in this map.
    cpu_ns_at_edge: BTreeMap<u32, u64>,
    before_ns: u64,
    members: BTreeMap<u32, DownstreamProcess>,
    /// The threads of a database that runs each session in a thread; `None` without such a
    /// database.
    sessions: Option<Threads>,
    turns: ThreadReadSchedule,
    /// Control groups of the dependencies, by folder. Each entry has the name of a process in the
    /// group, and the group's CPU limit.
    groups: BTreeMap<PathBuf, (String, CpuLimit)>,
    buffer: Vec<u8>,
}

struct DownstreamProcess {
    is_titled: bool,
    /// Whether the server is restricted to some cores of the machine, and the dependency may run
    /// only on the server's cores.
    shares_cores: bool,
    clock: CpuClock,
    base_ns: u64,
    cpu_ns: u64,
}

impl DownstreamProbe {
    /// Creates the probe. `port` is the server's own port: connections to the server's port come
    /// from clients, not from dependencies.
    pub fn new(port: u16) -> DownstreamProbe {
        DownstreamProbe {
            port,
            dependency_addresses: DependencyAddresses::default(),
            look: ReadingSchedule::new(2_000_000_000),
            titles: ReadingSchedule::with_core_divisor(500_000_000, 500),
            cpu_ns_at_edge: BTreeMap::new(),
            before_ns: 0,
            members: BTreeMap::new(),
            sessions: None,
            turns: ThreadReadSchedule::default(),
            groups: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    pub fn dependency_addresses(&self) -> DependencyAddresses {
        Arc::clone(&self.dependency_addresses)
    }

    /// Searches for dependencies of the processes `server` if a search is due. Reports the CPU time
    /// and the CPU quotas of the dependencies, and the database sessions that wait.
    pub fn sample(&mut self, server: &BTreeSet<u32>, sink: &mut Sink) {
        let edge = sink.extent() == ReadingExtent::Edge;
        if edge {
            self.look.make_due_now();
        }
        let DownstreamProbe { look, port, dependency_addresses: asked, .. } = self;
        let found = look.read_if_due(sink, || {
            let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
            listener::find_dependencies(server, &asked, *port, std::process::id())
        });
        if let Some(Ok(found)) = found {
            report_dependency_names(&found.accepting_pids, sink);
            self.adopt_processes(found.pids, server, sink);
        }
        let at_ns = monotonic_ns();
        let (mut cpu_ns, mut sharing_ns) = (0, 0);
        for member in self.members.values_mut() {
            if let Ok(now_ns) = member.clock.read_ns() {
                member.cpu_ns = now_ns.saturating_sub(member.base_ns).max(member.cpu_ns);
            }
            cpu_ns += member.cpu_ns;
            sharing_ns += if member.shares_cores { member.cpu_ns } else { 0 };
        }
        if !self.members.is_empty() {
            sink.counter_at("downstream.cpu", "ns", at_ns, cpu_ns as f64);
            if self.members.values().any(|member| member.shares_cores) {
                sink.counter_at("downstream.cpu_on_its_cores", "ns", at_ns, sharing_ns as f64);
            }
            sink.gauge("downstream.processes", "", self.members.len() as f64);
        }
        self.report_lock_waits(sink);
        self.report_waiting_sessions(sink);
        self.report_cpu_quotas(sink);
        if edge {
            self.record_cpu_times();
        }
    }

    fn report_lock_waits(&mut self, sink: &mut Sink) {
        let mut titled = self.members.iter().filter(|(_, member)| member.is_titled).map(|(pid, _)| *pid).peekable();
        if titled.peek().is_none() {
            return;
        }
        let waits =
            |pid: &u32| title_shows_lock_wait(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        if let Some(waiting) = self.titles.read_if_due(sink, || titled.filter(waits).count()) {
            sink.gauge("downstream.in_lock", "", waiting as f64);
        }
    }

    fn report_waiting_sessions(&mut self, sink: &mut Sink) {
        let DownstreamProbe { sessions: Some(sessions), turns, buffer, .. } = self else { return };
        sessions.refresh_within_budget(sink, buffer);
        turns.begin_sample(sink.extent(), sink.effort(), sessions.list.len());
        sessions.sample(turns, buffer);
        if turns.are_thread_states_due() && sessions.knows_any_wait() {
            let waiting =
                sessions.count_waiting_threads(turns, [WaitReason::Lock, WaitReason::Sleep], &mut HashMap::new());
            let each = thread_scale_factor(std::iter::once(&*sessions), turns);
            sink.gauge("downstream.threads_waiting", "", waiting.iter().sum::<usize>() as f64 * each);
        }
    }

    fn report_cpu_quotas(&mut self, sink: &mut Sink) {
        if !sink.is_due_in_this_sample(SAMPLES_PER_SLOW_READING, 3) {
            return;
        }
        let DownstreamProbe { groups, buffer, .. } = self;
        for (name, limit) in groups.values() {
            let Some(Some(cores)) = limit.read_quota_cores(buffer) else { continue };
            let Some(throttling) = limit.read_throttling(buffer) else { continue };
            sink.gauge(&format!("downstream.quota.{name}"), "cores", cores);
            sink.counter(&format!("downstream.periods.{name}"), "", throttling.periods as f64);
            sink.counter(&format!("downstream.periods_throttled.{name}"), "", throttling.throttled_periods as f64);
        }
    }

    fn adopt_processes(&mut self, found: BTreeSet<u32>, server: &BTreeSet<u32>, sink: &mut Sink) {
        let first = self.members.is_empty();
        let known = !self.cpu_ns_at_edge.is_empty();
        let new: Vec<u32> = found.into_iter().filter(|pid| !self.members.contains_key(pid)).collect();
        if new.is_empty() {
            return;
        }
        let held = cores_of_processes(server.iter().copied()).filter(|cores| cores.count() < cores_online());
        for pid in new {
            let Ok(clock) = CpuClock::for_process(pid) else { continue };
            // A process without a recorded CPU time has started since the latest start or end of a
            // load, so all of its CPU time counts.
            let base_ns = if known { self.cpu_ns_at_edge.get(&pid).copied() } else { clock.read_ns().ok() };
            let name = read_process_stat(pid, &mut Vec::new()).map(|(_, name)| name).unwrap_or_default();
            let is_titled = name == DATABASE_WITH_STATE_IN_TITLE;
            if THREAD_PER_SESSION_DATABASES.contains(&name.as_str()) && self.sessions.is_none() {
                self.sessions = Some(Threads::new(pid));
            }
            if self.groups.len() < CONTROL_GROUPS_MAX
                && self.groups.values().all(|(other, _)| *other != name)
                && let Some((folder, limit)) = CpuLimit::for_process(pid)
            {
                self.groups.entry(folder).or_insert((name, limit));
            }
            let shares_cores = held.zip(permitted_cores(pid)).is_some_and(|(all, own)| own.is_within(&all));
            let base_ns = base_ns.unwrap_or(0);
            self.members.insert(pid, DownstreamProcess { is_titled, shares_cores, clock, base_ns, cpu_ns: 0 });
        }
        if first && known && !self.members.is_empty() {
            sink.counter_at("downstream.cpu", "ns", self.before_ns, 0.0);
        }
    }

    fn record_cpu_times(&mut self) {
        self.cpu_ns_at_edge.clear();
        let pids = numbered_entries("/proc").unwrap_or_default();
        if pids.len() <= CPU_TIMES_READ_MAX {
            let clock = |pid: u32| Some((pid, CpuClock::for_process(pid).ok()?.read_ns().ok()?));
            self.cpu_ns_at_edge.extend(pids.into_iter().filter_map(clock));
            self.before_ns = monotonic_ns();
        }
    }
}

/// Whether a process's title says that the process waits for a lock. The title replaces the
/// arguments in the process's command line, and ends with zeros or spaces.
fn title_shows_lock_wait(title: &[u8]) -> bool {
    let title = String::from_utf8_lossy(title);
    title.trim_end_matches(['\0', ' ']).ends_with(LOCK_WAIT_TITLE_SUFFIX)
}

/// Reports the names of the processes that accept the server's connections. The map `takers`
/// (process id by address) has few entries, because the server connects to few addresses.
fn report_dependency_names(takers: &BTreeMap<String, u32>, sink: &mut Sink) {
    for (address, pid) in takers.iter().take(NAMED_DEPENDENCIES_MAX) {
        if let Ok((_, name)) = read_process_stat(*pid, &mut Vec::new()) {
            sink.gauge(&format!("peer.{address}.process.{name}"), "", f64::from(*pid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_titles_show_waiting_statements() {
        for (title, expect) in [
            ("postgres: app shop 127.0.0.1(41922) UPDATE waiting\0\0\0", true),
            ("postgres: app shop [local] SELECT waiting   ", true),
            ("postgres: app shop [local] idle in transaction\0", false),
            ("postgres: waiting shop [local] UPDATE\0", false),
            ("postgres\0-D\0/waiting\0", false),
            ("", false),
        ] {
            assert_eq!(title_shows_lock_wait(title.as_bytes()), expect, "{title:?}");
        }
    }
}
