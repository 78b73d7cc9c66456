//! The target of a load, for the probes.

use crate::fetch::FetchTarget;
use plimsoll_model::{Failure, Plan};

/// The target of a load, with what a probe needs to find it.
#[derive(Clone, Copy)]
pub struct WatchTarget<'a> {
    /// The plan of a load on the target.
    pub plan: &'a Plan,
    /// Whether the target is on this machine.
    pub local: bool,
    /// Resolves the address of another URL, if load may go there.
    pub resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>,
}
