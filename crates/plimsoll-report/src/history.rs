//! Renders runs over time: lanes (series of comparable runs) as text, page and JSON document. This
//! file also renders the decision of a gate, which judges whether a commit is worse than a branch.
//!
//! Not here: grouping runs into lanes, and detecting where a lane changed (`plimsoll-analysis`).

use crate::block::{Report, Tone};
use crate::chart::{Heading, history_chart};
use crate::document::to_json_value;
use crate::format::{count, duration, format_utc_date, rate, share, signed_percent};
use plimsoll_analysis::history::change_points::SERIES_RUNS_MIN;
use plimsoll_analysis::history::{
    ComparableRunSeries, ConcurrentChanges, GateFinding, GateVerdict, HistoryRun, SeriesChange, SeriesOrder,
};
use plimsoll_model::shell;
use serde::Serialize;
use serde_json::Value;

/// The maximum length of a sparkline in characters. For a longer series, only the latest points are
/// drawn.
const SPARKLINE_CHARS_MAX: usize = 72;

/// The characters of a sparkline, from low to high.
const SPARKLINE_CHARACTERS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// The empty space in a sparkline above the highest value and below the lowest value, as a share of
/// the value. Because of the empty space, small noise does not fill the whole height of the
/// sparkline.
const SPARKLINE_MARGIN_SHARE: f64 = 0.05;

/// The lanes (series of comparable runs) to show, and how to show them.
#[derive(Debug, Clone, Copy)]
pub struct HistoryView<'a> {
    /// The lanes to show. Each lane is a series of comparable runs of one service.
    pub lanes: &'a [ComparableRunSeries],
    /// The order of the runs in a lane (series of comparable runs): by commits or by dates.
    pub order: SeriesOrder,
    /// The number of table rows for each lane (series of comparable runs). Only the latest runs
    /// have a table row.
    pub rows_max: usize,
    /// The files that could not be read, each with the reason.
    pub unreadable: &'a [(String, String)],
}

/// Formats values as a sparkline with one character for each value. The height of the sparkline
/// spans the range from the lowest to the highest value, plus `SPARKLINE_MARGIN_SHARE` at both
/// ends.
fn sparkline(values: &[f64]) -> String {
    let (lo, hi) = values.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), value| (lo.min(*value), hi.max(*value)));
    let (lo, hi) = (lo * (1.0 - SPARKLINE_MARGIN_SHARE), hi * (1.0 + SPARKLINE_MARGIN_SHARE));
    let of = |value: &f64| {
        let place = (value - lo) / (hi - lo).max(f64::MIN_POSITIVE) * SPARKLINE_CHARACTERS.len() as f64;
        SPARKLINE_CHARACTERS[(place as usize).min(SPARKLINE_CHARACTERS.len() - 1)]
    };
    values.iter().map(of).collect()
}

/// Formats the load line of a run with its interval, such as `2 010/s (1 980 to 2 040)`. If the
/// load line has no estimate, only the interval is shown, such as `1 700 to 2 040/s`. For a run
/// without a load line, formats the goodput.
pub fn run_rate_text(run: &HistoryRun) -> String {
    let Some(line) = run.valid_load_line() else {
        return run.series_value_rps().map_or_else(|| "-".to_owned(), |rps| format!("{}/s", rate(rps)));
    };
    let lower = rate(line.lower);
    match line.upper.map(rate) {
        Some(upper) if !line.has_estimate() => format!("{lower} to {upper}/s"),
        Some(upper) => format!("{}/s ({lower} to {upper})", rate(line.rps)),
        None => format!("at least {lower}/s"),
    }
}

/// Formats the relative size of a change with its interval, such as `-5.1 % (-6.3 to -3.9)`.
fn change_text(change: &SeriesChange) -> String {
    let [lower, upper] = [change.point.interval.lower, change.point.interval.upper].map(|ratio| (ratio - 1.0) * 100.0);
    format!("{} ({lower:+.1} to {upper:+.1})", signed_percent(change.point.ratio - 1.0))
}

