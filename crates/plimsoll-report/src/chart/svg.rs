//! The writer of SVG: shapes and text on a canvas. An SVG user unit is one CSS pixel. Shapes with a
//! number that is not finite are omitted, so that the document never contains NaN or infinity.
//!
//! Not here: scales, axes, and the meaning of a chart.

use super::theme::{Paint, Theme};
use crate::visible_controls::is_control_character;
use crate::wrap::unbreakable_parts;
use std::fmt::Write;

/// The fonts of charts in order of preference: the embedded font Inter, then similar fonts.
const CHART_FONT_FAMILIES: &str = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

/// The width of each character from space to tilde, in 1/1000 of the font size. The first list is
/// for Inter Regular, the second for Inter Semi Bold.
const CHARACTER_WIDTHS_PER_MILLE: [[u16; 95]; 2] = [
    [
        281, 278, 403, 631, 638, 812, 639, 222, 362, 362, 500, 659, 280, 460, 276, 357, 625, 464, 605, 636, 642, 608,
        624, 571, 616, 624, 276, 280, 659, 659, 659, 507, 936, 676, 651, 727, 719, 598, 587, 743, 740, 264, 543, 652,
        562, 889, 753, 761, 635, 761, 639, 638, 642, 741, 676, 949, 642, 665, 625, 362, 357, 362, 469, 452, 497, 564,
        621, 558, 621, 582, 361, 609, 591, 237, 237, 544, 237, 869, 585, 597, 609, 609, 372, 523, 364, 581, 557, 812,
        540, 557, 541, 362, 327, 362, 659,
    ],
    [
        248, 309, 396, 643, 649, 844, 663, 213, 393, 393, 543, 673, 295, 466, 290, 379, 667, 481, 621, 652, 666, 632,
        648, 587, 646, 648, 290, 295, 673, 673, 673, 544, 999, 724, 657, 744, 724, 608, 586, 755, 744, 275, 561, 677,
        566, 906, 741, 775, 643, 776, 651, 649, 660, 734, 724, 1007, 690, 705, 653, 393, 379, 393, 481, 468, 497, 575,
        630, 577, 630, 593, 377, 625, 613, 261, 261, 569, 261, 898, 610, 608, 625, 625, 397, 549, 380, 608, 576, 837,
        562, 576, 562, 393, 358, 393, 673,
    ],
];

/// Returns the width of `text` in the chart font, in SVG user units.
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let advances = &CHARACTER_WIDTHS_PER_MILLE[usize::from(bold)];
    let of = |c: char| match (c as usize).checked_sub(32).and_then(|at| advances.get(at)) {
        Some(advance) => f64::from(*advance),
        None => 660.0,
    };
    text.chars().map(of).sum::<f64>() * size / 1000.0
}

/// Returns `text` if it is at most `width` SVG user units wide. A wider text is shortened and ends
/// with an ellipsis.
pub fn truncate_to_width(text: &str, size: f64, bold: bool, width: f64) -> String {
    if text_width(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.to_owned();
    while cut.pop().is_some() && text_width(&cut, size, bold) + size > width {}
    cut.trim_end().to_owned() + "\u{2026}"
}

/// Breaks `text` between words into at most `lines_max` lines of at most `width` SVG user units. If
/// the text needs more lines, an ellipsis replaces the end of the text.
pub fn wrap_to_width(text: &str, size: f64, bold: bool, width: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in unbreakable_parts(text) {
        let full = lines.len() >= lines_max.max(1);
        match lines.last_mut() {
            Some(line) if full || text_width(&format!("{line} {word}"), size, bold) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.iter().map(|line| truncate_to_width(line, size, bold, width)).collect()
}

/// The horizontal alignment of a text relative to its x coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextAnchor {
    Start,
    Middle,
    End,
}

/// The style of text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Font {
    pub size: f64,
    pub bold: bool,
    pub paint: Paint,
    pub anchor: TextAnchor,
    /// Whether the text has an outline in the page's background colour, so that it is readable on
    /// top of lines.
    pub halo: bool,
}

impl Font {
    pub const fn new(size: f64, paint: Paint) -> Font {
        Font { size, bold: false, paint, anchor: TextAnchor::Start, halo: false }
    }

    pub const fn bold(self) -> Font {
        Font { bold: true, ..self }
    }

    pub const fn with_halo(self) -> Font {
        Font { halo: true, ..self }
    }

    pub const fn with_anchor(self, anchor: TextAnchor) -> Font {
        Font { anchor, ..self }
    }
}

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    pub paint: Paint,
    pub width: f64,
    /// The lengths of dash and gap in SVG user units; `None` for a solid line.
    pub dash: Option<(f64, f64)>,
    pub opacity: f64,
}

