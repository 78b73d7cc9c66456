//! Transports messages in simulated time between a coordinator and simulated agents, for tests
//! ([`SimBus`]). Messages are lost, delayed, repeated and reordered; agents are killed and
//! disconnected. A seed determines the random faults of the messages.

use crate::agent::{Agent, AgentAction};
use crate::bus::{Bus, BusEvent};
use crate::frame::{FleetMessage, decode_single_message_stream, encode_single_message_stream};
use crate::message::{AgentLoadTask, Hello, PartTotals, ToAgent, ToCoordinator};
use plimsoll_engine::ArrivalRoutes;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::rng::{Rng, mix_bits};
use plimsoll_model::{Histogram, Injector, Interval, Ledger, Plan, RequestFailure, Schedule, Stripe, WorkerTime};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub const MILLISECOND_NS: u64 = 1_000_000;
pub const SECOND_NS: u64 = 1_000 * MILLISECOND_NS;

/// The faults of messages on a simulated transport.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageFaults {
    /// The share of messages that are lost, 0 to 1.
    pub loss_share: f64,
    /// The share of messages that arrive twice, 0 to 1.
    pub duplicate_share: f64,
    /// The smallest delay of a message, ns.
    pub delay_ns: u64,
    /// The largest additional random delay of a message, ns.
    pub jitter_ns: u64,
}

/// A message that was sent and has not arrived.
struct MessageInTransit {
    agent: usize,
    is_to_agent: bool,
    bytes: Vec<u8>,
}

pub struct SimBus {
    pub now_ns: u64,
    pub message_faults: MessageFaults,
    /// The time at which the simulated user interrupts the run, ns.
    pub interrupted_at_ns: u64,
    pub agents: Vec<SimAgent>,
    rng: Rng,
    /// The messages that have not arrived, by arrival time in ns and number of the message.
    in_transit: BTreeMap<(u64, u64), MessageInTransit>,
    messages_sent: u64,
    events: VecDeque<(usize, u64, BusEvent)>,
}

pub struct SimAgent {
    agent: Agent,
    clock_offset_ns: u64,
    load: Option<SimLoad>,
    /// The time range in which the agent has no connection, ns.
    pub disconnected_ns: (u64, u64),
    /// The time in ns at which the agent is killed, and whether the transport reports the end of
    /// the agent.
    pub killed_ns: Option<(u64, bool)>,
    /// The time from which the agent's disk is full, ns. An agent with a full disk ends its load
    /// and reports the reason.
    pub disk_full_from_ns: u64,
    has_left: bool,
    /// The last time at which the agent's load was running, ns.
    pub loading_ns: u64,
}

impl SimBus {
    /// Returns a bus with this number of agents. The agents' clocks differ by days.
    pub fn new(agents: usize, message_faults: MessageFaults, seed: u64) -> SimBus {
        let agent = |number: usize| {
            let clock_offset_ns = (number as u64 + 2) * 86_400 * SECOND_NS;
            let hello = Hello { version: env!("CARGO_PKG_VERSION").to_owned(), cores: 1, pid: 1, ..Hello::default() };
            SimAgent {
                agent: Agent::new(hello, clock_offset_ns),
                clock_offset_ns,
                load: None,
                disconnected_ns: (u64::MAX, u64::MAX),
                killed_ns: None,
                disk_full_from_ns: u64::MAX,
                has_left: false,
                loading_ns: 0,
            }
        };
        SimBus {
            now_ns: 0,
            message_faults,
            interrupted_at_ns: u64::MAX,
            agents: (0..agents).map(agent).collect(),
            rng: Rng::for_stream(seed, 1),
            in_transit: BTreeMap::new(),
            messages_sent: 0,
            events: VecDeque::new(),
        }
    }

    pub fn agent_names(&self) -> Vec<String> {
        (0..self.agents.len()).map(|number| format!("load{number}")).collect()
    }

    /// Sends a message between the coordinator and an agent, with the faults of the transport.
    /// `is_to_agent` is true for a message to the agent, and false for a message to the
    /// coordinator.
    fn send_message(&mut self, is_to_agent: bool, agent: usize, bytes: Vec<u8>) {
        let copies = 1 + usize::from(self.rng.next_f64() < self.message_faults.duplicate_share);
        for _ in 0..copies {
            if self.rng.next_f64() < self.message_faults.loss_share {
                continue;
            }
            let jitter_ns = (self.rng.next_f64() * self.message_faults.jitter_ns as f64) as u64;
            self.messages_sent += 1;
            let at = (self.now_ns + self.message_faults.delay_ns + jitter_ns, self.messages_sent);
            self.in_transit.insert(at, MessageInTransit { agent, is_to_agent, bytes: bytes.clone() });
        }
    }

