//! Reads figures of a process and its threads, from
//! `/proc/PID/{stat,task,status,schedstat,limits,fd}` and from its CPU clock.

use super::{ProcFile, number_after_key, parse_leading_number, parse_number_field, split_fields};
use crate::error_if_negative;
use std::cmp::Ordering;
use std::io;
use std::path::Path;

/// The flag that marks the kernel's own threads in `/proc/PID/stat` (from the kernel's `sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// The values of `/proc/PID/stat`, or of the same file of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The id of the process or thread.
    pub pid: u32,
    /// The id of the parent process.
    pub parent: u32,
    /// The id of the process group.
    pub group: u32,
    /// The state as a letter: `R` running or runnable, `S` sleeping, `D` waiting for a device, `Z`
    /// ended, and others.
    pub state: u8,
    /// Whether this is a thread of the kernel itself (`PF_KTHREAD`).
    pub is_kernel_thread: bool,
    /// The number of page faults that waited for a device.
    pub major_faults: u64,
    /// CPU time in user mode, in ticks of [`ticks_per_second`]. The CPU time of a process includes
    /// all its threads, also ended threads.
    pub user_ticks: u64,
    /// CPU time in kernel mode, counted like `user_ticks`.
    pub system_ticks: u64,
    /// CPU time of children that ended and were reaped, in ticks.
    pub reaped_ticks: u64,
    /// The number of threads.
    pub threads: u64,
    /// The start time, in ticks since the machine started.
    pub started_ticks: u64,
    /// Resident memory in pages of [`page_bytes`].
    pub resident_pages: u64,
}

impl Stat {
    /// Whether the process has ended and is a zombie. If only the first thread has ended, the
    /// process is not a zombie, because other threads still work and keep its files open.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// Parses `/proc/PID/stat`. The process name in `/proc/PID/stat` may contain any characters, also
/// spaces and brackets.
pub fn parse_stat(text: &[u8]) -> Option<Stat> {
    let (pid, _) = parse_leading_number(text)?;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let mut rest = split_fields(&text[name_end + 1..]);
    let state = *rest.next()?.first()?;
    let (parent, group) = (parse_number_field(rest.next())?, parse_number_field(rest.next())?);
    // Fields of `/proc/PID/stat` are counted as in proc(5): the process group is number 5, flags 9,
    // major faults 12.
    let mut skip = |count: usize| parse_number_field(rest.nth(count));
    Some(Stat {
        pid: u32::try_from(pid).ok()?,
        parent: u32::try_from(parent).ok()?,
        group: u32::try_from(group).ok()?,
        state,
        is_kernel_thread: skip(3)? & PF_KTHREAD != 0,
        major_faults: skip(2)?,
        user_ticks: skip(1)?,
        system_ticks: skip(0)?,
        reaped_ticks: skip(0)?.checked_add(skip(0)?)?,
        threads: skip(2)?,
        started_ticks: skip(1)?,
        resident_pages: skip(1)?,
    })
}

/// Parses the process name (at most 15 bytes) in `/proc/PID/stat`.
pub fn parse_name(text: &[u8]) -> Option<String> {
    let from = text.iter().position(|byte| *byte == b'(')?;
    let to = text.iter().rposition(|byte| *byte == b')')?;
    Some(String::from_utf8_lossy(text.get(from + 1..to)?).into_owned())
}

/// The values of `/proc/PID/task/TID/schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedStat {
    /// The time that the thread spent on a core, ns.
    pub cpu_ns: u64,
    /// The time that the thread was runnable but waited for a core, ns.
    pub wait_ns: u64,
}

/// Parses a schedstat file. A kernel without scheduler statistics writes zeros to this file.
pub fn parse_schedstat(text: &[u8]) -> Option<SchedStat> {
    let (cpu_ns, rest) = parse_leading_number(text)?;
    let (wait_ns, _) = parse_leading_number(rest)?;
    Some(SchedStat { cpu_ns, wait_ns })
}

