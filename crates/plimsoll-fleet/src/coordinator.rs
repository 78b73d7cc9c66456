//! The coordinator of a fleet as a state machine without I/O ([`Coordinator`]). The inputs of the
//! state machine are the time and messages; its outputs are messages and events. The coordinator
//! repeats a message to an agent until a message of the agent shows that the coordinator's message
//! arrived.
//!
//! A part is the share of a load that one agent sends. A frame is a numbered result message with
//! the measurements of one tick (100 ms). The last frame (result message) of an agent's part, the
//! seal, has the totals of the part. Lease messages show agents that the coordinator is alive.
//!
//! Not here: merging intervals (`merge`), waiting for messages (`fleet_load`), and transporting
//! messages (`bus`).

use crate::clock_offset::ClockOffset;
use crate::delivery::Inbox;
use crate::message::{AgentLoadTask, AgentPhase, CalibrationTask, Hello, PartTotals, ToAgent, ToCoordinator};
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{Injector, Interval};
use std::collections::BTreeMap;

/// The time without a message after which an agent counts as lost, ns (4 s).
pub const SILENCE_NS_MAX: u64 = 4_000_000_000;
/// The number of clock pings to an agent before its first load. From the replies to the pings, the
/// coordinator estimates the offset of the agent's clock.
pub const PINGS_BEFORE_FIRST_LOAD: u32 = 20;
/// The interval at which each agent gets a lease message (a sign that the coordinator is alive), ns
/// (1 s). Once the agent's clock offset is known, pings have the same interval as lease messages.
const LEASE_INTERVAL_NS: u64 = 1_000_000_000;
/// The time after which a ping without a reply is repeated while the clock offset is unknown, ns
/// (0.2 s).
const PING_TIMEOUT_NS: u64 = 200_000_000;
/// The time after which a task message without a reply is sent again, ns (1 s).
const TASK_REPEAT_NS: u64 = 1_000_000_000;
/// The time after which a start message is sent again if no message of the agent shows that the
/// start message arrived, ns (50 ms).
const START_REPEAT_NS: u64 = 50_000_000;
/// The time after which a stop message is sent again if the agent has not ended its share of the
/// load, ns (0.2 s).
const STOP_REPEAT_NS: u64 = 200_000_000;
/// The largest number of pings to one agent that wait for replies. If more pings wait for replies,
/// the oldest ping is forgotten.
const PINGS_OPEN_MAX: usize = 64;

/// An event that a coordinator reports to its owner.
#[derive(Debug)]
pub enum FleetEvent {
    /// An agent has opened the connections for its share of the load.
    Ready {
        /// The number of the agent.
        agent: usize,
        /// Sentences about adaptations of the load to the agent's machine.
        fitted: Vec<String>,
    },
    /// An agent refuses to send its share of the load.
    Refused {
        /// The number of the agent.
        agent: usize,
        /// The reason, as a sentence to which the owner adds the agent's name.
        reason: String,
    },
    /// The measurements of the next tick (100 ms) of an agent's share of the load. The ticks of an
    /// agent are reported in order.
    Tick {
        /// The number of the agent.
        agent: usize,
        /// The number of the tick (100 ms each) since the start of the schedule.
        index: u32,
        /// The measurements of the tick (100 ms).
        interval: Box<Interval>,
    },
    /// An agent has ended its share of the load, and the measurements of all its ticks (100 ms
    /// each) have arrived.
    Sealed {
        /// The number of the agent.
        agent: usize,
        /// The totals of the agent's share of the load.
        seal: PartTotals,
    },
    /// An agent is lost.
    Lost {
        /// The number of the agent.
        agent: usize,
        /// The reason, as a sentence to which the owner adds the agent's name.
        why: String,
    },
}

