//! Readings of the server's processes, summed over the found processes and all their descendants.
//! After a restart of the server, the new processes are found, and the sums continue.

use super::downstream::{DependencyAddresses, DownstreamProbe};
use super::finder::{FoundServer, ServerFinder};
use super::probe::{LiveServerCpu, Probe};
use super::sink::{ReadingExtent, ReadingSchedule, Sink};
use super::threads::{BUSY_CORE_SHARE_MIN, ThreadReadSchedule, Threads, thread_scale_factor};
use plimsoll_model::SeriesKind;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::process::{
    CpuClock, Stat, WaitReason, file_table_tids, numbered_entries, open_file_count, page_bytes, parse_files_max,
    parse_stat, read_process_stat, ticks_per_second,
};
use plimsoll_sys::probe::sockets::SocketDiagnostics;
use plimsoll_sys::probe::{ProcFile, listener};
use plimsoll_sys::process::cores_of_processes;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of samples that the live CPU use figure covers.
const LIVE_CPU_SAMPLES: usize = 10;
/// The largest number of busy threads that get their own series.
const THREADS_SHOWN_MAX: usize = 24;
/// The largest number of processes whose states and sizes are all read in each sample. The CPU
/// clocks of all processes are always read, because reading them costs much less.
const PROCESSES_PER_SAMPLE_MAX: usize = 8;
/// The smallest number of threads with similar names that form a group.
const SIMILAR_THREADS_MIN: usize = 3;
/// The largest number of groups of threads with similar names that are reported.
const THREAD_GROUPS_MAX: usize = 8;
/// The names of the series that count waiting threads, each with the reason of the wait.
const WAIT_REASON_SERIES: [(&str, WaitReason); 5] = [
    ("server.in_lock", WaitReason::Lock),
    ("server.in_sleep", WaitReason::Sleep),
    ("server.in_read", WaitReason::Data),
    ("server.in_write", WaitReason::BufferSpace),
    ("server.in_disk", WaitReason::Disk),
];
/// One of this many readings of a process includes the kernel's sums over all threads, which are
/// slow to read.
const READINGS_PER_THREAD_SUM: u64 = 5;

/// One process of the server, with the results of its last readings.
struct ServerProcess {
    pid: u32,
    name: String,
    clock: CpuClock,
    /// The file `/proc/PID/stat` of the process. At every read of the file, the kernel sums CPU
    /// time and page faults over all threads, which is slow.
    whole: ProcFile,
    /// The file `stat` of the first thread, which differs from `whole` only in CPU time and page
    /// faults.
    brief: ProcFile,
    first: Stat,
    last: Stat,
    /// CPU time of the process before the measurement began, ns; this time is subtracted from later
    /// readings.
    base_ns: u64,
    /// CPU time since the measurement began, ns.
    cpu_ns: u64,
    threads: Threads,
    /// The id of one thread for each file table of the process; each table is read through its
    /// thread.
    file_table_tids: Vec<u32>,
    files_max: Option<u64>,
    /// The number of readings so far that included more than the CPU time.
    looks: u64,
}

/// How much data about a process one reading has read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadDepth {
    /// The process has ended.
    Gone,
    /// Only the CPU clock was read.
    Clock,
    /// The CPU clock and the file `stat` of the first thread (state, memory, number of threads)
    /// were read.
    Brief,
    /// The CPU clock and the file `stat` of the process, with its slow sums over all threads, were
    /// read.
    Whole,
}

/// The sums over one process or several processes since the measurement began. The sums are ticks
/// in user and kernel mode, ns of waiting for a core, context switches (voluntary, involuntary),
/// and page faults that waited for a device.
#[derive(Default, Clone, Copy)]
struct ProcessSums {
    user_ticks: u64,
    system_ticks: u64,
    wait_ns: u64,
    switches: (u64, u64),
    major_faults: u64,
}

/// The file tables of the server's processes, for other probes: a process id and the id of a thread
/// for each table.
pub type SharedFileTables = Arc<Mutex<Vec<(u32, u32)>>>;

