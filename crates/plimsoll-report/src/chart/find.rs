//! The main chart: the response time of a server over the offered rate, the server's load line, and
//! the utilisation of the load generator. The load line is the highest rate that meets the SLO. The
//! chart shows one search for the load line, or two searches for comparison.

use super::label_placement::{OccupiedArea, TextLabel};
use super::plot::{
    Area, Axis, AxisSide, AxisUnit, EDGE_MARGIN, Heading, LEGEND_ROW_HEIGHT, LegendEntry, Plot, SMALL_FONT_SIZE,
    TEXT_FONT_SIZE, draw_left_y_axis, draw_legend_rows, draw_x_axis, draw_x_grid, empty_chart, margin_width,
    numbered_unique_names, open_axis_group, split_legend_rows,
};
use super::scale::{Scale, finite_extent};
use super::svg::{Canvas, Font, Mark, PointerMode, Stroke, TextAnchor, text_width};
use super::theme::{Paint, Theme};
use crate::format::{duration, rate};
use crate::remedy::sentence_text;
use plimsoll_analysis::summary::WORK_SHARE_MAX;
use plimsoll_analysis::{Findings, TrialOutcome, Verdict};
use plimsoll_model::LoadPurpose;

/// One search in the chart: its result, and the name of the server.
#[derive(Debug, Clone, Copy)]
pub struct NamedSearch<'a> {
    /// The name of the server or build, which is shown only if the chart has two searches.
    pub name: &'a str,
    /// The result of the search.
    pub findings: &'a Findings,
}

const PLOT_HEIGHT: f64 = 270.0;
const STRIP_HEIGHT: f64 = 46.0;
/// The height of the row with the name of a load line, in SVG user units.
const LABEL_ROW: f64 = 17.0;
/// The title of the vertical axis of the chart.
const Y_AXIS_TITLE: &str = "p99 response time";
/// Trials that are closer to each other on the rate axis than this distance share one point of the
/// curve. The distance is in SVG user units.
const JOINED_TRIALS_DISTANCE_MAX: f64 = 9.0;

/// Returns the trials with an offered rate as pairs of rate (requests/s) and trial, ordered by
/// rate. Trials that only drain queues, warm up the server or profile it are excluded, because
/// these trials do not test a rate against the SLO.
fn trials_by_rate(findings: &Findings) -> Vec<(f64, &TrialOutcome)> {
    let open = findings.trials.iter().filter(|t| !matches!(t.purpose, LoadPurpose::Settle | LoadPurpose::Profile));
    let mut trials: Vec<(f64, &TrialOutcome)> =
        open.filter_map(|t| t.offered_rps().filter(|r| r.is_finite() && *r > 0.0).map(|rate| (rate, t))).collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    trials
}

/// Returns the median of `values`, which are drawn on a log axis. The median of an even number of
/// values is the geometric mean of the two middle values. The function sorts `values`, which must
/// not be empty.
fn log_scale_median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] * values[middle]).sqrt(),
        _ => values[middle],
    }
}

/// Returns the points of the curve of p99 over the rate, in SVG user units. Void trials are
/// skipped, because a void trial has no information about the server. Trials that are closer to
/// each other than `JOINED_TRIALS_DISTANCE_MAX` share one point, at their mean position and their
/// median p99. The p99 of a trial that stopped early is only a lower bound. If all trials of a
/// point stopped early and the point is lower than the previous point, the curve omits the point.
fn curve_points(plot: &Plot, trials: &[(f64, &TrialOutcome)]) -> Vec<(f64, f64)> {
    let told = trials.iter().filter(|(_, t)| t.verdict != Verdict::Void && t.p99_ns > 0);
    let mut groups: Vec<Vec<(f64, &TrialOutcome)>> = Vec::new();
    for (rate, trial) in told {
        let at = plot.area.x_position(plot.x, *rate);
        match groups.last_mut().filter(|group| at - group[0].0 < JOINED_TRIALS_DISTANCE_MAX) {
            Some(group) => group.push((at, trial)),
            None => groups.push(vec![(at, trial)]),
        }
    }
    let mut before = 0.0;
    let mut points = Vec::new();
    for group in &groups {
        let at = group.iter().map(|p| p.0).sum::<f64>() / group.len() as f64;
        let mut values: Vec<f64> = group.iter().map(|p| p.1.p99_ns as f64).collect();
        let value = log_scale_median(&mut values);
        if group.iter().any(|p| !p.1.is_stopped_early) || value >= before {
            points.push((at, plot.area.y_position(plot.y, value)));
            before = value;
        }
        // The p99 of an overloaded server grows with the length of the trial, so a p99 at overload
        // is arbitrary. To omit overload, the curve of p99 ends at the first point whose trials all
        // broke the SLO.
        if group.iter().all(|p| p.1.verdict == Verdict::Fail) {
            break;
        }
    }
    points
}

