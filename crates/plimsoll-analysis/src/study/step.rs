//! The input of a study ([`History`]) and its output ([`Step`]).

use crate::condition_watch::ConditionWatch;
use crate::watch::Watch;
use plimsoll_model::{Curve, Interval, LoadShape, PlanRecord, Remark, Run, Stop, Tag, Trial};
use std::ops::ControlFlow;

/// The measurements so far.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// The loads, in order.
    pub trials: &'a [Trial],
    /// The remarks beside them.
    pub remarks: &'a [Remark],
    /// Time since the experiment began, ns.
    pub elapsed_ns: u64,
}

/// A load to be carried out.
#[derive(Debug, Clone)]
pub struct TrialPlan {
    /// The purpose of the load.
    pub tag: Tag,
    /// The plan of the load.
    pub plan: PlanRecord,
    /// When to end it early.
    pub until: StopRule,
}

/// The rule that ends a load before its schedule does; it reads every tick.
#[derive(Debug, Clone)]
pub enum StopRule {
    /// Never.
    End,
    /// When its verdict is certain.
    Shown(Box<Watch>),
    /// When a condition becomes true.
    Condition(Box<ConditionWatch>),
}

impl StopRule {
    /// Takes in what happened from `start_ns` to `end_ns` of schedule time.
    pub fn push(&mut self, start_ns: u64, end_ns: u64, interval: &Interval) -> ControlFlow<Stop> {
        match self {
            StopRule::End => ControlFlow::Continue(()),
            StopRule::Shown(watch) => watch.push(start_ns, interval).map_break(Stop::Shown),
            StopRule::Condition(watch) => match watch.push(end_ns, interval) {
                Some(crossing) => ControlFlow::Break(Stop::Condition(crossing.to_string())),
                None => ControlFlow::Continue(()),
            },
        }
    }
}

/// The next step.
#[derive(Debug, Clone)]
pub enum Step {
    /// Carry this out, and ask again.
    Measure(Box<TrialPlan>),
    /// Record that there is no time for this load, and ask again.
    Skip(Tag),
    /// Record that no profile with this tag is taken, and why, and ask again.
    Unprofiled(Tag, NoProfile),
    /// It is over.
    Stop,
    /// It cannot go on.
    Break(StudyFailure),
}

/// Why there is no load to take profiles under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProfile {
    /// The target holds none.
    NothingHeld,
    /// There is none that both sides hold.
    NothingCommon,
}

impl NoProfile {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            NoProfile::NothingHeld => "there is no load that the server sustains",
            NoProfile::NothingCommon => "there is no load that both sides sustain",
        }
    }
}

/// Why a study cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StudyFailure {
    /// A target answers nothing successfully: A, B, ..., and the statuses of its answers.
    NoSuccess(char, Vec<u16>),
    /// A target was not reached.
    NotReached(char),
    /// A load was ended from outside: in words.
    Ended(String),
}

impl Step {
    pub(super) fn measure(tag: Tag, plan: PlanRecord, until: StopRule) -> Step {
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
