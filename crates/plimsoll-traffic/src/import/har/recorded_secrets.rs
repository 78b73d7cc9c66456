//! Finds recorded values that were valid for one user or time only: tokens, keys, passwords. The
//! imported requests send the recorded tokens, keys and passwords unchanged, and a server may
//! reject them. A note names each secret value, with the recorded response that contained the
//! value, if any.
//!
//! Not here: the requests themselves, and replacing recorded values by captures.

use crate::file::json;
use crate::file::tree::{TextPosition, TreeNode, TreeValue};
use crate::import::nodes::{entries, field, items, scalar_field_text, scalar_text, split_http_url, variable_name};
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::redact::{is_secret_name, percent_decode};
use std::collections::HashMap;

/// The shortest value that is searched for in responses, in characters. Shorter values would match
/// by chance.
const FOUND_CHARS_MIN: usize = 6;
/// The largest number of distinct values to search for. The limit bounds the search time, because
/// each value is searched for in all earlier responses.
const SEARCHED_VALUES_MAX: usize = 100;
/// The deepest nesting of JSON that is searched.
const DEPTH_MAX: u32 = 16;

/// The recorded responses so far, and the secret values that already have a note.
#[derive(Default)]
pub struct RecordedSecretFinder<'a> {
    /// The recorded responses of imported requests, each with the name of its step.
    answers: Vec<(String, &'a TreeNode)>,
    /// The text of the note for each pair of name and value. A pair that is sent several times gets
    /// the same note.
    note_by_secret: HashMap<(String, String), String>,
}

/// A value in a recorded request.
struct RecordedValue {
    at: TextPosition,
    name: String,
    value: String,
    /// The part of the request with the value, as a phrase: `its query` or `its body`. `None` for a
    /// header field.
    request_part: Option<&'static str>,
}

impl<'a> RecordedSecretFinder<'a> {
    /// Adds the response of an imported request.
    pub fn add_answer(&mut self, step: &str, response: &'a TreeNode) {
        self.answers.push((step.to_owned(), response));
    }

    /// Returns the notes about secret values in a request, with their positions. `is_sent` returns
    /// whether a header field is imported.
    pub fn find_secret_notes(
        &mut self,
        request: &TreeNode,
        step: &str,
        is_sent: impl Fn(&str) -> bool,
    ) -> Vec<(TextPosition, String)> {
        let mut sent = Vec::new();
        collect_header_values(request, is_sent, &mut sent);
        collect_query_values(request, &mut sent);
        collect_body_values(request, &mut sent);
        sent.retain(|it| is_secret_name(&it.name) && !["", "true", "false", "null"].contains(&it.value.trim()));
        let mut told = Vec::new();
        for it in sent {
            let key = (it.name.to_ascii_lowercase(), it.value.clone());
            let text = match self.note_by_secret.get(&key) {
                Some(text) => text.clone(),
                None => {
                    let text = self.secret_note_text(&it, step);
                    self.note_by_secret.insert(key, text.clone());
                    text
                }
            };
            told.push((it.at, text));
        }
        told
    }

    fn secret_note_text(&self, sent: &RecordedValue, request_name: &str) -> String {
        let name: String = sent.name.chars().filter(|c| !c.is_control()).take(60).collect();
        let secret_name = match sent.request_part {
            None => format!("the header {name}"),
            Some(within) => format!("'{name}' of {within}"),
        };
        let variable = variable_name(&name);
        match self.find_source_step(&sent.value) {
            Some((source_request, Some(source))) => {
                format!(
                    "{request_name}: the recorded value of {secret_name} is sent. {source_request} returned this \
                     value: add capture = {{ {variable} = {source:?} }} to that request, and write {{{{ {variable} \
                     }}}} in this request"
                )
            }
            Some((source_request, None)) => {
                format!(
                    "{request_name}: the recorded value of {secret_name} is sent. {source_request} returned this \
                     value: capture the value in that request, and write {{{{ {variable} }}}} in this request"
                )
            }
            None => {
                format!(
                    "{request_name}: the recorded value of {secret_name} is sent: write {{{{ \
                     env.{environment_variable} }}}} in its place, or capture the value from an earlier response",
                    environment_variable = variable.to_ascii_uppercase()
                )
            }
        }
    }

    /// Returns the last step whose response contains a value. Also returns the capture for the
    /// value, if the value has a simple path in the response.
    fn find_source_step(&self, value: &str) -> Option<(&str, Option<String>)> {
        // The scheme before the value, such as `Bearer`, is absent in responses.
        let bare = value.split_whitespace().last()?;
        if bare.chars().count() < FOUND_CHARS_MIN || self.note_by_secret.len() >= SEARCHED_VALUES_MAX {
            return None;
        }
        self.answers
            .iter()
            .rev()
            .find_map(|(step, response)| Some((step.as_str(), capture_from_response(response, bare)?)))
    }
}

