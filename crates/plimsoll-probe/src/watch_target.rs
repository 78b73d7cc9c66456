//! The target of a load, as the probes need to know it.

use crate::fetch::FetchTarget;
use plimsoll_model::{Failure, Plan};

/// The target of a load, with the facts that a probe needs to find the target.
#[derive(Clone, Copy)]
pub struct WatchTarget<'a> {
    /// The plan of a load on the target.
    pub plan: &'a Plan,
    /// Whether the target is on this machine.
    pub local: bool,
    /// Resolves the address of a URL other than the target, such as a URL of metrics, if the user
    /// has permitted requests to that address.
    pub resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>,
}
