//! What a coordinator does with what its agents say, as a state machine without I/O
//! ([`Coordinator`]): time is passed in, messages to be sent and events come out. What may be lost
//! on the way is said again until it shows.
//!
//! Not here: what is made of the agents' intervals (`merge`), the waiting (`fleet_load`), and
//! carrying messages (`bus`).

use crate::clock_offset::ClockOffset;
use crate::delivery::Inbox;
use crate::message::{AgentPhase, CalibrationTask, Hello, PartTask, Seal, ToAgent, ToCoordinator};
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{Injector, Interval};
use std::collections::BTreeMap;

/// An agent that says nothing for so long is lost.
pub const SILENCE_NS_MAX: u64 = 4_000_000_000;
/// Round trips from which an agent's clock is known before its first load.
pub const PINGS_FIRST: u32 = 20;
/// How often an agent that has a load hears that its coordinator is there, and its clock is asked
/// again.
const LEASE_EVERY_NS: u64 = 1_000_000_000;
/// How soon a question about a clock is asked again that had no answer.
const PING_PATIENCE_NS: u64 = 200_000_000;
/// How soon a task, a beginning and an end are said again.
const TASK_AGAIN_NS: u64 = 1_000_000_000;
const START_AGAIN_NS: u64 = 50_000_000;
const STOP_AGAIN_NS: u64 = 200_000_000;
/// Questions about a clock that may be open.
const PINGS_OPEN_MAX: usize = 64;

/// What happened.
#[derive(Debug)]
pub enum FleetEvent {
    /// An agent's connections stand; what it has fitted of the load.
    Ready {
        /// Which agent.
        agent: usize,
        /// In sentences.
        fitted: Vec<String>,
    },
    /// An agent does not make its part: a sentence about "it".
    Refused {
        /// Which agent.
        agent: usize,
        /// Why.
        reason: String,
    },
    /// The next tick of an agent's part.
    Tick {
        /// Which agent.
        agent: usize,
        /// Its number.
        index: u32,
        /// What happened.
        interval: Box<Interval>,
    },
    /// An agent has ended its part, and all of its ticks came.
    Sealed {
        /// Which agent.
        agent: usize,
        /// What it did in all.
        seal: Seal,
    },
    /// An agent is gone: a sentence about "it".
    Lost {
        /// Which agent.
        agent: usize,
        /// Why.
        why: String,
    },
}

/// What is known of an agent's part of the load.
#[derive(Debug)]
enum PartState {
    /// It has none.
    None,
    /// It was told to make ready, last at this moment.
    Asked { task: Box<PartTask>, said_ns: u64 },
    /// Its connections stand.
    Ready,
    /// It was told to begin, last at this moment; whether that shows.
    Started { start: ToAgent, said_ns: u64, shows: bool },
    /// It was told to end, last at this moment.
    Stopped { said_ns: u64 },
}

/// What is known of an agent's calibration.
#[derive(Debug)]
enum CalibrationState {
    /// The agent was asked, last at this moment.
    Asked { task: CalibrationTask, said_ns: u64 },
    /// It has answered.
    Answered(Result<SelfMeasurement, String>),
}

/// A frame of an agent's part.
#[derive(Debug)]
enum PartFrame {
    Tick(u32, Box<Interval>),
    Seal(Seal),
}

/// What is known of an agent.
#[derive(Debug)]
struct KnownAgent {
    name: String,
    hello: Option<Hello>,
    clock: ClockOffset,
    /// Questions about its clock without an answer: when each was asked.
    pings: BTreeMap<u32, u64>,
    ping_number: u32,
    pinged_ns: Option<u64>,
    part: PartState,
    calibration: Option<CalibrationState>,
    inbox: Inbox<PartFrame>,
    /// Whether frames came that it does not know to be recorded.
    owes_commit: bool,
    heard_ns: u64,
    beat: Option<(u64, AgentPhase)>,
    leased_ns: u64,
    injector: Option<Injector>,
    lost: Option<String>,
}

