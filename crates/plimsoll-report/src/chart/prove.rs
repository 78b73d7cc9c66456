//! The chart of a comparison of two servers, A and B. The comparison consists of blocks, and each
//! block measures A and B once.
//!
//! The upper plot shows the values of A and B in each block, and their levels, which are the values
//! over all blocks. Next to the levels, the chart states the estimated change and the verdict. The
//! lower plot shows how the interval of the change narrowed with more blocks. The lower plot also
//! shows the margin, which is the smallest change that matters.
//!
//! The chart always agrees with the sentence that is printed above the chart. The levels of A and B
//! differ by the estimated change, and the verdict sets the colour. The chart has an arrow only if
//! the comparison found a difference.

use super::plot::{
    Area, Axis, AxisSide, AxisUnit, EDGE_MARGIN, Heading, LEGEND_ROW_HEIGHT, LegendEntry, Plot, SMALL_FONT_SIZE,
    TEXT_FONT_SIZE, draw_left_y_axis, draw_legend_row, draw_x_axis, draw_x_grid, empty_chart, margin_width,
    open_axis_group, separate_labels,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Mark, Stroke, TextAnchor, text_width};
use super::theme::{Paint, Theme};
use crate::prove::measure_value_text;
use crate::remedy::sentence_text;
use plimsoll_analysis::prove::{
    ComparisonBlock, ComparisonResult, ConfidenceInterval, Criterion, InterimEstimate, MeasureComparison, ProveVerdict,
};

/// The result of one comparison, with the blocks from which the result was computed.
#[derive(Debug, Clone, Copy)]
pub struct ComparisonChartData<'a> {
    /// The result of the comparison.
    pub proof: &'a ComparisonResult,
    /// All blocks of the comparison, in order of time. A block is one round in which A and B are
    /// measured once each.
    pub blocks: &'a [ComparisonBlock],
    /// The interim estimates of the primary measure: after one block, after two blocks, and so on.
    pub interim_estimates: &'a [InterimEstimate],
}

const BLOCKS_HEIGHT: f64 = 230.0;
const INTERVAL_HEIGHT: f64 = 150.0;
/// The height above the plot on a narrow screen, in SVG user units. The space above the plot has
/// three rows: the levels of A and B, the change, and the key (legend).
const NARROW_HEADER_HEIGHT: f64 = 36.0 + LEGEND_ROW_HEIGHT;
/// The maximum number of blocks for which each value is drawn with a mark. With more blocks, the
/// values are drawn as lines without marks.
const MARKED_BLOCKS_MAX: usize = 120;
/// The change axis extends beyond both ends of the final interval. In total, the axis extends by
/// this multiple of the interval's width or of the margin, whichever is larger.
const CHANGE_AXIS_SPACE_RATIO: f64 = 2.0;

/// Returns the colour, point mark and line style of a side of the comparison: 0 is A, 1 is B.
fn side_style(arm: usize) -> (Paint, Mark, Stroke) {
    match arm {
        0 => (Paint::Blue, Mark::Disc, Stroke::new(Paint::Blue, 1.4).with_opacity(0.7)),
        _ => (Paint::Vermilion, Mark::Square, Stroke::new(Paint::Vermilion, 1.4).with_dash(5.0, 3.0).with_opacity(0.7)),
    }
}

/// Returns the title and the unit of the vertical axis for a measure.
fn measure_axis(measure: Criterion) -> (&'static str, AxisUnit) {
    match measure {
        Criterion::Goodput => ("goodput, requests/s", AxisUnit::Count),
        Criterion::P50 => ("p50 response time", AxisUnit::Nanoseconds),
        Criterion::P99 => ("p99 response time", AxisUnit::Nanoseconds),
        Criterion::Cpu => ("CPU time a request", AxisUnit::Nanoseconds),
    }
}

fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0).replace('-', "\u{2212}")
}