pub struct ServerProbe {
    finder: ServerFinder,
    live: LiveServerCpu,
    tables: SharedFileTables,
    /// The parent process id of every process on this machine.
    parents: BTreeMap<u32, u32>,
    /// Process ids of descendants that are separate servers.
    separate_servers: BTreeSet<u32>,
    /// The port of the measured server; `None` if the target is on another machine.
    port: Option<u16>,
    turns: ThreadReadSchedule,
    stats_turn: usize,
    roots: Vec<u32>,
    members: Vec<ServerProcess>,
    /// CPU time of the server's processes before a restart, ns.
    earlier_cpu_ns: u64,
    /// CPU time of child processes that have ended since the restart, ns.
    ended_ns: u64,
    ended: ProcessSums,
    lost: Option<String>,
    /// The start time of plimsoll's own process, in ticks. The whole CPU time of a process that
    /// started after plimsoll counts.
    own_start_ticks: u64,
    shown: BTreeSet<(u32, u32)>,
    recent: VecDeque<(u64, u64)>,
    rescan: ReadingSchedule,
    seek: ReadingSchedule,
    open_files_schedule: ReadingSchedule,
    /// The dependencies of the server; `None` if the target is on another machine.
    downstream: Option<DownstreamProbe>,
    before_ns: u64,
    buffer: Vec<u8>,
}

impl ServerProcess {
    fn open(pid: u32, own_start_ticks: u64, from_birth: bool, buffer: &mut Vec<u8>) -> io::Result<ServerProcess> {
        let whole = ProcFile::open(format!("/proc/{pid}/stat"))?;
        let brief = ProcFile::open(format!("/proc/{pid}/task/{pid}/stat"))?;
        let (last, name) = read_process_stat(pid, buffer)?;
        let clock = CpuClock::for_process(pid)?;
        let from_birth = from_birth && last.started_ticks >= own_start_ticks;
        let base_ns = if from_birth { 0 } else { clock.read_ns()? };
        let nothing = Stat { user_ticks: 0, system_ticks: 0, reaped_ticks: 0, major_faults: 0, ..last };
        let first = if from_birth { nothing } else { last };
        let files_max = std::fs::read(format!("/proc/{pid}/limits")).ok().and_then(|text| parse_files_max(&text));
        let mut threads = Threads::new(pid);
        threads.refresh(from_birth, buffer);
        let file_table_tids = file_table_tids(pid, threads.list.iter().map(|thread| thread.tid));
        Ok(ServerProcess {
            pid,
            name,
            clock,
            whole,
            brief,
            first,
            last,
            base_ns,
            cpu_ns: 0,
            threads,
            file_table_tids,
            files_max,
            looks: 0,
        })
    }

    /// Reads the CPU time of the process, and further values if it is the process's turn.
    fn sample_cpu(&mut self, in_turn: bool, sink: &Sink, buffer: &mut Vec<u8>) -> ReadDepth {
        let clock = self.clock.read_ns();
        if let Ok(cpu_ns) = clock {
            self.cpu_ns = cpu_ns.saturating_sub(self.base_ns).max(self.cpu_ns);
            if !in_turn {
                return ReadDepth::Clock;
            }
        }
        let whole = match sink.extent() {
            ReadingExtent::Least => false,
            ReadingExtent::Usual => self.looks.is_multiple_of(READINGS_PER_THREAD_SUM),
            ReadingExtent::Edge => true,
        };
        self.looks += 1;
        let source = if whole { &self.whole } else { &self.brief };
        let Some(stat) = source.read(buffer).ok().and_then(parse_stat) else { return ReadDepth::Gone };
        // A zombie keeps its CPU time, but has no threads and no memory.
        if stat.state == b'Z' {
            return ReadDepth::Gone;
        }
        let Stat { state, threads, resident_pages, .. } = stat;
        self.last = if whole { stat } else { Stat { state, threads, resident_pages, ..self.last } };
        self.threads.refresh_if_count_changed(threads, sink, buffer);
        if whole { ReadDepth::Whole } else { ReadDepth::Brief }
    }

    fn reaped_ticks(&self) -> u64 {
        self.last.reaped_ticks.saturating_sub(self.first.reaped_ticks)
    }

    fn sums_since_first_reading(&self) -> ProcessSums {
        ProcessSums {
            user_ticks: self.last.user_ticks.saturating_sub(self.first.user_ticks),
            system_ticks: self.last.system_ticks.saturating_sub(self.first.system_ticks),
            wait_ns: self.threads.wait_ns(),
            switches: self.threads.switches(),
            major_faults: self.last.major_faults.saturating_sub(self.first.major_faults),
        }
    }
}

