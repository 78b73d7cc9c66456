//! Charts of figures over the load, for several measured loads (levels). One chart shows throughput
//! and time to last byte on two vertical axes, and a second chart shows the success rate. The
//! throughput chart and the success chart can also compare two recordings.

use super::plot::{
    Area, Axis, AxisSide, AxisUnit, EDGE_MARGIN, Heading, LEGEND_ROW_HEIGHT, LegendEntry, Plot, SMALL_FONT_SIZE,
    WIDE_CHART_WIDTH, draw_end_labels, draw_left_y_axis, draw_legend_row, draw_right_y_axis, draw_x_axis, draw_x_grid,
    empty_chart, margin_width, open_axis_group, visible_labels,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Mark, Stroke, TextAnchor, text_width};
use super::theme::{Paint, Theme};
use plimsoll_analysis::levels::{Level, LevelChange, LoadUnit, level_changes};

/// The latency axis is logarithmic if the ratio of the longest to the shortest latency is at least
/// this number.
const LOG_AXIS_RATIO_MIN: f64 = 30.0;
/// The maximum number of levels (measured loads) for which the chart prints the figure of each
/// level.
const PRINTED_FIGURES_MAX: usize = 12;

/// Returns the title of the load axis, which names the unit of the load.
fn load_axis_title(over: LoadUnit) -> &'static str {
    match over {
        LoadUnit::Concurrency => "concurrency: requests in flight at once",
        LoadUnit::Rate => "offered rate, requests/s",
        LoadUnit::Sessions => "offered rate, sessions/s",
    }
}

