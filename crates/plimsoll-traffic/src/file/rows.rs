//! Parses files of data rows: CSV with a header line (RFC 4180), or one JSON object on each line.

use super::file_context::FileContext;
use super::json;
use super::keys;
use super::tree::{KEYS_MAX, TableEntries, TrafficFileError, TreeNode, TreeValue};
use plimsoll_model::ParseBudget;
use plimsoll_model::data::{RowChoice, ValueTable};
use plimsoll_model::template::is_name;
use std::collections::HashSet;

/// The largest accepted number of columns in a file of data rows. A TOML or JSON table has the same
/// limit on keys.
const COLUMNS_MAX: usize = KEYS_MAX;
/// The largest accepted total size of all row files of one traffic file, bytes (1 GiB).
pub const ROWS_BYTES_MAX: usize = 1 << 30;

/// Reads the `data` table `name` and the file of data rows that the table names. `bytes_budget` is
/// the number of bytes that this row file and all later row files may have together.
pub fn read(
    name: &str,
    node: &TreeNode,
    world: &mut dyn FileContext,
    bytes_budget: &mut ParseBudget,
) -> Result<ValueTable, TrafficFileError> {
    let what = format!("the data '{name}'");
    let table = node.table(&what, &keys::DATA_KEYS)?;
    if !is_name(name) || name == "env" {
        return node.error(format!(
            "'{name}' is not a valid name for data: use letters, digits, - and _, but not the name env"
        ));
    }
    let Some(file) = table.get("file") else {
        return node.error(format!("the data '{name}' needs a file with rows: add file = \"rows.csv\""));
    };
    let path = file.text("'file'")?;
    let pick = table.get("pick").map_or(Ok(RowChoice::Sequential), |node| node.read("'pick'", parse_pick))?;
    let each_use = match table.get("each").map(|node| Ok((node, node.text("'each'")?))).transpose()? {
        None | Some((_, "session")) => false,
        Some((node, "use")) if pick == RowChoice::Unique => {
            return node
                .error("with pick = unique, each session uses one row: leave 'each' out, or choose another 'pick'");
        }
        Some((_, "use")) => true,
        Some((node, other)) => return node.error(format!("'each' must be session or use, not '{other}'")),
    };
    let text =
        world.read_data_rows(path).map_err(|why| TrafficFileError::new(file.at, format!("the file '{path}' {why}")))?;
    let limit_mib = ROWS_BYTES_MAX >> 20;
    let too_much =
        |_| format!("with '{path}', the files with data rows of this traffic file exceed {limit_mib} MiB together");
    bytes_budget.spend_bytes(text.len()).map_err(too_much).or_else(|why| file.error(why))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines_of_json = path.ends_with(".jsonl") || path.ends_with(".ndjson") || text.trim_start().starts_with('{');
    let table = |columns| ValueTable::new(name.to_owned(), columns, pick, each_use);
    let data = if lines_of_json { parse_json_rows(text, table) } else { parse_csv_rows(text, table) };
    let data = data.map_err(|why| TrafficFileError::new(file.at, format!("'{path}', {why}")))?;
    match data.row_count() {
        0 => file.error(format!("the file '{path}' has no rows")),
        _ => Ok(data),
    }
}

fn parse_pick(text: &str) -> Result<RowChoice, String> {
    match text.trim() {
        "sequential" => Ok(RowChoice::Sequential),
        "random" => Ok(RowChoice::Random),
        "unique" => Ok(RowChoice::Unique),
        other => {
            let exponent = other.strip_prefix("zipf(").and_then(|rest| rest.strip_suffix(')')).map(str::trim);
            match exponent.and_then(|text| text.parse::<f64>().ok()).filter(|exponent| (0.0..=10.0).contains(exponent))
            {
                Some(exponent) => Ok(RowChoice::Zipf { exponent_milli: (exponent * 1e3).round() as u32 }),
                None => Err(format!(
                    "the choice of data rows must be sequential, random, unique or zipf(1.1), not '{other}'"
                )),
            }
        }
    }
}

