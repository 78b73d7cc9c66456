//! The source of a target's readings during loads ([`ReadingSource`]): the probes of this machine
//! ([`crate::Watcher`]), or of the server's machine over a pipe (`plimsoll-fleet`).
//!
//! Not here: how values are read, and how values are used.

use crate::probe::LiveServerCpu;
use plimsoll_model::Probes;

/// A source of a target's readings during loads.
pub trait ReadingSource {
    /// Returns the live reading of the server's CPU use.
    fn live_server_cpu(&self) -> LiveServerCpu;

    /// Counts the process `pid` on this machine as a process of plimsoll from now on.
    fn count_process_as_plimsoll(&self, pid: u32);

    /// Takes a sample now, and waits for the sample up to a time limit. Plimsoll calls this
    /// function at the start and end of a load.
    fn sample_now(&self);

    /// Returns the readings since the last call; times are of this machine's monotonic clock.
    fn take_new_readings(&self) -> Probes;

    /// Returns new messages for the user.
    fn take_user_messages(&self) -> Vec<String> {
        Vec::new()
    }
}