impl Stroke {
    pub const fn new(paint: Paint, width: f64) -> Stroke {
        Stroke { paint, width, dash: None, opacity: 1.0 }
    }

    pub const fn with_dash(self, dash: f64, gap: f64) -> Stroke {
        Stroke { dash: Some((dash, gap)), ..self }
    }

    pub const fn with_opacity(self, opacity: f64) -> Stroke {
        Stroke { opacity, ..self }
    }
}

/// The shape that marks a point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Disc,
    Cross,
    /// A diamond that is not filled, for void trials and for values beyond the end of an axis.
    Diamond,
    Square,
}

/// The rule by which the mouse pointer over a page's chart selects the figures that the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerMode {
    /// The page shows the figures whose horizontal position is nearest to the pointer.
    NearestX,
    /// The page shows the figures of the point that is nearest to the pointer in both directions.
    NearestPoint,
}

/// An SVG document that is being drawn.
pub struct Canvas {
    theme: Theme,
    width: f64,
    body: String,
    height: f64,
    /// The texts that a page shows under the mouse pointer, each with its position (x, y) in the
    /// chart. A standalone chart has no such texts.
    pointer_texts: Vec<(f64, f64, String)>,
    pointer_mode: PointerMode,
    axis: String,
}

fn format_number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    // The value -0.0 is replaced by 0.0, because it would be written as `-0`.
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// Escapes `text` for XML and HTML, so that it is also safe inside attributes.
pub fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Characters that XML forbids, and characters that reverse the direction of the
            // following text, become spaces.
            c if is_control_character(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn are_all_drawable(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite() && v.abs() < 1e7)
}

impl Canvas {
    /// Creates an empty canvas of this size.
    pub fn new(theme: Theme, width: f64, height: f64) -> Canvas {
        let (body, places, axis) = (String::new(), Vec::new(), String::new());
        Canvas { theme, width, height, body, pointer_texts: places, pointer_mode: PointerMode::NearestX, axis }
    }

    /// Returns the width of the canvas in SVG user units.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Returns the theme of the chart, which sets its colours and its width.
    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// Returns whether the chart is for an HTML page, where a script reads the chart's data.
    pub fn in_page(&self) -> bool {
        self.theme.in_page()
    }

    /// Adds a text that a page shows when the mouse pointer is near the position `at`. This method
    /// has no effect on a standalone chart, because a standalone chart has no script.
    pub fn add_pointer_text(&mut self, at: (f64, f64), text: impl FnOnce() -> String) {
        if self.in_page() && are_all_drawable(&[at.0, at.1]) {
            self.pointer_texts.push((at.0, at.1, text()));
        }
    }

    /// Sets the rule by which the pointer selects the figures that the page shows.
    pub fn set_pointer_mode(&mut self, nearest: PointerMode) {
        self.pointer_mode = nearest;
    }

