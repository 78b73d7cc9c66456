//! Charts of one load: latency by percentile, figures over time, and a heat map of latencies over
//! time.

use super::plot::{
    Area, Axis, AxisSide, AxisUnit, EDGE_MARGIN, Heading, Plot, SMALL_FONT_SIZE, draw_end_labels, draw_left_y_axis,
    draw_x_axis, draw_x_grid, empty_chart, margin_width, numbered_unique_names, open_axis_group,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Stroke, TextAnchor, text_width};
use super::theme::{Paint, SERIES_PAINTS, Theme};
use plimsoll_analysis::series::{IntervalFigures, LatencyHeatMap};

/// A named line of a chart: points (x, y) in ascending order of x. A point with a NaN or infinite
/// value makes a gap in the line.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// The name of the line, which the chart shows at its end.
    pub name: String,
    /// The points of the line.
    pub points: Vec<(f64, f64)>,
}

/// Returns the colour and dash pattern of line number `n`. Neighbouring lines also differ in their
/// dash pattern, so that readers need not tell colours apart.
pub(super) fn line_style(n: usize) -> Stroke {
    let stroke = Stroke::new(SERIES_PAINTS[n % SERIES_PAINTS.len()], 2.0);
    match n % 4 {
        0 => stroke,
        1 => stroke.with_dash(7.0, 4.0),
        2 => stroke.with_dash(2.5, 3.5),
        _ => stroke.with_dash(10.0, 3.0),
    }
}

pub(super) fn draw_line(canvas: &mut Canvas, plot: &Plot, line: &ChartLine, stroke: Stroke) {
    let place =
        |&(at, value): &(f64, f64)| (at.is_finite() && value.is_finite()).then(|| plot.point_position(at, value));
    let places: Vec<Option<(f64, f64)>> = line.points.iter().map(place).collect();
    // A single point between two gaps would be invisible as a line, so it gets a mark.
    for (at, place) in places.iter().enumerate() {
        let alone = |other: Option<&Option<(f64, f64)>>| other.is_none_or(Option::is_none);
        let before = at.checked_sub(1).and_then(|b| places.get(b));
        if let Some(place) = place.filter(|_| alone(before) && alone(places.get(at + 1))) {
            canvas.draw_mark(place, super::svg::Mark::Disc, 2.6, stroke.paint, "");
        }
    }
    canvas.draw_polyline(places, stroke);
}

/// Returns the label of each line for the right edge of the plot: height, name and colour.
pub(super) fn line_end_labels(area: &Area, y: &Scale, lines: &[ChartLine]) -> Vec<(f64, String, Paint)> {
    let last = |line: &ChartLine| line.points.iter().rev().map(|p| p.1).find(|v| v.is_finite());
    let names = numbered_unique_names(lines.iter().map(|line| line.name.as_str()));
    let label = |(n, (line, name)): (usize, (&ChartLine, String))| {
        Some((area.y_position(y, last(line)?), name, line_style(n).paint))
    };
    lines.iter().zip(names).enumerate().filter_map(label).collect()
}

pub(super) fn end_label_width(lines: &[ChartLine]) -> f64 {
    let names = numbered_unique_names(lines.iter().map(|line| line.name.as_str()));
    let widest = names.iter().map(|name| text_width(name, SMALL_FONT_SIZE, true)).fold(0.0, f64::max);
    widest.min(150.0) + 10.0
}

/// Creates a canvas with a heading, and the area of one plot below the heading. `left` and `right`
/// are the widths of the margins in SVG user units; `measure` is the title of the vertical axis.
pub(super) fn open_plot_below_heading(
    heading: &Heading,
    measure: &str,
    left: f64,
    right: f64,
    theme: Theme,
) -> (Area, Canvas) {
    let area = Area {
        x: left,
        y: heading.height_at_width(theme.chart_width()) + 34.0,
        width: theme.chart_width() - right - left,
        height: 300.0,
    };
    let mut canvas = Canvas::new(theme, theme.chart_width(), area.bottom_edge() + 54.0);
    heading.draw(&mut canvas);
    canvas.draw_text((EDGE_MARGIN, area.y - 13.0), measure, Font::new(SMALL_FONT_SIZE, Paint::Ink));
    (area, canvas)
}