    /// Advances the simulated time by 1 ms.
    pub fn advance_one_ms(&mut self) {
        self.now_ns += MILLISECOND_NS;
        while let Some(first) = self.in_transit.first_entry()
            && first.key().0 <= self.now_ns
        {
            let MessageInTransit { agent, is_to_agent, bytes } = first.remove();
            let there = &mut self.agents[agent];
            if there.is_disconnected(self.now_ns) || there.is_dead(self.now_ns) {
                continue;
            }
            match is_to_agent {
                false => {
                    let message = read::<ToCoordinator>(&bytes);
                    self.events.push_back((agent, self.now_ns, BusEvent::Message(message)));
                }
                true => {
                    let mut acts = Vec::new();
                    there.agent.handle_message(self.now_ns + there.clock_offset_ns, read(&bytes), &mut acts);
                    self.perform_actions(agent, acts);
                }
            }
        }
        for agent in 0..self.agents.len() {
            let there = &mut self.agents[agent];
            if let Some((killed_ns, true)) = there.killed_ns
                && killed_ns <= self.now_ns
                && !there.has_left
            {
                there.has_left = true;
                self.events.push_back((agent, self.now_ns, BusEvent::Gone("its ssh ended".to_owned())));
            }
            if there.is_dead(self.now_ns) {
                continue;
            }
            let (mut acts, there_ns) = (Vec::new(), self.now_ns + there.clock_offset_ns);
            there.agent.poll(there_ns, &mut acts);
            if there.load.as_ref().is_some_and(SimLoad::has_begun) {
                there.loading_ns = self.now_ns;
            }
            if let Some(load) = &mut there.load
                && load.has_begun()
                && self.now_ns >= there.disk_full_from_ns
            {
                (load.is_to_end, load.died) =
                    (true, Some("the agent's spool (its stored measurements) cannot be written".to_owned()));
            }
            if let Some(load) = &mut there.load
                && load.advance_to_time(there_ns, &mut there.agent, &mut acts)
            {
                there.load = None;
            }
            self.perform_actions(agent, acts);
        }
    }

    fn perform_actions(&mut self, agent: usize, acts: Vec<AgentAction>) {
        let mut more = Vec::new();
        for act in acts {
            let there = &mut self.agents[agent];
            match act {
                AgentAction::Send(message) => {
                    self.send_message(false, agent, encode_single_message_stream(|out| message.encode(out)));
                }
                AgentAction::Prepare(task) => {
                    there.load = Some(SimLoad::new(&task));
                    there.agent.handle_preparation_result(task.epoch, Ok((Injector::default(), Vec::new())), &mut more);
                }
                AgentAction::Begin { origin_ns } => {
                    there.load.iter_mut().for_each(|load| load.origin_ns = Some(origin_ns));
                }
                AgentAction::End => match &mut there.load {
                    Some(load) if load.has_begun() => load.is_to_end = true,
                    _ => there.load = None,
                },
                AgentAction::Calibrate(task) => {
                    there.agent.handle_calibration_result(task.number, Ok(simulated_calibration(agent)), &mut more);
                }
                AgentAction::Leave => (there.has_left, there.load) = (true, None),
            }
        }
        if !more.is_empty() {
            self.perform_actions(agent, more);
        }
    }
}

impl SimAgent {
    fn is_disconnected(&self, now_ns: u64) -> bool {
        (self.disconnected_ns.0..self.disconnected_ns.1).contains(&now_ns)
    }

    fn is_dead(&self, now_ns: u64) -> bool {
        self.has_left || self.killed_ns.is_some_and(|(killed_ns, _)| killed_ns <= now_ns)
    }
}

fn read<M: FleetMessage>(bytes: &[u8]) -> M {
    decode_single_message_stream(bytes.to_vec()).expect("a whole message")
}

impl Bus for SimBus {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, agent: usize, message: &ToAgent) {
        self.send_message(true, agent, encode_single_message_stream(|out| message.encode(out)));
    }

    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)> {
        let until_ns = self.now_ns + patience.as_nanos() as u64;
        while self.events.is_empty() && self.now_ns < until_ns {
            self.advance_one_ms();
        }
        self.events.pop_front()
    }

    fn is_interrupted(&self) -> bool {
        self.now_ns >= self.interrupted_at_ns
    }
}

/// A stripe (one agent's share of the schedule) of a load, with the responses of a simulated
/// server.
pub struct SimLoad {
    epoch: u64,
    ticks: VecDeque<Interval>,
    next: u32,
    window_end_ns: u64,
    origin_ns: Option<u64>,
    is_to_end: bool,
    /// The reason why the load ends early; `None` if the load runs to its end.
    died: Option<String>,
    /// The sum of the ledgers (request outcomes) of each route so far. The requests in flight are
    /// computed from this sum.
    route_ledgers: BTreeMap<u16, Ledger>,
}

impl SimLoad {
    fn new(task: &AgentLoadTask) -> SimLoad {
        let plan = Plan::from_bytes(&task.plan).expect("a plan");
        let stripe = task.schedule_stripe().expect("a part");
        let ticks = simulated_ticks(&plan, stripe).into();
        let window_end_ns = Schedule::compile(&plan.load).end_ns().expect("an end");
        let (epoch, route_ledgers) = (task.epoch, BTreeMap::new());
        SimLoad { epoch, ticks, next: 0, window_end_ns, origin_ns: None, is_to_end: false, died: None, route_ledgers }
    }

