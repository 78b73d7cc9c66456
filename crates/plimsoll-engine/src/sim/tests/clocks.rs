//! Tests that response time (from the intended start) and service time (from the send) have exactly
//! the expected values.

use super::*;

const STALL: SimStall = SimStall { every_ns: 5 * SECOND, length_ns: SECOND / 2 };

fn stalling_server() -> SimServer {
    SimServer { stall: Some(STALL), ..SimServer::new(50_000) }
}

/// Returns the p95 and p99 of a histogram, in ms.
fn p95_p99_ms(histogram: &plimsoll_model::Histogram) -> (f64, f64) {
    (histogram.quantile_ns(0.95) as f64 / 1e6, histogram.quantile_ns(0.99) as f64 / 1e6)
}

fn with_long_timeout(plan: SimulatedPlan) -> SimulatedPlan {
    plan.with_change(|it| {
        it.traffic.routes[0].timeout_ns = 30 * SECOND;
        it.load.grace_ns = 5 * SECOND
    })
}

#[test]
fn an_open_loop_shows_the_whole_stall() {
    // A tenth of the requests arrive in a stall and wait until the stall ends. The p95 of the
    // response time is therefore half the length of a stall, and the p99 is nine tenths of the
    // length.
    let sim = run(&with_long_timeout(constant_rate_plan("1000@10s")), &stalling_server(), first_seed());
    let totals = sim.run.totals();
    let (p95, p99) = p95_p99_ms(&totals.routes_sum.response);
    assert!(is_near(p95, 250.0, 0.01) && is_near(p99, 450.0, 0.01), "p95 {p95} ms, p99 {p99} ms");
    // Each request was sent at once on its own connection. Service time includes the wait for the
    // end of the stall, because the server caused this wait.
    let (p95, p99) = p95_p99_ms(&totals.routes_sum.service);
    assert!(is_near(p95, 250.0, 0.01) && is_near(p99, 450.0, 0.01), "service: p95 {p95} ms, p99 {p99} ms");
    assert!(totals.load.lag.max_ns() < 1_000, "nothing of it is the generator's: {}", totals.load.lag.max_ns());
    assert!(is_near(sim.account.connections_max as f64, 501.0, 0.01), "{}", sim.account.connections_max);
}

#[test]
fn a_stall_before_the_send_affects_only_response_time() {
    // During the stall the server accepts no connection, and every request needs a new connection.
    // So a request that starts during the stall waits for its connection before it is sent.
    let mut plan = with_long_timeout(constant_rate_plan("1000@10s"));
    plan.connection_plan.keep_alive = false;
    let server = SimServer { accepts_in_stall: false, ..stalling_server() };
    let totals = run(&plan, &server, first_seed()).run.totals();
    let (p95, p99) = p95_p99_ms(&totals.routes_sum.response);
    assert!(is_near(p95, 250.0, 0.01) && is_near(p99, 450.0, 0.01), "p95 {p95} ms, p99 {p99} ms");
    let (_, p99) = p95_p99_ms(&totals.routes_sum.service);
    assert!(p99 < 0.2, "service p99 {p99} ms");
    let (_, p99) = p95_p99_ms(&totals.load.connect);
    assert!(is_near(p99, 450.0, 0.01), "connect p99 {p99} ms");
}

#[test]
fn a_generator_stall_shows_in_response_time_and_lag() {
    let machine = SimMachine { pause: Some(STALL), ..SimMachine::default() };
    let plan = with_long_timeout(constant_rate_plan("1000@10500ms"));
    let totals = run_on_machine(machine, &plan, &SimServer::new(50_000), first_seed()).run.totals();
    let (p95, p99) = p95_p99_ms(&totals.routes_sum.response);
    // 1 000 of 10 500 requests arrive in a pause of the generator. The 525 longest waits are 5 % of
    // all requests, and the 105 longest waits are 1 %.
    assert!(is_near(p95, 237.5, 0.01) && is_near(p99, 447.5, 0.01), "p95 {p95} ms, p99 {p99} ms");
    let (_, p99) = p95_p99_ms(&totals.routes_sum.service);
    assert!(p99 < 1.0, "service p99 {p99} ms");
    let (_, p99) = p95_p99_ms(&totals.load.lag);
    assert!(is_near(p99, 447.5, 0.01), "lag p99 {p99} ms");
}

#[test]
fn a_closed_loop_stalls_with_the_server() {
    // Ten users have at most ten requests in a stall, too few to change the p99. In a closed loop
    // few requests meet a stall, which is a reason to use open loops. Mean and maximum show the
    // stall both in response time and in service time.
    let totals = run(&with_long_timeout(closed_loop_plan("10@10s")), &stalling_server(), first_seed()).run.totals();
    let (_, p99) = p95_p99_ms(&totals.routes_sum.response);
    assert!(p99 < 1.0, "p99 {p99} ms");
    for histogram in [&totals.routes_sum.response, &totals.routes_sum.service] {
        assert!(is_near(histogram.max_ns() as f64, 500e6, 0.01), "{}", histogram.max_ns());
        assert_eq!(histogram.count_above(400 * MS), 20);
    }
}