impl ProcessSums {
    fn add(&mut self, other: ProcessSums) {
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
        self.wait_ns += other.wait_ns;
        self.switches = (self.switches.0 + other.switches.0, self.switches.1 + other.switches.1);
        self.major_faults += other.major_faults;
    }
}

impl ServerProbe {
    /// Creates the probe. `port` is the target's port, if the target is on this machine.
    pub fn new(finder: ServerFinder, live: LiveServerCpu, port: Option<u16>) -> ServerProbe {
        let mut buffer = Vec::new();
        let own_start_ticks =
            read_process_stat(std::process::id(), &mut buffer).map_or(u64::MAX, |(stat, _)| stat.started_ticks);
        let mut server = ServerProbe {
            finder,
            live,
            tables: SharedFileTables::default(),
            parents: BTreeMap::new(),
            separate_servers: BTreeSet::new(),
            port,
            turns: ThreadReadSchedule::default(),
            stats_turn: 0,
            roots: Vec::new(),
            members: Vec::new(),
            earlier_cpu_ns: 0,
            ended_ns: 0,
            ended: ProcessSums::default(),
            lost: None,
            own_start_ticks,
            shown: BTreeSet::new(),
            recent: VecDeque::new(),
            rescan: ReadingSchedule::new(1_000_000_000),
            // A server that ended may restart at once, so the search for its successor runs often.
            seek: ReadingSchedule::with_core_divisor(100_000_000, 100),
            open_files_schedule: ReadingSchedule::new(200_000_000),
            downstream: port.map(DownstreamProbe::new),
            before_ns: 0,
            buffer,
        };
        match server.finder.initial_result().clone() {
            Ok(found) => {
                server.roots = found.roots;
                server.update_members(false);
            }
            Err(reason) => {
                server.lost = Some(reason);
                server.seek = ReadingSchedule::new(1_000_000_000);
            }
        }
        server
    }

    /// Returns the topmost processes of the server; empty while no server is found.
    pub fn root_pids(&self) -> &[u32] {
        &self.roots
    }

    pub fn shared_file_tables(&self) -> SharedFileTables {
        Arc::clone(&self.tables)
    }

    /// Returns the addresses of dependencies on this machine, for the probe that finds
    /// dependencies.
    pub fn dependency_addresses(&self) -> DependencyAddresses {
        self.downstream.as_ref().map(DownstreamProbe::dependency_addresses).unwrap_or_default()
    }

    /// Updates the list of the server's processes.
    fn update_members(&mut self, from_birth: bool) {
        // Only new processes are read, so a process keeps the parent of its first reading.
        let pids = numbered_entries("/proc").unwrap_or_default();
        let mut parents = BTreeMap::new();
        for pid in pids {
            let parent = self.parents.get(&pid).copied();
            let parent = parent.or_else(|| read_process_stat(pid, &mut self.buffer).ok().map(|(stat, _)| stat.parent));
            parents.extend(parent.map(|parent| (pid, parent)));
        }
        let wanted = self.find_server_pids(&parents);
        for pid in wanted.into_iter().filter(|pid| parents.contains_key(pid)) {
            if self.members.iter().all(|member| member.pid != pid) {
                // A process that ended before it could be opened is not measured itself. The CPU
                // time of a short-lived process is part of its parent's sum over ended children.
                self.members.extend(ServerProcess::open(pid, self.own_start_ticks, from_birth, &mut self.buffer));
            }
        }
        self.parents = parents;
        for member in &mut self.members {
            member.file_table_tids = file_table_tids(member.pid, member.threads.list.iter().map(|thread| thread.tid));
        }
        self.publish_file_tables();
    }

    /// Returns the server's topmost processes and their descendants, except separate servers and
    /// their descendants.
    fn find_server_pids(&mut self, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
        self.separate_servers.retain(|pid| parents.contains_key(pid));
        loop {
            let apart =
                parents.iter().filter(|(pid, _)| !self.separate_servers.contains(pid)).map(|(pid, of)| (*pid, *of));
            let family = listener::processes_with_descendants(&self.roots, std::process::id(), &apart.collect());
            let is_known = |pid: &u32| self.roots.contains(pid) || self.members.iter().any(|member| member.pid == *pid);
            let unknown: Vec<u32> = family.iter().copied().filter(|pid| !is_known(pid)).collect();
            let (Some(root), false) = (self.roots.first(), unknown.is_empty()) else { return family };
            let Ok(mut askers) = SocketDiagnostics::open_process_and_own_namespaces(*root) else { return family };
            let serves = |pid: &u32| listener::is_separate_server(&mut askers, *pid, *root, self.port).unwrap_or(false);
            let found: Vec<u32> = unknown.into_iter().filter(serves).collect();
            if found.is_empty() {
                return family;
            }
            self.separate_servers.extend(found);
        }
    }

