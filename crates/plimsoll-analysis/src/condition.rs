//! Conditions on a run, as users write them: `p99>200ms`, `errors>5%`, `rps<1000` ([`Condition`]),
//! and lists of conditions ([`Conditions`]).
//!
//! A condition *holds* if it is true of the run. The caller decides whether a true condition is
//! good or bad. A gate ([`Conditions::crossed_conditions`]), such as `--fail-if`, fails if a
//! condition is true. In a gate, a condition on a figure that was not measured counts as crossed
//! (true), because a gate without evidence must not pass.
//!
//! Latencies cover all scheduled requests, as in an [`crate::Slo`]. A request that failed, was
//! never sent or got no response counts as slower than any bound. If latencies covered only
//! successful requests, a server that sends only errors would have no slow request. A percentile is
//! infinite if too many requests did not succeed. The mean and the maximum are infinite as soon as
//! one request did not succeed.
//!
//! Not here: the check of conditions during a run ([`crate::ConditionWatch`]).

use crate::format;
use crate::request_names;
use crate::server::ServerUse;
use plimsoll_model::units::{self, UnitError};
use plimsoll_model::{Histogram, Ledger, RequestFailure, RouteNumber, RouteRecord, Run, TimeMeasure};
use std::fmt;
use std::str::FromStr;

/// A statistic of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The quantile for a share of the values, 0..1, such as 0.99 for p99. For p99, 99 % of the
    /// values are at most as large as the quantile.
    Quantile(f64),
    /// The maximum of the distribution.
    Max,
    /// The mean of the distribution.
    Mean,
}

/// The figure of a run that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A statistic of one measured time, in ns.
    Latency(TimeMeasure, Statistic),
    /// Share of the requests that succeeded.
    Success,
    /// Share of the requests that did not succeed.
    Errors,
    /// Successful requests a second (goodput).
    Throughput,
    /// CPU time of the server per request with a response, in ns. The CPU time is known only after
    /// the run.
    Cpu,
    /// Requests that were never sent, as a number or as a share of all requests.
    Unsent(CountOrShare),
    /// Requests that timed out, as a number or as a share of all requests.
    Timeouts(CountOrShare),
}

/// Whether a condition bounds a number of requests or a share of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOrShare {
    /// The condition bounds a number of requests.
    Count,
    /// The condition bounds a share of all requests, 0..=1.
    Share,
}

/// The comparison operator between the figure of a run and the value of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `<`: the figure is less than the value.
    Below,
    /// `<=`: the figure is at most the value.
    AtMost,
    /// `>`: the figure is greater than the value.
    Above,
    /// `>=`: the figure is at least the value.
    AtLeast,
}

impl Op {
    /// Splits a comparison such as `p99>200ms` into its name, the operator and its value. Returns
    /// `None` if the name, the operator or the value is missing.
    pub fn split(text: &str) -> Option<(&str, Op, &str)> {
        // A name in quotation marks may contain `<` and `>`, so the search for the operator begins
        // after the name.
        let named = request_names::split_quoted_name(text.trim_start()).map_or(0, |(_, rest)| text.len() - rest.len());
        let at = named + text[named..].find(['<', '>'])?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (op, value) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(value), _) => (Op::AtMost, value),
            (_, Some(value)) => (Op::AtLeast, value),
            _ if rest.starts_with('<') => (Op::Below, &rest[1..]),
            _ => (Op::Above, &rest[1..]),
        };
        let value = value.trim();
        (!name.is_empty() && !value.is_empty()).then_some((name, op, value))
    }

    /// Returns whether the comparison `figure` (operator) `value` is true.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Op::Below => figure < value,
            Op::AtMost => figure <= value,
            Op::Above => figure > value,
            Op::AtLeast => figure >= value,
        }
    }
}

/// A comparison of one figure of a run with a fixed value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The name of the request that the condition applies to; `None` means all requests.
    pub route: Option<String>,
    /// The figure of the run that the condition compares with `value`.
    pub metric: Metric,
    /// The comparison operator.
    pub op: Op,
    /// The value on the right of the operator. The unit of the value depends on the metric: ns, a
    /// share (0..=1), a count, or requests a second.
    pub value: f64,
}

