//! Detects functions of a script that do not end. Each call is recorded when it begins and ends,
//! and another thread checks the records. The checks by another thread also detect endless loops in
//! C and in compiled code, which LuaJIT never interrupts. The checks by another thread also detect
//! a function that waits endlessly for another process. Recording a call costs three writes to
//! memory.
//!
//! Not here: the clock, the time limit, and the reaction to a hung function. A function that hangs
//! cannot be stopped, only abandoned.

use crate::failure::HookName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Records the beginnings and ends of calls in one Lua state.
#[derive(Debug, Default)]
pub(crate) struct CallProgress {
    /// The number of beginnings and ends of calls recorded so far; odd while a function runs.
    begin_end_count: AtomicU64,
    hook: AtomicU8,
}

impl CallProgress {
    /// Records that a call of a function begins.
    #[inline]
    pub(crate) fn begin(&self, hook: HookName) {
        self.hook.store(hook as u8, Ordering::Relaxed);
        self.count_begin_or_end();
    }

    /// Records that the current call has ended.
    #[inline]
    pub(crate) fn end(&self) {
        self.count_begin_or_end();
    }

    // Only one thread writes the counter at a time, so no atomic read-modify-write is needed.
    #[inline]
    fn count_begin_or_end(&self) {
        self.begin_end_count.store(self.begin_end_count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// Checks whether the functions of a script end.
#[derive(Debug)]
pub struct HungCallWatch {
    states: Vec<WatchedLuaState>,
}

#[derive(Debug)]
struct WatchedLuaState {
    call_progress: Arc<CallProgress>,
    /// The number of beginnings and ends of calls that was recorded at the last check.
    last_begin_end_count: u64,
    /// The time of the last check that found a new count, or no running function, ns.
    since_ns: u64,
    is_given_up: bool,
}

/// A function that has run for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HungFunction {
    /// The number of the thread that runs the function, from 0; `None` for the main Lua state,
    /// which runs `setup` and `done`.
    pub thread: Option<usize>,
    /// The script function that has not returned.
    pub hook: HookName,
}

impl HungCallWatch {
    /// Creates a watch over Lua states. `pulses` has the call record of each Lua state, beginning
    /// with the main Lua state.
    pub(crate) fn new(pulses: impl Iterator<Item = Arc<CallProgress>>) -> HungCallWatch {
        HungCallWatch {
            states: pulses
                .map(|call_progress| WatchedLuaState {
                    call_progress,
                    last_begin_end_count: 0,
                    since_ns: 0,
                    is_given_up: false,
                })
                .collect(),
        }
    }

    /// Returns a function that has run for at least `limit_ns`. The caller must call this method
    /// several times within `limit_ns`, because the running time of a function is measured from
    /// check to check.
    pub fn find_hung_function(&mut self, now_ns: u64, limit_ns: u64) -> Option<HungFunction> {
        let mut found = None;
        for (number, state) in self.states.iter_mut().enumerate().filter(|(_, state)| !state.is_given_up) {
            let beats = state.call_progress.begin_end_count.load(Ordering::Acquire);
            if beats != state.last_begin_end_count || beats % 2 == 0 {
                (state.last_begin_end_count, state.since_ns) = (beats, now_ns);
            } else if now_ns.saturating_sub(state.since_ns) >= limit_ns {
                let hook =
                    HookName::ALL[usize::from(state.call_progress.hook.load(Ordering::Relaxed)) % HookName::ALL.len()];
                // The main Lua state waits while it calls a function in another Lua state, so the
                // other state is reported.
                found = Some(HungFunction { thread: number.checked_sub(1), hook });
            }
        }
        found
    }

    /// Marks a hung function as known, so that the watch does not report the function again.
    pub fn stop_reporting(&mut self, hanging: HungFunction) {
        self.states[hanging.thread.map_or(0, |thread| thread + 1)].is_given_up = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_functions_count_as_hung() {
        let pulses: Vec<Arc<CallProgress>> = (0..3).map(|_| Arc::default()).collect();
        let mut watch = HungCallWatch::new(pulses.iter().cloned());
        assert_eq!(watch.find_hung_function(5, 10), None);
        pulses[2].begin(HookName::Response);
        assert_eq!(watch.find_hung_function(10, 10), None);
        assert_eq!(watch.find_hung_function(19, 10), None);
        assert_eq!(watch.find_hung_function(20, 10), Some(HungFunction { thread: Some(1), hook: HookName::Response }));
        // A function marked as known is not reported again.
        let mut other = HungCallWatch::new(pulses.iter().cloned());
        assert_eq!(other.find_hung_function(0, 10), None);
        let hanging = other.find_hung_function(10, 10).expect("the same");
        other.stop_reporting(hanging);
        assert_eq!(other.find_hung_function(99, 10), None);
        // A later call of the same function is measured from its own beginning.
        pulses[2].end();
        pulses[2].begin(HookName::Response);
        assert_eq!(watch.find_hung_function(40, 10), None);
        pulses[2].end();
        assert_eq!((watch.find_hung_function(60, 10), watch.find_hung_function(90, 10)), (None, None));
        pulses[0].begin(HookName::Done);
        assert_eq!(watch.find_hung_function(91, 10), None);
        assert_eq!(watch.find_hung_function(101, 10), Some(HungFunction { thread: None, hook: HookName::Done }));
    }
}
