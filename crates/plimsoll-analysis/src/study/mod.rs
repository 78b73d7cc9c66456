//! Studies: a function from the question and the measurements so far to the next load
//! ([`Study::next`]). Equal histories give equal steps, whatever the runner: this machine, a
//! simulated server in a test, or several machines.
//!
//! Requested profiles are taken in loads of their own, the last steps of any study ([`profiling`]).
//!
//! A [`Study`] caches results of earlier loads; it contains nothing that the history does not.
//!
//! Not here: the execution of loads, and the meaning of a whole recording (`find`, `prove`,
//! `levels`).

pub mod blocks;
pub mod climb;
pub mod explain;
pub mod overload;
pub mod profiling;
pub mod search;
pub mod step;
pub mod sweep;

pub use blocks::Comparison;
pub use explain::Explain;
pub use overload::Overload;
pub use search::Search;
pub use step::{History, NoProfile, Step, StopRule, StudyFailure, TrialPlan};

use crate::condition::Conditions;
use crate::condition_watch::ConditionWatch;
use crate::profile::steady_rps;
use crate::slo::Slo;
use crate::summary::Summary;
use plimsoll_model::{ExperimentSpec, Purpose, RunSpec, SweepSpec, Tag, Trial};

/// Why a spec cannot be read: an SLO or condition that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

/// The spec, and the results of the loads so far.
#[derive(Debug)]
pub enum Study {
    /// One load.
    Run(RunSpec, Option<Conditions>),
    /// One load for each of several concurrencies.
    Sweep(SweepSpec),
    /// A search for the load line.
    Find(Box<Search>),
    /// A search, and steady loads after it.
    Explain(Box<Explain>),
    /// A search, and a load past the line.
    Overload(Box<Overload>),
    /// A comparison, or a ladder.
    Blocks(Box<Comparison>),
}

impl Study {
    /// Nothing is measured yet.
    pub fn new(spec: &ExperimentSpec) -> Result<Study, SpecError> {
        Ok(match spec {
            ExperimentSpec::Run(run) => {
                let stop_if = run.stop_if.as_deref().map(Conditions::parse).transpose();
                Study::Run(run.clone(), stop_if.map_err(|error| SpecError(error.to_string()))?)
            }
            ExperimentSpec::Sweep(sweep) => Study::Sweep(sweep.clone()),
            ExperimentSpec::Find(find) => {
                let slo = Slo::parse(&find.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Find(Box::new(Search::new(find, slo)))
            }
            ExperimentSpec::Explain(explain) => {
                let slo = Slo::parse(&explain.search.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Explain(Box::new(Explain::new(explain, slo)))
            }
            ExperimentSpec::Overload(overload) => {
                let slo = Slo::parse(&overload.search.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Overload(Box::new(Overload::new(overload, slo)))
            }
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => match Comparison::new(spec) {
                Some(comparison) => Study::Blocks(Box::new(comparison)),
                None => return Err(SpecError("there are no blocks".to_owned())),
            },
        })
    }

    /// Takes in what came since the last time.
    pub fn read(&mut self, trials: &[Trial]) {
        match self {
            Study::Run(..) | Study::Sweep(_) => {}
            Study::Find(search) => search.read(trials),
            Study::Explain(explain) => explain.search.read(trials),
            Study::Overload(overload) => overload.search.read(trials),
            Study::Blocks(comparison) => comparison.read(trials),
        }
    }

    /// The next step after these measurements: the history of the last call, and new trials.
    pub fn next(&mut self, history: &History) -> Step {
        self.read(history.trials);
        // Nothing is measured again once profiles are being taken.
        if profiling::began_ns(history).is_none() {
            match self.next_measured(history) {
                Step::Stop => {}
                step => return step,
            }
        }
        self.next_profiled(history)
    }

    /// The next step of the measurement itself.
    fn next_measured(&mut self, history: &History) -> Step {
        match self {
            Study::Run(run, stop_if) => match history.trials {
                [] => {
                    let until = match stop_if {
                        Some(conditions) => {
                            StopRule::Condition(Box::new(ConditionWatch::new(conditions.clone(), &run.plan)))
                        }
                        None => StopRule::End,
                    };
                    Step::measure(Tag::for_purpose(Purpose::Run), run.plan.clone(), until)
                }
                _ => Step::Stop,
            },
            Study::Sweep(spec) => sweep::next(spec, history),
            Study::Find(search) => search.next(history),
            Study::Explain(explain) => explain.next(history),
            Study::Overload(overload) => overload.next(history),
            Study::Blocks(comparison) => comparison.next(history),
        }
    }

    /// The next step of the requested profiles.
    fn next_profiled(&self, history: &History) -> Step {
        match self {
            Study::Run(run, _) => match (&run.profiles, history.trials.first()) {
                (Some(profiles), Some(trial)) => {
                    let (shape, summary) = (&run.plan.load.shape, Summary::from_run(&trial.run));
                    profiling::levels(profiles, &run.plan, shape.arrivals(), steady_rps(&summary, shape), history)
                }
                _ => Step::Stop,
            },
            Study::Sweep(_) | Study::Overload(_) => Step::Stop,
            Study::Find(search) => search.next_profiled(history),
            Study::Explain(explain) => explain.search.next_profiled(history),
            Study::Blocks(comparison) => comparison.next_profiled(history),
        }
    }

    /// Whether profiles are being taken: all that the study measures is measured.
    pub fn is_profiling(&self, history: &History) -> bool {
        profiling::began_ns(history).is_some()
    }

    /// The profile of one target that was to be taken next, where the user ends a study before.
    pub fn left_unprofiled(&self, history: &History) -> Option<Tag> {
        let takes_profiles = match self {
            Study::Run(run, _) => run.profiles.is_some() && !history.trials.is_empty(),
            Study::Find(search) => search.profiles.is_some(),
            Study::Explain(explain) => explain.search.profiles.is_some(),
            Study::Sweep(_) | Study::Overload(_) | Study::Blocks(_) => false,
        };
        profiling::level_left(history).filter(|_| takes_profiles)
    }
}
