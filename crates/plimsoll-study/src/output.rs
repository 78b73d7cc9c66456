//! What is printed: lines of which no character steers a terminal.
//!
//! Not here: what becomes of what could not be written (`plimsoll_sys::stdout`), and how anything
//! looks.

use plimsoll_model::steering::lines;
pub use plimsoll_sys::stdout::{failed, failures, print_as_it_is, reserve};
use std::io::Write;

/// Writes lines to standard output, made visible (what others wrote must not steer a terminal).
pub fn print(text: &str) {
    print_as_it_is(&lines(text));
}

/// Writes a line to standard error, made visible likewise. Nobody may be there to read it.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", lines(line));
}
