//! Laws by themselves: what each lets stand, and what it takes away.

use super::*;
use crate::explain::laws::{locked_behind, threads_at_work};

#[test]
fn a_connection_that_nothing_is_asked_on_is_no_pool() {
    for (sent, expect) in [(None, Cause::Pool), (Some(900.0), Cause::Pool), (Some(2.0), Cause::Unknown)] {
        let mut case = usual().alone(4.5).peers(4.0, 4.0, 4.0);
        for sight in [&mut case.line, &mut case.past] {
            sight.sent_to_peers.extend(sent.map(|sent| ("127.0.0.1:6379".to_owned(), sent)));
        }
        assert_eq!(named(&case), expect, "{sent:?}\n{}", tell(&case));
    }
}

/// Of two fixed numbers of connections it is that which requests are sent on, however many stand idle.
#[test]
fn the_main_peer_is_one_that_is_asked() {
    let (asked, idle) = ("127.0.0.1:6379".to_owned(), "127.0.0.1:9999".to_owned());
    for (sent_there, held, expect) in [(Some(1.0), 8.0, &asked), (Some(900.0), 8.0, &idle), (None, 8.0, &idle)] {
        let mut case = usual().peers(2.0, 2.0, 2.0);
        for sight in [&mut case.line, &mut case.past] {
            sight.peers.insert(idle.clone(), held);
            sight.sent_to_peers.insert(asked.clone(), 950.0);
            sight.sent_to_peers.extend(sent_there.map(|sent| (idle.clone(), sent)));
        }
        assert_eq!(case.peer().map(|peer| peer.0), Some(expect.as_str()), "{sent_there:?}");
    }
}

/// Such a lock may be a pool's line as well: experiments tell.
#[test]
fn a_lock_of_several_processes_stands() {
    let three = usual().alone(3.2).with(&[
        (Processes, 4.0, 4.0, 4.0),
        (Threads, 13.0, 60.0, 240.0),
        (InLock, 0.0, 3.0, 80.0),
        (InSleep, 0.3, 2.0, 2.0),
    ]);
    for (same, stands) in [(80.0, true), (10.0, false)] {
        let case = three.clone().with(&[(InSameLock, 0.0, 3.0, same)]);
        let weighed = weigh(&case, &BTreeMap::new());
        assert_eq!(weighed.candidates.iter().any(|it| it.cause == Cause::Lock), stands, "{same}: {}", tell(&case));
    }
}

/// A thread for each connection, of which all but a few wait for a time by themselves: for places, whose number requests at once tell.
#[test]
fn a_thread_for_each_connection_is_no_worker() {
    let waits = usual().alone(17.0).with(&[
        (Threads, 14.0, 525.0, 525.0),
        (Accepted, 10.0, 521.0, 521.0),
        (Unaccepted, 0.0, 0.0, 0.0),
        (InSleep, 3.0, 3.0, 84.0),
        (InLock, 0.0, 0.0, 0.0),
        (InFlight, 0.8, 5.0, 110.0),
    ]);
    for (threads, stands) in [(525.0, [true, false]), (20.0, [false, true])] {
        let case = waits.clone().with(&[(Threads, 14.0, threads, threads)]);
        let weighed = weigh(&case, &BTreeMap::new());
        let found = [Cause::Pool, Cause::Workers].map(|cause| weighed.candidates.iter().any(|it| it.cause == cause));
        assert_eq!(found, stands, "{threads}\n{}", tell(&case));
    }
}

