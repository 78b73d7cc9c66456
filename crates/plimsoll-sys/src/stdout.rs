//! Standard output, and failed writes.
//!
//! A measured result must survive a full or missing output. So a failure is recorded here, the
//! command continues (run file, page, table), and at the end [`failures`] leads to exit code 2. Not
//! here: presentation.

use crate::{process, system_text};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Sentences about what could not be written, in the order in which it failed.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Standard output, where it is for one document alone.
static RESERVED: OnceLock<File> = OnceLock::new();

/// Reserves standard output for this module: output of foreign code, such as a script, goes to
/// standard error.
pub fn reserve() {
    if let Ok(stdout) = process::move_stdout() {
        // A process prints one document: a second reservation has nothing to add.
        let _ = RESERVED.set(stdout);
    }
}

fn remembered() -> MutexGuard<'static, Vec<String>> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers that something could not be written; the sentence is told at the end.
pub fn failed(sentence: String) {
    let mut sentences = remembered();
    if !sentences.contains(&sentence) {
        sentences.push(sentence);
    }
}

/// What could not be written so far.
pub fn failures() -> Vec<String> {
    remembered().clone()
}

/// Writes text that was made visible already, with our own styles in it. After the first failure
/// nothing more is written.
pub fn print_as_it_is(text: &str) {
    const PLACE: &str = "standard output";
    if failures().iter().any(|sentence| sentence.starts_with(PLACE)) {
        return;
    }
    if process::stdout_was_closed() {
        return failed(format!("{PLACE} is closed: the result could not be written"));
    }
    let write = || match RESERVED.get() {
        Some(mut reserved) => reserved.write_all(text.as_bytes()),
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        }
    };
    if let Err(error) = write() {
        failed(format!("{PLACE} cannot be written: {}", system_text(&error)));
    }
}
