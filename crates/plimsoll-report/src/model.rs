//! Renders the report of a traffic model that was derived from access logs, as text and as the
//! document `plimsoll.model/1`. The report states the content of the model and its differences from
//! the logs.
//!
//! Not here: deriving the model (`plimsoll_logs::modelling`).

use crate::block::{Report, Tone};
use crate::document::{ObjectByName, to_json_value};
use crate::format::{count, duration, share};
use plimsoll_logs::modelling::{ModelDistances, TrafficModel, VISIT_REQUESTS_MAX};
use serde::Serialize;
use serde_json::Value;

/// A traffic model that was written to a file, with the logs that it was derived from.
pub struct ModelView<'a> {
    /// The path of the model file.
    pub file: &'a str,
    /// The access logs that the model was derived from.
    pub logs: &'a [String],
    /// The number of log lines that were read.
    pub lines_read: u64,
    /// The number of log lines that could not be parsed.
    pub lines_unparsed: u64,
    /// The command line that sends traffic according to the model.
    pub command: String,
    /// The traffic model that was written to the file.
    pub model: &'a TrafficModel,
    /// The measured differences between the model and the logs; `None` without the flag `--verify`.
    pub distances: Option<&'a ModelDistances>,
}

/// The document `plimsoll.model/1`: the content of a traffic model, and its differences from the
/// access logs that it was derived from.
#[derive(Serialize)]
struct ModelDocument<'a> {
    schema: &'static str,
    file: &'a str,
    logs: &'a [String],
    lines: ModelLines,
    requests: u64,
    sessions: u64,
    taken_apart: SplitSessionFields,
    endpoints: usize,
    scenarios: usize,
    sequences: usize,
    left_out: &'a std::collections::BTreeMap<String, u64>,
    keys_withheld: usize,
    duration_s: f64,
    rate: String,
    arrivals: plimsoll_model::ArrivalSpacing,
    verify: Option<ModelVerificationFields>,
}

#[derive(Serialize)]
struct ModelLines {
    read: u64,
    unparsed: u64,
}

#[derive(Serialize)]
struct SplitSessionFields {
    sessions: u64,
    requests: u64,
}

#[derive(Serialize)]
struct ModelVerificationFields {
    holds: bool,
    apart: Vec<String>,
    mix_tv: f64,
    mix_tv_max: f64,
    dispersion: Vec<DispersionFields>,
    sessions: SessionDistances,
    lru: Vec<CacheHitRatioFields>,
}

#[derive(Serialize)]
struct DispersionFields {
    window_s: f64,
    log: Option<f64>,
    model: Option<f64>,
    ratio: Option<f64>,
    off_max: f64,
}

#[derive(Serialize)]
struct SessionDistances {
    requests: ObjectByName<String, LogAndModelFields>,
    think_time_ns: ObjectByName<String, LogAndModelFields>,
    transitions_tv: Option<f64>,
}

#[derive(Serialize)]
struct LogAndModelFields {
    log: f64,
    model: f64,
}

#[derive(Serialize)]
struct CacheHitRatioFields {
    size: usize,
    log: f64,
    model: f64,
    points: f64,
}

/// Renders the JSON document of a model of access logs.
pub fn model_document(view: &ModelView) -> Value {
    let facts = &view.model.facts;
    to_json_value(&ModelDocument {
        schema: "plimsoll.model/1",
        file: view.file,
        logs: view.logs,
        lines: ModelLines { read: view.lines_read, unparsed: view.lines_unparsed },
        requests: facts.requests,
        sessions: facts.visits,
        taken_apart: SplitSessionFields { sessions: facts.split_visits.0, requests: facts.split_visits.1 },
        endpoints: facts.endpoints,
        scenarios: facts.scenarios,
        sequences: facts.sequences,
        left_out: &facts.omitted_requests,
        keys_withheld: facts.keys_withheld,
        duration_s: view.model.span_ns as f64 / 1e9,
        rate: view.model.visit_arrivals.rate.to_string(),
        arrivals: view.model.visit_arrivals.arrivals,
        verify: view.distances.map(model_verification_fields),
    })
}

fn quantile_fields(list: &[(f64, f64, f64)]) -> ObjectByName<String, LogAndModelFields> {
    let field = |(quantile, log, model): &(f64, f64, f64)| {
        (format!("p{}", quantile * 100.0), LogAndModelFields { log: *log, model: *model })
    };
    ObjectByName(list.iter().map(field).collect())
}

fn model_verification_fields(distances: &ModelDistances) -> ModelVerificationFields {
    let apart = distances.figures_over_bounds();
    let dispersion = distances.dispersion.iter().zip(&distances.dispersion_difference_max);
    let dispersion = dispersion.map(|((width_ns, both), off_max)| DispersionFields {
        window_s: *width_ns as f64 / 1e9,
        log: both.map(|(log, _)| log),
        model: both.map(|(_, model)| model),
        ratio: both.map(|(log, model)| model / log),
        off_max: *off_max,
    });
    let cache = |(size, log, model): &(usize, f64, f64)| CacheHitRatioFields {
        size: *size,
        log: *log,
        model: *model,
        points: 100.0 * (model - log),
    };
    ModelVerificationFields {
        holds: apart.is_empty(),
        apart: apart.into_iter().map(|figure| figure.name).collect(),
        mix_tv: distances.endpoint_share_distance,
        mix_tv_max: distances.endpoint_share_distance_max,
        dispersion: dispersion.collect(),
        sessions: SessionDistances {
            requests: quantile_fields(&distances.visit_requests),
            think_time_ns: quantile_fields(&distances.waits_ns),
            transitions_tv: distances.transitions_tv,
        },
        lru: distances.hit_ratio.iter().map(cache).collect(),
    }
}