/// Two loops of events that have taken all, and ask what is behind them for few: what the others wait for is a limit or places; a lock,
/// too, where it is no proxy. Requests at once tell.
#[test]
fn what_waits_before_it_asks_stands() {
    let holds_back = usual().alone(6.5).peers(7.0, 6.0, 6.0).with(&[
        (Threads, 3.0, 3.0, 3.0),
        (Processes, 3.0, 3.0, 3.0),
        (Unaccepted, 0.0, 0.0, 0.0),
        (InFlight, 0.3, 1.7, 108.0),
    ]);
    for (server, calls, expect) in [
        ("nginx", 2.4, &[Cause::Limiter, Cause::Pool][..]),
        ("node", 2.4, &[Cause::Limiter, Cause::Lock, Cause::Pool]),
        // All connections are in use.
        ("node", 6.0, &[Cause::Pool]),
    ] {
        let mut case = holds_back.clone().with(&[(PeerWaiting, 0.2, 1.5, calls)]);
        case.past.server = Some(server.into());
        let weighed = weigh(&case, &BTreeMap::new());
        let stands = |cause: &Cause| weighed.candidates.iter().any(|it| it.cause == *cause && it.weight >= 2.0);
        let standing: Vec<Cause> =
            [Cause::Limiter, Cause::Lock, Cause::Pool].into_iter().filter(|cause| stands(cause)).collect();
        assert_eq!(standing, expect, "{server} {calls}\n{}", tell(&case));
    }
}

/// A proxy that has eight requests at a server at a time, on connections that come and go: the calls are what stays the same.
#[test]
fn calls_that_are_so_many_at_a_time_are_places() {
    let proxy = usual().alone(8.5).peers(9.0, 17.0, 9.0).with(&[
        (Threads, 2.0, 2.0, 2.0),
        (InFlight, 1.2, 7.6, 101.0),
        (PeerComing, 0.0, 0.5, 0.5),
        (InRead, 0.0, 0.0, 0.0),
    ]);
    for (calls, reading, stands) in [
        (7.5, 0.0, true),
        // Each of eight threads has asked.
        (7.5, 7.8, false),
        // All that wait have asked.
        (95.0, 0.0, false),
        // One at a time.
        (1.0, 0.0, false),
    ] {
        let case = proxy.clone().with(&[
            (PeerWaiting, 1.0, 7.0, calls),
            (InRead, 0.0, 0.9 * reading, reading),
            (Threads, 2.0, 2.0 + reading, 2.0 + reading),
        ]);
        let weighed = weigh(&case, &BTreeMap::new());
        // A limit that lets them wait has as many calls under way: requests at once tell.
        let pool = weighed.candidates.iter().any(|it| it.cause == Cause::Pool && it.weight >= 4.0);
        assert_eq!(pool, stands, "{calls} {reading}\n{}", tell(&case));
    }
}

/// A journal of one thread that takes as long to wake as to write: that one is served at a time is not to be seen, nor that it is not.
#[test]
fn a_third_of_the_time_in_storage_is_much_of_what_is_served_one_by_one() {
    for (alone_ms, pressure, expect) in
        [(0.07, 0.28, true), (0.147, 0.28, true), (0.4, 0.28, false), (0.147, 0.2, false), (0.4, 0.31, true)]
    {
        let storage = (IoPressure, 0.1, 0.8 * pressure, pressure);
        let case = usual().alone(alone_ms).with(&[storage, (Blocked, 0.1, 0.3, 0.34), (InDisk, 0.1, 0.3, 0.34)]);
        let case = Contrast { best_rps: 15_000.0, ..case };
        let weighed = weigh(&case, &BTreeMap::new());
        let stands = weighed.candidates.iter().any(|it| it.cause == Cause::Disk);
        assert_eq!(stands, expect, "{alone_ms} {pressure}\n{}", tell(&case));
    }
}

/// What lies ready to leave is read seldom: without a reading at the low load the next one is what it is held against.
#[test]
fn answers_that_lie_ready_are_seen_without_a_reading_at_the_low_load() {
    for (at_line, past, expect) in [(0.0, 270e4, true), (250e3, 270e4, true), (250e3, 500e3, false)] {
        let mut case = usual().with(&[(SendQueue, 0.0, at_line, past), (BytesIn, 1e6, 6e6, 6e6)]);
        for sight in [&mut case.low, &mut case.half] {
            sight.values.remove(&SendQueue);
        }
        let weighed = weigh(&case, &BTreeMap::new());
        let stands = weighed.candidates.iter().any(|it| it.cause == Cause::Network && it.weight >= 4.0);
        assert_eq!(stands, expect, "{at_line} {past}\n{}", tell(&case));
    }
}

