//! Whether a script comes to an end: each call of one of its functions is noted when it begins and
//! when it ends, and somebody else looks. So a loop without end is seen wherever it hangs: in
//! compiled code, which LuaJIT never interrupts, in C, or in a process that the script waits for.
//! Costs two writes a call.
//!
//! Not here: the clock, how long is too long, and what is done about it; a function that hangs can
//! only be left where it is.

use crate::failure::HookName;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Beginnings and ends of one state's calls.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Odd while a function is at work.
    beats: AtomicU64,
    hook: AtomicU8,
}

impl Pulse {
    /// A function begins.
    #[inline]
    pub(crate) fn begin(&self, hook: HookName) {
        self.hook.store(hook as u8, Ordering::Relaxed);
        self.beat();
    }

    /// It has ended.
    #[inline]
    pub(crate) fn end(&self) {
        self.beat();
    }

    // One thread writes at a time: no read-modify-write is needed.
    #[inline]
    fn beat(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// Looks whether the functions of a script end.
#[derive(Debug)]
pub struct PulseWatch {
    states: Vec<WatchedPulse>,
}

#[derive(Debug)]
struct WatchedPulse {
    pulse: Arc<Pulse>,
    /// How many beats there were, and since when it is so many, ns.
    beats: u64,
    since_ns: u64,
    is_given_up: bool,
}

/// A function that has been at work for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HungFunction {
    /// The thread's number from 0; `None`: the state of `setup` and `done`.
    pub thread: Option<usize>,
    /// The function.
    pub hook: HookName,
}

impl PulseWatch {
    /// The first of `pulses` is the main state's.
    pub(crate) fn new(pulses: impl Iterator<Item = Arc<Pulse>>) -> PulseWatch {
        PulseWatch {
            states: pulses.map(|pulse| WatchedPulse { pulse, beats: 0, since_ns: 0, is_given_up: false }).collect(),
        }
    }

    /// A function that began `limit_ns` ago at least and has not ended; to be asked several times
    /// in that time.
    pub fn hanging(&mut self, now_ns: u64, limit_ns: u64) -> Option<HungFunction> {
        let mut found = None;
        for (number, state) in self.states.iter_mut().enumerate().filter(|(_, state)| !state.is_given_up) {
            let beats = state.pulse.beats.load(Ordering::Acquire);
            if beats != state.beats || beats % 2 == 0 {
                (state.beats, state.since_ns) = (beats, now_ns);
            } else if now_ns.saturating_sub(state.since_ns) >= limit_ns {
                let hook = HookName::ALL[usize::from(state.pulse.hook.load(Ordering::Relaxed)) % HookName::ALL.len()];
                // The main state waits where it calls another: that one is named.
                found = Some(HungFunction { thread: number.checked_sub(1), hook });
            }
        }
        found
    }

    /// What hangs there is known, and not told again.
    pub fn give_up(&mut self, hanging: HungFunction) {
        self.states[hanging.thread.map_or(0, |thread| thread + 1)].is_given_up = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_end_hangs() {
        let pulses: Vec<Arc<Pulse>> = (0..3).map(|_| Arc::default()).collect();
        let mut watch = PulseWatch::new(pulses.iter().cloned());
        assert_eq!(watch.hanging(5, 10), None);
        pulses[2].begin(HookName::Response);
        assert_eq!(watch.hanging(10, 10), None);
        assert_eq!(watch.hanging(19, 10), None);
        assert_eq!(watch.hanging(20, 10), Some(HungFunction { thread: Some(1), hook: HookName::Response }));
        // Known, it is not told again.
        let mut other = PulseWatch::new(pulses.iter().cloned());
        assert_eq!(other.hanging(0, 10), None);
        let hanging = other.hanging(10, 10).expect("the same");
        other.give_up(hanging);
        assert_eq!(other.hanging(99, 10), None);
        // Another call of the same function.
        pulses[2].end();
        pulses[2].begin(HookName::Response);
        assert_eq!(watch.hanging(40, 10), None);
        pulses[2].end();
        assert_eq!((watch.hanging(60, 10), watch.hanging(90, 10)), (None, None));
        pulses[0].begin(HookName::Done);
        assert_eq!(watch.hanging(91, 10), None);
        assert_eq!(watch.hanging(101, 10), Some(HungFunction { thread: None, hook: HookName::Done }));
    }
}
