//! Makes messages safe for terminals: one line of limited length, without the secrets of the
//! command line.
//!
//! Not here: which words of a command line are secrets (the caller of [`SecretReplacements`]
//! knows), and exit codes.

use plimsoll_model::control_characters::is_control_character;
use plimsoll_model::redact;
use std::sync::OnceLock;

/// The longest quotation in a message, in characters. A longer quotation is shortened in the
/// middle.
const QUOTATION_CHARS_MAX: usize = 100;
/// The longest message, in characters. A longer message is shortened in the middle.
const MESSAGE_CHARS_MAX: usize = 600;

/// Returns a text of at most `max` characters unchanged. Of a longer text, returns the beginning
/// (two thirds of `max` characters) and the end (one third), with `...` between the two parts.
fn shorten_middle(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let (head, tail) = (max * 2 / 3, max / 3);
    text.chars().take(head).chain(" ... ".chars()).chain(text.chars().skip(count - tail)).collect()
}

/// Returns a message for a terminal, as one line without secrets. Control characters and characters
/// that change the writing direction become `?`. Long quotations are shortened. Words in quotations
/// that look like secret keys are hidden, except for their first characters.
pub fn terminal_message(message: &str) -> String {
    let plain: String = without_secrets(message)
        .chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if is_control_character(c) => '?',
            c => c,
        })
        .collect();
    // Quotations come from the user and may contain blanks. The text outside quotations comes from
    // plimsoll, so only its overlong words are shortened.
    let word = |word: &str| shorten_middle(word, QUOTATION_CHARS_MAX);
    let ours = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let part = |(number, part): (usize, &str)| {
        if number % 2 == 0 { ours(part) } else { shorten_middle(&redact::redact_typed_text(part), QUOTATION_CHARS_MAX) }
    };
    let text = split_at_quotes(&plain).into_iter().enumerate().map(part).collect::<Vec<_>>().join("'");
    shorten_middle(&text, MESSAGE_CHARS_MAX)
}

/// Splits a text at its quotation marks, so that every second part is a quotation. An apostrophe
/// inside a word is not a quotation mark.
fn split_at_quotes(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        let inside_word = before.is_alphanumeric() && text[at + c.len_utf8()..].starts_with(char::is_alphanumeric);
        if c == '\'' && !inside_word {
            parts.push(&text[from..at]);
            from = at + 1;
        }
        before = c;
    }
    parts.push(&text[from..]);
    parts
}

/// Secrets of the command line, each with its replacement, sorted from the longest to the shortest.
#[derive(Debug, Default)]
pub struct SecretReplacements(Vec<(String, String)>);

static GLOBAL_SECRET_REPLACEMENTS: OnceLock<SecretReplacements> = OnceLock::new();

impl SecretReplacements {
    /// Builds the list of replacements from pairs of a secret and the text to show in place of the
    /// secret.
    pub fn new(mut hidden: Vec<(String, String)>) -> SecretReplacements {
        hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        SecretReplacements(hidden)
    }

    /// Returns the message with all secrets replaced.
    pub fn replace_secrets(&self, message: &str) -> String {
        self.0.iter().fold(message.to_owned(), |text, (secret, shown)| text.replace(secret, shown))
    }

    /// Makes [`without_secrets`] use these replacements in the whole process. Only the first call
    /// of `store_for_process` has an effect.
    pub fn store_for_process(self) {
        // A process runs one command, so a second call of `store_for_process` does not occur.
        let _ = GLOBAL_SECRET_REPLACEMENTS.set(self);
    }
}

/// Returns a message with the secrets of this process's command line replaced.
pub fn without_secrets(message: &str) -> String {
    GLOBAL_SECRET_REPLACEMENTS.get().map_or_else(|| message.to_owned(), |hidden| hidden.replace_secrets(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sanitized_for_a_terminal() {
        let long = "x".repeat(5_000);
        // An apostrophe inside a word does not begin a quotation.
        let words = format!("the server's certificate {}", "is for another name ".repeat(10));
        for (message, expect) in [
            ("--rate: 'ten' is not a number".to_owned(), "--rate: 'ten' is not a number"),
            ("no key 'k0CNgwNiCMNBxZNazLqc' here".to_owned(), "no key 'k0...' here"),
            ("'orders.csv', line 18446744073709551615".to_owned(), "'orders.csv', line 18446744073709551615"),
            (words.clone(), words.as_str()),
            ("a\u{1b}[31m\nb\u{202e}c\u{9b}d".to_owned(), "a?[31m b?c?d"),
        ] {
            assert_eq!(terminal_message(&message), expect);
        }
        for message in [
            format!("'{}' is not a number; write 5", "a b ".repeat(2_000)),
            format!("'{}' is not a number; write 5", "a'b ".repeat(2_000)),
            format!("cannot open {long}: write 5"),
        ] {
            let shown = terminal_message(&message);
            assert!(shown.chars().count() < 620 && shown.ends_with("write 5") && shown.contains(" ... "), "{shown}");
        }
        assert!(
            terminal_message(&format!("'{long}' is no; write 5")).chars().filter(|c| *c == 'x').count()
                <= QUOTATION_CHARS_MAX
        );
    }
}
