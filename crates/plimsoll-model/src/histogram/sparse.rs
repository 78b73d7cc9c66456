//! The compact form of a histogram, as intervals and run files store it.

use super::geometry::{BUCKET_COUNT, ExactFigures, bucket_index};

/// An occupied bucket, with index and count in one 64-bit word. A bucket takes only one word,
/// because a load with many routes stores a hundred thousand buckets a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket(u64);

const COUNT_BITS: u32 = 48;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const _: () = assert!(BUCKET_COUNT <= 1 << (u64::BITS - COUNT_BITS));

impl Bucket {
    pub(super) const EMPTY: Bucket = Bucket(0);

    /// Creates a bucket. A count above 48 bits saturates.
    #[inline]
    pub(super) fn new(index: usize, count: u64) -> Bucket {
        Bucket((index as u64) << COUNT_BITS | count.min(COUNT_MAX))
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        (self.0 >> COUNT_BITS) as usize
    }

    #[inline]
    pub(super) fn count(self) -> u64 {
        self.0 & COUNT_MAX
    }
}

/// The compact form of a histogram: only its occupied buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseHistogram {
    /// The occupied buckets, ascending by index, with counts above 0.
    pub(super) buckets: Vec<Bucket>,
    pub(super) exact: ExactFigures,
}

impl Default for SparseHistogram {
    fn default() -> Self {
        SparseHistogram { buckets: Vec::new(), exact: ExactFigures::EMPTY }
    }
}

impl SparseHistogram {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.exact.count
    }

    /// Returns the exact sum of the values, ns.
    pub fn sum_ns(&self) -> u128 {
        self.exact.sum_ns
    }

    /// Returns the exact largest value, ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.exact.max_ns
    }

    /// Returns the exact smallest value, ns; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        self.exact.min_ns_or_zero()
    }

    /// Returns the occupied buckets: (index, count), ascending.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (usize, u64)> + '_ {
        self.buckets.iter().map(|bucket| (bucket.index(), bucket.count()))
    }

    /// Returns the number of values above `bound_ns`, as `Histogram::count_above` counts them.
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        let bound = bucket_index(bound_ns);
        let from = self.buckets.partition_point(|bucket| bucket.index() <= bound);
        if bound_ns >= self.exact.max_ns { 0 } else { self.buckets[from..].iter().map(|bucket| bucket.count()).sum() }
    }

    /// Adds all values of `other`, in place from the last bucket to the first. Adding in place is
    /// fast in the usual case: a small histogram is added to a large histogram.
    pub fn merge(&mut self, other: &SparseHistogram) {
        if self.buckets.is_empty() {
            self.clone_from(other);
            return;
        }
        let (mine, theirs) = (&mut self.buckets, other.buckets.as_slice());
        let (mut a, mut b) = (mine.len(), theirs.len());
        mine.resize(a + b, Bucket::EMPTY);
        let mut to = a + b;
        while b > 0 {
            let their = theirs[b - 1];
            to -= 1;
            mine[to] = match a.checked_sub(1).map(|at| mine[at]) {
                Some(my) if my.index() > their.index() => {
                    a -= 1;
                    my
                }
                Some(my) if my.index() == their.index() => {
                    (a, b) = (a - 1, b - 1);
                    Bucket::new(my.index(), my.count() + their.count())
                }
                _ => {
                    b -= 1;
                    their
                }
            };
        }
        // The remaining buckets of `self` are already in place. Each bucket that occurs in both
        // histograms leaves one unused entry, which is removed.
        mine.drain(a..to);
        self.exact.merge(&other.exact);
    }

    /// Creates a histogram from stored parts, with buckets as (index, count). `None` means that the
    /// parts contradict each other, as in a damaged file.
    pub(crate) fn from_parts(
        buckets: &[(usize, u64)],
        min_ns: u64,
        max_ns: u64,
        sum_ns: u128,
    ) -> Option<SparseHistogram> {
        let Some((first, last)) = buckets.first().zip(buckets.last()) else {
            return Some(SparseHistogram::default());
        };
        let ascending = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = bucket_index(min_ns) == first.0 && bucket_index(max_ns) == last.0;
        let counted = buckets.iter().all(|(_, count)| (1..=COUNT_MAX).contains(count));
        let count = buckets.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count))?;
        (ascending && fits && counted && min_ns <= max_ns).then(|| SparseHistogram {
            buckets: buckets.iter().map(|(index, count)| Bucket::new(*index, *count)).collect(),
            exact: ExactFigures { count, min_ns, max_ns, sum_ns },
        })
    }
}
