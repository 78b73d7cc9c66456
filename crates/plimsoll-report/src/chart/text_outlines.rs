//! Replaces the texts of a chart by the outlines of their characters, so that the rasteriser needs
//! no fonts.
//!
//! A text is one line from left to right, in the embedded font. Kerning, ligatures and
//! right-to-left scripts are not supported, because charts do not need these features. The
//! libraries for these features would take a tenth of the build time.

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

/// Returns `svg`, a chart of this crate, with a `<path>` in place of each `<text>`. If `svg` is not
/// well-formed, the function returns `svg` unchanged.
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

/// Writes the `<path>` that draws a `<text>` element, which [`super::svg::Canvas::draw_text`]
/// wrote.
fn write_outline(text: Node<'_, '_>, out: &mut String) {
    let number = |name: &str| text.attribute(name).and_then(|value| value.parse::<f32>().ok()).unwrap_or_default();
    let face = font_face(text.attribute("font-weight").is_some());
    let scale = number("font-size") / f32::from(face.units_per_em());
    // As in SVG, white space at both ends of the text is dropped, and each other run of white space
    // becomes one space. A character that the font does not contain is drawn as glyph 0, which is
    // the font's glyph for missing characters.
    let words: Vec<&str> = text.text().unwrap_or_default().split_whitespace().collect();
    let characters = words.join(" ");
    let visible = characters.chars().filter(|c| !is_invisible(*c));
    let glyphs: Vec<_> = visible.map(|c| face.glyph_index(c).unwrap_or_default()).collect();
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

/// Returns whether a character has no width of its own: combining marks, joiners and variation
/// selectors, which the font does not contain.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}')
}

/// The path of a text in SVG's syntax. The y coordinate grows upwards in fonts and downwards in
/// SVG.
struct GlyphPath {
    data: String,
    /// The position of the glyph's origin, in SVG user units.
    x: f32,
    y: f32,
    /// The number of SVG user units for each unit of the font.
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
    }

    #[test]
    fn every_character_of_a_text_is_drawn() {
        let outline = |text: &str, weight: &str| {
            outline_texts(&format!(r#"<svg><text font-size="9"{weight}>{text}</text></svg>"#))
        };
        let paths = |text: &str| outline(text, "").matches('M').count();
        // Spaces draw nothing, and each letter `l` draws one path.
        let check = |text: &str, expect: usize| assert_eq!(paths(text), expect, "{text:?}");
        check("l", 1);
        check(" l  l ", 2);
        check("l\u{301}\u{fe0f}l", 2);
        check("l\u{1f600}l", 2);
        assert_eq!(outline("l  l", ""), outline(" l l", ""));
        assert_ne!(outline("l", ""), outline("l", r#" font-weight="600""#));
    }
}
