//! A folder of run files with its index ([`Store`]): what a list of runs is made of.
//!
//! Not here: how the index is kept (`index`), and how names are understood (`names`).

use crate::folder::run_files;
use crate::index::Index;
use crate::rows;
use crate::run_file::{compute_summary, read_run};
use plimsoll_analysis::history::HistoryRun;
use plimsoll_model::failure::Failure;
use plimsoll_sys::system_text;
use rusqlite::TransactionBehavior;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// In one refresh summaries of files without one are computed for so long; the next refresh goes
/// on.
const COMPUTE_MAX: Duration = Duration::from_secs(5);

/// Which runs are wanted.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this service, or of a target whose URL begins so.
    pub service: Option<String>,
    /// Made at this branch.
    pub branch: Option<String>,
}

impl RunFilter {
    fn takes(&self, run: &HistoryRun) -> bool {
        let is_service =
            |wanted: &String| run.service == *wanted || is_below(wanted, &run.service) || is_below(wanted, &run.origin);
        let is_branch = |wanted: &String| run.revision.as_ref().is_some_and(|it| it.branch.as_ref() == Some(wanted));
        self.service.as_ref().is_none_or(is_service) && self.branch.as_ref().is_none_or(is_branch)
    }
}

/// Whether a URL lies at or below another: `http://h:80` has `http://h:80/items` below it, and
/// `http://h:8` has not.
fn is_below(wanted: &str, url: &str) -> bool {
    let wanted = wanted.trim_end_matches('/');
    url.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ', '?']))
}

/// A folder of run files.
pub struct Store {
    folder: PathBuf,
    index: Index,
}

impl Store {
    /// The store in `folder`, which need not be there.
    pub fn open(folder: &Path) -> Result<Store, Failure> {
        let index = Index::open(folder).map_err(|error| failed(folder, &error))?;
        Ok(Store { folder: folder.to_owned(), index })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Brings the index up to the files that are there now: only files that changed are read.
    pub fn refresh(&mut self) -> Result<(), Failure> {
        let folder = self.folder.clone();
        let files = run_files(&folder).map_err(|error| {
            Failure::start(format!("the store '{}' cannot be read: {}", folder.display(), system_text(&error)))
        })?;
        let refreshed = self.index.run(|connection| {
            let known = rows::stamps(connection)?;
            let changed: Vec<_> = files.iter().filter(|(name, stamp)| known.get(*name) != Some(*stamp)).collect();
            let gone: Vec<_> = known.keys().filter(|name| !files.contains_key(*name)).collect();
            if changed.is_empty() && gone.is_empty() {
                return Ok(());
            }
            // Read before the lock is taken: other writers wait for the writing alone.
            let read: Vec<_> =
                changed.into_iter().map(|(name, stamp)| (name, *stamp, read_run(&folder.join(name), name))).collect();
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for name in gone {
                rows::remove(&transaction, name)?;
            }
            for (name, stamp, run) in &read {
                rows::put(&transaction, name, *stamp, run)?;
            }
            transaction.commit()
        });
        refreshed.map_err(|error| failed(&folder, &error))?;
        self.compute_summaries()
    }

    /// Files of before have no summary: it is computed once.
    fn compute_summaries(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + COMPUTE_MAX;
        let pending =
            self.index.run(|connection| rows::pending(connection)).map_err(|error| failed(&self.folder, &error))?;
        for run in pending.into_iter().take_while(|_| Instant::now() < until) {
            let computed = compute_summary(&self.folder.join(&run.file), run);
            self.index
                .run(|connection| rows::complete(connection, &computed))
                .map_err(|error| failed(&self.folder, &error))?;
        }
        Ok(())
    }

    /// The runs that a filter takes, the oldest first, as of the last refresh.
    pub fn runs(&mut self, filter: &RunFilter) -> Result<Vec<HistoryRun>, Failure> {
        let service = filter.service.clone();
        let found = self.index.run(|connection| match &service {
            Some(service) => match rows::of_service(connection, service)? {
                named if named.is_empty() => rows::all(connection),
                named => Ok(named),
            },
            None => rows::all(connection),
        });
        let found = found.map_err(|error| failed(&self.folder, &error))?;
        Ok(found.into_iter().filter(|run| filter.takes(run)).collect())
    }

    /// Files that are no run files that this version reads, and why.
    pub fn unreadable(&mut self) -> Result<Vec<(String, String)>, Failure> {
        self.index.run(|connection| rows::unreadable(connection)).map_err(|error| failed(&self.folder, &error))
    }
}

fn failed(folder: &Path, error: &rusqlite::Error) -> Failure {
    Failure::start(format!(
        "the index of the store '{}' cannot be used: {error}. Remove its index.sqlite",
        folder.display()
    ))
}
