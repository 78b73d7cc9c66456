//! Reads a whole run file ([`read_experiment`]): its settings and measurements, with warnings about
//! missing parts.
//!
//! Not here: the facts that a list of runs shows (`run_file`), and the file format
//! (`plimsoll_model::codec`).

use plimsoll_model::codec::{self, RunFileContents};
use plimsoll_model::failure::Failure;
use plimsoll_model::{Experiment, ExperimentSpec};
use plimsoll_sys::files::{self, FilePurpose};
use std::path::Path;

/// Reads the run file at `path`. Calls `warn` with a sentence for each missing part. Fails if the
/// file is not readable, or if the only load of a `run` is missing.
pub fn read_experiment(path: &Path, warn: &mut dyn FnMut(String)) -> Result<Experiment, Failure> {
    let bytes = files::read(path, FilePurpose::RunFile)
        .map_err(|why| Failure::cannot_start(format!("'{}' {why}", path.display())))?;
    decode_experiment(path, &bytes, warn)
}

/// Decodes the bytes of the run file at `path` as [`read_experiment`] does. `path` is used only in
/// messages.
pub fn decode_experiment(path: &Path, bytes: &[u8], warn: &mut dyn FnMut(String)) -> Result<Experiment, Failure> {
    let file = path.display();
    let RunFileContents { experiment, damage, frames_unknown, figures_unknown } =
        codec::decode(bytes).map_err(|e| Failure::cannot_start(format!("'{file}': {e}")))?;
    if experiment.trials.is_empty() && matches!(experiment.spec, ExperimentSpec::Run(_)) {
        return Err(Failure::cannot_start(format!(
            "the recording in the run file '{file}' was cut off before the first load: the file contains no results"
        )));
    }
    let mut warn = |text: String| warn(format!("{file}: {text}"));
    if let Some(damage) = damage {
        warn(format!(
            "the run file was read up to byte {good_bytes}; the last {lost_bytes} bytes are damaged and were left out",
            good_bytes = damage.good_bytes,
            lost_bytes = damage.lost_bytes
        ));
    } else if experiment.elapsed_ns.is_none() {
        match experiment.abort_reason() {
            Some(reason) => warn(format!("the run ended early: {reason}; the results cover only the recorded part")),
            None => warn("the recording was cut off; the results cover only the recorded part".into()),
        }
    }
    if figures_unknown > 0 {
        warn(format!("{figures_unknown} figures of the run file were written by a newer plimsoll and were skipped"));
    }
    if frames_unknown > 0 {
        warn(format!("{frames_unknown} entries of the run file were written by a newer plimsoll and were skipped"));
    }
    Ok(experiment)
}