    fn publish_file_tables(&self) {
        let all =
            self.members.iter().flat_map(|member| member.file_table_tids.iter().map(|table| (member.pid, *table)));
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
    }

    /// Returns the CPU time of all processes since the measurement began, ns.
    fn cpu_ns(&self) -> u64 {
        let reaped_ticks: u64 = self.members.iter().map(ServerProcess::reaped_ticks).sum();
        let reaped_ns = reaped_ticks * (1_000_000_000 / ticks_per_second());
        // The parent's sum of CPU time includes an ended child once the parent has reaped the
        // child. `ended_ns` includes an ended child if this probe ever saw the child.
        self.earlier_cpu_ns + self.members.iter().map(|m| m.cpu_ns).sum::<u64>() + reaped_ns.max(self.ended_ns)
    }

    /// Searches for the server that replaced an ended server. Returns whether a new server was
    /// found.
    fn find_successor_server(&mut self, sink: &mut Sink) -> bool {
        let finder = &self.finder;
        match self.seek.read_if_due(sink, || finder.find_successor()) {
            Some(Ok(found)) => {
                self.switch_to_new_server(found, sink);
                true
            }
            Some(Err(reason)) => {
                self.lost = Some(reason);
                false
            }
            None => false,
        }
    }

    fn switch_to_new_server(&mut self, server: FoundServer, sink: &mut Sink) {
        let known = server.roots.iter().all(|root| self.members.iter().any(|member| member.pid == *root));
        self.roots = server.roots;
        if !known {
            self.earlier_cpu_ns = self.cpu_ns();
            self.ended_ns = 0;
            for member in self.members.drain(..) {
                self.ended.add(member.sums_since_first_reading());
            }
            self.shown.clear();
        }
        self.update_members(true);
        if let (false, Some(root)) = (known, self.roots.first()) {
            sink.report_found_server(*root, &server.name, &server.found_by);
        }
        self.lost = None;
        sink.set_unmeasured_reason(None);
    }

    /// Reads the CPU time of all processes, and drops processes that have ended. Returns whether at
    /// least one reading included the kernel's slow sums over all threads of a process.
    fn sample_cpu(&mut self, sink: &Sink) -> bool {
        let (buffer, count) = (&mut self.buffer, self.members.len().max(1));
        let length = if sink.extent() == ReadingExtent::Edge { count } else { PROCESSES_PER_SAMPLE_MAX };
        let (mut number, start, mut whole) = (0, self.stats_turn, false);
        let ended: Vec<ServerProcess> = self
            .members
            .extract_if(.., |member| {
                let in_turn = (number + count - start % count) % count < length;
                number += 1;
                let looked = member.sample_cpu(in_turn, sink, buffer);
                whole |= looked == ReadDepth::Whole;
                looked == ReadDepth::Gone
            })
            .collect();
        self.stats_turn = (start + length) % count;
        for member in &ended {
            self.ended_ns += member.cpu_ns;
            self.ended.add(member.sums_since_first_reading());
        }
        if !ended.is_empty() {
            self.publish_file_tables();
        }
        whole
    }

    fn update_live_cpu_use(&mut self, at_ns: u64, cpu_ns: u64) {
        self.recent.push_back((at_ns, cpu_ns));
        if self.recent.len() > LIVE_CPU_SAMPLES {
            self.recent.pop_front();
        }
        let cores = match (self.recent.front(), self.recent.back()) {
            // The sum of CPU time may decrease for a short time after a process ends, until the
            // parent's sum over ended children includes the process.
            (Some(first), Some(last)) if last.0 > first.0 => {
                Some(last.1.saturating_sub(first.1) as f64 / (last.0 - first.0) as f64)
            }
            _ => None,
        };
        self.live.set_cores_used(cores);
    }

