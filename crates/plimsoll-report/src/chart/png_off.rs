//! Pictures as files, without PNG: they are written as the SVG that they are. The twin is `png.rs`.

/// The suffix of picture files.
pub const PICTURE_SUFFIX: &str = "svg";

/// The bytes of a picture file of `svg`: the same.
pub fn picture(svg: &str) -> Vec<u8> {
    svg.as_bytes().to_vec()
}
