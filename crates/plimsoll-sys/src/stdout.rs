//! Writes to standard output, and records failed writes.
//!
//! A measured result must survive a full disk or a closed standard output. This module therefore
//! records a failed write, and the command continues with its other outputs (run file, page,
//! table). At the end of the command, any recorded write failure ([`write_failures`]) leads to exit
//! code 2. Not here: the format of the output.

use crate::{process, system_text};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Sentences for the user about failed writes, in the order of the failures.
static WRITE_FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The original standard output under another descriptor, if standard output is reserved for one
/// document.
static RESERVED_STDOUT: OnceLock<File> = OnceLock::new();

/// Reserves standard output for this module. Output of foreign code, such as a script, goes to
/// standard error after the reservation.
pub fn reserve_stdout() {
    if let Ok(stdout) = process::redirect_stdout_to_stderr() {
        // A process prints one document, so a second reservation changes nothing.
        let _ = RESERVED_STDOUT.set(stdout);
    }
}

fn lock_failures() -> MutexGuard<'static, Vec<String>> {
    WRITE_FAILURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that a write failed. `sentence` is shown to the user at the end of the command.
pub fn record_write_failure(sentence: String) {
    let mut sentences = lock_failures();
    if !sentences.contains(&sentence) {
        sentences.push(sentence);
    }
}

/// Returns the sentences about failed writes so far.
pub fn write_failures() -> Vec<String> {
    lock_failures().clone()
}

/// Prints `text` to standard output without escaping any character. The caller must have escaped
/// all control characters except the control characters of plimsoll's own styles. After the first
/// failed write to standard output, no more text is written.
pub fn print_unescaped(text: &str) {
    const STDOUT_NAME: &str = "standard output";
    if write_failures().iter().any(|sentence| sentence.starts_with(STDOUT_NAME)) {
        return;
    }
    if process::stdout_was_closed() {
        return record_write_failure(format!("{STDOUT_NAME} is closed: the result could not be written"));
    }
    let write = || match RESERVED_STDOUT.get() {
        Some(mut reserved) => reserved.write_all(text.as_bytes()),
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        }
    };
    if let Err(error) = write() {
        record_write_failure(format!("{STDOUT_NAME} cannot be written: {}", system_text(&error)));
    }
}