/// Checks column names: at most `COLUMNS_MAX`, and each unique.
fn check_column_names(names: Vec<String>) -> Result<Vec<String>, String> {
    let count = names.len();
    if !(1..=COLUMNS_MAX).contains(&count) {
        return Err(format!("line 1: the data file has {count} columns, but 1 to {COLUMNS_MAX} are allowed"));
    }
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(name.as_str())) {
        Some(name) => Err(format!("line 1: the column '{name}' appears twice")),
        None => Ok(names),
    }
}

/// Returns the error for the row at which the text of all rows exceeds the limit. `line` is the
/// line number of the row.
fn text_limit_error(line: usize) -> String {
    format!("line {line}: the text of all rows up to this line exceeds the limit (1 GiB)")
}

fn parse_csv_rows(text: &str, table: impl FnOnce(Vec<String>) -> ValueTable) -> Result<ValueTable, String> {
    let mut records = CsvRecords { rest: text, line: 1 };
    let heading = records.next().transpose()?.map(|(_, cells)| cells).unwrap_or_default();
    let mut data = table(check_column_names(heading.into_iter().map(|cell| cell.trim().to_owned()).collect())?);
    for record in records {
        let (line, cells) = record?;
        if cells.len() != data.columns.len() {
            // An empty line of the file is not a record.
            if cells.iter().all(|cell| cell.is_empty()) && cells.len() == 1 {
                continue;
            }
            return Err(format!(
                "line {line}: the row has {cells} cells, but the heading in line 1 has {columns}",
                cells = cells.len(),
                columns = data.columns.len()
            ));
        }
        data.push(cells.iter().map(String::as_str)).ok_or_else(|| text_limit_error(line))?;
    }
    Ok(data)
}

/// An iterator over the records of a CSV text. Each item has the cells of a record, and the number
/// of the record's first line.
struct CsvRecords<'a> {
    rest: &'a str,
    line: usize,
}

impl Iterator for CsvRecords<'_> {
    type Item = Result<(usize, Vec<String>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, mut cells) = (self.line, Vec::new());
        loop {
            let cell = match self.rest.strip_prefix('"') {
                Some(after) => {
                    let mut cell = String::new();
                    let mut after = after;
                    loop {
                        let Some(at) = after.find('"') else {
                            self.rest = "";
                            return Some(Err(format!("line {line}: a cell has no closing quotation mark")));
                        };
                        cell.push_str(&after[..at]);
                        after = &after[at + 1..];
                        let Some(more) = after.strip_prefix('"') else { break };
                        cell.push('"');
                        after = more;
                    }
                    self.rest = after;
                    self.line += cell.matches('\n').count();
                    cell
                }
                None => {
                    let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                    let (cell, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    cell.strip_suffix('\r').unwrap_or(cell).to_owned()
                }
            };
            cells.push(cell);
            let rest = self
                .rest
                .strip_prefix('\r')
                .filter(|rest| rest.is_empty() || rest.starts_with('\n'))
                .unwrap_or(self.rest);
            if let Some(rest) = rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            self.line += 1;
            return match rest.strip_prefix('\n') {
                Some(next) => {
                    self.rest = next;
                    Some(Ok((line, cells)))
                }
                None if rest.is_empty() => {
                    self.rest = "";
                    Some(Ok((line, cells)))
                }
                None => {
                    self.rest = "";
                    Some(Err(format!(
                        "line {line}: after a closing quotation mark, a comma or the end of the line is expected"
                    )))
                }
            };
        }
    }
}

/// Returns the cell text of a JSON value: objects, arrays and booleans as JSON, null as the empty
/// text.
fn cell_text(node: &TreeNode) -> String {
    match &node.value {
        TreeValue::Null => String::new(),
        TreeValue::Text(text) | TreeValue::Number(text) => text.clone(),
        TreeValue::Flag(_) | TreeValue::List(_) | TreeValue::Table(_) => {
            let mut text = String::new();
            json::write(node, &mut text);
            text
        }
    }
}

