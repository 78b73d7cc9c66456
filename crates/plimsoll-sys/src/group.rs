//! Children and what they start: ending them whole, by group and by descent, and the CPU time that they use.

use crate::probe::listener;
use crate::probe::process::{CpuClock, Stat, look_at, numbers_in};
use std::collections::BTreeSet;
use std::io;

/// How a group is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It may clean up (SIGTERM).
    Ask,
    /// At once (SIGKILL).
    Force,
}

impl End {
    fn signal(self) -> libc::c_int {
        match self {
            End::Ask => libc::SIGTERM,
            End::Force => libc::SIGKILL,
        }
    }
}

/// Sends the wish to end to every process of a group. That there is none any more is no error.
pub fn end(group: u32, how: End) -> io::Result<()> {
    match send(group, how.signal()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// Whether any process of a group still runs (one that has ended and was not waited for does not).
pub fn alive(group: u32) -> bool {
    members(group).next().is_some()
}

/// From now on, a process below this one whose parent ends becomes this one's own child: so nothing that a child starts
/// can leave the family, whatever sessions and groups it makes.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this prctl takes a number and no memory.
    crate::check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    Ok(())
}

/// What came below this process since a moment. Whole only after [`adopt_orphans`].
pub struct Offspring {
    /// What was below it before.
    before: BTreeSet<u32>,
}

impl Offspring {
    /// From now on.
    pub fn since_now() -> Offspring {
        Offspring { before: below_this().map(|stat| stat.pid).collect() }
    }

    fn all(&self) -> impl Iterator<Item = Stat> {
        below_this().filter(|stat| !self.before.contains(&stat.pid))
    }

    /// Those that have not ended.
    pub fn living(&self) -> Vec<u32> {
        self.all().filter(|stat| !stat.has_ended()).map(|stat| stat.pid).collect()
    }

    /// Sends the wish to end to each that is not of `group`, which is ended as a whole.
    pub fn end_strays(&self, group: u32, how: End) {
        for stat in self.all().filter(|stat| stat.group != group && !stat.has_ended()) {
            if let Ok(pid) = libc::pid_t::try_from(stat.pid) {
                // SAFETY: no memory is passed; the process is below this one. That it has ended meanwhile is no error.
                unsafe { libc::kill(pid, how.signal()) };
            }
        }
    }

    /// Waits for those that have ended and became this process's own, but not for `child`, for which somebody else waits.
    pub fn reap(&self, child: u32) {
        for stat in self.all().filter(|s| s.state == b'Z' && s.parent == std::process::id() && s.pid != child) {
            if let Ok(pid) = libc::pid_t::try_from(stat.pid) {
                // SAFETY: the status is not asked for; WNOHANG never blocks.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
            }
        }
    }
}

/// The processes `roots` and all below them, without the branch of `without`; those that have ended and were not waited
/// for among them.
fn family(roots: &[u32], without: u32) -> Vec<Stat> {
    let all = listener::processes().unwrap_or_default();
    let parents = all.iter().map(|(pid, (stat, _))| (*pid, stat.parent)).collect();
    listener::families(roots, without, &parents).iter().filter_map(|pid| all.get(pid).map(|(stat, _)| *stat)).collect()
}

/// All processes below this one.
fn below_this() -> impl Iterator<Item = Stat> {
    let me = std::process::id();
    family(&[me], 0).into_iter().filter(move |stat| stat.pid != me)
}

/// The CPU clocks of some processes. Reading them is cheap; finding the processes is not.
pub struct CpuClocks(Vec<CpuClock>);

impl CpuClocks {
    /// Of these processes, as far as they still are.
    pub fn of(pids: &[u32]) -> CpuClocks {
        CpuClocks(pids.iter().filter_map(|pid| CpuClock::of(*pid).ok()).collect())
    }

    /// Of the processes `roots` and all their descendants that live now, but for this process and its own.
    pub fn below(roots: &[u32]) -> CpuClocks {
        let family = family(roots, std::process::id());
        CpuClocks::of(&family.iter().map(|stat| stat.pid).collect::<Vec<_>>())
    }

    /// Whether there is no process.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// CPU time in ns that the processes have used so far, with all their threads; of those that still live, or ended and
    /// were not waited for.
    pub fn cpu_ns(&self) -> u64 {
        self.0.iter().filter_map(|clock| clock.read_ns().ok()).sum()
    }
}

fn send(group: u32, signal: libc::c_int) -> io::Result<()> {
    let group = i32::try_from(group).ok().filter(|group| *group > 1);
    let group = group.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: no memory is passed; the group is not our own (0) and not everybody (1).
    crate::check(unsafe { libc::kill(-group, signal) })?;
    Ok(())
}

/// The processes of a group that have not ended.
fn members(group: u32) -> impl Iterator<Item = u32> {
    let mut buffer = Vec::new();
    numbers_in("/proc")
        .unwrap_or_default()
        .into_iter()
        .filter(move |pid| look_at(*pid, &mut buffer).is_ok_and(|(stat, _)| stat.group == group && !stat.has_ended()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Waits for what must come true soon.
    fn soon(what: &str, mut check: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !check() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_group_is_seen_and_ended_whole() {
        // A shell with a child that works, in a group of their own.
        let script = "(while :; do :; done) & wait";
        let mut shell = Command::new("sh").args(["-c", script]).process_group(0).spawn().expect("sh starts");
        let group = shell.id();
        soon("both run", || members(group).count() == 2);
        let clocks = CpuClocks::of(&members(group).collect::<Vec<_>>());
        let before = clocks.cpu_ns();
        soon("the child works", || clocks.cpu_ns() > before + 10_000_000);
        end(group, End::Ask).expect("asked");
        shell.wait().expect("ends");
        soon("the whole group ends", || !alive(group));
        // The clocks of before may go on to be read: an orphan that ended has one until somebody has waited for it.
        assert_eq!(members(group).count(), 0);
        end(group, End::Force).expect("nobody is left, which is what was wanted");
    }

    #[test]
    fn nobody_elses_group_is_touched() {
        assert!(end(0, End::Force).is_err() && end(1, End::Force).is_err() && end(u32::MAX, End::Force).is_err());
    }
}
