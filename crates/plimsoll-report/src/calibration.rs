//! Renders the calibrations of a fleet as a table and as a JSON document. A fleet consists of
//! several agents, which are load-generating machines. A calibration measures how much load one
//! agent can generate.
//!
//! Not here: calibrating the machines, and using the resulting shares of the load.

use crate::block::{Report, Tone};
use crate::document::to_json_value;
use crate::format::{duration, rate, share};
use crate::text::render;
use plimsoll_model::AgentCalibration;
use serde::Serialize;
use serde_json::Value;

/// Returns each agent's share of the load, in proportion to its weight. If there are no weights,
/// all agents have equal shares of the load.
fn agent_load_shares(agents: &[AgentCalibration], weights: &[u32]) -> Vec<f64> {
    let sum: u32 = weights.iter().sum();
    match weights.len() == agents.len() && sum > 0 {
        true => weights.iter().map(|weight| f64::from(*weight) / f64::from(sum)).collect(),
        false => vec![1.0 / agents.len().max(1) as f64; agents.len()],
    }
}

/// Renders the calibrations of a fleet's agents (load-generating machines) as a table. Below the
/// table, a warning names each agent that other processes disturbed during its calibration.
pub fn calibration_text(agents: &[AgentCalibration], weights: &[u32]) -> String {
    let row = |(agent, part): (&AgentCalibration, f64)| {
        let measured = &agent.measurement;
        vec![
            agent.name.clone(),
            agent.plimsoll.clone(),
            agent.cores.to_string(),
            format!("{}/s", rate(measured.highest_rps)),
            format!("{} at {}/s", duration(measured.lag_p99_ns as f64), rate(measured.rate_rps)),
            duration(agent.clock_error_ns_max as f64),
            share(part),
        ]
    };
    let mut report = Report::default();
    let headings = ["agent", "plimsoll", "cores", "one thread", "lag p99", "clock within", "share"];
    let rows = agents.iter().zip(agent_load_shares(agents, weights)).map(row);
    report.add_table(&headings, rows.collect());
    for (agent, reason) in agents.iter().filter_map(|agent| Some((agent, agent.measurement.disturbance.as_ref()?))) {
        let name = &agent.name;
        report.add_sentence(
            Tone::Warning,
            format!("agent {name} was disturbed: {reason}. Calibrate this agent again on a quiet machine."),
        );
    }
    render(&report, false)
}

/// The JSON document `plimsoll.fleet-calibration/1`: how much load each agent (load-generating
/// machine) of a fleet can generate.
#[derive(Serialize)]
struct CalibrationDocument<'a> {
    schema: &'static str,
    agents: Vec<CalibrationFields<'a>>,
}

#[derive(Serialize)]
struct CalibrationFields<'a> {
    name: &'a str,
    machine: &'a str,
    plimsoll: &'a str,
    cores: u32,
    highest_rps: f64,
    cpu_us: f64,
    rate_rps: f64,
    lag_p99_ns: u64,
    clock_error_ns_max: u64,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbed: Option<&'a str>,
}

/// Renders the calibrations of a fleet's agents (load-generating machines) as a JSON document.
pub fn calibration_document(agents: &[AgentCalibration], weights: &[u32]) -> Value {
    let parts = agents.iter().zip(agent_load_shares(agents, weights));
    let agents = parts.map(|(agent, share)| CalibrationFields::new(agent, share)).collect();
    to_json_value(&CalibrationDocument { schema: "plimsoll.fleet-calibration/1", agents })
}

impl CalibrationFields<'_> {
    fn new(agent: &AgentCalibration, share: f64) -> CalibrationFields<'_> {
        let measured = &agent.measurement;
        CalibrationFields {
            name: &agent.name,
            machine: &agent.machine,
            plimsoll: &agent.plimsoll,
            cores: agent.cores,
            highest_rps: measured.highest_rps,
            cpu_us: measured.cpu_us,
            rate_rps: measured.rate_rps,
            lag_p99_ns: measured.lag_p99_ns,
            clock_error_ns_max: agent.clock_error_ns_max,
            share,
            disturbed: measured.disturbance.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::machine_facts::SelfMeasurement;

    fn agent_calibration(name: &str, highest_rps: f64, disturbed: Option<&str>) -> AgentCalibration {
        let disturbance = disturbed.map(str::to_owned);
        let measurement =
            SelfMeasurement { highest_rps, cpu_us: 11.0, rate_rps: 10_000.0, lag_p99_ns: 90_000, disturbance };
        let (name, machine, plimsoll) = (name.to_owned(), "0af3".to_owned(), "1.0".to_owned());
        AgentCalibration { name, machine, plimsoll, cores: 2, clock_error_ns_max: 80_000, unix_s: 1, measurement }
    }

    #[test]
    fn each_agent_has_a_row_with_its_share() {
        let agents = [
            agent_calibration("a1", 60_000.0, None),
            agent_calibration("a2", 30_000.0, Some("other processes used 1.9 of 2 cores")),
        ];
        let text = calibration_text(&agents, &[2, 1]);
        let row = text.lines().find(|line| line.contains("a1")).expect("a row");
        assert!(row.contains("60.0k/s") || row.contains("60 000/s") || row.contains("60000/s"), "{text}");
        assert!(row.contains("66.7 %") && row.contains("80.0 us"), "{text}");
        assert!(text.replace("\n", " ").contains("agent a2 was disturbed: other processes"), "{text}");
        let document = calibration_document(&agents, &[]);
        assert_eq!(document["schema"], "plimsoll.fleet-calibration/1");
        assert_eq!((&document["agents"][1]["share"], &document["agents"][0]["cores"]), (&0.5.into(), &2.into()));
        assert!(document["agents"][0].get("disturbed").is_none(), "{document:#}");
    }
}
