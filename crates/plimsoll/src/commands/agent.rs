//! `plimsoll agent`: makes loads for a plimsoll on another machine.

use crate::args::AgentArgs;
use crate::quantity::flag;
use plimsoll_fleet::AllowList;
use plimsoll_model::failure::{Failure, exit};
use std::io::IsTerminal;

/// Serves until its coordinator is gone.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "--stdio: only a coordinator uses this command; plimsoll run --fleet ssh://HOST starts it on HOST",
        ));
    }
    plimsoll_fleet::serve(flag("--allow", AllowList::parse(&args.allow))?)?;
    Ok(exit::DONE)
}
