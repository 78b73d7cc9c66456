//! Users as a source sees them: how the last request of one ended, what it does next, and the
//! number of what it is at in the whole load, so that what is drawn for it does not depend on how
//! the load is divided.
//!
//! Not here: when a user begins, and what is asked.

use plimsoll_model::{Outcome, RouteNumber, Stripe};

/// How a user's last request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRequest {
    /// The route that was asked.
    pub route: RouteNumber,
    /// The answer's status; 0 without an answer.
    pub status: u16,
    /// What the ledger says of it.
    pub outcome: Outcome,
}

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAction {
    /// Ask this, at once.
    Send(RouteNumber),
    /// Wait for so many ns, then ask this.
    Wait(u64, RouteNumber),
    /// Nothing more.
    End,
}

/// The users of a worker: how often each has begun, and which rows it has of those that are used
/// once.
#[derive(Debug, Clone)]
pub struct UserNumbers {
    stripe: Stripe,
    /// Users of the whole load, if they are always the same ones.
    users: u64,
    /// How often each user of a closed load has begun; empty for an open load, of which each
    /// arrival is a user of its own.
    begun: Vec<u64>,
    /// How many rows there are to be used once each, if there are any of that kind.
    rows: Option<u64>,
    /// The row that each user of a closed load has of those, and how many were taken.
    unique: Vec<u64>,
    unique_taken: u64,
    is_used_up: bool,
}

impl UserNumbers {
    /// Of one worker: its part of the load, of which there are so many users, if they are always
    /// the same ones.
    pub fn new(stripe: Stripe, users: Option<u64>, rows: Option<u64>) -> UserNumbers {
        let begun = vec![0; users.map_or(0, |users| stripe.count_of(users)) as usize];
        let unique = vec![0; begun.len() * usize::from(rows.is_some())];
        UserNumbers { stripe, users: users.unwrap_or(0), begun, rows, unique, unique_taken: 0, is_used_up: false }
    }

    /// A user begins; `None`: every row that is used once is used.
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

    /// The number of what a user is at, in the whole load. Users are numbered within the worker.
    #[inline]
    pub fn number(&self, user: u64) -> u64 {
        match self.begun.get(user as usize) {
            Some(begun) => begun.saturating_sub(1) * self.users + self.stripe.nth(user),
            None => user,
        }
    }

    /// The row that a user has of those that are used once.
    #[inline]
    pub fn unique(&self, user: u64) -> u64 {
        self.unique.get(user as usize).copied().unwrap_or(user)
    }

    /// Whether users are always the same ones.
    pub fn stay(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether there is no row left for one who begins.
    pub fn is_used_up(&self) -> bool {
        self.is_used_up
    }

    /// Takes the next row that is this worker's to use once.
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
