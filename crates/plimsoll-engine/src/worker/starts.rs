//! Starts requests: at the arrivals of an open loop, and by the users of a closed loop.

use super::state::{ClosedLoopUsers, DueUser, RequestStarts, Worker};
use crate::connection::ConnectionState;
use crate::net::Net;
use crate::session_source::EndedSession;
use crate::users::{LastRequest, UserAction};
use plimsoll_model::{Outcome, Plan, RequestFailure, RouteNumber};
use std::cmp::Reverse;

/// The pause of a user whose connection failed to open, or whose session sent no request, ns.
/// Without the pause, a closed port would get 100 000 connects a second.
const RECONNECT_PAUSE_NS: u64 = 10_000_000;
/// The maximum number of requests that one iteration of the event loop starts before the loop reads
/// responses.
const STARTS_PER_TURN: u32 = 64;
/// The maximum number of requests that one iteration of the event loop ends with a timeout. The
/// maximum is high, because delaying a timeout has no benefit.
const TIMEOUTS_PER_TURN: u32 = 512;
/// The period after the end of the schedule, ns, in which late arrivals still start. Arrivals that
/// have not started by the end of the period count as unsent.
const LATE_NS_MAX: u64 = 50_000_000;

impl<N: Net> Worker<N> {
    /// Returns the time of the worker's next due action (absolute, ns). An action is a tick, a
    /// request start, a timeout, a change of the number of users, or the end of the load. The
    /// arrival of expected responses is not considered.
    pub(super) fn next_due_ns(&self) -> u64 {
        let tick_ns = Plan::TICK_NS;
        let next_tick_ns = self.origin_ns + ((self.now_ns - self.origin_ns) / tick_ns + 1) * tick_ns;
        // The worker wakes at the end of the schedule, and again at the end of the grace period.
        let grace_end_ns = self.end_ns.saturating_add(self.job.grace_ns);
        let mut due_ns = next_tick_ns.min(if self.now_ns < self.end_ns { self.end_ns } else { grace_end_ns });
        if let Some((at_ns, _)) = self.exchanges.first_deadline() {
            due_ns = due_ns.min(at_ns);
        }
        match &self.starts {
            RequestStarts::Open { next_ns: Some(at_ns), .. } => due_ns = due_ns.min(*at_ns),
            RequestStarts::Open { next_ns: None, .. } => {}
            RequestStarts::Closed(users) => {
                due_ns = due_ns.min(if users.joining.is_empty() { users.change_ns } else { users.joined_ns });
            }
        }
        if let Some(Reverse(waiting)) = self.delayed_users.peek() {
            due_ns = due_ns.min(waiting.at_ns);
        }
        due_ns
    }

    /// Ends overdue requests with a timeout, and starts due requests and users. Returns whether any
    /// action was due.
    pub(super) fn start_due_requests(&mut self) -> bool {
        let mut left = TIMEOUTS_PER_TURN;
        while left > 0
            && let Some((at_ns, number)) = self.exchanges.first_deadline()
            && at_ns <= self.now_ns
        {
            left -= 1;
            self.time_out(number);
        }
        let mut worked = left < TIMEOUTS_PER_TURN;
        match &self.starts {
            RequestStarts::Open { .. } => worked |= self.start_due_arrivals(),
            RequestStarts::Closed(users) => {
                if users.joining.is_empty() && users.change_ns <= self.now_ns {
                    worked = true;
                    self.change_users();
                }
            }
        }
        worked | self.start_users()
    }

    /// Starts due arrivals of an open loop, at most [`STARTS_PER_TURN`] in one call. Returns
    /// whether any arrival was started.
    fn start_due_arrivals(&mut self) -> bool {
        let mut released = 0;
        while let RequestStarts::Open { arrivals, next_user, next_ns } = &mut self.starts
            && let Some(intended_ns) = *next_ns
            && intended_ns <= self.stopped_ns.unwrap_or(self.now_ns)
            && released < STARTS_PER_TURN
        {
            let origin_ns = self.origin_ns;
            let user = *next_user;
            *next_ns = match arrivals.next() {
                Some((number, start_ns)) => {
                    *next_user = number;
                    Some(origin_ns + start_ns)
                }
                None => None,
            };
            let measured = intended_ns >= self.measured_from_ns;
            // Arrivals that are too late to start count as unsent if they are measured.
            if self.stopped_ns.is_some() || self.now_ns > self.end_ns.saturating_add(LATE_NS_MAX) {
                if measured
                    && let UserAction::Send(route) | UserAction::Wait(_, route) =
                        self.job.source.next_action(user, None)
                {
                    self.count_unsent_requests(route);
                }
                if let Some(sessions) = self.job.source.sessions() {
                    sessions.end_session_early(user);
                }
                continue;
            }
            released += 1;
            let Some(route) = self.begin_user(user, intended_ns, measured) else { continue };
            if !self.job.source.ensure_request_ready() {
                continue;
            }
            match self.acquire_slot_for_user(user) {
                Some(slot) => {
                    self.now_ns = self.net.now_ns();
                    if measured {
                        self.recorder.count_send_lag(self.now_ns - intended_ns);
                    }
                    self.start_request(slot, user, route, intended_ns, measured);
                }
                None => self.count_unsent_arrival(user, route, measured),
            }
        }
        released > 0
    }

