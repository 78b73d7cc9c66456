//! Tests that the event loop divides its time: no connection delays other connections, deadlines,
//! arrivals or the loop's end.

use super::*;
use plimsoll_model::{EarlyStopReason, LoadEnd};

/// The maximum delay of a deadline, an arrival or a response that one turn of the event loop may
/// cause, ns.
const TURN_DELAY_NS_MAX: u64 = 6 * MS;

#[test]
fn an_endless_response_delays_neither_deadlines_nor_the_run_end() {
    for users in ["1@200ms", "4@200ms", "300@200ms"] {
        let sim = run(&closed_loop_plan(users), &SimServer::new(MS).with_fault(Fault::Floods, 1.0), first_seed());
        let totals = sim.run.totals();
        let what = format!("{users}: {:?}, over at {}", totals.routes_sum.ledger, sim.finish_ns);
        assert_eq!(failed_request_count(&sim, RequestFailure::Timeout), totals.routes_sum.ledger.scheduled, "{what}");
        assert!(totals.load.bytes_in > 50_000_000, "it does flood: {what}: {}", totals.load.bytes_in);
        assert!(
            totals.routes_sum.response.max_ns() < 60 * MS + TURN_DELAY_NS_MAX,
            "{what}: {}",
            totals.routes_sum.response.max_ns()
        );
        // The run continues until the last deadlines have passed.
        assert!(sim.finish_ns < 200 * MS + 60 * MS + 2 * TURN_DELAY_NS_MAX, "{what}");
    }
}

#[test]
fn a_run_under_a_flood_can_be_stopped() {
    for load in [closed_loop_plan("4@1s"), poisson_rate_plan("300@1s")] {
        let server = SimServer::new(MS).with_fault(Fault::Floods, 1.0);
        let (machine, seed) = (SimMachine::default(), first_seed());
        let sim = Simulation { plan: &load, stripe: Stripe::WHOLE_SCHEDULE, server: &server, machine, seed }.run(
            &mut |tick| match tick.end_ns >= 200 * MS {
                true => ControlFlow::Break(EarlyStopReason::ResultCertain("enough".into())),
                false => ControlFlow::Continue(()),
            },
        );
        verify(&sim, &server).expect("holds");
        assert_eq!(sim.run.ending, Some(LoadEnd::Stopped(EarlyStopReason::ResultCertain("enough".into()))));
        assert!(sim.finish_ns < 200 * MS + 2 * TURN_DELAY_NS_MAX, "{}", sim.finish_ns);
    }
}

#[test]
fn endless_responses_do_not_delay_other_connections() {
    // Three of ten responses never end. The seven other responses take as long as usual, plus the
    // duration of a few turns of the event loop.
    for plan in
        [closed_loop_plan("8@200ms"), constant_rate_plan("200@200ms").with_change(|it| it.load.connections_ready = 40)]
    {
        let sim = run(&plan, &SimServer::new(MS).with_fault(Fault::Floods, 0.3), first_seed());
        let totals = sim.run.totals();
        let ledger = &totals.routes_sum.ledger;
        assert!(ledger.succeeded > 0, "{ledger:?}");
        assert_eq!(
            ledger.succeeded + failed_request_count(&sim, RequestFailure::Timeout),
            ledger.scheduled,
            "{ledger:?}"
        );
        assert_eq!(failed_request_count(&sim, RequestFailure::Timeout), sim.account.faults, "{ledger:?}");
        assert!(totals.routes_sum.ttfb.max_ns() < 5 * MS, "{}", totals.routes_sum.ttfb.max_ns());
        assert!(totals.load.lag.max_ns() < TURN_DELAY_NS_MAX, "arrivals: {}", totals.load.lag.max_ns());
    }
}

#[test]
fn unfinished_work_continues_in_the_next_turn() {
    // All bytes of a huge response arrive at once and cause a single event, even if the client
    // reads them later.
    for (fault, connects) in [(Fault::Huge, Some(6)), (Fault::HugeUntilClose, None)] {
        for receive_ns in [0, 30_000, 2 * MS] {
            let machine = SimMachine { receive_ns, ..SimMachine::default() };
            let plan = closed_loop_plan("6@200ms").with_change(|it| {
                it.traffic.routes[0].timeout_ns = 10 * SECOND;
                it.load.grace_ns = 10 * SECOND
            });
            let sim = run_on_machine(machine, &plan, &SimServer::new(MS).with_fault(fault, 1.0), first_seed());
            let ledger = sim.run.totals().routes_sum.ledger;
            assert!(ledger.succeeded > 5, "{fault:?}, {receive_ns}: {ledger:?}");
            assert_eq!(ledger.succeeded, ledger.scheduled, "{fault:?}, {receive_ns}: {ledger:?}");
            assert!(connects.is_none_or(|connects| connects == sim.account.connects), "{}", sim.account.connects);
        }
    }
}

