//! Finds the change points of a series of runs ([`change_points`]): the runs at which the measured
//! level changed. For each change point, computes the ratio of the levels after and before, and the
//! certainty of the change.
//!
//! The series is split at the index at which the means of the two parts differ most. The difference
//! of the means is weighted by the number of runs in each part:
//!
//! ```text
//! S(k) = |mean of the first k - mean of the rest| * sqrt(k (n - k) / n)
//! ```
//!
//! A permutation test decides whether the maximum S is chance. If the build did not change, all
//! orders of its runs are equally probable. The p-value is the share of random permutations whose
//! maximum S is at least as large as the maximum S of the series. If p is at most
//! [`FALSE_ALARM_PROBABILITY`], the split is a change point, and both parts are searched in the
//! same way. When all change points are found, the index of each change point is computed again,
//! from the runs between its two neighbouring change points.
//!
//! The search for change points is the divisive method of Matteson and James ("A Nonparametric
//! Approach for Multiple Change Point Analysis of Multivariate Data", 2014). The search compares
//! means, where the method of Matteson and James compares energy distances. The difference of means
//! has more power to detect a shift, and a commit causes a shift. The values are logarithms,
//! because a change is a ratio.
//!
//! The false-alarm rate applies to whole series, not to single runs. The false-alarm rate holds for
//! noise of any distribution, if the runs are independent. The false-alarm rate does not hold if
//! neighbouring runs resemble each other, for example on a machine that is slow for a day. The
//! minimum change [`CHANGE_SHARE_MIN`] and the minimum number of runs [`RUNS_MIN`] prevent most of
//! the false alarms that resembling neighbours cause.
//!
//! An outlier is a run whose value is far from its neighbours, because something went wrong in that
//! run. Outliers would hide changes of the level. So the value of an outlier is moved towards the
//! median of its neighbouring runs, to a distance of [`OUTLIER_DEVIATIONS`] standard deviations of
//! the noise. The noise is estimated from the differences between neighbouring runs, which a change
//! of the level hardly affects.
//!
//! Not here: the grouping of runs into series (`lanes`).

use plimsoll_model::rng::Rng;
use plimsoll_statistics::basics::{ConfidenceInterval, DEVIATION_PER_MAD, median};

/// Largest p-value of a change point: the probability that a series of an unchanged build contains
/// a change point.
pub const FALSE_ALARM_PROBABILITY: f64 = 0.003;
/// The minimum relative change of the level at a change point, as in the command `prove`. A smaller
/// change of the level does not matter in practice.
pub const CHANGE_SHARE_MIN: f64 = 0.02;
/// The minimum number of runs on each side of a change point.
pub const RUNS_MIN: usize = 2;
/// The minimum number of runs in a series that is searched for change points. A shorter series has
/// too few permutations for the false-alarm rate [`FALSE_ALARM_PROBABILITY`].
pub const SERIES_RUNS_MIN: usize = 8;
/// A run is an outlier if its distance from the median of its neighbouring runs exceeds this number
/// of standard deviations of the noise, as in `prove`.
const OUTLIER_DEVIATIONS: f64 = 4.0;
/// Number of runs on each side of a run that form its neighbourhood for the detection of outliers.
const NEIGHBOURS_PER_SIDE: usize = 2;
/// Number of random permutations that the permutation test draws.
const PERMUTATION_COUNT: u32 = 999;
/// Confidence level of the interval around the ratio of a change, 0..1.
const CHANGE_INTERVAL_CONFIDENCE: f64 = 0.95;

/// A change of the level (load line or throughput) of a series of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The index of the first run of the new level in the series.
    pub run_index: usize,
    /// Mean level after the change, divided by the mean level before the change.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub interval: ConfidenceInterval,
    /// The p-value of the change: the share of random orders of the runs in which some split
    /// separates two levels at least as strongly as this change point does.
    pub p: f64,
}

