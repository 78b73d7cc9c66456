//! `plimsoll report`: what run files hold as a page, a summary, or a single chart.

use super::{capture, diff, find, print, prove, run as single, show, sweep};
use crate::args::{ChartArg, ReportArgs, ReportFormat};
use crate::failure::{Failure, exit};
use crate::files::{self, Use};
use crate::output;
use crate::pictures::write;
use plimsoll_analysis::levels::measured;
use plimsoll_analysis::profile::{Sort, View, diff_tree, read as read_profile, top, tree};
use plimsoll_analysis::{Conditions, Summary};
use plimsoll_model::{Asked, Experiment};
use plimsoll_report::chart::{self, PICTURE_SUFFIX, Searched, Theme, heading};
use plimsoll_report::flame::{Flame, inline_svg};
use plimsoll_report::levels::levels_report;
use plimsoll_report::{
    Around, Report, heat_svg, json, junit, load_text, markdown, page, percentiles_svg, time_svg, two_searches,
};
use std::path::{Path, PathBuf};

/// Reports, and says with which code to end.
pub fn run(args: &ReportArgs) -> Result<u8, Failure> {
    let format = format(args)?;
    if args.chart.is_some() && !matches!(format, ReportFormat::Svg | ReportFormat::Png) {
        return Err(Failure::usage(
            "--chart: chooses the one chart of svg and png; the other formats show all or none",
        ));
    }
    let slo = Conditions::parse(&args.slo).map_err(|e| Failure::usage(format!("--slo: {e}")))?;
    let experiments = args.files.iter().map(|path| show::read(path)).collect::<Result<Vec<_>, _>>()?;
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
                return Err(Failure::usage(
                    "--format png: a picture is not for a terminal; say where with -o FILE.png",
                ));
            };
            write(path, &chart::picture(&one_chart(args, &files)?))?;
            return Ok(exit::DONE);
        }
        ReportFormat::Svg => one_chart(args, &files)?,
        ReportFormat::Md => {
            let reports = files.iter().map(|(path, experiment)| summary(path, experiment));
            markdown::render(&joined(&files, reports.collect::<Result<Vec<_>, _>>()?))
        }
        ReportFormat::Junit => {
            let suites = files.iter().map(|(path, experiment)| suite(path, experiment, &slo));
            junit::render(&suites.collect::<Result<Vec<_>, _>>()?)
        }
        ReportFormat::Json => {
            let documents = files
                .iter()
                .map(|(path, experiment)| show::document(path, experiment))
                .collect::<Result<Vec<_>, _>>()?;
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
                "-o {}: the name does not say what to write; end it in .html, .md, .xml, .json, .svg or .png, or add --format",
                path.display()
            )));
        }
    };
    if format == ReportFormat::Png && PICTURE_SUFFIX != "png" {
        return Err(Failure::usage("--format: this plimsoll was built without PNG; take svg"));
    }
    Ok(format)
}

/// The page of one experiment.
pub fn page_of(path: &Path, experiment: &Experiment) -> Result<Report, Failure> {
    let around = Around { file: path.display().to_string(), extra: profiles(path, experiment) };
    match &experiment.asked {
        Asked::Run(_) => single::page(experiment, &around),
        Asked::Sweep(_) => Ok(sweep::page(experiment, &around)),
        Asked::Find(_) => find::page(experiment, &around),
        Asked::Prove(_) | Asked::Ladder(_) => prove::page(experiment, path, around),
    }
}

/// Frames of a flame graph inside a page: a page of a normal run stays below 1 MB.
const PAGE_FRAMES_MAX: usize = 4000;

