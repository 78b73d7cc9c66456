//! The first screen of a sweep: peak and knee, and a row for each level.
//!
//! Not here: the rows themselves, and the page (`sweep`).

use super::{COLUMNS_MAX, Screen};
use crate::failed;
use crate::sweep::{error_text, sweep_answer, sweep_header, sweep_row};
use plimsoll_analysis::FailedKind;
use plimsoll_analysis::finding::{SweepFinding, SweepLevel};
use plimsoll_model::Experiment;

/// Levels that a screen lists: others lie evenly between these.
const LEVELS_MAX: usize = 10;

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

/// The screen of a sweep.
pub(crate) fn sweep_screen(experiment: &Experiment, found: &SweepFinding) -> Screen {
    let mut screen = Screen::new(sweep_answer(found));
    let levels = listed(found);
    let mut lines = vec![sweep_header(Some(COLUMNS_MAX))];
    // What others did to a level, and why one was not measured, is one line here.
    let row = |level: &&SweepLevel| sweep_row(level, Some(COLUMNS_MAX)).lines().next().unwrap_or_default().to_owned();
    lines.extend(levels.iter().map(row));
    let more = found.levels.len() - levels.len();
    if more > 0 {
        lines.push(format!("  {more} more levels: --verbose"));
    }
    screen.lines(0, lines);
    if let Some(text) = error_text(&found.levels) {
        screen.fact(2, "+/-", text);
    }
    let kinds = FailedKind::of_trials(experiment.trials.iter());
    for (label, text) in failed::facts(&kinds).into_iter().take(1) {
        screen.fact(3, label, text);
    }
    screen
}