/// Finds the change points of a series of positive values, in order. `seed` selects the random
/// permutations.
pub fn change_points(values: &[f64], seed: u64) -> Vec<ChangePoint> {
    let logs: Vec<f64> = values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect();
    let logs = limit_outliers(&logs);
    let mut found = Vec::new();
    find_change_points_recursively(&logs, 0, &mut Rng::new(seed), &mut found);
    found.sort_by_key(|(at, _)| *at);
    let places: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    let placed = (0..found.len()).filter_map(|number| {
        // Between the previous and the next change point, all runs before this change point have
        // one level, and all runs after it have another level.
        let from = number.checked_sub(1).map_or(0, |before| places[before]);
        let to = places.get(number + 1).copied().unwrap_or(logs.len());
        let (at, _) = best_split(&logs[from..to])?;
        let (before, after) = (&logs[from..from + at], &logs[from + at..to]);
        let (shift, half) = mean_difference(before, after);
        let interval = ConfidenceInterval { lower: shift - half, upper: shift + half }.map(f64::exp);
        Some(ChangePoint { run_index: from + at, ratio: shift.exp(), interval, p: found[number].1 })
    });
    placed.filter(|point| (point.ratio - 1.0).abs() >= CHANGE_SHARE_MIN).collect()
}

/// Returns the series with each outlier moved to the limit beyond which a value is an outlier.
/// `logs` contains the logarithms of the series' values.
pub fn limit_outliers(logs: &[f64]) -> Vec<f64> {
    let steps: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let noise = median(&steps).unwrap_or(0.0) * DEVIATION_PER_MAD / std::f64::consts::SQRT_2;
    if noise <= 0.0 {
        return logs.to_vec();
    }
    let near =
        |at: usize| &logs[at.saturating_sub(NEIGHBOURS_PER_SIDE)..(at + NEIGHBOURS_PER_SIDE + 1).min(logs.len())];
    let brought = |(at, log): (usize, &f64)| {
        let middle = median(near(at)).unwrap_or(*log);
        log.clamp(middle - OUTLIER_DEVIATIONS * noise, middle + OUTLIER_DEVIATIONS * noise)
    };
    logs.iter().enumerate().map(brought).collect()
}

/// Searches for a change point in `logs`, and then in the parts before and after the change point.
/// `offset` is the index of the first value of `logs` in the whole series.
fn find_change_points_recursively(logs: &[f64], offset: usize, rng: &mut Rng, found: &mut Vec<(usize, f64)>) {
    if logs.len() < SERIES_RUNS_MIN {
        return;
    }
    let Some((at, size)) = best_split(logs) else { return };
    let p = permutation_p_value(logs, size, rng);
    if p > FALSE_ALARM_PROBABILITY {
        return;
    }
    found.push((offset + at, p));
    find_change_points_recursively(&logs[..at], offset, rng, found);
    find_change_points_recursively(&logs[at..], offset + at, rng, found);
}

/// Returns the index of the split with the maximum S (the weighted difference of the means of both
/// parts), and S. Returns `None` if all values are equal.
fn best_split(logs: &[f64]) -> Option<(usize, f64)> {
    let n = logs.len();
    let total: f64 = logs.iter().sum();
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, log) in logs.iter().enumerate() {
        // `sum` does not contain `log` yet, so `sum` is the sum of all values before the index
        // `at`.
        let before_sum = sum;
        sum += log;
        if at < RUNS_MIN || n - at < RUNS_MIN {
            continue;
        }
        let (before, after) = (at as f64, (n - at) as f64);
        let size = (before_sum / before - (total - before_sum) / after).abs() * (before * after / n as f64).sqrt();
        if best.is_none_or(|(_, most)| size > most) {
            best = Some((at, size));
        }
    }
    best.filter(|(_, size)| *size > 1e-12)
}

