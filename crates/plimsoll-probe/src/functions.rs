//! Samples the functions that the server runs, by name, with a timer of the kernel. Every reading
//! empties the kernel's sample buffers, and the function name of each code address is looked up
//! once.
//!
//! If the kernel forbids sampling, a message says how to permit sampling, and all other probes
//! work.

use super::probe::Probe;
use super::server::SharedFileTables;
use super::sink::{ReadingExtent, ReadingSchedule, Sink};
use plimsoll_model::{SampleInterval, SampledStack, library_panic};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::probe::process::numbered_entries;
use plimsoll_sys::sampling::{self, CPU_SAMPLE_PERIOD_NS, CpuSampler, SamplingRecord};
use plimsoll_sys::symbols::Symbols;
use plimsoll_sys::system_text;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};

/// The length of an interval over which function samples are counted, ns.
const SAMPLE_INTERVAL_NS: u64 = 500_000_000;
/// The common name under which all kernel functions are counted.
const KERNEL_GROUP_NAME: &str = "[kernel]";
/// The kind of input that symbol libraries parse, named in error texts.
const SYMBOL_INPUT_NAME: &str = "tables of symbols";

/// The current interval of function samples, which is not reported yet.
struct OpenSampleInterval {
    from_ns: u64,
    lost: u64,
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<String>,
    stacks: HashMap<Vec<u32>, u32>,
}

impl OpenSampleInterval {
    fn new(from_ns: u64) -> OpenSampleInterval {
        let (numbers, names, stacks) = (HashMap::new(), Vec::new(), HashMap::new());
        OpenSampleInterval { from_ns, lost: 0, numbers, names, stacks }
    }

    fn intern_name(&mut self, name: Arc<str>) -> u32 {
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.as_ref().to_owned());
            names.len() as u32 - 1
        })
    }

    fn into_interval(self, to_ns: u64, in_kernel: bool) -> SampleInterval {
        let stack = |(functions, count)| SampledStack { count, functions };
        let mut stacks: Vec<SampledStack> = self.stacks.into_iter().map(stack).collect();
        stacks.sort_unstable();
        let (from_ns, to_ns) = (self.from_ns as i64, to_ns as i64);
        SampleInterval {
            from_ns,
            to_ns,
            period_ns: CPU_SAMPLE_PERIOD_NS,
            lost: self.lost,
            in_kernel,
            names: self.names,
            stacks,
        }
    }
}

/// The probe that samples which functions the server's processes execute.
pub struct FunctionSampling {
    tables: SharedFileTables,
    sampler: Option<CpuSampler>,
    refused: bool,
    symbols: Symbols,
    pids: Vec<u32>,
    interval: OpenSampleInterval,
    threads_schedule: ReadingSchedule,
    /// A buffer for the addresses of a stack.
    walked: Vec<u64>,
}

impl FunctionSampling {
    /// Creates the probe that samples the processes in `tables`.
    pub fn new(tables: SharedFileTables) -> FunctionSampling {
        FunctionSampling {
            tables,
            sampler: None,
            refused: false,
            symbols: Symbols::default(),
            pids: Vec::new(),
            interval: OpenSampleInterval::new(monotonic_ns()),
            // The list of threads is updated at every sample, unless the updates cost more than a
            // 700th of a core. Some servers start a thread for each connection, so their list of
            // threads changes often.
            threads_schedule: ReadingSchedule::with_core_divisor(0, 700),
            walked: Vec::new(),
        }
    }

