//! The effect of B over A ([`ProvedEffect`]): the ratio of the two sides over all blocks, with the
//! uncertainty from randomisation. A block is one load on each side, in random order.
//!
//! If B were A times a factor, the difference in each block could have had the opposite sign with
//! equal probability, whatever the machine did.
//!
//! A sign-flip test of the *mean* rejects some factors. The factors that it does not reject follow
//! from the typical values of Hartigan (1969). Take the ratio over random halves of the blocks,
//! where each block is in a half with probability 1/2. Such a ratio is below or above the true
//! factor with equal probability. So an interval consists of two order statistics of the ratios of
//! halves.
//!
//! The interval holds at any number of blocks, under drift and heavy tails. Disturbed blocks widen
//! the interval, and bad blocks move it, because the mean includes them.
//!
//! Not here: when to evaluate, and what to conclude (`looks`, `verdict`).

use super::stats::{ConfidenceInterval, median, normal_quantile, normal_tail};
use plimsoll_model::histogram::{BUCKETS, highest_of, lowest_of};
use plimsoll_model::rng::Rng;
use std::collections::BTreeMap;

/// Up to this number of blocks, every half (subset of the blocks) is used. For more blocks,
/// [`HALVES`] random halves are used.
const EXACT_BLOCKS_MAX: usize = 12;
/// Number of random halves (subsets of the blocks): as many as [`EXACT_BLOCKS_MAX`] blocks have in
/// all.
const HALVES: usize = (1 << EXACT_BLOCKS_MAX) - 1;
/// The smallest order statistic that is used directly. Farther out, few random halves would decide
/// by chance, so the tail is normal from this point on. Sums of random signs have lighter tails, so
/// the error makes the interval wider.
const ORDER_STATISTIC_MIN: usize = 16;
/// Largest number of points at which a distribution of times is evaluated. The points lie between
/// the minimum and the maximum of the quantile in any block.
const CUTS_MAX: usize = 48;

/// The figure of one side in a block, as an amount and its divisor: successes and seconds, or CPU
/// time and responses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BlockAmount {
    /// The numerator of the figure: successes, CPU time, and so on.
    pub of: f64,
    /// The divisor of the figure: seconds, responses, and so on.
    pub per: f64,
}

/// The times of all requests that a load scheduled. A request without success is slower than any
/// bound.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LedgerTimes {
    /// Number of scheduled requests.
    pub scheduled: u64,
    /// The occupied buckets of the histogram of successes: (bucket, number of successes up to and
    /// including this bucket), ascending.
    pub succeeded: Vec<(u32, u64)>,
}

impl LedgerTimes {
    /// Creates the times of a ledger from its buckets, ascending. The `succeeded` fastest requests
    /// are successes.
    pub fn new(scheduled: u64, succeeded: u64, buckets: impl Iterator<Item = (usize, u64)>) -> LedgerTimes {
        let mut sum = 0;
        let mut until = Vec::new();
        for (bucket, count) in buckets {
            if sum >= succeeded {
                break;
            }
            sum = (sum + count).min(succeeded);
            until.push((bucket as u32, sum));
        }
        LedgerTimes { scheduled: scheduled.max(sum), succeeded: until }
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

    /// Returns the bucket of the time within which a share `q` of all requests has succeeded;
    /// `None` if a smaller share succeeded.
    fn bucket(&self, q: f64) -> Option<u32> {
        // The small subtraction compensates the rounding error of products such as 0.99 * 100.
        let rank = ((q * self.scheduled as f64 - 1e-6).ceil() as u64).max(1);
        let at = self.succeeded.partition_point(|(_, until)| *until < rank);
        self.succeeded.get(at).map(|(bucket, _)| *bucket)
    }

    /// Returns the time within which a share `q` of all requests has succeeded, ns; infinite if a
    /// smaller share succeeded.
    pub fn quantile_ns(&self, q: f64) -> f64 {
        self.bucket(q).map_or(f64::INFINITY, |bucket| {
            (lowest_of(bucket as usize) as f64 + highest_of(bucket as usize) as f64) / 2.0
        })
    }

    /// Returns the number of requests beyond the quantile `q`.
    pub fn beyond(&self, q: f64) -> f64 {
        (1.0 - q) * self.scheduled as f64
    }
}

/// The effect of B compared with A, and its uncertainty. The effect is the logarithm of B/A, or for
/// costs the difference B - A.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvedEffect {
    /// The estimate from all blocks.
    pub estimate: f64,
    /// Number of blocks.
    pub blocks: usize,
    /// The value of each side over all blocks, in the unit of the measure.
    pub levels: [f64; 2],
    /// The estimates from halves of the blocks, ascending.
    halves: Vec<f64>,
    /// The resolution of the estimate: every interval reaches at least this far from the estimate,
    /// and no smaller difference is real. Zero if the blocks' scatter hides the resolution.
    resolution: f64,
}