/// The values of `/proc/PID/task/TID/status` that plimsoll uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The state of the thread, as in [`Stat::state`].
    pub state: u8,
    /// The number of times that the thread gave up its core to wait for something.
    pub switches_voluntary: u64,
    /// The number of times that the kernel took the thread's core away.
    pub switches_involuntary: u64,
}

/// Parses a status file.
pub fn parse_status(text: &[u8]) -> Option<Status> {
    let state = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"State:"))?;
    Some(Status {
        state: *state.trim_ascii_start().first()?,
        switches_voluntary: number_after_key(text, b"voluntary_ctxt_switches")?,
        switches_involuntary: number_after_key(text, b"nonvoluntary_ctxt_switches")?,
    })
}

/// The reason why a thread is blocked, derived from the kernel function in which it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The thread waits for a lock that another thread or process owns.
    Lock,
    /// The thread waits for a timer, because it sleeps for a given time.
    Sleep,
    /// The thread waits for data on a connection or pipe that the thread reads.
    Data,
    /// The thread waits for buffer space of a pipe or unix socket to which the thread writes,
    /// because the reader is slow.
    BufferSpace,
    /// The thread waits for the end of a disk read or write.
    Disk,
    /// The thread waits for another reason, such as an event on one of many connections (epoll).
    Other,
}

/// The prefixes of kernel function names, by the reason for which a thread sleeps in the function.
const WAIT_FUNCTION_PREFIXES: [(WaitReason, &[&str]); 5] = [
    (
        WaitReason::Lock,
        &["futex", "locks_lock", "flock_lock", "posix_lock", "do_lock_file", "fcntl_setlk", "do_semtimedop"],
    ),
    (WaitReason::Sleep, &["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"]),
    (
        WaitReason::Data,
        &["wait_woken", "sk_wait_data", "tcp_data_wait", "unix_stream", "skb_wait", "anon_pipe_read", "pipe_read"],
    ),
    (
        WaitReason::BufferSpace,
        &["anon_pipe_write", "pipe_write", "sock_alloc_send", "sock_wait_for_wmem", "unix_wait_for_peer"],
    ),
    (
        WaitReason::Disk,
        &[
            "folio_wait",
            "wait_on_page",
            "wait_on_buffer",
            "__wait_on_buffer",
            "io_schedule",
            "jbd2_",
            "ext4_",
            "xfs_",
            "btrfs_",
            "blkdev_",
            "blk_",
            "submit_bio",
            "rq_qos",
            "filemap_",
            "bit_wait",
            "nfs",
            "fuse_",
        ],
    ),
];

/// Parses the reason of a thread's wait from `/proc/PID/task/TID/wchan`. `None` if the thread runs,
/// or the kernel does not report the function in which the thread sleeps.
pub fn parse_wait_channel(text: &[u8]) -> Option<WaitReason> {
    let name = std::str::from_utf8(text.trim_ascii()).ok().filter(|name| !name.is_empty() && *name != "0")?;
    let is = |places: &[&str]| places.iter().any(|place| name.starts_with(place));
    Some(
        WAIT_FUNCTION_PREFIXES
            .iter()
            .find(|(_, places)| is(places))
            .map_or(WaitReason::Other, |(waits_for, _)| *waits_for),
    )
}

/// The futex on which a thread waits, and whether the wait has a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexAddress {
    /// The address of the futex. Threads that wait for the same futex have the same address.
    pub address: u64,
    /// Whether the wait has a timeout.
    pub is_timed: bool,
}

/// Parses the futex of a waiting thread from `/proc/PID/task/TID/syscall`. `None` if the thread
/// runs, or does not wait on a futex.
pub fn parse_futex_address(text: &[u8]) -> Option<FutexAddress> {
    let mut words = split_fields(text);
    let (number, rest) = parse_leading_number(words.next()?)?;
    if !rest.is_empty() || libc::c_long::try_from(number).ok()? != libc::SYS_futex {
        return None;
    }
    let mut argument = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    // The arguments of futex(2) are address, operation, value and timeout.
    let (address, _, _, until) = (argument()?, argument()?, argument()?, argument()?);
    Some(FutexAddress { address, is_timed: until != 0 })
}

