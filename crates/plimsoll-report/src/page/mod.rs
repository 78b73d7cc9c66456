//! Renders a report as one complete HTML page. The page loads nothing from elsewhere, so it also
//! works as a local file.
//!
//! Every text and chart is readable without the page's script. The script shows figures under the
//! mouse pointer and zooms charts. Colours are CSS variables, so that charts follow the reader's
//! light or dark theme.
//!
//! Not here: the content of a report, and the drawing of charts.

use crate::block::{ChartBlock, Report, ReportBlock, Tone};
use crate::chart::{css_variables, escape_xml};
use std::fmt::Write;

const PAGE_STYLE: &str = include_str!("style.css");
const PAGE_SCRIPT: &str = include_str!("script.js");

/// The fonts of charts by weight, which are embedded in each page. The positions in charts are
/// computed for these fonts; text in another font could overlap its neighbours.
const EMBEDDED_FONTS: [(u32, &[u8]); 2] =
    [(400, include_bytes!("../../fonts/Inter-Regular.otf")), (600, include_bytes!("../../fonts/Inter-SemiBold.otf"))];

/// Returns the fonts as CSS font faces, about 75 kB.
fn font_faces() -> String {
    let face = |(weight, bytes): &(u32, &[u8])| {
        format!(
            "@font-face {{ font-family: Inter; font-weight: {weight}; src: url(data:font/otf;base64,{}); }}\n",
            encode_base64(bytes)
        )
    };
    EMBEDDED_FONTS.iter().map(face).collect()
}

/// Encodes bytes as Base64 with padding (RFC 4648).
fn encode_base64(bytes: &[u8]) -> String {
    const BASE64_DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| three.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = BASE64_DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// Returns the JavaScript of a page, which shows figures under the mouse pointer and zooms charts.
pub fn page_script() -> &'static str {
    PAGE_SCRIPT
}

/// Returns the CSS of a page, which includes its fonts and colours.
pub fn page_style() -> String {
    format!("{}{}{PAGE_STYLE}", font_faces(), css_variables())
}

/// Renders a report as a complete page. `title` is shown in the browser's title bar.
pub fn render(report: &Report, title: &str) -> String {
    let body = render_body(report);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"plimsoll\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script>\n{PAGE_SCRIPT}</script>\n</body>\n</html>\n",
        escape_xml(title),
        page_style(),
    )
}