/// Renders the report of a model of access logs as text blocks.
pub fn model_report(view: &ModelView) -> Report {
    let (model, facts) = (view.model, &view.model.facts);
    let mut report = Report::default();
    let headline = match view.distances.map(ModelDistances::figures_over_bounds) {
        None => format!("{} is a model of {}", view.file, view.logs.join(", ")),
        Some(apart) if apart.is_empty() => {
            format!(
                "the model {file} matches {logs}: all differences are within their bounds",
                file = view.file,
                logs = view.logs.join(", ")
            )
        }
        Some(apart) => {
            let said: Vec<String> = apart.into_iter().map(|figure| figure.message).collect();
            format!("{} differs from {}: {}", view.file, view.logs.join(", "), said.join("; "))
        }
    };
    report.add_sentence(Tone::Plain, headline);
    let what = match facts.scenarios {
        0 => format!(
            "a mix of {endpoints} endpoints without sequences of requests: few visits have more than one request",
            endpoints = count(facts.endpoints as u64)
        ),
        scenarios => format!(
            "{scenarios} scenarios with {endpoints} endpoints represent {sequences} different sequences of requests in \
             the log",
            scenarios = count(scenarios as u64),
            endpoints = count(facts.endpoints as u64),
            sequences = count(facts.sequences as u64)
        ),
    };
    let mut rows = vec![
        ("model", what),
        (
            "source",
            format!(
                "{} requests in {} visits, {}",
                count(facts.requests),
                count(facts.visits),
                duration(model.span_ns as f64)
            ),
        ),
        ("send it", view.command.clone()),
    ];
    if facts.split_visits.0 > 0 {
        rows.push((
            "split",
            format!(
                "{visits} visits have more than {VISIT_REQUESTS_MAX} requests: the model treats their {requests} \
                 requests as single requests",
                visits = count(facts.split_visits.0),
                requests = count(facts.split_visits.1)
            ),
        ));
    }
    let mut left_out: Vec<String> =
        facts.omitted_requests.iter().map(|(why, n)| format!("{why} {}", count(*n))).collect();
    if view.lines_unparsed > 0 {
        left_out.push(format!("unparsed lines {}", count(view.lines_unparsed)));
    }
    if !left_out.is_empty() {
        rows.push(("excluded", left_out.join(", ")));
    }
    if facts.keys_withheld > 0 {
        rows.push((
            "withheld",
            format!(
                "{path_parts} parts of paths look like secret keys, and the model replaces these parts: --keep-keys \
                 writes the original parts",
                path_parts = count(facts.keys_withheld as u64)
            ),
        ));
    }
    report.add_facts(rows);
    if let Some(distances) = view.distances {
        report.add_heading("Difference between model and log");
        report.add_table(&["", "log", "model", "difference", "bound"], distance_rows(distances));
        report.add_sentence(
            Tone::Plain,
            "The table compares requests drawn from the model with the log. The rows for waits and for the order of \
             endpoints are for information only: they have no bound.",
        );
    }
    report
}

fn distance_rows(distances: &ModelDistances) -> Vec<Vec<String>> {
    let short = |value: f64| crate::format::round_to_digits(value, 3).to_string();
    let mut rows = vec![vec![
        "mix of endpoints".to_owned(),
        String::new(),
        String::new(),
        share(distances.endpoint_share_distance),
        share(distances.endpoint_share_distance_max),
    ]];
    for ((width_ns, both), off_max) in distances.dispersion.iter().zip(&distances.dispersion_difference_max) {
        let name = format!("dispersion at {}", duration(*width_ns as f64));
        let bound = share(*off_max);
        rows.push(match both {
            Some((log, model)) => vec![name, short(*log), short(*model), share((model / log - 1.0).abs()), bound],
            None => vec![name, "not measurable".to_owned(), String::new(), String::new(), bound],
        });
    }
    for ((quantile, log, model), off_max) in
        distances.visit_requests.iter().zip(&distances.visit_requests_difference_max)
    {
        let name = format!("requests in a visit, p{percentile}", percentile = quantile * 100.0);
        let bound = format!("{} requests", short(*off_max));
        rows.push(vec![name, short(*log), short(*model), share((model / log.max(1.0) - 1.0).abs()), bound]);
    }
    for (quantile, log, model) in &distances.waits_ns {
        let name = format!("wait of a visitor before a request, p{percentile}", percentile = quantile * 100.0);
        rows.push(vec![name, duration(*log), duration(*model), String::new(), String::new()]);
    }
    if let Some(tv) = distances.transitions_tv {
        rows.push(vec!["order of endpoints".to_owned(), String::new(), String::new(), share(tv), String::new()]);
    }
    for ((size, log, model), off_max) in distances.hit_ratio.iter().zip(&distances.hit_ratio_difference_max) {
        let name = format!("hit rate of a cache of {paths} paths", paths = count(*size as u64));
        rows.push(vec![name, share(*log), share(*model), share((model - log).abs()), share(*off_max)]);
    }
    rows
}
