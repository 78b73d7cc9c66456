//! Users of a source: the result of a user's last request, its next action, and its number in the
//! whole load. Random values depend on that number, and not on the division of the load.
//!
//! Not here: when a user begins, and its requests.

use plimsoll_model::{Outcome, RouteNumber, Stripe};

/// The result of a user's last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRequest {
    /// The route of the request.
    pub route: RouteNumber,
    /// The status of the response; 0 without a response.
    pub status: u16,
    /// The outcome of the request that the ledger counts.
    pub outcome: Outcome,
}

/// The next action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAction {
    /// Send this route at once.
    Send(RouteNumber),
    /// Wait this long (ns), then send this route.
    Wait(u64, RouteNumber),
    /// The user sends nothing more.
    End,
}

/// The users of a worker: the number of starts of each, and their unique rows.
#[derive(Debug, Clone)]
pub struct UserNumbers {
    stripe: Stripe,
    /// Number of persistent users in the whole load; 0 in an open loop, whose users never persist.
    users: u64,
    /// Number of starts of each user; empty for an open loop, where each arrival is a new user.
    begun: Vec<u64>,
    /// Number of rows that may be used once each; `None` without such tables.
    rows: Option<u64>,
    /// The current unique row of each user, and the number of rows taken by this worker.
    unique: Vec<u64>,
    unique_taken: u64,
    is_used_up: bool,
}

impl UserNumbers {
    /// Creates the users of one worker, with its share of the load and the number of persistent
    /// users, if any.
    pub fn new(stripe: Stripe, users: Option<u64>, rows: Option<u64>) -> UserNumbers {
        let begun = vec![0; users.map_or(0, |users| stripe.count_of(users)) as usize];
        let unique = vec![0; begun.len() * usize::from(rows.is_some())];
        UserNumbers { stripe, users: users.unwrap_or(0), begun, rows, unique, unique_taken: 0, is_used_up: false }
    }

    /// Starts a user, and takes a unique row for it; `None`: unique rows have run out.
    #[inline]
    pub fn begin(&mut self, user: u64) -> Option<()> {
        if let Some(begun) = self.begun.get_mut(user as usize) {
            *begun += 1;
        }
        match self.rows {
            None => Some(()),
            Some(rows) => self.take_row(user, rows),
        }
    }

    /// The number of a user's start in the whole load. `user` is its number within the worker.
    #[inline]
    pub fn number(&self, user: u64) -> u64 {
        match self.begun.get(user as usize) {
            Some(begun) => begun.saturating_sub(1) * self.users + self.stripe.nth(user),
            None => user,
        }
    }

    /// The unique row that a user currently has.
    #[inline]
    pub fn unique(&self, user: u64) -> u64 {
        self.unique.get(user as usize).copied().unwrap_or(user)
    }

    /// Whether users persist, as in a closed loop.
    pub fn stay(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether unique rows have run out.
    pub fn is_used_up(&self) -> bool {
        self.is_used_up
    }

    /// Takes the next unique row of this worker for a user; `None`: there is none left.
    #[cold]
    fn take_row(&mut self, user: u64, rows: u64) -> Option<()> {
        let row = match self.unique.get_mut(user as usize) {
            Some(unique) => {
                *unique = self.stripe.nth(self.unique_taken);
                self.unique_taken += 1;
                *unique
            }
            None => user,
        };
        self.is_used_up = row >= rows;
        (!self.is_used_up).then_some(())
    }
}
