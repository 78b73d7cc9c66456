//! Facts about a machine that affect a measurement ([`MachineFacts`]), and the capacity of plimsoll
//! on a machine ([`SelfMeasurement`]).
//!
//! Not here: how the facts are read (`plimsoll-probe`), and how the capacity is measured
//! (`plimsoll-study`). `plimsoll_analysis::fitness` decides whether the machine and the capacity
//! suffice for a load.

use crate::run::MachineLimits;
use serde::{Deserialize, Serialize};

/// Facts about a machine that affect a measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineFacts {
    /// Number of cores that plimsoll may use.
    pub cores: u32,
    /// Number of cores that are online.
    pub cores_online: u32,
    /// The model of the processor; empty if unknown.
    pub cpu_model: String,
    /// Whether the machine is virtual.
    pub is_virtual: bool,
    /// Operating system and kernel, such as `Linux 6.18.0`.
    pub kernel: String,
    /// The distinct frequency governors of the cores; an empty list means that the machine exposes
    /// no governors.
    pub governors: Vec<String>,
    /// CPU use of processes other than plimsoll, sampled while no load runs; `None` means that the
    /// kernel does not report this use.
    pub interference: Option<InterferenceSample>,
    /// Limit of open files for a process, or for a thread with its own file table.
    pub files_max: u64,
    /// Whether a thread can have its own file table.
    pub has_own_file_tables: bool,
    /// Number of local ports for connections between one local and one remote address.
    pub local_ports: u64,
    /// Number of connections in TIME-WAIT.
    pub ports_in_time_wait: u64,
    /// Longest accept queue that the machine allows, in connections; 0 if unknown.
    pub accept_queue_max: u64,
    /// Available memory in bytes; 0 if unknown.
    pub memory_available_bytes: u64,
    /// CPU and memory limits of plimsoll's control group.
    pub limits: MachineLimits,
    /// The permission of plimsoll to sample the functions of other processes.
    pub sampling: SamplingAccess,
    /// The value of `perf_event_paranoid`; `None` if not readable.
    pub perf_event_paranoid: Option<i64>,
    /// Probes without readings on this machine.
    pub probes_missing: Vec<MissingProbe>,
}

/// CPU use of processes other than plimsoll over a short time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterferenceSample {
    /// Mean number of cores that other processes kept busy.
    pub cores: f64,
    /// Steal: share of the wanted CPU time that the hypervisor withheld, 0..=1.
    pub steal_share: f64,
    /// The busiest process and the number of cores that it used; `None` means that no process used
    /// more than 0.01 core.
    pub busiest: Option<(String, f64)>,
}

/// The permission of plimsoll to sample the functions of other processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SamplingAccess {
    /// plimsoll may sample all processes of the machine.
    AllProcesses,
    /// plimsoll may sample processes of its own user. If `in_kernel` is true, plimsoll may also
    /// sample kernel functions.
    OwnProcesses {
        /// Whether kernel functions are sampled.
        in_kernel: bool,
    },
    /// plimsoll may sample no process.
    #[default]
    Refused,
}

/// A probe (a source of measurements) that gets no readings on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingProbe {
    /// Pressure readings from `/proc/pressure`.
    Pressure,
    /// The kernel's list of sockets.
    Sockets,
    /// The time that threads waited for a core.
    ThreadWaits,
    /// The open files of other users' processes, by which a server's process is found.
    OtherUsers,
}

/// The measured capacity of plimsoll as a load generator against its own reference server, with one
/// thread each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfMeasurement {
    /// Throughput of a closed loop with 64 connections, 1/s.
    pub highest_rps: f64,
    /// CPU time of plimsoll for each request of the closed loop, us.
    pub cpu_us: f64,
    /// Rate of the open loop that followed the closed loop, 1/s.
    pub rate_rps: f64,
    /// Lag of the open loop's requests behind the schedule, p99, ns.
    pub lag_p99_ns: u64,
    /// The reason why other processes or the hypervisor made the closed or the open loop inexact;
    /// `None` means that no such interference was found.
    #[serde(rename = "disturbed")]
    pub disturbance: Option<String>,
}

/// Largest valid request rate, 1/s: no machine reaches this rate.
const RATE_RPS_MAX: f64 = 1e9;

impl SelfMeasurement {
    /// Returns whether every figure is in its valid range.
    pub fn is_within_limits(&self) -> bool {
        let is_rate = |rate_rps: f64| rate_rps > 0.0 && rate_rps <= RATE_RPS_MAX;
        is_rate(self.highest_rps) && is_rate(self.rate_rps) && (0.0..=RATE_RPS_MAX).contains(&self.cpu_us)
    }
}
