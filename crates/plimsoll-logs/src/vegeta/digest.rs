//! Estimates quantiles of a stream of values with a merging t-digest (Dunning and Ertl). The
//! t-digest has the same scale function and size limits as in vegeta's reports, so that plimsoll
//! and vegeta show equal figures. Values near the median share centroids (groups of similar
//! values); extreme values have separate centroids.

use std::f64::consts::PI;

/// The compression parameter of the t-digest: larger values give more centroids and more exact
/// quantiles.
const TDIGEST_COMPRESSION: f64 = 100.0;
/// The size of the buffer for new values of the t-digest. When the buffer is full, its values are
/// merged into the centroids.
const BUFFERED_VALUES_MAX: usize = 8 * TDIGEST_COMPRESSION as usize;
/// If there are more centroids than this number, the next added value causes neighbouring centroids
/// to be merged.
const CENTROIDS_MAX: usize = 2 * TDIGEST_COMPRESSION as usize;

/// A group of similar values: their mean and their number.
#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    weight: f64,
}

/// A t-digest: centroids in ascending order, a buffer of new values, and the smallest and the
/// largest mean that any centroid has had.
#[derive(Debug, Clone, Default)]
pub(super) struct QuantileDigest {
    centroids: Vec<Centroid>,
    buffer: Vec<Centroid>,
    weight: f64,
    min: f64,
    max: f64,
}

/// Returns the share (0 to 1) of all values that lie below position `k` on the scale of the
/// t-digest.
fn share_at_position(k: f64) -> f64 {
    ((k.min(TDIGEST_COMPRESSION) * PI / TDIGEST_COMPRESSION - PI / 2.0).sin() + 1.0) / 2.0
}

/// Returns the position on the scale of the t-digest for a share of all values; the inverse of
/// [`share_at_position`].
fn position_of_share(share: f64) -> f64 {
    TDIGEST_COMPRESSION * ((2.0 * share - 1.0).asin() + PI / 2.0) / PI
}

impl QuantileDigest {
    pub(super) fn add(&mut self, value: f64) {
        self.buffer.push(Centroid { mean: value, weight: 1.0 });
        if self.buffer.len() > BUFFERED_VALUES_MAX || self.centroids.len() > CENTROIDS_MAX {
            self.merge_buffer();
        }
    }

    fn merge_buffer(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let begun = !self.centroids.is_empty();
        self.weight += self.buffer.iter().map(|centroid| centroid.weight).sum::<f64>();
        let mut all = std::mem::take(&mut self.buffer);
        all.append(&mut self.centroids);
        all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let mut all = all.into_iter();
        let Some(mut last) = all.next() else { return };
        let (mut before, mut limit) = (last.weight, self.weight * share_at_position(1.0));
        for next in all {
            if before + next.weight <= limit {
                last.weight += next.weight;
                last.mean += next.weight * (next.mean - last.mean) / last.weight;
            } else {
                limit = self.weight * share_at_position(position_of_share(before / self.weight) + 1.0);
                self.centroids.push(std::mem::replace(&mut last, next));
            }
            before += next.weight;
        }
        self.centroids.push(last);
        let (first, last) = (self.centroids[0].mean, last.mean);
        self.min = if begun { self.min.min(first) } else { first };
        self.max = if begun { self.max.max(last) } else { last };
    }

    /// Returns the estimated quantile for a share of 0 to 1. The result is 0 if there are no
    /// values.
    pub(super) fn quantile(&mut self, wanted: f64) -> f64 {
        self.merge_buffer();
        let (Some(first), Some(last)) = (self.centroids.first(), self.centroids.last()) else { return 0.0 };
        if self.centroids.len() == 1 {
            return first.mean;
        }
        let at = wanted * self.weight;
        if at <= first.weight / 2.0 {
            return self.min + 2.0 * at / first.weight * (first.mean - self.min);
        }
        let mut centre = first.weight / 2.0;
        for pair in self.centroids.windows(2) {
            let next = centre + (pair[0].weight + pair[1].weight) / 2.0;
            if next >= at {
                return weighted_mean((pair[0].mean, next - at), (pair[1].mean, at - centre));
            }
            centre = next;
        }
        let past = at - self.weight - last.weight / 2.0;
        weighted_mean((last.mean, past), (self.max, last.weight / 2.0 - past))
    }
}

/// Returns the weighted mean of two pairs of value and weight, limited to the range between both
/// values.
fn weighted_mean(a: (f64, f64), b: (f64, f64)) -> f64 {
    let mean = (a.0 * a.1 + b.0 * b.1) / (a.1 + b.1);
    mean.clamp(a.0.min(b.0), a.0.max(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_many_values_are_close() {
        let mut digest = QuantileDigest::default();
        assert_eq!(digest.quantile(0.5), 0.0);
        // The values are 0 to 10,006, each once, in shuffled order.
        (0..10_007u64).for_each(|n| digest.add((n * 4_999 % 10_007) as f64));
        for (share, slack) in [(0.0, 1.0), (0.01, 10.0), (0.5, 100.0), (0.99, 10.0), (0.9999, 2.0), (1.0, 1.0)] {
            let value = digest.quantile(share);
            assert!((value - share * 10_006.0).abs() <= slack, "{share}: {value}");
        }
        assert!(digest.centroids.len() <= CENTROIDS_MAX, "{}", digest.centroids.len());
        let mut one = QuantileDigest::default();
        one.add(5.0);
        assert_eq!((one.quantile(0.0), one.quantile(1.0)), (5.0, 5.0));
    }
}
