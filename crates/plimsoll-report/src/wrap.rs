//! Wraps text into lines of a given width. A line is broken only between words, never between a
//! number and its unit or inside a number (`1 272`, `8.0 %`). A word wider than the line stays
//! whole, and the terminal wraps it.
//!
//! Not here: colours, tables.

/// The units that stay on the same line as the number before them.
const UNBREAKABLE_UNITS: [&str; 12] = ["%", "ns", "us", "ms", "s", "m", "min", "h", "B", "kB", "MB", "GB"];

/// Returns the width of `text` in terminal columns.
pub fn display_width(text: &str) -> usize {
    text.chars().count()
}

/// Returns the width in columns of the widest part of `text` that must not be broken.
pub fn widest_unbreakable_width(text: &str) -> usize {
    split_at_breaks(text).iter().map(|piece| display_width(piece.1)).max().unwrap_or(0)
}

/// Iterates over the parts of `text` that must not be broken, without the spaces between them.
pub fn unbreakable_parts(text: &str) -> impl Iterator<Item = &str> {
    split_at_breaks(text).into_iter().map(|piece| piece.1)
}

/// Wraps `text` into lines of at most `columns` characters. Continuation lines begin with `indent`
/// spaces. Leading spaces and existing line breaks are kept.
pub fn wrap_text(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let indent = indent.min(columns / 2);
    text.split('\n').map(|line| wrap_line(line, columns, indent)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize, indent: usize) -> String {
    if display_width(line) <= columns {
        return line.to_owned();
    }
    let mut out = String::new();
    let (mut at, mut begun) = (0, false);
    for (spaces, atom) in split_at_breaks(line) {
        let wide = display_width(atom);
        // If a word does not fit after the indentation, its line is indented less, so that the line
        // does not become too long.
        let from = if begun && at + spaces + wide > columns {
            out.push('\n');
            at = 0;
            indent.min(columns.saturating_sub(wide))
        } else if begun {
            spaces
        } else {
            spaces.min(columns.saturating_sub(wide))
        };
        out.push_str(&" ".repeat(from));
        out.push_str(atom);
        at += from + wide;
        begun = true;
    }
    out
}

/// Splits a line at the spaces where it may be broken. Returns for each piece the number of its
/// leading spaces, and its text.
fn split_at_breaks(line: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let word = rest.trim_start_matches(' ');
        if word.is_empty() {
            return pieces;
        }
        let mut end = word.find(' ').unwrap_or(word.len());
        while let Some(next) = word[end..].strip_prefix(' ') {
            let after = &next[..next.find(' ').unwrap_or(next.len())];
            if after.is_empty() || !must_stay_together(&word[..end], after) {
                break;
            }
            end += 1 + after.len();
        }
        pieces.push((rest.len() - word.len(), &word[..end]));
        rest = &word[end..];
    }
}

/// Returns whether the word `after` must stay on the same line as `before`. A number stays on the
/// same line as its unit and its next three digits, and minutes stay with their seconds.
fn must_stay_together(before: &str, after: &str) -> bool {
    let Some(last) = before.chars().last() else { return false };
    let digits = after.chars().take_while(char::is_ascii_digit).count();
    let in_minutes = before.strip_suffix(" m").is_some_and(|minutes| minutes.ends_with(|c: char| c.is_ascii_digit()));
    if !last.is_ascii_digit() {
        return in_minutes && digits == 2;
    }
    let bare = after.trim_end_matches([',', ';', '.', ':', ')', '?', '!']);
    let unit = bare.strip_suffix("/s").unwrap_or(bare);
    UNBREAKABLE_UNITS.contains(&unit)
        || (digits == 3 && !after[3..].starts_with(|c: char| c == '.' || c == ':' || c.is_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_wrap_between_words() {
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
            // If a word does not fit after the indentation, its line is indented less.
            ("target  GET http://localhost:8080/items", Some(30), 8, "target  GET\n   http://localhost:8080/items"),
            // A line break never separates a number from its other digits or from its unit.
            ("it was 1 272 of 8.0 %, in 2 m 05 s", Some(10), 0, "it was\n1 272 of\n8.0 %, in\n2 m 05 s"),
            ("in all 1.26 MB/s came", Some(12), 2, "in all\n  1.26 MB/s\n  came"),
            ("sent 12 of 345 678 times", Some(11), 0, "sent 12 of\n345 678\ntimes"),
            ("one line\nand another one", Some(12), 2, "one line\nand another\n  one"),
        ] {
            assert_eq!(wrap_text(text, columns, indent), expect);
        }
    }

    proptest! {
        #[test]
        fn wrapping_keeps_words_whole_and_fits_every_line(
            words in prop::collection::vec("[a-z0-9%,.]{1,12}", 0..40),
            columns in 1..100usize,
            indent in 0..30usize,
        ) {
            let text = words.join(" ");
            let shown = wrap_text(&text, Some(columns), indent);
            prop_assert!(shown.split_whitespace().eq(text.split_whitespace()), "{shown}");
            for line in shown.lines().filter(|line| display_width(line) > columns) {
                prop_assert!(display_width(line) <= widest_unbreakable_width(&text), "{columns}: {line}");
            }
        }
    }
}
