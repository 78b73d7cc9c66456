//! Formats the events of a running study as lines of JSON (`--json-lines`). The events are the
//! start of the study, each load, each tick (short interval) of a load, and the finding. The file
//! docs/reference/json.md describes the lines (`plimsoll.events/1`).
//!
//! Not here: when an event happens (`plimsoll-study`), and where the lines are written (the
//! binary).

use crate::csv::load_purpose_name;
use crate::document::to_json_value;
use crate::json::{LoadLineFields, TrialFields, round_fractional_numbers};
use crate::run::load_text;
use plimsoll_analysis::Summary;
use plimsoll_analysis::quantile::is_stated;
use plimsoll_analysis::study::{LoadLineSearch, Study};
use plimsoll_model::{ExperimentSpec, Interval, LoadShape, LoadTag, PlanRecord, Trial};
use serde::Serialize;
use serde_json::Value;

/// The name and version of the schema of the event lines.
const EVENTS_SCHEMA: &str = "plimsoll.events/1";

/// The event `begin` at the start of a study.
#[derive(Serialize)]
struct StudyBeginsFields {
    event: &'static str,
    schema: &'static str,
    plimsoll: &'static str,
    command: &'static str,
}

/// The event `load` at the start of a load. Loads are numbered from 0, in the order of the run
/// file.
#[derive(Serialize)]
struct LoadBeginsFields {
    event: &'static str,
    load: usize,
    purpose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<char>,
    target: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<f64>,
    warmup_s: f64,
    duration_s: Option<f64>,
    elapsed_s: f64,
}

/// The event `tick`: the figures of one tick, which is a short interval of a load.
#[derive(Serialize)]
struct TickEventFields {
    event: &'static str,
    load: usize,
    phase: &'static str,
    start_s: f64,
    end_s: f64,
    scheduled: u64,
    succeeded: u64,
    failed: u64,
    unsent: u64,
    in_flight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_time_ns: Option<EventTimesFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cores: Option<f64>,
}

#[derive(Serialize)]
struct EventTimesFields {
    p50: Option<u64>,
    p99: Option<u64>,
    max: u64,
}

impl EventTimesFields {
    /// `requests`: the number of requests with a response time. A quantile that fewer than ten of
    /// them exceed is not stated.
    fn new(requests: u64, p50: u64, p99: u64, max: u64) -> EventTimesFields {
        let stated = |q: f64, ns: u64| is_stated(q, requests).then_some(ns);
        EventTimesFields { p50: stated(0.5, p50), p99: stated(0.99, p99), max }
    }
}

/// The event `load_end` at the end of a load.
#[derive(Serialize)]
struct LoadEndsFields {
    event: &'static str,
    load: usize,
    purpose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<char>,
    throughput_rps: f64,
    success_rate: f64,
    response_time_ns: EventTimesFields,
    generator_limited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    interference_cores: Option<f64>,
    /// The figures of the load as a trial of a search, with its verdict; absent if the load is not
    /// a trial of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<TrialFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_line_rps: Option<LoadLineFields>,
    elapsed_s: f64,
}

/// The event `finding` at the end of a study, which contains the same document as `--json`.
#[derive(Serialize)]
struct FindingEventFields<'a> {
    event: &'static str,
    document: &'a Value,
}

/// Formats one event as a line of JSON. As in every JSON document of plimsoll, fractional numbers
/// are rounded to seven significant digits.
fn event_line(event: &impl Serialize) -> String {
    crate::visible_controls::json_line(&round_fractional_numbers(&to_json_value(event)))
}

/// Formats the first line of the output, which names the study.
pub fn study_begin_line(spec: &ExperimentSpec) -> String {
    let (command, plimsoll) = (spec.study_word(), env!("CARGO_PKG_VERSION"));
    event_line(&StudyBeginsFields { event: "begin", schema: EVENTS_SCHEMA, plimsoll, command })
}

