//! What run files hold, as text, document and page: everything that is shown of an experiment after it, whether it has just been
//! made or is read from its file. Findings are computed anew from what was measured.
//!
//! Not here: making experiments (the commands), arithmetic (`plimsoll-analysis`), layout (`plimsoll-report`).

pub mod find;
pub mod page;
pub mod profiles;
pub mod prove;
pub mod prove_profiles;
pub mod run;
pub mod sweep;

use crate::failure::Failure;
use crate::files::{self, Use};
pub use crate::output::print;
use crate::output::{note, print_as_it_is};
use plimsoll_analysis::levels::{Level, LoadUnit, measured};
use plimsoll_model::codec::{self, Decoded};
use plimsoll_model::{Asked, Experiment};
use plimsoll_report::block::ReportBlock;
use plimsoll_report::load_profiles::{Profiles, profiles_report};
use plimsoll_report::{Report, json, text};
use std::io::IsTerminal;
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

/// The JSON document of an experiment read from `path`.
pub fn document(path: &Path, experiment: &Experiment) -> Result<serde_json::Value, Failure> {
    let profiles = profiles::read_back(experiment, Some(path));
    match &experiment.asked {
        Asked::Run(_) => run::document(experiment, profiles.as_ref()),
        Asked::Sweep(_) => Ok(sweep::document(experiment)),
        Asked::Find(_) => find::document(experiment, profiles.as_ref()),
        Asked::Prove(_) | Asked::Ladder(_) => prove::document(experiment, path),
    }
}

/// Prints what was read from `path`.
pub fn show(path: &Path, experiment: &Experiment) -> Result<(), Failure> {
    let profiles = profiles::read_back(experiment, Some(path));
    match &experiment.asked {
        Asked::Run(_) => run::show(experiment, false, profiles.as_ref()),
        Asked::Sweep(_) => {
            sweep::show(experiment);
            Ok(())
        }
        Asked::Find(_) => find::show(experiment, profiles.as_ref()),
        Asked::Prove(_) | Asked::Ladder(_) => prove::show(experiment, path),
    }
}

/// The levels of a recorded experiment; `None` when it holds none that can be compared.
pub fn levels(experiment: &Experiment) -> Option<(LoadUnit, Vec<Level>)> {
    let measured: Option<Vec<(LoadUnit, Level)>> = measured(experiment).iter().map(|t| Level::of(&t.run)).collect();
    let measured = measured?;
    let over = measured.first()?.0;
    measured.iter().all(|m| m.0 == over).then(|| (over, measured.into_iter().map(|m| m.1).collect()))
}

/// Writes a report as text.
pub fn print_report(report: &Report) {
    let terminal = std::io::stdout().is_terminal();
    let size = terminal.then(plimsoll_sys::process::terminal_size).flatten();
    print_as_it_is(&text::render_in(report, terminal, size.map(|size| size.0)));
}

/// Writes what profiles say, below the report of what they were taken beside.
pub fn print_profiles(profiles: Option<&Profiles>) {
    if let Some(profiles) = profiles {
        let report = profiles_report(profiles);
        // Facts and tables stand apart by themselves.
        if matches!(report.blocks.first(), Some(ReportBlock::Text(..))) {
            print("\n");
        }
        print_report(&report);
    }
}

/// Writes a JSON document.
pub fn print_json(document: &serde_json::Value) {
    print(&json::text(document));
}
