//! The tree of a traffic file: values with their positions, and methods for typed access.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Deref;

/// The deepest accepted nesting of values. Real files are nested less deeply. The nesting limit
/// bounds the recursion of functions that walk the tree.
pub const DEPTH_MAX: usize = 64;
/// The largest accepted number of values in a YAML file. Each YAML alias counts as one value.
pub const YAML_VALUES_MAX: usize = 1_000_000;
/// The largest accepted number of keys in one table.
pub const KEYS_MAX: usize = 50_000;

/// A position in a text. Lines and columns count from 1; a column is a number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TextPosition {
    /// The line number, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl TextPosition {
    /// Returns the position of a byte offset in a text.
    pub fn from_byte(text: &str, byte: usize) -> TextPosition {
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        TextPosition { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// The reason why a traffic file is invalid: a position, and one sentence with the error and its
/// correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {text}", at.line, at.column)]
pub struct TrafficFileError {
    /// The position of the error in the file.
    pub at: TextPosition,
    /// The sentence for the user, without the position.
    pub text: String,
}

impl TrafficFileError {
    /// Returns an error at a position in the file.
    pub fn new(at: TextPosition, text: impl Into<String>) -> TrafficFileError {
        TrafficFileError { at, text: text.into() }
    }
}

/// Converts byte offsets of one text to positions, in any order. For ascending offsets, each lookup
/// continues from the previous lookup, which avoids a rescan of long lines.
pub struct LinePositions<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// The result of the previous lookup: line number, byte offset, and number of characters before
    /// that offset in the line. The cached result speeds up lookups in documents that are one long
    /// line.
    last_lookup: Cell<(usize, usize, usize)>,
}

impl<'a> LinePositions<'a> {
    pub fn new(text: &'a str) -> LinePositions<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        LinePositions { text, starts, last_lookup: Cell::default() }
    }

    pub fn position_at(&self, byte: usize) -> TextPosition {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte).max(1);
        let start = self.starts[line - 1];
        let (from, counted) = match self.last_lookup.get() {
            (last_line, last_byte, counted) if last_line == line && last_byte <= byte => (last_byte, counted),
            _ => (start, 0),
        };
        let counted = counted + self.text.get(from..byte).unwrap_or_default().chars().count();
        self.last_lookup.set((line, byte, counted));
        TextPosition { line, column: counted + 1 }
    }
}

/// A key of a table, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeKey {
    pub at: TextPosition,
    pub name: String,
}

/// A value of a traffic file, common to TOML, YAML and JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeValue {
    Null,
    Flag(bool),
    /// A number, as the text that the file contains.
    Number(String),
    Text(String),
    List(Vec<TreeNode>),
    Table(TableEntries),
}

/// A value with its position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    pub at: TextPosition,
    pub value: TreeValue,
}

impl TreeNode {
    /// Returns an error at the position of this value.
    pub fn error<T>(&self, text: impl Into<String>) -> Result<T, TrafficFileError> {
        Err(TrafficFileError::new(self.at, text))
    }