/// Searches a response for a value, and returns the source for a capture of the value. `None` means
/// that the response lacks the value. `Some(None)` means that the value has no simple path for a
/// capture.
fn capture_from_response(response: &TreeNode, value: &str) -> Option<Option<String>> {
    for header in items(response, "headers") {
        let (Some(name), Some(own)) = (scalar_field_text(header, "name"), scalar_field_text(header, "value")) else {
            continue;
        };
        if name.eq_ignore_ascii_case("set-cookie") {
            let cookie = own.split(';').next().and_then(|pair| pair.split_once('='));
            if let Some((name, _)) = cookie.filter(|(_, own)| own.trim() == value) {
                return Some(Some(format!("cookie:{}", name.trim())));
            }
        } else if own.trim() == value {
            return Some(Some(format!("header:{name}")));
        }
    }
    let content = field(response, "content").filter(|content| field(content, "encoding").is_none())?;
    let content = scalar_field_text(content, "text").filter(|content| content.contains(value))?;
    let mut path = "$".to_owned();
    let found = json::parse_json_tree(content).is_ok_and(|tree| extend_json_path(&tree, value, &mut path, 0));
    Some((found && JsonPath::parse(&path).is_ok()).then_some(path))
}

/// Extends `path` to the first text or number equal to `value`. Returns false if no text or number
/// is equal to `value`.
fn extend_json_path(node: &TreeNode, value: &str, path: &mut String, depth: u32) -> bool {
    if depth == DEPTH_MAX {
        return false;
    }
    let length = path.len();
    let mut within = |step: String, node: &TreeNode| {
        path.push_str(&step);
        let found = extend_json_path(node, value, path, depth + 1);
        if !found {
            path.truncate(length);
        }
        found
    };
    match &node.value {
        TreeValue::Text(own) => own == value,
        TreeValue::Number(own) => own == value,
        TreeValue::Null | TreeValue::Flag(_) => false,
        TreeValue::List(items) => items.iter().enumerate().any(|(place, node)| within(format!("[{place}]"), node)),
        TreeValue::Table(pairs) => pairs.iter().any(|(key, node)| {
            let is_word = key.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let step = if is_word { format!(".{}", key.name) } else { format!("['{}']", key.name) };
            within(step, node)
        }),
    }
}

fn collect_header_values(request: &TreeNode, is_sent: impl Fn(&str) -> bool, out: &mut Vec<RecordedValue>) {
    for header in items(request, "headers") {
        if let (Some(name), Some(value)) = (scalar_field_text(header, "name"), scalar_field_text(header, "value"))
            && is_sent(&name.trim().to_ascii_lowercase())
        {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.to_owned());
            out.push(RecordedValue { at: header.at, name, value, request_part: None });
        }
    }
}

fn collect_query_values(request: &TreeNode, out: &mut Vec<RecordedValue>) {
    let Some(node) = field(request, "url") else { return };
    let query =
        scalar_text(node).and_then(split_http_url).and_then(|url| Some(url.target.split_once('?')?.1.to_owned()));
    pairs_in_text(&query.unwrap_or_default(), node.at, "its query", out);
}

/// Collects the names and values of pairs such as `a=b&c=d`.
fn pairs_in_text(text: &str, at: TextPosition, within: &'static str, out: &mut Vec<RecordedValue>) {
    let decoded = |text: &str| String::from_utf8_lossy(&percent_decode(&text.replace('+', " "))).into_owned();
    for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
        out.push(RecordedValue { at, name: decoded(name), value: decoded(value), request_part: Some(within) });
    }
}

fn collect_body_values(request: &TreeNode, out: &mut Vec<RecordedValue>) {
    const BODY_PLACE_TEXT: &str = "its body";
    let Some(data) = field(request, "postData") else { return };
    let content = scalar_field_text(data, "text").unwrap_or_default();
    if content.is_empty() {
        for parameter in items(data, "params") {
            if let (Some(name), Some(value)) =
                (scalar_field_text(parameter, "name"), scalar_field_text(parameter, "value"))
            {
                out.push(RecordedValue {
                    at: parameter.at,
                    name: name.to_owned(),
                    value: value.to_owned(),
                    request_part: Some(BODY_PLACE_TEXT),
                });
            }
        }
    } else if content.trim_start().starts_with(['{', '[']) {
        if let Ok(tree) = json::parse_json_tree(content) {
            collect_json_values(&tree, data.at, 0, out);
        }
    } else if scalar_field_text(data, "mimeType").unwrap_or_default().contains("form-urlencoded") {
        pairs_in_text(content, data.at, BODY_PLACE_TEXT, out);
    }
}

fn collect_json_values(node: &TreeNode, at: TextPosition, depth: u32, out: &mut Vec<RecordedValue>) {
    if depth == DEPTH_MAX {
        return;
    }
    if let TreeValue::List(items) = &node.value {
        items.iter().for_each(|node| collect_json_values(node, at, depth + 1, out));
    }
    for (key, node) in entries(node) {
        match scalar_text(node) {
            Some(value) => {
                out.push(RecordedValue {
                    at,
                    name: key.name.clone(),
                    value: value.to_owned(),
                    request_part: Some("its body"),
                });
            }
            None => collect_json_values(node, at, depth + 1, out),
        }
    }
}
