//! The loads under which profiles of the target are taken. The loads with profiles are the last
//! steps of a study in which the user requested profiles. The loads with profiles come after all
//! measurements, so that no other figure includes the cost of profiling. A single target is
//! profiled at a low rate and at the rate under investigation. In a comparison, both sides are
//! profiled alternately, several times each, at one rate.
//!
//! Not here: how profiles are fetched and stored (the binary), and the analysis of profiles
//! (`profile`).

use super::climb::NEW_TARGET_WARMUP_NS_MIN;
use super::step::{History, NoProfileReason, Step, StopRule};
use crate::profile::{ProfilingSchedule, profiling_rates_rps};
use crate::prove::ComparisonBlock;
use crate::prove::comparison_blocks::arm_plans;
use plimsoll_model::rng::mix_bits;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    ArmIndex, ArrivalSpacing, BlocksSpec, ExperimentEvent, Load, LoadCurve, LoadPurpose, LoadShape, LoadTag, Plan,
    PlanRecord, ProfilesSpec, Trial,
};

/// The side (0 or 1) of each profile, in the order in which profiles are taken. With alternating
/// sides, drift of the machine affects both sides equally.
const PROFILE_SIDE_ORDER: [u8; 8] = [0, 1, 1, 0, 0, 1, 1, 0];
/// Number of profiles of both sides together.
pub const SIDE_PROFILES_COUNT: usize = PROFILE_SIDE_ORDER.len();
/// Warm-up before a profile of one side of a comparison, ns. A newly started build gets its usual
/// warm-up in addition.
const WARMUP_NS: u64 = SECOND;
/// Time that the server needs to stop a profile and to write the profile, ns.
const PROFILE_WRITE_NS: u64 = SECOND / 2;
/// The rate at which both sides are profiled, as a share of the slower side's goodput. At this
/// share of the goodput, neither side builds up a queue.
const PROFILING_RATE_SHARE: f64 = 0.6;
/// Random arrivals, whatever the arrivals of the study are. CPU profilers such as Go's sample at
/// the ticks of the kernel. At a rate near a multiple of the tick's rate, evenly spaced requests
/// begin at nearly the same phase of each tick, so too few or too many samples hit these requests.
/// At 1 000/s, a function of 200 us was measured as 10 to 172 us with even arrivals, and as 236 us
/// with random arrivals.
const PROFILING_ARRIVALS: ArrivalSpacing = ArrivalSpacing::Poisson;
/// Maximum number of connections that are opened before a load starts.
const READY_CONNECTIONS_MAX: f64 = 512.0;

/// Returns the tag of a profile of a single target. `turn` is 0 for the low rate, and 1 for the
/// rate under investigation.
pub fn single_target_profile_tag(turn: u32) -> LoadTag {
    LoadTag { turn, ..LoadTag::for_purpose(LoadPurpose::Profile) }
}

/// Returns the tag of profile number `turn` of a comparison, in the order of
/// [`PROFILE_SIDE_ORDER`].
fn side_profile_tag(turn: usize) -> LoadTag {
    let repetition = PROFILE_SIDE_ORDER[..turn].iter().filter(|arm| **arm == PROFILE_SIDE_ORDER[turn]).count();
    LoadTag {
        purpose: LoadPurpose::Profile,
        arm: Some(ArmIndex::Side(PROFILE_SIDE_ORDER[turn])),
        turn: repetition as u32,
    }
}

/// Returns the index of a profile in [`PROFILE_SIDE_ORDER`] from its tag; `None` if the tag belongs
/// to no profile of a comparison.
pub fn side_profile_index(tag: &LoadTag) -> Option<usize> {
    (0..PROFILE_SIDE_ORDER.len()).find(|turn| side_profile_tag(*turn) == *tag)
}

/// Returns when the first load for a profile began, in ns since the experiment began. If there are
/// only events about missing profiles, the result is the present time. Returns `None` if the study
/// has not reached its profiles.
pub(super) fn profiling_start_ns(history: &History) -> Option<u64> {
    let first = history.trials.iter().find(|trial| trial.tag.purpose == LoadPurpose::Profile);
    let is_recorded = history.events.iter().any(|event| matches!(event, ExperimentEvent::Profile(_)));
    first.map(|trial| trial.start_ns).or(is_recorded.then_some(history.elapsed_ns))
}

