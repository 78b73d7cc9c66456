//! The messages between agents and their coordinator, and the validation of received messages.
//!
//! Each load has a number (`epoch`). A part is the share of a load that one agent sends. A frame is
//! a numbered result message, and the seal is the last frame of a part.
//!
//! Not here: the byte format of messages (`frame`), and the protocol (`agent`, `coordinator`).

use plimsoll_model::agent_account::AGENT_NAME_BYTES_MAX;
use plimsoll_model::agent_calibration::FINGERPRINT_BYTES_MAX;
use plimsoll_model::failed_response::KINDS_MAX;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::series_table::{SeriesSubject, find_series_row};
use plimsoll_model::units::TIME_NS_MAX;
use plimsoll_model::{FailedResponse, Injector, Interval, Ledger, Probes, Spin, Stripe, redact};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The largest number of characters of a sentence from another machine that is shown to the user.
const SENTENCE_CHARS_MAX: usize = 300;
/// The largest number of sentences in one message.
const SENTENCES_MAX: usize = 20;

/// A message from the coordinator to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Asks for the time of the agent's clock.
    Ping {
        /// A number that identifies the ping. The agent's reply contains the same number.
        number: u32,
    },
    /// Asks the agent to open the connections for its share of a load.
    #[serde(skip)]
    Prepare(Box<AgentLoadTask>),
    /// Starts the prepared load.
    Start {
        /// The number of the load.
        epoch: u64,
        /// The start of the schedule on the agent's monotonic clock, ns.
        origin_ns: u64,
        /// The longest duration of the load, ns. After this time the agent ends the load in any
        /// case.
        length_ns_max: u64,
    },
    /// Shows the agent that the coordinator is alive.
    Lease,
    /// Confirms that the coordinator has recorded all frames (result messages) of a load up to
    /// `sequence`.
    Commit {
        /// The number of the load.
        epoch: u64,
        /// The sequence number of the last recorded frame (result message).
        sequence: u64,
    },
    /// Stops the load. A load that is still in preparation is dropped.
    Stop {
        /// The number of the load.
        epoch: u64,
    },
    /// Ends the session between coordinator and agent.
    Leave,
    /// Asks the agent to measure the capacity of its machine against its own reference server.
    Calibrate(CalibrationTask),
    /// Asks an agent that only measures ("watches") to measure a server on its machine.
    Watch(WatchTask),
    /// Asks the agent to take a sample of all its probes (measurements of the server) now.
    Sample {
        /// A number that identifies the sample request. The agent's reply contains the same number.
        /// Each later request has a higher number.
        number: u32,
    },
}

/// Identifies the server that an agent must measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTask {
    /// The server's addresses as the coordinator sees them. The agent uses only the ports, to find
    /// the server's process on its own machine.
    pub addresses: Vec<SocketAddr>,
    /// The id of the server's process, if the user names one.
    pub pid: Option<u32>,
    /// The name of the server's process, if the user names one.
    pub process: Option<String>,
    /// The control group of the server, if the user names one.
    pub cgroup: Option<String>,
    /// Whether the agent takes function samples and may use more CPU for probes, as the command
    /// `explain` needs.
    pub thorough: bool,
}

/// The task of one agent: its share of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLoadTask {
    /// The number of the load. Later loads have higher numbers.
    pub epoch: u64,
    /// The index of the agent's share among all shares of the load, from 0.
    #[serde(rename = "index")]
    pub share_index: u64,
    /// The number of shares into which the load is divided.
    #[serde(rename = "of")]
    pub share_count: u64,
    /// The weight of each agent's share, in the order of the shares. The list is empty if all
    /// shares are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// The number of worker threads, if the user sets it.
    pub workers: Option<u32>,
    /// Whether idle worker threads poll for events (spin) or sleep.
    pub spin: Spin,
    /// Whether the agent first checks that the target accepts connections.
    pub preflight: bool,
    /// The coordinator's signature of the task, if the coordinator has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
    /// The encoded plan of the whole load.
    #[serde(skip)]
    pub plan: Vec<u8>,
}

impl AgentLoadTask {
    /// Returns the stripe (share of the load's schedule) that the agent of this task sends. `None`
    /// if the index or the weights are invalid.
    pub fn schedule_stripe(&self) -> Option<Stripe> {
        if self.share_index >= self.share_count {
            return None;
        }
        match self.weights.is_empty() {
            true => Some(Stripe::new(self.share_index, self.share_count)),
            false if self.weights.len() as u64 == self.share_count => {
                Stripe::weighted(self.share_index as usize, &self.weights)
            }
            false => None,
        }
    }
}

