//! What went wrong with a script, as one sentence: the script, the line, the message. Not here:
//! what becomes of the run.

/// Why a script cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It does not load.
    #[error("{0}")]
    Load(String),
    /// This program was built without Lua.
    #[error("this plimsoll was built without Lua: build it with the feature luajit, or with lua51")]
    NoLua,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_found_by_their_number() {
        assert!(HookName::ALL.iter().enumerate().all(|(at, hook)| *hook as usize == at));
    }
}
