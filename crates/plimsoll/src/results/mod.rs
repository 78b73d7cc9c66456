//! What run files hold, as text, document and page ([`Results`]): everything that is shown of an
//! experiment after it, whether it has just been made or is read from its file. Findings are
//! computed anew from what was measured.
//!
//! Not here: making experiments (the commands), arithmetic (`plimsoll-analysis`), layout
//! (`plimsoll-report`).

pub mod page;

use plimsoll_analysis::finding::SearchFinding;
use plimsoll_analysis::finding::explain::of_search;
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

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultForm {
    /// The first screen: the answer, how sure it is, and what comes next.
    Text,
    /// Text with all figures, tables and warnings.
    Verbose,
    /// One document.
    Json,
    /// The document as the last line of a stream.
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
    /// Whether one document is wanted.
    fn from(is_json: bool) -> ResultForm {
        if is_json { ResultForm::Json } else { ResultForm::Text }
    }
}

/// An experiment, and what it comes to.
pub struct Results<'a> {
    experiment: &'a Experiment,
    finding: Assessment<Finding<'a>>,
    /// What profiles say that were taken with it.
    pub profiles: Option<ProfileFindings>,
    path: Option<&'a Path>,
}

impl<'a> Results<'a> {
    /// Of an experiment whose run file is at `path`, with profiles beside it.
    pub fn from_experiment(experiment: &'a Experiment, path: Option<&'a Path>) -> Result<Results<'a>, Failure> {
        let finding = conclude(experiment).map_err(|error| Failure::start(error.to_string()))?;
        let profiles = match experiment.spec.blocks() {
            None => load_profiles::read_back(experiment, path).map(ProfileFindings::OfLoads),
            Some(_) => side_profiles::read_back(experiment, path).map(ProfileFindings::OfSides),
        };
        Ok(Results { experiment, finding, profiles, path })
    }

    /// The same of a search, with what holds its line; `None` of an experiment that holds no
    /// search.
    pub fn explained(experiment: &'a Experiment, path: Option<&'a Path>) -> Result<Option<Results<'a>>, Failure> {
        let results = Results::from_experiment(experiment, path)?;
        let (doubts, found) = results.finding.open();
        match found {
            Finding::Find(found) => {
                let explained = of_search(&Assessment::new(doubts.clone(), SearchFinding::clone(found)));
                let finding = explained.map(|found| Finding::Explain(Box::new(found)));
                Ok(Some(Results { finding, ..results }))
            }
            Finding::Explain(_) => Ok(Some(results)),
            Finding::Run(_) | Finding::Sweep(_) | Finding::Overload(_) | Finding::Prove(_) | Finding::Ladder(_) => {
                Ok(None)
            }
        }
    }

    /// What was found, for who decides by it and shows nothing.
    pub fn finding(&self) -> &Finding<'a> {
        self.finding.open().1
    }

    /// All of it, to be shown.
    pub fn view(&self) -> ResultView<'_> {
        ResultView { experiment: self.experiment, finding: &self.finding, profiles: self.profiles.as_ref() }
    }

    /// Prints it, as a document, as the last line of a stream or as text. `in_full`: verbose text
    /// has what was shown while it was measured, too.
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

    /// Its page.
    pub fn page(&self) -> Report {
        let file = self.path.map_or_else(String::new, |path| path.display().to_string());
        let extra = match &self.profiles {
            Some(ProfileFindings::OfLoads(profiles)) => {
                let taken = profiles.open().1;
                let cpu = |level: &str| load_profiles::cpu_profile(taken, level);
                profiles_section(profiles, cpu("low").as_ref(), cpu(&taken.level_name).as_ref())
            }
            Some(ProfileFindings::OfSides(_)) | None => Report::default(),
        };
        self.view().page(&PageContext { file, extra })
    }
}

/// What a recorded search found; `None` of another experiment.
pub fn searched(experiment: &Experiment) -> Result<Option<RecordedSearch>, Failure> {
    let finding = conclude(experiment).map_err(|error| Failure::start(error.to_string()))?;
    Ok(RecordedSearch::from_finding(finding.open().1))
}

/// Reads a run file; says on standard error what is missing from it.
pub fn read(path: &Path) -> Result<Experiment, Failure> {
    read_experiment(path, &mut |text| note(&format!("warning: {text}")))
}

/// The same of the bytes of the file at `path`.
pub fn decode(path: &Path, bytes: &[u8]) -> Result<Experiment, Failure> {
    decode_experiment(path, bytes, &mut |text| note(&format!("warning: {text}")))
}

/// Columns of the terminal that the results go to; `None` where lines may be of any length.
pub fn columns() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0)
}

/// Writes a report as text.
pub fn print_report(report: &Report) {
    print_as_it_is(&text::render_in(report, std::io::stdout().is_terminal(), columns()));
}

/// Writes a report as text within a screen, with room for `lines_after` more lines. `more`: the
/// flag that shows what does not fit.
pub fn print_screen(report: &Report, lines_after: usize, more: &str) {
    let colour = std::io::stdout().is_terminal();
    print_as_it_is(&render_short(report, colour, columns(), LINES_MAX - lines_after, more));
}

/// Writes a JSON document.
pub fn print_json(document: &serde_json::Value) {
    print(&json::text(document));
}
