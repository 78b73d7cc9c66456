//! Tests that stripes (the shares of several machines) add up to the whole load, and that merging
//! their results does not depend on order. Tests that a seed determines a run.

use super::*;
use plimsoll_model::Run;

fn stripe_run(plan: &SimulatedPlan, server: &SimServer, index: u64, of: u64, seed: u64) -> Run {
    let stripe = Stripe::new(index, of);
    let sim = Simulation { plan, stripe, server, machine: SimMachine::default(), seed }
        .run(&mut |_| ControlFlow::Continue(()));
    verify(&sim, server).unwrap_or_else(|complaint| panic!("PLIMSOLL_SEED={seed}: {complaint}"));
    sim.run
}

fn merge_runs<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Run {
    let mut runs = runs.into_iter();
    let mut sum = runs.next().expect("a run").clone();
    runs.for_each(|run| sum.merge(run));
    sum
}

#[test]
fn stripes_together_equal_the_plan() {
    for (plan, scheduled) in [
        (constant_rate_plan("1000@300ms"), Some(300)),
        (poisson_rate_plan("1000@300ms"), None),
        (
            closed_loop_plan("7").with_change(|it| {
                it.load.requests_max = Some(101);
                it.load.duration_ns = None
            }),
            Some(101),
        ),
        (
            poisson_rate_plan("1000").with_change(|it| {
                it.load.requests_max = Some(101);
                it.load.duration_ns = None
            }),
            Some(101),
        ),
    ] {
        for (machines, workers) in [(1, 2), (2, 1), (3, 2), (5, 4)] {
            let plan = plan.clone().with_change(|it| it.injector.workers = workers);
            let server = SimServer::new(MS);
            let runs: Vec<Run> =
                (0..machines).map(|index| stripe_run(&plan, &server, index, machines, first_seed())).collect();
            let whole = merge_runs(&runs);
            let ledger = whole.totals().routes_sum.ledger;
            let alone =
                stripe_run(&plan.clone().with_change(|it| it.injector.workers = 1), &server, 0, 1, first_seed());
            let what = format!("{:?}, {machines} x {workers}: {ledger:?}", plan.load.shape);
            assert!(ledger.counts_add_up() && ledger.succeeded == ledger.scheduled, "{what}");
            assert_eq!(ledger.scheduled, alone.totals().routes_sum.ledger.scheduled, "{what}");
            assert!(scheduled.is_none_or(|expect| ledger.scheduled == expect), "{what}");
            let numbers: Vec<u32> = whole.totals().load.workers.iter().map(|w| w.worker).collect();
            assert_eq!(numbers, (0..machines as u32 * workers).collect::<Vec<_>>(), "{what}");
            if let LoadShape::Closed { .. } = plan.load.shape {
                // Gauges (current values), such as the number of open connections, are summed over
                // all machines and workers.
                assert_eq!(whole.totals().load.connections_open, 7, "{what}");
            }
            let in_flight = |run: &Run| run.intervals.values().map(|i| i.load.in_flight_ns).sum::<u64>();
            assert_eq!(in_flight(&whole), runs.iter().map(in_flight).sum::<u64>(), "{what}");
        }
    }
}

#[test]
fn machines_share_the_connections_of_a_plan() {
    // Responses take longer than the load, so every arrival needs a separate connection.
    let server = SimServer::new(SECOND);
    for (machines, workers, most) in [(1, 1, 10), (2, 1, 10), (3, 2, 10), (4, 1, 7)] {
        let plan = poisson_rate_plan("1000@100ms").with_change(|it| {
            it.connection_plan.connections_max = most;
            it.traffic.routes[0].timeout_ns = 10 * SECOND;
            it.load.connections_ready = 5;
            it.injector.workers = workers;
        });
        let runs: Vec<Run> =
            (0..machines).map(|index| stripe_run(&plan, &server, index, machines, first_seed())).collect();
        let what = format!("{machines} x {workers}");
        let opened: Vec<u64> = runs.iter().map(|run| run.totals().load.connections_opened).collect();
        assert_eq!(opened.iter().sum::<u64>(), u64::from(most), "{what}: {opened:?}");
        let fair = u64::from(most) / machines;
        assert!(opened.iter().all(|count| (fair.saturating_sub(1)..=fair + 1).contains(count)), "{what}: {opened:?}");
        assert_eq!(merge_runs(&runs).worker_count(), machines as u32 * workers, "{what}");
    }
}

#[test]
fn merging_is_associative_and_commutative() {
    for seed in first_seed()..first_seed() + 6 {
        let mut server = SimServer { service: ServiceTimes::Exponential(2 * MS), ..SimServer::new(0) };
        server.faults = Fault::TESTED.iter().map(|fault| (*fault, 0.02)).collect();
        let plan = match seed % 3 {
            0 => poisson_rate_plan("900@350ms"),
            1 => closed_loop_plan("7@250ms"),
            _ => closed_loop_plan("7").with_change(|it| {
                it.load.warmup_ns = 110 * MS;
                it.load.requests_max = Some(100);
                it.load.duration_ns = None
            }),
        };
        let runs: Vec<Run> = (0..3).map(|index| stripe_run(&plan, &server, index, 3, seed ^ index)).collect();
        let [a, b, c] = [&runs[0], &runs[1], &runs[2]];
        let expect = merge_runs([a, b, c]);
        for order in [[a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
            assert!(merge_runs(order) == expect, "commutative, PLIMSOLL_SEED={seed}");
            assert!(
                merge_runs([order[0], &merge_runs([order[1], order[2]])]) == expect,
                "associative, PLIMSOLL_SEED={seed}"
            );
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for plan in [
        poisson_rate_plan("900@200ms"),
        closed_loop_plan("1..7@200ms"),
        poisson_rate_plan("900@50ms").with_change(|it| {
            it.injector.workers = 2;
            it.injector.spin = Spin::Auto
        }),
    ] {
        let mut server = SimServer { service: ServiceTimes::Exponential(2 * MS), slots: Some(2), ..SimServer::new(0) };
        server.faults = Fault::TESTED.iter().map(|fault| (*fault, 0.02)).collect();
        let seed = first_seed();
        let [once, again, other] = [seed, seed, seed + 1].map(|seed| simulate(&plan, &server, seed).run);
        assert!(once == again, "PLIMSOLL_SEED={seed}: the same to the last bit");
        assert!(once != other, "PLIMSOLL_SEED={seed}: another seed is another run");
    }
}
