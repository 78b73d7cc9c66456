//! The study of a sweep: decides which level (number of users) is measured next, and for how long.
//!
//! Each level has several visits (separate loads), in rounds that start at different levels.
//! Because the rounds start at different levels, drift of the machine and of the server affects all
//! levels equally. The differences between the visits of a level show the precision of its figures.
//! If the sweep has a budget, each level begins with a short pilot trial. The response times of the
//! pilot trial determine the length of the level's visits. The figures of the pilot trial do not
//! count in the level's figures. A visit (one load at a level) that other processes disturbed
//! counts like any other visit.

use super::step::{History, Step, StopRule, closed_loop_plan};
use crate::levels::{LEVEL_RESPONSE_TIMES_MIN, LEVEL_TIME_NS_MIN, pilot_ns, trials_of_level};
use crate::summary::Summary;
use plimsoll_model::units::MS;
use plimsoll_model::{ExperimentEvent, LevelDurations, LoadPurpose, LoadTag, PlanRecord, SweepSpec, Trial};

/// Shortest time, at the end of a visit (one load at a level), in which responses to requests in
/// flight may still arrive, ns.
const GRACE_MIN_NS: u64 = 500 * MS;
/// The part of the budget that is reserved for the end of the sweep, after the last visit, ns.
const SWEEP_END_RESERVE_NS: u64 = 200 * MS;
/// The assumed time between two loads, ns.
const PAUSE_BETWEEN_LOADS_NS: u64 = 50 * MS;
/// Shortest measured time of a visit (one load at a level) in a sweep with a budget, ns.
const VISIT_NS_MIN: u64 = 600 * MS;
/// Smallest number of visits (separate loads) of a level. If the budget allows fewer visits, the
/// level is visited once. Fewer visits than this number give no useful confidence interval, and
/// each change of level costs time.
const VISITS_MIN: u64 = 3;
/// Largest number of visits (separate loads) of a level in a sweep with a budget. The start of
/// another visit would cost more time than the gain in precision is worth.
const VISITS_MAX: u64 = 8;
/// Number of visits (separate loads) of a level with a fixed length, if each of these visits is
/// long enough ([`FIXED_LENGTH_VISIT_NS_MIN`]).
const FIXED_LENGTH_LEVEL_VISITS: u64 = 4;
/// Shortest length of a visit, ns, if the fixed length of a level is divided into several visits
/// (separate loads). If several visits would be shorter than this length, the level has one visit.
const FIXED_LENGTH_VISIT_NS_MIN: u64 = 1_000 * MS;
/// Visits consist of whole intervals of this length, ns. A part of an interval would not show the
/// variation of the goodput.
const VISIT_INTERVAL_NS: u64 = 100 * MS;

/// Returns the next step of a sweep, usually the next load.
pub(super) fn next(spec: &SweepSpec, history: &History) -> Step {
    let levels: Vec<LevelProgress> =
        (0..spec.levels.len()).map(|turn| LevelProgress::from_history(spec, history, turn)).collect();
    let open = || levels.iter().filter(|level| level.completed_visits < level.visits);
    let Some(round) = open().map(|level| level.completed_visits).min() else { return Step::Stop };
    // Each round begins with a different level, so that drift affects all levels equally. Because
    // other levels come in between, the local ports of a level's connections are free again before
    // the level's next visit.
    let (count, rounds) = (levels.len(), levels.iter().map(|level| level.visits).max().unwrap_or(1));
    let first = round as usize * count / rounds as usize;
    let due = open().filter(|level| level.completed_visits == round);
    let Some(level) = due.min_by_key(|level| (level.turn + count - first) % count) else { return Step::Stop };
    match spec.lengths {
        LevelDurations::Fixed(length_ns) => {
            let mut plan = level.visit_plan(spec);
            plan.load.duration_ns = Some(match level.visits {
                1 => length_ns,
                visits => length_ns / visits / VISIT_INTERVAL_NS * VISIT_INTERVAL_NS,
            });
            Step::measure_trial(trial_tag(LoadPurpose::Level, level.turn), plan, StopRule::EndOfSchedule)
        }
        LevelDurations::Budget(budget_ns) => {
            let weight_ns: u64 =
                levels.iter().map(|level| level.remaining_visits_time_min_ns(budget_ns / count as u64)).sum();
            let left_ns = budget_ns.saturating_sub(history.elapsed_ns + SWEEP_END_RESERVE_NS);
            let share_ns = (left_ns as f64 * level.visit_time_min_ns() as f64 / weight_ns.max(1) as f64) as u64;
            visit_step_within_time(spec, level, share_ns, (history.elapsed_ns, budget_ns))
        }
    }
}

fn trial_tag(purpose: LoadPurpose, turn: usize) -> LoadTag {
    LoadTag { turn: turn as u32, ..LoadTag::for_purpose(purpose) }
}

/// The state of a level of the sweep.
struct LevelProgress {
    turn: usize,
    /// Number of planned visits of the level.
    visits: u64,
    /// Number of completed visits. After a skipped load, all visits of the level count as
    /// completed.
    completed_visits: u64,
    /// Mean and longest response time at this level, ns; `None` before the level's first trial.
    response_times_ns: Option<(u64, u64)>,
    /// The warm-up of a visit (one load at the level), ns.
    warmup_ns: u64,
    /// Shortest measured time of a visit, ns.
    length_ns_min: u64,
}