/// Draws latency in ns over the quantile (0..1). The horizontal axis is divided as in HdrHistogram
/// plots: 90 %, 99 %, 99.9 % and so on are equally far apart.
pub fn percentile_chart(heading: &Heading, lines: &[ChartLine], theme: Theme) -> String {
    let all = || lines.iter().flat_map(|l| &l.points).filter(|p| p.0.is_finite() && p.1.is_finite());
    let Some((_, deepest)) = finite_extent(all().map(|p| p.0)) else {
        return empty_chart(heading, "no latency was measured", theme);
    };
    let x = Scale::percentile((-(1.0 - deepest.min(1.0 - 1e-9)).log10()).max(2.0));
    let mut x = Axis::new(x, AxisUnit::Share, 20);
    // The tick at 75 % is removed, because its label would overlap other labels below 90 %.
    x.ticks.retain(|t| *t != 0.75);
    let y = Axis::new(Scale::log_covering(all().map(|p| p.1)), AxisUnit::Nanoseconds, 9);
    let left = EDGE_MARGIN + margin_width(&[&y]);
    let right = EDGE_MARGIN + end_label_width(lines);
    let (area, mut canvas) = open_plot_below_heading(heading, "latency", left, right, theme);
    draw_x_grid(&mut canvas, &area, &x);
    draw_left_y_axis(&mut canvas, &area, &y);
    open_axis_group(&mut canvas, 'z', &area, &y, AxisSide::Left);
    for (n, line) in lines.iter().enumerate() {
        draw_line(&mut canvas, &Plot { area: &area, x: &x.scale, y: &y.scale }, line, line_style(n));
    }
    canvas.close_group();
    add_quantile_tooltips(&mut canvas, &area, &x.scale, lines, deepest);
    open_axis_group(&mut canvas, 'h', &area, &y, AxisSide::Left);
    draw_end_labels(&mut canvas, &area, &line_end_labels(&area, &y.scale, lines), right - EDGE_MARGIN);
    canvas.close_group();
    draw_x_axis(&mut canvas, &area, &x, "share of the requests with this latency or less");
    canvas.into_svg(&heading.accessible_label())
}

/// Adds the texts that a page shows at the mouse pointer. The axis has a text at each of 121 evenly
/// spaced positions. Each text contains a percentile and its latency in every line.
fn add_quantile_tooltips(canvas: &mut Canvas, area: &Area, x: &Scale, lines: &[ChartLine], deepest: f64) {
    for step in 0..=120 {
        let quantile = x.value_at(f64::from(step) / 120.0).min(deepest);
        let at = |line: &ChartLine| line.points.iter().find(|p| p.0 >= quantile).or(line.points.last()).map(|p| p.1);
        canvas.add_pointer_text((area.x_position(x, quantile), area.y), || {
            let values = lines
                .iter()
                .filter_map(|l| at(l).map(|v| format!("{} {}", l.name, AxisUnit::Nanoseconds.tick_label(v))));
            // A quantile close to 100 % needs more decimals, so that 99.99 % is not shown as 100 %.
            let digits = (-(1.0 - quantile).max(1e-9).log10()).floor().max(1.0) as usize;
            format!("{:.digits$} %", quantile * 100.0) + &values.map(|v| format!("\n{v}")).collect::<String>()
        });
    }
}

/// Adds the texts that a page shows at the mouse pointer. The text for a point in time has the
/// values of all lines in all panels. If the lines have more than 400 points in time, only every
/// n-th point has a text, so that there are at most 400 texts.
fn add_time_tooltips(canvas: &mut Canvas, area: &Area, x: &Scale, panels: &[Panel]) {
    let all = panels.iter().flat_map(|p| &p.lines);
    let mut times: Vec<f64> = all.flat_map(|l| l.points.iter().map(|p| p.0)).filter(|t| t.is_finite()).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let step = times.len().div_ceil(400).max(1);
    for time in times.into_iter().step_by(step) {
        canvas.add_pointer_text((area.x_position(x, time), area.y), || {
            let mut text = format!("at {time:.1} s");
            for (panel, line) in panels.iter().flat_map(|p| p.lines.iter().map(move |l| (p, l))) {
                if let Some((_, value)) = line.points.iter().find(|p| p.0 == time && p.1.is_finite()) {
                    let figure = if panel.unit == AxisUnit::Share { (value * 1e3).round() / 1e3 } else { *value };
                    text.push_str(&format!("\n{} {}", line.name, panel.unit.tick_label(figure)));
                }
            }
            text
        });
    }
}

