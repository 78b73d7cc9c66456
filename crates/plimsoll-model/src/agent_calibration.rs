//! The rate that an agent's machine reaches against its own reference server
//! ([`AgentCalibration`]). The agent's share of later loads is computed from its calibrated rate.
//!
//! Not here: how the rate is measured and stored, and how shares are computed from the rate.

use crate::agent_account::AGENT_NAME_BYTES_MAX;
use crate::machine_facts::SelfMeasurement;
use serde::{Deserialize, Serialize};

/// The longest fingerprint of a machine, in bytes.
pub const FINGERPRINT_BYTES_MAX: usize = 64;
/// Upper bound for the number of cores of an agent. A calibration with a larger number is refused
/// as damaged.
const CORES_MAX: u32 = 1 << 16;

/// The calibration of one agent: the capacity of its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCalibration {
    /// The agent's name.
    pub name: String,
    /// The fingerprint of the agent's machine: the calibration is valid only on this machine.
    pub machine: String,
    /// The agent's version of plimsoll.
    pub plimsoll: String,
    /// Number of cores that the agent may use.
    pub cores: u32,
    /// Largest possible clock error of the agent, ns.
    pub clock_error_ns_max: u64,
    /// Time of the calibration, seconds since 1970.
    pub unix_s: u64,
    /// The measured capacity of one thread.
    #[serde(rename = "measured")]
    pub measurement: SelfMeasurement,
}

impl AgentCalibration {
    /// Returns the expected rate on all cores, 1/s: the one-thread measurement times the cores.
    pub fn capacity_rps(&self) -> f64 {
        self.measurement.highest_rps * f64::from(self.cores.max(1))
    }

    /// Returns whether the name, the fingerprint, the number of cores and the measurement are
    /// within their limits.
    pub fn is_within_limits(&self) -> bool {
        self.name.len() <= AGENT_NAME_BYTES_MAX
            && self.machine.len() <= FINGERPRINT_BYTES_MAX
            && self.cores <= CORES_MAX
            && self.measurement.is_within_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_calibration_figures_are_rejected() {
        let measured = SelfMeasurement {
            highest_rps: 50_000.0,
            cpu_us: 11.0,
            rate_rps: 10_000.0,
            lag_p99_ns: 90_000,
            disturbance: None,
        };
        let (name, machine, plimsoll) = ("a1".to_owned(), "0af3".to_owned(), "1.0".to_owned());
        let agent = AgentCalibration {
            name,
            machine,
            plimsoll,
            cores: 4,
            clock_error_ns_max: 5,
            unix_s: 1,
            measurement: measured,
        };
        assert!(agent.is_within_limits() && (agent.capacity_rps() - 200_000.0).abs() < 1e-6);
        for highest_rps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            let measurement = SelfMeasurement { highest_rps, ..agent.measurement.clone() };
            assert!(!AgentCalibration { measurement, ..agent.clone() }.is_within_limits(), "{highest_rps}");
        }
        assert!(!AgentCalibration { machine: "x".repeat(65), ..agent }.is_within_limits());
    }
}
