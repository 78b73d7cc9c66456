//! Explains a parse error of the command line in one sentence that also says what to change. The
//! text that clap generates quotes the arguments, which may contain a misplaced secret (`-H
//! Authorization: abc` without quotes). This module therefore uses only the kind of clap's error,
//! and writes its own sentence.
//!
//! Not here: values that clap accepts and `plan_from_args` refuses.

use crate::secrets::argument_class;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use plimsoll_model::redact;
use plimsoll_study::value_class::ValueClass;
use std::error::Error as _;

/// Returns the texts of the given kind in the context of clap's error.
fn context_texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Returns the name of an unknown flag, without a value that may be attached.
fn unknown_flag_name(text: &str) -> String {
    let name = text.split('=').next().unwrap_or_default();
    match name.starts_with("--") {
        true => format!("--{}", redact::redact_word(&name[2..])),
        // For an unknown short flag such as `-psecret`, only the letter is shown, without the value
        // that follows the letter.
        false => name.chars().take(2).collect(),
    }
}

/// Whether messages may repeat the value of a flag. `text` is the flag in clap's form, such as
/// `--pid <PID>`.
fn may_repeat_value(cli: &Command, text: &str) -> bool {
    let name = text.split([' ', '=', '[']).next().unwrap_or_default();
    let mut plain = false;
    for command in cli.get_subcommands() {
        for arg in command.get_arguments() {
            let long = arg.get_long().is_some_and(|long| name == format!("--{long}"));
            let short = arg.get_short().is_some_and(|short| name == format!("-{short}"));
            if long || short {
                match argument_class(command.get_name(), arg) {
                    Some(ValueClass::Plain) => plain = true,
                    _ => return false,
                }
            }
        }
    }
    plain
}

/// Returns the command to which an error belongs, taken from clap's usage text (`Usage: plimsoll
/// run [OPTIONS] ...`).
fn command_of_usage_error(cli: &Command, error: &Error) -> Option<String> {
    let usage = context_texts(error, ContextKind::Usage).join(" ");
    let named = usage.split_whitespace().skip_while(|word| *word != "plimsoll").nth(1)?;
    cli.get_subcommands().find(|command| command.get_name() == named).map(|command| command.get_name().to_owned())
}

/// Returns the sentence about a parse error, which also says what to change.
pub fn error_sentence(cli: &Command, error: &Error) -> String {
    let first = |kind| context_texts(error, kind).into_iter().next();
    let arg = first(ContextKind::InvalidArg).unwrap_or_default();
    let see_help = match command_of_usage_error(cli, error) {
        Some(command) => format!("see plimsoll {command} --help"),
        None => "see plimsoll --help".to_owned(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') && arg.len() > 1 => {
            let way_out = match first(ContextKind::SuggestedArg) {
                Some(suggested) => format!("{suggested} is a flag"),
                None => see_help,
            };
            format!("unknown flag {}: {way_out}", unknown_flag_name(&arg))
        }
        // An unexpected argument may be the second part of a secret that lost its quotation marks,
        // so only the argument's length is shown.
        ErrorKind::UnknownArgument => {
            let argument = match arg.contains("://") {
                true => format!("'{}'", redact::redact_url(&arg, redact::RedactionLevel::All)),
                false => match arg.chars().count() {
                    1 => "with 1 character".to_owned(),
                    count => format!("with {count} characters"),
                },
            };
            format!(
                "the argument {argument} is unexpected: put a value with blanks in quotation marks, and give one \
                 target at the end"
            )
        }
        ErrorKind::InvalidSubcommand => {
            let given = first(ContextKind::InvalidSubcommand).unwrap_or_default();
            let word = redact::redact_word(&given);
            match first(ContextKind::SuggestedSubcommand) {
                Some(suggested) => format!("'{word}' is no command: did you mean {suggested}?"),
                None => format!("'{word}' is no command: {see_help}, and write a target as http://HOST:PORT/"),
            }
        }
        ErrorKind::InvalidValue if context_texts(error, ContextKind::InvalidValue).iter().all(String::is_empty) => {
            format!("{arg}: the value is missing")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = first(ContextKind::InvalidValue).unwrap_or_default();
            let value = if may_repeat_value(cli, &arg) {
                format!("'{}'", redact::redact_word(&value))
            } else {
                "the given value".to_owned()
            };
            let known = context_texts(error, ContextKind::ValidValue);
            match (known.is_empty(), error.source()) {
                (false, _) => format!("{arg}: {value} is not one of {values}", values = known.join(", ")),
                (true, Some(reason)) => format!("{arg}: {value} is not valid: {reason}"),
                (true, None) => format!("{arg}: {value} is not valid: {see_help}"),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = context_texts(error, ContextKind::InvalidArg).join(", ");
            format!("an argument is missing: add {missing}")
        }
        ErrorKind::ArgumentConflict => {
            let other = context_texts(error, ContextKind::PriorArg).join(", ");
            match other.is_empty() || other == arg {
                true => format!("{arg} is given more than once: leave one out"),
                false => format!("{arg} and {other} exclude each other: leave one out"),
            }
        }
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("{arg}: values are missing: {see_help}")
        }
        ErrorKind::TooManyValues => format!("{arg}: too many values: leave the value out"),
        ErrorKind::NoEquals => format!("{arg}: write the value after '='"),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8: put such bytes into a file, as in -b @FILE".to_owned(),
        ErrorKind::MissingSubcommand => format!("the command is missing: {see_help}"),
        other => format!("{other}: {see_help}"),
    }
}
