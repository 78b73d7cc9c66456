//! Each cause on histories made up by its law, and that nothing is named where signs are missing or speak against each other.

use super::weigh::weigh;
use super::*;
use crate::find::{Failing, StoppedBy};
use crate::slo::Slo;
use Signal::*;

/// A load whose window, a second, was sampled: that many samples of one function; `None`: nobody looked.
fn sampled(count: Option<u32>) -> plimsoll_model::Run {
    use plimsoll_model::{Curve, LoadShape, Plan, Run, SampledStack, SampledStretch};
    let mut run = Run::new(Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) }).record());
    run.window_ns = (0, 1_000_000_000);
    run.probes.sampled.stretches = count.map_or_else(Vec::new, |count| {
        let stacks = if count > 0 { vec![SampledStack { count, functions: vec![0] }] } else { vec![] };
        let (to_ns, period_ns, names) = (1_000_000_000, 10_000_000, vec!["serve".into()]);
        vec![SampledStretch { from_ns: 0, to_ns, period_ns, lost: 0, in_kernel: true, names, stacks }]
    });
    run
}

#[test]
fn functions_are_held_against_the_lowest_load_at_which_any_was_caught() {
    let case = usual();
    for (low, half, line, past, expect) in [
        (Some(3), Some(9), Some(30), Some(30), Ok(Some(["low", "line"]))),
        (Some(3), None, None, Some(30), Ok(Some(["low", "past"]))),
        (Some(0), Some(9), Some(30), None, Ok(Some(["half", "line"]))),
        (Some(0), Some(9), Some(0), Some(30), Ok(Some(["half", "past"]))),
        (Some(0), Some(0), Some(30), Some(30), Err("at the low load and at half the line")),
        (Some(9), Some(9), Some(0), Some(0), Err("at the line and past it")),
        // Nobody looked.
        (None, None, None, None, Ok(None)),
    ] {
        let runs = [low, half, line, past].map(sampled);
        let [low, half, line, past] = &runs;
        let loads = Loads { low: Some(low), half: Some(half), line: Some(line), past: Some(past), ..Loads::default() };
        let names = match FunctionsSeen::of(&case, &loads) {
            Some(FunctionsSeen::Costs(costs)) => Some(costs.level_names),
            _ => None,
        };
        let why = FunctionsSeen::uncaught(&loads).filter(|_| names.is_none());
        match expect {
            Ok(expect) => assert_eq!((names, &why), (expect, &None)),
            Err(when) => assert!(names.is_none() && why.as_ref().is_some_and(|why| why.contains(when)), "{why:?}"),
        }
    }
    // What there was no load of is told as that.
    assert_eq!(FunctionsSeen::uncaught(&Loads::default()), None);
}

/// Threads that poll, so many asleep and so many requests under way at the line and past it.
fn polling(asleep: (f64, f64), under_way: (f64, f64)) -> Contrast {
    usual().alone(1.2).peers(36.0, 36.0, 36.0).with(&[
        (InSleep, 1.0, asleep.0, asleep.1),
        (InLock, 35.8, 34.3, 5.0),
        (InFlight, 0.2, under_way.0, under_way.1),
        (PeerWaiting, 0.0, 0.6, 0.8),
        (Threads, 41.0, 41.0, 41.0),
        (Processes, 4.0, 4.0, 4.0),
    ])
}

/// A server with cores to spare that answers 1 000/s at most, each request in 10 ms when alone: ten at a time.
fn usual() -> Contrast {
    let of = |rate: f64, asked: f64, p50_ms: f64, in_flight: f64| LoadSignals {
        values: [
            (Offered, asked),
            (Goodput, rate),
            (P50, p50_ms * 1e6),
            (P99, p50_ms * 2e6),
            (Service, p50_ms * 1e6),
            (InFlight, in_flight),
            (Failed, 0.0),
            (Refused, 0.0),
            (Connect, 1e5),
            (ConnectFailed, 0.0),
            (Generator, 0.1),
            (ClientCores, 0.1),
            (ServerCores, rate * 1e-4),
            (ServerCpu, 1e5),
            (FullestThread, rate * 2e-5),
            (FullThreads, 0.0),
            (Threads, 12.0),
            (Processes, 1.0),
            (RunQueue, 0.01),
            (Switches, 2.0),
            (Blocked, 0.0),
            (MajorFaults, 0.0),
            (Files, 0.01),
            (ListenQueue, 0.0),
            (ListenOverflows, 0.0),
            (Accepted, 50.0),
            (SendQueue, 0.0),
            (WindowLimited, 0.0),
            (Gc, 0.0),
            (Compiling, 0.0),
            (Idle, 4.0 - rate * 1e-4 - 0.1),
            (Cores, 4.0),
            (IoPressure, 0.0),
            (MemoryPressure, 0.0),
            (Others, 0.02),
            (Steal, 0.0),
            (Retransmits, 0.0),
            (TimeWait, 0.004),
            (InLock, 0.0),
            (InSleep, 0.0),
            (InRead, 0.0),
            (InDisk, 0.0),
        ]
        .into(),
        server: Some("api".into()),
        seconds: 10.0,
        ..LoadSignals::default()
    };
    Contrast {
        counted: "requests",
        requests_each: 1.0,
        low: of(150.0, 150.0, 10.0, 1.5),
        half: of(500.0, 500.0, 10.0, 5.0),
        line: of(950.0, 950.0, 11.0, 10.0),
        past: of(1000.0, 1100.0, 400.0, 500.0),
        closed: LoadSignals::default(),
        held_past_rps: None,
        lower_rps: 1000.0,
        upper_rps: Some(1010.0),
        stopped_by: StoppedBy::Width,
        slo: Slo::default(),
        best_rps: 1000.0,
        alone_ns: Some(10e6),
        alone_first_ns: Some(10e6),
        held_back_ns: None,
        failing: None,
        demands: Vec::new(),
    }
}

