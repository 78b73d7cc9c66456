//! Renders reports as they appear on HTML pages, with charts. A page has the answer, the chart, the
//! evidence and the environment. The sentences and tables of a page are the same as in the terminal
//! output. This file also draws the charts of one load, because the page of every kind of
//! experiment may contain charts of single loads.
//!
//! Not here: drawing the shapes of a chart (`chart`), and converting a report to HTML (`page`).

use crate::block::{Report, Tone};
use crate::chart::{
    self, AxisUnit, ChartLine, ComparisonChartData, Heading, LadderChartData, NamedSearch, Panel, Theme, heading,
};
use crate::find::{TRIAL_HEADINGS, find_report, trial_row};
use crate::format::{bytes, count, duration, format_utc_date, rate, share};
use crate::prove::{ProveContext, block_values_table, compared_load, ladder_report, ladder_table, prove_report};
use crate::run::{RunContext, run_report};
use crate::server::add_server_facts;
use plimsoll_analysis::finding::{Bottleneck, LadderFinding, ProveFinding, RunFinding, SearchFinding};
use plimsoll_analysis::levels::{Level, LoadUnit};
use plimsoll_analysis::{Doubts, Findings, Summary, Verdict, series};
use plimsoll_model::series_table as table;
use plimsoll_model::{Experiment, LoadPurpose, Run, Trial};

/// The maximum number of time intervals on the horizontal axis of a chart.
const CHART_INTERVALS_MAX: usize = 150;
/// The number of rows of a heat map. Each row is a range of latencies.
const HEAT_MAP_ROWS: usize = 48;

/// The contents of a page that are not part of the recorded experiment.
#[derive(Debug, Clone, Default)]
pub struct PageAdditions {
    /// The path of the run file for the command lines that the page shows; empty if there is no run
    /// file.
    pub file: String,
    /// Additional blocks, such as a flame graph, series of probes or a verdict. The page shows the
    /// additional blocks before the section about the environment.
    pub extra: Report,
}

/// Draws the chart of one load over time as SVG. The chart has panels for rates, response times,
/// errors, and the lag and utilisation of the load generator.
pub fn time_svg(run: &Run, summary: &Summary, theme: Theme) -> String {
    let panels = chart::interval_panels(&series::figures_over_time(run, CHART_INTERVALS_MAX));
    chart::time_chart(&heading::time_heading(&run.plan, summary), &panels, theme)
}

/// Draws the response time and the service time of one load by percentile, as SVG.
pub fn percentiles_svg(run: &Run, summary: &Summary, theme: Theme) -> String {
    let totals = run.totals();
    let line =
        |name: &str, histogram| ChartLine { name: name.to_owned(), points: series::latency_by_quantile(histogram) };
    let lines = [line("response time", &totals.routes_sum.response), line("service time", &totals.routes_sum.service)];
    chart::percentile_chart(&heading::percentile_heading(&run.plan, summary), &lines, theme)
}

/// Draws the heat map of the response times of one load over time, as SVG.
pub fn heat_svg(run: &Run, summary: &Summary, theme: Theme) -> String {
    let moments = series::figures_over_time(run, CHART_INTERVALS_MAX);
    let of = |name: &str, value: fn(&series::IntervalFigures) -> Option<f64>| {
        let at = |m: &series::IntervalFigures| (m.start_s + m.length_s / 2.0, value(m).unwrap_or(f64::NAN));
        ChartLine { name: name.to_owned(), points: moments.iter().map(at).collect() }
    };
    let lines = [of("p50", |m| m.p50_ns), of("p99", |m| m.p99_ns)];
    chart::heat_chart(
        &heading::heat_map_heading(&run.plan, summary),
        &series::heat_map(run, CHART_INTERVALS_MAX, HEAT_MAP_ROWS),
        &lines,
        theme,
    )
}

