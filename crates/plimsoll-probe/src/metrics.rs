//! Fetches the server's own metrics (`--metrics`) once a second in a separate thread. Supported
//! formats are Prometheus' text format and Go's `/debug/vars`. Without the flag, plimsoll requests
//! no metrics, because a probe must not add load to the server.

use super::metrics_text::{MetricSelection, ServerMetric, parse};
use super::probe::Probe;
use super::sink::Sink;
use crate::fetch::{ByteBudget, FetchResponse, FetchTarget, fetch};
use crate::watch_target::WatchTarget;
use plimsoll_model::Failure;
use plimsoll_model::experiment_settings::ProbesSettings;
use plimsoll_model::redact::{self, RedactionLevel};
use plimsoll_model::{EndpointChoice, Plan, SeriesKind};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time between two fetches of the metrics, ns.
pub const METRICS_PERIOD_NS: u64 = 1_000_000_000;
const METRICS_FETCH_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest response that is accepted as metrics, in bytes.
const METRICS_BYTES_MAX: usize = 16 << 20;
/// The largest number of series that are recorded.
const RECORDED_METRICS_MAX: usize = 150;

pub struct MetricsProbe {
    target: FetchTarget,
    known: BTreeSet<String>,
    left_out: usize,
    /// Whether runtime metrics or all metrics are recorded. The first response decides, so that the
    /// recorded series stay the same.
    take: MetricSelection,
}

impl MetricsProbe {
    /// Creates the probe for metrics; `None` if the user asks for no metrics.
    pub fn from_settings(
        settings: &ProbesSettings<String>,
        watched: &WatchTarget,
    ) -> Result<Option<MetricsProbe>, Failure> {
        let named = settings.metrics.as_ref().map(|served| match served {
            EndpointChoice::ByTarget => None,
            EndpointChoice::At(urls) => urls.first().map(String::as_str),
        });
        named.map(|named| MetricsProbe::new(named, watched)).transpose()
    }

    /// Creates the probe and fetches once to check the endpoint. Without a named URL, the default
    /// endpoints of the load's target are tried.
    fn new(named: Option<&str>, watched: &WatchTarget) -> Result<MetricsProbe, Failure> {
        let flagged = |reason: String| Failure::cannot_start(format!("--metrics: {reason}"));
        let url = named.map_or_else(|| format!("{}/", watched.plan.traffic.origin), str::to_owned);
        let url = url.as_str();
        // Requests to the load's target are permitted already; requests to another address need
        // permission, as for profiles. Redirects are not followed.
        let target = match named {
            Some(url) => (watched.resolve)(url),
            None => FetchTarget::for_load_server(watched.plan, None),
        };
        let mut target = target.map_err(|failure| flagged(failure.to_string()))?;
        let bare = target.path == "/";
        let paths = if bare { vec!["/metrics", "/debug/vars"] } else { vec![target.path.as_str()] };
        let mut reasons = Vec::new();
        let mut fitting = None;
        for path in paths {
            match choose_metric_selection(&target, path) {
                Ok(take) => {
                    fitting = Some((path.to_owned(), take));
                    break;
                }
                Err(reason) => reasons.push(reason),
            }
        }
        let tried = || {
            flagged(format!(
                "no metrics were found at '{metrics_url}' ({reasons}): give the address of the server's metrics, or \
                 leave --metrics out",
                metrics_url = redact::redact_url(url, RedactionLevel::All),
                reasons = reasons.join("; ")
            ))
        };
        let take;
        (target.path, take) = fitting.ok_or_else(tried)?;
        Ok(MetricsProbe { target, known: BTreeSet::new(), left_out: 0, take })
    }
}

/// Finds the metrics endpoint of a load's target, for a hint to the user; `None` if there is none.
pub fn find_metrics_endpoint(plan: &Plan) -> Option<String> {
    // Only the load's target may get requests for metrics here, so every other URL is refused.
    let resolve = |url: &str| Err(Failure::usage(url));
    let watched = WatchTarget { plan, local: true, resolve: &resolve };
    let MetricsProbe { target, .. } = MetricsProbe::new(None, &watched).ok()?;
    Some(format!("{}{}", plan.traffic.origin, target.path))
}

/// Makes the first fetch, and chooses the metrics: runtime metrics, or all metrics if the page has
/// no runtime metrics.
fn choose_metric_selection(target: &FetchTarget, path: &str) -> Result<MetricSelection, String> {
    for take in [MetricSelection::Runtime, MetricSelection::All] {
        if !fetch_metrics(target, path, take)?.is_empty() {
            return Ok(take);
        }
    }
    Err(format!("{path} serves no numbers", path = redact_metrics_path(path)))
}

/// Fetches the metrics. The text of an error is a sentence for the user.
fn fetch_metrics(target: &FetchTarget, path: &str, take: MetricSelection) -> Result<Vec<ServerMetric>, String> {
    let FetchResponse { status, body } =
        fetch(target, path, METRICS_FETCH_TIMEOUT, &ByteBudget::new(METRICS_BYTES_MAX))
            .map_err(|error| error.error_message().to_owned())?;
    let path = redact_metrics_path(path);
    if status != 200 {
        return Err(format!("{path} has status {status}"));
    }
    parse(&body, take).ok_or_else(|| format!("{path} serves neither Prometheus text nor Go's /debug/vars"))
}

impl Probe for MetricsProbe {
    fn sample(&mut self, sink: &mut Sink) {
        match fetch_metrics(&self.target, &self.target.path.clone(), self.take) {
            Ok(metrics) => {
                self.left_out = 0;
                for metric in metrics {
                    if !self.known.contains(&metric.name) {
                        if self.known.len() >= RECORDED_METRICS_MAX {
                            self.left_out += 1;
                            continue;
                        }
                        self.known.insert(metric.name.clone());
                    }
                    let name = format!("metrics.{}", metric.name);
                    match metric.kind {
                        SeriesKind::Counter => sink.counter(&name, "", metric.value),
                        SeriesKind::Gauge => sink.gauge(&name, "", metric.value),
                    }
                }
                if self.left_out > 0 {
                    sink.report_unobserved_part(&format!(
                        "--metrics: the server has {left_out} metric series more than the maximum of {RECORDED_METRICS_MAX}, and \
                         plimsoll does not record these",
                        left_out = self.left_out
                    ));
                }
            }
            Err(reason) => {
                sink.add_gap("metrics.up", SeriesKind::Gauge, "", &reason);
                return;
            }
        }
        sink.gauge("metrics.up", "", 1.0);
    }
}

fn redact_metrics_path(path: &str) -> String {
    redact::redact_target(path, RedactionLevel::All)
}
