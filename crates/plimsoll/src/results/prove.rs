//! What a run file of a comparison or a ladder holds.

use super::prove_profiles::read_back as prove_profiles_read_back;
use super::{print_json, print_report};
use crate::failure::Failure;
use plimsoll_analysis::prove::{self, Block, ComparisonEnd, Ladder, Proof, ProveVerdict, Rules, Standing};
use plimsoll_model::{BlocksAsked, Experiment};
use plimsoll_report::chart::{ComparedBlocks, LadderBlocks, Theme};
use plimsoll_report::junit::{Case, CaseOutcome};
use plimsoll_report::prove_profiles::{self, ProveProfiles};
use plimsoll_report::{
    Around, ProveContext, Report, ladder_page, ladder_report, ladder_svg, prove_answer, prove_json, prove_page,
    prove_report, prove_svg,
};
use std::path::Path;

/// What a recorded comparison says.
pub enum Conclusion {
    Proof(Box<Proof>),
    Ladder(Ladder),
}

/// The outcome of a recorded comparison, computed from what was measured. `broken`: why it broke off, where the
/// recording does not tell.
fn concluded(experiment: &Experiment, broken: Option<String>) -> Result<(Asking<'_>, Vec<Block>, Conclusion), Failure> {
    let asking = Asking::of(experiment)?;
    let arms = asking.blocks.arms.len();
    let (blocks, found) = prove::blocks(&experiment.trials, arms, asking.blocks.count_disturbed);
    let cut = || experiment.elapsed_ns.is_none().then(|| "the recording was cut off".to_owned());
    let told = || experiment.broken().map(str::to_owned);
    let broken = found.or(broken).or_else(told).or_else(cut);
    let Some(settings) = asking.rules.clone() else {
        let ladder = prove::ladder(&blocks, arms, broken.as_deref());
        return Ok((asking, blocks, Conclusion::Ladder(ladder)));
    };
    let stopped_by = match broken {
        Some(reason) => ComparisonEnd::Broken(reason),
        None => prove::stop(&settings, &blocks).unwrap_or(ComparisonEnd::Budget),
    };
    let mut proof = Box::new(prove::conclude(&settings, &blocks, stopped_by));
    if proof.blocks_more.is_some() {
        proof.budget_enough_ns = prove::budget_enough_ns(&settings, &blocks, &experiment.trials);
    }
    Ok((asking, blocks, Conclusion::Proof(proof)))
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

/// Prints a comparison and gives its outcome. `path`: where the run file is, with profiles beside it; `broken`: why it broke
/// off, if that is known.
pub fn show_outcome(
    experiment: &Experiment,
    path: Option<&Path>,
    as_json: bool,
    broken: Option<String>,
) -> Result<Conclusion, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, broken)?;
    let context = context(experiment, &asking);
    let profiles = prove_profiles_read_back(experiment, path);
    if as_json {
        print_json(&document_of(&context, &asking, &blocks, &outcome, profiles.as_ref())?);
    } else {
        print_report(&report_of(&context, &outcome, profiles.as_ref()));
    }
    Ok(outcome)
}

fn report_of(context: &ProveContext, outcome: &Conclusion, profiles: Option<&ProveProfiles>) -> Report {
    let mut report = match outcome {
        Conclusion::Proof(proof) => prove_report(context, proof),
        Conclusion::Ladder(ladder) => ladder_report(context, ladder),
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
    outcome: &Conclusion,
    profiles: Option<&ProveProfiles>,
) -> Result<serde_json::Value, Failure> {
    let mut document = match outcome {
        Conclusion::Proof(proof) => {
            let narrowing = asking.narrowing(blocks);
            prove_json::proof(context, proof, blocks, &narrowing)
        }
        Conclusion::Ladder(ladder) => prove_json::ladder(context, ladder, blocks),
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
    if let Some(profiles) = prove_profiles_read_back(experiment, Some(path)) {
        around.extra.heading("What a request costs by function").append(prove_profiles::report(&profiles));
    }
    Ok(match &outcome {
        Conclusion::Proof(proof) => {
            let narrowing = asking.narrowing(&blocks);
            prove_page(&context, ComparedBlocks { proof, blocks: &blocks, narrowing: &narrowing }, &around)
        }
        Conclusion::Ladder(ladder) => {
            ladder_page(&context, LadderBlocks { ladder, blocks: &blocks, sides: &asking.names }, &around)
        }
    })
}

/// The picture of a recorded comparison.
pub fn picture(experiment: &Experiment, theme: Theme) -> Result<String, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, None)?;
    let context = context(experiment, &asking);
    Ok(match &outcome {
        Conclusion::Proof(proof) => {
            let narrowing = asking.narrowing(&blocks);
            prove_svg(&context, ComparedBlocks { proof, blocks: &blocks, narrowing: &narrowing }, theme)
        }
        Conclusion::Ladder(ladder) => {
            ladder_svg(&context, LadderBlocks { ladder, blocks: &blocks, sides: &asking.names }, theme)
        }
    })
}

/// The verdict as a test case: worse has failed, inconclusive says nothing.
pub fn case(experiment: &Experiment) -> Result<Case, Failure> {
    let (_, _, outcome) = concluded(experiment, None)?;
    let outcome = match outcome {
        Conclusion::Ladder(_) => CaseOutcome::Skipped("a ladder has no verdict".into()),
        Conclusion::Proof(proof) => match proof.verdict {
            ProveVerdict::Worse => CaseOutcome::Failed(prove_answer(&proof)),
            ProveVerdict::Inconclusive => CaseOutcome::Skipped(prove_answer(&proof)),
            ProveVerdict::Better | ProveVerdict::Same | ProveVerdict::Small => CaseOutcome::Passed,
        },
    };
    let time_s = experiment.elapsed_ns.unwrap_or(0) as f64 / 1e9;
    Ok(Case { name: "B is not worse than A".into(), time_s, outcome })
}

/// The JSON document of a comparison recorded at `path`.
pub fn document(experiment: &Experiment, path: &Path) -> Result<serde_json::Value, Failure> {
    let (asking, blocks, outcome) = concluded(experiment, None)?;
    let profiles = prove_profiles_read_back(experiment, Some(path));
    document_of(&context(experiment, &asking), &asking, &blocks, &outcome, profiles.as_ref())
}
