//! `plimsoll history`: shows how the results of stored runs changed over time.

use crate::args::HistoryArgs;
use crate::results::{print_json, print_report};
use plimsoll_analysis::history::{SeriesOrder, group_comparable_runs};
use plimsoll_history::{RunFilter, Store};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::history::{HistoryView, history_document, history_report};
use plimsoll_study::result_store;
use plimsoll_traffic::target_url::Url;

/// Prints the history of the store. Returns the exit code.
pub fn run(args: &HistoryArgs) -> Result<u8, Failure> {
    let order = match args.by.as_str() {
        "time" => SeriesOrder::Time,
        "commit" => SeriesOrder::Commit,
        _ => return Err(Failure::usage("--by: expected commit or time")),
    };
    let mut store = Store::open(&result_store::store_folder(args.store.as_deref()))?;
    store.refresh_index()?;
    let filter = RunFilter { service: args.url.as_deref().map(service_name), branch: args.branch.clone() };
    let lanes = group_comparable_runs(&store.matching_runs(&filter)?, order);
    let unreadable = store.unreadable_files()?;
    let view = HistoryView { lanes: &lanes, order, rows_max: args.last as usize, unreadable: &unreadable };
    if args.json {
        print_json(&history_document(&view));
    } else {
        print_report(&history_report(&view));
        if lanes.is_empty() {
            let folder = store.folder().display();
            plimsoll_study::output::print_to_stderr(&format!(
                "the store '{folder}' has nothing to show: plimsoll find URL --store DIR adds a run, and plimsoll \
                 history --store DIR shows the runs"
            ));
        }
    }
    Ok(exit::SUCCESS)
}

/// Returns the name of a service in the form of run files: a URL with its port, or the value of the
/// tag `service`.
fn service_name(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if text.contains([':', '/', '.']) => format!("{}{}", url.origin, url.path),
        _ => text.to_owned(),
    }
}
