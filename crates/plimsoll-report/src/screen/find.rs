//! The first screen of a search for the load line, the highest rate that meets the SLO. The screen
//! has the load line, its certainty, the bottleneck, and the figures at the load line and at the
//! peak.
//!
//! Not here: the table of trials (`find`).

use super::Screen;
use crate::find::{
    access_log_text, arrivals_text, budget_text, log_multiple_prefix, missing_lower_bound_text, needed_instances_text,
    planned_load_text, proven_load_line_text, stop_reason_text, trials_text,
};
use crate::format::{count, duration, rate};
use crate::remedy::sentence_text;
use crate::run::RunContext;
use crate::server::server_cpu_use_text;
use plimsoll_analysis::find::{LoadLine, StopReason};
use plimsoll_analysis::finding::{Bottleneck, SearchFinding};
use plimsoll_analysis::{Doubts, FailedResponseGroup, Findings, ServerView, Slo, TrialOutcome, Verdict};
use plimsoll_model::shell;
use plimsoll_model::{Experiment, LoadPurpose};

/// A trial counts as measured at the load line if its rate differs from the load line by at most
/// this share.
const RATE_DIFFERENCE_AT_LINE_MAX: f64 = 0.1;

/// Formats the result of a search as one sentence, which is shorter than in the full report.
pub(super) fn short_load_line_sentence(findings: &Findings) -> String {
    let LoadLine { rps, lower, upper, has_estimate: provable, .. } = findings.load_line;
    let (counted, slo) = (findings.rate_unit, &findings.slo);
    if let Some(stalls) = findings
        .stalls
        .as_ref()
        .filter(|stalls| rps <= 0.0 && (stalls.impossible_bound.is_some() || stalls.is_recurring))
    {
        let bound = stalls.impossible_bound.as_ref().map_or_else(|| slo.to_string(), ToString::to_string);
        return format!("no load line: {stalls}: no rate was shown to meet {bound}", stalls = stalls.stalls_text());
    }
    if let Some(gone) = findings.target_loss.filter(|_| rps <= 0.0) {
        return format!("no load line: {}", gone.server_loss_text());
    }
    if let Some(failing) = findings.constant_failure {
        return format!("no load line: {failures}: no rate meets {slo}", failures = failing.failure_text());
    }
    let times = |rps: f64| log_multiple_prefix(findings, rps);
    let arrivals = arrivals_text(findings.arrivals);
    match (rps > 0.0, upper) {
        (false, _) => missing_lower_bound_text(findings),
        (true, None) => {
            format!(
                "load line: at least {log_times}{lower_rate} {counted}/s under {slo} ({arrivals})",
                log_times = times(lower),
                lower_rate = rate(lower)
            )
        }
        (true, Some(upper)) if provable => proven_load_line_text(findings, upper, ""),
        (true, Some(upper)) => format!(
            "load line: {log_times}{lower_rate} to {upper_rate} {counted}/s under {slo} (90 % interval; not provable in \
             {elapsed}; {arrivals})",
            log_times = times(lower),
            lower_rate = rate(lower),
            upper_rate = rate(upper),
            elapsed = duration((findings.elapsed_s * 1e9).round())
        ),
    }
}

/// Formats the certainty of the load line: whether a separate trial confirmed the line, the doubts,
/// and a budget that would narrow the line's interval. Returns `None` if no load line was found.
pub(super) fn load_line_certainty_text(findings: &Findings, doubts: &Doubts) -> Option<String> {
    let line = findings.load_line;
    if line.rps <= 0.0 {
        return None;
    }
    let mut parts: Vec<String> = doubts.inline_texts().map(sentence_text).collect();
    if line.is_confirmed {
        let time = duration(findings.longest_pass_at_line_s * 1e9);
        let rate = format!("{} {}/s", rate(line.lower), findings.rate_unit);
        let text = match findings.is_longest_pass_by_chance {
            true => {
                format!("confirmed: for {time} at {rate}, the server broke the SLO by no more than chance explains")
            }
            false => format!("confirmed: the server met the SLO for {time} at {rate}"),
        };
        parts.insert(0, text);
    } else if parts.is_empty() {
        parts.push("no separate trial confirmed the load line".to_owned());
    }
    if findings.interference.is_disturbed {
        parts.push("the machine was disturbed during the search".to_owned());
    }
    if line.upper.is_none() {
        parts.push("no upper bound of the load line was found".to_owned());
    }
    // The text does not recommend a longer time budget if the machine was disturbed. For a
    // disturbed machine, a warning on the screen states the remedy.
    if let Some(s) =
        findings.budget_for_estimate_s.filter(|_| !line.has_estimate && !findings.interference.is_disturbed)
    {
        parts.push(format!("a longer search (--budget {budget}) narrows the interval", budget = budget_text(s)));
    }
    Some(parts.join("; "))
}

/// Returns the longest trial near the load line that met the SLO; `None` without such a trial.
fn trial_at_line(findings: &Findings) -> Option<&TrialOutcome> {
    let line = findings.load_line.rps;
    let is_near = |trial: &&TrialOutcome| {
        let near = trial.offered_rps().is_some_and(|rate| (rate / line - 1.0).abs() <= RATE_DIFFERENCE_AT_LINE_MAX);
        near && trial.verdict == Verdict::Pass && !matches!(trial.purpose, LoadPurpose::Settle | LoadPurpose::Profile)
    };
    findings.trials.iter().filter(is_near).max_by_key(|trial| trial.duration_ns).filter(|_| line > 0.0)
}