/// Parses the soft limit of open files in `/proc/PID/limits`.
pub fn parse_files_max(text: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Max open files"))?;
    let soft = split_fields(line).next()?;
    if soft == b"unlimited" { Some(u64::MAX) } else { parse_number_field(Some(soft)) }
}

/// Returns the number of open files in the file table that the thread `table` uses
/// ([`file_table_tids`]). Since Linux 6.2 the kernel reports the number of open files. On older
/// kernels this function counts the open files, which is slow for a server with many connections.
pub fn open_file_count(pid: u32, table: u32) -> io::Result<u64> {
    let folder = files_folder(pid, table);
    let counted = std::fs::metadata(&folder)?.len();
    if counted > 0 {
        return Ok(counted);
    }
    Ok(std::fs::read_dir(&folder)?.count() as u64)
}

/// Returns the folder in /proc that lists the open files of the file table that the thread `table`
/// uses.
pub fn files_folder(pid: u32, table: u32) -> String {
    if pid == table { format!("/proc/{pid}/fd") } else { format!("/proc/{pid}/task/{table}/fd") }
}

/// Finds the file tables (tables of open files) of a process, and returns for each table one thread
/// that uses the table. The file table of the process comes first, then file tables of threads with
/// their own table (see [`unshare_file_table`](crate::process::unshare_file_table)). If the kernel
/// forbids comparing the file tables of threads, only the file table of the process is returned.
pub fn file_table_tids(pid: u32, threads: impl Iterator<Item = u32>) -> Vec<u32> {
    // The kernel compares file tables in a total order, which is constant while the tables exist.
    // `known` is sorted in this order, so a binary search finds the tables that are already known.
    let mut known = vec![pid];
    for thread in threads {
        let place = known.binary_search_by(|table| compare_file_tables(*table, thread).unwrap_or(Ordering::Equal));
        if let Err(place) = place {
            known.insert(place, thread);
        }
    }
    known.sort_by_key(|table| *table != pid);
    known
}

/// Compares the file tables of two threads in the kernel's order. Returns `None` if the kernel
/// refuses the comparison, or one of the threads has ended.
fn compare_file_tables(a: u32, b: u32) -> Option<Ordering> {
    const KCMP_FILES: libc::c_long = 2;
    if a == b {
        return Some(Ordering::Equal);
    }
    let (a, b) = (libc::c_long::from(a), libc::c_long::from(b));
    // SAFETY: no memory is passed.
    match unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_FILES, 0 as libc::c_long, 0 as libc::c_long) } {
        0 => Some(Ordering::Equal),
        1 => Some(Ordering::Less),
        2 => Some(Ordering::Greater),
        _ => None,
    }
}

/// The CPU clock of a process, ns: the sum over all its threads, including ended threads. Any
/// process may read the clock of any other process.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    clock: libc::clockid_t,
}

