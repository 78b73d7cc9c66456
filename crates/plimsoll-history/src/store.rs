//! Lists the runs in a folder of run files, with the help of an index ([`Store`]).
//!
//! Not here: the file of the index (`index`), and names of runs on the command line (`names`).

use crate::folder::run_file_stamps;
use crate::index::Index;
use crate::rows;
use crate::run_file::{compute_summary, read_run};
use plimsoll_analysis::history::HistoryRun;
use plimsoll_model::failure::Failure;
use plimsoll_sys::system_text;
use rusqlite::TransactionBehavior;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum time that one refresh of the index spends on computing missing summaries. The next
/// refresh computes the summaries that are still missing.
const SUMMARY_TIME_MAX: Duration = Duration::from_secs(5);

/// The conditions that a run must meet to appear in a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Select only runs of this service, or of targets whose URL is at or below this URL. `None`
    /// selects all services.
    pub service: Option<String>,
    /// Select only runs of this branch. `None` selects all branches.
    pub branch: Option<String>,
}

impl RunFilter {
    fn is_matching_run(&self, run: &HistoryRun) -> bool {
        let is_service = |wanted: &String| {
            run.service == *wanted
                || is_url_at_or_below(wanted, &run.service)
                || is_url_at_or_below(wanted, &run.origin)
        };
        let is_branch = |wanted: &String| run.revision.as_ref().is_some_and(|it| it.branch.as_ref() == Some(wanted));
        self.service.as_ref().is_none_or(is_service) && self.branch.as_ref().is_none_or(is_branch)
    }
}

/// Returns whether `url` is at or below the URL `prefix`. For example, `http://h:80/items` is below
/// `http://h:80` but not below `http://h:8`.
fn is_url_at_or_below(prefix: &str, url: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ', '?']))
}

/// A folder of run files, and an index with the facts that a list of runs shows.
pub struct Store {
    folder: PathBuf,
    index: Index,
}

impl Store {
    /// Opens the store in `folder`. The folder need not exist.
    pub fn open(folder: &Path) -> Result<Store, Failure> {
        let index = Index::open(folder).map_err(|error| index_failure(folder, &error))?;
        Ok(Store { folder: folder.to_owned(), index })
    }

    /// Returns the folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Updates the index to the current files. Only new and changed files are read.
    pub fn refresh_index(&mut self) -> Result<(), Failure> {
        let folder = self.folder.clone();
        let files = run_file_stamps(&folder).map_err(|error| {
            Failure::cannot_start(format!(
                "the store '{folder}' cannot be read: {reason}",
                folder = folder.display(),
                reason = system_text(&error)
            ))
        })?;
        let refreshed = self.index.run_with_recovery(|connection| {
            let known = rows::file_stamps(connection)?;
            let changed: Vec<_> = files.iter().filter(|(name, stamp)| known.get(*name) != Some(*stamp)).collect();
            let gone: Vec<_> = known.keys().filter(|name| !files.contains_key(*name)).collect();
            if changed.is_empty() && gone.is_empty() {
                return Ok(());
            }
            // The run files are read before the index is locked, so that other processes wait only
            // while rows are written.
            let read: Vec<_> =
                changed.into_iter().map(|(name, stamp)| (name, *stamp, read_run(&folder.join(name), name))).collect();
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for name in gone {
                rows::remove_file_rows(&transaction, name)?;
            }
            for (name, stamp, run) in &read {
                rows::write_run(&transaction, name, *stamp, run)?;
            }
            transaction.commit()
        });
        refreshed.map_err(|error| index_failure(&folder, &error))?;
        self.compute_summaries()
    }

    /// Computes summaries for files of older versions, which contain no summary. Each summary is
    /// computed once.
    fn compute_summaries(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + SUMMARY_TIME_MAX;
        let pending = self
            .index
            .run_with_recovery(|connection| rows::runs_without_summary(connection))
            .map_err(|error| index_failure(&self.folder, &error))?;
        for run in pending.into_iter().take_while(|_| Instant::now() < until) {
            let computed = compute_summary(&self.folder.join(&run.file), run);
            self.index
                .run_with_recovery(|connection| rows::write_summary(connection, &computed))
                .map_err(|error| index_failure(&self.folder, &error))?;
        }
        Ok(())
    }

    /// Returns the runs that match a filter, the oldest first. Changes of the folder after the last
    /// refresh of the index are not included.
    pub fn matching_runs(&mut self, filter: &RunFilter) -> Result<Vec<HistoryRun>, Failure> {
        let service = filter.service.clone();
        let found = self.index.run_with_recovery(|connection| match &service {
            Some(service) => match rows::runs_of_service(connection, service)? {
                named if named.is_empty() => rows::all_runs(connection),
                named => Ok(named),
            },
            None => rows::all_runs(connection),
        });
        let found = found.map_err(|error| index_failure(&self.folder, &error))?;
        Ok(found.into_iter().filter(|run| filter.is_matching_run(run)).collect())
    }

    /// Returns the files that this version cannot read as run files, each with the reason.
    pub fn unreadable_files(&mut self) -> Result<Vec<(String, String)>, Failure> {
        self.index
            .run_with_recovery(|connection| rows::unreadable_files(connection))
            .map_err(|error| index_failure(&self.folder, &error))
    }
}

fn index_failure(folder: &Path, error: &rusqlite::Error) -> Failure {
    Failure::cannot_start(format!(
        "the index of the store '{folder}' cannot be used: {error}. Remove the file index.sqlite in this folder",
        folder = folder.display()
    ))
}
