//! Describes the state of a running study in words: what the study does now and why
//! ([`StudyStatus`]), and a row for each result ([`OutcomeRow`]).
//!
//! Not here: the terminal, and the figures of the current load (`progress`).

use crate::explain::prediction_text;
use crate::find::{search_text, trial_heading, trial_line};
use crate::format;
use crate::prove::{
    comparison_progress_text, ladder_heading, ladder_line, ladder_progress_text, prove_heading, prove_line,
};
use crate::run::load_text;
use plimsoll_analysis::prove::interim_looks;
use plimsoll_analysis::study::blocks::BlocksStatus;
use plimsoll_analysis::study::explain::HoldLevel;
use plimsoll_analysis::study::profiling::{TURNS_OF_SIDES, side_turn_index};
use plimsoll_analysis::study::search::planned_tag;
use plimsoll_analysis::study::{Comparison, Explain, History, Search, Study, TrialPlan};
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{ArmIndex, ExperimentSpec, Intervention, Lengths, Purpose, SweepSpec};

/// The number of blocks (rounds of measurements) after which the live log of a comparison gets
/// another row. A block measures every side once. The log also gets a row at each planned interim
/// test.
const BLOCKS_BETWEEN_LOG_ROWS: usize = 20;

/// What a study does now, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StudyStatus {
    /// What the study does now, such as the load that is running.
    pub doing: String,
    /// Why the study runs the current load; empty if no reason is stated.
    pub why: String,
    /// The maximum duration of the study, or of a load with profiles, in s; `None` if it is not
    /// known.
    pub total_s: Option<f64>,
}

/// Describes the load `trial` of a study, and why the study runs this load. For a comparison, the
/// reason is the text `standing`, which is the interim result of the comparison.
pub fn study_status(
    study: &Study,
    trial: &TrialPlan,
    asked: &ExperimentSpec,
    history: &History,
    standing: &str,
) -> StudyStatus {
    if trial.tag.purpose == Purpose::Profile {
        return profile_status(trial, asked);
    }
    let ((doing, why), total_ns) = match study {
        Study::Run(run, _) => {
            let total_ns = run.plan.load.duration_ns.map(|ns| ns + run.plan.load.warmup_ns);
            ((load_text(&trial.plan), String::new()), total_ns)
        }
        Study::Sweep(sweep) => {
            let total_ns = match sweep.lengths {
                Lengths::Budget(ns) => ns,
                Lengths::Fixed(ns) => (ns + sweep.warmup_ns) * sweep.levels.len() as u64,
            };
            ((level_text(sweep, trial, history), String::new()), Some(total_ns))
        }
        Study::Find(search) if trial.tag == planned_tag() => {
            let doing = format!("testing the rate with headroom: {load}", load = load_text(&trial.plan));
            ((doing, "this load tests the load line minus the headroom".to_owned()), Some(search.whole_ns()))
        }
        Study::Find(search) => (trial_text(search, trial, history), Some(search.whole_ns())),
        Study::Explain(explain) => (explain_text(explain, trial, history), Some(explain.budget_ns)),
        Study::Overload(overload) => (trial_text(&overload.search, trial, history), Some(overload.budget_ns)),
        Study::Blocks(comparison) => ((block_text(trial), standing.to_owned()), Some(comparison.budget_ns())),
    };
    StudyStatus { doing, why, total_s: total_ns.map(|ns| ns as f64 / 1e9) }
}

fn level_text(sweep: &SweepSpec, trial: &TrialPlan, history: &History) -> String {
    let visits = history.trials.iter().filter(|before| before.tag == trial.tag).count();
    let visit = if visits > 0 { format!(", visit {}", visits + 1) } else { String::new() };
    format!("{}, level {} of {}{visit}", load_text(&trial.plan), trial.tag.turn + 1, sweep.levels.len())
}

fn block_text(trial: &TrialPlan) -> String {
    let arm = trial.tag.arm.map_or('A', ArmIndex::letter);
    match trial.tag.purpose {
        Purpose::Block => format!("block {}: {arm}", trial.tag.turn + 1),
        _ => format!("peak of {arm}: {} users", trial.plan.load.shape.curve().max()),
    }
}

/// Describes the next trial of a search: the load, and why the search makes this trial.
fn trial_text(search: &Search, trial: &TrialPlan, history: &History) -> (String, String) {
    search_text(trial.tag.purpose, &trial.plan, search.so_far(history.elapsed_ns))
}

