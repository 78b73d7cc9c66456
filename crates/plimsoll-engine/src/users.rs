//! The users of a request source: the result of a user's last request, its next action, and its
//! number in the whole load. Random values depend on the user's number, and not on how the load is
//! divided among workers.
//!
//! Not here: when a user begins, and the user's requests.

use plimsoll_model::{Outcome, RouteNumber, Stripe};

/// The result of a user's last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRequest {
    /// The route of the request.
    pub route: RouteNumber,
    /// The status of the response; 0 without a response.
    pub status: u16,
    /// The outcome of the request, as the ledger counts it.
    pub outcome: Outcome,
}

/// What a user does next: send a request, wait, or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAction {
    /// The user sends a request for this route at once.
    Send(RouteNumber),
    /// The user waits this long (ns), then sends a request for this route.
    Wait(u64, RouteNumber),
    /// The user sends nothing more.
    End,
}

/// The users of one worker: how often each user has started, and the user's unique row. A unique
/// row is a row of a data table that is used only once.
#[derive(Debug, Clone)]
pub struct WorkerUsers {
    stripe: Stripe,
    /// The number of users of a closed loop in the whole load. 0 for an open loop, where each
    /// arrival is a new user.
    users_total: u64,
    /// How often each user has started, by user number. Empty for an open loop, where each arrival
    /// is a new user.
    start_counts: Vec<u64>,
    /// The number of rows in the shortest data table with unique rows; `None` without such tables.
    unique_row_count: Option<u64>,
    /// The unique row that each user currently has, by user number.
    unique_rows: Vec<u64>,
    /// The number of unique rows that this worker has taken.
    unique_taken: u64,
    is_used_up: bool,
}

impl WorkerUsers {
    /// Creates the users of one worker. `stripe` is the worker's share of the load. `users` is the
    /// number of users of a closed loop, and `unique_row_count` the number of unique rows.
    pub fn new(stripe: Stripe, users: Option<u64>, unique_row_count: Option<u64>) -> WorkerUsers {
        let start_counts = vec![0; users.map_or(0, |users| stripe.count_items_below(users)) as usize];
        let unique_rows = vec![0; start_counts.len() * usize::from(unique_row_count.is_some())];
        WorkerUsers {
            stripe,
            users_total: users.unwrap_or(0),
            start_counts,
            unique_row_count,
            unique_rows,
            unique_taken: 0,
            is_used_up: false,
        }
    }

    /// Starts `user` and takes a unique row for this start. Returns `None` if all unique rows are
    /// used.
    #[inline]
    pub fn start_user(&mut self, user: u64) -> Option<()> {
        if let Some(begun) = self.start_counts.get_mut(user as usize) {
            *begun += 1;
        }
        match self.unique_row_count {
            None => Some(()),
            Some(rows) => self.take_row(user, rows),
        }
    }

    /// Returns the number of the user's current start among the starts of all users in the load.
    /// `user` is the user's number within the worker.
    #[inline]
    pub fn start_number(&self, user: u64) -> u64 {
        match self.start_counts.get(user as usize) {
            Some(begun) => begun.saturating_sub(1) * self.users_total + self.stripe.nth_item(user),
            None => user,
        }
    }

    /// Returns the unique row that `user` currently has. An arrival of an open loop has the row
    /// with the arrival's number.
    #[inline]
    pub fn unique_row(&self, user: u64) -> u64 {
        self.unique_rows.get(user as usize).copied().unwrap_or(user)
    }

    /// Returns whether users start again after their end, as in a closed loop.
    pub fn restarts_after_end(&self) -> bool {
        !self.start_counts.is_empty()
    }

    /// Returns whether all unique rows are used.
    pub fn is_out_of_unique_rows(&self) -> bool {
        self.is_used_up
    }

    /// Takes the next unique row of this worker for `user`. Returns `None` if no row is left.
    #[cold]
    fn take_row(&mut self, user: u64, rows: u64) -> Option<()> {
        let row = match self.unique_rows.get_mut(user as usize) {
            Some(unique) => {
                *unique = self.stripe.nth_item(self.unique_taken);
                self.unique_taken += 1;
                *unique
            }
            None => user,
        };
        self.is_used_up = row >= rows;
        (!self.is_used_up).then_some(())
    }
}
