//! The table of rules: one row a cause, with the signs that must be there, those that must not, and those that speak for it.
//! Rules state laws (utilisation, Little's law, what a counter means), not how some server looks. A sign that is not known
//! speaks neither way; what is the same at a low load and at the line explains nothing, so that most signs ask for a change.
//!
//! Not here: how signs are weighed against each other (`weigh`), and sentences.

use super::cause::Cause;
use super::contrast::Contrast;
use super::demands::UsedResource;
use super::laws::{
    collected, downstream_full, downstream_slower, hands_on, held_to_cores, leaves_unsent, locked, locked_behind,
    more_served_than_worked_on, on_the_way, one_cores_worth, overflows, polls, pool_full, reads_late,
    shares_an_interpreter, spins, stops_to_collect, takes_all, takes_turns, thread_each, threads_at_work, unaccepted,
    waits_at_one_place, waits_for_data, waits_in_line, waits_unseen, window_full,
};
use super::signals::{FULL, LoadSignals, Signal};
use crate::find::StoppedBy;
use crate::sentence::{Remedy, SentencePart};
use plimsoll_model::units::MS;

/// What a sign does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignKind {
    /// Without it the cause is ruled out.
    Must,
    /// With it the cause is ruled out.
    MustNot,
    /// It speaks for the cause.
    Speaks,
}

/// Something that can be seen, and what it says of a cause.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    /// What it does.
    pub kind: SignKind,
    /// How strong it is as evidence: the logarithm of odds, roughly. 4 decides, if nothing speaks for another cause.
    pub weight: f64,
    /// What it is, as a sentence without a full stop that is true when the sign holds.
    pub yes: &'static str,
    /// The same when it does not.
    pub no: &'static str,
    /// The figures behind it, the most telling first.
    pub signals: &'static [Signal],
    /// Whether it holds; `None`: it was not seen.
    pub holds: fn(&Contrast) -> Option<bool>,
}

/// Rows are weighed in this order: one that is established in an earlier stage needs none of the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleStage {
    /// We ourselves, and others on the machine.
    Ourselves,
    /// Errors that name their cause.
    Errors,
    /// Limits that were set on purpose.
    Limits,
    /// What is full, and waiting while nothing is.
    Server,
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// When it is weighed.
    pub stage: RuleStage,
    /// What is looked at.
    pub signs: &'static [Sign],
    /// More special causes, of which this one is the outward look: where one of them is established as well, that is first.
    pub yields_to: &'static [Cause],
    /// What must be looked at to tell, where it was not.
    pub to_tell: &'static [SentencePart],
}

const fn must(
    weight: f64,
    yes: &'static str,
    no: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::Must, weight, yes, no, signals, holds }
}

const fn must_not(
    yes: &'static str,
    no: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::MustNot, weight: 0.0, yes, no, signals, holds }
}

const fn speaks(
    weight: f64,
    yes: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::Speaks, weight, yes, no: "", signals, holds }
}

const fn words(words: &'static str) -> SentencePart {
    SentencePart::words(words)
}

/// Something is waited for while nothing that works is full: what all causes of waiting have in common.
const NOTHING_FULL: Sign = must(
    0.0,
    "no thread is full and cores are idle, while requests wait",
    "a thread or the cores are full",
    &[Signal::Idle, Signal::FullestThread],
    Contrast::nothing_full,
);
/// A thread that works for this share of the time has long queues before it at times.
const BUSY: f64 = 0.75;
/// Requests that are served at a time where it is one after the other, as far as the time of one that is alone tells.
const ONE_AT_A_TIME: std::ops::Range<f64> = 0.7..1.35;
/// A server that is warm holds so much of what it did not hold before, where something else ends it now: every runtime that compiles
/// becomes faster by a part of that.
const WARMER: f64 = 2.0;
/// A server that uses so many cores has more than one thread that works.
const MORE_THAN_ONE: f64 = 1.25;
const PLATEAU: Sign = must(
    0.0,
    "more load brings no more answers",
    "more load brought more answers",
    &[Signal::Goodput, Signal::Offered],
    Contrast::plateau,
);
const PROBES: &[SentencePart] = &[
    words("the server's processes: run plimsoll on its machine, as its user or as root ("),
    SentencePart::Remedy(Remedy::Process),
    words(" where it is not found)"),
];

