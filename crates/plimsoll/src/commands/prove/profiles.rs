//! `prove --pprof`: after the blocks, CPU profiles of both sides at one rate, several in turn, so that what differs from
//! one to the next is known beside what differs between the builds.
//!
//! Kept beside the run file; what is said of them is computed from these and the run file. Not here: arithmetic
//! (`plimsoll-analysis`), how it looks (`plimsoll-report`).

use crate::base::user_info;
use crate::commands::capture::keep;
use crate::conduct::{Conduct, Saying};
use crate::failure::Failure;
use crate::fetch::awaited;
use crate::pprof::{Endpoint, PATIENCE};
use crate::runner::builds::BuildTarget;
use plimsoll_analysis::prove::{self, Block, arm_name};
use plimsoll_analysis::study::climb::WARMUP_FRESH_NS;
use plimsoll_analysis::study::{TrialPlan, Until};
use plimsoll_model::terms::ProfilesTerms;
use plimsoll_model::units::SECOND;
use plimsoll_model::{
    ArmIndex, Arrivals, BlocksAsked, Curve, Ending, Load, LoadShape, Plan, PlanRecord, ProfilesAsked, Purpose, Served,
    Stop, Tag, Terms, Trial,
};
use plimsoll_report::format;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whose profile is taken, one after the other: a drift of the machine meets both sides alike.
const TURNS: [u8; 8] = [0, 1, 1, 0, 0, 1, 1, 0];
/// Load before a profile begins; a build that was just started gets what `--warmup` says on top.
const WARMUP_NS: u64 = SECOND;
/// A server needs some time to stop a profile and to write it.
const GAP_NS: u64 = SECOND / 2;
/// Share of what the slower side can do: well below, so that both are steady.
const RATE_SHARE: f64 = 0.6;
/// Connections made ready, at most.
const READY_MAX: f64 = 512.0;

/// Profiles that are going to be taken.
pub struct AskedProfiles<'a> {
    targets: &'a [BuildTarget],
    endpoints: [Endpoint; 2],
    seconds: u32,
    /// Load before a profile, ns.
    warmup_ns: u64,
    arrivals: Arrivals,
}

impl<'a> AskedProfiles<'a> {
    /// The profiles that are asked for. Of servers that run already, looks whether they will do it, so that nobody waits in
    /// vain.
    pub fn of(
        blocks: &BlocksAsked<Plan>,
        terms: &Terms<String>,
        targets: &'a [BuildTarget],
    ) -> Result<Option<AskedProfiles<'a>>, Failure> {
        let (Some(ProfilesTerms { served, seconds }), [a, b]) = (&terms.profiles, targets) else { return Ok(None) };
        let (public, seconds) = (terms.public, *seconds);
        let flagged = |error: Failure| Failure::usage(format!("--pprof: {error}"));
        let of_target = |target: &BuildTarget, number| {
            let plan = &target.base.plan;
            Endpoint::of_target(&plan.traffic.origin, user_info(plan, terms, number), public)
        };
        let [a, b] = match served {
            Served::ByTarget => [of_target(a, 0), of_target(b, 1)],
            Served::At(urls) => {
                [urls.first(), urls.last()].map(|url| Endpoint::resolve(url.map_or("", |url| url), public))
            }
        };
        let endpoints = [a.map_err(flagged)?, b.map_err(flagged)?];
        let fresh = targets.iter().any(|target| target.command.is_some());
        if !fresh {
            let [a, b] = &endpoints;
            a.check(seconds)?;
            // A server takes a while to give up a profile for which nobody waits: the same is not asked twice.
            if b.shown != a.shown {
                b.check(seconds)?;
            }
        }
        let warmup_ns = WARMUP_NS + if fresh { blocks.warmup_ns.unwrap_or(WARMUP_FRESH_NS) } else { 0 };
        Ok(Some(AskedProfiles { targets, endpoints, seconds, warmup_ns, arrivals: blocks.arrivals }))
    }

    /// What the run file says of it.
    pub fn recorded(&self) -> ProfilesAsked {
        let bases = self.endpoints.iter().map(|endpoint| endpoint.shown.clone()).collect();
        ProfilesAsked { bases, seconds: self.seconds }
    }
}

/// The place of a profile among the loads.
fn tag(turn: usize) -> Tag {
    Tag { purpose: Purpose::Profile, arm: Some(ArmIndex::Side(TURNS[turn])), turn: repetition(turn) as u32 }
}

/// How often this side had its turn before.
fn repetition(turn: usize) -> usize {
    TURNS[..turn].iter().filter(|arm| **arm == TURNS[turn]).count()
}

