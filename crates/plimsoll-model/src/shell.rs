//! Quotes texts for a POSIX shell. [`quote`] always adds quotation marks; [`quote_if_needed`] adds
//! quotation marks only if the text needs them.
//!
//! Not here: parsers of shell lines (importers), and redaction (`redact`).

/// Returns the text in quotation marks, as one shell word.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns the text as one shell word, in quotation marks only if necessary.
pub fn quote_if_needed(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { quote(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_shell_characters_are_quoted() {
        for (text, expect) in [
            ("http://h:8080/a,b", "http://h:8080/a,b"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", "'it'\\''s'"),
            ("http://h/?a=1&b=2", "'http://h/?a=1&b=2'"),
        ] {
            assert_eq!(quote_if_needed(text), expect, "{text}");
        }
        assert_eq!(quote("plain"), "'plain'");
    }
}
