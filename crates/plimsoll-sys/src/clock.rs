//! Reads the monotonic clock, which all measurements use, and the clocks of CPU time.

#[inline]
fn read_clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid memory for a timespec. Every Linux has the clocks that this module
    // reads, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the monotonic time since an arbitrary point, ns (CLOCK_MONOTONIC). A call takes about 20
/// ns, through the vDSO.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time that the calling thread has used so far, ns.
pub fn thread_cpu_ns() -> u64 {
    read_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time that this process has used so far, ns.
pub fn process_cpu_ns() -> u64 {
    read_clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sets how late timers of the calling thread may expire, in ns (timer slack; the default is 50
/// us).
pub fn set_timer_slack_ns(slack_ns: u64) {
    // SAFETY: no memory is passed. If the kernel refuses the call, the default timer slack stays in
    // force, which is harmless.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong, 0, 0, 0) };
}

/// Yields the core to another runnable thread, if there is one.
#[inline]
pub fn yield_core() {
    // SAFETY: the call takes no arguments, and always succeeds on Linux.
    unsafe { libc::sched_yield() };
}
