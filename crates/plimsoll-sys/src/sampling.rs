//! Samples the CPU use of processes ([`CpuSampler`]). The kernel's timer interrupts each core about
//! a hundred times in each second of CPU time and records the running function. Sampling needs no
//! cooperation of the processes, and no hardware counter. The kernel writes the samples to ring
//! buffers, which are read later, and counts samples for which a buffer had no room.
//!
//! A user who may see all processes gets a ring buffer for each core. Users without permission to
//! see all processes get a ring buffer for each thread of their own processes. The kernel finds the
//! callers of the running function by frame pointers. For code without frame pointers, callers are
//! found from the innermost bytes of the stack ([`StackTop`]), which are part of each sample on
//! x86-64.
//!
//! Not here: the choice of processes, the function at an address, and the search of callers
//! (`symbols`).

use crate::error_if_negative;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The CPU time between two samples, ns. The rate of 97 samples a second is not in step with work
/// that repeats a hundred times a second.
pub const CPU_SAMPLE_PERIOD_NS: u64 = 1_000_000_000 / 97;
/// The largest number of callers in one sample.
const CALLERS_MAX: u16 = 32;
/// The number of stack bytes in a sample. The stack bytes contain the frames of a few leaf
/// functions, such as functions that read a clock. With this number of stack bytes, a busy thread
/// fills at most three quarters of its ring buffer between two reads.
const STACK_BYTES: u32 = 256;
/// The number of data pages in a core's ring buffer: a power of two, enough for at least a second
/// of samples.
const CORE_PAGES: usize = 16;
/// The number of data pages in a thread's ring buffer, enough for a quarter of a second of samples.
/// The buffer is small, because users without privileges may lock little memory.
const THREAD_PAGES: usize = 2;
/// The largest number of threads that get their own ring buffer, if the kernel forbids sampling
/// cores.
const THREADS_MAX: usize = 256;
/// The largest number of cores that are sampled.
const CORES_MAX: usize = 1024;

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;
/// Frame pointer, stack pointer and instruction pointer as bits of the kernel's register mask for
/// x86-64. A sample record has the registers in the order frame pointer, stack pointer, instruction
/// pointer.
const SAMPLED_REGISTERS_MASK: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The kernel's mark for registers of a 64-bit program.
const REGISTERS_64: u64 = 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
const FLAG_CLOEXEC: libc::c_ulong = 8;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// The bits of a record's `misc` that contain the processor mode.
const MODE_MASK: u16 = 7;
/// The processor mode of a sample in user mode.
const MODE_USER: u16 = 2;
/// The lowest value in a call chain that is not an address, but a mark between parts of the chain
/// (`PERF_CONTEXT_...`).
const CONTEXT_MARKS_START: u64 = u64::MAX - 4095;
/// The offset of the field `data_head` in the first page of a ring.
const DATA_HEAD_AT: usize = 1024;
const DATA_TAIL_AT: usize = 1032;

/// The kernel's `struct perf_event_attr` of Linux 4.8 (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// The registers of a sample, and the innermost part of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackTop<'a> {
    /// The instruction pointer.
    pub instruction_pointer: u64,
    /// The stack pointer: the address of the first of `bytes`.
    pub stack_pointer: u64,
    /// The frame pointer; in code without frame pointers, any value of that register.
    pub frame_pointer: u64,
    /// The bytes of the stack from the stack pointer on, by ascending address.
    pub bytes: &'a [u8],
}

/// A record in a ring buffer of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum SamplingRecord<'a> {
    /// The kernel took a sample of a running process.
    Sample {
        /// The id of the process that was running.
        pid: u32,
        /// Whether the sample was taken in the kernel.
        in_kernel: bool,
        /// The address of the running code in the program, then the addresses of its callers. For a
        /// sample in the kernel, the first address is the place where the program entered the
        /// kernel.
        places: &'a [u64],
        /// The registers and the stack, if the kernel provides them.
        top: Option<StackTop<'a>>,
    },
    /// The kernel lost this number of samples, because the ring buffer was full.
    Lost(u64),
}

