//! Parses YAML into a tree. A library parses the text into events, and this file builds values from
//! the events.
//!
//! The core schema of YAML 1.2 applies, so `no` is a text and not a boolean. Anchors and aliases
//! work up to a limit on the total size of all copies. Merge keys (`<<: *base`) of YAML 1.1 work
//! too, as in most parsers.

use super::tree::{
    DEPTH_MAX, TableEntries, TextPosition, TrafficFileError, TreeKey, TreeNode, TreeValue, YAML_VALUES_MAX,
};
use granit_parser::{Event, Parser, ScalarStyle, Span};
use plimsoll_model::{ParseBudget, library_panic};
use std::collections::HashMap;

/// A list or table whose end is not yet parsed. The parser has a stack of unfinished containers,
/// with the outermost first.
struct OpenContainer {
    at: TextPosition,
    anchor: usize,
    container: YamlContainer,
}

enum YamlContainer {
    List(Vec<TreeNode>),
    /// A table: its entries so far, the key whose value is not yet parsed, and the tables to merge.
    Table(TableEntries, Option<TreeKey>, Vec<TreeNode>),
}

/// The merge key of YAML 1.1: the value of the key `<<` is a table, whose entries are merged into
/// the table with the key.
const MERGE_KEY: &str = "<<";

/// Parses a YAML text with one document into a tree of values with positions.
pub fn parse_yaml_tree(text: &str) -> Result<TreeNode, TrafficFileError> {
    let beginning = TextPosition { line: 1, column: 1 };
    library_panic::catch_library_panic("YAML", || read(text))
        .map_err(|error| TrafficFileError::new(beginning, error.to_string()))?
}

fn read(text: &str) -> Result<TreeNode, TrafficFileError> {
    // The budget limits the total memory of the copies that aliases make.
    let mut budget = ParseBudget::proportional_to_input(text.len());
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut anchors: HashMap<usize, (TreeNode, usize)> = HashMap::new();
    let (mut root, mut values, mut documents) = (None, 0usize, 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = TextPosition { line: error.marker().line(), column: error.marker().col() + 1 };
            let reason = error.info().replace('\n', ", ");
            TrafficFileError::new(at, format!("this is not YAML: {reason}"))
        })?;
        let at = start_position(span);
        let done = match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(TrafficFileError::new(
                        at,
                        "a second YAML document begins here, but the file can contain only one document",
                    ));
                }
                None
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix() == "str");
                let value = if is_text { TreeValue::Text(text.into_owned()) } else { parse_plain_scalar(&text) };
                Some((TreeNode { at, value }, anchor))
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = anchors.get(&anchor) else {
                    return Err(TrafficFileError::new(
                        at,
                        "this YAML alias refers to the anchor that contains the alias itself",
                    ));
                };
                budget.spend_bytes(*size).map_err(|error| TrafficFileError::new(at, error.to_string()))?;
                Some((TreeNode { at, value: node.value.clone() }, 0))
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push(OpenContainer { at, anchor, container: YamlContainer::List(Vec::new()) });
                None
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(OpenContainer {
                    at,
                    anchor,
                    container: YamlContainer::Table(TableEntries::default(), None, Vec::new()),
                });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                None => None,
                Some(OpenContainer { at, anchor, container: what }) => {
                    let value = match what {
                        YamlContainer::List(items) => TreeValue::List(items),
                        YamlContainer::Table(entries, _, merged) => merge_tables(entries, merged)?.into_value(),
                    };
                    Some((TreeNode { at, value }, anchor))
                }
            },
            _ => None,
        };
        if open.len() > DEPTH_MAX {
            return Err(TrafficFileError::new(
                at,
                format!("the YAML values are nested more than {DEPTH_MAX} levels deep here"),
            ));
        }
        let Some((node, anchor)) = done else { continue };
        values += 1;
        if values > YAML_VALUES_MAX {
            return Err(TrafficFileError::new(at, format!("the YAML file has more than {YAML_VALUES_MAX} values")));
        }
        if anchor > 0 {
            let size = node_memory_bytes(&node);
            budget.spend_bytes(size).map_err(|error| TrafficFileError::new(at, error.to_string()))?;
            anchors.insert(anchor, (node.clone(), size));
        }
        match open.last_mut().map(|open| &mut open.container) {
            None => root = Some(node),
            Some(YamlContainer::List(items)) => items.push(node),
            Some(YamlContainer::Table(entries, key, merged)) => match key.take() {
                Some(key) if key.name == MERGE_KEY => merged.push(node),
                Some(key) => entries.insert(key, node)?,
                None => *key = Some(TreeKey { at, name: node.text("a key")?.to_owned() }),
            },
        }
    }
    root.ok_or_else(|| TrafficFileError::new(TextPosition { line: 1, column: 1 }, "the YAML file is empty"))
}

