//! What agents and their coordinator say to each other: values, and which of them can be.
//!
//! Not here: their bytes (`frame`), who says what when (`agent`, `coordinator`).

use plimsoll_model::agent_account::AGENT_NAME_BYTES_MAX;
use plimsoll_model::agent_calibration::FINGERPRINT_BYTES_MAX;
use plimsoll_model::failed_answer::KINDS_MAX;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::series_table::{SeriesSubject, series_row};
use plimsoll_model::units::TIME_NS_MAX;
use plimsoll_model::{FailedAnswer, Injector, Interval, Ledger, Probes, Spin, Stripe, redact};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The longest sentence of another machine that is repeated, in characters.
const SENTENCE_CHARS_MAX: usize = 300;
/// Most sentences of one message.
const SENTENCES_MAX: usize = 20;

/// What the coordinator tells an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// What does your clock show?
    Ping {
        /// Comes back with the answer.
        number: u32,
    },
    /// Make the connections of your part of a load ready.
    #[serde(skip)]
    Prepare(Box<PartTask>),
    /// Begin the load that is ready.
    Start {
        /// Which load.
        epoch: u64,
        /// When its schedule begins, on the agent's monotonic clock, ns.
        origin_ns: u64,
        /// How long it can last at most, ns: the agent ends it then in any case.
        length_ns_max: u64,
    },
    /// Go on: the coordinator is there.
    Lease,
    /// All frames of a load up to this one are recorded.
    Commit {
        /// Which load.
        epoch: u64,
        /// The last of them.
        sequence: u64,
    },
    /// End the load, or give up what is prepared of it.
    Stop {
        /// Which load.
        epoch: u64,
    },
    /// There is nothing more to do: end.
    Leave,
    /// Measure what your machine reaches against its own reference server.
    Calibrate(CalibrationTask),
    /// Watch a server of your machine: of agents that only watch.
    Watch(WatchTask),
    /// Take a sample now, and send it with this number.
    Sample {
        /// Higher than before.
        number: u32,
    },
}

/// The server that an agent is to watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTask {
    /// Where the load reaches it, as seen from another machine: here its port tells.
    pub addresses: Vec<SocketAddr>,
    /// Its process, where the user names it by number or by name, and its control group.
    pub pid: Option<u32>,
    /// See `pid`.
    pub process: Option<String>,
    /// See `pid`.
    pub cgroup: Option<String>,
    /// Whether readings may take more, and functions are sampled: what was seen is the question.
    pub thorough: bool,
}

/// One agent's part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartTask {
    /// The number of the load: later loads have higher ones.
    pub epoch: u64,
    /// Which part it is, from 0.
    pub index: u64,
    /// Of how many.
    pub of: u64,
    /// The weight of each part, in their order; empty: all parts are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// Worker threads, where the user says how many.
    pub workers: Option<u32>,
    /// How they wait.
    pub spin: Spin,
    /// Whether to look first that the target takes connections.
    pub preflight: bool,
    /// Who says so, where the coordinator has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
    /// The complete plan of the whole load, as bytes.
    #[serde(skip)]
    pub plan: Vec<u8>,
}

impl PartTask {
    /// Its part of the schedule; `None`: there is no such part.
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

/// A calibration that a coordinator asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationTask {
    /// Comes back with the answer.
    pub number: u32,
    /// Who says so, where the coordinator has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
}

/// A coordinator's word for a task; see `task_key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSignature {
    /// Until when the task may begin, seconds since 1970.
    pub expires_unix_s: u64,
    /// Ed25519 over the task and its plan, as hexadecimal digits.
    pub signature: String,
}

/// What an agent tells the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToCoordinator {
    /// The agent is there.
    Hello(Hello),
    /// What its clock showed when it was asked.
    Pong {
        /// That of the question.
        number: u32,
        /// Its monotonic clock, ns.
        agent_ns: u64,
    },
    /// The connections of its part stand.
    Ready {
        /// Of which load.
        epoch: u64,
        /// How it makes its part.
        injector: Injector,
        /// What of the load it has fitted to its machine.
        fitted: Vec<String>,
    },
    /// It does not make its part of a load.
    Refused {
        /// Of which load.
        epoch: u64,
        /// Why: a sentence about "it".
        reason: String,
    },
    /// What its machine reached, or why that is not known: a sentence about "it".
    Calibrated {
        /// That of the task.
        number: u32,
        /// What was measured.
        result: Result<SelfMeasurement, String>,
    },
    /// It is alive.
    Beat {
        /// The load that it is at; 0: none yet.
        epoch: u64,
        /// What it does.
        phase: AgentPhase,
    },
    /// It has ended its part of a load: the last of its frames.
    Seal {
        /// Which load.
        epoch: u64,
        /// The number of the frame.
        sequence: u64,
        /// What it did in all.
        seal: Seal,
    },
    /// What happened in a tick of its part.
    #[serde(skip)]
    Tick {
        /// Of which load.
        epoch: u64,
        /// The number of the frame, from 1, without gaps.
        sequence: u64,
        /// The number of the tick, from the beginning of the schedule.
        index: u32,
        /// What happened.
        interval: Box<Interval>,
    },
    /// It watches the server that it was asked to watch; or why it does not, a sentence about "it".
    Watching(Result<(), String>),
    /// What it has read since it sent this last.
    #[serde(skip)]
    Readings {
        /// The last sample that was asked for and is among them; 0: none was.
        sample: u32,
        /// Thousandths of a core that the server used of late; `None`: it is not seen.
        live_milli: Option<u32>,
        /// Times are those of the agent's monotonic clock.
        probes: Box<Probes>,
    },
}

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hello {
    /// Version of plimsoll.
    pub plimsoll: String,
    /// Cores that it may use.
    pub cores: u32,
    /// Its process, and the system that this number is of: where that is the coordinator's, the
    /// process is on the same machine.
    pub pid: u32,
    /// See `pid`; empty where it is not known.
    pub system: String,
    /// The fingerprint of its machine: another machine, or other cores, have another one.
    #[serde(default)]
    pub machine: String,
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPhase {
    /// Nothing.
    Idle,
    /// It makes connections ready.
    Preparing,
    /// They stand, and it waits for the beginning.
    Ready,
    /// It has heard when the load begins, or makes it.
    Running,
    /// The load has ended, and not all of its frames are recorded yet.
    Sealed,
}

/// What an agent did of a load in all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seal {
    /// How many ticks it has sent.
    pub ticks: u64,
    /// The sum of their ledgers.
    pub ledger: Ledger,
    /// Where its part of the measured window ended, ns of schedule time.
    pub window_end_ns: u64,
    /// The first failed answers that it saw.
    pub failed_answers: Vec<FailedAnswer>,
    /// It ended before its time since there was nothing more to ask.
    pub used_up: bool,
    /// Why it ended before its time, where it did by itself.
    pub died: Option<String>,
}

/// A sentence of another machine as it may be repeated: one line, no secret, of bounded length.
fn tame(sentence: &mut String) {
    *sentence = redact::line(sentence).chars().filter(|c| !c.is_control()).take(SENTENCE_CHARS_MAX).collect();
}

/// Most series of one message, and the longest name of one, in bytes: labels of addresses and
/// threads are shorter.
const SERIES_MAX: usize = 2_000;
const SERIES_BYTES_MAX: usize = 256;

/// Makes readings of another machine harmless; whether they are such as an agent's probes can have
/// made: of its own machine, and of nothing that is known only where the load is made.
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
    /// Makes what came of another machine harmless; `None`: no agent says that.
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