fn verdict_mark(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Pass => Mark::Disc,
        Verdict::Fail => Mark::Cross,
        Verdict::Void => Mark::Diamond,
    }
}

fn trial_tooltip(rate_rps: f64, trial: &TrialOutcome) -> String {
    let reason = if trial.reason.is_empty() { String::new() } else { format!(": {}", sentence_text(&trial.reason)) };
    format!(
        "{}/s for {}: p99 {}{}, {}{reason}",
        rate(rate_rps),
        duration(trial.duration_ns as f64),
        if trial.is_stopped_early { "at least " } else { "" },
        duration(trial.p99_ns as f64),
        trial.verdict_name()
    )
}

/// The colours of one search in the chart.
struct SearchPaints {
    /// The colour of the curve, and of trials that met the SLO.
    met_slo: Paint,
    /// The colour of trials that broke the SLO.
    broke_slo: Paint,
    /// The colour of the vertical line at the load line.
    load_line: Paint,
}

impl SearchPaints {
    fn new(number: usize, search_count: usize) -> SearchPaints {
        let one = |paint| SearchPaints { met_slo: paint, broke_slo: paint, load_line: paint };
        match (search_count, number) {
            (0 | 1, _) => {
                SearchPaints { met_slo: Paint::Blue, broke_slo: Paint::Vermilion, load_line: Paint::LoadLine }
            }
            (_, 0) => one(Paint::Blue),
            _ => one(Paint::Vermilion),
        }
    }
}

/// Trials above this multiple of the highest rate that the chart must show are beyond the end of
/// the rate axis. The chart must show the load line and all trials that met the SLO. If the rate
/// axis also included failed trials at much higher rates, the chart would have little space for all
/// other trials.
const TRIAL_RATE_RATIO_MAX: f64 = 1.3;
/// The chart shows the peak throughput only if the peak is at most this multiple of the highest
/// rate that the chart must show. The chart must show the upper end of the load line and all trials
/// that met the SLO.
const PEAK_RATIO_MAX: f64 = 2.0;
/// The upper limit of the time axis, as a multiple of the longest time that the chart must show.
/// The chart must show the latency bounds of the SLO, and the p99 of all trials that met the SLO.
/// Response times beyond the end of the time axis are drawn at the edge of the plot.
const TIME_AXIS_RATIO_MAX: f64 = 20.0;

/// Creates the scale of the rate axis. The axis ends a little above the load line and above all
/// trials that met the SLO. Trials beyond the end of the rate axis are drawn as arrows at the right
/// edge of the plot.
fn rate_scale(searched: &[NamedSearch]) -> Scale {
    let line = searched.iter().map(|s| s.findings.load_line).map(|l| l.upper.unwrap_or(l.rps));
    let all = || searched.iter().flat_map(|s| trials_by_rate(s.findings));
    let held = all().filter(|(_, trial)| trial.verdict == Verdict::Pass).map(|t| t.0);
    let known = line.chain(held).filter(|rate| rate.is_finite()).fold(0.0, f64::max);
    let most = if known > 0.0 { known * TRIAL_RATE_RATIO_MAX } else { f64::INFINITY };
    let shown = all().map(|t| t.0).filter(|rate| *rate <= most).chain((known > 0.0).then_some(known));
    let (lo, hi) = finite_extent(shown).unwrap_or((0.0, 1.0));
    if hi / lo.max(1e-9) > 300.0 {
        return Scale::logarithmic(lo / 1.2, hi * 1.2);
    }
    // The label of the peak needs space to the right of the peak's vertical line.
    let peak = match searched {
        [one] => one.findings.peak.as_ref().map_or(0.0, |peak| peak.rps),
        _ => 0.0,
    };
    Scale::linear(0.0, (hi * 1.07).max(if peak <= known * PEAK_RATIO_MAX { peak * 1.18 } else { 0.0 }))
}

