//! Tests that connections are opened, reused, abandoned and replaced at the right time.

use super::*;

#[test]
fn idle_connections_are_reused_up_to_the_maximum() {
    for seed in first_seed()..first_seed() + 5 {
        for (connections_max, connections_ready) in [(10_000, 0), (10_000, 30), (8, 0), (8, 8), (1, 1)] {
            let plan = poisson_rate_plan("2000@500ms").with_change(|it| {
                it.connection_plan.connections_max = connections_max;
                it.load.connections_ready = connections_ready
            });
            let server = SimServer { service: ServiceTimes::Exponential(5 * MS), ..SimServer::new(0) };
            let sim = run(&plan, &server, seed);
            let ledger = sim.run.totals().routes_sum.ledger;
            let what = format!("{connections_max}, {connections_ready}, PLIMSOLL_SEED={seed}: {ledger:?}");
            assert_eq!(sim.account.connects_despite_idle, 0, "{what}");
            assert!(sim.account.connections_max <= u64::from(connections_max), "{what}");
            assert_eq!(ledger.scheduled, measured_arrivals_until(&sim, u64::MAX), "{what}");
            if connections_max == 10_000 {
                // With a maximum of 10 000 connections, no request waits for a connection, so all
                // requests are sent.
                assert_eq!((ledger.unsent, ledger.succeeded), (0, ledger.scheduled), "{what}");
            } else {
                assert!(ledger.unsent > 0, "{what}");
            }
            if connections_ready >= 30 {
                assert_eq!(sim.account.connects_under_load, 0, "{what}: ready before the schedule begins");
            }
        }
    }
}

/// Checks that connections opened before the load are used in the order of their opening, before
/// any connection is used again. Some servers block a thread on each accepted connection until its
/// first request, in the order of acceptance.
#[test]
fn ready_connections_are_used_in_order_before_reuse() {
    for service_ns in [MS, 200 * MS] {
        let plan = constant_rate_plan("100@1s").with_change(|it| it.load.connections_ready = 12);
        let sim = run(&plan, &SimServer::new(service_ns), first_seed());
        let in_order: Vec<usize> = (0..12).collect();
        assert_eq!(sim.account.connections_by_first_request[..12], in_order, "{service_ns} ns");
        assert_eq!(sim.account.connects_under_load, sim.account.connects - 12);
    }
}

#[test]
fn an_open_loop_never_waits_for_a_free_connection() {
    // Each request takes 50 ms, so 50 requests are in flight at a time, and every request starts on
    // time.
    let sim = run(&constant_rate_plan("1000@300ms"), &SimServer::new(50 * MS), first_seed());
    let totals = sim.run.totals();
    assert!(totals.load.lag.count() == 300 && totals.load.lag.max_ns() < 1_000, "{:?}", totals.load.lag);
    assert_eq!(totals.routes_sum.ledger.succeeded, 300);
    assert!((50..=52).contains(&sim.account.connections_max), "{}", sim.account.connections_max);
}

#[test]
fn connections_of_users_open_before_the_load() {
    let plan = closed_loop_plan("7@100ms").with_change(|it| it.load.connections_ready = 7);
    let sim = run(&plan, &SimServer::new(MS), first_seed());
    assert_eq!((sim.account.connects, sim.account.connects_under_load), (7, 0));
    // The preparation opens as many connections as the plan demands, but at most one for each user.
    for (ready, expect) in [(3, 3), (50, 7)] {
        let plan = closed_loop_plan("7@100ms").with_change(|it| it.load.connections_ready = ready);
        let sim = run(&plan, &SimServer::new(MS), first_seed());
        assert_eq!(sim.account.connects - sim.account.connects_under_load, expect);
        assert_eq!(sim.account.connects, 7);
    }
}

