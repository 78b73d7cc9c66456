//! Renders a search for the load line: its report, the rows of its live log, and the sentences
//! about its result. The load line is the highest rate that meets the SLO.

use crate::agents;
use crate::block::{Report, Tone};
use crate::failure_kinds;
use crate::format::{self, count, duration, rate, share};
use crate::remedy::sentence_text;
use crate::run::{RunContext, plan_adjustments_fact};
use crate::wrap::{display_width, wrap_text};
use plimsoll_analysis::find::{AccessLogRate, LoadLine, StopReason};
use plimsoll_analysis::finding::{Bottleneck, HeadroomLoadResult, InstanceEstimate, SearchFinding};
use plimsoll_analysis::{Doubts, FailedResponseGroup, Findings, OfferedLoad, TrialOutcome, Verdict};
use plimsoll_model::{ArrivalSpacing, Experiment, LoadPurpose, LoadShape, PlanRecord, Trial};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Returns in words the reason why a search ended.
pub fn stop_reason_text(stopped_by: StopReason) -> &'static str {
    match stopped_by {
        StopReason::PrecisionReached => "the interval of the load line is narrow enough",
        StopReason::Budget => "the time budget was exhausted",
        StopReason::GeneratorLimited => "the load generator could not offer a higher rate",
        StopReason::Disturbed => "other processes used the machine during most of the trials",
        StopReason::MaxRate => "--max-rate was reached",
        StopReason::LowestFails => "the lowest load already breaks the SLO",
        StopReason::Stalls => "the server's stalls break the SLO at every rate",
        StopReason::NothingSucceeds => "no request succeeded",
        StopReason::NothingAnswered => "no response arrived",
        StopReason::ServerLost => "the server accepts no connections",
        StopReason::Interrupted => "interrupted",
    }
}

/// Formats the result of a search as one sentence: the load line, or why none was found. The doubts
/// (evidence against the load line) follow in the same sentence.
pub(crate) fn find_answer(findings: &Findings, doubts: &Doubts) -> String {
    let LoadLine { rps, lower, upper, has_estimate: provable, .. } = findings.load_line;
    let counted = findings.rate_unit;
    let slo = &findings.slo;
    let disturbed = findings.interference.reason.as_deref().filter(|_| findings.interference.is_disturbed);
    let disturbed = disturbed.map_or_else(String::new, |reason| format!("; disturbed: {reason}"));
    let doubts: String = doubts.inline_texts().map(|doubt| format!("; {}", sentence_text(doubt))).collect();
    if let Some(stalls) = findings
        .stalls
        .as_ref()
        .filter(|stalls| rps <= 0.0 && (stalls.impossible_bound.is_some() || stalls.is_recurring))
    {
        let conclusion = match &stalls.impossible_bound {
            Some(bound) => format!("no rate meets {bound}"),
            None => format!("no rate was shown to meet {slo} while the server stalls"),
        };
        return format!("no load line: {reason}: {conclusion}{disturbed}", reason = stalls.stalls_text());
    }
    if let Some(gone) = findings.target_loss.filter(|_| rps <= 0.0) {
        return format!("no load line: {reason}{disturbed}", reason = gone.server_loss_text());
    }
    if let Some(failing) = findings.constant_failure {
        return format!("no load line: {reason}: no rate meets {slo}{disturbed}", reason = failing.failure_text());
    }
    let times = |rps: f64| log_multiple_prefix(findings, rps);
    let arrivals = arrivals_text(findings.arrivals);
    let longest_pass = if findings.longest_pass_at_line_s > 0.0 {
        format!("; seen for {}", duration(findings.longest_pass_at_line_s * 1e9))
    } else {
        String::new()
    };
    let line = match (rps > 0.0, upper) {
        (false, _) => missing_lower_bound_text(findings),
        (true, None) => {
            let log_multiple = times(lower);
            format!(
                "load line: at least {log_multiple}{lower_per_s} {counted}/s under {slo} ({arrivals}{longest_pass}); \
                 no upper bound was found",
                lower_per_s = rate(lower)
            )
        }
        (true, Some(upper)) if provable => proven_load_line_text(findings, upper, &longest_pass),
        (true, Some(upper)) => {
            let longer = findings.budget_for_estimate_s.map_or_else(String::new, |s| {
                format!(
                    "; a search of about {time} would be long enough to prove the load line (--budget {budget})",
                    time = duration(s * 1e9),
                    budget = budget_text(s)
                )
            });
            format!(
                "load line: not provable in {time}; so far {log_multiple}{lower_per_s} to {upper_per_s} {counted}/s \
                 under {slo} (90 % interval; {arrivals}{longest_pass}){longer}",
                time = duration((findings.elapsed_s * 1e9).round()),
                log_multiple = times(lower),
                lower_per_s = rate(lower),
                upper_per_s = rate(upper)
            )
        }
    };
    line + &doubts + &disturbed
}

