//! A server setting that a user's command changes before loads with its tag ([`Setting`]).
//!
//! Not here: the choice of values, and their meaning (`plimsoll-analysis`).

use crate::subject::prepare;
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{Plan, Tag, Terms};
use plimsoll_sys::signal;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The placeholder for a value in the command.
pub const PLACE: &str = "{n}";
/// Longest time until the server accepts connections again, and the interval of checks.
const BACK_PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// How to change a server setting.
#[derive(Debug, Clone)]
pub struct Setting {
    command: String,
    values: Vec<f64>,
    /// The file for its output.
    output: PathBuf,
}

impl Setting {
    /// The setting of the terms; its output goes beside `run_file`.
    pub fn from_terms(terms: &Terms<String>, values: &[f64], run_file: &Path) -> Option<Setting> {
        let command = terms.changes.vary.clone()?;
        Some(Setting { command, values: values.to_vec(), output: run_file.with_extension("vary.log") })
    }

    /// Changes the setting for the load with this tag, and waits until the target accepts
    /// connections. Loads without this tag leave it unchanged. The error says why the load cannot
    /// be made.
    pub fn change(&self, tag: &Tag, plan: &Plan) -> Result<(), String> {
        let Some(value) = varied_number(tag).and_then(|number| self.values.get(number)) else { return Ok(()) };
        let command = self.command.replace(PLACE, &value.to_string());
        prepare("--vary", &command, &self.output).map_err(|failure| failure.to_string())?;
        let addresses = plan.carriage.addresses.as_slice();
        if plan.carriage.unix.is_some() || addresses.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + BACK_PATIENCE;
        while !signal::interrupted() {
            if addresses.iter().any(|address| TcpStream::connect_timeout(address, LOOK).is_ok()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = BACK_PATIENCE.as_secs();
                return Err(format!(
                    "--vary: the target accepted no connection within {seconds} s after the change to {value}"
                ));
            }
            std::thread::sleep(LOOK);
        }
        Err("interrupted".to_owned())
    }
}
