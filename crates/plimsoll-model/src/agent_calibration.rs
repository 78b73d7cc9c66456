//! What the machine of an agent reaches against its own reference server ([`AgentCalibration`]),
//! from which the shares of later loads follow.
//!
//! Not here: how it is measured, where it is stored, and how shares follow from it.

use crate::agent_account::AGENT_NAME_BYTES_MAX;
use crate::machine_facts::SelfMeasurement;
use serde::{Deserialize, Serialize};

/// The longest fingerprint of a machine, in bytes.
pub const FINGERPRINT_BYTES_MAX: usize = 64;
/// More cores than any machine has.
const CORES_MAX: u32 = 1 << 16;

/// The calibration of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCalibration {
    /// The agent's name.
    pub name: String,
    /// The fingerprint of its machine.
    pub machine: String,
    /// Its version of plimsoll.
    pub plimsoll: String,
    /// Cores that it may use.
    pub cores: u32,
    /// How far its clock may be off, ns.
    pub clock_error_ns_max: u64,
    /// When it was calibrated, seconds since 1970.
    pub unix_s: u64,
    /// What it reached.
    pub measured: SelfMeasurement,
}

impl AgentCalibration {
    /// The rate that follows for all of its cores. It was measured with one thread.
    pub fn capacity_rps(&self) -> f64 {
        self.measured.highest_rps * f64::from(self.cores.max(1))
    }

    /// Whether every figure lies where one can lie.
    pub fn is_bounded(&self) -> bool {
        self.name.len() <= AGENT_NAME_BYTES_MAX
            && self.machine.len() <= FINGERPRINT_BYTES_MAX
            && self.cores <= CORES_MAX
            && self.measured.is_bounded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_figures_are_out_of_bounds() {
        let measured = SelfMeasurement {
            highest_rps: 50_000.0,
            cpu_us: 11.0,
            rate_rps: 10_000.0,
            lag_p99_ns: 90_000,
            disturbed: None,
        };
        let (name, machine, plimsoll) = ("a1".to_owned(), "0af3".to_owned(), "1.0".to_owned());
        let agent = AgentCalibration { name, machine, plimsoll, cores: 4, clock_error_ns_max: 5, unix_s: 1, measured };
        assert!(agent.is_bounded() && (agent.capacity_rps() - 200_000.0).abs() < 1e-6);
        for highest_rps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            let measured = SelfMeasurement { highest_rps, ..agent.measured.clone() };
            assert!(!AgentCalibration { measured, ..agent.clone() }.is_bounded(), "{highest_rps}");
        }
        assert!(!AgentCalibration { machine: "x".repeat(65), ..agent }.is_bounded());
    }
}
