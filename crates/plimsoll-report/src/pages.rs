//! Combines the reports of several run files into one page, and shortens the report of one file to
//! a summary. A page of two searches for the load line begins with one chart that shows both
//! searches.
//!
//! Not here: reading files, and rendering one finding (`result_view`).

use crate::block::{Report, ReportBlock};
use crate::page;
use crate::page_charts::render_two_searches;
use crate::searches::RecordedSearch;
use std::path::Path;

/// The headings of the sections that a summary omits, because the sections are long: tables of
/// every trial, and charts of single loads.
const LONG_SECTION_HEADINGS: [&str; 3] = ["Evidence", "The load line in detail", "Throughput with more and more users"];

/// The content of one run file, as a part of a page with several files.
#[derive(Debug, Clone)]
pub struct PagePart<'a> {
    /// The path of the file.
    pub path: &'a Path,
    /// The rendered report of the file.
    pub report: Report,
    /// The search for the load line that the file contains; `None` for other kinds of studies.
    pub search: Option<RecordedSearch>,
}

/// Renders one page of several run files. `target` is the name of the target for the page's title.
pub fn render_multi_file_page(parts: Vec<PagePart>, target: &str) -> String {
    let mut all = match parts.as_slice() {
        [PagePart { path: a, search: Some(first), .. }, PagePart { path: b, search: Some(second), .. }] => {
            let [name_a, name_b] = distinct_names(a, b);
            render_two_searches((&name_a, &first.findings), (&name_b, &second.findings))
        }
        _ => Report::default(),
    };
    all.append(join_reports(parts.into_iter().map(|part| (part.path, part.report)).collect()));
    page::render(&all, &format!("plimsoll: {target}"))
}

/// Joins the reports of several files. Each report is below the path of its file, unless there is
/// only one report.
pub fn join_reports(reports: Vec<(&Path, Report)>) -> Report {
    let several = reports.len() > 1;
    let mut all = Report::default();
    for (path, report) in reports {
        if several {
            all.add_heading(path.display().to_string());
        }
        all.append(report);
    }
    all
}

/// Shortens the report of a run file to a summary by removing the long sections. The report of a
/// sweep (several numbers of users) keeps all its sections, because the sections of a sweep are
/// short.
pub fn shorten_to_summary(mut page: Report, is_sweep: bool) -> Report {
    let mut is_short = true;
    page.blocks.retain(|block| {
        if let ReportBlock::Heading(text) = block {
            is_short = !LONG_SECTION_HEADINGS.contains(&text.as_str()) || is_sweep;
        }
        is_short
    });
    page
}

/// Returns different names for two files. Each name is the file name without extension. If the file
/// names are equal, the names begin with as many folders as needed to differ.
pub fn distinct_names(a: &Path, b: &Path) -> [String; 2] {
    let names = [a, b].map(|path| {
        let parts: Vec<_> = path.with_extension("").components().map(|c| c.as_os_str().to_owned()).collect();
        parts.into_iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<String>>()
    });
    let most = names[0].len().max(names[1].len());
    let last = |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    let apart = (1..=most).map(|count| [last(&names[0], count), last(&names[1], count)]).find(|[a, b]| a != b);
    // If the two files differ only in their extension or are the same file, their full file names
    // are returned.
    apart.unwrap_or_else(|| [a, b].map(file_name))
}

/// Returns the name of a file without its folders.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_files_get_distinct_names() {
        for (a, b, expect) in [
            ("old.plimsoll", "new.plimsoll", ["old", "new"]),
            ("old/find.plimsoll", "new/find.plimsoll", ["old/find", "new/find"]),
            ("x/a/find.plimsoll", "y/a/find.plimsoll", ["x/a/find", "y/a/find"]),
            ("find.plimsoll", "old/find.plimsoll", ["find", "old/find"]),
            ("find.plimsoll", "find.dat", ["find.plimsoll", "find.dat"]),
        ] {
            assert_eq!(distinct_names(Path::new(a), Path::new(b)), expect.map(str::to_owned));
        }
    }
}