/// One of several plots that are arranged one below the other with a common time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The title of the panel.
    pub title: String,
    /// The unit of the panel's values.
    pub unit: AxisUnit,
    /// Whether the vertical axis is logarithmic. On a logarithmic axis, a value of 0 or less is a
    /// gap in its line.
    pub is_log_scale: bool,
    /// The lines of the panel, whose x values are times since the start in s.
    pub lines: Vec<ChartLine>,
}

/// Creates the panels of one load from its figures by interval: rates, response times, errors, and
/// the lag and utilisation of the load generator. Panels without data are omitted.
pub fn interval_panels(moments: &[IntervalFigures]) -> Vec<Panel> {
    let of = |name: &str, value: &dyn Fn(&IntervalFigures) -> f64| ChartLine {
        name: name.to_owned(),
        points: moments.iter().map(|m| (m.start_s + m.length_s / 2.0, value(m))).collect(),
    };
    let during = |m: &IntervalFigures, value: f64| if m.is_after_schedule { f64::NAN } else { value };
    let time = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let mut rates = vec![of("succeeded", &|m| during(m, m.succeeded_rps))];
    let differs = |m: &IntervalFigures| (m.scheduled_rps - m.succeeded_rps).abs() > m.scheduled_rps * 0.02;
    if moments.iter().any(differs) {
        rates.push(of("scheduled", &|m| during(m, m.scheduled_rps)));
    }
    let panel = |title: &str, unit, log, lines| Panel { title: title.to_owned(), unit, is_log_scale: log, lines };
    let mut panels = vec![
        panel("requests/s", AxisUnit::Count, false, rates),
        panel(
            "response time",
            AxisUnit::Nanoseconds,
            true,
            vec![
                of("p50", &|m| time(m.p50_ns)),
                of("p90", &|m| time(m.p90_ns)),
                of("p99", &|m| time(m.p99_ns)),
                of("max", &|m| time(m.max_ns)),
            ],
        ),
    ];
    if moments.iter().any(|m| m.errors_rps > 0.0) {
        panels.push(panel(
            "failed or never sent, requests/s",
            AxisUnit::Count,
            false,
            vec![of("errors", &|m| m.errors_rps)],
        ));
    }
    if moments.iter().any(|m| m.lag_p99_ns.is_some()) {
        let lag = vec![of("lag p99", &|m| time(m.lag_p99_ns))];
        panels.push(panel("delay of sending a request, compared with its schedule", AxisUnit::Nanoseconds, true, lag));
    }
    panels.push(panel("how busy plimsoll was", AxisUnit::Share, false, vec![of("busy", &|m| during(m, m.work_share))]));
    // Panels without any point are removed, such as the panel of response times if no request
    // succeeded.
    panels.retain(|panel| panel.lines.iter().any(|line| line.points.iter().any(|point| point.1.is_finite())));
    panels
}

fn panel_axis(panel: &Panel) -> Axis {
    let values = panel.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1)).filter(|v| v.is_finite());
    let values: Vec<f64> = values.collect();
    let scale = match (panel.unit, panel.is_log_scale) {
        (AxisUnit::Share, _) => Scale::linear(0.0, 1.0),
        (_, true) => Scale::log_covering(values.iter().copied()),
        (_, false) => Scale::from_zero(values.iter().copied(), 4),
    };
    match panel.unit {
        AxisUnit::Share => Axis { scale, unit: panel.unit, ticks: vec![0.0, 0.5, 1.0] },
        unit => Axis::new(scale, unit, 5),
    }
}

