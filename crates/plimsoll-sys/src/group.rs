//! Finds and ends all descendants of this process, including descendants in other sessions or
//! process groups. This module also waits for children that end, and reads the CPU time of
//! processes.

use crate::probe::listener;
use crate::probe::process::{CpuClock, Stat};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// The time between two checks whether all processes have ended.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The longest wait for killed processes to disappear, since the kernel may still write data for
/// them.
const KILLED_EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes this process the new parent of every descendant whose parent ends. Every descendant then
/// stays in the process tree of this process, whatever sessions and process groups it creates.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this prctl takes a number and no memory.
    crate::error_if_negative(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    Ok(())
}

/// Makes the kernel kill the process of `command` when the thread that starts it ends. The kernel
/// does not kill the descendants of the process.
pub fn kill_when_thread_ends(command: &mut Command) {
    let parent = std::process::id();
    let bind = move || {
        // SAFETY: `prctl` and `getppid` take numbers and no memory, and are async-signal-safe.
        let late = unsafe {
            crate::error_if_negative(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            libc::getppid()
        };
        // If the parent's process id differs, the starting process ended before this `prctl`, so
        // the kernel will send no signal.
        if late as u32 == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: `bind` neither allocates nor locks; its error is a number.
    unsafe { command.pre_exec(bind) };
}

/// Waits for the next child that ends, including adopted children; `None` if there is no child.
pub fn wait_for_ended_child() -> Option<(u32, ExitStatus)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid memory for an exit status.
        match crate::error_if_negative(unsafe { libc::waitpid(-1, &mut status, 0) }) {
            Ok(pid) => return Some((pid as u32, ExitStatus::from_raw(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Ends this process in the same way as another process: with the same exit code, or by the same
/// signal.
pub fn end_like_process(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `nothing` is a valid rlimit; a core file size of 0 prevents a second core file
        // for the same crash. `signal` and `raise` take numbers only.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &nothing);
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    std::process::exit(status.code().unwrap_or(128))
}

/// The descendants of this process, with a mark for those that started after a given time. The set
/// is complete only if
/// [`adopt_orphans`] was called before.
pub struct DescendantSet {
    /// The process ids of descendants that existed before the given time.
    before: BTreeSet<u32>,
}

impl DescendantSet {
    /// Creates the set of descendants that start from now on.
    pub fn started_from_now() -> DescendantSet {
        DescendantSet { before: own_descendants().map(|stat| stat.pid).collect() }
    }

    /// Creates the set of all present and later descendants of this process.
    pub fn all_descendants() -> DescendantSet {
        DescendantSet { before: BTreeSet::new() }
    }

    fn new_descendants(&self) -> impl Iterator<Item = Stat> {
        own_descendants().filter(|stat| !self.before.contains(&stat.pid))
    }

    /// Returns the process ids of the descendants that have not ended.
    pub fn living_pids(&self) -> Vec<u32> {
        self.new_descendants().filter(|stat| !stat.has_ended()).map(|stat| stat.pid).collect()
    }

    /// Ends all descendants. Each descendant gets SIGTERM once, also a descendant that starts
    /// during this call. Descendants that live longer than the time limit `patience` get SIGKILL.
    /// `patience` is called repeatedly, because the limit may become shorter, for example after
    /// ^C. Fails if a descendant survives SIGKILL.
    pub fn end(&self, patience: impl Fn() -> Duration) -> io::Result<()> {
        let began = Instant::now();
        let mut asked = BTreeSet::new();
        loop {
            let living = self.living_pids();
            let force = began.elapsed() >= patience();
            if living.is_empty() {
                return Ok(());
            }
            if began.elapsed() >= patience() + KILLED_EXIT_TIMEOUT {
                return Err(io::Error::other("some processes that the command started do not end"));
            }
            for pid in living {
                if force {
                    send_signal(pid, libc::SIGKILL);
                } else if asked.insert(pid) {
                    send_signal(pid, libc::SIGTERM);
                }
            }
            std::thread::sleep(EXIT_CHECK_INTERVAL);
        }
    }

    /// Reaps the ended descendants whose parent is this process, except `child`, for which other
    /// code waits.
    pub fn reap_orphans(&self, child: u32) {
        let own = |s: &Stat| s.has_ended() && s.parent == std::process::id() && s.pid != child;
        for stat in self.new_descendants().filter(own) {
            if let Ok(pid) = libc::pid_t::try_from(stat.pid) {
                // SAFETY: the call needs no memory for the status; WNOHANG never blocks.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
            }
        }
    }
}

/// Sends a signal to one descendant. A descendant that has ended meanwhile is no error.
fn send_signal(pid: u32, signal: libc::c_int) {
    if let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1) {
        // SAFETY: no memory is passed. `pid` is above 1, so the signal reaches neither a process
        // group (0 and below) nor the system's first process.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Returns the processes `roots` and all their descendants, without the branch that begins at
/// `without`. The result includes zombies (ended processes that were not reaped).
fn roots_with_descendants(roots: &[u32], without: u32) -> Vec<Stat> {
    let all = listener::processes().unwrap_or_default();
    let parents = all.iter().map(|(pid, (stat, _))| (*pid, stat.parent)).collect();
    listener::processes_with_descendants(roots, without, &parents)
        .iter()
        .filter_map(|pid| all.get(pid).map(|(stat, _)| *stat))
        .collect()
}

/// Returns all descendants of this process.
fn own_descendants() -> impl Iterator<Item = Stat> {
    let me = std::process::id();
    roots_with_descendants(&[me], 0).into_iter().filter(move |stat| stat.pid != me)
}

/// The CPU clocks of a set of processes. Reading the clocks is cheap; finding the processes is not.
pub struct CpuClocks(Vec<(u32, CpuClock)>);

impl CpuClocks {
    /// Opens the CPU clocks of the processes `pids`. The set of clocks does not include processes
    /// that have ended.
    pub fn for_processes(pids: &[u32]) -> CpuClocks {
        CpuClocks(pids.iter().filter_map(|pid| Some((*pid, CpuClock::for_process(*pid).ok()?))).collect())
    }

    /// Opens the clocks of the processes `roots` and of all their living descendants. The set does
    /// not include this process and its own descendants.
    pub fn with_descendants(roots: &[u32]) -> CpuClocks {
        let family = roots_with_descendants(roots, std::process::id());
        CpuClocks::for_processes(&family.iter().map(|stat| stat.pid).collect::<Vec<_>>())
    }

    /// Returns the ids of the processes whose clocks are open.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(pid, _)| *pid)
    }

    /// Whether the set contains no process.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the CPU time that the processes have used so far with all their threads, ns. The CPU
    /// time of an ended process counts until its parent reaps the process.
    pub fn cpu_ns(&self) -> u64 {
        self.0.iter().filter_map(|(_, clock)| clock.read_ns().ok()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CHILD_PROCESSES;
    use std::process::{Command, Stdio};
    use std::sync::PoisonError;

    /// Waits until `check` returns true, and panics if that takes too long.
    fn wait_until(what: &str, mut check: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !check() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks that all descendants are found and ended. No other test may have child processes
    /// meanwhile, because this test ends all descendants of the test process.
    #[test]
    fn descendant_processes_are_found_and_ended() {
        let _alone = CHILD_PROCESSES.lock().unwrap_or_else(PoisonError::into_inner);
        adopt_orphans().expect("Linux 3.4 or newer");
        let offspring = DescendantSet::started_from_now();
        // The script starts a busy process, a process in another session whose parent ends, and a
        // process that ignores SIGTERM.
        let script = "(while :; do :; done) & (setsid sleep 1000 &); (trap '' TERM; sleep 1000) & wait";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().expect("sh starts");
        wait_until("all run", || offspring.living_pids().len() >= 4);
        let clocks = CpuClocks::for_processes(&offspring.living_pids());
        let before = clocks.cpu_ns();
        wait_until("the child works", || clocks.cpu_ns() > before + 10_000_000);
        offspring.end(|| Duration::from_millis(200)).expect("all end");
        assert_eq!(offspring.living_pids(), []);
        shell.wait().expect("ended");
        offspring.reap_orphans(0);
        assert_eq!(offspring.new_descendants().count(), 0, "nobody waits to be waited for");
        offspring.end(|| Duration::ZERO).expect("nobody is left, which is what was wanted");

        // A process whose first thread has ended continues while other threads run, and its files
        // stay open.
        let program = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); \
                       ctypes.CDLL(None).syscall(60, 0)";
        if let Ok(mut headless) = Command::new("python3").args(["-c", program]).stdin(Stdio::null()).spawn() {
            let state = || offspring.new_descendants().find(|stat| stat.pid == headless.id()).map(|stat| stat.state);
            wait_until("its first thread ends", || state() == Some(b'Z') || offspring.living_pids().is_empty());
            if cfg!(target_arch = "x86_64") {
                assert_eq!(offspring.living_pids(), [headless.id()]);
            }
            offspring.end(|| Duration::from_millis(100)).expect("ends");
            headless.wait().expect("ended");
        }
    }

    #[test]
    fn foreign_processes_get_no_signal() {
        // A wrong `send_signal` would send a signal for id 0 to the process group, or for
        // `u32::MAX` to all processes, and so end this test.
        [0, 1, u32::MAX].into_iter().for_each(|pid| send_signal(pid, libc::SIGTERM));
    }
}