/// The state of an agent's share of the load, as far as the coordinator knows it from messages.
#[derive(Debug)]
enum PartState {
    /// The agent has no share of the load, or has completed its share.
    NoPart,
    /// The coordinator sent the task, most recently at `last_sent_ns`, and waits for the reply.
    RequestSent { task: Box<AgentLoadTask>, last_sent_ns: u64 },
    /// The agent has opened the connections for its share of the load.
    Ready,
    /// The coordinator sent the start message, most recently at `last_sent_ns`. `start_confirmed`
    /// says whether a message of the agent has shown that the start message arrived.
    Started { start: ToAgent, last_sent_ns: u64, start_confirmed: bool },
    /// The coordinator sent the stop message, most recently at `last_sent_ns`.
    Stopped { last_sent_ns: u64 },
}

/// The state of an agent's calibration.
#[derive(Debug)]
enum CalibrationState {
    /// The coordinator sent the request, most recently at `last_sent_ns`, and waits for the result.
    RequestSent { task: CalibrationTask, last_sent_ns: u64 },
    /// The agent has sent the result: its capacity, or the reason of a failure.
    Answered(Result<SelfMeasurement, String>),
}

/// A frame (numbered result message) about an agent's share of the load: the measurements of one
/// tick (100 ms), or the totals at the end.
#[derive(Debug)]
enum PartFrame {
    Tick(u32, Box<Interval>),
    Seal(PartTotals),
}

/// The state of one agent, as the coordinator knows it.
#[derive(Debug)]
struct AgentState {
    name: String,
    hello: Option<Hello>,
    clock: ClockOffset,
    /// The pings that wait for replies: the time of sending in ns, by ping number.
    pings: BTreeMap<u32, u64>,
    ping_number: u32,
    last_ping_ns: Option<u64>,
    part: PartState,
    calibration: Option<CalibrationState>,
    inbox: Inbox<PartFrame>,
    /// Whether frames (result messages) have arrived that the coordinator has not yet confirmed to
    /// the agent as recorded.
    has_unconfirmed_frames: bool,
    last_message_ns: u64,
    last_heartbeat: Option<(u64, AgentPhase)>,
    last_lease_ns: u64,
    injector: Option<Injector>,
    loss_reason: Option<String>,
}

/// The agents of a fleet and their current load.
#[derive(Debug, Default)]
pub struct Coordinator {
    agents: Vec<AgentState>,
    epoch: u64,
    outgoing: Vec<(usize, ToAgent)>,
}

impl Coordinator {
    /// Adds an agent whose hello message has not arrived yet.
    pub fn add_agent(&mut self, name: &str, now_ns: u64) {
        self.agents.push(AgentState {
            name: name.to_owned(),
            hello: None,
            clock: ClockOffset::default(),
            pings: BTreeMap::new(),
            ping_number: 0,
            last_ping_ns: None,
            part: PartState::NoPart,
            calibration: None,
            inbox: Inbox::default(),
            has_unconfirmed_frames: false,
            last_message_ns: now_ns,
            last_heartbeat: None,
            last_lease_ns: 0,
            injector: None,
            loss_reason: None,
        });
    }

    /// Returns the number of agents, including lost agents.
    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// Returns the name of an agent.
    pub fn agent_name(&self, agent: usize) -> &str {
        &self.agents[agent].name
    }

    /// Returns the hello message of an agent, once it has arrived.
    pub fn hello_message(&self, agent: usize) -> Option<&Hello> {
        self.agents[agent].hello.as_ref()
    }

    /// Returns the load generator settings (injector) that an agent uses for its share of the load;
    /// `None` until the agent is ready.
    pub fn agent_injector(&self, agent: usize) -> Option<&Injector> {
        self.agents[agent].injector.as_ref()
    }

    /// Returns the estimated clock offset of an agent.
    pub fn clock_offset(&self, agent: usize) -> ClockOffset {
        self.agents[agent].clock
    }

    /// Returns the reason why an agent is lost; `None` if the agent is not lost.
    pub fn loss_reason(&self, agent: usize) -> Option<&str> {
        self.agents[agent].loss_reason.as_deref()
    }

