//! The part of a plan that belongs to one machine ([`Injector`]): workers and local addresses. A
//! plan for several machines has one [`Injector`] for each machine.

use crate::addresses::AddressRange;
use serde::{Deserialize, Serialize};

/// Whether idle workers poll for events instead of sleeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// Idle workers poll if the machine has more cores than workers, and as long as no other thread
    /// needs the worker's core.
    #[default]
    Auto,
    /// Idle workers always poll.
    On,
    /// Idle workers never poll.
    Off,
}

/// The settings with which one machine generates its part of a load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Injector {
    /// Number of worker threads.
    pub workers: u32,
    /// Whether idle workers poll for events instead of sleeping.
    pub spin: Spin,
    /// Local addresses from which the worker threads open connections, in turn. If the list is
    /// empty, the operating system chooses the local address.
    pub sources: Vec<AddressRange>,
    /// Number of distinct local addresses that this load and all earlier loads used together.
    /// `None` means that the addresses were not counted, as in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources_so_far: Option<u64>,
}

impl Injector {
    /// Returns the number of distinct local addresses that this load and all earlier loads used
    /// together; `None` if unknown.
    pub fn local_addresses_so_far(&self) -> Option<u64> {
        // If the operating system chooses the local address, the machine uses one address.
        self.sources_so_far.or(self.sources.is_empty().then_some(1))
    }

    /// Returns a copy of the injector with at most `workers` workers, and at least one worker.
    pub fn with_workers_at_most(&self, workers: u64) -> Injector {
        let workers = self.workers.min(u32::try_from(workers).unwrap_or(u32::MAX)).max(1);
        Injector { workers, ..self.clone() }
    }
}

impl Default for Injector {
    /// Creates an injector (settings of one load generator) with one worker. The operating system
    /// chooses the local address.
    fn default() -> Injector {
        Injector { workers: 1, spin: Spin::Auto, sources: Vec::new(), sources_so_far: None }
    }
}