impl CpuClock {
    /// Opens the CPU clock of process `pid`.
    pub fn for_process(pid: u32) -> io::Result<CpuClock> {
        let mut clock: libc::clockid_t = 0;
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        // SAFETY: `clock` is valid memory for a clock id.
        match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
            0 => Ok(CpuClock { clock }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Returns the CPU time of the process so far in ns. The CPU time of a running thread since the
    /// last kernel tick is added only at the next tick (1 to 10 ms).
    pub fn read_ns(&self) -> io::Result<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid memory for a timespec.
        error_if_negative(unsafe { libc::clock_gettime(self.clock, &mut time) })?;
        Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

/// Returns the number of ticks per second, the unit of times in `/proc/PID/stat`.
pub fn ticks_per_second() -> u64 {
    // SAFETY: no memory is passed.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

/// Returns the size of a memory page in bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: no memory is passed.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64
}

/// Returns the numbers among the names in a folder such as `/proc` or `/proc/PID/task`.
pub fn numbered_entries(folder: impl AsRef<Path>) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(folder)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Reads `/proc/PID/stat` of a process, and returns its values and its name.
pub fn read_process_stat(pid: u32, buffer: &mut Vec<u8>) -> io::Result<(Stat, String)> {
    let source = ProcFile::open(format!("/proc/{pid}/stat"))?;
    let text = source.read(buffer)?;
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "the format of /proc/PID/stat is unknown");
    Ok((parse_stat(text).ok_or_else(unknown)?, parse_name(text).ok_or_else(unknown)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_parsed_for_any_process_name() {
        let tail = "S 7 1 1 0 -1 4194304 10 20 30 40 500 60 7 8 20 0 12 0 9000 123456 777 18446744073709551615";
        for (name, expect) in [("nginx", "nginx"), ("a b", "a b"), (") R 1 (", ") R 1 ("), ("", "")] {
            let text = format!("42 ({name}) {tail} 1 2 3\n");
            let stat = parse_stat(text.as_bytes()).expect(name);
            let want = Stat {
                pid: 42,
                parent: 7,
                group: 1,
                state: b'S',
                is_kernel_thread: false,
                major_faults: 30,
                user_ticks: 500,
                system_ticks: 60,
                reaped_ticks: 15,
                threads: 12,
                started_ticks: 9000,
                resident_pages: 777,
            };
            assert_eq!(stat, want);
            assert_eq!(parse_name(text.as_bytes()).as_deref(), Some(expect));
        }
        let kernel = b"24 (kworker/1:0H-kblockd) I 2 0 0 0 -1 69238880 0 0 0 0 0 4170 0 0 0 -20 1 0 27 0 0 1\n";
        assert!(parse_stat(kernel).is_some_and(|stat| stat.is_kernel_thread && stat.system_ticks == 4170));
        for text in ["", "42", "42 (x", "42 (x) S 7 1", "x (x) S 7", "42 )x( S 7 1 1"] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_process_with_a_live_thread_is_running() {
        for (state, threads, ended) in
            [("S", 1, false), ("R", 7, false), ("Z", 1, true), ("Z", 2, false), ("X", 0, true), ("D", 1, false)]
        {
            let text = format!("42 (x) {state} 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 9000 0 0\n");
            assert_eq!(parse_stat(text.as_bytes()).expect("a stat").has_ended(), ended, "{state} {threads}");
        }
    }

    #[test]
    fn small_proc_files_are_parsed() {
        for (text, expect) in [
            ("123 45 6\n", Some(SchedStat { cpu_ns: 123, wait_ns: 45 })),
            ("0 0 0\n", Some(SchedStat::default())),
            ("123\n", None),
            ("", None),
        ] {
            assert_eq!(parse_schedstat(text.as_bytes()), expect, "{text:?}");
        }
        let status = "Name:\tx\nState:\tR (running)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        let want = Status { state: b'R', switches_voluntary: 5, switches_involuntary: 6 };
        assert_eq!(parse_status(status.as_bytes()), Some(want));
        assert_eq!(parse_status(b"State:\tR\n"), None);
        for (text, expect) in [
            ("Max open files            1024                 4096                 files\n", Some(1024)),
            ("Max open files            unlimited            unlimited            files\n", Some(u64::MAX)),
            ("Max cpu time  1 2 s\n", None),
        ] {
            assert_eq!(parse_files_max(text.as_bytes()), expect);
        }
    }

    #[test]
    fn the_wait_channel_names_what_a_thread_waits_for() {
        for (text, expect) in [
            ("futex_do_wait", Some(WaitReason::Lock)),
            ("locks_lock_inode_wait", Some(WaitReason::Lock)),
            ("hrtimer_nanosleep\n", Some(WaitReason::Sleep)),
            ("wait_woken", Some(WaitReason::Data)),
            ("anon_pipe_read", Some(WaitReason::Data)),
            ("anon_pipe_write", Some(WaitReason::BufferSpace)),
            ("sock_alloc_send_pskb", Some(WaitReason::BufferSpace)),
            ("jbd2_log_wait_commit", Some(WaitReason::Disk)),
            ("ep_poll", Some(WaitReason::Other)),
            ("0", None),
            ("", None),
            ("\u{ff}", Some(WaitReason::Other)),
        ] {
            assert_eq!(parse_wait_channel(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn the_syscall_line_gives_the_futex_of_a_thread() {
        let futex = libc::SYS_futex;
        let place = |address, is_timed| Some(FutexAddress { address, is_timed });
        for (text, expect) in [
            (
                format!("{futex} 0x55a3e6b2ce50 0x189 0x0 0x0 0x0 0xffffffff 0x7fa0 0x7fa1\n"),
                place(0x55a3_e6b2_ce50, false),
            ),
            (format!("{futex} 0x7fa0 0x89 0x0 0x7fa05effc9f0 0x0 0xffffffff 0x7fa0 0x7fa1\n"), place(0x7fa0, true)),
            (format!("{} 0x1 0x1 0x7fa05e7fbab0 0x0 0x0 0x0 0x7fa0 0x7fa1\n", futex + 1), None),
            ("running\n".into(), None),
            ("-1 0x7ffe 0x7fa0\n".into(), None),
            (format!("{futex} 0x55a3"), None),
            (format!("{futex} 12 0x0 0x0 0x0"), None),
            (format!("{futex}x 0x1 0x0 0x0 0x0"), None),
            (String::new(), None),
        ] {
            assert_eq!(parse_futex_address(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn statistics_of_this_process_are_read() {
        let me = std::process::id();
        let clock = CpuClock::for_process(me).expect("a clock");
        let before = clock.read_ns().expect("reads");
        std::hint::black_box((0..5_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        let spent_ns = clock.read_ns().expect("reads") - before;
        assert!(spent_ns > 100_000, "{spent_ns} ns");
        let (stat, name) = read_process_stat(me, &mut Vec::new()).expect("reads");
        assert!(stat.threads >= 1 && stat.resident_pages * page_bytes() > 100_000 && !name.is_empty());
        let threads = numbered_entries(format!("/proc/{me}/task")).expect("reads");
        assert!(threads.contains(&me));
        let open = open_file_count(me, me).expect("counts");
        let more: Vec<_> = (0..50).map(|_| std::fs::File::open("/proc/self/stat").expect("opens")).collect();
        assert!(
            open_file_count(me, me).expect("counts") >= open.saturating_sub(20) + 50 - 20,
            "{open} and {}",
            more.len()
        );
        assert_eq!(file_table_tids(me, threads.into_iter()), [me], "threads share their files");
        let (told, tid) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let own = std::thread::spawn(move || {
            let has_own = crate::process::copy_file_table().is_ok();
            let file = std::fs::File::open("/proc/thread-self/stat").expect("opens");
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut &file, &mut text).expect("reads");
            told.send((has_own, parse_leading_number(&text).expect("a number").0 as u32)).expect("heard");
            let _ = ended.recv();
        });
        let (has_own, tid) = tid.recv().expect("told");
        if has_own {
            let threads = numbered_entries(format!("/proc/{me}/task")).expect("reads");
            assert_eq!(file_table_tids(me, threads.into_iter()), [me, tid]);
            assert!(open_file_count(me, tid).expect("counts") > 0);
        }
        drop(end);
        own.join().expect("ends");
        assert!(CpuClock::for_process(u32::MAX).is_err());
        assert!(read_process_stat(u32::MAX, &mut Vec::new()).is_err());
    }
}
