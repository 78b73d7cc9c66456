//! Tests that the ledger accounts for every request, for every load shape, fault and ending.

use super::*;
use plimsoll_model::{EarlyStopReason, LoadEnd};

/// Returns one plan of each load shape, about 300 ms long.
fn load_shape_plans() -> Vec<(&'static str, SimulatedPlan)> {
    let limited = |plan: SimulatedPlan, requests: u64, duration_ns: Option<u64>| {
        plan.with_change(|it| {
            it.load.requests_max = Some(requests);
            it.load.duration_ns = duration_ns
        })
    };
    let warm = |plan: SimulatedPlan| plan.with_change(|it| it.load.warmup_ns = 120 * MS);
    let once = |mut plan: SimulatedPlan| {
        plan.connection_plan.keep_alive = false;
        plan
    };
    let mut head = closed_loop_plan("3@300ms");
    head.traffic.routes[0].request.method = "HEAD".into();
    let mut big = constant_rate_plan("100@300ms");
    big.traffic.routes[0].request.method = "POST".into();
    big.traffic.routes[0].request.body = (0..300_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut big_closed = closed_loop_plan("3@300ms");
    big_closed.traffic.routes[0].request.body.clone_from(&big.traffic.routes[0].request.body);
    vec![
        ("closed", closed_loop_plan("4@300ms")),
        ("closed stages", closed_loop_plan("2@100ms,8@100ms,3@100ms")),
        ("closed stages with a gap", closed_loop_plan("5@100ms,0@3ms,5@2ms,0@2ms,6@100ms")),
        ("closed ramp", closed_loop_plan("1..10@150ms,10..0@150ms")),
        ("closed warm-up", warm(closed_loop_plan("4@300ms"))),
        ("closed once", once(closed_loop_plan("4@300ms"))),
        ("closed ready", closed_loop_plan("4@300ms").with_change(|it| it.load.connections_ready = 4)),
        ("closed -n", limited(closed_loop_plan("4"), 60, None)),
        ("closed -n warm-up", warm(limited(closed_loop_plan("4"), 61, None))),
        ("closed -n duration", limited(closed_loop_plan("4"), 100, Some(100 * MS))),
        ("closed -n few", limited(closed_loop_plan("10"), 3, None)),
        ("closed two workers -n", limited(closed_loop_plan("5"), 61, None).with_change(|it| it.injector.workers = 2)),
        ("closed HEAD", head),
        ("closed big", big_closed),
        ("closed spinning", closed_loop_plan("4@50ms").with_change(|it| it.injector.spin = Spin::Auto)),
        ("open constant", constant_rate_plan("500@300ms")),
        ("open Poisson", poisson_rate_plan("500@300ms")),
        ("open ramp", constant_rate_plan("0..1000@150ms,1000..100@150ms")),
        ("open Poisson ramp", poisson_rate_plan("0..1000@150ms,0@50ms,1000..100@100ms")),
        ("open warm-up", warm(poisson_rate_plan("500@300ms"))),
        ("open once", once(constant_rate_plan("500@300ms"))),
        ("open ready", constant_rate_plan("500@300ms").with_change(|it| it.load.connections_ready = 20)),
        (
            "open few connections",
            poisson_rate_plan("500@300ms").with_change(|it| it.connection_plan.connections_max = 2),
        ),
        (
            "open few connections ready",
            poisson_rate_plan("500@300ms").with_change(|it| {
                it.connection_plan.connections_max = 3;
                it.load.connections_ready = 3
            }),
        ),
        ("open -n", limited(constant_rate_plan("500"), 70, None)),
        ("open -n Poisson warm-up", warm(limited(poisson_rate_plan("500"), 70, None))),
        ("open -n duration", limited(constant_rate_plan("500"), 100, Some(100 * MS))),
        ("open two workers", poisson_rate_plan("500@300ms").with_change(|it| it.injector.workers = 2)),
        ("open big", big),
        ("open spinning", poisson_rate_plan("500@50ms").with_change(|it| it.injector.spin = Spin::On)),
    ]
}

/// Returns the number of measured requests if the schedule determines this number; `None` if the
/// responses determine it.
fn scheduled_request_count(name: &str, sim: &SimulatedRun) -> Option<u64> {
    let plan = &sim.run.plan;
    match plan.load.duration_ns {
        _ if sim.schedule.is_open() => Some(measured_arrivals_until(sim, u64::MAX)),
        None => plan.load.requests_max,
        Some(_) => {
            assert!(
                plan.load.requests_max.is_none_or(|max| sim.run.totals().routes_sum.ledger.scheduled <= max),
                "{name}: no more than asked for"
            );
            None
        }
    }
}

fn server_for_plan(name: &str) -> SimServer {
    let mut server = SimServer { latency_ns: 200_000, ..SimServer::new(700_000) };
    if name.contains("big") {
        server.intake = Some((40_000, 300_000));
    }
    server
}

fn run_and_check_ledger(name: &str, plan: &SimulatedPlan, server: &SimServer, seed: u64) -> SimulatedRun {
    let sim = run(plan, server, seed);
    let ledger = sim.run.totals().routes_sum.ledger;
    if let Some(expect) = scheduled_request_count(name, &sim) {
        assert_eq!(ledger.scheduled, expect, "{name}, {:?}, PLIMSOLL_SEED={seed}", server.faults);
    }
    assert_eq!(sim.run.ending, Some(LoadEnd::Finished));
    sim
}

#[test]
fn ledger_accounts_for_every_request_of_every_shape_and_fault() {
    for (name, plan) in load_shape_plans() {
        for fault in Fault::TESTED {
            for (seed, share) in (first_seed()..).zip([1.0, 0.3]) {
                let server = server_for_plan(name).with_fault(fault, share);
                let sim = run_and_check_ledger(name, &plan, &server, seed);
                // If the fault affects all requests, each request has an outcome that the fault
                // allows.
                let (succeeds, failures) = fault.possible_outcomes();
                let ledger = sim.run.totals().routes_sum.ledger;
                let what = format!("{name}, {fault:?} x {share}, PLIMSOLL_SEED={seed}: {ledger:?}");
                // The run has no kind of failure that the fault does not allow.
                for failure in RequestFailure::ALL {
                    let count = ledger.failed[failure as usize];
                    assert!(count == 0 || failures.contains(&failure), "{what}");
                }
                assert!(ledger.succeeded == 0 || succeeds || share < 1.0, "{what}");
                assert!(sim.account.faults > 0 || ledger.scheduled < 4 || share < 1.0, "{what}");
            }
        }
    }
}

#[test]
fn ledger_accounts_for_every_request_under_all_faults_together() {
    for (name, plan) in load_shape_plans() {
        for seed in first_seed()..first_seed() + 4 {
            let mut server = server_for_plan(name);
            server.faults = Fault::TESTED.iter().map(|fault| (*fault, 0.025)).collect();
            run_and_check_ledger(name, &plan, &server, seed);
            server.slots = Some(2);
            server.service = ServiceTimes::Exponential(2 * MS);
            server.idle_close_ns = Some(3 * MS);
            server.stall = Some(SimStall { every_ns: 50 * MS, length_ns: 15 * MS });
            server.accepts_in_stall = seed % 2 == 0;
            run_and_check_ledger(name, &plan, &server, seed);
            let machine = SimMachine {
                wait_ns: 300,
                connect_ns: 9_000,
                send_ns: 3_000,
                receive_ns: 700,
                wake_ns: 50_000,
                pause: Some(SimStall { every_ns: 40 * MS, length_ns: 7 * MS }),
                connects_at_once: seed % 2 == 0,
                lose_event: None,
            };
            run_on_machine(machine, &plan, &server, seed);
        }
    }
}

#[test]
fn ledger_accounts_for_every_request_of_a_stopped_load() {
    for (name, plan) in load_shape_plans().into_iter().filter(|(_, plan)| plan.injector.workers == 1) {
        for (seed, stop_at) in (first_seed()..).zip([0, 1, 2, 3]) {
            for fault in [None, Some(Fault::NeverAnswers), Some(Fault::NeverAccepts), Some(Fault::ClosesUnannounced)] {
                let mut server = server_for_plan(name);
                server.faults = fault.iter().map(|fault| (*fault, 0.5)).collect();
                let mut looks = 0;
                let sim = Simulation {
                    plan: &plan,
                    stripe: Stripe::WHOLE_SCHEDULE,
                    server: &server,
                    machine: SimMachine::default(),
                    seed,
                }
                .run(&mut |_| {
                    looks += 1;
                    if looks > stop_at {
                        ControlFlow::Break(EarlyStopReason::ResultCertain("enough".into()))
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                let what = format!("{name}, {fault:?}, stopped at {stop_at}, PLIMSOLL_SEED={seed}");
                verify(&sim, &server).unwrap_or_else(|complaint| panic!("{what}: {complaint}"));
                // The listener also gets the ticks that workers report after the stop.
                assert!(looks <= stop_at + 2, "{what}: {looks} looks");
                if looks <= stop_at {
                    continue;
                }
                assert_eq!(
                    sim.run.ending,
                    Some(LoadEnd::Stopped(EarlyStopReason::ResultCertain("enough".into()))),
                    "{what}"
                );
                assert!(sim.finish_ns <= (stop_at + 1) * Plan::TICK_NS + MS, "{what}: over at {}", sim.finish_ns);
                let ledger = sim.run.totals().routes_sum.ledger;
                if sim.schedule.is_open() {
                    assert_eq!(ledger.scheduled, measured_arrivals_until(&sim, sim.run.window_ns.1), "{what}");
                }
                if stop_at == 0 {
                    assert_eq!(sim.account.requests, 0, "{what}: nothing is sent after a stop in the preparation");
                    assert_eq!(ledger.in_flight, 0, "{what}");
                }
            }
        }
    }
}

/// Checks that no arrival counts as unsent when a load is stopped. A sleeping worker notices a stop
/// only at the next arrival, which belongs to the time after the stop and does not count as unsent.
#[test]
fn a_stop_leaves_no_request_unsent() {
    for (rate, seed) in ["7@2s", "31@2s", "1000@2s"].into_iter().zip(first_seed()..) {
        let plan = constant_rate_plan(rate);
        let (server, mut looks) = (SimServer::new(MS), 0);
        let sim = Simulation {
            plan: &plan,
            stripe: Stripe::WHOLE_SCHEDULE,
            server: &server,
            machine: SimMachine::default(),
            seed,
        }
        .run(&mut |_| {
            looks += 1;
            if looks > 5 {
                ControlFlow::Break(EarlyStopReason::ResultCertain("enough".into()))
            } else {
                ControlFlow::Continue(())
            }
        });
        let ledger = sim.run.totals().routes_sum.ledger;
        assert_eq!(
            (ledger.unsent, ledger.scheduled),
            (0, measured_arrivals_until(&sim, sim.run.window_ns.1)),
            "{rate}"
        );
        assert!(ledger.scheduled > 2, "{rate}: {ledger:?}");
    }
}

#[test]
fn a_run_ends_with_its_grace_period() {
    for plan in [closed_loop_plan("4@300ms"), constant_rate_plan("500@310ms"), poisson_rate_plan("500@290ms")] {
        let plan = plan.with_change(|it| it.traffic.routes[0].timeout_ns = 10 * SECOND);
        let end_ns = plan.load.duration_ns.expect("a duration");
        // Without any response, every request is in flight at the end of the grace period.
        let sim = run(&plan, &SimServer::new(MS).with_fault(Fault::NeverAnswers, 1.0), first_seed());
        let ledger = sim.run.totals().routes_sum.ledger;
        assert!(ledger.in_flight > 0 && ledger.in_flight == ledger.scheduled, "{ledger:?}");
        assert_eq!(sim.finish_ns, end_ns + plan.load.grace_ns);
        assert_eq!(sim.run.window_ns, (0, end_ns));
        // If late responses arrive within the grace period, no request stays in flight, and the run
        // ends with the last response.
        let sim = run(&plan, &SimServer::new(70 * MS), first_seed());
        let (ledger, totals) = (sim.run.totals().routes_sum.ledger, sim.run.totals());
        assert_eq!((ledger.in_flight, ledger.failed_total(), ledger.unsent), (0, 0, 0), "{ledger:?}");
        assert!(sim.finish_ns > end_ns + 50 * MS && sim.finish_ns < end_ns + 71 * MS, "{}", sim.finish_ns);
        assert!(totals.routes_sum.succeeded_in_window < ledger.succeeded, "some came after the window");
        // Responses that take 130 ms would arrive after the end of the grace period.
        let sim = run(&plan, &SimServer::new(130 * MS), first_seed());
        assert!(sim.run.totals().routes_sum.ledger.in_flight > 0);
        assert_eq!(sim.finish_ns, end_ns + plan.load.grace_ns);
    }
}

#[test]
fn warm_up_is_not_measured() {
    // The server fails during the warm-up only.
    for plan in [closed_loop_plan("4@300ms"), constant_rate_plan("500@300ms"), poisson_rate_plan("500@300ms")] {
        let warm = plan.clone().with_change(|it| it.load.warmup_ns = 200 * MS);
        let faulty = SimServer { faults_until_ns: 200 * MS, ..SimServer::new(MS) }.with_fault(Fault::Status(500), 1.0);
        let sim = run(&warm, &faulty, first_seed());
        let totals = sim.run.totals();
        assert!(sim.account.faults > 20, "{}", sim.account.faults);
        assert_eq!(totals.routes_sum.ledger.failed_total(), 0, "{:?}", totals.routes_sum.ledger);
        assert_eq!(totals.routes_sum.statuses, CountsByKey::from_iter([(200, totals.routes_sum.ledger.succeeded)]));
        assert_eq!(sim.run.window_ns, (200 * MS, 500 * MS));
        let lags = totals.load.lag.count();
        assert!(lags <= totals.routes_sum.ledger.scheduled, "{lags} lags, {:?}", totals.routes_sum.ledger);
    }
    // The limit of requests counts measured requests only, so the warm-up runs its full length.
    let plan = closed_loop_plan("2").with_change(|it| {
        it.load.requests_max = Some(50);
        it.load.duration_ns = None;
        it.load.warmup_ns = 200 * MS;
        it.injector.workers = 3
    });
    let sim = run(&plan, &SimServer::new(MS), first_seed());
    assert_eq!(sim.run.totals().routes_sum.ledger.succeeded, 50);
    assert!(sim.account.requests > 50 + 300, "{}", sim.account.requests);
    // With a limit of one measured request, a worker that sends no measured request also runs its
    // full warm-up.
    let plan = plan.with_change(|it| it.load.requests_max = Some(1));
    let sim = run(
        &plan.with_change(|it| it.load.shape = closed_loop_plan("3").load.shape.clone()),
        &SimServer::new(MS),
        first_seed(),
    );
    assert_eq!(sim.run.totals().routes_sum.ledger.succeeded, 1);
    assert!(sim.account.requests > 1 + 500, "{}", sim.account.requests);
}

#[test]
fn windows_ended_by_count_differ_from_windows_ended_by_time() {
    let limited = |plan: SimulatedPlan, requests, duration_ns| {
        plan.with_change(|it| {
            it.load.requests_max = Some(requests);
            it.load.duration_ns = duration_ns
        })
    };
    let way_ns = 100_000;
    for (plan, expect_ns) in [
        // The last of five arrivals starts at 400 ms.
        (limited(constant_rate_plan("10"), 5, None), 401 * MS + way_ns),
        (limited(constant_rate_plan("10"), 5, Some(SECOND)), 401 * MS + way_ns),
        (limited(constant_rate_plan("10"), 50, Some(SECOND)), SECOND),
        (limited(constant_rate_plan("10"), 10, Some(SECOND)), SECOND),
        (limited(closed_loop_plan("1"), 5, Some(SECOND)), 5 * (MS + way_ns) + way_ns),
        (limited(closed_loop_plan("1"), 50_000, Some(SECOND)), SECOND),
    ] {
        let sim = run(&plan, &SimServer::new(MS), first_seed());
        let got_ns = sim.run.window_ns.1;
        assert!(got_ns.abs_diff(expect_ns) <= way_ns, "{:?}: {got_ns} ns, expected {expect_ns}", plan.load.shape);
    }
}
