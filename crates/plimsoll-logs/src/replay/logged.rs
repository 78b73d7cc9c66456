//! A compact representation of a logged request, and the timing options of a replay.

use crate::survey::SESSION_GAP_NS;
use plimsoll_model::RouteNumber;

/// A request of a log. The representation is compact, because millions of requests are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedRequest {
    /// The arrival time of the request, ns since the Unix epoch.
    pub start_ns: u64,
    /// The number of the path and query in the list of distinct paths.
    pub target: u32,
    /// A 32-bit hash that identifies the visitor (client or session); collisions are rare.
    pub visitor: u32,
    /// The duration of the request, us. The duration is 0 if the log has no durations, and at most
    /// about 72 minutes (`u32::MAX` us).
    pub duration_us: u32,
    /// The number of the requested endpoint.
    pub route: RouteNumber,
    /// The status that the server sent; 0 if unknown.
    pub status: u16,
}

impl LoggedRequest {
    /// Returns the end of the response, ns since the Unix epoch.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(u64::from(self.duration_us) * 1000)
    }

    /// Returns whether `next`, the next request in a list that is sorted by visitor and time,
    /// belongs to the same session: it has the same visitor, and starts at most [`SESSION_GAP_NS`]
    /// after the end of this response.
    pub fn is_followed_in_session_by(&self, next: &LoggedRequest) -> bool {
        self.visitor == next.visitor && next.start_ns.saturating_sub(self.end_ns()) <= SESSION_GAP_NS
    }
}

/// The timing options of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayTiming {
    /// The seed of all random numbers of the replay.
    pub seed: u64,
    /// The speed of the replay relative to the log, in thousandths (2000 is twice as fast).
    pub speed_milli: u64,
    /// The number of visitors relative to the log, in thousandths (2000 is twice as many).
    pub scale_milli: u64,
    /// The maximum length of the replay, ns of load time. The replay omits later requests of the
    /// log. With `None`, the whole log is replayed.
    pub length_ns: Option<u64>,
    /// The number of log lines read, for the record of the run.
    pub lines: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_half_an_hour_after_a_response() {
        let request = |start_s: u64, duration_s: u32, visitor: u32| LoggedRequest {
            start_ns: start_s * 1_000_000_000,
            target: 0,
            visitor,
            duration_us: duration_s * 1_000_000,
            route: 0,
            status: 200,
        };
        for (next_s, visitor, expect) in [(1_900, 1, true), (1_901, 1, false), (50, 1, true), (50, 2, false)] {
            let is_followed = request(0, 100, 1).is_followed_in_session_by(&request(next_s, 1, visitor));
            assert_eq!(is_followed, expect, "{next_s} s, visitor {visitor}");
        }
    }
}
