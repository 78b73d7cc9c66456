//! Why a command ends without its result, and with which exit code. The text is one sentence that names the flag or
//! file and the way out.

use std::fmt;

/// The exit codes of plimsoll.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// A `--fail-if` was crossed, or nothing succeeded: no answer, no load line, no block that counts.
    pub const CROSSED: u8 = 1;
    /// Bad use, or cannot start.
    pub const USAGE: u8 = 2;
    /// Interrupted, after reporting.
    pub const INTERRUPTED: u8 = 130;
}

/// One sentence for the user, and the end of the command.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// What was asked cannot be meant.
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// What was asked cannot be started or written.
    pub fn start(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<plimsoll_engine::Error> for Failure {
    fn from(error: plimsoll_engine::Error) -> Failure {
        Failure(error.to_string())
    }
}
