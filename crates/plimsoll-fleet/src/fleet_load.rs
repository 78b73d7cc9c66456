//! Runs loads on the agents of a fleet ([`FleetLoad`]): prepares, starts and ends each load, and
//! merges the results of the agents. One loop waits for the messages of the agents, whatever
//! transport carries the messages.
//!
//! An agent is a plimsoll process, usually on another machine, that sends one share of each load.
//!
//! Not here: connecting to agents (`ssh`), the message protocol (`coordinator`), and summing the
//! results of the parts (`merge`).

use crate::bus::{Bus, BusEvent};
use crate::coordinator::{Coordinator, FleetEvent, PINGS_BEFORE_FIRST_LOAD};
use crate::frame::TO_AGENT_BYTES_MAX;
use crate::load_record::LoadRecord;
use crate::merge::LoadMerger;
use crate::message::{AgentLoadTask, CalibrationTask, Hello};
use crate::task_key::TaskKey;
use plimsoll_engine::{Phase, Tick, TickListener};
use plimsoll_model::addresses::connection_destination;
use plimsoll_model::failure::Failure;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::units::format_exact_duration;
use plimsoll_model::{AgentLossPolicy, EarlyStopReason, Injector, Interval, Plan, Run, Schedule, Spin, Stripe};
use plimsoll_study::runner::RemoteLoad;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest wait until all agents have introduced themselves and their clock offsets are known,
/// ns (60 s).
const HELLO_NS_MAX: u64 = 60_000_000_000;
/// The longest wait until all agents have opened their connections to the target, ns (60 s).
const READY_NS_MAX: u64 = 60_000_000_000;
/// The longest wait for the result of an agent's calibration, ns (60 s).
const CALIBRATION_WAIT_NS_MAX: u64 = 60_000_000_000;
/// The longest wait until the agents have ended a load after a stop message, ns (5 s).
const STOP_NS_MAX: u64 = 5_000_000_000;
/// The longest wait until the agents have ended a load after the user pressed ^C, ns (0.7 s).
const INTERRUPTED_STOP_NS_MAX: u64 = 700_000_000;
/// The smallest delay from the time when all agents are ready to the start of the load, ns (0.1 s).
const START_DELAY_NS_MIN: u64 = 100_000_000;
/// The largest delay from the time when all agents are ready to the start of the load, ns (3 s).
const START_DELAY_NS_MAX: u64 = 3_000_000_000;
/// The delay before the start of a load, in round trips to the slowest agent. During the delay,
/// every agent receives the start time, even if a start message must be repeated.
const START_DELAY_ROUND_TRIPS: u64 = 10;
/// The time after the expected end of a load at which each agent ends the load by its own clock, ns
/// (5 s).
const LOAD_END_MARGIN_NS: u64 = 5_000_000_000;
/// The longest duration of a load for which the user set no end, ns (24 h).
const UNBOUNDED_LOAD_NS_MAX: u64 = 24 * 3_600_000_000_000;
/// The longest wait for messages before the waiting loop checks deadlines and ^C again.
const MESSAGE_WAIT_MAX: Duration = Duration::from_millis(20);
const PREPARATION_TICK_NS: u64 = Plan::TICK_NS;

/// The options that all loads of a fleet share.
#[derive(Clone)]
pub struct FleetOptions {
    /// The number of worker threads of each agent. `None` lets each agent choose by its cores.
    pub workers: Option<u32>,
    /// Whether idle worker threads poll for events or sleep.
    pub spin: Spin,
    /// Whether each agent first checks that the target accepts connections.
    pub preflight: bool,
    /// Whether the load continues or stops after an agent is lost.
    pub on_loss: AgentLossPolicy,
    /// The largest accepted error of an agent's clock offset, ns.
    pub skew_ns_max: u64,
    /// The identifier of the coordinator's machine and of its process-id namespace (see
    /// `service::system_identifier`).
    pub system: String,
    /// The key that signs the tasks for agents, if any.
    pub key: Option<Arc<TaskKey>>,
}

