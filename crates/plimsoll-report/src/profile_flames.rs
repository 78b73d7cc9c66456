//! Renders the files with flame graphs that `plimsoll profile` writes. A flame graph shows one
//! profile, or the difference between two profiles.
//!
//! Not here: flame graphs inside a page (`page_flames`), and drawing (`flame`).

use crate::block::Report;
use crate::flame::{FlameGraph, standalone_html, standalone_svg};
use crate::profile::{diff_cost_unit, format_with_unit, profile_facts};
use crate::text;
use plimsoll_analysis::profile::{FlameGraphTree, FunctionCostTable, ProfileDiff};
use plimsoll_model::profile::{Profile, ValueType};

/// The file format of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameFormat {
    /// A standalone SVG drawing.
    Svg,
    /// An HTML page with the drawing and a table below it.
    Html,
}

/// Renders the flame graph of one profile, for one kind of sampled value. `report` is the table of
/// functions, which only the HTML format contains.
pub fn render_profile_flame_graph(
    (profile, column): (&Profile, &ValueType),
    (sums, tree): (&FunctionCostTable, &FlameGraphTree),
    title: &str,
    format: FlameFormat,
    report: &Report,
) -> String {
    let subtitle = append_merged_frames_note(profile_facts(profile, column, sums.total), tree);
    let total = sums.selected_total as f64;
    draw(&FlameGraph { tree, title, subtitle: &subtitle, unit: &column.unit, divisor: None, total }, format, report)
}

/// Renders the flame graph of the difference between two profiles. `report` is the table of
/// differences, which only the HTML format contains.
pub fn render_difference_flame_graph(
    comparison: &ProfileDiff,
    tree: &FlameGraphTree,
    title: &str,
    format: FlameFormat,
    report: &Report,
) -> String {
    let (unit, divisor) = diff_cost_unit(comparison);
    let of = divisor.map_or(String::new(), |per| format!(" a {per}"));
    let total = &comparison.total;
    let (from, to) = (format_with_unit(total.before, unit), format_with_unit(total.after, unit));
    let kind = &comparison.sample_type.kind;
    let text = format!("{kind}{of}: {from} before, {to} after; red: costs more, blue: costs less, grey: may be chance");
    let flame =
        FlameGraph { tree, title, subtitle: &append_merged_frames_note(text, tree), unit, divisor, total: total.after };
    draw(&flame, format, report)
}

fn append_merged_frames_note(mut text: String, tree: &FlameGraphTree) -> String {
    if tree.has_merged_frames {
        text.push_str("; the narrowest frames of the flame graph are merged");
    }
    text
}

fn draw(flame: &FlameGraph, format: FlameFormat, report: &Report) -> String {
    match format {
        FlameFormat::Html => {
            let table = text::render(report, false).replace('&', "&amp;").replace('<', "&lt;");
            standalone_html(flame, &format!("<pre>{table}</pre>"))
        }
        FlameFormat::Svg => standalone_svg(flame),
    }
}
