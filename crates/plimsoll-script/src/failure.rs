//! Errors of a script, each formatted as one sentence with script, line and message. Not here: how
//! a run ends after an error.

/// The reason why a script cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The script cannot be loaded; the value has script, line and message.
    #[error("{0}")]
    Load(String),
    /// Scripts are not supported: this plimsoll was built without Lua.
    #[error("this plimsoll was built without Lua: build plimsoll with the feature luajit, or with lua51")]
    NoLua,
    /// One of the script's functions failed with a Lua error.
    #[error("{hook}(): {message}")]
    Hook {
        /// The function that failed.
        hook: HookName,
        /// Script, line and error message.
        message: String,
    },
    /// The text that `request()` returned is not an HTTP request.
    #[error("request() returned no HTTP request: {reason} at {line}:{column}")]
    Request {
        /// The reason, in the words of wrk.
        reason: &'static str,
        /// Line of the error in the returned text, from 1.
        line: usize,
        /// Column of the error in bytes, from 1.
        column: usize,
    },
    /// One of the script's functions has not returned for too long.
    #[error("{hook}() has not ended after {seconds} s")]
    HungHook {
        /// The function that does not return.
        hook: HookName,
        /// The time in seconds since the function began.
        seconds: u64,
    },
    /// No address of the host accepted a connection.
    #[error("unable to connect to {host}:{service}")]
    Unreachable {
        /// The host of the URL.
        host: String,
        /// Port, or service name if the URL has no port.
        service: String,
    },
}

/// A function that a script may define, or the loading of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum HookName {
    /// Loading: the script itself is executed.
    Load,
    /// `setup(thread)`, called for each thread before the load.
    Setup,
    /// `init(args)`, called in each thread's state before the load.
    Init,
    /// `delay()`, called before each request of a closed loop.
    Delay,
    /// `request()`, called to get each request.
    Request,
    /// `response(status, headers, body)`, called with each response.
    Response,
    /// `done(summary, latency, requests)`, called after the load.
    Done,
}

impl HookName {
    /// All hooks in the order of their discriminants, so that a stored number can be converted back
    /// to its hook.
    pub(crate) const ALL: [HookName; 7] = [
        HookName::Load,
        HookName::Setup,
        HookName::Init,
        HookName::Delay,
        HookName::Request,
        HookName::Response,
        HookName::Done,
    ];

    /// Returns the function's name as scripts write it; `the script` for loading.
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
    fn script_hooks_are_found_by_number() {
        assert!(HookName::ALL.iter().enumerate().all(|(at, hook)| *hook as usize == at));
    }
}
