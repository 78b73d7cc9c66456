//! What a service promises ([`Slo`]), counted over all requests that were scheduled.
//!
//! Every bound of a promise is turned into one number: how many of the scheduled requests may be bad. A request that
//! failed, was never sent or was never answered is slower than any latency bound. Such counts add up exactly over
//! workers and machines, which percentiles do not. Not here: judging a run (see [`crate::judge()`]).

use crate::condition::{Clock, Condition, ConditionError, Metric, Op, Statistic, duration_syntax, share_syntax};
use std::fmt;
use std::str::FromStr;

/// At most a share `1 - quantile` of the scheduled requests may take longer than `bound_ns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyBound {
    /// 0..=1; 1 means that no request may be slower.
    pub quantile: f64,
    /// Response time from the intended start, in ns.
    pub bound_ns: u64,
}

/// A promise: a least share of successes, and any number of latency bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// Least share of the scheduled requests that must succeed, 0..=1.
    pub success_min: f64,
    /// Latency bounds, as given.
    pub latency: Vec<LatencyBound>,
}

/// One bound of an [`Slo`] as a count of bad requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Slower than this is bad; `None`: only failures are bad.
    pub bound_ns: Option<u64>,
    /// The share of the scheduled requests that may be bad, 0..=1.
    pub share: f64,
}

impl Allowance {
    /// How many of `scheduled` requests may be bad.
    pub fn count_of(&self, scheduled: u64) -> u64 {
        // The small addition undoes the rounding of products such as (1 - 0.99) * 100.
        (self.share * scheduled as f64 + 1e-6).floor() as u64
    }
}

/// Why a promise could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SloError {
    /// A part that is no condition.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A condition that says what must not be, or a metric that no promise is made of.
    #[error(
        "'{0}' is no part of an SLO; write a least success rate and latency bounds, such as success>=99.9%, p99<=500ms"
    )]
    Part(String),
}

impl Slo {
    /// Reads a list such as `success>=99.9%, p99<=500ms`. Without a success bound 99.9 % is meant.
    pub fn parse(text: &str) -> Result<Slo, SloError> {
        let mut slo = Slo { success_min: 0.999, latency: Vec::new() };
        for part in text.split(',') {
            let condition = Condition::parse(part)?;
            let upper = matches!(condition.op, Op::Below | Op::AtMost);
            let latency = |quantile| LatencyBound { quantile, bound_ns: condition.value as u64 };
            match condition.metric {
                // Rounded, as 99.9 / 100 is not 0.999.
                Metric::Success if !upper => slo.success_min = (condition.value * 1e12).round() / 1e12,
                Metric::Errors if upper => slo.success_min = ((1.0 - condition.value) * 1e12).round() / 1e12,
                Metric::Latency(Clock::Response, Statistic::Quantile(q)) if upper => slo.latency.push(latency(q)),
                Metric::Latency(Clock::Response, Statistic::Max) if upper => slo.latency.push(latency(1.0)),
                _ => return Err(SloError::Part(part.trim().to_owned())),
            }
        }
        Ok(slo)
    }

    /// Every bound as a count of bad requests; success first.
    pub fn allowances(&self) -> Vec<Allowance> {
        let success = Allowance { bound_ns: None, share: 1.0 - self.success_min };
        let latency = self.latency.iter().map(|b| Allowance { bound_ns: Some(b.bound_ns), share: 1.0 - b.quantile });
        std::iter::once(success).chain(latency).collect()
    }

    /// The shortest latency bound in ns.
    pub fn bound_min_ns(&self) -> Option<u64> {
        self.latency.iter().map(|b| b.bound_ns).min()
    }

    /// The longest latency bound in ns.
    pub fn bound_max_ns(&self) -> Option<u64> {
        self.latency.iter().map(|b| b.bound_ns).max()
    }
}

impl Default for Slo {
    /// `success>=99.9%, p99<=500ms`.
    fn default() -> Slo {
        Slo { success_min: 0.999, latency: vec![LatencyBound { quantile: 0.99, bound_ns: 500_000_000 }] }
    }
}

impl FromStr for Slo {
    type Err = SloError;
    fn from_str(text: &str) -> Result<Slo, SloError> {
        Slo::parse(text)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "success>={}", share_syntax(self.success_min))?;
        for bound in &self.latency {
            let statistic = if bound.quantile >= 1.0 { Statistic::Max } else { Statistic::Quantile(bound.quantile) };
            write!(f, ", {statistic}<={}", duration_syntax(bound.bound_ns as f64))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_parse_or_say_why_not() {
        for (text, expect) in [
            ("success>=99.9%, p99<=500ms", Ok("success>=99.9%, p99<=500ms")),
            ("p99<200ms", Ok("success>=99.9%, p99<=200ms")),
            ("success>99%", Ok("success>=99%")),
            ("errors<1%,p50<=1.5ms,max<=2s", Ok("success>=99%, p50<=1.5ms, max<=2s")),
            ("p99>200ms", Err("no part of an SLO")),
            ("mean<=20ms", Err("no part of an SLO")),
            ("service.p99<=20ms", Err("no part of an SLO")),
            ("rps>=100", Err("no part of an SLO")),
            ("", Err("no condition")),
            ("p99", Err("no condition")),
            ("p99<=fast", Err("not a time")),
        ] {
            match (Slo::parse(text), expect) {
                (Ok(slo), Ok(canonical)) => {
                    assert_eq!(slo.to_string(), canonical, "{text}");
                    assert_eq!(Slo::parse(canonical).as_ref(), Ok(&slo), "{canonical}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
        assert_eq!(Slo::default().to_string(), "success>=99.9%, p99<=500ms");
        assert_eq!(Slo::parse(&Slo::default().to_string()), Ok(Slo::default()));
    }

    #[test]
    fn allowances_count_what_may_be_bad() {
        let allowances = Slo::default().allowances();
        assert_eq!(allowances.iter().map(|a| a.count_of(1000)).collect::<Vec<_>>(), [1, 10]);
        assert_eq!(allowances.iter().map(|a| a.count_of(99)).collect::<Vec<_>>(), [0, 0]);
    }
}
