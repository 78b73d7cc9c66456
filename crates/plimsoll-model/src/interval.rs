//! What happened in a stretch of a run: the figures of the load and of each route, which add up
//! over time, workers and machines. Which figures there are, says the table of measures
//! ([`crate::measures`]).

use crate::histogram::Histogram;
use crate::measures::{LoadFigures, RouteFigures};
use std::sync::{LazyLock, OnceLock};

/// Number of a route in its traffic, from 0.
pub type RouteNumber = u16;

/// One stretch of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// What is counted for the load.
    pub load: LoadFigures,
    /// What is counted for each route.
    pub routes: Routes,
}

impl Interval {
    /// The figures of all routes together.
    pub fn whole(&self) -> &RouteFigures {
        self.routes.whole()
    }

    /// Adds the same interval as other workers or machines saw it: gauges add up too.
    pub fn merge_beside(&mut self, other: &Interval) {
        self.load.merge_beside(&other.load);
        other.routes.iter().for_each(|(number, theirs)| self.routes.of_mut(number).merge_beside(theirs));
    }

    /// Adds the interval that follows this one: gauges are those of the later.
    pub fn merge_after(&mut self, later: &Interval) {
        self.load.merge_after(&later.load);
        self.routes.merge_after(&later.routes);
    }
}

/// The figures of those routes where anything happened, ascending by route.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    by_number: Vec<(RouteNumber, RouteFigures)>,
    /// Of several, their sum, once somebody has asked for it: every reading of an interval does.
    whole: OnceLock<Box<RouteFigures>>,
}

impl PartialEq for Routes {
    fn eq(&self, other: &Routes) -> bool {
        self.by_number == other.by_number
    }
}

impl Routes {
    /// The figures of each route.
    pub fn iter(&self) -> impl Iterator<Item = (RouteNumber, &RouteFigures)> {
        self.by_number.iter().map(|(number, figures)| (*number, figures))
    }

    /// The figures of one route, if anything happened there.
    pub fn get(&self, number: RouteNumber) -> Option<&RouteFigures> {
        let at = self.by_number.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.by_number[at].1)
    }

    /// The figures of one route, to be changed.
    pub fn of_mut(&mut self, number: RouteNumber) -> &mut RouteFigures {
        self.whole.take();
        let at = self.by_number.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|at| {
            self.by_number.insert(at, (number, RouteFigures::default()));
            at
        });
        &mut self.by_number[at].1
    }

    /// Adds figures of a route that are nobody else's.
    fn put(&mut self, number: RouteNumber, figures: RouteFigures) {
        match self.by_number.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => self.by_number[at].1.merge_beside(&figures),
            Err(at) => self.by_number.insert(at, (number, figures)),
        }
        self.whole.take();
    }

    /// Adds what follows in time: of a route where nothing happened later, nothing is under way
    /// either.
    fn merge_after(&mut self, later: &Routes) {
        self.whole.take();
        let nothing = RouteFigures::default();
        for (number, mine) in &mut self.by_number {
            mine.merge_after(later.get(*number).unwrap_or(&nothing));
        }
        for (number, theirs) in later.iter() {
            if self.get(number).is_none() {
                self.put(number, theirs.clone());
            }
        }
    }

    /// All routes together; of several they are summed once.
    pub fn whole(&self) -> &RouteFigures {
        static NOTHING: LazyLock<RouteFigures> = LazyLock::new(RouteFigures::default);
        match self.by_number.as_slice() {
            [] => &NOTHING,
            [(_, only)] => only,
            several => self.whole.get_or_init(|| {
                // One place for each bucket: adding lists of buckets to each other would copy what
                // is there for every route.
                let mut sum = RouteFigures::<Histogram>::default();
                several.iter().for_each(|(_, figures)| sum.sum_beside(figures));
                Box::new(sum.take(Histogram::drain))
            }),
        }
    }
}

/// The figures of a load with one route.
impl From<RouteFigures> for Routes {
    fn from(figures: RouteFigures) -> Routes {
        Routes { by_number: vec![(0, figures)], whole: OnceLock::new() }
    }
}

/// Figures of routes by number, in any order; those of one number add up.
impl FromIterator<(RouteNumber, RouteFigures)> for Routes {
    fn from_iter<I: IntoIterator<Item = (RouteNumber, RouteFigures)>>(figures: I) -> Routes {
        let mut routes = Routes::default();
        figures.into_iter().for_each(|(number, figures)| routes.put(number, figures));
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_routes_is_that_of_what_they_are_now() {
        let figures = |succeeded_in_window| RouteFigures { succeeded_in_window, ..RouteFigures::default() };
        let mut interval = Interval::default();
        let whole = |interval: &Interval| interval.whole().succeeded_in_window;
        assert_eq!(whole(&interval), 0);
        for (number, expect) in [(0, 1), (3, 2), (0, 3), (7, 4)] {
            interval.routes.of_mut(number).succeeded_in_window += 1;
            assert_eq!(whole(&interval), expect);
        }
        let other =
            Interval { routes: [(3, figures(10)), (9, figures(10))].into_iter().collect(), ..Interval::default() };
        assert_eq!(whole(&other), 20);
        let (mut beside, mut after) = (interval.clone(), interval.clone());
        beside.merge_beside(&other);
        after.merge_after(&other);
        assert_eq!((whole(&beside), whole(&after), whole(&interval)), (24, 24, 4));
        // What was asked before is no difference.
        let again: Routes = interval.routes.iter().map(|(number, figures)| (number, figures.clone())).collect();
        assert_eq!(again, interval.routes);
    }
}
