//! `plimsoll sweep`: one load for each of several concurrencies.

use super::{cannot_hold, preflight, print, print_json, say_setup};
use crate::args::SweepArgs;
use crate::failure::{Failure, exit};
use crate::live::Live;
use crate::meant::{self, Base};
use crate::recording::Recording;
use crate::target::system_text;
use plimsoll_analysis::Summary;
use plimsoll_model::units::{parse_count, parse_duration_ns};
use plimsoll_model::{Curve, Experiment, ExperimentKind, LoadShape, Purpose};
use plimsoll_report::{SweepLevel, dat_line, json, sweep_header, sweep_row};
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;

fn levels(text: &str) -> Result<Vec<u64>, Failure> {
    let levels: Result<Vec<u64>, _> = text.split(',').map(parse_count).collect();
    let levels = levels.map_err(|e| Failure::usage(format!("--concurrency: {e}")))?;
    match levels.iter().find(|level| !(1..=1_000_000).contains(*level)) {
        Some(level) => Err(Failure::usage(format!("--concurrency: {level} is not between 1 and 1M users"))),
        None => Ok(levels),
    }
}

/// Sweeps, reports, and says with which code to end.
pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let levels = levels(&args.concurrency)?;
    let level_ns = meant::positive_time("--for", &args.level_time)?;
    let warmup_ns = parse_duration_ns(&args.warmup).map_err(|e| Failure::usage(format!("--warmup: {e}")))?;
    if args.name.is_empty() || args.name.contains('/') {
        return Err(Failure::usage("--name: a file name without '/'; the folder is --dir"));
    }
    let base = Base::new(&args.request, &args.generator)?;
    if args.generator.arrivals.is_some() || args.request.max_connections.is_some() {
        return Err(Failure::usage("--arrivals and --max-connections: a sweep is a closed load; they do not apply"));
    }
    let warning = preflight(&base.plan, args.request.no_preflight)?;
    let mut live = Live::new(args.out.quiet);
    say_setup(&mut live, &base, &base.plan);
    if let Some(warning) = warning {
        live.note(&format!("warning: {warning}"));
    }
    let run_path = args.dir.join(format!("{}.plimsoll", args.name));
    let dat_path = args.dir.join(format!("{}.dat", args.name));
    let options = serde_json::json!({ "levels": levels });
    let mut recording = Recording::begin(ExperimentKind::Sweep, base.local, options, Some(&run_path))?;
    let cannot =
        |e: std::io::Error| Failure::start(format!("'{}' cannot be written: {}", dat_path.display(), system_text(&e)));
    let mut dat = File::create(&dat_path).map_err(cannot)?;
    if !args.out.json {
        print(&format!("{}\n", sweep_header()));
    }
    let mut done = Vec::new();
    for concurrency in levels {
        if plimsoll_sys::signal::interrupted() {
            break;
        }
        let mut plan = base.closed(Curve::constant(concurrency as f64));
        plan.duration_ns = Some(level_ns);
        plan.warmup_ns = warmup_ns;
        plan.connections_ready = concurrency as u32;
        let outcome = match cannot_hold(&plan) {
            Some(reason) => Err(reason),
            None => {
                let trial = recording.drive(Purpose::Level, &plan, &mut |tick| {
                    live.passing(&format!("{concurrency} users: {:.1} s", tick.end_ns as f64 / 1e9));
                    match plimsoll_sys::signal::interrupted() {
                        true => ControlFlow::Break("interrupted".into()),
                        false => ControlFlow::Continue(()),
                    }
                })?;
                Ok(Summary::of(&trial.run))
            }
        };
        live.clear();
        let level = SweepLevel { concurrency, outcome };
        if !args.out.json {
            print(&format!("{}\n", sweep_row(&level)));
        }
        if let Some(line) = dat_line(&level) {
            dat.write_all(line.as_bytes()).map_err(cannot)?;
        }
        done.push(level);
    }
    let (experiment, note) = recording.end();
    if args.out.json {
        print_json(&json::sweep(&experiment, &done));
    }
    live.note(&format!("table: {}", dat_path.display()));
    if let Some(note) = note {
        live.note(&note);
    }
    Ok(if plimsoll_sys::signal::interrupted() { exit::INTERRUPTED } else { exit::DONE })
}

/// The levels of a recorded sweep.
fn recorded(experiment: &Experiment) -> Vec<SweepLevel> {
    let levels = experiment.trials.iter().filter_map(|trial| match &trial.run.plan.load {
        LoadShape::Closed { users } => {
            Some(SweepLevel { concurrency: users.max() as u64, outcome: Ok(Summary::of(&trial.run)) })
        }
        LoadShape::Open { .. } => None,
    });
    levels.collect()
}

/// Prints the result of a recorded sweep.
pub fn show(experiment: &Experiment) {
    let rows = recorded(experiment).iter().map(|level| sweep_row(level) + "\n").collect::<String>();
    print(&format!("{}\n{rows}", sweep_header()));
}

/// The JSON document of a recorded sweep.
pub fn document(experiment: &Experiment) -> serde_json::Value {
    json::sweep(experiment, &recorded(experiment))
}