#[test]
fn a_stall_on_one_connection_leaves_requests_unsent() {
    // An arrival without a free connection does not wait but counts as unsent. Quantiles include
    // only requests that were sent.
    let plan =
        with_long_timeout(constant_rate_plan("1000@10s")).with_change(|it| it.connection_plan.connections_max = 1);
    let totals = run(&plan, &stalling_server(), first_seed()).run.totals();
    assert!(is_near(totals.routes_sum.ledger.unsent as f64, 998.0, 0.01), "{:?}", totals.routes_sum.ledger);
    assert_eq!(totals.routes_sum.ledger.scheduled, 10_000);
    assert!(totals.routes_sum.ledger.success_rate() < 0.901, "{}", totals.routes_sum.ledger.success_rate());
    assert_eq!(totals.routes_sum.response.count_above(400 * MS), 2);
}

#[test]
fn a_timeout_adds_a_sample_of_at_least_its_length() {
    for (server, what) in [
        (SimServer::new(MS).with_fault(Fault::NeverAnswers, 1.0), "never answers"),
        (SimServer::new(MS).with_fault(Fault::NeverAccepts, 1.0), "never accepts"),
        (SimServer::new(61 * MS), "answers late"),
        (SimServer::new(MS).with_fault(Fault::Drips(5 * MS), 1.0), "drips"),
    ] {
        for plan in [closed_loop_plan("4@300ms"), constant_rate_plan("500@300ms"), poisson_rate_plan("500@300ms")] {
            for machine in [SimMachine::default(), SimMachine { wake_ns: 3 * MS, ..SimMachine::default() }] {
                let totals = run_on_machine(machine, &plan, &server, first_seed()).run.totals();
                let (ledger, timeouts) =
                    (totals.routes_sum.ledger, totals.routes_sum.ledger.failed[RequestFailure::Timeout as usize]);
                assert!(timeouts > 0 && timeouts == ledger.scheduled, "{what}: {ledger:?}");
                assert_eq!(totals.routes_sum.response.count(), timeouts, "{what}");
                assert!(
                    totals.routes_sum.response.min_ns() >= plan.traffic.timeout_ns_max(),
                    "{what}: {}",
                    totals.routes_sum.response.min_ns()
                );
                assert!(totals.routes_sum.statuses.is_empty(), "{what}: a late answer is no answer");
            }
        }
    }
}

#[test]
fn a_late_response_is_one_timeout() {
    // The response arrives in time, but the generator has no core until the deadline has passed.
    let machine =
        SimMachine { pause: Some(SimStall { every_ns: 200 * MS, length_ns: 100 * MS }), ..SimMachine::default() };
    let sim = run_on_machine(machine, &closed_loop_plan("4@350ms"), &SimServer::new(10 * MS), first_seed());
    let ledger = sim.run.totals().routes_sum.ledger;
    assert_eq!(ledger.failed[RequestFailure::Timeout as usize], 8, "{ledger:?}");
    assert_eq!(sim.account.requests, ledger.scheduled, "{ledger:?}");
}

#[test]
fn queue_waits_match_queueing_theory() {
    // The server serves one request at a time, at an arrival rate of 600/s and a capacity of
    // 1000/s. The mean response times of the queues M/M/1 and M/D/1 are known from queueing theory.
    let (rate, mean_ms, load) = (600.0, 1.0, 0.6);
    for (service, expect_ms) in [
        (ServiceTimes::Exponential(MS), mean_ms / (1.0 - load)),
        (ServiceTimes::Constant(MS), mean_ms * (1.0 + load / 2.0 / (1.0 - load))),
    ] {
        for seed in first_seed()..first_seed() + 2 {
            let server = SimServer { slots: Some(1), service, latency_ns: 0, ..SimServer::new(0) };
            let sim = run(&with_long_timeout(poisson_rate_plan("600@60s")), &server, seed);
            let totals = sim.run.totals();
            let what = format!("{service:?}, PLIMSOLL_SEED={seed}");
            assert_eq!(totals.routes_sum.ledger.succeeded, totals.routes_sum.ledger.scheduled, "{what}");
            let mean = totals.routes_sum.response.mean_ns() / 1e6;
            // The allowed deviation of 12 % is about five standard errors of the mean of 36 000
            // requests. The standard error is large, because the response times of about ten
            // consecutive requests depend on each other.
            assert!(is_near(mean, expect_ms, 0.12), "{what}: mean {mean} ms, expected {expect_ms}");
            // Little's law: the mean number in flight is throughput times mean response time.
            let window_ns = sim.run.duration_ns() as f64;
            let in_flight: u64 = sim.run.intervals.range(..600).map(|(_, i)| i.load.in_flight_ns).sum();
            let (l, x) = (in_flight as f64 / window_ns, totals.routes_sum.succeeded_in_window as f64 / window_ns * 1e9);
            assert!(is_near(l, x * mean / 1e3, 0.01), "{what}: L {l}, X W {}", x * mean / 1e3);
            assert!(is_near(x, rate, 0.03), "{what}: {x}/s");
        }
    }
}