/// Returns the value of one side, A or B, in each block (round of measurements). An entry is `None`
/// if the block is void or has no value.
fn block_values(blocks: &[ComparisonBlock], measure: Criterion, arm: usize) -> Vec<Option<f64>> {
    let drawn = |value: &f64| value.is_finite();
    let of = |block: &ComparisonBlock| {
        block.arm_loads.get(arm)?.measure_value(measure).filter(drawn).filter(|_| block.void_reason().is_none())
    };
    blocks.iter().map(of).collect()
}

/// Returns an axis range around the 5 % and 95 % quantiles of the values, so that a few outliers do
/// not widen the axis. The chart draws values outside the axis range at the edge of the plot.
fn robust_range(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| sorted[((sorted.len() - 1) as f64 * q).round() as usize];
    let (low, high) = (at(0.05), at(0.95));
    let room = (high - low).max(high.abs() * 0.02) * 0.25;
    let (least, most) = finite_extent(sorted.iter().copied()).unwrap_or((low, high));
    ((low - room).max(least - room * 0.4), (high + room).min(most + room * 0.4))
}

/// The text of the estimated change and the arrow between the levels of A and B. The arrow shows
/// the direction of the change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangePointer {
    text: String,
    /// Whether the arrow points up, because the level of B is above the level of A. `None` means
    /// that no difference was found, so no arrow is drawn.
    is_change_upward: Option<bool>,
    paint: Paint,
}

impl ChangePointer {
    fn for_verdict(verdict: ProveVerdict, primary: &MeasureComparison) -> ChangePointer {
        let found = matches!(verdict, ProveVerdict::Better | ProveVerdict::Worse | ProveVerdict::SmallDifference);
        let paint = match verdict {
            ProveVerdict::Better => Paint::Green,
            ProveVerdict::Worse => Paint::Vermilion,
            ProveVerdict::SmallDifference => Paint::Ink,
            ProveVerdict::Same | ProveVerdict::Inconclusive => Paint::Muted,
        };
        let text = format!("{}, {verdict}", signed_percent(primary.ratio - 1.0));
        ChangePointer { text, is_change_upward: found.then_some(primary.ratio > 1.0), paint }
    }
}

