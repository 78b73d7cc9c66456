//! Renders the result of an overload test, which offers loads beyond the load line and then reduces
//! the load. The load line is the highest rate that meets the SLO. The result has the goodput at
//! each step as a share of the load line, the kinds of failures, and the recovery.

use crate::block::{Report, Tone};
use crate::chart::{self, AxisUnit, ChartLine, Heading, Panel, Theme, heading};
use crate::document::to_json_value;
use crate::format::{count, duration, rate, share};
use crate::json::{CommonDocumentFields, LoadSetupFields};
use crate::page_charts::{PageAdditions, environment_section, series_section};
use crate::run::{RunContext, target_text};
use crate::server::{ServerFields, add_server_facts};
use plimsoll_analysis::finding::OverloadFinding;
use plimsoll_analysis::overload::{OverloadResult, OverloadSecond, OverloadStep, OverloadVerdict, UnsuccessfulCounts};
use plimsoll_model::{Experiment, PlanRecord};
use serde::Serialize;
use serde_json::Value;

/// Formats the result of an overload test as one sentence: the verdict, the lowest goodput beyond
/// the load line, and the recovery.
pub(crate) fn overload_answer(result: &OverloadResult) -> String {
    let Some(verdict) = result.verdict else {
        let serves = result.steps.iter().any(|step| step.succeeded_rps > 0.0);
        return match result.steps.is_empty() || serves {
            true => "the load of the overload test did not finish: there is no verdict",
            false => "no request succeeded at any rate: there is no load line to exceed",
        }
        .to_owned();
    };
    let past = result.steps.iter().filter(|step| step.factor > 1.0);
    let least = past.min_by(|a, b| a.goodput_share.total_cmp(&b.goodput_share));
    let kept = least.map_or_else(String::new, |step| {
        let kept_share = share(step.goodput_share.clamp(0.0, 1.0));
        format!(
            "at {factor} times the load line, the server completes {kept_share} of the load line in time",
            factor = step.factor
        )
    });
    let back = match (result.recovery_s, verdict) {
        (Some(0.0), _) => "the server recovers at once when the load falls".to_owned(),
        (Some(seconds), _) => {
            format!("the server recovers {time} after the load fell", time = duration(seconds * 1e9))
        }
        (None, OverloadVerdict::Metastable) => {
            format!(
                "the server does not recover by itself: no improvement within {time} after the load fell",
                time = watch_time_text(result)
            )
        }
        (None, _) => {
            format!(
                "the server has not recovered within {time} after the load fell, although its backlog shrinks",
                time = watch_time_text(result)
            )
        }
    };
    format!("{}: {kept}, and {back}", verdict.word())
}

fn watch_time_text(result: &OverloadResult) -> String {
    duration(result.watched_s * 1e9)
}

/// Formats the number of failed requests of a load step by kind; `-` if no request failed.
fn failure_counts_text(refused: &UnsuccessfulCounts, is_grpc: bool) -> String {
    let UnsuccessfulCounts {
        overload_status,
        other_status,
        timeout,
        connection,
        unsent,
        failure_time_p50_ns: after_p50_ns,
    } = *refused;
    let parts = [
        (overload_status, if is_grpc { "RESOURCE_EXHAUSTED or UNAVAILABLE" } else { "429 or 503" }),
        (other_status, "other failed responses"),
        (timeout, "timeout"),
        (connection, "connection"),
        (unsent, "never sent"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(times, _)| *times > 0).map(|(times, what)| format!("{} {what}", count(*times))).collect();
    let after = after_p50_ns.map_or_else(String::new, |ns| format!(", p50 after {}", duration(ns as f64)));
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") + &after }
}

pub(crate) fn load_step_row(step: &OverloadStep, is_grpc: bool) -> Vec<String> {
    let again = step.retries_rps.map_or_else(String::new, |again_rps| format!(" + {}/s again", rate(again_rps)));
    vec![
        format!("{} x", step.factor),
        format!("{}/s{again}", rate(step.offered_rps)),
        format!("{}/s", rate(step.goodput_rps)),
        share(step.goodput_share.clamp(0.0, 1.0)),
        step.accepted_p99_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64)),
        failure_counts_text(&step.unsuccessful, is_grpc),
    ]
}

