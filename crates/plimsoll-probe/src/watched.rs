//! The target of a load, for the probes.

use crate::fetch::FetchTarget;
use plimsoll_model::{Failure, Plan};

/// The target of a load, as it is watched.
#[derive(Clone, Copy)]
pub struct WatchTarget<'a> {
    /// A load on it.
    pub plan: &'a Plan,
    /// Whether the target is on this machine.
    pub local: bool,
    /// Resolves the address of another URL, if load may go there.
    pub resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>,
}
