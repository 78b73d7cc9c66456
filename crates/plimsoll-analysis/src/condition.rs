//! Conditions on a run, as users write them: `p99>200ms`, `errors>5%`, `rps<1000` ([`Condition`]), lists of them
//! ([`Conditions`]), and the same looked after while a run is under way ([`ConditionWatch`]).
//!
//! A condition is said to *hold* when it is true of the run; whether that is good or bad is the caller's affair.

use plimsoll_model::units::{self, UnitError};
use plimsoll_model::{Failure, Histogram, Interval, Ledger, Run};
use std::fmt;
use std::str::FromStr;

/// Where the clock of a latency begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// At the intended start.
    Response,
    /// At the first byte sent.
    Service,
}

/// A figure of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The value at or below which this share lies, 0..1.
    Quantile(f64),
    /// The largest.
    Max,
    /// The mean.
    Mean,
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A latency in ns.
    Latency(Clock, Statistic),
    /// Share of the requests that succeeded.
    Success,
    /// Share of the requests that did not.
    Errors,
    /// Successes a second.
    Throughput,
    /// Requests that were never sent.
    Unsent(Amount),
    /// Requests that timed out.
    Timeouts(Amount),
}

/// Whether a number of requests is meant as such or as a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Count,
    /// Such a share, 0..=1.
    Share,
}

/// How a figure is compared with the condition's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Op {
    /// Whether `figure` compares so with `value`.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Op::Below => figure < value,
            Op::AtMost => figure <= value,
            Op::Above => figure > value,
            Op::AtLeast => figure >= value,
        }
    }
}

/// A comparison of one figure of a run with a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// The figure.
    pub metric: Metric,
    /// The comparison.
    pub op: Op,
    /// What it is compared with: ns, a share (0..=1), a count, or requests a second, by metric.
    pub value: f64,
}

/// Why a condition could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConditionError {
    /// No comparison in it.
    #[error("'{0}' is no condition; write for example p99>200ms, errors>5% or rps<1000")]
    Shape(String),
    /// A metric nobody knows.
    #[error(
        "'{0}' is not measured; there are p50 to p99.99, max and mean (also as service.p99), success, errors, rps, unsent and timeouts"
    )]
    Metric(String),
    /// A value that does not fit the metric.
    #[error(transparent)]
    Value(#[from] UnitError),
}

impl Condition {
    /// Reads one condition, such as `p99>200ms`.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let text = text.trim();
        let shape = || ConditionError::Shape(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(shape)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (op, value) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(value), _) => (Op::AtMost, value),
            (_, Some(value)) => (Op::AtLeast, value),
            _ if rest.starts_with('<') => (Op::Below, &rest[1..]),
            _ => (Op::Above, &rest[1..]),
        };
        let value = value.trim();
        if name.is_empty() || value.is_empty() {
            return Err(shape());
        }
        let amount = if value.ends_with('%') { Amount::Share } else { Amount::Count };
        let metric = Metric::parse(name, amount).ok_or_else(|| ConditionError::Metric(name.to_owned()))?;
        let value = match metric {
            Metric::Latency(..) => units::parse_duration_ns(value)? as f64,
            Metric::Success | Metric::Errors => units::parse_share(value)?,
            Metric::Unsent(Amount::Share) | Metric::Timeouts(Amount::Share) => units::parse_share(value)?,
            Metric::Throughput => units::parse_number(value)?,
            Metric::Unsent(Amount::Count) | Metric::Timeouts(Amount::Count) => units::parse_count(value)? as f64,
        };
        Ok(Condition { metric, op, value })
    }

    /// The figure of a finished run that this condition is about; `None` when there is none (a latency without a sample).
    pub fn figure(&self, run: &Run) -> Option<f64> {
        let totals = run.totals();
        let seen = Seen {
            ledger: &totals.ledger,
            requests: totals.ledger.scheduled,
            response: &totals.response,
            service: &totals.service,
            succeeded_in_window: totals.succeeded_in_window,
            window_ns: run.duration_ns(),
        };
        seen.figure(self.metric)
    }

    /// Whether the condition is true of a finished run.
    pub fn holds(&self, run: &Run) -> bool {
        self.figure(run).is_some_and(|figure| self.op.holds(figure, self.value))
    }

    /// A figure in this condition's unit, as text.
    pub fn format(&self, figure: f64) -> String {
        match self.metric {
            Metric::Latency(..) => format_duration(figure),
            Metric::Success | Metric::Errors => format_share(figure),
            Metric::Unsent(Amount::Share) | Metric::Timeouts(Amount::Share) => format_share(figure),
            _ => format_number(figure),
        }
    }
}

