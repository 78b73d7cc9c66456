//! Arguments of the commands that install plimsoll on a machine: completions and manual pages.
//!
//! Not here: generating completions and manual pages (`commands`).

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// A shell for which plimsoll generates completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    /// In bash, run: source <(plimsoll completions bash)
    Bash,
    /// In zsh, run: plimsoll completions zsh > DIR/_plimsoll (DIR is a folder of $fpath)
    Zsh,
    /// In fish, run: plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish
    Fish,
}

/// `plimsoll completions`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll\n  \
    plimsoll completions zsh > ~/.zfunc/_plimsoll\n  \
    plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: CompletionShell,
}

/// `plimsoll man`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll man | man -l -\n  \
    plimsoll man ~/.local/share/man/man1   plimsoll.1, plimsoll-run.1, ...")]
pub struct ManArgs {
    /// Write a page for each command into this folder [default: print the page of plimsoll]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
