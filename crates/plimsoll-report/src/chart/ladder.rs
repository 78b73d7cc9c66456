//! The chart of a ladder, which measures several servers (rungs) in turn, and compares each server
//! with the previous server. Each server has a row in the chart. The row of a server has the
//! server's goodput in every block, its median goodput, and its share of the previous server's
//! goodput.

use super::plot::{
    Area, Axis, AxisUnit, EDGE_MARGIN, Heading, SMALL_FONT_SIZE, TEXT_FONT_SIZE, draw_x_axis, draw_x_grid, empty_chart,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Mark, PointerMode, Stroke, text_width, truncate_to_width, wrap_to_width};
use super::theme::{Paint, SERIES_PAINTS, Theme};
use crate::format::rate;
use crate::prove::{rung_added_cost_text, rung_goodput_share_text};
use plimsoll_analysis::prove::{ComparisonBlock, Criterion, Ladder, arm_name};

/// The data of a ladder's chart: the result, the blocks from which the result was computed, and the
/// names of the rungs (measured servers).
#[derive(Debug, Clone, Copy)]
pub struct LadderChartData<'a> {
    /// The result of the ladder: goodput and cost of each rung (measured server).
    pub ladder: &'a Ladder,
    /// All blocks of the ladder in order of time. A block is one round in which every rung (server)
    /// is measured once.
    pub blocks: &'a [ComparisonBlock],
    /// The URL of each rung (measured server).
    pub rung_urls: &'a [String],
}

const ROW_HEIGHT: f64 = 90.0;
/// The height of a line of small text, in SVG user units.
const LINE_HEIGHT: f64 = 15.0;
/// The height in SVG user units of the strip at the bottom of a rung's (server's) row. The strip
/// has one point for each block, which is one round of measurements.
const STRIP_HEIGHT: f64 = 30.0;
/// The goodput axis is logarithmic if the ratio of the highest to the lowest goodput is at least
/// this number.
const LOG_AXIS_RATIO_MIN: f64 = 8.0;

/// Draws the chart of a ladder: a row for each rung (server) with its goodput in every block (round
/// of measurements).
pub fn ladder_chart(heading: &Heading, drawn: LadderChartData, theme: Theme) -> String {
    let LadderChartData { ladder, blocks, rung_urls: sides } = drawn;
    let counting: Vec<(usize, &ComparisonBlock)> =
        blocks.iter().enumerate().filter(|(_, b)| b.void_reason().is_none()).collect();
    let values = |rung: usize| {
        let of = move |(number, block): &(usize, &ComparisonBlock)| {
            Some((*number, block.arm_loads.get(rung)?.measure_value(Criterion::Goodput)?))
        };
        counting.iter().filter_map(of).collect::<Vec<(usize, f64)>>()
    };
    let rungs: Vec<Vec<(usize, f64)>> = (0..ladder.rungs.len()).map(values).collect();
    let all = || rungs.iter().flatten().map(|(_, value)| *value);
    let Some((low, high)) = finite_extent(all()) else {
        return empty_chart(heading, "no block (one load of each server) is valid: there is nothing to draw", theme);
    };
    let scale = if high / low >= LOG_AXIS_RATIO_MIN { Scale::log_covering(all()) } else { Scale::from_zero(all(), 8) };
    let x = Axis::new(scale, AxisUnit::Count, 8);
    let labels: Vec<String> = ladder.rungs.iter().map(|rung| format!("{}/s", rate(rung.goodput_rps))).collect();
    let widest = labels.iter().map(|label| text_width(label, TEXT_FONT_SIZE, true)).fold(0.0, f64::max);
    // On a narrow screen the text of a rung (measured server) needs two lines.
    let row_height = ROW_HEIGHT + if theme.is_narrow() { LINE_HEIGHT } else { 0.0 };
    let area = Area {
        x: EDGE_MARGIN + 8.0,
        y: heading.height_at_width(theme.chart_width()) + 14.0,
        width: theme.chart_width() - 2.0 * EDGE_MARGIN - 16.0 - widest,
        height: row_height * rungs.len() as f64 + 6.0,
    };
    let mut canvas = Canvas::new(theme, theme.chart_width(), area.bottom_edge() + 54.0);
    canvas.set_pointer_mode(PointerMode::NearestPoint);
    heading.draw(&mut canvas);
    draw_x_grid(&mut canvas, &area, &x);
    for (number, rung) in ladder.rungs.iter().enumerate() {
        let top = area.y + row_height * number as f64;
        let strip = Area { y: top + row_height - STRIP_HEIGHT - 4.0, height: STRIP_HEIGHT, ..area };
        let paint = SERIES_PAINTS[number % SERIES_PAINTS.len()];
        let middle = area.x_position(&x.scale, rung.goodput_rps);
        canvas.open_zoom_group('z', (strip.y, strip.bottom_edge()), None);
        if let Some(before) = number.checked_sub(1).map(|before| ladder.rungs[before].goodput_rps) {
            // A dashed line connects the goodput of the previous rung (server) with the goodput of
            // this rung.
            let (from, at) = (area.x_position(&x.scale, before), strip.y + STRIP_HEIGHT / 2.0);
            canvas.draw_straight_line((from, at), (middle, at), Stroke::new(Paint::Muted, 1.4).with_dash(3.0, 3.0));
        }
        for &(block, value) in &rungs[number] {
            // The point of each block (round of measurements) is drawn lower in the strip than the
            // previous point, so that points overlap less.
            let place = (block as f64 + 0.5) / blocks.len().max(1) as f64;
            let at = (area.x_position(&x.scale, value), strip.y + 3.0 + place * (STRIP_HEIGHT - 6.0));
            let hint = format!("block {}: {} {}/s", block + 1, arm_name(number as u8), rate(value));
            canvas.draw_mark(at, Mark::Disc, 2.8, paint, &hint);
            canvas.add_pointer_text(at, || hint.replace(": ", "\n"));
        }
        canvas.draw_straight_line(
            (middle, strip.y - 3.0),
            (middle, strip.bottom_edge() + 3.0),
            Stroke::new(paint, 2.4),
        );
        canvas.draw_ring((middle, strip.y - 7.5), 4.5, Stroke::new(paint, 2.0));
        canvas.close_group();
        let name = format!("{}  {}", arm_name(number as u8), sides.get(number).map_or("", String::as_str));
        let font = Font::new(TEXT_FONT_SIZE, Paint::Ink).bold().with_halo();
        canvas.draw_text((area.x, top + 18.0), &truncate_to_width(&name, TEXT_FONT_SIZE, true, area.width), font);
        canvas.draw_text(
            (area.right_edge() + 10.0, strip.y + STRIP_HEIGHT / 2.0 + 4.5),
            &labels[number],
            Font::new(TEXT_FONT_SIZE, paint).bold(),
        );
        if let (Some(share), Some(cost)) = (rung_goodput_share_text(rung), rung_added_cost_text(rung)) {
            let previous_step = arm_name(number as u8 - 1);
            let told =
                format!("goodput: {share} of {previous_step}; cost of a request compared with {previous_step}: {cost}");
            let room = theme.chart_width() - EDGE_MARGIN - area.x;
            for (line, words) in wrap_to_width(&told, SMALL_FONT_SIZE, false, room, 2).iter().enumerate() {
                let at = (area.x, top + 35.0 + line as f64 * LINE_HEIGHT);
                canvas.draw_text(at, words, Font::new(SMALL_FONT_SIZE, Paint::Muted).with_halo());
            }
        }
    }
    draw_x_axis(&mut canvas, &area, &x, "goodput, requests/s");
    canvas.into_svg(&heading.accessible_label())
}
