//! Reports on a terminal: plain columns, colours only where asked for.

use crate::block::{Block, Report, Tone};
use anstyle::{AnsiColor, Style};

/// The report as text. `colour`: with ANSI styles.
pub fn render(report: &Report, colour: bool) -> String {
    let mut out = String::new();
    let mut after_text = true;
    for block in &report.blocks {
        match block {
            // Pictures are for pages.
            Block::Chart(_) | Block::Fragment(_) => {}
            Block::Heading(text) => {
                out.push_str(&format!("\n{text}\n"));
                after_text = true;
            }
            Block::Text(tone, text) => {
                if !after_text {
                    out.push('\n');
                }
                out.push_str(&styled(text, *tone, colour));
                out.push('\n');
                after_text = true;
            }
            Block::Facts(facts) => {
                out.push('\n');
                let width = facts.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
                for (label, value) in facts {
                    out.push_str(&format!("  {label:<width$}  {value}\n"));
                }
                after_text = false;
            }
            Block::Table(headings, rows) => {
                out.push('\n');
                table(&mut out, headings, rows);
                after_text = false;
            }
        }
    }
    out
}

fn styled(text: &str, tone: Tone, colour: bool) -> String {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Answer => Style::new().bold(),
        Tone::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
    };
    let text = if tone == Tone::Warning { format!("warning: {text}") } else { text.to_owned() };
    if colour { format!("{style}{text}{style:#}") } else { text }
}

fn table(out: &mut String, headings: &[String], rows: &[Vec<String>]) {
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(headings.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    // Columns of numbers are flush right, so that digits stand below each other; text is flush left.
    let number = |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let right: Vec<bool> =
        (0..headings.len()).map(|column| rows.iter().filter_map(|row| row.get(column)).all(number)).collect();
    let widths: Vec<usize> = (0..headings.len()).map(width_of).collect();
    for row in std::iter::once(headings).chain(rows.iter().map(Vec::as_slice)) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if right[column] {
                line.push_str(&format!("  {cell:>width$}"));
            } else {
                line.push_str(&format!("  {cell:<width$}"));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_lines() {
        let mut report = Report::default();
        report.text(Tone::Warning, "look out").text(Tone::Answer, "yes");
        report.facts(vec![("a", "1".into()), ("long", "2".into())]);
        report.table(&["", "p50", "p99"], vec![vec!["response".into(), "1 ms".into(), "20 ms".into()]]);
        let expect =
            "warning: look out\nyes\n\n  a     1\n  long  2\n\n             p50    p99\n  response  1 ms  20 ms\n";
        assert_eq!(render(&report, false), expect);
        assert!(render(&report, true).contains("\u{1b}["));
    }
}