/// Formats `rps` as a multiple of the access log's rate, such as `2 times the log, `. The caller
/// prints this text directly before the rate. The text is empty if the search replays no log.
pub(crate) fn log_multiple_prefix(findings: &Findings, rps: f64) -> String {
    findings.access_log_rate.map_or_else(String::new, |log| {
        format!("{} times the log, ", format::format_factor(log.multiple_of_mean_rate(rps)))
    })
}

/// Formats the result of a search that found no lower bound: the upper bound of the load line, or
/// that no load line was found.
pub(crate) fn missing_lower_bound_text(findings: &Findings) -> String {
    let (counted, slo) = (findings.rate_unit, &findings.slo);
    match findings.load_line.upper {
        Some(upper) => format!(
            "load line: below {log_multiple}{upper_per_s} {counted}/s under {slo} ({arrivals}; no lower bound was \
             found)",
            log_multiple = log_multiple_prefix(findings, upper),
            upper_per_s = rate(upper),
            arrivals = arrivals_text(findings.arrivals)
        ),
        None => format!("no load line was found under {slo}"),
    }
}

/// Formats a proven load line with its interval. `longest_pass` is the end of the text: empty, or
/// for how long a load at the load line met the SLO.
pub(crate) fn proven_load_line_text(findings: &Findings, upper: f64, longest_pass: &str) -> String {
    let LoadLine { rps, lower, .. } = findings.load_line;
    let (counted, slo, arrivals) = (findings.rate_unit, &findings.slo, arrivals_text(findings.arrivals));
    format!(
        "load line: {log_multiple}{rate_per_s} {counted}/s under {slo} (90 % interval: {lower_per_s} to {upper_per_s}; \
         {arrivals}{longest_pass})",
        log_multiple = log_multiple_prefix(findings, rps),
        rate_per_s = rate(rps),
        lower_per_s = rate(lower),
        upper_per_s = rate(upper),
    )
}

/// Returns in words how arrivals are spaced in time, such as evenly or at random.
pub(crate) fn arrivals_text(arrivals: ArrivalSpacing) -> &'static str {
    match arrivals {
        ArrivalSpacing::Poisson => "random arrivals",
        ArrivalSpacing::Constant => "evenly spaced arrivals",
        ArrivalSpacing::Replayed => "arrivals as in the log",
    }
}

/// Formats a time budget of at least `seconds` as a value of the flag `--budget`. A budget below
/// two minutes is rounded up to a multiple of 10 s, and a longer budget to whole minutes.
pub(crate) fn budget_text(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{}s", (seconds / 10.0).ceil() * 10.0)
    } else {
        format!("{}m", (seconds / 60.0).ceil())
    }
}

fn users_text(number: u64) -> String {
    if number == 1 { "1 user".to_owned() } else { format!("{} users", count(number)) }
}

/// Formats the number of trials, the number of disturbed trials, and the number of trials that are
/// void for other reasons.
pub(crate) fn trials_text<'a>(trials: impl Iterator<Item = &'a TrialOutcome>) -> String {
    let (mut all, mut disturbed, mut void) = (0, 0, 0);
    for trial in trials {
        all += 1;
        disturbed += usize::from(trial.is_void_by_interference());
        void += usize::from(trial.is_void_undisturbed());
    }
    let all = if all == 1 { "1 trial".to_owned() } else { format!("{all} trials") };
    match (disturbed, void) {
        (0, 0) => all,
        (0, _) => format!("{all} ({void} void)"),
        (_, 0) => format!("{all} ({disturbed} disturbed)"),
        (_, _) => format!("{all} ({disturbed} disturbed, {void} void)"),
    }
}

