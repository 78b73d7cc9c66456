//! The flame graphs of `profile`: of one profile, and of the difference of two, as files.
//!
//! Not here: flame graphs inside a page (`page_flames`), and how one is drawn (`flame`).

use crate::block::Report;
use crate::flame::{Flame, html, svg};
use crate::profile::{amount, diff_unit, profile_facts};
use crate::text;
use plimsoll_analysis::profile::{ProfileDiff, Top, Tree};
use plimsoll_model::profile::{Profile, ValueType};

/// The file format of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameFormat {
    /// A drawing.
    Svg,
    /// A page with the drawing and the table below it.
    Html,
}

/// Renders the flame graph of one column of a profile. `report`: the table of the profile.
pub fn profile_flame(
    (profile, column): (&Profile, &ValueType),
    (sums, tree): (&Top, &Tree),
    title: &str,
    format: FlameFormat,
    report: &Report,
) -> String {
    let subtitle = with_merged(profile_facts(profile, column, sums.total), tree);
    let total = sums.selected_total as f64;
    draw(&Flame { tree, title, subtitle: &subtitle, unit: &column.unit, per: None, total }, format, report)
}

/// Renders the flame graph of a difference. `report`: the table of the difference.
pub fn difference_flame(
    comparison: &ProfileDiff,
    tree: &Tree,
    title: &str,
    format: FlameFormat,
    report: &Report,
) -> String {
    let (unit, per) = diff_unit(comparison);
    let of = per.map_or(String::new(), |per| format!(" a {per}"));
    let total = &comparison.total;
    let (from, to) = (amount(total.before, unit), amount(total.after, unit));
    let kind = &comparison.sample_type.kind;
    let text = format!("{kind}{of}: {from} before, {to} after; red: costs more, blue: costs less, grey: may be chance");
    let flame = Flame { tree, title, subtitle: &with_merged(text, tree), unit, per, total: total.after };
    draw(&flame, format, report)
}

fn with_merged(mut text: String, tree: &Tree) -> String {
    if tree.left_out {
        text.push_str("; the narrowest frames are merged");
    }
    text
}

fn draw(flame: &Flame, format: FlameFormat, report: &Report) -> String {
    match format {
        FlameFormat::Html => {
            let table = text::render(report, false).replace('&', "&amp;").replace('<', "&lt;");
            html(flame, &format!("<pre>{table}</pre>"))
        }
        FlameFormat::Svg => svg(flame),
    }
}
