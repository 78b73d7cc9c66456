//! The report of a sweep, which measures the server at several numbers of concurrent users
//! (levels). The table and the `.dat` file have one row for each level. A sentence states the
//! result, and a page shows charts.
//!
//! Not here: the first screen of a sweep (`screen`), and its JSON document (`json`).

use crate::block::{Report, Tone};
use crate::chart::{self, ChartLine, Heading, heading};
use crate::failure_kinds;
use crate::format::{self, count, duration, rate, share};
use crate::page_charts::{PageAdditions, add_level_charts, environment_section, whole_percentage};
use crate::remedy::sentence_text;
use crate::text::wrap_text;
use crate::visible_controls::escape_to_one_line;
use plimsoll_analysis::finding::{SweepFigures, SweepFinding, SweepLevel};
use plimsoll_analysis::levels::{self, LoadUnit};
use plimsoll_analysis::{FailedResponseGroup, ServerUse, Summary, series};
use plimsoll_model::Experiment;

/// The maximum number of levels (numbers of users) in the chart of latencies, because there are
/// five line colours.
const CURVES_MAX: usize = 5;
/// The goodput still grows if the last level's goodput divided by the previous level's goodput
/// exceeds `GROWTH_RATIO_MIN`. If the goodput still grows, the answer says that more users may give
/// more goodput.
const GROWTH_RATIO_MIN: f64 = 1.1;

/// The beginning of the remark about a disturbed machine in the table row of a level (number of
/// users).
pub(crate) const DISTURBED_REMARK_PREFIX: &str = "measured while other software used the machine's CPU: ";

/// The widths of the table's columns in characters. A row has 78 characters, including the gaps
/// between columns, so that a terminal of 80 columns shows the row in one line.
const COLUMN_WIDTHS: [usize; 9] = [9, 10, 6, 8, 8, 8, 8, 5, 8];

/// Formats a table row in lines of at most `columns` characters. Cells that do not fit are moved to
/// the next line, to the right of the first column.
fn format_table_row(cells: [&str; 9], columns: Option<usize>) -> String {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for (cell, width) in cells.iter().zip(COLUMN_WIDTHS) {
        if length > 0 && columns.is_some_and(|columns| length + 1 + width > columns) {
            lines.push(" ".repeat(COLUMN_WIDTHS[0]));
            length = COLUMN_WIDTHS[0];
        }
        let space = if length > 0 { " " } else { "" };
        if let Some(line) = lines.last_mut() {
            *line += &format!("{space}{cell:>width$}");
            length = line.chars().count();
        }
    }
    lines.join("\n")
}

/// Formats the column headings of a sweep's table, in lines of at most `columns` characters.
pub fn sweep_table_heading(columns: Option<usize>) -> String {
    format_table_row(["users", "requests/s", "+/-", "mean", "p50", "p99", "success", "cores", "CPU/req"], columns)
}

/// Formats two table cells with the server's CPU: the number of cores used, and the CPU time per
/// request. A cell is `-` if the server was not observed.
fn server_cells(level: &SweepLevel) -> [String; 2] {
    let server = level.figures().and_then(|figures| figures.server.as_ref());
    [
        server.map_or_else(|| "-".into(), |used| format!("{:.2}", used.cores_used())),
        server.and_then(ServerUse::cpu_us_per_request).map_or_else(|| "-".into(), |us| duration(us * 1e3)),
    ]
}

fn interval_cell(error: Option<f64>) -> String {
    error.map_or_else(|| "-".into(), |error| format!("{:.1} %", error * 100.0))
}

/// Formats the mean response time and the success rate of a level (number of users); both cells are
/// `-` if no request was scheduled.
fn mean_and_success_cells(summary: &Summary) -> [String; 2] {
    match summary.requests {
        0 => ["-".into(), "-".into()],
        _ => [duration(summary.routes_sum.response.mean_ns), share(summary.success_rate)],
    }
}

