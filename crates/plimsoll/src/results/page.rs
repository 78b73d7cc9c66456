//! Pages of run files: of one, or of several below each other.

use super::{Results, searched};
use crate::pictures::write;
use plimsoll_model::Experiment;
use plimsoll_model::failure::Failure;
use plimsoll_report::chart::heading;
use plimsoll_report::pages::{self, PagePart};
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
    let mut parts = Vec::with_capacity(files.len());
    for (path, experiment) in files {
        let report = Results::from_experiment(experiment, Some(path))?.page();
        // Only two searches have a picture in common.
        let search = if files.len() == 2 { searched(experiment)? } else { None };
        parts.push(PagePart { path, report, search });
    }
    let first = files.iter().find_map(|(_, experiment)| experiment.trials.first());
    let target = first.map_or_else(String::new, |trial| heading::target(&trial.run.plan));
    Ok(pages::whole_page(parts, &target))
}
