//! `plimsoll diff`: two recordings beside each other, as a table and as charts. It compares what two files hold and
//! claims nothing beyond: which of two servers is better is for a command that runs both.

use super::{print, print_json, print_report, show};
use crate::args::DiffArgs;
use crate::failure::{Failure, exit};
use crate::files::{self, Use};
use crate::pictures::write_chart;
use plimsoll_analysis::levels::{Level, Over, parse_dat};
use plimsoll_model::codec::MAGIC;
use plimsoll_model::{Experiment, ExperimentKind, Purpose};
use plimsoll_report::chart::{PICTURE_SUFFIX, Recorded, Theme, heading, success_diff_chart, throughput_diff_chart};
use plimsoll_report::{DiffSide, diff_document, diff_report};
use std::path::Path;

/// What a file holds that can be compared.
struct Held {
    name: String,
    over: Over,
    levels: Vec<Level>,
}

/// The levels of a recorded experiment; `None` when it holds none that can be compared.
pub fn levels(experiment: &Experiment) -> Option<(Over, Vec<Level>)> {
    // Loads during which profiles were taken, and trials beforehand, are no measurement.
    let trials = experiment.trials.iter().filter(|trial| !matches!(trial.purpose, Purpose::Profile | Purpose::Settle));
    let measured: Option<Vec<(Over, Level)>> = trials.map(|t| Level::of(&t.run)).collect();
    let measured = measured?;
    let over = measured.first()?.0;
    measured.iter().all(|m| m.0 == over).then(|| (over, measured.into_iter().map(|m| m.1).collect()))
}

fn read(path: &Path) -> Result<Held, Failure> {
    let shown = path.display();
    let bytes = files::read_as(path, |first| if first.starts_with(&MAGIC) { Use::RunFile } else { Use::Dat })
        .map_err(|why| Failure::start(format!("'{shown}' {why}")))?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    if bytes.starts_with(&MAGIC) {
        let experiment = show::decode(path, &bytes)?;
        if experiment.kind == ExperimentKind::Find {
            return Err(Failure::usage(format!(
                "'{shown}' holds a search for the load line; diff compares sweeps, runs of one load and .dat files"
            )));
        }
        let (over, levels) = levels(&experiment).ok_or_else(|| {
            Failure::usage(format!("'{shown}' holds no load that stays the same; diff compares sweeps and such runs"))
        })?;
        return Ok(Held { name, over, levels });
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("'{shown}' is neither a run file nor the text of a .dat file")))?;
    let levels = parse_dat(&text).map_err(|e| Failure::usage(format!("'{shown}': {e}")))?;
    Ok(Held { name, over: Over::Concurrency, levels })
}

/// Compares, reports, and says with which code to end.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let (mut a, mut b) = (read(&args.a)?, read(&args.b)?);
    if a.over != b.over {
        let kind = |held: &Held| match held.over {
            Over::Concurrency => "users at once",
            Over::Rate => "requests a second",
        };
        return Err(Failure::usage(format!(
            "'{}' and '{}' are of different kinds: the load of one is {}, that of the other {}",
            args.a.display(),
            args.b.display(),
            kind(&a),
            kind(&b)
        )));
    }
    let stem = format!("{}_{}", a.name, b.name);
    if a.name == b.name {
        (a.name, b.name) = (args.a.display().to_string(), args.b.display().to_string());
    }
    let (first, second) = ((a.name.as_str(), a.levels.as_slice()), (b.name.as_str(), b.levels.as_slice()));
    let recorded = [first, second].map(|(name, levels)| Recorded { name, levels });
    let charts = [
        (
            format!("{stem}.qps.ttlb.diff.{PICTURE_SUFFIX}"),
            throughput_diff_chart(&heading::throughput_diff(first, second), a.over, recorded, Theme::Light),
        ),
        (
            format!("{stem}.success_rate.diff.{PICTURE_SUFFIX}"),
            success_diff_chart(&heading::success_diff(first, second), a.over, recorded, Theme::Light),
        ),
    ];
    let mut written = Vec::new();
    for (name, svg) in charts {
        let path = args.dir.join(name);
        write_chart(&path, &svg)?;
        written.push(path.display().to_string());
    }
    let sides = [(&args.a, &a), (&args.b, &b)].map(|(path, held)| DiffSide {
        file: path.display().to_string(),
        name: &held.name,
        levels: &held.levels,
    });
    if args.json {
        print_json(&diff_document(a.over, &sides, &written));
    } else {
        print_report(&diff_report(a.over, &sides));
        print(&format!("\ncharts: {}\n", written.join(", ")));
    }
    Ok(exit::DONE)
}
