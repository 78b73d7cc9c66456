//! Reads the CPU time of the kernel's own threads, which write files, move packets and free memory
//! for all processes. The CPU time of kernel threads never counts as interference, because kernel
//! threads work for all processes.
//!
//! In a container with its own process ids, kernel threads are invisible, so the series
//! `kernel.cpu` has no readings.

use super::sink::{ReadingExtent, ReadingSchedule, Sink};
use plimsoll_sys::probe::process::{CpuClock, numbered_entries, read_process_stat};
use std::collections::{BTreeMap, BTreeSet};

pub struct KernelThreads {
    look: ReadingSchedule,
    read: ReadingSchedule,
    /// The CPU clocks of kernel threads by process id, each with its last reading, ns.
    clocks: BTreeMap<u32, (CpuClock, u64)>,
    /// Process ids that do not belong to kernel threads.
    non_kernel_pids: BTreeSet<u32>,
    /// CPU time of kernel threads that have ended, ns.
    ended_ns: u64,
    buffer: Vec<u8>,
}

impl KernelThreads {
    pub fn new() -> KernelThreads {
        KernelThreads {
            look: ReadingSchedule::new(1_000_000_000),
            read: ReadingSchedule::new(0),
            clocks: BTreeMap::new(),
            non_kernel_pids: BTreeSet::new(),
            ended_ns: 0,
            buffer: Vec::new(),
        }
    }

    /// Reads the CPU time that the kernel's threads have used so far.
    pub fn sample(&mut self, sink: &mut Sink) {
        if sink.extent() == ReadingExtent::Edge {
            self.look.make_due_now();
            self.read.make_due_now();
        }
        let KernelThreads { look, read, clocks, non_kernel_pids, ended_ns, buffer } = self;
        look.read_if_due(sink, || add_new_kernel_threads(clocks, non_kernel_pids, buffer));
        let used_ns = read.read_if_due(sink, || {
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

/// Adds the CPU clocks of kernel threads that are new since the last call. Known process ids are
/// skipped.
fn add_new_kernel_threads(
    clocks: &mut BTreeMap<u32, (CpuClock, u64)>,
    non_kernel_pids: &mut BTreeSet<u32>,
    buffer: &mut Vec<u8>,
) {
    let pids: BTreeSet<u32> = numbered_entries("/proc").unwrap_or_default().into_iter().collect();
    non_kernel_pids.retain(|pid| pids.contains(pid));
    for pid in pids {
        if clocks.contains_key(&pid) || non_kernel_pids.contains(&pid) {
            continue;
        }
        match read_process_stat(pid, buffer)
            .ok()
            .filter(|(stat, _)| stat.is_kernel_thread)
            .and_then(|_| CpuClock::for_process(pid).ok())
        {
            Some(clock) => _ = clocks.insert(pid, (clock, 0)),
            None => _ = non_kernel_pids.insert(pid),
        }
    }
}