#[test]
fn a_fast_upload_waits_for_its_turn() {
    // A send of 256 KiB takes 0.4 ms, after which the send buffer has room again. Sending the body
    // of 64 MiB in one turn of the event loop would take 100 ms.
    let machine = SimMachine { send_ns: 400_000, ..SimMachine::default() };
    let server = SimServer { latency_ns: 0, buffer_bytes: 256 << 10, ..SimServer::new(0) };
    for plan in [closed_loop_plan("2@200ms"), constant_rate_plan("20@200ms")] {
        let mut plan = plan;
        plan.traffic.routes[0].request.method = "POST".into();
        plan.traffic.routes[0].request.body = vec![b'x'; 64 << 20];
        let sim = run_on_machine(machine, &plan, &server, first_seed());
        let totals = sim.run.totals();
        assert_eq!(
            failed_request_count(&sim, RequestFailure::Timeout),
            totals.routes_sum.ledger.scheduled,
            "{:?}",
            totals.routes_sum.ledger
        );
        assert!(
            totals.routes_sum.response.max_ns() < 60 * MS + TURN_DELAY_NS_MAX,
            "{}",
            totals.routes_sum.response.max_ns()
        );
        // With a longer timeout, the request completes.
        plan.traffic.routes[0].timeout_ns = 20 * SECOND;
        plan.load.grace_ns = 20 * SECOND;
        let ledger = run_on_machine(machine, &plan, &server, first_seed()).run.totals().routes_sum.ledger;
        assert!(ledger.succeeded > 0 && ledger.succeeded == ledger.scheduled, "{ledger:?}");
    }
}

#[test]
fn joins_and_retries_do_not_delay_other_users() {
    // 2 000 users join at once, which takes 40 ms of the generator's time. The first responses are
    // read while other users still join.
    let machine = SimMachine { send_ns: 20_000, ..SimMachine::default() };
    let plan = closed_loop_plan("2000@60ms").with_change(|it| {
        it.load.connections_ready = 2_000;
        it.traffic.routes[0].timeout_ns = SECOND
    });
    let totals = run_on_machine(machine, &plan, &SimServer::new(MS), first_seed()).run.totals();
    assert_eq!(
        totals.routes_sum.ledger.succeeded, totals.routes_sum.ledger.scheduled,
        "{:?}",
        totals.routes_sum.ledger
    );
    assert!(totals.routes_sum.service.quantile_ns(0.1) < 4 * MS, "{}", totals.routes_sum.service.quantile_ns(0.1));
    // 2 000 failed connects take longer than a user's pause before its next connect, and the event
    // loop must still handle other work.
    let machine = SimMachine { connect_ns: 20_000, ..SimMachine::default() };
    let server = SimServer::new(MS).with_fault(Fault::NoPort, 1.0);
    let sim = Simulation {
        plan: &closed_loop_plan("2000@10s").with_change(|it| it.load.connections_ready = 0),
        stripe: Stripe::WHOLE_SCHEDULE,
        server: &server,
        machine,
        seed: first_seed(),
    }
    .run(&mut |tick| match tick.end_ns >= 200 * MS {
        true => ControlFlow::Break(EarlyStopReason::ResultCertain("enough".into())),
        false => ControlFlow::Continue(()),
    });
    assert!(sim.finish_ns < 200 * MS + 2 * TURN_DELAY_NS_MAX, "{}", sim.finish_ns);
}

#[test]
fn bytes_after_a_response_are_counted() {
    for (fault, bytes) in [(Fault::GarbageAfterReply, 8), (Fault::SendsUnsolicited(20 * MS), 14)] {
        let sim = run(&constant_rate_plan("10@2s"), &SimServer::new(MS).with_fault(fault, 1.0), first_seed());
        let totals = sim.run.totals();
        assert_eq!((totals.routes_sum.ledger.succeeded, totals.load.surplus_connections), (20, 20), "{fault:?}");
        assert_eq!(totals.load.surplus_bytes, 20 * bytes, "{fault:?}");
    }
    for fault in [Fault::Chunked, Fault::Large, Fault::UntilClose, Fault::SaysClose, Fault::Garbage] {
        let totals =
            run(&constant_rate_plan("10@2s"), &SimServer::new(MS).with_fault(fault, 1.0), first_seed()).run.totals();
        assert_eq!((totals.load.surplus_bytes, totals.load.surplus_connections), (0, 0), "{fault:?}");
    }
}
