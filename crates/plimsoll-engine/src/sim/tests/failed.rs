//! Tests that the first failed response of each kind is stored, for any split of its bytes into
//! pieces.

use super::*;

/// Returns the status and the text of each failed response that the run stored.
fn failed_status_and_text(sim: &SimulatedRun) -> Vec<(u16, String)> {
    sim.run.failed_answers.iter().map(|answer| (answer.status, answer.description())).collect()
}

#[test]
fn the_first_failed_response_of_each_status_is_stored() {
    let busy = (503, "HTTP/1.1 503 No, \"no\"".to_owned());
    let oops = (500, "HTTP/1.1 500 No, \"no\"".to_owned());
    for cut in [ResponseSplit::Whole, ResponseSplit::Bytes] {
        for workers in [1, 3] {
            let plan = poisson_rate_plan("60@1s").with_change(|it| it.injector.workers = workers);
            // Besides the failed responses, some successful responses arrive in pieces.
            let faults =
                vec![(Fault::Status(503), 0.3), (Fault::Status(500), 0.2), (Fault::Pieces, 0.3), (Fault::Large, 0.1)];
            let server = SimServer { faults, cut, ..SimServer::new(MS) };
            let sim = run(&plan, &server, first_seed());
            assert_eq!(failed_status_and_text(&sim), [oops.clone(), busy.clone()], "{cut:?}, {workers}");
            assert!(sim.run.failed_answers.iter().all(|answer| answer.at_ns < SECOND));
            // A response whose status counts as success is not stored.
            let ok_status = plimsoll_model::StatusSet::parse("2xx,503").expect("a set");
            let sim = run(&plan.with_change(|it| it.traffic.routes[0].ok_status = ok_status), &server, first_seed());
            assert_eq!(failed_status_and_text(&sim), std::slice::from_ref(&oops), "{cut:?}, {workers}");
        }
    }
}

#[test]
fn only_measured_failures_are_stored() {
    for cut in [ResponseSplit::Whole, ResponseSplit::Bytes] {
        let server = |fault| SimServer { cut, ..SimServer::new(MS).with_fault(fault, 0.5) };
        let garbage = run(&constant_rate_plan("100@1s"), &server(Fault::Garbage), first_seed()).run;
        let [kept] = garbage.failed_answers.as_slice() else { panic!("{:?}", garbage.failed_answers) };
        assert!(kept.status == 0 && !kept.body.is_empty() && kept.reason.contains("status line"), "{kept:?}");
        for fault in [Fault::Chunked, Fault::UntilClose, Fault::Interim, Fault::ClosesInReply, Fault::NeverAnswers] {
            assert_eq!(
                failed_status_and_text(&run(&constant_rate_plan("100@1s"), &server(fault), first_seed())),
                [],
                "{fault:?}"
            );
        }
        let warmup = constant_rate_plan("100@1s").with_change(|it| {
            it.load.warmup_ns = SECOND;
            it.load.duration_ns = Some(0)
        });
        assert_eq!(failed_status_and_text(&run(&warmup, &server(Fault::Status(500)), first_seed())), []);
    }
}
