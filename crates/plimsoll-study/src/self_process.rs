//! This very program as another process: where it does its work beside plimsoll under a word in
//! place of a command, before anything is parsed.
//!
//! Not here: what it does there (`build_keeper`, `part`, `pauser`).

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The command that starts it: called `name` where processes are listed, with `word` for a first
/// argument, out of reach of the terminal's ^C, and with a pipe for its standard input, by which it
/// learns that whoever started it is gone.
pub fn command(name: &str, word: &str) -> Command {
    // Under this name it is found also after the file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).arg(word).process_group(0).stdin(Stdio::piped());
    command
}
