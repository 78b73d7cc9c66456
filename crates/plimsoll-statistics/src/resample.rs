//! The effect of build B compared with build A ([`EffectEstimate`]): the ratio of the two sides
//! over all blocks, with the uncertainty from randomisation. A block is one load on each side, in
//! random order.
//!
//! Suppose B differs from A only by a constant factor, and the values of B are divided by this
//! factor. Because the order of the loads is random, the remaining difference in each block has
//! either sign with equal probability. The equal probability of both signs follows from the random
//! order alone, whatever the machine does.
//!
//! So a sign-flip test of the *mean* can test each possible factor. The confidence interval
//! consists of the factors that the sign-flip test does not reject. The ends of the interval follow
//! from the typical values of Hartigan (1969). A random subset of the blocks (a half in the code)
//! contains each block with probability 1/2. The ratio over a random subset is below or above the
//! true factor with equal probability. So the ends of the interval are two order statistics of the
//! ratios over random subsets.
//!
//! The interval keeps its error probability for any number of blocks, if the machine drifts, and if
//! the values have heavy tails. Disturbed blocks widen the interval. Disturbed blocks also move the
//! interval, because the mean includes them.
//!
//! Not here: the times of evaluation, and the verdict.

use crate::basics::{ConfidenceInterval, median, normal_tail, upper_normal_quantile};
use plimsoll_model::histogram::{BUCKET_COUNT, bucket_highest_value, bucket_lowest_value};
use plimsoll_model::rng::Rng;
use std::collections::BTreeMap;

/// Up to this number of blocks, all non-empty subsets of the blocks are used. For more blocks, only
/// [`RANDOM_SUBSETS_COUNT`] random subsets are used.
const EXACT_BLOCKS_MAX: usize = 12;
/// Number of random subsets of the blocks. As many random subsets are drawn as [`EXACT_BLOCKS_MAX`]
/// blocks have non-empty subsets.
const RANDOM_SUBSETS_COUNT: usize = (1 << EXACT_BLOCKS_MAX) - 1;
/// The outermost rank, counted from either end, at which an order statistic is used directly. Order
/// statistics farther out would depend on which random subsets were drawn, so a normal tail
/// replaces them. Sums of random signs have lighter tails than the normal distribution, so the
/// replacement makes the interval wider.
const ORDER_STATISTIC_MIN: usize = 16;
/// Largest number of time ranges in which a distribution of times is stored. The time ranges lie
/// between the smallest and the largest quantile of any block.
const TIME_RANGES_MAX: usize = 48;

/// The figure of one side in a block, as a numerator and a divisor: successes and seconds, or CPU
/// time and responses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BlockRatio {
    /// The numerator of the figure: successes, CPU time, and so on.
    pub numerator: f64,
    /// The divisor of the figure: seconds, responses, and so on.
    pub divisor: f64,
}

/// The response times of all requests that a load scheduled. A request that did not succeed counts
/// as slower than any bound.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadResponseTimes {
    /// Number of scheduled requests.
    pub scheduled: u64,
    /// The occupied buckets of the histogram of successes: (bucket, number of successes up to and
    /// including this bucket), ascending.
    pub succeeded: Vec<(u32, u64)>,
}

impl LoadResponseTimes {
    /// Creates the times from a histogram's buckets, ascending: (bucket, count). The `succeeded`
    /// fastest requests are the successes.
    pub fn new(scheduled: u64, succeeded: u64, buckets: impl Iterator<Item = (usize, u64)>) -> LoadResponseTimes {
        let mut sum = 0;
        let mut until = Vec::new();
        for (bucket, count) in buckets {
            if sum >= succeeded {
                break;
            }
            sum = (sum + count).min(succeeded);
            until.push((bucket as u32, sum));
        }
        LoadResponseTimes { scheduled: scheduled.max(sum), succeeded: until }
    }

    /// Returns the number of successes in this bucket or below.
    fn successes_up_to_bucket(&self, bucket: u32) -> u64 {
        let after = self.succeeded.partition_point(|(at, _)| *at <= bucket);
        after.checked_sub(1).map_or(0, |last| self.succeeded[last].1)
    }

