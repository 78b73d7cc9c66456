//! How messages travel between a coordinator and its agents ([`Bus`]): the few verbs that every
//! carrier has.
//!
//! Not here: carriers (`pipe_bus`, `nats_bus`; a simulated one in the tests), and what is said.

use crate::frame::TO_AGENT_BYTES_MAX;
use crate::load_record::LoadRecord;
use crate::message::{ToAgent, ToCoordinator};
use std::path::Path;
use std::time::Duration;

/// What came of an agent.
#[derive(Debug)]
pub enum BusEvent {
    /// It said something.
    Message(ToCoordinator),
    /// Nothing more comes of it, and why: a sentence about "it".
    Gone(String),
}

/// Carries messages. Agents are told apart by their number, from 0.
pub trait Bus {
    /// The coordinator's monotonic clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends a message to one agent. It may come late, twice, or not at all; nobody waits for it.
    fn send(&mut self, agent: usize, message: &ToAgent);

    /// The next that came, of which agent, and when, ns; waits for it for so long at most.
    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)>;

    /// Whether the user wants all to end.
    fn is_interrupted(&self) -> bool;

    /// All frames of a load that an agent has sent up to this one are recorded: no carrier need
    /// keep them.
    fn acknowledge(&mut self, agent: usize, epoch: u64, sequence: u64) {
        self.send(agent, &ToAgent::Commit { epoch, sequence });
    }

    /// The name of the run that the agents work for; empty where a carrier has one run only.
    fn run(&self) -> &str {
        ""
    }

    /// Whether messages travel at present. Where they do not, silence says nothing about agents.
    fn is_up(&self) -> bool {
        true
    }

    /// The longest plan that can be sent, in bytes.
    fn plan_bytes_max(&self) -> usize {
        TO_AGENT_BYTES_MAX
    }

    /// A load begins: a carrier that stores frames stores this beside them.
    fn begin_load(&mut self, _load: &LoadRecord) {}

    /// All frames of the load are recorded.
    fn forget_load(&mut self) {}

    /// Stores a run file where it can be fetched from anywhere; how, in a sentence. `None`: this
    /// carrier stores none.
    fn store_file(&mut self, _path: &Path) -> Result<Option<String>, String> {
        Ok(None)
    }
}