/// The reason why the text of a condition could not be parsed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConditionError {
    /// The text has no comparison operator.
    #[error("'{0}' is no condition; write for example p99>200ms, errors>5% or rps<1000")]
    NoOperator(String),
    /// The metric has an unknown name.
    #[error(
        "'{0}' is not measured, so no condition can use it. Choose p50 to p99.99, max or mean of the response time, \
         or success, errors, goodput (or rate, rps), cpu, unsent or timeouts. For a statistic of another kind of \
         latency, write its name first, such as service.p99 ({times})", times = time_names()
    )]
    Metric(String),
    /// The condition names one request, but the metric (such as CPU time) exists only for all
    /// requests together.
    #[error("'{0}' is a value of the whole server, not of one request: leave the name of the request out")]
    OnlyForAll(String),
    /// The value has no unit. The second text shows the condition with each unit that the user
    /// probably meant.
    #[error("'{0}' has no unit: write {1}")]
    Unit(String, String),
    /// The value cannot be parsed in the unit of the metric.
    #[error(transparent)]
    Value(#[from] UnitError),
}

impl Condition {
    /// Parses one condition, such as `p99>200ms`.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let text = text.trim();
        let (name, op, value) = Op::split(text).ok_or_else(|| ConditionError::NoOperator(text.to_owned()))?;
        let amount = if value.ends_with('%') { CountOrShare::Share } else { CountOrShare::Count };
        let (route, metric) =
            split_route_and_metric(name, amount).ok_or_else(|| ConditionError::Metric(name.to_owned()))?;
        let is_of_all = match metric {
            Metric::Latency(measure, _) => !measure.is_per_route(),
            _ => metric == Metric::Cpu,
        };
        if route.is_some() && is_of_all {
            return Err(ConditionError::OnlyForAll(name.to_owned()));
        }
        let number = value.parse::<f64>().is_ok_and(f64::is_finite);
        let unit = |units: &str| {
            let likely = units.split(", ").map(|unit| format!("{name}{op}{value}{unit}")).collect::<Vec<_>>();
            Err(ConditionError::Unit(text.to_owned(), likely.join(" or ")))
        };
        match metric {
            // A latency without a unit is refused. Other tools read a bare number as seconds, but
            // users of plimsoll mostly mean ms.
            Metric::Latency(..) if number => return unit("ms, s"),
            // A number with a decimal point is a share of 1. A whole number above 0 could mean a
            // percentage or a share, so a whole number is refused.
            Metric::Success | Metric::Errors if number && !value.contains('.') && value != "0" => {
                return unit(if value == "1" { "%, 00%" } else { "%" });
            }
            _ => {}
        }
        let value = match metric {
            Metric::Latency(..) | Metric::Cpu => units::parse_duration_ns(value)? as f64,
            Metric::Success | Metric::Errors => units::parse_share(value)?,
            Metric::Unsent(CountOrShare::Share) | Metric::Timeouts(CountOrShare::Share) => units::parse_share(value)?,
            Metric::Throughput => units::parse_number(value)?,
            Metric::Unsent(CountOrShare::Count) | Metric::Timeouts(CountOrShare::Count) => {
                units::parse_count(value)? as f64
            }
        };
        Ok(Condition { route: route.map(str::to_owned), metric, op, value })
    }

    /// Returns the figure of a finished run that this condition compares. A latency is infinite if
    /// so many requests failed that the quantile falls among the failed requests. Returns `None` if
    /// the run has no requests, or if the figure was not measured. A latency is also `None` if no
    /// request succeeded.
    pub fn figure_of_run(&self, run: &Run) -> Option<f64> {
        self.figure_with_cpu_use(run, &|| ServerUse::from_run(run).ok())
    }

    /// Returns the figure like [`Condition::figure_of_run`], with the server's CPU use from `used`.
    /// Use this function for a `run` that was merged from several loads, because a merged run does
    /// not contain the CPU use.
    pub fn figure_with_cpu_use(&self, run: &Run, used: &dyn Fn() -> Option<ServerUse>) -> Option<f64> {
        let totals = run.totals();
        let whole = match &self.route {
            None => &totals.routes_sum,
            Some(name) => {
                let number = request_names::request_index(&run.plan.traffic, name)?;
                &run.totals_of_route(number as RouteNumber)
            }
        };
        if whole.ledger.scheduled == 0 {
            return None;
        }
        let seen = FigureInputs {
            ledger: &whole.ledger,
            requests: whole.ledger.scheduled,
            overdue: 0,
            times: match self.metric {
                Metric::Latency(measure, _) => Some(measure.histogram(whole, &totals.load)),
                _ => None,
            },
            succeeded_in_window: whole.succeeded_in_window,
            window_ns: run.duration_ns(),
            cpu_ns: match self.metric {
                Metric::Cpu => used().and_then(|used| used.cpu_us_per_request()).map(|us| us * 1e3),
                _ => None,
            },
        };
        seen.metric_value(self.metric)
    }

    /// Returns the latency bound of a condition such as `p99>200ms`, in ns. Returns `None` for a
    /// condition on another figure than a latency of requests. Also returns `None` for a condition
    /// that is true of short latencies, such as `p99<200ms`.
    pub(crate) fn bound_ns(&self) -> Option<u64> {
        let above = matches!(self.op, Op::Above | Op::AtLeast);
        let of_requests = matches!(self.metric, Metric::Latency(measure, _) if measure.is_per_route());
        (above && of_requests).then_some(self.value as u64)
    }

    /// Returns whether the condition is true of a finished run.
    pub fn holds(&self, run: &Run) -> bool {
        self.figure_of_run(run).is_some_and(|figure| self.op.holds(figure, self.value))
    }

    /// Formats the measured figure as a clause. The clause follows the text of the condition and a
    /// colon: `errors>5%: it was 10.0 %`.
    pub fn describe_figure(&self, figure: Option<f64>) -> String {
        match (figure, self.metric) {
            (None, _) => "nothing was measured".to_owned(),
            (Some(figure), Metric::Latency(_, statistic)) if figure.is_infinite() => match statistic {
                Statistic::Quantile(q) => format!(
                    "more than {share} of the requests failed or had no response in time",
                    share = format::short_percent(1.0 - q)
                ),
                Statistic::Max | Statistic::Mean => "some requests failed or had no response in time".to_owned(),
            },
            (Some(figure), _) => format!("it was {}", self.format_figure(figure)),
        }
    }

    /// Formats a figure in the unit of this condition.
    pub fn format_figure(&self, figure: f64) -> String {
        match self.metric {
            Metric::Latency(..) | Metric::Cpu => format::duration(figure),
            Metric::Success | Metric::Errors => format::share(figure),
            Metric::Unsent(CountOrShare::Share) | Metric::Timeouts(CountOrShare::Share) => format::share(figure),
            Metric::Throughput => format::rate(figure),
            Metric::Unsent(CountOrShare::Count) | Metric::Timeouts(CountOrShare::Count) => format::count(figure as u64),
        }
    }

    /// Formats the value on the right of the operator in the syntax of conditions.
    fn value_in_condition_syntax(&self) -> String {
        match self.metric {
            Metric::Latency(..) | Metric::Cpu => duration_in_condition_syntax(self.value),
            Metric::Success | Metric::Errors => share_in_condition_syntax(self.value),
            Metric::Unsent(CountOrShare::Share) | Metric::Timeouts(CountOrShare::Share) => {
                share_in_condition_syntax(self.value)
            }
            _ => format_number(self.value),
        }
    }
}