/// Renders the report of an overload test as text blocks.
pub(crate) fn overload_report(context: &RunContext, finding: &OverloadFinding) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, overload_answer(&finding.overload));
    let mut facts = vec![
        ("target", context.target_text()),
        ("line", format!("{} under {}", load_line_text(context, &finding.overload), finding.slo)),
    ];
    if finding.retries > 0 {
        let times = if finding.retries == 1 { "once".to_owned() } else { format!("up to {} times", finding.retries) };
        facts.push(("clients", format!("plimsoll repeats a failed request {times}, after 0.1 s, 0.2 s, 0.4 s, ...")));
    }
    facts.extend(finding.overload.retry_after.map(|says| {
        let text = match says {
            true => "the server sends the header Retry-After with its rejections",
            false => "the server does not send the header Retry-After with its rejections",
        };
        ("Retry-After", text.to_owned())
    }));
    report.add_facts(facts);
    let rows = |plan: &PlanRecord, found: &OverloadResult| {
        let is_grpc = plan.traffic.origin.is_grpc();
        found.steps.iter().map(|step| load_step_row(step, is_grpc)).collect()
    };
    report.add_table(&STEP_HEADINGS, rows(finding.plan, &finding.overload));
    if let Some((plan, other)) = &finding.second_target {
        report.add_sentence(Tone::Answer, format!("against {}: {}", target_text(plan), overload_answer(other)));
        report.add_table(&STEP_HEADINGS, rows(plan, other));
    }
    report
}

/// Formats the load line. If the load line is in sessions/s, the text also states the load line in
/// requests/s, because the load steps are in requests/s.
pub(crate) fn load_line_text(context: &RunContext, result: &OverloadResult) -> String {
    let line = format!("{} {}/s", rate(result.line_rps), context.plan.traffic.arrivals_word());
    match context.plan.traffic.scenarios.is_empty() {
        true => line,
        false => format!("{line} ({} requests/s)", rate(result.line_rps * result.requests_per_session)),
    }
}

pub(crate) const STEP_HEADINGS: [&str; 6] =
    ["load", "offered", "in time", "kept", "p99 of accepted", "failed or not sent"];

/// Returns the heading and the lines of the chart of an overload test: the offered rate and the
/// goodput of each second.
fn rates_over_time(context: &RunContext, finding: &OverloadFinding) -> (Heading, Panel) {
    let line = |name: &str, seconds: &[OverloadSecond], of: fn(&OverloadSecond) -> u64| ChartLine {
        name: name.to_owned(),
        points: seconds.iter().enumerate().map(|(at, second)| (at as f64 + 0.5, of(second) as f64)).collect(),
    };
    let seconds = &finding.overload.seconds;
    let in_time = |second: &OverloadSecond| second.in_time;
    let mut lines =
        vec![line("offered", seconds, |second| second.offered), line("completed in time", seconds, in_time)];
    lines.extend(
        finding.second_target.as_ref().map(|(_, other)| line("goodput of the second target", &other.seconds, in_time)),
    );
    let panel = Panel { title: "requests/s".to_owned(), unit: AxisUnit::Count, is_log_scale: false, lines };
    let subtitle =
        format!("{}, line {}", heading::target_title(context.plan), load_line_text(context, &finding.overload));
    (Heading { title: "Past the load line and back".to_owned(), subtitle }, panel)
}

/// Draws the chart of an overload test over time as SVG.
pub(crate) fn overload_svg(context: &RunContext, finding: &OverloadFinding, theme: Theme) -> String {
    let (heading, panel) = rates_over_time(context, finding);
    chart::time_chart(&heading, &[panel], theme)
}

