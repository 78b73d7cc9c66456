//! An agent of a fleet as a state machine without I/O ([`Agent`]). The inputs of the state machine
//! are the time and messages; its outputs are actions. An agent sends its share of each load of a
//! coordinator.
//!
//! An agent runs one load at a time. A frame is a numbered result message with the measurements of
//! one tick (100 ms). The last frame (result message) of a load, the seal, has the totals of the
//! agent's share. The agent keeps each sent frame (result message) until the coordinator has
//! recorded the frame.
//!
//! The agent ends its load if the coordinator is silent for [`COORDINATOR_SILENCE_NS_MAX`], and at
//! the latest at the load's time limit. Not here: running loads, and transporting messages
//! (`service`).

use crate::delivery::Outbox;
use crate::message::{AgentLoadTask, AgentPhase, CalibrationTask, Hello, PartTotals, ToAgent, ToCoordinator};
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{Injector, Interval, Ledger};

/// The time without a message of the coordinator after which an agent ends its load, ns (10 s).
pub const COORDINATOR_SILENCE_NS_MAX: u64 = 10_000_000_000;
/// The interval between heartbeats of an agent, ns (0.2 s).
pub const HEARTBEAT_NS: u64 = 200_000_000;
/// The time after which an agent sends a frame (result message) again if the coordinator has not
/// confirmed the frame as recorded, ns (0.5 s).
const RESEND_NS: u64 = 500_000_000;
/// The largest number of frames (result messages) that an agent sends again at once.
const RESEND_COUNT_MAX: usize = 64;
/// The largest number of frames (result messages) that an agent keeps until the coordinator has
/// recorded them. The agent can keep the frames of more than an hour, at one frame per 100 ms. If
/// more frames are unrecorded, the agent ends the load.
const UNRECORDED_FRAMES_MAX: usize = 40_000;

/// An action that the owner of an [`Agent`] must carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAction {
    /// Send this message to the coordinator.
    Send(ToCoordinator),
    /// Prepare this task: open the connections for the agent's share of the load.
    Prepare(Box<AgentLoadTask>),
    /// Start the prepared load at the time `origin_ns`.
    Begin {
        /// The start of the schedule on the agent's monotonic clock, ns.
        origin_ns: u64,
    },
    /// Measure the capacity of this machine.
    Calibrate(CalibrationTask),
    /// End the running load, or drop the load in preparation.
    End,
    /// End the session with this coordinator.
    Leave,
}

/// The state of an agent in one session with a coordinator.
#[derive(Debug)]
pub struct Agent {
    hello: Hello,
    phase: AgentPhase,
    /// The number of the current load; 0 before the first load.
    epoch: u64,
    /// The reply to the current task, kept so that the agent can repeat a lost reply. `None` while
    /// the task is being prepared.
    task_reply: Option<ToCoordinator>,
    /// The number of the current or last calibration request, and its result once it is known.
    calibration: Option<(u32, Option<ToCoordinator>)>,
    outbox: Outbox<ToCoordinator>,
    ticks: u64,
    ledger: Ledger,
    ends_at_ns: u64,
    last_message_ns: u64,
    last_heartbeat_ns: Option<u64>,
}

impl Agent {
    /// Creates an agent without a load.
    pub fn new(hello: Hello, now_ns: u64) -> Agent {
        Agent {
            hello,
            phase: AgentPhase::Idle,
            epoch: 0,
            task_reply: None,
            calibration: None,
            outbox: Outbox::default(),
            ticks: 0,
            ledger: Ledger::default(),
            ends_at_ns: u64::MAX,
            last_message_ns: now_ns,
            last_heartbeat_ns: None,
        }
    }

    /// Returns the phase of the agent's load.
    pub fn current_phase(&self) -> AgentPhase {
        self.phase
    }