impl Metric {
    fn parse(name: &str, amount: Amount) -> Option<Metric> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "success" => Metric::Success,
            "errors" => Metric::Errors,
            "rps" | "throughput" => Metric::Throughput,
            "unsent" => Metric::Unsent(amount),
            "timeouts" => Metric::Timeouts(amount),
            latency => {
                let (clock, statistic) = match latency.strip_prefix("service.") {
                    Some(rest) => (Clock::Service, rest),
                    None => (Clock::Response, latency),
                };
                let statistic = match statistic {
                    "max" => Statistic::Max,
                    "mean" => Statistic::Mean,
                    percentile => {
                        let digits = percentile.strip_prefix('p')?;
                        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
                            return None;
                        }
                        let percent: f64 = digits.parse().ok()?;
                        let quantile = (percent * 1e7).round() / 1e9;
                        (quantile > 0.0 && quantile < 1.0).then_some(Statistic::Quantile(quantile))?
                    }
                };
                Metric::Latency(clock, statistic)
            }
        })
    }
}

/// What a figure is computed from.
struct Seen<'a> {
    ledger: &'a Ledger,
    /// The number that shares are of.
    requests: u64,
    response: &'a Histogram,
    service: &'a Histogram,
    succeeded_in_window: u64,
    window_ns: u64,
}

impl Seen<'_> {
    fn figure(&self, metric: Metric) -> Option<f64> {
        let share = |count: u64| (self.requests > 0).then(|| count as f64 / self.requests as f64);
        let amount = |count: u64, amount| match amount {
            Amount::Count => Some(count as f64),
            Amount::Share => share(count),
        };
        let timeouts = self.ledger.failed[Failure::Timeout as usize];
        match metric {
            Metric::Latency(clock, statistic) => {
                let histogram = match clock {
                    Clock::Response => self.response,
                    Clock::Service => self.service,
                };
                (histogram.count() > 0).then(|| match statistic {
                    Statistic::Quantile(q) => histogram.quantile_ns(q) as f64,
                    Statistic::Max => histogram.max_ns() as f64,
                    Statistic::Mean => histogram.mean_ns(),
                })
            }
            Metric::Success => share(self.ledger.succeeded),
            Metric::Errors => share(self.requests.saturating_sub(self.ledger.succeeded)),
            Metric::Throughput => {
                (self.window_ns > 0).then(|| self.succeeded_in_window as f64 * 1e9 / self.window_ns as f64)
            }
            Metric::Unsent(kind) => amount(self.ledger.unsent, kind),
            Metric::Timeouts(kind) => amount(timeouts, kind),
        }
    }
}

/// Several conditions, of which any may hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions(pub Vec<Condition>);

impl Conditions {
    /// Reads a list with commas, such as `p99>200ms, errors>1%`.
    pub fn parse(text: &str) -> Result<Conditions, ConditionError> {
        text.split(',').map(Condition::parse).collect::<Result<_, _>>().map(Conditions)
    }

    /// The conditions that are true of a finished run, each with the figure found.
    pub fn holding(&self, run: &Run) -> Vec<(Condition, f64)> {
        let figure_of = |c: &Condition| c.figure(run).map(|figure| (*c, figure));
        self.0.iter().filter_map(figure_of).filter(|(c, figure)| c.op.holds(*figure, c.value)).collect()
    }
}

/// Conditions looked after while a run is under way: shares are of the requests that have ended so far.
///
/// Nothing is said in the first second, nor of shares before 20 requests have ended: a first slow or failed request is
/// not a run. Throughput is that since the start of the measured window.
#[derive(Debug, Clone)]
pub struct ConditionWatch {
    conditions: Conditions,
    measured_from_ns: u64,
    ledger: Ledger,
    response: Histogram,
    service: Histogram,
    succeeded_in_window: u64,
}

impl ConditionWatch {
    /// A watch over a run whose measured window begins at `measured_from_ns` of schedule time.
    pub fn new(conditions: Conditions, measured_from_ns: u64) -> ConditionWatch {
        ConditionWatch {
            conditions,
            measured_from_ns,
            ledger: Ledger::default(),
            response: Histogram::new(),
            service: Histogram::new(),
            succeeded_in_window: 0,
        }
    }

    /// Takes the next tick, which ends at `end_ns` of schedule time; a condition that holds now is returned with its figure.
    pub fn push(&mut self, end_ns: u64, tick: &Interval) -> Option<(Condition, f64)> {
        self.ledger.merge(&tick.ledger);
        self.response.merge_sparse(&tick.response);
        self.service.merge_sparse(&tick.service);
        self.succeeded_in_window += tick.succeeded_in_window;
        let window_ns = end_ns.saturating_sub(self.measured_from_ns);
        let ended = self.ledger.requests() + self.ledger.unsent;
        if window_ns < units::SECOND {
            return None;
        }
        let seen = Seen {
            ledger: &self.ledger,
            requests: ended,
            response: &self.response,
            service: &self.service,
            succeeded_in_window: self.succeeded_in_window,
            window_ns,
        };
        self.conditions.0.iter().find_map(|condition| {
            let counts = matches!(
                condition.metric,
                Metric::Throughput | Metric::Unsent(Amount::Count) | Metric::Timeouts(Amount::Count)
            );
            if !counts && ended < 20 {
                return None;
            }
            let figure = seen.figure(condition.metric)?;
            condition.op.holds(figure, condition.value).then_some((*condition, figure))
        })
    }
}

impl FromStr for Condition {
    type Err = ConditionError;
    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        Condition::parse(text)
    }
}

