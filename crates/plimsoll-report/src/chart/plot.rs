//! The common parts of charts: the plot area, axes with units, lines, labels that do not overlap,
//! and the title.

use super::scale::Scale;
use super::svg::{Canvas, Font, Mark, Stroke, TextAnchor, text_width, truncate_to_width, wrap_to_width};
use super::theme::{Paint, Theme};

/// The width of a wide chart in SVG user units; see [`Theme::chart_width`]. The height of a chart
/// depends on its content.
pub const WIDE_CHART_WIDTH: f64 = 800.0;
/// The empty margin at the left and right edges of the chart, in SVG user units.
pub const EDGE_MARGIN: f64 = 22.0;
/// The text size of the title, in SVG user units.
pub const TITLE_FONT_SIZE: f64 = 17.0;
pub const TEXT_FONT_SIZE: f64 = 13.0;
pub const SMALL_FONT_SIZE: f64 = 12.0;

/// The unit of the values of an axis, which decides the format of tick labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisUnit {
    /// A plain number, or a rate in requests/s.
    Count,
    /// A time in ns.
    Nanoseconds,
    /// A share between 0 and 1, which is formatted as a percentage.
    Share,
    /// A time since the start of the load, in s.
    ElapsedSeconds,
    /// A number of bytes.
    Bytes,
}

fn format_trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats `value` with about four significant digits, without trailing zeros.
fn format_significant(value: f64) -> String {
    let magnitude = value.abs().max(1e-12).log10().floor();
    format_trimmed(value, (3.0 - magnitude).clamp(0.0, 9.0) as usize)
}

impl AxisUnit {
    /// Returns the name of the unit as the page's script expects it.
    pub(super) fn name(self) -> &'static str {
        match self {
            AxisUnit::Count => "count",
            AxisUnit::Nanoseconds => "time",
            AxisUnit::Share => "share",
            AxisUnit::ElapsedSeconds => "clock",
            AxisUnit::Bytes => "bytes",
        }
    }

    /// Formats `value` as the label of an axis tick: short, with its unit.
    pub fn tick_label(self, value: f64) -> String {
        match self {
            AxisUnit::Count if value.abs() < 999_999.5 && value.fract() == 0.0 && value >= 0.0 => {
                crate::format::count(value as u64)
            }
            AxisUnit::Count => match value.abs() {
                v if v >= 1e15 => format!("{value:.0e}"),
                v if v >= 999.95e9 => format!("{} T", format_significant(value / 1e12)),
                v if v >= 999.95e6 => format!("{} G", format_significant(value / 1e9)),
                v if v >= 999.95e3 => format!("{} M", format_significant(value / 1e6)),
                v if v >= 10e3 && value > 0.0 => crate::format::count(value.round() as u64),
                _ => format_significant(value),
            },
            AxisUnit::Nanoseconds => match value.abs() {
                v if v < 1e-9 => "0".into(),
                v if v < 999.95 => format!("{} ns", format_significant(value)),
                v if v < 999.95e3 => format!("{} us", format_significant(value / 1e3)),
                v if v < 999.95e6 => format!("{} ms", format_significant(value / 1e6)),
                v if v < 1e18 => format!("{} s", format_significant(value / 1e9)),
                _ => format!("{:.0e} s", value / 1e9),
            },
            AxisUnit::Share => format!("{} %", format_trimmed(value * 100.0, 6)),
            AxisUnit::ElapsedSeconds if value >= 120.0 && value % 60.0 == 0.0 => format!("{:.0} min", value / 60.0),
            AxisUnit::ElapsedSeconds => format!("{} s", format_significant(value)),
            AxisUnit::Bytes => crate::format::bytes(value),
        }
    }
}

/// A rectangle in a chart, in SVG user units, in which data are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn right_edge(&self) -> f64 {
        self.x + self.width
    }

    pub fn bottom_edge(&self) -> f64 {
        self.y + self.height
    }

    /// Returns the horizontal position of `value` on `scale` in this area, in SVG user units.
    pub fn x_position(&self, scale: &Scale, value: f64) -> f64 {
        self.x + scale.relative_position(value) * self.width
    }

    /// Returns the vertical position of `value` on `scale` in this area, in SVG user units. Larger
    /// values are higher up.
    pub fn y_position(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom_edge() - scale.relative_position(value) * self.height
    }
}

