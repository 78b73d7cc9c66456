//! Tests of loads over HTTP/2: concurrent exchanges on a connection, and servers that limit
//! streams, refuse some, and send GOAWAY.

use super::*;
use crate::sim::server::SimH2;
use plimsoll_model::{CallFault, GrpcCall, HttpChoice};

/// Returns the plan over HTTP/2, with at most this number of streams per connection.
fn plan_over_h2(plan: SimulatedPlan, streams: u32) -> SimulatedPlan {
    plan.with_change(|plan| (plan.connection_plan.http, plan.connection_plan.streams_max) = (HttpChoice::H2, streams))
}

fn h2_server(service_ns: u64, how: SimH2) -> SimServer {
    SimServer { h2: Some(how), ..SimServer::new(service_ns) }
}

/// Returns whether a time is within 10 % of the expected one.
fn is_within_ten_percent(ns: u64, expect_ns: u64) -> bool {
    ns.abs_diff(expect_ns) <= expect_ns / 10
}

#[test]
fn users_share_connections_without_waiting_for_streams() {
    for (streams, connections) in [(1, 16), (8, 2), (5, 4), (100, 1)] {
        let plan =
            plan_over_h2(closed_loop_plan("16"), streams).with_change(|plan| plan.load.duration_ns = Some(SECOND));
        let sim = run(&plan, &h2_server(MS, SimH2::new(1_000)), first_seed());
        let totals = sim.run.totals();
        assert_eq!(sim.account.connections_max, connections, "{streams} streams");
        assert_eq!(totals.load.h2_connections, connections);
        assert_eq!(totals.load.stream_waits, 0, "{streams} streams");
        // A response takes a millisecond of service plus the round trip.
        assert!(
            is_within_ten_percent(totals.routes_sum.service.quantile_ns(0.5), 1_100_000),
            "{}",
            totals.routes_sum.service.quantile_ns(0.5)
        );
        assert!(
            is_within_ten_percent(totals.routes_sum.ledger.succeeded, 16 * 1_000_000 / 1_100),
            "{:?}",
            totals.routes_sum.ledger
        );
    }
}

#[test]
fn stream_waits_are_counted_as_generator_waits() {
    // Sixteen users share two connections, with three streams each.
    let plan = plan_over_h2(closed_loop_plan("16"), 8).with_change(|plan| {
        plan.load.duration_ns = Some(SECOND);
        // On a connection that opens before the load, the client knows the limit of streams before
        // its first request.
        plan.load.connections_ready = 2;
    });
    let sim = run(&plan, &h2_server(MS, SimH2::new(3)), first_seed());
    let totals = sim.run.totals();
    assert!(
        is_within_ten_percent(totals.routes_sum.ledger.succeeded, 6 * 1_000_000 / 1_100),
        "{:?}",
        totals.routes_sum.ledger
    );
    assert!(totals.load.stream_waits * 2 > totals.routes_sum.ledger.scheduled, "{}", totals.load.stream_waits);
    assert_eq!((sim.account.connections_max, sim.account.unprocessed_streams), (2, 0));
    let (service_ns, response_ns) =
        (totals.routes_sum.service.mean_ns() as u64, totals.routes_sum.response.mean_ns() as u64);
    assert!(
        is_within_ten_percent(service_ns, 1_100_000) && is_within_ten_percent(response_ns, 1_100_000 * 16 / 6),
        "{service_ns} {response_ns}"
    );
}

#[test]
fn arrivals_use_open_connections_before_opening_more() {
    for (streams, at_least, at_most) in [(1, 40, u64::MAX), (8, 5, 8), (100, 1, 1)] {
        let plan =
            plan_over_h2(constant_rate_plan("4k"), streams).with_change(|plan| plan.load.duration_ns = Some(SECOND));
        // About 44 requests are in flight at a time.
        let sim = run(&plan, &h2_server(11 * MS, SimH2::new(1_000)), first_seed());
        let totals = sim.run.totals();
        let connections = sim.account.connections_max;
        assert!((at_least..=at_most).contains(&connections), "{streams} streams: {connections} connections");
        assert_eq!(totals.routes_sum.ledger.succeeded, 4_000, "{:?}", totals.routes_sum.ledger);
        assert!(is_within_ten_percent(totals.routes_sum.response.quantile_ns(0.5), 11_100_000), "{streams} streams");
    }
}

