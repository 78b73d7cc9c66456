//! Counts arrivals and requests in flight over time, in bins of 100 ms. Log lines may be out of
//! order by up to [`DISORDER_WINDOW_S`] seconds. If a response takes longer than
//! [`DISORDER_WINDOW_S`], its end may be rounded to the end of a bin. The memory is bounded by
//! `EVENTS_MAX`, and by the number of bins within twice [`DISORDER_WINDOW_S`].
//!
//! Not here: timestamps and their resolution.

use std::collections::{BTreeMap, VecDeque};

/// The length of a bin, ns (100 ms).
pub(super) const BIN_NS: u64 = 100_000_000;
/// The longest time by which log lines may be out of order, s.
pub const DISORDER_WINDOW_S: u64 = 600;
/// The longest time by which log lines may be out of order, in bins.
const DISORDER_WINDOW_BINS: u64 = DISORDER_WINDOW_S * 1_000_000_000 / BIN_NS;
/// The largest number of request starts and ends in memory. Above this number, early bins become
/// final sooner, so log lines may only be out of order by a shorter time.
const EVENTS_MAX: usize = 1 << 23;
/// The largest number of intervals in the series of arrivals and requests in flight over the whole
/// log.
const POINTS_MAX: usize = 1200;

/// The request counts in windows of one width, aligned to the clock.
#[derive(Debug, Clone)]
pub(super) struct WindowCounts {
    bins: u64,
    current: Option<u64>,
    count: u64,
    /// The number of whole windows between the first and the last arrival. The fields `sum` and
    /// `squares` are sums over the counts of the whole windows.
    whole_windows: u64,
    sum: u128,
    squares: u128,
    is_current_window_whole: bool,
    max: u64,
}

impl WindowCounts {
    fn new(bins: u64) -> WindowCounts {
        WindowCounts {
            bins,
            current: None,
            count: 0,
            whole_windows: 0,
            sum: 0,
            squares: 0,
            is_current_window_whole: false,
            max: 0,
        }
    }

    fn add(&mut self, bin: u64, count: u64) {
        let window = bin / self.bins;
        match self.current {
            Some(current) if current == window => {}
            Some(current) => {
                if self.is_current_window_whole {
                    self.whole_windows += 1;
                    self.sum += u128::from(self.count);
                    self.squares += u128::from(self.count).pow(2);
                }
                // Windows without requests count as whole windows with 0 requests.
                self.whole_windows += window - current - 1;
                self.is_current_window_whole = true;
                (self.current, self.count) = (Some(window), 0);
            }
            None => self.current = Some(window),
        }
        self.count += count;
        self.max = self.max.max(self.count);
    }

    /// Returns the largest count of one window, including the first and the last window.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the index of dispersion of the counts: variance over mean. `None` if there are fewer
    /// than `least` whole windows.
    pub fn dispersion(&self, least: u64) -> Option<f64> {
        if self.whole_windows < least.max(2) || self.sum == 0 {
            return None;
        }
        let n = self.whole_windows as f64;
        let mean = self.sum as f64 / n;
        let variance = (self.squares as f64 - n * mean * mean) / (n - 1.0);
        Some((variance / mean).max(0.0))
    }
}

/// The totals of one interval in the series of arrivals and requests in flight over the whole log.
#[derive(Debug, Clone, Copy, Default)]
struct SeriesInterval {
    arrivals: u64,
    /// The integral of the requests in flight over time, requests x ns.
    busy_ns: f64,
}

#[derive(Debug, Clone, Default)]
struct TimelineBin {
    arrivals: u64,
    /// The starts and ends of requests in the bin. Each number is the time within the bin in ns,
    /// shifted left by one bit, plus 1 for a start. Ends are even numbers and starts are odd
    /// numbers, so the sort places an end before a start at the same ns.
    events: Vec<u32>,
}

