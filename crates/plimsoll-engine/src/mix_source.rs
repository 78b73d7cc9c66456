//! A mix: routes that are drawn at random by weight. A draw depends only on the seed, the user's
//! number, and the number of the user's request.

use crate::encoded_route::FilledRoutes;
use crate::template_fill::FillContext;
use crate::users::WorkerUsers;
use plimsoll_model::rng::{Rng, mix_bits};
use plimsoll_model::{Origin, Plan, Route, RouteNumber};
use plimsoll_wire::redirect::RedirectRefusal;

/// A constant that is mixed into the seed, so that drawn routes are independent of other random
/// numbers from the same seed.
const ROUTE_CHOICE_SEED: u64 = 0x0052_4f55_5445_5321;

/// The request source of a mix, which is a set of routes with weights.
#[derive(Debug, Clone)]
pub struct MixSource {
    pub(crate) filled: FilledRoutes,
    choice: WeightTable,
    seed: u64,
    pub(crate) users: WorkerUsers,
    origin: Origin,
}

/// A table that maps a random number to a route by weight.
///
/// In a binary search the processor would mispredict half of the branches. To avoid a binary
/// search, the table divides the total weight into about one interval per route. The table stores
/// the route at the start of each interval. A linear search from the route at the start of an
/// interval usually ends at once.
#[derive(Debug, Clone)]
struct WeightTable {
    /// For each route, the sum of the weights up to and including this route.
    cumulative_weights: Vec<u64>,
    /// For each interval of the total weight, the route at the start of the interval, where the
    /// linear search begins. Each interval covers `1 << stretch_bits` units of the total weight.
    begins: Vec<RouteNumber>,
    stretch_bits: u32,
}

impl WeightTable {
    fn new(routes: &[Route]) -> WeightTable {
        let sum = |sum: &mut u64, route: &Route| {
            *sum += u64::from(route.weight);
            Some(*sum)
        };
        let up_to: Vec<u64> = routes.iter().scan(0, sum).collect();
        let total = up_to.last().copied().unwrap_or(0);
        let stretch_bits = (total / (routes.len() as u64).max(1)).checked_ilog2().unwrap_or(0);
        let stretches = (total >> stretch_bits) + 1;
        let route_at = |at: u64| up_to.partition_point(|up_to| *up_to <= at) as RouteNumber;
        let begins = (0..stretches).map(|stretch| route_at(stretch << stretch_bits)).collect();
        WeightTable { cumulative_weights: up_to, begins, stretch_bits }
    }

    fn total(&self) -> u64 {
        self.cumulative_weights.last().copied().unwrap_or(0)
    }

    /// Maps the random number `at`, which must be below the total weight, to a route. Each route
    /// has as many such numbers as its weight.
    #[inline]
    fn route_at(&self, at: u64) -> RouteNumber {
        let mut route = self.begins[(at >> self.stretch_bits) as usize];
        while self.cumulative_weights[usize::from(route)] <= at {
            route += 1;
        }
        route
    }
}

impl MixSource {
    pub(crate) fn new(plan: &Plan, filled: FilledRoutes, users: WorkerUsers) -> MixSource {
        let choice = WeightTable::new(&plan.traffic.routes);
        let origin = plan.traffic.origin.clone();
        // The seed is changed, so that the random numbers for routes are independent of the random
        // numbers for arrivals.
        MixSource { filled, choice, seed: mix_bits(plan.load.seed ^ ROUTE_CHOICE_SEED), users, origin }
    }

    /// Draws the route of a user's next request. Returns `None` if every row of a data table with
    /// unique rows is used.
    #[inline]
    pub(crate) fn draw_route(&mut self, user: u64) -> Option<RouteNumber> {
        self.users.start_user(user)?;
        let at = Rng::for_stream(self.seed, self.users.start_number(user)).uniform_below(self.choice.total());
        Some(self.choice.route_at(at))
    }

    /// Fills in the request that `exchange` sends for `user` and `route`. The route must have a
    /// template.
    pub(crate) fn fill_request(&mut self, exchange: u32, user: u64, route: RouteNumber, now_ns: u64) {
        let turn = self.fill_context(user, now_ns);
        self.filled.fill(exchange, route, &turn, &mut |_, _| ());
    }

    /// Prepares the next request of an exchange of `user` that follows a redirect.
    pub(crate) fn prepare_redirect(
        &mut self,
        (exchange, user): (u32, u64),
        route: RouteNumber,
        to: (u16, &str),
        now_ns: u64,
    ) -> Result<(), RedirectRefusal> {
        let turn = self.fill_context(user, now_ns);
        self.filled.prepare_redirect(exchange, route, to, &self.origin, &turn, &mut |_, _| ())
    }

    fn fill_context(&self, user: u64, now_ns: u64) -> FillContext<'static> {
        FillContext {
            number: self.users.start_number(user),
            request_number: 0,
            unique: self.users.unique_row(user),
            unix_ms: now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000,
            captured: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape};

    /// Checks that, for any weights, the positions of a route are contiguous, and their number
    /// equals the route's weight. A position is a number below the total weight of all routes.
    #[test]
    fn each_route_gets_its_weighted_share() {
        let first = Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) })
            .traffic
            .routes[0]
            .clone();
        let alike = |count: u32| (0..count).map(|n| 1 + n % 7).collect();
        for weights in
            [vec![1], vec![3, 0, 2], vec![0, 0, 5], vec![1, 1, 1000, 1], vec![1000, 1, 1], alike(100), alike(333)]
        {
            let routes: Vec<Route> = weights.iter().map(|weight| Route { weight: *weight, ..first.clone() }).collect();
            let choice = WeightTable::new(&routes);
            let drawn: Vec<RouteNumber> = (0..choice.total()).map(|at| choice.route_at(at)).collect();
            let expect: Vec<RouteNumber> =
                (0..).zip(&weights).flat_map(|(route, weight)| vec![route; *weight as usize]).collect();
            assert_eq!(drawn, expect, "{weights:?}");
            assert!(choice.begins.len() <= 2 * weights.len() + 1, "{weights:?}: {}", choice.begins.len());
        }
    }
}
