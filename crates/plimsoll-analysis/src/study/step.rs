//! The input of a study ([`History`]) and its output, the next step ([`Step`]).

use crate::condition_watch::ConditionWatch;
use crate::watch::TrialWatch;
use plimsoll_model::units::MS;
use plimsoll_model::{
    EarlyStopReason, ExperimentEvent, Interval, LoadCurve, LoadShape, LoadTag, PlanRecord, Run, Trial,
};
use std::ops::ControlFlow;

/// Assumed minimum time that a load takes in addition to its schedule, ns: for connecting, and for
/// transferring the result.
pub(super) const CONNECT_AND_TRANSFER_NS: u64 = 150 * MS;

/// The history of a study: the loads and events recorded so far.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// The loads so far, in order.
    pub trials: &'a [Trial],
    /// The events recorded so far, for example about skipped loads.
    pub events: &'a [ExperimentEvent],
    /// Time since the experiment began, in ns.
    pub elapsed_ns: u64,
}

/// A load that the study wants its caller to make.
#[derive(Debug, Clone)]
pub struct TrialPlan {
    /// The purpose of the load. If several loads have this purpose, the tag also contains the
    /// load's compared target (arm) and its number.
    pub tag: LoadTag,
    /// The plan of the load.
    pub plan: PlanRecord,
    /// The rule that may end the load before the end of its schedule.
    pub stop_rule: StopRule,
}

/// The rule that may end a load before the end of its schedule. The caller passes the figures of
/// every tick (100 ms) of the load to the rule.
#[derive(Debug, Clone)]
pub enum StopRule {
    /// The load runs to the end of its schedule.
    EndOfSchedule,
    /// The load ends at the event that the watch waits for, usually when the load has certainly
    /// broken the SLO.
    TrialWatch(Box<TrialWatch>),
    /// The load ends when a condition becomes true.
    Condition(Box<ConditionWatch>),
}

impl StopRule {
    /// Passes the tick `interval`, from `start_ns` to `end_ns` of schedule time, to the rule.
    /// Returns `Break` with the reason if the load must end now.
    pub fn push(&mut self, start_ns: u64, end_ns: u64, interval: &Interval) -> ControlFlow<EarlyStopReason> {
        match self {
            StopRule::EndOfSchedule => ControlFlow::Continue(()),
            StopRule::TrialWatch(watch) => watch.push(start_ns, interval).map_break(EarlyStopReason::ResultCertain),
            StopRule::Condition(watch) => match watch.push(end_ns, interval) {
                Some(crossing) => ControlFlow::Break(EarlyStopReason::Condition(crossing.to_string())),
                None => ControlFlow::Continue(()),
            },
        }
    }
}

/// The next step of a study. After every step except `Stop` and `Fail`, the caller calls
/// [`Study::next`](super::Study::next) again.
#[derive(Debug, Clone)]
pub enum Step {
    /// The caller must make this load, and record it.
    Measure(Box<TrialPlan>),
    /// The caller must record that the load with this tag is skipped because the time is too short.
    Skip(LoadTag),
    /// The caller must record that no profile with this tag is taken, and the reason.
    SkipProfile(LoadTag, NoProfileReason),
    /// The study is complete.
    Stop,
    /// The study cannot continue.
    Fail(StudyFailure),
}

/// Why the study makes no load under which profiles could be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProfileReason {
    /// The server sustains no load at all.
    NothingSustained,
    /// No load is known that both sides of a comparison sustain.
    NoCommonLoad,
}

impl NoProfileReason {
    /// Returns the reason in words.
    pub fn reason_text(self) -> &'static str {
        match self {
            NoProfileReason::NothingSustained => "there is no load that the server sustains",
            NoProfileReason::NoCommonLoad => "there is no load that both sides sustain",
        }
    }
}

/// Why a study cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StudyFailure {
    /// No request to a target succeeded. The values are the letter of the target, and the statuses
    /// of its responses.
    NoSuccess(char, Vec<u16>),
    /// A target could not be reached. The letter names the target: `A`, `B`, ...
    NotReached(char),
    /// The user or the machine ended a load before its planned end. The text is the reason.
    LoadEndedEarly(String),
}

impl Step {
    pub(super) fn measure_trial(tag: LoadTag, plan: PlanRecord, stop_rule: StopRule) -> Step {
        Step::Measure(Box::new(TrialPlan { tag, plan, stop_rule }))
    }
}

/// Returns the plan `base`, with its load replaced by a closed loop of `users` users.
pub fn closed_loop_plan(base: &PlanRecord, users: u64) -> PlanRecord {
    let mut plan = base.clone();
    plan.load.shape = LoadShape::Closed { users: LoadCurve::constant(users as f64) };
    plan.load.connections_ready = users as u32;
    plan
}

/// Returns the end of the recorded part of a load, in ns since the experiment began.
pub fn trial_end_ns(trial: &Trial) -> u64 {
    let Run { intervals, plan, window_ns, .. } = &trial.run;
    let last_ns = intervals.keys().next_back().map_or(0, |last| (u64::from(*last) + 1) * plan.load.interval_ns);
    trial.start_ns + last_ns.max(window_ns.1)
}
