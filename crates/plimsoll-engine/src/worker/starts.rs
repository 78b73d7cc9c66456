//! When requests start: at the arrivals of an open loop, and by the users of a closed one.

use super::state::{DueUser, Starts, Users, Worker};
use crate::connection::State;
use crate::net::Net;
use crate::session_source::EndedSession;
use crate::users::{LastRequest, UserAction};
use plimsoll_model::{Outcome, Plan, RequestFailure, RouteNumber};
use std::cmp::Reverse;

/// Pause of a user whose connection failed to open, ns: without it a closed port would get 100 000
/// connects a second.
const RECONNECT_PAUSE_NS: u64 = 10_000_000;
/// Most requests that one loop turn starts before replies are read.
const STARTS_PER_TURN: u32 = 64;
/// Most requests that one loop turn times out. The number is high, since nothing is gained by a
/// delay.
const TIMEOUTS_PER_TURN: u32 = 512;
/// After the end of the schedule, late arrivals still start for this time, ns; later ones are
/// unsent.
const LATE_NS_MAX: u64 = 50_000_000;

impl<N: Net> Worker<N> {
    /// Returns the next time at which an action is due, ns. Replies do not count as actions.
    pub(super) fn next_due_ns(&self) -> u64 {
        let tick_ns = Plan::TICK_NS;
        let next_tick_ns = self.origin_ns + ((self.now_ns - self.origin_ns) / tick_ns + 1) * tick_ns;
        // The end of the schedule, then that of the grace period.
        let grace_end_ns = self.end_ns.saturating_add(self.job.grace_ns);
        let mut due_ns = next_tick_ns.min(if self.now_ns < self.end_ns { self.end_ns } else { grace_end_ns });
        if let Some((at_ns, _)) = self.exchanges.first_deadline() {
            due_ns = due_ns.min(at_ns);
        }
        match &self.starts {
            Starts::Open { next_ns: Some(at_ns), .. } => due_ns = due_ns.min(*at_ns),
            Starts::Open { next_ns: None, .. } => {}
            Starts::Closed(users) => {
                due_ns = due_ns.min(if users.joining.is_empty() { users.change_ns } else { users.joined_ns });
            }
        }
        if let Some(Reverse(waiting)) = self.waiting.peek() {
            due_ns = due_ns.min(waiting.at_ns);
        }
        due_ns
    }