/// Returns the share of random permutations of `logs` whose best split has an S of at least `size`.
/// S is the weighted difference of the means before and after the split. The function stops drawing
/// permutations as soon as the share exceeds [`FALSE_ALARM_PROBABILITY`].
fn permutation_p_value(logs: &[f64], size: f64, rng: &mut Rng) -> f64 {
    let mut order = logs.to_vec();
    let most = (FALSE_ALARM_PROBABILITY * f64::from(PERMUTATION_COUNT + 1)).round() as u32;
    let mut as_great = 0u32;
    for _ in 0..PERMUTATION_COUNT {
        for last in (1..order.len()).rev() {
            order.swap(last, rng.uniform_below(last as u64 + 1) as usize);
        }
        // Rounding makes sums of the same values in a different order differ in their last digits,
        // so the comparison has a tolerance.
        if best_split(&order).is_some_and(|(_, other)| other >= size * (1.0 - 1e-9)) {
            as_great += 1;
            if as_great >= most {
                break;
            }
        }
    }
    f64::from(as_great + 1) / f64::from(PERMUTATION_COUNT + 1)
}

/// Returns the mean of the values, and the sum of their squared deviations from the mean.
fn mean_and_squared_deviations(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum())
}

/// Returns the difference of the means (after minus before), and half the length of its confidence
/// interval. The confidence interval uses the pooled standard deviation of the values in `before`
/// and `after`.
fn mean_difference(before: &[f64], after: &[f64]) -> (f64, f64) {
    let ((first, first_squares), (second, second_squares)) =
        (mean_and_squared_deviations(before), mean_and_squared_deviations(after));
    let freedom = (before.len() + after.len()).saturating_sub(2).max(1);
    let variance = (first_squares + second_squares) / freedom as f64;
    let each = 1.0 / before.len().max(1) as f64 + 1.0 / after.len().max(1) as f64;
    (second - first, student_quantile((1.0 + CHANGE_INTERVAL_CONFIDENCE) / 2.0, freedom) * (variance * each).sqrt())
}

