//! What is asked next: the requests of a load as bytes, and the rule by which a user goes from one to the other.
//!
//! A user asks one thing after the other, from its first request to [`Next::End`]; then an arrival of an open load is done,
//! and a user of a closed load begins anew. Every source is an arm of [`Source`], so that one URL costs a branch. Not here:
//! when a user begins, and over what its requests travel.

use plimsoll_model::plan::StatusSet;
use plimsoll_model::{Outcome, Plan};
use std::sync::Arc;

/// Number of a route in its source.
pub type RouteNumber = u16;

/// A request as it goes on the wire, and what its answer is to be.
#[derive(Debug, Clone)]
pub struct Route {
    /// Encoded once.
    pub request: Arc<[u8]>,
    /// Its answer has no body, whatever that says.
    pub head_request: bool,
    /// The connection may be used again after it.
    pub keep_alive: bool,
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
    #[cfg_attr(not(test), expect(dead_code, reason = "one URL never waits; sources of several requests do"))]
    Wait(u64, RouteNumber),
    /// Nothing more.
    End,
}

/// Where requests come from.
#[derive(Debug)]
pub enum Source {
    /// One request, and no second.
    Single([Route; 1]),
    /// In tests: what each user does, step by step.
    #[cfg(test)]
    Script { routes: Vec<Route>, steps: Vec<Next>, at: std::collections::HashMap<u64, usize> },
}

impl Source {
    /// The source of `plan`, whose request is `request` as bytes.
    pub fn new(plan: &Plan, request: &Arc<[u8]>) -> Source {
        Source::Single([Route {
            request: Arc::clone(request),
            head_request: plan.request.method.eq_ignore_ascii_case("HEAD"),
            keep_alive: plan.request.keep_alive,
            ok_status: plan.ok_status.clone(),
            timeout_ns: plan.timeout_ns,
        }])
    }

    /// Everything that can be asked.
    #[inline]
    pub fn routes(&self) -> &[Route] {
        match self {
            Source::Single(routes) => routes,
            #[cfg(test)]
            Source::Script { routes, .. } => routes,
        }
    }

    /// The route with this number.
    #[inline]
    pub fn route(&self, number: RouteNumber) -> &Route {
        &self.routes()[usize::from(number)]
    }

    /// What `user` does after its last request; `None`: it begins.
    #[inline]
    pub fn next(
        &mut self,
        #[cfg_attr(not(test), expect(unused_variables, reason = "to one URL all users are alike"))] user: u64,
        last: Option<&Last>,
    ) -> Next {
        match self {
            Source::Single(_) if last.is_none() => Next::Send(0),
            Source::Single(_) => Next::End,
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
