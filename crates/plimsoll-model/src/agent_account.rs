//! What one agent of a fleet did in one load ([`AgentAccount`]): its share of the requests, how
//! busy and how late it was, how well its clock is known, and how it was lost.
//!
//! Not here: how agents are reached and told what to do, and whether one of them was the limit.

use crate::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// The longest name of an agent, in bytes.
pub const AGENT_NAME_BYTES_MAX: usize = 256;
/// More requests than any load has: sums of so many accounts stay far below the largest number.
const REQUESTS_MAX: u64 = 1 << 48;

/// One agent's part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentAccount {
    /// Its name.
    pub name: String,
    /// Its worker threads.
    pub workers: u32,
    /// Where the requests of its part ended. What it could not send any more after it was lost is
    /// unsent.
    pub ledger: Ledger,
    /// How late it sent requests against the schedule, p99; `None` of a closed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_ns: Option<u64>,
    /// Share of the measured window that its busiest worker spent working, 0..=1.
    pub work_share: f64,
    /// How far its clock may be off: half of the shortest round trip.
    pub skew_ns_max: u64,
    /// Intervals that were recorded of it.
    pub frames: u64,
    /// Intervals that came again and were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frames_repeated: u64,
    /// Why it was lost before its part was done, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AgentAccount {
    /// An agent that has done nothing yet.
    pub fn new(name: &str, workers: u32) -> AgentAccount {
        AgentAccount {
            name: name.to_owned(),
            workers,
            ledger: Ledger::default(),
            lag_p99_ns: None,
            work_share: 0.0,
            skew_ns_max: 0,
            frames: 0,
            frames_repeated: 0,
            lost: None,
        }
    }

    /// Adds what the same agent did in another load: sums of counts, the worst of the rest. The
    /// order leaves no trace.
    pub fn merge(&mut self, other: &AgentAccount) {
        self.workers = self.workers.max(other.workers);
        self.ledger.merge(&other.ledger);
        self.lag_p99_ns = self.lag_p99_ns.max(other.lag_p99_ns);
        self.work_share = self.work_share.max(other.work_share);
        self.skew_ns_max = self.skew_ns_max.max(other.skew_ns_max);
        self.frames += other.frames;
        self.frames_repeated += other.frames_repeated;
        self.lost = self.lost.take().max(other.lost.clone());
    }

    /// Whether every figure lies where one can lie.
    pub fn is_bounded(&self) -> bool {
        let Ledger { scheduled, succeeded, failed, unsent, in_flight } = &self.ledger;
        let counts = [*scheduled, *succeeded, *unsent, *in_flight, self.frames, self.frames_repeated, self.skew_ns_max];
        self.name.len() <= AGENT_NAME_BYTES_MAX
            && counts.iter().chain(failed).all(|count| *count <= REQUESTS_MAX)
            && (0.0..=1e6).contains(&self.work_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_of_the_rest_the_worst_is_kept() {
        let mut sum = AgentAccount::new("a", 1);
        let ledger = Ledger { scheduled: 3, succeeded: 2, unsent: 1, ..Ledger::default() };
        let one = AgentAccount { ledger, lag_p99_ns: Some(5), work_share: 0.5, frames: 2, ..sum.clone() };
        let two = AgentAccount { lag_p99_ns: Some(3), lost: Some("gone".to_owned()), skew_ns_max: 7, ..one.clone() };
        sum.merge(&one);
        sum.merge(&two);
        assert_eq!((sum.ledger.scheduled, sum.ledger.unsent, sum.frames), (6, 2, 4));
        assert_eq!((sum.lag_p99_ns, sum.work_share, sum.skew_ns_max), (Some(5), 0.5, 7));
        assert_eq!((sum.lost.as_deref(), sum.is_bounded()), (Some("gone"), true));
        for broken in [
            AgentAccount { work_share: f64::NAN, ..one.clone() },
            AgentAccount { frames: u64::MAX, ..one.clone() },
            AgentAccount { name: "x".repeat(300), ..one.clone() },
        ] {
            assert!(!broken.is_bounded(), "{broken:?}");
        }
    }
}
