//! Readings of one load, converted to the load's clock and stored in parts ([`LoadProbes`]).
//!
//! Not here: the source of readings (`plimsoll-probe`), and their recording (`recording`).

use plimsoll_engine::Tick;
use plimsoll_model::Probes;
use plimsoll_probe::ReadingSource;

/// Readings of one load.
#[derive(Default)]
pub struct LoadProbes {
    /// Schedule time 0 on the monotonic clock, once known.
    origin_ns: Option<i64>,
    taken_ns: u64,
    /// All parts so far.
    pub whole: Probes,
}

impl LoadProbes {
    /// Interval at which a part goes to the run file, ns: the most that a crash loses.
    const PART_NS: u64 = 2_000_000_000;

    /// Begins a load, before its connections open.
    pub fn begin(source: Option<&dyn ReadingSource>) -> LoadProbes {
        if let Some(source) = source {
            // Readings between loads are dropped.
            source.take();
            source.sample_now();
        }
        LoadProbes::default()
    }

    /// Handles a tick; returns a part when it is due.
    pub fn tick(&mut self, tick: &Tick, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        self.origin_ns = Some(tick.origin_ns as i64);
        if tick.end_ns < self.taken_ns + Self::PART_NS {
            return None;
        }
        self.taken_ns = tick.end_ns;
        self.take(source)
    }

    /// Ends the load; returns the last part.
    pub fn end(&mut self, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        source?.sample_now();
        self.take(source)
    }

    fn take(&mut self, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        let part = source?.take().shifted(-self.origin_ns?);
        self.whole.merge(&part);
        Some(part)
    }
}
