//! `plimsoll agent`: makes loads for a plimsoll on another machine, or watches a server for it.

use crate::args::AgentArgs;
use crate::quantity::flag;
use plimsoll_fleet::AllowList;
use plimsoll_model::failure::{Failure, exit};
use std::io::IsTerminal;

/// Serves until its coordinator is gone.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "--stdio: a coordinator talks to this, and no person; plimsoll run --fleet ssh://HOST or --watch ssh://HOST starts it on HOST",
        ));
    }
    if args.watch_only {
        plimsoll_fleet::serve_watch()?;
        return Ok(exit::DONE);
    }
    plimsoll_fleet::serve(flag("--allow", AllowList::parse(&args.allow))?)?;
    Ok(exit::DONE)
}
