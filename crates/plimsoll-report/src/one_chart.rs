//! Draws one chart of a run file. If the user does not name the kind of chart, the kind of study
//! decides which chart is drawn.
//!
//! Not here: drawing the shapes of a chart (`chart`), and converting a chart to a picture file.

use crate::chart::{Theme, heading, success_chart, throughput_chart};
use crate::page_charts::{heat_svg, percentiles_svg, time_svg};
use crate::result_view::ResultView;
use plimsoll_analysis::Summary;
use plimsoll_analysis::levels::recorded_levels;
use plimsoll_model::ExperimentSpec;

/// The kind of chart that is drawn from a run file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// The chart of a search for the load line: response time over the offered rate.
    Line,
    /// The chart of a comparison: the values of A and B in each block (round of measurements), and
    /// the change from A to B. A ladder, which measures several servers in turn, has a chart of all
    /// its servers instead.
    Blocks,
    /// The chart of an explanation: the signals that are evidence for the cause.
    Evidence,
    /// The chart of measured levels: throughput and response time over the load.
    Throughput,
    /// The chart of measured levels: the success rate over the load.
    Success,
    /// The chart of one load or of an overload test: its figures over time.
    Time,
    /// The chart of one load: its latencies by percentile.
    Percentiles,
    /// The chart of one load: its response times over time, as a heat map.
    Heat,
}

impl ChartKind {
    /// Returns the kind of chart that is drawn for a study if the user names no kind of chart.
    fn best_chart_kind(spec: &ExperimentSpec) -> ChartKind {
        match spec {
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) => ChartKind::Line,
            ExperimentSpec::Sweep(_) => ChartKind::Throughput,
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => ChartKind::Blocks,
            ExperimentSpec::Run(_) | ExperimentSpec::Overload(_) => ChartKind::Time,
        }
    }
}

/// Draws a chart of the run file named `file` as SVG. If `chart_kind` is `None`, the kind of study
/// decides the kind of chart.
///
/// # Errors
/// Returns a message if the file lacks the data for the chart. The message names the missing data.
pub fn one_chart(
    view: &ResultView,
    file: impl std::fmt::Display,
    chart_kind: Option<ChartKind>,
    theme: Theme,
) -> Result<String, String> {
    let experiment = view.experiment;
    let kind = chart_kind.unwrap_or_else(|| ChartKind::best_chart_kind(&experiment.spec));
    match kind {
        ChartKind::Line => view
            .load_line_chart_svg(theme)
            .ok_or_else(|| format!("--chart line: '{file}' contains no search for the load line")),
        ChartKind::Blocks => view.comparison_chart_svg(theme).ok_or_else(|| {
            format!("--chart blocks: '{file}' contains no comparison; give a file that plimsoll prove wrote")
        }),
        ChartKind::Evidence => view.evidence_svg(theme).ok_or_else(|| {
            format!("--chart evidence: '{file}' contains no explanation; give a file that plimsoll explain wrote")
        }),
        ChartKind::Throughput | ChartKind::Success => {
            let levels = recorded_levels(experiment).filter(|_| experiment.spec.search_spec().is_none());
            let (over, levels) = levels.ok_or_else(|| {
                format!("--chart: '{file}' contains no loads for this chart; give a run file of plimsoll sweep or run")
            })?;
            let target = experiment.trials.first().map_or_else(String::new, |t| heading::target_title(&t.run.plan));
            Ok(match kind {
                ChartKind::Success => {
                    success_chart(&heading::success_heading(over, &levels, &target), over, &levels, theme)
                }
                _ => throughput_chart(&heading::throughput_heading(over, &levels, &target), over, &levels, theme),
            })
        }
        ChartKind::Time | ChartKind::Percentiles | ChartKind::Heat => match experiment.trials.as_slice() {
            [only, ..] if matches!(experiment.spec, ExperimentSpec::Run(_)) => {
                let summary = Summary::from_run(&only.run);
                Ok(match kind {
                    ChartKind::Percentiles => percentiles_svg(&only.run, &summary, theme),
                    ChartKind::Heat => heat_svg(&only.run, &summary, theme),
                    _ => time_svg(&only.run, &summary, theme),
                })
            }
            _ => view.overload_chart_svg(theme).filter(|_| kind == ChartKind::Time).ok_or_else(|| {
                format!("--chart: this chart needs a file that plimsoll run wrote; another command wrote '{file}'")
            }),
        },
    }
}
