//! The SLO of a service ([`Slo`]), expressed in counts of scheduled requests.
//!
//! Every bound of an SLO becomes one number: how many of the scheduled requests may be bad. A
//! request that failed, was never sent or got no response counts as slower than any latency bound.
//! Counts of bad requests can be added exactly over workers and machines, but percentiles cannot.
//!
//! Not here: judging a run (see [`crate::judge()`]).

use crate::condition::{
    Condition, ConditionError, Metric, Op, Statistic, duration_in_condition_syntax, measure_prefix,
    share_in_condition_syntax,
};
use crate::request_names;
use plimsoll_model::{RouteRecord, TimeMeasure};
use std::fmt;
use std::str::FromStr;

/// A latency bound: at most the share `1 - quantile` of the scheduled requests may take longer than
/// `bound_ns`. If the bounded time belongs to connections (such as the connect time), the share
/// applies to the opened connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyBound {
    /// The time that the bound limits, such as the response time.
    pub measure: TimeMeasure,
    /// The quantile, 0..=1; 1 means that no request may be slower.
    pub quantile: f64,
    /// The bound, in ns.
    pub bound_ns: u64,
}

impl LatencyBound {
    /// Returns whether the bound applies to response times.
    pub fn bounds_response_time(&self) -> bool {
        self.measure == TimeMeasure::response_time()
    }
}

/// An SLO: a minimum success rate, and any number of latency bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// Minimum share of the scheduled requests that must succeed, 0..=1.
    pub success_min: f64,
    /// Latency bounds for all requests, in the order in which the SLO's text gives the bounds.
    pub latency: Vec<LatencyBound>,
    /// The SLOs of named requests, in the order in which the text first names them.
    pub by_route: Vec<RouteSlo>,
}

/// The SLO of one named request.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSlo {
    /// The name of the request.
    pub route: String,
    /// Minimum share of the scheduled requests of this name that must succeed, 0..=1; `None` if the
    /// SLO does not bound it.
    pub success_min: Option<f64>,
    /// Latency bounds for requests of this name, in the order in which the SLO's text gives the
    /// bounds.
    pub latency: Vec<LatencyBound>,
}

/// One bound of an [`Slo`], as an allowed share of bad requests.
#[derive(Debug, Clone, PartialEq)]
pub struct BadRequestAllowance {
    /// The name of the request that the bound applies to; `None` means all requests.
    pub route: Option<String>,
    /// The time that the bound limits, such as the response time.
    pub measure: TimeMeasure,
    /// The latency limit, in ns: a slower response is bad. `None` if only failures are bad.
    pub bound_ns: Option<u64>,
    /// The share of the scheduled requests that may be bad, 0..=1.
    pub share: f64,
}

impl BadRequestAllowance {
    /// Returns the latency limit above which a request is bad, in ns. Returns `None` if only
    /// failures are bad, or if the bound limits a time of connections, such as the connect time.
    pub fn request_bound_ns(&self) -> Option<u64> {
        self.bound_ns.filter(|_| self.measure.is_per_route())
    }

    /// Returns how many of `scheduled` requests may be bad.
    pub fn allowed_bad_requests(&self, scheduled: u64) -> u64 {
        // The addition of 1e-6 compensates for the rounding error of products such as (1 - 0.99) *
        // 100.
        (self.share * scheduled as f64 + 1e-6).floor() as u64
    }
}

/// Why the text of an SLO could not be parsed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SloError {
    /// A part of the SLO's text is not a valid condition.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A valid condition is not allowed in an SLO, for example a maximum of timeouts or a minimum
    /// goodput.
    #[error(
        "'{0}' is not part of an SLO; write a minimum success rate and latency bounds, such as success>=99.9%, \
         p99<=500ms"
    )]
    Part(String),
}

impl Slo {
    /// Parses a list such as `success>=99.9%, p99<=500ms`. If the text contains no success rate,
    /// the minimum success rate is 99.9 %.
    pub fn parse(text: &str) -> Result<Slo, SloError> {
        let mut slo = Slo { success_min: 0.999, latency: Vec::new(), by_route: Vec::new() };
        for part in request_names::split_conditions(text) {
            let condition = Condition::parse(part)?;
            let upper = matches!(condition.op, Op::Below | Op::AtMost);
            let latency = |measure, quantile| LatencyBound { measure, quantile, bound_ns: condition.value as u64 };
            // The quotient is rounded, because 99.9 / 100 as a float is not exactly 0.999.
            let rounded = |share: f64| (share * 1e12).round() / 1e12;
            let (success, bound) = match condition.metric {
                Metric::Success if !upper => (Some(rounded(condition.value)), None),
                Metric::Errors if upper => (Some(rounded(1.0 - condition.value)), None),
                Metric::Latency(measure, Statistic::Quantile(q)) if upper => (None, Some(latency(measure, q))),
                Metric::Latency(measure, Statistic::Max) if upper => (None, Some(latency(measure, 1.0))),
                _ => return Err(SloError::Part(part.trim().to_owned())),
            };
            match condition.route {
                None => {
                    slo.success_min = success.unwrap_or(slo.success_min);
                    slo.latency.extend(bound);
                }
                Some(route) => {
                    let at = slo.by_route.iter().position(|promise| promise.route == route).unwrap_or_else(|| {
                        slo.by_route.push(RouteSlo { route, success_min: None, latency: Vec::new() });
                        slo.by_route.len() - 1
                    });
                    let promise = &mut slo.by_route[at];
                    promise.success_min = success.or(promise.success_min);
                    promise.latency.extend(bound);
                }
            }
        }
        Ok(slo)
    }

