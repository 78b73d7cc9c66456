//! `plimsoll show`: prints again what run files hold. The findings are computed anew from what was measured.

use super::{find, print, print_json, run as single, sweep};
use crate::args::ShowArgs;
use crate::failure::{Failure, exit};
use crate::target::system_text;
use plimsoll_model::codec::{self, Decoded};
use plimsoll_model::{Experiment, ExperimentKind};
use plimsoll_report::csv;
use std::io::Write;
use std::path::Path;

fn read(path: &Path) -> Result<Experiment, Failure> {
    let shown = path.display();
    let bytes =
        std::fs::read(path).map_err(|e| Failure::start(format!("'{shown}' cannot be read: {}", system_text(&e))))?;
    let Decoded { experiment, damage, frames_unknown } =
        codec::decode(&bytes).map_err(|e| Failure::start(format!("'{shown}': {e}")))?;
    let warn = |text: String| {
        let _ = writeln!(std::io::stderr(), "warning: {shown}: {text}");
    };
    if let Some(damage) = damage {
        warn(format!(
            "read up to byte {}; the {} bytes after it are cut or damaged and were left out",
            damage.good_bytes, damage.lost_bytes
        ));
    } else if experiment.elapsed_ns.is_none() {
        warn("the recording was cut off; this is what it holds".into());
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
        let documents = experiments.iter().map(document).collect::<Result<Vec<_>, _>>()?;
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
        if experiments.len() > 1 {
            print(&format!("{}{}\n\n", if number > 0 { "\n" } else { "" }, path.display()));
        }
        match experiment.kind {
            ExperimentKind::Run => single::show(experiment, false)?,
            ExperimentKind::Sweep => sweep::show(experiment),
            ExperimentKind::Find => find::show(experiment)?,
        }
    }
    Ok(exit::DONE)
}

fn document(experiment: &Experiment) -> Result<serde_json::Value, Failure> {
    match experiment.kind {
        ExperimentKind::Run => single::document(experiment),
        ExperimentKind::Sweep => Ok(sweep::document(experiment)),
        ExperimentKind::Find => find::document(experiment),
    }
}
