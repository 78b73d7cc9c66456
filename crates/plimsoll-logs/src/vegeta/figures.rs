//! Computes the figures of vegeta's own reports, with vegeta's definitions. Request rates cover the
//! time from the first request to the last request. Statuses from 200 to 399 are successes. Not
//! here: presenting the figures.

use super::digest::QuantileDigest;
use super::result::VegetaResult;
use super::timestamp::format_timestamp;
use std::collections::{BTreeMap, HashSet};

/// The largest number of distinct errors in a report.
const REPORTED_DISTINCT_ERRORS_MAX: usize = 10_000;

/// Converts ns to seconds, rounded as by Go's `Duration.Seconds`.
fn seconds_from_ns(ns: u64) -> f64 {
    (ns / 1_000_000_000) as f64 + (ns % 1_000_000_000) as f64 / 1e9
}

/// The figures of vegeta's text and JSON reports.
#[derive(Debug, Clone, Default)]
pub struct VegetaFigures {
    /// The number of requests.
    pub requests: u64,
    /// The number of results by HTTP status.
    pub codes: BTreeMap<u16, u64>,
    /// The total size of all request bodies, bytes.
    pub bytes_out: u64,
    /// The total size of all response bodies, bytes.
    pub bytes_in: u64,
    /// The sum of all latencies, ns.
    pub latency_ns_total: u64,
    /// The shortest latency, ns.
    pub latency_ns_min: u64,
    /// The longest latency, ns.
    pub latency_ns_max: u64,
    /// The distinct error texts, in order of first appearance.
    pub errors: Vec<String>,
    /// The histogram of latencies: the lower bound of each bucket in ns, and its count. Latencies
    /// below the first bound count in the first bucket.
    pub buckets: Vec<(u64, u64)>,
    seen: HashSet<String>,
    succeeded: u64,
    digest: QuantileDigest,
    /// The start of the first request, ns since the Unix epoch.
    earliest_ns: u64,
    /// The start of the last request, ns since the Unix epoch.
    latest_ns: u64,
    /// The end of the last response, ns since the Unix epoch.
    end_ns: u64,
}

impl VegetaFigures {
    /// Creates empty figures, before any result is added. `bounds_ns` has the lower bounds of the
    /// histogram's buckets in ascending order.
    pub fn new(bounds_ns: &[u64]) -> VegetaFigures {
        VegetaFigures { buckets: bounds_ns.iter().map(|bound| (*bound, 0)).collect(), ..VegetaFigures::default() }
    }

    /// Adds one result to all figures.
    pub fn add(&mut self, result: &VegetaResult) {
        let VegetaResult { code, sent_ns, latency_ns, bytes_out, bytes_in, error, .. } = result;
        let first = self.requests == 0;
        self.requests += 1;
        *self.codes.entry(*code).or_default() += 1;
        self.bytes_out = self.bytes_out.saturating_add(*bytes_out);
        self.bytes_in = self.bytes_in.saturating_add(*bytes_in);
        self.latency_ns_total = self.latency_ns_total.saturating_add(*latency_ns);
        self.latency_ns_min = if first { *latency_ns } else { self.latency_ns_min.min(*latency_ns) };
        self.latency_ns_max = self.latency_ns_max.max(*latency_ns);
        self.digest.add(*latency_ns as f64);
        self.earliest_ns = if first { *sent_ns } else { self.earliest_ns.min(*sent_ns) };
        self.latest_ns = self.latest_ns.max(*sent_ns);
        self.end_ns = self.end_ns.max(sent_ns.saturating_add(*latency_ns));
        self.succeeded += u64::from((200..400).contains(code));
        if !error.is_empty() && self.errors.len() < REPORTED_DISTINCT_ERRORS_MAX && self.seen.insert(error.clone()) {
            self.errors.push(error.clone());
        }
        let at = self.buckets.iter().rposition(|(bound, _)| latency_ns >= bound).unwrap_or(0);
        if let Some((_, count)) = self.buckets.get_mut(at) {
            *count += 1;
        }
    }

    /// Returns the time from the start of the first request to the start of the last, ns.
    pub fn request_span_ns(&self) -> u64 {
        self.latest_ns - self.earliest_ns
    }

    /// Returns the time from the start of the last request to the end of the last response, ns.
    pub fn last_response_wait_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.latest_ns)
    }

    /// Returns the request rate, 1/s. If all requests started at the same time, the returned rate
    /// is the number of requests.
    pub fn rate_rps(&self) -> f64 {
        match self.request_span_ns() {
            0 => self.requests as f64,
            ns => self.requests as f64 / seconds_from_ns(ns),
        }
    }

    /// Returns the rate of successful requests from the first request to the last response, 1/s.
    pub fn throughput_rps(&self) -> f64 {
        match self.request_span_ns() {
            0 => self.succeeded as f64,
            ns => self.succeeded as f64 / seconds_from_ns(ns + self.last_response_wait_ns()),
        }
    }

    /// Returns the share of successful requests, 0 to 1.
    pub fn success_share(&self) -> f64 {
        self.mean_per_request(self.succeeded)
    }

    /// Returns a mean per request: `total` divided by the number of requests.
    pub fn mean_per_request(&self, total: u64) -> f64 {
        if self.requests == 0 { 0.0 } else { total as f64 / self.requests as f64 }
    }

    /// Returns the latency quantile for a share of 0 to 1, ns.
    pub fn quantile_ns(&mut self, share: f64) -> u64 {
        self.digest.quantile(share) as u64
    }

    /// Returns the start of the first request, the start of the last request, and the end of the
    /// last response, as RFC 3339.
    pub fn attack_timestamps(&self) -> [String; 3] {
        [self.earliest_ns, self.latest_ns, self.end_ns].map(format_timestamp)
    }
}
