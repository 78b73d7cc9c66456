//! Prints the results of an experiment as text, JSON document or page ([`Results`]). The experiment
//! has just been executed, or comes from a run file. Findings are always computed from the
//! measurements.
//!
//! Not here: making experiments (the commands), arithmetic (`plimsoll-analysis`), layout
//! (`plimsoll-report`).

pub mod page;

use plimsoll_analysis::finding::SearchFinding;
use plimsoll_analysis::finding::explain::explain_search;
use plimsoll_analysis::profile_findings::ProfileFindings;
use plimsoll_analysis::{Assessment, Finding, compute_finding};
use plimsoll_history::{decode_experiment, read_experiment};
use plimsoll_model::experiment_settings::OutputSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{Experiment, Plan};
use plimsoll_report::{
    LINES_MAX, PageAdditions, RecordedSearch, Report, ResultView, event_lines, json, profiles_section,
    render_shortened_report, text,
};
pub use plimsoll_study::output::print;
use plimsoll_study::output::{print_to_stderr, print_unescaped};
use plimsoll_study::{load_profiles, side_profiles};
use plimsoll_traffic::target_url::redact_for_terminal;
use std::io::IsTerminal;
use std::path::Path;

/// The form in which a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultForm {
    /// The result is printed as one screen of text: the answer, how sure it is, and what to do
    /// next.
    Text,
    /// The result is printed as text with all figures, tables and warnings (`--verbose`).
    Verbose,
    /// The result is printed as one JSON document (`--json`).
    Json,
    /// The result is the last line of a stream of JSON lines (`--json-lines`).
    Lines,
}

impl<T> From<&OutputSettings<T>> for ResultForm {
    fn from(output: &OutputSettings<T>) -> ResultForm {
        match (output.json_lines, output.verbose) {
            (true, _) => ResultForm::Lines,
            (false, true) if !output.json => ResultForm::Verbose,
            (false, _) => output.json.into(),
        }
    }
}

impl From<bool> for ResultForm {
    /// Returns [`ResultForm::Json`] for true, and [`ResultForm::Text`] for false.
    fn from(is_json: bool) -> ResultForm {
        if is_json { ResultForm::Json } else { ResultForm::Text }
    }
}

/// An experiment with its findings.
pub struct Results<'a> {
    experiment: &'a Experiment,
    finding: Assessment<Finding<'a>>,
    /// The findings of profiles that were taken with the experiment.
    pub profiles: Option<ProfileFindings>,
    path: Option<&'a Path>,
    typed_url: Option<String>,
}