    /// Returns the numbers of the agents that are not lost.
    pub fn active_agents(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|agent| self.agents[*agent].loss_reason.is_none()).collect()
    }

    /// Returns the number of the current or last load; 0 before the first load.
    pub fn current_epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns two counts of an agent's frames (result messages) in the current load: frames
    /// received without gaps, and repeated frames.
    pub fn frame_counts(&self, agent: usize) -> (u64, u64) {
        let inbox = &self.agents[agent].inbox;
        (inbox.last_sequence_without_gap(), inbox.repeated_frame_count())
    }

    /// Returns and removes the messages that must be sent now, each with the number of its agent.
    pub fn take_outgoing(&mut self) -> Vec<(usize, ToAgent)> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the agents that need a commit message (a confirmation that their frames are
    /// recorded), and clears the list. For each agent, also returns the sequence number up to which
    /// all its frames (result messages) have arrived.
    pub fn take_commits(&mut self) -> Vec<(usize, u64)> {
        let owing = self.agents.iter_mut().enumerate();
        let commit = |(agent, known): (usize, &mut AgentState)| {
            std::mem::take(&mut known.has_unconfirmed_frames).then(|| (agent, known.inbox.last_sequence_without_gap()))
        };
        owing.filter_map(commit).collect()
    }

    /// Starts the preparation of a load with these agents. `task` builds the task of an agent from
    /// the number of the load, the index of the agent's share, and the number of shares.
    pub fn prepare_load(&mut self, now_ns: u64, agents: &[usize], task: impl Fn(u64, u64, u64) -> AgentLoadTask) {
        self.epoch += 1;
        self.agents.iter_mut().for_each(|known| known.part = PartState::NoPart);
        for (index, agent) in agents.iter().enumerate() {
            let task = Box::new(task(self.epoch, index as u64, agents.len() as u64));
            let known = &mut self.agents[*agent];
            (known.inbox, known.has_unconfirmed_frames) = (Inbox::default(), false);
            self.outgoing.push((*agent, ToAgent::Prepare(task.clone())));
            known.part = PartState::RequestSent { task, last_sent_ns: now_ns };
        }
    }

    /// Requests a calibration of an agent's machine.
    pub fn request_calibration(&mut self, now_ns: u64, agent: usize, task: CalibrationTask) {
        self.outgoing.push((agent, ToAgent::Calibrate(task.clone())));
        self.agents[agent].calibration = Some(CalibrationState::RequestSent { task, last_sent_ns: now_ns });
    }

    /// Whether a calibration of this agent is in progress.
    pub fn is_calibrating(&self, agent: usize) -> bool {
        matches!(self.agents[agent].calibration, Some(CalibrationState::RequestSent { .. }))
    }

    /// Returns the result of an agent's calibration, once it has arrived. An error is a sentence to
    /// which the caller adds the agent's name.
    pub fn calibration_result(&self, agent: usize) -> Option<&Result<SelfMeasurement, String>> {
        match &self.agents[agent].calibration {
            Some(CalibrationState::Answered(result)) => Some(result),
            _ => None,
        }
    }

    /// Whether no reply to a task message is outstanding: every agent of the load is ready, has
    /// refused the load, or is lost.
    pub fn is_preparation_over(&self) -> bool {
        self.agents.iter().all(|known| !matches!(known.part, PartState::RequestSent { .. }))
    }

    /// Starts the load on all ready agents at `origin_ns` of the coordinator's clock.
    pub fn start(&mut self, now_ns: u64, origin_ns: u64, length_ns_max: u64) {
        let epoch = self.epoch;
        for (agent, known) in self.agents.iter_mut().enumerate() {
            if matches!(known.part, PartState::Ready) {
                let start = ToAgent::Start { epoch, origin_ns: known.clock.to_other_clock(origin_ns), length_ns_max };
                self.outgoing.push((agent, start.clone()));
                known.part = PartState::Started { start, last_sent_ns: now_ns, start_confirmed: false };
            }
        }
    }

    /// Stops the load on all agents. A load that is still in preparation is dropped.
    pub fn stop(&mut self, now_ns: u64) {
        let epoch = self.epoch;
        for (agent, known) in self.agents.iter_mut().enumerate() {
            match known.part {
                PartState::RequestSent { .. } | PartState::Ready => {
                    known.part = PartState::NoPart;
                    self.outgoing.push((agent, ToAgent::Stop { epoch }));
                }
                PartState::Started { .. } => {
                    known.part = PartState::Stopped { last_sent_ns: now_ns };
                    self.outgoing.push((agent, ToAgent::Stop { epoch }));
                }
                PartState::NoPart | PartState::Stopped { .. } => {}
            }
        }
    }

    /// Restarts the timers after which silent agents count as lost, because no message could arrive
    /// during an outage of the transport.
    pub fn restart_silence_clock(&mut self, now_ns: u64) {
        self.agents.iter_mut().for_each(|known| known.last_message_ns = known.last_message_ns.max(now_ns));
    }

    /// Marks an agent as lost. The reason `why` is a sentence to which the caller adds the agent's
    /// name. Returns the event, or `None` if the agent was lost already.
    pub fn mark_lost(&mut self, agent: usize, why: String) -> Option<FleetEvent> {
        let known = &mut self.agents[agent];
        if known.loss_reason.is_some() {
            return None;
        }
        known.loss_reason = Some(why.clone());
        known.part = PartState::NoPart;
        // If the agent is still running, the leave message ends its session.
        self.outgoing.push((agent, ToAgent::Leave));
        Some(FleetEvent::Lost { agent, why })
    }

    /// Handles a message of an agent that arrived at `arrival_ns`, and appends the resulting
    /// events.
    pub fn handle_message(
        &mut self,
        agent: usize,
        arrival_ns: u64,
        message: ToCoordinator,
        events: &mut Vec<FleetEvent>,
    ) {
        let epoch = self.epoch;
        let Some(known) = self.agents.get_mut(agent) else { return };
        if known.loss_reason.is_some() {
            // A lost agent that reappears must not continue its load.
            if matches!(message, ToCoordinator::Beat { .. }) {
                self.outgoing.push((agent, ToAgent::Leave));
            }
            return;
        }
        known.last_message_ns = known.last_message_ns.max(arrival_ns);
        match message {
            ToCoordinator::Hello(hello) => known.hello = Some(hello),
            ToCoordinator::Pong { number, agent_ns } => {
                if let Some(sent_ns) = known.pings.remove(&number) {
                    known.clock.add(sent_ns, agent_ns, arrival_ns);
                }
            }
            ToCoordinator::Ready { epoch: of, injector, fitted } if of == epoch => {
                if matches!(known.part, PartState::RequestSent { .. }) {
                    known.part = PartState::Ready;
                    known.injector = Some(injector);
                    events.push(FleetEvent::Ready { agent, fitted });
                }
            }
            ToCoordinator::Refused { epoch: of, reason } if of == epoch => {
                if matches!(
                    known.part,
                    PartState::RequestSent { .. } | PartState::Started { start_confirmed: false, .. }
                ) {
                    known.part = PartState::NoPart;
                    events.push(FleetEvent::Refused { agent, reason });
                }
            }
            ToCoordinator::Calibrated { number, result } => {
                if let Some(state @ CalibrationState::RequestSent { .. }) = &mut known.calibration
                    && matches!(state, CalibrationState::RequestSent { task, .. } if task.number == number)
                {
                    *state = CalibrationState::Answered(result);
                }
            }
            ToCoordinator::Beat { epoch: of, phase } => {
                known.last_heartbeat = Some((of, phase));
                if of == epoch && matches!(phase, AgentPhase::Running | AgentPhase::Sealed) {
                    known.record_start_confirmation();
                }
            }
            ToCoordinator::Tick { epoch: of, sequence, index, interval } if of == epoch => {
                known.handle_frame(agent, sequence, PartFrame::Tick(index, interval), events);
            }
            ToCoordinator::Seal { epoch: of, sequence, seal } if of == epoch => {
                known.handle_frame(agent, sequence, PartFrame::Seal(seal), events);
            }
            // Messages about another load, and messages from an agent that only measures a server,
            // need no action.
            ToCoordinator::Watching(_)
            | ToCoordinator::Readings { .. }
            | ToCoordinator::Ready { .. }
            | ToCoordinator::Refused { .. }
            | ToCoordinator::Tick { .. }
            | ToCoordinator::Seal { .. } => {}
        }
    }

    /// Queues the messages that are due now, and reports silent agents as lost.
    pub fn poll(&mut self, now_ns: u64, events: &mut Vec<FleetEvent>) {
        for agent in 0..self.agents.len() {
            let known = &mut self.agents[agent];
            if known.loss_reason.is_some() || known.hello.is_none() {
                continue;
            }
            if now_ns.saturating_sub(known.last_message_ns) >= SILENCE_NS_MAX {
                let seconds = SILENCE_NS_MAX / 1_000_000_000;
                events.extend(self.mark_lost(agent, format!("the agent sent nothing for {seconds} s")));
                continue;
            }
            self.outgoing
                .extend(known.take_due_messages(self.epoch, now_ns).into_iter().map(|message| (agent, message)));
        }
    }
}