/// Draws the chart of a comparison of A and B.
pub fn prove_chart(heading: &Heading, compared: ComparisonChartData, theme: Theme) -> String {
    let ComparisonChartData { proof, blocks, interim_estimates: narrowing } = compared;
    let Some(primary) = proof.measures.first().filter(|one| one.is_primary) else {
        return empty_chart(heading, "the compared measure has no value: there is nothing to draw", theme);
    };
    if !primary.side_values.iter().all(|level| level.is_finite()) {
        return empty_chart(
            heading,
            "so many requests failed that the compared measure is unbounded: there is nothing to draw",
            theme,
        );
    }
    let measure = primary.measure;
    let sides = [block_values(blocks, measure, 0), block_values(blocks, measure, 1)];
    let all: Vec<f64> = sides.iter().flatten().flatten().copied().collect();
    if all.is_empty() {
        return empty_chart(heading, "no block (one load of each server) is valid: there is nothing to draw", theme);
    }
    let (title, unit) = measure_axis(measure);
    let (low, high) = robust_range(&all);
    let y = Axis::new(Scale::linear(low, high), unit, 7);
    let x = Axis {
        ticks: block_ticks(blocks.len()),
        scale: Scale::linear(0.5, blocks.len() as f64 + 0.5),
        unit: AxisUnit::Count,
    };
    let change = change_axis(primary.ratio, primary.ratio_interval, primary.margin);

    let labels =
        [0, 1].map(|arm| format!("{} {}", ["A", "B"][arm], measure_value_text(measure, primary.side_values[arm])));
    let pointer = ChangePointer::for_verdict(proof.verdict, primary);
    let widest = labels
        .iter()
        .map(|l| text_width(l, TEXT_FONT_SIZE, true))
        .fold(text_width(&pointer.text, TEXT_FONT_SIZE, true) + 14.0, f64::max);
    let left = EDGE_MARGIN + margin_width(&[&y, &change]);
    let (width, top) = (theme.chart_width(), heading.height_at_width(theme.chart_width()) + 52.0);
    // On a narrow screen, the labels of the levels of A and B are above the plot. A wide screen has
    // these labels to the right of the plot.
    let area = match theme.is_narrow() {
        true => Area {
            x: left,
            y: top + NARROW_HEADER_HEIGHT,
            width: width - EDGE_MARGIN - 4.0 - left,
            height: BLOCKS_HEIGHT,
        },
        false => Area { x: left, y: top, width: width - EDGE_MARGIN - widest - 18.0 - left, height: BLOCKS_HEIGHT },
    };
    let below = Area { y: area.bottom_edge() + 46.0, height: INTERVAL_HEIGHT, ..area };
    let mut canvas = Canvas::new(theme, width, below.bottom_edge() + 54.0);
    heading.draw(&mut canvas);
    canvas.draw_text((EDGE_MARGIN, area.y - 12.0), title, Font::new(SMALL_FONT_SIZE, Paint::Ink));
    let outside = all.iter().any(|v| !(low..=high).contains(v));
    match theme.is_narrow() {
        true => {
            draw_levels_above(&mut canvas, top - 34.0, &labels, &pointer);
            draw_side_legend(&mut canvas, width - EDGE_MARGIN, area.y - 12.0 - LEGEND_ROW_HEIGHT, outside);
        }
        false => draw_side_legend(&mut canvas, area.right_edge(), area.y - 12.0, outside),
    }
    draw_x_grid(&mut canvas, &area, &x);
    draw_left_y_axis(&mut canvas, &area, &y);
    canvas.draw_straight_line(
        (area.x, area.bottom_edge()),
        (area.right_edge(), area.bottom_edge()),
        Stroke::new(Paint::Axis, 1.0),
    );
    add_block_tooltips(&mut canvas, &area, &x.scale, measure, blocks);
    open_axis_group(&mut canvas, 'z', &area, &y, AxisSide::Left);
    for (arm, values) in sides.iter().enumerate() {
        let plot = Plot { area: &area, x: &x.scale, y: &y.scale };
        draw_side_values(&mut canvas, &plot, arm, measure, values);
    }
    canvas.close_group();
    open_axis_group(&mut canvas, 'h', &area, &y, AxisSide::Left);
    draw_level_lines(&mut canvas, &area, &y.scale, primary.side_values, &labels, &pointer);
    canvas.close_group();

    // The estimate after n valid blocks (rounds of measurements) is drawn at the horizontal
    // position of the n-th valid block.
    let counts = |number: &usize| sides.iter().all(|values| values[*number].is_some());
    let numbers: Vec<f64> = (0..blocks.len()).filter(counts).map(|number| number as f64 + 1.0).collect();
    let told: Vec<InterimEstimate> =
        narrowing.iter().filter(|p| (1..=numbers.len()).contains(&p.blocks)).copied().collect();
    let narrowing = InterimEstimatePlot { interim_estimates: &told, block_positions: &numbers, margin: primary.margin };
    draw_interval_narrowing(&mut canvas, &below, &x, &change, &narrowing);
    if let (ProveVerdict::Same, Some(interval), Some(last)) =
        (proof.verdict, primary.equivalence_interval, numbers.last())
    {
        draw_equivalence_interval(&mut canvas, &below, &x, &change, *last, interval);
    }
    draw_x_axis(&mut canvas, &below, &x, "block");
    canvas.into_svg(&heading.accessible_label())
}

/// Returns the block numbers that have a tick: round numbers, and block 1 if the first round number
/// is greater than 2.
fn block_ticks(count: usize) -> Vec<f64> {
    let scale = Scale::linear(0.0, count.max(1) as f64);
    let mut ticks: Vec<f64> = scale.major_ticks(10).into_iter().filter(|t| *t >= 1.0 && t.fract() == 0.0).collect();
    if ticks.first().is_none_or(|first| *first > 2.0) {
        ticks.insert(0, 1.0);
    }
    ticks
}

