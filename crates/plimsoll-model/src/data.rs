//! Tables of values for requests, and the rule by which each session gets its row. A table is
//! stored once, however many requests use it.
//!
//! Not here: the files that rows come from.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// Maximum length of the texts of all cells of a table together, in bytes. With this limit, the
/// offset of a cell fits 32 bits.
pub const TABLE_TEXT_BYTES_MAX: usize = 1 << 30;

/// The rule by which a session gets its row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowChoice {
    /// Sessions get the rows in order, then again from the first row.
    Sequential,
    /// Each session gets a random row.
    Random,
    /// Sessions get the rows in order, each row at most once in a load.
    Unique,
    /// Sessions get random rows with a Zipf distribution: row n has the weight 1 / n^s.
    Zipf {
        /// The exponent s, in thousandths.
        exponent_milli: u32,
    },
}

/// A table of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueTable {
    /// The name of the table in templates.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// How a session chooses its row.
    pub pick: RowChoice,
    /// Whether every use of the table takes another row. If `each_use` is false, a session uses one
    /// row of the table for all its requests.
    pub each_use: bool,
    /// The texts of all cells, row by row.
    text: String,
    /// The offset in `text` at which each cell ends.
    ends: Vec<u32>,
    /// A checksum of the cells, in order.
    crc: u32,
}

impl ValueTable {
    /// Creates a table without rows.
    pub fn new(name: String, columns: Vec<String>, pick: RowChoice, each_use: bool) -> ValueTable {
        ValueTable { name, columns, pick, each_use, text: String::new(), ends: Vec::new(), crc: 0 }
    }

    /// Adds a row. `None` means that the number of cells differs from the number of columns, or
    /// that the table is full.
    #[must_use]
    pub fn push<'a>(&mut self, cells: impl ExactSizeIterator<Item = &'a str>) -> Option<()> {
        if cells.len() != self.columns.len() {
            return None;
        }
        for cell in cells {
            self.text.push_str(cell);
            if self.text.len() > TABLE_TEXT_BYTES_MAX {
                return None;
            }
            self.ends.push(self.text.len() as u32);
            let mut crc = crc32fast::Hasher::new_with_initial(self.crc);
            crc.update(cell.as_bytes());
            // The end of each cell is part of the checksum, so that `ab,c` and `a,bc` have
            // different checksums.
            crc.update(&[0]);
            self.crc = crc.finalize();
        }
        Some(())
    }

    /// Returns a short digest of the cells, which distinguishes tables with different content.
    pub fn digest(&self) -> String {
        format!("{:08x}", self.crc)
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        (self.ends.len() / self.columns.len().max(1)) as u64
    }

    /// Returns the text of a cell; empty if the row does not exist.
    #[inline]
    pub fn cell(&self, row: u64, column: usize) -> &str {
        let at = row as usize * self.columns.len() + column;
        let end = |at: usize| self.ends.get(at).copied().unwrap_or(self.text.len() as u32) as usize;
        &self.text[if at == 0 { 0 } else { end(at - 1) }..end(at)]
    }

    /// Returns all cells, row by row.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|at| self.cell(0, at))
    }

    /// Returns the cumulated weights of the rows for a Zipf choice, and an empty list for any other
    /// choice.
    pub fn cumulated_zipf_weights(&self) -> Vec<f64> {
        let RowChoice::Zipf { exponent_milli } = self.pick else { return Vec::new() };
        let exponent = f64::from(exponent_milli) / 1e3;
        let mut sum = 0.0;
        let mut up_to = |row: u64| {
            sum += ((row + 1) as f64).powf(-exponent);
            sum
        };
        (0..self.row_count()).map(&mut up_to).collect()
    }

    /// Returns the row index of session `number`. `ranks` is the result of
    /// [`ValueTable::cumulated_zipf_weights`].
    #[inline]
    pub fn choose_row(&self, number: u64, rng: &mut Rng, ranks: &[f64]) -> u64 {
        let rows = self.row_count().max(1);
        match self.pick {
            RowChoice::Sequential | RowChoice::Unique => number % rows,
            RowChoice::Random => rng.uniform_below(rows),
            RowChoice::Zipf { .. } => {
                let at = rng.next_f64() * ranks.last().copied().unwrap_or(0.0);
                (ranks.partition_point(|up_to| *up_to <= at) as u64).min(rows - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_with_rows(rows: usize, pick: RowChoice) -> ValueTable {
        let mut data = ValueTable::new("user".into(), vec!["name".into(), "id".into()], pick, false);
        for row in 0..rows {
            data.push([format!("u{row}").as_str(), ""].into_iter()).expect("room");
        }
        data
    }

    #[test]
    fn data_cells_are_found() {
        let mut data = table_with_rows(3, RowChoice::Sequential);
        assert_eq!((data.row_count(), data.cell(2, 0), data.cell(1, 1), data.cell(9, 0)), (3, "u2", "", ""));
        assert_eq!(data.cells().collect::<Vec<_>>(), ["u0", "", "u1", "", "u2", ""]);
        assert!(data.push(["one"].into_iter()).is_none());
    }

    #[test]
    fn rows_are_picked_as_requested() {
        let rng = &mut Rng::new(1);
        let data = table_with_rows(3, RowChoice::Sequential);
        assert_eq!((0..5).map(|n| data.choose_row(n, rng, &[])).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        let data = table_with_rows(100, RowChoice::Zipf { exponent_milli: 1_000 });
        let ranks = data.cumulated_zipf_weights();
        let mut counts = [0u32; 100];
        (0..100_000).for_each(|n| counts[data.choose_row(n, rng, &ranks) as usize] += 1);
        // The weights 1 / n of the 100 rows add up to the harmonic number of 100, which is 5.187.
        let expect = |row: usize| 1e5 / 5.187 / (row + 1) as f64;
        for row in [0, 1, 9, 50] {
            assert!((f64::from(counts[row]) - expect(row)).abs() < 5.0 * expect(row).sqrt(), "{row}: {}", counts[row]);
        }
    }
}
