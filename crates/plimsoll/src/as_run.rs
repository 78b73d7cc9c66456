//! A line of `run` that another tool's words come to: one interpretation and one record, whoever asks.
//!
//! Not here: other tools' words, and how a load is carried out.

use crate::args::{Cli, Command};
use crate::commands::run;
use crate::failure::Failure;
use crate::secrets::Hidden;
use clap::{CommandFactory, FromArgMatches};
use plimsoll_model::{Plan, RunAsked, Terms};

/// What a line of `run` asks for, without `plimsoll run` before it. What of it is secret stands in no message from here on.
pub fn as_run(words: &[String]) -> Result<(RunAsked<Plan>, Terms<String>), Failure> {
    let refused = |error: clap::Error| Failure::usage(crate::refused::sentence(&Cli::command(), &error));
    let line = ["plimsoll", "run"].into_iter().chain(words.iter().map(String::as_str));
    let matches = Cli::command().try_get_matches_from(line).map_err(refused)?;
    let cli = Cli::from_arg_matches(&matches).map_err(refused)?;
    if let (Some(command), Some((_, matches))) = (Cli::command().find_subcommand("run"), matches.subcommand()) {
        Hidden::of(command, matches).remember();
    }
    let Command::Run(args) = &cli.command else { return Err(Failure::usage("another tool's line is a line of run")) };
    run::asked(args)
}