impl LevelProgress {
    fn from_history(spec: &SweepSpec, history: &History, turn: usize) -> LevelProgress {
        let of = |purpose| trials_of_level(history.trials, purpose, turn);
        let mut unheld = history.events.iter().filter_map(ExperimentEvent::skipped_load);
        let is_unheld = unheld.any(|(tag, _)| tag.turn as usize == turn);
        // A trial without any response was too short. The length of a trial without any response
        // counts as the response time, so that the next trial is longer.
        let answers = |trial: &Trial| {
            let response = Summary::from_run(&trial.run).routes_sum.response;
            let known = || (response.mean_ns as u64, response.max_ns);
            if response.count > 0 { known() } else { (trial.run.duration_ns(), trial.run.duration_ns()) }
        };
        let answers_ns = of(LoadPurpose::Settle).chain(of(LoadPurpose::Level)).last().map(answers);
        let mean_ns = answers_ns.map_or(0, |(mean_ns, _)| mean_ns);
        let length_ns_min = VISIT_NS_MIN.max((LEVEL_RESPONSE_TIMES_MIN * mean_ns as f64) as u64);
        // During the warm-up of a visit, the simulated users, which started together, spread out in
        // time. A requested warm-up of 0 stays 0.
        let warmup_ns = match spec.warmup_ns {
            0 => 0,
            asked_ns => asked_ns.max((2 * mean_ns).div_ceil(VISIT_INTERVAL_NS) * VISIT_INTERVAL_NS),
        };
        let visits = match spec.lengths {
            LevelDurations::Fixed(length_ns) if length_ns / FIXED_LENGTH_LEVEL_VISITS >= FIXED_LENGTH_VISIT_NS_MIN => {
                FIXED_LENGTH_LEVEL_VISITS
            }
            LevelDurations::Fixed(_) => 1,
            LevelDurations::Budget(budget_ns) => {
                let level_ns = budget_ns / spec.levels.len().max(1) as u64;
                match level_ns.saturating_sub(pilot_ns(level_ns)) / (warmup_ns + length_ns_min) {
                    few if few < VISITS_MIN => 1,
                    many => many.min(VISITS_MAX),
                }
            }
        };
        let done = if is_unheld { visits } else { of(LoadPurpose::Level).count() as u64 };
        LevelProgress { turn, visits, completed_visits: done, response_times_ns: answers_ns, warmup_ns, length_ns_min }
    }

    /// Returns the shortest total time of a visit, ns.
    fn visit_time_min_ns(&self) -> u64 {
        self.warmup_ns + self.length_ns_min
    }

    /// Returns the shortest time for the remaining visits of the level, ns. `level_ns` is the
    /// level's part of the budget, ns.
    fn remaining_visits_time_min_ns(&self, level_ns: u64) -> u64 {
        let visits = self.visits.saturating_sub(self.completed_visits);
        let pilot_ns = if self.response_times_ns.is_none() && visits > 0 { pilot_ns(level_ns) } else { 0 };
        let loads = visits + u64::from(pilot_ns > 0);
        pilot_ns + visits * self.visit_time_min_ns() + loads * PAUSE_BETWEEN_LOADS_NS
    }

    /// Returns the plan of a visit, whose length the caller sets.
    fn visit_plan(&self, spec: &SweepSpec) -> PlanRecord {
        let mut plan = closed_loop_plan(&spec.base, spec.levels[self.turn]);
        plan.load.warmup_ns = self.warmup_ns;
        plan
    }
}

/// Returns the step for a visit (one load at a level) that may take `share_ns` in total. If no
/// response times of the level are known yet, the returned step makes the level's pilot trial. If
/// `share_ns` is too short for a load, the step skips a level without a visit, and otherwise ends
/// the sweep.
fn visit_step_within_time(
    spec: &SweepSpec,
    level: &LevelProgress,
    share_ns: u64,
    (now_ns, budget_ns): (u64, u64),
) -> Step {
    let mut plan = level.visit_plan(spec);
    if share_ns < LEVEL_TIME_NS_MIN / 2 {
        return match level.completed_visits {
            0 => Step::Skip(trial_tag(LoadPurpose::Level, level.turn)),
            _ => Step::Stop,
        };
    }
    let Some((_, slowest_ns)) = level.response_times_ns else {
        let level_ns = budget_ns / spec.levels.len().max(1) as u64;
        plan.load.duration_ns = Some(pilot_ns(level_ns));
        plan.load.warmup_ns = 0;
        plan.load.grace_ns = plan.load.grace_ns.min(level_ns / 4);
        return Step::measure_trial(trial_tag(LoadPurpose::Settle, level.turn), plan, StopRule::EndOfSchedule);
    };
    plan.load.warmup_ns = plan.load.warmup_ns.min(share_ns / 2 / VISIT_INTERVAL_NS * VISIT_INTERVAL_NS);
    let rest_ns = share_ns - plan.load.warmup_ns;
    let length_ns = (rest_ns - slowest_ns.min(rest_ns / 2)) / VISIT_INTERVAL_NS * VISIT_INTERVAL_NS;
    plan.load.duration_ns = Some(length_ns.max(VISIT_INTERVAL_NS));
    let finish_ns = now_ns + plan.load.warmup_ns + length_ns;
    plan.load.grace_ns = plan.load.grace_ns.min(budget_ns.saturating_sub(finish_ns).max(GRACE_MIN_NS));
    Step::measure_trial(trial_tag(LoadPurpose::Level, level.turn), plan, StopRule::EndOfSchedule)
}
