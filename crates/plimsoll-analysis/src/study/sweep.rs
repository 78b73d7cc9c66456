//! A sweep as a study: which concurrency is measured next, and for how long.
//!
//! A level that is as long as it needs has a short trial beforehand: what that one varies says how long the level must be
//! measured. The trial counts for nothing else. What is left of the budget in the end goes to the levels that others on the
//! machine disturbed: they come and go, and a level measured again may be spared.

use super::step::{History, Step, Until, closed, end_ns};
use crate::levels::{SHARE_MIN_NS, length_ns, of_turn, pilot_ns};
use crate::others::Others;
use crate::summary::Summary;
use plimsoll_model::units::MS;
use plimsoll_model::{Lengths, PlanRecord, Purpose, Remark, SweepAsked, Tag, Trial};

/// Answers under way at the end of a level are waited for at least so long, ns.
const GRACE_MIN_NS: u64 = 500 * MS;
/// A level that others disturb is measured so often, at most.
const TRIES_MAX: usize = 3;

/// The next load of a sweep.
pub(super) fn next(asked: &SweepAsked, history: &History) -> Step {
    let turns = asked.levels.len();
    match (0..turns).find(|turn| !is_done(history, *turn)) {
        Some(turn) => level(asked, history, turn),
        None => again(asked, history),
    }
}

fn tag(purpose: Purpose, turn: usize) -> Tag {
    Tag { turn: turn as u32, ..Tag::of(purpose) }
}

fn is_done(history: &History, turn: usize) -> bool {
    let mut unheld = history.remarks.iter().filter_map(Remark::unheld);
    unheld.any(|(tag, _)| tag.turn as usize == turn) || of_turn(history.trials, Purpose::Level, turn).next().is_some()
}

/// The load of a level, but for its length.
fn plan(asked: &SweepAsked, turn: usize) -> PlanRecord {
    let mut plan = closed(&asked.base, asked.levels[turn]);
    plan.load.warmup_ns = asked.warmup_ns;
    plan
}

fn level(asked: &SweepAsked, history: &History, turn: usize) -> Step {
    let mut plan = plan(asked, turn);
    let budget_ns = match asked.lengths {
        Lengths::Fixed(length_ns) => {
            plan.load.duration_ns = Some(length_ns);
            return Step::measure(tag(Purpose::Level, turn), plan, Until::End);
        }
        Lengths::Budget(budget_ns) => budget_ns,
    };
    let share_ns = |now_ns: u64| budget_ns.saturating_sub(now_ns) / (asked.levels.len() - turn) as u64;
    let Some(pilot) = of_turn(history.trials, Purpose::Settle, turn).last() else {
        let share_ns = share_ns(history.elapsed_ns);
        if share_ns < SHARE_MIN_NS / 2 {
            return Step::Skip(tag(Purpose::Level, turn));
        }
        plan.load.duration_ns = Some(pilot_ns(share_ns));
        plan.load.warmup_ns = 0;
        plan.load.grace_ns = plan.load.grace_ns.min(share_ns / 4);
        return Step::measure(tag(Purpose::Settle, turn), plan, Until::End);
    };
    let ended_by_ns = pilot.start_ns + share_ns(pilot.start_ns);
    let rest_ns = ended_by_ns.saturating_sub(history.elapsed_ns).saturating_sub(plan.load.warmup_ns);
    let slowest_ns = Summary::of(&pilot.run).whole.response.max_ns;
    let length_ns = length_ns(&pilot.run, rest_ns.saturating_sub(slowest_ns.min(rest_ns / 2)));
    measured(plan, turn, length_ns, history.elapsed_ns, budget_ns)
}

/// A level of this length, after which answers are waited for as long as the budget allows.
fn measured(mut plan: PlanRecord, turn: usize, length_ns: u64, now_ns: u64, budget_ns: u64) -> Step {
    let over_ns = now_ns + plan.load.warmup_ns + length_ns;
    plan.load.duration_ns = Some(length_ns);
    plan.load.grace_ns = plan.load.grace_ns.min(budget_ns.saturating_sub(over_ns).max(GRACE_MIN_NS));
    Step::measure(tag(Purpose::Level, turn), plan, Until::End)
}

/// A disturbed level once more, the least often tried first, if the budget holds it.
fn again(asked: &SweepAsked, history: &History) -> Step {
    let Lengths::Budget(budget_ns) = asked.lengths else { return Step::Stop };
    let left_ns = budget_ns.saturating_sub(history.elapsed_ns);
    let disturbed = (0..asked.levels.len()).filter_map(|turn| {
        let tries: Vec<&Trial> = of_turn(history.trials, Purpose::Level, turn).collect();
        let all = !tries.is_empty() && tries.iter().all(|trial| Others::of(&trial.run).disturbed);
        let last = tries.last()?;
        let length_ns = last.run.plan.load.duration_ns?;
        // As long as it took before, with what came after its end.
        let took_ns = end_ns(last).saturating_sub(last.start_ns).max(asked.warmup_ns + length_ns + GRACE_MIN_NS);
        (all && tries.len() < TRIES_MAX && took_ns <= left_ns).then_some((tries.len(), turn, length_ns))
    });
    match disturbed.min() {
        Some((_, turn, length_ns)) => measured(plan(asked, turn), turn, length_ns, history.elapsed_ns, budget_ns),
        None => Step::Stop,
    }
}
