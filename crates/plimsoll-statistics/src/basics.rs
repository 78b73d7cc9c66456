//! Basic statistics for comparisons of two builds, as pure functions: intervals, medians, Holm's
//! method, the normal distribution, sign-flip tests and a test for a trend.
//!
//! Not here: the effect of B compared with A and its interval ([`crate::resample`]).

/// Largest number of values for which the sign-flip test computes the distribution under the null
/// hypothesis exactly. For more values, the normal approximation is used (error below 1e-4).
const EXACT_TEST_VALUES_MAX: usize = 200;

/// A confidence interval; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
}

impl ConfidenceInterval {
    /// Returns half the length of the interval.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0
    }

    /// Returns whether the interval contains `value`.
    pub fn contains(&self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }

    /// Returns whether the whole interval lies in -`bound`..=`bound`.
    pub fn is_within(&self, bound: f64) -> bool {
        self.lower >= -bound && self.upper <= bound
    }

    /// Returns whether an interval of log ratios lies within a margin. `bound` is the logarithm of
    /// 1 + margin. Both ends are first converted to relative changes, because on the logarithmic
    /// scale -2 % is farther from 0 than +2 %.
    pub fn is_within_ratio(&self, bound: f64) -> bool {
        let share = bound.exp_m1();
        self.lower.exp_m1() >= -share && self.upper.exp_m1() <= share
    }

    /// Converts both ends of the interval to another scale. `change` must be an increasing
    /// function.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> ConfidenceInterval {
        ConfidenceInterval { lower: change(self.lower), upper: change(self.upper) }
    }
}

/// Standard deviation of a normal distribution, divided by its median absolute deviation.
pub const DEVIATION_PER_MAD: f64 = 1.4826;

/// Returns the median of values in ascending order; `None` without values.
fn median_sorted(values: &[f64]) -> Option<f64> {
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some((values[half - 1] + values[half]) / 2.0),
    }
}

/// Returns the median of values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_sorted(&sorted)
}

/// Adjusts the p-values of a family of tests by Holm's method. The adjusted p-values have the same
/// order as `p`.
pub fn holm_adjusted_p(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max((p[at] * (p.len() - rank) as f64).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}

/// Returns the two-sided p-value of the hypothesis that the values are distributed symmetrically
/// about 0.
///
/// The test is a permutation test that flips signs. The statistic of the test is the sum of the
/// ranks with their signs. Values of equal size share their mean rank. Zeros get a rank, but their
/// signs are never flipped (Pratt). NaN has no effect on the p-value. If there are no values, the
/// p-value is 1.
pub fn sign_flip_p_value(values: &[f64]) -> f64 {
    let mut sizes: Vec<(f64, bool)> = values.iter().map(|v| (v.abs(), *v > 0.0)).collect();
    sizes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Ranks are doubled, so that shared mean ranks are whole numbers.
    let mut ranks: Vec<usize> = Vec::with_capacity(sizes.len());
    let mut positive = 0;
    let mut at = 0;
    while at < sizes.len() {
        let end = at + sizes[at..].iter().take_while(|s| s.0.total_cmp(&sizes[at].0).is_eq()).count();
        let rank = at + 1 + end;
        if sizes[at].0 > 0.0 {
            ranks.extend(std::iter::repeat_n(rank, end - at));
            positive += rank * sizes[at..end].iter().filter(|s| s.1).count();
        }
        at = end;
    }
    let total: usize = ranks.iter().sum();
    let tail = positive.min(total - positive);
    if ranks.len() > EXACT_TEST_VALUES_MAX {
        let variance: f64 = ranks.iter().map(|r| (*r as f64 / 2.0).powi(2) / 4.0).sum();
        let distance = (total as f64 / 4.0 - tail as f64 / 2.0 - 0.5).max(0.0);
        return (2.0 * normal_tail(distance / variance.sqrt())).min(1.0);
    }
    (2.0 * random_sum_lower_tail(&ranks, tail)).min(1.0)
}

/// Returns P(S <= `sum`) for a random sum S that includes each element of `parts` with probability
/// one half.
fn random_sum_lower_tail(parts: &[usize], sum: usize) -> f64 {
    sum_distribution(parts, sum).iter().sum()
}

/// Returns P(S = 0), P(S = 1), ... P(S = `sum_max`) for a random sum S. The sum includes each
/// element of `parts` with probability one half.
fn sum_distribution(parts: &[usize], sum_max: usize) -> Vec<f64> {
    let mut probability = vec![0.0; sum_max + 1];
    probability[0] = 1.0;
    for part in parts {
        for sum in (0..=sum_max).rev() {
            let taken = if sum >= *part { probability[sum - part] } else { 0.0 };
            probability[sum] = (probability[sum] + taken) / 2.0;
        }
    }
    probability
}

/// Returns P(X >= `at_least`), where X is the number of heads in `n` throws of a fair coin.
pub fn fair_coin_tail(n: usize, at_least: usize) -> f64 {
    // Each probability is computed from the probability before, starting with P(X = 0). For more
    // than a thousand throws, P(X = 0) is below the smallest float, so the normal approximation is
    // used.
    if n > 1000 {
        let z = (at_least as f64 - 0.5 - n as f64 / 2.0) / (n as f64 / 4.0).sqrt();
        return if z >= 0.0 { normal_tail(z) } else { 1.0 - normal_tail(-z) };
    }
    let mut probability = 0.5f64.powi(n as i32);
    let mut tail = 0.0;
    for heads in 0..=n {
        if heads >= at_least {
            tail += probability;
        }
        probability *= (n - heads) as f64 / (heads + 1) as f64;
    }
    tail.min(1.0)
}

/// Returns the two-sided p-value of the hypothesis that values in order of time have no trend (test
/// of Mann and Kendall). The p-value comes from the normal approximation. Returns 1 for fewer than
/// ten values.
pub fn trend_p_value(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 10 {
        return 1.0;
    }
    let mut rising = 0.0;
    for (at, earlier) in values.iter().enumerate() {
        for later in &values[at + 1..] {
            rising += f64::from(i8::from(later > earlier) - i8::from(later < earlier));
        }
    }
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    (2.0 * normal_tail((rising.abs() - 1.0).max(0.0) / deviation)).min(1.0)
}

/// Returns P(Z > z) of a standard normal Z, for z >= 0, with an error of at most 1e-7. The function
/// uses the continued fraction of Mills' ratio, and for small z the series of the distribution
/// function.
pub fn normal_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 3.0 {
        // The series is z + z^3/3 + z^5/(3*5) + ...
        let mut term = z;
        let mut sum = z;
        for k in 1..60 {
            term *= z * z / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..=60).rev().fold(z, |below, k| z + f64::from(k) / below);
    density / fraction
}

/// Returns the z with P(Z <= z) = `p`, for 0.5 <= p < 1, by bisection.
pub fn upper_normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if normal_tail(middle) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}