/// Calls `on_record` for each complete record in `bytes`. The buffer `places` contains the
/// addresses of one record at a time, and is reused for the next record.
pub fn for_each_record(bytes: &[u8], places: &mut Vec<u64>, on_record: &mut dyn FnMut(SamplingRecord)) {
    let mut rest = bytes;
    while let Some(head) = rest.get(..8) {
        let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let misc = u16::from_ne_bytes([head[4], head[5]]);
        let length = usize::from(u16::from_ne_bytes([head[6], head[7]]));
        let Some(body) = rest.get(8..length) else { return };
        rest = &rest[length..];
        let word = |at: usize| body.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        match kind {
            RECORD_LOST => on_record(SamplingRecord::Lost(word(8).unwrap_or(0))),
            RECORD_SAMPLE => {
                let (Some(place), Some(pid)) = (word(0), body.get(8..12)) else { continue };
                let pid = u32::from_ne_bytes([pid[0], pid[1], pid[2], pid[3]]);
                let in_kernel = misc & MODE_MASK != MODE_USER;
                places.clear();
                let count = word(16).unwrap_or(0).min(u64::from(CALLERS_MAX) * 2) as usize;
                places.extend(
                    (0..count).map_while(|number| word(24 + 8 * number)).filter(|at| *at < CONTEXT_MARKS_START),
                );
                if places.is_empty() && !in_kernel {
                    places.push(place);
                }
                let top = word(16).and_then(|count| stack_top(body, count));
                on_record(SamplingRecord::Sample { pid, in_kernel, places, top });
            }
            _ => {}
        }
    }
}

/// Parses the registers and the stack in the body of a sample record, which follow `count`
/// addresses of the call chain. `None` if the record has no registers.
fn stack_top(body: &[u8], count: u64) -> Option<StackTop<'_>> {
    let mut rest = body.get(usize::try_from(count.checked_mul(8)?.checked_add(24)?).ok()?..)?;
    let mut word = || {
        let (first, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_ne_bytes(*first))
    };
    // Only samples of 64-bit programs have 64-bit registers; samples of kernel threads have no
    // registers.
    if word()? != REGISTERS_64 {
        return None;
    }
    let (frame_pointer, stack_pointer, instruction_pointer, room) = (word()?, word()?, word()?, word()? as usize);
    let written = rest.get(room..)?.first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes))?;
    let bytes = rest.get(..room.min(usize::try_from(written).ok()?))?;
    Some(StackTop { instruction_pointer, stack_pointer, frame_pointer, bytes })
}

/// A ring buffer that the kernel fills with samples.
struct SampleRing {
    memory: NonNull<u8>,
    /// The size of the whole mapping, in bytes.
    length: usize,
    /// The size of the ring buffer within the mapping, in bytes.
    data: usize,
    /// The descriptor of the ring buffer's event, which is closed after the memory is unmapped.
    _event: OwnedFd,
}

// SAFETY: the memory belongs to this ring buffer alone, whichever thread owns the ring buffer.
unsafe impl Send for SampleRing {}

impl SampleRing {
    /// Opens the ring buffer of a core (`pid` -1), or of a thread on any core (`core` -1).
    fn open(pid: i32, core: i32, in_kernel: bool, pages: usize) -> io::Result<SampleRing> {
        match SampleRing::open_with(pid, core, in_kernel, pages, CALLERS_MAX) {
            // The kernel's limit of callers in a sample is lower than requested, so samples are
            // recorded without callers.
            Err(error) if error.raw_os_error() == Some(libc::EOVERFLOW) => {
                SampleRing::open_with(pid, core, in_kernel, pages, 0)
            }
            opened => opened,
        }
    }

