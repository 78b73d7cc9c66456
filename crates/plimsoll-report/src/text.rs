//! Renders reports as text for a terminal, with colours only on request.

use crate::block::{Report, ReportBlock, Tone};
use crate::table_layout::format_table;
use anstyle::{AnsiColor, Style};

pub use crate::wrap::wrap_text;

/// Renders the report as text without wrapping its lines. With `colour`, the text has ANSI styles.
pub fn render(report: &Report, colour: bool) -> String {
    render_wrapped(report, colour, None)
}

/// Renders the report in lines of at most `columns` characters. Text is wrapped between words and
/// is never cut.
pub fn render_wrapped(report: &Report, colour: bool, columns: Option<usize>) -> String {
    let mut out = String::new();
    let mut after_text = true;
    for block in &report.blocks {
        match block {
            // The text omits charts and flame graphs, which only HTML pages show.
            ReportBlock::Chart(_) | ReportBlock::RawHtml(_) => {}
            ReportBlock::Heading(text) => {
                out.push_str(&format!("\n{}\n", wrap_text(text, columns, 0)));
                after_text = true;
            }
            ReportBlock::Text(tone, text) => {
                if !after_text {
                    out.push('\n');
                }
                out.push_str(&style_text(text, *tone, colour, columns));
                out.push('\n');
                after_text = true;
            }
            ReportBlock::Facts(facts) => {
                out.push('\n');
                let width = facts.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
                for (label, value) in facts {
                    let fact = format!("  {label:<width$}  {value}");
                    out.push_str(&wrap_text(&fact, columns, width + 4));
                    out.push('\n');
                }
                after_text = false;
            }
            ReportBlock::Table(headings, rows) => {
                out.push('\n');
                out.push_str(&format_table(headings, rows, columns));
                after_text = false;
            }
        }
    }
    out
}

pub(crate) fn style_text(text: &str, tone: Tone, colour: bool, columns: Option<usize>) -> String {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Answer => Style::new().bold(),
        Tone::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
    };
    let text = if tone == Tone::Warning { format!("warning: {text}") } else { text.to_owned() };
    let text = wrap_text(&text, columns, 0);
    if colour { format!("{style}{text}{style:#}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lines_fit_the_width() {
        let mut report = Report::default();
        report
            .add_sentence(Tone::Warning, "a sentence of some more words than fit")
            .add_facts(vec![("a", "1 2 3 4 5 6 7 8 9 10 11 12".into())])
            .add_table(&["a", "b"], vec![vec!["some words that are many".into(), "1".into()]]);
        let shown = render_wrapped(&report, false, Some(26));
        assert!(shown.lines().all(|line| line.chars().count() <= 26), "{shown}");
        assert_eq!(shown.split_whitespace().count(), 30);
    }

    #[test]
    fn report_blocks_become_lines() {
        let mut report = Report::default();
        report.add_sentence(Tone::Warning, "look out").add_sentence(Tone::Answer, "yes");
        report.add_facts(vec![("a", "1".into()), ("long", "2".into())]);
        report.add_table(&["", "p50", "p99"], vec![vec!["response".into(), "1 ms".into(), "20 ms".into()]]);
        let expect =
            "warning: look out\nyes\n\n  a     1\n  long  2\n\n             p50    p99\n  response  1 ms  20 ms\n";
        assert_eq!(render(&report, false), expect);
        assert!(render(&report, true).contains("\u{1b}["));
    }
}