/// Returns whether the profile with this tag is done: a load was made for it, or an event says why
/// not.
fn is_profile_done(history: &History, tag: LoadTag) -> bool {
    let is_recorded = |event: &ExperimentEvent| matches!(event, ExperimentEvent::Profile(taken) if taken.tag == tag);
    history.trials.iter().any(|trial| trial.tag == tag) || history.events.iter().any(is_recorded)
}

/// Returns the tag of the next profile of a single target; `None` if both profiles are done.
pub(super) fn next_unprofiled_tag(history: &History) -> Option<LoadTag> {
    [0, 1].map(single_target_profile_tag).into_iter().find(|tag| !is_profile_done(history, *tag))
}

/// Returns the next step of profiling a single target: first at a low rate, then at `level_rps`,
/// 1/s. The loads have the traffic of the plan `base`.
pub(super) fn next_single_target_step(
    spec: &ProfilesSpec,
    base: &PlanRecord,
    level_rps: f64,
    history: &History,
) -> Step {
    if level_rps <= 0.0 {
        let tag = single_target_profile_tag(0);
        return if is_profile_done(history, tag) {
            Step::Stop
        } else {
            Step::SkipProfile(tag, NoProfileReason::NothingSustained)
        };
    }
    let Some(tag) = next_unprofiled_tag(history) else { return Step::Stop };
    let rate = profiling_rates_rps(level_rps)[tag.turn as usize];
    let schedule = ProfilingSchedule::new(spec.seconds);
    let length_ns = schedule.end_ns - schedule.warmup_ns;
    let load = Load {
        seed: mix_bits(base.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open {
            rate: LoadCurve::constant_for_duration(rate, length_ns),
            arrivals: PROFILING_ARRIVALS,
        },
        requests_max: None,
        duration_ns: Some(length_ns),
        warmup_ns: schedule.warmup_ns,
        // Enough connections are opened before the load for responses that take 10 ms. If a load
        // needs more connections, the warm-up opens them.
        connections_ready: ((rate / 100.0 + 8.0).min(READY_CONNECTIONS_MAX) as u32)
            .min(base.connection_plan.connections_max),
        grace_ns: base.load.grace_ns,
        interval_ns: Plan::TICK_NS,
        new_users: false,
    };
    Step::measure_trial(tag, PlanRecord { load, ..base.clone() }, StopRule::EndOfSchedule)
}

/// Returns the next step of profiling both sides of a comparison. The rate comes from the complete
/// blocks `whole` (a block is one load on each side).
pub(super) fn next_comparison_step(
    spec: &ProfilesSpec,
    blocks: &BlocksSpec,
    whole: &[ComparisonBlock],
    history: &History,
) -> Step {
    let Some(rate) = common_profiling_rate(history.trials, whole) else {
        // If no common rate is known, no profile is taken. An event for each side then takes the
        // place of the side's first profile.
        let left = [0, 1].map(side_profile_tag).into_iter().find(|tag| !is_profile_done(history, *tag));
        return left.map_or(Step::Stop, |tag| Step::SkipProfile(tag, NoProfileReason::NoCommonLoad));
    };
    let Some(turn) = (0..PROFILE_SIDE_ORDER.len()).find(|turn| !is_profile_done(history, side_profile_tag(*turn)))
    else {
        return Step::Stop;
    };
    let Some(arm) = blocks.arms.get(usize::from(PROFILE_SIDE_ORDER[turn])) else { return Step::Stop };
    let fresh = blocks.arms.iter().any(|arm| arm.is_started_per_load);
    let warmup_ns = WARMUP_NS + if fresh { blocks.warmup_ns.unwrap_or(NEW_TARGET_WARMUP_NS_MIN) } else { 0 };
    let profiled_ns = u64::from(spec.seconds) * SECOND + PROFILE_WRITE_NS;
    let load = Load {
        seed: mix_bits(arm.plan.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open { rate: LoadCurve::constant(rate), arrivals: PROFILING_ARRIVALS },
        requests_max: None,
        duration_ns: Some(profiled_ns.next_multiple_of(Plan::TICK_NS)),
        warmup_ns: warmup_ns.next_multiple_of(Plan::TICK_NS),
        connections_ready: ((rate / 100.0 + 8.0).min(READY_CONNECTIONS_MAX) as u32)
            .min(arm.plan.connection_plan.connections_max),
        ..arm.plan.load.clone()
    };
    Step::measure_trial(side_profile_tag(turn), PlanRecord { load, ..arm.plan.clone() }, StopRule::EndOfSchedule)
}

/// Returns the rate at which both sides are profiled, 1/s. If the blocks have a fixed rate, this
/// rate is returned. Without a fixed rate, the result is a share of the goodput of the slower side
/// ([`PROFILING_RATE_SHARE`]). Returns `None` if one side has no goodput.
fn common_profiling_rate(trials: &[Trial], blocks: &[ComparisonBlock]) -> Option<f64> {
    let plans = arm_plans(trials, 1);
    if let Some(LoadShape::Open { rate, .. }) = plans.first().map(|plan| &plan.load.shape) {
        return Some(rate.max());
    }
    let goodput = |arm: usize| {
        let mut all: Vec<f64> = blocks.iter().map(|block| block.arm_loads[arm].goodput_rps()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    let rate = goodput(0)?.min(goodput(1)?) * PROFILING_RATE_SHARE;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{ProfileRecord, Run};

    #[test]
    fn profiling_turns_alternate_between_sides() {
        let names: Vec<String> = (0..PROFILE_SIDE_ORDER.len())
            .map(|turn| {
                let tag = side_profile_tag(turn);
                assert_eq!(side_profile_index(&tag), Some(turn));
                format!("{}{}", tag.arm.map_or('-', ArmIndex::letter), tag.turn)
            })
            .collect();
        assert_eq!(names, ["A0", "B0", "B1", "A1", "A2", "B2", "B3", "A3"]);
    }

    /// Checks that profiling makes one load for each rate, or records an event why there is no
    /// load, and ends afterwards.
    #[test]
    fn profiling_levels_run_in_order_and_end() {
        let base =
            Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
        let spec = ProfilesSpec { bases: vec!["http://h/debug/pprof".into()], seconds: 2 };
        let step = |trials: &[Trial], events: &[ExperimentEvent], level_rps: f64| {
            let history = History { trials, events, elapsed_ns: SECOND };
            next_single_target_step(&spec, &base, level_rps, &history)
        };
        let Step::Measure(low) = step(&[], &[], 1000.0) else { panic!("a load at the low level") };
        assert_eq!(
            (low.tag, low.plan.load.shape.curve().max()),
            (single_target_profile_tag(0), profiling_rates_rps(1000.0)[0])
        );
        let trials = [Trial { tag: low.tag, start_ns: 0, run: Run::new(low.plan) }];
        let Step::Measure(high) = step(&trials, &[], 1000.0) else { panic!("a load at the level in question") };
        assert_eq!((high.tag, high.plan.load.shape.curve().max()), (single_target_profile_tag(1), 1000.0));
        // The event says why the profile at the higher rate could not be taken.
        let missing = ProfileRecord { tag: high.tag, kind: "cpu".into(), trial: None, file: Err("no room".into()) };
        assert!(matches!(step(&trials, &[ExperimentEvent::Profile(missing.clone())], 1000.0), Step::Stop));
        // A server that sustains no rate gets a single event, and no load for a profile.
        assert!(
            matches!(step(&[], &[], 0.0), Step::SkipProfile(tag, NoProfileReason::NothingSustained) if tag == single_target_profile_tag(0))
        );
        let said = ExperimentEvent::Profile(ProfileRecord { tag: single_target_profile_tag(0), ..missing });
        assert!(matches!(step(&[], &[said], 0.0), Step::Stop));
    }
}
