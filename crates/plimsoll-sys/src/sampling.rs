//! Where processes are, caught by the kernel's own clock a hundred times a second and core
//! ([`CpuSampler`]): no cooperation of theirs is needed, and no hardware counter. What was caught
//! lies in rings of memory that the kernel fills and that are read when somebody looks; a sample
//! for which there was no room is counted.
//!
//! Who may see all processes gets a ring for each core, else one for each thread of processes of
//! the same user. The kernel finds callers by frame pointers. Where code has none, they can be
//! found by the innermost bytes of the stack ([`StackTop`]), which come with each sample on x86-64.
//!
//! Not here: which processes are of interest, what lies at an address, and how callers are found
//! (`symbols`).

use crate::check;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// CPU time from one sample to the next, ns: 97 a second, so that nothing that happens a hundred
/// times a second is always caught, or never.
pub const PERIOD_NS: u64 = 1_000_000_000 / 97;
/// Most callers of a sample.
const CALLERS_MAX: u16 = 32;
/// Bytes of the stack in a sample: the frames of a few leaf functions, such as those that read a
/// clock. So a busy thread fills at most three quarters of its ring between two reads.
const STACK_BYTES: u32 = 256;
/// Pages of a ring beside its first: a power of two, room for a second and more of a core, or a
/// quarter of a second of a thread: memory that users without privileges may lock is little.
const CORE_PAGES: usize = 16;
const THREAD_PAGES: usize = 2;
/// Threads that have a ring of their own, where there is none for a core.
const THREADS_MAX: usize = 256;
/// Cores beyond this are not sampled.
const CORES_MAX: usize = 1024;

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;
/// Frame pointer, stack pointer and place, as the kernel numbers registers of x86-64, and in this
/// order in a record.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Registers are those of a program of 64 bits.
const REGISTERS_64: u64 = 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
const FLAG_CLOEXEC: libc::c_ulong = 8;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Which part of the `misc` of a record says where the processor was, and that it was in a program.
const MODE_MASK: u16 = 7;
const MODE_USER: u16 = 2;
/// Addresses from here on are marks between parts of a chain (`PERF_CONTEXT_...`).
const MARKS_FROM: u64 = u64::MAX - 4095;
/// Offset of the data head in the first page of a ring.
const DATA_HEAD_AT: usize = 1024;
const DATA_TAIL_AT: usize = 1032;

/// `struct perf_event_attr` of Linux 4.8 (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Default)]
struct EventAttr {
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

/// Where a program was, and the innermost part of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackTop<'a> {
    /// The place in the program.
    pub at: u64,
    /// The stack pointer, which is the address of the first of `bytes`.
    pub stack: u64,
    /// The frame pointer, or what code without one keeps in its register.
    pub frame: u64,
    /// What lies there, by rising addresses.
    pub bytes: &'a [u8],
}

/// A record of a ring.
#[derive(Debug, PartialEq, Eq)]
pub enum SamplingRecord<'a> {
    /// Something was caught.
    Caught {
        /// Of which process.
        pid: u32,
        /// Whether it was in the kernel.
        in_kernel: bool,
        /// The place in its program, then its callers; of one that was in the kernel, where it went
        /// there.
        places: &'a [u64],
        /// Its stack, where the kernel tells.
        top: Option<StackTop<'a>>,
    },
    /// There was no room for so many.
    Lost(u64),
}