    /// Handles a message of the coordinator, and appends the resulting actions.
    pub fn handle_message(&mut self, now_ns: u64, message: ToAgent, acts: &mut Vec<AgentAction>) {
        self.last_message_ns = now_ns;
        match message {
            ToAgent::Ping { number } => {
                acts.push(AgentAction::Send(ToCoordinator::Pong { number, agent_ns: now_ns }));
            }
            ToAgent::Prepare(task) if task.epoch > self.epoch => {
                if self.is_loading() {
                    acts.push(AgentAction::End);
                }
                self.epoch = task.epoch;
                (self.phase, self.task_reply) = (AgentPhase::Preparing, None);
                (self.outbox, self.ticks, self.ledger) = (Outbox::default(), 0, Ledger::default());
                self.ends_at_ns = u64::MAX;
                acts.push(AgentAction::Prepare(task));
            }
            ToAgent::Prepare(task) if task.epoch == self.epoch => {
                // The coordinator repeats the task because the agent's reply was lost or is not
                // ready yet. A ready reply is sent again.
                acts.extend(self.task_reply.clone().map(AgentAction::Send));
            }
            ToAgent::Start { epoch, origin_ns, length_ns_max } if epoch == self.epoch => {
                self.start(now_ns, origin_ns, length_ns_max, acts);
            }
            ToAgent::Commit { epoch, sequence } if epoch == self.epoch => {
                self.outbox.drop_recorded(sequence);
                if self.phase == AgentPhase::Sealed && self.outbox.is_empty() {
                    self.phase = AgentPhase::Idle;
                }
            }
            ToAgent::Stop { epoch } if epoch == self.epoch => self.stop(acts),
            ToAgent::Leave => {
                self.stop(acts);
                acts.push(AgentAction::Leave);
            }
            ToAgent::Calibrate(task) => self.handle_calibration_task(task, acts),
            ToAgent::Watch(_) => {
                let why = "this agent only generates load, and cannot watch a server: to watch a server, start \
                    plimsoll agent --stdio --watch-only";
                acts.push(AgentAction::Send(ToCoordinator::Watching(Err(why.to_owned()))));
            }
            // The agent ignores messages about another load, lease messages (which only show that
            // the coordinator is alive), and messages for agents that measure a server.
            ToAgent::Sample { .. }
            | ToAgent::Prepare(_)
            | ToAgent::Start { .. }
            | ToAgent::Commit { .. }
            | ToAgent::Stop { .. }
            | ToAgent::Lease => {}
        }
    }

    fn is_loading(&self) -> bool {
        matches!(self.phase, AgentPhase::Preparing | AgentPhase::Ready | AgentPhase::Running)
    }

    fn handle_calibration_task(&mut self, task: CalibrationTask, acts: &mut Vec<AgentAction>) {
        let refused = |why: &str| {
            AgentAction::Send(ToCoordinator::Calibrated { number: task.number, result: Err(why.to_owned()) })
        };
        match &self.calibration {
            // The coordinator repeats the calibration request because the agent's reply was lost or
            // is not ready yet. A ready reply is sent again.
            Some((number, answer)) if *number == task.number => acts.extend(answer.clone().map(AgentAction::Send)),
            Some((_, None)) => acts.push(refused("the agent is being calibrated by another command")),
            _ if self.is_loading() => {
                acts.push(refused("the agent is generating load: calibrate the agent after the load has ended"))
            }
            _ => {
                self.calibration = Some((task.number, None));
                acts.push(AgentAction::Calibrate(task));
            }
        }
    }

    /// Handles the result of a calibration. An error is a sentence to which the coordinator adds
    /// the agent's name.
    pub fn handle_calibration_result(
        &mut self,
        number: u32,
        result: Result<SelfMeasurement, String>,
        acts: &mut Vec<AgentAction>,
    ) {
        if let Some((of, answer @ None)) = &mut self.calibration
            && *of == number
        {
            let calibrated = ToCoordinator::Calibrated { number, result };
            *answer = Some(calibrated.clone());
            acts.push(AgentAction::Send(calibrated));
        }
    }

    fn start(&mut self, now_ns: u64, origin_ns: u64, length_ns_max: u64, acts: &mut Vec<AgentAction>) {
        match self.phase {
            AgentPhase::Ready if origin_ns <= now_ns => {
                let late_ms = (now_ns - origin_ns) / 1_000_000;
                self.stop(acts);
                self.refuse_load(
                    format!("the agent received the start signal {late_ms} ms too late, and did not start the load"),
                    acts,
                );
            }
            AgentPhase::Ready => {
                self.phase = AgentPhase::Running;
                self.ends_at_ns = origin_ns.saturating_add(length_ns_max);
                acts.push(AgentAction::Begin { origin_ns });
                self.send_heartbeat(now_ns, acts);
            }
            // A repeated start message needs no action.
            AgentPhase::Running | AgentPhase::Idle | AgentPhase::Preparing | AgentPhase::Sealed => {}
        }
    }

    fn stop(&mut self, acts: &mut Vec<AgentAction>) {
        match self.phase {
            AgentPhase::Preparing | AgentPhase::Ready => {
                self.phase = AgentPhase::Idle;
                acts.push(AgentAction::End);
            }
            AgentPhase::Running => acts.push(AgentAction::End),
            AgentPhase::Idle | AgentPhase::Sealed => {}
        }
    }

