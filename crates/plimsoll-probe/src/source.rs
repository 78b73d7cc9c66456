//! The source of a target's readings during loads ([`ReadingSource`]): the probes of this machine
//! ([`crate::Watcher`]), or those of the server's machine over a pipe (`plimsoll-fleet`).
//!
//! Not here: how values are read, and their use.

use crate::probe::LiveServer;
use plimsoll_model::Probes;

/// A source of a target's readings during loads.
pub trait ReadingSource {
    /// The live reading of the server.
    fn live(&self) -> LiveServer;

    /// Counts the process `pid` of this machine as one of plimsoll's from now on.
    fn watch_as_ours(&self, pid: u32);

    /// Takes a sample now, and waits for it up to a limit; for the start and end of a load.
    fn sample_now(&self);

    /// Readings since the last call; times are of this machine's monotonic clock.
    fn take(&self) -> Probes;

    /// New messages for the user.
    fn take_news(&self) -> Vec<String> {
        Vec::new()
    }
}
