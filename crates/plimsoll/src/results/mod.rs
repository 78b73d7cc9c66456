//! The results of an experiment as text, JSON document and page ([`Results`]), whether it has just
//! been made or is read from a run file. Findings are computed anew from the measurements.
//!
//! Not here: making experiments (the commands), arithmetic (`plimsoll-analysis`), layout
//! (`plimsoll-report`).

pub mod page;

use plimsoll_analysis::finding::SearchFinding;
use plimsoll_analysis::finding::explain::explain_search;
use plimsoll_analysis::taken_profiles::ProfileFindings;
use plimsoll_analysis::{Assessment, Finding, conclude};
use plimsoll_history::{decode_experiment, read_experiment};
use plimsoll_model::Experiment;
use plimsoll_model::failure::Failure;
use plimsoll_model::terms::OutputTerms;
use plimsoll_report::{
    LINES_MAX, PageContext, RecordedSearch, Report, ResultView, event_lines, json, profiles_section, render_short, text,
};
pub use plimsoll_study::output::print;
use plimsoll_study::output::{note, print_as_it_is};
use plimsoll_study::{load_profiles, side_profiles};
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

impl<T> From<&OutputTerms<T>> for ResultForm {
    fn from(output: &OutputTerms<T>) -> ResultForm {
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
}

impl<'a> Results<'a> {
    /// Computes the findings of an experiment. Profiles are read from beside the run file at
    /// `path`.
    pub fn from_experiment(experiment: &'a Experiment, path: Option<&'a Path>) -> Result<Results<'a>, Failure> {
        let finding = conclude(experiment).map_err(|error| Failure::start(error.to_string()))?;
        let profiles = match experiment.spec.blocks() {
            None => load_profiles::read_back(experiment, path).map(ProfileFindings::OfLoads),
            Some(_) => side_profiles::read_back(experiment, path).map(ProfileFindings::OfSides),
        };
        Ok(Results { experiment, finding, profiles, path })
    }

    /// Computes the findings of a search with an explanation of its bottleneck; `None` if the
    /// experiment is no search.
    pub fn with_explanation(
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

    /// The finding itself, for code that decides by it and shows nothing.
    pub fn finding(&self) -> &Finding<'a> {
        self.finding.doubts_and_figures().1
    }

    /// Returns everything to show about the experiment.
    pub fn view(&self) -> ResultView<'_> {
        ResultView { experiment: self.experiment, finding: &self.finding, profiles: self.profiles.as_ref() }
    }

    /// Prints the results in this form. With `in_full`, verbose text repeats what was shown during
    /// the measurement.
    pub fn print(&self, form: impl Into<ResultForm>, in_full: bool) {
        match form.into() {
            ResultForm::Lines => print_as_it_is(&event_lines::finding(&self.view().document())),
            ResultForm::Json => print_json(&self.view().document()),
            ResultForm::Text => {
                print_as_it_is(&self.view().screen(std::io::stdout().is_terminal(), columns()));
            }
            ResultForm::Verbose => {
                print_as_it_is(&self.view().text(in_full, std::io::stdout().is_terminal(), columns()));
            }
        }
    }

    /// Returns the report about the experiment from which its HTML page is made.
    pub fn page(&self) -> Report {
        let file = self.path.map_or_else(String::new, |path| path.display().to_string());
        let extra = match &self.profiles {
            Some(ProfileFindings::OfLoads(profiles)) => {
                let taken = profiles.doubts_and_figures().1;
                let cpu = |level: &str| load_profiles::cpu_profile(taken, level);
                profiles_section(profiles, cpu("low").as_ref(), cpu(&taken.level_name).as_ref())
            }
            Some(ProfileFindings::OfSides(_)) | None => Report::default(),
        };
        self.view().page(&PageContext { file, extra })
    }
}

/// Returns the findings of a recorded search; `None` if the experiment is no search.
pub fn recorded_search(experiment: &Experiment) -> Result<Option<RecordedSearch>, Failure> {
    let finding = conclude(experiment).map_err(|error| Failure::start(error.to_string()))?;
    Ok(RecordedSearch::from_finding(finding.doubts_and_figures().1))
}

/// Reads a run file. Warns on standard error if it is incomplete.
pub fn read(path: &Path) -> Result<Experiment, Failure> {
    read_experiment(path, &mut |text| note(&format!("warning: {text}")))
}

/// Decodes the bytes of the run file at `path`. Warns on standard error if they are incomplete.
pub fn decode(path: &Path, bytes: &[u8]) -> Result<Experiment, Failure> {
    decode_experiment(path, bytes, &mut |text| note(&format!("warning: {text}")))
}

/// Width in columns of the terminal on standard output; `None` if lines may have any length.
pub fn columns() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0)
}

/// Prints a report as text.
pub fn print_report(report: &Report) {
    print_as_it_is(&text::render_in(report, std::io::stdout().is_terminal(), columns()));
}

/// Prints a report as text on one screen, with room for `lines_after` more lines. `more` is the
/// flag that shows the omitted part.
pub fn print_screen(report: &Report, lines_after: usize, more: &str) {
    let colour = std::io::stdout().is_terminal();
    print_as_it_is(&render_short(report, colour, columns(), LINES_MAX - lines_after, more));
}

/// Prints a JSON document.
pub fn print_json(document: &serde_json::Value) {
    print(&json::text(document));
}
