//! Renders charts as PNG picture files. A chart is rasterised from its SVG with the embedded font,
//! at twice the resolution of the page. The rasteriser uses no font, library or setting of the
//! operating system, so a PNG is equal on every machine. The file `png_off.rs` replaces this file
//! in builds without PNG support.

use super::text_outlines::outline_texts;
use plimsoll_model::library_panic::{self, LibraryPanic};
use resvg::{tiny_skia, usvg};

/// The number of pixels in the PNG for each SVG user unit.
const PIXELS_PER_UNIT: f32 = 2.0;
/// The suffix of picture files, without a dot.
pub const PICTURE_SUFFIX: &str = "png";

/// Rasterises `svg`, a chart of this crate, in the colours of its theme. Returns the bytes of a PNG
/// file.
///
/// # Errors
/// Returns an error if the drawing library panics. A chart contains names from users and servers,
/// and such names may make the drawing library panic.
pub fn render_picture(svg: &str) -> Result<Vec<u8>, LibraryPanic> {
    library_panic::catch_library_panic("charts", || render_png(svg))
}

fn render_png(svg: &str) -> Vec<u8> {
    let tree =
        usvg::Tree::from_str(&outline_texts(svg), &usvg::Options::default()).expect("the charts are well-formed");
    let size = tree.size();
    let pixels = |length: f32| (length * PIXELS_PER_UNIT).ceil().max(1.0) as u32;
    let mut pixmap =
        tiny_skia::Pixmap::new(pixels(size.width()), pixels(size.height())).expect("charts are neither empty nor huge");
    resvg::render(&tree, tiny_skia::Transform::from_scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT), &mut pixmap.as_mut());
    pixmap.encode_png().expect("memory takes any bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Paint, Theme};

    #[test]
    fn png_images_have_the_requested_size_and_are_not_blank() {
        for theme in [Theme::Light, Theme::Dark] {
            let svg = crate::chart::plot::empty_chart(
                &crate::chart::Heading { title: "Nothing".into(), subtitle: "at all".into() },
                "no level was measured",
                theme,
            );
            let bytes = render_picture(&svg).expect("draws");
            let pixmap = tiny_skia::Pixmap::decode_png(&bytes).expect("a PNG");
            assert_eq!(pixmap.width(), 1600);
            let page = Paint::Surface.css_colour(theme);
            let channel = |at: usize| u8::from_str_radix(&page[at..at + 2], 16).expect("hex");
            let page = (channel(1), channel(3), channel(5));
            let inked = pixmap.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) != page).count();
            let share = inked as f64 / pixmap.pixels().len() as f64;
            assert!((0.005..0.2).contains(&share), "{share} of the page is inked");
        }
    }
}
