//! Pages of run files: of one, or of several below each other.

use super::{Results, searched};
use crate::pictures::write;
use plimsoll_model::Experiment;
use plimsoll_model::failure::Failure;
use plimsoll_report::chart::heading;
use plimsoll_report::{Report, page, two_searches};
use plimsoll_study::output;
use std::path::Path;

/// Writes the page of an experiment beside its run file, where that is a file; returns a line that
/// says where. A result that was measured is not lost to a page that cannot be written.
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
            output::failed(format!("the report was not written: {failure}"));
            None
        }
    }
}

/// One page of several files.
pub fn whole_page(files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
    let of = |(path, experiment): &(&Path, &Experiment)| Ok(Results::from_experiment(experiment, Some(path))?.page());
    let reports = files.iter().map(of).collect::<Result<Vec<_>, Failure>>()?;
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
        [(a, first), (b, second)] => match (searched(first)?, searched(second)?) {
            (Some(first), Some(second)) => {
                let [name_a, name_b] = names_apart(a, b);
                Ok(two_searches((&name_a, &first.findings), (&name_b, &second.findings)))
            }
            _ => Ok(Report::default()),
        },
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
