//! Writes charts and other output files.

use plimsoll_model::failure::Failure;
use plimsoll_report::chart::render_picture;
use plimsoll_study::output::print_to_stderr;
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use std::path::Path;

/// Writes a file, creating its folder if needed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| {
        Failure::cannot_start(format!("'{}' cannot be written: {}", path.display(), system_text(&e)))
    };
    output_file::write(path, bytes).map_err(cannot)
}

/// Writes a file and prints a note about the file on standard error. The note ends with `what`.
pub fn write_and_note(path: &Path, bytes: &[u8], what: &str) -> Result<(), Failure> {
    write(path, bytes)?;
    print_to_stderr(&format!("wrote {}{what}", path.display()));
    Ok(())
}

/// Writes a chart as PNG, or as SVG in a build without PNG.
pub fn write_chart(path: &Path, svg: &str) -> Result<(), Failure> {
    let drawn = render_picture(svg)
        .map_err(|error| Failure::cannot_start(format!("'{}' was not drawn: {error}", path.display())))?;
    write(path, &drawn)
}