impl Contrast {
    /// The same with these values at the low load, at the line, and past it.
    fn with(mut self, values: &[(Signal, f64, f64, f64)]) -> Contrast {
        for (signal, low, line, past) in values {
            self.low.values.insert(*signal, *low);
            self.half.values.insert(*signal, (low + line) / 2.0);
            self.line.values.insert(*signal, *line);
            self.past.values.insert(*signal, *past);
        }
        self.demands = demands::demands(&[&self.low, &self.half, &self.line, &self.past]);
        self
    }

    fn without(mut self, signals: &[Signal]) -> Contrast {
        for sight in [&mut self.low, &mut self.half, &mut self.line, &mut self.past] {
            sight.values.retain(|signal, _| !signals.contains(signal));
        }
        self
    }

    fn alone(mut self, ms: f64) -> Contrast {
        self.alone_ns = Some(ms * 1e6);
        self
    }

    /// Calls to what the peer is that are not answered, at the low load and past the line.
    fn calls(mut self, name: &str, low: f64, past: f64) -> Contrast {
        let address = "127.0.0.1:6379";
        for (sight, calls) in [(&mut self.low, low), (&mut self.past, past)] {
            sight.calls_to_peers.insert(address.into(), calls);
            sight.peer_names.insert(address.into(), name.into());
        }
        self
    }

    fn peers(mut self, low: f64, line: f64, past: f64) -> Contrast {
        for (sight, count) in [(&mut self.low, low), (&mut self.line, line), (&mut self.past, past)] {
            sight.peers.insert("127.0.0.1:6379".into(), count);
            sight.values.insert(PeerConnections, count);
        }
        self
    }
}

fn named(case: &Contrast) -> Cause {
    let weighed = weigh(case, &BTreeMap::new());
    weighed.candidates.first().filter(|_| weighed.named).map_or(Cause::Unknown, |first| first.cause)
}

fn tell(case: &Contrast) -> String {
    let weighed = weigh(case, &BTreeMap::new());
    let candidates: Vec<String> = weighed
        .candidates
        .iter()
        .map(|c| format!("{} {} unseen {:?}", c.cause, c.weight, c.unseen.iter().map(|s| s.yes).collect::<Vec<_>>()))
        .collect();
    let out: Vec<String> = weighed.ruled_out.iter().map(|(cause, why, _)| format!("{cause}: {why}")).collect();
    format!("{candidates:#?}\n{out:#?}")
}

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