/// What profiles taken with an experiment say; nothing where none were taken.
fn profiles(path: &Path, experiment: &Experiment) -> Report {
    let mut report = Report::default();
    let Some(profiles) = capture::read_back(experiment, Some(path)) else { return report };
    report.heading("Where the time goes in the server").append(levels_report(&profiles));
    let cpu = |level: &str| {
        let (_, _, file) = profiles.files.iter().find(|(of, kind, _)| of == level && kind == "cpu")?;
        read_profile(&files::read(file.as_ref(), Use::Profile).ok()?).ok()
    };
    let (low, high) = (cpu("low"), cpu(&profiles.level_name));
    if let Some(profile) = high.as_ref().or(low.as_ref()) {
        let level = if high.is_some() { &profiles.level_name } else { "low" };
        let view = View::all(profile.sample_type_default);
        let column = &profile.sample_types[view.sample_type];
        let flame = Flame {
            tree: &tree(profile, &view, PAGE_FRAMES_MAX),
            title: &format!("CPU by function ({level})"),
            subtitle: &format!("{} of {}; {} s", column.kind, profiles.base, profiles.seconds),
            unit: &column.unit,
            per: None,
            total: top(profile, &view, Sort::Cum).kept as f64,
        };
        report.fragment(inline_svg(&flame));
    }
    if let (Some(low), Some(high), Some(comparison)) = (&low, &high, &profiles.comparison) {
        let (a, b) = (View::all(low.sample_type_default), View::all(high.sample_type_default));
        // Two profiles that were compared have a tree, too.
        if let Ok(tree) = diff_tree((low, &a), (high, &b), comparison.basis, PAGE_FRAMES_MAX) {
            let flame = Flame {
                tree: &tree,
                title: &format!("CPU a request: low load against the {}", profiles.level_name),
                subtitle: "red is dearer than at low load, blue cheaper, grey may be chance",
                unit: &comparison.sample_type.unit,
                per: Some("request"),
                total: comparison.total.after,
            };
            report.fragment(inline_svg(&flame));
        }
    }
    report
}

/// Writes the page of an experiment beside its run file, where that is a file; returns a line that says where. A result
/// that was measured is not lost to a page that cannot be written.
pub fn write_beside(run_file: &Path, experiment: &Experiment) -> Option<String> {
    // Beside a device or a pipe there is no place for a page.
    if !std::fs::metadata(run_file).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut path = run_file.with_extension("html");
    if path == run_file {
        path.as_mut_os_string().push(".html");
    }
    match whole_page(&[(run_file, experiment)]).and_then(|page| write(&path, page.as_bytes())) {
        Ok(()) => Some(format!("report: {}", path.display())),
        Err(failure) => {
            output::failed(format!("no report was written: {failure}"));
            None
        }
    }
}

fn whole_page(files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
    let reports = files.iter().map(|(path, experiment)| page_of(path, experiment)).collect::<Result<Vec<_>, _>>()?;
    let mut all = compared(files)?;
    all.append(joined(files, reports));
    let target =
        files.iter().find_map(|(_, e)| e.trials.first()).map_or_else(String::new, |t| heading::target(&t.run.plan));
    Ok(page::render(&all, &format!("plimsoll: {target}")))
}

/// Names of two files by which they are told apart: without folders, as far as that tells.
pub fn names_apart(a: &Path, b: &Path) -> [String; 2] {
    let names = [a, b].map(|path| {
        let parts: Vec<_> = path.with_extension("").components().map(|c| c.as_os_str().to_owned()).collect();
        parts.into_iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<String>>()
    });
    let most = names[0].len().max(names[1].len());
    let last = |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    let apart = (1..=most).map(|count| [last(&names[0], count), last(&names[1], count)]).find(|[a, b]| a != b);
    // The same name with two endings, or one file twice.
    apart.unwrap_or_else(|| [a, b].map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()))
}

/// Two searches, in one picture above their own.
fn compared(files: &[(&Path, &Experiment)]) -> Result<Report, Failure> {
    match files {
        [(a, first), (b, second)] if matches!((&first.asked, &second.asked), (Asked::Find(_), Asked::Find(_))) => {
            let [name_a, name_b] = names_apart(a, b);
            let (first, second) = (find::found(first)?.1, find::found(second)?.1);
            Ok(two_searches((&name_a, &first), (&name_b, &second)))
        }
        _ => Ok(Report::default()),
    }
}

