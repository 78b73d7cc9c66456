//! Formats the progress of a running load. On a terminal, the progress is a few lines that are
//! rewritten in place. In other output, such as a log, the progress is one plain line.
//!
//! Not here: writing to a terminal, and collecting figures.

use crate::format::{count, duration, rate};
use crate::visible_controls::escape_to_one_line;
use crate::wrap::wrap_text;
use plimsoll_analysis::live_meter::LiveFigures;

/// The state of a running experiment, as the progress display shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// What the experiment does now, such as the load `64 users`.
    pub activity: String,
    /// Why the experiment runs the current load; empty if no reason is stated.
    pub why: String,
    /// The time since the experiment began, in s.
    pub elapsed_s: f64,
    /// The maximum duration of the experiment in s; `None` if it is not known.
    pub total_s: Option<f64>,
    /// The successful requests a second in each interval since the first load began, the oldest
    /// interval first. All intervals have equal length.
    pub rates_rps: Vec<f64>,
    /// The load's figures of the last second; `None` before the first measurement.
    pub live_figures: Option<LiveFigures>,
    /// The number of requests of the current load that failed or were never sent.
    pub failed_or_unsent: u64,
    /// The number of cores that the server used in the last second; `None` if the server was not
    /// observed.
    pub server_cores: Option<f64>,
}

const UNICODE_SPARKLINE_CHARACTERS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The characters of a sparkline for terminals without Unicode.
const ASCII_SPARKLINE_CHARACTERS: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

/// Formats `values` as a sparkline of at most `width` characters, the oldest value first. If there
/// are more values than characters, each character shows the mean of several values. The height of
/// a character is proportional to its value.
pub fn sparkline(values: &[f64], width: usize, unicode: bool) -> String {
    if values.is_empty() || width == 0 {
        return String::new();
    }
    let joined = values.len().div_ceil(width);
    let columns: Vec<f64> = values.chunks(joined).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect();
    let most = columns.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let signs = if unicode { UNICODE_SPARKLINE_CHARACTERS } else { ASCII_SPARKLINE_CHARACTERS };
    let sign = |value: f64| match (value / most * 7.0).round() {
        height if most > 0.0 && height.is_finite() => signs[height.clamp(0.0, 7.0) as usize],
        _ => signs[0],
    };
    columns.into_iter().map(sign).collect()
}

fn progress_bar(share: f64, width: usize, unicode: bool) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let (on, off) = if unicode { ('━', '─') } else { ('=', '-') };
    (0..width).map(|at| if at < full { on } else { off }).collect()
}

/// Wraps `text` into lines of at most `columns` characters, and cuts words that are longer than a
/// line. No line exceeds the terminal's width, so the caller knows how many terminal rows to erase
/// before the next update.
fn wrap_lines(text: &str, columns: usize, indent: usize) -> impl Iterator<Item = String> {
    let lines = wrap_text(text, Some(columns), indent);
    lines.lines().map(|line| line.chars().take(columns).collect()).collect::<Vec<String>>().into_iter()
}

fn remaining_time_text(progress: &Progress) -> String {
    match progress.total_s {
        Some(total) => format!("{:.0} s left", (total - progress.elapsed_s).max(0.0).ceil()),
        None => String::new(),
    }
}

fn live_figure_texts(progress: &Progress, now: &LiveFigures) -> Vec<String> {
    // If no response arrived in the last second, or if too few responses were slower than a
    // quantile, the time is shown as `-`.
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
    let mut figures = vec![
        format!("p50 {:>7}", time(now.p50_ns)),
        format!("p90 {:>7}", time(now.p90_ns)),
        format!("p99 {:>7}", time(now.p99_ns)),
        format!("max {:>7}", time(Some(now.max_ns).filter(|ns| *ns > 0))),
        format!("{} bad", count(progress.failed_or_unsent)),
        format!("{} in flight", count(now.in_flight)),
    ];
    figures.extend(progress.server_cores.map(|cores| format!("server {cores:.2} cores")));
    figures
}

/// Returns the lines of the progress display for a terminal with `columns` columns. The caller
/// overwrites the lines of the previous call with the new lines.
pub fn progress_display_lines(progress: &Progress, columns: usize, unicode: bool) -> Vec<String> {
    // The last column of the terminal stays empty, because some terminals begin a new row after a
    // character in the last column.
    let columns = columns.saturating_sub(1).max(20);
    let mut lines: Vec<String> = wrap_lines(&escape_to_one_line(&progress.activity), columns, 2).collect();
    if !progress.why.is_empty() {
        lines.extend(wrap_lines(&format!("  {}", escape_to_one_line(&progress.why)), columns, 2));
    }
    let clock = match progress.total_s {
        Some(total) => format!("  {:.1} of {total:.0} s", progress.elapsed_s),
        None => format!("  {:.1} s", progress.elapsed_s),
    };
    let left = remaining_time_text(progress);
    let clock = format!("{clock:<20}");
    match progress.total_s {
        Some(total) if total > 0.0 => {
            let width = columns.saturating_sub(clock.chars().count() + left.len() + 2).min(60);
            let bar = progress_bar(progress.elapsed_s / total, width, unicode);
            lines.extend(wrap_lines(&format!("{clock}{bar}  {left}"), columns, 2));
        }
        _ => lines.extend(wrap_lines(clock.trim_end(), columns, 2)),
    }
    if let Some(now) = &progress.live_figures {
        let rps = format!("{:<20}", format!("  {}/s", rate(now.rps)));
        let width = columns.saturating_sub(rps.chars().count()).min(120);
        lines.push(format!("{rps}{}", sparkline(&progress.rates_rps, width, unicode)));
        let mut line = String::new();
        for figure in live_figure_texts(progress, now) {
            // A figure that does not fit on the line is omitted, because a figure with missing
            // digits would mislead.
            if line.chars().count() + 2 + figure.chars().count() <= columns {
                line.push_str("  ");
                line.push_str(&figure);
            }
        }
        lines.push(line);
    }
    lines
}

