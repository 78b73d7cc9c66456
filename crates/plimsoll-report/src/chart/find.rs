//! The picture of the product: what a server does as more is asked of it, where its load line lies, and how busy the
//! client was meanwhile. One search, or two beside each other.

use super::plot::{
    Area, Axis, EDGE, Heading, KeyEntry, SMALL, Side as Axes, TEXT, Unit, WIDTH, draw_key, draw_x, draw_x_grid, draw_y,
    empty, margin, open_on,
};
use super::scale::{Scale, extent};
use super::svg::{Anchor, Canvas, Font, Mark, Nearest, Stroke, text_width};
use super::theme::{Paint, Theme};
use crate::format::{duration, rate};
use plimsoll_analysis::summary::WORK_SHARE_MAX;
use plimsoll_analysis::{Findings, TrialOutcome, Verdict};
use plimsoll_model::Purpose;

/// One search to be drawn.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'a> {
    /// Name of the server or build; drawn only where there are two.
    pub name: &'a str,
    /// What was found.
    pub findings: &'a Findings,
}

const PLOT_HEIGHT: f64 = 270.0;
const STRIP_HEIGHT: f64 = 46.0;
/// Trials this near to each other on the page are one point of the curve.
const NEAR: f64 = 9.0;

/// The open trials that say something about the server: (rate, trial).
fn trials(findings: &Findings) -> Vec<(f64, &TrialOutcome)> {
    let open = findings.trials.iter().filter(|t| !matches!(t.purpose, Purpose::Settle | Purpose::Profile));
    let mut trials: Vec<(f64, &TrialOutcome)> =
        open.filter_map(|t| t.offered_rps().filter(|r| r.is_finite() && *r > 0.0).map(|rate| (rate, t))).collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    trials
}

/// The median on a log axis.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] * values[middle]).sqrt(),
        _ => values[middle],
    }
}

/// The curve through trials that are no voids: near ones joined to their mean rate and median p99. A trial that was cut
/// short tells only how large p99 is at least; where that is less than what a lower rate showed, it tells nothing.
fn curve(area: &Area, x: &Scale, y: &Scale, trials: &[(f64, &TrialOutcome)]) -> Vec<(f64, f64)> {
    let told = trials.iter().filter(|(_, t)| t.verdict != Verdict::Void && t.p99_ns > 0);
    let mut groups: Vec<Vec<(f64, &TrialOutcome)>> = Vec::new();
    for (rate, trial) in told {
        let at = area.at_x(x, *rate);
        match groups.last_mut().filter(|group| at - group[0].0 < NEAR) {
            Some(group) => group.push((at, trial)),
            None => groups.push(vec![(at, trial)]),
        }
    }
    let mut before = 0.0;
    let mut points = Vec::new();
    for group in &groups {
        let at = group.iter().map(|p| p.0).sum::<f64>() / group.len() as f64;
        let mut values: Vec<f64> = group.iter().map(|p| p.1.p99_ns as f64).collect();
        let value = median(&mut values);
        if group.iter().any(|p| !p.1.stopped) || value >= before {
            points.push((at, area.at_y(y, value)));
            before = value;
        }
        // Where the server falls behind, p99 grows with the length of the trial: from there on it is no curve.
        if group.iter().all(|p| p.1.verdict == Verdict::Fail) {
            break;
        }
    }
    points
}

fn mark_of(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Pass => Mark::Disc,
        Verdict::Fail => Mark::Cross,
        Verdict::Void => Mark::Diamond,
    }
}

fn hint(rate_rps: f64, trial: &TrialOutcome) -> String {
    let reason = if trial.reason.is_empty() { String::new() } else { format!(": {}", trial.reason) };
    format!(
        "{}/s for {}: p99 {}{}, {}{reason}",
        rate(rate_rps),
        duration(trial.duration_ns as f64),
        if trial.stopped { "at least " } else { "" },
        duration(trial.p99_ns as f64),
        trial.verdict
    )
}

/// One search's colours: (curve and points that held, points that did not, waterline).
fn paints(number: usize, of: usize) -> (Paint, Paint, Paint) {
    match (of, number) {
        (0 | 1, _) => (Paint::Blue, Paint::Vermilion, Paint::Water),
        (_, 0) => (Paint::Blue, Paint::Blue, Paint::Blue),
        _ => (Paint::Vermilion, Paint::Vermilion, Paint::Vermilion),
    }
}

