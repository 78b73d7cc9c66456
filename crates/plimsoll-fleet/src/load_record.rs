//! The record of a load that a bus stores beside the intervals ([`LoadRecord`]), so that a run file
//! can be made when the coordinator is lost. It has no secrets of the plan.
//!
//! Not here: making such a run file (`fetch`).

use plimsoll_model::{Injector, PlanRecord};
use serde::{Deserialize, Serialize};

/// A load of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Its number; later loads have higher ones.
    pub epoch: u64,
    /// When it began, ms since 1970.
    pub started_unix_ms: u64,
    /// The plan without its secrets.
    pub plan: PlanRecord,
    /// The agents of its parts, in order.
    pub agents: Vec<(String, Injector)>,
}

impl LoadRecord {
    /// Encodes the record.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a record; `None`: invalid.
    pub fn read(bytes: &[u8]) -> Option<LoadRecord> {
        let record: LoadRecord = serde_json::from_slice(bytes).ok()?;
        let injectors: Vec<Injector> = record.agents.iter().map(|(_, injector)| injector.clone()).collect();
        (record.plan.is_bounded() && Injector::are_bounded(&injectors)).then_some(record)
    }
}
