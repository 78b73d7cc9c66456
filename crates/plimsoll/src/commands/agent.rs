//! `plimsoll agent`: makes loads for a plimsoll on another machine.

use crate::args::AgentArgs;
use crate::quantity::flag;
use plimsoll_fleet::AllowList;
use plimsoll_model::failure::{Failure, exit};

/// Serves until its coordinator is gone.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    plimsoll_fleet::serve(flag("--allow", AllowList::parse(&args.allow))?)?;
    Ok(exit::DONE)
}
