//! Replaces the texts of a chart by the outlines of their characters, so that the rasteriser needs
//! no fonts.
//!
//! A text is one line from left to right, in the embedded font. Charts need no more: no kerning, no
//! ligatures, no scripts from right to left. These would need libraries that take a tenth of the
//! time of a build.

use resvg::usvg::roxmltree::{Document, Node};
use std::fmt::Write;
use std::sync::OnceLock;
use ttf_parser::{Face, OutlineBuilder};

static REGULAR_FONT_FILE: &[u8] = include_bytes!("../../fonts/Inter-Regular.otf");
static SEMI_BOLD_FONT_FILE: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.otf");

fn font_face(bold: bool) -> &'static Face<'static> {
    static REGULAR: OnceLock<Face<'static>> = OnceLock::new();
    static SEMI_BOLD: OnceLock<Face<'static>> = OnceLock::new();
    let (face, file) = if bold { (&SEMI_BOLD, SEMI_BOLD_FONT_FILE) } else { (&REGULAR, REGULAR_FONT_FILE) };
    face.get_or_init(|| Face::parse(file, 0).expect("the embedded fonts are well-formed"))
}

/// Returns `svg`, a chart of this crate, with a `<path>` in place of each `<text>`. An SVG that is
/// not well-formed is returned as it is.
pub fn outline_texts(svg: &str) -> String {
    let Ok(document) = Document::parse(svg) else { return svg.to_owned() };
    let mut out = String::with_capacity(svg.len() * 4);
    let mut copied = 0;
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        out.push_str(&svg[copied..text.range().start]);
        write_outline(text, &mut out);
        copied = text.range().end;
    }
    out.push_str(&svg[copied..]);
    out
}

/// Writes the `<path>` that draws a `<text>` of [`super::svg::Canvas::text`].
fn write_outline(text: Node<'_, '_>, out: &mut String) {
    let number = |name: &str| text.attribute(name).and_then(|value| value.parse::<f32>().ok()).unwrap_or_default();
    let face = font_face(text.attribute("font-weight").is_some());
    let scale = number("font-size") / f32::from(face.units_per_em());
    // The font draws a missing character as an empty box: its glyph 0.
    let glyphs: Vec<_> =
        text.text().unwrap_or_default().chars().map(|c| face.glyph_index(c).unwrap_or_default()).collect();
    let advance = |glyph| f32::from(face.glyph_hor_advance(glyph).unwrap_or_default()) * scale;
    let width: f32 = glyphs.iter().map(|glyph| advance(*glyph)).sum();
    let mut x = match text.attribute("text-anchor") {
        Some("middle") => number("x") - width / 2.0,
        Some("end") => number("x") - width,
        _ => number("x"),
    };
    let mut path = GlyphPath { data: String::new(), x, y: number("y"), scale };
    for glyph in glyphs {
        path.x = x;
        face.outline_glyph(glyph, &mut path);
        x += advance(glyph);
    }
    let _ = write!(out, "<path d=\"{}\"", path.data);
    for attribute in text.attributes() {
        if attribute.name() == "fill" || attribute.name() == "paint-order" || attribute.name().starts_with("stroke") {
            let _ = write!(out, " {}=\"{}\"", attribute.name(), attribute.value());
        }
    }
    out.push_str("/>");
}

/// The path of a text in SVG's syntax. In fonts, heights grow upwards; in SVG, downwards.
struct GlyphPath {
    data: String,
    /// The position of the glyph's origin, in SVG user units.
    x: f32,
    y: f32,
    /// SVG user units per unit of the font.
    scale: f32,
}

impl GlyphPath {
    fn write<const N: usize>(&mut self, command: char, points: [(f32, f32); N]) {
        self.data.push(command);
        for (x, y) in points {
            let _ = write!(self.data, "{:.2} {:.2} ", self.x + x * self.scale, self.y - y * self.scale);
        }
    }
}

impl OutlineBuilder for GlyphPath {
    fn move_to(&mut self, x: f32, y: f32) {
        self.write('M', [(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.write('L', [(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.write('Q', [(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.write('C', [(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.data.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The horizontal position of the first point of a path, in SVG user units.
    fn first_x(svg: &str) -> f32 {
        let (_, path) =
            outline_texts(svg).split_once("<path d=\"M").map(|(a, b)| (a.len(), b.to_owned())).expect("a path");
        path.split(' ').next().and_then(|x| x.parse().ok()).expect("a number")
    }

    #[test]
    fn texts_are_aligned_at_their_anchor() {
        let width = crate::chart::svg::text_width("n", 100.0, false) as f32;
        let left = first_x(r#"<svg><text x="100" y="20" font-size="100">n</text></svg>"#);
        assert!((100.0..100.0 + width).contains(&left), "{left}");
        let check = |anchor: &str, expect: f32| {
            let x =
                first_x(&format!(r#"<svg><text x="100" y="20" font-size="100" text-anchor="{anchor}">n</text></svg>"#));
            assert!((x - expect).abs() < 0.1, "{anchor}: {x}, expected {expect}");
        };
        check("start", left);
        check("middle", left - width / 2.0);
        check("end", left - width);
    }

    #[test]
    fn texts_become_paths_and_all_else_stays() {
        let check = |svg: &str, beginning: &str, end: &str| {
            let outlined = outline_texts(svg);
            assert!(outlined.starts_with(beginning) && outlined.ends_with(end), "{svg} became {outlined}");
        };
        check("<svg><rect/></svg>", "<svg><rect/></svg>", "<svg><rect/></svg>");
        check("<svg", "<svg", "<svg");
        check(
            r##"<svg><rect/><text y="9" fill="#123456" stroke-width="4">a &lt; b</text><line/></svg>"##,
            r#"<svg><rect/><path d="M"#,
            r##"Z" fill="#123456" stroke-width="4"/><line/></svg>"##,
        );
        // Neither a space nor a missing character stops the text.
        check(r#"<svg><text font-size="9"> 😀 </text></svg>"#, r#"<svg><path d=""#, r#""/></svg>"#);
    }
}