/// Returns the halves (subsets) of `blocks` blocks, each as the indices of its blocks. The result
/// has all halves, or random halves for many blocks.
fn halves(blocks: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut rng = Rng::stream(0x4A1F, blocks as u64);
    let exact = blocks <= EXACT_BLOCKS_MAX;
    let count = if exact { (1usize << blocks) - 1 } else { HALVES };
    (1..=count).map(move |number| {
        let mut bits = number as u64;
        let mut half = Vec::with_capacity(blocks);
        for block in 0..blocks {
            if !exact && block % 64 == 0 {
                bits = rng.next_u64();
            }
            if bits & 1 == 1 {
                half.push(block);
            }
            bits >>= 1;
        }
        half
    })
}

fn log_ratio(a: f64, b: f64) -> f64 {
    (b / a).ln()
}

/// Returns the resolution of the count of each side, as a share of the count. A window contains up
/// to one request more or fewer than rate and length give. If the counts scatter by a request or
/// more, this error differs from block to block, and the scatter includes it. A server with
/// constant response times has the same error in every block, so that no number of blocks removes
/// it.
fn count_resolutions(amounts: &[[BlockAmount; 2]]) -> [f64; 2] {
    [0, 1].map(|side| {
        let counts: Vec<f64> = amounts.iter().map(|block| block[side].of).collect();
        let middle = median(&counts).unwrap_or(0.0);
        let deviations: Vec<f64> = counts.iter().map(|count| (count - middle).abs()).collect();
        let is_hidden = median(&deviations).is_none_or(|deviation| deviation >= 1.0);
        if is_hidden || middle < 1.0 { 0.0 } else { 1.0 / middle }
    })
}

/// Sums the amounts of both sides over some blocks, each with its weight.
fn sums(amounts: &[[BlockAmount; 2]], weights: &[f64], blocks: &[usize]) -> [BlockAmount; 2] {
    let mut sums = [BlockAmount::default(); 2];
    for block in blocks {
        for (sum, one) in sums.iter_mut().zip(amounts[*block]) {
            sum.of += weights[*block] * one.of;
            sum.per += weights[*block] * one.per;
        }
    }
    sums
}

impl ProvedEffect {
    /// Computes the effect by resampling. `levels` returns the values of both sides over the given
    /// blocks, and `against` compares the two values. Returns `None` without blocks, or if the
    /// comparison is not a number.
    fn resample(
        blocks: usize,
        levels: impl Fn(&[usize]) -> [f64; 2],
        against: impl Fn(f64, f64) -> f64,
    ) -> Option<ProvedEffect> {
        let all: Vec<usize> = (0..blocks).collect();
        let [a, b] = levels(&all);
        let estimate = against(a, b);
        if blocks == 0 || estimate.is_nan() {
            return None;
        }
        // If both sides are zero, or both infinite, they are equal.
        let half = |half: Vec<usize>| {
            let [a, b] = levels(&half);
            Some(against(a, b)).filter(|value| !value.is_nan()).unwrap_or(0.0)
        };
        let mut of_halves: Vec<f64> = halves(blocks).map(half).collect();
        of_halves.sort_unstable_by(f64::total_cmp);
        Some(ProvedEffect { estimate, blocks, levels: [a, b], halves: of_halves, resolution: 0.0 })
    }

