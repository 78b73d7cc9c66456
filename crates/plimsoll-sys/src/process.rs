//! This process and the machine it runs on: limits, cores, memory, names.

use crate::check;
use std::io;

/// Cores that this process may run on (its affinity mask).
pub fn cores() -> u32 {
    // SAFETY: all-zero bytes are a valid, empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` has the size given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    // SAFETY: reads a valid set.
    if result == 0 { unsafe { libc::CPU_COUNT(&set) as u32 }.max(1) } else { 1 }
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
    // SAFETY: `set` has the size given.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Raises the soft limit of open files to the hard limit and returns the limit then in force.
pub fn raise_files_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for an rlimit.
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

/// Resident memory of this process in bytes (0 if unknown).
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    // SAFETY: no memory is passed.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(0) as u64
}

/// Memory of the machine in bytes (0 if unknown).
pub fn memory_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find(|l| l.starts_with("MemTotal:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Operating system and kernel, such as `Linux 6.1.0`.
pub fn kernel() -> String {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
}

/// The processor's model name (empty if unknown).
pub fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("model name")).unwrap_or_default();
    line.split_once(':').map(|(_, name)| name.trim().to_owned()).unwrap_or_default()
}

/// Columns and rows of the terminal that standard error goes to, if it is one.
pub fn terminal_size() -> Option<(usize, usize)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is a valid place for a winsize, which is what TIOCGWINSZ fills.
    let result = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) };
    (result == 0 && size.ws_col > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_machine_is_seen() {
        assert!(super::cores() >= 1);
        assert!(super::resident_bytes() > 100_000);
        assert!(super::memory_bytes() > super::resident_bytes());
        assert!(super::raise_files_max() >= 64);
        assert!(super::kernel().starts_with("Linux "));
    }
}
