//! Divides the work of the event loop into turns (iterations of limited duration). In one turn, a
//! connection is handled for at most one slice (a number of bytes or a time). When the time of a
//! turn is over, remaining work waits in a queue for the next turn. Because of the limits, no
//! server can delay deadlines, arrivals, other connections or the end of the load for long.
//!
//! Events are edge-triggered: unread bytes cause no second event. For this reason, unfinished work
//! is recorded at the connection, and the event loop does not sleep until the work is done. In a
//! usual exchange (a short read, a request sent at once) no work remains for the next turn.

use super::state::Worker;
use crate::connection::{ConnectionState, Readiness, slot_and_generation};
use crate::net::{Net, WaitMode};

/// The maximum number of bytes that a connection reads or sends before the event loop continues
/// with another connection. Reading or sending 512 KiB takes about 100 us, while fetching events
/// takes only 1 us.
pub(super) const SLICE_BYTES: usize = 512 << 10;
/// The maximum time, ns, for which a connection reads before the event loop continues with another
/// connection.
pub(super) const SLICE_NS: u64 = 500_000;
/// The maximum time, ns, to fetch events that are already available. A fetch of events that takes
/// longer than 20 us included a sleep.
const EVENT_FETCH_NS_MAX: u64 = 20_000;
/// The time in a turn (loop iteration), ns, after which unfinished work waits for the next turn.
/// The time limit is short, so that new responses do not wait long.
const UNFINISHED_WORK_NS: u64 = 1_000_000;
/// The time in a turn (loop iteration), ns, after which new events wait for the next turn, because
/// deadlines and arrivals are due. Usually, all events of a turn are handled in less time. The
/// limit is long, because the server would seem slow if requests started before waiting responses
/// are read.
const EVENT_HANDLING_NS_MAX: u64 = 20_000_000;

impl<N: Net> Worker<N> {
    /// Waits for events and reads the clock. While unfinished work remains, polls for events
    /// without a wait.
    pub(super) fn wait(&mut self, wait: WaitMode) {
        // New events are fetched only when all events of the last fetch are handled. Until the next
        // fetch, the kernel stores new events in order, one for each connection.
        if self.ready.is_empty() {
            // While work is unfinished, the deadline of the wait is already past, so the worker
            // keeps the CPU core and does not sleep.
            let wait = if self.deferred.is_empty() { wait } else { WaitMode::Until(self.now_ns) };
            let began_ns = self.now_ns;
            let before_ns = if self.last_fetch_ns == 0 { began_ns } else { self.last_fetch_ns };
            self.net.wait(wait, &mut self.ready);
            self.now_ns = self.net.now_ns();
            self.last_fetch_ns = self.now_ns;
            // Events that were available without a sleep are assumed to have arrived evenly
            // distributed over the time in which the worker was busy. An event that ended a sleep
            // has just arrived.
            let slept = self.now_ns - began_ns > EVENT_FETCH_NS_MAX;
            self.readable_ns = if slept { self.now_ns } else { before_ns + (self.now_ns - before_ns) / 2 };
        } else {
            self.now_ns = self.net.now_ns();
        }
    }

    /// Returns whether any connection has new events or unfinished work, which
    /// [`Worker::handle_ready`] handles.
    pub(super) fn has_pending_work(&self) -> bool {
        !self.ready.is_empty() || !self.deferred.is_empty()
    }

    /// Handles new events, and afterwards the unfinished work of connections, until the time limit
    /// of the turn (loop iteration) is reached.
    pub(super) fn handle_ready(&mut self) {
        let began_ns = self.now_ns;
        let mut ready = std::mem::take(&mut self.ready);
        let mut handled = 0;
        for event in &ready {
            if self.now_ns >= began_ns + EVENT_HANDLING_NS_MAX {
                break;
            }
            handled += 1;
            let (slot, generation) = slot_and_generation(event.token);
            let connection = &self.connections[slot as usize];
            if connection.generation != generation {
                continue;
            }
            let readiness = Readiness::from_event(event);
            if connection.deferred == Readiness::NONE {
                self.handle_readiness(slot, readiness);
            } else {
                self.defer_readiness(slot, readiness);
            }
        }
        ready.drain(..handled);
        self.ready = ready;
        // If an earlier turn (loop iteration) left bytes unread, the arrival time of the bytes is
        // unknown.
        let readable_ns = std::mem::replace(&mut self.readable_ns, 0);
        // At least one connection with unfinished work is handled in each loop iteration, so that
        // no connection waits for ever.
        for number in 0..self.deferred.len() {
            if number > 0 && self.now_ns >= began_ns + UNFINISHED_WORK_NS {
                break;
            }
            let Some((slot, generation)) = self.deferred.pop_front() else { break };
            let connection = &mut self.connections[slot as usize];
            if connection.generation == generation {
                let readiness = std::mem::replace(&mut connection.deferred, Readiness::NONE);
                self.handle_readiness(slot, readiness);
            }
        }
        self.readable_ns = readable_ns;
    }

    /// Records the unhandled readiness (readable, writable or broken) of the slot's connection for
    /// the next iteration of the event loop.
    #[cold]
    pub(super) fn defer_readiness(&mut self, slot: u32, readiness: Readiness) {
        let connection = &mut self.connections[slot as usize];
        if connection.socket.is_none() {
            return;
        }
        if connection.deferred == Readiness::NONE {
            self.deferred.push_back((slot, connection.generation));
        }
        connection.deferred.merge_flags(readiness);
    }

    #[inline]
    fn handle_readiness(&mut self, slot: u32, readiness: Readiness) {
        let generation = self.connections[slot as usize].generation;
        if readiness.writable {
            self.on_writable(slot);
        }
        if readiness.readable && self.connections[slot as usize].generation == generation {
            self.on_readable(slot, readiness.hangup);
        }
        if readiness.broken {
            self.end_exchanges_after_broken_send(slot, generation);
        }
    }

    fn on_writable(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        if connection.state == ConnectionState::Connecting {
            self.handle_connect_result(slot);
        } else if connection.has_partial_send {
            self.send(slot);
        }
    }
}
