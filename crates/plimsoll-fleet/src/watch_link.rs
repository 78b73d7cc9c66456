//! A coordinator's connection to an agent that measures a server on its machine ([`WatchLink`]).
//! The connection waits for the agent, starts the measurement, and converts readings to this
//! machine's clock.
//!
//! Not here: the thread that waits for readings (`remote_readings`), and starting the agent
//! (`ssh_login`).

use crate::bus::{Bus, BusEvent};
use crate::coordinator::{Coordinator, PINGS_BEFORE_FIRST_LOAD};
use crate::message::{Hello, ToAgent, ToCoordinator, WatchTask};
use plimsoll_model::Probes;
use std::time::Duration;

/// The number of the agent on the bus, which has no other agents.
const AGENT_NUMBER: usize = 0;
/// The longest wait for the agent's hello message, ns (60 s).
const HELLO_NS_MAX: u64 = 60_000_000_000;
/// The longest wait until the agent has found the server, ns (20 s).
const SERVER_SEARCH_TIMEOUT_NS: u64 = 20_000_000_000;
/// The time after which the request to measure is sent again, ns (2 s).
const WATCH_REPEAT_NS: u64 = 2_000_000_000;
/// The longest wait for a message before due messages are sent.
pub const MESSAGE_WAIT_MAX: Duration = Duration::from_millis(20);
/// The largest number of messages that are handled before due messages are sent.
const MESSAGES_MAX: usize = 64;
const RESPONSE_TIMEOUT_TEXT: &str = "the agent on the server's machine did not respond in time: log in there by hand \
                                     and look for the cause";
const SEARCH_TIMEOUT_TEXT: &str = "the agent on the server's machine did not find the server in time: log in there by \
                                   hand and look for the cause";

/// Received readings, with times of this machine's monotonic clock.
#[derive(Debug)]
pub struct ReadingBatch {
    /// The number of the newest requested sample among the readings; 0 if the readings contain no
    /// requested sample.
    pub sample: u32,
    /// The number of CPU cores that the server recently used. `None` if unknown.
    pub live_cores: Option<f64>,
    /// The readings of the agent's probes.
    pub probes: Probes,
}

/// A coordinator's connection to an agent that measures a server.
pub struct WatchLink<B: Bus> {
    bus: B,
    coordinator: Coordinator,
}

impl<B: Bus> WatchLink<B> {
    /// Waits until the agent on the bus is present and its clock offset is known. Every error of a
    /// `WatchLink` is a sentence to which the caller adds the agent's name.
    pub fn wait_for_agent(bus: B, name: &str) -> Result<WatchLink<B>, String> {
        let begun_ns = bus.now_ns();
        let mut coordinator = Coordinator::default();
        coordinator.add_agent(name, begun_ns);
        let mut link = WatchLink { bus, coordinator };
        while link.coordinator.hello_message(AGENT_NUMBER).is_none()
            || link.coordinator.clock_offset(AGENT_NUMBER).sample_count() < PINGS_BEFORE_FIRST_LOAD
        {
            link.receive_before_deadline(begun_ns + HELLO_NS_MAX, RESPONSE_TIMEOUT_TEXT)?;
            link.refuse_other_version()?;
        }
        Ok(link)
    }

    /// Asks the agent to measure a server, and waits until the measurement has begun.
    pub fn start_watching(&mut self, task: &WatchTask) -> Result<(), String> {
        let begun_ns = self.bus.now_ns();
        let mut asked_ns = None::<u64>;
        loop {
            let now_ns = self.bus.now_ns();
            if asked_ns.is_none_or(|asked_ns| now_ns >= asked_ns + WATCH_REPEAT_NS) {
                asked_ns = Some(now_ns);
                self.bus.send(AGENT_NUMBER, &ToAgent::Watch(task.clone()));
            }
            for message in self.receive_before_deadline(begun_ns + SERVER_SEARCH_TIMEOUT_NS, SEARCH_TIMEOUT_TEXT)? {
                match message {
                    ToCoordinator::Watching(result) => return result,
                    ToCoordinator::Refused { reason, .. } => return Err(reason),
                    _ => {}
                }
            }
        }
    }

