//! The state of a worker. The modules for the worker's event loop, request starts, exchanges and
//! connections share the state.

use crate::answers::StoredResponse;
use crate::connection::ConnectionSlot;
use crate::exchanges::Exchanges;
use crate::failed::FailedResponses;
use crate::job::WorkerJob;
use crate::net::{Net, ReadyEvent};
use crate::recorder::Recorder;
use crate::spin::SpinPolicy;
use plimsoll_model::RouteNumber;
use plimsoll_model::schedule::ArrivalCursor;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The users of one worker in a closed loop.
pub(super) struct ClosedLoopUsers {
    /// The number of active users. The users with the numbers `0..active` send requests.
    pub(super) active: u64,
    /// The time at which the number of active users changes next (absolute, ns).
    pub(super) change_ns: u64,
    /// The numbers of new users that have not started their first request yet.
    pub(super) joining: Range<u64>,
    /// The intended start of the users in `joining` (absolute, ns).
    pub(super) joined_ns: u64,
    /// The number of measured requests, or sessions of scenarios, that may still start; `None`: no
    /// limit.
    pub(super) starts_remaining: Option<u64>,
}

/// A user that waits until its next request is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueUser {
    /// The time at which the user continues (absolute, ns).
    pub(super) at_ns: u64,
    pub(super) user: u64,
    /// The route of the next request; `None`: the user begins again.
    pub(super) route: Option<RouteNumber>,
}

/// The rule by which requests start: at the arrivals of an open loop, or by the users of a closed
/// loop.
pub(super) enum RequestStarts {
    Closed(ClosedLoopUsers),
    Open {
        arrivals: ArrivalCursor,
        /// The number of the next arrival. Every arrival counts as a new user.
        next_user: u64,
        /// The intended start of the next arrival (absolute, ns); `None`: no arrival is left.
        next_ns: Option<u64>,
    },
}

/// The size of the receive buffer in bytes. Longer responses are read in pieces.
const BUFFER_BYTES: usize = 64 << 10;

/// The buffers for the bytes that the worker reads from one connection.
pub(super) struct Buffers {
    pub(super) input: [u8; BUFFER_BYTES],
    /// The decrypted bytes of the connection that is being read.
    pub(super) plain: Vec<u8>,
}

