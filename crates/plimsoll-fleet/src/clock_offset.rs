//! Estimates the offset between another machine's monotonic clock and ours ([`ClockOffset`]).
//!
//! The estimate comes from the recent ping with the smallest error bound. The error bound of a ping
//! is half of its round trip, plus the largest assumed drift of the clocks since the ping. In the
//! worst case, the message takes the whole round-trip time and its reply takes no time, or the
//! reverse. More pings do not reduce this error, because no ping shows how the round-trip time
//! divides between the directions.
//!
//! Not here: when pings are sent, and how pings are transported.

/// The number of recent pings that are kept for the estimate of the clock offset.
const RECENT_PINGS_MAX: usize = 20;
/// The largest assumed drift between two clocks, as a divisor: 1 ns in 10 000 ns (100 ppm). Quartz
/// clocks drift less.
const DRIFT_DIVISOR: u64 = 10_000;

/// The estimated offset of another machine's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffset {
    sample_count: u32,
    /// The most recent pings, in a ring buffer.
    recent: [ClockSample; RECENT_PINGS_MAX],
    last_reply_ns: u64,
}

/// One ping: the arrival time of its reply on our clock, its round trip, and the resulting clock
/// offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ClockSample {
    arrived_ns: u64,
    round_trip_ns: u64,
    offset_ns: i64,
}

impl ClockOffset {
    /// Adds a ping. `sent_ns` and `arrival_ns` are the times on our clock when the ping was sent
    /// and its reply arrived. `there_ns` is the time on the other machine's clock when the other
    /// machine replied.
    pub fn add(&mut self, sent_ns: u64, there_ns: u64, arrival_ns: u64) {
        let round_trip_ns = arrival_ns.saturating_sub(sent_ns);
        let offset_ns = there_ns.wrapping_sub(sent_ns + round_trip_ns / 2) as i64;
        self.recent[self.sample_count as usize % RECENT_PINGS_MAX] =
            ClockSample { arrived_ns: arrival_ns, round_trip_ns, offset_ns };
        self.sample_count = self.sample_count.saturating_add(1);
        self.last_reply_ns = self.last_reply_ns.max(arrival_ns);
    }

    /// Returns the number of pings added so far.
    pub fn sample_count(&self) -> u32 {
        self.sample_count
    }

    /// Returns the ping whose clock offset has the smallest error bound, and the error bound in ns.
    fn best_sample(&self) -> Option<(&ClockSample, u64)> {
        let known = &self.recent[..RECENT_PINGS_MAX.min(self.sample_count as usize)];
        let with_error = known.iter().map(|sample| {
            let drift_ns = (self.last_reply_ns - sample.arrived_ns) / DRIFT_DIVISOR;
            (sample, sample.round_trip_ns.div_ceil(2) + drift_ns)
        });
        with_error.min_by_key(|(_, error_ns)| *error_ns)
    }

    /// Converts a time of this machine's clock to the time of the other machine's clock, ns.
    pub fn to_other_clock(&self, local_ns: u64) -> u64 {
        local_ns.saturating_add_signed(self.offset_ns())
    }

    /// Returns the time of the other machine's clock minus the time of our clock, ns; 0 while the
    /// offset is unknown.
    pub fn offset_ns(&self) -> i64 {
        self.best_sample().map_or(0, |(sample, _)| sample.offset_ns)
    }

    /// Returns the largest possible error of the offset, ns. `None` while the offset is unknown.
    pub fn error_ns_max(&self) -> Option<u64> {
        self.best_sample().map(|(_, error_ns)| error_ns)
    }

    /// Returns the shortest round trip among recent pings, ns.
    pub fn round_trip_ns_min(&self) -> u64 {
        let known = &self.recent[..RECENT_PINGS_MAX.min(self.sample_count as usize)];
        known.iter().map(|sample| sample.round_trip_ns).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSET_NS: u64 = 86_400_000_000_000;

    #[test]
    fn the_clock_error_is_within_half_the_shortest_round_trip() {
        // Each pair has the latencies in the two directions, ns.
        for ways in [vec![(50, 50)], vec![(900, 100), (40, 60), (10, 500)], vec![(0, 80)], vec![(80, 0), (500, 500)]] {
            let mut clock = ClockOffset::default();
            assert_eq!((clock.error_ns_max(), clock.to_other_clock(7)), (None, 7));
            for (number, (there, back)) in ways.iter().enumerate() {
                let sent_ns = 1_000 * number as u64;
                clock.add(sent_ns, sent_ns + there + OFFSET_NS, sent_ns + there + back);
            }
            let error_ns = clock.to_other_clock(5_000).abs_diff(5_000 + OFFSET_NS);
            assert!(error_ns <= clock.error_ns_max().expect("asked"), "{ways:?}: {error_ns}");
            assert_eq!(clock.round_trip_ns_min(), ways.iter().map(|(there, back)| there + back).min().expect("ways"));
        }
        // The other machine's clock is behind ours.
        let mut behind = ClockOffset::default();
        behind.add(1_000_000, 200, 1_000_100);
        assert_eq!(behind.to_other_clock(1_000_050), 200);
    }

    #[test]
    fn clock_drift_is_tracked() {
        let mut clock = ClockOffset::default();
        // The other machine's clock is 50 ppm faster than ours, and the first ping has the shortest
        // round trip.
        let there = |ours_ns: u64| OFFSET_NS + ours_ns + ours_ns / 20_000;
        for second in 0..600u64 {
            let sent_ns = second * 1_000_000_000;
            let way_ns = if second == 0 { 10_000 } else { 100_000 };
            clock.add(sent_ns, there(sent_ns + way_ns), sent_ns + 2 * way_ns);
            let error_ns = clock.to_other_clock(sent_ns).abs_diff(there(sent_ns));
            let said_ns = clock.error_ns_max().expect("asked");
            assert!(error_ns <= said_ns && said_ns <= 210_000, "{second} s: {error_ns} of {said_ns}");
        }
    }
}
