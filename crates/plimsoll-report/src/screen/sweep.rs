//! The first screen of a sweep: peak and knee, and a row for each level.
//!
//! Not here: the rows themselves, and the page (`sweep`).

use super::{Screen, clip};
use crate::sweep::{REMARK, error_text, sweep_answer, sweep_header, sweep_row};
use crate::wrap::broken;
use plimsoll_analysis::FailedKind;
use plimsoll_analysis::finding::{SweepFinding, SweepLevel};
use plimsoll_model::Experiment;

/// Levels that a screen lists; they are evenly spaced among all levels.
const LEVELS_MAX: usize = 10;
/// Columns before the reason why a level was not measured.
const REASON_INDENT: usize = 10;

/// The levels to be listed: first and last, peak and knee, and what lies evenly between.
fn listed<'a, 'b>(found: &'b SweepFinding<'a>) -> Vec<&'b SweepLevel<'a>> {
    let all = &found.levels;
    if all.len() <= LEVELS_MAX {
        return all.iter().collect();
    }
    let step = (all.len() - 1) as f64 / (LEVELS_MAX - 3) as f64;
    let mut chosen: Vec<usize> = (0..LEVELS_MAX - 2).map(|at| (at as f64 * step).round() as usize).collect();
    for load in [&found.peak, &found.knee].into_iter().flatten().map(|level| level.load) {
        chosen.extend(all.iter().position(|level| level.concurrency as f64 == load));
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().filter_map(|at| all.get(at)).collect()
}

/// Least number of characters of a remark, however narrow the terminal.
const REMARK_BEGINNING: usize = 15;

/// A row without the remark about interference: a warning contains it.
fn without_remark(row: &str) -> String {
    // It is the end of the row, in several lines on a narrow terminal.
    let beginning: String = REMARK.chars().take(REMARK_BEGINNING).collect();
    let is_row = |line: &&str| !line.trim_start().starts_with(&beginning);
    row.lines().take_while(is_row).collect::<Vec<_>>().join("\n")
}

/// The screen of a sweep.
pub(crate) fn sweep_screen<'a>(experiment: &Experiment, found: &'a SweepFinding) -> Screen<'a> {
    let mut screen = Screen::new(sweep_answer(found));
    let levels = listed(found);
    let more = found.levels.len().saturating_sub(levels.len());
    screen.lines(0, move |columns| {
        let row = |level: &&SweepLevel| match &level.outcome {
            Ok(_) => without_remark(&sweep_row(level, Some(columns))),
            // Why a level was not measured.
            Err(_) => broken(&clip(&sweep_row(level, None), REASON_INDENT, 2), Some(columns), REASON_INDENT),
        };
        let more = (more > 0).then(|| format!("  {more} more levels: --verbose"));
        std::iter::once(sweep_header(Some(columns))).chain(levels.iter().map(row)).chain(more).collect()
    });
    if let Some(text) = error_text(&found.levels) {
        screen.fact(2, "+/-", text);
    }
    screen.failed_response(3, &FailedKind::of_trials(experiment.trials.iter()));
    screen
}