/// Splits the name of a figure into the name of a request, if there is one, and the metric.
fn split_route_and_metric(name: &str, amount: CountOrShare) -> Option<(Option<&str>, Metric)> {
    if let Some((route, rest)) = request_names::split_quoted_name(name) {
        return Some((Some(route), Metric::parse(rest, amount)?));
    }
    let points = name.match_indices('.').filter(|(at, _)| *at > 0);
    let mut of_one = points.filter_map(|(at, _)| Some((Some(&name[..at]), Metric::parse(&name[at + 1..], amount)?)));
    Metric::parse(name, amount).map(|metric| (None, metric)).or_else(|| of_one.next())
}

impl Metric {
    fn parse(name: &str, amount: CountOrShare) -> Option<Metric> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "success" => Metric::Success,
            "errors" => Metric::Errors,
            "goodput" | "rate" | "rps" | "throughput" => Metric::Throughput,
            "cpu" => Metric::Cpu,
            "unsent" => Metric::Unsent(amount),
            "timeouts" => Metric::Timeouts(amount),
            latency => {
                let (measure, statistic) =
                    match latency.split_once('.').map(|(name, rest)| (TimeMeasure::parse(name), rest)) {
                        Some((Some(measure), rest)) => (measure, rest),
                        _ => (TimeMeasure::response_time(), latency),
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
                Metric::Latency(measure, statistic)
            }
        })
    }
}

