//! Pages of run files: of one, or of several below each other.

use super::{find, profiles as taken, prove, run, sweep};
use crate::failure::Failure;
use crate::files::{self, Use};
use crate::output;
use crate::pictures::write;
use plimsoll_analysis::profile::{Sort, View, diff_tree, read as read_profile, top, tree};
use plimsoll_model::{Asked, Experiment};
use plimsoll_report::chart::heading;
use plimsoll_report::flame::{Flame, inline_svg};
use plimsoll_report::load_profiles::profiles_report;
use plimsoll_report::{Around, Report, page, two_searches};
use std::path::Path;

/// The page of one experiment.
pub fn page_of(path: &Path, experiment: &Experiment) -> Result<Report, Failure> {
    let around = Around { file: path.display().to_string(), extra: profiles(path, experiment) };
    match &experiment.asked {
        Asked::Run(_) => run::page(experiment, &around),
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
    let Some(profiles) = taken::read_back(experiment, Some(path)) else { return report };
    report.heading("Where the time goes in the server").append(profiles_report(&profiles));
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

pub fn whole_page(files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
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

/// The reports of several files below each other, each under its name.
pub fn joined(files: &[(&Path, &Experiment)], reports: Vec<Report>) -> Report {
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