/// Arrivals and requests in flight over time, for logs whose lines are slightly out of order.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// The number of the first bin in `bins`. Earlier bins are final: their counts are in the
    /// windows and the series.
    first_open_bin: u64,
    bins: VecDeque<TimelineBin>,
    /// The number of request ends by bin, for ends that are too late for `bins`. The ends in this
    /// map count at the end of their bin.
    far_ends: BTreeMap<u64, u64>,
    events: usize,
    spare: Vec<Vec<u32>>,
    newest: u64,
    first: Option<u64>,
    in_flight: i64,
    in_flight_max: i64,
    tenth: WindowCounts,
    second: WindowCounts,
    minute: WindowCounts,
    ten_seconds: WindowCounts,
    hundred_seconds: WindowCounts,
    intervals: Vec<SeriesInterval>,
    bins_per_interval: u64,
    late: u64,
}

impl Timeline {
    pub fn new() -> Timeline {
        Timeline {
            first_open_bin: 0,
            bins: VecDeque::new(),
            far_ends: BTreeMap::new(),
            events: 0,
            spare: Vec::new(),
            newest: 0,
            first: None,
            in_flight: 0,
            in_flight_max: 0,
            tenth: WindowCounts::new(1),
            second: WindowCounts::new(10),
            minute: WindowCounts::new(600),
            ten_seconds: WindowCounts::new(100),
            hundred_seconds: WindowCounts::new(1000),
            intervals: Vec::new(),
            bins_per_interval: 1,
            late: 0,
        }
    }

    /// Adds a request that arrived at `start_ns`, with its duration if the log states a duration.
    #[inline]
    pub fn add(&mut self, start_ns: u64, duration_ns: Option<u64>) {
        let bin = start_ns / BIN_NS;
        if self.newest == 0 {
            self.first_open_bin = bin.saturating_sub(DISORDER_WINDOW_BINS);
        }
        if bin < self.first_open_bin {
            self.late += 1;
            return;
        }
        self.newest = self.newest.max(bin);
        if self.newest - self.first_open_bin > DISORDER_WINDOW_BINS {
            self.finalize_until(self.newest - DISORDER_WINDOW_BINS);
        }
        self.bin_mut(bin).arrivals += 1;
        if let Some(duration_ns) = duration_ns.filter(|ns| *ns > 0) {
            self.bin_mut(bin).events.push(((start_ns % BIN_NS) as u32) << 1 | 1);
            let end_ns = start_ns.saturating_add(duration_ns);
            let end = end_ns / BIN_NS;
            if end - self.first_open_bin > 2 * DISORDER_WINDOW_BINS {
                *self.far_ends.entry(end).or_default() += 1;
            } else {
                self.bin_mut(end).events.push(((end_ns % BIN_NS) as u32) << 1);
            }
            // A request with a duration has two events, its start and its end.
            self.events += 2;
            if self.events > EVENTS_MAX {
                let half = self.first_open_bin + (self.newest - self.first_open_bin) / 2;
                self.finalize_until(half.max(self.first_open_bin + 1));
            }
        }
    }

    /// Returns the bin with the number `number`, which must not be final.
    #[inline]
    fn bin_mut(&mut self, number: u64) -> &mut TimelineBin {
        let at = (number - self.first_open_bin) as usize;
        while self.bins.len() <= at {
            self.bins.push_back(TimelineBin { arrivals: 0, events: self.spare.pop().unwrap_or_default() });
        }
        &mut self.bins[at]
    }

    /// Makes all bins before `bin` final: adds their counts to the windows and to the series.
    fn finalize_until(&mut self, bin: u64) {
        while self.first_open_bin < bin {
            let number = self.first_open_bin;
            match self.bins.pop_front() {
                Some(done) => {
                    self.first_open_bin += 1;
                    self.finalize_bin(number, done);
                }
                None => {
                    // When `bins` is empty, the remaining bins before `bin` contain only the
                    // request ends in `far_ends`.
                    let next = self.far_ends.range(number..bin).next().map_or(bin, |(end, _)| *end);
                    if next > number {
                        self.skip_bins(number, next);
                        self.first_open_bin = next;
                    } else {
                        self.first_open_bin += 1;
                        self.finalize_bin(number, TimelineBin::default());
                    }
                }
            }
        }
    }

