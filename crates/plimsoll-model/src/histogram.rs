//! Latency histograms with one fixed geometry (bucket bounds), so that any two histograms can be
//! added exactly.
//!
//! The geometry equals the geometry of HdrHistogram for three significant digits: each octave (a
//! doubling of the value) has 1 024 buckets. The buckets cover 1 ns to [`HIGHEST_NS`] (one hour).
//! Values have three exact digits from 1 us up, and values below 2 048 ns are exact. Values above
//! one hour count in the last bucket; minimum, maximum and sum are exact.
//!
//! [`CountingHistogram`] is for fast recording (a value costs a shift, a page lookup and an
//! addition) and is drained often. [`SparseHistogram`] is the compact form of a histogram for
//! storage. [`Histogram`] sums many sparse histograms and has quantiles.
//!
//! Not here: corrections for coordinated omission. Recorders need no correction for coordinated
//! omission, because they measure each request from its intended start.

mod geometry;
mod pages;
mod sparse;

pub use geometry::{BUCKET_COUNT, HIGHEST_NS, bucket_highest_value, bucket_index, bucket_lowest_value};
pub use sparse::SparseHistogram;

use geometry::ExactFigures;
use pages::CountPages;

/// A histogram for recording times in ns. Counts of 32 bits suffice, because a recording histogram
/// is drained (read and emptied) long before a count overflows.
#[derive(Clone)]
pub struct CountingHistogram {
    pages: CountPages<u32>,
    exact: ExactFigures,
}

impl Default for CountingHistogram {
    fn default() -> Self {
        CountingHistogram { pages: CountPages::new(), exact: ExactFigures::EMPTY }
    }
}

impl CountingHistogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        *self.pages.count_mut(bucket_index(value_ns)) += 1;
        self.exact.add(value_ns, 1);
    }

    /// Returns the content as a [`SparseHistogram`], and empties this histogram. The function reads
    /// only the occupied range of buckets, and keeps the allocated memory.
    pub fn drain(&mut self) -> SparseHistogram {
        let buckets = self.pages.take_buckets(self.exact.bucket_range());
        SparseHistogram { buckets, exact: std::mem::replace(&mut self.exact, ExactFigures::EMPTY) }
    }

    /// Returns the memory of the histogram in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<CountingHistogram>() + self.pages.memory_bytes()
    }
}

/// A histogram of times in ns.
#[derive(Clone)]
pub struct Histogram {
    pages: CountPages<u64>,
    exact: ExactFigures,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.exact == other.exact && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50_ns", &self.quantile_ns(0.5))
            .field("max_ns", &self.max_ns())
            .finish()
    }
}

impl Histogram {
    /// Creates an empty histogram of about 2 KiB. Each quarter of an octave (a doubling of the
    /// value) in which values occur takes 2 KiB more.
    pub fn new() -> Self {
        Histogram { pages: CountPages::new(), exact: ExactFigures::EMPTY }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        *self.pages.count_mut(bucket_index(value_ns)) += 1;
        self.exact.add(value_ns, 1);
    }

    /// Counts `count` equal values.
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        if count > 0 {
            *self.pages.count_mut(bucket_index(value_ns)) += count;
            self.exact.add(value_ns, count);
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.exact.count
    }

    /// Returns the exact smallest value, ns; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        self.exact.min_ns_or_zero()
    }

    /// Returns the exact largest value, ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.exact.max_ns
    }

    /// Returns the mean, ns, from the exact sum; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.exact.count == 0 { 0.0 } else { self.exact.sum_ns as f64 / self.exact.count as f64 }
    }

    /// Returns the standard deviation, ns, with each value taken as the middle of its bucket; 0
    /// when empty.
    pub fn stdev_ns(&self) -> f64 {
        if self.exact.count == 0 {
            return 0.0;
        }
        let mean = self.mean_ns();
        let squares: f64 = self
            .buckets()
            .map(|(index, count)| {
                let middle = (bucket_lowest_value(index) as f64 + bucket_highest_value(index) as f64) / 2.0;
                (middle - mean).powi(2) * count as f64
            })
            .sum();
        (squares / self.exact.count as f64).sqrt()
    }

    /// Returns the quantile `q` (0..=1), ns: the value at or below which the share `q` of the
    /// values lies. The result is the upper end of the bucket of the value with rank ceil(q n), at
    /// most the exact maximum. Returns 0 for an empty histogram.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let [quantile_ns] = self.quantiles_ns([q]);
        quantile_ns
    }

    /// Returns the quantiles for several shares, ns, as [`Histogram::quantile_ns`] does for one
    /// share. The shares must ascend, because the function reads the buckets only once.
    pub fn quantiles_ns<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        debug_assert!(shares.is_sorted());
        let (mut buckets, mut seen, mut last) = (self.buckets(), 0, 0);
        shares.map(|q| {
            if self.exact.count == 0 {
                return 0;
            }
            // Subtracting 1e-9 undoes the rounding error of products such as 0.07 * 100, which is
            // slightly more than 7 in floating point.
            let rank = ((q * self.exact.count as f64 - 1e-9).ceil().max(1.0) as u64).min(self.exact.count);
            while seen < rank {
                let Some((index, count)) = buckets.next() else { return self.exact.max_ns };
                (seen, last) = (seen + count, index);
            }
            bucket_highest_value(last).clamp(self.exact.min_ns, self.exact.max_ns)
        })
    }

    /// Returns how many recorded values are above `bound_ns`, a time in ns. Values in the same
    /// bucket as `bound_ns` do not count, so the result can be slightly too small.
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        if bound_ns >= self.exact.max_ns {
            return 0;
        }
        self.pages
            .occupied_buckets(bucket_index(bound_ns) + 1..self.exact.bucket_range().end)
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the occupied buckets: (index, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.pages.occupied_buckets(self.exact.bucket_range())
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (index, count) in other.buckets() {
            *self.pages.count_mut(index) += count;
        }
        self.exact.merge(&other.exact);
    }

    /// Adds all values of a sparse histogram.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for (index, count) in other.buckets() {
            *self.pages.count_mut(index) += count;
        }
        self.exact.merge(&other.exact);
    }

    /// Returns the content as a [`SparseHistogram`], and empties this histogram. The function reads
    /// only the occupied range of buckets.
    pub fn drain(&mut self) -> SparseHistogram {
        let buckets = self.pages.take_buckets(self.exact.bucket_range());
        SparseHistogram { buckets, exact: std::mem::replace(&mut self.exact, ExactFigures::EMPTY) }
    }
}