    /// Updates the list of the server's processes.
    fn update_processes(&mut self) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pids: Vec<u32> = tables.iter().map(|(pid, _)| *pid).collect();
        drop(tables);
        pids.sort_unstable();
        pids.dedup();
        if pids == self.pids {
            return;
        }
        self.symbols.retain_processes(&pids);
        for pid in pids.iter().filter(|pid| !self.pids.contains(pid)) {
            // If the parser panics on the symbol table of a program file, its functions are
            // recorded without names.
            let _ =
                library_panic::catch_library_panic(SYMBOL_INPUT_NAME, || self.symbols.preload_function_tables(*pid));
        }
        self.pids = pids;
    }

    /// Updates the list of threads, if the kernel permits sampling only thread by thread.
    fn update_threads(&mut self, sink: &mut Sink) {
        let FunctionSampling { sampler: Some(sampler), pids, threads_schedule, .. } = self else { return };
        if !sampler.needs_thread_ids() {
            return;
        }
        let all = threads_schedule.read_if_due(sink, || {
            let threads = pids.iter().filter_map(|pid| numbered_entries(format!("/proc/{pid}/task")).ok()).flatten();
            sampler.sample_threads(&threads.collect::<Vec<u32>>())
        });
        if all == Some(false) {
            sink.report_unobserved_part(
                "the functions of only some of the server's many threads were sampled: run plimsoll as root or with \
                 CAP_PERFMON to sample all threads",
            );
        }
    }

    /// Takes the samples that the kernel has collected since the last call.
    fn collect_samples(&mut self) {
        let FunctionSampling { sampler: Some(sampler), symbols, pids, interval: stretch, walked, .. } = self else {
            return;
        };
        let kernel: Arc<str> = Arc::from(KERNEL_GROUP_NAME);
        sampler.for_each_new_record(|record| match record {
            SamplingRecord::Lost(count) => stretch.lost += count,
            SamplingRecord::Sample { pid, in_kernel, places, top } if pids.binary_search(&pid).is_ok() => {
                let mut stack = Vec::new();
                if in_kernel {
                    stack.push(stretch.intern_name(Arc::clone(&kernel)));
                }
                let places = match top {
                    Some(top) => {
                        let _ = library_panic::catch_library_panic(SYMBOL_INPUT_NAME, || {
                            symbols.callers(pid, &top, places, walked)
                        });
                        walked.as_slice()
                    }
                    None => places,
                };
                for (depth, place) in places.iter().enumerate() {
                    // An address that belongs to no code ends the chain of callers of a stack.
                    match library_panic::catch_library_panic(SYMBOL_INPUT_NAME, || symbols.name(pid, *place, depth > 0))
                        .unwrap_or_default()
                    {
                        Some(name) => stack.push(stretch.intern_name(name)),
                        None => break,
                    }
                }
                if stack.is_empty() {
                    stack.push(stretch.intern_name(Arc::from("<unknown>")));
                }
                *stretch.stacks.entry(stack).or_default() += 1;
            }
            SamplingRecord::Sample { .. } => {}
        });
    }
}

/// Returns the reason why the kernel gives no function samples, and how to permit sampling.
fn refusal_reason(error: &io::Error, restriction: Option<i64>) -> String {
    match (error.kind(), restriction) {
        (io::ErrorKind::PermissionDenied, Some(level @ 3..)) => format!(
            "only root may sample processes (kernel.perf_event_paranoid is {level}). Run plimsoll as root or \
             with CAP_PERFMON, or set sysctl kernel.perf_event_paranoid=2"
        ),
        (io::ErrorKind::PermissionDenied, _) => {
            "the kernel does not permit sampling: run plimsoll as the server's user or as root. A container needs \
             CAP_PERFMON, and perf_event_open in its seccomp profile"
                .to_owned()
        }
        (io::ErrorKind::Unsupported, _) => {
            "the kernel has no perf_event_open, or the seccomp profile of a container hides it".to_owned()
        }
        _ => system_text(error),
    }
}

