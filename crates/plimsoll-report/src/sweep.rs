//! How a sweep looks: one row a concurrency, in the table and in the `.dat` file.

use crate::format::{count, duration, rate, share};
use plimsoll_analysis::{Others, ServerUse, Summary};

/// What a sweep found at one concurrency.
#[derive(Debug, Clone)]
pub struct SweepLevel {
    /// Users.
    pub concurrency: u64,
    /// The figures; or why the level could not be held.
    pub outcome: Result<Summary, String>,
    /// What the server used; `None` if nothing was watched.
    pub server: Option<ServerUse>,
}

/// 78 columns in all: a terminal of 80 shows a level in one line.
const WIDTHS: [usize; 8] = [11, 11, 8, 8, 8, 8, 6, 11];

fn row(cells: [&str; 8], note: &str) -> String {
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}"));
    format!("{}  {note}", cells.collect::<Vec<_>>().join(" ")).trim_end().to_owned()
}

/// The headings of a sweep's table.
pub fn sweep_header() -> String {
    row(["concurrency", "requests/s", "mean", "p50", "p99", "success", "cores", "CPU/request"], "")
}

/// The row of one level.
pub fn sweep_row(level: &SweepLevel) -> String {
    let concurrency = count(level.concurrency);
    let server = level.server.as_ref();
    let cores = server.map_or_else(|| "-".into(), |used| format!("{:.2}", used.cores_used()));
    let cpu = server.and_then(ServerUse::cpu_us_per_request).map_or_else(|| "-".into(), |us| duration(us * 1e3));
    match &level.outcome {
        Ok(summary) => row(
            [
                &concurrency,
                &rate(summary.throughput_rps),
                &duration(summary.response.mean_ns),
                &duration(summary.response.p50_ns as f64),
                &duration(summary.response.p99_ns as f64),
                &share(summary.success_rate),
                &cores,
                &cpu,
            ],
            &note(summary),
        ),
        Err(reason) => row([&concurrency, "-", "-", "-", "-", "-", "-", "-"], reason),
    }
}

/// What speaks against a level's figures.
fn note(summary: &Summary) -> String {
    match (&summary.others.reason, summary.generator.limited) {
        (Some(reason), _) if summary.others.disturbed => format!("void, disturbed: {reason}"),
        (_, true) => "the generator was the limit".into(),
        _ => String::new(),
    }
}

/// What others used of the machine during all levels.
pub fn sweep_others(levels: &[SweepLevel]) -> Others {
    Others::over(levels.iter().filter_map(|level| level.outcome.as_ref().ok()).map(|summary| &summary.others), "levels")
}

/// The line of one level in a `.dat` file: `concurrency qps mean_ms success_percent`; nothing for a level not held.
pub fn dat_line(level: &SweepLevel) -> Option<String> {
    let summary = level.outcome.as_ref().ok()?;
    Some(format!(
        "{} {:.2} {:.2} {:.2}\n",
        level.concurrency,
        summary.throughput_rps,
        summary.response.mean_ns / 1e6,
        // Rounded down: 99.999 % is not all.
        (summary.success_rate * 1e4).floor() / 1e2,
    ))
}
