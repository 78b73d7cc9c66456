//! The user's wish to stop (^C, SIGTERM), as a flag.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
/// The process group that must not outlive this process; 0: none.
static GROUP: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_interrupt(signal: libc::c_int) {
    // Only an atomic and, on the third wish, an immediate end: both are safe in a signal handler.
    if INTERRUPTS.fetch_add(1, Ordering::Relaxed) >= 2 {
        let group = GROUP.load(Ordering::Relaxed);
        if group > 1 {
            // SAFETY: kill is async-signal-safe and takes no memory.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// From now on SIGINT and SIGTERM are counted instead of ending the process; the third one ends it at once.
pub fn catch_interrupts() {
    // SAFETY: all-zero bytes are a valid sigaction; the handler has the right signature and is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as *const () as usize;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
    }
}

/// Names the process group that an immediate end takes with it; `None`: none any more.
pub fn end_with_us(group: Option<u32>) {
    let group = group.and_then(|group| i32::try_from(group).ok()).unwrap_or(0);
    GROUP.store(group, Ordering::Relaxed);
}

/// Whether the user has asked to stop.
#[inline]
pub fn interrupted() -> bool {
    INTERRUPTS.load(Ordering::Relaxed) > 0
}

/// From now on a file that grows beyond the limit on its size (`ulimit -f`) is an error of the write, as a full disk is,
/// instead of the end of the process.
pub fn survive_file_size_limit() {
    // SAFETY: ignoring a signal needs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
