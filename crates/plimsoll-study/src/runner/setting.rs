//! A setting of the server's that its user changes by a command of theirs, before loads whose tag
//! asks for it ([`Setting`]).
//!
//! Not here: which values are tried and what that says (`plimsoll-analysis`).

use crate::subject::prepare;
use plimsoll_model::intervention::varied_number;
use plimsoll_model::{Plan, Tag, Terms};
use plimsoll_sys::signal;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where a value goes in a command.
pub const PLACE: &str = "{n}";
/// How long a server may take to come back with another setting, and how often it is looked.
const BACK_PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// How a setting of the server's is changed before a load.
#[derive(Debug, Clone)]
pub struct Setting {
    command: String,
    values: Vec<f64>,
    /// Where its output goes.
    output: PathBuf,
}

impl Setting {
    /// The setting that the terms speak of; `run_file`: its output goes beside that.
    pub fn from_terms(terms: &Terms<String>, values: &[f64], run_file: &Path) -> Option<Setting> {
        let command = terms.changes.vary.clone()?;
        Some(Setting { command, values: values.to_vec(), output: run_file.with_extension("vary.log") })
    }

    /// Changes it for the load with this tag, and waits until the target takes connections again;
    /// where it has no part in the load it is left as it is. The error says why the load cannot be
    /// made.
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
