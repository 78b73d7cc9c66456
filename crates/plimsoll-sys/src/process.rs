//! Facts and settings of this process and its machine: limits, cores, memory, names.

use crate::error_if_negative;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when this process started. Before `main`, the standard
/// library opens `/dev/null` in place of a closed stream, so output would vanish without an error.
/// The check for a closed standard output therefore runs before the standard library starts.
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn check_stdout_at_start() {
    // SAFETY: the call reads the flags of a descriptor, open or not; no memory is passed.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_CLOSED.store(closed, Ordering::Relaxed);
}

/// Makes the loader call `check_stdout_at_start` before `main`.
// SAFETY: the section contains pointers to functions that run before the runtime is set up. The
// function `check_stdout_at_start` makes a single system call and stores an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_STDOUT_AT_START: extern "C" fn() = check_stdout_at_start;

/// Moves standard output to a new descriptor, which is returned. Later writes to standard output,
/// by this process or its children, go to standard error. A document on the new descriptor
/// therefore stays valid even if foreign code, such as a script, prints.
pub fn redirect_stdout_to_stderr() -> io::Result<std::fs::File> {
    // SAFETY: duplicates descriptors; no memory is passed.
    let moved = error_if_negative(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the call above created the descriptor, and no other code owns it.
    let moved = unsafe { std::fs::File::from_raw_fd(moved) };
    // SAFETY: the call makes descriptor 1 a duplicate of descriptor 2; no memory is passed.
    error_if_negative(unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) })?;
    Ok(moved)
}

/// The largest number of processes whose allowed cores are queried. Children usually inherit the
/// allowed cores of their parent, so queries of more processes would find no other cores.
const CORE_QUERIES_MAX: usize = 64;

/// A set of cores, among the first 1024 of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSet([u64; 16]);

impl CoreSet {
    /// Returns the number of cores in the set.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }

    /// Whether all cores of this set are in `all`.
    pub fn is_within(&self, all: &CoreSet) -> bool {
        self.0.iter().zip(all.0).all(|(own, all)| own & !all == 0)
    }

    fn union_with(&self, other: &CoreSet) -> CoreSet {
        CoreSet(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}

/// Returns the number of cores that this process may run on (its affinity mask).
pub fn allowed_core_count() -> u32 {
    permitted_cores(0).map_or(0, |cores| cores.count()).max(1)
}

/// Returns the cores on which a process may run (0: this process). `None` if the process has ended,
/// or if the query is not permitted.
pub fn permitted_cores(pid: u32) -> Option<CoreSet> {
    let mut cores = CoreSet::default();
    // SAFETY: the array has the given size. A cpu_set_t is an array of words like `cores`, and any
    // bits are valid.
    let asked = unsafe {
        libc::sched_getaffinity(pid as libc::pid_t, size_of_val(&cores.0), std::ptr::from_mut(&mut cores.0).cast())
    };
    (asked == 0).then_some(cores)
}

/// Returns the cores on which at least one of the processes `pids` may run; see
/// [`permitted_cores`].
pub fn cores_of_processes(pids: impl Iterator<Item = u32>) -> Option<CoreSet> {
    pids.take(CORE_QUERIES_MAX).filter_map(permitted_cores).reduce(|a, b| a.union_with(&b))
}

/// Returns the number of cores of this machine that are online.
pub fn cores_online() -> u32 {
    // SAFETY: the call takes a number and returns a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1).max(1)
}

/// Restricts the calling thread (and threads it starts later) to the given cores.
pub fn set_cores(cores: &[u32]) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid, empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores {
        if (*core as usize) < libc::CPU_SETSIZE as usize {
            // SAFETY: the core is within the set.
            unsafe { libc::CPU_SET(*core as usize, &mut set) };
        }
    }
    // SAFETY: `set` has the given size.
    error_if_negative(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Raises the soft limit of open files to the hard limit, and returns the new limit.
pub fn raise_open_files_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid memory for an rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 1024;
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: `raised` is a valid rlimit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            return raised.rlim_cur;
        }
    }
    limit.rlim_cur
}