    /// Returns the number of successes.
    pub fn succeeded(&self) -> u64 {
        self.succeeded.last().map_or(0, |last| last.1)
    }

    /// Returns the histogram bucket of the time within which a share `q` of all requests has
    /// succeeded. Returns `None` if a smaller share succeeded.
    fn quantile_bucket(&self, q: f64) -> Option<u32> {
        // The small subtraction compensates for the rounding error of products such as 0.99 * 100.
        let rank = ((q * self.scheduled as f64 - 1e-6).ceil() as u64).max(1);
        let at = self.succeeded.partition_point(|(_, until)| *until < rank);
        self.succeeded.get(at).map(|(bucket, _)| *bucket)
    }

    /// Returns the time within which a share `q` of all requests has succeeded, ns. The time is
    /// infinite if a smaller share succeeded.
    pub fn quantile_ns(&self, q: f64) -> f64 {
        self.quantile_bucket(q).map_or(f64::INFINITY, |bucket| {
            (bucket_lowest_value(bucket as usize) as f64 + bucket_highest_value(bucket as usize) as f64) / 2.0
        })
    }

    /// Returns the number of scheduled requests beyond the quantile `q`.
    pub fn requests_beyond_quantile(&self, q: f64) -> f64 {
        (1.0 - q) * self.scheduled as f64
    }
}

/// The effect of B compared with A, and its uncertainty. The effect is the logarithm of B/A. For
/// the added cost of a request, the effect is the difference B - A.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectEstimate {
    /// The estimate from all blocks.
    pub estimate: f64,
    /// Number of blocks (a block is one load on each side).
    pub blocks: usize,
    /// The value of each side over all blocks, in the unit of the measure.
    pub levels: [f64; 2],
    /// The estimates from subsets of the blocks, ascending.
    subset_estimates: Vec<f64>,
    /// The resolution: the error of the estimate that comes from counting whole requests, in the
    /// unit of the estimate. Every interval extends at least by the resolution on both sides of the
    /// estimate, and no smaller difference counts as real. The resolution is 0 if the scatter of
    /// the blocks includes the error of counting whole requests.
    resolution: f64,
}

/// Calls `compute` with subsets of `blocks` blocks, each a list of block indices, and returns the
/// results. The subsets are all non-empty subsets of few blocks, but only random subsets of many
/// blocks.
fn map_block_subsets(blocks: usize, compute: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    let mut rng = Rng::for_stream(0x4A1F, blocks as u64);
    let exact = blocks <= EXACT_BLOCKS_MAX;
    let count = if exact { (1usize << blocks) - 1 } else { RANDOM_SUBSETS_COUNT };
    let mut subset = Vec::with_capacity(blocks);
    let compute_one = |number: usize| {
        subset.clear();
        for first in (0..blocks).step_by(64) {
            let part = u64::MAX >> (64 - (blocks - first).min(64));
            let mut members = part & if exact { number as u64 } else { rng.next_u64() };
            while members != 0 {
                subset.push(first + members.trailing_zeros() as usize);
                members &= members - 1;
            }
        }
        compute(&subset)
    };
    (1..=count).map(compute_one).collect()
}

fn log_ratio(a: f64, b: f64) -> f64 {
    (b / a).ln()
}

/// Returns the resolution of the count of each side: one request as a share of the count. A window
/// contains up to one request more or fewer than the request rate times the window's length. If the
/// counts of the blocks scatter by at least one request, the scatter includes the error of counting
/// whole requests. If the counts of the blocks scatter so much, the resolution is 0. A server with
/// constant response times has the same counting error in every block, so no number of blocks
/// removes the error.
fn count_resolutions(amounts: &[[BlockRatio; 2]]) -> [f64; 2] {
    [0, 1].map(|side| {
        let counts: Vec<f64> = amounts.iter().map(|block| block[side].numerator).collect();
        let middle = median(&counts).unwrap_or(0.0);
        let deviations: Vec<f64> = counts.iter().map(|count| (count - middle).abs()).collect();
        let is_hidden = median(&deviations).is_none_or(|deviation| deviation >= 1.0);
        if is_hidden || middle < 1.0 { 0.0 } else { 1.0 / middle }
    })
}

