//! One chart of a run file, chosen by name or by the content of the file.
//!
//! Not here: drawing (`chart`), and conversion to a picture file.

use crate::chart::{Theme, heading, success_chart, throughput_chart};
use crate::charted::{heat_svg, percentiles_svg, time_svg};
use crate::result_view::ResultView;
use plimsoll_analysis::Summary;
use plimsoll_analysis::levels::recorded_levels;
use plimsoll_model::ExperimentSpec;

/// The charts of run files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// A search: which rates met the SLO.
    Line,
    /// A comparison: the change block by block.
    Blocks,
    /// An explanation: the evidence of each cause.
    Evidence,
    /// Levels: throughput and response time.
    Throughput,
    /// Levels: the success rate.
    Success,
    /// One load over time.
    Time,
    /// One load by percentile.
    Percentiles,
    /// One load as a heat map.
    Heat,
}

impl ChartKind {
    /// The chart that shows most of what was asked.
    fn of_question(asked: &ExperimentSpec) -> ChartKind {
        match asked {
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) => ChartKind::Line,
            ExperimentSpec::Sweep(_) => ChartKind::Throughput,
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => ChartKind::Blocks,
            ExperimentSpec::Run(_) | ExperimentSpec::Overload(_) => ChartKind::Time,
        }
    }
}

/// A chart of the file with the name `file`: the requested kind, or the default for its content.
/// The error says what the file lacks.
pub fn one_chart(
    view: &ResultView,
    file: impl std::fmt::Display,
    wanted: Option<ChartKind>,
    theme: Theme,
) -> Result<String, String> {
    let experiment = view.experiment;
    let kind = wanted.unwrap_or_else(|| ChartKind::of_question(&experiment.spec));
    match kind {
        ChartKind::Line => {
            view.line_svg(theme).ok_or_else(|| format!("--chart line: '{file}' contains no search for the load line"))
        }
        ChartKind::Blocks => view
            .blocks_svg(theme)
            .ok_or_else(|| format!("--chart blocks: '{file}' contains no comparison (plimsoll prove)")),
        ChartKind::Evidence => view
            .evidence_svg(theme)
            .ok_or_else(|| format!("--chart evidence: '{file}' contains no explanation (plimsoll explain)")),
        ChartKind::Throughput | ChartKind::Success => {
            let levels = recorded_levels(experiment).filter(|_| experiment.spec.search().is_none());
            let (over, levels) = levels
                .ok_or_else(|| format!("--chart: '{file}' contains no concurrencies to draw; give a sweep or a run"))?;
            let target = experiment.trials.first().map_or_else(String::new, |t| heading::target(&t.run.plan));
            Ok(match kind {
                ChartKind::Success => success_chart(&heading::success(over, &levels, &target), over, &levels, theme),
                _ => throughput_chart(&heading::throughput(over, &levels, &target), over, &levels, theme),
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
            trials => Err(format!(
                "--chart: '{file}' contains {} loads; this chart needs one load (plimsoll run)",
                trials.len()
            )),
        },
    }
}
