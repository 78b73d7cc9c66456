//! `plimsoll prove`: decides whether a change helped, by blocks of paired loads (one load on each
//! side). With `--ladder`, the command measures the cost of each URL in a list, compared with the
//! previous URL.

mod spec;

use crate::event_stream;
use crate::live::ProgressDisplay;
use crate::results::Results;
use crate::results::page::write_page_beside;
use crate::study_screen::StudyScreen;
use plimsoll_analysis::prove::{ComparisonEnd, ProveVerdict};
use plimsoll_analysis::{Finding, Study};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{
    BlocksSpec, Criterion, EarlyStopReason, ExperimentSettings, ExperimentSpec, LadderSpec, LoadEnd, LoadPurpose,
    OnInconclusive, Plan, ProveSpec, StartNotes, Trial,
};
use plimsoll_report::questions::comparison_question;
use plimsoll_report::repeat_command;
use plimsoll_report::sentence_text;
use plimsoll_study::capacity::ConnectionLimits;
use plimsoll_study::git_builds;
use plimsoll_study::profile_capture::RequestedProfiles;
use plimsoll_study::prove_targets;
use plimsoll_study::recording::Recording;
use plimsoll_study::result_store;
use plimsoll_study::runner::ComparisonRunner;
use plimsoll_study::runner::builds::ComparisonTarget;
use plimsoll_study::runner::machine::LoadFitter;
use plimsoll_study::study_loop::StudyLoop;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

pub use spec::spec_from_args;

/// Compares two builds or servers and prints the verdict. Returns the exit code.
pub fn carry_out(spec: ProveSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let ProveSpec { mut blocks, criterion, margin, profiles: _ } = spec;
    let path = result_store::run_file_path(&settings.output, "prove");
    let port = blocks.arms.first().map_or(0, |arm| arm.plan.traffic.origin.port);
    let mut live = ProgressDisplay::new(settings.output.quiet);
    let revisions =
        git_builds::build_revisions(&settings.builds, port, &path, &mut |line| live.print_line_unless_quiet(line))?;
    drop(live);
    let mut settings = settings.clone();
    let mut targets = prove_targets::resolve_targets(&blocks.arms, &settings, criterion)?;
    let mut warnings = Vec::new();
    if let Some(revisions) = &revisions {
        warnings.extend(revisions.warnings.iter().cloned());
        let recorded = [&mut settings.builds.a, &mut settings.builds.b];
        let sides = revisions.sides.iter().zip(recorded).zip(targets.iter_mut().zip(&mut blocks.arms));
        for ((side, recorded), (target, arm)) in sides {
            if let Some(side) = side {
                target.command = Some(side.command.clone());
                arm.name.clone_from(&side.name);
                *recorded = Some(side.record.clone());
            }
        }
    }
    let settings = &settings;
    warnings.extend(prove_targets::send_preflight_requests(&mut targets, settings)?);
    let wanted = prove_targets::requested_profiles(settings, &targets)?;
    let profiles = wanted.as_ref().map(RequestedProfiles::profiles_spec);
    let record = |blocks| ExperimentSpec::Prove(ProveSpec { blocks, criterion, margin, profiles });
    run_comparison(blocks, Some(criterion), settings, (&targets, warnings, path), record, wanted)
}

/// Measures a ladder (a list of URLs, each compared with the previous URL) and prints the cost of
/// each step. Returns the exit code.
pub fn run_ladder(spec: LadderSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let mut targets = prove_targets::resolve_targets(&spec.blocks.arms, settings, Criterion::Goodput)?;
    let warnings = prove_targets::send_preflight_requests(&mut targets, settings)?;
    let record = |blocks| ExperimentSpec::Ladder(LadderSpec { blocks });
    run_comparison(
        spec.blocks,
        None,
        settings,
        (&targets, warnings, result_store::run_file_path(&settings.output, "prove")),
        record,
        None,
    )
}

