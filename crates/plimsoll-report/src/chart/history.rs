//! The chart of a series of runs over time. Each run is drawn as its estimate with the confidence
//! interval. Between two changes of the series, a horizontal line shows the geometric mean of the
//! runs. At each change, a vertical line has the size of the change as its label. A strip below the
//! chart shows the bottleneck of each run.
//!
//! Not here: detecting where a series changed.

use super::plot::{
    Area, Axis, AxisUnit, EDGE_MARGIN, Heading, SMALL_FONT_SIZE, draw_left_y_axis, empty_chart, margin_width,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Mark, Stroke, TextAnchor, text_width, truncate_to_width};
use super::theme::{Paint, SERIES_PAINTS, Theme};
use crate::format::{format_utc_date, rate};
use plimsoll_analysis::history::{ComparableRunSeries, SeriesOrder};

const PLOT_HEIGHT: f64 = 230.0;
const STRIP_HEIGHT: f64 = 12.0;
/// The height of the row with the title of the vertical axis, in SVG user units.
const Y_TITLE_ROW_HEIGHT: f64 = 18.0;
const LEGEND_ROW_HEIGHT: f64 = 18.0;
/// The empty space above the highest value, as a share of the highest value. The empty space below
/// the lowest value is the same share of the lowest value.
const VALUE_MARGIN: f64 = 0.04;
/// The maximum horizontal distance between two points, in SVG user units.
const POINT_DISTANCE_MAX: f64 = 60.0;

/// Draws the chart of one lane: a series of comparable runs of one service.
pub fn history_chart(heading: &Heading, lane: &ComparableRunSeries, order: SeriesOrder, theme: Theme) -> String {
    let ends = lane.points.iter().flat_map(|point| {
        let (lower, upper) = point.interval.unwrap_or((point.rps, point.rps));
        [lower, upper, point.rps]
    });
    let Some((lo, hi)) = finite_extent(ends) else {
        return empty_chart(heading, "no run has a load line or a goodput to draw", theme);
    };
    let axis =
        Axis::new(Scale::linear((lo * (1.0 - VALUE_MARGIN)).max(0.0), hi * (1.0 + VALUE_MARGIN)), AxisUnit::Count, 5);
    let top = heading.height_at_width(theme.chart_width()) + 22.0 + Y_TITLE_ROW_HEIGHT;
    let left = EDGE_MARGIN + margin_width(&[&axis]);
    let area = Area { x: left, y: top, width: theme.chart_width() - left - EDGE_MARGIN, height: PLOT_HEIGHT };
    let causes = lane_bottlenecks(lane);
    let key = legend_entry_positions(&causes, &area);
    let key_rows = key.last().map_or(1.0, |(_, row)| row + 1.0);
    let mut canvas = Canvas::new(
        theme,
        theme.chart_width(),
        area.bottom_edge() + STRIP_HEIGHT + 40.0 + key_rows * LEGEND_ROW_HEIGHT,
    );
    heading.draw(&mut canvas);
    draw_left_y_axis(&mut canvas, &area, &axis);
    let y_name = format!("{}, 1/s", lane.measure);
    canvas.draw_text((EDGE_MARGIN, area.y - 8.0 - Y_TITLE_ROW_HEIGHT), &y_name, Font::new(SMALL_FONT_SIZE, Paint::Ink));
    let step = (area.width / lane.points.len() as f64).min(POINT_DISTANCE_MAX);
    let x = |at: usize| area.x + step * (at as f64 + 0.5);
    draw_means_and_changes(&mut canvas, &area, &axis, lane, step);
    for (at, point) in lane.points.iter().enumerate() {
        let y = area.y_position(&axis.scale, point.rps);
        if let Some((lower, upper)) = point.interval {
            let ends = [lower, upper].map(|end| area.y_position(&axis.scale, end));
            canvas.draw_straight_line(
                (x(at), ends[0]),
                (x(at), ends[1]),
                Stroke::new(Paint::Blue, 2.0).with_opacity(0.55),
            );
        }
        let name = point_name(lane, at, order);
        let text = format!("{name}\n{}/s", rate(point.rps));
        canvas.draw_mark((x(at), y), Mark::Disc, 3.0, Paint::Blue, &text);
        canvas.add_pointer_text((x(at), y), || text.clone());
    }
    draw_bottleneck_strip(&mut canvas, &area, lane, &causes, step);
    for (number, (cause, (x, row))) in causes.iter().zip(key).enumerate() {
        let y = area.bottom_edge() + STRIP_HEIGHT + 44.0 + row * LEGEND_ROW_HEIGHT;
        canvas.draw_rect(x, y - 9.0, 10.0, 10.0, SERIES_PAINTS[number % SERIES_PAINTS.len()], 0.85);
        canvas.draw_text((x + 15.0, y), cause, Font::new(SMALL_FONT_SIZE, Paint::Muted));
    }
    // Only the first and the last point have a label below the chart.
    let labelled = [0, lane.points.len() - 1];
    for (number, at) in labelled.into_iter().enumerate() {
        if number == 1 && at == 0 {
            continue;
        }
        let anchor = if number == 0 { TextAnchor::Start } else { TextAnchor::End };
        let at_x = if number == 0 { area.x } else { (x(at) + step / 2.0).min(area.right_edge()) };
        let name = truncate_to_width(&point_name(lane, at, order), SMALL_FONT_SIZE, false, area.width / 2.0 - 8.0);
        // The label of the last point is omitted if it would overlap the label of the first point.
        if number == 0 || x(at) - area.x > text_width(&name, SMALL_FONT_SIZE, false) * 2.0 {
            let font = Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(anchor);
            canvas.draw_text((at_x, area.bottom_edge() + STRIP_HEIGHT + 22.0), &name, font);
        }
    }
    canvas.into_svg(&heading.accessible_label())
}