/// An axis: its scale, the unit of its values, and its ticks.
#[derive(Debug, Clone)]
pub struct Axis {
    pub scale: Scale,
    pub unit: AxisUnit,
    pub ticks: Vec<f64>,
}

impl Axis {
    /// Creates an axis with at most `n` ticks at round values.
    pub fn new(scale: Scale, unit: AxisUnit, n: usize) -> Axis {
        let mut ticks = scale.major_ticks(n);
        if unit == AxisUnit::ElapsedSeconds && !scale.is_log() {
            ticks = elapsed_time_ticks(&scale, n);
        }
        Axis { scale, unit, ticks }
    }

    /// Returns the width of the widest tick label, in SVG user units.
    pub fn label_width(&self) -> f64 {
        self.ticks.iter().map(|t| text_width(&self.unit.tick_label(*t), SMALL_FONT_SIZE, false)).fold(0.0, f64::max)
    }
}

/// Returns the ticks of a time axis in s. For a range of more than 4 minutes the ticks are whole
/// minutes, hours or days, otherwise round numbers of seconds.
fn elapsed_time_ticks(scale: &Scale, n: usize) -> Vec<f64> {
    let (lo, hi) = scale.value_range();
    let step = [60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0];
    match step.into_iter().find(|step| (hi - lo) / step <= (n.max(2) - 1) as f64) {
        Some(step) if hi - lo > 240.0 => {
            let first = (lo / step).ceil();
            (0..n).map(|k| (first + k as f64) * step).filter(|t| *t <= hi).collect()
        }
        _ => scale.major_ticks(n),
    }
}

/// Returns the minimum width of a margin with space for the tick labels of `axes`, in SVG user
/// units.
pub fn margin_width(axes: &[&Axis]) -> f64 {
    axes.iter().map(|axis| axis.label_width()).fold(0.0, f64::max) + 8.0
}

const GRID_STROKE: Stroke = Stroke::new(Paint::Grid, 1.0);
const AXIS_STROKE: Stroke = Stroke::new(Paint::Axis, 1.0);

/// A plot: its area in the chart, and the scales of its horizontal and vertical axes.
#[derive(Clone, Copy)]
pub struct Plot<'a> {
    pub area: &'a Area,
    pub x: &'a Scale,
    pub y: &'a Scale,
}

impl Plot<'_> {
    /// Returns the position in the chart of the data point (x, y), in SVG user units.
    pub fn point_position(&self, x: f64, y: f64) -> (f64, f64) {
        (self.area.x_position(self.x, x), self.area.y_position(self.y, y))
    }
}

/// The edge of a plot where a vertical axis is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisSide {
    Left,
    Right,
}

/// Opens a group of shapes that the page's script moves when a reader zooms into the chart.
/// [`Canvas::close_group`] ends the group. The script moves shapes of the class `z` along both
/// axes, and shapes of the class `h` only along the vertical axis `axis`.
pub fn open_axis_group(canvas: &mut Canvas, class: char, area: &Area, axis: &Axis, side: AxisSide) {
    let ((lo, hi), side) = (axis.scale.value_range(), if side == AxisSide::Left { "l" } else { "r" });
    let scale = serde_json::json!([side, axis.scale.kind_name(), lo, hi, axis.unit.name()]);
    canvas.open_vertical_group(class, (area.y, area.bottom_edge()), &scale);
}

/// Opens the group with the ticks of a vertical axis, which the page's script redraws after a zoom.
/// A data attribute of the group states the horizontal start and end of the tick lines, and the
/// horizontal position of the tick labels.
fn open_tick_group(canvas: &mut Canvas, area: &Area, side: AxisSide, paint: Paint) {
    let fill = paint.css_colour(Theme::Page);
    let places = match side {
        AxisSide::Left => serde_json::json!(["l", area.x, area.right_edge(), area.x - 7.0, "end", fill]),
        AxisSide::Right => {
            serde_json::json!(["r", area.right_edge(), area.right_edge() + 4.0, area.right_edge() + 8.0, "start", fill])
        }
    };
    canvas.open_vertical_group('v', (area.y, area.bottom_edge()), &places);
}

