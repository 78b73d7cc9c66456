//! What belongs to one machine that makes load, and not to the load: a plan that several carry out has one of these each.

use crate::addresses::AddressRange;
use serde::{Deserialize, Serialize};

/// Whether workers wait for events by polling without sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// Where a core is idle, and only as long as nobody else needs it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How one machine makes its part of a load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Injector {
    /// Number of worker threads.
    pub workers: u32,
    /// How they wait.
    pub spin: Spin,
    /// Local addresses, taken in turn; empty: the system chooses.
    pub sources: Vec<AddressRange>,
}

impl Injector {
    /// The same with no more workers than there is something to do for, and at least one.
    pub fn at_most(&self, workers: u64) -> Injector {
        let workers = self.workers.min(u32::try_from(workers).unwrap_or(u32::MAX)).max(1);
        Injector { workers, ..self.clone() }
    }
}

impl Default for Injector {
    /// One worker, from any address.
    fn default() -> Injector {
        Injector { workers: 1, spin: Spin::Auto, sources: Vec::new() }
    }
}
