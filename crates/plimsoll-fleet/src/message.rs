//! Messages between agents and their coordinator, and their validation.
//!
//! Not here: their bytes (`frame`), and the protocol (`agent`, `coordinator`).

use plimsoll_model::agent_account::AGENT_NAME_BYTES_MAX;
use plimsoll_model::agent_calibration::FINGERPRINT_BYTES_MAX;
use plimsoll_model::failed_answer::KINDS_MAX;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::series_table::{SeriesSubject, series_row};
use plimsoll_model::units::TIME_NS_MAX;
use plimsoll_model::{FailedAnswer, Injector, Interval, Ledger, Probes, Spin, Stripe, redact};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The longest foreign sentence to repeat, in characters.
const SENTENCE_CHARS_MAX: usize = 300;
/// Most sentences of one message.
const SENTENCES_MAX: usize = 20;

/// A message from the coordinator to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Request the agent's clock.
    Ping {
        /// Returned in the reply.
        number: u32,
    },
    /// Open the connections of a part.
    #[serde(skip)]
    Prepare(Box<PartTask>),
    /// Start the prepared load.
    Start {
        /// The load.
        epoch: u64,
        /// Start of the schedule on the agent's monotonic clock, ns.
        origin_ns: u64,
        /// Longest duration, ns: the agent ends the load then in any case.
        length_ns_max: u64,
    },
    /// The coordinator is alive.
    Lease,
    /// All frames of a load up to this one are recorded.
    Commit {
        /// The load.
        epoch: u64,
        /// The last recorded frame.
        sequence: u64,
    },
    /// Stop the load, or drop its preparation.
    Stop {
        /// The load.
        epoch: u64,
    },
    /// End the session.
    Leave,
    /// Measure the capacity of the machine against its own reference server.
    Calibrate(CalibrationTask),
    /// Watch a server on the machine, for agents that only watch.
    Watch(WatchTask),
    /// Take a sample now, and send it with this number.
    Sample {
        /// Higher than any before.
        number: u32,
    },
}

/// The server that an agent must watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTask {
    /// The server's addresses as seen from another machine: only the port matters here.
    pub addresses: Vec<SocketAddr>,
    /// Its process by id, if the user names one.
    pub pid: Option<u32>,
    /// Its process by name, if the user names one.
    pub process: Option<String>,
    /// Its control group, if the user names one.
    pub cgroup: Option<String>,
    /// Whether readings may cost more, and functions are sampled, as for `explain`.
    pub thorough: bool,
}

/// One agent's part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartTask {
    /// The number of the load; later loads have higher ones.
    pub epoch: u64,
    /// The index of the part, from 0.
    pub index: u64,
    /// Number of parts.
    pub of: u64,
    /// The weight of each part, in order; empty: equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// Worker threads, if the user sets them.
    pub workers: Option<u32>,
    /// How workers wait for events.
    pub spin: Spin,
    /// Whether to check first that the target accepts connections.
    pub preflight: bool,
    /// The coordinator's signature, if it has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
    /// The complete plan of the whole load, encoded.
    #[serde(skip)]
    pub plan: Vec<u8>,
}

impl PartTask {
    /// The stripe of the part; `None`: there is no such part.
    pub fn stripe(&self) -> Option<Stripe> {
        if self.index >= self.of {
            return None;
        }
        match self.weights.is_empty() {
            true => Some(Stripe::new(self.index, self.of)),
            false if self.weights.len() as u64 == self.of => Stripe::weighted(self.index as usize, &self.weights),
            false => None,
        }
    }
}

/// A calibration task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationTask {
    /// Returned in the reply.
    pub number: u32,
    /// The coordinator's signature, if it has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
}

/// A coordinator's signature of a task; see `task_key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSignature {
    /// Expiry of the task, s since 1970.
    pub expires_unix_s: u64,
    /// Ed25519 over the task and its plan, in hexadecimal.
    pub signature: String,
}

/// A message from an agent to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToCoordinator {
    /// The agent is present.
    Hello(Hello),
    /// The agent's clock.
    Pong {
        /// The number of the request.
        number: u32,
        /// Its monotonic clock, ns.
        agent_ns: u64,
    },
    /// The connections of its part are open.
    Ready {
        /// The load.
        epoch: u64,
        /// The injector of its part.
        injector: Injector,
        /// Adaptations of the load to its machine.
        fitted: Vec<String>,
    },
    /// The agent refuses its part.
    Refused {
        /// The load.
        epoch: u64,
        /// The reason: a sentence about "it".
        reason: String,
    },
    /// The result of a calibration; an error is a sentence about "it".
    Calibrated {
        /// The number of the task.
        number: u32,
        /// The result.
        result: Result<SelfMeasurement, String>,
    },
    /// A heartbeat.
    Beat {
        /// The current load; 0: none yet.
        epoch: u64,
        /// The current phase.
        phase: AgentPhase,
    },
    /// The agent has ended its part: the last frame.
    Seal {
        /// The load.
        epoch: u64,
        /// The number of the frame.
        sequence: u64,
        /// The totals of the part.
        seal: Seal,
    },
    /// The figures of a tick.
    #[serde(skip)]
    Tick {
        /// The load.
        epoch: u64,
        /// The number of the frame, from 1, without gaps.
        sequence: u64,
        /// The number of the tick, since the start of the schedule.
        index: u32,
        /// The figures.
        interval: Box<Interval>,
    },
    /// The agent watches the server; or the reason why not, a sentence about "it".
    Watching(Result<(), String>),
    /// Readings since the last message of this kind.
    #[serde(skip)]
    Readings {
        /// The last requested sample among them; 0: none.
        sample: u32,
        /// The server's recent CPU use in thousandths of a core; `None`: unknown.
        live_milli: Option<u32>,
        /// Readings, with times of the agent's monotonic clock.
        probes: Box<Probes>,
    },
}

