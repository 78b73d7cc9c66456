//! Picture files for builds without PNG support. The picture file is then the SVG itself. The
//! version with PNG support is `png.rs`.

use plimsoll_model::library_panic::LibraryPanic;

/// The suffix of picture files.
pub const PICTURE_SUFFIX: &str = "svg";

/// Returns the SVG as the bytes of a picture file.
///
/// # Errors
/// This version never returns an error. The version in `png.rs` can fail, and both have one
/// signature.
pub fn picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    Ok(svg.as_bytes().to_vec())
}
