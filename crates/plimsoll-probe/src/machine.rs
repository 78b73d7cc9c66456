//! Reads CPU time by owner: the machine's total over all cores, the kernel's own threads, and
//! plimsoll. CPU time that neither the kernel's threads, plimsoll nor the server used belongs to
//! other processes (`plimsoll_analysis::interference`).

use super::downstream::DownstreamProbe;
use super::kernel::KernelThreads;
use super::optional_file::OptionalFile;
use super::probe::Probe;
use super::sink::{ProbeEffort, ReadingExtent, Sink};
use plimsoll_model::{Probes, SeriesKind};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::group::CpuClocks;
use plimsoll_sys::probe::process::{CpuClock, numbered_entries, parse_schedstat, ticks_per_second};
use plimsoll_sys::probe::{ProcFile, host};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The ids of other plimsoll processes on this machine that send a part of the load.
pub type GeneratorPids = Arc<Mutex<BTreeSet<u32>>>;

pub struct MachineProbe {
    local: bool,
    stat: OptionalFile,
    kernel: KernelThreads,
    clock: Option<CpuClock>,
    generator_pids: GeneratorPids,
    /// The CPU clocks of the other plimsoll processes by process id, each with its last reading in
    /// ns. A process that has ended has no clock and keeps its last reading, because the kernel may
    /// give its id to another program.
    generator_clocks: BTreeMap<u32, (Option<CpuClock>, u64)>,
    /// The threads of this process by id, with the time that each thread has waited for a core, ns.
    threads: BTreeMap<u32, (ProcFile, u64)>,
    /// The time that ended threads had waited for a core, ns.
    ended_wait_ns: u64,
    buffer: Vec<u8>,
}

impl MachineProbe {
    /// Creates the probe. `local` says whether the target is on this machine.
    pub fn new(local: bool) -> MachineProbe {
        MachineProbe::with_other_processes(local, Arc::default())
    }

    /// Creates the probe that also counts the other plimsoll processes in `generator_pids`, which
    /// may be added later.
    pub fn with_other_processes(local: bool, generator_pids: GeneratorPids) -> MachineProbe {
        MachineProbe {
            local,
            stat: OptionalFile::open("/proc/stat"),
            kernel: KernelThreads::new(),
            clock: CpuClock::for_process(std::process::id()).ok(),
            generator_pids,
            generator_clocks: BTreeMap::new(),
            threads: BTreeMap::new(),
            ended_wait_ns: 0,
            buffer: Vec::new(),
        }
    }

    fn sample_host_cpu(&mut self, sink: &mut Sink) {
        let tick_ns = 1e9 / ticks_per_second() as f64;
        match self.stat.read(&mut self.buffer, host::parse_stat) {
            Ok(stat) => {
                let cpu = stat.cpu;
                for (name, ticks) in [
                    ("host.cpu_user", cpu.user + cpu.nice),
                    ("host.cpu_system", cpu.system),
                    ("host.cpu_interrupts", cpu.irq + cpu.softirq),
                    ("host.cpu_iowait", cpu.iowait),
                    ("host.cpu_steal", cpu.steal),
                    ("host.cpu_idle", cpu.idle),
                ] {
                    sink.counter(name, "ns", ticks as f64 * tick_ns);
                }
                sink.counter("host.switches", "", stat.switches as f64);
                sink.gauge("host.threads_runnable", "", stat.runnable as f64);
                sink.gauge("host.threads_blocked", "", stat.blocked as f64);
                if sink.extent() == ReadingExtent::Edge {
                    sink.gauge("host.cores", "", f64::from(stat.cores));
                    sink.gauge("target.local", "", f64::from(u8::from(self.local)));
                }
            }
            Err(reason) => sink.add_gap("host.cpu_user", SeriesKind::Counter, "ns", &reason),
        }
    }

    /// Reads the CPU time that other plimsoll processes have used, ns.
    fn other_plimsoll_cpu_ns(&mut self) -> u64 {
        for pid in self.generator_pids.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if !self.generator_clocks.contains_key(pid)
                && let Ok(clock) = CpuClock::for_process(*pid)
            {
                self.generator_clocks.insert(*pid, (Some(clock), 0));
            }
        }
        let used_ns = self.generator_clocks.values_mut().map(|(clock, used_ns)| {
            match clock.and_then(|clock| clock.read_ns().ok()) {
                Some(now_ns) => *used_ns = now_ns.max(*used_ns),
                None => *clock = None,
            }
            *used_ns
        });
        used_ns.sum()
    }

    /// Reports how long threads of this process waited for a core. Each load has new threads, so
    /// every sample lists the threads again. If a thread ends, its wait since its last reading is
    /// lost, at most the time between two samples.
    fn report_run_queue_wait(&mut self, sink: &mut Sink) {
        let Ok(tids) = numbered_entries("/proc/self/task") else { return };
        for tid in &tids {
            if !self.threads.contains_key(tid)
                && let Ok(source) = ProcFile::open(format!("/proc/self/task/{tid}/schedstat"))
            {
                self.threads.insert(*tid, (source, 0));
            }
        }
        let MachineProbe { threads, ended_wait_ns, buffer, .. } = self;
        threads.retain(|_, (source, wait_ns)| match source.read(buffer).ok().and_then(parse_schedstat) {
            Some(now) => {
                *wait_ns = now.wait_ns.max(*wait_ns);
                true
            }
            None => {
                *ended_wait_ns += *wait_ns;
                false
            }
        });
        let wait_ns = self.ended_wait_ns + self.threads.values().map(|thread| thread.1).sum::<u64>();
        sink.counter("client.run_queue_wait", "ns waiting", wait_ns as f64);
    }
}

impl Probe for MachineProbe {
    fn sample(&mut self, sink: &mut Sink) {
        self.sample_host_cpu(sink);
        self.kernel.sample(sink);
        let others_ns = self.other_plimsoll_cpu_ns();
        if let Some(cpu_ns) = self.clock.and_then(|clock| clock.read_ns().ok()) {
            sink.counter("client.cpu", "ns", (cpu_ns + others_ns) as f64);
        }
        if sink.extent() != ReadingExtent::Least {
            self.report_run_queue_wait(sink);
        }
    }
}

/// Records the machine's CPU use over one load, and the CPU time of a server with known processes.
/// This recorder is used if no [`super::Watcher`] runs.
pub struct MachineRecorder {
    machine: MachineProbe,
    downstream: Option<DownstreamProbe>,
    sink: Sink,
}

impl MachineRecorder {
    /// Creates the recorder. `port` is the target's port, if the target is on this machine.
    pub fn new(local: bool, port: Option<u16>) -> MachineRecorder {
        let downstream = port.filter(|_| local).map(DownstreamProbe::new);
        MachineRecorder {
            machine: MachineProbe::new(local),
            downstream,
            sink: Sink::new(monotonic_ns(), ProbeEffort::Little),
        }
    }

    /// Takes a sample now. `edge` says whether a load starts or ends now. `server` has the CPU
    /// clocks of the server's processes, if known.
    pub fn take_sample(&mut self, edge: bool, server: Option<&CpuClocks>) {
        self.sink.begin_sample(monotonic_ns(), edge);
        if let Some(clocks) = server {
            self.sink.counter("server.cpu", "ns", clocks.cpu_ns() as f64);
            if let Some(downstream) = &mut self.downstream {
                downstream.sample(&clocks.pids().collect(), &mut self.sink);
            }
        }
        self.machine.sample(&mut self.sink);
    }

    /// Returns the readings so far; times are of the monotonic clock.
    pub fn take(mut self) -> Probes {
        self.sink.take()
    }
}
