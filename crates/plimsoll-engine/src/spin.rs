//! Decides whether an idle worker sleeps or polls for events.
//!
//! A sleeping thread wakes about 50 us after a response arrived, and this delay would count as
//! latency of the server. If a core is idle, the worker polls for a bounded time instead of
//! sleeping, to avoid the delay of a wake-up. The worker stops polling as soon as another thread
//! needs the core. A poll that takes far longer than a system call shows that another thread used
//! the core.

use crate::net::WaitMode;
use plimsoll_model::Spin;

/// The time for which a worker continues to poll after its last event, ns.
const POLL_AFTER_EVENT_NS: u64 = 2_000_000;
/// The time before a known deadline at which a sleep ends, ns. A wake-up usually takes less than
/// this time, so the worker is awake at the deadline.
const WAKE_EARLY_NS: u64 = 120_000;
/// The maximum duration of an uninterrupted poll, ns. A longer poll shows that another thread used
/// the core.
const UNINTERRUPTED_POLL_NS_MAX: u64 = 20_000;
/// The length of the window in which stolen time is summed, ns. Stolen time is the time in which
/// the worker lost its core.
const WINDOW_NS: u64 = 10_000_000;
/// The stolen time per window, ns, above which the worker concludes that another thread needs the
/// core. Interrupts and hypervisors take less than a fifth of the window.
const STOLEN_NS_MAX: u64 = WINDOW_NS / 5;
/// The shortest and the longest back-off, ns. During a back-off the worker sleeps instead of
/// polling. Each further back-off is twice as long, up to the maximum.
const BACKOFF_MIN_NS: u64 = 20_000_000;
const BACKOFF_MAX_NS: u64 = 640_000_000;

/// Decides for one worker whether to poll or to sleep.
#[derive(Debug)]
pub struct SpinPolicy {
    mode: Spin,
    last_event_ns: u64,
    stolen_ns: u64,
    window_start_ns: u64,
    sleep_until_ns: u64,
    backoff_ns: u64,
}

impl SpinPolicy {
    /// Creates the policy of one worker. `spare_core` is true if this process may use more cores
    /// than it has workers.
    pub fn new(mode: Spin, spare_core: bool) -> SpinPolicy {
        let mode = if mode == Spin::Auto && !spare_core { Spin::Off } else { mode };
        SpinPolicy {
            mode,
            last_event_ns: 0,
            stolen_ns: 0,
            window_start_ns: 0,
            sleep_until_ns: 0,
            backoff_ns: BACKOFF_MIN_NS,
        }
    }

    /// Returns how the worker should wait at `now_ns` until the next deadline at `due_ns`.
    /// `expecting` is true if requests are in flight.
    #[inline]
    pub fn choose_wait(&self, now_ns: u64, due_ns: u64, expecting: bool) -> WaitMode {
        if due_ns <= now_ns {
            return WaitMode::Poll;
        }
        match self.mode {
            Spin::On => WaitMode::Poll,
            Spin::Off => WaitMode::Until(due_ns),
            Spin::Auto if now_ns < self.sleep_until_ns => WaitMode::Until(due_ns),
            Spin::Auto => {
                let soon = due_ns - now_ns < WAKE_EARLY_NS;
                if soon || (expecting && now_ns - self.last_event_ns < POLL_AFTER_EVENT_NS) {
                    WaitMode::Poll
                } else {
                    WaitMode::Until(due_ns - WAKE_EARLY_NS)
                }
            }
        }
    }

    /// Records the beginning and end of a wait, and whether the wait returned events. Returns true
    /// if the wait was a poll that returned no event, while no other thread wanted the core.
    #[inline]
    pub fn record_wait(&mut self, wait: WaitMode, began_ns: u64, ended_ns: u64, events: bool) -> bool {
        if events {
            self.last_event_ns = ended_ns;
        }
        let given_away = ended_ns - began_ns > UNINTERRUPTED_POLL_NS_MAX;
        if wait == WaitMode::Poll && given_away {
            self.count_stolen_time(ended_ns, ended_ns - began_ns);
        }
        wait == WaitMode::Poll && !events && !given_away
    }

