//! Prints text on standard output and standard error. Control characters are made visible, so that
//! no text can control the terminal.
//!
//! Not here: handling of failed writes (`plimsoll_sys::stdout`), and the content of the text.

use plimsoll_model::control_characters::escape_keeping_lines;
pub use plimsoll_sys::stdout::print_unescaped;
use std::io::Write;

/// Writes lines to standard output. Control characters are made visible, because text from a server
/// must not control the terminal.
pub fn print(text: &str) {
    print_unescaped(&escape_keeping_lines(text));
}

/// Writes a line to standard error, with control characters made visible. Write errors are ignored.
pub fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape_keeping_lines(line));
}
