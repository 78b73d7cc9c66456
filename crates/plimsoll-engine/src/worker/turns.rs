//! Turns: how the loop shares its time. A connection gives way after a slice, a turn ends after a
//! while, and what is left over waits in a queue, so that no server can keep the loop from
//! deadlines, arrivals, its other connections or its end.
//!
//! Events are edge-triggered: bytes that are left unread bring no event again. What was not done is
//! therefore noted at the connection, and while anything is noted the loop does not sleep. The
//! usual exchange (a short read, a request that is taken whole) meets none of this.

use super::state::Worker;
use crate::connection::{Readiness, State, of_token};
use crate::net::{Net, Wait};

/// A connection that has taken this much in one go, of bytes or of time, gives way to the others. A
/// look at the events costs a microsecond, these bytes cost a hundred.
pub(super) const SLICE_BYTES: usize = 512 << 10;
pub(super) const SLICE_NS: u64 = 500_000;
/// To ask for events that are there takes less than this, even if they are many; more is a sleep.
const ASKED_NS: u64 = 20_000;
/// From this time of a turn on, what connections have left over waits for the next one: new replies
/// are not to wait long.
const LEFT_OVER_NS: u64 = 1_000_000;
/// From this time on, events wait too: deadlines and arrivals are to be looked at. More than a
/// fetch of usual events takes, since to start requests before the replies that are there are read
/// would make the server look slow.
const TURN_NS: u64 = 20_000_000;

impl<N: Net> Worker<N> {
    /// Waits for events (not at all while something is left over) and reads the clock.
    pub(super) fn wait(&mut self, wait: Wait) {
        // While a turn's events are not through, the next ones wait in the kernel, in order and one
        // a connection.
        if self.ready.is_empty() {
            // Until a time that is past: no sleep, and no offer of the core as with an idle look.
            let wait = if self.deferred.is_empty() { wait } else { Wait::Until(self.now_ns) };
            let began_ns = self.now_ns;
            let before_ns = if self.asked_ns == 0 { began_ns } else { self.asked_ns };
            self.net.wait(wait, &mut self.ready);
            self.now_ns = self.net.now_ns();
            self.asked_ns = self.now_ns;
            // What was there at once came while the worker was busy, evenly over that time; what
            // ended a sleep has just come.
            let slept = self.now_ns - began_ns > ASKED_NS;
            self.readable_ns = if slept { self.now_ns } else { before_ns + (self.now_ns - before_ns) / 2 };
        } else {
            self.now_ns = self.net.now_ns();
        }
    }

    /// Whether there is anything for [`Worker::handle_ready`].
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.deferred.is_empty()
    }

    /// Handles what is new, then what was left over, as far as the turn lasts.
    pub(super) fn handle_ready(&mut self) {
        let began_ns = self.now_ns;
        let mut ready = std::mem::take(&mut self.ready);
        let mut handled = 0;
        for event in &ready {
            if self.now_ns >= began_ns + TURN_NS {
                break;
            }
            handled += 1;
            let (slot, generation) = of_token(event.token);
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
        // Of what was left over it is not known when it came.
        let readable_ns = std::mem::replace(&mut self.readable_ns, 0);
        // At least one of those, so that none waits for ever.
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

    /// Notes what the slot's connection is still ready for.
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
