//! Reads the facts that a list of runs shows ([`read_run`]), with two small reads: the head and the
//! end of the run file.
//!
//! Not here: the content between head and end (`plimsoll_model::codec::decode`).

use crate::marks::RunMarks;
use plimsoll_analysis::compute_finding;
use plimsoll_analysis::history::{HistoryRun, RunState, study_summary};
use plimsoll_model::codec::{self, FileError};
use plimsoll_sys::files::{self, FilePurpose, first_bytes, last_bytes};
use plimsoll_sys::system_text;
use std::fs::{File, TryLockError};
use std::path::Path;

/// The length of the first read of a run file in bytes (16 KiB). Most heads of run files are
/// shorter than 16 KiB.
const FIRST_READ_BYTES: usize = 16 << 10;

/// Reads the facts that a list of runs shows about the run file at `path`. `name` is the file name
/// in the store. An error is the second part of a sentence: the caller writes the path of the file
/// in quotation marks before the error.
pub fn read_run(path: &Path, name: &str) -> Result<HistoryRun, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {}", system_text(&error));
    let damaged = |error: FileError| format!("is left out: {error}");
    let mut first = first_bytes(path, FIRST_READ_BYTES).map_err(cannot)?;
    let needed = codec::head_length(&first).map_err(damaged)?;
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
    Ok(HistoryRun::new(name, &head, end, state).with_pin_and_tags(is_pinned, tags))
}

/// Returns the run with a summary computed from the whole run file, for run files that contain no
/// summary. Computing the summary takes as long as showing the run.
pub(crate) fn compute_summary(path: &Path, run: HistoryRun) -> HistoryRun {
    let computed = || {
        let bytes = files::read(path, FilePurpose::RunFile).ok()?;
        let experiment = codec::decode(&bytes).ok()?.experiment;
        let finding = compute_finding(&experiment).ok()?;
        Some(study_summary(&finding))
    };
    HistoryRun { summary: computed(), ..run }
}

/// Returns whether another process is still writing the run file. A recorder locks its run file
/// before it writes the first bytes.
fn is_being_written(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
