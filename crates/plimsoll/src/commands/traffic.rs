//! `plimsoll traffic`: describes the traffic in access logs. Nothing is sent.

use crate::args::{LogArgs, TrafficArgs};
use crate::live::ProgressDisplay;
use crate::results::{print_json, print_report, print_screen};
use plimsoll_logs::survey::{LogFigures, Survey};
use plimsoll_model::experiment_settings::LogReadingSettings;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::traffic::{LogSummary, TrafficContext, traffic_page, traffic_report};
use plimsoll_report::traffic_document;
use plimsoll_report::{format, page};
use plimsoll_study::log_replay::{
    ReadingProgress, check_strict, compile_fold_patterns, fold_path, log_reading_options, refuse_if_no_line_parsed,
};
use plimsoll_study::logs::{LogLineCounts, Logs};
use plimsoll_study::output::write_and_note;
use std::path::Path;
use std::time::{Duration, Instant};

/// The interval at which the progress of reading is shown.
const READ_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The default number of table rows on a page.
const PAGE_ROWS: usize = 20;

/// Reads the logs and prints the description. Returns the exit code.
pub fn run(args: &TrafficArgs) -> Result<u8, Failure> {
    if let Some(path) = args.output.as_ref().filter(|path| !has_html_suffix(path)) {
        return Err(Failure::usage(format!("-o {file}: the name must end with .html", file = path.display())));
    }
    let settings = log_reading_settings(&args.log);
    let path_folds = compile_fold_patterns(&settings)?;
    let fold = |path: &str| fold_path(&path_folds, path);
    let mut logs = Logs::open(&args.logs, log_reading_options(&settings))?;
    let mut survey = Survey::new(if path_folds.is_empty() { None } else { Some(&fold) });
    let mut meter = LogReadingDisplay::new();
    let counts = logs.for_each_request(
        |entry, stamp| survey.add(entry, stamp),
        |read, length| meter.show_bytes_read(read, length),
    )?;
    meter.clear();
    check_strict(&settings, &counts)?;
    let figures = survey.finish();
    refuse_unusable_logs(&counts, &figures)?;
    let shown: Vec<LogSummary> = logs
        .log_sources()
        .into_iter()
        .map(|log| LogSummary { name: log.name, format: log.format, timestamp_meaning: log.stamp })
        .collect();
    let context = TrafficContext {
        logs: &shown,
        lines_read: counts.read,
        lines_unparsed: counts.unparsed,
        first_unparsed: counts.first.as_ref().map(|(place, text)| (place.as_str(), text.as_str())),
    };
    if let Some(path) = &args.output {
        let report = traffic_page(&figures, &context, args.top.unwrap_or(PAGE_ROWS));
        let names: Vec<&str> = shown.iter().map(|log| log.name.as_str()).collect();
        let page = page::render(&report, &format!("traffic of {}", names.join(", ")));
        write_and_note(path, page.as_bytes(), "")?;
    }
    match args.json {
        true => print_json(&traffic_document(&figures, &context)),
        false => match args.top {
            Some(top) => print_report(&traffic_report(&figures, &context, top)),
            None => print_screen(&traffic_report(&figures, &context, usize::MAX), 0, "--top N"),
        },
    }
    Ok(exit::SUCCESS)
}

fn has_html_suffix(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("html") || suffix.eq_ignore_ascii_case("htm"))
}

fn refuse_unusable_logs(counts: &LogLineCounts, figures: &LogFigures) -> Result<(), Failure> {
    refuse_if_no_line_parsed(counts)?;
    if figures.late_requests * 2 > figures.requests {
        return Err(Failure::cannot_start(format!(
            "the log is not in order: {late_lines} of {lines} lines are more than {minutes} min older than an \
             earlier line. Sort the log first (if the newest line is first: tac LOG | plimsoll traffic -)",
            late_lines = format::count(figures.late_requests),
            lines = format::count(figures.requests),
            minutes = plimsoll_logs::survey::DISORDER_WINDOW_S / 60
        )));
    }
    Ok(())
}

/// Converts the flags for parsing log lines to the settings that run files record.
pub fn log_reading_settings(args: &LogArgs) -> LogReadingSettings {
    let LogArgs { log_format, field, session, fold, strict } = args.clone();
    LogReadingSettings { log_format, field, session, fold, strict }
}

/// Shows on a terminal how much of the logs has been read.
pub struct LogReadingDisplay {
    live: ProgressDisplay,
    started_at: Instant,
    last_shown_at: Instant,
}

impl LogReadingDisplay {
    /// Creates a display for a reading that begins now.
    pub fn new() -> LogReadingDisplay {
        LogReadingDisplay {
            live: ProgressDisplay::new(false),
            started_at: Instant::now(),
            last_shown_at: Instant::now(),
        }
    }
}

impl ReadingProgress for LogReadingDisplay {
    fn show_bytes_read(&mut self, read: u64, length: Option<u64>) {
        if self.last_shown_at.elapsed() < READ_PROGRESS_INTERVAL {
            return;
        }
        self.last_shown_at = Instant::now();
        let rate = read as f64 / self.started_at.elapsed().as_secs_f64();
        let of = length.map_or(String::new(), |length| format!(" of {}", format::bytes(length as f64)));
        self.live.show_line(&format!("read {}{of}, {}/s", format::bytes(read as f64), format::bytes(rate)));
    }

    fn clear(&mut self) {
        self.live.clear();
    }
}