    fn has_begun(&self) -> bool {
        self.origin_ns.is_some()
    }

    /// Advances the simulated load to the time `now_ns`. Returns whether the load has ended.
    fn advance_to_time(&mut self, now_ns: u64, agent: &mut Agent, acts: &mut Vec<AgentAction>) -> bool {
        let Some(origin_ns) = self.origin_ns else { return false };
        while now_ns >= origin_ns + u64::from(self.next + 1) * Plan::TICK_NS
            && let Some(interval) = self.ticks.pop_front()
        {
            for (route, figures) in interval.routes.iter() {
                self.route_ledgers.entry(route).or_default().merge(&figures.ledger);
            }
            agent.send_tick(now_ns, self.epoch, self.next, interval, acts);
            self.next += 1;
        }
        if self.is_to_end && !self.ticks.is_empty() {
            let mut last = Interval::default();
            for (route, ledger) in &self.route_ledgers {
                last.routes.figures_mut(*route).ledger.in_flight = ledger.requests_without_outcome();
            }
            agent.send_tick(now_ns, self.epoch, self.next, last, acts);
            self.window_end_ns = u64::from(self.next) * Plan::TICK_NS;
            self.ticks.clear();
        }
        if self.ticks.is_empty() {
            let seal = PartTotals { failure_reason: self.died.take(), ..totals_with_window_end(self.window_end_ns) };
            agent.on_load_end(now_ns, self.epoch, seal, acts);
        }
        self.ticks.is_empty()
    }
}

/// Returns the calibrated capacity of an agent's machine. The capacity grows with the agent's
/// number.
pub fn simulated_calibration(agent: usize) -> SelfMeasurement {
    let highest_rps = 10_000.0 * (agent + 1) as f64;
    SelfMeasurement { highest_rps, cpu_us: 9.0, rate_rps: 5_000.0, lag_p99_ns: 90_000, disturbance: None }
}

/// Returns the totals of an agent's share of a load. All counts are zero, and the measured window
/// ends at `window_end_ns`.
pub fn totals_with_window_end(window_end_ns: u64) -> PartTotals {
    let (ledger, failed_answers) = (Ledger::default(), Vec::new());
    PartTotals { ticks: 0, ledger, window_end_ns, failed_answers, has_no_more_requests: false, failure_reason: None }
}

/// Returns the ticks (measurements of 100 ms each) of one stripe (share) of an open-loop load on a
/// simulated server. Response times are 1 to 250 ms, and about one request in 50 fails. The outcome
/// of a request depends only on its number, so the stripes are independent of each other.
pub fn simulated_ticks(plan: &Plan, stripe: Stripe) -> Vec<Interval> {
    let schedule = Arc::new(Schedule::compile(&plan.load));
    let mut ticks: Vec<(Interval, BTreeMap<u16, Histogram>, Histogram)> = Vec::new();
    let mut tick_mut = |at_ns: u64| {
        let index = (at_ns / Plan::TICK_NS) as usize;
        while ticks.len() <= index {
            ticks.push((Interval::default(), BTreeMap::new(), Histogram::new()));
        }
        index
    };
    let mut events = Vec::new();
    let mut routes = ArrivalRoutes::new(plan, stripe).expect("a plan");
    for (number, start_ns) in schedule.arrivals_of_stripe(stripe) {
        let draw = mix_bits(plan.load.seed ^ number);
        let took_ns = MILLISECOND_NS + draw % (249 * MILLISECOND_NS);
        let route = routes.first_route(number).expect("a route");
        events.push((
            tick_mut(start_ns),
            tick_mut(start_ns + took_ns),
            route,
            took_ns,
            draw.is_multiple_of(50),
            draw % 999,
        ));
    }
    for (begun, ended, route, took_ns, refused, lag_ns) in events {
        ticks[begun].0.routes.figures_mut(route).ledger.scheduled += 1;
        ticks[begun].2.record(lag_ns);
        let ledger = &mut ticks[ended].0.routes.figures_mut(route).ledger;
        match refused {
            true => ledger.failed[RequestFailure::Status as usize] += 1,
            false => {
                ledger.succeeded += 1;
                ticks[ended].1.entry(route).or_default().record(took_ns);
            }
        }
    }
    let worker = WorkerTime {
        worker: stripe.unique_number() as u32,
        work_ns: 7 * MILLISECOND_NS,
        cpu_ns: 9 * MILLISECOND_NS,
        wall_ns: 100 * MILLISECOND_NS,
    };
    let finished = |(mut interval, times, mut lag): (Interval, BTreeMap<u16, Histogram>, Histogram)| {
        for (route, mut times) in times {
            interval.routes.figures_mut(route).response = times.drain();
        }
        interval.load.lag = lag.drain();
        interval.load.workers.push(worker);
        interval
    };
    ticks.into_iter().map(finished).collect()
}