    fn value_kind_name(&self) -> &'static str {
        match &self.value {
            TreeValue::Null => "nothing",
            TreeValue::Flag(_) => "true or false",
            TreeValue::Number(_) => "a number",
            TreeValue::Text(_) => "a text",
            TreeValue::List(_) => "a list",
            TreeValue::Table(_) => "a table",
        }
    }

    /// Returns this value as a table in which only `keys` are allowed; errors contain `table_name`.
    pub fn table<'a>(&'a self, table_name: &'a str, keys: &[&str]) -> Result<TreeTable<'a>, TrafficFileError> {
        let table = self.open_table(table_name)?;
        for (key, _) in table.entries {
            if !keys.contains(&key.name.as_str()) {
                let unknown_key = &key.name;
                let text = match most_similar_name(unknown_key, keys) {
                    Some(similar_key) => {
                        format!("there is no key '{unknown_key}' in {table_name}: did you mean '{similar_key}'?")
                    }
                    None => format!(
                        "there is no key '{unknown_key}' in {table_name}: the known keys are {known_keys}",
                        known_keys = keys.join(", ")
                    ),
                };
                return Err(TrafficFileError::new(key.at, text));
            }
        }
        Ok(table)
    }

    /// Returns this value as a table with arbitrary keys; errors contain `table_name`.
    pub fn open_table<'a>(&'a self, table_name: &'a str) -> Result<TreeTable<'a>, TrafficFileError> {
        let TreeValue::Table(entries) = &self.value else {
            return self.error(format!(
                "{table_name} must be a table of keys and values, not {found_kind}",
                found_kind = self.value_kind_name()
            ));
        };
        Ok(TreeTable { node: self, entries })
    }

    /// Returns the items of this value, which must be a list; errors contain `list_name`.
    pub fn list(&self, list_name: &str) -> Result<&[TreeNode], TrafficFileError> {
        match &self.value {
            TreeValue::List(items) => Ok(items),
            _ => {
                self.error(format!("{list_name} must be a list, not {found_kind}", found_kind = self.value_kind_name()))
            }
        }
    }

    /// Returns the text of this value. Numbers and booleans are accepted too, with their spelling
    /// in the file. Errors contain `key_name`.
    pub fn text(&self, key_name: &str) -> Result<&str, TrafficFileError> {
        match &self.value {
            TreeValue::Text(text) | TreeValue::Number(text) => Ok(text),
            TreeValue::Flag(true) => Ok("true"),
            TreeValue::Flag(false) => Ok("false"),
            _ => {
                self.error(format!("{key_name} must be a text, not {found_kind}", found_kind = self.value_kind_name()))
            }
        }
    }

    /// Returns this value as a boolean; errors contain `key_name`.
    pub fn flag(&self, key_name: &str) -> Result<bool, TrafficFileError> {
        match self.value {
            TreeValue::Flag(flag) => Ok(flag),
            _ => self.error(format!(
                "{key_name} must be true or false, not {found_kind}",
                found_kind = self.value_kind_name()
            )),
        }
    }

    /// Returns this value as a whole number from `from` to `to`; errors contain `key_name`.
    pub fn whole_number(&self, key_name: &str, from: u64, to: u64) -> Result<u64, TrafficFileError> {
        let TreeValue::Number(text) = &self.value else {
            return self.error(format!(
                "{key_name} must be a whole number, not {found_kind}",
                found_kind = self.value_kind_name()
            ));
        };
        match text.replace('_', "").parse() {
            Ok(number) if (from..=to).contains(&number) => Ok(number),
            _ => self.error(format!("{key_name} must be a whole number from {from} to {to}, not {text}")),
        }
    }

    /// Parses the text of this value with `read` and returns the result. An error from `read` is
    /// extended by the name `what` and the position of this value.
    pub fn read<T, E: Display>(
        &self,
        what: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, TrafficFileError> {
        read(self.text(what)?).map_err(|error| TrafficFileError::new(self.at, format!("{what}: {error}")))
    }
}

/// A table and its entries.
#[derive(Debug, Clone, Copy)]
pub struct TreeTable<'a> {
    pub node: &'a TreeNode,
    pub entries: &'a [(TreeKey, TreeNode)],
}

impl<'a> TreeTable<'a> {
    /// Returns the value of the key `name`, if the table has this key.
    pub fn get(&self, name: &str) -> Option<&'a TreeNode> {
        match &self.node.value {
            TreeValue::Table(entries) => entries.get(name),
            _ => None,
        }
    }

    /// Returns the entries whose keys are in `names`.
    pub fn find_keys(&self, names: &[&str]) -> Vec<(&'a TreeKey, &'a TreeNode)> {
        self.entries
            .iter()
            .filter(|(key, _)| names.contains(&key.name.as_str()))
            .map(|(key, node)| (key, node))
            .collect()
    }
}

/// The index of each key in the list of entries.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct KeyIndex(HashMap<String, usize>);

