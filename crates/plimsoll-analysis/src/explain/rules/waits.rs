//! Rows of what waits while nothing works: for workers, places, what is behind, each other.
//!
//! Not here: what a row is, and the other rows (`rules`).

use super::sign::{NOTHING_FULL, PLATEAU, PROBES, Rule, RuleStage, Sign, must, must_not, speaks, words};
use crate::explain::cause::Cause;
use crate::explain::laws::{
    ONE_AT_A_TIME, alike_as_connections, alike_as_served, calls_are_few, calls_as_served, comes_in_for_long,
    downstream_full, downstream_slower, hands_on, hands_on_to_cores, locked, locked_behind, more_served_than_worked_on,
    none_left_idle, on_the_way, one_cores_worth, polls, pool_full, queues_behind, reads_late, shares_an_interpreter,
    sleeps_unasked, spins, takes_all, takes_turns, thread_each, threads_at_work, waits_at_one_place, waits_for_data,
    waits_in_line, waits_unseen, worker_each,
};
use crate::explain::signals::{LoadSignals, Signal};
use crate::sentence::{Remedy, SentencePart};

/// What is behind the server takes the connections to it: what is waited for is not its workers.
const ACCEPTED_BEHIND: Sign = must_not(
    "connections to it wait there to be accepted: it is its workers that are few",
    "connections to it are accepted",
    &[Signal::PeerQueued, Signal::InFlight],
    queues_behind,
);

/// The rows.
pub(super) const ROWS: &[Rule] = &[
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
            speaks(
                3.0,
                "no thread is left that waits for work: as many fewer do as more requests are served at a time",
                &[Signal::InLock, Signal::Threads],
                |case| Some(case.at_a_time()? >= 1.6 && none_left_idle(case)?),
            ),
            speaks(
                3.0,
                "as many of its threads are called alike as requests are served at a time",
                &[Signal::Threads, Signal::Service],
                |case| Some(case.at_a_time()? >= 1.6 && alike_as_served(case)?),
            ),
        ],
        yields_to: &[Cause::Lock, Cause::Pool, Cause::Disk, Cause::Network, Cause::SlowReader],
        to_tell: PROBES,
    },
    // Those of what is behind it.
    Rule {
        cause: Cause::Workers,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                6.0,
                "connections to what is behind it wait there to be accepted, although that has cores to spare",
                "no connections to what is behind it wait to be accepted",
                &[Signal::PeerQueued, Signal::InFlight],
                |case| Some(queues_behind(case)? && case.at_a_time()? >= 0.6),
            ),
        ],
        yields_to: &[Cause::Lock, Cause::Disk],
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
            must_not(
                "what is behind it is full: more connections to it would bring no more answers",
                "what is behind it has room",
                &[Signal::DownstreamCores],
                downstream_full,
            ),
            ACCEPTED_BEHIND,
            must_not(
                "each worker has one of its own",
                "they are shared",
                &[Signal::Processes, Signal::InLock],
                |case| {
                    let connections = case.peer()?.1;
                    let served = case.at_a_time()?;
                    // Of a single process, threads are what may have one each: none is left then that has none.
                    let threads = none_left_idle(case).unwrap_or(false) && connections >= 0.85 * served;
                    let workers = case.worker_processes()?;
                    let processes = workers > 1.0 && connections >= workers && (served / workers - 1.0).abs() < 0.15;
                    Some(processes || threads || alike_as_connections(case).unwrap_or(false))
                },
            ),
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
    // Of connections that come and go, as of a proxy that has a fixed number of requests at a server: their number says nothing, that of
    // the calls on them does.
    Rule {
        cause: Cause::Pool,
        stage: RuleStage::Server,
        signs: &[
            NOTHING_FULL,
            PLATEAU,
            must(
                4.0,
                "as many calls to what is behind it are under way as requests are served at a time, however many wait",
                "other calls to what is behind it are under way than requests are served at a time",
                &[Signal::PeerWaiting, Signal::PeerComing, Signal::Service, Signal::InFlight],
                calls_as_served,
            ),
            must_not(
                "what is behind it is full: more calls to it would bring no more answers",
                "what is behind it has room",
                &[Signal::DownstreamCores],
                downstream_full,
            ),
            ACCEPTED_BEHIND,
            must_not(
                "each of its processes or threads has one",
                "they are not those of its processes or threads, one each",
                &[Signal::Processes, Signal::InLock, Signal::InRead],
                worker_each,
            ),
        ],
        yields_to: &[Cause::Lock, Cause::Disk, Cause::Network, Cause::SlowReader],
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
                "its answers come in piece by piece: it is the network that they wait for",
                "its answers come as a whole",
                &[Signal::PeerComing, Signal::PeerReceived],
                comes_in_for_long,
            ),
            must_not(
                "threads of requests that wait sleep for a time: it is not its answers that they wait for",
                "no thread of a request that waits sleeps for a time",
                &[Signal::InSleep, Signal::InRead],
                sleeps_unasked,
            ),
            ACCEPTED_BEHIND,
            must_not(
                "a proxy hands on to it, and it has all cores of the machine at work",
                "it is more than what a proxy hands on to, or cores are idle",
                &[Signal::DownstreamCores, Signal::Idle],
                hands_on_to_cores,
            ),
            must_not(
                "it is a database whose statements wait for each other",
                "it is at work, or no database",
                &[Signal::DownstreamInLock, Signal::PeerWaiting, Signal::DownstreamCores],
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
            must(
                0.0,
                "cores are idle, while requests wait",
                "the cores are full, or a thread, or all stop for a collector",
                &[Signal::Idle, Signal::Gc],
                |case| Some(case.cores_spare()? && !case.thread_full()? && !case.collects_alone().unwrap_or(false)),
            ),
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
                    let by_themselves =
                        locked(case)? || polls(case).unwrap_or(false) || calls_are_few(case).unwrap_or(false);
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
                "statements wait for each other in a database: it says so, or calls to it pile up while it neither works nor waits for storage",
                "no database behind it leaves calls unanswered with nothing to do",
                &[
                    Signal::DownstreamInLock,
                    Signal::DownstreamThreadsWaiting,
                    Signal::PeerWaiting,
                    Signal::DownstreamCores,
                    Signal::IoPressure,
                ],
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
];
