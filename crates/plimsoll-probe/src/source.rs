//! The source of a target's readings during loads ([`ReadingSource`]): the probes of this machine
//! ([`crate::Watcher`]), or those of the server's machine over a pipe (`plimsoll-fleet`).
//!
//! Not here: how values are read, and their use.

use crate::probe::LiveServer;
use plimsoll_model::Probes;

/// A source of readings.
pub trait ReadingSource {
    /// The live reading of the server.
    fn live(&self) -> LiveServer;

    /// Counts a process of this machine as plimsoll's from now on.
    fn watch_as_ours(&self, pid: u32);

    /// Takes a sample now, and waits for it within reason: at the edges of a load.
    fn sample_now(&self);

    /// Readings since the last call; times are of this machine's monotonic clock.
    fn take(&self) -> Probes;

    /// New messages for the user.
    fn take_news(&self) -> Vec<String> {
        Vec::new()
    }
}