/// Creates the load axis with a tick at each level (measured load). The axis is logarithmic if the
/// highest load is at least 8 times the lowest load.
fn load_axis<'a>(levels: impl Iterator<Item = &'a Level>) -> Axis {
    let mut loads: Vec<f64> = levels.map(|l| l.load).filter(|l| l.is_finite() && *l > 0.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let (lo, hi) = finite_extent(loads.iter().copied()).unwrap_or((1.0, 10.0));
    let scale = match hi / lo {
        factor if factor >= 8.0 => Scale::logarithmic(lo / factor.powf(0.03), hi * factor.powf(0.03)),
        _ => Scale::linear((lo - (hi - lo) * 0.06).max(0.0), hi + (hi - lo).max(lo * 0.2) * 0.06),
    };
    let ticks = if loads.len() <= 16 { loads } else { scale.major_ticks(10) };
    Axis { scale, unit: AxisUnit::Count, ticks }
}

/// Returns the levels (measured loads) in the order of their loads. Levels without a positive
/// finite load are omitted.
fn sorted_levels(levels: &[Level]) -> Vec<&Level> {
    let mut levels: Vec<&Level> = levels.iter().filter(|l| l.load.is_finite() && l.load > 0.0).collect();
    levels.sort_by(|a, b| a.load.total_cmp(&b.load));
    levels
}

fn latency_axis(values: &[f64], n: usize) -> Axis {
    let above: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    match finite_extent(above.iter().copied()) {
        Some((lo, hi)) if hi / lo >= LOG_AXIS_RATIO_MIN => {
            Axis::new(Scale::log_covering(above), AxisUnit::Nanoseconds, n)
        }
        _ => Axis::new(Scale::from_zero(values.iter().copied(), n), AxisUnit::Nanoseconds, n),
    }
}

/// Draws a line with a mark at each point. Points without a finite value are gaps in the line.
fn draw_series(canvas: &mut Canvas, plot: &Plot, points: &[(f64, f64)], mark: Mark, stroke: Stroke, unit: AxisUnit) {
    let places: Vec<Option<(f64, f64)>> =
        points.iter().map(|(load, value)| value.is_finite().then(|| plot.point_position(*load, *value))).collect();
    canvas.draw_polyline(places.iter().copied(), stroke);
    for (place, (load, value)) in places.iter().zip(points) {
        if let Some(place) = place {
            let hint = format!("{}: {}", AxisUnit::Count.tick_label(*load), unit.tick_label(*value));
            canvas.draw_mark(*place, mark, 4.2, stroke.paint, &hint);
        }
    }
}

fn load_tooltip_text(over: LoadUnit, load: f64) -> String {
    match over {
        LoadUnit::Concurrency => format!("concurrency {}", AxisUnit::Count.tick_label(load)),
        LoadUnit::Rate => format!("{}/s offered", AxisUnit::Count.tick_label(load)),
        LoadUnit::Sessions => format!("{} sessions/s offered", AxisUnit::Count.tick_label(load)),
    }
}

fn level_tooltip_text(level: &Level) -> String {
    let told = |value: f64, text: fn(f64) -> String| if value.is_finite() { text(value) } else { "-".to_owned() };
    let time = |ns: f64| told(ns, |ns| AxisUnit::Nanoseconds.tick_label(ns));
    let p99 = level.p99_ns.map_or(String::new(), |p99| format!(", p99 {}", time(p99)));
    format!(
        "{rate_rps} requests/s\nmean {mean_time}{p99}\n{success_share} succeeded",
        rate_rps = told(level.rps, crate::format::rate),
        mean_time = time(level.mean_ns),
        success_share = told(level.success_rate, success_rate_text)
    )
}

/// Adds the figures of each level (measured load) as a text. A page shows the text when the mouse
/// pointer is at the load of the level.
fn add_level_tooltips(canvas: &mut Canvas, area: &Area, x: &Scale, over: LoadUnit, levels: &[&Level]) {
    for level in levels {
        canvas.add_pointer_text((area.x_position(x, level.load), area.y), || {
            format!("{}\n{}", load_tooltip_text(over, level.load), level_tooltip_text(level))
        });
    }
}

/// Draws throughput and mean time to last byte over the load, each with its own vertical axis.
/// `levels` are the measured loads.
pub fn throughput_chart(heading: &Heading, over: LoadUnit, levels: &[Level], theme: Theme) -> String {
    let levels = sorted_levels(levels);
    if levels.is_empty() {
        return empty_chart(heading, "no level of the load was measured", theme);
    }
    let x = load_axis(levels.iter().copied());
    let of = |value: fn(&Level) -> f64| levels.iter().map(|l| (l.load, value(l))).collect::<Vec<_>>();
    let (throughput, mean) = (of(|l| l.rps), of(|l| l.mean_ns));
    let p99: Vec<(f64, f64)> = levels.iter().filter_map(|l| l.p99_ns.map(|p99| (l.load, p99))).collect();
    let left = Axis::new(Scale::from_zero(throughput.iter().map(|p| p.1), 7), AxisUnit::Count, 7);
    let times: Vec<f64> = mean.iter().chain(&p99).map(|p| p.1).collect();
    let right = latency_axis(&times, 7);

    let styles = (
        Stroke::new(Paint::Blue, 2.2),
        Stroke::new(Paint::Vermilion, 2.2).with_dash(7.0, 4.0),
        Stroke::new(Paint::Vermilion, 1.4).with_dash(2.0, 4.0),
    );
    let entry = |name: &str, mark, line: Stroke| LegendEntry {
        paint: line.paint,
        mark: Some(mark),
        line: Some(line),
        name: name.to_owned(),
    };
    // The left vertical axis and the right vertical axis each have a key (legend).
    let left_key = [entry("successful requests/s (left)", Mark::Disc, styles.0)];
    let mut right_key = vec![entry("mean time to last byte (right)", Mark::Square, styles.1)];
    if !p99.is_empty() {
        right_key.push(entry("p99", Mark::Diamond, styles.2));
    }

    let area_x = EDGE_MARGIN + margin_width(&[&left]);
    let right_margin = EDGE_MARGIN + margin_width(&[&right]) + 2.0;
    let width = theme.chart_width();
    // On a narrow screen the keys of the two axes are on separate rows.
    let below = if theme.is_narrow() { LEGEND_ROW_HEIGHT } else { 0.0 };
    let top = heading.height_at_width(width) + 40.0 + below;
    let area = Area { x: area_x, y: top, width: width - right_margin - area_x, height: 290.0 };
    let mut canvas = Canvas::new(theme, width, area.bottom_edge() + 54.0);
    heading.draw(&mut canvas);
    draw_x_grid(&mut canvas, &area, &x);
    draw_left_y_axis(&mut canvas, &area, &left);
    draw_right_y_axis(&mut canvas, &area, &right, Paint::Vermilion);
    draw_x_axis(&mut canvas, &area, &x, load_axis_title(over));
    add_level_tooltips(&mut canvas, &area, &x.scale, over, &levels);
    open_axis_group(&mut canvas, 'z', &area, &right, AxisSide::Right);
    let on_right = Plot { area: &area, x: &x.scale, y: &right.scale };
    draw_series(&mut canvas, &on_right, &p99, Mark::Diamond, styles.2, AxisUnit::Nanoseconds);
    draw_series(&mut canvas, &on_right, &mean, Mark::Square, styles.1, AxisUnit::Nanoseconds);
    canvas.close_group();
    open_axis_group(&mut canvas, 'z', &area, &left, AxisSide::Left);
    let on_left = Plot { area: &area, x: &x.scale, y: &left.scale };
    draw_series(&mut canvas, &on_left, &throughput, Mark::Disc, styles.0, AxisUnit::Count);
    canvas.close_group();
    let y = area.y - 16.0;
    draw_legend_row(&mut canvas, EDGE_MARGIN, y - below, &left_key);
    let key_width = right_key.iter().map(|e| e.width() + 18.0).sum::<f64>() - 18.0;
    draw_legend_row(&mut canvas, width - EDGE_MARGIN - key_width, y, &right_key);
    canvas.into_svg(&heading.accessible_label())
}

/// Creates the axis of success rates. The axis begins at 0 %, or at a higher value if all rates are
/// near 100 %.
fn success_axis(rates: impl Iterator<Item = f64>) -> Axis {
    let lowest = finite_extent(rates).map_or(0.0, |(lo, _)| lo);
    let from = [0.999, 0.99, 0.9, 0.5].into_iter().find(|from| lowest >= *from + (1.0 - from) * 0.1).unwrap_or(0.0);
    Axis::new(Scale::linear(from, 1.0), AxisUnit::Share, 6)
}

fn success_axis_title(axis: &Axis) -> String {
    match axis.scale.value_range().0 {
        0.0 => "success rate".into(),
        from => {
            format!("success rate; the axis begins at {lowest_rate}", lowest_rate = AxisUnit::Share.tick_label(from))
        }
    }
}

/// Formats a success rate (0 to 1) as a percentage. The percentage is rounded down, so that a load
/// with failures is never shown as 100 %.
fn success_rate_text(rate: f64) -> String {
    match rate {
        r if !r.is_finite() => String::new(),
        r if r < 0.9999 => AxisUnit::Share.tick_label((r * 1e4).floor() / 1e4),
        r => crate::format::share(r),
    }
}

/// Prints the figure of each point above or below the point, if there is space.
fn draw_point_figures(canvas: &mut Canvas, places: &[(f64, f64)], texts: &[String], paint: Paint, above: bool) {
    let widths: Vec<(f64, f64)> =
        places.iter().zip(texts).map(|(p, t)| (p.0, text_width(t, SMALL_FONT_SIZE, false))).collect();
    for ((place, text), shown) in places.iter().zip(texts).zip(visible_labels(&widths, 6.0)) {
        if shown {
            let y = if above { place.1 - 9.0 } else { place.1 + 19.0 };
            canvas.draw_text(
                (place.0, y),
                text,
                Font::new(SMALL_FONT_SIZE, paint).with_anchor(TextAnchor::Middle).with_halo(),
            );
        }
    }
}

/// Draws the success rate over the load. `levels` are the measured loads.
pub fn success_chart(heading: &Heading, over: LoadUnit, levels: &[Level], theme: Theme) -> String {
    let levels = sorted_levels(levels);
    if levels.is_empty() {
        return empty_chart(heading, "no level of the load was measured", theme);
    }
    let x = load_axis(levels.iter().copied());
    let y = success_axis(levels.iter().map(|l| l.success_rate));
    let left = EDGE_MARGIN + margin_width(&[&y]);
    let width = theme.chart_width();
    let area =
        Area { x: left, y: heading.height_at_width(width) + 40.0, width: width - EDGE_MARGIN - left, height: 230.0 };
    let mut canvas = Canvas::new(theme, width, area.bottom_edge() + 54.0);
    heading.draw(&mut canvas);
    canvas.draw_text((EDGE_MARGIN, area.y - 16.0), &success_axis_title(&y), Font::new(SMALL_FONT_SIZE, Paint::Muted));
    draw_x_grid(&mut canvas, &area, &x);
    draw_left_y_axis(&mut canvas, &area, &y);
    draw_x_axis(&mut canvas, &area, &x, load_axis_title(over));
    let points: Vec<(f64, f64)> = levels.iter().map(|l| (l.load, l.success_rate)).collect();
    let (mark, stroke) = (Mark::Disc, Stroke::new(Paint::Green, 2.2));
    let plot = Plot { area: &area, x: &x.scale, y: &y.scale };
    add_level_tooltips(&mut canvas, &area, &x.scale, over, &levels);
    open_axis_group(&mut canvas, 'z', &area, &y, AxisSide::Left);
    draw_series(&mut canvas, &plot, &points, mark, stroke, AxisUnit::Share);
    if points.len() <= PRINTED_FIGURES_MAX {
        let places: Vec<(f64, f64)> = points.iter().map(|p| plot.point_position(p.0, p.1)).collect();
        let texts: Vec<String> = points.iter().map(|p| success_rate_text(p.1)).collect();
        draw_point_figures(&mut canvas, &places, &texts, Paint::Ink, false);
    }
    canvas.close_group();
    canvas.into_svg(&heading.accessible_label())
}

/// The measured loads (levels) of one recording, and the recording's name in the chart.
#[derive(Debug, Clone, Copy)]
pub struct NamedLevels<'a> {
    /// The name of the recording.
    pub name: &'a str,
    /// The measured loads with their figures.
    pub levels: &'a [Level],
}

