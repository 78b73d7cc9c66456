//! The target of a load, as it is watched.

use crate::fetch::FetchTarget;
use plimsoll_model::{Failure, Plan};

/// The target of a load, as it is watched.
#[derive(Clone, Copy)]
pub struct WatchTarget<'a> {
    /// A load on it.
    pub plan: &'a Plan,
    /// Whether it is on this machine.
    pub local: bool,
    /// Finds another address that is asked besides: the one of a URL, if load may go there.
    pub resolve: &'a dyn Fn(&str) -> Result<FetchTarget, Failure>,
}
