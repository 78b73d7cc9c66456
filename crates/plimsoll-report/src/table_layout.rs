//! Formats tables for a terminal. Columns are side by side if they fit. If the columns do not fit,
//! long text is wrapped inside its column, rows become columns, or the table is split into several
//! tables. The text of a table is never cut.
//!
//! Not here: the content of a table.

use crate::wrap::{display_width, widest_unbreakable_width, wrap_text};

/// The minimum width in characters of a text column whose text is wrapped. Narrower columns would
/// be hard to read.
const WRAPPED_COLUMN_WIDTH_MIN: usize = 20;
/// The maximum number of rows of a table that may be transposed (rows become columns). With more
/// rows, the transposed table would have too many columns to be easy to read.
const TRANSPOSED_ROWS_MAX: usize = 8;

/// Formats a table in lines of at most `columns` characters. Only a single longer word can exceed
/// the width of `columns` characters.
pub fn format_table(headings: &[String], rows: &[Vec<String>], columns: Option<usize>) -> String {
    let lines: Vec<&[String]> = std::iter::once(headings).chain(rows.iter().map(Vec::as_slice)).collect();
    let grid = Grid::new(lines);
    let Some(columns) = columns.filter(|columns| grid.total_width(&grid.natural_widths) > *columns) else {
        return grid.render(&grid.natural_widths, usize::MAX);
    };
    let breakable =
        |column: usize| !grid.right_aligned[column] && grid.natural_widths[column] >= WRAPPED_COLUMN_WIDTH_MIN;
    if let Some(widths) = grid.fitting_widths(columns, breakable) {
        return grid.render(&widths, columns);
    }
    let turned: Vec<Vec<String>> = (0..headings.len())
        .map(|column| grid.lines.iter().map(|line| line.get(column).cloned().unwrap_or_default()).collect())
        .collect();
    if rows.len() <= TRANSPOSED_ROWS_MAX {
        let turned = Grid::new(turned.iter().map(Vec::as_slice).collect());
        if turned.total_width(&turned.natural_widths) <= columns {
            return turned.render(&turned.natural_widths, columns);
        }
    }
    if let Some(widths) = grid.fitting_widths(columns, |_| true) {
        return grid.render(&widths, columns);
    }
    split_into_narrow_tables(&grid, columns).unwrap_or_else(|| rows_as_lines(&grid, columns))
}

struct Grid<'a> {
    /// The headings of the table, followed by its rows.
    lines: Vec<&'a [String]>,
    /// For each column, whether its cells are aligned to the right. Columns of numbers are aligned
    /// to the right, so that their digits align.
    right_aligned: Vec<bool>,
    natural_widths: Vec<usize>,
}

impl<'a> Grid<'a> {
    fn new(lines: Vec<&'a [String]>) -> Grid<'a> {
        let count = lines.first().map_or(0, |line| line.len());
        let number =
            |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-+".contains(c));
        let right = |column: usize| lines.iter().skip(1).filter_map(|line| line.get(column)).all(number);
        let natural = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|c| display_width(c)).max().unwrap_or(0)
        };
        let (right, natural) = ((0..count).map(right).collect(), (0..count).map(natural).collect());
        Grid { lines, right_aligned: right, natural_widths: natural }
    }

    fn total_width(&self, widths: &[usize]) -> usize {
        widths.iter().map(|width| width + 2).sum()
    }

    fn is_last(&self, column: usize) -> bool {
        column + 1 == self.natural_widths.len()
    }

    /// Returns the minimum width of a column, which is the width of its widest word. The last
    /// column may be narrower than its widest word, because a text with wider words is printed
    /// below the row.
    fn minimum_width(&self, column: usize) -> usize {
        let cells = self.lines.iter().filter_map(|line| line.get(column));
        let widest = cells.map(|cell| widest_unbreakable_width(cell)).max().unwrap_or(0);
        if self.is_last(column) && !self.right_aligned[column] { widest.min(WRAPPED_COLUMN_WIDTH_MIN) } else { widest }
    }

    /// Returns column widths with which the table fits into `columns` characters; `None` if no
    /// widths fit. Only columns for which `may_shrink` returns true become narrower than their
    /// text.
    fn fitting_widths(&self, columns: usize, may_shrink: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut widths = self.natural_widths.clone();
        let least: Vec<usize> = (0..widths.len()).map(|column| self.minimum_width(column)).collect();
        while self.total_width(&widths) > columns {
            let widest =
                (0..widths.len()).filter(|c| may_shrink(*c) && widths[*c] > least[*c]).max_by_key(|c| widths[*c])?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    fn render(&self, widths: &[usize], columns: usize) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let cell = |column: usize| line.get(column).map_or("", String::as_str);
            // If a word is wider than the last column, the text of the cell with the word is
            // printed below the row.
            let below = |column: usize| self.is_last(column) && widest_unbreakable_width(cell(column)) > widths[column];
            let parts: Vec<Vec<String>> = (0..widths.len())
                .map(|column| match below(column) {
                    true => Vec::new(),
                    false => wrap_text(cell(column), Some(widths[column]), 0).lines().map(str::to_owned).collect(),
                })
                .collect();
            for at in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
                let mut shown = String::new();
                for (column, (part, width)) in parts.iter().zip(widths).enumerate() {
                    let text = part.get(at).map_or("", String::as_str);
                    match self.right_aligned[column] {
                        true => shown.push_str(&format!("  {text:>width$}")),
                        false => shown.push_str(&format!("  {text:<width$}")),
                    }
                }
                out.push_str(shown.trim_end());
                out.push('\n');
            }
            if let Some(last) = widths.len().checked_sub(1).filter(|last| below(*last)) {
                out.push_str(&wrap_text(&format!("    {}", cell(last)), Some(columns), 4));
                out.push('\n');
            }
        }
        out
    }
}

