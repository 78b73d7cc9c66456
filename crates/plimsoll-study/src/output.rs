//! Prints lines on standard output and standard error, with control characters made visible, and
//! writes output files.
//!
//! Not here: handling of failed writes (`plimsoll_sys::stdout`), and the content of the lines.

use plimsoll_model::control_characters::escape_keeping_lines;
use plimsoll_model::failure::Failure;
pub use plimsoll_sys::stdout::{print_unescaped, record_write_failure, reserve_stdout, write_failures};
use plimsoll_sys::{output_file, system_text};
use std::io::Write;
use std::path::Path;

/// Writes lines to standard output, with control characters made visible.
pub fn print(text: &str) {
    print_unescaped(&escape_keeping_lines(text));
}

/// Writes a line to standard error, with control characters made visible. Write errors are ignored.
pub fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape_keeping_lines(line));
}

/// Writes a file, creating its folder if needed.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| {
        Failure::cannot_start(format!("'{}' cannot be written: {}", path.display(), system_text(&e)))
    };
    output_file::write(path, bytes).map_err(cannot)
}

/// Writes a file and prints a note about the file on standard error. The note ends with `what`.
pub fn write_and_note(path: &Path, bytes: &[u8], what: &str) -> Result<(), Failure> {
    write_file(path, bytes)?;
    print_to_stderr(&format!("wrote {}{what}", path.display()));
    Ok(())
}
