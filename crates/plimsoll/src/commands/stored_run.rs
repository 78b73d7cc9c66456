//! Finds a stored run by name, such as `@latest`, `@2` or `@main`, or by file.

use plimsoll_analysis::history::HistoryRun;
use plimsoll_history::{RunFilter, RunName, Store, read_run};
use plimsoll_model::failure::Failure;
use plimsoll_study::result_store;
use std::path::{Path, PathBuf};

/// Returns the run that `word` names: one of `runs`, or the run file at the path `word`.
pub fn find_stored_run(word: &str, runs: &[HistoryRun]) -> Result<HistoryRun, Failure> {
    let name = RunName::parse(word);
    if let Some(run) = name.find_run(runs).map_err(|error| Failure::usage(error.to_string()))? {
        return Ok(run.clone());
    }
    let path = Path::new(word);
    let file = path.file_name().map_or_else(|| word.to_owned(), |file| file.to_string_lossy().into_owned());
    // A run of the store can also be named by its file name.
    match runs.iter().find(|run| run.file == file && !path.exists()) {
        Some(run) => Ok(run.clone()),
        None => read_run(path, &file).map_err(|why| Failure::cannot_start(format!("'{word}' {why}"))),
    }
}

/// Returns the path of the run file that `word` names. The function reads the store only if `word`
/// begins with `@`.
pub fn find_stored_run_file(word: &Path, store: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(name) = word.to_str().filter(|word| word.starts_with('@')) else { return Ok(word.to_owned()) };
    let folder = result_store::store_folder(store);
    let mut store = Store::open(&folder)?;
    store.refresh_index()?;
    let runs = store.matching_runs(&RunFilter::default())?;
    Ok(folder.join(find_stored_run(name, &runs)?.file))
}
