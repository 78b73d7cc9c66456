//! The threads of one process: CPU time, waiting and states. Busy threads, and threads with much
//! CPU time so far, are read in every sample. Threads with little CPU time are read in turn, over
//! all processes of the server ([`ThreadReadSchedule`]).

use super::sink::{ProbeEffort, ReadingExtent, ReadingSchedule, Sink};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::ProcFile;
use plimsoll_sys::probe::process::{
    FutexAddress, SchedStat, Status, WaitReason, numbered_entries, parse_futex_address, parse_schedstat, parse_status,
    parse_wait_channel,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest number of threads of one process that are measured one by one.
const THREADS_MAX: usize = 4096;
/// The number of thread states read in one sample. Reading a state costs five times as much as
/// reading a CPU time.
const STATES_PER_SAMPLE: usize = 4;
/// A report on thread states needs the states of this many threads, or of all threads of a server
/// with fewer threads. Reading all states of a larger server could take longer than a load.
const REPRESENTATIVE_STATES_MIN: usize = 128;
/// The number of CPU times read in one sample, in addition to the CPU times of busy threads.
const CPU_TIMES_PER_SAMPLE: usize = 24;
/// The number of CPU times read at the start or end of a load.
const CPU_TIMES_PER_EDGE: usize = 256;
/// The smallest CPU use of a busy thread, as a share of one core.
pub const BUSY_CORE_SHARE_MIN: f64 = 0.05;
/// A thread with at least this share of its process's CPU time so far is read in every sample.
const HIGH_CPU_SHARE_MIN: f64 = 0.05;

/// One thread of a process, with its last readings.
pub struct Thread {
    pub tid: u32,
    /// The name of the thread's series. The name is read when it is first needed, because most
    /// threads are idle and never need it.
    series: Option<String>,
    /// The thread's name without its final number; `None` until the thread's state is first read.
    stem: Option<String>,
    status: Option<ProcFile>,
    wait_channel: Option<ProcFile>,
    sched: ProcFile,
    /// The thread's total CPU time and waiting time before the measurement began.
    base: SchedStat,
    /// The monotonic time of the thread's last reading, ns.
    pub read_ns: u64,
    /// The monotonic time of the reading before the last, ns.
    pub read_before_ns: u64,
    /// The thread's CPU time at the last reading, ns since the measurement began.
    pub cpu_ns: u64,
    /// The thread's CPU time at the reading before the last, ns since the measurement began.
    pub cpu_before_ns: u64,
    pub wait_ns: u64,
    switches_base: Option<(u64, u64)>,
    switches: (u64, u64),
    /// The thread's state as in `/proc` (such as `R`), read in the round `state_round`
    /// ([`ThreadReadSchedule`]).
    state: u8,
    state_round: u64,
    waits_for: Option<WaitReason>,
    syscall: Option<ProcFile>,
    futex_place: Option<FutexAddress>,
    gone: bool,
}

/// Visits all items in turn, a few at a time, in an order in which neighbouring indices are far
/// apart. Threads often wake each other in index order. Visits in index order could find the same
/// few running threads every time, or no running thread at all.
#[derive(Default, Clone, Copy)]
struct RoundRobin {
    start: usize,
    length: usize,
    item_count: usize,
    /// The position of item i in the order of visits is i * `stride` modulo `item_count`. The
    /// numbers `stride` and `item_count` have no common factor.
    stride: usize,
}

/// The stride of the visits as a share of the number of items. With the golden section as the
/// stride, items that are visited one after the other lie far apart.
const STRIDE_PART: f64 = 0.618_034;

impl RoundRobin {
    /// Returns the visit after this visit, with the next `length` items of all `of` items.
    fn next(self, length: usize, of: usize) -> RoundRobin {
        let start = if of == 0 { 0 } else { (self.start + self.length) % of };
        let stride = match of == self.item_count {
            true => self.stride,
            false => ((of as f64 * STRIDE_PART) as usize..).find(|stride| are_coprime(*stride, of)).unwrap_or(1),
        };
        RoundRobin { start, length: length.min(of), item_count: of, stride }
    }

    /// Whether the items of the current visit complete a round through all items.
    fn ends_round(&self) -> bool {
        self.length > 0 && self.start + self.length >= self.item_count
    }

    fn contains_item(&self, number: usize) -> bool {
        self.item_count > 0
            && (number * self.stride % self.item_count + self.item_count - self.start) % self.item_count < self.length
    }
}

/// Whether two numbers have no common factor (Euclid).
fn are_coprime(a: usize, b: usize) -> bool {
    if b == 0 { a == 1 } else { are_coprime(b, a % b) }
}

/// Chooses the threads to read in each sample, over all processes of the server.
#[derive(Default)]
pub struct ThreadReadSchedule {
    times: RoundRobin,
    states: RoundRobin,
    /// The number of threads in all processes that the current sample has already read.
    passed: usize,
    /// The number of the current round of reading thread states. Thread states are reported once
    /// the current round has read the states of all threads, or of enough threads.
    round: u64,
    states_read: usize,
    /// Whether the current round has read enough thread states to report the states after the
    /// current sample.
    is_report_due: bool,
}

impl ThreadReadSchedule {
    /// Begins a sample of `count` threads in all.
    pub fn begin_sample(&mut self, extent: ReadingExtent, effort: ProbeEffort, count: usize) {
        let (times, states) = match extent {
            ReadingExtent::Least => (0, 0),
            ReadingExtent::Usual => (CPU_TIMES_PER_SAMPLE, STATES_PER_SAMPLE * effort.cpu_budget_factor() as usize),
            ReadingExtent::Edge => (CPU_TIMES_PER_EDGE, STATES_PER_SAMPLE),
        };
        (self.times, self.states) = (self.times.next(times, count), self.states.next(states, count));
        self.passed = 0;
        if self.is_report_due || self.round == 0 {
            (self.round, self.states_read) = (self.round + 1, 0);
        }
        self.states_read += self.states.length;
        self.is_report_due = self.states.length > 0 && self.states_read >= count.min(REPRESENTATIVE_STATES_MIN);
    }

    /// Whether the numbers of threads in each state must be reported after this sample.
    /// [`Threads::threads_with_state`] returns the threads whose states were read.
    pub fn are_thread_states_due(&self) -> bool {
        self.is_report_due
    }

    /// Whether this sample completes a round in which the states of all threads were read.
    pub fn has_read_all_states(&self) -> bool {
        self.states.ends_round()
    }

    /// Whether the current sample reads the CPU times of some threads in turn, in addition to the
    /// CPU times of busy threads.
    pub fn has_read_cpu_times(&self) -> bool {
        self.times.length > 0
    }
}

/// Returns the number of all threads, divided by the number of threads whose states the current
/// round has read.
pub fn thread_scale_factor<'a>(all: impl Iterator<Item = &'a Threads>, turns: &ThreadReadSchedule) -> f64 {
    let counts = all.map(|threads| (threads.list.len(), threads.threads_with_state(turns).count()));
    let (watched, told) = counts.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    watched as f64 / told.max(1) as f64
}

