//! What went wrong with a script, as one sentence: the script, the line, the message. Not here: what becomes of the run.

use mlua::Error;

/// Why a script cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It does not load.
    #[error("{0}")]
    Load(String),
    /// One of its functions failed.
    #[error("{hook}(): {message}")]
    Hook {
        /// Which.
        hook: HookName,
        /// Script, line and message.
        message: String,
    },
    /// What `request()` returned is no request.
    #[error("request() returned no HTTP request: {reason} at {line}:{column}")]
    Request {
        /// In wrk's words.
        reason: &'static str,
        /// Where, from 1.
        line: usize,
        /// Where, from 1, in bytes.
        column: usize,
    },
    /// One of its functions does not end.
    #[error("{hook}() has not ended after {seconds} s")]
    Endless {
        /// Which.
        hook: HookName,
        /// How long it was waited for.
        seconds: u64,
    },
    /// No address of the host could be connected to.
    #[error("unable to connect to {host}:{service}")]
    Unreachable {
        /// Whom.
        host: String,
        /// Port or service.
        service: String,
    },
}

/// A function that a script may define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum HookName {
    /// The script itself is carried out.
    Load,
    /// `setup(thread)`.
    Setup,
    /// `init(args)`.
    Init,
    /// `delay()`.
    Delay,
    /// `request()`.
    Request,
    /// `response(status, headers, body)`.
    Response,
    /// `done(summary, latency, requests)`.
    Done,
}

impl HookName {
    /// All of them, by number.
    pub(crate) const ALL: [HookName; 7] = [
        HookName::Load,
        HookName::Setup,
        HookName::Init,
        HookName::Delay,
        HookName::Request,
        HookName::Response,
        HookName::Done,
    ];

    /// As scripts write it.
    pub fn name(self) -> &'static str {
        match self {
            HookName::Load => "the script",
            HookName::Setup => "setup",
            HookName::Init => "init",
            HookName::Delay => "delay",
            HookName::Request => "request",
            HookName::Response => "response",
            HookName::Done => "done",
        }
    }
}

impl std::fmt::Display for HookName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl ScriptError {
    /// A function has failed.
    pub(crate) fn of_hook(hook: HookName, error: &Error) -> ScriptError {
        match hook {
            HookName::Load => ScriptError::Load(message(error)),
            hook => ScriptError::Hook { hook, message: message(error) },
        }
    }
}

/// The message of an error in Lua, without the list of calls that led to it, and without what the library says around it.
pub(crate) fn message(error: &Error) -> String {
    let text = match error {
        // Raised by a function that is not Lua's own: where the script called it is in the list of calls.
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

/// Script and line of the innermost call in a list of calls that is in a script: not in C, and not in what stands around scripts.
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

    #[test]
    fn hooks_are_found_by_their_number() {
        assert!(HookName::ALL.iter().enumerate().all(|(at, hook)| *hook as usize == at));
    }
}
