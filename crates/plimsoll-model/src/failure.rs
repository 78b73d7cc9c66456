//! The reason why a command ends without its result ([`Failure`]), and the exit codes. The reason
//! is one sentence that names the flag or file, and says what to do.
//!
//! Not here: the sentences, which the code that detects a failure writes, and how a terminal shows
//! a sentence.

use std::fmt;

/// The exit codes of plimsoll.
pub mod exit {
    /// The command succeeded.
    pub const SUCCESS: u8 = 0;
    /// A `--fail-if` condition became true, or nothing succeeded: no response arrived, or no load
    /// line (sustained rate) was found.
    pub const NEGATIVE_RESULT: u8 = 1;
    /// The command line is wrong, or the command cannot start.
    pub const USAGE: u8 = 2;
    /// The command has no conclusion: no verdict, or a `--fail-if` condition that the measurements
    /// could not decide. The message says which further measurement would decide the verdict or the
    /// condition.
    pub const NO_CONCLUSION: u8 = 3;
    /// The user interrupted the command, which still reported its results.
    pub const INTERRUPTED: u8 = 130;
    /// The terminal closed (SIGHUP), which interrupted the command.
    pub const TERMINAL_CLOSED: u8 = 129;
    /// SIGTERM ended a command that replaces another tool (`plimsoll wrk`), because the original
    /// tool does not catch SIGTERM.
    pub const TERMINATED: u8 = 143;
}

/// The reason why a command ends without its result: one sentence for the user.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Creates a failure for a command that cannot be understood or resolved (exit code 2).
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// Creates a failure for a command that cannot start, or cannot write its result (exit code 2).
    pub fn cannot_start(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
