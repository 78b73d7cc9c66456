//! Process groups of children: ending them whole, and the CPU time that they used.

use crate::probe::process::{CpuClock, look_at, numbers_in};
use std::io;

/// How a group is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It may clean up (SIGTERM).
    Ask,
    /// At once (SIGKILL).
    Force,
}

/// Sends the wish to end to every process of a group. That there is none any more is no error.
pub fn end(group: u32, how: End) -> io::Result<()> {
    let signal = match how {
        End::Ask => libc::SIGTERM,
        End::Force => libc::SIGKILL,
    };
    match send(group, signal) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// Whether any process of a group still runs (one that has ended and was not waited for does not).
pub fn alive(group: u32) -> bool {
    members(group).next().is_some()
}

/// The CPU clocks of the processes that a group has now. Reading them is cheap; finding them is not.
pub struct CpuClocks(Vec<CpuClock>);

impl CpuClocks {
    /// Of the processes that live now; later ones are not seen.
    pub fn of(group: u32) -> CpuClocks {
        CpuClocks(members(group).filter_map(|pid| CpuClock::of(pid).ok()).collect())
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
    numbers_in("/proc").unwrap_or_default().into_iter().filter(move |pid| {
        look_at(*pid, &mut buffer).is_ok_and(|(stat, _)| stat.group == group && !matches!(stat.state, b'Z' | b'X'))
    })
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
        let clocks = CpuClocks::of(group);
        let before = clocks.cpu_ns();
        soon("the child works", || clocks.cpu_ns() > before + 10_000_000);
        end(group, End::Ask).expect("asked");
        shell.wait().expect("ends");
        soon("the whole group ends", || !alive(group));
        // The clocks of before may go on to be read: an orphan that ended has one until somebody has waited for it.
        assert_eq!(CpuClocks::of(group).cpu_ns(), 0);
        end(group, End::Force).expect("nobody is left, which is what was wanted");
    }

    #[test]
    fn nobody_elses_group_is_touched() {
        assert!(end(0, End::Force).is_err() && end(1, End::Force).is_err() && end(u32::MAX, End::Force).is_err());
    }
}
