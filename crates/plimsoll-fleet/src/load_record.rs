//! The record of a load ([`LoadRecord`]). A bus stores the record together with the load's
//! intervals (the measurements of 100 ms each). If the coordinator is lost, a run file can be
//! rebuilt from the record and the intervals. The record contains no secrets of the plan.
//!
//! Not here: rebuilding the run file (`fetch`).

use plimsoll_model::{Injector, PlanRecord};
use serde::{Deserialize, Serialize};

/// A load of a run, as stored on the bus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// The number of the load. Later loads of the run have higher numbers.
    pub epoch: u64,
    /// The start of the load, ms since the Unix epoch.
    pub started_unix_ms: u64,
    /// The plan of the load, without its secrets.
    pub plan: PlanRecord,
    /// For each share of the load, in order: the name and the load generator settings (injector) of
    /// the agent that sends the share.
    pub agents: Vec<(String, Injector)>,
}

impl LoadRecord {
    /// Encodes the record as JSON.
    pub fn encode_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a record; `None` if it is invalid.
    pub fn read(bytes: &[u8]) -> Option<LoadRecord> {
        let record: LoadRecord = serde_json::from_slice(bytes).ok()?;
        let injectors: Vec<Injector> = record.agents.iter().map(|(_, injector)| injector.clone()).collect();
        (record.plan.is_within_limits() && Injector::are_within_limits(&injectors)).then_some(record)
    }
}
