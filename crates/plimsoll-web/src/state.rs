//! The shared state of all responses ([`WebState`]): the store, started studies, and the renderers
//! of a run.
//!
//! Not here: routes (`server`).

use crate::guard::Access;
use crate::jobs::StartedStudies;
use crate::problem::Problem;
use plimsoll_analysis::history::HistoryRun;
use plimsoll_history::{RunFilter, Store};
use plimsoll_model::failure::Failure;
use plimsoll_report::Report;
use serde_json::Value;
use std::path::{self, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Compares two run files, under the names of the page, or of the files without such names.
pub type CompareRenderer = fn(&path::Path, &path::Path, Option<[&str; 2]>) -> Result<Report, Failure>;

/// The renderers of a run, given by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Renderers {
    /// The report of a run file, as its page shows it.
    pub report: fn(&path::Path) -> Result<Report, Failure>,
    /// The report of two run files.
    pub compare: CompareRenderer,
    /// The document of a run file.
    pub document: fn(&path::Path) -> Result<Value, Failure>,
    /// A self-contained page.
    pub whole_page: fn(&path::Path) -> Result<String, Failure>,
    /// A summary in Markdown.
    pub summary: fn(&path::Path) -> Result<String, Failure>,
    /// Its chart as a picture.
    pub picture: fn(&path::Path) -> Result<Vec<u8>, Failure>,
    /// The words of the command that made it, without secrets.
    pub command: fn(&path::Path) -> Result<Vec<String>, Failure>,
}

/// The shared state of all responses.
pub struct WebState {
    /// The folder of run files.
    pub folder: PathBuf,
    /// Its index.
    pub store: Mutex<Store>,
    /// Studies that were started here.
    pub jobs: StartedStudies,
    /// What shows a run.
    pub renderers: Renderers,
    /// The access rules.
    pub access: Access,
    /// The style of all pages.
    pub style: String,
    /// FigureRef while marks are changed.
    pub marking: Mutex<()>,
    /// Whether a page may give commands for a shell, and name files.
    pub allows_commands: bool,
}

impl WebState {
    /// The runs that a filter takes, the oldest first, as the store is now.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<HistoryRun>, Problem> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.refresh()?;
        Ok(store.runs(filter)?)
    }

    /// Files that cannot be read, and why.
    pub fn unreadable(&self) -> Result<Vec<(String, String)>, Problem> {
        Ok(self.store.lock().unwrap_or_else(PoisonError::into_inner).unreadable()?)
    }
}