/// Renders a section with a chart of observed series, for example from probes of the server. The
/// panels share a time axis in seconds since the start of the load. A table below the chart has the
/// minimum, mean and maximum of each series.
pub fn series_section(title: &str, subtitle: &str, panels: &[Panel]) -> Report {
    let mut report = Report::default();
    let heading = Heading { title: title.into(), subtitle: subtitle.into() };
    let rows =
        panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line))).map(|(panel, line)| {
            let values: Vec<f64> = line.points.iter().map(|p| p.1).filter(|v| v.is_finite()).collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let (lo, hi) = chart::scale::finite_extent(values.iter().copied()).unwrap_or((f64::NAN, f64::NAN));
            let figure = |value: f64| {
                if value.is_finite() { panel.unit.tick_label(round_to_four_digits(value)) } else { "-".into() }
            };
            vec![format!("{}: {}", panel.title, line.name), figure(lo), figure(mean), figure(hi)]
        });
    let rows: Vec<Vec<String>> = rows.collect();
    report.add_responsive_chart(
        |theme| chart::time_chart(&heading, panels, theme),
        &["series", "least", "mean", "most"],
        rows,
    );
    report
}

/// The panels of the chart of probe measurements on the server: the title, the unit, and the names
/// of the series of each panel. Each metric that the server itself reports gets an additional
/// panel.
const SERVER_PANELS: [(&str, AxisUnit, &[&str]); 5] = [
    (
        "cores in use",
        AxisUnit::Count,
        &[table::SERVER_CPU.name, table::SERVER_BUSIEST_THREAD.name, table::CGROUP_CPU.name],
    ),
    ("threads that waited for a CPU core", AxisUnit::Count, &[table::SERVER_RUN_QUEUE_WAIT.name]),
    ("memory", AxisUnit::Bytes, &[table::SERVER_RSS.name]),
    ("threads and open files", AxisUnit::Count, &[table::SERVER_THREADS.name, table::SERVER_FILES_OPEN.name]),
    ("connections that waited to be accepted", AxisUnit::Count, &[table::LISTEN_QUEUE.name]),
];

/// Renders a section with the series that probes measured on the server during one load. The
/// section is empty if no probe observed the server.
fn server_series_section(run: &Run) -> Report {
    let line = |name: &str, shown: String| {
        let drawn = run.probes.series.get(name)?.chart_samples().into_iter().filter(|sample| sample.at_ns >= 0);
        let points: Vec<(f64, f64)> = drawn.map(|sample| (sample.at_ns as f64 / 1e9, sample.value)).collect();
        (!points.is_empty()).then_some(ChartLine { name: shown, points })
    };
    // The label of a series is its name after the first dot. If two series of a panel would get the
    // same label, such as `cpu`, the label is the whole name.
    let ending = |name: &'static str| name.split_once('.').map_or(name, |(_, rest)| rest);
    let shown = |names: &[&'static str], name: &'static str| {
        let alone = names.iter().filter(|&&other| ending(other) == ending(name)).count() == 1;
        if alone { ending(name) } else { name }.replace(['_', '.'], " ")
    };
    let panel = |title: &str, unit, lines| Panel { title: title.to_owned(), unit, is_log_scale: false, lines };
    let of = |(title, unit, names): &(&str, AxisUnit, &[&'static str])| {
        panel(title, *unit, names.iter().filter_map(|&name| line(name, shown(names, name))).collect())
    };
    let mut panels: Vec<Panel> = SERVER_PANELS.iter().map(of).filter(|panel| !panel.lines.is_empty()).collect();
    for name in run.probes.series.keys().filter(|name| table::METRICS.matched_label(name).is_some()) {
        panels.extend(line(name, name.clone()).map(|line| panel(name, AxisUnit::Count, vec![line])));
    }
    match panels.is_empty() {
        true => Report::default(),
        false => series_section("The server during the load", &heading::target_title(&run.plan), &panels),
    }
}

/// Rounds a value to four significant digits.
fn round_to_four_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10f64.powf(value.abs().log10().floor() - 3.0);
    (value / unit).round() * unit
}

/// Formats a share as a whole percentage.
pub(crate) fn whole_percentage(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn latency_rows(run: &Run) -> Vec<Vec<String>> {
    let totals = run.totals();
    let quantiles = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];
    let of = |histogram: &plimsoll_model::Histogram, q: f64| match histogram.count() {
        0 => "-".to_owned(),
        _ => duration(histogram.quantile_ns(q) as f64),
    };
    let name = |q: f64| if q >= 1.0 { "max".to_owned() } else { AxisUnit::Share.tick_label(q) };
    quantiles
        .iter()
        .map(|q| vec![name(*q), of(&totals.routes_sum.response, *q), of(&totals.routes_sum.service, *q)])
        .collect()
}

fn time_rows(run: &Run) -> Vec<Vec<String>> {
    let time = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), duration);
    let row = |m: series::IntervalFigures| {
        vec![
            format!("{:.1} s", m.start_s),
            rate(m.scheduled_rps),
            rate(m.succeeded_rps),
            rate(m.errors_rps),
            time(m.p50_ns),
            time(m.p99_ns),
            time(m.max_ns),
            time(m.lag_p99_ns),
            whole_percentage(m.work_share),
        ]
    };
    series::figures_over_time(run, 30).into_iter().map(row).collect()
}