/// Tells the records in `bytes`, as far as they are whole. `places` is room that is used again.
pub fn each_record(bytes: &[u8], places: &mut Vec<u64>, told: &mut dyn FnMut(SamplingRecord)) {
    let mut rest = bytes;
    while let Some(head) = rest.get(..8) {
        let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let misc = u16::from_ne_bytes([head[4], head[5]]);
        let length = usize::from(u16::from_ne_bytes([head[6], head[7]]));
        let Some(body) = rest.get(8..length) else { return };
        rest = &rest[length..];
        let word = |at: usize| body.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        match kind {
            RECORD_LOST => told(SamplingRecord::Lost(word(8).unwrap_or(0))),
            RECORD_SAMPLE => {
                let (Some(place), Some(pid)) = (word(0), body.get(8..12)) else { continue };
                let pid = u32::from_ne_bytes([pid[0], pid[1], pid[2], pid[3]]);
                let in_kernel = misc & MODE_MASK != MODE_USER;
                places.clear();
                let count = word(16).unwrap_or(0).min(u64::from(CALLERS_MAX) * 2) as usize;
                places.extend((0..count).map_while(|number| word(24 + 8 * number)).filter(|at| *at < MARKS_FROM));
                if places.is_empty() && !in_kernel {
                    places.push(place);
                }
                let top = word(16).and_then(|count| stack_top(body, count));
                told(SamplingRecord::Caught { pid, in_kernel, places, top });
            }
            _ => {}
        }
    }
}

/// The registers and stack of a sample's record after its `count` callers, if it has them.
fn stack_top(body: &[u8], count: u64) -> Option<StackTop<'_>> {
    let mut rest = body.get(usize::try_from(count.checked_mul(8)?.checked_add(24)?).ok()?..)?;
    let mut word = || {
        let (first, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_ne_bytes(*first))
    };
    // Threads of the kernel have none, and a program of 32 bits has others.
    if word()? != REGISTERS_64 {
        return None;
    }
    let (frame, stack, at, room) = (word()?, word()?, word()?, word()? as usize);
    let written = rest.get(room..)?.first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes))?;
    let bytes = rest.get(..room.min(usize::try_from(written).ok()?))?;
    Some(StackTop { at, stack, frame, bytes })
}

/// A ring that the kernel fills.
struct SampleRing {
    memory: NonNull<u8>,
    /// All of it, and what of that is the ring itself.
    length: usize,
    data: usize,
    /// Closed after the memory is given back.
    _event: OwnedFd,
}

// SAFETY: the memory belongs to the ring alone, wherever the ring goes.
unsafe impl Send for SampleRing {}

impl SampleRing {
    /// Of a core (`pid` -1), or of a thread wherever it runs (`core` -1).
    fn open(pid: i32, core: i32, in_kernel: bool, pages: usize) -> io::Result<SampleRing> {
        match SampleRing::open_with(pid, core, in_kernel, pages, CALLERS_MAX) {
            // Somebody has made the kernel's own bound lower.
            Err(error) if error.raw_os_error() == Some(libc::EOVERFLOW) => {
                SampleRing::open_with(pid, core, in_kernel, pages, 0)
            }
            opened => opened,
        }
    }