#[test]
fn the_load_opens_connections_that_failed_before_it() {
    // The server accepts no connection before the schedule begins. At the start of the schedule the
    // load opens new connections. A connection that never opened must not block new connections.
    for plan in [
        closed_loop_plan("4@100ms"),
        constant_rate_plan("500@100ms").with_change(|it| it.connection_plan.connections_max = 4),
    ] {
        let plan = plan.with_change(|it| it.load.connections_ready = 4);
        let server = SimServer { faults_until_ns: 0, ..SimServer::new(MS) }.with_fault(Fault::NeverAccepts, 1.0);
        let ledger = run(&plan, &server, first_seed()).run.totals().routes_sum.ledger;
        assert_eq!((ledger.succeeded, ledger.unsent), (ledger.scheduled, 0), "{ledger:?}");
    }
    // The preparation ends as soon as all of its connections have opened or failed.
    for (fault, prepared_ns_max) in [
        (Fault::Refuses, 20 * MS),
        (Fault::NoPort, 20 * MS),
        (Fault::ResetsOnAccept, 20 * MS),
        (Fault::NeverAccepts, 5 * SECOND),
    ] {
        for plan in [closed_loop_plan("300@50ms"), constant_rate_plan("100@50ms")] {
            let plan = plan.with_change(|it| it.load.connections_ready = 300);
            let sim = run(&plan, &SimServer::new(MS).with_fault(fault, 1.0), first_seed());
            assert!(sim.prepared_ns <= prepared_ns_max, "{fault:?}: {} ns", sim.prepared_ns);
        }
    }
}

