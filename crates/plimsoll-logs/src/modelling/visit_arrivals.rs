//! Fits the rate of visits over time, and the spacing of the starts of visits.
//!
//! The numbers of visits in the intervals of a log vary by chance. If the model's rate were the
//! counted visits of each interval, random draws from this rate would add chance variation a second
//! time. To prevent this double variation, the rates of the intervals are shrunk towards their mean
//! by the variation that chance explains. The numbers of visits that are drawn from the shrunk
//! rates then vary as much as in the log.

use plimsoll_model::units::format_exact_duration;
use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadStage};
use plimsoll_traffic::import::draft::DraftLoad;

/// The candidate widths of the intervals in which visits are counted, s.
const WIDTHS_S: [u64; 13] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 14_400];
/// The accepted numbers of intervals into which a log is divided to fit a rate that changes over
/// time.
const INTERVAL_COUNTS: std::ops::RangeInclusive<u64> = 5..=300;
/// An interval must have at least this mean number of visits for a fitted rate that changes over
/// time.
const VISITS_PER_INTERVAL_MIN: f64 = 20.0;
/// Visits count as evenly spaced below this index of dispersion (variance over mean of the counts).
/// Random arrivals have an index of dispersion of 1.
const EVEN_DISPERSION_MAX: f64 = 0.5;

/// The rate of visits in 1/s, and the spacing of the starts of visits. If the model is a mix of
/// single requests, each request is a visit.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitArrivals {
    /// The rate of visits over the length of the log, 1/s.
    pub rate: LoadCurve,
    /// The spacing of the starts of visits: constant or Poisson.
    pub arrivals: ArrivalSpacing,
}

impl VisitArrivals {
    /// Fits the rate of visits over time to the starts of visits within `span_ns`. The starts are
    /// ordered, in ns, and each start has a weight, which is 1 for a visit with the mean number of
    /// requests.
    pub fn from_starts(starts: &[(u64, f64)], first_ns: u64, span_ns: u64) -> VisitArrivals {
        let counts = |width_ns: u64| {
            let mut counts = vec![0.0; (span_ns / width_ns) as usize];
            for (start_ns, weight) in starts {
                if let Some(count) = counts.get_mut(((start_ns - first_ns) / width_ns) as usize) {
                    *count += weight;
                }
            }
            counts
        };
        let mean = starts.len() as f64 * 1e9 / span_ns as f64;
        let widths = WIDTHS_S.iter().map(|s| s * 1_000_000_000);
        let width_ns = widths.into_iter().find(|width_ns| {
            INTERVAL_COUNTS.contains(&(span_ns / width_ns)) && mean * *width_ns as f64 / 1e9 >= VISITS_PER_INTERVAL_MIN
        });
        // A traffic file states durations in whole milliseconds.
        let whole_ms = |ns: u64| ns.next_multiple_of(1_000_000);
        let constant = |arrivals| VisitArrivals {
            rate: LoadCurve::constant_for_duration(round_rate(mean), whole_ms(span_ns)),
            arrivals,
        };
        let Some(width_ns) = width_ns else {
            return constant(ArrivalSpacing::Poisson);
        };
        let counts = counts(width_ns);
        let (index, each) = dispersion_and_mean(&counts);
        if index < EVEN_DISPERSION_MAX {
            return constant(ArrivalSpacing::Constant);
        }
        // If the index of dispersion is at most 3 standard errors above 1, chance alone explains
        // the variation of the counts. The fitted rate is then constant.
        if index <= 1.0 + 3.0 * (2.0 / (counts.len() - 1) as f64).sqrt() {
            return constant(ArrivalSpacing::Poisson);
        }
        let kept = (1.0 - 1.0 / index).sqrt();
        let last_ns = whole_ms(span_ns - width_ns * (counts.len() as u64 - 1));
        let stage = |(at, count): (usize, &f64)| {
            let rate = round_rate((each + kept * (count - each)).max(0.0) * 1e9 / width_ns as f64);
            let length_ns = if at + 1 == counts.len() { last_ns } else { width_ns };
            LoadStage { from: rate, to: rate, duration_ns: Some(length_ns) }
        };
        let stages = counts.iter().enumerate().map(stage).collect();
        VisitArrivals { rate: LoadCurve { stages }, arrivals: ArrivalSpacing::Poisson }
    }

