//! Changes a run's marks (tags and pin) as a submitted form requests, or removes the run.
//!
//! Not here: permission (`guard`), and the storage of marks (`plimsoll-history`).

use crate::problem::Problem;
use crate::query::Query;
use crate::state::WebState;
use crate::views::run_file_path;
use plimsoll_analysis::history::RunState;
use plimsoll_history::{RunMarks, read_run, remove_run};
use plimsoll_model::failure::Failure;

fn bad_request_problem(failure: Failure) -> Problem {
    Problem::bad_request(failure.to_string())
}

/// Changes the marks of a run as a submitted form requests. The field `tag` adds a tag, `untag`
/// removes a tag, and `pin` is `yes` or `no`.
pub fn change_marks(shared: &WebState, file: &str, query: &Query) -> Result<(), Problem> {
    let path = run_file_path(shared, file)?;
    // The lock makes simultaneous requests change the marks one after the other.
    let _one = shared.marks_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut marks = RunMarks::read(&path);
    let before = marks.clone();
    for tag in query.all_values("tag") {
        marks = marks.with_tag(tag).map_err(bad_request_problem)?;
    }
    for key in query.all_values("untag") {
        marks = marks.without_tag(key);
    }
    match query.get("pin") {
        Some("yes") => marks.is_pinned = true,
        Some("no") => marks.is_pinned = false,
        Some(_) => return Err(Problem::bad_request("the field 'pin' must be yes or no")),
        None if marks == before
            && query.all_values("tag").next().is_none()
            && query.all_values("untag").next().is_none() =>
        {
            return Err(Problem::bad_request("the request changes no mark of the run: add a field tag, untag or pin"));
        }
        None => {}
    }
    marks.write(&path).map_err(bad_request_problem)
}

/// Removes a run with the files that belong to it. Returns an error if the run is being recorded or
/// is pinned.
pub fn delete_run(shared: &WebState, file: &str) -> Result<(), Problem> {
    let path = run_file_path(shared, file)?;
    if read_run(&path, file).is_ok_and(|run| run.state == RunState::UnderWay) {
        return Err(Problem::bad_request(
            "this run cannot be deleted while it is being recorded: stop the plimsoll command that records it first",
        ));
    }
    remove_run(&shared.folder, file).map_err(bad_request_problem)
}
