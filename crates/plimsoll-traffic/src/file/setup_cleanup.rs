//! Parses setup and cleanup requests, which are sent once, before and after the load.

use super::file_context::RequestDefaults;
use super::keys;
use super::request::{FileRequest, REQUESTS_MAX, parse_request};
use super::scenario::continues_after_failure;
use super::texts::TextScope;
use super::tree::{TrafficFileError, TreeNode};
use plimsoll_model::OneOffRoute;
use plimsoll_model::session::REPETITIONS_MAX;

/// A setup or cleanup request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupCleanupRequest {
    request: FileRequest,
    repetitions: u32,
    may_continue: bool,
}

impl SetupCleanupRequest {
    /// Converts the request to a setup or cleanup request of the load plan; `prefix` precedes the
    /// path.
    pub fn to_one_off_route(&self, prefix: &str, defaults: &RequestDefaults) -> OneOffRoute {
        OneOffRoute {
            route: self.request.route(prefix, defaults),
            times: self.repetitions,
            may_fail: self.may_continue,
        }
    }
}

/// Parses a list of setup or cleanup requests. Later requests can use values that earlier requests
/// capture.
pub fn parse_setup_or_cleanup(
    list: &TreeNode,
    key: &str,
    known: &mut TextScope,
) -> Result<Vec<SetupCleanupRequest>, TrafficFileError> {
    let nodes = list.list(&format!("'{key}'"))?;
    if nodes.len() > REQUESTS_MAX {
        return list.error(format!(
            "the list '{key}' has {requests} requests, more than the maximum of {REQUESTS_MAX}",
            requests = nodes.len()
        ));
    }
    let mut all = Vec::with_capacity(nodes.len());
    let what = format!("a step of '{key}'");
    for node in nodes {
        let table = node.table(&what, &keys::SETUP_CLEANUP_KEYS)?;
        let request = parse_request(&table, known)?;
        let repetitions =
            table.get("repeat").map_or(Ok(1), |node| node.whole_number("'repeat'", 1, u64::from(REPETITIONS_MAX)))?
                as u32;
        if let Some(capture) = table.get("capture") {
            for (name, _) in capture.open_table("'capture'")?.entries {
                known.captured.insert(name.name.clone());
            }
        }
        all.push(SetupCleanupRequest { request, repetitions, may_continue: continues_after_failure(&table)? });
    }
    Ok(all)
}
