//! Latency histograms with one fixed geometry, so that any two can be added exactly.
//!
//! The geometry is HdrHistogram's for three significant digits: 1 024 buckets to an octave, from 1 ns to
//! [`HIGHEST_NS`] (one hour). Three digits hold from 1 us up; values below 2 048 ns are exact. Longer values are
//! counted in the last bucket; minimum, maximum and sum are kept exactly beside the buckets.
//!
//! [`Histogram`] is dense and made for recording (a shift, an add); [`SparseHistogram`] is the same data at rest.
//! Not here: corrections for coordinated omission. Those who record pass the intended start instead.

/// The largest value with a bucket of its own: one hour, in ns.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const HALF_BITS: u32 = 10;
const HALF: u64 = 1 << HALF_BITS;
/// Number of buckets of the geometry.
pub const BUCKETS: usize = index_of(HIGHEST_NS) + 1;

/// The bucket that counts `value_ns` (clamped to the geometry).
#[inline]
pub const fn index_of(value_ns: u64) -> usize {
    let value = if value_ns > HIGHEST_NS { HIGHEST_NS } else { value_ns };
    if value < 2 * HALF {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - HALF_BITS;
    (((shift as u64) << HALF_BITS) + (value >> shift)) as usize
}

/// The smallest value of bucket `index`.
#[inline]
pub const fn lowest_of(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * HALF {
        return index;
    }
    let shift = (index >> HALF_BITS) - 1;
    ((index & (HALF - 1)) + HALF) << shift
}

/// The largest value of bucket `index`.
#[inline]
pub const fn highest_of(index: usize) -> u64 {
    lowest_of(index + 1) - 1
}

/// Exact figures kept beside the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Summary {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Summary {
    const EMPTY: Summary = Summary { count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 };

    #[inline]
    fn add(&mut self, value_ns: u64, count: u64) {
        self.count += count;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns) * u128::from(count);
    }

    fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }
}

/// A dense histogram of times in ns.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    summary: Summary,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

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
    /// An empty histogram (about 260 KiB).
    pub fn new() -> Self {
        Histogram { counts: vec![0; BUCKETS].into_boxed_slice(), summary: Summary::EMPTY }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.counts[index_of(value_ns)] += 1;
        self.summary.add(value_ns, 1);
    }

    /// Counts `count` equal values.
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        if count > 0 {
            self.counts[index_of(value_ns)] += count;
            self.summary.add(value_ns, count);
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.summary.count
    }

    /// Smallest value, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.summary.count == 0 { 0 } else { self.summary.min_ns }
    }

    /// Largest value, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.summary.max_ns
    }

    /// Mean, from the exact sum; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.summary.count == 0 { 0.0 } else { self.summary.sum_ns as f64 / self.summary.count as f64 }
    }

    /// Standard deviation of the values as bucketed (bucket middles); 0 when empty.
    pub fn stdev_ns(&self) -> f64 {
        if self.summary.count == 0 {
            return 0.0;
        }
        let mean = self.mean_ns();
        let squares: f64 = self
            .buckets()
            .map(|(index, count)| {
                let middle = (lowest_of(index) as f64 + highest_of(index) as f64) / 2.0;
                (middle - mean).powi(2) * count as f64
            })
            .sum();
        (squares / self.summary.count as f64).sqrt()
    }

    /// The value below or at which a share `q` (0..=1) of the values lies: the upper end of the bucket that holds the
    /// value of rank ceil(q n), never beyond the exact maximum. 0 when empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        if self.summary.count == 0 {
            return 0;
        }
        // The small subtraction undoes the rounding of products such as 0.07 * 100.
        let rank = ((q * self.summary.count as f64 - 1e-9).ceil().max(1.0) as u64).min(self.summary.count);
        let mut seen = 0;
        for (index, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return highest_of(index).clamp(self.summary.min_ns, self.summary.max_ns);
            }
        }
        self.summary.max_ns
    }

    /// How many values lie above `bound_ns`, as bucketed: values in the bound's own bucket count as within it.
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        if bound_ns >= self.summary.max_ns {
            return 0;
        }
        self.counts[index_of(bound_ns) + 1..].iter().sum()
    }

    /// The occupied buckets: (index, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (from, to) = self.span();
        self.counts[from..to].iter().enumerate().filter(|(_, c)| **c > 0).map(move |(i, c)| (from + i, *c))
    }

    fn span(&self) -> (usize, usize) {
        if self.summary.count == 0 {
            (0, 0)
        } else {
            (index_of(self.summary.min_ns), index_of(self.summary.max_ns) + 1)
        }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        let (from, to) = other.span();
        for (mine, theirs) in self.counts[from..to].iter_mut().zip(&other.counts[from..to]) {
            *mine += theirs;
        }
        self.summary.merge(&other.summary);
    }

    /// Adds all values of a histogram at rest.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &(index, count) in &other.buckets {
            self.counts[index as usize] += count;
        }
        self.summary.merge(&other.summary);
    }

    /// Takes the content out as a [`SparseHistogram`] and leaves this one empty; touches only the occupied span.
    pub fn drain(&mut self) -> SparseHistogram {
        let (from, to) = self.span();
        let mut buckets = Vec::new();
        for index in from..to {
            let count = std::mem::take(&mut self.counts[index]);
            if count > 0 {
                buckets.push((index as u32, count));
            }
        }
        let summary = std::mem::replace(&mut self.summary, Summary::EMPTY);
        SparseHistogram { buckets, summary }
    }
}

/// A histogram at rest: the occupied buckets only. The same geometry as [`Histogram`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseHistogram {
    /// (bucket index, count), ascending, counts above 0.
    buckets: Vec<(u32, u64)>,
    summary: Summary,
}

