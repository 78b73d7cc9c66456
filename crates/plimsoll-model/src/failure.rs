//! Why a command ends without its result, and with which exit code: one sentence that names the
//! flag or file and the way out.
//!
//! Not here: the sentences (they are made where something fails), and how a terminal shows them.

use std::fmt;

/// The exit codes of plimsoll.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// A `--fail-if` was crossed, or nothing succeeded: no answer, no load line.
    pub const CROSSED: u8 = 1;
    /// Bad use, or cannot start.
    pub const USAGE: u8 = 2;
    /// What was asked could not be told: no verdict, or a gate that could not decide. The answer
    /// says what would tell.
    pub const UNKNOWN: u8 = 3;
    /// Interrupted, after reporting.
    pub const INTERRUPTED: u8 = 130;
    /// The same because the terminal went away (SIGHUP).
    pub const HUNG_UP: u8 = 129;
}

/// One sentence for the user, and the end of the command.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// What was asked cannot be resolved.
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