    /// Counts the requests of a measured arrival as unsent, because the arrival cannot start.
    fn count_unsent_requests(&mut self, route: RouteNumber) {
        for _ in 0..self.job.source.messages_per_arrival() {
            self.recorder.count_unsent_request(route);
        }
    }

    /// Counts the requests of a measured arrival as unsent, because no connection is available.
    /// Ends the session of the arrival.
    #[cold]
    fn count_unsent_arrival(&mut self, user: u64, route: RouteNumber, measured: bool) {
        if measured {
            self.count_unsent_requests(route);
        }
        self.end_session_early(user);
    }

    /// Ends the active session of `user` early, if there is one, and counts the session as cut
    /// (ended before its last request).
    #[cold]
    fn end_session_early(&mut self, user: u64) {
        let Some(ended) = self.job.source.sessions().and_then(|sessions| sessions.end_session_early(user)) else {
            return;
        };
        self.recorder.count_cut_sessions(u64::from(ended.measured));
        self.close_session_connection(ended);
    }

    /// Counts an ended session, if the session is measured, and closes the own connection of the
    /// session.
    #[inline(never)]
    fn count_ended_session(&mut self, session: EndedSession) {
        if session.measured {
            self.recorder.count_ended_session(session.completed.then(|| self.now_ns - session.intended_ns));
        }
        self.close_session_connection(session);
    }

    /// Closes the connection that belonged to an ended session.
    fn close_session_connection(&mut self, session: EndedSession) {
        if let Some(slot) = session.slot {
            self.connections[slot as usize].is_session_owned = false;
            self.close(slot);
            self.make_slot_available(slot);
        }
    }

    /// Returns the connection slot for the next request of an arrival. A session with a connection
    /// of its own always gets the slot of its own connection.
    #[inline]
    pub(super) fn acquire_slot_for_user(&mut self, user: u64) -> Option<u32> {
        match self.job.source.sessions() {
            None => self.acquire_slot_for_arrival(),
            Some(sessions) => match (sessions.own_connection_slot(user), sessions.needs_own_connection(user)) {
                (Some(slot), _) => Some(slot),
                (None, false) => self.acquire_slot_for_arrival(),
                (None, true) => self.reserve_own_slot(user),
            },
        }
    }

    /// Returns a connection slot that is reserved for the session of `user`.
    fn reserve_own_slot(&mut self, user: u64) -> Option<u32> {
        let slot =
            if self.job.streams_max == 1 { self.acquire_slot_for_arrival() } else { self.take_unconnected_slot() }?;
        self.opening_slot = self.opening_slot.filter(|filling| *filling != slot);
        self.connections[slot as usize].is_session_owned = true;
        if let Some(sessions) = self.job.source.sessions() {
            sessions.set_own_connection_slot(user, slot);
        }
        Some(slot)
    }

    /// Returns the slot of a connection that can take an arrival's request. If no open connection
    /// can take the request, returns a slot whose connection is opening, or a slot for a new
    /// connection. `None`: all connections are in use.
    pub(super) fn acquire_slot_for_arrival(&mut self) -> Option<u32> {
        while let Some((slot, generation)) = self.unused_connections.pop() {
            let connection = &mut self.connections[slot as usize];
            if connection.generation == generation && connection.state == ConnectionState::Open {
                connection.is_in_slot_list = false;
                return Some(slot);
            }
        }
        while let Some(&(slot, generation)) = self.slots_with_room.last() {
            let connection = &mut self.connections[slot as usize];
            let is_listed = connection.generation == generation && connection.state == ConnectionState::Open;
            let room = if is_listed { connection.conn.exchanges_available() } else { 0 };
            // A connection that can take further requests in addition to the arrival's request
            // stays in the list of connections with room.
            if room > 1 {
                return Some(slot);
            }
            self.slots_with_room.pop();
            if is_listed {
                connection.is_in_slot_list = false;
            }
            if room == 1 {
                return Some(slot);
            }
        }
        if self.job.streams_max > 1
            && let Some(slot) = self.opening_slot
        {
            let connection = &self.connections[slot as usize];
            let waiting = connection.waiting.len();
            if connection.is_opening() && waiting > 0 && waiting < self.job.streams_max {
                return Some(slot);
            }
        }
        self.opening_slot = self.take_unconnected_slot();
        self.opening_slot
    }

