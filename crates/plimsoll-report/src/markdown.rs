//! Renders a report as Markdown, for a pull request or a chat: warnings, the answer, facts and
//! tables. Charts are omitted, because only HTML pages show them.

use crate::block::{Report, ReportBlock, Tone};

/// Renders a report as Markdown, with tables in the syntax of GitHub.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    for block in &report.blocks {
        match block {
            ReportBlock::Chart(_) | ReportBlock::RawHtml(_) => continue,
            ReportBlock::Heading(text) => out.push_str(&format!("### {}\n", escape_markdown(text))),
            ReportBlock::Text(Tone::Warning, text) => {
                out.push_str(&format!("> **Warning:** {}\n", escape_markdown(text)))
            }
            ReportBlock::Text(Tone::Answer, text) => out.push_str(&format!("**{}**\n", escape_markdown(text))),
            ReportBlock::Text(Tone::Plain, text) => out.push_str(&format!("{}\n", escape_markdown(text))),
            ReportBlock::Facts(facts) => {
                for (label, value) in facts {
                    match label.is_empty() {
                        // A fact without a label continues the previous fact.
                        true => out.push_str(&format!("  - {}\n", escape_markdown(value))),
                        false => out.push_str(&format!("- {}: {}\n", escape_markdown(label), escape_markdown(value))),
                    }
                }
            }
            ReportBlock::Table(headings, rows) => {
                let line = |cells: &[String]| {
                    let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
                    format!("| {} |\n", cells.join(" | "))
                };
                let named =
                    |heading: &String| if heading.is_empty() { EMPTY_HEADING_TEXT.to_owned() } else { heading.clone() };
                out.push_str(&line(&headings.iter().map(named).collect::<Vec<_>>()));
                out.push_str(&format!("|{}\n", " --- |".repeat(headings.len())));
                rows.iter().for_each(|row| out.push_str(&line(row)));
            }
        }
        out.push('\n');
    }
    out.trim_end().to_owned() + "\n"
}

/// The replacement for an empty column heading, because some Markdown parsers reject a table with
/// an empty heading.
const EMPTY_HEADING_TEXT: &str = "of";

/// Escapes all characters that have a meaning in Markdown.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_blocks_become_markdown() {
        let mut report = Report::default();
        report.add_sentence(Tone::Warning, "look | out").add_sentence(Tone::Answer, "p99 <= 5 ms");
        report.add_facts(vec![("target", "GET http://h/a_b".into()), ("", "more of it".into())]);
        report.add_heading("Trials").add_table(&["", "p50"], vec![vec!["a".into(), "1 ms".into()]]);
        report.add_chart("<svg></svg>".into(), &[], Vec::new());
        let expect = "> **Warning:** look \\| out\n\n**p99 &lt;= 5 ms**\n\n- target: GET http://h/a\\_b\n  - more of it\n\n### Trials\n\n\
                      | of | p50 |\n| --- | --- |\n| a | 1 ms |\n";
        assert_eq!(render(&report), expect);
    }
}
