//! Preparation: opens connections before the schedule begins, at a pace that an accept queue can
//! take. Nothing of it is measured.

use super::state::{Starts, Worker};
use crate::connection::State;
use crate::net::{Net, Wait};
use plimsoll_sys::tcp::BACKLOG_FULL;
use std::sync::atomic::Ordering;

/// Most connections that all workers open at the same time. The number is below the accept queues
/// of common servers: if a queue overflows, a connection waits for a SYN retransmission.
const OPENING_MAX: u64 = 100;
/// Number of connections opened before the pace is checked again.
const BURST: u64 = 32;
/// Time limit of the preparation, ns. A request's timeout or four times the expected time extends
/// it. The load itself opens the connections that are missing then.
const PREPARE_NS_MAX: u64 = 5_000_000_000;
/// Pause after a unix socket's backlog was full, ns.
const FULL_PAUSE_NS: u64 = 1_000_000;

impl<N: Net> Worker<N> {
    /// Opens the connections that must be ready before the schedule begins. Those that fail are
    /// left to the load, which counts the failures.
    pub fn prepare(&mut self) {
        let closed = matches!(self.starts, Starts::Closed(_));
        let mut left = match closed {
            true => self.job.connections_ready.min(self.connections.len() as u32),
            false => self.job.connections_ready.min(self.job.connections_max as u32),
        };
        self.now_ns = self.net.now_ns();
        let began_ns = self.now_ns;
        let ramp_ns = u64::from(left) * 1_000_000_000 / self.job.ramp_per_s;
        let give_up_ns = began_ns + PREPARE_NS_MAX.min(self.job.source.timeout_ns_max()).max(4 * ramp_ns);
        let opening_max = OPENING_MAX.div_ceil(self.job.workers) as u32;
        let mut opened: u64 = 0;
        let mut slot = 0;
        while (left > 0 || self.opening > 0) && self.now_ns < give_up_ns && !self.stop.load(Ordering::Relaxed) {
            // The number of connections that should be open by now, rounded up to whole bursts.
            let bursts = (self.now_ns - began_ns) * self.job.ramp_per_s / (BURST * 1_000_000_000) + 1;
            let mut wait_ns = self.now_ns + 10_000_000;
            while left > 0 && self.opening < opening_max && opened < bursts * BURST {
                if !closed {
                    slot = self.free_slot().unwrap_or_else(|| self.add_slot());
                }
                match self.open(slot) {
                    Ok(()) => {
                        left -= 1;
                        opened += 1;
                        slot += 1;
                    }
                    Err(error) => {
                        self.rest(slot);
                        if error == BACKLOG_FULL {
                            wait_ns = self.now_ns + FULL_PAUSE_NS;
                        } else {
                            // The system refuses connections (no ports, no files). The load will
                            // count that.
                            left = 0;
                        }
                        break;
                    }
                }
            }
            if left > 0 && self.opening < opening_max && opened >= bursts * BURST {
                wait_ns = wait_ns.min(began_ns + bursts * BURST * 1_000_000_000 / self.job.ramp_per_s + 1);
            }
            self.wait(Wait::Until(wait_ns.min(give_up_ns)));
            self.handle_ready();
            self.now_ns = self.net.now_ns();
        }
        // A connection still opening would occupy the slot of one that the load opens and counts.
        for slot in 0..self.connections.len() as u32 {
            if matches!(self.connections[slot as usize].state, State::Connecting | State::Handshaking) {
                self.lose(slot);
            }
        }
        // Some servers block a thread on each accepted connection until its first request. So each
        // connection is used once, in the order of opening, before any is used again.
        if self.job.streams_max == 1 {
            self.fresh = std::mem::take(&mut self.idle);
            self.fresh.reverse();
        }
    }
}
