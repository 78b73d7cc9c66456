//! Describes the state of a running study in words: what the study does now and why
//! ([`StudyStatus`]), and a row for each result ([`LiveLogEntry`]).
//!
//! Not here: the terminal, and the figures of the current load (`progress`).

use crate::explain::prediction_text;
use crate::find::{live_log_heading, live_log_trial_row, next_load_texts};
use crate::format;
use crate::prove::{
    comparison_log_heading, comparison_log_row, comparison_progress_text, ladder_log_heading, ladder_log_row,
    ladder_progress_text,
};
use crate::run::load_text;
use plimsoll_analysis::prove::evaluations;
use plimsoll_analysis::study::blocks::InterimBlocksResult;
use plimsoll_analysis::study::explain::SteadyLoadLevel;
use plimsoll_analysis::study::profiling::{SIDE_PROFILES_COUNT, side_profile_index};
use plimsoll_analysis::study::search::headroom_load_tag;
use plimsoll_analysis::study::{ComparisonStudy, ExplainStudy, History, LoadLineSearch, Study, TrialPlan};
use plimsoll_model::intervention::setting_value_index;
use plimsoll_model::{ArmIndex, ExperimentSpec, Intervention, LevelDurations, LoadPurpose, SweepSpec};

/// The live log of a comparison gets another row after this number of blocks. A block is one round
/// of measurements, in which every side is measured once. The log also gets a row at each planned
/// interim test.
const BLOCKS_BETWEEN_LOG_ROWS: usize = 20;

/// What a study does now, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StudyStatus {
    /// What the study does now, such as the load that is running.
    pub activity: String,
    /// Why the study runs the current load; empty if no reason is stated.
    pub why: String,
    /// The maximum duration of the study, or of a load with profiles, in s; `None` if it is not
    /// known.
    pub total_s: Option<f64>,
}

/// Describes the load `trial` of a study, and why the study runs this load. For a comparison, the
/// reason is the text `interim_result`, which is the interim result of the comparison.
pub fn study_status(
    study: &Study,
    trial: &TrialPlan,
    spec: &ExperimentSpec,
    history: &History,
    interim_result: &str,
) -> StudyStatus {
    if trial.tag.purpose == LoadPurpose::Profile {
        return profile_status(trial, spec);
    }
    let ((doing, why), total_ns) = match study {
        Study::Run(run, _) => {
            let total_ns = run.plan.load.duration_ns.map(|ns| ns + run.plan.load.warmup_ns);
            ((load_text(&trial.plan), String::new()), total_ns)
        }
        Study::Sweep(sweep) => {
            let total_ns = match sweep.lengths {
                LevelDurations::Budget(ns) => ns,
                LevelDurations::Fixed(ns) => (ns + sweep.warmup_ns) * sweep.levels.len() as u64,
            };
            ((sweep_level_text(sweep, trial, history), String::new()), Some(total_ns))
        }
        Study::Find(search) if trial.tag == headroom_load_tag() => {
            let doing = format!("testing the rate with headroom: {load}", load = load_text(&trial.plan));
            ((doing, "this load tests the load line minus the headroom".to_owned()), Some(search.study_time_ns()))
        }
        Study::Find(search) => (search_trial_text(search, trial, history), Some(search.study_time_ns())),
        Study::Explain(explain) => (explain_load_text(explain, trial, history), Some(explain.budget_ns)),
        Study::Overload(overload) => (search_trial_text(&overload.search, trial, history), Some(overload.budget_ns)),
        Study::Blocks(comparison) => {
            ((block_load_text(trial), interim_result.to_owned()), Some(comparison.budget_ns()))
        }
    };
    StudyStatus { activity: doing, why, total_s: total_ns.map(|ns| ns as f64 / 1e9) }
}

fn sweep_level_text(sweep: &SweepSpec, trial: &TrialPlan, history: &History) -> String {
    let visits = history.trials.iter().filter(|before| before.tag == trial.tag).count();
    let visit = if visits > 0 { format!(", visit {}", visits + 1) } else { String::new() };
    format!("{}, level {} of {}{visit}", load_text(&trial.plan), trial.tag.turn + 1, sweep.levels.len())
}

fn block_load_text(trial: &TrialPlan) -> String {
    let arm = trial.tag.arm.map_or('A', ArmIndex::letter);
    match trial.tag.purpose {
        LoadPurpose::Block => format!("block {}: {arm}", trial.tag.turn + 1),
        _ => format!("peak of {arm}: {} users", trial.plan.load.shape.curve().max()),
    }
}

/// Describes the next trial of a search: the load, and why the search makes this trial.
fn search_trial_text(search: &LoadLineSearch, trial: &TrialPlan, history: &History) -> (String, String) {
    next_load_texts(trial.tag.purpose, &trial.plan, search.interim_load_line(history.elapsed_ns))
}