    fn open_with(pid: i32, core: i32, in_kernel: bool, pages: usize, sample_max_stack: u16) -> io::Result<SampleRing> {
        let has_stack = cfg!(target_arch = "x86_64");
        let attr = PerfEventAttr {
            kind: TYPE_SOFTWARE,
            size: size_of::<PerfEventAttr>() as u32,
            config: CPU_CLOCK,
            sample_period: CPU_SAMPLE_PERIOD_NS,
            sample_type: SAMPLE_IP
                | SAMPLE_TID
                | SAMPLE_CALLCHAIN
                | if has_stack { SAMPLE_REGISTERS | SAMPLE_STACK } else { 0 },
            flags: EXCLUDE_HV | EXCLUDE_IDLE | EXCLUDE_CALLCHAIN_KERNEL | if in_kernel { 0 } else { EXCLUDE_KERNEL },
            sample_regs_user: if has_stack { SAMPLED_REGISTERS_MASK } else { 0 },
            sample_stack_user: if has_stack { STACK_BYTES } else { 0 },
            sample_max_stack,
            ..PerfEventAttr::default()
        };
        // SAFETY: `attr` is complete and outlives the call; the result is a descriptor that no
        // other code owns.
        let event = unsafe {
            let fd = libc::syscall(libc::SYS_perf_event_open, &raw const attr, pid, core, -1, FLAG_CLOEXEC);
            OwnedFd::from_raw_fd(error_if_negative(fd as i32)?)
        };
        let page = crate::probe::process::page_bytes() as usize;
        let (length, data) = ((pages + 1) * page, pages * page);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            let (allowed, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            libc::mmap(std::ptr::null_mut(), length, allowed, shared, event.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SampleRing { memory, length, data, _event: event })
    }

    /// Moves the content of the ring buffer to the end of `bytes`.
    fn drain_into(&self, bytes: &mut Vec<u8>) {
        // SAFETY: the head and the tail of the ring buffer lie in the first page, aligned, for as
        // long as `self` lives. The kernel writes head and tail as whole words.
        let (head_at, tail_at) = unsafe {
            let at = |offset: usize| AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast());
            (at(DATA_HEAD_AT), at(DATA_TAIL_AT))
        };
        let (head, tail) = (head_at.load(Ordering::Acquire), tail_at.load(Ordering::Relaxed));
        let waiting = head.wrapping_sub(tail).min(self.data as u64) as usize;
        if waiting == 0 {
            return;
        }
        let start = (tail % self.data as u64) as usize;
        let first = waiting.min(self.data - start);
        // SAFETY: the kernel does not write between tail and head until the tail has moved. The
        // part up to the end of the ring buffer and the part from its start lie in the mapping.
        unsafe {
            let data = self.memory.as_ptr().add(self.length - self.data);
            bytes.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(data, waiting - first));
        }
        tail_at.store(head, Ordering::Release);
    }
}

