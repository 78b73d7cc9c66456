//! `plimsoll completions`: what a shell needs to complete commands, flags and their words, from the
//! parser's own list.
//!
//! Not here: which words a flag has (`args`).

use crate::args::{Cli, CompletionShell, CompletionsArgs};
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::print;

/// Prints the completions of a shell.
pub fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let shell = match args.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(exit::DONE)
}
