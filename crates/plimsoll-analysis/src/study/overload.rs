//! The study of a server above its load line. If the load line is not given, a search finds it
//! first. After the search, one load rises in steps, whose rates are multiples of the load line.
//! The steps belong to one load, so that the backlog of one step continues in the next step. If
//! each step were a load of its own, the study could not show whether the server recovers from a
//! backlog. If the user names a second target, the study repeats the load of the first target on
//! the second target.
//!
//! Not here: what the load shows about the server (`overload`).

use super::search::{LoadLineSearch, SEARCH_PART};
use super::step::{History, Step, StopRule};
use crate::overload::{STEP_RATE_FACTORS, overload_base_rps};
use crate::slo::Slo;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    ArmIndex, Load, LoadCurve, LoadEnd, LoadPurpose, LoadShape, LoadStage, LoadTag, OverloadSpec, Plan, PlanRecord,
};

/// Shortest and longest step of the overload study's load, ns. The last step tests whether the
/// server recovers, and lasts twice as long as each other step.
const STEP_LENGTH_NS_RANGE: std::ops::RangeInclusive<u64> = 2 * SECOND..=15 * SECOND;
/// Time that the load takes in addition to its schedule, ns: for connecting, and for transferring
/// the result.
const OVERLOAD_CONNECT_AND_TRANSFER_NS: u64 = SECOND;

/// Returns the smallest budget in which the shortest steps fit, ns, on `targets` targets. If the
/// load line is not given (`has_line` is false), the budget includes the search.
pub fn budget_min_ns(has_line: bool, targets: u64) -> u64 {
    // The added 2 s are for the grace period and the time before the first load.
    let steps_ns = STEP_LENGTH_NS_RANGE.start() * (STEP_RATE_FACTORS.len() as u64 + 1)
        + OVERLOAD_CONNECT_AND_TRANSFER_NS
        + 2 * SECOND;
    let (searched, all) = if has_line { (0, 1) } else { SEARCH_PART };
    (steps_ns * targets * all).div_ceil(all - searched).next_multiple_of(SECOND)
}

/// The state of a running overload study.
#[derive(Debug)]
pub struct OverloadStudy {
    /// The search for the load line.
    pub search: LoadLineSearch,
    /// The load line that the user gave, 1/s; `None` means that the search finds the load line.
    pub line_rps: Option<f64>,
    /// The maximum length of the whole study, ns.
    pub budget_ns: u64,
    /// The plan of the second target, on which the load is repeated.
    pub second_target: Option<PlanRecord>,
}

/// Returns the tag of an overload study's load: the load on the second target if
/// `is_second_target`, otherwise the load on the first target.
pub fn overload_tag(is_second_target: bool) -> LoadTag {
    LoadTag { arm: is_second_target.then_some(ArmIndex::SECOND_TARGET), ..LoadTag::for_purpose(LoadPurpose::Overload) }
}

impl OverloadStudy {
    /// Creates the study before its first load.
    pub fn new(spec: &OverloadSpec, slo: Slo) -> OverloadStudy {
        let (line_rps, budget_ns, against) = (spec.line_rps, spec.budget_ns, spec.second_target.clone());
        OverloadStudy { search: LoadLineSearch::new(&spec.search, slo), line_rps, budget_ns, second_target: against }
    }

    pub(super) fn next(&self, history: &History) -> Step {
        let made = |against| history.trials.iter().find(|trial| trial.tag == overload_tag(against));
        if let Some(first) = made(false) {
            let whole = matches!(first.run.ending, Some(LoadEnd::Finished));
            let base = self.second_target.as_ref().filter(|_| whole && made(true).is_none());
            return base.map_or(Step::Stop, |base| {
                let plan = PlanRecord { load: first.run.plan.load.clone(), ..base.clone() };
                Step::measure_trial(overload_tag(true), plan, StopRule::EndOfSchedule)
            });
        }
        if self.line_rps.is_none() {
            match self.search.next(history) {
                Step::Stop => {}
                step => return step,
            }
        }
        let line_rps = self.line_rps.unwrap_or_else(|| overload_base_rps(&self.search.findings(history.elapsed_ns)));
        let grace_ns = self.search.settings.base.load.grace_ns.min(SECOND);
        let left_ns = self.budget_ns.saturating_sub(history.elapsed_ns) / (1 + u64::from(self.second_target.is_some()));
        let left_ns = left_ns.saturating_sub(OVERLOAD_CONNECT_AND_TRANSFER_NS + grace_ns);
        let step_ns =
            (left_ns / (STEP_RATE_FACTORS.len() as u64 + 1)).min(*STEP_LENGTH_NS_RANGE.end()) / SECOND * SECOND;
        if line_rps <= 0.0 || step_ns < *STEP_LENGTH_NS_RANGE.start() {
            return Step::Stop;
        }
        self.rising_load_step(line_rps, step_ns, grace_ns)
    }

    fn rising_load_step(&self, line_rps: f64, step_ns: u64, grace_ns: u64) -> Step {
        let base = &self.search.settings.base;
        let stage = |(number, factor): (usize, f64)| {
            let (level, back) = (factor * line_rps, number + 1 == STEP_RATE_FACTORS.len());
            LoadStage { from: level, to: level, duration_ns: Some(if back { 2 * step_ns } else { step_ns }) }
        };
        let rate = LoadCurve { stages: STEP_RATE_FACTORS.into_iter().enumerate().map(stage).collect() };
        let load = Load {
            duration_ns: rate.duration_ns(),
            shape: LoadShape::Open { rate, arrivals: self.search.settings.arrivals },
            requests_max: None,
            warmup_ns: 0,
            grace_ns,
            connections_ready: 0,
            interval_ns: Plan::TICK_NS,
            ..base.load.clone()
        };
        Step::measure_trial(overload_tag(false), PlanRecord { load, ..base.clone() }, StopRule::EndOfSchedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::search::search_part_ns;

    #[test]
    fn the_shortest_budget_allows_the_shortest_overload_steps() {
        for (has_line, targets, expect_s) in [(true, 1, 17), (true, 2, 34), (false, 1, 29), (false, 2, 57)] {
            let budget_ns = budget_min_ns(has_line, targets);
            assert_eq!(budget_ns / SECOND, expect_s, "{has_line} {targets}");
            let searched_ns = if has_line { 0 } else { search_part_ns(budget_ns) };
            let left_ns = (budget_ns - searched_ns - SECOND / 2) / targets - OVERLOAD_CONNECT_AND_TRANSFER_NS - SECOND;
            assert!(
                left_ns / (STEP_RATE_FACTORS.len() as u64 + 1) >= *STEP_LENGTH_NS_RANGE.start(),
                "{has_line} {targets}"
            );
        }
    }
}