/// The agents of a fleet, as one who leads them knows them.
#[derive(Debug, Default)]
pub struct Coordinator {
    agents: Vec<KnownAgent>,
    epoch: u64,
    outgoing: Vec<(usize, ToAgent)>,
}

impl Coordinator {
    /// An agent that is going to say that it is there.
    pub fn add(&mut self, name: &str, now_ns: u64) {
        self.agents.push(KnownAgent {
            name: name.to_owned(),
            hello: None,
            clock: ClockOffset::default(),
            pings: BTreeMap::new(),
            ping_number: 0,
            pinged_ns: None,
            part: PartState::None,
            calibration: None,
            inbox: Inbox::default(),
            owes_commit: false,
            heard_ns: now_ns,
            beat: None,
            leased_ns: 0,
            injector: None,
            lost: None,
        });
    }

    /// How many agents were added.
    pub fn count(&self) -> usize {
        self.agents.len()
    }

    /// What an agent is called.
    pub fn name(&self, agent: usize) -> &str {
        &self.agents[agent].name
    }

    /// Who an agent is, once it has said so.
    pub fn hello(&self, agent: usize) -> Option<&Hello> {
        self.agents[agent].hello.as_ref()
    }

    /// How an agent makes its part of a load, once it has said so.
    pub fn injector(&self, agent: usize) -> Option<&Injector> {
        self.agents[agent].injector.as_ref()
    }

    /// What is known of an agent's clock.
    pub fn clock(&self, agent: usize) -> ClockOffset {
        self.agents[agent].clock
    }

    /// Why an agent is lost, if it is.
    pub fn loss(&self, agent: usize) -> Option<&str> {
        self.agents[agent].lost.as_deref()
    }

