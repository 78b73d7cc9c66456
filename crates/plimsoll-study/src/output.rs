//! Prints lines on standard output and standard error, with control characters made visible.
//!
//! Not here: handling of failed writes (`plimsoll_sys::stdout`), and the content of the lines.

use plimsoll_model::control_characters::escape_keeping_lines;
pub use plimsoll_sys::stdout::{print_unescaped, record_write_failure, reserve_stdout, write_failures};
use std::io::Write;

/// Writes lines to standard output, with control characters made visible.
pub fn print(text: &str) {
    print_unescaped(&escape_keeping_lines(text));
}

/// Writes a line to standard error, with control characters made visible. Write errors are ignored.
pub fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape_keeping_lines(line));
}