    fn report_threads(&mut self, at_ns: u64, sink: &mut Sink) {
        let mut fullest = 0.0f64;
        for member in &mut self.members {
            for thread in &mut member.threads.list {
                let share = thread.core_share();
                fullest = fullest.max(share);
                let key = (member.pid, thread.tid);
                let shown = self.shown.contains(&key);
                let full = self.shown.len() >= THREADS_SHOWN_MAX;
                if !shown && (full || share < BUSY_CORE_SHARE_MIN || thread.read_before_ns == 0) {
                    continue;
                }
                // CPU times that an earlier sample has already read and reported are skipped.
                if shown && thread.read_ns < at_ns {
                    continue;
                }
                let (before, now) = ((thread.read_before_ns, thread.cpu_before_ns), (thread.read_ns, thread.cpu_ns));
                let name = thread.series_name(member.pid);
                if !shown {
                    self.shown.insert(key);
                    sink.counter_at(name, "ns", before.0, before.1 as f64);
                }
                sink.counter_at(name, "ns", now.0, now.1 as f64);
            }
        }
        if self.before_ns > 0 {
            sink.gauge("server.fullest_thread", "cores", fullest);
        }
        self.before_ns = at_ns;
    }

    /// Reports the number of threads in each state. If the states of only some threads were read,
    /// the counts are scaled up to all threads.
    fn report_thread_states(&self, sink: &mut Sink) {
        let (turns, all) = (&self.turns, || self.members.iter().map(|member| &member.threads));
        let each = thread_scale_factor(all(), turns);
        let of_all = |count: usize| count as f64 * each;
        let in_state = |state: u8| of_all(all().map(|threads| threads.count_in_state(turns, state)).sum());
        sink.gauge("server.threads_runnable", "", in_state(b'R'));
        sink.gauge("server.threads_blocked", "", in_state(b'D'));
        if !all().any(Threads::knows_any_wait) {
            return;
        }
        // Forked processes can share a lock at the same address, so waiters are counted over all
        // processes.
        let (mut waiting, mut places) = ([0; WAIT_REASON_SERIES.len()], HashMap::new());
        for threads in all() {
            let of = threads.count_waiting_threads(turns, WAIT_REASON_SERIES.map(|(_, what)| what), &mut places);
            waiting = std::array::from_fn(|at| waiting[at] + of[at]);
        }
        for ((name, _), waiting) in WAIT_REASON_SERIES.iter().zip(waiting) {
            sink.gauge(name, "", of_all(waiting));
        }
        if all().any(Threads::knows_any_futex) {
            let same = places.into_values().max().unwrap_or(0);
            // A count of one waiter is not scaled up to all threads, because a lock counts as
            // shared only with two or more waiters.
            sink.gauge("server.in_same_lock", "", if same > 1 { of_all(same) } else { same as f64 });
        }
    }

    /// Reports the largest groups of threads with similar names, with the number of threads in each
    /// group.
    fn report_similar_names(&self, sink: &mut Sink) {
        let mut alike = BTreeMap::new();
        for member in &self.members {
            member.threads.count_similar_names(&mut alike);
        }
        let mut groups: Vec<(String, usize)> =
            alike.into_iter().filter(|(_, count)| *count >= SIMILAR_THREADS_MIN).collect();
        groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (stem, count) in groups.into_iter().take(THREAD_GROUPS_MAX) {
            sink.gauge(&format!("threads.{stem}"), "", count as f64);
        }
    }

    /// Returns the number of cores on which any process of the server may run.
    fn cores_allowed(&self) -> Option<f64> {
        Some(cores_of_processes(self.members.iter().map(|member| member.pid))?.count().into())
    }

    fn report_open_files(&mut self, sink: &mut Sink) {
        let members = &self.members;
        // If the server has several file tables, the table with the largest share of used files is
        // reported.
        let read = self.open_files_schedule.read_if_due(sink, || {
            let mut fullest: Option<(u64, u64)> = None;
            let mut denied = false;
            for (member, table) in
                members.iter().flat_map(|member| member.file_table_tids.iter().map(move |t| (member, *t)))
            {
                let max = member.files_max.unwrap_or(u64::MAX);
                match open_file_count(member.pid, table) {
                    Ok(open) => {
                        let share = |of: (u64, u64)| of.0 as f64 / of.1 as f64;
                        if fullest.is_none_or(|most| share((open, max)) > share(most)) {
                            fullest = Some((open, max));
                        }
                    }
                    Err(error) => denied |= error.kind() == io::ErrorKind::PermissionDenied,
                }
            }
            fullest.ok_or(denied)
        });
        match read {
            Some(Ok((open, max))) => {
                sink.gauge("server.files_open", "", open as f64);
                sink.gauge("server.files_max", "", max as f64);
            }
            Some(Err(true)) => {
                let reason = "permission denied: the process is another user's";
                sink.add_gap("server.files_open", SeriesKind::Gauge, "", reason);
            }
            Some(Err(false)) | None => {}
        }
    }
}