/// The offered rates to be shown: all of them and the line, but not far beyond twice the line.
fn rates(searched: &[Searched]) -> Scale {
    let line_max = searched.iter().map(|s| s.findings.load_line_rps).map(|l| l.upper.unwrap_or(l.lower));
    let line_max = line_max.fold(0.0, f64::max);
    let all = searched.iter().flat_map(|s| trials(s.findings)).map(|t| t.0);
    let shown = all.filter(|r| line_max <= 0.0 || *r <= line_max * 2.6).chain((line_max > 0.0).then_some(line_max));
    let (lo, hi) = extent(shown).unwrap_or((0.0, 1.0));
    if hi / lo.max(1e-9) > 300.0 {
        return Scale::log(lo / 1.2, hi * 1.2);
    }
    // Room for the name of the peak at the right of its line.
    let peak = match searched {
        [one] => one.findings.peak.as_ref().map_or(0.0, |peak| peak.rps),
        _ => 0.0,
    };
    Scale::linear(0.0, (hi * 1.07).max(if peak < hi * 1.3 { peak * 1.18 } else { 0.0 }))
}

/// Draws the picture of one search, or of two with `change` (a few words, such as `+12.3 %`) between their lines.
/// More than two are drawn as two.
pub fn find_chart(heading: &Heading, searched: &[Searched], change: Option<&str>, theme: Theme) -> String {
    let searched = &searched[..searched.len().min(2)];
    let all: Vec<Vec<(f64, &TrialOutcome)>> = searched.iter().map(|s| trials(s.findings)).collect();
    if all.iter().all(Vec::is_empty) {
        return empty(heading, "no open trial was made: there is nothing to draw", theme);
    }
    let x = Axis::new(rates(searched), Unit::Count, 8);
    let bounds = searched.iter().flat_map(|s| s.findings.slo.latency.iter().map(|b| b.bound_ns as f64));
    let told = all.iter().flatten().map(|(_, t)| t.p99_ns as f64);
    let y = Axis::new(Scale::log_around(told.chain(bounds)), Unit::Time, 8);

    let two = searched.len() > 1;
    let labels_height = if two { 44.0 } else { 28.0 };
    let top = heading.height() + 26.0 + labels_height;
    let left = EDGE + margin(&[&y]).max(52.0);
    let area = Area { x: left, y: top, width: WIDTH - EDGE - left, height: PLOT_HEIGHT };
    let strip = Area { y: area.bottom() + 34.0, height: STRIP_HEIGHT, ..area };
    let mut canvas = Canvas::new(theme, WIDTH, strip.bottom() + 54.0);
    heading.draw(&mut canvas);
    key(&mut canvas, &all, heading.height() + 14.0);

    canvas.read_nearest(Nearest::Point);
    // Shades lie under the grid's lines, everything else above.
    canvas.open('z', (area.y, area.bottom()), None);
    for (number, one) in searched.iter().enumerate() {
        bracket(&mut canvas, &area, &x.scale, one.findings, paints(number, searched.len()).2);
    }
    canvas.close();
    draw_x_grid(&mut canvas, &area, &x);
    draw_y(&mut canvas, &area, &y);
    canvas.line((area.x, area.bottom()), (area.right(), area.bottom()), Stroke::new(Paint::Axis, 1.0));
    open_on(&mut canvas, 'h', &area, (&y, Axes::Left));
    slo(&mut canvas, &area, (&x.scale, &y.scale), searched);
    canvas.close();
    canvas.open('z', (area.y, area.bottom()), None);
    if let [one] = searched {
        peak(&mut canvas, &area, &x.scale, one.findings);
    }
    for (number, (one, trials)) in searched.iter().zip(&all).enumerate() {
        let (held, not_held, water) = paints(number, searched.len());
        let line = Stroke::new(held, 1.8).opacity(0.75);
        let line = if number == 1 { line.dashed(7.0, 4.0) } else { line };
        canvas.close();
        open_on(&mut canvas, 'z', &area, (&y, Axes::Left));
        canvas.polyline(curve(&area, &x.scale, &y.scale, trials).into_iter().map(Some), line);
        let waterline = area.at_x(&x.scale, one.findings.load_line_rps.lower);
        if one.findings.load_line_rps.lower > 0.0 {
            canvas.line((waterline, area.y - 4.0), (waterline, area.bottom()), Stroke::new(water, 2.2));
        }
        points(&mut canvas, &area, (&x.scale, &y.scale), trials, (held, not_held));
        canvas.close();
        canvas.open('z', (area.y, area.bottom()), None);
    }
    lines(&mut canvas, &area, &x.scale, searched, change);
    canvas.close();
    client(&mut canvas, &strip, &x, &all);
    draw_x(&mut canvas, &strip, &x, "offered rate, requests/s");
    let title = Font::new(SMALL, Paint::Ink);
    canvas.text((EDGE, area.y - 12.0), "p99 response time", title);
    canvas.finish(&heading.label())
}