fn line_or_peak_row(name: &str, goodput_rps: f64, p99_ns: Option<u64>, in_flight: String) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{}/s", rate(goodput_rps)),
        p99_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64)),
        in_flight,
    ]
}

/// Formats the goodput, the p99 and the requests in flight, in a row for the load line and a row
/// for the peak. A load that was not measured has no row.
fn line_and_peak_rows(findings: &Findings) -> Vec<Vec<String>> {
    let mean = |trial: &TrialOutcome| trial.evidence.in_flight.iter().sum::<f64>() / 4.0;
    let at_line = trial_at_line(findings)
        .map(|trial| line_or_peak_row("at the line", trial.goodput_rps, trial.stated_p99_ns(), rate(mean(trial))));
    // All figures of the row for the peak come from the closed-loop trial whose goodput is closest
    // to the peak.
    let at_peak = findings.peak.as_ref().map(|peak| {
        let closed = findings.trials.iter().filter_map(|trial| Some((trial, trial.user_count()?)));
        let distance = |trial: &TrialOutcome| (trial.goodput_rps - peak.rps).abs();
        match closed.min_by(|a, b| distance(a.0).total_cmp(&distance(b.0))) {
            Some((trial, users)) => {
                line_or_peak_row("at the peak", trial.goodput_rps, trial.stated_p99_ns(), count(users))
            }
            None => line_or_peak_row("at the peak", peak.rps, None, count(peak.users)),
        }
    });
    at_line.into_iter().chain(at_peak).collect()
}

/// Formats how much CPU the server used, or why the CPU use was not observed; `None` if no probe
/// read the server.
pub(super) fn server_cpu_text(server: &ServerView) -> Option<String> {
    if !server.has_probe_readings() {
        return None;
    }
    Some(match &server.usage {
        Ok(used) => server_cpu_use_text(used),
        Err(reason) => format!("not observed: {reason}"),
    })
}

/// Formats the target as an argument of a plimsoll command line. For traffic with several routes,
/// the text is `<same target and flags>`.
pub(super) fn target_argument_text(context: &RunContext) -> String {
    match context.plan.traffic.routes.as_slice() {
        [_] => shell::quote_if_needed(&context.url()),
        _ => "<same target and flags>".to_owned(),
    }
}

/// Formats the target and the SLO as arguments of a plimsoll command line.
pub(super) fn target_and_slo_arguments(context: &RunContext, slo: &Slo) -> String {
    let mut words = target_argument_text(context);
    // For several routes, "the same flags" contain the SLO.
    if context.plan.traffic.routes.len() == 1 && *slo != Slo::default() {
        words += &format!(" --slo '{slo}'");
    }
    words
}

/// Renders the first screen of a search. `held_by` is the bottleneck, or `None` if the trials of
/// the search show no bottleneck clearly.
pub(crate) fn find_screen(
    experiment: &Experiment,
    context: &RunContext,
    finding: &SearchFinding,
    doubts: &Doubts,
    held_by: Option<&Bottleneck>,
) -> Screen<'static> {
    let findings = &finding.findings;
    let mut screen = Screen::new(short_load_line_sentence(findings));
    screen.add_fact(1, "target", context.target_text());
    if let Some(text) = load_line_certainty_text(findings, doubts) {
        screen.add_fact(0, "how sure", text);
    }
    let has_line = findings.load_line.rps > 0.0;
    match held_by {
        Some(held_by) => {
            screen.add_fact(0, "bottleneck", format!("{} ({})", held_by.subject, held_by.effect));
        }
        None if has_line => {
            screen.add_fact(3, "bottleneck", "the bottleneck is not clear from these trials: run plimsoll explain");
        }
        None => {}
    }
    if let Some(text) = server_cpu_text(&finding.server) {
        screen.add_fact(2, "server", text);
    }
    let counted = findings.rate_unit;
    if let Some(planned) = finding.planned_load {
        screen.add_fact(1, "plan with", planned_load_text(&planned, counted));
    }
    if let Some(needed) = finding.instance_estimate {
        screen.add_fact(1, "needs", needed_instances_text(&needed, counted));
    }
    if let Some(soak) = &finding.soak {
        screen.add_fact(1, "soak", soak.soak_result_text());
    }
    if let Some(log) = &findings.access_log_rate {
        screen.add_fact(2, "log", access_log_text(log, findings.load_line.rps));
    }
    screen.add_failed_response(4, &FailedResponseGroup::failures_of_trials(experiment.trials.iter()));
    let trials = || findings.trials.iter().filter(|trial| trial.purpose != LoadPurpose::Settle);
    let elapsed = duration(findings.elapsed_s * 1e9);
    let stopped = stop_reason_text(findings.stopped_by);
    screen.add_fact(3, "search", format!("{} in {elapsed}; stopped: {stopped}", trials_text(trials())));
    let rows = line_and_peak_rows(findings);
    if !rows.is_empty() {
        screen.add_table(2, &["", "goodput", "p99", "in flight"], rows, 2);
    }
    screen.set_next_step(next_command_text(context, findings));
    screen
}

/// Formats the next command that the user should run after a search.
fn next_command_text(context: &RunContext, findings: &Findings) -> String {
    let target = target_and_slo_arguments(context, &findings.slo);
    match findings.stopped_by {
        StopReason::NothingSucceeds | StopReason::NothingAnswered => {
            format!("plimsoll run {target} -n 1 --verbose (shows the server's response)")
        }
        _ if findings.load_line.rps <= 0.0 && findings.load_line.upper.is_none() => {
            "--verbose shows every trial".to_owned()
        }
        _ => format!("plimsoll explain {target} (names the bottleneck)"),
    }
}
