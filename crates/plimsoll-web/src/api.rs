//! The JSON responses of `/api/v1`: the documents of runs, which docs/reference/json.md describes,
//! and lists of runs and studies.
//!
//! Not here: access control (`guard`), and HTML pages (`views`).

use crate::problem::Problem;
use crate::query::Query;
use crate::state::WebState;
use crate::views::{run_file_path, series_for_query};
use plimsoll_history::RunFilter;
use plimsoll_report::history::{HistoryView, history_document};
use serde_json::{Value, json};

/// Returns the runs that match a query, the latest first. The query's field `last` is the maximum
/// number of runs; the default is 100.
pub fn runs_json(shared: &WebState, query: &Query) -> Result<Value, Problem> {
    let filter =
        RunFilter { service: query.get("service").map(str::to_owned), branch: query.get("branch").map(str::to_owned) };
    let mut runs = shared.matching_runs(&filter)?;
    runs.reverse();
    let last = match query.get("last") {
        None => 100usize,
        Some(last) => last
            .parse()
            .map_err(|_| Problem::bad_request("the query parameter 'last' must be a number of runs, such as 20"))?,
    };
    runs.truncate(last);
    Ok(json!({ "schema": "plimsoll.runs/1", "runs": runs }))
}

/// Returns the history of the runs that match a query: a JSON document with series of comparable
/// runs.
pub fn history_json(shared: &WebState, query: &Query) -> Result<Value, Problem> {
    let (lanes, order) = series_for_query(shared, query)?;
    Ok(history_document(&HistoryView { lanes: &lanes, order, rows_max: usize::MAX, unreadable: &[] }))
}

/// Returns the run that the run file `file` contains, in the same JSON form as a list of runs.
pub fn one_run_list_json(shared: &WebState, file: &str) -> Result<Value, Problem> {
    let found = shared.matching_runs(&RunFilter::default())?.into_iter().find(|run| run.file == file);
    let run = found.ok_or_else(|| Problem::not_found(format!("the store has no run {file}")))?;
    Ok(json!({ "schema": "plimsoll.runs/1", "runs": [run] }))
}

/// Returns the JSON document of a run's finding.
pub fn finding_document(shared: &WebState, file: &str) -> Result<Value, Problem> {
    let path = run_file_path(shared, file)?;
    Ok((shared.renderers.document)(&path)?)
}

/// Returns the studies that were started from web pages, the latest first.
pub fn studies_json(shared: &WebState) -> Value {
    let all = shared.studies.list_studies().into_iter().map(|job| {
        json!({
            "name": job.name, "command": job.command, "started_unix_s": job.started_unix_s,
            "running": job.is_running(), "run_file": shared.studies.run_file(&job),
        })
    });
    json!({ "schema": "plimsoll.studies/1", "studies": all.collect::<Vec<Value>>() })
}

/// Returns one study that was started from a web page, with its progress.
pub fn study_json(shared: &WebState, name: &str) -> Result<Value, Problem> {
    let job = shared.studies.get(name).ok_or_else(|| Problem::not_found(format!("no study is called {name}")))?;
    let progress = shared.studies.read_progress(&job);
    Ok(json!({
        "schema": "plimsoll.study/1", "name": job.name, "command": job.command, "running": job.is_running(),
        "run_file": shared.studies.run_file(&job), "progress": progress, "messages": shared.studies.last_messages(&job),
    }))
}
