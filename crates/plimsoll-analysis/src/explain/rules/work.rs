//! Rows of what works all the time, or works less from now on: a thread, cores, a collector, few workers, warming up.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{PROBES, Rule, RuleStage, must, must_not, speaks, words};
use crate::explain::cause::Cause;
use crate::explain::demands::UsedResource;
use crate::explain::laws::{collected, held_to_cores, stops_to_collect, takes_turns};
use crate::explain::signals::{FULL, LoadSignals, Signal};
use crate::sentence::{Remedy, SentencePart};

/// A server that is warm holds so much of what it did not hold before, where something else ends it now: every runtime that compiles
/// becomes faster by a part of that.
const WARMER: f64 = 2.0;
/// Collectors that requests have to stop for take so much of a core at the least where that is felt.
const STOPPED_CORES: f64 = 0.15;
/// So many cores are idle where somebody else could still work.
const IDLE_SOME: f64 = 0.2;
/// A server that uses so many cores has more than one thread that works.
const MORE_THAN_ONE: f64 = 1.25;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    Rule {
        cause: Cause::WarmUp,
        stage: RuleStage::Server,
        signs: &[
            must(
                4.0,
                "the server held more after the search than it did during it",
                "what did not hold in the search did not hold afterwards",
                &[Signal::Goodput, Signal::P99],
                |case| {
                    // Where it was pushed on to what it cannot answer, a little more than before is the work of chance, or of a compiler
                    // that goes on: what ends it now is what holds the line.
                    let more = case.holds_more().unwrap_or(0.0);
                    let answers = case.answers_more().unwrap_or(0.0);
                    Some(more.max(answers) >= WARMER || more > 0.0 && case.plateau() != Some(true))
                },
            ),
            // A line that lay too low by chance is passed later, too: what is warm now was slower before, or compiled code.
            must(
                2.0,
                "a request alone took longer at the beginning, or its runtime compiled code",
                "a request alone took as long at the beginning",
                &[Signal::Service, Signal::Compiling],
                |case| {
                    let compiled = [&case.low, &case.half].map(|sight| sight.get(Signal::Compiling).unwrap_or(0.0));
                    // On average, as that of the first: a few that take long, as those that meet a collector, are in both. Who becomes warm
                    // under more load takes less then than alone before, whoever else is served; unless it is acknowledgements that differ.
                    let mean_ns = |sight: &LoadSignals| sight.service_mean_ns.or(sight.get(Signal::Service));
                    let all = if case.held_back_ns.is_some() { 1 } else { 4 };
                    let loads = [&case.low, &case.half, &case.line, &case.past].into_iter().take(all);
                    let now_ns = loads.filter_map(mean_ns).reduce(f64::min)?;
                    let was_slower = case.alone_first_ns? >= 1.5 * now_ns;
                    Some(was_slower || compiled[0].max(compiled[1]) >= 0.1)
                },
            ),
        ],
        // Who collects garbage for most of its time does so when it is warm, too.
        yields_to: &[Cause::Gc],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Gc,
        stage: RuleStage::Server,
        signs: &[
            must(
                5.0,
                "a quarter or more of its CPU time collects garbage, or it stands still for that",
                "little of its CPU time collects garbage",
                &[Signal::Gc, Signal::GcPauses],
                |case| {
                    let share = collected(case).or(case.top(Signal::GcPauses).map(|_| 0.0))?;
                    Some(share >= 0.25 || stops_to_collect(case))
                },
            ),
            must(
                0.0,
                "it takes them from requests: nothing is to spare, or they have to stop for it",
                "cores are to spare: what collects takes them from nobody",
                &[Signal::Idle, Signal::GcPauses],
                |case| {
                    // So little of a core stops nobody for long.
                    let little = collected(case)? * case.top(Signal::ServerCores)? < STOPPED_CORES;
                    let beside = case.past.collects_beside || case.line.collects_beside || little;
                    let held = || held_to_cores(case) == Some(true) || takes_turns(case) == Some(true);
                    let full = || Some(case.thread_full()? || !case.cores_spare()? || held());
                    Some(!beside || stops_to_collect(case) || full()?)
                },
            ),
            must(
                1.0,
                "more of it than at a low load, or it keeps a low load from being answered, too",
                "as much of it at a low load",
                &[Signal::Gc, Signal::ServerCores],
                |case| {
                    let work = |share: f64, cores: Option<f64>| Some(share * cores?);
                    let low = work(case.low.get(Signal::Gc).unwrap_or(0.0), case.low.get(Signal::ServerCores))?;
                    let top = work(case.top(Signal::Gc).unwrap_or(0.0), case.top(Signal::ServerCores))?;
                    let stops = case.rises(Signal::GcPauses, 1.5).unwrap_or(false);
                    // What was too much has left it with more than it can collect.
                    let unanswered = case.low.get(Signal::Goodput)? < 0.5 * case.low.get(Signal::Offered)?;
                    let stops = stops || unanswered && case.collects_alone().unwrap_or(false);
                    // What it took at a low load nobody wanted; of full cores it takes most from requests.
                    let top_share = case.top(Signal::Gc).unwrap_or(0.0);
                    let stops =
                        stops || top_share >= 0.5 && case.low.get(Signal::Idle)? >= IDLE_SOME && case.cores_full()?;
                    // Idle cores collect at a low load as well, so that it does not grow as requests do.
                    Some(top >= 1.2 * low && top > 0.0 || stops)
                },
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the runtime's own figures ("), SentencePart::Remedy(Remedy::Metrics), words(")")],
    },
    Rule {
        cause: Cause::OneThread,
        stage: RuleStage::Server,
        signs: &[
            must(
                4.0,
                "one thread works all the time, or all of them take turns at one core's worth",
                "no thread works all the time",
                &[Signal::FullestThread, Signal::ServerCores, Signal::Idle],
                |case| Some(case.thread_full()? || takes_turns(case)?),
            ),
            must(0.0, "no second one does", "several threads have no room", &[Signal::FullThreads], |case| {
                Some(case.top(Signal::FullThreads)? <= 1.0)
            }),
            must_not(
                "it may run on one core only, which is used up",
                "it may run on more than one core",
                &[Signal::CoresAllowed, Signal::ServerCores],
                |case| Some(case.bound_to_one() && case.allowed_full()?),
            ),
            must_not(
                "its other threads use up the cores that are left: a second one like it would have none",
                "there is a core for a second one",
                &[Signal::Idle, Signal::ServerCores],
                |case| Some(case.cores_full()? && case.top(Signal::ServerCores)? >= MORE_THAN_ONE),
            ),
            must(
                1.0,
                "it had room at a low load",
                "it has as little room at a low load",
                &[Signal::FullestThread],
                |case| Some(case.low.get(Signal::FullestThread)? < 0.6 * FULL),
            ),
            speaks(1.0, "its work a request predicts the line", &[Signal::FullestThread], |case| {
                let ceiling = case.demand(UsedResource::Thread)?.ceiling_rps;
                Some((0.8..1.15).contains(&(case.best_rps / ceiling)))
            }),
        ],
        yields_to: &[Cause::Gc, Cause::WarmUp, Cause::Disk],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Cpu,
        stage: RuleStage::Server,
        signs: &[
            must(
                4.0,
                "all cores that it may use are in use",
                "cores are idle",
                &[
                    Signal::Idle,
                    Signal::ServerCores,
                    Signal::DownstreamOnItsCores,
                    Signal::CoresAllowed,
                    Signal::RunQueue,
                ],
                |case| Some(case.cores_full()? || case.allowed_full().unwrap_or(false) || held_to_cores(case)?),
            ),
            must(
                1.0,
                "most were idle at a low load",
                "they were in use at a low load, too",
                &[Signal::Idle, Signal::ServerCores],
                |case| Some(case.low.get(Signal::ServerCores)? < 0.6 * case.top(Signal::ServerCores)?),
            ),
            must_not(
                "others use more of them than the server does",
                "it is the server that uses them",
                &[Signal::Others, Signal::ServerCores],
                |case| {
                    let behind = case.top(Signal::DownstreamCores).unwrap_or(0.0);
                    Some(case.bottom(Signal::Others)? > case.top(Signal::ServerCores)? + behind)
                },
            ),
            must_not(
                "one thread is full, which more cores would not help",
                "its threads share the work",
                &[Signal::FullestThread],
                |case| {
                    Some(
                        case.thread_full()?
                            && !case.bound_to_one()
                            && case.top(Signal::FullThreads)? <= 1.0
                            && case.top(Signal::ServerCores)? < MORE_THAN_ONE,
                    )
                },
            ),
            speaks(1.0, "threads wait for a core", &[Signal::RunQueue], |case| case.rises(Signal::RunQueue, 3.0)),
            speaks(1.0, "its work a request predicts the line", &[Signal::ServerCpu], |case| {
                let bound = case.demand(UsedResource::Allowed).filter(|_| case.allowed_full() == Some(true));
                let ceiling = bound.or(case.demand(UsedResource::Cores))?.ceiling_rps;
                Some((0.8..1.15).contains(&(case.best_rps / ceiling)))
            }),
        ],
        yields_to: &[Cause::Gc, Cause::WarmUp, Cause::Downstream, Cause::Disk, Cause::Lock],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Workers,
        stage: RuleStage::Server,
        signs: &[
            must(
                5.0,
                "several threads are full, and cores are idle: there are too few of them",
                "it is not threads that are full",
                &[Signal::FullThreads, Signal::Idle],
                |case| Some(case.top(Signal::FullThreads)? >= 2.0 && case.cores_spare()?),
            ),
            must(
                1.0,
                "they had room at a low load",
                "they have as little room at a low load",
                &[Signal::FullThreads],
                |case| Some(case.low.get(Signal::FullThreads)? < 1.0),
            ),
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
];
