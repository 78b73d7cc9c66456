//! What happened in a stretch of a run: the figures of the load and of each route, which add up over time, workers and
//! machines. Which figures there are, says the table of measures ([`crate::measures`]).

use crate::measures::{LoadFigures, RouteFigures};
use std::borrow::Cow;

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
    pub fn whole(&self) -> Cow<'_, RouteFigures> {
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
        // Where nothing happened later, nothing is under way either: the gauges are those of no figures.
        let nothing = RouteFigures::default();
        for (number, mine) in &mut self.routes.0 {
            mine.merge_after(later.routes.get(*number).unwrap_or(&nothing));
        }
        for (number, theirs) in later.routes.iter() {
            if self.routes.get(number).is_none() {
                *self.routes.of_mut(number) = theirs.clone();
            }
        }
    }
}

/// The figures of those routes where anything happened, ascending by route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Routes(Vec<(RouteNumber, RouteFigures)>);

impl Routes {
    /// The figures of each route.
    pub fn iter(&self) -> impl Iterator<Item = (RouteNumber, &RouteFigures)> {
        self.0.iter().map(|(number, figures)| (*number, figures))
    }

    /// The figures of one route, if anything happened there.
    pub fn get(&self, number: RouteNumber) -> Option<&RouteFigures> {
        let at = self.0.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.0[at].1)
    }

    /// The figures of one route, to be changed.
    pub fn of_mut(&mut self, number: RouteNumber) -> &mut RouteFigures {
        let at = self.0.binary_search_by_key(&number, |(number, _)| *number).unwrap_or_else(|at| {
            self.0.insert(at, (number, RouteFigures::default()));
            at
        });
        &mut self.0[at].1
    }

    /// All routes together; of one route, nothing is copied.
    pub fn whole(&self) -> Cow<'_, RouteFigures> {
        match self.0.as_slice() {
            [] => Cow::Owned(RouteFigures::default()),
            [(_, only)] => Cow::Borrowed(only),
            [(_, first), others @ ..] => {
                let mut sum = first.clone();
                others.iter().for_each(|(_, figures)| sum.merge_beside(figures));
                Cow::Owned(sum)
            }
        }
    }
}

/// The figures of a load with one route.
impl From<RouteFigures> for Routes {
    fn from(figures: RouteFigures) -> Routes {
        Routes(vec![(0, figures)])
    }
}

/// Figures of routes by number, in any order; those of one number add up.
impl FromIterator<(RouteNumber, RouteFigures)> for Routes {
    fn from_iter<I: IntoIterator<Item = (RouteNumber, RouteFigures)>>(figures: I) -> Routes {
        let mut routes = Routes::default();
        figures.into_iter().for_each(|(number, figures)| routes.of_mut(number).merge_beside(&figures));
        routes
    }
}