/// Formats the table row of one level (number of users) in lines of at most `columns` characters.
/// For a level that was not measured, the row states the reason.
pub fn sweep_row(level: &SweepLevel, columns: Option<usize>) -> String {
    let concurrency = count(level.concurrency);
    let [cores, cpu] = server_cells(level);
    match &level.outcome {
        Ok(SweepFigures { summary, error, .. }) => {
            let [mean, success] = mean_and_success_cells(summary);
            let cells = [
                concurrency.as_str(),
                &rate(summary.throughput_rps),
                &interval_cell(*error),
                &mean,
                &summary.routes_sum.response.quantiles.p50.to_string(),
                &summary.routes_sum.response.quantiles.p99.to_string(),
                &success,
                &cores,
                &cpu,
            ];
            let row = format_table_row(cells, columns);
            match summary.interference.reason.as_deref().filter(|_| summary.interference.is_disturbed) {
                Some(reason) => {
                    let text = format!(
                        "{:>width$} {DISTURBED_REMARK_PREFIX}{}",
                        "",
                        escape_to_one_line(reason),
                        width = COLUMN_WIDTHS[0]
                    );
                    format!("{row}\n{}", wrap_text(&text, columns, COLUMN_WIDTHS[0] + 1))
                }
                None => row,
            }
        }
        Err(reason) => wrap_text(
            &format!(
                "{concurrency:>9} not measured: {}",
                escape_to_one_line(&sentence_text(&format::skip_reason(reason)))
            ),
            columns,
            COLUMN_WIDTHS[0] + 1,
        ),
    }
}

fn user_count_text(number: f64) -> String {
    if number == 1.0 { "1 user".to_owned() } else { format!("{} users", count(number as u64)) }
}

/// Formats the result of a sweep as one sentence: the peak throughput and the knee (the fewest
/// users with 95 % of the peak).
pub(crate) fn sweep_answer(finding: &SweepFinding) -> String {
    let (levels, measured) = (&finding.levels, finding.measured_levels());
    let (Some(peak), Some(knee)) = (&finding.peak, &finding.knee) else {
        return match measured.is_empty() {
            true => "no level of the sweep was measured".into(),
            false => "no request succeeded at any level of the sweep".into(),
        };
    };
    let limited = levels.iter().any(|level| {
        level.concurrency as f64 == peak.load && level.figures().is_some_and(|f| f.summary.generator.is_limit)
    });
    let most = measured.iter().max_by(|a, b| a.load.total_cmp(&b.load));
    let before = measured.iter().filter(|l| most.is_some_and(|most| l.load < most.load));
    let before = before.max_by(|a, b| a.load.total_cmp(&b.load));
    let growing = matches!((most, before), (Some(most), Some(before)) if most.load == peak.load && most.rps > before.rps * GROWTH_RATIO_MIN);
    let end = match (limited, growing) {
        (true, _) => "; plimsoll was the limit, so the server's own peak is higher",
        (false, true) => "; goodput was still growing: more users may give a higher peak",
        (false, false) => "",
    };
    let peak_text = format!("peak: {} requests/s with {}", rate(peak.rps), user_count_text(peak.load));
    let p99 = knee.p99_ns.map_or(String::new(), |p99| format!(", p99 {}", duration(p99)));
    match knee.load == peak.load {
        true => format!("{peak_text}{p99}; fewer users do not reach 95 % of the peak{end}"),
        false => {
            format!("{peak_text}; knee: {} reach {} requests/s{p99}{end}", user_count_text(knee.load), rate(knee.rps))
        }
    }
}

/// Renders the answer of a sweep, an explanation of the `+/-` column, and the failed responses. The
/// table of levels is rendered separately.
pub(crate) fn sweep_report(experiment: &Experiment, finding: &SweepFinding) -> Report {
    let mut report = Report::default();
    report.add_sentence(Tone::Answer, sweep_answer(finding));
    if let Some(text) = interval_column_note(&finding.levels) {
        report.add_facts(vec![("+/-", text)]);
    }
    add_failure_facts(&mut report, experiment);
    report
}

/// Formats an explanation of the `+/-` column. The column contains 95 % intervals, from several
/// loads with each number of users or from the variation within one load. Returns `None` if no
/// level has an interval.
pub(crate) fn interval_column_note(levels: &[SweepLevel]) -> Option<String> {
    let known = || levels.iter().filter_map(SweepLevel::figures).filter(|figures| figures.error.is_some());
    let visits = || known().filter(|figures| figures.is_error_between_visits).map(|figures| figures.load.visits.len());
    let once = known().filter(|figures| !figures.is_error_between_visits).count();
    Some(match (visits().min().zip(visits().max()), once) {
        (None, 0) => return None,
        (None, _) => "95 % interval, valid within this run only: each user count had one load, so the variation \
                      between runs is unknown"
            .to_owned(),
        (Some((least, most)), once) => {
            let loads_each = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let single_loads = match once {
                0 => String::new(),
                count => {
                    format!("; for {count} user counts with only one load, the interval is valid within this run only")
                }
            };
            format!("95 % interval, from {loads_each} loads with each user count{single_loads}")
        }
    })
}

