//! What is asked next: the requests of a load as bytes, and the rule by which a user goes from one to the other.
//!
//! A user asks one thing after the other, from its first request to [`Next::End`]; then an arrival of an open load is done,
//! and a user of a closed load begins anew. Every source is an arm of [`Source`], so that one URL costs a branch. Not here:
//! when a user begins, and over what its requests travel.

use crate::encode::encode_request;
use plimsoll_model::rng::{Rng, mix};
use plimsoll_model::traffic::{Choice, StatusSet};
use plimsoll_model::{Outcome, Plan, RouteNumber, Stripe};
use plimsoll_wire::{EncodedRequest, h1};

/// Sets what is drawn of routes apart from what else follows from the same seed.
const SEED_OF_ROUTES: u64 = 0x0052_4f55_5445_5321;

/// A request as it goes on the wire, and what its answer is to be.
#[derive(Debug, Clone)]
pub struct EncodedRoute {
    /// Encoded once.
    pub request: EncodedRequest,
    /// Statuses that are success.
    pub ok_status: StatusSet,
    /// From the moment it is started to the last byte.
    pub timeout_ns: u64,
}

/// How a user's last request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// The route that was asked.
    pub route: RouteNumber,
    /// The answer's status; 0 without an answer.
    pub status: u16,
    /// What the ledger says of it.
    pub outcome: Outcome,
}

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask this, at once.
    Send(RouteNumber),
    /// Wait for so many ns, then ask this.
    #[cfg_attr(not(test), expect(dead_code, reason = "who asks one thing has nothing to wait for; sessions do"))]
    Wait(u64, RouteNumber),
    /// Nothing more.
    End,
}

/// Where requests come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// One request, and no second.
    Single([EncodedRoute; 1]),
    /// Each user asks one of several, drawn by weight, and no second.
    Weighted(Weighted),
    /// In tests: what each user does, step by step.
    #[cfg(test)]
    Script { routes: Vec<EncodedRoute>, steps: Vec<Next>, at: std::collections::HashMap<u64, usize> },
}

/// Routes that are drawn: a function of the seed, of who asks, and of how often it has asked.
#[derive(Debug, Clone)]
pub struct Weighted {
    routes: Vec<EncodedRoute>,
    /// The sum of the weights up to and with each route.
    up_to: Vec<u64>,
    seed: u64,
    stripe: Stripe,
    /// How often each user of a closed load has begun; empty for an open load, of which each arrival is a user of its own.
    begun: Vec<u64>,
}

impl Weighted {
    #[inline]
    fn draw(&mut self, user: u64) -> RouteNumber {
        let number = match self.begun.get_mut(user as usize) {
            Some(begun) => {
                *begun += 1;
                // Users are numbered within the worker; what they draw must not depend on how the load is divided.
                mix(self.stripe.index + self.stripe.of * user) ^ *begun
            }
            None => user,
        };
        let total = self.up_to.last().copied().unwrap_or(0);
        let at = Rng::stream(self.seed, number).below(total);
        self.up_to.partition_point(|up_to| *up_to <= at) as RouteNumber
    }
}

impl Source {
    /// The source of `plan`, with all its requests as bytes.
    pub fn compile(plan: &Plan) -> Result<Source, h1::RequestError> {
        let compiled = |route: &plimsoll_model::Route| {
            Ok(EncodedRoute {
                request: encode_request(plan, &route.request)?,
                ok_status: route.ok_status.clone(),
                timeout_ns: route.timeout_ns,
            })
        };
        if let [only] = plan.traffic.routes.as_slice() {
            return Ok(Source::Single([compiled(only)?]));
        }
        match plan.traffic.choice {
            Choice::Weighted => {
                let sum = |sum: &mut u64, route: &plimsoll_model::Route| {
                    *sum += u64::from(route.weight);
                    Some(*sum)
                };
                Ok(Source::Weighted(Weighted {
                    routes: plan.traffic.routes.iter().map(compiled).collect::<Result<_, _>>()?,
                    up_to: plan.traffic.routes.iter().scan(0, sum).collect(),
                    // What is asked and when are drawn apart.
                    seed: mix(plan.load.seed ^ SEED_OF_ROUTES),
                    stripe: Stripe::ALL,
                    begun: Vec::new(),
                }))
            }
        }
    }

