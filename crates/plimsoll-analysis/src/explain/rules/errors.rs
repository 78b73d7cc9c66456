//! Rows of what runs out with an error: ports, files, the queue of connections, memory.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{PROBES, Rule, RuleStage, must, must_not, speaks, words};
use crate::explain::cause::Cause;
use crate::explain::laws::{overflows, ports_in_turn, unaccepted, writes_wait};
use crate::explain::signals::{LoadSignals, Signal};

/// A thread that works for this share of the time has long queues before it at times.
const BUSY: f64 = 0.75;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
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
                let asks = |sight: &LoadSignals| !sight.peers.is_empty();
                let rise = (asks(&case.line) || asks(&case.past))
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
                let in_turn = ports_in_turn(case).unwrap_or(false);
                Some(ours || in_turn || (rise || stay) && case.reaches(Signal::Failed, 0.01).unwrap_or(false))
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
                    let stopped = case.quota_full().unwrap_or(false);
                    // A queue as short as those of connections overflows long before who empties it works all the time.
                    let busy = case.top(Signal::FullestThread)? >= BUSY;
                    Some(stopped || busy || case.cores_full()?)
                },
            ),
            must_not(
                "threads wait until somebody reads what they write: it takes connections late for that",
                "no thread waits for whoever reads what it writes",
                &[Signal::InWrite],
                writes_wait,
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
        yields_to: &[Cause::Files, Cause::Ports, Cause::Gc, Cause::Memory],
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
        cause: Cause::Memory,
        stage: RuleStage::Errors,
        signs: &[must(
            6.0,
            "the kernel ended processes of the server's control group, which had used up its memory",
            "the kernel ended none of its processes",
            &[Signal::GroupMemory],
            |case| Some(case.killed? >= 1.0),
        )],
        yields_to: &[],
        to_tell: &[],
    },
];
