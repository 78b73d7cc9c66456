//! The first screen of a single load: its success rate, its response times with a histogram, its
//! failures, and the server's CPU.
//!
//! Not here: the numbers of requests by outcome, further kinds of times, and connections (`run`).

use super::find::server_cpu_text;
use super::{Screen, TextHistogram};
use crate::agents;
use crate::format::{count, duration};
use crate::run::{
    ROUTE_HEADINGS, RunContext, failures_by_kind_text, latency_row, ledger_facts, route_row, run_answer, stage_row,
    unreliable_quantiles_fact,
};
use plimsoll_analysis::finding::RunFinding;
use plimsoll_model::LoadShape;
use plimsoll_model::shell;

/// The maximum number of routes on a screen, and also the maximum number of stages.
const ROUTES_MAX: usize = 4;
/// The maximum number of agents (load-generating machines) on a screen.
const AGENTS_MAX: usize = 5;
/// The labels of the facts that are shown only if requests failed.
const FAILURE_FACT_LABELS: [&str; 4] = ["statuses", "failed response", "not connected", "TLS failed"];

/// Renders the first screen of a single load.
pub(crate) fn run_screen(context: &RunContext, finding: &RunFinding) -> Screen<'static> {
    let summary = &finding.summary;
    let answer = run_answer(context.plan, summary);
    let mut screen = Screen::new(match summary.generator.is_limit {
        true => format!("{answer}; plimsoll was the limit, not the server"),
        false => answer,
    });
    screen.add_fact(1, "target", format!("{}, for {}", context.target_text(), duration(summary.duration_ns as f64)));
    let ledger = &summary.routes_sum.ledger;
    if ledger.succeeded < ledger.scheduled {
        let parts = [("unsent", ledger.unsent), ("in flight at the end", ledger.in_flight)];
        let parts = parts.into_iter().filter(|(_, requests)| *requests > 0);
        let (failed, scheduled) = (count(ledger.failed_total()), count(ledger.scheduled));
        let failed = format!("{failed} of {scheduled} requests{}", failures_by_kind_text(ledger));
        let parts = std::iter::once(failed).chain(parts.map(|(what, many)| format!("{} {what}", count(many))));
        screen.add_fact(0, "failed", parts.collect::<Vec<_>>().join(", "));
        let mut shown: Vec<&str> = Vec::new();
        for (label, text) in ledger_facts(context, summary) {
            if let Some(&label) = FAILURE_FACT_LABELS.iter().find(|known| **known == label)
                && !shown.contains(&label)
            {
                shown.push(label);
                screen.add_fact(2, label, text);
            }
        }
    }
    if let Some(text) = server_cpu_text(&finding.server) {
        screen.add_fact(1, "server", text);
    }
    let busy = format!("{:.0} %", summary.generator.work_share * 100.0);
    let lag = match summary.generator.lag.count {
        0 => String::new(),
        _ => format!(", lag {}", summary.generator.lag.tail_text()),
    };
    let by = match context.agents.len() {
        0 => String::new(),
        1 => "1 agent, ".to_owned(),
        agents => format!("{agents} agents, at most "),
    };
    screen.add_fact(3, "generator", format!("{by}{busy} busy{lag}"));
    if let Some((label, text)) = unreliable_quantiles_fact(summary) {
        screen.add_fact(4, label, text);
    }
    let mut rows = vec![latency_row("response time", &summary.routes_sum.response)];
    let service = latency_row("service time", &summary.routes_sum.service);
    if matches!(context.plan.load.shape, LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. })
        && service[1..] != rows[0][1..]
    {
        rows.push(service);
    }
    screen.add_table(1, &["", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"], rows, 2);
    if !context.agents.is_empty() {
        screen.add_table(2, &agents::AGENT_TABLE_HEADINGS, agents::agent_rows(&context.agents), AGENTS_MAX);
    }
    if !finding.routes.is_empty() {
        screen.add_table(2, &ROUTE_HEADINGS, finding.routes.iter().map(route_row).collect(), ROUTES_MAX);
    }
    if !summary.stages.is_empty() {
        let over = match context.plan.load.shape {
            LoadShape::Closed { .. } => "users",
            LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => "offered/s",
        };
        let headings = ["stage", over, "length", "requests/s", "success", "p50", "p99", "max"];
        let rows = summary.stages.iter().enumerate().map(|(number, stage)| stage_row(number, stage)).collect();
        screen.add_table(2, &headings, rows, ROUTES_MAX);
    }
    let times = finding.trial.run.totals().routes_sum.response;
    let title = format!("response time of {requests} requests", requests = count(times.count()));
    if let Some(bars) = TextHistogram::new(title, times) {
        screen.add_bars(bars);
    }
    if let [_] = context.plan.traffic.routes.as_slice()
        && ledger.succeeded > 0
    {
        screen.set_next_step(format!(
            "plimsoll find {url} (the rate that the server sustains)",
            url = shell::quote_if_needed(&context.url())
        ));
    }
    screen
}
