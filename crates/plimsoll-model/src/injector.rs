//! What belongs to one machine that makes load, and not to the load: a plan that several carry out
//! has one of these each.

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
    /// How many local addresses the loads of an experiment have come from until this one, those of
    /// this one with them; `None`: that was not counted, as in files of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources_so_far: Option<u64>,
}

impl Injector {
    /// How many local addresses loads have come from until this one; `None` where that cannot be
    /// told.
    pub fn sources_so_far(&self) -> Option<u64> {
        // Where nothing says otherwise, the system has one.
        self.sources_so_far.or(self.sources.is_empty().then_some(1))
    }

    /// The same with no more workers than there is something to do for, and at least one.
    pub fn at_most(&self, workers: u64) -> Injector {
        let workers = self.workers.min(u32::try_from(workers).unwrap_or(u32::MAX)).max(1);
        Injector { workers, ..self.clone() }
    }
}

impl Default for Injector {
    /// One worker, from any address.
    fn default() -> Injector {
        Injector { workers: 1, spin: Spin::Auto, sources: Vec::new(), sources_so_far: None }
    }
}