    /// Returns the hello message of the agent, once it has arrived.
    pub fn hello_message(&self) -> Option<&Hello> {
        self.coordinator.hello_message(AGENT_NUMBER)
    }

    /// Asks the agent to take a sample now; `number` identifies the sample.
    pub fn request_sample(&mut self, number: u32) {
        self.bus.send(AGENT_NUMBER, &ToAgent::Sample { number });
    }

    /// Returns the readings that have arrived, or that arrive within `patience`. An error says why
    /// no more readings come. Readings that arrived before the error are returned first.
    pub fn receive(&mut self, patience: Duration) -> Result<Vec<ReadingBatch>, String> {
        let said = self.exchange_messages(patience);
        let are_readings = |message: &ToCoordinator| matches!(message, ToCoordinator::Readings { .. });
        if let Some(why) = self.coordinator.loss_reason(AGENT_NUMBER).filter(|_| !said.iter().any(are_readings)) {
            return Err(why.to_owned());
        }
        // All readings of one message belong to one tick (100 ms), in which the agent's clock
        // hardly drifts. One clock offset is therefore right for all readings of a message.
        let offset_ns = self.coordinator.clock_offset(AGENT_NUMBER).offset_ns();
        let came = said.into_iter().filter_map(|message| match message {
            ToCoordinator::Readings { sample, live_milli, probes } => {
                let live_cores = live_milli.map(|milli| f64::from(milli) / 1e3);
                Some(ReadingBatch { sample, live_cores, probes: probes.shift_times(-offset_ns) })
            }
            _ => None,
        });
        Ok(came.collect())
    }

    fn refuse_other_version(&self) -> Result<(), String> {
        let own = env!("CARGO_PKG_VERSION");
        match self.hello_message().filter(|hello| hello.version != own) {
            None => Ok(()),
            Some(hello) => Err(format!(
                "the agent on the server's machine runs plimsoll {version}, and this is plimsoll {own}: install the \
                 same version there, or add --watch-copy",
                version = hello.version
            )),
        }
    }

    /// Receives messages once and returns the messages about the measurement. Returns an error if
    /// the agent is lost, the user interrupts the program, or the time `until_ns` has passed.
    /// `timeout_text` is the error after the time `until_ns`.
    fn receive_before_deadline(&mut self, until_ns: u64, timeout_text: &str) -> Result<Vec<ToCoordinator>, String> {
        let said = self.exchange_messages(MESSAGE_WAIT_MAX);
        if let Some(why) = self.coordinator.loss_reason(AGENT_NUMBER) {
            return Err(why.to_owned());
        }
        if self.bus.is_interrupted() {
            return Err("interrupted".to_owned());
        }
        match self.bus.now_ns() >= until_ns {
            true => Err(timeout_text.to_owned()),
            false => Ok(said),
        }
    }

    /// Receives waiting messages and sends due messages. Returns the received messages about the
    /// measurement.
    fn exchange_messages(&mut self, patience: Duration) -> Vec<ToCoordinator> {
        let (mut said, mut events, mut patience) = (Vec::new(), Vec::new(), patience);
        while let Some((_, came_ns, arrived)) = self.bus.receive(patience) {
            match arrived {
                BusEvent::Message(
                    message @ (ToCoordinator::Watching(_)
                    | ToCoordinator::Readings { .. }
                    | ToCoordinator::Refused { .. }),
                ) => said.push(message),
                BusEvent::Message(message) => {
                    self.coordinator.handle_message(AGENT_NUMBER, came_ns, message, &mut events)
                }
                // The coordinator's events are dropped: they are about loads, and this agent runs
                // no load.
                BusEvent::Gone(why) => drop(self.coordinator.mark_lost(AGENT_NUMBER, why)),
            }
            patience = Duration::ZERO;
            if said.len() >= MESSAGES_MAX {
                break;
            }
        }
        self.coordinator.poll(self.bus.now_ns(), &mut events);
        for (agent, message) in self.coordinator.take_outgoing() {
            self.bus.send(agent, &message);
        }
        said
    }
}