/// The counts and times from which the figure of a condition is computed.
pub(crate) struct FigureInputs<'a> {
    pub ledger: &'a Ledger,
    /// The number of all requests, by which shares such as the success rate are divided.
    pub requests: u64,
    /// Requests that are still in flight and are known to have waited longer than the condition's
    /// latency bound.
    pub overdue: u64,
    /// The histogram of the time that the condition bounds.
    pub times: Option<&'a Histogram>,
    pub succeeded_in_window: u64,
    pub window_ns: u64,
    /// CPU time of the server per request, in ns; `None` if not known.
    pub cpu_ns: Option<f64>,
}

impl FigureInputs<'_> {
    pub(crate) fn metric_value(&self, metric: Metric) -> Option<f64> {
        let share = |count: u64| (self.requests > 0).then(|| count as f64 / self.requests as f64);
        let amount = |count: u64, amount| match amount {
            CountOrShare::Count => Some(count as f64),
            CountOrShare::Share => share(count),
        };
        let timeouts = self.ledger.failed[RequestFailure::Timeout as usize];
        match metric {
            Metric::Latency(measure, statistic) if measure.is_per_route() => {
                self.latency_statistic(self.times?, statistic)
            }
            Metric::Latency(_, statistic) => statistic.compute_from_histogram(self.times?),
            Metric::Success => share(self.ledger.succeeded),
            Metric::Errors => share(self.requests.saturating_sub(self.ledger.succeeded)),
            Metric::Throughput => {
                (self.window_ns > 0).then(|| self.succeeded_in_window as f64 * 1e9 / self.window_ns as f64)
            }
            Metric::Cpu => self.cpu_ns,
            Metric::Unsent(kind) => amount(self.ledger.unsent, kind),
            Metric::Timeouts(kind) => amount(timeouts, kind),
        }
    }
}

impl FigureInputs<'_> {
    /// Computes a statistic of the latency over all requests. The histogram also contains timeouts,
    /// which are longer than the times of all responses.
    fn latency_statistic(&self, histogram: &Histogram, statistic: Statistic) -> Option<f64> {
        let (all, good) = (self.requests + self.overdue, self.ledger.succeeded.min(histogram.count()));
        if good == 0 && self.overdue == 0 {
            return None;
        }
        Some(match statistic {
            Statistic::Quantile(q) => {
                // The subtraction of 1e-6 compensates for the rounding error of products such as
                // 0.99 * 100.
                let rank = ((q * all as f64 - 1e-6).ceil() as u64).max(1);
                // The quantile is read half a rank below `rank`, so that rounding cannot select the
                // time of another rank.
                match rank <= good {
                    true => histogram.quantile_ns((rank as f64 - 0.5) / histogram.count() as f64) as f64,
                    false => f64::INFINITY,
                }
            }
            Statistic::Max | Statistic::Mean if good < all => f64::INFINITY,
            Statistic::Max => histogram.max_ns() as f64,
            Statistic::Mean => histogram.mean_ns(),
        })
    }
}

/// A condition of a gate that counts as crossed: it is true of the run, or its figure is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossedCondition {
    /// The condition that is true of the run, or whose figure is missing.
    pub condition: Condition,
    /// The measured figure; `None` means that the run has no measurement of the figure.
    pub figure: Option<f64>,
}

