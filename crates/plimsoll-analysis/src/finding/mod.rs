//! The findings of experiments. [`compute_finding`] computes a finding from a record, with all
//! evidence against the finding. The record comes from a study that has just ended, or from a run
//! file.
//!
//! The code of each kind of study has three parts: the choice of the next load (`study`), the
//! finding ([`Finding`]), and the report (`plimsoll-report`).
//!
//! Not here: the display of a finding (`plimsoll-report`).

pub mod blocks;
pub mod explain;
pub mod overload;
mod recording;
pub mod run;
pub mod search;
pub mod sweep;

pub use blocks::{LadderFinding, MeasuredBlocks, ProveFinding};
pub use explain::{Bottleneck, ExplainFinding, bottleneck_of_search, recorded_facts_and_outcomes};
pub use overload::OverloadFinding;
pub use recording::NoFinding;
pub use run::RunFinding;
pub use search::{HeadroomLoadResult, InstanceEstimate, SearchFinding};
pub use sweep::{SweepFigures, SweepFinding, SweepLevel};

use crate::doubts::Assessment;
use plimsoll_model::{Experiment, ExperimentSpec};

/// The finding of an experiment; one variant for each kind of study.
#[derive(Debug, Clone)]
pub enum Finding<'a> {
    /// The finding of one load.
    Run(Box<RunFinding<'a>>),
    /// The finding of a sweep: the figures at each of several numbers of users.
    Sweep(SweepFinding<'a>),
    /// The finding of a search: the load line.
    Find(Box<SearchFinding<'a>>),
    /// The finding of an explanation: the bottleneck that limits the load line.
    Explain(Box<ExplainFinding<'a>>),
    /// The finding of an overload study: the behaviour of the server above its load line.
    Overload(Box<OverloadFinding<'a>>),
    /// The finding of a comparison of arms, such as two builds.
    Prove(Box<ProveFinding<'a>>),
    /// The finding of a ladder: its arms (the compared targets) do more and more work, and each arm
    /// is compared with the arm before.
    Ladder(LadderFinding<'a>),
}

/// Computes the finding of an experiment from its record, even if the record was cut off.
pub fn compute_finding(experiment: &Experiment) -> Result<Assessment<Finding<'_>>, NoFinding> {
    Ok(match &experiment.spec {
        ExperimentSpec::Run(_) => run::run_finding(experiment)?.map(|found| Finding::Run(Box::new(found))),
        ExperimentSpec::Sweep(spec) => sweep::sweep_finding(experiment, spec).map(Finding::Sweep),
        ExperimentSpec::Find(spec) => {
            search::search_finding(experiment, spec)?.map(|found| Finding::Find(Box::new(found)))
        }
        ExperimentSpec::Explain(spec) => {
            explain::explain_finding(experiment, spec)?.map(|found| Finding::Explain(Box::new(found)))
        }
        ExperimentSpec::Overload(spec) => {
            overload::overload_finding(experiment, spec)?.map(|found| Finding::Overload(Box::new(found)))
        }
        ExperimentSpec::Prove(spec) => {
            blocks::prove_finding(experiment, &spec.blocks)?.map(|found| Finding::Prove(Box::new(found)))
        }
        ExperimentSpec::Ladder(spec) => blocks::ladder_finding(experiment, &spec.blocks)?.map(Finding::Ladder),
    })
}