/// Draws the horizontal grid lines and the tick labels of the left vertical axis.
pub fn draw_left_y_axis(canvas: &mut Canvas, area: &Area, axis: &Axis) {
    open_tick_group(canvas, area, AxisSide::Left, Paint::Muted);
    for tick in &axis.ticks {
        let y = area.y_position(&axis.scale, *tick);
        canvas.draw_straight_line((area.x, y), (area.right_edge(), y), GRID_STROKE);
        let font = Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(TextAnchor::End);
        canvas.draw_text((area.x - 7.0, y + 4.2), &axis.unit.tick_label(*tick), font);
    }
    for mark in axis.scale.minor_ticks() {
        let y = area.y_position(&axis.scale, mark);
        canvas.draw_straight_line((area.x - 3.0, y), (area.x, y), AXIS_STROKE.with_opacity(0.7));
    }
    canvas.close_group();
}

/// Draws the tick labels of the right vertical axis, in the colour of its series.
pub fn draw_right_y_axis(canvas: &mut Canvas, area: &Area, axis: &Axis, paint: Paint) {
    open_tick_group(canvas, area, AxisSide::Right, paint);
    for tick in &axis.ticks {
        let y = area.y_position(&axis.scale, *tick);
        canvas.draw_straight_line((area.right_edge(), y), (area.right_edge() + 4.0, y), AXIS_STROKE);
        canvas.draw_text(
            (area.right_edge() + 8.0, y + 4.2),
            &axis.unit.tick_label(*tick),
            Font::new(SMALL_FONT_SIZE, paint),
        );
    }
    canvas.close_group();
}

/// Draws the vertical lines of the grid.
pub fn draw_x_grid(canvas: &mut Canvas, area: &Area, axis: &Axis) {
    canvas.open_zoom_group('t', (area.y, area.bottom_edge()), None);
    for tick in &axis.ticks {
        let x = area.x_position(&axis.scale, *tick);
        canvas.draw_straight_line((x, area.y), (x, area.bottom_edge()), GRID_STROKE);
    }
    canvas.close_group();
}

/// Draws the horizontal axis: its line, its ticks, labels that do not overlap, and its title.
pub fn draw_x_axis(canvas: &mut Canvas, area: &Area, axis: &Axis, title: &str) {
    canvas.draw_straight_line((area.x, area.bottom_edge()), (area.right_edge(), area.bottom_edge()), AXIS_STROKE);
    let (lo, hi) = axis.scale.value_range();
    canvas.set_zoom_axis(area.x, area.width, axis.scale.kind_name(), [lo, hi], axis.unit.name());
    canvas.open_zoom_group('t', (area.bottom_edge(), area.bottom_edge() + 4.0), Some(area.bottom_edge() + 18.0));
    let labels: Vec<String> = axis.ticks.iter().map(|t| axis.unit.tick_label(*t)).collect();
    let places: Vec<(f64, f64)> = axis
        .ticks
        .iter()
        .zip(&labels)
        .map(|(t, label)| (area.x_position(&axis.scale, *t), text_width(label, SMALL_FONT_SIZE, false)))
        .collect();
    for mark in axis.scale.minor_ticks() {
        let x = area.x_position(&axis.scale, mark);
        canvas.draw_straight_line(
            (x, area.bottom_edge()),
            (x, area.bottom_edge() + 3.0),
            AXIS_STROKE.with_opacity(0.7),
        );
    }
    let shown = visible_labels(&places, 8.0);
    for ((x, _), (label, shown)) in places.iter().zip(labels.iter().zip(shown)) {
        canvas.draw_straight_line((*x, area.bottom_edge()), (*x, area.bottom_edge() + 4.0), AXIS_STROKE);
        if shown {
            canvas.draw_text(
                (*x, area.bottom_edge() + 18.0),
                label,
                Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(TextAnchor::Middle),
            );
        }
    }
    canvas.close_group();
    let font = Font::new(TEXT_FONT_SIZE, Paint::Ink).with_anchor(TextAnchor::Middle);
    canvas.draw_text((area.x + area.width / 2.0, area.bottom_edge() + 38.0), title, font);
}

/// Returns for each axis label whether the label is shown. `labels` are pairs of the label's middle
/// and width in SVG user units, in ascending order. Two neighbouring labels are both shown only if
/// they are at least `gap` apart. The first and the last label are shown whenever possible.
pub fn visible_labels(labels: &[(f64, f64)], gap: f64) -> Vec<bool> {
    let apart = |a: (f64, f64), b: (f64, f64)| b.0 - b.1 / 2.0 >= a.0 + a.1 / 2.0 + gap;
    let mut shown = vec![false; labels.len()];
    let mut last_shown: Option<(f64, f64)> = None;
    for (at, label) in labels.iter().enumerate() {
        let end = labels[labels.len() - 1];
        let room_for_end = at + 1 == labels.len() || at == 0 || apart(*label, end);
        if room_for_end && last_shown.is_none_or(|last| apart(last, *label)) {
            shown[at] = true;
            last_shown = Some(*label);
        }
    }
    shown
}