/// The name of trials that did not hold the SLO, where some were cut short.
const CUT: &str = "did not hold it (with an arrow: cut short, p99 is higher)";

/// The names of points, as far as there are any.
fn key(canvas: &mut Canvas, all: &[Vec<(f64, &TrialOutcome)>], y: f64) {
    let paint = |verdict| match (all.len(), verdict) {
        (1, Verdict::Pass) => Paint::Blue,
        (1, Verdict::Fail) => Paint::Vermilion,
        _ => Paint::Muted,
    };
    let cut = all.iter().flatten().any(|(_, t)| t.verdict == Verdict::Fail && t.stopped);
    let entries: Vec<KeyEntry> = [
        (Verdict::Pass, "trial held the SLO"),
        (Verdict::Fail, "did not hold it"),
        (Verdict::Void, "void: the client was the limit"),
    ]
    .into_iter()
    .map(|(verdict, name)| if verdict == Verdict::Fail && cut { (verdict, CUT) } else { (verdict, name) })
    .filter(|(verdict, _)| all.iter().flatten().any(|(_, t)| t.verdict == *verdict))
    .map(|(verdict, name)| KeyEntry {
        paint: paint(verdict),
        mark: Some(mark_of(verdict)),
        line: None,
        name: name.to_owned(),
    })
    .collect();
    draw_key(canvas, EDGE, y, &entries);
}

/// The shade over the bracket: what is between the highest load that held and the lowest that did not.
fn bracket(canvas: &mut Canvas, area: &Area, x: &Scale, findings: &Findings, paint: Paint) {
    let line = findings.load_line_rps;
    if line.lower > 0.0 {
        let from = area.at_x(x, line.lower);
        let to = line.upper.map_or(area.right(), |upper| area.at_x(x, upper).max(from + 5.0));
        let opacity = if line.upper.is_some() { 0.22 } else { 0.07 };
        canvas.rect(from, area.y, to.min(area.right()) - from, area.height, paint, opacity);
    }
}

/// The latency bounds of the promise as lines across.
fn slo(canvas: &mut Canvas, area: &Area, (x, y): (&Scale, &Scale), searched: &[Searched]) {
    let mut drawn: Vec<(u64, String)> = Vec::new();
    for bound in searched.iter().flat_map(|s| &s.findings.slo.latency) {
        let statistic =
            if bound.quantile >= 1.0 { "max".to_owned() } else { format!("p{}", (bound.quantile * 1e6).round() / 1e4) };
        let text = format!("SLO: {statistic} \u{2264} {}", Unit::Time.tick(bound.bound_ns as f64));
        if !drawn.iter().any(|d| d.1 == text) {
            drawn.push((bound.bound_ns, text));
        }
    }
    // The words stand where no waterline goes through them.
    let lines = searched.iter().map(|s| s.findings.load_line_rps.lower).filter(|lower| *lower > 0.0);
    let left = lines.map(|lower| area.at_x(x, lower)).fold(f64::INFINITY, f64::min) > area.x + 150.0;
    let (text_x, anchor) = if left { (area.x + 8.0, Anchor::Start) } else { (area.right() - 8.0, Anchor::End) };
    let mut last_y = f64::INFINITY;
    drawn.sort();
    for (bound_ns, text) in drawn {
        let at = area.at_y(y, bound_ns as f64);
        canvas.line((area.x, at), (area.right(), at), Stroke::new(Paint::Ink, 1.4).dashed(6.0, 4.0));
        let text_y = (at - 6.0).min(last_y - 15.0);
        let text_y = if text_y < area.y + 10.0 { at + 15.0 } else { text_y };
        canvas.text((text_x, text_y), &text, Font::new(SMALL, Paint::Ink).bold().halo().anchored(anchor));
        last_y = text_y;
    }
}

