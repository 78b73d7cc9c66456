//! The threads of one process: CPU time and waiting of each, and their states. Of many threads those that are busy are
//! read at every sample, the others in turn.

use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::Source;
use plimsoll_sys::probe::process::{SchedStat, Status, numbers_in, parse_schedstat, parse_status};
use std::collections::BTreeSet;

/// More threads of one process than this are not watched one by one.
const THREADS_MAX: usize = 4096;
/// Threads whose state is read in one sample: reading it takes ten times as long as reading the CPU time.
const STATES_AT_ONCE: usize = 8;
/// Threads whose CPU time is read in one sample, beside the busy ones.
const TIMES_AT_ONCE: usize = 48;
/// A thread is busy from this share of a core on.
pub const BUSY_SHARE: f64 = 0.05;

/// One thread.
pub struct Thread {
    pub tid: u32,
    pub name: String,
    sched: Source,
    status: Option<Source>,
    /// What was there before the watching began.
    base: SchedStat,
    /// When it was last read, and the time before, on the monotonic clock; CPU time then, ns since the watching began.
    pub read_ns: u64,
    pub read_before_ns: u64,
    pub cpu_ns: u64,
    pub cpu_before_ns: u64,
    pub wait_ns: u64,
    switches_base: Option<(u64, u64)>,
    switches: (u64, u64),
    state: u8,
    gone: bool,
}

/// All threads of a process.
#[derive(Default)]
pub struct Threads {
    pub list: Vec<Thread>,
    /// Sums of those that have ended: waiting, voluntary and involuntary switches.
    ended: (u64, u64, u64),
    turn: usize,
    turn_times: usize,
    /// There are more threads than are watched.
    pub too_many: bool,
}

impl Threads {
    /// Learns which threads there are. `from_birth`: what a new one did before it was seen counts.
    pub fn refresh(&mut self, pid: u32, from_birth: bool, buffer: &mut Vec<u8>) {
        let Ok(tids) = numbers_in(format!("/proc/{pid}/task")) else { return };
        self.too_many = tids.len() > THREADS_MAX;
        let known: BTreeSet<u32> = self.list.iter().map(|thread| thread.tid).collect();
        for tid in tids.into_iter().filter(|tid| !known.contains(tid)) {
            if self.list.len() >= THREADS_MAX {
                break;
            }
            self.list.extend(Thread::open(pid, tid, from_birth, buffer));
        }
    }

    /// Reads all threads once.
    pub fn sample(&mut self, buffer: &mut Vec<u8>) {
        let count = self.list.len();
        for (number, thread) in self.list.iter_mut().enumerate() {
            let in_turn = (number + count - self.turn_times) % count < TIMES_AT_ONCE;
            if in_turn || thread.share() >= BUSY_SHARE {
                thread.sample(buffer);
            }
        }
        self.turn_times = if count == 0 { 0 } else { (self.turn_times + TIMES_AT_ONCE) % count };
        for step in 0..count.min(STATES_AT_ONCE) {
            self.list[(self.turn + step) % count].sample_state(buffer);
        }
        self.turn = if count == 0 { 0 } else { (self.turn + STATES_AT_ONCE) % count };
        let ended = &mut self.ended;
        self.list.retain(|thread| {
            if thread.gone {
                *ended = (ended.0 + thread.wait_ns, ended.1 + thread.switches.0, ended.2 + thread.switches.1);
            }
            !thread.gone
        });
        self.turn_times = self.turn_times.min(self.list.len().saturating_sub(1));
    }

    /// Waiting for a core, ns, over all threads since the watching began.
    pub fn wait_ns(&self) -> u64 {
        self.ended.0 + self.list.iter().map(|thread| thread.wait_ns).sum::<u64>()
    }

    /// Voluntary and involuntary switches of all threads since each was first looked at.
    pub fn switches(&self) -> (u64, u64) {
        let sum = |pick: fn(&Thread) -> u64| self.list.iter().map(pick).sum::<u64>();
        (self.ended.1 + sum(|thread| thread.switches.0), self.ended.2 + sum(|thread| thread.switches.1))
    }

    /// Threads that were last seen in `state`.
    pub fn in_state(&self, state: u8) -> usize {
        self.list.iter().filter(|thread| thread.state == state).count()
    }
}

impl Thread {
    fn open(pid: u32, tid: u32, from_birth: bool, buffer: &mut Vec<u8>) -> Option<Thread> {
        let sched = Source::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let now = parse_schedstat(sched.read(buffer).ok()?)?;
        let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        let base = if from_birth { SchedStat::default() } else { now };
        let (cpu_ns, wait_ns) = (now.cpu_ns - base.cpu_ns, now.wait_ns - base.wait_ns);
        Some(Thread {
            tid,
            name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned(),
            sched,
            status: Source::open(format!("/proc/{pid}/task/{tid}/status")).ok(),
            base,
            cpu_ns,
            cpu_before_ns: cpu_ns,
            read_ns: monotonic_ns(),
            read_before_ns: 0,
            wait_ns,
            switches_base: from_birth.then_some((0, 0)),
            switches: (0, 0),
            state: b'?',
            gone: false,
        })
    }

    /// Share of a core that it used between the last two readings. The kernel adds up in ticks, which need not lie evenly
    /// in our steps: no thread uses more than a core.
    pub fn share(&self) -> f64 {
        let step_ns = self.read_ns.saturating_sub(self.read_before_ns).max(1);
        ((self.cpu_ns - self.cpu_before_ns) as f64 / step_ns as f64).min(1.0)
    }

    fn sample(&mut self, buffer: &mut Vec<u8>) {
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

    fn sample_state(&mut self, buffer: &mut Vec<u8>) {
        let Some(status) = self.status.as_ref().and_then(|s| s.read(buffer).ok()).and_then(parse_status) else {
            return;
        };
        let Status { state, switches_voluntary, switches_involuntary } = status;
        self.state = state;
        let base = *self.switches_base.get_or_insert((switches_voluntary, switches_involuntary));
        self.switches = (switches_voluntary.saturating_sub(base.0), switches_involuntary.saturating_sub(base.1));
    }
}
