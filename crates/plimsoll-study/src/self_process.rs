//! Plimsoll's own program as a helper process: it runs under a word in place of a command, before
//! anything is parsed.
//!
//! Not here: the helpers (`build_keeper`, `part`, `pauser`).

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The command that starts a helper: listed as `name`, with `word` as its first argument, out of
/// reach of ^C. Its standard input is a pipe that closes when the parent is gone.
pub fn command(name: &str, word: &str) -> Command {
    // This path works even after the file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).arg(word).process_group(0).stdin(Stdio::piped());
    command
}