/// Creates the scale of the time axis. The axis contains the latency bounds of the SLO, and the p99
/// of the trials up to the limit that `TIME_AXIS_RATIO_MAX` sets.
fn time_scale(searched: &[NamedSearch], all: &[Vec<(f64, &TrialOutcome)>], x: &Scale) -> Scale {
    let bounds = searched.iter().flat_map(|s| s.findings.slo.response_bounds().map(|bound| bound.bound_ns as f64));
    let shown = || all.iter().flatten().filter(|(rate, _)| *rate <= x.value_range().1);
    let held = shown().filter(|(_, trial)| trial.verdict == Verdict::Pass).map(|(_, trial)| trial.p99_ns as f64);
    let told: Vec<f64> = bounds.chain(held).collect();
    let most = told.iter().copied().fold(0.0, f64::max) * TIME_AXIS_RATIO_MAX;
    let others = shown().map(|(_, trial)| trial.p99_ns as f64).map(|ns| if most > 0.0 { ns.min(most) } else { ns });
    Scale::log_covering(told.iter().copied().chain(others))
}

/// Draws the chart of one search for the load line, or of two searches. `change` is the text above
/// the arrow from the first load line to the second, such as `+12.3 %`. The chart omits all
/// searches after the second search.
pub fn search_chart(heading: &Heading, searched: &[NamedSearch], change: Option<&str>, theme: Theme) -> String {
    let searched = &searched[..searched.len().min(2)];
    let all: Vec<Vec<(f64, &TrialOutcome)>> = searched.iter().map(|s| trials_by_rate(s.findings)).collect();
    if all.iter().all(Vec::is_empty) {
        return empty_chart(heading, "the search made no trial at a fixed rate: there is nothing to draw", theme);
    }
    let names = numbered_unique_names(searched.iter().map(|one| one.name));
    let x = Axis::new(rate_scale(searched), AxisUnit::Count, if theme.is_narrow() { 5 } else { 8 });
    let y = Axis::new(time_scale(searched, &all, &x.scale), AxisUnit::Nanoseconds, 8);

    let two = searched.len() > 1;
    // With two searches, each load line has its own row for its name. On a narrow screen the title
    // of the vertical axis has its own row, too.
    let labels_height = if two { 44.0 + LABEL_ROW } else { 28.0 } + if theme.is_narrow() { 20.0 } else { 0.0 };
    let entries = verdict_legend_entries(&all);
    let below_key = heading.height_at_width(theme.chart_width())
        + 9.0
        + split_legend_rows(&entries, theme.chart_width()).len() as f64 * LEGEND_ROW_HEIGHT;
    let left = EDGE_MARGIN + margin_width(&[&y]).max(52.0);
    let area = Area {
        x: left,
        y: below_key + labels_height,
        width: theme.chart_width() - EDGE_MARGIN - left,
        height: PLOT_HEIGHT,
    };
    let strip = Area { y: area.bottom_edge() + 34.0, height: STRIP_HEIGHT, ..area };
    let mut canvas = Canvas::new(theme, theme.chart_width(), strip.bottom_edge() + 54.0);
    heading.draw(&mut canvas);
    draw_legend_rows(&mut canvas, heading.height_at_width(theme.chart_width()) + 14.0, &entries);
    let plot = Plot { area: &area, x: &x.scale, y: &y.scale };
    let mut taken = occupied_area(&plot, searched, &all);

    canvas.set_pointer_mode(PointerMode::NearestPoint);
    // The shaded interval of the load line is drawn first, so that the grid lines and all other
    // shapes are on top.
    canvas.open_zoom_group('z', (area.y, area.bottom_edge()), None);
    for (number, one) in searched.iter().enumerate() {
        draw_load_line_interval(
            &mut canvas,
            &area,
            &x.scale,
            one.findings,
            SearchPaints::new(number, searched.len()).load_line,
        );
    }
    canvas.close_group();
    draw_x_grid(&mut canvas, &area, &x);
    draw_left_y_axis(&mut canvas, &area, &y);
    canvas.draw_straight_line(
        (area.x, area.bottom_edge()),
        (area.right_edge(), area.bottom_edge()),
        Stroke::new(Paint::Axis, 1.0),
    );
    open_axis_group(&mut canvas, 'h', &area, &y, AxisSide::Left);
    draw_slo_bounds(&mut canvas, &area, &y.scale, searched, &mut taken);
    canvas.close_group();
    canvas.open_zoom_group('z', (area.y, area.bottom_edge()), None);
    if let [one] = searched {
        draw_peak(&mut canvas, &area, &x.scale, one.findings, &mut taken);
    }
    for (number, (one, trials)) in searched.iter().zip(&all).enumerate() {
        let paints = SearchPaints::new(number, searched.len());
        let line = Stroke::new(paints.met_slo, 1.8).with_opacity(0.75);
        let line = if number == 1 { line.with_dash(7.0, 4.0) } else { line };
        canvas.close_group();
        open_axis_group(&mut canvas, 'z', &area, &y, AxisSide::Left);
        canvas.draw_polyline(curve_points(&plot, trials).into_iter().map(Some), line);
        let waterline = area.x_position(&x.scale, one.findings.load_line.rps);
        if one.findings.load_line.rps > 0.0 {
            canvas.draw_straight_line(
                (waterline, area.y - 4.0),
                (waterline, area.bottom_edge()),
                Stroke::new(paints.load_line, 2.2),
            );
        }
        draw_trials(&mut canvas, &plot, trials, &paints);
        canvas.close_group();
        canvas.open_zoom_group('z', (area.y, area.bottom_edge()), None);
    }
    draw_load_lines(&mut canvas, &area, &x.scale, searched, &names, change);
    canvas.close_group();
    draw_trials_beyond_axis(&mut canvas, &plot, &all, &mut taken);
    draw_generator_strip(&mut canvas, &strip, &x, &all);
    let counted = searched.iter().map(|one| one.findings.rate_unit).reduce(|a, b| if a == b { a } else { "arrivals" });
    draw_x_axis(&mut canvas, &strip, &x, &format!("offered rate, {}/s", counted.unwrap_or("requests")));
    let title = Font::new(SMALL_FONT_SIZE, Paint::Ink);
    let title_y = if theme.is_narrow() { below_key + 12.0 } else { area.y - 12.0 };
    canvas.draw_text((EDGE_MARGIN, title_y), Y_AXIS_TITLE, title);
    canvas.into_svg(&heading.accessible_label())
}