impl CrossedCondition {
    /// Returns whether this crossed condition makes the gate fail. A condition without a measured
    /// figure leaves the gate undecided. A load is void if the generator was the limit, or if other
    /// processes disturbed the load. In a void load, only a condition on errors makes the gate
    /// fail.
    pub fn makes_gate_fail(&self, is_void: bool) -> bool {
        let is_of_errors = matches!(self.condition.metric, Metric::Success | Metric::Errors | Metric::Timeouts(_));
        self.figure.is_some() && (is_of_errors || !is_void)
    }
}

impl fmt::Display for CrossedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition, self.condition.describe_figure(self.figure))
    }
}

/// A list of conditions. The list is true if at least one of its conditions is true.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions(pub Vec<Condition>);

impl Conditions {
    /// Parses a comma-separated list, such as `p99>200ms, errors>1%`.
    pub fn parse(text: &str) -> Result<Conditions, ConditionError> {
        request_names::split_conditions(text)
            .into_iter()
            .map(Condition::parse)
            .collect::<Result<_, _>>()
            .map(Conditions)
    }

    /// Checks that each request named in these conditions is one of `routes`.
    ///
    /// # Errors
    /// A sentence with the names of the existing routes.
    pub fn check_routes(&self, routes: &[RouteRecord]) -> Result<(), String> {
        request_names::check_names(self.0.iter().filter_map(|condition| condition.route.as_deref()), routes)
    }

    /// Returns the conditions that are true of a finished run, and the conditions whose figure was
    /// not measured.
    pub fn crossed_conditions(&self, run: &Run) -> Vec<CrossedCondition> {
        self.crossed_conditions_with_cpu_use(run, &|| ServerUse::from_run(run).ok())
    }