/// One worker of a load, with its connections and its requests in flight. `N` is the type of the
/// worker's clock and network.
pub struct Worker<N: Net> {
    pub(super) net: N,
    pub(super) job: WorkerJob,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) connections: Vec<ConnectionSlot<N::Socket>>,
    /// The open connections that can take another request (open loops only), as pairs of slot and
    /// generation (the connection's number in the slot). The most recently used connection is last.
    /// An entry whose connection was closed or has no room is ignored.
    pub(super) slots_with_room: Vec<(u32, u32)>,
    /// The unused connections that were opened before the schedule, in reverse order of opening.
    pub(super) unused_connections: Vec<(u32, u32)>,
    /// The numbers of the slots without a connection.
    pub(super) free: Vec<u32>,
    /// The slot whose connection is being opened for the latest arrival. Further arrivals may also
    /// wait for the connection that is opening.
    pub(super) opening_slot: Option<u32>,
    /// For each user of a closed loop, by user number: whether the user has a request in flight, or
    /// waits before its next request. A user that leaves the load runs until its request has ended.
    pub(super) is_user_running: Vec<bool>,
    /// A reused buffer for the numbers of the exchanges that fail together when their connection
    /// closes.
    pub(super) failed_exchanges: Vec<u32>,
    pub(super) connections_open: u64,
    pub(super) opening: u32,
    /// Whether the exchange of the response that is being handled follows a redirect and sends
    /// another request.
    pub(super) follows_redirect: bool,
    /// The connections with unfinished work for the next iteration of the event loop, in order, as
    /// (slot, generation). An entry whose connection was closed is ignored.
    pub(super) deferred: VecDeque<(u32, u32)>,
    pub(super) exchanges: Exchanges,
    /// The users whose next request is due later, the earliest first.
    pub(super) delayed_users: BinaryHeap<Reverse<DueUser>>,
    pub(super) recorder: Recorder,
    pub(super) failed_answers: FailedResponses,
    /// The received parts of unfinished responses that will be checked, by exchange number.
    pub(super) answers: Vec<StoredResponse>,
    /// The arrival time of the last message of a streamed response, by exchange number; 0: no
    /// message.
    pub(super) last_messages_ns: Vec<u64>,
    pub(super) spinner: SpinPolicy,
    pub(super) starts: RequestStarts,
    pub(super) ready: Vec<ReadyEvent>,
    /// The receive buffers; `None` while a read uses the buffers.
    pub(super) buffers: Option<Box<Buffers>>,
    /// A reused buffer for the outgoing bytes of one connection.
    pub(super) scratch: Vec<u8>,
    /// The start of the schedule (absolute, ns). Before the start of the schedule, the worker only
    /// opens connections.
    pub(super) origin_ns: u64,
    pub(super) measured_from_ns: u64,
    pub(super) end_ns: u64,
    /// The number of measured requests in flight. When this number is 0, a load whose requests have
    /// all started is over.
    pub(super) measured_in_flight: u64,
    /// The time at which the last measured request ended (absolute, ns).
    pub(super) last_done_ns: u64,
    /// The time at which the load counts as stopped (absolute, ns): the beginning of the loop
    /// iteration in which the worker noticed the stop. `None`: the load is not stopped.
    pub(super) stopped_ns: Option<u64>,
    /// The time of the last clock reading (absolute, ns).
    pub(super) now_ns: u64,
    /// The time at which the worker last fetched events, ns; 0: never.
    pub(super) last_fetch_ns: u64,
    /// The assumed time at which the current events became readable, ns; 0: unknown.
    pub(super) readable_ns: u64,
}

impl<N: Net> Worker<N> {
    pub fn new(net: N, job: WorkerJob, stop: Arc<AtomicBool>) -> Self {
        let starts = if job.schedule.is_open() {
            RequestStarts::Open { arrivals: job.schedule.arrivals_of_stripe(job.stripe), next_user: 0, next_ns: None }
        } else {
            RequestStarts::Closed(ClosedLoopUsers {
                active: 0,
                change_ns: 0,
                joining: 0..0,
                joined_ns: 0,
                starts_remaining: job.schedule.requests_of_stripe(job.stripe),
            })
        };
        let mut worker = Worker {
            recorder: Recorder::new(job.number, job.source.routes().len()),
            failed_answers: FailedResponses::new(job.redact),
            answers: Vec::new(),
            last_messages_ns: Vec::new(),
            spinner: SpinPolicy::new(job.spin, job.spare_core),
            net,
            stop,
            connections: Vec::new(),
            slots_with_room: Vec::new(),
            unused_connections: Vec::new(),
            free: Vec::new(),
            opening_slot: None,
            is_user_running: Vec::new(),
            failed_exchanges: Vec::new(),
            connections_open: 0,
            opening: 0,
            follows_redirect: false,
            deferred: VecDeque::new(),
            exchanges: Exchanges::new(&job.source),
            delayed_users: BinaryHeap::new(),
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
            last_fetch_ns: 0,
            readable_ns: 0,
            job,
        };
        if matches!(worker.starts, RequestStarts::Closed(_)) {
            let users = worker.job.stripe.count_items_below(worker.job.schedule.users_max());
            worker.is_user_running = vec![false; users as usize];
            for _ in 0..users.div_ceil(u64::from(worker.job.streams_max)) {
                worker.add_slot();
            }
        }
        worker
    }

    pub(super) fn add_slot(&mut self) -> u32 {
        let slot = self.connections.len() as u32;
        self.connections.push(ConnectionSlot::new());
        slot
    }
}
