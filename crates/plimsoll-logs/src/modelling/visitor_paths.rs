//! Detects endpoints whose paths identify a visitor or hardly ever repeat, and collects the paths
//! of visits. A path such as `/users/7/orders` identifies one visitor, who requests the path
//! repeatedly. Paths such as `/search?q=a+long+word` hardly ever repeat. Not here: writing and
//! choosing rows of paths.

use std::collections::HashMap;

/// The fewest repeat requests from which the model may conclude that an endpoint's paths identify
/// visitors. A repeat request follows another request of the same visit to the same endpoint.
const REPEAT_REQUESTS_MIN: u64 = 8;
/// The paths of an endpoint count as hardly ever repeating if at least this share of its requests
/// has a path that occurs only once. In addition, the mean number of requests that a visit has to
/// the endpoint must be at most [`MEAN_REQUESTS_PER_VISIT_MAX`].
const UNIQUE_PATH_SHARE_MIN: f64 = 0.5;
/// The paths of an endpoint count as hardly ever repeating only if a visit has at most this mean
/// number of requests to the endpoint. Visits without a request to the endpoint are not counted.
const MEAN_REQUESTS_PER_VISIT_MAX: f64 = 1.2;

/// The requests of all visits to one endpoint: the first path of each visit, and how often visits
/// repeat a path.
#[derive(Debug, Clone, Default)]
pub struct EndpointRequests {
    /// For each visit, the path of its first request to the endpoint, in order of visits.
    pub firsts: Vec<u32>,
    /// The visit and the path of the latest request that was added.
    last: Option<(usize, u32)>,
    /// The number of requests that follow another request of the same visit to the endpoint.
    repeat_request_count: u64,
    /// The number of requests counted in `repeat_request_count` that repeat the previous path of
    /// their visit.
    repeated_path_count: u64,
}

impl EndpointRequests {
    /// Adds a request of a visit. Requests of one visit must be added consecutively.
    pub fn add(&mut self, visit: usize, target: u32) {
        match self.last.replace((visit, target)) {
            Some((before, path)) if before == visit => {
                self.repeat_request_count += 1;
                self.repeated_path_count += u64::from(path == target);
            }
            _ => self.firsts.push(target),
        }
    }

    /// Returns whether the model takes the paths of the endpoint in the order of the log, one path
    /// for each session. If false, the model draws a random path for each request.
    ///
    /// The model takes the paths in order if visits keep their path, or if paths hardly ever
    /// repeat. Visits keep their path if the share of repeated paths is nearer to 1 than to the
    /// share that chance explains. `asked` contains the paths of all requests. In a mix of single
    /// requests, each request is a session, so only paths that hardly ever repeat are taken in
    /// order.
    pub fn should_use_log_order(&self, asked: &[u32], is_mix: bool) -> bool {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        asked.iter().for_each(|target| *counts.entry(*target).or_default() += 1);
        let all = asked.len().max(1) as f64;
        let by_chance: f64 = counts.values().map(|count| (*count as f64 / all).powi(2)).sum();
        let is_kept = self.repeat_request_count >= REPEAT_REQUESTS_MIN
            && self.repeated_path_count as f64 > (1.0 + by_chance) / 2.0 * self.repeat_request_count as f64;
        let new = counts.values().filter(|count| **count == 1).count() as f64;
        let is_once = all <= MEAN_REQUESTS_PER_VISIT_MAX * self.firsts.len() as f64;
        (is_kept && !is_mix) || (is_once && new >= UNIQUE_PATH_SHARE_MIN * all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_repeated_more_than_by_chance_are_kept() {
        // The test data are 50 visits with four requests each; `path` returns the path of a request
        // from the visit number and the request number.
        let kept = |path: &dyn Fn(u32, u32) -> u32| {
            let (mut own, mut asked) = (EndpointRequests::default(), Vec::new());
            for visit in 0..50 {
                for number in 0..4 {
                    own.add(visit as usize, path(visit, number));
                    asked.push(path(visit, number));
                }
            }
            (own.should_use_log_order(&asked, false), own.firsts.len())
        };
        assert_eq!(kept(&|visit, _| visit), (true, 50));
        assert_eq!(kept(&|visit, number| visit * 4 + number), (false, 50));
        // In each visit, the last of four requests has a different path.
        assert_eq!(kept(&|visit, number| visit * 4 + number / 3), (true, 50));
        // A path that all visitors request identifies no visitor.
        assert_eq!(kept(&|visit, number| u32::from(visit == 3 && number == 2)), (false, 50));
        let of_visits = |paths: &[u32]| {
            let mut own = EndpointRequests::default();
            paths.iter().enumerate().for_each(|(visit, path)| own.add(visit, *path));
            own.should_use_log_order(paths, true)
        };
        assert!(
            of_visits(&[1, 2, 3, 4, 5, 5])
                && !of_visits(&[1, 1, 2, 2, 3, 4])
                && !EndpointRequests::default().should_use_log_order(&[], false)
        );
    }
}
