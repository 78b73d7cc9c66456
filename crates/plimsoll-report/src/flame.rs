//! Renders flame graphs, in a standalone SVG file or inside a page. A flame graph merges many call
//! stacks into one drawing.
//!
//! The flame graph is complete without a script. If scripts run, `flame.js` redraws the flame graph
//! from the frames, which the file contains as JSON. The script adds zoom, search and the inverted
//! view. The drawing and the script work offline, because they load nothing from elsewhere.
//!
//! In a flame graph of two compared profiles, the width of a frame is the mean of the frame's costs
//! in both profiles. Therefore a frame that the second profile lacks stays visible. Red frames cost
//! more than in the first profile, and blue frames cost less. The cost changes of grey frames may
//! be chance.
//!
//! Not here: merging stacks (`plimsoll-analysis`), and the other content of the page.

use crate::chart;
use crate::profile::format_with_unit;
use crate::visible_controls::is_control_character;
use plimsoll_analysis::profile::{FlameGraphFrame, FlameGraphTree};
use serde_json::{Value, json};
use std::fmt::Write;

/// The maximum number of frames in a flame graph, because browsers become slow with more.
pub const FRAMES_MAX: usize = 20_000;

const FLAME_SCRIPT: &str = include_str!("flame.js");
const FLAME_STYLE: &str = ".plimsoll-flame{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
    .plimsoll-flame .title{font-size:16px;font-weight:bold}.plimsoll-flame .subtitle{fill:#555}\
    .plimsoll-flame .frames g{cursor:pointer}.plimsoll-flame .frames g:hover rect{stroke:#222;stroke-width:.8}\
    .plimsoll-flame .frames text,.plimsoll-flame .tip{pointer-events:none}\
    .plimsoll-flame .tip rect{fill:#fffef6;stroke:#777}\
    .plimsoll-flame .button{cursor:pointer}.plimsoll-flame .button rect{fill:#fff;stroke:#999}\
    .plimsoll-flame .button.on rect{fill:#cfe3f7}\
    @media screen and (prefers-color-scheme:dark){.plimsoll-flame .paper{fill:#12181f}.plimsoll-flame text{fill:#e6edf3}\
    .plimsoll-flame .frames text,.plimsoll-flame .tip text{fill:#111}.plimsoll-flame .subtitle{fill:#9fb0c0}\
    .plimsoll-flame .frames g:hover rect{stroke:#fff}.plimsoll-flame .button rect{fill:#1d2630;stroke:#5a6b7b}\
    .plimsoll-flame .button.on rect{fill:#28527a}}";

/// The height of a row of frames, in px. The script `flame.js` must use the same value.
const ROW_HEIGHT_PX: usize = 17;
const TOP_MARGIN_PX: usize = 76;
const SIDE_MARGIN_PX: f64 = 10.0;
const GRAPH_WIDTH_PX: f64 = 1200.0;
/// The estimated width of a character in px, for the widest of the usual monospace fonts.
const CHARACTER_WIDTH_PX: f64 = 7.3;
/// Returns the JavaScript of flame graphs, for pages that load the script from a separate URL.
pub fn flame_script() -> &'static str {
    FLAME_SCRIPT
}

/// The minimum width in px of a frame in the drawing without script. Narrower frames are omitted.
const FRAME_WIDTH_PX_MIN: f64 = 0.8;

/// A flame graph: its frames and its texts.
#[derive(Debug, Clone, Copy)]
pub struct FlameGraph<'a> {
    /// The frames of the graph, at most about [`FRAMES_MAX`] of them.
    pub tree: &'a FlameGraphTree,
    /// The heading.
    pub title: &'a str,
    /// The line below the heading: the kind of samples, the duration of the profile, and the
    /// samples that are not shown.
    pub subtitle: &'a str,
    /// The unit of the values: a unit name of pprof, such as `nanoseconds`, or `percent` if the
    /// values are shares.
    pub unit: &'a str,
    /// The quantity that the values were divided by, such as `request`; `None` if the values were
    /// not divided.
    pub divisor: Option<&'a str>,
    /// The sum of the values of all stacks. The width of each frame is relative to this sum.
    pub total: f64,
}

/// Renders the flame graph as a standalone SVG file.
pub fn standalone_svg(flame: &FlameGraph) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", inline_svg(flame))
}

/// Renders the flame graph as a standalone HTML page. `body` is HTML that is inserted below the
/// graph without escaping.
pub fn standalone_html(flame: &FlameGraph, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>body{{margin:0;\
         background:#fdfdfb;color:#111}}@media screen and (prefers-color-scheme:dark){{body{{background:#12181f;\
         color:#e6edf3}}}}pre{{margin:1em 10px;font:12px ui-monospace,monospace;overflow-x:auto}}</style>\
         </head><body>\n{}\n{body}</body></html>\n",
        escape_printable_text(flame.title),
        inline_svg(flame),
    )
}

/// Renders the flame graph as an SVG element for an HTML page. The element contains its script and
/// style, and a page may have several such elements.
pub fn inline_svg(flame: &FlameGraph) -> String {
    let tree = flame.tree;
    let total = tree.width();
    let rows = visible_frames(tree, total).map(|(node, _)| node.depth as usize + 1).max().unwrap_or(0);
    let height = TOP_MARGIN_PX + (rows + 1) * ROW_HEIGHT_PX + SIDE_MARGIN_PX as usize;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plimsoll-flame\" viewBox=\"0 0 {GRAPH_WIDTH_PX} {height}\" \
         width=\"{GRAPH_WIDTH_PX}\" height=\"{height}\" font-family=\"monospace\" font-size=\"12\">\n<style>{FLAME_STYLE}</style>\n\
         <rect class=\"paper\" width=\"{GRAPH_WIDTH_PX}\" height=\"{height}\" fill=\"#fdfdfb\"/>\n\
         <text class=\"title\" x=\"{SIDE_MARGIN_PX}\" y=\"22\">{}</text>\n<text class=\"subtitle\" x=\"{SIDE_MARGIN_PX}\" y=\"40\">{}</text>\n\
         <g class=\"frames\">\n",
        escape_printable_text(flame.title),
        escape_printable_text(flame.subtitle),
    );
    let all = format!("all {}", flame_value(flame, flame.total));
    write_frame(&mut out, &all, &all, SIDE_MARGIN_PX, TOP_MARGIN_PX, GRAPH_WIDTH_PX - 2.0 * SIDE_MARGIN_PX, "#e8e6df");
    let scale = if total > 0.0 { (GRAPH_WIDTH_PX - 2.0 * SIDE_MARGIN_PX) / total } else { 0.0 };
    for (node, start) in visible_frames(tree, total) {
        let name = &tree.functions[node.function as usize].name;
        let described = if tree.is_difference {
            format!("{name}: {} before, {} after", flame_value(flame, node.before), flame_value(flame, node.value))
        } else {
            format!("{name}: {} ({:.2} %)", flame_value(flame, node.value), node.width / total * 100.0)
        };
        let (x, y) = (SIDE_MARGIN_PX + start * scale, TOP_MARGIN_PX + (node.depth as usize + 1) * ROW_HEIGHT_PX);
        let fill = if tree.is_difference { change_colour(node) } else { frame_colour(name) };
        write_frame(&mut out, name, &described, x, y, node.width * scale, &fill);
    }
    let _ = write!(
        out,
        "</g>\n<script type=\"application/json\" class=\"data\">{}</script>\n\
         <script><![CDATA[\n{FLAME_SCRIPT}]]></script>\n</svg>",
        frames_json(flame)
    );
    out
}

/// Returns the frames that are wide enough for the drawing without script. Each frame is paired
/// with the position of its left end, in the unit of the frames' widths.
fn visible_frames(tree: &FlameGraphTree, total: f64) -> impl Iterator<Item = (&FlameGraphFrame, f64)> {
    // Entry d of `next` is the left end of the next frame at depth d of the stack.
    let mut next: Vec<f64> = vec![0.0];
    let mut starts = tree.nodes.iter().map(move |node| {
        let depth = node.depth as usize;
        let start = next[depth];
        next[depth] += node.width;
        next.truncate(depth + 1);
        next.push(start);
        (node, start)
    });
    let narrowest = total * FRAME_WIDTH_PX_MIN / (GRAPH_WIDTH_PX - 2.0 * SIDE_MARGIN_PX);
    std::iter::from_fn(move || starts.by_ref().find(|(node, _)| node.width >= narrowest && node.width > 0.0))
}

fn write_frame(out: &mut String, name: &str, described: &str, x: f64, y: usize, width: f64, fill: &str) {
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{fill}\"/>",
        escape_printable_text(described),
        (width - 0.4).max(0.3),
        ROW_HEIGHT_PX - 1,
    );
    let room = ((width - 6.0) / CHARACTER_WIDTH_PX).max(0.0) as usize;
    if room >= 3 {
        let label: String = match name.chars().count() > room {
            true => name.chars().take(room - 1).chain(['\u{2026}']).collect(),
            false => name.to_owned(),
        };
        let _ = write!(out, "<text x=\"{:.2}\" y=\"{}\">{}</text>", x + 3.0, y + 12, escape_printable_text(&label));
    }
    out.push_str("</g>\n");
}

fn flame_value(flame: &FlameGraph, value: f64) -> String {
    let per = flame.divisor.map_or(String::new(), |per| format!(" / {per}"));
    format!("{}{per}", format_with_unit(value, flame.unit))
}

/// Formats the frames as JSON for the script: one list for each property, such as depth or width.
/// Special characters in names are escaped, so that no name can end the surrounding HTML element.
fn frames_json(flame: &FlameGraph) -> String {
    let tree = flame.tree;
    let column =
        |of: &dyn Fn(&FlameGraphFrame) -> f64| tree.nodes.iter().map(|node| json_number(of(node))).collect::<Vec<_>>();
    let mut data = json!({
        "unit": flame.unit,
        "per": flame.divisor,
        "total": json_number(flame.total),
        "diff": tree.is_difference,
        "names": tree.functions.iter().map(|f| printable_text(&f.name)).collect::<Vec<_>>(),
        "files": tree.functions.iter().map(|f| printable_text(&f.file)).collect::<Vec<_>>(),
        "colours": tree.functions.iter().map(|f| frame_colour(&f.name)).collect::<Vec<_>>(),
        "depth": tree.nodes.iter().map(|n| n.depth).collect::<Vec<_>>(),
        "fn": tree.nodes.iter().map(|n| n.function).collect::<Vec<_>>(),
        "w": column(&|n| n.width),
    });
    if tree.nodes.iter().any(|node| node.value != node.width) {
        data["v"] = column(&|n| n.value).into();
    }
    if tree.is_difference {
        data["b"] = column(&|n| n.before).into();
        data["e"] = column(&|n| n.variance).into();
    }
    data.to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Converts a number to JSON without a decimal point if the number is whole.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

/// Replaces characters that XML forbids, and characters that could affect the text around them.
fn printable_text(text: &str) -> String {
    text.chars()
        .map(|c| if is_control_character(c) || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c })
        .collect()
}

fn escape_printable_text(text: &str) -> String {
    chart::escape_xml(&printable_text(text))
}

/// Returns the beginning of a function's name, up to the end of its package, module or class.
/// Functions whose names begin with the same package have the same hue.
fn package_prefix(name: &str) -> &str {
    let base = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[base..].find(['.', ':', '(']).map_or(name.len(), |end| base + end);
    &name[..end]
}

/// Computes the FNV-1a hash of a name. A colour that is derived from this hash is equal on every
/// machine and in every version.
fn fnv1a_hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns the colour of a frame. All colours are light; the package sets the hue, and the function
/// sets the lightness.
fn frame_colour(name: &str) -> String {
    let hue = f64::from(fnv1a_hash(package_prefix(name)) % 360);
    let lightness = 0.70 + f64::from(fnv1a_hash(name) % 13) / 100.0;
    let chroma = (1.0 - (2.0 * lightness - 1.0).abs()) * 0.62;
    let channel = |offset: f64| {
        let k = (offset + hue / 30.0) % 12.0;
        let value = lightness - chroma / 2.0 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

/// Returns the colour of a frame in a graph of two compared profiles: red for a higher cost, blue
/// for a lower cost. Frames whose cost changed by less than two standard deviations are grey. The
/// script `flame.js` must use the same rule for colours.
fn change_colour(node: &FlameGraphFrame) -> String {
    let (delta, mean) = (node.value - node.before, (node.value.abs() + node.before.abs()) / 2.0);
    if mean == 0.0 || (node.variance > 0.0 && delta.abs() < 2.0 * node.variance.sqrt()) {
        return "#d9d9d4".into();
    }
    let t = (delta.abs() / mean).min(1.0);
    let (low, mid) = ((215.0 - 135.0 * t).round(), (215.0 - 110.0 * t).round());
    if delta > 0.0 { format!("rgb(240,{mid},{low})") } else { format!("rgb({low},{mid},240)") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_analysis::profile::{ProfileView, flame_graph_tree, read};

    fn render_test_flame_graphs(text: &str) -> (String, String) {
        let profile = read(text.as_bytes()).expect("folded stacks");
        let tree = flame_graph_tree(&profile, &ProfileView::all_samples(0), FRAMES_MAX);
        let total = tree.width();
        let flame = FlameGraph { tree: &tree, title: "<&>", subtitle: "s", unit: "count", divisor: None, total };
        (standalone_svg(&flame), standalone_html(&flame, "<pre>below</pre>"))
    }

    #[test]
    fn the_flame_graph_works_without_a_script() {
        let (svg, html) = render_test_flame_graphs("main;a 30\nmain;b<T>&\u{1b}\"x\" 10\nother;tiny 1\n");
        for text in [&svg, &html] {
            assert!(text.contains("<title>main: 40 (97.56 %)</title>"), "{text}");
            assert!(text.contains("b&lt;T&gt;&amp;\u{fffd}&quot;x&quot;"), "names are escaped");
            assert!(text.contains(r#""b\u003cT\u003e\u0026"#), "so is the data");
            assert!(text.contains("&lt;&amp;&gt;</t"), "and the title");
            // The second frame begins where the first frame ends. The first frame begins after the
            // margin, and its width is 30/41 of the drawing's 1180 px.
            assert!(text.contains("<rect x=\"873.41\" y=\"110\" width=\"287.40\""), "{text}");
        }
        assert!(svg.starts_with("<?xml") && html.contains("below"));
        assert!(!FLAME_SCRIPT.contains("]]>"), "it stands in a CDATA section");
        let (empty, _) = render_test_flame_graphs("a 0\n");
        assert!(empty.contains("all 0"), "{empty}");
    }

    #[test]
    fn narrow_frames_are_left_to_the_script() {
        let (svg, _) = render_test_flame_graphs("main 100000\ndust 1\n");
        assert!(!svg.contains("<title>dust") && svg.contains("\"dust\""));
    }

    #[test]
    fn functions_of_one_package_share_a_hue() {
        for (name, expect) in [
            ("encoding/json.(*decodeState).array", "encoding/json"),
            ("github.com/x/y.F", "github.com/x/y"),
            ("std::vec::Vec<T>::push", "std"),
            ("main", "main"),
            ("", ""),
        ] {
            assert_eq!(package_prefix(name), expect);
        }
        assert_ne!(frame_colour("a.b"), frame_colour("c.b"));
    }

    #[test]
    fn cost_changes_have_colours() {
        let node =
            |before, value, variance| FlameGraphFrame { function: 0, depth: 0, width: 1.0, value, before, variance };
        assert_eq!(change_colour(&node(1.0, 1.5, 0.1)), "#d9d9d4", "less than two standard deviations");
        assert_eq!(change_colour(&node(0.0, 5.0, 1.0)), "rgb(240,105,80)");
        assert_eq!(change_colour(&node(5.0, 0.0, 1.0)), "rgb(80,105,240)");
        assert_eq!(change_colour(&node(0.0, 0.0, 0.0)), "#d9d9d4");
    }
}