/// The column headings of the table of trials, for the rows of [`trial_row`].
pub(crate) const TRIAL_HEADINGS: [&str; 9] =
    ["trial", "load", "length", "goodput", "success", "p50", "p99", "lag p99", "verdict"];

/// Formats one trial as a table row: kind, load, length, goodput, success rate, p50, p99, lag of
/// the generator, verdict. The cell of the verdict also states the reason for the verdict.
pub(crate) fn trial_row(trial: &TrialOutcome) -> Vec<String> {
    let load = match trial.load {
        OfferedLoad::Rate(offered) => format!("{}/s", rate(offered)),
        OfferedLoad::Users(number) => users_text(number),
    };
    let verdict = match (trial.purpose, trial.verdict) {
        // Closed-loop trials, and loads that only drain queues or warm up the server, do not test
        // the SLO. The row of such a load therefore never states that the SLO was met or broken.
        (LoadPurpose::Settle | LoadPurpose::Peak | LoadPurpose::Saturate, Verdict::Pass | Verdict::Fail) => {
            String::new()
        }
        (_, verdict @ Verdict::Pass) if !trial.evidence.has_failed_by_chance => verdict.to_string(),
        _ => format!("{}: {}", trial.verdict_name(), sentence_text(&trial.reason)),
    };
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
    vec![
        crate::csv::load_purpose_name(trial.purpose).to_owned(),
        load,
        duration(trial.duration_ns as f64),
        format!("{}/s", rate(trial.goodput_rps)),
        share(trial.success_rate),
        time(trial.stated_p50_ns()),
        time(trial.stated_p99_ns()),
        duration(trial.lag_p99_ns as f64),
        verdict,
    ]
}

/// The middle columns of the live log, each as a pair: the index of the cell in [`trial_row`], and
/// the width in characters. Each row begins with the time and the kind of the trial. The middle
/// columns and the verdict follow.
const LIVE_COLUMNS: [(usize, usize); 6] = [(1, 12), (2, 8), (3, 12), (4, 8), (5, 7), (6, 7)];
/// The indices of the cells of [`trial_row`] that a narrow terminal omits, in the order in which
/// the cells are omitted.
const CELL_OMISSION_ORDER: [usize; 4] = [3, 2, 5, 4];
/// The width in characters of the columns that are always shown: time, kind and verdict of a trial.
const LIVE_LOG_FIXED_WIDTH: usize = 8 + 2 + 7 + 2 + 4;
/// The indentation of continuation lines of a row, in characters.
const LIVE_INDENT: usize = 10;

/// Returns the middle columns of the live log that fit a terminal with this number of columns.
fn live_columns(columns: Option<usize>) -> Vec<(usize, usize)> {
    let mut shown = LIVE_COLUMNS.to_vec();
    let wide = |shown: &[(usize, usize)]| LIVE_LOG_FIXED_WIDTH + shown.iter().map(|cell| cell.1 + 2).sum::<usize>();
    // On terminals below 110 columns, the columns up to the verdict use at most 79 characters. The
    // reason for the verdict may then fit on the same line.
    let room = columns.map_or(usize::MAX, |columns| if columns < 110 { columns.min(79) } else { columns });
    for left_out in CELL_OMISSION_ORDER {
        if wide(&shown) <= room {
            break;
        }
        shown.retain(|(cell, _)| *cell != left_out);
    }
    shown
}

fn live_row(at: &str, cells: &[String], columns: Option<usize>) -> String {
    let mut row = format!("{at:>8}  {:<7}", cells[0]);
    for (cell, width) in live_columns(columns) {
        row.push_str(&format!("  {:>width$}", cells[cell]));
    }
    let (verdict, reason) = cells[8].split_once(": ").unwrap_or((&cells[8], ""));
    row.push_str(&format!("  {verdict}"));
    let row = row.trim_end();
    // A reason that does not fit on the line of its verdict is printed on the next lines.
    match (reason.is_empty(), columns) {
        (true, _) => row.to_owned(),
        (false, Some(columns)) if display_width(row) + 2 + display_width(reason) >= columns => {
            wrap_text(&format!("{row}:\n{}{reason}", " ".repeat(LIVE_INDENT)), Some(columns), LIVE_INDENT)
        }
        (false, _) => format!("{row}: {reason}"),
    }
}