#[test]
fn a_dead_address_of_a_host_fails_no_request() {
    let address = |n: u8| std::net::SocketAddr::from(([10, 0, 0, n], 80));
    for dead in [vec![], vec![address(1)], vec![address(1), address(3)], vec![address(1), address(2), address(3)]] {
        for connects_at_once in [false, true] {
            for ready in [0, 6] {
                for plan in [closed_loop_plan("6@100ms"), constant_rate_plan("500@100ms")] {
                    let mut plan = plan.with_change(|it| it.load.connections_ready = ready);
                    plan.connection_plan.addresses = (1..=3).map(address).collect();
                    plan.connection_plan.keep_alive = false;
                    let server = SimServer { dead: dead.clone(), ..SimServer::new(MS) };
                    let machine = SimMachine { connects_at_once, ..SimMachine::default() };
                    let sim = run_on_machine(machine, &plan, &server, first_seed());
                    let totals = sim.run.totals();
                    let what = format!("{dead:?}, {ready}, {:?}", totals.routes_sum.ledger);
                    let failing: Vec<u16> = totals.load.address_errors.iter().map(|(number, _)| number).collect();
                    let expect: Vec<u16> = (0..3).filter(|n| dead.contains(&address(*n as u8 + 1))).collect();
                    assert_eq!(failing, expect, "{what}");
                    if dead.len() < 3 {
                        assert_eq!(totals.routes_sum.ledger.succeeded, totals.routes_sum.ledger.scheduled, "{what}");
                    } else {
                        assert_eq!(
                            failed_request_count(&sim, RequestFailure::Connect),
                            totals.routes_sum.ledger.scheduled,
                            "{what}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn unusable_connections_are_replaced() {
    let kept = run(&closed_loop_plan("1@300ms"), &SimServer::new(MS), first_seed());
    assert_eq!(kept.account.connects, 1, "a good connection is kept");
    for (fault, failure) in [
        (Fault::Garbage, Some(RequestFailure::Protocol)),
        (Fault::ClosesInReply, Some(RequestFailure::ClosedEarly)),
        (Fault::ResetsAfterReading, Some(RequestFailure::Reset)),
        (Fault::NeverAnswers, Some(RequestFailure::Timeout)),
        (Fault::GarbageAfterReply, None),
        (Fault::SaysClose, None),
        (Fault::ClosesUnannounced, None),
        (Fault::UntilClose, None),
    ] {
        for seed in first_seed()..first_seed() + 3 {
            let sim = run(&closed_loop_plan("1@300ms"), &SimServer::new(MS).with_fault(fault, 0.3), seed);
            let ledger = sim.run.totals().routes_sum.ledger;
            let what = format!("{fault:?}, PLIMSOLL_SEED={seed}: {ledger:?}");
            // Every fault ends one connection, but the last of these connections may not be
            // replaced before the end of the run.
            let faults = sim.account.faults;
            assert!(
                (faults..=faults + 1).contains(&sim.account.connects),
                "{what}: {faults}, {}",
                sim.account.connects
            );
            assert_eq!(ledger.failed_total(), failure.map_or(0, |_| faults), "{what}");
            assert_eq!(ledger.failed_total(), failure.map_or(0, |kind| ledger.failed[kind as usize]), "{what}");
        }
    }
    // An error status is a complete response, so the connection stays open.
    let sim = run(&closed_loop_plan("1@300ms"), &SimServer::new(MS).with_fault(Fault::Status(500), 1.0), first_seed());
    assert_eq!(
        (sim.account.connects, failed_request_count(&sim, RequestFailure::Status)),
        (1, sim.run.totals().routes_sum.ledger.scheduled)
    );
}

#[test]
fn idle_connections_closed_by_the_server_are_not_used() {
    // The server closes idle connections long before the next arrival. The client notices the close
    // before it uses the connection again, so no request fails.
    let server = SimServer { idle_close_ns: Some(20 * MS), ..SimServer::new(MS) };
    for plan in
        [constant_rate_plan("10@2s"), constant_rate_plan("10@2s").with_change(|it| it.load.connections_ready = 5)]
    {
        let sim = run(&plan, &server, first_seed());
        let ledger = sim.run.totals().routes_sum.ledger;
        assert_eq!(ledger.succeeded, 20, "{ledger:?}");
        assert!(sim.account.connects >= 20);
    }
    // The server closes the users' prepared connections before the load begins, but no request
    // fails.
    let server = SimServer { idle_close_ns: Some(500_000), ..SimServer::new(MS) };
    let plan = closed_loop_plan("4@100ms").with_change(|it| it.load.connections_ready = 4);
    let ledger = run(&plan, &server, first_seed()).run.totals().routes_sum.ledger;
    assert_eq!(ledger.succeeded, ledger.scheduled, "{ledger:?}");
    // Unsolicited bytes from the server end the connection, but no request fails.
    let server = SimServer::new(MS).with_fault(Fault::SendsUnsolicited(20 * MS), 1.0);
    let sim = run(&constant_rate_plan("10@2s"), &server, first_seed());
    assert_eq!((sim.run.totals().routes_sum.ledger.succeeded, sim.account.connects), (20, 20));
}

#[test]
fn users_keep_their_connections_while_their_number_changes() {
    let sim = run(&closed_loop_plan("2@100ms,6@100ms,1@100ms,6@100ms"), &SimServer::new(MS), first_seed());
    assert_eq!(sim.account.connects, 6);
    let requests = sim.run.totals().routes_sum.ledger.succeeded;
    // A request takes 1.1 ms, and the four stages of the load have 15 users in total, each for 100
    // ms. A user that leaves the load finishes its request.
    assert!(is_near(requests as f64, 1500.0 / 1.1, 0.02), "{requests}");
    // A user that returns to the load while the retry of its failed connect is pending must not
    // have two requests.
    for seed in first_seed()..first_seed() + 20 {
        let plan = closed_loop_plan("9@50ms,0@2ms,9@2ms,0@1ms,9@30ms,3@1ms,9@20ms");
        run(&plan, &SimServer::new(MS).with_fault(Fault::Refuses, 0.5), seed);
        run(&plan, &SimServer::new(MS).with_fault(Fault::NoPort, 0.9), seed);
    }
}

#[test]
fn large_bodies_wait_for_buffer_space() {
    let mut plan = constant_rate_plan("50@400ms");
    plan.traffic.routes[0].request.method = "POST".into();
    plan.traffic.routes[0].request.body = (0..1_000_000u32).map(|i| (i % 253) as u8).collect();
    let server = SimServer { intake: Some((60_000, MS)), ..SimServer::new(MS) };
    let sim = run(&plan, &server, first_seed());
    assert_eq!(sim.run.totals().routes_sum.ledger.succeeded, 20);
    assert!(sim.account.blocked > 20, "{}", sim.account.blocked);
    // Service time starts with the first byte sent, and includes 17 reads of the server, 1 ms
    // apart.
    assert!(sim.run.totals().routes_sum.service.min_ns() > 16 * MS);
    // If a connection breaks during a request body, the outcome is a reset, or the response if the
    // response arrived before the break.
    for seed in first_seed()..first_seed() + 3 {
        for (fault, failure) in [
            (Fault::ResetsBeforeReading, RequestFailure::Reset),
            (Fault::AnswersEarlyAndCloses, RequestFailure::Status),
            (Fault::AnswersEarlyAndGoesOn, RequestFailure::Status),
            (Fault::TakesHalf, RequestFailure::Timeout),
        ] {
            for spin in [Spin::Off, Spin::On] {
                let plan = plan.clone().with_change(|it| {
                    it.injector.spin = spin;
                    it.load.duration_ns = Some(100 * MS)
                });
                let sim = run(&plan, &server.clone().with_fault(fault, 1.0), seed);
                let ledger = sim.run.totals().routes_sum.ledger;
                assert_eq!(
                    failed_request_count(&sim, failure),
                    ledger.scheduled,
                    "{fault:?}, PLIMSOLL_SEED={seed}: {ledger:?}"
                );
            }
        }
    }
}

#[test]
fn a_send_on_a_broken_connection_is_a_reset() {
    // Sending takes so long that the reset of the connection arrives between two sends of one
    // request.
    let machine = SimMachine { send_ns: 60_000, receive_ns: 60_000, ..SimMachine::default() };
    for seed in first_seed()..first_seed() + 5 {
        for plan in [closed_loop_plan("5@200ms"), poisson_rate_plan("300@200ms")] {
            for fault in [Fault::ResetsOnAccept, Fault::ClosesAfter(100_000), Fault::ResetsBeforeReading] {
                let mut plan = plan.clone();
                plan.traffic.routes[0].request.body = vec![b'x'; 100_000];
                let sim = run_on_machine(machine, &plan, &SimServer::new(100_000).with_fault(fault, 0.7), seed);
                let ledger = sim.run.totals().routes_sum.ledger;
                let allowed = [RequestFailure::Connect, RequestFailure::Reset, RequestFailure::ClosedEarly];
                let other =
                    RequestFailure::ALL.iter().filter(|f| !allowed.contains(f)).map(|f| ledger.failed[*f as usize]);
                assert_eq!(other.sum::<u64>(), 0, "{fault:?}, PLIMSOLL_SEED={seed}: {ledger:?}");
            }
        }
    }
}

#[test]
fn split_responses_give_the_same_result() {
    for seed in first_seed()..first_seed() + 2 {
        for fault in Fault::TESTED {
            let plan = poisson_rate_plan("300@200ms").with_change(|it| it.load.connections_ready = 40);
            let share = if fault == Fault::Large { 0.02 } else { 0.5 };
            let whole =
                SimServer { service: ServiceTimes::Exponential(MS), ..SimServer::new(0) }.with_fault(fault, share);
            let bytes = SimServer { cut: ResponseSplit::Bytes, ..whole.clone() };
            let [whole, bytes] = [whole, bytes].map(|server| run(&plan, &server, seed).run.totals());
            let what = format!("{fault:?}, PLIMSOLL_SEED={seed}");
            assert_eq!(whole.routes_sum.ledger, bytes.routes_sum.ledger, "{what}");
            assert_eq!(whole.routes_sum.statuses, bytes.routes_sum.statuses, "{what}");
        }
    }
}
