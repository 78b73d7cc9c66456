//! Groups the failed responses of one or several loads by kind. Each kind has its first response
//! and the number of its requests.
//!
//! Not here: the text of a response (`plimsoll_model::failed_response`), and the report.

use plimsoll_model::{CallFault, FailedResponse, LoadPurpose, LoadTag, RequestFailure, Run, Trial};

/// The failed responses of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedResponseGroup {
    /// The first failed response of this kind.
    pub first: FailedResponse,
    /// When the first response of this kind arrived, in ns since the start of the first load.
    pub at_ns: u64,
    /// The tag of the load that received the first response of this kind.
    pub tag: LoadTag,
    /// Number of measured requests that ended with a response of this kind.
    pub requests: u64,
    /// The name of the route, for a kind that belongs to one route of several; otherwise `None`.
    pub route: Option<String>,
}

impl FailedResponseGroup {
    /// Returns the kinds of failed responses of one load, sorted by kind.
    pub fn failures_of_run(run: &Run) -> Vec<FailedResponseGroup> {
        collect_failed_kinds([(LoadTag::for_purpose(LoadPurpose::Run), 0, run)].into_iter())
    }

    /// Returns the kinds of failed responses of several loads, sorted by kind.
    pub fn failures_of_trials<'a>(trials: impl Iterator<Item = &'a Trial> + Clone) -> Vec<FailedResponseGroup> {
        let began_ns = trials.clone().map(|trial| trial.start_ns).min().unwrap_or(0);
        collect_failed_kinds(trials.map(|trial| (trial.tag, trial.start_ns - began_ns, &trial.run)))
    }
}

/// Collects the kinds of failed responses of several loads. Each item contains the tag of a load,
/// the start of the load in ns, and its run.
fn collect_failed_kinds<'a>(loads: impl Iterator<Item = (LoadTag, u64, &'a Run)>) -> Vec<FailedResponseGroup> {
    let mut kinds: Vec<FailedResponseGroup> = Vec::new();
    for (tag, start_ns, run) in loads {
        for answer in &run.failed_answers {
            let (at_ns, requests) = (start_ns.saturating_add(answer.at_ns), count_failed_requests(run, answer));
            let routes = &run.plan.traffic.routes;
            let route =
                answer.failed_check.filter(|_| routes.len() > 1).and_then(|it| routes.get(usize::from(it.route)));
            let route = route.map(|route| route.label.clone());
            let kind = FailedResponseGroup { first: answer.clone(), at_ns, tag, requests, route };
            match kinds.binary_search_by_key(&answer.kind(), |kind| kind.first.kind()) {
                Err(place) => kinds.insert(place, kind),
                Ok(place) => {
                    let requests = kinds[place].requests + requests;
                    if kind.at_ns < kinds[place].at_ns {
                        kinds[place] = kind;
                    }
                    kinds[place].requests = requests;
                }
            }
        }
    }
    // A response that was not complete at the timeout is no failed response: its request counts as
    // a timeout.
    kinds.retain(|kind| kind.requests > 0);
    kinds
}

/// Counts the requests of a load that failed in the same way as `answer`. Requests fail in the same
/// way if they have the same HTTP status, gRPC status or unmet expectation, or if their responses
/// are not HTTP.
fn count_failed_requests(run: &Run, answer: &FailedResponse) -> u64 {
    let of_kind = |interval: &plimsoll_model::Interval| match (answer.failed_check, answer.grpc_status, answer.status) {
        (Some(missed), _, _) => {
            interval.routes.get(missed.route).map_or(0, |figures| figures.ledger.failed[missed.failure as usize])
        }
        (None, Some(ended), _) => match answer.call_fault {
            Some(fault) => interval.all_routes().grpc_faults.get(fault as u16),
            None if ended == CallFault::REPORTED_STATUS as u16 => {
                let whole = interval.all_routes();
                whole.grpc_statuses.get(ended).saturating_sub(whole.grpc_faults.total())
            }
            None => interval.all_routes().grpc_statuses.get(ended),
        },
        (None, None, 0) => interval.all_routes().ledger.failed[RequestFailure::Protocol as usize],
        (None, None, status) => interval.all_routes().statuses.get(status),
    };
    run.intervals.values().map(of_kind).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::failed_response::FailedRouteCheck;
    use plimsoll_model::{Interval, LoadCurve, LoadShape, Plan, RedactionLevel};

    fn trial_with_failures(start_ns: u64, answers: &[(u16, u64, u64)]) -> Trial {
        let users = LoadCurve::constant(1.0);
        let mut run = Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users }));
        let mut interval = Interval::default();
        for (status, at_ns, requests) in answers {
            run.failed_answers.push(FailedResponse::from_response(
                *status,
                *at_ns,
                format!("HTTP/1.1 {start_ns}").as_bytes(),
                RedactionLevel::Secrets,
            ));
            match status {
                0 => interval.routes.figures_mut(0).ledger.failed[RequestFailure::Protocol as usize] = *requests,
                _ => interval.routes.figures_mut(0).statuses.add(*status, *requests),
            }
        }
        run.intervals.insert(0, interval);
        Trial { tag: LoadTag::for_purpose(LoadPurpose::Line), start_ns, run }
    }

    #[test]
    fn missed_expectations_are_counted_for_each_route() {
        let users = LoadCurve::constant(1.0);
        let mut plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users });
        let mut other = plan.traffic.routes[0].clone();
        other.label = "order".into();
        plan.traffic.routes.push(other);
        let mut run = Run::new(plan);
        let mut interval = Interval::default();
        for (route, failure, requests) in
            [(0, RequestFailure::Capture, 2), (1, RequestFailure::Expectation, 3), (1, RequestFailure::Capture, 4)]
        {
            let (missed, said) = (FailedRouteCheck { route, failure }, (&b"HTTP/1.1 200 OK"[..], &b"{}"[..]));
            run.failed_answers.push(FailedResponse::from_failed_check(
                200 + route,
                missed,
                5,
                said,
                "$.ok is not true",
                RedactionLevel::Secrets,
            ));
            interval.routes.figures_mut(route).ledger.failed[failure as usize] = requests;
        }
        run.intervals.insert(0, interval);
        let kinds = FailedResponseGroup::failures_of_run(&run);
        let told: Vec<(Option<&str>, u64)> = kinds.iter().map(|kind| (kind.route.as_deref(), kind.requests)).collect();
        let first = run.plan.traffic.routes[0].label.as_str();
        assert_eq!(told, [(Some(first), 2), (Some("order"), 3), (Some("order"), 4)]);
        assert_eq!(kinds[1].first.description(), "HTTP/1.1 200 OK, \"{}\", $.ok is not true");
    }

    #[test]
    fn the_first_failure_of_each_kind_is_shown_and_all_are_counted() {
        let trials = [
            trial_with_failures(100, &[(503, 50, 2), (504, 1, 0)]),
            trial_with_failures(110, &[(0, 5, 4), (503, 5, 30)]),
        ];
        let kinds = FailedResponseGroup::failures_of_trials(trials.iter());
        let told: Vec<(u16, u64, u64, &str)> = kinds
            .iter()
            .map(|kind| (kind.first.status, kind.at_ns, kind.requests, kind.first.status_line.as_str()))
            .collect();
        assert_eq!(told, [(0, 15, 4, "HTTP/1.1 110"), (503, 15, 32, "HTTP/1.1 110")]);
        let own = FailedResponseGroup::failures_of_run(&trials[0].run);
        assert_eq!((own.len(), own[0].at_ns, own[0].requests), (1, 50, 2));
    }
}