fn explain_load_text(explain: &ExplainStudy, trial: &TrialPlan, history: &History) -> (String, String) {
    let load = load_text(&trial.plan);
    if let Some(level) = SteadyLoadLevel::from_tag(&trial.tag) {
        let why = "the changes from a low load to past the load line show the bottleneck";
        return (format!("holding {}: {load}", level.level_name()), why.to_owned());
    }
    if let Some(intervention) = Intervention::from_tag(&trial.tag) {
        let predicted = explain.experiment_predictions(history.trials, intervention);
        return (format!("{}: {load}", intervention.description()), prediction_text(intervention, &predicted));
    }
    match setting_value_index(&trial.tag).and_then(|number| explain.setting_values.get(number)) {
        Some(value) => {
            (format!("setting {value}: {load}"), "this load measures the effect of a setting of the server".to_owned())
        }
        None => search_trial_text(&explain.search, trial, history),
    }
}

/// Describes a load during which profiles of the server are taken.
fn profile_status(trial: &TrialPlan, spec: &ExperimentSpec) -> StudyStatus {
    let load = &trial.plan.load;
    let (doing, why) = match trial.tag.arm {
        None => {
            let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.arrivals_word());
            let doing = format!("profiling at {rate} {counted}/s ({})", spec.profile_name(&trial.tag));
            (doing, "profiling follows the measurement, so that profiling does not disturb the measurement")
        }
        Some(arm) => {
            let turn = side_profile_index(&trial.tag).map_or(0, |turn| turn + 1);
            let doing = format!("profile {turn} of {SIDE_PROFILES_COUNT}: {}", arm.letter());
            (doing, "profiling follows the compared loads, so that profiling does not disturb these loads")
        }
    };
    let total_s = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64 / 1e9;
    StudyStatus { activity: doing, why: why.to_owned(), total_s: Some(total_s) }
}

/// Formats the line that announces a load during which profiles are taken. In a study of one
/// server, each load with profiles is announced. In a comparison, only the first load with profiles
/// is announced, and the result is `None` for later loads.
pub fn profile_announcement(
    study: &Study,
    trial: &TrialPlan,
    spec: &ExperimentSpec,
    history: &History,
) -> Option<String> {
    let load = &trial.plan.load;
    let (rate, counted) = (format::rate(load.shape.curve().max()), trial.plan.traffic.arrivals_word());
    let length_ns = (load.warmup_ns + load.duration_ns.unwrap_or(0)) as f64;
    match trial.tag.arm {
        None => {
            let name = spec.profile_name(&trial.tag);
            Some(format!("profiling at {rate} {counted}/s ({name}), {}", format::duration(length_ns)))
        }
        Some(_) if study.is_profiling(history) => None,
        Some(_) => {
            let time = format::duration(length_ns * SIDE_PROFILES_COUNT as f64);
            Some(format!("profiling A and B in turn at {rate} {counted}/s, for {time}"))
        }
    }
}

/// The row that the latest result of a study adds to the live log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveLogEntry {
    /// The column headings of the log, and the row; `None` if the result adds no row.
    pub row: Option<(String, String)>,
    /// The interim result of a comparison or a ladder, as a sentence; `None` for other kinds of
    /// studies.
    pub interim_result: Option<String>,
}

/// Formats the log row for the latest result of a study, in lines of at most `columns` characters.
pub fn live_log_entry(study: &Study, history: &History, columns: Option<usize>) -> LiveLogEntry {
    let search: &LoadLineSearch = match study {
        Study::Find(search) => search,
        Study::Explain(explain) => &explain.search,
        Study::Overload(overload) => &overload.search,
        Study::Blocks(comparison) => return interim_log_entry(comparison, history, columns),
        Study::Run(..) | Study::Sweep(_) => return LiveLogEntry::default(),
    };
    let trials = search.findings(history.elapsed_ns).trials;
    let row = trials
        .last()
        .map(|outcome| (live_log_heading(columns), live_log_trial_row(history.elapsed_ns, outcome, columns)));
    LiveLogEntry { row, interim_result: None }
}

fn interim_log_entry(comparison: &ComparisonStudy, history: &History, columns: Option<usize>) -> LiveLogEntry {
    let Some(stand) = comparison.interim_status(history.trials) else { return LiveLogEntry::default() };
    let (heading, line, standing) = match (&stand, comparison.rules()) {
        (InterimBlocksResult::Comparison(standing, enough_ns), Some(rules)) => {
            let line = comparison_log_row(history.elapsed_ns, rules, standing);
            (comparison_log_heading(), line, comparison_progress_text(rules, standing, *enough_ns))
        }
        (InterimBlocksResult::Ladder(ladder), _) => {
            (ladder_log_heading(), ladder_log_row(history.elapsed_ns, ladder, columns), ladder_progress_text(ladder))
        }
        (InterimBlocksResult::Comparison(..), None) => return LiveLogEntry::default(),
    };
    let number = comparison.blocks().len();
    let has_row = evaluations::planned_evaluation(stand.valid_block_count()).is_some()
        || number.is_multiple_of(BLOCKS_BETWEEN_LOG_ROWS);
    LiveLogEntry { row: has_row.then_some((heading, line)), interim_result: Some(standing) }
}
