//! Starts plimsoll's own executable as a helper process. The first argument of the helper is a
//! reserved word in the position of a command. The helper handles the reserved word before the
//! command line is parsed.
//!
//! Not here: the helpers themselves (`build_keeper`, `part`, `pauser`).

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Returns the command that starts a helper with `word` as the first argument. Lists of processes
/// show the helper as `name`. ^C does not reach the helper. The helper's standard input is a pipe
/// that closes when the parent process exits.
pub fn helper_command(name: &str, word: &str) -> Command {
    // /proc/self/exe works even after the executable's file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).arg(word).process_group(0).stdin(Stdio::piped());
    command
}