/// Formats the progress of a running load as one plain line, for logs.
pub fn progress_line(progress: &Progress) -> String {
    let mut parts = vec![match progress.total_s {
        Some(total) => format!("{:.1} of {total:.0} s", progress.elapsed_s),
        None => format!("{:.1} s", progress.elapsed_s),
    }];
    parts.push(escape_to_one_line(&progress.activity).into_owned());
    // The line omits the figures at the beginning of a load, because most responses have not
    // arrived yet and the figures would mislead.
    if let Some(now) = progress.live_figures.as_ref().filter(|now| !now.has_just_begun) {
        parts.push(format!("completes {}/s", rate(now.rps)));
        let figures = live_figure_texts(progress, now).into_iter();
        parts.extend(figures.map(|f| f.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example_progress() -> Progress {
        Progress {
            activity: "64 users".into(),
            why: "the most that it can answer is looked for".into(),
            elapsed_s: 12.34,
            total_s: Some(30.0),
            rates_rps: (0..100).map(|k| f64::from(k % 17)).collect(),
            live_figures: Some(LiveFigures {
                rps: 16_206.0,
                p50_ns: Some(1_200_000),
                p90_ns: Some(2_000_000),
                p99_ns: Some(75_900_000),
                max_ns: 210_000_000,
                in_flight: 64,
                has_just_begun: false,
            }),
            failed_or_unsent: 3,
            server_cores: None,
        }
    }

    #[test]
    fn the_progress_block_shows_known_figures() {
        let lines = progress_display_lines(&example_progress(), 80, true);
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0], "64 users");
        assert!(lines[2].starts_with("  12.3 of 30 s") && lines[2].ends_with("18 s left"), "{}", lines[2]);
        assert!(lines[3].starts_with("  16 206/s") && lines[3].contains('█'), "{}", lines[3]);
        assert_eq!(lines[4], "  p50 1.20 ms  p90 2.00 ms  p99 75.9 ms  max  210 ms  3 bad  64 in flight");
        let plain = progress_line(&example_progress());
        assert_eq!(
            plain,
            "12.3 of 30 s, 64 users, completes 16 206/s, p50 1.20 ms, p90 2.00 ms, p99 75.9 ms, max 210 ms, 3 bad, 64 in flight"
        );
    }

    #[test]
    fn a_line_has_no_figures_of_a_load_that_has_just_begun() {
        let now = LiveFigures { has_just_begun: true, ..LiveFigures::default() };
        assert_eq!(
            progress_line(&Progress { live_figures: Some(now), ..example_progress() }),
            "12.3 of 30 s, 64 users"
        );
    }

    #[test]
    fn server_cores_are_shown_if_observed() {
        let seen = Progress { server_cores: Some(1.234), ..example_progress() };
        assert!(progress_line(&seen).ends_with(", 64 in flight, server 1.23 cores"), "{}", progress_line(&seen));
        assert!(progress_display_lines(&seen, 110, true)[4].ends_with("  server 1.23 cores"));
    }

    #[test]
    fn sparkline_heights_follow_values() {
        for (values, width, expect) in [
            (&[0.0, 1.0, 2.0, 7.0][..], 10, "▁▂▃█"),
            (&[1.0, 1.0, 7.0, 7.0][..], 2, "▂█"),
            (&[0.0, 0.0][..], 5, "▁▁"),
            (&[][..], 5, ""),
            (&[1.0][..], 0, ""),
            (&[f64::NAN, 7.0][..], 5, "▁█"),
        ] {
            assert_eq!(sparkline(values, width, true), expect, "{values:?}");
        }
        assert_eq!(sparkline(&[0.0, 7.0], 5, false), "_#");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            columns in 0..250usize,
            rates in prop::collection::vec(prop::num::f64::ANY, 0..300),
            doing in "\\PC{0,120}",
            total in prop::option::of(0.0..1e6f64),
            unicode: bool,
            figures in any::<[u64; 4]>(),
        ) {
            let now = LiveFigures { p50_ns: Some(figures[0]), p99_ns: Some(figures[1]), in_flight: figures[2], ..LiveFigures::default() };
            let progress = Progress { activity: doing, total_s: total, rates_rps: rates, live_figures: Some(now), failed_or_unsent: figures[3], ..example_progress() };
            for line in progress_display_lines(&progress, columns, unicode) {
                prop_assert!(line.chars().count() < columns.max(21), "{columns}: {line}");
                prop_assert!(unicode || line.is_ascii() || !progress.activity.is_ascii(), "{line}");
            }
        }
    }
}