/// Creates the axis of the relative change. The axis contains zero, the margin, and the final
/// interval. The axis extends beyond the final interval, because the interval was wider after fewer
/// blocks.
fn change_axis(ratio: f64, interval: Option<ConfidenceInterval>, margin: f64) -> Axis {
    let ends = interval.map_or([ratio, ratio], |interval| [interval.lower, interval.upper]);
    let reach = (ends[1] - ends[0]).max(margin);
    let shown = [
        0.0,
        margin,
        -margin,
        ends[0] - 1.0 - reach * CHANGE_AXIS_SPACE_RATIO / 2.0,
        ends[1] - 1.0 + reach * CHANGE_AXIS_SPACE_RATIO / 2.0,
    ];
    let (low, high) = finite_extent(shown).unwrap_or((-1.0, 1.0));
    Axis::new(Scale::linear(low * 1.02, high * 1.02), AxisUnit::Share, 7)
}

fn draw_side_legend(canvas: &mut Canvas, right: f64, y: f64, has_outliers: bool) {
    let entry = |arm: usize, name: &str| {
        let (paint, mark, line) = side_style(arm);
        LegendEntry { paint, mark: Some(mark), line: Some(line), name: name.to_owned() }
    };
    let mut entries = vec![entry(0, "A"), entry(1, "B")];
    if has_outliers {
        let name = "beyond the axis".to_owned();
        entries.push(LegendEntry { paint: Paint::Muted, mark: Some(Mark::Diamond), line: None, name });
    }
    let width = entries.iter().map(|e| e.width() + 18.0).sum::<f64>() - 18.0;
    draw_legend_row(canvas, right - width, y, &entries);
}

fn add_block_tooltips(canvas: &mut Canvas, area: &Area, x: &Scale, measure: Criterion, blocks: &[ComparisonBlock]) {
    for (number, block) in blocks.iter().enumerate() {
        canvas.add_pointer_text((area.x_position(x, number as f64 + 1.0), area.y), || {
            let mut text = format!("block {}", number + 1);
            let values: Vec<Option<f64>> =
                block.arm_loads.iter().map(|reading| reading.measure_value(measure)).collect();
            for (name, value) in ["A", "B"].into_iter().zip(&values) {
                let told = value.map_or_else(|| "-".to_owned(), |value| measure_value_text(measure, value));
                text.push_str(&format!("\n{name} {told}"));
            }
            match (block.void_reason(), values.as_slice()) {
                (Some(reason), _) => text.push_str(&format!("\ndoes not count: {}", sentence_text(reason))),
                (None, [Some(a), Some(b)]) => text.push_str(&format!("\nB against A {}", signed_percent(b / a - 1.0))),
                _ => {}
            }
            text
        });
    }
}

/// Draws the values of one side, A or B, over the blocks, as a line with points. Values outside the
/// range of the vertical axis are drawn as hollow marks at the edge of the plot.
fn draw_side_values(canvas: &mut Canvas, plot: &Plot, arm: usize, measure: Criterion, values: &[Option<f64>]) {
    let (paint, mark, line) = side_style(arm);
    let place =
        |(number, value): (usize, &Option<f64>)| value.map(|value| plot.point_position(number as f64 + 1.0, value));
    let places: Vec<Option<(f64, f64)>> = values.iter().enumerate().map(place).collect();
    canvas.draw_polyline(places.iter().copied(), line);
    if values.len() > MARKED_BLOCKS_MAX {
        return;
    }
    let radius = if values.len() > 60 { 2.6 } else { 3.4 };
    let (low, high) = plot.y.value_range();
    for (number, (place, value)) in places.iter().zip(values).enumerate() {
        if let (Some(place), Some(value)) = (place, value) {
            let outside = *value < low || *value > high;
            let hint = format!("block {}: {} {}", number + 1, ["A", "B"][arm], measure_value_text(measure, *value));
            canvas.draw_mark(*place, if outside { Mark::Diamond } else { mark }, radius, paint, &hint);
        }
    }
}

