//! The chart of the evidence for the cause that limits a server. A signal is a measured figure that
//! is evidence for a cause. Each signal has three bars: at a low load, at the load line (highest
//! rate that meets the SLO), and above the load line. The scale of each signal begins at 0 and ends
//! at the signal's highest value, because only the signal's change with the load matters.

use super::plot::{EDGE_MARGIN, Heading, SMALL_FONT_SIZE, TEXT_FONT_SIZE, empty_chart};
use super::svg::{Canvas, Font, TextAnchor, text_width, truncate_to_width};
use super::theme::{Paint, Theme};

/// One signal (measured figure) of the chart: its name, and its values at a low load, at the load
/// line and above the load line.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceBars {
    /// The name of the signal in words.
    pub name: String,
    /// The values of the signal at the low load, at the load line and above the load line, each
    /// with its formatted text. A value is `None` if the signal was not observed at that load.
    pub values: [Option<(f64, String)>; 3],
}

/// The labels and colours of the three loads in a chart: the low load, the load line, and above the
/// load line.
const LOAD_LABEL_PAINTS: [(&str, Paint); 3] =
    [("low", Paint::Blue), ("line", Paint::LoadLine), ("past", Paint::Vermilion)];
/// The height of a bar including the gap to the next bar, in SVG user units.
const BAR_HEIGHT: f64 = 16.0;
/// The height of the row with a signal's name, which is above its bars, in SVG user units.
const SIGNAL_NAME_HEIGHT: f64 = 24.0;
/// The gap between two signals, in SVG user units.
const SIGNAL_GAP_HEIGHT: f64 = 12.0;

/// Draws a chart in which each signal has three bars: at the low load, at the load line and above
/// the load line.
pub fn evidence_chart(heading: &Heading, signals: &[EvidenceBars], theme: Theme) -> String {
    if signals.is_empty() {
        return empty_chart(heading, "no evidence for any cause of the load line was observed", theme);
    }
    let written = signals.iter().flat_map(|signal| signal.values.iter().flatten());
    let widest = written.map(|(_, text)| text_width(text, SMALL_FONT_SIZE, true)).fold(0.0, f64::max);
    let names = LOAD_LABEL_PAINTS.iter().map(|(name, _)| text_width(name, SMALL_FONT_SIZE, false)).fold(0.0, f64::max);
    let from_x = EDGE_MARGIN + names + 10.0;
    let length = (theme.chart_width() - EDGE_MARGIN - widest - 8.0 - from_x).max(40.0);
    let row = SIGNAL_NAME_HEIGHT + LOAD_LABEL_PAINTS.len() as f64 * BAR_HEIGHT + SIGNAL_GAP_HEIGHT;
    let top = heading.height_at_width(theme.chart_width()) + 6.0;
    let mut canvas = Canvas::new(theme, theme.chart_width(), top + row * signals.len() as f64 + 4.0);
    heading.draw(&mut canvas);
    for (number, signal) in signals.iter().enumerate() {
        let y = top + row * number as f64;
        let name = truncate_to_width(&signal.name, TEXT_FONT_SIZE, true, theme.chart_width() - 2.0 * EDGE_MARGIN);
        canvas.draw_text((EDGE_MARGIN, y + 16.0), &name, Font::new(TEXT_FONT_SIZE, Paint::Ink).bold());
        let most = signal.values.iter().flatten().map(|(value, _)| *value).fold(0.0, f64::max);
        for (at, ((load, paint), value)) in LOAD_LABEL_PAINTS.iter().zip(&signal.values).enumerate() {
            let base = y + SIGNAL_NAME_HEIGHT + BAR_HEIGHT * at as f64;
            let load_at = (from_x - 8.0, base + 10.5);
            canvas.draw_text(load_at, load, Font::new(SMALL_FONT_SIZE, Paint::Muted).with_anchor(TextAnchor::End));
            let (share, text) = match value {
                Some((value, text)) => (if most > 0.0 { value.max(0.0) / most } else { 0.0 }, text.as_str()),
                None => (0.0, "not seen"),
            };
            // A signal with the value 0 has a thin bar, and a signal that was not observed has no
            // bar.
            if value.is_some() {
                canvas.draw_rect(from_x, base + 1.0, (share * length).max(1.5), BAR_HEIGHT - 5.0, *paint, 1.0);
            }
            let end = from_x + share * length + 7.0;
            let font = Font::new(SMALL_FONT_SIZE, if value.is_some() { Paint::Ink } else { Paint::Muted });
            canvas.draw_text((end, base + 10.5), text, if value.is_some() { font.bold() } else { font });
        }
    }
    canvas.into_svg(&heading.accessible_label())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_shows_its_value() {
        let heading = Heading { title: "Evidence".into(), subtitle: "of a server".into() };
        let signals = [
            EvidenceBars {
                name: "idle cores".into(),
                values: [Some((2.0, "2.00".into())), Some((0.5, "0.50".into())), None],
            },
            EvidenceBars { name: "<all> nothing".into(), values: [Some((0.0, "0".into())), None, None] },
        ];
        for theme in [Theme::Light, Theme::Page, Theme::Phone] {
            let svg = evidence_chart(&heading, &signals, theme);
            for text in ["idle cores", ">2.00<", ">0.50<", "not seen", "&lt;all&gt; nothing", ">past<"] {
                assert!(svg.contains(text), "{text}: {svg}");
            }
            assert!(!svg.contains("NaN"));
            // Three of the six values in `signals` were observed, so the chart must have three
            // bars.
            let unobserved = signals.clone().map(|signal| EvidenceBars { values: [None, None, None], ..signal });
            let empty = evidence_chart(&heading, &unobserved, theme);
            let bars = |svg: &str| svg.matches("<rect").count();
            assert_eq!(bars(&svg) - bars(&empty), 3);
        }
        assert!(evidence_chart(&heading, &[], Theme::Light).contains("no evidence for any cause"));
    }
}