impl Drop for SampleRing {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this ring, and no pointer into it remains.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// An active sampling of cores or threads.
pub struct CpuSampler {
    /// The ring buffers of cores; empty if only threads may be sampled.
    cores: Vec<SampleRing>,
    threads: BTreeMap<u32, SampleRing>,
    in_kernel: bool,
    bytes: Vec<u8>,
    places: Vec<u64>,
}

impl CpuSampler {
    /// Starts to sample all processes of this machine. If the kernel forbids sampling all
    /// processes, prepares to sample single threads ([`CpuSampler::sample_threads`]). `thread` is
    /// one of the threads to sample, and is used to test the permission.
    ///
    /// # Errors
    /// The kernel's error: usually no permission, or a kernel without the system call for sampling.
    pub fn open(thread: u32) -> io::Result<CpuSampler> {
        let begun =
            |cores, threads, in_kernel| CpuSampler { cores, threads, in_kernel, bytes: Vec::new(), places: Vec::new() };
        let mut cores = Vec::new();
        // SAFETY: `sysconf` takes a number and no memory.
        let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let configured = usize::try_from(configured).unwrap_or(1).clamp(1, CORES_MAX);
        for core in 0..configured as i32 {
            match SampleRing::open(-1, core, true, CORE_PAGES) {
                Ok(ring) => cores.push(ring),
                // The core is switched off, so the core is not sampled.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) if cores.is_empty() && is_permission_error(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if !cores.is_empty() {
            return Ok(begun(cores, BTreeMap::new(), true));
        }
        let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (first, in_kernel) = match SampleRing::open(thread, -1, true, THREAD_PAGES) {
            Ok(ring) => (ring, true),
            Err(error) if is_permission_error(&error) => (SampleRing::open(thread, -1, false, THREAD_PAGES)?, false),
            Err(error) => return Err(error),
        };
        Ok(begun(Vec::new(), BTreeMap::from([(thread as u32, first)]), in_kernel))
    }

    /// Whether CPU time in the kernel is also sampled.
    pub fn covers_kernel(&self) -> bool {
        self.in_kernel
    }

    /// Whether [`CpuSampler::sample_threads`] must name the threads to sample, because the kernel
    /// forbids sampling cores.
    pub fn needs_thread_ids(&self) -> bool {
        self.cores.is_empty()
    }

    /// Samples exactly the given `threads` from now on, but at most `THREADS_MAX` threads. Returns
    /// whether all `threads` are sampled.
    pub fn sample_threads(&mut self, threads: &[u32]) -> bool {
        self.threads.retain(|thread, _| threads.contains(thread));
        let mut all = true;
        for thread in threads {
            if self.threads.contains_key(thread) {
                continue;
            }
            let ring = match (i32::try_from(*thread), self.threads.len() < THREADS_MAX) {
                (Ok(number), true) => SampleRing::open(number, -1, self.in_kernel, THREAD_PAGES),
                _ => Err(io::ErrorKind::InvalidInput.into()),
            };
            match ring {
                Ok(ring) => _ = self.threads.insert(*thread, ring),
                // A thread that ended before its sampling could start is no error.
                Err(error) => all &= error.raw_os_error() == Some(libc::ESRCH),
            }
        }
        all
    }

    /// Calls `on_record` for each record that the kernel has written since the last call.
    pub fn for_each_new_record(&mut self, mut on_record: impl FnMut(SamplingRecord)) {
        for ring in self.cores.iter().chain(self.threads.values()) {
            self.bytes.clear();
            ring.drain_into(&mut self.bytes);
            for_each_record(&self.bytes, &mut self.places, &mut on_record);
        }
    }
}

/// Whether an error means that the kernel may still permit a more restricted sampling.
fn is_permission_error(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// Reads the kernel's limit on sampling by users without privileges (`perf_event_paranoid`). With
/// the value -1, users without privileges may sample everything, with 2 only their own programs,
/// above 2 nothing.
pub fn perf_event_paranoid_level() -> Option<i64> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::thread_cpu_ns;

    fn record_bytes(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let length = 8 + 8 * body.len() as u16;
        let mut bytes = [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &length.to_ne_bytes()].concat();
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn record_texts(bytes: &[u8]) -> Vec<String> {
        let (mut places, mut all) = (Vec::new(), Vec::new());
        for_each_record(bytes, &mut places, &mut |record| {
            all.push(match record {
                SamplingRecord::Sample { pid, in_kernel, places, top: None } => format!("{pid} {in_kernel} {places:?}"),
                SamplingRecord::Sample {
                    top: Some(StackTop { instruction_pointer, stack_pointer, frame_pointer, bytes }),
                    ..
                } => {
                    format!("{instruction_pointer} {stack_pointer} {frame_pointer} {}", bytes.len())
                }
                SamplingRecord::Lost(count) => format!("lost {count}"),
            });
        });
        all
    }

    #[test]
    fn only_complete_sampling_records_are_parsed() {
        let pid = u64::from_ne_bytes([7, 0, 0, 0, 9, 0, 0, 0]);
        let (user, kernel) = (MODE_USER, 1);
        let mark = u64::MAX - 511;
        let chain = record_bytes(RECORD_SAMPLE, user, &[100, pid, 3, mark, 100, 90]);
        let bare = record_bytes(RECORD_SAMPLE, user, &[100, pid, 0]);
        let kernel = record_bytes(RECORD_SAMPLE, kernel, &[u64::MAX - 9999, pid, 2, mark, 50]);
        let other = record_bytes(77, 0, &[1, 2]);
        let lost = record_bytes(RECORD_LOST, 0, &[1, 12]);
        let all = [chain, bare, kernel, other, lost].concat();
        assert_eq!(record_texts(&all), ["7 false [100, 90]", "7 false [100]", "7 true [50]", "lost 12"]);
        assert_eq!(record_texts(&all[..all.len() - 1]).len(), 3);
        // A record with length 0, or with a length beyond the data, ends parsing.
        assert_eq!(record_texts(&[0; 64]), Vec::<String>::new());
        assert_eq!(record_texts(&record_bytes(RECORD_SAMPLE, user, &[100, pid, u64::MAX])), ["7 false [100]"]);
        assert_eq!(record_texts(&record_bytes(RECORD_SAMPLE, user, &[100])), Vec::<String>::new());
    }

    #[test]
    fn stacks_are_read_up_to_the_captured_length() {
        for (rest, expect) in [
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 8], "1 2 3 8"),
            // In the next two rows, the last number states that no stack bytes are valid, and that
            // more stack bytes are valid than the record contains.
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 0], "1 2 3 0"),
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 99], "1 2 3 16"),
            // Each of the next records is parsed without registers and stack. The reasons, row by
            // row: no stack bytes, a stack length beyond the record, 32-bit registers, no
            // registers, and an early end.
            (vec![REGISTERS_64, 3, 2, 1, 0], "7 false [100, 90]"),
            (vec![REGISTERS_64, 3, 2, 1, u64::MAX, 0], "7 false [100, 90]"),
            (vec![1, 3, 2, 1, 8, 0, 8], "7 false [100, 90]"),
            (vec![0, 0], "7 false [100, 90]"),
            (vec![], "7 false [100, 90]"),
        ] {
            let body = [vec![100, 7, 2, 100, 90], rest].concat();
            assert_eq!(record_texts(&record_bytes(RECORD_SAMPLE, MODE_USER, &body)), [expect], "{body:?}");
        }
    }

    #[test]
    fn a_busy_thread_is_sampled() {
        let Ok(mut sampler) = CpuSampler::open(std::process::id()) else {
            return; // The kernel of this machine permits no sampling, so nothing can be tested.
        };
        // The loop uses only 150 ms of CPU time, because the ring buffers hold a second of samples.
        // On a busy machine, 150 ms of CPU time can take most of a second.
        let until_ns = thread_cpu_ns() + 150_000_000;
        let mut sum = 0u64;
        while thread_cpu_ns() < until_ns {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        sampler.sample_threads(&[std::process::id()]);
        let mut caught = 0;
        sampler.for_each_new_record(|record| {
            if let SamplingRecord::Sample { pid, places, in_kernel, top } = record
                && pid == std::process::id()
            {
                caught += 1;
                assert!(in_kernel || !places.is_empty());
                if let (Some(top), Some(place)) = (top, places.first()) {
                    assert!(top.instruction_pointer == *place && !top.bytes.is_empty(), "{top:?} {places:?}");
                }
            }
        });
        // If the kernel forbids sampling cores, the test's thread may not be the sampled thread.
        assert!(caught >= 5 || sampler.needs_thread_ids(), "{caught} samples of 0.15 s of work");
    }
}