/// A request to measure the capacity of the agent's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationTask {
    /// A number that identifies the request. The agent's reply contains the same number.
    pub number: u32,
    /// The coordinator's signature of the request, if the coordinator has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TaskSignature>,
}

/// A coordinator's signature of a task (see `task_key`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSignature {
    /// Expiry of the task, s since the Unix epoch.
    pub expires_unix_s: u64,
    /// Ed25519 signature over the task and its plan, in hexadecimal.
    pub signature: String,
}

/// A message from an agent to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToCoordinator {
    /// The first message of an agent, which introduces the agent to the coordinator.
    Hello(Hello),
    /// Replies to a ping with the time of the agent's clock.
    Pong {
        /// The number of the ping.
        number: u32,
        /// The time of the agent's monotonic clock, ns.
        agent_ns: u64,
    },
    /// The agent has opened the connections for its share of the load.
    Ready {
        /// The number of the load.
        epoch: u64,
        /// The load generator settings that the agent uses for its share of the load.
        injector: Injector,
        /// Sentences about adaptations of the load to the agent's machine.
        fitted: Vec<String>,
    },
    /// The agent refuses to send its share of the load.
    Refused {
        /// The number of the load.
        epoch: u64,
        /// The reason of the refusal, as a sentence without the agent's name.
        reason: String,
    },
    /// The result of a calibration.
    Calibrated {
        /// The number of the calibration request.
        number: u32,
        /// The measured capacity, or an error as a sentence without the agent's name.
        result: Result<SelfMeasurement, String>,
    },
    /// A heartbeat of the agent.
    Beat {
        /// The number of the current load; 0 before the first load.
        epoch: u64,
        /// The phase of the agent.
        phase: AgentPhase,
    },
    /// The last frame (result message) of an agent's share of a load, with the totals of the share.
    Seal {
        /// The number of the load.
        epoch: u64,
        /// The sequence number of the frame (result message).
        sequence: u64,
        /// The totals of the agent's share of the load.
        seal: PartTotals,
    },
    /// A frame with the measurements of one tick (100 ms).
    #[serde(skip)]
    Tick {
        /// The number of the load.
        epoch: u64,
        /// The sequence number of the frame (result message), from 1 and without gaps.
        sequence: u64,
        /// The number of the tick (100 ms each) since the start of the schedule.
        index: u32,
        /// The measurements of the tick (100 ms).
        interval: Box<Interval>,
    },
    /// Confirms that the agent measures the server, or gives the reason why the agent cannot
    /// measure it. The reason is a sentence without the agent's name.
    Watching(Result<(), String>),
    /// The probe readings since the agent's last message with readings.
    #[serde(skip)]
    Readings {
        /// The number of the last requested sample among the readings; 0 if the readings contain no
        /// requested sample.
        sample: u32,
        /// The server's recent CPU use, thousandths of a core. `None` if unknown.
        live_milli: Option<u32>,
        /// The readings, with times of the agent's monotonic clock.
        probes: Box<Probes>,
    },
}

/// The facts that an agent reports about itself in its first message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hello {
    /// The version of plimsoll on the agent.
    #[serde(rename = "plimsoll")]
    pub version: String,
    /// The number of CPU cores that the agent may use.
    pub cores: u32,
    /// The id of the agent's process. The coordinator can use this process id only if agent and
    /// coordinator have the same `system`.
    pub pid: u32,
    /// The identifier of the agent's machine and its process-id namespace; empty if unknown.
    pub system: String,
    /// The fingerprint of the agent's machine. Another machine or another number of cores gives
    /// another fingerprint.
    #[serde(default)]
    pub machine: String,
}

/// The phase of an agent's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPhase {
    /// The agent has no load.
    Idle,
    /// The agent opens the connections for its share of the load.
    Preparing,
    /// The agent has opened its connections and waits for the start of the load.
    Ready,
    /// The agent knows the start time, or the load runs.
    Running,
    /// The load has ended, but the coordinator has not yet recorded all frames (result messages) of
    /// the load.
    Sealed,
}

