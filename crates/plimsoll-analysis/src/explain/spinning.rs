//! Functions in which a thread works only because another holds a lock, by name: it looks again and again, or goes through the slow part
//! of taking it. What sleeps until the lock is free takes no CPU time, and is seen otherwise (what threads wait in).
//!
//! Taking a lock that is free is not waiting, but cannot be told from it where both are one function; a quarter of all CPU time is
//! waiting in any case.

/// Whole names, of C and C++.
const NAMES: &[&str] = &[
    "pthread_spin_lock",
    "__pthread_spin_lock",
    "pthread_mutex_lock",
    "__pthread_mutex_lock",
    "___pthread_mutex_lock",
    "__lll_lock_wait",
    "__lll_lock_wait_private",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    // Go's own locks, and those of its programs.
    "runtime.lock2",
    "runtime.procyield",
    "runtime.procyieldAsm",
];
/// Beginnings of names: Go, Rust, the JVM, V8's and others' spin locks.
const BEGINNINGS: &[&str] = &[
    "sync.(*Mutex).lockSlow",
    "sync.(*Mutex).unlockSlow",
    "internal/sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).unlockSlow",
    "sync.runtime_doSpin",
    "std::sys::sync::mutex::futex::Mutex::lock_contended",
    "std::sys::sync::mutex::futex::Mutex::spin",
    "parking_lot::raw_mutex::RawMutex::lock_slow",
    "parking_lot_core::spinwait",
    "spin::",
    "ObjectMonitor::enter",
    "ObjectMonitor::TrySpin",
    "ObjectMonitor::try_spin",
    "SpinLock::",
    "absl::base_internal::SpinLock",
    "tbb::spin_mutex",
];

/// Whether a stack, the function that ran first, waits for a lock.
pub fn is_spinning(stack: &[&str]) -> bool {
    stack.iter().any(|name| NAMES.contains(name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_told_from_work() {
        for (stack, expect) in [
            ("pthread_spin_lock;serve", true),
            ("runtime.procyield;sync.(*Mutex).lockSlow;main.serve", true),
            ("parking_lot::raw_mutex::RawMutex::lock_slow;main", true),
            ("sync.(*Mutex).Lock;main.serve", false),
            ("main.lock2", false),
            ("[kernel];write", false),
            ("", false),
        ] {
            assert_eq!(is_spinning(&stack.split(';').collect::<Vec<_>>()), expect, "{stack}");
        }
    }
}
