//! Reports on a terminal: plain columns, colours only where asked for.

use crate::block::{Block, Report, Tone};
use anstyle::{AnsiColor, Style};

/// The report as text. `colour`: with ANSI styles.
pub fn render(report: &Report, colour: bool) -> String {
    render_in(report, colour, None)
}

/// The same in at most `columns`: sentences and facts are broken between words; tables stay whole.
pub fn render_in(report: &Report, colour: bool, columns: Option<usize>) -> String {
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
                out.push_str(&styled(text, *tone, colour, columns));
                out.push('\n');
                after_text = true;
            }
            Block::Facts(facts) => {
                out.push('\n');
                let width = facts.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
                for (label, value) in facts {
                    let fact = format!("  {label:<width$}  {value}");
                    out.push_str(&broken(&fact, columns, width + 4));
                    out.push('\n');
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

/// `text` in lines of at most `columns`, broken between words; from the second line on after `indent` spaces. Spaces at
/// the beginning stay.
pub fn broken(text: &str, columns: Option<usize>, indent: usize) -> String {
    let length = text.chars().count();
    let Some(columns) = columns.filter(|columns| *columns < length && indent + 20 < *columns) else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut at = 0;
    for word in text.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if at + width > columns && at > indent {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            at = indent;
        }
        out.push_str(word);
        at += word.chars().count();
    }
    out
}

fn styled(text: &str, tone: Tone, colour: bool, columns: Option<usize>) -> String {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Answer => Style::new().bold(),
        Tone::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
    };
    let text = if tone == Tone::Warning { format!("warning: {text}") } else { text.to_owned() };
    let text = broken(&text, columns, 0);
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
    fn sentences_are_broken_between_words() {
        for (text, columns, indent, expect) in [
            ("short", Some(80), 2, "short"),
            ("a sentence of some more words than fit", None, 0, "a sentence of some more words than fit"),
            ("a sentence of some more words than fit", Some(24), 0, "a sentence of some more\nwords than fit"),
            (
                "  label  and what is said about it here",
                Some(31),
                9,
                "  label  and what is said about\n         it here",
            ),
            (
                "averyverylongwordthatfitsnowhereatall and more",
                Some(22),
                0,
                "averyverylongwordthatfitsnowhereatall\nand more",
            ),
        ] {
            assert_eq!(broken(text, columns, indent), expect);
        }
        let mut report = Report::default();
        report
            .text(Tone::Answer, "a sentence of some more words than fit")
            .facts(vec![("a", "1 2 3 4 5 6 7 8 9 10 11 12".into())]);
        let shown = render_in(&report, false, Some(26));
        assert!(shown.lines().all(|line| line.chars().count() <= 26), "{shown}");
        assert_eq!(shown.split_whitespace().count(), 21);
    }

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