/// Draws the levels of A and B as horizontal lines that end with a ring. On a wide screen, the
/// names of A and B and the text of the change are to the right of the rings.
fn draw_level_lines(
    canvas: &mut Canvas,
    area: &Area,
    y: &Scale,
    levels: [f64; 2],
    labels: &[String; 2],
    pointer: &ChangePointer,
) {
    let places = levels.map(|value| area.y_position(y, value));
    let narrow = canvas.theme().is_narrow();
    let end = area.right_edge() + if narrow { 4.0 } else { 8.0 };
    for (arm, at) in places.into_iter().enumerate() {
        let paint = side_style(arm).0;
        canvas.draw_straight_line((area.x, at), (end, at), Stroke::new(paint, 2.2));
        canvas.draw_ring((end, at), 4.5, Stroke::new(paint, 2.0));
    }
    if narrow {
        return;
    }
    // The names of A and B and the text of the change are moved apart, so that close levels do not
    // make these texts overlap.
    let middle = (places[0] + places[1]) / 2.0;
    let (first, second) = if levels[0] >= levels[1] { (0, 1) } else { (1, 0) };
    let wanted = [places[first], middle, places[second]];
    let heights = separate_labels(&wanted, TEXT_FONT_SIZE + 4.0, area.y + 2.0, area.bottom_edge() - 2.0);
    let text_x = end + 9.0;
    canvas.draw_text(
        (text_x, heights[0] + 4.5),
        &labels[first],
        Font::new(TEXT_FONT_SIZE, side_style(first).0).bold().with_halo(),
    );
    canvas.draw_text(
        (text_x, heights[2] + 4.5),
        &labels[second],
        Font::new(TEXT_FONT_SIZE, side_style(second).0).bold().with_halo(),
    );
    let beside = if pointer.is_change_upward.is_some() { 14.0 } else { 0.0 };
    canvas.draw_text(
        (text_x + beside, heights[1] + 4.5),
        &pointer.text,
        Font::new(TEXT_FONT_SIZE, pointer.paint).bold().with_halo(),
    );
    let Some(up) = pointer.is_change_upward else { return };
    // The arrow points in the direction from the level of A to the level of B. In SVG a smaller y
    // value is higher on the page.
    let (from, to) = if up { (heights[1] + 5.0, heights[1] - 6.0) } else { (heights[1] - 5.0, heights[1] + 6.0) };
    let (at, ahead) = (text_x + 5.0, (to - from).signum());
    canvas.draw_straight_line((at, from), (at, to - ahead * 4.0), Stroke::new(pointer.paint, 1.5));
    canvas.draw_polygon(&[(at, to), (at - 3.5, to - ahead * 6.0), (at + 3.5, to - ahead * 6.0)], pointer.paint);
}

/// On a narrow screen, draws the level of each side as text in the row at `y`, and the change in
/// the row below.
fn draw_levels_above(canvas: &mut Canvas, y: f64, labels: &[String; 2], pointer: &ChangePointer) {
    let mut x = EDGE_MARGIN;
    for (arm, label) in labels.iter().enumerate() {
        canvas.draw_text((x, y), label, Font::new(TEXT_FONT_SIZE, side_style(arm).0).bold());
        x += text_width(label, TEXT_FONT_SIZE, true) + 22.0;
    }
    canvas.draw_text((EDGE_MARGIN, y + 18.0), &pointer.text, Font::new(TEXT_FONT_SIZE, pointer.paint).bold());
}

/// Draws the 90 % interval of the equivalence test, which decides the verdict `same`. The interval
/// is a bar at the last valid block (round of measurements).
fn draw_equivalence_interval(
    canvas: &mut Canvas,
    area: &Area,
    x: &Axis,
    y: &Axis,
    last: f64,
    interval: ConfidenceInterval,
) {
    open_axis_group(canvas, 'h', area, y, AxisSide::Left);
    let at = area.x_position(&x.scale, last);
    let (top, bottom) =
        (area.y_position(&y.scale, interval.upper - 1.0), area.y_position(&y.scale, interval.lower - 1.0));
    canvas.draw_straight_line((at, top), (at, bottom), Stroke::new(Paint::Ink, 3.0));
    canvas.draw_text(
        (at - 4.0 - text_width("90 %", SMALL_FONT_SIZE, false), top - 3.0),
        "90 %",
        Font::new(SMALL_FONT_SIZE, Paint::Ink),
    );
    canvas.close_group();
}

