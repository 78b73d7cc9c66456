//! The findings of comparisons and of ladders. Comparisons and ladders measure blocks: a block has
//! one load for each arm (each compared target), in random order. A finding contains the measured
//! blocks, and the result of all blocks together.

use super::recording::NoFinding;
use crate::doubts::{Assessment, Doubts};
use crate::interference::Interference;
use crate::prove::{self, ComparisonBlock, ComparisonEnd, ComparisonResult, ComparisonRules, InterimEstimate, Ladder};
use plimsoll_model::{BlocksSpec, Experiment, LoadPurpose, PlanRecord};

/// The measured blocks of a comparison or a ladder. A block has one load for each arm (each
/// compared target).
#[derive(Debug, Clone)]
pub struct MeasuredBlocks<'a> {
    /// The names of the arms (the compared targets), A first: URLs or commands.
    pub arms: Vec<String>,
    /// The plan of arm A. The plans of all arms are the same, except for the target and the load.
    pub plan: &'a PlanRecord,
    /// The plan with which each arm was loaded in the blocks, arm A first. The list is empty if no
    /// load of a block was measured.
    pub arm_plans: Vec<&'a PlanRecord>,
    /// The complete blocks: a block counts only if the load of every arm was measured.
    pub blocks: Vec<ComparisonBlock>,
    /// The CPU that other processes used during the loads of all complete blocks.
    pub interference: Interference,
    /// Length of the measurement, ns, without the CPU profiles that were taken afterwards; `None`
    /// if the recording was cut off.
    pub elapsed_ns: Option<u64>,
}

/// The finding of a comparison of arms, such as two builds of a server.
#[derive(Debug, Clone)]
pub struct ProveFinding<'a> {
    /// The measured blocks from which the result is computed.
    pub blocks: MeasuredBlocks<'a>,
    /// The verdict of the comparison, with its evidence.
    pub comparison: ComparisonResult,
    /// The estimate and its interval after increasing numbers of blocks, at most 40 estimates,
    /// which show how the interval became narrower.
    pub interim_estimates: Vec<InterimEstimate>,
}

/// The finding of a ladder: its arms (rungs) do more and more work, and each rung is compared with
/// the rung before.
#[derive(Debug, Clone)]
pub struct LadderFinding<'a> {
    /// The measured blocks from which the result is computed.
    pub blocks: MeasuredBlocks<'a>,
    /// The throughput of each rung (each target of the ladder), compared with the rung before.
    pub ladder: Ladder,
}

pub(super) fn prove_finding<'a>(
    experiment: &'a Experiment,
    spec: &'a BlocksSpec,
) -> Result<Assessment<ProveFinding<'a>>, NoFinding> {
    let (measured, broken) = MeasuredBlocks::from_experiment(experiment, spec)?;
    let rules = ComparisonRules::from_spec(&experiment.spec).ok_or(NoFinding::NoArms)?;
    let blocks = &measured.blocks;
    let stopped_by = match broken {
        Some(reason) => ComparisonEnd::Aborted(reason),
        None => prove::stop_reason(&rules, blocks).unwrap_or(ComparisonEnd::Budget),
    };
    let mut proof = prove::compute_comparison_result(&rules, blocks, stopped_by);
    if proof.further_blocks.is_some() {
        proof.sufficient_budget_ns = prove::sufficient_budget_ns(&rules, blocks, &experiment.trials);
    }
    let doubts =
        Doubts::from_warnings(&experiment.start_notes.warnings).into_iter().chain(proof.doubts.clone()).collect();
    let narrowing = prove::interim_estimates(&rules, blocks);
    Ok(Assessment::new(doubts, ProveFinding { blocks: measured, comparison: proof, interim_estimates: narrowing }))
}

pub(super) fn ladder_finding<'a>(
    experiment: &'a Experiment,
    spec: &'a BlocksSpec,
) -> Result<Assessment<LadderFinding<'a>>, NoFinding> {
    let (measured, broken) = MeasuredBlocks::from_experiment(experiment, spec)?;
    let ladder = prove::compute_ladder(&measured.blocks, measured.arms.len(), broken.as_deref());
    let doubts =
        Doubts::from_warnings(&experiment.start_notes.warnings).into_iter().chain(ladder.doubts.clone()).collect();
    Ok(Assessment::new(doubts, LadderFinding { blocks: measured, ladder }))
}

impl<'a> MeasuredBlocks<'a> {
    /// Reads the measured blocks (rounds of one load for each arm) from a record. Also returns the
    /// reason why the measurement ended early, if it did.
    fn from_experiment(
        experiment: &'a Experiment,
        spec: &'a BlocksSpec,
    ) -> Result<(MeasuredBlocks<'a>, Option<String>), NoFinding> {
        let plan = &spec.arms.first().ok_or(NoFinding::NoArms)?.plan;
        let count = spec.arms.len();
        let (blocks, found) = prove::blocks_from_trials(&experiment.trials, count);
        let broken_off = || experiment.abort_reason().map(str::to_owned);
        let cut = || experiment.elapsed_ns.is_none().then(|| "the recording in the run file was cut off".to_owned());
        let readings = blocks.iter().flat_map(|block| &block.arm_loads);
        let measured = MeasuredBlocks {
            arms: spec.arms.iter().map(|arm| arm.name.clone()).collect(),
            plan,
            arm_plans: prove::comparison_blocks::arm_plans(&experiment.trials, count),
            interference: Interference::combine(readings.map(|reading| &reading.interference), "loads"),
            blocks,
            elapsed_ns: measurement_length_ns(experiment),
        };
        Ok((measured, found.or_else(broken_off).or_else(cut)))
    }
}

/// Returns the length of the measurement, ns, without the CPU profiles that were taken afterwards;
/// `None` if the recording was cut off.
fn measurement_length_ns(experiment: &Experiment) -> Option<u64> {
    let whole_ns = experiment.elapsed_ns?;
    if !experiment.trials.iter().any(|trial| trial.tag.purpose == LoadPurpose::Profile) {
        return Some(whole_ns);
    }
    let ends = experiment.trials.iter().filter(|trial| trial.tag.purpose != LoadPurpose::Profile);
    ends.map(|trial| trial.start_ns + trial.run.window_ns.1).max()
}
