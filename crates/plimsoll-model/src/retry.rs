//! Traffic with retries ([`with_retries`]): a failed request is sent again after 100 ms. Before
//! each further retry, the wait is twice the previous wait. Retries have a route of their own, so
//! that figures by route separate retries from first attempts.
//!
//! Not here: which studies use retries, and their effect on a server.

use crate::RouteNumber;
use crate::session::{Scenario, SessionOp, ThinkTime};
use crate::traffic::{Route, RouteChoice, Traffic};
use crate::units::MS;

/// The maximum number of retries of a request.
pub const RETRIES_MAX: u32 = 10;
/// Wait before the first retry, ns.
const FIRST_WAIT_NS: u64 = 100 * MS;
/// The route number of first attempts; retries have the route number [`RETRY_ROUTE`].
pub const FIRST_ATTEMPT_ROUTE: RouteNumber = 0;
/// The route number of retries; see [`FIRST_ATTEMPT_ROUTE`].
pub const RETRY_ROUTE: RouteNumber = 1;

/// Returns the traffic with up to `times` retries of each failed request. `None` means that the
/// traffic is not a single request with constant content.
pub fn with_retries(traffic: &Traffic, times: u32) -> Option<Traffic> {
    let [route] = traffic.routes.as_slice() else { return None };
    if traffic.choice != RouteChoice::Weighted || route.template_flags.any_template() {
        return None;
    }
    let again = Route { label: retry_label(&route.label), ..route.clone() };
    let end = 1 + 3 * times;
    let mut ops = vec![SessionOp::Send { route: FIRST_ATTEMPT_ROUTE, may_continue: true }];
    for turn in 0..times {
        ops.extend([
            SessionOp::JumpIfSucceeded { to: end },
            SessionOp::Think(ThinkTime::Fixed(FIRST_WAIT_NS << turn)),
            SessionOp::Send { route: RETRY_ROUTE, may_continue: true },
        ]);
    }
    let scenario = Scenario { name: "a request".to_owned(), weight: 1, own_connection: false, cookies: true, ops };
    Some(Traffic {
        routes: vec![route.clone(), again],
        choice: RouteChoice::Scenarios,
        scenarios: vec![scenario],
        ..traffic.clone()
    })
}

/// Returns the label of the route of retries, from the label of first attempts.
pub(crate) fn retry_label(label: &str) -> String {
    format!("{label} (again)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadCurve, LoadShape, Plan};

    #[test]
    fn only_one_fixed_request_gets_retries() {
        let plan = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        for times in [1, 3, RETRIES_MAX] {
            let traffic = with_retries(&plan.traffic, times).expect("one request");
            assert!(traffic.scenarios[0].is_sound(traffic.routes.len()), "{traffic:?}");
            assert_eq!(traffic.scenarios[0].requests_max(), u64::from(times) + 1);
            assert_eq!(traffic.routes[usize::from(RETRY_ROUTE)].request, plan.traffic.routes[0].request);
            assert_eq!(with_retries(&traffic, 1), None);
            // The title shows the request, without its retries.
            let again = Plan { traffic, ..plan.clone() }.record().traffic;
            assert_eq!((again.title().as_str(), again.target_label().as_str()), ("GET http://h:80/", "http://h:80/"));
        }
        let waits: Vec<u64> = with_retries(&plan.traffic, 3).expect("one request").scenarios[0]
            .ops
            .iter()
            .filter_map(|op| if let SessionOp::Think(ThinkTime::Fixed(ns)) = op { Some(ns / MS) } else { None })
            .collect();
        assert_eq!(waits, [100, 200, 400]);
    }
}