impl<'a> Results<'a> {
    /// Computes the findings of an experiment. Reads the profiles that are stored next to the run
    /// file at `path`.
    pub fn from_experiment(experiment: &'a Experiment, path: Option<&'a Path>) -> Result<Results<'a>, Failure> {
        let finding = compute_finding(experiment).map_err(|error| Failure::cannot_start(error.to_string()))?;
        let profiles = match experiment.spec.blocks_spec() {
            None => load_profiles::read_load_profiles(experiment, path).map(ProfileFindings::SingleTarget),
            Some(_) => side_profiles::read_side_profiles(experiment, path).map(ProfileFindings::BothSides),
        };
        Ok(Results { experiment, finding, profiles, path, typed_url: None })
    }

    /// Computes the findings of a search with an explanation of its bottleneck; `None` if the
    /// experiment is no search.
    pub fn explain_recorded_search(
        experiment: &'a Experiment,
        path: Option<&'a Path>,
    ) -> Result<Option<Results<'a>>, Failure> {
        let results = Results::from_experiment(experiment, path)?;
        let (doubts, found) = results.finding.doubts_and_figures();
        match found {
            Finding::Find(found) => {
                let explained = explain_search(&Assessment::new(doubts.clone(), SearchFinding::clone(found)));
                let finding = explained.map(|found| Finding::Explain(Box::new(found)));
                Ok(Some(Results { finding, ..results }))
            }
            Finding::Explain(_) => Ok(Some(results)),
            Finding::Run(_) | Finding::Sweep(_) | Finding::Overload(_) | Finding::Prove(_) | Finding::Ladder(_) => {
                Ok(None)
            }
        }
    }

    /// Returns the finding without the doubts about it (the reasons why its figures may be wrong).
    /// The function is for code that makes decisions, such as the choice of an exit code.
    pub fn finding(&self) -> &Finding<'a> {
        self.finding.doubts_and_figures().1
    }

    /// Sets the URL as the user typed it ([`typed_url`]), for printed text.
    pub fn with_typed_url(self, typed_url: Option<String>) -> Results<'a> {
        Results { typed_url, ..self }
    }

    /// Returns the redacted experiment with its finding and profiles, for rendering in any format.
    pub fn view(&self) -> ResultView<'_> {
        let profiles = self.profiles.as_ref();
        ResultView { experiment: self.experiment, finding: &self.finding, profiles, typed_url: None }
    }

    /// Returns [`Results::view`] for printed text, with the URL as the user typed it.
    fn text_view(&self) -> ResultView<'_> {
        ResultView { typed_url: self.typed_url.as_deref(), ..self.view() }
    }

    /// Prints the results in the form `form`. With `in_full`, verbose text also contains the lines
    /// that were shown during the measurement.
    pub fn print(&self, form: impl Into<ResultForm>, in_full: bool) {
        match form.into() {
            ResultForm::Lines => print_unescaped(&event_lines::finding_event_line(&self.view().render_json_document())),
            ResultForm::Json => {
                let document = self.view().render_json_document();
                print_json(&document);
            }
            ResultForm::Text => {
                print_unescaped(
                    &self.text_view().render_screen(std::io::stdout().is_terminal(), stdout_terminal_width()),
                );
            }
            ResultForm::Verbose => {
                print_unescaped(&self.text_view().render_text(
                    in_full,
                    std::io::stdout().is_terminal(),
                    stdout_terminal_width(),
                ));
            }
        }
    }

    /// Returns the report from which the HTML page of the experiment is made.
    pub fn html_page_report(&self) -> Report {
        let file = self.path.map_or_else(String::new, |path| path.display().to_string());
        let extra = match &self.profiles {
            Some(ProfileFindings::SingleTarget(profiles)) => {
                let taken = profiles.doubts_and_figures().1;
                let cpu = |level: &str| load_profiles::cpu_profile(taken, level);
                profiles_section(profiles, cpu("low").as_ref(), cpu(&taken.level_name).as_ref())
            }
            Some(ProfileFindings::BothSides(_)) | None => Report::default(),
        };
        self.view().page(&PageAdditions { file, extra })
    }
}

/// Returns the URL of a plan as the user typed it; values whose names denote secrets stay redacted.
/// `None` if standard output is not a terminal: a pipe or a file may be read by other people.
pub fn typed_url(plan: &Plan) -> Option<String> {
    let url = format!("{}{}", plan.traffic.origin, plan.traffic.routes.first()?.request.target);
    std::io::stdout().is_terminal().then(|| redact_for_terminal(&url))
}

/// Returns the findings of a recorded search; `None` if the experiment is no search.
pub fn recorded_search(experiment: &Experiment) -> Result<Option<RecordedSearch>, Failure> {
    let finding = compute_finding(experiment).map_err(|error| Failure::cannot_start(error.to_string()))?;
    Ok(RecordedSearch::from_finding(finding.doubts_and_figures().1))
}

/// Reads a run file. Warns on standard error if the file is incomplete.
pub fn read_run_file(path: &Path) -> Result<Experiment, Failure> {
    read_experiment(path, &mut |text| print_to_stderr(&format!("warning: {text}")))
}

/// Decodes the bytes of the run file at `path`. Warns on standard error if the file is incomplete.
pub fn decode_run_file(path: &Path, bytes: &[u8]) -> Result<Experiment, Failure> {
    decode_experiment(path, bytes, &mut |text| print_to_stderr(&format!("warning: {text}")))
}

/// Returns the width of the terminal on standard output, in columns. `None` if lines may have any
/// length.
pub fn stdout_terminal_width() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0)
}

/// Prints a report as text.
pub fn print_report(report: &Report) {
    print_unescaped(&text::render_wrapped(report, std::io::stdout().is_terminal(), stdout_terminal_width()));
}

/// Prints a report as text on one screen, with room for `lines_after` more lines. `more` is the
/// flag that prints the omitted lines, too.
pub fn print_screen(report: &Report, lines_after: usize, more: &str) {
    let colour = std::io::stdout().is_terminal();
    print_unescaped(&render_shortened_report(report, colour, stdout_terminal_width(), LINES_MAX - lines_after, more));
}

/// Prints a JSON document.
pub fn print_json(document: &serde_json::Value) {
    print(&json::indented_json_text(document));
}