impl Default for SparseHistogram {
    fn default() -> Self {
        SparseHistogram { buckets: Vec::new(), summary: Summary::EMPTY }
    }
}

impl SparseHistogram {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.summary.count
    }

    /// Exact sum of the values in ns.
    pub fn sum_ns(&self) -> u128 {
        self.summary.sum_ns
    }

    /// Largest value, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.summary.max_ns
    }

    /// Smallest value, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.summary.count == 0 { 0 } else { self.summary.min_ns }
    }

    /// The occupied buckets: (index, count), ascending.
    pub fn buckets(&self) -> &[(u32, u64)] {
        &self.buckets
    }

    /// How many values lie above `bound_ns`, as [`Histogram::count_above`].
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        let bound = index_of(bound_ns) as u32;
        let from = self.buckets.partition_point(|(index, _)| *index <= bound);
        if bound_ns >= self.summary.max_ns { 0 } else { self.buckets[from..].iter().map(|(_, c)| c).sum() }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &SparseHistogram) {
        if other.summary.count == 0 {
            return;
        }
        let mut merged = Vec::with_capacity(self.buckets.len().max(other.buckets.len()));
        let (mut a, mut b) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(&&(i, x)), Some(&&(j, y))) if i == j => {
                    merged.push((i, x + y));
                    a.next();
                    b.next();
                }
                (Some(&&x), Some(&&y)) if x.0 < y.0 => {
                    merged.push(x);
                    a.next();
                }
                (_, Some(&&y)) => {
                    merged.push(y);
                    b.next();
                }
                (Some(&&x), None) => {
                    merged.push(x);
                    a.next();
                }
                (None, None) => break,
            }
        }
        self.buckets = merged;
        self.summary.merge(&other.summary);
    }

    /// The dense form.
    pub fn to_dense(&self) -> Histogram {
        let mut dense = Histogram::new();
        dense.merge_sparse(self);
        dense
    }

    /// Puts a histogram together from stored parts. `None` when they contradict each other (a damaged file).
    pub(crate) fn from_parts(
        buckets: Vec<(u32, u64)>,
        min_ns: u64,
        max_ns: u64,
        sum_ns: u128,
    ) -> Option<SparseHistogram> {
        let Some((first, last)) = buckets.first().zip(buckets.last()) else {
            return Some(SparseHistogram::default());
        };
        let ascending = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = index_of(min_ns) == first.0 as usize && index_of(max_ns) == last.0 as usize;
        let mut count = 0u64;
        for (_, c) in &buckets {
            count = count.checked_add(*c).filter(|_| *c > 0)?;
        }
        (ascending && fits && min_ns <= max_ns)
            .then_some(SparseHistogram { buckets, summary: Summary { count, min_ns, max_ns, sum_ns } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_tile_the_range_without_gap() {
        for index in 0..BUCKETS {
            assert_eq!(index_of(lowest_of(index)), index);
            assert_eq!(index_of(highest_of(index).min(HIGHEST_NS)), index);
            if index + 1 < BUCKETS {
                assert_eq!(highest_of(index) + 1, lowest_of(index + 1));
            }
            let width = (highest_of(index) - lowest_of(index)) as f64;
            assert!(width <= lowest_of(index) as f64 / 1000.0, "three digits at {}", lowest_of(index));
        }
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|v| histogram.record(v));
        for (q, expect) in [(0.0, 1), (0.001, 1), (0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            assert_eq!(histogram.quantile_ns(q), expect, "{q}");
        }
        assert_eq!(histogram.count_above(990), 10);
        assert_eq!(histogram.mean_ns(), 500.5);
        assert!((histogram.stdev_ns() - 288.67).abs() < 0.1);
        let empty = Histogram::new();
        assert_eq!((empty.quantile_ns(0.5), empty.min_ns(), empty.max_ns(), empty.mean_ns()), (0, 0, 0, 0.0));
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        histogram
    }

    proptest! {
        #[test]
        fn merge_is_adding_all_values(a in prop::collection::vec(0..HIGHEST_NS * 2, 0..50),
                                      b in prop::collection::vec(0..HIGHEST_NS * 2, 0..50)) {
            let all = of(&[a.clone(), b.clone()].concat());
            let (mut left, mut right) = (of(&a), of(&b));
            let (sparse_a, sparse_b) = (left.clone().drain(), right.clone().drain());
            let (mut ab, mut ba) = (sparse_a.clone(), sparse_b.clone());
            ab.merge(&sparse_b);
            ba.merge(&sparse_a);
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(ab.to_dense(), all.clone());
            left.merge(&right);
            prop_assert_eq!(&left, &all);
            right.merge(&of(&a));
            prop_assert_eq!(&right, &all);
        }

        #[test]
        fn a_quantile_is_within_a_thousandth(values in prop::collection::vec(1_000..HIGHEST_NS, 1..200), q in 0.0..=1.0f64) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((q * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize).min(sorted.len());
            let exact = sorted[rank - 1];
            let got = of(&values).quantile_ns(q);
            prop_assert!(got >= exact && (got - exact) as f64 <= exact as f64 / 1000.0, "{got} for {exact}");
        }

        #[test]
        fn sparse_agrees_with_dense(values in prop::collection::vec(0..HIGHEST_NS, 0..100), bound in 0..HIGHEST_NS) {
            let mut dense = of(&values);
            let above = dense.count_above(bound);
            let sparse = dense.drain();
            prop_assert_eq!(dense, Histogram::new());
            prop_assert_eq!(sparse.count_above(bound), above);
            prop_assert_eq!(sparse.count(), values.len() as u64);
        }
    }
}