/// Where there is no line, or one between two rates that lie far apart, more answers past what was called the line are no sign that
/// nothing is full.
#[test]
fn what_is_not_answered_is_a_plateau_whatever_was_called_the_line() {
    let case = |lower_rps: f64, upper_rps: Option<f64>| Contrast { lower_rps, upper_rps, ..usual() };
    // Two processes, where most are answered so soon past the line.
    let several = |past_ns: f64| {
        let (p50, p99) = ((P50, 9e6, 9e6, past_ns), (P99, 12e6, 200e6, 3e9));
        case(950.0, Some(960.0)).with(&[p50, p99, (Processes, 3.0, 3.0, 3.0)])
    };
    for (what, case, got, expect) in [
        ("at the line", case(950.0, Some(960.0)), 960.0, true),
        ("far above a line that is known", case(950.0, Some(960.0)), 1200.0, false),
        (
            "a little above what was held past the line",
            Contrast { held_past_rps: Some(1150.0), ..case(950.0, Some(960.0)) },
            1200.0,
            true,
        ),
        (
            "in the first step that was not held",
            Contrast { held_past_rps: Some(1050.0), ..case(950.0, Some(960.0)) },
            1290.0,
            true,
        ),
        ("far above a line at which one of several queues was full", several(10e6), 1200.0, true),
        ("far above a line at which all wait", several(400e6), 1200.0, false),
        ("a little above what did not hold", case(950.0, Some(1150.0)), 1200.0, true),
        ("between what held and what did not", case(950.0, Some(1900.0)), 1200.0, true),
        ("without a line", case(0.0, None), 1200.0, true),
        ("all was answered", case(0.0, None), 1498.0, false),
    ] {
        let case = case.with(&[(Offered, 150.0, 950.0, 1500.0), (Goodput, 150.0, 950.0, got)]);
        assert_eq!(case.plateau(), Some(expect), "{what}");
    }
}

/// What waits past the line takes from cores, and from threads: users who each wait for their answer, and are answered more often, tell
/// whether these are full.
#[test]
fn the_load_that_is_answered_most_tells_what_is_full() {
    let crowded =
        usual().with(&[(Idle, 3.0, 0.9, 0.45), (FullestThread, 0.1, 0.6, 0.83), (ServerCores, 0.2, 0.6, 0.97)]);
    let closed = |goodput: f64, idle: f64, fullest: f64| {
        let full = if fullest > 0.92 { 1.0 } else { 0.0 };
        let values = [(Goodput, goodput), (Idle, idle), (FullestThread, fullest), (FullThreads, full)];
        Contrast {
            closed: LoadSignals { values: values.into(), ..LoadSignals::default() },
            ..crowded.clone().peers(4.0, 4.0, 4.0)
        }
    };
    for (case, expect) in [
        (crowded.clone().peers(4.0, 4.0, 4.0), Cause::Unknown),
        (closed(1100.0, 1.0, 0.5), Cause::Pool),
        (closed(1100.0, 0.9, 0.95), Cause::OneThread),
        // Users who are answered less often say nothing of it.
        (closed(700.0, 1.0, 0.95), Cause::Unknown),
    ] {
        assert_eq!(named(&case), expect, "{}", tell(&case));
    }
    // Who is held to cores uses them whole where it answers most.
    let waits = crowded.with(&[(RunQueue, 0.1, 0.9, 1.1), (Idle, 3.0, 2.2, 2.1), (FullestThread, 0.1, 0.5, 0.5)]);
    for (used, expect) in [(0.98, Cause::Cpu), (0.8, Cause::Pool)] {
        let values = [(Goodput, 1100.0), (Idle, 2.2), (ServerCores, used)];
        let closed = LoadSignals { values: values.into(), ..LoadSignals::default() };
        let case = Contrast { closed, ..waits.clone() };
        let case = if expect == Cause::Pool { case.peers(4.0, 4.0, 4.0) } else { case };
        assert_eq!(named(&case), expect, "{}", tell(&case));
    }
}