/// Sums the amounts of each side over the given blocks, each multiplied by the weight of its block.
fn weighted_sums(amounts: &[[BlockRatio; 2]], weights: &[f64], blocks: &[usize]) -> [BlockRatio; 2] {
    let mut sums = [BlockRatio::default(); 2];
    for block in blocks {
        for (sum, one) in sums.iter_mut().zip(amounts[*block]) {
            sum.numerator += weights[*block] * one.numerator;
            sum.divisor += weights[*block] * one.divisor;
        }
    }
    sums
}

impl EffectEstimate {
    /// Computes the effect by resampling. `levels` returns the values of both sides over the given
    /// blocks, and `against` compares the two values of `levels`. Returns `None` if there is no
    /// block, or if the comparison gives NaN.
    fn from_resampling(
        blocks: usize,
        levels: impl Fn(&[usize]) -> [f64; 2],
        against: impl Fn(f64, f64) -> f64,
    ) -> Option<EffectEstimate> {
        let all: Vec<usize> = (0..blocks).collect();
        let [a, b] = levels(&all);
        let estimate = against(a, b);
        if blocks == 0 || estimate.is_nan() {
            return None;
        }
        // If both sides are zero or infinite, the comparison of the two sides gives NaN. The code
        // then counts the two sides as equal.
        let mut subset_estimates = map_block_subsets(blocks, |subset| {
            let [a, b] = levels(subset);
            Some(against(a, b)).filter(|value| !value.is_nan()).unwrap_or(0.0)
        });
        subset_estimates.sort_unstable_by(f64::total_cmp);
        Some(EffectEstimate { estimate, blocks, levels: [a, b], subset_estimates, resolution: 0.0 })
    }

    /// Computes how much more server time a request costs in B than in A, in us. `amounts` contains
    /// the successes and the seconds of each side, by block.
    pub fn added_cost_us(amounts: &[[BlockRatio; 2]]) -> Option<EffectEstimate> {
        let costs = |half: &[usize]| {
            weighted_sums(amounts, &vec![1.0; amounts.len()], half).map(|sum| 1e6 * sum.divisor / sum.numerator)
        };
        let effect = EffectEstimate::from_resampling(amounts.len(), costs, |a, b| b - a)?;
        let ([a, b], [cost_a, cost_b]) = (count_resolutions(amounts), effect.levels);
        Some(EffectEstimate { resolution: (a * cost_a).hypot(b * cost_b), ..effect })
    }

    /// Computes the ratio B/A of amounts that are summed over the blocks, each block with its
    /// weight.
    pub fn ratio_of_amounts(amounts: &[[BlockRatio; 2]], weights: &[f64]) -> Option<EffectEstimate> {
        let rates = |half: &[usize]| weighted_sums(amounts, weights, half).map(|sum| sum.numerator / sum.divisor);
        EffectEstimate::from_resampling(amounts.len(), rates, log_ratio)
    }

    /// Computes the ratio B/A of rates whose numerator counts whole requests. `amounts` contains
    /// the counts and the seconds, by block. Each block has a weight in `weights`.
    pub fn ratio_of_counts(amounts: &[[BlockRatio; 2]], weights: &[f64]) -> Option<EffectEstimate> {
        let effect = EffectEstimate::ratio_of_amounts(amounts, weights)?;
        let [a, b] = count_resolutions(amounts);
        Some(EffectEstimate { resolution: a.hypot(b), ..effect })
    }

    /// Computes the ratio B/A of the quantile `q`. The quantile of a side covers the requests of
    /// all blocks together, each block with its weight.
    pub fn ratio_of_quantiles(times: &[[&LoadResponseTimes; 2]], q: f64, weights: &[f64]) -> Option<EffectEstimate> {
        let sides =
            [0, 1].map(|side| QuantileTimeRanges::from_times(times.iter().map(|block| block[side]), q, weights));
        let [Some(a), Some(b)] = sides else { return None };
        EffectEstimate::from_resampling(times.len(), |half| [a.quantile_ns(half), b.quantile_ns(half)], log_ratio)
    }