    fn finalize_bin(&mut self, number: u64, mut bin: TimelineBin) {
        if bin.arrivals > 0 {
            self.first.get_or_insert(number);
            for windows in
                [&mut self.tenth, &mut self.second, &mut self.minute, &mut self.ten_seconds, &mut self.hundred_seconds]
            {
                windows.add(number, bin.arrivals);
            }
        }
        let mut busy_ns = 0.0;
        let mut at = 0u32;
        self.events -= bin.events.len();
        bin.events.sort_unstable();
        for event in bin.events.drain(..) {
            let ns = event >> 1;
            busy_ns += self.in_flight as f64 * f64::from(ns - at);
            at = ns;
            self.in_flight += if event & 1 == 1 { 1 } else { -1 };
            self.in_flight_max = self.in_flight_max.max(self.in_flight);
        }
        busy_ns += self.in_flight as f64 * (BIN_NS as f64 - f64::from(at));
        if let Some(ends) = self.far_ends.remove(&number) {
            self.in_flight -= ends as i64;
            self.events -= ends as usize;
        }
        if self.spare.len() < 64 && bin.events.capacity() > 0 {
            self.spare.push(bin.events);
        }
        if let Some(point) = self.point_of_bin(number) {
            point.arrivals += bin.arrivals;
            point.busy_ns += busy_ns;
        }
    }

    /// Adds the bins from `from` to `to - 1` to the series. No request starts or ends in these
    /// bins, so the number of requests in flight is constant.
    fn skip_bins(&mut self, from: u64, to: u64) {
        let Some(first) = self.first else { return };
        // This call makes the intervals of the series long enough for the last bin, before the loop
        // adds to the intervals.
        self.point_of_bin(to - 1);
        let mut at = from;
        while at < to {
            let next = (first + ((at - first) / self.bins_per_interval + 1) * self.bins_per_interval).min(to);
            let busy_ns = self.in_flight as f64 * ((next - at) * BIN_NS) as f64;
            if let Some(point) = self.point_of_bin(at) {
                point.busy_ns += busy_ns;
            }
            at = next;
        }
    }

