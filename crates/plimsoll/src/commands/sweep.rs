//! `plimsoll sweep`: one load for each of several concurrencies.

use super::{diff, note_ports, preflight, print, print_json, report};
use crate::args::SweepArgs;
use crate::capacity::{self, Limits};
use crate::failure::{Failure, exit};
use crate::live::Live;
use crate::meant::{self, Base};
use crate::output;
use crate::pictures::write_chart;
use crate::probes::Watcher;
use crate::progress::Meter;
use crate::recording::Recording;
use crate::target::system_text;
use plimsoll_analysis::{ServerUse, Summary};
use plimsoll_model::units::{parse_count, parse_duration_ns};
use plimsoll_model::{Curve, Experiment, ExperimentKind, LoadShape, Purpose, Remark};
use plimsoll_report::chart::{PICTURE_SUFFIX, Theme, heading, success_chart, throughput_chart};
use plimsoll_report::{
    Around, Progress, Report, ServerView, SweepLevel, dat_line, json, load_text, server_document, sweep_header,
    sweep_page, sweep_row,
};
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
    let watcher = Watcher::begin(&args.probes, &base)?;
    let mut live = Live::new(args.out.quiet);
    if let Some(warning) = warning {
        live.note(&format!("warning: {warning}"));
    }
    let run_path = args.dir.join(format!("{}.plimsoll", args.name));
    let dat_path = args.dir.join(format!("{}.dat", args.name));
    let options = serde_json::json!({ "levels": levels });
    let mut recording = Recording::begin(ExperimentKind::Sweep, base.local, options, Some(&run_path))?;
    recording.watch(watcher);
    let server = recording.live_server();
    let cannot =
        |e: std::io::Error| Failure::start(format!("'{}' cannot be written: {}", dat_path.display(), system_text(&e)));
    let mut dat = File::create(&dat_path).map_err(cannot)?;
    if !args.out.json {
        print(&format!("{}\n", sweep_header()));
    }
    let mut done = Vec::new();
    let limits = Limits::of_machine();
    let (mut meter, number_of) = (Meter::default(), levels.len());
    let level_s = (level_ns + warmup_ns) as f64 / 1e9;
    for (number, concurrency) in levels.into_iter().enumerate() {
        if plimsoll_sys::signal::interrupted() {
            break;
        }
        let mut plan = base.closed(Curve::constant(concurrency as f64));
        plan.duration_ns = Some(level_ns);
        plan.warmup_ns = warmup_ns;
        plan.connections_ready = concurrency as u32;
        let (outcome, server_used) = match capacity::fit(&mut plan, base.fixed, base.local, &limits) {
            Err(reason) => {
                recording.remark(Remark::Unheld { users: concurrency, reason: reason.clone() });
                (Err(reason), None)
            }
            Ok(adapted) => {
                adapted.iter().for_each(|sentence| live.line(sentence));
                meter.next_load();
                let trial = recording.drive(Purpose::Level, &plan, &mut |tick| {
                    live.passing(&Progress {
                        doing: format!("{}, level {} of {number_of}", load_text(&plan.load), number + 1),
                        elapsed_s: level_s * number as f64 + tick.end_ns as f64 / 1e9,
                        total_s: Some(level_s * number_of as f64),
                        server_cores: server.cores(),
                        ..meter.push(tick)
                    });
                    match plimsoll_sys::signal::interrupted() {
                        true => ControlFlow::Break("interrupted".into()),
                        false => ControlFlow::Continue(()),
                    }
                })?;
                let (summary, server_used) = (Summary::of(&trial.run), ServerUse::of(&trial.run).ok());
                live.clear();
                note_ports(&mut live, &summary);
                (Ok(summary), server_used)
            }
        };
        live.clear();
        let level = SweepLevel { concurrency, outcome, server: server_used };
        if !args.out.json {
            print(&format!("{}\n", sweep_row(&level)));
        }
        if let Some(line) = dat_line(&level) {
            // What is measured next is worth having without the table, too.
            if let Err(error) = dat.write_all(line.as_bytes()) {
                output::failed(cannot(error).to_string());
            }
        }
        done.push(level);
    }
    let (experiment, note) = recording.end();
    if args.out.json {
        print_json(&with_servers(json::sweep(&experiment, &done), &experiment));
    }
    live.note(&format!("table: {}", dat_path.display()));
    match draw(args, &experiment) {
        Ok(paths) => paths.iter().for_each(|path| live.note(&format!("chart: {path}"))),
        Err(failure) => output::failed(failure.to_string()),
    }
    for note in report::write_beside(&run_path, &experiment).into_iter().chain(note) {
        live.note(&note);
    }
    let anything = done.iter().any(|level| level.outcome.as_ref().is_ok_and(|summary| summary.ledger.succeeded > 0));
    Ok(match (plimsoll_sys::signal::interrupted(), anything) {
        (true, _) => exit::INTERRUPTED,
        (false, false) => exit::CROSSED,
        (false, true) => exit::DONE,
    })
}

