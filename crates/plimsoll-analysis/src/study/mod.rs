//! Studies: from what was asked, and what was measured so far, to the next load ([`Study::next`]). The same history always
//! gives the same step, whoever carries the loads out: this machine, a simulated server in a test, several machines.
//!
//! A [`Study`] remembers what earlier loads said, so that none is read twice; it holds nothing that the history does not.
//!
//! Not here: carrying loads out, and what a whole recording says (`find`, `prove`, `levels`).

pub mod blocks;
pub mod climb;
pub mod search;
pub mod sweep;

pub use blocks::Comparison;
pub use search::Search;

use crate::condition::{ConditionWatch, Conditions};
use crate::slo::Slo;
use crate::watch::Watch;
use plimsoll_model::{
    Asked, Curve, Interval, LoadShape, PlanRecord, Purpose, Remark, Run, RunAsked, Stop, SweepAsked, Tag, Trial,
};
use std::ops::ControlFlow;

/// What was measured so far.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// The loads, in order.
    pub trials: &'a [Trial],
    /// What they do not tell.
    pub remarks: &'a [Remark],
    /// Time since the experiment began, ns.
    pub elapsed_ns: u64,
}

/// A load to be carried out.
#[derive(Debug, Clone)]
pub struct TrialPlan {
    /// What it is for.
    pub tag: Tag,
    /// What to do.
    pub plan: PlanRecord,
    /// When to end it early.
    pub until: Until,
}

/// When a load ends before its schedule does; it is told every tick.
#[derive(Debug, Clone)]
pub enum Until {
    /// Never.
    End,
    /// When it has shown what it was to show.
    Shown(Box<Watch>),
    /// When a condition becomes true.
    Condition(Box<ConditionWatch>),
}

impl Until {
    /// Takes in what happened from `start_ns` to `end_ns` of schedule time.
    pub fn push(&mut self, start_ns: u64, end_ns: u64, interval: &Interval) -> ControlFlow<Stop> {
        match self {
            Until::End => ControlFlow::Continue(()),
            Until::Shown(watch) => watch.push(start_ns, interval).map_break(Stop::Shown),
            Until::Condition(watch) => match watch.push(end_ns, interval) {
                Some(crossing) => ControlFlow::Break(Stop::Condition(crossing.to_string())),
                None => ControlFlow::Continue(()),
            },
        }
    }
}

/// What to do next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Carry this out, and ask again.
    Measure(Box<TrialPlan>),
    /// Record that there is no time for this load, and ask again.
    Skip(Tag),
    /// It is over.
    Stop,
    /// It cannot go on.
    Break(Broken),
}

/// Why a study cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A target answers nothing successfully: A, B, ..., and the statuses of its answers.
    NoSuccess(char, Vec<u16>),
    /// A target was not reached.
    NotReached(char),
    /// A load was ended from outside: in words.
    Ended(String),
}

/// Why what was asked cannot be understood: a promise or condition that does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AskedError(String);

/// What was asked, and what the loads so far said.
#[derive(Debug)]
pub enum Study {
    /// One load.
    Run(RunAsked, Option<Conditions>),
    /// One load for each of several concurrencies.
    Sweep(SweepAsked),
    /// A search for the load line.
    Find(Box<Search>),
    /// A comparison, or a ladder.
    Blocks(Box<Comparison>),
}

impl Study {
    /// Nothing is measured yet.
    pub fn new(asked: &Asked) -> Result<Study, AskedError> {
        Ok(match asked {
            Asked::Run(run) => {
                let stop_if = run.stop_if.as_deref().map(Conditions::parse).transpose();
                Study::Run(run.clone(), stop_if.map_err(|error| AskedError(error.to_string()))?)
            }
            Asked::Sweep(sweep) => Study::Sweep(sweep.clone()),
            Asked::Find(find) => {
                let slo = Slo::parse(&find.slo).map_err(|error| AskedError(error.to_string()))?;
                Study::Find(Box::new(Search::new(find, slo)))
            }
            Asked::Prove(_) | Asked::Ladder(_) => match Comparison::new(asked) {
                Some(comparison) => Study::Blocks(Box::new(comparison)),
                None => return Err(AskedError("there are no blocks".to_owned())),
            },
        })
    }

    /// Takes in what came since the last time.
    pub fn read(&mut self, trials: &[Trial]) {
        match self {
            Study::Run(..) | Study::Sweep(_) => {}
            Study::Find(search) => search.read(trials),
            Study::Blocks(comparison) => comparison.read(trials),
        }
    }

    /// What to do after what was measured so far: the history given before, and what came since.
    pub fn next(&mut self, history: &History) -> Step {
        self.read(history.trials);
        match self {
            Study::Run(run, stop_if) => match history.trials {
                [] => {
                    let until = match stop_if {
                        Some(conditions) => {
                            Until::Condition(Box::new(ConditionWatch::new(conditions.clone(), run.plan.load.warmup_ns)))
                        }
                        None => Until::End,
                    };
                    Step::measure(Tag::of(Purpose::Run), run.plan.clone(), until)
                }
                _ => Step::Stop,
            },
            Study::Sweep(asked) => sweep::next(asked, history),
            Study::Find(search) => search.next(history),
            Study::Blocks(comparison) => comparison.next(history),
        }
    }
}

impl Step {
    fn measure(tag: Tag, plan: PlanRecord, until: Until) -> Step {
        Step::Measure(Box::new(TrialPlan { tag, plan, until }))
    }
}

/// `base` with so many users.
pub fn closed(base: &PlanRecord, users: u64) -> PlanRecord {
    let mut plan = base.clone();
    plan.load.shape = LoadShape::Closed { users: Curve::constant(users as f64) };
    plan.load.connections_ready = users as u32;
    plan
}

/// When the last that is recorded of a load happened, ns since the experiment began.
pub fn end_ns(trial: &Trial) -> u64 {
    let Run { intervals, plan, window_ns, .. } = &trial.run;
    let last_ns = intervals.keys().next_back().map_or(0, |last| (u64::from(*last) + 1) * plan.load.interval_ns);
    trial.start_ns + last_ns.max(window_ns.1)
}