/// All threads of a process, with their last readings.
pub struct Threads {
    pid: u32,
    pub list: Vec<Thread>,
    /// The sums over ended threads: waiting time in ns, voluntary and involuntary context switches.
    ended: (u64, u64, u64),
    /// Whether the process has more threads than are measured.
    pub too_many: bool,
    look: ReadingSchedule,
}

impl Threads {
    /// Creates an empty list of threads for the process `pid`.
    pub fn new(pid: u32) -> Threads {
        Threads {
            pid,
            list: Vec::new(),
            ended: (0, 0, 0),
            too_many: false,
            look: ReadingSchedule::with_core_divisor(0, 500),
        }
    }

    /// Updates the list of threads. With `from_birth`, the CPU time of a new thread before its
    /// first reading counts.
    pub fn refresh(&mut self, from_birth: bool, buffer: &mut Vec<u8>) {
        let Ok(tids) = numbered_entries(format!("/proc/{}/task", self.pid)) else { return };
        self.too_many = tids.len() > THREADS_MAX;
        let known: BTreeSet<u32> = self.list.iter().map(|thread| thread.tid).collect();
        for tid in tids.into_iter().filter(|tid| !known.contains(tid)) {
            if self.list.len() >= THREADS_MAX {
                break;
            }
            self.list.extend(Thread::open(self.pid, tid, from_birth, buffer));
        }
    }