    /// Takes a slot without a connection; `None`: the limit of connections is reached.
    fn take_unconnected_slot(&mut self) -> Option<u32> {
        let has_place = self.connections.len() < self.job.connections_max;
        self.take_free_slot().or_else(|| has_place.then(|| self.add_slot()))
    }

    /// Removes a slot from the list of free slots and returns it; `None`: no slot is free.
    pub(super) fn take_free_slot(&mut self) -> Option<u32> {
        let slot = self.free.pop()?;
        self.connections[slot as usize].is_in_slot_list = false;
        Some(slot)
    }

    /// Returns the slot that a user of a closed loop uses. If a connection has several streams,
    /// several users share a slot.
    #[inline]
    pub(super) fn slot_of_closed_loop_user(&self, user: u64) -> u32 {
        if self.job.streams_max == 1 { user as u32 } else { (user / u64::from(self.job.streams_max)) as u32 }
    }

    /// Sets the number of active users of a closed loop to the number that the schedule demands
    /// now. New users are not started here, but listed in `joining`.
    fn change_users(&mut self) {
        let RequestStarts::Closed(users) = &mut self.starts else { return };
        let (schedule, stripe) = (&self.job.schedule, self.job.stripe);
        // The intended start of the new users is the time at which the change of the number of
        // users was due.
        let intended_ns = users.change_ns.min(self.now_ns);
        let at_ns = intended_ns - self.origin_ns;
        let (before, active) = (users.active, stripe.count_items_below(schedule.users_at(at_ns)));
        users.active = active;
        users.change_ns = schedule.next_users_change_ns(at_ns).map_or(u64::MAX, |ns| self.origin_ns.saturating_add(ns));
        users.joining = before..active;
        users.joined_ns = intended_ns;
    }

    /// Starts users that join a closed loop, and continues users whose wait has ended. Returns
    /// whether any user was started or continued.
    fn start_users(&mut self) -> bool {
        let mut started = 0;
        while let RequestStarts::Closed(users) = &mut self.starts
            && started < STARTS_PER_TURN
            && let Some(user) = users.joining.next()
        {
            started += 1;
            // A user that left and joins again may still have a request in flight, or may still
            // wait (think time, or pause before a retry). A user whose request is in flight, or who
            // still waits, continues without a new start.
            let intended_ns = users.joined_ns;
            if !std::mem::replace(&mut self.is_user_running[user as usize], true) {
                self.now_ns = self.net.now_ns();
                let lag_ns = self.now_ns - intended_ns;
                if self.start_next_request(user, None, intended_ns) {
                    self.recorder.count_send_lag(lag_ns);
                }
            }
        }
        while started < STARTS_PER_TURN
            && let Some(Reverse(waiting)) = self.delayed_users.peek().copied()
            && waiting.at_ns <= self.now_ns
        {
            started += 1;
            self.delayed_users.pop();
            self.now_ns = self.net.now_ns();
            let lag_ns = self.now_ns - waiting.at_ns;
            if self.start_next_request(waiting.user, waiting.route, waiting.at_ns) && waiting.route.is_some() {
                self.recorder.count_send_lag(lag_ns);
            }
        }
        started > 0
    }

    /// Begins `user` with the intended start `intended_ns`. Returns the route of the user's first
    /// request if the request is due at once.
    #[inline]
    fn begin_user(&mut self, user: u64, intended_ns: u64, measured: bool) -> Option<RouteNumber> {
        let next = self.job.source.next_action(user, None);
        let mut begins = next != UserAction::End;
        if let Some(sessions) = self.job.source.sessions() {
            let ended = sessions.take_ended_session();
            begins |= ended.is_some();
            if begins {
                sessions.set_session_start(user, intended_ns, measured);
            }
            if begins && measured {
                self.recorder.count_started_session();
            }
            if let Some(ended) = ended {
                self.handle_empty_session(user, EndedSession { intended_ns, measured, ..ended });
            }
        }
        if begins
            && measured
            && let RequestStarts::Closed(ClosedLoopUsers { starts_remaining: Some(left), .. }) = &mut self.starts
        {
            *left -= 1;
        }
        match next {
            UserAction::Send(route) => Some(route),
            UserAction::Wait(ns, route) => {
                self.delay_user(user, ns, Some(route));
                None
            }
            UserAction::End => None,
        }
    }

