//! What of a command line must not stand in a message: every flag of every command has a class,
//! and the class says what of its value may be repeated. The class follows from the flag's
//! declaration: from the name of its value, which help shows (`<URL>`). A flag whose value has no
//! known name is not repeated at all.
//!
//! Not here: what of a URL, header or path is harmless (`plimsoll_model::redact`), and what is
//! recorded: that is made of what was understood, never of its text (`plimsoll_model::terms`).

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use plimsoll_model::redact::{self, REDACTED, Redact};
use plimsoll_model::terms;
use plimsoll_study::message::SecretReplacements;
use std::ffi::OsStr;

/// What the value of a flag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
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

/// What a value is, by the name that a flag's declaration has for it.
fn of_value(name: &str) -> Option<Class> {
    Some(match name {
        // Numbers, times, and what is made of these.
        "N" | "TIME" | "RATE" | "PERCENT" | "SHARE" | "2x" | "PID" | "N|STAGES" | "LIST" | "SET" => Class::Plain,
        // Words that plimsoll knows.
        "WHAT" | "WHEN" | "HOW" | "KIND" | "TYPE" | "ORDER" | "COLUMN" | "CHART" | "FORMAT" | "SHELL" | "VERSION"
        | "METHOD" | "VERDICT" | "pass|fail" | "go|stop" | "nats" => Class::Plain,
        // Conditions and patterns.
        "CONDITION" | "SLO" | "REGEX" | "LABEL|REGEX" | "FIELD" | "NAME=.PATH,..." => Class::Plain,
        // Names of processes, runs, branches and machines.
        "NAME" | "NAME|PID" | "N|NAME,..." | "RUN" | "BRANCH" | "KEY=VALUE" | "PLACE" => Class::Plain,
        "HOST" | "HOST:PORT" | "ADDR" | "ssh://HOST" | "nats://BUS:PORT" | "ed25519:KEY" => Class::Plain,
        "ssh://HOST,...|nats://BUS:PORT" => Class::Plain,
        "URL" | "URL2" | "URL|auto" | "URL_A,URL_B" | "FILE|URL" => Class::Url,
        "NAME: VALUE" => Class::Header,
        "TEXT|@FILE" | "TEXT|@FILE|-" => Class::Body,
        "CMD" | "CMD|git:REV" => Class::Command,
        "FILE" | "DIR" | "PATH" | "LOG" | "LOG|FILE" => Class::Path,
        "WORDS" => Class::Argument,
        "'curl ...'" => Class::Secret,
        _ => return None,
    })
}

/// The class of an argument of a command; `None`: nobody has said what its value is.
pub fn class_of(command: &str, arg: &Arg) -> Option<Class> {
    if !arg.get_action().takes_values() {
        return Some(Class::Switch);
    }
    // A file may be one to read, one to write, or a script.
    match (command, arg.get_id().as_str()) {
        (_, "lua") => Some(Class::Program),
        ("sweep" | "serve", "name") | (_, "output" | "dir" | "store" | "spool") => Some(Class::Place),
        ("diff", "a" | "b") | ("gate", "run") => Some(Class::Path),
        ("profile", "diff") => Some(Class::Url),
        _ => of_value(arg.get_value_names()?.first()?.as_str()),
    }
}

/// What may be repeated of a value.
fn redact_value(class: Class, value: &str) -> String {
    match class {
        Class::Plain | Class::Switch => value.to_owned(),
        Class::Secret => REDACTED.to_owned(),
        // Two are written with a comma between them; other commas are part of one.
        Class::Url => {
            value.split(",http").map(|url| redact::url(url, Redact::Secrets)).collect::<Vec<_>>().join(",http")
        }
        Class::Path | Class::Place | Class::Program => redact::path(value),
        Class::Command if terms::revision(value).is_some() => value.to_owned(),
        Class::Command => redact::command(value),
        Class::Argument => redact::argument(value, Redact::Secrets),
        Class::Body if value == "-" => value.to_owned(),
        Class::Body => match value.strip_prefix('@') {
            Some(path) => format!("@{}", redact::path(path)),
            None => format!("[{} bytes]", value.len()),
        },
        Class::Header => match value.split_once(':').filter(|(name, _)| is_field_name(name)) {
            Some((name, value)) => {
                let name = redact::word(name.trim());
                format!("{name}: {}", redact::header_value(&name, value.trim(), Redact::Secrets))
            }
            // Not a header: whatever it is, its writer may have meant a secret.
            None => REDACTED.to_owned(),
        },
    }
}

/// Whether something can be the name of a field: one word. What is none may be a value whose colon
/// stands elsewhere.
fn is_field_name(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// What was given for one argument, in order; nothing for what stands there by default.
fn argument_values<'a>(matches: &'a ArgMatches, arg: &Arg) -> Vec<&'a OsStr> {
    let id = arg.get_id().as_str();
    match matches.value_source(id) {
        Some(ValueSource::CommandLine | ValueSource::EnvVariable) => {
            matches.get_raw(id).map(Iterator::collect).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// What of a command line that was understood must not stand in a message.
pub fn hidden_of(command: &Command, matches: &ArgMatches) -> SecretReplacements {
    SecretReplacements::new(hidden(command, matches))
}

/// What of the values given must not stand in a message: each as a whole, and the parts that errors
/// quote.
fn hidden(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for arg in command.get_arguments() {
        let class = class_of(command.get_name(), arg).unwrap_or(Class::Secret);
        if matches!(class, Class::Plain | Class::Switch | Class::Program | Class::Place) {
            continue;
        }
        for raw in argument_values(matches, arg) {
            let text = raw.to_string_lossy().into_owned();
            // The name of a file that is there and only read is shown as its user has typed it.
            let is_read = (command.get_name(), arg.get_id().as_str()) == ("import", "source");
            if is_read && std::path::Path::new(raw).exists() {
                continue;
            }
            let shown = redact_value(class, &text);
            if shown == text {
                continue;
            }
            match class {
                Class::Header => {
                    let (name, value) = text.split_once(':').unwrap_or(("", &text));
                    hidden.push((value.trim().to_owned(), REDACTED.to_owned()));
                    if !is_field_name(name) {
                        hidden.push((name.trim().to_owned(), redact::excerpt(name.trim())));
                        let odd = name.split_whitespace().filter(|word| redact::word(word) != *word);
                        hidden.extend(odd.map(|word| (word.to_owned(), REDACTED.to_owned())));
                    }
                }
                Class::Path => hidden.push((text.clone(), shown.clone())),
                Class::Body => {
                    let bare = text.strip_prefix('@').unwrap_or(&text);
                    hidden.push((bare.to_owned(), shown.trim_start_matches('@').to_owned()));
                }
                Class::Url => {
                    let secrets = text.split(['/', '?', '&', '=', '@', ':', '#', ';', ',']);
                    let secret = |part: &&str| part.len() > 3 && !shown.contains(*part);
                    hidden.extend(secrets.filter(secret).map(|part| (part.to_owned(), REDACTED.to_owned())));
                }
                _ => {}
            }
            hidden.push((text, shown));
        }
    }
    hidden.retain(|(text, _)| text.len() > 3);
    hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    hidden
}

#[cfg(test)]
mod tests;
