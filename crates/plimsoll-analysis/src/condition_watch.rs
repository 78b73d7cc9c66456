//! Checks conditions while a run is in progress ([`ConditionWatch`]).
//!
//! Not here: the syntax of conditions, and conditions on a finished run ([`crate::condition`]).

use crate::condition::{Condition, Conditions, CountOrShare, CrossedCondition, FigureInputs, Metric};
use crate::request_names;
use plimsoll_model::units;
use plimsoll_model::{Histogram, Interval, Ledger, PlanRecord, TimeMeasure};
use std::collections::VecDeque;

/// Conditions that are checked while a run is in progress. Shares refer to the requests that have
/// ended so far. For a condition such as `p99>200ms`, requests in flight for longer than the bound
/// also count, because a hanging server ends no request.
///
/// No condition is checked in the first second of the measured window. A share or latency over
/// fewer than 20 requests is not checked in the first five seconds. A single early request, slow or
/// failed, therefore decides nothing. Throughput is measured from the start of the measured window.
#[derive(Debug, Clone)]
pub struct ConditionWatch {
    conditions: Conditions,
    /// For each condition, the index of its totals in `totals`; `None` if the plan has no request
    /// with the name in the condition.
    totals_index: Vec<Option<usize>>,
    measured_from_ns: u64,
    /// The totals of all requests come first, then the totals of each named request.
    totals: Vec<ConditionTotals>,
    bound_ns_max: u64,
}

/// The totals of all requests or of one route since the start of the run.
#[derive(Debug, Clone)]
struct ConditionTotals {
    /// The route of these totals; `None` means all routes.
    route: Option<u16>,
    ledger: Ledger,
    /// A histogram of each time that any condition compares.
    times: Vec<(TimeMeasure, Histogram)>,
    succeeded_in_window: u64,
    /// For each recent tick, the end of the tick in ns of schedule time, and the number of requests
    /// scheduled up to that end. The list reaches back as far as the longest latency bound.
    scheduled: VecDeque<(u64, u64)>,
}

impl ConditionTotals {
    fn new(route: Option<u16>, measures: &[TimeMeasure]) -> ConditionTotals {
        ConditionTotals {
            route,
            ledger: Ledger::default(),
            times: measures.iter().map(|measure| (*measure, Histogram::new())).collect(),
            succeeded_in_window: 0,
            scheduled: VecDeque::new(),
        }
    }

    fn push(&mut self, end_ns: u64, reach_ns: u64, tick: &Interval) {
        let figures = match self.route {
            None => Some(tick.all_routes()),
            Some(number) => tick.routes.get(number),
        };
        if let Some(figures) = figures {
            self.ledger.merge(&figures.ledger);
            for (measure, times) in &mut self.times {
                times.merge_sparse(measure.histogram(figures, &tick.load));
            }
            self.succeeded_in_window += figures.succeeded_in_window;
        }
        self.scheduled.push_back((end_ns, self.ledger.scheduled));
        while self.scheduled.get(1).is_some_and(|next| next.0.saturating_add(reach_ns) <= end_ns) {
            self.scheduled.pop_front();
        }
    }

    fn ended_requests(&self) -> u64 {
        self.ledger.finished_requests() + self.ledger.unsent
    }

    /// Returns a lower limit for the number of requests in flight for longer than `bound_ns`. The
    /// lower limit is the number of requests scheduled at least `bound_ns` ago, minus the number of
    /// all ended requests.
    fn overdue_requests_min(&self, end_ns: u64, bound_ns: u64) -> u64 {
        let old_enough = self.scheduled.iter().rev().find(|(at_ns, _)| at_ns.saturating_add(bound_ns) <= end_ns);
        old_enough.map_or(0, |(_, scheduled)| scheduled.saturating_sub(self.ended_requests()))
    }
}

impl ConditionWatch {
    /// The minimum number of requests for which a share or latency is checked. After
    /// `SMALL_SAMPLE_WAIT_NS` of the measured window, the minimum no longer applies.
    const REQUESTS_MIN: u64 = 20;
    /// After this time of the measured window, in ns, shares and latencies over fewer than
    /// `REQUESTS_MIN` requests are checked, too.
    const SMALL_SAMPLE_WAIT_NS: u64 = 5 * units::SECOND;

    /// Creates a watch for a run of this plan.
    pub fn new(conditions: Conditions, plan: &PlanRecord) -> ConditionWatch {
        let reach_ns = conditions.0.iter().filter_map(Condition::bound_ns).max().unwrap_or(0);
        let mut measures = Vec::new();
        for condition in &conditions.0 {
            if let Metric::Latency(measure, _) = condition.metric
                && !measures.contains(&measure)
            {
                measures.push(measure);
            }
        }
        let mut totals = vec![ConditionTotals::new(None, &measures)];
        let mut about = |condition: &Condition| {
            let Some(name) = &condition.route else { return Some(0) };
            let number = request_names::request_index(&plan.traffic, name)? as u16;
            let known = totals.iter().position(|figures| figures.route == Some(number));
            Some(known.unwrap_or_else(|| {
                totals.push(ConditionTotals::new(Some(number), &measures));
                totals.len() - 1
            }))
        };
        let totals_index = conditions.0.iter().map(&mut about).collect();
        ConditionWatch {
            conditions,
            totals_index,
            measured_from_ns: plan.load.warmup_ns,
            totals,
            bound_ns_max: reach_ns,
        }
    }

    /// Adds the next tick, which ends at `end_ns` of schedule time. Returns the first condition
    /// that is true of the run so far; `None` if no condition is true.
    pub fn push(&mut self, end_ns: u64, tick: &Interval) -> Option<CrossedCondition> {
        let reach_ns = self.bound_ns_max;
        self.totals.iter_mut().for_each(|figures| figures.push(end_ns, reach_ns, tick));
        let window_ns = end_ns.saturating_sub(self.measured_from_ns);
        if window_ns < units::SECOND {
            return None;
        }
        self.conditions.0.iter().zip(&self.totals_index).find_map(|(condition, about)| {
            let figures = &self.totals[(*about)?];
            let ended = figures.ended_requests();
            let overdue = condition.bound_ns().map_or(0, |bound_ns| figures.overdue_requests_min(end_ns, bound_ns));
            let counts = matches!(
                condition.metric,
                Metric::Throughput | Metric::Unsent(CountOrShare::Count) | Metric::Timeouts(CountOrShare::Count)
            );
            if !counts && ended + overdue < Self::REQUESTS_MIN && window_ns < Self::SMALL_SAMPLE_WAIT_NS {
                return None;
            }
            let seen = FigureInputs {
                ledger: &figures.ledger,
                requests: ended,
                overdue,
                times: match condition.metric {
                    Metric::Latency(measure, _) => {
                        figures.times.iter().find(|(of, _)| *of == measure).map(|(_, times)| times)
                    }
                    _ => None,
                },
                succeeded_in_window: figures.succeeded_in_window,
                window_ns,
                cpu_ns: None,
            };
            // Failed requests count as slower than any bound. If all ended requests failed, the
            // latency is therefore infinite and not missing.
            let failed = || condition.bound_ns().filter(|_| ended > 0).map(|_| f64::INFINITY);
            let figure = seen.metric_value(condition.metric).or_else(failed)?;
            condition
                .op
                .holds(figure, condition.value)
                .then(|| CrossedCondition { condition: condition.clone(), figure: Some(figure) })
        })
    }
}
