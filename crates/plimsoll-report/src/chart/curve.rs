//! Charts of one quantity over another on two log axes, such as burstiness over the width of the
//! time window.

use super::plot::{
    Axis, AxisSide, AxisUnit, EDGE_MARGIN, Heading, Plot, draw_end_labels, draw_left_y_axis, draw_x_axis, draw_x_grid,
    empty_chart, margin_width, open_axis_group,
};
use super::run::{ChartLine, draw_line, end_label_width, line_end_labels, line_style, open_plot_below_heading};
use super::scale::Scale;
use super::svg::{Canvas, Mark};
use super::theme::Theme;

/// The quantity that an axis shows: its title and unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisQuantity<'a> {
    /// The title of the axis in words.
    pub title: &'a str,
    /// The unit of the axis's values.
    pub unit: AxisUnit,
}

/// Draws lines over two log axes. A value of 0 or less has no position on a log axis, and is a gap
/// in the line.
pub fn curve_chart(heading: &Heading, x: AxisQuantity, y: AxisQuantity, lines: &[ChartLine], theme: Theme) -> String {
    let drawn = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite() && p.0 > 0.0 && p.1 > 0.0;
    let all = || lines.iter().flat_map(|line| &line.points).copied().filter(drawn);
    if all().next().is_none() {
        return empty_chart(
            heading,
            "the access log is too short for this chart, or its timestamps are too coarse",
            theme,
        );
    }
    let across = Axis::new(Scale::log_covering(all().map(|p| p.0)), x.unit, 9);
    let up = Axis::new(Scale::log_covering(all().map(|p| p.1)), y.unit, 9);
    let left = EDGE_MARGIN + margin_width(&[&up]);
    let right = EDGE_MARGIN + end_label_width(lines);
    let (area, mut canvas) = open_plot_below_heading(heading, y.title, left, right, theme);
    draw_x_grid(&mut canvas, &area, &across);
    draw_left_y_axis(&mut canvas, &area, &up);
    open_axis_group(&mut canvas, 'z', &area, &up, AxisSide::Left);
    for (n, line) in lines.iter().enumerate() {
        let points = line.points.iter().map(|p| if drawn(p) { *p } else { (p.0, f64::NAN) }).collect();
        let line = ChartLine { name: line.name.clone(), points };
        let plot = Plot { area: &area, x: &across.scale, y: &up.scale };
        draw_line(&mut canvas, &plot, &line, line_style(n));
        mark_sparse_points(&mut canvas, &plot, &line, n);
    }
    canvas.close_group();
    for (line, &(at, value)) in
        lines.iter().flat_map(|line| line.points.iter().filter(|p| drawn(p)).map(move |p| (line, p)))
    {
        canvas.add_pointer_text((area.x_position(&across.scale, at), area.y), || {
            format!("{} {}\n{} {}", x.title, x.unit.tick_label(at), line.name, y.unit.tick_label(value))
        });
    }
    open_axis_group(&mut canvas, 'h', &area, &up, AxisSide::Left);
    draw_end_labels(&mut canvas, &area, &line_end_labels(&area, &up.scale, lines), right - EDGE_MARGIN);
    canvas.close_group();
    draw_x_axis(&mut canvas, &area, &across, x.title);
    canvas.into_svg(&heading.accessible_label())
}

/// Marks the points of a line if it has few points, so that a reader sees which values were
/// measured.
fn mark_sparse_points(canvas: &mut Canvas, plot: &Plot, line: &ChartLine, n: usize) {
    if line.points.len() <= 12 {
        for (at, value) in line.points.iter().filter(|p| p.1.is_finite()) {
            canvas.draw_mark(plot.point_position(*at, *value), Mark::Disc, 3.4, line_style(n).paint, "");
        }
    }
}