/// The name in the chart's key (legend) for trials that broke the SLO, if at least one of these
/// trials stopped early.
const STOPPED_EARLY_NAME: &str = "trial broke the SLO (arrow: p99 is higher than drawn)";

/// Returns the shapes that labels should not cover: curves, load lines, peaks, points and SLO
/// bounds.
fn occupied_area(plot: &Plot, searched: &[NamedSearch], all: &[Vec<(f64, &TrialOutcome)>]) -> OccupiedArea {
    let Plot { area, x, y } = *plot;
    let mut taken = OccupiedArea::default();
    for (one, trials) in searched.iter().zip(all) {
        taken.occupy_curve(&curve_points(plot, trials));
        let line = one.findings.load_line;
        for rate in [line.lower, line.upper.unwrap_or(0.0)].into_iter().filter(|rate| *rate > 0.0) {
            taken.occupy_line((area.x_position(x, rate), area.y), (area.x_position(x, rate), area.bottom_edge()));
        }
        if let Some(at) = peak_position(area, x, one.findings) {
            taken.occupy_line((at, area.y), (at, area.bottom_edge()));
        }
        for (rate, trial) in trials.iter().filter(|t| t.0 <= x.value_range().1) {
            let (at, up) =
                (trial_position(plot, *rate, trial), if is_true_p99_above_mark(y, trial) { 12.0 } else { 0.0 });
            taken.occupy_point(at, 5.0);
            taken.occupy_point((at.0, at.1 - up), 5.0);
        }
        for bound in one.findings.slo.response_bounds() {
            let at = area.y_position(y, bound.bound_ns as f64);
            taken.occupy_line((area.x, at), (area.right_edge(), at));
        }
    }
    taken
}

/// Returns the position of a trial in the plot. A trial without any response has no p99 and is
/// drawn at the upper edge.
fn trial_position(plot: &Plot, rate: f64, trial: &TrialOutcome) -> (f64, f64) {
    plot.point_position(rate, if trial.p99_ns > 0 { trial.p99_ns as f64 } else { plot.y.value_range().1 })
}

