//! Studies: each study computes its next load from its spec and from the loads measured so far
//! ([`Study::next`]). The same history always gives the same next step. So a study does not depend
//! on who makes its loads: this machine, a simulated server in a test, or several machines.
//!
//! Profiles that the user requested are taken under separate loads, which are the last steps of a
//! study ([`profiling`]).
//!
//! A [`Study`] keeps the results of earlier loads, so that each load is read only once. Everything
//! in a [`Study`] can be computed again from the history of recorded loads.
//!
//! Not here: making loads, and the result of a whole recording (`find`, `prove`, `levels`).

pub mod blocks;
pub mod climb;
pub mod explain;
pub mod overload;
pub mod profiling;
pub mod search;
pub mod step;
pub mod sweep;

pub use blocks::ComparisonStudy;
pub use explain::ExplainStudy;
pub use overload::OverloadStudy;
pub use search::LoadLineSearch;
pub use step::{History, NoProfileReason, Step, StopRule, StudyFailure, TrialPlan};

use crate::condition::Conditions;
use crate::condition_watch::ConditionWatch;
use crate::profile::steady_profiling_rps;
use crate::slo::Slo;
use crate::summary::Summary;
use plimsoll_model::{ExperimentSpec, LoadPurpose, LoadTag, RunSpec, SweepSpec, Trial};

/// The reason why no study can be created from a spec. The SLO or a condition cannot be parsed, or
/// a comparison has no blocks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

/// A study: its spec, and the results of the loads measured so far.
#[derive(Debug)]
pub enum Study {
    /// A study of one load. The second value contains the conditions that end the load early;
    /// `None` without such conditions.
    Run(RunSpec, Option<Conditions>),
    /// A study that measures several numbers of users one after another, each number with loads of
    /// its own.
    Sweep(SweepSpec),
    /// A search for the load line.
    Find(Box<LoadLineSearch>),
    /// A search for the load line, then steady loads that show the cause of the load line.
    Explain(Box<ExplainStudy>),
    /// A search for the load line, then one load in steps above the load line.
    Overload(Box<OverloadStudy>),
    /// A comparison of two builds, or a ladder (a series of several endpoints, each with its own
    /// load).
    Blocks(Box<ComparisonStudy>),
}

impl Study {
    /// Creates a study before its first load.
    ///
    /// # Errors
    /// [`SpecError`] if the SLO or a condition cannot be parsed, or if a comparison has no blocks.
    pub fn new(spec: &ExperimentSpec) -> Result<Study, SpecError> {
        Ok(match spec {
            ExperimentSpec::Run(run) => {
                let stop_if = run.stop_if.as_deref().map(Conditions::parse).transpose();
                Study::Run(run.clone(), stop_if.map_err(|error| SpecError(error.to_string()))?)
            }
            ExperimentSpec::Sweep(sweep) => Study::Sweep(sweep.clone()),
            ExperimentSpec::Find(find) => {
                let slo = Slo::parse(&find.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Find(Box::new(LoadLineSearch::new(find, slo)))
            }
            ExperimentSpec::Explain(explain) => {
                let slo = Slo::parse(&explain.search.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Explain(Box::new(ExplainStudy::new(explain, slo)))
            }
            ExperimentSpec::Overload(overload) => {
                let slo = Slo::parse(&overload.search.slo).map_err(|error| SpecError(error.to_string()))?;
                Study::Overload(Box::new(OverloadStudy::new(overload, slo)))
            }
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => match ComparisonStudy::new(spec) {
                Some(comparison) => Study::Blocks(Box::new(comparison)),
                None => return Err(SpecError("the comparison has no blocks (one load on each side)".to_owned())),
            },
        })
    }

    /// Adds the loads that were recorded since the last call.
    pub fn add_new_trials(&mut self, trials: &[Trial]) {
        match self {
            Study::Run(..) | Study::Sweep(_) => {}
            Study::Find(search) => search.add_new_trials(trials),
            Study::Explain(explain) => explain.search.add_new_trials(trials),
            Study::Overload(overload) => overload.search.add_new_trials(trials),
            Study::Blocks(comparison) => comparison.add_new_trials(trials),
        }
    }

    /// Returns the next step. `history` contains the history of the previous call, with the new
    /// loads at its end.
    pub fn next(&mut self, history: &History) -> Step {
        self.add_new_trials(history.trials);
        // Once the study has begun to take profiles, only loads for profiles follow.
        if profiling::profiling_start_ns(history).is_none() {
            match self.next_measurement_step(history) {
                Step::Stop => {}
                step => return step,
            }
        }
        self.next_profile_step(history)
    }

    /// Returns the next step of the measurement, before any profile is taken.
    fn next_measurement_step(&mut self, history: &History) -> Step {
        match self {
            Study::Run(run, stop_if) => match history.trials {
                [] => {
                    let until = match stop_if {
                        Some(conditions) => {
                            StopRule::Condition(Box::new(ConditionWatch::new(conditions.clone(), &run.plan)))
                        }
                        None => StopRule::EndOfSchedule,
                    };
                    Step::measure_trial(LoadTag::for_purpose(LoadPurpose::Run), run.plan.clone(), until)
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

    /// Returns the next step of taking the requested profiles.
    fn next_profile_step(&self, history: &History) -> Step {
        match self {
            Study::Run(run, _) => match (&run.profiles, history.trials.first()) {
                (Some(profiles), Some(trial)) => {
                    let (shape, summary) = (&run.plan.load.shape, Summary::from_run(&trial.run));
                    profiling::next_single_target_step(
                        profiles,
                        &run.plan,
                        steady_profiling_rps(&summary, shape),
                        history,
                    )
                }
                _ => Step::Stop,
            },
            Study::Sweep(_) | Study::Overload(_) => Step::Stop,
            Study::Find(search) => search.next_profile_step(history),
            Study::Explain(explain) => explain.search.next_profile_step(history),
            Study::Blocks(comparison) => comparison.next_profile_step(history),
        }
    }

    /// Returns whether all measurements are complete and the study takes profiles.
    pub fn is_profiling(&self, history: &History) -> bool {
        profiling::profiling_start_ns(history).is_some()
    }

    /// Returns the tag of the next profile that a study of one target has not taken yet. If the
    /// user stops the study now, the returned profile is missing from the results. Returns `None`
    /// if no profile is missing.
    pub fn next_unprofiled_tag(&self, history: &History) -> Option<LoadTag> {
        let takes_profiles = match self {
            Study::Run(run, _) => run.profiles.is_some() && !history.trials.is_empty(),
            Study::Find(search) => search.profiles.is_some(),
            Study::Explain(explain) => explain.search.profiles.is_some(),
            Study::Sweep(_) | Study::Overload(_) | Study::Blocks(_) => false,
        };
        profiling::next_unprofiled_tag(history).filter(|_| takes_profiles)
    }
}
