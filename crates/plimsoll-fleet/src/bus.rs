//! The interface of a message transport between a coordinator and its agents ([`Bus`]).
//!
//! Not here: the transports (`pipe_bus`, `nats_bus`; a simulated one in tests), and the messages.

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
    /// The connection to the agent has ended. The reason is a sentence to which the coordinator
    /// adds the agent's name.
    Gone(String),
}

/// A transport of messages between a coordinator and its agents. Agents have numbers from 0.
pub trait Bus {
    /// Returns the time of the coordinator's monotonic clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends a message to one agent without waiting. The message may arrive late, twice, or never.
    fn send(&mut self, agent: usize, message: &ToAgent);

    /// Waits at most `patience` for the next event. Returns the agent's number, the time of arrival
    /// in ns, and the event.
    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)>;

    /// Whether the user has interrupted the program.
    fn is_interrupted(&self) -> bool;

    /// Tells an agent that all its frames (result messages) of a load up to number `sequence` are
    /// recorded. A transport that stores frames may delete recorded frames.
    fn acknowledge(&mut self, agent: usize, epoch: u64, sequence: u64) {
        self.send(agent, &ToAgent::Commit { epoch, sequence });
    }

    /// Returns the name of the run; empty for a transport that serves a single run.
    fn run_name(&self) -> &str {
        ""
    }

    /// Whether the transport currently delivers messages. During an outage, a silent agent does not
    /// count as lost.
    fn is_up(&self) -> bool {
        true
    }

    /// Returns the size of the largest plan that the transport can send, bytes.
    fn plan_bytes_max(&self) -> usize {
        TO_AGENT_BYTES_MAX
    }

    /// Tells the transport that a load begins. A transport that stores frames (result messages)
    /// also stores the record of the load, so that a lost run can be rebuilt.
    fn begin_load(&mut self, _load: &LoadRecord) {}

    /// Tells the transport that the run file contains all frames (result messages) of the load, so
    /// that copies stored by the transport can be deleted.
    fn delete_stored_load(&mut self) {}

    /// Stores a run file so that it can be fetched later. Returns a sentence that says from where
    /// the run file can be fetched. `None` means that this transport stores no files.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