/// Gives the calling thread its own file table (table of open files) with only the standard streams
/// and `keep`. With its own file table, the limit of open files applies to the thread alone. The
/// thread must not use other descriptors of the process any more, and other threads cannot use the
/// thread's new descriptors.
///
/// A thread's own file table needs Linux 5.9; after an error the thread keeps the file table of the
/// process.
pub fn unshare_file_table(keep: Option<BorrowedFd>) -> io::Result<()> {
    let close = |first: u32, last: u32| {
        // SAFETY: no memory is passed. The call closes only descriptors in this thread's own file
        // table, and by the contract of `unshare_file_table` no code uses these descriptors.
        error_if_negative(unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) } as i32)
    };
    // The standard streams are descriptors 0 to 2 (`STDERR_FILENO`) and must stay open, so `keep`
    // is at least 2.
    let keep = keep.map_or(libc::STDERR_FILENO, |fd| fd.as_raw_fd()).max(libc::STDERR_FILENO) as u32;
    if keep > 3 {
        close(3, keep - 1)?;
    }
    close(keep + 1, u32::MAX)?;
    Ok(())
}

/// Gives the calling thread a copy of the process's file table: open files stay usable, and new
/// files count against the thread's own limit. Files that other threads close stay open in the
/// copied file table, so only a thread that starts before the load may use this function.
pub fn copy_file_table() -> io::Result<()> {
    // SAFETY: no memory is passed.
    error_if_negative(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    Ok(())
}

/// Returns the longest accept queue that the machine allows a listener (0 if unknown).
pub fn backlog_max() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Returns the number of ports in the system's range of local ports; 28 232, the default of Linux,
/// if the range is unknown. A client address can have one connection at a time from each local port
/// to the same server address and port.
pub fn local_port_count() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if first <= last => last - first + 1,
        _ => 28_232,
    }
}

/// Returns the number of connections in TIME-WAIT, each of which occupies a port (0 if unknown).
pub fn time_wait_connections() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let mut words = line.split_whitespace().skip_while(|word| *word != "tw").skip(1);
    words.next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns the memory of the machine that is available without swapping, in bytes (0 if unknown).
pub fn memory_available_bytes() -> u64 {
    meminfo_bytes("MemAvailable:")
}

/// Returns the resident memory of this process, in bytes (0 if unknown).
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    // SAFETY: no memory is passed.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(0) as u64
}

/// The private read-only file mappings of this process when it started: start and end of each. The
/// mappings contain the program and its libraries, which stay mapped until the process ends.
static FILE_MAPPINGS: OnceLock<Vec<(usize, usize)>> = OnceLock::new();

/// Limits each page fault in the file mappings of this process (code, constants, linker tables) to
/// one page, to save memory. Call this function before the process starts a thread or opens a
/// library.
///
/// By default, a page fault in a file mapping also makes neighbouring pages resident, usually 64
/// kB. In a build without inlining, most of the neighbouring pages are never used. The kernel loads
/// no neighbouring pages in mappings whose writes a userfaultfd tracks. The function therefore
/// tracks the writes to the read-only file mappings, although no writes occur. If the kernel cannot
/// track writes (before Linux 6.7; on ARM before 6.10), or a sandbox forbids userfaultfd, page
/// faults still load neighbouring pages.
pub fn disable_fault_around() {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mappings = FILE_MAPPINGS.get_or_init(|| unmodified_file_mappings(&smaps));
    if let Ok(tracker) = userfaultfd::track_writes(mappings) {
        // The descriptor stays open, because closing it would end the tracking of writes. Programs
        // that this process starts do not inherit the descriptor.
        std::mem::forget(tracker);
    }
}

/// The constants and structures of `linux/userfaultfd.h` that this file needs for the system call
/// `userfaultfd(2)`.
mod userfaultfd {
    use std::io::{Error, ErrorKind, Result};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const USER_MODE_ONLY: libc::c_int = 1;
    const API_VERSION: u64 = 0xaa;
    const API_REQUEST: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const REGISTER_REQUEST: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    /// The feature with which the kernel resolves tracked write faults by itself, in mappings of
    /// any kind.
    const FEATURE_ASYNCHRONOUS_WRITES: u64 = 1 << 15;
    const REGISTER_WRITES: u64 = 1 << 1;

    #[repr(C)]
    struct Api {
        version: u64,
        features: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Register {
        start: u64,
        length: u64,
        mode: u64,
        ioctls: u64,
    }