/// What a file holds, in short.
fn summary(path: &Path, experiment: &Experiment) -> Result<Report, Failure> {
    let mut report = page_of(path, experiment)?;
    // Tables of every trial and the machine belong on the page, not into a summary.
    let long = ["Evidence", "The load line, seen closely", "More users instead of a higher rate"];
    let mut keep = true;
    report.blocks.retain(|block| {
        if let plimsoll_report::Block::Heading(text) = block {
            keep = !long.contains(&text.as_str()) || matches!(experiment.asked, Asked::Sweep(_));
        }
        keep
    });
    Ok(report)
}

/// The reports of several files below each other, each under its name.
fn joined(files: &[(&Path, &Experiment)], reports: Vec<Report>) -> Report {
    let several = reports.len() > 1;
    let mut all = Report::default();
    for ((path, _), report) in files.iter().zip(reports) {
        if several {
            all.heading(path.display().to_string());
        }
        all.append(report);
    }
    all
}

fn suite(path: &Path, experiment: &Experiment, slo: &Conditions) -> Result<(String, Vec<junit::Case>), Failure> {
    let cases = match &experiment.asked {
        Asked::Find(_) => junit::find_cases(&find::found(experiment)?.1),
        Asked::Prove(_) | Asked::Ladder(_) => vec![prove::case(experiment)?],
        Asked::Run(_) | Asked::Sweep(_) => {
            let loads = measured(experiment).into_iter().map(|trial| &trial.run);
            loads.flat_map(|run| junit::load_cases(&load_text(&run.plan.load.shape), run, slo)).collect()
        }
    };
    Ok((path.display().to_string(), cases))
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
        Asked::Find(_) => ChartArg::Line,
        Asked::Sweep(_) => ChartArg::Throughput,
        Asked::Prove(_) | Asked::Ladder(_) => ChartArg::Blocks,
        Asked::Run(_) => ChartArg::Time,
    });
    let shown = path.display();
    match wanted {
        ChartArg::Line if !matches!(experiment.asked, Asked::Find(_)) => {
            Err(Failure::usage(format!("--chart line: '{shown}' holds no search for the load line")))
        }
        ChartArg::Line => {
            let (target, findings) = find::found(experiment)?;
            let searched = [Searched { name: "", findings: &findings }];
            Ok(chart::find_chart(&heading::find(&findings, &target), &searched, None, theme))
        }
        ChartArg::Blocks if experiment.asked.blocks().is_none() => {
            Err(Failure::usage(format!("--chart blocks: '{shown}' holds no comparison (plimsoll prove)")))
        }
        ChartArg::Blocks => prove::picture(experiment, theme),
        ChartArg::Throughput | ChartArg::Success => {
            let (over, levels) =
                diff::levels(experiment).filter(|_| !matches!(experiment.asked, Asked::Find(_))).ok_or_else(|| {
                    Failure::usage(format!("--chart: '{shown}' holds no levels to draw; it takes a sweep or a run"))
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
            [only, ..] if matches!(experiment.asked, Asked::Run(_)) => {
                let summary = Summary::of(&only.run);
                Ok(match wanted {
                    ChartArg::Percentiles => percentiles_svg(&only.run, &summary, theme),
                    ChartArg::Heat => heat_svg(&only.run, &summary, theme),
                    _ => time_svg(&only.run, &summary, theme),
                })
            }
            trials => Err(Failure::usage(format!(
                "--chart: '{shown}' holds {} loads; this chart is of one (plimsoll run)",
                trials.len()
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_have_two_names() {
        for (a, b, expect) in [
            ("old.plimsoll", "new.plimsoll", ["old", "new"]),
            ("old/find.plimsoll", "new/find.plimsoll", ["old/find", "new/find"]),
            ("x/a/find.plimsoll", "y/a/find.plimsoll", ["x/a/find", "y/a/find"]),
            ("find.plimsoll", "old/find.plimsoll", ["find", "old/find"]),
            ("find.plimsoll", "find.dat", ["find.plimsoll", "find.dat"]),
        ] {
            assert_eq!(names_apart(Path::new(a), Path::new(b)), expect.map(str::to_owned));
        }
    }
}