/// The identity of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hello {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// Cores that it may use.
    pub cores: u32,
    /// Its process id; valid on this machine if `system` equals the coordinator's.
    pub pid: u32,
    /// The system of the process id; empty if unknown.
    pub system: String,
    /// The fingerprint of its machine: differs for another machine or number of cores.
    #[serde(default)]
    pub machine: String,
}

/// The phase of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPhase {
    /// Idle.
    Idle,
    /// Opening connections.
    Preparing,
    /// Connections are open; waiting for the start.
    Ready,
    /// The start is known, or the load runs.
    Running,
    /// The load has ended, with unrecorded frames.
    Sealed,
}

/// The totals of an agent's part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seal {
    /// Number of ticks sent.
    pub ticks: u64,
    /// The sum of their ledgers.
    pub ledger: Ledger,
    /// End of its part of the measured window, ns of schedule time.
    pub window_end_ns: u64,
    /// Its first failed responses.
    pub failed_answers: Vec<FailedAnswer>,
    /// Whether it ended early because its requests ran out.
    pub used_up: bool,
    /// Why it ended early by itself, if it did.
    pub died: Option<String>,
}

/// Limits a foreign sentence to one line of bounded length, without secrets.
fn tame(sentence: &mut String) {
    *sentence = redact::line(sentence).chars().filter(|c| !c.is_control()).take(SENTENCE_CHARS_MAX).collect();
}

/// Most series in one message, and longest name of a series in bytes.
const SERIES_MAX: usize = 2_000;
const SERIES_BYTES_MAX: usize = 256;

/// Sanitises readings of another machine. False: an agent's probes cannot have made them.
fn are_possible(probes: &mut Probes) -> bool {
    let are_series = probes.series.iter_mut().all(|(name, series)| {
        series.gaps.truncate(SENTENCES_MAX);
        series.gaps.iter_mut().for_each(|gap| tame(&mut gap.reason));
        name.len() <= SERIES_BYTES_MAX
            && series_row(name).is_some_and(|row| {
                row.subject != SeriesSubject::Metrics && (row.kind, row.unit) == (series.kind, series.unit.as_str())
            })
    });
    probes.host = None;
    probes.missing.truncate(SENTENCES_MAX);
    probes.missing.iter_mut().for_each(tame);
    probes.servers.truncate(SENTENCES_MAX);
    for server in &mut probes.servers {
        tame(&mut server.name);
        tame(&mut server.found_by);
    }
    probes.sampled.refused.iter_mut().for_each(tame);
    are_series && probes.series.len() <= SERIES_MAX
}

impl ToCoordinator {
    /// Sanitises a foreign message; `None`: it is impossible.
    pub fn checked(mut self) -> Option<ToCoordinator> {
        let is_possible = match &mut self {
            ToCoordinator::Hello(Hello { plimsoll, system, machine, cores, .. }) => {
                tame(plimsoll);
                let is_fingerprint =
                    machine.len() <= FINGERPRINT_BYTES_MAX && machine.chars().all(|c| c.is_ascii_alphanumeric());
                system.len() <= AGENT_NAME_BYTES_MAX && is_fingerprint && *cores <= 1 << 16
            }
            ToCoordinator::Calibrated { result: Ok(measured), .. } => {
                measured.disturbance.iter_mut().for_each(tame);
                measured.is_bounded()
            }
            ToCoordinator::Calibrated { result: Err(reason), .. } => {
                tame(reason);
                true
            }
            ToCoordinator::Pong { agent_ns, .. } => *agent_ns <= i64::MAX as u64 / 2,
            ToCoordinator::Ready { injector, fitted, .. } => {
                fitted.truncate(SENTENCES_MAX);
                fitted.iter_mut().for_each(tame);
                Injector::are_bounded(std::slice::from_ref(injector))
            }
            ToCoordinator::Refused { reason, .. } => {
                tame(reason);
                true
            }
            ToCoordinator::Beat { .. } | ToCoordinator::Tick { .. } => true,
            ToCoordinator::Watching(answer) => {
                if let Err(reason) = answer {
                    tame(reason);
                }
                true
            }
            ToCoordinator::Readings { probes, .. } => are_possible(probes),
            ToCoordinator::Seal { seal, .. } => {
                seal.died.iter_mut().for_each(tame);
                seal.window_end_ns <= TIME_NS_MAX
                    && seal.failed_answers.len() <= KINDS_MAX
                    && seal.failed_answers.iter().all(|answer| answer.at_ns <= TIME_NS_MAX)
            }
        };
        is_possible.then_some(self)
    }
}
