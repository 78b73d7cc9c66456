//! Traffic whose requests come again when they fail ([`retried`]), as many clients ask: after a
//! tenth of a second, then after twice as long each time. What comes again is a route of its own,
//! so that figures by route count it apart.
//!
//! Not here: who asks so, and what becomes of the server.

use crate::RouteNumber;
use crate::session::{Scenario, SessionOp, Think};
use crate::traffic::{Choice, Route, Traffic};
use crate::units::MS;

/// A request comes again so often, at most.
pub const RETRIES_MAX: u32 = 10;
/// After the first failure, ns.
const FIRST_WAIT_NS: u64 = 100 * MS;
/// The route of what is asked for the first time, and that of what comes again.
pub const FIRST: RouteNumber = 0;
/// See [`FIRST`].
pub const AGAIN: RouteNumber = 1;

/// The same traffic, of which each request that fails comes again up to so often; `None`: it is
/// more than one fixed request.
pub fn retried(traffic: &Traffic, times: u32) -> Option<Traffic> {
    let [route] = traffic.routes.as_slice() else { return None };
    if traffic.choice != Choice::Weighted || route.filled.any() {
        return None;
    }
    let again = Route { label: again_label(&route.label), ..route.clone() };
    let end = 1 + 3 * times;
    let mut ops = vec![SessionOp::Ask { route: FIRST, goes_on: true }];
    for turn in 0..times {
        ops.extend([
            SessionOp::Answered { to: end },
            SessionOp::Think(Think::Fixed(FIRST_WAIT_NS << turn)),
            SessionOp::Ask { route: AGAIN, goes_on: true },
        ]);
    }
    let scenario = Scenario { name: "a request".to_owned(), weight: 1, own_connection: false, ops };
    Some(Traffic {
        routes: vec![route.clone(), again],
        choice: Choice::Scenarios,
        scenarios: vec![scenario],
        ..traffic.clone()
    })
}

/// What the request that comes again is called.
pub(crate) fn again_label(label: &str) -> String {
    format!("{label} (again)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, LoadShape, Plan};

    #[test]
    fn one_request_comes_again_and_anything_else_does_not() {
        let plan = Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) });
        for times in [1, 3, RETRIES_MAX] {
            let traffic = retried(&plan.traffic, times).expect("one request");
            assert!(traffic.scenarios[0].is_sound(traffic.routes.len()), "{traffic:?}");
            assert_eq!(traffic.scenarios[0].requests_max(), u64::from(times) + 1);
            assert_eq!(traffic.routes[usize::from(AGAIN)].request, plan.traffic.routes[0].request);
            assert_eq!(retried(&traffic, 1), None);
            // People are told the request, not how it is asked.
            let again = Plan { traffic, ..plan.clone() }.record().traffic;
            assert_eq!((again.title().as_str(), again.place().as_str()), ("GET http://h:80/", "http://h:80/"));
        }
        let waits: Vec<u64> = retried(&plan.traffic, 3).expect("one request").scenarios[0]
            .ops
            .iter()
            .filter_map(|op| if let SessionOp::Think(Think::Fixed(ns)) = op { Some(ns / MS) } else { None })
            .collect();
        assert_eq!(waits, [100, 200, 400]);
    }
}