/// Renders the page of an overload test, with a chart of offered rate and goodput over time.
pub(crate) fn overload_page(
    experiment: &Experiment,
    context: &RunContext,
    finding: &OverloadFinding,
    additions: &PageAdditions,
) -> Report {
    let mut page = overload_report(context, finding);
    let (heading, panel) = rates_over_time(context, finding);
    page.append(series_section(&heading.title, &heading.subtitle, &[panel]));
    add_server_facts(&mut page, &finding.server);
    page.append(additions.extra.clone()).append(environment_section(
        experiment,
        Some(context.plan.load.seed),
        additions,
    ));
    page
}

#[derive(Serialize)]
struct OverloadDocument<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    warnings: &'a [String],
    line_rps: f64,
    slo: &'a str,
    retries: u32,
    steps: Vec<OverloadStepFields>,
    recovery_s: Option<f64>,
    recovered: bool,
    retry_after: Option<bool>,
    verdict: Option<&'static str>,
    against: Option<SecondTargetFields>,
    elapsed_s: Option<f64>,
    server: ServerFields<'a>,
}

#[derive(Serialize)]
struct SecondTargetFields {
    target: String,
    steps: Vec<OverloadStepFields>,
    recovery_s: Option<f64>,
    recovered: bool,
    retry_after: Option<bool>,
    verdict: Option<&'static str>,
}

#[derive(Serialize)]
struct OverloadStepFields {
    factor: f64,
    offered_rps: f64,
    again_rps: Option<f64>,
    goodput_rps: f64,
    answered_rps: f64,
    kept_share: f64,
    accepted_p99_ns: Option<u64>,
    refused: RefusalCountsFields,
}

#[derive(Serialize)]
struct RefusalCountsFields {
    too_much: u64,
    status: u64,
    timeout: u64,
    connection: u64,
    unsent: u64,
    after_p50_ns: Option<u64>,
}

impl From<&OverloadStep> for OverloadStepFields {
    fn from(step: &OverloadStep) -> OverloadStepFields {
        let UnsuccessfulCounts {
            overload_status,
            other_status,
            timeout,
            connection,
            unsent,
            failure_time_p50_ns: after_p50_ns,
        } = step.unsuccessful;
        let OverloadStep {
            factor,
            offered_rps,
            retries_rps,
            goodput_rps,
            succeeded_rps,
            goodput_share,
            accepted_p99_ns,
            ..
        } = *step;
        let refused = RefusalCountsFields {
            too_much: overload_status,
            status: other_status,
            timeout,
            connection,
            unsent,
            after_p50_ns,
        };
        OverloadStepFields {
            factor,
            offered_rps,
            again_rps: retries_rps,
            goodput_rps,
            answered_rps: succeeded_rps,
            kept_share: goodput_share,
            accepted_p99_ns,
            refused,
        }
    }
}

/// Renders the JSON document of an overload test: `plimsoll.overload/1`.
pub(crate) fn overload_document(
    experiment: &Experiment,
    context: &RunContext,
    finding: &OverloadFinding,
    warnings: &[String],
) -> Value {
    let OverloadFinding { slo, retries, overload, second_target: against, server, .. } = finding;
    let made = LoadSetupFields::new(context.plan, context.injectors);
    to_json_value(&OverloadDocument {
        frame: CommonDocumentFields::new("plimsoll.overload/1", experiment, Some(made)),
        warnings,
        line_rps: overload.line_rps,
        slo,
        retries: *retries,
        steps: overload.steps.iter().map(OverloadStepFields::from).collect(),
        recovery_s: overload.recovery_s,
        recovered: overload.recovery_s.is_some(),
        retry_after: overload.retry_after,
        verdict: overload.verdict.map(OverloadVerdict::word),
        against: against.as_ref().map(|(plan, other)| SecondTargetFields {
            target: plan.traffic.title(),
            steps: other.steps.iter().map(OverloadStepFields::from).collect(),
            recovery_s: other.recovery_s,
            recovered: other.recovery_s.is_some(),
            retry_after: other.retry_after,
            verdict: other.verdict.map(OverloadVerdict::word),
        }),
        elapsed_s: experiment.elapsed_ns.map(|ns| ns as f64 / 1e9),
        server: ServerFields::new(server),
    })
}
