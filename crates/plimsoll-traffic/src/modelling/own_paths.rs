//! Endpoints with one path for each visitor, such as `/users/7/orders`, which only user 7 requests,
//! repeatedly; and endpoints whose paths hardly ever repeat, such as `/search?q=a+long+word`.
//! Detects both, and collects the paths of visits. Not here: how rows are written and chosen.

use std::collections::HashMap;

/// Fewest repetitions within visits for a decision.
const PAIRS_MIN: u64 = 8;
/// Paths count as new if at least this share of requests has a path that occurs only once...
const NEW_MIN: f64 = 0.5;
/// ... and a visit requests the endpoint about once.
const PER_VISIT_MAX: f64 = 1.2;

/// The requests of visits to one endpoint.
#[derive(Debug, Clone, Default)]
pub struct OwnPaths {
    /// The first path of each visit, in order of visits.
    pub firsts: Vec<u32>,
    /// Visit and path of the last request.
    last: Option<(usize, u32)>,
    /// Requests that follow another one of the same visit, and those with the same path.
    pairs: u64,
    same: u64,
}

impl OwnPaths {
    /// Adds a request of a visit; requests of one visit are consecutive.
    pub fn add(&mut self, visit: usize, target: u32) {
        match self.last.replace((visit, target)) {
            Some((before, path)) if before == visit => {
                self.pairs += 1;
                self.same += u64::from(path == target);
            }
            _ => self.firsts.push(target),
        }
    }

    /// Whether sessions take paths in order, one each: visits keep their path for more than half of
    /// the excess over chance, or paths are new. `asked`: all paths requested; in a mix each
    /// request is a session.
    pub fn are_in_order(&self, asked: &[u32], is_mix: bool) -> bool {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        asked.iter().for_each(|target| *counts.entry(*target).or_default() += 1);
        let all = asked.len().max(1) as f64;
        let by_chance: f64 = counts.values().map(|count| (*count as f64 / all).powi(2)).sum();
        let is_kept = self.pairs >= PAIRS_MIN && self.same as f64 > (1.0 + by_chance) / 2.0 * self.pairs as f64;
        let new = counts.values().filter(|count| **count == 1).count() as f64;
        let is_once = all <= PER_VISIT_MAX * self.firsts.len() as f64;
        (is_kept && !is_mix) || (is_once && new >= NEW_MIN * all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_where_visits_repeat_it_more_than_chance_does() {
        // Visits of four requests each; the path depends on visit and request number.
        let kept = |path: &dyn Fn(u32, u32) -> u32| {
            let (mut own, mut asked) = (OwnPaths::default(), Vec::new());
            for visit in 0..50 {
                for number in 0..4 {
                    own.add(visit as usize, path(visit, number));
                    asked.push(path(visit, number));
                }
            }
            (own.are_in_order(&asked, false), own.firsts.len())
        };
        assert_eq!(kept(&|visit, _| visit), (true, 50));
        assert_eq!(kept(&|visit, number| visit * 4 + number), (false, 50));
        // One request of four changes the path.
        assert_eq!(kept(&|visit, number| visit * 4 + number / 3), (true, 50));
        // A path that all visitors request belongs to none.
        assert_eq!(kept(&|visit, number| u32::from(visit == 3 && number == 2)), (false, 50));
        let of_visits = |paths: &[u32]| {
            let mut own = OwnPaths::default();
            paths.iter().enumerate().for_each(|(visit, path)| own.add(visit, *path));
            own.are_in_order(paths, true)
        };
        assert!(
            of_visits(&[1, 2, 3, 4, 5, 5])
                && !of_visits(&[1, 1, 2, 2, 3, 4])
                && !OwnPaths::default().are_in_order(&[], false)
        );
    }
}
