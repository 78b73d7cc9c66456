//! The figures of each route of a load ([`RouteSummary`]), for plans with several routes.
//!
//! Not here: the figures of all routes together ([`crate::summary`]).

use crate::summary::{Latency, summarize_latencies};
use plimsoll_model::{Histogram, RouteFigures, Run};

/// The figures of one route in a load whose plan has several routes.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSummary {
    /// The name of the route.
    pub name: String,
    /// Number of requests of this route that ended with a response or a failure.
    pub requests: u64,
    /// Share of the route's scheduled requests that succeeded, 0..=1.
    pub success_rate: f64,
    /// Successes a second of this route inside the measured window.
    pub throughput_rps: f64,
    /// The distributions of the route's times, and the counts of its requests.
    pub figures: RouteFigures<Latency>,
}

/// Returns the figures of each route of a load, in the order of the plan. Routes without any
/// request are included. The list is empty for a plan with a single route.
pub fn summarize_routes(run: &Run) -> Vec<RouteSummary> {
    let routes = &run.plan.traffic.routes;
    if routes.len() < 2 {
        return Vec::new();
    }
    let seconds = run.duration_ns() as f64 / 1e9;
    let summary = |(route, mut sums): (_, RouteFigures<Histogram>)| {
        let route: &plimsoll_model::RouteRecord = route;
        let figures = summarize_latencies(&mut sums);
        RouteSummary {
            name: route.label.clone(),
            requests: figures.ledger.finished_requests(),
            success_rate: figures.ledger.success_rate(),
            throughput_rps: if seconds > 0.0 { figures.succeeded_in_window as f64 / seconds } else { 0.0 },
            figures,
        }
    };
    routes.iter().zip(run.route_totals()).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, LoadCurve, LoadShape, Plan};

    #[test]
    fn several_routes_have_separate_figures() {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        assert_eq!(summarize_routes(&run), []);
        let first = run.plan.traffic.routes[0].clone();
        run.plan.traffic.routes = ["list", "order", "never"]
            .map(|label| {
                let mut route = first.clone();
                route.label = label.to_owned();
                route
            })
            .to_vec();
        run.window_ns = (0, 2_000_000_000);
        for index in 0..2 {
            let mut interval = Interval::default();
            for (number, succeeded, failed) in [(0, 30, 0), (1, 6, 2)] {
                let figures = interval.routes.figures_mut(number);
                (figures.ledger.scheduled, figures.ledger.succeeded) = (succeeded + failed, succeeded);
                figures.ledger.failed[0] = failed;
                figures.succeeded_in_window = succeeded;
            }
            run.intervals.insert(index, interval);
        }
        let routes = summarize_routes(&run);
        let told: Vec<(&str, u64, f64, f64)> =
            routes.iter().map(|r| (r.name.as_str(), r.requests, r.success_rate, r.throughput_rps)).collect();
        assert_eq!(
            told,
            [("list", 60, 1.0, 30.0), ("order", 16, 0.75, 6.0), ("never", 0, routes[2].success_rate, 0.0)]
        );
    }
}