/// The keys and values of a table in file order. Each key is unique in its table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TableEntries {
    entries: Vec<(TreeKey, TreeNode)>,
    /// A hash index from key to entry, for tables with more than [`Self::LINEAR_SEARCH_MAX`] keys.
    /// Few tables need the index, so the index is boxed to keep tables without an index small.
    index_by_key: Option<Box<KeyIndex>>,
}

impl TableEntries {
    /// The number of keys up to which lookups scan the entries instead of using the index.
    const LINEAR_SEARCH_MAX: usize = 16;

    pub fn insert(&mut self, key: TreeKey, node: TreeNode) -> Result<(), TrafficFileError> {
        if self.get(&key.name).is_some() {
            let text = format!(
                "the key '{repeated_key}' appears twice in the same table: leave one out",
                repeated_key = key.name
            );
            return Err(TrafficFileError::new(key.at, text));
        }
        if self.entries.len() == KEYS_MAX {
            return Err(TrafficFileError::new(
                key.at,
                format!("the table at this position has more than {KEYS_MAX} keys"),
            ));
        }
        let place = self.entries.len();
        if place == Self::LINEAR_SEARCH_MAX {
            let known = self.entries.iter().enumerate().map(|(place, (key, _))| (key.name.clone(), place));
            self.index_by_key = Some(Box::new(KeyIndex(known.collect())));
        }
        if let Some(places) = &mut self.index_by_key {
            places.0.insert(key.name.clone(), place);
        }
        self.entries.push((key, node));
        Ok(())
    }

    /// Returns the value of the key `name`, if the table has this key.
    pub fn get(&self, name: &str) -> Option<&TreeNode> {
        match &self.index_by_key {
            Some(places) => places.0.get(name).map(|place| &self.entries[*place].1),
            None => self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node),
        }
    }

    pub fn into_entries(self) -> Vec<(TreeKey, TreeNode)> {
        self.entries
    }

    pub fn into_value(self) -> TreeValue {
        TreeValue::Table(self)
    }
}

impl Deref for TableEntries {
    type Target = [(TreeKey, TreeNode)];

    fn deref(&self) -> &[(TreeKey, TreeNode)] {
        &self.entries
    }
}

/// Returns the known name most similar to `name`, if at most two letters are changed, missing,
/// added or swapped.
pub fn most_similar_name<'a>(name: &str, known_names: &[&'a str]) -> Option<&'a str> {
    let name: Vec<char> = name.to_ascii_lowercase().chars().take(64).collect();
    let nearest =
        known_names.iter().map(|word| (edit_distance(&name, &word.chars().collect::<Vec<_>>()), *word)).min()?;
    (nearest.0 <= 2 && nearest.0 < name.len()).then_some(nearest.1)
}

/// Returns the edit distance of two words. A swap of neighbouring letters counts as one edit.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["weight", "headers", "body", "get"];
        for (name, expect) in [
            ("wieght", Some("weight")),
            ("Weight", Some("weight")),
            ("header", Some("headers")),
            ("bdoy", Some("body")),
            ("x", None),
            ("colour", None),
        ] {
            assert_eq!(most_similar_name(name, &known), expect, "{name}");
        }
    }

    #[test]
    fn positions_count_characters_from_one() {
        let text = "a = 1\n\u{e9}\u{e9} = 2\n";
        for (byte, line, column) in [(0, 1, 1), (4, 1, 5), (6, 2, 1), (8, 2, 2), (11, 2, 4), (999, 3, 1)] {
            assert_eq!(TextPosition::from_byte(text, byte), TextPosition { line, column }, "{byte}");
            assert_eq!(LinePositions::new(text).position_at(byte), TextPosition { line, column }, "{byte}");
        }
        let lines = LinePositions::new(text);
        let columns = [8, 10, 8, 4, 11, 6].map(|byte| lines.position_at(byte).column);
        assert_eq!(columns, [2, 3, 2, 5, 4, 1]);
    }
}