    /// Updates the list of threads for a process with `count` threads. The update is skipped in
    /// some samples if the server constantly starts and ends threads.
    pub fn refresh_if_count_changed(&mut self, count: u64, sink: &Sink, buffer: &mut Vec<u8>) {
        if count == self.list.len() as u64 || self.too_many {
            return;
        }
        let mut look = std::mem::replace(&mut self.look, ReadingSchedule::new(0));
        look.read_if_due(sink, || self.refresh(true, buffer));
        self.look = look;
    }

    /// Updates the list of threads as often as the CPU budget allows, for a process whose number of
    /// threads is unknown.
    pub fn refresh_within_budget(&mut self, sink: &Sink, buffer: &mut Vec<u8>) {
        self.refresh_if_count_changed(u64::MAX, sink, buffer);
    }

    /// Reads busy threads, threads with much CPU time so far, and threads whose turn it is. A
    /// thread that does most of the work may be idle between two loads. A thread with much CPU time
    /// so far is therefore read even if the thread is idle.
    pub fn sample(&mut self, turns: &mut ThreadReadSchedule, buffer: &mut Vec<u8>) {
        let first = turns.passed;
        turns.passed += self.list.len();
        let much_ns = high_cpu_ns_min(self.list.iter().map(|thread| thread.cpu_ns));
        for (number, thread) in self.list.iter_mut().enumerate() {
            if turns.times.contains_item(first + number)
                || thread.core_share() >= BUSY_CORE_SHARE_MIN
                || thread.cpu_ns >= much_ns
            {
                thread.read_schedstat(buffer);
            }
            if turns.states.contains_item(first + number) {
                thread.sample_state(self.pid, turns.round, buffer);
            }
        }
        let ended = &mut self.ended;
        self.list.retain(|thread| {
            if thread.gone {
                *ended = (ended.0 + thread.wait_ns, ended.1 + thread.switches.0, ended.2 + thread.switches.1);
            }
            !thread.gone
        });
    }

    /// Returns the time that all threads waited for a core since the measurement began, ns.
    pub fn wait_ns(&self) -> u64 {
        self.ended.0 + self.list.iter().map(|thread| thread.wait_ns).sum::<u64>()
    }

    /// Returns the numbers of voluntary and involuntary context switches of all threads. The
    /// switches of each thread count from its first reading.
    pub fn switches(&self) -> (u64, u64) {
        let sum = |pick: fn(&Thread) -> u64| self.list.iter().map(pick).sum::<u64>();
        (self.ended.1 + sum(|thread| thread.switches.0), self.ended.2 + sum(|thread| thread.switches.1))
    }

    /// Returns the threads whose states were read in the current round, which are the threads that
    /// the next report counts.
    pub fn threads_with_state(&self, turns: &ThreadReadSchedule) -> impl Iterator<Item = &Thread> {
        self.list.iter().filter(move |thread| thread.state_round == turns.round)
    }

    /// Counts the threads that wait for each of the reasons `kinds`, among the threads whose states
    /// the current round has read. Many runtimes sleep in a futex wait with a timeout. A timed
    /// futex wait therefore counts as sleep if no other thread waits at its address. The function
    /// adds the number of waiters at each futex address to `places`.
    pub fn count_waiting_threads<const KINDS: usize>(
        &self,
        turns: &ThreadReadSchedule,
        kinds: [WaitReason; KINDS],
        places: &mut HashMap<u64, usize>,
    ) -> [usize; KINDS] {
        let mut own: HashMap<u64, usize> = HashMap::new();
        // Threads whose states the current round has not read also count as waiters at a futex
        // address. A futex address with two waiters is shared, so a wait at a shared address is not
        // a timed sleep.
        for place in self.list.iter().filter_map(|thread| thread.futex_place) {
            *own.entry(place.address).or_default() += 1;
        }
        for place in self.threads_with_state(turns).filter_map(|thread| thread.futex_place) {
            *places.entry(place.address).or_default() += 1;
        }
        let waits_for = |thread: &Thread| match thread.futex_place {
            Some(place) if place.is_timed && own[&place.address] == 1 => Some(WaitReason::Sleep),
            _ => thread.waits_for,
        };
        kinds.map(|kind| self.threads_with_state(turns).filter(|thread| waits_for(thread) == Some(kind)).count())
    }

    /// Whether the futex address of at least one thread is known.
    pub fn knows_any_futex(&self) -> bool {
        self.list.iter().any(|thread| thread.futex_place.is_some())
    }

