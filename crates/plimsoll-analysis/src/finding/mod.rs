//! What an experiment found ([`conclude`]): the finding of its study, computed from what was
//! recorded, with all that speaks against it. Who has just measured and who reads a file enter here
//! alike.
//!
//! A study is three things: what is next (`study`), what was found (an arm of [`Finding`] here),
//! and how that looks (`plimsoll-report`).
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

/// What an experiment found.
#[derive(Debug, Clone)]
pub enum Finding<'a> {
    /// Of one load.
    Run(Box<RunFinding<'a>>),
    /// Of one load for each of several concurrencies.
    Sweep(SweepFinding<'a>),
    /// Of a search for the load line.
    Find(Box<SearchFinding<'a>>),
    /// Of what holds the load line.
    Explain(Box<ExplainFinding<'a>>),
    /// Of a load past the line.
    Overload(Box<OverloadFinding<'a>>),
    /// Of a comparison.
    Prove(Box<ProveFinding<'a>>),
    /// Of a ladder.
    Ladder(LadderFinding<'a>),
}

/// What an experiment found, as far as it is recorded.
pub fn conclude(experiment: &Experiment) -> Result<Assessment<Finding<'_>>, NoFinding> {
    Ok(match &experiment.asked {
        ExperimentSpec::Run(_) => run::conclude(experiment)?.map(|found| Finding::Run(Box::new(found))),
        ExperimentSpec::Sweep(asked) => sweep::conclude(experiment, asked).map(Finding::Sweep),
        ExperimentSpec::Find(asked) => search::conclude(experiment, asked)?.map(|found| Finding::Find(Box::new(found))),
        ExperimentSpec::Explain(asked) => {
            explain::conclude(experiment, asked)?.map(|found| Finding::Explain(Box::new(found)))
        }
        ExperimentSpec::Overload(asked) => {
            overload::conclude(experiment, asked)?.map(|found| Finding::Overload(Box::new(found)))
        }
        ExperimentSpec::Prove(asked) => {
            blocks::prove(experiment, &asked.blocks)?.map(|found| Finding::Prove(Box::new(found)))
        }
        ExperimentSpec::Ladder(asked) => blocks::ladder(experiment, &asked.blocks)?.map(Finding::Ladder),
    })
}
