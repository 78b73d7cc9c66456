//! The carrier of messages between a coordinator and its agents ([`Bus`]), as a small trait.
//!
//! Not here: carriers (`pipe_bus`, `nats_bus`; a simulated one in tests), and the messages.

use crate::frame::TO_AGENT_BYTES_MAX;
use crate::load_record::LoadRecord;
use crate::message::{ToAgent, ToCoordinator};
use std::path::Path;
use std::time::Duration;

/// An event from an agent.
#[derive(Debug)]
pub enum BusEvent {
    /// A message.
    Message(ToCoordinator),
    /// The end of its connection, with the reason: a sentence about "it".
    Gone(String),
}

/// Carries messages. Agents have numbers from 0.
pub trait Bus {
    /// The coordinator's monotonic clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends a message to one agent without waiting. It may arrive late, twice, or never.
    fn send(&mut self, agent: usize, message: &ToAgent);

    /// The next event with its agent and time, ns; waits at most `patience`.
    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)>;

    /// Whether the user stopped the program.
    fn is_interrupted(&self) -> bool;

    /// Reports that all frames of a load from an agent up to this one are recorded, so that a
    /// carrier may drop them.
    fn acknowledge(&mut self, agent: usize, epoch: u64, sequence: u64) {
        self.send(agent, &ToAgent::Commit { epoch, sequence });
    }

    /// The name of the run; empty for a carrier with a single run.
    fn run(&self) -> &str {
        ""
    }

    /// Whether messages get through at present. If not, silence says nothing about agents.
    fn is_up(&self) -> bool {
        true
    }

    /// The longest plan that can be sent, in bytes.
    fn plan_bytes_max(&self) -> usize {
        TO_AGENT_BYTES_MAX
    }

    /// Begins a load; a carrier that stores frames also stores this record.
    fn begin_load(&mut self, _load: &LoadRecord) {}

    /// All frames of the load are recorded.
    fn forget_load(&mut self) {}

    /// Stores a run file for later fetching. Returns a sentence about its place; `None`: this
    /// carrier stores none.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