    /// The agents that are not lost.
    pub fn living(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|agent| self.agents[*agent].lost.is_none()).collect()
    }

    /// The number of the load that is under way.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many frames of an agent's part are complete, and how many came again.
    pub fn frames(&self, agent: usize) -> (u64, u64) {
        let inbox = &self.agents[agent].inbox;
        (inbox.complete_to(), inbox.repeated())
    }

    /// What is to be sent now.
    pub fn take_outgoing(&mut self) -> Vec<(usize, ToAgent)> {
        std::mem::take(&mut self.outgoing)
    }

    /// The agents that wait to hear that their frames are recorded, and up to which these came.
    pub fn take_commits(&mut self) -> Vec<(usize, u64)> {
        let owing = self.agents.iter_mut().enumerate();
        let commit = |(agent, known): (usize, &mut KnownAgent)| {
            std::mem::take(&mut known.owes_commit).then(|| (agent, known.inbox.complete_to()))
        };
        owing.filter_map(commit).collect()
    }

    /// Has these agents make a load ready, each its part: `task` gives that of part k of n.
    pub fn prepare(&mut self, now_ns: u64, agents: &[usize], task: impl Fn(u64, u64, u64) -> PartTask) {
        self.epoch += 1;
        self.agents.iter_mut().for_each(|known| known.part = PartState::None);
        for (index, agent) in agents.iter().enumerate() {
            let task = Box::new(task(self.epoch, index as u64, agents.len() as u64));
            let known = &mut self.agents[*agent];
            (known.inbox, known.owes_commit) = (Inbox::default(), false);
            self.outgoing.push((*agent, ToAgent::Prepare(task.clone())));
            known.part = PartState::Asked { task, said_ns: now_ns };
        }
    }

    /// Has an agent calibrate its machine.
    pub fn calibrate(&mut self, now_ns: u64, agent: usize, task: CalibrationTask) {
        self.outgoing.push((agent, ToAgent::Calibrate(task.clone())));
        self.agents[agent].calibration = Some(CalibrationState::Asked { task, said_ns: now_ns });
    }

    /// Whether an agent's calibration is under way.
    pub fn is_calibrating(&self, agent: usize) -> bool {
        matches!(self.agents[agent].calibration, Some(CalibrationState::Asked { .. }))
    }

    /// What an agent's calibration found, or why it found nothing: a sentence about "it".
    pub fn calibration(&self, agent: usize) -> Option<&Result<SelfMeasurement, String>> {
        match &self.agents[agent].calibration {
            Some(CalibrationState::Answered(result)) => Some(result),
            _ => None,
        }
    }

    /// Whether the connections of all parts stand.
    pub fn is_ready(&self) -> bool {
        self.agents.iter().all(|known| !matches!(known.part, PartState::Asked { .. }))
    }

    /// Has all that are ready begin at `origin_ns` of the coordinator's clock.
    pub fn start(&mut self, now_ns: u64, origin_ns: u64, length_ns_max: u64) {
        let epoch = self.epoch;
        for (agent, known) in self.agents.iter_mut().enumerate() {
            if matches!(known.part, PartState::Ready) {
                let start = ToAgent::Start { epoch, origin_ns: known.clock.there(origin_ns), length_ns_max };
                self.outgoing.push((agent, start.clone()));
                known.part = PartState::Started { start, said_ns: now_ns, shows: false };
            }
        }
    }

    /// Has all end the load, or give up what is prepared of it.
    pub fn stop(&mut self, now_ns: u64) {
        let epoch = self.epoch;
        for (agent, known) in self.agents.iter_mut().enumerate() {
            match known.part {
                PartState::Asked { .. } | PartState::Ready => {
                    known.part = PartState::None;
                    self.outgoing.push((agent, ToAgent::Stop { epoch }));
                }
                PartState::Started { .. } => {
                    known.part = PartState::Stopped { said_ns: now_ns };
                    self.outgoing.push((agent, ToAgent::Stop { epoch }));
                }
                PartState::None | PartState::Stopped { .. } => {}
            }
        }
    }

    /// No message could come until now: silence says nothing about agents.
    pub fn excuse_silence(&mut self, now_ns: u64) {
        self.agents.iter_mut().for_each(|known| known.heard_ns = known.heard_ns.max(now_ns));
    }

    /// An agent is given up: a sentence about "it".
    pub fn lose(&mut self, agent: usize, why: String) -> Option<FleetEvent> {
        let known = &mut self.agents[agent];
        if known.lost.is_some() {
            return None;
        }
        known.lost = Some(why.clone());
        known.part = PartState::None;
        // Where it is not gone after all, it need not go on for nobody.
        self.outgoing.push((agent, ToAgent::Leave));
        Some(FleetEvent::Lost { agent, why })
    }

    /// Takes what an agent says, which came at `came_ns`.
    pub fn take(&mut self, agent: usize, came_ns: u64, message: ToCoordinator, events: &mut Vec<FleetEvent>) {
        let epoch = self.epoch;
        let Some(known) = self.agents.get_mut(agent) else { return };
        if known.lost.is_some() {
            // One that comes back makes a load for nobody.
            if matches!(message, ToCoordinator::Beat { .. }) {
                self.outgoing.push((agent, ToAgent::Leave));
            }
            return;
        }
        known.heard_ns = known.heard_ns.max(came_ns);
        match message {
            ToCoordinator::Hello(hello) => known.hello = Some(hello),
            ToCoordinator::Pong { number, agent_ns } => {
                if let Some(sent_ns) = known.pings.remove(&number) {
                    known.clock.add(sent_ns, agent_ns, came_ns);
                }
            }
            ToCoordinator::Ready { epoch: of, injector, fitted } if of == epoch => {
                if matches!(known.part, PartState::Asked { .. }) {
                    known.part = PartState::Ready;
                    known.injector = Some(injector);
                    events.push(FleetEvent::Ready { agent, fitted });
                }
            }
            ToCoordinator::Refused { epoch: of, reason } if of == epoch => {
                if matches!(known.part, PartState::Asked { .. } | PartState::Started { shows: false, .. }) {
                    known.part = PartState::None;
                    events.push(FleetEvent::Refused { agent, reason });
                }
            }
            ToCoordinator::Calibrated { number, result } => {
                if let Some(state @ CalibrationState::Asked { .. }) = &mut known.calibration
                    && matches!(state, CalibrationState::Asked { task, .. } if task.number == number)
                {
                    *state = CalibrationState::Answered(result);
                }
            }
            ToCoordinator::Beat { epoch: of, phase } => {
                known.beat = Some((of, phase));
                if of == epoch && matches!(phase, AgentPhase::Running | AgentPhase::Sealed) {
                    known.begins();
                }
            }
            ToCoordinator::Tick { epoch: of, sequence, index, interval } if of == epoch => {
                known.take_frame(agent, sequence, PartFrame::Tick(index, interval), events);
            }
            ToCoordinator::Seal { epoch: of, sequence, seal } if of == epoch => {
                known.take_frame(agent, sequence, PartFrame::Seal(seal), events);
            }
            // Of another load, or of one that only watches (`watch_link`).
            ToCoordinator::Watching(_)
            | ToCoordinator::Readings { .. }
            | ToCoordinator::Ready { .. }
            | ToCoordinator::Refused { .. }
            | ToCoordinator::Tick { .. }
            | ToCoordinator::Seal { .. } => {}
        }
    }

    /// What is due at this moment.
    pub fn poll(&mut self, now_ns: u64, events: &mut Vec<FleetEvent>) {
        for agent in 0..self.agents.len() {
            let known = &mut self.agents[agent];
            if known.lost.is_some() || known.hello.is_none() {
                continue;
            }
            if now_ns.saturating_sub(known.heard_ns) >= SILENCE_NS_MAX {
                let seconds = SILENCE_NS_MAX / 1_000_000_000;
                events.extend(self.lose(agent, format!("it sent nothing for {seconds} s")));
                continue;
            }
            self.outgoing.extend(known.due(self.epoch, now_ns).into_iter().map(|message| (agent, message)));
        }
    }
}