/// The data of the lower plot: the interim estimate after each number of blocks.
struct InterimEstimatePlot<'a> {
    interim_estimates: &'a [InterimEstimate],
    /// The position of each valid block on the block axis; entry 0 is the first valid block.
    block_positions: &'a [f64],
    margin: f64,
}

/// Draws how the interval of the change narrowed with more blocks. A band shows the interval, a
/// line shows the estimate, and a shaded area shows the margin.
fn draw_interval_narrowing(canvas: &mut Canvas, area: &Area, x: &Axis, y: &Axis, narrowing: &InterimEstimatePlot) {
    let InterimEstimatePlot { interim_estimates: standings, block_positions: numbers, margin } = *narrowing;
    canvas.draw_text(
        (EDGE_MARGIN, area.y - 12.0),
        "change from A to B after each block of loads, with its interval",
        Font::new(SMALL_FONT_SIZE, Paint::Ink),
    );
    let (top, bottom) = (area.y_position(&y.scale, margin), area.y_position(&y.scale, -margin));
    open_axis_group(canvas, 'h', area, y, AxisSide::Left);
    canvas.draw_rect(area.x, top, area.width, bottom - top, Paint::Muted, 0.12);
    canvas.close_group();
    draw_x_grid(canvas, area, x);
    draw_left_y_axis(canvas, area, y);
    let zero = area.y_position(&y.scale, 0.0);
    open_axis_group(canvas, 'h', area, y, AxisSide::Left);
    canvas.draw_straight_line((area.x, zero), (area.right_edge(), zero), Stroke::new(Paint::Ink, 1.2));
    // On a wide screen, the labels of the horizontal lines are to the right of the plot. On a
    // narrow screen each label is inside the plot, above its line.
    let (at, font) = match canvas.theme().is_narrow() {
        true => ((-4.0, -4.0), Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(TextAnchor::End).with_halo()),
        false => ((8.0, 4.0), Font::new(SMALL_FONT_SIZE, Paint::Muted)),
    };
    let mut name = |y: f64, text: &str| canvas.draw_text((area.right_edge() + at.0, y + at.1), text, font);
    name(zero, "no difference");
    if zero - top > SMALL_FONT_SIZE + 3.0 {
        name(top, &format!("margin {}", signed_percent(margin)));
    }
    if bottom - zero > SMALL_FONT_SIZE + 3.0 {
        name(bottom, &format!("margin {}", signed_percent(-margin)));
    }
    canvas.close_group();
    open_axis_group(canvas, 'z', area, y, AxisSide::Left);
    let place = |point: &InterimEstimate, value: f64| {
        (area.x_position(&x.scale, numbers[point.blocks - 1]), area.y_position(&y.scale, value - 1.0))
    };
    let ends: Vec<(&InterimEstimate, ConfidenceInterval)> =
        standings.iter().filter_map(|p| p.ratio_interval.map(|i| (p, i))).collect();
    let upper: Vec<(f64, f64)> = ends.iter().map(|(point, ends)| place(point, ends.upper)).collect();
    let lower: Vec<(f64, f64)> = ends.iter().map(|(point, ends)| place(point, ends.lower)).collect();
    let around: Vec<(f64, f64)> = upper.iter().chain(lower.iter().rev()).copied().collect();
    canvas.fill_area(&around, Paint::LoadLine, 0.25);
    canvas.draw_polyline(upper.into_iter().map(Some), Stroke::new(Paint::LoadLine, 1.0));
    canvas.draw_polyline(lower.into_iter().map(Some), Stroke::new(Paint::LoadLine, 1.0));
    canvas.draw_polyline(standings.iter().map(|p| Some(place(p, p.ratio))), Stroke::new(Paint::LoadLine, 2.2));
    canvas.close_group();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::prove_answer;
    use plimsoll_analysis::Doubts;
    use plimsoll_analysis::prove::ComparisonEnd;

    /// Returns a comparison with this verdict, measure and ratio of B to A.
    fn sample_proof(verdict: ProveVerdict, measure: Criterion, ratio: f64) -> ComparisonResult {
        let side_values = [1e6 / ratio.sqrt(), 1e6 * ratio.sqrt()];
        let ratio_interval = Some(ConfidenceInterval { lower: ratio - 0.04, upper: ratio + 0.055 });
        let (margin, p) = (0.02, 0.5);
        let equivalence_interval = Some(ConfidenceInterval { lower: ratio - 0.01, upper: ratio + 0.01 });
        let one = MeasureComparison {
            measure,
            is_primary: true,
            ratio,
            ratio_interval,
            equivalence_interval,
            p,
            margin,
            verdict,
            side_values,
        };
        let further_blocks = (verdict == ProveVerdict::Inconclusive).then_some(90);
        ComparisonResult {
            verdict,
            reason: None,
            measures: vec![one],
            success: None,
            routes: Vec::new(),
            relative_deviations: [Some(0.02); 2],
            restarts_builds: true,
            blocks: 20,
            blocks_void: 0,
            further_blocks,
            sufficient_budget_ns: further_blocks.map(|_| 240_000_000_000),
            stopped_by: ComparisonEnd::Budget,
            doubts: Doubts::default(),
        }
    }

    /// Checks that the chart and the sentence state the same result for every verdict, whether a
    /// higher or a lower value is better.
    #[test]
    fn prove_chart_and_answer_state_the_same_result() {
        use ProveVerdict::{Better, Inconclusive, Same, SmallDifference, Worse};
        for (verdict, measure, ratio, said, text, up, paint) in [
            (Better, Criterion::Goodput, 1.119, "better than A", "+11.9 %, better", Some(true), Paint::Green),
            (Worse, Criterion::Goodput, 0.9, "worse than A", "\u{2212}10.0 %, worse", Some(false), Paint::Vermilion),
            (Better, Criterion::P99, 0.9, "better than A", "\u{2212}10.0 %, better", Some(false), Paint::Green),
            (Worse, Criterion::Cpu, 1.3, "worse than A", "+30.0 %, worse", Some(true), Paint::Vermilion),
            (Same, Criterion::Goodput, 1.001, "the same as A", "+0.1 %, same", None, Paint::Muted),
            (
                SmallDifference,
                Criterion::P50,
                1.015,
                "by less than the margin",
                "+1.5 %, small",
                Some(true),
                Paint::Ink,
            ),
            (Inconclusive, Criterion::Goodput, 1.011, "inconclusive", "+1.1 %, inconclusive", None, Paint::Muted),
            (Inconclusive, Criterion::P50, 0.97, "inconclusive", "\u{2212}3.0 %, inconclusive", None, Paint::Muted),
        ] {
            let proof = sample_proof(verdict, measure, ratio);
            let pointer = ChangePointer::for_verdict(verdict, &proof.measures[0]);
            assert_eq!(pointer, ChangePointer { text: text.into(), is_change_upward: up, paint });
            let [a, b] = proof.measures[0].side_values;
            assert!(up.is_none_or(|up| up == (b > a)), "{verdict}: the levels lie as the arrow points");
            let answer = prove_answer(&proof);
            assert!(answer.contains(said), "{answer}");
            assert_eq!(answer.contains("more than"), verdict == Inconclusive, "{answer}");
        }
        let answer = prove_answer(&sample_proof(Same, Criterion::Goodput, 1.001));
        assert_eq!(
            answer,
            "B is the same as A: goodput +0.1 % (90 % interval: -0.9 to +1.1 %), inside the margin of 2.0 %"
        );
        let answer = prove_answer(&sample_proof(Inconclusive, Criterion::Goodput, 1.011));
        assert_eq!(
            answer,
            "inconclusive: goodput +1.1 % (-2.9 to +6.6 %), which excludes a difference of more than 6.6 % (the margin \
             is 2.0 %); --budget 4m would decide"
        );
    }
}
