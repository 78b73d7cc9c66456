//! CPU time of the kernel's own threads, which write files, move packets and free memory for all
//! processes. So it never counts as interference.
//!
//! In a container with its own process ids, kernel threads are invisible.

use super::sink::{Extent, Seldom, Sink};
use plimsoll_sys::probe::process::{CpuClock, look_at, numbers_in};
use std::collections::{BTreeMap, BTreeSet};

pub struct KernelThreads {
    look: Seldom,
    read: Seldom,
    /// Clocks by process id, each with its last reading, ns.
    clocks: BTreeMap<u32, (CpuClock, u64)>,
    /// Process ids that do not belong to kernel threads.
    passed_over: BTreeSet<u32>,
    /// CPU time of ended threads, ns.
    ended_ns: u64,
    buffer: Vec<u8>,
}

impl KernelThreads {
    pub fn new() -> KernelThreads {
        KernelThreads {
            look: Seldom::new(1_000_000_000),
            read: Seldom::new(0),
            clocks: BTreeMap::new(),
            passed_over: BTreeSet::new(),
            ended_ns: 0,
            buffer: Vec::new(),
        }
    }

    /// Reads the CPU time that the kernel's threads have used so far.
    pub fn sample(&mut self, sink: &mut Sink) {
        if sink.extent() == Extent::Edge {
            self.look.hasten();
            self.read.hasten();
        }
        let KernelThreads { look, read, clocks, passed_over, ended_ns, buffer } = self;
        look.read(sink, || find(clocks, passed_over, buffer));
        let used_ns = read.read(sink, || {
            clocks.retain(|_, (clock, used_ns)| {
                let now_ns = clock.read_ns().ok().filter(|now_ns| now_ns >= used_ns);
                *ended_ns += if now_ns.is_none() { *used_ns } else { 0 };
                *used_ns = now_ns.unwrap_or(0);
                now_ns.is_some()
            });
            clocks.values().map(|(_, used_ns)| used_ns).sum::<u64>()
        });
        if let Some(used_ns) = used_ns.filter(|_| !self.clocks.is_empty()) {
            sink.counter("kernel.cpu", "ns", (used_ns + self.ended_ns) as f64);
        }
    }
}

/// Adds the clocks of new kernel threads. Ids that were checked before cost nothing.
fn find(clocks: &mut BTreeMap<u32, (CpuClock, u64)>, passed_over: &mut BTreeSet<u32>, buffer: &mut Vec<u8>) {
    let pids: BTreeSet<u32> = numbers_in("/proc").unwrap_or_default().into_iter().collect();
    passed_over.retain(|pid| pids.contains(pid));
    for pid in pids {
        if clocks.contains_key(&pid) || passed_over.contains(&pid) {
            continue;
        }
        match look_at(pid, buffer).ok().filter(|(stat, _)| stat.of_kernel).and_then(|_| CpuClock::for_process(pid).ok())
        {
            Some(clock) => _ = clocks.insert(pid, (clock, 0)),
            None => _ = passed_over.insert(pid),
        }
    }
}
