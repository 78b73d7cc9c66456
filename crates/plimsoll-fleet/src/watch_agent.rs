//! An agent that only measures ("watches") a server on its machine, as a state machine without I/O
//! ([`WatchAgent`]). The inputs of the state machine are the time and messages; its outputs are
//! actions.
//!
//! The agent runs no load, and ends when its coordinator is silent for
//! [`COORDINATOR_SILENCE_NS_MAX`]. Not here: readings (`plimsoll-probe`), and the transport of
//! messages (`watch_service`).

use crate::agent::{COORDINATOR_SILENCE_NS_MAX, HEARTBEAT_NS};
use crate::message::{AgentPhase, CalibrationTask, Hello, ToAgent, ToCoordinator, WatchTask};

/// An action that the owner of a [`WatchAgent`] must carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchAgentAction {
    /// Send this message to the coordinator.
    Send(ToCoordinator),
    /// Measure this server instead of any earlier server.
    Begin(WatchTask),
    /// Take a sample of readings now, and send it with this number.
    Sample(u32),
    /// End the session.
    Leave,
}

/// The state of an agent that measures a server.
#[derive(Debug)]
pub struct WatchAgent {
    hello: Hello,
    /// The current task, and the reply to the task. The agent keeps the reply, so that the agent
    /// can repeat a lost reply.
    task: Option<(WatchTask, Option<ToCoordinator>)>,
    last_message_ns: u64,
    last_heartbeat_ns: Option<u64>,
}

impl WatchAgent {
    /// Creates an agent without a task.
    pub fn new(hello: Hello, now_ns: u64) -> WatchAgent {
        WatchAgent { hello, task: None, last_message_ns: now_ns, last_heartbeat_ns: None }
    }

    /// Handles a message of the coordinator, and appends the resulting actions.
    pub fn handle_message(&mut self, now_ns: u64, message: ToAgent, acts: &mut Vec<WatchAgentAction>) {
        self.last_message_ns = now_ns;
        match message {
            ToAgent::Ping { number } => {
                acts.push(WatchAgentAction::Send(ToCoordinator::Pong { number, agent_ns: now_ns }))
            }
            ToAgent::Watch(task) => match &self.task {
                Some((known, answer)) if *known == task => acts.extend(answer.clone().map(WatchAgentAction::Send)),
                _ => {
                    self.task = Some((task.clone(), None));
                    acts.push(WatchAgentAction::Begin(task));
                }
            },
            ToAgent::Sample { number } => acts.push(WatchAgentAction::Sample(number)),
            ToAgent::Prepare(task) => {
                let reason = "the agent only observes a server (--watch-only), and generates no load".to_owned();
                acts.push(WatchAgentAction::Send(ToCoordinator::Refused { epoch: task.epoch, reason }));
            }
            ToAgent::Calibrate(CalibrationTask { number, .. }) => {
                let result = Err("the agent only observes a server (--watch-only), and generates no load".to_owned());
                acts.push(WatchAgentAction::Send(ToCoordinator::Calibrated { number, result }));
            }
            ToAgent::Leave => acts.push(WatchAgentAction::Leave),
            // This agent ignores messages about loads, because it runs no load. Lease messages only
            // show that the coordinator is alive.
            ToAgent::Start { .. } | ToAgent::Commit { .. } | ToAgent::Stop { .. } | ToAgent::Lease => {}
        }
    }

    /// Handles the result of starting the current task, and returns the reply to send.
    pub fn handle_watch_result(&mut self, result: Result<(), String>) -> ToCoordinator {
        let answer = ToCoordinator::Watching(result);
        if let Some((_, kept)) = &mut self.task {
            *kept = Some(answer.clone());
        }
        answer
    }