    /// Whether the reason of at least one thread's wait is known. Some kernels hide the reason.
    pub fn knows_any_wait(&self) -> bool {
        self.list.iter().any(|thread| thread.waits_for.is_some())
    }

    /// Adds to `counts` the number of threads whose names differ only in a number
    /// (`http-worker-3`). Threads with the first thread's name do not count, because unnamed
    /// threads all have that name.
    pub fn count_similar_names(&self, counts: &mut BTreeMap<String, usize>) {
        let first = self.list.iter().find(|thread| thread.tid == self.pid).and_then(|thread| thread.stem.as_deref());
        for stem in self.list.iter().filter_map(|thread| thread.stem.as_deref()).filter(|stem| Some(*stem) != first) {
            *counts.entry(stem.to_owned()).or_default() += 1;
        }
    }

    /// Returns the number of threads in `state`, among the threads whose states the current round
    /// has read.
    pub fn count_in_state(&self, turns: &ThreadReadSchedule, state: u8) -> usize {
        self.threads_with_state(turns).filter(|thread| thread.state == state).count()
    }
}

/// Returns a threshold for the CPU time of a thread so far, ns. Threads at or above the threshold
/// are read in every sample. At most 20 threads reach the threshold.
fn high_cpu_ns_min(cpu_ns: impl Iterator<Item = u64>) -> u64 {
    ((cpu_ns.sum::<u64>() as f64 * HIGH_CPU_SHARE_MIN) as u64).max(1)
}