/// Of answers that take long by themselves those that come at the end of a load are answered after it: no sign of a plateau.
#[test]
fn what_is_answered_after_the_window_was_not_too_much() {
    for (alone_ms, got, expect) in [(10.0, 1044.0, true), (240.0, 836.0, false), (240.0, 700.0, true)] {
        let case = usual().alone(alone_ms).with(&[(Goodput, 150.0, 800.0, got), (Offered, 150.0, 850.0, 1100.0)]);
        let mut case = Contrast { lower_rps: 0.0, upper_rps: None, ..case };
        case.past.seconds = 1.0;
        assert_eq!(case.plateau(), Some(expect), "{alone_ms} {got}");
    }
}

/// So many threads are called alike, at the line and past it.
fn called_alike(mut case: Contrast, line: f64, past: f64) -> Contrast {
    case.line.alike.insert("pool-1-thread".into(), line);
    case.past.alike.insert("pool-1-thread".into(), past);
    case
}

/// Ten requests are served at a time: by as many threads that were made for it, whatever they wait for.
#[test]
fn threads_that_are_called_alike_are_workers_where_they_are_as_many_as_are_served() {
    for (line, past, expect) in [
        (10.0, 10.0, Cause::Workers),
        (11.0, 11.0, Cause::Workers),
        (40.0, 40.0, Cause::Unknown),
        // They become more as requests wait.
        (4.0, 10.0, Cause::Unknown),
    ] {
        let case = called_alike(usual().with(&[(InSleep, 0.0, 1.0, 2.0)]), line, past);
        assert_eq!(named(&case), expect, "{line} {past}\n{}", tell(&case));
    }
    // Each has made a connection for itself: nobody waits for one of those.
    for (connections, expect) in [(10.0, Cause::Workers), (8.0, Cause::Pool)] {
        let case = called_alike(usual().alone(12.0).peers(connections, connections, connections), 10.0, 10.0);
        let found = weigh(&case, &BTreeMap::new()).candidates[0].cause;
        assert_eq!(found, expect, "{connections}\n{}", tell(&case));
    }
}

/// A way that is narrow behind the server shows where what is on it is short of a tenth of a second's worth, too: answers come for long.
#[test]
fn answers_that_come_in_for_long_share_a_narrow_way() {
    for (coming, received, full, expect) in [
        (300.0, 2e6, 0.1, Cause::Network),
        (40.0, 2e6, 0.1, Cause::Downstream),
        (300.0, 2e4, 0.1, Cause::Downstream),
        // Who sends them has no more to send.
        (300.0, 2e6, 1.0, Cause::Downstream),
    ] {
        let case = usual().peers(10.0, 40.0, 500.0).with(&[
            (PeerWaiting, 0.5, 5.0, 480.0 - coming),
            (PeerComing, 0.5, 5.0, coming),
            (PeerReceived, 0.1 * received, received, received),
            (DownstreamCores, 0.1 * full, 0.9 * full, full),
            (DownstreamProcesses, 1.0, 1.0, 1.0),
        ]);
        assert_eq!(named(&case), expect, "{coming} {received} {full}\n{}", tell(&case));
    }
}

/// Threads that sleep for a time, and wait for no data, do not wait for whom they could ask.
#[test]
fn who_sleeps_before_it_asks_does_not_wait_for_an_answer() {
    for (asleep, reading, calls, stands) in
        [(300.0, 2.0, None, false), (300.0, 200.0, None, true), (300.0, 2.0, Some(400.0), true), (2.0, 2.0, None, true)]
    {
        let mut case = usual()
            .alone(1.0)
            .peers(64.0, 64.0, 64.0)
            .with(&[(InSleep, 1.0, 2.0, 1.0 + asleep), (InRead, 1.0, 1.0, reading)]);
        if let Some(calls) = calls {
            case = case.with(&[(PeerWaiting, 0.2, 1.0, calls)]);
        }
        let weighed = weigh(&case, &BTreeMap::new());
        let found = weighed.candidates.iter().any(|it| it.cause == Cause::Downstream);
        assert_eq!(found, stands, "{asleep} {reading} {calls:?}\n{}", tell(&case));
    }
}

