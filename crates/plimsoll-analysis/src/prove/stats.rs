//! Paired statistics over blocks, as plain functions: the Hodges-Lehmann estimate, the sign-flip permutation test of the
//! signed ranks, and the interval that inverts it.
//!
//! The values are differences within blocks (logarithms of ratios, mostly). Which side of a block went first was drawn
//! at random; so, if there is no effect, each value could as well have come with the other sign, whatever drifts,
//! repeats itself or hiccups meanwhile. Ranks instead of the mean, because on shared machines one block in ten is
//! disturbed by far more than the effects that are looked for: a mean follows the few, a rank does not.
//!
//! Not here: when to look and what to conclude (`looks`, `verdict`).

/// Up to so many values the null distribution is exact; beyond, the normal approximation (off by less than 1e-4).
const EXACT_MAX: usize = 200;

/// An interval, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl ConfidenceInterval {
    /// Half of its length.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0
    }

    /// Whether `value` lies in it.
    pub fn contains(&self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }

    /// Whether it lies in -`bound`..=`bound`.
    pub fn within(&self, bound: f64) -> bool {
        self.lower >= -bound && self.upper <= bound
    }

    /// Whether an interval of logarithms of ratios, read as shares, lies within the share that `bound` is the logarithm of:
    /// -2 % is farther from 0 than +2 % there, and it is shares that people read.
    pub fn within_ratio(&self, bound: f64) -> bool {
        let share = bound.exp_m1();
        self.lower.exp_m1() >= -share && self.upper.exp_m1() <= share
    }

    /// The same interval of another scale; `change` must be increasing.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> ConfidenceInterval {
        ConfidenceInterval { lower: change(self.lower), upper: change(self.upper) }
    }
}

/// The averages of all pairs of values, each value paired with itself too, ascending.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (at, a) in values.iter().enumerate() {
        averages.extend(values[at..].iter().map(|b| (a + b) / 2.0));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The middle of ascending values; `None` of none.
fn median_sorted(values: &[f64]) -> Option<f64> {
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some((values[half - 1] + values[half]) / 2.0),
    }
}

/// The middle of some values; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_sorted(&sorted)
}

/// The Hodges-Lehmann estimate of the centre: the median of the averages of all pairs. `None` without values.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    median_sorted(&walsh_averages(values))
}

/// Two-sided p of the hypothesis that the values are symmetric about 0: the sign-flip permutation test of the sum of the
/// signed ranks. Equal sizes share their mean rank; zeros are ranked and never flip (Pratt). What is no number counts as the
/// largest. 1 without values.
pub fn sign_flip_p(values: &[f64]) -> f64 {
    let mut sizes: Vec<(f64, bool)> = values.iter().map(|v| (v.abs(), *v > 0.0)).collect();
    sizes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Ranks times two, so that shared ranks are whole numbers.
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
    if ranks.len() > EXACT_MAX {
        let variance: f64 = ranks.iter().map(|r| (*r as f64 / 2.0).powi(2) / 4.0).sum();
        let distance = (total as f64 / 4.0 - tail as f64 / 2.0 - 0.5).max(0.0);
        return (2.0 * normal_tail(distance / variance.sqrt())).min(1.0);
    }
    (2.0 * lower_tail(&ranks, tail)).min(1.0)
}

/// P(sum <= `sum`) of a sum that takes each of `parts` with probability one half.
fn lower_tail(parts: &[usize], sum: usize) -> f64 {
    distribution(parts, sum).iter().sum()
}

/// P(sum = 0), P(sum = 1), ... P(sum = `sum_max`) of a sum that takes each of `parts` with probability one half.
fn distribution(parts: &[usize], sum_max: usize) -> Vec<f64> {
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

/// The interval of the centre at error `alpha` (two-sided): all centres that the signed-rank test does not reject at
/// `alpha`. `None` where so few values cannot reject anything at that error (2^(1-n) > `alpha`).
pub fn interval(values: &[f64], alpha: f64) -> Option<ConfidenceInterval> {
    let averages = walsh_averages(values);
    let beyond = rejected_sum_max(values.len(), alpha)?;
    let last = averages.len().checked_sub(1 + beyond)?;
    (beyond <= last).then(|| ConfidenceInterval { lower: averages[beyond], upper: averages[last] })
}

/// The largest sum of positive ranks of `n` values whose lower tail is at most `alpha` / 2.
fn rejected_sum_max(n: usize, alpha: f64) -> Option<usize> {
    let total = n * (n + 1) / 2;
    if n > EXACT_MAX {
        let deviation = ((n * (n + 1)) as f64 * (2 * n + 1) as f64 / 24.0).sqrt();
        let sum = total as f64 / 2.0 - normal_quantile(1.0 - alpha / 2.0) * deviation - 0.5;
        return (sum >= 0.0).then_some(sum.floor() as usize);
    }
    let ranks: Vec<usize> = (1..=n).collect();
    let mut tail = 0.0;
    let within = distribution(&ranks, total / 2).into_iter().take_while(|p| {
        tail += p;
        tail <= alpha / 2.0
    });
    within.count().checked_sub(1)
}

/// Holm's adjusted p of each of a family of tests, in their order.
pub fn holm(p: &[f64]) -> Vec<f64> {
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

/// P(Z > z) of a standard normal Z, for z >= 0, to 1e-7: the continued fraction of Mills' ratio, and for small z the
/// series of the distribution function.
pub fn normal_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 3.0 {
        // z + z^3/3 + z^5/(3*5) + ...
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

/// The z with P(Z <= z) = `p`, for 0.5 <= p < 1, by bisection.
pub fn normal_quantile(p: f64) -> f64 {
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
