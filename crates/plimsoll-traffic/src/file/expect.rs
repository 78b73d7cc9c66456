//! Parses the expectations (`expect`) and captures (`capture`) of a response in a traffic file.

use super::file_context::FileContext;
use super::keys;
use super::tree::{TrafficFileError, TreeNode, TreeTable, TreeValue};
use plimsoll_model::expect::{CaptureSource, Expectations, JsonExpectation, ResponseCapture, TextExpectation};
use plimsoll_model::json_path::JsonPath;
use plimsoll_model::template::is_name;
use plimsoll_model::traffic::StatusSet;
use plimsoll_model::units::parse_duration_ns;

/// Parses an `expect` table. Returns the expected statuses, if the table has any, and all other
/// expectations. If `raw` is set, expected texts may contain `{{`.
pub fn parse_expectations(
    node: &TreeNode,
    world: &mut dyn FileContext,
    raw: bool,
) -> Result<(Option<StatusSet>, Expectations), TrafficFileError> {
    let table = node.table("'expect'", &keys::EXPECT_KEYS)?;
    let status = table.get("status").map(|node| node.read("'status'", StatusSet::parse)).transpose()?;
    let within_ns = match table.get("within") {
        None => None,
        Some(node) => match node.read("'within'", parse_duration_ns)? {
            0 => return node.error("'within', the maximum response time, must be more than 0, such as 300ms"),
            ns => Some(ns),
        },
    };
    let headers = read_table_entries(&table, "header", |name, value| {
        Ok((name.to_owned(), parse_text_expectation(value, &format!("the header '{name}'"), world, raw)?))
    })?;
    let mut json = Vec::new();
    if let Some(node) = table.get("json") {
        for (key, value) in node.open_table("'json'")?.entries {
            let path = JsonPath::parse(&key.name).map_err(|error| TrafficFileError::new(key.at, error.to_string()))?;
            json.push((path, parse_json_expectation(value, raw)?));
        }
    }
    let body = table.get("body").map(|node| parse_text_expectation(node, "'body'", world, raw)).transpose()?;
    Ok((status, Expectations { response_time_ns_max: within_ns, headers, json, body }))
}

/// Applies `read` to each entry of the table under `key` and returns the results. A missing table
/// has no entries.
fn read_table_entries<T>(
    table: &TreeTable,
    key: &str,
    mut read: impl FnMut(&str, &TreeNode) -> Result<T, TrafficFileError>,
) -> Result<Vec<T>, TrafficFileError> {
    let Some(node) = table.get(key) else { return Ok(Vec::new()) };
    let what = format!("'{key}'");
    node.open_table(&what)?.entries.iter().map(|(key, value)| read(&key.name, value)).collect()
}

/// Returns the text of an expected value. Expected texts are compared unchanged, without template
/// values. An expected text with `{{` is an error unless the request is `raw`.
fn text_without_placeholders<'a>(node: &'a TreeNode, what: &str, raw: bool) -> Result<&'a str, TrafficFileError> {
    let text = node.text(what)?;
    if !raw && text.contains("{{") {
        return node.error(
            "an expected text cannot contain placeholders: leave {{ out, or set raw = true in the request if \
                the response contains {{",
        );
    }
    Ok(text)
}

fn parse_text_expectation(
    node: &TreeNode,
    what: &str,
    world: &mut dyn FileContext,
    raw: bool,
) -> Result<TextExpectation, TrafficFileError> {
    let expected = TextExpectation::parse(text_without_placeholders(node, what, raw)?);
    if let Some(pattern) = expected.pattern() {
        check_pattern(node, pattern, world)?;
    }
    Ok(expected)
}

fn check_pattern(node: &TreeNode, pattern: &str, world: &mut dyn FileContext) -> Result<(), TrafficFileError> {
    world.check_regex(pattern).map_err(|why| TrafficFileError::new(node.at, why))
}

fn parse_json_expectation(node: &TreeNode, raw: bool) -> Result<JsonExpectation, TrafficFileError> {
    match &node.value {
        TreeValue::Null => Ok(JsonExpectation::Null),
        TreeValue::Flag(flag) => Ok(JsonExpectation::Flag(*flag)),
        TreeValue::Number(number) => {
            let number = number.replace('_', "");
            let number = number.strip_prefix('+').unwrap_or(&number);
            match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(JsonExpectation::Number(number.to_owned())),
                _ => node.error(format!("the expected value '{number}' is not a number that JSON allows")),
            }
        }
        TreeValue::Text(_) => Ok(JsonExpectation::Text(text_without_placeholders(node, "a value", raw)?.to_owned())),
        TreeValue::List(_) | TreeValue::Table(_) => node.error(
            "the expected value of a JSON path cannot be a list or a table: write a path for each value in it, such as \
                $.items[0].id",
        ),
    }
}

/// Parses a `capture` table: the values to capture from a response, each with its name.
pub fn parse_captures(node: &TreeNode, world: &mut dyn FileContext) -> Result<Vec<ResponseCapture>, TrafficFileError> {
    let mut captures = Vec::new();
    for (key, value) in node.open_table("'capture'")?.entries {
        if !is_name(&key.name) {
            return Err(TrafficFileError::new(
                key.at,
                format!(
                    "'{name}' is not a name for a captured value: use letters, digits, _ and -, with a letter first",
                    name = key.name
                ),
            ));
        }
        let what = format!("'{}'", key.name);
        // A capture can also be a table, which may state a default for a missing value.
        let (node, default) = match &value.value {
            TreeValue::Table(_) => {
                let table = value.table("a capture", &keys::CAPTURE_KEYS)?;
                let Some(from) = table.get("from") else {
                    return value.error(format!(
                        "the capture '{name}' has no key 'from', the place of the value in the response: add \
                         {{ from = \"$.{name}\" }}",
                        name = key.name
                    ));
                };
                (from, table.get("default").map(|node| node.text("'default'")).transpose()?)
            }
            _ => (value, None),
        };
        let from = node.read(&what, CaptureSource::parse)?;
        if let Some(pattern) = from.pattern() {
            check_pattern(node, pattern, world)?;
        }
        captures.push(ResponseCapture { name: key.name.clone(), from, default: default.map(str::to_owned) });
    }
    Ok(captures)
}
