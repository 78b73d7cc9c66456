//! Changes a server setting with the user's command (`--vary`) before loads whose tag (purpose,
//! side and turn) has a value for the setting ([`VariedServerSetting`]).
//!
//! Not here: choosing the values, and interpreting the results (`plimsoll-analysis`).

use crate::subject::run_user_command;
use plimsoll_model::intervention::setting_value_index;
use plimsoll_model::{ExperimentSettings, LoadTag, Plan};
use plimsoll_sys::signal;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The placeholder in the user's command that is replaced by a value of the setting.
pub const VALUE_PLACEHOLDER: &str = "{n}";
/// The longest time until the server accepts connections again after a change of its setting.
const SERVER_RETURN_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of one check whether the server accepts connections, and the interval between such
/// checks.
const CONNECT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A server setting that can be changed: the command, and the values to set.
#[derive(Debug, Clone)]
pub struct VariedServerSetting {
    command: String,
    values: Vec<f64>,
    /// The file that receives the command's output.
    output: PathBuf,
}

impl VariedServerSetting {
    /// Returns the setting that the user's options (`--vary`) name; `None` without this option. The
    /// output of the user's command goes into a file next to `run_file`.
    pub fn from_settings(
        settings: &ExperimentSettings<String>,
        values: &[f64],
        run_file: &Path,
    ) -> Option<VariedServerSetting> {
        let command = settings.interventions.vary.clone()?;
        Some(VariedServerSetting { command, values: values.to_vec(), output: run_file.with_extension("vary.log") })
    }

    /// Changes the setting for the load with this tag, then waits until the target accepts
    /// connections. Does nothing if the tag has no value for the setting. The error says why the
    /// load cannot be sent.
    pub fn change_setting(&self, tag: &LoadTag, plan: &Plan) -> Result<(), String> {
        let Some(value) = setting_value_index(tag).and_then(|number| self.values.get(number)) else { return Ok(()) };
        let command = self.command.replace(VALUE_PLACEHOLDER, &value.to_string());
        run_user_command("--vary", &command, &self.output).map_err(|failure| failure.to_string())?;
        let addresses = plan.connection_plan.addresses.as_slice();
        if plan.connection_plan.unix.is_some() || addresses.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + SERVER_RETURN_TIMEOUT;
        while !signal::is_stop_requested() {
            if addresses.iter().any(|address| TcpStream::connect_timeout(address, CONNECT_CHECK_INTERVAL).is_ok()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = SERVER_RETURN_TIMEOUT.as_secs();
                return Err(format!(
                    "--vary: the target accepted no connection within {seconds} s after the change to {value}"
                ));
            }
            std::thread::sleep(CONNECT_CHECK_INTERVAL);
        }
        Err("interrupted".to_owned())
    }
}