/// Splits a table into several tables, one below the other. Each table has the first column and as
/// many other columns as fit.
fn split_into_narrow_tables(grid: &Grid, columns: usize) -> Option<String> {
    let mut out = String::new();
    let mut next = 1;
    let count = grid.natural_widths.len();
    while next < count {
        let from = next;
        let mut taken = grid.natural_widths[0] + 2;
        while next < count && taken + grid.natural_widths[next] + 2 <= columns {
            taken += grid.natural_widths[next] + 2;
            next += 1;
        }
        // Even a column that is too wide for the terminal is put into a table, so that the loop
        // always advances.
        next = next.max(from + 1);
        let cells = |line: &&[String]| {
            let chosen = std::iter::once(0).chain(from..next);
            chosen.map(|column| line.get(column).cloned().unwrap_or_default()).collect::<Vec<String>>()
        };
        let lines: Vec<Vec<String>> = grid.lines.iter().map(cells).collect();
        let part = Grid::new(lines.iter().map(Vec::as_slice).collect());
        let widths = part.fitting_widths(columns, |_| true)?;
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&part.render(&widths, columns));
    }
    (!out.is_empty()).then_some(out)
}

/// Formats each row of the table as several lines, each with a column heading and its value.
fn rows_as_lines(grid: &Grid, columns: usize) -> String {
    let mut out = String::new();
    let headings = grid.lines.first().copied().unwrap_or_default();
    let label = headings.iter().map(|heading| display_width(heading)).max().unwrap_or(0);
    for (number, line) in grid.lines.iter().skip(1).enumerate() {
        if number > 0 {
            out.push('\n');
        }
        for (heading, cell) in headings.iter().zip(*line) {
            out.push_str(&wrap_text(&format!("  {heading:<label$}  {cell}"), Some(columns), label + 4));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table_text(headings: &[&str], rows: &[&[&str]], columns: usize) -> String {
        let own = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        format_table(&own(headings), &rows.iter().map(|row| own(row)).collect::<Vec<_>>(), Some(columns))
    }

    #[test]
    fn tables_fit_the_terminal() {
        let rows: &[&[&str]] = &[&["a", "1 ms", "fail: the server fell behind by 10 %"], &["bb", "10 ms", "pass"]];
        for (columns, expect) in [
            (60, "  kind    p50  verdict\n  a      1 ms  fail: the server fell behind by 10 %\n  bb    10 ms  pass\n"),
            (
                40,
                "  kind    p50  verdict\n  a      1 ms  fail: the server fell\n               behind by 10 %\n  bb    10 ms  pass\n",
            ),
        ] {
            assert_eq!(table_text(&["kind", "p50", "verdict"], rows, columns), expect, "{columns}");
        }
        // A table with few rows and many columns is transposed: its rows become columns.
        let figures: &[&[&str]] = &[&["response", "1 ms", "2 ms", "3 ms", "4 ms"]];
        let expect = "        response\n  mean      1 ms\n  p50       2 ms\n  p90       3 ms\n  p99       4 ms\n";
        assert_eq!(table_text(&["", "mean", "p50", "p90", "p99"], figures, 24), expect);
        // A table with many rows is split into several tables, each of which has the first column.
        let many: Vec<&[&str]> = vec![&["100", "20 000", "30 000", "40 000"]; 9];
        let parts = table_text(&["users", "first", "second", "third"], &many, 24);
        assert_eq!((parts.matches("users").count(), parts.matches("40 000").count()), (2, 9), "{parts}");
        // A name that is wider than its column is printed on a line below its row.
        let name = "main.(*server).handleEveryRequestThatComes";
        let below = table_text(&["flat", "cum", "function"], &[&["10 ms", "20 ms", name], &["1 ms", "2 ms", "f"]], 44);
        assert!(below.contains(&format!("  10 ms  20 ms\n  {name}\n")), "{below}");
    }

    proptest! {
        #[test]
        fn no_table_is_wider_than_its_words_require(
            cells in prop::collection::vec(prop::collection::vec("([a-z]{1,9}|[0-9]{1,4} ms| |[a-z]{1,7} [a-z]{1,9} [a-z]{1,9})", 5), 2..14),
            columns in 30..120usize,
        ) {
            let text = format_table(&cells[0], &cells[1..], Some(columns));
            prop_assert!(text.lines().all(|line| display_width(line) <= columns), "{columns}:\n{text}");
            for cell in cells.iter().flatten().flat_map(|cell| cell.split_whitespace()) {
                prop_assert!(text.split_whitespace().any(|word| word == cell), "{cell} is missing in\n{text}");
            }
        }
    }
}
