//! `plimsoll serve` in a build without pages. The twin is `serve.rs`.

use crate::args::ServeArgs;
use plimsoll_model::failure::Failure;

/// Says that there are none.
pub fn run(_: &ServeArgs) -> Result<u8, Failure> {
    Err(Failure::usage("serve: this plimsoll was built without its pages; build it with --features web"))
}
