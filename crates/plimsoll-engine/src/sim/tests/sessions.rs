//! Users who ask more than one thing: what a source says is done, and each request has the timeout of its route.

use super::*;
use crate::source::{Next, Source};
use std::collections::HashMap;

/// Runs `plan` with users who do these steps, over routes with these timeouts.
fn scripted(plan: &Setup, server: &SimServer, timeouts_ns: &[u64], steps: &[Next]) -> Sim {
    let (machine, seed) = (SimMachine::default(), first_seed());
    let sim = Simulation { plan, stripe: Stripe::ALL, server, machine, seed }.run_from(
        &mut |source| {
            let route = source.route(0).clone();
            let routes =
                timeouts_ns.iter().map(|&timeout_ns| crate::source::EncodedRoute { timeout_ns, ..route.clone() });
            *source = Source::Script { routes: routes.collect(), steps: steps.to_vec(), at: HashMap::new() };
        },
        &mut |_| ControlFlow::Continue(()),
    );
    verify(&sim, server).expect("holds");
    sim
}

#[test]
fn an_arrival_may_be_a_session() {
    let steps = [Next::Send(0), Next::Wait(20 * MS, 0), Next::Send(0)];
    // Fifty arrivals that ask three times each; the last ones end with the schedule.
    let sim = scripted(&constant("100@500ms"), &SimServer::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().whole.ledger;
    assert_eq!(ledger.scheduled, ledger.succeeded, "{ledger:?}");
    assert_eq!(ledger.scheduled, 50 + 48 + 48, "{ledger:?}");
    // With a number of arrivals alone, sessions are carried to their end.
    let plan = constant("100").with(|it| {
        it.load.requests_max = Some(10);
        it.load.duration_ns = None
    });
    let ledger = scripted(&plan, &SimServer::new(MS), &[60 * MS], &steps).run.totals().whole.ledger;
    assert_eq!((ledger.scheduled, ledger.succeeded), (30, 30), "{ledger:?}");
}

#[test]
fn a_user_begins_anew_after_its_session() {
    // 1.1 ms, 20 ms of thought, 1.1 ms, 1.1 ms: 23.3 ms a session of three.
    let steps = [Next::Send(0), Next::Wait(20 * MS, 0), Next::Send(0)];
    let sim = scripted(&closed("4@2330ms"), &SimServer::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().whole.ledger;
    assert!(near(ledger.succeeded as f64, 4.0 * 300.0, 0.01), "{ledger:?}");
    assert_eq!(sim.account.connects, 4, "a user keeps its connection while it thinks");
    // One who begins with a thought.
    let ledger = scripted(&closed("4@2110ms"), &SimServer::new(MS), &[60 * MS], &[Next::Wait(20 * MS, 0)])
        .run
        .totals()
        .whole
        .ledger;
    assert!(near(ledger.succeeded as f64, 4.0 * 100.0, 0.01), "{ledger:?}");
}

#[test]
fn routes_of_a_plan_are_asked_by_weight() {
    for (plan, machines) in [(closed("6@1s"), 1), (constant("300@1s"), 1), (closed("6@1s"), 3), (constant("300@1s"), 2)]
    {
        let plan = plan.with(|it| {
            let quick = plimsoll_model::Route { timeout_ns: 10 * MS, weight: 3, ..it.traffic.routes[0].clone() };
            it.traffic.routes.push(quick);
        });
        let server = SimServer::new(MS).with(Fault::NeverAnswers, 1.0);
        let (mut quick, mut all) = (0, 0);
        for index in 0..machines {
            let (stripe, machine, seed) = (Stripe { index, of: machines }, SimMachine::default(), first_seed());
            let sim = Simulation { plan: &plan, stripe, server: &server, machine, seed }
                .run(&mut |_| ControlFlow::Continue(()));
            verify(&sim, &server).expect("holds");
            let totals = sim.run.totals();
            all += totals.whole.response.count();
            quick += totals.whole.response.count() - totals.whole.response.count_above(30 * MS);
        }
        let (share, spread) = (quick as f64 / all as f64, 3.0 * (0.75 * 0.25 / all as f64).sqrt());
        assert!((share - 0.75).abs() < spread, "{quick} of {all}");
    }
}

#[test]
fn a_request_has_the_timeout_of_its_route() {
    let server = SimServer::new(MS).with(Fault::NeverAnswers, 1.0);
    let steps = [Next::Send(0), Next::Send(1), Next::Send(2), Next::Send(1)];
    for plan in [closed("3@1s"), constant("20@1s")] {
        let totals = scripted(&plan, &server, &[60 * MS, 10 * MS, 30 * MS], &steps).run.totals();
        let (all, response) = (totals.whole.ledger.scheduled, &totals.whole.response);
        assert_eq!(totals.whole.ledger.failed[RequestFailure::Timeout as usize], all);
        let share = |low_ns: u64, high_ns: u64| {
            (response.count_above(low_ns) - response.count_above(high_ns)) as f64 / all as f64
        };
        for (timeout_ms, expect) in [(10, 0.5), (30, 0.25), (60, 0.25)] {
            let at_ns = timeout_ms * MS;
            assert!((share(at_ns - MS, at_ns + MS) - expect).abs() < 0.05, "{timeout_ms} ms: {response:?}");
        }
    }
}
