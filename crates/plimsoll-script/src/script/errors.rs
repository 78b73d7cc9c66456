//! Errors of Lua as one sentence: the script, the line, the message. Not here: what becomes of the
//! run.

use crate::failure::{HookName, ScriptError};
use mlua::Error;

impl ScriptError {
    /// A function has failed.
    pub(crate) fn of_hook(hook: HookName, error: &Error) -> ScriptError {
        match hook {
            HookName::Load => ScriptError::Load(message(error)),
            hook => ScriptError::Hook { hook, message: message(error) },
        }
    }
}

/// The message of an error in Lua, without the list of calls that led to it, and without what the
/// library says around it.
pub(crate) fn message(error: &Error) -> String {
    let text = match error {
        // Raised by a function that is not Lua's own: where the script called it is in the list of
        // calls.
        Error::CallbackError { traceback, cause } => {
            let text = message(cause);
            return match caller(traceback).filter(|_| !has_place(&text)) {
                Some(place) => format!("{place}: {text}"),
                None => text,
            };
        }
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) => message.clone(),
        Error::MemoryError(_) => "the script exceeds its memory limit".to_owned(),
        other => other.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    without_our_place(text.trim_end()).replace('\n', " ")
}

/// A message without its place, where that is in what stands around scripts: nobody can look there.
fn without_our_place(text: &str) -> &str {
    let rest = text.strip_prefix("wrk:").filter(|_| has_place(text));
    rest.and_then(|rest| rest.split_once(": ")).map_or(text, |(_, message)| message)
}

/// Script and line of the innermost call in a list of calls that is in a script: not in C, and not
/// in what stands around scripts.
fn caller(traceback: &str) -> Option<&str> {
    let place = |line: &str| {
        let end = line.find(": in ")?;
        let (name, number) = line[..end].rsplit_once(':')?;
        let ours = name == "wrk" || name == "package";
        (!ours && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(end)
    };
    traceback.lines().map(str::trim_start).find_map(|line| place(line).map(|end| &line[..end]))
}

/// Whether a message begins with a script and a line.
fn has_place(text: &str) -> bool {
    let place = text.split(": ").next().unwrap_or_default();
    let number = place.rsplit_once(':').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_place_is_found() {
        let calls = "stack traceback:\n\t[C]: in function 'set'\n\twrk:9: in function 'f'\n\ta b.lua:3: in function <a b.lua:2>";
        assert_eq!(caller(calls), Some("a b.lua:3"));
        assert_eq!(caller("stack traceback:\n\t[C]: in ?"), None);
        for (text, expect) in [("a.lua:3: oh", true), ("oh: a.lua:3: no", false), ("oh", false), ("a.lua:: x", false)] {
            assert_eq!(has_place(text), expect, "{text}");
        }
        for (text, expect) in [("wrk:45: oh", "oh"), ("a wrk:45: oh", "a wrk:45: oh"), ("wrk: oh", "wrk: oh")] {
            assert_eq!(without_our_place(text), expect);
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let error = Error::RuntimeError("a.lua:3: oh\nno\nstack traceback:\n\t[C]: in function 'x'".into());
        assert_eq!(ScriptError::of_hook(HookName::Request, &error).to_string(), "request(): a.lua:3: oh no");
        assert_eq!(ScriptError::of_hook(HookName::Load, &error).to_string(), "a.lua:3: oh no");
    }
}