    /// Computes the added cost of a request in B over A, in us. `amounts` are the successes of each
    /// side and their seconds, by block.
    pub fn added_cost_us(amounts: &[[BlockAmount; 2]]) -> Option<ProvedEffect> {
        let costs = |half: &[usize]| sums(amounts, &vec![1.0; amounts.len()], half).map(|sum| 1e6 * sum.per / sum.of);
        let effect = ProvedEffect::resample(amounts.len(), costs, |a, b| b - a)?;
        let ([a, b], [cost_a, cost_b]) = (count_resolutions(amounts), effect.levels);
        Some(ProvedEffect { resolution: (a * cost_a).hypot(b * cost_b), ..effect })
    }

    /// Computes the ratio of sums of amounts, each block with its weight.
    pub fn ratio_of_amounts(amounts: &[[BlockAmount; 2]], weights: &[f64]) -> Option<ProvedEffect> {
        let rates = |half: &[usize]| sums(amounts, weights, half).map(|sum| sum.of / sum.per);
        ProvedEffect::resample(amounts.len(), rates, log_ratio)
    }

    /// Computes the ratio of rates of whole requests: counts and seconds, each block with its
    /// weight.
    pub fn ratio_of_counts(amounts: &[[BlockAmount; 2]], weights: &[f64]) -> Option<ProvedEffect> {
        let effect = ProvedEffect::ratio_of_amounts(amounts, weights)?;
        let [a, b] = count_resolutions(amounts);
        Some(ProvedEffect { resolution: a.hypot(b), ..effect })
    }

    /// Computes the ratio of the quantile `q` of all requests of each side together, each block
    /// with its weight.
    pub fn ratio_of_quantiles(times: &[[&LedgerTimes; 2]], q: f64, weights: &[f64]) -> Option<ProvedEffect> {
        let sides = [0, 1].map(|side| Cuts::from_times(times.iter().map(|block| block[side]), q, weights));
        let [Some(a), Some(b)] = sides else { return None };
        ProvedEffect::resample(times.len(), |half| [a.quantile_ns(half), b.quantile_ns(half)], log_ratio)
    }

    /// Returns the interval of the estimate at the two-sided error probability `alpha`. Returns
    /// `None` if there are too few blocks to reject anything at that error (2^(1-n) > `alpha`).
    pub fn interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        let (lower, upper) = (self.estimate - self.resolution, self.estimate + self.resolution);
        self.resampled_interval(alpha)
            .map(|seen| ConfidenceInterval { lower: seen.lower.min(lower), upper: seen.upper.max(upper) })
    }

    fn resampled_interval(&self, alpha: f64) -> Option<ConfidenceInterval> {
        let all = self.halves.len() + 1;
        let order = (alpha / 2.0 * all as f64 + 1e-9) as usize;
        if self.blocks <= EXACT_BLOCKS_MAX || order >= ORDER_STATISTIC_MIN || !self.estimate.is_finite() {
            let order = if self.blocks > EXACT_BLOCKS_MAX { order.max(1) } else { order }.min(all / 2);
            return (order > 0)
                .then(|| ConfidenceInterval { lower: self.halves[order - 1], upper: self.halves[all - 1 - order] });
        }
        let wider = normal_quantile(1.0 - alpha / 2.0) / self.order_quantile();
        let end = |order: f64| self.estimate + (order - self.estimate) * wider;
        let (lower, upper) = self.ends();
        Some(ConfidenceInterval { lower: end(lower), upper: end(upper) })
    }

    /// Returns the outermost order statistics that are used directly. Beyond them the tails are
    /// normal.
    fn ends(&self) -> (f64, f64) {
        let last = self.halves.len().saturating_sub(ORDER_STATISTIC_MIN);
        (self.halves[ORDER_STATISTIC_MIN - 1], self.halves[last])
    }

    /// Returns the distance of the outermost order statistics from the mean, in standard deviations
    /// of a normal distribution.
    fn order_quantile(&self) -> f64 {
        normal_quantile(1.0 - ORDER_STATISTIC_MIN as f64 / (self.halves.len() + 1) as f64)
    }

    /// Returns the one-sided p-value of the hypothesis that B/A is 1 or more if `below`, otherwise
    /// 1 or less.
    pub fn one_sided_p(&self, below: bool) -> f64 {
        let all = (self.halves.len() + 1) as f64;
        let beyond = match below {
            true => self.halves.iter().filter(|ln| **ln >= 0.0).count(),
            false => self.halves.iter().filter(|ln| **ln <= 0.0).count(),
        };
        if self.blocks <= EXACT_BLOCKS_MAX || beyond >= ORDER_STATISTIC_MIN {
            return (beyond + 1) as f64 / all;
        }
        let (lower, upper) = self.ends();
        let room = if below { upper - self.estimate } else { self.estimate - lower };
        let z = self.estimate.abs() / room.max(f64::MIN_POSITIVE) * self.order_quantile();
        let tail = if z.is_finite() { normal_tail(z.min(35.0)) } else { 0.0 };
        tail.max(0.5f64.powi(self.blocks.min(1000) as i32)).min(ORDER_STATISTIC_MIN as f64 / all)
    }

    /// Returns whether the estimate exceeds its resolution.
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