    /// Returns the interval of the series that contains a bin; `None` before the first arrival. If
    /// the series would have too many intervals, the length of each interval doubles.
    fn point_of_bin(&mut self, bin: u64) -> Option<&mut SeriesInterval> {
        let since = bin.checked_sub(self.first?)?;
        while since / self.bins_per_interval >= POINTS_MAX as u64 {
            self.intervals = self
                .intervals
                .chunks(2)
                .map(|pair| SeriesInterval {
                    arrivals: pair.iter().map(|p| p.arrivals).sum(),
                    busy_ns: pair.iter().map(|p| p.busy_ns).sum(),
                })
                .collect();
            self.bins_per_interval *= 2;
        }
        let at = (since / self.bins_per_interval) as usize;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, SeriesInterval::default());
        }
        self.intervals.get_mut(at)
    }

    /// Adds the counts of all bins up to the last arrival to the windows and the series.
    pub fn finish(&mut self) {
        if self.newest > 0 {
            self.finalize_until(self.newest + 1);
        }
    }

    /// Returns the number of arrivals that were not counted because their log lines were too far
    /// out of time order.
    pub fn late_arrivals(&self) -> u64 {
        self.late
    }

    /// Returns the largest number of requests in flight at one time.
    pub fn in_flight_max(&self) -> u64 {
        self.in_flight_max.max(0) as u64
    }

    /// Returns the largest number of arrivals in one clock second, and the largest number in one
    /// clock minute.
    pub fn peaks(&self) -> (u64, u64) {
        (self.second.max(), self.minute.max())
    }

    /// Returns the arrivals counted in windows of 0.1, 1, 10 and 100 s, each with the width of a
    /// window in ns.
    pub fn windows(&self) -> [(u64, &WindowCounts); 4] {
        [
            (BIN_NS, &self.tenth),
            (10 * BIN_NS, &self.second),
            (100 * BIN_NS, &self.ten_seconds),
            (1000 * BIN_NS, &self.hundred_seconds),
        ]
    }

    /// Returns the series over the whole log: the length of an interval in s, and the arrivals and
    /// mean requests in flight of each interval.
    pub fn series(&self) -> (f64, Vec<(u64, f64)>) {
        let length_ns = (self.bins_per_interval * BIN_NS) as f64;
        (length_ns / 1e9, self.intervals.iter().map(|p| (p.arrivals, (p.busy_ns / length_ns).max(0.0))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LOG_START_NS: u64 = 1_700_000_000_000_000_000;

    fn build_timeline(requests: &[(u64, Option<u64>)]) -> Timeline {
        let mut timeline = Timeline::new();
        requests.iter().for_each(|(at_ms, ms)| timeline.add(LOG_START_NS + at_ms * MS, ms.map(|ms| ms * MS)));
        timeline.finish();
        timeline
    }

    #[test]
    fn order_within_the_window_does_not_matter() {
        let requests: Vec<(u64, Option<u64>)> = (0..5000).map(|n| (n * 37, Some(n % 900))).collect();
        let mut others = requests.clone();
        others.chunks_mut(700).for_each(<[_]>::reverse);
        others.sort_by_key(|(at, ms)| at + ms.unwrap_or(0));
        let (a, b) = (build_timeline(&requests), build_timeline(&others));
        assert_eq!((a.peaks(), a.in_flight_max(), a.late_arrivals()), (b.peaks(), b.in_flight_max(), 0));
        assert_eq!(a.series(), b.series());
    }

    #[test]
    fn peaks_use_clock_seconds_and_minutes() {
        // The log has 30 requests in one second and 20 requests in the next second, all within one
        // minute. After a long gap, the log has a single further request.
        let mut requests: Vec<(u64, Option<u64>)> = (0..30).map(|n| (n, None)).collect();
        requests.extend((0..20).map(|n| (1500 + n, None)));
        requests.push((86_400_000, None));
        let timeline = build_timeline(&requests);
        assert_eq!(timeline.peaks(), (30, 50));
        let (length_s, points) = timeline.series();
        assert_eq!(points.iter().map(|p| p.0).sum::<u64>(), 51);
        assert!(points.len() <= POINTS_MAX && points.len() as f64 * length_s >= 86_400.0);
    }

    #[test]
    fn requests_in_flight_are_counted() {
        let timeline = build_timeline(&[
            (0, Some(100)),
            (50, Some(100)),
            (150, Some(50)),
            (60, Some(0)),
            (1000, Some(5_000_000)),
            (1_900_000, None),
        ]);
        assert_eq!(timeline.in_flight_max(), 2);
        let (length_s, points) = timeline.series();
        let busy_s: f64 = points.iter().map(|p| p.1 * length_s).sum();
        assert!((busy_s - (0.25 + 1_899.1)).abs() < 0.2, "{busy_s}");
    }

    #[test]
    fn late_log_entries_are_counted() {
        let timeline = build_timeline(&[(0, None), (DISORDER_WINDOW_S * 2000, None), (5, None)]);
        assert_eq!(timeline.late_arrivals(), 1);
    }

    #[test]
    fn dispersion_is_computed_from_counts() {
        // Evenly spaced arrivals have an index of dispersion (variance divided by mean) of 0.
        // Arrivals in bursts have an index of dispersion of about the burst size.
        let even = build_timeline(&(0..2000).map(|n| (n * 10, None)).collect::<Vec<_>>());
        let windows = even.windows();
        assert_eq!(windows[1].1.dispersion(5), Some(0.0));
        assert_eq!(windows[3].1.dispersion(5), None);
        let bursts = build_timeline(&(0..2000).map(|n| (n / 100 * 1000, None)).collect::<Vec<_>>());
        // Each second has 100 requests in its first tenth, and no requests in the other nine
        // tenths.
        let tenth = bursts.windows()[0].1.dispersion(5).expect("enough");
        assert!((tenth - 90.0).abs() < 6.0, "{tenth}");
    }
}