/// Returns whether the true p99 of a failed trial is higher than its point in the chart. The point
/// of a failed trial is too low if the trial stopped early, or if its p99 is beyond the time axis.
fn is_true_p99_above_mark(y: &Scale, trial: &TrialOutcome) -> bool {
    trial.verdict == Verdict::Fail && (trial.is_stopped_early || trial.p99_ns as f64 > y.value_range().1 * (1.0 + 1e-9))
}

/// Draws an arrow at the right edge for each trial whose rate is beyond the end of the rate axis. A
/// label states the lowest and the highest rate of the trials beyond the axis.
fn draw_trials_beyond_axis(
    canvas: &mut Canvas,
    plot: &Plot,
    all: &[Vec<(f64, &TrialOutcome)>],
    occupied: &mut OccupiedArea,
) {
    let (area, end) = (plot.area, plot.x.value_range().1);
    let numbered = all.iter().enumerate().flat_map(|(number, trials)| trials.iter().map(move |t| (number, t.0, t.1)));
    let far: Vec<(usize, f64, &TrialOutcome)> = numbered.filter(|(_, rate, _)| *rate > end).collect();
    let Some((least, most)) = finite_extent(far.iter().map(|f| f.1)) else { return };
    let mut place = area.y;
    for (number, rate, trial) in &far {
        let (_, at) = trial_position(plot, *rate, trial);
        let paint =
            if trial.verdict == Verdict::Void { Paint::Muted } else { SearchPaints::new(*number, all.len()).broke_slo };
        let right = area.right_edge() + 3.0;
        canvas.draw_polygon(&[(right, at - 4.5), (right + 8.0, at), (right, at + 4.5)], paint);
        let hint = trial_tooltip(*rate, trial);
        canvas.add_pointer_text((area.right_edge(), at), || hint.replacen(": p99", "\np99", 1));
        place = at;
    }
    let text = match rate(least) == rate(most) {
        true => format!("beyond: {}/s", rate(least)),
        false => format!("beyond: {} to {}/s", rate(least), rate(most)),
    };
    let void = far.iter().all(|f| f.2.verdict == Verdict::Void);
    let paint = if void { Paint::Muted } else { SearchPaints::new(0, all.len()).broke_slo };
    let words = TextLabel { text: &text, size: SMALL_FONT_SIZE, bold: false };
    let heights = [-5.0, 14.0, -20.0, 30.0, -36.0, 46.0, -60.0, 70.0, -100.0, 110.0, 150.0].map(|by| place + by);
    let places = heights.map(|height| ((area.right_edge() - 3.0, height), TextAnchor::End));
    if let Some((at, anchor)) = occupied.place_label(&words, area, places) {
        canvas.draw_text(at, &text, Font::new(SMALL_FONT_SIZE, paint).with_anchor(anchor).with_halo());
    }
}

/// Returns the entries of the key (legend) for the verdicts that occur in the chart.
fn verdict_legend_entries(all: &[Vec<(f64, &TrialOutcome)>]) -> Vec<LegendEntry> {
    let paint = |verdict| match (all.len(), verdict) {
        (1, Verdict::Pass) => Paint::Blue,
        (1, Verdict::Fail) => Paint::Vermilion,
        _ => Paint::Muted,
    };
    let is_disturbed = |(_, trial): &(f64, &TrialOutcome)| trial.is_void_by_interference();
    let is_void = |(_, trial): &(f64, &TrialOutcome)| trial.is_void_undisturbed();
    let void_name = match (all.iter().flatten().any(is_disturbed), all.iter().flatten().any(is_void)) {
        (true, true) => "void trial: plimsoll or other processes were the limit",
        (true, false) => "void trial: disturbed by other processes",
        (false, _) => "void trial: plimsoll was the limit",
    };
    let cut = all.iter().flatten().any(|(_, t)| t.verdict == Verdict::Fail && t.is_stopped_early);
    [(Verdict::Pass, "trial met the SLO"), (Verdict::Fail, "trial broke the SLO"), (Verdict::Void, void_name)]
        .into_iter()
        .map(
            |(verdict, name)| {
                if verdict == Verdict::Fail && cut { (verdict, STOPPED_EARLY_NAME) } else { (verdict, name) }
            },
        )
        .filter(|(verdict, _)| all.iter().flatten().any(|(_, t)| t.verdict == *verdict))
        .map(|(verdict, name)| LegendEntry {
            paint: paint(verdict),
            mark: Some(verdict_mark(verdict)),
            line: None,
            name: name.to_owned(),
        })
        .collect()
}