    /// Returns the interval of the effect at the two-sided error probability `alpha`. Returns
    /// `None` if n blocks are too few to reject any hypothesis at this error probability (2^(1-n) >
    /// `alpha`).
    pub fn interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        let (lower, upper) = (self.estimate - self.resolution, self.estimate + self.resolution);
        self.resampled_interval(alpha)
            .map(|seen| ConfidenceInterval { lower: seen.lower.min(lower), upper: seen.upper.max(upper) })
    }

    fn resampled_interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        let all = self.subset_estimates.len() + 1;
        let order = (alpha / 2.0 * all as f64 + 1e-9) as usize;
        if self.blocks <= EXACT_BLOCKS_MAX || order >= ORDER_STATISTIC_MIN || !self.estimate.is_finite() {
            let order = if self.blocks > EXACT_BLOCKS_MAX { order.max(1) } else { order }.min(all / 2);
            return (order > 0).then(|| ConfidenceInterval {
                lower: self.subset_estimates[order - 1],
                upper: self.subset_estimates[all - 1 - order],
            });
        }
        let wider = upper_normal_quantile(1.0 - alpha / 2.0) / self.order_quantile();
        let end = |order: f64| self.estimate + (order - self.estimate) * wider;
        let (lower, upper) = self.extreme_order_statistics();
        Some(ConfidenceInterval { lower: end(lower), upper: end(upper) })
    }

    /// Returns the lowest and the highest order statistic that are used directly. Beyond these two
    /// order statistics, the tails are assumed to be normal.
    fn extreme_order_statistics(&self) -> (f64, f64) {
        let last = self.subset_estimates.len().saturating_sub(ORDER_STATISTIC_MIN);
        (self.subset_estimates[ORDER_STATISTIC_MIN - 1], self.subset_estimates[last])
    }

    /// Returns how far the outermost directly used order statistics are from the mean, in standard
    /// deviations of a normal distribution.
    fn order_quantile(&self) -> f64 {
        upper_normal_quantile(1.0 - ORDER_STATISTIC_MIN as f64 / (self.subset_estimates.len() + 1) as f64)
    }

    /// Returns the one-sided p-value. If `below` is true, the hypothesis is that B/A is at least 1.
    /// If `below` is false, the hypothesis is that B/A is at most 1.
    pub fn one_sided_p(&self, below: bool) -> f64 {
        let all = (self.subset_estimates.len() + 1) as f64;
        let beyond = match below {
            true => self.subset_estimates.iter().filter(|ln| **ln >= 0.0).count(),
            false => self.subset_estimates.iter().filter(|ln| **ln <= 0.0).count(),
        };
        if self.blocks <= EXACT_BLOCKS_MAX || beyond >= ORDER_STATISTIC_MIN {
            return (beyond + 1) as f64 / all;
        }
        let (lower, upper) = self.extreme_order_statistics();
        let room = if below { upper - self.estimate } else { self.estimate - lower };
        let z = self.estimate.abs() / room.max(f64::MIN_POSITIVE) * self.order_quantile();
        let tail = if z.is_finite() { normal_tail(z.min(35.0)) } else { 0.0 };
        tail.max(0.5f64.powi(self.blocks.min(1000) as i32)).min(ORDER_STATISTIC_MIN as f64 / all)
    }

    /// Returns whether the estimate is larger than its resolution, so that it can be a real
    /// difference.
    pub fn is_resolved(&self) -> bool {
        self.resolution == 0.0 || self.estimate.abs() > self.resolution
    }

    /// Returns the two-sided p-value of the hypothesis "no difference".
    pub fn p_two_sided(&self) -> f64 {
        if !self.is_resolved() {
            return 1.0;
        }
        (2.0 * self.one_sided_p(true).min(self.one_sided_p(false))).min(1.0)
    }
}

/// The response times of one side, divided into time ranges. The time ranges cover all values that
/// the quantile may have in any subset of the blocks.
struct QuantileTimeRanges {
    q: f64,
    /// Number of scheduled requests of each block, multiplied by the block's weight.
    scheduled: Vec<f64>,
    /// The start and the end of each time range, ns. Range 0 stands for all times below range 1.
    ends_ns: Vec<(f64, f64)>,
    /// Number of successes up to the end of each time range, by range and by block, multiplied by
    /// the block's weight.
    successes_to_end: Vec<Vec<f64>>,
}

