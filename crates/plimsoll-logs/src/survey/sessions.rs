//! Groups requests into sessions: requests of one visitor without a gap of half an hour. Only open
//! sessions are in memory, and a session closes after half an hour without requests.

use super::hashing::HashKeyMap;
use plimsoll_model::Histogram;

/// The time without requests that ends a session, ns.
pub const SESSION_GAP_NS: u64 = 1_800_000_000_000;
/// The interval between searches for ended sessions, ns of log time.
const IDLE_SWEEP_INTERVAL_NS: u64 = 300_000_000_000;
/// The largest number of open sessions. If more sessions are open, the sessions that are inactive
/// for longest are closed early.
const OPEN_SESSIONS_MAX: usize = 1 << 21;

#[derive(Debug, Clone, Copy)]
struct OpenSession {
    requests: u32,
    end_ns: u64,
}

/// The open sessions, and statistics of closed sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    open: HashKeyMap<OpenSession>,
    newest_ns: u64,
    swept_ns: u64,
    closed_early: bool,
    requests: Histogram,
    think_times_ns: Histogram,
}

impl Sessions {
    /// Adds a request of a visitor. A think time lasts from a response to the next request.
    /// Overlapping requests have no think time.
    #[inline]
    pub fn add(&mut self, visitor: u64, start_ns: u64, end_ns: u64) {
        self.newest_ns = self.newest_ns.max(start_ns);
        let open = self.open.entry(visitor).or_insert(OpenSession { requests: 0, end_ns: start_ns });
        let gap_ns = start_ns.saturating_sub(open.end_ns);
        // Several logs of different times may be read in sequence. An entry that ends more than
        // `SESSION_GAP_NS` before the end of the open session is from another log, and begins a new
        // session.
        if gap_ns > SESSION_GAP_NS || end_ns.saturating_add(SESSION_GAP_NS) < open.end_ns {
            self.requests.record(u64::from(open.requests));
            *open = OpenSession { requests: 0, end_ns: start_ns };
        } else if open.requests > 0 && start_ns >= open.end_ns {
            self.think_times_ns.record(gap_ns);
        }
        open.requests = open.requests.saturating_add(1);
        open.end_ns = open.end_ns.max(end_ns);
        if self.newest_ns - self.swept_ns > IDLE_SWEEP_INTERVAL_NS {
            self.swept_ns = self.newest_ns;
            self.close_idle_sessions(SESSION_GAP_NS);
        } else if self.open.len() > OPEN_SESSIONS_MAX {
            self.closed_early = true;
            let mut rest_ns = SESSION_GAP_NS;
            while self.open.len() > OPEN_SESSIONS_MAX / 2 && rest_ns > 0 {
                rest_ns /= 2;
                self.close_idle_sessions(rest_ns);
            }
        }
    }

    /// Closes the sessions that had no requests for longer than `rest_ns`.
    fn close_idle_sessions(&mut self, rest_ns: u64) {
        let (newest_ns, requests) = (self.newest_ns, &mut self.requests);
        self.open.retain(|_, open| {
            let stays = newest_ns.saturating_sub(open.end_ns) <= rest_ns;
            if !stays {
                requests.record(u64::from(open.requests));
            }
            stays
        });
    }

    /// Closes all sessions. Returns the number of requests of each session, the think times in ns,
    /// and whether sessions were closed early.
    pub fn finish(mut self) -> (Histogram, Histogram, bool) {
        for open in self.open.values() {
            self.requests.record(u64::from(open.requests));
        }
        (self.requests, self.think_times_ns, self.closed_early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_gap_ends_a_session() {
        let mut sessions = Sessions::default();
        let from = 1_700_000_000 * SECOND;
        for (visitor, at_s, length_s) in [
            (1, 0, 1),
            (1, 5, 1),
            (2, 6, 0),
            (1, 5, 3),
            (1, 20, 0),
            (1, 20 + 1800, 0),
            (1, 3700, 0),
            (1, 100, 0),
            (3, 90_000, 0),
        ] {
            sessions.add(visitor, from + at_s * SECOND, from + (at_s + length_s) * SECOND);
        }
        let (requests, think, early) = sessions.finish();
        assert_eq!((requests.count(), requests.max_ns(), early), (5, 5, false));
        // The think times are 4 s after the first response, 12 s after the overlapping response,
        // and 1800 s, the longest wait within a session.
        assert_eq!((think.count(), think.min_ns(), think.max_ns()), (3, 4 * SECOND, 1800 * SECOND));
    }
}
