//! A compact request of a log, and the timing of a replay.

use plimsoll_model::RouteNumber;

/// A request of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedRequest {
    /// Arrival, ns since the Unix epoch.
    pub start_ns: u64,
    /// The number of its path and query.
    pub target: u32,
    /// A short hash of the client; collisions are rare.
    pub visitor: u32,
    /// Duration, us; 0 if not logged, at most an hour.
    pub duration_us: u32,
    /// The endpoint.
    pub route: RouteNumber,
    /// The status; 0 if unknown.
    pub status: u16,
}

impl LoggedRequest {
    /// End of the response, ns since the Unix epoch.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(u64::from(self.duration_us) * 1000)
    }
}

/// The timing of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayTiming {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Replay speed relative to the log, in thousandths.
    pub speed_milli: u64,
    /// Number of visitors relative to the log, in thousandths.
    pub scale_milli: u64,
    /// Length of the replayed beginning, ns of the load; `None`: all.
    pub length_ns: Option<u64>,
    /// Lines read.
    pub lines: u64,
}
