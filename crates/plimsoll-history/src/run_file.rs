//! What a list shows of a run file ([`read_run`]): two small reads, one at each end of it.
//!
//! Not here: what lies between (`plimsoll_model::codec::decode`).

use crate::marks::RunMarks;
use plimsoll_analysis::conclude;
use plimsoll_analysis::history::{HistoryRun, RunState, study_summary};
use plimsoll_model::codec::{self, FileError};
use plimsoll_sys::files::{self, Use, first_bytes, last_bytes};
use plimsoll_sys::system_text;
use std::fs::{File, TryLockError};
use std::path::Path;

/// As much as most heads have.
const FIRST_BYTES: usize = 16 << 10;

/// What a list shows of the run file at `path`, which is called `name` there. An error completes
/// "'PATH' ...".
pub fn read_run(path: &Path, name: &str) -> Result<HistoryRun, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {}", system_text(&error));
    let damaged = |error: FileError| format!("is left out: {error}");
    let mut first = first_bytes(path, FIRST_BYTES).map_err(cannot)?;
    let needed = codec::head_bytes(&first).map_err(damaged)?;
    if needed > first.len() {
        first = first_bytes(path, needed).map_err(cannot)?;
    }
    let head = codec::read_head(&first).map_err(damaged)?;
    let end = codec::read_end(&last_bytes(path, codec::END_BYTES_MAX).map_err(cannot)?);
    let state = match &end {
        Some(_) => RunState::Whole,
        None if is_being_written(path) => RunState::UnderWay,
        None => RunState::BrokenOff,
    };
    let RunMarks { is_pinned, tags } = RunMarks::read(path);
    Ok(HistoryRun::new(name, &head, end, state).marked(is_pinned, tags))
}

/// The same with a summary that is computed from the whole file, for a file without one. That takes
/// as long as to show it.
pub(crate) fn compute_summary(path: &Path, run: HistoryRun) -> HistoryRun {
    let computed = || {
        let bytes = files::read(path, Use::RunFile).ok()?;
        let experiment = codec::decode(&bytes).ok()?.experiment;
        let finding = conclude(&experiment).ok()?;
        Some(study_summary(&finding))
    };
    HistoryRun { summary: computed(), ..run }
}

/// Whether somebody holds the lock of a recording. Who writes a file has its lock before its first
/// bytes are there.
fn is_being_written(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
