//! How a sweep looks: one row a concurrency in the table and in the `.dat` file, what it comes to in one sentence, and its
//! page.

use crate::block::{Report, Tone};
use crate::chart::{self, Heading, Line, heading};
use crate::charted::{Around, cut_off, environment, levels_charts, percent};
use crate::failed;
use crate::format::{count, duration, rate, share};
use crate::text::broken;
use crate::visible::visible;
use plimsoll_analysis::levels::{self, ERROR_WANTED, Level, LoadUnit, knee, peak};
use plimsoll_analysis::{FailedKind, Others, ServerUse, Summary, series};
use plimsoll_model::{Experiment, Purpose, Trial, Unheld};

/// Most levels whose latencies are drawn beside each other: as many as there are colours.
const CURVES_MAX: usize = 5;
/// Goodput that grew by more than this at the last level may grow further.
const GROWING: f64 = 1.1;

/// What a sweep found at one concurrency.
#[derive(Debug, Clone)]
pub struct SweepLevel {
    /// Users.
    pub concurrency: u64,
    /// The figures; or why the level could not be held.
    pub outcome: Result<SweepFigures, String>,
    /// What the server used; `None` if nothing was watched.
    pub server: Option<ServerUse>,
}

/// The figures of a level that was measured.
#[derive(Debug, Clone)]
pub struct SweepFigures {
    /// All figures of its load.
    pub summary: Summary,
    /// The same as a level among others.
    pub level: Level,
    /// Half the 95 % interval of its goodput, as a share of it; `None` where too little was measured to tell.
    pub error: Option<f64>,
}

impl SweepLevel {
    fn figures(&self) -> Option<&SweepFigures> {
        self.outcome.as_ref().ok()
    }
}

/// What others used of the machine during all levels.
pub fn sweep_others(levels: &[SweepLevel]) -> Others {
    Others::over(levels.iter().filter_map(SweepLevel::figures).map(|figures| &figures.summary.others), "levels")
}

/// The levels with the peak and the knee. Levels that others disturbed say nothing of the server, unless there are no
/// others.
pub fn peak_and_knee(levels: &[SweepLevel]) -> (Option<Level>, Option<Level>) {
    let of = |disturbed: bool| -> Vec<Level> {
        let figures = levels.iter().filter_map(SweepLevel::figures);
        figures.filter(|f| disturbed || !f.summary.others.disturbed).map(|f| f.level.clone()).collect()
    };
    let quiet = of(false);
    let counting = if quiet.is_empty() { of(true) } else { quiet };
    (peak(&counting).cloned(), knee(&counting).cloned())
}

/// The levels that were measured.
pub fn measured(levels: &[SweepLevel]) -> Vec<Level> {
    levels.iter().filter_map(SweepLevel::figures).map(|figures| figures.level.clone()).collect()
}

/// 78 columns in all: a terminal of 80 shows a level in one line.
const WIDTHS: [usize; 9] = [9, 10, 6, 8, 8, 8, 8, 5, 8];

/// A row in lines of `columns`: what does not fit goes on below, right of the users.
fn row(cells: [&str; 9], columns: Option<usize>) -> String {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for (cell, width) in cells.iter().zip(WIDTHS) {
        if length > 0 && columns.is_some_and(|columns| length + 1 + width > columns) {
            lines.push(" ".repeat(WIDTHS[0]));
            length = WIDTHS[0];
        }
        let space = if length > 0 { " " } else { "" };
        if let Some(line) = lines.last_mut() {
            *line += &format!("{space}{cell:>width$}");
            length = line.chars().count();
        }
    }
    lines.join("\n")
}

/// The headings of a sweep's table, in lines of `columns`.
pub fn sweep_header(columns: Option<usize>) -> String {
    row(["users", "requests/s", "+/-", "mean", "p50", "p99", "success", "cores", "CPU/req"], columns)
}

/// What the columns of the server say of a level.
fn server_cells(level: &SweepLevel) -> [String; 2] {
    let server = level.server.as_ref();
    [
        server.map_or_else(|| "-".into(), |used| format!("{:.2}", used.cores_used())),
        server.and_then(ServerUse::cpu_us_per_request).map_or_else(|| "-".into(), |us| duration(us * 1e3)),
    ]
}

