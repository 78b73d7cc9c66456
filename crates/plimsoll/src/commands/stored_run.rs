//! Runs by name: `@latest`, `@2`, `@main`, or a file.

use plimsoll_analysis::history::HistoryRun;
use plimsoll_history::{RunFilter, RunName, Store, read_run};
use plimsoll_model::failure::Failure;
use plimsoll_study::result_store;
use std::path::{Path, PathBuf};

/// The run that a word names: one of `runs`, or the file at a path.
pub fn named_run(word: &str, runs: &[HistoryRun]) -> Result<HistoryRun, Failure> {
    let name = RunName::parse(word);
    if let Some(run) = name.find(runs).map_err(|error| Failure::usage(error.to_string()))? {
        return Ok(run.clone());
    }
    let path = Path::new(word);
    let file = path.file_name().map_or_else(|| word.to_owned(), |file| file.to_string_lossy().into_owned());
    // A file of the store is known by its name.
    match runs.iter().find(|run| run.file == file && !path.exists()) {
        Some(run) => Ok(run.clone()),
        None => read_run(path, &file).map_err(|why| Failure::start(format!("'{word}' {why}"))),
    }
}

/// The file that a word names; only a name with `@` needs the store.
pub fn named_file(word: &Path, store: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(name) = word.to_str().filter(|word| word.starts_with('@')) else { return Ok(word.to_owned()) };
    let folder = result_store::store(store);
    let mut store = Store::open(&folder)?;
    store.refresh()?;
    let runs = store.runs(&RunFilter::default())?;
    Ok(folder.join(named_run(name, &runs)?.file))
}