/// Formats the column headings of the live log, for the rows of [`live_log_trial_row`].
pub fn live_log_heading(columns: Option<usize>) -> String {
    live_row("at", &TRIAL_HEADINGS.map(str::to_owned), columns)
}

/// Formats one trial as a row of the live log, in lines of at most `columns` characters.
pub fn live_log_trial_row(elapsed_ns: u64, trial: &TrialOutcome, columns: Option<usize>) -> String {
    live_row(&format!("{:.1} s", elapsed_ns as f64 / 1e9), &trial_row(trial), columns)
}

/// Returns two texts about the next load of a search: what the load does, and why. `so_far` is the
/// current estimate of the load line.
pub fn next_load_texts(purpose: LoadPurpose, plan: &PlanRecord, so_far: LoadLine) -> (String, String) {
    let (load, counted) = (&plan.load.shape, plan.traffic.arrivals_word());
    let level = load.curve().max();
    let load = match load {
        LoadShape::Closed { .. } if level == 1.0 => "1 user".to_owned(),
        LoadShape::Closed { .. } => format!("{} users at once", count(level as u64)),
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => format!("{} {counted}/s", rate(level)),
    };
    let estimate = match (so_far.rps > 0.0, so_far.upper) {
        (true, Some(upper)) => format!(
            "load line so far: {lower_per_s} to {upper_per_s}/s",
            lower_per_s = rate(so_far.lower),
            upper_per_s = rate(upper)
        ),
        (true, None) => format!("load line so far: at least {lower_per_s}/s", lower_per_s = rate(so_far.lower)),
        (false, Some(upper)) => format!("load line so far: below {upper_per_s}/s", upper_per_s = rate(upper)),
        (false, None) => "no estimate of the load line yet".to_owned(),
    };
    match purpose {
        LoadPurpose::Peak => {
            (format!("finding the peak: {load}"), "the peak throughput shows where to search for the load line".into())
        }
        LoadPurpose::Saturate => {
            (format!("saturating: {load}"), "this trial measures the throughput while requests always queue".into())
        }
        LoadPurpose::Climb => (
            format!("climbing: {load}"),
            format!("rates rise until the SLO is violated, then approach the load line; {estimate}"),
        ),
        LoadPurpose::Line => (
            format!("near the line: {load}"),
            format!("this trial measures how many responses exceed the SLO's latency bound at this rate; {estimate}"),
        ),
        LoadPurpose::Confirm => (
            format!("confirming: {load}"),
            format!("this longer trial tests the lower end of the load line's interval; {estimate}"),
        ),
        LoadPurpose::Settle => (
            format!("settling: {load}, not measured"),
            "this load is not measured; it gives each trial the same starting conditions".into(),
        ),
        LoadPurpose::Overload => {
            (load, "this load measures the throughput past the load line, and the recovery".into())
        }
        LoadPurpose::Soak => (
            format!("soaking: {load}"),
            format!("this load tests whether the server sustains the load line for a long time; {estimate}"),
        ),
        LoadPurpose::Run | LoadPurpose::Level | LoadPurpose::Profile | LoadPurpose::Block | LoadPurpose::SteadyLoad => {
            (load, String::new())
        }
    }
}

/// Formats the rate that the user should plan with: the load line reduced by the chosen headroom.
pub(crate) fn planned_load_text(planned: &HeadroomLoadResult, arrivals_word: &str) -> String {
    let HeadroomLoadResult { headroom, rate_rps, in_flight, p99_ns, is_sustained } = *planned;
    let in_flight = in_flight.map_or_else(String::new, |many| format!(", {many:.1} in flight"));
    let p99 = p99_ns.map_or_else(String::new, |ns| format!(", p99 {}", duration(ns)));
    let broken = if is_sustained { "" } else { "; the confirming trial at this rate violated the SLO" };
    format!("{} {arrivals_word}/s, {} below the line{in_flight}{p99}{broken}", rate(rate_rps), share(headroom))
}