/// The times of one side, divided into cuts (ranges of time). The cuts cover the values that the
/// quantile of any half of the blocks may have.
struct Cuts {
    q: f64,
    /// Number of scheduled requests by block, weighted.
    scheduled: Vec<f64>,
    /// The first and the last time of each cut, ns. Cut 0 stands for all times below cut 1.
    ends_ns: Vec<(f64, f64)>,
    /// Number of successes up to each cut, by cut and block, weighted.
    until: Vec<Vec<f64>>,
}

impl Cuts {
    /// Creates the cuts; `None` without a success.
    fn from_times<'a>(times: impl Iterator<Item = &'a LedgerTimes>, q: f64, weights: &[f64]) -> Option<Cuts> {
        let times: Vec<&LedgerTimes> = times.collect();
        // The quantile of a mixture lies between the minimum and the maximum of its parts.
        let least = times.iter().filter_map(|one| one.bucket(q)).min();
        let last = times.iter().filter_map(|one| one.succeeded.last()).map(|last| last.0).max()?;
        let most = times.iter().map(|one| one.bucket(q).unwrap_or(last)).max()?;
        let least = least.unwrap_or(last).min(most);
        let mut mass: BTreeMap<u32, u64> = BTreeMap::new();
        for one in &times {
            let mut before = one.successes_up_to_bucket(least.saturating_sub(1));
            for (bucket, until) in one.succeeded.iter().filter(|(bucket, _)| (least..=most).contains(bucket)) {
                *mass.entry(*bucket).or_default() += until - before;
                before = *until;
            }
        }
        let step = mass.values().sum::<u64>() as f64 / CUTS_MAX as f64;
        // The first and the last bucket of each cut.
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
        let start_ns = lowest_of(buckets.first()?.0 as usize) as f64;
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
            (lowest_of(*first as usize) as f64, highest_of((*last as usize).min(BUCKETS - 1)) as f64)
        };
        ends_ns.extend(buckets.iter().map(ends));
        let scheduled = times.iter().zip(weights).map(|(one, weight)| one.scheduled as f64 * weight).collect();
        Some(Cuts { q, scheduled, ends_ns, until })
    }

    /// Returns the quantile over these blocks together, ns; infinite if too many requests did not
    /// succeed.
    fn quantile_ns(&self, blocks: &[usize]) -> f64 {
        let sum = |of: &[f64]| blocks.iter().map(|block| of[*block]).sum::<f64>();
        let rank = self.q * sum(&self.scheduled) - 1e-6;
        let (mut low, mut high) = (0, self.until.len());
        while low < high {
            let middle = (low + high) / 2;
            if sum(&self.until[middle]) < rank { low = middle + 1 } else { high = middle }
        }
        if low >= self.until.len() {
            return f64::INFINITY;
        }
        let (begins_ns, ends_ns) = self.ends_ns[low];
        let Some(before) = low.checked_sub(1) else { return begins_ns };
        // Within a cut, times are assumed to be uniformly distributed.
        let (from, to) = (sum(&self.until[before]), sum(&self.until[low]));
        let part = if to > from { ((rank - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        begins_ns + (ends_ns - begins_ns) * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::histogram::index_of;

    fn ratios(values: &[(f64, f64)]) -> ProvedEffect {
        let amounts: Vec<[BlockAmount; 2]> =
            values.iter().map(|(a, b)| [BlockAmount { of: *a, per: 1.0 }, BlockAmount { of: *b, per: 1.0 }]).collect();
        ProvedEffect::ratio_of_amounts(&amounts, &vec![1.0; values.len()]).expect("blocks")
    }

    /// The ratios of the seven halves of three blocks, computed by hand. Single blocks have the
    /// ratios 1/2, 1 and 2. Two or three blocks have the ratios 2/3, (1+1)/(2+1), ...
    #[test]
    fn few_blocks_use_every_split_into_halves() {
        let effect = ratios(&[(2.0, 1.0), (1.0, 1.0), (1.0, 2.0)]);
        assert!((effect.estimate - 0.0).abs() < 1e-12);
        let seven: Vec<f64> = effect.halves.iter().map(|ln| (ln.exp() * 1e6).round() / 1e6).collect();
        assert_eq!(seven, [0.5, 0.666667, 1.0, 1.0, 1.0, 1.5, 2.0]);
        // 2 of 8 gaps lie outside the outermost halves.
        assert_eq!(effect.interval(0.25).map(|i| (i.lower.exp(), i.upper.exp())), Some((0.5, 2.0)));
        assert_eq!(effect.interval(0.24), None);
        assert_eq!(effect.p_two_sided(), 1.0);
        // All blocks are on one side: the strongest evidence that signs can give.
        assert_eq!(ratios(&[(1.0, 2.0); 5]).p_two_sided(), 2.0 / 32.0);
        assert_eq!(ratios(&[(1.0, 2.0); 5]).one_sided_p(true), 1.0);
    }

    /// Bad blocks move the mean by their size, and the interval becomes wider, so that the error
    /// rate stays.
    #[test]
    fn a_tenth_of_bad_blocks_moves_the_estimate_and_widens_the_interval() {
        let good: Vec<(f64, f64)> =
            (0..40).map(|n| (100.0 + f64::from(n % 5), 100.0 + f64::from((n + 2) % 5))).collect();
        let mut bad = good.clone();
        bad.iter_mut().step_by(10).for_each(|(_, b)| *b *= 0.1);
        let (good, bad) = (ratios(&good), ratios(&bad));
        assert!((bad.estimate.exp() - 0.91).abs() < 0.005, "{}", bad.estimate.exp());
        let [narrow, wide] = [good, bad].map(|effect| effect.interval(0.05).expect("an interval").half_width());
        assert!(narrow < 0.01 && wide > 0.05, "{narrow} {wide}");
    }

    #[test]
    fn tails_beyond_the_draws_are_normal() {
        let effect =
            ratios(&(0..30).map(|n| (100.0 + f64::from(n % 7), 104.0 + f64::from((n * 3) % 7))).collect::<Vec<_>>());
        let widths: Vec<f64> = [0.05, 0.02, 0.0079, 0.0077, 0.001, 1e-5]
            .map(|alpha| effect.interval(alpha).expect("an interval").half_width())
            .into();
        assert!(widths.windows(2).all(|pair| pair[0] < pair[1] * 1.05), "{widths:?}");
        assert!(widths[5] < 2.5 * widths[0], "{widths:?}");
        let p = effect.p_two_sided();
        assert!((1e-9..1e-3).contains(&p), "{p}");
    }

    /// Equal counts in every block do not show a difference below one request: 140 requests in
    /// 0.7 s may be 199 or 201 a second.
    #[test]
    fn intervals_are_not_narrower_than_one_request() {
        let counted = |values: &[(f64, f64)]| {
            let amount = |of: f64| BlockAmount { of, per: 0.7 };
            let amounts: Vec<[BlockAmount; 2]> = values.iter().map(|(a, b)| [amount(*a), amount(*b)]).collect();
            ProvedEffect::ratio_of_counts(&amounts, &vec![1.0; values.len()]).expect("blocks")
        };
        let percent = |effect: &ProvedEffect| {
            effect.interval(0.05).map(|i| [i.lower, i.upper].map(|end| (end.exp_m1() * 1000.0).round() / 10.0))
        };
        assert_eq!(percent(&counted(&[(140.0, 140.0); 20])), Some([-1.0, 1.0]));
        assert_eq!(percent(&counted(&[(140.0, 280.0); 20])), Some([98.4, 101.6]));
        let one_more = counted(&[(140.0, 141.0); 20]);
        assert_eq!((percent(&one_more), one_more.p_two_sided()), (Some([-0.3, 1.7]), 1.0));
        assert!(counted(&[(140.0, 144.0); 20]).p_two_sided() < 0.001);
        // Counts that scatter include this error.
        let scattered: Vec<(f64, f64)> =
            (0..40).map(|n| (140.0 + f64::from(n * 7 % 9), 140.0 + f64::from(n * 5 % 9))).collect();
        assert_eq!(counted(&scattered).resolution, 0.0);
    }

    fn times(scheduled: u64, ms: &[u64]) -> LedgerTimes {
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        ms.iter().for_each(|ms| *buckets.entry(index_of(ms * 1_000_000)).or_default() += 1);
        LedgerTimes::new(scheduled, ms.len() as u64, buckets.into_iter())
    }

    #[test]
    fn failures_are_slower_than_any_bound() {
        let answered: Vec<u64> = (1..=95).collect();
        for (scheduled, q, expect_ms) in
            [(95, 0.5, 48.0), (100, 0.5, 50.0), (190, 0.5, 95.0), (200, 0.5, f64::INFINITY), (100, 0.99, f64::INFINITY)]
        {
            let got = times(scheduled, &answered).quantile_ns(q) / 1e6;
            assert!(got == expect_ms || (got / expect_ms - 1.0).abs() < 1e-3, "{q} of {scheduled}: {got}");
        }
        // A server that immediately fails the slow requests has no better p99.
        let slow: Vec<u64> = (1..=100).map(|n| if n > 95 { 400 } else { 20 }).collect();
        let quick: Vec<u64> = (1..=95).map(|_| 20).collect();
        let blocks: Vec<[LedgerTimes; 2]> = (0..12).map(|_| [times(100, &slow), times(100, &quick)]).collect();
        let both: Vec<[&LedgerTimes; 2]> = blocks.iter().map(|[a, b]| [a, b]).collect();
        let effect = ProvedEffect::ratio_of_quantiles(&both, 0.99, &[1.0; 12]).expect("blocks");
        assert!(effect.estimate == f64::INFINITY && effect.levels[1] == f64::INFINITY, "{effect:?}");
        let effect = ProvedEffect::ratio_of_quantiles(&both, 0.5, &[1.0; 12]).expect("blocks");
        assert!(effect.estimate.abs() < 1e-3 && (effect.levels[0] / 20e6 - 1.0).abs() < 1e-3, "{effect:?}");
    }

    /// The quantile comes from all requests together, and is not the median of the blocks'
    /// quantiles.
    #[test]
    fn quantiles_use_pooled_ledgers() {
        let quick: Vec<u64> = (0..100).map(|n| 10 + n % 3).collect();
        let slow: Vec<u64> = (0..100).map(|n| if n < 20 { 500 } else { 10 + n % 3 }).collect();
        let blocks: Vec<[LedgerTimes; 2]> =
            (0..20).map(|n| [times(100, &quick), times(100, if n == 0 { &slow } else { &quick })]).collect();
        let both: Vec<[&LedgerTimes; 2]> = blocks.iter().map(|[a, b]| [a, b]).collect();
        // 20 of 2 000 requests are slow: 1 % of all requests, and no request in most blocks.
        let effect = ProvedEffect::ratio_of_quantiles(&both, 0.995, &[1.0; 20]).expect("blocks");
        assert!(effect.levels[1] > 400e6 && effect.levels[0] < 13e6, "{:?}", effect.levels);
        assert!(ProvedEffect::ratio_of_quantiles(&[], 0.5, &[]).is_none());
    }
}
