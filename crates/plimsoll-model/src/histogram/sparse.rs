//! A histogram at rest: what intervals hold, and a run file.

use super::geometry::{Exact, index_of};

/// A histogram at rest: the occupied buckets only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseHistogram {
    /// (bucket index, count), ascending, counts above 0.
    pub(super) buckets: Vec<(u32, u64)>,
    pub(super) exact: Exact,
}

impl Default for SparseHistogram {
    fn default() -> Self {
        SparseHistogram { buckets: Vec::new(), exact: Exact::EMPTY }
    }
}

impl SparseHistogram {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.exact.count
    }

    /// Exact sum of the values in ns.
    pub fn sum_ns(&self) -> u128 {
        self.exact.sum_ns
    }

    /// Largest value, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.exact.max_ns
    }

    /// Smallest value, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        self.exact.least_ns()
    }

    /// The occupied buckets: (index, count), ascending.
    pub fn buckets(&self) -> &[(u32, u64)] {
        &self.buckets
    }

    /// How many values lie above `bound_ns`, as [`Histogram::count_above`].
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        let bound = index_of(bound_ns) as u32;
        let from = self.buckets.partition_point(|(index, _)| *index <= bound);
        if bound_ns >= self.exact.max_ns { 0 } else { self.buckets[from..].iter().map(|(_, c)| c).sum() }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &SparseHistogram) {
        if other.exact.count == 0 {
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
        self.exact.merge(&other.exact);
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
            .then_some(SparseHistogram { buckets, exact: Exact { count, min_ns, max_ns, sum_ns } })
    }
}