    fn open_with(pid: i32, core: i32, in_kernel: bool, pages: usize, callers: u16) -> io::Result<SampleRing> {
        let has_stack = cfg!(target_arch = "x86_64");
        let attr = EventAttr {
            kind: TYPE_SOFTWARE,
            size: size_of::<EventAttr>() as u32,
            config: CPU_CLOCK,
            sample_period: PERIOD_NS,
            sample_type: SAMPLE_IP
                | SAMPLE_TID
                | SAMPLE_CALLCHAIN
                | if has_stack { SAMPLE_REGISTERS | SAMPLE_STACK } else { 0 },
            flags: EXCLUDE_HV | EXCLUDE_IDLE | EXCLUDE_CALLCHAIN_KERNEL | if in_kernel { 0 } else { EXCLUDE_KERNEL },
            sample_regs_user: if has_stack { REGISTERS } else { 0 },
            sample_stack_user: if has_stack { STACK_BYTES } else { 0 },
            sample_max_stack: callers,
            ..EventAttr::default()
        };
        // SAFETY: `attr` is complete and outlives the call; the result is a descriptor that no
        // other code owns.
        let event = unsafe {
            let fd = libc::syscall(libc::SYS_perf_event_open, &raw const attr, pid, core, -1, FLAG_CLOEXEC);
            OwnedFd::from_raw_fd(check(fd as i32)?)
        };
        let page = crate::probe::process::page_bytes() as usize;
        let (length, data) = ((pages + 1) * page, pages * page);
        // SAFETY: a new mapping at a place of the kernel's choice.
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

    /// Moves what is in it into `bytes`, behind what is there.
    fn take(&self, bytes: &mut Vec<u8>) {
        // SAFETY: both lie in the first page, aligned, for as long as this lives; the kernel writes
        // them as whole words.
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
        // SAFETY: between tail and head the kernel writes nothing until the tail has moved; both
        // parts lie in the mapping.
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
        // SAFETY: the mapping is this ring's, and nothing points into it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// Samples under way.
pub struct CpuSampler {
    /// Of cores; empty where only threads may be sampled.
    cores: Vec<SampleRing>,
    threads: BTreeMap<u32, SampleRing>,
    in_kernel: bool,
    bytes: Vec<u8>,
    places: Vec<u64>,
}

impl CpuSampler {
    /// Samples all processes of this machine, or if that is forbidden, threads to be set later
    /// ([`CpuSampler::follow`]); `thread` is one of them, to test the permission.
    ///
    /// # Errors
    /// The kernel's error: usually no permission, or no such call.
    pub fn open(thread: u32) -> io::Result<CpuSampler> {
        let begun =
            |cores, threads, in_kernel| CpuSampler { cores, threads, in_kernel, bytes: Vec::new(), places: Vec::new() };
        let mut cores = Vec::new();
        // SAFETY: takes a number and no memory.
        let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let configured = usize::try_from(configured).unwrap_or(1).clamp(1, CORES_MAX);
        for core in 0..configured as i32 {
            match SampleRing::open(-1, core, true, CORE_PAGES) {
                Ok(ring) => cores.push(ring),
                // One that is switched off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) if cores.is_empty() && is_refused(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if !cores.is_empty() {
            return Ok(begun(cores, BTreeMap::new(), true));
        }
        let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (first, in_kernel) = match SampleRing::open(thread, -1, true, THREAD_PAGES) {
            Ok(ring) => (ring, true),
            Err(error) if is_refused(&error) => (SampleRing::open(thread, -1, false, THREAD_PAGES)?, false),
            Err(error) => return Err(error),
        };
        Ok(begun(Vec::new(), BTreeMap::from([(thread as u32, first)]), in_kernel))
    }

    /// Whether time in the kernel is sampled, too.
    pub fn in_kernel(&self) -> bool {
        self.in_kernel
    }

    /// Whether threads must be named, since it is not cores that are sampled.
    pub fn wants_threads(&self) -> bool {
        self.cores.is_empty()
    }

    /// Samples these threads from now on, as many as may be, and no others; whether these are all.
    pub fn follow(&mut self, threads: &[u32]) -> bool {
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
                // A thread that has ended meanwhile is no error.
                Err(error) => all &= error.raw_os_error() == Some(libc::ESRCH),
            }
        }
        all
    }

    /// Tells what was caught since the last call.
    pub fn take(&mut self, mut told: impl FnMut(SamplingRecord)) {
        for ring in self.cores.iter().chain(self.threads.values()) {
            self.bytes.clear();
            ring.take(&mut self.bytes);
            each_record(&self.bytes, &mut self.places, &mut told);
        }
    }
}

/// Whether less may be allowed than what was asked for.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// How much the kernel lets users without privileges sample: -1 everything, 2 their own programs,
/// more: nothing.
pub fn restriction() -> Option<i64> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let length = 8 + 8 * body.len() as u16;
        let mut bytes = [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &length.to_ne_bytes()].concat();
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn record_texts(bytes: &[u8]) -> Vec<String> {
        let (mut places, mut all) = (Vec::new(), Vec::new());
        each_record(bytes, &mut places, &mut |record| {
            all.push(match record {
                SamplingRecord::Caught { pid, in_kernel, places, top: None } => format!("{pid} {in_kernel} {places:?}"),
                SamplingRecord::Caught { top: Some(StackTop { at, stack, frame, bytes }), .. } => {
                    format!("{at} {stack} {frame} {}", bytes.len())
                }
                SamplingRecord::Lost(count) => format!("lost {count}"),
            });
        });
        all
    }

    #[test]
    fn records_are_told_as_far_as_they_are_whole() {
        let pid = u64::from_ne_bytes([7, 0, 0, 0, 9, 0, 0, 0]);
        let (user, kernel) = (MODE_USER, 1);
        let mark = u64::MAX - 511;
        let chain = record(RECORD_SAMPLE, user, &[100, pid, 3, mark, 100, 90]);
        let bare = record(RECORD_SAMPLE, user, &[100, pid, 0]);
        let kernel = record(RECORD_SAMPLE, kernel, &[u64::MAX - 9999, pid, 2, mark, 50]);
        let other = record(77, 0, &[1, 2]);
        let lost = record(RECORD_LOST, 0, &[1, 12]);
        let all = [chain, bare, kernel, other, lost].concat();
        assert_eq!(record_texts(&all), ["7 false [100, 90]", "7 false [100]", "7 true [50]", "lost 12"]);
        assert_eq!(record_texts(&all[..all.len() - 1]).len(), 3);
        // A record of length 0 or beyond the data ends parsing.
        assert_eq!(record_texts(&[0; 64]), Vec::<String>::new());
        assert_eq!(record_texts(&record(RECORD_SAMPLE, user, &[100, pid, u64::MAX])), ["7 false [100]"]);
        assert_eq!(record_texts(&record(RECORD_SAMPLE, user, &[100])), Vec::<String>::new());
    }

    #[test]
    fn a_stack_is_told_as_far_as_it_was_there() {
        for (rest, expect) in [
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 8], "1 2 3 8"),
            // The end of the stack's memory; a bound of the kernel's; and more than there is.
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 0], "1 2 3 0"),
            (vec![REGISTERS_64, 3, 2, 1, 16, 0, 0, 99], "1 2 3 16"),
            (vec![REGISTERS_64, 3, 2, 1, 0], "7 false [100, 90]"),
            (vec![REGISTERS_64, 3, 2, 1, u64::MAX, 0], "7 false [100, 90]"),
            (vec![1, 3, 2, 1, 8, 0, 8], "7 false [100, 90]"),
            (vec![0, 0], "7 false [100, 90]"),
            (vec![], "7 false [100, 90]"),
        ] {
            let body = [vec![100, 7, 2, 100, 90], rest].concat();
            assert_eq!(record_texts(&record(RECORD_SAMPLE, MODE_USER, &body)), [expect], "{body:?}");
        }
    }

    #[test]
    fn a_thread_that_works_is_caught() {
        let Ok(mut sampler) = CpuSampler::open(std::process::id()) else {
            return; // Not allowed here: what is said then is tested with the probes.
        };
        let until = Instant::now() + Duration::from_millis(400);
        let mut sum = 0u64;
        while Instant::now() < until {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        sampler.follow(&[std::process::id()]);
        let mut caught = 0;
        sampler.take(|record| {
            if let SamplingRecord::Caught { pid, places, in_kernel, top } = record
                && pid == std::process::id()
            {
                caught += 1;
                assert!(in_kernel || !places.is_empty());
                if let (Some(top), Some(place)) = (top, places.first()) {
                    assert!(top.at == *place && !top.bytes.is_empty(), "{top:?} {places:?}");
                }
            }
        });
        // This thread may not be the one that was named, where only threads are sampled.
        assert!(caught >= 5 || sampler.wants_threads(), "{caught} samples of 0.4 s of work");
    }
}
