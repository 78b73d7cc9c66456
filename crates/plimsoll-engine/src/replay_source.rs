//! Requests from a list (such as a log to replay): arrival n sends entry n.
//!
//! An entry takes eight bytes. Its path is in an arena of distinct paths, and the rest of the
//! request belongs to its route. A request is assembled in its exchange's buffer when it is sent.
//! So tens of millions of requests need only the memory of their paths. Once the buffers have
//! grown, nothing is allocated.
//!
//! Not here: the times of requests, and how a log becomes a list
//! ([`plimsoll_model::request_list`]).

use crate::encode::host_field;
use crate::users::UserNumbers;
use plimsoll_model::rng::mix;
use plimsoll_model::{ListedRequest, Plan, Request, RequestList, RouteNumber, Stripe};
use plimsoll_wire::{EncodedRequest, h1};
use std::sync::Arc;

/// A source whose requests come from a list.
#[derive(Debug, Clone)]
pub struct ReplaySource {
    /// The request of each route, with an example path.
    requests: Arc<[Request]>,
    host: Arc<str>,
    keep_alive: bool,
    listed: Arc<RequestList>,
    /// Numbers the requests of users. In an open loop arrival n sends entry n. Users of a closed
    /// loop share the list, and each load begins at another entry.
    users: UserNumbers,
    begins_at: u64,
    /// The assembled requests, by exchange number.
    written: Vec<EncodedRequest>,
}

impl ReplaySource {
    /// Compiles the list of `plan`. All paths are checked here, so that no check is needed later.
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

    /// Assigns the users of one worker to this source.
    pub fn for_users(&mut self, users: UserNumbers) {
        self.users = users;
    }

    /// Begins a user's next request.
    #[inline]
    pub fn begin(&mut self, user: u64) {
        // A list has no unique rows that could run out.
        let _ = self.users.begin(user);
    }

    /// The index of the entry that a user sends; after its end the list starts again.
    #[inline]
    fn place(&self, user: u64) -> u64 {
        let count = self.listed.entries.len() as u64;
        let number = match self.users.stay() {
            true => self.begins_at + self.users.number(user),
            false => user,
        };
        if number < count { number } else { number.checked_rem(count).unwrap_or(number) }
    }

    /// The entry that a user sends; `None` for an empty list.
    #[inline]
    fn entry(&self, user: u64) -> Option<&ListedRequest> {
        self.listed.entries.get(self.place(user) as usize)
    }

    /// The route of a user's or arrival's request.
    #[inline]
    pub fn route_of(&self, user: u64) -> Option<RouteNumber> {
        self.entry(user).map(|entry| entry.route)
    }

    /// Assembles a user's request for its exchange; `like` is the request of its route.
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

    /// The request of an exchange in flight.
    #[inline]
    pub fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.written[exchange as usize]
    }

    /// Whether the log has this status for a user's request; an unsuccessful status is then
    /// expected.
    #[inline]
    pub fn expects(&self, user: u64, status: u16) -> bool {
        self.listed.expects(self.place(user), status)
    }

    /// Whether this status of a user's response differs from the status in the log.
    #[inline]
    pub fn is_changed(&self, user: u64, status: u16) -> bool {
        !self.listed.agrees_with_log(self.place(user), status)
    }
}
