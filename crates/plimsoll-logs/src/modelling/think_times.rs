//! Fits think times to the waits between two requests, by pair of endpoints. A think time has a
//! log-normal distribution if a log-normal distribution fits the waits. If no log-normal
//! distribution fits, as for a mix of instant and long waits, the think time is a random choice of
//! several times.

use plimsoll_model::RouteNumber;
use std::collections::HashMap;

/// The largest number of waits stored for a pair of endpoints; further waits are ignored.
const SAMPLES_MAX: usize = 10_000;
/// The fewest waits between two endpoints for which this pair of endpoints gets its own think time.
const SAMPLES_MIN: usize = 8;
/// A wait between two requests that is shorter than this time counts as no wait, s.
const NO_WAIT_S_MAX: f64 = 0.000_5;
/// If the fitted standard deviation of the logarithm of waits is smaller than this, the think time
/// is constant. With a larger standard deviation, the think time is random.
const SIGMA_MIN: f64 = 0.02;
/// The largest standard deviation of the logarithm of think times. A larger fitted standard
/// deviation is reduced to `SIGMA_MAX`.
const SIGMA_MAX: f64 = 5.0;
/// The largest accepted ratio between a quantile of the fitted log-normal distribution and the same
/// quantile of the observed waits.
const QUANTILE_FIT_FACTOR_MAX: f64 = 1.5;
/// Fitted and observed waits below this limit count as equal when their quantiles are compared, s.
const EQUAL_WAIT_S_MAX: f64 = 0.02;
/// The number of think times in the list from which a simulated visitor chooses at random.
const EMPIRICAL_TIMES_COUNT: usize = 20;
/// The fewest waits from which a list of think times for a random choice is derived.
const EMPIRICAL_WAITS_MIN: usize = 5 * EMPIRICAL_TIMES_COUNT;
/// The largest ratio of the mean of the fitted distribution to the mean of the waits. The width of
/// the distribution is limited so that the ratio stays within this bound.
const MEAN_FACTOR_MAX: f64 = 1.1;

/// The observed waits in s, by pair of endpoints and by the second endpoint alone.
#[derive(Debug, Clone, Default)]
pub struct ThinkTimes {
    by_request_pair: HashMap<(RouteNumber, RouteNumber), Vec<f64>>,
    by_next_request: HashMap<RouteNumber, Vec<f64>>,
}

impl ThinkTimes {
    /// Adds the wait from a response to the next request, ns; 0 if the requests overlap.
    pub fn add(&mut self, from: RouteNumber, to: RouteNumber, wait_ns: u64) {
        let wait_s = wait_ns as f64 / 1e9;
        for waits in [self.by_request_pair.entry((from, to)).or_default(), self.by_next_request.entry(to).or_default()]
        {
            if waits.len() < SAMPLES_MAX {
                waits.push(wait_s);
            }
        }
    }

    /// Returns the think time between two endpoints in the syntax of a traffic file. Returns `None`
    /// if visitors do not wait between the two endpoints.
    pub fn think_time_between(&mut self, from: RouteNumber, to: RouteNumber) -> Option<String> {
        let pair = self.by_request_pair.get_mut(&(from, to)).filter(|waits| waits.len() >= SAMPLES_MIN);
        match pair {
            Some(waits) => fit_think_time(waits),
            None => self.by_next_request.get_mut(&to).and_then(|waits| fit_think_time(waits)),
        }
    }
}