/// Formats the event line for the start of a load. `load` is the number of the load, from 0, and
/// `elapsed_ns` is the time since the start of the study.
pub fn load_begin_line(load: usize, tag: &LoadTag, plan: &PlanRecord, elapsed_ns: u64) -> String {
    let level = plan.load.shape.curve().max();
    let is_closed = matches!(plan.load.shape, LoadShape::Closed { .. });
    event_line(&LoadBeginsFields {
        event: "load",
        load,
        purpose: load_purpose_name(tag.purpose),
        arm: tag.arm.map(plimsoll_model::ArmIndex::letter),
        target: plan.traffic.target_label(),
        text: load_text(plan),
        offered_rps: (!is_closed).then_some(level),
        users: is_closed.then_some(level),
        warmup_s: plan.load.warmup_ns as f64 / 1e9,
        duration_s: plan.load.duration_ns.map(|ns| ns as f64 / 1e9),
        elapsed_s: elapsed_ns as f64 / 1e9,
    })
}

/// Formats the event line for a tick of the load with number `load`. The tick is the interval from
/// `start_ns` to `end_ns` in the load's schedule.
pub fn tick_event_line(
    load: usize,
    phase: &'static str,
    (start_ns, end_ns): (u64, u64),
    interval: &Interval,
    server_cores: Option<f64>,
) -> String {
    let whole = interval.all_routes();
    let times = &whole.response;
    event_line(&TickEventFields {
        event: "tick",
        load,
        phase,
        start_s: start_ns as f64 / 1e9,
        end_s: end_ns as f64 / 1e9,
        scheduled: whole.ledger.scheduled,
        succeeded: whole.ledger.succeeded,
        failed: whole.ledger.failed_total(),
        unsent: whole.ledger.unsent,
        in_flight: whole.in_flight_end,
        response_time_ns: (times.count() > 0).then(|| {
            let all = times.to_histogram();
            EventTimesFields::new(times.count(), all.quantile_ns(0.5), all.quantile_ns(0.99), all.max_ns())
        }),
        server_cores,
    })
}

/// Formats the event line for the end of a load. The line has the figures of the load and, if the
/// study is a search, the verdict of the trial.
pub fn load_end_line(load: usize, trial: &Trial, study: &Study, elapsed_ns: u64) -> String {
    let summary = Summary::from_run(&trial.run);
    let search = match study {
        Study::Find(search) => Some(&**search),
        Study::Explain(explain) => Some(&explain.search),
        Study::Overload(overload) => Some(&overload.search),
        Study::Run(..) | Study::Sweep(_) | Study::Blocks(_) => None,
    };
    let is_of_search =
        |search: &&LoadLineSearch| search.outcomes.last().is_some_and(|outcome| outcome.start_ns == trial.start_ns);
    let findings = search.filter(is_of_search).map(|search| search.findings(elapsed_ns));
    let outcome = findings.as_ref().and_then(|findings| findings.trials.last());
    let response = summary.routes_sum.response;
    event_line(&LoadEndsFields {
        event: "load_end",
        load,
        purpose: load_purpose_name(trial.tag.purpose),
        arm: trial.tag.arm.map(plimsoll_model::ArmIndex::letter),
        throughput_rps: summary.throughput_rps,
        success_rate: summary.success_rate,
        response_time_ns: EventTimesFields::new(response.count, response.p50_ns, response.p99_ns, response.max_ns),
        generator_limited: summary.generator.is_limit,
        interference_cores: summary.interference.cores,
        trial: outcome.map(|outcome| TrialFields::new(outcome, &trial.run)),
        load_line_rps: outcome.and(findings.as_ref()).map(|findings| findings.load_line.into()),
        elapsed_s: elapsed_ns as f64 / 1e9,
    })
}

/// Formats the last line of the output, which contains the same document as `--json`.
pub fn finding_event_line(document: &Value) -> String {
    event_line(&FindingEventFields { event: "finding", document })
}