    /// The same for one worker: its part of the load, and its users, if they are always the same ones.
    pub fn for_worker(&self, stripe: Stripe, users: Option<u64>) -> Source {
        let mut source = self.clone();
        if let Source::Weighted(weighted) = &mut source {
            weighted.stripe = stripe;
            weighted.begun = vec![0; users.unwrap_or(0) as usize];
        }
        source
    }

    /// Everything that can be asked.
    #[inline]
    pub fn routes(&self) -> &[EncodedRoute] {
        match self {
            Source::Single(routes) => routes,
            Source::Weighted(weighted) => &weighted.routes,
            #[cfg(test)]
            Source::Script { routes, .. } => routes,
        }
    }

    /// The route with this number.
    #[inline]
    pub fn route(&self, number: RouteNumber) -> &EncodedRoute {
        &self.routes()[usize::from(number)]
    }

    /// What `user` does after its last request; `None`: it begins.
    #[inline]
    pub fn next(&mut self, user: u64, last: Option<&Last>) -> Next {
        match self {
            Source::Single(_) if last.is_none() => Next::Send(0),
            Source::Weighted(weighted) if last.is_none() => Next::Send(weighted.draw(user)),
            Source::Single(_) | Source::Weighted(_) => Next::End,
            #[cfg(test)]
            Source::Script { steps, at, .. } => {
                let at = at.entry(user).or_default();
                *at = if last.is_none() { 0 } else { *at + 1 };
                steps.get(*at).copied().unwrap_or(Next::End)
            }
        }
    }

    /// The longest timeout of any route, in ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes().iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Curve, LoadShape, Request};

    fn plan(weights: &[u32]) -> Plan {
        let mut plan = Plan::get("h", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) });
        let route = |(number, weight): (usize, &u32)| plimsoll_model::Route {
            weight: *weight,
            ..plimsoll_model::Route::new(Request { target: format!("/{number}"), ..Request::get() })
        };
        plan.traffic.routes = weights.iter().enumerate().map(route).collect();
        plan
    }

    fn drawn(source: &mut Source, user: u64) -> usize {
        match source.next(user, None) {
            Next::Send(route) => {
                let last = Last { route, status: 200, outcome: Outcome::Success };
                assert_eq!(source.next(user, Some(&last)), Next::End);
                usize::from(route)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn routes_are_drawn_by_weight() {
        let weights = [80, 0, 15, 5];
        let whole = Source::compile(&plan(&weights)).expect("compiles");
        assert!(whole.routes()[2].request.h1().starts_with(b"GET /2 "));
        // A hundred thousand arrivals, or one user who asks so often.
        for users in [None, Some(1)] {
            let mut source = whole.for_worker(Stripe::ALL, users);
            let mut counts = [0u32; 4];
            (0..100_000).for_each(|n| counts[drawn(&mut source, if users.is_none() { n } else { 0 })] += 1);
            for (count, weight) in counts.into_iter().zip(weights) {
                let (expect, count) = (f64::from(weight) * 1e3, f64::from(count));
                assert!((count - expect).abs() <= 4.0 * expect.sqrt(), "{users:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn what_is_drawn_depends_on_the_seed_and_not_on_the_division() {
        let mut plan = plan(&[1, 1, 1]);
        let whole = Source::compile(&plan).expect("compiles");
        let arrivals = |source: &Source| -> Vec<usize> { (0..50).map(|n| drawn(&mut source.clone(), n)).collect() };
        let users = |of: u64| -> Vec<Vec<usize>> {
            (0..6)
                .map(|user| {
                    let stripe = Stripe { index: user % of, of };
                    let mut source = whole.for_worker(stripe, Some(6));
                    (0..20).map(|_| drawn(&mut source, user / of)).collect()
                })
                .collect()
        };
        assert_eq!(users(1), users(2));
        assert_eq!(users(1), users(3));
        assert_ne!(users(1)[0], users(1)[1]);
        assert_eq!(arrivals(&whole), arrivals(&whole.for_worker(Stripe { index: 1, of: 2 }, None)));
        plan.load.seed += 1;
        assert_ne!(arrivals(&whole), arrivals(&Source::compile(&plan).expect("compiles")));
    }
}
