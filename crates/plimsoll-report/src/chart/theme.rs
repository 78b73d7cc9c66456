//! The colours of charts, named by their meaning. The palette of Okabe and Ito is readable with any
//! kind of colour blindness. The colours also differ in lightness, for print in grey. No chart
//! relies on colour alone.

/// The medium for which a chart is drawn, such as an HTML page. The medium sets the colours and the
/// width of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Theme {
    /// A standalone chart on a white background, such as for print.
    Light,
    /// A standalone chart on a dark background.
    Dark,
    /// A chart inside an HTML page. Every colour is a CSS variable `--plimsoll-NAME`. If the page
    /// does not set the CSS variable of a colour, the chart uses the colour of the light theme.
    Page,
    /// A chart inside an HTML page on a narrow screen, such as a phone. The chart uses the colours
    /// of [`Theme::Page`].
    Phone,
}

impl Theme {
    /// Returns the width of a chart in SVG user units.
    pub fn chart_width(self) -> f64 {
        if self.is_narrow() { 380.0 } else { 800.0 }
    }

    /// Returns whether the chart is for a narrow screen.
    pub fn is_narrow(self) -> bool {
        self == Theme::Phone
    }

    /// Returns whether the chart is inside an HTML page, where a script may read the chart's data.
    pub fn in_page(self) -> bool {
        matches!(self, Theme::Page | Theme::Phone)
    }
}

/// A colour, named by its meaning in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The background of the page.
    Surface,
    /// The text of titles and figures.
    Ink,
    /// Text of less importance, such as subtitles and tick labels.
    Muted,
    /// The lines of axes.
    Axis,
    /// The lines of the grid.
    Grid,
    /// The first series of a chart, and trials that met the SLO.
    Blue,
    /// The second series of a chart, and trials that broke the SLO.
    Vermilion,
    /// The third series of a chart.
    Green,
    /// The fourth series of a chart.
    Purple,
    /// The fifth series of a chart.
    Amber,
    /// The colour of the load line.
    LoadLine,
    /// A colour of the heat map: 0 for few requests, up to 9 for many.
    Heat(u8),
}

/// The colours of the series in one chart: the first series has the first colour.
pub const SERIES_PAINTS: [Paint; 5] = [Paint::Blue, Paint::Vermilion, Paint::Green, Paint::Purple, Paint::Amber];

/// The colours of a heat map on a white background, from few requests to many. The dark theme uses
/// the same blue with the lightness reversed.
const HEAT_LIGHT: [&str; 10] =
    ["#e3eef8", "#cadff1", "#a9cce8", "#80b4da", "#569ac9", "#3280b6", "#17679e", "#0b4f83", "#073a66", "#04264a"];
const HEAT_DARK: [&str; 10] =
    ["#1a2b3c", "#1d3a55", "#1f4a70", "#225c8c", "#2b70a8", "#3f87c0", "#5fa0d3", "#88bce3", "#b5d7f0", "#e6f3fc"];

impl Paint {
    fn name_and_colours(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Paint::Surface => ("surface", "#ffffff", "#12171d"),
            Paint::Ink => ("ink", "#1a2129", "#e8edf2"),
            Paint::Muted => ("muted", "#5a6672", "#9eabb8"),
            Paint::Axis => ("axis", "#8a96a3", "#66727f"),
            Paint::Grid => ("grid", "#e4e8ec", "#28313a"),
            Paint::Blue => ("blue", "#0072b2", "#56b4e9"),
            Paint::Vermilion => ("vermilion", "#c94f00", "#f0803c"),
            Paint::Green => ("green", "#00805c", "#2cc39a"),
            Paint::Purple => ("purple", "#a8407f", "#d98bb8"),
            Paint::Amber => ("amber", "#9a6a00", "#e8b23a"),
            Paint::LoadLine => ("water", "#1d5f8a", "#7fc4f0"),
            Paint::Heat(step) => ("heat", HEAT_LIGHT[usize::from(step.min(9))], HEAT_DARK[usize::from(step.min(9))]),
        }
    }

    /// Returns the colour in the syntax of SVG and CSS.
    pub fn css_colour(self, theme: Theme) -> String {
        let (name, light, dark) = self.name_and_colours();
        match (theme, self) {
            (Theme::Light, _) => light.to_owned(),
            (Theme::Dark, _) => dark.to_owned(),
            (Theme::Page | Theme::Phone, Paint::Heat(step)) => {
                format!("var(--plimsoll-{name}-{}, {light})", step.min(9))
            }
            (Theme::Page | Theme::Phone, _) => format!("var(--plimsoll-{name}, {light})"),
        }
    }
}

/// Returns CSS that defines the colours of the light and the dark theme as variables, for pages
/// that contain charts.
pub fn css_variables() -> String {
    let paints = [Paint::Surface, Paint::Ink, Paint::Muted, Paint::Axis, Paint::Grid, Paint::LoadLine];
    let paints = || paints.into_iter().chain(SERIES_PAINTS).chain((0..10).map(Paint::Heat));
    let list = |theme: Theme| {
        let one = |paint: Paint| {
            let (name, ..) = paint.name_and_colours();
            match paint {
                Paint::Heat(step) => format!("  --plimsoll-{name}-{step}: {};\n", paint.css_colour(theme)),
                _ => format!("  --plimsoll-{name}: {};\n", paint.css_colour(theme)),
            }
        };
        paints().map(one).collect::<String>()
    };
    let (light, dark) = (list(Theme::Light), list(Theme::Dark));
    format!(":root {{\n{light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{\n{dark}}} }}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the relative luminance of a colour (WCAG 2).
    fn relative_luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn text_colours_have_enough_contrast() {
        for theme in [Theme::Light, Theme::Dark] {
            let page = relative_luminance(&Paint::Surface.css_colour(theme));
            for paint in [Paint::Ink, Paint::Muted, Paint::LoadLine].into_iter().chain(SERIES_PAINTS) {
                let own = relative_luminance(&paint.css_colour(theme));
                let contrast = (page.max(own) + 0.05) / (page.min(own) + 0.05);
                assert!(contrast >= 4.5, "{paint:?} on {theme:?}: {contrast:.2}");
            }
        }
    }
}