    /// Whether the session can end: the coordinator is silent for [`COORDINATOR_SILENCE_NS_MAX`],
    /// and neither a load nor a calibration is in progress.
    pub fn can_end_session(&self, now_ns: u64) -> bool {
        let is_calibrating = matches!(self.calibration, Some((_, None)));
        !self.is_loading()
            && !is_calibrating
            && now_ns.saturating_sub(self.last_message_ns) >= COORDINATOR_SILENCE_NS_MAX
    }

    fn refuse_load(&mut self, reason: String, acts: &mut Vec<AgentAction>) {
        self.phase = AgentPhase::Idle;
        let refused = ToCoordinator::Refused { epoch: self.epoch, reason };
        self.task_reply = Some(refused.clone());
        acts.push(AgentAction::Send(refused));
    }

    /// Appends the actions that are due now: heartbeats, repetitions of unrecorded result messages,
    /// and the end of the load.
    pub fn poll(&mut self, now_ns: u64, acts: &mut Vec<AgentAction>) {
        if now_ns.saturating_sub(self.last_message_ns) >= COORDINATOR_SILENCE_NS_MAX
            || now_ns >= self.ends_at_ns
            || self.outbox.len() > UNRECORDED_FRAMES_MAX
        {
            self.stop(acts);
        }
        if self.last_heartbeat_ns.is_none_or(|beat_ns| now_ns >= beat_ns + HEARTBEAT_NS) {
            self.send_heartbeat(now_ns, acts);
        }
        let overdue = self.outbox.overdue_frames(now_ns, now_ns.saturating_sub(RESEND_NS), RESEND_COUNT_MAX);
        acts.extend(overdue.into_iter().map(AgentAction::Send));
    }

    fn send_heartbeat(&mut self, now_ns: u64, acts: &mut Vec<AgentAction>) {
        // Before its first task, the agent sends a hello message with each heartbeat, because the
        // coordinator may not know the agent yet.
        if self.epoch == 0 {
            acts.push(AgentAction::Send(ToCoordinator::Hello(self.hello.clone())));
        }
        self.last_heartbeat_ns = Some(now_ns);
        acts.push(AgentAction::Send(ToCoordinator::Beat { epoch: self.epoch, phase: self.phase }));
    }

    /// Handles the result of preparing a task. After success, the result has the load generator
    /// settings (injector), and sentences about adaptations of the load to the agent's machine.
    /// After a failure, the result has the reason why the agent refuses the task.
    pub fn handle_preparation_result(
        &mut self,
        epoch: u64,
        result: Result<(Injector, Vec<String>), String>,
        acts: &mut Vec<AgentAction>,
    ) {
        if epoch != self.epoch || self.phase != AgentPhase::Preparing {
            return;
        }
        match result {
            Ok((injector, fitted)) => {
                self.phase = AgentPhase::Ready;
                let ready = ToCoordinator::Ready { epoch, injector, fitted };
                self.task_reply = Some(ready.clone());
                acts.push(AgentAction::Send(ready));
            }
            Err(reason) => self.refuse_load(reason, acts),
        }
    }

    /// Sends the measurements of one tick (100 ms) of the load to the coordinator.
    pub fn send_tick(&mut self, now_ns: u64, epoch: u64, index: u32, interval: Interval, acts: &mut Vec<AgentAction>) {
        if epoch != self.epoch || self.phase != AgentPhase::Running {
            return;
        }
        self.ticks += 1;
        interval.routes.iter().for_each(|(_, figures)| self.ledger.merge(&figures.ledger));
        let interval = Box::new(interval);
        let make = |sequence| ToCoordinator::Tick { epoch, sequence, index, interval };
        acts.push(AgentAction::Send(self.outbox.push(now_ns, make)));
    }