/// Returns the name of a point of a lane (series of comparable runs): the commit, or the date of
/// the first run at this point.
fn point_name(lane: &ComparableRunSeries, point: usize, order: SeriesOrder) -> String {
    let run = &lane.runs[lane.points[point].runs[0]];
    match (order, run.commit_short()) {
        (SeriesOrder::Commit, Some(commit)) => commit,
        (_, commit) => {
            let date = format_utc_date(run.started_unix_ms);
            let date = date.trim_end_matches(" UTC");
            commit.map_or_else(|| date.to_owned(), |commit| format!("{commit}, {date}"))
        }
    }
}

/// Formats which other measures (CPU, p99, cause, functions) changed at the same time as the rate
/// of a lane (series of comparable runs). Returns `None` if no other measure changed.
fn concurrent_changes_text(moved: &ConcurrentChanges) -> Option<String> {
    let mut parts = Vec::new();
    if let Some((before, after)) = moved.cpu_us {
        let text = |us: f64| duration(us * 1e3);
        parts.push(format!(
            "CPU a request {} -> {} ({})",
            text(before),
            text(after),
            signed_percent(after / before - 1.0)
        ));
    }
    if let Some((before, after)) = moved.p99_ns {
        parts.push(format!("p99 {} -> {}", duration(before), duration(after)));
    }
    if let Some((before, after)) = &moved.cause {
        parts.push(format!("cause {before} -> {after}"));
    }
    for (name, before, after) in &moved.functions {
        parts.push(format!(
            "the function {name} used {share_before} -> {share_after} of the CPU time",
            share_before = share(*before),
            share_after = share(*after)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn runs_text(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{} runs", count(runs as u64)) }
}

/// Formats the result for a lane (a series of comparable runs) as one sentence: its latest value
/// and its latest change.
fn lane_answer(lane: &ComparableRunSeries, order: SeriesOrder) -> String {
    let (measure, service) = (lane.measure, &lane.service);
    let Some(latest) = lane.points.last().map(|point| rate(point.rps)) else {
        return format!("no run has a {measure} of {service}");
    };
    match lane.changes.last() {
        // A lane (series of comparable runs) with fewer than `SERIES_RUNS_MIN` points was not
        // tested for changes, so the text must not say "no change".
        None if lane.points.len() < SERIES_RUNS_MIN => format!(
            "{measure} {latest}/s of {service}: too few runs to detect a change ({usable} of {all} runs are usable, \
             {SERIES_RUNS_MIN} are needed)",
            usable = lane.points.len(),
            all = lane.runs.len()
        ),
        None => {
            format!("{measure} {latest}/s of {service}: no change in {runs}", runs = runs_text(lane.points.len()))
        }
        Some(last) => format!(
            "{measure} {latest}/s of {service}: {} since {}",
            change_text(last),
            point_name(lane, last.point.run_index, order)
        ),
    }
}

/// Returns labelled facts about a lane (series of comparable runs): the SLO, the machine, why it is
/// separate from other lanes, and the detected changes.
fn lane_facts(lane: &ComparableRunSeries, order: SeriesOrder) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(lane.slo.clone().map(|slo| ("SLO", slo)));
    facts.push(("machine", lane.machine.clone()));
    if !lane.separation_reasons.is_empty() {
        facts.push(("apart, since", lane.separation_reasons.join("; ")));
    }
    for found in &lane.changes {
        let moved = concurrent_changes_text(&found.concurrent).map_or_else(String::new, |moved| format!("; {moved}"));
        facts.push((
            "change at",
            format!("{}: {}{moved}", point_name(lane, found.point.run_index, order), change_text(found)),
        ));
    }
    facts
}

const LANE_TABLE_HEADINGS: [&str; 7] = ["commit", "made", "line or goodput", "change", "cause", "p99", "CPU a request"];

/// Formats one table row for each of the latest `rows_max` runs of a lane (series of comparable
/// runs), the oldest run first.
fn lane_rows(lane: &ComparableRunSeries, rows_max: usize) -> Vec<Vec<String>> {
    let changed: Vec<(usize, &SeriesChange)> =
        lane.changes.iter().map(|found| (lane.points[found.point.run_index].runs[0], found)).collect();
    let row = |number: usize, run: &HistoryRun| {
        let summary = run.summary.as_ref();
        let aside = lane.excluded_runs.iter().find(|(aside, _)| *aside == number).map(|(_, why)| why);
        let step = match (changed.iter().find(|(at, _)| *at == number), aside) {
            (Some((_, found)), _) => change_text(found),
            (None, Some(why)) => format!("not counted: {why}"),
            (None, None) => String::new(),
        };
        vec![
            run.commit_short().unwrap_or_else(|| "-".to_owned()),
            format_utc_date(run.started_unix_ms).trim_end_matches(" UTC").to_owned(),
            run_rate_text(run),
            step,
            summary.and_then(|it| it.cause.clone()).unwrap_or_else(|| "-".to_owned()),
            summary.and_then(|it| it.p99_ns).map_or_else(|| "-".to_owned(), duration),
            summary.and_then(|it| it.cpu_us).map_or_else(|| "-".to_owned(), |us| duration(us * 1e3)),
        ]
    };
    let skipped = lane.runs.len().saturating_sub(rows_max);
    lane.runs.iter().enumerate().skip(skipped).map(|(number, run)| row(number, run)).collect()
}

/// Renders the history of all lanes (series of comparable runs) as text. For each lane, the text
/// has a sentence, a sparkline, the changes, and a table of runs.
pub fn history_report(view: &HistoryView) -> Report {
    let mut report = Report::default();
    if view.lanes.is_empty() {
        report.add_sentence(Tone::Answer, "no run of this store has a load line or a goodput");
    }
    for (number, lane) in view.lanes.iter().enumerate() {
        if number > 0 {
            report.add_heading("");
        }
        report.add_sentence(Tone::Answer, lane_answer(lane, view.order));
        let skipped = lane.points.len().saturating_sub(SPARKLINE_CHARS_MAX);
        let values: Vec<f64> = lane.points[skipped..].iter().map(|point| point.rps).collect();
        if values.len() > 1 {
            report.add_sentence(Tone::Plain, sparkline(&values));
        }
        report.add_facts(lane_facts(lane, view.order)).add_table(&LANE_TABLE_HEADINGS, lane_rows(lane, view.rows_max));
    }
    add_unreadable_files(&mut report, view.unreadable);
    report
}

fn add_unreadable_files(report: &mut Report, files: &[(String, String)]) {
    for (file, why) in files {
        report.add_sentence(Tone::Warning, format!("{file} {why}"));
    }
}

/// Renders a lane (a series of comparable runs of one service) with its chart, for an HTML page.
pub fn lane_page(lane: &ComparableRunSeries, order: SeriesOrder) -> Report {
    let mut report = Report::default();
    let heading = Heading { title: lane_answer(lane, order), subtitle: String::new() };
    report.add_sentence(Tone::Answer, lane_answer(lane, order));
    report.add_responsive_chart(
        |theme| history_chart(&heading.clone().without_title(), lane, order, theme),
        &[],
        Vec::new(),
    );
    report.add_facts(lane_facts(lane, order)).add_table(&LANE_TABLE_HEADINGS, lane_rows(lane, usize::MAX));
    report
}

#[derive(Serialize)]
struct HistoryDocument<'a> {
    schema: &'static str,
    order: &'static str,
    lanes: Vec<LaneFields<'a>>,
    unreadable: Vec<UnreadableFields<'a>>,
}

#[derive(Serialize)]
struct UnreadableFields<'a> {
    file: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct LaneFields<'a> {
    service: &'a str,
    measure: &'static str,
    slo: Option<&'a str>,
    machine: &'a str,
    apart: &'a [String],
    points: Vec<LanePointFields<'a>>,
    changes: Vec<LaneChangeFields>,
    runs: Vec<RunRowFields<'a>>,
}

#[derive(Serialize)]
struct LanePointFields<'a> {
    name: String,
    files: Vec<&'a str>,
    rps: f64,
    lower_rps: Option<f64>,
    upper_rps: Option<f64>,
}