/// Facts about an agent, known before any load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// The name of the agent.
    pub name: String,
    /// The version of plimsoll on the agent.
    pub version: String,
    /// The number of CPU cores that the agent may use.
    pub cores: u32,
    /// The fingerprint of the agent's machine.
    pub machine_fingerprint: String,
    /// The shortest round trip to the agent, ns.
    pub round_trip_ns: u64,
    /// The largest possible error of the agent's clock offset, ns.
    pub clock_error_ns_max: u64,
}

/// A fleet whose agents run loads, with the message transport to its agents.
pub struct FleetLoad<B: Bus> {
    bus: B,
    coordinator: Coordinator,
    options: FleetOptions,
    events: Vec<FleetEvent>,
    /// The numbers of the agents that run the current load, in the order of their shares of the
    /// load.
    parts: Vec<usize>,
    /// The weight of each agent, which determines its share of the load. The list is empty if all
    /// agents have equal shares.
    weights: Vec<u32>,
    /// Whether the current load continues with the other agents when an agent is lost.
    may_continue: bool,
    warnings: Vec<String>,
}

impl<B: Bus> FleetLoad<B> {
    /// Waits until the agents in `names` have introduced themselves and their clock offsets are
    /// known. The list `names` is in the order of the agents' numbers on the bus.
    pub fn wait_for_agents(bus: B, names: &[String], options: FleetOptions) -> Result<FleetLoad<B>, Failure> {
        let mut coordinator = Coordinator::default();
        let begun_ns = bus.now_ns();
        names.iter().for_each(|name| coordinator.add_agent(name, begun_ns));
        let (events, parts, weights, warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut fleet = FleetLoad { bus, coordinator, options, events, parts, weights, may_continue: false, warnings };
        let is_known = |fleet: &FleetLoad<B>, agent: usize| {
            fleet.coordinator.hello_message(agent).is_some()
                && fleet.coordinator.clock_offset(agent).sample_count() >= PINGS_BEFORE_FIRST_LOAD
        };
        let is_missing = |fleet: &FleetLoad<B>, agent: &usize| !is_known(fleet, *agent);
        loop {
            if let Some(agent) = (0..names.len()).find(|agent| fleet.coordinator.loss_reason(*agent).is_some()) {
                let why = fleet.coordinator.loss_reason(agent).unwrap_or_default();
                return Err(Failure::cannot_start(format!("agent {}: {why}", names[agent])));
            }
            let missing: Vec<usize> = (0..names.len()).filter(|agent| is_missing(&fleet, agent)).collect();
            if missing.is_empty() {
                break;
            }
            if fleet.bus.is_interrupted() {
                return Err(Failure::cannot_start("interrupted"));
            }
            if fleet.bus.now_ns() >= begun_ns + HELLO_NS_MAX {
                let missing: Vec<&str> = missing.iter().map(|agent| names[*agent].as_str()).collect();
                let seconds = HELLO_NS_MAX / 1_000_000_000;
                return Err(Failure::cannot_start(format!(
                    "no response within {seconds} s from: {agents}",
                    agents = missing.join(", ")
                )));
            }
            fleet.exchange_messages(MESSAGE_WAIT_MAX);
            fleet.events.clear();
        }
        Ok(fleet)
    }

    /// Returns name, version, machine and clock error of each agent, in the order of the agents'
    /// numbers.
    pub fn status(&self) -> Vec<AgentStatus> {
        let status = |agent: usize| {
            let (hello, clock) = (
                self.coordinator.hello_message(agent).cloned().unwrap_or_default(),
                self.coordinator.clock_offset(agent),
            );
            AgentStatus {
                name: self.agent_name(agent),
                version: hello.version,
                cores: hello.cores,
                machine_fingerprint: hello.machine,
                round_trip_ns: clock.round_trip_ns_min(),
                clock_error_ns_max: clock.error_ns_max().unwrap_or(0),
            }
        };
        (0..self.coordinator.agent_count()).map(status).collect()
    }

    /// Sets the weight of each agent, in the order of the agents' numbers; an empty list gives
    /// equal shares. `note` is a warning for the user.
    pub fn set_weights(&mut self, weights: Vec<u32>, note: Option<String>) {
        self.weights = weights;
        self.warnings.extend(note);
    }

    /// Calibrates the machine of each agent. Agents on the same machine are calibrated one after
    /// another.
    pub fn calibrate_each_agent(&mut self) -> Result<Vec<Result<SelfMeasurement, String>>, Failure> {
        let machine = |fleet: &FleetLoad<B>, agent: usize| {
            let hello = fleet.coordinator.hello_message(agent).cloned().unwrap_or_default();
            // Agents with equal boot ids run on the same machine, even if they are in different
            // containers.
            hello.system.split(' ').next().map(str::to_owned).filter(|boot| !boot.is_empty())
        };
        let machines: Vec<Option<String>> =
            (0..self.coordinator.agent_count()).map(|agent| machine(self, agent)).collect();
        let mut begun_ns = vec![None::<u64>; machines.len()];
        let run = self.bus.run_name().to_owned();
        loop {
            let now_ns = self.bus.now_ns();
            let mut is_over = true;
            for agent in self.coordinator.active_agents() {
                match begun_ns[agent] {
                    None => {
                        is_over = false;
                        let is_beside = |other: usize| machines[other].is_some() && machines[other] == machines[agent];
                        let mut living = self.coordinator.active_agents().into_iter();
                        if !living.any(|other| is_beside(other) && self.coordinator.is_calibrating(other)) {
                            let number = agent as u32 + 1;
                            let key = self.options.key.as_ref();
                            let signature = key.map(|key| key.sign_calibration(&run, number));
                            self.coordinator.request_calibration(now_ns, agent, CalibrationTask { number, signature });
                            begun_ns[agent] = Some(now_ns);
                        }
                    }
                    Some(begun_ns) if self.coordinator.is_calibrating(agent) => {
                        is_over = false;
                        if now_ns >= begun_ns + CALIBRATION_WAIT_NS_MAX {
                            let seconds = CALIBRATION_WAIT_NS_MAX / 1_000_000_000;
                            drop(
                                self.coordinator
                                    .mark_lost(agent, format!("the calibration did not finish within {seconds} s")),
                            );
                        }
                    }
                    Some(_) => {}
                }
            }
            if is_over {
                break;
            }
            if self.bus.is_interrupted() {
                return Err(Failure::cannot_start("interrupted"));
            }
            self.exchange_messages(MESSAGE_WAIT_MAX);
            self.events.clear();
        }
        let found =
            |agent: usize| match (self.coordinator.calibration_result(agent), self.coordinator.loss_reason(agent)) {
                (Some(result), _) => result.clone(),
                (None, why) => Err(why.unwrap_or("the agent did not respond").to_owned()),
            };
        Ok((0..self.coordinator.agent_count()).map(found).collect())
    }

    /// Returns an error if the agents cannot run a load together, because versions differ or a
    /// clock is too uncertain.
    pub fn refuse_mismatched_agents(&self) -> Result<(), Failure> {
        self.refuse_other_versions()?;
        self.refuse_uncertain_clocks()
    }

    /// Returns an error if a target is a loopback address and an agent is on another machine,
    /// because the agent would send load to itself.
    pub fn refuse_loopback_targets(&self, targets: &[SocketAddr]) -> Result<(), Failure> {
        let is_own = |address: &&SocketAddr| connection_destination(address.ip()).is_loopback();
        let is_elsewhere = |agent: &usize| {
            self.coordinator.hello_message(*agent).is_some_and(|hello| !self.runs_on_this_machine(hello))
        };
        match (targets.iter().find(is_own), (0..self.coordinator.agent_count()).find(is_elsewhere)) {
            (Some(address), Some(agent)) => Err(Failure::usage(format!(
                "agent {agent_name} would send load to itself: {address} means the agent's own machine. Give an \
                 address of the target that the agent can reach",
                agent_name = self.coordinator.agent_name(agent)
            ))),
            _ => Ok(()),
        }
    }

    /// Whether an agent is a process on this machine.
    fn runs_on_this_machine(&self, hello: &Hello) -> bool {
        !hello.system.is_empty() && hello.system == self.options.system
    }

    fn refuse_other_versions(&self) -> Result<(), Failure> {
        let own = env!("CARGO_PKG_VERSION");
        let differs = |agent: &usize| self.coordinator.hello_message(*agent).is_some_and(|hello| hello.version != own);
        match (0..self.coordinator.agent_count()).find(differs) {
            None => Ok(()),
            Some(agent) => {
                let theirs = self.coordinator.hello_message(agent).map_or("", |hello| hello.version.as_str());
                Err(Failure::cannot_start(format!(
                    "agent {agent_name} runs plimsoll {theirs}, and this is plimsoll {own}: install the same version \
                     there, or add --fleet-copy",
                    agent_name = self.coordinator.agent_name(agent)
                )))
            }
        }
    }

    fn refuse_uncertain_clocks(&self) -> Result<(), Failure> {
        let allowed_ns = self.options.skew_ns_max;
        let error_ns = |agent: usize| self.coordinator.clock_offset(agent).error_ns_max().unwrap_or(u64::MAX);
        match self.coordinator.active_agents().into_iter().find(|agent| error_ns(*agent) > allowed_ns) {
            None => Ok(()),
            Some(agent) => Err(Failure::cannot_start(format!(
                "the clock of agent {agent_name} may be wrong by {error_ms:.1} ms (round trips and drift), and \
                 --max-skew allows {allowed_time}. Increase --max-skew, or use a nearer machine",
                agent_name = self.coordinator.agent_name(agent),
                error_ms = error_ns(agent) as f64 / 1e6,
                allowed_time = format_exact_duration(allowed_ns),
            ))),
        }
    }

    /// Receives waiting messages and sends due messages. Waits at most `patience` for the first
    /// message.
    fn exchange_messages(&mut self, patience: Duration) {
        let mut patience = patience;
        while let Some((agent, came_ns, arrived)) = self.bus.receive(patience) {
            match arrived {
                BusEvent::Message(message) => {
                    self.coordinator.handle_message(agent, came_ns, message, &mut self.events)
                }
                BusEvent::Gone(why) => self.events.extend(self.coordinator.mark_lost(agent, why)),
            }
            patience = Duration::ZERO;
            // The loop ends after 256 events so that due messages are sent, however many messages
            // arrive.
            if self.events.len() >= 256 {
                break;
            }
        }
        let now_ns = self.bus.now_ns();
        if !self.bus.is_up() {
            self.coordinator.restart_silence_clock(now_ns);
        }
        self.coordinator.poll(now_ns, &mut self.events);
        self.send_outgoing();
    }

    fn send_outgoing(&mut self) {
        for (agent, message) in self.coordinator.take_outgoing() {
            self.bus.send(agent, &message);
        }
    }

    fn agent_name(&self, agent: usize) -> String {
        self.coordinator.agent_name(agent).to_owned()
    }

    /// Returns the load generator settings (injector) that an agent is expected to use. The
    /// expected settings stay constant, so that all loads of a study have the same record. The
    /// agent's account (its summary in the run file) contains the actual number of threads.
    fn expected_injector(&self, agent: usize) -> Injector {
        let cores = self.coordinator.hello_message(agent).map_or(1, |hello| hello.cores.max(1));
        Injector { workers: self.options.workers.unwrap_or(cores), spin: self.options.spin, ..Injector::default() }
    }

    /// Returns the numbers of the agents that can take part in a load. The error says why no load
    /// is possible.
    fn usable_agents(&mut self) -> Result<Vec<usize>, Failure> {
        let living = self.coordinator.active_agents();
        let lost =
            (0..self.coordinator.agent_count()).find_map(|agent| Some((agent, self.coordinator.loss_reason(agent)?)));
        match lost {
            Some((agent, why)) if living.is_empty() || self.options.on_loss == AgentLossPolicy::Stop => {
                Err(Failure::cannot_start(format!("agent {} was lost: {why}", self.coordinator.agent_name(agent))))
            }
            _ => Ok(living),
        }
    }

    /// Returns the weights of the agents in the current load, in the order of their shares of the
    /// load. The list is empty if all agents have equal shares.
    fn part_weights(&self) -> Vec<u32> {
        let weights = self.parts.iter().filter_map(|agent| self.weights.get(*agent));
        weights.copied().collect()
    }

    /// Returns the stripe (share of the schedule) that each agent of the current load sends.
    fn part_stripes(&self) -> Vec<Stripe> {
        let (weights, of) = (self.part_weights(), self.parts.len());
        let equal = |index: usize| Stripe::new(index as u64, of as u64);
        // Weights that cannot be converted to stripes (shares of the schedule) were refused before
        // the load.
        (0..of).map(|index| Stripe::weighted(index, &weights).unwrap_or_else(|| equal(index))).collect()
    }

    fn prepare_parts(&mut self, plan: &[u8]) -> Result<(), Failure> {
        self.parts = self.usable_agents()?;
        let (wishes, weights) = (&self.options, self.part_weights());
        // Only the first load checks that the target accepts connections.
        let preflight = wishes.preflight && self.coordinator.current_epoch() == 0;
        let run = self.bus.run_name();
        self.coordinator.prepare_load(self.bus.now_ns(), &self.parts, |epoch, index, of| {
            let (weights, workers, spin, plan) = (weights.clone(), wishes.workers, wishes.spin, plan.to_vec());
            let task = AgentLoadTask {
                epoch,
                share_index: index,
                share_count: of,
                weights,
                workers,
                spin,
                preflight,
                signature: None,
                plan,
            };
            AgentLoadTask { signature: wishes.key.as_ref().map(|key| key.sign_task(run, &task)), ..task }
        });
        self.send_outgoing();
        Ok(())
    }

    fn stop_agents(&mut self) {
        self.coordinator.stop(self.bus.now_ns());
        self.send_outgoing();
    }

    /// Runs one load from its start to its end, and returns the merged run.
    fn run_load(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure> {
        let schedule = Schedule::compile(&plan.load);
        let length_ns = schedule.end_ns().map(|end_ns| end_ns.saturating_add(plan.load.grace_ns + LOAD_END_MARGIN_NS));
        let length_ns = length_ns.unwrap_or(UNBOUNDED_LOAD_NS_MAX);
        let over_by_ns = origin_ns.saturating_add(length_ns + STOP_NS_MAX);
        self.coordinator.start(self.bus.now_ns(), origin_ns, length_ns);
        self.send_outgoing();
        let agents: Vec<_> =
            self.parts.iter().map(|agent| (self.agent_name(*agent), self.expected_injector(*agent))).collect();
        let started_unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let (epoch, record) = (self.coordinator.current_epoch(), plan.record());
        self.bus.begin_load(&LoadRecord { epoch, started_unix_ms, plan: record, agents: agents.clone() });
        let mut merge = LoadMerger::new(plan, &agents, &self.part_stripes(), origin_ns);
        let (mut stop_by_ns, mut hurried) = (None, false);
        // No message can arrive during an outage of the transport, so deadlines move by the length
        // of the outage.
        let (mut looked_ns, mut down_ns) = (self.bus.now_ns(), 0);
        while !merge.all_parts_ended() {
            self.exchange_messages(MESSAGE_WAIT_MAX);
            let passed_ns = self.bus.now_ns() - std::mem::replace(&mut looked_ns, self.bus.now_ns());
            down_ns += if self.bus.is_up() { 0 } else { passed_ns };
            let mut is_to_end = false;
            for event in std::mem::take(&mut self.events) {
                is_to_end |= self.merge_event(event, &mut merge, on_tick).is_break();
            }
            for (agent, sequence) in self.coordinator.take_commits() {
                self.bus.acknowledge(agent, self.coordinator.current_epoch(), sequence);
            }
            let now_ns = self.bus.now_ns();
            let interrupted = self.bus.is_interrupted();
            if (is_to_end || interrupted) && stop_by_ns.is_none() {
                self.stop_agents();
                stop_by_ns = Some(now_ns + STOP_NS_MAX);
            }
            if interrupted && !hurried {
                hurried = true;
                stop_by_ns = Some(now_ns + INTERRUPTED_STOP_NS_MAX);
            }
            let excused_ns = if hurried { 0 } else { down_ns };
            if now_ns >= stop_by_ns.unwrap_or(over_by_ns).saturating_add(excused_ns) {
                for agent in self.parts.clone() {
                    let part = self.parts.iter().position(|it| *it == agent);
                    if part.is_some_and(|part| merge.is_active(part)) {
                        self.events.extend(
                            self.coordinator.mark_lost(agent, "the agent did not end its load in time".to_owned()),
                        );
                    }
                }
                for event in std::mem::take(&mut self.events) {
                    let _ = self.merge_event(event, &mut merge, on_tick);
                }
                self.send_outgoing();
            }
        }
        for (part, agent) in self.parts.iter().enumerate() {
            let (frames, repeated) = self.coordinator.frame_counts(*agent);
            let account = merge.account_mut(part);
            (account.intervals_recorded, account.frames_repeated) = (frames, repeated);
            account.workers =
                self.coordinator.agent_injector(*agent).map_or(account.workers, |injector| injector.workers);
            account.skew_ns_max = self.coordinator.clock_offset(*agent).error_ns_max().unwrap_or(0);
        }
        let run = merge.into_run(on_tick);
        self.bus.delete_stored_load();
        Ok(run)
    }

    /// Adds an event of an agent to the merged load. `Break` means that all agents must stop.
    fn merge_event(
        &mut self,
        event: FleetEvent,
        merge: &mut LoadMerger,
        on_tick: &mut TickListener,
    ) -> ControlFlow<()> {
        let (agent, result) = match event {
            FleetEvent::Tick { agent, index, interval } => {
                let Some(part) = self.part_index(agent) else { return ControlFlow::Continue(()) };
                (agent, merge.add_tick(part, index, *interval, on_tick))
            }
            FleetEvent::Sealed { agent, seal } => {
                let Some(part) = self.part_index(agent) else { return ControlFlow::Continue(()) };
                (agent, merge.finish_part(part, seal, on_tick))
            }
            FleetEvent::Refused { agent, reason } | FleetEvent::Lost { agent, why: reason } => (agent, Err(reason)),
            FleetEvent::Ready { .. } => return ControlFlow::Continue(()),
        };
        match result {
            Ok(flow) => flow,
            Err(why) => {
                // Marking the agent as lost also excludes it from later loads.
                self.coordinator.mark_lost(agent, why.clone());
                let name = self.agent_name(agent);
                let warning = format!("agent {name} was lost: {why}");
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
                let Some(part) = self.part_index(agent) else { return ControlFlow::Continue(()) };
                merge.mark_part_lost(
                    part,
                    &why,
                    self.may_continue && self.options.on_loss == AgentLossPolicy::Continue,
                    on_tick,
                )
            }
        }
    }

    fn part_index(&self, agent: usize) -> Option<usize> {
        self.parts.iter().position(|it| *it == agent)
    }
}

impl<B: Bus> RemoteLoad for FleetLoad<B> {
    fn injectors(&self) -> Vec<Injector> {
        self.coordinator.active_agents().into_iter().map(|agent| self.expected_injector(agent)).collect()
    }

    fn local_pids(&self) -> Vec<u32> {
        let hellos = (0..self.coordinator.agent_count()).filter_map(|agent| self.coordinator.hello_message(agent));
        hellos.filter(|hello| self.runs_on_this_machine(hello)).map(|hello| hello.pid).collect()
    }

    fn connect(&mut self, plan: &Plan, may_continue: bool, on_tick: &mut TickListener) -> Result<(), Failure> {
        self.may_continue = may_continue;
        let bytes = plan.to_bytes();
        if bytes.len() > self.bus.plan_bytes_max() {
            let ssh = match self.bus.plan_bytes_max() < TO_AGENT_BYTES_MAX {
                true => format!(", or use ssh://HOST, which transmits up to {TO_AGENT_BYTES_MAX} bytes"),
                false => String::new(),
            };
            return Err(Failure::usage(format!(
                "the load plan has {plan_bytes} bytes, and the fleet's connection transmits at most {plan_bytes_max}: \
                 make the plan smaller{ssh}",
                plan_bytes = bytes.len(),
                plan_bytes_max = self.bus.plan_bytes_max()
            )));
        }
        self.events.clear();
        self.prepare_parts(&bytes)?;
        let (begun_ns, mut shown_ns) = (self.bus.now_ns(), 0);
        while !self.coordinator.is_preparation_over() {
            self.exchange_messages(MESSAGE_WAIT_MAX);
            for event in std::mem::take(&mut self.events) {
                match event {
                    FleetEvent::Refused { agent, reason } => {
                        self.stop_agents();
                        return Err(Failure::cannot_start(format!("agent {}: {reason}", self.agent_name(agent))));
                    }
                    // After the loss of an agent, the load is divided again among the remaining
                    // agents.
                    FleetEvent::Lost { agent, why } => {
                        self.warnings.push(format!("agent {} was lost: {why}", self.agent_name(agent)));
                        self.prepare_parts(&bytes)?;
                    }
                    FleetEvent::Ready { agent, fitted } => {
                        let name = self.agent_name(agent);
                        let said = fitted.iter().map(|sentence| format!("agent {name}: {sentence}"));
                        let new: Vec<String> = said.filter(|sentence| !self.warnings.contains(sentence)).collect();
                        self.warnings.extend(new);
                    }
                    FleetEvent::Tick { .. } | FleetEvent::Sealed { .. } => {}
                }
            }
            if self.bus.is_interrupted() {
                self.stop_agents();
                return Err(Failure::cannot_start("interrupted"));
            }
            let now_ns = self.bus.now_ns();
            if now_ns >= begun_ns + READY_NS_MAX {
                self.stop_agents();
                let seconds = READY_NS_MAX / 1_000_000_000;
                return Err(Failure::cannot_start(format!(
                    "the agents did not open all connections within {seconds} s"
                )));
            }
            if now_ns >= shown_ns + PREPARATION_TICK_NS {
                shown_ns = now_ns;
                let interval = Interval::default();
                let tick = Tick { phase: Phase::Preparing, start_ns: 0, end_ns: 0, origin_ns: 0, interval: &interval };
                if let ControlFlow::Break(EarlyStopReason::Interrupted) = on_tick(&tick) {
                    self.stop_agents();
                    return Err(Failure::cannot_start("interrupted"));
                }
            }
        }
        self.refuse_uncertain_clocks()
    }

    fn start_ahead_ns(&self) -> u64 {
        let clocks = self.parts.iter().map(|agent| self.coordinator.clock_offset(*agent).round_trip_ns_min());
        (clocks.max().unwrap_or(0) * START_DELAY_ROUND_TRIPS).clamp(START_DELAY_NS_MIN, START_DELAY_NS_MAX)
    }

    fn run(&mut self, plan: &Plan, origin_ns: u64, on_tick: &mut TickListener) -> Result<Run, Failure> {
        let run = self.run_load(plan, origin_ns, on_tick)?;
        if self.options.on_loss == AgentLossPolicy::Stop && !self.may_continue {
            self.usable_agents()?;
        }
        Ok(run)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String> {
        self.bus.store_file(path)
    }
}

#[cfg(test)]
impl<B: Bus> FleetLoad<B> {
    pub(crate) fn bus(&self) -> &B {
        &self.bus
    }

    pub(crate) fn bus_mut(&mut self) -> &mut B {
        &mut self.bus
    }
}

impl<B: Bus> Drop for FleetLoad<B> {
    fn drop(&mut self) {
        for agent in self.coordinator.active_agents() {
            self.bus.send(agent, &crate::message::ToAgent::Leave);
        }
    }
}
