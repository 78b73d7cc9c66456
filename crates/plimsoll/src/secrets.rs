//! What of a command line must not stand in a message: every flag of every command has a class,
//! and the class says what of its value may be repeated. The class follows from the flag's
//! declaration: from the name of its value, which help shows (`<URL>`). A flag whose value has no
//! known name is not repeated at all.
//!
//! Not here: what of each class may be repeated (`plimsoll_study::value_class`), and what is
//! recorded: that is made of what was understood, never of its text (`plimsoll_model::terms`).

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use plimsoll_study::message::SecretReplacements;
use plimsoll_study::value_class::ValueClass;
use std::ffi::OsStr;

/// What a value is, by the name that a flag's declaration has for it.
fn of_value(name: &str) -> Option<ValueClass> {
    Some(match name {
        // Numbers, times, and what is made of these.
        "N" | "TIME" | "RATE" | "PERCENT" | "SHARE" | "2x" | "PID" | "N|STAGES" | "LIST" | "SET" => ValueClass::Plain,
        // Words that plimsoll knows.
        "WHAT" | "WHEN" | "HOW" | "KIND" | "TYPE" | "ORDER" | "COLUMN" | "CHART" | "FORMAT" | "SHELL" | "VERSION"
        | "METHOD" | "VERDICT" | "pass|fail" | "go|stop" | "nats" => ValueClass::Plain,
        // Conditions and patterns.
        "CONDITION" | "SLO" | "REGEX" | "LABEL|REGEX" | "FIELD" | "NAME=.PATH,..." => ValueClass::Plain,
        // Names of processes, runs, branches and machines.
        "NAME" | "NAME|PID" | "N|NAME,..." | "N,...|NAME=N,..." | "RUN" | "BRANCH" | "KEY=VALUE" | "PLACE" => {
            ValueClass::Plain
        }
        "HOST" | "HOST:PORT" | "ADDR" | "ssh://HOST" | "nats://BUS:PORT" | "ed25519:KEY" => ValueClass::Plain,
        "ssh://HOST,...|nats://BUS:PORT" => ValueClass::Plain,
        "URL" | "URL2" | "URL|auto" | "URL_A,URL_B" | "FILE|URL" => ValueClass::Url,
        "NAME: VALUE" => ValueClass::Header,
        "TEXT|@FILE" | "TEXT|@FILE|-" => ValueClass::Body,
        "CMD" | "CMD|git:REV" => ValueClass::Command,
        "FILE" | "DIR" | "PATH" | "LOG" | "LOG|FILE" => ValueClass::Path,
        "WORDS" => ValueClass::Argument,
        "'curl ...'" => ValueClass::Secret,
        _ => return None,
    })
}

/// The class of an argument of a command; `None`: nobody has said what its value is.
pub fn class_of(command: &str, arg: &Arg) -> Option<ValueClass> {
    if !arg.get_action().takes_values() {
        return Some(ValueClass::Switch);
    }
    // A file may be one to read, one to write, or a script.
    match (command, arg.get_id().as_str()) {
        (_, "lua") => Some(ValueClass::Program),
        ("sweep" | "serve", "name") | (_, "output" | "dir" | "store" | "spool") => Some(ValueClass::Place),
        ("diff", "a" | "b") | ("gate", "run") => Some(ValueClass::Path),
        ("profile", "diff") => Some(ValueClass::Url),
        _ => of_value(arg.get_value_names()?.first()?.as_str()),
    }
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

/// What of the values given must not stand in a message.
fn hidden(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for arg in command.get_arguments() {
        let class = class_of(command.get_name(), arg).unwrap_or(ValueClass::Secret);
        for raw in argument_values(matches, arg) {
            // The name of a file that is there and only read is shown as its user has typed it.
            let is_read = (command.get_name(), arg.get_id().as_str()) == ("import", "source");
            if !is_read || !std::path::Path::new(raw).exists() {
                hidden.extend(class.replacements(&raw.to_string_lossy()));
            }
        }
    }
    hidden
}

#[cfg(test)]
#[path = "../tests/flags/every_flag.rs"]
mod tests;
