//! Picture files without PNG support: the picture file is the SVG. The version with PNG is
//! `png.rs`.

use plimsoll_model::foreign::LibraryPanic;

/// The suffix of picture files.
pub const PICTURE_SUFFIX: &str = "svg";

/// Returns the SVG as the bytes of a picture file.
///
/// # Errors
/// Never; the version in `png.rs` can fail, and the signatures agree.
pub fn picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    Ok(svg.as_bytes().to_vec())
}