impl AgentState {
    /// Records that the agent has received the start message, so that the message is not sent
    /// again.
    fn record_start_confirmation(&mut self) {
        if let PartState::Started { start_confirmed, .. } = &mut self.part {
            *start_confirmed = true;
        }
    }

    fn handle_frame(&mut self, agent: usize, sequence: u64, frame: PartFrame, events: &mut Vec<FleetEvent>) {
        if matches!(self.part, PartState::NoPart | PartState::RequestSent { .. } | PartState::Ready) {
            // An agent that has ended its share repeats frames (result messages) if the
            // coordinator's confirmation was lost. The coordinator therefore confirms the frames
            // again.
            self.has_unconfirmed_frames = true;
            self.inbox.add_frame(sequence, frame);
            return;
        }
        self.record_start_confirmation();
        self.has_unconfirmed_frames = true;
        for frame in self.inbox.add_frame(sequence, frame) {
            events.push(match frame {
                PartFrame::Tick(index, interval) => FleetEvent::Tick { agent, index, interval },
                PartFrame::Seal(seal) => {
                    self.part = PartState::NoPart;
                    FleetEvent::Sealed { agent, seal }
                }
            });
        }
    }

    fn take_due_messages(&mut self, epoch: u64, now_ns: u64) -> Vec<ToAgent> {
        let mut due = Vec::new();
        let passed = |since_ns: u64, ns: u64| now_ns.saturating_sub(since_ns) >= ns;
        let beat = self.last_heartbeat;
        match &mut self.part {
            // While the agent still prepares the task, its reply is not overdue, so the task is not
            // repeated.
            PartState::RequestSent { task, last_sent_ns }
                if passed(*last_sent_ns, TASK_REPEAT_NS) && beat != Some((epoch, AgentPhase::Preparing)) =>
            {
                *last_sent_ns = now_ns;
                due.push(ToAgent::Prepare(task.clone()));
            }
            PartState::Started { start, last_sent_ns, start_confirmed: false }
                if passed(*last_sent_ns, START_REPEAT_NS) =>
            {
                *last_sent_ns = now_ns;
                due.push(start.clone());
            }
            PartState::Stopped { last_sent_ns } if passed(*last_sent_ns, STOP_REPEAT_NS) => {
                *last_sent_ns = now_ns;
                due.push(ToAgent::Stop { epoch });
            }
            _ => {}
        }
        if let Some(CalibrationState::RequestSent { task, last_sent_ns }) = &mut self.calibration
            && passed(*last_sent_ns, TASK_REPEAT_NS)
        {
            *last_sent_ns = now_ns;
            due.push(ToAgent::Calibrate(task.clone()));
        }
        if passed(self.last_lease_ns, LEASE_INTERVAL_NS) {
            self.last_lease_ns = now_ns;
            due.push(ToAgent::Lease);
        }
        let is_known = self.clock.sample_count() >= PINGS_BEFORE_FIRST_LOAD;
        let last_is_open = self.pings.contains_key(&self.ping_number);
        let patience_ns = match (is_known, last_is_open) {
            (true, _) => LEASE_INTERVAL_NS,
            (false, true) => PING_TIMEOUT_NS,
            (false, false) => 0,
        };
        if self.last_ping_ns.is_none_or(|pinged_ns| passed(pinged_ns, patience_ns)) {
            self.ping_number = self.ping_number.wrapping_add(1);
            self.pings.insert(self.ping_number, now_ns);
            if self.pings.len() > PINGS_OPEN_MAX {
                self.pings.pop_first();
            }
            self.last_ping_ns = Some(now_ns);
            due.push(ToAgent::Ping { number: self.ping_number });
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Ledger, Spin};

    const MS: u64 = 1_000_000;

    fn part_task(epoch: u64, index: u64, of: u64) -> AgentLoadTask {
        AgentLoadTask {
            epoch,
            share_index: index,
            share_count: of,
            weights: Vec::new(),
            workers: None,
            spin: Spin::Auto,
            preflight: false,
            signature: None,
            plan: Vec::new(),
        }
    }

    /// Returns a coordinator with two agents.
    fn coordinator_with_two_agents() -> Coordinator {
        let mut coordinator = Coordinator::default();
        for (agent, name) in ["a", "b"].into_iter().enumerate() {
            coordinator.add_agent(name, 0);
            coordinator.handle_message(agent, 0, ToCoordinator::Hello(Hello::default()), &mut Vec::new());
        }
        coordinator
    }

    fn outgoing_messages(coordinator: &mut Coordinator, at_ms: u64) -> Vec<String> {
        let mut events = Vec::new();
        coordinator.poll(at_ms * MS, &mut events);
        let letter = |(agent, message): (usize, ToAgent)| match message {
            ToAgent::Ping { .. } | ToAgent::Lease => None,
            ToAgent::Prepare(task) => Some(format!("{agent} prepare {}/{}", task.share_index, task.share_count)),
            ToAgent::Start { origin_ns, .. } => Some(format!("{agent} start {origin_ns}")),
            ToAgent::Stop { .. } => Some(format!("{agent} stop")),
            ToAgent::Commit { .. } | ToAgent::Leave => Some(format!("{agent} leave")),
            ToAgent::Watch(_) | ToAgent::Sample { .. } => Some(format!("{agent} watch")),
            ToAgent::Calibrate(task) => Some(format!("{agent} calibrate {}", task.number)),
        };
        let mut said: Vec<String> = coordinator.take_outgoing().into_iter().filter_map(letter).collect();
        said.extend(events.iter().map(|event| format!("{event:?}")));
        said
    }

    fn make_agent_ready(coordinator: &mut Coordinator, agent: usize) {
        let (epoch, injector, fitted) = (coordinator.current_epoch(), Injector::default(), Vec::new());
        coordinator.handle_message(agent, 0, ToCoordinator::Ready { epoch, injector, fitted }, &mut Vec::new());
    }

    #[test]
    fn a_calibration_request_repeats_until_answered() {
        let mut coordinator = coordinator_with_two_agents();
        coordinator.request_calibration(0, 1, CalibrationTask { number: 2, signature: None });
        assert_eq!(outgoing_messages(&mut coordinator, 0), ["1 calibrate 2"]);
        assert_eq!(outgoing_messages(&mut coordinator, 900), [""; 0]);
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["1 calibrate 2"]);
        let answer = |number: u32| ToCoordinator::Calibrated { number, result: Err("no".to_owned()) };
        coordinator.handle_message(1, 0, answer(1), &mut Vec::new());
        assert!(coordinator.is_calibrating(1) && !coordinator.is_calibrating(0), "of another question");
        coordinator.handle_message(1, 0, answer(2), &mut Vec::new());
        assert_eq!(
            (coordinator.is_calibrating(1), coordinator.calibration_result(1)),
            (false, Some(&Err("no".to_owned())))
        );
        assert_eq!(outgoing_messages(&mut coordinator, 2_000), [""; 0]);
    }

