//! `plimsoll run`: one load on one URL.

use super::capture::{self, Like, Wanted};
use super::{note_ports, preflight, print_json, print_profiles, print_report};
use crate::args::RunArgs;
use crate::capacity::{self, Limits};
use crate::conduct::{Conduct, Done};
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::meant;
use crate::probes::Watcher;
use crate::recording::Recording;
use crate::runner::ThisMachine;
use plimsoll_analysis::condition::Metric;
use plimsoll_analysis::profile::steady_rps;
use plimsoll_analysis::{Conditions, Study, Summary};
use plimsoll_model::{Asked, Experiment, LoadShape, Noted, Run, RunAsked};
use plimsoll_report::levels::{Profiles, levels_document};
use plimsoll_report::{
    Around, Report, RunContext, ServerView, add_server, json, run_page, run_report, server_document,
};
use std::path::PathBuf;

/// Runs, reports, and says with which code to end.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let parse = |name: &str, text: &Option<String>| {
        text.as_deref()
            .map(|text| Conditions::parse(text).map_err(|e| Failure::usage(format!("{name}: {e}"))))
            .transpose()
    };
    let stop_if = parse("--stop-if", &args.stop_if)?;
    if stop_if.as_ref().is_some_and(|conditions| conditions.0.iter().any(|c| c.metric == Metric::Cpu)) {
        return Err(Failure::usage("--stop-if: cpu is known when the load is over; it works with --fail-if"));
    }
    let fail_if = parse("--fail-if", &args.fail_if)?;
    let (base, mut plan) = meant::run_plan(args)?;
    let mut injector = base.injector_for(&plan.load);
    let flag = match &plan.load.shape {
        LoadShape::Closed { .. } => "--concurrency",
        LoadShape::Open { .. } => "--max-connections",
    };
    let setup = capacity::fit(&mut plan, &mut injector, base.fixed, base.local, &Limits::of_machine())
        .map_err(|reason| Failure::usage(format!("{flag}: {reason}")))?;
    let mut warnings = Vec::new();
    warnings.extend(preflight(&plan, &injector, args.request.no_preflight)?);
    let profiles = Wanted::of(&args.profiles, &args.request)?;
    // Profiles are kept beside a run file, so there has to be one.
    let path: Option<PathBuf> = args.output.clone().or_else(|| profiles.as_ref().map(|_| kept::new_path("run")));
    let watcher = Watcher::begin(&args.probes, &base)?;
    let asked = Asked::Run(RunAsked {
        plan: plan.clone(),
        stop_if: stop_if.as_ref().map(ToString::to_string),
        profiles: profiles.as_ref().map(Wanted::asked),
    });
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--stop-if: {error}")))?;
    let noted = Noted { warnings, fitted: setup };
    let recording = Recording::begin(asked, noted, base.local, &injector, path.as_deref())?;
    let mut runner = ThisMachine::new(watcher, injector, None);
    let mut conduct = Conduct::new(&mut runner, recording, Live::new(args.out.quiet));
    conduct.carry_out(&mut study, &mut |done, live| {
        if let Done::Measured(trial) = done {
            note_ports(live, &Summary::of(&trial.run));
        }
    })?;
    let Some(trial) = conduct.recording.trials().first() else { return Err(Failure::start("interrupted")) };
    let crossed = fail_if.map(|conditions| conditions.crossed(&trial.run)).unwrap_or_default();
    let summary = Summary::of(&trial.run);
    let level_rps = steady_rps(&summary, &plan.load.shape);
    if let (Some(wanted), Some(path)) = (&profiles, &path) {
        wanted.capture(&mut conduct, &Like { plan: &plan, arrivals: base.arrivals }, level_rps, path)?;
    }
    let (experiment, note, mut live) = conduct.end(None);
    let profiles = capture::read_back(&experiment, path.as_deref());
    show(&experiment, args.out.json, profiles.as_ref())?;
    let tidied = path.as_deref().and_then(kept::tidy);
    for note in note.into_iter().chain(profiles.as_ref().and_then(capture::note)).chain(tidied) {
        live.note(&note);
    }
    for crossing in &crossed {
        live.note(&format!("--fail-if {crossing}"));
    }
    Ok(match (plimsoll_sys::signal::interrupted(), crossed.is_empty() && summary.whole.ledger.succeeded > 0) {
        (true, _) => exit::INTERRUPTED,
        (false, false) => exit::CROSSED,
        (false, true) => exit::DONE,
    })
}

/// Prints the result of a recorded run.
pub fn show(experiment: &Experiment, as_json: bool, profiles: Option<&Profiles>) -> Result<(), Failure> {
    if as_json {
        print_json(&document(experiment, profiles)?);
        return Ok(());
    }
    let (trial, summary) = only_trial(experiment)?;
    let context = context(experiment, &trial.run);
    let mut report = run_report(&context, &summary);
    add_server(&mut report, &ServerView::of(&trial.run));
    print_report(&report);
    print_profiles(profiles);
    Ok(())
}

/// The JSON document of a recorded run.
pub fn document(experiment: &Experiment, profiles: Option<&Profiles>) -> Result<serde_json::Value, Failure> {
    let (trial, summary) = only_trial(experiment)?;
    let mut document = json::run(experiment, &context(experiment, &trial.run), &summary);
    document["fitted"] = experiment.noted.fitted.clone().into();
    document["server"] = server_document(&ServerView::of(&trial.run));
    document["profiles"] = profiles.map(levels_document).into();
    Ok(document)
}

/// The page of a recorded run.
pub fn page(experiment: &Experiment, around: &Around) -> Result<Report, Failure> {
    let (trial, _) = only_trial(experiment)?;
    let context = context(experiment, &trial.run);
    Ok(run_page(experiment, &context, trial, around))
}

/// What stands around the figures of a run.
fn context<'a>(experiment: &'a Experiment, run: &'a Run) -> RunContext<'a> {
    RunContext {
        plan: &run.plan,
        injectors: &run.injectors,
        cores: experiment.environment.cores,
        local: experiment.environment.target_local,
        warnings: &experiment.noted.warnings,
        setup: &experiment.noted.fitted,
    }
}

fn only_trial(experiment: &Experiment) -> Result<(&plimsoll_model::Trial, Summary), Failure> {
    let trial = experiment.trials.first().ok_or_else(|| Failure::start("the run file was cut before its run began"))?;
    Ok((trial, Summary::of(&trial.run)))
}
