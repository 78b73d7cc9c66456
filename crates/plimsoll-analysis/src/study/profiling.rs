//! The loads under which profiles of the target are taken. The loads with profiles are the last
//! steps of a study in which the user requested profiles. The loads with profiles come after all
//! measurements, so that no other figure includes the cost of profiling. A single target is
//! profiled at a low rate and at the rate under investigation. In a comparison, both sides are
//! profiled alternately, several times each, at one rate.
//!
//! Not here: how profiles are fetched and stored (the binary), and what they mean (`profile`).

use super::climb::WARMUP_FRESH_NS;
use super::step::{History, NoProfile, Step, StopRule};
use crate::profile::{ProfilingSchedule, rates};
use crate::prove::Block;
use crate::prove::reading::block_plans;
use plimsoll_model::rng::mix;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    ArmIndex, Arrivals, BlocksSpec, Curve, Load, LoadShape, Plan, PlanRecord, ProfilesSpec, Purpose, Remark, Tag, Trial,
};

/// The side (0 or 1) of each profile, in the order in which profiles are taken. With alternating
/// sides, drift of the machine affects both sides equally.
const SIDES_BY_TURN: [u8; 8] = [0, 1, 1, 0, 0, 1, 1, 0];
/// Number of profiles of both sides together.
pub const TURNS_OF_SIDES: usize = SIDES_BY_TURN.len();
/// Warm-up before a profile of one side of a comparison, ns. A newly started build gets its usual
/// warm-up in addition.
const WARMUP_NS: u64 = SECOND;
/// Time in which the server stops a profile and writes it, ns.
const GAP_NS: u64 = SECOND / 2;
/// The rate at which both sides are profiled, as a share of the slower side's goodput. Both sides
/// sustain a rate of this share without queues.
const RATE_SHARE: f64 = 0.6;
/// Maximum number of connections that are opened before a load starts.
const READY_MAX: f64 = 512.0;

/// Returns the tag of a profile of a single target. `turn` is 0 for the low rate, and 1 for the
/// rate under investigation.
pub fn level_tag(turn: u32) -> Tag {
    Tag { turn, ..Tag::for_purpose(Purpose::Profile) }
}

/// Returns the tag of profile number `turn` of a comparison, in the order of [`SIDES_BY_TURN`].
fn side_tag(turn: usize) -> Tag {
    let repetition = SIDES_BY_TURN[..turn].iter().filter(|arm| **arm == SIDES_BY_TURN[turn]).count();
    Tag { purpose: Purpose::Profile, arm: Some(ArmIndex::Side(SIDES_BY_TURN[turn])), turn: repetition as u32 }
}

/// Returns the index of a profile in [`SIDES_BY_TURN`] from its tag; `None` if the tag belongs to
/// no profile of a comparison.
pub fn side_turn_index(tag: &Tag) -> Option<usize> {
    (0..SIDES_BY_TURN.len()).find(|turn| side_tag(*turn) == *tag)
}

/// Returns when the first load for a profile began, in ns since the experiment began. If there are
/// only remarks about missing profiles, the result is the present time. Returns `None` if the study
/// has not reached its profiles.
pub(super) fn began_ns(history: &History) -> Option<u64> {
    let first = history.trials.iter().find(|trial| trial.tag.purpose == Purpose::Profile);
    let remarked = history.remarks.iter().any(|remark| matches!(remark, Remark::Profile(_)));
    first.map(|trial| trial.start_ns).or(remarked.then_some(history.elapsed_ns))
}

/// Returns whether the profile with this tag is done: a load was made for it, or a remark says why
/// not.
fn is_profile_done(history: &History, tag: Tag) -> bool {
    let remarked = |remark: &Remark| matches!(remark, Remark::Profile(taken) if taken.tag == tag);
    history.trials.iter().any(|trial| trial.tag == tag) || history.remarks.iter().any(remarked)
}

/// Returns the tag of the next profile of a single target; `None` if both profiles are done.
pub(super) fn next_unprofiled_tag(history: &History) -> Option<Tag> {
    [0, 1].map(level_tag).into_iter().find(|tag| !is_profile_done(history, *tag))
}

