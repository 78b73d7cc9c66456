//! Parses the names of runs on a command line ([`RunName`]): `@latest`, `@2`, `@main`, `@3f2c1ab`,
//! or the path of a file.
//!
//! Not here: the list of runs (`store`).

use plimsoll_analysis::history::{HistoryRun, RunState};
use std::path::PathBuf;

/// A run as a user names it on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunName {
    /// The path of a run file.
    Path(PathBuf),
    /// The position of the run, counted from the latest finished run: 1 is the latest.
    NthLatest(usize),
    /// The latest finished run whose branch or tag (`key=value`) is this text, or whose commit
    /// begins with this text.
    BranchCommitOrTag(String),
}

/// The error message for a name that matches no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError(String);

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The minimum number of characters that identify a commit. A number with fewer digits is the
/// position of a run, counted from the latest.
const COMMIT_CHARS_MIN: usize = 4;

impl RunName {
    /// Parses a word of the command line. A word without `@` is a path.
    pub fn parse(word: &str) -> RunName {
        match word.strip_prefix('@') {
            None => RunName::Path(word.into()),
            Some("latest") => RunName::NthLatest(1),
            Some(name) => match name.parse() {
                Ok(number) if number > 0 && name.len() < COMMIT_CHARS_MIN => RunName::NthLatest(number),
                _ => RunName::BranchCommitOrTag(name.to_owned()),
            },
        }
    }

    /// Returns the run of `runs` that this name refers to. `runs` must be sorted, the oldest first.
    /// Unfinished runs are skipped. Returns `None` if this name is a path, and an error if no run
    /// matches.
    pub fn find_run<'a>(&self, runs: &'a [HistoryRun]) -> Result<Option<&'a HistoryRun>, NameError> {
        let whole = || runs.iter().rev().filter(|run| run.state == RunState::Whole);
        let found = match self {
            RunName::Path(_) => return Ok(None),
            RunName::NthLatest(number) => whole().nth(number - 1),
            RunName::BranchCommitOrTag(name) => whole().find(|run| has_branch_commit_or_tag(run, name)),
        };
        let count = whole().count();
        found.map(Some).ok_or_else(|| {
            NameError(match self {
                RunName::BranchCommitOrTag(name) => format!(
                    "@{name}: no run of the store was made at a branch or commit of this name, or has this tag; \
                     plimsoll history lists the runs"
                ),
                _ => match count {
                    0 => "the store has no finished run; choose another folder with --store".to_owned(),
                    1 => "the store has 1 finished run: write @latest or @1".to_owned(),
                    count => {
                        format!("the store has {count} finished runs: write a name from @1 (the latest) to @{count}")
                    }
                },
            })
        })
    }
}

fn has_branch_commit_or_tag(run: &HistoryRun, name: &str) -> bool {
    let is_tag = run.tags.iter().any(|(key, value)| name.split_once('=') == Some((key.as_str(), value.as_str())));
    let is_revision = run.revision.as_ref().is_some_and(|revision| {
        revision.branch.as_deref() == Some(name)
            || name.len() >= COMMIT_CHARS_MIN && revision.commit.starts_with(&name.to_ascii_lowercase())
    });
    is_tag || is_revision
}
