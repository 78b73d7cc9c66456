//! Writes charts.

use plimsoll_model::failure::Failure;
use plimsoll_report::chart::render_picture;
use plimsoll_study::output::write_file;
use std::path::Path;

/// Writes a chart as PNG, or as SVG in a build without PNG.
pub fn write_chart(path: &Path, svg: &str) -> Result<(), Failure> {
    let drawn = render_picture(svg)
        .map_err(|error| Failure::cannot_start(format!("'{}' was not drawn: {error}", path.display())))?;
    write_file(path, &drawn)
}
