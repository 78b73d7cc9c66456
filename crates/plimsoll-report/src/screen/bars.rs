//! A histogram of times, drawn with characters ([`TextHistogram`]). The rows up to the p99 cover
//! time ranges of equal length, and the last row has the slowest 1 %.
//!
//! Not here: charts in SVG (`chart`).

use crate::format::{count, duration};
use plimsoll_model::Histogram;

/// The maximum number of rows of a histogram. With fewer than `ROWS_MIN` rows, the shape of the
/// distribution is not visible.
const ROWS_MAX: usize = 10;
const ROWS_MIN: usize = 4;
/// The length of the longest bar in characters.
const BAR_COLUMNS: f64 = 32.0;

/// A histogram of response times. Each row is a range of times, with a bar of characters for the
/// number of requests in the range.
pub(crate) struct TextHistogram {
    title: String,
    times: Histogram,
    rows: usize,
}

impl TextHistogram {
    /// Creates the histogram of `times`; `None` if `times` is empty.
    pub(crate) fn new(title: impl Into<String>, times: Histogram) -> Option<TextHistogram> {
        (times.count() > 0).then(|| TextHistogram { title: title.into(), times, rows: ROWS_MAX })
    }

    /// Limits the histogram to at most `lines` rows. Returns `None` if `lines` is too small to show
    /// the shape of the distribution.
    pub(super) fn limit_rows(self, lines: usize) -> Option<TextHistogram> {
        let rows = self.rows.min(lines);
        (rows >= ROWS_MIN).then_some(TextHistogram { rows, ..self })
    }

    /// Returns for each row of the histogram the row's upper bound in ns, and the number of times
    /// in the row.
    fn histogram_rows(&self) -> Vec<(u64, u64)> {
        let (least, p99) = (self.times.min_ns() as f64, self.times.quantile_ns(0.99) as f64);
        let bound = |row: usize| least + (p99 - least) * row as f64 / (self.rows - 1) as f64;
        let mut bounds: Vec<u64> = (1..self.rows).map(|row| round_to_three_digits(bound(row))).collect();
        bounds.retain(|bound| *bound < self.times.max_ns());
        bounds.push(self.times.max_ns());
        bounds.dedup();
        let mut above = self.times.count();
        let counted = |bound: u64| {
            let before = above;
            above = self.times.count_above(bound);
            (bound, before - above)
        };
        bounds.into_iter().map(counted).collect()
    }

    /// Renders the title and the rows of the histogram.
    pub(super) fn render_histogram(&self) -> String {
        let rows = self.histogram_rows();
        let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1) as f64;
        let cells: Vec<[String; 2]> = rows.iter().map(|row| [duration(row.0 as f64), count(row.1)]).collect();
        let [bound_width, count_width] =
            [0, 1].map(|at: usize| cells.iter().map(|cells| cells[at].len()).max().unwrap_or(0));
        let mut out = format!("  {title} (not cumulative)\n", title = self.title);
        for ([bound, times], (_, number)) in cells.iter().zip(&rows) {
            // A row with at least one request has a bar of at least one character. Without the
            // minimum of one character, the row of the slowest requests would often have no bar.
            let length = (*number as f64 / most * BAR_COLUMNS).round().max(f64::from(u8::from(*number > 0)));
            let row = format!("  <= {bound:>bound_width$}  {times:>count_width$}  {}", "#".repeat(length as usize));
            out += &format!("{}\n", row.trim_end());
        }
        out
    }
}

/// Rounds a time in ns to three significant digits, which is the precision of the printed bounds.
fn round_to_three_digits(ns: f64) -> u64 {
    let unit = 10f64.powf((ns.max(1.0).log10().floor() - 2.0).max(0.0));
    ((ns / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_bucket_has_a_row() {
        let mut times = Histogram::new();
        (1..=200).for_each(|at| times.record(at * 1_000));
        times.record(1_000_000);
        let bars = TextHistogram::new("response time", times).expect("times");
        let counted = bars.histogram_rows();
        assert_eq!(counted.iter().map(|row| row.1).sum::<u64>(), 201);
        assert!(counted.len() <= ROWS_MAX && counted.iter().is_sorted_by_key(|row| row.0), "{counted:?}");
        let shown = bars.render_histogram();
        assert!(shown.starts_with("  response time (not cumulative)\n  <= "), "{shown}");
        assert_eq!(shown.lines().last(), Some("  <= 1.00 ms   2  ###"), "{shown}");
        assert!(bars.limit_rows(3).is_none());
    }

    #[test]
    fn equal_times_share_one_row() {
        let mut times = Histogram::new();
        times.record_n(5_000, 3);
        assert_eq!(TextHistogram::new("t", times).map(|bars| bars.histogram_rows()), Some(vec![(5_000, 3)]));
        assert!(TextHistogram::new("t", Histogram::new()).is_none());
    }
}
