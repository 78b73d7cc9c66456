//! Formats Lua errors as one sentence: script, line, message. Not here: how a run ends after an
//! error.

use crate::failure::{HookName, ScriptError};
use mlua::Error;
use plimsoll_model::redact;

impl ScriptError {
    /// Converts the Lua error of a failed script function (hook) to a [`ScriptError`].
    pub(crate) fn from_hook_error(hook: HookName, error: &Error) -> ScriptError {
        match hook {
            HookName::Load => ScriptError::Load(lua_error_message(error)),
            hook => ScriptError::Hook { hook, message: lua_error_message(error) },
        }
    }
}

/// Returns the message of a Lua error, without the stack traceback and without text that the Lua
/// library adds. Words that look like secret keys are shortened, because run files contain the
/// message.
pub(crate) fn lua_error_message(error: &Error) -> String {
    let text = match error {
        // A Rust function that the script called raised the error. The traceback contains the line
        // of the script that called the Rust function.
        Error::CallbackError { traceback, cause } => {
            let text = lua_error_message(cause);
            return match caller_position(traceback).filter(|_| !starts_with_position(&text)) {
                Some(place) => format!("{place}: {text}"),
                None => text,
            };
        }
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) => message.clone(),
        Error::MemoryError(_) => "the Lua script exceeds its memory limit".to_owned(),
        other => other.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    let text = strip_internal_position(text.trim_end()).replace('\n', " ");
    match text.split_once(": ").filter(|_| starts_with_position(&text)) {
        Some((place, message)) => format!("{place}: {}", redact::redact_line(message)),
        None => redact::redact_line(&text),
    }
}

/// Removes script name and line number from a message if they refer to plimsoll's own Lua code,
/// which users cannot look up.
fn strip_internal_position(text: &str) -> &str {
    let rest = text.strip_prefix("wrk:").filter(|_| starts_with_position(text));
    rest.and_then(|rest| rest.split_once(": ")).map_or(text, |(_, message)| message)
}

/// Searches a Lua traceback for the innermost call that the user's script made, and returns the
/// script name and line number of this call. Calls in C code and in plimsoll's own Lua code are
/// skipped.
fn caller_position(traceback: &str) -> Option<&str> {
    let place = |line: &str| {
        let end = line.find(": in ")?;
        let (name, number) = line[..end].rsplit_once(':')?;
        let ours = name == "wrk" || name == "package";
        (!ours && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(end)
    };
    traceback.lines().map(str::trim_start).find_map(|line| place(line).map(|end| &line[..end]))
}

/// Returns whether a message begins with a script name and a line number.
fn starts_with_position(text: &str) -> bool {
    let place = text.split(": ").next().unwrap_or_default();
    let number = place.rsplit_once(':').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_the_caller_is_found() {
        let calls = "stack traceback:\n\t[C]: in function 'set'\n\twrk:9: in function 'f'\n\ta b.lua:3: in function <a b.lua:2>";
        assert_eq!(caller_position(calls), Some("a b.lua:3"));
        assert_eq!(caller_position("stack traceback:\n\t[C]: in ?"), None);
        for (text, expect) in [("a.lua:3: oh", true), ("oh: a.lua:3: no", false), ("oh", false), ("a.lua:: x", false)] {
            assert_eq!(starts_with_position(text), expect, "{text}");
        }
        for (text, expect) in [("wrk:45: oh", "oh"), ("a wrk:45: oh", "a wrk:45: oh"), ("wrk: oh", "wrk: oh")] {
            assert_eq!(strip_internal_position(text), expect);
        }
    }

    #[test]
    fn a_script_error_is_one_line() {
        let error = Error::RuntimeError("a.lua:3: oh\nno\nstack traceback:\n\t[C]: in function 'x'".into());
        assert_eq!(ScriptError::from_hook_error(HookName::Request, &error).to_string(), "request(): a.lua:3: oh no");
        assert_eq!(ScriptError::from_hook_error(HookName::Load, &error).to_string(), "a.lua:3: oh no");
        let error = Error::RuntimeError("main-4f3a9c2e.lua:3: bad key k0CNgwNiCMNBxZNazLqc".into());
        assert_eq!(
            ScriptError::from_hook_error(HookName::Load, &error).to_string(),
            "main-4f3a9c2e.lua:3: bad key k0..."
        );
    }
}
