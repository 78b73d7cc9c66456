//! A source that sends the requests of a list, such as an access log to replay. Arrival number n
//! sends entry number n of the list.
//!
//! A list entry takes eight bytes of memory. Distinct paths are stored once, and all requests of a
//! route are equal except for the path. A request is assembled in a reused buffer when it is sent.
//! A list of ten million requests therefore takes 80 MB, plus the memory of its distinct paths.
//!
//! Not here: the times of the requests, and converting a log to a list
//! ([`plimsoll_model::request_list`]).

use crate::encode::host_field;
use crate::users::WorkerUsers;
use plimsoll_model::rng::mix_bits;
use plimsoll_model::{Plan, Request, RequestList, RequestListEntry, RouteNumber, Stripe};
use plimsoll_wire::{EncodedRequest, h1};
use std::sync::Arc;

/// A source that sends the requests of a list, one for each arrival.
#[derive(Debug, Clone)]
pub struct ReplaySource {
    /// For each route, its request with an example path. The path of a list entry replaces the
    /// example path.
    route_requests: Arc<[Request]>,
    host: Arc<str>,
    keep_alive: bool,
    listed: Arc<RequestList>,
    /// Counts the requests of each user, to select the entries of the list. In an open loop arrival
    /// n sends entry n. Users of a closed loop share the list, and the seed of the load chooses the
    /// first entry.
    users: WorkerUsers,
    begins_at: u64,
    /// The assembled request of each exchange, by exchange number.
    written: Vec<EncodedRequest>,
}

impl ReplaySource {
    /// Creates the source for the request list of `plan`. All paths are checked here, so that no
    /// check is needed during the load.
    pub fn compile(plan: &Plan, listed: &Arc<RequestList>) -> Result<ReplaySource, h1::RequestError> {
        let unwritten = |target: &&str| target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(target) = listed.targets.iter().find(unwritten) {
            return Err(h1::RequestError::Target(target.to_owned()));
        }
        Ok(ReplaySource {
            route_requests: plan.traffic.routes.iter().map(|route| route.request.clone()).collect(),
            host: host_field(plan).into(),
            keep_alive: plan.connection_plan.keep_alive,
            listed: Arc::clone(listed),
            users: WorkerUsers::new(Stripe::WHOLE_SCHEDULE, None, None),
            begins_at: mix_bits(plan.load.seed) % (listed.entries.len() as u64).max(1),
            written: Vec::new(),
        })
    }

    /// Sets the users of the worker that sends the requests of this source.
    pub fn set_users(&mut self, users: WorkerUsers) {
        self.users = users;
    }

    /// Begins a user's next request.
    #[inline]
    pub fn begin(&mut self, user: u64) {
        // `start_user` fails only if a data table has no unused row left, and a replay has no data
        // table.
        let _ = self.users.start_user(user);
    }

    /// Returns the index of the entry that `user` sends. After the last entry the list starts
    /// again.
    #[inline]
    fn entry_index(&self, user: u64) -> u64 {
        let count = self.listed.entries.len() as u64;
        let number = match self.users.restarts_after_end() {
            true => self.begins_at + self.users.start_number(user),
            false => user,
        };
        if number < count { number } else { number.checked_rem(count).unwrap_or(number) }
    }

    /// Returns the entry that `user` sends; `None` for an empty list.
    #[inline]
    fn entry_for_user(&self, user: u64) -> Option<&RequestListEntry> {
        self.listed.entries.get(self.entry_index(user) as usize)
    }

    /// Returns the route of the request that `user` sends; `None` for an empty list.
    #[inline]
    pub fn route_for_user(&self, user: u64) -> Option<RouteNumber> {
        self.entry_for_user(user).map(|entry| entry.route)
    }

    /// Assembles the request that `exchange` sends for `user`. `like` is the encoded request of the
    /// route.
    pub fn write(&mut self, exchange: u32, user: u64, like: &EncodedRequest) {
        let Some(entry) = self.entry_for_user(user).copied() else { return };
        let Request { method, target: _, headers, body } = &self.route_requests[usize::from(entry.route)];
        let target = self.listed.targets.get(entry.target);
        let parts = h1::RequestParts { method, target, host: &self.host, headers, body, keep_alive: self.keep_alive };
        while self.written.len() <= exchange as usize {
            self.written.push(like.clone());
        }
        self.written[exchange as usize].rewrite(like, &parts);
    }

    /// Returns the request that `exchange` sends.
    #[inline]
    pub fn request(&self, exchange: u32) -> &EncodedRequest {
        &self.written[exchange as usize]
    }

    /// Returns whether the log contains the status `status` for the request of `user`, and the
    /// status is below 500. A logged status below 500 counts as success, even if it is an error
    /// status such as 404.
    #[inline]
    pub fn is_logged_success_status(&self, user: u64, status: u16) -> bool {
        self.listed.equals_logged_status(self.entry_index(user), status)
    }

    /// Returns whether the response status `status` disagrees with the logged status of the same
    /// request (see `RequestList::agrees_with_log`).
    #[inline]
    pub fn differs_from_logged_status(&self, user: u64, status: u16) -> bool {
        !self.listed.agrees_with_log(self.entry_index(user), status)
    }
}