/// Formats the rates of the access log, and the load line as a multiple of the rate in the log's
/// busiest minute and second.
pub(crate) fn access_log_text(log: &AccessLogRate, line_rps: f64) -> String {
    let AccessLogRate { requests, sessions, span_ns, mean_rps, busiest_minute_rps, busiest_second_rps } = *log;
    let sessions = if sessions == 1 { "1 session".to_owned() } else { format!("{} sessions", count(sessions)) };
    let mut text = format!(
        "{requests} requests of {sessions} in {time}, {mean_rps}/s on average; the loads are drawn from the sessions \
         of this log",
        requests = count(requests),
        time = duration(span_ns as f64),
        mean_rps = rate(mean_rps)
    );
    for (name, rps) in [("minute", busiest_minute_rps), ("second", busiest_second_rps)] {
        let Some(rps) = rps else { continue };
        text.push_str(&format!("; its busiest {name} {}/s", rate(rps)));
        if line_rps > 0.0 {
            text.push_str(&format!(
                ": the load line is {multiple} times this rate",
                multiple = format::format_factor(line_rps / rps)
            ));
        }
    }
    text
}

/// Formats how many instances of the server are required for a rate.
pub(crate) fn needed_instances_text(needed: &InstanceEstimate, arrivals_word: &str) -> String {
    let InstanceEstimate { rate_rps, instances, instances_min, cores } = *needed;
    let servers = match instances {
        1.0 => "1 instance like this server".to_owned(),
        _ if instances_min < instances => format!("{instances_min:.0} to {instances:.0} instances like this server"),
        _ => format!("{instances:.0} instances like this server"),
    };
    let rate = rate(rate_rps);
    match cores {
        Some(cores) => format!("{servers} for {rate} {arrivals_word}/s, using {cores:.1} cores in total"),
        None => format!("{servers} for {rate} {arrivals_word}/s"),
    }
}

/// Formats the probable bottleneck at the load line, and the command that would verify the
/// bottleneck.
fn bottleneck_text(context: &RunContext, held_by: &Bottleneck) -> String {
    let asked = match context.plan.traffic.routes.as_slice() {
        [_] => format!("plimsoll explain {}", context.url()),
        _ => "plimsoll explain".to_owned(),
    };
    format!("{} ({}): {asked} checks it", held_by.subject, held_by.effect)
}

