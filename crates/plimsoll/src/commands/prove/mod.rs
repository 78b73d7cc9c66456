//! `plimsoll prove`: whether a change helped, by blocks of paired loads; with `--ladder`, what each step costs.

mod asked;
mod profiles;

use super::preflight;
use crate::args_prove::ProveArgs;
use crate::capacity::Limits;
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::recording::Recording;
use crate::results::Results;
use crate::results::page::write_beside;
use crate::runner::Builds;
use crate::runner::machine::Fitting;
use asked::ProveSetup;
use plimsoll_analysis::prove::{ComparisonEnd, ProveVerdict, arm_name};
use plimsoll_analysis::{Finding, Study};
use plimsoll_model::{Ending, Noted, Purpose, Stop, Trial};

/// Compares, reports, and says with which code to end.
pub fn run(args: &ProveArgs) -> Result<u8, Failure> {
    let asked = ProveSetup::of(args)?;
    let mut warnings = Vec::new();
    for (number, arm) in asked.arms.iter().enumerate().filter(|(_, arm)| arm.command.is_none()) {
        if let Some(warning) = preflight(&arm.base.plan, &arm.base.injector, args.request.no_preflight)? {
            warnings.push(format!("{}: {warning}", arm_name(number as u8)));
        }
    }
    let (differing, hint) = asked.pasts();
    warnings.extend(differing);
    let mut live = Live::new(args.out.quiet);
    live.line(&asked.question());
    if let Some(hint) = hint {
        live.line(hint);
    }
    let path = args.output.clone().unwrap_or_else(|| kept::new_path("prove"));
    let local = asked.arms.iter().all(|arm| arm.base.local);
    let question = asked.recorded();
    let mut study = Study::new(&question).map_err(|error| Failure::usage(error.to_string()))?;
    // The flags are the same for all sides.
    let base = asked.arms[0].base.clone();
    let noted = Noted { warnings, fitted: Vec::new() };
    let recording = Recording::begin(question, noted, local, &base.injector, Some(&path))?;
    let fitting = Fitting { base, limits: Limits::of_machine() };
    let before_block = asked.before_block.as_deref();
    let mut runner = Builds::new(&asked.arms, fitting, asked.start_patience, before_block, path.clone());
    let mut conduct = Conduct::new(&mut runner, recording, live);
    let outcome = conduct.carry_out(&mut study, &mut |_, _| ());
    let died = conduct.recording.trials().last().and_then(|trial| match &trial.run.ending {
        Some(Ending::Stopped(Stop::Died(why))) => Some(why.clone()),
        _ => None,
    });
    let broken = match outcome {
        _ if plimsoll_sys::signal::interrupted() => Some("interrupted".to_owned()),
        Err(failure) => Some(failure.to_string()),
        Ok(()) => died,
    };
    if let (None, Study::Blocks(comparison)) = (&broken, &study) {
        profiles::take(&mut conduct, &asked, comparison.blocks(), &path);
    }
    let setup = std::mem::take(&mut conduct.fitted);
    let nothing = !conduct.recording.trials().iter().any(|trial| trial.tag.purpose == Purpose::Block);
    let (experiment, note, mut live) = conduct.end(broken.as_deref());
    // What was driven, and never answered with success, is a result; what could not be driven is none.
    let succeeded = |trial: &Trial| trial.run.intervals.values().any(|interval| interval.whole().ledger.succeeded > 0);
    let silent = !experiment.trials.is_empty() && !experiment.trials.iter().any(succeeded);
    if let (true, Some(reason)) = (nothing && !plimsoll_sys::signal::interrupted(), &broken) {
        if silent {
            live.note(&format!("plimsoll: {reason}"));
            return Ok(exit::CROSSED);
        }
        return Err(Failure::start(reason.clone()));
    }
    let results = Results::of(&experiment, Some(&path))?;
    results.print(args.out.json, true);
    setup.iter().for_each(|sentence| live.line(sentence));
    for note in note.into_iter().chain(write_beside(&path, &experiment)).chain(kept::tidy(&path)) {
        live.note(&note);
    }
    let (verdict, broke, counted) = match results.finding() {
        Finding::Prove(found) => {
            let proof = &found.proof;
            (proof.verdict, matches!(proof.stopped_by, ComparisonEnd::Broken(_)), proof.blocks)
        }
        Finding::Ladder(found) => (ProveVerdict::Inconclusive, broken.is_some(), found.ladder.blocks),
        Finding::Run(_) | Finding::Sweep(_) | Finding::Find(_) | Finding::Explain(_) => {
            return Err(Failure::start("the run file holds no comparison"));
        }
    };
    if asked.fail_if_worse && verdict == ProveVerdict::Worse {
        live.note("--fail-if worse: it is");
        return Ok(exit::CROSSED);
    }
    Ok(match (plimsoll_sys::signal::interrupted(), broke) {
        (true, _) => exit::INTERRUPTED,
        (false, true) if !silent => exit::USAGE,
        (false, false) if counted > 0 => exit::DONE,
        (false, _) => exit::CROSSED,
    })
}