#[test]
fn refused_streams_are_resent_and_counted() {
    for plan in [closed_loop_plan("12"), constant_rate_plan("3k")] {
        let plan = plan_over_h2(plan, 6).with_change(|plan| plan.load.requests_max = Some(2_000));
        let server = h2_server(MS, SimH2 { refuses_every: Some(7), ..SimH2::new(100) });
        let sim = run(&plan, &server, first_seed());
        let totals = sim.run.totals();
        assert_eq!(totals.routes_sum.ledger.succeeded, 2_000, "{:?}", totals.routes_sum.ledger);
        assert!(sim.account.unprocessed_streams >= 2_000 / 7, "{}", sim.account.unprocessed_streams);
        assert_eq!(totals.load.resent, sim.account.unprocessed_streams);
        assert_eq!(sim.account.requests, 2_000);
    }
}

#[test]
fn an_always_refused_request_fails_after_the_last_try() {
    let plan = plan_over_h2(closed_loop_plan("2"), 2).with_change(|plan| plan.load.requests_max = Some(10));
    let server = h2_server(MS, SimH2 { refuses_every: Some(1), ..SimH2::new(100) });
    let sim = run(&plan, &server, first_seed());
    let totals = sim.run.totals();
    assert_eq!(
        totals.routes_sum.ledger.failed[RequestFailure::StreamReset as usize],
        10,
        "{:?}",
        totals.routes_sum.ledger
    );
    assert_eq!((sim.account.unprocessed_streams, sim.account.requests), (90, 0));
}

#[test]
fn goaway_loses_no_request() {
    for plan in [closed_loop_plan("12"), constant_rate_plan("3k"), poisson_rate_plan("3k")] {
        let plan = plan_over_h2(plan, 6).with_change(|plan| plan.load.requests_max = Some(3_000));
        let server = h2_server(MS, SimH2 { goaway_after: Some(50), ..SimH2::new(100) });
        let sim = run(&plan, &server, first_seed());
        let totals = sim.run.totals();
        assert_eq!(totals.routes_sum.ledger.succeeded, 3_000, "{:?}", totals.routes_sum.ledger);
        let left: u64 = totals.load.goaways.iter().map(|(_, count)| count).sum();
        assert!((45..=60).contains(&left), "{left} connections were left");
        assert!(totals.load.connections_opened >= left, "{left}");
        assert_eq!(sim.account.requests, 3_000, "what was taken is not asked again");
    }
}

#[test]
fn after_goaway_new_requests_do_not_wait() {
    let plan = plan_over_h2(closed_loop_plan("6"), 6).with_change(|plan| plan.load.duration_ns = Some(2 * SECOND));
    let service = ServiceTimes::SlowOneIn(MS, SECOND, 200);
    let server = h2_server(MS, SimH2 { goaway_after: Some(20), ..SimH2::new(100) });
    let sim = run(&plan, &SimServer { service, ..server }, first_seed());
    let totals = sim.run.totals();
    // Each of six users makes 200 requests in 200 times 1.1 ms plus a second, because one of 200
    // responses takes a second. If users blocked each other, all six users together would make only
    // 200 requests in this time.
    assert!(totals.routes_sum.ledger.succeeded > 1_500, "{:?}", totals.routes_sum.ledger);
    let response_ns = totals.routes_sum.response.quantile_ns(0.98);
    assert!(response_ns < 2 * MS, "{response_ns}");
    // After a GOAWAY, each slow response occupies its old connection while new requests use another
    // connection.
    assert!((2..=8).contains(&sim.account.connections_max), "{}", sim.account.connections_max);
}

#[test]
fn users_that_return_after_goaway_have_one_request_each() {
    // The users leave the load for 2 ms while their requests take 50 ms. Most of these requests are
    // on connections that replace one with GOAWAY.
    let plan = plan_over_h2(closed_loop_plan("8@60ms,0@2ms,8@60ms,0@2ms,8@60ms"), 8);
    let server = h2_server(50 * MS, SimH2 { goaway_after: Some(3), ..SimH2::new(100) });
    for seed in first_seed()..first_seed() + 10 {
        let ledger = run(&plan, &server, seed).run.totals().routes_sum.ledger;
        // In 184 ms, a user sends at most four requests one after another.
        assert!(ledger.scheduled <= 8 * 4, "seed {seed}: {ledger:?}");
    }
}