/// The definition of one panel in a chart that compares two recordings. `value` is the figure that
/// the panel shows for each level (measured load), and `change` formats the change of the figure.
struct LevelPanel {
    title: &'static str,
    unit: AxisUnit,
    value: fn(&Level) -> f64,
    change: fn(&LevelChange) -> Option<String>,
}

fn percent_change_text(change: f64) -> String {
    let percent = change * 100.0;
    match percent.abs() {
        p if p < 0.05 => "0 %".into(),
        p if p < 9.95 => format!("{percent:+.1} %"),
        p if p < 999.5 => format!("{percent:+.0} %"),
        _ => format!("x{:.0}", change + 1.0),
    }
    .replace('-', "\u{2212}")
}

fn percentage_points(change: f64) -> String {
    let points = change * 100.0;
    let text = if points.abs() < 0.005 { "0".into() } else { format!("{points:+.2}") };
    text.replace('-', "\u{2212}")
}

const RECORDING_STYLES: [(Mark, Stroke); 2] = [
    (Mark::Disc, Stroke::new(Paint::Blue, 2.2)),
    (Mark::Square, Stroke::new(Paint::Vermilion, 2.2).with_dash(7.0, 4.0)),
];

/// Draws panels with the figures of two recordings, one panel below the other. The row below each
/// panel has the change from the first recording to the second at each load.
fn draw_diff_panels(
    heading: &Heading,
    over: LoadUnit,
    recorded: [NamedLevels; 2],
    panels: &[LevelPanel],
    axis: &dyn Fn(&LevelPanel, &[f64]) -> Axis,
    theme: Theme,
) -> String {
    let lists = recorded.map(|r| sorted_levels(r.levels));
    if lists.iter().all(Vec::is_empty) {
        return empty_chart(heading, "no level of the load was measured", theme);
    }
    let x = load_axis(lists.iter().flatten().copied());
    let axes: Vec<Axis> = panels
        .iter()
        .map(|panel| axis(panel, &lists.iter().flatten().map(|l| (panel.value)(l)).collect::<Vec<_>>()))
        .collect();
    let left = EDGE_MARGIN + margin_width(&axes.iter().collect::<Vec<_>>());
    let names: f64 = recorded.iter().map(|r| text_width(r.name, SMALL_FONT_SIZE, true)).fold(0.0, f64::max);
    let right = EDGE_MARGIN + names.min(150.0) + 8.0;
    let height = if panels.len() > 1 { 170.0 } else { 220.0 };
    let changes = level_changes(recorded[0].levels, recorded[1].levels);
    let top = heading.height_on_wide_chart() + 34.0;
    let row = height + 84.0;
    let mut canvas = Canvas::new(theme, WIDE_CHART_WIDTH, top + row * panels.len() as f64 - 4.0);
    heading.draw(&mut canvas);
    for (number, (panel, y)) in panels.iter().zip(&axes).enumerate() {
        let last = number + 1 == panels.len();
        let area = Area { x: left, y: top + row * number as f64, width: WIDE_CHART_WIDTH - right - left, height };
        let title = if panel.unit == AxisUnit::Share { success_axis_title(y) } else { panel.title.to_owned() };
        canvas.draw_text((EDGE_MARGIN, area.y - 13.0), &title, Font::new(SMALL_FONT_SIZE, Paint::Ink));
        draw_x_grid(&mut canvas, &area, &x);
        draw_left_y_axis(&mut canvas, &area, y);
        if number == 0 {
            for (list, one) in lists.iter().zip(&recorded) {
                for level in list {
                    canvas.add_pointer_text((area.x_position(&x.scale, level.load), area.y), || {
                        format!("{}: {}\n{}", one.name, load_tooltip_text(over, level.load), level_tooltip_text(level))
                    });
                }
            }
        }
        let mut ends = Vec::new();
        for ((list, one), style) in lists.iter().zip(&recorded).zip(RECORDING_STYLES) {
            let points: Vec<(f64, f64)> = list.iter().map(|l| (l.load, (panel.value)(l))).collect();
            let plot = Plot { area: &area, x: &x.scale, y: &y.scale };
            draw_series(&mut canvas, &plot, &points, style.0, style.1, panel.unit);
            if let Some(end) = points.iter().rev().find(|p| p.1.is_finite()) {
                ends.push((area.y_position(&y.scale, end.1), one.name.to_owned(), style.1.paint));
            }
        }
        draw_end_labels(&mut canvas, &area, &ends, right - EDGE_MARGIN);
        // The changes between the two recordings have their own row, below the labels of the load
        // axis.
        draw_x_axis(&mut canvas, &area, &x, "");
        let texts: Vec<(f64, String)> =
            changes.iter().filter_map(|c| (panel.change)(c).map(|t| (area.x_position(&x.scale, c.load), t))).collect();
        let widths: Vec<(f64, f64)> = texts.iter().map(|(at, t)| (*at, text_width(t, SMALL_FONT_SIZE, true))).collect();
        for ((at, text), shown) in texts.iter().zip(visible_labels(&widths, 6.0)) {
            if shown {
                let font = Font::new(SMALL_FONT_SIZE, Paint::Ink).bold().with_anchor(TextAnchor::Middle);
                canvas.draw_text((*at, area.bottom_edge() + 38.0), text, font);
            }
        }
        if !texts.is_empty() {
            let font = Font::new(SMALL_FONT_SIZE, Paint::Muted);
            canvas.draw_text((area.right_edge() + 14.0, area.bottom_edge() + 38.0), "change", font);
        }
        if last {
            let font = Font::new(SMALL_FONT_SIZE + 1.0, Paint::Ink).with_anchor(TextAnchor::Middle);
            canvas.draw_text((area.x + area.width / 2.0, area.bottom_edge() + 64.0), load_axis_title(over), font);
        }
    }
    canvas.into_svg(&heading.accessible_label())
}