    /// Handles the end of the load: sends the seal, a message with the sums over all ticks (100 ms
    /// each) of the load.
    pub fn on_load_end(&mut self, now_ns: u64, epoch: u64, seal: PartTotals, acts: &mut Vec<AgentAction>) {
        if epoch != self.epoch || self.phase != AgentPhase::Running {
            return;
        }
        (self.phase, self.ends_at_ns) = (AgentPhase::Sealed, u64::MAX);
        let seal = PartTotals { ticks: self.ticks, ledger: self.ledger, ..seal };
        let make = |sequence| ToCoordinator::Seal { epoch, sequence, seal };
        acts.push(AgentAction::Send(self.outbox.push(now_ns, make)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::WatchTask;
    use plimsoll_model::Spin;

    const SECOND: u64 = 1_000_000_000;

    fn prepare_message(epoch: u64) -> ToAgent {
        let (weights, workers, spin, preflight, plan) = (Vec::new(), None, Spin::Auto, false, vec![1]);
        let signature = None;
        let task =
            AgentLoadTask { epoch, share_index: 0, share_count: 1, weights, workers, spin, preflight, signature, plan };
        ToAgent::Prepare(Box::new(task))
    }

    fn empty_seal() -> PartTotals {
        let (ledger, failed_answers) = (Ledger::default(), Vec::new());
        PartTotals {
            ticks: 0,
            ledger,
            window_end_ns: 5,
            failed_answers,
            has_no_more_requests: false,
            failure_reason: None,
        }
    }

    /// Returns a text with one letter for each action.
    fn letters_of_actions(acts: &[AgentAction]) -> String {
        let letter = |act: &AgentAction| match act {
            AgentAction::Send(ToCoordinator::Hello(_)) => 'h',
            AgentAction::Send(ToCoordinator::Pong { .. }) => 'o',
            AgentAction::Send(ToCoordinator::Ready { .. }) => 'r',
            AgentAction::Send(ToCoordinator::Refused { .. }) => 'n',
            AgentAction::Send(ToCoordinator::Beat { .. }) => 'b',
            AgentAction::Send(ToCoordinator::Tick { .. }) => 't',
            AgentAction::Send(ToCoordinator::Seal { .. }) => 's',
            AgentAction::Send(ToCoordinator::Watching(_) | ToCoordinator::Readings { .. }) => 'w',
            AgentAction::Send(ToCoordinator::Calibrated { .. }) => 'c',
            AgentAction::Prepare(_) => 'P',
            AgentAction::Calibrate(_) => 'C',
            AgentAction::Begin { .. } => 'B',
            AgentAction::End => 'E',
            AgentAction::Leave => 'L',
        };
        acts.iter().map(letter).collect()
    }

    /// Returns an agent that started a load of 5 s at second 1.
    fn running_agent() -> Agent {
        let (mut agent, mut acts) = (Agent::new(Hello::default(), 0), Vec::new());
        agent.handle_message(0, prepare_message(1), &mut acts);
        agent.handle_preparation_result(1, Ok((Injector::default(), Vec::new())), &mut acts);
        agent.handle_message(0, ToAgent::Start { epoch: 1, origin_ns: SECOND, length_ns_max: 5 * SECOND }, &mut acts);
        assert_eq!((letters_of_actions(&acts).as_str(), agent.current_phase()), ("PrBb", AgentPhase::Running));
        agent
    }

    fn action_letters(act: impl FnOnce(&mut Vec<AgentAction>)) -> String {
        let mut acts = Vec::new();
        act(&mut acts);
        letters_of_actions(&acts)
    }

    #[test]
    fn an_ended_load_is_kept_until_the_coordinator_records_it() {
        let mut agent = running_agent();
        assert_eq!(action_letters(|acts| agent.send_tick(SECOND, 1, 0, Interval::default(), acts)), "t");
        assert_eq!(action_letters(|acts| agent.on_load_end(2 * SECOND, 1, empty_seal(), acts)), "s");
        assert_eq!(
            action_letters(|acts| agent.handle_message(2 * SECOND, ToAgent::Commit { epoch: 1, sequence: 1 }, acts)),
            ""
        );
        assert_eq!(agent.current_phase(), AgentPhase::Sealed);
        // The agent sends a frame (result message) again if the coordinator has not recorded the
        // frame.
        assert_eq!(action_letters(|acts| agent.poll(3 * SECOND, acts)), "bs");
        assert_eq!(
            action_letters(|acts| agent.handle_message(3 * SECOND, ToAgent::Commit { epoch: 1, sequence: 2 }, acts)),
            ""
        );
        assert_eq!(
            (agent.current_phase(), action_letters(|acts| agent.poll(4 * SECOND, acts))),
            (AgentPhase::Idle, "b".to_owned())
        );
        // The coordinator prepares the next load.
        assert_eq!(action_letters(|acts| agent.handle_message(4 * SECOND, prepare_message(2), acts)), "P");
        assert_eq!(action_letters(|acts| agent.handle_message(4 * SECOND, prepare_message(2), acts)), "");
        assert_eq!(action_letters(|acts| agent.handle_preparation_result(2, Err("no".into()), acts)), "n");
        assert_eq!(
            action_letters(|acts| agent.handle_message(4 * SECOND, prepare_message(2), acts)),
            "n",
            "asked again, answered again"
        );
        assert_eq!(
            action_letters(|acts| agent.handle_message(4 * SECOND, prepare_message(1), acts)),
            "",
            "an earlier load"
        );
        let task = WatchTask { addresses: Vec::new(), pid: None, process: None, cgroup: None, thorough: false };
        assert_eq!(
            action_letters(|acts| agent.handle_message(4 * SECOND, ToAgent::Watch(task), acts)),
            "w",
            "it says that it does not"
        );
    }

    #[test]
    fn each_calibration_request_runs_once_and_never_during_a_load() {
        let ask = |agent: &mut Agent, number: u32| {
            action_letters(|acts| {
                agent.handle_message(SECOND, ToAgent::Calibrate(CalibrationTask { number, signature: None }), acts)
            })
        };
        assert_eq!(ask(&mut running_agent(), 1), "c", "it says that it makes a load");
        let mut agent = Agent::new(Hello::default(), 0);
        assert_eq!((ask(&mut agent, 1), ask(&mut agent, 1)), ("C".to_owned(), String::new()));
        assert_eq!(ask(&mut agent, 2), "c", "one at a time");
        assert!(!agent.can_end_session(30 * SECOND));
        assert_eq!(
            action_letters(|acts| agent.handle_calibration_result(9, Err("no".into()), acts)),
            "",
            "of another question"
        );
        assert_eq!(action_letters(|acts| agent.handle_calibration_result(1, Err("no".into()), acts)), "c");
        assert_eq!(action_letters(|acts| agent.handle_calibration_result(1, Err("no".into()), acts)), "");
        assert_eq!((ask(&mut agent, 1), ask(&mut agent, 3)), ("c".to_owned(), "C".to_owned()));
        assert!(!agent.can_end_session(30 * SECOND), "the third is under way");
        agent.handle_calibration_result(3, Err("no".into()), &mut Vec::new());
        assert!(agent.can_end_session(30 * SECOND));
    }

    #[test]
    fn a_load_ends_at_its_deadline_or_without_a_coordinator() {
        let mut agent = running_agent();
        assert_eq!(action_letters(|acts| agent.poll(5 * SECOND, acts)), "b");
        assert_eq!(action_letters(|acts| agent.poll(6 * SECOND, acts)), "Eb", "its time is over");
        let mut agent = running_agent();
        agent.ends_at_ns = u64::MAX;
        for (at_s, expect) in [(9, "b"), (10, "Eb")] {
            assert_eq!(action_letters(|acts| agent.poll(at_s * SECOND, acts)), expect);
        }
        assert!(!agent.can_end_session(10 * SECOND), "its load is still to end");
        assert_eq!(action_letters(|acts| agent.on_load_end(11 * SECOND, 1, empty_seal(), acts)), "s");
        assert!(agent.can_end_session(11 * SECOND));
        agent.handle_message(12 * SECOND, ToAgent::Lease, &mut Vec::new());
        assert!(!agent.can_end_session(13 * SECOND));
        let mut agent = running_agent();
        agent.ends_at_ns = u64::MAX;
        agent.handle_message(8 * SECOND, ToAgent::Lease, &mut Vec::new());
        assert_eq!(action_letters(|acts| agent.poll(17 * SECOND, acts)), "b");
        assert_eq!(
            action_letters(|acts| agent.handle_message(17 * SECOND, ToAgent::Stop { epoch: 9 }, acts)),
            "",
            "another load"
        );
        assert_eq!(action_letters(|acts| agent.handle_message(17 * SECOND, ToAgent::Stop { epoch: 1 }, acts)), "E");
        assert_eq!(action_letters(|acts| agent.handle_message(17 * SECOND, ToAgent::Leave, acts)), "EL");
    }

    #[test]
    fn a_start_time_in_the_past_is_refused() {
        let (mut agent, mut acts) = (Agent::new(Hello::default(), 0), Vec::new());
        agent.handle_message(0, prepare_message(1), &mut acts);
        let start = ToAgent::Start { epoch: 1, origin_ns: SECOND, length_ns_max: SECOND };
        assert_eq!(action_letters(|acts| agent.handle_message(0, start.clone(), acts)), "", "nothing is ready");
        agent.handle_preparation_result(1, Ok((Injector::default(), Vec::new())), &mut acts);
        assert_eq!(action_letters(|acts| agent.handle_message(SECOND, start.clone(), acts)), "En");
        assert_eq!(action_letters(|acts| agent.handle_message(SECOND, start, acts)), "");
        assert_eq!(action_letters(|acts| agent.handle_message(0, ToAgent::Ping { number: 1 }, acts)), "o");
    }
}