/// Adds facts about the failed responses; adds nothing if no response failed.
fn add_failure_facts(report: &mut Report, experiment: &Experiment) {
    let kinds = FailedResponseGroup::failures_of_trials(experiment.trials.iter());
    if !kinds.is_empty() {
        report.add_facts(failure_kinds::failure_facts(&kinds));
    }
}

/// Formats one level (number of users) as a line of a `.dat` file: `concurrency qps mean_ms
/// success_percent`. Returns `None` for a level that was not measured.
pub fn dat_line(level: &SweepLevel) -> Option<String> {
    let summary = &level.figures()?.summary;
    let mean_ns = summary.routes_sum.response.mean_ns;
    Some(format_dat_line(level.concurrency, summary.throughput_rps, mean_ns, summary.success_rate))
}

fn format_dat_line(concurrency: u64, throughput_rps: f64, mean_ns: f64, success_rate: f64) -> String {
    // The percentage is rounded down, so that 99.999 % is not written as 100 %, which would hide
    // failures.
    let percent = (success_rate * 1e4).floor() / 1e2;
    format!("{concurrency} {throughput_rps:.2} {:.2} {percent:.2}\n", mean_ns / 1e6)
}

/// The content of the `.dat` file of one route (a kind of request), for a sweep with several
/// routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteDat {
    /// The name of the route.
    pub route: String,
    /// One line of the `.dat` file for each level with at least one request to the route.
    pub lines: String,
}

/// Returns the `.dat` lines of each route, in the order of the plan. A sweep with a single route
/// has no separate `.dat` lines for its route, so the returned list is empty.
pub fn dat_by_route(levels: &[SweepLevel]) -> Vec<RouteDat> {
    let mut files: Vec<RouteDat> = Vec::new();
    for level in levels {
        let routes = level.figures().map_or_else(Default::default, |figures| figures.routes.as_slice());
        for (at, route) in routes.iter().enumerate() {
            if files.len() <= at {
                files.push(RouteDat { route: route.name.clone(), lines: String::new() });
            }
            if route.requests > 0 {
                let mean_ns = route.figures.response.mean_ns;
                files[at].lines +=
                    &format_dat_line(level.concurrency, route.throughput_rps, mean_ns, route.success_rate);
            }
        }
    }
    files
}

/// Formats for how long each level (number of users) was measured, as the end of a chart's
/// subtitle; empty if no level was measured.
pub fn level_durations_text(levels: &[SweepLevel]) -> String {
    let lengths = || levels.iter().filter_map(|level| Some(level.figures()?.summary.duration_ns as f64));
    let (least, most) = (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max));
    match (duration(least), duration(most)) {
        _ if most == 0.0 => String::new(),
        (least, most) if least == most => format!("; {most} each"),
        (least, most) => format!("; {least} to {most} each"),
    }
}

