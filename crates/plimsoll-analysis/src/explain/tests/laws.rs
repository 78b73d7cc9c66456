//! Tests of single queueing laws, each with observations that satisfy the law and observations that
//! contradict the law.

use super::*;
use crate::explain::queues::{sleeping_threads_equal_requests, statements_wait_for_locks};

/// Checks that the main peer of two dependencies is the dependency that gets requests, even if it
/// has fewer connections.
#[test]
fn the_main_peer_is_a_dependency_that_gets_requests() {
    let (asked, idle) = ("127.0.0.1:6379".to_owned(), "127.0.0.1:9999".to_owned());
    for (sent_there, held, expect) in [(Some(1.0), 8.0, &asked), (Some(900.0), 8.0, &idle), (None, 8.0, &idle)] {
        let mut case = usual_server_facts().with_peer_connections(2.0, 2.0, 2.0);
        for sight in [&mut case.line, &mut case.past] {
            sight.peers.insert(idle.clone(), held);
            sight.sent_to_peers.insert(asked.clone(), 950.0);
            sight.sent_to_peers.extend(sent_there.map(|sent| (idle.clone(), sent)));
        }
        assert_eq!(case.main_dependency().map(|peer| peer.0), Some(expect.as_str()), "{sent_there:?}");
    }
}

/// Checks that a higher throughput above the load line may still be a plateau. The load line may be
/// missing, or known only between two distant rates.
#[test]
fn unanswered_requests_show_a_plateau_for_any_load_line() {
    let case = |lower_rps: f64, upper_rps: Option<f64>| ServerFacts { lower_rps, upper_rps, ..usual_server_facts() };
    // A server with two worker processes, each with its own queue. `past_ns` is the median response
    // time above the line.
    let several = |past_ns: f64| {
        let (p50, p99) = ((P50, 9e6, 9e6, past_ns), (P99, 12e6, 200e6, 3e9));
        case(950.0, Some(960.0)).with_signals(&[p50, p99, (Processes, 3.0, 3.0, 3.0)])
    };
    for (what, case, got, expect) in [
        ("at the line", case(950.0, Some(960.0)), 960.0, true),
        ("far above a line that is known", case(950.0, Some(960.0)), 1200.0, false),
        (
            "a little above what was held past the line",
            ServerFacts { held_past_rps: Some(1150.0), ..case(950.0, Some(960.0)) },
            1200.0,
            true,
        ),
        (
            "a little above the throughput under an overload in the search",
            ServerFacts { saturated_rps: Some(1150.0), ..case(950.0, Some(960.0)) },
            1200.0,
            true,
        ),
        (
            "in the first step that was not held",
            ServerFacts { held_past_rps: Some(1050.0), ..case(950.0, Some(960.0)) },
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
        let case = case.with_signals(&[(Offered, 150.0, 950.0, 1500.0), (Goodput, 150.0, 950.0, got)]);
        assert_eq!(case.has_throughput_plateau(), Some(expect), "{what}");
    }
}

/// Checks that responses after the window are no evidence of a plateau. If a response takes long
/// even without load, the responses to the last requests arrive after the window.
#[test]
fn responses_after_the_window_show_no_plateau() {
    for (alone_ms, got, expect) in [(10.0, 1044.0, true), (240.0, 836.0, false), (240.0, 700.0, true)] {
        let case = usual_server_facts()
            .with_service_time_ms(alone_ms)
            .with_signals(&[(Goodput, 150.0, 800.0, got), (Offered, 150.0, 850.0, 1100.0)]);
        let mut case = ServerFacts { lower_rps: 0.0, upper_rps: None, ..case };
        case.past.seconds = 1.0;
        assert_eq!(case.has_throughput_plateau(), Some(expect), "{alone_ms} {got}");
    }
}

/// Checks that sleeping statements of a database count as requests in service. If the statements
/// only sleep, as many database threads wait as requests are in service. If the statements wait for
/// row locks, more database threads wait than requests are in service.
#[test]
fn sleeping_statements_count_as_in_service() {
    for (waiting, cores, storage, stands) in
        [(60.0, 0.1, 0.0, true), (52.0, 0.1, 0.0, false), (60.0, 0.9, 0.0, false), (60.0, 0.1, 0.5, false)]
    {
        let served = if waiting > 55.0 { 1.1 } else { 40.0 };
        let case = usual_server_facts()
            .with_service_time_ms(served)
            .with_peer_connections(87.0, 87.0, 103.0)
            .with_open_calls("mysqld", 0.0, 0.0)
            .with_signals(&[
                (DownstreamCores, 0.02, 0.9 * cores, cores),
                (DownstreamThreadsWaiting, 12.0, 14.0, waiting),
                (IoPressure, 0.0, storage, storage),
            ]);
        assert_eq!(
            statements_wait_for_locks(&case) == Some(true),
            stands,
            "{waiting} {cores} {storage}\n{}",
            format_posterior(&case)
        );
    }
}

/// Checks that threads that wait for the interpreter do not count as working. Threads of an
/// interpreter run one at a time. A thread that waits for its turn looks like a sleeping thread.
#[test]
fn threads_that_wait_for_the_interpreter_are_not_working() {
    for (server, asleep, expect) in
        [("python3", 5.3, true), ("python3", 7.0, false), ("api", 5.3, false), ("api", 4.4, true)]
    {
        let mut case = usual_server_facts()
            .with_service_time_ms(4.2)
            .with_signals(&[(InSleep, 0.0, asleep - 0.3, asleep), (InDisk, 0.0, 0.0, 0.0)]);
        case.past.server = Some(server.into());
        assert_eq!(sleeping_threads_equal_requests(&case), Some(expect), "{server} {asleep}");
    }
}

/// Checks that two busy threads that use all cores but those of the machine's host are limited by
/// the cores, not by one thread.
#[test]
fn cores_that_the_host_takes_are_not_idle() {
    let check = |steal: f64, threads: f64, expect: bool| {
        let case = usual_server_facts().with_signals(&[
            (Cores, 2.0, 2.0, 2.0),
            (Idle, 1.6, 0.1, 0.02),
            (Others, 0.0, 0.0, 0.05),
            (Steal, 0.0, steal, steal),
            (FullestThread, 0.15, 0.94, 0.9),
            (ServerCores, 0.3, threads, threads),
        ]);
        assert_eq!(case.is_thread_saturated(), Some(expect), "steal {steal}, {threads} cores");
    };
    check(0.0, 1.95, false);
    check(0.0, 1.6, true);
    check(0.08, 1.7, false);
    check(0.5, 1.0, true);
}