/// The table.
pub const RULES: &[Rule] = &[
    Rule {
        cause: Cause::Client,
        stage: RuleStage::Ourselves,
        signs: &[must(
            6.0,
            "plimsoll could not make the load, or takes answers later than the server sends them",
            "plimsoll had room",
            &[Signal::Generator, Signal::ClientCores, Signal::InFlight, Signal::WindowLimited],
            |case| {
                // Where others use the machine up it is they who leave us no room.
                let of = |sight: &LoadSignals| sight.limited.is_some() && sight.disturbed.is_none();
                let here = of(&case.line) || of(&case.past) && case.upper_rps.is_none();
                let whole = case.stopped_by == StoppedBy::Client && case.line.disturbed.is_none();
                let few = case.held_by_our_connections().unwrap_or(false);
                let ours = !case.line.read_by_others && window_full(case).unwrap_or(false);
                let slow = ours && case.nothing_full() == Some(true) && case.plateau() == Some(true);
                Some(whole || here || few || slow)
            },
        )],
        yields_to: &[Cause::Ports],
        to_tell: &[],
    },
    Rule {
        cause: Cause::None,
        stage: RuleStage::Ourselves,
        signs: &[must(
            6.0,
            "the highest rate allowed still holds",
            "the highest rate allowed was not what ended it",
            &[Signal::Goodput],
            |case| Some(case.stopped_by == StoppedBy::MaxRate && case.upper_rps.is_none()),
        )],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Neighbour,
        stage: RuleStage::Ourselves,
        signs: &[
            must(
                4.0,
                "others on the machine used cores that were wanted",
                "nobody else used much of the machine",
                &[Signal::Others, Signal::Steal],
                |case| {
                    // A search that was disturbed says less than a steady load that was not: by that the server is judged, and the
                    // search only where the server holds more now than it did then.
                    let near = if case.line.is_seen() { &case.line } else { &case.past };
                    let seen = near.get(Signal::Others).or(near.get(Signal::Steal)).is_some();
                    let searched = case.stopped_by == StoppedBy::Disturbed;
                    match seen {
                        true => Some(near.disturbed.is_some() || searched && case.holds_more().is_some()),
                        false => searched.then_some(true),
                    }
                },
            ),
            must(
                1.0,
                "what they used does not follow the load",
                "what they used grows with the load: it works for the server",
                &[Signal::Others],
                |case| {
                    let near = case.line.get(Signal::Others).or(case.past.get(Signal::Others));
                    let (low, line) = (case.low.get(Signal::Others)?, near?);
                    Some(low >= 0.4 * line || case.line.get(Signal::Steal).is_some_and(|share| share > 0.05))
                },
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the machine's CPU time (probes)")],
    },
    Rule {
        cause: Cause::Ports,
        stage: RuleStage::Errors,
        signs: &[must(
            6.0,
            "connections found no local port",
            "connections found local ports",
            &[Signal::TimeWait, Signal::ConnectFailed],
            |case| {
                let ours = case.line.no_port + case.past.no_port > 0;
                // The server's own connections: nearly all ports to one peer are used up, and requests fail.
                let rise = case.peer().is_some()
                    && case.reaches(Signal::TimeWait, 0.85).unwrap_or(false)
                    && case.rises(Signal::TimeWait, 2.0).unwrap_or(false);
                // They are held for a minute: what the search used up is missed at a low load, too, or at the first one at which a
                // server that is busy with failing could be asked for them. They are not ours, as we still opened connections.
                let first =
                    [&case.low, &case.half, &case.line].into_iter().find(|it| it.get(Signal::TimeWait).is_some());
                let stay = first.is_some_and(|sight| {
                    let (used_up, failed) = (sight.get(Signal::TimeWait), sight.get(Signal::Failed));
                    used_up.is_some_and(|share| share >= 0.97)
                        && failed.is_some_and(|share| share >= 0.01)
                        && sight.opened > 0
                });
                Some(ours || (rise || stay) && case.reaches(Signal::Failed, 0.01).unwrap_or(false))
            },
        )],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Files,
        stage: RuleStage::Errors,
        signs: &[
            must(
                5.0,
                "the server has as many files open as it may",
                "the server may open more files",
                &[Signal::Files],
                |case| case.reaches(Signal::Files, 0.97),
            ),
            must(
                1.0,
                "it had fewer open at a low load",
                "it had as many open at a low load",
                &[Signal::Files],
                |case| Some(case.low.get(Signal::Files)? < 0.9),
            ),
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::AcceptBacklog,
        stage: RuleStage::Errors,
        signs: &[
            must(
                3.0,
                "new connections waited for a second or more, or failed, or most requests wait for theirs to be accepted",
                "connections were opened quickly, and accepted",
                &[Signal::Connect, Signal::ConnectFailed, Signal::Unaccepted],
                |case| {
                    if unaccepted(case) == Some(true) {
                        return Some(true);
                    }
                    let slow = case.reaches(Signal::Connect, 0.9e9).unwrap_or(false);
                    let failed = case.reaches(Signal::ConnectFailed, 0.01).unwrap_or(false);
                    // Connections that are made ready for a load all at once may overflow a short queue, too.
                    let none_turned_away = case.low.get(Signal::ListenOverflows) == Some(0.0);
                    let before = case.low.get(Signal::Connect).unwrap_or(0.0) >= 0.9e9 && !none_turned_away;
                    case.top(Signal::Connect).or(case.top(Signal::ConnectFailed))?;
                    Some((slow || failed) && !before)
                },
            ),
            must(
                1.0,
                "requests on connections that stood were answered as fast as ever, or hardly anything is worked on",
                "requests on connections that stood took longer, too: the server is busy with something else",
                &[Signal::Service],
                |case| {
                    let alone_ns = case.alone_ns.or(case.low.get(Signal::Service))?;
                    // What the kernel has accepted waits for the server to do so: that is in the time of its first request.
                    let idle = case.at_a_time().is_some_and(|count| count < 0.6);
                    Some(idle || case.past.get(Signal::Service).or(case.line.get(Signal::Service))? <= 2.0 * alone_ns)
                },
            ),
            must_not(
                "the server has hardly a core or thread to spare, or is stopped by a quota: it takes connections late since it is busy",
                "the server has room",
                &[Signal::FullestThread, Signal::Idle, Signal::Throttled],
                |case| {
                    let stopped = case.reaches(Signal::Throttled, 0.05).unwrap_or(false);
                    // A queue as short as those of connections overflows long before who empties it works all the time.
                    let busy = case.top(Signal::FullestThread)? >= BUSY;
                    Some(stopped || busy || case.cores_full()?)
                },
            ),
            speaks(2.0, "the kernel turned connections away from a full queue", &[Signal::ListenOverflows], overflows),
            speaks(1.0, "the queue of connections to be accepted was full", &[Signal::ListenQueue], |case| {
                case.reaches(Signal::ListenQueue, 0.9)
            }),
            speaks(
                2.0,
                "most requests that are under way wait for their connection to be accepted",
                &[Signal::Unaccepted, Signal::InFlight],
                unaccepted,
            ),
        ],
        // Who stands still, to collect garbage or for memory, takes no connections meanwhile.
        yields_to: &[Cause::Files, Cause::Gc, Cause::Memory],
        to_tell: &[words("the kernel's counters of the listening socket (probes)")],
    },
    Rule {
        cause: Cause::Memory,
        stage: RuleStage::Errors,
        signs: &[must(
            4.0,
            "the server waited for memory: pages were read back from storage, or its group's limit was reached",
            "no page had to be read back, and no limit of memory was near",
            &[Signal::MajorFaults, Signal::MemoryPressure, Signal::GroupMemory],
            |case| {
                let faults = case.top(Signal::MajorFaults)?;
                let paging = faults >= 50.0 && faults >= 5.0 * case.low.get(Signal::MajorFaults).unwrap_or(0.0);
                let low = case.low.get(Signal::MemoryPressure).unwrap_or(0.0);
                let pressed = case.top(Signal::MemoryPressure).is_some_and(|top| top >= 0.1 && top >= 3.0 * low);
                let limit = case.reaches(Signal::GroupMemory, 0.98).unwrap_or(false) && faults >= 10.0;
                Some(paging || pressed || limit)
            },
        )],
        yields_to: &[],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::CpuQuota,
        stage: RuleStage::Limits,
        signs: &[
            must(
                5.0,
                "the control group used up its quota and was stopped until the next period",
                "the server was not stopped by a quota",
                &[Signal::Throttled, Signal::Quota, Signal::ServerCores],
                |case| case.reaches(Signal::Throttled, 0.05),
            ),
            must(1.0, "it was not at a low load", "it was at a low load as well", &[Signal::Throttled], |case| {
                Some(case.low.get(Signal::Throttled)? < 0.5 * case.top(Signal::Throttled)?)
            }),
        ],
        yields_to: &[],
        to_tell: &[words("the server's control group ("), SentencePart::Remedy(Remedy::ControlGroup), words(")")],
    },
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Limits,
        signs: &[
            must(
                4.0,
                "what is too much is refused, and nothing was at a low load",
                "nothing was refused",
                &[Signal::Refused, Signal::Failed],
                |case| {
                    let low = case.low.get(Signal::Refused)?;
                    Some(case.top(Signal::Refused)? > 0.01 && low <= 0.1 * case.top(Signal::Refused)?)
                },
            ),
            must(
                1.0,
                "what is answered is answered as fast as at a low load",
                "what is answered takes longer, too: the server has all hands full",
                &[Signal::Service],
                |case| {
                    let low = case.low.get(Signal::Service)?;
                    // An answer by a timer of ours differs by some wake-ups.
                    Some(case.bottom(Signal::Service)? <= 2.0 * low + 0.3 * MS as f64)
                },
            ),
            must_not(
                "the server has no core or thread to spare: it refuses since it is full",
                "the server has room",
                &[Signal::Idle, Signal::FullestThread],
                |case| Some(case.thread_full()? || case.cores_full()?),
            ),
            speaks(1.0, "refusals come at once", &[Signal::FailedAfter], |case| {
                Some(case.top(Signal::FailedAfter)? <= case.low.get(Signal::Service)? * 2.0 + MS as f64)
            }),
            speaks(1.0, "what is answered stays the same, whatever is asked", &[Signal::Goodput], Contrast::plateau),
        ],
        yields_to: &[],
        to_tell: &[],
    },
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                4.0,
                "less than one request is served at a time: answers are held back, not worked on",
                "at least one request is served at a time",
                &[Signal::Service, Signal::Goodput],
                |case| Some(case.at_a_time()? < 0.6),
            ),
            must_not(
                "what it is sent is on its way, or what it sends to others is not taken",
                "nothing is on its way for long",
                &[Signal::PeerOnTheWay, Signal::PeerUnsent],
                |case| Some(on_the_way(case).unwrap_or(false) || leaves_unsent(case).unwrap_or(false)),
            ),
            must_not(
                "most requests wait for their connection to be accepted: nobody holds answers back",
                "connections are accepted",
                &[Signal::Unaccepted, Signal::InFlight],
                unaccepted,
            ),
            speaks(1.0, "answers come as evenly as a clock", &[Signal::Dispersion], |case| {
                Some(case.past.get(Signal::Dispersion)? < 0.3)
            }),
        ],
        // Answers that lie ready have been made: it is not the server that holds them back.
        yields_to: &[Cause::Network, Cause::SlowReader],
        to_tell: &[words("whether the server's cores are idle (probes)")],
    },
    // One that lets answers wait whose requests take longer than lies between them: experiments tell it from places for so many.
    Rule {
        cause: Cause::Limiter,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                2.5,
                "several requests are served at a time, and nothing that they wait for is to be seen",
                "it is to be seen what requests wait for, or one is served at a time",
                &[Signal::Service, Signal::Goodput, Signal::InFlight],
                |case| Some(case.at_a_time()? >= 1.6 && waits_unseen(case)?),
            ),
        ],
        yields_to: &[Cause::Network, Cause::SlowReader],
        to_tell: PROBES,
    },
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
                    Some(more >= WARMER || more > 0.0 && case.plateau() != Some(true))
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
        cause: Cause::Delay,
        stage: RuleStage::Limits,
        signs: &[
            must(
                5.0,
                "answers are later than promised even at a low load, where nobody waits",
                "at a low load answers are as fast as promised",
                &[Signal::P99, Signal::P50],
                Contrast::slow_when_low,
            ),
            must(
                0.0,
                "nothing is full at a low load",
                "the server is busy even at a low load",
                &[Signal::ServerCores, Signal::FullestThread],
                |case| Some(case.low.get(Signal::FullestThread).is_none_or(|share| share < 0.7)),
            ),
        ],
        yields_to: &[],
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
                    let beside = case.past.collects_beside || case.line.collects_beside;
                    let held = || held_to_cores(case) == Some(true) || takes_turns(case) == Some(true);
                    let full = || Some(case.thread_full()? || !case.cores_spare()? || held());
                    Some(!beside || stops_to_collect(case) || full()?)
                },
            ),
            must(
                1.0,
                "more of it than at a low load",
                "as much of it at a low load",
                &[Signal::Gc, Signal::ServerCores],
                |case| {
                    let work = |share: f64, cores: Option<f64>| Some(share * cores?);
                    let low = work(case.low.get(Signal::Gc).unwrap_or(0.0), case.low.get(Signal::ServerCores))?;
                    let top = work(case.top(Signal::Gc).unwrap_or(0.0), case.top(Signal::ServerCores))?;
                    let stops = case.rises(Signal::GcPauses, 1.5).unwrap_or(false);
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
                &[Signal::Idle, Signal::ServerCores, Signal::CoresAllowed, Signal::RunQueue],
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
    Rule {
        cause: Cause::Workers,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                1.0,
                "at least one request is served at a time",
                "less than one request is served at a time",
                &[Signal::Service, Signal::Goodput],
                |case| Some(case.at_a_time()? >= 0.6),
            ),
            must_not(
                "its threads become more as requests wait",
                "it has as many threads as before",
                &[Signal::Threads],
                |case| Some(case.past.get(Signal::Threads)? > case.line.get(Signal::Threads)? * 1.1 + 1.0),
            ),
            must_not(
                "it has a thread for each connection, so that none waits for one",
                "it has no thread for each connection",
                &[Signal::Threads, Signal::Accepted],
                thread_each,
            ),
            must_not(
                "its threads wait for each other: it has more of them than it lets in",
                "its threads do not wait for each other",
                &[Signal::InLock],
                locked,
            ),
            must_not(
                "its interpreter runs one thread at a time, and that one works all the time",
                "its threads do not take turns at a core",
                &[Signal::ServerCores, Signal::FullestThread],
                takes_turns,
            ),
            must_not(
                "its connections to others are fewer than its workers, and all in use",
                "no fixed number of connections is below that of its workers",
                &[Signal::PeerConnections],
                |case| Some(pool_full(case)? && case.peer()?.1 + 0.5 < case.worker_processes()?),
            ),
            speaks(3.0, "as many requests are served at a time as it has processes", &[Signal::Processes], |case| {
                let (workers, parallel) = (case.worker_processes()?, case.at_a_time()?);
                let all = case.top(Signal::Processes)?;
                let near = |count: f64| (parallel / count - 1.0).abs() <= 0.15;
                let as_many = near(workers) && (workers > 1.0 || case.top(Signal::Threads)? <= 2.0);
                Some((as_many || all > 1.0 && near(all)) && !takes_all(case).unwrap_or(false))
            }),
            speaks(
                3.0,
                "connections wait to be accepted while its workers have others",
                &[Signal::ListenQueue, Signal::Unaccepted, Signal::Service, Signal::ServerCores],
                |case| {
                    let (low, past) = (case.low.get(Signal::ListenQueue)?, case.past.get(Signal::ListenQueue)?);
                    let queues = past > 0.0 && past > 3.0 * low && case.past.get(Signal::Accepted)? > 1.0;
                    // Of every server some wait for a moment now and then, and of one that many are opened to a few.
                    let few = (0.02 * case.past.get(Signal::InFlight)?).max(1.0);
                    let waiting = case.past.get(Signal::Unaccepted).is_none_or(|count| count >= few);
                    Some(queues && waiting && more_served_than_worked_on(case)?)
                },
            ),
            speaks(
                3.0,
                "as many of its threads are at a request as are served at a time",
                &[Signal::InSleep, Signal::InRead, Signal::InDisk],
                |case| Some(case.at_a_time()? >= 1.6 && threads_at_work(case)?),
            ),
        ],
        yields_to: &[Cause::Lock, Cause::Pool, Cause::Disk, Cause::Network, Cause::SlowReader],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Pool,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                4.0,
                "its connections to what is behind it are a fixed number, whatever waits",
                "its connections to what is behind it are not a fixed number, or it asks nothing there",
                &[Signal::PeerConnections, Signal::InFlight],
                pool_full,
            ),
            must(
                1.0,
                "as many requests are served at a time as it has of these, or more: each is answered as fast as ever",
                "fewer requests are served at a time than it has of these",
                &[Signal::PeerConnections, Signal::Service],
                |case| Some(case.at_a_time()? >= 0.75 * case.peer()?.1),
            ),
            must_not("each worker has one of its own", "they are shared", &[Signal::Processes], |case| {
                let (workers, connections) = (case.worker_processes()?, case.peer()?.1);
                // Of a single process, threads are what may have one each: they are not told apart.
                Some(workers > 1.0 && connections >= workers && (case.at_a_time()? / workers - 1.0).abs() < 0.15)
            }),
        ],
        yields_to: &[],
        to_tell: &[words("the server's connections to others (probes, as its user or as root)")],
    },
    Rule {
        cause: Cause::Pool,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                4.0,
                "several requests are served at a time, and threads of the others wait in a line, each to be let in by itself",
                "no line of threads waits to be let in, or not each by itself",
                &[Signal::InLock, Signal::InSameLock, Signal::InSleep],
                |case| Some(case.at_a_time()? >= 1.6 && waits_in_line(case)?),
            ),
            must(
                1.0,
                "as many threads are at a request as are served at a time",
                "other threads are at a request than are served at a time",
                &[Signal::InSleep, Signal::InRead, Signal::InDisk],
                threads_at_work,
            ),
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
    // By Little's law alone: places in its code that nobody sees from outside (of coroutines, say). Requests at once decide, and nothing
    // else: a limit on the rate of some paths stands beside it.
    Rule {
        cause: Cause::Pool,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                2.0,
                "several requests are served at a time, and nothing that they wait for is to be seen, or each waits for a time by itself",
                "it is to be seen what requests wait for, or one is served at a time",
                &[Signal::Service, Signal::Goodput, Signal::InFlight, Signal::InSleep],
                |case| {
                    let by_itself = || Some(thread_each(case)? && polls(case)?);
                    Some(case.at_a_time()? >= 1.6 && (waits_unseen(case)? || by_itself().unwrap_or(false)))
                },
            ),
        ],
        yields_to: &[Cause::Lock, Cause::Disk, Cause::Network, Cause::SlowReader, Cause::AcceptBacklog],
        to_tell: PROBES,
    },
    // And one at a time for a part of the work, where coroutines wait for it.
    Rule {
        cause: Cause::Lock,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                2.0,
                "several requests are served at a time, and nothing that they wait for is to be seen",
                "it is to be seen what requests wait for, or one is served at a time",
                &[Signal::Service, Signal::Goodput, Signal::InFlight],
                |case| Some(case.at_a_time()? >= 1.6 && waits_unseen(case)?),
            ),
            must_not(
                "it is a proxy: what it hands on has nothing to wait for each other for",
                "it is no proxy",
                &[Signal::PeerWaiting],
                |case| Some(hands_on(case)),
            ),
        ],
        yields_to: &[Cause::Disk, Cause::SlowReader],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Downstream,
        stage: RuleStage::Server,
        signs: &[
            must(
                3.0,
                "what is behind it is full, or answers it later than at a low load",
                "nothing behind it is full or slower than at a low load",
                &[Signal::DownstreamCores, Signal::PeerWaiting, Signal::PeerConnections, Signal::Service],
                |case| Some(downstream_full(case)? || downstream_slower(case).unwrap_or(false)),
            ),
            must(
                0.0,
                "the server itself has room",
                "the server itself is full",
                &[Signal::FullestThread, Signal::ServerCores],
                |case| {
                    let own = case.top(Signal::ServerCores)?;
                    let less = case.top(Signal::DownstreamCores).is_some_and(|cores| cores > own);
                    Some(!case.thread_full()? && (case.cores_spare()? || less))
                },
            ),
            must_not(
                "its answers lie unread: they are not what is waited for",
                "its answers are read as they come",
                &[Signal::PeerUnread],
                reads_late,
            ),
            must_not(
                "its answers are on their way: it is the network that they wait for",
                "its answers arrive as they are sent",
                &[Signal::PeerOnTheWay, Signal::PeerUnread],
                on_the_way,
            ),
            must_not(
                "it is a database with nothing to do, whose statements wait for each other",
                "it is at work, or no database",
                &[Signal::PeerWaiting, Signal::DownstreamCores],
                locked_behind,
            ),
            speaks(3.0, "what is behind it has no core's worth left", &[Signal::DownstreamCores], downstream_full),
            speaks(
                2.0,
                "its calls have become slower",
                &[Signal::PeerWaiting, Signal::PeerConnections, Signal::Service],
                downstream_slower,
            ),
        ],
        yields_to: &[],
        to_tell: &[
            words("what the server calls, on this machine (probes) or by its own figures ("),
            SentencePart::Remedy(Remedy::Metrics),
            words(")"),
        ],
    },
    Rule {
        cause: Cause::Lock,
        stage: RuleStage::Server,
        signs: &[
            must(0.0, "cores are idle, while requests wait", "the cores are full", &[Signal::Idle], |case| {
                Some(case.cores_spare()? && !case.thread_full()?)
            }),
            PLATEAU,
            must(
                0.0,
                "it has several threads, or processes that wait for each other",
                "it has one thread only, or processes of one thread that do not wait for each other",
                &[Signal::Threads, Signal::Processes, Signal::InLock],
                |case| {
                    let (threads, processes) = (case.top(Signal::Threads)?, case.top(Signal::Processes)?);
                    // Processes of one thread share a lock where somebody has made one for them.
                    let alone = threads <= processes;
                    Some(if alone { processes >= 3.0 && locked(case).unwrap_or(true) } else { threads >= 3.0 })
                },
            ),
            must_not(
                "its connections to what is behind it are in use all the time",
                "it waits for no fixed number of connections",
                &[Signal::PeerConnections],
                |case| Some(pool_full(case).unwrap_or(false) && !polls(case).unwrap_or(false)),
            ),
            must_not(
                "those who wait wait for data, not for each other",
                "it is not data that is waited for",
                &[Signal::InRead, Signal::InLock],
                |case| {
                    let by_themselves = locked(case)? || polls(case).unwrap_or(false);
                    Some(waits_for_data(case)? || case.peer().is_some_and(|(_, count)| count >= 2.0) && !by_themselves)
                },
            ),
            must_not(
                "its interpreter runs one thread at a time anyhow",
                "its threads can run beside each other",
                &[Signal::ServerCores, Signal::FullestThread],
                takes_turns,
            ),
            must_not(
                "those who wait wait in a line, each to be let in by itself, and several are served at a time",
                "those who wait wait for one thing, or it is not known",
                &[Signal::InLock, Signal::InSameLock],
                |case| Some(case.at_a_time()? >= 1.6 && waits_in_line(case)?),
            ),
            must_not(
                "as many requests are served at a time as it has workers",
                "fewer requests are served at a time than it could",
                &[Signal::Processes, Signal::InLock, Signal::InSameLock],
                |case| {
                    let workers = case.worker_processes()?;
                    let as_many = workers > 1.0 && (case.at_a_time()? / workers - 1.0).abs() <= 0.15;
                    // That is chance where their threads all wait at one place.
                    Some(as_many && !waits_at_one_place(case).unwrap_or(false))
                },
            ),
            speaks(
                4.0,
                "one request is served at a time, although there are threads for more",
                &[Signal::Threads],
                |case| Some(ONE_AT_A_TIME.contains(&case.at_a_time()?)),
            ),
            speaks(
                4.0,
                "all its threads together use one core's worth",
                &[Signal::ServerCores, Signal::FullestThread],
                |case| Some(one_cores_worth(case)? && !shares_an_interpreter(case)),
            ),
            speaks(2.0, "threads wait for each other", &[Signal::InLock], |case| {
                let (low, top) = (case.low.get(Signal::InLock)?, case.past.get(Signal::InLock)?);
                let others =
                    case.past.get(Signal::InSleep).unwrap_or(0.0) + case.past.get(Signal::InDisk).unwrap_or(0.0);
                Some(top >= low + 2.0 && top > 2.0 * others)
            }),
            speaks(
                2.0,
                "threads sleep for moments, many more than are served: they look again and again whether it is their turn",
                &[Signal::InSleep, Signal::InFlight],
                |case| Some(!locked(case)? && polls(case)?),
            ),
            speaks(1.0, "its threads go to sleep more often a request", &[Signal::Switches], |case| {
                case.rises(Signal::Switches, 1.5)
            }),
            speaks(1.0, "more load brings fewer answers", &[Signal::Goodput], |case| {
                Some(case.past.get(Signal::Goodput)? < 0.93 * case.line.get(Signal::Goodput)?)
            }),
        ],
        // One reader for all answers lets one through at a time, too.
        yields_to: &[Cause::Disk, Cause::SlowReader],
        to_tell: PROBES,
    },
    // In a database that it asks.
    Rule {
        cause: Cause::Lock,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                5.0,
                "calls to a database pile up, while it neither works nor waits for storage: statements wait for each other there",
                "no database behind it leaves calls unanswered with nothing to do",
                &[Signal::PeerWaiting, Signal::DownstreamCores, Signal::IoPressure],
                locked_behind,
            ),
        ],
        yields_to: &[Cause::SlowReader],
        to_tell: PROBES,
    },
    // By what spins: cores may be full then, and more of them would spin as well.
    Rule {
        cause: Cause::Lock,
        stage: RuleStage::Server,
        signs: &[
            must(
                5.0,
                "a quarter or more of its CPU time waits for locks",
                "little of its CPU time waits for locks",
                &[Signal::Spinning, Signal::ServerCores],
                |case| Some(spins(case)),
            ),
            must(
                1.0,
                "more of it a request than at a low load",
                "as much of it a request at a low load",
                &[Signal::Spinning, Signal::ServerCpu],
                |case| {
                    let cost = |sight: &LoadSignals| Some(sight.get(Signal::Spinning)? * sight.get(Signal::ServerCpu)?);
                    let top = cost(&case.past).or(cost(&case.line))?;
                    Some(top >= 2.0 * cost(&case.low)?)
                },
            ),
            PLATEAU,
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::Disk,
        stage: RuleStage::Server,
        signs: &[
            must(
                4.0,
                "threads wait for storage",
                "no thread waits for storage",
                &[Signal::Blocked, Signal::InDisk, Signal::IoPressure],
                |case| {
                    let rises = |signal: Signal, least: f64| {
                        let low = case.low.get(signal).unwrap_or(0.0);
                        // Where one waits at a time at least, it cannot become twice as much.
                        let more = |top: f64| top >= 2.0 * low || top >= 0.7 && low <= 0.6 && top >= 1.3 * low;
                        case.top(signal).map(|top| top >= least && more(top))
                    };
                    // Where one request is served at a time, less of it is a large part of what is done.
                    let one = case.at_a_time().is_some_and(|count| ONE_AT_A_TIME.contains(&count));
                    let own = [rises(Signal::Blocked, 0.4), rises(Signal::InDisk, 0.4)];
                    let machine = rises(Signal::IoPressure, if one { 0.25 } else { 0.3 });
                    let seen = own.into_iter().chain([machine]).flatten();
                    seen.reduce(|a, b| a || b)
                },
            ),
            must(0.0, "the cores are not what is full", "the cores are full", &[Signal::Idle], Contrast::cores_spare),
            speaks(2.0, "they are the server's own", &[Signal::Blocked, Signal::InDisk], |case| {
                let blocked = case.reaches(Signal::Blocked, 0.4).unwrap_or(false);
                Some(blocked || case.reaches(Signal::InDisk, 0.4)?)
            }),
        ],
        yields_to: &[],
        to_tell: PROBES,
    },
    Rule {
        cause: Cause::SlowReader,
        stage: RuleStage::Server,
        signs: &[
            must(
                5.0,
                "what is sent is not read: the reader's window was full for most of the time, or answers, or what others get, lie unread",
                "whoever reads the answers took what was sent",
                &[
                    Signal::WindowLimited,
                    Signal::WindowWaiting,
                    Signal::SendQueue,
                    Signal::PeerUnread,
                    Signal::PeerUnsent,
                ],
                |case| {
                    let by_others = case.line.read_by_others || case.past.read_by_others;
                    let window = window_full(case).map(|full| full && by_others);
                    [window, reads_late(case), leaves_unsent(case)].into_iter().flatten().reduce(|a, b| a || b)
                },
            ),
            NOTHING_FULL,
            PLATEAU,
            speaks(
                3.0,
                "it is others than those who ask that leave it, whatever answers are",
                &[Signal::PeerUnsent],
                leaves_unsent,
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the kernel's account of the connections (probes)")],
    },
    Rule {
        cause: Cause::Network,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            must(
                4.0,
                "answers lie ready to leave the server, or are sent again and again, or are on their way to it from behind",
                "what the server sends leaves it",
                &[Signal::SendQueue, Signal::PeerOnTheWay, Signal::Retransmits, Signal::BytesIn],
                |case| {
                    if on_the_way(case) == Some(true) {
                        return Some(true);
                    }
                    let (low, top) = (case.low.get(Signal::SendQueue)?, case.top(Signal::SendQueue)?);
                    // More waits than a few answers, and a noticeable part of what is sent in a second.
                    let waits = top >= 64e3 && top >= 10.0 * low && top >= 0.02 * case.top(Signal::BytesIn)?;
                    let lost = case.top(Signal::Retransmits).unwrap_or(0.0);
                    let lossy = lost >= 0.02 && lost >= 3.0 * case.low.get(Signal::Retransmits).unwrap_or(0.0);
                    Some(waits || lossy)
                },
            ),
            speaks(
                3.0,
                "a tenth of a second's worth or more is on its way from behind, while the server reads all that arrives",
                &[Signal::PeerOnTheWay, Signal::PeerUnread],
                on_the_way,
            ),
            must_not("the reader took no more", "the reader took what was sent", &[Signal::WindowLimited], |case| {
                case.reaches(Signal::WindowLimited, 0.5)
            }),
            must_not(
                "what is sent again was sent to a server that had not read what came before",
                "what came was read",
                &[Signal::PeerUnread],
                reads_late,
            ),
            must_not(
                "what is sent again asks for connections, which a full queue turned away",
                "no connection was turned away",
                &[Signal::ListenOverflows],
                overflows,
            ),
        ],
        yields_to: &[],
        to_tell: &[words("the kernel's account of the connections (probes)")],
    },
];