    /// Handles a session that ended without a request. In a closed loop, the user of the session
    /// waits before its next session, to avoid an endless loop.
    #[cold]
    fn handle_empty_session(&mut self, user: u64, session: EndedSession) {
        self.count_ended_session(session);
        if matches!(self.starts, RequestStarts::Closed(_)) {
            self.delay_user(user, RECONNECT_PAUSE_NS, None);
        }
    }

    #[cold]
    fn delay_user(&mut self, user: u64, wait_ns: u64, route: Option<RouteNumber>) {
        self.delayed_users.push(Reverse(DueUser { at_ns: self.now_ns.saturating_add(wait_ns), user, route }));
    }

    /// Starts the next request of `user` with the intended start `intended_ns`, unless the load or
    /// the user has ended. `route` is the route of the request; `None`: the user begins with its
    /// first request. Returns whether a measured request started.
    #[inline]
    fn start_next_request(&mut self, user: u64, route: Option<RouteNumber>, intended_ns: u64) -> bool {
        let measured = intended_ns >= self.measured_from_ns;
        if self.stopped_ns.is_some() || intended_ns >= self.end_ns {
            return false;
        }
        if let RequestStarts::Closed(users) = &self.starts
            && (user >= users.active || (route.is_none() && measured && users.starts_remaining == Some(0)))
        {
            // A user that left the load sends no more requests. If the user left within a session,
            // the session ends early.
            self.is_user_running[user as usize] = false;
            if route.is_some() {
                self.end_session_early(user);
            }
            return false;
        }
        let Some(route) = route.or_else(|| self.begin_user(user, intended_ns, measured)) else { return false };
        if !self.job.source.ensure_request_ready() {
            return false;
        }
        let slot = match &self.starts {
            // A user of a closed loop has a connection of its own, or shares one with other users.
            RequestStarts::Closed(_) => self.slot_of_closed_loop_user(user),
            RequestStarts::Open { .. } => match self.acquire_slot_for_user(user) {
                Some(slot) => slot,
                None => {
                    self.count_unsent_arrival(user, route, measured);
                    return false;
                }
            },
        };
        self.start_request(slot, user, route, intended_ns, measured);
        measured
    }

    /// Continues `user` after its exchange on `slot`: starts its next request now or later, or ends
    /// the user. In a closed loop, a user that has ended begins again.
    #[inline]
    pub(super) fn continue_user(&mut self, slot: u32, user: u64, last: LastRequest) {
        let next = self.job.source.next_action(user, Some(&last));
        if let Some(ended) = self.job.source.take_ended_session() {
            self.count_ended_session(ended);
        }
        let refused = matches!(last.outcome, Outcome::Failed(RequestFailure::Connect | RequestFailure::Tls));
        match (&self.starts, next) {
            (RequestStarts::Closed(_), UserAction::End) if !refused => {
                self.start_next_request(user, None, self.now_ns);
            }
            (RequestStarts::Open { .. }, UserAction::End) => self.make_slot_available(slot),
            _ => self.continue_session(slot, user, next, refused),
        }
    }

    /// Executes the next action of a user within its session. `refused` is true if the last connect
    /// or TLS handshake failed, so that the user pauses before the action.
    #[inline(never)]
    fn continue_session(&mut self, slot: u32, user: u64, next: UserAction, refused: bool) {
        // While this user waits, other users may use the connection (open loop).
        self.make_slot_available(slot);
        let (wait_ns, route) = match next {
            UserAction::End => (0, None),
            UserAction::Send(route) => (0, Some(route)),
            UserAction::Wait(ns, route) => (ns, Some(route)),
        };
        // After a failed connect, pause before the retry.
        match wait_ns.max(if refused { RECONNECT_PAUSE_NS } else { 0 }) {
            0 => {
                self.start_next_request(user, route, self.now_ns);
            }
            wait_ns => self.delay_user(user, wait_ns, route),
        }
    }

    /// Returns whether the load ended before its scheduled end, because all requests have started
    /// and all sessions have ended, or because no more requests exist.
    pub(super) fn has_ended_early(&self) -> bool {
        match &self.starts {
            RequestStarts::Open { next_ns, .. } => {
                let all_begun = next_ns.is_none() && self.job.ends_at_request_limit && self.delayed_users.is_empty();
                (all_begun && !self.job.source.has_active_sessions()) || self.job.source.has_script_stopped()
            }
            RequestStarts::Closed(users) => {
                (users.starts_remaining == Some(0) || self.job.source.has_no_more_requests())
                    && self.now_ns >= self.measured_from_ns
                    && !self.job.source.has_active_sessions()
            }
        }
    }

    /// Returns whether every arrival before the end of the schedule was started or counted as
    /// unsent.
    pub(super) fn is_schedule_done(&self) -> bool {
        matches!(&self.starts, RequestStarts::Closed(_) | RequestStarts::Open { next_ns: None, .. })
    }
}