const TIME_HEADINGS: [&str; 9] =
    ["from", "scheduled/s", "succeeded/s", "bad/s", "p50", "p99", "max", "lag p99", "client busy"];

/// Adds the charts of one load: its figures over time and, if any request succeeded, its latencies.
fn add_load_charts(report: &mut Report, run: &Run, summary: &Summary) {
    // The chart's heading has no title, because the text above the chart already states how many
    // requests succeeded.
    let heading = heading::time_heading(&run.plan, summary).without_title();
    let panels = chart::interval_panels(&series::figures_over_time(run, CHART_INTERVALS_MAX));
    report.add_responsive_chart(|theme| chart::time_chart(&heading, &panels, theme), &TIME_HEADINGS, time_rows(run));
    if run.totals().routes_sum.response.count() == 0 {
        return;
    }
    let headings = ["percentile of the requests", "response time", "service time"];
    report.add_responsive_chart(|theme| percentiles_svg(run, summary, theme), &headings, latency_rows(run));
    report.add_responsive_chart(|theme| heat_svg(run, summary, theme), &[], Vec::new());
}

/// Renders the environment of the measurement (machine and target), and the command that repeats
/// the measurement.
pub(crate) fn environment_section(experiment: &Experiment, seed: Option<u64>, additions: &PageAdditions) -> Report {
    let mut report = Report::default();
    let environment = &experiment.environment;
    report.add_heading("Environment");
    let place = if environment.target_local { "on the same machine as plimsoll" } else { "on another machine" };
    let mut facts = vec![
        ("started", format_utc_date(experiment.started_unix_ms)),
        (
            "machine",
            format!(
                "{processor}, {cores} cores for plimsoll, {memory} of memory, at most {open_files} open files",
                processor = if environment.cpu.is_empty() { "unknown processor" } else { &environment.cpu },
                cores = environment.cores,
                memory = bytes(environment.memory_bytes as f64),
                open_files = count(environment.files_max)
            ),
        ),
        ("kernel", environment.kernel.clone()),
        ("target", place.into()),
        ("plimsoll", environment.plimsoll.clone()),
        ("command", experiment.command.join(" ")),
    ];
    if let Some(revision) = &environment.revision {
        let branch = revision.branch.as_ref().map_or_else(String::new, |branch| format!(" on {branch}"));
        let dirty = if revision.dirty == Some(true) { ", with uncommitted changes" } else { "" };
        facts.push(("commit", format!("{}{branch}{dirty}", revision.commit)));
    }
    let tags = experiment.settings.as_ref().map_or(&[][..], |settings| &settings.output.tags);
    if !tags.is_empty() {
        let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.push(("tags", tags.join(", ")));
    }
    if let Some(seed) = seed {
        facts.push(("seed", seed.to_string()));
    }
    if !additions.file.is_empty() {
        facts.push(("again", format!("plimsoll rerun {}", additions.file)));
    }
    report.add_facts(facts);
    report
}

/// Returns the unit of the rates in a comparison of two searches: the common unit, or both units if
/// they differ.
pub(crate) fn common_rate_unit(a: &Findings, b: &Findings) -> &'static str {
    if a.rate_unit == b.rate_unit { a.rate_unit } else { "requests or sessions" }
}

