//! The state that all request handlers share ([`WebState`]): the store of run files, the started
//! studies, and the functions that render a run.
//!
//! Not here: routes (`server`).

use crate::guard::AccessRules;
use crate::jobs::StartedStudies;
use crate::problem::Problem;
use plimsoll_analysis::history::HistoryRun;
use plimsoll_history::{RunFilter, Store};
use plimsoll_model::failure::Failure;
use plimsoll_report::Report;
use serde_json::Value;
use std::path::{self, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A function that renders the comparison of two run files. The third argument is the names of the
/// two runs; with `None` the runs are named by their files.
pub type CompareRenderer = fn(&path::Path, &path::Path, Option<[&str; 2]>) -> Result<Report, Failure>;

/// The functions that render a run file. The program that starts the server provides these
/// functions, because this crate does not depend on the format of findings.
#[derive(Debug, Clone, Copy)]
pub struct Renderers {
    /// Renders the report of a run file for its page.
    pub report: fn(&path::Path) -> Result<Report, Failure>,
    /// Renders the comparison of two run files.
    pub compare: CompareRenderer,
    /// Renders the JSON document of a run file.
    pub document: fn(&path::Path) -> Result<Value, Failure>,
    /// Renders a self-contained HTML page of a run file.
    pub whole_page: fn(&path::Path) -> Result<String, Failure>,
    /// Renders a summary of a run file in Markdown.
    pub summary: fn(&path::Path) -> Result<String, Failure>,
    /// Renders the chart of a run file as a picture file.
    pub picture: fn(&path::Path) -> Result<Vec<u8>, Failure>,
    /// Returns the words of the command line that made the run, without secrets.
    pub command: fn(&path::Path) -> Result<Vec<String>, Failure>,
}

/// The state that all request handlers of the server share.
pub struct WebState {
    /// The folder of the run files.
    pub folder: PathBuf,
    /// The store of the run files, with its index.
    pub store: Mutex<Store>,
    /// The studies that were started from web pages.
    pub studies: StartedStudies,
    /// The functions that render a run.
    pub renderers: Renderers,
    /// The rules that decide which requests are allowed.
    pub access: AccessRules,
    /// The CSS of all pages.
    pub style: String,
    /// A lock for changing the marks (tags and pin) of a run, so that no simultaneous change is
    /// lost.
    pub marks_lock: Mutex<()>,
    /// Whether a form may contain shell commands and file names.
    pub allows_commands: bool,
}

impl WebState {
    /// Returns the runs that match a filter, the oldest first. The index of the store is first
    /// updated from the run files.
    pub fn matching_runs(&self, filter: &RunFilter) -> Result<Vec<HistoryRun>, Problem> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.refresh_index()?;
        Ok(store.matching_runs(filter)?)
    }

    /// Returns the files of the store that cannot be read, each with the reason.
    pub fn unreadable_files(&self) -> Result<Vec<(String, String)>, Problem> {
        Ok(self.store.lock().unwrap_or_else(PoisonError::into_inner).unreadable_files()?)
    }
}
