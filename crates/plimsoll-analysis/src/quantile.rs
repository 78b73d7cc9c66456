//! Quantiles of times over all requests of a ledger ([`Quantile`]). A quantile is not stated if too
//! few requests lie beyond it.
//!
//! A request that failed, was not sent or got no response counts as slower than any bound. If
//! failed requests did not count as slow, a server that fails requests fast would seem to have
//! short response times. The p99.9 of a hundred requests would be their longest time, so plimsoll
//! does not state a p99.9 of a hundred requests.
//!
//! Not here: SLOs and conditions, which compare counts of bad requests ([`crate::slo`],
//! [`crate::condition`]).

use crate::format;
use plimsoll_model::{Histogram, Ledger};
use std::fmt;

/// Smallest number of requests beyond a quantile for which the quantile is stated. The standard
/// deviation of a count of ten is about a third of ten. So the position of a quantile with ten
/// requests beyond it is known to about a third.
pub const REQUESTS_BEYOND_MIN: u64 = 10;

/// One quantile of a distribution of times, or the reason why it is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantile {
    /// The quantile is this time, in ns.
    Time(u64),
    /// The quantile is longer than this time, in ns: plimsoll gave up the request after this time.
    Over(u64),
    /// The quantile is longer than any bound, because too many requests failed, were not sent or
    /// got no response.
    Failed,
    /// The quantile is not stated: fewer than [`REQUESTS_BEYOND_MIN`] requests lie beyond it.
    #[default]
    Few,
}

/// Returns the rank of quantile `q` among `all` times: 1 for the shortest time.
fn quantile_rank(q: f64, all: u64) -> u64 {
    // The subtraction of 1e-6 compensates for the rounding error of products such as 0.99 * 100.
    ((q * all as f64 - 1e-6).ceil().max(1.0) as u64).min(all)
}

/// Returns whether enough of `all` requests lie beyond quantile `q` for the quantile to be stated.
pub fn is_stated(q: f64, all: u64) -> bool {
    all >= quantile_rank(q, all) + REQUESTS_BEYOND_MIN
}

impl Quantile {
    /// Computes the quantile `q` over `all` requests. The `succeeded` shortest entries of `times`
    /// are successes. All longer entries of `times` are requests that plimsoll gave up. Requests
    /// without an entry in `times` count as slower than any bound.
    pub fn compute(times: &Histogram, (all, succeeded): (u64, u64), q: f64) -> Quantile {
        if !is_stated(q, all) {
            return Quantile::Few;
        }
        let rank = quantile_rank(q, all);
        // The quantile is read in the middle of the step that `rank` has in the cumulative
        // distribution.
        let time_ns = || times.quantile_ns((rank as f64 - 0.5) / times.count() as f64);
        match rank {
            rank if rank <= succeeded.min(times.count()) => Quantile::Time(time_ns()),
            rank if rank <= times.count() => Quantile::Over(time_ns()),
            _ => Quantile::Failed,
        }
    }

    /// Returns the quantile in ns; `None` if the quantile is not stated, or is only known to be
    /// longer than some time.
    pub fn time_ns(self) -> Option<u64> {
        match self {
            Quantile::Time(ns) => Some(ns),
            Quantile::Over(_) | Quantile::Failed | Quantile::Few => None,
        }
    }
}

/// Formats the quantile for a cell of a table: `12.5 ms`, `> 30.0 s`, `failed`, or `-` if too few
/// requests lie beyond it.
impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantile::Time(ns) => f.pad(&format::duration(*ns as f64)),
            Quantile::Over(ns) => f.pad(&format!("> {}", format::duration(*ns as f64))),
            Quantile::Failed => f.pad("failed"),
            Quantile::Few => f.pad("-"),
        }
    }
}

/// The usual quantiles of a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Quantiles {
    pub p50: Quantile,
    pub p75: Quantile,
    pub p90: Quantile,
    pub p95: Quantile,
    pub p99: Quantile,
    pub p999: Quantile,
}