fn error_cell(error: Option<f64>) -> String {
    error.map_or_else(|| "-".into(), |error| format!("{:.1} %", error * 100.0))
}

/// The row of one level; why one was not measured stands in its place, in lines of `columns`.
pub fn sweep_row(level: &SweepLevel, columns: Option<usize>) -> String {
    let concurrency = count(level.concurrency);
    let [cores, cpu] = server_cells(level);
    match &level.outcome {
        Ok(SweepFigures { summary, error, .. }) => {
            let cells = [
                concurrency.as_str(),
                &rate(summary.throughput_rps),
                &error_cell(*error),
                &duration(summary.whole.response.mean_ns),
                &duration(summary.whole.response.p50_ns as f64),
                &duration(summary.whole.response.p99_ns as f64),
                &share(summary.success_rate),
                &cores,
                &cpu,
            ];
            let row = row(cells, columns);
            match summary.others.reason.as_deref().filter(|_| summary.others.disturbed) {
                Some(reason) => {
                    let text = format!("{:>width$} void, disturbed: {}", "", visible(reason), width = WIDTHS[0]);
                    format!("{row}\n{}", broken(&text, columns, WIDTHS[0] + 1))
                }
                None => row,
            }
        }
        Err(reason) => broken(&format!("{concurrency:>9} not measured: {}", visible(reason)), columns, WIDTHS[0] + 1),
    }
}

/// Why a level was not measured.
pub fn unheld_text(reason: &Unheld) -> &str {
    match reason {
        Unheld::NoTime => "the time was used up before (--budget)",
        Unheld::Machine(reason) => reason,
    }
}

fn users(number: f64) -> String {
    if number == 1.0 { "1 user".to_owned() } else { format!("{} users", count(number as u64)) }
}

/// What speaks against the figures of a sweep: what was noted before it, generators that were the limit, levels that were
/// not measured or are not known well.
pub fn sweep_warnings(noted: &[String], levels: &[SweepLevel]) -> Vec<String> {
    let disturbed = sweep_others(levels).doubt().map(|doubt| doubt.text);
    let mut warnings: Vec<String> = disturbed.into_iter().chain(noted.iter().cloned()).collect();
    let limited = |level: &&SweepLevel| level.figures().is_some_and(|f| f.summary.generator.limited);
    let mut limits = levels.iter().filter(limited);
    if let Some(first) = limits.next() {
        let reason = first.figures().and_then(|f| f.summary.generator.reason.as_deref());
        let others = match limits.count() {
            0 => String::new(),
            1 => " (and at one level more)".to_owned(),
            more => format!(" (and at {more} levels more)"),
        };
        warnings.push(format!(
            "with {}{others} the generator was the limit, not the server: {}",
            users(first.concurrency as f64),
            reason.unwrap_or("it could not keep up")
        ));
    }
    for level in levels {
        if let Err(reason) = &level.outcome {
            warnings.push(format!("concurrency {} was not measured: {reason}", count(level.concurrency)));
        }
    }
    let rough: Vec<&SweepLevel> = levels
        .iter()
        .filter(|level| level.figures().is_some_and(|f| f.error.is_some_and(|error| error > 2.0 * ERROR_WANTED)))
        .collect();
    if let Some(worst) = rough.iter().filter_map(|level| level.figures()?.error).reduce(f64::max) {
        let at: Vec<String> = rough.iter().map(|level| count(level.concurrency)).collect();
        warnings.push(format!(
            "goodput varied: with {} users it may be off by up to {:.0} %, so that small differences between levels mean \
             nothing; more time (--for, --budget) narrows that",
            at.join(", "),
            worst * 100.0
        ));
    }
    warnings
}

