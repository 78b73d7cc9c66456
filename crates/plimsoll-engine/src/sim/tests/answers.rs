//! Tests of response checks beyond the status, for any split of the response bytes into pieces.

use super::*;
use plimsoll_model::expect::{CaptureSource, Expectations, ResponseCapture, TextExpectation};

fn plan_with_expectations(
    body: Option<&str>,
    header: Option<&str>,
    response_time_ns_max: Option<u64>,
    capture: Option<&str>,
) -> SimulatedPlan {
    constant_rate_plan("100@1s").with_change(|it| {
        let route = &mut it.traffic.routes[0];
        route.expect = Expectations {
            response_time_ns_max,
            headers: header.map(|text| ("content-type".into(), TextExpectation::parse(text))).into_iter().collect(),
            json: vec![],
            body: body.map(TextExpectation::parse),
        };
        let from = |text| CaptureSource::parse(text).expect("a capture");
        route.captures = capture
            .map(|text| ResponseCapture { name: "it".into(), from: from(text), default: None })
            .into_iter()
            .collect();
    })
}

#[test]
fn a_missed_expectation_has_its_own_failure_kind() {
    for cut in [ResponseSplit::Whole, ResponseSplit::Bytes] {
        for (plan, miss) in [
            (plan_with_expectations(Some("hello"), Some("text/plain"), Some(100 * MS), Some("regex:h(el+)o")), None),
            (plan_with_expectations(Some("regex:^hello$"), None, None, None), None),
            (
                plan_with_expectations(Some("hallo"), None, None, None),
                Some((RequestFailure::Expectation, "the content")),
            ),
            (
                plan_with_expectations(None, Some("json"), None, None),
                Some((RequestFailure::Expectation, "content-type")),
            ),
            (
                plan_with_expectations(None, None, Some(MS), None),
                Some((RequestFailure::Expectation, "longer than 1ms")),
            ),
            (plan_with_expectations(None, None, None, Some("$.token")), Some((RequestFailure::Capture, "$.token"))),
        ] {
            let server = SimServer { cut, ..SimServer::new(MS) };
            let sim = run(&plan, &server, first_seed());
            let ledger = sim.run.totals().routes_sum.ledger;
            match miss {
                None => assert_eq!((ledger.succeeded, sim.run.failed_answers.len()), (100, 0), "{cut:?}: {ledger:?}"),
                Some((failure, part)) => {
                    assert_eq!(ledger.failed[failure as usize], 100, "{cut:?}: {ledger:?}");
                    let [kept] = sim.run.failed_answers.as_slice() else { panic!("{:?}", sim.run.failed_answers) };
                    assert_eq!((kept.status, kept.status_line.as_str()), (200, "HTTP/1.1 200 OK"));
                    assert!(kept.reason.contains(part), "{kept:?}");
                    assert_eq!(kept.body, "hello");
                }
            }
        }
    }
}

#[test]
fn content_checks_work_for_any_framing() {
    for cut in [ResponseSplit::Whole, ResponseSplit::Bytes] {
        for (fault, body) in
            [(Fault::Chunked, "hello!"), (Fault::UntilClose, "until the end"), (Fault::Pieces, "hello")]
        {
            let server = SimServer { cut, ..SimServer::new(MS).with_fault(fault, 1.0) };
            let sim =
                run(&plan_with_expectations(Some(&format!("regex:^{body}$")), None, None, None), &server, first_seed());
            assert_eq!(sim.run.totals().routes_sum.ledger.succeeded, 100, "{fault:?}, {cut:?}");
        }
        let server = SimServer { cut, ..SimServer::new(MS).with_fault(Fault::Status(500), 0.5) };
        let ledger = run(&plan_with_expectations(Some("nothing"), None, None, None), &server, first_seed())
            .run
            .totals()
            .routes_sum
            .ledger;
        let [status, missed] =
            [RequestFailure::Status, RequestFailure::Expectation].map(|kind| ledger.failed[kind as usize]);
        assert!(status > 20 && missed > 20 && status + missed == 100, "{ledger:?}");
    }
}
