//! Parses the tree of a traffic file into a mix: requests drawn by weight, or scenarios of
//! requests.

use super::file_context::FileContext;
use super::keys;
use super::labels::Labels;
use super::load::FileLoad;
use super::request::{FileRequest, REQUESTS_MAX, parse_name, parse_request};
use super::rows::{self, ROWS_BYTES_MAX};
use super::scenario::parse_scenarios;
use super::setup_cleanup::{SetupCleanupRequest, parse_setup_or_cleanup};
use super::texts::TextScope;
use super::tree::{TrafficFileError, TreeNode};
use plimsoll_model::ParseBudget;
use plimsoll_model::data::ValueTable;
use plimsoll_model::session::Scenario;
use std::sync::Arc;

/// The parsed content of a traffic file.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficFileContent {
    /// The beginning of every URL: scheme, host, port and an optional path prefix.
    pub base: Option<String>,
    pub requests: Vec<FileRequest>,
    /// The scenarios of sessions. Empty if requests are drawn by weight.
    pub scenarios: Vec<Scenario>,
    /// The requests that are sent once before the load.
    pub setup: Vec<SetupCleanupRequest>,
    /// The requests that are sent once after the load.
    pub cleanup: Vec<SetupCleanupRequest>,
    /// The load settings of the file.
    pub load: FileLoad,
    /// The tables of data rows whose values fill request templates.
    pub data: Vec<Arc<ValueTable>>,
    pub variables: Vec<(String, String)>,
}

/// Parses the tree of a traffic file.
pub fn parse_traffic_file(
    tree: &TreeNode,
    world: &mut dyn FileContext,
) -> Result<TrafficFileContent, TrafficFileError> {
    let file = tree.table("a traffic file", &keys::TOP_LEVEL_KEYS)?;
    let mut known = TextScope::new(world);
    let mut rows_left = ParseBudget::new(ROWS_BYTES_MAX);
    if let Some(data) = file.get("data") {
        for (key, node) in data.open_table("'data'")?.entries {
            known.data.push(rows::read(&key.name, node, known.file_context, &mut rows_left)?);
        }
    }
    let base = file.get("base").map(|base| base.text("'base'")).transpose()?;
    // The setup is read first, because all other requests and the cleanup may use values that the
    // setup captures.
    let setup = file.get("setup").map_or(Ok(Vec::new()), |list| parse_setup_or_cleanup(list, "setup", &mut known))?;
    let mut requests: Vec<FileRequest> = Vec::new();
    let mut sessions = Vec::new();
    match (file.get("request"), file.get("scenario")) {
        (None, None) => {
            return tree
                .error("the traffic file has no requests: add a [[request]], such as get = \"/\", or a [[scenario]]");
        }
        (Some(_), Some(list)) => {
            return list.error(
                "a traffic file has requests or scenarios, not both: turn each [[request]] into a [[scenario]] of \
                 one step",
            );
        }
        (Some(list), None) => read_requests(list, &mut known, &mut requests)?,
        (None, Some(list)) => sessions = parse_scenarios(list, &mut known, &mut requests)?,
    }
    known.captured_in_scenario.clear();
    let cleanup =
        file.get("cleanup").map_or(Ok(Vec::new()), |list| parse_setup_or_cleanup(list, "cleanup", &mut known))?;
    let load = file.get("load").map_or(Ok(FileLoad::default()), FileLoad::read)?;
    let base = base.map(str::to_owned);
    let TextScope { data, variables, .. } = known;
    Ok(TrafficFileContent { base, requests, scenarios: sessions, setup, cleanup, load, data: data.tables, variables })
}

/// Parses the `request` list of a mix and appends the requests.
fn read_requests(
    list: &TreeNode,
    known: &mut TextScope,
    requests: &mut Vec<FileRequest>,
) -> Result<(), TrafficFileError> {
    let nodes = list.list("'request'")?;
    match nodes.len() {
        0 => return list.error("the traffic file has no requests: its list of requests is empty"),
        count if count > REQUESTS_MAX => {
            return list
                .error(format!("the traffic file has {count} requests, more than the maximum of {REQUESTS_MAX}"));
        }
        _ => {}
    }
    let mut labels = Labels::default();
    for node in nodes {
        let table = node.table("a request", &keys::REQUEST_KEYS)?;
        let mut asked = parse_request(&table, known)?;
        // Redaction can make different names equal. A repeated label of redacted names therefore
        // gets a number, and is no error.
        if labels.has(&asked.label)
            && let Some(given) = table.get("name")
            && parse_name(given)? == asked.label
        {
            return given.error(format!(
                "two requests have the name '{request}': give each request another name",
                request = asked.label
            ));
        }
        asked.label = labels.reserve_unique(asked.label);
        requests.push(asked);
    }
    Ok(())
}