impl Probe for FunctionSampling {
    fn sample(&mut self, sink: &mut Sink) {
        self.update_processes();
        let Some(first) = self.pids.first().copied().filter(|_| !self.refused) else { return };
        if self.sampler.is_none() {
            match CpuSampler::open(first) {
                Ok(sampler) => self.sampler = Some(sampler),
                Err(error) => {
                    self.refused = true;
                    sink.set_sampling_refusal(&refusal_reason(&error, sampling::perf_event_paranoid_level()));
                    return;
                }
            }
            self.interval = OpenSampleInterval::new(monotonic_ns());
        }
        self.update_threads(sink);
        self.collect_samples();
        let now_ns = monotonic_ns();
        if sink.extent() == ReadingExtent::Edge || now_ns.saturating_sub(self.interval.from_ns) >= SAMPLE_INTERVAL_NS {
            let in_kernel = self.sampler.as_ref().is_some_and(CpuSampler::covers_kernel);
            let stretch = std::mem::replace(&mut self.interval, OpenSampleInterval::new(now_ns));
            sink.add_stack_samples(stretch.into_interval(now_ns, in_kernel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::ProbeEffort;
    use plimsoll_sys::clock::thread_cpu_ns;

    #[test]
    fn a_sampling_refusal_names_its_remedy() {
        let of = |code, restriction| refusal_reason(&io::Error::from_raw_os_error(code), restriction);
        assert!(of(13, Some(4)).contains("kernel.perf_event_paranoid is 4"));
        assert!(of(1, Some(2)).contains("as the server's user or as root"));
        assert!(of(38, None).contains("no perf_event_open"));
        assert!(of(24, Some(2)).starts_with("too many open files"), "{}", of(24, Some(2)));
    }

    /// The CPU time of one call of a test function, ns. The kernel's ring buffers hold one second
    /// of samples of all processes. On a busy machine, a call with this CPU time lasts up to half a
    /// second.
    const TEST_CALL_NS: u64 = 30_000_000;

    #[inline(never)]
    fn burn_test_cpu() -> u64 {
        let start_ns = thread_cpu_ns();
        let mut sum = 0u64;
        while thread_cpu_ns() < start_ns + TEST_CALL_NS {
            sum = (0..10_000u64).fold(sum, |sum, n| std::hint::black_box(sum.wrapping_mul(31) ^ n));
        }
        sum
    }

    #[inline(never)]
    fn test_thread_clocks() -> u64 {
        let (start_ns, mut sum) = (thread_cpu_ns(), 0u64);
        // The function reads clocks in a loop until its thread has used enough CPU time for many
        // samples. Most readings end in the clock page that the kernel maps into the process
        // (vDSO). Readings of CPU time enter the kernel.
        while thread_cpu_ns() < start_ns + TEST_CALL_NS {
            sum = (0..100).fold(sum, |sum, _| sum ^ std::hint::black_box(monotonic_ns()));
        }
        sum
    }

    #[test]
    fn functions_of_this_process_are_sampled() {
        let me = std::process::id();
        let tables = SharedFileTables::default();
        tables.lock().expect("whole").push((me, me));
        let mut sampling = FunctionSampling::new(tables);
        let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Thorough);
        sink.begin_sample(monotonic_ns(), true);
        sampling.sample(&mut sink);
        for function in [burn_test_cpu, test_thread_clocks] {
            for _ in 0..10 {
                std::hint::black_box(function());
                sampling.sample(&mut sink);
            }
        }
        sink.begin_sample(monotonic_ns(), true);
        sampling.sample(&mut sink);
        let seen = sink.take().sampled;
        if seen.missing_reason.is_some() {
            return; // The kernel forbids sampling here, and `refused` has the reason.
        }
        let stretches = &seen.intervals;
        let caught = |function: &str| {
            let of_stretch = |stretch: &SampleInterval| {
                let of_it =
                    |stack: &&SampledStack| stretch.stack_function_names(stack).any(|name| name.contains(function));
                stretch.stacks.iter().filter(of_it).map(|stack| stack.count).sum::<u32>()
            };
            stretches.iter().map(of_stretch).sum::<u32>()
        };
        // If threads are sampled one by one, the test's thread may not be in the list of sampled
        // threads yet.
        let named = sampling.sampler.as_ref().is_some_and(|sampler| !sampler.needs_thread_ids());
        assert!(caught("burn_test_cpu") >= 10 || !named, "of about 29 samples: {stretches:?}");
        // Clock readings appear in stacks, although neither the clock's code nor the library has
        // frame pointers. A few samples contain only the address of the clock function, without its
        // callers.
        let by_tables = cfg!(target_arch = "x86_64");
        assert!(caught("test_thread_clocks") >= 15 || !named || !by_tables, "of about 29 samples: {stretches:?}");
    }
}