/// The totals of an agent's share of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartTotals {
    /// The number of ticks (100 ms each) whose measurements the agent sent.
    pub ticks: u64,
    /// The sum of the ledgers (request outcomes) of all ticks.
    pub ledger: Ledger,
    /// The end of the measured window of the agent's share, ns since the start of the schedule.
    pub window_end_ns: u64,
    /// The first failed responses to the agent's requests.
    pub failed_answers: Vec<FailedResponse>,
    /// Whether the agent ended early because it had no more requests to send, for example because
    /// every row of a data file was used.
    #[serde(rename = "used_up")]
    pub has_no_more_requests: bool,
    /// The reason why the agent's share of the load failed and ended early; `None` if the share did
    /// not fail.
    #[serde(rename = "died")]
    pub failure_reason: Option<String>,
}

/// Makes a sentence from another machine safe to show: one line of limited length, without secrets.
fn sanitize_sentence(sentence: &mut String) {
    *sentence = redact::redact_line(sentence).chars().filter(|c| !c.is_control()).take(SENTENCE_CHARS_MAX).collect();
}

/// The largest number of series in one message.
const SERIES_MAX: usize = 2_000;
/// The longest name of a series in a message, bytes.
const SERIES_BYTES_MAX: usize = 256;

/// Removes secrets and control characters from readings of another machine. Returns false if a
/// plimsoll agent cannot have measured these readings.
fn sanitize_readings(probes: &mut Probes) -> bool {
    let are_series = probes.series.iter_mut().all(|(name, series)| {
        series.gaps.truncate(SENTENCES_MAX);
        series.gaps.iter_mut().for_each(|gap| sanitize_sentence(&mut gap.reason));
        name.len() <= SERIES_BYTES_MAX
            && find_series_row(name).is_some_and(|row| {
                row.subject != SeriesSubject::Metrics && (row.kind, row.unit) == (series.kind, series.unit.as_str())
            })
    });
    probes.host = None;
    probes.missing.truncate(SENTENCES_MAX);
    probes.missing.iter_mut().for_each(sanitize_sentence);
    probes.servers.truncate(SENTENCES_MAX);
    for server in &mut probes.servers {
        sanitize_sentence(&mut server.name);
        sanitize_sentence(&mut server.found_by);
    }
    probes.sampled.missing_reason.iter_mut().for_each(sanitize_sentence);
    are_series && probes.series.len() <= SERIES_MAX
}

impl ToCoordinator {
    /// Makes a message from another machine safe to use and to show. Returns `None` if its values
    /// are impossible.
    pub fn sanitize(mut self) -> Option<ToCoordinator> {
        let is_possible = match &mut self {
            ToCoordinator::Hello(Hello { version, system, machine, cores, .. }) => {
                sanitize_sentence(version);
                let is_fingerprint =
                    machine.len() <= FINGERPRINT_BYTES_MAX && machine.chars().all(|c| c.is_ascii_alphanumeric());
                system.len() <= AGENT_NAME_BYTES_MAX && is_fingerprint && *cores <= 1 << 16
            }
            ToCoordinator::Calibrated { result: Ok(measured), .. } => {
                measured.disturbance.iter_mut().for_each(sanitize_sentence);
                measured.is_within_limits()
            }
            ToCoordinator::Calibrated { result: Err(reason), .. } => {
                sanitize_sentence(reason);
                true
            }
            ToCoordinator::Pong { agent_ns, .. } => *agent_ns <= i64::MAX as u64 / 2,
            ToCoordinator::Ready { injector, fitted, .. } => {
                fitted.truncate(SENTENCES_MAX);
                fitted.iter_mut().for_each(sanitize_sentence);
                Injector::are_within_limits(std::slice::from_ref(injector))
            }
            ToCoordinator::Refused { reason, .. } => {
                sanitize_sentence(reason);
                true
            }
            ToCoordinator::Beat { .. } | ToCoordinator::Tick { .. } => true,
            ToCoordinator::Watching(answer) => {
                if let Err(reason) = answer {
                    sanitize_sentence(reason);
                }
                true
            }
            ToCoordinator::Readings { probes, .. } => sanitize_readings(probes),
            ToCoordinator::Seal { seal, .. } => {
                seal.failure_reason.iter_mut().for_each(sanitize_sentence);
                seal.window_end_ns <= TIME_NS_MAX
                    && seal.failed_answers.len() <= KINDS_MAX
                    && seal.failed_answers.iter().all(|answer| answer.at_ns <= TIME_NS_MAX)
            }
        };
        is_possible.then_some(self)
    }
}