    /// Sets the horizontal axis along which the page's script zooms the chart. `x` and `width` are
    /// the position of the axis in SVG user units. `lo` and `hi` are the values at the ends of the
    /// axis.
    pub fn set_zoom_axis(&mut self, x: f64, width: f64, kind: &str, [lo, hi]: [f64; 2], unit: &str) {
        if self.in_page() && are_all_drawable(&[x, width]) && lo.is_finite() && hi.is_finite() {
            let json = serde_json::json!([format_number(x), format_number(width), kind, lo, hi, unit]);
            self.axis = format!(r#" data-axis="{}""#, escape_xml(&json.to_string()));
        }
    }

    /// Opens a group of shapes that the page's script moves along the horizontal axis when a reader
    /// zooms; [`Canvas::close_group`] ends the group. The script stretches the shapes of a group of
    /// class `z`. A group of class `t` contains the ticks of the horizontal axis. The tick lines
    /// span the heights `y`, and the tick labels are at the height `label`.
    pub fn open_zoom_group(&mut self, class: char, y: (f64, f64), label: Option<f64>) {
        if self.in_page() {
            let [y1, y2] = [y.0, y.1].map(format_number);
            let label = label.map_or(String::new(), |at| format!(r#" data-label="{}""#, format_number(at)));
            let _ = writeln!(self.body, r#"<g class="{class}" data-y="{y1} {y2}"{label}>"#);
        }
    }

    /// Opens a group of shapes that follow a vertical axis between the heights `y`;
    /// [`Canvas::close_group`] ends the group. After a zoom, the page's script fits the vertical
    /// axis to the visible data. The class `z` is for shapes that a horizontal zoom stretches, too.
    /// The class `h` is for shapes that only move vertically, and `v` is for the ticks of the axis.
    /// `scale` describes the scale of the axis to the script.
    pub fn open_vertical_group(&mut self, class: char, y: (f64, f64), scale: &serde_json::Value) {
        if self.in_page() {
            let ([y1, y2], scale) = ([y.0, y.1].map(format_number), escape_xml(&scale.to_string()));
            let _ = writeln!(self.body, r#"<g class="{class}" data-y="{y1} {y2}" data-scale="{scale}">"#);
        }
    }

    /// Closes the group that [`Canvas::open_zoom_group`] or [`Canvas::open_vertical_group`] opened
    /// last.
    pub fn close_group(&mut self) {
        if self.in_page() {
            self.body.push_str("</g>\n");
        }
    }

    /// Returns the attributes of the SVG's root element with the data that the page's script reads.
    fn script_data(&self) -> String {
        if self.pointer_texts.is_empty() {
            return self.axis.clone();
        }
        let places: Vec<serde_json::Value> =
            self.pointer_texts.iter().map(|(x, y, text)| serde_json::json!([x.round(), y.round(), text])).collect();
        let nearest = match self.pointer_mode {
            PointerMode::NearestX => "x",
            PointerMode::NearestPoint => "xy",
        };
        let json = serde_json::Value::from(places).to_string();
        format!(r#"{} data-nearest="{nearest}" data-places="{}""#, self.axis, escape_xml(&json))
    }

    fn stroke_attributes(&self, stroke: Stroke) -> String {
        let mut out = format!(
            r#"stroke="{}" stroke-width="{}""#,
            stroke.paint.css_colour(self.theme),
            format_number(stroke.width)
        );
        if let Some((dash, gap)) = stroke.dash {
            let _ = write!(out, r#" stroke-dasharray="{} {}""#, format_number(dash), format_number(gap));
        }
        if stroke.opacity < 1.0 {
            let _ = write!(out, r#" stroke-opacity="{}""#, format_number(stroke.opacity));
        }
        out
    }

    /// Draws a filled rectangle.
    pub fn draw_rect(&mut self, x: f64, y: f64, width: f64, height: f64, paint: Paint, opacity: f64) {
        if are_all_drawable(&[x, y, width, height]) && width > 0.0 && height > 0.0 {
            let [x, y, width, height] = [x, y, width, height].map(format_number);
            let fill = paint.css_colour(self.theme);
            let opacity =
                if opacity < 1.0 { format!(r#" fill-opacity="{}""#, format_number(opacity)) } else { String::new() };
            let _ = writeln!(
                self.body,
                r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"{opacity}/>"#
            );
        }
    }

    /// Draws a straight line.
    pub fn draw_straight_line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        if are_all_drawable(&[from.0, from.1, to.0, to.1]) {
            let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(format_number);
            let stroke = self.stroke_attributes(stroke);
            let _ = writeln!(self.body, r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {stroke}/>"#);
        }
    }

    /// Draws a line through all points. A missing point makes a gap in the line.
    pub fn draw_polyline(&mut self, points: impl IntoIterator<Item = Option<(f64, f64)>>, stroke: Stroke) {
        let mut path = String::new();
        let mut drawing = false;
        for point in points {
            match point.filter(|(x, y)| are_all_drawable(&[*x, *y])) {
                Some((x, y)) => {
                    let command = if std::mem::replace(&mut drawing, true) { 'L' } else { 'M' };
                    let _ = write!(path, "{command}{} {}", format_number(x), format_number(y));
                }
                None => drawing = false,
            }
        }
        if !path.is_empty() {
            let stroke = self.stroke_attributes(stroke);
            let _ = writeln!(
                self.body,
                r#"<path d="{path}" fill="none" {stroke} stroke-linejoin="round" stroke-linecap="round"/>"#
            );
        }
    }

    /// Draws many rectangles (x, y, width, height) in one colour. Adjacent rectangles have no
    /// visible seam.
    pub fn draw_cells(&mut self, cells: &[(f64, f64, f64, f64)], paint: Paint) {
        let mut path = String::new();
        for &(x, y, width, height) in cells.iter().filter(|c| are_all_drawable(&[c.0, c.1, c.2, c.3])) {
            let [x, y, width, height, back] = [x, y, width, height, -width].map(format_number);
            let _ = write!(path, "M{x} {y}h{width}v{height}h{back}z");
        }
        if !path.is_empty() {
            let fill = paint.css_colour(self.theme);
            let _ = writeln!(self.body, r#"<path d="{path}" fill="{fill}" shape-rendering="crispEdges"/>"#);
        }
    }

    /// Draws a filled polygon.
    pub fn draw_polygon(&mut self, points: &[(f64, f64)], paint: Paint) {
        if points.iter().all(|(x, y)| are_all_drawable(&[*x, *y])) {
            let points: Vec<String> =
                points.iter().map(|(x, y)| format!("{},{}", format_number(*x), format_number(*y))).collect();
            let fill = paint.css_colour(self.theme);
            let _ = writeln!(self.body, r#"<polygon points="{}" fill="{fill}"/>"#, points.join(" "));
        }
    }

    /// Fills the area inside `points`, without an outline.
    pub fn fill_area(&mut self, points: &[(f64, f64)], paint: Paint, opacity: f64) {
        if points.len() > 2 && points.iter().all(|(x, y)| are_all_drawable(&[*x, *y])) {
            let corners: Vec<String> =
                points.iter().map(|(x, y)| format!("{} {}", format_number(*x), format_number(*y))).collect();
            let (fill, opacity) = (paint.css_colour(self.theme), format_number(opacity));
            let _ =
                writeln!(self.body, r#"<path d="M{}Z" fill="{fill}" fill-opacity="{opacity}"/>"#, corners.join("L"));
        }
    }

    /// Draws a circle with an outline, filled with the page's background colour.
    pub fn draw_ring(&mut self, at: (f64, f64), radius: f64, stroke: Stroke) {
        if are_all_drawable(&[at.0, at.1, radius]) {
            let [x, y, r] = [at.0, at.1, radius].map(format_number);
            let (fill, stroke) = (Paint::Surface.css_colour(self.theme), self.stroke_attributes(stroke));
            let _ = writeln!(self.body, r#"<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}" {stroke}/>"#);
        }
    }

    /// Draws the mark of a data point. `hint` is the text of the mark's tooltip, which only
    /// standalone charts have. With an empty `hint`, the mark has no tooltip.
    pub fn draw_mark(&mut self, at: (f64, f64), mark: Mark, radius: f64, paint: Paint, hint: &str) {
        if !are_all_drawable(&[at.0, at.1, radius]) {
            return;
        }
        let (x, y, r) = (at.0, at.1, radius);
        let css = paint.css_colour(self.theme);
        let page = Paint::Surface.css_colour(self.theme);
        let n = format_number;
        let hint = if hint.is_empty() { String::new() } else { format!("<title>{}</title>", escape_xml(hint)) };
        let (shape, rest) = match mark {
            Mark::Disc => (
                "circle",
                format!(r#"cx="{}" cy="{}" r="{}" fill="{css}" stroke="{page}" stroke-width="0.8""#, n(x), n(y), n(r)),
            ),
            Mark::Square => (
                "rect",
                format!(
                    r#"x="{}" y="{}" width="{w}" height="{w}" fill="{css}" stroke="{page}" stroke-width="0.8""#,
                    n(x - r * 0.9),
                    n(y - r * 0.9),
                    w = n(r * 1.8)
                ),
            ),
            Mark::Cross => {
                let (a, b, c, d) = (n(x - r), n(x + r), n(y - r), n(y + r));
                let width = n(r * 0.5);
                (
                    "path",
                    format!(
                        r#"d="M{a} {c}L{b} {d}M{a} {d}L{b} {c}" fill="none" stroke="{css}" stroke-width="{width}" stroke-linecap="round""#
                    ),
                )
            }
            Mark::Diamond => {
                let r = r * 1.15;
                (
                    "path",
                    format!(
                        r#"d="M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}Z" fill="{page}" stroke="{css}" stroke-width="1.5""#,
                        x = n(x),
                        y = n(y),
                        top = n(y - r),
                        bottom = n(y + r),
                        left = n(x - r),
                        right = n(x + r),
                    ),
                )
            }
        };
        // The class `m` tells the page's script to move the mark on a zoom, but not to stretch the
        // mark. On a page, the script shows a text at the mouse pointer, so marks need no tooltip.
        let class = if self.in_page() { r#"class="m" "# } else { "" };
        let _ = match hint.is_empty() || self.in_page() {
            true => writeln!(self.body, "<{shape} {class}{rest}/>"),
            false => writeln!(self.body, "<{shape} {rest}>{hint}</{shape}>"),
        };
    }

    /// Draws one line of text. The y coordinate of `at` is the baseline of the text.
    pub fn draw_text(&mut self, at: (f64, f64), text: &str, font: Font) {
        if !are_all_drawable(&[at.0, at.1]) || text.is_empty() {
            return;
        }
        let mut rest = String::new();
        match font.anchor {
            TextAnchor::Start => {}
            TextAnchor::Middle => rest.push_str(r#" text-anchor="middle""#),
            TextAnchor::End => rest.push_str(r#" text-anchor="end""#),
        }
        if font.bold {
            rest.push_str(r#" font-weight="600""#);
        }
        if font.halo {
            let page = Paint::Surface.css_colour(self.theme);
            let _ = write!(rest, r#" stroke="{page}" stroke-width="4" stroke-linejoin="round" paint-order="stroke""#);
        }
        let [x, y, size] = [at.0, at.1, font.size].map(format_number);
        let (fill, text) = (font.paint.css_colour(self.theme), escape_xml(text));
        let _ = writeln!(self.body, r#"<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{rest}>{text}</text>"#);
    }

    /// Returns the SVG document. Screen readers read out `label` instead of the drawing.
    pub fn into_svg(self, label: &str) -> String {
        let [width, height] = [self.width, self.height].map(format_number);
        let (page, label, data) = (Paint::Surface.css_colour(self.theme), escape_xml(label), self.script_data());
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" "#,
                r#"font-family="{fonts}" role="img" aria-label="{label}"{data}>"#,
                "\n<rect width=\"{w}\" height=\"{h}\" fill=\"{page}\"/>\n{body}</svg>\n",
            ),
            w = width,
            h = height,
            fonts = CHART_FONT_FAMILIES,
            label = label,
            data = data,
            page = page,
            body = self.body,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_clipped_and_wrapped_to_fit() {
        assert!((text_width("0000", 10.0, false) - 25.0).abs() < 0.01);
        assert_eq!(truncate_to_width("short", 10.0, false, 100.0), "short");
        let cut = truncate_to_width("a rather long piece of text", 10.0, false, 60.0);
        assert!(cut.ends_with('\u{2026}') && text_width(&cut, 10.0, false) <= 62.0, "{cut}");
        assert_eq!(wrap_to_width("one two three", 10.0, false, 45.0, 2), ["one two", "three"]);
        assert!(wrap_to_width("one two three four five", 10.0, false, 45.0, 2)[1].ends_with('\u{2026}'));
        assert_eq!(wrap_to_width("", 10.0, false, 45.0, 2), [""]);
        // A line break never separates a number from its unit.
        assert_eq!(wrap_to_width("in all 500 ms", 10.0, false, 52.0, 2), ["in all", "500 ms"]);
    }

    #[test]
    fn non_finite_numbers_are_not_drawn() {
        let mut canvas = Canvas::new(Theme::Light, 10.0, 10.0);
        canvas.draw_straight_line((f64::NAN, 0.0), (1.0, 1.0), Stroke::new(Paint::Ink, 1.0));
        canvas.draw_rect(0.0, 0.0, f64::INFINITY, 1.0, Paint::Ink, 1.0);
        canvas.draw_polyline(
            [Some((0.0, 0.0)), None, Some((1.0, f64::NAN)), Some((2.0, 2.0))],
            Stroke::new(Paint::Ink, 1.0),
        );
        canvas.draw_text((1.0, 1.0), "a<b & \"c\"\u{1}", Font::new(10.0, Paint::Ink));
        let svg = canvas.into_svg("x<y");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("M0 0M2 2") && svg.contains("a&lt;b &amp; &quot;c&quot; <") && svg.contains("x&lt;y"));
    }
}