/// Moves the label positions `places` apart, so that neighbouring labels are at least `gap` from
/// each other. Labels are moved by small distances and keep their order. The returned positions are
/// inside `lo..=hi` if all labels fit into that range.
pub fn separate_labels(places: &[f64], gap: f64, lo: f64, hi: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    // Neighbouring labels that would overlap become one group around their mean position.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &at in &order {
        blocks.push((places[at].clamp(lo, hi.max(lo)), 1));
        while blocks.len() > 1 {
            let (later, earlier) = (blocks[blocks.len() - 1], blocks[blocks.len() - 2]);
            let reach = |block: (f64, usize)| (block.1 - 1) as f64 * gap / 2.0;
            if later.0 - reach(later) - (earlier.0 + reach(earlier)) >= gap - 1e-9 {
                break;
            }
            let count = later.1 + earlier.1;
            let mean = (later.0 * later.1 as f64 + earlier.0 * earlier.1 as f64) / count as f64;
            let half = (count - 1) as f64 * gap / 2.0;
            blocks.pop();
            blocks.pop();
            blocks.push((mean.min(hi - half).max(lo + half), count));
        }
    }
    let mut out = vec![0.0; places.len()];
    let mut next = order.iter();
    for (middle, count) in blocks {
        let first = middle - (count - 1) as f64 * gap / 2.0;
        for (k, at) in next.by_ref().take(count).enumerate() {
            out[*at] = first + k as f64 * gap;
        }
    }
    out
}

/// Draws the name of each line to the right of the plot. Each label is a triple: y coordinate of
/// the line's end, text, colour. Labels that would overlap are moved apart. A thin line connects a
/// moved label with the end of its line in the plot.
pub fn draw_end_labels(canvas: &mut Canvas, area: &Area, labels: &[(f64, String, Paint)], width: f64) {
    let places: Vec<f64> = labels.iter().map(|l| l.0).collect();
    let heights = separate_labels(&places, SMALL_FONT_SIZE + 2.0, area.y + 2.0, area.bottom_edge() - 2.0);
    for ((wanted, text, paint), y) in labels.iter().zip(heights) {
        let x = area.right_edge() + 8.0;
        if (wanted - y).abs() > 5.0 {
            canvas.draw_straight_line(
                (area.right_edge() + 1.0, *wanted),
                (x - 2.0, y),
                Stroke::new(*paint, 0.8).with_opacity(0.6),
            );
        }
        canvas.draw_text(
            (x, y + 4.0),
            &truncate_to_width(text, SMALL_FONT_SIZE, true, width),
            Font::new(SMALL_FONT_SIZE, *paint).bold(),
        );
    }
}

/// One entry of a chart's key (legend): the style of a series, and its name.
pub struct LegendEntry {
    pub paint: Paint,
    pub mark: Option<Mark>,
    pub line: Option<Stroke>,
    pub name: String,
}

impl LegendEntry {
    pub fn width(&self) -> f64 {
        let sample = if self.line.is_some() { 26.0 } else { 14.0 };
        sample + text_width(&self.name, SMALL_FONT_SIZE, false)
    }
}

/// Draws a key (legend) in one row that begins at `x`. Returns the right end of the row.
pub fn draw_legend_row(canvas: &mut Canvas, x: f64, y: f64, entries: &[LegendEntry]) -> f64 {
    let mut x = x;
    for entry in entries {
        let sample = match entry.line {
            Some(stroke) => {
                canvas.draw_straight_line((x, y - 4.0), (x + 20.0, y - 4.0), stroke);
                20.0
            }
            None => 8.0,
        };
        if let Some(mark) = entry.mark {
            canvas.draw_mark((x + sample / 2.0, y - 4.0), mark, 4.0, entry.paint, "");
        }
        canvas.draw_text((x + sample + 6.0, y), &entry.name, Font::new(SMALL_FONT_SIZE, Paint::Muted));
        x += entry.width() + 18.0;
    }
    x
}

