//! What another machine's monotonic clock shows beyond ours ([`ClockOffset`]): from the shortest of
//! many round trips. The error is at most half of it, and that much where one way takes all of the
//! time: no number of questions tells the two ways apart.
//!
//! Not here: when questions are asked, and how they travel.

/// What is known of another clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffset {
    samples: u32,
    offset_ns: i64,
    round_trip_ns_min: u64,
}

impl ClockOffset {
    /// A question left at `sent_ns` and its answer came at `came_ns`, both by our clock; the
    /// other's showed `there_ns` between.
    pub fn add(&mut self, sent_ns: u64, there_ns: u64, came_ns: u64) {
        let round_trip_ns = came_ns.saturating_sub(sent_ns);
        if self.samples == 0 || round_trip_ns < self.round_trip_ns_min {
            self.round_trip_ns_min = round_trip_ns;
            self.offset_ns = there_ns.wrapping_sub(sent_ns + round_trip_ns / 2) as i64;
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// How many round trips it is made of.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// A moment of our clock as the other's shows it.
    pub fn there(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
    }

    /// How far that may be off, ns; `None`: nothing is known.
    pub fn error_ns_max(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.round_trip_ns_min.div_ceil(2))
    }

    /// The shortest round trip, ns.
    pub fn round_trip_ns_min(&self) -> u64 {
        self.round_trip_ns_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_within_half_of_the_shortest_round_trip() {
        const OFFSET_NS: u64 = 86_400_000_000_000;
        // Ways there and back in ns.
        for ways in [vec![(50, 50)], vec![(900, 100), (40, 60), (10, 500)], vec![(0, 80)], vec![(80, 0), (500, 500)]] {
            let mut clock = ClockOffset::default();
            assert_eq!(clock.error_ns_max(), None);
            for (number, (there, back)) in ways.iter().enumerate() {
                let sent_ns = 1_000 * number as u64;
                clock.add(sent_ns, sent_ns + there + OFFSET_NS, sent_ns + there + back);
            }
            let error_ns = clock.there(5_000).abs_diff(5_000 + OFFSET_NS);
            assert!(error_ns <= clock.error_ns_max().expect("asked"), "{ways:?}: {error_ns}");
            assert_eq!(clock.round_trip_ns_min(), ways.iter().map(|(there, back)| there + back).min().expect("ways"));
        }
        // A clock that shows less than ours.
        let mut behind = ClockOffset::default();
        behind.add(1_000_000, 200, 1_000_100);
        assert_eq!(behind.there(1_000_050), 200);
    }
}
