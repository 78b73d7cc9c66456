//! Prints lines on standard output and standard error, with control characters made visible.
//!
//! Not here: handling of failed writes (`plimsoll_sys::stdout`), and the content of the lines.

use plimsoll_model::control_characters::lines;
pub use plimsoll_sys::stdout::{failed, failures, print_unescaped, reserve};
use std::io::Write;

/// Writes lines to standard output, with control characters made visible.
pub fn print(text: &str) {
    print_unescaped(&lines(text));
}

/// Writes a line to standard error, with control characters made visible. Write errors are ignored.
pub fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", lines(line));
}