    /// Tracks the writes to the memory ranges `ranges` (start and end of each) until the returned
    /// descriptor is closed. Returns an error of the kind `Unsupported` if the kernel cannot track
    /// writes.
    pub(super) fn track_writes(ranges: &[(usize, usize)]) -> Result<OwnedFd> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | USER_MODE_ONLY) } as libc::c_int;
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        let tracker = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut api = Api { version: API_VERSION, features: FEATURE_ASYNCHRONOUS_WRITES, ioctls: 0 };
        // SAFETY: `api` has the layout that the request reads and writes.
        let result = unsafe { libc::ioctl(tracker.as_raw_fd(), API_REQUEST, &mut api) };
        if result != 0 || api.features & FEATURE_ASYNCHRONOUS_WRITES == 0 {
            return Err(ErrorKind::Unsupported.into());
        }
        for &(start, end) in ranges {
            let mut range =
                Register { start: start as u64, length: (end - start) as u64, mode: REGISTER_WRITES, ioctls: 0 };
            // SAFETY: `range` has the layout that the request reads and writes. No page of the
            // range becomes write-protected, so no access of the program changes.
            if unsafe { libc::ioctl(tracker.as_raw_fd(), REGISTER_REQUEST, &mut range) } != 0 {
                return Err(Error::last_os_error());
            }
        }
        Ok(tracker)
    }
}

/// Drops unmodified file mappings of this process (code, constants, linker tables) from resident
/// memory. Plimsoll calls this function between command line, load and report, because each of the
/// three uses different code. A later use of dropped code costs a minor page fault, because the
/// file stays in the page cache. Does nothing in a process that did not call
/// [`disable_fault_around`].
pub fn drop_unmodified_file_pages() {
    for &(start, end) in FILE_MAPPINGS.get().into_iter().flatten() {
        // SAFETY: the range is a private, read-only file mapping of the program or a library, which
        // is never unmapped. No page was modified when the process started, and the program writes
        // to none. Every byte of the range therefore equals the byte in the file, from which the
        // next access reads the byte again. (A debugger's breakpoints in the range are lost.)
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// Finds the ranges in `/proc/self/smaps` of private read-only file mappings without modified
/// pages. (Pages that the linker relocated before the mapping became read-only are modified.)
fn unmodified_file_mappings(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut of_a_file = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "Anonymous:" {
            found.extend(of_a_file.take().filter(|_| words.next() == Some("0")));
        } else if let Some((start, end)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).ok();
            let unwritable = matches!(words.next(), Some("r-xp" | "r--p"));
            let of_path = words.nth(3).is_some_and(|path| path.starts_with('/'));
            of_a_file = address(start).zip(address(end)).filter(|_| unwritable && of_path);
        }
    }
    found
}

/// Returns the memory of the machine in bytes (0 if unknown).
pub fn memory_total_bytes() -> u64 {
    meminfo_bytes("MemTotal:")
}

fn meminfo_bytes(name: &str) -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Returns the operating system and the kernel version, such as `Linux 6.1.0`.
pub fn kernel_version_text() -> String {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
}

/// Returns the processor's model name (empty if unknown).
pub fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("model name")).unwrap_or_default();
    line.split_once(':').map(|(_, name)| name.trim().to_owned()).unwrap_or_default()
}

