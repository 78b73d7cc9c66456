//! What a run file of a sweep holds.

use super::{print, print_report};
use plimsoll_analysis::levels::{self, Level, LoadUnit};
use plimsoll_analysis::{ServerUse, Summary, series};
use plimsoll_model::{Asked, Experiment, Remark, Trial, Unheld};
use plimsoll_report::{
    Around, Report, ServerView, SweepFigures, SweepLevel, json, server_document, sweep_header, sweep_page,
    sweep_report, sweep_row, unheld_text,
};
use std::io::IsTerminal;

/// The level that a load measured; `None` where it is none.
pub fn measured(trial: &Trial) -> Option<SweepLevel> {
    let (LoadUnit::Concurrency, level) = Level::of(&trial.run)? else { return None };
    let run = &trial.run;
    let figures = SweepFigures { summary: Summary::of(run), error: series::goodput_error(run), level: level.clone() };
    let server = ServerUse::of(run).ok();
    Some(SweepLevel { concurrency: level.load as u64, outcome: Ok(figures), server })
}

/// Columns of the terminal that the table goes to; `None` where lines may be of any length.
pub fn columns() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0)
}

/// The page of a recorded sweep.
pub fn page(experiment: &Experiment, around: &Around) -> Report {
    sweep_page(experiment, &noted(experiment), &recorded(experiment), around)
}

/// What was warned of before the sweep.
pub fn noted(experiment: &Experiment) -> Vec<String> {
    experiment.noted.warnings.clone()
}

/// A level that could not be measured.
pub fn unheld(concurrency: u64, reason: &Unheld) -> SweepLevel {
    SweepLevel { concurrency, outcome: Err(unheld_text(reason).to_owned()), server: None }
}

/// The levels of a recorded sweep as asked for: what could not be held stands in its place.
pub fn recorded(experiment: &Experiment) -> Vec<SweepLevel> {
    let Asked::Sweep(asked) = &experiment.asked else { return Vec::new() };
    let loads = levels::measured(experiment);
    let of_turn = |(turn, users): (u32, &u64)| {
        let load = loads.iter().find(|trial| trial.tag.turn == turn).and_then(|trial| measured(trial));
        let reason = || {
            experiment.remarks.iter().find_map(|remark| match remark {
                Remark::Unheld { tag, reason } if tag.turn == turn => Some(unheld(*users, reason)),
                _ => None,
            })
        };
        load.or_else(reason)
    };
    (0..).zip(&asked.levels).filter_map(of_turn).collect()
}

/// Prints the result of a recorded sweep.
pub fn show(experiment: &Experiment) {
    let levels = recorded(experiment);
    let rows = levels.iter().map(|level| sweep_row(level, columns()) + "\n").collect::<String>();
    print(&format!("{}\n{rows}\n", sweep_header(columns())));
    print_report(&sweep_report(experiment, &noted(experiment), &levels));
}

/// The JSON document of a recorded sweep, with what was seen of the server at each level.
pub fn document(experiment: &Experiment) -> serde_json::Value {
    let mut document = json::sweep(experiment, &noted(experiment), &recorded(experiment));
    let loads = levels::measured(experiment);
    let measured = document["levels"].as_array_mut().into_iter().flatten().filter(|level| level["error"].is_null());
    for (level, load) in measured.zip(loads) {
        level["server"] = server_document(&ServerView::of(&load.run));
    }
    document
}