#[derive(Serialize)]
struct LaneChangeFields {
    point: usize,
    at: String,
    ratio: f64,
    ratio_lower: f64,
    ratio_upper: f64,
    p: f64,
    cpu_us_per_request: Option<(f64, f64)>,
    p99_ns: Option<(f64, f64)>,
    cause: Option<(String, String)>,
    functions: Vec<FunctionShareFields>,
}

#[derive(Serialize)]
struct FunctionShareFields {
    function: String,
    before_share: f64,
    after_share: f64,
}

#[derive(Serialize)]
struct RunRowFields<'a> {
    #[serde(flatten)]
    run: &'a HistoryRun,
    not_counted: Option<&'a str>,
}

/// Renders the history of all lanes as a JSON document. A lane is a series of comparable runs.
pub fn history_document(view: &HistoryView) -> Value {
    let lane_fields = |lane: &'_ ComparableRunSeries| -> Value {
        let point = |at: usize| LanePointFields {
            name: point_name(lane, at, view.order),
            files: lane.points[at].runs.iter().map(|run| lane.runs[*run].file.as_str()).collect(),
            rps: lane.points[at].rps,
            lower_rps: lane.points[at].interval.map(|interval| interval.0),
            upper_rps: lane.points[at].interval.map(|interval| interval.1),
        };
        let changed = |found: &SeriesChange| LaneChangeFields {
            point: found.point.run_index,
            at: point_name(lane, found.point.run_index, view.order),
            ratio: found.point.ratio,
            ratio_lower: found.point.interval.lower,
            ratio_upper: found.point.interval.upper,
            p: found.point.p,
            cpu_us_per_request: found.concurrent.cpu_us,
            p99_ns: found.concurrent.p99_ns,
            cause: found.concurrent.cause.clone(),
            functions: found
                .concurrent
                .functions
                .iter()
                .map(|(function, before_share, after_share)| FunctionShareFields {
                    function: function.clone(),
                    before_share: *before_share,
                    after_share: *after_share,
                })
                .collect(),
        };
        let skipped = lane.runs.len().saturating_sub(view.rows_max);
        let row = |(number, run): (usize, &'_ HistoryRun)| -> Value {
            let aside = lane.excluded_runs.iter().find(|(aside, _)| *aside == number);
            to_json_value(&RunRowFields { run, not_counted: aside.map(|(_, why)| why.as_str()) })
        };
        let fields = LaneFields {
            service: &lane.service,
            measure: lane.measure,
            slo: lane.slo.as_deref(),
            machine: &lane.machine,
            apart: &lane.separation_reasons,
            points: (0..lane.points.len()).map(point).collect(),
            changes: lane.changes.iter().map(changed).collect(),
            runs: Vec::new(),
        };
        let mut fields = to_json_value(&fields);
        fields["runs"] = lane.runs.iter().enumerate().skip(skipped).map(row).collect::<Vec<Value>>().into();
        fields
    };
    let document = HistoryDocument {
        schema: "plimsoll.history/1",
        order: match view.order {
            SeriesOrder::Time => "time",
            SeriesOrder::Commit => "commit",
        },
        lanes: Vec::new(),
        unreadable: view.unreadable.iter().map(|(file, reason)| UnreadableFields { file, reason }).collect(),
    };
    let mut document = to_json_value(&document);
    document["lanes"] = view.lanes.iter().map(lane_fields).collect::<Vec<Value>>().into();
    document
}