/// What a sweep comes to, in one sentence: peak and knee, each with the users that made it.
pub fn sweep_answer(levels: &[SweepLevel]) -> String {
    let measured = measured(levels);
    let (Some(peak), Some(knee)) = peak_and_knee(levels) else {
        return match measured.is_empty() {
            true => "no level was measured".into(),
            false => "no request succeeded at any level".into(),
        };
    };
    let limited = levels.iter().any(|level| {
        level.concurrency as f64 == peak.load && level.figures().is_some_and(|f| f.summary.generator.limited)
    });
    let most = measured.iter().max_by(|a, b| a.load.total_cmp(&b.load));
    let before = measured.iter().filter(|l| most.is_some_and(|most| l.load < most.load));
    let before = before.max_by(|a, b| a.load.total_cmp(&b.load));
    let growing = matches!((most, before), (Some(most), Some(before)) if most.load == peak.load && most.rps > before.rps * GROWING);
    let end = match (limited, growing) {
        (true, _) => "; the generator was the limit there: the server's own peak is higher",
        (false, true) => "; goodput was still growing there: more users may get more",
        (false, false) => "",
    };
    let peak_text = format!("peak: {} requests/s with {}", rate(peak.rps), users(peak.load));
    let p99 = knee.p99_ns.map_or(String::new(), |p99| format!(", p99 {}", duration(p99)));
    match knee.load == peak.load {
        true => format!("{peak_text}{p99}; fewer do not reach 95 % of it{end}"),
        false => format!("{peak_text}; knee: {} reach {} requests/s{p99}{end}", users(knee.load), rate(knee.rps)),
    }
}

/// What stands below the table of a sweep.
pub fn sweep_report(experiment: &Experiment, noted: &[String], levels: &[SweepLevel]) -> Report {
    let mut report = Report::default();
    // Levels without figures say so in the table.
    let held: Vec<SweepLevel> = levels.iter().filter(|level| level.outcome.is_ok()).cloned().collect();
    for warning in sweep_warnings(noted, &held) {
        report.text(Tone::Warning, warning);
    }
    report.text(Tone::Answer, sweep_answer(levels));
    add_failed(&mut report, experiment);
    report
}

/// What failed answers said.
fn add_failed(report: &mut Report, experiment: &Experiment) {
    let kinds = FailedKind::of_trials(experiment.trials.iter());
    if !kinds.is_empty() {
        report.facts(failed::facts(&kinds));
    }
}

/// The line of one level in a `.dat` file: `concurrency qps mean_ms success_percent`; nothing for a level not held.
pub fn dat_line(level: &SweepLevel) -> Option<String> {
    let summary = &level.figures()?.summary;
    Some(format!(
        "{} {:.2} {:.2} {:.2}\n",
        level.concurrency,
        summary.throughput_rps,
        summary.whole.response.mean_ns / 1e6,
        // Rounded down: 99.999 % is not all.
        (summary.success_rate * 1e4).floor() / 1e2,
    ))
}

/// How long the levels were measured, in words.
pub fn sweep_lengths(levels: &[SweepLevel]) -> String {
    let lengths = || levels.iter().filter_map(|level| Some(level.figures()?.summary.duration_ns as f64));
    let (least, most) = (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max));
    match (duration(least), duration(most)) {
        _ if most == 0.0 => String::new(),
        (least, most) if least == most => format!("; {most} each"),
        (least, most) => format!("; {least} to {most} each"),
    }
}

/// Whether a load of an experiment is a level of a sweep: others are trials beforehand.
pub fn is_level(trial: &Trial) -> bool {
    trial.tag.purpose == Purpose::Level
}