    #[cold]
    fn count_stolen_time(&mut self, now_ns: u64, stolen_ns: u64) {
        if now_ns - self.window_start_ns > WINDOW_NS {
            // After a long time without a back-off (a period in which the worker sleeps), the next
            // back-off has its minimum length again.
            if now_ns.saturating_sub(self.sleep_until_ns) > BACKOFF_MAX_NS {
                self.backoff_ns = BACKOFF_MIN_NS;
            }
            self.window_start_ns = now_ns;
            self.stolen_ns = 0;
        }
        self.stolen_ns += stolen_ns;
        if self.stolen_ns > STOLEN_NS_MAX {
            self.stolen_ns = 0;
            self.sleep_until_ns = now_ns + self.backoff_ns;
            self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_MAX_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spin_modes_choose_between_sleep_and_poll() {
        for (mode, spare, expect) in [
            (Spin::Off, true, WaitMode::Until(9_000_000)),
            (Spin::On, false, WaitMode::Poll),
            (Spin::Auto, false, WaitMode::Until(9_000_000)),
            (Spin::Auto, true, WaitMode::Poll),
        ] {
            let spinner = SpinPolicy::new(mode, spare);
            assert_eq!(spinner.choose_wait(1_000_000, 9_000_000, true), expect, "{mode:?} {spare}");
        }
        let spinner = SpinPolicy::new(Spin::Auto, true);
        assert_eq!(spinner.choose_wait(1_000_000, 9_000_000, false), WaitMode::Until(9_000_000 - WAKE_EARLY_NS));
        assert_eq!(spinner.choose_wait(5_000_000, 9_000_000, true), WaitMode::Until(9_000_000 - WAKE_EARLY_NS));
        assert_eq!(spinner.choose_wait(8_950_000, 9_000_000, false), WaitMode::Poll);
        assert_eq!(SpinPolicy::new(Spin::Off, true).choose_wait(9, 9, false), WaitMode::Poll);
    }

    #[test]
    fn idle_polls_are_recognised() {
        let mut spinner = SpinPolicy::new(Spin::On, true);
        for (wait, took_ns, events, in_vain) in [
            (WaitMode::Poll, 500, false, true),
            (WaitMode::Poll, UNINTERRUPTED_POLL_NS_MAX, false, true),
            (WaitMode::Poll, UNINTERRUPTED_POLL_NS_MAX + 1, false, false),
            (WaitMode::Poll, 500, true, false),
            (WaitMode::Until(2_000_000), 500, false, false),
        ] {
            let found = spinner.record_wait(wait, 1_000_000, 1_000_000 + took_ns, events);
            assert_eq!(found, in_vain, "{wait:?} {took_ns} {events}");
        }
    }

    #[test]
    fn spinning_yields_a_contended_core_and_resumes_later() {
        let mut spinner = SpinPolicy::new(Spin::Auto, true);
        let mut now = 1_000_000_000;
        let steal = |spinner: &mut SpinPolicy, now: &mut u64, ns: u64| {
            spinner.record_wait(WaitMode::Poll, *now, *now + ns, true);
            *now += ns;
        };
        (0..20).for_each(|_| steal(&mut spinner, &mut now, 60_000));
        assert_eq!(spinner.choose_wait(now, now + 1_000_000, true), WaitMode::Poll, "interrupts are no need");
        steal(&mut spinner, &mut now, 3_000_000);
        assert_eq!(
            spinner.choose_wait(now, now + 1_000_000, true),
            WaitMode::Until(now + 1_000_000),
            "a time slice is"
        );
        now += BACKOFF_MIN_NS;
        spinner.record_wait(WaitMode::Poll, now, now + 500, true);
        now += 500;
        assert_eq!(spinner.choose_wait(now, now + 1_000_000, true), WaitMode::Poll);
        steal(&mut spinner, &mut now, 3_000_000);
        assert_eq!(
            spinner.choose_wait(now + BACKOFF_MIN_NS, now + BACKOFF_MAX_NS, true),
            WaitMode::Until(now + BACKOFF_MAX_NS),
            "longer the second time"
        );
    }
}
