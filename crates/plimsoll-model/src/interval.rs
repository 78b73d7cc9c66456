//! The figures (counts, times and gauges) of one interval of a run, for the load and for each
//! route. Figures add up over time, workers and machines. The table of measures
//! ([`crate::measures`]) lists the figures.

use crate::histogram::Histogram;
use crate::measures::{LoadFigures, RouteFigures};
use std::sync::{LazyLock, OnceLock};

/// Number of a route among the routes of a plan, from 0.
pub type RouteNumber = u16;

/// The figures of one interval of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Figures of the load that belong to no route.
    pub load: LoadFigures,
    /// Figures of each route.
    pub routes: FiguresByRoute,
}

impl Interval {
    /// Returns the figures of all routes together.
    pub fn all_routes(&self) -> &RouteFigures {
        self.routes.all_routes()
    }

    /// Adds the figures that other workers or machines measured in the same interval. Gauges
    /// (values at the end of an interval) add up, too.
    pub fn merge_parallel(&mut self, other: &Interval) {
        self.load.merge_parallel(&other.load);
        other.routes.iter().for_each(|(number, theirs)| self.routes.figures_mut(number).merge_parallel(theirs));
    }

    /// Adds the figures of the next interval. Gauges (values at the end of an interval) take the
    /// later value.
    pub fn merge_after(&mut self, later: &Interval) {
        self.load.merge_after(&later.load);
        self.routes.merge_after(&later.routes);
    }
}

/// The figures of the routes with activity, ascending by route.
#[derive(Debug, Clone, Default)]
pub struct FiguresByRoute {
    by_number: Vec<(RouteNumber, RouteFigures)>,
    /// The sum of the figures of several routes, computed at first use.
    whole: OnceLock<Box<RouteFigures>>,
}

impl PartialEq for FiguresByRoute {
    fn eq(&self, other: &FiguresByRoute) -> bool {
        self.by_number == other.by_number
    }
}

impl FiguresByRoute {
    /// Returns the figures of each route, ascending by route number.
    pub fn iter(&self) -> impl Iterator<Item = (RouteNumber, &RouteFigures)> {
        self.by_number.iter().map(|(number, figures)| (*number, figures))
    }

    /// Returns the figures of one route; `None` if the route had no activity.
    pub fn get(&self, number: RouteNumber) -> Option<&RouteFigures> {
        let at = self.by_number.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.by_number[at].1)
    }

    /// Returns the mutable figures of one route; inserts empty figures if the route has no figures
    /// yet.
    pub fn figures_mut(&mut self, number: RouteNumber) -> &mut RouteFigures {
        self.whole.take();
        let at = self.by_number.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|at| {
            self.by_number.insert(at, (number, RouteFigures::default()));
            at
        });
        &mut self.by_number[at].1
    }

    /// Inserts the figures of a route, or adds them to the figures that the route already has.
    fn merge_route_figures(&mut self, number: RouteNumber, figures: RouteFigures) {
        match self.by_number.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => self.by_number[at].1.merge_parallel(&figures),
            Err(at) => self.by_number.insert(at, (number, figures)),
        }
        self.whole.take();
    }

    /// Adds the figures of the next interval. If the next interval has no figures of a route, the
    /// route has no requests in flight, so its gauges become 0.
    fn merge_after(&mut self, later: &FiguresByRoute) {
        self.whole.take();
        let nothing = RouteFigures::default();
        for (number, mine) in &mut self.by_number {
            mine.merge_after(later.get(*number).unwrap_or(&nothing));
        }
        for (number, theirs) in later.iter() {
            if self.get(number).is_none() {
                self.merge_route_figures(number, theirs.clone());
            }
        }
    }

    /// Returns the figures of all routes together, summed at first use.
    pub fn all_routes(&self) -> &RouteFigures {
        static EMPTY_FIGURES: LazyLock<RouteFigures> = LazyLock::new(RouteFigures::default);
        match self.by_number.as_slice() {
            [] => &EMPTY_FIGURES,
            [(_, only)] => only,
            several => self.whole.get_or_init(|| {
                // The sum uses dense histograms, because merging sparse lists of buckets for every
                // route would copy all buckets each time.
                let mut sum = RouteFigures::<Histogram>::default();
                several.iter().for_each(|(_, figures)| sum.add_route_figures(figures));
                Box::new(sum.take(Histogram::drain))
            }),
        }
    }
}

/// Converts the figures of one route to the figures of a load with only this route.
impl From<RouteFigures> for FiguresByRoute {
    fn from(figures: RouteFigures) -> FiguresByRoute {
        FiguresByRoute { by_number: vec![(0, figures)], whole: OnceLock::new() }
    }
}

/// Collects figures by route number, in any order. Figures of one route add up.
impl FromIterator<(RouteNumber, RouteFigures)> for FiguresByRoute {
    fn from_iter<I: IntoIterator<Item = (RouteNumber, RouteFigures)>>(figures: I) -> FiguresByRoute {
        let mut routes = FiguresByRoute::default();
        figures.into_iter().for_each(|(number, figures)| routes.merge_route_figures(number, figures));
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_routes_follows_later_changes() {
        let figures = |succeeded_in_window| RouteFigures { succeeded_in_window, ..RouteFigures::default() };
        let mut interval = Interval::default();
        let whole = |interval: &Interval| interval.all_routes().succeeded_in_window;
        assert_eq!(whole(&interval), 0);
        for (number, expect) in [(0, 1), (3, 2), (0, 3), (7, 4)] {
            interval.routes.figures_mut(number).succeeded_in_window += 1;
            assert_eq!(whole(&interval), expect);
        }
        let other =
            Interval { routes: [(3, figures(10)), (9, figures(10))].into_iter().collect(), ..Interval::default() };
        assert_eq!(whole(&other), 20);
        let (mut beside, mut after) = (interval.clone(), interval.clone());
        beside.merge_parallel(&other);
        after.merge_after(&other);
        assert_eq!((whole(&beside), whole(&after), whole(&interval)), (24, 24, 4));
        // The cached sum of all routes does not affect equality.
        let again: FiguresByRoute = interval.routes.iter().map(|(number, figures)| (number, figures.clone())).collect();
        assert_eq!(again, interval.routes);
    }
}
