//! What one agent of a fleet did in one load ([`AgentAccount`]): its requests, its utilisation, its
//! lag behind the schedule and its clock error. If the agent was lost, the account has the reason.
//!
//! Not here: how agents are reached and controlled, and whether an agent limited the load.

use crate::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// The longest name of an agent, in bytes.
pub const AGENT_NAME_BYTES_MAX: usize = 256;
/// Upper bound for a request count: sums over all accounts stay far below u64::MAX.
const REQUESTS_MAX: u64 = 1 << 48;

/// What one agent (a machine of a fleet) did in a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentAccount {
    /// The agent's name.
    pub name: String,
    /// Number of the agent's worker threads.
    pub workers: u32,
    /// Outcomes of the agent's requests. Requests that a lost agent could not send count as unsent.
    pub ledger: Ledger,
    /// Lag of requests behind the schedule, p99, ns; `None` for a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_ns: Option<u64>,
    /// Share of the measured window that the agent's busiest worker spent working, 0..=1.
    pub work_share: f64,
    /// Largest possible clock error of the agent, ns: half of the shortest round trip.
    pub skew_ns_max: u64,
    /// Number of intervals (measurements of 100 ms each) recorded from this agent.
    #[serde(rename = "frames")]
    pub intervals_recorded: u64,
    /// Number of intervals (measurements of 100 ms each) that the agent sent again, and that were
    /// dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frames_repeated: u64,
    /// Why the agent was lost before the end of its part of the load; `None` means that the agent
    /// finished.
    #[serde(rename = "lost", default, skip_serializing_if = "Option::is_none")]
    pub loss_reason: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AgentAccount {
    /// Creates an account without requests.
    pub fn new(name: &str, workers: u32) -> AgentAccount {
        AgentAccount {
            name: name.to_owned(),
            workers,
            ledger: Ledger::default(),
            lag_p99_ns: None,
            work_share: 0.0,
            skew_ns_max: 0,
            intervals_recorded: 0,
            frames_repeated: 0,
            loss_reason: None,
        }
    }

    /// Adds the account of the same agent in another load to this account. Counts are added; for
    /// every other figure, the result is the worse of the two values. The order of merging does not
    /// matter.
    pub fn merge(&mut self, other: &AgentAccount) {
        self.workers = self.workers.max(other.workers);
        self.ledger.merge(&other.ledger);
        self.lag_p99_ns = self.lag_p99_ns.max(other.lag_p99_ns);
        self.work_share = self.work_share.max(other.work_share);
        self.skew_ns_max = self.skew_ns_max.max(other.skew_ns_max);
        self.intervals_recorded += other.intervals_recorded;
        self.frames_repeated += other.frames_repeated;
        self.loss_reason = self.loss_reason.take().max(other.loss_reason.clone());
    }

    /// Returns whether every figure is in its valid range.
    pub fn is_within_limits(&self) -> bool {
        let Ledger { scheduled, succeeded, failed, unsent, in_flight } = &self.ledger;
        let counts = [
            *scheduled,
            *succeeded,
            *unsent,
            *in_flight,
            self.intervals_recorded,
            self.frames_repeated,
            self.skew_ns_max,
        ];
        self.name.len() <= AGENT_NAME_BYTES_MAX
            && counts.iter().chain(failed).all(|count| *count <= REQUESTS_MAX)
            && (0.0..=1e6).contains(&self.work_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_accounts_sums_counts_and_keeps_the_worst_values() {
        let mut sum = AgentAccount::new("a", 1);
        let ledger = Ledger { scheduled: 3, succeeded: 2, unsent: 1, ..Ledger::default() };
        let one = AgentAccount { ledger, lag_p99_ns: Some(5), work_share: 0.5, intervals_recorded: 2, ..sum.clone() };
        let two =
            AgentAccount { lag_p99_ns: Some(3), loss_reason: Some("gone".to_owned()), skew_ns_max: 7, ..one.clone() };
        sum.merge(&one);
        sum.merge(&two);
        assert_eq!((sum.ledger.scheduled, sum.ledger.unsent, sum.intervals_recorded), (6, 2, 4));
        assert_eq!((sum.lag_p99_ns, sum.work_share, sum.skew_ns_max), (Some(5), 0.5, 7));
        assert_eq!((sum.loss_reason.as_deref(), sum.is_within_limits()), (Some("gone"), true));
        for broken in [
            AgentAccount { work_share: f64::NAN, ..one.clone() },
            AgentAccount { intervals_recorded: u64::MAX, ..one.clone() },
            AgentAccount { name: "x".repeat(300), ..one.clone() },
        ] {
            assert!(!broken.is_within_limits(), "{broken:?}");
        }
    }
}
