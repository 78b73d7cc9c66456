//! One worker: a loop that starts requests when they are due, carries them over its connections, and counts.
//!
//! Everything it touches is its own. Here is the loop and its end; who starts the next request is in [`starts`], how it is
//! carried in [`exchange`], what it is carried over in [`connect`], what is made ready before the load in [`prepare`], and how
//! the loop's time is shared in [`turns`]. Closed and open loads differ in `starts` only.

mod connect;
mod exchange;
mod prepare;
mod starts;
mod turns;

use crate::collect::Message;
use crate::connection::Connection;
use crate::exchanges::Exchanges;
use crate::failed::FailedAnswers;
use crate::job::Job;
use crate::net::{Net, Ready, Wait};
use crate::recorder::Recorder;
use crate::spin::Spinner;
use plimsoll_model::Plan;
use starts::{Starts, Users, Waiting};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Received at a time; a reply that is longer is read in pieces.
const BUFFER_BYTES: usize = 64 << 10;

/// Room for what is read from the connection at hand.
struct Buffers {
    input: [u8; BUFFER_BYTES],
    /// What TLS makes of it.
    plain: Vec<u8>,
}

/// A worker on its part of the world.
pub struct Worker<N: Net> {
    net: N,
    job: Job,
    stop: Arc<AtomicBool>,
    connections: Vec<Connection<N::Socket>>,
    /// Open connections without work: (slot, generation), the most recently used last. Entries may be stale.
    idle: Vec<(u32, u32)>,
    /// Slots without a socket.
    free: Vec<u32>,
    connections_open: u64,
    opening: u32,
    /// Connections with something left over for the next turn, in the order in which they get it: (slot, generation).
    /// Entries may be stale.
    deferred: VecDeque<(u32, u32)>,
    exchanges: Exchanges,
    /// Users who go on later.
    waiting: BinaryHeap<Reverse<Waiting>>,
    recorder: Recorder,
    failed_answers: FailedAnswers,
    spinner: Spinner,
    starts: Starts,
    ready: Vec<Ready>,
    /// `None` while something is read.
    buffers: Option<Box<Buffers>>,
    /// Bytes that the connection at hand makes for sending.
    scratch: Vec<u8>,
    /// Schedule time 0 (absolute); everything before is preparation.
    origin_ns: u64,
    measured_from_ns: u64,
    end_ns: u64,
    measured_in_flight: u64,
    last_done_ns: u64,
    /// When the wish to stop was seen.
    stopped_ns: Option<u64>,
    /// The time as of the latest look at the clock.
    now_ns: u64,
}

impl<N: Net> Worker<N> {
    pub fn new(net: N, job: Job, stop: Arc<AtomicBool>) -> Self {
        let starts = if job.schedule.is_open() {
            Starts::Open { arrivals: job.schedule.arrivals(job.stripe), next_user: 0, next_ns: None }
        } else {
            Starts::Closed(Users {
                active: 0,
                change_ns: 0,
                joining: 0..0,
                joined_ns: 0,
                left: job.schedule.requests_of(job.stripe),
            })
        };
        let mut worker = Worker {
            recorder: Recorder::new(job.number, job.source.routes().len()),
            failed_answers: FailedAnswers::default(),
            spinner: Spinner::new(job.spin, job.spare_core),
            net,
            stop,
            connections: Vec::new(),
            idle: Vec::new(),
            free: Vec::new(),
            connections_open: 0,
            opening: 0,
            deferred: VecDeque::new(),
            exchanges: Exchanges::new(&job.source),
            waiting: BinaryHeap::new(),
            starts,
            ready: Vec::new(),
            buffers: Some(Box::new(Buffers { input: [0; BUFFER_BYTES], plain: Vec::new() })),
            scratch: Vec::new(),
            origin_ns: u64::MAX,
            measured_from_ns: u64::MAX,
            end_ns: u64::MAX,
            measured_in_flight: 0,
            last_done_ns: 0,
            stopped_ns: None,
            now_ns: 0,
            job,
        };
        if matches!(worker.starts, Starts::Closed(_)) {
            let users = worker.job.stripe.count_of(worker.job.schedule.users_max());
            for _ in 0..users {
                worker.add_slot();
            }
        }
        worker
    }

    fn add_slot(&mut self) -> u32 {
        let slot = self.connections.len() as u32;
        self.connections.push(Connection::new());
        slot
    }

