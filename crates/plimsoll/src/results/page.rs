//! Generates HTML pages: the page of one run file, or one page with several run files below each
//! other.

use super::{Results, recorded_search};
use plimsoll_model::Experiment;
use plimsoll_model::failure::Failure;
use plimsoll_report::chart::heading;
use plimsoll_report::pages::{self, PagePart};
use plimsoll_study::output;
use plimsoll_study::output::write_file;
use std::path::Path;

/// Writes the page of an experiment next to its run file, if the run file is a regular file.
/// Returns a line with the page's path. If the page cannot be written, plimsoll reports the error
/// when the program ends, and keeps the results.
pub fn write_page_beside(run_file: &Path, experiment: &Experiment) -> Option<String> {
    // A device or a pipe has no folder for a page next to it.
    if !std::fs::metadata(run_file).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut path = run_file.with_extension("html");
    if path == run_file {
        path.as_mut_os_string().push(".html");
    }
    match whole_page(&[(run_file, experiment)]).and_then(|page| write_file(&path, page.as_bytes())) {
        Ok(()) => Some(format!("report: {}", path.display())),
        Err(failure) => {
            output::record_write_failure(format!("the report was not written: {failure}"));
            None
        }
    }
}

/// Returns one HTML page about several run files.
pub fn whole_page(files: &[(&Path, &Experiment)]) -> Result<String, Failure> {
    let mut parts = Vec::with_capacity(files.len());
    for (path, experiment) in files {
        let report = Results::from_experiment(experiment, Some(path))?.html_page_report();
        // Only a page about two searches has a common chart.
        let search = if files.len() == 2 { recorded_search(experiment)? } else { None };
        parts.push(PagePart { path, report, search });
    }
    let first = files.iter().find_map(|(_, experiment)| experiment.trials.first());
    let target = first.map_or_else(String::new, |trial| heading::target_title(&trial.run.plan));
    Ok(pages::render_multi_file_page(parts, &target))
}
