//! `latency` and `requests` as `done` is given them: distinct values with their counts.
//!
//! Not here: where the values come from. What wrk gets wrong is right: the hundredth percentile is
//! the largest value, and nothing is changed afterwards.

/// Values that were seen, each with how often.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptFigures {
    /// In order; counts are never 0.
    values: Vec<(u64, u64)>,
    count: u64,
    min: u64,
    max: u64,
    mean: f64,
    stdev: f64,
}

impl ScriptFigures {
    /// From values with counts, in any order. The least, the largest, the mean and the deviation
    /// are those of the values unless [`with_exact`](Self::with_exact) knows better.
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

    /// The same with the least and the largest value as they were, where the values are those of
    /// classes.
    pub fn with_exact(mut self, min: u64, max: u64) -> ScriptFigures {
        if self.count > 0 {
            (self.min, self.max) = (min, max);
        }
        self
    }

    /// How many values, those that are alike counted each.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest; 0 without any.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest; 0 without any.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// How many distinct values.
    pub fn distinct(&self) -> usize {
        self.values.len()
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their standard deviation, of a sample.
    pub fn stdev(&self) -> f64 {
        self.stdev
    }

    /// The value that `percent` of all do not exceed: the one of rank
    /// `round(percent / 100 * count + 0.5)`, the last at most.
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

    /// How many do not exceed `value`.
    pub fn up_to(&self, value: u64) -> u64 {
        self.values.iter().take_while(|(other, _)| *other <= value).map(|(_, count)| count).sum()
    }

    /// How many of a hundred lie within `n` deviations of the mean.
    pub fn within_stdev_percent(&self, n: f64) -> f64 {
        let (lower, upper) = (self.mean - n * self.stdev, self.mean + n * self.stdev);
        let within = |value: u64| (lower..=upper).contains(&(value as f64));
        let sum: u64 = self.values.iter().filter(|(value, _)| within(*value)).map(|(_, count)| count).sum();
        if self.count == 0 { 0.0 } else { sum as f64 / self.count as f64 * 100.0 }
    }

    /// The i-th distinct value from 1, and how often it was seen; zeroes beyond the last.
    pub(crate) fn nth(&self, i: f64) -> (f64, f64) {
        let at = (i >= 1.0).then(|| i as usize - 1);
        at.and_then(|at| self.values.get(at)).map_or((0.0, 0.0), |(value, count)| (*value as f64, *count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let figures = ScriptFigures::new([(30, 1), (10, 5), (20, 3), (10, 1), (40, 0)]);
        assert_eq!((figures.count(), figures.min, figures.max()), (10, 10, 30));
        assert_eq!([0.0, 50.0, 60.0, 90.0, 100.0, 150.0].map(|p| figures.percentile(p)), [10, 10, 20, 30, 30, 30]);
        assert_eq!((figures.mean(), figures.nth(1.0), figures.nth(4.0)), (15.0, (10.0, 6.0), (0.0, 0.0)));
        assert!((figures.stdev() - 7.071).abs() < 0.001);
        assert_eq!(figures.within_stdev_percent(1.0), 90.0);
        let none = ScriptFigures::new([]);
        assert_eq!(
            (none.percentile(99.0), none.mean(), none.stdev(), none.within_stdev_percent(1.0)),
            (0, 0.0, 0.0, 0.0)
        );
    }
}
