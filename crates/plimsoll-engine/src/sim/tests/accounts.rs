//! Tests of the two ways in which requests are counted. Throughput counts requests that complete in
//! the window, whenever they were scheduled. The ledger counts requests that were scheduled in the
//! window, whenever they end. Throughput, response time and requests in flight must satisfy
//! Little's law.

use super::*;
use plimsoll_model::EarlyStopReason;
use plimsoll_model::rng::Rng;

/// Returns a server with this number of workers, and a service time of 20 ms.
fn worker_pool_server(slots: usize) -> SimServer {
    SimServer { slots: Some(slots), latency_ns: 0, ..SimServer::new(20 * MS) }
}

/// Returns the plan with this warm-up and length, and with timeouts that are too long to expire.
fn with_window(plan: SimulatedPlan, warmup_ns: u64, length_ns: u64) -> SimulatedPlan {
    plan.with_change(|it| {
        it.traffic.routes[0].timeout_ns = 60 * SECOND;
        it.load.grace_ns = 30 * SECOND;
        it.load.warmup_ns = warmup_ns;
        it.load.duration_ns = Some(length_ns);
    })
}

/// Runs a plan and stops the run at the tick with the number `tick`.
fn run_until_tick(plan: &SimulatedPlan, server: &SimServer, seed: u64, tick: u64) -> SimulatedRun {
    let mut ticks = 0;
    let sim = Simulation { plan, stripe: Stripe::WHOLE_SCHEDULE, server, machine: SimMachine::default(), seed }.run(
        &mut |_| {
            ticks += 1;
            if ticks > tick {
                ControlFlow::Break(EarlyStopReason::ResultCertain("enough".into()))
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    verify(&sim, server).unwrap_or_else(|complaint| panic!("PLIMSOLL_SEED={seed}: {complaint}"));
    sim
}

#[test]
fn throughput_equals_pool_capacity_for_any_window_and_users() {
    let lengths = [SECOND, 700 * MS, 1_234 * MS, 5 * SECOND];
    for warmup_ns in [0, 100 * MS, 333 * MS, SECOND] {
        for length_ns in lengths {
            for (slots, users) in [(4, 64), (4, 4), (4, 3), (1, 1), (1, 50), (20, 33)] {
                let plan = with_window(closed_loop_plan(&users.to_string()), warmup_ns, length_ns);
                let at_once = slots.min(users);
                for stop_at in [None, Some((warmup_ns + length_ns) / Plan::TICK_NS / 2 + 3)] {
                    let sim = match stop_at {
                        None => run(&plan, &worker_pool_server(slots), first_seed()),
                        Some(tick) => run_until_tick(&plan, &worker_pool_server(slots), first_seed(), tick),
                    };
                    let expect = at_once as f64 * sim.run.duration_ns() as f64 / (20 * MS) as f64;
                    let counted = sim.run.totals().routes_sum.succeeded_in_window as f64;
                    // A worker of the server may be serving a request at either end of the window,
                    // so the request count may differ slightly.
                    let off = (counted - expect).abs();
                    let what = format!("{slots} slots, {users} users, {warmup_ns} + {length_ns}, {stop_at:?}");
                    assert!(off <= (0.01 * expect).max(at_once as f64), "{what}: {counted}, expected {expect}");
                }
            }
        }
    }
}

#[test]
fn throughput_above_capacity_equals_capacity() {
    for load in [constant_rate_plan("300"), poisson_rate_plan("300"), constant_rate_plan("1000")] {
        for warmup_ns in [500 * MS, SECOND] {
            for length_ns in [SECOND, 2_050 * MS] {
                let sim = run(&with_window(load.clone(), warmup_ns, length_ns), &worker_pool_server(4), first_seed());
                let totals = sim.run.totals();
                let expect = 200.0 * length_ns as f64 / SECOND as f64;
                assert!((totals.routes_sum.succeeded_in_window as f64 - expect).abs() <= 4.0, "{totals:?}");
                // The ledger has every request scheduled in the window.
                assert_eq!(totals.routes_sum.ledger.scheduled, measured_arrivals_until(&sim, u64::MAX));
                assert_eq!(totals.routes_sum.ledger.succeeded, totals.routes_sum.ledger.scheduled);
            }
        }
    }
}

/// Checks that completion rate times mean response time equals the mean number of requests in
/// flight (Little's law). Requests that are open at the ends of the window may cause a small
/// difference.
#[test]
fn littles_law_holds() {
    for seed in first_seed()..first_seed() + 150 {
        let mut rng = Rng::new(seed);
        let mut between = |from: u64, to: u64| from + rng.uniform_below(to - from + 1);
        let (slots, service_ns) = (between(1, 8) as usize, between(1, 40) * MS);
        let mean = [ServiceTimes::Constant(service_ns), ServiceTimes::Exponential(service_ns)];
        let service = mean[between(0, 1) as usize];
        let server = SimServer { service, ..worker_pool_server(slots) };
        let capacity = slots as f64 * SECOND as f64 / service_ns as f64;
        // The rate is a share of the server's capacity, so that the queue of the open loop does not
        // grow.
        let rate = format!("{:.1}", capacity * between(10, 70) as f64 / 100.0);
        let shape = match between(0, 2) {
            0 => closed_loop_plan(&between(1, 80).to_string()),
            1 => constant_rate_plan(&rate),
            _ => poisson_rate_plan(&rate),
        };
        let (warmup_ns, length_ns) = (between(0, 20) * 57 * MS, between(3, 40) * 83 * MS);
        let plan = with_window(shape, warmup_ns, length_ns);
        let sim = match between(0, 3) {
            0 => run_until_tick(&plan, &server, seed, between(2, (warmup_ns + length_ns) / Plan::TICK_NS)),
            _ => run(&plan, &server, seed),
        };
        let Some(in_flight) = sim.run.in_flight_mean() else { continue };
        let totals = sim.run.totals();
        let (window_ns, completed) = (sim.run.duration_ns() as f64, totals.routes_sum.succeeded_in_window as f64);
        // `area` is the integral of the requests in flight over time, and `took` is the sum of the
        // response times.
        let (area, took) = (in_flight * window_ns, completed * totals.routes_sum.response.mean_ns());
        let most = sim.run.intervals.values().map(|it| it.all_routes().in_flight_end).max().unwrap_or(0).max(1) as f64;
        let longest_ns = totals.routes_sum.response.max_ns().max(2 * service_ns) as f64;
        let edge = most * (longest_ns + Plan::TICK_NS as f64);
        let what = format!("PLIMSOLL_SEED={seed}: {:?}, {server:?}", plan.load);
        if totals.routes_sum.response.count() > 0 {
            assert!((area - took).abs() <= edge, "{what}: {area} in flight, {took} taken, {edge}");
        }
        // In a long window, the requests that are open at its ends have little effect.
        if window_ns > 60.0 * longest_ns && sim.run.window_ns.0 as f64 > longest_ns {
            assert!((area - took).abs() <= 0.03 * took, "{what}: {area} in flight, {took} taken");
        }
    }
}
