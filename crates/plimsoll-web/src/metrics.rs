//! The latest figures of each lane (a series of comparable runs of one service) as metrics in the
//! text format of Prometheus.
//!
//! Not here: the choice of a lane's latest run (`plimsoll-analysis`).

use plimsoll_analysis::history::ComparableRunSeries;
use std::fmt::Write;

/// A function that returns one figure of a lane (a series of comparable runs); `None` if the lane
/// has no such figure.
type LaneFigure = fn(&ComparableRunSeries) -> Option<f64>;

/// Renders the figures of all lanes in the text format of Prometheus.
pub fn render(lanes: &[ComparableRunSeries]) -> String {
    let mut out = String::new();
    let families: [(&str, &str, LaneFigure); 5] = [
        ("plimsoll_rps", "Load line or goodput of the latest run, requests a second", |lane| {
            lane.points.last().map(|point| point.rps)
        }),
        ("plimsoll_lower_rps", "Lower end of the interval of the load line or goodput", |lane| {
            lane.points.last()?.interval.map(|it| it.0)
        }),
        ("plimsoll_upper_rps", "Upper end of the interval of the load line or goodput", |lane| {
            lane.points.last()?.interval.map(|it| it.1)
        }),
        ("plimsoll_runs", "Number of runs in the series", |lane| Some(lane.runs.len() as f64)),
        (
            "plimsoll_last_change_ratio",
            "Ratio of the load line or goodput after its last change to the value before the change",
            |lane| lane.changes.last().map(|change| change.point.ratio),
        ),
    ];
    for (name, help, figure) in families {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
        for lane in lanes {
            let Some(value) = figure(lane) else { continue };
            let slo = lane.slo.as_deref().unwrap_or_default();
            let labels = [
                ("service", lane.service.as_str()),
                ("measure", lane.measure),
                ("slo", slo),
                ("machine", &lane.machine),
            ];
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape_label_value(value))).collect();
            let _ = writeln!(out, "{name}{{{}}} {value}", labels.join(","));
        }
    }
    out
}

/// Escapes a text as the value of a Prometheus label: quotes, backslashes and newlines.
fn escape_label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn metric_labels_are_escaped() {
        assert_eq!(super::escape_label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