impl Quantiles {
    /// Computes the quantiles of a histogram that contains the times of all requests.
    pub fn from_histogram(times: &Histogram) -> Quantiles {
        Quantiles::quantiles_of_histogram(times, (times.count(), times.count()))
    }

    /// Computes the quantiles over all scheduled requests of a ledger.
    pub fn quantiles_of_ledger(times: &Histogram, ledger: &Ledger) -> Quantiles {
        Quantiles::quantiles_of_histogram(times, (ledger.scheduled, ledger.succeeded))
    }

    fn quantiles_of_histogram(times: &Histogram, requests: (u64, u64)) -> Quantiles {
        let of = |q| Quantile::compute(times, requests, q);
        Quantiles { p50: of(0.5), p75: of(0.75), p90: of(0.9), p95: of(0.95), p99: of(0.99), p999: of(0.999) }
    }

    /// Returns the names of the quantiles that are not stated because too few requests lie beyond
    /// them, the lowest first.
    pub fn unstated_quantile_names(&self) -> impl Iterator<Item = &'static str> {
        let Quantiles { p50, p75, p90, p95, p99, p999 } = *self;
        let all = [("p50", p50), ("p75", p75), ("p90", p90), ("p95", p95), ("p99", p99), ("p99.9", p999)];
        all.into_iter().filter(|(_, quantile)| *quantile == Quantile::Few).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a histogram of `succeeded` successes (after 1 ms, 2 ms and so on) and of `timeouts`
    /// requests that plimsoll gave up after 30 s.
    fn histogram_with_timeouts(succeeded: u64, timeouts: u64) -> Histogram {
        let mut times = Histogram::new();
        (1..=succeeded).for_each(|ms| times.record(ms * 1_000_000));
        times.record_n(30_000_000_000, timeouts);
        times
    }

    #[test]
    fn quantiles_count_all_requests_and_need_enough() {
        // Each row contains the numbers of requests (succeeded, given up, failed for another
        // reason), the quantile, and its expected text.
        for (succeeded, timeouts, failed, q, expect) in [
            (1_000, 0, 0, 0.5, "500 ms"),
            (1_000, 0, 0, 0.99, "990 ms"),
            (1_000, 0, 0, 0.999, "-"),
            (999, 0, 0, 0.99, "-"),
            (10_000, 0, 0, 0.999, "9.99 s"),
            (20, 0, 0, 0.5, "10.0 ms"),
            (19, 0, 0, 0.5, "-"),
            (0, 0, 0, 0.5, "-"),
            // If a server immediately fails one of twenty requests, the p90 is a time and the p99
            // is "failed". The p90 also covers all requests, including the failed requests.
            (950, 0, 50, 0.9, "900 ms"),
            (950, 0, 50, 0.99, "failed"),
            (950, 50, 0, 0.99, "> 30.0 s"),
            (950, 5, 45, 0.99, "failed"),
            (0, 0, 1_000, 0.5, "failed"),
            (0, 0, 12, 0.5, "-"),
        ] {
            let all = (succeeded + timeouts + failed, succeeded);
            let found = Quantile::compute(&histogram_with_timeouts(succeeded, timeouts), all, q);
            assert_eq!(found.to_string(), expect, "{succeeded} + {timeouts} + {failed}, {q}");
        }
        assert_eq!(format!("{:>8}", Quantile::Failed), "  failed");
    }

    #[test]
    fn unstated_quantiles_are_named() {
        for (count, expect) in [(10_000, vec![]), (1_000, vec!["p99.9"]), (100, vec!["p95", "p99", "p99.9"])] {
            assert_eq!(
                Quantiles::from_histogram(&histogram_with_timeouts(count, 0))
                    .unstated_quantile_names()
                    .collect::<Vec<_>>(),
                expect
            );
        }
    }
}