/// Shades the 90 % interval of the load line. If the interval has no upper end, the shaded area
/// reaches the right edge of the plot and is faint.
fn draw_load_line_interval(canvas: &mut Canvas, area: &Area, x: &Scale, findings: &Findings, paint: Paint) {
    let line = findings.load_line;
    if line.lower > 0.0 {
        let from = area.x_position(x, line.lower);
        let to = line.upper.map_or(area.right_edge(), |upper| area.x_position(x, upper).max(from + 5.0));
        let opacity = if line.upper.is_some() { 0.22 } else { 0.07 };
        canvas.draw_rect(from, area.y, to.min(area.right_edge()) - from, area.height, paint, opacity);
    }
}

/// Draws the latency bounds of the SLO as horizontal lines with labels.
fn draw_slo_bounds(canvas: &mut Canvas, area: &Area, y: &Scale, searched: &[NamedSearch], occupied: &mut OccupiedArea) {
    let mut drawn: Vec<(u64, String)> = Vec::new();
    for bound in searched.iter().flat_map(|s| s.findings.slo.response_bounds()) {
        let statistic =
            if bound.quantile >= 1.0 { "max".to_owned() } else { format!("p{}", (bound.quantile * 1e6).round() / 1e4) };
        let text = format!("SLO: {statistic} \u{2264} {}", AxisUnit::Nanoseconds.tick_label(bound.bound_ns as f64));
        if !drawn.iter().any(|d| d.1 == text) {
            drawn.push((bound.bound_ns, text));
        }
    }
    drawn.sort();
    for (bound_ns, text) in drawn {
        let at = area.y_position(y, bound_ns as f64);
        canvas.draw_straight_line(
            (area.x, at),
            (area.right_edge(), at),
            Stroke::new(Paint::Ink, 1.4).with_dash(6.0, 4.0),
        );
        let words = TextLabel { text: &text, size: SMALL_FONT_SIZE, bold: true };
        let heights = [at - 6.0, at + 15.0, at - 22.0, at + 31.0];
        let across = [0.0, 0.25, 0.5, 0.75].map(|share| (area.x + 8.0 + share * area.width, TextAnchor::Start));
        let across = || across.into_iter().chain([(area.right_edge() - 8.0, TextAnchor::End)]);
        let places = heights.into_iter().flat_map(|height| across().map(move |(x, anchor)| ((x, height), anchor)));
        if let Some((at, anchor)) = occupied.place_label(&words, area, places) {
            canvas.draw_text(at, &text, Font::new(SMALL_FONT_SIZE, Paint::Ink).bold().with_halo().with_anchor(anchor));
        }
    }
}

/// Draws the peak throughput, measured with a rising number of closed-loop users, as a dashed line
/// with a label. Draws nothing if the peak is beyond the rate axis.
fn draw_peak(canvas: &mut Canvas, area: &Area, x: &Scale, findings: &Findings, occupied: &mut OccupiedArea) {
    let (Some(at), Some(peak)) = (peak_position(area, x, findings), &findings.peak) else { return };
    canvas.draw_straight_line(
        (at, area.y),
        (at, area.bottom_edge()),
        Stroke::new(Paint::Muted, 1.2).with_dash(1.5, 4.0),
    );
    let text = format!("peak {}/s", rate(peak.rps));
    let words = TextLabel { text: &text, size: SMALL_FONT_SIZE, bold: false };
    // The candidate positions for the label of the peak begin at the bottom of the plot. At each
    // height, the position on the side away from the load line is tried first.
    let sides = [(at + 6.0, TextAnchor::Start), (at - 6.0, TextAnchor::End)];
    let sides = if at >= area.x_position(x, findings.load_line.rps) { sides } else { [sides[1], sides[0]] };
    let heights = (0..12).map(|step| area.bottom_edge() - 9.0 - f64::from(step) * (area.height - 24.0) / 11.0);
    let places = heights.flat_map(|height| sides.map(|(x, anchor)| ((x, height), anchor)));
    if let Some((place, anchor)) = occupied.place_label(&words, area, places) {
        canvas.draw_text(place, &text, Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(anchor).with_halo());
    }
}

