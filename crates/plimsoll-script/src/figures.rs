//! The objects `latency` and `requests` that a script's `done` receives: distinct values with their
//! counts.
//!
//! Unlike wrk, this module returns the largest value as the 100th percentile, and leaves recorded
//! values unchanged after the measurement. Not here: measuring the values.

/// Measured values, each with its number of occurrences.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptFigures {
    /// (value, count) pairs, sorted by value; counts are never 0.
    values: Vec<(u64, u64)>,
    count: u64,
    min: u64,
    max: u64,
    mean: f64,
    stdev: f64,
}

impl ScriptFigures {
    /// Builds the figures from (value, count) pairs in any order. Minimum, maximum, mean and
    /// deviation are computed from the given values.
    /// [`with_exact_extremes`](Self::with_exact_extremes) can correct minimum and maximum.
    pub fn new(values: impl IntoIterator<Item = (u64, u64)>) -> ScriptFigures {
        let mut all: Vec<(u64, u64)> = values.into_iter().filter(|(_, count)| *count > 0).collect();
        all.sort_unstable();
        all.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0 };
            same
        });
        let count: u64 = all.iter().map(|(_, count)| count).sum();
        let sum: f64 = all.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        let mean = if count == 0 { 0.0 } else { sum / count as f64 };
        let squares: f64 = all.iter().map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64).sum();
        ScriptFigures {
            count,
            min: all.first().map_or(0, |(value, _)| *value),
            max: all.last().map_or(0, |(value, _)| *value),
            mean,
            stdev: if count < 2 { 0.0 } else { (squares / (count - 1) as f64).sqrt() },
            values: all,
        }
    }

    /// Sets the exact minimum and maximum. Call `with_exact_extremes` if the values come from a
    /// histogram, which rounds each value to a class.
    pub fn with_exact_extremes(mut self, min: u64, max: u64) -> ScriptFigures {
        if self.count > 0 {
            (self.min, self.max) = (min, max);
        }
        self
    }

    /// Returns the number of measured values. A value that was measured three times counts three
    /// times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the largest value; 0 if there are no values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the smallest value; 0 if there are no values.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Returns the number of distinct values.
    pub fn distinct_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the mean of the values; 0 if there are no values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the sample standard deviation of the values.
    pub fn stdev(&self) -> f64 {
        self.stdev
    }

    /// Returns the value that `percent` percent of all values do not exceed. In the sorted values,
    /// the returned value has the rank `round(percent / 100 * count + 0.5)`, at most `count`.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.count as f64 + 0.5).round().max(0.0) as u64;
        let mut up_to = 0;
        for (value, count) in &self.values {
            up_to += count;
            if up_to >= rank {
                return (*value).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Returns the number of values that do not exceed `value`.
    pub fn count_up_to(&self, value: u64) -> u64 {
        self.values.iter().take_while(|(other, _)| *other <= value).map(|(_, count)| count).sum()
    }

    /// Returns the percentage (0 to 100) of values within `n` standard deviations of the mean.
    pub fn within_stdev_percent(&self, n: f64) -> f64 {
        let (lower, upper) = (self.mean - n * self.stdev, self.mean + n * self.stdev);
        let within = |value: u64| (lower..=upper).contains(&(value as f64));
        let sum: u64 = self.values.iter().filter(|(value, _)| within(*value)).map(|(_, count)| count).sum();
        if self.count == 0 { 0.0 } else { sum as f64 / self.count as f64 * 100.0 }
    }

    /// Returns the i-th distinct value, counted from 1, and its number of occurrences. Returns
    /// zeros if fewer than `i` distinct values exist.
    pub(crate) fn nth_value(&self, i: f64) -> (f64, f64) {
        let at = (i >= 1.0).then(|| i as usize - 1);
        at.and_then(|at| self.values.get(at)).map_or((0.0, 0.0), |(value, count)| (*value as f64, *count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_recorded_values() {
        let figures = ScriptFigures::new([(30, 1), (10, 5), (20, 3), (10, 1), (40, 0)]);
        assert_eq!((figures.count(), figures.min, figures.max()), (10, 10, 30));
        assert_eq!([0.0, 50.0, 60.0, 90.0, 100.0, 150.0].map(|p| figures.percentile(p)), [10, 10, 20, 30, 30, 30]);
        assert_eq!((figures.mean(), figures.nth_value(1.0), figures.nth_value(4.0)), (15.0, (10.0, 6.0), (0.0, 0.0)));
        assert!((figures.stdev() - 7.071).abs() < 0.001);
        assert_eq!(figures.within_stdev_percent(1.0), 90.0);
        let none = ScriptFigures::new([]);
        assert_eq!(
            (none.percentile(99.0), none.mean(), none.stdev(), none.within_stdev_percent(1.0)),
            (0, 0.0, 0.0, 0.0)
        );
    }
}
