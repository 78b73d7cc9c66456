//! `plimsoll prove`: whether a change helped, by blocks of paired loads; with `--ladder`, what each step costs.

mod asked;
mod profiles;

use super::{preflight, print_json, print_report, report};
use crate::args_prove::ProveArgs;
use crate::capacity::Limits;
use crate::conduct::Conduct;
use crate::failure::{Failure, exit};
use crate::kept;
use crate::live::Live;
use crate::recording::Recording;
use crate::runner::Builds;
use crate::runner::machine::Fitting;
use asked::Asked;
use plimsoll_analysis::Study;
use plimsoll_analysis::prove::{self, Block, Ladder, Proof, Rules, Standing, StoppedBy, Verdict, arm_name};
use plimsoll_model::{BlocksAsked, Ending, Experiment, Noted, Purpose, Stop, Trial};
use plimsoll_report::chart::{ComparedBlocks, LadderBlocks, Theme};
use plimsoll_report::junit::{Case, CaseOutcome};
use plimsoll_report::prove_profiles::{self, ProveProfiles};
use plimsoll_report::{
    Around, ProveContext, Report, ladder_page, ladder_report, ladder_svg, prove_answer, prove_json, prove_page,
    prove_report, prove_svg,
};
use std::path::Path;

/// What a recorded comparison says.
enum Outcome {
    Proof(Box<Proof>),
    Ladder(Ladder),
}

/// Compares, reports, and says with which code to end.
pub fn run(args: &ProveArgs) -> Result<u8, Failure> {
    let asked = Asked::of(args)?;
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
    let outcome = show_outcome(&experiment, Some(&path), args.out.json, broken.clone())?;
    setup.iter().for_each(|sentence| live.line(sentence));
    for note in note.into_iter().chain(report::write_beside(&path, &experiment)).chain(kept::tidy(&path)) {
        live.note(&note);
    }
    let (verdict, broke) = match &outcome {
        Outcome::Proof(proof) => (proof.verdict, matches!(proof.stopped_by, StoppedBy::Broken(_))),
        Outcome::Ladder(_) => (Verdict::Inconclusive, broken.is_some()),
    };
    if asked.fail_if_worse && verdict == Verdict::Worse {
        live.note("--fail-if worse: it is");
        return Ok(exit::CROSSED);
    }
    let counted = match &outcome {
        Outcome::Proof(proof) => proof.blocks,
        Outcome::Ladder(ladder) => ladder.blocks,
    };
    Ok(match (plimsoll_sys::signal::interrupted(), broke) {
        (true, _) => exit::INTERRUPTED,
        (false, true) if !silent => exit::USAGE,
        (false, false) if counted > 0 => exit::DONE,
        (false, _) => exit::CROSSED,
    })
}

/// The outcome of a recorded comparison, computed from what was measured. `broken`: why it broke off, where the
/// recording does not tell.
fn concluded(experiment: &Experiment, broken: Option<String>) -> Result<(Asking<'_>, Vec<Block>, Outcome), Failure> {
    let asking = Asking::of(experiment)?;
    let arms = asking.blocks.arms.len();
    let (blocks, found) = prove::blocks(&experiment.trials, arms, asking.blocks.count_disturbed);
    let cut = || experiment.elapsed_ns.is_none().then(|| "the recording was cut off".to_owned());
    let told = || experiment.broken().map(str::to_owned);
    let broken = found.or(broken).or_else(told).or_else(cut);
    let Some(settings) = asking.rules.clone() else {
        let ladder = prove::ladder(&blocks, arms, broken.as_deref());
        return Ok((asking, blocks, Outcome::Ladder(ladder)));
    };
    let stopped_by = match broken {
        Some(reason) => StoppedBy::Broken(reason),
        None => prove::stop(&settings, &blocks).unwrap_or(StoppedBy::Budget),
    };
    let mut proof = Box::new(prove::conclude(&settings, &blocks, stopped_by));
    if proof.blocks_more.is_some() {
        proof.budget_enough_ns = prove::budget_enough_ns(&settings, &blocks, &experiment.trials);
    }
    Ok((asking, blocks, Outcome::Proof(proof)))
}

/// What was asked of a recorded comparison or ladder.
struct Asking<'a> {
    blocks: &'a BlocksAsked,
    /// The names of the arms.
    names: Vec<String>,
    /// By what a comparison is decided; `None`: a ladder.
    rules: Option<Rules>,
}

impl Asking<'_> {
    fn of(experiment: &Experiment) -> Result<Asking<'_>, Failure> {
        let none = || Failure::start("the run file holds no comparison");
        let blocks = experiment.asked.blocks().ok_or_else(none)?;
        let names = blocks.arms.iter().map(|arm| arm.name.clone()).collect();
        Ok(Asking { blocks, names, rules: Rules::of(&experiment.asked) })
    }

    fn narrowing(&self, blocks: &[Block]) -> Vec<Standing> {
        self.rules.as_ref().map(|rules| prove::narrowing(rules, blocks)).unwrap_or_default()
    }
}

