//! One worker: an event loop that starts due requests, sends them over its connections, and counts
//! their outcomes.
//!
//! A worker shares no data with other workers. This file contains the event loop and its end, and
//! [`state`] contains the worker's data. [`starts`] chooses the user of the next request,
//! [`exchange`] sends the request, and [`connect`] opens connections. [`prepare`] runs before the
//! load, and [`turns`] divides the event loop's time among connections. Closed and open loops
//! differ only in `starts`.

mod connect;
mod exchange;
mod prepare;
mod starts;
mod state;
mod turns;

pub use state::Worker;

use crate::collect::PartReport;
use crate::net::{Net, WaitMode};
use plimsoll_model::Plan;
use state::RequestStarts;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<N: Net> Worker<N> {
    /// Executes the schedule, which begins at `origin_ns` (absolute, ns). Calls `tell` with a
    /// report after every tick (100 ms) and at the end.
    pub fn run(&mut self, origin_ns: u64, tell: &mut dyn FnMut(PartReport)) {
        let schedule = Arc::clone(&self.job.schedule);
        let absolute = |ns: u64| origin_ns.saturating_add(ns);
        self.origin_ns = origin_ns;
        self.measured_from_ns = absolute(schedule.measured_from_ns());
        self.end_ns = schedule.end_ns().map_or(u64::MAX, absolute);
        self.recorder.begin(origin_ns, (self.measured_from_ns, self.end_ns), self.net.cpu_ns());
        if let RequestStarts::Open { arrivals, next_user, next_ns } = &mut self.starts
            && let Some((number, start_ns)) = arrivals.next()
        {
            (*next_user, *next_ns) = (number, Some(absolute(start_ns)));
        }
        self.now_ns = self.net.now_ns();
        while self.now_ns < origin_ns {
            self.wait(WaitMode::Until(origin_ns));
            self.handle_ready();
            self.now_ns = self.net.now_ns();
        }
        if let RequestStarts::Closed(users) = &mut self.starts {
            users.change_ns = origin_ns;
        }
        let part = self.job.index;
        let mut tick = 0;
        while !self.run_turn() {
            while self.now_ns >= origin_ns + (tick + 1) * Plan::TICK_NS {
                let interval = self.end_interval(origin_ns + (tick + 1) * Plan::TICK_NS);
                tell(PartReport::Tick { part, index: tick, interval });
                tick += 1;
            }
        }
        let window_end_ns = self.window_end_ns();
        let has_no_more_requests =
            self.stopped_ns.is_none() && self.now_ns < self.end_ns && self.job.source.has_no_more_requests();
        self.count_unfinished();
        let interval = self.end_interval(self.now_ns);
        let failed_answers = self.failed_answers.take_failed_responses();
        tell(PartReport::Tick { part, index: tick, interval });
        tell(PartReport::Done { part, window_end_ns, failed_answers, has_no_more_requests });
    }

    fn end_interval(&mut self, at_ns: u64) -> plimsoll_model::Interval {
        self.job.addresses.refresh();
        let cpu_ns = self.net.cpu_ns();
        self.recorder.take_interval(at_ns, cpu_ns, self.connections_open)
    }

    /// Executes one turn of the loop: waits, handles events, and starts due requests. Returns
    /// whether the run has ended.
    fn run_turn(&mut self) -> bool {
        let began_ns = self.now_ns;
        let due_ns = self.next_due_ns();
        let wait = self.spinner.choose_wait(began_ns, due_ns, self.recorder.in_flight() > 0);
        self.wait(wait);
        let woke_ns = self.now_ns;
        let events = self.has_pending_work();
        let in_vain = self.spinner.record_wait(wait, began_ns, woke_ns, events);
        if self.stopped_ns.is_none() && self.stop.load(Ordering::Relaxed) {
            // A sleeping worker notices a stop only when its sleep ends. A stopped load therefore
            // counts as ended at the time at which the worker's sleep began.
            self.stopped_ns = Some(began_ns);
            self.recorder.end_window(began_ns);
        }
        if events {
            self.handle_ready();
        }
        let started = self.start_due_requests();
        if events || started {
            self.now_ns = self.net.now_ns();
            // A poll that returned events counts as work time, but a sleep does not.
            self.recorder.work_ns += self.now_ns - if wait == WaitMode::Poll && events { began_ns } else { woke_ns };
        }
        if in_vain && !started {
            self.recorder.add_idle_poll_time(woke_ns - began_ns);
        }
        self.is_over()
    }

    /// Returns whether the worker's load has ended: by a stop, by the end of all measured requests,
    /// or by the end of the grace period.
    fn is_over(&self) -> bool {
        if let Some(stopped_ns) = self.stopped_ns {
            // A stopped worker ends only after it has counted all arrivals that were due before the
            // stop.
            return match &self.starts {
                RequestStarts::Open { next_ns, .. } => next_ns.is_none_or(|at_ns| at_ns > stopped_ns),
                RequestStarts::Closed(_) => true,
            };
        }
        let time_up = self.now_ns >= self.end_ns;
        let started_all = self.has_ended_early() || (time_up && self.is_schedule_done());
        if !started_all {
            return false;
        }
        self.measured_in_flight == 0 || self.now_ns >= self.end_ns.saturating_add(self.job.grace_ns)
    }

    /// Returns the end of the measured window for this worker, ns of schedule time.
    fn window_end_ns(&self) -> u64 {
        let end_ns = match self.stopped_ns {
            Some(stopped_ns) => stopped_ns.min(self.end_ns),
            None if self.has_ended_early() => self.last_done_ns.max(self.measured_from_ns).min(self.end_ns),
            None => self.end_ns,
        };
        end_ns.saturating_sub(self.origin_ns)
    }

    /// At the end of the load, counts the measured requests that are still in flight. Counts the
    /// active measured sessions as cut (ended before their last request).
    fn count_unfinished(&mut self) {
        let measured = self.exchanges.iter_in_flight().filter(|exchange| exchange.measured);
        measured.for_each(|exchange| self.recorder.count_in_flight_at_end(exchange.route));
        self.recorder.count_cut_sessions(self.job.source.active_measured_sessions());
    }
}
