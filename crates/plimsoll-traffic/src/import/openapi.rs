//! Imports API descriptions in OpenAPI 3 or 2 (Swagger). Each operation becomes a request of a mix,
//! with example values.
//!
//! An API description states neither the order nor the frequency of requests, so the import has no
//! sessions and gives all requests equal weights. References to other documents are not resolved.

mod api;
mod operation;
mod sample;
mod style;

use super::draft::{Draft, ImportResult};
use super::nodes::{entries, field, scalar_field_text};
use crate::file::tree::TrafficFileError;
use crate::file::{json, yaml};
use api::ApiDescription;
use operation::Operation;

/// The HTTP methods of operations, in the spelling of API descriptions.
const OPERATION_METHODS: [&str; 8] = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
/// The largest number of imported operations.
const OPERATIONS_MAX: usize = 10_000;

/// Imports an API description in YAML or JSON.
pub fn import_openapi(source: &str) -> Result<ImportResult, TrafficFileError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let tree = match source.trim_start().starts_with('{') {
        true => json::parse_json_tree(source),
        false => yaml::parse_yaml_tree(source),
    }?;
    let api = ApiDescription::new(&tree, source.len())?;
    let mut draft = Draft { base: api.base_url.clone(), ..Draft::default() };
    let title = field(&tree, "info").and_then(|info| scalar_field_text(info, "title")).unwrap_or("an API");
    draft.about.push(format!("The operations of {title}: 'weight' sets how often each operation is sent."));
    if let Some(why) = &api.base_url_note {
        draft.note_omission(api.base_at, why.clone());
    }
    let Some(paths) = field(&tree, "paths") else {
        return tree.error("this OpenAPI description has no 'paths', so it has no requests");
    };
    for (path, node) in entries(paths) {
        if !path.name.starts_with('/') {
            continue;
        }
        let Some(item) = api.resolve_reference(node) else {
            draft.note_omission(
                node.at,
                format!("{path} is not imported: its reference leads to another document", path = path.name),
            );
            continue;
        };
        for method in OPERATION_METHODS {
            let Some(node) = field(item, method) else { continue };
            if draft.requests.len() == OPERATIONS_MAX {
                let text = format!("OpenAPI operations beyond the first {OPERATIONS_MAX} are not imported");
                draft.note_repeated_omission(node.at, text);
                continue;
            }
            let operation = Operation { api: &api, path: &path.name, method, item, node };
            if let Some(step) = operation.to_draft_step(&mut draft) {
                draft.requests.push(step);
            }
            if let Err(error) = api.budget.get().check() {
                return node.error(format!(
                    "{error}. At this position or before, references repeat too often, a reference repeats itself, or \
                     the smallest lists and texts are too long"
                ));
            }
        }
    }
    for key in ["webhooks", "x-webhooks"] {
        if let Some(hooks) = field(&tree, key) {
            draft.note_omission(hooks.at, "webhooks are not imported: the server sends them");
        }
    }
    draft.finish("plimsoll can import no operation of this OpenAPI description")
}