/// Drives the loads and writes the profiles beside the run file. Each is recorded with its side, its turn and its load, or with
/// the reason why there is none; nothing of that changes the verdict.
pub fn take(conduct: &mut Conduct, wanted: &AskedProfiles, blocks: &[Block], beside: &Path) {
    let warmup_ns = wanted.warmup_ns;
    let place = |turn: usize| (tag(turn), "cpu");
    let Some(rate) = profile_rate(conduct.recording.trials(), blocks) else {
        // The first turn of each side.
        for turn in [0, 1] {
            let reason = Err("there is no load that both sides hold".to_owned());
            keep(&mut conduct.recording, beside, place(turn), None, reason);
        }
        return;
    };
    let length_ns = warmup_ns + u64::from(wanted.seconds) * SECOND + GAP_NS;
    let all = format::duration(length_ns as f64 * TURNS.len() as f64);
    conduct.live.line(&format!("profiling both sides in turn at {} requests/s, {all}", format::rate(rate)));
    let mut patience = PATIENCE;
    for turn in 0..TURNS.len() {
        let driven = conduct.recording.trials().len();
        let taken = take_turn(conduct, wanted, turn, plan(wanted, turn, rate, length_ns), &mut patience);
        let trial = (conduct.recording.trials().len() > driven).then_some(driven as u32);
        keep(&mut conduct.recording, beside, place(turn), trial, taken);
        if plimsoll_sys::signal::interrupted() {
            break;
        }
    }
}

/// The load under which a profile is taken.
fn plan(wanted: &AskedProfiles, turn: usize, rate: f64, length_ns: u64) -> PlanRecord {
    let base = &wanted.targets[usize::from(TURNS[turn])].base;
    let load = Load {
        seed: plimsoll_model::rng::mix(base.plan.load.seed ^ rate.to_bits()),
        shape: LoadShape::Open { rate: Curve::constant(rate), arrivals: wanted.arrivals },
        requests_max: None,
        duration_ns: Some((length_ns - wanted.warmup_ns).next_multiple_of(Plan::TICK_NS)),
        warmup_ns: wanted.warmup_ns.next_multiple_of(Plan::TICK_NS),
        connections_ready: ((rate / 100.0 + 8.0).min(READY_MAX) as u32).min(base.plan.carriage.connections_max),
        ..base.plan.load.clone()
    };
    PlanRecord { load, ..base.plan.record() }
}

/// One profile of one side; the error completes "no profile: ...".
fn take_turn(
    conduct: &mut Conduct,
    wanted: &AskedProfiles,
    turn: usize,
    plan: PlanRecord,
    patience: &mut Duration,
) -> Result<Vec<u8>, String> {
    let (arm, tag) = (TURNS[turn], tag(turn));
    let (warmup_ns, total_ns) = (plan.load.warmup_ns, plan.load.warmup_ns + plan.load.duration_ns.unwrap_or(0));
    let endpoint = &wanted.endpoints[usize::from(arm)];
    let (mut taking, left) = (None, *patience);
    let driven = conduct.measure_beside(TrialPlan { tag, plan, until: Until::End }, &mut |tick| {
        if tick.end_ns >= warmup_ns && tick.end_ns > 0 && taking.is_none() {
            let (endpoint, seconds) = (endpoint.clone(), wanted.seconds);
            taking = Some(std::thread::spawn(move || endpoint.take("profile", seconds, left)));
        }
        Saying {
            doing: format!("profile {} of {}: {}", turn + 1, TURNS.len(), arm_name(arm)),
            why: "after the blocks, so that no figure of theirs pays for profiles".into(),
            elapsed_s: tick.end_ns as f64 / 1e9,
            total_s: Some(total_ns as f64 / 1e9),
        }
    });
    let ending = driven.map(|trial| trial.run.ending.clone()).map_err(|failure| failure.to_string());
    let waiting = Instant::now();
    let taken = match taking {
        Some(thread) => awaited(thread),
        None if plimsoll_sys::signal::interrupted() => Err("the user ended it".to_owned()),
        None => Err("the load ended early".to_owned()),
    };
    // The patience is one for all turns.
    *patience = patience.saturating_sub(waiting.elapsed());
    match ending? {
        Some(Ending::Stopped(Stop::Died(why))) => Err(why),
        _ => taken,
    }
}

/// The rate at which both sides are profiled, 1/s: that of the blocks, or what both hold easily.
fn profile_rate(trials: &[Trial], blocks: &[Block]) -> Option<f64> {
    let plans = prove::reading::block_plans(trials, 1);
    if let Some(LoadShape::Open { rate, .. }) = plans.first().map(|plan| &plan.load.shape) {
        return Some(rate.max());
    }
    let goodput = |arm: usize| {
        let mut all: Vec<f64> = blocks.iter().map(|block| block.readings[arm].goodput_rps).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    let rate = goodput(0)?.min(goodput(1)?) * RATE_SHARE;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_and_are_named() {
        let names: Vec<String> =
            (0..TURNS.len()).map(|turn| format!("{}{}", arm_name(TURNS[turn]), repetition(turn))).collect();
        assert_eq!(names, ["A0", "B0", "B1", "A1", "A2", "B2", "B3", "A3"]);
    }
}