/// Returns the t with P(T <= t) = `p` for Student's T with `freedom` degrees of freedom, for 0.5 <=
/// p < 1. The function uses the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5),
/// exact to 1 % from four degrees of freedom on.
pub fn student_quantile(p: f64, freedom: usize) -> f64 {
    let z = plimsoll_statistics::basics::upper_normal_quantile(p);
    let v = freedom.max(1) as f64;
    let terms = [
        z.powi(3) + z,
        5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z,
        3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z,
        79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z,
    ];
    let scales = [4.0, 96.0, 384.0, 92160.0];
    let mut power = 1.0;
    terms.iter().zip(scales).fold(z, |t, (term, scale)| {
        power *= v;
        t + term / (scale * power)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a normally distributed number, approximated by a sum of twelve uniform numbers.
    fn draw_normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0
    }

    /// Creates a series of load lines around 2 000/s, with noise between runs. From index `from`
    /// on, the level is 5 % lower.
    fn noisy_series(rng: &mut Rng, runs: usize, noise: f64, from: Option<usize>) -> Vec<f64> {
        let level = |at: usize| if from.is_some_and(|from| at >= from) { 1900.0 } else { 2000.0 };
        (0..runs).map(|at| level(at) * (1.0 + noise * draw_normal(rng))).collect()
    }

    /// Checks that 200 series of an unchanged build have at most 2 change points in total.
    #[test]
    fn an_unchanged_build_has_no_change_points() {
        let mut rng = Rng::new(1);
        let alarms: usize = (0..200)
            .map(|number| {
                let runs = [20, 40, 80, 200][number % 4];
                change_points(&noisy_series(&mut rng, runs, 0.02, None), number as u64).len()
            })
            .sum();
        assert!(alarms <= 2, "{alarms} change points in 200 series");
    }

    /// Checks that occasional outliers among the 200 runs of an unchanged build give at most one
    /// change point in 20 series.
    #[test]
    fn outliers_are_not_change_points() {
        let mut rng = Rng::new(5);
        let mut alarms = 0;
        for seed in 0..20 {
            let mut values = noisy_series(&mut rng, 200, 0.02, None);
            values.iter_mut().step_by(23).for_each(|value| *value *= 0.8);
            alarms += change_points(&values, seed).len();
        }
        assert!(alarms <= 1, "{alarms}");
    }

    /// Checks that a change of the level is found in a series with one outlier, whatever the index
    /// of the outlier.
    #[test]
    fn an_outlier_hides_no_change() {
        let mut rng = Rng::new(6);
        for at in [0, 1, 10, 19, 20, 38, 39] {
            let mut values = noisy_series(&mut rng, 40, 0.01, Some(20));
            values[at] *= 9.0;
            let places: Vec<usize> = change_points(&values, 6).iter().map(|point| point.run_index).collect();
            assert!(places.len() == 1 && places[0].abs_diff(20) <= 1, "{at}: {places:?}");
        }
    }

    /// Checks that a fall of 5 % at a random commit is found in at least 18 of 20 series of 40
    /// commits. The reported commit may differ from the correct commit by one.
    #[test]
    fn a_regression_is_located() {
        let mut rng = Rng::new(2);
        let mut right = 0;
        for seed in 0..20 {
            let from = 5 + rng.uniform_below(31) as usize;
            let points = change_points(&noisy_series(&mut rng, 40, 0.02, Some(from)), seed);
            let named = points.iter().any(|point| point.run_index.abs_diff(from) <= 1 && point.ratio < 1.0);
            right += usize::from(named && points.len() == 1);
        }
        assert!(right >= 18, "{right} of 20");
    }

    /// Prints the rates of false alarms and of found changes that docs/how-to/history.md states:
    /// `cargo test -p plimsoll-analysis --lib rates -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints rates"]
    fn print_detection_rates() {
        let mut rng = Rng::new(99);
        for noise in [0.014, 0.02] {
            let mut alarms = 0;
            for seed in 0..1000 {
                let runs = [20, 40, 80, 200][seed % 4];
                alarms += change_points(&noisy_series(&mut rng, runs, noise, None), seed as u64).len();
            }
            println!("noise {noise}: {alarms} change points in 1 000 unchanged series");
            for (least, shown) in [(5, "at least 5 from either end"), (1, "anywhere")] {
                let (mut right, mut seen) = (0, 0);
                for seed in 0..1000 {
                    let from = least + rng.uniform_below(41 - 2 * least as u64) as usize;
                    let points = change_points(&noisy_series(&mut rng, 40, noise, Some(from)), seed);
                    seen += usize::from(!points.is_empty());
                    let named = points.iter().any(|point| point.run_index.abs_diff(from) <= 1 && point.ratio < 1.0);
                    right += usize::from(named && points.len() == 1);
                }
                println!("noise {noise}, {shown}: {right} right of 1 000, {seen} seen");
            }
        }
    }

    #[test]
    fn two_changes_are_found_with_their_sizes() {
        let mut rng = Rng::new(3);
        let mut values = noisy_series(&mut rng, 60, 0.01, None);
        values[20..].iter_mut().for_each(|value| *value *= 0.9);
        values[40..].iter_mut().for_each(|value| *value *= 1.2);
        let points = change_points(&values, 3);
        let places: Vec<usize> = points.iter().map(|point| point.run_index).collect();
        assert_eq!(places, [20, 40]);
        for (point, ratio) in points.iter().zip([0.9, 1.2]) {
            assert!((point.ratio - ratio).abs() < 0.02 && point.interval.contains(ratio), "{point:?}");
        }
    }

    #[test]
    fn short_series_have_no_change_points() {
        assert!(change_points(&[], 1).is_empty());
        assert!(change_points(&[1.0; 50], 1).is_empty());
        assert!(change_points(&[2000.0, 2000.0, 1000.0, 1000.0], 1).is_empty());
        // A change of 1 % is below the minimum, so it is not reported, however certain it is.
        let values: Vec<f64> = (0..40).map(|at| if at < 20 { 2000.0 } else { 1980.0 } + f64::from(at % 3)).collect();
        assert!(change_points(&values, 1).is_empty());
    }

    #[test]
    fn student_t_quantiles_match_tables() {
        for (p, freedom, expect) in [(0.975, 4, 2.776), (0.975, 10, 2.228), (0.99, 5, 3.365), (0.99, 30, 2.457)] {
            let t = student_quantile(p, freedom);
            assert!((t / expect - 1.0).abs() < 0.01, "{p} {freedom}: {t}");
        }
    }
}
