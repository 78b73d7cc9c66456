//! A handle to stop and resume another process ([`ProcessHandle`]). A signal through the
//! handle never reaches another process that reuses the process id.
//!
//! Not here: which process is stopped and when, and the guarantee that a stopped process resumes.

use crate::error_if_negative;
use crate::probe::process::read_process_stat;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A handle to a process that can be stopped and resumed.
pub struct ProcessHandle {
    process: OwnedFd,
    pid: u32,
}

impl ProcessHandle {
    /// Opens a handle to the process with this id and this start time, in ticks since the machine
    /// started (`Stat::started_ticks`). Fails if the process has ended, if another process has the
    /// id now, or if the kernel is older than Linux 5.3.
    pub fn open_process(pid: u32, started_ticks: u64) -> io::Result<ProcessHandle> {
        let number = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the call takes numbers and no memory; its result is a descriptor that no other
        // code owns.
        let process = unsafe {
            let fd =
                error_if_negative(libc::syscall(libc::SYS_pidfd_open, number, 0) as i32).map_err(ended_as_not_found)?;
            OwnedFd::from_raw_fd(fd)
        };
        // The start time is checked after the handle is open. An open handle always means the same
        // process, so a handle that passes the check is valid even if the id is reused later.
        let (stat, _) = read_process_stat(pid, &mut Vec::new())?;
        match stat.started_ticks == started_ticks && !stat.has_ended() {
            true => Ok(ProcessHandle { process, pid }),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops the process with all its threads (SIGSTOP).
    pub fn stop(&self) -> io::Result<()> {
        self.send(libc::SIGSTOP)
    }

    /// Resumes the process (SIGCONT). A process that was not stopped is not affected.
    pub fn resume(&self) -> io::Result<()> {
        self.send(libc::SIGCONT)
    }

    /// Asks the process to end, as ^C does (SIGINT).
    pub fn interrupt(&self) -> io::Result<()> {
        self.send(libc::SIGINT)
    }

    fn send(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: no memory is passed; the descriptor is open for as long as `self` lives.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.process.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        error_if_negative(sent as i32)?;
        Ok(())
    }
}

/// Converts the error "no such process" of a system call to "not found".
fn ended_as_not_found(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ESRCH) { io::ErrorKind::NotFound.into() } else { error }
}

/// Returns the effective user id of this process.
pub fn own_user() -> u32 {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { libc::geteuid() }
}