impl SparseHistogram {
    /// Converts the sparse histogram to a [`Histogram`], from which quantiles can be computed.
    pub fn to_histogram(&self) -> Histogram {
        let mut dense = Histogram::new();
        dense.merge_sparse(self);
        dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_cover_the_range_without_a_gap() {
        for index in 0..BUCKET_COUNT {
            assert_eq!(bucket_index(bucket_lowest_value(index)), index);
            assert_eq!(bucket_index(bucket_highest_value(index).min(HIGHEST_NS)), index);
            if index + 1 < BUCKET_COUNT {
                assert_eq!(bucket_highest_value(index) + 1, bucket_lowest_value(index + 1));
            }
            let width = (bucket_highest_value(index) - bucket_lowest_value(index)) as f64;
            assert!(
                width <= bucket_lowest_value(index) as f64 / 1000.0,
                "three digits at {}",
                bucket_lowest_value(index)
            );
        }
        assert_eq!(bucket_index(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn quantiles_match_ranks() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|v| histogram.record(v));
        for (q, expect) in [(0.0, 1), (0.001, 1), (0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            assert_eq!(histogram.quantile_ns(q), expect, "{q}");
        }
        assert_eq!(histogram.quantiles_ns([0.001, 0.5, 0.5, 0.999, 1.0]), [1, 500, 500, 999, 1000]);
        assert_eq!(histogram.count_above(990), 10);
        assert_eq!(histogram.mean_ns(), 500.5);
        assert!((histogram.stdev_ns() - 288.67).abs() < 0.1);
        let empty = Histogram::new();
        assert_eq!((empty.quantile_ns(0.5), empty.min_ns(), empty.max_ns(), empty.mean_ns()), (0, 0, 0, 0.0));
    }

    #[test]
    fn buckets_are_allocated_only_when_used() {
        let mut recording = CountingHistogram::default();
        let empty = recording.memory_bytes();
        assert!(empty < 2_200, "{empty}");
        // The recorded values fill one octave (1 ms to 2 ms), and a timeout of 30 s lies far above
        // this octave.
        (1_000_000..2_000_000).step_by(500).for_each(|ns| recording.record(ns));
        recording.record(30_000_000_000);
        let held = recording.memory_bytes() - empty;
        assert!((5 * 1_024..=7 * 1_024).contains(&held), "{held}");
        recording.drain();
        recording.record(1_500_000);
        assert_eq!(recording.memory_bytes() - empty, held, "pages are used again");
    }

    fn from_values(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        histogram
    }

    proptest! {
        #[test]
        fn merging_equals_recording_all_values(a in prop::collection::vec(0..HIGHEST_NS * 2, 0..50),
                                      b in prop::collection::vec(0..HIGHEST_NS * 2, 0..50)) {
            let all = from_values(&[a.clone(), b.clone()].concat());
            let (mut left, mut right) = (from_values(&a), from_values(&b));
            let (sparse_a, sparse_b) = (left.clone().drain(), right.clone().drain());
            let (mut ab, mut ba) = (sparse_a.clone(), sparse_b.clone());
            ab.merge(&sparse_b);
            ba.merge(&sparse_a);
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(ab.to_histogram(), all.clone());
            left.merge(&right);
            prop_assert_eq!(&left, &all);
            right.merge(&from_values(&a));
            prop_assert_eq!(&right, &all);
        }

        #[test]
        fn a_quantile_is_within_a_thousandth(values in prop::collection::vec(1_000..HIGHEST_NS, 1..200), q in 0.0..=1.0f64) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((q * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize).min(sorted.len());
            let exact = sorted[rank - 1];
            let got = from_values(&values).quantile_ns(q);
            prop_assert!(got >= exact && (got - exact) as f64 <= exact as f64 / 1000.0, "{got} for {exact}");
        }

        #[test]
        fn sparse_and_dense_histograms_agree(values in prop::collection::vec(0..HIGHEST_NS, 0..100), bound in 0..HIGHEST_NS) {
            let mut dense = from_values(&values);
            let mut recording = CountingHistogram::default();
            values.iter().for_each(|v| recording.record(*v));
            let recorded = [recording.drain(), recording.drain()];
            let above = dense.count_above(bound);
            let sparse = dense.drain();
            prop_assert_eq!(dense, Histogram::new());
            prop_assert_eq!(recorded, [sparse.clone(), SparseHistogram::default()]);
            prop_assert_eq!(sparse.count_above(bound), above);
            prop_assert_eq!(sparse.count(), values.len() as u64);
        }
    }
}
