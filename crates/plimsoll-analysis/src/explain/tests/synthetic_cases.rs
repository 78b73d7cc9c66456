//! Tests of each cause on synthetic cases. Each case has the signals that its cause would produce.

use super::*;

/// Creates a server whose threads poll. `asleep`: sleeping threads, and `under_way`: requests in
/// flight, both at the load line and above it.
fn polling_server_facts(asleep: (f64, f64), under_way: (f64, f64)) -> ServerFacts {
    usual_server_facts().with_service_time_ms(1.2).with_peer_connections(36.0, 36.0, 36.0).with_signals(&[
        (InSleep, 1.0, asleep.0, asleep.1),
        (InLock, 35.8, 34.3, 5.0),
        (InFlight, 0.2, under_way.0, under_way.1),
        (PeerWaiting, 0.0, 0.6, 0.8),
        (Threads, 41.0, 41.0, 41.0),
        (Processes, 4.0, 4.0, 4.0),
    ])
}

#[test]
fn causes_are_named_on_synthetic_cases() {
    let full = [(FullestThread, 0.15, 0.93, 0.99), (FullThreads, 0.0, 1.0, 1.0), (ServerCores, 0.15, 0.95, 1.0)];
    let cores_full = [(ServerCores, 0.5, 3.4, 3.6), (Idle, 3.3, 0.3, 0.1), (RunQueue, 0.05, 1.0, 4.0)];
    let hardly_idle = [(ServerCores, 0.5, 3.3, 3.35), (Idle, 3.3, 0.55, 0.5), (RunQueue, 0.02, 1.2, 1.1)];
    let with_helpers = [
        (FullestThread, 0.14, 0.89, 0.86),
        (ServerCores, 0.15, 1.0, 1.03),
        (Idle, 3.7, 2.7, 2.7),
        (ListenQueue, 0.0, 0.3, 0.1),
    ];
    let one_core = [(ServerCores, 0.15, 0.95, 1.0), (Idle, 3.7, 2.8, 2.8)];
    let refusing = [(Refused, 0.0, 0.0, 0.1), (Failed, 0.0, 0.0, 0.1), (Service, 10e6, 10e6, 10e6)];
    let usual_queue = [(ListenQueue, 0.0, 0.0, 0.8)];
    let unread = [
        (WindowLimited, 0.8, 0.8, 0.9),
        (WindowWaiting, 0.3, 9.0, 40.0),
        (SendQueue, 0.0, 2e5, 4e6),
        (BytesIn, 1e6, 9e6, 1e7),
    ];
    let beside = |mut case: ServerFacts| {
        for sight in [&mut case.low, &mut case.line, &mut case.past] {
            sight.collects_beside = true;
        }
        case
    };
    let read_by_others = |mut case: ServerFacts| {
        (case.line.read_by_others, case.past.read_by_others) = (true, true);
        case
    };
    let python = |mut case: ServerFacts| {
        for sight in [&mut case.line, &mut case.past] {
            sight.server = Some("python3".into());
        }
        case
    };
    let cases: Vec<(&str, ServerFacts, Cause)> = vec![
        ("one full thread", usual_server_facts().with_signals(&full), Cause::OneThread),
        (
            "a thread that stands while its collector works",
            usual_server_facts().with_signals(&with_helpers),
            Cause::OneThread,
        ),
        (
            "threads that take turns at an interpreter",
            python(usual_server_facts().with_signals(&one_core)),
            Cause::OneThread,
        ),
        ("all cores", usual_server_facts().with_signals(&cores_full), Cause::Cpu),
        (
            "a process for each core, of which one is a little fuller",
            usual_server_facts().with_signals(&[
                (ServerCores, 0.5, 3.4, 3.75),
                (Idle, 3.4, 0.5, 0.1),
                (FullestThread, 0.2, 0.84, 0.97),
                (FullThreads, 0.0, 0.0, 1.0),
            ]),
            Cause::Cpu,
        ),
        ("cores that are idle for moments, and wanted", usual_server_facts().with_signals(&hardly_idle), Cause::Cpu),
        (
            "the same, where being woken takes so long even on a free core",
            usual_server_facts().with_signals(&hardly_idle).with_signals(&[(RunQueue, 0.15, 1.2, 1.1)]),
            Cause::Unknown,
        ),
        (
            "the same, where more threads wait for each other",
            usual_server_facts().with_signals(&hardly_idle).with_signals(&[(InLock, 0.0, 20.0, 30.0)]),
            Cause::Unknown,
        ),
        (
            "requests as short as a wake-up, and a queue that our load has filled",
            usual_server_facts()
                .with_service_time_ms(0.08)
                .with_signals(&[(Goodput, 2_000.0, 25_000.0, 25_000.0)])
                .with_signals(&usual_queue),
            Cause::Unknown,
        ),
        (
            "held to two cores of four",
            usual_server_facts().with_signals(&[
                (ServerCores, 0.3, 1.9, 2.0),
                (RunQueue, 0.0, 1.0, 5.0),
                (Idle, 3.6, 2.0, 1.9),
            ]),
            Cause::Cpu,
        ),
        (
            "held to one core of two, with what is behind it",
            usual_server_facts().with_peer_connections(1.0, 1.0, 398.0).with_signals(&[
                (Cores, 2.0, 2.0, 2.0),
                (CoresAllowed, 1.0, 1.0, 1.0),
                (ServerCores, 0.08, 0.35, 0.62),
                (FullestThread, 0.03, 0.23, 0.62),
                (DownstreamCores, 0.05, 0.23, 0.37),
                (DownstreamOnItsCores, 0.05, 0.23, 0.37),
                (PeerWaiting, 0.0, 0.0, 7.0),
                (Idle, 1.82, 1.29, 0.87),
                (RunQueue, 0.1, 0.38, 0.47),
            ]),
            Cause::Cpu,
        ),
        (
            "one connection for all, on two cores of which client and server leave little idle",
            usual_server_facts().with_peer_connections(1.0, 1.0, 1.0).with_signals(&[
                (Cores, 2.0, 2.0, 2.0),
                (ServerCores, 0.1, 0.66, 0.93),
                (Idle, 1.78, 0.87, 0.34),
                (RunQueue, 0.09, 0.69, 1.01),
                (DownstreamCores, 0.03, 0.1, 0.2),
            ]),
            Cause::Pool,
        ),
        (
            "three full threads of a machine with four cores",
            usual_server_facts().with_signals(&[
                (FullestThread, 0.2, 0.97, 1.0),
                (FullThreads, 0.0, 3.0, 3.0),
                (Idle, 3.3, 0.9, 0.8),
            ]),
            Cause::Workers,
        ),
        (
            "a quota of what is behind a proxy, which opens as many connections there as requests wait",
            usual_server_facts().with_service_time_ms(1.0).with_peer_connections(16.0, 30.0, 520.0).with_signals(&[
                (DownstreamThrottled, 0.05, 0.7, 0.95),
                (DownstreamQuota, 0.5, 0.5, 0.5),
                (DownstreamCores, 0.08, 0.43, 0.5),
                (PeerWaiting, 0.0, 0.0, 300.0),
            ]),
            Cause::CpuQuota,
        ),
        (
            "a quota",
            usual_server_facts().with_signals(&[
                (Throttled, 0.0, 0.3, 0.9),
                (Quota, 0.5, 0.5, 0.5),
                (ServerCores, 0.1, 0.49, 0.5),
            ]),
            Cause::CpuQuota,
        ),
        (
            "a quota, in whose pauses connections wait to be accepted",
            usual_server_facts().with_service_time_ms(1.1).with_signals(&[
                (Throttled, 0.0, 0.2, 0.99),
                (Quota, 0.4, 0.4, 0.4),
                (ServerCores, 0.06, 0.39, 0.4),
                (Unaccepted, 0.0, 0.0, 300.0),
            ]),
            Cause::CpuQuota,
        ),
        ("a limiter that answers 429", usual_server_facts().with_signals(&refusing), Cause::Limiter),
        (
            "a limiter that holds back",
            usual_server_facts().with_service_time_ms(0.2).with_signals(&[(Dispersion, 0.9, 0.9, 0.05)]),
            Cause::Limiter,
        ),
        (
            "the same by a server that keeps what it asks in a store, over connections of which nobody tells whether a call waits there",
            usual_server_facts()
                .with_service_time_ms(0.2)
                .with_peer_connections(16.0, 16.0, 16.0)
                .with_signals(&[(Dispersion, 0.9, 0.9, 0.05)]),
            Cause::Limiter,
        ),
        (
            "connections that are accepted one after the other",
            usual_server_facts()
                .with_service_time_ms(0.2)
                .with_signals(&[(Unaccepted, 0.0, 3.0, 480.0), (Dispersion, 0.9, 0.9, 0.05)]),
            Cause::AcceptBacklog,
        ),
        (
            "a pool of four",
            usual_server_facts().with_service_time_ms(4.5).with_peer_connections(4.0, 4.0, 4.0),
            Cause::Pool,
        ),
        (
            "a pool of four to a store that is full",
            usual_server_facts()
                .with_service_time_ms(4.5)
                .with_peer_connections(4.0, 4.0, 4.0)
                .with_signals(&[(DownstreamCores, 0.2, 0.95, 0.99), (DownstreamProcesses, 1.0, 1.0, 1.0)]),
            Cause::Downstream,
        ),
        (
            "a proxy before four processes over a unix socket, of which the kernel shows those connections that were accepted",
            usual_server_facts()
                .with_service_time_ms(4.5)
                .with_peer_connections(1.0, 4.0, 4.0)
                .with_signals(&[(PeerQueued, 0.0, 0.3, 420.0)]),
            Cause::Workers,
        ),
        (
            "a proxy before processes that use up all cores",
            {
                let mut case = usual_server_facts()
                    .with_service_time_ms(4.5)
                    .with_peer_connections(1.0, 5.0, 10.0)
                    .with_signals(&[
                        (DownstreamCores, 0.5, 3.6, 3.75),
                        (DownstreamProcesses, 10.0, 10.0, 10.0),
                        (Idle, 3.3, 0.2, 0.02),
                        (ServerCores, 0.02, 0.1, 0.1),
                    ]);
                case.past.server = Some("nginx".into());
                case
            },
            Cause::Cpu,
        ),
        (
            "the same over TCP, where all connections are shown, and calls pile up",
            usual_server_facts()
                .with_service_time_ms(4.5)
                .with_peer_connections(1.0, 6.0, 490.0)
                .with_signals(&[(PeerQueued, 0.0, 0.3, 420.0), (PeerWaiting, 0.6, 5.0, 488.0)]),
            Cause::Workers,
        ),
        (
            "the same where the only process behind is full",
            usual_server_facts().with_service_time_ms(0.9).with_peer_connections(1.0, 6.0, 490.0).with_signals(&[
                (PeerQueued, 0.0, 0.3, 420.0),
                (PeerWaiting, 0.6, 5.0, 488.0),
                (DownstreamCores, 0.15, 0.95, 1.0),
                (DownstreamProcesses, 1.0, 1.0, 1.0),
            ]),
            Cause::Downstream,
        ),
        (
            "a log that is read slowly, written to by one thread that the others wait for",
            usual_server_facts().with_service_time_ms(0.2).with_signals(&[
                (InWrite, 0.0, 0.6, 0.97),
                (InLock, 0.0, 3.0, 42.0),
                (Threads, 12.0, 20.0, 90.0),
                (Dispersion, 0.9, 0.5, 0.13),
            ]),
            Cause::SlowReader,
        ),
        (
            "a pool of ten, and calls beside it",
            usual_server_facts().with_service_time_ms(20.0).with_peer_connections(3.0, 10.0, 10.0),
            Cause::Pool,
        ),
        (
            "a serial store behind more connections than requests wait",
            usual_server_facts()
                .with_service_time_ms(1.0)
                .with_peer_connections(64.0, 64.0, 64.0)
                .with_signals(&[(InFlight, 0.2, 2.0, 40.0), (PeerWaiting, 0.1, 2.0, 38.0)]),
            Cause::Downstream,
        ),
        (
            "calls that get slower, each on a connection of its own",
            usual_server_facts().with_service_time_ms(2.0).with_peer_connections(2.0, 20.0, 480.0),
            Cause::Downstream,
        ),
        (
            "a downstream of one thread that is full",
            usual_server_facts()
                .with_peer_connections(8.0, 8.0, 8.0)
                .with_service_time_ms(1.0)
                .with_signals(&[(DownstreamCores, 0.15, 0.95, 1.0), (DownstreamProcesses, 1.0, 1.0, 1.0)]),
            Cause::Downstream,
        ),
        (
            "a database that takes the cores",
            usual_server_facts().with_signals(&cores_full).with_signals(&[
                (ServerCores, 0.1, 0.8, 0.9),
                (DownstreamCores, 0.4, 2.6, 2.8),
                (DownstreamProcesses, 1.0, 1.0, 1.0),
            ]),
            Cause::Downstream,
        ),
        (
            "a store that serves one at a time, and connections enough",
            usual_server_facts()
                .with_service_time_ms(1.0)
                .with_peer_connections(115.0, 600.0, 600.0)
                .with_signals(&[(InRead, 8.0, 16.0, 520.0), (Threads, 9.0, 17.0, 530.0)]),
            Cause::Downstream,
        ),
        (
            "an interpreter whose threads are woken in vain",
            python(usual_server_facts().with_service_time_ms(1.0).with_signals(&one_core).with_signals(&[
                (RunQueue, 0.0, 0.03, 1.1),
                (InLock, 0.0, 0.0, 41.0),
                (Switches, 1.0, 1.1, 18.0),
            ])),
            Cause::OneThread,
        ),
        (
            "an interpreter whose threads are woken where another one runs",
            python(usual_server_facts().with_service_time_ms(2.6).with_signals(&one_core).with_signals(&[
                (RunQueue, 0.1, 0.5, 0.93),
                (InLock, 15.7, 14.6, 14.1),
                (ServerCores, 0.2, 0.92, 1.03),
            ])),
            Cause::OneThread,
        ),
        (
            "ten worker processes",
            usual_server_facts()
                .with_signals(&[(Processes, 11.0, 11.0, 11.0), (Threads, 11.0, 11.0, 11.0)])
                .with_signals(&usual_queue),
            Cause::Workers,
        ),
        (
            "a single worker",
            usual_server_facts()
                .with_service_time_ms(1.0)
                .with_signals(&[(Threads, 1.0, 1.0, 1.0)])
                .with_signals(&usual_queue),
            Cause::Workers,
        ),
        (
            "ten worker threads",
            usual_server_facts().with_signals(&[
                (InSleep, 1.5, 9.5, 10.0),
                (InLock, 30.0, 22.0, 21.0),
                (Threads, 40.0, 40.0, 40.0),
            ]),
            Cause::Workers,
        ),
        (
            "ten worker threads of an executor, each in a call with a time limit",
            usual_server_facts().with_signals(&[
                (InLock, 8.6, 0.9, 0.1),
                (InSleep, 0.0, 0.0, 0.02),
                (Threads, 12.0, 12.0, 12.0),
            ]),
            Cause::Workers,
        ),
        (
            "ten worker threads of a runtime that has others asleep all the time",
            usual_server_facts().with_signals(&[
                (InSleep, 6.5, 14.5, 15.0),
                (InLock, 12.0, 4.0, 3.0),
                (Threads, 40.0, 40.0, 40.0),
            ]),
            Cause::Workers,
        ),
        (
            "ten worker threads whose answers leave in two pieces, of which the second waits 40 ms",
            ServerFacts {
                held_back_ns: Some(40e6),
                ..usual_server_facts().with_service_time_ms(51.0).with_signals(&[
                    (FirstByte, 10e6, 10e6, 300e6),
                    (InSleep, 7.5, 15.0, 15.6),
                    (InLock, 19.0, 12.0, 11.0),
                    (Threads, 40.0, 40.0, 40.0),
                ])
            },
            Cause::Workers,
        ),
        (
            "four that may be inside, and a line of threads before them",
            usual_server_facts().with_service_time_ms(4.0).with_signals(&[
                (InSleep, 0.6, 3.8, 4.0),
                (InLock, 0.0, 1.0, 40.0),
                (InSameLock, 0.0, 1.0, 2.0),
                (Threads, 10.0, 40.0, 80.0),
            ]),
            Cause::Pool,
        ),
        (
            "threads of one worker that take turns, while connections wait",
            python(
                usual_server_facts()
                    .with_service_time_ms(2.4)
                    .with_signals(&one_core)
                    .with_signals(&usual_queue)
                    .with_signals(&[(Processes, 2.0, 2.0, 2.0), (Threads, 19.0, 19.0, 19.0)]),
            ),
            Cause::OneThread,
        ),
        (
            "a lock held for a while",
            usual_server_facts().with_service_time_ms(1.0).with_signals(&[(InLock, 0.0, 3.0, 30.0)]),
            Cause::Lock,
        ),
        (
            "a lock held for a call, by threads of which each has a connection of its own to whom it asks",
            usual_server_facts().with_service_time_ms(1.0).with_peer_connections(8.0, 16.0, 520.0).with_signals(&[
                (InLock, 0.0, 0.3, 400.0),
                (InSameLock, 0.0, 0.3, 400.0),
                (PeerWaiting, 0.2, 0.9, 1.0),
                (Threads, 9.0, 17.0, 520.0),
            ]),
            Cause::Lock,
        ),
        (
            "a lock in a file that processes hold for a call, each over a connection of its own that is closed again",
            usual_server_facts().with_service_time_ms(1.0).with_peer_connections(0.1, 1.0, 1.0).with_signals(&[
                (Processes, 21.0, 21.0, 21.0),
                (Threads, 21.0, 21.0, 21.0),
                (InLock, 0.0, 0.7, 18.0),
            ]),
            Cause::Lock,
        ),
        (
            "a lock held while working",
            usual_server_facts()
                .with_service_time_ms(1.0)
                .with_signals(&one_core)
                .with_signals(&[(Switches, 2.0, 5.0, 9.0)]),
            Cause::Lock,
        ),
        (
            "a lock held for a while, and answers in two pieces of which the second waits 40 ms",
            ServerFacts {
                held_back_ns: Some(40e6),
                ..usual_server_facts()
                    .with_service_time_ms(41.0)
                    .with_signals(&[(InLock, 0.0, 3.0, 30.0), (FirstByte, 1e6, 1e6, 300e6)])
            },
            Cause::Lock,
        ),
        (
            "threads that look again and again whether a file is free, while their connections stand idle",
            polling_server_facts((1.7, 36.0), (1.8, 37.0)),
            Cause::Lock,
        ),
        ("the same, with more requests than threads", polling_server_facts((1.1, 23.9), (1.1, 67.5)), Cause::Lock),
        (
            "a lock that is spun for",
            usual_server_facts().with_signals(&cores_full).with_signals(&[(Spinning, 0.01, 0.2, 0.6)]),
            Cause::Lock,
        ),
        (
            "the same, as much a request at any load: what is guarded is cheap",
            usual_server_facts().with_signals(&cores_full).with_signals(&[(Spinning, 0.3, 0.3, 0.3)]),
            Cause::Cpu,
        ),
        (
            "threads of a single worker process that take turns at an interpreter",
            python(usual_server_facts().with_service_time_ms(1.0).with_signals(&one_core).with_signals(&[
                (Processes, 2.0, 2.0, 2.0),
                (Threads, 19.0, 19.0, 19.0),
                (InLock, 9.9, 7.0, 15.8),
            ])),
            Cause::OneThread,
        ),
        (
            "storage",
            usual_server_facts().with_signals(&[
                (Blocked, 0.1, 1.2, 2.0),
                (InDisk, 0.1, 1.2, 2.0),
                (IoPressure, 0.05, 0.6, 0.8),
            ]),
            Cause::Disk,
        ),
        ("garbage", usual_server_facts().with_signals(&cores_full).with_signals(&[(Gc, 0.3, 0.4, 0.45)]), Cause::Gc),
        (
            "garbage that is collected beside the work",
            beside(usual_server_facts().with_signals(&cores_full).with_signals(&[(Gc, 0.3, 0.4, 0.45)])),
            Cause::Gc,
        ),
        (
            "the same on two cores of four",
            beside(usual_server_facts().with_signals(&[
                (ServerCores, 0.3, 1.9, 2.0),
                (RunQueue, 0.0, 1.0, 5.0),
                (Idle, 3.6, 2.0, 1.9),
            ]))
            .with_signals(&[(Gc, 0.3, 0.3, 0.35)]),
            Cause::Gc,
        ),
        (
            "a pool, and garbage that is collected by cores that nobody wants",
            beside(
                usual_server_facts()
                    .with_service_time_ms(4.5)
                    .with_peer_connections(4.0, 4.0, 4.0)
                    .with_signals(&[(Gc, 0.5, 0.4, 0.4)]),
            ),
            Cause::Pool,
        ),
        (
            "all cores, of which those that were idle before the line collected garbage",
            beside(usual_server_facts().with_signals(&cores_full).with_signals(&[(Gc, 0.6, 0.3, 0.1)])),
            Cause::Cpu,
        ),
        (
            "a collector that takes all cores at a low load already, as nobody else wants them",
            beside(usual_server_facts().with_signals(&cores_full).with_signals(&[
                (Gc, 0.96, 0.9, 0.88),
                (ServerCores, 3.3, 3.7, 3.8),
                (Idle, 0.6, 0.05, 0.02),
            ])),
            Cause::Gc,
        ),
        (
            "a collector that all stop for, on one of four cores, after which one is answered at a time",
            usual_server_facts().with_service_time_ms(1.0).with_signals(&[
                (Gc, 0.5, 0.9, 0.9),
                (ServerCores, 0.3, 0.85, 0.9),
                (InLock, 0.0, 3.0, 30.0),
                (FullestThread, 0.15, 0.8, 0.8),
            ]),
            Cause::Gc,
        ),
        (
            "the same, which does not come to an end at a low load either",
            usual_server_facts().with_service_time_ms(1.0).with_signals(&[
                (Gc, 0.9, 0.9, 0.9),
                (Goodput, 20.0, 0.0, 0.0),
                (ServerCores, 0.9, 0.9, 0.9),
                (FullestThread, 0.85, 0.8, 0.8),
            ]),
            Cause::Gc,
        ),
        (
            "a lock in a runtime that collects a little",
            usual_server_facts()
                .with_service_time_ms(1.0)
                .with_signals(&[(Gc, 0.3, 0.3, 0.3), (InLock, 0.0, 3.0, 30.0)]),
            Cause::Lock,
        ),
        (
            "so many at a time by the clock, which the others wait for",
            usual_server_facts()
                .with_service_time_ms(1.2)
                .with_signals(&[(Lumps, 0.0, 0.0, 0.55), (Dispersion, 0.9, 20.0, 60.0)]),
            Cause::Limiter,
        ),
        ("paging", usual_server_facts().with_signals(&[(MajorFaults, 0.0, 300.0, 900.0)]), Cause::Memory),
        (
            "answers that lie ready",
            usual_server_facts()
                .with_signals(&[(SendQueue, 0.0, 2e5, 4e6), (BytesIn, 1e6, 9e6, 1e7)])
                .with_service_time_ms(1.0)
                .with_signals(&[(Threads, 1.0, 1.0, 1.0)]),
            Cause::Network,
        ),
        (
            "somebody between us and the server, who takes no more",
            read_by_others(usual_server_facts().with_signals(&unread)),
            Cause::SlowReader,
        ),
        (
            "the same, who takes one answer after the other from a server of many threads",
            read_by_others(
                usual_server_facts()
                    .with_signals(&unread)
                    .with_service_time_ms(1.0)
                    .with_signals(&[(InLock, 8.0, 8.0, 12.0)]),
            ),
            Cause::SlowReader,
        ),
        ("plimsoll, which takes no more", usual_server_facts().with_signals(&unread), Cause::Client),
        (
            "a proxy that takes late what is behind it sends",
            usual_server_facts()
                .with_service_time_ms(0.5)
                .with_signals(&[(PeerUnread, 0.0, 1e5, 9e5), (Dispersion, 0.9, 0.9, 0.05)]),
            Cause::SlowReader,
        ),
        (
            "the same with a connection behind for each in front, which loses what it has no room for",
            usual_server_facts().with_service_time_ms(7.0).with_peer_connections(9.0, 40.0, 124.0).with_signals(&[
                (PeerUnread, 0.0, 3e4, 6e6),
                (Retransmits, 0.0, 0.0, 0.04),
                (InFlight, 0.2, 10.0, 120.0),
            ]),
            Cause::SlowReader,
        ),
        (
            "a link between the server and what is behind it",
            usual_server_facts()
                .with_service_time_ms(0.5)
                .with_peer_connections(19.0, 19.0, 353.0)
                .with_open_calls("store", 0.0, 66.0)
                .with_signals(&[
                    (PeerWaiting, 0.0, 0.0, 66.0),
                    (PeerUnread, 0.0, 0.0, 1e4),
                    (PeerOnTheWay, 9e3, 5e4, 9e6),
                    (BytesIn, 3e6, 19e6, 20e6),
                ]),
            Cause::Network,
        ),
        (
            "storage that lets writes through as evenly as a clock, with a thread in it for each request",
            usual_server_facts().with_service_time_ms(0.5).with_signals(&[
                (InDisk, 0.0, 0.5, 400.0),
                (Blocked, 0.0, 0.5, 400.0),
                (IoPressure, 0.02, 0.06, 0.94),
                (Dispersion, 0.9, 0.5, 0.1),
            ]),
            Cause::Disk,
        ),
        (
            "another who reads slowly what the server sends him besides",
            usual_server_facts().with_service_time_ms(0.2).with_signals(&[
                (PeerUnsent, 0.0, 2e3, 6e4),
                (Threads, 13.0, 15.0, 369.0),
                (InLock, 3.0, 3.0, 32.0),
                (Dispersion, 0.9, 0.9, 0.1),
            ]),
            Cause::SlowReader,
        ),
        (
            "storage of which more threads wait than are looked at",
            usual_server_facts()
                .with_service_time_ms(1.5)
                .with_signals(&[(IoPressure, 0.43, 0.77, 0.83)])
                .without_signals(&[InLock, InSleep, InDisk, Blocked]),
            Cause::Disk,
        ),
        (
            "statements that say that they wait, of one thread over a unix socket, whose calls nobody counts",
            usual_server_facts()
                .with_service_time_ms(1.2)
                .with_peer_connections(120.0, 120.0, 120.0)
                .with_open_calls("postgres", 0.0, 0.0)
                .with_signals(&[
                    (Threads, 1.0, 1.0, 1.0),
                    (InFlight, 0.2, 1.7, 114.0),
                    (DownstreamCores, 0.02, 0.13, 0.9),
                    (DownstreamInLock, 0.0, 1.0, 100.0),
                ]),
            Cause::Lock,
        ),
        (
            "rows of a database that its threads wait for, over a unix socket, whose calls nobody counts",
            usual_server_facts()
                .with_service_time_ms(1.1)
                .with_peer_connections(87.0, 87.0, 103.0)
                .with_open_calls("mariadbd", 0.0, 0.0)
                .with_signals(&[
                    (DownstreamCores, 0.03, 0.13, 0.13),
                    (DownstreamThreadsWaiting, 14.0, 15.0, 60.0),
                    (InFlight, 0.2, 1.5, 53.0),
                ]),
            Cause::Lock,
        ),
        (
            "a lock in a runtime whose threads wait for work as they wait for locks, with a connection for each",
            usual_server_facts().with_service_time_ms(1.03).with_peer_connections(200.0, 200.0, 240.0).with_signals(&[
                (Threads, 222.0, 222.0, 222.0),
                (InLock, 212.0, 212.0, 212.0),
                (InFlight, 0.2, 1.5, 60.0),
                (PeerWaiting, 0.0, 0.7, 1.0),
                (PeerComing, 1.8, 7.5, 8.3),
            ]),
            Cause::Lock,
        ),
        (
            "a log that is read slowly, while connections are not accepted",
            usual_server_facts().with_service_time_ms(0.15).with_signals(&[
                (InWrite, 0.0, 0.0, 13.7),
                (InLock, 14.2, 5.9, 2.8),
                (Threads, 21.0, 21.0, 21.0),
                (Unaccepted, 0.0, 0.0, 400.0),
                (InFlight, 0.1, 0.2, 420.0),
            ]),
            Cause::SlowReader,
        ),
        (
            "an own lock that 35 of 40 processes wait for, each with a connection to a store",
            usual_server_facts().with_service_time_ms(1.1).with_peer_connections(40.0, 40.0, 40.0).with_signals(&[
                (Processes, 41.0, 41.0, 41.0),
                (Threads, 41.0, 41.0, 41.0),
                (InLock, 0.0, 0.5, 35.2),
                (InSameLock, 0.0, 0.5, 35.2),
                (InSleep, 0.0, 0.0, 0.0),
                (InRead, 5.8, 4.0, 2.6),
                (InFlight, 0.2, 1.5, 109.0),
                (Unaccepted, 0.0, 0.0, 71.0),
            ]),
            Cause::Lock,
        ),
        (
            "rows of a database that statements wait for",
            usual_server_facts()
                .with_service_time_ms(11.0)
                .with_peer_connections(76.0, 76.0, 76.0)
                .with_open_calls("mariadbd", 0.2, 36.0)
                .with_signals(&[
                    (DownstreamCores, 0.03, 0.13, 0.12),
                    (Threads, 80.0, 80.0, 80.0),
                    (InFlight, 0.2, 3.0, 41.0),
                ]),
            Cause::Lock,
        ),
        (
            "the same with a database that works",
            usual_server_facts()
                .with_service_time_ms(11.0)
                .with_peer_connections(76.0, 76.0, 76.0)
                .with_open_calls("mariadbd", 0.2, 36.0)
                .with_signals(&[
                    (DownstreamCores, 0.1, 0.95, 0.99),
                    (DownstreamProcesses, 1.0, 1.0, 1.0),
                    (PeerWaiting, 0.2, 3.0, 36.0),
                    (InFlight, 0.2, 3.0, 41.0),
                ]),
            Cause::Downstream,
        ),
        (
            "a service that is slow and no database",
            usual_server_facts()
                .with_service_time_ms(11.0)
                .with_peer_connections(76.0, 76.0, 76.0)
                .with_open_calls("prices", 0.2, 36.0)
                .with_signals(&[
                    (DownstreamCores, 0.03, 0.13, 0.12),
                    (PeerWaiting, 0.2, 3.0, 36.0),
                    (InFlight, 0.2, 3.0, 41.0),
                ]),
            Cause::Downstream,
        ),
        (
            "a full queue of connections",
            usual_server_facts().with_signals(&[
                (Connect, 1e5, 2e5, 1.02e9),
                (P99, 20e6, 30e6, 1.02e9),
                (ListenOverflows, 0.0, 3.0, 200.0),
                (ListenQueue, 0.0, 0.5, 1.0),
                (Service, 10e6, 10e6, 11e6),
            ]),
            Cause::AcceptBacklog,
        ),
        (
            "a server that takes connections too slowly, and has the kernel hold some",
            usual_server_facts().with_service_time_ms(0.07).with_signals(&[
                (Connect, 1e5, 2e5, 3.1e9),
                (P99, 20e6, 30e6, 3.1e9),
                (ListenOverflows, 0.0, 3.0, 200.0),
                (Service, 7e4, 13e6, 14e6),
                (Retransmits, 0.0, 0.0, 0.08),
            ]),
            Cause::AcceptBacklog,
        ),
        (
            "one of four cores, with one thread that fills it",
            usual_server_facts()
                .with_signals(&[
                    (ServerCores, 0.15, 0.95, 0.99),
                    (FullestThread, 0.14, 0.93, 0.97),
                    (FullThreads, 0.0, 1.0, 1.0),
                ])
                .with_signals(&[(CoresAllowed, 1.0, 1.0, 1.0)]),
            Cause::Cpu,
        ),
        (
            "two of four cores, shared by many threads",
            usual_server_facts().with_signals(&[
                (ServerCores, 0.3, 1.9, 1.97),
                (FullestThread, 0.04, 0.24, 0.25),
                (CoresAllowed, 2.0, 2.0, 2.0),
            ]),
            Cause::Cpu,
        ),
        (
            "open files",
            usual_server_facts().with_signals(&[(Files, 0.2, 0.9, 1.0), (ConnectFailed, 0.0, 0.0, 0.2)]),
            Cause::Files,
        ),
        (
            "other processes on the machine",
            {
                let mut case = usual_server_facts().with_signals(&[(Others, 1.4, 1.5, 1.5)]);
                case.line.disturbed = Some("other processes used 1.5 of 4 cores".into());
                case
            },
            Cause::Neighbour,
        ),
        (
            "other processes on the machine, and no time for a load at the load line",
            {
                let mut case = usual_server_facts().with_signals(&[
                    (Others, 3.8, 3.8, 3.8),
                    (Idle, 0.0, 0.0, 0.0),
                    (ServerCores, 0.01, 0.1, 0.1),
                ]);
                case.past.disturbed = Some("other processes used 3.8 of 4 cores".into());
                ServerFacts { line: LoadSignals::default(), ..case }
            },
            Cause::Neighbour,
        ),
        (
            "a disturbed search, and quiet loads after it that are slow by themselves",
            ServerFacts {
                stopped_by: StopReason::Disturbed,
                ..usual_server_facts().with_signals(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)])
            },
            Cause::Delay,
        ),
        (
            "a disturbed search, and quiet loads after it that hold more",
            ServerFacts { stopped_by: StopReason::Disturbed, held_past_rps: Some(1100.0), ..usual_server_facts() },
            Cause::Neighbour,
        ),
        (
            "so slow that a low load has no request",
            ServerFacts {
                lower_rps: 0.0,
                ..usual_server_facts().without_signals(&[P50, P99]).with_service_time_ms(700.0)
            },
            Cause::Delay,
        ),
        (
            "slow at any load",
            usual_server_facts().with_signals(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)]),
            Cause::Delay,
        ),
        (
            "warming up",
            {
                let case =
                    usual_server_facts().with_signals(&[(Compiling, 0.3, 0.05, 0.0), (Goodput, 150.0, 950.0, 1100.0)]);
                ServerFacts { held_past_rps: Some(1100.0), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "slower at the beginning and at the low load",
            {
                let mut case = usual_server_facts()
                    .with_service_time_ms(40.0)
                    .with_signals(&[(Goodput, 150.0, 950.0, 1100.0), (Service, 4e7, 1e7, 1e7)]);
                (case.low.service_mean_ns, case.half.service_mean_ns) = (Some(40e6), Some(10e6));
                ServerFacts { held_past_rps: Some(1100.0), alone_first_ns: Some(40e6), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "slower at the beginning",
            {
                let case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 1100.0)]);
                ServerFacts { held_past_rps: Some(1100.0), alone_first_ns: Some(40e6), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "far more, within a wide bracket, than it could when it was asked for too much",
            {
                let case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 1100.0)]);
                let (alone_first_ns, saturated_rps, upper_rps) = (Some(40e6), Some(800.0), Some(2000.0));
                ServerFacts { held_past_rps: Some(1100.0), alone_first_ns, saturated_rps, upper_rps, ..case }
            },
            Cause::WarmUp,
        ),
        (
            "far more than it could when it was asked for too much, whose line has no upper end",
            {
                let case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 2500.0)]);
                let (alone_first_ns, saturated_rps) = (Some(40e6), Some(600.0));
                let held_past_rps = Some(2500.0);
                let case = ServerFacts { alone_first_ns, saturated_rps, held_past_rps, ..case };
                ServerFacts { upper_rps: None, stopped_by: StopReason::Budget, ..case }
            },
            Cause::WarmUp,
        ),
        (
            "far more for users who wait than it could when it was asked for too much, whose line has no upper end",
            {
                let mut case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 1100.0)]);
                case.closed.values = [(Goodput, 9000.0), (Failed, 0.0)].into();
                let (alone_first_ns, saturated_rps) = (Some(40e6), Some(1200.0));
                ServerFacts { alone_first_ns, saturated_rps, upper_rps: None, stopped_by: StopReason::Budget, ..case }
            },
            Cause::WarmUp,
        ),
        (
            "the highest rate allowed",
            ServerFacts { stopped_by: StopReason::MaxRate, upper_rps: None, ..usual_server_facts() },
            Cause::None,
        ),
        (
            "plimsoll, which may open too few connections",
            {
                let mut case =
                    usual_server_facts().with_service_time_ms(20.0).with_signals(&[(InFlight, 2.0, 20.0, 20.0)]);
                case.past.under_way_max = 20.0;
                case
            },
            Cause::Client,
        ),
        (
            "plimsoll, whose connections are taken when arrivals at random come",
            {
                let mut case = usual_server_facts()
                    .with_service_time_ms(10.0)
                    .with_signals(&[(InFlight, 1.5, 6.5, 7.2), (Service, 1e7, 1e7, 1.1e7)]);
                (case.past.under_way_max, case.past.unsent_share) = (10.0, 0.2);
                case
            },
            Cause::Client,
        ),
        ("plimsoll", ServerFacts { stopped_by: StopReason::GeneratorLimited, ..usual_server_facts() }, Cause::Client),
        (
            "cores that the server uses up, so that plimsoll, which takes few of them, is late",
            {
                let full = [(Idle, 1.4, 0.1, 0.1), (ServerCores, 0.2, 1.3, 1.3), (ClientCores, 0.1, 0.5, 0.5)];
                let mut case = usual_server_facts()
                    .with_signals(&full)
                    .with_signals(&[(FullestThread, 0.1, 0.7, 0.7), (Generator, 0.1, 0.5, 0.5)]);
                case.line.limited = Some(crate::sentence::Sentence::from("requests left late"));
                case
            },
            Cause::Cpu,
        ),
        (
            "plimsoll, whose one worker is busy",
            {
                let full = [(Idle, 1.4, 0.1, 0.1), (ServerCores, 0.2, 0.8, 0.8), (ClientCores, 0.1, 1.0, 1.0)];
                let mut case = usual_server_facts()
                    .with_signals(&full)
                    .with_signals(&[(FullestThread, 0.1, 0.7, 0.7), (Generator, 0.1, 1.0, 1.0)]);
                case.line.limited = Some(crate::sentence::Sentence::from("a worker was busy"));
                case
            },
            Cause::Client,
        ),
        (
            "ports that the search used up, while plimsoll is busy with failures",
            {
                let mut case = usual_server_facts().with_signals(&[(TimeWait, 1.0, 1.0, 1.0), (Failed, 0.9, 0.9, 0.9)]);
                (case.low.opened, case.line.limited) = (20, Some(crate::sentence::Sentence::from("a worker was busy")));
                case
            },
            Cause::Ports,
        ),
        (
            "the same, where the server is too busy with failing at the low load to be asked for its ports",
            {
                let mut case = usual_server_facts().with_signals(&[(TimeWait, 1.0, 1.0, 1.0), (Failed, 0.9, 0.9, 0.9)]);
                case.low.values.remove(&TimeWait);
                case.half.opened = 20;
                case.line.limited = Some(crate::sentence::Sentence::from("a worker was busy"));
                case
            },
            Cause::Ports,
        ),
        (
            "ports of the server's own connections",
            usual_server_facts()
                .with_peer_connections(2.0, 8.0, 8.0)
                .with_signals(&[(TimeWait, 0.1, 0.9, 0.99), (Failed, 0.0, 0.0, 0.3)]),
            Cause::Ports,
        ),
        (
            "ports",
            {
                let mut case = ServerFacts { stopped_by: StopReason::GeneratorLimited, ..usual_server_facts() };
                case.past.no_port = 500;
                case
            },
            Cause::Ports,
        ),
    ];
    // Each synthetic case has the signals of a single cause. A cause may stay unnamed, but naming a
    // wrong cause must be rare.
    let said: Vec<(&str, Cause, Cause)> =
        cases.iter().map(|(what, case, cause)| (*what, named_cause_of(case), *cause)).collect();
    let of = |is: &dyn Fn(Cause, Cause) -> bool| -> Vec<String> {
        let found = cases.iter().zip(&said).filter(|(_, (_, said, cause))| is(*said, *cause));
        found
            .map(|((what, case, cause), (_, said, _))| {
                format!("{what}: {said}, not {cause}\n{}", format_posterior(case))
            })
            .collect()
    };
    let wrong = of(&|said, cause| said != cause && said != Cause::Unknown);
    let unnamed = of(&|said, cause| said != cause && said == Cause::Unknown);
    let (count, all) = (cases.len() as f64, [wrong.join("\n"), unnamed.join("\n")].join("\nwithout a named cause:\n"));
    assert!(wrong.len() as f64 <= WRONG_CAUSE_SHARE_MAX * count, "{} of {count} wrong\n{all}", wrong.len());
    assert!(
        unnamed.len() as f64 <= UNNAMED_CAUSE_SHARE_MAX * count,
        "{} of {count} without a named cause\n{all}",
        unnamed.len()
    );
}