impl<B: Bus> Drop for WatchLink<B> {
    fn drop(&mut self) {
        self.bus.send(AGENT_NUMBER, &ToAgent::Leave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch_agent::{WatchAgent, WatchAgentAction};
    use plimsoll_model::{Series, SeriesKind, SeriesSample};
    use std::collections::VecDeque;

    const MILLISECOND_NS: u64 = 1_000_000;
    const DAY_NS: u64 = 86_400_000_000_000;

    /// A simulated agent whose clock is one day ahead. A message to or from the agent takes the
    /// time `way_ns`.
    struct SimulatedWatchBus {
        now_ns: u64,
        way_ns: u64,
        agent: WatchAgent,
        /// The agent's reply to a request to measure.
        answer: Result<(), String>,
        to_agent: VecDeque<(u64, ToAgent)>,
        to_us: VecDeque<(u64, ToCoordinator)>,
        /// The time at which the agent dies, ns.
        dies_ns: u64,
        /// Whether the transport reports the agent's death after the agent's messages.
        tells: bool,
        /// Whether the report of the agent's death is the next event.
        last_words: bool,
    }

    fn simulated_watch_bus(plimsoll: &str) -> SimulatedWatchBus {
        let hello =
            Hello { version: plimsoll.to_owned(), cores: 2, pid: 7, system: "there".to_owned(), ..Hello::default() };
        SimulatedWatchBus {
            now_ns: 0,
            way_ns: 3 * MILLISECOND_NS,
            agent: WatchAgent::new(hello, DAY_NS),
            answer: Ok(()),
            to_agent: VecDeque::new(),
            to_us: VecDeque::new(),
            dies_ns: u64::MAX,
            tells: false,
            last_words: false,
        }
    }

    impl SimulatedWatchBus {
        fn advance_one_ms(&mut self) {
            self.now_ns += MILLISECOND_NS;
            if self.now_ns >= self.dies_ns {
                return;
            }
            let (there_ns, mut acts) = (self.now_ns + DAY_NS, Vec::new());
            while self.to_agent.front().is_some_and(|(at_ns, _)| *at_ns <= self.now_ns) {
                let (_, message) = self.to_agent.pop_front().expect("there");
                self.agent.handle_message(there_ns, message, &mut acts);
            }
            self.agent.poll(there_ns, &mut acts);
            for act in acts {
                let message = match act {
                    WatchAgentAction::Send(message) => message,
                    WatchAgentAction::Begin(_) => self.agent.handle_watch_result(self.answer.clone()),
                    WatchAgentAction::Sample(sample) => {
                        let mut series = Series::new(SeriesKind::Counter, "ns");
                        series.push(SeriesSample { at_ns: there_ns as i64, value: 1.0 });
                        let mut probes = Probes::default();
                        probes.series.insert("server.cpu".to_owned(), series);
                        ToCoordinator::Readings { sample, live_milli: Some(250), probes: Box::new(probes) }
                    }
                    WatchAgentAction::Leave => continue,
                };
                self.to_us.push_back((self.now_ns + self.way_ns, message));
            }
        }
    }

    impl Bus for SimulatedWatchBus {
        fn now_ns(&self) -> u64 {
            self.now_ns
        }

        fn send(&mut self, _: usize, message: &ToAgent) {
            self.to_agent.push_back((self.now_ns + self.way_ns, message.clone()));
        }

        fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)> {
            if std::mem::take(&mut self.last_words) {
                return Some((AGENT_NUMBER, self.now_ns, BusEvent::Gone("its ssh ended".to_owned())));
            }
            let until_ns = self.now_ns + patience.as_nanos() as u64;
            while self.to_us.front().is_none_or(|(at_ns, _)| *at_ns > self.now_ns) {
                if self.now_ns >= until_ns {
                    return None;
                }
                self.advance_one_ms();
            }
            let (at_ns, message) = self.to_us.pop_front()?;
            // If the transport reports the end of the agent, this report is the last event.
            if self.now_ns >= self.dies_ns && self.tells && self.to_us.is_empty() {
                self.last_words = true;
            }
            Some((AGENT_NUMBER, at_ns, BusEvent::Message(message)))
        }

        fn is_interrupted(&self) -> bool {
            false
        }
    }

    fn watch_task() -> WatchTask {
        let addresses = vec![([10, 0, 0, 1], 80).into()];
        WatchTask { addresses, pid: None, process: None, cgroup: None, thorough: false }
    }

    fn same_version_watch_bus() -> SimulatedWatchBus {
        simulated_watch_bus(env!("CARGO_PKG_VERSION"))
    }

    #[test]
    fn readings_are_converted_to_the_local_clock() {
        let mut link = WatchLink::wait_for_agent(same_version_watch_bus(), "server1").expect("met");
        link.start_watching(&watch_task()).expect("watched");
        let asked_ns = link.bus.now_ns();
        link.request_sample(1);
        let came = link.receive(Duration::from_millis(50)).expect("readings");
        let [ReadingBatch { sample: 1, live_cores: Some(0.25), probes }] = came.as_slice() else { panic!("{came:?}") };
        let at_ns = probes.series["server.cpu"].samples[0].at_ns as u64;
        // The sample was taken when the request arrived at the agent. The message latencies in both
        // directions are equal, so the measured clock offset is exact.
        assert!(
            (asked_ns + 3 * MILLISECOND_NS..=asked_ns + 4 * MILLISECOND_NS).contains(&at_ns),
            "{at_ns}, asked at {asked_ns}"
        );
    }

    #[test]
    fn a_silent_watch_agent_is_lost() {
        let mut link = WatchLink::wait_for_agent(same_version_watch_bus(), "server1").expect("met");
        link.start_watching(&watch_task()).expect("watched");
        link.bus.dies_ns = link.bus.now_ns + 1_000 * MILLISECOND_NS;
        let why = loop {
            if let Err(why) = link.receive(MESSAGE_WAIT_MAX) {
                break why;
            }
            assert!(link.bus.now_ns < 10_000 * MILLISECOND_NS, "it is noticed");
        };
        assert!(why.contains("sent nothing for 4 s"), "{why}");
    }

    #[test]
    fn readings_of_a_dead_agent_precede_its_loss() {
        let mut link = WatchLink::wait_for_agent(same_version_watch_bus(), "server1").expect("met");
        link.start_watching(&watch_task()).expect("watched");
        link.request_sample(7);
        // The agent sent its replies before it died, so all replies arrive together, and the report
        // of its death arrives last.
        for _ in 0..5 {
            link.bus.advance_one_ms();
        }
        (link.bus.dies_ns, link.bus.tells) = (link.bus.now_ns, true);
        link.bus.now_ns += 10 * MILLISECOND_NS;
        let came = link.receive(MESSAGE_WAIT_MAX).expect("its last readings");
        assert!(came.iter().any(|batch| batch.sample == 7 && !batch.probes.is_empty()), "{came:?}");
        assert_eq!(link.receive(MESSAGE_WAIT_MAX).err().as_deref(), Some("its ssh ended"));
    }

    #[test]
    fn a_watch_agent_reports_why_watching_fails() {
        let older = WatchLink::wait_for_agent(simulated_watch_bus("0.0.1"), "server1").err().expect("refused");
        assert!(older.contains("plimsoll 0.0.1") && older.contains(env!("CARGO_PKG_VERSION")), "{older}");
        let dead = SimulatedWatchBus { dies_ns: 0, ..same_version_watch_bus() };
        assert!(WatchLink::wait_for_agent(dead, "server1").is_err_and(|why| why.contains("did not respond in time")));
        let blind = SimulatedWatchBus { answer: Err("no process listens".to_owned()), ..same_version_watch_bus() };
        let mut link = WatchLink::wait_for_agent(blind, "server1").expect("met");
        assert_eq!(link.start_watching(&watch_task()), Err("no process listens".to_owned()));
    }
}