/// Calls that wait at a low load as they do past the line are none of a request: a message is waited for, or the answer is not read.
#[test]
fn calls_that_wait_at_any_load_explain_nothing() {
    for (low, stands) in [(0.2, true), (1.2, true), (1.5, false), (2.0, false)] {
        let case = usual().alone(0.5).peers(2.0, 2.0, 2.0).with(&[(PeerWaiting, low, 2.0, 2.0)]);
        let weighed = weigh(&case, &BTreeMap::new());
        let found = weighed.candidates.iter().any(|it| it.cause == Cause::Downstream);
        assert_eq!(found, stands, "{low}\n{}", tell(&case));
    }
}

/// Of sleeping statements as many are at work as requests are served at a time, of those that wait for rows many more.
#[test]
fn statements_that_sleep_are_served() {
    for (waiting, cores, storage, stands) in
        [(60.0, 0.1, 0.0, true), (52.0, 0.1, 0.0, false), (60.0, 0.9, 0.0, false), (60.0, 0.1, 0.5, false)]
    {
        let served = if waiting > 55.0 { 1.1 } else { 40.0 };
        let case = usual().alone(served).peers(87.0, 87.0, 103.0).calls("mysqld", 0.0, 0.0).with(&[
            (DownstreamCores, 0.02, 0.9 * cores, cores),
            (DownstreamThreadsWaiting, 12.0, 14.0, waiting),
            (IoPressure, 0.0, storage, storage),
        ]);
        assert_eq!(locked_behind(&case) == Some(true), stands, "{waiting} {cores} {storage}\n{}", tell(&case));
    }
}

/// One of the threads that take turns at an interpreter waits for that as if it slept.
#[test]
fn who_waits_for_the_interpreter_is_not_at_work() {
    for (server, asleep, expect) in
        [("python3", 5.3, true), ("python3", 7.0, false), ("api", 5.3, false), ("api", 4.4, true)]
    {
        let mut case = usual().alone(4.2).with(&[(InSleep, 0.0, asleep - 0.3, asleep), (InDisk, 0.0, 0.0, 0.0)]);
        case.past.server = Some(server.into());
        assert_eq!(threads_at_work(&case), Some(expect), "{server} {asleep}");
    }
}

/// What is changed strengthens what signs speak for, and makes no cause of what hardly any does.
#[test]
fn experiments_alone_name_nothing() {
    let case = usual().alone(1.1).peers(87.0, 87.0, 103.0);
    let weighed = weigh(&case, &BTreeMap::from([(Cause::Workers, 6.0)]));
    assert!(!weighed.named, "{:?}", weighed.candidates.iter().map(|it| (it.cause, it.weight)).collect::<Vec<_>>());
}

/// As many are answered as ports to a peer come free: each is held for a minute, or for a second where it may be taken again.
#[test]
fn ports_that_come_free_one_after_the_other_are_what_is_answered() {
    for (ports, held, fails, expect) in [
        (Some(60_000.0), 0.97, 0.1, Cause::Ports),
        (Some(1_000.0), 0.97, 0.1, Cause::Ports),
        // Those that were free at the beginning of ten seconds are among them.
        (Some(800.0), 0.97, 0.1, Cause::Ports),
        (Some(1_500.0), 0.97, 0.1, Cause::Unknown),
        (Some(20_000.0), 0.97, 0.1, Cause::Unknown),
        (Some(60_000.0), 0.6, 0.1, Cause::Unknown),
        (Some(60_000.0), 0.97, 0.0, Cause::Unknown),
        (None, 0.97, 0.1, Cause::Unknown),
    ] {
        let mut case = usual().with(&[(TimeWait, held, held, held), (Failed, 0.0, 0.0, fails)]);
        (case.line.local_ports, case.past.local_ports) = (ports, ports);
        assert_eq!(named(&case), expect, "{ports:?} {held} {fails}\n{}", tell(&case));
    }
}
