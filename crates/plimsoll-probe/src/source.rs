//! Where the readings of a target come from while loads run ([`ReadingSource`]): the probes of this
//! machine ([`crate::Watcher`]), or those of the machine that the server runs on, over a pipe
//! (`plimsoll-fleet`).
//!
//! Not here: how anything is read, and what is done with it.

use crate::probe::LiveServer;
use plimsoll_model::Probes;

/// A source of readings.
pub trait ReadingSource {
    /// What can be shown while it runs.
    fn live(&self) -> LiveServer;

    /// What this process of this machine does is plimsoll's doing as well, from now on.
    fn watch_as_ours(&self, pid: u32);

    /// Takes a sample now, and waits for it within reason: at the edges of a load.
    fn sample_now(&self);

    /// What was read since the last call; times are of this machine's monotonic clock.
    fn take(&self) -> Probes;

    /// What its user should know at once, since the last call.
    fn take_news(&self) -> Vec<String> {
        Vec::new()
    }
}
