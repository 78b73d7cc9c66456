//! Replaces `serve.rs` in a build without web pages.

use crate::args::ServeArgs;
use plimsoll_model::failure::Failure;

/// Returns an error: this build has no web pages.
pub fn run(_: &ServeArgs) -> Result<u8, Failure> {
    Err(Failure::usage("serve: this plimsoll was built without web pages; build plimsoll with --features web"))
}
