//! `plimsoll report`: what run files hold as a page, a summary, or a single chart.

use crate::args::{ChartArg, ReportArgs, ReportFormat};
use crate::pictures::{write, write_chart};
use crate::results::page::{joined, whole_page};
use crate::results::{Results, levels, print, read};
use plimsoll_analysis::{Conditions, Summary};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{Experiment, ExperimentSpec};
use plimsoll_report::chart::{self, PICTURE_SUFFIX, Theme, heading};
use plimsoll_report::{Report, heat_svg, json, junit, markdown, percentiles_svg, time_svg};
use std::path::{Path, PathBuf};

/// Reports, and says with which code to end.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let format = format(args)?;
    if args.chart.is_some() && !matches!(format, ReportFormat::Svg | ReportFormat::Png) {
        return Err(Failure::usage("--chart: only svg and png show one chart; add --format svg or png"));
    }
    let slo = Conditions::parse(&args.slo).map_err(|e| Failure::usage(format!("--slo: {e}")))?;
    let experiments = args.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let files: Vec<(&Path, &Experiment)> = args.files.iter().map(PathBuf::as_path).zip(&experiments).collect();
    let text = match format {
        ReportFormat::Html => {
            let path = args.output.clone().unwrap_or_else(|| args.files[0].with_extension("html"));
            write(&path, whole_page(&files)?.as_bytes())?;
            if args.output.is_none() {
                print(&format!("report: {}\n", path.display()));
            }
            return Ok(exit::DONE);
        }
        ReportFormat::Png => {
            let Some(path) = &args.output else {
                return Err(Failure::usage("--format png: a picture cannot go to a terminal; add -o FILE.png"));
            };
            write_chart(path, &one_chart(args, &files)?)?;
            return Ok(exit::DONE);
        }
        ReportFormat::Svg => one_chart(args, &files)?,
        ReportFormat::Md => {
            let reports = files.iter().map(|(path, experiment)| summary(path, experiment));
            markdown::render(&joined(&files, reports.collect::<Result<Vec<_>, _>>()?))
        }
        ReportFormat::Junit => {
            let suites = files.iter().map(|(path, experiment)| {
                Ok(Results::from_experiment(experiment, Some(path))?.view().suite(path.display().to_string(), &slo))
            });
            junit::render(&suites.collect::<Result<Vec<_>, Failure>>()?)
        }
        ReportFormat::Json => {
            let of = |(path, experiment): &(&Path, &Experiment)| {
                Ok(Results::from_experiment(experiment, Some(path))?.view().document())
            };
            let documents = files.iter().map(of).collect::<Result<Vec<_>, Failure>>()?;
            let document = match <[_; 1]>::try_from(documents) {
                Ok([only]) => only,
                Err(several) => several.into(),
            };
            json::text(&document)
        }
    };
    match &args.output {
        Some(path) => write(path, text.as_bytes())?,
        None => print(&text),
    }
    Ok(exit::DONE)
}

/// What to write: as said, or as the name of the output ends.
fn format(args: &ReportArgs) -> Result<ReportFormat, Failure> {
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
                "-o {}: the name has no known ending; end it in .html, .md, .xml, .json, .svg or .png, or add \
                 --format",
                path.display()
            )));
        }
    };
    if format == ReportFormat::Png && PICTURE_SUFFIX != "png" {
        return Err(Failure::usage("--format: this plimsoll was built without PNG; choose svg"));
    }
    Ok(format)
}

/// What a file holds, in short, as Markdown.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn summary_text(path: &Path) -> Result<String, Failure> {
    Ok(markdown::render(&summary(path, &read(path)?)?))
}

/// The chart of a file as a picture.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn chart_picture(path: &Path) -> Result<Vec<u8>, Failure> {
    let svg = draw(path, &read(path)?, None, Theme::Light)?;
    chart::picture(&svg).map_err(|error| Failure::start(format!("the chart was not drawn: {error}")))
}

/// What a file holds, in short.
fn summary(path: &Path, experiment: &Experiment) -> Result<Report, Failure> {
    let mut report = Results::from_experiment(experiment, Some(path))?.page();
    // Tables of every trial and the machine belong on the page, not into a summary.
    let long = ["Evidence", "The load line, seen closely", "More users instead of a higher rate"];
    let mut keep = true;
    report.blocks.retain(|block| {
        if let plimsoll_report::ReportBlock::Heading(text) = block {
            keep = !long.contains(&text.as_str()) || matches!(experiment.asked, ExperimentSpec::Sweep(_));
        }
        keep
    });
    Ok(report)
}

fn one_chart(args: &ReportArgs, files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
    let [(path, experiment)] = files else {
        return Err(Failure::usage("--format svg and png: one chart of one file; `plimsoll diff A B` draws two"));
    };
    let theme = if args.dark { Theme::Dark } else { Theme::Light };
    draw(path, experiment, args.chart, theme)
}

fn draw(path: &Path, experiment: &Experiment, wanted: Option<ChartArg>, theme: Theme) -> Result<String, Failure> {
    let wanted = wanted.unwrap_or(match &experiment.asked {
        ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) => ChartArg::Line,
        ExperimentSpec::Sweep(_) => ChartArg::Throughput,
        ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => ChartArg::Blocks,
        ExperimentSpec::Run(_) | ExperimentSpec::Overload(_) => ChartArg::Time,
    });
    let shown = path.display();
    match wanted {
        ChartArg::Line | ChartArg::Blocks | ChartArg::Evidence => {
            let results = Results::from_experiment(experiment, Some(path))?;
            let (svg, lacks) = match wanted {
                ChartArg::Line => (results.view().line_svg(theme), "line: '{}' contains no search for the load line"),
                ChartArg::Evidence => {
                    (results.view().evidence_svg(theme), "evidence: '{}' contains no explanation (plimsoll explain)")
                }
                _ => (results.view().blocks_svg(theme), "blocks: '{}' contains no comparison (plimsoll prove)"),
            };
            svg.ok_or_else(|| Failure::usage(format!("--chart {}", lacks.replace("{}", &shown.to_string()))))
        }
        ChartArg::Throughput | ChartArg::Success => {
            let (over, levels) =
                levels(experiment).filter(|_| experiment.asked.search().is_none()).ok_or_else(|| {
                    Failure::usage(format!(
                        "--chart: '{shown}' contains no concurrencies to draw; give a sweep or a run"
                    ))
                })?;
            let target = experiment.trials.first().map_or_else(String::new, |t| heading::target(&t.run.plan));
            Ok(match wanted {
                ChartArg::Success => {
                    chart::success_chart(&heading::success(over, &levels, &target), over, &levels, theme)
                }
                _ => chart::throughput_chart(&heading::throughput(over, &levels, &target), over, &levels, theme),
            })
        }
        ChartArg::Time | ChartArg::Percentiles | ChartArg::Heat => match experiment.trials.as_slice() {
            [only, ..] if matches!(experiment.asked, ExperimentSpec::Run(_)) => {
                let summary = Summary::from_run(&only.run);
                Ok(match wanted {
                    ChartArg::Percentiles => percentiles_svg(&only.run, &summary, theme),
                    ChartArg::Heat => heat_svg(&only.run, &summary, theme),
                    _ => time_svg(&only.run, &summary, theme),
                })
            }
            trials => Err(Failure::usage(format!(
                "--chart: '{shown}' contains {} loads; this chart needs one load (plimsoll run)",
                trials.len()
            ))),
        },
    }
}
