//! Picture files for builds without PNG support, in which the picture file is the SVG itself. The
//! file `png.rs` replaces this file in builds with PNG support.

use plimsoll_model::library_panic::LibraryPanic;

/// The suffix of picture files, without a dot.
pub const PICTURE_SUFFIX: &str = "svg";

/// Returns the SVG as the bytes of a picture file.
///
/// # Errors
/// This function never returns an error. The return type is a `Result`, because the function in
/// `png.rs` has the same signature and can fail.
pub fn render_picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    Ok(svg.as_bytes().to_vec())
}