/// Fits a think time to waits in s. Returns `None` if the waits are so short that there is no think
/// time.
fn fit_think_time(waits: &mut [f64]) -> Option<String> {
    waits.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share).round() as usize];
    let (low, median, high) = (at(0.16), at(0.5), at(0.84));
    if high < NO_WAIT_S_MAX || (median < NO_WAIT_S_MAX && waits.len() < EMPIRICAL_WAITS_MIN) {
        return None;
    }
    if median < NO_WAIT_S_MAX {
        return Some(random_choice(waits));
    }
    // The width of the fitted distribution follows from the quantiles 0.16 and 0.84 of the waits.
    // The mean of all waits limits the width, so that the fitted distribution does not make rare
    // long waits too long.
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    let with_mean = |mean: f64| (2.0 * (mean / median).max(1.0).ln()).sqrt();
    let usual = (high / low.max(NO_WAIT_S_MAX)).max(1.0).ln() / 2.0;
    let sigma = usual.clamp(with_mean(mean), with_mean(MEAN_FACTOR_MAX * mean.max(median))).min(SIGMA_MAX);
    // Each pair is a probability, and the quantile of the standard normal distribution at that
    // probability.
    let quantiles = [(0.1, -1.2816), (0.25, -0.6745), (0.75, 0.6745), (0.9, 1.2816)];
    let is_off = |(share, deviations): (f64, f64)| {
        let (seen, fitted) =
            (at(share).max(EQUAL_WAIT_S_MAX), (median * (sigma * deviations).exp()).max(EQUAL_WAIT_S_MAX));
        (seen / fitted).max(fitted / seen) > QUANTILE_FIT_FACTOR_MAX
    };
    if waits.len() >= EMPIRICAL_WAITS_MIN && quantiles.into_iter().any(is_off) {
        return Some(random_choice(waits));
    }
    let ms = format!("{}ms", (median * 1e6).round() / 1e3);
    Some(if sigma < SIGMA_MIN { ms } else { format!("lognormal({ms},{sigma:.2})") })
}

/// Returns a think time that is a random choice from a list. The ordered waits are divided into
/// equal parts, and the list contains the mean of each part.
fn random_choice(waits: &[f64]) -> String {
    let part = |number: usize| {
        &waits[waits.len() * number / EMPIRICAL_TIMES_COUNT..waits.len() * (number + 1) / EMPIRICAL_TIMES_COUNT]
    };
    let means =
        (0..EMPIRICAL_TIMES_COUNT).map(|number| part(number).iter().sum::<f64>() / part(number).len().max(1) as f64);
    // Think times are rounded to three significant digits or to a multiple of 0.1 ms, whichever is
    // coarser.
    let text = |mean_s: f64| {
        let step = 10f64.powf((mean_s * 1e3).max(1e-3).log10().floor() - 2.0).max(0.1);
        let ms = (mean_s * 1e3 / step).round() * step;
        format!("{}ms", (ms * 10.0).round() / 10.0)
    };
    format!("pick({})", means.map(text).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::session::ThinkTime;

    #[test]
    fn bimodal_think_times_are_drawn_from_observed_ones() {
        let mut thoughts = ThinkTimes::default();
        for n in 0..1000u64 {
            // Of five waits, two are 3 ms and three are 20 s or longer.
            thoughts.add(0, 1, if n % 5 < 2 { 3_000_000 } else { 20_000_000_000 + n * 1_000_000 });
            thoughts.add(1, 2, if n % 5 < 3 { 0 } else { 2_000_000_000 });
        }
        let text = thoughts.think_time_between(0, 1).expect("a time");
        let Ok(ThinkTime::Pick(times)) = ThinkTime::parse(&text) else { panic!("{text}") };
        assert_eq!(times.len(), 20);
        assert_eq!(times.iter().filter(|ns| **ns == 3_000_000).count(), 8, "{text}");
        let mean_s = times.iter().sum::<u64>() as f64 / 20.0 / 1e9;
        assert!((12.2..12.4).contains(&mean_s), "{mean_s} {text}");
        let text = thoughts.think_time_between(1, 2).expect("a time");
        assert!(text.starts_with("pick(0ms,") && text.ends_with(",2000ms)"), "{text}");
    }

    #[test]
    fn think_times_depend_on_the_pair_or_the_next_request() {
        let mut thoughts = ThinkTimes::default();
        for n in 0..100u64 {
            thoughts.add(0, 1, 2_000_000_000);
            thoughts.add(1, 2, 1_000_000_000 + n * 20_000_000);
            thoughts.add(2, 0, 0);
        }
        assert_eq!(thoughts.think_time_between(0, 1).as_deref(), Some("2000ms"));
        assert_eq!(thoughts.think_time_between(9, 1).as_deref(), Some("2000ms"));
        assert_eq!(thoughts.think_time_between(2, 0), None);
        assert_eq!(thoughts.think_time_between(0, 9), None);
        let spread = thoughts.think_time_between(1, 2).expect("a time");
        assert!(spread.starts_with("lognormal(2000ms,0.3") || spread.starts_with("lognormal(1980ms,0.3"), "{spread}");
    }
}