/// Renders the page of a sweep over numbers of concurrent users, with its charts.
pub(crate) fn sweep_page(experiment: &Experiment, finding: &SweepFinding, additions: &PageAdditions) -> Report {
    let mut report = sweep_report(experiment, finding);
    let (levels, measured) = (&finding.levels, finding.measured_levels());
    let trials = levels::measured_loads(experiment);
    let first = trials.first();
    let target = first.map_or_else(String::new, |trial| heading::target_title(&trial.run.plan));
    let subtitle = format!("{target}{}", level_durations_text(levels));
    if !measured.is_empty() {
        add_level_charts(&mut report, LoadUnit::Concurrency, &measured, &subtitle);
    }
    report.add_heading("Evidence");
    let rows = levels.iter().map(|level| {
        let [cores, cpu] = server_cells(level);
        let [mean, success] = level.figures().map_or_else(Default::default, |it| mean_and_success_cells(&it.summary));
        match &level.outcome {
            Ok(SweepFigures { summary: s, error, .. }) => vec![
                count(level.concurrency),
                rate(s.throughput_rps),
                interval_cell(*error),
                mean,
                s.routes_sum.response.quantiles.p50.to_string(),
                s.routes_sum.response.quantiles.p99.to_string(),
                duration(s.routes_sum.response.max_ns as f64),
                success,
                cores,
                cpu,
                whole_percentage(s.generator.work_share),
                duration(s.duration_ns as f64),
            ],
            Err(_) => {
                let mut row = vec![count(level.concurrency)];
                row.extend(std::iter::repeat_n("-".to_owned(), 11));
                row
            }
        }
    });
    let headings = [
        "users",
        "requests/s",
        "+/- (95 %)",
        "mean",
        "p50",
        "p99",
        "max",
        "success",
        "server cores",
        "CPU a request",
        "client busy",
        "measured",
    ];
    report.add_table(&headings, rows.collect());
    // The chart shows the level with the fewest users, the level with the most, and evenly spaced
    // levels between them.
    let step = (trials.len().saturating_sub(1) as f64 / (CURVES_MAX - 1) as f64).max(1.0);
    let chosen = (0..CURVES_MAX).filter_map(|k| trials.get((k as f64 * step).round() as usize));
    let lines: Vec<ChartLine> = chosen
        .map(|trial| ChartLine {
            name: user_count_text(trial.run.plan.load.shape.curve().max()),
            points: series::latency_by_quantile(&trial.run.totals().routes_sum.response),
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    if !lines.is_empty() {
        let above = Heading { title: "Response time by concurrency".into(), subtitle };
        report.add_responsive_chart(|theme| chart::percentile_chart(&above, &lines, theme), &[], Vec::new());
    }
    let seed = first.map(|trial| trial.run.plan.load.seed);
    report.append(additions.extra.clone()).append(environment_section(experiment, seed, additions));
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, LoadCurve, LoadPurpose, LoadShape, LoadSkipReason, LoadTag, Plan, Run, Trial};

    /// Returns a recorded load of `concurrency` users in which `rps` requests a second succeeded.
    fn example_level_trial(concurrency: u64, rps: u64) -> Trial {
        let users = LoadCurve::constant(concurrency as f64);
        let mut run = Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users }));
        for index in 0..10 {
            let mut interval = Interval::default();
            let figures = interval.routes.figures_mut(0);
            figures.succeeded_in_window = rps / 10;
            figures.ledger.scheduled = rps / 10;
            figures.ledger.succeeded = rps / 10;
            run.intervals.insert(index, interval);
        }
        run.window_ns = (0, 1_000_000_000);
        Trial { tag: LoadTag::for_purpose(LoadPurpose::Level), start_ns: 0, run }
    }

    #[test]
    fn the_sweep_answer_names_its_number_of_users() {
        for (loads, expect) in [
            (
                vec![(1, 1000), (4, 6480), (8, 6490), (16, 6400)],
                "peak: 6 490 requests/s with 8 users; knee: 4 users reach 6 480 requests/s",
            ),
            (
                vec![(1, 1000), (2, 2000)],
                "peak: 2 000 requests/s with 2 users; fewer users do not reach 95 % of the peak; goodput was still \
                 growing: more users may give a higher peak",
            ),
            (vec![(1, 1000)], "peak: 1 000 requests/s with 1 user; fewer users do not reach 95 % of the peak"),
            (vec![(1, 0)], "no request succeeded at any level of the sweep"),
            (vec![], "no level of the sweep was measured"),
        ] {
            let loads: Vec<Trial> = loads.into_iter().map(|(users, rps)| example_level_trial(users, rps)).collect();
            let mut levels: Vec<SweepLevel> = loads.iter().filter_map(SweepLevel::from_single_load).collect();
            levels.push(SweepLevel::skipped_level(64, &LoadSkipReason::NoTime));
            assert_eq!(sweep_answer(&SweepFinding::from_levels(levels)), expect);
        }
    }

    #[test]
    fn sweep_rows_fit_80_columns() {
        let load = example_level_trial(50_000, 1_234_560);
        let mut wide = SweepLevel::from_single_load(&load).expect("the same load all along");
        if let Ok(figures) = &mut wide.outcome {
            figures.summary.success_rate = 0.999_99;
            figures.error = Some(0.123);
            assert!(!figures.is_error_between_visits, "one visit");
        }
        let unheld = SweepLevel::skipped_level(64, &LoadSkipReason::Machine("no files ".repeat(30)));
        for text in [sweep_table_heading(Some(80)), sweep_row(&wide, Some(80)), sweep_row(&unheld, Some(80))] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        assert!(sweep_row(&wide, None).contains("12.3 %"));
    }
}
