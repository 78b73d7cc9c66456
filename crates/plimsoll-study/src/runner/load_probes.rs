//! What a source of readings tells of one load, moved to the load's clock and kept in parts
//! ([`LoadProbes`]).
//!
//! Not here: where readings come from (`plimsoll-probe`), and what is recorded of them
//! (`recording`).

use plimsoll_engine::Tick;
use plimsoll_model::Probes;
use plimsoll_probe::ReadingSource;

/// What is read during one load.
#[derive(Default)]
pub struct LoadProbes {
    /// Schedule time 0 on the monotonic clock, once it is known.
    origin_ns: Option<i64>,
    taken_ns: u64,
    /// All parts so far.
    pub whole: Probes,
}

impl LoadProbes {
    /// How often a part goes to the run file: what a crash can lose.
    const PART_NS: u64 = 2_000_000_000;

    /// The load's connections are going to be made.
    pub fn begin(source: Option<&dyn ReadingSource>) -> LoadProbes {
        if let Some(source) = source {
            // What was seen between loads belongs to none.
            source.take();
            source.sample_now();
        }
        LoadProbes::default()
    }

    /// A tick has passed; gives the part to be written, if it is time for one.
    pub fn tick(&mut self, tick: &Tick, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        self.origin_ns = Some(tick.origin_ns as i64);
        if tick.end_ns < self.taken_ns + Self::PART_NS {
            return None;
        }
        self.taken_ns = tick.end_ns;
        self.take(source)
    }

    /// The load is over; gives the last part.
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
