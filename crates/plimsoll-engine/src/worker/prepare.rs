//! Opens connections before the schedule begins, slowly enough for the accept queue of the server.
//! The first interval of the load counts these connections and their errors, but not plimsoll's
//! work for them.

use super::state::{RequestStarts, Worker};
use crate::connection::ConnectionState;
use crate::net::{Net, WaitMode};
use plimsoll_sys::tcp::BACKLOG_FULL;
use std::sync::atomic::Ordering;

/// The maximum number of connections of all workers that are being opened at the same time. The
/// maximum is below the length of the accept queue of common servers. If an accept queue overflows,
/// a connection waits for a SYN retransmission.
const OPENING_MAX: u64 = 100;
/// The number of connections that a worker opens in one burst, before it compares the number of
/// opened connections with the planned rate again.
const BURST_CONNECTIONS: u64 = 32;
/// The time limit for opening connections before the schedule, ns. A shorter request timeout lowers
/// the limit. The time limit is at least four times the expected opening time, even if this product
/// exceeds `PREPARE_NS_MAX`. Connections that are not open at the time limit are opened during the
/// load.
const PREPARE_NS_MAX: u64 = 5_000_000_000;
/// The pause, ns, before another connect to a unix socket whose backlog was full.
const BACKLOG_FULL_PAUSE_NS: u64 = 1_000_000;

impl<N: Net> Worker<N> {
    /// Opens the connections that must be ready before the schedule begins. A connection that fails
    /// before the schedule is opened again during the load, and the load counts the failures.
    pub fn open_ready_connections(&mut self) {
        let closed = matches!(self.starts, RequestStarts::Closed(_));
        let mut left = match closed {
            true => self.job.connections_ready.min(self.connections.len() as u32),
            false => self.job.connections_ready.min(self.job.connections_max as u32),
        };
        self.now_ns = self.net.now_ns();
        let began_ns = self.now_ns;
        let ramp_ns = u64::from(left) * 1_000_000_000 / self.job.connects_per_s_max;
        let give_up_ns = began_ns + PREPARE_NS_MAX.min(self.job.source.timeout_ns_max()).max(4 * ramp_ns);
        let opening_max = OPENING_MAX.div_ceil(self.job.workers) as u32;
        let mut opened: u64 = 0;
        let mut slot = 0;
        while (left > 0 || self.opening > 0) && self.now_ns < give_up_ns && !self.stop.load(Ordering::Relaxed) {
            // The number of bursts of connections, rounded up, that should have been started by
            // now.
            let bursts =
                (self.now_ns - began_ns) * self.job.connects_per_s_max / (BURST_CONNECTIONS * 1_000_000_000) + 1;
            let mut wait_ns = self.now_ns + 10_000_000;
            while left > 0 && self.opening < opening_max && opened < bursts * BURST_CONNECTIONS {
                if !closed {
                    slot = self.take_free_slot().unwrap_or_else(|| self.add_slot());
                }
                match self.open(slot) {
                    Ok(()) => {
                        left -= 1;
                        opened += 1;
                        slot += 1;
                    }
                    Err(error) => {
                        self.make_slot_available(slot);
                        if error == BACKLOG_FULL {
                            wait_ns = self.now_ns + BACKLOG_FULL_PAUSE_NS;
                        } else {
                            // The operating system refuses new connections (no free port, no free
                            // file descriptor). The preparation ends, because the load opens the
                            // missing connections and counts their failures.
                            left = 0;
                        }
                        break;
                    }
                }
            }
            if left > 0 && self.opening < opening_max && opened >= bursts * BURST_CONNECTIONS {
                wait_ns = wait_ns
                    .min(began_ns + bursts * BURST_CONNECTIONS * 1_000_000_000 / self.job.connects_per_s_max + 1);
            }
            self.wait(WaitMode::Until(wait_ns.min(give_up_ns)));
            self.handle_ready();
            self.now_ns = self.net.now_ns();
        }
        // Connections that are still opening at the end of the preparation are closed, so that the
        // load opens and counts these connections.
        for slot in 0..self.connections.len() as u32 {
            if matches!(
                self.connections[slot as usize].state,
                ConnectionState::Connecting | ConnectionState::Handshaking
            ) {
                self.handle_lost_connection(slot);
            }
        }
        // Some servers block one thread per accepted connection until the connection's first
        // request arrives. To release the blocked threads, each connection is used once, in the
        // order of opening, before any connection is used again.
        if self.job.streams_max == 1 {
            self.unused_connections = std::mem::take(&mut self.slots_with_room);
            self.unused_connections.reverse();
        }
    }
}