/// Renders the report of a search. `doubts` is the evidence against the load line, which the answer
/// states. `held_by` is the probable bottleneck, or `None` if the trials show no bottleneck
/// clearly. `with_trials` adds the table of all trials, which the live log may have printed
/// already.
pub(crate) fn find_report(
    experiment: &Experiment,
    context: &RunContext,
    finding: &SearchFinding,
    doubts: &Doubts,
    held_by: Option<&Bottleneck>,
    with_trials: bool,
) -> Report {
    let findings = &finding.findings;
    let mut report = Report::default();
    let trials = || findings.trials.iter().filter(|t| t.purpose != LoadPurpose::Settle);
    let counted = findings.rate_unit;
    report.add_sentence(Tone::Answer, find_answer(findings, doubts));
    let mut facts = vec![("target", context.target_text())];
    if let Some(capacity) = &findings.capacity {
        let (lower_rps, upper_rps) = capacity.interval_90_rps();
        let text = format!(
            "{rate_per_s} {counted}/s while requests always queue (90 % interval: {lower_per_s} to {upper_per_s})",
            rate_per_s = rate(capacity.rps),
            lower_per_s = rate(lower_rps),
            upper_per_s = rate(upper_rps)
        );
        facts.push(("capacity", text));
    }
    facts.extend(findings.access_log_rate.map(|log| ("log", access_log_text(&log, findings.load_line.rps))));
    facts.extend(held_by.map(|held_by| ("bottleneck", bottleneck_text(context, held_by))));
    facts.extend(
        finding.planned_load.map(|planned| ("plan with", planned_load_text(&planned, finding.findings.rate_unit))),
    );
    facts.extend(
        finding.instance_estimate.map(|needed| ("needs", needed_instances_text(&needed, finding.findings.rate_unit))),
    );
    facts.extend(finding.soak.as_ref().map(|soak| ("soak", soak.soak_result_text())));
    if let Some(peak) = &findings.peak {
        facts.push(("peak", format!("{} {counted}/s with {}", rate(peak.rps), users_text(peak.users))));
    }
    if let Some(knee) = &findings.knee {
        facts.push((
            "knee",
            format!(
                "{users}: {rate_per_s} {counted}/s{p99} (the fewest users with 95 % of the peak throughput)",
                users = users_text(knee.users),
                rate_per_s = rate(knee.rps),
                p99 = knee.p99_ns.map_or_else(String::new, |ns| format!(", p99 {}", duration(ns as f64)))
            ),
        ));
    }
    facts.push((
        "search",
        format!(
            "{} in {}; stopped: {} (seed {})",
            trials_text(trials()),
            duration(findings.elapsed_s * 1e9),
            stop_reason_text(findings.stopped_by),
            context.plan.load.seed
        ),
    ));
    facts.extend(failure_kinds::failure_facts(&FailedResponseGroup::failures_of_trials(experiment.trials.iter())));
    let busiest = trials().map(|t| t.evidence.work_share).fold(0.0, f64::max);
    let lag = trials().filter(|t| t.verdict != Verdict::Void).map(|t| t.lag_p99_ns).max().unwrap_or(0);
    let generator_threads = context.threads_text();
    facts.push((
        "generator",
        format!(
            "{generator_threads}{same_machine}; at most {busy_percent:.0} % busy, lag p99 at most {lag_p99} in valid \
             trials",
            same_machine = if context.is_target_local { "; the target is on the same machine" } else { "" },
            busy_percent = busiest * 100.0,
            lag_p99 = duration(lag as f64)
        ),
    ));
    facts.extend(plan_adjustments_fact(context));
    facts.extend(source_addresses_fact(&experiment.trials));
    report.add_facts(facts);
    agents::append_agents(&mut report, &context.agents);
    if with_trials {
        report.add_table(&TRIAL_HEADINGS, trials().map(trial_row).collect());
    }
    report
}

/// Formats how many loopback source addresses the loads used, if only some loads had to change from
/// the default address. Returns `None` if all loads or no load used the default address.
fn source_addresses_fact(trials: &[Trial]) -> Option<(&'static str, String)> {
    let source = |trial: &Trial| match trial.run.injectors.first()?.sources.as_slice() {
        [only] if only.count() == 1 => Some(only.nth(0)),
        _ => None,
    };
    let moved: BTreeSet<IpAddr> = trials.iter().filter_map(source).collect();
    let stayed = trials.iter().any(|trial| trial.run.injectors.iter().any(|of| of.sources.is_empty()));
    (stayed && !moved.is_empty()).then(|| {
        let count = moved.len() + 1;
        let text = format!(
            "loads used {count} loopback source addresses, because many ports were in TIME-WAIT (--source-ip \
             127.0.0.1 uses only one address)"
        );
        ("sources", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{AddressRange, Injector, LoadCurve, LoadTag, Plan, Run};

    #[test]
    fn source_addresses_are_stated_if_they_changed() {
        let trial = |sources: &str| {
            let mut run =
                Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
            let sources =
                if sources.is_empty() { Vec::new() } else { AddressRange::parse_list(sources).expect(sources) };
            run.injectors = vec![Injector { sources, ..Injector::default() }];
            Trial { tag: LoadTag::for_purpose(LoadPurpose::Climb), start_ns: 0, run }
        };
        for (sources, count) in [
            (&["", ""][..], None),
            // The report states no source addresses in the next two cases: the user chose the
            // address, or one load used a range of addresses.
            (&["127.0.0.1", "127.0.0.1"], None),
            (&["", "127.0.0.1-127.0.0.4"], None),
            (&["", "127.0.0.2", "127.0.0.3", "127.0.0.3", ""], Some("3 loopback source addresses")),
        ] {
            let trials: Vec<Trial> = sources.iter().map(|sources| trial(sources)).collect();
            let told = source_addresses_fact(&trials).map(|(_, text)| text);
            assert_eq!(told.is_some(), count.is_some(), "{sources:?}");
            assert!(told.zip(count).is_none_or(|(told, count)| told.contains(count)), "{sources:?}");
        }
    }
}
