//! Pictures as files, without PNG: they are written as the SVG that they are. The twin is `png.rs`.

use plimsoll_model::foreign::LibraryPanic;

/// The suffix of picture files.
pub const PICTURE_SUFFIX: &str = "svg";

/// The bytes of a picture file of `svg`: the same.
///
/// # Errors
/// None; its twin has some.
pub fn picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    Ok(svg.as_bytes().to_vec())
}
