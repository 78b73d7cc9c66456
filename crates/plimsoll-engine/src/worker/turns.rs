//! Turns: how the event loop divides its time. A connection yields after a slice (a number of
//! bytes), a turn ends after a while, and remaining work waits in a queue. So no server can keep
//! the loop from deadlines, arrivals, other connections or its end.
//!
//! Events are edge-triggered: unread bytes cause no second event. So unfinished work is recorded at
//! the connection, and the loop does not sleep until the work is done. A usual exchange (a short
//! read, a request sent at once) needs none of this.

use super::state::Worker;
use crate::connection::{Readiness, State, slot_and_generation};
use crate::net::{Net, Wait};

/// Bytes that a connection may read or send in one slice. They cost 100 us; fetching events again
/// costs only 1 us.
pub(super) const SLICE_BYTES: usize = 512 << 10;
pub(super) const SLICE_NS: u64 = 500_000;
/// Longest duration of a fetch that only returned available events, ns; a longer one was a sleep.
const ASKED_NS: u64 = 20_000;
/// After this time of a turn, unfinished work waits for the next turn, ns. So new replies do not
/// wait long.
const LEFT_OVER_NS: u64 = 1_000_000;
/// After this time of a turn, new events wait for the next turn, too, ns, since deadlines and
/// arrivals are due. The time exceeds that of usual events: starting requests before reading
/// replies would make the server look slow.
const TURN_NS: u64 = 20_000_000;

impl<N: Net> Worker<N> {
    /// Waits for events, or only polls while work remains, and reads the clock.
    pub(super) fn wait(&mut self, wait: Wait) {
        // Until a turn's events are handled, further events wait in the kernel, in order, one for
        // each connection.
        if self.ready.is_empty() {
            // With unfinished work the deadline is in the past: the wait then neither sleeps nor
            // yields the core.
            let wait = if self.deferred.is_empty() { wait } else { Wait::Until(self.now_ns) };
            let began_ns = self.now_ns;
            let before_ns = if self.asked_ns == 0 { began_ns } else { self.asked_ns };
            self.net.wait(wait, &mut self.ready);
            self.now_ns = self.net.now_ns();
            self.asked_ns = self.now_ns;
            // Events that were available at once had arrived evenly while the worker was busy. An
            // event that ended a sleep has just arrived.
            let slept = self.now_ns - began_ns > ASKED_NS;
            self.readable_ns = if slept { self.now_ns } else { before_ns + (self.now_ns - before_ns) / 2 };
        } else {
            self.now_ns = self.net.now_ns();
        }
    }

    /// Whether there is work for [`Worker::handle_ready`].
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.deferred.is_empty()
    }

    /// Handles new events, then remaining work, until the turn's time is up.
    pub(super) fn handle_ready(&mut self) {
        let began_ns = self.now_ns;
        let mut ready = std::mem::take(&mut self.ready);
        let mut handled = 0;
        for event in &ready {
            if self.now_ns >= began_ns + TURN_NS {
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
                self.handle(slot, readiness);
            } else {
                self.defer(slot, readiness);
            }
        }
        ready.drain(..handled);
        self.ready = ready;
        // The arrival time of remaining work is unknown.
        let readable_ns = std::mem::replace(&mut self.readable_ns, 0);
        // Handle at least one, so that none waits for ever.
        for number in 0..self.deferred.len() {
            if number > 0 && self.now_ns >= began_ns + LEFT_OVER_NS {
                break;
            }
            let Some((slot, generation)) = self.deferred.pop_front() else { break };
            let connection = &mut self.connections[slot as usize];
            if connection.generation == generation {
                let readiness = std::mem::replace(&mut connection.deferred, Readiness::NONE);
                self.handle(slot, readiness);
            }
        }
        self.readable_ns = readable_ns;
    }

    /// Records the unhandled readiness of the slot's connection for the next turn.
    #[cold]
    pub(super) fn defer(&mut self, slot: u32, readiness: Readiness) {
        let connection = &mut self.connections[slot as usize];
        if connection.socket.is_none() {
            return;
        }
        if connection.deferred == Readiness::NONE {
            self.deferred.push_back((slot, connection.generation));
        }
        connection.deferred.join(readiness);
    }

    #[inline]
    fn handle(&mut self, slot: u32, readiness: Readiness) {
        let generation = self.connections[slot as usize].generation;
        if readiness.writable {
            self.on_writable(slot);
        }
        if readiness.readable && self.connections[slot as usize].generation == generation {
            self.on_readable(slot, readiness.hangup);
        }
        if readiness.broken {
            self.settle_broken(slot, generation);
        }
    }

    fn on_writable(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        if connection.state == State::Connecting {
            self.connecting_ended(slot);
        } else if connection.sending {
            self.send(slot);
        }
    }
}
