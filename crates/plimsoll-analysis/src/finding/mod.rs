//! The finding of an experiment ([`conclude`]): computed from its record, with all evidence against
//! the finding. Both a study that has just ended and a run file that is read enter here.
//!
//! A study has three parts: the next load (`study`), its finding (an arm of [`Finding`]), and the
//! report (`plimsoll-report`).
//!
//! Not here: how a finding looks.

pub mod blocks;
pub mod explain;
pub mod overload;
mod recording;
pub mod run;
pub mod search;
pub mod sweep;

pub use blocks::{LadderFinding, MeasuredBlocks, ProveFinding};
pub use explain::{Bottleneck, ExplainFinding, case_of, held_by};
pub use overload::OverloadFinding;
pub use recording::NoFinding;
pub use run::RunFinding;
pub use search::{InstanceEstimate, PlannedLoad, SearchFinding};
pub use sweep::{SweepFigures, SweepFinding, SweepLevel};

use crate::doubts::Assessment;
use plimsoll_model::{Experiment, ExperimentSpec};

/// The finding of an experiment.
#[derive(Debug, Clone)]
pub enum Finding<'a> {
    /// The finding of one load.
    Run(Box<RunFinding<'a>>),
    /// The finding of a sweep: one load for each of several concurrencies.
    Sweep(SweepFinding<'a>),
    /// The finding of a search for the load line.
    Find(Box<SearchFinding<'a>>),
    /// The finding of an explanation: the limit of the load line.
    Explain(Box<ExplainFinding<'a>>),
    /// The finding of a load above the line.
    Overload(Box<OverloadFinding<'a>>),
    /// The finding of a comparison.
    Prove(Box<ProveFinding<'a>>),
    /// The finding of a ladder.
    Ladder(LadderFinding<'a>),
}

/// Computes the finding of an experiment from the recorded part.
pub fn conclude(experiment: &Experiment) -> Result<Assessment<Finding<'_>>, NoFinding> {
    Ok(match &experiment.spec {
        ExperimentSpec::Run(_) => run::conclude(experiment)?.map(|found| Finding::Run(Box::new(found))),
        ExperimentSpec::Sweep(spec) => sweep::conclude(experiment, spec).map(Finding::Sweep),
        ExperimentSpec::Find(spec) => search::conclude(experiment, spec)?.map(|found| Finding::Find(Box::new(found))),
        ExperimentSpec::Explain(spec) => {
            explain::conclude(experiment, spec)?.map(|found| Finding::Explain(Box::new(found)))
        }
        ExperimentSpec::Overload(spec) => {
            overload::conclude(experiment, spec)?.map(|found| Finding::Overload(Box::new(found)))
        }
        ExperimentSpec::Prove(spec) => {
            blocks::prove(experiment, &spec.blocks)?.map(|found| Finding::Prove(Box::new(found)))
        }
        ExperimentSpec::Ladder(spec) => blocks::ladder(experiment, &spec.blocks)?.map(Finding::Ladder),
    })
}
