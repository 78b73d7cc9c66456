//! Picture files without PNG: the SVG is the picture file. The twin is `png.rs`.

use plimsoll_model::foreign::LibraryPanic;

/// The suffix of picture files.
pub const PICTURE_SUFFIX: &str = "svg";

/// Returns the SVG as the bytes of a picture file.
///
/// # Errors
/// None; the twin has some.
pub fn picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    Ok(svg.as_bytes().to_vec())
}