impl KnownAgent {
    /// It shows that it has heard when the load begins.
    fn begins(&mut self) {
        if let PartState::Started { shows, .. } = &mut self.part {
            *shows = true;
        }
    }

    fn take_frame(&mut self, agent: usize, sequence: u64, frame: PartFrame, events: &mut Vec<FleetEvent>) {
        if matches!(self.part, PartState::None | PartState::Asked { .. } | PartState::Ready) {
            // Its part is over, and it does not know yet.
            self.owes_commit = true;
            self.inbox.take(sequence, frame);
            return;
        }
        self.begins();
        self.owes_commit = true;
        for frame in self.inbox.take(sequence, frame) {
            events.push(match frame {
                PartFrame::Tick(index, interval) => FleetEvent::Tick { agent, index, interval },
                PartFrame::Seal(seal) => {
                    self.part = PartState::None;
                    FleetEvent::Sealed { agent, seal }
                }
            });
        }
    }

    fn due(&mut self, epoch: u64, now_ns: u64) -> Vec<ToAgent> {
        let mut due = Vec::new();
        let passed = |since_ns: u64, ns: u64| now_ns.saturating_sub(since_ns) >= ns;
        let beat = self.beat;
        match &mut self.part {
            // Where it is at it, its answer is to come.
            PartState::Asked { task, said_ns }
                if passed(*said_ns, TASK_AGAIN_NS) && beat != Some((epoch, AgentPhase::Preparing)) =>
            {
                *said_ns = now_ns;
                due.push(ToAgent::Prepare(task.clone()));
            }
            PartState::Started { start, said_ns, shows: false } if passed(*said_ns, START_AGAIN_NS) => {
                *said_ns = now_ns;
                due.push(start.clone());
            }
            PartState::Stopped { said_ns } if passed(*said_ns, STOP_AGAIN_NS) => {
                *said_ns = now_ns;
                due.push(ToAgent::Stop { epoch });
            }
            _ => {}
        }
        if let Some(CalibrationState::Asked { task, said_ns }) = &mut self.calibration
            && passed(*said_ns, TASK_AGAIN_NS)
        {
            *said_ns = now_ns;
            due.push(ToAgent::Calibrate(task.clone()));
        }
        if passed(self.leased_ns, LEASE_EVERY_NS) {
            self.leased_ns = now_ns;
            due.push(ToAgent::Lease);
        }
        let is_known = self.clock.samples() >= PINGS_FIRST;
        let last_is_open = self.pings.contains_key(&self.ping_number);
        let patience_ns = match (is_known, last_is_open) {
            (true, _) => LEASE_EVERY_NS,
            (false, true) => PING_PATIENCE_NS,
            (false, false) => 0,
        };
        if self.pinged_ns.is_none_or(|pinged_ns| passed(pinged_ns, patience_ns)) {
            self.ping_number = self.ping_number.wrapping_add(1);
            self.pings.insert(self.ping_number, now_ns);
            if self.pings.len() > PINGS_OPEN_MAX {
                self.pings.pop_first();
            }
            self.pinged_ns = Some(now_ns);
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

    fn task(epoch: u64, index: u64, of: u64) -> PartTask {
        PartTask {
            epoch,
            index,
            of,
            weights: Vec::new(),
            workers: None,
            spin: Spin::Auto,
            preflight: false,
            signature: None,
            plan: Vec::new(),
        }
    }

    /// A coordinator of two agents that are there.
    fn coordinator() -> Coordinator {
        let mut coordinator = Coordinator::default();
        for (agent, name) in ["a", "b"].into_iter().enumerate() {
            coordinator.add(name, 0);
            coordinator.take(agent, 0, ToCoordinator::Hello(Hello::default()), &mut Vec::new());
        }
        coordinator
    }

    fn outgoing_messages(coordinator: &mut Coordinator, at_ms: u64) -> Vec<String> {
        let mut events = Vec::new();
        coordinator.poll(at_ms * MS, &mut events);
        let letter = |(agent, message): (usize, ToAgent)| match message {
            ToAgent::Ping { .. } | ToAgent::Lease => None,
            ToAgent::Prepare(task) => Some(format!("{agent} prepare {}/{}", task.index, task.of)),
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

    fn ready(coordinator: &mut Coordinator, agent: usize) {
        let (epoch, injector, fitted) = (coordinator.epoch(), Injector::default(), Vec::new());
        coordinator.take(agent, 0, ToCoordinator::Ready { epoch, injector, fitted }, &mut Vec::new());
    }

    #[test]
    fn a_calibration_is_asked_for_until_it_is_answered() {
        let mut coordinator = coordinator();
        coordinator.calibrate(0, 1, CalibrationTask { number: 2, signature: None });
        assert_eq!(outgoing_messages(&mut coordinator, 0), ["1 calibrate 2"]);
        assert_eq!(outgoing_messages(&mut coordinator, 900), [""; 0]);
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["1 calibrate 2"]);
        let answer = |number: u32| ToCoordinator::Calibrated { number, result: Err("no".to_owned()) };
        coordinator.take(1, 0, answer(1), &mut Vec::new());
        assert!(coordinator.is_calibrating(1) && !coordinator.is_calibrating(0), "of another question");
        coordinator.take(1, 0, answer(2), &mut Vec::new());
        assert_eq!((coordinator.is_calibrating(1), coordinator.calibration(1)), (false, Some(&Err("no".to_owned()))));
        assert_eq!(outgoing_messages(&mut coordinator, 2_000), [""; 0]);
    }

    #[test]
    fn what_may_be_lost_is_said_again_until_it_shows() {
        let mut coordinator = coordinator();
        coordinator.prepare(0, &[0, 1], task);
        assert_eq!(outgoing_messages(&mut coordinator, 0), ["0 prepare 0/2", "1 prepare 1/2"]);
        coordinator.take(1, 0, ToCoordinator::Beat { epoch: 1, phase: AgentPhase::Preparing }, &mut Vec::new());
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["0 prepare 0/2"]);
        ready(&mut coordinator, 0);
        assert!(!coordinator.is_ready());
        ready(&mut coordinator, 1);
        assert!(coordinator.is_ready());
        coordinator.start(1_000 * MS, 5, 9);
        assert_eq!(outgoing_messages(&mut coordinator, 1_000), ["0 start 5", "1 start 5"]);
        coordinator.take(0, 0, ToCoordinator::Beat { epoch: 1, phase: AgentPhase::Running }, &mut Vec::new());
        assert_eq!(outgoing_messages(&mut coordinator, 1_050), ["1 start 5"]);
        coordinator.stop(1_100 * MS);
        assert_eq!(outgoing_messages(&mut coordinator, 1_100), ["0 stop", "1 stop"]);
        let seal = Seal {
            ticks: 0,
            ledger: Ledger::default(),
            window_end_ns: 0,
            failed_answers: Vec::new(),
            used_up: false,
            died: None,
        };
        let mut events = Vec::new();
        // The seal before the tick that it follows on.
        coordinator.take(0, 0, ToCoordinator::Seal { epoch: 1, sequence: 2, seal }, &mut events);
        assert!(events.is_empty());
        let interval = Box::new(Interval::default());
        coordinator.take(0, 0, ToCoordinator::Tick { epoch: 1, sequence: 1, index: 0, interval }, &mut events);
        assert!(matches!(events[..], [FleetEvent::Tick { agent: 0, .. }, FleetEvent::Sealed { agent: 0, .. }]));
        assert_eq!(coordinator.take_commits(), [(0, 2)]);
        assert_eq!(outgoing_messages(&mut coordinator, 1_300), ["1 stop"]);
    }

    #[test]
    fn who_is_silent_is_lost_and_has_no_part_any_more() {
        let mut coordinator = coordinator();
        coordinator.take(0, 3_000 * MS, ToCoordinator::Beat { epoch: 0, phase: AgentPhase::Idle }, &mut Vec::new());
        assert_eq!(outgoing_messages(&mut coordinator, 3_999), Vec::<String>::new());
        let lost = outgoing_messages(&mut coordinator, 4_000);
        assert!(lost[0] == "1 leave" && lost[1].contains("it sent nothing for 4 s"), "{lost:?}");
        assert_eq!((coordinator.living(), coordinator.loss(1)), (vec![0], Some("it sent nothing for 4 s")));
        assert!(outgoing_messages(&mut coordinator, 4_001).is_empty() && coordinator.lose(1, "again".into()).is_none());
        // While the carrier is down nobody is lost by silence.
        coordinator.excuse_silence(10_000 * MS);
        assert!(outgoing_messages(&mut coordinator, 13_999).is_empty() && coordinator.living() == [0]);
        assert!(outgoing_messages(&mut coordinator, 14_000)[0].contains("0 leave"));
    }

    #[test]
    fn a_clock_is_asked_until_it_is_known() {
        let mut coordinator = coordinator();
        for number in 1..=PINGS_FIRST {
            let at_ns = u64::from(number) * MS;
            coordinator.poll(at_ns, &mut Vec::new());
            let asked = coordinator.take_outgoing();
            assert!(asked.contains(&(0, ToAgent::Ping { number })), "{asked:?}");
            let pong = ToCoordinator::Pong { number, agent_ns: at_ns + 500 };
            coordinator.take(0, at_ns + 10, pong.clone(), &mut Vec::new());
            // Twice the same answer is one.
            coordinator.take(0, at_ns + 1, pong, &mut Vec::new());
        }
        let clock = coordinator.clock(0);
        assert_eq!((clock.samples(), clock.error_ns_max(), clock.there(0)), (PINGS_FIRST, Some(5), 495));
        assert_eq!(coordinator.clock(1).error_ns_max(), None);
    }
}