impl FromStr for Conditions {
    type Err = ConditionError;
    fn from_str(text: &str) -> Result<Conditions, ConditionError> {
        Conditions::parse(text)
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Quantile(q) => write!(f, "p{}", (q * 1e9).round() / 1e7),
            Statistic::Max => f.write_str("max"),
            Statistic::Mean => f.write_str("mean"),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Latency(Clock::Response, statistic) => write!(f, "{statistic}"),
            Metric::Latency(Clock::Service, statistic) => write!(f, "service.{statistic}"),
            Metric::Success => f.write_str("success"),
            Metric::Errors => f.write_str("errors"),
            Metric::Throughput => f.write_str("rps"),
            Metric::Unsent(_) => f.write_str("unsent"),
            Metric::Timeouts(_) => f.write_str("timeouts"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Below => "<",
            Op::AtMost => "<=",
            Op::Above => ">",
            Op::AtLeast => ">=",
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.metric, self.op, self.format(self.value))
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, condition) in self.0.iter().enumerate() {
            write!(f, "{}{condition}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A number with at most six decimals, without trailing zeros.
pub(crate) fn format_number(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share as percent.
pub(crate) fn format_share(share: f64) -> String {
    format!("{}%", format_number(share * 100.0))
}

/// A time in the largest unit in which it is at least 1.
pub(crate) fn format_duration(ns: f64) -> String {
    let (factor, unit) = match ns {
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        ns if ns >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{}{unit}", format_number(ns / factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn conditions_parse_or_say_why_not() {
        for (text, expect) in [
            ("p99>200ms", Ok("p99>200ms")),
            ("P99.9 >= 1.5s", Ok("p99.9>=1.5s")),
            ("service.p50<100us", Ok("service.p50<100us")),
            ("service.mean<2", Ok("service.mean<2s")),
            ("max<=1m", Ok("max<=60s")),
            ("errors>5%", Ok("errors>5%")),
            ("success<0.999", Ok("success<99.9%")),
            ("rps<1k", Ok("rps<1000")),
            ("throughput<1k", Ok("rps<1000")),
            ("unsent>0", Ok("unsent>0")),
            ("unsent>1%", Ok("unsent>1%")),
            ("timeouts>=10", Ok("timeouts>=10")),
            ("", Err("no condition")),
            ("p99", Err("no condition")),
            ("p99=200ms", Err("no condition")),
            ("p99>", Err("no condition")),
            (">3", Err("no condition")),
            ("p100>1s", Err("not measured")),
            ("p0>1s", Err("not measured")),
            ("pinf>1s", Err("not measured")),
            ("speed>3", Err("not measured")),
            ("p99>quick", Err("not a time")),
            ("errors>5", Err("not a share")),
            ("rps>many", Err("not a number")),
            ("timeouts>1.5", Err("not a whole number")),
        ] {
            match (Condition::parse(text), expect) {
                (Ok(condition), Ok(canonical)) => assert_eq!(condition.to_string(), canonical, "{text}"),
                (Err(error), Err(part)) => {
                    let error = error.to_string();
                    assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
                }
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
        let list = Conditions::parse("p99>200ms,errors>1%").expect("parses");
        assert_eq!(list.to_string(), "p99>200ms, errors>1%");
        assert!(Conditions::parse("p99>200ms,").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(percent in 1u32..10_000, ns in 1u64..10_000_000_000, service in any::<bool>()) {
            let text = format!("{}p{}>{ns}ns", if service { "service." } else { "" }, f64::from(percent) / 100.0);
            // p100 and above are no percentiles.
            prop_assume!(percent < 10_000);
            let condition = Condition::parse(&text).expect("parses");
            let again = Condition::parse(&condition.to_string()).expect("reads back");
            prop_assert_eq!(condition.metric, again.metric);
            prop_assert!((condition.value - again.value).abs() <= condition.value * 1e-6 + 1.0);
        }
    }

    fn tick(succeeded: u64, failed: u64, latency_ns: u64) -> Interval {
        let mut response = Histogram::new();
        response.record_n(latency_ns, succeeded);
        Interval {
            ledger: Ledger {
                scheduled: succeeded + failed,
                succeeded,
                failed: [failed, 0, 0, 0, 0, 0, 0],
                ..Ledger::default()
            },
            succeeded_in_window: succeeded,
            response: response.drain(),
            ..Interval::default()
        }
    }

    #[test]
    fn a_watch_waits_for_evidence() {
        let conditions = Conditions::parse("errors>5%, p99>200ms").expect("parses");
        let mut watch = ConditionWatch::new(conditions.clone(), 0);
        assert_eq!(watch.push(100_000_000, &tick(0, 10, 0)), None);
        assert_eq!(watch.push(1_000_000_000, &tick(5, 0, 1_000_000)), None, "15 requests are not 20");
        let (condition, figure) = watch.push(1_100_000_000, &tick(85, 0, 1_000_000)).expect("10 of 100 failed");
        assert_eq!((condition, condition.format(figure)), (conditions.0[0], "10%".to_owned()));
    }
}