/// Returns the position of the peak throughput on the rate axis in SVG user units; `None` if the
/// peak is beyond the axis.
fn peak_position(area: &Area, x: &Scale, findings: &Findings) -> Option<f64> {
    let peak = findings.peak.as_ref()?.rps;
    (peak.is_finite() && peak <= x.value_range().1 && peak > x.value_range().0).then(|| area.x_position(x, peak))
}

fn draw_trials(canvas: &mut Canvas, plot: &Plot, trials: &[(f64, &TrialOutcome)], paints: &SearchPaints) {
    let mut sorted: Vec<&(f64, &TrialOutcome)> = trials.iter().filter(|t| t.0 <= plot.x.value_range().1).collect();
    sorted.sort_by_key(|(_, t)| match t.verdict {
        Verdict::Void => 0,
        Verdict::Pass => 1,
        Verdict::Fail => 2,
    });
    for (rate, trial) in sorted {
        let at = trial_position(plot, *rate, trial);
        let (paint, radius) = match trial.verdict {
            Verdict::Pass => (paints.met_slo, 4.2),
            Verdict::Fail => (paints.broke_slo, 3.8),
            Verdict::Void => (Paint::Muted, 4.2),
        };
        if is_true_p99_above_mark(plot.y, trial) {
            let top = at.1 - 14.0;
            canvas.draw_straight_line((at.0, at.1 - 5.0), (at.0, top), Stroke::new(paint, 1.4));
            let head = [(at.0 - 3.0, top + 3.5), (at.0, top), (at.0 + 3.0, top + 3.5)];
            canvas.draw_polyline(head.map(Some), Stroke::new(paint, 1.4));
        }
        let hint = trial_tooltip(*rate, trial);
        canvas.draw_mark(at, verdict_mark(trial.verdict), radius, paint, &hint);
        canvas.add_pointer_text(at, || hint.replacen(": p99", "\np99", 1));
    }
}

/// Draws a ring at the upper end of each load line, like the ring of the Plimsoll mark on ships.
/// Each load line is labelled with its rate.
fn draw_load_lines(
    canvas: &mut Canvas,
    area: &Area,
    x: &Scale,
    searched: &[NamedSearch],
    names: &[String],
    change: Option<&str>,
) {
    let places: Vec<Option<f64>> = searched
        .iter()
        .map(|s| s.findings.load_line.rps)
        .map(|lower| (lower > 0.0).then(|| area.x_position(x, lower)))
        .collect();
    // With two searches, the label of the first load line is in the upper row.
    let row = |number: usize| area.y - 11.0 - (searched.len() - 1 - number) as f64 * LABEL_ROW;
    for (number, place) in places.iter().enumerate() {
        let (Some(at), top) = (*place, row(number)) else { continue };
        let paint = SearchPaints::new(number, searched.len()).load_line;
        canvas.draw_ring((at, top), 5.5, Stroke::new(paint, 2.0));
        canvas.draw_straight_line((at, top - 10.0), (at, area.y), Stroke::new(paint, 2.0));
    }
    let name = |s: &NamedSearch| {
        let at_least = if s.findings.load_line.upper.is_none() { "at least " } else { "" };
        format!("{at_least}{}/s", rate(s.findings.load_line.rps))
    };
    match (searched, places.as_slice()) {
        ([one], [Some(at)]) => {
            let text = format!("load line {}", name(one));
            draw_load_line_label(canvas, area, (*at, row(0) + 4.5), 11.0, &text, Paint::LoadLine);
        }
        ([a, b], [at_a, at_b]) => {
            for (number, (one, at)) in [(a, at_a), (b, at_b)].into_iter().enumerate() {
                if let Some(at) = at {
                    let text = format!("{} {}", names[number], name(one));
                    draw_load_line_label(
                        canvas,
                        area,
                        (*at, row(number) + 4.5),
                        11.0,
                        &text,
                        SearchPaints::new(number, 2).load_line,
                    );
                }
            }
            if let (Some(from), Some(to), Some(change)) = (at_a, at_b, change) {
                draw_change_arrow(canvas, area, *from, *to, row(0) - 19.0, change);
            }
        }
        _ => {}
    }
}