/// The peak of the closed climb, where it is on the axis.
fn peak(canvas: &mut Canvas, area: &Area, x: &Scale, findings: &Findings) {
    let Some(peak) = &findings.peak else { return };
    if !peak.rps.is_finite() || peak.rps > x.range().1 || peak.rps <= x.range().0 {
        return;
    }
    let at = area.at_x(x, peak.rps);
    canvas.line((at, area.y), (at, area.bottom()), Stroke::new(Paint::Muted, 1.2).dashed(1.5, 4.0));
    let text = format!("peak {}/s", rate(peak.rps));
    let width = text_width(&text, SMALL, false);
    // At the foot, on the side away from the line and its points.
    let line = area.at_x(x, findings.load_line_rps.lower);
    let right = at >= line && at + width + 8.0 < area.right();
    let (place, anchor) = if right { (at + 6.0, Anchor::Start) } else { (at - 6.0, Anchor::End) };
    let font = Font::new(SMALL, Paint::Muted).anchored(anchor).halo();
    canvas.text((place, area.bottom() - 9.0), &text, font);
}

fn points(
    canvas: &mut Canvas,
    area: &Area,
    (x, y): (&Scale, &Scale),
    trials: &[(f64, &TrialOutcome)],
    (held, not_held): (Paint, Paint),
) {
    let mut sorted: Vec<&(f64, &TrialOutcome)> = trials.iter().filter(|t| t.0 <= x.range().1).collect();
    sorted.sort_by_key(|(_, t)| match t.verdict {
        Verdict::Void => 0,
        Verdict::Pass => 1,
        Verdict::Fail => 2,
    });
    for (rate, trial) in sorted {
        // Without any answer there is no p99: such a trial stands at the top.
        let p99 = if trial.p99_ns > 0 { trial.p99_ns as f64 } else { y.range().1 };
        let at = (area.at_x(x, *rate), area.at_y(y, p99));
        let (paint, radius) = match trial.verdict {
            Verdict::Pass => (held, 4.2),
            Verdict::Fail => (not_held, 3.8),
            Verdict::Void => (Paint::Muted, 4.2),
        };
        if trial.verdict == Verdict::Fail && trial.stopped {
            let top = at.1 - 14.0;
            canvas.line((at.0, at.1 - 5.0), (at.0, top), Stroke::new(paint, 1.4));
            let head = [(at.0 - 3.0, top + 3.5), (at.0, top), (at.0 + 3.0, top + 3.5)];
            canvas.polyline(head.map(Some), Stroke::new(paint, 1.4));
        }
        let hint = hint(*rate, trial);
        canvas.mark(at, mark_of(trial.verdict), radius, paint, &hint);
        canvas.read_out(at, || hint.replacen(": p99", "\np99", 1));
    }
}

/// The mark of Plimsoll, a ring through which the line goes, and what the lines say.
fn lines(canvas: &mut Canvas, area: &Area, x: &Scale, searched: &[Searched], change: Option<&str>) {
    let places: Vec<Option<f64>> = searched
        .iter()
        .map(|s| s.findings.load_line_rps.lower)
        .map(|lower| (lower > 0.0).then(|| area.at_x(x, lower)))
        .collect();
    let top = area.y - 11.0;
    for (number, place) in places.iter().enumerate() {
        let Some(at) = *place else { continue };
        let (_, _, paint) = paints(number, searched.len());
        canvas.ring((at, top), 5.5, Stroke::new(paint, 2.0));
        canvas.line((at, top - 10.0), (at, area.y), Stroke::new(paint, 2.0));
    }
    let name = |s: &Searched| {
        let at_least = if s.findings.load_line_rps.upper.is_none() { "at least " } else { "" };
        format!("{at_least}{}/s", rate(s.findings.load_line_rps.lower))
    };
    match (searched, places.as_slice()) {
        ([one], [Some(at)]) => {
            let text = format!("load line {}", name(one));
            label(canvas, area, (*at, top + 4.5), 11.0, &text, Paint::Water, Side::Any);
        }
        ([a, b], [at_a, at_b]) => {
            let first_left = at_a.unwrap_or(0.0) <= at_b.unwrap_or(f64::INFINITY);
            for (number, (one, at)) in [(a, at_a), (b, at_b)].into_iter().enumerate() {
                let side = if (number == 0) == first_left { Side::Left } else { Side::Right };
                if let Some(at) = at {
                    let text = format!("{} {}", one.name, name(one));
                    label(canvas, area, (*at, top + 4.5), 11.0, &text, paints(number, 2).2, side);
                }
            }
            if let (Some(from), Some(to), Some(change)) = (at_a, at_b, change) {
                arrow(canvas, area, (*from, *to), top - 19.0, change);
            }
        }
        _ => {}
    }
}

