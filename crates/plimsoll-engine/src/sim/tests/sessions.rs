//! Users who ask more than one thing: what a source says is done, and each request has the timeout of its route.

use super::*;
use crate::source::{Next, Source};
use std::collections::HashMap;

/// Runs `plan` with users who do these steps, over routes with these timeouts.
fn scripted(plan: &Plan, server: &Server, timeouts_ns: &[u64], steps: &[Next]) -> Sim {
    let (machine, seed) = (Machine::default(), first_seed());
    let sim = Simulation { plan, stripe: Stripe::ALL, server, machine, seed }.run_from(
        &mut |source| {
            let route = source.route(0).clone();
            let routes = timeouts_ns.iter().map(|&timeout_ns| crate::source::Route { timeout_ns, ..route.clone() });
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
    let sim = scripted(&constant("100@500ms"), &Server::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().ledger;
    assert_eq!(ledger.scheduled, ledger.succeeded, "{ledger:?}");
    assert_eq!(ledger.scheduled, 50 + 48 + 48, "{ledger:?}");
    // With a number of arrivals alone, sessions are carried to their end.
    let plan = Plan { requests_max: Some(10), duration_ns: None, ..constant("100") };
    let ledger = scripted(&plan, &Server::new(MS), &[60 * MS], &steps).run.totals().ledger;
    assert_eq!((ledger.scheduled, ledger.succeeded), (30, 30), "{ledger:?}");
}

#[test]
fn a_user_begins_anew_after_its_session() {
    // 1.1 ms, 20 ms of thought, 1.1 ms, 1.1 ms: 23.3 ms a session of three.
    let steps = [Next::Send(0), Next::Wait(20 * MS, 0), Next::Send(0)];
    let sim = scripted(&closed("4@2330ms"), &Server::new(MS), &[60 * MS], &steps);
    let ledger = sim.run.totals().ledger;
    assert!(near(ledger.succeeded as f64, 4.0 * 300.0, 0.01), "{ledger:?}");
    assert_eq!(sim.account.connects, 4, "a user keeps its connection while it thinks");
    // One who begins with a thought.
    let ledger =
        scripted(&closed("4@2110ms"), &Server::new(MS), &[60 * MS], &[Next::Wait(20 * MS, 0)]).run.totals().ledger;
    assert!(near(ledger.succeeded as f64, 4.0 * 100.0, 0.01), "{ledger:?}");
}

#[test]
fn a_request_has_the_timeout_of_its_route() {
    let server = Server::new(MS).with(Fault::NeverAnswers, 1.0);
    let steps = [Next::Send(0), Next::Send(1), Next::Send(2), Next::Send(1)];
    for plan in [closed("3@1s"), constant("20@1s")] {
        let totals = scripted(&plan, &server, &[60 * MS, 10 * MS, 30 * MS], &steps).run.totals();
        let (all, response) = (totals.ledger.scheduled, &totals.response);
        assert_eq!(totals.ledger.failed[Failure::Timeout as usize], all);
        let share = |low_ns: u64, high_ns: u64| {
            (response.count_above(low_ns) - response.count_above(high_ns)) as f64 / all as f64
        };
        for (timeout_ms, expect) in [(10, 0.5), (30, 0.25), (60, 0.25)] {
            let at_ns = timeout_ms * MS;
            assert!((share(at_ns - MS, at_ns + MS) - expect).abs() < 0.05, "{timeout_ms} ms: {response:?}");
        }
    }
}