#[test]
fn each_cause_by_its_law() {
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
    let refusing =
        [(Refused, 0.0, 0.0, 0.1), (Failed, 0.0, 0.0, 0.1), (Service, 10e6, 10e6, 10e6), (FailedAfter, 0.0, 0.0, 3e5)];
    let usual_queue = [(ListenQueue, 0.0, 0.0, 0.8)];
    let unread = [
        (WindowLimited, 0.8, 0.8, 0.9),
        (WindowWaiting, 0.3, 9.0, 40.0),
        (SendQueue, 0.0, 2e5, 4e6),
        (BytesIn, 1e6, 9e6, 1e7),
    ];
    let beside = |mut case: Contrast| {
        for sight in [&mut case.low, &mut case.line, &mut case.past] {
            sight.collects_beside = true;
        }
        case
    };
    let read_by_others = |mut case: Contrast| {
        (case.line.read_by_others, case.past.read_by_others) = (true, true);
        case
    };
    let python = |mut case: Contrast| {
        for sight in [&mut case.line, &mut case.past] {
            sight.server = Some("python3".into());
        }
        case
    };
    let cases: Vec<(&str, Contrast, Cause)> = vec![
        ("one full thread", usual().with(&full), Cause::OneThread),
        ("a thread that stands while its collector works", usual().with(&with_helpers), Cause::OneThread),
        ("threads that take turns at an interpreter", python(usual().with(&one_core)), Cause::OneThread),
        ("all cores", usual().with(&cores_full), Cause::Cpu),
        (
            "a process for each core, of which one is a little fuller",
            usual().with(&[
                (ServerCores, 0.5, 3.4, 3.75),
                (Idle, 3.4, 0.5, 0.1),
                (FullestThread, 0.2, 0.84, 0.97),
                (FullThreads, 0.0, 0.0, 1.0),
            ]),
            Cause::Cpu,
        ),
        ("cores that are idle for moments, and wanted", usual().with(&hardly_idle), Cause::Cpu),
        (
            "the same, where being woken takes so long even on a free core",
            usual().with(&hardly_idle).with(&[(RunQueue, 0.15, 1.2, 1.1)]),
            Cause::Unknown,
        ),
        (
            "the same, where more threads wait for each other",
            usual().with(&hardly_idle).with(&[(InLock, 0.0, 20.0, 30.0)]),
            Cause::Unknown,
        ),
        (
            "requests as short as a wake-up, and a queue that our load has filled",
            usual()
                .alone(0.08)
                .with(&[(Goodput, 2_000.0, 25_000.0, 25_000.0), (Accepted, 9.0, 500.0, 4_000.0)])
                .with(&usual_queue),
            Cause::Unknown,
        ),
        (
            "held to two cores of four",
            usual().with(&[(ServerCores, 0.3, 1.9, 2.0), (RunQueue, 0.0, 1.0, 5.0), (Idle, 3.6, 2.0, 1.9)]),
            Cause::Cpu,
        ),
        (
            "three full threads of a machine with four cores",
            usual().with(&[(FullestThread, 0.2, 0.97, 1.0), (FullThreads, 0.0, 3.0, 3.0), (Idle, 3.3, 0.9, 0.8)]),
            Cause::Workers,
        ),
        (
            "a quota",
            usual().with(&[(Throttled, 0.0, 0.3, 0.9), (Quota, 0.5, 0.5, 0.5), (ServerCores, 0.1, 0.49, 0.5)]),
            Cause::CpuQuota,
        ),
        (
            "a quota, in whose pauses connections wait to be accepted",
            usual().alone(1.1).with(&[
                (Throttled, 0.0, 0.2, 0.99),
                (Quota, 0.4, 0.4, 0.4),
                (ServerCores, 0.06, 0.39, 0.4),
                (Unaccepted, 0.0, 0.0, 300.0),
            ]),
            Cause::CpuQuota,
        ),
        ("a limiter that answers 429", usual().with(&refusing), Cause::Limiter),
        ("a limiter that holds back", usual().alone(0.2).with(&[(Dispersion, 0.9, 0.9, 0.05)]), Cause::Limiter),
        (
            "connections that are accepted one after the other",
            usual().alone(0.2).with(&[(Unaccepted, 0.0, 3.0, 480.0), (Dispersion, 0.9, 0.9, 0.05)]),
            Cause::AcceptBacklog,
        ),
        ("a pool of four", usual().alone(4.5).peers(4.0, 4.0, 4.0), Cause::Pool),
        ("a pool of ten, and calls beside it", usual().alone(20.0).peers(3.0, 10.0, 10.0), Cause::Pool),
        (
            "a serial store behind more connections than requests wait",
            usual()
                .alone(1.0)
                .peers(64.0, 64.0, 64.0)
                .with(&[(InFlight, 0.2, 2.0, 40.0), (PeerWaiting, 0.1, 2.0, 38.0)]),
            Cause::Downstream,
        ),
        (
            "calls that get slower, each on a connection of its own",
            usual().alone(2.0).peers(2.0, 20.0, 480.0),
            Cause::Downstream,
        ),
        (
            "a downstream of one thread that is full",
            usual()
                .peers(8.0, 8.0, 8.0)
                .alone(1.0)
                .with(&[(DownstreamCores, 0.15, 0.95, 1.0), (DownstreamProcesses, 1.0, 1.0, 1.0)]),
            Cause::Downstream,
        ),
        (
            "a database that takes the cores",
            usual().with(&cores_full).with(&[
                (ServerCores, 0.1, 0.8, 0.9),
                (DownstreamCores, 0.4, 2.6, 2.8),
                (DownstreamProcesses, 1.0, 1.0, 1.0),
            ]),
            Cause::Downstream,
        ),
        (
            "a store that serves one at a time, and connections enough",
            usual()
                .alone(1.0)
                .peers(115.0, 600.0, 600.0)
                .with(&[(InRead, 8.0, 16.0, 520.0), (Threads, 9.0, 17.0, 530.0)]),
            Cause::Downstream,
        ),
        (
            "an interpreter whose threads are woken in vain",
            python(usual().alone(1.0).with(&one_core).with(&[
                (RunQueue, 0.0, 0.03, 1.1),
                (InLock, 0.0, 0.0, 41.0),
                (Switches, 1.0, 1.1, 18.0),
            ])),
            Cause::OneThread,
        ),
        (
            "an interpreter whose threads are woken where another one runs",
            python(usual().alone(2.6).with(&one_core).with(&[
                (RunQueue, 0.1, 0.5, 0.93),
                (InLock, 15.7, 14.6, 14.1),
                (ServerCores, 0.2, 0.92, 1.03),
            ])),
            Cause::OneThread,
        ),
        (
            "ten worker processes",
            usual().with(&[(Processes, 11.0, 11.0, 11.0), (Threads, 11.0, 11.0, 11.0)]).with(&usual_queue),
            Cause::Workers,
        ),
        ("a single worker", usual().alone(1.0).with(&[(Threads, 1.0, 1.0, 1.0)]).with(&usual_queue), Cause::Workers),
        (
            "ten worker threads",
            usual().with(&[(InSleep, 1.5, 9.5, 10.0), (InLock, 30.0, 22.0, 21.0), (Threads, 40.0, 40.0, 40.0)]),
            Cause::Workers,
        ),
        (
            "ten worker threads of an executor, each in a call with a time limit",
            usual().with(&[(InLock, 8.6, 0.9, 0.1), (InSleep, 0.0, 0.0, 0.02), (Threads, 12.0, 12.0, 12.0)]),
            Cause::Workers,
        ),
        (
            "ten worker threads of a runtime that has others asleep all the time",
            usual().with(&[(InSleep, 6.5, 14.5, 15.0), (InLock, 12.0, 4.0, 3.0), (Threads, 40.0, 40.0, 40.0)]),
            Cause::Workers,
        ),
        (
            "ten worker threads whose answers leave in two pieces, of which the second waits 40 ms",
            Contrast {
                held_back_ns: Some(40e6),
                ..usual().alone(51.0).with(&[
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
            usual().alone(4.0).with(&[
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
                usual()
                    .alone(2.4)
                    .with(&one_core)
                    .with(&usual_queue)
                    .with(&[(Processes, 2.0, 2.0, 2.0), (Threads, 19.0, 19.0, 19.0)]),
            ),
            Cause::OneThread,
        ),
        ("a lock held for a while", usual().alone(1.0).with(&[(InLock, 0.0, 3.0, 30.0)]), Cause::Lock),
        (
            "a lock held for a call, by threads of which each has a connection of its own to whom it asks",
            usual().alone(1.0).peers(8.0, 16.0, 520.0).with(&[
                (InLock, 0.0, 0.3, 400.0),
                (InSameLock, 0.0, 0.3, 400.0),
                (PeerWaiting, 0.2, 0.9, 1.0),
                (Threads, 9.0, 17.0, 520.0),
            ]),
            Cause::Lock,
        ),
        (
            "a lock held while working",
            usual().alone(1.0).with(&one_core).with(&[(Switches, 2.0, 5.0, 9.0)]),
            Cause::Lock,
        ),
        (
            "a lock held for a while, and answers in two pieces of which the second waits 40 ms",
            Contrast {
                held_back_ns: Some(40e6),
                ..usual().alone(41.0).with(&[(InLock, 0.0, 3.0, 30.0), (FirstByte, 1e6, 1e6, 300e6)])
            },
            Cause::Lock,
        ),
        (
            "threads that look again and again whether a file is free, while their connections stand idle",
            polling((1.7, 36.0), (1.8, 37.0)),
            Cause::Lock,
        ),
        ("the same, with more requests than threads", polling((1.1, 23.9), (1.1, 67.5)), Cause::Lock),
        ("a lock that is spun for", usual().with(&cores_full).with(&[(Spinning, 0.01, 0.2, 0.6)]), Cause::Lock),
        (
            "the same, as much a request at any load: what is guarded is cheap",
            usual().with(&cores_full).with(&[(Spinning, 0.3, 0.3, 0.3)]),
            Cause::Cpu,
        ),
        (
            "threads of a single worker process that take turns at an interpreter",
            python(usual().alone(1.0).with(&one_core).with(&[
                (Processes, 2.0, 2.0, 2.0),
                (Threads, 19.0, 19.0, 19.0),
                (InLock, 9.9, 7.0, 15.8),
            ])),
            Cause::OneThread,
        ),
        (
            "storage",
            usual().with(&[(Blocked, 0.1, 1.2, 2.0), (InDisk, 0.1, 1.2, 2.0), (IoPressure, 0.05, 0.6, 0.8)]),
            Cause::Disk,
        ),
        ("garbage", usual().with(&cores_full).with(&[(Gc, 0.3, 0.4, 0.45)]), Cause::Gc),
        (
            "garbage that is collected beside the work",
            beside(usual().with(&cores_full).with(&[(Gc, 0.3, 0.4, 0.45)])),
            Cause::Gc,
        ),
        (
            "the same on two cores of four",
            beside(usual().with(&[(ServerCores, 0.3, 1.9, 2.0), (RunQueue, 0.0, 1.0, 5.0), (Idle, 3.6, 2.0, 1.9)]))
                .with(&[(Gc, 0.3, 0.3, 0.35)]),
            Cause::Gc,
        ),
        (
            "a pool, and garbage that is collected by cores that nobody wants",
            beside(usual().alone(4.5).peers(4.0, 4.0, 4.0).with(&[(Gc, 0.5, 0.4, 0.4)])),
            Cause::Pool,
        ),
        (
            "all cores, of which those that were idle before the line collected garbage",
            beside(usual().with(&cores_full).with(&[(Gc, 0.6, 0.3, 0.1)])),
            Cause::Cpu,
        ),
        ("paging", usual().with(&[(MajorFaults, 0.0, 300.0, 900.0)]), Cause::Memory),
        (
            "answers that lie ready",
            usual()
                .with(&[(SendQueue, 0.0, 2e5, 4e6), (BytesIn, 1e6, 9e6, 1e7)])
                .alone(1.0)
                .with(&[(Threads, 1.0, 1.0, 1.0)]),
            Cause::Network,
        ),
        (
            "somebody between us and the server, who takes no more",
            read_by_others(usual().with(&unread)),
            Cause::SlowReader,
        ),
        (
            "the same, who takes one answer after the other from a server of many threads",
            read_by_others(usual().with(&unread).alone(1.0).with(&[(InLock, 8.0, 8.0, 12.0)])),
            Cause::SlowReader,
        ),
        ("plimsoll, which takes no more", usual().with(&unread), Cause::Client),
        (
            "a proxy that takes late what is behind it sends",
            usual().alone(0.5).with(&[(PeerUnread, 0.0, 1e5, 9e5), (Dispersion, 0.9, 0.9, 0.05)]),
            Cause::SlowReader,
        ),
        (
            "the same with a connection behind for each in front, which loses what it has no room for",
            usual().alone(7.0).peers(9.0, 40.0, 124.0).with(&[
                (PeerUnread, 0.0, 3e4, 6e6),
                (Retransmits, 0.0, 0.0, 0.04),
                (InFlight, 0.2, 10.0, 120.0),
            ]),
            Cause::SlowReader,
        ),
        (
            "a link between the server and what is behind it",
            usual().alone(0.5).peers(19.0, 19.0, 353.0).calls("store", 0.0, 66.0).with(&[
                (PeerWaiting, 0.0, 0.0, 66.0),
                (PeerUnread, 0.0, 0.0, 1e4),
                (PeerOnTheWay, 9e3, 5e4, 9e6),
                (BytesIn, 3e6, 19e6, 20e6),
            ]),
            Cause::Network,
        ),
        (
            "another who reads slowly what the server sends him besides",
            usual().alone(0.2).with(&[
                (PeerUnsent, 0.0, 2e3, 6e4),
                (Threads, 13.0, 15.0, 369.0),
                (InLock, 3.0, 3.0, 32.0),
                (Dispersion, 0.9, 0.9, 0.1),
            ]),
            Cause::SlowReader,
        ),
        (
            "storage of which more threads wait than are looked at",
            usual().alone(1.5).with(&[(IoPressure, 0.43, 0.77, 0.83)]).without(&[InLock, InSleep, InDisk, Blocked]),
            Cause::Disk,
        ),
        (
            "rows of a database that statements wait for",
            usual().alone(11.0).peers(76.0, 76.0, 76.0).calls("mariadbd", 0.2, 36.0).with(&[
                (DownstreamCores, 0.03, 0.13, 0.12),
                (Threads, 80.0, 80.0, 80.0),
                (InFlight, 0.2, 3.0, 41.0),
            ]),
            Cause::Lock,
        ),
        (
            "the same with a database that works",
            usual().alone(11.0).peers(76.0, 76.0, 76.0).calls("mariadbd", 0.2, 36.0).with(&[
                (DownstreamCores, 0.1, 0.95, 0.99),
                (DownstreamProcesses, 1.0, 1.0, 1.0),
                (PeerWaiting, 0.2, 3.0, 36.0),
                (InFlight, 0.2, 3.0, 41.0),
            ]),
            Cause::Downstream,
        ),
        (
            "a service that is slow and no database",
            usual().alone(11.0).peers(76.0, 76.0, 76.0).calls("prices", 0.2, 36.0).with(&[
                (DownstreamCores, 0.03, 0.13, 0.12),
                (PeerWaiting, 0.2, 3.0, 36.0),
                (InFlight, 0.2, 3.0, 41.0),
            ]),
            Cause::Downstream,
        ),
        (
            "a full queue of connections",
            usual().with(&[
                (Connect, 1e5, 2e5, 1.02e9),
                (ListenOverflows, 0.0, 3.0, 200.0),
                (ListenQueue, 0.0, 0.5, 1.0),
                (Service, 10e6, 10e6, 11e6),
            ]),
            Cause::AcceptBacklog,
        ),
        (
            "a server that takes connections too slowly, and has the kernel hold some",
            usual().alone(0.07).with(&[
                (Connect, 1e5, 2e5, 3.1e9),
                (ListenOverflows, 0.0, 3.0, 200.0),
                (Service, 7e4, 13e6, 14e6),
                (Retransmits, 0.0, 0.0, 0.08),
            ]),
            Cause::AcceptBacklog,
        ),
        (
            "one of four cores, with one thread that fills it",
            usual()
                .with(&[
                    (ServerCores, 0.15, 0.95, 0.99),
                    (FullestThread, 0.14, 0.93, 0.97),
                    (FullThreads, 0.0, 1.0, 1.0),
                ])
                .with(&[(CoresAllowed, 1.0, 1.0, 1.0)]),
            Cause::Cpu,
        ),
        (
            "two of four cores, shared by many threads",
            usual().with(&[
                (ServerCores, 0.3, 1.9, 1.97),
                (FullestThread, 0.04, 0.24, 0.25),
                (CoresAllowed, 2.0, 2.0, 2.0),
            ]),
            Cause::Cpu,
        ),
        ("open files", usual().with(&[(Files, 0.2, 0.9, 1.0), (ConnectFailed, 0.0, 0.0, 0.2)]), Cause::Files),
        (
            "others on the machine",
            {
                let mut case = usual().with(&[(Others, 1.4, 1.5, 1.5)]);
                case.line.disturbed = Some("others used 1.5 of 4 cores".into());
                case
            },
            Cause::Neighbour,
        ),
        (
            "others on the machine, and no time for a load at the line",
            {
                let mut case =
                    usual().with(&[(Others, 3.8, 3.8, 3.8), (Idle, 0.0, 0.0, 0.0), (ServerCores, 0.01, 0.1, 0.1)]);
                case.past.disturbed = Some("others used 3.8 of 4 cores".into());
                Contrast { line: LoadSignals::default(), ..case }
            },
            Cause::Neighbour,
        ),
        (
            "a disturbed search, and quiet loads after it that are slow by themselves",
            Contrast {
                stopped_by: StoppedBy::Disturbed,
                ..usual().with(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)])
            },
            Cause::Delay,
        ),
        (
            "a disturbed search, and quiet loads after it that hold more",
            Contrast { stopped_by: StoppedBy::Disturbed, held_past_rps: Some(1100.0), ..usual() },
            Cause::Neighbour,
        ),
        (
            "so slow that a low load has no request",
            Contrast { lower_rps: 0.0, ..usual().without(&[P50, P99]).alone(700.0) },
            Cause::Delay,
        ),
        ("slow at any load", usual().with(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)]), Cause::Delay),
        (
            "warming up",
            {
                let case = usual().with(&[(Compiling, 0.3, 0.05, 0.0), (Goodput, 150.0, 950.0, 1100.0)]);
                Contrast { held_past_rps: Some(1100.0), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "slower at the beginning and at the low load",
            {
                let mut case = usual().alone(40.0).with(&[(Goodput, 150.0, 950.0, 1100.0), (Service, 4e7, 1e7, 1e7)]);
                (case.low.service_mean_ns, case.half.service_mean_ns) = (Some(40e6), Some(10e6));
                Contrast { held_past_rps: Some(1100.0), alone_first_ns: Some(40e6), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "slower at the beginning",
            {
                let case = usual().with(&[(Goodput, 150.0, 950.0, 1100.0)]);
                Contrast { held_past_rps: Some(1100.0), alone_first_ns: Some(40e6), ..case }
            },
            Cause::WarmUp,
        ),
        (
            "the highest rate allowed",
            Contrast { stopped_by: StoppedBy::MaxRate, upper_rps: None, ..usual() },
            Cause::None,
        ),
        (
            "plimsoll, which may open too few connections",
            {
                let mut case = usual().alone(20.0).with(&[(InFlight, 2.0, 20.0, 20.0)]);
                case.past.under_way_max = 20.0;
                case
            },
            Cause::Client,
        ),
        (
            "plimsoll, whose connections are taken when arrivals at random come",
            {
                let mut case = usual().alone(10.0).with(&[(InFlight, 1.5, 6.5, 7.2), (Service, 1e7, 1e7, 1.1e7)]);
                (case.past.under_way_max, case.past.unsent_share) = (10.0, 0.2);
                case
            },
            Cause::Client,
        ),
        ("plimsoll", Contrast { stopped_by: StoppedBy::Client, ..usual() }, Cause::Client),
        (
            "ports that the search used up, while plimsoll is busy with failures",
            {
                let mut case = usual().with(&[(TimeWait, 1.0, 1.0, 1.0), (Failed, 0.9, 0.9, 0.9)]);
                (case.low.opened, case.line.limited) = (20, Some(crate::sentence::Sentence::from("a worker was busy")));
                case
            },
            Cause::Ports,
        ),
        (
            "the same, where the server is too busy with failing at the low load to be asked for its ports",
            {
                let mut case = usual().with(&[(TimeWait, 1.0, 1.0, 1.0), (Failed, 0.9, 0.9, 0.9)]);
                case.low.values.remove(&TimeWait);
                case.half.opened = 20;
                case.line.limited = Some(crate::sentence::Sentence::from("a worker was busy"));
                case
            },
            Cause::Ports,
        ),
        (
            "ports of the server's own connections",
            usual().peers(2.0, 8.0, 8.0).with(&[(TimeWait, 0.1, 0.9, 0.99), (Failed, 0.0, 0.0, 0.3)]),
            Cause::Ports,
        ),
        (
            "ports",
            {
                let mut case = Contrast { stopped_by: StoppedBy::Client, ..usual() };
                case.past.no_port = 500;
                case
            },
            Cause::Ports,
        ),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(_, case, cause)| named(case) != *cause)
        .map(|(what, case, cause)| format!("{what}: {}, not {cause}\n{}", named(case), tell(case)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

#[test]
fn too_little_names_nothing() {
    let seen_of_server: Vec<Signal> = [ServerCores, FullestThread, FullThreads, Threads, Processes, RunQueue, Switches]
        .into_iter()
        .chain([
            Blocked,
            MajorFaults,
            Files,
            ListenQueue,
            Accepted,
            Gc,
            Compiling,
            Idle,
            Cores,
            InLock,
            InSleep,
            InDisk,
        ])
        .collect();
    let full = [(FullestThread, 0.15, 0.93, 0.99), (FullThreads, 0.0, 1.0, 1.0), (ServerCores, 0.15, 0.95, 1.0)];
    for (what, case) in [
        ("a plateau of which nothing else is known", usual()),
        (
            "two loops of events that have taken all, with connections that stand idle to what answers as soon as ever",
            usual().alone(1.9).peers(7.0, 6.0, 6.0).with(&[
                (Threads, 3.0, 3.0, 3.0),
                (Processes, 3.0, 3.0, 3.0),
                (PeerWaiting, 0.4, 1.2, 2.0),
                (Unaccepted, 0.0, 0.0, 0.0),
                (InFlight, 0.3, 1.7, 108.0),
            ]),
        ),
        ("a full thread that nobody saw", usual().with(&full).without(&seen_of_server)),
        (
            "no load but one",
            Contrast {
                low: LoadSignals::default(),
                half: LoadSignals::default(),
                past: LoadSignals::default(),
                ..usual()
            },
        ),
        (
            "a thread that is as full at a low load",
            usual().with(&[(FullestThread, 0.99, 0.99, 0.99), (FullThreads, 1.0, 1.0, 1.0)]),
        ),
        ("a rate inside of a wide bracket", {
            let case = usual().with(&[(Compiling, 0.3, 0.05, 0.0), (Goodput, 150.0, 950.0, 1100.0)]);
            Contrast { held_past_rps: Some(1100.0), upper_rps: Some(2000.0), ..case }
        }),
        ("a line that lay too low by chance", {
            let case = usual().with(&[(Goodput, 150.0, 950.0, 1100.0)]);
            Contrast { held_past_rps: Some(1100.0), ..case }
        }),
        ("refusals at any load", usual().with(&[(Refused, 0.1, 0.1, 0.1), (Failed, 0.1, 0.1, 0.1)])),
        (
            "cores that others use up",
            usual().with(&[(Idle, 2.0, 0.1, 0.1), (Others, 1.0, 3.7, 3.7), (ServerCores, 0.02, 0.1, 0.12)]),
        ),
        ("others whose work grows with the load", {
            let mut case = usual().with(&[(Others, 0.1, 1.5, 1.6)]);
            case.line.disturbed = Some("others used 1.5 of 4 cores".into());
            case
        }),
    ] {
        assert_eq!(named(&case), Cause::Unknown, "{what}\n{}", tell(&case));
    }
}

/// A pause of half a second in the middle of a low load makes its tail late, and that of no other.
fn stalled_when_low() -> Contrast {
    let mut case = usual();
    case.low.values.insert(P99, 600e6);
    case
}

/// A remote target: what the load alone tells is told.
#[test]
fn the_load_alone_tells_some() {
    let seen: Vec<Signal> =
        usual().low.values.keys().copied().filter(|signal| signal.text().source != "the load").collect();
    let refusing =
        [(Refused, 0.0, 0.0, 0.1), (Failed, 0.0, 0.0, 0.1), (Service, 10e6, 10e6, 10e6), (FailedAfter, 0.0, 0.0, 3e5)];
    for (case, cause) in [
        (usual().with(&refusing), Cause::Limiter),
        (usual().with(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)]), Cause::Delay),
        (usual().with(&[(Connect, 1e5, 2e5, 1.02e9), (Service, 10e6, 10e6, 11e6)]), Cause::AcceptBacklog),
        (stalled_when_low(), Cause::Unknown),
        (usual(), Cause::Unknown),
    ] {
        let case = case.without(&seen);
        assert_eq!(named(&case), cause, "{}", tell(&case));
    }
}

#[test]
fn of_a_server_that_its_search_has_broken_nothing_is_told() {
    for (answered, lower_rps, expect) in [
        (150.0, 1000.0, None),
        (70.0, 1000.0, Some(70.0)),
        (0.0, 1000.0, Some(0.0)),
        // Where no line was found it never held so much.
        (70.0, 0.0, None),
    ] {
        let case = usual().with(&[(Goodput, answered, 100.0, 90.0)]);
        let case = Contrast { lower_rps, ..case };
        assert_eq!(case.broken_since(), expect, "{answered} {lower_rps}");
        let text = answer::not_known(&case, &[]);
        assert_eq!(
            text.contains("has not come back from its search: it held 1 000 requests/s"),
            expect.is_some(),
            "{text}"
        );
    }
}

#[test]
fn of_what_fails_at_any_load_no_limit_is_told() {
    let slo = Slo::default();
    let told = |case: &Contrast| {
        let weighed = weigh(case, &BTreeMap::new());
        let first = weighed.candidates.first().filter(|_| weighed.named);
        (case.fails_anyhow().is_some(), case.plateau(), first.map(|first| first.cause))
    };
    let failing = |share: f64| {
        let mut case = usual().with(&[(Goodput, 150.0 * (1.0 - share), 950.0 * (1.0 - share), 1100.0 * (1.0 - share))]);
        case.slo = slo.clone();
        case.low.failures = vec![("reset".into(), (150.0 * share * case.low.seconds) as u64)];
        case
    };
    assert_eq!(told(&failing(0.05)), (true, Some(false), None), "all that is asked is answered as at a low load");
    assert!(!told(&failing(0.0)).0);
    assert!(!told(&failing(0.001)).0, "by chance");
    let text = answer::not_known(&failing(0.05), &[]);
    assert!(text.contains("5.0 % of the requests fail at a low load already (reset)"), "{text}");
    let searched = Contrast { failing: Some(Failing { share: 0.005, from_rps: 250.0, to_rps: 4000.0 }), ..usual() };
    assert_eq!((told(&searched).0, told(&searched).2), (true, None));
    let text = answer::not_known(&searched, &[]);
    assert!(text.contains("0.5 % of the requests fail whatever the load (at 250 a second as at 4 000)"), "{text}");
    let short = Contrast {
        low: LoadSignals::default(),
        half: LoadSignals::default(),
        line: LoadSignals::default(),
        past: LoadSignals::default(),
        ..usual()
    };
    assert_eq!(short.at_a_time(), None, "one at a time was asked, and served");
    assert!(answer::not_known(&short, &[]).contains("the budget was too short"));
}

#[test]
fn words_are_the_vocabulary() {
    let words: Vec<&str> = Cause::ALL.iter().map(|cause| cause.word()).collect();
    let unique: std::collections::BTreeSet<&str> = words.iter().copied().collect();
    assert_eq!(unique.len(), Cause::ALL.len());
    // Each has a row, but for the one that is no cause.
    let missing: Vec<&Cause> =
        Cause::ALL.iter().filter(|cause| rules::rules().all(|rule| rule.cause != **cause)).collect();
    assert_eq!(missing, [&Cause::Unknown]);
}

#[test]
fn the_sentence_names_what_it_is_about() {
    for (case, expect) in [
        (
            usual().alone(4.5).peers(4.0, 4.0, 4.0),
            "4 connections to 127.0.0.1:6379 hold the line at 1 000 requests/s: all are in use while 500 requests are under way; 3.8 of 4 cores are idle",
        ),
        (
            usual().with(&[
                (FullestThread, 0.15, 0.93, 0.99),
                (FullThreads, 0.0, 1.0, 1.0),
                (ServerCores, 0.15, 0.95, 1.0),
            ]),
            "one thread of api holds the line at 1 000 requests/s: it uses 0.99 of a core; 3.8 of 4 cores are idle",
        ),
    ] {
        assert_eq!(answer::sentence(&case, named(&case)), crate::sentence::Sentence::from(expect), "{}", tell(&case));
    }
}

#[test]
fn without_a_collector_its_cores_are_left_for_requests() {
    let full = [(ServerCores, 0.5, 3.4, 3.6), (Idle, 3.3, 0.3, 0.1), (Gc, 0.3, 0.4, 0.5)];
    let found = predicted(&usual().with(&full), Cause::Gc).expect("the cores are full");
    assert_eq!((found.line_rps, found.next_cause, found.doubled_rps), (2000.0, Cause::Cpu, None));
    let stops = usual().with(&[(Gc, 0.1, 0.3, 0.3), (GcPauses, 0.0, 0.2, 0.3)]);
    assert_eq!(predicted(&stops, Cause::Gc), None, "it is not cores that are missing");
    assert!(answer::told(&stops, Cause::Gc).how.is_some_and(|how| how.contains("stands still for it 30")));
}

/// Where there is no line, or one between two rates that lie far apart, more answers past what was called the line are no sign that
/// nothing is full.
#[test]
fn what_is_not_answered_is_a_plateau_whatever_was_called_the_line() {
    let case = |lower_rps: f64, upper_rps: Option<f64>| Contrast { lower_rps, upper_rps, ..usual() };
    for (what, case, got, expect) in [
        ("at the line", case(950.0, Some(960.0)), 960.0, true),
        ("far above a line that is known", case(950.0, Some(960.0)), 1200.0, false),
        (
            "a little above what was held past the line",
            Contrast { held_past_rps: Some(1150.0), ..case(950.0, Some(960.0)) },
            1200.0,
            true,
        ),
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