impl QuantileTimeRanges {
    /// Creates the time ranges; `None` if no request succeeded.
    fn from_times<'a>(
        times: impl Iterator<Item = &'a LoadResponseTimes>,
        q: f64,
        weights: &[f64],
    ) -> Option<QuantileTimeRanges> {
        let times: Vec<&LoadResponseTimes> = times.collect();
        // The quantile over several blocks lies between the smallest and the largest quantile of
        // these blocks.
        let least = times.iter().filter_map(|one| one.quantile_bucket(q)).min();
        let last = times.iter().filter_map(|one| one.succeeded.last()).map(|last| last.0).max()?;
        let most = times.iter().map(|one| one.quantile_bucket(q).unwrap_or(last)).max()?;
        let least = least.unwrap_or(last).min(most);
        let mut mass: BTreeMap<u32, u64> = BTreeMap::new();
        for one in &times {
            let mut before = one.successes_up_to_bucket(least.saturating_sub(1));
            for (bucket, until) in one.succeeded.iter().filter(|(bucket, _)| (least..=most).contains(bucket)) {
                *mass.entry(*bucket).or_default() += until - before;
                before = *until;
            }
        }
        let step = mass.values().sum::<u64>() as f64 / TIME_RANGES_MAX as f64;
        // The first and the last histogram bucket of each time range.
        let mut buckets: Vec<(u32, u32)> = Vec::new();
        let (mut sum, mut next, mut first) = (0, 0.0, None);
        let greatest = *mass.last_key_value()?.0;
        for (bucket, count) in mass {
            sum += count;
            let begins = *first.get_or_insert(bucket);
            if sum as f64 >= next || bucket == greatest {
                buckets.push((begins, bucket));
                (next, first) = (sum as f64 + step, None);
            }
        }
        let start_ns = bucket_lowest_value(buckets.first()?.0 as usize) as f64;
        let weighted = |bucket: u32| {
            times
                .iter()
                .zip(weights)
                .map(|(one, weight)| one.successes_up_to_bucket(bucket) as f64 * weight)
                .collect::<Vec<f64>>()
        };
        let mut until = vec![weighted(least.saturating_sub(1))];
        until.extend(buckets.iter().map(|(_, last)| weighted(*last)));
        let mut ends_ns = vec![(start_ns, start_ns)];
        let ends = |(first, last): &(u32, u32)| {
            (
                bucket_lowest_value(*first as usize) as f64,
                bucket_highest_value((*last as usize).min(BUCKET_COUNT - 1)) as f64,
            )
        };
        ends_ns.extend(buckets.iter().map(ends));
        let scheduled = times.iter().zip(weights).map(|(one, weight)| one.scheduled as f64 * weight).collect();
        Some(QuantileTimeRanges { q, scheduled, ends_ns, successes_to_end: until })
    }

    /// Returns the quantile in ns over the requests of the given blocks together. The quantile is
    /// infinite if too many requests did not succeed.
    fn quantile_ns(&self, blocks: &[usize]) -> f64 {
        let sum = |of: &[f64]| blocks.iter().map(|block| of[*block]).sum::<f64>();
        let rank = self.q * sum(&self.scheduled) - 1e-6;
        let (mut low, mut high) = (0, self.successes_to_end.len());
        while low < high {
            let middle = (low + high) / 2;
            if sum(&self.successes_to_end[middle]) < rank { low = middle + 1 } else { high = middle }
        }
        if low >= self.successes_to_end.len() {
            return f64::INFINITY;
        }
        let (begins_ns, ends_ns) = self.ends_ns[low];
        let Some(before) = low.checked_sub(1) else { return begins_ns };
        // Within a time range, times are assumed to be uniformly distributed.
        let (from, to) = (sum(&self.successes_to_end[before]), sum(&self.successes_to_end[low]));
        let part = if to > from { ((rank - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        begins_ns + (ends_ns - begins_ns) * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::histogram::bucket_index;

    fn effect_of_pairs(values: &[(f64, f64)]) -> EffectEstimate {
        let amounts: Vec<[BlockRatio; 2]> = values
            .iter()
            .map(|(a, b)| [BlockRatio { numerator: *a, divisor: 1.0 }, BlockRatio { numerator: *b, divisor: 1.0 }])
            .collect();
        EffectEstimate::ratio_of_amounts(&amounts, &vec![1.0; values.len()]).expect("blocks")
    }

    /// Checks that the ratios of the seven non-empty subsets of three blocks equal the ratios
    /// computed by hand. Subsets of one block have the ratios 1/2, 1 and 2. A subset of several
    /// blocks has a ratio of sums, such as (1+1)/(2+1) = 2/3.
    #[test]
    fn few_blocks_use_every_subset() {
        let effect = effect_of_pairs(&[(2.0, 1.0), (1.0, 1.0), (1.0, 2.0)]);
        assert!((effect.estimate - 0.0).abs() < 1e-12);
        let seven: Vec<f64> = effect.subset_estimates.iter().map(|ln| (ln.exp() * 1e6).round() / 1e6).collect();
        assert_eq!(seven, [0.5, 0.666667, 1.0, 1.0, 1.0, 1.5, 2.0]);
        // The seven ratios leave 8 gaps, of which 2 lie outside the interval from the smallest to
        // the largest ratio. So the error probability of the widest interval is 2/8.
        assert_eq!(effect.interval(0.25).map(|i| (i.lower.exp(), i.upper.exp())), Some((0.5, 2.0)));
        assert_eq!(effect.interval(0.24), None);
        assert_eq!(effect.p_two_sided(), 1.0);
        // B is better in all blocks, which is the strongest evidence that a sign-flip test can
        // find.
        assert_eq!(effect_of_pairs(&[(1.0, 2.0); 5]).p_two_sided(), 2.0 / 32.0);
        assert_eq!(effect_of_pairs(&[(1.0, 2.0); 5]).one_sided_p(true), 1.0);
    }

    /// Checks that outlier blocks (here: a tenth of B's value) move the mean in proportion to their
    /// size. Outlier blocks also widen the interval, so that the interval keeps its error
    /// probability.
    #[test]
    fn a_tenth_of_bad_blocks_moves_the_estimate_and_widens_the_interval() {
        let good: Vec<(f64, f64)> =
            (0..40).map(|n| (100.0 + f64::from(n % 5), 100.0 + f64::from((n + 2) % 5))).collect();
        let mut bad = good.clone();
        bad.iter_mut().step_by(10).for_each(|(_, b)| *b *= 0.1);
        let (good, bad) = (effect_of_pairs(&good), effect_of_pairs(&bad));
        assert!((bad.estimate.exp() - 0.91).abs() < 0.005, "{}", bad.estimate.exp());
        let [narrow, wide] = [good, bad].map(|effect| effect.interval(0.05).expect("an interval").half_width());
        assert!(narrow < 0.01 && wide > 0.05, "{narrow} {wide}");
    }

    #[test]
    fn intervals_widen_with_smaller_error_probability() {
        let effect = effect_of_pairs(
            &(0..30).map(|n| (100.0 + f64::from(n % 7), 104.0 + f64::from((n * 3) % 7))).collect::<Vec<_>>(),
        );
        let widths: Vec<f64> = [0.05, 0.02, 0.0079, 0.0077, 0.001, 1e-5]
            .map(|alpha| effect.interval(alpha).expect("an interval").half_width())
            .into();
        assert!(widths.windows(2).all(|pair| pair[0] < pair[1] * 1.05), "{widths:?}");
        assert!(widths[5] < 2.5 * widths[0], "{widths:?}");
        let p = effect.p_two_sided();
        assert!((1e-9..1e-3).contains(&p), "{p}");
    }

    /// Checks that even equal counts in all blocks do not show a difference below one request. A
    /// count of 140 in 0.7 s may mean 199/s or 201/s.
    #[test]
    fn intervals_are_not_narrower_than_one_request() {
        let counted = |values: &[(f64, f64)]| {
            let amount = |of: f64| BlockRatio { numerator: of, divisor: 0.7 };
            let amounts: Vec<[BlockRatio; 2]> = values.iter().map(|(a, b)| [amount(*a), amount(*b)]).collect();
            EffectEstimate::ratio_of_counts(&amounts, &vec![1.0; values.len()]).expect("blocks")
        };
        let percent = |effect: &EffectEstimate| {
            effect.interval(0.05).map(|i| [i.lower, i.upper].map(|end| (end.exp_m1() * 1000.0).round() / 10.0))
        };
        assert_eq!(percent(&counted(&[(140.0, 140.0); 20])), Some([-1.0, 1.0]));
        assert_eq!(percent(&counted(&[(140.0, 280.0); 20])), Some([98.4, 101.6]));
        let one_more = counted(&[(140.0, 141.0); 20]);
        assert_eq!((percent(&one_more), one_more.p_two_sided()), (Some([-0.3, 1.7]), 1.0));
        assert!(counted(&[(140.0, 144.0); 20]).p_two_sided() < 0.001);
        // If the counts of the blocks scatter, the scatter includes the counting error of one
        // request.
        let scattered: Vec<(f64, f64)> =
            (0..40).map(|n| (140.0 + f64::from(n * 7 % 9), 140.0 + f64::from(n * 5 % 9))).collect();
        assert_eq!(counted(&scattered).resolution, 0.0);
    }

    fn ledger_times(scheduled: u64, ms: &[u64]) -> LoadResponseTimes {
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        ms.iter().for_each(|ms| *buckets.entry(bucket_index(ms * 1_000_000)).or_default() += 1);
        LoadResponseTimes::new(scheduled, ms.len() as u64, buckets.into_iter())
    }

    #[test]
    fn failures_are_slower_than_any_bound() {
        let answered: Vec<u64> = (1..=95).collect();
        for (scheduled, q, expect_ms) in
            [(95, 0.5, 48.0), (100, 0.5, 50.0), (190, 0.5, 95.0), (200, 0.5, f64::INFINITY), (100, 0.99, f64::INFINITY)]
        {
            let got = ledger_times(scheduled, &answered).quantile_ns(q) / 1e6;
            assert!(got == expect_ms || (got / expect_ms - 1.0).abs() < 1e-3, "{q} of {scheduled}: {got}");
        }
        // If a server fails its slow requests immediately, its p99 does not improve.
        let slow: Vec<u64> = (1..=100).map(|n| if n > 95 { 400 } else { 20 }).collect();
        let quick: Vec<u64> = (1..=95).map(|_| 20).collect();
        let blocks: Vec<[LoadResponseTimes; 2]> =
            (0..12).map(|_| [ledger_times(100, &slow), ledger_times(100, &quick)]).collect();
        let both: Vec<[&LoadResponseTimes; 2]> = blocks.iter().map(|[a, b]| [a, b]).collect();
        let effect = EffectEstimate::ratio_of_quantiles(&both, 0.99, &[1.0; 12]).expect("blocks");
        assert!(effect.estimate == f64::INFINITY && effect.levels[1] == f64::INFINITY, "{effect:?}");
        let effect = EffectEstimate::ratio_of_quantiles(&both, 0.5, &[1.0; 12]).expect("blocks");
        assert!(effect.estimate.abs() < 1e-3 && (effect.levels[0] / 20e6 - 1.0).abs() < 1e-3, "{effect:?}");
    }

    /// Checks that the quantile covers the requests of all blocks together. The quantile is not the
    /// median of the quantiles of the blocks.
    #[test]
    fn quantiles_cover_requests_of_all_blocks() {
        let quick: Vec<u64> = (0..100).map(|n| 10 + n % 3).collect();
        let slow: Vec<u64> = (0..100).map(|n| if n < 20 { 500 } else { 10 + n % 3 }).collect();
        let blocks: Vec<[LoadResponseTimes; 2]> = (0..20)
            .map(|n| [ledger_times(100, &quick), ledger_times(100, if n == 0 { &slow } else { &quick })])
            .collect();
        let both: Vec<[&LoadResponseTimes; 2]> = blocks.iter().map(|[a, b]| [a, b]).collect();
        // 20 of 2 000 requests are slow. The slow requests are 1 % of all requests, but all slow
        // requests are in one block.
        let effect = EffectEstimate::ratio_of_quantiles(&both, 0.995, &[1.0; 20]).expect("blocks");
        assert!(effect.levels[1] > 400e6 && effect.levels[0] < 13e6, "{:?}", effect.levels);
        assert!(EffectEstimate::ratio_of_quantiles(&[], 0.5, &[]).is_none());
    }
}
