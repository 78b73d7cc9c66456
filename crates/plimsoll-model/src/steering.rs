//! Characters that do something to their surroundings: whoever writes text of others down escapes
//! them in the way of the format. Where there is no such way, they become what can be seen: `\x1b`,
//! `\n`, `\u{202e}`.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does something to its surroundings instead of being seen.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` on one line, every character to be seen.
pub fn visible(text: &str) -> Cow<'_, str> {
    made_visible(text, |_| false)
}

/// `text` of several lines, every other character to be seen.
pub fn lines(text: &str) -> Cow<'_, str> {
    // Lines of CSV end in both.
    let ends = |rest: &str| rest.starts_with('\n') || rest.starts_with("\r\n");
    made_visible(text, ends)
}

fn made_visible(text: &str, stays: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            c if !steers(c) || stays(&text[at..]) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    Cow::Owned(out)
}