/// Draws panels one below the other over a common time axis.
pub fn time_chart(heading: &Heading, panels: &[Panel], theme: Theme) -> String {
    let times = panels.iter().flat_map(|p| p.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)));
    let Some((first, last)) = finite_extent(times) else {
        return empty_chart(heading, "nothing was measured", theme);
    };
    let x = Axis::new(Scale::linear(first.min(0.0), last), AxisUnit::ElapsedSeconds, 9);
    let axes: Vec<Axis> = panels.iter().map(panel_axis).collect();
    let left = EDGE_MARGIN + margin_width(&axes.iter().collect::<Vec<_>>());
    let right = EDGE_MARGIN + panels.iter().map(|p| end_label_width(&p.lines)).fold(0.0, f64::max);
    let mut y = heading.height_at_width(theme.chart_width()) + 32.0;
    let height_of = |panel: &Panel| match (panel.unit, panel.lines.len()) {
        (AxisUnit::Share, _) => 56.0,
        (_, 1) => 84.0,
        _ => 120.0,
    };
    let height = y + panels.iter().map(|p| height_of(p) + 40.0).sum::<f64>() + 18.0;
    let mut canvas = Canvas::new(theme, theme.chart_width(), height);
    heading.draw(&mut canvas);
    for (number, (panel, axis)) in panels.iter().zip(&axes).enumerate() {
        let area = Area { x: left, y, width: theme.chart_width() - right - left, height: height_of(panel) };
        canvas.draw_text((EDGE_MARGIN, area.y - 13.0), &panel.title, Font::new(SMALL_FONT_SIZE, Paint::Ink));
        draw_x_grid(&mut canvas, &area, &x);
        draw_left_y_axis(&mut canvas, &area, axis);
        if number == 0 {
            add_time_tooltips(&mut canvas, &area, &x.scale, panels);
        }
        open_axis_group(&mut canvas, 'z', &area, axis, AxisSide::Left);
        for (n, line) in panel.lines.iter().enumerate() {
            let points =
                line.points.iter().map(|&(t, v)| (t, if panel.is_log_scale && v <= 0.0 { f64::NAN } else { v }));
            let line = ChartLine { name: line.name.clone(), points: points.collect() };
            let plot = Plot { area: &area, x: &x.scale, y: &axis.scale };
            draw_line(&mut canvas, &plot, &line, Stroke { width: 1.6, ..line_style(n) });
        }
        canvas.close_group();
        if panel.lines.len() > 1 {
            open_axis_group(&mut canvas, 'h', &area, axis, AxisSide::Left);
            draw_end_labels(
                &mut canvas,
                &area,
                &line_end_labels(&area, &axis.scale, &panel.lines),
                right - EDGE_MARGIN,
            );
            canvas.close_group();
        }
        y = area.bottom_edge() + 40.0;
        if number + 1 == panels.len() {
            draw_x_axis(&mut canvas, &area, &x, "time since the start");
        }
    }
    canvas.into_svg(&heading.accessible_label())
}

/// The number of colours in a heat map. The first colour marks cells with few requests, and the
/// last colour marks cells with many requests.
const HEAT_COLOUR_COUNT: u8 = 10;