/// Executes a comparison in blocks (a block is one load on each side), prints the result, and
/// returns the exit code.
///
/// `criterion` is the measure that decides between two sides. For a ladder (a list of URLs that are
/// compared without a verdict), `criterion` is `None`. The tuple has the targets, the warnings, and
/// the path of the run file. `record` builds the specification that the run file contains.
/// `profiles` has the profiles to take after the last block.
fn run_comparison(
    blocks: BlocksSpec<Plan>,
    criterion: Option<Criterion>,
    settings: &ExperimentSettings<String>,
    (targets, mut warnings, path): (&[ComparisonTarget], Vec<String>, PathBuf),
    record: impl FnOnce(BlocksSpec) -> ExperimentSpec,
    profiles: Option<RequestedProfiles>,
) -> Result<u8, Failure> {
    let (differing, hint) = if criterion.is_some() { prove_targets::uptime_warnings(targets) } else { (None, None) };
    warnings.extend(differing.as_ref().map(sentence_text));
    let mut live = ProgressDisplay::new(settings.output.quiet);
    live.print_line_unless_quiet(&comparison_question(blocks.arms.len(), blocks.budget_ns, criterion));
    if let Some(hint) = hint {
        live.print_line_unless_quiet(hint);
    }
    let local = targets.iter().all(|arm| arm.base.local);
    // The record contains the resolved targets, because the addresses and certificates of the
    // targets are known at this point.
    let mut reached = targets.iter();
    let blocks = blocks.map_plans(|plan| {
        Ok::<_, Infallible>(reached.next().map_or_else(|| plan.record(), |target| target.base.plan.record()))
    });
    let Ok(blocks) = blocks;
    let question = record(blocks);
    let mut study = Study::new(&question).map_err(|error| Failure::usage(error.to_string()))?;
    // All sides have the same flags, so the first target has the settings of every target.
    let base = targets[0].base.clone();
    let noted = StartNotes { warnings, adjustments: Vec::new() };
    let plans: Vec<&Plan> = targets.iter().map(|target| &target.base.plan).collect();
    let fleet = plimsoll_fleet::connect_fleet(&plans, settings)?;
    let readings = plimsoll_fleet::remote_reading_sources(targets.iter().map(|target| &target.base), settings)?;
    let recording = Recording::begin(
        question,
        settings,
        noted,
        local,
        &base.injector,
        Some(&path),
        repeat_command::repeat_command_words,
    )?;
    let fitting = LoadFitter { base, limits: ConnectionLimits::limits_of_machine() };
    let before_block = settings.builds.before_block.as_deref();
    let start_patience = Duration::from_nanos(settings.builds.start_ns_max);
    let mut runner = ComparisonRunner::new(targets, fitting, start_patience, before_block, path.clone());
    runner = runner.with_fleet(fleet).with_readings(readings);
    let mut study_loop = StudyLoop::new(&mut runner, recording, StudyScreen::new(live));
    event_stream::attach_if_requested(&mut study_loop, &settings.output);
    study_loop.profiler = profiles.map(|wanted| wanted.into_profiler(&path));
    let outcome = study_loop.run_study(&mut study, &mut |_, _| ());
    // The study takes profiles only after the last block (a block is one load on each side). If the
    // study is taking profiles, every block was therefore measured, even if a profile failed later.
    let is_measured = study.is_profiling(&study_loop.history_so_far());
    let mut measured = study_loop.recording.trials().iter().filter(|trial| trial.tag.purpose != LoadPurpose::Profile);
    let died = measured.next_back().and_then(|trial| match &trial.run.ending {
        Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why))) => Some(why.clone()),
        _ => None,
    });
    let broken = match outcome {
        _ if plimsoll_sys::signal::is_stop_requested() && !is_measured => Some("interrupted".to_owned()),
        Err(failure) => Some(failure.to_string()),
        Ok(()) => died,
    };
    let setup = std::mem::take(&mut study_loop.fitted);
    let nothing = !study_loop.recording.trials().iter().any(|trial| trial.tag.purpose == LoadPurpose::Block);
    let (experiment, note, StudyScreen { mut live, .. }) = study_loop.end(broken.as_deref());
    // If all loads ran but no request succeeded, the comparison has a negative result. A load that
    // could not run is an error.
    let succeeded =
        |trial: &Trial| trial.run.intervals.values().any(|interval| interval.all_routes().ledger.succeeded > 0);
    let silent = !experiment.trials.is_empty() && !experiment.trials.iter().any(succeeded);
    if let (true, Some(reason)) = (nothing && !plimsoll_sys::signal::is_stop_requested(), &broken) {
        if silent {
            live.print_note(&format!("plimsoll: {reason}"));
            return Ok(exit::NEGATIVE_RESULT);
        }
        return Err(Failure::cannot_start(reason.clone()));
    }
    let results = Results::from_experiment(&experiment, Some(&path))?;
    results.print(&settings.output, true);
    setup.iter().for_each(|sentence| live.print_line_unless_quiet(sentence));
    for note in
        note.into_iter().chain(write_page_beside(&path, &experiment)).chain(result_store::remove_oldest_runs(&path))
    {
        live.print_note(&note);
    }
    let (known, worse, broke) = match results.finding() {
        Finding::Prove(found) => {
            let proof = &found.comparison;
            let broke = matches!(proof.stopped_by, ComparisonEnd::Aborted(_));
            (proof.verdict != ProveVerdict::Inconclusive, proof.verdict == ProveVerdict::Worse, broke)
        }
        Finding::Ladder(found) => (found.ladder.blocks > 0, false, broken.is_some()),
        Finding::Run(_) | Finding::Sweep(_) | Finding::Find(_) | Finding::Explain(_) | Finding::Overload(_) => {
            return Err(Failure::cannot_start("the run file contains no comparison"));
        }
    };
    if settings.fail_if.is_some() && worse {
        live.print_note("--fail-if worse: B is worse than A");
        return Ok(exit::NEGATIVE_RESULT);
    }
    Ok(match (plimsoll_sys::signal::is_stop_requested(), broke) {
        (true, _) => exit::INTERRUPTED,
        (false, true) if !silent => exit::USAGE,
        (false, _) if silent => exit::NEGATIVE_RESULT,
        (false, _) if known => exit::SUCCESS,
        (false, _) => OnInconclusive::exit_code(settings.on_inconclusive),
    })
}
