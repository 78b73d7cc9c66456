//! The interface of a carrier of messages between a coordinator and its agents ([`Bus`]).
//!
//! Not here: the carriers (`pipe_bus`, `nats_bus`; a simulated one in tests), and the messages.

use crate::frame::TO_AGENT_BYTES_MAX;
use crate::load_record::LoadRecord;
use crate::message::{ToAgent, ToCoordinator};
use std::path::Path;
use std::time::Duration;

/// An event of one agent, as the coordinator receives it.
#[derive(Debug)]
pub enum BusEvent {
    /// A message of the agent.
    Message(ToCoordinator),
    /// The connection to the agent has ended. The reason is a sentence about "it", the agent.
    Gone(String),
}

/// Carries messages between a coordinator and its agents. Agents have numbers from 0.
pub trait Bus {
    /// The time of the coordinator's monotonic clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends a message to one agent without waiting. The message may arrive late, twice, or never.
    fn send(&mut self, agent: usize, message: &ToAgent);

    /// Waits at most `patience` for the next event. Returns the agent's number, the time of arrival
    /// in ns, and the event.
    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)>;

    /// Whether the user has interrupted the program.
    fn is_interrupted(&self) -> bool;

    /// Tells an agent that all its frames of a load up to `sequence` are recorded. A carrier that
    /// stores frames may then delete them.
    fn acknowledge(&mut self, agent: usize, epoch: u64, sequence: u64) {
        self.send(agent, &ToAgent::Commit { epoch, sequence });
    }

    /// The name of the run; empty for a carrier that serves a single run.
    fn run(&self) -> &str {
        ""
    }

    /// Whether the carrier currently delivers messages. While it does not, a silent agent is not
    /// considered lost.
    fn is_up(&self) -> bool {
        true
    }

    /// The size of the largest plan that the carrier can send, bytes.
    fn plan_bytes_max(&self) -> usize {
        TO_AGENT_BYTES_MAX
    }

    /// Tells the carrier that a load begins. A carrier that stores frames also stores this record.
    fn begin_load(&mut self, _load: &LoadRecord) {}

    /// Tells the carrier that all frames of the load are recorded, so that stored ones can be
    /// deleted.
    fn forget_load(&mut self) {}

    /// Stores a run file so that it can be fetched later. Returns a sentence about the place.
    /// `None` means that this carrier stores no files.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
