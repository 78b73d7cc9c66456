//! The rate of the access log from which the requests of a search were taken. A search expresses
//! the load line as a multiple of the access log's rate.
//!
//! Not here: the load line.

use plimsoll_model::PlanRecord;
use plimsoll_model::units::SECOND;

/// One minute, ns. An access log that is shorter than a minute has no busiest minute.
const MINUTE_NS: u64 = 60 * SECOND;

/// The traffic of the access log from which loads are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccessLogRate {
    /// Number of requests in the log.
    pub requests: u64,
    /// Number of sessions in the log.
    pub sessions: u64,
    /// Duration of the log, ns.
    pub span_ns: u64,
    /// Mean rate of the log, 1/s.
    pub mean_rps: f64,
    /// The rate in the log's busiest minute, 1/s; `None` if the log is shorter than a minute.
    pub busiest_minute_rps: Option<f64>,
    /// The rate in the log's busiest second, 1/s; `None` if the log is shorter than a second.
    pub busiest_second_rps: Option<f64>,
}

impl AccessLogRate {
    /// Returns the rate of the access log from which the loads of this plan are drawn; `None`
    /// without a log.
    pub fn from_plan(plan: &PlanRecord) -> Option<AccessLogRate> {
        let listed = plan.traffic.request_list.as_ref()?;
        let facts = listed.facts.sessions?;
        let busiest = |count: u64, ns: u64| (facts.span_ns >= ns).then(|| count as f64 * 1e9 / ns as f64);
        (facts.span_ns > 0 && listed.requests > 0).then(|| AccessLogRate {
            requests: listed.requests,
            sessions: facts.sessions,
            span_ns: facts.span_ns,
            mean_rps: listed.requests as f64 * 1e9 / facts.span_ns as f64,
            busiest_minute_rps: busiest(facts.busiest_minute_requests, MINUTE_NS),
            busiest_second_rps: busiest(facts.busiest_second_requests, SECOND),
        })
    }

    /// Returns `rate_rps` as a multiple of the log's mean rate.
    pub fn multiple_of_mean_rate(&self, rate_rps: f64) -> f64 {
        rate_rps / self.mean_rps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape, LogSessionsFacts, Plan, ReplayFacts, RequestListRecord};

    #[test]
    fn load_line_is_a_multiple_of_the_log_rate() {
        let mut plan =
            Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
        assert_eq!(AccessLogRate::from_plan(&plan), None);
        for (span_s, busiest_minute_rps) in [(600, Some(5.0)), (30, None)] {
            let facts = LogSessionsFacts {
                sessions: 40,
                span_ns: span_s * SECOND,
                busiest_minute_requests: 300,
                busiest_second_requests: 20,
            };
            let facts = ReplayFacts { sessions: Some(facts), ..ReplayFacts::default() };
            plan.traffic.request_list =
                Some(RequestListRecord { requests: 1200, targets: 7, digest: String::new(), facts });
            let rate = AccessLogRate::from_plan(&plan).expect("drawn");
            assert_eq!((rate.mean_rps, rate.busiest_minute_rps), (1200.0 / span_s as f64, busiest_minute_rps));
            assert_eq!((rate.busiest_second_rps, rate.multiple_of_mean_rate(rate.mean_rps * 3.0)), (Some(20.0), 3.0));
        }
    }
}
