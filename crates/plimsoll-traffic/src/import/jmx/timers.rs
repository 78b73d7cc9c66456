//! Converts the timers of a JMeter test plan to think times of steps.

use super::values::TestPlanVariables;
use super::xml::Element;

/// The sum of the pauses of all timers before one request, as the parameters of a random
/// distribution.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThinkTimeSum {
    /// The constant part of the think time, ms.
    fixed_ms: f64,
    /// The mean of the random part of the think time, ms.
    mean_ms: f64,
    /// The variance of the random part of the think time, ms^2.
    variance_ms2: f64,
    /// The width of the think time's random part, ms, if the random part is one uniform
    /// distribution.
    uniform_ms: Option<f64>,
    /// The number of timers with a random part.
    random_timers: usize,
}

/// The result of adding an element to the think time of a request.
pub enum TimerImportResult {
    /// The element is not a timer.
    NotATimer,
    /// The timer was added exactly.
    Added,
    /// The timer was added approximately; the value is a note for the user.
    Approximate(&'static str),
    /// A time of the timer is not a number or is negative, so the timer was not added.
    InvalidTime,
}

impl ThinkTimeSum {
    pub fn add_fixed_ms(&mut self, ms: f64) {
        self.fixed_ms += ms.max(0.0);
    }

    /// Adds a timer to the sum.
    pub fn add(&mut self, element: &Element, values: &TestPlanVariables) -> TimerImportResult {
        let number = |name: &str| match element.property(name).map(str::trim) {
            None | Some("") => Some(0.0),
            Some(text) => values.literal_number(text).filter(|number| *number >= 0.0),
        };
        let (delay, range) = (number("ConstantTimer.delay"), number("RandomTimer.range"));
        let (kind, Some(delay), Some(range)) = (element.kind(), delay, range) else {
            let is_timer = ["ConstantTimer", "UniformRandomTimer", "GaussianRandomTimer", "PoissonRandomTimer"];
            return if is_timer.contains(&element.kind()) {
                TimerImportResult::InvalidTime
            } else {
                TimerImportResult::NotATimer
            };
        };
        match kind {
            "ConstantTimer" => {
                self.add_fixed_ms(delay);
                TimerImportResult::Added
            }
            "UniformRandomTimer" => {
                self.add_fixed_ms(delay);
                self.add_random_part(range / 2.0, range * range / 12.0, Some(range));
                TimerImportResult::Added
            }
            "GaussianRandomTimer" => {
                self.add_random_part(delay, range * range, None);
                TimerImportResult::Approximate(
                    "JMeter's Gaussian pauses become uniform pauses of the same mean and standard deviation",
                )
            }
            "PoissonRandomTimer" => {
                self.add_fixed_ms(delay);
                self.add_random_part(range, range, None);
                TimerImportResult::Approximate(
                    "JMeter's Poisson pauses become uniform pauses of the same mean and standard deviation",
                )
            }
            _ => TimerImportResult::NotATimer,
        }
    }

    fn add_random_part(&mut self, mean_ms: f64, variance_ms2: f64, uniform_ms: Option<f64>) {
        self.random_timers += 1;
        self.mean_ms += mean_ms;
        self.variance_ms2 += variance_ms2;
        self.uniform_ms = uniform_ms;
    }

    /// Returns the sum as a think time in the syntax of a traffic file; `None` if the sum is 0.
    pub fn think_time(&self) -> Option<String> {
        const DAY_MS: f64 = 86_400_000.0;
        let half = match (self.random_timers, self.uniform_ms) {
            (0, _) => 0.0,
            (1, Some(range)) => range / 2.0,
            // The standard deviation of a uniform time is its width divided by sqrt(12), so half
            // the width is sqrt(3 x variance).
            _ => (self.variance_ms2 * 3.0).sqrt(),
        };
        let middle = self.fixed_ms + self.mean_ms;
        let (from, to) = ((middle - half).max(0.0).round(), (middle + half).round());
        let whole = |ms: f64| ms.min(DAY_MS) as u64;
        match (whole(from), whole(to)) {
            (_, 0) => None,
            (from, to) if from == to => Some(format!("{from}ms")),
            (from, to) => Some(format!("uniform({from}ms,{to}ms)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_delays_are_summed() {
        let thinking = |fixed: &[f64], drawn: &[(f64, f64, Option<f64>)]| {
            let mut thinking = ThinkTimeSum::default();
            fixed.iter().for_each(|ms| thinking.add_fixed_ms(*ms));
            drawn.iter().for_each(|(mean, variance, range)| thinking.add_random_part(*mean, *variance, *range));
            thinking.think_time()
        };
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(thinking(&[], &[]), None);
        assert_eq!(thinking(&[300.0, 200.0], &[]), said("500ms"));
        assert_eq!(thinking(&[1000.0], &[(50.0, 10_000.0 / 12.0, Some(100.0))]), said("uniform(1000ms,1100ms)"));
        assert_eq!(thinking(&[], &[(300.0, 10_000.0, None)]), said("uniform(127ms,473ms)"));
        // The lower bound of a think time is 0, because times are not negative.
        assert_eq!(thinking(&[], &[(10.0, 10_000.0, None)]), said("uniform(0ms,183ms)"));
    }
}