    /// Carries the schedule out from `origin_ns` (absolute) on, and tells `tell` every tick.
    pub fn run(&mut self, origin_ns: u64, tell: &mut dyn FnMut(Message)) {
        let schedule = Arc::clone(&self.job.schedule);
        let absolute = |ns: u64| origin_ns.saturating_add(ns);
        self.origin_ns = origin_ns;
        self.measured_from_ns = absolute(schedule.measured_from_ns());
        self.end_ns = schedule.end_ns().map_or(u64::MAX, absolute);
        self.recorder.begin(origin_ns, self.end_ns, self.net.cpu_ns());
        if let Starts::Open { arrivals, next_user, next_ns } = &mut self.starts
            && let Some((number, start_ns)) = arrivals.next()
        {
            (*next_user, *next_ns) = (number, Some(absolute(start_ns)));
        }
        self.now_ns = self.net.now_ns();
        while self.now_ns < origin_ns {
            self.wait(Wait::Until(origin_ns));
            self.handle_ready();
            self.now_ns = self.net.now_ns();
        }
        if let Starts::Closed(users) = &mut self.starts {
            users.change_ns = origin_ns;
        }
        let worker = self.job.index;
        let mut tick = 0;
        while !self.turn() {
            while self.now_ns >= origin_ns + (tick + 1) * Plan::TICK_NS {
                let interval = self.flush(origin_ns + (tick + 1) * Plan::TICK_NS);
                tell(Message::Tick { worker, index: tick, interval });
                tick += 1;
            }
        }
        let window_end_ns = self.window_end_ns();
        self.abandon();
        let interval = self.flush(self.now_ns);
        let failed_answers = self.failed_answers.told();
        tell(Message::Done { worker, index: tick, interval, window_end_ns, failed_answers });
    }

    fn flush(&mut self, at_ns: u64) -> plimsoll_model::Interval {
        self.job.addresses.refresh();
        let cpu_ns = self.net.cpu_ns();
        self.recorder.flush(at_ns, cpu_ns, self.connections_open)
    }

    /// One turn of the loop: wait, handle what is ready, start what is due. Returns whether the run is over.
    fn turn(&mut self) -> bool {
        let began_ns = self.now_ns;
        let due_ns = self.next_due_ns();
        let wait = self.spinner.decide(began_ns, due_ns, self.recorder.in_flight() > 0);
        self.wait(wait);
        let woke_ns = self.now_ns;
        let events = self.has_ready();
        self.spinner.observe(wait, began_ns, woke_ns, events);
        if events {
            self.handle_ready();
        }
        if self.stopped_ns.is_none() && self.stop.load(Ordering::Relaxed) {
            self.stopped_ns = Some(self.now_ns);
        }
        let started = self.start_due();
        if events || started {
            self.now_ns = self.net.now_ns();
            // A look that brings work is part of it; a sleep is not.
            self.recorder.work_ns += self.now_ns - if wait == Wait::Poll && events { began_ns } else { woke_ns };
        }
        self.over()
    }

    /// Whether nothing is left to do.
    fn over(&self) -> bool {
        if let Some(stopped_ns) = self.stopped_ns {
            // Arrivals that were due by then are accounted for first.
            return match &self.starts {
                Starts::Open { next_ns, .. } => next_ns.is_none_or(|at_ns| at_ns > stopped_ns),
                Starts::Closed(_) => true,
            };
        }
        let time_up = self.now_ns >= self.end_ns;
        let started_all = self.ended_by_count() || (time_up && self.nothing_due());
        if !started_all {
            return false;
        }
        self.measured_in_flight == 0 || self.now_ns >= self.end_ns.saturating_add(self.job.grace_ns)
    }

    /// Schedule time at which this worker's part of the measured window ended.
    fn window_end_ns(&self) -> u64 {
        let end_ns = match self.stopped_ns {
            Some(stopped_ns) => stopped_ns.min(self.end_ns),
            None if self.ended_by_count() => self.last_done_ns.max(self.measured_from_ns).min(self.end_ns),
            None => self.end_ns,
        };
        end_ns.saturating_sub(self.origin_ns)
    }

    /// Gives up what is still under way.
    fn abandon(&mut self) {
        let measured = self.exchanges.under_way().filter(|exchange| exchange.measured);
        measured.for_each(|exchange| self.recorder.abandoned(exchange.route));
    }
}
