//! What a worker holds: everything that its loop, its starts, its exchanges and its connections
//! share.

use crate::answers::AnswerText;
use crate::connection::Connection;
use crate::exchanges::Exchanges;
use crate::failed::FailedAnswers;
use crate::job::Job;
use crate::net::{Net, Ready};
use crate::recorder::Recorder;
use crate::spin::Spinner;
use plimsoll_model::RouteNumber;
use plimsoll_model::schedule::ArrivalCursor;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A closed load's part in a worker.
pub(super) struct Users {
    /// Users 0..active make requests.
    pub(super) active: u64,
    /// When `active` changes next (absolute).
    pub(super) change_ns: u64,
    /// Users that have joined and whose first request is still to be started, and when it was to be
    /// (absolute).
    pub(super) joining: Range<u64>,
    pub(super) joined_ns: u64,
    /// Measured requests left to start; `None`: no limit.
    pub(super) left: Option<u64>,
}

/// A user who goes on later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueUser {
    /// When (absolute).
    pub(super) at_ns: u64,
    pub(super) user: u64,
    /// With what; `None`: from the beginning.
    pub(super) route: Option<RouteNumber>,
}

/// Who starts requests.
pub(super) enum Starts {
    Closed(Users),
    Open {
        arrivals: ArrivalCursor,
        /// Number of the next arrival, who is a user of its own.
        next_user: u64,
        /// Intended start of the next arrival (absolute).
        next_ns: Option<u64>,
    },
}

/// Received at a time; a reply that is longer is read in pieces.
const BUFFER_BYTES: usize = 64 << 10;

/// Room for what is read from the connection at hand.
pub(super) struct Buffers {
    pub(super) input: [u8; BUFFER_BYTES],
    /// What TLS makes of it.
    pub(super) plain: Vec<u8>,
}

/// A worker on its part of the world.
pub struct Worker<N: Net> {
    pub(super) net: N,
    pub(super) job: Job,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) connections: Vec<Connection<N::Socket>>,
    /// Open connections without work: (slot, generation), the most recently used last. Entries may
    /// be stale.
    pub(super) idle: Vec<(u32, u32)>,
    /// The same of those that were made ready and never used, the one that was opened first last.
    pub(super) fresh: Vec<(u32, u32)>,
    /// Slots without a socket.
    pub(super) free: Vec<u32>,
    /// The slot that was last given to an arrival that needs a new connection: others may wait for
    /// it too.
    pub(super) filling: Option<u32>,
    /// Of each user of a closed load: whether it waits before it goes on.
    pub(super) paused: Vec<bool>,
    /// Room for exchanges that end together.
    pub(super) fallen: Vec<u32>,
    pub(super) connections_open: u64,
    pub(super) opening: u32,
    /// The answer at hand is no end of its exchange, which asks on where that redirects to.
    pub(super) follows: bool,
    /// Connections with something left over for the next turn, in the order in which they get it:
    /// (slot, generation). Entries may be stale.
    pub(super) deferred: VecDeque<(u32, u32)>,
    pub(super) exchanges: Exchanges,
    /// Users who go on later.
    pub(super) waiting: BinaryHeap<Reverse<DueUser>>,
    pub(super) recorder: Recorder,
    pub(super) failed_answers: FailedAnswers,
    /// What has come of answers that are looked at, by the number of their exchange.
    pub(super) answers: Vec<AnswerText>,
    /// When the last message of an answer came that is a stream, by the number of its exchange; 0:
    /// none has come.
    pub(super) last_messages_ns: Vec<u64>,
    pub(super) spinner: Spinner,
    pub(super) starts: Starts,
    pub(super) ready: Vec<Ready>,
    /// `None` while something is read.
    pub(super) buffers: Option<Box<Buffers>>,
    /// Bytes that the connection at hand makes for sending.
    pub(super) scratch: Vec<u8>,
    /// Schedule time 0 (absolute); everything before is preparation.
    pub(super) origin_ns: u64,
    pub(super) measured_from_ns: u64,
    pub(super) end_ns: u64,
    pub(super) measured_in_flight: u64,
    pub(super) last_done_ns: u64,
    /// When the wish to stop was seen.
    pub(super) stopped_ns: Option<u64>,
    /// The time as of the latest look at the clock.
    pub(super) now_ns: u64,
    /// When events were last asked for, and since when those at hand are taken to be readable; 0:
    /// not known.
    pub(super) asked_ns: u64,
    pub(super) readable_ns: u64,
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
            failed_answers: FailedAnswers::new(job.redact),
            answers: Vec::new(),
            last_messages_ns: Vec::new(),
            spinner: Spinner::new(job.spin, job.spare_core),
            net,
            stop,
            connections: Vec::new(),
            idle: Vec::new(),
            fresh: Vec::new(),
            free: Vec::new(),
            filling: None,
            paused: Vec::new(),
            fallen: Vec::new(),
            connections_open: 0,
            opening: 0,
            follows: false,
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
            asked_ns: 0,
            readable_ns: 0,
            job,
        };
        if matches!(worker.starts, Starts::Closed(_)) {
            let users = worker.job.stripe.count_of(worker.job.schedule.users_max());
            worker.paused = vec![false; users as usize];
            for _ in 0..users.div_ceil(u64::from(worker.job.streams_max)) {
                worker.add_slot();
            }
        }
        worker
    }

    pub(super) fn add_slot(&mut self) -> u32 {
        let slot = self.connections.len() as u32;
        self.connections.push(Connection::new());
        slot
    }
}
