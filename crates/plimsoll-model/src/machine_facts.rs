//! What a machine brings to a measurement ([`MachineFacts`]), and what plimsoll reaches on it
//! ([`SelfMeasurement`]).
//!
//! Not here: how these are read (`plimsoll-probe`) and measured (`plimsoll-study`), and whether
//! they suffice (`plimsoll_analysis::fitness`).

use crate::run::MachineLimits;
use serde::{Deserialize, Serialize};

/// What a machine brings to a measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineFacts {
    /// Cores that plimsoll may use.
    pub cores: u32,
    /// Cores that the machine has in use.
    pub cores_online: u32,
    /// The name of the processor; empty: not known.
    pub cpu_model: String,
    /// Whether the machine is virtual.
    pub is_virtual: bool,
    /// Operating system and kernel, such as `Linux 6.18.0`.
    pub kernel: String,
    /// The frequency governors of the cores, each once; empty: this machine shows none.
    pub governors: Vec<String>,
    /// What other processes used while nothing was measured; `None`: the kernel does not say.
    pub interference: Option<InterferenceSample>,
    /// Open files of a process, or of a thread with a table of its own.
    pub files_max: u64,
    /// Whether a thread can have a table of its own.
    pub has_own_file_tables: bool,
    /// Local ports of one pair of addresses.
    pub local_ports: u64,
    /// Connections in TIME-WAIT.
    pub ports_in_time_wait: u64,
    /// The longest accept queue; 0: not known.
    pub accept_queue_max: u64,
    /// Memory that can be had, in bytes; 0: not known.
    pub memory_available_bytes: u64,
    /// What the control group leaves of the machine.
    pub limits: MachineLimits,
    /// How functions of other processes can be sampled.
    pub sampling: SamplingAccess,
    /// The value of `perf_event_paranoid`; `None`: not readable.
    pub perf_event_paranoid: Option<i64>,
    /// Probes that read nothing here.
    pub probes_missing: Vec<MissingProbe>,
}

/// What processes other than plimsoll used for a while.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterferenceSample {
    /// Cores in use, on average.
    pub cores: f64,
    /// Share of the wanted CPU time that the host of a virtual machine took, 0..=1.
    pub steal_share: f64,
    /// The process that used the most, and its cores; `None`: none used a hundredth of a core.
    pub busiest: Option<(String, f64)>,
}

/// How functions of other processes can be sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SamplingAccess {
    /// Of all that runs on the machine.
    Machine,
    /// Of this user's processes. `in_kernel`: time in the kernel, too.
    OwnProcesses {
        /// Whether the kernel's functions are sampled.
        in_kernel: bool,
    },
    /// Not at all.
    #[default]
    Refused,
}

/// A probe that reads nothing on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingProbe {
    /// `/proc/pressure`.
    Pressure,
    /// The kernel's list of sockets.
    Sockets,
    /// How long threads waited for a core.
    ThreadWaits,
    /// Open files of other users' processes, by which a server is found.
    OtherUsers,
}

/// What plimsoll reaches against the reference server, one thread each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfMeasurement {
    /// Requests a second of a closed loop with 64 connections.
    pub highest_rps: f64,
    /// CPU time of plimsoll for each of them, us.
    pub cpu_us: f64,
    /// The rate of the open loop that followed.
    pub rate_rps: f64,
    /// Lateness of its requests against their schedule, p99, ns.
    pub lag_p99_ns: u64,
    /// What disturbed the two loads; `None`: nothing did.
    pub disturbed: Option<String>,
}

/// More than any machine reaches.
const RATE_RPS_MAX: f64 = 1e9;

impl SelfMeasurement {
    /// Whether every figure lies where one can lie.
    pub fn is_bounded(&self) -> bool {
        let is_rate = |rate_rps: f64| rate_rps > 0.0 && rate_rps <= RATE_RPS_MAX;
        is_rate(self.highest_rps) && is_rate(self.rate_rps) && (0.0..=RATE_RPS_MAX).contains(&self.cpu_us)
    }
}
