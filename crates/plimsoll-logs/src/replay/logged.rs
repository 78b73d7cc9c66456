//! A compact representation of a logged request, and the timing options of a replay.

use crate::survey::SESSION_GAP_NS;
use plimsoll_model::RouteNumber;
use std::ops::Range;

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
}

/// Returns the sessions in `requests`, which are sorted by visitor and time: the range of indices
/// of each session. A session of a visitor ends if no request starts within [`SESSION_GAP_NS`]
/// after the end of its responses.
pub(crate) fn session_ranges<'a>(requests: impl Iterator<Item = &'a LoggedRequest>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut open = (0, 0);
    for (index, request) in requests.enumerate() {
        let (visitor, end_ns) = open;
        let continues = request.visitor == visitor && request.start_ns.saturating_sub(end_ns) <= SESSION_GAP_NS;
        match ranges.last_mut().filter(|_| continues) {
            Some(range) => {
                range.end += 1;
                open.1 = end_ns.max(request.end_ns());
            }
            None => {
                ranges.push(index..index + 1);
                open = (request.visitor, request.end_ns());
            }
        }
    }
    ranges
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
        let request = |(start_s, duration_s, visitor): (u64, u32, u32)| LoggedRequest {
            start_ns: start_s * 1_000_000_000,
            target: 0,
            visitor,
            duration_us: duration_s * 1_000_000,
            route: 0,
            status: 200,
        };
        // Each row: start and duration of the requests in s, with their visitor, and the number of
        // requests in each session.
        for (requests, expect) in [
            (&[][..], &[][..]),
            (&[(0, 100, 1), (1_900, 1, 1)], &[2]),
            (&[(0, 100, 1), (1_901, 1, 1)], &[1, 1]),
            (&[(0, 100, 1), (50, 1, 1), (50, 1, 2)], &[2, 1]),
            // The first response ends after the second one.
            (&[(0, 2_400, 1), (60, 1, 1), (2_100, 1, 1), (4_201, 1, 1)], &[3, 1]),
        ] {
            let requests: Vec<LoggedRequest> = requests.iter().copied().map(request).collect();
            let lengths: Vec<usize> = session_ranges(requests.iter()).into_iter().map(|range| range.len()).collect();
            assert_eq!(lengths, expect, "{requests:?}");
        }
    }
}