/// Renders one chart of two separate searches, each with its name. The report does not claim a
/// difference, because two searches do not show how much results vary by chance.
pub fn render_two_searches(a: (&str, &Findings), b: (&str, &Findings)) -> Report {
    let searched = [a, b].map(|(name, findings)| NamedSearch { name, findings });
    let heading = Heading {
        title: format!("{} and {}", a.0, b.0),
        subtitle: "Two separate searches cannot show how much of their difference is due to chance.".into(),
    };
    let line = |findings: &Findings| {
        let line = findings.load_line;
        vec![rate(line.lower), line.upper.map_or_else(|| "not reached".into(), rate), findings.slo.to_string()]
    };
    let rows = [a, b].map(|(name, findings)| [vec![name.to_owned()], line(findings)].concat());
    let mut report = Report::default();
    let held = format!("met the SLO, {}/s", common_rate_unit(a.1, b.1));
    let headings = ["search", held.as_str(), "broke the SLO", "SLO"];
    report.add_responsive_chart(
        |theme| chart::search_chart(&heading, &searched, None, theme),
        &headings,
        rows.to_vec(),
    );
    report
}

/// Renders the page of one load.
pub(crate) fn run_page(
    experiment: &Experiment,
    context: &RunContext,
    finding: &RunFinding,
    additions: &PageAdditions,
) -> Report {
    let RunFinding { trial, summary, routes, server } = finding;
    let mut charts = Report::default();
    add_load_charts(&mut charts, &trial.run, summary);
    charts.append(server_series_section(&trial.run)).add_heading("All figures");
    let mut report = run_report(context, summary, routes);
    report.insert_after_answer(charts);
    add_server_facts(&mut report, server);
    report.append(additions.extra.clone()).append(environment_section(
        experiment,
        Some(context.plan.load.seed),
        additions,
    ));
    report
}

/// Renders the page of a search for the load line.
pub(crate) fn find_page(
    experiment: &Experiment,
    context: &RunContext,
    finding: &SearchFinding,
    doubts: &Doubts,
    held_by: Option<&Bottleneck>,
    additions: &PageAdditions,
) -> Report {
    let SearchFinding { findings, server, .. } = finding;
    let target = heading::target_title(context.plan);
    let searched = [NamedSearch { name: "", findings }];
    let heading = heading::search_heading(findings, &target).without_title();
    let open = findings.trials.iter().filter(|t| is_measured_trial(t.purpose) && t.offered_rps().is_some());
    let mut charts = Report::default();
    let picture = |theme| chart::search_chart(&heading, &searched, None, theme);
    charts.add_responsive_chart(picture, &TRIAL_HEADINGS, open.map(trial_row).collect());
    let mut report = find_report(experiment, context, finding, doubts, held_by, false);
    report.replace_answer(heading::load_line_sentence(findings)).insert_after_answer(charts);
    add_server_facts(&mut report, server);

    report.add_heading("Evidence").add_sentence(Tone::Plain, "Every trial (load) of the search, in order:");
    let trials = findings.trials.iter().filter(|t| is_measured_trial(t.purpose));
    report.add_table(&TRIAL_HEADINGS, trials.map(trial_row).collect());
    if let Some(trial) = trial_at_line(experiment, findings) {
        report.add_heading("The load line in detail");
        add_load_charts(&mut report, &trial.run, &Summary::from_run(&trial.run));
        report.append(server_series_section(&trial.run));
    }
    let climb: Vec<Level> = experiment
        .trials
        .iter()
        .filter(|trial| trial.tag.purpose == LoadPurpose::Peak)
        .filter_map(|trial| Level::from_run(&trial.run).map(|level| level.1))
        .collect();
    if climb.len() > 1 {
        report.add_heading("Throughput with more and more users");
        add_level_charts(&mut report, LoadUnit::Concurrency, &climb, &target);
    }
    report.append(additions.extra.clone()).append(environment_section(
        experiment,
        Some(context.plan.load.seed),
        additions,
    ));
    report
}

/// Draws the chart of a comparison of A and B as SVG.
pub(crate) fn prove_svg(context: &ProveContext, finding: &ProveFinding, theme: Theme) -> String {
    let above = heading::prove_chart_heading(&finding.comparison, &finding.blocks.arms, &compared_load(context));
    chart::prove_chart(&above, comparison_chart_data(finding), theme)
}

fn comparison_chart_data<'a>(found: &'a ProveFinding) -> ComparisonChartData<'a> {
    ComparisonChartData {
        proof: &found.comparison,
        blocks: &found.blocks.blocks,
        interim_estimates: &found.interim_estimates,
    }
}

