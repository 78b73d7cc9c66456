//! Determines which command-line values must not appear in messages. Every flag of every command
//! has a class, which says how much of its value a message may show. The class follows from the
//! value's name in the flag's declaration, which help shows (`<URL>`). If that name is unknown,
//! messages never show the value.
//!
//! Not here: the classes and their value names (`plimsoll_study::value_class`), and the recorded
//! command line, which is built from parsed values (`plimsoll_model::experiment_settings`).

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use plimsoll_study::message::SecretReplacements;
use plimsoll_study::value_class::ValueClass;
use std::ffi::OsStr;

/// Returns the secrecy class of a command's argument (how much of its value messages may show);
/// `None` if the class is unknown.
pub fn argument_class(command: &str, arg: &Arg) -> Option<ValueClass> {
    if !arg.get_action().takes_values() {
        return Some(ValueClass::Switch);
    }
    // The value name alone does not determine the class of these arguments. FILE, for example, may
    // be an input, an output or a script. The command and the flag therefore determine the class.
    match (command, arg.get_id().as_str()) {
        (_, "lua") => Some(ValueClass::ScriptPath),
        ("sweep" | "serve", "name") | (_, "output" | "dir" | "store" | "spool") => Some(ValueClass::OutputPath),
        ("diff", "a" | "b") | ("gate", "run") => Some(ValueClass::InputPath),
        ("profile", "diff") => Some(ValueClass::Url),
        _ => ValueClass::from_value_name(arg.get_value_names()?.first()?.as_str()),
    }
}

/// Returns the values that the user gave for an argument, in order, without default values.
fn argument_values<'a>(matches: &'a ArgMatches, arg: &Arg) -> Vec<&'a OsStr> {
    let id = arg.get_id().as_str();
    match matches.value_source(id) {
        Some(ValueSource::CommandLine | ValueSource::EnvVariable) => {
            matches.get_raw(id).map(Iterator::collect).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Returns the secrets of a parsed command line, each with the text that replaces the secret in
/// messages.
pub fn command_line_secrets(command: &Command, matches: &ArgMatches) -> SecretReplacements {
    SecretReplacements::new(secret_replacements(command, matches))
}

/// Returns the secrets among the values of a parsed command line, each with the text that replaces
/// the secret in messages.
fn secret_replacements(command: &Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for arg in command.get_arguments() {
        let class = argument_class(command.get_name(), arg).unwrap_or(ValueClass::Secret);
        for raw in argument_values(matches, arg) {
            // If the input of `import` is an existing file, messages show its path as the user
            // typed it.
            let is_read = (command.get_name(), arg.get_id().as_str()) == ("import", "source");
            if !is_read || !std::path::Path::new(raw).exists() {
                hidden.extend(class.replacements_of_value(&raw.to_string_lossy()));
            }
        }
    }
    hidden
}

#[cfg(test)]
#[path = "../tests/flags/every_flag.rs"]
mod tests;