/// Draws what was measured as `NAME_qps_ttlb` and `NAME_successrate`; nothing where no level could be held.
fn draw(args: &SweepArgs, experiment: &Experiment) -> Result<Vec<String>, Failure> {
    let Some((over, levels)) = diff::levels(experiment) else { return Ok(Vec::new()) };
    let target = experiment.trials.first().map_or_else(String::new, |t| heading::target(&t.run.plan));
    let subtitle = format!("{target}; {} each", args.level_time);
    let above = (heading::throughput(over, &levels, &subtitle), heading::success(over, &levels, &subtitle));
    let charts = [
        ("qps_ttlb", throughput_chart(&above.0, over, &levels, Theme::Light)),
        ("successrate", success_chart(&above.1, over, &levels, Theme::Light)),
    ];
    let mut written = Vec::new();
    for (what, svg) in charts {
        let path = args.dir.join(format!("{}_{what}.{PICTURE_SUFFIX}", args.name));
        write_chart(&path, &svg)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// The page of a recorded sweep.
pub fn page(experiment: &Experiment, around: &Around) -> Report {
    sweep_page(experiment, &recorded(experiment), around)
}

/// The document with what was seen of the server at each level.
fn with_servers(mut document: serde_json::Value, experiment: &Experiment) -> serde_json::Value {
    let measured = document["levels"].as_array_mut().into_iter().flatten().filter(|level| level["error"].is_null());
    for (level, trial) in measured.zip(&experiment.trials) {
        level["server"] = server_document(&ServerView::of(&trial.run));
    }
    document
}

/// The levels of a recorded sweep.
fn recorded(experiment: &Experiment) -> Vec<SweepLevel> {
    let levels = experiment.trials.iter().filter_map(|trial| match &trial.run.plan.load {
        LoadShape::Closed { users } => {
            let (outcome, server) = (Ok(Summary::of(&trial.run)), ServerUse::of(&trial.run).ok());
            Some(SweepLevel { concurrency: users.max() as u64, outcome, server })
        }
        LoadShape::Open { .. } => None,
    });
    let unheld = experiment.remarks.iter().filter_map(|remark| match remark {
        Remark::Unheld { users, reason } => {
            Some(SweepLevel { concurrency: *users, outcome: Err(reason.clone()), server: None })
        }
        Remark::Broken { .. } => None,
    });
    let mut levels: Vec<SweepLevel> = levels.chain(unheld).collect();
    // As asked for: what could not be held stands in its place.
    let asked: Vec<u64> = serde_json::from_value(experiment.options["levels"].clone()).unwrap_or_default();
    levels.sort_by_key(|level| asked.iter().position(|asked| *asked == level.concurrency));
    levels
}

/// Prints the result of a recorded sweep.
pub fn show(experiment: &Experiment) {
    let rows = recorded(experiment).iter().map(|level| sweep_row(level) + "\n").collect::<String>();
    print(&format!("{}\n{rows}", sweep_header()));
}

/// The JSON document of a recorded sweep.
pub fn document(experiment: &Experiment) -> serde_json::Value {
    with_servers(json::sweep(experiment, &recorded(experiment)), experiment)
}
