//! Paths of an endpoint that are a visitor's own: `/users/7/orders` is asked again and again by user 7, and by nobody else. Whether an
//! endpoint is such, and which paths its visits have. Not here: how rows are written and chosen.

use std::collections::HashMap;

/// Fewer repetitions tell nothing.
const PAIRS_MIN: u64 = 8;

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

    /// Whether a visit keeps to its path, more than half of the way from what chance does; `asked`: all that is asked of the endpoint.
    pub fn is_kept(&self, asked: &[u32]) -> bool {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        asked.iter().for_each(|target| *counts.entry(*target).or_default() += 1);
        let all = asked.len().max(1) as f64;
        let by_chance: f64 = counts.values().map(|count| (*count as f64 / all).powi(2)).sum();
        self.pairs >= PAIRS_MIN && self.same as f64 > (1.0 + by_chance) / 2.0 * self.pairs as f64
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
            (own.is_kept(&asked), own.firsts.len())
        };
        assert_eq!(kept(&|visit, _| visit), (true, 50));
        assert_eq!(kept(&|visit, number| visit * 4 + number), (false, 50));
        // One of four changes it.
        assert_eq!(kept(&|visit, number| visit * 4 + number / 3), (true, 50));
        // What everybody asks is nobody's own.
        assert_eq!(kept(&|visit, number| u32::from(visit == 3 && number == 2)), (false, 50));
        assert!(!OwnPaths::default().is_kept(&[]));
    }
}