/// Maximum share of synthetic cases for which a wrong cause is named.
const WRONG_CAUSE_SHARE_MAX: f64 = 0.05;
/// Maximum share of synthetic cases for which no cause is named although a cause is expected.
const UNNAMED_CAUSE_SHARE_MAX: f64 = 0.1;

/// Checks that an explanation separates responses that are late at any load from responses that are
/// late only above the line. One in sixteen responses takes a second, so a very small low load may
/// contain no late response.
#[test]
fn only_lateness_at_any_load_is_a_delay() {
    // The fields in order: p99 and p50 of the response time, ns; dispersion of the responses;
    // length of the low load, s. Each p99 and each p50 has three values: at half the line, at the
    // line and above.
    type TimesAndDispersion = ([f64; 3], [f64; 3], f64, f64);
    const LATE_P99_NS: [f64; 3] = [1.002e9, 1.002e9, 1.003e9];
    const FAST_P50_NS: [f64; 3] = [0.6e6, 0.6e6, 0.6e6];
    let cases: [(&str, TimesAndDispersion, Cause); 6] = [
        ("late by as much at any load", (LATE_P99_NS, FAST_P50_NS, 1.0, 4.0), Cause::Delay),
        ("late where there are more", ([0.6e9, 1.0e9, 2.0e9], FAST_P50_NS, 1.0, 4.0), Cause::Unknown),
        ("late at the line", ([0.1e9, 1.0e9, 1.0e9], FAST_P50_NS, 1.0, 4.0), Cause::Unknown),
        ("all wait past the line", (LATE_P99_NS, [0.6e6, 0.6e6, 300e6], 1.0, 4.0), Cause::Unknown),
        ("after stalls", (LATE_P99_NS, FAST_P50_NS, 6.0, 4.0), Cause::Unknown),
        ("a low load that would have some", (LATE_P99_NS, FAST_P50_NS, 1.0, 60.0), Cause::Unknown),
    ];
    for (name, (p99, p50, dispersion, low_s), expect) in cases {
        let mut case = usual_server_facts().with_service_time_ms(0.6).with_signals(&[
            (Goodput, 3.5, 24.0, 69.0),
            (Offered, 3.5, 24.0, 69.0),
            (P99, 1e6, p99[1], p99[2]),
            (P50, 0.6e6, p50[1], p50[2]),
            (Dispersion, 1.0, 1.0, dispersion),
        ]);
        case.half.values.extend([(P99, p99[0]), (P50, p50[0]), (Goodput, 12.0), (Offered, 12.0)]);
        (case.lower_rps, case.upper_rps, case.best_rps, case.sustained_rps) = (23.0, Some(48.0), 69.0, 69.0);
        case.low.seconds = low_s;
        let is_late = feature_answer(&case, Feature::SlowAtLowLoad) == Some("yes");
        assert_eq!(is_late, expect == Cause::Delay, "{name}: {}", format_posterior(&case));
        if expect == Cause::Delay {
            assert_eq!(
                cause_text(&case, Cause::Delay).sentence_for_server(&case).render_text(|_| ""),
                "responses take longer than the SLO allows even without a queue: the response time p99 is 1.00 s at \
                 12.0 requests/s, a rate at which no request queues"
            );
        }
    }
}