/// Draws a key (legend) in as many rows as the width of the canvas requires, the first at `y`.
/// Returns the number of rows.
pub fn draw_legend_rows(canvas: &mut Canvas, y: f64, entries: &[LegendEntry]) -> usize {
    let rows = split_legend_rows(entries, canvas.width());
    for (number, row) in rows.iter().enumerate() {
        draw_legend_row(canvas, EDGE_MARGIN, y + number as f64 * LEGEND_ROW_HEIGHT, row);
    }
    rows.len()
}

/// The height of one row of a chart's key (legend), in SVG user units.
pub const LEGEND_ROW_HEIGHT: f64 = 17.0;

/// Splits the entries of a key (legend) into rows that fit a chart of this width.
pub fn split_legend_rows(entries: &[LegendEntry], width: f64) -> Vec<&[LegendEntry]> {
    let mut rows = Vec::new();
    let (mut first, mut taken) = (0, 0.0);
    for (at, entry) in entries.iter().enumerate() {
        if at > first && taken + entry.width() > width - 2.0 * EDGE_MARGIN {
            rows.push(&entries[first..at]);
            (first, taken) = (at, 0.0);
        }
        taken += entry.width() + 18.0;
    }
    if first < entries.len() {
        rows.push(&entries[first..]);
    }
    rows
}

/// Returns unique names: a number in brackets is appended to names that occur more than once.
pub fn numbered_unique_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut out: Vec<String> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let before = names[..at].iter().filter(|other| *other == name).count();
        let alone = before == 0 && !names[at + 1..].contains(name);
        out.push(if alone { (*name).to_owned() } else { format!("{name} ({})", before + 1) });
    }
    out
}

/// The title and subtitle of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heading {
    /// The title: the finding in one sentence.
    pub title: String,
    /// The subtitle: the conditions of the measurement. If the subtitle text is empty, the chart
    /// has no subtitle.
    pub subtitle: String,
}

impl Heading {
    /// Returns the heading without its title, for a page that already shows the title above the
    /// chart.
    pub fn without_title(self) -> Heading {
        Heading { title: String::new(), ..self }
    }

    fn wrap_heading(&self, width: f64) -> (Vec<String>, Vec<String>) {
        // A narrow chart has fewer characters in a line, so its heading may have more lines.
        let (most, width) = (if width < WIDE_CHART_WIDTH { 6 } else { 2 }, width - 2.0 * EDGE_MARGIN);
        let lines = |text: &str, size: f64, bold: bool| match text.is_empty() {
            true => Vec::new(),
            false => wrap_to_width(text, size, bold, width, most),
        };
        (lines(&self.title, TITLE_FONT_SIZE, true), lines(&self.subtitle, SMALL_FONT_SIZE, false))
    }

    /// Returns the height of the heading on a wide chart, in SVG user units.
    pub fn height_on_wide_chart(&self) -> f64 {
        self.height_at_width(WIDE_CHART_WIDTH)
    }

    /// Returns the height of the heading on a chart of this width, in SVG user units.
    pub fn height_at_width(&self, width: f64) -> f64 {
        let (title, subtitle) = self.wrap_heading(width);
        16.0 + title.len() as f64 * 22.0 + subtitle.len() as f64 * 17.0
    }

    /// Draws the heading at the top of the canvas and returns its height in SVG user units.
    pub fn draw(&self, canvas: &mut Canvas) -> f64 {
        let (title, subtitle) = self.wrap_heading(canvas.width());
        let mut y = 12.0;
        for line in &title {
            y += 22.0;
            canvas.draw_text((EDGE_MARGIN, y - 3.0), line, Font::new(TITLE_FONT_SIZE, Paint::Ink).bold());
        }
        for line in &subtitle {
            y += 17.0;
            canvas.draw_text((EDGE_MARGIN, y - 1.0), line, Font::new(SMALL_FONT_SIZE, Paint::Muted));
        }
        y + 4.0
    }

    /// Returns title and subtitle as one text, which a screen reader reads out instead of the
    /// chart.
    pub fn accessible_label(&self) -> String {
        let said = [&self.title, &self.subtitle].into_iter().filter(|text| !text.is_empty());
        said.map(String::as_str).collect::<Vec<_>>().join(". ")
    }
}