/// Returns the next step of profiling a single target: first at a low rate, then at `level_rps`,
/// 1/s. The loads have the traffic of the plan `base`.
pub(super) fn next_single_target_step(
    spec: &ProfilesSpec,
    base: &PlanRecord,
    arrivals: Arrivals,
    level_rps: f64,
    history: &History,
) -> Step {
    if level_rps <= 0.0 {
        let tag = level_tag(0);
        return if is_profile_done(history, tag) {
            Step::Stop
        } else {
            Step::Unprofiled(tag, NoProfile::NothingSustained)
        };
    }
    let Some(tag) = next_unprofiled_tag(history) else { return Step::Stop };
    let rate = rates(level_rps)[tag.turn as usize];
    let stretches = ProfilingSchedule::new(spec.seconds);
    let length_ns = stretches.end_ns - stretches.warmup_ns;
    let load = Load {
        seed: mix(base.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open { rate: Curve::constant_for_duration(rate, length_ns), arrivals },
        requests_max: None,
        duration_ns: Some(length_ns),
        warmup_ns: stretches.warmup_ns,
        // This number of connections is enough if responses take 10 ms. If a load needs more
        // connections, the warm-up opens them.
        connections_ready: ((rate / 100.0 + 8.0).min(READY_MAX) as u32).min(base.carriage.connections_max),
        grace_ns: base.load.grace_ns,
        interval_ns: Plan::TICK_NS,
        new_users: false,
    };
    Step::measure_trial(tag, PlanRecord { load, ..base.clone() }, StopRule::End)
}

/// Returns the next step of profiling both sides of a comparison. The rate comes from the complete
/// blocks `whole` (a block is one load on each side).
pub(super) fn next_comparison_step(
    spec: &ProfilesSpec,
    blocks: &BlocksSpec,
    whole: &[Block],
    history: &History,
) -> Step {
    let Some(rate) = rate_of_sides(history.trials, whole) else {
        // Without a rate no profile can be taken. The missing rate is recorded once per side, in
        // place of the side's first profile.
        let left = [0, 1].map(side_tag).into_iter().find(|tag| !is_profile_done(history, *tag));
        return left.map_or(Step::Stop, |tag| Step::Unprofiled(tag, NoProfile::NoCommonLoad));
    };
    let Some(turn) = (0..SIDES_BY_TURN.len()).find(|turn| !is_profile_done(history, side_tag(*turn))) else {
        return Step::Stop;
    };
    let Some(arm) = blocks.arms.get(usize::from(SIDES_BY_TURN[turn])) else { return Step::Stop };
    let fresh = blocks.arms.iter().any(|arm| arm.started);
    let warmup_ns = WARMUP_NS + if fresh { blocks.warmup_ns.unwrap_or(WARMUP_FRESH_NS) } else { 0 };
    let profiled_ns = u64::from(spec.seconds) * SECOND + GAP_NS;
    let load = Load {
        seed: mix(arm.plan.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open { rate: Curve::constant(rate), arrivals: blocks.arrivals },
        requests_max: None,
        duration_ns: Some(profiled_ns.next_multiple_of(Plan::TICK_NS)),
        warmup_ns: warmup_ns.next_multiple_of(Plan::TICK_NS),
        connections_ready: ((rate / 100.0 + 8.0).min(READY_MAX) as u32).min(arm.plan.carriage.connections_max),
        ..arm.plan.load.clone()
    };
    Step::measure_trial(side_tag(turn), PlanRecord { load, ..arm.plan.clone() }, StopRule::End)
}

/// Returns the rate at which both sides are profiled, 1/s. This rate is the fixed rate of the
/// blocks, or a rate that both sides sustain easily. Returns `None` if no rate is known that both
/// sides sustain.
fn rate_of_sides(trials: &[Trial], blocks: &[Block]) -> Option<f64> {
    let plans = block_plans(trials, 1);
    if let Some(LoadShape::Open { rate, .. }) = plans.first().map(|plan| &plan.load.shape) {
        return Some(rate.max());
    }
    let goodput = |arm: usize| {
        let mut all: Vec<f64> = blocks.iter().map(|block| block.readings[arm].goodput_rps()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    let rate = goodput(0)?.min(goodput(1)?) * RATE_SHARE;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{ProfileRecord, Run};

    #[test]
    fn profiling_turns_alternate_between_sides() {
        let names: Vec<String> = (0..SIDES_BY_TURN.len())
            .map(|turn| {
                let tag = side_tag(turn);
                assert_eq!(side_turn_index(&tag), Some(turn));
                format!("{}{}", tag.arm.map_or('-', ArmIndex::letter), tag.turn)
            })
            .collect();
        assert_eq!(names, ["A0", "B0", "B1", "A1", "A2", "B2", "B3", "A3"]);
    }

    /// Checks that profiling makes one load for each rate, or records a remark why there is no
    /// load, and ends afterwards.
    #[test]
    fn profiling_levels_run_in_order_and_end() {
        let base = Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) }).record();
        let spec = ProfilesSpec { bases: vec!["http://h/debug/pprof".into()], seconds: 2 };
        let step = |trials: &[Trial], remarks: &[Remark], level_rps: f64| {
            let history = History { trials, remarks, elapsed_ns: SECOND };
            next_single_target_step(&spec, &base, Arrivals::Constant, level_rps, &history)
        };
        let Step::Measure(low) = step(&[], &[], 1000.0) else { panic!("a load at the low level") };
        assert_eq!((low.tag, low.plan.load.shape.curve().max()), (level_tag(0), rates(1000.0)[0]));
        let trials = [Trial { tag: low.tag, start_ns: 0, run: Run::new(low.plan) }];
        let Step::Measure(high) = step(&trials, &[], 1000.0) else { panic!("a load at the level in question") };
        assert_eq!((high.tag, high.plan.load.shape.curve().max()), (level_tag(1), 1000.0));
        // The remark says why the profile at the higher rate could not be taken.
        let missing = ProfileRecord { tag: high.tag, kind: "cpu".into(), trial: None, file: Err("no room".into()) };
        assert!(matches!(step(&trials, &[Remark::Profile(missing.clone())], 1000.0), Step::Stop));
        // A server that sustains no rate gets a single remark, and no load for a profile.
        assert!(
            matches!(step(&[], &[], 0.0), Step::Unprofiled(tag, NoProfile::NothingSustained) if tag == level_tag(0))
        );
        let said = Remark::Profile(ProfileRecord { tag: level_tag(0), ..missing });
        assert!(matches!(step(&[], &[said], 0.0), Step::Stop));
    }
}
