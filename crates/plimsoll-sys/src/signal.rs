//! Records the user's request to stop (^C, SIGTERM, SIGHUP, SIGQUIT) in a flag.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

static STOP_SIGNAL_COUNT: AtomicU32 = AtomicU32::new(0);
/// The number of the first signal that asked to stop; 0 means none.
static FIRST_STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The microseconds of the delay before the process is forced to exit. The whole delay is
/// [`FORCED_EXIT_DELAY_S`] seconds plus [`FORCED_EXIT_DELAY_SUBSECOND_US`] microseconds. The delay
/// starts at the first SIGTERM, SIGHUP or SIGQUIT, or at the second stop signal of any kind.
const FORCED_EXIT_DELAY_SUBSECOND_US: libc::suseconds_t = 300_000;
/// The whole seconds of the delay before the process is forced to exit; see
/// [`FORCED_EXIT_DELAY_SUBSECOND_US`].
const FORCED_EXIT_DELAY_S: libc::time_t = 1;

/// The signals that ask the process to stop, with time to end its work in an orderly way.
const GRACEFUL_STOP_SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn on_stop_signal(signal: libc::c_int) {
    // The handler uses only atomics, a timer and, at the third signal, an immediate end, which are
    // all safe in a signal handler.
    let _ = FIRST_STOP_SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    let before = STOP_SIGNAL_COUNT.fetch_add(1, Ordering::Relaxed);
    if before >= 2 {
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
    if before == 1 || signal != libc::SIGINT {
        let leave = libc::timeval { tv_sec: FORCED_EXIT_DELAY_S, tv_usec: FORCED_EXIT_DELAY_SUBSECOND_US };
        let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let once = libc::itimerval { it_interval: never, it_value: leave };
        // SAFETY: a plain system call with a valid value.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &once, std::ptr::null_mut()) };
    }
}

extern "C" fn exit_on_stop_timeout(_: libc::c_int) {
    // SAFETY: _exit is async-signal-safe and does not return.
    unsafe { libc::_exit(128 + FIRST_STOP_SIGNAL.load(Ordering::Relaxed)) };
}

extern "C" fn exit_on_stop_signal(signal: libc::c_int) {
    // SAFETY: _exit is async-signal-safe and does not return.
    unsafe { libc::_exit(128 + signal) };
}

extern "C" fn ignore_signal(_: libc::c_int) {}

/// Makes a signal end the process from now on. The first process of a container needs a handler
/// that ends the process, because the kernel drops signals to this process that have no handler.
fn end_on_signal(signal: libc::c_int) {
    if std::process::id() == 1 {
        return set_signal_handler(signal, exit_on_stop_signal, 0);
    }
    // SAFETY: all-zero bytes are a valid sigaction, the default one.
    unsafe {
        let action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Sets the handler of a signal. A SIGHUP that `nohup` made the process ignore stays ignored.
fn set_signal_handler(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: all-zero bytes are a valid sigaction; the handler has the right signature and is
    // async-signal-safe.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut before);
        if signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT set the stop flag instead of ending the process. The
/// third stop signal ends the process at once. A second ^C (SIGINT), or a first SIGTERM, SIGHUP or
/// SIGQUIT, ends the process within two seconds.
pub fn catch_stop_signals() {
    set_signal_handler(libc::SIGALRM, exit_on_stop_timeout, 0);
    GRACEFUL_STOP_SIGNALS.into_iter().for_each(|signal| set_signal_handler(signal, on_stop_signal, 0));
}

/// Undoes [`catch_stop_signals`]: after this call, each stop signal ends the process at once.
/// Plimsoll calls this function when all measurements are stored.
pub fn restore_stop_signals() {
    for signal in GRACEFUL_STOP_SIGNALS {
        // SAFETY: all-zero bytes are a valid sigaction, the default one.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction == on_stop_signal as *const () as usize {
                end_on_signal(signal);
            }
        }
    }
}

/// Makes this process ignore the stop signals, and the signals SIGUSR1, SIGUSR2 and SIGALRM. The
/// child processes of this process handle the ignored signals as usual.
pub fn ignore_user_signals() {
    for signal in GRACEFUL_STOP_SIGNALS.into_iter().chain([libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM]) {
        set_signal_handler(signal, ignore_signal, libc::SA_RESTART);
    }
}

/// Makes a stop signal end the process at once, for processes without cleanup. The stop signal ends
/// the process even if the parent process had ignored the signal, as shells do for background jobs.
/// A stop signal also ends the first process of a container. A SIGHUP that `nohup` made the process
/// ignore stays ignored.
pub fn end_at_once_on_stop_signals() {
    for signal in GRACEFUL_STOP_SIGNALS {
        // SAFETY: all-zero bytes are a valid sigaction, the default one.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            let is_ignored = before.sa_sigaction == libc::SIG_IGN;
            if !is_ignored && std::process::id() == 1 || is_ignored && signal != libc::SIGHUP {
                end_on_signal(signal);
            }
        }
    }
}

/// Whether the stop was requested by the closing of the terminal (SIGHUP).
pub fn is_terminal_closed() -> bool {
    FIRST_STOP_SIGNAL.load(Ordering::Relaxed) == libc::SIGHUP
}

/// Whether the stop was requested by SIGTERM, and not by ^C.
pub fn is_stopped_by_sigterm() -> bool {
    FIRST_STOP_SIGNAL.load(Ordering::Relaxed) == libc::SIGTERM
}

/// Whether the user has asked to stop.
#[inline]
pub fn is_stop_requested() -> bool {
    STOP_SIGNAL_COUNT.load(Ordering::Relaxed) > 0
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error, like a full disk. By default a
/// write beyond the file size limit ends the process.
pub fn survive_file_size_limit() {
    // SAFETY: ignoring a signal needs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CHILD_PROCESSES;
    use std::process::{Command, Stdio};
    use std::sync::PoisonError;
    use std::time::{Duration, Instant};

    const FIRST_PROCESS_VARIABLE: &str = "PLIMSOLL_TEST_FIRST_PROCESS";

    /// Runs as the first process of a container, which a test starts, and waits for the signal of
    /// the test.
    fn run_as_first_process() -> ! {
        assert_eq!(std::process::id(), 1);
        end_at_once_on_stop_signals();
        println!("ready");
        std::thread::sleep(Duration::from_secs(20));
        std::process::exit(0)
    }

    #[test]
    fn the_first_process_of_a_container_obeys_signals() {
        if std::env::var_os(FIRST_PROCESS_VARIABLE).is_some() {
            run_as_first_process();
        }
        // SAFETY: a plain system call.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("SKIPPED: process namespaces need root: the first process of a container is not tested");
            return;
        }
        let _alone = CHILD_PROCESSES.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "signal::tests::the_first_process_of_a_container_obeys_signals";
        let mut unshare = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child"])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env(FIRST_PROCESS_VARIABLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut output = std::io::BufReader::new(unshare.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            let read = std::io::BufRead::read_line(&mut output, &mut line).expect("read");
            assert!(read > 0, "it ended before it was ready");
        }
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let first = std::fs::read_to_string(children).expect("children").trim().parse().expect("one child");
        let begun = Instant::now();
        // SAFETY: a plain system call, for the process that this test started.
        unsafe { libc::kill(first, libc::SIGTERM) };
        let status = unshare.wait().expect("ends");
        assert!(begun.elapsed() < Duration::from_secs(10), "it went on");
        assert_eq!(status.code(), Some(128 + libc::SIGTERM));
    }
}
