//! Collects the readings (measurements of server and host) of one load ([`LoadProbes`]). This
//! module converts the times of the readings to the load's clock, and passes the readings to the
//! run file every 2 s.
//!
//! Not here: taking readings (`plimsoll-probe`), and recording them (`recording`).

use plimsoll_engine::Tick;
use plimsoll_model::Probes;
use plimsoll_probe::ReadingSource;

/// The readings of server and host during one load.
#[derive(Default)]
pub struct LoadProbes {
    /// The start of the load's schedule on the monotonic clock, ns; unknown before the first tick.
    origin_ns: Option<i64>,
    taken_ns: u64,
    /// All readings of the load so far. The times of the readings are relative to the start of the
    /// load's schedule.
    pub whole: Probes,
}

impl LoadProbes {
    /// The interval in ns at which new readings are written to the run file (2 s). A crash of
    /// plimsoll loses at most the readings of the last 2 s.
    const READINGS_WRITE_INTERVAL_NS: u64 = 2_000_000_000;

    /// Starts to collect the readings of a load, before its connections open.
    pub fn begin(source: Option<&dyn ReadingSource>) -> LoadProbes {
        if let Some(source) = source {
            // Readings that the source took before the load are dropped.
            source.take_new_readings();
            source.sample_now();
        }
        LoadProbes::default()
    }

    /// Handles a tick of the load. If 2 s have passed since readings were last returned, returns
    /// the new readings for the run file; otherwise `None`.
    pub fn take_readings_if_due(&mut self, tick: &Tick, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        self.origin_ns = Some(tick.origin_ns as i64);
        if tick.end_ns < self.taken_ns + Self::READINGS_WRITE_INTERVAL_NS {
            return None;
        }
        self.taken_ns = tick.end_ns;
        self.take_new_readings(source)
    }

    /// Ends the collection of readings. Returns the readings that were not yet returned for the run
    /// file.
    pub fn end(&mut self, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        source?.sample_now();
        self.take_new_readings(source)
    }

    fn take_new_readings(&mut self, source: Option<&dyn ReadingSource>) -> Option<Probes> {
        let part = source?.take_new_readings().shift_times(-self.origin_ns?);
        self.whole.merge(&part);
        Some(part)
    }
}
