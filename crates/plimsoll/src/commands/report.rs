//! `plimsoll report`: formats run files as a page, a summary, or a single chart.

use crate::args::{ChartArg, ReportArgs, ReportFormat};
use crate::pictures::write_chart;
use crate::results::page::whole_page;
use crate::results::{Results, print, read_run_file};
use plimsoll_analysis::Conditions;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{Experiment, ExperimentSpec};
use plimsoll_report::chart::{self, PICTURE_SUFFIX, Theme};
use plimsoll_report::{ChartKind, Report, json, junit, markdown, one_chart, pages};
use plimsoll_study::output::write_file;
use std::path::{Path, PathBuf};

/// Writes the report. Returns the exit code.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let format = report_format(args)?;
    if args.chart.is_some() && !matches!(format, ReportFormat::Svg | ReportFormat::Png) {
        return Err(Failure::usage("--chart: only svg and png show one chart; add --format svg or png"));
    }
    let slo = Conditions::parse(&args.slo).map_err(|e| Failure::usage(format!("--slo: {e}")))?;
    let experiments = args.files.iter().map(|path| read_run_file(path)).collect::<Result<Vec<_>, _>>()?;
    let files: Vec<(&Path, &Experiment)> = args.files.iter().map(PathBuf::as_path).zip(&experiments).collect();
    let text = match format {
        ReportFormat::Html => {
            let path = args.output.clone().unwrap_or_else(|| args.files[0].with_extension("html"));
            write_file(&path, whole_page(&files)?.as_bytes())?;
            if args.output.is_none() {
                print(&format!("report: {}\n", path.display()));
            }
            return Ok(exit::SUCCESS);
        }
        ReportFormat::Png => {
            let Some(path) = &args.output else {
                return Err(Failure::usage("--format png: a picture cannot go to a terminal; add -o FILE.png"));
            };
            write_chart(path, &draw_single_chart(args, &files)?)?;
            return Ok(exit::SUCCESS);
        }
        ReportFormat::Svg => draw_single_chart(args, &files)?,
        ReportFormat::Md => {
            let mut reports = Vec::with_capacity(files.len());
            for (path, experiment) in &files {
                reports.push((*path, experiment_summary(path, experiment)?));
            }
            markdown::render(&pages::join_reports(reports))
        }
        ReportFormat::Junit => {
            let suites = files.iter().map(|(path, experiment)| {
                Ok(Results::from_experiment(experiment, Some(path))?
                    .view()
                    .junit_suite(path.display().to_string(), &slo))
            });
            junit::render(&suites.collect::<Result<Vec<_>, Failure>>()?)
        }
        ReportFormat::Json => {
            let of = |(path, experiment): &(&Path, &Experiment)| {
                Ok(Results::from_experiment(experiment, Some(path))?.view().render_json_document())
            };
            let documents = files.iter().map(of).collect::<Result<Vec<_>, Failure>>()?;
            let document = match <[_; 1]>::try_from(documents) {
                Ok([only]) => only,
                Err(several) => several.into(),
            };
            json::indented_json_text(&document)
        }
    };
    match &args.output {
        Some(path) => write_file(path, text.as_bytes())?,
        None => print(&text),
    }
    Ok(exit::SUCCESS)
}

/// Returns the format of the report: the value of --format, or else the format of the output file's
/// suffix. Without both, the format is SVG with --chart, and HTML otherwise.
fn report_format(args: &ReportArgs) -> Result<ReportFormat, Failure> {
    let suffix = args.output.as_ref().and_then(|path| path.extension()).map(|s| s.to_string_lossy().to_lowercase());
    let named = match suffix.as_deref() {
        Some("html" | "htm") => Some(ReportFormat::Html),
        Some("md" | "markdown") => Some(ReportFormat::Md),
        Some("xml") => Some(ReportFormat::Junit),
        Some("json") => Some(ReportFormat::Json),
        Some("svg") => Some(ReportFormat::Svg),
        Some("png") => Some(ReportFormat::Png),
        _ => None,
    };
    let format = match (args.format.or(named), &args.output, args.chart) {
        (Some(format), ..) => format,
        (None, None, None) => ReportFormat::Html,
        (None, None, Some(_)) => ReportFormat::Svg,
        (None, Some(path), _) => {
            return Err(Failure::usage(format!(
                "-o {file}: the file name has no known ending; use .html, .md, .xml, .json, .svg or .png, or add \
                 --format",
                file = path.display()
            )));
        }
    };
    if format == ReportFormat::Png && PICTURE_SUFFIX != "png" {
        return Err(Failure::usage("--format: this plimsoll was built without PNG; choose svg"));
    }
    Ok(format)
}

/// Returns the summary of a run file as Markdown.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn summary_text(path: &Path) -> Result<String, Failure> {
    Ok(markdown::render(&experiment_summary(path, &read_run_file(path)?)?))
}

/// Returns the chart of a run file as PNG, or as SVG in a build without PNG.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn chart_picture(path: &Path) -> Result<Vec<u8>, Failure> {
    let svg = draw_chart(path, &read_run_file(path)?, None, Theme::Light)?;
    chart::render_picture(&svg).map_err(|error| Failure::cannot_start(format!("the chart was not drawn: {error}")))
}

/// Returns the summary of an experiment.
fn experiment_summary(path: &Path, experiment: &Experiment) -> Result<Report, Failure> {
    let page = Results::from_experiment(experiment, Some(path))?.html_page_report();
    Ok(pages::shorten_to_summary(page, matches!(experiment.spec, ExperimentSpec::Sweep(_))))
}

fn draw_single_chart(args: &ReportArgs, files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
    let [(path, experiment)] = files else {
        return Err(Failure::usage(
            "--format svg and png: give one run file for the chart; `plimsoll diff A B` draws charts of two run files",
        ));
    };
    let theme = if args.dark { Theme::Dark } else { Theme::Light };
    draw_chart(path, experiment, args.chart.map(ChartKind::from), theme)
}

fn draw_chart(path: &Path, experiment: &Experiment, kind: Option<ChartKind>, theme: Theme) -> Result<String, Failure> {
    let results = Results::from_experiment(experiment, Some(path))?;
    one_chart(&results.view(), path.display(), kind, theme).map_err(Failure::usage)
}

impl From<ChartArg> for ChartKind {
    fn from(arg: ChartArg) -> ChartKind {
        match arg {
            ChartArg::Line => ChartKind::Line,
            ChartArg::Blocks => ChartKind::Blocks,
            ChartArg::Evidence => ChartKind::Evidence,
            ChartArg::Throughput => ChartKind::Throughput,
            ChartArg::Success => ChartKind::Success,
            ChartArg::Time => ChartKind::Time,
            ChartArg::Percentiles => ChartKind::Percentiles,
            ChartArg::Heat => ChartKind::Heat,
        }
    }
}