    /// Starts and times out everything that is due. Returns whether anything was due.
    pub(super) fn start_due(&mut self) -> bool {
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
            Starts::Open { .. } => worked |= self.release_arrivals(),
            Starts::Closed(users) => {
                if users.joining.is_empty() && users.change_ns <= self.now_ns {
                    worked = true;
                    self.change_users();
                }
            }
        }
        worked | self.start_users()
    }

    /// Starts due arrivals of an open loop, at most [`STARTS_PER_TURN`]. Returns whether there were
    /// any.
    fn release_arrivals(&mut self) -> bool {
        let mut released = 0;
        while let Starts::Open { arrivals, next_user, next_ns } = &mut self.starts
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
            // Arrivals too late to start are counted if they are measured.
            if self.stopped_ns.is_some() || self.now_ns > self.end_ns.saturating_add(LATE_NS_MAX) {
                if measured
                    && let UserAction::Send(route) | UserAction::Wait(_, route) = self.job.source.next(user, None)
                {
                    self.unsent(route);
                }
                if let Some(sessions) = self.job.source.sessions() {
                    sessions.cut(user);
                }
                continue;
            }
            released += 1;
            let Some(route) = self.begin_user(user, intended_ns, measured) else { continue };
            if !self.job.source.ready() {
                continue;
            }
            match self.slot_for_user(user) {
                Some(slot) => {
                    self.now_ns = self.net.now_ns();
                    if measured {
                        self.recorder.lagged(self.now_ns - intended_ns);
                    }
                    self.start(slot, user, route, intended_ns, measured);
                }
                None => self.not_sent(user, route, measured),
            }
        }
        released > 0
    }

    /// Counts a measured arrival that cannot start as unsent.
    fn unsent(&mut self, route: RouteNumber) {
        for _ in 0..self.job.source.messages_each() {
            self.recorder.unsent(route);
        }
    }

    /// Counts a request of an arrival that has no connection, and cuts the arrival's session.
    #[cold]
    fn not_sent(&mut self, user: u64, route: RouteNumber, measured: bool) {
        if measured {
            self.unsent(route);
        }
        self.cut_session(user);
    }

    /// Ends the session of `user` early, if it has one, and counts it as cut.
    #[cold]
    fn cut_session(&mut self, user: u64) {
        let Some(ended) = self.job.source.sessions().and_then(|sessions| sessions.cut(user)) else { return };
        self.recorder.sessions_cut(u64::from(ended.measured));
        self.release(ended);
    }

    /// Counts an ended session.
    #[inline(never)]
    fn session_ended(&mut self, ended: EndedSession) {
        if ended.measured {
            self.recorder.session_ended(ended.completed.then(|| self.now_ns - ended.intended_ns));
        }
        self.release(ended);
    }

    /// Closes the connection that belonged to an ended session.
    fn release(&mut self, ended: EndedSession) {
        if let Some(slot) = ended.slot {
            self.connections[slot as usize].owned = false;
            self.close(slot);
            self.rest(slot);
        }
    }

    /// Returns the slot for an arrival's next request: that of the session's own connection, if it
    /// has one.
    #[inline]
    pub(super) fn slot_for_user(&mut self, user: u64) -> Option<u32> {
        match self.job.source.sessions() {
            None => self.slot_for_arrival(),
            Some(sessions) => match (sessions.slot_of(user), sessions.has_own_connection(user)) {
                (Some(slot), _) => Some(slot),
                (None, false) => self.slot_for_arrival(),
                (None, true) => self.own_slot(user),
            },
        }
    }

    /// Returns a slot whose connection only the session of `user` uses.
    fn own_slot(&mut self, user: u64) -> Option<u32> {
        let slot = if self.job.streams_max == 1 { self.slot_for_arrival() } else { self.fresh_slot() }?;
        self.filling = self.filling.filter(|filling| *filling != slot);
        self.connections[slot as usize].owned = true;
        if let Some(sessions) = self.job.source.sessions() {
            sessions.keep_slot(user, slot);
        }
        Some(slot)
    }

    /// Returns a slot for an arrival: one with room, or else one that is opening, or else one for a
    /// new connection. `None`: all connections are in use.
    pub(super) fn slot_for_arrival(&mut self) -> Option<u32> {
        while let Some((slot, generation)) = self.fresh.pop() {
            let connection = &mut self.connections[slot as usize];
            if connection.generation == generation && connection.state == State::Standing {
                connection.listed = false;
                return Some(slot);
            }
        }
        while let Some(&(slot, generation)) = self.idle.last() {
            let connection = &mut self.connections[slot as usize];
            let is_listed = connection.generation == generation && connection.state == State::Standing;
            let room = if is_listed { connection.conn.room() } else { 0 };
            // A connection with room for more exchanges stays in its place in the list.
            if room > 1 {
                return Some(slot);
            }
            self.idle.pop();
            if is_listed {
                connection.listed = false;
            }
            if room == 1 {
                return Some(slot);
            }
        }
        if self.job.streams_max > 1
            && let Some(slot) = self.filling
        {
            let connection = &self.connections[slot as usize];
            let waiting = connection.waiting.len();
            if connection.is_opening() && waiting > 0 && waiting < self.job.streams_max {
                return Some(slot);
            }
        }
        self.filling = self.fresh_slot();
        self.filling
    }

    /// Takes a slot without a connection; `None`: the limit of connections is reached.
    fn fresh_slot(&mut self) -> Option<u32> {
        let has_place = self.connections.len() < self.job.connections_max;
        self.free_slot().or_else(|| has_place.then(|| self.add_slot()))
    }

    /// Takes a slot from the list of free ones.
    pub(super) fn free_slot(&mut self) -> Option<u32> {
        let slot = self.free.pop()?;
        self.connections[slot as usize].listed = false;
        Some(slot)
    }

    /// The slot of a user of a closed loop: with several streams, users share connections.
    #[inline]
    pub(super) fn slot_of(&self, user: u64) -> u32 {
        if self.job.streams_max == 1 { user as u32 } else { (user / u64::from(self.job.streams_max)) as u32 }
    }

    /// Whether a request of this user (closed loop) is in flight or waits.
    fn is_at_work(&self, user: u64) -> bool {
        let connection = &self.connections[self.slot_of(user) as usize];
        let is_of_user = |number: u32| self.exchanges[number].user == user;
        connection.conn.carries(is_of_user) || self.exchanges.in_line(&connection.waiting).any(is_of_user)
    }

    /// Closed loop: sets the number of active users by the schedule.
    fn change_users(&mut self) {
        let Starts::Closed(users) = &mut self.starts else { return };
        let (schedule, stripe) = (&self.job.schedule, self.job.stripe);
        // A change is due at its announced time, and the first change at the start of the schedule.
        let intended_ns = users.change_ns.min(self.now_ns);
        let at_ns = intended_ns - self.origin_ns;
        let (before, active) = (users.active, stripe.count_of(schedule.users_at(at_ns)));
        users.active = active;
        users.change_ns = schedule.next_users_change_ns(at_ns).map_or(u64::MAX, |ns| self.origin_ns.saturating_add(ns));
        users.joining = before..active;
        users.joined_ns = intended_ns;
    }

    /// Starts users that join (closed loop), and users whose wait has ended. Returns whether there
    /// were any.
    fn start_users(&mut self) -> bool {
        let mut started = 0;
        while let Starts::Closed(users) = &mut self.starts
            && started < STARTS_PER_TURN
            && let Some(user) = users.joining.next()
        {
            started += 1;
            // A user that left and joins again may still have a request in flight or a retry
            // pending. It then continues by itself.
            let intended_ns = users.joined_ns;
            if !self.is_at_work(user) && !self.paused[user as usize] {
                self.now_ns = self.net.now_ns();
                let lag_ns = self.now_ns - intended_ns;
                if self.next_of_user(user, None, intended_ns) {
                    self.recorder.lagged(lag_ns);
                }
            }
        }
        while started < STARTS_PER_TURN
            && let Some(Reverse(waiting)) = self.waiting.peek().copied()
            && waiting.at_ns <= self.now_ns
        {
            started += 1;
            self.waiting.pop();
            if matches!(self.starts, Starts::Closed(_)) {
                self.paused[waiting.user as usize] = false;
            }
            self.now_ns = self.net.now_ns();
            let lag_ns = self.now_ns - waiting.at_ns;
            if self.next_of_user(waiting.user, waiting.route, waiting.at_ns) && waiting.route.is_some() {
                self.recorder.lagged(lag_ns);
            }
        }
        started > 0
    }

    /// Begins `user`, with this intended start. Returns the route of its first request, if the user
    /// sends at once.
    #[inline]
    fn begin_user(&mut self, user: u64, intended_ns: u64, measured: bool) -> Option<RouteNumber> {
        let next = self.job.source.next(user, None);
        let mut begins = next != UserAction::End;
        if let Some(sessions) = self.job.source.sessions() {
            let ended = sessions.take_ended();
            begins |= ended.is_some();
            if begins {
                sessions.began(user, intended_ns, measured);
            }
            if begins && measured {
                self.recorder.session_started();
            }
            if let Some(ended) = ended {
                self.handle_empty_session(user, EndedSession { intended_ns, measured, ..ended });
            }
        }
        if begins
            && measured
            && let Starts::Closed(Users { left: Some(left), .. }) = &mut self.starts
        {
            *left -= 1;
        }
        match next {
            UserAction::Send(route) => Some(route),
            UserAction::Wait(ns, route) => {
                self.wait_user(user, ns, Some(route));
                None
            }
            UserAction::End => None,
        }
    }

    /// Handles a session that ended without any request. Its user waits before the next session, to
    /// avoid an endless loop.
    #[cold]
    fn handle_empty_session(&mut self, user: u64, ended: EndedSession) {
        self.session_ended(ended);
        if matches!(self.starts, Starts::Closed(_)) {
            self.wait_user(user, RECONNECT_PAUSE_NS, None);
        }
    }

    #[cold]
    fn wait_user(&mut self, user: u64, wait_ns: u64, route: Option<RouteNumber>) {
        self.waiting.push(Reverse(DueUser { at_ns: self.now_ns.saturating_add(wait_ns), user, route }));
        if matches!(self.starts, Starts::Closed(_)) {
            self.paused[user as usize] = true;
        }
    }

    /// Prepares the user's next request with this intended start: for `route`, or the user's first
    /// one. Returns whether a measured request may start.
    #[inline]
    fn next_of_user(&mut self, user: u64, route: Option<RouteNumber>, intended_ns: u64) -> bool {
        let measured = intended_ns >= self.measured_from_ns;
        if self.stopped_ns.is_some() || intended_ns >= self.end_ns {
            return false;
        }
        if let Starts::Closed(users) = &self.starts
            && (user >= users.active || (route.is_none() && measured && users.left == Some(0)))
        {
            // A user that left sends no more, but may finish its session.
            if route.is_some() {
                self.cut_session(user);
            }
            return false;
        }
        let Some(route) = route.or_else(|| self.begin_user(user, intended_ns, measured)) else { return false };
        if !self.job.source.ready() {
            return false;
        }
        let slot = match &self.starts {
            // A user of a closed loop has its own connection, or its share of one.
            Starts::Closed(_) => self.slot_of(user),
            Starts::Open { .. } => match self.slot_for_user(user) {
                Some(slot) => slot,
                None => {
                    self.not_sent(user, route, measured);
                    return false;
                }
            },
        };
        self.start(slot, user, route, intended_ns, measured);
        measured
    }

    /// Continues `user` after its exchange on `slot`: its next request, now or later, or its end. A
    /// user of a closed loop then begins again.
    #[inline]
    pub(super) fn go_on(&mut self, slot: u32, user: u64, last: LastRequest) {
        let next = self.job.source.next(user, Some(&last));
        if let Some(ended) = self.job.source.take_ended() {
            self.session_ended(ended);
        }
        let refused = matches!(last.outcome, Outcome::Failed(RequestFailure::Connect | RequestFailure::Tls));
        match (&self.starts, next) {
            (Starts::Closed(_), UserAction::End) if !refused => {
                self.next_of_user(user, None, self.now_ns);
            }
            (Starts::Open { .. }, UserAction::End) => self.rest(slot),
            _ => self.continue_session(slot, user, next, refused),
        }
    }

    /// Continues a user within its session, or after a failed connect (`refused`).
    #[inline(never)]
    fn continue_session(&mut self, slot: u32, user: u64, next: UserAction, refused: bool) {
        // Other users may use the connection meanwhile (open loop).
        self.rest(slot);
        let (wait_ns, route) = match next {
            UserAction::End => (0, None),
            UserAction::Send(route) => (0, Some(route)),
            UserAction::Wait(ns, route) => (ns, Some(route)),
        };
        // After a failed connect, pause before the retry.
        match wait_ns.max(if refused { RECONNECT_PAUSE_NS } else { 0 }) {
            0 => {
                self.next_of_user(user, route, self.now_ns);
            }
            wait_ns => self.wait_user(user, wait_ns, route),
        }
    }

    /// Whether a limit of requests has ended the load: all were started, or all sessions have
    /// ended.
    pub(super) fn ended_by_count(&self) -> bool {
        match &self.starts {
            Starts::Open { next_ns, .. } => {
                let all_begun = next_ns.is_none() && self.job.ends_by_number && self.waiting.is_empty();
                (all_begun && !self.job.source.has_under_way()) || self.job.source.is_halted()
            }
            Starts::Closed(users) => {
                (users.left == Some(0) || self.job.source.is_used_up())
                    && self.now_ns >= self.measured_from_ns
                    && !self.job.source.has_under_way()
            }
        }
    }

    /// Whether every arrival before the schedule's end was handled.
    pub(super) fn nothing_due(&self) -> bool {
        matches!(&self.starts, Starts::Closed(_) | Starts::Open { next_ns: None, .. })
    }
}