/// Renders a report as HTML elements, for a page that includes [`page_style`] and [`page_script`]
/// itself.
pub fn render_body(report: &Report) -> String {
    let mut body = String::new();
    let mut answered = false;
    let is_answer = |block: &ReportBlock| matches!(block, ReportBlock::Text(Tone::Answer, _));
    let first_answer = report.blocks.iter().position(is_answer).unwrap_or(0);
    // The page begins with the answer. Warnings that precede the answer in the report are shown in
    // one box below the answer.
    let (before, _) = report.blocks.split_at(first_answer);
    let warnings: Vec<&str> = before
        .iter()
        .filter_map(|block| match block {
            ReportBlock::Text(Tone::Warning, text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    for (at, block) in report.blocks.iter().enumerate() {
        match block {
            ReportBlock::Heading(text) => {
                let _ = writeln!(body, "<h2>{}</h2>", escape_xml(text));
            }
            ReportBlock::Text(Tone::Answer, text) if !std::mem::replace(&mut answered, true) => {
                let _ = writeln!(body, "<h1>{}</h1>", escape_xml(&capitalise_first_letter(text)));
                warning_box(&mut body, &warnings);
            }
            ReportBlock::Text(Tone::Warning, _) if at < first_answer => {}
            ReportBlock::Text(tone, text) => {
                let class = match tone {
                    Tone::Plain => "",
                    Tone::Answer => r#" class="answer""#,
                    Tone::Warning => r#" class="warning" role="note""#,
                };
                let label = if *tone == Tone::Warning { "<strong>Warning:</strong> " } else { "" };
                let _ = writeln!(body, "<p{class}>{label}{}</p>", escape_xml(text));
            }
            ReportBlock::Facts(facts) => {
                body.push_str("<dl>\n");
                for (label, value) in facts {
                    match label.is_empty() {
                        // A value with an empty label is a further value of the previous fact.
                        true => drop(writeln!(body, "<dd>{}</dd>", escape_xml(value))),
                        false => drop(writeln!(body, "<dt>{}</dt><dd>{}</dd>", escape_xml(label), escape_xml(value))),
                    }
                }
                body.push_str("</dl>\n");
            }
            // The chart before a table may show the same figures, and has them in its own table.
            ReportBlock::Table(headings, rows) if at > 0 && has_figures(&report.blocks[at - 1], headings, rows) => {}
            ReportBlock::Table(headings, rows) => write_table(&mut body, headings, rows),
            ReportBlock::Chart(chart) => write_chart(&mut body, chart),
            ReportBlock::RawHtml(html) => {
                let _ = writeln!(body, "<div class=\"fragment\">{html}</div>");
            }
        }
    }
    body
}

/// Returns whether a block is a chart with the figures of a table.
fn has_figures(block: &ReportBlock, headings: &[String], rows: &[Vec<String>]) -> bool {
    matches!(block, ReportBlock::Chart(chart) if chart.headings == headings && chart.rows == rows)
}

/// Renders all warnings in one box. If there are several warnings, only the first is visible until
/// the reader opens the box.
fn warning_box(out: &mut String, warnings: &[&str]) {
    let line = |text: &str| format!("<strong>Warning:</strong> {}", escape_xml(text));
    let _ = match warnings {
        [] => Ok(()),
        [one] => writeln!(out, "<p class=\"warning\" role=\"note\">{}</p>", line(one)),
        [first, rest @ ..] => {
            let rest: String = rest.iter().map(|text| format!("<p>{}</p>\n", line(text))).collect();
            let more = warnings.len() - 1;
            let first = line(first);
            writeln!(
                out,
                "<details class=\"warning\" role=\"note\"><summary>{first} ({more} more)</summary>\n{rest}</details>"
            )
        }
    };
}

fn capitalise_first_letter(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// Renders a chart that can be scrolled on narrow screens. A table with the chart's figures follows
/// the chart and is hidden until the reader opens the table.
fn write_chart(out: &mut String, chart: &ChartBlock) {
    let wide = if chart.narrow_svg.is_some() { "wide" } else { "only" };
    let _ = writeln!(out, "<figure>\n<div class=\"{wide}\"><div class=\"plot\">\n{}</div></div>", chart.svg);
    if let Some(narrow) = &chart.narrow_svg {
        let _ = writeln!(out, "<div class=\"narrow\"><div class=\"plot\">\n{narrow}</div></div>");
    }
    if !chart.rows.is_empty() {
        out.push_str("<details><summary>The figures behind this chart</summary>\n");
        write_table(out, &chart.headings, &chart.rows);
        out.push_str("</details>\n");
    }
    out.push_str("</figure>\n");
}

/// The maximum length in bytes of a table cell that stays on one line. If a cell is longer than
/// this maximum, the text in its whole column is wrapped.
const UNWRAPPED_CELL_BYTES_MAX: usize = 34;

fn write_table(out: &mut String, headings: &[String], rows: &[Vec<String>]) {
    let number = |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-+".contains(c));
    let right: Vec<bool> =
        (0..headings.len()).map(|column| rows.iter().filter_map(|row| row.get(column)).all(number)).collect();
    let is_long =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).any(|cell| cell.len() > UNWRAPPED_CELL_BYTES_MAX);
    let long: Vec<bool> = (0..headings.len()).map(is_long).collect();
    let class = |column: usize| match (right.get(column), long.get(column)) {
        (Some(true), _) => r#" class="n""#,
        (_, Some(true)) => r#" class="long""#,
        _ => "",
    };
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>\n<thead><tr>");
    for (column, heading) in headings.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape_xml(heading));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = match column {
                0 => write!(out, "<th scope=\"row\"{}>{}</th>", class(column), escape_xml(cell)),
                _ => write!(out, "<td{}>{}</td>", class(column), escape_xml(cell)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_standard() {
        for (text, expect) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("\u{ff}?", "w78/")]
        {
            assert_eq!(encode_base64(text.as_bytes()), expect);
        }
    }

    #[test]
    fn a_page_shows_the_figures_of_a_chart_only_once() {
        let check = |rate: &str, tables: usize| {
            let rows = |rate: &str| vec![vec!["low".to_owned(), rate.to_owned()]];
            let mut report = Report::default();
            report.add_chart("<svg></svg>".into(), &["load", "rate"], rows("2"));
            report.add_table(&["load", "rate"], rows(rate));
            assert_eq!(render_body(&report).matches("<table>").count(), tables, "{rate}");
        };
        check("2", 1);
        check("3", 2);
    }

    #[test]
    fn pages_contain_the_report_as_escaped_text() {
        let mut report = Report::default();
        report.add_sentence(Tone::Warning, "look <out>").add_sentence(Tone::Answer, "it carries 5 & more");
        report.add_facts(vec![("target", "GET http://h/?a=<script>alert(1)</script>".into())]);
        report.add_heading("Evidence").add_table(&["", "p50"], vec![vec!["a \"b\"".into(), "1 ms".into()]]);
        report.add_chart("<svg></svg>".into(), &["load", "rate"], vec![vec!["1".into(), "2".into()]]);
        report.add_raw_html("<b>flames</b>".into());
        let page = render(&report, "a </title> title");
        for part in [
            "<h1>It carries 5 &amp; more</h1>",
            "<strong>Warning:</strong> look &lt;out&gt;",
            "&lt;script&gt;alert(1)",
            "a &lt;/title&gt; title",
            "<h2>Evidence</h2>",
            "<th scope=\"row\">a &quot;b&quot;</th><td class=\"n\">1 ms</td>",
            "<details>",
            "<b>flames</b>",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        // The box with the warning is directly below the answer.
        assert!(
            page.contains("more</h1>\n<p class=\"warning\" role=\"note\"><strong>Warning:</strong> look"),
            "{page}"
        );
        let mut report = Report::default();
        report.add_sentence(Tone::Warning, "one").add_sentence(Tone::Warning, "two").add_sentence(Tone::Answer, "yes");
        let page = render(&report, "");
        assert!(page.contains("Yes</h1>\n<details class=\"warning\"") && page.contains("one (1 more)"), "{page}");
        for word in ["http://", "https://", "src=", "@import", "url("] {
            let own = page
                .replace("GET http://h/", "")
                .replace("http://www.w3.org/2000/svg", "")
                .replace("url(#", "")
                .replace("url(data:", "");
            assert!(!own.contains(word), "the page reaches out: {word}");
        }
    }
}