fn parse_json_rows(text: &str, table: impl FnOnce(Vec<String>) -> ValueTable) -> Result<ValueTable, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let object = |number: usize, line: &str| -> Result<TableEntries, String> {
        let node = json::parse_json_tree(line)
            .map_err(|error| format!("line {}, column {}: {}", number + 1, error.at.column, error.text))?;
        match node.value {
            TreeValue::Table(entries) => Ok(entries),
            _ => Err(format!("line {line_number}: the line is not a JSON object", line_number = number + 1)),
        }
    };
    let Some((number, first)) = lines.peek().copied() else { return Ok(table(vec![String::new()])) };
    let names = object(number, first)?.into_entries().into_iter().map(|(key, _)| key.name).collect();
    let mut data = table(check_column_names(names)?);
    for (number, line) in lines {
        let entries = object(number, line)?;
        let mut cells = Vec::with_capacity(data.columns.len());
        for column in &data.columns {
            let Some(node) = entries.get(column) else {
                return Err(format!(
                    "line {line_number}: the object has no key '{column}', which the object of the first line has",
                    line_number = number + 1
                ));
            };
            cells.push(cell_text(node));
        }
        data.push(cells.iter().map(String::as_str)).ok_or_else(|| text_limit_error(number + 1))?;
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_cells(text: &str, json: bool) -> Result<Vec<String>, String> {
        let table = |columns| ValueTable::new("d".into(), columns, RowChoice::Sequential, false);
        let data = if json { parse_json_rows(text, table) } else { parse_csv_rows(text, table) }?;
        Ok(data.columns.iter().cloned().chain(data.cells().map(str::to_owned)).collect())
    }

    #[test]
    fn data_rows_are_parsed_or_refused() {
        for (json, text, expect) in [
            (false, "a,b\n1,2\n", Ok(&["a", "b", "1", "2"][..])),
            (false, "a, b\r\n1,\"x,\"\"y\"\"\nz\"\r\n\r\n3,\r\n", Ok(&["a", "b", "1", "x,\"y\"\nz", "3", ""])),
            (false, "a\n1", Ok(&["a", "1"])),
            (false, "a,b\n1\n", Err("line 2: the row has 1 cells, but the heading in line 1 has 2")),
            (false, "a,b\n\"x\ny\",2\n1\n", Err("line 4: ")),
            (false, "a,b\n\"x\n", Err("line 2: a cell has no closing")),
            (false, "a,b\n\"x\"y,2\n", Err("line 2: after a closing")),
            (false, "a,a\n", Err("twice")),
            (true, "{\"a\":1,\"b\":\"x\"}\n\n{\"b\":true,\"a\":-2}", Ok(&["a", "b", "1", "x", "-2", "true"])),
            (true, "{\"a\":1}\n{\"b\":1}", Err("line 2: the object has no key 'a'")),
            (
                true,
                "{\"a\":1}\n{\"a\":[\"x\\\"\",{\"b\":null}]}\n{\"a\":null}",
                Ok(&["a", "1", "[\"x\\\"\",{\"b\":null}]", ""]),
            ),
            (true, "{\"a\":1}\n{", Err("line 2, column 2: ")),
            (true, "{\"a\":1}\n3", Err("line 2: the line is not a JSON object")),
        ] {
            match (parsed_cells(text, json), expect) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{text}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
    }

    #[test]
    fn data_picks_parse_or_explain_the_error() {
        assert_eq!(parse_pick("zipf(1.1)"), Ok(RowChoice::Zipf { exponent_milli: 1_100 }));
        for text in ["", "zipf", "zipf(x)", "zipf(-1)", "zipf(NaN)", "first"] {
            assert!(parse_pick(text).is_err(), "{text}");
        }
    }
}
