//! The report fields of a load that replays an access log. The fields compare the responses with
//! the responses in the log, and state the load line as a multiple of the log's rate.
//!
//! Not here: the figures of the log's endpoints, which are reported as routes.

use crate::format::{count, share};
use plimsoll_analysis::find::{AccessLogRate, LoadLine};
use plimsoll_analysis::{Findings, Summary};
use plimsoll_model::{PlanRecord, ReplayFacts, RequestListRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// The field `replay` of the document `plimsoll.run/1`: how the load replayed its access log.
#[derive(Serialize)]
pub(crate) struct ReplayFields<'a> {
    speed: f64,
    scale: f64,
    requests: u64,
    targets: u64,
    lines: u64,
    left_out: &'a BTreeMap<String, u64>,
    seconds_spread: bool,
    status_changed: u64,
}

/// Creates the field `replay` of a run; `None` if the load does not replay a log.
pub(crate) fn replay_fields<'a>(plan: &'a PlanRecord, summary: &Summary) -> Option<ReplayFields<'a>> {
    let RequestListRecord { requests, targets, digest: _, facts } = plan.traffic.request_list.as_ref()?;
    Some(ReplayFields {
        speed: facts.speed_milli as f64 / 1e3,
        scale: facts.scale_milli as f64 / 1e3,
        requests: *requests,
        targets: *targets,
        lines: facts.lines,
        left_out: &facts.skip_counts,
        seconds_spread: facts.has_whole_seconds,
        status_changed: summary.routes_sum.status_changed,
    })
}

/// The field `replay` of the document `plimsoll.find/1`: the load line as a multiple of the access
/// log's rate.
#[derive(Serialize)]
pub(crate) struct ReplayLineFields {
    scale: ScaleFields,
    requests: u64,
    sessions: u64,
    duration_s: f64,
    rate_rps: LogRateFields,
}

#[derive(Serialize)]
struct ScaleFields {
    lower: f64,
    upper: Option<f64>,
    of_busiest_minute: Option<f64>,
    of_busiest_second: Option<f64>,
}

#[derive(Serialize)]
struct LogRateFields {
    mean: f64,
    peak_1s: Option<f64>,
    peak_1min: Option<f64>,
}

impl ReplayLineFields {
    /// Creates the field `replay` of a search; `None` if the loads of the search do not replay a
    /// log.
    pub(crate) fn from_findings(findings: &Findings) -> Option<ReplayLineFields> {
        let log = findings.access_log_rate?;
        let LoadLine { lower, upper, .. } = findings.load_line;
        let AccessLogRate { requests, sessions, span_ns, mean_rps, busiest_minute_rps, busiest_second_rps } = log;
        Some(ReplayLineFields {
            scale: ScaleFields {
                lower: log.multiple_of_mean_rate(lower),
                upper: upper.map(|upper| log.multiple_of_mean_rate(upper)),
                of_busiest_minute: busiest_minute_rps.map(|rps| lower / rps),
                of_busiest_second: busiest_second_rps.map(|rps| lower / rps),
            },
            requests,
            sessions,
            duration_s: span_ns as f64 / 1e9,
            rate_rps: LogRateFields { mean: mean_rps, peak_1s: busiest_second_rps, peak_1min: busiest_minute_rps },
        })
    }
}

/// Formats how a load replayed its access log, and how the responses differ from those in the log.
/// Returns `None` if the load does not replay a log.
pub(crate) fn replay_fact(plan: &PlanRecord, summary: &Summary) -> Option<(&'static str, String)> {
    let RequestListRecord { facts, .. } = plan.traffic.request_list.as_ref()?;
    let mut parts = vec![replay_speed_text(facts)];
    if facts.has_whole_seconds {
        parts.push(
            "the log's timestamps are whole seconds, and the requests are spread within each second: bursts below 1 s \
             differ from the log"
                .to_owned(),
        );
    }
    let answered: u64 = summary.routes_sum.statuses.iter().map(|(_, count)| count).sum();
    let changed = summary.routes_sum.status_changed;
    parts.push(match changed {
        0 => "every response has the status that the log contains".to_owned(),
        _ => format!(
            "{changed_responses} responses ({responses_share}) have another status than in the log",
            changed_responses = count(changed),
            responses_share = share(changed as f64 / answered.max(1) as f64)
        ),
    });
    if !facts.skip_counts.is_empty() {
        let each: Vec<String> =
            facts.skip_counts.iter().map(|(why, number)| format!("{why} {}", count(*number))).collect();
        parts.push(format!("left out: {}", each.join(", ")));
    }
    Some(("replay", parts.join("; ")))
}

/// Formats how the speed and the scale of a replay differ from the log.
fn replay_speed_text(facts: &ReplayFacts) -> String {
    let times = |milli: u64| (milli as f64 / 1e3).to_string();
    match (facts.speed_milli, facts.scale_milli) {
        (1000, 1000) => "requests are sent at the times of the log".to_owned(),
        (speed, 1000) => format!(
            "time runs {speed_factor} times as fast, with shorter pauses of visitors",
            speed_factor = times(speed)
        ),
        (_, scale) => format!(
            "the load has {visitor_factor} times the visitors of the log: further copies of sessions start at other \
             times",
            visitor_factor = times(scale)
        ),
    }
}
