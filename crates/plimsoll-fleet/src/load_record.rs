//! What is loaded, as a bus stores it beside the intervals ([`LoadRecord`]): enough to make a run
//! file of them when their coordinator is gone. It has no secret of the plan.
//!
//! Not here: how such a run file is made (`fetch`).

use plimsoll_model::{Injector, PlanRecord};
use serde::{Deserialize, Serialize};

/// A load of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Its number: later loads have higher ones.
    pub epoch: u64,
    /// When it began, ms since 1970.
    pub started_unix_ms: u64,
    /// What is kept of its plan.
    pub plan: PlanRecord,
    /// Who makes its parts, in their order.
    pub agents: Vec<(String, Injector)>,
}

impl LoadRecord {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads them; `None`: no coordinator stored that.
    pub fn read(bytes: &[u8]) -> Option<LoadRecord> {
        let record: LoadRecord = serde_json::from_slice(bytes).ok()?;
        let injectors: Vec<Injector> = record.agents.iter().map(|(_, injector)| injector.clone()).collect();
        (record.plan.is_bounded() && Injector::are_bounded(&injectors)).then_some(record)
    }
}