/// Draws throughput and mean time to last byte of two recordings, with the relative change from the
/// first recording to the second.
pub fn throughput_diff_chart(heading: &Heading, over: LoadUnit, recorded: [NamedLevels; 2], theme: Theme) -> String {
    let list = [
        LevelPanel {
            title: "successful requests/s",
            unit: AxisUnit::Count,
            value: |l| l.rps,
            change: |c| c.rps.filter(|c| c.is_finite()).map(percent_change_text),
        },
        LevelPanel {
            title: "mean time to last byte",
            unit: AxisUnit::Nanoseconds,
            value: |l| l.mean_ns,
            change: |c| c.mean.filter(|c| c.is_finite()).map(percent_change_text),
        },
    ];
    let axis = |panel: &LevelPanel, values: &[f64]| match panel.unit {
        AxisUnit::Nanoseconds => latency_axis(values, 6),
        unit => Axis::new(Scale::from_zero(values.iter().copied(), 6), unit, 6),
    };
    draw_diff_panels(heading, over, recorded, &list, &axis, theme)
}

/// Draws the success rates of two recordings, with the change from the first to the second in
/// percentage points.
pub fn success_diff_chart(heading: &Heading, over: LoadUnit, recorded: [NamedLevels; 2], theme: Theme) -> String {
    let list = [LevelPanel {
        title: "success rate",
        unit: AxisUnit::Share,
        value: |l| l.success_rate,
        change: |c| c.success_points.is_finite().then(|| percentage_points(c.success_points)),
    }];
    let axis = |_: &LevelPanel, values: &[f64]| success_axis(values.iter().copied());
    draw_diff_panels(heading, over, recorded, &list, &axis, theme)
}