fn read_thread_name(pid: u32, tid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// Returns the thread name without its final number.
fn name_without_number(name: &str) -> String {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    stem.trim_end_matches(['-', '_', '#', ' ', ':']).to_owned()
}

impl Thread {
    fn open(pid: u32, tid: u32, from_birth: bool, buffer: &mut Vec<u8>) -> Option<Thread> {
        let sched = ProcFile::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let now = parse_schedstat(sched.read(buffer).ok()?)?;
        let base = if from_birth { SchedStat::default() } else { now };
        let (cpu_ns, wait_ns) = (now.cpu_ns - base.cpu_ns, now.wait_ns - base.wait_ns);
        Some(Thread {
            tid,
            series: None,
            stem: None,
            status: None,
            wait_channel: None,
            sched,
            base,
            cpu_ns,
            cpu_before_ns: cpu_ns,
            read_ns: monotonic_ns(),
            read_before_ns: 0,
            wait_ns,
            switches_base: from_birth.then_some((0, 0)),
            switches: (0, 0),
            state: b'?',
            state_round: 0,
            waits_for: None,
            syscall: None,
            futex_place: None,
            gone: false,
        })
    }

    /// Returns the name of the thread's series. The thread's name is read at the first call.
    pub fn series_name(&mut self, pid: u32) -> &str {
        let tid = self.tid;
        self.series.get_or_insert_with(|| format!("thread.{}.{tid}", read_thread_name(pid, tid)))
    }

    /// Returns the share of a core that the thread used between its last two readings. Kernel ticks
    /// may not align with samples, so the share is at most 1.
    pub fn core_share(&self) -> f64 {
        let step_ns = self.read_ns.saturating_sub(self.read_before_ns).max(1);
        ((self.cpu_ns - self.cpu_before_ns) as f64 / step_ns as f64).min(1.0)
    }

    fn read_schedstat(&mut self, buffer: &mut Vec<u8>) {
        match self.sched.read(buffer).ok().and_then(parse_schedstat) {
            Some(now) => {
                (self.read_before_ns, self.read_ns) = (self.read_ns, monotonic_ns());
                self.cpu_before_ns = self.cpu_ns;
                self.cpu_ns = now.cpu_ns.saturating_sub(self.base.cpu_ns).max(self.cpu_ns);
                self.wait_ns = now.wait_ns.saturating_sub(self.base.wait_ns).max(self.wait_ns);
            }
            None => self.gone = true,
        }
    }

    fn sample_state(&mut self, pid: u32, telling: u64, buffer: &mut Vec<u8>) {
        if self.status.is_none() {
            self.status = ProcFile::open(format!("/proc/{pid}/task/{}/status", self.tid)).ok();
        }
        let Some(status) = self.status.as_ref().and_then(|s| s.read(buffer).ok()).and_then(parse_status) else {
            return;
        };
        let Status { state, switches_voluntary, switches_involuntary } = status;
        (self.state, self.state_round) = (state, telling);
        if self.wait_channel.is_none() {
            self.wait_channel = ProcFile::open(format!("/proc/{pid}/task/{}/wchan", self.tid)).ok();
        }
        self.waits_for =
            self.wait_channel.as_ref().and_then(|source| source.read(buffer).ok()).and_then(parse_wait_channel);
        self.futex_place = None;
        if self.waits_for == Some(WaitReason::Lock) {
            if self.syscall.is_none() {
                self.syscall = ProcFile::open(format!("/proc/{pid}/task/{}/syscall", self.tid)).ok();
            }
            // The file `/proc/PID/task/TID/syscall` is readable only with the right to trace the
            // process.
            let call = self.syscall.as_ref().and_then(|source| source.read(buffer).ok());
            self.futex_place = call.and_then(parse_futex_address);
        }
        self.stem.get_or_insert_with(|| name_without_number(&read_thread_name(pid, self.tid)));
        let base = *self.switches_base.get_or_insert((switches_voluntary, switches_involuntary));
        self.switches = (switches_voluntary.saturating_sub(base.0), switches_involuntary.saturating_sub(base.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_are_grouped_without_their_number() {
        for (name, expect) in [
            ("pool-1-thread-7", "pool-1-thread"),
            ("worker 12", "worker"),
            ("GC Thread#0", "GC Thread"),
            ("puma srv tp 003", "puma srv tp"),
            ("http-nio-8080-e", "http-nio-8080-e"),
            ("42", ""),
        ] {
            assert_eq!(name_without_number(name), expect, "{name}");
        }
    }

    #[test]
    fn only_few_threads_count_as_busy() {
        // Each row has the CPU times of threads in ms, and the expected number of busy threads.
        for (name, done_ms, expect) in [
            ("none has done anything", vec![0; 2000], 0),
            ("one works for all", [vec![3000], vec![1; 2000]].concat(), 1),
            ("all alike, and many", vec![10; 2000], 0),
            ("all alike, and few", vec![10; 16], 16),
            ("no more than these", vec![10; 20], 20),
        ] {
            let much_ns = high_cpu_ns_min(done_ms.iter().map(|ms| ms * 1_000_000));
            assert_eq!(done_ms.iter().filter(|ms| **ms * 1_000_000 >= much_ns).count(), expect, "{name}");
        }
    }

    #[test]
    fn states_are_reported_for_all_or_enough_threads() {
        // Each row has the number of threads, and the expected number of samples between two
        // reports. Each sample reads the states of 16 threads.
        for (count, expect) in [(0, 1), (1, 1), (16, 1), (17, 2), (100, 7), (128, 8), (129, 8), (522, 8), (4000, 8)] {
            let mut turns = ThreadReadSchedule::default();
            let told: Vec<bool> = (0..4 * expect)
                .map(|_| {
                    turns.begin_sample(ReadingExtent::Usual, ProbeEffort::Thorough, count);
                    turns.are_thread_states_due()
                })
                .collect();
            let every: Vec<bool> = (1..=told.len()).map(|sample| count > 0 && sample % expect == 0).collect();
            assert_eq!(told, every, "{count}");
            assert_eq!(turns.round, if count > 0 { 4 } else { 1 }, "{count}");
            turns.begin_sample(ReadingExtent::Least, ProbeEffort::Thorough, count);
            assert!(!turns.are_thread_states_due(), "nothing is read, nothing is told: {count}");
        }
    }

    #[test]
    fn each_thread_is_read_once_a_round_and_neighbours_are_read_apart() {
        for of in 1..300 {
            for length in [1, 4, 24] {
                let mut turns = RoundRobin::default();
                let mut seen = vec![0; of];
                let rounds = of.div_ceil(length.min(of));
                for _ in 0..rounds {
                    turns = turns.next(length, of);
                    let now: Vec<usize> = (0..of).filter(|number| turns.contains_item(*number)).collect();
                    assert!(
                        of < 20 || length > 4 || now.windows(2).all(|pair| pair[1] - pair[0] > 1),
                        "{now:?} of {of}"
                    );
                    now.into_iter().for_each(|number| seen[number] += 1);
                }
                let twice = rounds * length.min(of) - of;
                assert!(seen.iter().all(|times| *times >= 1), "{of} {length}: {seen:?}");
                assert_eq!(seen.iter().filter(|times| **times > 1).count(), twice, "{of} {length}");
            }
        }
    }
}
