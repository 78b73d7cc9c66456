//! The first screen of a sweep, which measures several numbers of concurrent users (levels). The
//! answer states the peak throughput and the knee (the fewest users with 95 % of the peak), and
//! each level has a row.
//!
//! Not here: formatting the rows, and the page (`sweep`).

use super::{Screen, shorten_to_lines};
use crate::sweep::{DISTURBED_REMARK_PREFIX, interval_column_note, sweep_answer, sweep_row, sweep_table_heading};
use crate::wrap::wrap_text;
use plimsoll_analysis::FailedResponseGroup;
use plimsoll_analysis::finding::{SweepFinding, SweepLevel};
use plimsoll_model::Experiment;

/// The maximum number of levels (numbers of users) on a screen. For a sweep with more levels, the
/// screen shows evenly spaced levels, and the levels with the peak and the knee.
const LEVELS_MAX: usize = 10;
/// The indentation of the reason why a level was not measured, in columns.
const REASON_INDENT: usize = 10;

/// Returns the levels (numbers of users) that the screen shows. The list has evenly spaced levels
/// from the first level to the last level, and the levels with the peak and the knee.
fn levels_to_show<'a, 'b>(found: &'b SweepFinding<'a>) -> Vec<&'b SweepLevel<'a>> {
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

/// The number of characters of [`DISTURBED_REMARK_PREFIX`] that identify the remark about a
/// disturbed machine. The number is small, because a narrow terminal may break the remark's line
/// after a few words.
const DISTURBED_REMARK_PREFIX_CHARS: usize = 14;

/// Removes the remark about interference from a table row, because a warning on the screen already
/// states the interference.
fn remove_interference_remark(row: &str) -> String {
    // The remark about interference is at the end of the table row. On a narrow terminal, the
    // remark takes several lines.
    let beginning: String = DISTURBED_REMARK_PREFIX.chars().take(DISTURBED_REMARK_PREFIX_CHARS).collect();
    let is_row = |line: &&str| !line.trim_start().starts_with(&beginning);
    row.lines().take_while(is_row).collect::<Vec<_>>().join("\n")
}

/// Renders the first screen of a sweep.
pub(crate) fn sweep_screen<'a>(experiment: &Experiment, found: &'a SweepFinding) -> Screen<'a> {
    let mut screen = Screen::new(sweep_answer(found));
    let levels = levels_to_show(found);
    let more = found.levels.len().saturating_sub(levels.len());
    screen.add_lines(0, move |columns| {
        let row = |level: &&SweepLevel| match &level.outcome {
            Ok(_) => remove_interference_remark(&sweep_row(level, Some(columns))),
            // For a level that was not measured, the row states the reason.
            Err(_) => {
                wrap_text(&shorten_to_lines(&sweep_row(level, None), REASON_INDENT, 2), Some(columns), REASON_INDENT)
            }
        };
        let more = (more > 0).then(|| format!("  {more} more levels: --verbose"));
        std::iter::once(sweep_table_heading(Some(columns))).chain(levels.iter().map(row)).chain(more).collect()
    });
    if let Some(text) = interval_column_note(&found.levels) {
        screen.add_fact(2, "+/-", text);
    }
    screen.add_failed_response(3, &FailedResponseGroup::failures_of_trials(experiment.trials.iter()));
    screen
}
