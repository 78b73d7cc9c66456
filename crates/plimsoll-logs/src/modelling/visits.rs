//! Groups the requests of a log into visits: requests of one visitor without a gap of half an hour.
//! A very long visit does not come from one person, but from a crawler, a health check, or many
//! users behind a proxy. Each request of a very long visit becomes a visit of its own.

use crate::replay::{LoggedRequest, session_ranges};
use std::ops::Range;

/// The largest number of requests in a visit. A visit with more requests is split into visits of
/// one request.
pub const VISIT_REQUESTS_MAX: usize = 60;

/// All requests of a log, grouped by visit.
#[derive(Debug, Clone)]
pub struct Visits {
    /// The requests, ordered by visitor and then by time.
    pub requests: Vec<LoggedRequest>,
    /// Visits as ranges of `requests`, ordered by the start of their first requests.
    pub visits: Vec<Range<usize>>,
    /// The number of visits that were split, and the number of requests in these visits.
    pub split_visits: (u64, u64),
    /// Whether each request is part of a split visit. Empty if no visit was split.
    is_split: Vec<bool>,
}

impl Visits {
    /// Groups requests, which are in any order, into visits.
    pub fn from_requests(mut requests: Vec<LoggedRequest>) -> Visits {
        requests.sort_by_key(|request| (request.visitor, request.start_ns));
        let (mut visits, mut long, mut taken_apart) = (Vec::new(), (0, 0), Vec::new());
        for range in session_ranges(requests.iter()) {
            if range.len() <= VISIT_REQUESTS_MAX {
                visits.push(range);
                continue;
            }
            long = (long.0 + 1, long.1 + range.len() as u64);
            taken_apart.resize(requests.len(), false);
            taken_apart[range.clone()].fill(true);
            visits.extend(range.map(|number| number..number + 1));
        }
        visits.sort_by_key(|visit| requests[visit.start].start_ns);
        Visits { requests, visits, split_visits: long, is_split: taken_apart }
    }

    /// Returns the requests of one visit.
    pub fn requests_of_visit(&self, visit: &Range<usize>) -> &[LoggedRequest] {
        &self.requests[visit.clone()]
    }

    /// Returns the start of each visit in ns since the Unix epoch, and the weight of the visit. The
    /// weight is the number of model visits that the visit represents.
    ///
    /// A model visit has the mean number of requests of all visits. Each request of a split visit
    /// is a visit of one request, with a weight of at most 1. All visits that were not split have
    /// the same weight of at least 1, which follows from their mean number of requests.
    pub fn weighted_visit_starts(&self) -> Vec<(u64, f64)> {
        let whole = (self.visits.len() as u64 - self.split_visits.1).max(1) as f64;
        let mean = self.requests.len() as f64 / self.visits.len().max(1) as f64;
        let of_whole = (self.requests.len() as u64 - self.split_visits.1) as f64 / whole / mean;
        let weight = |start: usize| match self.is_split.get(start) {
            Some(true) => 1.0 / mean,
            _ => of_whole,
        };
        self.visits.iter().map(|visit| (self.requests[visit.start].start_ns, weight(visit.start))).collect()
    }

    /// Returns the number of requests in visits with several requests.
    pub fn requests_in_longer_visits(&self) -> usize {
        self.visits.iter().map(Range::len).filter(|length| *length > 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn request_by_visitor(visitor: u32, start_s: u64) -> LoggedRequest {
        LoggedRequest { start_ns: start_s * SECOND, target: 0, visitor, duration_us: 1_000_000, route: 0, status: 200 }
    }

    #[test]
    fn a_gap_after_a_response_ends_a_visit() {
        let visits = Visits::from_requests(vec![
            request_by_visitor(1, 0),
            request_by_visitor(2, 1),
            request_by_visitor(1, 1801),
            request_by_visitor(1, 3603),
        ]);
        let lengths: Vec<usize> = visits.visits.iter().map(Range::len).collect();
        assert_eq!((lengths, visits.requests_in_longer_visits(), visits.split_visits), (vec![2, 1, 1], 2, (0, 0)));
    }

    #[test]
    fn a_very_long_visit_is_split() {
        let many = VISIT_REQUESTS_MAX as u64 + 1;
        let visits = Visits::from_requests(
            (0..many)
                .map(|at| request_by_visitor(1, at))
                .chain([request_by_visitor(2, 3), request_by_visitor(2, 4)])
                .collect(),
        );
        assert_eq!((visits.visits.len() as u64, visits.split_visits), (many + 1, (1, many)));
        assert_eq!(visits.requests_in_longer_visits(), 2);
        // The 63 requests of the log become 62 visits of the model. The weight of a split visit is
        // proportional to its number of requests.
        let starts = visits.weighted_visit_starts();
        let counted: f64 = starts.iter().map(|(_, weight)| weight).sum();
        let apart: f64 = starts.iter().map(|(_, weight)| weight).filter(|weight| **weight < 1.0).sum();
        assert!((counted - 62.0).abs() < 1e-9 && (apart / counted - 61.0 / 63.0).abs() < 1e-9, "{starts:?}");
    }
}
