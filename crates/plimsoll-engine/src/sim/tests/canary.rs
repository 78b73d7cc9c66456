//! Tests that the checks of a simulation detect deliberate errors. If the checks of a simulation
//! detected no errors, the tests of this directory would prove nothing.

use super::*;

/// Returns whether `verify`, which checks each simulation run, finds an error in this run.
fn is_detected(sim: &SimulatedRun, server: &SimServer) -> bool {
    verify(sim, server).is_err()
}

#[test]
fn a_ledger_that_is_off_by_one_is_caught() {
    let server = SimServer::new(MS);
    let mut sim = simulate(&closed_loop_plan("4@300ms"), &server, 1);
    assert!(!is_detected(&sim, &server));
    let interval = sim.run.intervals.values_mut().next().expect("an interval");
    interval.routes.figures_mut(0).ledger.scheduled += 1;
    assert!(is_detected(&sim, &server), "a request without an end");
    first_interval_mut(&mut sim).routes.figures_mut(0).ledger.unsent += 1;
    assert!(!is_detected(&sim, &server), "accounted for");
    first_interval_mut(&mut sim).load.in_flight_ns += 1;
    assert!(is_detected(&sim, &server), "a nanosecond in flight that nobody took");
    first_interval_mut(&mut sim).load.in_flight_ns -= 1;
    first_interval_mut(&mut sim).load.bytes_in += 1;
    assert!(is_detected(&sim, &server), "a byte that nobody sent");
    first_interval_mut(&mut sim).load.bytes_in -= 1;
    first_interval_mut(&mut sim).routes.figures_mut(0).statuses.add(200, 1);
    assert!(is_detected(&sim, &server), "an answer that nobody gave");
}

fn first_interval_mut(sim: &mut SimulatedRun) -> &mut plimsoll_model::Interval {
    sim.run.intervals.values_mut().next().expect("an interval")
}

#[test]
fn a_server_that_answers_twice_is_caught() {
    // HTTP/1.1 responses have no request number. A second response that arrives during the next
    // request counts as the response to the next request. In this test the second response is
    // detected, because it arrives sooner after the next request than the round trip allows.
    let server = SimServer::new(MS).with_fault(Fault::AnswersTwice(60_000), 1.0);
    assert!(is_detected(&simulate(&closed_loop_plan("1@300ms"), &server, 1), &server));
    // A second response on an idle connection belongs to no request. The client closes a connection
    // that receives a response without a request, and earlier requests keep their outcome.
    let server = SimServer::new(MS).with_fault(Fault::AnswersTwice(5 * MS), 1.0);
    let sim = simulate(&constant_rate_plan("10@1s"), &server, 1);
    assert!(!is_detected(&sim, &server));
    assert_eq!((sim.run.totals().routes_sum.ledger.succeeded, sim.account.connects), (10, 10));
}

#[test]
fn a_lost_readiness_event_causes_timeouts() {
    let machine = SimMachine { lose_event: Some(40), ..SimMachine::default() };
    let (plan, server) = (closed_loop_plan("4@300ms"), SimServer::new(MS));
    let sim = Simulation { plan: &plan, stripe: Stripe::WHOLE_SCHEDULE, server: &server, machine, seed: 1 }
        .run(&mut |_| ControlFlow::Continue(()));
    // After lost events the ledger still accounts for every request, but a request whose response
    // arrived in time may count as a timeout.
    assert!(failed_request_count(&sim, RequestFailure::Timeout) > 0);
    assert_eq!(failed_request_count(&run(&plan, &server, 1), RequestFailure::Timeout), 0);
}
