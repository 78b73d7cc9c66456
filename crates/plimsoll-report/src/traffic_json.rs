//! The JSON document of an analysis of access logs: `plimsoll.traffic/1`, which
//! `docs/reference/json.md` describes.

use crate::document::{ObjectByName, to_json_value};
use crate::json::DistributionFields;
use crate::remedy::sentence_text;
use crate::traffic::{TrafficContext, share_of_whole, timestamp_meaning_name, traffic_doubts, traffic_notes};
use plimsoll_analysis::summary::Latency;
use plimsoll_logs::survey::{LogFigures, SESSION_GAP_NS};
use plimsoll_model::{Histogram, redact};
use serde::Serialize;
use serde_json::Value;

/// The maximum number of clients that the document lists.
const CLIENTS_MAX: usize = 1000;

/// Returns the JSON fields of a distribution. Returns `None` (written as null) if the distribution
/// has no values, because a missing figure is not zero.
fn distribution_fields(histogram: &Histogram) -> Option<DistributionFields> {
    (histogram.count() > 0).then(|| DistributionFields::from(&Latency::from_histogram(histogram)))
}

/// The JSON document `plimsoll.traffic/1` of an analysis of access logs.
#[derive(Serialize)]
struct TrafficDocument<'a> {
    schema: &'static str,
    logs: Vec<LogFields<'a>>,
    lines: LinesFields,
    first_unparsed: Option<UnparsedFields<'a>>,
    warnings: Vec<String>,
    notes: Vec<String>,
    requests: u64,
    first_unix_ms: u64,
    last_unix_ms: u64,
    duration_s: f64,
    resolution_ns: u64,
    rate_rps: RateFields,
    endpoints: Vec<EndpointFields<'a>>,
    endpoints_beyond: u64,
    methods: ObjectByName<&'a str, u64>,
    statuses: ObjectByName<String, u64>,
    clients: Vec<ClientFields<'a>>,
    clients_seen: usize,
    clients_exact: bool,
    sessions: SessionsFields,
    popularity: Option<PopularityFields<'a>>,
    dispersion: ObjectByName<String, Option<f64>>,
    concurrency: Option<ConcurrencyFields>,
    duration_ns: Option<DistributionFields>,
    sizes: Option<DistributionFields>,
    series: SeriesFields,
}

#[derive(Serialize)]
struct LogFields<'a> {
    log: &'a str,
    format: &'a str,
    stamps: &'static str,
}

#[derive(Serialize)]
struct LinesFields {
    read: u64,
    parsed: u64,
    unparsed: u64,
    out_of_order: u64,
}

#[derive(Serialize)]
struct UnparsedFields<'a> {
    at: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct RateFields {
    mean: f64,
    peak_1s: Option<u64>,
    peak_1min: f64,
}

#[derive(Serialize)]
struct EndpointFields<'a> {
    template: String,
    method: &'a str,
    requests: u64,
    share: f64,
}

#[derive(Serialize)]
struct ClientFields<'a> {
    client: &'a str,
    requests: u64,
    share: f64,
}

#[derive(Serialize)]
struct SessionsFields {
    count: u64,
    gap_s: u64,
    requests: Option<DistributionFields>,
    think_time_ns: Option<DistributionFields>,
}

#[derive(Serialize)]
struct PopularityFields<'a> {
    method: &'a str,
    template: String,
    ids: u64,
    zipf_exponent: Option<f64>,
}

#[derive(Serialize)]
struct ConcurrencyFields {
    mean: f64,
    max: Option<u64>,
}

#[derive(Serialize)]
struct SeriesFields {
    interval_s: f64,
    requests: Vec<u64>,
}

/// Renders the JSON document `plimsoll.traffic/1` of an analysis of access logs.
pub fn traffic_document(figures: &LogFigures, context: &TrafficContext) -> Value {
    let share = |requests: u64| share_of_whole(requests, figures.requests);
    let endpoints = figures.endpoints.iter().map(|endpoint| EndpointFields {
        template: redact::redact_path(&endpoint.template),
        method: &endpoint.method,
        requests: endpoint.requests,
        share: share(endpoint.requests),
    });
    let clients = figures.clients.iter().take(CLIENTS_MAX).map(|(client, requests)| ClientFields {
        client,
        requests: *requests,
        share: share(*requests),
    });
    let statuses = figures.statuses.iter().filter(|(status, _)| *status > 0);
    let dispersion = figures.dispersion.iter().map(|(width, index)| ((*width as f64 / 1e9).to_string(), *index));
    to_json_value(&TrafficDocument {
        schema: "plimsoll.traffic/1",
        logs: context
            .logs
            .iter()
            .map(|log| LogFields {
                log: &log.name,
                format: &log.format,
                stamps: timestamp_meaning_name(log.timestamp_meaning),
            })
            .collect(),
        lines: LinesFields {
            read: context.lines_read,
            parsed: context.lines_read - context.lines_unparsed,
            unparsed: context.lines_unparsed,
            out_of_order: figures.late_requests,
        },
        first_unparsed: context.first_unparsed.map(|(at, text)| UnparsedFields { at, text }),
        warnings: traffic_doubts(figures, context).iter().map(|doubt| sentence_text(&doubt.text)).collect(),
        notes: traffic_notes(figures),
        requests: figures.requests,
        first_unix_ms: figures.first_ns / 1_000_000,
        last_unix_ms: figures.last_ns / 1_000_000,
        duration_s: figures.span_ns as f64 / 1e9,
        resolution_ns: figures.resolution_ns,
        rate_rps: RateFields {
            mean: figures.rate_mean_rps(),
            peak_1s: figures.peak_1s,
            peak_1min: figures.peak_1min as f64 / 60.0,
        },
        endpoints: endpoints.collect(),
        endpoints_beyond: figures.requests_beyond_endpoint_limit,
        methods: ObjectByName(figures.methods.iter().map(|(method, count)| (method.as_str(), *count)).collect()),
        statuses: ObjectByName(statuses.map(|(status, count)| (status.to_string(), *count)).collect()),
        clients: clients.collect(),
        clients_seen: figures.clients.len(),
        clients_exact: figures.clients_error_max == 0,
        sessions: SessionsFields {
            count: figures.sessions.requests.count(),
            gap_s: SESSION_GAP_NS / 1_000_000_000,
            requests: distribution_fields(&figures.sessions.requests),
            think_time_ns: distribution_fields(&figures.sessions.think_times_ns),
        },
        popularity: figures.popularity.as_ref().map(|popularity| PopularityFields {
            method: &popularity.method,
            template: redact::redact_path(&popularity.template),
            ids: popularity.ids,
            zipf_exponent: popularity.zipf_exponent,
        }),
        dispersion: ObjectByName(dispersion.collect()),
        concurrency: figures.concurrency.map(|found| ConcurrencyFields { mean: found.mean, max: found.max }),
        duration_ns: distribution_fields(&figures.durations),
        sizes: distribution_fields(&figures.sizes),
        series: SeriesFields {
            interval_s: figures.interval_s,
            requests: figures.intervals.iter().map(|moment| moment.arrivals).collect(),
        },
    })
}