/// Sets the name by which `ps` and `pkill` know this process (at most 15 bytes).
pub fn set_process_name(name: &std::ffi::CStr) {
    // SAFETY: `name` ends with a zero; the kernel copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Returns the columns and rows of the terminal at standard error, or else at standard output.
/// `None` if neither standard error nor standard output is a terminal.
pub fn terminal_size() -> Option<(usize, usize)> {
    [libc::STDERR_FILENO, libc::STDOUT_FILENO].into_iter().find_map(|file| {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: `size` is valid memory for a winsize, which TIOCGWINSZ fills.
        let result = unsafe { libc::ioctl(file, libc::TIOCGWINSZ, &mut size) };
        (result == 0 && size.ws_col > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn released_code_pages_load_again_on_a_call() {
        fn check(head: &str, anonymous: &str, expect: Option<(usize, usize)>) {
            let smaps = format!("{head}\nRss:  8 kB\nAnonymous:   {anonymous} kB\nVmFlags: rd mr\n");
            assert_eq!(super::unmodified_file_mappings(&smaps), Vec::from_iter(expect), "{head}");
        }
        check("1000-3000 r-xp 00002000 fe:00 123 /usr/bin/a b", "0", Some((0x1000, 0x3000)));
        check("1000-3000 r--p 00002000 fe:00 123 /usr/bin/a", "0", Some((0x1000, 0x3000)));
        check("1000-3000 r--p 00002000 fe:00 123 /usr/bin/a", "4", None);
        check("1000-3000 rw-p 00002000 fe:00 123 /usr/bin/a", "0", None);
        check("1000-3000 r--s 00002000 fe:00 123 /usr/bin/a", "0", None);
        check("1000-3000 rwxp 00002000 fe:00 123 /usr/bin/a", "0", None);
        check("1000-3000 r-xp 00000000 00:00 0", "0", None);
        check("7fff1000-7fff3000 r-xp 00000000 00:00 0 [vdso]", "0", None);
        check("", "0", None);
        let text = |number: u64| format!("{number:>8}");
        let before = text(7);
        super::disable_fault_around();
        super::drop_unmodified_file_pages();
        assert_eq!(text(7), before);
    }

    #[test]
    fn a_page_fault_loads_one_page_of_a_tracked_file() {
        use std::os::fd::AsRawFd;
        const PAGES: usize = 64;
        // SAFETY: no memory is passed.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let path = std::env::temp_dir().join(format!("plimsoll-pages-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; PAGES * page_bytes]).expect("written");
        let file = std::fs::File::open(&path).expect("opened");
        std::fs::remove_file(&path).expect("removed");
        let resident_pages = |is_tracked: bool| {
            // SAFETY: the mapping is new, and is not used after its end.
            let start = unsafe {
                let (length, fd) = (PAGES * page_bytes, file.as_raw_fd());
                libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0)
            };
            assert_ne!(start, libc::MAP_FAILED);
            let range = (start as usize, start as usize + PAGES * page_bytes);
            let tracker = is_tracked.then(|| super::userfaultfd::track_writes(&[range]));
            // SAFETY: the byte is in the mapping.
            assert_eq!(unsafe { start.cast::<u8>().add(20 * page_bytes).read_volatile() }, 7);
            let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux");
            let entry = smaps.split_once(&format!("{:x}-{:x} ", range.0, range.1)).expect("one mapping").1;
            let resident = entry.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a size");
            let kb: usize = resident.trim().trim_end_matches(" kB").parse().expect("a number");
            // SAFETY: nothing uses the mapping any more.
            unsafe { libc::munmap(start, PAGES * page_bytes) };
            (kb * 1024 / page_bytes, tracker.map(|tracker| tracker.map(drop)))
        };
        match resident_pages(true) {
            (1, Some(Ok(()))) => {}
            (_, Some(Err(error)))
                if error.kind() == std::io::ErrorKind::Unsupported
                    || matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) =>
            {
                eprintln!("not tested, because userfaultfd is not available here: {error}");
            }
            other => panic!("{other:?}"),
        }
        // In about a tenth of the processes, the kernel loads no neighbours of an untracked file
        // either. The check above proves nothing then.
        if resident_pages(false).0 == 1 {
            eprintln!("not tested, because the kernel loads no neighbours in this process");
        }
    }

    #[test]
    fn a_private_file_table_leaves_other_threads_files_open() {
        use std::io::{Read, Write};
        use std::os::fd::AsFd;
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
        let (mut kept, mut keeper) = std::io::pipe().expect("a pipe");
        keeper.write_all(b"k").expect("room");
        let (count, own) = std::thread::spawn(move || {
            super::unshare_file_table(Some(kept.as_fd())).expect("a table");
            let mut byte = [0];
            kept.read_exact(&mut byte).expect("kept");
            // Dropping the file here would close it in this thread's table only.
            std::mem::forget(kept);
            let own: Vec<_> = (0..5).map(|_| std::fs::File::open("/proc/self/stat").expect("opens")).collect();
            (std::fs::read_dir("/proc/thread-self/fd").expect("a list").count(), own.len())
        })
        .join()
        .expect("no panic");
        // The thread's expected open files are the standard streams, the kept file, the files that
        // the thread opened, and the folder that lists the files.
        assert!(count <= 3 + 1 + own + 1, "{count}");
        writer.write_all(b"x").expect("still open");
        reader.read_exact(&mut [0]).expect("still open");
    }

    #[test]
    fn machine_facts_are_available() {
        assert!(super::allowed_core_count() >= 1);
        assert!(super::resident_bytes() > 100_000);
        assert!(super::memory_total_bytes() > super::resident_bytes());
        assert!(super::raise_open_files_limit() >= 64);
        assert!(super::memory_available_bytes() <= super::memory_total_bytes());
        assert!(super::backlog_max() >= 16 && super::local_port_count() >= 100);
        let _ = super::time_wait_connections();
        assert!(super::kernel_version_text().starts_with("Linux "));
    }
}
