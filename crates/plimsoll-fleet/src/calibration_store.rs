//! Stores the calibrations (measured capacities) of agents in a file of the coordinator. The file
//! is written after a calibration, and read when the agents' shares of later loads are chosen.
//!
//! Not here: the calibration of a machine (`service`), and the resulting shares (`shares`).

use plimsoll_model::AgentCalibration;
use plimsoll_sys::output_file::{self, DEFAULT_RESULTS_FOLDER};
use plimsoll_sys::system_text;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The path of the calibration file inside the folder for stored data.
const CALIBRATION_FILE_PATH: &str = "fleet/calibration.json";
const SCHEMA: &str = "plimsoll.fleet-calibrations/1";
/// The largest number of stored calibrations of agents. If there are more calibrations, the oldest
/// are dropped.
const STORED_CALIBRATIONS_MAX: usize = 1_000;
/// The size of the largest calibration file that is accepted, bytes.
const BYTES_MAX: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
struct StoredCalibrations {
    schema: String,
    agents: Vec<AgentCalibration>,
}

/// Returns the path of the calibration file.
pub fn calibration_file_path() -> PathBuf {
    Path::new(DEFAULT_RESULTS_FOLDER).join(CALIBRATION_FILE_PATH)
}

/// Reads the calibrations from a file. The result is empty if the file does not exist.
pub fn read(path: &Path) -> Result<Vec<AgentCalibration>, String> {
    let file = path.display();
    let cannot = |reason: String| format!("the calibration file '{file}' cannot be read: {reason}. Remove the file");
    let text = match std::fs::metadata(path).and_then(|it| Ok((it.len() <= BYTES_MAX, std::fs::read(path)?))) {
        Ok((true, text)) => text,
        Ok((false, _)) => return Err(cannot("the calibration file is too long".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(system_text(&error))),
    };
    let stored: Option<StoredCalibrations> = serde_json::from_slice(&text).ok();
    let is_sound =
        |it: &StoredCalibrations| it.schema == SCHEMA && it.agents.iter().all(AgentCalibration::is_within_limits);
    match stored.filter(is_sound) {
        Some(stored) => Ok(stored.agents),
        None => Err(cannot("the file contains no calibrations in the format of this plimsoll version".to_owned())),
    }
}

/// Adds calibrations to the file. Each new calibration replaces an earlier one with the same agent
/// name and machine.
pub fn store_calibrations(path: &Path, new: &[AgentCalibration]) -> Result<(), String> {
    // A calibration file that cannot be read counts as empty, so it is overwritten.
    let mut agents = read(path).unwrap_or_default();
    agents.retain(|it| !new.iter().any(|newer| (&newer.name, &newer.machine) == (&it.name, &it.machine)));
    agents.extend_from_slice(new);
    agents.sort_by_key(|it| it.unix_s);
    agents.drain(..agents.len().saturating_sub(STORED_CALIBRATIONS_MAX));
    let bytes = serde_json::to_vec_pretty(&StoredCalibrations { schema: SCHEMA.to_owned(), agents });
    let written = bytes.map_err(std::io::Error::other).and_then(|bytes| output_file::write(path, &bytes));
    written.map_err(|error| {
        format!(
            "the calibration file '{file}' cannot be written: {reason}",
            file = path.display(),
            reason = system_text(&error)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::machine_facts::SelfMeasurement;

    fn test_calibration(name: &str, machine: &str, unix_s: u64) -> AgentCalibration {
        let measured = SelfMeasurement {
            highest_rps: 12_345.678_901,
            cpu_us: 10.0,
            rate_rps: 9.0,
            lag_p99_ns: 1,
            disturbance: Some("others".to_owned()),
        };
        let (name, machine, plimsoll) = (name.to_owned(), machine.to_owned(), "1".to_owned());
        AgentCalibration { name, machine, plimsoll, cores: 2, clock_error_ns_max: 1, unix_s, measurement: measured }
    }

    #[test]
    fn a_newer_calibration_replaces_the_stored_one() {
        let folder = std::env::temp_dir().join(format!("plimsoll-calibration-test-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("fleet/calibration.json");
        assert_eq!(read(&path), Ok(Vec::new()));
        store_calibrations(&path, &[test_calibration("a", "m1", 1), test_calibration("b", "m2", 1)]).expect("stored");
        store_calibrations(&path, &[test_calibration("a", "m1", 2), test_calibration("a", "m3", 2)]).expect("stored");
        let stored = [("b", "m2", 1), ("a", "m1", 2), ("a", "m3", 2)].map(|(a, b, c)| test_calibration(a, b, c));
        assert_eq!(read(&path).expect("read"), stored);
        let many: Vec<_> = (0..1_005).map(|number| test_calibration(&format!("n{number}"), "m", 5 + number)).collect();
        store_calibrations(&path, &many).expect("stored");
        let kept = read(&path).expect("read");
        assert_eq!((kept.len(), kept[0].name.as_str()), (STORED_CALIBRATIONS_MAX, "n5"));
        for text in ["", "{}", "{\"schema\":\"plimsoll.fleet-calibrations/2\",\"agents\":[]}", "[1]"] {
            std::fs::write(&path, text).expect("written");
            assert!(read(&path).is_err_and(|why| why.contains("Remove the file")), "{text}");
        }
        store_calibrations(&path, &[test_calibration("a", "m1", 1)]).expect("stored over what cannot be read");
        assert_eq!(read(&path).expect("read").len(), 1);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