/// The decision of a gate on one run, with the names that its text needs. A gate judges whether a
/// commit is worse than a branch.
#[derive(Debug, Clone, Copy)]
pub struct GateView<'a> {
    /// The run that the gate judges.
    pub run: &'a HistoryRun,
    /// The name of the branch that the run is compared with.
    pub branch: &'a str,
    /// The verdict with its evidence.
    pub finding: &'a GateFinding,
}

impl GateView<'_> {
    fn run_label(&self) -> String {
        self.run.commit_short().map_or_else(|| self.run.file.clone(), |commit| format!("commit {commit}"))
    }

    /// Formats the command of a controlled comparison, which can prove whether the commit is worse.
    fn prove_command(&self) -> String {
        let commit = self.run.revision.as_ref().map_or("HEAD", |revision| revision.commit.get(..9).unwrap_or("HEAD"));
        // A run that is tagged with a service name does not contain the URL of the service. The
        // command then has the placeholder `/PATH`, which the user must replace.
        let is_named = self.run.tags.iter().any(|(key, _)| key == "service");
        let url = if is_named { "/PATH".to_owned() } else { shell::quote_if_needed(&self.run.service) };
        format!(
            "plimsoll prove --a git:{branch} --b git:{commit} --build CMD --start CMD {url}",
            branch = shell::quote_if_needed(self.branch)
        )
    }
}

