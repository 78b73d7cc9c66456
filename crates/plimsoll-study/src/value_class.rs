//! How much of a flag's value a message may repeat ([`ValueClass`]).
//!
//! Not here: the class of each flag (the command line), and the redaction of URLs, headers and
//! paths (`plimsoll_model::redact`).

use plimsoll_model::redact::{self, REDACTED, Redact};
use plimsoll_model::terms;

/// Shortest secret to replace, in bytes: shorter ones are parts of too many words.
const REPLACED_BYTES_MIN: usize = 4;

/// The class of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueClass {
    /// A number, time, keyword, condition or process name: repeated.
    Plain,
    /// No value.
    Switch,
    /// A URL; several with commas between them.
    Url,
    /// A header field: only its name is repeated.
    Header,
    /// A body: its size or file is repeated.
    Body,
    /// A shell command: the program's name and a digest are repeated.
    Command,
    /// The path of an input.
    Path,
    /// A script: its own messages have its path and line.
    Program,
    /// An argument of a script: plain text is repeated.
    Argument,
    /// The path of an output.
    Place,
    /// A secret: nothing is repeated.
    Secret,
}

impl ValueClass {
    /// The part of a value that may be repeated.
    pub fn redact(self, value: &str) -> String {
        match self {
            ValueClass::Plain | ValueClass::Switch => value.to_owned(),
            ValueClass::Secret => REDACTED.to_owned(),
            // A comma may separate two URLs; other commas are part of one.
            ValueClass::Url => {
                value.split(",http").map(|url| redact::url(url, Redact::Secrets)).collect::<Vec<_>>().join(",http")
            }
            ValueClass::Path | ValueClass::Place | ValueClass::Program => redact::path(value),
            ValueClass::Command if terms::revision(value).is_some() => value.to_owned(),
            ValueClass::Command => redact::command(value),
            ValueClass::Argument => redact::argument(value, Redact::Secrets),
            ValueClass::Body if value == "-" => value.to_owned(),
            ValueClass::Body => match value.strip_prefix('@') {
                Some(path) => format!("@{}", redact::path(path)),
                None => format!("[{} bytes]", value.len()),
            },
            ValueClass::Header => match value.split_once(':').filter(|(name, _)| is_field_name(name)) {
                Some((name, value)) => {
                    let name = redact::word(name.trim());
                    format!("{name}: {}", redact::header_value(&name, value.trim(), Redact::Secrets))
                }
                // Without a colon the whole text may be a secret.
                None => REDACTED.to_owned(),
            },
        }
    }

    /// Secrets in a value with their replacements: the whole value, and parts that errors quote.
    pub fn replacements(self, text: &str) -> Vec<(String, String)> {
        // Errors show a script's path and an output's path unchanged.
        let is_shown = matches!(self, ValueClass::Plain | ValueClass::Switch | ValueClass::Program | ValueClass::Place);
        let shown = self.redact(text);
        if is_shown || shown == text {
            return Vec::new();
        }
        let mut hidden = Vec::new();
        match self {
            ValueClass::Header => {
                let (name, value) = text.split_once(':').unwrap_or(("", text));
                hidden.push((value.trim().to_owned(), REDACTED.to_owned()));
                if !is_field_name(name) {
                    hidden.push((name.trim().to_owned(), redact::excerpt(name.trim())));
                    let odd = name.split_whitespace().filter(|word| redact::word(word) != *word);
                    hidden.extend(odd.map(|word| (word.to_owned(), REDACTED.to_owned())));
                }
            }
            ValueClass::Body => {
                let bare = text.strip_prefix('@').unwrap_or(text);
                hidden.push((bare.to_owned(), shown.trim_start_matches('@').to_owned()));
            }
            ValueClass::Url => {
                let secrets = text.split(['/', '?', '&', '=', '@', ':', '#', ';', ',']);
                let secret = |part: &&str| part.len() >= REPLACED_BYTES_MIN && !shown.contains(*part);
                hidden.extend(secrets.filter(secret).map(|part| (part.to_owned(), REDACTED.to_owned())));
            }
            _ => {}
        }
        hidden.push((text.to_owned(), shown));
        hidden.retain(|(text, _)| text.len() >= REPLACED_BYTES_MIN);
        hidden
    }
}

/// Whether a text is a valid name of a header field. Another text may be a value with a colon.
fn is_field_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