#[test]
fn stream_messages_are_timed_on_arrival() {
    let call = GrpcCall { content: Some(vec![0; 5]), returns_stream: true, ..GrpcCall::default() };
    let plan = plan_over_h2(closed_loop_plan("8"), 4).with_change(|plan| {
        plan.load.requests_max = Some(400);
        plan.traffic.routes[0].request.method = "POST".into();
        plan.traffic.routes[0].grpc = Some(call);
    });
    for cut in [ResponseSplit::Whole, ResponseSplit::Bytes] {
        let server = SimServer { cut, ..h2_server(MS, SimH2 { messages: (5, 2 * MS), ..SimH2::new(100) }) };
        let sim = run(&plan, &server, first_seed());
        let whole = sim.run.totals().routes_sum;
        assert_eq!((whole.ledger.succeeded, whole.grpc_messages), (400, 2_000), "{:?}", whole.ledger);
        assert_eq!((whole.first_message.count(), whole.message_gap.count()), (400, 1_600));
        for q in [0.01, 0.5, 1.0] {
            assert!(
                is_within_ten_percent(whole.first_message.quantile_ns(q), 1_100_000),
                "{}",
                whole.first_message.quantile_ns(q)
            );
            assert!(
                is_within_ten_percent(whole.message_gap.quantile_ns(q), 2_000_000),
                "{}",
                whole.message_gap.quantile_ns(q)
            );
        }
        // Between the last message and the end of the response, another interval of 2 ms passes.
        assert!(is_within_ten_percent(whole.service.quantile_ns(0.5), 11_100_000));
    }
}

#[test]
fn a_unary_call_has_one_message() {
    for (messages, succeeded) in [(1, 40), (2, 0)] {
        let plan = plan_over_h2(closed_loop_plan("4"), 4).with_change(|plan| {
            plan.load.requests_max = Some(40);
            plan.traffic.routes[0].request.method = "POST".into();
            plan.traffic.routes[0].grpc = Some(GrpcCall { content: Some(vec![0; 5]), ..GrpcCall::default() });
        });
        let server = h2_server(MS, SimH2 { messages: (messages, MS), ..SimH2::new(100) });
        let sim = run(&plan, &server, first_seed());
        let whole = sim.run.totals().routes_sum;
        assert_eq!((whole.ledger.succeeded, whole.grpc_messages), (succeeded, 40 * u64::from(messages)));
        assert_eq!(whole.grpc_faults.get(CallFault::SeveralMessages as u16), 40 - succeeded);
        assert_eq!(whole.grpc_statuses.get(CallFault::REPORTED_STATUS as u16), 40 - succeeded);
    }
}

#[test]
fn ledger_accounts_for_every_h2_request_under_every_fault() {
    let mut rng = plimsoll_model::rng::Rng::new(first_seed());
    for round in 0..60 {
        let seed = first_seed() + round;
        let some = |rng: &mut plimsoll_model::rng::Rng, from: u64, to: u64| from + rng.uniform_below(to - from);
        let load = match rng.uniform_below(3) {
            0 => closed_loop_plan(&some(&mut rng, 1, 40).to_string()),
            1 => constant_rate_plan(&some(&mut rng, 100, 5_000).to_string()),
            _ => poisson_rate_plan(&some(&mut rng, 100, 5_000).to_string()),
        };
        let plan = plan_over_h2(load, some(&mut rng, 1, 20) as u32).with_change(|plan| {
            plan.load.duration_ns = Some(SECOND / 4);
            plan.connection_plan.connections_max = some(&mut rng, 1, 50) as u32;
        });
        let how = SimH2 {
            refuses_every: (rng.uniform_below(2) == 0).then(|| some(&mut rng, 2, 20)),
            goaway_after: (rng.uniform_below(2) == 0).then(|| some(&mut rng, 1, 60)),
            ..SimH2::new(some(&mut rng, 1, 30) as u32)
        };
        let server = SimServer {
            service: ServiceTimes::Exponential(some(&mut rng, 1, 20) * MS / 4),
            slots: (rng.uniform_below(2) == 0).then(|| some(&mut rng, 1, 8) as usize),
            stall: (rng.uniform_below(3) == 0).then_some(SimStall { every_ns: 100 * MS, length_ns: 50 * MS }),
            cut: if rng.uniform_below(4) == 0 { ResponseSplit::Bytes } else { ResponseSplit::Whole },
            buffer_bytes: if rng.uniform_below(4) == 0 { 300 } else { 64 << 10 },
            ..h2_server(MS, how)
        };
        run(&plan, &server, seed);
    }
}
