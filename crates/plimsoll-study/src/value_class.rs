//! What of a value that a user typed may be repeated in a message ([`ValueClass`]).
//!
//! Not here: which flag has values of which class (the command line), and what of a URL, header or
//! path is harmless (`plimsoll_model::redact`).

use plimsoll_model::redact::{self, REDACTED, Redact};
use plimsoll_model::terms;

/// Shorter texts stand in too many words to be replaced.
const REPLACED_BYTES_MIN: usize = 4;

/// What the value of a flag is, as far as it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueClass {
    /// A number, a time, a word that plimsoll knows, a condition, the name of a process: repeated.
    Plain,
    /// There is none.
    Switch,
    /// A URL; several with commas between them.
    Url,
    /// A header: its name is repeated.
    Header,
    /// A body: its size, or the file it is in.
    Body,
    /// A command for the shell: the program's name, and a digest.
    Command,
    /// A file or socket that is read.
    Path,
    /// A script: its own messages name it, with the line.
    Program,
    /// A word for a script: what is plain of it.
    Argument,
    /// Where results go: a path.
    Place,
    /// Anything: nothing is repeated.
    Secret,
}

impl ValueClass {
    /// What may be repeated of a value.
    pub fn redact(self, value: &str) -> String {
        match self {
            ValueClass::Plain | ValueClass::Switch => value.to_owned(),
            ValueClass::Secret => REDACTED.to_owned(),
            // Two are written with a comma between them; other commas are part of one.
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
                // Not a header: whatever it is, its writer may have meant a secret.
                None => REDACTED.to_owned(),
            },
        }
    }

    /// What of a value must not stand in a message, each with what stands in its place: the value
    /// as a whole, and the parts that errors quote.
    pub fn replacements(self, text: &str) -> Vec<(String, String)> {
        // A script and a place are named as they are by what uses them.
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

/// Whether something can be the name of a field: one word. What is none may be a value whose colon
/// stands elsewhere.
fn is_field_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