/// Draws a label to the right of a point, if there is enough space. A label that is too long for
/// the right side is drawn to the left of the point, but never over the axis title. A label that
/// fits on neither side of the point ends at the right edge of the plot.
fn draw_load_line_label(canvas: &mut Canvas, area: &Area, at: (f64, f64), gap: f64, text: &str, paint: Paint) {
    let width = text_width(text, TEXT_FONT_SIZE, true) + gap;
    let y_name = if canvas.theme().is_narrow() { 0.0 } else { text_width(Y_AXIS_TITLE, SMALL_FONT_SIZE, false) + 8.0 };
    let (start, end) = (EDGE_MARGIN + y_name, area.right_edge() + EDGE_MARGIN - 4.0);
    let font = Font::new(TEXT_FONT_SIZE, paint).bold().with_halo();
    if at.0 + width <= end {
        canvas.draw_text((at.0 + gap, at.1), text, font);
    } else if at.0 - width >= start {
        canvas.draw_text((at.0 - gap, at.1), text, font.with_anchor(TextAnchor::End));
    } else {
        canvas.draw_text((end, at.1), text, font.with_anchor(TextAnchor::End));
    }
}

/// Draws an arrow from the first load line to the second, with the text of the change above the
/// arrow.
fn draw_change_arrow(canvas: &mut Canvas, area: &Area, from: f64, to: f64, y: f64, change: &str) {
    let half = text_width(change, TEXT_FONT_SIZE, true) / 2.0;
    let middle = ((from + to) / 2.0).clamp(area.x + half, area.right_edge() - half);
    let font = Font::new(TEXT_FONT_SIZE, Paint::Ink).bold().with_anchor(TextAnchor::Middle);
    canvas.draw_text((middle, y - 5.0), change, font);
    if (to - from).abs() < 4.0 {
        return;
    }
    let ahead = (to - from).signum();
    canvas.draw_straight_line((from, y + 3.0), (to - ahead * 5.0, y + 3.0), Stroke::new(Paint::Ink, 1.5));
    canvas.draw_polygon(&[(to, y + 3.0), (to - ahead * 8.0, y - 1.0), (to - ahead * 8.0, y + 7.0)], Paint::Ink);
}

/// Draws the strip with the utilisation of the load generator in each trial. The utilisation is the
/// share of time in which the busiest thread of the generator worked.
fn draw_generator_strip(canvas: &mut Canvas, strip: &Area, x: &Axis, all: &[Vec<(f64, &TrialOutcome)>]) {
    let y = Axis { scale: Scale::linear(0.0, 1.0), unit: AxisUnit::Share, ticks: vec![0.0, 1.0] };
    draw_x_grid(canvas, strip, x);
    draw_left_y_axis(canvas, strip, &y);
    let limit = strip.y_position(&y.scale, WORK_SHARE_MAX);
    canvas.draw_straight_line(
        (strip.x, limit),
        (strip.right_edge(), limit),
        Stroke::new(Paint::Muted, 1.0).with_dash(3.0, 3.0),
    );
    let mut busiest: f64 = 0.0;
    canvas.open_zoom_group('z', (strip.y, strip.bottom_edge()), None);
    for (number, trials) in all.iter().enumerate() {
        let own = SearchPaints::new(number, all.len()).met_slo;
        for (rate, trial) in trials.iter().filter(|t| t.0 <= x.scale.value_range().1) {
            let share = trial.evidence.work_share;
            let paint = if trial.verdict == Verdict::Void { Paint::Muted } else { own };
            let (at, top) = (strip.x_position(&x.scale, *rate), strip.y_position(&y.scale, share));
            canvas.draw_straight_line((at, strip.bottom_edge()), (at, top), Stroke::new(paint, 3.0).with_opacity(0.55));
            busiest = busiest.max(share);
        }
    }
    canvas.close_group();
    let (busiest, limit) = (busiest.min(1.0) * 100.0, WORK_SHARE_MAX * 100.0);
    let text = match canvas.width() < 500.0 {
        true => format!("plimsoll busy: at most {busiest:.0} % (a trial is void from {limit:.0} %)"),
        false => format!("how busy plimsoll was: at most {busiest:.0} % (a trial is void from {limit:.0} % on)"),
    };
    canvas.draw_text((strip.x, strip.y - 8.0), &text, Font::new(SMALL_FONT_SIZE, Paint::Muted));
}