    /// Returns the `load` table of the traffic file with this rate.
    pub(super) fn draft_load_table(&self) -> DraftLoad {
        let (rate, duration_ns) = match self.rate.stages.as_slice() {
            [only] if only.from == only.to => (only.from.to_string(), only.duration_ns),
            _ => (self.rate.to_string(), None),
        };
        let duration = duration_ns.map(format_exact_duration);
        DraftLoad { rate: Some(rate), arrivals: Some(self.arrivals), duration, ..DraftLoad::default() }
    }
}

/// Rounds a rate of 100 or more to one decimal, and a smaller rate to four decimals.
fn round_rate(rate: f64) -> f64 {
    if rate >= 100.0 { (rate * 10.0).round() / 10.0 } else { (rate * 1e4).round() / 1e4 }
}

/// Returns the index of dispersion (variance over mean) and the mean of counts.
fn dispersion_and_mean(counts: &[f64]) -> (f64, f64) {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (variance / mean.max(f64::MIN_POSITIVE), mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    const SECOND: u64 = 1_000_000_000;

    fn pace_of_starts(starts_ns: &[u64], span_ns: u64) -> VisitArrivals {
        let starts: Vec<(u64, f64)> = starts_ns.iter().map(|start_ns| (*start_ns, 1.0)).collect();
        VisitArrivals::from_starts(&starts, 0, span_ns)
    }

    fn random_visit_starts(rates: &[f64]) -> Vec<u64> {
        let mut rng = Rng::new(3);
        let mut starts = Vec::new();
        for (second, rate) in rates.iter().enumerate() {
            let mut in_second: Vec<u64> =
                (0..rng.poisson(*rate)).map(|_| second as u64 * SECOND + rng.uniform_below(SECOND)).collect();
            in_second.sort_unstable();
            starts.extend(in_second);
        }
        starts
    }

    #[test]
    fn random_arrivals_are_one_rate_and_real_changes_are_kept() {
        let even: Vec<u64> = (0..3000).map(|n| n * SECOND / 50).collect();
        let pace = pace_of_starts(&even, 60 * SECOND);
        assert_eq!((pace.arrivals, pace.rate.to_string().as_str()), (ArrivalSpacing::Constant, "50@60s"));
        let pace = pace_of_starts(&random_visit_starts(&[50.0; 60]), 60 * SECOND);
        assert_eq!((pace.arrivals, pace.rate.stages.len()), (ArrivalSpacing::Poisson, 1));
        let rates: Vec<f64> = (0..60).map(|second| if second % 20 < 10 { 20.0 } else { 80.0 }).collect();
        let pace = pace_of_starts(&random_visit_starts(&rates), 60 * SECOND);
        assert_eq!(pace.rate.stages.len(), 60);
        let mean = pace.rate.stages.iter().map(|stage| stage.from).sum::<f64>() / 60.0;
        assert!((46.0..54.0).contains(&mean), "{mean}");
        assert_eq!(pace.rate.duration_ns(), Some(60 * SECOND));
    }

    #[test]
    fn few_visits_give_one_rate() {
        let pace = pace_of_starts(&[0, 5 * SECOND], 10 * SECOND);
        assert_eq!(pace.rate.to_string(), "0.2@10s");
        let (rate, arrivals) = (Some("0.2".to_owned()), Some(ArrivalSpacing::Poisson));
        let duration = Some("10s".to_owned());
        assert_eq!(pace.draft_load_table(), DraftLoad { rate, arrivals, duration, ..DraftLoad::default() });
    }
}
