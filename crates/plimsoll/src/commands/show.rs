//! `plimsoll show`: prints again what run files hold. The findings are computed anew from what was measured.

use super::capture;
use super::{find, print, print_json, prove, run as single, sweep};
use crate::args::ShowArgs;
use crate::failure::{Failure, exit};
use crate::files::{self, Use};
use crate::output::note;
use plimsoll_model::codec::{self, Decoded};
use plimsoll_model::{Asked, Experiment};
use plimsoll_report::{csv, probes_csv};
use std::path::Path;

/// Reads a run file; says on standard error what is missing from it.
pub fn read(path: &Path) -> Result<Experiment, Failure> {
    let bytes = files::read(path, Use::RunFile).map_err(|why| Failure::start(format!("'{}' {why}", path.display())))?;
    decode(path, &bytes)
}

/// The same of the bytes of the file at `path`.
pub fn decode(path: &Path, bytes: &[u8]) -> Result<Experiment, Failure> {
    let shown = path.display();
    let Decoded { experiment, damage, frames_unknown, figures_unknown } =
        codec::decode(bytes).map_err(|e| Failure::start(format!("'{shown}': {e}")))?;
    if experiment.trials.is_empty() && matches!(experiment.asked, Asked::Run(_)) {
        return Err(Failure::start(format!("'{shown}' was cut before its run began: it holds no load")));
    }
    let warn = |text: String| {
        note(&format!("warning: {shown}: {text}"));
    };
    if let Some(damage) = damage {
        warn(format!(
            "read up to byte {}; the {} bytes after it are cut or damaged and were left out",
            damage.good_bytes, damage.lost_bytes
        ));
    } else if experiment.elapsed_ns.is_none() {
        match experiment.broken() {
            Some(reason) => warn(format!("it broke off: {reason}; this is what it holds")),
            None => warn("the recording was cut off; this is what it holds".into()),
        }
    }
    if figures_unknown > 0 {
        warn(format!("{figures_unknown} figures were written by a newer plimsoll and were passed over"));
    }
    if frames_unknown > 0 {
        warn(format!("{frames_unknown} entries were written by a newer plimsoll and were passed over"));
    }
    Ok(experiment)
}

/// Shows each file, and says with which code to end.
pub fn run(args: &ShowArgs) -> Result<u8, Failure> {
    let experiments = args.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let documents = args.files.iter().zip(&experiments).map(|(path, experiment)| document(path, experiment));
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        match <[_; 1]>::try_from(documents) {
            Ok([only]) => print_json(&only),
            Err(several) => print_json(&several.into()),
        }
        return Ok(exit::DONE);
    }
    for (number, (path, experiment)) in args.files.iter().zip(&experiments).enumerate() {
        if args.csv {
            print(&csv::intervals(experiment));
            continue;
        }
        if args.probes {
            let runs: Vec<_> = experiment.trials.iter().map(|trial| &trial.run).collect();
            print(&probes_csv(&runs));
            continue;
        }
        if experiments.len() > 1 {
            print(&format!("{}{}\n\n", if number > 0 { "\n" } else { "" }, path.display()));
        }
        let profiles = capture::read_back(experiment, Some(path));
        match &experiment.asked {
            Asked::Run(_) => single::show(experiment, false, profiles.as_ref())?,
            Asked::Sweep(_) => sweep::show(experiment),
            Asked::Find(_) => find::show(experiment, profiles.as_ref())?,
            Asked::Prove(_) | Asked::Ladder(_) => prove::show(experiment, path)?,
        }
    }
    Ok(exit::DONE)
}

/// The JSON document of an experiment read from `path`.
pub fn document(path: &Path, experiment: &Experiment) -> Result<serde_json::Value, Failure> {
    let profiles = capture::read_back(experiment, Some(path));
    match &experiment.asked {
        Asked::Run(_) => single::document(experiment, profiles.as_ref()),
        Asked::Sweep(_) => Ok(sweep::document(experiment)),
        Asked::Find(_) => find::document(experiment, profiles.as_ref()),
        Asked::Prove(_) | Asked::Ladder(_) => prove::document(experiment, path),
    }
}
