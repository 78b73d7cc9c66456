//! Makes control characters visible in text that comes from outside plimsoll. Control characters
//! can occur in names of processes, threads and metrics, in URLs, in responses of servers and in
//! run files. A control character could change the terminal, reverse the direction of text, or
//! begin a new line. This file converts each control character into visible text: `\x1b`, `\n`,
//! `\u{202e}`.
//!
//! Blocks of reports ([`crate::block`]) contain only visible text, so every output format of a
//! report also contains only visible text. [`escape_keeping_lines`] converts other text for a
//! terminal or a file, and [`pretty_json`] converts JSON.

pub use plimsoll_model::control_characters::{escape_keeping_lines, escape_to_one_line, is_control_character};
use serde_json::Value;
use std::fmt::Write;

/// Formats a JSON document on several lines. Control characters are written as JSON escapes, so
/// that a parser gets the original text.
pub fn pretty_json(document: &Value) -> String {
    escape_control_characters(format!("{document:#}"))
}

/// Formats a JSON document on one line, which ends with a newline. Control characters are written
/// as JSON escapes.
pub fn json_line(document: &Value) -> String {
    escape_control_characters(format!("{document}\n"))
}

fn escape_control_characters(text: String) -> String {
    if !text.contains(|c| is_control_character(c) && c != '\n') {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        // Newlines are kept. A newline can only be between JSON values here, because newlines
        // inside strings are already escaped.
        if !is_control_character(c) || c == '\n' {
            out.push(c);
            continue;
        }
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::render_wrapped;
    use crate::{Report, Tone, markdown};
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_made_visible() {
        for (text, one, several) in [
            ("plain, \u{e9}\u{4e2d}\u{1f680}", "plain, \u{e9}\u{4e2d}\u{1f680}", "plain, \u{e9}\u{4e2d}\u{1f680}"),
            ("a\u{1b}[31mb", "a\\x1b[31mb", "a\\x1b[31mb"),
            ("a\nb\r\nc\rd\te\u{7f}", "a\\nb\\r\\nc\\rd\\te\\x7f", "a\nb\r\nc\\rd\\te\\x7f"),
            (
                "\u{9b}2J \u{85} \u{202e}x\u{2069}\u{200f}",
                "\\x9b2J \\x85 \\u{202e}x\\u{2069}\\u{200f}",
                "\\x9b2J \\x85 \\u{202e}x\\u{2069}\\u{200f}",
            ),
            ("\u{e0041}\u{feff}", "\\u{e0041}\\u{feff}", "\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!((&*escape_to_one_line(text), &*escape_keeping_lines(text)), (one, several), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn json_documents_keep_their_values(text in any::<String>(), steering in "[\\x7f-\\x9f\\u{2028}-\\u{202e}\\u{e0041}]{0,4}") {
            let document = serde_json::json!({ text.clone() + &steering: [steering + &text, 5] });
            let written = pretty_json(&document);
            prop_assert!(!written.contains(|c| is_control_character(c) && c != '\n'));
            prop_assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), document);
        }

        #[test]
        fn no_report_contains_terminal_control_characters(text in any::<String>(), steering in "[\\x00-\\x1f\\x7f-\\x9f\\u{202a}-\\u{202e}]{1,5}") {
            let text = steering + &text;
            let mut report = Report::default();
            report.add_sentence(Tone::Answer, text.clone()).add_sentence(Tone::Warning, text.clone()).add_heading(text.clone());
            report.add_facts(vec![("fact", text.clone())]).add_table(&["a", "b"], vec![vec![text.clone(), text.clone()]]);
            for shown in [render_wrapped(&report, false, None), render_wrapped(&report, false, Some(60)), markdown::render(&report)] {
                prop_assert!(!shown.contains(|c| is_control_character(c) && c != '\n'), "{:?}", shown);
            }
            // Without the styles that plimsoll itself adds, the text contains no control
            // characters.
            let coloured = render_wrapped(&report, true, None);
            let ours = coloured.replace("\x1b[1m", "").replace("\x1b[33m", "").replace("\x1b[0m", "");
            prop_assert!(!ours.contains(|c| is_control_character(c) && c != '\n'), "{:?}", ours);
        }
    }
}