/// Returns the name of a point: the short commit if the series is ordered by commits, otherwise the
/// date.
fn point_name(lane: &ComparableRunSeries, at: usize, order: SeriesOrder) -> String {
    let run = &lane.runs[lane.points[at].runs[0]];
    let day = || format_utc_date(run.started_unix_ms).chars().take(16).collect::<String>();
    match order {
        SeriesOrder::Commit => run.commit_short().unwrap_or_else(day),
        SeriesOrder::Time => day(),
    }
}

/// Draws the geometric mean of the values between two changes of the series as a horizontal line.
/// At each change of the series, draws a vertical line with the size of the change as its label.
fn draw_means_and_changes(canvas: &mut Canvas, area: &Area, axis: &Axis, lane: &ComparableRunSeries, step: f64) {
    let mut from = 0;
    let ends = lane.changes.iter().map(|found| found.point.run_index).chain([lane.points.len()]);
    for to in ends {
        let y = area.y_position(&axis.scale, lane.geometric_mean_rps(from..to));
        let (x1, x2) = (area.x + step * from as f64, area.x + step * to as f64);
        canvas.draw_straight_line((x1, y), (x2, y), Stroke::new(Paint::LoadLine, 1.4).with_opacity(0.8));
        from = to;
    }
    for found in &lane.changes {
        let x = area.x + step * found.point.run_index as f64;
        let paint = if found.point.ratio < 1.0 { Paint::Vermilion } else { Paint::Green };
        canvas.draw_straight_line(
            (x, area.y - 4.0),
            (x, area.bottom_edge()),
            Stroke::new(paint, 1.4).with_dash(4.0, 3.0),
        );
        let text = format!("{:+.1} %", (found.point.ratio - 1.0) * 100.0);
        let anchor = if x > area.right_edge() - 60.0 { TextAnchor::End } else { TextAnchor::Start };
        canvas.draw_text(
            (x, area.y - 8.0),
            &text,
            Font::new(SMALL_FONT_SIZE, paint).bold().with_anchor(anchor).with_halo(),
        );
    }
}

/// Returns the bottleneck at a point of the series, which is the bottleneck that the first run of
/// the point found. Returns `None` if the first run has no diagnosis.
fn point_bottleneck(lane: &ComparableRunSeries, at: usize) -> Option<&str> {
    lane.runs[lane.points[at].runs[0]].summary.as_ref().and_then(|it| it.cause.as_deref())
}

/// Returns the bottlenecks of a lane (a series of comparable runs), in the order in which they
/// first occur.
fn lane_bottlenecks(lane: &ComparableRunSeries) -> Vec<&str> {
    let mut causes: Vec<&str> = Vec::new();
    for cause in (0..lane.points.len()).filter_map(|at| point_bottleneck(lane, at)) {
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes
}

/// Returns the position of each entry in the key (legend) of bottlenecks: the x coordinate in SVG
/// user units, and the row.
fn legend_entry_positions(causes: &[&str], area: &Area) -> Vec<(f64, f64)> {
    let (mut x, mut row) = (area.x, 0.0);
    let place = |cause: &&str| {
        let width = 15.0 + text_width(cause, SMALL_FONT_SIZE, false);
        if x > area.x && x + width > area.right_edge() {
            (x, row) = (area.x, row + 1.0);
        }
        let place = (x, row);
        x += width + 16.0;
        place
    };
    causes.iter().map(place).collect()
}

/// Draws the strip of bottlenecks. Each point of the series has a box in the colour of its
/// bottleneck.
fn draw_bottleneck_strip(canvas: &mut Canvas, area: &Area, lane: &ComparableRunSeries, causes: &[&str], step: f64) {
    for at in 0..lane.points.len() {
        let Some(cause) = point_bottleneck(lane, at) else { continue };
        let number = causes.iter().position(|known| *known == cause).unwrap_or(0);
        let (x, y) = (area.x + step * at as f64 + 0.5, area.bottom_edge() + 5.0);
        canvas.draw_rect(
            x,
            y,
            (step - 1.0).max(0.5),
            STRIP_HEIGHT - 4.0,
            SERIES_PAINTS[number % SERIES_PAINTS.len()],
            0.85,
        );
    }
}
