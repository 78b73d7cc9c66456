//! Paths of an endpoint that are a visitor's own: `/users/7/orders` is asked again and again by
//! user 7, and by nobody else; or that hardly anybody asks twice, such as `/search?q=a+long+word`.
//! Whether an endpoint is such, and which paths its visits have. Not here: how rows are written and
//! chosen.

use std::collections::HashMap;

/// Fewer repetitions tell nothing.
const PAIRS_MIN: u64 = 8;
/// Paths are new where at least this share of requests has one that is asked only once...
const NEW_MIN: f64 = 0.5;
/// ... and a visit asks about once.
const PER_VISIT_MAX: f64 = 1.2;

/// What visits ask of one endpoint.
#[derive(Debug, Clone, Default)]
pub struct OwnPaths {
    /// The first path of each visit, in the order of visits.
    pub firsts: Vec<u32>,
    /// Visit and path of the last request.
    last: Option<(usize, u32)>,
    /// Requests that follow another of the same visit, and those of them with the same path.
    pairs: u64,
    same: u64,
}

impl OwnPaths {
    /// A request of a visit; those of a visit come together.
    pub fn add(&mut self, visit: usize, target: u32) {
        match self.last.replace((visit, target)) {
            Some((before, path)) if before == visit => {
                self.pairs += 1;
                self.same += u64::from(path == target);
            }
            _ => self.firsts.push(target),
        }
    }

    /// Whether sessions take their paths in order, one each: they keep to it, more than half of the
    /// way from what chance does, or paths are new. `asked`: all that is asked of the endpoint; in
    /// a mix each request is a session.
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
        // Visits of four requests each; the path by visit and number of the request.
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
        // One of four changes it.
        assert_eq!(kept(&|visit, number| visit * 4 + number / 3), (true, 50));
        // What everybody asks is nobody's own.
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
