//! A request as a log has it, in few bytes, and when such requests are to be asked.

use plimsoll_model::RouteNumber;

/// A request of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedRequest {
    /// When it came, ns since the Unix epoch.
    pub start_ns: u64,
    /// The number of its path and query.
    pub target: u32,
    /// Who asked: a hash, short enough that few share one.
    pub visitor: u32,
    /// How long the answer took; 0 where that is not logged, and an hour at most.
    pub duration_us: u32,
    /// The endpoint that it counts for.
    pub route: RouteNumber,
    /// With what it was answered; 0: nobody knows.
    pub status: u16,
}

impl LoggedRequest {
    /// When its answer had come, ns since the Unix epoch.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(u64::from(self.duration_us) * 1000)
    }
}

/// When the requests of a log are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayTiming {
    /// All that is drawn follows from it.
    pub seed: u64,
    /// How much faster than then, in thousandths.
    pub speed_milli: u64,
    /// How many times the visitors of then, in thousandths.
    pub scale_milli: u64,
    /// Only so much of the beginning, ns of the load.
    pub length_ns: Option<u64>,
    /// Lines that were read.
    pub lines: u64,
}