    /// Appends the actions that are due now: heartbeats, and the end of the session.
    pub fn poll(&mut self, now_ns: u64, acts: &mut Vec<WatchAgentAction>) {
        if now_ns.saturating_sub(self.last_message_ns) >= COORDINATOR_SILENCE_NS_MAX {
            acts.push(WatchAgentAction::Leave);
        }
        if self.last_heartbeat_ns.is_none_or(|beat_ns| now_ns >= beat_ns + HEARTBEAT_NS) {
            self.last_heartbeat_ns = Some(now_ns);
            // Until the first task arrives, the coordinator may not know the agent, so the agent
            // sends its hello message.
            if self.task.is_none() {
                acts.push(WatchAgentAction::Send(ToCoordinator::Hello(self.hello.clone())));
            }
            acts.push(WatchAgentAction::Send(ToCoordinator::Beat { epoch: 0, phase: AgentPhase::Idle }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AgentLoadTask;
    use plimsoll_model::Spin;

    const SECOND: u64 = 1_000_000_000;

    fn watch_task(port: u16) -> WatchTask {
        let addresses = vec![([10, 0, 0, 1], port).into()];
        WatchTask { addresses, pid: None, process: None, cgroup: None, thorough: false }
    }

    /// Returns a text with one letter for each action.
    fn action_letters(act: impl FnOnce(&mut Vec<WatchAgentAction>)) -> String {
        let mut acts = Vec::new();
        act(&mut acts);
        let letter = |act: &WatchAgentAction| match act {
            WatchAgentAction::Send(ToCoordinator::Hello(_)) => 'h',
            WatchAgentAction::Send(ToCoordinator::Pong { .. }) => 'o',
            WatchAgentAction::Send(ToCoordinator::Beat { .. }) => 'b',
            WatchAgentAction::Send(ToCoordinator::Watching(Ok(()))) => 'y',
            WatchAgentAction::Send(ToCoordinator::Watching(Err(_)) | ToCoordinator::Refused { .. }) => 'n',
            WatchAgentAction::Send(_) => '?',
            WatchAgentAction::Begin(_) => 'B',
            WatchAgentAction::Sample(_) => 'S',
            WatchAgentAction::Leave => 'L',
        };
        acts.iter().map(letter).collect()
    }

    #[test]
    fn a_repeated_watch_request_gets_the_same_reply() {
        let mut agent = WatchAgent::new(Hello::default(), 0);
        assert_eq!(action_letters(|acts| agent.poll(0, acts)), "hb");
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Ping { number: 1 }, acts)), "o");
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Watch(watch_task(80)), acts)), "B");
        assert_eq!(
            action_letters(|acts| agent.handle_message(0, ToAgent::Watch(watch_task(80)), acts)),
            "",
            "it is at it"
        );
        assert_eq!(agent.handle_watch_result(Ok(())), ToCoordinator::Watching(Ok(())));
        assert_eq!(
            action_letters(|acts| agent.handle_message(0, ToAgent::Watch(watch_task(80)), acts)),
            "y",
            "asked again"
        );
        assert_eq!(
            action_letters(|acts| agent.handle_message(0, ToAgent::Watch(watch_task(81)), acts)),
            "B",
            "another server"
        );
        agent.handle_watch_result(Err("no".into()));
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Watch(watch_task(81)), acts)), "n");
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Sample { number: 1 }, acts)), "S");
        assert_eq!(action_letters(|acts| agent.poll(SECOND / 10, acts)), "");
        assert_eq!(action_letters(|acts| agent.poll(SECOND / 5, acts)), "b");
    }

    #[test]
    fn a_watch_agent_refuses_loads_and_ends_without_a_coordinator() {
        let mut agent = WatchAgent::new(Hello::default(), 0);
        let (workers, spin, preflight, plan) = (None, Spin::Auto, false, vec![1]);
        let weights = Vec::new();
        let load = AgentLoadTask {
            epoch: 1,
            share_index: 0,
            share_count: 1,
            weights,
            workers,
            spin,
            preflight,
            plan,
            signature: None,
        };
        assert_eq!(action_letters(|acts| agent.handle_message(SECOND, ToAgent::Prepare(Box::new(load)), acts)), "n");
        assert_eq!(action_letters(|acts| agent.poll(10 * SECOND, acts)), "hb");
        assert_eq!(action_letters(|acts| agent.poll(11 * SECOND, acts)), "Lhb");
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Leave, acts)), "L");
    }
}
