//! How long visitors wait between two requests: by which endpoints they are, as a time whose logarithm is normally distributed.

use plimsoll_model::RouteNumber;
use std::collections::HashMap;

/// Times that are looked at of a pair of endpoints, at most.
const SAMPLES_MAX: usize = 10_000;
/// Fewer than so many say nothing of a pair for itself.
const SAMPLES_MIN: usize = 8;
/// Shorter waits are none, s.
const SHORTEST_S: f64 = 0.000_5;
/// Less spread than this is none, and more is not drawn.
const SIGMA_MIN: f64 = 0.02;
const SIGMA_MAX: f64 = 5.0;
/// How much longer than seen waits may be on average.
const MEAN_OFF_MAX: f64 = 1.1;

/// Waits that were seen, s.
#[derive(Debug, Clone, Default)]
pub struct Thoughts {
    of_pair: HashMap<(RouteNumber, RouteNumber), Vec<f64>>,
    of_next: HashMap<RouteNumber, Vec<f64>>,
}

impl Thoughts {
    /// From the answer of one request to the next request; 0 where they overlap.
    pub fn add(&mut self, from: RouteNumber, to: RouteNumber, wait_ns: u64) {
        let wait_s = wait_ns as f64 / 1e9;
        for waits in [self.of_pair.entry((from, to)).or_default(), self.of_next.entry(to).or_default()] {
            if waits.len() < SAMPLES_MAX {
                waits.push(wait_s);
            }
        }
    }

    /// What a visitor waits between the two, as a file of traffic has it; `None`: nothing.
    pub fn between(&mut self, from: RouteNumber, to: RouteNumber) -> Option<String> {
        let pair = self.of_pair.get_mut(&(from, to)).filter(|waits| waits.len() >= SAMPLES_MIN);
        match pair {
            Some(waits) => think(waits),
            None => self.of_next.get_mut(&to).and_then(|waits| think(waits)),
        }
    }
}

/// The time with these quantiles.
fn think(waits: &mut [f64]) -> Option<String> {
    waits.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share).round() as usize];
    let (low, median, high) = (at(0.16), at(0.5), at(0.84));
    if median < SHORTEST_S {
        return None;
    }
    // The width of what is usual, but with about the mean that was seen: else the rare long waits would be far too long.
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    let with_mean = |mean: f64| (2.0 * (mean / median).max(1.0).ln()).sqrt();
    let usual = (high / low.max(SHORTEST_S)).max(1.0).ln() / 2.0;
    let sigma = usual.clamp(with_mean(mean), with_mean(MEAN_OFF_MAX * mean.max(median))).min(SIGMA_MAX);
    let ms = format!("{}ms", (median * 1e6).round() / 1e3);
    Some(if sigma < SIGMA_MIN { ms } else { format!("lognormal({ms},{sigma:.2})") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_of_the_pair_or_of_what_comes_next() {
        let mut thoughts = Thoughts::default();
        for n in 0..100u64 {
            thoughts.add(0, 1, 2_000_000_000);
            thoughts.add(1, 2, 1_000_000_000 + n * 20_000_000);
            thoughts.add(2, 0, 0);
        }
        assert_eq!(thoughts.between(0, 1).as_deref(), Some("2000ms"));
        assert_eq!(thoughts.between(9, 1).as_deref(), Some("2000ms"));
        assert_eq!(thoughts.between(2, 0), None);
        assert_eq!(thoughts.between(0, 9), None);
        let spread = thoughts.between(1, 2).expect("a time");
        assert!(spread.starts_with("lognormal(2000ms,0.3") || spread.starts_with("lognormal(1980ms,0.3"), "{spread}");
    }
}