impl Probe for ServerProbe {
    fn sample(&mut self, sink: &mut Sink) {
        if self.before_ns == 0
            && self.lost.is_none()
            && let (Ok(found), Some(root)) = (self.finder.initial_result().clone(), self.roots.first())
        {
            sink.report_found_server(*root, &found.name, &found.found_by);
        }
        if let Some(reason) = self.lost.clone() {
            if !self.find_successor_server(sink) {
                sink.set_unmeasured_reason(Some(&reason));
                sink.add_gaps_to_series("server.", &reason);
                self.live.set_cores_used(None);
                return;
            }
        } else {
            let mut rescan = std::mem::replace(&mut self.rescan, ReadingSchedule::new(0));
            if sink.extent() == ReadingExtent::Edge {
                // Find children that started since the last reading, so that their work does not
                // count as interference.
                rescan.make_due_now();
            }
            rescan.read_if_due(sink, || self.update_members(true));
            self.rescan = rescan;
        }
        let at_ns = monotonic_ns();
        let whole = self.sample_cpu(sink);
        if !self.roots.iter().any(|root| self.members.iter().any(|member| member.pid == *root))
            && !self.find_successor_server(sink)
            && self.members.is_empty()
        {
            let reason = format!("process {} has ended", self.roots.first().copied().unwrap_or_default());
            self.lost.get_or_insert(reason.clone());
            sink.add_gaps_to_series("server.", &reason);
            self.live.set_cores_used(None);
            return;
        }
        let cpu_ns = self.cpu_ns();
        sink.counter_at("server.cpu", "ns", at_ns, cpu_ns as f64);
        self.update_live_cpu_use(at_ns, cpu_ns);
        if let Some(downstream) = &mut self.downstream {
            downstream.sample(&self.members.iter().map(|member| member.pid).collect(), sink);
        }
        let mut sums = self.ended;
        let (mut pages, mut threads) = (0, 0);
        let watched = self.members.iter().map(|member| member.threads.list.len()).sum();
        self.turns.begin_sample(sink.extent(), sink.effort(), watched);
        for member in &mut self.members {
            member.threads.sample(&mut self.turns, &mut self.buffer);
            sums.add(member.sums_since_first_reading());
            pages += member.last.resident_pages;
            threads += member.last.threads;
            if member.threads.too_many {
                sink.report_unobserved_part(&format!(
                    "the process {process} has too many threads for plimsoll to watch each thread",
                    process = member.name
                ));
            }
        }
        let tick_ns = 1e9 / ticks_per_second() as f64;
        // A sample that skipped the kernel's slow sums over all threads has no new CPU times by
        // mode and no new page faults.
        if whole {
            sink.counter("server.cpu_user", "ns", sums.user_ticks as f64 * tick_ns);
            sink.counter("server.cpu_system", "ns", sums.system_ticks as f64 * tick_ns);
            sink.counter("server.major_faults", "", sums.major_faults as f64);
        }
        if self.turns.has_read_all_states() {
            sink.counter("server.switches_voluntary", "", sums.switches.0 as f64);
            sink.counter("server.switches_involuntary", "", sums.switches.1 as f64);
            self.report_similar_names(sink);
        }
        if self.turns.are_thread_states_due() {
            self.report_thread_states(sink);
        }
        if self.turns.has_read_cpu_times() {
            sink.counter("server.run_queue_wait", "ns waiting", sums.wait_ns as f64);
        }
        sink.gauge("server.rss", "bytes", (pages * page_bytes()) as f64);
        sink.gauge("server.threads", "", threads as f64);
        sink.gauge("server.processes", "", self.members.len() as f64);
        if let Some(cores) = self.cores_allowed() {
            sink.gauge("server.cores_allowed", "cores", cores);
        }
        self.report_threads(at_ns, sink);
        self.report_open_files(sink);
    }
}
