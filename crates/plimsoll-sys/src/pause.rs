//! A handle to another process, whose id cannot be reused meanwhile, to stop and resume it
//! ([`Pausable`]).
//!
//! Not here: which process, when, and the guarantee that it resumes.

use crate::check;
use crate::probe::process::look_at;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A process that can be stopped and go on.
pub struct Pausable {
    process: OwnedFd,
    pid: u32,
}

impl Pausable {
    /// Holds the process of this number that was started at that time (`started_ticks` of its
    /// stat). An error where it has ended, another one has its number, or the kernel is older than
    /// Linux 5.3.
    pub fn hold(pid: u32, started_ticks: u64) -> io::Result<Pausable> {
        let number = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: takes numbers and no memory; the result is a descriptor that no other code owns.
        let process = unsafe {
            let fd = check(libc::syscall(libc::SYS_pidfd_open, number, 0) as i32).map_err(or_ended)?;
            OwnedFd::from_raw_fd(fd)
        };
        // Looked at after it is held: from here on the number cannot become another's unseen.
        let (stat, _) = look_at(pid, &mut Vec::new())?;
        match stat.started_ticks == started_ticks && !stat.has_ended() {
            true => Ok(Pausable { process, pid }),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops it, with all its threads.
    pub fn stop(&self) -> io::Result<()> {
        self.send(libc::SIGSTOP)
    }

    /// Lets it go on; nothing happens to one that was not stopped.
    pub fn go_on(&self) -> io::Result<()> {
        self.send(libc::SIGCONT)
    }

    /// Asks it to come to its end, as ^C does.
    pub fn interrupt(&self) -> io::Result<()> {
        self.send(libc::SIGINT)
    }

    fn send(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: no memory is passed; the descriptor is open for as long as this lives.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.process.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        check(sent as i32)?;
        Ok(())
    }
}

/// A process that is not there is not found.
fn or_ended(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ESRCH) { io::ErrorKind::NotFound.into() } else { error }
}

/// The user on whose behalf this process acts.
pub fn own_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
