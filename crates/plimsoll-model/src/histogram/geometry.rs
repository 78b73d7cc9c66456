//! The bucket bounds that all histograms share, and the exact figures stored beside the buckets.

/// The largest value that the buckets distinguish: one hour, in ns. All larger values count in the
/// last bucket.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const BUCKET_BITS: u32 = 10;
const BUCKETS_PER_OCTAVE: u64 = 1 << BUCKET_BITS;
/// Number of buckets of the geometry.
pub const BUCKET_COUNT: usize = bucket_index(HIGHEST_NS) + 1;

/// Returns the index of the bucket that counts `value_ns`. Values above [`HIGHEST_NS`] belong to
/// the last bucket.
#[inline]
pub const fn bucket_index(value_ns: u64) -> usize {
    let value = if value_ns > HIGHEST_NS { HIGHEST_NS } else { value_ns };
    if value < 2 * BUCKETS_PER_OCTAVE {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BUCKET_BITS;
    (((shift as u64) << BUCKET_BITS) + (value >> shift)) as usize
}

/// Returns the smallest value of bucket `index`, ns.
#[inline]
pub const fn bucket_lowest_value(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * BUCKETS_PER_OCTAVE {
        return index;
    }
    let shift = (index >> BUCKET_BITS) - 1;
    ((index & (BUCKETS_PER_OCTAVE - 1)) + BUCKETS_PER_OCTAVE) << shift
}

/// Returns the largest value of bucket `index`, ns.
#[inline]
pub const fn bucket_highest_value(index: usize) -> u64 {
    bucket_lowest_value(index + 1) - 1
}

/// The exact figures (count, sum, smallest and largest value) that are stored beside the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExactFigures {
    pub(super) count: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) sum_ns: u128,
}

impl ExactFigures {
    pub(super) const EMPTY: ExactFigures = ExactFigures { count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 };

    #[inline]
    pub(super) fn add(&mut self, value_ns: u64, count: u64) {
        self.count += count;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns) * u128::from(count);
    }

    pub(super) fn merge(&mut self, other: &ExactFigures) {
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// Returns the smallest value, ns; 0 when empty.
    pub(super) fn min_ns_or_zero(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Returns the range of the buckets that may be occupied: from the smallest to the largest
    /// value.
    pub(super) fn bucket_range(&self) -> std::ops::Range<usize> {
        if self.count == 0 { 0..0 } else { bucket_index(self.min_ns)..bucket_index(self.max_ns) + 1 }
    }
}
