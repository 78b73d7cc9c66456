//! Quantiles of times that may be stated ([`Quantile`]): over every request of the ledger, and only
//! with enough requests beyond them.
//!
//! A failed, unsent or open request is slower than any bound: otherwise a server that fails fast
//! would look quick. And a p99.9 of a hundred requests is their maximum, no p99.9.
//!
//! Not here: SLOs and conditions, which compare counts of requests ([`crate::slo`],
//! [`crate::condition`]).

use crate::format;
use plimsoll_model::{Histogram, Ledger};
use std::fmt;

/// Fewest requests beyond a stated quantile: the standard deviation of a count of ten is about a
/// third of it, which limits the precision of a tail.
pub const BEYOND_MIN: u64 = 10;

/// One quantile, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantile {
    /// So long, in ns.
    Time(u64),
    /// Longer than so long, in ns, when the request was given up.
    Over(u64),
    /// Slower than any bound: that many requests failed, were not sent, or were not answered.
    Failed,
    /// Fewer than [`BEYOND_MIN`] requests lie beyond it.
    #[default]
    Few,
}

impl Quantile {
    /// The quantile `q` of `all` requests, of which `succeeded` have the shortest of `times`. The
    /// other times belong to requests that timed out; the rest of all is slower than any bound.
    pub fn compute(times: &Histogram, (all, succeeded): (u64, u64), q: f64) -> Quantile {
        // The small subtraction undoes the rounding of products such as 0.99 * 100.
        let rank = ((q * all as f64 - 1e-6).ceil().max(1.0) as u64).min(all);
        if all < rank + BEYOND_MIN {
            return Quantile::Few;
        }
        // The middle of the step that belongs to this rank.
        let time_ns = || times.quantile_ns((rank as f64 - 0.5) / times.count() as f64);
        match rank {
            rank if rank <= succeeded.min(times.count()) => Quantile::Time(time_ns()),
            rank if rank <= times.count() => Quantile::Over(time_ns()),
            _ => Quantile::Failed,
        }
    }

    /// The time in ns, where it is known.
    pub fn time_ns(self) -> Option<u64> {
        match self {
            Quantile::Time(ns) => Some(ns),
            Quantile::Over(_) | Quantile::Failed | Quantile::Few => None,
        }
    }
}

/// As in a cell of a table: `12.5 ms`, `> 30.0 s`, `failed`, or `-` where too few requests lie
/// beyond it.
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
    /// The quantiles of complete times.
    pub fn from_histogram(times: &Histogram) -> Quantiles {
        Quantiles::of_share(times, (times.count(), times.count()))
    }

    /// The quantiles of the times of a ledger's requests: over every scheduled request.
    pub fn of_ledger(times: &Histogram, ledger: &Ledger) -> Quantiles {
        Quantiles::of_share(times, (ledger.scheduled, ledger.succeeded))
    }

    fn of_share(times: &Histogram, requests: (u64, u64)) -> Quantiles {
        let of = |q| Quantile::compute(times, requests, q);
        Quantiles { p50: of(0.5), p75: of(0.75), p90: of(0.9), p95: of(0.95), p99: of(0.99), p999: of(0.999) }
    }

    /// The names of those that too few requests lie beyond, the least first.
    pub fn few(&self) -> impl Iterator<Item = &'static str> {
        let Quantiles { p50, p75, p90, p95, p99, p999 } = *self;
        let all = [("p50", p50), ("p75", p75), ("p90", p90), ("p95", p95), ("p99", p99), ("p99.9", p999)];
        all.into_iter().filter(|(_, quantile)| *quantile == Quantile::Few).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Successes of 1 ms to `succeeded` ms, then `timeouts` requests that timed out after 30 s.
    fn times(succeeded: u64, timeouts: u64) -> Histogram {
        let mut times = Histogram::new();
        (1..=succeeded).for_each(|ms| times.record(ms * 1_000_000));
        times.record_n(30_000_000_000, timeouts);
        times
    }

    #[test]
    fn a_quantile_is_over_all_requests_and_of_enough_of_them() {
        // (succeeded, given up, failed otherwise), share -> as it is printed.
        for (succeeded, timeouts, failed, q, expect) in [
            (1_000, 0, 0, 0.5, "500 ms"),
            (1_000, 0, 0, 0.99, "990 ms"),
            (1_000, 0, 0, 0.999, "-"),
            (999, 0, 0, 0.99, "-"),
            (10_000, 0, 0, 0.999, "9.99 s"),
            (20, 0, 0, 0.5, "10.0 ms"),
            (19, 0, 0, 0.5, "-"),
            (0, 0, 0, 0.5, "-"),
            // A server that fails one in twenty at once has no p99, and its p90 is over all
            // requests.
            (950, 0, 50, 0.9, "900 ms"),
            (950, 0, 50, 0.99, "failed"),
            (950, 50, 0, 0.99, "> 30.0 s"),
            (950, 5, 45, 0.99, "failed"),
            (0, 0, 1_000, 0.5, "failed"),
            (0, 0, 12, 0.5, "-"),
        ] {
            let all = (succeeded + timeouts + failed, succeeded);
            let found = Quantile::compute(&times(succeeded, timeouts), all, q);
            assert_eq!(found.to_string(), expect, "{succeeded} + {timeouts} + {failed}, {q}");
        }
        assert_eq!(format!("{:>8}", Quantile::Failed), "  failed");
    }

    #[test]
    fn what_is_not_stated_is_named() {
        for (count, expect) in [(10_000, vec![]), (1_000, vec!["p99.9"]), (100, vec!["p95", "p99", "p99.9"])] {
            assert_eq!(Quantiles::from_histogram(&times(count, 0)).few().collect::<Vec<_>>(), expect);
        }
    }
}