fn explain_text(explain: &Explain, trial: &TrialPlan, history: &History) -> (String, String) {
    let load = load_text(&trial.plan);
    if let Some(level) = HoldLevel::from_tag(&trial.tag) {
        let why = "the changes from a low load to past the load line show the bottleneck";
        return (format!("holding {}: {load}", level.text()), why.to_owned());
    }
    if let Some(intervention) = Intervention::from_tag(&trial.tag) {
        let predicted = explain.predicted(history.trials, intervention);
        return (format!("{}: {load}", intervention.text()), prediction_text(intervention, &predicted));
    }
    match varied_number(&trial.tag).and_then(|number| explain.varied.get(number)) {
        Some(value) => {
            (format!("setting {value}: {load}"), "this load measures the effect of a setting of the server".to_owned())
        }
        None => trial_text(&explain.search, trial, history),
    }
}

/// Describes a load during which profiles of the server are taken.
fn profile_status(trial: &TrialPlan, asked: &ExperimentSpec) -> StudyStatus {
    let load = &trial.plan.load;
    let (doing, why) = match trial.tag.arm {
        None => {
            let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.arrivals_word());
            let doing = format!("profiling at {rate} {counted}/s ({})", asked.profile_name(&trial.tag));
            (doing, "profiles are taken after the measurement, so that they do not disturb the measurement")
        }
        Some(arm) => {
            let turn = side_turn_index(&trial.tag).map_or(0, |turn| turn + 1);
            let doing = format!("profile {turn} of {TURNS_OF_SIDES}: {}", arm.letter());
            (doing, "profiles are taken after the blocks, so that they do not disturb the blocks")
        }
    };
    let total_s = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64 / 1e9;
    StudyStatus { doing, why: why.to_owned(), total_s: Some(total_s) }
}

/// Formats the line that announces a load during which profiles are taken. In a study of one
/// server, each load with profiles is announced. In a comparison, only the first load with profiles
/// is announced, and the result is `None` for later loads.
pub fn profile_line(study: &Study, trial: &TrialPlan, asked: &ExperimentSpec, history: &History) -> Option<String> {
    let load = &trial.plan.load;
    let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.arrivals_word());
    let length_ns = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64;
    match trial.tag.arm {
        None => {
            let name = asked.profile_name(&trial.tag);
            Some(format!("profiling at {rate} {counted}/s ({name}), {}", format::duration(length_ns)))
        }
        Some(_) if study.is_profiling(history) => None,
        Some(_) => {
            let time = format::duration(length_ns * TURNS_OF_SIDES as f64);
            Some(format!("profiling both sides in turn at {rate} {counted}/s, for {time}"))
        }
    }
}

/// The row that the latest result of a study adds to the live log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutcomeRow {
    /// The column headings of the log, and the row; `None` if the result adds no row.
    pub row: Option<(String, String)>,
    /// The interim result of a comparison or a ladder, as a sentence; `None` for other kinds of
    /// studies.
    pub standing: Option<String>,
}

/// Formats the log row for the latest result of a study, in lines of at most `columns` characters.
pub fn outcome_row(study: &Study, history: &History, columns: Option<usize>) -> OutcomeRow {
    let search: &Search = match study {
        Study::Find(search) => search,
        Study::Explain(explain) => &explain.search,
        Study::Overload(overload) => &overload.search,
        Study::Blocks(comparison) => return block_row(comparison, history, columns),
        Study::Run(..) | Study::Sweep(_) => return OutcomeRow::default(),
    };
    let row = search
        .outcomes
        .last()
        .map(|outcome| (trial_heading(columns), trial_line(history.elapsed_ns, outcome, columns)));
    OutcomeRow { row, standing: None }
}

fn block_row(comparison: &Comparison, history: &History, columns: Option<usize>) -> OutcomeRow {
    let Some(stand) = comparison.interim_status(history.trials) else { return OutcomeRow::default() };
    let (heading, line, standing) = match (&stand, comparison.rules()) {
        (BlocksStatus::Proof(standing, enough_ns), Some(rules)) => {
            let line = prove_line(history.elapsed_ns, rules, standing);
            (prove_heading(), line, comparison_progress_text(rules, standing, *enough_ns))
        }
        (BlocksStatus::Ladder(ladder), _) => {
            (ladder_heading(), ladder_line(history.elapsed_ns, ladder, columns), ladder_progress_text(ladder))
        }
        (BlocksStatus::Proof(..), None) => return OutcomeRow::default(),
    };
    let number = comparison.blocks().len();
    let has_row = interim_looks::interim(stand.blocks()).is_some() || number.is_multiple_of(BLOCKS_BETWEEN_LOG_ROWS);
    OutcomeRow { row: has_row.then_some((heading, line)), standing: Some(standing) }
}