/// On which side of its point a label stands.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
    /// At the right where there is room.
    Any,
}

fn label(canvas: &mut Canvas, area: &Area, at: (f64, f64), gap: f64, text: &str, paint: Paint, side: Side) {
    let width = text_width(text, TEXT, true) + gap;
    let (fits_left, fits_right) = (at.0 - width >= EDGE + 24.0, at.0 + width <= area.right() + EDGE - 4.0);
    let right = match side {
        Side::Left => !fits_left,
        Side::Right | Side::Any => fits_right || !fits_left,
    };
    let font = Font::new(TEXT, paint).bold().halo();
    match right {
        true => canvas.text((at.0 + gap, at.1), text, font),
        false => canvas.text((at.0 - gap, at.1), text, font.anchored(Anchor::End)),
    }
}

/// From line to line, with the change above it.
fn arrow(canvas: &mut Canvas, area: &Area, (from, to): (f64, f64), y: f64, change: &str) {
    let half = text_width(change, TEXT, true) / 2.0;
    let middle = ((from + to) / 2.0).clamp(area.x + half, area.right() - half);
    let font = Font::new(TEXT, Paint::Ink).bold().anchored(Anchor::Middle);
    canvas.text((middle, y - 5.0), change, font);
    if (to - from).abs() < 4.0 {
        return;
    }
    let ahead = (to - from).signum();
    canvas.line((from, y + 3.0), (to - ahead * 5.0, y + 3.0), Stroke::new(Paint::Ink, 1.5));
    canvas.polygon(&[(to, y + 3.0), (to - ahead * 8.0, y - 1.0), (to - ahead * 8.0, y + 7.0)], Paint::Ink);
}

/// The strip: the share of its time that the client's fullest thread worked, trial by trial.
fn client(canvas: &mut Canvas, strip: &Area, x: &Axis, all: &[Vec<(f64, &TrialOutcome)>]) {
    let y = Axis { scale: Scale::linear(0.0, 1.0), unit: Unit::Share, ticks: vec![0.0, 1.0] };
    draw_x_grid(canvas, strip, x);
    draw_y(canvas, strip, &y);
    let limit = strip.at_y(&y.scale, WORK_SHARE_MAX);
    canvas.line((strip.x, limit), (strip.right(), limit), Stroke::new(Paint::Muted, 1.0).dashed(3.0, 3.0));
    let mut busiest: f64 = 0.0;
    canvas.open('z', (strip.y, strip.bottom()), None);
    for (number, trials) in all.iter().enumerate() {
        let own = paints(number, all.len()).0;
        for (rate, trial) in trials.iter().filter(|t| t.0 <= x.scale.range().1) {
            let share = trial.evidence.work_share;
            let paint = if trial.verdict == Verdict::Void { Paint::Muted } else { own };
            let (at, top) = (strip.at_x(&x.scale, *rate), strip.at_y(&y.scale, share));
            canvas.line((at, strip.bottom()), (at, top), Stroke::new(paint, 3.0).opacity(0.55));
            busiest = busiest.max(share);
        }
    }
    canvas.close();
    let text = format!(
        "how busy the client was: at most {:.0} % (from {:.0} % on a trial is void)",
        busiest.min(1.0) * 100.0,
        WORK_SHARE_MAX * 100.0
    );
    canvas.text((strip.x, strip.y - 8.0), &text, Font::new(SMALL, Paint::Muted));
}