/// The page of a sweep.
pub fn sweep_page(experiment: &Experiment, noted: &[String], levels: &[SweepLevel], around: &Around) -> Report {
    let mut report = cut_off(experiment);
    for warning in sweep_warnings(noted, levels) {
        report.text(Tone::Warning, warning);
    }
    report.text(Tone::Answer, sweep_answer(levels));
    add_failed(&mut report, experiment);
    let measured = measured(levels);
    let trials: Vec<&Trial> = levels::measured(experiment);
    let first = trials.first();
    let target = first.map_or_else(String::new, |trial| heading::target(&trial.run.plan));
    let subtitle = format!("{target}{}", sweep_lengths(levels));
    if !measured.is_empty() {
        levels_charts(&mut report, LoadUnit::Concurrency, &measured, &subtitle);
    }
    report.heading("Evidence");
    let rows = levels.iter().map(|level| {
        let [cores, cpu] = server_cells(level);
        match &level.outcome {
            Ok(SweepFigures { summary: s, error, .. }) => vec![
                count(level.concurrency),
                rate(s.throughput_rps),
                error_cell(*error),
                duration(s.whole.response.mean_ns),
                duration(s.whole.response.p50_ns as f64),
                duration(s.whole.response.p99_ns as f64),
                duration(s.whole.response.max_ns as f64),
                share(s.success_rate),
                cores,
                cpu,
                percent(s.generator.work_share),
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
    report.table(&headings, rows.collect());
    // The fewest users, the most, and what lies evenly between.
    let step = (trials.len().saturating_sub(1) as f64 / (CURVES_MAX - 1) as f64).max(1.0);
    let chosen = (0..CURVES_MAX).filter_map(|k| trials.get((k as f64 * step).round() as usize));
    let lines: Vec<Line> = chosen
        .map(|trial| Line {
            name: users(trial.run.plan.load.shape.curve().max()),
            points: series::by_quantile(&trial.run.totals().whole.response),
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    if !lines.is_empty() {
        let above = Heading { title: "Response time by concurrency".into(), subtitle };
        report.drawn(|theme| chart::percentile_chart(&above, &lines, theme), &[], Vec::new());
    }
    let seed = first.map(|trial| trial.run.plan.load.seed);
    report.append(around.extra.clone()).append(environment(experiment, seed, around));
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Curve, Interval, LoadShape, Plan, Run};

    /// A level on which so many requests a second succeeded.
    fn level(concurrency: u64, rps: u64) -> SweepLevel {
        let users = Curve::constant(concurrency as f64);
        let mut run = Run::new(Plan::get("h", 80, vec![], LoadShape::Closed { users }));
        for index in 0..10 {
            let mut interval = Interval::default();
            let figures = interval.routes.of_mut(0);
            figures.succeeded_in_window = rps / 10;
            figures.ledger.scheduled = rps / 10;
            figures.ledger.succeeded = rps / 10;
            run.intervals.insert(index, interval);
        }
        run.window_ns = (0, 1_000_000_000);
        let (_, of_run) = Level::of(&run).expect("the same load all along");
        let figures = SweepFigures { summary: Summary::of(&run), level: of_run, error: series::goodput_error(&run) };
        SweepLevel { concurrency, outcome: Ok(figures), server: None }
    }

    #[test]
    fn the_answer_names_the_users_that_made_it() {
        let unheld = SweepLevel { concurrency: 64, outcome: Err("no files".into()), server: None };
        for (levels, expect) in [
            (
                vec![level(1, 1000), level(4, 6480), level(8, 6490), level(16, 6400)],
                "peak: 6 490 requests/s with 8 users; knee: 4 users reach 6 480 requests/s",
            ),
            (
                vec![level(1, 1000), level(2, 2000)],
                "peak: 2 000 requests/s with 2 users; fewer do not reach 95 % of it; goodput was still growing there: more \
                 users may get more",
            ),
            (vec![level(1, 1000)], "peak: 1 000 requests/s with 1 user; fewer do not reach 95 % of it"),
            (vec![level(1, 0)], "no request succeeded at any level"),
            (vec![unheld], "no level was measured"),
        ] {
            assert_eq!(sweep_answer(&levels), expect);
        }
    }

    #[test]
    fn rows_fit_a_terminal_of_80() {
        let mut wide = level(50_000, 1_234_560);
        wide.server = None;
        if let Ok(figures) = &mut wide.outcome {
            figures.summary.success_rate = 0.999_99;
            figures.error = Some(0.123);
        }
        let unheld = SweepLevel { concurrency: 64, outcome: Err("no files ".repeat(30)), server: None };
        for text in [sweep_header(Some(80)), sweep_row(&wide, Some(80)), sweep_row(&unheld, Some(80))] {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        assert!(sweep_row(&wide, None).contains("12.3 %"));
    }
}
