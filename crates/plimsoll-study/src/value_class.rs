//! Decides how much of a flag's value a message may repeat ([`ValueClass`]). Secrets in values stay
//! hidden.
//!
//! Not here: classes that follow from a flag instead of a value name (the command line), and
//! redaction of URLs, headers and paths (`plimsoll_model::redact`).

use plimsoll_model::experiment_settings;
use plimsoll_model::redact::{self, REDACTED, RedactionLevel};

/// The length of the shortest secret that is replaced in messages, bytes. Shorter secrets are not
/// replaced, because they are parts of too many ordinary words.
const HIDDEN_VALUE_BYTES_MIN: usize = 4;

/// The class of a flag's value. The class of a value decides how much of the value a message may
/// repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueClass {
    /// A number, time, keyword, condition or process name: shown in full.
    Plain,
    /// A flag without a value, so there is nothing to redact.
    Switch,
    /// One or several URLs, separated by commas: shown without secrets.
    Url,
    /// A header field: the name is shown, and a secret value is redacted.
    Header,
    /// A request body: only its size or file name is shown.
    Body,
    /// A shell command: the program's name and a digest are shown.
    Command,
    /// The path of an input file: secrets in it are redacted.
    InputPath,
    /// A script's path. Errors show a script's path in full, because a script's own messages
    /// contain path and line.
    ScriptPath,
    /// An argument of a script: shown if it is plain text, otherwise redacted.
    ScriptArgument,
    /// The path of an output file. Errors show the path of an output file in full.
    OutputPath,
    /// A secret, which messages never show, not even in part.
    Secret,
}

impl ValueClass {
    /// Returns the class of a flag's value by the value's name in the flag's declaration, which
    /// help shows (`<URL>`). Returns `None` for an unknown name.
    pub fn from_value_name(name: &str) -> Option<ValueClass> {
        Some(match name {
            // Value names such as `N` and `TIME` stand for numbers, times, and combinations of
            // both.
            "N" | "TIME" | "RATE" | "PERCENT" | "SHARE" | "2x" | "PID" | "N|STAGES" | "LIST" | "SET" => {
                ValueClass::Plain
            }
            // Value names such as `WHAT` and `METHOD` stand for keywords of plimsoll.
            "WHAT" | "WHEN" | "HOW" | "KIND" | "TYPE" | "ORDER" | "COLUMN" | "CHART" | "FORMAT" | "SHELL"
            | "VERSION" | "METHOD" | "VERDICT" | "pass|fail" | "go|stop" | "nats" => ValueClass::Plain,
            // Value names such as `SLO` and `REGEX` stand for conditions and patterns.
            "CONDITION" | "SLO" | "REGEX" | "LABEL|REGEX" | "FIELD" | "NAME=.PATH,..." => ValueClass::Plain,
            // Value names such as `NAME` and `RUN` stand for names of processes, runs, branches and
            // machines.
            "NAME" | "NAME|PID" | "N|NAME,..." | "N,...|NAME=N,..." | "RUN" | "BRANCH" | "KEY=VALUE" | "PLACE" => {
                ValueClass::Plain
            }
            "HOST" | "HOST:PORT" | "ADDR" | "ssh://HOST" | "nats://BUS:PORT" | "ed25519:KEY" => ValueClass::Plain,
            "ssh://HOST,...|nats://BUS:PORT" => ValueClass::Plain,
            "URL" | "URL2" | "URL|auto" | "URL_A,URL_B" | "FILE|URL" => ValueClass::Url,
            "NAME: VALUE" => ValueClass::Header,
            "TEXT|@FILE" | "TEXT|@FILE|-" => ValueClass::Body,
            "CMD" | "CMD|git:REV" => ValueClass::Command,
            "FILE" | "DIR" | "PATH" | "LOG" | "LOG|FILE" => ValueClass::InputPath,
            "WORDS" => ValueClass::ScriptArgument,
            "'curl ...'" => ValueClass::Secret,
            _ => return None,
        })
    }

    /// Returns the part of a value that a message may show.
    pub fn redact(self, value: &str) -> String {
        match self {
            ValueClass::Plain | ValueClass::Switch => value.to_owned(),
            ValueClass::Secret => REDACTED.to_owned(),
            // A comma before `http` separates two URLs, and any other comma is part of a URL.
            ValueClass::Url => value
                .split(",http")
                .map(|url| redact::redact_url(url, RedactionLevel::Secrets))
                .collect::<Vec<_>>()
                .join(",http"),
            ValueClass::InputPath | ValueClass::OutputPath | ValueClass::ScriptPath => redact::redact_path(value),
            ValueClass::Command if experiment_settings::parse_git_revision(value).is_some() => value.to_owned(),
            ValueClass::Command => redact::redact_command_to_program(value),
            ValueClass::ScriptArgument => redact::redact_argument(value, RedactionLevel::Secrets),
            ValueClass::Body if value == "-" => value.to_owned(),
            ValueClass::Body => match value.strip_prefix('@') {
                Some(path) => format!("@{}", redact::redact_path(path)),
                None => format!("[{} bytes]", value.len()),
            },
            ValueClass::Header => match value.split_once(':').filter(|(name, _)| is_field_name(name)) {
                Some((name, value)) => {
                    let name = redact::redact_word(name.trim());
                    format!("{name}: {}", redact::redact_header_value(&name, value.trim(), RedactionLevel::Secrets))
                }
                // If no valid header name and colon are found, the whole text may be a secret.
                None => REDACTED.to_owned(),
            },
        }
    }

    /// Returns the texts that messages must not show, each with its replacement: the whole value,
    /// and parts of the value that errors may quote.
    pub fn replacements_of_value(self, text: &str) -> Vec<(String, String)> {
        // Errors may show values of the classes `Plain`, `Switch`, `ScriptPath` and `OutputPath`
        // unchanged, for example the paths of scripts and outputs.
        let is_shown =
            matches!(self, ValueClass::Plain | ValueClass::Switch | ValueClass::ScriptPath | ValueClass::OutputPath);
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
                    hidden.push((name.trim().to_owned(), redact::redact_excerpt(name.trim())));
                    let odd = name.split_whitespace().filter(|word| redact::redact_word(word) != *word);
                    hidden.extend(odd.map(|word| (word.to_owned(), REDACTED.to_owned())));
                }
            }
            ValueClass::Body => {
                let bare = text.strip_prefix('@').unwrap_or(text);
                hidden.push((bare.to_owned(), shown.trim_start_matches('@').to_owned()));
            }
            ValueClass::Url => {
                let secrets = text.split(['/', '?', '&', '=', '@', ':', '#', ';', ',']);
                let secret = |part: &&str| part.len() >= HIDDEN_VALUE_BYTES_MIN && !shown.contains(*part);
                hidden.extend(secrets.filter(secret).map(|part| (part.to_owned(), REDACTED.to_owned())));
            }
            _ => {}
        }
        hidden.push((text.to_owned(), shown));
        hidden.retain(|(text, _)| text.len() >= HIDDEN_VALUE_BYTES_MIN);
        hidden
    }
}

/// Whether a text is a valid header field name. An invalid name may be part of a secret value that
/// contains a colon.
fn is_field_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
