//! `plimsoll man`: generates manual pages from the parser, for plimsoll and for each command.
//!
//! Not here: the texts about flags, which are their help texts (`args`).

use crate::args::{Cli, ManArgs, help};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::print;
use plimsoll_sys::{output_file, system_text};
use std::path::Path;

/// The text in the footer of each page.
const PAGE_FOOTER_TEXT: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// Prints the page of plimsoll, or writes all pages into a folder. Returns the exit code.
pub fn run(args: &ManArgs) -> Result<u8, Failure> {
    let mut cli = help::commands_in_groups(Cli::command(), true).disable_help_subcommand(true);
    cli.build();
    match &args.dir {
        None => print(&String::from_utf8_lossy(&render_manual_page(&cli)?)),
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|error| write_failure(dir, &error))?;
            write(&cli, dir)?;
            cli.get_subcommands().try_for_each(|command| write(command, dir))?;
        }
    }
    Ok(exit::SUCCESS)
}

fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::cannot_start(format!("'{}' cannot be written: {}", path.display(), system_text(error)))
}

/// Returns the manual page of one command, in roff.
fn render_manual_page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let unmade = |error: std::io::Error| Failure::cannot_start(format!("the manual page: {}", system_text(&error)));
    Man::new(command.clone()).source(PAGE_FOOTER_TEXT).render(&mut page).map_err(unmade)?;
    Ok(page)
}

/// Writes the manual page of one command, such as `plimsoll.1` or `plimsoll-run.1`.
fn write(command: &Command, dir: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = dir.join(format!("{name}.1"));
    output_file::write(&path, &render_manual_page(command)?).map_err(|error| write_failure(&path, &error))
}
