//! Requests that are asked one by one, as they stand in a log: entry n is what arrival n asks. An
//! entry is a number of eight bytes, its path stands in an arena of distinct ones, and the rest of
//! the request is its route's; all of it is written into a buffer of its exchange when it is asked,
//! so that tens of millions of requests take the memory of their paths. Nothing is allocated once
//! the buffers have grown.
//!
//! Not here: when a request is asked, and how a log becomes a list
//! ([`plimsoll_model::request_list`]).

use crate::encode::host_field;
use crate::users::UserNumbers;
use plimsoll_model::rng::mix;
use plimsoll_model::{ListedRequest, Plan, Request, RequestList, RouteNumber, Stripe};
use plimsoll_wire::{EncodedRequest, h1};
use std::sync::Arc;

/// The requests of a list.
#[derive(Debug, Clone)]
pub struct ReplaySource {
    /// The request of each route; its own path is only that of an example.
    requests: Arc<[Request]>,
    host: Arc<str>,
    keep_alive: bool,
    listed: Arc<RequestList>,
    /// Who asks: arrival n entry n. Users of a closed load go through the list together, each of
    /// such loads from a place of its own.
    users: UserNumbers,
    begins_at: u64,
    /// The requests that are under way, by the number of their exchange.
    written: Vec<EncodedRequest>,
}

impl ReplaySource {
    /// The list of `plan`. Every path in it can be written, which is looked at here and not again.
    pub fn compile(plan: &Plan, listed: &Arc<RequestList>) -> Result<ReplaySource, h1::RequestError> {
        let unwritten = |target: &&str| target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(target) = listed.targets.iter().find(unwritten) {
            return Err(h1::RequestError::Target(target.to_owned()));
        }
        Ok(ReplaySource {
            requests: plan.traffic.routes.iter().map(|route| route.request.clone()).collect(),
            host: host_field(plan).into(),
            keep_alive: plan.carriage.keep_alive,
            listed: Arc::clone(listed),
            users: UserNumbers::new(Stripe::ALL, None, None),
            begins_at: mix(plan.load.seed) % (listed.entries.len() as u64).max(1),
            written: Vec::new(),
        })
    }

    /// The same for the users of one worker.
    pub fn for_users(&mut self, users: UserNumbers) {
        self.users = users;
    }

    /// A user begins.
    #[inline]
    pub fn begin(&mut self, user: u64) {
        // There are no rows here that could be used up.
        let _ = self.users.begin(user);
    }

    /// The place in the list of what a user asks: a load that has more of them begins it again.
    #[inline]
    fn place(&self, user: u64) -> u64 {
        let count = self.listed.entries.len() as u64;
        let number = match self.users.stay() {
            true => self.begins_at + self.users.number(user),
            false => user,
        };
        if number < count { number } else { number.checked_rem(count).unwrap_or(number) }
    }

    /// The entry of what a user asks; none of an empty list.
    #[inline]
    fn entry(&self, user: u64) -> Option<&ListedRequest> {
        self.listed.entries.get(self.place(user) as usize)
    }

    /// What a user asks, or an arrival of an open load.
    #[inline]
    pub fn route_of(&self, user: u64) -> Option<RouteNumber> {
        self.entry(user).map(|entry| entry.route)
    }

    /// Writes what a user asks for its exchange; `like`: the request of its route.
    pub fn write(&mut self, exchange: u32, user: u64, like: &EncodedRequest) {
        let Some(entry) = self.entry(user).copied() else { return };
        let Request { method, target: _, headers, body } = &self.requests[usize::from(entry.route)];
        let target = self.listed.targets.get(entry.target);
        let parts = h1::RequestParts { method, target, host: &self.host, headers, body, keep_alive: self.keep_alive };
        while self.written.len() <= exchange as usize {
            self.written.push(like.clone());
        }
        self.written[exchange as usize].rewrite(like, &parts);
    }

    /// The request of an exchange under way.
    #[inline]
    pub fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.written[exchange as usize]
    }

    /// Whether an answer to a user is to be expected, whatever it is elsewhere.
    #[inline]
    pub fn expects(&self, user: u64, status: u16) -> bool {
        self.listed.expects(self.place(user), status)
    }

    /// Whether an answer to a user has another status than it had then.
    #[inline]
    pub fn is_changed(&self, user: u64, status: u16) -> bool {
        !self.listed.is_as_then(self.place(user), status)
    }
}