/// Renders the decision of a gate, which judges whether a commit is worse than a branch, as text.
pub fn gate_report(view: &GateView) -> Report {
    let mut report = Report::default();
    let GateFinding { verdict, change: found, reference, candidate, reason } = view.finding;
    let (run_label, branch) = (view.run_label(), view.branch);
    let measured_change = found.map_or_else(String::new, |(ratio, interval)| {
        let [lower, upper] = [interval.lower, interval.upper].map(|end| (end - 1.0) * 100.0);
        format!(": {} (98 %: {lower:+.1} to {upper:+.1})", signed_percent(ratio - 1.0))
    });
    let answer = match verdict {
        GateVerdict::Worse => format!("{run_label} is worse than {branch}{measured_change}"),
        GateVerdict::Better => format!("{run_label} is better than {branch}{measured_change}"),
        GateVerdict::Same => format!("{run_label} is the same as {branch}{measured_change}"),
        GateVerdict::NotKnown => format!("not known whether {run_label} is worse than {branch}{measured_change}"),
    };
    report.add_sentence(Tone::Answer, answer);
    let level = |(rps, runs): &(Option<f64>, usize)| match rps {
        Some(rps) => format!("{}/s, {}", rate(*rps), runs_text(*runs)),
        None => runs_text(*runs),
    };
    let mut facts = vec![(view.run.measure_name(), level(candidate)), ("of the branch", level(reference))];
    if *verdict == GateVerdict::NotKnown {
        let why = "the runs vary too much for a verdict".to_owned();
        facts.push(("why", reason.clone().unwrap_or(why)));
        facts.push(("would tell", view.prove_command()));
    }
    report.add_facts(facts);
    report
}

#[derive(Serialize)]
struct GateDocument<'a> {
    schema: &'static str,
    verdict: &'static str,
    against: &'a str,
    ratio: Option<f64>,
    ratio_lower: Option<f64>,
    ratio_upper: Option<f64>,
    reference_rps: Option<f64>,
    reference_runs: usize,
    candidate_rps: Option<f64>,
    candidate_runs: usize,
    reason: Option<&'a str>,
    would_tell: Option<String>,
    run: &'a HistoryRun,
}

/// Renders the decision of a gate, which judges whether a commit is worse than a branch, as a JSON
/// document.
pub fn gate_document(view: &GateView) -> Value {
    let GateFinding { verdict, change: found, reference, candidate, reason } = view.finding;
    to_json_value(&GateDocument {
        schema: "plimsoll.gate/1",
        verdict: verdict.word(),
        against: view.branch,
        ratio: found.map(|(ratio, _)| ratio),
        ratio_lower: found.map(|(_, interval)| interval.lower),
        ratio_upper: found.map(|(_, interval)| interval.upper),
        reference_rps: reference.0,
        reference_runs: reference.1,
        candidate_rps: candidate.0,
        candidate_runs: candidate.1,
        reason: reason.as_deref(),
        would_tell: (*verdict == GateVerdict::NotKnown).then(|| view.prove_command()),
        run: view.run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_shows_steps_and_not_noise() {
        assert_eq!(
            sparkline(&[100.0, 101.0, 100.0, 99.0]).chars().filter(|c| *c == SPARKLINE_CHARACTERS[0]).count(),
            0
        );
        let steps = sparkline(&[100.0, 100.0, 50.0]);
        let places: Vec<usize> =
            steps.chars().map(|c| SPARKLINE_CHARACTERS.iter().position(|spark| *spark == c).expect("one")).collect();
        assert!(places[0] == places[1] && places[0] > places[2] + 4, "{steps}");
        assert_eq!(sparkline(&[]), "");
    }
}
