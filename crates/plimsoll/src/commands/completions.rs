//! `plimsoll completions`: prints a script with which a shell completes commands, flags and the
//! values of flags. The script is generated from the parser.
//!
//! Not here: the values that a flag accepts (`args`).

use crate::args::{Cli, CompletionShell, CompletionsArgs};
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::print;

/// Prints the completion script of a shell. Returns the exit code.
pub fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let shell = match args.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(exit::SUCCESS)
}