/// Adds the entries of merged tables to a table. If keys are equal, the entry of the table itself
/// has precedence, then the entry of the first merged table.
fn merge_tables(mut entries: TableEntries, merged: Vec<TreeNode>) -> Result<TableEntries, TrafficFileError> {
    for node in merged {
        let tables = match node.value {
            TreeValue::List(tables) => tables,
            _ => vec![node],
        };
        for table in tables {
            let TreeValue::Table(others) = table.value else {
                return table.error("the YAML key '<<' merges tables: its value must be a table or a list of tables");
            };
            for (key, value) in others.into_entries() {
                if entries.get(&key.name).is_none() {
                    entries.insert(key, value)?;
                }
            }
        }
    }
    Ok(entries)
}

fn start_position(span: Span) -> TextPosition {
    TextPosition { line: span.start.line(), column: span.start.col() + 1 }
}

/// Returns the memory of a value and all nested values, bytes.
fn node_memory_bytes(node: &TreeNode) -> usize {
    size_of::<TreeNode>()
        + match &node.value {
            TreeValue::List(items) => items.iter().map(node_memory_bytes).sum(),
            TreeValue::Table(entries) => {
                entries.iter().map(|(key, node)| size_of::<TreeKey>() + key.name.len() + node_memory_bytes(node)).sum()
            }
            TreeValue::Text(text) | TreeValue::Number(text) => text.len(),
            TreeValue::Null | TreeValue::Flag(_) => 0,
        }
}

/// Returns the value of a scalar without quotation marks, by the core schema of YAML 1.2.
fn parse_plain_scalar(text: &str) -> TreeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => TreeValue::Null,
        "true" | "True" | "TRUE" => TreeValue::Flag(true),
        "false" | "False" | "FALSE" => TreeValue::Flag(false),
        _ => {
            let digits = text.trim_start_matches(['-', '+']);
            let number = digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
            if number { TreeValue::Number(text.to_owned()) } else { TreeValue::Text(text.to_owned()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::json;

    #[test]
    fn yaml_values_follow_the_core_schema() {
        for (text, expect) in [
            ("a: no\nb: True\nc: ~\nd: '1'\ne: 1.5\n", r#"{"a":"no","b":true,"c":null,"d":"1","e":1.5}"#),
            // In this text, closing brackets around empty containers are on separate lines.
            (
                "x:\n  a: {\n    \"80\": {},\n    \"443\": {}\n  }\n  b: [\n    [],\n    {}\n  ]\n",
                r#"{"x":{"a":{"80":{},"443":{}},"b":[[],{}]}}"#,
            ),
            ("a: &x {b: [1, {c: 2}]}\nd: *x\n", r#"{"a":{"b":[1,{"c":2}]},"d":{"b":[1,{"c":2}]}}"#),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y"}"#),
            ("{a: {}, b: []}", r#"{"a":{},"b":[]}"#),
            ("x: &x {b: 1, c: 2}\ny:\n  <<: *x\n  c: 3\n", r#"{"x":{"b":1,"c":2},"y":{"c":3,"b":1}}"#),
            (
                "x: &x {b: 1}\ny: &y {b: 2, c: 3}\nz: {<<: [*x, *y]}\n",
                r#"{"x":{"b":1},"y":{"b":2,"c":3},"z":{"b":1,"c":3}}"#,
            ),
            ("a:\n- b\n- - c\n  - d\n", r#"{"a":["b",["c","d"]]}"#),
        ] {
            let mut written = String::new();
            json::write(&parse_yaml_tree(text).unwrap_or_else(|error| panic!("{text}: {error}")), &mut written);
            assert_eq!(written, expect, "{text}");
        }
        for text in
            ["a: {", "a: [1, 2", "a: *x", "\"a", "a:\n\t- b", "{", "- {a: b}\n-c: d", "{<<: 1}", "{<<: [{a: 1}, b]}"]
        {
            assert!(parse_yaml_tree(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_without_a_panic(text in "([a-c]|[:\\-\\[\\]{}&*!|>'\"%@`#?,\n\t ]|\\\\x|---\n|\u{85}|\u{e9}){0,60}") {
            let _ = parse_yaml_tree(&text);
        }
    }
}
