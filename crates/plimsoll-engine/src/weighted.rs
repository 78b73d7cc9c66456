//! Routes that are drawn by weight: a function of the seed, of who asks, and of how often it has asked.

use crate::encoded_route::FilledRoutes;
use crate::fill::FormTurn;
use crate::redirect::NotFollowed;
use crate::users::UserNumbers;
use plimsoll_model::rng::{Rng, mix};
use plimsoll_model::{Origin, Plan, Route, RouteNumber};

/// Sets what is drawn of routes apart from what else follows from the same seed.
const SEED_OF_ROUTES: u64 = 0x0052_4f55_5445_5321;

/// The requests of a mix.
#[derive(Debug, Clone)]
pub struct Weighted {
    pub(crate) filled: FilledRoutes,
    /// The sum of the weights up to and with each route.
    up_to: Vec<u64>,
    seed: u64,
    pub(crate) users: UserNumbers,
    origin: Origin,
}

impl Weighted {
    pub(crate) fn new(plan: &Plan, filled: FilledRoutes, users: UserNumbers) -> Weighted {
        let sum = |sum: &mut u64, route: &Route| {
            *sum += u64::from(route.weight);
            Some(*sum)
        };
        let up_to = plan.traffic.routes.iter().scan(0, sum).collect();
        // What is asked and when are drawn apart.
        let origin = plan.traffic.origin.clone();
        Weighted { filled, up_to, seed: mix(plan.load.seed ^ SEED_OF_ROUTES), users, origin }
    }

    /// What a user asks who begins; `None`: every row that is used once is used.
    #[inline]
    pub(crate) fn draw(&mut self, user: u64) -> Option<RouteNumber> {
        self.users.begin(user)?;
        let total = self.up_to.last().copied().unwrap_or(0);
        let at = Rng::stream(self.seed, self.users.number(user)).below(total);
        Some(self.up_to.partition_point(|up_to| *up_to <= at) as RouteNumber)
    }

    /// Fills in the request of an exchange that `user` begins for `route`, which has a form.
    pub(crate) fn fill(&mut self, exchange: u32, user: u64, route: RouteNumber, now_ns: u64) {
        let turn = self.turn(user, now_ns);
        self.filled.fill(exchange, route, &turn, &mut |_, _| ());
    }

    /// Has an exchange of `user` ask where the answer redirects to.
    pub(crate) fn redirect(
        &mut self,
        (exchange, user): (u32, u64),
        route: RouteNumber,
        to: (u16, &str),
        now_ns: u64,
    ) -> Result<(), NotFollowed> {
        let turn = self.turn(user, now_ns);
        self.filled.redirect(exchange, route, to, &self.origin, &turn, &mut |_, _| ())
    }

    fn turn(&self, user: u64, now_ns: u64) -> FormTurn<'static> {
        FormTurn {
            number: self.users.number(user),
            request: 0,
            unique: self.users.unique(user),
            unix_ms: now_ns.saturating_add(self.filled.unix_offset_ns) / 1_000_000,
            captured: &[],
        }
    }
}
