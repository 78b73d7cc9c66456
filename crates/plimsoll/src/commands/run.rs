//! `plimsoll run`: one load on one URL.

use super::capture::{Capture, Like};
use super::{note_ports, preflight};
use crate::args::RunArgs;
use crate::capacity::{self, Limits};
use crate::conduct::{Conduct, Done};
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::probes::{Effort, Watcher};
use crate::recording::Recording;
use crate::resolve;
use crate::results::{Results, profiles as taken};
use crate::runner::ThisMachine;
use plimsoll_analysis::condition::Metric;
use plimsoll_analysis::profile::steady_rps;
use plimsoll_analysis::{Conditions, Study, Summary};
use plimsoll_model::{Asked, LoadShape, Noted, RunAsked};
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
    let (base, mut plan) = resolve::run_plan(args)?;
    let mut injector = base.injector_for(&plan.load);
    let flag = match &plan.load.shape {
        LoadShape::Closed { .. } => "--concurrency",
        LoadShape::Open { .. } => "--max-connections",
    };
    let setup = capacity::fit(&mut plan, &mut injector, base.fixed, base.local, &Limits::of_machine())
        .map_err(|reason| Failure::usage(format!("{flag}: {reason}")))?;
    let mut warnings = Vec::new();
    warnings.extend(preflight(&plan, &injector, args.request.no_preflight)?);
    let profiles = Capture::of(&args.profiles, &base)?;
    // Profiles are kept beside a run file, so there has to be one.
    let path: Option<PathBuf> = args.output.clone().or_else(|| profiles.as_ref().map(|_| kept::new_path("run")));
    let watcher = Watcher::begin(&args.probes, &base, Effort::Little)?;
    let asked = Asked::Run(RunAsked {
        plan: plan.record(),
        stop_if: stop_if.as_ref().map(ToString::to_string),
        profiles: profiles.as_ref().map(Capture::asked),
    });
    let mut study = Study::new(&asked).map_err(|error| Failure::usage(format!("--stop-if: {error}")))?;
    let noted = Noted { warnings, fitted: setup };
    let recording = Recording::begin(asked, noted, base.local, &injector, path.as_deref())?;
    let mut runner = ThisMachine::new(watcher, plan.clone(), injector, None);
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
        wanted.capture(&mut conduct, &Like { plan: &plan.record(), arrivals: base.arrivals }, level_rps, path)?;
    }
    let (experiment, note, mut live) = conduct.end(None);
    let results = Results::of(&experiment, path.as_deref())?;
    results.print(args.out.json, true);
    let tidied = path.as_deref().and_then(kept::tidy);
    for note in note.into_iter().chain(results.profiles.as_ref().and_then(taken::note)).chain(tidied) {
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