    #[test]
    fn messages_repeat_until_their_effect_shows() {
        let mut coordinator = coordinator_with_two_agents();
        coordinator.prepare_load(0, &[0, 1], part_task);
        assert_eq!(outgoing_messages(&mut coordinator, 0), ["0 prepare 0/2", "1 prepare 1/2"]);
        coordinator.handle_message(
            1,
            0,
            ToCoordinator::Beat { epoch: 1, phase: AgentPhase::Preparing },
            &mut Vec::new(),
        );
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["0 prepare 0/2"]);
        make_agent_ready(&mut coordinator, 0);
        assert!(!coordinator.is_preparation_over());
        make_agent_ready(&mut coordinator, 1);
        assert!(coordinator.is_preparation_over());
        coordinator.start(1_000 * MS, 5, 9);
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["0 start 5", "1 start 5"]);
        coordinator.handle_message(0, 0, ToCoordinator::Beat { epoch: 1, phase: AgentPhase::Running }, &mut Vec::new());
        assert_eq!(outgoing_messages(&mut coordinator, 1_050), ["1 start 5"]);
        coordinator.stop(1_100 * MS);
        assert_eq!(outgoing_messages(&mut coordinator, 1_100), ["0 stop", "1 stop"]);
        let seal = PartTotals {
            ticks: 0,
            ledger: Ledger::default(),
            window_end_ns: 0,
            failed_answers: Vec::new(),
            has_no_more_requests: false,
            failure_reason: None,
        };
        let mut events = Vec::new();
        // The seal (the totals of the part) arrives before the last tick.
        coordinator.handle_message(0, 0, ToCoordinator::Seal { epoch: 1, sequence: 2, seal }, &mut events);
        assert!(events.is_empty());
        let interval = Box::new(Interval::default());
        coordinator.handle_message(
            0,
            0,
            ToCoordinator::Tick { epoch: 1, sequence: 1, index: 0, interval },
            &mut events,
        );
        assert!(matches!(events[..], [FleetEvent::Tick { agent: 0, .. }, FleetEvent::Sealed { agent: 0, .. }]));
        assert_eq!(coordinator.take_commits(), [(0, 2)]);
        assert_eq!(outgoing_messages(&mut coordinator, 1_300), ["1 stop"]);
    }

    #[test]
    fn a_silent_agent_is_lost_and_gets_no_share() {
        let mut coordinator = coordinator_with_two_agents();
        coordinator.handle_message(
            0,
            3_000 * MS,
            ToCoordinator::Beat { epoch: 0, phase: AgentPhase::Idle },
            &mut Vec::new(),
        );
        assert_eq!(outgoing_messages(&mut coordinator, 3_999), Vec::<String>::new());
        let lost = outgoing_messages(&mut coordinator, 4_000);
        assert!(lost[0] == "1 leave" && lost[1].contains("the agent sent nothing for 4 s"), "{lost:?}");
        assert_eq!(
            (coordinator.active_agents(), coordinator.loss_reason(1)),
            (vec![0], Some("the agent sent nothing for 4 s"))
        );
        assert!(
            outgoing_messages(&mut coordinator, 4_001).is_empty() && coordinator.mark_lost(1, "again".into()).is_none()
        );
        // During an outage of the transport, silent agents are not lost.
        coordinator.restart_silence_clock(10_000 * MS);
        assert!(outgoing_messages(&mut coordinator, 13_999).is_empty() && coordinator.active_agents() == [0]);
        assert!(outgoing_messages(&mut coordinator, 14_000)[0].contains("0 leave"));
    }

    #[test]
    fn clock_requests_repeat_until_the_offset_is_known() {
        let mut coordinator = coordinator_with_two_agents();
        for number in 1..=PINGS_BEFORE_FIRST_LOAD {
            let at_ns = u64::from(number) * MS;
            coordinator.poll(at_ns, &mut Vec::new());
            let asked = coordinator.take_outgoing();
            assert!(asked.contains(&(0, ToAgent::Ping { number })), "{asked:?}");
            let pong = ToCoordinator::Pong { number, agent_ns: at_ns + 500 };
            coordinator.handle_message(0, at_ns + 10, pong.clone(), &mut Vec::new());
            // A reply that arrives twice counts once.
            coordinator.handle_message(0, at_ns + 1, pong, &mut Vec::new());
        }
        let clock = coordinator.clock_offset(0);
        assert_eq!(
            (clock.sample_count(), clock.error_ns_max(), clock.to_other_clock(0)),
            (PINGS_BEFORE_FIRST_LOAD, Some(5), 495)
        );
        assert_eq!(coordinator.clock_offset(1).error_ns_max(), None);
    }
}
