//! Parses TOML into a tree. A library parses the text, and this file adds the position of each
//! value.

use super::tree::{LinePositions, TableEntries, TextPosition, TrafficFileError, TreeKey, TreeNode, TreeValue};
use plimsoll_model::library_panic;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses a TOML text into a tree of values with positions.
pub fn parse_toml_tree(text: &str) -> Result<TreeNode, TrafficFileError> {
    let lines = LinePositions::new(text);
    let parsed = library_panic::catch_library_panic("TOML", || DeTable::parse(text));
    let parsed =
        parsed.map_err(|error| TrafficFileError::new(TextPosition { line: 1, column: 1 }, error.to_string()))?;
    let table = parsed.map_err(|error| {
        let at = lines.position_at(error.span().map_or(0, |span| span.start));
        let reason = error.message().replace('\n', ", ");
        TrafficFileError::new(at, format!("this is not TOML: {reason}"))
    })?;
    let at = lines.position_at(table.span().start);
    Ok(TreeNode { at, value: convert_table(&lines, table.get_ref())? })
}

fn convert_table(lines: &LinePositions, table: &DeTable) -> Result<TreeValue, TrafficFileError> {
    let mut entries = TableEntries::default();
    for (key, value) in table.iter() {
        let key = TreeKey { at: lines.position_at(key.span().start), name: key.get_ref().to_string() };
        entries.insert(key, convert_value(lines, value)?)?;
    }
    Ok(entries.into_value())
}

/// Converts a TOML value and all nested values. The library bounds the nesting depth.
fn convert_value(lines: &LinePositions, value: &Spanned<DeValue>) -> Result<TreeNode, TrafficFileError> {
    let at = lines.position_at(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => TreeValue::Text(text.to_string()),
        // Hexadecimal, octal and binary numbers become decimal, so that later code parses one
        // notation.
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) if number.radix() != 10 => TreeValue::Number(value.to_string()),
            _ => TreeValue::Number(number.as_str().to_owned()),
        },
        DeValue::Float(number) => TreeValue::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => TreeValue::Flag(*flag),
        DeValue::Datetime(time) => TreeValue::Text(time.to_string()),
        DeValue::Array(items) => {
            TreeValue::List(items.iter().map(|item| convert_value(lines, item)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => convert_table(lines, table)?,
    };
    Ok(TreeNode { at, value })
}