/// What stands around the figures of a comparison.
fn context<'a>(experiment: &'a Experiment, asking: &'a Asking<'a>) -> ProveContext<'a> {
    ProveContext {
        experiment,
        plan: &asking.blocks.arms[0].plan,
        injectors: &experiment.environment.injectors,
        sides: &asking.names,
        loads: prove::reading::block_plans(&experiment.trials, asking.names.len()),
        warnings: &experiment.noted.warnings,
    }
}

/// `path`: where the run file is, with profiles beside it; `broken`: why it broke off, if that is known.
fn show_outcome(
    experiment: &Experiment,
    path: Option<&Path>,
    as_json: bool,
    broken: Option<String>,
) -> Result<Outcome, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, broken)?;
    let context = context(experiment, &asking);
    let profiles = profiles::read_back(experiment, path);
    if as_json {
        print_json(&document_of(&context, &asking, &blocks, &outcome, profiles.as_ref())?);
    } else {
        print_report(&report_of(&context, &outcome, profiles.as_ref()));
    }
    Ok(outcome)
}

fn report_of(context: &ProveContext, outcome: &Outcome, profiles: Option<&ProveProfiles>) -> Report {
    let mut report = match outcome {
        Outcome::Proof(proof) => prove_report(context, proof),
        Outcome::Ladder(ladder) => ladder_report(context, ladder),
    };
    if let Some(profiles) = profiles {
        report.heading("What a request costs by function").append(prove_profiles::report(profiles));
    }
    report
}

fn document_of(
    context: &ProveContext,
    asking: &Asking,
    blocks: &[Block],
    outcome: &Outcome,
    profiles: Option<&ProveProfiles>,
) -> Result<serde_json::Value, Failure> {
    let mut document = match outcome {
        Outcome::Proof(proof) => {
            let narrowing = asking.narrowing(blocks);
            prove_json::proof(context, proof, blocks, &narrowing)
        }
        Outcome::Ladder(ladder) => prove_json::ladder(context, ladder, blocks),
    };
    document["profiles"] = profiles.map(prove_profiles::document).into();
    Ok(document)
}

/// Prints the result of a comparison recorded at `path`.
pub fn show(experiment: &Experiment, path: &Path) -> Result<(), Failure> {
    show_outcome(experiment, Some(path), false, None).map(|_| ())
}

/// The page of a comparison recorded at `path`.
pub fn page(experiment: &Experiment, path: &Path, mut around: Around) -> Result<Report, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, None)?;
    let context = context(experiment, &asking);
    if let Some(profiles) = profiles::read_back(experiment, Some(path)) {
        around.extra.heading("What a request costs by function").append(prove_profiles::report(&profiles));
    }
    Ok(match &outcome {
        Outcome::Proof(proof) => {
            let narrowing = asking.narrowing(&blocks);
            prove_page(&context, ComparedBlocks { proof, blocks: &blocks, narrowing: &narrowing }, &around)
        }
        Outcome::Ladder(ladder) => {
            ladder_page(&context, LadderBlocks { ladder, blocks: &blocks, sides: &asking.names }, &around)
        }
    })
}

/// The picture of a recorded comparison.
pub fn picture(experiment: &Experiment, theme: Theme) -> Result<String, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, None)?;
    let context = context(experiment, &asking);
    Ok(match &outcome {
        Outcome::Proof(proof) => {
            let narrowing = asking.narrowing(&blocks);
            prove_svg(&context, ComparedBlocks { proof, blocks: &blocks, narrowing: &narrowing }, theme)
        }
        Outcome::Ladder(ladder) => {
            ladder_svg(&context, LadderBlocks { ladder, blocks: &blocks, sides: &asking.names }, theme)
        }
    })
}

/// The verdict as a test case: worse has failed, inconclusive says nothing.
pub fn case(experiment: &Experiment) -> Result<Case, Failure> {
    let (_, _, outcome) = concluded(experiment, None)?;
    let outcome = match outcome {
        Outcome::Ladder(_) => CaseOutcome::Skipped("a ladder has no verdict".into()),
        Outcome::Proof(proof) => match proof.verdict {
            Verdict::Worse => CaseOutcome::Failed(prove_answer(&proof)),
            Verdict::Inconclusive => CaseOutcome::Skipped(prove_answer(&proof)),
            Verdict::Better | Verdict::Same | Verdict::Small => CaseOutcome::Passed,
        },
    };
    let time_s = experiment.elapsed_ns.unwrap_or(0) as f64 / 1e9;
    Ok(Case { name: "B is not worse than A".into(), time_s, outcome })
}

/// The JSON document of a comparison recorded at `path`.
pub fn document(experiment: &Experiment, path: &Path) -> Result<serde_json::Value, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, None)?;
    let profiles = profiles::read_back(experiment, Some(path));
    document_of(&context(experiment, &asking), &asking, &blocks, &outcome, profiles.as_ref())
}