/// Draws an empty chart that states why there is nothing to draw.
pub fn empty_chart(heading: &Heading, reason: &str, theme: Theme) -> String {
    let height = heading.height_at_width(theme.chart_width()) + 120.0;
    let mut canvas = Canvas::new(theme, theme.chart_width(), height);
    let top = heading.draw(&mut canvas);
    let font = Font::new(TEXT_FONT_SIZE, Paint::Muted).with_anchor(TextAnchor::Middle);
    for (number, line) in
        wrap_to_width(reason, TEXT_FONT_SIZE, false, theme.chart_width() - 2.0 * EDGE_MARGIN, 3).iter().enumerate()
    {
        canvas.draw_text((theme.chart_width() / 2.0, top + 60.0 + number as f64 * 18.0), line, font);
    }
    canvas.into_svg(&format!("{}. {reason}", heading.accessible_label()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tick_labels_are_short_with_units() {
        for (unit, value, expect) in [
            (AxisUnit::Count, 0.0, "0"),
            (AxisUnit::Count, 2500.0, "2 500"),
            (AxisUnit::Count, 0.25, "0.25"),
            (AxisUnit::Count, 150_000.0, "150 000"),
            (AxisUnit::Count, 12_345.6, "12 346"),
            (AxisUnit::Count, 2.5e6, "2.5 M"),
            (AxisUnit::Count, 1e300, "1e300"),
            (AxisUnit::Nanoseconds, 0.0, "0"),
            (AxisUnit::Nanoseconds, 500.0, "500 ns"),
            (AxisUnit::Nanoseconds, 2e5, "200 us"),
            (AxisUnit::Nanoseconds, 1e6, "1 ms"),
            (AxisUnit::Nanoseconds, 1.5e9, "1.5 s"),
            (AxisUnit::Nanoseconds, 3e10, "30 s"),
            (AxisUnit::Share, 0.9999, "99.99 %"),
            (AxisUnit::Share, 1.0, "100 %"),
            (AxisUnit::Share, 0.0, "0 %"),
            (AxisUnit::ElapsedSeconds, 30.0, "30 s"),
            (AxisUnit::ElapsedSeconds, 300.0, "5 min"),
            (AxisUnit::Bytes, 1e6, "1.00 MB"),
        ] {
            assert_eq!(unit.tick_label(value), expect);
        }
        let minutes = Axis::new(Scale::linear(0.0, 600.0), AxisUnit::ElapsedSeconds, 6);
        assert_eq!(minutes.ticks, [0.0, 120.0, 240.0, 360.0, 480.0, 600.0]);
    }

    #[test]
    fn equal_chart_names_get_numbers() {
        assert_eq!(numbered_unique_names(["p50", "p99"]), ["p50", "p99"]);
        assert_eq!(numbered_unique_names(["cpu", "p99", "cpu"]), ["cpu (1)", "p99", "cpu (2)"]);
    }

    #[test]
    fn chart_keys_wrap_into_rows() {
        let entry = |name: &str| LegendEntry { paint: Paint::Ink, mark: None, line: None, name: name.into() };
        let entries = ["a name of some length", "another name of some length", "short"].map(entry);
        for (width, expect) in [(800.0, vec![3]), (300.0, vec![1, 2]), (40.0, vec![1, 1, 1])] {
            let rows: Vec<usize> = split_legend_rows(&entries, width).iter().map(|row| row.len()).collect();
            assert_eq!(rows, expect, "{width}");
        }
        assert!(split_legend_rows(&[], 800.0).is_empty());
    }

    #[test]
    fn overlapping_labels_are_omitted() {
        let at = |xs: &[f64]| visible_labels(&xs.iter().map(|x| (*x, 20.0)).collect::<Vec<_>>(), 5.0);
        assert_eq!(at(&[0.0, 30.0, 60.0]), [true, true, true]);
        assert_eq!(at(&[0.0, 10.0, 60.0]), [true, false, true]);
        assert_eq!(at(&[0.0, 50.0, 60.0]), [true, false, true]);
        assert_eq!(at(&[]), [false; 0]);
    }

    proptest! {
        #[test]
        fn overlapping_labels_move_apart_in_order(places in prop::collection::vec(0.0..200.0f64, 0..10)) {
            let moved = separate_labels(&places, 14.0, 0.0, 200.0);
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
            prop_assert!(order.windows(2).all(|pair| moved[pair[1]] - moved[pair[0]] >= 14.0 - 1e-6), "{moved:?}");
            prop_assert!(moved.iter().all(|y| (-1e-6..=200.0 + 1e-6).contains(y)), "{moved:?}");
            let fine = order.windows(2).all(|pair| places[pair[1]] - places[pair[0]] >= 14.0);
            prop_assert!(!fine || moved == places, "{places:?} moved to {moved:?}");
        }
    }
}