    /// Returns every bound as an allowed share of bad requests. The bound of the success rate is
    /// the first element.
    pub fn allowances(&self) -> Vec<BadRequestAllowance> {
        let bound = |route: Option<&String>, bound: &LatencyBound| BadRequestAllowance {
            route: route.cloned(),
            measure: bound.measure,
            bound_ns: Some(bound.bound_ns),
            share: 1.0 - bound.quantile,
        };
        let success = |route: Option<&String>, least: f64| BadRequestAllowance {
            route: route.cloned(),
            measure: TimeMeasure::response_time(),
            bound_ns: None,
            share: 1.0 - least,
        };
        let mut all = vec![success(None, self.success_min)];
        all.extend(self.latency.iter().map(|it| bound(None, it)));
        for RouteSlo { route, success_min, latency } in &self.by_route {
            all.extend(success_min.map(|least| success(Some(route), least)));
            all.extend(latency.iter().map(|it| bound(Some(route), it)));
        }
        all
    }

    /// Returns the bounds of response times that apply to all requests.
    pub fn response_bounds(&self) -> impl Iterator<Item = &LatencyBound> {
        self.latency.iter().filter(|bound| bound.bounds_response_time())
    }

    /// Checks that each request named in this SLO is one of `routes`.
    ///
    /// # Errors
    /// A sentence with the names of the existing routes.
    pub fn check_routes(&self, routes: &[RouteRecord]) -> Result<(), String> {
        request_names::check_names(self.by_route.iter().map(|promise| promise.route.as_str()), routes)
    }

    /// Returns the limits of all latency bounds on times of requests (not on times of connections),
    /// in ns. Bounds for named requests are included.
    fn bounds_ns(&self) -> impl Iterator<Item = u64> {
        let by_route = self.by_route.iter().flat_map(|promise| &promise.latency);
        self.latency.iter().chain(by_route).filter(|bound| bound.measure.is_per_route()).map(|bound| bound.bound_ns)
    }

    /// Returns the shortest latency bound on a time of requests, in ns; `None` without such a
    /// bound.
    pub fn bound_min_ns(&self) -> Option<u64> {
        self.bounds_ns().min()
    }

    /// Returns the longest latency bound on a time of requests, in ns; `None` without such a bound.
    pub fn bound_max_ns(&self) -> Option<u64> {
        self.bounds_ns().max()
    }
}

impl Default for Slo {
    /// Returns the SLO `success>=99.9%, p99<=500ms`.
    fn default() -> Slo {
        let latency =
            vec![LatencyBound { measure: TimeMeasure::response_time(), quantile: 0.99, bound_ns: 500_000_000 }];
        Slo { success_min: 0.999, latency, by_route: Vec::new() }
    }
}

impl FromStr for Slo {
    type Err = SloError;
    fn from_str(text: &str) -> Result<Slo, SloError> {
        Slo::parse(text)
    }
}

/// Formats the bound in the syntax of SLOs: `p99<=500ms`.
impl fmt::Display for LatencyBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistic = if self.quantile >= 1.0 { Statistic::Max } else { Statistic::Quantile(self.quantile) };
        let prefix = measure_prefix(self.measure);
        write!(f, "{prefix}{statistic}<={}", duration_in_condition_syntax(self.bound_ns as f64))
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "success>={}", share_in_condition_syntax(self.success_min))?;
        let bounds = |of: &str, latency: &[LatencyBound], f: &mut fmt::Formatter<'_>| {
            latency.iter().try_for_each(|bound| write!(f, ", {of}{bound}"))
        };
        bounds("", &self.latency, f)?;
        for RouteSlo { route, success_min, latency } in &self.by_route {
            let of = format!("{}.", request_names::quote_name_if_needed(route));
            if let Some(least) = success_min {
                write!(f, ", {of}success>={}", share_in_condition_syntax(*least))?;
            }
            bounds(&of, latency, f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slos_parse_or_explain_the_error() {
        for (text, expect) in [
            ("success>=99.9%, p99<=500ms", Ok("success>=99.9%, p99<=500ms")),
            ("p99<200ms", Ok("success>=99.9%, p99<=200ms")),
            ("success>99%", Ok("success>=99%")),
            ("errors<1%,p50<=1.5ms,max<=2s", Ok("success>=99%, p50<=1.5ms, max<=2s")),
            (
                "p99<=500ms, order.p99<=300ms, list.max<1s, order.errors<1%",
                Ok("success>=99.9%, p99<=500ms, order.success>=99%, order.p99<=300ms, list.max<=1s"),
            ),
            ("order.p99>=300ms", Err("not part of an SLO")),
            ("p99>200ms", Err("not part of an SLO")),
            ("mean<=20ms", Err("not part of an SLO")),
            ("service.p99<=20ms", Ok("success>=99.9%, service.p99<=20ms")),
            ("ttfb.p95<=100ms, connect.p99<50ms", Ok("success>=99.9%, ttfb.p95<=100ms, connect.p99<=50ms")),
            ("order.first_message.p99<=200ms", Ok("success>=99.9%, order.first_message.p99<=200ms")),
            ("response.p99<=1s", Ok("success>=99.9%, p99<=1s")),
            ("order.connect.p99<=20ms", Err("of the whole server")),
            ("ttfb.mean<=20ms", Err("not part of an SLO")),
            ("rps>=100", Err("not part of an SLO")),
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
    fn slo_allowances_count_bad_requests() {
        let allowances = Slo::default().allowances();
        assert_eq!(allowances.iter().map(|a| a.allowed_bad_requests(1000)).collect::<Vec<_>>(), [1, 10]);
        assert_eq!(allowances.iter().map(|a| a.allowed_bad_requests(99)).collect::<Vec<_>>(), [0, 0]);
    }
}