/// Renders the page of a comparison of two servers, A and B.
pub(crate) fn prove_page(context: &ProveContext, finding: &ProveFinding, additions: &PageAdditions) -> Report {
    let mut charts = Report::default();
    let (headings, rows) = block_values_table(&finding.comparison, &finding.blocks.blocks);
    let above = heading::prove_chart_heading(&finding.comparison, &finding.blocks.arms, &compared_load(context))
        .without_title();
    charts.add_responsive_chart(
        |theme| chart::prove_chart(&above, comparison_chart_data(finding), theme),
        &headings,
        rows,
    );
    let mut report = prove_report(context, &finding.comparison);
    report.insert_after_answer(charts);
    let seed = Some(finding.blocks.plan.load.seed);
    report.append(additions.extra.clone()).append(environment_section(context.experiment, seed, additions));
    report
}

/// Draws the chart of a ladder as SVG. A ladder measures several servers (rungs) in turn.
pub(crate) fn ladder_svg(context: &ProveContext, finding: &LadderFinding, theme: Theme) -> String {
    chart::ladder_chart(
        &heading::ladder_chart_heading(&finding.ladder, &compared_load(context)),
        ladder_chart_data(finding),
        theme,
    )
}

fn ladder_chart_data<'a>(found: &'a LadderFinding) -> LadderChartData<'a> {
    LadderChartData { ladder: &found.ladder, blocks: &found.blocks.blocks, rung_urls: &found.blocks.arms }
}

/// Renders the page of a ladder, which measures several servers (rungs) in turn.
pub(crate) fn ladder_page(context: &ProveContext, finding: &LadderFinding, additions: &PageAdditions) -> Report {
    let mut charts = Report::default();
    let (headings, rows) = ladder_table(&finding.ladder);
    let above = heading::ladder_chart_heading(&finding.ladder, &compared_load(context)).without_title();
    charts.add_responsive_chart(
        |theme| chart::ladder_chart(&above, ladder_chart_data(finding), theme),
        &headings,
        rows,
    );
    let mut report = ladder_report(context, &finding.ladder);
    report.insert_after_answer(charts);
    let seed = Some(finding.blocks.plan.load.seed);
    report.append(additions.extra.clone()).append(environment_section(context.experiment, seed, additions));
    report
}

fn is_measured_trial(purpose: LoadPurpose) -> bool {
    !matches!(purpose, LoadPurpose::Settle | LoadPurpose::Profile)
}

/// Returns the longest trial that met the SLO at the lower bound of the load line's interval.
fn trial_at_line<'a>(experiment: &'a Experiment, findings: &Findings) -> Option<&'a Trial> {
    let line = findings.load_line.lower;
    let held = findings.trials.iter().filter(|t| t.verdict == Verdict::Pass);
    let at = held.filter(|t| t.offered_rps().is_some_and(|rate| (rate / line - 1.0).abs() < 1e-6));
    let best = at.max_by_key(|t| t.duration_ns)?;
    experiment.trials.iter().find(|trial| trial.start_ns == best.start_ns)
}

pub(crate) fn add_level_charts(report: &mut Report, over: LoadUnit, levels: &[Level], subtitle: &str) {
    let rows: Vec<Vec<String>> = levels
        .iter()
        .map(|level| {
            vec![
                match over {
                    LoadUnit::Concurrency => count(level.load.round() as u64),
                    LoadUnit::Rate | LoadUnit::Sessions => rate(level.load),
                },
                rate(level.rps),
                duration(level.mean_ns),
                level.p99_ns.map_or_else(|| "-".into(), duration),
                share(level.success_rate),
            ]
        })
        .collect();
    let load = match over {
        LoadUnit::Concurrency => "concurrency",
        LoadUnit::Rate => "offered/s",
        LoadUnit::Sessions => "sessions/s",
    };
    let headings = [load, "requests/s", "mean", "p99", "success"];
    let above = (heading::throughput_heading(over, levels, subtitle), heading::success_heading(over, levels, subtitle));
    report.add_responsive_chart(
        |theme| chart::throughput_chart(&above.0, over, levels, theme),
        &headings,
        rows.clone(),
    );
    // The page has no chart of the success rate if every request succeeded, because the table
    // already shows a success rate of 100 %.
    if levels.iter().any(|level| level.success_rate < 1.0) {
        report.add_responsive_chart(|theme| chart::success_chart(&above.1, over, levels, theme), &headings, rows);
    }
}
