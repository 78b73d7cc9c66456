//! Shortens a report so that it fits on a screen. Tables lose their last rows, and a line of text
//! names the flag that shows all rows.
//!
//! Not here: building reports, and the screens of findings (`Screen`).

use super::COLUMNS_MAX;
use crate::block::{Report, ReportBlock};
use crate::text::{render_wrapped, wrap_text};

/// The maximum number of rows of a short table. A report with longer tables loses rows of the
/// longest table. A report with several tables that are all short loses whole tables.
const SHORT_TABLE_ROWS_MAX: usize = 10;
/// The minimum number of rows of a shortened table.
const ROWS_MIN: usize = 1;

/// Renders a report in at most `lines_max` lines by shortening and omitting tables. The result may
/// be longer than `lines_max`, because sentences and facts are never shortened. `more` names the
/// flag that shows all rows of the tables.
pub fn render_shortened_report(
    report: &Report,
    colour: bool,
    columns: Option<usize>,
    lines_max: usize,
    more: &str,
) -> String {
    let columns = columns.unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX);
    let is_text = |block: &&ReportBlock| !matches!(block, ReportBlock::Chart(_) | ReportBlock::RawHtml(_));
    let mut short = Report { blocks: report.blocks.iter().filter(is_text).cloned().collect() };
    let mut left_out = 0;
    for block in &mut short.blocks {
        if let ReportBlock::Table(_, rows) = block {
            left_out += rows.len().saturating_sub(lines_max);
            rows.truncate(lines_max);
        }
    }
    let text = |short: &Report, colour: bool, columns: usize, left_out: usize| {
        let mut text = render_wrapped(short, colour, Some(columns));
        if left_out > 0 {
            let rows = if left_out == 1 { "1 more row".to_owned() } else { format!("{left_out} more rows") };
            text += &format!("\n{}\n", wrap_text(&format!("{rows}: {more}"), Some(columns), 0));
        }
        text
    };
    while text(&short, false, COLUMNS_MAX, left_out).lines().count() > lines_max {
        match shrink_tables(&mut short) {
            0 => break,
            rows => left_out += rows,
        }
    }
    text(&short, colour, columns, left_out)
}

/// Removes one row from the longest table. If the report has several tables and all are short,
/// removes the whole last table. Returns the number of removed rows; 0 if nothing can be removed.
fn shrink_tables(report: &mut Report) -> usize {
    let rows = |block: &ReportBlock| match block {
        ReportBlock::Table(_, rows) => Some(rows.len()),
        _ => None,
    };
    let tables: Vec<(usize, usize)> =
        report.blocks.iter().enumerate().filter_map(|(at, block)| Some((at, rows(block)?))).collect();
    let Some(&(longest, most)) = tables.iter().max_by_key(|(at, rows)| (*rows, *at)) else { return 0 };
    if let [_, .., (last, rows)] = tables.as_slice()
        && most <= SHORT_TABLE_ROWS_MAX
    {
        report.blocks.remove(*last);
        if let Some(ReportBlock::Heading(_)) = last.checked_sub(1).and_then(|at| report.blocks.get(at)) {
            report.blocks.remove(last - 1);
        }
        return *rows;
    }
    match report.blocks.get_mut(longest) {
        Some(ReportBlock::Table(_, rows)) if rows.len() > ROWS_MIN => {
            rows.pop();
            1
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Tone;
    use crate::screen::LINES_MAX;

    fn report_with(tables: &[usize]) -> Report {
        let mut report = Report::default();
        report.add_sentence(Tone::Answer, "the answer").add_facts(vec![("a", "1".into()), ("b", "2".into())]);
        for (number, rows) in tables.iter().enumerate() {
            report.add_heading(format!("Table {number}"));
            report
                .add_table(&["name", "value"], (0..*rows).map(|row| vec![format!("row {row}"), "1".into()]).collect());
        }
        report
    }

    #[test]
    fn a_short_report_is_shown_whole() {
        let report = report_with(&[4]);
        assert_eq!(
            render_shortened_report(&report, false, None, LINES_MAX, "--json"),
            crate::text::render(&report, false)
        );
    }

    #[test]
    fn a_long_report_counts_its_omitted_rows() {
        for (tables, rows) in [(&[40][..], 40), (&[20, 10], 30), (&[10, 10, 10], 30), (&[10_000, 3], 10_003)] {
            let shown = render_shortened_report(&report_with(tables), false, None, LINES_MAX, "--top N");
            let lines = shown.lines().count();
            assert!((15..=LINES_MAX).contains(&lines), "{tables:?}: {lines}\n{shown}");
            let there = shown.lines().filter(|line| line.trim_start().starts_with("row ")).count();
            assert!(there >= ROWS_MIN, "{shown}");
            assert!(shown.ends_with(&format!("\n{} more rows: --top N\n", rows - there)), "{tables:?}\n{shown}");
            let headings = shown.lines().filter(|line| line.starts_with("Table")).count();
            assert_eq!(headings, shown.lines().filter(|line| line.trim_start().starts_with("name")).count(), "{shown}");
        }
    }

    #[test]
    fn long_sentences_are_wrapped() {
        let mut report = Report::default();
        report.add_sentence(Tone::Warning, "some words ".repeat(30));
        let shown = render_shortened_report(&report, false, None, LINES_MAX, "--json");
        assert!(shown.lines().all(|line| line.len() <= COLUMNS_MAX), "{shown}");
    }
}
