//! Makes control characters visible in text from servers, files and users. Output formats with
//! escapes (such as JSON) use their own escapes for control characters. Formats without escapes
//! show `\x1b`, `\n` or `\u{202e}`.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns whether a character is a control character: an invisible character that changes how the
/// text around it is shown.
pub fn is_control_character(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns `text` on one line, with control characters made visible.
pub fn escape_to_one_line(text: &str) -> Cow<'_, str> {
    escape_controls(text, |_| false)
}

/// Returns `text` with control characters made visible, except the ends of lines.
pub fn escape_keeping_lines(text: &str) -> Cow<'_, str> {
    // CR LF also ends a line, because lines of CSV end in CR LF.
    let ends = |rest: &str| rest.starts_with('\n') || rest.starts_with("\r\n");
    escape_controls(text, ends)
}

fn escape_controls(text: &str, stays: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !text.contains(is_control_character) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            c if !is_control_character(c) || stays(&text[at..]) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    Cow::Owned(out)
}