/// Draws the heat map of response times over time. Cells with more requests are darker (on a dark
/// page lighter). `lines`, such as p50 and p99, are drawn on top of the cells.
pub fn heat_chart(heading: &Heading, heat: &LatencyHeatMap, lines: &[ChartLine], theme: Theme) -> String {
    let most = heat.cells.iter().map(|c| c.2).max().unwrap_or(0);
    let (Some(lowest), Some(highest), true) = (heat.edges_ns.first(), heat.edges_ns.last(), most > 0) else {
        return empty_chart(heading, "no latency was measured", theme);
    };
    let y = Axis::new(Scale::logarithmic(*lowest, *highest), AxisUnit::Nanoseconds, 8);
    let x = Axis::new(Scale::linear(0.0, heat.columns as f64 * heat.column_s), AxisUnit::ElapsedSeconds, 9);
    let left = EDGE_MARGIN + margin_width(&[&y]);
    let right = EDGE_MARGIN + if lines.is_empty() { 0.0 } else { end_label_width(lines) };
    let (area, mut canvas) = open_plot_below_heading(heading, "response time", left, right, theme);

    // The colour of a heat-map cell depends on the logarithm of its number of responses, so that
    // one slow response among thousands is visible.
    let step_of = |count: u64| {
        let share = (count as f64).ln_1p() / (most as f64).ln_1p();
        ((share * f64::from(HEAT_COLOUR_COUNT)).ceil() as u8).clamp(1, HEAT_COLOUR_COUNT) - 1
    };
    let mut by_step: Vec<Vec<(f64, f64, f64, f64)>> = vec![Vec::new(); usize::from(HEAT_COLOUR_COUNT)];
    let column_of = |column: usize| (area.x_position(&x.scale, column as f64 * heat.column_s) * 2.0).round() / 2.0;
    let row_of = |ns: f64| (area.y_position(&y.scale, ns) * 2.0).round() / 2.0;
    for &(column, row, count) in &heat.cells {
        if let (Some(low), Some(high)) = (heat.edges_ns.get(row), heat.edges_ns.get(row + 1)) {
            let (from, to) = (column_of(column), column_of(column + 1));
            let (top, bottom) = (row_of(*high), row_of(*low));
            by_step[usize::from(step_of(count))].push((from, top, (to - from).max(0.5), (bottom - top).max(0.5)));
        }
    }
    draw_left_y_axis(&mut canvas, &area, &y);
    add_heat_map_tooltips(&mut canvas, &area, &x.scale, heat, lines);
    canvas.open_zoom_group('z', (area.y, area.bottom_edge()), None);
    for (step, cells) in by_step.iter().enumerate() {
        canvas.draw_cells(cells, Paint::Heat(step as u8));
    }
    for (n, line) in lines.iter().enumerate() {
        // Each line gets a wider outline in the page's background colour, which separates the line
        // from the cells.
        let plot = Plot { area: &area, x: &x.scale, y: &y.scale };
        draw_line(&mut canvas, &plot, line, Stroke::new(Paint::Surface, 3.4).with_opacity(0.85));
        let stroke = Stroke { paint: HEATMAP_LINE_COLOURS[n % HEATMAP_LINE_COLOURS.len()], ..line_style(n) };
        draw_line(&mut canvas, &plot, line, Stroke { width: 1.7, ..stroke });
    }
    canvas.close_group();
    let mut labels = line_end_labels(&area, &y.scale, lines);
    labels.iter_mut().enumerate().for_each(|(n, label)| label.2 = HEATMAP_LINE_COLOURS[n % HEATMAP_LINE_COLOURS.len()]);
    draw_end_labels(&mut canvas, &area, &labels, right - EDGE_MARGIN);
    draw_x_axis(&mut canvas, &area, &x, "time since the start");
    draw_heat_map_legend(&mut canvas, area.right_edge(), area.y - 13.0, most);
    canvas.into_svg(&heading.accessible_label())
}

/// Adds the texts that a page shows at the mouse pointer. The text for a column of the heat map has
/// the number of responses and the values of the lines.
fn add_heat_map_tooltips(canvas: &mut Canvas, area: &Area, x: &Scale, heat: &LatencyHeatMap, lines: &[ChartLine]) {
    let mut counts = vec![0u64; heat.columns];
    for &(column, _, count) in &heat.cells {
        if let Some(sum) = counts.get_mut(column) {
            *sum += count;
        }
    }
    for (column, count) in counts.into_iter().enumerate() {
        let (from, to) = (column as f64 * heat.column_s, (column + 1) as f64 * heat.column_s);
        canvas.add_pointer_text((area.x_position(x, (from + to) / 2.0), area.y), || {
            let mut text = format!("{from:.1} to {to:.1} s\n{} responses", crate::format::count(count));
            for line in lines {
                if let Some((_, value)) = line.points.iter().find(|p| p.0 >= from && p.0 < to && p.1.is_finite()) {
                    text.push_str(&format!("\n{} {}", line.name, AxisUnit::Nanoseconds.tick_label(*value)));
                }
            }
            text
        });
    }
}

/// The colours of lines on top of the heat map, chosen for contrast with the blue cells.
const HEATMAP_LINE_COLOURS: [Paint; 2] = [Paint::Amber, Paint::Vermilion];

/// Draws the key (legend) of the heat map's colours, from 1 request to the maximum. The key ends at
/// the x coordinate `right`.
fn draw_heat_map_legend(canvas: &mut Canvas, right: f64, y: f64, most: u64) {
    let text = format!("{} requests", crate::format::count(most));
    let font = Font::new(SMALL_FONT_SIZE, Paint::Muted);
    canvas.draw_text((right, y), &text, font.with_anchor(TextAnchor::End));
    let width = 9.0;
    let from = right - text_width(&text, SMALL_FONT_SIZE, false) - 8.0 - width * f64::from(HEAT_COLOUR_COUNT);
    for step in 0..HEAT_COLOUR_COUNT {
        let cell = (from + f64::from(step) * width, y - 10.0, width, 11.0);
        canvas.draw_cells(&[cell], Paint::Heat(step));
    }
    canvas.draw_text((from - 7.0, y), "1", font.with_anchor(TextAnchor::End));
}
