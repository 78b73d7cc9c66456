//! Two accounts: throughput counts completions in the window, whenever they were scheduled; the
//! ledger counts requests scheduled in the window, whenever they end. With the number in flight
//! they obey Little's law.

use super::*;
use plimsoll_model::Stop;
use plimsoll_model::rng::Rng;

/// A server with this number of workers, and a service time of 20 ms.
fn pool(slots: usize) -> SimServer {
    SimServer { slots: Some(slots), latency_ns: 0, ..SimServer::new(20 * MS) }
}

/// Returns the plan with this warm-up and length, and without effective timeouts.
fn windowed(plan: Setup, warmup_ns: u64, length_ns: u64) -> Setup {
    plan.with(|it| {
        it.traffic.routes[0].timeout_ns = 60 * SECOND;
        it.load.grace_ns = 30 * SECOND;
        it.load.warmup_ns = warmup_ns;
        it.load.duration_ns = Some(length_ns);
    })
}

/// Runs a plan and stops it at this tick.
fn run_until(plan: &Setup, server: &SimServer, seed: u64, tick: u64) -> Sim {
    let mut ticks = 0;
    let sim = Simulation { plan, stripe: Stripe::ALL, server, machine: SimMachine::default(), seed }.run(&mut |_| {
        ticks += 1;
        if ticks > tick { ControlFlow::Break(Stop::Shown("enough".into())) } else { ControlFlow::Continue(()) }
    });
    verify(&sim, server).unwrap_or_else(|complaint| panic!("PLIMSOLL_SEED={seed}: {complaint}"));
    sim
}

#[test]
fn throughput_is_that_of_the_pool_for_any_warm_up_window_and_users() {
    let lengths = [SECOND, 700 * MS, 1_234 * MS, 5 * SECOND];
    for warmup_ns in [0, 100 * MS, 333 * MS, SECOND] {
        for length_ns in lengths {
            for (slots, users) in [(4, 64), (4, 4), (4, 3), (1, 1), (1, 50), (20, 33)] {
                let plan = windowed(closed(&users.to_string()), warmup_ns, length_ns);
                let at_once = slots.min(users);
                for stop_at in [None, Some((warmup_ns + length_ns) / Plan::TICK_NS / 2 + 3)] {
                    let sim = match stop_at {
                        None => run(&plan, &pool(slots), first_seed()),
                        Some(tick) => run_until(&plan, &pool(slots), first_seed(), tick),
                    };
                    let expect = at_once as f64 * sim.run.duration_ns() as f64 / (20 * MS) as f64;
                    let counted = sim.run.totals().routes_sum.succeeded_in_window as f64;
                    // A worker may be busy at both ends of the window.
                    let off = (counted - expect).abs();
                    let what = format!("{slots} slots, {users} users, {warmup_ns} + {length_ns}, {stop_at:?}");
                    assert!(off <= (0.01 * expect).max(at_once as f64), "{what}: {counted}, expected {expect}");
                }
            }
        }
    }
}

#[test]
fn throughput_past_capacity_is_capacity() {
    for load in [constant("300"), poisson("300"), constant("1000")] {
        for warmup_ns in [500 * MS, SECOND] {
            for length_ns in [SECOND, 2_050 * MS] {
                let sim = run(&windowed(load.clone(), warmup_ns, length_ns), &pool(4), first_seed());
                let totals = sim.run.totals();
                let expect = 200.0 * length_ns as f64 / SECOND as f64;
                assert!((totals.routes_sum.succeeded_in_window as f64 - expect).abs() <= 4.0, "{totals:?}");
                // The ledger has every request scheduled in the window.
                assert_eq!(totals.routes_sum.ledger.scheduled, arrivals_until(&sim, u64::MAX));
                assert_eq!(totals.routes_sum.ledger.succeeded, totals.routes_sum.ledger.scheduled);
            }
        }
    }
}

/// Completion rate times mean response time equals the mean number in flight, except for requests
/// open at the ends.
#[test]
fn rate_response_time_and_number_in_flight_agree() {
    for seed in first_seed()..first_seed() + 150 {
        let mut rng = Rng::new(seed);
        let mut between = |from: u64, to: u64| from + rng.below(to - from + 1);
        let (slots, service_ns) = (between(1, 8) as usize, between(1, 40) * MS);
        let mean = [Service::Constant(service_ns), Service::Exponential(service_ns)];
        let service = mean[between(0, 1) as usize];
        let server = SimServer { service, ..pool(slots) };
        let capacity = slots as f64 * SECOND as f64 / service_ns as f64;
        // A share of the capacity, so that the open loop is steady.
        let rate = format!("{:.1}", capacity * between(10, 70) as f64 / 100.0);
        let shape = match between(0, 2) {
            0 => closed(&between(1, 80).to_string()),
            1 => constant(&rate),
            _ => poisson(&rate),
        };
        let (warmup_ns, length_ns) = (between(0, 20) * 57 * MS, between(3, 40) * 83 * MS);
        let plan = windowed(shape, warmup_ns, length_ns);
        let sim = match between(0, 3) {
            0 => run_until(&plan, &server, seed, between(2, (warmup_ns + length_ns) / Plan::TICK_NS)),
            _ => run(&plan, &server, seed),
        };
        let Some(in_flight) = sim.run.in_flight_mean() else { continue };
        let totals = sim.run.totals();
        let (window_ns, completed) = (sim.run.duration_ns() as f64, totals.routes_sum.succeeded_in_window as f64);
        // The integral of the number in flight, and the sum of the response times.
        let (area, took) = (in_flight * window_ns, completed * totals.routes_sum.response.mean_ns());
        let most = sim.run.intervals.values().map(|it| it.whole().in_flight_end).max().unwrap_or(0).max(1) as f64;
        let longest_ns = totals.routes_sum.response.max_ns().max(2 * service_ns) as f64;
        let edge = most * (longest_ns + Plan::TICK_NS as f64);
        let what = format!("PLIMSOLL_SEED={seed}: {:?}, {server:?}", plan.load);
        if totals.routes_sum.response.count() > 0 {
            assert!((area - took).abs() <= edge, "{what}: {area} in flight, {took} taken, {edge}");
        }
        // In a long window, requests open at its ends matter little.
        if window_ns > 60.0 * longest_ns && sim.run.window_ns.0 as f64 > longest_ns {
            assert!((area - took).abs() <= 0.03 * took, "{what}: {area} in flight, {took} taken");
        }
    }
}
