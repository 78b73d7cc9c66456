//! Tests that the results show the generator's own limits, and that no request is dropped silently.

use super::*;

#[test]
fn a_slow_generator_increases_lag_and_work_share() {
    // A request costs the generator 130 us of CPU time, and a request is due every 50 us.
    let machine = SimMachine { send_ns: 100_000, receive_ns: 25_000, wait_ns: 5_000, ..SimMachine::default() };
    for spin in [Spin::Off, Spin::On] {
        let plan = constant_rate_plan("20000@1s").with_change(|it| {
            it.injector.spin = spin;
            it.traffic.routes[0].timeout_ns = 30 * SECOND
        });
        let sim = run_on_machine(machine, &plan, &SimServer::new(50_000), first_seed());
        let totals = sim.run.totals();
        assert_eq!(totals.routes_sum.ledger.scheduled, 20_000, "{:?}", totals.routes_sum.ledger);
        assert!(
            totals.routes_sum.ledger.unsent > 10_000,
            "what was not sent is counted: {:?}",
            totals.routes_sum.ledger
        );
        assert_eq!(
            totals.routes_sum.ledger.scheduled,
            totals.routes_sum.ledger.succeeded + totals.routes_sum.ledger.unsent
        );
        let lag_ns = totals.load.lag.quantile_ns(0.99);
        assert!(lag_ns > 300 * MS, "lag p99 {lag_ns}");
        let share = totals.load.workers[0].work_share();
        assert!(share >= 0.95, "work share {share}");
        // Response time includes the generator's delay. Service time is only the time that the
        // server needs.
        assert!(totals.routes_sum.response.quantile_ns(0.99) > 300 * MS);
        assert!(
            totals.routes_sum.service.quantile_ns(0.99) < 50 * MS,
            "{}",
            totals.routes_sum.service.quantile_ns(0.99)
        );
    }
}

#[test]
fn an_idle_generator_reports_its_idle_time() {
    let machine = SimMachine { send_ns: 4_000, receive_ns: 1_000, wait_ns: 1_000, ..SimMachine::default() };
    for (spin, share_max) in [(Spin::Off, 0.08), (Spin::On, 0.08), (Spin::Auto, 0.08)] {
        let sim = run_on_machine(
            machine,
            &constant_rate_plan("10000@200ms").with_change(|it| it.injector.spin = spin),
            &SimServer::new(100_000),
            first_seed(),
        );
        let totals = sim.run.totals();
        assert_eq!(totals.routes_sum.ledger.succeeded, 2_000, "{:?}", totals.routes_sum.ledger);
        let share = totals.load.workers[0].work_share();
        // The worker works 6 us of every 100 us, not counting polls without events.
        assert!((0.04..share_max).contains(&share), "{spin:?}: work share {share}");
        let (cpu_ns, wall_ns) = (totals.load.workers[0].cpu_ns, totals.load.workers[0].wall_ns);
        let looked_ns: u64 = sim.run.intervals.values().map(|interval| interval.load.looked_ns).sum();
        match spin {
            Spin::Off => assert!(cpu_ns < wall_ns / 10 && looked_ns < wall_ns / 10, "sleeps"),
            Spin::On | Spin::Auto => {
                assert!(cpu_ns > wall_ns / 10 * 9, "{spin:?} looks all the time: {cpu_ns}");
                assert!(looked_ns > wall_ns / 10 * 8, "{spin:?} in vain, most of it: {looked_ns}");
            }
        }
    }
}

/// Checks that the recorder counts the wait from the arrival of a response to the worker's read.
/// The wait is short for an idle worker; for a busy worker, the wait is the cost of other requests.
/// Responses during the warm-up do not count.
#[test]
fn responses_that_wait_for_the_generator_are_counted() {
    let machine = SimMachine { receive_ns: 5_000, send_ns: 4_000, ..SimMachine::default() };
    for (users, least_ns, most_ns) in [("1", 0, 6_000), ("4", 0, 40_000), ("64", 150_000, 900_000)] {
        for warmup_ns in [0, 100 * MS] {
            let plan = closed_loop_plan(&format!("{users}@200ms")).with_change(|it| it.load.warmup_ns = warmup_ns);
            let sim = run_on_machine(machine, &plan, &SimServer::new(200_000), first_seed());
            let totals = sim.run.totals();
            let (wait, answers) = (&totals.load.read_wait, totals.routes_sum.succeeded_in_window);
            let p50_ns = wait.quantile_ns(0.5);
            assert!((least_ns..=most_ns).contains(&p50_ns), "{users} users, {warmup_ns}: {p50_ns}");
            assert!(wait.count().abs_diff(answers) <= answers / 20 + 2, "{} of {answers}", wait.count());
            assert!(wait.max_ns() <= totals.routes_sum.response.max_ns(), "no more than the whole");
        }
    }
}

#[test]
fn late_users_are_measured_from_their_intended_start() {
    // Four users should join at 90 ms, during a pause of the generator until 100 ms.
    let machine =
        SimMachine { pause: Some(SimStall { every_ns: 100 * MS, length_ns: 20 * MS }), ..SimMachine::default() };
    let totals = run_on_machine(machine, &closed_loop_plan("1@90ms,5@60ms"), &SimServer::new(100_000), first_seed())
        .run
        .totals();
    assert_eq!(totals.load.lag.count(), 5);
    assert_eq!(totals.load.lag.max_ns(), 10 * MS);
    assert_eq!(totals.routes_sum.response.count_above(9 * MS), 5, "these four, and the first user's request under way");
    assert_eq!(totals.routes_sum.service.count_above(9 * MS), 1);
}

#[test]
fn a_late_wake_up_counts_as_lag_and_spinning_avoids_it() {
    let machine = SimMachine { wake_ns: 50_000, ..SimMachine::default() };
    for (spin, lag) in [(Spin::Off, 40_000..60_000), (Spin::On, 0..1_000), (Spin::Auto, 0..1_000)] {
        let totals = run_on_machine(
            machine,
            &constant_rate_plan("1000@200ms").with_change(|it| it.injector.spin = spin),
            &SimServer::new(100_000),
            1,
        )
        .run
        .totals();
        let p50 = totals.load.lag.quantile_ns(0.5);
        assert!(lag.contains(&p50), "{spin:?}: lag p50 {p50}");
        // A sleeping worker also notices the end of a response late.
        let service = totals.routes_sum.service.quantile_ns(0.5);
        assert_eq!(service >= 250_000, spin == Spin::Off, "{spin:?}: {service}");
    }
}