    /// Returns the crossed conditions like [`Conditions::crossed_conditions`], with the server's
    /// CPU use from `used`. Use this function for a `run` that was merged from several loads,
    /// because a merged run does not contain the CPU use.
    pub fn crossed_conditions_with_cpu_use(
        &self,
        run: &Run,
        used: &dyn Fn() -> Option<ServerUse>,
    ) -> Vec<CrossedCondition> {
        let crossing = |condition: &Condition| {
            let figure = condition.figure_with_cpu_use(run, used);
            let crossed = figure.is_none_or(|figure| condition.op.holds(figure, condition.value));
            crossed.then(|| CrossedCondition { condition: condition.clone(), figure })
        };
        let mut found: Vec<CrossedCondition> = self.0.iter().filter_map(crossing).collect();
        // Conditions on errors come first, because failed requests also change latencies and rates.
        found.sort_by_key(|crossing| !matches!(crossing.condition.metric, Metric::Success | Metric::Errors));
        found
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

impl Statistic {
    /// Computes the statistic from a histogram of times; `None` for an empty histogram.
    fn compute_from_histogram(self, times: &Histogram) -> Option<f64> {
        (times.count() > 0).then(|| match self {
            Statistic::Quantile(q) => times.quantile_ns(q) as f64,
            Statistic::Max => times.max_ns() as f64,
            Statistic::Mean => times.mean_ns(),
        })
    }
}

/// Returns the prefix of a time in the syntax of conditions, such as `service.`. Response times are
/// the default and have no prefix.
pub(crate) fn measure_prefix(measure: TimeMeasure) -> String {
    if measure == TimeMeasure::response_time() { String::new() } else { format!("{}.", measure.name()) }
}

/// Lists the names of all times that a condition can bound.
fn time_names() -> String {
    TimeMeasure::all().map(TimeMeasure::name).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Latency(measure, statistic) => write!(f, "{}{statistic}", measure_prefix(*measure)),
            Metric::Success => f.write_str("success"),
            Metric::Errors => f.write_str("errors"),
            Metric::Throughput => f.write_str("goodput"),
            Metric::Cpu => f.write_str("cpu"),
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
        if let Some(route) = &self.route {
            write!(f, "{}.", request_names::quote_name_if_needed(route))?;
        }
        write!(f, "{}{}{}", self.metric, self.op, self.value_in_condition_syntax())
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

/// Formats a number in the syntax of conditions: at most six decimals, without trailing zeros.
pub(crate) fn format_number(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a share in the syntax of conditions: `99.9%`.
pub(crate) fn share_in_condition_syntax(share: f64) -> String {
    format!("{}%", format_number(share * 100.0))
}

/// Formats a time in the syntax of conditions, in the largest unit in which the time is at least 1:
/// `1.5ms`.
pub(crate) fn duration_in_condition_syntax(ns: f64) -> String {
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
    use crate::ConditionWatch;
    use plimsoll_model::{Interval, LoadCurve, LoadShape, Plan, RouteFigures};
    use proptest::prelude::*;

    #[test]
    fn conditions_parse_or_explain_the_error() {
        for (text, expect) in [
            ("p99>200ms", Ok("p99>200ms")),
            ("P99.9 >= 1.5s", Ok("p99.9>=1.5s")),
            ("service.p50<100us", Ok("service.p50<100us")),
            ("service.mean<2s", Ok("service.mean<2s")),
            ("service.mean<2", Err("write service.mean<2ms or service.mean<2s")),
            ("p99 < 200", Err("write p99<200ms or p99<200s")),
            ("p99>0", Err("p99>0ms")),
            ("max<=1.5", Err("max<=1.5ms")),
            ("p50<1e3", Err("p50<1e3ms")),
            ("errors>5", Err("write errors>5%")),
            ("success>=1", Err("write success>=1% or success>=100%")),
            ("errors>0", Ok("errors>0%")),
            ("errors>0.05", Ok("errors>5%")),
            ("timeouts>5", Ok("timeouts>5")),
            ("max<=1m", Ok("max<=60s")),
            ("errors>5%", Ok("errors>5%")),
            ("success<0.999", Ok("success<99.9%")),
            ("rps<1k", Ok("goodput<1000")),
            ("throughput<1k", Ok("goodput<1000")),
            ("rate<5000", Ok("goodput<5000")),
            ("cpu>1.5ms", Ok("cpu>1.5ms")),
            ("unsent>0", Ok("unsent>0")),
            ("unsent>1%", Ok("unsent>1%")),
            ("timeouts>=10", Ok("timeouts>=10")),
            ("order.p99>200ms", Ok("order.p99>200ms")),
            ("order.service.p99.9>200ms", Ok("order.service.p99.9>200ms")),
            ("GET /items/{}.errors>1%", Ok("'GET /items/{}'.errors>1%")),
            ("GET /a.b.rps<5", Ok("'GET /a.b'.goodput<5")),
            ("'a<b, c'.max>1s", Ok("'a<b, c'.max>1s")),
            ("'service'.p99>1s", Ok("'service'.p99>1s")),
            ("order.cpu>1ms", Err("of the whole server")),
            ("order.speed>1", Err("not measured")),
            (".p99>1s", Err("not measured")),
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
            ("errors>5.5", Err("not a share")),
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
        fn formatted_conditions_parse_back(percent in 1u32..10_000, ns in 1u64..10_000_000_000, service in any::<bool>()) {
            let text = format!("{}p{}>{ns}ns", if service { "service." } else { "" }, f64::from(percent) / 100.0);
            // A percentile must be below p100.
            prop_assume!(percent < 10_000);
            let condition = Condition::parse(&text).expect("parses");
            let again = Condition::parse(&condition.to_string()).expect("reads back");
            prop_assert_eq!(condition.metric, again.metric);
            prop_assert!((condition.value - again.value).abs() <= condition.value * 1e-6 + 1.0);
        }
    }

    fn tick_interval(succeeded_in_window: u64, failed: u64, latency_ns: u64) -> Interval {
        let mut response = Histogram::new();
        response.record_n(latency_ns, succeeded_in_window);
        let figures = RouteFigures {
            ledger: Ledger {
                scheduled: succeeded_in_window + failed,
                succeeded: succeeded_in_window,
                failed: std::array::from_fn(|kind| if kind == 0 { failed } else { 0 }),
                ..Ledger::default()
            },
            succeeded_in_window,
            response: response.drain(),
            ..RouteFigures::default()
        };
        Interval { routes: figures.into(), ..Interval::default() }
    }

    #[test]
    fn a_condition_watch_waits_for_evidence() {
        let conditions = Conditions::parse("errors>5%, p99>200ms").expect("parses");
        let mut watch = ConditionWatch::new(conditions.clone(), &run_with_outcomes(0, 0, 0, 0, 0).plan);
        assert_eq!(watch.push(100_000_000, &tick_interval(0, 10, 0)), None);
        assert_eq!(watch.push(1_000_000_000, &tick_interval(5, 0, 1_000_000)), None, "15 requests are not 20");
        let crossing = watch.push(1_100_000_000, &tick_interval(85, 0, 1_000_000)).expect("10 of 100 failed");
        assert_eq!(crossing.to_string(), "errors>5%: it was 10.0 %");
    }

    /// Creates a run of one second with these counts of outcomes. Each success took `latency_ns`.
    fn run_with_outcomes(succeeded: u64, failed: u64, unsent: u64, in_flight: u64, latency_ns: u64) -> Run {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        let mut interval = tick_interval(succeeded, failed, latency_ns);
        let figures = interval.routes.figures_mut(0);
        figures.ledger.scheduled += unsent + in_flight;
        (figures.ledger.unsent, figures.ledger.in_flight) = (unsent, in_flight);
        figures.service = figures.response.clone();
        run.window_ns = (0, units::SECOND);
        run.push(0, interval);
        run
    }

    #[test]
    fn conditions_do_not_pass_on_failed_requests() {
        let ms = units::MS;
        let none = "nothing was measured";
        let lost = "more than 1 % of the requests failed or had no response in time";
        for (ends, gate, expect) in [
            ((1000, 0, 0, 0, ms), "p99>200ms", None),
            ((1000, 0, 0, 0, 300 * ms), "p99>200ms", Some("it was 300")),
            ((990, 10, 0, 0, ms), "p99>200ms", None),
            ((989, 11, 0, 0, ms), "p99>200ms", Some(lost)),
            ((989, 0, 11, 0, ms), "p99>=200ms", Some(lost)),
            ((989, 0, 0, 11, ms), "service.p99>200ms", Some(lost)),
            ((989, 11, 0, 0, ms), "p99<200ms", None),
            ((600, 400, 0, 0, ms), "p50>200ms", None),
            ((499, 501, 0, 0, ms), "p50>200ms", Some("more than 50 % of the requests failed")),
            ((999, 1, 0, 0, ms), "p99.99>1h", Some("more than 0.01 % of the requests failed")),
            ((999, 1, 0, 0, ms), "mean>200ms", Some("some requests failed")),
            ((999, 0, 0, 1, ms), "max>1h", Some("some requests failed")),
            ((0, 1000, 0, 0, ms), "p99>200ms", Some(none)),
            ((0, 1000, 0, 0, ms), "p99<200ms", Some(none)),
            ((0, 1000, 0, 0, ms), "service.mean>200ms", Some(none)),
            ((0, 1000, 0, 0, ms), "rps<1", Some("it was 0")),
            ((0, 1000, 0, 0, ms), "success<1%", Some("it was 0 %")),
            ((0, 0, 0, 0, ms), "success<99%", Some(none)),
            ((0, 0, 0, 0, ms), "errors>1%", Some(none)),
            ((0, 0, 0, 0, ms), "timeouts>1%", Some(none)),
            ((0, 0, 0, 0, ms), "unsent>10", Some(none)),
        ] {
            let (succeeded, failed, unsent, in_flight, latency_ns) = ends;
            let run = run_with_outcomes(succeeded, failed, unsent, in_flight, latency_ns);
            let crossed = Conditions::parse(gate).expect("parses").crossed_conditions(&run);
            let said = crossed.first().map(ToString::to_string);
            match (said, expect) {
                (None, None) => {}
                (Some(said), Some(part)) => assert!(said.contains(part), "{ends:?} {gate}: {said}"),
                (said, expect) => panic!("{ends:?} {gate}: {said:?}, expected {expect:?}"),
            }
        }
        let mut unmeasured = run_with_outcomes(0, 0, 0, 0, ms);
        unmeasured.window_ns = (0, 0);
        assert_eq!(Conditions::parse("rps>5").expect("parses").crossed_conditions(&unmeasured)[0].figure, None);
    }

    #[test]
    fn timeouts_are_not_responses() {
        // The histogram contains 97 successes of 1 ms and 3 timeouts after 30 s.
        let mut run = run_with_outcomes(97, 0, 0, 0, units::MS);
        let mut late = tick_interval(0, 0, 0);
        let mut response = Histogram::new();
        response.record_n(30 * units::SECOND, 3);
        let figures = late.routes.figures_mut(0);
        figures.response = response.drain();
        figures.ledger.scheduled = 3;
        figures.ledger.failed[RequestFailure::Timeout as usize] = 3;
        run.push(units::SECOND / 2, late);
        for (gate, crossed) in [("p97>40s", false), ("p98>40s", true), ("p97>2ms", false)] {
            assert_eq!(
                !Conditions::parse(gate).expect("parses").crossed_conditions(&run).is_empty(),
                crossed,
                "{gate}"
            );
        }
    }

    #[test]
    fn a_condition_watch_detects_failures_and_hanging_servers() {
        let plan = run_with_outcomes(0, 0, 0, 0, 0).plan;
        let watch = |conditions: &str| ConditionWatch::new(Conditions::parse(conditions).expect("parses"), &plan);
        let tenth = units::SECOND / 10;
        // All requests of this run fail.
        let mut errors = watch("p99>200ms");
        let ended = (1..=10).find_map(|at| errors.push(at * tenth, &tick_interval(0, 10, 0)));
        assert!(ended.as_ref().is_some_and(|crossing| crossing.figure == Some(f64::INFINITY)), "{ended:?}");
        // Ten users never get a response.
        let mut asked = Interval::default();
        asked.routes.figures_mut(0).ledger.scheduled = 10;
        for (bound, at_s) in [("p50>200ms", 5), ("p50>8s", 8), ("p99>1h", 0)] {
            let mut hanging = watch(bound);
            let first = hanging.push(tenth, &asked);
            let ended = (2..=100).find(|at| hanging.push(at * tenth, &Interval::default()).is_some());
            assert_eq!((first, ended.unwrap_or(0) / 10), (None, at_s), "{bound}");
        }
        // A request that has waited for less than the bound is no evidence for the condition.
        let mut steady = watch("p99>500ms");
        let ended = (1..=100).find(|at| {
            let mut now = tick_interval(if *at > 3 { 10 } else { 0 }, 0, 300 * units::MS);
            now.routes.figures_mut(0).ledger.scheduled = 10;
            steady.push(at * tenth, &now).is_some()
        });
        assert_eq!(ended, None);
    }

    #[test]
    fn a_condition_can_name_one_request() {
        let mut run = run_with_outcomes(100, 0, 0, 0, units::MS);
        let mut order = run.plan.traffic.routes[0].clone();
        order.label = "order".into();
        run.plan.traffic.routes.push(order);
        let mut interval = Interval::default();
        *interval.routes.figures_mut(1) = tick_interval(40, 10, 300 * units::MS).routes.all_routes().clone();
        run.push(1, interval);
        for (gate, crossed) in [
            ("order.p50>200ms", true),
            ("p50>200ms", false),
            ("order.errors>=20%", true),
            ("errors>=20%", false),
            ("'GET /'.errors>0%", false),
            // A gate on a request that the plan does not contain must not pass.
            ("other.p99>1h", true),
        ] {
            let conditions = Conditions::parse(gate).expect("parses");
            assert_eq!(!conditions.crossed_conditions(&run).is_empty(), crossed, "{gate}");
            let mut watch = ConditionWatch::new(conditions, &run.plan);
            let seen = (run.intervals.values().zip(1..)).find_map(|(it, at)| watch.push(at * 6 * units::SECOND, it));
            assert_eq!(seen.is_some(), crossed && !gate.starts_with("other"), "{gate}");
        }
        let routes = &run.plan.traffic.routes;
        assert_eq!(Conditions::parse("p99>1s, order.p99>1s").expect("parses").check_routes(routes), Ok(()));
        let error = Conditions::parse("ordr.p99>1s").expect("parses").check_routes(routes).expect_err("is not asked");
        assert_eq!(error, "no request is called 'ordr': the requests are 'GET /', order");
    }
}
